/* resident.c - decides where a kernel stores the weight matrices whose rows are divided among its virtual processors (CTAs). */
#include "codegen/resident.h"

vpps_resident *vpps_resident_of(const vpps_residents *r, vpps_param matrix, bool transposed, uint32_t shares) {
    for (uint32_t i = 0; i < r->n; i++)
        if (r->list[i].matrix == matrix && r->list[i].transposed == transposed && r->list[i].shares == shares)
            return &r->list[i];
    return NULL;
}

const vpps_resident_vector *vpps_resident_vector_of(const vpps_residents *r, vpps_param vector) {
    for (uint32_t i = 0; i < r->n_vectors; i++)
        if (r->vectors[i].vector == vector) return &r->vectors[i];
    return NULL;
}

const vpps_fragment *vpps_resident_fragment(const vpps_residents *r, const vpps_fragment *weights) {
    for (uint32_t i = 0; i < r->n_fragments; i++)
        if (vpps_same_weights(&r->fragments[i], weights)) return &r->fragments[i];
    return NULL;
}

bool vpps_product_is_short(const vpps_program *p, const vpps_program_step *product) {
    enum { SHORT = 8 };
    for (uint32_t i = 0; i < product->n; i++)
        if (p->operands[product->first + i].rows > SHORT) return false;
    return true;
}

/* Chooses the number of blocks into which a warp's lanes are divided. For each vector, a thread multiplies all its weights, and lanes of a
 * block add up their sums of each row. With more blocks, a thread has fewer rows to add up but more columns, and more rows are padding. */
uint32_t vpps_blocks_of_rows(uint32_t rows, bool transposed, uint32_t threads) {
    enum {
        COLUMNS = 2 /* a thread's columns if a CTA's threads share a row, e.g. 512 among 256 */,
        SUMS = 4 /* cost of adding up a row's sums of the lanes that share it, in instructions */,
        MANY = 8
    };
    uint32_t best = 1, least = UINT32_MAX;
    if (transposed && rows >= MANY) rows /= 2;
    for (uint32_t blocks = 1; threads % (32 * blocks) == 0; blocks *= 2) {
        const uint32_t cost = (rows + blocks - 1) / blocks * (COLUMNS * blocks + SUMS);
        if (cost < least) {
            best = blocks;
            least = cost;
        }
    }
    return best;
}

/* Returns how many adjacent columns of a row one load reads: 4, 2 or 1. The number is the greatest that adds at most a sixteenth of padding
 * to a row, whose columns `span` threads share. Unless the matrix is transposed, its rows lie one after the other in memory. The number
 * must then divide their length, so that the loads of every row are aligned. */
static uint32_t run_of_columns(uint32_t columns, bool transposed, uint32_t span) {
    enum { QUAD = 4, HARDLY = 16 };
    const uint32_t singles = (columns + span - 1) / span;
    uint32_t run = QUAD;
    while ((!transposed && columns % run) || (singles + run - 1) / run * run - singles > singles / HARDLY) run /= 2;
    return run;
}

vpps_resident vpps_lay_out_rows(uint32_t rows, uint32_t columns, bool transposed, uint32_t threads) {
    const uint32_t blocks = vpps_blocks_of_rows(rows, transposed, threads), span = threads / blocks;
    const uint32_t run = run_of_columns(columns, transposed, span);
    return (vpps_resident){
        .rows = rows, .columns = (columns + run * span - 1) / (run * span) * run, .blocks = blocks, .run = run};
}

static bool add_vector(vpps_residents *r, vpps_param vector, uint32_t rows) {
    if (vector == VPPS_NO_PARAM || vpps_resident_vector_of(r, vector)) return true;
    if (!VPPS_RESERVE(r->vectors, r->n_vectors + 1u)) return false;
    r->vectors[r->n_vectors++] = (vpps_resident_vector){.vector = vector, .rows = rows};
    return true;
}

static bool add_fragment(vpps_residents *r, const vpps_fragment *f) {
    if (vpps_resident_fragment(r, f)) return true;
    if (!VPPS_RESERVE(r->fragments, r->n_fragments + 1u) || !r->fragments) return false;
    r->fragments[r->n_fragments++] = *f;
    return true;
}

/* Adds to r (weights that a kernel keeps) the fragments (eight rows each) by which the products in g multiply. */
static bool add_segment(vpps_residents *r, const vpps_segments *s, const vpps_segment *g, uint32_t threads) {
    uint32_t n;
    vpps_product_tile *tiles = vpps_tile_products(s, g, &n);
    bool ok = tiles;
    for (uint32_t v = 0; v < s->c->n_values && ok; v++) {
        for (uint32_t t = 0; t < n && ok; t++) {
            vpps_fragment f;
            for (uint32_t k = 0; ok && vpps_fragment_of(s->p, &tiles[t], v, k, threads, &f); k++)
                ok = add_fragment(r, &f);
        }
    }
    free(tiles);
    return ok;
}

static vpps_status add_fragments(vpps_residents *r, const vpps_compiled_cell *c, uint32_t threads) {
    for (uint32_t i = 0; i < c->n_stages; i++) {
        vpps_segments s;
        vpps_status status = vpps_segments_make(&s, c, i);
        for (uint32_t g = 0; g < s.n && status == VPPS_OK; g++)
            if (s.list[g].kind == VPPS_SEGMENT_PRODUCTS && !add_segment(r, &s, &s.list[g], threads))
                status = vpps_fail(VPPS_MEMORY, "kernel: out of memory");
        vpps_segments_free(&s);
        VPPS_TRY(status);
    }
    return VPPS_OK;
}

/* Returns the step that makes value v if that is a product whose rows are divided among CTAs, else NULL. Sets *p to the step's program. */
static const vpps_program_step *product_of(const vpps_compiled_cell *c, uint32_t v, const vpps_program **p) {
    for (*p = c->programs; *p < c->programs + c->n_stages; ++*p)
        for (uint32_t i = 0; i < (*p)->n && (*p)->rows; i++)
            if ((*p)->steps[i].kind == VPPS_STEP_PRODUCT && (*p)->steps[i].to.value == v) return &(*p)->steps[i];
    return NULL;
}

vpps_status vpps_residents_add(vpps_residents *r, const vpps_model *model, const vpps_compiled_cell *c,
                               uint32_t threads) {
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_program *p;
        const vpps_program_step *x = product_of(c, v, &p);
        if (!x) continue;
        const uint32_t shares = x->product.shares;
        const bool transposed = x->product.transposed, is_short = !r->parts && vpps_product_is_short(p, x);
        if (!add_vector(r, vpps_bias_param(x), vpps_most_rows(&c->needs, x->to.rows, 1)))
            return vpps_fail(VPPS_MEMORY, "kernel: out of memory");
        for (uint32_t i = 0; i < x->n; i++) {
            const vpps_param matrix = p->operands[x->first + i].matrix;
            vpps_resident *there = vpps_resident_of(r, matrix, transposed, shares);
            if (there) there->is_short &= is_short;
            if (there) continue;
            const vpps_parameter_data *m = &model->params[matrix];
            if (!VPPS_RESERVE(r->list, r->n + 1u)) { return vpps_fail(VPPS_MEMORY, "kernel: out of memory"); }
            const uint32_t rows = vpps_most_rows(&c->needs, transposed ? m->cols : m->rows, shares);
            vpps_resident *made = &r->list[r->n++];
            *made = vpps_lay_out_rows(rows, (transposed ? m->rows : m->cols) / shares, transposed, threads);
            made->matrix = matrix, made->transposed = transposed, made->shares = shares, made->is_short = is_short;
        }
    }
    return r->parts ? add_fragments(r, c, threads) : VPPS_OK;
}

/* Places `words` words of weights of each thread in registers if that is allowed, else in shared memory, else in device
 * memory (*level), after the words that are there already. Returns the number of the first of these words. */
static uint32_t place(vpps_residents *r, const vpps_kernel_room *room, uint32_t words, bool registers, uint8_t *level,
                      uint64_t *words_at) {
    const uint64_t of_cta = (uint64_t)words * room->threads;
    *level = registers && words <= room->registers - r->registers ? VPPS_RESIDENT_REGISTERS
             : of_cta + r->shared_words <= room->shared_words     ? VPPS_RESIDENT_SHARED
                                                                  : VPPS_RESIDENT_STREAM;
    const bool in_shared = *level == VPPS_RESIDENT_SHARED;
    const uint32_t at = in_shared ? r->shared_words / room->threads : (uint32_t)words_at[*level];
    if (*level == VPPS_RESIDENT_REGISTERS) r->registers += words;
    if (in_shared) r->shared_words += (uint32_t)of_cta;
    words_at[*level] += words;
    return at;
}

static void place_fragments(vpps_residents *r, const vpps_kernel_room *room, uint64_t *words_at) {
    for (uint32_t i = 0; i < r->n; i++) r->list[i].level = VPPS_RESIDENT_REGISTERS;
    for (uint32_t i = 0; i < 2 * r->n_fragments; i++) { /* if products are wide, others than each level's last */
        vpps_fragment *f = &r->fragments[i % r->n_fragments];
        if ((r->wide_words && !f->by_levels) != (i >= r->n_fragments)) continue;
        f->at = place(r, room, vpps_fragment_words(f, r->parts), !f->tall, &f->level, words_at);
        for (uint32_t k = 0; k < VPPS_FRAGMENT_ROWS; k++) {
            vpps_resident *m = vpps_resident_of(r, f->rows[k].matrix, f->rows[k].transposed, f->shares);
            if (m && m->level < f->level) m->level = f->level;
        }
    }
}

static void place_matrices(vpps_residents *r, const vpps_kernel_room *room, uint64_t *words_at) {
    for (uint32_t i = 0; i < r->n; i++) {
        vpps_resident *m = &r->list[i];
        if (m->is_short)
            m->level = VPPS_RESIDENT_STREAM;
        else
            m->at = place(r, room, vpps_words_of_thread(m), true, &m->level, words_at);
    }
}

/* Places all weights, after `vectors` words of bias vectors in shared memory. Returns whether device memory holds most weights. */
static bool place_weights(vpps_residents *r, const vpps_kernel_room *room, uint32_t vectors) {
    uint64_t words_at[VPPS_RESIDENT_STREAM + 1] = {0};
    r->registers = 0;
    r->shared_words = vectors;
    (r->parts ? place_fragments : place_matrices)(r, room, words_at);
    r->memory_words = r->parts ? words_at[VPPS_RESIDENT_STREAM] * room->threads : 0;
    return words_at[VPPS_RESIDENT_STREAM] > words_at[VPPS_RESIDENT_REGISTERS] + words_at[VPPS_RESIDENT_SHARED];
}

void vpps_residents_place(vpps_residents *r, const vpps_kernel_room *room) {
    enum { WARP = 32, MOST_THREADS = 512 };
    uint32_t at = 0;
    for (uint32_t i = 0; i < r->n_vectors; at += r->vectors[i++].rows) r->vectors[i].at = at;
    const uint32_t vectors = (at + room->threads - 1) / room->threads * room->threads,
                   tile_words = VPPS_WIDE_TILES * VPPS_FRAGMENT_ROWS * VPPS_FRAGMENT_ROWS,
                   words = r->parts ? tile_words * vpps_sum_words(room->threads) : VPPS_WIDE_WORDS;
    r->wide_words = 0;
    if (!place_weights(r, room, vectors) || vectors + words > room->shared_words || room->threads <= WARP ||
        room->threads > MOST_THREADS)
        return;
    vpps_kernel_room rest = *room; /* what buffers for products of many vertices at once leave for weights */
    rest.registers = r->parts ? vpps_min_u32(room->registers, VPPS_WIDE_REGISTERS) : 0;
    rest.shared_words = r->parts ? room->shared_words - words : 0;
    r->wide_words = words;
    place_weights(r, &rest, vectors);
    r->shared_words += words;
}

void vpps_residents_free(vpps_residents *r) {
    VPPS_FREE_ARRAYS(r->list, r->vectors, r->fragments);
    *r = (vpps_residents){0};
}

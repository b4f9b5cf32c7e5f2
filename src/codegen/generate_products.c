/* generate_products.c - writes code for products with matrices whose rows CTAs divide. resident.h: where weights
 * lie. */
#include "codegen/generate_stage.h"

typedef vpps_stage_work work;

/* The rows of product `value` that a warp computes at once, one in each of the `blocks` groups of its lanes: group b
 * computes row b + row * blocks of the rows that the CTA owns. */
typedef struct output {
    uint32_t value, row;
} output;

/* Rows of products that a CTA's threads compute together. */
typedef struct pass {
    const output *outputs;
    uint32_t n, blocks;      /* n: rows of a thread; blocks: groups of a warp's lanes, which compute different rows */
    uint32_t at, item_words; /* a vertex's sums have item_words words of shared memory, these rows' from `at` on */
    uint32_t turns;          /* how often the kernel runs this code, each time for the next n rows */
} pass;

/* Least turns of a loop. With fewer turns, some kernels are slower than straight code, and compile in little less time. */
enum { LEAST_TURNS = 4 };

/* Returns whether the kernel multiplies each weight that it reads from memory with up to 64 vertices (tiles.cuh). */
static bool is_wide(const work *w) { return w->g->plan->residents.wide_words > 0; }

static const vpps_resident *resident_of(const work *w, const vpps_program_step *x, vpps_param matrix) {
    return vpps_resident_of(&w->g->plan->residents, matrix, x->product.transposed, x->product.shares);
}

static uint32_t blocks_of(const work *w, uint32_t v) {
    if (is_wide(w)) return 1;
    return vpps_blocks_of_rows(vpps_segment_width(&w->s, v), w->s.made_by[v]->product.transposed, w->g->plan->threads);
}

static uint32_t rows_of_thread(const work *w, uint32_t v) {
    const uint32_t blocks = blocks_of(w, v);
    return (vpps_segment_width(&w->s, v) + blocks - 1) / blocks;
}

/* Products of equal class are computed together. Returns product v's class: the number of groups of a warp's lanes that
 * compute different rows. In kernels that multiply many vertices at once: 2 if the matrix is transposed, else 1. */
static uint32_t class_of(const work *w, uint32_t v) {
    return is_wide(w) ? 1u + w->s.made_by[v]->product.transposed : blocks_of(w, v);
}

/* Returns whether a value's vectors begin and end at multiples of four words in memory, so that loads of four words are possible. */
static bool has_quads(const work *w, uint32_t v) { return vpps_has_quads(vpps_stage_value(w, v)); }

/* Returns whether a value's vectors in memory begin at multiples of four words. Entries of a table, which inputs may be, need not. */
static bool begins_at_quads(const work *w, uint32_t v) {
    return has_quads(w, v) || (vpps_is_long(vpps_stage_value(w, v)) && w->s.memory[v]->place == VPPS_PLACE_RECORD);
}

/* Returns how many elements of vector v a CTA multiplies: all, or an equal part if CTAs compute partial sums. */
static uint32_t length_of(const work *w, uint32_t v) { return vpps_stage_value(w, v)->rows / vpps_stage_shares(w); }

/* Writes an operand's last template argument: a function that returns the address of the operand's vector of a vertex or node of its list. */
static void put_place(const work *w, uint32_t operand) {
    char element[64] = "0u";
    if (vpps_stage_shares(w) > 1)
        snprintf(element, sizeof element, "member %% %uu * %uu", vpps_stage_shares(w), length_of(w, operand));
    fprintf(w->out, ">([&](unsigned item) { return &");
    vpps_put_memory(w, operand, "first_item + item", element);
    fprintf(w->out, "; })");
}

/* Writes the C++ type of a matrix whose weights are read from memory at each use. */
static void put_streamed_part(const work *w, const pass *p, uint32_t first, uint32_t rows, vpps_param matrix) {
    const output *o = &p->outputs[first];
    fprintf(w->out, is_wide(w) ? ", vpps_wide_rows<" : ", vpps_streamed_part<");
    vpps_put_matrix(w->g, matrix, w->s.made_by[o->value]->product.transposed, vpps_stage_shares(w));
    fprintf(w->out, ", %u, %u, %u", first, rows * p->turns, o->row);
    if (!is_wide(w)) fprintf(w->out, ", %u", p->blocks);
    fputc('>', w->out);
}

/* Writes a C++ template argument for each matrix that multiplies vector `operand`, if `write` is set. streamed: only
 * for matrices read from memory at each use; else only for those in registers and shared memory. which: number of one
 * of a product's matrices; VPPS_NONE: all. Returns one of these matrices, which have equal layouts, or NULL. */
static const vpps_resident *put_matrices(const work *w, const pass *p, uint32_t operand, bool streamed, uint32_t which,
                                         bool write) {
    const vpps_resident *m = NULL;
    for (uint32_t o = 0, rows; o < p->n; o += rows) {
        const vpps_program_step *x = w->s.made_by[p->outputs[o].value];
        for (rows = 1; o + rows < p->n && p->outputs[o + rows].value == p->outputs[o].value;) rows++;
        for (uint32_t k = 0, number = 0; k < x->n; k++) {
            const vpps_operand *a = vpps_operand_of(&w->s, x, k);
            if (a->value != operand || (which != VPPS_NONE && number++ != which)) continue;
            const vpps_resident *at = resident_of(w, x, a->matrix);
            if ((at->level == VPPS_RESIDENT_STREAM) != streamed) continue;
            m = at;
            if (write && streamed) put_streamed_part(w, p, o, rows, a->matrix);
            if (write && !streamed)
                fprintf(w->out, ", vpps_matrix_part<%u, %u, %u, %s>", o, rows, m->at + p->outputs[o].row * m->columns,
                        m->level == VPPS_RESIDENT_SHARED ? "true" : "false");
        }
    }
    return m;
}

/* Writes `before` and a C++ object for vector v and its matrices (streamed: those in memory); false: there are none. */
static bool put_operand(const work *w, const pass *p, uint32_t v, bool streamed, const char *before) {
    const vpps_resident *m = put_matrices(w, p, v, streamed, VPPS_NONE, false);
    if (!m) return false;
    fprintf(w->out, "%s\nvpps_operand_at<%u, %u, %u, %u, %s, ", before, length_of(w, v), m->run, m->columns / m->run,
            w->g->plan->threads / p->blocks * m->run, vpps_truth(begins_at_quads(w, v)));
    if (w->copy_item_words && w->copy_at[v] != VPPS_NONE && !streamed)
        fprintf(w->out, "%u", w->copy_at[v]);
    else
        fprintf(w->out, "VPPS_NONE");
    put_matrices(w, p, v, streamed, VPPS_NONE, true);
    put_place(w, v);
    return true;
}

/* Writes code that computes rows of products for many vertices at once, for which each weight is read once. */
static void put_wide_pass(const work *w, const pass *p) {
    const char *before = "";
    const bool looped = vpps_begin_turns(w->out, p->turns);
    fprintf(w->out, "vpps_wide_pass<%u, %u, %u, %s>{(const float *)a.matrices, part", p->n, p->at, p->item_words,
            vpps_truth(w->s.made_by[p->outputs->value]->product.transposed));
    if (looped) fprintf(w->out, " + turn * %uu", p->n);
    fprintf(w->out, ", shared + %uu, n", w->g->plan->residents.shared_words - w->g->plan->residents.wide_words);
    fprintf(w->out, looped ? ", turn * %uu}.run(" : "}.run(", p->n);
    for (uint32_t v = 0; v < w->c->n_values; v++) {
        for (uint32_t k = 0; put_matrices(w, p, v, true, k, false); k++, before = ",") {
            fprintf(w->out, "%s\nvpps_wide_operand_at<%u, %s", before, length_of(w, v), vpps_truth(has_quads(w, v)));
            put_matrices(w, p, v, true, k, true);
            put_place(w, v);
        }
    }
    fprintf(w->out, looped ? ");\n});\n" : ");\n");
}

/* Writes code that computes some rows of products, for all items (vertices, or nodes that a list input reads) computed together. */
static void put_pass(const work *w, const pass *p) {
    if (is_wide(w)) {
        put_wide_pass(w, p);
        return;
    }
    fprintf(w->out, "vpps_pass<%u, %u, %u, %u, %u, %u>{{w, shared, threadIdx.x, a}, part, copies, n}.run(", p->n,
            p->blocks, p->at, p->item_words, w->copy_item_words, w->copy_buffers);
    bool any = false;
    for (uint32_t v = 0; v < w->c->n_values; v++) {
        any |= put_operand(w, p, v, false, any ? "," : "");
        any |= put_operand(w, p, v, true, any ? "," : "");
    }
    fprintf(w->out, ");\n");
}

/* Writes the declaration of variable vV (V: v's number), an element of a product: its sum, plus what is added to it. */
static void put_finished(const work *w, uint32_t v) {
    const vpps_operand *start = vpps_start_of(w->s.made_by[v]);
    const vpps_param bias = vpps_bias_param(w->s.made_by[v]);
    fprintf(w->out, "const float v%u = sum%u", v, v);
    if (bias != VPPS_NO_PARAM)
        fprintf(w->out, " + shared[%uu + e]", vpps_resident_vector_of(&w->g->plan->residents, bias)->at);
    if (start) {
        fprintf(w->out, " + ");
        vpps_put_element(w, start->value, "item", "e", "element");
    }
    fprintf(w->out, ";\n");
}

/* Returns whether a single thread computes each element of product v, with weights from memory. */
static bool is_short(const work *w, uint32_t v) {
    return !w->g->plan->parts && vpps_product_is_short(w->s.p, w->s.made_by[v]);
}

static bool has_streamed_matrix(const work *w, uint32_t v) {
    const vpps_program_step *x = w->s.made_by[v];
    for (uint32_t k = 0; k < x->n; k++)
        if (resident_of(w, x, vpps_operand_of(&w->s, x, k)->matrix)->level == VPPS_RESIDENT_STREAM) return true;
    return false;
}

static const vpps_fragment *fragment_of(const work *w, const vpps_product_tile *tile, uint32_t operand,
                                        uint32_t which) {
    vpps_fragment weights;
    if (!vpps_fragment_of(w->s.p, tile, operand, which, w->g->plan->threads, &weights)) return NULL;
    return vpps_resident_fragment(&w->g->plan->residents, &weights);
}

static bool place_tiles(const work *w, const vpps_segment *g) {
    uint32_t n, *row_words = &w->row_words[g - w->s.list];
    vpps_product_tile *tiles = vpps_tile_products(&w->s, g, &n);
    if (!tiles) return false;
    if (tiles->tall) *row_words = 1;
    for (uint32_t k = 0; k < n * VPPS_FRAGMENT_ROWS; k++) {
        const vpps_product_row *row = &tiles[k / VPPS_FRAGMENT_ROWS].rows[k % VPPS_FRAGMENT_ROWS];
        if (row->product && !row->row) w->part_at[row->product->to.value] = k * *row_words;
    }
    if (tiles->tall) n |= 1; /* so that sums of adjacent items lie in different banks */
    w->item_words[g - w->s.list] = n * VPPS_FRAGMENT_ROWS * *row_words;
    free(tiles);
    return true;
}

bool vpps_place_products(const work *w) {
    for (uint32_t i = 0; i < w->s.n; i++) {
        const vpps_segment *g = &w->s.list[i];
        w->item_words[i] = 0;
        if (g->kind != VPPS_SEGMENT_PRODUCTS) continue;
        w->row_words[i] = is_wide(w) ? 1 : vpps_sum_words(w->g->plan->threads);
        if (w->g->plan->parts) {
            if (!place_tiles(w, g)) return false;
            continue;
        }
        for (uint32_t class = w->g->plan->threads / 32; class; class --) {
            for (uint32_t k = 0; k < g->n; k++) {
                const uint32_t v = w->s.steps[g->first + k].value;
                if (is_short(w, v) || class_of(w, v) != class) continue;
                w->part_at[v] = w->item_words[i];
                w->item_words[i] += rows_of_thread(w, v) * blocks_of(w, v) * w->row_words[i];
            }
            w->item_words[i] = vpps_quads_up(w->item_words[i]); /* pads the words to a multiple of four, for loads */
        }
    }
    return true;
}

/* ---------------------------------------------------------------- products in bf16 */

/* Writes C++ types of the fragments (eight rows of weights) that multiply `operand`, if `write` is set: if `streamed`,
 * only of those in memory, else only of the others. Returns the last such fragment, or NULL if there is none. */
static const vpps_fragment *put_fragments(const work *w, const vpps_product_tile *tiles, uint32_t n, uint32_t operand,
                                          bool streamed, bool write) {
    const vpps_fragment *f, *any = NULL;
    for (uint32_t t = 0; t < n; t++) {
        for (uint32_t k = 0; (f = fragment_of(w, &tiles[t], operand, k)) != NULL; k++) {
            if ((f->level == VPPS_RESIDENT_STREAM) != streamed) continue;
            if (write) fprintf(w->out, ", vpps_fragment<%u, %u, %u, %u>", f->at, f->level, f->steps, t);
            any = f;
        }
    }
    return any;
}

/* Writes `before` and a C++ object for a vector and its weights (streamed: those in memory); false: there are none. */
static bool put_tile_operand(const work *w, const vpps_product_tile *tiles, uint32_t n, uint32_t operand, bool streamed,
                             const char *before) {
    const vpps_fragment *f = put_fragments(w, tiles, n, operand, streamed, false);
    if (!f) return false;
    fprintf(w->out, "%s\nvpps_tile_operand_at<%u, %u, %s, %s", before, length_of(w, operand), f->steps,
            vpps_truth(vpps_is_kept_in_parts(w->g, w->c, operand)), vpps_truth(begins_at_quads(w, operand)));
    put_fragments(w, tiles, n, operand, streamed, true);
    put_place(w, operand);
    return true;
}

/* Writes code that computes tiles (eight result rows each) first to first + n - 1. If f is not NULL, the product
 * is tall (many rows, one matrix): a loop of `turns` turns computes n tiles each, with adjacent weights from f on. */
static void put_tiles(const work *w, const vpps_segment *g, const vpps_product_tile *tiles, uint32_t n, uint32_t first,
                      uint32_t turns, const vpps_fragment *f) {
    const vpps_residents *r = &w->g->plan->residents;
    const uint32_t words = f ? n * vpps_fragment_words(f, r->parts) : 0;
    const bool wide = is_wide(w) && !f, in_shared = f && f->level == VPPS_RESIDENT_SHARED;
    const char *const kind = f ? "tall" : wide ? "wide" : "tile";
    fprintf(w->out, "vpps_%s_pass<%u, %u, %u", kind, n, first * VPPS_FRAGMENT_ROWS * w->row_words[g - w->s.list],
            w->item_words[g - w->s.list]);
    if (f) fprintf(w->out, ", %u, %u, %u", turns, in_shared ? words * w->g->plan->threads : 0, in_shared ? 0 : words);
    fprintf(w->out, ">{{w, shared, threadIdx.x, a}, part, ");
    if (wide) fprintf(w->out, "shared + %uu, ", r->shared_words - r->wide_words);
    fprintf(w->out, "n}.run(");
    bool any = false;
    for (uint32_t v = 0; v < w->c->n_values; v++) {
        any |= put_tile_operand(w, tiles, n, v, false, any ? "," : "");
        any |= put_tile_operand(w, tiles, n, v, true, any ? "," : "");
    }
    fprintf(w->out, ");\n");
}

/* Returns how many of n tiles (eight rows of a matrix times vector v), from the first on, have adjacent weights in one kind of memory. */
static uint32_t adjacent_tiles(const work *w, const vpps_product_tile *tiles, uint32_t n, uint32_t v) {
    const vpps_fragment *first = fragment_of(w, tiles, v, 0), *f = first;
    const uint32_t words = vpps_fragment_words(first, w->g->plan->residents.parts);
    uint32_t k = 0;
    while (f->level == first->level && f->at == first->at + k * words && ++k < n) f = fragment_of(w, &tiles[k], v, 0);
    return k;
}

static bool put_all_tiles(const work *w, const vpps_segment *g) {
    enum { MOST = 8, MOST_TALL = 6 };
    uint32_t n;
    vpps_product_tile *tiles = vpps_tile_products(&w->s, g, &n);
    if (!tiles) return false;
    const uint32_t v = vpps_operand_of(&w->s, w->s.steps[g->first].step, 0)->value;
    const uint32_t limit = tiles->tall ? MOST_TALL : is_wide(w) ? VPPS_WIDE_TILES : MOST;
    const uint32_t most = (n - 1) / vpps_max_u32(1 + tiles->tall, (n + limit - 1) / limit) + 1; /* equal passes */
    for (uint32_t first = 0, turns; first < n; first += turns * most) {
        const vpps_fragment *f = tiles->tall ? fragment_of(w, &tiles[first], v, 0) : NULL;
        turns = f ? vpps_max_u32(1, adjacent_tiles(w, &tiles[first], n - first, v) / most) : 1;
        put_tiles(w, g, tiles + first, vpps_min_u32(n - first, most), first, turns, f);
    }
    free(tiles);
    return true;
}

/* Writes code for the products of one class (they divide a warp's lanes alike), at most MOST rows at a time. If weights
 * are read from memory, at most MOST_STREAMED: registers then suffice to use a weight for several vertices. */
static void put_passes(const work *w, const vpps_segment *g, uint32_t class, output *outputs) {
    enum { MOST = 32, MOST_STREAMED = 8, MOST_WIDE = 40 };
    const uint32_t blocks = is_wide(w) ? 1 : class;
    uint32_t all = 0, at = VPPS_NONE, most = is_wide(w) ? MOST_WIDE : MOST;
    for (uint32_t k = 0; k < g->n; k++) {
        const uint32_t v = w->s.steps[g->first + k].value;
        if (is_short(w, v) || class_of(w, v) != class) continue;
        if (!is_wide(w) && has_streamed_matrix(w, v)) most = MOST_STREAMED;
        if (!all) at = w->part_at[v];
        for (uint32_t r = 0; r < rows_of_thread(w, v); r++) outputs[all++] = (output){v, r};
    }
    if (is_wide(w) && all)
        most = (all - 1) / ((all - 1) / most + 1) + 1; /* all passes compute nearly equal numbers of rows */
    const uint32_t words = w->item_words[g - w->s.list];
    for (uint32_t first = 0, turns; first < all; first += turns * most) {
        turns = is_wide(w) ? (all - first) / most : 1;
        if (turns < LEAST_TURNS || outputs[first + turns * most - 1].value != outputs[first].value) turns = 1;
        const uint32_t n = vpps_min_u32(all - first, most), part_at = at + first * blocks * w->row_words[g - w->s.list];
        const pass p = {outputs + first, n, blocks, part_at, words, turns};
        put_pass(w, &p);
    }
}

static bool put_all_passes(const work *w, const vpps_segment *g) {
    uint32_t all = 0;
    for (uint32_t k = 0; k < g->n; k++) all += rows_of_thread(w, w->s.steps[g->first + k].value);
    output *outputs = calloc(all + 1u, sizeof *outputs);
    if (!outputs) return false;
    for (uint32_t class = w->g->plan->threads / 32; class; class --) put_passes(w, g, class, outputs);
    free(outputs);
    return true;
}

/* ---------------------------------------------------------------- finishing products */

/* Writes the declaration of sumV: one thread computes a whole row of product V, with weights that the thread reads from memory. */
static void put_short_sum(const work *w, uint32_t v) {
    const vpps_program_step *x = w->s.made_by[v];
    const bool transposed = x->product.transposed;
    fprintf(w->out, "float sum%u = 0.0f;\n", v);
    for (uint32_t k = 0; k < x->n; k++) {
        const vpps_operand *a = vpps_operand_of(&w->s, x, k);
        const uint32_t cols = w->g->model->params[a->matrix].cols;
        fprintf(w->out,
                "sum%u = vpps_multiply_row<%u, %u, 1>(0u, sum%u, (const float *)a.matrices + %uu + element * %uu, ", v,
                a->rows, transposed ? cols : 1, v, w->g->matrix_at[a->matrix], transposed ? 1 : cols);
        fputc('&', w->out);
        vpps_put_memory(w, a->value, "item", "0u");
        fprintf(w->out, ");\n");
    }
}

/* The texts that begin and end the body of a loop over all vertices (or nodes of their lists) and the CTA's rows. */
static const char *const begin_body =
    ", [&](unsigned i, unsigned e, unsigned element) {\nconst unsigned item = first_item + i;\n";
static const char *const end_body = "});\n";

static void put_value(const work *w, uint32_t v, const vpps_segment *products, const char *item) {
    if (is_short(w, v))
        put_short_sum(w, v);
    else
        fprintf(w->out, "const float sum%u = vpps_product_sum<%u, %u, %u>(part, %s, e);\n", v, w->part_at[v],
                w->item_words[products - w->s.list], w->row_words[products - w->s.list], item);
    put_finished(w, v);
}

void vpps_put_joined(const work *w, const vpps_segment *products) {
    for (uint32_t k = 0; k < products->n; k++) put_value(w, w->s.steps[products->first + k].value, products, "item");
}

/* Writes code in which a thread finishes one row of products of a vertex (or a node of its list): it adds up the
 * warps' partial sums or, if the multiplied vectors are short (fp32, at most 8 elements), computes the whole row. */
static void put_sums(const work *w, const vpps_segment *g) {
    for (uint32_t i = 0; i < g->n; i++) {
        const uint32_t first = w->s.steps[g->first + i].value, rows = vpps_stage_value(w, first)->rows,
                       width = vpps_segment_width(&w->s, first);
        bool seen = false;
        for (uint32_t k = 0; k < i; k++) seen |= vpps_stage_value(w, w->s.steps[g->first + k].value)->rows == rows;
        if (seen) continue;
        fprintf(w->out, "vpps_elements<VPPS_NONE, %u>(threadIdx.x, n, r%u%s", width, rows, begin_body);
        for (uint32_t k = i; k < g->n; k++) {
            const uint32_t v = w->s.steps[g->first + k].value;
            if (vpps_stage_value(w, v)->rows != rows) continue;
            put_value(w, v, g, "i");
            vpps_store_finished(w, v);
        }
        fputs(end_body, w->out);
    }
}

/* Returns whether products are computed for all vertices of a tile (vertices that a CTA takes together) at once. */
static bool is_whole_tile(const work *w) { return !w->lists && w->chunk >= w->tile; }

bool vpps_can_join(const work *w, uint32_t segment) {
    const vpps_segment *g = &w->s.list[segment], *next = g + 1;
    if (g->kind != VPPS_SEGMENT_PRODUCTS || segment + 1 >= w->s.n || next->kind != VPPS_SEGMENT_ELEMENTS ||
        !next->dealt || next->axis || g->axis || !is_whole_tile(w))
        return false;
    const uint32_t rows = vpps_stage_value(w, w->s.steps[next->first].value)->rows;
    for (uint32_t k = 0; k < g->n; k++) {
        const uint32_t v = w->s.steps[g->first + k].value;
        if (vpps_stage_value(w, v)->rows != rows) return false;
    }
    for (uint32_t k = 0; k < next->n; k++) {
        const vpps_segment_step *step = &w->s.steps[next->first + k];
        for (uint32_t i = 0; step->kind == VPPS_SEGMENT_MAKE && i < step->step->n; i++) {
            const vpps_operand *o = vpps_operand_of(&w->s, step->step, i);
            if (w->s.made_in[o->value] == segment && !vpps_reads_alike(step->step, o)) return false;
        }
    }
    return true;
}

void vpps_place_copies(work *w, const vpps_segment *g) {
    w->copy_item_words = 0;
    for (uint32_t v = 0; v < w->c->n_values; v++) w->copy_at[v] = VPPS_NONE;
    for (uint32_t k = 0; k < g->n && g->kind == VPPS_SEGMENT_PRODUCTS && !w->g->plan->parts; k++) {
        const vpps_program_step *x = w->s.steps[g->first + k].step;
        for (uint32_t i = 0; i < x->n && !is_short(w, w->s.steps[g->first + k].value); i++) {
            const vpps_operand *a = vpps_operand_of(&w->s, x, i);
            if (w->copy_at[a->value] != VPPS_NONE || !has_quads(w, a->value)) continue;
            if (resident_of(w, x, a->matrix)->level != VPPS_RESIDENT_SHARED) continue;
            w->copy_at[a->value] = w->copy_item_words;
            w->copy_item_words += length_of(w, a->value);
        }
    }
    w->copy_buffers = w->copy_item_words ? vpps_min_u32(2, w->copy_words / (VPPS_COPY_ITEMS * w->copy_item_words)) : 0;
    if (!w->copy_buffers) w->copy_item_words = 0;
}

bool vpps_put_products(work *w, const vpps_segment *g, bool joined) {
    vpps_place_copies(w, g);
    fprintf(w->out, "vpps_chunks<%u>(n%u, [&](unsigned first_item, unsigned n) {\n", is_whole_tile(w) ? 0 : w->chunk,
            g->axis);
    if (!(w->g->plan->parts ? put_all_tiles(w, g) : put_all_passes(w, g))) return false;
    if (w->item_words[g - w->s.list] && !joined) fprintf(w->out, "__syncthreads();\n");
    if (!joined) put_sums(w, g);
    fprintf(w->out, "(void)first_item, (void)n;\n});\n");
    return true;
}

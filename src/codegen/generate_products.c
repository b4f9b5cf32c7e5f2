/* generate_products.c - products of a stage whose rows are dealt to VPs. See resident.h for where weights lie. */
#include "codegen/generate_stage.h"

typedef vpps_stage_work work;

static inline const vpps_cell_arg *vpps_stage_arg(const work *w, const vpps_cell_value *x, uint32_t i) {
    return &w->c->args[x->first_arg + i];
}

/* A thread's output: row block + row * blocks of those that the VP owns, of one of the segment's products. */
typedef struct output {
    uint32_t value, row;
} output;

/* Outputs that are made at once: their threads share out rows alike. */
typedef struct pass {
    const output *outputs;
    uint32_t n, blocks, at, item_words; /* where their sums begin among an item's */
} pass;

static const vpps_resident *resident_of(const work *w, const vpps_cell_value *x, vpps_param matrix) {
    return vpps_resident_of(&w->g->plan->residents, matrix, x->kind == VPPS_VALUE_PRODUCT_T);
}

static uint32_t blocks_of(const work *w, uint32_t v) {
    return vpps_blocks_of_rows(vpps_segment_width(&w->s, v), vpps_stage_value(w, v)->kind == VPPS_VALUE_PRODUCT_T,
                               w->g->plan->threads);
}

static uint32_t rows_of_thread(const work *w, uint32_t v) {
    const uint32_t blocks = blocks_of(w, v);
    return (vpps_segment_width(&w->s, v) + blocks - 1) / blocks;
}

static uint32_t warps_of(const work *w) { return w->g->plan->threads / 32; }

/* Words of a row's sums of all warps, side by side so that a thread loads four at once. The gap spreads them over banks. */
static uint32_t part_stride(const work *w) {
    const uint32_t warps = warps_of(w);
    return warps < 4 ? warps : warps == 4 ? 4 : vpps_quads_up(warps) + 4;
}

/* Does a value of the item begin at a multiple of four words, and end at one? Records and vectors of 16 words and more do, and entries
 * of tables whose entries are such multiples. */
static bool has_quads(const work *w, uint32_t v) {
    return !vpps_in_slot(w, v) && vpps_has_quads(vpps_stage_value(w, v));
}

/* Are the words of an operand brought near? */
static bool is_near(const work *w, uint32_t operand) { return w->near_item && w->near[operand] != VPPS_NONE; }

/* An operand of a pass, in as many rounds as a thread has runs of columns. m: of the matrices that the pass multiplies it with, which
 * have all one layout; NULL: there is none. looped: by a loop over rounds, as all are in shared memory; straight-line code
 * would begin with all loads at once, in registers that there are not. */
typedef struct columns {
    uint32_t operand, rounds;
    const vpps_resident *m;
    bool looped;
} columns;

static columns columns_of(const work *w, const pass *p, uint32_t operand) {
    columns c = {.operand = operand, .looped = true};
    for (uint32_t o = 0; o < p->n; o++) {
        const vpps_cell_value *x = vpps_stage_value(w, p->outputs[o].value);
        for (uint32_t k = 0; k < x->n_args; k++) {
            const vpps_cell_arg *a = vpps_stage_arg(w, x, k);
            if (a->matrix == VPPS_NO_PARAM || a->value != operand) continue;
            c.m = resident_of(w, x, a->matrix);
            c.looped &= c.m->level == VPPS_RESIDENT_SHARED;
        }
    }
    c.rounds = c.m ? c.m->columns / c.m->run : 0;
    c.looped &= c.rounds > 1;
    return c;
}

/* y<operand>[round][item]: the thread's columns. */
static void declare_columns(const work *w, const columns *c, uint32_t rounds, uint32_t vectors) {
    fprintf(w->out, "%s y%u[%u][%u];\n", vpps_run_type(c->m->run), c->operand, rounds, vectors);
}

/* Those of one round, of the items at x0, x1 and so on, to y<operand>[to]. */
static void load_round(const work *w, const pass *p, const columns *c, const char *round, uint32_t to, bool whole,
                       uint32_t vectors) {
    const uint32_t run = c->m->run;
    const char *const type = vpps_run_type(run);
    fprintf(w->out, "{\nconst unsigned from = own + %s * %uu;\n", round, w->g->plan->threads / p->blocks * run);
    if (!whole) fprintf(w->out, "const bool there = from < %u;\n", vpps_stage_value(w, c->operand)->rows);
    for (uint32_t i = 0; i < vectors; i++) {
        fprintf(w->out, "y%u[%u][%u] = ", c->operand, to, i);
        if (!whole) fprintf(w->out, "!there ? %s{0.0f} : ", type);
        if (run == 1 || has_quads(w, c->operand)) {
            fprintf(w->out, "*(const %s *)(x%u + from);\n", type, i);
            continue;
        }
        fprintf(w->out, "%s", type);
        for (uint32_t k = 0; k < run; k++) fprintf(w->out, "%sx%u[from + %u]", k ? ", " : "{", i, k);
        fprintf(w->out, "};\n");
    }
    fprintf(w->out, "}\n");
}

/* Adds a matrix's row times these columns to the output's sums. */
static void put_row_products(const work *w, const pass *p, const columns *c, uint32_t o, const vpps_resident *m,
                             const char *round, uint32_t from, uint32_t vectors) {
    const uint32_t threads = w->g->plan->threads, at = p->outputs[o].row * m->columns;
    const bool shared = m->level == VPPS_RESIDENT_SHARED;
    const char *const type = vpps_run_type(m->run);
    fprintf(w->out, "{");
    if (shared) {
        fprintf(w->out, " const %s weight = ((const %s *)(shared + %u) + threadIdx.x)[(%uu + %s) * %u];", type, type,
                m->at * threads, at / m->run, round, threads);
    }
    for (uint32_t k = 0; k < m->run; k++) {
        for (uint32_t i = 0; i < vectors; i++) {
            const char *const element = vpps_run_element(m->run, k);
            fprintf(w->out, " q[%u] += ", i * p->n + o);
            if (shared) {
                fprintf(w->out, "weight%s", element);
            } else {
                fprintf(w->out, "w[%u + %s * %u]", m->at + at + k, round, m->run);
            }
            fprintf(w->out, " * y%u[%u][%u]%s;", c->operand, from, i, element);
        }
    }
    fprintf(w->out, " }\n");
}

/* Times the rows of all matrices that the operand is multiplied with. */
static void multiply_round(const work *w, const pass *p, const columns *c, const char *round, uint32_t from,
                           uint32_t vectors) {
    for (uint32_t o = 0; o < p->n; o++) {
        const vpps_cell_value *x = vpps_stage_value(w, p->outputs[o].value);
        for (uint32_t k = 0; k < x->n_args; k++) {
            const vpps_cell_arg *a = vpps_stage_arg(w, x, k);
            if (a->matrix != VPPS_NO_PARAM && a->value == c->operand)
                put_row_products(w, p, c, o, resident_of(w, x, a->matrix), round, from, vectors);
        }
    }
}

static bool has_near(const work *w, const pass *p) {
    bool any = false;
    for (uint32_t v = 0; v < w->c->n_values && !any; v++) any = is_near(w, v) && columns_of(w, p, v).m;
    return any;
}

/* Begins to bring operands of `items` items from number `first` on to `to`. */
static void put_copies(const work *w, const pass *p, const char *first, uint32_t items, const char *to) {
    char item[64];
    snprintf(item, sizeof item, "vpps_least(%s + i / quads, n - 1)", first);
    for (uint32_t v = 0; v < w->c->n_values; v++) {
        if (!is_near(w, v) || !columns_of(w, p, v).m) continue;
        fprintf(
            w->out,
            "{\nconst unsigned quads = %u;\n#pragma unroll\nfor (unsigned k = 0; k < (%u * quads + VPPS_THREADS - 1) / "
            "VPPS_THREADS; k++) {\nconst unsigned i = k * VPPS_THREADS + threadIdx.x;\nif (i < %u * quads) "
            "vpps_copy_quad(%s + i / quads * %u + %u + i %% quads * 4, ",
            vpps_stage_value(w, v)->rows / 4, items, items, to, w->near_item, w->near[v]);
        vpps_put_pointer(w, v, item);
        fprintf(w->out, " + i %% quads * 4);\n}\n}\n");
    }
}

/* Where items from number `at` on lie, and the thread's first column. `near`: what is brought near begins with the first of them. */
static void put_pointers(const work *w, const columns *c, const char *at, uint32_t vectors, bool near) {
    fprintf(w->out, "const unsigned own = ");
    vpps_put_first_column(w->out, c->m);
    fprintf(w->out, ";\n");
    for (uint32_t i = 0; i < vectors; i++) {
        char item[64];
        fprintf(w->out, "const float *const x%u = ", i);
        if (near && is_near(w, c->operand)) {
            fprintf(w->out, "there + %u", i * w->near_item + w->near[c->operand]);
        } else {
            snprintf(item, sizeof item, "vpps_least(%s + %uu, n - 1)", at, i);
            vpps_put_pointer(w, c->operand, item);
        }
        fprintf(w->out, ";\n");
    }
}

static void load_columns(const work *w, const pass *p, const columns *c, const char *at, uint32_t vectors, bool near) {
    const uint32_t span = w->g->plan->threads / p->blocks * c->m->run, length = vpps_stage_value(w, c->operand)->rows;
    fprintf(w->out, "{\n");
    put_pointers(w, c, at, vectors, near);
    for (uint32_t k = 0; k < c->rounds; k++) {
        char round[16];
        snprintf(round, sizeof round, "%uu", k);
        load_round(w, p, c, round, k, (k + 1) * span <= length, vectors);
    }
    fprintf(w->out, "}\n");
}

static void multiply_columns(const work *w, const pass *p, const columns *c, uint32_t vectors) {
    for (uint32_t k = 0; k < c->rounds; k++) {
        char round[16];
        snprintf(round, sizeof round, "%uu", k);
        multiply_round(w, p, c, round, k, vectors);
    }
}

static void put_operand_products(const work *w, const pass *p, const columns *c, uint32_t vectors, bool near) {
    fprintf(w->out, "{\n");
    if (c->looped) {
        put_pointers(w, c, "at", vectors, near);
        fprintf(w->out, "#pragma unroll 1\nfor (unsigned round = 0; round < %u; round++) {\n", c->rounds);
        declare_columns(w, c, 1, vectors);
        load_round(w, p, c, "round", 0,
                   c->m->columns * (w->g->plan->threads / p->blocks) <= vpps_stage_value(w, c->operand)->rows, vectors);
        multiply_round(w, p, c, "round", 0, vectors);
        fprintf(w->out, "}\n");
    } else {
        declare_columns(w, c, c->rounds, vectors);
        load_columns(w, p, c, "at", vectors, near);
        multiply_columns(w, p, c, vectors);
    }
    fprintf(w->out, "}\n");
}

/* Operands of the next items are loaded before what was made of these is summed up, where registers hold them. */
static bool can_load_ahead(const work *w, const pass *p, uint32_t vectors) {
    enum { MOST = 64, BESIDE = 136 }; /* words of operands; those and weights */
    uint32_t words = 0;
    bool looped = false;
    for (uint32_t v = 0; v < w->c->n_values; v++) {
        const columns c = columns_of(w, p, v);
        looped |= c.m && c.looped;
        if (c.m) words += c.m->columns * vectors;
    }
    return !looped && words <= MOST && words + w->g->plan->residents.registers <= BESIDE;
}

static void load_all_columns(const work *w, const pass *p, const char *at, uint32_t vectors) {
    for (uint32_t v = 0; v < w->c->n_values; v++) {
        const columns c = columns_of(w, p, v);
        if (c.m) load_columns(w, p, &c, at, vectors, false);
    }
}

/* The outputs of `vectors` items from number `at` on: the sums of each warp's columns. Each of so many holders among a block's lanes
 * is left with some of them, `each` lanes with the same ones. `ahead`: their operands
 * are loaded, and those of the next items are loaded here. */
static void put_vectors(const work *w, const pass *p, uint32_t vectors, bool near, bool ahead) {
    const uint32_t lanes = vpps_lanes_of_block(p->blocks), n = vectors * p->n;
    uint32_t holders = 1;
    while (holders < n && holders < lanes) holders *= 2;
    const uint32_t has = (n + holders - 1) / holders, folded = holders * has, each = lanes / holders;
    const bool whole_items = p->n && has % p->n == 0;
    fprintf(w->out, "float q[%u];\n#pragma unroll\nfor (int k = 0; k < %u; k++) q[k] = 0.0f;\n", folded, folded);
    for (uint32_t v = 0; v < w->c->n_values; v++) {
        const columns c = columns_of(w, p, v);
        if (c.m && ahead) multiply_columns(w, p, &c, vectors);
        if (c.m && !ahead) put_operand_products(w, p, &c, vectors, near);
    }
    if (ahead) {
        char next[32];
        snprintf(next, sizeof next, "at + %u", vectors);
        fprintf(w->out, "if (%s < n) {\n", next);
        load_all_columns(w, p, next, vectors);
        fprintf(w->out, "}\n");
    }
    fprintf(w->out, "vpps_fold<%u, %u>(q);\n", folded, lanes);
    if (each > 1) fprintf(w->out, "if (VPPS_LANE %% %u == 0) {\n", each);
    fprintf(w->out, "const unsigned place = VPPS_LANE %% %u / %u;\n", lanes, each);
    for (uint32_t k = 0; k < has; k++) {
        fprintf(w->out, "{ const unsigned k = place * %u + %u, ", has, k);
        if (whole_items) {
            fprintf(w->out, "item = place * %u + %u, output = %u;\n", has / p->n, k / p->n, k % p->n);
        } else if (vectors == 2) {
            fprintf(w->out, "item = k >= %u, output = item ? k - %u : k;\n", p->n, p->n);
        } else {
            fprintf(w->out, "item = k / %u, output = k %% %u;\n", p->n, p->n);
        }
        fprintf(w->out,
                "if (k < %u && at + item < n) part[(at + item) * %u + %u + (output * %u + VPPS_LANE / %u) * %u + "
                "VPPS_WARP] = q[%u]; }\n",
                n, p->item_words, p->at, p->blocks, lanes, part_stride(w), k);
    }
    if (each > 1) fprintf(w->out, "}\n");
}

/* Element e of the VP's rows of product v, of its sum, which is without what it starts from. */
static void put_finished(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    fprintf(w->out, "const float v%u = sum%u", v, v);
    if (vpps_bias_of(x) != VPPS_NO_PARAM)
        fprintf(w->out, " + shared[%uu + e]", vpps_resident_vector_of(&w->g->plan->residents, x->bias)->at);
    for (uint32_t i = 0; i < x->n_args; i++) {
        const uint32_t u = vpps_stage_arg(w, x, i)->value;
        if (vpps_stage_arg(w, x, i)->matrix != VPPS_NO_PARAM) continue;
        fprintf(w->out, " + ");
        vpps_put_element(w, u, "item", "e", "element");
    }
    fprintf(w->out, ";\n");
}

/* The outputs of the only items: one, or up to two. */
static void put_few(const work *w, const pass *p, uint32_t vectors) {
    const bool near = has_near(w, p);
    fprintf(w->out, "const unsigned at = 0;\n");
    if (near) {
        put_copies(w, p, "0u", vectors, "near");
        fprintf(w->out, "vpps_wait_for_copies();\n__syncthreads();\nconst float *const there = near;\n");
    }
    put_vectors(w, p, vectors, near, false);
}

/* The outputs of `vectors` items at a time, of n. Their operands are brought near while those before are multiplied, if there is room
 * for that. */
static void put_several(const work *w, const pass *p, uint32_t vectors) {
    if (!has_near(w, p)) {
        const bool ahead = can_load_ahead(w, p, vectors);
        for (uint32_t v = 0; v < w->c->n_values && ahead; v++) {
            const columns c = columns_of(w, p, v);
            if (c.m) declare_columns(w, &c, c.rounds, vectors);
        }
        if (ahead) load_all_columns(w, p, "0u", vectors);
        fprintf(w->out, "#pragma unroll 1\nfor (unsigned at = 0; at < n; at += %u) {\n", vectors);
        put_vectors(w, p, vectors, false, ahead);
        fprintf(w->out, "}\n");
        return;
    }
    fprintf(w->out, "#pragma unroll 1\n");
    if (w->near_turns > 1) {
        const uint32_t words = VPPS_NEAR_ITEMS * w->near_item;
        fprintf(w->out,
                "for (unsigned coming = 0; coming < n + %d; coming += %d) {\nif (coming) {\nvpps_wait_for_copies();\n"
                "__syncthreads();\n}\nif (coming < n) {\nfloat *const to = near + coming / %d %% %u * %u;\n",
                VPPS_NEAR_ITEMS, VPPS_NEAR_ITEMS, VPPS_NEAR_ITEMS, w->near_turns, words);
        put_copies(w, p, "coming", VPPS_NEAR_ITEMS, "to");
        fprintf(
            w->out,
            "}\nif (!coming) continue;\nconst unsigned first = coming - %d;\nconst float *const begin = near + first "
            "/ %d %% %u * %u;\n",
            VPPS_NEAR_ITEMS, VPPS_NEAR_ITEMS, w->near_turns, words);
    } else {
        fprintf(w->out, "for (unsigned first = 0; first < n; first += %d) {\nif (first) __syncthreads();\n",
                VPPS_NEAR_ITEMS);
        put_copies(w, p, "first", VPPS_NEAR_ITEMS, "near");
        fprintf(w->out, "vpps_wait_for_copies();\n__syncthreads();\nconst float *const begin = near;\n");
    }
    if (vectors == VPPS_NEAR_ITEMS) {
        fprintf(w->out, "{\nconst unsigned at = first;\n");
    } else {
        fprintf(w->out, "#pragma unroll 1\nfor (unsigned at = first; at < vpps_least(first + %d, n); at += %u) {\n",
                VPPS_NEAR_ITEMS, vectors);
    }
    fprintf(w->out, "const float *const there = begin + (at - first) * %u;\n", w->near_item);
    put_vectors(w, p, vectors, true, false);
    fprintf(w->out, "}\n}\n");
}

/* Several vectors at a time, and one or two alone without work for others. */
static void put_pass(const work *w, const pass *p) {
    enum { MOST = 32 };
    const uint32_t vectors = p->n > MOST / 2 ? 1 : p->n > MOST / VPPS_NEAR_ITEMS ? 2 : VPPS_NEAR_ITEMS;
    if (has_near(w, p) && p->at) fprintf(w->out, "__syncthreads();\n"); /* what is near is not read any more */
    if (vectors > 1) {
        const uint32_t few = vectors / 2;
        fprintf(w->out, "if (n <= %u) {\n", few);
        put_few(w, p, few);
        fprintf(w->out, "} else {\n");
    }
    put_several(w, p, vectors);
    if (vectors > 1) fprintf(w->out, "}\n");
}

/* Its matrices are read from memory, by warps or, where it is short, by threads. */
static bool is_streamed(const work *w, uint32_t v) { return w->streamed[v]; }

static bool is_short(const work *w, uint32_t v) {
    return !w->g->plan->parts && vpps_product_is_short(w->c, vpps_stage_value(w, v));
}

static bool has_streamed_matrix(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_param matrix = vpps_stage_arg(w, x, k)->matrix;
        if (matrix != VPPS_NO_PARAM && resident_of(w, x, matrix)->level == VPPS_RESIDENT_STREAM) return true;
    }
    return false;
}

static const vpps_fragment *fragment_of(const work *w, const vpps_product_tile *tile, uint32_t operand,
                                        uint32_t which) {
    vpps_fragment weights;
    if (!vpps_fragment_of(w->c, tile, operand, which, w->g->plan->threads, &weights)) return NULL;
    return vpps_resident_fragment(&w->g->plan->residents, &weights);
}

static bool has_streamed_fragment(const work *w, const vpps_product_tile *tile) {
    const vpps_fragment *f;
    for (uint32_t v = 0; v < w->c->n_values; v++)
        for (uint32_t k = 0; (f = fragment_of(w, tile, v, k)) != NULL; k++)
            if (f->level == VPPS_RESIDENT_STREAM) return true;
    return false;
}

/* The segment's tiles with a product whose weights stay close, the caller's to be freed. NULL: out of memory. */
static vpps_product_tile *list_tiles(const work *w, const vpps_segment *g, uint32_t *n) {
    uint32_t all;
    vpps_product_tile *tiles = vpps_tile_products(&w->s, g, &all);
    *n = 0;
    for (uint32_t t = 0; tiles && t < all; t++) {
        bool any = false;
        for (uint32_t i = 0; i < VPPS_FRAGMENT_ROWS && !any; i++)
            any = tiles[t].rows[i].value != VPPS_NONE && !is_streamed(w, tiles[t].rows[i].value);
        if (any) tiles[(*n)++] = tiles[t];
    }
    return tiles;
}

static bool place_tiles(const work *w, const vpps_segment *g) {
    const uint32_t stride = part_stride(w);
    uint32_t n;
    vpps_product_tile *tiles = vpps_tile_products(&w->s, g, &n);
    for (uint32_t t = 0; tiles && t < n; t++)
        for (uint32_t i = 0; i < VPPS_FRAGMENT_ROWS && has_streamed_fragment(w, &tiles[t]); i++)
            if (tiles[t].rows[i].value != VPPS_NONE) w->streamed[tiles[t].rows[i].value] = 1;
    free(tiles);
    tiles = list_tiles(w, g, &n);
    if (!tiles) return false;
    for (uint32_t k = 0; k < n * VPPS_FRAGMENT_ROWS; k++) {
        const vpps_product_row *row = &tiles[k / VPPS_FRAGMENT_ROWS].rows[k % VPPS_FRAGMENT_ROWS];
        if (row->value != VPPS_NONE && !row->row) w->part_at[row->value] = k * stride;
    }
    w->item_words[g - w->s.list] = n * VPPS_FRAGMENT_ROWS * stride;
    free(tiles);
    return true;
}

bool vpps_place_products(const work *w) {
    for (uint32_t i = 0; i < w->s.n; i++) {
        const vpps_segment *g = &w->s.list[i];
        w->item_words[i] = 0;
        if (g->kind != VPPS_SEGMENT_PRODUCTS) continue;
        if (w->g->plan->parts) {
            if (!place_tiles(w, g)) return false;
            continue;
        }
        for (uint32_t k = 0; k < g->n; k++) {
            const uint32_t v = w->s.steps[g->first + k].value;
            w->streamed[v] = is_short(w, v) || has_streamed_matrix(w, v);
        }
        for (uint32_t blocks = w->g->plan->threads / 32; blocks; blocks--) {
            for (uint32_t k = 0; k < g->n; k++) {
                const uint32_t v = w->s.steps[g->first + k].value;
                if (is_streamed(w, v) || blocks_of(w, v) != blocks) continue;
                w->part_at[v] = w->item_words[i];
                w->item_words[i] += rows_of_thread(w, v) * blocks * part_stride(w);
            }
            w->item_words[i] = vpps_quads_up(w->item_words[i]); /* where four sums begin at a quad */
        }
    }
    return true;
}

/* ---------------------------------------------------------------- products in bf16 */

/* Is what is read of the value its parts in bf16? */
static bool in_parts(const work *w, uint32_t v) { return !vpps_in_slot(w, v) && vpps_is_kept_in_parts(w->g, w->c, v); }

/* What the tiles' products make of one operand of 16 items. */
static void put_operand_tiles(const work *w, const vpps_product_tile *tiles, uint32_t n, uint32_t operand) {
    const uint32_t length = vpps_stage_value(w, operand)->rows, threads = w->g->plan->threads,
                   parts = w->g->plan->parts;
    const vpps_fragment *f = NULL;
    for (uint32_t t = 0; t < n && !f; t++) f = fragment_of(w, &tiles[t], operand, 0);
    if (!f) return;
    const uint32_t elements = f->steps * VPPS_FRAGMENT_DEPTH, steps = f->steps;
    if (elements * (threads / 32 - 1) < length) {
        fprintf(w->out, "{\n");
    } else {
        fprintf(w->out, "if (VPPS_WARP * %u < %u) {\n", elements, length);
    }
    fprintf(w->out, "const float *const x0 = ");
    vpps_put_pointer(w, operand, "vpps_least(at + VPPS_LANE / 4, n - 1)");
    fprintf(w->out, ", *const x1 = ");
    vpps_put_pointer(w, operand, "vpps_least(at + 8 + VPPS_LANE / 4, n - 1)");
    fprintf(w->out, ";\n");
    for (uint32_t s = 0; s < steps; s++) {
        fprintf(w->out,
                "{ const vpps_words x = vpps_take<%s, %s, %s, %u>(x0, x1, VPPS_WARP * %u + VPPS_LANE %% 4 * 4 + "
                "%u);\n",
                in_parts(w, operand) ? "true" : "false", has_quads(w, operand) ? "true" : "false",
                elements * (threads / 32) <= length ? "true" : "false", length, elements, s * VPPS_FRAGMENT_DEPTH);
        for (uint32_t t = 0; t < n; t++) {
            for (uint32_t k = 0; (f = fragment_of(w, &tiles[t], operand, k)) != NULL; k++) {
                const uint32_t words = 2 * parts;
                fprintf(w->out, "{ ");
                if (f->level == VPPS_RESIDENT_SHARED) {
                    const char *const type = vpps_run_type(words);
                    fprintf(w->out, "const %s weights = ((const %s *)(shared + %u) + threadIdx.x)[%u];\n", type, type,
                            f->at * threads, s * threads);
                }
                fprintf(w->out, "const unsigned b[%u] = {", words);
                for (uint32_t i = 0; i < words; i++) {
                    fprintf(w->out, "%s__float_as_uint(", i ? ", " : "");
                    if (f->level == VPPS_RESIDENT_REGISTERS) {
                        fprintf(w->out, "w[%u])", f->at + s * words + i);
                    } else {
                        fprintf(w->out, "weights%s)", vpps_run_element(words, i));
                    }
                }
                fprintf(w->out, "};\nvpps_add_products(sums[%u], x, b); }\n", t);
            }
        }
        fprintf(w->out, "}\n");
    }
    fprintf(w->out, "}\n");
}

/* Some tiles, the first of them number `first`: 16 items at a time, the sums of each warp's elements. */
static void put_tiles(const work *w, const vpps_product_tile *tiles, uint32_t n, uint32_t first, uint32_t item_words) {
    const uint32_t stride = part_stride(w);
    fprintf(
        w->out,
        "#pragma unroll 1\nfor (unsigned at = 0; at < n; at += 16) {\nfloat sums[%u][4];\n#pragma unroll\nfor (int k = "
        "0; k < %u; k++) sums[k / 4][k %% 4] = 0.0f;\n",
        n, 4 * n);
    for (uint32_t v = 0; v < w->c->n_values; v++) put_operand_tiles(w, tiles, n, v);
    for (uint32_t half = 0; half < 2; half++) {
        fprintf(w->out,
                "if (at + %u + VPPS_LANE / 4 < n) {\nfloat *const to = part + (at + %u + VPPS_LANE / 4) * %u + (%u + "
                "VPPS_LANE %% 4 * 2) * %u + VPPS_WARP;\n",
                8 * half, 8 * half, item_words, first * VPPS_FRAGMENT_ROWS, stride);
        for (uint32_t t = 0; t < n; t++)
            for (uint32_t i = 0; i < 2; i++)
                fprintf(w->out, "to[%u] = sums[%u][%u];\n", (t * VPPS_FRAGMENT_ROWS + i) * stride, t, 2 * half + i);
        fprintf(w->out, "}\n");
    }
    fprintf(w->out, "}\n");
}

static bool put_all_tiles(const work *w, const vpps_segment *g) {
    enum { MOST = 8 };
    uint32_t n;
    vpps_product_tile *tiles = list_tiles(w, g, &n);
    if (!tiles) return false;
    for (uint32_t first = 0; first < n; first += MOST)
        put_tiles(w, tiles + first, vpps_min_u32(n - first, MOST), first, w->item_words[g - w->s.list]);
    free(tiles);
    return true;
}

/* The outputs whose threads share out rows in so many blocks, of products whose matrices stay close. */
static void put_passes(const work *w, const vpps_segment *g, uint32_t blocks, output *outputs) {
    enum { MOST = 32 };
    uint32_t all = 0, at = VPPS_NONE;
    for (uint32_t k = 0; k < g->n; k++) {
        const uint32_t v = w->s.steps[g->first + k].value;
        if (is_streamed(w, v) || blocks_of(w, v) != blocks) continue;
        if (!all) at = w->part_at[v];
        for (uint32_t r = 0; r < rows_of_thread(w, v); r++) outputs[all++] = (output){v, r};
    }
    for (uint32_t first = 0; first < all; first += MOST) {
        const pass p = {outputs + first, vpps_min_u32(all - first, MOST), blocks, at + first * blocks * part_stride(w),
                        w->item_words[g - w->s.list]};
        put_pass(w, &p);
    }
}

static bool put_all_passes(const work *w, const vpps_segment *g) {
    uint32_t all = 0;
    for (uint32_t k = 0; k < g->n; k++) all += rows_of_thread(w, w->s.steps[g->first + k].value);
    output *outputs = calloc(all + 1u, sizeof *outputs);
    if (!outputs) return false;
    for (uint32_t blocks = w->g->plan->threads / 32; blocks; blocks--) put_passes(w, g, blocks, outputs);
    free(outputs);
    return true;
}

/* ---------------------------------------------------------------- finishing products */

/* Product v's element e of an item: the warps' sums. */
static void put_sum(const work *w, uint32_t v, const vpps_segment *products) {
    fprintf(w->out, "const float sum%u = vpps_sum_of_warps<%u>((part + (item - first_item) * %u + e * %u) + %u);\n", v,
            warps_of(w), w->item_words[products - w->s.list], part_stride(w), w->part_at[v]);
}

/* Opens a block with x, an operand's item, and m, row `el` of the matrix that it is multiplied with. Words from one of the row's
 * elements to the next. */
static uint32_t open_matrix_row(const work *w, const vpps_cell_value *product, const vpps_cell_arg *a) {
    const bool transposed = product->kind == VPPS_VALUE_PRODUCT_T;
    const uint32_t cols = w->g->model->params[a->matrix].cols;
    fprintf(w->out, "{ const float *const x = ");
    vpps_put_pointer(w, a->value, "item");
    fprintf(w->out, ", *const m = (const float *)a.matrices + %uu + element * %uu;\n", w->g->matrix_at[a->matrix],
            transposed ? 1 : cols);
    return transposed ? cols : 1;
}

/* Element `el` of a short product. */
static void put_short_sum(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    fprintf(w->out, "float sum%u = 0.0f;\n", v);
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = vpps_stage_arg(w, x, k);
        if (a->matrix == VPPS_NO_PARAM) continue;
        const uint32_t words = open_matrix_row(w, x, a);
        fprintf(w->out, "#pragma unroll\nfor (unsigned k = 0; k < %u; k++) sum%u += m[k * %uu] * x[k]; }\n",
                vpps_stage_value(w, a->value)->rows, v, words);
    }
}

/* Opens the loop of threads or warps, from `first` on, over all items' rows that the VP owns. Two braces close it. */
static void open_rows(const work *w, uint32_t rows, const char *first, const char *step) {
    fprintf(
        w->out,
        "{\nconst unsigned width = r%u.end - r%u.first;\n#pragma unroll 1\nfor (unsigned i = %s; i < n * width; i += "
        "%s) {\nconst unsigned item = first_item + i / width, e = i %% width, element = r%u.first + e;\n",
        rows, rows, first, step, rows);
}

/* A thread an element. */
static void put_short(const work *w, uint32_t v) {
    open_rows(w, vpps_stage_value(w, v)->rows, "threadIdx.x", "VPPS_THREADS");
    put_short_sum(w, v);
    put_finished(w, v);
    vpps_store_finished(w, v);
    fprintf(w->out, "}\n}\n");
}

void vpps_put_joined(const work *w, const vpps_segment *products) {
    fprintf(w->out, "const unsigned first_item = 0;\n");
    for (uint32_t k = 0; k < products->n; k++) {
        const uint32_t v = w->s.steps[products->first + k].value;
        if (is_short(w, v)) {
            put_short_sum(w, v);
        } else {
            put_sum(w, v, products);
        }
        put_finished(w, v);
    }
}

/* The warps' sums: a thread finishes all of an item's rows with the same number. */
static void put_sums(const work *w, const vpps_segment *g) {
    for (uint32_t i = 0; i < g->n; i++) {
        const uint32_t first = w->s.steps[g->first + i].value, rows = vpps_stage_value(w, first)->rows,
                       width = vpps_segment_width(&w->s, first);
        bool seen = is_streamed(w, first);
        for (uint32_t k = 0; k < i && !seen; k++) {
            const uint32_t v = w->s.steps[g->first + k].value;
            seen = vpps_stage_value(w, v)->rows == rows && !is_streamed(w, v);
        }
        if (seen) continue;
        fprintf(w->out, "#pragma unroll 1\nfor (unsigned i = threadIdx.x; i < n * %uu; i += VPPS_THREADS) {\n", width);
        fprintf(w->out,
                "const unsigned item = first_item + i / %uu, e = i %% %uu;\nif (e < r%u.end - r%u.first) {\nconst "
                "unsigned element = r%u.first + e;\n",
                width, width, rows, rows, rows);
        for (uint32_t k = i; k < g->n; k++) {
            const uint32_t v = w->s.steps[g->first + k].value;
            if (vpps_stage_value(w, v)->rows != rows || is_streamed(w, v)) continue;
            put_sum(w, v, g);
            put_finished(w, v);
            vpps_store_finished(w, v);
        }
        fprintf(w->out, "}\n}\n");
    }
}

/* A warp a row. */
static void put_streamed(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    open_rows(w, x->rows, "VPPS_WARP", "VPPS_WARPS");
    fprintf(w->out, "float sum = 0.0f;\n");
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = vpps_stage_arg(w, x, k);
        if (a->matrix == VPPS_NO_PARAM) continue;
        const uint32_t words = open_matrix_row(w, x, a);
        fprintf(w->out,
                "for (unsigned k = VPPS_LANE; k < %u; k += 32) sum = vpps_multiply_add(m[k * %uu], %s(x[k]), sum); }\n",
                vpps_stage_value(w, a->value)->rows, words, in_parts(w, a->value) ? "vpps_whole_of" : "");
    }
    fprintf(w->out, "const float sum%u = vpps_warp_sum(sum);\nif (VPPS_LANE != 0) continue;\n", v);
    put_finished(w, v);
    vpps_store_finished(w, v);
    fprintf(w->out, "}\n}\n");
}

/* All items of a tile at once? */
static bool is_whole_tile(const work *w) { return !w->c->n_lists && w->chunk >= w->tile; }

bool vpps_can_join(const work *w, uint32_t segment) {
    const vpps_segment *g = &w->s.list[segment], *next = g + 1;
    if (g->kind != VPPS_SEGMENT_PRODUCTS || segment + 1 >= w->s.n || next->kind != VPPS_SEGMENT_ELEMENTS ||
        !next->dealt || next->axis || g->axis || !is_whole_tile(w)) {
        return false;
    }
    const uint32_t rows = vpps_stage_value(w, w->s.steps[next->first].value)->rows;
    for (uint32_t k = 0; k < g->n; k++) {
        const uint32_t v = w->s.steps[g->first + k].value;
        if (vpps_stage_value(w, v)->rows != rows || (is_streamed(w, v) && !is_short(w, v))) return false;
    }
    for (uint32_t k = 0; k < next->n; k++) {
        const vpps_segment_step *step = &w->s.steps[next->first + k];
        for (uint32_t i = 0; step->kind == VPPS_SEGMENT_MAKE && i < step->step->n; i++) {
            const vpps_operand *o = vpps_step_operand(w, step->step, i);
            if (w->s.made_in[o->value] == segment && !vpps_reads_alike(step->step, o)) return false;
        }
    }
    return true;
}

void vpps_place_near(work *w, const vpps_segment *g) {
    w->near_item = 0;
    for (uint32_t v = 0; v < w->c->n_values; v++) w->near[v] = VPPS_NONE;
    for (uint32_t k = 0; k < g->n && g->kind == VPPS_SEGMENT_PRODUCTS && !w->g->plan->parts; k++) {
        const vpps_cell_value *x = vpps_stage_value(w, w->s.steps[g->first + k].value);
        for (uint32_t i = 0; i < x->n_args && !is_streamed(w, w->s.steps[g->first + k].value); i++) {
            const vpps_cell_arg *a = vpps_stage_arg(w, x, i);
            if (a->matrix == VPPS_NO_PARAM || w->near[a->value] != VPPS_NONE || !has_quads(w, a->value)) continue;
            if (resident_of(w, x, a->matrix)->level != VPPS_RESIDENT_SHARED) continue;
            w->near[a->value] = w->near_item;
            w->near_item += vpps_stage_value(w, a->value)->rows;
        }
    }
    w->near_turns = w->near_item ? vpps_min_u32(2, w->near_words / (VPPS_NEAR_ITEMS * w->near_item)) : 0;
    if (!w->near_turns) w->near_item = 0;
}

bool vpps_put_products(work *w, const vpps_segment *g, bool joined) {
    const bool whole = is_whole_tile(w);
    vpps_place_near(w, g);
    if (whole) {
        fprintf(w->out, "{\nconst unsigned first_item = 0, n = n%u;\n", g->axis);
    } else {
        fprintf(w->out, "#pragma unroll 1\nfor (unsigned first_item = 0; first_item < n%u; first_item += %u) {\n",
                g->axis, w->chunk);
        fprintf(w->out, "const unsigned n = vpps_least(n%u - first_item, %u);\n", g->axis, w->chunk);
    }
    fprintf(w->out, "{\nconst unsigned before = f%u;\nconst unsigned f%u = before + first_item;\n(void)f%u;\n", g->axis,
            g->axis, g->axis);
    if (!(w->g->plan->parts ? put_all_tiles(w, g) : put_all_passes(w, g))) return false;
    fprintf(w->out, "}\n");
    for (uint32_t k = 0; k < g->n; k++) {
        const uint32_t v = w->s.steps[g->first + k].value;
        if (is_streamed(w, v) && !is_short(w, v)) put_streamed(w, v);
        if (is_short(w, v) && !joined) put_short(w, v);
    }
    if (w->item_words[g - w->s.list] && !joined) {
        fprintf(w->out, "__syncthreads();\n");
        put_sums(w, g);
    }
    if (!whole) fprintf(w->out, "__syncthreads();\n");
    fprintf(w->out, "}\n");
    return true;
}

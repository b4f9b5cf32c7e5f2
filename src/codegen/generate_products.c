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

static uint32_t sum_words(const work *w) { return vpps_sum_words(w->g->plan->threads); }

/* Does a value of the item begin at a multiple of four words, and end at one? Records and vectors of 16 words and more do, and entries
 * of tables whose entries are such multiples. */
static bool has_quads(const work *w, uint32_t v) {
    return !vpps_in_slot(w, v) && vpps_has_quads(vpps_stage_value(w, v));
}

/* Writes what an operand of a pass is multiplied with: a product's outputs are rows that lie one after the other. Returns one of the
 * matrices, which lie all alike; NULL: there are none. */
static const vpps_resident *put_matrices(const work *w, const pass *p, uint32_t operand, bool write) {
    const vpps_resident *m = NULL;
    for (uint32_t o = 0, rows; o < p->n; o += rows) {
        const vpps_cell_value *x = vpps_stage_value(w, p->outputs[o].value);
        for (rows = 1; o + rows < p->n && p->outputs[o + rows].value == p->outputs[o].value;) rows++;
        for (uint32_t k = 0; k < x->n_args; k++) {
            const vpps_cell_arg *a = vpps_stage_arg(w, x, k);
            if (a->matrix == VPPS_NO_PARAM || a->value != operand) continue;
            m = resident_of(w, x, a->matrix);
            if (write)
                fprintf(w->out, ", vpps_matrix_part<%u, %u, %u, %s>", o, rows, m->at + p->outputs[o].row * m->columns,
                        m->level == VPPS_RESIDENT_SHARED ? "true" : "false");
        }
    }
    return m;
}

/* Several outputs of all items: see products.cuh. */
static void put_pass(const work *w, const pass *p) {
    fprintf(w->out, "vpps_pass<%u, %u, %u, %u, %u, %u>{{w, shared, threadIdx.x}, part, near, n}.run(", p->n, p->blocks,
            p->at, p->item_words, w->near_item, w->near_turns);
    const char *between = "";
    for (uint32_t v = 0; v < w->c->n_values; v++) {
        const vpps_resident *m = put_matrices(w, p, v, false);
        if (!m) continue;
        fprintf(w->out, "%s\nvpps_operand_at<%u, %u, %u, %u, %s, ", between, vpps_stage_value(w, v)->rows, m->run,
                m->columns / m->run, w->g->plan->threads / p->blocks * m->run, has_quads(w, v) ? "true" : "false");
        if (w->near_item && w->near[v] != VPPS_NONE) {
            fprintf(w->out, "%u", w->near[v]);
        } else {
            fprintf(w->out, "VPPS_NONE");
        }
        put_matrices(w, p, v, true);
        fprintf(w->out, ">([&](unsigned item) { return ");
        vpps_put_pointer(w, v, "item");
        fprintf(w->out, "; })");
        between = ",";
    }
    fprintf(w->out, ");\n");
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
    const uint32_t stride = sum_words(w);
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
                w->item_words[i] += rows_of_thread(w, v) * blocks * sum_words(w);
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
    const uint32_t stride = sum_words(w);
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
        const pass p = {outputs + first, vpps_min_u32(all - first, MOST), blocks, at + first * blocks * sum_words(w),
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
            w->g->plan->threads / 32, w->item_words[products - w->s.list], sum_words(w), w->part_at[v]);
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

/* generate.c - see generate.h. */
#include "codegen/generate.h"
#include "codegen/formulas.h"
#include "codegen/generate_work.h"
#include "script/header.h"
#include "script/task.h"

/* The embedded files, in the order in which the kernel's text has them; see templates.S. */
#define TEMPLATES_BEFORE(X) X(failure) X(arguments) X(task_header) X(math) X(functions) X(steps)
#define TEMPLATES_AFTER(X) X(device) X(common) X(mma) X(whole) X(products) X(stage) X(parameters) X(outer) X(packing)
#define X(name) extern const char vpps_template_##name[];
TEMPLATES_BEFORE(X)
TEMPLATES_AFTER(X)
X(loop)
#undef X

_Static_assert(VPPS_CELL_LISTS == VPPS_COUNT(((vpps_block *)NULL)->members), "members of every list");
_Static_assert(VPPS_AXES == VPPS_COUNT(((vpps_block *)NULL)->kept), "kept values of every axis");

void vpps_generate_name(FILE *out, const char *name) {
    for (; *name; name++) fputc(*name == '*' ? '_' : *name, out);
}

/* A comment that names a parameter. */
static void put_parameter_name(FILE *out, const vpps_parameter_data *p, bool transposed) {
    fputs("/* ", out);
    vpps_generate_name(out, p->name);
    fputs(transposed ? ", transposed */" : " */", out);
}

/* ---------------------------------------------------------------- blocks */

void vpps_generate_view(FILE *out, const vpps_compiled_cell *c, const char *block) {
    fprintf(out, "VPPS_VIEW(%s);\n", block);
    for (uint32_t d = 0; d <= c->n_lists; d++) fprintf(out, "const unsigned k%u = b->kept[%u];\n(void)k%u;\n", d, d, d);
    for (uint32_t i = 0; i < c->n_inputs; i++)
        if (!c->input_axis[i]) fprintf(out, "VPPS_ARRAY(in%u, b->n);\n", i);
    for (uint32_t i = 0; i < c->n_lookups; i++) fprintf(out, "VPPS_ARRAY(lk%u, b->n);\n", i);
    for (uint32_t i = 0; i < c->n_words; i++) fprintf(out, "VPPS_ARRAY(wd%u, b->n);\n", i);
    if (c->is_data) fprintf(out, "VPPS_ARRAY(data, b->n);\n");
    for (uint32_t d = 1; d <= c->n_lists; d++) {
        fprintf(out, "VPPS_ARRAY(ls%u, b->n + 1);\n", d);
        for (uint32_t i = 0; i < c->n_inputs; i++)
            if (c->input_axis[i] == d) fprintf(out, "VPPS_ARRAY(in%u, b->members[%u]);\n", i, d - 1);
    }
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (c->needs.training && (c->needs.gradient_out >> k & 1))
            fprintf(out, "VPPS_GRADIENT_ARRAYS(gs%u, ge%u);\n", k, k);
}

/* ---------------------------------------------------------------- constants */

static void put_constants(const vpps_generation *g) {
    const vpps_kernel_plan *p = g->plan;
    const struct {
        const char *name;
        uint32_t value;
    } constants[] = {
        {"VPPS_VPS", p->n_vps},
        {"VPPS_GROUP", p->group},
        {"VPPS_THREADS", p->threads},
        {"VPPS_ROW_BLOCK", p->row_unit},
        {"VPPS_TEAMS", p->teams},
        {"VPPS_PARAMS", (uint32_t)g->model->n_params},
        {"VPPS_STATES", p->n_states},
        {"VPPS_WEIGHTS", p->residents.registers},
        {"VPPS_SHARED_WEIGHTS", p->residents.shared_words},
        {"VPPS_SUM_WORDS", vpps_sum_words(p->threads)},
        {"VPPS_COPY_ITEMS", VPPS_COPY_ITEMS},
        {"VPPS_PARTS", p->parts},
        {"VPPS_PACKS", p->packs},
        {"VPPS_LEAN", p->lean},
        {"VPPS_HEADER_WORDS", VPPS_TASK_HEADER_WORDS},
        {"VPPS_TASK_COUNT", VPPS_TASK_COUNT},
        {"VPPS_KERNEL_WEIGHTS", vpps_weights_task(p)},
    };
    for (size_t i = 0; i < VPPS_COUNT(constants); i++)
        fprintf(g->out, "#define %s %uu\n", constants[i].name, constants[i].value);
    for (uint32_t i = 0; i < VPPS_TASK_COUNT; i++)
        fprintf(g->out, "#define VPPS_TASK_%s %uu\n", vpps_task_rows[i].name, i);
    vpps_emit_step(g->out, p->optimizer, "vpps_task_header");
}

static void put_entries(const vpps_generation *g) {
    const uint32_t states = g->plan->n_states;
    fprintf(g->out, "#define VPPS_PARAM_ENTRIES \\\n");
    for (uint32_t i = 0; i < g->model->n_params; i++) {
        const vpps_parameter_data *p = &g->model->params[i];
        const bool matrix = p->kind == VPPS_MATRIX;
        const uint32_t at = g->matrix_at[i];
        uint32_t state[2];
        for (uint32_t s = 0; s < 2; s++) state[s] = !matrix ? g->pool->states[s][i] : s < states ? at : VPPS_NONE;
        fprintf(g->out, "    {%u, %u, %u, %uu, %uu, {%uu, %uu}}, \\\n",
                matrix                   ? 0
                : p->kind == VPPS_VECTOR ? 1
                                         : 2,
                p->rows, p->cols, matrix ? at : g->pool->values[i], matrix ? at : g->pool->gradients[i], state[0],
                state[1]);
    }
    fprintf(g->out, "    {0, 0, 0, 0, 0, {0, 0}}\n");
}

/* ---------------------------------------------------------------- weights */

/* Word i of the thread's. */
static void put_weight(const vpps_generation *g, const vpps_resident *m, uint32_t i) {
    if (m->level == VPPS_RESIDENT_REGISTERS) {
        fprintf(g->out, "w[%u]", m->at + i);
    } else {
        const uint32_t load = i / m->run * g->plan->threads * m->run + i % m->run;
        fprintf(g->out, "(shared + threadIdx.x * %u)[%u]", m->run, m->at * g->plan->threads + load);
    }
}

/* Backward's weights in fp32 may be loaded late. Those for registers go through shared memory, if it has room for them. */
static bool is_staged(const vpps_kernel_plan *p, const vpps_resident *m) {
    return p->staged_words && m->transposed && m->level == VPPS_RESIDENT_REGISTERS;
}

static bool is_late(const vpps_kernel_plan *p, const vpps_resident *m) {
    return !p->parts && (is_staged(p, m) || (m->transposed && m->level == VPPS_RESIDENT_SHARED));
}

static void plan_late_weights(vpps_kernel_plan *plan, const vpps_kernel_room *room) {
    const vpps_residents *r = &plan->residents;
    uint64_t words = 0;
    for (uint32_t i = 0; i < r->n && !r->parts; i++)
        if (r->list[i].transposed && r->list[i].level == VPPS_RESIDENT_REGISTERS)
            words += (uint64_t)vpps_words_of_thread(&r->list[i]) * plan->threads;
    if (words + r->shared_words + plan->script_words <= room->shared_words) plan->staged_words = (uint32_t)words;
    for (uint32_t i = 0; i < r->n; i++) plan->late |= is_late(plan, &r->list[i]);
}

/* Opens a block that declares `m`, the address of the VP's first row. */
static void open_matrix(const vpps_generation *g, const vpps_resident *m) {
    const vpps_parameter_data *p = &g->model->params[m->matrix];
    const uint32_t rows = m->transposed ? p->cols : p->rows;
    put_parameter_name(g->out, p, m->transposed);
    fprintf(g->out,
            "\n{ const vpps_rows own = vpps_rows_of(%u, VPPS_GROUP, member);\nconst float *const m = (const "
            "float *)a.matrices + %uu + vpps_least(own.first, %uu) * %uu;\n",
            rows, g->matrix_at[m->matrix], rows - 1, m->transposed ? 1 : p->cols);
}

/* Declares a thread's first column, too. */
static void put_first(const vpps_generation *g, const vpps_resident *m) {
    fprintf(g->out, "const unsigned block = VPPS_LANE / %u, first = ", vpps_lanes_of_block(m->blocks));
    vpps_put_first_column(g->out, m);
    fprintf(g->out, ";\n");
}

/* Loads weights to registers, `run` elements at a time: by one load along a row, one by one along a column. `staged`: to shared memory
 * instead, from word `at` of the thread's on. */
static void put_load(const vpps_generation *g, const vpps_resident *m, bool staged, uint32_t at) {
    const vpps_parameter_data *p = &g->model->params[m->matrix];
    const uint32_t stride = p->cols, cols = m->transposed ? p->rows : p->cols, span = g->plan->threads / m->blocks;
    const char *const type = vpps_run_type(m->run);
    open_matrix(g, m);
    put_first(g, m);
    for (uint32_t i = 0; i < vpps_words_of_thread(m); i += m->run) {
        const uint32_t row = i / m->columns * m->blocks, column = i % m->columns * span;
        fprintf(g->out,
                "{ const unsigned row = block + %u, column = first + %u;\nconst bool there = row < own.end - own.first",
                row, column);
        if (column + span * m->run > cols) fprintf(g->out, " && column < %u", cols);
        fprintf(g->out, ";\n");
        if (!m->transposed)
            fprintf(g->out, "const %s x = *(const %s *)(m + (there ? row * %u + column : 0));\n", type, type, stride);
        for (uint32_t k = 0; k < m->run; k++) {
            if (staged) {
                fprintf(g->out, "vpps_copy_word(staged + %uu, m + (there ? row + (column + %u) * %u : 0), there);\n",
                        (at + i + k) * g->plan->threads, k, stride);
                continue;
            }
            put_weight(g, m, i + k);
            fprintf(g->out, " = there ? ");
            if (m->transposed) {
                fprintf(g->out, "m[row + (column + %u) * %u]", k, stride);
            } else {
                fprintf(g->out, "x%s", vpps_run_element(m->run, k));
            }
            fprintf(g->out, " : 0.0f;\n");
        }
        fprintf(g->out, "}\n");
    }
    fprintf(g->out, "}\n");
}

/* Loads weights to shared memory, by a loop: straight-line code would begin with all loads at once, and lack registers for them.
 * Neighbouring threads load adjacent elements. */
static void put_load_to_shared(const vpps_generation *g, const vpps_resident *m) {
    const vpps_parameter_data *p = &g->model->params[m->matrix];
    const uint32_t stride = p->cols, cols = m->transposed ? p->rows : p->cols, span = g->plan->threads / m->blocks;
    const uint32_t height = vpps_rows_of_thread(m) * m->blocks, width = m->columns * span;
    const uint32_t lanes = vpps_lanes_of_block(m->blocks);
    open_matrix(g, m);
    fprintf(g->out,
            "float *const to = shared + %uu;\n#pragma unroll 4\nfor (unsigned i = threadIdx.x; i < %u; i += "
            "VPPS_THREADS) {\n",
            m->at * g->plan->threads, height * width);
    if (m->transposed) {
        fprintf(g->out, "const unsigned row = i %% %u, column = i / %u;\n", height, height);
    } else {
        fprintf(g->out, "const unsigned row = i / %u, column = i %% %u;\n", width, width);
    }
    fprintf(
        g->out,
        "const bool there = row < own.end - own.first && column < %u;\nconst unsigned place = column %% %u / "
        "%u;\nvpps_copy_word(to + ((row / %u * %u + column / %u) * VPPS_THREADS + place / %u * 32 + row %% %u * %u + "
        "place %% %u) * %u + column %% %u, m + (there ? row * %u + column * %u : 0), there);\n}\n}\n",
        cols, span * m->run, m->run, m->blocks, m->columns / m->run, span * m->run, lanes, m->blocks, lanes, lanes,
        m->run, m->run, m->transposed ? 1 : stride, m->transposed ? stride : 1);
}

/* Loads the VP's elements of the vectors that products start from, one for each thread. */
static void put_vector_loads(const vpps_generation *g) {
    const vpps_residents *r = &g->plan->residents;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_vectors; i++) n += r->vectors[i].rows;
    fprintf(g->out,
            "#pragma unroll 1\nfor (unsigned i = threadIdx.x; i < %u; i += VPPS_THREADS) {\nunsigned from = VPPS_NONE; "
            "/* none: zero, "
            "for a VP with "
            "fewer rows */\n",
            n);
    for (uint32_t i = 0; i < r->n_vectors; i++) {
        const vpps_resident_vector *x = &r->vectors[i];
        const vpps_parameter_data *p = &g->model->params[x->vector];
        put_parameter_name(g->out, p, false);
        fprintf(
            g->out,
            "\n{ const vpps_rows own = vpps_rows_of(%u, VPPS_GROUP, member);\nif (i - %u < own.end - own.first) from "
            "= %uu + own.first + (i - %u); }\n",
            p->rows, x->at, g->pool->values[x->vector], x->at);
    }
    fprintf(g->out, "shared[i] = from == VPPS_NONE ? 0.0f : ((const float *)a.pool)[from];\n}\n");
}

/* Writes the table of the rows of all fragments. */
static void put_weight_rows(const vpps_generation *g) {
    const vpps_residents *r = &g->plan->residents;
    fprintf(g->out, "\n__constant__ const vpps_weight_row vpps_weight_rows[] = {\n");
    for (uint32_t i = 0; i < r->n_fragments; i++) {
        for (uint32_t k = 0; k < VPPS_FRAGMENT_ROWS; k++) {
            const vpps_weight_row *x = &r->fragments[i].rows[k];
            if (x->matrix == VPPS_NO_PARAM) {
                fprintf(g->out, "    {0, 0, 0, 0, 0},\n");
                continue;
            }
            const vpps_parameter_data *p = &g->model->params[x->matrix];
            fprintf(g->out, "    {%uu, %u, %u, %u, %u}, ", g->matrix_at[x->matrix], x->transposed ? p->cols : p->rows,
                    x->row, x->transposed ? 1 : p->cols, x->transposed ? p->cols : 1);
            put_parameter_name(g->out, p, x->transposed);
            fputc('\n', g->out);
        }
    }
    fprintf(g->out, "    {0, 0, 0, 0, 0}};\n");
}

vpps_fragment_rows vpps_rows_of_fragment(const vpps_generation *g, const vpps_fragment *f) {
    enum { QUAD = 4 };
    vpps_fragment_rows all = {VPPS_NONE, VPPS_NONE, f->length % QUAD == 0};
    for (uint32_t k = 0; k < VPPS_FRAGMENT_ROWS; k++) {
        const vpps_weight_row *x = &f->rows[k];
        if (x->matrix == VPPS_NO_PARAM) continue;
        const vpps_parameter_data *p = &g->model->params[x->matrix];
        const uint32_t height = x->transposed ? p->cols : p->rows, words = x->transposed ? p->cols : 1;
        all.height = all.height == VPPS_NONE || all.height == height ? height : 0;
        all.words = all.words == VPPS_NONE || all.words == words ? words : 0;
        all.quads &= !x->transposed && p->cols % QUAD == 0;
    }
    return all;
}

/* A step of a fragment: the lane's four elements of a row. */
typedef struct fragment_step {
    uint32_t fragment, step;
} fragment_step;

static void put_step_load(const vpps_generation *g, fragment_step at, uint32_t number) {
    const vpps_fragment *f = &g->plan->residents.fragments[at.fragment];
    const vpps_fragment_rows all = vpps_rows_of_fragment(g, f);
    char rows[32], words[32];
    snprintf(rows, sizeof rows, all.height ? "%u" : "r%u.rows", all.height ? all.height : number);
    snprintf(words, sizeof words, all.words ? "%u" : "r%u.element_words", all.words ? all.words : number);
    fprintf(
        g->out,
        "const vpps_weight_row &r%u = vpps_weight_rows[%u + VPPS_LANE / 4];\nconst vpps_rows o%u = "
        "vpps_rows_of(%s, VPPS_GROUP, member);\nconst vpps_quad q%u = vpps_four_weights<%s, %s, %u>(a, r%u, o%u, %s, "
        "(VPPS_WARP * %u + %u) * 16 + VPPS_LANE %% 4 * 4);\n",
        number, at.fragment * VPPS_FRAGMENT_ROWS, number, rows, number, all.quads ? "true" : "false",
        f->steps * VPPS_FRAGMENT_DEPTH * (g->plan->threads / 32) <= f->length ? "true" : "false", f->length, number,
        number, words, f->steps, at.step);
}

/* Two words of each part. */
static void put_step_store(const vpps_generation *g, fragment_step at, uint32_t number) {
    const vpps_fragment *f = &g->plan->residents.fragments[at.fragment];
    const uint32_t words = 2 * g->plan->parts, threads = g->plan->threads;
    const bool shared = f->level == VPPS_RESIDENT_SHARED;
    fprintf(g->out, "{ const vpps_split low = vpps_split_of(q%u.x, q%u.y), high = vpps_split_of(q%u.z, q%u.w);\n",
            number, number, number, number);
    if (shared) {
        const char *const type = vpps_run_type(words);
        fprintf(g->out, "((%s *)(shared + %u) + threadIdx.x)[%u] = %s{", type, f->at * threads, at.step * threads,
                type);
    }
    for (uint32_t k = 0; k < words; k++) {
        if (!shared) fprintf(g->out, "w[%u] = ", f->at + at.step * words + k);
        fprintf(g->out, "__uint_as_float(%s.part[%u])%s", k % 2 ? "high" : "low", k / 2,
                !shared         ? ";\n"
                : k + 1 < words ? ", "
                                : "};\n");
    }
    fprintf(g->out, "}\n");
}

/* All loads at once. */
static void put_steps(const vpps_generation *g, const fragment_step *at, uint32_t n) {
    fprintf(g->out, "{\n");
    for (uint32_t k = 0; k < n; k++) put_step_load(g, at[k], k);
    for (uint32_t k = 0; k < n; k++) put_step_store(g, at[k], k);
    fprintf(g->out, "}\n");
}

/* Loads the words of all fragments, those of some steps at a time. */
static void put_fragments(const vpps_generation *g) {
    enum { AT_ONCE = 8 };
    const vpps_residents *r = &g->plan->residents;
    fragment_step at[AT_ONCE];
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_fragments; i++) {
        for (uint32_t s = 0; s < r->fragments[i].steps && r->fragments[i].level != VPPS_RESIDENT_STREAM; s++) {
            at[n++] = (fragment_step){i, s};
            if (n == AT_ONCE) put_steps(g, at, n);
            n %= AT_ONCE;
        }
    }
    if (n) put_steps(g, at, n);
}

static void put_loads(const vpps_generation *g) {
    const vpps_residents *r = &g->plan->residents;
    if (r->n_fragments) put_weight_rows(g);
    fprintf(g->out,
            "\n/* Loads the resident weights, except the late ones; zeros where a VP has fewer rows, or a row fewer "
            "columns. */\n__device__ __forceinline__ void vpps_load_weights(const vpps_arguments &a, float "
            "(&w)[VPPS_WEIGHTS + 1], "
            "float *shared) {\nconst unsigned member = blockIdx.x %% VPPS_GROUP;\n");
    put_fragments(g);
    for (uint32_t i = 0; i < r->n && !r->parts; i++) {
        const vpps_resident *m = &r->list[i];
        if (is_late(g->plan, m)) continue;
        if (m->level == VPPS_RESIDENT_REGISTERS) put_load(g, m, false, 0);
        if (m->level == VPPS_RESIDENT_SHARED) put_load_to_shared(g, m);
    }
    put_vector_loads(g);
    fprintf(g->out, "(void)member, (void)w, (void)shared;\n}\n");
}

/* Loads backward's weights late. Columns lie far apart, so that most of each memory sector read belongs to other VPs. So the weights are
 * copied to shared memory while forward begins, and later to registers by vpps_take_late_weights. */
static void put_late_loads(const vpps_generation *g) {
    const vpps_residents *r = &g->plan->residents;
    uint32_t at = 0;
    fprintf(g->out, "\n__device__ __forceinline__ void vpps_load_late_weights(const vpps_arguments &a, float *shared) "
                    "{\nconst unsigned member = blockIdx.x %% VPPS_GROUP;\nfloat *const staged = shared + "
                    "VPPS_STAGED_AT + threadIdx.x;\n");
    for (uint32_t i = 0; i < r->n && !r->parts; i++) {
        const vpps_resident *m = &r->list[i];
        if (!is_late(g->plan, m)) continue;
        if (m->level == VPPS_RESIDENT_SHARED) put_load_to_shared(g, m);
        if (m->level == VPPS_RESIDENT_REGISTERS) put_load(g, m, true, at), at += vpps_words_of_thread(m);
    }
    fprintf(g->out, "(void)member, (void)staged;\n}\n\n__device__ __forceinline__ void vpps_take_late_weights(float "
                    "(&w)[VPPS_WEIGHTS + 1], float *shared) {\nconst float *const staged = shared + VPPS_STAGED_AT + "
                    "threadIdx.x;\nvpps_wait_for_copies();\n");
    at = 0;
    for (uint32_t i = 0; i < r->n && !r->parts; i++) {
        const vpps_resident *m = &r->list[i];
        for (uint32_t k = 0; k < vpps_words_of_thread(m) && is_staged(g->plan, m); k++)
            fprintf(g->out, "w[%u] = staged[%uu];\n", m->at + k, at++ * g->plan->threads);
    }
    fprintf(g->out, "(void)w, (void)staged;\n}\n");
}

/* ---------------------------------------------------------------- the kernel */

static vpps_status put_stages(const vpps_generation *g, vpps_kernel_plan *plan) {
    for (uint32_t c = 0; c < plan->n_cells; c++) {
        for (uint32_t s = 0; s < plan->cells[c]->n_stages; s++) {
            const uint32_t number = plan->first_stage[c] + s;
            vpps_stage_room *room = &plan->rooms[number];
            VPPS_TRY(vpps_generate_stage(g, plan->cells[c], s, number, room));
            plan->tile_words = vpps_max_u32(plan->tile_words, vpps_quads_up(room->shared_words));
        }
        if (plan->cells[c]->n_outers)
            plan->tile_words = vpps_max_u32(plan->tile_words, vpps_generate_outer(g, plan->cells[c], c));
    }
    fprintf(g->out, "\n#define VPPS_STAGE_CASES(a, w, shared, t)");
    for (uint32_t s = 0; s < plan->first_stage[plan->n_cells]; s++)
        fprintf(g->out, " \\\n    case %u: vpps_stage_%u(a, w, shared, t); break;", VPPS_TASK_COUNT + s, s);
    fprintf(g->out, "\n\n/* X(the task's number, the function that makes gradients of a cell's parameters) */\n"
                    "#define VPPS_OUTER_TABLE(X)");
    for (uint32_t c = 0; c < plan->n_cells; c++)
        if (plan->cells[c]->n_outers) fprintf(g->out, " X(%u, vpps_outer_%u)", vpps_outer_task(plan, c), c);
    fprintf(g->out, "\n\n");
    return VPPS_OK;
}

static vpps_status put_kernel(const vpps_generation *g, vpps_kernel_plan *plan) {
    put_constants(g);
    put_entries(g);
#define X(name) fputs(vpps_template_##name, g->out);
    TEMPLATES_BEFORE(X)
    vpps_emit_formulas(g->out);
    TEMPLATES_AFTER(X)
    put_loads(g);
    VPPS_TRY(put_stages(g, plan));
    const uint32_t script_at = plan->residents.shared_words + plan->tile_words;
    fprintf(g->out, "#define VPPS_SCRIPT_WORDS %uu\n#define VPPS_SCRIPT_AT %uu\n#define VPPS_STAGED_AT %uu\n",
            plan->script_words, script_at, script_at + plan->script_words);
    put_late_loads(g);
    X(loop)
#undef X
    return VPPS_OK;
}

/* The number of teams. A VP reads its part of each vector that gradients are made of, so more teams are better, until a VP has more rows of
 * the largest matrix than a tile of mma, or fewer columns than a warp takes. */
static uint32_t choose_teams(const vpps_kernel_plan *plan, const vpps_model *model) {
    enum { MOST = 8, COLUMNS = 32 };
    const vpps_parameter_data *largest = NULL;
    for (uint32_t i = 0; i < model->n_params; i++) {
        const vpps_parameter_data *p = &model->params[i];
        if (p->kind == VPPS_MATRIX && (!largest || vpps_param_elems(p) > vpps_param_elems(largest))) largest = p;
    }
    for (uint32_t teams = MOST; largest && teams > 1; teams /= 2) {
        const vpps_cell_needs team = {.group = plan->n_vps / teams, .rows.unit = plan->row_unit};
        if (plan->n_vps % teams == 0 && largest->cols >= teams * COLUMNS &&
            vpps_most_rows(&team, largest->rows) <= VPPS_FRAGMENT_ROWS)
            return teams;
    }
    return 1;
}

vpps_status vpps_generate_kernel(vpps_kernel_plan *plan, const vpps_model *model, const vpps_plan *pool,
                                 const uint32_t *matrix_at, const vpps_kernel_room *room, char **source) {
    enum {
        LEAN_FROM = 96
    }; /* with more registers for weights, other values that are kept from task to task would spill */
    *source = NULL;
    plan->tile_words = 0;
    plan->threads = room->threads;
    plan->teams = choose_teams(plan, model);
    plan->first_stage = calloc(plan->n_cells + 1u, sizeof *plan->first_stage);
    if (!plan->first_stage) return vpps_fail(VPPS_MEMORY, "kernel: out of memory");
    plan->residents.parts = plan->parts;
    for (uint32_t c = 0; c < plan->n_cells; c++) {
        plan->first_stage[c + 1] = plan->first_stage[c] + plan->cells[c]->n_stages;
        VPPS_TRY(vpps_residents_add(&plan->residents, model, plan->cells[c], room->threads));
    }
    vpps_residents_place(&plan->residents, room);
    plan->lean = plan->residents.registers > LEAN_FROM;
    plan->script_words = room->shared_words - vpps_min_u32(plan->residents.shared_words, room->shared_words);
    plan->script_words = vpps_min_u32(plan->script_words, room->script_words) / 4 * 4;
    plan_late_weights(plan, room);
    plan->rooms = calloc(plan->first_stage[plan->n_cells] + 1u, sizeof *plan->rooms);
    if (!plan->rooms) return vpps_fail(VPPS_MEMORY, "kernel: out of memory");
    size_t bytes = 0;
    FILE *f = open_memstream(source, &bytes);
    if (!f) return vpps_fail(VPPS_MEMORY, "kernel: out of memory");
    const vpps_generation g = {plan, model, pool, matrix_at, f};
    vpps_status status = put_kernel(&g, plan);
    const bool failed = ferror(f);
    if ((fclose(f) || failed) && status == VPPS_OK) status = vpps_fail(VPPS_MEMORY, "kernel: out of memory");
    if (status != VPPS_OK) {
        free(*source);
        *source = NULL;
    }
    return status;
}

void vpps_kernel_plan_free(vpps_kernel_plan *plan) {
    vpps_residents_free(&plan->residents);
    free(plan->first_stage);
    free(plan->rooms);
    *plan = (vpps_kernel_plan){0};
}

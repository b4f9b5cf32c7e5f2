/* generate.c - generates the source text of the kernel for a set of compiled cells. */
#include "codegen/generate.h"
#include "codegen/generate_outer.h"

/* The embedded template files, in the order in which the kernel's text contains them (templates.S). */
#define TEMPLATES_BEFORE(X) X(failure) X(arguments) X(task_header) X(math) X(functions) X(steps) X(formulas) X(isa_rows)
#define TEMPLATES_AFTER(X)                                                                                             \
    X(device) X(common) X(mma) X(whole) X(whole_rows) X(products) X(loads) X(stage) X(parameters) X(outer) X(packing)
#define X(name) extern const char vpps_template_##name[];
X(tiles)
TEMPLATES_BEFORE(X)
TEMPLATES_AFTER(X)
X(loop)
#undef X

_Static_assert(VPPS_CELL_LISTS == VPPS_COUNT(((vpps_block *)NULL)->members), "members of every list");
_Static_assert(VPPS_AXES == VPPS_COUNT(((vpps_block *)NULL)->kept), "kept values of every axis");

void vpps_generate_step(FILE *out, vpps_optimizer_kind optimizer, const char *numbers) {
    static const char *const steps[] = {
#define X(id, name, states, lr) "step_" #id,
        VPPS_OPTIMIZER_TABLE(X)
#undef X
    };
    fprintf(out, "#define VPPS_STEP_NUMBERS %s\n#define VPPS_STEP %s\n", numbers, steps[optimizer]);
}

static void put_parameter_name(FILE *out, const vpps_parameter_data *p, bool transposed) {
    fputs("/* ", out);
    vpps_write_comment(out, p->name);
    fputs(transposed ? ", transposed */" : " */", out);
}

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
            if (c->input_axis[i] == d) fprintf(out, "VPPS_MEMBERS_ARRAY(in%u);\n", i);
    }
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (c->needs.training && (c->needs.gradient_out >> k & 1))
            fprintf(out, "VPPS_GRADIENT_ARRAYS(gs%u, ge%u, gp%u);\n", k, k, k);
}

/* Columns of a matrix with few rows (vpps_low_rows) are assigned to CTAs in blocks. A CTA with a block updates no
 * entries of lookup tables. Returns the widest such matrix's number of blocks; 0 if more than 1 / FEW of all CTAs. */
static uint32_t low_blocks(const vpps_generation *g) {
    enum { FEW = 4 };
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < g->model->n_params; i++) {
        const vpps_parameter_data *p = &g->model->params[i];
        if (p->kind == VPPS_MATRIX && p->rows <= vpps_low_rows(g->plan))
            blocks = vpps_max_u32(blocks, (p->cols + VPPS_OUTER_COLUMNS - 1) / VPPS_OUTER_COLUMNS);
    }
    return blocks <= g->plan->n_vps / FEW ? blocks : 0;
}

static void put_constants(const vpps_generation *g) {
    const vpps_kernel_plan *p = g->plan;
    /* whether terms of gradients may be stored as factors, a scalar and a vector; whether a cell reads its own outputs */
    bool pairs = false, recurrent = false;
    for (uint32_t i = 0; i < p->n_cells; i++)
        pairs |= vpps_has_scaled(p->cells[i]), recurrent |= p->cells[i]->needs.recurrent_in != 0;
    const struct {
        const char *name;
        uint32_t value;
    } constants[] = {
        {"VPPS_VPS", p->n_vps},
        {"VPPS_GROUP", p->group},
        {"VPPS_THREADS", p->threads},
        {"VPPS_ROW_BLOCK", p->row_unit},
        {"VPPS_TEAMS", p->teams},
        {"VPPS_LOW_ROWS", vpps_low_rows(p)},
        {"VPPS_LOW_BLOCKS", low_blocks(g)},
        {"VPPS_PARAMS", (uint32_t)g->model->n_params},
        {"VPPS_STATES", p->n_states},
        {"VPPS_WEIGHTS", p->residents.registers},
        {"VPPS_SHARED_WEIGHTS", p->residents.shared_words},
        {"VPPS_MEMORY_WEIGHTS", (uint32_t)p->residents.memory_words},
        {"VPPS_SUM_WORDS", vpps_sum_words(p->threads)},
        {"VPPS_COPY_ITEMS", VPPS_COPY_ITEMS},
        {"VPPS_WIDE_WORDS", p->residents.wide_words},
        {"VPPS_WIDE_ITEMS", VPPS_WIDE_ITEMS},
        {"VPPS_PARTS", p->parts},
        {"VPPS_PACKS", p->packs},
        {"VPPS_LEAN", p->lean},
        {"VPPS_PAIRS", pairs},
        {"VPPS_RECURRENT", recurrent},
        {"VPPS_HEADER_WORDS", VPPS_TASK_HEADER_WORDS},
        {"VPPS_TASK_COUNT", VPPS_TASK_COUNT},
        {"VPPS_KERNEL_WEIGHTS", vpps_weights_task(p)},
    };
    for (size_t i = 0; i < VPPS_COUNT(constants); i++)
        fprintf(g->out, "#define %s %uu\n", constants[i].name, constants[i].value);
    for (uint32_t i = 0; i < VPPS_TASK_COUNT; i++)
        fprintf(g->out, "#define VPPS_TASK_%s %uu\n", vpps_task_rows[i].name, i);
    vpps_generate_step(g->out, p->optimizer, "vpps_task_header");
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

/* Returns whether a matrix that only backward uses, in fp32, is copied to shared memory when the kernel begins, and to registers later. */
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

void vpps_put_matrix(const vpps_generation *g, vpps_param matrix, bool transposed, uint32_t shares) {
    const vpps_parameter_data *p = &g->model->params[matrix];
    fprintf(g->out, "vpps_matrix<%u, %u, %uu, %u, %u, %u>", transposed ? p->cols : p->rows,
            (transposed ? p->rows : p->cols) / shares, g->matrix_at[matrix], transposed ? 1 : p->cols,
            transposed ? p->cols : 1, shares);
}

/* Writes a C++ object of type vpps_resident_matrix (loads.cuh), which loads a thread's weights of a matrix. */
static void put_resident(const vpps_generation *g, const vpps_resident *m) {
    put_parameter_name(g->out, &g->model->params[m->matrix], m->transposed);
    fprintf(g->out, "\nvpps_resident_matrix<");
    vpps_put_matrix(g, m->matrix, m->transposed, m->shares);
    fprintf(g->out, ", %u, %u, %u, %u>(a, member)", vpps_rows_of_thread(m), m->columns, m->run, m->blocks);
}

static void put_copy_to_shared(const vpps_generation *g, const vpps_resident *m) {
    put_resident(g, m);
    fprintf(g->out, ".copy_to(shared + %uu);\n", m->at * g->plan->threads);
}

/* Writes code that copies a CTA's elements of bias vectors (which are added to products) to shared memory. */
static void put_vector_loads(const vpps_generation *g) {
    const vpps_residents *r = &g->plan->residents;
    if (!r->n_vectors) return;
    const vpps_resident_vector *last = &r->vectors[r->n_vectors - 1];
    fprintf(g->out, "vpps_load_vectors<%u", last->at + last->rows);
    for (uint32_t i = 0; i < r->n_vectors; i++) {
        const vpps_resident_vector *x = &r->vectors[i];
        const vpps_parameter_data *p = &g->model->params[x->vector];
        fprintf(g->out, ",\nvpps_resident_vector<%u, %u, %uu> ", p->rows, x->at, g->pool->values[x->vector]);
        put_parameter_name(g->out, p, false);
    }
    fprintf(g->out, ">(a, shared, member);\n");
}

/* Writes a table that tells for each fragment (eight rows of weights) where its rows lie in memory. */
static void put_weight_rows(const vpps_generation *g) {
    enum { MOST_IN_CONSTANTS = 256 /* most fragments whose table is in constant memory, which could hold 409 */ };
    const vpps_residents *r = &g->plan->residents;
    fprintf(g->out, "\n__%s__ const vpps_weight_row vpps_weight_rows[] = {\n",
            r->n_fragments > MOST_IN_CONSTANTS ? "device" : "constant");
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

/* Writes the C++ type of a fragment in memory (eight rows of weights, an operand of the instruction mma), as fp32. */
static void put_fragment_rows(const vpps_generation *g, const vpps_fragment *f) {
    enum { QUAD = 4 };
    /* Of the matrices to which the rows f->rows belong: number of rows, and words from an element of a row to the next.
     * VPPS_NONE: no matrix was seen yet; 0: the matrices have different numbers. */
    uint32_t height = VPPS_NONE, words = VPPS_NONE;
    bool quads = f->length % QUAD == 0, padded = false;
    for (uint32_t k = 0; k < VPPS_FRAGMENT_ROWS; k++) {
        const vpps_weight_row *x = &f->rows[k];
        padded |= x->matrix == VPPS_NO_PARAM; /* zeros: row k has no product, or one of other vectors */
        if (x->matrix == VPPS_NO_PARAM) continue;
        const vpps_parameter_data *p = &g->model->params[x->matrix];
        const uint32_t own_height = x->transposed ? p->cols : p->rows, own_words = x->transposed ? p->cols : 1;
        height = height == VPPS_NONE || height == own_height ? own_height : 0;
        words = words == VPPS_NONE || words == own_words ? own_words : 0;
        quads &= !x->transposed && p->cols % QUAD == 0;
    }
    fprintf(g->out, "vpps_fragment_rows<%u, %u, %u, %s, %u, %s>", (uint32_t)(f - g->plan->residents.fragments), height,
            words, vpps_truth(quads), f->shares, vpps_truth(padded));
}

/* Writes the C++ type (loads.cuh) that loads a fragment of weights: eight rows. */
static void put_fragment_load(const vpps_generation *g, const vpps_fragment *f) {
    fprintf(g->out, "vpps_fragment_load<");
    put_fragment_rows(g, f);
    fprintf(g->out, ", vpps_fragment<%u, %u, %u>, %u, %u>", f->at, f->level, f->steps, f->length, f->steps);
}

/* Returns whether fragment f (eight rows of weights) is loaded from memory at each use, and has rows of the matrix of x's first row only,
 * equally long: if CTAs divide a matrix's columns in one product, rows are shorter there than in other products of the matrix. */
static bool is_streamed_as(const vpps_fragment *f, const vpps_fragment *x) {
    bool same = f->level == VPPS_RESIDENT_STREAM && f->length == x->length && f->shares == x->shares &&
                f->by_levels == x->by_levels; /* else other weights may lie between them in memory */
    for (uint32_t k = 0; k < VPPS_FRAGMENT_ROWS; k++)
        same = same && f->rows[k].matrix == x->rows->matrix && f->rows[k].transposed == x->rows->transposed;
    return same;
}

/* Writes code by which a thread reads its part of all weights, rounds it to bf16 and stores it. A call stores AT_ONCE
 * blocks of eight rows and 16 columns in registers or shared memory, or a whole fragment (eight rows) in device memory. */
static void put_fragments(const vpps_generation *g) {
    enum { AT_ONCE = 8, LEAST_TURNS = 16 };
    const vpps_residents *r = &g->plan->residents;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_fragments; i++) {
        const vpps_fragment *f = &r->fragments[i];
        for (uint32_t step = 0; step < f->steps && f->level != VPPS_RESIDENT_STREAM; step++, n++) {
            if (n % AT_ONCE == 0) fprintf(g->out, "%svpps_load_fragments<", n ? ">(weights, rows);\n" : "");
            fprintf(g->out, "%svpps_fragment_step<", n % AT_ONCE ? ",\n" : "");
            put_fragment_load(g, f);
            fprintf(g->out, ", %u>", step);
        }
    }
    if (n) fprintf(g->out, ">(weights, rows);\n");
    for (uint32_t i = 0, turns; i < r->n_fragments; i += turns) {
        const vpps_fragment *f = &r->fragments[i];
        for (turns = 0; i + turns < r->n_fragments && is_streamed_as(f + turns, f);) turns++;
        if (turns < LEAST_TURNS) turns = 1;
        if (f->level != VPPS_RESIDENT_STREAM) continue;
        const bool looped = vpps_begin_turns(g->out, turns);
        put_fragment_load(g, f);
        if (looped)
            fprintf(g->out, "::run({w, shared, threadIdx.x, vpps_later(a, turn * %uu)}, rows + turn * %uu);\n});\n",
                    vpps_fragment_words(f, r->parts), VPPS_FRAGMENT_ROWS);
        else
            fprintf(g->out, "::run(weights, rows);\n");
    }
}

static void put_loads(const vpps_generation *g) {
    const vpps_residents *r = &g->plan->residents;
    if (r->n_fragments) put_weight_rows(g);
    fprintf(g->out, "\n/* Loads weights to registers and shared memory, except those of vpps_load_late_weights. */\n"
                    "__device__ __forceinline__ void vpps_load_weights(const vpps_arguments &a, float "
                    "(&w)[VPPS_WEIGHTS + 1], float *shared) {\nconst unsigned member = blockIdx.x %% VPPS_GROUP;\n");
    if (r->n_fragments)
        fprintf(g->out, "const vpps_weights weights = {w, shared, threadIdx.x, a};\n"
                        "const vpps_weight_row *const rows = vpps_weight_rows;\n");
    put_fragments(g);
    for (uint32_t i = 0; i < r->n && !r->parts; i++) {
        const vpps_resident *m = &r->list[i];
        if (is_late(g->plan, m)) continue;
        if (m->level == VPPS_RESIDENT_SHARED) put_copy_to_shared(g, m);
        if (m->level == VPPS_RESIDENT_REGISTERS) {
            put_resident(g, m);
            fprintf(g->out, ".load<%u>(w);\n", m->at);
        }
    }
    put_vector_loads(g);
    fprintf(g->out, "(void)member, (void)w, (void)shared;\n}\n");
}

/* Writes code that loads weights which only backward needs: transposed matrices. A CTA (thread block) needs some
 * columns of each, which lie far apart in memory, so loading is slow. Therefore the weights are copied to shared memory
 * while forward begins; the function vpps_take_late_weights moves them to registers later, if they have registers. */
static void put_late_loads(const vpps_generation *g) {
    const vpps_residents *r = &g->plan->residents;
    uint32_t at = 0;
    fprintf(g->out, "\n__device__ __forceinline__ void vpps_load_late_weights(const vpps_arguments &a, float *shared) "
                    "{\nconst unsigned member = blockIdx.x %% VPPS_GROUP;\n");
    for (uint32_t i = 0; i < r->n; i++) {
        const vpps_resident *m = &r->list[i];
        if (!is_late(g->plan, m)) continue;
        if (m->level == VPPS_RESIDENT_SHARED) put_copy_to_shared(g, m);
        if (m->level == VPPS_RESIDENT_REGISTERS) {
            put_resident(g, m);
            fprintf(g->out, ".stage(shared + VPPS_STAGED_AT + %uu);\n", at * g->plan->threads);
            at += vpps_words_of_thread(m);
        }
    }
    fprintf(g->out, "(void)member, (void)shared;\n}\n\n__device__ __forceinline__ void vpps_take_late_weights(float "
                    "(&w)[VPPS_WEIGHTS + 1], const float *shared) {\nvpps_wait_for_copies();\n");
    at = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const vpps_resident *m = &r->list[i];
        if (!is_staged(g->plan, m)) continue;
        fprintf(g->out, "vpps_take_staged<%u, %u>(w, shared + VPPS_STAGED_AT + %uu);\n", m->at, vpps_words_of_thread(m),
                at * g->plan->threads);
        at += vpps_words_of_thread(m);
    }
    fprintf(g->out, "(void)w, (void)shared;\n}\n");
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
        const uint32_t words = vpps_n_outers(plan->cells[c]) ? vpps_generate_outer(g, plan->cells[c], c) : 0;
        plan->tile_words = vpps_max_u32(plan->tile_words, words - vpps_min_u32(words, plan->staged_words));
    }
    fprintf(g->out, "\n#define VPPS_STAGE_CASES(a, w, shared, t)");
    for (uint32_t s = 0; s < plan->first_stage[plan->n_cells]; s++)
        fprintf(g->out, " \\\n    case %u: vpps_stage_%u(a, w, shared, t); break;", VPPS_TASK_COUNT + s, s);
    fprintf(g->out, "\n\n/* X(kind of a task, function that sums the gradients of a cell's parameters in the task) */\n"
                    "#define VPPS_OUTER_TABLE(X)");
    for (uint32_t c = 0; c < plan->n_cells; c++)
        if (vpps_n_outers(plan->cells[c])) fprintf(g->out, " X(%u, vpps_outer_%u)", vpps_outer_task(plan, c), c);
    fprintf(g->out, "\n\n");
    return VPPS_OK;
}

static vpps_status put_kernel(const vpps_generation *g, vpps_kernel_plan *plan) {
    put_constants(g);
    put_entries(g);
#define X(name) fputs(vpps_template_##name, g->out);
    TEMPLATES_BEFORE(X)
    TEMPLATES_AFTER(X)
    if (plan->residents.wide_words) X(tiles)
    put_loads(g);
    VPPS_TRY(put_stages(g, plan));
    const uint32_t staged_at = plan->residents.shared_words + plan->tile_words;
    fprintf(g->out, "#define VPPS_SCRIPT_WORDS %uu\n#define VPPS_SCRIPT_AT %uu\n#define VPPS_STAGED_AT %uu\n",
            plan->script_words, staged_at + plan->staged_words, staged_at);
    put_late_loads(g);
    X(loop)
#undef X
    return VPPS_OK;
}

/* Returns what one vertex's product dy x^T, a term of the gradient of matrix p, costs a VP (CTA): copying its elements
 * of dy and x, and multiplying them. All CTAs are divided into `teams` teams, each for some columns of the gradient. */
static uint64_t cost_of_gradient(const vpps_kernel_plan *plan, const vpps_parameter_data *p, uint32_t teams) {
    enum { COPY = 22, MULTIPLY = 3, BLOCK = VPPS_OUTER_COLUMNS };
    const vpps_cell_needs team = {.group = plan->n_vps / teams, .rows.unit = plan->row_unit};
    uint64_t rows = vpps_most_rows(&team, p->rows, 1);
    if (plan->parts) rows = (rows + VPPS_FRAGMENT_ROWS - 1) / VPPS_FRAGMENT_ROWS * VPPS_FRAGMENT_ROWS;
    const uint64_t blocks = (p->cols + BLOCK - 1) / BLOCK,
                   columns = teams == 1 ? p->cols : (blocks + teams - 1) / teams * BLOCK;
    return COPY * (rows + columns) + MULTIPLY * rows * columns;
}

/* Returns the number of teams into which the VPs (CTAs) are divided. Each team computes some columns of matrices'
 * gradients, sums of dy x^T. With more teams, a VP reads more elements of vectors dy and fewer of vectors x. */
static uint32_t choose_teams(const vpps_kernel_plan *plan, const vpps_model *model) {
    enum { MOST = 12 };
    uint32_t best = 1;
    uint64_t least = UINT64_MAX;
    for (uint32_t teams = 1; teams <= MOST; teams++) {
        uint64_t cost = 0;
        if (plan->n_vps % teams) continue;
        for (uint32_t i = 0; i < model->n_params; i++)
            if (model->params[i].kind == VPPS_MATRIX) cost += cost_of_gradient(plan, &model->params[i], teams);
        if (cost >= least) continue;
        least = cost;
        best = teams;
    }
    return best;
}

vpps_status vpps_generate_kernel(vpps_kernel_plan *plan, const vpps_model *model, const vpps_pool_plan *pool,
                                 const uint32_t *matrix_at, const vpps_kernel_room *room, char **source) {
    /* A kernel with more registers for weights, or for products of many vertices at once in bf16, is lean: threads keep
     * no other values from task to task, since these values would spill. */
    enum { LEAN_FROM = 96 };
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
    if (plan->residents.memory_words > UINT32_MAX)
        return vpps_fail(VPPS_POOL, "kernel: the weights of one VP take 2^32 words or more");
    plan->lean |= plan->residents.registers > LEAN_FROM || (plan->residents.wide_words && plan->parts);
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
    VPPS_FREE(plan->first_stage, plan->rooms);
    *plan = (vpps_kernel_plan){0};
}

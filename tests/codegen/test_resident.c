/* test_resident.c - where matrices lie while a kernel runs: for drawn models and a Tree-LSTM, in many layouts, every row of every matrix
 * has one owner in a group, no two share a place, and nothing is read from memory that there is room for. VPPS_TEST_SEED draws other
 * models. */
#include "cli/output/kernel_plan_print.h"
#include "gpu_batch.h"

/* Like ck_assert_uint_*, but without a write to a file each time, which is too slow for so many rows. */
#define MUST(a, op, b)                                                                                                 \
    do {                                                                                                               \
        const uint64_t must_a_ = (a), must_b_ = (b);                                                                   \
        if (!(must_a_ op must_b_)) {                                                                                   \
            ck_abort_msg("line %d: %s " #op " %s: %llu, %llu", __LINE__, #a, #b, (unsigned long long)must_a_,          \
                         (unsigned long long)must_b_);                                                                 \
        }                                                                                                              \
    } while (0)

/* ---------------------------------------------------------------- what there must be */

typedef struct wanted {
    vpps_param matrix;
    bool transposed;
    bool is_short; /* whether all products with it have vectors of at most eight elements */
    uint32_t shares;
} wanted;

static bool knows(wanted *list, uint32_t n, wanted w) {
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].matrix != w.matrix || list[i].transposed != w.transposed || list[i].shares != w.shares) continue;
        list[i].is_short = list[i].is_short && w.is_short;
        return true;
    }
    return false;
}

static uint32_t longest_vector(const vpps_compiled_cell *c, const vpps_cell_value *x) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_cell_arg *a = &c->args[x->first_arg + i];
        if (a->matrix != VPPS_NO_PARAM) most = vpps_max_u32(most, c->values[a->value].rows);
    }
    return most;
}

/* Checks the list of matrices of products whose rows are shared out, each once per way it is used (transposed or not), in order; and the vectors that
 * such products start from. */
static void check_list(const gpu_batch *b, const vpps_residents *r) {
    enum { MOST = 512 };
    static wanted list[MOST];
    uint32_t n = 0;
    FREED bool *vectors = calloc(b->model->n_params + 1, 1);
    uint32_t n_vectors = 0;
    for (uint32_t k = 0; k < b->batch->n_cells; k++) {
        const vpps_compiled_cell *c = gpu_batch_cell(b, k);
        for (uint32_t v = 0; v < c->n_values; v++) {
            const vpps_cell_value *x = &c->values[v];
            const bool product = vpps_is_product(x);
            if (!product || x->split != VPPS_SPLIT_ROWS) continue;
            const vpps_param bias = vpps_bias_of(x);
            if (bias != VPPS_NO_PARAM && !vectors[bias]) {
                vectors[bias] = true;
                MUST(n_vectors, <, r->n_vectors);
                MUST(r->vectors[n_vectors].vector, ==, bias);
                n_vectors++;
            }
            for (uint32_t i = 0; i < x->n_args; i++) {
                const wanted w = {c->args[x->first_arg + i].matrix, x->kind == VPPS_VALUE_PRODUCT_T,
                                  !r->parts && longest_vector(c, x) <= 8, vpps_shares_of(x)};
                if (w.matrix == VPPS_NO_PARAM || knows(list, n, w)) continue;
                MUST(n, <, MOST);
                list[n++] = w;
            }
        }
    }
    MUST(r->n, ==, n);
    MUST(r->n_vectors, ==, n_vectors);
    for (uint32_t i = 0; i < n; i++) {
        MUST(r->list[i].matrix, ==, list[i].matrix);
        MUST(r->list[i].transposed, ==, list[i].transposed);
        MUST(r->list[i].is_short, ==, list[i].is_short);
        ck_assert_ptr_eq(vpps_resident_of(r, list[i].matrix, list[i].transposed, list[i].shares), &r->list[i]);
    }
}

/* Checks that over the virtual processors of a group every row has one owner for each part of its columns, the same in all groups, and that the room
 * for a processor's rows and a thread's columns fits the largest share. */
static void check_rows(const gpu_batch *b, const vpps_kernel_plan *p, const vpps_resident *m) {
    const uint32_t rows = rows_of(b, m), columns = columns_of(b, m);
    FREED uint8_t *owners = calloc(rows + 1u, 1);
    uint32_t most = 0;
    for (uint32_t vp = 0; vp < p->n_vps; vp++) {
        const vpps_rows own = vpps_resident_rows(p, b->model, m, vp);
        const vpps_rows first = vpps_resident_rows(p, b->model, m, vp % p->group);
        MUST(own.first, <=, own.end);
        MUST(own.end, <=, rows);
        MUST(own.first, ==, first.first);
        MUST(own.end, ==, first.end);
        if (own.first % p->row_unit) MUST(own.first, ==, rows); /* blocks of rows are not cut */
        most = vpps_max_u32(most, own.end - own.first);
        for (uint32_t row = own.first; row < own.end && vp < p->group; row++) owners[row]++;
    }
    for (uint32_t row = 0; row < rows; row++) MUST(owners[row], ==, m->shares);
    MUST(m->rows, ==, most);
    /* Blocks are whole warps; a thread's columns of a row are whole runs, hardly more than single loads need. */
    MUST(p->threads % (m->blocks * 32), ==, 0);
    const uint64_t span = p->threads / m->blocks;
    MUST(m->columns * span, >=, columns);
    MUST(m->columns, <=, (columns + span - 1) / span * 17 / 16);
    MUST(m->run, ==, m->run == 4 ? 4 : m->run == 2 ? 2 : 1);
    MUST(m->columns % m->run, ==, 0);
    if (!m->transposed) MUST(columns % m->run, ==, 0); /* so that each row begins where a load of a run may */
}

/* ---------------------------------------------------------------- places */

/* Marks words [at, at + n), none of which may be marked already. */
static void take(uint8_t *taken, uint64_t words, uint64_t at, uint64_t n) {
    MUST(at + n, <=, words);
    for (uint64_t w = at; w < at + n; w++) {
        MUST(taken[w], ==, 0);
        taken[w] = 1;
    }
}

static void check_places(const vpps_residents *r, const vpps_kernel_room *room) {
    FREED uint8_t *registers = calloc(r->registers + 1u, 1), *shared = calloc(r->shared_words + 1u, 1);
    uint32_t vectors = 0, next[VPPS_RESIDENT_STREAM + 1] = {0};
    for (uint32_t i = 0; i < r->n_vectors; i++) {
        take(shared, r->shared_words, r->vectors[i].at, r->vectors[i].rows);
        vectors += r->vectors[i].rows;
    }
    /* the vectors that products start from are small, and always have a place */
    const uint64_t front = (uint64_t)(vectors + room->threads - 1) / room->threads * room->threads;
    MUST(r->registers, <=, room->registers);
    MUST(r->shared_words, <=, front > room->shared_words ? front : room->shared_words);
    if (r->wide_words && !r->parts) MUST(r->registers, ==, 0);
    if (r->wide_words && !r->parts) MUST(r->shared_words, ==, front + VPPS_WIDE_WORDS);
    for (uint32_t i = 0; i < r->n && r->wide_words && !r->parts; i++) MUST(r->list[i].level, ==, VPPS_RESIDENT_STREAM);
    for (uint32_t i = 0; i < r->n && !r->wide_words; i++) {
        const vpps_resident *m = &r->list[i];
        const uint64_t words = (uint64_t)((m->rows + m->blocks - 1) / m->blocks) * m->columns,
                       of_cta = words * room->threads;
        if (m->is_short) { /* it gets no room */
            MUST(m->level, ==, VPPS_RESIDENT_STREAM);
            continue;
        }
        if (m->level != VPPS_RESIDENT_STREAM) {
            MUST(m->at, >=, next[m->level]); /* in the order of adding */
            next[m->level] = m->at + (uint32_t)words;
        }
        if (m->level == VPPS_RESIDENT_REGISTERS) {
            take(registers, r->registers, m->at, words);
            continue;
        }
        /* There was not enough room before, so there is not in the end. */
        MUST(words, >, room->registers - r->registers);
        if (m->level == VPPS_RESIDENT_SHARED) {
            take(shared, r->shared_words, (uint64_t)m->at * room->threads, of_cta);
        } else {
            MUST(m->level, ==, VPPS_RESIDENT_STREAM);
            MUST(of_cta + r->shared_words, >, room->shared_words);
        }
    }
    for (uint32_t w = 0; w < r->registers; w++) MUST(registers[w], ==, 1); /* without gaps */
}

/* ---------------------------------------------------------------- fragments, of products in bf16 */

/* Checks that every row that a virtual processor may have is in one fragment, whose columns for all warps together are those of the rows. */
static void check_fragments(const gpu_batch *b, const vpps_kernel_plan *p, const vpps_residents *r) {
    const uint32_t warps = p->threads / 32;
    for (uint32_t i = 0; i < r->n; i++) {
        const vpps_resident *m = &r->list[i];
        for (uint32_t row = 0; row < m->rows; row++) {
            bool found = false;
            for (uint32_t k = 0; k < r->n_fragments * VPPS_FRAGMENT_ROWS && !found; k++) {
                const vpps_fragment *f = &r->fragments[k / VPPS_FRAGMENT_ROWS];
                const vpps_weight_row *x = &f->rows[k % VPPS_FRAGMENT_ROWS];
                found =
                    x->matrix == m->matrix && x->transposed == m->transposed && x->row == row && f->shares == m->shares;
                if (found) MUST(f->length, ==, columns_of(b, m));
            }
            MUST(found, ==, true);
        }
    }
    for (uint32_t i = 0; i < r->n_fragments; i++) {
        const vpps_fragment *f = &r->fragments[i];
        MUST(f->steps * VPPS_FRAGMENT_DEPTH * warps, >=, f->length);
        MUST((f->steps - 1) * VPPS_FRAGMENT_DEPTH * warps, <, f->length);
        ck_assert_ptr_eq(vpps_resident_fragment(r, f), f); /* none twice */
    }
}

static void check_fragment_places(const vpps_residents *r, const vpps_kernel_room *room) {
    FREED uint8_t *registers = calloc(r->registers + 1u, 1), *shared = calloc(r->shared_words + 1u, 1);
    const uint32_t most =
        r->wide_words && room->registers > VPPS_WIDE_REGISTERS ? VPPS_WIDE_REGISTERS : room->registers;
    const uint64_t words_in_memory = r->memory_words / room->threads; /* of a thread, in scratch memory */
    FREED uint8_t *memory = calloc(words_in_memory + 1, 1);
    MUST(r->registers, <=, most);
    for (uint32_t i = 0; i < r->n_vectors; i++) take(shared, r->shared_words, r->vectors[i].at, r->vectors[i].rows);
    if (r->wide_words) take(shared, r->shared_words, r->shared_words - r->wide_words, r->wide_words);
    for (uint32_t i = 0; i < r->n_fragments; i++) {
        const vpps_fragment *f = &r->fragments[i];
        const uint32_t words = vpps_fragment_words(f, r->parts);
        for (uint32_t k = 0; k < VPPS_FRAGMENT_ROWS; k++)
            if (f->rows[k].matrix != VPPS_NO_PARAM)
                MUST(vpps_resident_of(r, f->rows[k].matrix, f->rows[k].transposed, f->shares)->level, >=, f->level);
        if (f->level == VPPS_RESIDENT_REGISTERS) {
            MUST(f->tall, ==, false); /* other warps read the weights of a tall product */
            take(registers, r->registers, f->at, words);
            continue;
        }
        if (!f->tall) MUST(words, >, most - r->registers);
        if (f->level == VPPS_RESIDENT_SHARED) {
            take(shared, r->shared_words, (uint64_t)f->at * room->threads, (uint64_t)words * room->threads);
        } else {
            MUST((uint64_t)words * room->threads + r->shared_words, >, room->shared_words);
            take(memory, words_in_memory, f->at, words);
        }
    }
    for (uint64_t w = 0; w < words_in_memory; w++) MUST(memory[w], ==, 1);
    for (uint32_t w = 0; w < r->registers; w++) MUST(registers[w], ==, 1);
}

/* ---------------------------------------------------------------- */

static uint32_t seen[VPPS_RESIDENT_STREAM + 1], transposed;

static void check_batch(const gpu_batch *b) {
    static const uint32_t registers[] = {160, 40, 7, 0}, shared[] = {42752, 12000, 0};
    vpps_kernel_plan p = gpu_batch_plan(b);
    vpps_residents *r = &p.residents;
    for (uint32_t k = 0; k < p.n_cells; k++) TEST_OK(vpps_residents_add(r, b->model, p.cells[k], p.threads));
    check_list(b, r);
    for (uint32_t i = 0; i < r->n; i++) check_rows(b, &p, &r->list[i]);
    for (size_t k = 0; k < VPPS_COUNT(registers) * VPPS_COUNT(shared); k++) {
        const vpps_kernel_room room = {p.threads, registers[k / VPPS_COUNT(shared)], shared[k % VPPS_COUNT(shared)], 0};
        vpps_residents_place(r, &room);
        check_places(r, &room);
        for (uint32_t i = 0; i < r->n; i++) {
            seen[r->list[i].level]++;
            transposed += r->list[i].transposed;
        }
    }
    vpps_kernel_plan_free(&p);
    for (uint32_t parts = 1; parts <= 2; parts++) {
        p = gpu_batch_plan(b);
        r = &p.residents;
        r->parts = parts;
        for (uint32_t k = 0; k < p.n_cells; k++) TEST_OK(vpps_residents_add(r, b->model, p.cells[k], p.threads));
        check_fragments(b, &p, r);
        for (size_t k = 0; k < VPPS_COUNT(registers); k++) {
            const vpps_kernel_room room = {p.threads, registers[k], shared[k % VPPS_COUNT(shared)], 0};
            vpps_residents_place(r, &room);
            check_fragment_places(r, &room);
        }
        vpps_kernel_plan_free(&p);
    }
}

static gpu_shape draw_shape(uint64_t *random) {
    static const uint32_t group[] = {1, 2, 3, 7, 16, 66}, groups[] = {1, 1, 2, 3}, rpw[] = {1, 2, 3, 8},
                          threads[] = {32, 64, 256, 384, 512};
#define ANY(list) list[vpps_random_below(random, (uint32_t)VPPS_COUNT(list))]
    gpu_shape s = {.sms = ANY(group), .groups = ANY(groups), .rpw = ANY(rpw), .threads = ANY(threads)};
#undef ANY
    s.sms *= s.groups;
    return s;
}

TEST_GROUP("resident", .seconds = 60);

TEST_EACH(drawn_models_hold_the_rules, 0, 4) {
    uint64_t random = test_seed() * 1000 + (uint64_t)_i;
    for (uint32_t i = 0; i < test_scaled(60); i++) {
        const gpu_shape shape = draw_shape(&random);
        AT_END(gpu_batch_close) gpu_batch b;
        gpu_batch_draw(&b, &shape, vpps_random(&random));
        check_batch(&b);
    }
    for (uint32_t level = 0; level < VPPS_COUNT(seen); level++) MUST(seen[level], >, 0);
    MUST(transposed, >, 0);
}

TEST_EACH(tree_lstms_hold_the_rules, 0, 3) {
    static const uint32_t sizes[][2] = {{64, 64}, {90, 70}, {256, 300}};
    uint64_t random = test_seed() + (uint64_t)_i;
    for (uint32_t i = 0; i < 6; i++) {
        const gpu_shape shape = draw_shape(&random);
        AT_END(gpu_batch_close) gpu_batch b;
        gpu_batch_tree_lstm(&b, &shape, sizes[_i][0], sizes[_i][1]);
        check_batch(&b);
    }
    MUST(transposed, >, 0);
}

/* Matrices get registers, then shared memory, as long as they fit, whatever happened to earlier ones. */
TEST(a_smaller_one_may_still_fit) {
    vpps_resident list[] = {
        {.matrix = 0, .rows = 3, .columns = 2, .blocks = 1}, {.matrix = 1, .rows = 10, .columns = 2, .blocks = 2},
        {.matrix = 2, .rows = 7, .columns = 1, .blocks = 2}, {.matrix = 3, .rows = 1, .columns = 1, .blocks = 1},
        {.matrix = 4, .rows = 2, .columns = 1, .blocks = 1}, {.matrix = 5, .rows = 8, .columns = 1, .blocks = 1}};
    vpps_resident_vector vectors[] = {{.vector = 6, .rows = 20}, {.vector = 7, .rows = 20}};
    vpps_residents r = {.list = list, .vectors = vectors, .n = VPPS_COUNT(list), .n_vectors = VPPS_COUNT(vectors)};
    const vpps_kernel_room room = {.threads = 32, .registers = 10, .shared_words = 64 + 11 * 32};
    static const struct {
        vpps_resident_level level;
        uint32_t at;
    } want[] = {{VPPS_RESIDENT_REGISTERS, 0}, {VPPS_RESIDENT_SHARED, 2}, {VPPS_RESIDENT_REGISTERS, 6},
                {VPPS_RESIDENT_SHARED, 12},   {VPPS_RESIDENT_STREAM, 0}, {VPPS_RESIDENT_STREAM, 0}};
    vpps_residents_place(&r, &room);
    for (uint32_t i = 0; i < r.n; i++) {
        ck_assert_uint_eq(list[i].level, want[i].level);
        if (list[i].level != VPPS_RESIDENT_STREAM) ck_assert_uint_eq(list[i].at, want[i].at);
    }
    ck_assert_uint_eq(r.registers, 10);
    ck_assert_uint_eq(r.shared_words, 64 + 11 * 32);
    ck_assert_uint_eq(vectors[0].at, 0);
    ck_assert_uint_eq(vectors[1].at, 20);
}

/* Blocks: one per row, unless threads are few or padding costs more than it saves; half of them for rows of a transposed matrix. */
TEST(rows_are_shared_out) {
    static const struct {
        uint32_t rows, threads, blocks;
        bool transposed;
    } want[] = {{1, 256, 1, false},  {2, 256, 2, false}, {3, 256, 4, false}, {4, 256, 4, false}, {8, 256, 8, false},
                {64, 256, 8, false}, {8, 32, 1, false},  {8, 384, 4, false}, {8, 96, 1, false},  {16, 512, 16, false},
                {10, 256, 4, false}, {2, 256, 2, true},  {4, 256, 4, true},  {8, 256, 4, true},  {16, 512, 8, true}};
    for (size_t i = 0; i < VPPS_COUNT(want); i++)
        ck_assert_uint_eq(vpps_blocks_of_rows(want[i].rows, want[i].transposed, want[i].threads), want[i].blocks);
}

/* More groups than keep all weights close pay with large batches alone: of a Tree-LSTM's sizes, hidden 512 and batches of 16 and 128 inputs are
 * predicted 384.6 and 2096.7 us in one group, 400.0 and 1807.7 us in two (bench/results/predicted-sm_90/predicted.jsonl). */
TEST(groups_of_streamed_weights_are_for_large_batches) {
    gpu_batch b;
    gpu_batch_tree_lstm(&b, &(gpu_shape){.sms = 132, .rpw = 1, .threads = 256}, 512, 512);
    const vpps_target *t = &b.layout.target;
    vpps_batch_extent e = {.n_vps = 132, .elems = 13 * 512 * 512, .rows = 512, .streamed = t->streamed, .vectors = 16};
    ck_assert_uint_eq(t->choose_groups(&e, t->most_groups), 1);
    e.vectors = 128;
    ck_assert_uint_eq(t->choose_groups(&e, t->most_groups), 2);
    gpu_batch_close(&b);
}

/* The largest number of groups that is said to stream nothing streams nothing, even with the registers that every kernel has for weights; if it is
 * more than one, batches by default get no more. */
TEST_EACH(the_most_groups_keep_all_close, 0, 8) {
    enum { SMS = 132, REGISTERS = 256 - 160 };
    static const struct {
        uint32_t size, rpw, threads, groups;
    } cases[] = {{64, 1, 256, 33}, {256, 1, 256, 4}, {256, 2, 256, 4}, {256, 8, 256, 4},
                 {256, 1, 512, 1}, {300, 1, 256, 1}, {512, 1, 256, 1}, {1024, 1, 256, 1}};
    gpu_shape shape = {.sms = SMS, .rpw = cases[_i].rpw, .threads = cases[_i].threads};
    gpu_batch b;
    gpu_batch_tree_lstm(&b, &shape, cases[_i].size, cases[_i].size);
    ck_assert_uint_eq(b.batch->n_groups, 1); /* the batch is one tree */
    uint32_t most = 1;
    for (uint32_t groups = 1; groups <= b.layout.target.most_groups; groups++)
        if (SMS % groups == 0 && !b.layout.streamed[groups]) most = groups;
    ck_assert_uint_eq(most, cases[_i].groups);
    if (most > 1 || cases[_i].size == 1024) ck_assert_uint_eq(b.layout.target.most_groups, most);
    gpu_batch_close(&b);
    if ((shape.groups = cases[_i].groups) == 1) return;
    gpu_batch_tree_lstm(&b, &shape, cases[_i].size, cases[_i].size);
    ck_assert_uint_eq(b.batch->n_groups, shape.groups);
    vpps_kernel_plan p = gpu_batch_plan(&b);
    for (uint32_t k = 0; k < p.n_cells; k++) TEST_OK(vpps_residents_add(&p.residents, b.model, p.cells[k], p.threads));
    const vpps_kernel_room room = {p.threads, REGISTERS, vpps_shared_for_weights(&b.machine, b.model->n_params), 0};
    vpps_residents_place(&p.residents, &room);
    for (uint32_t i = 0; i < p.residents.n; i++)
        ck_assert(p.residents.list[i].is_short || p.residents.list[i].level != VPPS_RESIDENT_STREAM);
    vpps_kernel_plan_free(&p);
    gpu_batch_close(&b);
}

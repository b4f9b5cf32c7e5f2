/* test_partition.c - plans of many models on many machines: every row has one place, loads are even, nothing exceeds the
 * machine. The places are walked here anew, slot by slot, from what partition.h says. */
#include "shapes.h"

#include <stdio.h>

static const struct { uint32_t threads, ctas_per_sm; } cta_shapes[] = {{256, 1}, {384, 1}, {512, 1}, {256, 2}};

static vpps_partition_choice draw_choice(uint64_t *random) {
    const uint32_t shape = vpps_random_below(random, VPPS_COUNT(cta_shapes));
    return (vpps_partition_choice){.rpw = 1u << vpps_random_below(random, 4),
                                   .threads = cta_shapes[shape].threads,
                                   .ctas_per_sm = cta_shapes[shape].ctas_per_sm,
                                   .vectors = 1u << vpps_random_below(random, 3),
                                   .spare = vpps_random_below(random, 4) ? 0 : vpps_random_below(random, 64),
                                   .transposed = vpps_random_below(random, 2),
                                   .deferred = vpps_random_below(random, 2)};
}

/* ---------------------------------------------------------------- what a plan must be */

static void check_row(const vpps_partition *p, uint32_t m, uint32_t row, uint32_t vp, uint32_t piece, uint32_t in) {
    const vpps_row_place at = vpps_partition_row(p, m, row);
    MUST(at.vp, ==, vp);
    MUST(at.warp, ==, piece % p->warps);
    MUST(at.slot, ==, piece / p->warps);
    MUST(at.row, ==, in);
}

/* One VP: its pieces follow each other without gaps, fill every warp evenly, and fit their slots. seen[m] counts how
 * often each row was met; longest[s] becomes the longest row in a slot. */
static void check_vp(const vpps_partition *p, bool columns, uint32_t vp, uint8_t **seen, uint32_t *longest) {
    const vpps_placing *placing = columns ? &p->columns : &p->rows;
    const uint32_t rpw = p->choice.rpw;
    uint32_t next = 0;
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        const uint32_t rows = columns ? p->matrices[m].cols : p->matrices[m].rows;
        const uint32_t elems = columns ? p->matrices[m].rows : p->matrices[m].cols;
        const vpps_pieces pieces = vpps_partition_pieces(p, columns, m, vp);
        const vpps_rows owned = vpps_rows_of(rows, rpw, p->n_vps, vp);
        MUST(pieces.first, ==, next);
        MUST(pieces.rows.first, ==, owned.first);
        MUST(pieces.rows.end, ==, owned.end);
        MUST(pieces.n, ==, divide_up(owned.end - owned.first, rpw));
        MUST(pieces.n, >=, divide_up(rows, rpw) / p->n_vps);
        MUST(pieces.n, <=, divide_up(divide_up(rows, rpw), p->n_vps));
        next += pieces.n;
        for (uint32_t row = owned.first; row < owned.end; row++) {
            const uint32_t piece = pieces.first + (row - owned.first) / rpw, slot = piece / p->warps;
            MUST(slot, <, placing->n_slots);
            longest[slot] = vpps_max_u32(longest[slot], divide_up(elems, VPPS_LANES));
            seen[m][row]++;
            if (!columns) check_row(p, m, row, vp, piece, (row - owned.first) % rpw);
        }
    }
    MUST(divide_up(next, p->warps), <=, placing->n_slots);
}

/* Every row once; slots as long as the longest row in them, in any VP; their registers and words apart. */
static void check_placing(const vpps_partition *p, bool columns) {
    const vpps_placing *placing = columns ? &p->columns : &p->rows;
    uint32_t *longest = calloc(placing->n_slots + 1, sizeof *longest);
    uint8_t **seen = calloc(p->n_matrices + 1, sizeof *seen);
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        seen[m] = calloc(columns ? p->matrices[m].cols : p->matrices[m].rows, 1);
    }
    for (uint32_t vp = 0; vp < p->n_vps; vp++) check_vp(p, columns, vp, seen, longest);
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        const uint32_t rows = columns ? p->matrices[m].cols : p->matrices[m].rows;
        for (uint32_t row = 0; row < rows; row++) MUST(seen[m][row], ==, 1);
        free(seen[m]);
    }
    uint32_t registers = 0, words = 0;
    for (uint32_t s = 0; s < placing->n_slots; s++) {
        const vpps_slot *slot = &placing->slots[s];
        MUST(slot->steps, ==, longest[s]);
        if (slot->level == VPPS_LEVEL_REGISTERS) {
            MUST(slot->at, ==, registers); /* one after the other: never two in one register */
            registers += p->choice.rpw * slot->steps;
        } else if (slot->level == VPPS_LEVEL_SHARED) {
            MUST(slot->at, ==, words);
            words += p->choice.rpw * slot->steps * p->choice.threads;
        }
        if (p->choice.transposed || !p->choice.deferred) MUST(slot->level, ==, VPPS_LEVEL_REGISTERS);
    }
    MUST(registers, ==, placing->registers);
    MUST(words, ==, placing->shared_words);
    free(longest);
    free(seen);
}

static int by_first(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Rows of the master copy: each in its VP's block, as long as its slot, apart from all others, before the zeros. */
static void check_master(const vpps_partition *p) {
    size_t n = 0, rows = 0;
    uint32_t longest = 0;
    for (uint32_t m = 0; m < p->n_matrices; m++) rows += p->matrices[m].rows;
    uint64_t(*spans)[2] = calloc(rows + 1, sizeof *spans);
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        longest = vpps_max_u32(longest, divide_up(p->matrices[m].cols, VPPS_LANES) * VPPS_LANES);
        for (uint32_t row = 0; row < p->matrices[m].rows; row++, n++) {
            const vpps_row_place at = vpps_partition_row(p, m, row);
            spans[n][0] = at.word;
            spans[n][1] = at.word + p->rows.slots[at.slot].steps * VPPS_LANES;
            MUST(spans[n][0], >=, at.vp * p->vp_words);
            MUST(spans[n][1], <=, (at.vp + 1) * p->vp_words);
            MUST(spans[n][1], <=, p->zero_row);
        }
    }
    qsort(spans, n, sizeof *spans, by_first);
    for (size_t i = 1; i < n; i++) MUST(spans[i - 1][1], <=, spans[i][0]);
    MUST(p->master_words, >=, p->zero_row + longest);
    free(spans);
}

static void check_gradients(const vpps_partition *p) {
    uint64_t(*spans)[2] = calloc(p->n_matrices + 1, sizeof *spans);
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        spans[m][0] = p->matrices[m].gradient;
        spans[m][1] = spans[m][0] + (uint64_t)p->matrices[m].rows * p->matrices[m].cols;
        MUST(spans[m][1], <=, p->gradient_words);
    }
    qsort(spans, p->n_matrices, sizeof *spans, by_first);
    for (uint32_t m = 1; m < p->n_matrices; m++) MUST(spans[m - 1][1], <=, spans[m][0]);
    free(spans);
}

static void check_matrices(const vpps_partition *p, const vpps_model *model) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < model->n_params; i++) {
        const uint32_t m = p->matrix_of_param[i];
        if (model->params[i].kind != VPPS_MATRIX) {
            MUST(m, ==, UINT32_MAX);
            continue;
        }
        found++;
        MUST(m, <, p->n_matrices);
        MUST(p->matrices[m].param, ==, i);
        MUST(p->matrices[m].rows, ==, model->params[i].rows);
        MUST(p->matrices[m].cols, ==, model->params[i].cols);
    }
    MUST(p->n_matrices, ==, found);
    for (uint32_t m = 1; m < p->n_matrices; m++) {
        MUST(divide_up(p->matrices[m - 1].cols, VPPS_LANES), >=, divide_up(p->matrices[m].cols, VPPS_LANES));
    }
}

/* What the machine has is enough. */
static void check_limits(const vpps_partition *p) {
    const vpps_partition_choice *c = &p->choice;
    const uint32_t weights = p->rows.registers * (c->deferred ? 1 : 2);
    MUST(p->cached, ==, weights + p->columns.registers);
    MUST(p->cached, <=, p->budget);
    MUST(p->budget, <=, 255);
    MUST(p->budget * c->threads * c->ctas_per_sm, <=, p->machine.sm_registers);
    MUST(p->rows.shared_words * 4, <=, p->machine.cta_shared_bytes);
    MUST(p->rows.shared_words * 4 * c->ctas_per_sm, <=, p->machine.sm_shared_bytes);
    MUST(p->columns.shared_words, ==, 0);
    MUST(p->warps, ==, c->threads / VPPS_LANES);
    MUST(p->n_vps, >=, 1);
    MUST(p->n_vps, <=, p->machine.sms * c->ctas_per_sm);
    for (uint32_t vp = 0; vp < p->n_vps && p->n_matrices; vp++) { /* nobody is idle in everything */
        uint32_t pieces = 0;
        for (uint32_t m = 0; m < p->n_matrices; m++) pieces += vpps_partition_pieces(p, false, m, vp).n;
        MUST(pieces, >=, 1);
    }
}

static void check_plan(const vpps_partition *p, const vpps_model *model) {
    check_matrices(p, model);
    check_limits(p);
    check_placing(p, false);
    MUST(p->columns.n_slots > 0, ==, p->choice.transposed && p->n_matrices);
    if (p->columns.n_slots) check_placing(p, true);
    check_master(p);
    check_gradients(p);
}

/* Makes a plan, and checks it if `check`; false: it does not fit, and says so with its numbers. */
static bool try_choice(const vpps_model *model, const vpps_machine *machine, const vpps_partition_choice *c,
                       bool check) {
    vpps_partition p;
    char need[64], have[64];
    const vpps_status status = vpps_partition_create(&p, model, machine, c);
    snprintf(need, sizeof need, ": %u registers a thread", p.cached);
    snprintf(have, sizeof have, "there are %u", p.budget);
    if (status == VPPS_OK) {
        if (check) check_plan(&p, model);
    } else {
        ck_assert_int_eq(status, VPPS_POOL);
        if (p.n_vps) {
            ck_assert_uint_gt(p.cached, p.budget);
            ck_assert_ptr_nonnull(strstr(vpps_error_message(), need));
            ck_assert_ptr_nonnull(strstr(vpps_error_message(), have));
            ck_assert(c->transposed || !c->deferred); /* deferred with partial sums fits always */
        } else { /* two CTAs' own shared memory is more than there is: it did not even begin */
            ck_assert_uint_eq(c->ctas_per_sm, 2);
            ck_assert_uint_lt(machine->sm_shared_bytes, 2 * (49u << 10));
            ck_assert_ptr_nonnull(strstr(vpps_error_message(), "shared memory"));
        }
    }
    vpps_partition_destroy(&p);
    return status == VPPS_OK;
}

START_TEST(random_plans_hold_their_rules)
    {
        uint64_t random = test_seed() * 1000 + (uint64_t)_i;
        uint32_t made = 0;
        for (uint32_t i = 0; i < test_scaled(100); i++) {
            shapes s;
            shapes_draw(&s, &random);
            const vpps_machine machine =
                shapes_machine(1 + vpps_random_below(&random, 200), vpps_random_below(&random, 4));
            const vpps_partition_choice c = draw_choice(&random);
            made += try_choice(&s.model, &machine, &c, true);
        }
        ck_assert_uint_ge(made, test_scaled(100) / 4);
    }
END_TEST

START_TEST(tree_lstms_hold_the_rules)
    {
        static const uint32_t hidden[] = {64, 100, 150, 256, 300, 384, 512, 1024, 2048};
        static const uint32_t sms[] = {1, 13, 132, 200};
        uint64_t random = test_seed();
        shapes s;
        shapes_tree_lstm(&s, hidden[_i], 300, 5);
        for (size_t k = 0; k < VPPS_COUNT(sms); k++) {
            const vpps_machine machine = shapes_machine(sms[k], (uint32_t)k);
            for (uint32_t i = 0; i < test_scaled(20); i++) {
                vpps_partition_choice c = draw_choice(&random);
                try_choice(&s.model, &machine, &c, true);
            }
        }
    }
END_TEST

START_TEST(a_model_without_matrices_has_a_plan)
    {
        shapes s = {0};
        shapes_add(&s, VPPS_VECTOR, 1, 7, 1);
        const vpps_machine machine = shapes_machine(3, 0);
        const vpps_partition_choice c = {.rpw = 1, .threads = 256, .ctas_per_sm = 1, .vectors = 1, .transposed = true};
        ck_assert(try_choice(&s.model, &machine, &c, true));
    }
END_TEST

/* ---------------------------------------------------------------- the lists of choices */

static bool same_choice(const vpps_partition_choice *a, const vpps_partition_choice *b) {
    return a->rpw == b->rpw && a->threads == b->threads && a->ctas_per_sm == b->ctas_per_sm &&
           a->vectors == b->vectors && a->spare == b->spare && a->transposed == b->transposed &&
           a->deferred == b->deferred;
}

static bool is_listed(const vpps_partition_choice *list, uint32_t n, const vpps_partition_choice *c) {
    for (uint32_t i = 0; i < n; i++) {
        if (same_choice(&list[i], c)) return true;
    }
    return false;
}

static bool respects(const vpps_partition_choice *c, const vpps_partition_choice *fixed, bool keep_strategy) {
    return (!fixed->rpw || c->rpw == fixed->rpw) && (!fixed->threads || c->threads == fixed->threads) &&
           (!fixed->ctas_per_sm || c->ctas_per_sm == fixed->ctas_per_sm) &&
           (!fixed->vectors || c->vectors == fixed->vectors) &&
           (!keep_strategy || (c->transposed == fixed->transposed && c->deferred == fixed->deferred));
}

/* Of this rpw, shape and strategy the list must have the most vectors that fit, if any. */
static void check_listed(const vpps_model *model, const vpps_machine *machine, vpps_partition_choice c,
                         const vpps_partition_choice *fixed, bool keep_strategy, const vpps_partition_choice *list,
                         uint32_t n) {
    bool wanted = true;
    for (c.vectors = 4; c.vectors; c.vectors /= 2) {
        const bool good = respects(&c, fixed, keep_strategy) && try_choice(model, machine, &c, false);
        ck_assert_int_eq(is_listed(list, n, &c), good && wanted);
        wanted = wanted && !good;
    }
}

static void check_choices(const vpps_model *model, const vpps_machine *machine, const vpps_partition_choice *fixed,
                          bool keep_strategy) {
    vpps_partition_choice list[VPPS_MAX_CHOICES];
    const uint32_t n = vpps_partition_choices(model, machine, fixed, keep_strategy, list, VPPS_MAX_CHOICES);
    ck_assert_uint_le(n, VPPS_MAX_CHOICES);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert(!is_listed(list, i, &list[i]));
        ck_assert(respects(&list[i], fixed, keep_strategy));
        if (i) ck_assert_uint_ge(list[i].rpw, list[i - 1].rpw);
    }
    for (uint32_t strategy = 0; strategy < 4; strategy++) {
        for (uint32_t rpw = 1; rpw <= VPPS_MAX_RPW; rpw *= 2) {
            for (size_t k = 0; k < VPPS_COUNT(cta_shapes); k++) {
                const vpps_partition_choice c = {.rpw = rpw,
                                                 .threads = cta_shapes[k].threads,
                                                 .ctas_per_sm = cta_shapes[k].ctas_per_sm,
                                                 .transposed = strategy & 1,
                                                 .deferred = strategy >> 1};
                check_listed(model, machine, c, fixed, keep_strategy, list, n);
            }
        }
    }
    vpps_partition_choice few[3]; /* less room: the beginning of the list, no more */
    const uint32_t n_few = vpps_partition_choices(model, machine, fixed, keep_strategy, few, 2);
    ck_assert_uint_eq(n_few, vpps_min_u32(n, 2));
    for (uint32_t i = 0; i < n_few; i++) ck_assert(same_choice(&few[i], &list[i]));
}

START_TEST(choices_are_those_that_fit)
    {
        uint64_t random = test_seed() * 77 + (uint64_t)_i;
        shapes s;
        shapes_draw(&s, &random);
        if (_i < 2) shapes_tree_lstm(&s, _i ? 512 : 256, 256, 5);
        const vpps_machine machine = shapes_machine(_i < 2 ? 132 : 1 + vpps_random_below(&random, 200), (uint32_t)_i);
        const vpps_partition_choice any = {0};
        check_choices(&s.model, &machine, &any, false);
        vpps_partition_choice fixed = draw_choice(&random);
        fixed.spare = 0;
        check_choices(&s.model, &machine, &fixed, true);
        fixed.vectors = 0;
        fixed.rpw = 0;
        check_choices(&s.model, &machine, &fixed, false);
        fixed.threads = 0;
        check_choices(&s.model, &machine, &fixed, true);
    }
END_TEST

START_TEST(no_model_is_too_large)
    {
        shapes s;
        shapes_tree_lstm(&s, 2048, 2048, 5);
        const vpps_machine machine = shapes_machine(1, 3);
        const vpps_partition_choice any = {0};
        vpps_partition_choice list[VPPS_MAX_CHOICES];
        const uint32_t n = vpps_partition_choices(&s.model, &machine, &any, false, list, VPPS_MAX_CHOICES);
        ck_assert_uint_ge(n, 1);
        for (uint32_t i = 0; i < n; i++) ck_assert(list[i].deferred && !list[i].transposed);
    }
END_TEST

START_TEST(what_is_no_choice_is_refused)
    {
        static const vpps_partition_choice wrong[] = {
            {.rpw = 0, .threads = 256, .ctas_per_sm = 1, .vectors = 1},
            {.rpw = 3, .threads = 256, .ctas_per_sm = 1, .vectors = 1},
            {.rpw = 16, .threads = 256, .ctas_per_sm = 1, .vectors = 1},
            {.rpw = 1, .threads = 128, .ctas_per_sm = 1, .vectors = 1},
            {.rpw = 1, .threads = 384, .ctas_per_sm = 2, .vectors = 1},
            {.rpw = 1, .threads = 256, .ctas_per_sm = 0, .vectors = 1},
            {.rpw = 1, .threads = 256, .ctas_per_sm = 3, .vectors = 1},
            {.rpw = 1, .threads = 256, .ctas_per_sm = 1, .vectors = 0},
            {.rpw = 1, .threads = 256, .ctas_per_sm = 1, .vectors = 3},
            {.rpw = 1, .threads = 256, .ctas_per_sm = 1, .vectors = 8},
        };
        shapes s;
        shapes_tree_lstm(&s, 64, 64, 5);
        const vpps_machine machine = shapes_machine(4, 0);
        for (size_t i = 0; i < VPPS_COUNT(wrong); i++) {
            vpps_partition p;
            TEST_FAILS(vpps_partition_create(&p, &s.model, &machine, &wrong[i]), VPPS_ARGUMENT, "expected rpw");
            vpps_partition_destroy(&p);
        }
    }
END_TEST

/* The register files are to be used: weights and gradients of the largest Tree-LSTM that fits 132 SMs. */
START_TEST(hidden_512_fills_the_register_files)
    {
        shapes s;
        shapes_tree_lstm(&s, 512, 512, 5);
        const vpps_machine machine = shapes_machine(132, 0);
        const vpps_partition_choice fixed = {.deferred = false};
        vpps_partition_choice first;
        vpps_partition p;
        ck_assert_uint_eq(vpps_partition_choices(&s.model, &machine, &fixed, true, &first, 1), 1);
        TEST_OK(vpps_partition_create(&p, &s.model, &machine, &first));
        ck_assert(!p.choice.deferred);
        ck_assert_uint_eq(p.n_vps, 132);
        const double share = (double)p.cached * p.choice.threads * p.choice.ctas_per_sm / p.machine.sm_registers;
        ck_assert_double_ge(share, 0.85);
        vpps_partition_destroy(&p);
    }
END_TEST

int main(void) {
    Suite *s = suite_create("partition");
    TCase *plans = tcase_create("plans");
    tcase_set_timeout(plans, 60);
    tcase_add_loop_test(plans, random_plans_hold_their_rules, 0, 8);
    tcase_add_loop_test(plans, tree_lstms_hold_the_rules, 0, 9);
    tcase_add_test(plans, a_model_without_matrices_has_a_plan);
    tcase_add_loop_test(plans, choices_are_those_that_fit, 0, 12);
    tcase_add_test(plans, no_model_is_too_large);
    tcase_add_test(plans, what_is_no_choice_is_refused);
    tcase_add_test(plans, hidden_512_fills_the_register_files);
    suite_add_tcase(s, plans);
    return test_main(s);
}

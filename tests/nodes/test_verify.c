/* test_verify.c - the verifier accepts every correct script and refuses every wrong one.
 *
 * What is wrong is not for the verifier to say: a changed script counts as wrong when a plain interpreter (symbolic.h)
 * gets another result from it, or runs out of memory's bounds, or stands still, in some order of the VPs, or when its log
 * of all accesses shows two that nothing orders. Changes that make no such difference (a wait that nothing depended on, operands of a sum swapped) are left out of the count.
 */
#include "common/random_graph.h"
#include "common/testing.h"
#include "mutate.h"
#include "symbolic.h"

static const uint32_t vp_counts[] = {1, 2, 3, 8};
enum { POOL_WORDS = 1 << 22, MODES = 7 };

/* A scheduled graph: one of a case's batches in one mode. */
typedef struct job {
    vpps_plan plan;
    vpps_optimizer optimizer;
    vpps_request request;
    vpps_node outputs[3];
    vpps_scheduler *scheduler;
    subject subject;
} job;

/* Modes 0 to 5 train (gradient strategy x how arguments' gradients are made), mode 6 infers. */
static void job_open(job *j, const rg_built *built, uint32_t batch, uint32_t n_vps, uint32_t mode, uint64_t seed) {
    vpps_graph *g = built->g[batch];
    *j = (job){.optimizer = {.kind = (vpps_optimizer_kind)(seed % 5),
                             .lr = 0.1f,
                             .momentum = 0.9f,
                             .beta1 = 0.9f,
                             .beta2 = 0.99f,
                             .epsilon = 1e-8f,
                             .weight_decay = 0.01f,
                             .clip = seed % 2 ? 5.0f : 0.0f}};
    ck_assert(plan_create(&j->plan, built->model, n_vps, POOL_WORDS));
    j->request = (vpps_request){.layout = true,
                                .loss = built->loss[batch],
                                .optimizer = &j->optimizer,
                                .gradients = (vpps_gradients)(mode % 2),
                                .transposed = (vpps_transposed)(mode / 2 % 3),
                                .guard = seed % 3 == 0,
                                .step = 3,
                                .dropout_key = vpps_dropout_key(seed, 1)};
    if (mode == MODES - 1) {
        for (uint32_t i = 0; i < 3; i++) j->outputs[i] = (uint32_t)(vpps_mix64(seed + i) % g->n_nodes);
        j->request = (vpps_request){.layout = true, .loss = VPPS_NO_NODE, .outputs = j->outputs, .n_outputs = 3};
    }
    TEST_OK(vpps_scheduler_create(&j->scheduler));
    TEST_OK(vpps_schedule(j->scheduler, &j->plan, g, &j->request));
    vpps_scheduler *s = j->scheduler;
    j->subject = (subject){s->script, s->script_words, &j->plan, g, &j->request, s->values, s->gradients};
}

static void job_close(job *j) {
    vpps_scheduler_destroy(j->scheduler);
    plan_destroy(&j->plan);
}

/* ---------------------------------------------------------------- correct scripts */

/* Small enough for the interpreter to run it some thousand times. */
static bool is_small(const job *j) { return j->scheduler->pool_words < 20000 && j->scheduler->script_words < 6000; }

START_TEST(correct_scripts_are_accepted)
    {
        const uint64_t first = test_seed() * 100000;
        for (uint64_t seed = first; seed < first + test_scaled(300); seed++) {
            rg_case c;
            rg_built built;
            rg_draw(&c, seed, 4 + (uint32_t)(seed % 40));
            c.empty_lists = seed % 2;
            TEST_OK(rg_build(&built, &c, NULL));
            for (uint32_t k = 0; k < VPPS_COUNT(vp_counts) * MODES; k++) {
                for (uint32_t batch = 0; batch < 2 && built.g[batch]; batch++) {
                    job j;
                    job_open(&j, &built, batch, vp_counts[k / MODES], k % MODES, seed);
                    const vpps_status status = verify_subject(&j.subject);
                    ck_assert_msg(status == VPPS_OK, "seed %llu, batch %u, %u VPs, mode %u: %s",
                                  (unsigned long long)seed, batch, vp_counts[k / MODES], k % MODES,
                                  vpps_error_message());
                    job_close(&j);
                }
            }
            rg_destroy(&built);
        }
    }
END_TEST

/* The same batch gives the same result however it is scheduled. Exact arithmetic makes that literal. */
START_TEST(all_schedules_agree)
    {
        const uint64_t first = test_seed() * 100000;
        for (uint64_t seed = first; seed < first + test_scaled(150); seed++) {
            rg_case c;
            rg_built built;
            symbolic_result one = {SYMBOLIC_FAULT, 0};
            rg_draw(&c, seed, 3 + (uint32_t)(seed % 12));
            TEST_OK(rg_build(&built, &c, NULL));
            for (uint32_t k = 0; k < VPPS_COUNT(vp_counts) * MODES; k++) {
                job j;
                if (k % MODES == MODES - 1) continue;
                job_open(&j, &built, 0, vp_counts[k / MODES], k % MODES, seed);
                if (is_small(&j)) {
                    const symbolic_result r = symbolic_run(&j.subject, (symbolic_order){0, false, k});
                    if (one.outcome == SYMBOLIC_FAULT) one = r;
                    ck_assert_int_eq(r.outcome, SYMBOLIC_DONE);
                    ck_assert_msg(r.hash == one.hash, "seed %llu: %u VPs in mode %u give another result",
                                  (unsigned long long)seed, vp_counts[k / MODES], k % MODES);
                }
                job_close(&j);
            }
            rg_destroy(&built);
        }
    }
END_TEST

/* ---------------------------------------------------------------- mutations */

typedef struct tally {
    uint32_t tried, refused; /* of those that make a difference */
    uint32_t equal;          /* that make none */
} tally;

static bool same_script(const editor *e) {
    return e->words == e->of->words && !memcmp(e->script, e->of->script, e->words * sizeof *e->script);
}

static void try_mutation(const subject *s, const symbolic_result *expected, uint32_t kind, uint64_t seed, tally *t) {
    editor e;
    ck_assert(editor_open(&e, s, seed));
    if (mutations[kind].apply(&e) && !same_script(&e)) {
        subject mutant = *s;
        /* a copy without slack, so that a read past the end is seen */
        uint32_t *script = malloc(e.words * sizeof *script);
        ck_assert_ptr_nonnull(script);
        memcpy(script, e.script, e.words * sizeof *script);
        mutant.script = script;
        mutant.words = e.words;
        const bool refused = verify_subject(&mutant) != VPPS_OK;
        const bool differs = symbolic_differs(&mutant, expected) || symbolic_races(&mutant);
        t->tried += differs;
        t->refused += differs && refused;
        t->equal += !differs;
        if (differs && !refused) {
            printf("accepted although %s: seed %llu; first words that differ:", mutations[kind].name,
                   (unsigned long long)seed);
            for (size_t i = 0, n = 0; i < s->words && n < 8; i++) {
                if (script[i] == s->script[i]) continue;
                printf(" [%zu] %x -> %x", i, s->script[i], script[i]);
                n++;
            }
            printf("\n");
        }
        free(script);
    }
    editor_close(&e);
}

static void mutate_job(const job *j, uint64_t seed, tally *tallies) {
    const symbolic_result expected = symbolic_run(&j->subject, (symbolic_order){0, false, 1});
    ck_assert_int_eq(expected.outcome, SYMBOLIC_DONE);
    ck_assert_msg(!symbolic_races(&j->subject), "seed %llu: a race in a correct script", (unsigned long long)seed);
    ck_assert_msg(!symbolic_differs(&j->subject, &expected),
                  "seed %llu: the result of a correct script depends on order", (unsigned long long)seed);
    for (uint32_t kind = 0; kind < n_mutations; kind++) {
        for (uint32_t i = 0; i < 3; i++) {
            try_mutation(&j->subject, &expected, kind, vpps_mix64(seed * 1000 + kind * 10 + i), &tallies[kind]);
        }
    }
}

START_TEST(wrong_scripts_are_refused)
    {
        const uint64_t first = test_seed() * 100000;
        tally *tallies = calloc(n_mutations, sizeof *tallies), all = {0, 0, 0};
        uint32_t n_scripts = 0;
        for (uint64_t seed = first; n_scripts < test_scaled(100) && seed < first + 3000; seed++) {
            rg_case c;
            rg_built built;
            rg_draw(&c, seed, 3 + (uint32_t)(seed % 12));
            TEST_OK(rg_build(&built, &c, NULL));
            job j;
            job_open(&j, &built, 0, vp_counts[seed % 4], (uint32_t)(seed / 4 % MODES), seed);
            if (is_small(&j) && verify_subject(&j.subject) == VPPS_OK) { /* refused ones: see above */
                mutate_job(&j, seed, tallies);
                n_scripts++;
            }
            job_close(&j);
            rg_destroy(&built);
        }
        for (uint32_t k = 0; k < n_mutations; k++) {
            printf("  %-42s %6u tried, %6u refused, %6u without effect\n", mutations[k].name, tallies[k].tried,
                   tallies[k].refused, tallies[k].equal);
            all.tried += tallies[k].tried;
            all.refused += tallies[k].refused;
            all.equal += tallies[k].equal;
        }
        printf("mutations of %u scripts: %u tried, %u rejected (%u more had no effect)\n", n_scripts, all.tried,
               all.refused, all.equal);
        free(tallies);
        ck_assert_uint_gt(all.tried, 0);
        ck_assert_uint_eq(all.tried, all.refused);
    }
END_TEST

/* ---------------------------------------------------------------- a script by hand */

/* loss = sum of the elements of tanh(x); two VPs. */
typedef struct hand_made {
    vpps_model *model;
    vpps_graph *g;
    vpps_plan plan;
    vpps_request request;
    vpps_node loss;
    uint32_t values[3], gradients[3];
    uint32_t script[96];
    subject subject;
} hand_made;

enum { HAND_X = 0, HAND_Y = 1, HAND_LOSS = 2, HAND_ROWS = 32 };

static void hand_open(hand_made *h) {
    float data[HAND_ROWS];
    memset(h, 0, sizeof *h);
    for (uint32_t i = 0; i < HAND_ROWS; i++) data[i] = (float)i;
    TEST_OK(vpps_model_create(&h->model, 1));
    TEST_OK(vpps_graph_create(&h->g, h->model));
    h->loss = vpps_sum_elements(h->g, vpps_tanh(h->g, vpps_input(h->g, HAND_ROWS, 1, data)));
    TEST_OK(vpps_graph_flatten(h->g));
    ck_assert(plan_create(&h->plan, h->model, 2, 4096));
    h->request = (vpps_request){.loss = VPPS_NO_NODE, .outputs = &h->loss, .n_outputs = 1};
    for (uint32_t x = 0; x < 3; x++) h->gradients[x] = VPPS_NO_OFFSET;
    h->values[HAND_X] = h->values[HAND_Y] = h->plan.batch; /* in place */
    h->values[HAND_LOSS] = h->plan.batch + 64;
    h->subject = (subject){h->script, 0, &h->plan, h->g, &h->request, h->values, h->gradients};
}

static void hand_close(hand_made *h) {
    vpps_graph_destroy(h->g);
    vpps_model_destroy(h->model);
    plan_destroy(&h->plan);
}

/* VP 0 loads and does half of the tanh, VP 1 the other half and the sum. `waits`: how many of VP 1's two waits are
 * there. `needed`: signals that the second one asks for. VP 0 has room for one in front. */
static void hand_write(hand_made *h, uint32_t waits, uint32_t needed) {
    vpps_script_header header = {.magic = VPPS_SCRIPT_MAGIC,
                                 .n_vps = 2,
                                 .row_block = 16,
                                 .n_barriers = 2,
                                 .pool_words = h->plan.batch + 65,
                                 .loss = VPPS_NO_OFFSET};
    uint32_t *w = h->script + VPPS_HEADER_WORDS, *start = w, x = h->values[HAND_X];
    w += 3 + HAND_ROWS;
    memcpy(start + 3, h->g->data, HAND_ROWS * sizeof *w);
    const uint32_t data = (uint32_t)(start + 3 - h->script);
    start[0] = (uint32_t)(w - h->script);
    const uint32_t first[] = {VPPS_I_NOP,
                              VPPS_I_NOP,
                              VPPS_I_NOP,
                              vpps_word(VPPS_I_LOAD, 0, HAND_ROWS),
                              x,
                              data,
                              VPPS_I_SIGNAL,
                              0,
                              vpps_word(VPPS_I_TANH, 0, 16),
                              x,
                              x,
                              VPPS_I_SIGNAL,
                              1,
                              VPPS_I_END};
    memcpy(w, first, sizeof first);
    w += VPPS_COUNT(first);
    start[1] = (uint32_t)(w - h->script);
    const uint32_t second[] = {waits > 0 ? VPPS_I_WAIT : VPPS_I_NOP,
                               0,
                               1,
                               vpps_word(VPPS_I_TANH, 0, 16),
                               x + 16,
                               x + 16,
                               VPPS_I_SIGNAL,
                               1,
                               waits > 1 ? VPPS_I_WAIT : VPPS_I_NOP,
                               1,
                               needed,
                               vpps_word(VPPS_I_SUM_ELEMENTS, 0, HAND_ROWS),
                               h->values[HAND_LOSS],
                               x,
                               VPPS_I_END};
    for (uint32_t i = 0; i < VPPS_COUNT(second); i++) w[i] = second[i];
    for (uint32_t i = 1; i < 3 && waits < 1; i++) w[i] = VPPS_I_NOP;
    for (uint32_t i = 9; i < 11 && waits < 2; i++) w[i] = VPPS_I_NOP;
    w += VPPS_COUNT(second);
    start[2] = header.words = (uint32_t)(w - h->script);
    h->subject.words = header.words;
    memcpy(h->script, &header, sizeof header);
}

START_TEST(a_script_by_hand)
    {
        hand_made h;
        hand_open(&h);
        hand_write(&h, 2, 2);
        TEST_OK(verify_subject(&h.subject));
        hand_write(&h, 1, 2);
        TEST_FAILS(verify_subject(&h.subject), VPPS_SCRIPT, "VP 1, instruction at");
        TEST_FAILS(verify_subject(&h.subject), VPPS_SCRIPT, "without a barrier between");
        hand_write(&h, 0, 2);
        TEST_FAILS(verify_subject(&h.subject), VPPS_SCRIPT, "tanh 16 =");
        hand_write(&h, 2, 1); /* enough signals come, but which? */
        TEST_FAILS(verify_subject(&h.subject), VPPS_SCRIPT, "without a barrier between");
        hand_write(&h, 2, 3);
        TEST_FAILS(verify_subject(&h.subject), VPPS_SCRIPT, "waits for 3 signals, barrier 1 gets 2");
        hand_close(&h);
    }
END_TEST

/* Two VPs that wait for each other. */
START_TEST(a_deadlock_is_found)
    {
        hand_made h;
        hand_open(&h);
        hand_write(&h, 2, 2);
        uint32_t *w = h.script + vpps_script_starts(h.script)[0];
        const uint32_t waiting[] = {VPPS_I_WAIT, 1, 2}; /* VP 0 in front of what VP 1 waits for */
        memcpy(w, waiting, sizeof waiting);
        TEST_FAILS(verify_subject(&h.subject), VPPS_SCRIPT, "deadlock");
        hand_close(&h);
    }
END_TEST

/* VP 0 sums x up while VP 1 puts its tanh in its place; nothing but a barrier keeps the one from the other. */
START_TEST(a_write_waits_for_who_reads)
    {
        for (uint32_t waits = 0; waits < 2; waits++) {
            hand_made h;
            hand_open(&h);
            vpps_graph_clear(h.g);
            float data[HAND_ROWS] = {1};
            const vpps_node x = vpps_input(h.g, HAND_ROWS, 1, data), y = vpps_tanh(h.g, x);
            const vpps_node outputs[] = {y, vpps_sum_elements(h.g, x)};
            TEST_OK(vpps_graph_flatten(h.g));
            h.request = (vpps_request){.loss = VPPS_NO_NODE, .outputs = outputs, .n_outputs = 2};
            const uint32_t at_x = h.values[HAND_X], common = VPPS_HEADER_WORDS + 3, first = common + HAND_ROWS;
            const uint32_t words[] = {
                vpps_word(VPPS_I_LOAD, 0, HAND_ROWS), at_x, common, VPPS_I_SIGNAL, 0,
                vpps_word(VPPS_I_SUM_ELEMENTS, 0, HAND_ROWS), h.values[HAND_LOSS], at_x, VPPS_I_SIGNAL, 1, VPPS_I_END,
                /* VP 1 */
                VPPS_I_WAIT, 0, 1, waits ? VPPS_I_WAIT : VPPS_I_NOP, waits ? 1 : VPPS_I_NOP, waits ? 1 : VPPS_I_NOP,
                vpps_word(VPPS_I_TANH, 0, HAND_ROWS), at_x, at_x, VPPS_I_END};
            const vpps_script_header header = {.magic = VPPS_SCRIPT_MAGIC,
                                               .words = first + (uint32_t)VPPS_COUNT(words),
                                               .n_vps = 2,
                                               .row_block = 16,
                                               .n_barriers = 2,
                                               .pool_words = h.plan.batch + 65,
                                               .loss = VPPS_NO_OFFSET};
            const uint32_t starts[] = {first, first + 11, header.words};
            ck_assert_uint_le(header.words, VPPS_COUNT(h.script));
            memcpy(h.script, &header, sizeof header);
            memcpy(h.script + VPPS_HEADER_WORDS, starts, sizeof starts);
            memcpy(h.script + common, data, sizeof data);
            memcpy(h.script + first, words, sizeof words);
            h.subject.words = header.words;
            if (waits) TEST_OK(verify_subject(&h.subject));
            if (!waits) TEST_FAILS(verify_subject(&h.subject), VPPS_SCRIPT, "which VP 0 reads without a barrier");
            hand_close(&h);
        }
    }
END_TEST

/* Where the host makes the products, a VP without rows of a matrix gathers its part of the vectors all the same. */
START_TEST(every_vp_gathers_for_the_host)
    {
        enum { VPS = 3, ROWS = 2 };
        vpps_model *model;
        vpps_graph *g;
        vpps_param W;
        vpps_plan plan;
        vpps_scheduler *s;
        const float data[ROWS] = {1, 2};
        const vpps_optimizer optimizer = {.kind = VPPS_SGD, .lr = 0.1f};
        TEST_OK(vpps_model_create(&model, 1));
        TEST_OK(vpps_add_matrix(model, &W, "W", ROWS, ROWS, NULL));
        TEST_OK(vpps_graph_create(&g, model));
        ck_assert(plan_create(&plan, model, VPS, 4096));
        ck_assert(plan.host_products && plan.row_block == 1);
        const vpps_request request = {.loss = vpps_sum_elements(g, vpps_matvec(g, W, vpps_input(g, ROWS, 1, data))),
                                      .optimizer = &optimizer,
                                      .step = 1,
                                      .layout = true};
        TEST_OK(vpps_scheduler_create(&s));
        TEST_OK(vpps_schedule(s, &plan, g, &request));
        const subject script = {s->script, s->script_words, &plan, g, &request, s->values, s->gradients};
        TEST_OK(verify_subject(&script));
        uint32_t vp = 0; /* the one without rows */
        for (vpps_rows r; r = vpps_rows_of(ROWS, 1, VPS, vp), r.first < r.end;) vp++;
        const uint32_t *starts = vpps_script_starts(s->script);
        uint32_t *call = NULL, *end = s->script + starts[vp + 1];
        for (uint32_t *at = s->script + starts[vp]; at < end; at += vpps_instruction_words(at, end)) {
            if (vpps_word_opcode(*at) != VPPS_I_CALL || vpps_word_opcode(s->script[at[1]]) != VPPS_I_OUTER) continue;
            ck_assert_uint_eq(vpps_word_length(*at), vpps_instruction_words(s->script + at[1], s->script + at[1] + 9));
            call = at; /* of a segment with nothing else */
        }
        ck_assert_ptr_nonnull(call);
        call[0] = call[1] = VPPS_I_NOP;
        TEST_FAILS(verify_subject(&script), VPPS_SCRIPT, "does not gather its part for matrix W");
        vpps_scheduler_destroy(s);
        plan_destroy(&plan);
        vpps_graph_destroy(g);
        vpps_model_destroy(model);
    }
END_TEST

START_TEST(places_must_be_right)
    {
        hand_made h;
        hand_open(&h);
        hand_write(&h, 2, 2);
        h.values[HAND_LOSS] = h.plan.batch + 70; /* beyond the header's pool */
        TEST_FAILS(verify_subject(&h.subject), VPPS_SCRIPT, "outside the batch's words");
        h.values[HAND_LOSS] = h.plan.batch + 31; /* in the middle of what is summed: may be, it is read before */
        hand_write(&h, 2, 2);
        TEST_OK(verify_subject(&h.subject));
        h.values[HAND_LOSS] = h.plan.batch + 64;
        hand_write(&h, 2, 2);
        for (size_t n = 0; n < h.subject.words; n++) {
            subject cut = h.subject;
            cut.words = n;
            ck_assert_int_eq(verify_subject(&cut), VPPS_SCRIPT);
        }
        hand_close(&h);
    }
END_TEST

/* ---------------------------------------------------------------- the listing */

static char *listing(const uint32_t *script, size_t words, const vpps_graph *g, vpps_status *status) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(file);
    *status = vpps_print_script(script, words, g, file);
    fclose(file);
    return text;
}

START_TEST(scripts_are_printed)
    {
        rg_case c;
        rg_built built;
        vpps_status status;
        rg_draw(&c, 12, 20);
        TEST_OK(rg_build(&built, &c, NULL));
        job j;
        job_open(&j, &built, 0, 2, 1, 12);
        char *text = listing(j.subject.script, j.subject.words, built.g[0], &status);
        TEST_OK(status);
        static const char *const parts[] = {"for 2 VPs",      "training",     "VP 0, ", "VP 1, ",
                                            "signal barrier", "wait barrier", "end"};
        for (size_t i = 0; i < VPPS_COUNT(parts); i++)
            ck_assert_msg(strstr(text, parts[i]), "no \"%s\" in:\n%s", parts[i], text);
        free(text);
        for (size_t n = 0; n < j.subject.words; n += 7) { /* cut off: prints what there is */
            uint32_t *cut = malloc((n + 1) * sizeof *cut);
            memcpy(cut, j.subject.script, n * sizeof *cut);
            free(listing(cut, n, NULL, &status));
            free(cut);
        }
        for (uint64_t seed = 0; seed < test_scaled(2000); seed++) {
            editor e;
            ck_assert(editor_open(&e, &j.subject, seed));
            for (uint32_t i = 0; i < 4; i++) mutations[n_mutations - 1].apply(&e);
            free(listing(e.script, e.words, built.g[0], &status));
            editor_close(&e);
        }
        job_close(&j);
        rg_destroy(&built);
    }
END_TEST

int main(void) {
    Suite *suite = suite_create("verify");
    TCase *t = tcase_create("verify");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, a_script_by_hand);
    tcase_add_test(t, a_deadlock_is_found);
    tcase_add_test(t, a_write_waits_for_who_reads);
    tcase_add_test(t, every_vp_gathers_for_the_host);
    tcase_add_test(t, places_must_be_right);
    tcase_add_test(t, scripts_are_printed);
    tcase_add_test(t, correct_scripts_are_accepted);
    tcase_add_test(t, all_schedules_agree);
    tcase_add_test(t, wrong_scripts_are_refused);
    suite_add_tcase(suite, t);
    return test_main(suite);
}

/* test_export.c - exported cells beside the engine: networks of the table after some training, random cells over all operations, every
 * precision, weights beside the file, indices out of range; and what is refused.
 *
 * VPPS_EXPORT_BUILDS says how programs are built and run, as "COMPILER FLAGS|RUNNER;...": "cc -O1|;aarch64-linux-gnu-gcc -static|qemu-aarch64",
 * for every network. The default is this machine's cc, for a few. */
#include "common/folder.h"
#include "common/random_graph.h"
#include "export/replay.h"
#include "models/fixture.h"

TEST_GROUP("export", .seconds = 300, .before_each = (SFun)folder_make);

static const char strict[] = "-std=c99 -Wall -Wextra -Wpedantic -Werror";

enum { EVERY_WAY = -1 };

/* Builds and runs a replay's program in every requested way, or in one of them by turns. */
static void run_replay(const replay *r, const char *what, int turn) {
    const char *asked = getenv("VPPS_EXPORT_BUILDS");
    char builds[1024], command[2048], *rest = builds;
    snprintf(builds, sizeof builds, "%s", asked && *asked ? asked : "cc -O1|");
    TEST_OK(replay_write(r));
    int ways = 1, way = 0;
    for (const char *c = builds; *c; c++) ways += *c == ';';
    for (char *build; (build = strsep(&rest, ";")); way++) {
        if (turn != EVERY_WAY && way != turn % ways) continue;
        const char *cc = strsep(&build, "|"); /* the calls need not be fast */
        snprintf(command, sizeof command,
                 "cd '%s' && %s %s -c %s.c 2>&1 && %s %s -O0 -DALONE -o %s %s.o %s_calls.c -lm 2>&1 && %s ./%s",
                 r->folder, cc, strict, r->name, cc, strict, r->name, r->name, r->name, build ? build : "", r->name);
        ck_assert_msg(system(command) == 0, "%s: %s", what, command);
    }
}

/* ---------------------------------------------------------------- networks */

enum { HIDDEN = 21, EMBED = 18, STEPS = 5 };

/* Opens a network with all of its options, or with the fewest, and trains it for some steps. */
static void open_trained(fixture *f, vpps_handle **h, int i) {
    vpps_options o = options_for("cpu");
    o.verify = false;
    fixture_open(f, i, NULL, HIDDEN, EMBED, 0.2f);
    TEST_OK(vpps_handle_create(h, f->model, &o));
    for (int k = 0; k < STEPS; k++) train_batch(*h, f->g, build(f, loss_heads(f)));
    TEST_OK(vpps_read_parameters(*h));
}

static void check_network(int i, vpps_c_precision precision, bool beside, int turn) {
    AT_END(fixture_close) fixture f;
    OWNED(vpps_handle) *h;
    open_trained(&f, &h, i);
    build(&f, NET_HEADS_ALL);
    /* another test checks rounded weights: here, that products read what was written */
    /* through all layers of a transformer; the engine's order of sums is that of the processor's vectors */
    const double tolerances[] = {[VPPS_C_FP32] = 4e-6, [VPPS_C_BF16] = 0.05, [VPPS_C_INT8] = 0.05};
    const replay r = {f.g,       h,      folder_path(""),          "NET",
                      precision, beside, precision == VPPS_C_FP32, tolerances[precision]};
    run_replay(&r, f.name, turn);
}

static bool is_of_few(int i) {
    static const char *const few[] = {"tree-lstm", "transformer-tagger", "act", "child-sum-tree-lstm",
                                      "lstm-nmt with input feeding"};
    for (size_t k = 0; k < VPPS_COUNT(few); k++)
        if (strcmp(case_at(i).name, few[k]) == 0) return true;
    return false;
}

/* Returns whether to test network i: a few networks; with requested builds, each one with all choices; with VPPS_TEST_SCALE=full every choice. */
static bool is_asked(int i) {
    return is_of_few(i) || test_full() || (getenv("VPPS_EXPORT_BUILDS") && case_at(i).fullest);
}

TEST_EACH(networks_are_what_the_engine_has, 0, case_count()) {
    if (is_asked(_i)) check_network(_i, VPPS_C_FP32, false, is_of_few(_i) ? EVERY_WAY : _i);
}

TEST(weights_are_rounded_and_beside) {
    int i = 0;
    while (strcmp(case_at(i).name, "tree-lstm") != 0) i++;
    check_network(i, VPPS_C_BF16, true, EVERY_WAY);
    check_network(i, VPPS_C_INT8, false, EVERY_WAY);
}

/* ---------------------------------------------------------------- size */

/* Returns the bytes of network i's code and constants with -O2, hidden size 256, and the weights in a separate file. */
static long code_bytes(int i) {
    AT_END(fixture_close) fixture f;
    fixture_open(&f, i, NULL, 256, 256, 0.2f);
    FILE *c = fopen(folder_path("NET.c"), "w"), *weights = tmpfile();
    ck_assert(c && weights);
    TEST_OK(vpps_export_c(f.model, c, &(vpps_c_export){.size = sizeof(vpps_c_export), .weights = weights}));
    fclose(c), fclose(weights);
    char command[1024];
    snprintf(command, sizeof command,
             "cd '%s' && cc -std=c99 -O2 -c NET.c && size NET.o | awk 'NR == 2 { print $1 + $2 + $3 }'",
             folder_path(""));
    FILE *size = popen(command, "r");
    long bytes = 0;
    ck_assert(size && fscanf(size, "%ld", &bytes) == 1 && pclose(size) == 0);
    return bytes;
}

/* Checks every network with VPPS_TEST_SCALE=full, else one and the largest one. */
TEST_EACH(code_without_weights_is_small, 0, case_count()) {
    const net_case c = case_at(_i);
    if (!test_full() && strcmp(c.name, "tree-lstm") != 0 &&
        strcmp(c.name, "lstm-nmt with input feeding, 3 layers") != 0)
        return;
    const long bytes = code_bytes(_i);
    ck_assert_int_gt(bytes, 1000);
    ck_assert_int_lt(bytes, 200000);
}

/* ---------------------------------------------------------------- random cells */

/* Vertices read the engine's values, so that each cell's own rounding is visible. */
static void check_random(uint64_t seed) {
    rg_case c;
    AT_END(rg_destroy) rg_built built;
    OWNED(vpps_handle) *h = NULL;
    rg_draw(&c, seed, 24);
    TEST_OK(rg_build(&built, &c, NULL));
    uint32_t n = 0;
    for (size_t i = 0; i < built.g[0]->n_records; i++) n += built.g[0]->records[i].cell != VPPS_NODE_RECORD;
    if (!n) return; /* no cell is applied */
    const vpps_options o = options_for("cpu");
    TEST_OK(vpps_handle_create(&h, built.model, &o));
    char what[64];
    snprintf(what, sizeof what, "the case of seed %llu", (unsigned long long)seed);
    run_replay(&(replay){built.g[0], h, folder_path(""), "NET", VPPS_C_FP32, false, false, 2e-5}, what,
               (int)(seed & 0xffff));
}

TEST_EACH(random_cells_are_what_the_engine_has, 0, test_full() ? 100 : 6) { check_random(test_seed() + (uint64_t)_i); }

/* ---------------------------------------------------------------- what values decide */

/* Numbers that select entries and rows: existing ones, ones beyond the last or before the first, and NaN. */
TEST(numbers_out_of_range_select_nothing_beyond) {
    static const float numbers[] = {0, 1.7f, 4, 5, 1e30f, -1, -1e30f, INFINITY, -INFINITY, NAN, 4.9999f};
    vpps_cell cell;
    const vpps_options o = options_for("cpu");
    OWNED(vpps_model) *m = new_model(1);
    const vpps_param table = add_lookup(m, "table/*?", 5, 3, 1);
    vpps_graph *c = begin_cell(m, "a cell */ ?\?/");
    const vpps_node number = vpps_pull(c, 1, 1), x = vpps_pull(c, 5, 1);
    vpps_push(c, vpps_lookup_at(c, table, number));
    vpps_push(c, vpps_select_rows_at(c, x, number));
    vpps_push(c, vpps_argmax(c, vpps_scale_by(c, x, number)));
    vpps_push(c, number);
    cell = end_cell(c);
    OWNED(vpps_graph) *g = new_graph(m);
    const vpps_node rows = vpps_input(g, 5, 1, (const float[]){3, -1, 4, 1, -5});
    for (size_t i = 0; i < VPPS_COUNT(numbers); i++) {
        const vpps_node both[] = {vpps_input(g, 1, 1, &numbers[i]), rows};
        APPLY(g, cell, PULLS(2, both));
    }
    OWNED(vpps_handle) *h = new_handle(m, &o);
    setenv("VPPS_EXPORT_BUILDS", "cc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all|", 0);
    run_replay(&(replay){g, h, folder_path(""), "NET", VPPS_C_FP32, false, false, 1e-6}, "numbers", EVERY_WAY);
}

/* Parameters with the names of the function's own arguments and values. */
TEST(names_of_parameters_are_none_of_the_function) {
    const vpps_options o = options_for("cpu");
    OWNED(vpps_model) *m = new_model(1);
    const vpps_param W = add_matrix(m, "r", 4, 4), b = add_vector(m, "pull0", 4), u = add_vector(m, "out", 4);
    vpps_graph *c = begin_cell(m, "n");
    const vpps_node x = vpps_pull(c, 4, 1), y = vpps_tanh(c, vpps_affine1(c, b, W, x));
    vpps_scatter(c, vpps_tanh(c, vpps_affine1(c, u, W, y)));
    const vpps_cell cell = end_cell(c);
    OWNED(vpps_graph) *g = new_graph(m);
    const vpps_node given = vpps_input(g, 4, 1, (const float[]){0.5f, -1, 2, 0.25f});
    APPLY(g, cell, PULLS(1, &given));
    OWNED(vpps_handle) *h = new_handle(m, &o);
    run_replay(&(replay){g, h, folder_path(""), "NET", VPPS_C_FP32, false, false, 1e-6}, "names", EVERY_WAY);
}

/* Cells that run if a value is a certain number, and otherwise pass inputs, or zeros, on. */
TEST(conditions_hand_on_what_is_given) {
    const vpps_options o = options_for("cpu");
    OWNED(vpps_model) *m = new_model(1);
    const vpps_param W = add_matrix(m, "W", 4, 4);
    vpps_graph *c = begin_cell(m, "case 2");
    const vpps_node which = vpps_pull(c, 1, 1), x = vpps_pull(c, 4, 1);
    TEST_OK(vpps_condition_is(c, which, 2));
    TEST_OK(vpps_scatter_else(c, vpps_tanh(c, vpps_matvec(c, W, x)), x));
    TEST_OK(vpps_scatter_else(c, vpps_scale(c, x, -0.3f), VPPS_NO_NODE));
    const vpps_cell cell = end_cell(c);
    OWNED(vpps_graph) *g = new_graph(m);
    const vpps_node given = vpps_input(g, 4, 1, (const float[]){0.5f, -1, 2, 0.25f});
    for (int i = 0; i < 4; i++) {
        const vpps_node both[] = {vpps_constant(g, 1, 1, (float)i), given};
        APPLY(g, cell, PULLS(2, both));
    }
    OWNED(vpps_handle) *h = new_handle(m, &o);
    run_replay(&(replay){g, h, folder_path(""), "NET", VPPS_C_FP32, false, false, 1e-6}, "conditions", EVERY_WAY);
}

/* ---------------------------------------------------------------- what is refused */

static void refuses(const vpps_model *m, const vpps_c_export *options, const char *why) {
    FREED char *text;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    ck_assert_int_eq(vpps_export_c(m, f, options), VPPS_ARGUMENT);
    ck_assert_msg(strstr(vpps_error_message(), why) != NULL, "%s", vpps_error_message());
    fclose(f);
}

TEST(what_cannot_be_exported_is_named) {
    OWNED(vpps_model) *m = new_model(1);
    refuses(m, NULL, "the model has no cells");
    const vpps_param W = add_matrix(m, "W", 2, 2);
    vpps_graph *c = begin_cell(m, "unit");
    vpps_push(c, vpps_matvec(c, W, vpps_pull(c, 2, 1)));
    end_cell(c);
    refuses(m, &(vpps_c_export){.size = sizeof(vpps_c_export), .prefix = "int x"}, "expected a C identifier");
    refuses(m, &(vpps_c_export){.size = 0}, "size");
    refuses(m, &(vpps_c_export){.size = sizeof(vpps_c_export), .precision = (vpps_c_precision)7}, "precision 7");
    vpps_param_values(m, W)[3] = NAN;
    refuses(m, NULL, "parameter W: element 3 is nan; expected a finite number");
    vpps_param_values(m, W)[3] = 3.4e38f;
    refuses(m, &(vpps_c_export){.size = sizeof(vpps_c_export), .precision = VPPS_C_BF16}, "of bf16's range");
}

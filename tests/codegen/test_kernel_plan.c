/* test_kernel_plan.c - what the tables of a plan say. (Whether rows and places fit together: test_resident.c.) */
#include "cli/output/kernel_plan_print.h"
#include "gpu_batch.h"

static vpps_status compile_nothing(void *context, const vpps_kernel_plan *plan, const char *source,
                                   const char *description, vpps_cubin_report *report) {
    (void)context, (void)plan, (void)source, (void)description, (void)report;
    return VPPS_OK;
}

/* Makes a plan of a Tree-LSTM's kernel on 14 SMs; without `registers` for weights these lie in shared memory. */
static void open_plan(vpps_kernel_plan *p, gpu_batch *b, const gpu_shape *shape, uint32_t hidden, uint32_t registers) {
    gpu_batch_tree_lstm(b, shape, hidden, hidden - 20);
    *p = gpu_batch_plan(b);
    vpps_specialiser s = gpu_batch_specialiser(b);
    vpps_cubin_report report;
    s.compile = compile_nothing;
    TEST_OK(vpps_specialise(&s, p, &registers, NULL, &report));
}

static void close_plan(vpps_kernel_plan *p, gpu_batch *b) {
    vpps_kernel_plan_free(p);
    gpu_batch_close(b);
}

/* Returns what a call writes as text that the caller frees. */
static char *tables(const vpps_kernel_plan *p, const gpu_batch *b, uint32_t vps) {
    char *text = NULL;
    size_t bytes;
    FILE *f = need(open_memstream(&text, &bytes));
    TEST_OK(vpps_kernel_plan_print(p, b->model, &b->machine, vps, f));
    fclose(f);
    return text;
}

static void check_says(const char *text, const char *line) {
    ck_assert_msg(strstr(text, line) != NULL, "no \"%s\" in\n%s", line, text);
}

/* Checks the table's line of a matrix. */
static void check_matrix(const char *text, const gpu_batch *b, const vpps_resident *m) {
    char line[200], place[64] = "read at each use";
    const uint32_t words = vpps_words_of_thread(m);
    if (m->level != VPPS_RESIDENT_STREAM)
        snprintf(place, sizeof place, "%u - %u of a thread", m->at, m->at + words - 1);
    snprintf(line, sizeof line, "\n%-6s %-10s %8u %8u %9u %8u  %-10s %s\n", b->model->params[m->matrix].name,
             m->transposed ? "transposed" : "", rows_of(b, m), columns_of(b, m), m->rows, words,
             vpps_resident_levels[m->level], place);
    check_says(text, line);
}

/* Two groups, with weights at all levels of memory. */
static const gpu_shape shape = {14, 2, 8, 64};

TEST_GROUP("kernel plan", .seconds = 30);

TEST(tables_say_what_the_plan_is) {
    static const char *const lines[] = {
        "machine        test: 14 SMs of 65536 registers, shared memory of 228.0 KiB\n",
        "\nVPs            14 CTAs of 64 threads, in groups of 7 that each have the model; rows by 8\n",
        "\ncells          2, of 13 stages\n",
        "\nregisters      144 of a thread for weights: 14.1 % of all SMs' register file\n",
        "\nshared memory  156.5 KiB of weights a CTA, 51.8 KiB for tiles, 10.5 KiB for a script\n",
        "\n  VP   rows/120   rows/100  registers     shared     stream     fill\n",
        "\n   0         16          8       4800      24000      17360   59.5 %\n",
        "\n  13         24         12       7200      36000      26040   89.3 %\n",
    };
    vpps_kernel_plan p;
    gpu_batch b;
    bool seen[VPPS_RESIDENT_STREAM + 1] = {false};
    open_plan(&p, &b, &shape, 120, 0);
    FREED char *all = tables(&p, &b, 0), *some = tables(&p, &b, 3), *more = tables(&p, &b, 15);
    for (size_t i = 0; i < VPPS_COUNT(lines); i++) check_says(all, lines[i]);
    for (uint32_t i = 0; i < p.residents.n; i++) {
        const vpps_resident *m = &p.residents.list[i];
        if (!seen[m->level]) check_matrix(all, &b, m);
        seen[m->level] = true;
    }
    for (size_t level = 0; level < VPPS_COUNT(seen); level++) ck_assert(seen[level]);
    ck_assert_ptr_null(strstr(all, "more VPs"));
    ck_assert_str_eq(all, more);
    check_says(some, "%\n ... 11 more VPs\n");
    close_plan(&p, &b);
}

TEST(a_full_disk_is_told) {
    vpps_kernel_plan p;
    gpu_batch b;
    FILE *full = fopen("/dev/full", "w");
    if (!full) TEST_SKIP("a_full_disk_is_told: no /dev/full");
    setvbuf(full, NULL, _IONBF, 0);
    open_plan(&p, &b, &shape, 120, 0);
    TEST_FAILS(vpps_kernel_plan_print(&p, b.model, &b.machine, 0, full), VPPS_IO,
               "the plan's tables cannot be written: ");
    fclose(full);
    close_plan(&p, &b);
}

/* test_kernel_plan.c - reads back what a plan's tables say. */
#include "codegen/kernel_plan_print.h"
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
    FILE *f = open_memstream(&text, &bytes);
    ck_assert_ptr_nonnull(f);
    TEST_OK(vpps_kernel_plan_print(p, b->model, &b->machine, vps, f));
    fclose(f);
    return text;
}

static const char *find(const char *text, const char *part) {
    const char *at = strstr(text, part);
    ck_assert_msg(at != NULL, "no \"%s\" in\n%s", part, text);
    return at;
}

static uint32_t words_of_thread(const vpps_resident *m) { return (m->rows + m->blocks - 1) / m->blocks * m->columns; }

/* ---------------------------------------------------------------- tables */

static const char *next_line(const char *line) {
    const char *end = strchr(line, '\n');
    ck_assert_ptr_nonnull(end);
    return end + 1;
}

static void check_head(const char *text, const vpps_kernel_plan *p, const gpu_batch *b) {
    static const char machine[] = "machine        test: 14 SMs of 65536 registers, shared memory of 228.0 KiB\n";
    char line[200];
    ck_assert_int_eq(strncmp(text, machine, strlen(machine)), 0);
    snprintf(line, sizeof line,
             "\nVPs            14 CTAs of %u threads, in groups of %u that each have the model; rows by %u\n",
             p->threads, p->group, p->row_unit);
    find(text, line);
    snprintf(line, sizeof line, "\ncells          %u, of %u stages\n", b->batch->n_cells, p->first_stage[p->n_cells]);
    find(text, line);
    snprintf(line, sizeof line, "\nregisters      %u of a thread for weights: %.1f %% of all SMs' register file\n",
             p->residents.registers, 100.0 * p->residents.registers * p->threads / 65536);
    find(text, line);
    int n = snprintf(line, sizeof line,
                     "\nshared memory  %.1f KiB of weights a CTA, %.1f KiB for tiles, %.1f KiB for a script",
                     p->residents.shared_words / 256.0, p->tile_words / 256.0, p->script_words / 256.0);
    if (p->staged_words)
        n += snprintf(line + n, sizeof line - (size_t)n, ", %.1f KiB for late weights", p->staged_words / 256.0);
    snprintf(line + n, sizeof line - (size_t)n, "\n");
    find(text, line);
}

/* Checks the table of matrices: one line each, in the order of the plan's list. */
static void check_matrices(const char *text, const vpps_kernel_plan *p, const gpu_batch *b) {
    const char *line = find(text, "\nmatrix ") + 1;
    for (uint32_t i = 0; i < p->residents.n; i++) {
        const vpps_resident *m = &p->residents.list[i];
        char name[64], level[16], place[64], want[64];
        unsigned rows, cols, of_vp, words;
        int at = 0;
        line = next_line(line);
        ck_assert_int_eq(sscanf(line, "%63s %n", name, &at), 1);
        ck_assert_str_eq(name, b->model->params[m->matrix].name);
        if (m->transposed) {
            ck_assert_int_eq(strncmp(line + at, "transposed ", 11), 0);
            at += 11;
        }
        ck_assert_int_eq(sscanf(line + at, "%u %u %u %u %15s %63[^\n]", &rows, &cols, &of_vp, &words, level, place), 6);
        ck_assert_uint_eq(rows, rows_of(b, m));
        ck_assert_uint_eq(cols, columns_of(b, m));
        ck_assert_uint_eq(of_vp, m->rows);
        ck_assert_uint_eq(words, words_of_thread(m));
        ck_assert_str_eq(level, vpps_resident_levels[m->level]);
        snprintf(want, sizeof want, "%u - %u of a thread", m->at, m->at + words - 1);
        ck_assert_str_eq(place, m->level == VPPS_RESIDENT_STREAM ? "read at each use" : want);
    }
    ck_assert_int_eq(*next_line(line), '\n');
}

enum { HEIGHTS = 4 };

/* The table's columns: heights of matrices in the order of their first use, then the levels of memory that occur. */
typedef struct columns {
    uint32_t heights[HEIGHTS], n_heights;
    uint32_t levels[VPPS_RESIDENT_STREAM + 1], n_levels;
} columns;

static columns columns_of_table(const vpps_kernel_plan *p, const gpu_batch *b, const char *heading) {
    columns c = {.n_heights = 0};
    char want[200] = "  VP", *at = want + 4;
    for (uint32_t i = 0; i < p->residents.n; i++) {
        uint32_t k = 0;
        while (k < c.n_heights && c.heights[k] != rows_of(b, &p->residents.list[i])) k++;
        if (k < c.n_heights) continue;
        ck_assert_uint_lt(c.n_heights, HEIGHTS);
        char title[24];
        c.heights[c.n_heights++] = rows_of(b, &p->residents.list[i]);
        snprintf(title, sizeof title, "rows/%u", c.heights[k]);
        at += sprintf(at, " %10s", title);
    }
    for (uint32_t level = 0; level <= VPPS_RESIDENT_STREAM; level++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < p->residents.n; i++) n += p->residents.list[i].level == level;
        if (!n) continue;
        c.levels[c.n_levels++] = level;
        at += sprintf(at, " %10s", vpps_resident_levels[level]);
    }
    sprintf(at, " %8s\n", "fill");
    ck_assert_msg(strncmp(heading, want, strlen(want)) == 0, "\"%s\" instead of \"%s\"", heading, want);
    return c;
}

/* Checks a row for each of the first `vps` virtual processors. Over those of a group, rows add up to the heights, and words to the matrices. */
static void check_vps(const char *text, const vpps_kernel_plan *p, const gpu_batch *b, uint32_t vps) {
    const char *line = find(text, "\n  VP ") + 1;
    const columns c = columns_of_table(p, b, line);
    uint64_t rows[HEIGHTS] = {0}, words[VPPS_RESIDENT_STREAM + 1] = {0};
    for (uint32_t vp = 0; vp < vps; vp++) {
        char *at;
        uint64_t own = 0, room = 0;
        line = next_line(line);
        ck_assert_uint_eq(strtoul(line, &at, 10), vp);
        for (uint32_t k = 0; k < c.n_heights; k++) {
            const unsigned long n = strtoul(at, &at, 10);
            rows[k] += vp < p->group ? n : 0;
        }
        for (uint32_t k = 0; k < c.n_levels; k++) {
            const unsigned long n = strtoul(at, &at, 10);
            own += n;
            words[k] += vp < p->group ? n : 0;
        }
        for (uint32_t i = 0; i < p->residents.n; i++)
            room += (uint64_t)words_of_thread(&p->residents.list[i]) * p->threads;
        char fill[24];
        snprintf(fill, sizeof fill, " %6.1f %%\n", 100.0 * (double)own / (double)room);
        ck_assert_msg(strncmp(at, fill, strlen(fill)) == 0, "\"%.12s\" instead of \"%s\"", at, fill);
    }
    if (vps < p->group) return;
    for (uint32_t k = 0; k < c.n_heights; k++) ck_assert_uint_eq(rows[k], c.heights[k]);
    for (uint32_t k = 0; k < c.n_levels; k++) {
        uint64_t want = 0;
        for (uint32_t i = 0; i < p->residents.n; i++) {
            const vpps_resident *m = &p->residents.list[i];
            if (m->level == c.levels[k]) want += (uint64_t)rows_of(b, m) * columns_of(b, m);
        }
        ck_assert_uint_eq(words[k], want);
    }
}

/* Plans with one group and two; with all weights in registers, and with most of them elsewhere. */
static const struct {
    gpu_shape shape;
    uint32_t hidden, registers;
} plans[] = {{{14, 1, 2, 256}, 90, 0}, {{14, 2, 1, 384}, 200, 10}, {{14, 2, 8, 64}, 120, 0}, {{14, 1, 3, 32}, 256, 3}};

TEST_GROUP("kernel plan", .seconds = 30);

TEST_EACH(tables_say_what_the_plan_is, 0, VPPS_COUNT(plans)) {
    vpps_kernel_plan p;
    gpu_batch b;
    open_plan(&p, &b, &plans[_i].shape, plans[_i].hidden, plans[_i].registers);
    char *all = tables(&p, &b, 0), *some = tables(&p, &b, 3), *more = tables(&p, &b, 15);
    check_head(all, &p, &b);
    check_matrices(all, &p, &b);
    check_vps(all, &p, &b, 14);
    check_vps(some, &p, &b, 3);
    find(some, "%\n ... 11 more VPs\n");
    ck_assert_ptr_null(strstr(all, "more VPs"));
    ck_assert_str_eq(all, more);
    free(all);
    free(some);
    free(more);
    close_plan(&p, &b);
}

/* The plans above use all levels of memory. */
TEST(plans_use_all_levels) {
    uint32_t seen[VPPS_RESIDENT_STREAM + 1] = {0};
    for (size_t k = 0; k < VPPS_COUNT(plans); k++) {
        vpps_kernel_plan p;
        gpu_batch b;
        open_plan(&p, &b, &plans[k].shape, plans[k].hidden, plans[k].registers);
        for (uint32_t i = 0; i < p.residents.n; i++) seen[p.residents.list[i].level]++;
        close_plan(&p, &b);
    }
    for (size_t level = 0; level < VPPS_COUNT(seen); level++) ck_assert_uint_gt(seen[level], 0);
}

TEST(a_full_disk_is_told) {
    vpps_kernel_plan p;
    gpu_batch b;
    FILE *full = fopen("/dev/full", "w");
    if (!full) TEST_SKIP("a_full_disk_is_told: no /dev/full");
    setvbuf(full, NULL, _IONBF, 0);
    open_plan(&p, &b, &plans[0].shape, plans[0].hidden, plans[0].registers);
    TEST_FAILS(vpps_kernel_plan_print(&p, b.model, &b.machine, 0, full), VPPS_IO,
               "the plan's tables cannot be written: ");
    fclose(full);
    close_plan(&p, &b);
}

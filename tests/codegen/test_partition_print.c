/* test_partition_print.c - what a plan's tables say, and pictures read back: every row is drawn once. */
#include "shapes.h"

#include <stdio.h>

/* What a call writes, as text that the caller frees. */
static char *written(vpps_status (*write)(const vpps_partition *, const vpps_model *, uint32_t, FILE *),
                     const vpps_partition *p, const vpps_model *model, uint32_t vps) {
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    ck_assert_ptr_nonnull(f);
    TEST_OK(write(p, model, vps, f));
    fclose(f);
    return text;
}

static vpps_status write_svg(const vpps_partition *p, const vpps_model *model, uint32_t vps, FILE *f) {
    (void)vps;
    return vpps_partition_svg(p, model, f);
}

static const char *find(const char *text, const char *part) {
    const char *at = strstr(text, part);
    ck_assert_msg(at != NULL, "no \"%s\" in\n%s", part, text);
    return at;
}

/* The VP table: `vps` rows in order, whose columns of rows add up to both heights. */
static void check_vp_table(const char *text, const vpps_partition *p, uint32_t vps) {
    unsigned tall = 0, low = 0, pieces = 0;
    const char *line = find(text, "\n  VP  pieces");
    find(line, " rows/90 ");
    find(line, " rows/5 ");
    for (uint32_t vp = 0; vp < vps; vp++) {
        unsigned number, n, a, b;
        line = strchr(line + 1, '\n');
        ck_assert_int_eq(sscanf(line, "%u %u %u %u", &number, &n, &a, &b), 4);
        ck_assert_uint_eq(number, vp);
        pieces += n;
        tall += a;
        low += b;
    }
    if (vps == p->n_vps) {
        ck_assert_uint_eq(tall, 90);
        ck_assert_uint_eq(low, 5);
        ck_assert_uint_eq(pieces, 13 * divide_up(90, p->choice.rpw) + divide_up(5, p->choice.rpw));
    }
}

static void open_small_plan(vpps_partition *p, shapes *s, bool transposed, bool deferred) {
    shapes_tree_lstm(s, 90, 70, 5);
    const vpps_machine machine = shapes_machine(7, 0);
    const vpps_partition_choice c = {
        .rpw = 2, .threads = 256, .ctas_per_sm = 1, .vectors = 1, .transposed = transposed, .deferred = deferred};
    TEST_OK(vpps_partition_create(p, &s->model, &machine, &c));
}

START_TEST(tables_say_what_the_plan_is)
    {
        vpps_partition p;
        shapes s;
        char line[96];
        open_small_plan(&p, &s, _i & 1, _i >> 1);
        char *all = written(vpps_partition_print, &p, &s.model, 0);
        char *some = written(vpps_partition_print, &p, &s.model, 3);
        find(all, "7 SMs of 65536 registers");
        find(all, _i >> 1 ? "gradients deferred" : "gradients in registers");
        find(all, _i & 1 ? "backward by a transposed copy" : "backward by partial sums");
        snprintf(line, sizeof line, "registers      %u of %u a thread", p.cached, p.budget);
        find(all, line);
        for (uint32_t m = 0; m < p.n_matrices; m++) find(all, s.params[p.matrices[m].param].name);
        check_vp_table(all, &p, p.n_vps);
        check_vp_table(some, &p, 3);
        find(some, "... 4 more VPs");
        ck_assert_ptr_null(strstr(all, "more VPs"));
        free(all);
        free(some);
        vpps_partition_destroy(&p);
    }
END_TEST

enum { PIXEL_X = 70, WARP_PIXELS = 16, UNIT_PIXELS = 2, WARPS = 7 * 8, UNITS = 255 };

/* Adds a path's boxes to a grid of warps x registers; how many cells it covered. */
static uint32_t paint(const char *path, const char *end, double bottom, uint8_t grid[WARPS][UNITS]) {
    uint32_t cells = 0;
    for (const char *at = strchr(path, 'M'); at && at < end; at = strchr(at + 1, 'M')) {
        double x, y, width, height;
        ck_assert_int_eq(sscanf(at, "M%lf %lfh%lfv-%lf", &x, &y, &width, &height), 4);
        const uint32_t warp = (uint32_t)((x - PIXEL_X) / WARP_PIXELS), unit = (uint32_t)((bottom - y) / UNIT_PIXELS);
        for (uint32_t w = warp; w < warp + width / WARP_PIXELS; w++) {
            for (uint32_t u = unit; u < unit + height / UNIT_PIXELS; u++, cells++) {
                MUST(w, <, WARPS);
                MUST(u, <, UNITS);
                grid[w][u]++;
            }
        }
    }
    return cells;
}

/* The picture is read back: each matrix covers as many registers as its rows have steps, and no two overlap. */
static uint32_t check_paths(const char *svg, const vpps_partition *p, const shapes *s, const char *tint, bool columns,
                            uint8_t grid[WARPS][UNITS]) {
    uint32_t n = 0;
    for (const char *path = strstr(svg, "<path fill="); path; path = strstr(path + 1, "<path fill=")) {
        const char *title = find(path, "<title>") + 7, *end = find(path, "'><title>");
        for (uint32_t m = 0; m < p->n_matrices; m++) {
            char want[64];
            const vpps_matrix *matrix = &p->matrices[m];
            snprintf(want, sizeof want, "%s, %s</title>", s->params[matrix->param].name, tint);
            if (strncmp(title, want, strlen(want)) != 0) continue;
            const uint32_t cells = columns ? matrix->cols * divide_up(matrix->rows, VPPS_LANES)
                                           : matrix->rows * divide_up(matrix->cols, VPPS_LANES);
            ck_assert_uint_eq(paint(find(path, " d='") + 4, end, 64 + UNITS * UNIT_PIXELS, grid), cells);
            n++;
        }
    }
    return n;
}

START_TEST(pictures_show_every_row_once)
    {
        vpps_partition p;
        shapes s;
        static uint8_t grid[WARPS][UNITS];
        memset(grid, 0, sizeof grid);
        const bool transposed = _i & 1, deferred = _i >> 1;
        open_small_plan(&p, &s, transposed, deferred);
        char *svg = written(write_svg, &p, &s.model, 0), *again = written(write_svg, &p, &s.model, 0);
        ck_assert_str_eq(svg, again);
        ck_assert_int_eq(strncmp(svg, "<svg xmlns='http://www.w3.org/2000/svg'", 39), 0);
        ck_assert_str_eq(svg + strlen(svg) - 7, "</svg>\n");
        const uint32_t n = p.n_matrices;
        ck_assert_uint_eq(check_paths(svg, &p, &s, "weights", false, grid), n);
        ck_assert_uint_eq(check_paths(svg, &p, &s, "gradients", false, grid), deferred ? 0 : n);
        ck_assert_uint_eq(check_paths(svg, &p, &s, "transposed copy", true, grid), transposed ? n : 0);
        for (uint32_t w = 0; w < WARPS; w++) {
            for (uint32_t u = 0; u < UNITS; u++) {
                MUST(grid[w][u], <=, 1);
                if (u >= p.cached) MUST(grid[w][u], ==, 0);
            }
        }
        free(svg);
        free(again);
        vpps_partition_destroy(&p);
    }
END_TEST

START_TEST(names_are_escaped)
    {
        vpps_partition p;
        shapes s;
        open_small_plan(&p, &s, false, false);
        snprintf(s.names[1], sizeof s.names[1], "a<b>&c");
        char *svg = written(write_svg, &p, &s.model, 0);
        find(svg, "a&lt;b&gt;&amp;c");
        ck_assert_ptr_null(strstr(svg, "a<b"));
        free(svg);
        vpps_partition_destroy(&p);
    }
END_TEST

START_TEST(shared_memory_has_a_panel)
    {
        vpps_partition p;
        shapes s;
        shapes_tree_lstm(&s, 512, 300, 5);
        const vpps_machine machine = shapes_machine(20, 0);
        const vpps_partition_choice c = {.rpw = 4, .threads = 256, .ctas_per_sm = 1, .vectors = 1, .deferred = true};
        TEST_OK(vpps_partition_create(&p, &s.model, &machine, &c));
        ck_assert_uint_gt(p.rows.shared_words, 0);
        char *svg = written(write_svg, &p, &s.model, 0), *table = written(vpps_partition_print, &p, &s.model, 1);
        find(svg, ">shared memory, words of a thread<");
        find(svg, "slots stream from memory");
        find(table, "  shared     words 0 - ");
        find(table, "  stream ");
        free(svg);
        free(table);
        vpps_partition_destroy(&p);
    }
END_TEST

START_TEST(a_full_disk_is_told)
    {
        vpps_partition p;
        shapes s;
        FILE *full = fopen("/dev/full", "w");
        if (!full) return;
        setvbuf(full, NULL, _IONBF, 0);
        open_small_plan(&p, &s, false, false);
        TEST_FAILS(vpps_partition_print(&p, &s.model, 0, full), VPPS_IO, "cannot be written");
        clearerr(full);
        TEST_FAILS(vpps_partition_svg(&p, &s.model, full), VPPS_IO, "cannot be written");
        fclose(full);
        vpps_partition_destroy(&p);
    }
END_TEST

int main(void) {
    Suite *s = suite_create("partition print");
    TCase *t = tcase_create("print");
    tcase_add_loop_test(t, tables_say_what_the_plan_is, 0, 4);
    tcase_add_loop_test(t, pictures_show_every_row_once, 0, 4);
    tcase_add_test(t, names_are_escaped);
    tcase_add_test(t, shared_memory_has_a_panel);
    tcase_add_test(t, a_full_disk_is_told);
    suite_add_tcase(s, t);
    return test_main(s);
}

/* partition_svg.c - a plan as a picture: every warp a column, its registers upwards, each matrix in its colour.
 *
 * All rectangles of one colour are one path, so that the picture of a thousand warps stays small. Weights lie below,
 * their gradients above them in a lighter tint, the transposed copy above those in a darker one. Where weights lie in
 * shared memory, a second panel shows it in the same scale: words of a CTA divided by its threads.
 */
#include "plan/partition.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Pixels. */
enum { LEFT = 70, RIGHT = 20, TOP = 64, GAP = 50, WIDTH = 1056, LEGEND_ROW = 20, LEGEND_COLUMN = 176 };
static const double unit_height = 2; /* of a register */

typedef enum tint { TINT_WEIGHTS, TINT_GRADIENTS, TINT_COPY, N_TINTS } tint;
static const char *const tint_names[N_TINTS] = {"weights", "gradients", "transposed copy"};
static const double lightness[N_TINTS] = {0.50, 0.78, 0.30};

/* A strip of registers, or of shared memory counted like registers, with 0 at the bottom. */
typedef struct panel {
    double top, warp_width;
    uint32_t units;
} panel;

static double bottom_of(const panel *a) { return a->top + a->units * unit_height; }

/* ---------------------------------------------------------------- text and colour */

static void write_text(FILE *f, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        case '&': fputs("&amp;", f); break;
        default: fputc(*text, f);
        }
    }
}

static double channel(double hue, double light, double shift) {
    double x = hue + shift - (int)(hue + shift); /* of [0, 1) around the circle */
    double ramp = x < 1.0 / 6 ? 6 * x : x < 0.5 ? 1 : x < 2.0 / 3 ? 6 * (2.0 / 3 - x) : 0;
    double chroma = 0.6 * (light < 0.5 ? 2 * light : 2 - 2 * light);
    return light + chroma * (ramp - 0.5);
}

/* Matrix m's colour, as "#rrggbb": hues as far apart as their number allows. */
static void write_colour(const vpps_partition *p, uint32_t m, tint t, char text[8]) {
    const double hue = (double)m / p->n_matrices, light = lightness[t];
    const double rgb[] = {channel(hue, light, 1.0 / 3), channel(hue, light, 0), channel(hue, light, 2.0 / 3)};
    snprintf(text, 8, "#%02x%02x%02x", (unsigned)(255 * rgb[0]) & 0xffu, (unsigned)(255 * rgb[1]) & 0xffu,
             (unsigned)(255 * rgb[2]) & 0xffu);
}

/* ---------------------------------------------------------------- pieces */

/* Where a slot begins in a panel, in units; false: it is not in this level. */
static bool slot_base(const vpps_partition *p, const vpps_slot *slot, vpps_level level, uint32_t *base) {
    *base = level == VPPS_LEVEL_SHARED ? slot->at / p->choice.threads : slot->at;
    return slot->level == level;
}

static void draw_box(FILE *f, const panel *a, double x, uint32_t base, uint32_t units, double warps) {
    fprintf(f, "M%.1f %.1fh%.1fv-%.1fh-%.1fz", x, bottom_of(a) - base * unit_height, warps * a->warp_width,
            units * unit_height, warps * a->warp_width);
}

/* `warps` neighbouring warps hold a piece of as many rows each in this slot. A row shorter than its slot leaves the
 * end of its registers free. */
static void draw_run(FILE *f, const panel *a, double x, uint32_t base, uint32_t warps, uint32_t rows, uint32_t steps,
                     uint32_t slot_steps) {
    if (steps == slot_steps) {
        draw_box(f, a, x, base, rows * steps, warps);
        return;
    }
    for (uint32_t r = 0; r < rows; r++) draw_box(f, a, x, base + r * slot_steps, steps, warps);
}

/* One VP's pieces of a matrix, `offset` units above where the slots say. */
static void draw_pieces(const vpps_partition *p, FILE *f, const panel *a, vpps_level level, bool columns,
                        uint32_t offset, uint32_t m, uint32_t vp) {
    const vpps_placing *placing = columns ? &p->columns : &p->rows;
    const vpps_pieces pieces = vpps_partition_pieces(p, columns, m, vp);
    const uint32_t elems = columns ? p->matrices[m].rows : p->matrices[m].cols, rpw = p->choice.rpw;
    const uint32_t steps = (elems + VPPS_LANES - 1) / VPPS_LANES, held = pieces.rows.end - pieces.rows.first;
    for (uint32_t i = 0; i < pieces.n;) {
        const uint32_t at = pieces.first + i, warp = at % p->warps;
        const vpps_slot *slot = &placing->slots[at / p->warps];
        uint32_t base, rows = vpps_min_u32(rpw, held - i * rpw), run = 1;
        while (warp + run < p->warps && i + run < pieces.n && vpps_min_u32(rpw, held - (i + run) * rpw) == rows) run++;
        if (slot_base(p, slot, level, &base)) {
            const double x = LEFT + ((double)vp * p->warps + warp) * a->warp_width;
            draw_run(f, a, x, base + offset, run, rows, steps, slot->steps);
        }
        i += run;
    }
}

static bool has_pieces(const vpps_partition *p, vpps_level level, uint32_t m) {
    for (uint32_t vp = 0; vp < p->n_vps; vp++) {
        const vpps_pieces pieces = vpps_partition_pieces(p, false, m, vp);
        for (uint32_t i = 0; i < pieces.n; i++) {
            if (p->rows.slots[(pieces.first + i) / p->warps].level == level) return true;
        }
    }
    return false;
}

/* All of a matrix in a panel, in one tint: a path. */
static void draw_matrix(const vpps_partition *p, const vpps_model *model, FILE *f, const panel *a, vpps_level level,
                        tint t, uint32_t m) {
    const uint32_t offsets[N_TINTS] = {0, p->rows.registers, p->cached - p->columns.registers};
    char colour[8];
    if (t != TINT_COPY && !has_pieces(p, level, m)) return;
    write_colour(p, m, t, colour);
    fprintf(f, "<path fill='%s' d='", colour);
    for (uint32_t vp = 0; vp < p->n_vps; vp++) draw_pieces(p, f, a, level, t == TINT_COPY, offsets[t], m, vp);
    fputs("'><title>", f);
    write_text(f, model->params[p->matrices[m].param].name);
    fprintf(f, ", %s</title></path>\n", tint_names[t]);
}

/* ---------------------------------------------------------------- panels */

static double width_of(const vpps_partition *p, const panel *a) { return a->warp_width * p->n_vps * p->warps; }

/* Grey behind what is not taken, units on the left, VPs below. */
static void draw_frame(const vpps_partition *p, FILE *f, const panel *a, uint32_t usable, const char *title) {
    const double width = width_of(p, a), bottom = bottom_of(a);
    fprintf(f, "<rect x='%d' y='%.1f' width='%.1f' height='%.1f' fill='#c8c8c8'/>\n", LEFT, a->top, width,
            a->units * unit_height);
    fprintf(f, "<rect x='%d' y='%.1f' width='%.1f' height='%.1f' fill='#eeeeee'/>\n", LEFT,
            bottom - usable * unit_height, width, usable * unit_height);
    for (uint32_t u = 0; u <= a->units; u += 32) {
        fprintf(f, "<text x='%d' y='%.1f' text-anchor='end'>%u</text>\n", LEFT - 6, bottom - u * unit_height + 4, u);
    }
    uint32_t every = 1; /* 1, 2, 5, 10, 20, ... VPs between numbers, at least 30 pixels */
    for (uint32_t k = 0; every * p->warps * a->warp_width < 30; k++) every = k % 3 == 1 ? every / 2 * 5 : every * 2;
    for (uint32_t vp = 0; vp < p->n_vps; vp += every) {
        fprintf(f, "<text x='%.1f' y='%.1f' text-anchor='middle'>%u</text>\n",
                LEFT + (vp + 0.5) * p->warps * a->warp_width, bottom + 16, vp);
    }
    fprintf(f, "<text x='%d' y='%.1f'>%s</text>\n", LEFT, a->top - 8, title);
}

/* Lines between VPs, where there is room for them. */
static void draw_borders(const vpps_partition *p, FILE *f, const panel *a) {
    const double vp_width = p->warps * a->warp_width;
    if (vp_width < 6) return;
    fputs("<path stroke='white' stroke-width='0.7' d='", f);
    for (uint32_t vp = 1; vp < p->n_vps; vp++) {
        fprintf(f, "M%.1f %.1fv%.1f", LEFT + vp * vp_width, a->top, a->units * unit_height);
    }
    fputs("'/>\n", f);
}

static void draw_registers(const vpps_partition *p, const vpps_model *model, FILE *f, const panel *a) {
    char title[160];
    snprintf(title, sizeof title, "registers of a thread: %u of %u hold the model; the darker grey is the kernel's own",
             p->cached, p->budget);
    draw_frame(p, f, a, p->budget, title);
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        draw_matrix(p, model, f, a, VPPS_LEVEL_REGISTERS, TINT_WEIGHTS, m);
        if (!p->choice.deferred) draw_matrix(p, model, f, a, VPPS_LEVEL_REGISTERS, TINT_GRADIENTS, m);
        if (p->columns.n_slots) draw_matrix(p, model, f, a, VPPS_LEVEL_REGISTERS, TINT_COPY, m);
    }
    draw_borders(p, f, a);
}

static void draw_shared(const vpps_partition *p, const vpps_model *model, FILE *f, const panel *a) {
    draw_frame(p, f, a, a->units, "shared memory, words of a thread");
    for (uint32_t m = 0; m < p->n_matrices; m++) { draw_matrix(p, model, f, a, VPPS_LEVEL_SHARED, TINT_WEIGHTS, m); }
    draw_borders(p, f, a);
}

/* ---------------------------------------------------------------- around them */

static uint32_t legend_columns(const panel *a, const vpps_partition *p) {
    return vpps_max_u32(1, (uint32_t)(width_of(p, a) / LEGEND_COLUMN));
}

/* Every matrix with its tints, then what the tints mean. */
static void draw_legend(const vpps_partition *p, const vpps_model *model, FILE *f, const panel *a, double top) {
    const bool shown[N_TINTS] = {true, !p->choice.deferred, p->columns.n_slots > 0};
    const uint32_t columns = legend_columns(a, p);
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        const uint32_t row = m / columns, column = m % columns;
        double x = LEFT + column * (double)LEGEND_COLUMN, y = top + row * (double)LEGEND_ROW;
        const vpps_matrix *matrix = &p->matrices[m];
        for (int t = 0; t < N_TINTS; t++) {
            char colour[8];
            if (!shown[t]) continue;
            write_colour(p, m, (tint)t, colour);
            fprintf(f, "<rect x='%.1f' y='%.1f' width='12' height='12' fill='%s'/>", x, y, colour);
            x += 12;
        }
        fprintf(f, "<text x='%.1f' y='%.1f'>", x + 5, y + 10);
        write_text(f, model->params[matrix->param].name);
        fprintf(f, " %u x %u</text>\n", matrix->rows, matrix->cols);
    }
    const uint32_t rows = (p->n_matrices + columns - 1) / columns;
    fprintf(f, "<text x='%d' y='%.1f'>tints from the left: weights%s%s</text>\n", LEFT,
            top + rows * (double)LEGEND_ROW + 12, shown[TINT_GRADIENTS] ? ", gradients" : "",
            shown[TINT_COPY] ? ", transposed copy" : "");
}

static uint32_t count_streamed(const vpps_partition *p) {
    uint32_t n = 0;
    for (uint32_t s = 0; s < p->rows.n_slots; s++) n += p->rows.slots[s].level == VPPS_LEVEL_STREAM;
    return n;
}

static void draw_title(const vpps_partition *p, FILE *f) {
    fprintf(f, "<text x='%d' y='26' font-size='15' font-weight='bold'>", LEFT);
    write_text(f, p->machine.name);
    fprintf(f, ": %u VPs of %u warps</text>\n", p->n_vps, p->warps);
    if (count_streamed(p)) {
        fprintf(f, "<text x='%d' y='%d' text-anchor='end'>%u of %u slots stream from memory and are not shown</text>\n",
                LEFT + WIDTH, 26, count_streamed(p), p->rows.n_slots);
    }
}

vpps_status vpps_partition_svg(const vpps_partition *p, const vpps_model *model, FILE *file) {
    const double warps = (double)p->n_vps * p->warps;
    const double warp_width = warps * 16 < WIDTH ? 16 : WIDTH / warps;
    const uint32_t limit = p->machine.sm_registers / (p->choice.threads * p->choice.ctas_per_sm);
    const panel registers = {TOP, warp_width, vpps_max_u32(vpps_min_u32(limit, 255), p->budget)};
    const panel shared = {bottom_of(&registers) + GAP, warp_width, p->rows.shared_words / p->choice.threads};
    const double legend = (shared.units ? bottom_of(&shared) : bottom_of(&registers)) + 40;
    const uint32_t columns = legend_columns(&registers, p), rows = (p->n_matrices + columns - 1) / columns;
    const double height = legend + rows * (double)LEGEND_ROW + 30;

    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%.0f' viewBox='0 0 %d %.0f' "
            "font-family='Helvetica, Arial, sans-serif' font-size='12' fill='#222'>\n",
            LEFT + WIDTH + RIGHT, height, LEFT + WIDTH + RIGHT, height);
    fprintf(file, "<rect width='%d' height='%.0f' fill='white'/>\n", LEFT + WIDTH + RIGHT, height);
    draw_title(p, file);
    draw_registers(p, model, file, &registers);
    if (shared.units) draw_shared(p, model, file, &shared);
    fprintf(file, "<text x='%d' y='%.1f'>virtual processors (VPs), each with %u warps</text>\n", LEFT, legend - 8,
            p->warps);
    draw_legend(p, model, file, &registers, legend + 4);
    fputs("</svg>\n", file);
    return ferror(file) ? vpps_fail(VPPS_IO, "partition: the picture cannot be written: %s", strerror(errno)) : VPPS_OK;
}

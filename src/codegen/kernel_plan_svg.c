/* kernel_plan_svg.c - a plan as a picture: every VP a column, the words of one of its threads upwards, each matrix in its colour, a
 * transposed one in a darker tint. All rectangles of a matrix are one path, so that the picture of many VPs stays small. */
#include "codegen/kernel_plan_print.h"
#include "io/xml.h"

#include <errno.h>

/* Pixels. */
enum { LEFT = 70, RIGHT = 20, TOP = 64, GAP = 50, WIDTH = 1056, LEGEND_ROW = 20, LEGEND_COLUMN = 264, WIDEST = 132 };
static const double unit_height = 2; /* of a word */

/* What is drawn, and the strip of words that is being drawn, with 0 at the bottom. */
typedef struct picture {
    const vpps_kernel_plan *plan;
    const vpps_model *model;
    FILE *file;
    double vp_width, top;
    uint32_t units;
} picture;

static double bottom_of(const picture *a) { return a->top + a->units * unit_height; }

/* What is drawn: matrices, or, of products in bf16, fragments. */
static uint32_t count_parts(const vpps_residents *r) { return r->parts ? r->n_fragments : r->n; }
static uint32_t level_of(const vpps_residents *r, uint32_t i) {
    return r->parts ? r->fragments[i].level : r->list[i].level;
}

/* Hues as far apart as their number allows. */
static void write_colour(const picture *a, uint32_t i) {
    const vpps_residents *r = &a->plan->residents;
    const bool transposed = r->parts ? r->fragments[i].rows[0].transposed : r->list[i].transposed;
    fprintf(a->file, "hsl(%.0f,60%%,%d%%)", 360.0 * i / count_parts(r), transposed ? 34 : 55);
}

/* All VPs' rows, padding among them. */
static void draw_fragment(const picture *a, uint32_t i) {
    const vpps_fragment *x = &a->plan->residents.fragments[i];
    const double height = vpps_fragment_words(x, a->plan->parts) * unit_height;
    char name[256];
    fprintf(a->file, "<rect x='%d' y='%.1f' width='%.2f' height='%.1f' fill='", LEFT,
            bottom_of(a) - x->at * unit_height - height, a->vp_width * a->plan->n_vps, height);
    write_colour(a, i);
    fputs("'><title>", a->file);
    vpps_name_fragment(a->model, x, name, sizeof name);
    vpps_write_xml(a->file, name);
    fputs("</title></rect>\n", a->file);
}

/* The rows that VPs own; what is left of a matrix's room is padding. */
static void draw_matrix(const picture *a, uint32_t i) {
    const vpps_resident *m = &a->plan->residents.list[i];
    FILE *f = a->file;
    fputs("<path fill='", f);
    write_colour(a, i);
    fputs("' d='", f);
    for (uint32_t vp = 0; vp < a->plan->n_vps; vp++) {
        const vpps_rows own = vpps_resident_rows(a->plan, a->model, m, vp);
        const double height = (double)(own.end - own.first) * m->columns / m->blocks * unit_height;
        if (height <= 0) continue;
        fprintf(f, "M%.2f %.1fh%.2fv-%.1fh-%.2fz", LEFT + vp * a->vp_width, bottom_of(a) - m->at * unit_height,
                a->vp_width, height, a->vp_width);
    }
    fputs("'><title>", f);
    vpps_write_xml(f, a->model->params[m->matrix].name);
    fprintf(f, "%s</title></path>\n", m->transposed ? ", transposed" : "");
}

/* Grey behind what is not taken, words on the left, VPs below. */
static void draw_panel(const picture *a, vpps_resident_level level, const char *title) {
    FILE *f = a->file;
    const double bottom = bottom_of(a);
    fprintf(f, "<rect x='%d' y='%.1f' width='%.1f' height='%.1f' fill='#e4e4e4'/>\n", LEFT, a->top,
            a->vp_width * a->plan->n_vps, a->units * unit_height);
    const vpps_residents *r = &a->plan->residents;
    for (uint32_t i = 0; i < count_parts(r); i++) {
        if (level_of(r, i) != level) continue;
        if (r->parts) {
            draw_fragment(a, i);
        } else {
            draw_matrix(a, i);
        }
    }
    for (uint32_t u = 0; u <= a->units; u += 32)
        fprintf(f, "<text x='%d' y='%.1f' text-anchor='end'>%u</text>\n", LEFT - 6, bottom - u * unit_height + 4, u);
    uint32_t every = 1; /* 1, 2, 5, 10, 20, ... VPs between numbers, at least 30 pixels */
    for (uint32_t k = 0; every * a->vp_width < 30; k++) every = k % 3 == 1 ? every / 2 * 5 : every * 2;
    for (uint32_t vp = 0; vp < a->plan->n_vps; vp += every)
        fprintf(f, "<text x='%.1f' y='%.1f' text-anchor='middle'>%u</text>\n", LEFT + (vp + 0.5) * a->vp_width,
                bottom + 16, vp);
    fprintf(f, "<text x='%d' y='%.1f'>%s</text>\n", LEFT, a->top - 8, title);
}

static void draw_legend(const picture *a, double top) {
    const vpps_residents *r = &a->plan->residents;
    for (uint32_t i = 0; i < count_parts(r); i++) {
        const uint32_t columns = WIDTH / LEGEND_COLUMN;
        const uint32_t row = i / columns, column = i % columns;
        const double x = LEFT + column * (double)LEGEND_COLUMN, y = top + row * (double)LEGEND_ROW;
        fprintf(a->file, "<rect x='%.1f' y='%.1f' width='12' height='12' fill='", x, y);
        write_colour(a, i);
        fprintf(a->file, "'/><text x='%.1f' y='%.1f'>", x + 17, y + 10);
        const char *kept = level_of(r, i) == VPPS_RESIDENT_STREAM ? ", not kept" : "";
        if (r->parts) {
            char name[256];
            vpps_name_fragment(a->model, &r->fragments[i], name, sizeof name);
            vpps_write_xml(a->file, name);
            fprintf(a->file, "%s</text>\n", kept);
            continue;
        }
        const vpps_parameter_data *p = &a->model->params[r->list[i].matrix];
        vpps_write_xml(a->file, p->name);
        fprintf(a->file, " %u x %u%s%s</text>\n", p->rows, p->cols, r->list[i].transposed ? ", transposed" : "", kept);
    }
}

vpps_status vpps_kernel_plan_svg(const vpps_kernel_plan *p, const vpps_model *model, const vpps_machine *machine,
                                 FILE *file) {
    enum { MOST_REGISTERS = 255 };
    picture a = {.plan = p, .model = model, .file = file};
    a.vp_width = p->n_vps * WIDEST < WIDTH ? WIDEST : (double)WIDTH / p->n_vps;
    const uint32_t registers = vpps_min_u32(machine->sm_registers / p->threads, MOST_REGISTERS);
    const uint32_t shared = p->residents.shared_words / p->threads;
    const double second = TOP + registers * unit_height + GAP;
    const double legend = (shared ? second + shared * unit_height + GAP : second);
    const uint32_t rows = count_parts(&p->residents) / (WIDTH / LEGEND_COLUMN) + 1;
    const double height = legend + rows * (double)LEGEND_ROW + 30;
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%.0f' viewBox='0 0 %d %.0f' "
            "font-family='Helvetica, Arial, sans-serif' font-size='12' fill='#222'>\n",
            LEFT + WIDTH + RIGHT, height, LEFT + WIDTH + RIGHT, height);
    fprintf(file, "<rect width='%d' height='%.0f' fill='white'/>\n", LEFT + WIDTH + RIGHT, height);
    fprintf(file, "<text x='%d' y='26' font-size='15' font-weight='bold'>", LEFT);
    vpps_write_xml(file, machine->name);
    fprintf(file, ": %u VPs of %u threads</text>\n", p->n_vps, p->threads);
    a.top = TOP;
    a.units = registers;
    draw_panel(&a, VPPS_RESIDENT_REGISTERS, "registers of a thread; those above the weights are for everything else");
    if (shared) {
        a.top = second;
        a.units = shared;
        draw_panel(&a, VPPS_RESIDENT_SHARED, "shared memory, words of a thread");
    }
    draw_legend(&a, legend);
    fputs("</svg>\n", file);
    return ferror(file) ? vpps_fail(VPPS_IO, "the plan's picture cannot be written: %s", strerror(errno)) : VPPS_OK;
}

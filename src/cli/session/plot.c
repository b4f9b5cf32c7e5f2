/* plot.c - draws two panels over the epochs: the loss above, the metrics below. */
#include "cli/session/plot.h"
#include "base/base.h"
#include "cli/common/number.h"
#include "io/output.h"

#include <math.h>

/* Sizes in pixels. */
enum { WIDTH = 800, HEIGHT = 620, LEFT = 72, RIGHT = 24, TOP = 56, GAP = 44, BOTTOM = 56 };

/* The loss's curve has fewer than MAX_POINTS points, since the picture can show no more: at MAX_POINTS, neighbours are merged. */
enum { MAX_POINTS = 700 };

/* Colours for dev and test from Okabe and Ito's palette, which people with any colour vision can distinguish; dashes
 * for all metrics but the first. */
static const char *const split_colours[] = {"#0072b2", "#d55e00"};
static const char *const metric_dashes[PLOT_METRICS] = {"", " stroke-dasharray='5 4'"};
static const char loss_colour[] = "#009e73";

/* ---------------------------------------------------------------- points */

static vpps_status add_point(plot_curve *curve, double x, double y) {
    const plot_point point = {(float)x, (float)y};
    if (!isfinite(point.y)) return VPPS_OK; /* skips values that are not finite, or too large for a float */
    if (!VPPS_RESERVE(curve->points, curve->n + 1))
        return vpps_fail(VPPS_MEMORY, "no memory for %zu points of a curve", curve->n + 1);
    curve->points[curve->n++] = point;
    return VPPS_OK;
}

/* Merges neighbouring points of the loss in pairs until fewer than MAX_POINTS are left. */
static void join_neighbours(plot *p) {
    plot_curve *curve = &p->loss;
    if (curve->n < MAX_POINTS) return;
    for (size_t i = 0; i < curve->n / 2; i++) {
        const plot_point a = curve->points[2 * i], b = curve->points[2 * i + 1];
        curve->points[i] = (plot_point){(float)(((double)a.x + b.x) / 2), (float)(((double)a.y + b.y) / 2)};
    }
    curve->n /= 2;
    p->per *= 2;
    join_neighbours(p);
}

vpps_status plot_loss(plot *p, double epoch, double loss) {
    if (!isfinite(loss)) return VPPS_OK;
    p->pending_x += epoch;
    p->pending_y += loss;
    if (++p->pending < p->per) return VPPS_OK;
    VPPS_TRY(add_point(&p->loss, p->pending_x / p->per, p->pending_y / p->per));
    p->pending = 0;
    p->pending_x = p->pending_y = 0;
    join_neighbours(p);
    return VPPS_OK;
}

void plot_open(plot *p, const char *name, const char *data, const task *t) {
    snprintf(p->title, sizeof p->title, "%s on %.80s", name, data);
    p->task = t;
    p->per = 1;
}

/* Returns how many metrics are drawn on one axis: several if they are percentages, else one. */
static int n_metrics(const task *t) {
    int n = 1;
    while (n < PLOT_METRICS && t->metrics[0].share && t->metrics[n].name && t->metrics[n].share) n++;
    return n;
}

vpps_status plot_measures(plot *p, int split, double epoch, const measures *m) {
    for (int i = 0; i < n_metrics(p->task) && m->known; i++) {
        const double y = p->task->metrics[i].share ? 100 * m->value[i] : m->value[i];
        VPPS_TRY(add_point(&p->measures[(split - SPLIT_DEV) * PLOT_METRICS + i], epoch, y));
    }
    return VPPS_OK;
}

void plot_free(plot *p) {
    VPPS_FREE_ARRAYS(p->loss.points);
    for (int i = 0; i < PLOT_CURVES; i++) VPPS_FREE_ARRAYS(p->measures[i].points);
    memset(p, 0, sizeof *p);
}

/* ---------------------------------------------------------------- as text
 *
 * A line "per pending pending_x pending_y", then each curve: a line with the number of its points, and a line "x y"
 * for each point. */

static void write_curve(FILE *f, const plot_curve *curve) {
    fprintf(f, "%zu\n", curve->n);
    for (size_t i = 0; i < curve->n; i++)
        fprintf(f, "%.9g %.9g\n", (double)curve->points[i].x, (double)curve->points[i].y);
}

vpps_status plot_to_text(const plot *p, char **text) {
    size_t n = 0;
    *text = NULL;
    FILE *f = open_memstream(text, &n);
    if (!f) return vpps_text_end(f, VPPS_OK, text);
    fprintf(f, "%u %u %.17g %.17g\n", p->per, p->pending, p->pending_x, p->pending_y);
    write_curve(f, &p->loss);
    for (int i = 0; i < PLOT_CURVES; i++) write_curve(f, &p->measures[i]);
    return vpps_text_end(f, VPPS_OK, text);
}

static bool read_number(const char **at, double *x) {
    char *end;
    *x = strtod(*at, &end);
    const bool good = end != *at && isfinite(*x);
    *at = end;
    return good;
}

/* Reads a curve; sets *good to whether the text is a curve. */
static vpps_status read_curve(const char **at, plot_curve *curve, bool *good) {
    double n, x, y;
    *good = read_number(at, &n) && n >= 0 && n <= 1e9 && n == floor(n);
    for (size_t i = 0; *good && i < (size_t)n; i++) {
        *good = read_number(at, &x) && read_number(at, &y);
        if (*good) VPPS_TRY(add_point(curve, x, y));
    }
    return VPPS_OK;
}

vpps_status plot_from_text(plot *p, const char *name, const char *text) {
    double per, pending;
    bool good = read_number(&text, &per) && read_number(&text, &pending) && read_number(&text, &p->pending_x) &&
                read_number(&text, &p->pending_y) && per >= 1 && per <= 0x1p31 && per == floor(per) && pending >= 0 &&
                pending < per && pending == floor(pending);
    if (good) {
        p->per = (uint32_t)per;
        p->pending = (uint32_t)pending;
        VPPS_TRY(read_curve(&text, &p->loss, &good));
        join_neighbours(p);
    }
    for (int i = 0; i < PLOT_CURVES && good; i++) VPPS_TRY(read_curve(&text, &p->measures[i], &good));
    return good ? VPPS_OK : vpps_fail(VPPS_FORMAT, "%s: \"train.curves\" does not hold curves", name);
}

/* ---------------------------------------------------------------- axes */

/* A rectangle of the picture and the range of data it shows. */
typedef struct panel {
    double left, top, width, height;
    double x_low, x_high, y_low, y_high;
} panel;

static double pixel_x(const panel *a, double x) { return a->left + a->width * (x - a->x_low) / (a->x_high - a->x_low); }
static double pixel_y(const panel *a, double y) {
    return a->top + a->height * (1 - (y - a->y_low) / (a->y_high - a->y_low));
}

/* Returns the least step of 1, 2 or 5 times a power of ten that divides `range` into at most `count` steps. */
static double tick_step(double range, int count) {
    const double power = pow(10, floor(log10(range / count)));
    const double factors[] = {1, 2, 5, 10};
    for (size_t i = 0; i < VPPS_COUNT(factors); i++)
        if (range / (factors[i] * power) <= count + 1e-9) return factors[i] * power;
    return 10 * power;
}

static void widen(panel *a, const plot_curve *curve) {
    for (const plot_point *p = curve->points; p < curve->points + curve->n; p++) {
        a->x_low = fmin(a->x_low, p->x);
        a->x_high = fmax(a->x_high, p->x);
        a->y_low = fmin(a->y_low, p->y);
        a->y_high = fmax(a->y_high, p->y);
    }
}

static void draw_axes(FILE *f, const panel *a, const char *y_title, bool x_labels) {
    const double step_y = tick_step(a->y_high - a->y_low, 6);
    const double step_x = fmax(tick_step(a->x_high - a->x_low, 12), a->x_high - a->x_low > 1.5 ? 1 : 0);
    for (double t = ceil(a->y_low / step_y - 1e-9); t * step_y <= a->y_high + 1e-9 * step_y; t++) {
        const double y = pixel_y(a, t * step_y);
        fprintf(f, "<path d='M%.1f %.1fh%.1f' stroke='#ddd'/>", a->left, y, a->width);
        fprintf(f, "<text x='%.1f' y='%.1f' text-anchor='end'>%.10g</text>\n", a->left - 8, y + 4, t * step_y + 0.0);
    }
    for (double t = ceil(a->x_low / step_x - 1e-9); t * step_x <= a->x_high + 1e-9 * step_x; t++) {
        const double x = pixel_x(a, t * step_x);
        fprintf(f, "<path d='M%.1f %.1fv5' stroke='#444'/>", x, a->top + a->height);
        if (x_labels)
            fprintf(f, "<text x='%.1f' y='%.1f' text-anchor='middle'>%.10g</text>\n", x, a->top + a->height + 20,
                    t * step_x + 0.0);
    }
    fprintf(f, "<path d='M%.1f %.1fv%.1fh%.1f' fill='none' stroke='#444'/>\n", a->left, a->top, a->height, a->width);
    fprintf(f, "<text transform='translate(%.1f %.1f) rotate(-90)' text-anchor='middle'>%s</text>\n", a->left - 50,
            a->top + a->height / 2, y_title);
}

/* ---------------------------------------------------------------- curves */

static void draw_curve(FILE *f, const panel *a, const plot_curve *curve, const char *style) {
    if (!curve->n) return;
    fprintf(f, "<polyline fill='none' %s points='", style);
    for (size_t i = 0; i < curve->n; i++)
        fprintf(f, "%s%.1f,%.1f", i ? " " : "", pixel_x(a, curve->points[i].x), pixel_y(a, curve->points[i].y));
    fputs("'/>\n", f);
}

/* Draws the loss pale, and over it a running mean over a thirtieth of the run. */
static void draw_loss(FILE *f, const panel *a, const plot_curve *loss) {
    plot_point smooth[MAX_POINTS];
    const size_t n = loss->n, reach = n / 60;
    for (size_t i = 0; i < n; i++) {
        /* equally many points on both sides, so that the mean is not shifted */
        const size_t r = i < reach ? i : n - 1 - i < reach ? n - 1 - i : reach;
        double sum = 0;
        for (size_t k = i - r; k <= i + r; k++) sum += (double)loss->points[k].y;
        smooth[i] = (plot_point){loss->points[i].x, (float)(sum / (double)(2 * r + 1))};
    }
    char style[96];
    snprintf(style, sizeof style, "stroke='%s' stroke-opacity='0.35'", loss_colour);
    draw_curve(f, a, loss, style);
    snprintf(style, sizeof style, "stroke='%s' stroke-width='2'", loss_colour);
    draw_curve(f, a, &(plot_curve){smooth, n}, style);
}

static void draw_measures(FILE *f, const panel *a, const plot *p) {
    for (int i = 0; i < PLOT_CURVES; i++) {
        const plot_curve *curve = &p->measures[i];
        const char *colour = split_colours[i / PLOT_METRICS];
        char style[96];
        snprintf(style, sizeof style, "stroke='%s' stroke-width='2'%s", colour, metric_dashes[i % PLOT_METRICS]);
        draw_curve(f, a, curve, style);
        for (size_t k = 0; k < curve->n && curve->n <= 60; k++)
            fprintf(f, "<circle cx='%.1f' cy='%.1f' r='2.6' fill='%s'/>\n", pixel_x(a, curve->points[k].x),
                    pixel_y(a, curve->points[k].y), colour);
    }
}

/* Draws a row above a panel, at its right end: a line, a name and the last value of every curve with points. */
static void draw_legend(FILE *f, const panel *a, const plot *p) {
    double x = a->left + a->width;
    const double y = a->top - 12;
    for (int i = PLOT_CURVES - 1; i >= 0; i--) {
        const plot_curve *curve = &p->measures[i];
        if (!curve->n) continue;
        char text[64], value[32];
        number_text(curve->points[curve->n - 1].y, 1, value, sizeof value);
        const int len = snprintf(text, sizeof text, "%s, %s %s", split_names[SPLIT_DEV + i / PLOT_METRICS],
                                 p->task->metrics[i % PLOT_METRICS].text, value);
        const double text_width = 6.6 * len;
        fprintf(f, "<text x='%.1f' y='%.1f' text-anchor='end'>%s</text>", x, y + 4, text);
        fprintf(f, "<path d='M%.1f %.1fh22' stroke='%s' stroke-width='2'%s/>\n", x - text_width - 26, y,
                split_colours[i / PLOT_METRICS], metric_dashes[i % PLOT_METRICS]);
        x -= text_width + 44;
    }
}

/* Writes text as an element's content: <, > and & as entities, control characters as spaces, bytes that are not UTF-8 as question marks. */
static void write_xml(FILE *f, const char *text) {
    for (uint32_t bytes; *text; text += bytes) {
        bytes = vpps_utf8_character(text, strlen(text));
        const unsigned char c = (unsigned char)*text;
        const char *entity = c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : NULL;
        if (entity)
            fputs(entity, f);
        else if (bytes > 1)
            fprintf(f, "%.*s", (int)bytes, text);
        else
            fputc(c < 0x20 ? ' ' : c < 0x80 ? c : '?', f);
    }
}

static void draw(FILE *f, const plot *p) {
    bool measured = false;
    for (int i = 0; i < PLOT_CURVES; i++) measured |= p->measures[i].n > 0;
    const double room = HEIGHT - TOP - BOTTOM, width = WIDTH - LEFT - RIGHT;
    const double height = measured ? (room - GAP) / 2 : room;
    panel top = {LEFT, TOP, width, height, INFINITY, 0, INFINITY, -INFINITY}, below = top;
    below.top += height + GAP;
    for (int i = 0; i < PLOT_CURVES; i++) widen(&below, &p->measures[i]);
    widen(&top, &p->loss);
    const double low = fmin(top.x_low, below.x_low), high = fmax(top.x_high, below.x_high);
    top.x_low = below.x_low = isfinite(low) ? floor(low) : 0; /* the x axis starts at the beginning of an epoch */
    top.x_high = below.x_high = high > top.x_low ? high : top.x_low + 1;
    const metric *first = &p->task->metrics[0];
    const double least = below.y_low, most = below.y_high;
    /* Percentages are drawn from 0 on; if they differ and all exceed 50, from 10 to 20 below the least. The axis of the loss includes 0. */
    below.y_low = first->share && most > least && least > 50 ? floor(least / 10) * 10 - 10 : 0;
    below.y_high = !first->share && most > 0 ? 1.05 * most : 100;
    top.y_low = fmin(0, top.y_low);
    top.y_high = top.y_high > top.y_low ? top.y_high * 1.05 : top.y_low + 1;

    fprintf(f,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d' "
            "font-family='Helvetica, Arial, sans-serif' font-size='12' fill='#222'>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    fprintf(f, "<rect width='%d' height='%d' fill='white'/>\n<text x='%d' y='26' font-size='15' font-weight='bold'>",
            WIDTH, HEIGHT, LEFT);
    write_xml(f, p->title);
    fputs("</text>\n", f);
    draw_axes(f, &top, "training loss", !measured);
    draw_loss(f, &top, &p->loss);
    char axis[64];
    snprintf(axis, sizeof axis, first->share ? "%s (%%)" : "%s", first->share ? "measured" : first->text);
    if (measured) {
        draw_axes(f, &below, axis, true);
        draw_measures(f, &below, p);
        draw_legend(f, &below, p);
    }
    fprintf(f, "<text x='%.1f' y='%d' text-anchor='middle'>epoch</text>\n</svg>\n", LEFT + width / 2, HEIGHT - 14);
}

static vpps_status print(const void *context, FILE *f) {
    draw(f, context);
    return VPPS_OK;
}

vpps_status plot_write(const plot *p, const char *path) { return vpps_output_print(path, print, p); }

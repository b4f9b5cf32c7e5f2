/* cell_svg.c - compiled cells as a picture. A cell is a list of its operations, stage by stage in the order in which they run. Beside the
 * list, every input and every place of the record is a column; a value there is a line from the operation that makes it to the last
 * one that reads it. */
#include "cli/cell_svg.h"
#include "cell/print.h"
#include "io/xml.h"

#include <math.h>

/* Pixels; letters are those of the monospaced font that the picture asks for. */
enum { MARGIN = 16, ROW = 16, HEAD = 22, GAP = 6, COLUMN = 13, BETWEEN = 28, LABEL = 84 };
static const double letter = 6.7, title_letter = 8.6;
enum { MOST_LETTERS = 64, LABEL_LETTERS = 12, HEADING_LETTERS = 56 }; /* of an operation, a label, a stage's heading */

/* Colours of Okabe and Ito's palette: eager, main, lazy; what comes from outside. */
static const char *const part_colours[] = {"#009e73", "#0072b2", "#d55e00"};
static const char outside_colour[] = "#777777";

typedef struct drawing {
    const vpps_model *model;
    const vpps_compiled_cell *c;
    FILE *f;
    double y;            /* where the next row begins */
    double *made, *read; /* of each value: its row, and the last one that reads it; NAN: there is none */
    uint32_t *column;    /* of each value; VPPS_NONE: it is not drawn */
    uint32_t n_columns;
    double notes, columns, width; /* x of the notes, x of the first column, width of the cell */
    bool failed;                  /* no memory for a text */
} drawing;

/* ---------------------------------------------------------------- text */

static void print_text(drawing *d, double x, const char *text) {
    fprintf(d->f, "<text x='%.1f' y='%.1f'>", x, d->y + ROW - 4);
    vpps_write_xml(d->f, text);
    fputs("</text>\n", d->f);
}

/* "t3 = sigmoid(t1)"; freed by the caller. NULL: out of memory, and the drawing has failed. */
static char *equation(drawing *d, uint32_t v) {
    char *name = vpps_value_name(d->model, d->c, v), *text = vpps_value_text(d->model, d->c, v), *both = NULL;
    if (!name || !text || asprintf(&both, "%s = %s", name, text) < 0) both = NULL;
    d->failed |= !both;
    VPPS_FREE(name, text);
    return both;
}

/* Takes the text; what is longer than a row has it whole as a hint. */
static void print_row(drawing *d, char *text) {
    d->failed |= !text;
    if (!text) return;
    const bool cut = strlen(text) > MOST_LETTERS;
    if (cut) {
        fputs("<g><title>", d->f);
        vpps_write_xml(d->f, text);
        fputs("</title>", d->f);
        text[MOST_LETTERS - 3] = '\0';
        vpps_drop_cut_character(text);
        memcpy(text + strlen(text), "...", sizeof "...");
    }
    print_text(d, MARGIN + 8, text);
    if (cut) fputs("</g>\n", d->f);
    free(text);
}

/* "256 x 1, recomputed, out0", for a row's second column; freed by the caller. NULL: out of memory, and the drawing has failed. */
static char *notes(drawing *d, uint32_t v) {
    const vpps_compiled_cell *c = d->c;
    const vpps_cell_value *x = &c->values[v];
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f) return d->failed = true, NULL;
    fprintf(f, "%u x %u%s", x->rows, x->cols, x->axis ? " a member" : "");
    if (x->kind == VPPS_VALUE_RUN && x->run.recompute) fputs(", recomputed", f);
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (c->outputs[k].value == v) fprintf(f, ", out%u", k);
    for (uint32_t i = 0; i < c->n_contributions; i++)
        if (c->contributions[i].value == v)
            fprintf(f, ", to %s%u", c->contributions[i].lookup ? "lookup " : "in", c->contributions[i].index);
    if (fclose(f) == 0) return text;
    free(text);
    return d->failed = true, NULL;
}

static void print_notes(drawing *d, uint32_t v) {
    char *text = notes(d, v);
    if (text) print_text(d, d->notes, text);
    free(text);
}

/* ---------------------------------------------------------------- columns */

static bool comes_from_outside(const vpps_cell_value *x) {
    return x->kind == VPPS_VALUE_INPUT || x->kind == VPPS_VALUE_LOOKUP;
}

static void print_label(drawing *d, uint32_t column, const char *text) {
    fprintf(d->f, "<text transform='translate(%.1f %.1f) rotate(-90)'>", d->columns + column * (double)COLUMN + 4,
            d->y + LABEL - 6);
    vpps_write_xml(d->f, text);
    fputs("</text>\n", d->f);
}

/* What a record belongs to: a vertex, a member of a list, a vertex while it runs in one direction. */
static const char *record_name(uint32_t record) {
    if (record == VPPS_RECORD_FORWARD) return "forward";
    if (record == VPPS_RECORD_BACKWARD) return "backward";
    return record ? "member" : "word";
}

/* What comes from outside, then the places of each record in the order of their words. */
static void lay_out_columns(drawing *d) {
    const vpps_compiled_cell *c = d->c;
    for (uint32_t v = 0; v < c->n_values; v++) {
        d->column[v] = VPPS_NONE;
        if (!comes_from_outside(&c->values[v])) continue;
        char label[LABEL_LETTERS + 1];
        if (c->values[v].kind == VPPS_VALUE_INPUT) {
            snprintf(label, sizeof label, "in%u", c->values[v].input);
        } else {
            const vpps_param table = c->lookups[c->values[v].lookup].table;
            snprintf(label, sizeof label, "%.*s", LABEL_LETTERS, vpps_table_name(d->model, table));
            vpps_drop_cut_character(label);
        }
        print_label(d, d->n_columns, label);
        d->column[v] = d->n_columns++;
    }
    for (uint32_t record = 0; record < VPPS_RECORDS; record++) {
        for (uint32_t at = 0; at < c->kept_words[record]; at++) {
            bool any = false;
            for (uint32_t v = 0; v < c->n_values; v++) {
                const vpps_cell_value *x = &c->values[v];
                if (!x->kept || x->record != record || x->offset != at) continue;
                d->column[v] = d->n_columns;
                any = true;
            }
            if (!any) continue;
            char text[24];
            snprintf(text, sizeof text, "%s %u", record_name(record), at);
            print_label(d, d->n_columns++, text);
        }
    }
}

/* Calls `see` for every value that has a column and every row that reads it. */
static void for_each_read(drawing *d, double gradients, void (*see)(drawing *d, uint32_t v, double y)) {
    const vpps_compiled_cell *c = d->c;
    for (uint32_t u = 0; u < c->n_values; u++) {
        const vpps_cell_value *x = &c->values[u];
        for (uint32_t k = 0; k < x->n_args && !isnan(d->made[u]) && !comes_from_outside(x); k++) {
            const uint32_t v = c->args[x->first_arg + k].value;
            if (d->column[v] != VPPS_NONE) see(d, v, d->made[u]);
        }
    }
    for (uint32_t i = 0; i < c->n_outers; i++) {
        const double y = gradients + i * (double)ROW + ROW / 2.0;
        if (d->column[c->outers[i].dy] != VPPS_NONE) see(d, c->outers[i].dy, y);
        if (c->outers[i].x != VPPS_NONE && d->column[c->outers[i].x] != VPPS_NONE) see(d, c->outers[i].x, y);
    }
}

static double column_x(const drawing *d, uint32_t v) { return d->columns + d->column[v] * (double)COLUMN; }

static const char *colour_of(const drawing *d, uint32_t v) {
    const vpps_cell_value *x = &d->c->values[v];
    return comes_from_outside(x) ? outside_colour : part_colours[x->part % VPPS_PART_BACK_EAGER];
}

static void take_read(drawing *d, uint32_t v, double y) {
    if (isnan(d->read[v]) || y > d->read[v]) d->read[v] = y;
}

static void draw_read(drawing *d, uint32_t v, double y) {
    fprintf(d->f, "<circle cx='%.1f' cy='%.1f' r='2.5' fill='white' stroke='%s'/>\n", column_x(d, v), y,
            colour_of(d, v));
}

static void draw_lines(drawing *d, double gradients) {
    for_each_read(d, gradients, take_read);
    for (uint32_t v = 0; v < d->c->n_values; v++) {
        if (d->column[v] == VPPS_NONE || isnan(d->made[v]) || isnan(d->read[v])) continue;
        fprintf(d->f, "<path d='M%.1f %.1fV%.1f' stroke='%s' stroke-width='3'><title>", column_x(d, v), d->made[v],
                d->read[v], colour_of(d, v));
        char *name = vpps_value_name(d->model, d->c, v);
        d->failed |= !name;
        vpps_write_xml(d->f, name ? name : "");
        free(name);
        fputs("</title></path>\n", d->f);
    }
    for_each_read(d, gradients, draw_read);
    for (uint32_t v = 0; v < d->c->n_values; v++) {
        if (d->column[v] == VPPS_NONE || isnan(d->made[v])) continue;
        fprintf(d->f, "<circle cx='%.1f' cy='%.1f' r='4' fill='%s'/>\n", column_x(d, v), d->made[v], colour_of(d, v));
    }
}

/* ---------------------------------------------------------------- stages */

/* A heading, on a band for so many rows. */
static void begin_band(drawing *d, const char *colour, const char *heading, uint32_t rows) {
    fprintf(d->f, "<rect x='%d' y='%.1f' width='%.1f' height='%d' fill='%s' fill-opacity='0.1'/>\n", MARGIN, d->y,
            d->width - 2 * MARGIN, (int)(HEAD + rows * ROW), colour);
    fprintf(d->f, "<text x='%d' y='%.1f' font-weight='bold' fill='%s'>%s</text>\n", MARGIN + 8, d->y + 15, colour,
            heading);
    d->y += HEAD;
}

static void draw_reads(drawing *d) {
    const vpps_compiled_cell *c = d->c;
    uint32_t n = 0;
    for (uint32_t v = 0; v < c->n_values; v++) n += comes_from_outside(&c->values[v]);
    if (!n) return;
    begin_band(d, outside_colour, "reads", n);
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        if (!comes_from_outside(x)) continue;
        char *text = NULL;
        if (x->kind == VPPS_VALUE_INPUT) {
            char *from = vpps_input_text(c, x->input);
            if (!from || asprintf(&text, "in%u = %s", x->input, from) < 0) text = NULL;
            free(from);
        } else {
            text = vpps_value_name(d->model, c, v);
        }
        print_row(d, text);
        print_notes(d, v);
        d->made[v] = d->y + ROW / 2.0;
        d->y += ROW;
    }
    d->y += GAP;
}

static void draw_stage(drawing *d, uint32_t number) {
    const vpps_compiled_cell *c = d->c;
    const vpps_cell_stage *s = &c->stages[number];
    const bool recurrent = c->needs.recurrent_in | c->needs.recurrent_out;
    char heading[96];
    snprintf(heading, sizeof heading, "stage %u: %s %s, by %s%s", number, s->backward ? "backward" : "forward",
             vpps_part_name(s->part), vpps_split_name(s->split),
             !recurrent                ? ""
             : vpps_by_levels(s->part) ? ", level by level"
                                       : ", once over all vertices");
    begin_band(d, part_colours[s->part % VPPS_PART_BACK_EAGER], heading, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t v = c->order[s->first + i];
        print_row(d, equation(d, v));
        print_notes(d, v);
        d->made[v] = d->y + ROW / 2.0;
        d->y += ROW;
    }
    d->y += GAP;
}

static void draw_gradients(drawing *d) {
    const vpps_compiled_cell *c = d->c;
    if (!c->n_outers) return;
    begin_band(d, outside_colour, "gradients of parameters, when all vertices are done", c->n_outers);
    for (uint32_t i = 0; i < c->n_outers; i++, d->y += ROW) print_row(d, vpps_outer_text(d->model, c, i));
    d->y += GAP;
}

/* ---------------------------------------------------------------- all of it */

static void widen(char *text, size_t *letters) {
    if (text && strlen(text) > *letters) *letters = strlen(text);
    free(text);
}

/* Where notes and columns begin, and how wide the cell is. */
static void measure(drawing *d, size_t title_letters) {
    const vpps_compiled_cell *c = d->c;
    size_t equations = 24, longest_notes = 0;
    uint32_t columns = 0;
    for (uint32_t v = 0; v < c->n_values; v++) {
        const bool outside = comes_from_outside(&c->values[v]);
        columns += outside || c->values[v].kept; /* at least as many as there are */
        if (outside || c->values[v].stage != VPPS_NONE) widen(notes(d, v), &longest_notes);
        if (c->values[v].stage != VPPS_NONE) widen(equation(d, v), &equations);
    }
    if (equations > MOST_LETTERS) equations = MOST_LETTERS;
    d->notes = MARGIN + 8 + (double)equations * letter + 14;
    d->columns = d->notes + (double)longest_notes * letter + BETWEEN;
    d->columns =
        fmax(d->columns, MARGIN + fmax(HEADING_LETTERS * letter, (double)title_letters * title_letter) + BETWEEN);
    d->width = d->columns + columns * (double)COLUMN + MARGIN;
}

static void draw_cell(drawing *d) {
    const vpps_compiled_cell *c = d->c;
    char *title;
    if (asprintf(&title, "%s: %u stage%s, a record of %u words a vertex", c->name, c->n_stages,
                 c->n_stages == 1 ? "" : "s", c->kept_words[0]) < 0) {
        d->failed = true;
        return;
    }
    measure(d, strlen(title));
    fprintf(d->f, "<text x='%d' y='%.1f' font-size='14' font-weight='bold'>", MARGIN, d->y + 20);
    vpps_write_xml(d->f, title);
    fputs("</text>\n", d->f);
    free(title);
    lay_out_columns(d);
    d->y += LABEL;
    draw_reads(d);
    for (uint32_t i = 0; i < c->n_stages; i++) draw_stage(d, i);
    const double gradients = d->y + HEAD;
    draw_gradients(d);
    draw_lines(d, gradients);
}

/* Draws at y, and sets y to where the cell ends. *width grows to the cell's. */
static vpps_status place_cell(const vpps_model *model, const vpps_compiled_cell *c, FILE *f, double *y, double *width) {
    drawing d = {.model = model, .c = c, .f = f, .y = *y};
    d.made = malloc((c->n_values + 1) * sizeof *d.made);
    d.read = malloc((c->n_values + 1) * sizeof *d.read);
    d.column = malloc((c->n_values + 1) * sizeof *d.column);
    d.failed = !d.made || !d.read || !d.column;
    for (uint32_t v = 0; !d.failed && v < c->n_values; v++) d.made[v] = d.read[v] = NAN;
    if (!d.failed) draw_cell(&d);
    VPPS_FREE(d.made, d.read, d.column);
    *y = d.y + MARGIN;
    *width = fmax(*width, d.width);
    return d.failed ? vpps_fail(VPPS_MEMORY, "cell %s: no memory for its picture", c->name) : VPPS_OK;
}

static const char explanation[] =
    "A column is an input, or a place of the record; a line lasts from where a value is made to where "
    "it is last read.";

vpps_status cell_picture_print(const void *picture, FILE *f) {
    const cell_picture *p = picture;
    char *body = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&body, &size);
    if (!memory) return vpps_fail(VPPS_MEMORY, "no memory for a picture");
    double y = 44, width = 2 * MARGIN + sizeof explanation * letter;
    vpps_status status = VPPS_OK;
    for (uint32_t i = 0; i < p->n && status == VPPS_OK; i++)
        status = place_cell(p->model, p->cells[i], memory, &y, &width);
    if (fclose(memory) != 0 && status == VPPS_OK) status = vpps_fail(VPPS_MEMORY, "no memory for a picture");
    if (status == VPPS_OK) {
        fprintf(f,
                "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' viewBox='0 0 %.0f %.0f' "
                "font-family='DejaVu Sans Mono, Menlo, Consolas, monospace' font-size='11' fill='#222'>\n"
                "<rect width='%.0f' height='%.0f' fill='white'/>\n<text x='%d' y='24'>%s</text>\n",
                width, y, width, y, width, y, MARGIN, explanation);
        fwrite(body, 1, size, f);
        fputs("</svg>\n", f);
    }
    free(body);
    return status;
}

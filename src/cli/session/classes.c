/* classes.c - computes and prints confusion matrices. */
#include "cli/session/classes.h"
#include "base/base.h"

#include <inttypes.h>
#include <math.h>

vpps_status classes_open(class_counts *c, uint32_t n) {
    *c = (class_counts){.n = n, .counts = calloc((size_t)(n + 1) * n + 1, sizeof *c->counts)};
    return c->counts ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for a matrix of %u classes", n);
}

void classes_close(class_counts *c) {
    free(c->counts);
    vpps_f1_destroy(c->chunks);
    vpps_vocab_destroy(c->tags);
    *c = (class_counts){0};
}

/* Returns the sum of a row: how often the gold class occurs. */
static uint64_t row_sum(const class_counts *c, uint32_t row) {
    uint64_t sum = 0;
    for (uint32_t j = 0; j < c->n; j++) sum += c->counts[(size_t)row * c->n + j];
    return sum;
}

/* Returns how often class i occurs, is predicted, and is predicted right. */
static vpps_f1_counts counts_of(const class_counts *c, uint32_t i) {
    vpps_f1_counts x = {.gold = row_sum(c, i)};
    if (i == c->n) return x; /* class n stands for unseen labels, which are never predicted */
    for (uint32_t row = 0; row <= c->n; row++) x.predicted += c->counts[(size_t)row * c->n + i];
    x.correct = c->counts[(size_t)i * c->n + i];
    return x;
}

static double share(uint64_t part, uint64_t of) { return of ? (double)part / (double)of : NAN; }
/* precision_of, recall_of and f1_of return NaN where the divisor is 0. */
static double precision_of(vpps_f1_counts x) { return share(x.correct, x.predicted); }
static double recall_of(vpps_f1_counts x) { return share(x.correct, x.gold); }
static double f1_of(vpps_f1_counts x) { return share(2 * x.correct, x.gold + x.predicted); }

const char *classes_name(const vpps_vocab *names, uint32_t i, char number[16]) {
    const char *name = names ? vpps_vocab_word(names, i) : NULL;
    snprintf(number, 16, "%" PRIu32, i);
    return name ? name : number;
}

/* row_name, row_counts, n_rows: a row is about a class of the confusion matrix or, if `entities`, a type of entity. */

/* Returns a row's name. The row of labels that are unknown to training comes after the classes. */
static const char *row_name(const class_counts *c, const vpps_vocab *names, bool entities, uint32_t i,
                            char number[16]) {
    return entities ? vpps_f1_type(c->chunks, i) : i < c->n ? classes_name(names, i, number) : "(unseen)";
}

static vpps_f1_counts row_counts(const class_counts *c, bool entities, uint32_t i) {
    return entities ? vpps_f1_type_counts(c->chunks, i) : counts_of(c, i);
}

/* Returns the number of rows to print. The row of labels unknown to training is printed only if there are any. */
static uint32_t n_rows(const class_counts *c, bool entities) {
    return entities ? vpps_f1_types(c->chunks) : c->n + (row_sum(c, c->n) > 0);
}

/* ---------------------------------------------------------------- for people */

/* Returns a name's width on a terminal: the number of its characters. */
static int width(const char *text) {
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void print_name(FILE *f, const char *name, int columns) {
    fprintf(f, "%s%*s", name, columns > width(name) ? columns - width(name) : 0, "");
}

static void print_share(FILE *f, double x) {
    if (isnan(x))
        fprintf(f, "%11s", "-");
    else
        fprintf(f, "%9.1f %%", 100 * x);
}

/* Prints a row for each class or entity. Returns the number of columns that names take. */
static int print_rows(const class_counts *c, const vpps_vocab *names, bool entities, FILE *f) {
    char number[16];
    int columns = 9;
    for (uint32_t i = 0; i < n_rows(c, entities); i++) {
        const int w = width(row_name(c, names, entities, i, number));
        columns = w > columns ? w : columns;
    }
    fputc('\n', f);
    print_name(f, entities ? "entities" : "class", columns);
    fprintf(f, "%11s%11s%11s%10s%11s\n", "precision", "recall", "F1", "gold", "predicted");
    for (uint32_t i = 0; i < n_rows(c, entities); i++) {
        const vpps_f1_counts x = row_counts(c, entities, i);
        print_name(f, row_name(c, names, entities, i, number), columns);
        print_share(f, precision_of(x));
        print_share(f, recall_of(x));
        print_share(f, f1_of(x));
        fprintf(f, "%10" PRIu64 "%11" PRIu64 "\n", x.gold, x.predicted);
    }
    return columns;
}

static void print_matrix(const class_counts *c, const vpps_vocab *names, int columns, FILE *f) {
    char number[16];
    int w = 5;
    for (uint32_t i = 0; i < c->n; i++) {
        const int name = width(classes_name(names, i, number));
        w = name > w ? name : w;
        for (uint32_t r = 0; r < n_rows(c, false); r++) {
            snprintf(number, sizeof number, "%" PRIu64, c->counts[(size_t)r * c->n + i]);
            w = (int)strlen(number) > w ? (int)strlen(number) : w;
        }
    }
    fprintf(f, "\ngold \\ predicted\n%*s", columns, "");
    for (uint32_t i = 0; i < c->n; i++) {
        const char *name = classes_name(names, i, number);
        fprintf(f, "%*s", 2 + w - width(name), "");
        fputs(name, f);
    }
    fputc('\n', f);
    for (uint32_t r = 0; r < n_rows(c, false); r++) {
        print_name(f, row_name(c, names, false, r, number), columns);
        for (uint32_t i = 0; i < c->n; i++) fprintf(f, "%*" PRIu64, 2 + w, c->counts[(size_t)r * c->n + i]);
        fputc('\n', f);
    }
}

void classes_print(const class_counts *c, const vpps_vocab *names, FILE *f) {
    enum { MOST = 16 }; /* a confusion matrix of more classes is not printed */
    if (c->chunks) print_rows(c, names, true, f);
    const int columns = print_rows(c, names, false, f);
    if (c->n <= MOST)
        print_matrix(c, names, columns, f);
    else
        fprintf(f, "\nThe matrix of %u classes is in what --json prints.\n", c->n);
}

/* ---------------------------------------------------------------- for programs */

static json_t *rows_json(const class_counts *c, const vpps_vocab *names, bool entities) {
    char number[16];
    json_t *rows = json_array();
    for (uint32_t i = 0; i < n_rows(c, entities); i++) {
        const vpps_f1_counts x = row_counts(c, entities, i);
        json_t *name = json_string(row_name(c, names, entities, i, number)); /* NULL: it is not UTF-8 */
        json_array_append_new(rows, json_pack("{so sI sI sI so so so}", "name", name ? name : json_null(), "gold",
                                              (json_int_t)x.gold, "predicted", (json_int_t)x.predicted, "correct",
                                              (json_int_t)x.correct, "precision", report_number(precision_of(x)),
                                              "recall", report_number(recall_of(x)), "f1", report_number(f1_of(x))));
    }
    return rows;
}

json_t *classes_json(const class_counts *c, const vpps_vocab *names) {
    json_t *matrix = json_array();
    for (uint32_t i = 0; i < n_rows(c, false); i++) {
        json_t *row = json_array();
        for (uint32_t j = 0; j < c->n; j++)
            json_array_append_new(row, json_integer((json_int_t)c->counts[(size_t)i * c->n + j]));
        json_array_append_new(matrix, row);
    }
    return json_pack("{so so so}", "classes", rows_json(c, names, false), "entities",
                     c->chunks ? rows_json(c, names, true) : json_null(), "confusion", matrix);
}

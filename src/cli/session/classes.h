/* classes.h - the confusion matrix, and each class's precision and recall. */
#pragma once

#include "cli/common/json.h"
#include "vpps_data.h"

/* A confusion matrix: rows are gold (correct) classes, columns are predicted classes. Row n counts gold labels unknown to training. */
typedef struct class_counts {
    uint32_t n;
    /* confusion matrix, row-major: n + 1 rows of gold labels (the last: unknown labels), n columns of predicted classes */
    uint64_t *counts;
    vpps_f1 *chunks;  /* counts for the F1 of entities, if tags mark chunks (B-PER); else NULL */
    vpps_vocab *tags; /* names of the tags in `chunks` */
} class_counts;

/* Makes a matrix of zeros for n classes. Fails with MEMORY. Call classes_close also after a failure. */
vpps_status classes_open(class_counts *c, uint32_t n);
void classes_close(class_counts *c);

/* Counts one word, node or example of gold class `right` that was predicted as class `said`; does nothing if c is NULL. `right` >= n stands
 * for a label unknown to training. */
static inline void classes_count(class_counts *c, uint32_t right, uint32_t said) {
    if (!c || said >= c->n) return;
    c->counts[(size_t)(right < c->n ? right : c->n) * c->n + said]++;
}

/* Returns a class's name, or its number, written to `number`, when `names` is NULL. */
const char *classes_name(const vpps_vocab *names, uint32_t i, char number[16]);

/* Prints a table of each class's precision, recall and F1, and the confusion matrix unless there are many classes. */
void classes_print(const class_counts *c, const vpps_vocab *names, FILE *f);

/* Returns the counts as JSON, an object with "classes", "entities" (null if there are none) and "confusion". */
json_t *classes_json(const class_counts *c, const vpps_vocab *names);

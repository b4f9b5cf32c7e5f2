/* classes.h - the confusion matrix of a network's classes, and each class's precision and recall. */
#pragma once

#include "cli/json.h"
#include "vpps_data.h"

/* Rows are the right classes, columns the network's. Row n: labels that training did not have. */
typedef struct class_counts {
    uint32_t n;
    uint64_t *counts; /* (n + 1) x n */
    vpps_f1 *chunks;  /* entities, where tags are chunks; else NULL */
    vpps_vocab *tags; /* its tags' words */
} class_counts;

/* Makes it empty, for so many classes; free it in any case. Fails with MEMORY. */
vpps_status classes_open(class_counts *c, uint32_t n);
void classes_close(class_counts *c);

/* c may be NULL: nothing counts. `right` is n or more for a label that training did not have. */
static inline void classes_count(class_counts *c, uint32_t right, uint32_t said) {
    if (!c || said >= c->n) return;
    c->counts[(size_t)(right < c->n ? right : c->n) * c->n + said]++;
}

/* A class's name; `names` NULL: its number. */
const char *classes_name(const vpps_vocab *names, uint32_t i, char number[16]);

/* Tables for people. A matrix of many classes is left out. */
void classes_print(const class_counts *c, const vpps_vocab *names, FILE *f);

/* An object: "classes", "entities" (null where there are none), "confusion". */
json_t *classes_json(const class_counts *c, const vpps_vocab *names);

/* A line a class, with its row of the matrix (RFC 4180). */
void classes_csv(const class_counts *c, const vpps_vocab *names, FILE *f);

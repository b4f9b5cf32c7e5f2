/* export.h - a model's cells as C: the parts of the writer.
 *
 *   export_c.c       the file and its header: names, shapes, the text that is the same for every model
 *   export_weights.c the parameters, in the order and precision in which the file's products read them
 *   export_cell.c    a cell's function: what it takes, checks and gives
 *   export_steps.c   its body, a loop for each segment of the cell's stage program (codegen/segments.h)
 *
 * Names in the text: childN the values that child N scatters, listN those of each child of list N, pullN and pullsN what is pulled, indexN an
 * index; out and pushed what the vertex gives; tN value N, vN its element e, mN how many members list N has, m one of them; w_NAME a parameter.
 */
#pragma once

#include "codegen/segments.h"

enum { VPPS_C_NAME = 64 /* bytes of a name */ };

typedef struct vpps_c_writer {
    const vpps_model *model;
    const vpps_c_export *options;
    FILE *out;
    const char *prefix;
    char *upper;                /* the prefix in capitals, for constants */
    char (*names)[VPPS_C_NAME]; /* w_NAME of each parameter */
    bool *used;                 /* of each parameter: the text names it */
    uint32_t *
        output_at; /* of each number of an output: floats before it in what a vertex scatters, the same for every cell */
    uint32_t n_outputs; /* numbers of outputs that there are; output_at[n_outputs] is the end of the last */
    struct vpps_c_beside {
        uint32_t hash;
        size_t bytes;
    } * beside; /* of the file of weights, so far */
} vpps_c_writer;

/* A cell of the text. */
typedef struct vpps_c_cell {
    const vpps_c_writer *w;
    const vpps_cell_data *cell;
    vpps_compiled_cell *c;                      /* for inference, one VP that has whole vertices */
    char name[VPPS_C_NAME], upper[VPPS_C_NAME]; /* of its function, without the prefix; in capitals, of its constants */
    vpps_segments s;
    FILE *out;
    uint32_t segment;
    bool many;        /* there is a function of many vertices; else one of a vertex alone */
    uint32_t *places; /* of each scattered and pushed value in `out` or `pushed`; VPPS_NONE: it is not returned */
    uint32_t out_words, push_words;
    char *body; /* the function's text after the checks of its arguments, which tells what it reads */
} vpps_c_cell;

/* A piece of the text. Names have a limited length, and so has every expression that is made of them. */
typedef struct vpps_c_text {
    char at[512];
} vpps_c_text;
vpps_c_text vpps_c_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An element, an expression, of an input: "child0[256 + e]". */
vpps_c_text vpps_c_input(const vpps_c_cell *x, uint32_t input, const char *element);
/* Of a value, wherever it is: of the current member m, if it has an axis. */
vpps_c_text vpps_c_element(const vpps_c_cell *x, uint32_t v, const char *element);

/* Element e of scattered or pushed value k: "out[256 + e]". */
vpps_c_text vpps_c_given(const vpps_c_cell *x, uint32_t k);

/* "w_U", with its scales where it has some, and notes that it is used. */
vpps_c_text vpps_c_weights(const vpps_c_writer *w, vpps_param p);

/* A name that a user chose, for a comment, which it must not end. */
void vpps_c_comment(FILE *out, const char *name);

/* Between these, what is written is done for each vertex that the function computes together; `of` is what was written before. */
typedef struct vpps_c_block {
    FILE *of;
    char *text;
    size_t bytes;
} vpps_c_block;
vpps_status vpps_c_begin_vertices(vpps_c_cell *x, vpps_c_block *b);
vpps_status vpps_c_end_vertices(vpps_c_cell *x, vpps_c_block *b);

/* Writes the loops of the cell's stage. Fails with ARGUMENT and the operation's name, where one cannot be written as C. */
vpps_status vpps_c_write_stage(vpps_c_cell *x);

/* Writes the function, and its prototype and constants. Fails with ARGUMENT, MEMORY. */
vpps_status vpps_c_write_cell(vpps_c_cell *x, FILE *declarations);

/* Writes the parameters that are used. Fails with ARGUMENT (a number that is not finite), MEMORY, IO. */
vpps_status vpps_c_write_weights(const vpps_c_writer *w);

/* Replaces the host's copy of a parameter by the numbers that the file has for it. */
void vpps_c_round(const vpps_model *model, vpps_param param, vpps_c_precision precision);

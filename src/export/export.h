/* export.h - writes a model's cells as a C file, with a function for each cell. These files are the writer:
 *
 *   export_c.c       writes the C file and its header: names, shapes, the text that is the same for every model
 *   export_weights.c writes the parameters, in the order and precision in which the C file's products read them
 *   export_cell.c    writes a cell's function: its arguments, their checks, its results
 *   export_steps.c   writes the function's body, a loop for each segment (list of steps) of the cell (cell/segments.h)
 *
 * Names in the written C: childN: values that child N scatters; listN: values of each child of list N; pullN, pullsN, indexN: values and
 * indices from the caller; out, pushed: the results; tN: value N; vN: its element e; nN: size of list N; m: a member; w_NAME: a parameter.
 */
#pragma once

#include "cell/segments.h"
#include "vpps_export.h"

enum { VPPS_C_NAME = 64 /* most bytes of a name in the written C */ };

typedef struct vpps_c_writer {
    const vpps_model *model;
    const vpps_c_export *options;
    FILE *out;
    const char *prefix;
    char *upper;                /* the prefix of all names, in capitals, for constants */
    char (*names)[VPPS_C_NAME]; /* for each parameter: its name in the written C, w_NAME */
    bool *used;                 /* for each parameter: whether the written C names it */
    uint32_t *output_at;        /* for output number k of every cell: its offset in the array `out`, in floats */
    uint32_t n_outputs;         /* number of outputs; output_at[n_outputs] is the end of the last output */
    struct vpps_c_beside {
        uint32_t hash;
        size_t bytes;
    } * beside; /* size and hash so far of the file of weights, if separate */
} vpps_c_writer;

/* A cell whose C function is being written. */
typedef struct vpps_c_cell {
    const vpps_c_writer *w;
    const vpps_cell_data *cell;
    vpps_compiled_cell *c;                      /* the cell compiled for inference on a single thread */
    char name[VPPS_C_NAME], upper[VPPS_C_NAME]; /* name: of the C function, without prefix; upper: in capitals */
    vpps_segments s;
    FILE *out;
    uint32_t segment;
    bool many; /* true: a function for many vertices is written beside the function for one vertex */
    /* for each output: its offset in `out` (results for parents) or `pushed` (other results); VPPS_NONE: not written */
    uint32_t *places;
    uint32_t out_words, push_words;
    char *body; /* C text of the function's body; the function has only parameters that the body uses */
} vpps_c_cell;

/* A short piece of the written C. 512 bytes suffice for every expression, since names have a limited length. */
typedef struct vpps_c_text {
    char at[512];
} vpps_c_text;
vpps_c_text vpps_c_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the C expression of an input's element, e.g. "child0[256 + e]". `element` is the C text of the element's number. */
vpps_c_text vpps_c_input(const vpps_c_cell *x, uint32_t input, const char *element);
/* Returns the C expression of an element of value v. If each member of a list input (input of any number of nodes) has
 * a value v, it is that of member m, a loop variable in the written C. */
vpps_c_text vpps_c_element(const vpps_c_cell *x, uint32_t v, const char *element);

/* Returns the C expression of element e of output k: "out[256 + e]" if parents read the output, else "pushed[e]". */
vpps_c_text vpps_c_given(const vpps_c_cell *x, uint32_t k);

/* Returns a parameter's C name, e.g. "w_U", or "w_U, w_U_scale" if it has int8 scales. Marks the parameter as used. */
vpps_c_text vpps_c_weights(const vpps_c_writer *w, vpps_param p);

/* A loop over vertices in the written C. Between vpps_c_begin_vertices and vpps_c_end_vertices, the loop's body is collected in `text`;
 * `of` is the file to which the loop is then written. */
typedef struct vpps_c_block {
    FILE *of;
    char *text;
    size_t bytes;
} vpps_c_block;
vpps_status vpps_c_begin_vertices(vpps_c_cell *x, vpps_c_block *b);
vpps_status vpps_c_end_vertices(vpps_c_cell *x, vpps_c_block *b);

/* Writes the C loops that compute the cell's values. Fails with ARGUMENT if an operation cannot be written as C. */
vpps_status vpps_c_write_stage(vpps_c_cell *x);

/* Writes the cell's function, and to `declarations` its prototype and constants. Fails with ARGUMENT, MEMORY. */
vpps_status vpps_c_write_cell(vpps_c_cell *x, FILE *declarations);

/* Writes the parameters that the cells' functions use. Fails with ARGUMENT (a weight that is not finite), MEMORY, IO. */
vpps_status vpps_c_write_weights(const vpps_c_writer *w);

/* Rounds a parameter's values, in the host's copy, to values that a C file of this precision can hold. */
void vpps_c_round(const vpps_model *model, vpps_param param, vpps_c_precision precision);

/* vpps_export.h - trained cells as C. vpps_export_c writes one C99 file with a function for each of the model's cells, e.g.
 *     int net_inner(const float *child0, const float *child1, float *out, float *pushed);
 * The file needs libc and libm only, allocates nothing, has no globals but constant weights, and any number of threads may call it. The
 * caller applies the functions in its own recursion or loop. A function lacks parameters that it would not read, and arrays of no floats:
 *   child0, child1 ...    for each child gathered by number: the values it scattered, its `out`
 *   list0, n0, list1 ...  for each list: the number of members and, if they are gathered, an array of their `out`
 *   pull0 ..., pulls0 ... pulled values; for a list, an array with a pointer for each member
 *   index0 ...            pulled indices
 *   scratch0 ...          if a list's members need it: PREFIX_CELL_SCRATCH0 floats per member of list 0
 *   out, pushed           PREFIX_CELL_OUT and PREFIX_CELL_PUSHED floats of scattered and pushed values, overlapping nothing else
 * Output k begins at PREFIX_CELL_OUTk, the same in all cells, pushed value k at PREFIX_CELL_PUSHk. Matrices lie column after column.
 * Functions return PREFIX_OK, or, writing nothing, PREFIX_INDEX (out of range) or PREFIX_MEMBERS (a number of members that the cell does
 * not take). Where a condition does not hold, outputs are those given to vpps_scatter_else as `otherwise`. Dropout is off. Pushed scalars
 * that depend on a label (an index that is not a lookup's) are losses, and left out with the label.
 * A cell without lists and conditions has a second function, PREFIX_CELL_many(n, child0_of, ..., out_of, pushed_of), for n vertices that
 * do not need each other: each array has an entry for each vertex, and weights are read once for several vertices. */
#ifndef VPPS_EXPORT_H
#define VPPS_EXPORT_H

#include "vpps.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum vpps_c_precision {
    VPPS_C_FP32, /* weights as hexadecimal floats: results differ from vpps_forward's in the last bits at most */
    VPPS_C_BF16, /* matrices and tables rounded to bf16, vectors as floats; all sums in fp32 */
    VPPS_C_INT8  /* matrices as integers with a scale per row, tables with one per entry; vectors as floats */
} vpps_c_precision;

typedef struct vpps_c_export {
    size_t size;             /* sizeof(vpps_c_export) */
    const char *prefix;      /* beginning of the names of functions and constants; NULL: "net" */
    const char *omit;        /* a word to drop from the beginning of cells' names in functions' names; may be NULL */
    FILE *header;            /* receives prototypes and constants; NULL: they are in the C file itself */
    const char *header_name; /* name by which the C file includes the header, if there is one */
    FILE *weights;           /* receives the weights; NULL: they are in the C file itself */
    vpps_c_precision precision;
    bool losses; /* whether the cells' losses, which need labels, are written too */
} vpps_c_export;

/* Writes the model's cells with the host's copy of the parameters (call vpps_read_parameters before). With `weights`, functions have a
 * first parameter `const void *weights`: the bytes of the weights file, at a multiple of 64, on a machine of the same byte order; int
 * PREFIX_weights_fit(const void *weights, size_t bytes) tells whether the bytes belong to this C file. `options` NULL: the defaults. Fails
 * with ARGUMENT (no cells; a bad prefix; an operation, named, that C cannot express; a parameter that is not finite, or shared out),
 * IO; files may then be half written. */
VPPS_API vpps_status vpps_export_c(const vpps_model *model, FILE *out, const vpps_c_export *options);

#ifdef __cplusplus
}
#endif
#endif

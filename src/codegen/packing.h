/* packing.h - the layout of the packed factors from which cuBLAS computes gradients of matrices between two launches.
 * Where the script has a task OUTER, the kernel copies the factors dy and x of its vertices, one vector after the
 * other. A factor of several matrices is copied once. packing.cuh describes the order of elements. */
#pragma once

#include "cell/cell.h"

/* Each outer i of a cell has two operand numbers: 2 i for its dy and 2 i + 1 for its x. Returns the number under which the outer's factor
 * is packed: that of the first outer with the same factor. Returns VPPS_NONE if the outer is of a vector. */
uint32_t vpps_packed_number(const vpps_compiled_cell *c, uint32_t outer, bool is_x);

/* Returns the cell's value that is packed under `number`, or VPPS_NONE. */
uint32_t vpps_packed_value(const vpps_compiled_cell *c, uint32_t number);

static inline uint32_t vpps_packed_operands(const vpps_compiled_cell *c) { return 2 * c->n_outers; }

/* Returns how many copies of a vector the packed data have, for operands of `parts` bf16 numbers (0: fp32). */
static inline uint32_t vpps_packed_times(uint32_t parts) { return parts == 2 ? 3 : 1; }

/* Returns the elements from one packed vector to the next. */
static inline uint32_t vpps_packed_stride(uint32_t rows, uint32_t parts) {
    enum { ALIGNED = 16 /* alignment in bytes that tensor cores need */ };
    const uint32_t elements = ALIGNED / (parts ? 2 : 4);
    return (rows + elements - 1) / elements * elements;
}
/* Returns the words of a packed vector, with all its copies. */
static inline uint32_t vpps_packed_words(uint32_t rows, uint32_t parts) {
    return vpps_packed_times(parts) * vpps_packed_stride(rows, parts) / (parts ? 2 : 1);
}

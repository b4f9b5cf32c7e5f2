/* packing.h - the layout of the vectors dy and x from which cuBLAS computes gradients of matrices, sums of dy x^T,
 * between two launches. At each task for gradients, the kernel copies (packs) the vectors dy and x of the task's
 * vertices, one after the other. A vector of several gradients is copied once. packing.cuh defines the elements' order. */
#pragma once

#include "cell/program.h"

/* For cuBLAS, vectors dy and x of matrices' gradients dy x^T are copied: gradient i's dy as number 2 i, its x as 2 i + 1; a vector of
 * several gradients under the least of its numbers only. Returns this number, for gradient `outer`; VPPS_NONE: it is not a matrix's. */
uint32_t vpps_packed_number(const vpps_compiled_cell *c, uint32_t outer, bool is_x);

/* Returns the vector dy or x (of gradients dy x^T) that is copied for cuBLAS under this number; NULL: none is. */
const vpps_operand *vpps_packed_operand(const vpps_compiled_cell *c, uint32_t number);

static inline uint32_t vpps_packed_operands(const vpps_compiled_cell *c) { return 2 * vpps_n_outers(c); }

/* Returns how many copies of a vector are packed. If an element is the sum of two bf16 numbers, high and low, there are three, which
 * together give the products high * high, low * high and high * low. */
static inline uint32_t vpps_packed_times(uint32_t parts) { return parts == 2 ? 3 : 1; }

/* Returns the number of elements from the beginning of one packed vector to the next. */
static inline uint32_t vpps_packed_stride(uint32_t rows, uint32_t parts) {
    enum { ALIGNED = 16 /* alignment in bytes that tensor cores need */ };
    const uint32_t elements = ALIGNED / (parts ? 2 : 4);
    return (rows + elements - 1) / elements * elements;
}
/* Returns the words of a vector copied for cuBLAS: one copy, or three if an element is the sum of two bf16 numbers. */
static inline uint32_t vpps_packed_words(uint32_t rows, uint32_t parts) {
    return vpps_packed_times(parts) * vpps_packed_stride(rows, parts) / (parts ? 2 : 1);
}

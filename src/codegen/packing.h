/* packing.h - the layout of the packed vectors dy and x from which cuBLAS computes gradients of matrices, sums of dy x^T, between two
 * launches. At each OUTER task of the script, the kernel copies the vectors dy and x of the task's vertices, one after the other. A vector
 * that several matrices' gradients need is copied once. packing.cuh describes the order of elements. */
#pragma once

#include "cell/program.h"

/* Step OUTER number i of a cell (a sum of dy x^T) has two operand numbers: 2 i for its dy and 2 i + 1 for its x. Returns the number under
 * which its dy or x is packed: the number of the first step with an equal operand. Returns VPPS_NONE for the gradient of a vector. */
uint32_t vpps_packed_number(const vpps_compiled_cell *c, uint32_t outer, bool is_x);

/* Returns the operand (a dy or x) whose vectors are packed under this number; NULL: none, or they are packed under a lower number. */
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
/* Returns how many words of memory a packed vector takes: vpps_packed_times copies. */
static inline uint32_t vpps_packed_words(uint32_t rows, uint32_t parts) {
    return vpps_packed_times(parts) * vpps_packed_stride(rows, parts) / (parts ? 2 : 1);
}

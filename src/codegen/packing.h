/* packing.h - how the factors of matrices' gradients lie for cuBLAS, which makes the gradients between two launches: where the script
 * has an OUTER, the kernel copies the factors of those vertices, one vector after the other. A factor that several matrices have is
 * copied once. packing.cuh says how elements lie. */
#pragma once

#include "cell/cell.h"

/* A cell's operands: two numbers for each of its outers, 2 i of its dy and 2 i + 1 of its x. Which one has the outer's factor: the number
 * of the first outer with the same one. VPPS_NONE: the outer is of a vector. */
uint32_t vpps_packed_number(const vpps_compiled_cell *c, uint32_t outer, bool is_x);

/* The value that operand `number` has; VPPS_NONE: none. */
uint32_t vpps_packed_value(const vpps_compiled_cell *c, uint32_t number);

static inline uint32_t vpps_packed_operands(const vpps_compiled_cell *c) { return 2 * c->n_outers; }

/* How often a vector is there, of so many bf16 parts (0: fp32). */
static inline uint32_t vpps_packed_times(uint32_t parts) { return parts == 2 ? 3 : 1; }

/* Elements from one vector to the next, and the words of a vector, all of its copies. */
static inline uint32_t vpps_packed_stride(uint32_t rows, uint32_t parts) {
    enum { ALIGNED = 16 /* bytes, as tensor cores want them */ };
    const uint32_t elements = ALIGNED / (parts ? 2 : 4);
    return (rows + elements - 1) / elements * elements;
}
static inline uint32_t vpps_packed_words(uint32_t rows, uint32_t parts) {
    return vpps_packed_times(parts) * vpps_packed_stride(rows, parts) / (parts ? 2 : 1);
}

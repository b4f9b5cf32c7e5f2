/* operands.h - operands of a group's instructions: the letters of ops.def, prepared once, then read for each node. */
#ifndef VPPS_NODES_OPERANDS_H
#define VPPS_NODES_OPERANDS_H

#include "nodes/work.h"

enum { MAX_CODES = 8, MAX_WORDS = 24 };

/* A code for the destination and for each letter; a product's letter is three words. */
#define OP(id, name, call, min, max, shape, op_class, per, flops, backward_flops, forward, operands, backward0,        \
           operands0, backward1, operands1)                                                                            \
    _Static_assert(sizeof(operands) <= MAX_CODES && sizeof(operands0) <= MAX_CODES && sizeof(operands1) <= MAX_CODES,  \
                   "operation " #id ": more operands than codes");
#include "graph/ops.def"
#undef OP
_Static_assert(MAX_CODES + 2 <= MAX_WORDS, "words of an instruction without a list");

/* How an operand's word comes from a node of the group: prepared once, used for each. */
typedef struct vpps_operand_code {
    enum { CODE_REGULAR, CODE_VALUE, CODE_GRADIENT, CODE_IMM, CODE_PRODUCT, CODE_LIST } kind;
    uint32_t base, stride; /* REGULAR: of node j, base + j * stride. Else `base` is added */
    uint32_t argument;     /* VALUE, GRADIENT: of this argument; LIST: of this and the following */
    bool advances;         /* goes with the elements */
} vpps_operand_code;

/* An instruction's operands for a group: the destination, then the letters. */
typedef struct vpps_operand_codes {
    vpps_operand_code codes[MAX_CODES];
    uint32_t n;
    bool regular; /* all follow from the first node's */
} vpps_operand_codes;

static inline uint32_t vpps_float_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* One letter of ops.def for the group, in an instruction for argument k. */
vpps_operand_code vpps_letter_code(const vpps_schedule_work *w, const vpps_group *group, char letter, uint32_t k);

/* The gradient of argument k. */
vpps_operand_code vpps_gradient_code(const vpps_schedule_work *w, const vpps_group *group, uint32_t k);

vpps_operand_codes vpps_make_codes(const vpps_schedule_work *w, const vpps_group *group, const char *letters,
                                   uint32_t opcode, uint32_t k, vpps_operand_code destination);

/* Words of node number j of the group, and what its neighbour's would be; returns their number. */
uint32_t vpps_operand_words(const vpps_schedule_work *w, const vpps_group *group, const vpps_operand_codes *c,
                            uint32_t j, uint32_t opcode, uint32_t length, uint32_t *words, uint32_t *next);

/* An average's factor is in its words, so nodes with other numbers of arguments need codes of their own. */
void vpps_fix_average(const vpps_schedule_work *w, vpps_node y, const char *letters, vpps_operand_codes *c);

#endif

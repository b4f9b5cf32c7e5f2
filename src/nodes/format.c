/* format.c - the lengths of instructions. */
#include "nodes/format.h"

/* Words after word 0 of the instructions whose table row does not say it: SHARED and CONTROL. */
static uint32_t fixed_words(uint32_t opcode) {
    switch (opcode) {
    case VPPS_I_AFFINE:
    case VPPS_I_AFFINE_T:
    case VPPS_I_AFFINE_P:
    case VPPS_I_REDUCE_P:
    case VPPS_I_OUTER:
    case VPPS_I_NORM_ROWS:
    case VPPS_I_UPDATE_ROWS:
    case VPPS_I_LOAD:
    case VPPS_I_WAIT: return 2;
    case VPPS_I_TRANSPOSE:
    case VPPS_I_NORM:
    case VPPS_I_UPDATE:
    case VPPS_I_CALL:
    case VPPS_I_SIGNAL: return 1;
    default: return 0; /* NORM_END, NOP, HOST, END */
    }
}

uint32_t vpps_instruction_words(const uint32_t *at, const uint32_t *end) {
    if (at >= end) return 0;
    uint64_t room = (uint64_t)(end - at), n = 1;
    uint32_t opcode = vpps_word_opcode(at[0]);
    if (opcode >= VPPS_I_COUNT) return 0;
    const vpps_instruction_row *row = &vpps_instructions[opcode];
    if (row->form == VPPS_FORM_SHARED || row->form == VPPS_FORM_CONTROL) {
        n += fixed_words(opcode);
    } else {
        if (row->form == VPPS_FORM_EW && (at[0] & VPPS_WORD_SPLIT)) n++;
        n++; /* the destination */
        for (const char *c = row->operands; *c; c++) {
            if (*c == '*') {
                if (n >= room) return 0;
                n += (uint64_t)at[n] + 1;
                if (n > room) return 0;
            } else {
                n++;
            }
        }
        if (row->form == VPPS_FORM_MATMUL) n += 3;
    }
    return n <= room ? (uint32_t)n : 0;
}

/* formulas.cuh - turns the rows of isa.def, which follows, into functions. Elementwise: vpps_value_ID. Folds, such as sums:
 * vpps_next_ID takes an operand, vpps_made_ID makes the result. Searches, such as argmax: vpps_beats_ID compares two numbers. */
#define EW(ID, OPERANDS, COST, FLOPS, FORMULA)                                                                         \
    VPPS_INLINE float vpps_value_##ID(float x, float y, float z, float s, float f, unsigned u, float random) {         \
        return FORMULA;                                                                                                \
    }
#define FOLD(ID, OPERANDS, COST, FLOPS, NEXT, MADE)                                                                    \
    VPPS_INLINE float vpps_next_##ID(float a, float x, float w) { return NEXT; }                                       \
    VPPS_INLINE float vpps_made_##ID(float a, float f) { return MADE; }
#define FIND(ID, OPERANDS, COST, FLOPS, BEATS)                                                                         \
    VPPS_INLINE bool vpps_beats_##ID(float x, float a) { return BEATS; }
#define INSTR(...)

/* formulas.c - prints C++ functions for a kernel's elementwise instructions. */
#include "codegen/formulas.h"

void vpps_emit_step(FILE *out, vpps_optimizer_kind optimizer, const char *numbers) {
    static const char *const steps[] = {
#define X(id, name, states, lr) "step_" #id,
        VPPS_OPTIMIZER_TABLE(X)
#undef X
    };
    fprintf(out, "#define VPPS_STEP_NUMBERS %s\n#define VPPS_STEP %s\n", numbers, steps[optimizer]);
}

void vpps_emit_formulas(FILE *out) {
#define EW(id, operands, cost, flops, formula)                                                                         \
    fputs("VPPS_INLINE float vpps_value_" #id                                                                          \
          "(float x, float y, float z, float s, float f, unsigned u, float random) { return " #formula "; }\n",        \
          out);
#define FOLD(id, operands, cost, flops, next, made)                                                                    \
    fputs("VPPS_INLINE float vpps_next_" #id "(float a, float x, float w) { return " #next "; }\n"                     \
          "VPPS_INLINE float vpps_made_" #id "(float a, float f) { return " #made "; }\n",                             \
          out);
#define FIND(id, operands, cost, flops, beats)                                                                         \
    fputs("VPPS_INLINE bool vpps_beats_" #id "(float x, float a) { return " #beats "; }\n", out);
#define INSTR(id, ...)
#include "isa/isa.def"
#undef INSTR
}

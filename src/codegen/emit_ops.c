/* emit_ops.c - see emit_ops.h. */
#include "codegen/emit_ops.h"

#include "nodes/format.h"

/* An instruction's traits, packed into one word. The kernel gets these numbers by name. `words` is the number of words
 * when the list, if there is one, is empty and SPLIT is not set; `picked` is which of the operands behind the tensors
 * is the letter u, 3: none. Bit k of `scalars`: operand k behind the tensors is the letter s. */
#define TRAITS(X)                                                                                                      \
    X(FORM, form, 3)                                                                                                   \
    X(TENSORS, tensors, 2)                                                                                             \
    X(PARAMS, params, 2)                                                                                               \
    X(SCALARS, scalars, 3)                                                                                             \
    X(PICKED, picked, 2)                                                                                               \
    X(LIST, list, 1)                                                                                                   \
    X(WORDS, words, 5)

enum { MAX_TENSORS = 3, MAX_PARAMS = 3, NOT_PICKED = 3 };

typedef struct traits {
#define X(id, name, bits) uint32_t name;
    TRAITS(X)
#undef X
} traits;

/* Words, as nodes/format.c counts them. */
static uint32_t words_of(uint32_t opcode) {
    uint32_t example[16] = {vpps_word(opcode, 0, 1)};
    return vpps_instruction_words(example, example + VPPS_COUNT(example));
}

static vpps_status traits_of(uint32_t opcode, traits *out) {
    const vpps_instruction_row *row = &vpps_instructions[opcode];
    traits t = {.form = row->form, .picked = NOT_PICKED, .words = words_of(opcode)};
    for (const char *letter = row->operands; *letter; letter++) {
        bool in_order = !t.list && (*letter == 't' ? t.params == 0 && t.tensors < MAX_TENSORS
                                                   : *letter == '*' || t.params < MAX_PARAMS);
        if (!in_order)
            return vpps_fail(VPPS_ARGUMENT, "instruction %s: operand %c of \"%s\" is not where the kernel looks for it",
                             row->name, *letter, row->operands);
        if (*letter == 's') t.scalars |= 1u << t.params;
        if (*letter == 'u') t.picked = t.params;
        if (*letter == '*') t.list = 1;
        t.tensors += *letter == 't';
        t.params += *letter != 't' && *letter != '*';
    }
    *out = t;
    return VPPS_OK;
}

static uint32_t packed(const traits *t) {
    uint32_t word = 0, shift = 0;
#define X(id, name, bits)                                                                                              \
    word |= t->name << shift;                                                                                          \
    shift += (bits);
    TRAITS(X)
#undef X
    (void)shift;
    return word;
}

static void emit_constants(FILE *out) {
    fprintf(out, "enum {\n");
    for (uint32_t i = 0; i < VPPS_I_COUNT; i++) fprintf(out, "    VPPS_I_%s,\n", vpps_instructions[i].name);
    fprintf(out, "    VPPS_I_COUNT\n};\n");
    static const char *const forms[] = {
        [VPPS_FORM_EW] = "EW",         [VPPS_FORM_REDUCE] = "REDUCE", [VPPS_FORM_ROW] = "ROW",
        [VPPS_FORM_MATMUL] = "MATMUL", [VPPS_FORM_SHARED] = "SHARED", [VPPS_FORM_CONTROL] = "CONTROL",
    };
    _Static_assert(VPPS_COUNT(forms) == VPPS_FORM_CONTROL + 1, "every form has a name");
    for (uint32_t i = 0; i < VPPS_COUNT(forms); i++) fprintf(out, "#define VPPS_FORM_%s %uu\n", forms[i], i);
    fprintf(out, "#define VPPS_WORD_ACC %uu\n#define VPPS_WORD_SPLIT %uu\n#define VPPS_LENGTH_SHIFT %u\n",
            VPPS_WORD_ACC, VPPS_WORD_SPLIT, VPPS_LENGTH_SHIFT);
    uint32_t shift = 0;
#define X(id, name, bits)                                                                                              \
    fprintf(out, "#define VPPS_TRAIT_%s(t) ((t) >> %u & %uu)\n", #id, shift, (1u << (bits)) - 1);                      \
    shift += (bits);
    TRAITS(X)
#undef X
    fprintf(out, "#define VPPS_NOT_PICKED %uu\n", NOT_PICKED);
}

void vpps_emit_step(FILE *out, vpps_optimizer_kind optimizer, const char *numbers) {
    static const char *const steps[] = {
#define X(id, name, states) "step_" #id,
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
#define INSTR(id, ...)
#include "isa/isa.def"
#undef INSTR
}

/* The arguments of such a function: of s, f, u and e, the number of the operand behind the tensors that is that letter. */
static void emit_formula_arguments(FILE *out, const char *operands) {
    static const struct {
        char letter;
        const char *how;
    } names[] = {{'s', "VPPS_FLOAT"}, {'f', "VPPS_FLOAT"}, {'u', "VPPS_UINT"}, {'e', "VPPS_RANDOM"}};
    const char *params = operands + strspn(operands, "t");
    fprintf(out, "(x, y, z");
    for (size_t i = 0; i < VPPS_COUNT(names); i++) {
        const char *at = strchr(params, names[i].letter);
        if (at) fprintf(out, ", %s(%u)", names[i].how, (unsigned)(at - params));
        if (!at) fprintf(out, ", 0");
    }
    fprintf(out, ")");
}

/* The arguments of another instruction's routine, in the order of its operands. */
static void emit_arguments(FILE *out, const vpps_instruction_row *row) {
    const char *separator = "";
    uint32_t tensors = 0, params = 0;
    fprintf(out, "(");
    if (row->form == VPPS_FORM_REDUCE || row->form == VPPS_FORM_ROW) {
        fprintf(out, "totals");
        separator = ", ";
    }
    for (const char *letter = row->operands; *letter; letter++) {
        if (*letter == '*' || (*letter == 't' && row->form == VPPS_FORM_MATMUL)) continue;
        fprintf(out, "%s", separator);
        separator = ", ";
        switch (*letter) {
        case 't': fprintf(out, "%c", "xyz"[tensors++]); break;
        case 's':
        case 'f': fprintf(out, "VPPS_FLOAT(%u)", params++); break;
        case 'u': fprintf(out, "VPPS_PICK(%u)", params++); break;
        default: fprintf(out, "VPPS_UINT(%u)", params++); /* offsets: v i */
        }
    }
    fprintf(out, ")");
}

static void emit_cases(FILE *out, const char *name, vpps_form form, bool list) {
    fprintf(out, "#define VPPS_%s_CASES(CASE)", name);
    for (uint32_t i = 0; i < VPPS_I_COUNT; i++) {
        const vpps_instruction_row *row = &vpps_instructions[i];
        if (row->form != form || (strchr(row->operands, '*') != NULL) != list) continue;
        fprintf(out, " \\\n    CASE(%s, ", row->name);
        if (form == VPPS_FORM_EW && !list)
            emit_formula_arguments(out, row->operands);
        else
            emit_arguments(out, row);
        fprintf(out, ")");
    }
    fprintf(out, "\n");
}

vpps_status vpps_emit_ops(FILE *out) {
    emit_constants(out);
    fprintf(out, "__constant__ const unsigned vpps_traits[VPPS_I_COUNT] = {\n");
    for (uint32_t i = 0; i < VPPS_I_COUNT; i++) {
        traits t = {0};
        VPPS_TRY(traits_of(i, &t));
        fprintf(out, "    %uu, /* %s */\n", packed(&t), vpps_instructions[i].name);
    }
    fprintf(out, "};\n");
    vpps_emit_formulas(out);
    emit_cases(out, "EW", VPPS_FORM_EW, false);
    emit_cases(out, "LIST", VPPS_FORM_EW, true);
    emit_cases(out, "REDUCE", VPPS_FORM_REDUCE, false);
    emit_cases(out, "ROW", VPPS_FORM_ROW, false);
    emit_cases(out, "MATMUL", VPPS_FORM_MATMUL, false);
    return ferror(out) ? vpps_fail(VPPS_IO, "cannot write the kernel's instruction tables") : VPPS_OK;
}

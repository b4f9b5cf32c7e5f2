/* ops_harness.c - see ops_harness.h. */
#include "codegen/ops_harness.h"

#include "codegen/generate_work.h"
#include "common/testing.h"
#include "runtime/simt/fiber.h"

/* The templates, in the order in which a kernel's text has them. */
#define TEMPLATES_BEFORE(X) X(failure) X(arguments) X(task_header) X(math) X(functions) X(steps) X(formulas) X(isa_rows)
#define TEMPLATES_BEHIND(X) X(device) X(common) X(whole) X(whole_rows)
#define X(name) extern const char vpps_template_##name[];
TEMPLATES_BEFORE(X)
TEMPLATES_BEHIND(X)
#undef X

const ops_machine ops_machines[N_OPS_MACHINES] = {{3, 384}, {7, 64}};

bool ops_has(uint32_t opcode) {
    const vpps_form form = vpps_instructions[opcode].form;
    if (form == VPPS_FORM_EW) return !strchr(vpps_instructions[opcode].operands, '*');
    return form == VPPS_FORM_REDUCE || form == VPPS_FORM_ROW;
}

/* ---------------------------------------------------------------- an instruction's case */

/* Writes code with one thread per element. */
static void put_elements(FILE *f, uint32_t opcode) {
    const char *operands = vpps_instructions[opcode].operands;
    fprintf(f, "for (unsigned i = threadIdx.x; i < c.length * c.items; i += VPPS_THREADS)\nto[i] = vpps_value_%s(",
            vpps_instructions[opcode].name);
    const size_t tensors = strspn(operands, "t");
    for (size_t t = 0; t < 3; t++) fprintf(f, t < tensors ? "t%zu[i], " : "0.0f, ", t);
    fputs(strchr(operands, 's') ? "s0[i / c.length], " : "0.0f, ", f);
    fputs(strchr(operands, 'f') ? "f, " : "0.0f, ", f);
    fputs(strchr(operands, 'u') ? "c.u, " : "0u, ", f);
    fputs(strchr(operands, 'e') ? "dropout_uniform(vpps_header.dropout_key[0], vpps_header.dropout_key[1], c.e + i));\n"
                                : "0.0f);\n",
          f);
}

/* Writes code with one team of threads, a warp or the CTA, per item. */
static void put_whole(FILE *f, uint32_t opcode, const char *team) {
    const vpps_instruction_row *row = &vpps_instructions[opcode];
    char arguments[128] = "(totals", *end = arguments + strlen(arguments);
    uint32_t tensors = 0, scalars = 0;
    for (const char *letter = row->operands; *letter; letter++) switch (*letter) {
        case 't': end += sprintf(end, ", p%u[k]", tensors++); break;
        case 's': end += sprintf(end, ", s%u[item]", scalars++); break;
        case 'f': end += sprintf(end, ", f"); break;
        case 'u': end += sprintf(end, ", vpps_pick{k == c.u, picked}"); break;
        default: ck_abort_msg("operand letter %c", *letter);
        }
    sprintf(end, ")");
    fprintf(
        f,
        "for (unsigned item = threadIdx.x / %s; item < c.items; item += VPPS_THREADS / %s) {\n"
        "[[maybe_unused]] const float *p0 = t0 + item * c.length, *p1 = t1 + item * c.length, picked = p0[c.u];\n"
        "vpps_totals totals = vpps_total<vpps_head_%s, %s>(c.length, p0, [&](const vpps_totals &totals, unsigned k) "
        "{ (void)k; return vpps_term_%s%s; });\n"
        "vpps_finish(totals, [&](unsigned k) { (void)k; return vpps_finish_%s%s; });\n",
        team, team, row->name, team, row->name, arguments, row->name, arguments);
    if (row->form == VPPS_FORM_REDUCE) {
        fprintf(f, "if (threadIdx.x %% %s == 0) to[item] = totals.sum;\n}\n", team);
    } else {
        fprintf(f,
                "vpps_each_of_row<%s>(c.length, [&](unsigned k) { to[item * c.length + k] = vpps_value_%s%s; });\n}\n",
                team, row->name, arguments);
    }
}

/* ---------------------------------------------------------------- the kernel */

static const char kernel_head[] =
    "struct ops_case { unsigned what, length, items, to, t[3], s[2], f, u, e; };\n"
    "extern \"C\" __global__ void __launch_bounds__(VPPS_THREADS) vpps_kernel(const vpps_arguments a) {\n"
    "const unsigned *script = (const unsigned *)a.script;\n"
    "for (unsigned i = threadIdx.x; i < VPPS_HEADER_WORDS; i += VPPS_THREADS) ((unsigned *)&vpps_header)[i] = "
    "script[i];\n"
    "__syncthreads();\n"
    "const ops_case *cases = (const ops_case *)(script + VPPS_HEADER_WORDS + 1);\n"
    "for (unsigned n = blockIdx.x; n < script[VPPS_HEADER_WORDS]; n += VPPS_VPS) {\n"
    "const ops_case c = cases[n];\n"
    "float *pool = (float *)a.pool, *to = pool + c.to;\n"
    "float *t0 = pool + c.t[0], *t1 = pool + c.t[1], *t2 = pool + c.t[2], *s0 = pool + c.s[0], *s1 = pool + c.s[1];\n"
    "const float f = __uint_as_float(c.f);\n"
    "(void)t0, (void)t1, (void)t2, (void)s0, (void)s1, (void)f;\n"
    "switch (c.what) {\n";

static char *make_source(const ops_machine *m) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = need(open_memstream(&text, &bytes));
    fprintf(f,
            "#define VPPS_VPS %uu\n#define VPPS_GROUP %uu\n#define VPPS_THREADS %uu\n#define VPPS_ROW_BLOCK 1u\n"
            "#define VPPS_PARAMS 0u\n#define VPPS_HEADER_WORDS %uu\n",
            m->n_vps, m->n_vps, m->threads, (uint32_t)VPPS_TASK_HEADER_WORDS);
    vpps_generate_step(f, VPPS_SGD, "vpps_task_header");
#define X(name) fputs(vpps_template_##name, f);
    TEMPLATES_BEFORE(X)
    TEMPLATES_BEHIND(X)
#undef X
    for (uint32_t k = 0; k < VPPS_OPTIMIZERS; k++) {
        fprintf(f, "#undef VPPS_STEP_NUMBERS\n#undef VPPS_STEP\n");
        vpps_generate_step(f, (vpps_optimizer_kind)k, "vpps_task_header");
        fprintf(f,
                "VPPS_PART void test_step_%u(float g, float *w, float *s0, float *s1) { VPPS_STEP(&vpps_header, g, w, "
                "s0, s1); }\n",
                k);
    }
    fputs(kernel_head, f);
    for (uint32_t opcode = 0; opcode < VPPS_I_COUNT; opcode++) {
        if (!ops_has(opcode)) continue;
        fprintf(f, "case %u: {\n", opcode);
        if (vpps_instructions[opcode].form == VPPS_FORM_EW) {
            put_elements(f, opcode);
        } else {
            fputs("if (c.length % 2) {\n", f);
            put_whole(f, opcode, "VPPS_THREADS");
            fputs("break; }\n", f);
            put_whole(f, opcode, "32");
        }
        fputs("break; }\n", f);
    }
    for (uint32_t k = 0; k < VPPS_OPTIMIZERS; k++)
        fprintf(
            f,
            "case %u: for (unsigned i = threadIdx.x; i < c.length * c.items; i += VPPS_THREADS) test_step_%u(t0[i], "
            "to + i, t1 + i, t2 + i); break;\n",
            VPPS_I_COUNT + k, k);
    fputs("default: break;\n}\n__syncthreads();\n}\n}\n", f);
    ck_assert_int_eq(fclose(f), 0);
    return text;
}

vpps_simt_kernel *ops_load(const ops_machine *m) {
    vpps_simt_kernel *kernel = NULL;
    FREED char *source = make_source(m);
    double seconds = 0;
    if (VPPS_SIMT_TSAN) {
        ck_assert_int_eq(vpps_simt_load(&kernel, source, "test of instructions", &seconds), VPPS_DEVICE);
        TEST_LEFT_OUT("the kernel's instructions: no software SIMT under ThreadSanitizer");
    } else {
        TEST_OK(vpps_simt_load(&kernel, source, "test of instructions", &seconds));
    }
    return kernel;
}

/* ops_harness.c - see ops_harness.h. */
#include "codegen/ops_harness.h"

#include "codegen/emit_ops.h"
#include "common/testing.h"

#if defined(__SANITIZE_THREAD__)
#define SIMT_IMPOSSIBLE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIMT_IMPOSSIBLE 1
#endif
#endif
#ifndef SIMT_IMPOSSIBLE
#define SIMT_IMPOSSIBLE 0
#endif

const ops_machine ops_machines[N_OPS_MACHINES] = {{1, 16, 256}, {3, 1, 384}, {7, 2, 64}};

static const char *const files[] = {"common", "ops_traits", "ops_ew", "ops_list", "ops_whole", "ops"};

static const char kernel_text[] =
    "extern \"C\" __global__ void __launch_bounds__(VPPS_THREADS) vpps_kernel(const vpps_arguments a) {\n"
    "    const unsigned *script = (const unsigned *)a.script;\n"
    "    for (unsigned i = 0; i < script[0]; i++) {\n"
    "        const unsigned *at = script + script[4 + i];\n"
    "        if ((*at & VPPS_WORD_SPLIT) || i % VPPS_VPS == vpps_vp())\n"
    "            vpps_compute(at, (float *)a.pool, script + 1);\n"
    "        __syncthreads();\n"
    "    }\n"
    "    const unsigned *questions = script + 4 + script[0];\n"
    "    if (vpps_vp() == 0)\n"
    "        for (unsigned i = vpps_thread(); i < script[3]; i += VPPS_THREADS)\n"
    "            ((unsigned *)a.counters)[i] =\n"
    "                vpps_instruction_words(script + questions[2 * i], questions[2 * i + 1]);\n"
    "}\n";

static void append_path(FILE *source, const char *path) {
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s: run the test in the project's root", path);
    for (int c; (c = getc(file)) != EOF;) putc(c, source);
    fclose(file);
}

static void append_file(FILE *source, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "src/interp_templates/%s.cuh", name);
    append_path(source, path);
}

static char *make_source(const ops_machine *m) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *source = open_memstream(&text, &bytes);
    ck_assert_ptr_nonnull(source);
    fprintf(source,
            "#define VPPS_VPS %uu\n#define VPPS_ROW_BLOCK %uu\n#define VPPS_THREADS %u\n"
            "#define VPPS_TABLE_PARAMS 0\n#define VPPS_TABLE_MATRICES 0\n",
            m->n_vps, m->row_block, m->threads);
    append_file(source, "arguments");
    append_file(source, "math");
    append_path(source, "src/isa/functions.h");
    TEST_OK(vpps_emit_ops(source));
    for (size_t i = 0; i < VPPS_COUNT(files); i++) append_file(source, files[i]);
    fputs(kernel_text, source);
    ck_assert_int_eq(fclose(source), 0);
    return text;
}

vpps_simt_kernel *ops_load(const ops_machine *m) {
    vpps_simt_kernel *kernel = NULL;
    char *source = make_source(m);
    double seconds = 0;
    if (SIMT_IMPOSSIBLE) {
        ck_assert_int_eq(vpps_simt_load(&kernel, source, "test of instructions", &seconds), VPPS_DEVICE);
        TEST_LEFT_OUT("the kernel's instructions: no software SIMT under ThreadSanitizer");
    } else {
        TEST_OK(vpps_simt_load(&kernel, source, "test of instructions", &seconds));
    }
    free(source);
    return kernel;
}

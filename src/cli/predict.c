/* predict.c - `vpps predict`: what a checkpoint's network says of examples from stdin. */
#include "base/base.h"
#include "cli/checkpoint.h"
#include "cli/commands.h"
#include "cli/corpus_read.h"
#include "cli/failure.h"
#include "cli/output_files.h"
#include "cli/task.h"

#include <errno.h>

static vpps_status read_all(FILE *file, char **text, size_t *len) {
    size_t capacity = 0, got;
    *text = NULL;
    *len = 0;
    do {
        if (!VPPS_RESERVE(*text, capacity, *len + 65536)) {
            return vpps_fail(VPPS_MEMORY, "no memory for %zu bytes of input", *len);
        }
        got = fread(*text + *len, 1, capacity - *len, file);
        *len += got;
    } while (got);
    return ferror(file) ? vpps_fail(VPPS_IO, "stdin: %s", strerror(errno)) : VPPS_OK;
}

static vpps_status read_stdin(corpus *c, const settings *s) {
    char *text;
    size_t len;
    vpps_status status = read_all(stdin, &text, &len);
    if (status == VPPS_OK) status = corpus_read_input(c, s, "stdin", text, len);
    free(text);
    return status;
}

static vpps_status predict(settings *s, session *x, corpus *c) {
    VPPS_TRY(checkpoint_describe(s->model, s, c, NULL));
    options_complete(s);
    VPPS_TRY(output_files_check(s));
    VPPS_TRY(output_file_check(s->trace));
    VPPS_TRY(session_open(x, s, c));
    VPPS_TRY(vpps_load(x->handle, s->model));
    VPPS_TRY(read_stdin(c, s));
    corpus_split *split = &c->split[SPLIT_TEST];
    for (uint32_t i = 0; i < split->n_examples; i += s->batch) {
        VPPS_TRY(task_for(s)->predict(x, c, split, i, vpps_min_u32(s->batch, split->n_examples - i)));
        if (fflush(stdout) != 0) return vpps_fail(VPPS_IO, "stdout: %s", strerror(errno));
    }
    return session_write_trace(x);
}

int command_predict(settings *s) {
    if (!s->model) return report_usage("predict", "--model FILE is missing");
    session x = {0};
    corpus c = {0};
    const vpps_status status = predict(s, &x, &c);
    if (status != VPPS_OK) report_failure(status);
    session_close(&x);
    corpus_close(&c);
    return status == VPPS_OK ? 0 : EXIT_RUNTIME;
}

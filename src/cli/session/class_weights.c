/* class_weights.c - sets the weights of classes by their frequency or from a file. */
#include "base/base.h"
#include "cli/common/suggest.h"
#include "cli/session/classes.h"
#include "cli/session/parameters.h"
#include "cli/session/session.h"
#include "io/stream.h"
#include "io/text.h"

#include <ctype.h>
#include <math.h>

/* Weighs classes as scikit-learn's compute_class_weight("balanced") does. */
static vpps_status balance(session *x, corpus *c, float *weights) {
    const uint32_t classes = x->settings->net.classes;
    VPPS_FREED uint64_t *counts = vpps_scratch((classes + 1u) * sizeof *counts);
    uint64_t all = 0, present = 0;
    if (!counts) return vpps_fail(VPPS_MEMORY, "no memory for the counts of %u classes", classes);
    VPPS_TRY(session_count_labels(x, c, &c->split[SPLIT_TRAIN], counts));
    for (uint32_t i = 0; i < classes; i++) {
        all += counts[i];
        present += counts[i] > 0;
    }
    for (uint32_t i = 0; i < classes; i++)
        if (counts[i]) weights[i] = (float)((double)all / ((double)present * (double)counts[i]));
    return VPPS_OK;
}

/* Sets *found to the class that `label` names. Fails with ARGUMENT, suggesting the nearest label. */
static vpps_status find_class(const session *x, const vpps_vocab *names, const char *place, const char *label,
                              uint32_t *found) {
    char number[16];
    suggestion near = suggest_for(label);
    for (*found = 0; *found < x->settings->net.classes; ++*found) {
        const char *name = classes_name(names, *found, number);
        if (strcmp(name, label) == 0) return VPPS_OK;
        if (names) suggest_try(&near, name);
    }
    return vpps_fail(VPPS_ARGUMENT, "%s: \"%.64s\" is no label of the training part%s%s", place, label,
                     near.word ? "; did you mean " : "", near.word ? near.word : "");
}

/* Parses a line "LABEL WEIGHT", with spaces or tabs between; the weight is the last word. */
static vpps_status take_line(const session *x, const vpps_vocab *names, const char *place, char *line, bool *seen,
                             float *weights) {
    char *stop;
    line = trim_blanks(line);
    if (!*line) return VPPS_OK;
    char *number = line + strlen(line);
    while (number > line && !isspace((unsigned char)number[-1])) number--;
    const float weight = strtof(number, &stop);
    if (number > line) number[-1] = '\0';
    trim_blanks(line);
    if (number == line || stop == number || *stop || !isfinite(weight) || weight < 0)
        return vpps_fail(VPPS_FORMAT, "%s: expected a label and its weight, a number from 0 on", place);
    uint32_t class;
    VPPS_TRY(find_class(x, names, place, line, &class));
    if (seen[class]) return vpps_fail(VPPS_FORMAT, "%s: \"%.64s\" has a weight already", place, line);
    seen[class] = true;
    weights[class] = weight;
    return VPPS_OK;
}

static vpps_status read_file(const session *x, const corpus *c, float *weights) {
    const char *path = x->settings->class_weights;
    const uint32_t classes = x->settings->net.classes;
    VPPS_FREED char *text = NULL;
    char place[4200], *line;
    size_t n;
    VPPS_TRY(vpps_file_read_all(path, &text, &n));
    VPPS_FREED bool *seen = vpps_scratch((classes + 1u) * sizeof *seen);
    VPPS_FREED char *copy = vpps_scratch(n + 1);
    if (!seen || !copy) return vpps_fail(VPPS_MEMORY, "%s: no memory", path);
    *(char *)mempcpy(copy, text, n) = '\0';
    if (strlen(copy) != n) return vpps_fail(VPPS_FORMAT, "%s: expected text, found a byte of 0", path);
    char *rest = copy + (vpps_skip_mark(copy, copy + n) - copy);
    for (uint32_t number = 1; (line = strsep(&rest, "\n")); number++) {
        snprintf(place, sizeof place, "%s:%u", path, number);
        VPPS_TRY(take_line(x, c->vocab[VOCAB_CLASSES], place, line, seen, weights));
    }
    if (!memchr(seen, true, classes))
        return vpps_fail(VPPS_FORMAT, "%s: expected lines of a label and its weight, found none", path);
    for (uint32_t i = 0; i < classes; i++)
        if (weights[i] > 0) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "%s: the weights of all labels are 0", path);
}

vpps_status class_weights_set(session *x, corpus *c) {
    float *weights = vpps_param_values(x->model, x->class_weights);
    /* --init may have taken another run's weights */
    for (uint32_t i = 0; i < x->settings->net.classes; i++) weights[i] = 1;
    VPPS_TRY(strcmp(x->settings->class_weights, "balanced") == 0 ? balance(x, c, weights) : read_file(x, c, weights));
    return vpps_write_parameters(x->handle);
}

vpps_status class_weights_tell(const session *x, const corpus *c, void (*tell)(void *context, const char *line),
                               void *context) {
    enum { SHOWN = 24 };
    const uint32_t classes = x->settings->net.classes, n = vpps_min_u32(classes, SHOWN);
    char *line = NULL, number[16];
    size_t bytes;
    const float *weights = vpps_param_values(x->model, x->class_weights);
    FILE *f = open_memstream(&line, &bytes);
    for (uint32_t i = 0; f && i < n; i++)
        fprintf(f, "%s%s %.4g", i ? ", " : "class weights: ", classes_name(c->vocab[VOCAB_CLASSES], i, number),
                (double)weights[i]);
    if (f && n < classes) fprintf(f, ", and %u more", classes - n);
    VPPS_TRY(vpps_text_end(f, VPPS_OK, &line));
    tell(context, line);
    free(line);
    return VPPS_OK;
}

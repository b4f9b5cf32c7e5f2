/* sequences_parallel.c - reads parallel text: two files whose lines are translations of each other. */
#include "sequences.h"

#include "base/base.h"
#include "file.h"
#include "text.h"

/* Counts a text's lines, and the lines up to the last one that is not blank. */
static size_t count_lines(const vpps_text *t, size_t *to_last) {
    vpps_line line = {0};
    size_t n = 0;
    *to_last = 0;
    while (vpps_text_next_line(t, &line)) {
        n++;
        if (!vpps_line_is_blank(&line)) *to_last = n;
    }
    return n;
}

/* Shortens a path, since two paths must fit into one message. */
static const char *short_name(const char *name) {
    const size_t len = strlen(name);
    return len > 160 ? name + len - 160 : name;
}

static vpps_status check_line_counts(const vpps_text *source, const vpps_text *target) {
    /* numbers of lines up to the last that is not blank; blank lines at the end pair with nothing */
    size_t last_source, last_target;
    const size_t n_source = count_lines(source, &last_source), n_target = count_lines(target, &last_target);
    if (n_source == n_target || last_source == last_target) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "expected as many lines in both files, found %zu in %s and %zu in %s", n_source,
                     short_name(source->name), n_target, short_name(target->name));
}

static vpps_status read_pairs(vpps_sentences *s, vpps_sentences *t, const vpps_text *source, const vpps_text *target,
                              const vpps_parallel *options) {
    vpps_line line[2] = {0};
    VPPS_TRY(check_line_counts(source, target));
    while (vpps_text_next_line(source, &line[0]) && vpps_text_next_line(target, &line[1])) {
        const bool in_source = !vpps_line_is_blank(&line[0]);
        const bool in_target = !vpps_line_is_blank(&line[1]);
        if (in_source && in_target) {
            VPPS_TRY(vpps_sentences_add_line(s, &line[0], NULL));
            VPPS_TRY(vpps_sentences_add_line(t, &line[1], options->end_word));
        } else if (!options->skip_empty) {
            const int empty = in_source ? 1 : 0;
            return vpps_text_fail(empty ? target : source, line[empty].begin, "a sentence (its line in the other file)",
                                  "a line without words");
        }
    }
    return VPPS_OK;
}

/* Checks the arguments of the call before anything is read. */
static vpps_status check_call(vpps_sentences *source, vpps_sentences *target, const vpps_parallel *options) {
    if (source == target) return vpps_fail(VPPS_ARGUMENT, "parallel text: expected two different vpps_sentences");
    if (source->n_sentences != target->n_sentences) {
        return vpps_fail(VPPS_STATE, "parallel text: expected as many sentences before on both sides, found %u and %u",
                         source->n_sentences, target->n_sentences);
    }
    VPPS_TRY(vpps_sentences_check_end_word(options->end_word));
    VPPS_TRY(vpps_sentences_begin(source, VPPS_PLAIN));
    return vpps_sentences_begin(target, VPPS_PLAIN);
}

vpps_status vpps_sentences_read_parallel_texts(vpps_sentences *source, vpps_sentences *target, const char *source_name,
                                               const char *source_text, size_t source_len, const char *target_name,
                                               const char *target_text, size_t target_len,
                                               const vpps_parallel *parallel) {
    VPPS_NEED(source, target, source_name, target_name);
    if (source_len) VPPS_NEED(source_text);
    if (target_len) VPPS_NEED(target_text);
    static const vpps_parallel defaults = {0};
    const vpps_parallel *options = parallel ? parallel : &defaults;
    const vpps_text s = vpps_text_of(source_name, source_text, source_len, "");
    const vpps_text t = vpps_text_of(target_name, target_text, target_len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(source), target_before = vpps_sentences_extent(target);
    vpps_status status = check_call(source, target, options);
    if (status == VPPS_OK) status = vpps_text_check(&s);
    if (status == VPPS_OK) status = vpps_text_check(&t);
    if (status == VPPS_OK) status = read_pairs(source, target, &s, &t, options);
    if (status != VPPS_OK) {
        vpps_sentences_restore(source, before);
        vpps_sentences_restore(target, target_before);
    }
    return status;
}

vpps_status vpps_sentences_read_parallel_files(vpps_sentences *source, vpps_sentences *target, const char *source_path,
                                               const char *target_path, const vpps_parallel *parallel) {
    VPPS_NEED(source, target, source_path, target_path);
    VPPS_FREED char *source_text = NULL, *target_text = NULL;
    size_t source_len, target_len;
    VPPS_TRY(vpps_file_read_all(source_path, &source_text, &source_len));
    VPPS_TRY(vpps_file_read_all(target_path, &target_text, &target_len));
    return vpps_sentences_read_parallel_texts(source, target, source_path, source_text, source_len, target_path,
                                              target_text, target_len, parallel);
}

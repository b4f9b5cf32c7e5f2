/* answers.c - collects a network's answers (predictions) to examples, and makes JSON of them. */
#include "cli/output/answers.h"
#include "base/base.h"
#include "cli/session/decode.h"
#include "io/chunks.h"

#include <math.h>

static vpps_status no_memory(void) { return vpps_fail(VPPS_MEMORY, "no memory for what is to be printed"); }

vpps_status answers_open(answers *a, const settings *s, const corpus *c) {
    const int names = s->network->kind == NET_TEXT ? VOCAB_WORDS : VOCAB_CLASSES;
    *a = (answers){.json = s->json, .top = s->top, .names = c->vocab[names]};
    a->file = open_memstream(&a->text, &a->bytes);
    return a->file ? VPPS_OK : no_memory();
}

void answers_close(answers *a) {
    if (a->file) fclose(a->file);
    VPPS_FREE_ARRAYS(a->ends);
    free(a->text);
    *a = (answers){.file = NULL};
}

void answers_clear(answers *a) {
    a->n = 0;
    rewind(a->file);
}

vpps_status answers_end(answers *a) {
    const long end = ftell(a->file);
    if (fflush(a->file) != 0 || end < 0 || !VPPS_RESERVE(a->ends, a->n + 1)) return no_memory();
    a->ends[a->n++] = (size_t)end;
    return VPPS_OK;
}

vpps_status answers_end_json(answers *a, json_t *object) {
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(object);
    if (!text) return no_memory();
    fputs(text, a->file);
    free(text);
    return answers_end(a);
}

const char *answers_get(const answers *a, size_t i, size_t *len) {
    const size_t begin = i ? a->ends[i - 1] : 0;
    *len = a->ends[i] - begin;
    return a->text + begin;
}

char *answer_utf8(const char *text, size_t len) {
    static const char replacement[] = "\xef\xbf\xbd";
    char *copy = vpps_scratch(3 * len + 1);
    size_t n = 0;
    for (size_t at = 0; copy && at < len;) {
        const uint32_t bytes = vpps_utf8_character(text + at, len - at);
        const bool bad = bytes == 1 && (unsigned char)text[at] >= 0x80;
        memcpy(copy + n, bad ? replacement : text + at, bad ? 3 : bytes);
        n += bad ? 3 : bytes;
        at += bytes;
    }
    return copy;
}

json_t *answer_text(const char *text, size_t len) {
    json_t *string = json_stringn(text, len);
    if (string) return string;
    VPPS_FREED char *copy = answer_utf8(text, len);
    return copy ? json_string(copy) : NULL;
}

json_t *answer_label(const answers *a, uint32_t label) {
    const char *name = a->names ? vpps_vocab_word(a->names, label) : NULL;
    return name ? answer_text(name, strlen(name)) : json_integer(label);
}

double answer_nll(const float *logits, uint32_t classes, uint32_t label) {
    return decode_log_sum(logits, classes) - (double)logits[label];
}

/* Returns the class after `than` in descending order of logits, VPPS_NO_WORD coming before the first class. Classes
 * with equal logits are in ascending order. */
static uint32_t next_best(const float *logits, uint32_t n, uint32_t than) {
    uint32_t best = VPPS_NO_WORD;
    for (uint32_t i = 0; i < n; i++) {
        const bool after = than == VPPS_NO_WORD || logits[i] < logits[than] || (logits[i] == logits[than] && i > than);
        if (after && (best == VPPS_NO_WORD || logits[i] > logits[best])) best = i;
    }
    return best;
}

static json_t *scored(const answers *a, const float *logits, uint32_t label, double total) {
    return json_pack("{so so}", "label", answer_label(a, label), "score",
                     report_number(exp((double)logits[label] - total)));
}

json_t *answer_top(const answers *a, const float *logits, uint32_t classes) {
    const double total = decode_log_sum(logits, classes);
    json_t *top = json_array();
    uint32_t label = next_best(logits, classes, VPPS_NO_WORD);
    for (uint32_t k = 0; k < a->top && label != VPPS_NO_WORD; k++, label = next_best(logits, classes, label))
        json_array_append_new(top, scored(a, logits, label, total));
    return top;
}

json_t *answer_class_of(const answers *a, const float *logits, uint32_t classes, uint32_t label) {
    json_t *o = scored(a, logits, label, decode_log_sum(logits, classes));
    if (a->top > 1) json_object_set_new(o, "top", answer_top(a, logits, classes));
    return o;
}

json_t *answer_class(const answers *a, const float *logits, uint32_t classes) {
    return answer_class_of(a, logits, classes, next_best(logits, classes, VPPS_NO_WORD));
}

json_t *answer_spans(const answers *a, const int32_t *tags, const float *const *logits, uint32_t classes, uint32_t n) {
    if (!vpps_f1_applies(a->names)) return json_null();
    json_t *spans = json_array();
    vpps_chunk_tag before = {'O', ""}, now;
    uint32_t begin = 0;
    double score = 1;
    for (uint32_t k = 0; k <= n; k++, before = now) {
        vpps_chunk_tag_read(k < n ? vpps_vocab_word(a->names, (uint32_t)tags[k]) : "O", &now);
        const bool goes_on = vpps_chunk_goes_on(before.part, now.part) && strcmp(before.type, now.type) == 0;
        if (!goes_on && before.part != 'O')
            json_array_append_new(spans, json_pack("{si si so so}", "begin", (int)begin, "end", (int)k, "type",
                                                   answer_text(before.type, strlen(before.type)), "score",
                                                   report_number(score)));
        if (k == n) break;
        const double p = exp(-answer_nll(logits[k], classes, (uint32_t)tags[k]));
        score = goes_on ? fmin(score, p) : p;
        if (!goes_on) begin = k;
    }
    return spans;
}

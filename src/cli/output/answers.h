/* answers.h - a network's answers to examples, one text each, to be printed in order. */
#pragma once

#include "cli/common/json.h"
#include "cli/session/session.h"

/* A list of answers: a text per example, without a line end. */
typedef struct answers {
    bool json; /* whether answers are JSON objects; else the plain form, which vpps can read again */
    bool gold; /* whether answers also contain the correct label, if the example's text has one */
    bool rows; /* whether a tagger's answers are rows, one per word (tags_predict) */
    /* JSON answers: number of likeliest classes listed in each answer; 0 or 1: only the likeliest */
    uint32_t top;
    const vpps_vocab *names; /* names of the network's classes; NULL: classes are numbers */
    FILE *file;              /* stream to which an answer is printed before answers_end completes it */
    char *text;
    size_t bytes;
    size_t *ends; /* ends[i]: index in `text` of the first byte after answer i */
    size_t n;
} answers;

/* Makes an empty list of answers. Fails with MEMORY. Call answers_close also after a failure. */
vpps_status answers_open(answers *a, const settings *s, const corpus *c);
void answers_close(answers *a);

/* Removes all answers. */
void answers_clear(answers *a);

/* answers_end makes an answer of the text printed to `file` since the preceding answer. answers_end_json makes the answer from an object and releases
 * the object. Both fail with MEMORY. */
vpps_status answers_end(answers *a);
vpps_status answers_end_json(answers *a, json_t *object);

/* Returns answer i, of *len bytes; valid until the next answer is completed. */
const char *answers_get(const answers *a, size_t i, size_t *len);

/* Returns {"label": ..., "score": ...} for the likeliest class; with --top the likeliest classes, too, as "top":
 * [{"label", "score"}, ...]. Scores are probabilities, the softmax of all classes' logits. */
json_t *answer_class(const answers *a, const float *logits, uint32_t classes);

/* Returns {"label": ..., "score": ...} for class `label`; with the option --top, also the likeliest classes as "top":
 * [{"label", "score"}, ...]. Scores are probabilities. */
json_t *answer_class_of(const answers *a, const float *logits, uint32_t classes, uint32_t label);

/* Returns the likeliest classes, as many as the option --top says: [{"label": ..., "score": probability}, ...]. */
json_t *answer_top(const answers *a, const float *logits, uint32_t classes);

/* Returns a class's name (for a language model, the word), or its number, as JSON. */
json_t *answer_label(const answers *a, uint32_t label);

/* Copies a text, with U+FFFD for bytes that are not UTF-8; the caller frees the copy. NULL: out of memory. */
char *answer_utf8(const char *text, size_t len);

/* Returns a text as a JSON string, with U+FFFD for bytes that are not UTF-8. */
json_t *answer_text(const char *text, size_t len);

/* Returns -log softmax(logits)[label]. */
double answer_nll(const float *logits, uint32_t classes, uint32_t label);

/* Returns tags as spans by conlleval's rules: [{"begin", "end", "type", "score"}, ...], over words begin .. end - 1; a
 * span's score is the lowest score of its tags. Returns null when the network's tags are not tags of chunks
 * (vpps_f1_applies). tags: n class ids; logits: one vector per word. */
json_t *answer_spans(const answers *a, const int32_t *tags, const float *const *logits, uint32_t classes, uint32_t n);

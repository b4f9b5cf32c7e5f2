/* answers.h - a network's answers to examples, one text each, to be printed in order. */
#pragma once

#include "cli/json.h"
#include "cli/session.h"

/* A text for every example, without a line's end. */
typedef struct answers {
    bool json;               /* objects, else the form that people read and the readers take */
    bool gold;               /* the text's own label is printed, too */
    bool rows;               /* of tagged words a row each (tags.h) */
    uint32_t top;            /* JSON: how many classes, the likeliest first; at most 1: none besides the likeliest */
    const vpps_vocab *names; /* of classes; NULL: they are numbers */
    FILE *file;              /* what is printed to it becomes the next answer */
    char *text;
    size_t bytes;
    size_t *ends; /* of answer i in text */
    size_t n;
} answers;

/* Fails with MEMORY. Close in any case. */
vpps_status answers_open(answers *a, const settings *s, const corpus *c);
void answers_close(answers *a);

/* Forgets all answers. */
void answers_clear(answers *a);

/* What was printed since the last one is an answer; or the object, which is taken. Fail with MEMORY. */
vpps_status answers_end(answers *a);
vpps_status answers_end_json(answers *a, json_t *object);

/* Answer i, len bytes; valid until the next one is made. */
const char *answers_get(const answers *a, size_t i, size_t *len);

/* {"label": ..., "score": ...}, and with --top the likeliest ones as "top": [{"label", "score"}, ...]. Scores are
 * probabilities, made of the logits of all classes. */
json_t *answer_class(const answers *a, const float *logits, uint32_t classes);

/* The same of another class than the likeliest. */
json_t *answer_class_of(const answers *a, const float *logits, uint32_t classes, uint32_t label);

/* The likeliest ones alone. */
json_t *answer_top(const answers *a, const float *logits, uint32_t classes);

/* The name of a class (a language model's are its words), or its number, as JSON. */
json_t *answer_label(const answers *a, uint32_t label);

/* A copy of text, to be freed, in which what is not UTF-8 is U+FFFD; NULL: no memory. */
char *answer_utf8(const char *text, size_t len);

/* The same as a string of JSON. */
json_t *answer_text(const char *text, size_t len);

/* -log softmax(logits)[label] */
double answer_nll(const float *logits, uint32_t classes, uint32_t label);

/* Tags as spans: [{"begin", "end", "type", "score"}, ...], words from begin up to end, by the rules of conlleval; the score
 * is the least of its tags'. Null where the network's tags are not those of chunks (vpps_f1_applies). tags: n ids of
 * classes; logits: of each. */
json_t *answer_spans(const answers *a, const int32_t *tags, const float *const *logits, uint32_t classes, uint32_t n);

/* tags.h - tags as classes, and how they are measured. */
#pragma once

#include "cli/task.h"

/* Reads sentences with tags: word|TAG lines, columns, or CoNLL-U, whichever the text looks like, or what options say of
 * its columns. What is odd is noted in c. */
vpps_status tags_read(corpus *c, vpps_sentences *s, const settings *options, const task_text *text);

/* For prediction: how sentences are read of which `text` is the first, the whole lines that are there. `form`: AUTO, TEXT,
 * TAGGED or COLUMNS. Fails with ARGUMENT (--word-column, --tag-column). */
vpps_status tags_look(const corpus *c, const settings *options, input_form form, const task_text *text,
                      input_reading *in);

/* Reads a sentence that is word|TAG or columns as c->input says. */
vpps_status tags_read_input(corpus *c, vpps_sentences *s, const task_text *text);

/* A network's tags, its classes: those of the training part. */
vpps_status tags_learn(corpus *c, const vpps_vocab *tags);

/* The same with the words, where the training part is sentences; the ids of a split's words and tags. */
vpps_status tags_learn_sentences(corpus *c, const settings *s);
vpps_status tags_map_sentences(corpus *c, const settings *s, corpus_split *split);

/* Measures tags: entities' F1 (NaN where tags are not of the kind that conlleval knows) and accuracy. `all` is the
 * split's vocabulary of tags, gold(split, i) an example's, n of them, in it. */
vpps_status tags_measure(session *x, corpus *c, corpus_split *split, const vpps_vocab *all,
                         const uint32_t *(*gold)(const corpus_split *split, uint32_t i, uint32_t *n),
                         const volatile int *stop, measures *m);

/* A sentence to be tagged. */
typedef struct tags_sentence {
    uint32_t n;                  /* words */
    const vpps_vocab *words;     /* NULL: they have no names, and only tags are told */
    const uint32_t *ids;         /* of the words */
    const vpps_vocab *gold;      /* of the tags in its text; NULL: it has none */
    const uint32_t *gold_ids;    /* "_" stands for a missing one */
    const vpps_sentences *lines; /* where its words' lines are, as sentence `i`; NULL: they have none */
    uint32_t i;
} tags_sentence;

/* What a network says of n examples from `first` on, of which sentence_of(c, split, i) is number i: word|TAG with spaces between
 * (word|GOLD|TAG with a->gold), as JSON, or (a->rows) "LINE<TAB>TAG<TAB>GOLD<TAB>WORD" rows, LINE the word's line in its text. Where tags
 * depend on each other, a score is the probability of the word's tag whatever the others are. Uses the session's graph. */
vpps_status tags_predict(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a,
                         tags_sentence (*sentence_of)(const corpus *c, const corpus_split *split, uint32_t i));

#define TAGS_METRICS                                                                                                   \
    {                                                                                                                  \
        {"f1", "F1", true, false, "entities"}, {"accuracy", "accuracy", true, false, "tags"},                          \
            {"precision", "precision", true, false, NULL}, {                                                           \
            "recall", "recall", true, false, NULL                                                                      \
        }                                                                                                              \
    }

/* tags.h - reads, measures and predicts the tags of words. */
#pragma once

#include "cli/input/task.h"

/* Reads tagged sentences for training, as word|TAG lines, columns or CoNLL-U: by --input-format, the file's name, or the text's first line. Fails
 * with ARGUMENT if the number of --word-column or --tag-column is wrong, with FORMAT, MEMORY. */
vpps_status tags_read(vpps_sentences *s, const settings *options, const task_text *text);

/* For prediction: finds the format of sentences from `text`, the first whole lines of the input. `form` is the requested format: INPUT_AUTO, TEXT,
 * TAGGED or COLUMNS. Fails as tags_read does, with FORMAT also if the first line may be of text or of columns. */
vpps_status tags_look(const corpus *c, const settings *options, input_form form, const task_text *text,
                      input_reading *in);

/* Reads one sentence in the format that c->input describes, word|TAG or columns. */
vpps_status tags_read_input(corpus *c, vpps_sentences *s, const task_text *text);

/* Makes the network's classes from the training split's tags. */
vpps_status tags_learn(corpus *c, const vpps_vocab *tags);

/* tags_learn_sentences makes classes and the vocabulary of words from a training split of sentences; tags_map_sentences
 * maps a split's words and tags to their ids. */
vpps_status tags_learn_sentences(corpus *c, const settings *s);
vpps_status tags_map_sentences(corpus *c, const settings *s, corpus_split *split);

/* Measures tags: the entities' F1 (NaN where tags are not of a scheme that conlleval knows) and accuracy. `all` is the
 * split's vocabulary of tags; gold(split, i, &n) returns example i's n tags as ids in `all`. */
vpps_status tags_measure(session *x, corpus *c, corpus_split *split, const vpps_vocab *all,
                         const uint32_t *(*gold)(const corpus_split *split, uint32_t i, uint32_t *n),
                         const volatile int *stop, measures *m);

/* A sentence to be tagged. */
typedef struct tags_sentence {
    uint32_t n;                  /* number of words */
    const vpps_vocab *words;     /* names of the words */
    const uint32_t *ids;         /* the words' ids */
    const vpps_vocab *gold;      /* names of the tags in the sentence's text; NULL: the text has no tags */
    const uint32_t *gold_ids;    /* ids of the tags in the text; a missing tag is printed as "_" */
    const vpps_sentences *lines; /* sentence `i` of these, as read, tells its words' line numbers */
    uint32_t i;
} tags_sentence;

/* Predicts n examples from `first` on; sentence_of(c, split, i) returns example i. Prints word|TAG separated by spaces (word|GOLD|TAG with
 * a->gold), JSON, or, with a->rows, rows "LINE<TAB>TAG<TAB>GOLD<TAB>WORD", LINE being the word's line in its text. Where tags depend on
 * each other, a score is the marginal probability of the word's tag. Uses the session's graph. */
vpps_status tags_predict(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a,
                         tags_sentence (*sentence_of)(const corpus *c, const corpus_split *split, uint32_t i));

#define TAGS_METRICS                                                                                                   \
    {                                                                                                                  \
        {"f1", "F1", true, false, "entities"}, {"accuracy", "accuracy", true, false, "tags"},                          \
            {"precision", "precision", true, false, NULL}, {                                                           \
            "recall", "recall", true, false, NULL                                                                      \
        }                                                                                                              \
    }

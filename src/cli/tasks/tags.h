/* tags.h - tags as classes, and how they are measured. */
#ifndef VPPS_CLI_TASKS_TAGS_H
#define VPPS_CLI_TASKS_TAGS_H

#include "cli/chain.h"
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

/* Measures tags: entities' F1 (NaN where tags are not of the kind that conlleval knows) and accuracy. `all` is the
 * split's vocabulary of tags, gold(split, i) an example's, n of them, in it. */
vpps_status tags_measure(session *x, corpus *c, corpus_split *split, const vpps_vocab *all,
                         const uint32_t *(*gold)(const corpus_split *split, uint32_t i, uint32_t *n),
                         const volatile int *stop, measures *m);

/* How a sentence's tags depend on each other: by the network's parameters as they are now (--crf), and by --scheme. Uses the session's
 * graph. Close in any case. Fails with ARGUMENT, MEMORY, and as vpps_forward does. */
vpps_status tags_chain(session *x, const corpus *c, tag_chain *chain);

/* A sentence to be tagged. */
typedef struct tags_sentence {
    uint32_t n;                  /* words */
    const vpps_vocab *words;     /* NULL: they have no names, and only tags are told */
    const uint32_t *ids;         /* of the words */
    const vpps_vocab *gold;      /* of the tags in its text; NULL: it has none */
    const uint32_t *gold_ids;    /* "_" stands for a missing one */
    const vpps_sentences *lines; /* where its words' lines are, as sentence `i`; NULL: they have none */
    uint32_t i;
    const tag_chain *chain; /* tags_chain */
} tags_sentence;

/* What a network says of a sentence: word|TAG with spaces between (word|GOLD|TAG with a->gold), as JSON, or (a->rows)
 * "LINE<TAB>TAG<TAB>GOLD<TAB>WORD" rows, LINE the word's line in its text. logits: of each word's tags. Where tags depend on
 * each other, a score is the probability of the word's tag whatever the others are. */
vpps_status tags_answer(answers *a, const corpus *c, const tags_sentence *sentence, const float *const *logits);

#define TAGS_METRICS                                                                                                   \
    {                                                                                                                  \
        {"f1", "F1", true, false, "entities"}, {"accuracy", "accuracy", true, false, "tags"},                          \
            {"precision", "precision", true, false, NULL}, {                                                           \
            "recall", "recall", true, false, NULL                                                                      \
        }                                                                                                              \
    }

#endif

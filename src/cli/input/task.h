/* task.h - the table of kinds of data (net_kind): how each is read, its vocabularies, what is measured and what is printed.
 *
 * Each kind's row is in a file of its own, tasks/NAME.c. */
#pragma once

#include "cli/input/corpus.h"

typedef struct session session; /* defined in session.h */
typedef struct answers answers; /* defined in answers.h */

/* A metric of a network on data, such as accuracy. */
typedef struct metric {
    const char *name; /* the metric's key in JSON */
    const char *text; /* the metric's name for people */
    bool share;       /* true: values are fractions of 1, shown in percent; false: plain numbers */
    bool falls;       /* whether lower values are better */
    const char *of;   /* noun for what the metric counts, such as "labelled nodes"; NULL: not shown */
} metric;

#define MAX_METRICS 4

typedef struct measures {
    bool known;     /* whether the split of the data was measured */
    bool nonfinite; /* whether some score of the network was not finite */
    uint32_t examples;
    double value[MAX_METRICS];     /* value of each metric; NaN: nothing to measure, or scores were not finite */
    uint64_t counted[MAX_METRICS]; /* number of words, nodes or examples that each metric measured */
} measures;

/* The text of a file, and the file's name. */
typedef struct task_text {
    const char *name, *text;
    size_t len;
} task_text;

/* A callback of session_predict_all: gets example i of a split and the predicted classes of its positions (words or nodes); sets *positions
 * to the number of positions. */
typedef vpps_status session_see(void *context, const corpus_split *split, uint32_t i, const int32_t *predicted,
                                uint32_t *positions);

typedef struct task {
    const char *examples;  /* noun for examples, in the plural */
    const char *generated; /* name of the generated data in messages; NULL: the name given to --generate */
    /* noun for the parts of an example that have one loss each: "node"; NULL: an example has a single loss */
    const char *loss_of;
    vpps_language language; /* settings of the generator of sentences (io/language.c), without the seed */
    uint32_t n_generated;   /* default number of generated training examples */
    /* metrics, ended by a NULL name; the first metric that applies to the dev data selects the best epoch (best.h) */
    metric metrics[MAX_METRICS];
    const char *(*signature)(void); /* returns how the first metric is computed, as a BLEU signature; NULL: none */
    bool paired;                    /* whether a split has sentences and translations, in two files or as records */
    /* networks of this task read just one format, and predict writes it, too: its name, such as "CoNLL-U"; NULL: several formats */
    const char *own_form;
    bool classifies; /* whether measuring can fill a confusion matrix (classes.h) */

    /* Finds, for prediction, the format of a file's examples from the file's first whole lines, `first`. `form` is the requested format or
     * INPUT_AUTO. Fails with ARGUMENT. The pointer `look` is NULL if examples are always lines of text. */
    vpps_status (*look)(const corpus *c, const settings *s, input_form form, const task_text *first, input_reading *in);
    /* Reads a file's examples and appends them to a split. `target` is the file of translations, if data are
     * pairs and translations are given, else NULL. */
    vpps_status (*read)(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                        const task_text *target);
    /* Called once after all files of a split have been read; may be NULL. */
    vpps_status (*finish)(corpus *c, const settings *s, corpus_split *split);
    vpps_status (*generate)(corpus *c, const settings *s, corpus_split *split, uint64_t seed, uint32_t n);
    /* Makes the vocabularies and classes from the training split. */
    vpps_status (*learn)(corpus *c, const settings *s);
    /* Sets split->ids, which translate ids of words and labels to the network's, and split->n_all (examples read). */
    vpps_status (*map)(corpus *c, const settings *s, corpus_split *split);
    /* Returns whether example x can be trained on and measured; NULL: all can. `training`: x must also suit this run's
     * training. `lacks` names what unusable examples miss. */
    bool (*usable)(const net_example *x, const settings *s, bool training);
    const char *lacks;
    vpps_status (*example)(corpus *c, const corpus_split *split, uint32_t i, net_example *x);

    /* Counts, in a struct accuracy, how many predictions for an example are right. If `measure` is NULL, nothing else is measured. */
    session_see *count;
    /* Measures a split: sets the values and counts of m, which are zero before. Ends early once *stop is not 0 (stop may be NULL). */
    vpps_status (*measure)(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m);
    /* Appends the network's answers to examples first .. first + n - 1. */
    vpps_status (*predict)(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a);
} task;

const task *task_of(net_kind kind);
static inline const task *task_for(const settings *s) { return task_of(s->network->kind); }

extern const task task_trees, task_tagging, task_sentences, task_text_model, task_lattices, task_pairs,
    task_lattice_pairs, task_dependencies, task_nodes, task_graphs;

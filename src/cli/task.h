/* task.h - what commands need to know of a kind of data: reading it, its vocabularies, what is measured, what is printed.
 *
 * A row of the table for every net_kind. Each lies in a file of its own: tasks/NAME.c.
 */
#pragma once

#include "cli/corpus.h"

typedef struct session session; /* session.h */
typedef struct answers answers; /* answers.h */

/* A measure of a network on data. */
typedef struct metric {
    const char *name; /* in JSON */
    const char *text; /* for people */
    bool share;       /* of 1, shown in percent; else a number */
    bool falls;       /* less is better */
    const char *of;   /* what is counted, for people: "labelled nodes"; NULL: not said */
} metric;

#define MAX_METRICS 4

typedef struct measures {
    bool known;     /* false: nothing was measured */
    bool nonfinite; /* some of the network's scores were not finite */
    uint32_t examples;
    double value[MAX_METRICS];     /* NaN: there was nothing to measure, or scores were not finite */
    uint64_t counted[MAX_METRICS]; /* of how many; 0: there was nothing to measure */
} measures;

/* A file's text. */
typedef struct task_text {
    const char *name, *text;
    size_t len;
} task_text;

typedef struct task {
    const char *examples;           /* in the plural */
    const char *generated;          /* the name of generated data; NULL: by s->generate */
    const char *loss_of;            /* what has a loss of its own in an example: "node"; NULL: the example alone */
    uint32_t n_generated;           /* how many to train on, when not said */
    metric metrics[MAX_METRICS];    /* the first ones tell which epoch was best (best.h); ends with a NULL name */
    const char *(*signature)(void); /* how the first one is computed, as the field states it; or NULL */
    bool paired;                    /* a part is two files, of source and target, unless it is records */
    const char *own_form;           /* the only form that is read, and printed with labels; NULL: others */
    bool classifies;                /* measuring counts classes, where the session asks for it (classes.h) */

    /* For prediction: how the examples of a file are read whose first whole lines `first` is, for a form that was asked for or
     * INPUT_AUTO; NULL: as lines of text. Fails with ARGUMENT. */
    vpps_status (*look)(const corpus *c, const settings *s, input_form form, const task_text *first, input_reading *in);
    /* Reads a file of a part, after those before; targets only where paired, and not for prediction (NULL then). */
    vpps_status (*read)(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                        const task_text *target);
    /* Called once all files of a part have been read; may be NULL. */
    vpps_status (*finish)(corpus *c, const settings *s, corpus_split *split);
    vpps_status (*generate)(corpus *c, const settings *s, corpus_split *split, uint64_t seed, uint32_t n);
    /* Makes the vocabularies, and classes, from the training part. */
    vpps_status (*learn)(corpus *c, const settings *s);
    /* Makes split->ids, and n_all. */
    vpps_status (*map)(corpus *c, const settings *s, corpus_split *split);
    /* Can example x be trained on and measured? NULL: all can. `training`: as this run trains. Otherwise `lacks` says
     * what is missing. */
    bool (*usable)(const net_example *x, const settings *s, bool training);
    const char *lacks;
    vpps_status (*example)(corpus *c, const corpus_split *split, uint32_t i, net_example *x);

    /* Sets the values and counts of m, which are 0, for a split; ends early once *stop is not 0 (stop may be NULL). */
    vpps_status (*measure)(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m);
    /* The network's answers to n examples, from number `first` on. */
    vpps_status (*predict)(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a);
} task;

const task *task_of(net_kind kind);
static inline const task *task_for(const settings *s) { return task_of(s->network->kind); }

extern const task task_trees, task_tagging, task_sentences, task_text_model, task_lattices, task_pairs,
    task_lattice_pairs, task_dependencies, task_nodes, task_graphs;

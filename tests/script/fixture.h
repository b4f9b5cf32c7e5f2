/* fixture.h - what the tests of scripts share: a machine for a model, and a scheduled batch with everything that it must do. */
#pragma once

#include "common/random_graph.h"
#include "common/testing.h"
#include "script/task.h"
#include "script/verify/verify.h"

DESTROYED_BY(vpps_batch, vpps_batch_destroy)

/* Lays out a model's vectors and tables for n_vps virtual processors, as a device does. split_elems: see vpps_cell_needs. Fails with MEMORY. */
vpps_status machine_create(vpps_target *machine, const vpps_model *model, vpps_optimizer_kind optimizer, uint32_t n_vps,
                           uint32_t split_elems, uint32_t pool_words);
void machine_destroy(vpps_target *machine);

/* A script, and everything that says what it must do. */
typedef struct subject {
    const uint32_t *script;
    size_t words;
    vpps_compiled_cell *const *cells;
    uint32_t n_cells;
    const vpps_target *machine;
    const vpps_graph *g;
    const vpps_batch_request *request;
    const uint32_t *outputs;
    const vpps_given_array *given; /* NULL: no pause */
} subject;

static inline vpps_status verify_subject(const subject *s) {
    return vpps_verify_batch(s->script, s->words, s->cells, s->n_cells, s->machine, s->g, s->request, s->outputs, NULL,
                             s->given);
}

/* How a batch is scheduled. */
typedef struct way {
    uint32_t n_vps, groups; /* groups: 1, or the number of groups if the batch has several components */
    uint32_t waves;         /* likewise; 0: 1 */
    uint32_t slices;        /* number of slices of a wave; 0: 1 */
    uint32_t split_elems;   /* 0: rows are shared out wherever possible */
    uint32_t wide;          /* levels with so many vertices per processor are shared out by vertices; 0: none */
    bool accumulate;        /* gradients of parameters are added up level by level */
    bool keeps;             /* training: gradients are kept for a later update */
    bool inference;
    bool halves;              /* training in two halves from the outputs `wanted` */
    uint32_t pool_words;      /* 0: many */
    vpps_wave_rule wave_rule; /* of the machine */
    uint32_t level_flops;     /* likewise */
    const vpps_node *wanted;  /* inference, halves: outputs; NULL: some are drawn */
    uint32_t n_wanted;
} way;

enum { JOB_OUTPUTS = 4 };

typedef struct job {
    vpps_target machine;
    vpps_optimizer optimizer;
    vpps_batch_request request;
    vpps_node outputs[JOB_OUTPUTS];
    uint32_t offsets[JOB_OUTPUTS];
    vpps_history history;
    vpps_batch *batch;
    subject subject;
} job;

/* Schedules a graph with an optimiser drawn by `seed`. Fails as the scheduler does; the job must be closed even after a failure. */
vpps_status job_open(job *j, vpps_graph *g, vpps_node loss, way w, uint64_t seed);
void job_close(job *j);

/* fixture.h - what the script tests share: a plan for a model, and a script with what it was made from. */
#ifndef VPPS_TESTS_NODES_FIXTURE_H
#define VPPS_TESTS_NODES_FIXTURE_H

#include "nodes/script.h"

/* Lays out a model's vectors and tables for n_vps VPs, as a device does. False: out of memory. */
bool plan_create(vpps_plan *plan, const vpps_model *model, uint32_t n_vps, uint32_t pool_words);
void plan_destroy(vpps_plan *plan);

/* A script and everything that says what it should be. */
typedef struct subject {
    const uint32_t *script;
    size_t words;
    const vpps_plan *plan;
    const vpps_graph *g;
    const vpps_request *request;
    const uint32_t *values, *gradients;
} subject;

static inline vpps_status verify_subject(const subject *s) {
    return vpps_verify(s->script, s->words, s->plan, s->g, s->request, s->values, s->gradients);
}

#endif

/* script.h - from a flat graph to a script: levels, schedule, memory, encoding; and its checker and printer.
 *
 * One workspace serves all batches of a handle; its memory grows to the largest and stays.
 */
#ifndef VPPS_NODES_SCRIPT_H
#define VPPS_NODES_SCRIPT_H

#include "graph/graph.h"
#include "nodes/format.h"

/* What a script is to do. */
typedef struct vpps_request {
    vpps_node loss;           /* training; VPPS_NO_NODE: inference of `outputs` */
    const vpps_node *outputs; /* nodes whose values are read afterwards */
    uint32_t n_outputs;
    const vpps_optimizer *optimizer; /* training */
    vpps_gradients gradients;
    vpps_transposed transposed; /* AUTO: as the plan says */
    bool guard;                 /* no update when the loss or the gradient's norm is not finite */
    uint32_t step;              /* number of this update, from 1 */
    uint64_t dropout_key;
    bool layout; /* fill in the scheduler's `values` and `gradients`, for vpps_verify */
} vpps_request;

typedef struct vpps_scheduler {
    uint32_t *script; /* the result */
    size_t script_words, script_capacity;

    /* where things lie, if the request asked; per node of the flat graph, VPPS_NO_OFFSET where there is none */
    uint32_t *values;    /* a node's auxiliary indices follow its value */
    uint32_t *gradients; /* lookups of one row share one; arguments of sums may share the sum's */

    uint32_t n_levels, n_phases, n_instructions, pool_words;

    struct vpps_schedule_work *work; /* schedule.c */
} vpps_scheduler;

vpps_status vpps_scheduler_create(vpps_scheduler **out);
void vpps_scheduler_destroy(vpps_scheduler *s);

/* Makes s->script for the graph, which is flattened first. Fails with the graph's error, SHAPE, ARGUMENT, MEMORY, POOL
 * (message: words asked for and words there are). */
vpps_status vpps_schedule(vpps_scheduler *s, const vpps_plan *plan, vpps_graph *g, const vpps_request *request);

/* Offset of the value of a needed node, after vpps_schedule. */
uint32_t vpps_scheduled_value(const vpps_scheduler *s, vpps_node x);

/* Checks a script against the graph it came from, independently of how it was made: it computes what the graph says
 * (every value, every gradient with all its contributions, each once), each read comes after the write it needs by
 * barriers alone, no two unordered accesses of a word include a write, every wait can be satisfied, every offset lies
 * inside its tensor. Fails with SCRIPT; the message names VP, instruction (its address) and reason. */
vpps_status vpps_verify(const uint32_t *script, size_t words, const vpps_plan *plan, const vpps_graph *g,
                        const vpps_request *request, const uint32_t *values, const uint32_t *gradients);

/* Prints a script so that a person can read it. `g` may be NULL; else parameters are named. Malformed scripts print
 * as far as they go. Fails with IO, SCRIPT. */
vpps_status vpps_print_script(const uint32_t *script, size_t words, const vpps_graph *g, FILE *file);

/* One instruction as text: opcode, length, flags, operands. */
void vpps_format_instruction(const uint32_t *at, const uint32_t *end, const vpps_graph *g, char *text, size_t size);

#endif

/* policy.c - `vpps policy`: prints how many steps each batching policy needs for the forward pass of the first training examples; a step
 * runs vertices of one type. Also prints the automaton (learned policy that chooses which type's vertices run next) for these examples. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"
#include "cli/common/json.h"
#include "runtime/handle.h"
#include "script/schedule.h"
#include "script/scopes.h"

enum { MAX_POLICIES = 16, STATES_SHOWN = 40 };

/* For one graph: how many batches (sets of vertices of one type that run together) each batching policy needs, and a lower bound. */
typedef struct counts {
    vpps_arena arena; /* the scope's memory */
    vpps_scope scope;
    const vpps_automaton *automaton;
    uint32_t bound, batches[MAX_POLICIES];
} counts;

static vpps_status count(vpps_handle *h, counts *n) {
    const vpps_typed_graph *g = &n->scope.graph;
    VPPS_FREED uint32_t *steps = vpps_scratch((g->n + 1u) * sizeof *steps);
    n->automaton = steps ? vpps_learned_for(&h->learned, g, &n->scope.kind) : NULL;
    bool ok = n->automaton && vpps_batches_bound(g, &n->bound);
    for (uint32_t i = 0; vpps_policies[i].name && i < MAX_POLICIES && ok; i++)
        ok = vpps_policy_choose(&vpps_policies[i], g, n->automaton, steps, &n->batches[i]);
    return ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "policy: out of memory");
}

static const char *type_name(const vpps_batch *b, const counts *n, uint32_t type) {
    return vpps_scope_type_name(&b->schedule->reading, n->scope.types[type]);
}

/* ---------------------------------------------------------------- as JSON */

static json_t *by_policy(const uint32_t *numbers) {
    json_t *o = json_object();
    for (uint32_t i = 0; vpps_policies[i].name && i < MAX_POLICIES; i++)
        json_object_set_new(o, vpps_policies[i].name, json_integer(numbers[i]));
    return o;
}

static json_t *automaton_json(const vpps_batch *b, const counts *n) {
    const vpps_automaton *a = n->automaton;
    json_t *states = json_array();
    for (uint32_t i = 0; i < a->n_states; i++) {
        const vpps_state *s = &a->states[i];
        json_t *frontier = json_array(), *q = json_array(), *more = json_array();
        for (uint32_t k = s->first; k < s->first + s->n; k++) {
            json_array_append_new(frontier, json_string(type_name(b, n, a->words[k])));
            json_array_append_new(q, report_number((double)a->q[k]));
        }
        for (uint32_t k = s->first + s->n; k < s->first + s->n_words; k++)
            json_array_append_new(more, json_integer(a->words[k]));
        json_array_append_new(states, json_pack("{so so so ss}", "frontier", frontier, "more", more, "q", q, "next",
                                                type_name(b, n, a->words[vpps_automaton_best(a, s)])));
    }
    return json_pack("{ss sI sI so}", "encoding", vpps_encoding_name((vpps_encoding)a->encoding), "trials",
                     (json_int_t)a->trials, "states", (json_int_t)a->n_states, "table", states);
}

static json_t *counts_json(const vpps_batch *b, const counts *n) {
    json_t *types = json_array();
    for (uint32_t t = 0; t < n->scope.graph.n_types; t++) json_array_append_new(types, json_string(type_name(b, n, t)));
    return json_pack("{so sI sI so so}", "cells", types, "vertices", (json_int_t)n->scope.graph.n, "bound",
                     (json_int_t)n->bound, "batches", by_policy(n->batches), "fsm", automaton_json(b, n));
}

/* ---------------------------------------------------------------- as text */

static void print_counts(const vpps_batch *b, const counts *n) {
    printf("%u vertices of %u types: %s\n", n->scope.graph.n, n->scope.graph.n_types, n->scope.names);
    for (uint32_t i = 0; vpps_policies[i].name && i < MAX_POLICIES; i++)
        printf("  %-8s %6u batches   %s\n", vpps_policies[i].name, n->batches[i], vpps_policies[i].text);
    printf("  %-8s %6u\n", "bound", n->bound);
    const vpps_automaton *a = n->automaton;
    if (!a->n_states) {
        printf("  fsm: nothing was learned that needs fewer batches than ratio\n");
        return;
    }
    printf("  fsm: %u states, learned in %u trials; of a frontier it knows %s\n", a->n_states, a->trials,
           vpps_encoding_text((vpps_encoding)a->encoding));
    for (uint32_t i = 0; i < a->n_states && i < STATES_SHOWN; i++) {
        const vpps_state *s = &a->states[i];
        printf("    ");
        for (uint32_t k = s->first; k < s->first + s->n; k++)
            printf("%s%s", k > s->first ? " | " : "", type_name(b, n, a->words[k]));
        for (uint32_t k = s->first + s->n; k < s->first + s->n_words; k++)
            printf("%s%u", k > s->first + s->n ? " " : "; ", a->words[k]);
        printf(" -> %s\n", type_name(b, n, a->words[vpps_automaton_best(a, s)]));
    }
    if (a->n_states > STATES_SHOWN) printf("    and %u others; --json prints all\n", a->n_states - STATES_SHOWN);
}

/* ---------------------------------------------------------------- the command */

/* Reads no stored automaton (learned policy), so that a new policy is learned, perhaps from more examples. */
static void *read_nothing(const vpps_graph_kind *kind, size_t *bytes) {
    (void)kind;
    *bytes = 0;
    return NULL;
}

static void free_counts(counts *n) { vpps_arena_free(&n->arena); }

/* Counts the batches that each policy needs for a recurrence, component number `scc`: cells that read each other's
 * results. Adds the counts to `list`, or prints them if `list` is NULL. Skips components of one cell. */
static vpps_status show_recurrence(session *x, const vpps_batch *b, uint32_t scc, json_t *list) {
    VPPS_CLOSED_BY(free_counts) counts n = {0};
    if (vpps_types_of_scc(&b->schedule->needs, scc) < 2) return VPPS_OK;
    VPPS_TRY(vpps_scope_of_scc(&b->schedule->needs, scc, &n.arena, &n.scope));
    VPPS_TRY(count(x->handle, &n));
    if (list) return json_array_append_new(list, counts_json(b, &n)), VPPS_OK;
    printf("\nrecurrence, where the engine follows the policy: ");
    print_counts(b, &n);
    return VPPS_OK;
}

/* Prints how many batches and steps each batching policy (rule for which vertices run together next) needs for the
 * first training examples. */
static vpps_status show(session *x, settings *s, corpus *c) {
    static vpps_policy_store learns_anew;
    vpps_node loss;
    const vpps_batch *b;
    learns_anew = (vpps_policy_store){read_nothing, vpps_policies_on_disk.write};
    VPPS_TRY(open_first_batch(x, s, c, false, &loss));
    x->handle->learned.store = &learns_anew;
    const uint32_t n_inputs = vpps_min_u32(s->batch, c->split[SPLIT_TRAIN].n_examples);
    VPPS_TRY(vpps_handle_batch(x->handle, x->graph, loss, &b));
    VPPS_CLOSED_BY(free_counts) counts all = {0};
    VPPS_TRY(vpps_scope_of_all(&b->schedule->needs, &all.arena, &all.scope));
    VPPS_TRY(count(x->handle, &all));
    if (!s->json) {
        printf("%s: %u inputs, forward\n", s->network->name, n_inputs);
        print_counts(b, &all);
    }
    json_auto_t *recurrences = s->json ? json_array() : NULL, *o = s->json ? counts_json(b, &all) : NULL;
    for (uint32_t scc = 0; scc < b->schedule->needs.n_sccs; scc++) VPPS_TRY(show_recurrence(x, b, scc, recurrences));
    /* for each policy: the batch's forward steps (of one cell's vertices) and phases (times between barriers) */
    uint32_t steps[MAX_POLICIES], phases[MAX_POLICIES];
    for (uint32_t i = 0; vpps_policies[i].name && i < MAX_POLICIES; i++) {
        x->handle->policy = &vpps_policies[i];
        VPPS_TRY(vpps_handle_batch(x->handle, x->graph, loss, &b));
        steps[i] = b->n_steps;
        phases[i] = b->n_phases;
    }
    if (s->json) {
        json_object_update_new(o, json_pack("{ss sI so so sO}", "model", s->network->name, "inputs",
                                            (json_int_t)n_inputs, "steps", by_policy(steps), "phases",
                                            by_policy(phases), "recurrences", recurrences));
        return report_json_line(json_incref(o), stdout);
    }
    printf("\nthe engine, where all that is no recurrence runs once:\n");
    for (uint32_t i = 0; vpps_policies[i].name && i < MAX_POLICIES; i++)
        printf("  %-8s %6u steps, %u phases, backward included\n", vpps_policies[i].name, steps[i], phases[i]);
    return flush_stdout();
}

int command_policy(settings *s) {
    VPPS_CLOSED_BY(corpus_close) corpus c = {0};
    VPPS_CLOSED_BY(session_close) session x = {0};
    return exit_code(show(&x, s, &c));
}

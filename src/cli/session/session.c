/* session.c - makes a network with its engine from settings, and a batch's graph from examples. */
#include "cli/session/session.h"
#include "base/base.h"
#include "cli/input/corpus_read.h"
#include "cli/session/chain.h"
#include "cli/session/parameters.h"
#include "cli/session/team.h"
#include "io/output.h"
#include "runtime/comm/comm.h"
#include "runtime/devices.h"
#include "script/policies.h"

#include <math.h>

static void tell_stderr(void *context, const char *line) {
    if (!((const settings *)context)->quiet) fprintf(stderr, "vpps: %s\n", line);
}

/* Makes stderr the log of a session that has none. */
static void choose_log(session *x, const settings *s) {
    if (x->log) return;
    x->log = tell_stderr;
    x->log_context = (void *)(uintptr_t)s; /* a cast from const: tell_stderr only reads s */
}

vpps_options session_options(const settings *s) {
    vpps_options o;
    vpps_options_default(&o);
    o.device = s->device;
    o.vps = s->vps;
    o.pool_bytes = s->pool_bytes;
    o.optimizer.kind = (vpps_optimizer_kind)s->optimizer;
    o.optimizer.lr = s->lr;
    o.optimizer.momentum = s->momentum;
    o.optimizer.weight_decay = s->weight_decay;
    o.optimizer.clip = s->clip;
    o.gradients = (vpps_gradients)s->gradients; /* valid, since the option's words are in the enum's order */
    o.nonfinite = (vpps_nonfinite)s->nonfinite;
    o.caller = (vpps_caller)s->caller;
    o.groups = s->groups;
    if (s->command == COMMAND_TUNE && !options_given(s, "groups")) o.groups = VPPS_GROUPS_PROFILE;
    o.waves = s->waves;
    o.slices = s->slices;
    if (s->policy) o.policy = vpps_policies[s->policy - 1].name ? vpps_policies[s->policy - 1].name : "auto";
    if (s->command == COMMAND_TUNE && !options_given(s, "policy")) o.policy = "auto";
    o.watchdog_ms = s->watchdog_ms;
    o.precision = (vpps_precision)s->precision;
    o.batch = s->batch;
    o.seed = s->seed;
    o.portable = s->portable;
    o.verify = s->verify;
    o.trace_events = s->trace ? s->trace_events : 0;
    o.rpw = s->rpw;
    o.threads = s->threads;
    const vpps_device_table *device = vpps_device_named(s->device);
    const bool asked = s->command == COMMAND_TUNE || options_given(s, "rpw");
    o.no_tuning = s->no_tuning || (device && device->stands_in && !asked);
    o.tune = s->command == COMMAND_TUNE;
    return o;
}

vpps_status session_open(session *x, const settings *s, const corpus *c) {
    x->settings = s;
    choose_log(x, s);
    if (s->net.crf && (s->class_weights || s->net.label_smoothing > 0))
        return vpps_fail(VPPS_ARGUMENT, "--crf: its loss is of all tags of a sentence together; expected no --%s",
                         s->class_weights ? "class-weights" : "label-smoothing");
    if (s->command == COMMAND_TRAIN && s->train_accuracy && (s->net.crf || s->scheme != CHAIN_ANY))
        return vpps_fail(VPPS_ARGUMENT, "--train-accuracy counts each word's tag by itself; expected no --%s",
                         s->net.crf ? "crf" : "scheme");
    VPPS_TRY(chain_check((chain_scheme)s->scheme, c->vocab[VOCAB_CLASSES]));
    VPPS_TRY(vpps_model_create(&x->model, s->seed));
    if (s->shard_tables && x->team) VPPS_TRY(vpps_shard_tables(x->model, x->team->c));
    net_config net = s->net;
    if (s->class_weights) VPPS_TRY(parameters_declare_weights(x->model, &net));
    x->class_weights = net.class_weights;
    VPPS_TRY(network_create(s->network, &x->net, x->model, &net));
    VPPS_TRY(vectors_load(x, c));
    if (s->init) {
        char *taken;
        const vpps_status status = init_load(x, c, &taken);
        if (taken) x->log(x->log_context, taken);
        free(taken);
        VPPS_TRY(status);
    }
    VPPS_TRY(parameters_freeze(x));
    VPPS_TRY(parameters_take_rates(x));
    vpps_options options = session_options(s);
    if (x->team) {
        options.communicator = x->team->c;
        options.vps = team_vps(x->team, s);
    }
    options.log = x->log;
    options.log_context = x->log_context;
    VPPS_TRY(vpps_handle_create(&x->handle, x->model, &options));
    return vpps_graph_create(&x->graph, x->model);
}

vpps_status session_open_on(session *x, settings *s, corpus *c) {
    choose_log(x, s);
    VPPS_TRY(corpus_open(c, s));
    for (size_t i = 0; i < c->n_notes; i++) x->log(x->log_context, c->notes[i]);
    if (vectors_wanted(s)) VPPS_TRY(vectors_set_size(s));
    VPPS_TRY(session_open(x, s, c));
    if (vectors_wanted(s)) {
        char line[512];
        vectors_describe(x, line, sizeof line);
        x->log(x->log_context, line);
    }
    return VPPS_OK;
}

vpps_status session_load(session *x, const char *path) {
    VPPS_TRY(vpps_load(x->handle, path));
    return finite_check_parameters(x->model, path);
}

static vpps_status read_scores(const tag_chain *chain, session *x) {
    vpps_node nodes[NET_CHAIN];
    float *outs[NET_CHAIN] = {
        [NET_CHAIN_NEXT] = chain->next, [NET_CHAIN_BEGIN] = chain->begin, [NET_CHAIN_END] = chain->end};
    vpps_graph_clear(x->graph);
    x->settings->network->chain(x->net, x->graph, nodes);
    VPPS_TRY(vpps_graph_status(x->graph));
    return vpps_forward(x->handle, x->graph, NET_CHAIN, nodes, outs);
}

vpps_status session_open_chain(session *x, const corpus *c, tag_chain *chain) {
    const settings *s = x->settings;
    *chain = (tag_chain){0};
    if (!s->net.crf && s->scheme == CHAIN_ANY) return VPPS_OK;
    VPPS_TRY(chain_open(chain, s->net.classes));
    if (s->net.crf) VPPS_TRY(read_scores(chain, x));
    return chain_forbid(chain, (chain_scheme)s->scheme, c->vocab[VOCAB_CLASSES]);
}

vpps_status session_check_scores(const session *x) {
    if (!x->nonfinite) return VPPS_OK;
    return vpps_fail(VPPS_NONFINITE, "%s: the network's scores are not finite: it has no answer",
                     x->settings->network->name);
}

void session_close(session *x) {
    network_destroy(x->net);
    vpps_handle_destroy(x->handle);
    vpps_graph_destroy(x->graph);
    vpps_model_destroy(x->model);
    VPPS_FREE_ARRAYS(x->scores.logits, x->scores.nll, x->scores.labels, x->costs);
    free(x->rates);
    memset(x, 0, sizeof *x);
}

/* Clears the graph and adds n examples of a split. x->scores then has x->n_positions scores, one per position (word, node or whole
 * example). */
static vpps_status add_examples(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                                net_heads heads, bool training) {
    const network *net = x->settings->network;
    size_t at = 0;
    x->n_costs = 0;
    VPPS_TRY(vpps_trace_begin(x->handle, "build graph"));
    vpps_graph_clear(x->graph);
    for (uint32_t i = 0; i < n; i++) {
        net_example example;
        net_decoding states;
        VPPS_TRY(corpus_example(c, net->kind, split, examples[i], &example));
        const uint32_t positions = net_positions(net->kind, &example);
        /* reserves an entry more than needed: arrays are not NULL, even if no example has a position (a word or node to classify) */
        if (!VPPS_RESERVE(x->scores.logits, at + positions + 1) ||
            !VPPS_RESERVE(x->scores.nll, at + positions + i + 1) ||
            !VPPS_RESERVE(x->scores.labels, at + positions + 1) || !VPPS_RESERVE(x->costs, i + 1))
            return vpps_fail(VPPS_MEMORY, "no memory for a batch of %zu positions", at + positions);
        vpps_node *cost = &x->costs[x->n_costs];
        *cost = VPPS_NO_NODE;
        const net_scores scores = {.logits = x->scores.logits + at,
                                   .nll = x->scores.nll + at,
                                   .labels = x->scores.labels + at,
                                   .cost = cost,
                                   .carry = x->carry ? &states : NULL,
                                   .training = training};
        if (x->carry) carry_take(x->carry, x->handle, x->graph, i, &states);
        memset(scores.labels, 0xff, positions * sizeof *scores.labels); /* sets every label to VPPS_NO_WORD */
        VPPS_TRY(net->add(x->net, x->graph, &example, heads, &scores));
        if (x->carry) VPPS_TRY(carry_keep(x->carry, x->handle, x->graph, i, &states));
        x->n_costs += *cost != VPPS_NO_NODE;
        at += positions;
    }
    x->n_positions = (uint32_t)at;
    return vpps_trace_end(x->handle);
}

static vpps_status print_trace(const void *context, FILE *f) {
    return vpps_trace_write(((const session *)context)->handle, f);
}

vpps_status session_write_trace(session *x) {
    return x->settings->trace ? vpps_output_print(x->settings->trace, print_trace, x) : VPPS_OK;
}

/* Moves the nodes that are not VPPS_NO_NODE to the front of the array. Returns their number. */
static uint32_t close_up(vpps_node *nodes, uint32_t n) {
    uint32_t there = 0;
    for (uint32_t k = 0; k < n; k++)
        if (nodes[k] != VPPS_NO_NODE) nodes[there++] = nodes[k];
    return there;
}

/* Runs the graph forward, and copies the values of n nodes, each of `elems` elements, to `values`, one after the other. */
static vpps_status forward(session *x, uint32_t n, const vpps_node *nodes, size_t elems, float *values) {
    VPPS_FREED float **outs = vpps_scratch((n + 1u) * sizeof *outs);
    if (!outs) return vpps_fail(VPPS_MEMORY, "no memory for %u values", n);
    for (uint32_t k = 0; k < n; k++) outs[k] = values + k * elems;
    return n ? vpps_forward(x->handle, x->graph, n, nodes, outs) : VPPS_OK;
}

vpps_status session_add_batch(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                              uint32_t in_batch, vpps_node *loss) {
    VPPS_TRY(add_examples(x, c, split, examples, n, (net_heads)x->settings->net.loss, true));
    /* moves the positions' losses to the front of nll, and appends the costs of whole examples, for which add_examples reserved room */
    const uint32_t counted = close_up(x->scores.nll, x->n_positions);
    if (x->n_costs) memcpy(x->scores.nll + counted, x->costs, x->n_costs * sizeof *x->costs);
    const vpps_node sum = counted ? vpps_sum(x->graph, counted + x->n_costs, x->scores.nll) : VPPS_NO_NODE;
    *loss = vpps_scale(x->graph, sum, 1.0f / (float)in_batch);
    x->trained_losses += counted;
    x->trained_examples += n;
    return vpps_graph_status(x->graph);
}

vpps_status session_backward(session *x, vpps_node loss, double counts[2]) {
    const uint32_t classes = x->settings->net.classes, most = loss == VPPS_NO_NODE ? 0 : x->n_positions;
    vpps_node *nodes = x->scores.logits;
    uint32_t *labels = x->scores.labels, n = 0;
    for (uint32_t k = 0; k < most; k++) { /* moves the labelled positions to the front */
        if (labels[k] == VPPS_NO_WORD) continue;
        nodes[n] = nodes[k];
        labels[n++] = labels[k];
    }
    VPPS_FREED float *values = vpps_scratch(((size_t)n * classes + 1) * sizeof *values);
    VPPS_FREED float **outs = vpps_scratch((n + 1u) * sizeof *outs);
    if (!values || !outs) return vpps_fail(VPPS_MEMORY, "no memory for the scores of %u positions", n);
    for (uint32_t k = 0; k < n; k++) outs[k] = values + (size_t)k * classes;
    const vpps_request request = {.size = sizeof request, .n_values = n, .values = nodes, .value_outs = outs};
    VPPS_TRY(vpps_backward(x->handle, x->graph, loss, &request));
    for (uint32_t k = 0; k < n; k++) counts[0] += likeliest_class(outs[k], classes) == labels[k];
    counts[1] += n;
    return VPPS_OK;
}

vpps_status session_count_labels(session *x, corpus *c, const corpus_split *split, uint64_t *counts) {
    for (uint32_t first = 0; first < split->n_examples; first += x->settings->batch) {
        const uint32_t n = vpps_min_u32(x->settings->batch, split->n_examples - first);
        VPPS_TRY(add_examples(x, c, split, split->examples + first, n, (net_heads)x->settings->net.loss, true));
        VPPS_TRY(vpps_graph_status(x->graph));
        for (uint32_t k = 0; k < x->n_positions; k++)
            if (x->scores.labels[k] != VPPS_NO_WORD) counts[x->scores.labels[k]]++;
    }
    vpps_graph_clear(x->graph);
    return VPPS_OK;
}

vpps_status session_nll(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                        double *nll, uint64_t *counted) {
    *nll = 0;
    VPPS_TRY(add_examples(x, c, split, examples, n, NET_HEADS_LABELLED, false));
    const uint32_t n_losses = close_up(x->scores.nll, x->n_positions);
    VPPS_FREED float *losses = vpps_scratch((n_losses + 1u) * sizeof *losses);
    if (!losses) return vpps_fail(VPPS_MEMORY, "no memory for the losses of %u positions", n_losses);
    VPPS_TRY(forward(x, n_losses, x->scores.nll, 1, losses));
    for (uint32_t k = 0; k < n_losses; k++) *nll += (double)losses[k];
    x->nonfinite |= !isfinite(*nll);
    *counted = n_losses;
    return VPPS_OK;
}

vpps_status session_add_up(session *x, uint32_t n, uint64_t *counts) {
    double sums[VPPS_COMM_SUMS];
    if (!x->team) return VPPS_OK;
    VPPS_TRY(vpps_forward_end(x->handle));
    for (uint32_t i = 0; i < n; i++) sums[i] = (double)counts[i]; /* exact, since counts are less than 2^53 */
    VPPS_TRY(team_sum(x->team, n, sums));
    for (uint32_t i = 0; i < n; i++) counts[i] = (uint64_t)sums[i];
    return VPPS_OK;
}

uint32_t likeliest_class(const float *logits, uint32_t classes) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < classes; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

void position_logits_free(position_logits *p) {
    VPPS_FREE(p->of, p->values);
    *p = (position_logits){0};
}

vpps_status session_logits(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                           net_heads heads, position_logits *out) {
    const uint32_t classes = x->settings->net.classes;
    uint32_t n_heads = 0;
    *out = (position_logits){0};
    VPPS_TRY(add_examples(x, c, split, examples, n, heads, false));
    vpps_node *nodes = x->scores.logits; /* reuses the array of x->scores, which is free here */
    out->n = x->n_positions;
    out->of = vpps_scratch(((size_t)out->n + 1) * sizeof *out->of);
    for (uint32_t k = 0; out->of && k < out->n; k++) n_heads += nodes[k] != VPPS_NO_NODE;
    out->values = vpps_scratch(((size_t)n_heads * classes + 1) * sizeof *out->values);
    if (!out->of || !out->values) return vpps_fail(VPPS_MEMORY, "no memory for the scores of %u positions", n_heads);
    for (uint32_t k = 0, j = 0; k < out->n; k++)
        if (nodes[k] != VPPS_NO_NODE) out->of[k] = out->values + (size_t)j++ * classes;
    VPPS_TRY(forward(x, close_up(nodes, out->n), nodes, classes, out->values));
    x->nonfinite |= !finite_all(out->values, (size_t)n_heads * classes);
    return VPPS_OK;
}

static vpps_status predict_chains(const session *x, corpus *c, const corpus_split *split, const uint32_t *examples,
                                  uint32_t n, const position_logits *p, int32_t *predicted) {
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        net_example example;
        VPPS_TRY(corpus_example(c, x->settings->network->kind, split, examples[i], &example));
        const uint32_t positions = net_positions(x->settings->network->kind, &example);
        VPPS_TRY(chain_decode(x->chain, positions, p->of + at, predicted + at));
        at += positions;
    }
    return VPPS_OK;
}

vpps_status session_predict(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                            net_heads heads, int32_t **predicted) {
    VPPS_CLOSED_BY(position_logits_free) position_logits p;
    VPPS_TRY(session_logits(x, c, split, examples, n, heads, &p));
    if (!VPPS_RESERVE(*predicted, p.n)) return vpps_fail(VPPS_MEMORY, "no memory for %u predictions", p.n);
    if (x->chain) return predict_chains(x, c, split, examples, n, &p, *predicted);
    for (uint32_t k = 0; k < p.n; k++)
        (*predicted)[k] = p.of[k] ? (int32_t)likeliest_class(p.of[k], x->settings->net.classes) : -1;
    return VPPS_OK;
}

vpps_status session_predict_all(session *x, corpus *c, const corpus_split *split, const volatile int *stop,
                                session_see *see, void *context) {
    const uint32_t batch = x->settings->batch;
    int32_t *predicted = NULL;
    vpps_status status = VPPS_OK;
    for (uint32_t i = 0; i < split->n_examples && status == VPPS_OK && !(stop && *stop); i += batch) {
        const uint32_t n = vpps_min_u32(batch, split->n_examples - i);
        status = session_predict(x, c, split, split->examples + i, n, NET_HEADS_ALL, &predicted);
        size_t at = 0;
        for (uint32_t j = i; status == VPPS_OK && j < i + n; j++) {
            uint32_t positions = 0;
            status = see(context, split, split->examples[j], predicted + at, &positions);
            at += positions;
        }
    }
    VPPS_FREE_ARRAYS(predicted);
    return status;
}

vpps_status session_mean_nll(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                             float *means) {
    uint32_t n_nodes = 0, at = 0;
    VPPS_TRY(add_examples(x, c, split, examples, n, NET_HEADS_LABELLED, false));
    VPPS_FREED vpps_node *nodes = vpps_scratch(((size_t)n + 1) * sizeof *nodes);
    VPPS_FREED float **outs = vpps_scratch(((size_t)n + 1) * sizeof *outs);
    if (!nodes || !outs) return vpps_fail(VPPS_MEMORY, "no memory for %u losses", n);
    for (uint32_t i = 0; i < n; i++) {
        net_example example;
        VPPS_TRY(corpus_example(c, x->settings->network->kind, split, examples[i], &example));
        const uint32_t positions = net_positions(x->settings->network->kind, &example);
        vpps_node *losses = x->scores.nll + at;
        const uint32_t counted = close_up(losses, positions);
        at += positions;
        means[i] = NAN;
        if (!counted) continue;
        nodes[n_nodes] = vpps_average(x->graph, counted, losses);
        outs[n_nodes++] = &means[i];
    }
    if (n_nodes) VPPS_TRY(vpps_forward(x->handle, x->graph, n_nodes, nodes, outs));
    for (uint32_t i = 0; i < n_nodes; i++) x->nonfinite |= !isfinite(*outs[i]);
    return VPPS_OK;
}

/* session.c - from settings to a specialised engine, and from trees to a batch's graph. */
#include "session.h"
#include "base/base.h"

static void tell_stderr(void *context, const char *line) {
    const settings *s = context;
    if (!s->quiet) fprintf(stderr, "vpps: %s\n", line);
}

static vpps_options engine_options(const settings *s) {
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
    o.gradients = (vpps_gradients)s->gradients; /* the choices' words are in the order of the enums */
    o.nonfinite = (vpps_nonfinite)s->nonfinite;
    o.caller = (vpps_caller)s->caller;
    o.watchdog_ms = s->watchdog_ms;
    o.seed = s->seed;
    o.portable = s->portable;
    o.verify = s->verify;
    o.rpw = options_rpw(s);
    o.threads = options_threads(s);
    o.ctas_per_sm = s->ctas;
    o.strategy = (vpps_strategy)s->strategy;
    /* software SIMT's times say nothing of a GPU: it is tuned only when asked */
    const bool asked = s->command == COMMAND_TUNE || options_given(s, "rpw");
    o.no_tuning = s->no_tuning || (strcmp(s->device, "simt") == 0 && !asked);
    return o;
}

vpps_status session_open(session *x, const settings *s) {
    x->settings = s;
    VPPS_TRY(vpps_model_create(&x->model, s->seed));
    VPPS_TRY(s->network->create(&x->net, x->model, &s->net));
    vpps_options options = engine_options(s);
    options.log = x->log ? x->log : tell_stderr;
    options.log_context = x->log ? x->log_context : (void *)(uintptr_t)s; /* it is only read */
    VPPS_TRY(vpps_handle_create(&x->handle, x->model, &options));
    VPPS_TRY(vpps_graph_create(&x->graph, x->model));
    return s->network->record(x->net, x->graph);
}

vpps_status session_open_on(session *x, settings *s, corpus *c) {
    VPPS_TRY(corpus_open(c, s));
    s->net.classes = c->classes;
    s->net.words = vpps_vocab_size(c->vocab);
    return session_open(x, s);
}

void session_close(session *x) {
    if (x->settings) x->settings->network->destroy(x->net);
    vpps_handle_destroy(x->handle);
    vpps_graph_destroy(x->graph);
    vpps_model_destroy(x->model);
    free(x->scores.logits);
    free(x->scores.nll);
    memset(x, 0, sizeof *x);
}

vpps_status session_add_trees(session *x, const corpus_split *split, const uint32_t *trees, uint32_t n, net_heads heads,
                              uint32_t *n_nodes) {
    vpps_graph_clear(x->graph);
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const vpps_tree tree = vpps_treebank_tree(split->bank, trees[i]);
        if (!VPPS_RESERVE(x->scores.logits, x->logits_capacity, at + tree.n_nodes) ||
            !VPPS_RESERVE(x->scores.nll, x->nll_capacity, at + tree.n_nodes)) {
            return vpps_fail(VPPS_MEMORY, "no memory for a batch of %zu tree nodes", at + tree.n_nodes);
        }
        const net_scores scores = {x->scores.logits + at, x->scores.nll + at};
        VPPS_TRY(x->settings->network->add_tree(x->net, x->graph, &tree, split->words, heads, &scores));
        at += tree.n_nodes;
    }
    *n_nodes = (uint32_t)at;
    return VPPS_OK;
}

vpps_status session_add_batch(session *x, const corpus_split *split, const uint32_t *trees, uint32_t n,
                              vpps_node *loss) {
    uint32_t n_nodes, n_losses = 0;
    VPPS_TRY(session_add_trees(x, split, trees, n, (net_heads)x->settings->net.loss, &n_nodes));
    vpps_node *losses = x->scores.nll; /* closed up in place */
    for (uint32_t k = 0; k < n_nodes; k++) {
        if (losses[k] != VPPS_NO_NODE) losses[n_losses++] = losses[k];
    }
    *loss = vpps_scale(x->graph, vpps_sum(x->graph, n_losses, losses), 1.0f / (float)n);
    return vpps_graph_status(x->graph);
}

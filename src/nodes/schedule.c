/* schedule.c - the steps from a graph to a script, and the script's header. */
#include "nodes/work.h"

#include <inttypes.h>
#include <math.h>

vpps_status vpps_scheduler_create(vpps_scheduler **out) {
    *out = calloc(1, sizeof **out);
    if (*out) (*out)->work = calloc(1, sizeof *(*out)->work);
    if (*out && (*out)->work) return VPPS_OK;
    free(*out);
    *out = NULL;
    return vpps_fail(VPPS_MEMORY, "schedule: out of memory");
}

void vpps_scheduler_destroy(vpps_scheduler *s) {
    if (!s) return;
    vpps_schedule_work *w = s->work;
    for (uint32_t i = 0; i < w->streams_made; i++) free(w->streams[i].words);
    for (uint32_t i = 0; i < w->n_tables; i++) {
        free(w->slots[i]);
        free(w->stamps[i]);
    }
    void *parts[] = {w->split_signatures,
                     w->splits,
                     w->first_split,
                     w->split_nodes,
                     w->near_origin,
                     w->level,
                     w->group,
                     w->rank,
                     w->order,
                     w->flags,
                     w->links,
                     w->some_gradient,
                     w->groups,
                     w->by_level,
                     w->level_start,
                     w->table,
                     w->signatures,
                     w->lists,
                     w->signature_groups,
                     w->signature_order,
                     w->pair_lists,
                     w->tracks,
                     w->items,
                     w->item_order,
                     w->parameter_used,
                     w->slots,
                     w->stamps,
                     w->bundles,
                     w->phase_start,
                     w->streams,
                     w->owners,
                     w->row_lists,
                     w->run.words,
                     w->run.next,
                     w,
                     s->script,
                     s->values,
                     s->gradients,
                     s};
    for (size_t i = 0; i < VPPS_COUNT(parts); i++) free(parts[i]);
}

static vpps_status check_request(const vpps_graph *g, const vpps_request *request) {
    if (request->loss == VPPS_NO_NODE) {
        for (uint32_t i = 0; i < request->n_outputs; i++) {
            if (request->outputs[i] < g->n_nodes) continue;
            return vpps_fail(VPPS_ARGUMENT, "forward: %u is not a node; the graph has %u", request->outputs[i],
                             g->n_nodes);
        }
        return VPPS_OK;
    }
    if (request->loss >= g->n_nodes) {
        return vpps_fail(VPPS_ARGUMENT, "fb: the loss, %u, is not a node; the graph has %u", request->loss, g->n_nodes);
    }
    const vpps_signature *s = &g->signatures[g->flat.nodes[request->loss].signature];
    if (s->rows != 1 || s->cols != 1) {
        return vpps_fail(VPPS_SHAPE, "fb: the loss is %s, %u x %u; expected a scalar", vpps_ops[s->op].name, s->rows,
                         s->cols);
    }
    if (vpps_ops[s->op].op_class != VPPS_CLASS_SOURCE) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "fb: the loss is %s; expected the result of an operation", vpps_ops[s->op].name);
}

static void write_header(vpps_scheduler *s, const vpps_plan *plan, const vpps_request *request) {
    bool training = request->loss != VPPS_NO_NODE;
    vpps_script_header h = {
        .magic = VPPS_SCRIPT_MAGIC,
        .words = (uint32_t)s->script_words,
        .n_vps = plan->n_vps,
        .row_block = plan->row_block,
        .n_barriers = s->n_phases,
        .pool_words = s->pool_words,
        .loss = training ? vpps_value_of(s->work, request->loss) : VPPS_NO_OFFSET,
        .nodes = s->work->flat->n_nodes,
        .step = request->step,
        .bundles = s->work->host_list,
        .n_bundles = s->work->host_list ? s->work->n_bundles : 0,
        .dropout_key = {(uint32_t)request->dropout_key, (uint32_t)(request->dropout_key >> 32)},
    };
    if (training) {
        const vpps_optimizer *o = request->optimizer;
        h.update = (uint32_t)o->kind + 1;
        h.guard = request->guard;
        h.lr = o->lr;
        h.momentum = o->momentum;
        h.beta1 = o->beta1;
        h.beta2 = o->beta2;
        h.epsilon = o->epsilon;
        h.corrections[0] = (float)(1 / (1 - pow(o->beta1, request->step)));
        h.corrections[1] = (float)(1 / (1 - pow(o->beta2, request->step)));
        h.weight_decay = o->weight_decay;
        h.clip = o->clip;
    }
    memcpy(s->script, &h, sizeof h);
}

static vpps_status check_pool(const vpps_schedule_work *w, uint32_t most_words) {
    if (w->next_word <= most_words) return VPPS_OK;
    return vpps_fail(VPPS_POOL,
                     "the batch needs %" PRIu64 " bytes of the pool, parameters included; there are %" PRIu64
                     ". Use smaller batches, or a larger pool_bytes",
                     w->next_word * 4, (uint64_t)w->plan->pool_words * 4);
}

vpps_status vpps_schedule(vpps_scheduler *s, const vpps_plan *plan, vpps_graph *g, const vpps_request *request) {
    vpps_schedule_work *w = s->work;
    VPPS_TRY(vpps_graph_flatten(g));
    VPPS_TRY(check_request(g, request));
    w->plan = plan;
    w->request = request;
    w->training = request->loss != VPPS_NO_NODE;
    w->status = VPPS_OK;
    s->script_words = 0;
    if (!vpps_append(s, VPPS_HEADER_WORDS + plan->n_vps + 1)) return w->status;
    VPPS_TRY(vpps_split_by_origin(s, g));
    VPPS_TRY(vpps_analyse(s));
    VPPS_TRY(vpps_plan_memory(s));
    VPPS_TRY(check_pool(w, UINT32_MAX)); /* so that counts of what was placed fit */
    VPPS_TRY(vpps_make_bundles(s));
    VPPS_TRY(check_pool(w, plan->pool_words));
    s->pool_words = (uint32_t)w->next_word;
    VPPS_TRY(vpps_make_items(s));
    VPPS_TRY(vpps_encode(s));
    write_header(s, plan, request);
    return VPPS_OK;
}

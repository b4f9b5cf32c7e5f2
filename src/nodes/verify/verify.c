/* verify.c - vpps_verify: checks the header, runs the VPs turn by turn on the symbolic machine (verify.h), and looks
 * at what is left at the end. */
#include "nodes/verify/verify.h"

#include <stdarg.h>

void vpps_verify_record(vpps_verifier *v, const char *format, ...) {
    if (v->status != VPPS_OK) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(v->reason, sizeof v->reason, format, arguments);
    va_end(arguments);
    v->status = VPPS_SCRIPT;
}

void *vpps_verify_zeros(vpps_verifier *v, uint64_t n, size_t bytes) {
    void *block = n < SIZE_MAX / bytes && v->n_blocks < VPPS_COUNT(v->blocks) ? calloc(n ? n : 1, bytes) : NULL;
    if (block)
        v->blocks[v->n_blocks++] = block;
    else
        v->status = VPPS_MEMORY;
    return block;
}

/* ---------------------------------------------------------------- the header */

static bool same_float(float a, float b) { return memcmp(&a, &b, sizeof a) == 0; }

/* Are the numbers the ones asked for, also those that this kind of optimiser does not use? */
static bool check_optimizer(vpps_verifier *v) {
    const vpps_script_header *h = v->header;
    const vpps_optimizer *o = v->request->optimizer;
    if (!o) return h->update == 0 || VPPS_REFUSE(v, "the header asks for an update");
    const bool same = h->update == (uint32_t)o->kind + 1 && same_float(h->lr, o->lr) &&
                      same_float(h->weight_decay, o->weight_decay) && same_float(h->clip, o->clip) &&
                      same_float(h->momentum, o->momentum) && same_float(h->epsilon, o->epsilon) &&
                      same_float(h->beta1, o->beta1) && same_float(h->beta2, o->beta2) && h->step == v->request->step;
    if (!same) return VPPS_REFUSE(v, "the header's optimiser is not the one asked for");
    return !h->guard == !v->request->guard || VPPS_REFUSE(v, "the header's guard is not as asked for");
}

static bool check_request(vpps_verifier *v) {
    const vpps_script_header *h = v->header;
    if (!v->training) {
        if (h->update) return VPPS_REFUSE(v, "the header asks for an update");
        return h->loss == VPPS_NO_OFFSET || VPPS_REFUSE(v, "the header has a loss");
    }
    if (vpps_verify_words(v, v->request->loss) != 1) return VPPS_REFUSE(v, "the loss is not a scalar");
    if (h->loss != v->values[v->request->loss]) {
        return VPPS_REFUSE(v, "the header's loss is at %u, the node's value at %u", h->loss,
                           v->values[v->request->loss]);
    }
    if (h->dropout_key[0] != (uint32_t)v->request->dropout_key ||
        h->dropout_key[1] != (uint32_t)(v->request->dropout_key >> 32)) {
        return VPPS_REFUSE(v, "the header's dropout key is not the one asked for");
    }
    return check_optimizer(v);
}

static bool check_layout(vpps_verifier *v, size_t words) {
    const vpps_script_header *h = v->header;
    const uint32_t *starts = vpps_script_starts(v->script);
    if (h->magic != VPPS_SCRIPT_MAGIC) return VPPS_REFUSE(v, "the magic word is wrong");
    if (h->words != words) return VPPS_REFUSE(v, "the header says %u words, there are %zu", h->words, words);
    if (h->n_vps != v->plan->n_vps || h->n_vps == 0 || h->n_vps >= VPPS_MAX_VPS) {
        return VPPS_REFUSE(v, "it is for %u VPs, the plan for %u", h->n_vps, v->plan->n_vps);
    }
    if (h->row_block != v->plan->row_block || h->row_block == 0) {
        return VPPS_REFUSE(v, "it is for blocks of %u rows, the plan for %u", h->row_block, v->plan->row_block);
    }
    if (words < VPPS_HEADER_WORDS + (size_t)h->n_vps + 1) return VPPS_REFUSE(v, "it ends before its instructions");
    for (uint32_t i = 0; i <= h->n_vps; i++) {
        const uint32_t least = i ? starts[i - 1] : VPPS_HEADER_WORDS + h->n_vps + 1;
        if (starts[i] < least || starts[i] > words) return VPPS_REFUSE(v, "start %u is at word %u", i, starts[i]);
    }
    if (h->n_barriers > words) return VPPS_REFUSE(v, "it has more barriers than words");
    if (h->pool_words > v->plan->pool_words) {
        return VPPS_REFUSE(v, "it uses %u words of a pool of %u", h->pool_words, v->plan->pool_words);
    }
    return true;
}

/* ---------------------------------------------------------------- barriers */

/* Counts what each barrier gets in all: on that it depends what a WAIT promises. */
static bool count_signals(vpps_verifier *v) {
    const uint32_t *starts = vpps_script_starts(v->script);
    for (uint32_t vp = 0; vp < v->n_vps; vp++) {
        const uint32_t *at = v->script + starts[vp], *end = v->script + starts[vp + 1];
        uint32_t signals = 0;
        v->vp = vp;
        while (at < end && vpps_word_opcode(*at) != VPPS_I_END) {
            uint32_t n = vpps_instruction_words(at, end);
            v->at = (uint32_t)(at - v->script);
            if (!n) return VPPS_REFUSE(v, "it is not an instruction");
            if (vpps_word_opcode(*at) == VPPS_I_SIGNAL) {
                if (at[1] >= v->header->n_barriers) return VPPS_REFUSE(v, "there is no barrier %u", at[1]);
                v->barrier_total[at[1]]++;
                if (++signals >> (VPPS_CLOCK_BITS - 1))
                    return VPPS_REFUSE(v, "the VP signals too often to be verified");
            }
            at += n;
        }
        v->at = (uint32_t)(at - v->script);
        if (at == end) return VPPS_REFUSE(v, "the VP's instructions do not end");
    }
    v->at = 0;
    return true;
}

/* Passes a WAIT if it can be passed. What only some signals satisfy orders nothing: which of them came is luck. */
static bool pass_wait(vpps_verifier *v, uint32_t barrier, uint32_t signals, bool *passed) {
    if (barrier >= v->header->n_barriers) return VPPS_REFUSE(v, "there is no barrier %u", barrier);
    if (signals > v->barrier_total[barrier]) {
        return VPPS_REFUSE(v, "it waits for %u signals, barrier %u gets %u", signals, barrier,
                           v->barrier_total[barrier]);
    }
    *passed = v->barrier_count[barrier] >= signals;
    if (*passed && signals == v->barrier_total[barrier]) vpps_verify_acquire(v, barrier);
    return true;
}

/* ---------------------------------------------------------------- running */

static bool run_plain(vpps_verifier *v, const uint32_t *at) {
    vpps_decoded in = {.opcode = vpps_word_opcode(at[0]),
                       .length = vpps_word_length(at[0]),
                       .acc = at[0] & VPPS_WORD_ACC,
                       .split = at[0] & VPPS_WORD_SPLIT,
                       .vectors = 1};
    in.row = &vpps_instructions[in.opcode];
    if (in.split && in.row->form != VPPS_FORM_EW) return VPPS_REFUSE(v, "SPLIT is for elementwise instructions");
    if (in.split) in.vectors = *++at;
    in.destination = at[1];
    in.operands = at + 2;
    in.extent = (uint64_t)in.length * in.vectors;
    return vpps_verify_plain(v, &in);
}

static bool run_call(vpps_verifier *v, vpps_vp_state *vp, uint32_t address, uint32_t n) {
    if (vp->calling) return VPPS_REFUSE(v, "a segment calls");
    if (address < VPPS_HEADER_WORDS || address > v->words || n > v->words - address) {
        return VPPS_REFUSE(v, "the segment lies outside the script");
    }
    vp->return_pc = vp->pc;
    vp->return_end = vp->end;
    vp->pc = address;
    vp->end = address + n;
    vp->calling = true;
    return true;
}

/* Runs the instruction at v->at; *blocked: it is a WAIT that cannot be passed yet. */
static bool run_instruction(vpps_verifier *v, vpps_vp_state *vp, const uint32_t *at, bool *blocked) {
    const uint32_t opcode = vpps_word_opcode(at[0]), length = vpps_word_length(at[0]);
    const vpps_form form = vpps_instructions[opcode].form;
    if (form != VPPS_FORM_SHARED && form != VPPS_FORM_CONTROL) return run_plain(v, at);
    if (opcode == VPPS_I_NOP || opcode == VPPS_I_HOST) return true;
    if (at[0] & (VPPS_WORD_ACC | VPPS_WORD_SPLIT)) return VPPS_REFUSE(v, "it takes no flags");
    if (form == VPPS_FORM_CONTROL && vp->calling) return VPPS_REFUSE(v, "a segment holds a control instruction");
    switch (opcode) {
    case VPPS_I_AFFINE:
    case VPPS_I_AFFINE_T:
    case VPPS_I_AFFINE_P:
    case VPPS_I_REDUCE_P:
    case VPPS_I_OUTER: return vpps_verify_bundle(v, opcode, at[1], length, at[2]);
    case VPPS_I_NORM_END: return vpps_verify_norm_end(v);
    case VPPS_I_LOAD: return vpps_verify_load(v, at[1], at[2], length);
    case VPPS_I_CALL: return run_call(v, vp, at[1], length);
    case VPPS_I_END: vp->done = true; return true;
    case VPPS_I_SIGNAL: vpps_verify_signal(v, at[1]); return true;
    case VPPS_I_WAIT: {
        bool passed = false;
        if (!pass_wait(v, at[1], at[2], &passed)) return false;
        *blocked = !passed;
        return true;
    }
    default: return vpps_verify_parameter(v, opcode, at + 1, length);
    }
}

/* Runs a VP until it ends or waits. *progress: it got further. */
static bool run_vp(vpps_verifier *v, uint32_t number, bool *progress) {
    vpps_vp_state *vp = &v->vps[number];
    vpps_verify_switch(v, number);
    while (!vp->done) {
        if (vp->calling && vp->pc == vp->end) {
            vp->pc = vp->return_pc;
            vp->end = vp->return_end;
            vp->calling = false;
            continue;
        }
        const uint32_t *at = v->script + vp->pc;
        uint32_t n = vpps_instruction_words(at, v->script + vp->end);
        bool blocked = false;
        v->at = vp->pc;
        if (!n) return VPPS_REFUSE(v, "it is not an instruction");
        vp->pc += n;
        if (!run_instruction(v, vp, at, &blocked)) return false;
        if (blocked) {
            vp->waiting = vp->pc -= n;
            return true;
        }
        *progress = true;
    }
    return true;
}

static bool run_all(vpps_verifier *v) {
    bool progress = true;
    while (progress) {
        progress = false;
        for (uint32_t vp = 0; vp < v->n_vps; vp++) {
            if (!v->vps[vp].done && !run_vp(v, vp, &progress)) return false;
        }
    }
    for (uint32_t vp = 0; vp < v->n_vps; vp++) {
        if (v->vps[vp].done) continue;
        v->vp = vp;
        v->at = v->vps[vp].waiting;
        return VPPS_REFUSE(v, "deadlock: the signals it waits for never come");
    }
    v->at = 0;
    return true;
}

/* ---------------------------------------------------------------- the end */

/* Everything an update reads was checked as it was read, so the updates stand for all gradients; but the host's products
 * read what all VPs gathered. */
static bool check_updates(vpps_verifier *v) {
    for (uint32_t p = 0; p < v->n_params; p++) {
        const bool gathered = v->plan->host_products && v->params[p].kind == VPPS_MATRIX;
        for (uint32_t vp = 0; v->updated_param[p] && vp < v->n_vps; vp++) {
            vpps_rows rows = vpps_rows_of(v->params[p].rows, v->plan->row_block, v->n_vps, vp);
            if (gathered && v->matrix_gradients[vpps_verify_owner(v, p, vp)].count != v->outer_expected[p]) {
                return VPPS_REFUSE(v, "VP %u does not gather its part for matrix %s", vp, v->params[p].name);
            }
            if (rows.first == rows.end || v->updated[(size_t)p * v->n_vps + vp]) continue;
            return VPPS_REFUSE(v, "VP %u never updates its rows of %s", vp, v->params[p].name);
        }
    }
    for (uint32_t i = 0; i < v->row_table_size; i++) {
        const vpps_row_entry *entry = &v->rows[i];
        if (entry->slot == UINT32_MAX) continue;
        for (uint32_t vp = 0; vp < v->n_vps; vp++) {
            vpps_rows rows = vpps_rows_of(v->slots[entry->slot].words, v->plan->row_block, v->n_vps, vp);
            int64_t bit = v->row_updated + (int64_t)v->slots[entry->slot].row * v->n_vps + vp;
            if (rows.first == rows.end || vpps_verify_bit(v, bit)) continue;
            return VPPS_REFUSE(v, "VP %u never updates its rows of entry %u of %s", vp, entry->row,
                               v->params[entry->table].name);
        }
    }
    return true;
}

/* Is a node's value there for the host? A lookup's or parameter's is what it was, updated or not. */
static bool check_result(vpps_verifier *v, uint32_t node) {
    const uint32_t same = v->same_value[node];
    const uint8_t op = vpps_verify_signature(v, same)->op;
    if (op == VPPS_OP_LOOKUP || op == VPPS_OP_PARAMETER) return true;
    for (uint32_t i = 0; i < vpps_verify_words(v, node); i++) {
        uint32_t token = v->pool[v->values[node] + i].token;
        char text[96];
        if (token == (VPPS_HOLDS_VALUE | same)) continue;
        return VPPS_REFUSE(v, "at the end element %u of node %u holds %s", i, node,
                           vpps_verify_describe(v, token, text, sizeof text));
    }
    return true;
}

static bool check_results(vpps_verifier *v) {
    if (v->training && !check_result(v, v->request->loss)) return false;
    for (uint32_t i = 0; i < v->request->n_outputs; i++) {
        if (!check_result(v, v->request->outputs[i])) return false;
    }
    return !v->training || !v->request->optimizer || check_updates(v);
}

/* ---------------------------------------------------------------- all of it */

static bool make_machine(vpps_verifier *v) {
    const uint64_t owners = (uint64_t)v->n_params * v->n_vps;
    v->pool = vpps_verify_zeros(v, v->pool_words, sizeof *v->pool);
    v->matrix_values = vpps_verify_zeros(v, owners, sizeof *v->matrix_values);
    v->matrix_gradients = vpps_verify_zeros(v, owners, sizeof *v->matrix_gradients);
    v->transposed = vpps_verify_zeros(v, owners, 1);
    v->normed = vpps_verify_zeros(v, owners, 1);
    v->updated = vpps_verify_zeros(v, owners, 1);
    v->vps = vpps_verify_zeros(v, v->n_vps, sizeof *v->vps);
    v->clocks = vpps_verify_zeros(v, (uint64_t)v->n_vps * v->n_vps, sizeof *v->clocks);
    v->barrier_clocks = vpps_verify_zeros(v, (uint64_t)v->header->n_barriers * v->n_vps, sizeof *v->barrier_clocks);
    v->barrier_count = vpps_verify_zeros(v, v->header->n_barriers, sizeof *v->barrier_count);
    v->barrier_total = vpps_verify_zeros(v, v->header->n_barriers, sizeof *v->barrier_total);
    v->sets.scratch = vpps_verify_zeros(v, (uint64_t)v->n_vps + 1, sizeof *v->sets.scratch);
    if (v->status != VPPS_OK) return false;
    const uint32_t *starts = vpps_script_starts(v->script);
    for (uint32_t vp = 0; vp < v->n_vps; vp++) {
        v->clocks[(size_t)vp * v->n_vps + vp] = 1;
        v->vps[vp].pc = starts[vp];
        v->vps[vp].end = starts[vp + 1];
    }
    return true;
}

static void release(vpps_verifier *v) {
    for (uint32_t i = 0; i < v->n_blocks; i++) free(v->blocks[i]);
    free(v->sets.epochs);
    free(v->sets.first);
    free(v->sets.table);
    free(v->pair_args);
}

static vpps_status report(const vpps_verifier *v) {
    if (v->status == VPPS_OK) return VPPS_OK;
    if (v->status == VPPS_MEMORY) return vpps_fail(VPPS_MEMORY, "verify: out of memory");
    if (!v->at) return vpps_fail(v->status, "script: %s", v->reason);
    char text[160];
    vpps_format_instruction(v->script + v->at, v->script + v->words, v->g, text, sizeof text);
    return vpps_fail(v->status, "script: VP %u, instruction at %u (%s): %s", v->vp, v->at, text, v->reason);
}

vpps_status vpps_verify(const uint32_t *script, size_t words, const vpps_plan *plan, const vpps_graph *g,
                        const vpps_request *request, const uint32_t *values, const uint32_t *gradients) {
    if (!g->flattened) return vpps_fail(VPPS_STATE, "verify: the graph is not flattened");
    if (!values || !gradients) return vpps_fail(VPPS_ARGUMENT, "verify: the layout is missing");
    if (words < VPPS_HEADER_WORDS || words >= VPPS_TOKEN_LIMIT || g->flat.n_nodes >= VPPS_TOKEN_LIMIT / 2) {
        return vpps_fail(VPPS_SCRIPT, "script: %zu words for %u nodes cannot be verified", words, g->flat.n_nodes);
    }
    vpps_script_header header;
    memcpy(&header, script, sizeof header);
    vpps_verifier v = {.script = script,
                       .words = (uint32_t)words,
                       .header = &header,
                       .plan = plan,
                       .g = g,
                       .request = request,
                       .values = values,
                       .gradients = gradients,
                       .nodes = g->flat.nodes,
                       .signatures = g->signatures,
                       .params = g->model->params,
                       .n_nodes = g->flat.n_nodes,
                       .n_params = (uint32_t)g->model->n_params,
                       .n_vps = plan->n_vps,
                       .training = request->loss != VPPS_NO_NODE,
                       .pool_words = vpps_max_u32(plan->batch, header.pool_words)};
    (void)(check_layout(&v, words) && vpps_verify_demands(&v) && check_request(&v) && make_machine(&v) &&
           count_signals(&v) && run_all(&v) && check_results(&v));
    vpps_status status = report(&v);
    release(&v);
    return status;
}

/* check.c - checks that a batch's program (script) accesses only its own memory: blocks (vertices of one cell) and
 * tables before the launch, each task before it runs. Only script/verify proves that addresses are right. */
#include "runtime/cpu/cpu.h"

#include <inttypes.h>

static bool inside(uint64_t at, uint64_t n, uint64_t end) { return at <= end && n <= end - at; }

static vpps_status check_machine(const vpps_cpu *cpu, const vpps_task_header *h) {
    if (h->n_vps != cpu->n_vps || !h->n_groups || h->n_vps % h->n_groups)
        return vpps_fail(VPPS_SCRIPT, "script: %u VPs in %u equal groups; the device has %u VPs", h->n_vps, h->n_groups,
                         cpu->n_vps);
    if (h->pool_words > cpu->plan.pool_words)
        return vpps_fail(VPPS_SCRIPT, "script: %u words of the pool; there are %u", h->pool_words,
                         cpu->plan.pool_words);
    if (h->update > VPPS_OPTIMIZERS || (h->update && vpps_optimizer_states(h->update - 1) > cpu->n_states))
        return vpps_fail(VPPS_SCRIPT, "script: optimiser %u, which the device was not made for", h->update);
    return VPPS_OK;
}

static vpps_status check_parts(const vpps_task_header *h, const uint32_t *script, size_t words) {
    if (h->words != words || !inside(VPPS_TASK_HEADER_WORDS, h->n_groups + (uint64_t)1, words) ||
        !inside(h->blocks, h->n_blocks * (uint64_t)VPPS_BLOCK_WORDS, words) ||
        !inside(h->tables, h->n_tables * (uint64_t)VPPS_TABLE_WORDS, words))
        return vpps_fail(VPPS_SCRIPT, "script: %u words with %u blocks at %u and %u tables at %u; it has %zu words",
                         h->words, h->n_blocks, h->blocks, h->n_tables, h->tables, words);
    if (h->n_barriers > words) return vpps_fail(VPPS_SCRIPT, "script: %u barriers in %zu words", h->n_barriers, words);
    const uint32_t *starts = script + VPPS_TASK_HEADER_WORDS;
    for (uint32_t g = 0; g < h->n_groups; g++)
        if (starts[g] < VPPS_TASK_HEADER_WORDS || starts[g] > starts[g + 1] || starts[g + 1] > words)
            return vpps_fail(VPPS_SCRIPT, "script: group %u's tasks are words %u to %u; it has %zu words", g, starts[g],
                             starts[g + 1], words);
    return VPPS_OK;
}

static vpps_status check_table(const vpps_cpu *cpu, const vpps_task_header *h, const uint32_t *script, uint32_t i) {
    const vpps_table *t = vpps_table_at(script, i);
    if (t->param >= cpu->model->n_params || cpu->model->params[t->param].kind != VPPS_LOOKUP)
        return vpps_fail(VPPS_SCRIPT, "script: table %u is parameter %u, which is no lookup table", i, t->param);
    const vpps_parameter_data *p = &cpu->model->params[t->param];
    const uint64_t n = t->n;
    if (!inside(t->gradients, n * p->rows * p->cols, h->pool_words) || !inside(t->rows, n, h->words))
        return vpps_fail(VPPS_SCRIPT, "script: table %u has %u entries at word %u, gradients at %u: not inside it", i,
                         t->n, t->rows, t->gradients);
    return VPPS_OK;
}

vpps_status vpps_check_script(const vpps_cpu *cpu, const vpps_batch *batch) {
    const uint32_t *script = batch->script;
    const size_t words = batch->script_words;
    const vpps_task_header *h = vpps_task_header_of(script);
    if (words < VPPS_TASK_HEADER_WORDS || h->magic != VPPS_TASK_MAGIC)
        return vpps_fail(VPPS_SCRIPT, "script: its %zu words do not begin with a script's header", words);
    VPPS_TRY(check_machine(cpu, h));
    VPPS_TRY(check_parts(h, script, words));
    if (h->steps && !inside(h->steps, cpu->model->n_params * sizeof(vpps_param_step) / sizeof *script, words))
        return vpps_fail(VPPS_SCRIPT, "script: parameters' steps at word %u are not inside it", h->steps);
    for (uint32_t i = 0; i < h->n_tables; i++) VPPS_TRY(check_table(cpu, h, script, i));
    for (uint32_t i = 0; i < h->n_blocks; i++) {
        const vpps_block *b = vpps_block_at(script, i);
        if (b->cell >= batch->n_cells || b->group >= h->n_groups ||
            batch->cells[b->cell]->needs.group != h->n_vps / h->n_groups)
            return vpps_fail(VPPS_SCRIPT, "script: block %u is of cell %u, group %u; there are %u cells, %u groups", i,
                             b->cell, b->group, batch->n_cells, h->n_groups);
    }
    return VPPS_OK;
}

vpps_status vpps_check_block(const vpps_task_header *h, const vpps_block_view *view, uint32_t number) {
    const vpps_block *b = view->block;
    const vpps_compiled_cell *c = view->cell;
    bool fits = view->end <= h->words;
    for (uint32_t d = 0; d < VPPS_AXES; d++)
        fits = fits && inside(b->kept[d], (uint64_t)vpps_items(b, d) * c->kept_words[d], h->pool_words);
    if (!fits)
        return vpps_fail(VPPS_SCRIPT,
                         "script: block %u, %u vertices of %s, is not inside the script and its part of the pool",
                         number, b->n, c->name);
    for (uint32_t d = 1; d <= c->n_lists; d++) {
        const uint32_t members = view->lists[d][b->n];
        if (members == vpps_items(b, d)) continue;
        return vpps_fail(VPPS_SCRIPT, "script: block %u has lists of %u members; its vertices' have %u", number,
                         vpps_items(b, d), members);
    }
    return VPPS_OK;
}

static bool check_number(vpps_vp *vp, uint32_t at, const char *what, uint32_t number, uint32_t count) {
    return number < count || vpps_vp_fail(vp, VPPS_SCRIPT, at, "%s %u; the script has %u", what, number, count);
}

/* Checks that a task's vertices [first, first + n) exist in the block, which is a list of vertices of one cell. */
static bool check_vertices(vpps_vp *vp, uint32_t at, uint32_t block, uint32_t first, uint32_t n) {
    const vpps_cpu *cpu = vp->cpu;
    if (!check_number(vp, at, "block", block, cpu->batch.header.n_blocks)) return false;
    const uint32_t vertices = cpu->batch.views[block].block->n;
    if (first <= vertices && n <= vertices - first) return true;
    return vpps_vp_fail(vp, VPPS_SCRIPT, at, "%u vertices from %u on; block %u has %u", n, first, block, vertices);
}

static bool check_stage(vpps_vp *vp, uint32_t at, const vpps_task *t, uint32_t group) {
    const uint32_t *o = t->operands;
    if (!check_vertices(vp, at, o[0], o[1], o[2])) return false;
    const vpps_block_view *view = &vp->cpu->batch.views[o[0]];
    const vpps_compiled_cell *c = view->cell;
    if (t->stage >= c->n_stages)
        return vpps_vp_fail(vp, VPPS_SCRIPT, at, "stage %u; cell %s has %u", t->stage, c->name, c->n_stages);
    if (view->block->group != group)
        return vpps_vp_fail(vp, VPPS_SCRIPT, at, "block %u is group %u's, not group %u's", o[0], view->block->group,
                            group);
    uint32_t first[VPPS_AXES], items[VPPS_AXES];
    vpps_items_of(view, o[1], o[2], first, items);
    const uint32_t pool_words = vp->cpu->batch.header.pool_words;
    const uint64_t words = vpps_contribution_at(c, t->stage, items, c->n_contributions);
    const uint64_t pass_record =
        c->stages[t->stage].uses_pass_record ? (uint64_t)o[2] * c->kept_words[vpps_pass_record(c, t->stage)] : 0;
    return (inside(t->pass_record, pass_record, pool_words) && inside(t->contributions, words, pool_words)) ||
           vpps_vp_fail(vp, VPPS_SCRIPT, at, "pass records at %u, contributions at %u; the pool has %u words",
                        t->pass_record, t->contributions, pool_words);
}

static bool check_pairs(vpps_vp *vp, uint32_t at, const uint32_t *o) {
    const uint32_t words = vp->cpu->batch.header.words;
    if (o[0] <= words && o[1] <= (words - o[0]) / 2) return true;
    return vpps_vp_fail(vp, VPPS_SCRIPT, at, "%u pairs from word %u on; the script has %u words", o[1], o[0], words);
}

static bool check_entries(vpps_vp *vp, uint32_t at, const uint32_t *o) {
    const vpps_task_header *h = &vp->cpu->batch.header;
    const uint32_t *script = vp->cpu->batch.script;
    if (!check_number(vp, at, "table", o[0], h->n_tables)) return false;
    const uint32_t n = vpps_table_at(script, o[0])->n;
    bool inside = vpps_sums_inside(script, h->words, o[1]);
    const vpps_entry_sums s = inside ? vpps_sums_at(script, o[1]) : (vpps_entry_sums){0};
    for (uint32_t i = 0; i < s.n && inside; i++)
        inside = s.entries[i] < n && s.starts[i] < s.starts[i + 1] && s.starts[i + 1] <= s.starts[s.n];
    if (inside) return true;
    return vpps_vp_fail(vp, VPPS_SCRIPT, at, "sums of table %u's entries at word %u: not inside it", o[0], o[1]);
}

static bool check_operands(vpps_vp *vp, uint32_t at, const vpps_task *t, uint32_t group) {
    const uint32_t *o = t->operands;
    switch (t->kind) {
    case VPPS_TASK_STAGE: return check_stage(vp, at, t, group);
    case VPPS_TASK_CONSTANTS:
    case VPPS_TASK_LOSS: return check_pairs(vp, at, o);
    case VPPS_TASK_OUTER: return check_vertices(vp, at, o[0], o[1], o[2]);
    case VPPS_TASK_ENTRIES: return check_entries(vp, at, o);
    case VPPS_TASK_UPDATE:
        return vp->cpu->batch.header.update ||
               vpps_vp_fail(vp, VPPS_SCRIPT, at, "UPDATE, but the script has no optimiser");
    default: return true;
    }
}

static bool check_barrier(vpps_vp *vp, uint32_t at, uint32_t barrier) {
    return barrier == VPPS_NO_BARRIER || check_number(vp, at, "barrier", barrier, vp->cpu->batch.header.n_barriers);
}

bool vpps_check_task(vpps_vp *vp, uint32_t at, uint32_t end, uint32_t group) {
    const uint32_t left = end - at;
    if (left < VPPS_TASK_WORDS)
        return vpps_vp_fail(vp, VPPS_SCRIPT, at, "a task is cut short: %u of its %u words", left, VPPS_TASK_WORDS);
    const vpps_task *t = vpps_task_at(vp->cpu->batch.script, at);
    if (t->kind >= VPPS_TASK_COUNT) return vpps_vp_fail(vp, VPPS_SCRIPT, at, "task %u is unknown", t->kind);
    if ((t->kind == VPPS_TASK_END) != (left == VPPS_TASK_WORDS)) {
        return vpps_vp_fail(vp, VPPS_SCRIPT, at, "%s with %u words to come; expected END as the group's last task",
                            vpps_task_rows[t->kind].name, left - VPPS_TASK_WORDS);
    }
    return check_barrier(vp, at, t->wait) && check_barrier(vp, at, t->signal) && check_operands(vp, at, t, group);
}

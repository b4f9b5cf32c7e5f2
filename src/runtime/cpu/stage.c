/* stage.c - runs a stage (part of a cell's program) over vertices, tile by tile, without vertices where the cell's condition is false. */
#include "runtime/cpu/tile.h"

bool vpps_vp_scratch(vpps_vp *vp, size_t floats) {
    if (floats <= vp->scratch_floats) return true;
    floats += floats / 2;
    float *memory = vpps_map_pages(floats * sizeof(float));
    if (!memory) return false;
    vpps_unmap_pages(vp->scratch, vp->scratch_floats * sizeof(float));
    vp->scratch = memory;
    vp->scratch_floats = floats;
    return true;
}

static bool holds(const vpps_tile *t, uint32_t vertex) {
    const vpps_condition_data *condition = &t->c->condition;
    return vpps_condition_holds(condition, t->vp->cpu->pool[vpps_input_at(t->view, condition->input, vertex)]);
}

/* Sets the outputs of a vertex that does not run, since the cell's condition is false there, to their values for that case. A value is not
 * copied but added to zero, so that -0 becomes 0, as it does when all vertices run. */
static void hand_on(const vpps_tile *t, uint32_t vertex) {
    const vpps_cpu *cpu = t->vp->cpu;
    const vpps_stage_set made = t->c->stages[t->stage].outputs;
    for (uint32_t k = 0; k < t->c->n_outputs; k++) {
        const vpps_cell_output *o = &t->c->outputs[k];
        if (!((made.own | made.whole) >> k & 1)) continue;
        const vpps_operand x = vpps_finished_operand(t->c, o->value);
        vpps_rows own = {0, vpps_operand_words(&x)};
        if (t->p->rows) own = vpps_own_rows(&t->c->needs, x.rows, x.cols, t->member);
        float *to = vpps_in_pool(cpu, t->view, &x, vertex);
        memset(to + own.first, 0, (own.end - own.first) * sizeof *to);
        if (o->otherwise == VPPS_NONE) continue;
        const float *from = cpu->pool + vpps_input_at(t->view, o->otherwise, vertex);
        for (uint32_t i = own.first; i < own.end; i++) to[i] += from[i];
    }
}

/* Finds the vertices of [first, *end) whose condition holds; the others do not run: hand_on sets their outputs. If the
 * cell reads lists of nodes, which must be adjacent in memory, all vertices run if one does. False: out of memory. */
static bool find_live(vpps_tile *t, uint32_t *first, uint32_t *end) {
    vpps_vp *vp = t->vp;
    uint32_t n = 0;
    if (!VPPS_RESERVE(vp->live, *end - *first + 1u)) return false;
    for (uint32_t v = *first; v < *end; v++)
        if (holds(t, v)) vp->live[n++] = v;
    if (n == *end - *first || (n && t->c->n_lists)) return true;
    for (uint32_t v = *first, i = 0; v < *end; v++) {
        const bool runs = i < n && vp->live[i] == v;
        if (runs) i++;
        if (!runs) hand_on(t, v);
    }
    t->live = vp->live;
    *first = 0;
    *end = n;
    return true;
}

/* Makes `t` the tile of n vertices from number `first` on, with memory for its buffers. Returns false if out of memory. */
static bool open_tile(vpps_tile *t, uint32_t first, uint32_t n) {
    enum { LINE = 16 };
    size_t floats[VPPS_AXES], all = 4 * LINE;
    vpps_items_of(t->view, first, n, t->first, t->n);
    for (uint32_t d = 0; d <= t->c->n_lists; d++) {
        t->whole[d] = t->n[d];
        all += floats[d] = ((size_t)t->layout->floats[d] * t->n[d] + LINE - 1) & ~(size_t)(LINE - 1);
    }
    if (!vpps_vp_scratch(t->vp, all)) return false;
    t->region[0] = t->vp->scratch;
    for (uint32_t d = 1; d <= t->c->n_lists; d++) t->region[d] = t->region[d - 1] + floats[d - 1];
    return true;
}

vpps_rows vpps_stage_part(const vpps_cpu *cpu, uint32_t vp, const vpps_task *task) {
    const vpps_block_view *view = &cpu->batch.views[task->operands[0]];
    const uint32_t first = task->operands[1], n = task->operands[2], group = view->cell->needs.group;
    if (view->cell->programs[task->stage].rows) return (vpps_rows){first, first + n};
    return vpps_share_of_stage(&view->cell->stages[task->stage], view->lists, first, n, group, vp % group);
}

void vpps_vp_stage(vpps_vp *vp, uint32_t address, const vpps_task *task) {
    const uint32_t *o = task->operands;
    const vpps_cpu *cpu = vp->cpu;
    const vpps_block_view *view = &cpu->batch.views[o[0]];
    const vpps_compiled_cell *c = view->cell;
    const uint32_t stage = task->stage, first = o[1], member = vp->index % c->needs.group;
    vpps_rows part = vpps_stage_part(cpu, vp->index, task);
    vpps_tile t = {.vp = vp,
                   .kernels = cpu->kernels,
                   .c = c,
                   .p = &c->programs[stage],
                   .layout = vpps_tiles_of(c, stage, member),
                   .view = view,
                   .stage = stage,
                   .member = member,
                   .contributions = task->contributions};
    vpps_items_of(view, first, o[2], t.task_first, t.task_items);
    for (uint32_t d = 0; d <= c->n_lists; d++) t.records[d] = cpu->pool + view->block->kept[d];
    const uint32_t pass_record = vpps_pass_record(c, stage);
    t.records[pass_record] = cpu->pool + task->pass_record - (size_t)first * c->kept_words[pass_record];
    bool ok = !vpps_stage_may_skip(c, &c->stages[stage]) || find_live(&t, &part.first, &part.end);
    for (uint32_t at = part.first, count; at < part.end && ok; at += count) {
        count = vpps_min_u32(part.end - at, t.layout->tile);
        vpps_forget_vectors(vp);
        ok = open_tile(&t, at, count) && vpps_run_tile(&t);
    }
    if (!ok) vpps_vp_fail(vp, VPPS_MEMORY, address, "out of memory for a stage's tiles");
}

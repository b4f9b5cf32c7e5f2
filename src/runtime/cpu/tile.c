/* tile.c - memory layout of tiles (vertices computed together), and addresses of what their steps read and write. */
#include "runtime/cpu/tile.h"

/* layouts[s * group + m]: where the values of stage (part) s of a cell lie, for thread m of its group of threads. */
typedef struct tile_cell {
    vpps_tile_layout *layouts;
    uint32_t n;
} tile_cell;

const vpps_tile_layout *vpps_tiles_of(const vpps_compiled_cell *c, uint32_t stage, uint32_t member) {
    return &((const tile_cell *)c->device_program)->layouts[stage * c->needs.group + member];
}

static void choose_tile(const vpps_program *p, uint32_t most, vpps_tile_layout *layout) {
    enum { FLOATS = 48 * 1024 /* of a tile */, LEAST_WITH_ARGMAX = 24, COLUMNS = 6 /* vectors multiplied at once */ };
    uint32_t floats = layout->floats[0] + 1;
    for (uint32_t d = 1; d < VPPS_AXES; d++) floats += 4 * layout->floats[d];
    uint32_t tile = vpps_min_u32(FLOATS / floats, most);
    /* tiles of a cell with ARGMAX get LEAST_WITH_ARGMAX vertices or more, which share reading a matrix with a row per class */
    for (uint32_t i = 0; i < p->n; i++)
        if (p->steps[i].kind == VPPS_STEP_RUN && p->steps[i].run.of.opcode == VPPS_I_ARGMAX)
            tile = vpps_max_u32(tile, LEAST_WITH_ARGMAX);
    if (tile > COLUMNS) tile -= tile % COLUMNS;
    layout->tile = vpps_max_u32(tile, 1);
}

static bool lay_out(const vpps_compiled_cell *c, const vpps_program *p, uint32_t member, uint32_t most,
                    vpps_tile_layout *layout) {
    layout->slots = calloc(p->slots.n + 1u, sizeof *layout->slots);
    layout->own = calloc(p->n_dealt + 1u, sizeof *layout->own);
    if (!layout->slots || !layout->own) return false;
    for (uint32_t d = 1; d <= p->n_dealt; d++) layout->own[d] = vpps_dealt_rows(c, p, d, member);
    for (uint32_t i = 0; i < p->slots.n; i++) {
        const vpps_slot *slot = &p->slots.at[i];
        const vpps_rows own = layout->own[slot->dealt];
        layout->slots[i] =
            (vpps_tile_slot){layout->floats[slot->axis], slot->dealt ? own.end - own.first : slot->words};
        layout->floats[slot->axis] += layout->slots[i].width;
    }
    choose_tile(p, most, layout);
    return true;
}

static void free_tiles(void *program) {
    tile_cell *t = program;
    for (uint32_t i = 0; t && i < t->n; i++) VPPS_FREE(t->layouts[i].slots, t->layouts[i].own);
    if (t) free(t->layouts);
    free(t);
}

vpps_status vpps_make_tiles(vpps_compiled_cell *c, uint32_t most) {
    if (c->device_program) return VPPS_OK;
    const uint32_t group = c->needs.group, n = c->n_stages * group;
    tile_cell *t = calloc(1, sizeof *t);
    if (t) t->layouts = calloc(n + 1u, sizeof *t->layouts);
    bool ok = t && t->layouts;
    for (; ok && t->n < n; t->n++) ok = lay_out(c, &c->programs[t->n / group], t->n % group, most, &t->layouts[t->n]);
    if (!ok) {
        free_tiles(t);
        return vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name);
    }
    c->device_program = t;
    c->device_free = free_tiles;
    return VPPS_OK;
}

/* Returns the address of gradients for input `o`: vertex (or node in a list) i of the block has its gradient i * words
 * further on, though only the task's vertices have memory there. */
static float *contribution(const vpps_tile *t, const vpps_operand *o) {
    const uint32_t items = t->task_items[o->axis];
    uint64_t at = t->contributions + vpps_contribution_at(t->c, t->stage, t->task_items, o->at);
    if (o->shares) at += vpps_contribution_words(t->c, items, o->at) / t->c->needs.group * t->member;
    return t->vp->cpu->pool + at - (size_t)t->task_first[o->axis] * vpps_operand_words(o);
}

vpps_span vpps_span_of(const vpps_tile *t, const vpps_operand *o, bool first_share) {
    const vpps_cpu *cpu = t->vp->cpu;
    vpps_span w = {.base = cpu->pool};
    switch (o->place) {
    case VPPS_PLACE_SLOT: return (vpps_span){vpps_slot_of(t, o), t->layout->slots[o->at].width, NULL, NULL};
    case VPPS_PLACE_PARAMETER: w.base += cpu->plan.values[o->at] + vpps_first_of(t, o); return w;
    case VPPS_PLACE_INPUT:
        w.base += t->view->shifts[o->at];
        w.offsets = t->view->inputs[o->at];
        break;
    case VPPS_PLACE_ENTRY: w.offsets = t->view->lookups[o->at]; break;
    case VPPS_PLACE_DATA: /* numbers in the batch's program (script), only read */
        w.base = (float *)(void *)(uintptr_t)cpu->batch.script;
        w.offsets = t->view->data;
        break;
    case VPPS_PLACE_CONTRIBUTION:
        w.base = contribution(t, o);
        w.stride = vpps_operand_words(o);
        break;
    default:
        w.base = t->records[o->record] + o->at;
        if (o->shares && !first_share) w.base += (size_t)t->member * vpps_share_words(vpps_operand_words(o));
        w.stride = t->c->kept_words[o->record];
    }
    w.base += vpps_first_of(t, o);
    if (!o->axis && t->live)
        w.live = t->live + t->first[0];
    else if (w.offsets)
        w.offsets += t->first[o->axis];
    else
        w.base += t->first[o->axis] * w.stride;
    return w;
}

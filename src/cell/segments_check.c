/* segments_check.c - checks that a segment (list of steps of a CTA's threads) finds the values that it reads. Without a
 * barrier between two steps, one thread may be at the second before another has done the first. */
#include "cell/segments.h"

static bool has_slot(const vpps_segments *s, uint32_t v) {
    return s->made_in[v] != VPPS_NONE && s->slot[v] != VPPS_NONE;
}

/* Returns why a segment (list of steps) must not read value u in memory, or NULL if it may. alike: each thread reads only its element. */
static const char *memory_wrong(const vpps_segments *s, uint32_t segment, uint32_t u, bool alike) {
    if (!s->memory[u]) return "reads what is nowhere";
    for (uint32_t g = 0; g < s->n && s->list[g].barriers <= s->list[segment].barriers; g++)
        if (g != segment && vpps_segment_stores_over(s, g, u)) return "reads what was stored over";
    return alike || !vpps_segment_stores_over(s, segment, u) ? NULL : "reads what other threads store over";
}

/* Returns whether u is made before the last barrier that precedes a segment (steps) or, if `same`, before the first barrier after it. */
static bool made_before(const vpps_segments *s, uint32_t u, uint32_t segment, bool same) {
    return s->list[s->made_in[u]].barriers < s->list[segment].barriers + same;
}

static const char *read_wrong(const vpps_segments *s, uint32_t segment, uint32_t u, bool alike) {
    if (s->made_in[u] == segment && alike) return NULL; /* the reading thread computed the value: it is in a register */
    if (!has_slot(s, u)) return memory_wrong(s, segment, u, alike);
    if (!made_before(s, u, segment, false)) return "reads at other elements, or before, what it makes";
    if (s->last_read[u] <= segment) return "reads a slot after its last use";
    for (uint32_t v = 0; v < s->c->n_values; v++)
        if (v != u && has_slot(s, v) && !made_before(s, v, s->made_in[u], false) && made_before(s, v, segment, true) &&
            s->c->values[u].axis == s->c->values[v].axis && s->slot[u] < s->slot[v] + vpps_segment_width(s, v) &&
            s->slot[v] < s->slot[u] + vpps_segment_width(s, u))
            return "reads a slot that holds something else";
    return NULL;
}

static const char *step_wrong(const vpps_segments *s, uint32_t segment, const vpps_segment_step *step, uint32_t *u) {
    const vpps_program_step *makes = step->step;
    const char *wrong = NULL;
    const vpps_operand *o;
    *u = step->value;
    if (segment && s->list[segment].barriers < s->list[segment - 1].barriers)
        return "has fewer barriers before it than the one before";
    for (uint32_t g = 0; g < s->n; g++)
        if (g != segment && s->list[g].barriers == s->list[segment].barriers && step->kind != VPPS_SEGMENT_LOAD &&
            vpps_segment_stores_over(s, g, *u))
            return "stores over what another segment stores";
    if (step->kind == VPPS_SEGMENT_STORE) return read_wrong(s, segment, *u, true);
    if (step->kind == VPPS_SEGMENT_LOAD) return memory_wrong(s, segment, *u, true);
    for (uint32_t i = 0; makes && !wrong && (o = vpps_read_of(s, makes, i)); i++) {
        *u = o->value;
        /* products store their results after a barrier, when all threads have read the operands */
        if (s->list[segment].kind == VPPS_SEGMENT_PRODUCTS && i < makes->n)
            wrong = memory_wrong(s, segment, *u, true);
        else
            wrong = read_wrong(s, segment, *u, i == makes->n || vpps_reads_alike(makes, o));
    }
    return wrong;
}

vpps_status vpps_segments_check(const vpps_segments *s) {
    for (uint32_t g = 0; g < s->n; g++) {
        for (uint32_t k = s->list[g].first; k < s->list[g].first + s->list[g].n; k++) {
            uint32_t u;
            const char *wrong = step_wrong(s, g, &s->steps[k], &u);
            if (wrong)
                return vpps_fail(VPPS_SCRIPT,
                                 "kernel: cell %s, stage %u: segment %u, which makes value %u, %s: value %u",
                                 s->c->name, s->stage, g, s->steps[k].value, wrong, u);
        }
    }
    return VPPS_OK;
}

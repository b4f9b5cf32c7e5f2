/* segments_tests.c - vpps_segments_check must refuse segments that are broken on purpose: a barrier left out, a load left out, a slot (buffer) reused
 * too early. Unbroken segments pass (vpps_segments_make asks). */
#include "cell/segments.h"
#include "cells.h"
#include "common/training.h"

static bool is_read_apart(const vpps_segments *s, const vpps_segment *g, uint32_t made_in) {
    for (uint32_t k = g->first; k < g->first + g->n; k++) {
        const vpps_program_step *step = s->steps[k].step;
        for (uint32_t i = 0; step && step->kind == VPPS_STEP_RUN && i < step->n; i++) {
            const vpps_operand *o = vpps_operand_of(s, step, i);
            if (s->made_in[o->value] == made_in && !vpps_reads_alike(step, o)) return true;
        }
    }
    return false;
}

/* Joins segment g and the next one, which leaves out the barrier between them. */
static void leave_barrier_out(vpps_segments *s, uint32_t g) {
    s->list[g].n += s->list[g + 1].n;
    for (uint32_t k = g + 1; k + 1 < s->n; k++) s->list[k] = s->list[k + 1];
    s->n--;
    for (uint32_t v = 0; v < s->c->n_values; v++) {
        if (s->made_in[v] != VPPS_NONE && s->made_in[v] > g) s->made_in[v]--;
        if (s->last_read[v] > g + 1) s->last_read[v]--;
    }
}

/* Returns a value that is made later and gets its slot (buffer) while u's slot is still read. */
static uint32_t made_meanwhile(const vpps_segments *s, uint32_t u) {
    for (uint32_t v = 0; v < s->c->n_values; v++)
        if (s->made_in[v] != VPPS_NONE && s->slot[v] != VPPS_NONE && s->c->values[v].axis == s->c->values[u].axis &&
            s->made_in[v] > s->made_in[u] && s->made_in[v] < s->last_read[u])
            return v;
    return VPPS_NONE;
}

typedef struct counts {
    uint32_t barriers, joined, slots, loads, late, all;
} counts;

static void open(vpps_segments *s, const vpps_compiled_cell *c, uint32_t stage) {
    TEST_OK(vpps_segments_make(s, c, stage));
}

static void break_stage(const vpps_compiled_cell *c, uint32_t stage, counts *n) {
    vpps_segments s;
    open(&s, c, stage);
    const uint32_t segments = s.n;
    n->all += segments ? s.list[segments - 1].barriers : 0;
    vpps_segments_free(&s);
    for (uint32_t g = 0; g + 1 < segments; g++) {
        open(&s, c, stage);
        const bool elements = s.list[g].kind == VPPS_SEGMENT_ELEMENTS && s.list[g + 1].kind == VPPS_SEGMENT_ELEMENTS;
        if (elements && is_read_apart(&s, &s.list[g + 1], g)) {
            leave_barrier_out(&s, g);
            TEST_FAILS(vpps_segments_check(&s), VPPS_SCRIPT, "reads ");
            n->barriers++;
        }
        vpps_segments_free(&s);
    }
    for (uint32_t g = 1; g < segments; g++) { /* leaves out the barrier before g, which reads what was just made */
        open(&s, c, stage);
        bool reads = false;
        for (uint32_t h = 0; h < g && s.list[g].barriers != s.list[g - 1].barriers && !s.p->rows; h++)
            reads |= s.list[h].barriers == s.list[g - 1].barriers && is_read_apart(&s, &s.list[g], h);
        for (uint32_t k = g; k < s.n && reads; k++) s.list[k].barriers--;
        if (reads) TEST_FAILS(vpps_segments_check(&s), VPPS_SCRIPT, "segment ");
        n->joined += reads;
        vpps_segments_free(&s);
    }
    for (uint32_t u = 0; u < c->n_values; u++) {
        open(&s, c, stage);
        const uint32_t v = s.made_in[u] == VPPS_NONE || s.slot[u] == VPPS_NONE ? VPPS_NONE : made_meanwhile(&s, u);
        if (v != VPPS_NONE) {
            s.slot[v] = s.slot[u];
            TEST_FAILS(vpps_segments_check(&s), VPPS_SCRIPT, "reads a slot that holds something else");
            n->slots++;
        }
        vpps_segments_free(&s);
    }
    for (uint32_t v = 0; v < c->n_values; v++) {
        open(&s, c, stage);
        if (s.late[v]) {
            s.late[v] = false;
            TEST_FAILS(vpps_segments_check(&s), VPPS_SCRIPT, "reads what was stored over");
            n->late++;
        }
        vpps_segments_free(&s);
    }
    for (uint32_t k = 0;; k++) { /* leaves a load out: the value is read where it lies */
        open(&s, c, stage);
        if (k == s.n_steps) break;
        const vpps_segment_step load = s.steps[k];
        uint32_t reader = VPPS_NONE;
        for (uint32_t g = 0; g < s.n && load.kind == VPPS_SEGMENT_LOAD; g++)
            if (is_read_apart(&s, &s.list[g], s.made_in[load.value]) && vpps_segment_stores_over(&s, g, load.value))
                reader = g;
        if (reader != VPPS_NONE) {
            s.made_in[load.value] = s.slot[load.value] = VPPS_NONE;
            TEST_FAILS(vpps_segments_check(&s), VPPS_SCRIPT, "what other threads store over");
            n->loads++;
        }
        vpps_segments_free(&s);
    }
    vpps_segments_free(&s);
}

TEST_GROUP("segments");

/* Records a product with a vector that is read by columns, and whose gradient takes its place. */
static vpps_cell record_outer(const cells *x) {
    vpps_graph *g = begin_cell(x->model, "outer");
    const vpps_node y = vpps_tanh(g, vpps_gather(g, 0, 0, SQUARE, 1));
    TEST_OK(vpps_scatter(g, y));
    const vpps_node z = vpps_tanh(g, vpps_scale(g, y, 2));
    TEST_OK(vpps_push(g, vpps_broadcast(g, z, SQUARE, SQUARE)));
    TEST_OK(vpps_push(g, vpps_matmul(g, z, vpps_transpose(g, z))));
    return end_cell(g);
}

/* Records a product that may be computed together with another one, and stored over a value that is read in between. */
static vpps_cell record_late(const cells *x) {
    static const char *const names[] = {"late0", "late1", "late2", "late3"};
    vpps_param m[VPPS_COUNT(names)];
    for (uint32_t i = 0; i < VPPS_COUNT(names); i++)
        TEST_OK(vpps_add_matrix(x->model, &m[i], names[i], HIDDEN, HIDDEN, NULL));
    vpps_graph *g = begin_cell(x->model, "late");
    const vpps_node h = vpps_gather(g, 0, 0, HIDDEN, 1);
    const vpps_node w = vpps_tanh(g, vpps_affine1(g, VPPS_NO_PARAM, m[0], h));
    const vpps_node u = vpps_tanh(g, vpps_affine1(g, VPPS_NO_PARAM, m[1], h));
    const vpps_node gated = vpps_mul(g, vpps_affine1(g, VPPS_NO_PARAM, m[2], w), u);
    TEST_OK(vpps_scatter(g, vpps_affine1(g, VPPS_NO_PARAM, m[3], w)));
    TEST_OK(vpps_scatter(g, vpps_tanh(g, gated)));
    return end_cell(g);
}

/* Records a cell with a list in whose backward a gradient is stored over h before the last step that reads h. */
static vpps_cell record_over(const cells *x) {
    vpps_param m[2];
    for (uint32_t i = 0; i < 2; i++)
        TEST_OK(vpps_add_matrix(x->model, &m[i], i ? "over1" : "over0", HIDDEN, HIDDEN, NULL));
    vpps_graph *g = begin_cell(x->model, "over");
    const vpps_node from = vpps_pull(g, HIDDEN, 1), list = vpps_pull_list(g, HIDDEN, 1);
    const vpps_node h = vpps_tanh(g, vpps_affine1(g, VPPS_NO_PARAM, m[0], from));
    const vpps_node s = vpps_tanh(g, vpps_affine1(g, VPPS_NO_PARAM, m[1], from));
    const vpps_node sum = vpps_add(g, vpps_mul(g, h, s), vpps_softmax(g, h));
    TEST_OK(vpps_push(g, vpps_add(g, sum, vpps_sum(g, 1, &list))));
    return end_cell(g);
}

TEST(broken_segments_are_refused) {
    AT_END(cells_close) cells x = cells_open();
    const vpps_cell more[] = {record_outer(&x), record_late(&x), record_over(&x)};
    counts n = {0};
    for (uint32_t id = 0; id < N_CELLS + VPPS_COUNT(more); id++) {
        for (uint32_t way = 0; way < 4; way++) {
            const vpps_cell cell = id < N_CELLS ? x.cell[id] : more[id - N_CELLS];
            vpps_cell_needs needs = cells_recurrent(x.g, cell, 1 + way % 2);
            if (way / 2) needs.training = false, needs.gradient_in = needs.gradient_out = 0;
            needs.rows.columns = 1000; /* rows are shared out as on a GPU */
            if (way % 2) needs.recurrent_in = 0;
            OWNED(vpps_compiled_cell) *c = cells_compile(x.g, cell, &needs);
            for (uint32_t stage = 0; stage < c->n_stages; stage++) break_stage(c, stage, &n);
        }
    }
    ck_assert_msg(n.barriers > 10 && n.joined > 10 && n.slots > 10 && n.loads && n.late && n.all <= 427,
                  "%u barriers, %u joined, %u slots, %u loads, %u late, %u in all", n.barriers, n.joined, n.slots,
                  n.loads, n.late, n.all);
}

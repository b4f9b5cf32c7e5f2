#include "cells.h"
#include "common/training.h"
#include "script/verify/checker.h"

/* ---------------------------------------------------------------- parameters */

static vpps_param param(const vpps_graph *g, const char *name) {
    vpps_param p;
    TEST_OK(vpps_param_find(g->model, name, &p));
    return p;
}

vpps_param cells_param(const cells *x, const char *name) { return param(x->g, name); }

static void declare(vpps_model *model) {
    static const char gates[] = "ifour";
    const vpps_init small = {.kind = VPPS_INIT_UNIFORM, .a = -0.3f, .b = 0.3f};
    vpps_param p;
    char name[16];
    for (const char *gate = gates; *gate; gate++) {
        snprintf(name, sizeof name, "W_%c", *gate);
        TEST_OK(vpps_add_matrix(model, &p, name, HIDDEN, EMBED, NULL));
        snprintf(name, sizeof name, "U_%c", *gate);
        TEST_OK(vpps_add_matrix(model, &p, name, HIDDEN, HIDDEN, NULL));
        snprintf(name, sizeof name, "V_%c", *gate);
        TEST_OK(vpps_add_matrix(model, &p, name, HIDDEN, HIDDEN, NULL));
        snprintf(name, sizeof name, "b_%c", *gate);
        TEST_OK(vpps_add_vector(model, &p, name, HIDDEN, &small));
    }
    TEST_OK(vpps_add_matrix(model, &p, "A", HIDDEN, 2 * HIDDEN, NULL));
    TEST_OK(vpps_add_matrix(model, &p, "C", CLASSES, HIDDEN, NULL));
    TEST_OK(vpps_add_vector(model, &p, "b_C", CLASSES, &small));
    TEST_OK(vpps_add_matrix(model, &p, "S", SQUARE, SQUARE, NULL));
    TEST_OK(vpps_add_lookup(model, &p, "words", WORDS, EMBED, 1, NULL));
    TEST_OK(vpps_add_lookup(model, &p, "squares", WORDS, SQUARE, SQUARE, NULL));
}

/* ---------------------------------------------------------------- cells */

static vpps_node gate_of(vpps_graph *g, char gate, const char *matrices, uint32_t n, const vpps_node *xs) {
    vpps_param list[4];
    char name[8];
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%c_%c", matrices[i], gate);
        list[i] = param(g, name);
    }
    snprintf(name, sizeof name, "b_%c", gate);
    return vpps_affine(g, param(g, name), n, list, xs);
}

typedef struct state {
    vpps_node h, c;
} state;

static state lstm(vpps_graph *g, vpps_node x, state before) {
    const vpps_node xs[] = {x, before.h};
    const vpps_node i = vpps_sigmoid(g, gate_of(g, 'i', "WU", 2, xs)),
                    f = vpps_sigmoid(g, gate_of(g, 'f', "WU", 2, xs));
    const vpps_node o = vpps_sigmoid(g, gate_of(g, 'o', "WU", 2, xs)), u = vpps_tanh(g, gate_of(g, 'u', "WU", 2, xs));
    const vpps_node c = vpps_add(g, vpps_mul(g, i, u), vpps_mul(g, f, before.c));
    return (state){vpps_mul(g, o, vpps_tanh(g, c)), c};
}

static state gather_state(vpps_graph *g, uint32_t child) {
    const vpps_node h = vpps_gather(g, child, 0, HIDDEN, 1), c = vpps_gather(g, child, 1, HIDDEN, 1);
    return (state){h, c};
}

static void scatter_state(vpps_graph *g, state s) {
    TEST_OK(vpps_scatter(g, s.h));
    TEST_OK(vpps_scatter(g, s.c));
}

static void record_lstm(vpps_graph *g) {
    const vpps_node x = vpps_pull(g, EMBED, 1);
    scatter_state(g, lstm(g, x, gather_state(g, 0)));
}

static void record_gru(vpps_graph *g) {
    const vpps_node h = vpps_gather(g, 0, 0, HIDDEN, 1), x = vpps_pull(g, EMBED, 1), xs[] = {x, h};
    const vpps_node r = vpps_sigmoid(g, gate_of(g, 'r', "WU", 2, xs)),
                    z = vpps_sigmoid(g, gate_of(g, 'i', "WU", 2, xs));
    const vpps_node ys[] = {x, vpps_mul(g, r, h)}, u = vpps_tanh(g, gate_of(g, 'u', "WU", 2, ys));
    TEST_OK(vpps_scatter(g, vpps_add(g, u, vpps_mul(g, z, vpps_sub(g, h, u)))));
}

static void record_leaf(vpps_graph *g) {
    const vpps_node x = vpps_lookup(g, param(g, "words"), vpps_pull_index(g));
    const vpps_node i = vpps_sigmoid(g, gate_of(g, 'i', "W", 1, &x)), o = vpps_sigmoid(g, gate_of(g, 'o', "W", 1, &x));
    const vpps_node c = vpps_mul(g, i, vpps_tanh(g, gate_of(g, 'u', "W", 1, &x)));
    scatter_state(g, (state){vpps_mul(g, o, vpps_tanh(g, c)), c});
}

static void record_inner(vpps_graph *g) {
    const state l = gather_state(g, 0), r = gather_state(g, 1);
    const vpps_node both[] = {l.h, r.h};
    const vpps_node i = vpps_sigmoid(g, gate_of(g, 'i', "UV", 2, both)),
                    o = vpps_sigmoid(g, gate_of(g, 'o', "UV", 2, both));
    const vpps_node f_l = vpps_sigmoid(g, gate_of(g, 'f', "UV", 2, both)),
                    f_r = vpps_sigmoid(g, gate_of(g, 'r', "UV", 2, both));
    const vpps_node u = vpps_tanh(g, gate_of(g, 'u', "UV", 2, both));
    const vpps_node sum[] = {vpps_mul(g, i, u), vpps_mul(g, f_l, l.c), vpps_mul(g, f_r, r.c)};
    const vpps_node c = vpps_sum(g, 3, sum);
    scatter_state(g, (state){vpps_mul(g, o, vpps_tanh(g, c)), c});
}

/* Tai et al. (2015), section 3.1: one forget gate a child. */
static void record_child_sum(vpps_graph *g) {
    const vpps_node hs = vpps_gather_list(g, 0, HIDDEN, 1), cs = vpps_gather_list(g, 1, HIDDEN, 1);
    const vpps_node x = vpps_pull(g, EMBED, 1), h = vpps_sum(g, 1, &hs), xs[] = {x, h}, fs[] = {x, hs};
    const vpps_node i = vpps_sigmoid(g, gate_of(g, 'i', "WU", 2, xs)),
                    o = vpps_sigmoid(g, gate_of(g, 'o', "WU", 2, xs));
    const vpps_node u = vpps_tanh(g, gate_of(g, 'u', "WU", 2, xs)), f = vpps_sigmoid(g, gate_of(g, 'f', "WU", 2, fs));
    const vpps_node forgotten = vpps_mul(g, f, cs);
    const vpps_node c = vpps_add(g, vpps_mul(g, i, u), vpps_sum(g, 1, &forgotten));
    scatter_state(g, (state){vpps_mul(g, o, vpps_tanh(g, c)), c});
}

static void record_attention(vpps_graph *g) {
    const vpps_node h = vpps_gather_list(g, 0, HIDDEN, 1), s = vpps_pull(g, HIDDEN, 1);
    const vpps_node score = vpps_dot(g, h, s), highest = vpps_max_of(g, 1, &score);
    const vpps_node e = vpps_exp(g, vpps_sub(g, score, highest)), a = vpps_div(g, e, vpps_sum(g, 1, &e));
    const vpps_node weighted = vpps_scale_by(g, h, a), both[] = {vpps_sum(g, 1, &weighted), s};
    TEST_OK(vpps_push(g, vpps_tanh(g, vpps_matvec(g, param(g, "A"), vpps_concat(g, 2, both)))));
}

/* Records a state that attends to the other children, each by the features of its edge; and lists that are only pulled. */
static void record_edges(vpps_graph *g) {
    const vpps_node s = vpps_gather(g, 0, 0, HIDDEN, 1), h = vpps_gather_list_from(g, 1, 0, HIDDEN, 1);
    const vpps_node edge = vpps_pull_list(g, EMBED, 1), bias = vpps_pull_list(g, 1, 1);
    const vpps_node both[] = {edge, h}, key = vpps_tanh(g, gate_of(g, 'i', "WU", 2, both));
    const vpps_node a = vpps_softmax_list(g, vpps_add(g, vpps_dot(g, key, s), bias));
    const vpps_node weighted[] = {vpps_weighted_sum_list(g, a, h), vpps_weighted_sum_list(g, bias, key)};
    TEST_OK(vpps_push(g, vpps_concat(g, 2, weighted)));
    TEST_OK(vpps_scatter(g, vpps_tanh(g, vpps_sum(g, 1, &key))));
    TEST_OK(vpps_push(g, vpps_average(g, 1, &a)));
}
/* Records stacks of members, gathered and computed ones, and parts of such stacks: across two members, and of another stack. */
static void record_stacked_list(vpps_graph *g) {
    const vpps_node h = vpps_gather_list(g, 0, HIDDEN, 1), edge = vpps_pull_list(g, SQUARE, 2);
    const vpps_node x = vpps_pull(g, HIDDEN, 1), key = vpps_tanh(g, gate_of(g, 'i', "U", 1, &h));
    const vpps_node all = vpps_concat_list(g, h, 3), keys = vpps_concat_list(g, key, 4),
                    edges = vpps_concat_list(g, edge, 3);
    const vpps_node some = vpps_slice(g, keys, HIDDEN / 2, HIDDEN), both[] = {all, x, keys};
    TEST_OK(vpps_scatter(g, vpps_mul(g, vpps_slice(g, vpps_concat(g, 3, both), 3 * HIDDEN - 5, HIDDEN), some)));
    TEST_OK(vpps_push(g, vpps_slice(g, all, 2 * HIDDEN, HIDDEN)));
    TEST_OK(vpps_push(g, vpps_square(g, edges)));
    TEST_OK(vpps_push(g, vpps_dot(g, vpps_slice(g, vpps_tanh(g, all), 0, HIDDEN), some)));
}

/* Records left children, right children, and words unrelated to both, gated by the others' sums; dropout over all of them; the largest and smallest
 * elements of several lists. */
static void record_several_lists(vpps_graph *g) {
    const vpps_node x = vpps_pull(g, HIDDEN, 1), s = vpps_gather(g, 0, 0, HIDDEN, 1);
    const vpps_node left = vpps_gather_list_of(g, 0, 0, HIDDEN, 1), word = vpps_pull_list_of(g, 1, EMBED, 1);
    const vpps_node right = vpps_gather_list_of(g, 2, 0, HIDDEN, 1), edge = vpps_pull_list_of(g, 2, EMBED, 1);
    const vpps_node of_edge[] = {edge, right}, key = vpps_tanh(g, gate_of(g, 'i', "WU", 2, of_edge));
    const vpps_node masked[] = {vpps_dropout(g, left, 0.25f), vpps_dropout(g, key, 0.5f), vpps_dropout(g, x, 0.25f)};
    const vpps_node spoken = vpps_matvec(g, param(g, "W_o"), vpps_dropout(g, word, 0.5f));
    const vpps_node gate = vpps_sigmoid(g, vpps_add(g, vpps_average(g, 3, masked), s));
    const vpps_node weight = vpps_softmax_list(g, vpps_dot(g, spoken, x)), gated = vpps_mul(g, spoken, gate);
    const vpps_node all[] = {left, x, key, gated}, lists[] = {gated, left, left};
    TEST_OK(vpps_scatter(g, vpps_add(g, vpps_weighted_sum_list(g, weight, gated), vpps_max_of(g, 4, all))));
    TEST_OK(vpps_push(g, vpps_average(g, 3, lists)));
    TEST_OK(vpps_push(g, vpps_concat(g, 2, (vpps_node[]){vpps_concat_list(g, key, 4), vpps_concat_list(g, left, 3)})));
    TEST_OK(vpps_push(g, vpps_min_of(g, 2, all)));
}

static void record_matrices(vpps_graph *g) {
    const vpps_node a = vpps_gather(g, 0, 0, SQUARE, 1), A = vpps_gather(g, 0, 1, SQUARE, SQUARE);
    const vpps_node b = vpps_gather(g, 1, 0, SQUARE, 1), B = vpps_gather(g, 1, 1, SQUARE, SQUARE);
    const vpps_param S = param(g, "S");
    TEST_OK(vpps_scatter(
        g, vpps_tanh(g, vpps_affine2(g, VPPS_NO_PARAM, S, vpps_matmul(g, B, a), S, vpps_matmul(g, A, b)))));
    TEST_OK(
        vpps_scatter(g, vpps_matmul(g, vpps_matvec(g, S, A), vpps_add(g, B, vpps_lookup(g, param(g, "squares"), 3)))));
}

/* Records a matrix as a value that is kept, recomputed, passed on, and also multiplied as a parameter. */
static void record_matrix_values(vpps_graph *g) {
    const vpps_node a = vpps_gather(g, 0, 0, SQUARE, 1), A = vpps_pull(g, SQUARE, SQUARE);
    const vpps_node S = vpps_parameter(g, param(g, "S")), W = vpps_parameter(g, param(g, "W_i"));
    const vpps_node sum = vpps_matmul(g, S, vpps_mul(g, A, vpps_parameter(g, param(g, "S"))));
    TEST_OK(vpps_scatter(g, vpps_tanh(g, vpps_add(g, vpps_matvec(g, param(g, "S"), a), vpps_matmul(g, sum, a)))));
    TEST_OK(vpps_push(g, S));
    TEST_OK(vpps_push(g, vpps_sum_elements(g, vpps_square(g, W))));
}

/* Records a classifier inside a recurrence, for which no vertex waits. */
static void record_tagger(vpps_graph *g) {
    const vpps_node x = vpps_pull(g, EMBED, 1);
    const state s = lstm(g, x, gather_state(g, 0));
    scatter_state(g, s);
    const vpps_node logits = vpps_affine1(g, param(g, "b_C"), param(g, "C"), s.h);
    TEST_OK(vpps_push(g, logits));
    TEST_OK(vpps_push(g, vpps_cross_entropy(g, logits, vpps_pull_index(g))));
}

cells cells_open(void) {
    static const struct {
        const char *name;
        void (*record)(vpps_graph *g);
    } table[] = {
#define X(id, name) {name, record_##id},
        CELL_TABLE(X)
#undef X
    };
    cells x;
    TEST_OK(vpps_model_create(&x.model, 5));
    declare(x.model);
    TEST_OK(vpps_graph_create(&x.g, x.model));
    for (uint32_t i = 0; i < N_CELLS; i++) {
        vpps_graph *recorder = begin_cell(x.model, table[i].name);
        table[i].record(recorder);
        TEST_OK(vpps_cell_end(recorder, &x.cell[i]));
    }
    return x;
}

void cells_close(cells *x) {
    vpps_graph_destroy(x->g);
    vpps_model_destroy(x->model);
}

/* ---------------------------------------------------------------- compiling */

vpps_cell_needs cells_needs(void) {
    return (vpps_cell_needs){.training = true,
                             .gradient_in = UINT64_MAX,
                             .gradient_out = UINT64_MAX,
                             .read_out = UINT64_MAX,
                             .group = 1,
                             .rows.unit = 16};
}

vpps_cell_needs cells_recurrent(const vpps_graph *g, vpps_cell cell, uint32_t group) {
    const vpps_cell_data *c = vpps_cell_of(g, cell);
    vpps_cell_needs needs = cells_needs();
    needs.group = group;
    for (uint32_t i = 0; i < c->n_inputs; i++) needs.recurrent_in |= (uint64_t)!c->inputs[i].pulled << i;
    needs.recurrent_out = ((uint64_t)1 << c->n_scattered) - 1;
    return needs;
}

vpps_compiled_cell *cells_lower(const vpps_graph *g, vpps_cell cell, const vpps_cell_needs *needs) {
    vpps_compiled_cell *c;
    TEST_OK(vpps_lower_cell(vpps_cell_of(g, cell), needs->training, &c));
    c->needs = *needs;
    return c;
}

vpps_compiled_cell *cells_compile(const vpps_graph *g, vpps_cell cell, const vpps_cell_needs *needs) {
    vpps_compiled_cell *c = cells_lower(g, cell, needs);
    TEST_OK(vpps_compile_cell(g->model, c, needs));
    return c;
}

/* ---------------------------------------------------------------- one vertex */

/* Chooses the lists' lengths: the first as wanted, the others different, within what the cell allows. */
static void choose_members(const vpps_cell_data *c, uint32_t wanted, uint32_t *members) {
    for (uint32_t l = 0; l < c->n_lists; l++) {
        const uint32_t n = l ? (wanted + 2 * l) % 4 : wanted, most = c->most_members[l + 1];
        members[l] = vpps_max_u32(vpps_min_u32(n, most ? most : n), c->min_members[l + 1]);
    }
}

vpps_vertex cells_apply(vpps_graph *g, vpps_cell cell, uint32_t wanted, uint32_t *members) {
    enum { MOST_CHILDREN = 16, MOST_OUTPUTS = 16, MOST_MEMBERS = 8 };
    const vpps_cell_data *c = vpps_cell_of(g, cell);
    const uint32_t indices[VPPS_CELL_MOST] = {0};
    uint32_t n_children = c->list_first, first[VPPS_AXES] = {0};
    vpps_node scattered[MOST_CHILDREN][MOST_OUTPUTS], pulls[VPPS_CELL_MOST], lists[VPPS_CELL_MOST][MOST_MEMBERS];
    const vpps_node *pull_lists[VPPS_CELL_MOST];
    vpps_vertex children[MOST_CHILDREN];
    choose_members(c, wanted, members);
    for (uint32_t d = 1; d <= c->n_lists; d++) {
        first[d] = n_children;
        if (c->gathered[d]) n_children += members[d - 1];
    }
    n_children = vpps_max_u32(n_children, c->min_children);
    ck_assert_uint_le(n_children, MOST_CHILDREN);
    for (uint32_t k = 0; k < n_children; k++)
        for (uint32_t o = 0; o < MOST_OUTPUTS; o++) scattered[k][o] = vpps_zeros(g, 1, 1);
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        const vpps_cell_input *in = &c->inputs[i];
        for (uint32_t m = 0; m < vpps_members(members, in->axis); m++) {
            const vpps_node x = vpps_zeros(g, in->rows, in->cols);
            *(!in->pulled ? &scattered[in->axis ? first[in->axis] + m : in->child][in->output]
              : in->axis  ? &lists[in->child][m]
                          : &pulls[in->child]) = x;
        }
    }
    for (uint32_t i = 0; i < c->n_pull_lists; i++) pull_lists[i] = lists[i];
    for (uint32_t k = 0; k < n_children; k++) children[k] = vpps_source(g, MOST_OUTPUTS, scattered[k]);
    const vpps_vertex v =
        APPLY(g, cell, CHILDREN(n_children, children), PULLS(c->n_pulls, pulls), INDICES(c->n_indices, indices),
              .n_pull_lists = c->n_pull_lists, .n_members = c->n_pull_lists ? members[0] : 0,
              .n_lists = c->n_lists > 1 ? c->n_lists : 0, .list_members = members, .pull_lists = pull_lists);
    TEST_OK(vpps_graph_status(g));
    return v;
}

void cells_prove(vpps_graph *g, vpps_cell cell, const vpps_compiled_cell *c) {
    uint32_t members[VPPS_CELL_LISTS] = {0};
    const vpps_batch_request request = {.goal = VPPS_GOAL_STEP};
    vpps_checker check = {.g = g, .request = &request, .training = c->needs.training};
    vpps_checked_cell checked = {.c = c, .record = VPPS_NONE};
    vpps_graph_clear(g);
    cells_apply(g, cell, 2, members);
    if (g->records[g->n_records - 1].cell == VPPS_NODE_RECORD)
        return; /* the cell only passes inputs on: no vertex is recorded */
    ck_assert_msg(vpps_check_cell(&check, &checked, g->n_records - 1), "%s", check.reason);
    vpps_expressions_free(&check.expressions);
    for (uint32_t i = 0; i < check.n_memory; i++) free(check.memory[i]);
    VPPS_FREE_ARRAYS(checked.reads, check.memory);
}

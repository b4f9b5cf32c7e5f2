/* print_tests.c - cells as text for people, and counts of operations, which agree with the graph's. */
#include "cell/flops.h"
#include "cell/print.h"
#include "cells.h"
#include "common/random_graph.h"

static char *printed(const vpps_model *model, const vpps_compiled_cell *c) {
    char *text = NULL;
    size_t bytes;
    FILE *out = need(open_memstream(&text, &bytes));
    TEST_OK(vpps_print_cell(model, c, out));
    fclose(out);
    return text;
}

static void check_says(const char *text, const char *line) {
    if (!strstr(text, line)) puts(text); /* the line may be longer than a message */
    ck_assert_msg(strstr(text, line), "\"%s\" is not in what was printed", line);
}

/* ---------------------------------------------------------------- what is said */

TEST_GROUP("print");

TEST(lstm_by_rows) {
    AT_END(cells_close) cells x = cells_open();
    const vpps_cell_needs needs = cells_recurrent(x.g, x.cell[CELL_lstm], 2);
    OWNED(vpps_compiled_cell) *c = cells_compile(x.g, x.cell[CELL_lstm], &needs);
    FREED char *text = printed(x.model, c);
    static const char *const lines[] = {
        "in0       40 x 1     pulled 0                     gradient\n",
        "in1       48 x 1     child 0, output 0            gradient, recurrent\n",
        "stage 0: forward eager, by rows, 15,552 flops a vertex\n",
        "stacked: 192 x 40 times [in0] gives",
        "b_i + W_i in0",
        "stage 1: forward main, by rows,",
        "stacked: 192 x 48 times [in1] gives",
        "tanh(",
        "stage 3: backward lazy, by rows, 15,360 flops a vertex\n",
        "product: 192 x 40 transposed times [",
        "48 x 1, kept, out0\n",
        "      load       s",
        "      product    s0 = record 0 + U_i in1\n",
        "      gradient   s",
        " = out0\n",
        "      run        s",
        " = tanh s",
        "      product    in1, in shares = U_",
        "      store      record ",
        "40 x 1, to in0\n",
        "kept: 288 words a vertex, 1,152 bytes a vertex\n",
        "to in1, 48 words, a share from every VP\n",
        "W_i += t",
        " in0^T ",
        "48 x 40\n",
    };
    for (size_t i = 0; i < VPPS_COUNT(lines); i++) check_says(text, lines[i]);
    ck_assert_ptr_null(strstr(text, " \n"));
}

/* Texts about cells with lists. */
static const struct {
    int cell;
    const char *never; /* NULL: the table asks for nothing to be absent */
    const char *lines[12];
} lists[] = {
    {CELL_attention,
     "words a member, a share", /* not by vertices */
     {"all children, output 0", "t2  = dot(in0, in1)", "1 x 1 a member\n", "t3  = max_of(t2...)",
      "t4  = positions of t3", "t7  = sum(t6...)", "t10 = [t9; in1]", "[0:48]", "== member ? ",
      "words a vertex and 16 words a member,"}},
    {CELL_matrix_values,
     NULL,
     {" = S ", " = W_i ", "= matrix W_i\n", "= W_i               48 x 40, recomputed", "S += t", "W_i += t"}},
    {CELL_edges,
     NULL,
     {"children from 1 on, output 0", "pulled 0, a list", " = softmax(t", "...)", " = weighted_sum(t"}},
    {CELL_stacked_list, NULL, {" = [in0...; 0]", "...; 0]", "[member]"}},
    {CELL_several_lists,
     NULL,
     {"children of list 0, output 0", "children of list 2, output 0", "pulled 0, list 1", "pulled 1, list 2",
      " a member of list 1", " / (members of list 0 + members of list 2 + 1)", "a vertex and ",
      " words a member of list 2"}},
};

TEST_EACH(operations_over_lists, 0, VPPS_COUNT(lists)) {
    AT_END(cells_close) cells x = cells_open();
    const vpps_cell_needs needs = cells_needs();
    OWNED(vpps_compiled_cell) *c = cells_compile(x.g, x.cell[lists[_i].cell], &needs);
    FREED char *text = printed(x.model, c);
    for (size_t i = 0; i < VPPS_COUNT(lists[_i].lines) && lists[_i].lines[i]; i++) check_says(text, lists[_i].lines[i]);
    ck_assert(!lists[_i].never || !strstr(text, lists[_i].never));
}

/* Every value of every random cell has a text, without placeholders. */
TEST_EACH(every_operation, 0, 10) {
    for (uint64_t seed = 20 * (uint64_t)_i; seed < 20 * ((uint64_t)_i + 1); seed++) {
        rg_case drawn;
        AT_END(rg_destroy) rg_built built;
        rg_draw(&drawn, seed, 8);
        TEST_OK(rg_build(&built, &drawn, NULL));
        for (vpps_cell cell = 0; cell < built.model->n_cells; cell++) {
            const vpps_cell_needs needs = cells_recurrent(built.g[0], cell, 2);
            OWNED(vpps_compiled_cell) *c = cells_compile(built.g[0], cell, &needs);
            for (uint32_t v = 0; v < c->n_values; v++) {
                FREED char *text = vpps_value_text(built.model, c, v), *name = vpps_value_name(built.model, c, v);
                ck_assert(text && name && *text && *name);
                ck_assert_msg(!strchr(text, '$') && !strstr(text, "429496"), "%s: %s = %s", c->name, name, text);
            }
            FREED char *all = printed(built.model, c);
            check_says(all, "flops a vertex");
        }
    }
}

/* ---------------------------------------------------------------- what is counted */

/* Products of a graph with one vertex and a loss: at most as many as vpps_graph_cost counts, equally many without lists (products that belong to the
 * vertex are not repeated for each member). */
TEST_EACH(products_as_the_graph_counts, 0, N_CELLS) {
    AT_END(cells_close) cells x = cells_open();
    const vpps_cell cell = x.cell[_i];
    vpps_cell_needs needs = cells_needs();
    needs.gradient_in = 0; /* inputs are data */
    OWNED(vpps_compiled_cell) *c = cells_compile(x.g, cell, &needs);
    uint32_t members[VPPS_CELL_LISTS] = {0};
    const vpps_vertex v = cells_apply(x.g, cell, 3, members);
    const vpps_node first = x.g->vertices[v].first;
    vpps_node terms[VPPS_CELL_MOST];
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        uint32_t rows, cols;
        TEST_OK(vpps_node_shape(x.g, first + k, &rows, &cols));
        terms[k] = vpps_dot(x.g, first + k, vpps_zeros(x.g, rows, cols));
    }
    ck_assert_uint_ne(vpps_sum(x.g, c->n_outputs, terms), VPPS_NO_NODE);
    vpps_cost graph = {.size = sizeof graph};
    TEST_OK(vpps_graph_cost(x.g, &graph));
    const vpps_cell_cost cost = vpps_cost_of_cell(x.model, c);
    uint64_t products = 0;
    for (uint32_t axis = 0; axis <= c->n_lists; axis++)
        products += vpps_members(members, axis) *
                    (cost.forward.products[axis] + cost.backward.products[axis] + cost.parameters.products[axis]);
    if (x.model->cells[cell]->n_lists) {
        ck_assert_uint_le(products, graph.product_flops);
    } else {
        ck_assert_uint_eq(products, graph.product_flops);
    }
}

/* A stage's products, grouped by operands: gates that read the same value form one stack. */
TEST(stacks) {
    AT_END(cells_close) cells x = cells_open();
    const vpps_cell_needs needs = cells_recurrent(x.g, x.cell[CELL_gru], 2);
    OWNED(vpps_compiled_cell) *c = cells_compile(x.g, x.cell[CELL_gru], &needs);
    uint32_t sizes[5] = {0}; /* numbers of stacks by number of products */
    for (uint32_t v = 0; v < c->n_forward; v++) {
        if (c->values[v].kind != VPPS_VALUE_PRODUCT) continue;
        const vpps_cell_stack s = vpps_stack_of(c, v);
        ck_assert_uint_le(s.n, 4);
        ck_assert_uint_eq(s.rows, s.n * HIDDEN);
        ck_assert_uint_eq(s.cols, c->values[v].pass == VPPS_PASS_EAGER ? EMBED : HIDDEN);
        if (s.first == v) sizes[s.n]++;
    }
    ck_assert_uint_eq(sizes[1], 1); /* U_u (r * h) */
    ck_assert_uint_eq(sizes[2], 1); /* U_r, U_z */
    ck_assert_uint_eq(sizes[3], 1); /* W_r, W_z, W_u */
}

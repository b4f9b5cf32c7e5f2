/* child_sum_tree_lstm.c - a Child-Sum Tree-LSTM (Tai, Socher and Manning 2015, section 3.1) on trees whose nodes have any number of
 * children: formulas of AND and OR over true and false, with up to 5 operands and 4 levels. It learns to tell what a formula is, and is
 * right about at least 0.97 of 500 new ones.
 *
 *     cc child_sum_tree_lstm.c $(pkg-config --cflags --libs vpps) -o child_sum_tree_lstm && ./child_sum_tree_lstm
 */
#include "example.h"

enum { SYMBOLS = 4, FALSE_LEAF = 0, TRUE_LEAF, AND_NODE, OR_NODE };
enum { EMBED = 16, HIDDEN = 48, DEPTH = 4, OPERANDS = 5, BATCH = 32, BATCHES = 300, TEST = 500 };

typedef struct network {
    vpps_model *model;
    vpps_param E, W_i, W_o, W_u, W_f, U_i, U_o, U_u, U_f, b_i, b_o, b_u, b_f, W_s, b_s;
    vpps_cell node, head;
} network;

static void declare(network *n) {
    const vpps_init one = {.kind = VPPS_INIT_CONSTANT, .a = 1};
    struct {
        vpps_param *w, *u, *b;
        const char *names[3];
        const vpps_init *begin;
    } gates[] = {{&n->W_i, &n->U_i, &n->b_i, {"W_i", "U_i", "b_i"}, NULL},
                 {&n->W_o, &n->U_o, &n->b_o, {"W_o", "U_o", "b_o"}, NULL},
                 {&n->W_u, &n->U_u, &n->b_u, {"W_u", "U_u", "b_u"}, NULL},
                 {&n->W_f, &n->U_f, &n->b_f, {"W_f", "U_f", "b_f"}, &one}};
    TRY(vpps_model_create(&n->model, 1));
    TRY(vpps_add_lookup(n->model, &n->E, "E", SYMBOLS, EMBED, 1, NULL));
    for (int k = 0; k < 4; k++) {
        TRY(vpps_add_matrix(n->model, gates[k].w, gates[k].names[0], HIDDEN, EMBED, NULL));
        TRY(vpps_add_matrix(n->model, gates[k].u, gates[k].names[1], HIDDEN, HIDDEN, NULL));
        TRY(vpps_add_vector(n->model, gates[k].b, gates[k].names[2], HIDDEN, gates[k].begin));
    }
    TRY(vpps_add_matrix(n->model, &n->W_s, "W_s", 2, HIDDEN, NULL));
    TRY(vpps_add_vector(n->model, &n->b_s, "b_s", 2, NULL));
}

/* Equations 2 to 8. h and c are lists: of any number of children. */
static void record(network *n) {
    vpps_graph *g;
    TRY(vpps_cell_begin(n->model, "node", &g));
    const vpps_node x = vpps_lookup(g, n->E, vpps_pull_index(g));
    const vpps_node h = vpps_gather_list(g, 0, HIDDEN, 1), c = vpps_gather_list(g, 1, HIDDEN, 1);
    const vpps_node sum = vpps_sum(g, 1, &h);
    const vpps_node i = vpps_sigmoid(g, vpps_affine2(g, n->b_i, n->W_i, x, n->U_i, sum));
    const vpps_node o = vpps_sigmoid(g, vpps_affine2(g, n->b_o, n->W_o, x, n->U_o, sum));
    const vpps_node u = vpps_tanh(g, vpps_affine2(g, n->b_u, n->W_u, x, n->U_u, sum));
    const vpps_node f = vpps_sigmoid(g, vpps_affine2(g, n->b_f, n->W_f, x, n->U_f, h)); /* one for each child */
    const vpps_node kept = vpps_mul(g, f, c);
    const vpps_node state = vpps_add(g, vpps_mul(g, i, u), vpps_sum(g, 1, &kept));
    TRY(vpps_scatter(g, vpps_mul(g, o, vpps_tanh(g, state))));
    TRY(vpps_scatter(g, state));
    TRY(vpps_cell_end(g, &n->node));

    TRY(vpps_cell_begin(n->model, "head", &g));
    const vpps_node scores = vpps_affine1(g, n->b_s, n->W_s, vpps_gather(g, 0, 0, HIDDEN, 1));
    TRY(vpps_push(g, vpps_cross_entropy(g, scores, vpps_pull_index(g))));
    TRY(vpps_push(g, scores));
    TRY(vpps_cell_end(g, &n->head));
}

/* A random formula; its vertex, and what it is. */
static vpps_vertex add_formula(const network *n, vpps_graph *g, int depth, bool *value) {
    vpps_vertex children[OPERANDS];
    uint32_t symbol, count = 0;
    if (depth == 0 || draw(4) == 0) {
        symbol = draw(2) ? TRUE_LEAF : FALSE_LEAF;
        *value = symbol == TRUE_LEAF;
    } else {
        symbol = draw(2) ? AND_NODE : OR_NODE;
        *value = symbol == AND_NODE;
        const uint32_t operands = 2 + draw(OPERANDS - 1);
        for (; count < operands; count++) {
            bool operand;
            children[count] = add_formula(n, g, depth - 1, &operand);
            *value = symbol == AND_NODE ? *value && operand : *value || operand;
        }
    }
    return vpps_apply(g, VPPS_APPLICATION(.cell = n->node, .n_children = count, .children = children, .n_indices = 1,
                                          .indices = &symbol));
}

static vpps_vertex add_example(const network *n, vpps_graph *g, bool *value) {
    const vpps_vertex root = add_formula(n, g, DEPTH, value);
    const uint32_t label = *value;
    return vpps_apply(
        g, VPPS_APPLICATION(.cell = n->head, .n_children = 1, .children = &root, .n_indices = 1, .indices = &label));
}

static double accuracy(const network *n, vpps_handle *h, vpps_graph *g) {
    int right = 0;
    for (int k = 0; k < TEST; k++) {
        bool value;
        float scores[2];
        vpps_graph_clear(g);
        const vpps_node node = vpps_pushed(g, add_example(n, g, &value), 1);
        TRY(vpps_forward(h, g, 1, &node, (float *[]){scores}));
        right += (scores[1] > scores[0]) == value;
    }
    return (double)right / TEST;
}

int main(void) {
    network n;
    declare(&n);
    record(&n);
    vpps_options options;
    vpps_options_default(&options);
    options.optimizer.kind = VPPS_ADAM;
    options.optimizer.lr = 0.005f;
    vpps_handle *h;
    vpps_graph *g;
    TRY(vpps_handle_create(&h, n.model, &options));
    TRY(vpps_graph_create(&g, n.model));
    for (int batch = 1; batch <= BATCHES; batch++) {
        vpps_node losses[BATCH];
        float loss;
        vpps_graph_clear(g);
        for (int k = 0; k < BATCH; k++) {
            bool value;
            losses[k] = vpps_pushed(g, add_example(&n, g, &value), 0);
        }
        TRY(vpps_fb(h, g, vpps_average(g, BATCH, losses), &loss));
        if (batch % 100 == 0) printf("batch %d  loss %.4f\n", batch - 1, (double)loss);
    }
    const double right = accuracy(&n, h, g);
    vpps_graph_destroy(g);
    vpps_handle_destroy(h);
    vpps_model_destroy(n.model);
    return reached("accuracy", right, right >= 0.97);
}

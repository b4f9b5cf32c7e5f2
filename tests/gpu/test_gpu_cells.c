/* test_gpu_cells.c - cells on a GPU beside the double-precision reference: values, and the gradients of parameters and nodes. Software SIMT
 * watches its kernels here (simt.h). */
#include "common/episode.h"
#include "common/gpu_tests.h"
#include "gpu_zoo.h"

/* ---------------------------------------------------------------- matrices that are read at other elements */

typedef struct shape {
    uint32_t rows, cols, vertices;
} shape;

/* A cell's values: its parameters W and b, its child's vector x, and a state that it makes. */
typedef struct parts {
    vpps_graph *g;
    vpps_param W, b;
    vpps_node x, state;
    const shape *s;
} parts;

static vpps_node broadcast(const parts *p, vpps_node x) { return vpps_broadcast(p->g, x, p->s->rows, p->s->cols); }
static vpps_node affine(const parts *p) { return vpps_affine1(p->g, p->b, p->W, p->x); }
static vpps_node outer(const parts *p, vpps_node x) { return vpps_matmul(p->g, affine(p), vpps_transpose(p->g, x)); }

static vpps_node broadcast_affine(const parts *p) { return broadcast(p, affine(p)); }
static vpps_node turned_affine(const parts *p) { return vpps_transpose(p->g, broadcast_affine(p)); }
static vpps_node broadcast_vector(const parts *p) { return broadcast(p, vpps_parameter(p->g, p->b)); }
static vpps_node times_ones(const parts *p) {
    return vpps_matmul(p->g, vpps_parameter(p->g, p->W), vpps_constant(p->g, p->s->rows, p->s->cols, 1));
}
static vpps_node outer_product(const parts *p) { return outer(p, p->x); }
static vpps_node outer_state(const parts *p) { return outer(p, p->state); }
static vpps_node sum_of_turned(const parts *p) {
    const vpps_node y = vpps_mul(p->g, vpps_parameter(p->g, p->W), vpps_broadcast(p->g, p->x, p->s->rows, p->s->rows));
    return vpps_tanh(p->g, vpps_add(p->g, vpps_transpose(p->g, vpps_tanh(p->g, y)), y));
}
static vpps_node gram(const parts *p) {
    const vpps_node y = vpps_add(p->g, outer_product(p), vpps_parameter(p->g, p->W));
    return vpps_matmul(p->g, vpps_transpose(p->g, y), y);
}
static vpps_node reshaped(const parts *p) {
    const vpps_node y = vpps_tanh(p->g, broadcast_affine(p));
    return vpps_mul(p->g, vpps_reshape(p->g, vpps_transpose(p->g, y), p->s->rows, p->s->cols), y);
}
static vpps_node (*const makes[])(const parts *) = {broadcast_affine, turned_affine, broadcast_vector,
                                                    times_ones,       outer_product, outer_state,
                                                    sum_of_turned,    gram,          reshaped};

/* Pushes the transpose of a matrix of which the state is a part: the matrix is kept until the states of all vertices are made, and the
 * transpose may lie in its place. */
static vpps_node turn(parts *p) {
    const vpps_node y = vpps_broadcast(p->g, vpps_transpose(p->g, p->x), p->s->cols, p->s->rows);
    p->state = vpps_transpose(p->g, vpps_slice(p->g, y, 0, 1));
    return vpps_transpose(p->g, y);
}

/* Cell number `which` has one of `makes`, the last one `turn`. */
static vpps_cell record(vpps_model *model, uint32_t which, const shape *s) {
    const vpps_init init = {.kind = VPPS_INIT_UNIFORM, .a = -0.5f, .b = 0.5f};
    parts p = {.s = s};
    char name[16];
    snprintf(name, sizeof name, "W%u", which);
    TEST_OK(vpps_add_matrix(model, &p.W, name, s->rows, s->rows, &init));
    snprintf(name, sizeof name, "b%u", which);
    TEST_OK(vpps_add_vector(model, &p.b, name, s->rows, &init));
    snprintf(name, sizeof name, "cell%u", which);
    p.g = begin_cell(model, name);
    p.x = vpps_gather(p.g, 0, 0, s->rows, 1);
    p.state = vpps_tanh(p.g, affine(&p));
    const vpps_node made = which < VPPS_COUNT(makes) ? makes[which](&p) : turn(&p);
    TEST_OK(vpps_scatter(p.g, p.state));
    TEST_OK(vpps_push(p.g, made));
    return end_cell(p.g);
}

static vpps_node draw(vpps_graph *g, uint32_t rows, uint32_t cols, uint64_t *random) {
    FREED float *data = need(calloc((size_t)rows * cols, sizeof *data));
    for (uint32_t k = 0; k < rows * cols; k++) data[k] = 2 * vpps_random_unit(random) - 1;
    return vpps_input(g, rows, cols, data);
}

/* A chain of vertices of each cell; the loss is of all that they push. */
static vpps_node build_chains(training *t, const shape *s) {
    enum { CELLS = VPPS_COUNT(makes) + 1, MOST = 32 };
    vpps_cell cells[CELLS];
    vpps_node terms[CELLS * MOST];
    uint32_t n = 0;
    uint64_t random = 1;
    for (uint32_t which = 0; which < CELLS; which++) cells[which] = record(t->model, which, s);
    for (uint32_t which = 0; which < CELLS; which++) {
        const vpps_node begin = draw(t->g, s->rows, 1, &random);
        vpps_vertex at = vpps_source(t->g, 1, &begin);
        for (uint32_t i = 0; i < s->vertices; i++) {
            uint32_t rows, cols;
            at = vpps_apply(t->g, VPPS_APPLICATION(.cell = cells[which], .n_children = 1, .children = &at));
            const vpps_node made = vpps_pushed(t->g, at, 0);
            TEST_OK(vpps_node_shape(t->g, made, &rows, &cols));
            terms[n++] = vpps_dot(t->g, made, draw(t->g, rows, cols, &random));
        }
    }
    const vpps_node loss = vpps_sum(t->g, n, terms);
    TEST_OK(vpps_graph_status(t->g));
    return loss;
}

static const shape shapes[] = {{3, 3, 3},   {2, 5, 2}, {12, 12, 29}, {11, 11, 32},
                               {33, 33, 2}, {7, 1, 3}, {1, 4, 2},    {2, 2, 5}};

TEST_GROUP("matrices", .seconds = 300);

GPU_EACH(other_elements_are_read_in_time, 1, VPPS_COUNT(shapes)) {
    AT_END(training_end) training t = training_of(7);
    const vpps_node loss = build_chains(&t, &shapes[_i]);
    const episode x = {.model = t.model, .g = {t.g}, .loss = {loss}, .n_batches = 1};
    const vpps_options o = gpu_options(&zoo_layouts[0], VPPS_SGD);
    expect_agreement(&x, &o, &zoo_layouts[0], EPISODE_FORWARD | EPISODE_PARTS | EPISODE_REQUEST, NULL);
}

int main(void) {
    setenv("VPPS_SIMT_WATCH", "1", 0);
    test_in_parts();
    return gpu_main("gpu cells");
}

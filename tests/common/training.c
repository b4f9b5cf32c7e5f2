/* training.c - see training.h. */
#include "common/training.h"

#include "graph/model.h"
#include "runtime/cpu/cpu.h"
#include "runtime/handle.h"

training training_of(uint64_t seed) {
    training t = {.h = NULL};
    TEST_OK(vpps_model_create(&t.model, seed));
    TEST_OK(vpps_graph_create(&t.g, t.model));
    return t;
}

void training_start(training *t, const vpps_options *options) { TEST_OK(vpps_handle_create(&t->h, t->model, options)); }

void training_end(training *t) {
    vpps_handle_destroy(t->h);
    vpps_graph_destroy(t->g);
    vpps_model_destroy(t->model);
}

vpps_options default_options(void) {
    vpps_options o;
    vpps_options_default(&o);
    return o;
}

vpps_graph *begin_cell(vpps_model *model, const char *name) {
    vpps_graph *recorder;
    TEST_OK(vpps_cell_begin(model, name, &recorder));
    return recorder;
}

vpps_cell end_cell(vpps_graph *recorder) {
    vpps_cell cell;
    TEST_OK(vpps_cell_end(recorder, &cell));
    return cell;
}

void share_rows(vpps_handle *h) {
    vpps_cpu *cpu = (vpps_cpu *)h->device;
    while (strcmp(vpps_profile_current(&cpu->device.profile)->split, "rows") != 0) cpu->device.profile.current++;
    cpu->target.rows.enough = 16;
}

float latest_loss(vpps_handle *h) {
    float value;
    TEST_OK(vpps_sync_latest_loss(h, &value));
    return value;
}

float train_batch(vpps_handle *h, vpps_graph *g, vpps_node loss) {
    TEST_OK(vpps_fb(h, g, loss, NULL));
    return latest_loss(h);
}

float infer(vpps_handle *h, vpps_graph *g, vpps_node x) {
    float value;
    TEST_OK(vpps_forward(h, g, 1, &x, (float *[]){&value}));
    return value;
}

vpps_stats stats_of(vpps_handle *h) {
    vpps_stats stats = {.size = sizeof stats};
    TEST_OK(vpps_handle_stats(h, &stats));
    return stats;
}

float *model_values(const vpps_model *model, size_t *count) {
    *count = 0;
    for (uint32_t p = 0; p < model->n_params; p++) *count += vpps_param_elems(&model->params[p]);
    float *values = malloc((*count + 1) * sizeof *values), *to = values;
    ck_assert_ptr_nonnull(values);
    for (uint32_t p = 0; p < model->n_params; p++) {
        const size_t elems = vpps_param_elems(&model->params[p]);
        memcpy(to, model->params[p].values, elems * sizeof *to);
        to += elems;
    }
    return values;
}

float *handle_values(const vpps_model *model, vpps_handle *h, size_t *count) {
    TEST_OK(vpps_read_parameters(h));
    return model_values(model, count);
}

vpps_gradient param_gradient(vpps_model *model, vpps_param p) {
    vpps_gradient gradient = {.size = sizeof gradient};
    TEST_OK(vpps_param_gradient(model, p, &gradient));
    return gradient;
}

const float *gradient_of(const training *t, vpps_param p) { return param_gradient(t->model, p).values; }

bool models_are_equal(const vpps_model *a, const vpps_model *b, bool states) {
    bool equal = true;
    ck_assert_uint_eq(a->n_params, b->n_params);
    for (uint32_t p = 0; p < a->n_params; p++) {
        const vpps_parameter_data *x = &a->params[p], *y = &b->params[p];
        const size_t bytes = vpps_param_elems(x) * sizeof(float);
        equal &= !memcmp(x->values, y->values, bytes) && (!states || !x->states[0] || x->updates == y->updates);
        for (int s = 0; s < VPPS_MAX_STATES && states; s++) {
            ck_assert_int_eq(!x->states[s], !y->states[s]);
            equal &= !x->states[s] || !memcmp(x->states[s], y->states[s], bytes);
        }
    }
    return equal;
}

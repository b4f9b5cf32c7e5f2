/* gradients.c - the copies of gradients on the host, which vpps_read_gradients fills in. */
#include "graph/model.h"

#include <math.h>

vpps_status vpps_need_gradient(vpps_parameter_data *p, bool has_gradient) {
    const size_t n = vpps_param_elems(p);
    if (!VPPS_RESERVE(p->gradient, n)) return vpps_fail(VPPS_MEMORY, "gradient of %s: out of memory", p->name);
    p->has_gradient = has_gradient;
    if (!has_gradient) memset(p->gradient, 0, n * sizeof *p->gradient);
    return VPPS_OK;
}

/* The number of a lookup table's entry, and that number's index in the caller's array. */
typedef struct numbered_entry {
    uint32_t entry, number;
} numbered_entry;

vpps_status vpps_take_entry_gradients(vpps_parameter_data *p, uint32_t n, const uint32_t *entries,
                                      const float *gradients) {
    const size_t words = (size_t)p->rows * p->cols;
    numbered_entry *order = malloc((n + (size_t)1) * sizeof *order);
    if (!order || !VPPS_RESERVE(p->gradient, n * words + 1) || !VPPS_RESERVE(p->entries, n + (size_t)1)) {
        free(order);
        return vpps_fail(VPPS_MEMORY, "gradient of %s: out of memory", p->name);
    }
    for (uint32_t i = 0; i < n; i++) order[i] = (numbered_entry){entries[i], i};
    qsort(order, n, sizeof *order, vpps_by_word);
    for (uint32_t i = 0; i < n; i++) {
        p->entries[i] = order[i].entry;
        memcpy(p->gradient + i * words, gradients + order[i].number * words, words * sizeof *gradients);
    }
    p->n_entries = n;
    p->has_gradient = n > 0;
    free(order);
    return VPPS_OK;
}

bool vpps_writes_gradient(const vpps_parameter_data *p) {
    bool any = p->has_gradient;
    for (size_t i = 0; p->gradient && i < vpps_param_elems(p) && !any; i++) any = p->gradient[i] != 0;
    return p->gradient && any;
}

static bool is_param(const vpps_model *model, vpps_param param) { return param < model->n_params; }

static vpps_status give(const vpps_gradient *gradient, vpps_gradient *out) {
    return vpps_give_struct(out, gradient, sizeof *gradient, sizeof *gradient, "vpps_gradient");
}

vpps_status vpps_param_gradient(vpps_model *model, vpps_param param, vpps_gradient *out) {
    VPPS_NEED(model, out);
    VPPS_TRY(give(&(vpps_gradient){0}, out));
    if (!is_param(model, param))
        return vpps_fail(VPPS_ARGUMENT, "gradient: %u is not a parameter; the model has %zu", param, model->n_params);
    const vpps_parameter_data *p = &model->params[param];
    if (!p->gradient)
        return vpps_fail(VPPS_STATE, "gradient of %s: none was read; expected vpps_read_gradients before", p->name);
    return give(&(vpps_gradient){.values = p->gradient,
                                 .entries = p->kind == VPPS_LOOKUP ? p->entries : NULL,
                                 .n = p->kind == VPPS_LOOKUP ? p->n_entries : p->has_gradient},
                out);
}

/* Returns the sum of squares of the host's copy of a gradient; 0: the host has no copy. */
static double sum_of_squares(const vpps_parameter_data *p) {
    const size_t n = p->kind == VPPS_LOOKUP ? p->n_entries * (size_t)p->rows * p->cols : vpps_param_elems(p);
    double sum = 0;
    for (size_t i = 0; p->gradient && i < n; i++) sum += (double)p->gradient[i] * (double)p->gradient[i];
    return sum;
}

vpps_status vpps_gradient_norm(const vpps_model *model, vpps_param param, double *out) {
    VPPS_NEED(model, out);
    *out = 0;
    if (param != VPPS_NO_PARAM && !is_param(model, param))
        return vpps_fail(VPPS_ARGUMENT, "gradient: %u is not a parameter; the model has %zu", param, model->n_params);
    double sum = 0;
    for (vpps_param p = 0; p < model->n_params; p++)
        if (param == VPPS_NO_PARAM || param == p) sum += sum_of_squares(&model->params[p]);
    *out = sqrt(sum);
    return VPPS_OK;
}

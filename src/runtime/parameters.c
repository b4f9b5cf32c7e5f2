/* parameters.c - copies parameters and gradients between a handle's device and the model. */
#include "runtime/handle.h"
#include "runtime/layout.h"

vpps_status vpps_device_open(vpps_device *d, const vpps_model *model) {
    d->updates = calloc(model->n_params + 1, sizeof *d->updates);
    if (!d->updates) return vpps_fail(VPPS_MEMORY, "%s: out of memory", d->table->name);
    return vpps_row_sums_create(&d->row_sums, model);
}

void vpps_device_close(vpps_device *d) {
    vpps_row_sums_destroy(d->row_sums);
    free(d->updates);
}

/* Returns whether the device has a parameter's array `which`: its values, or a state of the optimiser; false for gradients. */
static bool holds(const vpps_device *d, vpps_param p, uint32_t which) {
    return which != VPPS_ARRAY_GRADIENT && d->table->holds(d, p, which);
}

vpps_status vpps_device_read_parameters(vpps_device *d, vpps_model *model, bool states) {
    for (uint32_t p = 0; p < model->n_params; p++) {
        vpps_parameter_data *data = &model->params[p];
        if (states) data->updates = d->updates[p];
        for (uint32_t i = 0; i < VPPS_ARRAY_STATES + (states ? VPPS_MAX_STATES : 0); i++) {
            float **to = i < VPPS_ARRAY_STATES ? &data->values : &data->states[i - VPPS_ARRAY_STATES];
            if (!holds(d, p, i)) continue;
            if (!*to) *to = malloc(vpps_param_elems(data) * sizeof **to);
            if (!*to) return vpps_fail(VPPS_MEMORY, "parameter %s: out of memory", data->name);
            VPPS_TRY(d->table->move(d, p, i, *to, false));
        }
    }
    return VPPS_OK;
}

static vpps_status settle(vpps_device *d) { return d->table->settle ? d->table->settle(d) : VPPS_OK; }

vpps_status vpps_device_write_parameters(vpps_device *d, const vpps_model *model, vpps_optimizer_kind kind) {
    const bool fits = model->optimizer == kind;
    for (uint32_t p = 0; p < model->n_params; p++) {
        const vpps_parameter_data *data = &model->params[p];
        d->updates[p] = fits ? data->updates : 0;
        for (uint32_t i = 0; i < VPPS_ARRAY_STATES + VPPS_MAX_STATES; i++) {
            float *from = i < VPPS_ARRAY_STATES ? data->values : fits ? data->states[i - VPPS_ARRAY_STATES] : NULL;
            if (holds(d, p, i)) VPPS_TRY(d->table->move(d, p, i, from, true));
        }
    }
    return settle(d);
}

vpps_status vpps_zero_gradients(vpps_handle *h) {
    VPPS_TRY(vpps_handle_idle(h, "vpps_zero_gradients"));
    h->n_backward = 0;
    h->device->table->zero_gradients(h->device);
    return VPPS_OK;
}

vpps_status vpps_read_gradients(vpps_handle *h) {
    VPPS_TRY(vpps_handle_idle(h, "vpps_read_gradients"));
    vpps_device *d = h->device;
    VPPS_TRY(d->table->take_gradients(d));
    for (uint32_t p = 0; p < h->model->n_params; p++) {
        vpps_parameter_data *data = &h->model->params[p];
        if (data->kind == VPPS_LOOKUP) {
            const vpps_row_segment s = vpps_row_sums_of(d->row_sums, p);
            VPPS_TRY(vpps_take_entry_gradients(data, s.n, s.rows, s.gradients));
            continue;
        }
        VPPS_TRY(vpps_need_gradient(data, d->table->holds(d, p, VPPS_ARRAY_GRADIENT)));
        if (data->has_gradient) VPPS_TRY(d->table->move(d, p, VPPS_ARRAY_GRADIENT, data->gradient, false));
    }
    return VPPS_OK;
}

vpps_status vpps_write_gradients(vpps_handle *h) {
    VPPS_TRY(vpps_handle_idle(h, "vpps_write_gradients"));
    if (!h->n_backward)
        return vpps_fail(VPPS_STATE, "write: there are no gradients to replace; expected vpps_backward before");
    vpps_device *d = h->device;
    VPPS_TRY(d->table->take_gradients(d));
    for (uint32_t p = 0; p < h->model->n_params; p++) {
        const vpps_parameter_data *data = &h->model->params[p];
        if (data->kind == VPPS_LOOKUP) {
            vpps_row_sums_set(d->row_sums, p, data->n_entries, data->entries, data->gradient);
        } else if (vpps_writes_gradient(data)) {
            VPPS_TRY(d->table->move(d, p, VPPS_ARRAY_GRADIENT, data->gradient, true));
        }
    }
    return settle(d);
}

vpps_status vpps_read_parameters(vpps_handle *h) {
    VPPS_TRY(vpps_handle_idle(h, "vpps_read_parameters"));
    return vpps_device_read_parameters(h->device, h->model, true);
}

vpps_status vpps_write_parameters(vpps_handle *h) {
    VPPS_TRY(vpps_handle_idle(h, "vpps_write_parameters"));
    VPPS_TRY(vpps_need_states(h->model, vpps_optimizer_states(h->options.optimizer.kind), false));
    return vpps_device_write_parameters(h->device, h->model, h->options.optimizer.kind);
}

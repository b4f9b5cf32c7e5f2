/* parameters.c - copies parameters and gradients between a handle's device and the model. */
#include "runtime/handle.h"
#include "runtime/layout.h"

vpps_status vpps_zero_gradients(vpps_handle *h) {
    VPPS_TRY(vpps_handle_idle(h, "vpps_zero_gradients"));
    h->n_backward = 0;
    h->device->table->zero_gradients(h->device);
    return VPPS_OK;
}

vpps_status vpps_read_gradients(vpps_handle *h) {
    VPPS_TRY(vpps_handle_idle(h, "vpps_read_gradients"));
    return h->device->table->read_gradients(h->device, h->model);
}

vpps_status vpps_write_gradients(vpps_handle *h) {
    VPPS_TRY(vpps_handle_idle(h, "vpps_write_gradients"));
    if (!h->n_backward)
        return vpps_fail(VPPS_STATE, "write: there are no gradients to replace; expected vpps_backward before");
    return h->device->table->write_gradients(h->device, h->model);
}

vpps_status vpps_read_parameters(vpps_handle *h) {
    VPPS_TRY(vpps_handle_idle(h, "vpps_read_parameters"));
    return h->device->table->read_parameters(h->device, h->model, true);
}

vpps_status vpps_write_parameters(vpps_handle *h) {
    VPPS_TRY(vpps_handle_idle(h, "vpps_write_parameters"));
    VPPS_TRY(vpps_need_states(h->model, vpps_optimizer_states(h->options.optimizer.kind), false));
    return h->device->table->write_parameters(h->device, h->model);
}

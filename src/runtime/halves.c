/* halves.c - training steps whose forward and backward are separate calls. The first call runs the batch's tasks of
 * forward. Their results stay in device memory, so other calls that need the device fail until the second call. */
#include "runtime/handle.h"

#include <inttypes.h>
#include <math.h>

vpps_status vpps_handle_end_forward(vpps_handle *h, vpps_graph *g, uint64_t batch, uint64_t *device_ns) {
    const vpps_batch *b = h->programs[h->next];
    vpps_outcome outcome;
    vpps_handle_wait(h, &outcome);
    vpps_keep_launched(h, g, b);
    VPPS_TRY(vpps_handle_break(h, outcome.status, batch, outcome.message));
    VPPS_TRY(vpps_handle_break(h, vpps_keep_finished(h), batch, vpps_error_message()));
    *device_ns = outcome.device_ns;
    vpps_asked_place(&h->asked, b, g);
    return vpps_handle_break(h, vpps_asked_read_values(&h->asked, h->device), batch, vpps_error_message());
}

vpps_status vpps_step_forward(vpps_handle *h, vpps_graph *g, const vpps_request *request) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_step_forward"));
    VPPS_NEED(g, request);
    h->asked.pointers = h->pointers;
    VPPS_TRY(vpps_asked_take(&h->asked, "step_forward", request, VPPS_NO_NODE));
    if (!h->asked.n_values && h->stats.processes < 2)
        return vpps_fail(VPPS_ARGUMENT, "step_forward: the request names no values; expected the nodes to go on from");
    VPPS_TRY(vpps_graph_status(g));
    VPPS_TRY(vpps_asked_check(&h->asked, h->device, g));
    VPPS_TRY(vpps_handle_whole(h));
    h->open.goal = h->asked.request.no_parameters ? VPPS_GOAL_NODES : VPPS_GOAL_GRADIENTS;
    vpps_batch_request asked = vpps_handle_request(h, VPPS_NO_NODE, h->open.goal);
    vpps_handle_ask(h, &asked);
    asked.halves = true;
    asked.n_given = asked.n_outputs;
    VPPS_TRY(vpps_handle_train(h, g, &asked, NULL));
    VPPS_TRY(vpps_handle_end_forward(h, g, h->model->batches + 1, &h->open.forward_ns));
    h->open.number = ++h->open.n_steps;
    return VPPS_OK;
}

static bool is_finite(uint32_t n, const float *x) {
    bool finite = true;
    for (uint32_t i = 0; i < n; i++) finite &= isfinite(x[i]) != 0;
    return finite;
}

/* Copies the caller's gradients from host memory to the device. Sets the step's loss to 0, or to NaN if a gradient is not finite; with NaN,
 * the update is skipped as after a non-finite loss. */
static vpps_status give(vpps_handle *h, const float *const *gradients) {
    const vpps_given_array *to = vpps_batch_given(h->programs[h->next]);
    if (!VPPS_RESERVE(h->open.given, to->words))
        return vpps_fail(VPPS_MEMORY, "step_backward: out of memory for %u gradients", to->n);
    memset(h->open.given, 0, to->words * sizeof *h->open.given);
    for (uint32_t i = 0; i < to->n; i++) {
        const vpps_given *given = &to->gradients[i];
        if (!gradients[i]) continue;
        memcpy(h->open.given + given->at, gradients[i], given->words * sizeof **gradients);
        if (!is_finite(given->words, gradients[i])) h->open.given[0] = NAN;
    }
    return vpps_handle_break(h, h->device->table->write(h->device, to->first, to->words, h->open.given),
                             h->model->batches + 1, vpps_error_message());
}

/* Copies the caller's gradients from arrays in the device's memory, without a check for non-finite ones. Sets the loss to 0. */
static vpps_status give_arrays(vpps_handle *h, const float *const *gradients) {
    const vpps_given_array *to = vpps_batch_given(h->programs[h->next]);
    vpps_pool_copy *copies = h->asked.reads; /* reuses the array of forward's copies, which are done */
    const float loss = 0;
    char name[64];
    for (uint32_t i = 0; i < to->n; i++) {
        const vpps_given *given = &to->gradients[i];
        copies[i] = (vpps_pool_copy){to->first + given->at, given->words, (float *)(uintptr_t)gradients[i]};
        snprintf(name, sizeof name, "step_backward: gradients[%u]", i);
        if (gradients[i]) VPPS_TRY(vpps_check_array(h->device, &h->pointers, gradients[i], given->words, name));
    }
    vpps_status status = h->device->table->write(h->device, to->first, 1, &loss);
    if (status == VPPS_OK) status = h->device->table->trade(h->device, true, to->n, copies, h->pointers.stream);
    return vpps_handle_break(h, status, h->model->batches + 1, vpps_error_message());
}

static vpps_status check_open(const vpps_handle *h, const char *call) {
    VPPS_TRY(vpps_handle_here(h, call));
    if (h->open.number) return VPPS_OK;
    return vpps_fail(VPPS_STATE, "%s: no step is open; expected vpps_step_forward before", call);
}

vpps_status vpps_step_backward(vpps_handle *h, uint32_t n, const float *const *gradients) {
    VPPS_TRY(vpps_handle_here(h, "vpps_step_backward"));
    if (n) VPPS_NEED(gradients);
    VPPS_TRY(check_open(h, "vpps_step_backward"));
    if (n != h->asked.n_values)
        return vpps_fail(VPPS_ARGUMENT, "step_backward: %u gradients; expected %u, one for each value of step %" PRIu64,
                         n, h->asked.n_values, h->open.number);
    if (h->pointers.on_device) h->asked.pointers.stream = h->pointers.stream;
    VPPS_TRY(h->pointers.on_device ? give_arrays(h, gradients) : give(h, gradients));
    h->programs[h->next]->half = VPPS_BACKWARD_HALF;
    VPPS_TRY(vpps_handle_launch(h, h->model->batches + 1));
    h->open.number = 0;
    h->n_backward += h->open.goal == VPPS_GOAL_GRADIENTS;
    vpps_handle_note_flight(h, h->model->batches + 1, h->open.goal);
    if (!h->asked.n_gradients) return VPPS_OK;
    VPPS_TRY(vpps_handle_idle(h, "vpps_step_backward"));
    return vpps_handle_break(h, vpps_asked_read_gradients(&h->asked, h->device), h->latest_number,
                             vpps_error_message());
}

vpps_status vpps_step_drop(vpps_handle *h) {
    VPPS_TRY(check_open(h, "vpps_step_drop"));
    h->open.number = h->open.forward_ns = 0;
    return VPPS_OK;
}

/* inference.c - handles for inference beside a handle that trains, whose parameters they get as snapshots. */
#include "runtime/handle.h"

vpps_status vpps_publish_parameters(vpps_handle *h) {
    VPPS_TRY(vpps_handle_idle(h, "vpps_publish_parameters"));
    if (!h->snapshot) return VPPS_OK; /* without inference handles nobody needs a copy of the parameters */
    VPPS_TRY(vpps_device_read_parameters(h->device, vpps_snapshot_spare(h->snapshot), false));
    vpps_snapshot_publish(h->snapshot);
    return VPPS_OK;
}

vpps_status vpps_handle_create_inference(vpps_handle **out, vpps_handle *trainer, const vpps_options *options) {
    VPPS_NEED(out);
    *out = NULL;
    VPPS_TRY(vpps_handle_trains(trainer, "vpps_handle_create_inference"));
    if (trainer->model->shards > 1)
        return vpps_fail(VPPS_STATE, "handle: lookup tables are shared out over processes; expected whole ones");
    if (!trainer->snapshot) VPPS_TRY(vpps_snapshot_create(&trainer->snapshot, trainer->model));
    VPPS_TRY(vpps_publish_parameters(trainer));
    return vpps_handle_open(out, trainer->model, options, trainer->snapshot);
}

vpps_status vpps_handle_refresh(vpps_handle *h) {
    if (!h->infers || vpps_snapshot_version(h->snapshot) == h->version) return VPPS_OK;
    const vpps_model *parameters = vpps_snapshot_lock(h->snapshot, &h->version);
    const vpps_status status = vpps_device_write_parameters(h->device, parameters, h->options.optimizer.kind);
    vpps_snapshot_unlock(h->snapshot);
    if (status != VPPS_OK) h->version = 0; /* after a failure the next call copies all parameters */
    return status;
}

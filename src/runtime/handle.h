/* handle.h - a model, a device, and two schedulers: one makes the next script while the other's runs. */
#ifndef VPPS_HANDLE_H
#define VPPS_HANDLE_H

#include "nodes/script.h"
#include "runtime/device.h"

struct vpps_handle {
    vpps_model *model;
    vpps_options options;
    vpps_device *device;
    vpps_plan plan;
    vpps_scheduler *schedulers[2];
    uint32_t next;       /* scheduler for the next script; the other's may be in flight */
    bool in_flight;      /* a training batch was launched and its outcome is not taken yet */
    bool broken;         /* the device failed: nothing more runs */
    vpps_outcome latest; /* of the latest training batch taken */
    uint64_t latest_number;
    vpps_status pending; /* a failed batch's, not reported yet; its message is in latest */
    vpps_stats stats;
};

/* Takes the outcome of the batch in flight, waiting for it. */
void vpps_handle_settle(vpps_handle *h);

/* OK, or the failure that an earlier batch left, once. */
vpps_status vpps_handle_report(vpps_handle *h);

#endif

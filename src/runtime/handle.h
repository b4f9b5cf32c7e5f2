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
    vpps_outcome latest; /* of the latest training batch taken */
    uint64_t latest_number;
    bool pending;       /* the latest batch failed, and nobody was told yet */
    vpps_status broken; /* not OK: the device failed, and nothing more runs; the message is in `failure` */
    char failure[VPPS_MESSAGE_BYTES + 32];
    vpps_stats stats;
};

/* Takes the outcome of the batch in flight, waiting for it. */
void vpps_handle_settle(vpps_handle *h);

#endif

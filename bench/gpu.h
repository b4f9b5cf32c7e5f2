/* gpu.h - the parts of bench_gpu. Every measurement is a JSON object on a line of stdout. */
#ifndef VPPS_BENCH_GPU_H
#define VPPS_BENCH_GPU_H

#include "base/base.h"
#include "runtime/device.h"
#include "runtime/gpu/driver.h"

#include <jansson.h>

typedef struct gpu_settings {
    const char *device;       /* "cuda", "simt" */
    const char *trees;        /* file; NULL: generated ListOps */
    const char *sentences;    /* file; NULL: generated ones */
    double seconds;           /* of training, for every batch size and round */
    uint32_t least, most;     /* batches that the model of a GPU trains */
    uint32_t hidden;          /* the only size that it does; 0: all */
    uint32_t groups;          /* of VPs there; 0: as the device chooses */
    vpps_precision precision; /* of products there */
    const char *network;      /* the only one that it does; NULL: all */
} gpu_settings;

/* Median, lowest and highest of n > 0 figures, which are sorted. */
typedef struct gpu_figure {
    double median, low, high;
} gpu_figure;
gpu_figure gpu_figure_of(double *x, size_t n);

/* [median, low, high] */
json_t *gpu_figure_json(gpu_figure f);

/* Writes the object, which it frees, as a line. Fails with IO, or MEMORY where object is NULL. */
vpps_status gpu_emit(json_t *object);

/* The driver of a device's name. */
const vpps_driver_table *gpu_driver_of(const char *device);

vpps_status gpu_bench_latency(const gpu_settings *settings);  /* gpu_latency.c */
vpps_status gpu_bench_training(const gpu_settings *settings); /* gpu_training.c */
vpps_status gpu_bench_split(const gpu_settings *settings);    /* gpu_split.c */
vpps_status gpu_bench_model(const gpu_settings *settings);    /* gpu_model.c: on a model of a GPU */

#endif

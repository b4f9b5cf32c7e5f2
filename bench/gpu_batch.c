/* gpu_batch.c - see gpu_batch.h. */
#include "gpu_batch.h"

vpps_status gpu_batch_open(gpu_batch *b, const char *trees, uint32_t hidden) {
    *b = (gpu_batch){0};
    vpps_options_default(&b->options);
    vpps_gpu_layout *layout = &b->layout;
    vpps_trial choices[VPPS_GPU_TRIALS] = {{.size = sizeof *choices}};
    VPPS_TRY(workload_create(&b->w, trees, hidden, hidden));
    VPPS_TRY(vpps_machine_named(&b->machine, "sm_90", 132));
    VPPS_TRY(vpps_gpu_lay_out(layout, b->w.model, &b->options, &b->machine, "bench"));
    vpps_gpu_choices(&b->options, choices);
    b->choice = choices[0];
    layout->tasks.row_unit = b->choice.rpw;
    return vpps_batch_create(&b->batch);
}

void gpu_batch_close(gpu_batch *b) {
    vpps_batch_destroy(b->batch);
    vpps_types_free(&b->types);
    vpps_gpu_layout_free(&b->layout);
    workload_destroy(&b->w);
}

static uint64_t thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

vpps_status gpu_batch_make(gpu_batch *b, uint32_t n) {
    vpps_batch_request request = {.optimizer = &b->options.optimizer, .guard = true, .step = 1};
    const uint64_t t0 = thread_ns();
    VPPS_TRY(workload_batch(&b->w, n, &request.loss));
    const uint64_t t1 = thread_ns();
    VPPS_TRY(vpps_schedule_batch(b->batch, &b->types, &b->layout.tasks, b->w.g, &request));
    b->build_ns = (double)(t1 - t0);
    b->script_ns = (double)(thread_ns() - t1);
    return VPPS_OK;
}

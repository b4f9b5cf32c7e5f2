/* maker.c - see maker.h. */
#include "maker.h"

static vpps_status open_workload(maker *m, const char *trees, uint32_t hidden) {
    *m = (maker){0};
    vpps_options_default(&m->options);
    VPPS_TRY(workload_create(&m->w, trees, hidden, hidden));
    return vpps_batch_create(&m->batch);
}

vpps_status maker_open_cpu(maker *m, const char *trees, uint32_t hidden, uint32_t vps) {
    vpps_plan unused;
    VPPS_TRY(open_workload(m, trees, hidden));
    m->options.vps = vps;
    VPPS_TRY(vpps_device_cpu.create(&m->cpu, m->w.model, &m->options, &unused));
    m->plan = vpps_device_cpu.machine(m->cpu);
    return VPPS_OK;
}

vpps_status maker_open_gpu(maker *m, const char *trees, uint32_t hidden) {
    vpps_trial choices[VPPS_GPU_TRIALS] = {{.size = sizeof *choices}};
    VPPS_TRY(open_workload(m, trees, hidden));
    VPPS_TRY(vpps_machine_named(&m->machine, "sm_90", 132));
    VPPS_TRY(vpps_gpu_lay_out(&m->layout, m->w.model, &m->options, &m->machine, "bench"));
    vpps_gpu_choices(&m->options, choices);
    m->choice = choices[0];
    m->layout.tasks.row_unit = m->choice.rpw;
    m->plan = &m->layout.tasks;
    return VPPS_OK;
}

void maker_close(maker *m) {
    vpps_batch_destroy(m->batch);
    vpps_types_free(&m->types);
    if (m->cpu) vpps_device_cpu.destroy(m->cpu);
    vpps_gpu_layout_free(&m->layout);
    workload_destroy(&m->w);
}

static uint64_t thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

vpps_status maker_make(maker *m, uint32_t n) {
    vpps_batch_request request = {.optimizer = &m->options.optimizer, .guard = true, .step = 1};
    const uint64_t t0 = thread_ns();
    VPPS_TRY(workload_batch(&m->w, n, &request.loss));
    const uint64_t t1 = thread_ns();
    VPPS_TRY(vpps_schedule_batch(m->batch, &m->types, m->plan, m->w.g, &request));
    m->build_ns = (double)(t1 - t0);
    m->script_ns = (double)(thread_ns() - t1);
    return VPPS_OK;
}

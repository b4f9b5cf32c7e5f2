/* layout.c - how a model lies on a machine: a VP on every multiprocessor, in groups that each have the whole model. */
#include "runtime/gpu/gpu.h"

static vpps_status check(const vpps_options *o, uint32_t n_vps, uint32_t groups, const char *device) {
    enum { WARP = 32, MOST_THREADS = 1024, MOST_RPW = 1024 };
    if (n_vps % groups) {
        return vpps_fail(VPPS_ARGUMENT, "%s: %u groups of %u VPs; expected a divisor", device, groups, n_vps);
    }
    if (o->threads % WARP == 0 && o->threads <= MOST_THREADS && o->rpw <= MOST_RPW) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "%s: rpw %u, %u threads; expected rpw up to %d, a multiple of 32 up to %d threads",
                     device, o->rpw, o->threads, MOST_RPW, MOST_THREADS);
}

/* Software SIMT takes what the GPU would that it stands for. */
vpps_status vpps_gpu_choose_precision(vpps_precision asked, const vpps_machine *machine, vpps_precision *out,
                                      const char **why) {
    enum { FIRST_MMA = 80 }; /* PTX ISA, "mma": .bf16 requires sm_80 or higher */
    const bool has_mma = machine->arch >= FIRST_MMA;
    *out = asked;
    *why = "as asked";
    if (asked == VPPS_PRECISION_AUTO) {
        *out = has_mma ? VPPS_PRECISION_BF16X3 : VPPS_PRECISION_FP32;
        *why = has_mma ? "a model of a GPU predicts it to be faster than fp32, but for single examples"
                       : "GPUs before sm_80 do not multiply bf16";
    } else if (asked != VPPS_PRECISION_FP32 && !has_mma) {
        return vpps_fail(VPPS_DEVICE, "a GPU of sm_%u does not multiply in %s; expected sm_80 or later, or fp32",
                         machine->arch, vpps_precision_names[asked]);
    }
    return VPPS_OK;
}

vpps_status vpps_gpu_lay_out(vpps_gpu_layout *out, const vpps_model *model, const vpps_options *options,
                             const vpps_machine *machine, const char *device) {
    enum { LEAST_ROWS = 32, SPLIT_ELEMS = 4096 };
    const uint32_t n_vps = options->vps ? vpps_min_u32(options->vps, machine->sms) : machine->sms;
    const uint32_t groups = options->groups && options->groups != VPPS_GROUPS_PROFILE ? options->groups : 1;
    *out = (vpps_gpu_layout){.optimizer = options->optimizer.kind,
                             .n_states = vpps_optimizer_states(options->optimizer.kind)};
    const char *why;
    VPPS_TRY(check(options, n_vps, groups, device));
    VPPS_TRY(vpps_gpu_choose_precision(options->precision, machine, &out->precision, &why));
    VPPS_TRY(vpps_lay_out_pool(&out->plan, model, options, n_vps, device, &out->gradients));
    out->plan.n_vps = n_vps;
    out->matrix_at = calloc(model->n_params + 1, sizeof *out->matrix_at);
    if (!out->matrix_at) return vpps_fail(VPPS_MEMORY, "%s: out of memory", device);
    VPPS_TRY(vpps_lay_out_matrices(model, out->matrix_at, &out->matrix_words));
    out->tasks = (vpps_task_plan){.n_vps = n_vps,
                                  .values = out->plan.values,
                                  .batch = out->plan.batch,
                                  .pool_words = out->plan.pool_words,
                                  .groups = groups,
                                  .row_unit = options->rpw ? options->rpw : 1,
                                  .least_rows = LEAST_ROWS,
                                  .columns = true,
                                  .split_elems = SPLIT_ELEMS};
    return VPPS_OK;
}

void vpps_gpu_layout_free(vpps_gpu_layout *layout) {
    free(layout->plan.values);
    free(layout->matrix_at);
    *layout = (vpps_gpu_layout){0};
}

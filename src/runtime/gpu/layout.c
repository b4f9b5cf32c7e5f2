/* layout.c - where a model's parameters lie on a GPU. A virtual processor (VP) is a CTA, one on each SM; a group of VPs holds the model. */
#include "runtime/gpu/gpu.h"

#include <math.h>

static vpps_status check(const vpps_options *o, uint32_t n_vps, uint32_t groups, const char *device) {
    enum { WARP = 32, MOST_THREADS = 1024, MOST_RPW = 1024 };
    if (groups && n_vps % groups)
        return vpps_fail(VPPS_ARGUMENT, "%s: %u groups of %u VPs; expected a divisor", device, groups, n_vps);
    if (o->threads % WARP == 0 && o->threads <= MOST_THREADS && o->rpw <= MOST_RPW) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "%s: rpw %u, %u threads; expected rpw up to %d, a multiple of 32 up to %d threads",
                     device, o->rpw, o->threads, MOST_RPW, MOST_THREADS);
}

vpps_status vpps_gpu_choose_precision(vpps_precision asked, uint32_t batch, const vpps_machine *machine,
                                      vpps_precision *out, const char **why) {
    enum {
        FIRST_MMA = 80, /* PTX ISA, "mma": .bf16 requires sm_80 or higher */
        FEW = 4         /* with at most 4 examples per batch, fp32 is faster than bf16x3 (bench/results/h100) */
    };
    const bool has_mma = machine->arch >= FIRST_MMA;
    *out = asked;
    *why = "as asked";
    if (asked == VPPS_PRECISION_AUTO) {
        const bool many = !batch || batch > FEW;
        *out = has_mma && many ? VPPS_PRECISION_BF16X3 : VPPS_PRECISION_FP32;
        *why = !has_mma ? "GPUs before sm_80 do not multiply bf16"
               : many   ? "it is faster than fp32 (as an H100 showed, with batches of more than some examples)"
                        : "it is faster than bf16x3 with batches of so few examples (as an H100 showed)";
    } else if (asked != VPPS_PRECISION_FP32 && !has_mma) {
        return vpps_fail(VPPS_DEVICE, "a GPU of sm_%u does not multiply in %s; expected sm_80 or later, or fp32",
                         machine->arch, vpps_precision_names[asked]);
    }
    return VPPS_OK;
}

/* Returns how many words of registers and shared memory a CTA needs for its rows of all matrices and of their
 * transposes (for backward), if `group` CTAs divide the rows (codegen/resident.h). The largest matrix counts twice:
 * none is divided between registers and shared memory, so a part of them may stay free. Weights count as fp32 even if
 * they are bf16. Returns UINT64_MAX if a CTA would have more than MOST_ROWS rows of a matrix. */
static uint64_t weight_words(const vpps_model *model, uint32_t group, const vpps_trial *choice) {
    enum { MOST_ROWS = 16 };
    const vpps_cell_needs needs = {.group = group, .rows.unit = choice->rpw};
    uint64_t words = 0, largest = 0;
    for (uint32_t p = 0; p < model->n_params; p++) {
        const vpps_parameter_data *m = &model->params[p];
        const uint32_t sizes[] = {m->rows, m->cols};
        for (int t = 0; t < 2 && m->kind == VPPS_MATRIX; t++) {
            const uint32_t rows = vpps_most_rows(&needs, sizes[t], 1);
            if (rows > MOST_ROWS) return UINT64_MAX;
            const vpps_resident laid_out = vpps_lay_out_rows(rows, sizes[1 - t], t, choice->threads);
            const uint64_t own = (uint64_t)vpps_words_of_thread(&laid_out) * choice->threads;
            words += own;
            if (own > largest) largest = own;
        }
    }
    return words + largest;
}

/* Sets streamed[g] for each divisor g of n_vps: with g groups of CTAs, the words of weights that neither registers nor shared memory of a CTA hold.
 * Returns the most groups with which they hold all weights or, if no two groups do, the most that hold at least half, at least one: two groups
 * that hold all are faster than four of which each reads few weights from memory (predicted for a bilstm-classifier, by 5 %). */
static uint32_t most_groups(const vpps_model *model, const vpps_options *options, const vpps_machine *machine,
                            uint32_t n_vps, uint32_t *streamed) {
    enum { OTHERS = 160 /* number of a thread's registers that hold no weights, in kernels without spills */ };
    vpps_trial choices[VPPS_MOST_TRIALS];
    vpps_gpu_choices(options, choices);
    const uint32_t others = OTHERS * choices[0].threads;
    if (machine->sm_registers <= others) return 1;
    const uint64_t room = machine->sm_registers - others + vpps_shared_for_weights(machine, model->n_params);
    uint32_t most = 1, most_of_half = 1;
    for (uint32_t groups = 1; groups <= n_vps; groups++) {
        if (n_vps % groups) continue;
        const uint64_t words = weight_words(model, n_vps / groups, &choices[0]);
        if (words <= room) most = groups;
        if (words / 2 <= room) most_of_half = groups;
        streamed[groups] = words <= room ? 0 : words - room < UINT32_MAX ? (uint32_t)(words - room) : UINT32_MAX;
    }
    return most > 1 ? most : most_of_half;
}

/* Returns the number of groups of CTAs, a divisor of n_vps up to `most`, with which a CTA reads the fewest words from memory: at each level, vectors
 * of the vertices of its group, and weights. Fewer groups are taken if the words of more are less than a sixth fewer and weights are among them. */
static uint32_t fewest_words(const vpps_batch_extent *e, uint32_t most) {
    /* of all matrices' columns, as many words of vectors does a CTA read for a vertex of a Tree-LSTM or an LSTM: a vector meets several matrices */
    const double read = 0.3, vector = e->rows > 0 ? read * e->elems / e->rows : 1, gain = 1.0 / 6;
    double least = INFINITY;
    uint32_t best = 1;
    for (uint32_t groups = 1; groups <= most; groups++) {
        if (e->n_vps % groups) continue;
        const double words = e->streamed[groups] + e->vectors * vector / groups;
        if (words < least * (e->streamed[groups] ? 1 - gain : 1)) least = words, best = groups;
    }
    return best;
}

vpps_status vpps_gpu_lay_out(vpps_gpu_layout *out, const vpps_model *model, const vpps_options *options,
                             const vpps_machine *machine, const char *device) {
    enum {
        LEAST_ROWS = 32,
        SPLIT_ELEMS = 4096,
        /* predicted least time of one level of a Tree-LSTM (7,000 cycles), as flops that a CTA could do meanwhile */
        LEVEL_FLOPS = 1000000
    };
    /* Least elements of a part of a vector, of which CTAs make partial sums: in bf16x3 and batches of MANY inputs fewer. A
     * level then has so many vertices that reading less of each saves more than the barrier before sums are read. */
    enum { MANY = 8, LEAST_PART = 1000, LEAST_OF_MANY = 256 };
    const uint32_t n_vps = options->vps ? vpps_min_u32(options->vps, machine->sms) : machine->sms;
    const uint32_t groups = options->groups == VPPS_GROUPS_PROFILE ? 0 : options->groups;
    *out = (vpps_gpu_layout){.optimizer = options->optimizer.kind,
                             .n_states = vpps_optimizer_states(options->optimizer.kind)};
    VPPS_TRY(check(options, n_vps, groups, device));
    VPPS_TRY(vpps_gpu_choose_precision(options->precision, options->batch, machine, &out->precision, &out->why));
    const bool few = options->batch < MANY || out->precision != VPPS_PRECISION_BF16X3;
    const uint32_t unit = options->rpw ? options->rpw : 1, part = few ? LEAST_PART : LEAST_OF_MANY;
    VPPS_TRY(vpps_lay_out_pool(&out->plan, model, options, n_vps, device, &out->gradients));
    out->plan.n_vps = n_vps;
    out->matrix_at = calloc(model->n_params + 1, sizeof *out->matrix_at);
    out->streamed = calloc(n_vps + 1, sizeof *out->streamed);
    if (!out->matrix_at || !out->streamed) return vpps_fail(VPPS_MEMORY, "%s: out of memory", device);
    VPPS_TRY(vpps_lay_out_matrices(model, out->matrix_at, &out->matrix_words));
    out->target =
        (vpps_target){.n_vps = n_vps,
                      .values = out->plan.values,
                      .batch = out->plan.batch,
                      .pool_words = out->plan.pool_words,
                      .scales = true,
                      .most_cells = VPPS_GPU_MOST_CELLS,
                      .most_groups = most_groups(model, options, machine, n_vps, out->streamed),
                      .choose_groups = fewest_words,
                      .streamed = out->streamed,
                      .level_flops = LEVEL_FLOPS,
                      .rows = {.unit = unit, .least = LEAST_ROWS, .columns = part, .split_elems = SPLIT_ELEMS}};
    return VPPS_OK;
}

void vpps_gpu_layout_free(vpps_gpu_layout *layout) {
    VPPS_FREE(layout->plan.values, layout->matrix_at, layout->streamed);
    *layout = (vpps_gpu_layout){0};
}

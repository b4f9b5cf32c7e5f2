/* specialise.c - see specialise.h. */
#include "codegen/specialise.h"

#include <stdio.h>

void vpps_kernel_describe(const vpps_kernel_plan *plan, char *text, size_t bytes) {
    static const char *const products[] = {"", ", products in bf16", ", products in bf16x3"};
    snprintf(text, bytes, "%u cells, %u VPs of %u threads in groups of %u, rows by %u, %u registers for weights%s%s%s",
             plan->n_cells, plan->n_vps, plan->threads, plan->group, plan->row_unit, plan->residents.registers,
             plan->lean ? ", lean" : "", products[plan->parts], plan->packs ? ", gradients by cuBLAS" : "");
}

vpps_status vpps_lay_out_matrices(const vpps_model *model, uint32_t *at, size_t *words) {
    enum { ALIGNED = 64 };
    uint64_t next = 0;
    for (uint32_t p = 0; p < model->n_params; p++) {
        at[p] = (uint32_t)next;
        if (model->params[p].kind != VPPS_MATRIX) continue;
        next += (vpps_param_elems(&model->params[p]) + ALIGNED - 1) / ALIGNED * ALIGNED;
        if (next > UINT32_MAX) return vpps_fail(VPPS_POOL, "a model of more than 2^32 elements of matrices");
    }
    *words = (size_t)next;
    return VPPS_OK;
}

static void tell(const vpps_specialiser *s, const char *description, const vpps_cubin_report *report) {
    char line[VPPS_MESSAGE_BYTES];
    if (!s->log) return;
    snprintf(line, sizeof line, "rejected: %s: %u registers, frame of %u bytes, %u bytes spilled", description,
             report->registers, report->frame_bytes, report->spill_bytes);
    s->log(s->context, line);
}

/* Back to what was asked for. */
static void clear(vpps_kernel_plan *plan) {
    const vpps_kernel_plan asked = {.n_vps = plan->n_vps,
                                    .group = plan->group,
                                    .threads = plan->threads,
                                    .row_unit = plan->row_unit,
                                    .optimizer = plan->optimizer,
                                    .n_states = plan->n_states,
                                    .packs = plan->packs,
                                    .parts = plan->parts,
                                    .cells = plan->cells,
                                    .n_cells = plan->n_cells};
    vpps_kernel_plan_free(plan);
    *plan = asked;
}

uint32_t vpps_shared_for_weights(const vpps_machine *machine, size_t n_params) {
    /* Of static variables: a parameter's span in either list, its break, and whether it was touched; and what else there is. */
    enum { LEAST_WORDS = 2048, PARAM_WORDS = 15, OTHER_WORDS = 1024 };
    const uint64_t own = OTHER_WORDS + PARAM_WORDS * ((uint64_t)n_params + 1);
    const uint64_t cta_words = machine->cta_shared_bytes / 4,
                   other = VPPS_TILE_WORDS + (own > LEAST_WORDS ? own : LEAST_WORDS);
    return cta_words > other ? (uint32_t)(cta_words - other) : 0;
}

/* With so many registers for weights at most. *clean: the kernel neither spills nor has a frame. */
static vpps_status try_registers(const vpps_specialiser *s, vpps_kernel_plan *plan, uint32_t registers, char **source,
                                 vpps_cubin_report *report, bool *clean) {
    enum { NEAR_WORDS = 16384 };
    const vpps_kernel_room room = {.threads = plan->threads,
                                   .registers = registers,
                                   .shared_words = vpps_shared_for_weights(s->machine, s->model->n_params),
                                   .near_words = NEAR_WORDS};
    char description[192];
    clear(plan);
    VPPS_TRY(vpps_generate_kernel(plan, s->model, s->pool, s->matrix_at, &room, source));
    vpps_kernel_describe(plan, description, sizeof description);
    *report = (vpps_cubin_report){0};
    VPPS_TRY(s->compile(s->context, plan, *source, description, report));
    *clean = !report->frame_bytes && !report->spill_bytes;
    if (!*clean) tell(s, description, report);
    return VPPS_OK;
}

vpps_status vpps_specialise(const vpps_specialiser *s, vpps_kernel_plan *plan, uint32_t *registers, char **source,
                            vpps_cubin_report *report) {
    /* On sm_90 no kernel with more than 144 was ever clean; and a thread that just does not spill is slower than one with some registers
     * to spare (a Tree-LSTM in bf16x3, predicted: 124 for weights 180.4 us, 116 178.5, 108 178.4). */
    enum { MOST = 144, STEP = 24, WIDE_STEP = 32, WIDE_FRAME_BYTES = 32 };
    uint32_t wanted = *registers ? *registers : MOST;
    for (;;) {
        char *text = NULL;
        bool clean = false;
        const vpps_status status = try_registers(s, plan, wanted, &text, report, &clean);
        const bool taken = clean || (s->spills && wanted == 1);
        if (status == VPPS_OK && taken && source) {
            *source = text;
        } else {
            free(text);
        }
        *registers = wanted;
        if (status != VPPS_OK || taken) return status;
        if (wanted == 1) break;
        const uint32_t step = report->frame_bytes > WIDE_FRAME_BYTES ? WIDE_STEP : STEP;
        wanted = plan->residents.registers > step ? plan->residents.registers - step : 1;
    }
    return vpps_fail(VPPS_POOL, "specialise: every kernel of the cells with %u threads spills", plan->threads);
}

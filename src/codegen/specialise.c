/* specialise.c - makes a kernel without register spills: generates and compiles it, and retries with fewer weights in registers. */
#include "codegen/specialise.h"

void vpps_kernel_describe(const vpps_kernel_plan *plan, char *text, size_t bytes) {
    static const char *const products[] = {"", ", products in bf16", ", products in bf16x3"};
    snprintf(text, bytes,
             "%u cells, %u VPs of %u threads in groups of %u, rows by %u, %u registers for weights%s%s%s%s",
             plan->n_cells, plan->n_vps, plan->threads, plan->group, plan->row_unit, plan->residents.registers,
             plan->lean ? ", lean" : "", plan->residents.wide_words ? ", wide products" : "", products[plan->parts],
             plan->packs ? ", gradients by cuBLAS" : "");
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
    snprintf(line, sizeof line, "rejected: %s: %u registers, frame of %u bytes", description, report->registers,
             report->frame_bytes);
    s->log(s->context, line);
}

/* Returns how many words of a CTA's shared memory the kernel's static variables leave. */
static uint32_t dynamic_words(const vpps_machine *machine, size_t n_params) {
    /* Words of static shared variables: PARAM_WORDS per parameter, OTHER_WORDS for all else, at least LEAST_WORDS. */
    enum { LEAST_WORDS = 2048, PARAM_WORDS = 15, OTHER_WORDS = 1024 };
    const uint64_t own = OTHER_WORDS + PARAM_WORDS * ((uint64_t)n_params + 1);
    const uint64_t cta_words = machine->cta_shared_bytes / 4, other = own > LEAST_WORDS ? own : LEAST_WORDS;
    return cta_words > other ? (uint32_t)(cta_words - other) : 0;
}

static uint32_t words_beside(uint32_t words, uint32_t tiles) { return words > tiles ? words - tiles : 0; }

uint32_t vpps_shared_for_weights(const vpps_machine *machine, size_t n_params) {
    return words_beside(dynamic_words(machine, n_params), VPPS_TILE_WORDS);
}

/* Returns the cell with the part (stage) whose tiles (vertices processed together) take the most shared memory. */
static const vpps_compiled_cell *largest_cell(const vpps_kernel_plan *p) {
    uint32_t most = 0;
    for (uint32_t s = 1; s < p->first_stage[p->n_cells]; s++)
        if (p->rooms[s].shared_words > p->rooms[most].shared_words) most = s;
    uint32_t cell = 0;
    while (p->first_stage[cell + 1] <= most) cell++;
    return p->cells[cell];
}

/* Generates a kernel that keeps weights in at most `registers` registers of each thread. Sets *source to its CUDA source, and *plan to the plan
 * `asked` and, in addition, the choices of this function, such as the shared memory for weights. Writes a line for people about *plan to `description`. */
static vpps_status generate(const vpps_specialiser *s, const vpps_kernel_plan *asked, vpps_kernel_plan *plan,
                            uint32_t registers, char **source, char *description, size_t bytes) {
    enum { SCRIPT_WORDS = 16384 };
    const uint32_t words = dynamic_words(s->machine, s->model->n_params);
    vpps_kernel_room room = {.threads = asked->threads, .registers = registers, .script_words = SCRIPT_WORDS};
    uint32_t tiles = VPPS_TILE_WORDS;
    for (;;) { /* leaves less shared memory to weights until a tile (vertices processed together) fits */
        vpps_kernel_plan_free(plan);
        *plan = *asked;
        room.shared_words = words_beside(words, tiles);
        VPPS_TRY(vpps_generate_kernel(plan, s->model, s->pool, s->matrix_at, &room, source));
        if (plan->tile_words <= tiles || plan->tile_words > words) break;
        free(*source);
        tiles = plan->tile_words;
    }
    if (vpps_kernel_shared_bytes(plan) / 4 > words) {
        free(*source);
        *source = NULL;
        return vpps_fail(
            VPPS_POOL,
            "kernel: cell %s: the rows that one of %u VPs owns need %u KiB of shared memory for one vertex and "
            "their biases, and %s has %u; expected fewer rows or fewer groups",
            largest_cell(plan)->name, plan->group, vpps_kernel_shared_bytes(plan) / 1024, s->machine->name,
            words / 256);
    }
    vpps_kernel_describe(plan, description, bytes);
    return VPPS_OK;
}

vpps_status vpps_specialise(const vpps_specialiser *s, vpps_kernel_plan *plan, uint32_t *registers, char **source,
                            vpps_cubin_report *report) {
    /* On sm_90 no kernel with more than 144 registers for weights was ever free of spills, and in bf16x3 few with more than 116. A kernel
     * that only just avoids spills is slower than one with some registers to spare (a Tree-LSTM in bf16x3, predicted time of a batch: with
     * 124 registers for weights 180.4 us, with 116 178.5 us, with 108 178.4 us). */
    enum { MOST = 144, MOST_IN_BF16X3 = 116, STEP = 24, WIDE_STEP = 32, WIDE_FRAME_BYTES = 32 };
    vpps_kernel_plan asked = *plan; /* each attempt begins with this copy: attempts change *plan */
    const uint32_t most = plan->parts == 2 ? MOST_IN_BF16X3 : MOST;
    uint32_t wanted = *registers ? *registers : most;
    for (;;) {
        asked.lean = wanted < most; /* with fewer registers for weights than the most, other values get fewer, too */
        char description[192], *text = NULL;
        *report = (vpps_cubin_report){0};
        vpps_status status = generate(s, &asked, plan, wanted, &text, description, sizeof description);
        if (status == VPPS_OK) status = s->compile(s->context, plan, text, description, report);
        if (report->frame_bytes) tell(s, description, report);
        /* accepted: no spills, or fewer registers for weights are impossible, or useless (all weights in memory) */
        const bool taken =
            !report->frame_bytes || (plan->residents.wide_words && !plan->parts) || (s->spills && wanted == 1);
        if (status == VPPS_OK && taken && source)
            *source = text;
        else
            free(text);
        *registers = wanted;
        if (status != VPPS_OK || taken) return status;
        if (wanted == 1) break;
        const uint32_t step = report->frame_bytes > WIDE_FRAME_BYTES ? WIDE_STEP : STEP;
        wanted = plan->residents.registers > step ? plan->residents.registers - step : 1;
    }
    return vpps_fail(VPPS_POOL, "specialise: every kernel of the cells with %u threads spills", plan->threads);
}

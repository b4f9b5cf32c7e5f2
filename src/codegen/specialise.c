/* specialise.c - makes a kernel without register spills: generates and compiles it, and retries with fewer weights in registers. */
#include "codegen/specialise.h"

#include <pthread.h>

void vpps_kernel_describe(const vpps_kernel_plan *plan, char *text, size_t bytes) {
    static const char *const products[] = {"", ", products in bf16", ", products in bf16x3"};
    snprintf(text, bytes,
             "%u cells, %u VPs of %u threads in groups of %u, rows by %u, %u registers for weights%s%s%s%s",
             plan->n_cells, plan->n_vps, plan->threads, plan->group, plan->row_unit, plan->residents.registers,
             plan->lean ? ", lean" : "", plan->residents.wide ? ", wide products" : "", products[plan->parts],
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

static vpps_kernel_plan asked_of(const vpps_kernel_plan *plan) {
    return (vpps_kernel_plan){.n_vps = plan->n_vps,
                              .group = plan->group,
                              .threads = plan->threads,
                              .row_unit = plan->row_unit,
                              .optimizer = plan->optimizer,
                              .n_states = plan->n_states,
                              .packs = plan->packs,
                              .parts = plan->parts,
                              .cells = plan->cells,
                              .n_cells = plan->n_cells};
}

/* Returns how many words of a CTA's shared memory the kernel's static variables leave. */
static uint32_t dynamic_words(const vpps_machine *machine, size_t n_params) {
    /* PARAM_WORDS: words per parameter in vpps_spans, vpps_breaks and vpps_touched; OTHER_WORDS: words of all other static variables. */
    enum { LEAST_WORDS = 2048, PARAM_WORDS = 15, OTHER_WORDS = 1024 };
    const uint64_t own = OTHER_WORDS + PARAM_WORDS * ((uint64_t)n_params + 1);
    const uint64_t cta_words = machine->cta_shared_bytes / 4, other = own > LEAST_WORDS ? own : LEAST_WORDS;
    return cta_words > other ? (uint32_t)(cta_words - other) : 0;
}

static uint32_t words_beside(uint32_t words, uint32_t tiles) { return words > tiles ? words - tiles : 0; }

uint32_t vpps_shared_for_weights(const vpps_machine *machine, size_t n_params) {
    return words_beside(dynamic_words(machine, n_params), VPPS_TILE_WORDS);
}

/* Returns the cell with the stage whose tiles (vertices processed together) take the most shared memory. */
static const vpps_compiled_cell *largest_cell(const vpps_kernel_plan *p) {
    uint32_t most = 0;
    for (uint32_t s = 1; s < p->first_stage[p->n_cells]; s++)
        if (p->rooms[s].shared_words > p->rooms[most].shared_words) most = s;
    uint32_t cell = 0;
    while (p->first_stage[cell + 1] <= most) cell++;
    return p->cells[cell];
}

/* Writes the source of the plan's kernel, with at most `registers` registers of a thread for weights, and its description. */
static vpps_status generate(const vpps_specialiser *s, vpps_kernel_plan *plan, uint32_t registers, char **source,
                            char *description, size_t bytes) {
    enum { SCRIPT_WORDS = 16384 };
    const uint32_t words = dynamic_words(s->machine, s->model->n_params);
    vpps_kernel_room room = {.threads = plan->threads, .registers = registers, .script_words = SCRIPT_WORDS};
    uint32_t tiles = VPPS_TILE_WORDS;
    for (;;) { /* leaves less shared memory to weights until a tile (vertices processed together) fits */
        const vpps_kernel_plan asked = asked_of(plan);
        vpps_kernel_plan_free(plan);
        *plan = asked;
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
            "their biases, and %s has %u; expected fewer rows%s",
            largest_cell(plan)->name, plan->group, vpps_kernel_shared_bytes(plan) / 1024, s->machine->name, words / 256,
            plan->parts ? ", fewer groups or products in fp32" : " or fewer groups");
    }
    vpps_kernel_describe(plan, description, bytes);
    return VPPS_OK;
}

enum { STEP = 24 /* number by which the kernel that is tried next has fewer registers for weights */ };

typedef struct rival {
    const vpps_specialiser *s;
    vpps_kernel_plan plan;
    uint32_t registers;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started, needless;
} rival;

/* While a kernel is compiled, this thread compiles the one that is tried next, with fewer registers for weights. Waits up to PATIENCE_NS
 * for the current kernel, which may come from the cache. Returns whether the next one must be compiled. */
static bool is_needed(rival *r) {
    enum { PATIENCE_NS = 100000000 };
    struct timespec until;
    int result = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PATIENCE_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&r->lock);
    while (!r->needless && !result) result = pthread_cond_timedwait(&r->changed, &r->lock, &until);
    const bool needed = !r->needless;
    pthread_mutex_unlock(&r->lock);
    return needed;
}

/* Runs in its own thread: compiles, into the cache, the kernel that is tried next, with fewer registers for weights. Ignores failures. */
static void *run_rival(void *context) {
    rival *r = context;
    char description[192], *source = NULL;
    vpps_cubin_report report;
    if (is_needed(r) && generate(r->s, &r->plan, r->registers, &source, description, sizeof description) == VPPS_OK)
        r->s->beside(r->s->context, source, description, &report);
    free(source);
    vpps_kernel_plan_free(&r->plan);
    return NULL;
}

/* Starts a thread that compiles the kernel to try if this plan's kernel spills registers. Does nothing if the plan's kernel has at most
 * FROM registers for weights: such kernels have never spilled on sm_90. */
static void begin_rival(rival *r, const vpps_specialiser *s, const vpps_kernel_plan *plan) {
    enum { FROM = 128 };
    const uint32_t registers = plan->residents.registers;
    *r = (rival){.s = s, .plan = asked_of(plan), .registers = registers > STEP ? registers - STEP : 1};
    if (!s->beside || registers <= FROM) return;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    r->started = !pthread_create(&r->thread, NULL, run_rival, r);
}

static void end_rival(rival *r) {
    if (!r->started) return;
    pthread_mutex_lock(&r->lock);
    r->needless = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
}

/* Makes a kernel with at most `registers` registers of a thread for weights. *clean: the kernel has no stack frame, so no spills. */
static vpps_status try_registers(const vpps_specialiser *s, vpps_kernel_plan *plan, uint32_t registers, char **source,
                                 vpps_cubin_report *report, bool *clean) {
    char description[192];
    rival next;
    VPPS_TRY(generate(s, plan, registers, source, description, sizeof description));
    begin_rival(&next, s, plan);
    *report = (vpps_cubin_report){0};
    const vpps_status status = s->compile(s->context, plan, *source, description, report);
    end_rival(&next);
    VPPS_TRY(status);
    *clean = !report->frame_bytes;
    if (!*clean) tell(s, description, report);
    return VPPS_OK;
}

vpps_status vpps_specialise(const vpps_specialiser *s, vpps_kernel_plan *plan, uint32_t *registers, char **source,
                            vpps_cubin_report *report) {
    /* On sm_90 no kernel with more than 144 registers for weights was ever free of spills, and in bf16x3 few with more than 116. A kernel that only
     * just avoids spills is slower than one with some registers to spare (a Tree-LSTM in bf16x3, predicted time of a batch: with 124 registers for
     * weights 180.4 us, with 116 178.5 us, with 108 178.4 us). */
    enum { MOST = 144, MOST_IN_BF16X3 = 116, WIDE_STEP = 32, WIDE_FRAME_BYTES = 32 };
    uint32_t wanted = *registers ? *registers : plan->parts == 2 ? MOST_IN_BF16X3 : MOST;
    for (;;) {
        char *text = NULL;
        bool clean = false;
        const vpps_status status = try_registers(s, plan, wanted, &text, report, &clean);
        /* a `wide` kernel reads all weights from memory, so a lower limit of registers for weights would change nothing */
        const bool taken = clean || plan->residents.wide || (s->spills && wanted == 1);
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

/* schedule.c - turns a batch's graph into the batch's program (script), the list of tasks that the device runs: calls
 * the steps whose results schedule.h lists. */
#include "script/schedule.h"

#include <inttypes.h>

vpps_status vpps_batch_create(vpps_batch **out) {
    *out = calloc(1, sizeof **out);
    if (*out) (*out)->schedule = calloc(1, sizeof *(*out)->schedule);
    if (*out && (*out)->schedule) return VPPS_OK;
    free(*out);
    *out = NULL;
    return vpps_no_memory();
}

void vpps_batch_destroy(vpps_batch *b) {
    if (!b) return;
    vpps_arena_free(&b->schedule->arena);
    vpps_row_marks_free(&b->schedule->marks);
    VPPS_FREE_ARRAYS(b->script);
    VPPS_FREE(b->schedule, b);
}

static vpps_status check_graph(const vpps_graph *g) {
    VPPS_TRY(vpps_graph_status(g));
    if (g->recording) return vpps_fail(VPPS_STATE, "graph: the cell %s is still being recorded", g->recording->name);
    return VPPS_OK;
}

/* While a batch's program is made: the batch runs in more and more parts, in turn, until it fits the memory. */
typedef struct search {
    vpps_batch *b;
    const vpps_target *target;
    const vpps_batch_request *request;
    bool waves, slices; /* can there be more waves (parts of the batch), more slices (parts of a wave's classifiers)? */
} search;

/* Doubles the number of waves (parts of the batch, each run forward and backward) or of slices: parts, run in turn, of
 * a wave's classifiers (vertices that only the loss reads). *more: whether the number grew. A slice costs two barriers,
 * a wave those of all its levels (sets of vertices that run together), so slices come first, until a slice's
 * classifiers keep a quarter of the memory that the wave's other vertices keep; half of that is a tenth of the sum. */
static vpps_status take_apart(search *x, bool *more) {
    vpps_schedule *s = x->b->schedule;
    for (*more = false; !*more && (x->waves || x->slices);) {
        const uint32_t n_waves = s->steps.n_waves, n_slices = s->steps.n_slices;
        const bool slices = x->slices && (!x->waves || vpps_kept_words(&s->batching, true) / n_slices >
                                                           vpps_kept_words(&s->batching, false) / 4);
        if (!vpps_choose_steps(&s->batching, slices ? n_waves : 2 * n_waves, slices ? 2 * n_slices : n_slices,
                               &s->arena, &s->steps))
            return vpps_no_memory();
        *more = slices ? s->steps.n_slices > n_slices : s->steps.n_waves > n_waves;
        if (!*more) *(slices ? &x->slices : &x->waves) = false;
    }
    return VPPS_OK;
}

/* Makes the program (script) for the batch as divided now. VPPS_POOL, without a message: the memory is too small. */
static vpps_status try_once(search *x) {
    vpps_schedule *s = x->b->schedule;
    if (!vpps_choose_phases(&s->steps, &s->arena, &s->tasks) ||
        !vpps_count_contributions(&s->tasks, &s->marks, &s->arena, &s->contributions) ||
        !vpps_place_tensors(&s->tasks, &s->contributions, x->target->batch, &s->arena, &s->placement))
        return vpps_no_memory();
    return vpps_encode_batch(&s->placement, &s->contributions, x->target, x->request, &s->arena, x->b, &s->places);
}

static uint32_t first_waves(const search *x) {
    const vpps_batching *b = &x->b->schedule->batching;
    const uint64_t most = x->target->waves.kept_words;
    if (x->request->halves) return 1;
    if (x->request->waves) return x->request->waves;
    return most ? (uint32_t)((vpps_kept_words(b, false) + vpps_kept_words(b, true)) / most) + 1 : 1;
}

/* Returns the least number of waves (parts of the batch that run in turn) with which a wave's words fit the device's caches, but at most
 * the number that leaves each step enough vertices. 0: the request fixes the number, or the device has no such rule. */
static uint32_t cached_waves(const search *x) {
    const vpps_steps *steps = &x->b->schedule->steps;
    const vpps_wave_rule *rule = &x->target->waves;
    uint64_t vertices = 0;
    if (x->request->waves || x->request->halves || !rule->cached_words || !steps->n_steps) return 0;
    for (uint32_t i = 0; i < steps->n_blocks; i++) vertices += steps->blocks[i].n;
    const uint64_t wide =
        vertices * steps->n_waves / steps->n_steps / (rule->cached_vertices * steps->batching->group_size);
    const uint64_t small = vpps_passed_words(steps->batching) / rule->cached_words + 1;
    return (uint32_t)(small < wide ? small : wide);
}

/* Makes the first attempt to divide a batch into waves (parts that run in turn), a wave's classifiers (vertices that
 * only the loss reads) into slices, and each part's vertices into blocks of one cell. False: out of memory. */
static bool first_steps(search *x) {
    vpps_schedule *s = x->b->schedule;
    const uint32_t asked = s->reading.training && !s->reading.halves ? x->request->slices : 1,
                   n_slices = asked ? asked : 1;
    const vpps_arena_mark mark = vpps_arena_here(&s->arena);
    if (!vpps_choose_steps(&s->batching, first_waves(x), n_slices, &s->arena, &s->steps)) return false;
    const uint32_t waves = cached_waves(x);
    if (waves <= s->steps.n_waves) return true;
    vpps_arena_back_to(&s->arena, mark);
    return vpps_choose_steps(&s->batching, waves, n_slices, &s->arena, &s->steps);
}

/* Makes the batch's program (script), the list of tasks that the device runs. The batch runs in as few parts, one after
 * the other, as the request or the device asks for, and in more while the program needs more memory than there is. */
static vpps_status make_script(search *x) {
    vpps_schedule *s = x->b->schedule;
    const bool training = s->reading.training;
    const vpps_arena_mark mark = vpps_arena_here(&s->arena);
    struct {
        uint64_t words;
        uint32_t waves, slices;
    } least = {.words = UINT64_MAX};
    x->waves = !s->reading.halves;
    x->slices = training && !s->reading.halves;
    if (!first_steps(x)) return vpps_no_memory();
    for (bool more = true; more;) {
        const vpps_status status = try_once(x);
        if (status != VPPS_POOL) return status;
        if (s->places.pool_words < least.words) {
            least.words = s->places.pool_words;
            least.waves = s->steps.n_waves;
            least.slices = s->steps.n_slices;
        }
        vpps_arena_back_to(&s->arena, mark);
        VPPS_TRY(take_apart(x, &more));
    }
    return vpps_fail(VPPS_POOL,
                     "the batch needs %" PRIu64
                     " bytes of the pool, parameters included, %s %u wave%s of %u slice%s%s; pool_bytes is %" PRIu64
                     ". Use smaller batches, or a pool_bytes of %" PRIu64 " or more",
                     least.words * 4, s->reading.halves ? "in the" : "even in", least.waves,
                     least.waves == 1 ? "" : "s", least.slices, least.slices == 1 ? "" : "s",
                     s->reading.halves ? " that a step in halves has" : " each", (uint64_t)x->target->pool_words * 4,
                     least.words * 4);
}

static void describe(vpps_batch *b) {
    const vpps_schedule *s = b->schedule;
    b->n_levels = s->steps.n_levels;
    b->n_phases = s->tasks.n_phases;
    b->n_steps = s->steps.n_steps;
    b->n_choices = 0;
    for (uint32_t scc = 0; scc < s->needs.n_sccs; scc++) b->n_choices += vpps_types_of_scc(&s->needs, scc) > 1;
    b->pool_words = (uint32_t)s->places.pool_words;
    b->live_words = s->placement.live_words;
    b->n_waves = s->steps.n_waves;
    b->n_slices = s->steps.n_slices;
    b->n_vertices = (uint32_t)s->reading.g->n_records;
    b->n_nodes = s->reading.g->size;
}

vpps_status vpps_choose_cells(vpps_batch *b, vpps_history *history, const vpps_target *target, vpps_graph *g,
                              const vpps_batch_request *request) {
    vpps_schedule *s = b->schedule;
    VPPS_TRY(check_graph(g));
    vpps_arena_clear(&s->arena);
    b->goal = request->goal;
    b->half = request->halves ? VPPS_FORWARD_HALF : VPPS_NO_HALF;
    b->parameter_words = target->batch;
    VPPS_TRY(vpps_read_graph(g, history, request, &s->arena, &s->reading));
    if (!vpps_find_needs(&s->reading, &s->arena, &s->needs)) return vpps_no_memory();
    VPPS_TRY(vpps_choose_batching(&s->needs, history, target, request, &s->arena, &s->grouping));
    VPPS_TRY(vpps_compile_cells(&s->grouping, history, target, &s->arena, &s->batching));
    b->n_groups = s->batching.n_groups;
    b->cells = s->batching.kernel;
    b->n_cells = s->batching.n_kernel;
    return VPPS_OK;
}

vpps_status vpps_choose_inference_cells(vpps_batch *b, const vpps_batch *trained, vpps_history *history,
                                        const vpps_target *target, vpps_graph *g, const vpps_batch_request *request) {
    const vpps_reading *r = &trained->schedule->reading;
    vpps_node *outputs = malloc((r->n_outputs + 1u) * sizeof *outputs);
    uint32_t n = 0;
    if (!outputs) return vpps_no_memory();
    for (uint32_t v = 0; v < r->n_vertices; v++)
        for (uint32_t k = 0; k < r->types[r->vertices[v].type].base->n_outputs; k++)
            if (trained->schedule->needs.needed[v]) outputs[n++] = r->vertices[v].first_output + k;
    vpps_batch_request all = *request;
    all.outputs = outputs;
    all.n_outputs = n;
    const vpps_status status = vpps_choose_cells(b, history, target, g, &all);
    free(outputs);
    return status;
}

vpps_status vpps_schedule_batch(vpps_batch *b, vpps_history *history, const vpps_target *target, vpps_graph *g,
                                const vpps_batch_request *request) {
    VPPS_TRY(vpps_choose_cells(b, history, target, g, request));
    const vpps_reading *r = &b->schedule->reading;
    vpps_remember_batch(history, r->training, b->schedule->batching.usual);
    for (uint32_t t = 0; t < r->n_types; t++) {
        const vpps_type_needs *needs = &b->schedule->needs.types[t];
        vpps_remember_type(history, r->types[t].index, (vpps_type_guess){needs->scc, needs->differentiable});
    }
    search x = {.b = b, .target = target, .request = request};
    VPPS_TRY(make_script(&x));
    describe(b);
    return VPPS_OK;
}

uint32_t vpps_batch_output(const vpps_batch *b, uint32_t i) {
    return b->schedule->places.output_at[b->schedule->reading.requested[i].output];
}

const vpps_given_array *vpps_batch_given(const vpps_batch *b) { return &b->schedule->places.given; }

uint32_t vpps_batch_gradient(const vpps_batch *b, uint32_t i) {
    const vpps_schedule *s = b->schedule;
    const vpps_output_ref x = s->reading.asked[i];
    const bool any = s->needs.needed[x.vertex] && s->needs.gradients[x.vertex];
    return any ? s->places.gradient_at[x.output] : VPPS_NONE;
}

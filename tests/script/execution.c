/* execution.c - see subjects.h. */
#include "subjects.h"

#include "common/testing.h"
#include "runtime/cpu/cpu.h"

/* Numbers that are compared relative to the largest of them. */
typedef struct part {
    size_t first, n;
} part;

struct executor {
    vpps_cpu *cpu;
    vpps_model *model;
    float *before; /* all parameters' values */
    uint32_t *at;  /* for each processor: its next task */
    float *expected, *got;
    part *parts;
    size_t n, n_parts; /* of results */
};

/* ---------------------------------------------------------------- running */

/* Makes virtual processor v run its next task. False: it has ended, or must wait. */
static bool step(executor *x, uint32_t v) {
    vpps_cpu *cpu = x->cpu;
    const uint32_t group = v / (cpu->n_vps / cpu->batch.header.n_groups);
    if (!vpps_check_task(&cpu->vps[v], x->at[v], vpps_task_starts(cpu->batch.script)[group + 1], group)) return false;
    const vpps_task *t = vpps_task_at(cpu->batch.script, x->at[v]);
    if (t->wait != VPPS_NO_BARRIER && atomic_load(&cpu->counters[t->wait].value) < t->signals) return false;
    if (!vpps_vp_task(&cpu->vps[v], x->at[v], t)) return false;
    if (t->signal != VPPS_NO_BARRIER) atomic_fetch_add(&cpu->counters[t->signal].value, 1);
    x->at[v] += VPPS_TASK_WORDS;
    return true;
}

/* Runs everything; virtual processor v runs whenever it can, or (starve) only if no other can. */
static void run_all(executor *x, uint32_t v, bool starve) {
    const uint32_t n = x->cpu->n_vps;
    for (bool any = true; any && !atomic_load(&x->cpu->batch.failed);) {
        any = false;
        for (uint32_t i = 0; i < n && !any; i++) any = step(x, (v + starve + i) % n);
    }
}

static void set_parameters(executor *x) {
    const float *from = x->before;
    for (uint32_t p = 0; p < x->model->n_params; p++) {
        vpps_parameter_data *data = &x->model->params[p];
        const size_t n = vpps_param_elems(data);
        memcpy(data->values, from, n * sizeof *from);
        from += n;
        data->updates = 0;
        for (uint32_t s = 0; s < VPPS_MAX_STATES; s++)
            if (data->states[s]) memset(data->states[s], 0, n * sizeof(float));
    }
}

/* ENDED: all virtual processors have ended. REFUSED: the device refuses a task, with a message. */
typedef enum end { ENDED, STUCK, REFUSED } end;

static end run(executor *x, const subject *s, uint32_t v, bool starve) {
    vpps_cpu *cpu = x->cpu;
    const vpps_batch batch = {.script = (uint32_t *)(uintptr_t)s->script,
                              .script_words = s->words,
                              .cells = (vpps_compiled_cell **)(uintptr_t)s->cells,
                              .n_cells = s->n_cells};
    set_parameters(x);
    TEST_OK(vpps_device_write_parameters(&cpu->device, x->model, cpu->options.optimizer.kind));
    if (vpps_cpu_prepare(cpu, &batch) != VPPS_OK) return REFUSED;
    memset(cpu->pool + cpu->plan.batch, 0xff, (cpu->batch.header.pool_words - cpu->plan.batch) * sizeof *cpu->pool);
    memset(cpu->norms, 0xff, cpu->n_vps * sizeof *cpu->norms);
    for (uint32_t i = 0; i < cpu->n_vps; i++)
        x->at[i] = vpps_task_starts(cpu->batch.script)[i / (cpu->n_vps / cpu->batch.header.n_groups)];
    run_all(x, v, starve);
    if (atomic_load(&cpu->batch.failed)) return REFUSED;
    for (uint32_t i = 0; i < cpu->n_vps; i++)
        if (vpps_task_at(cpu->batch.script, x->at[i])->kind != VPPS_TASK_END) return STUCK;
    return ENDED;
}

/* ---------------------------------------------------------------- results */

/* Adds n numbers to the results, less those of `less`, unless that is NULL. */
static void take(executor *x, const float *from, const float *less, size_t n) {
    if (x->parts) x->parts[x->n_parts] = (part){x->n, n};
    for (size_t i = 0; i < n && x->got; i++) x->got[x->n + i] = from[i] - (less ? less[i] : 0);
    x->n_parts++;
    x->n += n;
}

/* Takes what training changed, in the numbers that are linear or quadratic in gradients: not Adam's steps, whose size does not depend on the
 * gradient's. Or takes what inference read. */
static void take_results(executor *x, const subject *s) {
    const vpps_cpu *cpu = x->cpu;
    const float *before = x->before, loss = (float)cpu->batch.loss;
    x->n = x->n_parts = 0;
    for (uint32_t i = 0; i < s->request->n_outputs; i++)
        take(x, cpu->pool + s->outputs[i], NULL, vpps_words(vpps_plain_signature(s->g, s->request->outputs[i])));
    if (s->request->loss == VPPS_NO_NODE) return;
    TEST_OK(vpps_device_read_parameters(&x->cpu->device, x->model, true));
    take(x, &loss, NULL, 1);
    for (uint32_t p = 0; p < x->model->n_params; p++) {
        const vpps_parameter_data *data = &x->model->params[p];
        const size_t n = vpps_param_elems(data);
        if (s->request->optimizer->kind <= VPPS_MOMENTUM) take(x, data->values, before, n);
        for (uint32_t k = 0; k < cpu->n_states; k++) take(x, data->states[k], NULL, n);
        before += n;
    }
}

static bool is_expected(const executor *x) {
    for (size_t p = 0; p < x->n_parts; p++) {
        const float *got = x->got + x->parts[p].first, *expected = x->expected + x->parts[p].first;
        float most = 0;
        for (size_t i = 0; i < x->parts[p].n; i++) most = fmaxf(most, fabsf(expected[i]));
        for (size_t i = 0; i < x->parts[p].n; i++)
            if (!(fabsf(got[i] - expected[i]) <= 1e-4f * most)) return false;
    }
    return true;
}

bool executor_is_usable(const executor *x) {
    for (size_t i = 0; i < x->n; i++)
        if (!(fabsf(x->expected[i]) < 1e6f)) return false;
    return true;
}

bool executor_differs(executor *x, const subject *s) {
    for (uint32_t i = 0; i < 2 * x->cpu->n_vps; i++) {
        const end e = run(x, s, i / 2, i % 2);
        if (e != ENDED) return e == STUCK;
        take_results(x, s);
        if (!is_expected(x)) return true;
    }
    return false;
}

/* ---------------------------------------------------------------- life */

executor *executor_open(const job *j) {
    vpps_options o;
    vpps_pool_plan plan;
    vpps_device *device;
    executor *x = need(calloc(1, sizeof *x));
    x->model = (vpps_model *)(uintptr_t)j->subject.g->model;
    vpps_options_default(&o);
    o.vps = j->machine.n_vps;
    o.optimizer = j->optimizer;
    o.pool_bytes = (uint64_t)j->machine.pool_words * sizeof(float);
    o.portable = true;
    vpps_take_over_states(x->model, o.optimizer.kind);
    TEST_OK(vpps_device_cpu.create(&device, x->model, &o, &plan));
    ck_assert_uint_eq(plan.batch, j->machine.batch);
    x->cpu = (vpps_cpu *)device;
    x->at = calloc(o.vps, sizeof *x->at);
    size_t n = 1;
    for (uint32_t p = 0; p < x->model->n_params; p++) n += vpps_param_elems(&x->model->params[p]);
    x->before = calloc(n, sizeof *x->before);
    ck_assert(x->at && x->before);
    float *to = x->before;
    for (uint32_t p = 0; p < x->model->n_params; to += vpps_param_elems(&x->model->params[p++]))
        memcpy(to, x->model->params[p].values, vpps_param_elems(&x->model->params[p]) * sizeof *to);
    ck_assert_msg(run(x, &j->subject, 0, false) == ENDED, "a correct script does not end: %s",
                  x->cpu->batch.outcome.message);
    take_results(x, &j->subject); /* number of results */
    x->parts = calloc(x->n_parts + 1, sizeof *x->parts);
    x->got = calloc(x->n + 1, sizeof *x->got);
    x->expected = calloc(x->n + 1, sizeof *x->expected);
    ck_assert(x->parts && x->got && x->expected);
    take_results(x, &j->subject);
    memcpy(x->expected, x->got, x->n * sizeof *x->got);
    return x;
}

void executor_close(executor *x) {
    set_parameters(x);
    vpps_take_over_states(x->model, VPPS_SGD); /* it has no state */
    vpps_device_cpu.destroy(&x->cpu->device);
    free(x->before);
    free(x->at);
    free(x->expected);
    free(x->got);
    free(x->parts);
    free(x);
}

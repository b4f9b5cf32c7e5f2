/* plan.c - see gpu.h. */
#include "runtime/gpu/gpu.h"

#include "codegen/emit.h"
#include "codegen/tables.h"

#include <stdarg.h>

void vpps_gpu_log(const vpps_gpu *gpu, const char *format, ...) {
    char line[VPPS_MESSAGE_BYTES];
    if (!gpu->options.log) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    gpu->options.log(gpu->options.log_context, line);
}

/* ---------------------------------------------------------------- memory */

vpps_status vpps_gpu_reserve(vpps_gpu *gpu, vpps_gpu_buffer *buffer, size_t bytes) {
    if (bytes <= buffer->bytes) return VPPS_OK;
    vpps_gpu_release(gpu, buffer);
    VPPS_TRY(gpu->table->allocate(gpu->driver, bytes, &buffer->address));
    buffer->bytes = bytes;
    return VPPS_OK;
}

void vpps_gpu_release(vpps_gpu *gpu, vpps_gpu_buffer *buffer) {
    if (buffer->bytes) gpu->table->release(gpu->driver, buffer->address);
    *buffer = (vpps_gpu_buffer){0};
}

static uint32_t n_states(const vpps_gpu *gpu) { return vpps_optimizer_states(gpu->options.optimizer.kind); }

/* ---------------------------------------------------------------- the matrices */

/* Which of a matrix's arrays: its values, or a state of the optimiser. */
static vpps_gpu_buffer *array_of(vpps_gpu_plan *plan, int state) {
    return state < 0 ? &plan->master : &plan->states[state];
}

static float *array_in_model(const vpps_parameter_data *data, int state) {
    return state < 0 ? data->values : data->states[state];
}

/* One array of all matrices, laid out as the plan says, from the rows of the model. Frees nothing. */
static vpps_status write_array(vpps_gpu *gpu, vpps_gpu_plan *plan, const vpps_model *model, int state) {
    const vpps_partition *p = &plan->partition;
    float *words = calloc(p->master_words, sizeof *words);
    if (!words) return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        const vpps_matrix *matrix = &p->matrices[m];
        const float *rows = array_in_model(&model->params[matrix->param], state);
        for (uint32_t r = 0; rows && r < matrix->rows; r++) {
            memcpy(words + vpps_partition_row(p, m, r).word, rows + (size_t)r * matrix->cols,
                   matrix->cols * sizeof *words);
        }
    }
    vpps_status status =
        gpu->table->write(gpu->driver, array_of(plan, state)->address, words, p->master_words * sizeof *words);
    if (status == VPPS_OK) status = vpps_gpu_settle(gpu); /* before the words go */
    free(words);
    return status;
}

/* The way back; *words (the caller's to free) is the array as it lies in the plan. */
static vpps_status read_array(vpps_gpu *gpu, vpps_gpu_plan *plan, int state, float **words) {
    const size_t bytes = plan->partition.master_words * sizeof(float);
    if (!(*words = malloc(bytes))) return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    return gpu->table->read(gpu->driver, *words, array_of(plan, state)->address, bytes);
}

static vpps_status pull_array(vpps_gpu *gpu, vpps_model *model, int state) {
    const vpps_partition *p = &gpu->now.partition;
    float *words = NULL;
    vpps_status status = read_array(gpu, &gpu->now, state, &words);
    for (uint32_t m = 0; m < p->n_matrices && status == VPPS_OK; m++) {
        const vpps_matrix *matrix = &p->matrices[m];
        vpps_parameter_data *data = &model->params[matrix->param];
        if (state >= 0 && !data->states[state]) data->states[state] = malloc(vpps_param_elems(data) * sizeof(float));
        float *rows = array_in_model(data, state);
        if (!rows) status = vpps_fail(VPPS_MEMORY, "parameter %s: out of memory", data->name);
        for (uint32_t r = 0; rows && r < matrix->rows; r++) {
            memcpy(rows + (size_t)r * matrix->cols, words + vpps_partition_row(p, m, r).word,
                   matrix->cols * sizeof *words);
        }
    }
    free(words);
    return status;
}

/* One array from the plan in use to another, whose rows lie elsewhere. Both order the matrices alike. */
static vpps_status move_array(vpps_gpu *gpu, vpps_gpu_plan *to, int state) {
    const vpps_partition *old = &gpu->now.partition, *p = &to->partition;
    float *from = NULL, *words = calloc(p->master_words, sizeof *words);
    vpps_status status = words ? read_array(gpu, &gpu->now, state, &from)
                               : vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    for (uint32_t m = 0; m < p->n_matrices && status == VPPS_OK; m++) {
        for (uint32_t r = 0; r < p->matrices[m].rows; r++) {
            memcpy(words + vpps_partition_row(p, m, r).word, from + vpps_partition_row(old, m, r).word,
                   p->matrices[m].cols * sizeof *words);
        }
    }
    if (status == VPPS_OK) {
        status = gpu->table->write(gpu->driver, array_of(to, state)->address, words, p->master_words * sizeof *words);
    }
    if (status == VPPS_OK) status = vpps_gpu_settle(gpu);
    free(from);
    free(words);
    return status;
}

/* ---------------------------------------------------------------- vectors and tables */

/* What of the pool belongs to parameters, to or from the model. */
static vpps_status copy_pool(vpps_gpu *gpu, const vpps_model *model, bool to_model) {
    const vpps_plan *plan = &gpu->plan;
    const size_t bytes = (size_t)plan->batch * sizeof(float);
    float *words = malloc(bytes + 1);
    if (!words) return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    vpps_status status = gpu->table->read(gpu->driver, words, gpu->pool.address, bytes);
    for (uint32_t i = 0; i < model->n_params && status == VPPS_OK; i++) {
        vpps_parameter_data *data = &model->params[i];
        const size_t n = vpps_param_elems(data);
        if (data->kind == VPPS_MATRIX) continue;
        for (int state = -1; state < (int)n_states(gpu); state++) {
            float *at = words + (state < 0 ? plan->values[i] : plan->states[state][i]);
            if (to_model && state >= 0 && !data->states[state]) data->states[state] = malloc(n * sizeof *at);
            float *own = array_in_model(data, state);
            if (to_model && !own) status = vpps_fail(VPPS_MEMORY, "parameter %s: out of memory", data->name);
            if (own && to_model) memcpy(own, at, n * sizeof *at);
            if (own && !to_model) memcpy(at, own, n * sizeof *at);
        }
    }
    if (status == VPPS_OK && !to_model) status = gpu->table->write(gpu->driver, gpu->pool.address, words, bytes);
    if (status == VPPS_OK && !to_model) status = vpps_gpu_settle(gpu);
    free(words);
    return status;
}

vpps_status vpps_gpu_read_parameters(vpps_gpu *gpu, vpps_model *model) {
    for (int state = -1; state < (int)n_states(gpu); state++) VPPS_TRY(pull_array(gpu, model, state));
    return copy_pool(gpu, model, true);
}

vpps_status vpps_gpu_write_parameters(vpps_gpu *gpu, const vpps_model *model) {
    for (int state = -1; state < (int)n_states(gpu); state++) VPPS_TRY(write_array(gpu, &gpu->now, model, state));
    return copy_pool(gpu, model, false);
}

/* ---------------------------------------------------------------- adopting a choice */

typedef struct loading {
    vpps_gpu *gpu;
    vpps_gpu_plan *plan;
} loading;

static vpps_status compile(void *context, const vpps_partition *p, const char *source, const char *description,
                           vpps_cubin_report *report) {
    loading *l = context;
    vpps_gpu *gpu = l->gpu;
    if (l->plan->kernel) gpu->table->unload(gpu->driver, l->plan->kernel);
    l->plan->kernel = NULL;
    l->plan->shape = (vpps_launch_shape){p->n_vps, p->choice.threads, vpps_emit_shared_bytes(p)};
    return gpu->table->load(gpu->driver, source, description, &l->plan->shape, &l->plan->kernel, report);
}

static void log_line(void *context, const char *line) { vpps_gpu_log(((loading *)context)->gpu, "%s", line); }

static vpps_status make_room(vpps_gpu *gpu, vpps_gpu_plan *plan) {
    const vpps_partition *p = &plan->partition;
    const size_t master = p->master_words * sizeof(float);
    VPPS_TRY(vpps_gpu_reserve(gpu, &plan->master, master));
    VPPS_TRY(vpps_gpu_reserve(gpu, &plan->gradients,
                              (p->choice.deferred ? p->gradient_words : p->master_words) * sizeof(float) + 4));
    for (uint32_t i = 0; i < n_states(gpu); i++) { VPPS_TRY(vpps_gpu_reserve(gpu, &plan->states[i], master)); }
    uint32_t *tables = vpps_tables_create(p, gpu->model, &gpu->plan);
    if (!tables) return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    const size_t bytes = vpps_tables_lay_out(p).words * sizeof *tables + 4;
    vpps_status status = vpps_gpu_reserve(gpu, &plan->tables, bytes);
    if (status == VPPS_OK) status = gpu->table->write(gpu->driver, plan->tables.address, tables, bytes);
    if (status == VPPS_OK) status = vpps_gpu_settle(gpu);
    free(tables);
    return status;
}

static vpps_status open_plan(vpps_gpu *gpu, const vpps_partition_choice *choice, vpps_gpu_plan *plan) {
    loading l = {gpu, plan};
    const vpps_specialiser s = {gpu->model, &gpu->machine, gpu->options.optimizer.kind, compile, log_line, &l};
    VPPS_TRY(vpps_specialise(&s, choice, &plan->partition, NULL, &plan->report));
    VPPS_TRY(make_room(gpu, plan));
    for (int state = -1; state < (int)n_states(gpu); state++) {
        VPPS_TRY(gpu->now.kernel ? move_array(gpu, plan, state) : write_array(gpu, plan, gpu->model, state));
    }
    return VPPS_OK;
}

vpps_status vpps_gpu_adopt(vpps_gpu *gpu, const vpps_partition_choice *choice) {
    vpps_gpu_plan plan = {0};
    vpps_status status = open_plan(gpu, choice, &plan);
    if (status != VPPS_OK) {
        vpps_gpu_close_plan(gpu, &plan);
        return status;
    }
    vpps_gpu_close_plan(gpu, &gpu->now);
    gpu->now = plan;
    const vpps_partition *p = &gpu->now.partition;
    gpu->plan.n_vps = p->n_vps;
    gpu->plan.row_block = p->choice.rpw;
    gpu->plan.ew_grain = 1024; /* four elements a thread: an instruction's latency hides so many */
    gpu->plan.transposed = p->choice.transposed ? VPPS_TRANSPOSED_ALWAYS : VPPS_TRANSPOSED_NEVER;
    gpu->plan.host_products = p->choice.deferred;
    return VPPS_OK;
}

void vpps_gpu_close_plan(vpps_gpu *gpu, vpps_gpu_plan *plan) {
    if (plan->kernel) gpu->table->unload(gpu->driver, plan->kernel);
    vpps_gpu_buffer *buffers[] = {&plan->master, &plan->gradients, &plan->states[0], &plan->states[1], &plan->tables};
    for (size_t i = 0; i < VPPS_COUNT(buffers); i++) vpps_gpu_release(gpu, buffers[i]);
    vpps_partition_destroy(&plan->partition);
    *plan = (vpps_gpu_plan){0};
}

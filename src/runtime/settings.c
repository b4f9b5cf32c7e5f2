/* settings.c - public calls that set a handle's options, learning rate, momentum, weight decay, parameter groups, and whether arrays are in
 * the host's or the device's memory. */
#include "runtime/devices.h"
#include "runtime/handle.h"

#include <math.h>

static vpps_options default_options(void) {
    return (vpps_options){
        .size = sizeof(vpps_options),
        .device = vpps_devices[0]->name,
        .optimizer = {.kind = VPPS_SGD,
                      .lr = VPPS_DEFAULT_LR,
                      .momentum = 0.9f,
                      .beta1 = 0.9f,
                      .beta2 = 0.999f,
                      .epsilon = 1e-8f},
        .gradients = VPPS_GRADIENTS_DEFERRED,
        .nonfinite = VPPS_NONFINITE_STOP,
        .caller = VPPS_CALLER_AUTO,
        .watchdog_ms = 10000,
        .seed = 1,
    };
}

enum { LEAST_OPTIONS = VPPS_LEAST(vpps_options, optimizer) };

vpps_status vpps_options_init(vpps_options *options, size_t size) {
    VPPS_NEED(options);
    const vpps_options defaults = default_options();
    memcpy(options, &size, sizeof size);
    return vpps_give_struct(options, &defaults, sizeof defaults, LEAST_OPTIONS, "vpps_options");
}

float vpps_default_lr(vpps_optimizer_kind kind) {
    static const float rates[] = {
#define X(id, name, states, lr) lr,
        VPPS_OPTIMIZER_TABLE(X)
#undef X
    };
    return (unsigned)kind < VPPS_COUNT(rates) ? rates[kind] : NAN;
}

static bool in_range(float x, float low, float high) { return x >= low && x <= high; }

static vpps_status check_options(const vpps_options *o) {
    const vpps_optimizer *p = &o->optimizer;
    if ((unsigned)p->kind >= VPPS_OPTIMIZERS || (unsigned)o->gradients > VPPS_GRADIENTS_CUBLAS_TF32 ||
        (unsigned)o->nonfinite > VPPS_NONFINITE_IGNORE || (unsigned)o->caller > VPPS_CALLER_FREE ||
        (unsigned)o->precision > VPPS_PRECISION_AUTO)
        return vpps_fail(VPPS_ARGUMENT, "options: an enumeration holds a value that it does not have");
    if (!in_range(p->lr, 0, 1e30f) || !in_range(p->weight_decay, 0, 1e30f) || !in_range(p->clip, 0, 1e30f) ||
        !in_range(p->epsilon, 0, 1e30f))
        return vpps_fail(VPPS_ARGUMENT, "options: lr %g, weight decay %g, clip %g, epsilon %g; expected none negative",
                         (double)p->lr, (double)p->weight_decay, (double)p->clip, (double)p->epsilon);
    if (!in_range(p->momentum, 0, 1) || !in_range(p->beta1, 0, 1) || !in_range(p->beta2, 0, 1) || p->beta1 == 1 ||
        p->beta2 == 1)
        return vpps_fail(VPPS_ARGUMENT, "options: momentum %g, beta1 %g, beta2 %g; expected 0 to 1, betas below 1",
                         (double)p->momentum, (double)p->beta1, (double)p->beta2);
    return VPPS_OK;
}

vpps_status vpps_options_take(const vpps_options *given, vpps_options *own) {
    *own = default_options();
    if (given) VPPS_TRY(vpps_take_struct(own, sizeof *own, LEAST_OPTIONS, given, "vpps_options"));
    if (own->optimizer.lr == VPPS_DEFAULT_LR) own->optimizer.lr = vpps_default_lr(own->optimizer.kind);
    return check_options(own);
}

static vpps_status set_number(float x, float most, const char *what, float *out) {
    if (!in_range(x, 0, most))
        return most == 1 ? vpps_fail(VPPS_ARGUMENT, "%s %g; expected 0 to 1", what, (double)x)
                         : vpps_fail(VPPS_ARGUMENT, "%s %g; expected 0 or more", what, (double)x);
    *out = x;
    return VPPS_OK;
}

vpps_status vpps_set_learning_rate(vpps_handle *h, float lr) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_set_learning_rate"));
    return set_number(lr, 1e30f, "learning rate", &h->options.optimizer.lr);
}

vpps_status vpps_set_momentum(vpps_handle *h, float momentum) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_set_momentum"));
    return set_number(momentum, 1, "momentum", &h->options.optimizer.momentum);
}

vpps_status vpps_set_weight_decay(vpps_handle *h, float weight_decay) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_set_weight_decay"));
    return set_number(weight_decay, 1e30f, "weight decay", &h->options.optimizer.weight_decay);
}

static vpps_status need_memory(const vpps_handle *h) {
    if (h->device->table->trade) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "device %s: has no memory of its own; expected cuda", h->stats.device);
}

vpps_status vpps_set_pointer_mode(vpps_handle *h, vpps_pointer_mode mode, void *stream) {
    VPPS_TRY(vpps_handle_here(h, "vpps_set_pointer_mode"));
    if (mode != VPPS_POINTERS_HOST && mode != VPPS_POINTERS_DEVICE)
        return vpps_fail(VPPS_ARGUMENT, "pointer mode: %d; expected VPPS_POINTERS_HOST or DEVICE", (int)mode);
    if (mode == VPPS_POINTERS_DEVICE) VPPS_TRY(need_memory(h));
    h->pointers = (vpps_pointers){mode == VPPS_POINTERS_DEVICE, stream};
    return VPPS_OK;
}

vpps_status vpps_array_create(vpps_array **out, vpps_handle *h, uint64_t n, float **address) {
    VPPS_NEED(out, address);
    *out = NULL;
    VPPS_TRY(vpps_handle_here(h, "vpps_array_create"));
    VPPS_TRY(need_memory(h));
    if (n > SIZE_MAX / sizeof **address)
        return vpps_fail(VPPS_MEMORY, "array_create: out of memory for %llu floats", (unsigned long long)n);
    return h->device->table->lend(h->device, n, out, address);
}

/* Allocates for every parameter an entry with its own learning rate, momentum and weight decay. NAN: the optimizer's number. */
static vpps_status need_groups(vpps_handle *h) {
    if (h->groups) return VPPS_OK;
    const size_t n = h->model->n_params;
    vpps_param_group *groups = malloc((n + 1) * sizeof *groups);
    vpps_param_step *steps = malloc((n + 1) * sizeof *steps);
    if (!groups || !steps) {
        VPPS_FREE(groups, steps);
        return vpps_fail(VPPS_MEMORY, "parameters' groups: out of memory");
    }
    for (size_t p = 0; p < n; p++)
        groups[p] =
            (vpps_param_group){.size = sizeof(vpps_param_group), .lr = NAN, .momentum = NAN, .weight_decay = NAN};
    h->groups = groups;
    h->steps = steps;
    return VPPS_OK;
}

vpps_status vpps_set_param_group(vpps_handle *h, uint32_t n, const vpps_param *params, const vpps_param_group *group) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_set_param_group"));
    if (n) VPPS_NEED(params);
    vpps_param_group numbers = {.lr = NAN, .momentum = NAN, .weight_decay = NAN};
    if (group) VPPS_TRY(vpps_take_struct(&numbers, sizeof numbers, sizeof numbers, group, "vpps_param_group"));
    float checked;
    if (!isnan(numbers.lr)) VPPS_TRY(set_number(numbers.lr, 1e30f, "group: learning rate", &checked));
    if (!isnan(numbers.momentum)) VPPS_TRY(set_number(numbers.momentum, 1, "group: momentum", &checked));
    if (!isnan(numbers.weight_decay))
        VPPS_TRY(set_number(numbers.weight_decay, 1e30f, "group: weight decay", &checked));
    for (uint32_t i = 0; i < n; i++)
        if (params[i] >= h->model->n_params)
            return vpps_fail(VPPS_ARGUMENT, "group: %u is not a parameter; the model has %zu", params[i],
                             h->model->n_params);
    VPPS_TRY(need_groups(h));
    for (uint32_t i = 0; i < n; i++) h->groups[params[i]] = numbers;
    return VPPS_OK;
}

/* parameters.c - handles options about single parameters: --freeze, --lr-of, --class-weights. Checks that parameters are finite. */
#include "cli/session/parameters.h"
#include "base/base.h"
#include "cli/common/suggest.h"
#include "io/descriptor.h"

#include <ctype.h>
#include <math.h>

vpps_status parameters_declare_weights(vpps_model *model, net_config *config) {
    static const vpps_init one = {.kind = VPPS_INIT_CONSTANT, .a = 1};
    VPPS_TRY(vpps_add_vector(model, &config->class_weights, "class_weights", config->classes, &one));
    config->weighted = true;
    return vpps_freeze(model, config->class_weights, true);
}

static vpps_status fail_unknown(const session *x, const char *option, const char *name) {
    suggestion near = suggest_for(name);
    for (vpps_param p = 0; p < vpps_param_count(x->model); p++) {
        vpps_param_info info = {.size = sizeof info};
        VPPS_TRY(vpps_param_describe(x->model, p, &info));
        suggest_try(&near, info.name);
    }
    return vpps_fail(VPPS_ARGUMENT, "--%s %s: %s has no such parameter%s%s", option, name, x->settings->network->name,
                     near.word ? "; did you mean " : "", near.word ? near.word : "");
}

char *trim_blanks(char *text) {
    while (isspace((unsigned char)*text)) text++;
    for (size_t n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--) text[n - 1] = '\0';
    return text;
}

/* Calls `take` for every item NAME or NAME=VALUE of a list, with the parameter, its name, and the text after the first '=' or NULL. */
static vpps_status for_each(session *x, const char *option, const char *list,
                            vpps_status (*take)(session *x, vpps_param param, const char *name, const char *value)) {
    const size_t n = list ? strlen(list) : 0;
    VPPS_FREED char *items = n ? vpps_scratch(n + 1) : NULL;
    if (n && !items) return vpps_fail(VPPS_MEMORY, "no memory for --%s", option);
    if (n) memcpy(items, list, n + 1);
    for (char *rest = items, *name; rest && (name = strsep(&rest, ","));) {
        vpps_param param;
        char *value = strchr(name, '=');
        if (value) *value++ = '\0';
        name = trim_blanks(name);
        if (value) value = trim_blanks(value);
        if (!*name)
            return vpps_fail(VPPS_ARGUMENT, "--%s '%s': an item has no name; expected names with commas between",
                             option, list);
        VPPS_TRY(vpps_param_find(x->model, name, &param) == VPPS_OK ? take(x, param, name, value)
                                                                    : fail_unknown(x, option, name));
    }
    return VPPS_OK;
}

static vpps_status freeze(session *x, vpps_param param, const char *name, const char *value) {
    if (value) return vpps_fail(VPPS_ARGUMENT, "--freeze %s=%s: expected the name of a parameter alone", name, value);
    return vpps_freeze(x->model, param, true);
}

vpps_status parameters_freeze(session *x) { return for_each(x, "freeze", x->settings->freeze, freeze); }

static vpps_status take_rate(session *x, vpps_param param, const char *name, const char *value) {
    char *end = NULL;
    const float lr = value ? strtof(value, &end) : NAN;
    if (!value || end == value || *end || !isfinite(lr) || lr < 0 || lr > 1e6f)
        return vpps_fail(VPPS_ARGUMENT, "--lr-of %s%s%s: expected a learning rate from 0 to 1e+06, as %s=0.001", name,
                         value ? "=" : "", value ? value : "", name);
    for (uint32_t i = 0; i < x->n_rates; i++)
        if (x->rates[i].param == param) return vpps_fail(VPPS_ARGUMENT, "--lr-of names %s more than once", name);
    x->rates[x->n_rates++] = (parameter_rate){param, lr};
    return VPPS_OK;
}

vpps_status parameters_take_rates(session *x) {
    x->rates = x->settings->lr_of ? calloc(vpps_param_count(x->model), sizeof *x->rates) : NULL;
    if (x->settings->lr_of && !x->rates) return vpps_fail(VPPS_MEMORY, "no memory for --lr-of");
    return for_each(x, "lr-of", x->settings->lr_of, take_rate);
}

bool finite_all(const float *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

vpps_status finite_check_parameters(vpps_model *model, const char *path) {
    for (vpps_param p = 0; p < vpps_param_count(model); p++) {
        vpps_param_info info = {.size = sizeof info};
        VPPS_TRY(vpps_param_describe(model, p, &info));
        const size_t held = info.first < info.count ? (info.count - info.first - 1) / info.step + 1 : 0;
        if (finite_all(vpps_param_values(model, p), held * info.rows * info.cols)) continue;
        return vpps_fail(VPPS_NONFINITE,
                         "%s%s: parameter %s holds values that are not finite: the network diverged in training",
                         VPPS_PATH_ARGS(path), info.name);
    }
    return VPPS_OK;
}

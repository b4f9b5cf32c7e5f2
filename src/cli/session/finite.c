/* finite.c - checks that values are finite. */
#include "cli/session/finite.h"
#include "base/base.h"
#include "io/descriptor.h"

#include <math.h>

bool finite_all(const float *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) return false;
    }
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

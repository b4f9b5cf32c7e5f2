/* finite.h - checks for values that are not finite, such as those of a diverged network. */
#pragma once

#include "vpps.h"

bool finite_all(const float *values, size_t n);

/* Checks that all parameters of a model are finite; `path` names their origin in the message. Fails with NONFINITE. */
vpps_status finite_check_parameters(vpps_model *model, const char *path);

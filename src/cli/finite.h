/* finite.h - checks for values that are not finite, as of a network that has diverged. */
#pragma once

#include "vpps.h"

bool finite_all(const float *values, size_t n);

/* Fails with NONFINITE where a parameter of the model holds a value that is not finite; `path` names where it came from. */
vpps_status finite_check_parameters(vpps_model *model, const char *path);

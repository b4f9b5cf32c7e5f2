/* measure.h - trials: measured times of products by this processor's instructions. */
#pragma once

#include "runtime/cpu/choices.h"

/* Lists the trials to measure: every unit in every way. by[i] is what computes trial i. The arrays have VPPS_CPU_TRIALS elements. */
uint32_t vpps_cpu_list_trials(const vpps_cpu_units *units, vpps_trial *out, vpps_cpu_maker *by);

/* Returns the most processor time, in ms, that all trials together may take. */
uint64_t vpps_cpu_measure_limit_ms(void);

/* Measures all trials, in some ms. Returns their number; 0 if out of memory, or on a processor so slow that it seems emulated. */
uint32_t vpps_cpu_measure(const vpps_cpu_units *units, vpps_trial *out);

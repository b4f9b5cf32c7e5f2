/* measure.h - trials: measured times of matrix products by this processor's instructions. */
#pragma once

#include "runtime/cpu/choices.h"

/* Lists the trials (times to be measured): each kind of instructions with several products and numbers of vectors. Sets by[i] to trial i's
 * instructions. The arrays have VPPS_CPU_TRIALS elements. Returns the number of trials. */
uint32_t vpps_cpu_list_trials(const vpps_cpu_units *units, vpps_trial *out, vpps_cpu_maker *by);

/* Returns the most processor time, in ms, that all measurements of products together may take. */
uint64_t vpps_cpu_measure_limit_ms(void);

/* Measures all trials (times of products), in some ms. Returns their number; 0 if out of memory, or if the processor is very slow. */
uint32_t vpps_cpu_measure(const vpps_cpu_units *units, vpps_trial *out);

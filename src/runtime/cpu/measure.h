/* measure.h - trials of products by this processor's units. */
#pragma once

#include "runtime/cpu/choices.h"

/* Lists the trials, without times: every unit in every way. `by`: by which unit each is. Both have room for VPPS_CPU_TRIALS. Returns
 * how many. */
uint32_t vpps_cpu_list_trials(const vpps_cpu_units *units, vpps_trial *out, vpps_cpu_maker *by);

/* The most processor time that all trials may take. */
uint64_t vpps_cpu_measure_limit_ms(void);

/* Measures all of them, in some ms. Returns how many; 0: out of memory, or they would take far longer, as on an emulated processor. */
uint32_t vpps_cpu_measure(const vpps_cpu_units *units, vpps_trial *out);

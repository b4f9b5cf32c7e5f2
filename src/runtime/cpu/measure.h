/* measure.h - trials of products by this processor's units. */
#ifndef VPPS_CPU_MEASURE_H
#define VPPS_CPU_MEASURE_H

#include "runtime/cpu/choices.h"

/* Measures every unit in every way, in some ms. Returns the number of trials in `out`, of VPPS_CPU_TRIALS; 0: out of memory, or they
 * would take far longer, as on an emulated processor. */
uint32_t vpps_cpu_measure(const vpps_cpu_units *units, vpps_trial *out);

#endif

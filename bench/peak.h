/* peak.h - the machine's peak: the most fp32 multiply-adds that its cores make together, operands in registers. */
#ifndef VPPS_BENCH_PEAK_H
#define VPPS_BENCH_PEAK_H

#include <stdint.h>

/* GFLOP/s of n_threads threads at once, measured for `ns` nanoseconds; a multiply-add is 2 operations. 0: a thread could not be
 * started. */
double peak_gflops(uint32_t n_threads, uint64_t ns);

/* Cores that this process may use. */
uint32_t peak_cores(void);

/* "avx512", "avx2" or "portable": the vectors that peak_gflops multiplies. */
const char *peak_isa(void);

#endif

/* peak.h - measures the machine's peak: the fp32 multiply-adds per second of all cores together, operands in
 * registers. */
#ifndef VPPS_BENCH_PEAK_H
#define VPPS_BENCH_PEAK_H

#include <stdint.h>

/* Returns the GFLOP/s of n_threads threads running together for `ns` nanoseconds; a multiply-add is 2 operations.
 * Returns 0 if a thread cannot be started. */
double peak_gflops(uint32_t n_threads, uint64_t ns);

/* Returns the number of cores that this process may use. */
uint32_t peak_cores(void);

/* Returns the instruction set that peak_gflops uses: "avx512", "avx2" or "portable". */
const char *peak_isa(void);

#endif

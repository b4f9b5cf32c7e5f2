/* failure.cuh - how a launch ended, and how far apart the counters of barriers lie. The host's C compiler reads this file, too. */
#ifndef VPPS_FAILURE_CUH
#define VPPS_FAILURE_CUH

/* How a launch, the kernel's run on one batch, ended; zeroed before the launch. The first CTA that fails writes why and
 * where. norm: the gradient's norm, if the batch needs it; loss: set if the kernel sums the loss itself. */
typedef struct vpps_failure {
    unsigned failed; /* kind of the failure, a vpps_failure_kind */
    unsigned vp, address, value, have, wanted;
    float norm, loss;
} vpps_failure;

/* BEFORE: the launch did nothing, because the preceding one failed, or because its loss or norm had to be finite and was not. */
enum vpps_failure_kind { VPPS_FAILURE_NONE, VPPS_FAILURE_STALL, VPPS_FAILURE_OPCODE, VPPS_FAILURE_BEFORE };

/* Results that the kernel writes to host memory; zeroed before the launch. Times are CTA 0's, by the GPU's clock. */
typedef struct vpps_launch_end {
    unsigned long long begin_ns, end_ns;
    unsigned failed;
    float norm, loss;
    unsigned unused;
} vpps_launch_end;

/* Words from one barrier counter to the next: each counter has a sector of the L2 cache to itself. */
enum { VPPS_COUNTER_WORDS = 8 };

#endif

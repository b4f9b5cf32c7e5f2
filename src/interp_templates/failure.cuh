/* failure.cuh - how a launch ended, for VPs and for the host; and where the counters of barriers lie. Read by the host's C compiler,
 * too. */
#ifndef VPPS_FAILURE_CUH
#define VPPS_FAILURE_CUH

/* How a launch ended; zeroed before it. The first VP that fails says why. norm: of the gradient, where the script takes it. loss:
 * where the kernel adds it up itself. */
typedef struct vpps_failure {
    unsigned failed; /* a vpps_failure_kind */
    unsigned vp, address, value, have, wanted;
    float norm, loss;
} vpps_failure;

/* BEFORE: nothing was done, because the preceding launch failed, or its loss or norm was not finite where both must be. */
enum vpps_failure_kind { VPPS_FAILURE_NONE, VPPS_FAILURE_STALL, VPPS_FAILURE_OPCODE, VPPS_FAILURE_BEFORE };

/* Results that the kernel writes to the host's memory; zeroed before the launch. Times: of the GPU's clock, of the first VP. */
typedef struct vpps_launch_end {
    unsigned long long begin_ns, end_ns;
    unsigned failed;
    float norm, loss;
    unsigned unused;
} vpps_launch_end;

/* Barrier counters lie so many words apart: a sector of the L2 cache each. */
enum { VPPS_COUNTER_WORDS = 8 };

#endif

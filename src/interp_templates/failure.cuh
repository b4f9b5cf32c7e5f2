/* failure.cuh - what kernels leave behind the script's values, and where barriers count. Read by the host's C compiler, too. */
#ifndef VPPS_FAILURE_CUH
#define VPPS_FAILURE_CUH

/* How a launch ended; zeroed before it. The first VP that fails says why. norm: of the gradient, where the script takes it. loss:
 * where the kernel adds it up itself. */
typedef struct vpps_failure {
    unsigned failed; /* a vpps_failure_kind */
    unsigned vp, address, value, have, wanted;
    float norm, loss;
} vpps_failure;

enum vpps_failure_kind { VPPS_FAILURE_NONE, VPPS_FAILURE_STALL, VPPS_FAILURE_OPCODE };

/* Barrier counters lie so many words apart: a sector of the L2 cache each. */
enum { VPPS_COUNTER_WORDS = 8 };

#endif

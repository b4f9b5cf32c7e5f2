/* loop.cuh - the kernel: loads weights to registers, then runs task after task. */

/* Starts to copy the script (the batch's tasks and arrays of addresses) to shared memory if it fits, and returns the address from which to
 * read the script. Each wait for a barrier discards L1's copies of global memory, so reading a copy in shared memory is faster. */
__device__ __forceinline__ unsigned long long vpps_copy_script(unsigned long long script, unsigned words,
                                                               float *shared) {
    if (words > VPPS_SCRIPT_WORDS) return script;
    float *const to = shared + VPPS_SCRIPT_AT;
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < (words + 3) / 4; i += VPPS_THREADS)
        vpps_copy_quad(to + 4 * i, (const float *)script + 4 * i);
    return (unsigned long long)to;
}

/* Records the launch's start time, starts to copy the preceding launch's vpps_failure (how that launch ended) to shared memory, and zeroes
 * the memory in which later launches count signals and write failures. */
__device__ __forceinline__ void vpps_begin(const vpps_arguments &a) {
    if (threadIdx.x < sizeof(vpps_failure) / 16)
        vpps_copy_quad((float *)&vpps_before + 4 * threadIdx.x, (const float *)a.before + 4 * threadIdx.x);
#pragma unroll 1
    for (unsigned i = blockIdx.x * VPPS_THREADS + threadIdx.x; i < a.stale_words; i += VPPS_VPS * VPPS_THREADS)
        ((unsigned *)a.stale)[i] = 0;
    if (blockIdx.x) return;
    if (threadIdx.x < sizeof(vpps_failure) / 4) ((unsigned *)a.later)[threadIdx.x] = 0;
    if (threadIdx.x == 0) ((vpps_launch_end *)a.end)->begin_ns = VPPS_GLOBAL_TIMER();
}

/* Returns whether the launch must end before its first task. All CTAs get the same answer. */
__device__ __forceinline__ bool vpps_ends_at_once(const vpps_arguments &a) {
    if (vpps_before.failed) return true;
    return a.finite && (!isfinite(vpps_before.loss) || !isfinite(vpps_before.norm));
}

__device__ __forceinline__ void vpps_end(const vpps_arguments &a) {
    if (blockIdx.x == 0 && threadIdx.x == 0) ((vpps_launch_end *)a.end)->end_ns = VPPS_GLOBAL_TIMER();
}

/* A case of the kernel's switch that runs consecutive tasks of one kind, whose gradients form one sum; t becomes the last of these tasks. */
#define VPPS_OUTER_CASE(kind, make)                                                                                    \
    case kind: {                                                                                                       \
        const unsigned n = vpps_tasks_of_sum(t.at, kind);                                                              \
        make(a, vpps_dynamic, t.at, n);                                                                                \
        t.at += n - 1;                                                                                                 \
        t.signal = t.at->signal;                                                                                       \
        break;                                                                                                         \
    }

extern "C" __global__ void __launch_bounds__(VPPS_THREADS, 1) vpps_kernel(const vpps_arguments arguments) {
    VPPS_DYNAMIC_SHARED(vpps_dynamic);
    float w[VPPS_WEIGHTS + 1];
    vpps_arguments a = arguments;
    vpps_begin(a);
    a.script = vpps_copy_script(a.script, a.words, vpps_dynamic);
    const bool resumes = VPPS_PACKS && a.resumes; /* cuBLAS has made gradients: only the update is left */
    if (!resumes) vpps_load_weights(a, w, vpps_dynamic);
    vpps_close_copies();
    if (!resumes) vpps_load_late_weights(a, vpps_dynamic);
    vpps_close_copies();
    vpps_wait_for_copies_before();
    __syncthreads();
    const unsigned *script = (const unsigned *)a.script;
    const vpps_task *first = (const vpps_task *)(script + script[VPPS_HEADER_WORDS + blockIdx.x / VPPS_GROUP]);
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < VPPS_HEADER_WORDS; i += VPPS_THREADS) ((unsigned *)&vpps_header)[i] = script[i];
#pragma unroll 1
    for (unsigned i = threadIdx.x; i <= VPPS_PARAMS; i += VPPS_THREADS)
        vpps_touched[i] = a.touched && i < VPPS_PARAMS ? script[a.touched + i] : 0;
    __syncthreads();
    const unsigned *blocks = script + vpps_header.blocks;
    if (vpps_header.n_blocks <= VPPS_SHARED_BLOCKS) {
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < vpps_header.n_blocks * (unsigned)(sizeof(vpps_block) / 4); i += VPPS_THREADS)
            ((unsigned *)vpps_blocks)[i] = blocks[i];
        blocks = (const unsigned *)vpps_blocks;
        __syncthreads();
    }
    a.blocks = (unsigned long long)blocks;
    if (vpps_ends_at_once(a)) {
        if (threadIdx.x == 0) vpps_report(a.failure, a.end, VPPS_FAILURE_BEFORE, 0, 0, 0, 0);
        return vpps_end(a);
    }
    if (resumes && blockIdx.x == 0 && threadIdx.x == 0)
        ((vpps_launch_end *)a.end)->loss = ((vpps_failure *)a.failure)->loss = vpps_before.loss;
    vpps_kernel_task t = vpps_load_task(first);
    for (;;) {
        switch (t.kind) {
            /* the function of a stage (part of a cell) calls vpps_await itself, after it has computed addresses */
            VPPS_STAGE_CASES(a, w, vpps_dynamic, t)
        default:
            vpps_await(a, t);
            switch (t.kind) {
            case VPPS_TASK_END: return vpps_end(a);
            case VPPS_TASK_CONSTANTS:
                if (blockIdx.x % VPPS_GROUP == 0) {
#pragma unroll 1
                    for (unsigned i = threadIdx.x; i < t.operands[1]; i += VPPS_THREADS)
                        ((float *)a.pool)[script[t.operands[0] + 2 * i]] =
                            __uint_as_float(script[t.operands[0] + 2 * i + 1]);
                }
                break;
                VPPS_OUTER_TABLE(VPPS_OUTER_CASE)
            case VPPS_TASK_ENTRIES: vpps_entries(a, t.operands[0], t.operands[1]); break;
            case VPPS_TASK_LOSS:
                if (blockIdx.x == 0) vpps_add_loss(a, t.operands[0], t.operands[1]);
                break;
            case VPPS_TASK_NORM:
            case VPPS_TASK_UPDATE: /* the update is the last task, so registers that held weights are free */
                vpps_step(a, t, vpps_load_task(t.at + 1));
                return vpps_end(a);
            case VPPS_KERNEL_WEIGHTS: vpps_take_late_weights(w, vpps_dynamic); break;
            case VPPS_TASK_NOTHING: break;
            default: vpps_refuse(a, t); return vpps_end(a);
            }
        }
        const vpps_signal signal = vpps_signal_of(a.counters, t.signal);
        t = vpps_load_task(t.at + 1); /* there is a next task: the last task of a batch's program ends the kernel */
        __syncthreads();              /* waits until all threads have written the task's results */
        vpps_send(signal);
    }
}

/* loop.cuh - the kernel: weights into registers, then task after task. */

#define VPPS_WINDOW 512 /* words of the group's instructions kept in shared memory */

__shared__ unsigned vpps_window[VPPS_WINDOW];

/* Copies a script that fits to shared memory, where each level's records are at hand: every wait forgets what L1 has of global
 * memory. Its address there, or where it was. */
__device__ __forceinline__ unsigned long long vpps_near_script(unsigned long long script, float *shared) {
    const unsigned words = ((const vpps_task_header *)script)->words;
    if (words > VPPS_NEAR_WORDS) return script;
    vpps_quad *to = (vpps_quad *)(shared + VPPS_NEAR_AT);
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < (words + 3) / 4; i += VPPS_THREADS) to[i] = ((const vpps_quad *)script)[i];
    return (unsigned long long)to;
}

extern "C" __global__ void __launch_bounds__(VPPS_THREADS, 1) vpps_kernel(const vpps_arguments arguments) {
    VPPS_DYNAMIC_SHARED(vpps_dynamic);
    float w[VPPS_WEIGHTS + 1];
    vpps_arguments a = arguments;
    a.script = vpps_near_script(a.script, vpps_dynamic);
    vpps_load_weights(a, w, vpps_dynamic);
    if (threadIdx.x == 0) vpps_alive = 1;
    __syncthreads();
    const unsigned *script = (const unsigned *)a.script;
    const unsigned *start = script + VPPS_HEADER_WORDS + blockIdx.x / VPPS_GROUP, end = start[1];
    unsigned pc = start[0], first = pc, filled = pc; /* the window holds words [first, filled) */
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < VPPS_HEADER_WORDS; i += VPPS_THREADS) ((unsigned *)&vpps_header)[i] = script[i];
#pragma unroll 1
    for (unsigned i = threadIdx.x; i <= VPPS_PARAMS; i += VPPS_THREADS) vpps_touched[i] = 0;
    __syncthreads();
    const unsigned blocks = vpps_least(vpps_header.n_blocks, VPPS_NEAR_BLOCKS) * (unsigned)(sizeof(vpps_block) / 4);
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < blocks; i += VPPS_THREADS)
        ((unsigned *)vpps_blocks)[i] = script[vpps_header.blocks + i];
    __syncthreads();
    for (;;) {
        if (pc + VPPS_TASK_MOST > filled && filled < end) {
            const unsigned n = end - pc < VPPS_WINDOW ? end - pc : VPPS_WINDOW;
            __syncthreads();
#pragma unroll 1
            for (unsigned i = threadIdx.x; i < n; i += VPPS_THREADS) vpps_window[i] = script[pc + i];
            first = pc;
            filled = pc + n;
            __syncthreads();
        }
        const unsigned *o = vpps_window + (pc - first);
        switch (pc < filled ? o[0] : VPPS_NONE) {
        case VPPS_TASK_END: return;
        case VPPS_TASK_STAGE:
            vpps_run_stage(a, w, vpps_dynamic, o);
            pc += VPPS_TASK_WORDS_STAGE;
            break;
        case VPPS_TASK_SIGNAL:
            vpps_signal(a.counters, o[1]);
            pc += VPPS_TASK_WORDS_SIGNAL;
            continue;
        case VPPS_TASK_WAIT:
            if (!vpps_wait(a.counters, a.failure, a.watchdog_ns, pc, o[1], o[2])) return;
            pc += VPPS_TASK_WORDS_WAIT;
            continue;
        case VPPS_TASK_CONSTANTS:
            if (blockIdx.x % VPPS_GROUP == 0) {
#pragma unroll 1
                for (unsigned i = threadIdx.x; i < o[2]; i += VPPS_THREADS)
                    ((float *)a.pool)[script[o[1] + 2 * i]] = __uint_as_float(script[o[1] + 2 * i + 1]);
            }
            pc += VPPS_TASK_WORDS_CONSTANTS;
            break;
        case VPPS_TASK_OUTER:
            vpps_run_outer(a, vpps_dynamic, o);
            pc += VPPS_TASK_WORDS_OUTER;
            break;
        case VPPS_TASK_ENTRIES:
            vpps_entries(a, o[1]);
            pc += VPPS_TASK_WORDS_ENTRIES;
            break;
        case VPPS_TASK_LOSS:
            if (blockIdx.x == 0) vpps_add_loss(a, o[1], o[2]);
            pc += VPPS_TASK_WORDS_LOSS;
            break;
        case VPPS_TASK_NORM:
            vpps_publish_norm(a);
            pc += VPPS_TASK_WORDS_NORM;
            break;
        case VPPS_TASK_UPDATE: vpps_update(a); return; /* the last one: weights may go from the registers */
        default:
            if (threadIdx.x == 0) vpps_report(a.failure, VPPS_FAILURE_OPCODE, pc, pc < filled ? o[0] : end, 0, 0);
            return;
        }
        __syncthreads(); /* what the task wrote is there for all threads */
    }
}

/* kernel.cuh - the interpreter: loads the VP's rows into registers, then fetches, decodes and executes its script. */

#define VPPS_WINDOW 512 /* words of script kept in shared memory, for the VP's own instructions and for segments each */

__shared__ unsigned vpps_window[2][VPPS_WINDOW];
__shared__ unsigned vpps_window_first[2], vpps_window_end[2];
__shared__ vpps_script_header vpps_header;

/* The interpreter's own state, a copy for every thread, so that it needs no barriers: what lives as long as the weights do
 * must not take registers from them. In a segment while segment_end is not 0. */
__shared__ unsigned vpps_pc[VPPS_THREADS], vpps_return_pc[VPPS_THREADS], vpps_segment_end[VPPS_THREADS];

/* ---------------------------------------------------------------- fetching */

/* The window holds words [pc, ...) afterwards. All threads; has barriers. */
__device__ __forceinline__ void vpps_fill_window(const vpps_arguments &a, unsigned which, unsigned pc) {
    const unsigned *script = (const unsigned *)a.script, left = vpps_header.words - pc;
    const unsigned n = left < VPPS_WINDOW ? left : VPPS_WINDOW;
    __syncthreads();
#pragma unroll 1
    for (unsigned i = vpps_thread(); i < n; i += VPPS_THREADS) vpps_window[which][i] = script[pc + i];
    if (vpps_thread() == 0) {
        vpps_window_first[which] = pc;
        vpps_window_end[which] = pc + n;
    }
    __syncthreads();
}

/* The instruction at pc, as a whole: in the window, or, where it is longer than that, in the script itself. *words: its
 * length; 0: unknown opcode. */
__device__ __forceinline__ const unsigned *vpps_fetch(const vpps_arguments &a, unsigned which, unsigned pc,
                                                      unsigned *words) {
    if (pc < vpps_window_first[which] || pc >= vpps_window_end[which]) vpps_fill_window(a, which, pc);
    const unsigned *at = vpps_window[which] + (pc - vpps_window_first[which]);
    unsigned n = vpps_instruction_words(at, vpps_window_end[which] - pc);
    if (n & 0x80000000u) { /* cut off by the window's end */
        vpps_fill_window(a, which, pc);
        at = vpps_window[which];
        n = vpps_instruction_words(at, vpps_window_end[which] - pc);
        if (n & 0x80000000u) {
            at = (const unsigned *)a.script + pc;
            n = vpps_instruction_words(at, vpps_header.words - pc);
        }
    }
    *words = n & 0x80000000u ? 0 : n;
    return at;
}

/* ---------------------------------------------------------------- filling the registers */

/* Own rows: the master copy holds them as the slots do, padded with zeros. */
#define VPPS_LOAD_SLOT(slot, word, steps, master)                                                                      \
    _Pragma("unroll") for (int i = 0; i < VPPS_RPW * steps; i++) {                                                     \
        w[word + i] = rows[vpps_thread() / 32 * (VPPS_RPW * steps * 32) + master + i * 32];                              \
    }
/* Own columns, gathered from the rows: lane l's element j of a column is in row l + 32 j. */
#define VPPS_LOAD_COLUMN_SLOT(slot, word, steps, unused)                                                               \
    {                                                                                                                  \
        const unsigned *held = (const unsigned *)a.tables + VPPS_TABLE_COPY +                                         \
                                ((vpps_vp() * VPPS_COLUMN_SLOT_COUNT + slot) * VPPS_WARPS + vpps_thread() / 32) * 2;    \
        const unsigned *row_words = (const unsigned *)a.tables + held[0] + vpps_thread() % 32, column = held[1];       \
        _Pragma("unroll") for (int j = 0; j < steps; j++) {                                                            \
            _Pragma("unroll") for (int r = 0; r < VPPS_RPW; r++) {                                                     \
                t[word + r * steps + j] = ((const float *)a.master)[row_words[32 * j] + column + r];                   \
            }                                                                                                          \
        }                                                                                                              \
    }

/* Slots in shared memory. Every thread reads what it loaded itself. */
__device__ __forceinline__ void vpps_load_shared_slots(const vpps_arguments &a) {
    VPPS_DYNAMIC_SHARED(vpps_dynamic);
#pragma unroll 1
    for (unsigned s = 0; s < VPPS_SLOT_COUNT; s++) {
        if (vpps_slot_table[s].level != VPPS_LEVEL_SHARED) continue;
        const unsigned n = VPPS_RPW * vpps_slot_table[s].steps * VPPS_THREADS;
        const float *from = (const float *)a.master + (unsigned long long)vpps_vp() * VPPS_VP_WORDS +
                            vpps_slot_table[s].master;
#pragma unroll 1
        for (unsigned i = vpps_thread(); i < n; i += VPPS_THREADS) vpps_dynamic[vpps_slot_table[s].at + i] = from[i];
    }
    __syncthreads();
}

/* ---------------------------------------------------------------- the kernel */

extern "C" __global__ void __launch_bounds__(VPPS_THREADS, VPPS_CTAS_PER_SM) vpps_kernel(const vpps_arguments a) {
    float w[VPPS_WEIGHT_WORDS + 1], g[VPPS_GRADIENT_WORDS + 1], t[VPPS_COLUMN_WORDS + 1];

    if (((const vpps_failure *)a.failure)->failed) return; /* the first part did */
#pragma unroll 1
    for (unsigned i = vpps_thread(); i < sizeof vpps_header / 4; i += VPPS_THREADS) {
        ((unsigned *)&vpps_header)[i] = ((const unsigned *)a.script)[i];
    }
    if (vpps_thread() == 0) {
        vpps_window_first[0] = vpps_window_end[0] = vpps_window_first[1] = vpps_window_end[1] = 0;
        vpps_alive = 1;
        vpps_b.columns = VPPS_NONE;
        vpps_this_step.ready = 0;
    }
    vpps_norm[vpps_thread()] = 0.0f;
    vpps_segment_end[vpps_thread()] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < VPPS_GRADIENT_WORDS; i++) g[i] = 0.0f;
    if (a.part == 0) { /* after HOST there are updates only, which work on memory */
        const float *rows =
            (const float *)a.master + (unsigned long long)vpps_vp() * VPPS_VP_WORDS + vpps_thread() % 32;
        VPPS_COLUMN_SLOTS(VPPS_LOAD_COLUMN_SLOT)
        VPPS_REGISTER_SLOTS(VPPS_LOAD_SLOT)
        if (VPPS_SLOTS_ELSEWHERE) vpps_load_shared_slots(a);
    } else {
#pragma unroll
        for (int i = 0; i < VPPS_WEIGHT_WORDS; i++) w[i] = 0.0f;
#pragma unroll
        for (int i = 0; i < VPPS_COLUMN_WORDS; i++) t[i] = 0.0f;
    }

    vpps_pc[vpps_thread()] = a.part == 0 ? ((const unsigned *)a.script)[sizeof vpps_header / 4 + vpps_vp()]
                              : ((const unsigned *)a.resume)[vpps_vp()];
    for (;;) {
        __syncthreads(); /* what the last instruction wrote is there for all threads, and nobody reads its words now */
        if (vpps_pc[vpps_thread()] == vpps_segment_end[vpps_thread()]) {
            vpps_pc[vpps_thread()] = vpps_return_pc[vpps_thread()];
            vpps_segment_end[vpps_thread()] = 0;
        }
        unsigned words;
        const unsigned *at = vpps_fetch(a, vpps_segment_end[vpps_thread()] != 0, vpps_pc[vpps_thread()], &words);
        const unsigned word = at[0], opcode = word & 255, length = word >> VPPS_LENGTH_SHIFT;
        if (!words) {
            if (vpps_thread() == 0) vpps_report(a.failure, VPPS_FAILURE_OPCODE, vpps_pc[0], opcode, 0, 0);
            return;
        }
        vpps_pc[vpps_thread()] += words;
        if (opcode < VPPS_I_AFFINE) {
            vpps_compute(at, (float *)a.pool, vpps_header.dropout_key);
            continue;
        }
        switch (opcode) {
        case VPPS_I_AFFINE:
        case VPPS_I_AFFINE_T:
        case VPPS_I_AFFINE_P:
        case VPPS_I_OUTER:
            if (opcode == VPPS_I_OUTER && VPPS_HOST_PRODUCTS) {
                vpps_gather(a, at[1], length, at[2]);
            } else {
                const unsigned first = at[1], bundle = at[2];
                if (vpps_thread() == 0) {
                    vpps_b.opcode = opcode;
                    vpps_b.first = first;
                    vpps_b.end = first + length;
                    vpps_b.wanted = bundle;
                }
                __syncthreads();
                vpps_run_bundle(a, w, g, t);
            }
            break;
        case VPPS_I_REDUCE_P: vpps_reduce(a, at[1], length, at[2]); break;
        case VPPS_I_NORM:
        case VPPS_I_UPDATE:
        case VPPS_I_NORM_ROWS:
        case VPPS_I_UPDATE_ROWS: {
            const bool updates = opcode == VPPS_I_UPDATE || opcode == VPPS_I_UPDATE_ROWS;
            const bool has_pairs = opcode == VPPS_I_NORM_ROWS || opcode == VPPS_I_UPDATE_ROWS;
            if (vpps_thread() == 0) vpps_describe(a, at[1], updates, has_pairs ? at[2] : 0, length);
            /* the first of NORM and UPDATE takes a gradient out of registers */
            const bool takes = !VPPS_HOST_PRODUCTS && !has_pairs && (!updates || !VPPS_TAKES_NORM(&vpps_header));
            const unsigned matrix = vpps_param_of(a, at[1])->matrix;
            if (takes && matrix != VPPS_NONE) vpps_take_gradient(a, g, matrix);
            __syncthreads();
            if (!updates || vpps_prepare_step(a, &vpps_header)) vpps_run_elements(a, &vpps_header);
            break;
        }
        case VPPS_I_NORM_END: vpps_publish_norm(a); break;
        case VPPS_I_LOAD:
#pragma unroll 1
            for (unsigned i = vpps_thread(); i < length; i += VPPS_THREADS) {
                ((unsigned *)a.pool)[at[1] + i] = ((const unsigned *)a.script)[at[2] + i];
            }
            break;
        case VPPS_I_CALL:
            vpps_return_pc[vpps_thread()] = vpps_pc[vpps_thread()];
            vpps_segment_end[vpps_thread()] = at[1] + length;
            vpps_pc[vpps_thread()] = at[1];
            break;
        case VPPS_I_SIGNAL: vpps_signal(a.counters, at[1]); break;
        case VPPS_I_WAIT:
            if (!vpps_wait(a.counters, a.failure, a.watchdog_ns, vpps_pc[vpps_thread()] - words, at[1], at[2])) return;
            break;
        case VPPS_I_HOST:
            if (vpps_thread() == 0) ((unsigned *)a.resume)[vpps_vp()] = vpps_pc[0];
            return;
        case VPPS_I_END: return;
        default: break; /* NOP; TRANSPOSE: the copy was loaded at the start */
        }
    }
}

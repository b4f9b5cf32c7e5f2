/* update.cuh - norms of gradients and the optimiser's step: every VP for the rows it owns. The formulas are those of
 * vpps_optimizer in vpps.h. */

/* What all updates of a batch share; ready once it was asked for. */
struct vpps_step {
    unsigned ready, go;
    float scale;
};
__shared__ vpps_step vpps_this_step;
__shared__ float vpps_norm[VPPS_THREADS]; /* every thread's sum of squares */
__shared__ float vpps_norm_parts[VPPS_WARPS];

__device__ __forceinline__ bool vpps_is_finite(float x) { return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u; }

/* May parameters change in this batch? Sets the factor that clipping asks for. All threads; has barriers. */
__device__ __forceinline__ bool vpps_prepare_step(const vpps_arguments &a, const vpps_script_header *h) {
    const float *pool = (const float *)a.pool;
    if (!vpps_this_step.ready) {
        __syncthreads();
        if (vpps_thread() == 0) {
            float scale = 1.0f;
            if (h->clip > 0.0f) {
                float sum = 0.0f;
#pragma unroll 1
                for (unsigned vp = 0; vp < VPPS_VPS; vp++) sum += pool[a.norms + vp];
                const float length = sqrtf(sum);
                if (length > h->clip) scale = h->clip / length;
            }
            vpps_this_step.scale = scale;
            vpps_this_step.go = !h->guard || vpps_is_finite(pool[h->loss]);
            vpps_this_step.ready = 1;
        }
    }
    __syncthreads();
    return vpps_this_step.go;
}

/* One weight's step. States that the optimiser does not have are not touched. */
__device__ __forceinline__ void vpps_step_element(const vpps_script_header *h, float *w, float gradient, float *s0,
                                                  float *s1) {
    const float scaled = vpps_this_step.scale * gradient, decay = h->weight_decay, lr = h->lr;
    const float g = VPPS_OPTIMIZER == VPPS_ADAMW ? scaled : scaled + decay * *w;
    if (VPPS_OPTIMIZER == VPPS_SGD) {
        *w -= lr * g;
    } else if (VPPS_OPTIMIZER == VPPS_MOMENTUM) {
        *s0 = h->momentum * *s0 + g;
        *w -= lr * *s0;
    } else if (VPPS_OPTIMIZER == VPPS_ADAGRAD) {
        *s0 += g * g;
        *w -= lr * g / (sqrtf(*s0) + h->epsilon);
    } else {
        *s0 = h->beta1 * *s0 + (1.0f - h->beta1) * g;
        *s1 = h->beta2 * *s1 + (1.0f - h->beta2) * (g * g);
        const float move = *s0 * h->corrections[0] / (sqrtf(*s1 * h->corrections[1]) + h->epsilon);
        *w -= VPPS_OPTIMIZER == VPPS_ADAMW ? lr * (move + decay * *w) : lr * move;
    }
}

/* ---------------------------------------------------------------- gradients out of registers */

#define VPPS_TAKE_CASE(slot, word, steps, master)                                                                      \
    case slot:                                                                                                         \
        _Pragma("unroll") for (int i = 0; i < VPPS_RPW * steps; i++) {                                                 \
            to[warp * (VPPS_RPW * steps * 32) + master + i * 32] = g[word + i];                                        \
        }                                                                                                              \
        break;

/* Own rows of a matrix's gradient to the gradients' buffer, which is laid out as the master copy. Ends with a barrier. */
template <int G>
__device__ __forceinline__ void vpps_take_gradient(const vpps_arguments &a, const float (&g)[G], unsigned matrix) {
    const unsigned warp = vpps_thread() / 32;
    const unsigned first = ((const unsigned *)a.tables)[VPPS_TABLE_PIECES + vpps_vp() * VPPS_MATRICES + matrix];
    const unsigned end = first + vpps_pieces_in(vpps_rows_of(vpps_matrix_of(a, matrix)->rows));
    float *to = (float *)a.gradients + (unsigned long long)vpps_vp() * VPPS_VP_WORDS + vpps_thread() % 32;
#pragma unroll 1
    for (unsigned slot = first / VPPS_WARPS; slot * VPPS_WARPS + warp < end; slot++) {
        if (slot * VPPS_WARPS + warp < first) continue;
        switch (slot) { VPPS_GRADIENT_SLOTS(VPPS_TAKE_CASE) default : break; }
    }
    __syncthreads();
}

/* ---------------------------------------------------------------- matrices, vectors */

/* Calls body with `row`, `column` of every element of the VP's own rows, dealt to the threads. */
#define VPPS_EACH_OWN(rows, cols, body)                                                                                \
    do {                                                                                                               \
        const vpps_rows own_ = vpps_rows_of(rows);                                                                     \
        const unsigned steps_ = ((cols) + 31) / 32, n_ = (own_.end - own_.first) * steps_;                             \
        _Pragma("unroll 1") for (unsigned i_ = vpps_thread() / 32; i_ < n_; i_ += VPPS_WARPS) {                                              \
            const unsigned row = own_.first + i_ / steps_, column = i_ % steps_ * 32 + vpps_thread() % 32;               \
            if (column < (cols)) body                                                                                  \
        }                                                                                                              \
    } while (0)

/* A gradient's element: as the host's product left it, row after row, or as it was taken out of registers. */
__device__ __forceinline__ float vpps_gradient_at(const vpps_arguments &a, const vpps_matrix_entry *m, unsigned row,
                                                  unsigned column, unsigned at) {
    return ((const float *)a.gradients)[VPPS_HOST_PRODUCTS ? m->gradient + row * m->cols + column : at];
}

__device__ __forceinline__ float vpps_norm_matrix(const vpps_arguments &a, unsigned matrix) {
    const vpps_matrix_entry *m = vpps_matrix_of(a, matrix);
    const unsigned *row_words = (const unsigned *)a.tables + m->row_words;
    float sum = 0.0f;
    VPPS_EACH_OWN(m->rows, m->cols, {
        const float x = vpps_gradient_at(a, m, row, column, row_words[row] + column);
        sum += x * x;
    });
    return sum;
}

__device__ __forceinline__ void vpps_update_matrix(const vpps_arguments &a, const vpps_script_header *h,
                                                   unsigned matrix) {
    const vpps_matrix_entry *m = vpps_matrix_of(a, matrix);
    const unsigned *row_words = (const unsigned *)a.tables + m->row_words;
    VPPS_EACH_OWN(m->rows, m->cols, {
        const unsigned at = row_words[row] + column;
        vpps_step_element(h, (float *)a.master + at, vpps_gradient_at(a, m, row, column, at), (float *)a.states[0] + at,
                          (float *)a.states[1] + at);
    });
}

__device__ __forceinline__ float vpps_norm_vector(const vpps_arguments &a, const vpps_param_entry *p) {
    const float *g = (const float *)a.pool + p->gradient;
    const vpps_rows own = vpps_rows_of(p->rows);
    float sum = 0.0f;
#pragma unroll 1
    for (unsigned i = own.first + vpps_thread(); i < own.end; i += VPPS_THREADS) sum += g[i] * g[i];
    return sum;
}

__device__ __forceinline__ void vpps_update_vector(const vpps_arguments &a, const vpps_script_header *h,
                                                   const vpps_param_entry *p) {
    float *pool = (float *)a.pool;
    const vpps_rows own = vpps_rows_of(p->rows);
#pragma unroll 1
    for (unsigned i = own.first + vpps_thread(); i < own.end; i += VPPS_THREADS) {
        vpps_step_element(h, pool + p->values + i, pool[p->gradient + i], pool + p->states[0] + i,
                          pool + p->states[1] + i);
    }
}

/* ---------------------------------------------------------------- rows of lookup tables */

/* Own elements of n entries, given as pairs (entry, offset of its gradient): their part of the norm, or the step. */
__device__ __forceinline__ float vpps_table_rows(const vpps_arguments &a, const vpps_script_header *h,
                                                 const vpps_param_entry *p, const unsigned *pairs, unsigned n,
                                                 bool updating) {
    float *pool = (float *)a.pool, sum = 0.0f;
    const unsigned entry = p->rows * p->cols;
    const vpps_rows own = vpps_rows_of(entry);
    const unsigned width = own.end - own.first;
#pragma unroll 1
    for (unsigned i = vpps_thread(); i < n * width; i += VPPS_THREADS) {
        const unsigned pair = i / width, element = own.first + i % width;
        const float g = pool[pairs[2 * pair + 1] + element];
        const unsigned long long at = (unsigned long long)pairs[2 * pair] * entry + element;
        if (updating) {
            vpps_step_element(h, pool + p->values + at, g, pool + p->states[0] + at, pool + p->states[1] + at);
        } else {
            sum += g * g;
        }
    }
    return sum;
}

/* The threads' sums to the VP's place. */
__device__ __forceinline__ void vpps_publish_norm(const vpps_arguments &a) {
    const unsigned warp = vpps_thread() / 32, lane = vpps_thread() % 32;
    float sum = vpps_norm[vpps_thread()];
#pragma unroll
    for (unsigned offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) vpps_norm_parts[warp] = sum;
    __syncthreads();
    if (vpps_thread() != 0) return;
#pragma unroll 1
    for (unsigned i = 1; i < VPPS_WARPS; i++) sum += vpps_norm_parts[i];
    ((float *)a.pool)[a.norms + vpps_vp()] = sum;
}

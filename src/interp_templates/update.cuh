/* update.cuh - norms of gradients and the optimiser's step (isa/steps.h): every VP for the rows it owns. */

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
            float norm = 0.0f;
            if (VPPS_TAKES_NORM(h)) {
#pragma unroll 1
                for (unsigned vp = 0; vp < VPPS_VPS; vp++) norm += pool[a.norms + vp];
                norm = sqrtf(norm);
                ((vpps_failure *)a.failure)->norm = norm;
            }
            vpps_this_step.scale = h->clip > 0.0f && norm > h->clip ? h->clip / norm : 1.0f;
            vpps_this_step.go = !h->guard || (vpps_is_finite(pool[h->loss]) && vpps_is_finite(norm));
            vpps_this_step.ready = 1;
        }
    }
    __syncthreads();
    return vpps_this_step.go;
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

/* ---------------------------------------------------------------- own elements
 *
 * Norms and updates of matrices, vectors and rows of tables are one loop over the elements that the VP owns. Element i is
 * number i % width of row i / width. What the loop needs is in shared memory, as registers are short. */

struct vpps_elements {
    unsigned is_matrix, updates;
    unsigned n, width, first; /* own elements; in a row; the first own row of a matrix, the first own element of others */
    unsigned rows;            /* matrix: its row words, in the tables; table: the pairs (entry, gradient), in the script */
    unsigned entry;           /* elements of a table's entry; 0: a vector */
    unsigned values, gradient, states[2]; /* where the parameter's arrays begin: in the pool; matrix: 0, and where its
                                             gradient begins if the host made it */
};
__shared__ vpps_elements vpps_own;

/* Says what the elements are. One thread. */
__device__ __forceinline__ void vpps_describe(const vpps_arguments &a, unsigned param, bool updates, unsigned pairs,
                                              unsigned n_pairs) {
    const vpps_param_entry *p = vpps_param_of(a, param);
    vpps_own.is_matrix = p->matrix != VPPS_NONE;
    vpps_own.updates = updates;
    vpps_own.rows = pairs;
    vpps_own.entry = pairs ? p->rows * p->cols : 0;
    vpps_own.values = p->values;
    vpps_own.gradient = p->gradient;
    vpps_own.states[0] = p->states[0];
    vpps_own.states[1] = p->states[1];
    const vpps_rows own = vpps_rows_of(pairs ? vpps_own.entry : p->rows);
    vpps_own.first = own.first;
    vpps_own.width = own.end - own.first;
    vpps_own.n = vpps_own.width * (pairs ? n_pairs : 1);
    if (!vpps_own.is_matrix) return;
    const vpps_matrix_entry *m = vpps_matrix_of(a, p->matrix);
    vpps_own.width = m->cols;
    vpps_own.n = (own.end - own.first) * m->cols;
    vpps_own.rows = m->row_words;
    vpps_own.gradient = m->gradient;
    vpps_own.values = vpps_own.states[0] = vpps_own.states[1] = 0;
}

/* Adds to the thread's sum of squares, or makes the step. */
__device__ __forceinline__ void vpps_run_elements(const vpps_arguments &a, const vpps_script_header *h) {
    volatile vpps_elements *own = &vpps_own;
#pragma unroll 1
    for (unsigned i = vpps_thread(); i < own->n; i += VPPS_THREADS) {
        const unsigned row = i / own->width;
        unsigned element = i - row * own->width; /* of the parameter */
        float g;
        if (own->is_matrix) {
            const unsigned product = own->gradient + (own->first + row) * own->width + element;
            element += ((const unsigned *)a.tables)[own->rows + own->first + row];
            g = ((const float *)a.gradients)[VPPS_HOST_PRODUCTS ? product : element];
        } else {
            unsigned gradient = own->gradient;
            element += own->first;
            if (own->entry) gradient = ((const unsigned *)a.script)[own->rows + 2 * row + 1];
            g = ((const float *)a.pool)[gradient + element];
            if (own->entry) element += ((const unsigned *)a.script)[own->rows + 2 * row] * own->entry;
        }
        if (own->updates) {
            float *w = (float *)(own->is_matrix ? a.master : a.pool) + own->values + element;
            float *s0 = (float *)(own->is_matrix ? a.states[0] : a.pool) + own->states[0] + element;
            float *s1 = (float *)(own->is_matrix ? a.states[1] : a.pool) + own->states[1] + element;
            VPPS_STEP(h, vpps_this_step.scale * g, w, s0, s1);
        } else {
            vpps_norm[vpps_thread()] += g * g;
        }
    }
}

/* The threads' sums to the VP's place. */
__device__ __forceinline__ void vpps_publish_norm(const vpps_arguments &a) {
    const unsigned warp = vpps_thread() / 32, lane = vpps_thread() % 32;
    float sum = vpps_warp_sum(vpps_norm[vpps_thread()]);
    if (lane == 0) vpps_norm_parts[warp] = sum;
    __syncthreads();
    if (vpps_thread() != 0) return;
#pragma unroll 1
    for (unsigned i = 1; i < VPPS_WARPS; i++) sum += vpps_norm_parts[i];
    ((float *)a.pool)[a.norms + vpps_vp()] = sum;
}

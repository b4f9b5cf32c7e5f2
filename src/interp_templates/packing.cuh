/* packing.cuh - packs the vectors dy and x of matrices' gradients dy x^T for cuBLAS (codegen/packing.h), one vector after the other: in fp32, or
 * rounded as for bf16 products. In bf16x3 a vector is stored three times: x as its high, low and high part, dy as its high, high and low part. So one
 * product over all of them equals the three products of vpps_add_products. */

enum { VPPS_PACKED_TIMES = VPPS_PARTS == 2 ? 3 : 1 };

/* Copies four elements of a vector of LENGTH elements, at address `from`, to packed vector number `vector` at `to`, as fp32 or as bf16
 * numbers. IS_X: whether the vector is an x, else a dy, of a gradient dy x^T. QUADS: the vector begins and ends at a multiple of four
 * words. IN_PARTS: the vector is stored in bf16 already (vpps_in_parts). */
template <bool IS_X, bool IN_PARTS, bool QUADS, unsigned LENGTH>
__device__ __forceinline__ void vpps_pack_four(float *to, const float *from, unsigned vector, unsigned element) {
#if VPPS_PARTS
    const unsigned words = (LENGTH + 7) / 8 * 4; /* words of a vector in bf16, two elements a word, padded */
    const vpps_quad q = vpps_four<QUADS, false, LENGTH>(from + element, element);
    const vpps_split low = vpps_parts_of<IN_PARTS>(q.x, q.y), high = vpps_parts_of<IN_PARTS>(q.z, q.w);
    float *const row = to + (unsigned long long)vector * VPPS_PACKED_TIMES * words + element / 2;
#pragma unroll
    for (unsigned k = 0; k < VPPS_PACKED_TIMES; k++) {
        const unsigned part = VPPS_PACKED_TIMES == 3 && k == (IS_X ? 1 : 2) ? VPPS_PARTS - 1 : 0;
        vpps_at<vpps_pair>(row + k * words) =
            vpps_pair{__uint_as_float(low.part[part]), __uint_as_float(high.part[part])};
    }
#else
    const unsigned words = (LENGTH + 3) / 4 * 4;
    vpps_at<vpps_quad>(to + (unsigned long long)vector * words + element) =
        vpps_four<QUADS, false, LENGTH>(from + element, element);
#endif
}

/* Copies value V's vectors, of 4 * FOURS elements each, one after the other, for cuBLAS to compute gradients dy x^T of
 * matrices. NUMBER, V's number among the cell's values dy and x, is even for a dy, odd for an x. All CTAs copy some. */
template <class V, unsigned NUMBER, unsigned FOURS, class SUM>
__device__ __forceinline__ void vpps_pack(const SUM &sum) {
    const unsigned *const script = (const unsigned *)sum.a.script;
#pragma unroll 1
    for (unsigned i = 0; i < sum.n; i++) {
        VPPS_READ_PLACE;
        const auto t = sum.task(i);
        float *const to = (float *)sum.a.packed + script[sum.tasks[i].pass_record + NUMBER];
#pragma unroll 4
        for (unsigned q = sum.vp * VPPS_THREADS + threadIdx.x; q < V::count(t) * FOURS; q += VPPS_VPS * VPPS_THREADS) {
            const unsigned k = q / FOURS;
            vpps_pack_four<NUMBER % 2, V::IN_PARTS, V::QUADS, V::LENGTH>(to, t.pool + (V::vector(t, k) + V::OFFSET), k,
                                                                         q % FOURS * 4);
        }
    }
}

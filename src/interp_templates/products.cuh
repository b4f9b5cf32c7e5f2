/* products.cuh - products of matrices with vectors. */

/* ---------------------------------------------------------------- products by one VP, of matrices in memory */

/* Adds a matrix's row, WORDS between its elements, times x: by the lanes of a warp, whose sums are to be added up; by one thread. */
template <unsigned LENGTH, unsigned WORDS>
__device__ __forceinline__ float vpps_multiply_row(unsigned lane, float sum, const float *row, const float *x) {
#pragma unroll 8
    for (unsigned k = lane; k < LENGTH; k += 32) sum = vpps_multiply_add(row[k * WORDS], x[k], sum);
    return sum;
}
template <unsigned LENGTH, unsigned WORDS>
__device__ __forceinline__ float vpps_multiply_column(float sum, const float *row, const float *x) {
#pragma unroll 8
    for (unsigned k = 0; k < LENGTH; k++) sum = vpps_multiply_add(row[k * WORDS], x[k], sum);
    return sum;
}

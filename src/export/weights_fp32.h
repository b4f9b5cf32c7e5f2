/* weights_fp32.h - weights as floats. Of a matrix, a block of `width` rows lies column after column. */
typedef float matrix_weight;
typedef float table_weight;
#define MATRIX(w) const matrix_weight *restrict w
#define BLOCK_AT(w, row, cols) ((w) + (size_t)(row) * (cols))
#define ENTRY(w, words, number, e) ((w)[(size_t)(number) * (words) + (e)])

/* y += the block times x. */
VPPS_INLINE void multiply_block(size_t width, size_t cols, MATRIX(w), const float *restrict x, float *restrict y) {
    float sum[MOST_ROWS];
    for (size_t j = 0; j < width; j++) sum[j] = y[j];
    for (size_t k = 0; k < cols; k++, w += width)
        for (size_t j = 0; j < width; j++) sum[j] = multiply_add(w[j], x[k], sum[j]);
    for (size_t j = 0; j < width; j++) y[j] = sum[j];
}

VPPS_INLINE float block_weight(size_t width, size_t row, size_t column, MATRIX(w)) { return w[column * width + row]; }

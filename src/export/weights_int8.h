/* weights_int8.h - weights as integers from -127 to 127, with a scale for each row of a matrix and each entry of a table. Of a matrix, a
 * block of `width` rows lies column after column. */
typedef int8_t matrix_weight;
typedef int8_t table_weight;
#define MATRIX(w) const matrix_weight *restrict w, const float *restrict w##_scale
#define BLOCK_AT(w, row, cols) ((w) + (size_t)(row) * (cols)), (w##_scale + (row))
#define ENTRY(w, words, number, e) ((float)(w)[(size_t)(number) * (words) + (e)] * w##_scale[number])

/* y += the block times x. */
VPPS_INLINE void multiply_block(size_t width, size_t cols, MATRIX(w), const float *restrict x, float *restrict y) {
    float sum[MOST_ROWS];
    for (size_t j = 0; j < width; j++) sum[j] = 0.0f;
    for (size_t k = 0; k < cols; k++, w += width)
        for (size_t j = 0; j < width; j++) sum[j] = multiply_add((float)w[j], x[k], sum[j]);
    for (size_t j = 0; j < width; j++) y[j] = multiply_add(w_scale[j], sum[j], y[j]);
}

VPPS_INLINE float block_weight(size_t width, size_t row, size_t column, MATRIX(w)) {
    return (float)w[column * width + row] * w_scale[row];
}

/* weights_int8.h - weights as integers from -127 to 127, with a scale for each row of a matrix and each entry of a table. A matrix block of
 * `width` rows is stored column after column. */
typedef int8_t matrix_weight;
typedef int8_t table_weight;
#define MATRIX(w) const matrix_weight *restrict w, const float *restrict w##_scale
#define ARGUMENT(w) w, w##_scale
#define BLOCK_AT(w, row, cols) ((w) + (size_t)(row) * (cols)), (w##_scale + (row))
#define ENTRY(w, words, number, e) ((float)(w)[(size_t)(number) * (words) + (e)] * w##_scale[number])

/* Multiplies `width` matrix rows, from row `first` on, by n vectors x, and adds the products to n vectors y. */
VPPS_INLINE void multiply_block(size_t n, size_t first, size_t width, size_t cols, MATRIX(w), const float *const *x,
                                float *const *y) {
    float sum[AT_ONCE][MOST_ROWS] = {{0}};
    for (size_t k = 0; k < cols; k++, w += width)
        for (size_t r = 0; r < n; r++)
            for (size_t j = 0; j < width; j++) sum[r][j] = multiply_add((float)w[j], x[r][k], sum[r][j]);
    for (size_t r = 0; r < n; r++)
        for (size_t j = 0; j < width; j++) y[r][first + j] = multiply_add(w_scale[j], sum[r][j], y[r][first + j]);
}

VPPS_INLINE float block_weight(size_t width, size_t row, size_t column, MATRIX(w)) {
    return (float)w[column * width + row] * w_scale[row];
}

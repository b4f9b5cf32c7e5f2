/* weights_fp32.h - weights as floats. A matrix block of `width` rows is stored column after column. */
typedef float matrix_weight;
typedef float table_weight;
#define MATRIX(w) const matrix_weight *restrict w
#define ARGUMENT(w) w
#define BLOCK_AT(w, row, cols) ((w) + (size_t)(row) * (cols))
#define ENTRY(w, words, number, e) ((w)[(size_t)(number) * (words) + (e)])

/* Multiplies `width` matrix rows, from row `first` on, by n vectors x, and adds the products to n vectors y. */
VPPS_INLINE void multiply_block(size_t n, size_t first, size_t width, size_t cols, MATRIX(w), const float *const *x,
                                float *const *y) {
    float sum[AT_ONCE][MOST_ROWS];
    for (size_t r = 0; r < n; r++)
        for (size_t j = 0; j < width; j++) sum[r][j] = y[r][first + j];
    for (size_t k = 0; k < cols; k++, w += width)
        for (size_t r = 0; r < n; r++)
            for (size_t j = 0; j < width; j++) sum[r][j] = multiply_add(w[j], x[r][k], sum[r][j]);
    for (size_t r = 0; r < n; r++)
        for (size_t j = 0; j < width; j++) y[r][first + j] = sum[r][j];
}

VPPS_INLINE float block_weight(size_t width, size_t row, size_t column, MATRIX(w)) { return w[column * width + row]; }

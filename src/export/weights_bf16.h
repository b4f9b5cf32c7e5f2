/* weights_bf16.h - weights as bf16, the upper halves of floats. A matrix block of `width` rows is stored column after column. A 32-bit word
 * has the weight of row j in its lower half and the weight of row j + (width + 1) / 2 in its upper half. */
typedef uint32_t matrix_weight;
typedef uint16_t table_weight;
#define MATRIX(w) const matrix_weight *restrict w
#define ARGUMENT(w) w
#define BLOCK_AT(w, row, cols) ((w) + (size_t)(row) / 2 * (cols))
#define ENTRY(w, words, number, e) float_of_bits((uint32_t)(w)[(size_t)(number) * (words) + (e)] << 16)

/* Multiplies `width` matrix rows, from row `first` on, by n vectors x, and adds the products to n vectors y. */
VPPS_INLINE void multiply_block(size_t n, size_t first, size_t width, size_t cols, MATRIX(w), const float *const *x,
                                float *const *y) {
    const size_t half = (width + 1) / 2;
    float low[AT_ONCE][MOST_ROWS / 2], high[AT_ONCE][MOST_ROWS / 2] = {{0}};
    for (size_t r = 0; r < n; r++) {
        for (size_t j = 0; j < half; j++) low[r][j] = y[r][first + j];
        for (size_t j = half; j < width; j++) high[r][j - half] = y[r][first + j];
    }
    for (size_t k = 0; k < cols; k++, w += half) {
        for (size_t r = 0; r < n; r++) {
            for (size_t j = 0; j < half; j++) {
                low[r][j] = multiply_add(float_of_bits(w[j] << 16), x[r][k], low[r][j]);
                high[r][j] = multiply_add(float_of_bits(w[j] & 0xffff0000u), x[r][k], high[r][j]);
            }
        }
    }
    for (size_t r = 0; r < n; r++) {
        for (size_t j = 0; j < half; j++) y[r][first + j] = low[r][j];
        for (size_t j = half; j < width; j++) y[r][first + j] = high[r][j - half];
    }
}

VPPS_INLINE float block_weight(size_t width, size_t row, size_t column, MATRIX(w)) {
    const size_t half = (width + 1) / 2;
    return row < half ? float_of_bits(w[column * half + row] << 16)
                      : float_of_bits(w[column * half + row - half] & 0xffff0000u);
}

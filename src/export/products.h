/* products.h - matrix-vector products, and reads of single matrix weights. A matrix is stored in blocks of 64 rows, then blocks of 16 rows,
 * then one block of the remaining rows. The rows of a block are computed side by side, each as a sum over the columns in order. */

/* Adds rows i to i + width - 1 of the products w x to y, for n vectors x and y. AT_ONCE vectors share one read of each weight. */
VPPS_INLINE void multiply_rows(size_t i, size_t width, size_t cols, size_t n, MATRIX(w), const float *const *x,
                               float *const *y) {
    for (; n >= AT_ONCE; n -= AT_ONCE, x += AT_ONCE, y += AT_ONCE)
        multiply_block(AT_ONCE, i, width, cols, BLOCK_AT(w, i, cols), x, y);
    for (; n > 0; n--) multiply_block(1, i, width, cols, BLOCK_AT(w, i, cols), x++, y++);
}

VPPS_UNUSED static void multiply(size_t rows, size_t cols, size_t n, MATRIX(w), const float *const *x,
                                 float *const *y) {
    size_t i = 0;
    for (; i < rows / 64 * 64; i += 64) multiply_rows(i, 64, cols, n, ARGUMENT(w), x, y);
    for (; i < rows / 16 * 16; i += 16) multiply_rows(i, 16, cols, n, ARGUMENT(w), x, y);
    if (i < rows) multiply_rows(i, rows - i, cols, n, ARGUMENT(w), x, y);
}

VPPS_UNUSED static float weight_at(size_t rows, size_t cols, size_t row, size_t column, MATRIX(w)) {
    const size_t rest = rows - rows % 64, width = row < rest ? 64 : row < rows - rows % 16 ? 16 : rows % 16;
    const size_t first = width == 64 ? row - row % 64 : width == 16 ? row - row % 16 : rows - rows % 16;
    return block_weight(width, row - first, column, BLOCK_AT(w, first, cols));
}

/* Sets the n elements of y to the elements of x, or to zeros if x is NULL. */
VPPS_UNUSED static void begin_with(size_t n, const float *x, float *y) {
    for (size_t i = 0; i < n; i++) y[i] = x ? x[i] : 0.0f;
}

/* ---- functions for instructions that have no formula in isa.def */

VPPS_INLINE float inverse_of(size_t n) { return n ? 1.0f / (float)n : 0.0f; }
VPPS_INLINE float vpps_inverse_norm(float squares, size_t n, float epsilon) {
    return 1.0f / sqrtf(squares / (float)n + epsilon);
}

/* Returns x, without its fraction and clamped to 0 ... count - 1, as the number of a table's entry. */
VPPS_INLINE size_t entry_number(float x, size_t count) {
    return !(x > 0.0f) ? 0 : x < (float)count ? (size_t)x : count - 1;
}

/* Argmax of n elements of x: element 0 of the result is the index of the (first) greatest, element 1 is its log softmax. */
VPPS_UNUSED static float argmax_of(size_t n, const float *x, size_t element) {
    size_t best = 0;
    float sum = 0.0f;
    for (size_t k = 1; k < n; k++) best = x[k] > x[best] ? k : best;
    for (size_t k = 0; k < n; k++) sum += exp_of(x[k] - x[best]);
    return element ? -log_of(sum) : (float)best;
}

/* A sum has LANES partial sums: term k is added to partial sum k % LANES, and sum_of_lanes adds up the partial sums in the end. */
enum { LANES = 16 };
VPPS_INLINE float sum_of_lanes(const float *lanes) {
    float halves[LANES];
    for (size_t j = 0; j < LANES; j++) halves[j] = lanes[j];
    for (size_t width = LANES / 2; width > 0; width /= 2)
        for (size_t j = 0; j < width; j++) halves[j] += halves[j + width];
    return halves[0];
}

/* Results of loops over a vector of `length` elements. The macros write these loops: HEAD_GREATEST sets t.head to the
 * greatest element, SUM sets t.sum, EACH assigns to each element. A macro's argument is a C expression of element k. */
typedef struct totals {
    float head, sum;
    size_t length;
} totals;
#define EACH(to, value)                                                                                                \
    for (size_t k = 0; k < t.length; k++) to = value;
#define SUM(term)                                                                                                      \
    {                                                                                                                  \
        float lanes[LANES] = {0};                                                                                      \
        EACH(lanes[k % LANES], lanes[k % LANES] + (term))                                                              \
        t.sum = sum_of_lanes(lanes);                                                                                   \
    }
#define HEAD_NONE(x)
#define HEAD_GREATEST(x)                                                                                               \
    t.head = -INFINITY;                                                                                                \
    EACH(t.head, (x) > t.head ? (x) : t.head)
#define HEAD_FINITE(x) HEAD_GREATEST(x) t.head = fabsf(t.head) < INFINITY ? t.head : 0.0f;
#define HEAD_MEAN(x) SUM(x) t.head = t.sum / (float)t.length;

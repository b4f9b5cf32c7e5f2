/* bf16_product.h - the loops around a tile of a bf16 product, for instructions that keep sums in vector registers. The includer defines
 *
 *   bf16_tile                        multiplies height * VECTOR matrix rows, from number `row` on, with the vectors j0 to j0 + columns - 1,
 *                                    for elements [32 * first, 32 * end) of a row; the sums begin with those at `from` (NULL: zero)
 *   BF16_WHOLE                       whether bf16_tile reads and stores whole vectors of sums, not just the first `tail` of the last one
 *   VECTOR, VECTOR_REGISTERS         number of sums in a vector register; number of these registers
 *   PRODUCT_HEIGHT, PRODUCT_COLUMNS  most vectors of rows, and of columns, in a tile
 *   SUM_RUN                          number of elements of a row that are summed at a time
 *   BF16_TARGET, BF16_INLINE         attributes of functions, and of functions that are inlined */

BF16_INLINE void bf16_columns(const uint32_t height, const uint32_t parts, uint32_t columns, uint32_t depth,
                              uint32_t first, uint32_t end, const uint32_t *a, uint32_t row, const uint32_t *x,
                              uint32_t j, const float *from, size_t ld_from, float *c, size_t ldc, uint32_t tail) {
#define TILE(n)                                                                                                        \
    case n: bf16_tile(height, n, parts, depth, first, end, a, row, x, j, from, ld_from, c, ldc, tail); break;
    switch (columns) { TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) }
#undef TILE
}

/* Computes a whole bf16 product, a matrix (m rows) times n vectors: sums SUM_RUN elements of a row at a time, and adds up these sums. */
BF16_INLINE void bf16_all(const uint32_t parts, uint32_t m, uint32_t n, uint32_t depth, const uint32_t *a,
                          const uint32_t *x, const float *from, size_t ld_from, float *c, size_t ldc) {
    enum { ROWS = PRODUCT_HEIGHT * VECTOR, RUN_TILES = SUM_RUN / VPPS_BF16_DEPTH };
    const uint32_t groups = (n + PRODUCT_COLUMNS - 1) / PRODUCT_COLUMNS, tiles = vpps_bf16_depth_tiles(depth);
    float part[ROWS * PRODUCT_COLUMNS];
    for (uint32_t row = 0; row < m; row += ROWS) {
        const uint32_t rows = vpps_min_u32(m - row, ROWS);
        const uint32_t height = (rows + VECTOR - 1) / VECTOR, tail = rows - (height - 1) * VECTOR;
        const bool padded = BF16_WHOLE && tail < VECTOR;
        for (uint32_t group = 0, j = 0, columns; group < groups; group++, j += columns) {
            columns = n / groups + (group < n % groups);
            float *const all = c + j * ldc + row;
            for (uint32_t first = 0; first < tiles || !first; first += RUN_TILES) {
                const uint32_t end = vpps_min_u32(tiles, first + RUN_TILES);
                const float *start = from && !first ? from + j * ld_from + row : NULL;
                float *to = first || padded ? part : all;
                const size_t ld_to = to == part ? ROWS : ldc, ld_start = padded ? ROWS : ld_from;
                if (padded && start) {
                    memset(part, 0, sizeof part);
                    for (uint32_t k = 0; k < columns; k++)
                        memcpy(part + k * ROWS, start + k * ld_from, rows * sizeof *part);
                    start = part;
                }
#define HEIGHT(h)                                                                                                      \
    case h: bf16_columns(h, parts, columns, depth, first, end, a, row, x, j, start, ld_start, to, ld_to, tail); break;
                switch (height) {
                    HEIGHT(1)
                    HEIGHT(2)
#if VECTOR_REGISTERS == 32
                    HEIGHT(3)
                    HEIGHT(4)
#endif
                }
#undef HEIGHT
                for (uint32_t k = 0; k < columns && to == part; k++)
                    for (uint32_t i = 0; i < rows; i++)
                        all[i + k * ldc] = first ? all[i + k * ldc] + part[i + k * ROWS] : part[i + k * ROWS];
            }
        }
    }
}

BF16_TARGET static void product_bf16(uint32_t m, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                                     const vpps_bf16_term *terms, const float *from, size_t ld_from, float *c,
                                     size_t ldc) {
    for (uint32_t i = 0; i < n_terms; i++, from = c, ld_from = ldc) {
        const vpps_bf16_term *t = &terms[i];
        if (parts == 1)
            bf16_all(1, m, n, t->depth, t->a, x + t->x_words, from, ld_from, c, ldc);
        else
            bf16_all(2, m, n, t->depth, t->a, x + t->x_words, from, ld_from, c, ldc);
    }
}

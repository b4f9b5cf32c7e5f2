/* packs.c - packed bf16 operands of products: weights, packed when they change; vectors of a tile of vertices, packed once for all uses. */
#include "runtime/cpu/cpu.h"

/* Assigns memory for bf16 weights to blocks of matrix rows and transposed copies. NULL: assigns nothing. Returns the words needed. */
static size_t deal_packs(vpps_cpu *cpu, uint32_t *memory) {
    const uint32_t parts = cpu->precision.parts;
    size_t at = 0;
    for (uint32_t v = 0; v < cpu->n_vps; v++) {
        for (uint32_t p = 0; p < cpu->model->n_params; p++) {
            const vpps_cpu_matrix *m = &cpu->matrices[p];
            const uint32_t cols = cpu->model->params[p].cols;
            if (!m->blocks) continue;
            for (uint32_t b = m->first_block[v]; b < m->first_block[v + 1]; b++) {
                if (memory) m->blocks[b].packed = memory + at;
                at += vpps_bf16_words(m->blocks[b].rows, cols, parts);
            }
            const vpps_rows rows = vpps_rows_of_vp(cpu, p, v);
            if (memory) m->packed_t[v] = memory + at;
            at += vpps_bf16_words(cols, rows.end - rows.first, parts);
        }
    }
    return at;
}

vpps_status vpps_make_packs(vpps_cpu *cpu) {
    if (!cpu->precision.parts) return VPPS_OK;
    bool ok = true;
    for (uint32_t p = 0; p < cpu->model->n_params && ok; p++) {
        vpps_cpu_matrix *m = &cpu->matrices[p];
        if (m->blocks && !m->packed_t) m->packed_t = calloc(cpu->n_vps, sizeof *m->packed_t);
        ok = !m->blocks || m->packed_t;
    }
    const size_t bytes = (deal_packs(cpu, NULL) + 16) * sizeof(uint32_t);
    uint32_t *memory = ok ? vpps_map_pages(bytes) : NULL;
    if (!memory) return vpps_fail(VPPS_MEMORY, "cpu: out of memory for the model's matrices");
    vpps_unmap_pages(cpu->pack_memory, cpu->pack_bytes);
    cpu->pack_memory = memory;
    cpu->pack_bytes = bytes;
    deal_packs(cpu, memory);
    return VPPS_OK;
}

/* Sets columns[] to the addresses of a block's columns from column k on. Returns their number. */
static uint32_t columns_from(const vpps_matrix_block *b, uint32_t k, uint32_t cols, const float **columns) {
    const uint32_t n = vpps_min_u32(cols - k, VPPS_BF16_DEPTH);
    for (uint32_t i = 0; i < n; i++) columns[i] = b->values + (k + i) * b->ld;
    return n;
}

static void pack_forward(const vpps_cpu *cpu, uint32_t param, const vpps_matrix_block *b) {
    const uint32_t parts = cpu->precision.parts, cols = cpu->model->params[param].cols;
    uint32_t *to = b->packed;
    for (uint32_t k = 0; k < cols; k += VPPS_BF16_DEPTH, to += (size_t)parts * VPPS_BF16_TILE) {
        const float *columns[VPPS_BF16_DEPTH];
        const vpps_bf16_source s = {columns, 0, b->rows, columns_from(b, k, cols, columns), true};
        cpu->precision.unit.pack(&s, parts, VPPS_BF16_PAIRS, vpps_bf16_depth_tiles(cols), to);
    }
}

void vpps_pack_copy(const vpps_cpu *cpu, uint32_t param, uint32_t vp, const vpps_matrix_block *b) {
    const uint32_t parts = cpu->precision.parts, cols = cpu->model->params[param].cols;
    const vpps_rows own = vpps_rows_of_vp(cpu, param, vp);
    const uint32_t depth_tiles = vpps_bf16_depth_tiles(own.end - own.first);
    uint32_t *to = cpu->matrices[param].packed_t[vp];
    to += (size_t)(b->first_row - own.first) / VPPS_BF16_DEPTH * parts * VPPS_BF16_TILE;
    for (uint32_t k = 0; k < cols; k += VPPS_BF16_DEPTH) {
        const float *columns[VPPS_BF16_DEPTH];
        const vpps_bf16_source s = {columns, 0, columns_from(b, k, cols, columns), b->rows, false};
        cpu->precision.unit.pack(&s, parts, VPPS_BF16_PAIRS, depth_tiles, to);
        to += (size_t)VPPS_BF16_DEPTH / VPPS_BF16_ROWS * depth_tiles * parts * VPPS_BF16_TILE;
    }
}

void vpps_pack_block(const vpps_cpu *cpu, uint32_t param, uint32_t vp, const vpps_matrix_block *b) {
    pack_forward(cpu, param, b);
    if (vpps_has_copies(cpu, param)) vpps_pack_copy(cpu, param, vp, b);
}

void vpps_pack_matrix(const vpps_cpu *cpu, uint32_t param) {
    const vpps_cpu_matrix *m = &cpu->matrices[param];
    for (uint32_t v = 0; cpu->precision.parts && v < cpu->n_vps; v++)
        for (uint32_t b = m->first_block[v]; b < m->first_block[v + 1]; b++)
            vpps_pack_block(cpu, param, v, &m->blocks[b]);
}

void vpps_forget_vectors(vpps_vp *vp) {
    vp->tile++;
    vp->vector_words = 0;
}

/* Makes room for `words` more words in vp->vectors, and keeps the data that are packed there. */
static bool need_words(vpps_vp *vp, size_t words) {
    const size_t wanted = vp->vector_words + words;
    if (wanted <= vp->vector_capacity) return true;
    const size_t capacity = wanted + wanted / 2;
    uint32_t *memory = vpps_map_pages(capacity * sizeof *memory);
    if (!memory) return false;
    if (vp->vector_words) memcpy(memory, vp->vectors, vp->vector_words * sizeof *memory);
    vpps_unmap_pages(vp->vectors, vp->vector_capacity * sizeof *memory);
    vp->vectors = memory;
    vp->vector_capacity = capacity;
    return true;
}

/* Finds where in vp->vectors the bf16 vectors named `key` of the tile (vertices computed together) lie: *at. If they
 * are not there yet (*known: false), makes room for `words` words. Returns false if out of memory. */
static bool find_room(vpps_vp *vp, uint32_t key, size_t words, bool *known, size_t *at) {
    const size_t before = vpps_capacity(vp->packed);
    vpps_packed once = {0}, *p = &once;
    if (key != VPPS_NONE) {
        if (!VPPS_RESERVE(vp->packed, (size_t)key + 1)) return false;
        const size_t after = vpps_capacity(vp->packed);
        if (after > before) memset(vp->packed + before, 0, (after - before) * sizeof *vp->packed);
        p = &vp->packed[key];
    }
    *known = p->tile == vp->tile;
    if (!*known) {
        if (!need_words(vp, words)) return false;
        *p = (vpps_packed){vp->tile, vp->vector_words};
        vp->vector_words += words;
    }
    *at = p->at;
    return true;
}

bool vpps_pack_vectors(vpps_vp *vp, uint32_t key, uint32_t n, uint32_t depth, const float *const *x, uint32_t skip,
                       size_t *at) {
    const vpps_cpu_precision *p = &vp->cpu->precision;
    bool known;
    if (!find_room(vp, key, vpps_bf16_words(n, depth, p->parts), &known, at)) return false;
    const vpps_bf16_source s = {x, skip, n, depth, false};
    if (!known) p->unit.pack(&s, p->parts, VPPS_BF16_AS_ROWS, vpps_bf16_depth_tiles(depth), vp->vectors + *at);
    return true;
}

bool vpps_spread_vectors(vpps_vp *vp, uint32_t key, uint32_t spread_key, uint32_t n, uint32_t depth,
                         const float *const *x, uint32_t skip, size_t *at) {
    const vpps_cpu_precision *p = &vp->cpu->precision;
    size_t rows;
    bool known;
    if (!vpps_pack_vectors(vp, key, n, depth, x, skip, &rows) ||
        !find_room(vp, spread_key, vpps_bf16_spread_words(n, depth, p->parts), &known, at))
        return false;
    if (!known) p->unit.spread(n, depth, p->parts, vp->vectors + rows, vp->vectors + *at);
    return true;
}

/* verify_operands.c - a piece of work and the operands that ops.def prescribes for it. */
#include "nodes/verify/verify.h"

/* ---------------------------------------------------------------- operands */

/* An operand of `words` elements at `base`; `kind` is the instruction's letter. On success the elements it reads. */
static bool operand_span(const vpps_piece *piece, char kind, uint32_t word, uint64_t base, uint32_t words,
                         uint32_t *from, uint32_t *n) {
    *from = 0;
    *n = words;
    if (kind == 's') {
        *n = 1;
        return word == base;
    }
    switch (piece->in->row->form) {
    case VPPS_FORM_EW:
        if (kind == 'v') return word == base;
        *from = piece->at;
        *n = piece->n;
        return word + piece->shift == base + piece->at && (uint64_t)piece->at + piece->n <= words;
    case VPPS_FORM_MATMUL: /* neither operand may be overwritten on the way */
        return word == base && (word >= (uint64_t)piece->in->destination + piece->in->length ||
                                word + (uint64_t)words <= piece->in->destination);
    default: return word == base && words == piece->in->length;
    }
}

static bool value_operand(vpps_verifier *v, const vpps_piece *piece, char kind, uint32_t word, uint32_t node,
                          vpps_pass pass) {
    uint32_t from, n;
    if (!operand_span(piece, kind, word, v->values[node], vpps_verify_words(v, node), &from, &n)) return false;
    if (pass == VPPS_PASS_READ) return vpps_verify_read_value(v, node, from, n);
    if (pass == VPPS_PASS_PLACES) return true;
    uint64_t offset = (uint64_t)v->values[node] + from;
    uint32_t token = offset < v->pool_words ? v->pool[offset].token : UINT32_MAX;
    return token == (VPPS_HOLDS_VALUE | v->same_value[node]) || token == VPPS_HOLDS_INITIAL;
}

static bool gradient_operand(vpps_verifier *v, const vpps_piece *piece, char kind, uint32_t word, vpps_pass pass) {
    uint32_t from, n, slot = v->slot_of[piece->node];
    if (slot == UINT32_MAX) return false;
    if (!operand_span(piece, kind, word, v->slots[slot].start, v->slots[slot].words, &from, &n)) return false;
    if (pass == VPPS_PASS_READ) return vpps_verify_read_gradient(v, slot, from, n);
    uint64_t offset = (uint64_t)v->slots[slot].start + from;
    return pass == VPPS_PASS_PLACES ||
           (offset < v->pool_words && v->pool[offset].token == (VPPS_HOLDS_GRADIENT | v->slots[slot].root));
}

/* Indices lie behind their node's value. Forward they are a second destination. */
static bool index_operand(vpps_verifier *v, const vpps_piece *piece, uint32_t word, vpps_pass pass) {
    uint32_t words = vpps_verify_words(v, piece->node), from, n;
    uint64_t base = (uint64_t)v->values[piece->node] + words;
    if (!operand_span(piece, 't', word, base, words, &from, &n)) return false;
    if (pass != VPPS_PASS_READ || !piece->edge) return true;
    return vpps_verify_read(v, (uint32_t)base + from, n, VPPS_HOLDS_INDEX | piece->node);
}

/* The words r, k, c of the product that this instruction makes. */
static bool product_words(const vpps_verifier *v, const vpps_piece *piece, const uint32_t *w) {
    const vpps_signature *a = vpps_verify_signature(v, vpps_verify_arg(v, piece->node, 0));
    const vpps_signature *b = vpps_verify_signature(v, vpps_verify_arg(v, piece->node, 1));
    switch (piece->in->opcode) {
    case VPPS_I_MATMUL_NT: return w[0] == a->rows && w[1] == b->cols && w[2] == a->cols;
    case VPPS_I_MATMUL_TN: return w[0] == a->cols && w[1] == a->rows && w[2] == b->cols;
    default: return w[0] == a->rows && w[1] == a->cols && w[2] == b->cols;
    }
}

static bool immediate_fits(const vpps_verifier *v, const vpps_piece *piece, char letter, uint32_t word) {
    const vpps_flat_node *node = &v->nodes[piece->node];
    switch (letter) {
    case 'k': return word == piece->argument;
    case 'f':
    case 'u': return word == node->imm;
    case 'n': return word == vpps_verify_float_bits(1.0f / (float)node->n_args);
    case 'o': return word == vpps_verify_float_bits(1.0f);
    case 'p': return word == vpps_verify_float_bits(vpps_verify_signature(v, piece->node)->p);
    case 'e': return word + piece->shift == (uint64_t)node->imm + piece->at;
    default: return word == 0; /* z: dropout that drops nothing */
    }
}

static bool list_fits(vpps_verifier *v, const vpps_piece *piece, uint32_t first, const uint32_t *w, vpps_pass pass) {
    uint32_t n = v->nodes[piece->node].n_args - first;
    if (w[0] != n) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!value_operand(v, piece, 't', w[1 + i], vpps_verify_arg(v, piece->node, first + i), pass)) return false;
    }
    return true;
}

bool vpps_verify_operands(vpps_verifier *v, const vpps_piece *piece, vpps_pass pass) {
    const uint32_t *w = piece->in->operands, node = piece->node;
    const char *kind = piece->in->row->operands;
    uint32_t first = 0; /* argument that a list begins with */
    for (const char *letter = piece->letters; *letter; letter++, w++) {
        bool fits;
        if (*letter == 'r') return product_words(v, piece, w);
        switch (*letter) {
        case 'a': fits = value_operand(v, piece, *kind, *w, vpps_verify_arg(v, node, 0), pass); break;
        case 'b': fits = value_operand(v, piece, *kind, *w, vpps_verify_arg(v, node, 1), pass); break;
        case 'X': fits = value_operand(v, piece, *kind, *w, vpps_verify_arg(v, node, 1 + piece->at), pass); break;
        case 'y': fits = value_operand(v, piece, *kind, *w, node, pass); break;
        case 'd': fits = gradient_operand(v, piece, *kind, *w, pass); break;
        case 'i': fits = index_operand(v, piece, *w, pass); break;
        case 'v':
            fits = value_operand(v, piece, *kind, *w, vpps_verify_arg(v, node, 0), pass);
            first = 1;
            break;
        case 'w':
            fits = *w == (uint64_t)v->values[vpps_verify_arg(v, node, 0)] + piece->argument - 1;
            if (fits && pass == VPPS_PASS_READ) {
                fits = vpps_verify_read_value(v, vpps_verify_arg(v, node, 0), piece->argument - 1, 1);
            }
            break;
        case '*':
            fits = list_fits(v, piece, first, w, pass);
            w += *w;
            break;
        default: fits = immediate_fits(v, piece, *letter, *w); break;
        }
        if (!fits) return false;
        kind++;
    }
    return true;
}

/* ---------------------------------------------------------------- copies of parts: concat and slice */

/* Element `at` of the destination is a copy of element *from of the other side; *n is clipped to one column. */
static bool parts_source(const vpps_verifier *v, vpps_piece *piece, uint32_t *argument, uint32_t *from) {
    const vpps_signature *whole = vpps_verify_signature(v, piece->node);
    if (whole->op == VPPS_OP_SLICE) {
        const uint32_t rows = vpps_verify_signature(v, vpps_verify_arg(v, piece->node, 0))->rows;
        const uint32_t first = v->nodes[piece->node].imm, n = whole->rows;
        uint32_t column = piece->at / (piece->edge ? rows : n), row = piece->at % (piece->edge ? rows : n);
        if (piece->edge) row -= first; /* wraps around below the slice */
        if (row >= n) return false;
        *argument = 0;
        *from = piece->edge ? column * n + row : column * rows + first + row;
        piece->n = vpps_min_u32(piece->n, n - row);
        return true;
    }
    uint32_t before = 0, i = 0, row = piece->at % whole->rows;
    for (; i < v->nodes[piece->node].n_args; i++) {
        const uint32_t rows = vpps_verify_signature(v, vpps_verify_arg(v, piece->node, i))->rows;
        if (piece->edge ? i == piece->argument : row < before + rows) {
            *argument = i;
            if (piece->edge) {
                *from = piece->at / rows * whole->rows + before + piece->at % rows;
                piece->n = vpps_min_u32(piece->n, rows - piece->at % rows);
            } else {
                *from = piece->at / whole->rows * rows + row - before;
                piece->n = vpps_min_u32(piece->n, before + rows - row);
            }
            return true;
        }
        before += rows;
    }
    return false;
}

bool vpps_verify_parts(vpps_verifier *v, vpps_piece *piece, bool run) {
    uint32_t argument, from;
    if (!parts_source(v, piece, &argument, &from)) return false;
    piece->from = from;
    uint64_t source = piece->in->operands[0] + piece->shift;
    if (piece->edge) {
        uint32_t slot = v->slot_of[piece->node];
        if (source != (uint64_t)v->slots[slot].start + from) return false;
        if (!run) return true;
        int64_t bits = v->edges[piece->edge - 1].bits;
        bits += vpps_verify_signature(v, piece->node)->op == VPPS_OP_SLICE ? from : piece->at;
        return vpps_verify_read_gradient(v, slot, from, piece->n) &&
               vpps_verify_contribute(v, piece->edge - 1, piece->at, piece->n, bits, piece->in->acc);
    }
    uint32_t x = vpps_verify_arg(v, piece->node, argument);
    if (source != (uint64_t)v->values[x] + from) return false;
    return !run || (vpps_verify_read_value(v, x, from, piece->n) &&
                    vpps_verify_write_value(v, piece->node, piece->at, piece->n));
}

bool vpps_verify_is_parts(const vpps_verifier *v, uint32_t node) {
    return vpps_ops[vpps_verify_signature(v, node)->op].op_class == VPPS_CLASS_PARTS;
}

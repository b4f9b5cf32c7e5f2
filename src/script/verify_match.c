/* verify_match.c - plain instructions: which node's work is this, and is it that work?
 *
 * An instruction may span many neighbouring nodes. It is taken piece by piece: the destination's offset leads to a
 * region, the region to nodes (forward) or to edges (backward), and ops.def says which operands they need. Several
 * nodes can own the same words one after the other, so places alone may fit more than one piece of work; then what the
 * operands hold decides.
 */
#include "script/verify.h"

/* One piece: elements [at, at + n) of the destination's region, displacement `shift` in the instruction. */
typedef struct vpps_piece {
    const vpps_decoded *in;
    uint32_t node, edge; /* edge: its number + 1; 0: forward */
    uint32_t argument;
    const char *letters;
    uint64_t shift;
    uint32_t at, n;
} vpps_piece;

typedef enum vpps_pass {
    VPPS_PASS_PLACES, /* do offsets and immediates fit? */
    VPPS_PASS_PEEK,   /* does the first element of each operand hold the right thing? */
    VPPS_PASS_READ    /* read them */
} vpps_pass;

static uint32_t float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

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
        return word == base &&
               (word >= (uint64_t)piece->in->destination + piece->in->length || word + (uint64_t)words <= piece->in->destination);
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
    case 'n': return word == float_bits(1.0f / (float)node->n_args);
    case 'o': return word == float_bits(1.0f);
    case 'p': return word == float_bits(vpps_verify_signature(v, piece->node)->p);
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

/* Are the operands those of this piece's work (and, in the last pass, is everything there)? */
static bool operands_fit(vpps_verifier *v, const vpps_piece *piece, vpps_pass pass) {
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

/* Is this a copy of a part, and does its source fit? With `run` it is carried out. */
static bool parts_fit(vpps_verifier *v, vpps_piece *piece, bool run) {
    uint32_t argument, from;
    if (!parts_source(v, piece, &argument, &from)) return false;
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

static bool is_parts(const vpps_verifier *v, uint32_t node) {
    return vpps_ops[vpps_verify_signature(v, node)->op].klass == VPPS_CLASS_PARTS;
}

/* ---------------------------------------------------------------- candidates */

/* The best piece of work so far, and how well it fits: 1 places, 2 not yet done, 3 operands hold what is needed. */
typedef struct vpps_choice {
    vpps_piece piece;
    uint32_t fit;
    uint32_t near; /* a node whose operands do not fit; UINT32_MAX: none */
} vpps_choice;

static bool is_done(const vpps_verifier *v, const vpps_piece *piece) {
    if (!piece->edge) return vpps_verify_bit(v, v->value_bits[piece->node] + piece->at);
    if (vpps_verify_signature(v, piece->node)->op == VPPS_OP_SLICE) return false;
    return vpps_verify_bit(v, v->edges[piece->edge - 1].bits + piece->at);
}

static void consider(vpps_verifier *v, vpps_choice *choice, vpps_piece piece, uint32_t words) {
    const vpps_form form = piece.in->row->form;
    const bool parts = is_parts(v, piece.node);
    if (form == VPPS_FORM_EW) {
        piece.n = vpps_min_u32(piece.n, words - piece.at);
    } else if (form == VPPS_FORM_REDUCE) {
        if (piece.at && piece.letters[1] != 'X') return;
    } else if (piece.at || piece.in->length != words) {
        return;
    }
    if (parts ? !parts_fit(v, &piece, false) : !operands_fit(v, &piece, VPPS_PASS_PLACES)) {
        choice->near = piece.node;
        return;
    }
    uint32_t fit = is_done(v, &piece) ? 1 : parts || operands_fit(v, &piece, VPPS_PASS_PEEK) ? 3 : 2;
    if (fit > choice->fit) {
        choice->fit = fit;
        choice->piece = piece;
    }
}

/* The operands of a node's forward instruction; NULL: it is not this opcode. */
static const char *forward_letters(const vpps_verifier *v, uint32_t node, const vpps_decoded *in) {
    const vpps_op_row *row = &vpps_ops[vpps_verify_signature(v, node)->op];
    if (row->klass == VPPS_CLASS_SOURCE || row->klass == VPPS_CLASS_AFFINE) return NULL;
    if (row->forward == VPPS_I_DROPOUT && !v->training) { /* the identity */
        return in->opcode == VPPS_I_COPY ? "a" : in->opcode == VPPS_I_DROPOUT ? "aez" : NULL;
    }
    return row->forward == in->opcode ? row->forward_operands : NULL;
}

static void consider_values(vpps_verifier *v, vpps_choice *choice, const vpps_decoded *in, uint64_t shift, uint32_t n) {
    const uint32_t offset = (uint32_t)(in->destination + shift);
    for (uint32_t r = v->value_regions.n; vpps_verify_region(&v->value_regions, offset, &r) && choice->fit < 3;) {
        const vpps_region *region = &v->value_regions.at[r];
        for (uint32_t i = 0; i < region->n && choice->fit < 3; i++) {
            uint32_t node = v->value_regions.nodes[region->first + i];
            const char *letters = forward_letters(v, node, in);
            if (!letters) continue;
            consider(v, choice, (vpps_piece){in, node, 0, 0, letters, shift, offset - region->start, n}, region->words);
        }
    }
}

static void consider_edge(vpps_verifier *v, vpps_choice *choice, uint32_t edge, const vpps_region *region,
                          const vpps_decoded *in, uint64_t shift, uint32_t n) {
    const vpps_edge *e = &v->edges[edge];
    const uint32_t argument = edge - v->edge_first[e->node], offset = (uint32_t)(in->destination + shift);
    const char *letters;
    if (v->slots[e->slot].start != region->start || v->slots[e->slot].words != region->words) return;
    if (vpps_verify_backward(v, e->node, argument, &letters) != in->opcode) return;
    consider(v, choice, (vpps_piece){in, e->node, edge + 1, argument, letters, shift, offset - region->start, n},
             region->words);
}

static void consider_edges(vpps_verifier *v, vpps_choice *choice, uint32_t from, const vpps_region *region,
                           const vpps_decoded *in, uint64_t shift, uint32_t n) {
    uint32_t at = v->edge_table[vpps_verify_edge_key(v, in->opcode, region->start, from)];
    for (; at && choice->fit < 3; at = v->edges[at - 1].next) consider_edge(v, choice, at - 1, region, in, shift, n);
}

static void consider_gradients(vpps_verifier *v, vpps_choice *choice, const vpps_decoded *in, uint64_t shift,
                               uint32_t n) {
    const uint32_t offset = (uint32_t)(in->destination + shift);
    for (uint32_t r = v->gradient_regions.n; vpps_verify_region(&v->gradient_regions, offset, &r) && choice->fit < 3;) {
        const vpps_region *region = &v->gradient_regions.at[r];
        const char *kinds = in->row->operands;
        for (uint32_t i = 0; kinds[i] && kinds[i] != '*'; i++) {
            if (!(v->gradient_operand[in->opcode] >> i & 1)) continue;
            uint64_t from = in->operands[i];
            if (kinds[i] == 't' && in->row->form == VPPS_FORM_EW) from += shift - (offset - region->start);
            consider_edges(v, choice, (uint32_t)from, region, in, shift, n);
        }
        if (in->opcode != VPPS_I_COPY) continue;
        consider_edges(v, choice, (uint32_t)VPPS_PARTS_KEY, region, in, shift, n);
        for (uint32_t i = 0; i < region->n; i++) {
            uint32_t at = v->slots[v->gradient_regions.nodes[region->first + i]].slices;
            for (; at && choice->fit < 3; at = v->edges[at - 1].next) {
                consider_edge(v, choice, at - 1, region, in, shift, n);
            }
        }
    }
}

/* ---------------------------------------------------------------- running */

static bool run_piece(vpps_verifier *v, vpps_piece *piece) {
    if (is_parts(v, piece->node)) return parts_fit(v, piece, true);
    if (!operands_fit(v, piece, VPPS_PASS_READ)) return vpps_verify_refuse(v, "its operands are not ready");
    const uint32_t n = piece->in->row->form == VPPS_FORM_REDUCE ? 1 : piece->n;
    if (piece->edge) {
        int64_t bits = v->edges[piece->edge - 1].bits + piece->at;
        return vpps_verify_contribute(v, piece->edge - 1, piece->at, n, bits, piece->in->acc);
    }
    uint64_t indices = (uint64_t)v->values[piece->node] + vpps_verify_words(v, piece->node) + piece->at;
    if (piece->letters[0] == 'i' && !vpps_verify_write(v, (uint32_t)indices, n, VPPS_HOLDS_INDEX | piece->node)) {
        return false;
    }
    return vpps_verify_write_value(v, piece->node, piece->at, n);
}

/* Runs the work at displacement `shift`, at most n elements of it; the number done, 0: refused. */
static uint32_t run_at(vpps_verifier *v, const vpps_decoded *in, uint64_t shift, uint32_t n) {
    vpps_choice choice = {.near = UINT32_MAX};
    if (!in->acc) consider_values(v, &choice, in, shift, n);
    if (choice.fit < 3) consider_gradients(v, &choice, in, shift, n);
    if (choice.fit) return run_piece(v, &choice.piece) ? choice.piece.n : 0;
    const uint32_t offset = (uint32_t)(in->destination + shift);
    if (in->opcode == VPPS_I_COPY && !in->acc && !v->training && in->operands[0] == in->destination) {
        /* dropout in inference, in its argument's place: changes nothing */
        return vpps_verify_write(v, offset, 1, v->pool[offset].token) ? 1 : 0;
    }
    if (choice.near != UINT32_MAX) {
        vpps_verify_refuse(v, "word %u: the operands are not those of node %u (%s)", offset, choice.near,
                           vpps_ops[vpps_verify_signature(v, choice.near)->op].name);
    } else {
        vpps_verify_refuse(v, "word %u: no node asks for this there", offset);
    }
    return 0;
}

static bool run_range(vpps_verifier *v, const vpps_decoded *in, uint64_t shift, uint64_t n) {
    while (n) {
        uint32_t done = run_at(v, in, shift, (uint32_t)n);
        if (!done) return false;
        shift += done;
        n -= done;
    }
    return true;
}

static bool overlaps(uint64_t a, uint64_t a_words, uint64_t b, uint64_t b_words) {
    return a < b + b_words && b < a + a_words;
}

/* Elements may be done in any order, so what is read may overlap what is written only element on element. */
static bool check_overlaps(vpps_verifier *v, const vpps_decoded *in) {
    if (in->row->form != VPPS_FORM_EW && in->row->form != VPPS_FORM_ROW) return true;
    const uint32_t *w = in->operands;
    for (const char *kind = in->row->operands; *kind; kind++, w++) {
        uint32_t n = *kind == '*' ? w[0] : 1;
        for (uint32_t i = 0; i < n && strchr("tsi*", *kind); i++) {
            uint32_t operand = *kind == '*' ? w[1 + i] : w[0];
            if (operand == in->destination && (*kind == 't' || *kind == '*')) continue;
            if (overlaps(operand, *kind == 's' ? 1 : in->extent, in->destination, in->extent)) {
                return vpps_verify_refuse(v, "the operand at %u overlaps the destination", operand);
            }
        }
        if (*kind == '*') w += w[0];
    }
    return true;
}

static bool fill_range(vpps_verifier *v, const vpps_decoded *in, uint64_t shift, uint64_t n) {
    uint32_t offset = (uint32_t)(in->destination + shift), value = in->operands[0];
    if (value == float_bits(1.0f) && v->training && v->slot_of[v->request->loss] != UINT32_MAX &&
        offset == v->gradients[v->request->loss] && n == 1) {
        return vpps_verify_seed(v, in->acc);
    }
    if (value != 0 || in->acc) return vpps_verify_refuse(v, "word %u: no node asks for this there", offset);
    if (offset < v->plan->batch) return vpps_verify_refuse(v, "word %u belongs to the parameters", offset);
    for (uint64_t i = offset; i < offset + n; i++) {
        if (v->pool[i].token == VPPS_HOLDS_ZERO) return vpps_verify_refuse(v, "word %llu is zero already", (unsigned long long)i);
    }
    return vpps_verify_write(v, offset, (uint32_t)n, VPPS_HOLDS_ZERO);
}

bool vpps_verify_plain(vpps_verifier *v, const vpps_decoded *in) {
    if (!in->length || !in->vectors) return vpps_verify_refuse(v, "it has no elements");
    if (!vpps_verify_inside(v, in->destination, in->row->form == VPPS_FORM_REDUCE ? 1 : in->extent)) return false;
    if (!check_overlaps(v, in)) return false;
    if (in->row->form != VPPS_FORM_EW) return run_at(v, in, 0, in->length) != 0;
    bool (*run)(vpps_verifier *, const vpps_decoded *, uint64_t, uint64_t) =
        in->opcode == VPPS_I_FILL ? fill_range : run_range;
    if (!in->split) return run(v, in, 0, in->extent);
    vpps_rows rows = vpps_rows_of(in->length, v->n_vps, v->vp);
    for (uint32_t i = 0; i < in->vectors && rows.first < rows.end; i++) {
        if (!run(v, in, (uint64_t)i * in->length + rows.first, rows.end - rows.first)) return false;
    }
    return true;
}

bool vpps_verify_load(vpps_verifier *v, uint32_t destination, uint32_t address, uint32_t n) {
    if (!n || address > v->words || n > v->words - address) {
        return vpps_verify_refuse(v, "its data lies outside the script");
    }
    if (!vpps_verify_inside(v, destination, n)) return false;
    for (uint32_t done = 0; done < n;) {
        uint32_t offset = destination + done, node = UINT32_MAX, at = 0, part = 0;
        for (uint32_t r = v->value_regions.n; node == UINT32_MAX && vpps_verify_region(&v->value_regions, offset, &r);) {
            const vpps_region *region = &v->value_regions.at[r];
            for (uint32_t i = 0; i < region->n && node == UINT32_MAX; i++) {
                uint32_t x = v->value_regions.nodes[region->first + i];
                at = offset - region->start;
                part = vpps_min_u32(n - done, region->words - at);
                if (vpps_verify_signature(v, x)->op != VPPS_OP_INPUT) continue;
                if (vpps_verify_bit(v, v->value_bits[x] + at)) continue;
                if (!memcmp(v->script + address + done, v->g->data + v->nodes[x].imm + at, part * sizeof(float))) node = x;
            }
        }
        if (node == UINT32_MAX) return vpps_verify_refuse(v, "word %u: no input has this data", offset);
        if (!vpps_verify_write_value(v, node, at, part)) return false;
        done += part;
    }
    return true;
}

/* verify_match.c - plain instructions: which node's work is this, and is it that work?
 *
 * An instruction may span many neighbouring nodes. It is taken piece by piece: the destination's offset leads to a
 * region, the region to nodes (forward) or to edges (backward), and ops.def says which operands they need. Several
 * nodes can own the same words one after the other, so places alone may fit more than one piece of work; then what the
 * operands hold decides.
 */
#include "nodes/verify/verify.h"

/* ---------------------------------------------------------------- candidates */

/* The best piece of work so far, and how well it fits: 1 places, 2 not yet done, 3 operands hold what is needed. */
typedef struct vpps_choice {
    vpps_piece piece;
    uint32_t fit;
    uint32_t near; /* a node whose operands do not fit; UINT32_MAX: none */
} vpps_choice;

static bool is_done(const vpps_verifier *v, const vpps_piece *piece) {
    if (!piece->edge) return vpps_verify_bit(v, v->value_bits[piece->node] + piece->at);
    const bool slice =
        vpps_verify_signature(v, piece->node)->op == VPPS_OP_SLICE; /* one bit for each of its elements */
    return vpps_verify_bit(v, v->edges[piece->edge - 1].bits + (slice ? piece->from : piece->at));
}

static void consider(vpps_verifier *v, vpps_choice *choice, vpps_piece piece, uint32_t words) {
    const vpps_form form = piece.in->row->form;
    const bool parts = vpps_verify_is_parts(v, piece.node);
    if (form == VPPS_FORM_EW) {
        piece.n = vpps_min_u32(piece.n, words - piece.at);
    } else if (form == VPPS_FORM_REDUCE) {
        if (piece.at && piece.letters[1] != 'X') return;
    } else if (piece.at || piece.in->length != words) {
        return;
    }
    if (parts ? !vpps_verify_parts(v, &piece, false) : !vpps_verify_operands(v, &piece, VPPS_PASS_PLACES)) {
        choice->near = piece.node;
        return;
    }
    uint32_t fit = is_done(v, &piece) ? 1 : parts || vpps_verify_operands(v, &piece, VPPS_PASS_PEEK) ? 3 : 2;
    if (fit > choice->fit) {
        choice->fit = fit;
        choice->piece = piece;
    }
}

/* The operands of a node's forward instruction; NULL: it is not this opcode. */
static const char *forward_letters(const vpps_verifier *v, uint32_t node, const vpps_decoded *in) {
    const vpps_op_row *row = &vpps_ops[vpps_verify_signature(v, node)->op];
    const vpps_op_instruction_row *how = &vpps_op_instructions[vpps_verify_signature(v, node)->op];
    if (row->op_class == VPPS_CLASS_SOURCE || row->op_class == VPPS_CLASS_AFFINE) return NULL;
    if (how->forward == VPPS_I_DROPOUT && !v->training) { /* the identity */
        return in->opcode == VPPS_I_COPY ? "a" : in->opcode == VPPS_I_DROPOUT ? "aez" : NULL;
    }
    return how->forward == in->opcode ? how->forward_operands : NULL;
}

static void consider_values(vpps_verifier *v, vpps_choice *choice, const vpps_decoded *in, uint64_t shift, uint32_t n) {
    const uint32_t offset = (uint32_t)(in->destination + shift);
    for (uint32_t r = v->value_regions.n; vpps_verify_region(&v->value_regions, offset, &r) && choice->fit < 3;) {
        const vpps_region *region = &v->value_regions.at[r];
        for (uint32_t i = 0; i < region->n && choice->fit < 3; i++) {
            uint32_t node = v->value_regions.nodes[region->first + i];
            const char *letters = forward_letters(v, node, in);
            if (!letters) continue;
            consider(v, choice, (vpps_piece){in, node, 0, 0, letters, shift, offset - region->start, n, 0},
                     region->words);
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
    consider(v, choice, (vpps_piece){in, e->node, edge + 1, argument, letters, shift, offset - region->start, n, 0},
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
    if (vpps_verify_is_parts(v, piece->node)) return vpps_verify_parts(v, piece, true);
    if (!vpps_verify_operands(v, piece, VPPS_PASS_READ)) return VPPS_REFUSE(v, "its operands are not ready");
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

/* Dropout in inference, in its argument's place. */
static bool changes_nothing(const vpps_verifier *v, const vpps_decoded *in) {
    const bool copies = in->opcode == VPPS_I_COPY || (in->opcode == VPPS_I_DROPOUT && in->operands[2] == 0);
    return copies && !v->training && !in->acc && in->operands[0] == in->destination;
}

/* Runs the work at displacement `shift`, at most n elements of it; the number done, 0: refused. */
static uint32_t run_at(vpps_verifier *v, const vpps_decoded *in, uint64_t shift, uint32_t n) {
    vpps_choice choice = {.near = UINT32_MAX};
    if (!in->acc) consider_values(v, &choice, in, shift, n);
    if (choice.fit < 3) consider_gradients(v, &choice, in, shift, n);
    if (choice.fit) return run_piece(v, &choice.piece) ? choice.piece.n : 0;
    const uint32_t offset = (uint32_t)(in->destination + shift);
    if (changes_nothing(v, in)) return vpps_verify_write(v, offset, 1, v->pool[offset].token) ? 1 : 0;
    if (choice.near != UINT32_MAX) {
        vpps_verify_record(v, "word %u: the operands are not those of node %u (%s)", offset, choice.near,
                           vpps_ops[vpps_verify_signature(v, choice.near)->op].name);
    } else {
        vpps_verify_record(v, "word %u: no node asks for this there", offset);
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
                return VPPS_REFUSE(v, "the operand at %u overlaps the destination", operand);
            }
        }
        if (*kind == '*') w += w[0];
    }
    return true;
}

/* A constant of this number whose element at `offset` is not there yet; UINT32_MAX: none. */
static uint32_t constant_at(vpps_verifier *v, uint32_t offset, uint32_t value, const vpps_region **found) {
    for (uint32_t r = v->value_regions.n; vpps_verify_region(&v->value_regions, offset, &r);) {
        const vpps_region *region = &v->value_regions.at[r];
        for (uint32_t i = 0; i < region->n; i++) {
            const uint32_t node = v->value_regions.nodes[region->first + i];
            if (vpps_verify_signature(v, node)->op != VPPS_OP_CONSTANT || v->nodes[node].imm != value) continue;
            *found = region;
            if (!vpps_verify_bit(v, v->value_bits[node] + offset - region->start)) return node;
        }
    }
    return UINT32_MAX;
}

static bool fill_range(vpps_verifier *v, const vpps_decoded *in, uint64_t shift, uint64_t n) {
    uint32_t offset = (uint32_t)(in->destination + shift), value = in->operands[0];
    const vpps_region *region;
    for (uint32_t node; n && !in->acc && (node = constant_at(v, offset, value, &region)) != UINT32_MAX;) {
        const uint32_t at = offset - region->start, part = (uint32_t)(n < region->words - at ? n : region->words - at);
        if (!vpps_verify_write_value(v, node, at, part)) return false;
        offset += part;
        n -= part;
    }
    if (!n) return true;
    if (value == vpps_verify_float_bits(1.0f) && v->training && v->slot_of[v->request->loss] != UINT32_MAX &&
        offset == v->gradients[v->request->loss] && n == 1) {
        return vpps_verify_seed(v, in->acc);
    }
    if (value != 0 || in->acc) return VPPS_REFUSE(v, "word %u: no node asks for this there", offset);
    if (offset < v->plan->batch) return VPPS_REFUSE(v, "word %u belongs to the parameters", offset);
    for (uint64_t i = offset; i < offset + n; i++) {
        if (v->pool[i].token == VPPS_HOLDS_ZERO) return VPPS_REFUSE(v, "word %" PRIu64 " is zero already", i);
    }
    return vpps_verify_write(v, offset, (uint32_t)n, VPPS_HOLDS_ZERO);
}

bool vpps_verify_plain(vpps_verifier *v, const vpps_decoded *in) {
    if (!in->length || !in->vectors) return VPPS_REFUSE(v, "it has no elements");
    if (!vpps_verify_inside(v, in->destination, in->row->form == VPPS_FORM_REDUCE ? 1 : in->extent)) return false;
    if (!check_overlaps(v, in)) return false;
    if (in->row->form != VPPS_FORM_EW) return run_at(v, in, 0, in->length) != 0;
    bool (*run)(vpps_verifier *, const vpps_decoded *, uint64_t, uint64_t) =
        in->opcode == VPPS_I_FILL ? fill_range : run_range;
    if (!in->split) return run(v, in, 0, in->extent);
    vpps_rows rows = vpps_rows_of(in->length, v->plan->row_block, v->n_vps, v->vp);
    for (uint32_t i = 0; i < in->vectors && rows.first < rows.end; i++) {
        if (!run(v, in, (uint64_t)i * in->length + rows.first, rows.end - rows.first)) return false;
    }
    return true;
}

bool vpps_verify_load(vpps_verifier *v, uint32_t destination, uint32_t address, uint32_t n) {
    if (!n || address > v->words || n > v->words - address) {
        return VPPS_REFUSE(v, "its data lies outside the script");
    }
    if (!vpps_verify_inside(v, destination, n)) return false;
    for (uint32_t done = 0; done < n;) {
        uint32_t offset = destination + done, node = UINT32_MAX, at = 0, part = 0;
        for (uint32_t r = v->value_regions.n;
             node == UINT32_MAX && vpps_verify_region(&v->value_regions, offset, &r);) {
            const vpps_region *region = &v->value_regions.at[r];
            for (uint32_t i = 0; i < region->n && node == UINT32_MAX; i++) {
                uint32_t x = v->value_regions.nodes[region->first + i];
                at = offset - region->start;
                part = vpps_min_u32(n - done, region->words - at);
                if (vpps_verify_signature(v, x)->op != VPPS_OP_INPUT) continue;
                if (vpps_verify_bit(v, v->value_bits[x] + at)) continue;
                if (!memcmp(v->script + address + done, v->g->data + v->nodes[x].imm + at, part * sizeof(float)))
                    node = x;
            }
        }
        if (node == UINT32_MAX) return VPPS_REFUSE(v, "word %u: no input has this data", offset);
        if (!vpps_verify_write_value(v, node, at, part)) return false;
        done += part;
    }
    return true;
}

/* operands.c - where an instruction's operand words come from, for all the nodes of a group. */
#include "nodes/operands.h"

static bool advances(char type) { return type == 't' || type == 'i' || type == 'e'; }

/* The words r, k, c of a product, for the product itself and for the gradients of its two arguments. */
static void product_words(const vpps_schedule_work *w, const vpps_flat_node *node, uint32_t opcode, uint32_t *out) {
    const vpps_signature *a = &w->g->signatures[w->flat->nodes[w->flat->args[node->args]].signature];
    const vpps_signature *b = &w->g->signatures[w->flat->nodes[w->flat->args[node->args + 1]].signature];
    const uint32_t forward[3] = {a->rows, a->cols, b->cols}, nt[3] = {a->rows, b->cols, a->cols};
    const uint32_t tn[3] = {a->cols, a->rows, b->cols};
    memcpy(out, opcode == VPPS_I_MATMUL ? forward : opcode == VPPS_I_MATMUL_NT ? nt : tn, sizeof forward);
}

/* The value of argument k of the group's nodes, plus `extra`. */
static vpps_operand_code value_code(const vpps_schedule_work *w, const vpps_group *group, uint32_t k, uint32_t extra) {
    const vpps_link *l = vpps_aligned(w, group, k);
    if (!l) return (vpps_operand_code){.kind = CODE_VALUE, .base = extra, .argument = k};
    const vpps_group *x = &w->groups[l->group];
    return (vpps_operand_code){.base = x->value_base + l->shift * x->value_stride + extra, .stride = x->value_stride};
}

vpps_operand_code vpps_gradient_code(const vpps_schedule_work *w, const vpps_group *group, uint32_t k) {
    const vpps_link *l = vpps_aligned(w, group, k);
    if (!l) return (vpps_operand_code){.kind = CODE_GRADIENT, .argument = k};
    const vpps_group *x = &w->groups[l->group];
    return (vpps_operand_code){.base = x->gradient_base + l->shift * x->gradient_stride, .stride = x->gradient_stride};
}

vpps_operand_code vpps_letter_code(const vpps_schedule_work *w, const vpps_group *group, char letter, uint32_t k) {
    const vpps_signature *s = &w->g->signatures[group->signature];
    uint32_t n_args = w->flat->nodes[w->order[group->first]].n_args;
    switch (letter) {
    case 'a':
    case 'v': return value_code(w, group, 0, 0);
    case 'b': return value_code(w, group, 1, 0);
    case 'w': return value_code(w, group, 0, k - 1);
    case 'y': return (vpps_operand_code){.base = group->value_base, .stride = group->value_stride};
    case 'i': return (vpps_operand_code){.base = group->value_base + vpps_words(s), .stride = group->value_stride};
    case 'd': return (vpps_operand_code){.base = group->gradient_base, .stride = group->gradient_stride};
    case 'k': return (vpps_operand_code){.base = k};
    case 'n': return (vpps_operand_code){.base = vpps_float_bits(1.0f / (float)n_args)}; /* see vpps_fix_average */
    case 'o': return (vpps_operand_code){.base = vpps_float_bits(1.0f)};
    case 'p': /* inference drops nothing out */
        return (vpps_operand_code){.base = vpps_float_bits(s->op == VPPS_OP_DROPOUT && !w->training ? 0 : s->p)};
    case 'r': return (vpps_operand_code){.kind = CODE_PRODUCT};
    default: return (vpps_operand_code){.kind = CODE_IMM}; /* f u e */
    }
}

vpps_operand_codes vpps_make_codes(const vpps_schedule_work *w, const vpps_group *group, const char *letters,
                                   uint32_t opcode, uint32_t k, vpps_operand_code destination) {
    const char *types = vpps_instructions[opcode].operands;
    uint32_t length = vpps_words(&w->g->signatures[group->signature]);
    vpps_operand_codes c = {.n = 1, .regular = group->n_links > 0};
    c.codes[0] = destination;
    c.codes[0].advances = true;
    for (uint32_t i = 0; letters[i]; i++) {
        uint32_t first = letters[i] == '*' && types[0] == 'v';
        if (letters[i] == '*') { /* of equal nodes, each argument an operand; else a list node by node */
            bool spread = group->n_links && group->n_links - first + c.n + 1 <= MAX_CODES;
            if (!spread) c.codes[c.n++] = (vpps_operand_code){.kind = CODE_LIST, .argument = first};
            if (spread) c.codes[c.n++] = (vpps_operand_code){.base = group->n_links - first};
            for (uint32_t j = first; spread && j < group->n_links; j++) {
                c.codes[c.n] = value_code(w, group, j, 0);
                c.codes[c.n++].advances = true;
            }
        } else {
            c.codes[c.n] = vpps_letter_code(w, group, letters[i], k);
            c.codes[c.n++].advances = types[i] && advances(types[i]);
        }
    }
    for (uint32_t i = 0; i < c.n; i++) {
        const vpps_operand_code *code = &c.codes[i];
        c.regular = c.regular && code->kind == CODE_REGULAR && code->stride == (code->advances ? length : 0);
    }
    return c;
}

uint32_t vpps_operand_words(const vpps_schedule_work *w, const vpps_group *group, const vpps_operand_codes *c,
                            uint32_t j, uint32_t opcode, uint32_t length, uint32_t *words, uint32_t *next) {
    const vpps_flat_node *node = &w->flat->nodes[w->order[group->first + j]];
    const uint32_t *args = w->flat->args + node->args;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const vpps_operand_code *code = &c->codes[i];
        switch (code->kind) {
        case CODE_REGULAR: words[n] = code->base + j * code->stride; break;
        case CODE_VALUE: words[n] = vpps_value_of(w, args[code->argument]) + code->base; break;
        case CODE_GRADIENT: words[n] = vpps_gradient_of(w, args[code->argument]); break;
        case CODE_IMM: words[n] = node->imm; break;
        case CODE_PRODUCT:
            product_words(w, node, opcode, words + n);
            memcpy(next + n, words + n, 3 * sizeof *next);
            n += 3;
            continue;
        case CODE_LIST:
            words[n] = next[n] = node->n_args - code->argument;
            n++;
            for (uint32_t k = code->argument; k < node->n_args; k++, n++) {
                words[n] = vpps_value_of(w, args[k]);
                next[n] = words[n] + length;
            }
            continue;
        }
        next[n] = words[n] + (code->advances ? length : 0);
        n++;
    }
    return n;
}

void vpps_fix_average(const vpps_schedule_work *w, vpps_node y, const char *letters, vpps_operand_codes *c) {
    const char *at = strchr(letters, 'n');
    if (at) c->codes[1 + (at - letters)].base = vpps_float_bits(1.0f / (float)w->flat->nodes[y].n_args);
}

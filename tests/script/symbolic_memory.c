/* symbolic_memory.c - the symbolic machine's memory. */
#include "symbolic_machine.h"

void *symbolic_take(size_t n, size_t bytes) {
    void *block = calloc(n ? n : 1, bytes);
    if (!block) abort();
    return block;
}

uint64_t symbolic_number(float f) {
    if (f == 1) return 1;
    if (f == -1) return (uint64_t)-1;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits ? symbolic_mix(5, bits) | 1 : 0;
}

uint32_t symbolic_word(symbolic_machine *m, uint64_t address) {
    if (address < m->s->words) return m->s->script[address];
    m->fault = true;
    return 0;
}

uint64_t symbolic_read(symbolic_machine *m, const uint64_t *at) {
    if (m->log) race_log_access(m->log, m->vp, at, false);
    return *at;
}

void symbolic_write(symbolic_machine *m, uint64_t *at, uint64_t value) {
    if (m->log) race_log_access(m->log, m->vp, at, true);
    if (!m->hold) {
        *at = value;
        return;
    }
    if (!VPPS_RESERVE(m->pending, m->pending_capacity, m->n_pending + 1)) abort();
    m->pending[m->n_pending++] = (struct pending){at, value};
}

uint64_t symbolic_get(symbolic_machine *m, uint64_t offset) {
    if (offset < m->limit) return symbolic_read(m, &m->pool[offset]);
    m->fault = true;
    return 0;
}

void symbolic_put(symbolic_machine *m, uint64_t offset, uint64_t value) {
    if (offset < m->limit) {
        symbolic_write(m, &m->pool[offset], value);
    } else {
        m->fault = true;
    }
}

void symbolic_find(symbolic_machine *m, uint32_t number) {
    symbolic_block *b = &m->blocks[number];
    memcpy(&b->b, m->s->script + m->h.blocks + (size_t)number * VPPS_BLOCK_WORDS, sizeof b->b);
    m->fault |= b->b.cell >= m->s->n_cells || b->b.n > m->s->words;
    for (uint32_t l = 0; l < VPPS_CELL_LISTS; l++) m->fault |= b->b.members[l] > m->s->words;
    if (m->fault) return;
    const vpps_compiled_cell *c = b->c = m->s->cells[b->b.cell];
    const uint32_t n = b->b.n;
    uint64_t at = b->b.arrays + (uint64_t)n;
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        if (c->input_domain[i]) continue;
        b->inputs[i] = at;
        at += n;
    }
    for (uint32_t i = 0; i < c->n_lookups; i++, at += n) b->lookups[i] = at;
    for (uint32_t i = 0; i < c->n_words; i++, at += n) b->words[i] = at;
    if (c->is_data) {
        b->data = at;
        at += n;
    }
    for (uint32_t d = 1; d <= c->n_lists; d++) {
        b->lists[d] = at;
        at += n + 1;
        for (uint32_t i = 0; i < c->n_inputs; i++) {
            if (c->input_domain[i] != d) continue;
            b->inputs[i] = at;
            at += vpps_items(&b->b, d);
        }
    }
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        if (!c->needs.training || !(c->needs.gradient_out >> k & 1)) continue;
        b->gradient_starts[k] = at;
        b->gradients[k] = at + n + 1;
        at += n + 1 + symbolic_word(m, at + n);
    }
}

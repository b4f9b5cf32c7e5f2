/* constituents.c - constituent trees with any number of children, in memory. */
#include "constituents.h"

#include "base/base.h"

vpps_status vpps_constituents_create(vpps_constituents **out, vpps_labels form) {
    VPPS_NEED(out);
    *out = NULL;
    vpps_constituents *c = calloc(1, sizeof *c);
    if (!c) return vpps_fail(VPPS_MEMORY, "constituents: out of memory");
    c->form = form;
    vpps_status status = vpps_vocab_create(&c->vocab);
    if (status == VPPS_OK) status = vpps_vocab_create(&c->labels);
    if (status == VPPS_OK) {
        *out = c;
    } else {
        vpps_constituents_destroy(c);
    }
    return status;
}

void vpps_constituents_destroy(vpps_constituents *c) {
    if (!c) return;
    vpps_vocab_destroy(c->vocab);
    vpps_vocab_destroy(c->labels);
    VPPS_FREE_ARRAYS(c->nodes, c->trees);
    free(c);
}

uint32_t vpps_constituents_size(const vpps_constituents *c) { return c ? c->n_trees : 0; }

vpps_constituent_tree vpps_constituents_tree(const vpps_constituents *c, uint32_t i) {
    if (i >= vpps_constituents_size(c)) return (vpps_constituent_tree){0};
    const struct vpps_constituent_range *t = &c->trees[i];
    return (vpps_constituent_tree){c->nodes + t->first_node, t->n_nodes, t->n_leaves};
}

uint32_t vpps_constituents_line(const vpps_constituents *c, uint32_t i) {
    return i < vpps_constituents_size(c) ? c->trees[i].line : 0;
}

void vpps_constituents_set_line(vpps_constituents *c, uint32_t first, uint32_t line) {
    for (uint32_t i = first; i < c->n_trees; i++) c->trees[i].line = line;
}

const vpps_vocab *vpps_constituents_vocab(const vpps_constituents *c) { return c ? c->vocab : NULL; }

const vpps_vocab *vpps_constituents_labels(const vpps_constituents *c) { return c ? c->labels : NULL; }

/* lattices.c - lattices in memory: one array each for tags, arcs, and the nodes' first arcs. */
#include "lattices.h"

#include "base/base.h"

vpps_status vpps_lattices_create(vpps_lattices **out) {
    VPPS_NEED(out);
    *out = calloc(1, sizeof **out);
    return *out ? VPPS_OK : vpps_fail(VPPS_MEMORY, "lattices: out of memory");
}

void vpps_lattices_destroy(vpps_lattices *l) {
    if (!l) return;
    VPPS_FREE_ARRAYS(l->tags, l->first_arcs, l->arcs, l->ranges);
    free(l);
}

uint32_t vpps_lattices_size(const vpps_lattices *l) { return l ? l->n_lattices : 0; }

/* Returns the first arcs of lattice i's nodes; each lattice has one entry more than nodes. */
static uint32_t *first_arcs_of(const vpps_lattices *l, uint32_t i) {
    return l->first_arcs + l->ranges[i].first_node + i;
}

vpps_lattice vpps_lattices_get(const vpps_lattices *l, uint32_t i) {
    if (i >= vpps_lattices_size(l)) return (vpps_lattice){0};
    const struct vpps_lattice_range *r = &l->ranges[i];
    return (vpps_lattice){r->n_nodes, l->tags + r->first_node, first_arcs_of(l, i),
                          l->arcs ? l->arcs + r->first_arc : NULL};
}

uint32_t vpps_lattices_line(const vpps_lattices *l, uint32_t i) {
    return i < vpps_lattices_size(l) ? l->ranges[i].line : 0;
}

uint32_t vpps_lattices_tags(const vpps_lattices *l) { return l ? l->tag_ids : 0; }

uint32_t vpps_lattices_characters(const vpps_lattices *l) { return l ? l->character_ids : 0; }

uint32_t vpps_lattices_words(const vpps_lattices *l) { return l ? l->word_ids : 0; }

vpps_lattices_mark vpps_lattices_extent(const vpps_lattices *l) {
    return (vpps_lattices_mark){l->n_nodes, l->n_arcs, l->n_lattices, l->tag_ids, l->character_ids, l->word_ids};
}

void vpps_lattices_restore(vpps_lattices *l, vpps_lattices_mark mark) {
    l->n_nodes = mark.n_nodes;
    l->n_arcs = mark.n_arcs;
    l->n_lattices = mark.n_lattices;
    l->tag_ids = mark.tag_ids;
    l->character_ids = mark.character_ids;
    l->word_ids = mark.word_ids;
}

static vpps_status fail_memory(const vpps_lattices *l) {
    return vpps_fail(VPPS_MEMORY, "lattices: out of memory at lattice %u", l->n_lattices);
}

vpps_status vpps_lattices_begin(vpps_lattices *l, uint32_t line) {
    if (l->n_lattices == UINT32_MAX || !VPPS_RESERVE(l->ranges, (size_t)l->n_lattices + 1)) { return fail_memory(l); }
    l->ranges[l->n_lattices] = (struct vpps_lattice_range){l->n_nodes, l->n_arcs, 0, line};
    return VPPS_OK;
}

vpps_status vpps_lattices_add_tag(vpps_lattices *l, uint32_t tag) {
    if (!VPPS_RESERVE(l->tags, l->n_nodes + 1)) return fail_memory(l);
    l->tags[l->n_nodes++] = tag;
    l->tag_ids = vpps_max_u32(l->tag_ids, tag + 1);
    return VPPS_OK;
}

vpps_status vpps_lattices_add_arc(vpps_lattices *l, uint32_t node, uint32_t from, uint32_t id) {
    if (!VPPS_RESERVE(l->arcs, l->n_arcs + 1)) return fail_memory(l);
    const bool is_character = from + 1 == node;
    uint32_t *ids = is_character ? &l->character_ids : &l->word_ids;
    *ids = vpps_max_u32(*ids, id + 1);
    l->arcs[l->n_arcs++] = (vpps_lattice_arc){from, id, is_character};
    return VPPS_OK;
}

vpps_status vpps_lattices_end_node(vpps_lattices *l, uint32_t node) {
    const struct vpps_lattice_range *r = &l->ranges[l->n_lattices];
    const size_t at = r->first_node + l->n_lattices + node, n_arcs = l->n_arcs - r->first_arc;
    if (n_arcs > UINT32_MAX || !VPPS_RESERVE(l->first_arcs, at + 2)) return fail_memory(l);
    if (node == 0) l->first_arcs[at] = 0;
    l->first_arcs[at + 1] = (uint32_t)n_arcs;
    return VPPS_OK;
}

void vpps_lattices_end(vpps_lattices *l) {
    struct vpps_lattice_range *r = &l->ranges[l->n_lattices++];
    r->n_nodes = (uint32_t)(l->n_nodes - r->first_node);
}

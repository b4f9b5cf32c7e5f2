/* lattices.h - the internals of lattices, for the reader and the builder that fill them. */
#pragma once

#include "vpps_data.h"

struct vpps_lattices {
    uint32_t *tags; /* a number a node */
    size_t n_nodes;
    uint32_t *first_arcs; /* a number a node, and one more a lattice; counted from the lattice's first arc */
    vpps_lattice_arc *arcs;
    size_t n_arcs;
    struct vpps_lattice_range {
        size_t first_node, first_arc;
        uint32_t n_nodes, line;
    } * ranges;
    uint32_t n_lattices;
    uint32_t tag_ids, character_ids, word_ids; /* 1 + the largest */
};

/* The lattices' extent: what a failed reader puts back. */
typedef struct vpps_lattices_mark {
    size_t n_nodes, n_arcs;
    uint32_t n_lattices, tag_ids, character_ids, word_ids;
} vpps_lattices_mark;

vpps_lattices_mark vpps_lattices_extent(const vpps_lattices *l);
void vpps_lattices_restore(vpps_lattices *l, vpps_lattices_mark mark);

/* A lattice is added in this order: begin, all tags, then for each node all arcs into it and the end of the node, end.
 * `line` is where it begins in its text, 0 without one. All fail with MEMORY. */
vpps_status vpps_lattices_begin(vpps_lattices *l, uint32_t line);
vpps_status vpps_lattices_add_tag(vpps_lattices *l, uint32_t tag);
vpps_status vpps_lattices_add_arc(vpps_lattices *l, uint32_t node, uint32_t from, uint32_t id);
vpps_status vpps_lattices_end_node(vpps_lattices *l, uint32_t node);
void vpps_lattices_end(vpps_lattices *l);

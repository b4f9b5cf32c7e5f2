/* lattices.h - the struct that holds lattices, for the files that fill it. */
#pragma once

#include "vpps_data.h"

struct vpps_lattices {
    uint32_t *tags; /* one tag per node */
    size_t n_nodes;
    uint32_t *first_arcs; /* index of each node's first arc within its lattice; one more entry ends each lattice */
    vpps_lattice_arc *arcs;
    size_t n_arcs;
    struct vpps_lattice_range {
        size_t first_node, first_arc;
        uint32_t n_nodes, line;
    } * ranges;
    uint32_t n_lattices;
    uint32_t tag_ids, character_ids, word_ids; /* 1 + the largest id of tags, of characters, of words */
};

/* Sizes of a vpps_lattices at one time, to which a reader that fails cuts the lattices back. */
typedef struct vpps_lattices_mark {
    size_t n_nodes, n_arcs;
    uint32_t n_lattices, tag_ids, character_ids, word_ids;
} vpps_lattices_mark;

vpps_lattices_mark vpps_lattices_extent(const vpps_lattices *l);
void vpps_lattices_restore(vpps_lattices *l, vpps_lattices_mark mark);

/* Adds a lattice, in this order of calls: begin; add_tag for every node; for each node add_arc for every arc into it, then end_node; end.
 * `line` is the lattice's first line in its text, 0 without a text. The calls that return a status fail with MEMORY. */
vpps_status vpps_lattices_begin(vpps_lattices *l, uint32_t line);
vpps_status vpps_lattices_add_tag(vpps_lattices *l, uint32_t tag);
vpps_status vpps_lattices_add_arc(vpps_lattices *l, uint32_t node, uint32_t from, uint32_t id);
vpps_status vpps_lattices_end_node(vpps_lattices *l, uint32_t node);
void vpps_lattices_end(vpps_lattices *l);

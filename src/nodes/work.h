/* work.h - the scheduler's workspace: what its steps hand to each other.
 *
 *   origins.c   which nodes of a signature are kept apart
 *   analyse.c   levels, what is needed, groups
 *   memory.c    where values and gradients lie
 *   bundle.c    affine nodes: lists of operands, bundles
 *   phase.c     items (what runs together) and their phases
 *   operands.c  an instruction's operands, from the letters of ops.def
 *   encode.c    items to words
 */
#ifndef VPPS_NODES_WORK_H
#define VPPS_NODES_WORK_H

#include "nodes/script.h"

/* Argument number k of a group's nodes. Aligned: of node j it is node j + shift of one group, so that operands of the
 * group are one block and nothing needs to look at single nodes. In a cell's inner nodes all arguments are. */
typedef struct vpps_link {
    uint32_t group, shift;
    bool aligned;
} vpps_link;

/* Nodes of one level, one signature and one treatment (flags): they do the same to different operands, so they are
 * handled as one. */
typedef struct vpps_group {
    uint32_t signature, level;
    uint8_t key, flags; /* treatment: bits of the nodes' flags that must agree; all, with ONCE if all, ZEROED if any */
    uint32_t n;         /* nodes */
    uint32_t first;     /* in order[]; groups of one signature follow each other, by level */
    uint32_t links, n_links;           /* in links[]; none where nodes have different numbers of arguments */
    uint32_t value_base, value_stride; /* offset of node j: value_base + j * value_stride; not of parameters' values */
    uint32_t gradient_base, gradient_stride; /* base VPPS_NO_OFFSET: none; stride 0: one gradient for all */
    uint32_t n_entries;                      /* lookups: slots from gradient_base on */
    uint32_t value, gradient;                /* tracks: when the group's tensors are ready */
    uint32_t user, user_argument; /* the only use of all its nodes: by one group, aligned without shift, or by one
                                     node (user_argument VPPS_NO_OFFSET); user VPPS_NO_OFFSET: no such */
    uint32_t counted_by, count;   /* links from the group, of one node, that was looked at last */
} vpps_group;

/* When a tensor is ready, and whether rows were written by the VPs that own them: then an instruction in which every VP
 * does its own rows may follow in the same phase. */
typedef struct vpps_track {
    int32_t phase; /* -1: from the start */
    bool owned;
} vpps_track;

typedef enum vpps_item_kind {
    VPPS_ITEM_LOAD,      /* group of inputs */
    VPPS_ITEM_FORWARD,   /* group */
    VPPS_ITEM_BACKWARD,  /* group, argument */
    VPPS_ITEM_FILL,      /* group: gradients to zero; the loss's to one */
    VPPS_ITEM_BUNDLE,    /* opcode; slice of a bundle */
    VPPS_ITEM_PARAMETER, /* opcode; parameter */
    VPPS_ITEM_ROWS,      /* opcode; table */
    VPPS_ITEM_NORM_END,
    VPPS_ITEM_HOST
} vpps_item_kind;

/* Work with one phase. `shared`: every VP does its own rows; else it is dealt out to the least loaded VPs. */
typedef struct vpps_item {
    uint8_t kind, opcode;
    bool shared;
    uint32_t phase;
    uint32_t what;     /* group, bundle, parameter */
    uint32_t argument; /* of a backward item; first vector of a bundle's slice */
    uint32_t count;    /* vectors of a bundle's slice */
} vpps_item;

/* Operand lists of affine nodes: the same argument of all nodes of a signature, in order. */
typedef struct vpps_list {
    uint32_t values, gradients;   /* addresses in the script; gradients 0: none wanted */
    uint32_t n;                   /* members: vectors */
    uint32_t elems;               /* of a vector */
    uint32_t signature, argument; /* whose argument it is */
} vpps_list;

typedef struct vpps_bundle {
    uint32_t address;         /* of its words in the script */
    uint32_t first_signature; /* the others follow by signature_work.next */
    uint32_t n_signatures;
    uint32_t lists[VPPS_MANY_PAIRS], n_lists;
    uint32_t n;             /* vectors */
    bool wants_gradients;   /* of some list */
    uint32_t forward_phase; /* of the latest slice */
} vpps_bundle;

typedef struct vpps_signature_work {
    uint32_t first_group, n_groups; /* in signature_groups, by level */
    uint32_t n_nodes;
    uint32_t first_list; /* affine: in pair_lists, one an argument */
    uint32_t bundle;     /* affine: its bundle, and the bundle's next signature, or VPPS_NO_OFFSET */
    uint32_t next;
} vpps_signature_work;

/* Of nodes and groups. GRADIENT: depends on a trained parameter; SLOT: has room for a gradient all the same; ZEROED: its
 * gradient is added to, so it begins at zero; ONCE: used once; KEPT: read after the batch. */
enum {
    VPPS_NEEDED = 1,
    VPPS_GRADIENT = 2,
    VPPS_SLOT = 4,
    VPPS_ZEROED = 8,
    VPPS_ONCE = 16,
    VPPS_KEPT = 32,
    VPPS_USED = 64
};

/* Nodes of a signature whose arguments have the same makers; a signature's are a list. */
typedef struct vpps_origin {
    uint32_t makers, next; /* next: UINT32_MAX at the end */
} vpps_origin;

typedef struct vpps_schedule_work {
    const vpps_plan *plan;
    const vpps_graph *g; /* the graph's view below */
    const vpps_request *request;
    const vpps_flat *flat;
    bool training, transposed;

    vpps_graph view; /* the graph, but with signatures split, and nodes that refer to those */
    vpps_signature *split_signatures;
    vpps_origin *splits;   /* of each split signature */
    uint32_t *first_split; /* of each of the graph's signatures */
    vpps_flat_node *split_nodes;
    uint32_t *near_origin; /* of each node: what made its first two arguments */
    uint32_t n_splits;
    size_t split_signatures_capacity, splits_capacity, first_split_capacity, split_nodes_capacity, near_origin_capacity;

    /* per node */
    uint32_t *level, *group, *rank, *order;
    uint8_t *flags;
    size_t level_capacity, group_capacity, rank_capacity, order_capacity, flags_capacity, values_capacity,
        gradients_capacity;

    vpps_link *links;
    size_t n_links, links_capacity;
    bool *some_gradient; /* per matrix use: has any argument a gradient */
    size_t some_gradient_capacity;
    bool mixed; /* an affine argument without gradient is needed */
    vpps_group *groups;
    uint32_t n_groups, n_levels;
    uint32_t *by_level; /* groups in the order they run forward */
    uint32_t *level_start;
    uint32_t *table; /* hash of (level, signature) to group + 1 */
    uint32_t table_size;
    vpps_signature_work *signatures;
    uint32_t *signature_groups;
    uint32_t *signature_order; /* signatures in use, by first appearance */
    uint32_t n_signatures;
    size_t groups_capacity, by_level_capacity, level_start_capacity, signatures_capacity, signature_groups_capacity,
        signature_order_capacity;

    uint32_t **slots;  /* lookup tables: [param][row] -> offset of the gradient that this batch's uses share */
    uint32_t **stamps; /* which batch the slot is of */
    uint32_t n_tables, stamp;

    vpps_track *tracks; /* parameters' gradients first (index: parameter), then groups' values and gradients */
    uint32_t n_tracks;
    uint32_t *parameter_used; /* latest phase that uses a parameter, + 1; 0: unused in this batch */
    size_t tracks_capacity, parameter_used_capacity;

    vpps_list *lists;
    uint32_t n_lists;
    uint32_t *pair_lists;
    uint32_t n_pair_lists;
    vpps_bundle *bundles;
    uint32_t n_bundles;
    uint32_t host_list; /* address of the header's list of bundles; 0: there is no HOST */
    size_t lists_capacity, pair_lists_capacity, bundles_capacity;

    vpps_item *items;
    uint32_t *item_order, *phase_start;
    uint32_t n_items, n_phases;
    size_t items_capacity, item_order_capacity, phase_start_capacity;

    uint64_t next_word; /* first free offset of the pool */

    /* encoding */
    struct vpps_stream {
        uint32_t *words;
        size_t n, capacity;
        uint64_t load; /* in this phase */
        bool active;
    } * streams;
    uint32_t n_streams, streams_made; /* of this plan; of the largest so far */
    struct vpps_owner {               /* hash table: VP that adds to a gradient in this item */
        uint32_t offset, item, vp;
    } * owners;
    uint32_t owners_size, n_owners;
    uint32_t *row_lists; /* per lookup table: address of the entries to update, their number before it */
    size_t row_lists_capacity;
    struct vpps_run {           /* neighbouring nodes' instructions, merged */
        uint32_t *words, *next; /* operands of the first node, and what the next one's must be */
        size_t words_capacity, next_capacity;
        uint32_t n_words, opcode, length, rows, n_nodes;
    } run;
    vpps_status status; /* sticky, of emission */
} vpps_schedule_work;

/* Are rows dealt out to all VPs, so that a piece of work on them is worth sharing? */
static inline bool vpps_is_shareable(const vpps_schedule_work *w, uint32_t rows) {
    return rows >= w->plan->n_vps * w->plan->row_block;
}

/* Links of a group's argument k; NULL when nodes must be looked at one by one. */
static inline const vpps_link *vpps_aligned(const vpps_schedule_work *w, const vpps_group *group, uint32_t k) {
    if (k >= group->n_links) return NULL; /* nor is there a link to look at */
    const vpps_link *l = &w->links[group->links + k];
    return l->aligned ? l : NULL;
}

static inline uint32_t vpps_value_of(const vpps_schedule_work *w, vpps_node x) {
    const vpps_group *group = &w->groups[w->group[x]];
    if (VPPS_LIKELY(group->value_base != VPPS_NO_OFFSET)) return group->value_base + w->rank[x] * group->value_stride;
    const vpps_signature *s = &w->g->signatures[group->signature]; /* a parameter's own memory */
    return w->plan->values[s->param] + w->flat->nodes[x].imm * vpps_words(s);
}

static inline uint32_t vpps_gradient_of(const vpps_schedule_work *w, vpps_node x) {
    const vpps_group *group = &w->groups[w->group[x]];
    const vpps_signature *s = &w->g->signatures[group->signature];
    if (group->gradient_base == VPPS_NO_OFFSET) return VPPS_NO_OFFSET;
    if (VPPS_UNLIKELY(s->op == VPPS_OP_LOOKUP)) return w->slots[s->param][w->flat->nodes[x].imm];
    if (VPPS_UNLIKELY(s->op == VPPS_OP_PARAMETER)) return w->plan->gradients[s->param];
    return group->gradient_base + w->rank[x] * group->gradient_stride;
}

vpps_status vpps_split_by_origin(vpps_scheduler *s, const vpps_graph *g);
vpps_status vpps_analyse(vpps_scheduler *s);
vpps_status vpps_plan_memory(vpps_scheduler *s);
vpps_status vpps_make_bundles(vpps_scheduler *s);
vpps_status vpps_make_items(vpps_scheduler *s);
vpps_status vpps_encode(vpps_scheduler *s);

/* Takes `words` words of the pool, aligned to 64 bytes. */
uint32_t vpps_take_pool(vpps_schedule_work *w, uint64_t words);

/* Room for n more words at the end of the script; NULL (and w->status is set) when out of memory, or of addresses. */
uint32_t *vpps_append(vpps_scheduler *s, size_t n);

#endif

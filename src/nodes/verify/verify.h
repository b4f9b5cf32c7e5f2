/* verify.h - inside vpps_verify: a symbolic machine that runs a script without numbers.
 *
 * Every word of the pool has a shadow that says what it holds ("element of the value of node 7", "gradient of node 3,
 * 2 contributions missing") and who touched it when. An instruction is accepted when its operands are those the
 * graph prescribes for what it writes (verify_match.c, verify_bundle.c, verify_update.c), when what it reads is there, and when
 * everything it touches is ordered by barriers (verify_shadow.c). Orders that depend on luck do not count: a WAIT
 * orders only when it needs every signal its barrier ever gets. So one run speaks for every run.
 *
 * What a word holds needs no element number: the node's place and the word's offset say it.
 */
#ifndef VPPS_NODES_VERIFY_H
#define VPPS_NODES_VERIFY_H

#include "nodes/script.h"

#include <inttypes.h>

/* ---- what a word holds: a kind in the upper bits, and whose */

enum {
    VPPS_HOLDS_INITIAL = 0u << 29,  /* below plan->batch: what was there before the script; above: nothing */
    VPPS_HOLDS_VALUE = 1u << 29,    /* | node */
    VPPS_HOLDS_INDEX = 2u << 29,    /* | node */
    VPPS_HOLDS_GRADIENT = 3u << 29, /* | slot; shadow.count contributions are missing */
};
#define VPPS_HOLDS_ZERO (4u << 29)
#define VPPS_HOLDS_PARTIAL (5u << 29) /* | address of the bundle's list */
#define VPPS_HOLDS_NORM (6u << 29)    /* | VP */
#define VPPS_HOLDS_SPENT (7u << 29)   /* a parameter after its update, a gradient after it was used up */

enum {
    VPPS_TOKEN_LIMIT = 1 << 29, /* nodes, slots and addresses are below */
    VPPS_CLOCK_BITS = 20,       /* an epoch is VP << 20 | clock, clock >= 1; epoch 0 is before the script */
    VPPS_MAX_VPS = 1 << 12
};
_Static_assert((uint64_t)VPPS_MAX_VPS << VPPS_CLOCK_BITS == UINT64_C(1) << 32, "VP and clock fill an epoch");

typedef struct vpps_shadow {
    uint32_t token, count;
    uint32_t write; /* epoch of the last write */
    uint32_t read;  /* reader set since then; 0 is empty */
} vpps_shadow;

/* Sets of read epochs, interned: whole vectors are read alike, so few distinct sets exist. */
typedef struct vpps_reader_sets {
    uint32_t *epochs; /* of all sets, one after the other */
    uint32_t *first;  /* of set i; n_sets + 1 members */
    uint32_t *table;  /* hash table of set numbers + 1 */
    uint32_t n_sets, table_size;
    size_t epochs_capacity, first_capacity;
    uint32_t *scratch; /* n_vps epochs */
} vpps_reader_sets;

typedef struct vpps_vp_state {
    uint32_t pc, end, return_pc, return_end;
    uint32_t waiting; /* address of the WAIT it stands at; 0: it runs */
    bool calling, done, norm_published;
    uint32_t normed; /* pieces of gradients in its sum of squares */
} vpps_vp_state;

/* ---- what the graph prescribes */

enum { VPPS_NO_BITS = -1 };

/* A stretch of memory that belongs to nodes. Several nodes may own the same stretch, one after the other. */
typedef struct vpps_region {
    uint32_t start, words;
    uint32_t first, n; /* members of region_nodes */
    uint32_t reach;    /* largest end of this and all earlier regions */
} vpps_region;

typedef struct vpps_regions {
    vpps_region *at;
    uint32_t n;
    uint32_t *nodes;
} vpps_regions;

/* A slot is where a gradient is summed up: slot x for node x, slot n_nodes + p for vector p. Slots of lookups of one
 * row are one, that of the first; a slot whose only contribution is an unchanged copy may be the copied one's. */
typedef struct vpps_slot {
    uint32_t root; /* the slot whose memory it shares, or itself */
    uint32_t start, words;
    uint32_t expected; /* contributions that every element gets */
    uint32_t slices;   /* first of the edges from slices, which reach some elements only; + 1, 0: none */
    uint32_t uses;     /* required edges */
    uint32_t row;      /* lookups: number of the row among the rows used */
    bool required;     /* else nothing depends on it: what is in it, and how often it is added to, does not matter */
} vpps_slot;

/* An edge is (node, argument): one contribution to a gradient. The bias of an affine node is one more argument. */
typedef struct vpps_edge {
    uint32_t node, slot; /* slot: of the argument; UINT32_MAX: no gradient goes this way */
    uint32_t next;       /* in its hash chain, or of the slices; + 1, 0: none */
    int64_t bits;        /* first of its elements in `done`; VPPS_NO_BITS: none */
    int64_t outer;       /* affine: first of (column, VP) in `done`: contributions to the matrix */
} vpps_edge;

typedef struct vpps_row_entry {
    uint32_t table, row, slot; /* slot UINT32_MAX: empty */
} vpps_row_entry;

typedef struct vpps_verifier {
    /* the question */
    const uint32_t *script;
    uint32_t words;
    const vpps_script_header *header;
    const vpps_plan *plan;
    const vpps_graph *g;
    const vpps_request *request;
    const uint32_t *values, *gradients;
    const vpps_flat_node *nodes;
    const vpps_signature *signatures;
    const vpps_parameter_data *params;
    uint32_t n_nodes, n_params, n_vps;
    bool training;

    /* the answer */
    vpps_status status;
    char reason[256];
    uint32_t vp, at; /* what runs now; at 0: nothing */

    /* the graph's demands */
    bool *needed, *trainable, *wanted; /* wanted: needs a gradient */
    uint32_t *same_value;              /* node whose value it is: itself, but for dropout in inference */
    vpps_slot *slots;
    uint32_t *slot_of; /* by node; UINT32_MAX: none */
    uint32_t *edge_first;
    vpps_edge *edges;
    uint32_t *edge_table, edge_table_size;
    int64_t *value_bits; /* by node, first of its elements in `done` */
    uint64_t *done;      /* a bit for each element of each piece of work */
    uint64_t n_bits;
    uint32_t *outer_expected; /* by parameter: contributions to a matrix */
    bool *updated_param;      /* by parameter: must be updated (not lookups) */
    vpps_row_entry *rows;
    uint32_t row_table_size, n_rows;
    int64_t row_normed, row_updated;        /* bits (row, VP) */
    uint8_t gradient_operand[VPPS_I_COUNT]; /* bit i: operand i may be the gradient that goes back */
    vpps_regions value_regions, gradient_regions;

    /* the machine */
    vpps_shadow *pool;
    uint32_t pool_words;
    vpps_shadow *matrix_values, *matrix_gradients; /* by (parameter, owner) */
    uint8_t *transposed, *normed, *updated;        /* by (parameter, VP) */
    vpps_vp_state *vps;
    uint32_t *clocks; /* n_vps vector clocks */
    uint32_t *barrier_clocks, *barrier_count, *barrier_total;
    vpps_reader_sets sets;
    uint32_t epoch;
    uint32_t seen_set, seen_result, clear_set, clear_write; /* results that hold until the clocks change */
    uint32_t *pair_args;                                    /* affine: which argument each pair is */
    size_t pair_args_capacity;

    void *blocks[48];
    uint32_t n_blocks;
} vpps_verifier;

/* An instruction taken apart. */
typedef struct vpps_decoded {
    uint32_t opcode, length;
    bool acc, split;
    uint32_t vectors; /* 1 without SPLIT */
    uint32_t destination;
    const uint32_t *operands; /* the word after the destination */
    const vpps_instruction_row *row;
    uint64_t extent; /* elements the whole instruction spans */
} vpps_decoded;

/* ---- verify.c */

/* Sets the reason (the first stays). */
void vpps_verify_record(vpps_verifier *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same as an expression that is false, so that `return VPPS_REFUSE(...)` is a whole failure path. */
#define VPPS_REFUSE(...) (vpps_verify_record(__VA_ARGS__), false)
/* Zeroed memory that lives as long as the verifier; NULL, and MEMORY, when there is none. */
void *vpps_verify_zeros(vpps_verifier *v, uint64_t n, size_t bytes);

static inline const vpps_signature *vpps_verify_signature(const vpps_verifier *v, uint32_t node) {
    return &v->signatures[v->nodes[node].signature];
}
static inline uint32_t vpps_verify_words(const vpps_verifier *v, uint32_t node) {
    return vpps_words(vpps_verify_signature(v, node));
}
static inline uint32_t vpps_verify_arg(const vpps_verifier *v, uint32_t node, uint32_t i) {
    return v->g->flat.args[v->nodes[node].args + i];
}
static inline bool vpps_verify_bit(const vpps_verifier *v, int64_t bit) {
    return v->done[(uint64_t)bit >> 6] >> (bit & 63) & 1;
}
static inline void vpps_verify_set_bit(vpps_verifier *v, int64_t bit) {
    v->done[(uint64_t)bit >> 6] |= (uint64_t)1 << (bit & 63);
}

/* ---- verify_graph.c */

/* Works out from graph and request what must be computed, and checks the layout. */
bool vpps_verify_demands(vpps_verifier *v);
/* The instruction that gives argument i its gradient, and its operands (letters of ops.def; X: argument's value). */
uint32_t vpps_verify_backward(const vpps_verifier *v, uint32_t node, uint32_t i, const char **operands);
/* Contributions that element e of a slot gets. */
uint32_t vpps_verify_expected(const vpps_verifier *v, uint32_t slot, uint32_t e);
/* The first region around an offset at or before *from (start with regions->n); false: no more. */
bool vpps_verify_region(const vpps_regions *regions, uint32_t offset, uint32_t *from);
uint32_t vpps_verify_edge_key(const vpps_verifier *v, uint32_t opcode, uint32_t to, uint32_t from);
/* Slot of a table's row, UINT32_MAX when its gradient is not asked for. */
uint32_t vpps_verify_row(const vpps_verifier *v, uint32_t table, uint32_t row);
enum { VPPS_PARTS_KEY = -1 };

/* ---- verify_shadow.c */

void vpps_verify_switch(vpps_verifier *v, uint32_t vp); /* the VP that accesses from now on */
void vpps_verify_signal(vpps_verifier *v, uint32_t barrier);
void vpps_verify_acquire(vpps_verifier *v, uint32_t barrier);
/* One access; `what` and `offset` are for the message. */
bool vpps_verify_touch_read(vpps_verifier *v, vpps_shadow *s, const char *what, uint32_t offset);
bool vpps_verify_touch_write(vpps_verifier *v, vpps_shadow *s, const char *what, uint32_t offset);
/* Is [offset, offset + n) inside the pool that the header claims? */
bool vpps_verify_inside(vpps_verifier *v, uint64_t offset, uint64_t n);
bool vpps_verify_read(vpps_verifier *v, uint32_t offset, uint32_t n, uint32_t token);
bool vpps_verify_write(vpps_verifier *v, uint32_t offset, uint32_t n, uint32_t token);
bool vpps_verify_read_value(vpps_verifier *v, uint32_t node, uint32_t from, uint32_t n);
/* Writes elements of a node's value, each for the first time. */
bool vpps_verify_write_value(vpps_verifier *v, uint32_t node, uint32_t from, uint32_t n);
/* Reads elements of a slot's gradient, which must be complete. */
bool vpps_verify_read_gradient(vpps_verifier *v, uint32_t slot, uint32_t from, uint32_t n);
/* Edge e contributes to elements [from, from + n) of its slot; its own elements begin at `bit`. */
bool vpps_verify_contribute(vpps_verifier *v, uint32_t edge, uint32_t from, uint32_t n, int64_t bit, bool acc);
/* The loss's gradient with respect to itself. */
bool vpps_verify_seed(vpps_verifier *v, bool acc);
/* What the word at an offset holds, in words. */
const char *vpps_verify_describe(const vpps_verifier *v, uint32_t token, char *text, size_t size);

/* ---- verify_operands.c: does an instruction do a piece of the graph's work? */

/* One piece: elements [at, at + n) of the destination's region, displacement `shift` in the instruction. */
typedef struct vpps_piece {
    const vpps_decoded *in;
    uint32_t node, edge; /* edge: its number + 1; 0: forward */
    uint32_t argument;
    const char *letters;
    uint64_t shift;
    uint32_t at, n;
    uint32_t from; /* concat, slice: first element of the source; set by vpps_verify_parts */
} vpps_piece;

typedef enum vpps_pass {
    VPPS_PASS_PLACES, /* do offsets and immediates fit? */
    VPPS_PASS_PEEK,   /* does the first element of each operand hold the right thing? */
    VPPS_PASS_READ    /* read them */
} vpps_pass;

bool vpps_verify_is_parts(const vpps_verifier *v, uint32_t node);
/* Are the operands those of this piece's work (and, in the last pass, is everything there)? */
bool vpps_verify_operands(vpps_verifier *v, const vpps_piece *piece, vpps_pass pass);
/* The same for copies of parts, which are clipped to one column; with `run` the copy is carried out. */
bool vpps_verify_parts(vpps_verifier *v, vpps_piece *piece, bool run);

static inline uint32_t vpps_verify_float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* ---- verify_match.c, verify_bundle.c, verify_update.c: run one instruction for v->vp */

bool vpps_verify_plain(vpps_verifier *v, const vpps_decoded *in);
bool vpps_verify_load(vpps_verifier *v, uint32_t destination, uint32_t address, uint32_t n);
bool vpps_verify_bundle(vpps_verifier *v, uint32_t opcode, uint32_t first, uint32_t n, uint32_t bundle);
bool vpps_verify_parameter(vpps_verifier *v, uint32_t opcode, const uint32_t *operands, uint32_t n);
bool vpps_verify_norm_end(vpps_verifier *v);
/* n words of the script, or NULL and refused. */
const uint32_t *vpps_verify_script(vpps_verifier *v, uint64_t address, uint64_t n);
/* Reads the rows of a matrix that a VP owns, which must not be updated yet. */
bool vpps_verify_read_matrix(vpps_verifier *v, uint32_t matrix, uint32_t owner);

static inline size_t vpps_verify_owner(const vpps_verifier *v, uint32_t param, uint32_t vp) {
    return (size_t)param * v->n_vps + vp;
}
static inline vpps_rows vpps_verify_own(const vpps_verifier *v, uint32_t rows) {
    return vpps_rows_of(rows, v->plan->row_block, v->n_vps, v->vp);
}

#endif

/* checker.h - inside vpps_verify_batch: what its steps share. See verify.h. */
#pragma once

#include "base/index.h"
#include "plan/plan.h"
#include "script/script.h"
#include "script/task.h"
#include "script/verify/function.h"

/* ---- compiled cells */

/* How a stage reads or writes a value in memory. */
typedef enum vpps_extent {
    VPPS_EXTENT_OWN, /* where rows are shared out: the rows that the VP owns; else the whole value of the VP's items */
    VPPS_EXTENT_WHOLE, /* the whole value, by every VP of the group */
    VPPS_EXTENT_SHARES /* the VP's own rows of every share, of which each VP of the group has made one */
} vpps_extent;

typedef struct vpps_stage_read {
    uint32_t value;
    uint8_t extent;
} vpps_stage_read;

typedef struct vpps_stage_info {
    uint32_t first, n; /* in cell->reads */
    bool rows;         /* shared out */
} vpps_stage_info;

/* A compiled cell that has been proved to do what a record of the graph asks for, and so for all records alike. */
typedef struct vpps_checked_cell {
    const vpps_compiled_cell *c;
    uint32_t record;                         /* the one; VPPS_NONE: not proved yet */
    uint64_t output_reads[VPPS_CELL_MOST];   /* inputs that an output is made of */
    bool output_trained[VPPS_CELL_MOST];     /* is the output made of parameters that are trained? */
    uint64_t output_made_of[VPPS_CELL_MOST]; /* outputs that it is made of, and itself; where gradients are asked for */
    uint64_t into_input[VPPS_CELL_MOST],
        into_entry[VPPS_CELL_MOST];     /* the gradients that contributions to the output are made of */
    bool sums_gradient[VPPS_CELL_MOST]; /* has the cell a value that sums output k's gradient? */
    uint32_t input_rows[VPPS_CELL_MOST], input_cols[VPPS_CELL_MOST];
    vpps_stage_info *stages;
    vpps_stage_read *reads;
    uint32_t n_reads;
} vpps_checked_cell;

/* ---- blocks */

/* A tensor: values that lie in memory, item first + i's `words` words at offset + i * stride. */
typedef enum vpps_tensor_kind {
    VPPS_TENSOR_INITIAL, /* what was there before: parameters below plan->batch, nothing above */
    VPPS_TENSOR_KEPT,
    VPPS_TENSOR_CONTRIBUTION,
    VPPS_TENSOR_CONSTANT,
    VPPS_TENSOR_GIVEN, /* what the host writes at the pause: the loss; gradients of the outputs that `terms` name */
    VPPS_TENSOR_ENTRY, /* gradients of a table's entries */
    VPPS_TENSOR_SPENT  /* parameters after their update */
} vpps_tensor_kind;

typedef struct vpps_tensor {
    uint8_t kind;
    uint32_t offset, stride, words, items;
    uint32_t first; /* item that lies at `offset` */
    uint32_t block, index,
        share; /* index: value, contribution, table; CONSTANT: bits; GIVEN: VPPS_NONE: the loss, else an output */
    uint64_t first_bit; /* CONTRIBUTION: of the block's item 0, in `taken` */
} vpps_tensor;

typedef struct vpps_checked_block {
    const vpps_block *block;
    vpps_checked_cell *cell;
    const uint32_t *vertices, *data;
    const uint32_t *lists[VPPS_AXES]; /* starts of each list */
    const uint32_t **inputs, **lookups, **words, **gradient_starts, **gradients, **pair_starts, **pairs;
    uint32_t **sources;     /* of each input: numbers of the outputs that its items read */
    uint32_t **rows;        /* of each lookup */
    uint32_t first_output;  /* output k of vertex p is number first_output + k * n + p */
    uint32_t *kept;         /* first tensor of each value; VPPS_NONE: not kept, or in a pass record */
    uint32_t **pass_record; /* of each value of a pass record: first tensor of every vertex's; 0: it was not made yet */
    uint32_t *contributions;     /* first tensor of each, of the task at hand */
    uint64_t *contribution_bits; /* first bit of each, in `taken` */
    uint64_t *stage_bits;        /* first bit of each stage's vertices, in `ran` */
} vpps_checked_block;

/* Where an output lies, and which tensor must be there. */
typedef struct vpps_location {
    uint32_t offset, tensor, words;
} vpps_location;

/* ---- the pool */

typedef struct vpps_word {
    uint32_t tensor;
    uint32_t writer,
        written;      /* VP + 1, and the instruction's place in the VP's group; 0: written before the script runs */
    uint32_t readers; /* set of those who read it since */
} vpps_word;

/* An actor, which reads or writes: a VP, or all VPs of a group (as number n_vps + group). */
typedef struct vpps_actor {
    uint32_t unit, group, place;
} vpps_actor;

typedef struct vpps_reader {
    uint32_t unit, place;
} vpps_reader;

/* Sets of readers, each stored once: all words of a tensor have the same readers, so that there are few distinct sets. */
typedef struct vpps_reader_sets {
    vpps_reader *readers;
    uint32_t *first, n;
    vpps_index numbers;
    vpps_reader *scratch;
} vpps_reader_sets;

typedef struct vpps_term_of_loss {
    vpps_node node;
    float factor;
    uint32_t output;
    uint32_t given; /* in halves: the number of the output whose gradient the host gives */
    bool taken;     /* as a part of the output's gradient */
    bool added;     /* to the loss */
} vpps_term_of_loss;

typedef struct vpps_stream {
    uint32_t at, end, place; /* place: instructions done */
    bool ended, waiting, paused, normed, updated;
    uint32_t norm_place, loss_place;
} vpps_stream;

typedef struct vpps_checker {
    /* the question */
    const uint32_t *script;
    size_t words;
    const vpps_task_header *header;
    vpps_compiled_cell *const *cells;
    uint32_t n_cells;
    const vpps_task_plan *plan;
    const vpps_graph *g;
    const vpps_batch_request *request;
    const uint32_t *outputs, *gradients; /* where the request's nodes are read */
    const vpps_given_array *given;       /* where gradients are written at the pause */
    bool training;
    uint32_t n_vps, n_groups, group_size;

    /* the answer */
    vpps_status status;
    char reason[384];
    bool running; /* then the message tells the instruction */
    uint32_t group, at;

    /* the graph's demands, by record */
    uint32_t n_records;
    uint8_t *needed;
    uint8_t *whole;    /* is its gradient asked for? Then it is a term of the loss, though it may be a sum */
    uint32_t *dropout; /* number of the first element */
    uint32_t *block_of, *position_of;
    vpps_term_of_loss *terms;
    uint32_t n_terms, n_added;

    /* compiled cells and blocks */
    vpps_expressions expressions;
    vpps_checked_cell *checked;
    vpps_checked_block *blocks;
    uint32_t n_outputs;
    uint32_t *output_block; /* by output */
    /* by output: is its gradient asked for; is a parameter that is trained, or an output with such a gradient, in it; does the loss depend
     * on it */
    uint8_t *asked, *trainable, *live;
    uint32_t *due;        /* by output: parts that its gradient is the sum of */
    uint32_t *first_term; /* by output: its terms of the loss, in `terms` sorted by output; n_outputs + 1 */
    vpps_tensor *tensors;
    uint32_t n_tensors;
    uint64_t *ran, *taken; /* bits */
    uint64_t n_ran, n_taken;
    uint32_t **due_entries; /* by parameter: contributions to each entry */
    uint32_t *table_tensors;
    bool *touched; /* by parameter: it gets a gradient by OUTER */

    /* the machine */
    vpps_stream *streams;
    bool goes_on;      /* the pause is over */
    uint32_t *known;   /* (group, other): instructions of the other that come before what the group does next */
    uint32_t *carried; /* (barrier, group): instructions of the group that come before its last signal */
    uint32_t *signals, *totals; /* by barrier: so far; in all */
    uint64_t *outer_done;       /* bits (group, output of a block's first kind): see parameters.c */
    uint8_t **entries_made;     /* by table, of each entry: has it a gradient, of waves so far? */
    uint32_t *matrix_read;      /* (parameter, group): place of the last instruction that reads it, + 1 */
    uint8_t *matrix_spent;      /* by parameter */
    vpps_word *pool;
    uint32_t pool_words;
    vpps_reader_sets sets;
    struct { /* results for the actor at hand */
        uint32_t result;
        vpps_word word;
        uint32_t tensor;
        bool valid;
    } memo;
    vpps_actor actor;

    void **memory;
    uint32_t n_memory;
} vpps_checker;

/* ---- verify.c */

/* Sets the reason; the first stays. */
void vpps_check_record(vpps_checker *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same as an expression whose value is false, for `return VPPS_REFUSE(...)`. */
#define VPPS_REFUSE(...) (vpps_check_record(__VA_ARGS__), false)
/* Zeroed memory that lives as long as the checker; NULL, and status MEMORY, when there is none. */
void *vpps_check_zeros(vpps_checker *c, uint64_t n, size_t bytes);
/* n words of the script; NULL, and refused, where it has not so many. `what` is for the message. */
const uint32_t *vpps_check_words(vpps_checker *c, uint64_t address, uint64_t n, const char *what);

static inline bool vpps_bit(const uint64_t *bits, uint64_t i) { return bits[i / 64] >> (i % 64) & 1; }
static inline void vpps_set_bit(uint64_t *bits, uint64_t i) { bits[i / 64] |= (uint64_t)1 << (i % 64); }
static inline uint64_t vpps_bit_words(uint64_t n) { return n / 64 + 1; }

/* ---- demand.c: the graph */

/* The record that a node belongs to, and which node of the record's cell it is. False: there is none. */
bool vpps_check_resolve(const vpps_graph *g, vpps_node x, uint32_t *record, uint32_t *node);
/* The nodes that a record reads, how many, its pulled indices, and the members of its lists (of an op, one of its
 * arguments). */
typedef struct vpps_record_view {
    const vpps_cell_data *cell; /* NULL: an op */
    const vpps_op_node *op;
    const vpps_signature *signature; /* of the op */
    const uint32_t *args, *indices;
    const uint32_t *members;
    uint32_t n_args;
} vpps_record_view;
vpps_record_view vpps_check_view(const vpps_graph *g, uint32_t record);
/* Shape of a node. */
const vpps_signature *vpps_check_signature(const vpps_graph *g, vpps_node x);
/* What the request needs: records, terms of the loss; numbers under dropout. */
bool vpps_check_demands(vpps_checker *c);
/* Once blocks are known: which outputs have gradients, and of how many contributions. */
bool vpps_check_gradients(vpps_checker *c);
/* Gradients of a vertex's outputs that the loss depends on. */
uint64_t vpps_check_live(const vpps_checker *c, const vpps_checked_block *b, uint32_t p);

/* ---- proof.c, program.c */

/* Proves a compiled cell, for a record. */
bool vpps_check_cell(vpps_checker *c, vpps_checked_cell *cell, uint32_t record);
/* Do two records ask for the same function? */
bool vpps_check_alike(const vpps_graph *g, uint32_t a, uint32_t b);

/* Does output k stay where others can read it? It does not if the cell was compiled for batches in which none reads it. */
static inline bool vpps_offers(const vpps_compiled_cell *c, uint32_t k) {
    return c->outputs[k].value != VPPS_NONE && (c->needs.read_out >> k & 1);
}

/* ---- records.c */

bool vpps_check_arrays(vpps_checker *c); /* inputs and all else that a record says */
bool vpps_check_tables(vpps_checker *c);

/* ---- blocks.c */

/* Refuses, naming vertex p of the block; returns false. */
bool vpps_refuse_vertex(vpps_checker *c, const vpps_checked_block *b, uint32_t p, const char *what);
bool vpps_check_blocks(vpps_checker *c);
/* Where an output lies. */
vpps_location vpps_check_location(const vpps_checker *c, uint32_t output);
/* Number of the output that a node is; VPPS_NONE, and refused: it is none of a block. */
uint32_t vpps_check_output(vpps_checker *c, vpps_node x);
/* Block, output of its cell and position of an output. */
uint32_t vpps_check_block_of(const vpps_checker *c, uint32_t output, uint32_t *k, uint32_t *position);
/* Adds a tensor at this offset and returns its number. VPPS_NONE, and refused: the batch has no such words. */
uint32_t vpps_check_add_tensor(vpps_checker *c, uint64_t offset, vpps_tensor t);

/* ---- words.c */

bool vpps_check_open_pool(vpps_checker *c);
void vpps_check_close_pool(vpps_checker *c);
void vpps_check_act(vpps_checker *c,
                    uint32_t unit); /* sets who reads and writes from now on, by the instruction at hand */
/* Does another group's instruction come before the actor's? */
bool vpps_check_read(vpps_checker *c, uint32_t offset, uint32_t n, uint32_t tensor);
/* `item` of the tensor. */
bool vpps_check_write(vpps_checker *c, uint32_t offset, uint32_t n, uint32_t tensor, uint32_t item);
/* Notes what lies in the words from an offset on. */
void vpps_check_describe(const vpps_checker *c, uint32_t tensor, uint32_t offset, char *text, size_t size);

/* ---- tasks.c, parameters.c */

bool vpps_check_stage(vpps_checker *c, const vpps_task *t);
bool vpps_check_constants(vpps_checker *c, uint32_t address, uint32_t n);
/* All groups have come to their PAUSE: the host reads outputs and gives gradients. */
bool vpps_check_pause(vpps_checker *c);
/* Offset, tensor of a value of a block for an item. */
vpps_location vpps_check_operand(const vpps_checker *c, const vpps_checked_block *b, uint32_t value, uint32_t item);
/* Takes the contribution that lies at an offset for an output's gradient (output not VPPS_NONE) or for an entry's: it must be one that is
 * due, and is taken once only. Returns its tensor, or VPPS_NONE and refuses. */
uint32_t vpps_check_take(vpps_checker *c, uint32_t offset, uint32_t words, uint32_t output, uint32_t table,
                         uint32_t row);
/* The same of a pair for an output. */
bool vpps_check_take_pair(vpps_checker *c, const uint32_t *pair, uint32_t words, uint32_t output);
bool vpps_check_outer(vpps_checker *c, uint32_t block, uint32_t first, uint32_t n);
bool vpps_check_entries(vpps_checker *c, uint32_t table, uint32_t address);
bool vpps_check_loss(vpps_checker *c, uint32_t address, uint32_t n);
bool vpps_check_norm(vpps_checker *c);
bool vpps_check_update(vpps_checker *c);
bool vpps_check_outputs(vpps_checker *c); /* do they lie where they are read? */
bool vpps_check_end(vpps_checker *c);     /* of all streams: is everything done? */

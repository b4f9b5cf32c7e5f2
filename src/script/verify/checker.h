/* checker.h - the state of vpps_verify_batch, which its files share. See verify.h. */
#pragma once

#include "base/index.h"
#include "plan/plan.h"
#include "script/script.h"
#include "script/task.h"
#include "script/verify/function.h"

/* ---- compiled cells */

/* The part of a stored value that a stage reads or writes. */
typedef enum vpps_extent {
    /* The rows that the virtual processor (VP) owns, if rows are shared out; else the whole value of the VP's items. */
    VPPS_EXTENT_OWN,
    VPPS_EXTENT_WHOLE, /* the whole value, by every VP of the group */
    VPPS_EXTENT_SHARES /* the VP's own rows of every share; each VP of the group has made a share */
} vpps_extent;

typedef struct vpps_stage_read {
    uint32_t value;
    uint8_t extent;
} vpps_stage_read;

typedef struct vpps_stage_info {
    uint32_t first, n; /* the stage's reads: n, from `first` on in cell->reads */
    bool rows;         /* the stage's rows are shared out over the VPs */
} vpps_stage_info;

/* A compiled cell that has been proved to compute what a record of the graph asks for, and so for all equal records. */
typedef struct vpps_checked_cell {
    const vpps_compiled_cell *c;
    uint32_t record;                       /* the record that it was proved for; VPPS_NONE: not proved yet */
    uint64_t output_reads[VPPS_CELL_MOST]; /* for each output: the inputs that it depends on, as bits */
    bool output_trained[VPPS_CELL_MOST];   /* for each output: whether it depends on trained parameters */
    /* for each output: itself and the outputs that it depends on, if gradients are asked for */
    uint64_t output_made_of[VPPS_CELL_MOST];
    /* For each input, and each lookup: the outputs whose gradients its contribution depends on, as bits. */
    uint64_t into_input[VPPS_CELL_MOST], into_entry[VPPS_CELL_MOST];
    bool sums_gradient[VPPS_CELL_MOST]; /* for each output: whether the cell has a value that sums its gradient */
    uint32_t input_rows[VPPS_CELL_MOST], input_cols[VPPS_CELL_MOST];
    vpps_stage_info *stages;
    vpps_stage_read *reads;
    uint32_t n_reads;
} vpps_checked_cell;

/* ---- blocks */

/* A tensor: values in memory. Item first + i has `words` words at offset + i * stride. */
typedef enum vpps_tensor_kind {
    VPPS_TENSOR_INITIAL, /* the contents before the script runs: parameters below plan->batch, nothing above */
    VPPS_TENSOR_KEPT,
    VPPS_TENSOR_CONTRIBUTION,
    VPPS_TENSOR_CONSTANT,
    VPPS_TENSOR_GIVEN, /* Words that the host writes at the pause: the step's loss, and gradients of outputs. */
    VPPS_TENSOR_ENTRY, /* gradients of a lookup table's entries */
    VPPS_TENSOR_SPENT  /* parameters after their update */
} vpps_tensor_kind;

typedef struct vpps_tensor {
    uint8_t kind;
    uint32_t offset, stride, words, items;
    uint32_t first; /* number of the item that lies at `offset` */
    /* index: number of the value, contribution or table; CONSTANT: bits of the number; GIVEN: the output, or VPPS_NONE for the loss. */
    uint32_t block, index, share;
    uint64_t first_bit; /* a contribution's first bit in the set `taken`, that of the block's item 0 */
} vpps_tensor;

typedef struct vpps_checked_block {
    const vpps_block *block;
    vpps_checked_cell *cell;
    const uint32_t *vertices, *data;
    const uint32_t *lists[VPPS_AXES]; /* for each list: the first member of each vertex */
    const uint32_t **inputs, **lookups, **words, **gradient_starts, **gradients, **pair_starts, **pairs;
    uint32_t **sources;    /* for each input: numbers of the outputs that its items read */
    uint32_t **rows;       /* for each lookup: the rows that it reads */
    uint32_t first_output; /* output k of vertex p has the number first_output + k * n + p */
    uint32_t *kept;        /* for each value: its first tensor; VPPS_NONE: not kept, or kept in a pass record */
    /* For each value of a pass record: the first tensor of every vertex's value; 0: it was not made yet. */
    uint32_t **pass_record;
    uint32_t *contributions;     /* for each contribution of the present task: its first tensor */
    uint64_t *contribution_bits; /* for each contribution: its first bit in `taken` */
    uint64_t *stage_bits;        /* for each stage: the first bit of its vertices in `ran` */
} vpps_checked_block;

/* The place of an output, and the tensor that must be there. */
typedef struct vpps_location {
    uint32_t offset, tensor, words;
} vpps_location;

/* ---- the pool */

typedef struct vpps_word {
    uint32_t tensor;
    /* The VP + 1 that wrote the word, and the task's place in the order of the VP's group; 0: written before the script runs. */
    uint32_t writer, written;
    uint32_t readers; /* number of the set of its readers since that write */
} vpps_word;

/* An actor reads or writes: a VP, or all VPs of a group (whose number is n_vps + group). */
typedef struct vpps_actor {
    uint32_t unit, group, place;
} vpps_actor;

typedef struct vpps_reader {
    uint32_t unit, place;
} vpps_reader;

/* Sets of readers, each stored once: all words of a tensor have the same readers, so there are few distinct sets. */
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
    uint32_t given; /* a step in halves: number of the output whose gradient the host gives */
    bool taken;     /* the term is used in the output's gradient */
    bool added;     /* the term is added to the loss */
} vpps_term_of_loss;

typedef struct vpps_stream {
    uint32_t at, end, place; /* addresses of the next task and of the end; place: number of tasks done */
    bool ended, waiting, paused, normed, updated;
    uint32_t norm_place, loss_place;
} vpps_stream;

typedef struct vpps_checker {
    /* the question: what the script has to do */
    const uint32_t *script;
    size_t words;
    const vpps_task_header *header;
    vpps_compiled_cell *const *cells;
    uint32_t n_cells;
    const vpps_task_plan *plan;
    const vpps_graph *g;
    const vpps_batch_request *request;
    const uint32_t *outputs, *gradients; /* offsets at which the request's nodes are read */
    const vpps_given_array *given;       /* offsets at which gradients are written at the pause */
    bool training;
    uint32_t n_vps, n_groups, group_size;

    /* the answer: OK, or why the script was refused */
    vpps_status status;
    char reason[384];
    bool running; /* a task is being executed, which the message names */
    uint32_t group, at;

    /* the graph's demands: an array's index is a record's number */
    uint32_t n_records;
    uint8_t *needed;
    uint8_t *whole;    /* the record's gradient is asked for: it is then a term of the loss, though it may be a sum */
    uint32_t *dropout; /* number of the record's first element under dropout */
    uint32_t *block_of, *position_of;
    vpps_term_of_loss *terms;
    uint32_t n_terms, n_added;

    /* compiled cells and blocks */
    vpps_expressions expressions;
    vpps_checked_cell *checked;
    vpps_checked_block *blocks;
    uint32_t n_outputs;
    uint32_t *output_block; /* for each output: its block */
    /* For each output: whether its gradient is asked for; whether it depends on a trained parameter, or on an output with such a
     * gradient; whether the loss depends on it. */
    uint8_t *asked, *trainable, *live;
    uint32_t *due; /* for each output: number of contributions to its gradient */
    /* For each output: its first term of the loss; `terms` is sorted by output. n_outputs + 1 numbers. */
    uint32_t *first_term;
    vpps_tensor *tensors;
    uint32_t n_tensors;
    uint64_t *ran, *taken; /* sets of bits: vertices' stages that ran; items' contributions that were taken */
    uint64_t n_ran, n_taken;
    uint32_t **due_entries; /* for each parameter: number of contributions to each of its entries */
    uint32_t *table_tensors;
    bool *touched; /* for each parameter: whether OUTER tasks make its gradient */

    /* the machine that executes the script */
    vpps_stream *streams;
    bool goes_on; /* the pause is over: the tasks after it run */
    /* For each group and other group: number of the other's tasks that come before the group's next one. */
    uint32_t *known;
    uint32_t *carried; /* For each barrier and group: number of the group's tasks that come before its latest signal. */
    uint32_t *signals, *totals; /* for each barrier: signals so far, and in all */
    uint64_t *outer_done; /* Bits, for each group and record: the parameters' gradients include the record's vertex. */
    uint8_t **entries_made; /* for each entry of each table: whether it has a gradient from the waves so far */
    uint32_t *matrix_read;  /* For each parameter and group: 1 + the place of the latest task that reads it. */
    uint8_t *matrix_spent;  /* for each parameter: whether the update has changed it already */
    vpps_word *pool;
    uint32_t pool_words;
    vpps_reader_sets sets;
    struct { /* the actor's latest result of adding itself to a word's readers */
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

/* Refuses the script for this reason, unless there is a reason already. */
void vpps_check_record(vpps_checker *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Refuses the script, as an expression whose value is false, for `return VPPS_REFUSE(...)`. */
#define VPPS_REFUSE(...) (vpps_check_record(__VA_ARGS__), false)
/* Returns zeroed memory that lives as long as the checker; NULL, with status MEMORY: out of memory. */
void *vpps_check_zeros(vpps_checker *c, uint64_t n, size_t bytes);
/* Returns n words of the script; NULL: it does not have them, and is refused. `what` is for the message. */
const uint32_t *vpps_check_words(vpps_checker *c, uint64_t address, uint64_t n, const char *what);

static inline bool vpps_bit(const uint64_t *bits, uint64_t i) { return bits[i / 64] >> (i % 64) & 1; }
static inline void vpps_set_bit(uint64_t *bits, uint64_t i) { bits[i / 64] |= (uint64_t)1 << (i % 64); }
static inline uint64_t vpps_bit_words(uint64_t n) { return n / 64 + 1; }

/* ---- demand.c: the graph */

/* Gives the record of a node, and the number of the node among the cell's. False: there is no such node. */
bool vpps_check_resolve(const vpps_graph *g, vpps_node x, uint32_t *record, uint32_t *node);
/* What a record reads: its nodes, its pulled indices, and the members of its lists (of an op, one of its arguments). */
typedef struct vpps_record_view {
    const vpps_cell_data *cell; /* the record's cell; NULL: an op */
    const vpps_op_node *op;
    const vpps_signature *signature; /* the op's signature */
    const uint32_t *args, *indices;
    const uint32_t *members;
    uint32_t n_args;
} vpps_record_view;
vpps_record_view vpps_check_view(const vpps_graph *g, uint32_t record);
/* Returns the signature of a node, which has its shape. */
const vpps_signature *vpps_check_signature(const vpps_graph *g, vpps_node x);
/* Finds the request's needs: records, terms of the loss, numbers of dropout elements. */
bool vpps_check_demands(vpps_checker *c);
/* Finds, once blocks are known, the outputs with gradients, and the number of contributions to each. */
bool vpps_check_gradients(vpps_checker *c);
/* Returns the outputs of a vertex that the loss depends on, as bits. */
uint64_t vpps_check_live(const vpps_checker *c, const vpps_checked_block *b, uint32_t p);

/* ---- proof.c, program.c */

/* Proves that a compiled cell computes what a record asks for. */
bool vpps_check_cell(vpps_checker *c, vpps_checked_cell *cell, uint32_t record);
/* Returns whether two records ask for the same function. */
bool vpps_check_alike(const vpps_graph *g, uint32_t a, uint32_t b);

/* Returns whether output k is stored where others can read it. It is not if the cell was compiled for batches in which nobody reads it. */
static inline bool vpps_offers(const vpps_compiled_cell *c, uint32_t k) {
    return c->outputs[k].value != VPPS_NONE && (c->needs.read_out >> k & 1);
}

/* ---- records.c */

bool vpps_check_arrays(vpps_checker *c); /* checks the arrays of inputs, words and data against the records */
bool vpps_check_tables(vpps_checker *c);

/* ---- blocks.c */

/* Refuses the script because of vertex p of a block; returns false. */
bool vpps_refuse_vertex(vpps_checker *c, const vpps_checked_block *b, uint32_t p, const char *what);
bool vpps_check_blocks(vpps_checker *c);
/* Returns the place of an output. */
vpps_location vpps_check_location(const vpps_checker *c, uint32_t output);
/* Returns the number of the output that a node is; VPPS_NONE: no block has it, and the script is refused. */
uint32_t vpps_check_output(vpps_checker *c, vpps_node x);
/* Gives the block, the output of its cell and the vertex's position of an output. */
uint32_t vpps_check_block_of(const vpps_checker *c, uint32_t output, uint32_t *k, uint32_t *position);
/* Adds a tensor at this offset and returns its number; VPPS_NONE: the batch has no such words, and the script is refused. */
uint32_t vpps_check_add_tensor(vpps_checker *c, uint64_t offset, vpps_tensor t);

/* ---- words.c */

bool vpps_check_open_pool(vpps_checker *c);
void vpps_check_close_pool(vpps_checker *c);
/* Sets the VP or group that reads and writes from now on, in the present task. */
void vpps_check_act(vpps_checker *c, uint32_t unit);
/* Reads n words, which must hold the tensor, and whose write must come before. */
bool vpps_check_read(vpps_checker *c, uint32_t offset, uint32_t n, uint32_t tensor);
/* Writes n words of item `item` of the tensor; earlier accesses must come before. */
bool vpps_check_write(vpps_checker *c, uint32_t offset, uint32_t n, uint32_t tensor, uint32_t item);
/* Writes a text for messages on the tensor's contents at an offset. */
void vpps_check_describe(const vpps_checker *c, uint32_t tensor, uint32_t offset, char *text, size_t size);

/* ---- tasks.c, parameters.c */

bool vpps_check_stage(vpps_checker *c, const vpps_task *t);
bool vpps_check_constants(vpps_checker *c, uint32_t address, uint32_t n);
/* Lets the host read outputs and give gradients, when all groups have come to their PAUSE. */
bool vpps_check_pause(vpps_checker *c);
/* Returns the place of an item of a block's value. */
vpps_location vpps_check_operand(const vpps_checker *c, const vpps_checked_block *b, uint32_t value, uint32_t item);
/* Takes the contribution at an offset for an output's gradient, or, with `output` VPPS_NONE, for that of an entry of a table. It must
 * belong there and be taken only once. Returns its tensor; VPPS_NONE: the script is refused. */
uint32_t vpps_check_take(vpps_checker *c, uint32_t offset, uint32_t words, uint32_t output, uint32_t table,
                         uint32_t row);
/* Takes a pair of factors, a scaled contribution, for an output's gradient. */
bool vpps_check_take_pair(vpps_checker *c, const uint32_t *pair, uint32_t words, uint32_t output);
bool vpps_check_outer(vpps_checker *c, uint32_t block, uint32_t first, uint32_t n);
bool vpps_check_entries(vpps_checker *c, uint32_t table, uint32_t address);
bool vpps_check_loss(vpps_checker *c, uint32_t address, uint32_t n);
bool vpps_check_norm(vpps_checker *c);
bool vpps_check_update(vpps_checker *c);
bool vpps_check_outputs(vpps_checker *c); /* checks that the outputs lie where the host reads them */
bool vpps_check_end(vpps_checker *c);     /* checks that all streams have done all work */

/* checker.h - the state of the script verifier, vpps_verify_batch (verify.h). */
#pragma once

#include "base/index.h"
#include "script/script.h"
#include "script/task.h"
#include "script/verify/function.h"

/* ---- compiled cells */

/* How much of a stored value a stage reads or writes. */
typedef enum vpps_extent {
    /* The rows that the virtual processor (VP) owns, if rows are shared out; else whole values, of the vertices that it runs. */
    VPPS_EXTENT_OWN,
    VPPS_EXTENT_WHOLE, /* the whole value; every virtual processor of the group reads it */
    VPPS_EXTENT_SHARES /* own rows of all shares, where each virtual processor has made a share of a sum */
} vpps_extent;

typedef struct vpps_stage_read {
    uint32_t value;
    uint8_t extent;
} vpps_stage_read;

typedef struct vpps_stage_info {
    uint32_t first, n; /* the stage's reads are cell->reads[first] to cell->reads[first + n - 1] */
    bool rows;         /* whether the stage's rows are shared out to the virtual processors */
} vpps_stage_info;

/* A compiled cell that has been proved to compute what a record (vertex) of the graph asks for; the proof holds for all equal records. */
typedef struct vpps_checked_cell {
    const vpps_compiled_cell *c;
    uint32_t record; /* record of the graph for which the cell was proved; VPPS_NONE: not proved yet */
    uint64_t output_reads[VPPS_CELL_MOST]; /* for each output: the cell's inputs that it depends on, as bits */
    bool output_trained[VPPS_CELL_MOST];   /* for each output: whether it depends on trained parameters */
    /* if gradients are asked for: for each output, the outputs that it depends on, itself included, as bits */
    uint64_t output_made_of[VPPS_CELL_MOST];
    /* For each input, and each lookup: the outputs whose gradients flow into the gradient that the cell contributes to it, as bits. */
    uint64_t into_input[VPPS_CELL_MOST], into_entry[VPPS_CELL_MOST];
    bool sums_gradient[VPPS_CELL_MOST]; /* for each output: whether the cell has a value for the sum of its gradient */
    uint32_t input_rows[VPPS_CELL_MOST], input_cols[VPPS_CELL_MOST];
    vpps_stage_info *stages;
    vpps_stage_read *reads;
    uint32_t n_reads;
} vpps_checked_cell;

/* ---- blocks */

/* A tensor: values in memory. Item first + i has `words` words at offset + i * stride. */
typedef enum vpps_tensor_kind {
    VPPS_TENSOR_INITIAL, /* what the pool holds before the script runs: parameters below target->batch, nothing above */
    VPPS_TENSOR_KEPT,
    VPPS_TENSOR_CONTRIBUTION,
    VPPS_TENSOR_CONSTANT,
    VPPS_TENSOR_GIVEN, /* Words that the host writes at the pause: the step's loss, and gradients of outputs. */
    VPPS_TENSOR_ENTRY, /* gradients of a lookup table's entries */
    VPPS_TENSOR_SPENT  /* parameters after the update has changed them */
} vpps_tensor_kind;

typedef struct vpps_tensor {
    uint8_t kind;
    uint32_t offset, stride, words, items;
    uint32_t first; /* number of the first item (vertex or list member) of the tensor */
    /* index: number of the value, contribution or table; CONSTANT: bits of the number; GIVEN: the output, or VPPS_NONE (loss). */
    uint32_t block, index, share;
    uint64_t first_bit; /* CONTRIBUTION: number of the bit in `taken` that belongs to item 0 of the block */
} vpps_tensor;

typedef struct vpps_checked_block {
    const vpps_block *block;
    vpps_checked_cell *cell;
    const uint32_t *vertices, *data;
    const uint32_t *lists[VPPS_AXES]; /* for each list: the number of each vertex's first member */
    const uint32_t **inputs, **lookups, **words, **gradient_starts, **gradients, **pair_starts, **pairs;
    uint32_t **sources;    /* for each input: the numbers of the outputs that its items read */
    uint32_t **rows;       /* for each lookup: the table rows that its vertices read */
    uint32_t first_output; /* output k of vertex p has the number first_output + k * n + p */
    uint32_t *kept;        /* for each value: number of its tensor; VPPS_NONE: not kept, or kept in a pass record */
    /* for each value that a vertex keeps only during a pass, and each vertex: number of its tensor; 0: not made yet */
    uint32_t **pass_record;
    uint32_t *contributions;     /* for each contribution of the present task: number of its first tensor */
    uint64_t *contribution_bits; /* for each contribution: number of its first bit in `taken` */
    uint64_t *stage_bits;        /* for each stage: number of the first bit of its vertices in `ran` */
} vpps_checked_block;

/* Where an output must lie in the pool, and the number of the tensor that must be there. */
typedef struct vpps_location {
    uint32_t offset, tensor, words;
} vpps_location;

/* ---- the pool */

typedef struct vpps_word {
    uint32_t tensor;
    /* Virtual processor + 1 that wrote the word, and the number of the writing task in its group; 0: written before the script runs. */
    uint32_t writer, written;
    uint32_t readers; /* number of the set of readers since the latest write */
} vpps_word;

/* Who reads or writes: a virtual processor (number `unit`), or all those of a group together (`unit` = n_vps + group). */
typedef struct vpps_actor {
    uint32_t unit, group, place;
} vpps_actor;

typedef struct vpps_reader {
    uint32_t unit, place;
} vpps_reader;

/* Sets of readers of a word, each stored once: all words of a tensor have the same readers, so there are few distinct sets. */
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
    uint32_t given; /* where the host gives the gradient of a requested output: the output's index in the request */
    bool taken;     /* whether the term's factor has been added to the output's gradient */
    bool added;     /* whether the term has been added to the loss */
} vpps_term_of_loss;

typedef struct vpps_stream {
    uint32_t at, end, place; /* addresses in the script of the next task and of the end; number of tasks done */
    bool ended, waiting, paused, normed, updated;
    uint32_t norm_place, loss_place;
} vpps_stream;

typedef struct vpps_checker {
    /* input: the script, and the request that it has to fulfil */
    const uint32_t *script;
    size_t words;
    const vpps_task_header *header;
    vpps_compiled_cell *const *cells;
    uint32_t n_cells;
    const vpps_target *target;
    const vpps_graph *g;
    const vpps_batch_request *request;
    const uint32_t *outputs, *gradients; /* pool offsets of requested outputs and gradients: the host reads them */
    const vpps_given_array *given;       /* offsets at which the host writes gradients at the pause */
    bool training;
    uint32_t n_vps, n_groups, group_size;

    /* result: OK, or why the script is refused */
    vpps_status status;
    char reason[384];
    bool running; /* whether a task is being executed, which the message then names */
    uint32_t group, at;

    /* what the graph demands; the arrays have an element for each record (vertex) */
    uint32_t n_records;
    uint8_t *needed;
    uint8_t *whole;    /* whether the record's gradient is asked for; a sum is then a term of the loss itself */
    uint32_t *dropout; /* number of the record's first element under dropout */
    uint32_t *block_of, *position_of;
    vpps_term_of_loss *terms;
    uint32_t n_terms, n_added;

    /* the compiled cells and the blocks of vertices */
    vpps_expressions expressions;
    vpps_checked_cell *checked;
    vpps_checked_block *blocks;
    uint32_t n_outputs;
    uint32_t *output_block; /* for each output: number of the block that computes it */
    /* For each output: whether its gradient is asked for; whether it depends on a trained parameter, or on an output with such a
     * gradient; whether the loss depends on it. */
    uint8_t *asked, *trainable, *live;
    uint32_t *due; /* for each output: number of contributions to its gradient */
    /* For each output: index of its first term of the loss in `terms`, which is sorted by output; n_outputs + 1 numbers. */
    uint32_t *first_term;
    vpps_tensor *tensors;
    uint32_t n_tensors;
    uint64_t *ran, *taken; /* bit sets: stages of vertices that ran; contributions that were added to a gradient */
    uint64_t n_ran, n_taken;
    uint32_t **due_entries; /* for each lookup table: number of contributions still to come to each entry */
    uint32_t *table_tensors;
    bool *touched; /* for each parameter: whether OUTER tasks compute its gradient */

    /* state of the abstract machine that executes the script */
    vpps_stream *streams;
    bool goes_on; /* whether the pause is over, so that the tasks after it run */
    /* For each group and other group: number of the other group's tasks that barriers order before the group's next task. */
    uint32_t *known;
    uint32_t *carried; /* for each barrier and group: number of the group's tasks ordered before its latest signal */
    uint32_t *signals, *totals; /* for each barrier: number of signals so far, and in the whole script */
    uint64_t *outer_done;   /* bit set, for each group and record: parameters' gradients include the record's vertex */
    uint8_t **entries_made; /* for each entry of each table: whether earlier slices have summed a gradient for it */
    uint32_t *matrix_read;  /* for each parameter and group: 1 + number of the group's latest task that reads it */
    uint8_t *matrix_spent;  /* for each parameter: whether the update has changed it */
    vpps_word *pool;
    uint32_t pool_words;
    vpps_reader_sets sets;
    struct { /* cache of vpps_check_read: the latest word read, and the set of its readers after that read */
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

/* Refuses the script with this reason, unless it is already refused. */
void vpps_check_record(vpps_checker *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Refuses the script and has the value false, so that a function can `return VPPS_REFUSE(...)`. */
#define VPPS_REFUSE(...) (vpps_check_record(__VA_ARGS__), false)
/* Returns zeroed memory that lives as long as the checker; NULL: out of memory, and c->status is MEMORY. */
void *vpps_check_zeros(vpps_checker *c, uint64_t n, size_t bytes);
/* Returns n words of the script; NULL: the script is shorter and so refused; `what` names the words in the message. */
const uint32_t *vpps_check_words(vpps_checker *c, uint64_t address, uint64_t n, const char *what);

static inline bool vpps_bit(const uint64_t *bits, uint64_t i) { return bits[i / 64] >> (i % 64) & 1; }
static inline void vpps_set_bit(uint64_t *bits, uint64_t i) { bits[i / 64] |= (uint64_t)1 << (i % 64); }
static inline uint64_t vpps_bit_words(uint64_t n) { return n / 64 + 1; }

/* ---- demand.c */

/* Finds the record to which node x belongs, and which of the record's nodes it is. False: there is no such node. */
bool vpps_check_resolve(const vpps_graph *g, vpps_node x, uint32_t *record, uint32_t *node);
/* What a record reads: its nodes, its pulled indices, and the members of its lists (an op has one list, its arguments). */
typedef struct vpps_record_view {
    const vpps_cell_data *cell; /* the applied cell; NULL: the record is an op */
    const vpps_op_node *op;
    const vpps_signature *signature; /* the op's signature */
    const uint32_t *args, *indices;
    const uint32_t *members;
    uint32_t n_args;
} vpps_record_view;
vpps_record_view vpps_check_view(const vpps_graph *g, uint32_t record);
/* Returns the signature (op and shape) of a node. */
const vpps_signature *vpps_check_signature(const vpps_graph *g, vpps_node x);
/* Finds what the request needs: records (vertices), terms of the loss, numbers of dropout elements. */
bool vpps_check_demands(vpps_checker *c);
/* Finds the outputs with gradients, and the number of contributions to each. The blocks must be known. */
bool vpps_check_gradients(vpps_checker *c);
/* Returns the outputs of vertex p of a block that the loss depends on, as bits. */
uint64_t vpps_check_live(const vpps_checker *c, const vpps_checked_block *b, uint32_t p);

/* ---- proof.c, program.c */

/* Proves that a compiled cell computes the function that a record of the graph asks for. */
bool vpps_check_cell(vpps_checker *c, vpps_checked_cell *cell, uint32_t record);
/* Returns whether two records of the graph ask for the same function. */
bool vpps_check_alike(const vpps_graph *g, uint32_t a, uint32_t b);

/* Returns whether the cell stores output k for readers. It does not if it was compiled for batches in which nobody reads the output. */
static inline bool vpps_offers(const vpps_compiled_cell *c, uint32_t k) {
    return c->outputs[k].value != VPPS_NONE && (c->needs.read_out >> k & 1);
}

/* ---- records.c */

bool vpps_check_arrays(vpps_checker *c); /* checks the blocks' arrays of inputs, words and data against the graph */
bool vpps_check_tables(vpps_checker *c);

/* ---- blocks.c */

/* Refuses the script with a message that names vertex p of a block; returns false. */
bool vpps_refuse_vertex(vpps_checker *c, const vpps_checked_block *b, uint32_t p, const char *what);
bool vpps_check_blocks(vpps_checker *c);
/* Returns where an output lies in the pool. */
vpps_location vpps_check_location(const vpps_checker *c, uint32_t output);
/* Returns the number of the output that node x is; VPPS_NONE: no block computes the node, and the script is refused. */
uint32_t vpps_check_output(vpps_checker *c, vpps_node x);
/* Returns the number of the block that computes an output; *k: which of its cell's outputs it is; *position: the vertex's position. */
uint32_t vpps_check_block_of(const vpps_checker *c, uint32_t output, uint32_t *k, uint32_t *position);
/* Adds a tensor at this offset and returns its number; VPPS_NONE: the words lie outside the batch's memory, and the script is refused. */
uint32_t vpps_check_add_tensor(vpps_checker *c, uint64_t offset, vpps_tensor t);

/* ---- words.c */

bool vpps_check_open_pool(vpps_checker *c);
void vpps_check_close_pool(vpps_checker *c);
/* Sets who reads and writes next in the present task: a virtual processor, or a whole group. */
void vpps_check_act(vpps_checker *c, uint32_t unit);
/* Reads n words: checks that they hold the tensor and that a barrier orders the write before this read. */
bool vpps_check_read(vpps_checker *c, uint32_t offset, uint32_t n, uint32_t tensor);
/* Writes n words of an item of the tensor: checks that barriers order all earlier accesses before this write. */
bool vpps_check_write(vpps_checker *c, uint32_t offset, uint32_t n, uint32_t tensor, uint32_t item);
/* Describes the tensor's contents at an offset in words, for messages. */
void vpps_check_describe(const vpps_checker *c, uint32_t tensor, uint32_t offset, char *text, size_t size);

/* ---- tasks.c, parameters.c */

bool vpps_check_stage(vpps_checker *c, const vpps_task *t);
bool vpps_check_constants(vpps_checker *c, uint32_t address, uint32_t n);
/* At the pause of all groups: lets the host read outputs and write gradients. */
bool vpps_check_pause(vpps_checker *c);
/* Returns where the value of an item (vertex or list member) of a block lies in the pool. */
vpps_location vpps_check_operand(const vpps_checker *c, const vpps_checked_block *b, uint32_t value, uint32_t item);
/* Uses the contribution at an offset for an output's gradient, or, with `output` VPPS_NONE, for the gradient of a table's entry. The
 * contribution must belong to this gradient and be used only once. Returns its tensor; VPPS_NONE: the script is refused. */
uint32_t vpps_check_take(vpps_checker *c, uint32_t offset, uint32_t words, uint32_t output, uint32_t table,
                         uint32_t row);
/* Uses a scaled contribution, a pair of factors, for an output's gradient. */
bool vpps_check_take_pair(vpps_checker *c, const uint32_t *pair, uint32_t words, uint32_t output);
bool vpps_check_outer(vpps_checker *c, uint32_t block, uint32_t first, uint32_t n);
bool vpps_check_entries(vpps_checker *c, uint32_t table, uint32_t address);
bool vpps_check_loss(vpps_checker *c, uint32_t address, uint32_t n);
bool vpps_check_norm(vpps_checker *c);
bool vpps_check_update(vpps_checker *c);
bool vpps_check_outputs(vpps_checker *c); /* checks that the outputs lie where the host reads them */
bool vpps_check_end(vpps_checker *c);     /* checks that all groups have done all work */

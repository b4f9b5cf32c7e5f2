/* checker.h - the data of a run of the script verifier, vpps_verify_batch (verify.h), which proves that a script computes its graph. */
#pragma once

#include "base/index.h"
#include "script/script.h"
#include "script/task.h"
#include "script/verify/function.h"

/* ---- compiled cells */

/* Which words of a value in memory a virtual processor reads or writes in a stage (part of a cell's program). */
typedef enum vpps_extent {
    /* the rows that the processor owns; if a stage's vertices are divided among processors: all rows of the processor's vertices */
    VPPS_EXTENT_OWN,
    VPPS_EXTENT_WHOLE, /* all rows of the value; every virtual processor of the group reads all of them */
    /* of each processor's partial sum of the value, the rows that the reading processor owns; the reader adds up the partial sums */
    VPPS_EXTENT_SHARES
} vpps_extent;

typedef struct vpps_stage_read {
    uint32_t value;
    uint8_t extent;
} vpps_stage_read;

typedef struct vpps_stage_info {
    uint32_t first, n; /* reads of the stage (part of the cell): cell->reads[first] to cell->reads[first + n - 1] */
    bool rows;         /* true: each virtual processor computes only some rows of the stage's values */
} vpps_stage_info;

/* A compiled cell, and a vertex (record of the graph) whose function it was proved to compute. The proof holds for all equal vertices. */
typedef struct vpps_checked_cell {
    const vpps_compiled_cell *c;
    uint32_t record; /* number of the vertex (record) for which the proof was made; VPPS_NONE: there is no proof yet */
    /* for each output, as bits: the inputs of the cell on which the output depends */
    uint64_t output_reads[VPPS_CELL_MOST];
    bool output_trained[VPPS_CELL_MOST]; /* for each output: whether it depends on trained parameters */
    /* For each output, as bits: the output itself, and the outputs that it depends on. Set only if gradients are requested. */
    uint64_t output_made_of[VPPS_CELL_MOST];
    /* for each input, and each lookup's table entry: outputs, as bits, on whose gradients the gradient for the input or entry depends */
    uint64_t into_input[VPPS_CELL_MOST], into_entry[VPPS_CELL_MOST];
    uint32_t input_rows[VPPS_CELL_MOST], input_cols[VPPS_CELL_MOST];
    vpps_stage_info *stages;
    vpps_stage_read *reads;
    uint32_t n_reads;
} vpps_checked_cell;

/* ---- blocks */

/* Kinds of tensors. A tensor is values in memory: item (vertex, list member) first + i has `words` words at offset + i * stride. */
typedef enum vpps_tensor_kind {
    VPPS_TENSOR_INITIAL, /* memory before the script: parameters at offsets below target->batch, else no values */
    VPPS_TENSOR_KEPT,
    VPPS_TENSOR_CONTRIBUTION,
    VPPS_TENSOR_CONSTANT,
    VPPS_TENSOR_GIVEN, /* words that the host writes between forward and backward: the loss, gradients of outputs */
    VPPS_TENSOR_ENTRY, /* summed gradients of a lookup table's entries */
    VPPS_TENSOR_SPENT  /* parameters that the optimizer's update has changed */
} vpps_tensor_kind;

typedef struct vpps_tensor {
    uint8_t kind;
    uint32_t offset, stride, words, items;
    uint32_t first; /* number of the tensor's first item (vertex or list member) */
    /* index: number of the value, contribution or table; bits of a CONSTANT; of a value that the host writes (GIVEN), number of the output,
     * or VPPS_NONE for the loss. share: number, in its group, of the processor that stores this partial sum. */
    uint32_t block, index, share;
    /* kind CONTRIBUTION: index in `taken` of the bit for the block's first vertex or list member */
    uint64_t first_bit;
} vpps_tensor;

typedef struct vpps_checked_block {
    const vpps_block *block;
    vpps_checked_cell *cell;
    vpps_block_view view;
    /* for each input of the cell, and each vertex (or list member): number of the output that it reads */
    uint32_t **sources;
    uint32_t **rows;       /* for each table lookup of the cell, and each vertex: number of the entry that is read */
    uint32_t first_output; /* output k of vertex p has the number first_output + k * n + p */
    /* for each value: number of its tensor; VPPS_NONE: the value is not in memory, or only during one pass (pass_record) */
    uint32_t *kept;
    /* for each value that is in memory only during one pass (forward, backward), and each vertex: number of its tensor; 0: not made yet */
    uint32_t **pass_record;
    /* for each input for which the current task computes a gradient (contribution): number of the gradient's first tensor */
    uint32_t *contributions;
    /* for each contribution (gradient for an input): index of its first bit in `taken`, which has a bit for each vertex or list member */
    uint64_t *contribution_bits;
    /* for each stage of the cell: index of its first bit in `ran`, which has a bit for each vertex of the block */
    uint64_t *stage_bits;
} vpps_checked_block;

/* A place in the memory pool, and the number of the tensor that must lie there. */
typedef struct vpps_location {
    uint32_t offset, tensor, words;
} vpps_location;

/* ---- the pool */

typedef struct vpps_word {
    uint32_t tensor;
    /* the word's last write: 1 + number of the writing virtual processor (0: none), and number of the task in its group's order */
    uint32_t writer, written;
    /* number of the set (vpps_reader_sets) of processors that have read the word since it was written */
    uint32_t readers;
} vpps_word;

/* A reader or writer of memory. `unit`: the number of a virtual processor, or n_vps + the number of a group that acts as a whole. `place`:
 * number of the task that reads or writes, in its group's order. */
typedef struct vpps_actor {
    uint32_t unit, group, place;
} vpps_actor;

typedef struct vpps_reader {
    uint32_t unit, place;
} vpps_reader;

/* For each word of memory, the checker needs the set of its readers (virtual processors and their tasks). Equal sets are stored once: all
 * words of a tensor have the same readers, so there are few sets. */
typedef struct vpps_reader_sets {
    vpps_reader *readers;
    uint32_t *first, n;
    vpps_index numbers;
    vpps_reader *scratch;
} vpps_reader_sets;

typedef struct vpps_term_of_loss {
    uint32_t output; /* number of the output; first member, because vpps_by_word sorts structs by their first word */
    vpps_node node;
    float factor;
    uint32_t given; /* if the host gives the gradient of the output `node`: the output's index in the request */
    bool taken;     /* whether `factor` is already a term in the sum that makes the output's gradient */
    bool added;     /* whether a task has added the output's value to the loss */
} vpps_term_of_loss;

typedef struct vpps_stream {
    /* script addresses of the next task of a group of virtual processors and of its end; number of tasks done */
    uint32_t at, end, place;
    bool ended, waiting, paused, normed, updated;
    uint32_t norm_place, loss_place;
} vpps_stream;

typedef struct vpps_checker {
    /* input of the check: the script, and the request for which it was made */
    const uint32_t *script;
    size_t words;
    const vpps_task_header *header;
    vpps_compiled_cell *const *cells;
    uint32_t n_cells;
    const vpps_target *target;
    const vpps_graph *g;
    const vpps_batch_request *request;
    const uint32_t *outputs, *gradients; /* pool offsets where the host reads requested outputs and gradients */
    const vpps_given_array *given;       /* offsets where the host writes gradients between forward and backward */
    bool training;
    uint32_t n_vps, n_groups, group_size;

    /* result of the check: OK, or a status whose message says why the script is refused */
    vpps_status status;
    char reason[384];
    bool running; /* true: a task is being executed, so that an error message names the task */
    uint32_t group, at;

    /* what the request needs of the graph; the arrays have an element for each record (vertex) */
    uint32_t n_records;
    uint8_t *needed;
    uint8_t *whole; /* whether the vertex's gradient is requested; if not, a sum in the loss is replaced by its terms */
    uint32_t *dropout; /* number of the vertex's first element under dropout, counted through all vertices */
    uint32_t *block_of, *position_of;
    vpps_term_of_loss *terms;
    uint32_t n_terms, n_added;

    /* expressions (formulas of values); compiled cells; blocks (vertices of one cell that one group of processors runs) */
    vpps_expressions expressions;
    vpps_checked_cell *checked;
    vpps_checked_block *blocks;
    uint32_t n_outputs;
    uint32_t *output_block; /* for each output: number of the block of vertices that computes it */
    uint8_t *asked;         /* for each output: whether the caller wants its gradient */
    /* for each output: whether it depends on a trained parameter or on an output whose gradient is requested */
    uint8_t *trainable;
    uint8_t *live; /* for each output: whether the loss depends on it */
    uint32_t *due; /* for each output: number of terms that must be summed up to its gradient */
    /* For each output: index of its first term of the loss in `terms`, which is sorted by output; n_outputs + 1 numbers. */
    uint32_t *first_term;
    vpps_tensor *tensors;
    uint32_t n_tensors;
    /* bit sets: ran: stages (cell parts) that vertices have run; taken: gradients for inputs (contributions) that were added to a sum */
    uint64_t *ran, *taken;
    uint64_t n_ran, n_taken;
    uint32_t **due_entries; /* for each lookup table's entry: number of terms of its gradient not yet summed up */
    uint32_t *table_tensors;
    bool *touched; /* for each parameter: whether tasks of the kind OUTER compute its gradient */

    /* the abstract machine that executes the script: a stream of tasks for each group of processors */
    vpps_stream *streams;
    bool goes_on; /* whether the host has ended the pause between forward and backward */
    /* For each two groups of virtual processors g and h: number of h's tasks that barriers order before g's next task. */
    uint32_t *known;
    /* for each barrier and group of processors: number of tasks that the group had run before the barrier's last signal */
    uint32_t *carried;
    /* for each barrier: signals: number of signals so far; totals: number in the whole script */
    uint32_t *signals, *totals;
    /* for each group of processors and vertex, a bit: whether the group's gradients of parameters include the vertex */
    uint64_t *outer_done;
    /* for each entry of each table: whether an earlier part of the batch has summed up its gradient */
    uint8_t **entries_made;
    /* for each parameter and group of processors: 1 + number of the group's latest task that reads the parameter */
    uint32_t *matrix_read;
    uint8_t *matrix_spent; /* for each parameter: whether the optimizer's update has already changed it */
    vpps_word *pool;
    uint32_t pool_words;
    vpps_reader_sets sets;
    /* The latest word that vpps_check_read checked: its state before, its readers after (result). An equal word needs no check. */
    struct {
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

/* Refuses the script for the given reason, unless it is refused already. */
void vpps_check_record(vpps_checker *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Refuses the script; has the value false, so that a checking function may `return VPPS_REFUSE(...)`. */
#define VPPS_REFUSE(...) (vpps_check_record(__VA_ARGS__), false)
/* Returns zeroed memory that lives as long as the checker; NULL: out of memory, and c->status is MEMORY. */
void *vpps_check_zeros(vpps_checker *c, uint64_t n, size_t bytes);
/* Returns the n words of the script at an address; NULL: the script ends before, and is refused with a message about `what`. */
const uint32_t *vpps_check_words(vpps_checker *c, uint64_t address, uint64_t n, const char *what);

static inline bool vpps_bit(const uint64_t *bits, uint64_t i) { return bits[i / 64] >> (i % 64) & 1; }
static inline void vpps_set_bit(uint64_t *bits, uint64_t i) { bits[i / 64] |= (uint64_t)1 << (i % 64); }
static inline uint64_t vpps_bit_words(uint64_t n) { return n / 64 + 1; }

/* ---- demand.c */

/* Finds the vertex (record) of which node x is an output, and the output's number. Returns false if there is no such node. */
bool vpps_check_resolve(const vpps_graph *g, vpps_node x, uint32_t *record, uint32_t *node);
/* The inputs of a vertex (record of the graph): nodes, indices, numbers of list members. The arguments of an op count as one list. */
typedef struct vpps_record_view {
    const vpps_cell_data *cell; /* the cell that is applied; NULL: the vertex is an op */
    const vpps_op_node *op;
    const vpps_signature *signature; /* the op's signature */
    /* args: arguments of an op, or nodes that a cell's single inputs read; listed: nodes that list inputs read */
    const uint32_t *args, *listed, *indices;
    const uint32_t *members;
    uint32_t n_args;
    uint64_t n_listed; /* number of nodes that the vertex reads through list inputs */
} vpps_record_view;
vpps_record_view vpps_check_view(const vpps_graph *g, uint32_t record);
/* Returns the signature (op and shape) of a node. */
const vpps_signature *vpps_check_signature(const vpps_graph *g, vpps_node x);
/* Finds what the request needs of the graph: the vertices, the terms of the loss, the number of each vertex's first dropout element. */
bool vpps_check_demands(vpps_checker *c);
/* Finds which outputs have gradients, and how many terms each gradient sums up. Call it when the blocks are known. */
bool vpps_check_gradients(vpps_checker *c);
/* Returns which outputs of vertex p of a block the loss depends on, as bits. */
uint64_t vpps_check_live(const vpps_checker *c, const vpps_checked_block *b, uint32_t p);

/* ---- proof.c, program.c */

/* Proves that a compiled cell computes what a vertex (record) of the graph asks for. */
bool vpps_check_cell(vpps_checker *c, vpps_checked_cell *cell, uint32_t record);
/* Returns whether vertices a and b (records of the graph) compute the same function. */
bool vpps_check_alike(const vpps_graph *g, uint32_t a, uint32_t b);

/* Returns whether the cell computes output k. A cell compiled for batches in which nobody reads the output does not compute it. */
static inline bool vpps_offers(const vpps_compiled_cell *c, uint32_t k) {
    return c->outputs[k].value != VPPS_NONE && (c->needs.read_out >> k & 1);
}

/* ---- records.c */

bool vpps_check_arrays(vpps_checker *c); /* checks vertices' inputs, words and data in the script against the graph */
bool vpps_check_tables(vpps_checker *c);

/* ---- blocks.c */

/* Refuses the script with a message that names vertex p of a block; returns false. */
bool vpps_refuse_vertex(vpps_checker *c, const vpps_checked_block *b, uint32_t p, const char *what);
bool vpps_check_blocks(vpps_checker *c);
/* Returns where an output lies in the pool. */
vpps_location vpps_check_location(const vpps_checker *c, uint32_t output);
/* Returns the number of the output that node x is; VPPS_NONE: no block of vertices has it, and the script is refused. */
uint32_t vpps_check_output(vpps_checker *c, vpps_node x);
/* Returns the block of vertices that computes an output. *k: the output's number in its vertex; *position: the vertex's in the block. */
uint32_t vpps_check_block_of(const vpps_checker *c, uint32_t output, uint32_t *k, uint32_t *position);
/* Adds tensor t at this offset and returns its number; VPPS_NONE: words are outside the batch's memory, and the script is refused. */
uint32_t vpps_check_add_tensor(vpps_checker *c, uint64_t offset, vpps_tensor t);
/* Adds a tensor (a place in memory) for value v of n items (vertices or list members) of a block, from item `first` on; if each virtual
 * processor stores a partial sum, a tensor for each. `record`: offset of the first item's memory. False: the script is refused. */
bool vpps_check_add_kept(vpps_checker *c, const vpps_checked_block *b, uint32_t v, uint32_t record, uint32_t first,
                         uint32_t n);

/* ---- words.c */

bool vpps_check_open_pool(vpps_checker *c);
void vpps_check_close_pool(vpps_checker *c);
/* Makes `unit` (number of a virtual processor, or n_vps + number of a group) the reader and writer of all memory that is checked next. */
void vpps_check_act(vpps_checker *c, uint32_t unit);
/* Returns the number, among all virtual processors, of processor number `member` of the current group. vpps_check_act_as makes this
 * processor the reader and writer of all memory that is checked next. */
static inline uint32_t vpps_check_vp(const vpps_checker *c, uint32_t member) {
    return c->group * c->group_size + member;
}
static inline void vpps_check_act_as(vpps_checker *c, uint32_t member) { vpps_check_act(c, vpps_check_vp(c, member)); }
/* Lets the current processor or group (set by vpps_check_act) read n words: checks that the words hold the tensor, and that a barrier comes
 * between their writing and this read. */
bool vpps_check_read(vpps_checker *c, uint32_t offset, uint32_t n, uint32_t tensor);
/* Lets the current processor or group (set by vpps_check_act) write n words of an item of the tensor: checks that barriers order all
 * earlier accesses before this write. */
bool vpps_check_write(vpps_checker *c, uint32_t offset, uint32_t n, uint32_t tensor, uint32_t item);
/* Describes in words, for messages, which value of the tensor lies at this offset in the pool of memory; writes the words to `text`. */
void vpps_check_describe(const vpps_checker *c, uint32_t tensor, uint32_t offset, char *text, size_t size);

/* ---- tasks.c, parameters.c */

bool vpps_check_stage(vpps_checker *c, const vpps_task *t);
bool vpps_check_constants(vpps_checker *c, uint32_t address, uint32_t n);
/* Once all groups of virtual processors pause between forward and backward: lets the host read outputs and write gradients. */
bool vpps_check_pause(vpps_checker *c);
/* Returns where the value of an item (vertex or list member) of a block lies in the pool. */
vpps_location vpps_check_operand(const vpps_checker *c, const vpps_checked_block *b, uint32_t value, uint32_t item);
/* Marks a term of a gradient (the contribution at this offset) as used in the gradient of an output or, if `output` is VPPS_NONE, of a
 * table's entry. The term must belong to this gradient and be unused. Returns its tensor; VPPS_NONE: the script is refused. */
uint32_t vpps_check_take(vpps_checker *c, uint32_t offset, uint32_t words, uint32_t output, uint32_t table,
                         uint32_t row);
/* Marks a term that is stored as two factors as used in the gradient of `output`. pair: the factors' offsets. */
bool vpps_check_take_pair(vpps_checker *c, const uint32_t *pair, uint32_t words, uint32_t output);
bool vpps_check_outer(vpps_checker *c, uint32_t block, uint32_t first, uint32_t n);
bool vpps_check_entries(vpps_checker *c, uint32_t table, uint32_t address);
bool vpps_check_loss(vpps_checker *c, uint32_t address, uint32_t n);
bool vpps_check_norm(vpps_checker *c);
bool vpps_check_update(vpps_checker *c);
/* checks that each output that the request asks for lies at the offset where the host reads it */
bool vpps_check_outputs(vpps_checker *c);
/* checks, after the script's last task, that no group of processors has left out any work */
bool vpps_check_end(vpps_checker *c);

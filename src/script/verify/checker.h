/* checker.h - the state of vpps_verify_batch (verify.h), which proves that a batch's program computes the graph. */
#pragma once

#include "base/index.h"
#include "script/script.h"
#include "script/task.h"
#include "script/verify/function.h"

/* ---- compiled cells */

/* Which words of a value in memory a thread or CTA reads or writes in a stage (part of a cell's program). */
typedef enum vpps_extent {
    /* if CTAs or threads divide a value's rows: the rows that the reader owns; if they divide the vertices: all rows */
    VPPS_EXTENT_OWN,
    VPPS_EXTENT_WHOLE, /* all rows of the value, whichever virtual processor (CTA or thread) computed them */
    /* of each processor's partial sum of the value, the rows that the reading processor owns; the reader adds up the partial sums */
    VPPS_EXTENT_SHARES
} vpps_extent;

typedef struct vpps_stage_read {
    uint32_t value;
    uint8_t extent;
} vpps_stage_read;

typedef struct vpps_stage_info {
    uint32_t first, n; /* reads of the stage (part of the cell): cell->reads[first] to cell->reads[first + n - 1] */
    bool rows;         /* whether CTAs or CPU threads divide the rows of values; if not, they divide the vertices */
} vpps_stage_info;

/* A compiled cell, and a vertex (record of the graph) whose function it was proved to compute. The proof holds for all equal vertices. */
typedef struct vpps_checked_cell {
    const vpps_compiled_cell *c;
    uint32_t record; /* number of the vertex for which the cell's code was proved right; VPPS_NONE: none so far */
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

/* Kinds of tensors. A tensor is values in memory: item (vertex, or node of a list) first + i has `words` words at offset + i * stride. */
typedef enum vpps_tensor_kind {
    VPPS_TENSOR_INITIAL, /* memory that no task has written: parameters (below offset target->batch), or undefined */
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
    uint32_t first; /* number of the tensor's first item (vertex, or node that a list input reads) */
    /* block: the vertices of one cell to which the tensor belongs. index: the tensor's number among the cell's values
     * or gradients for inputs; of a constant: its bits; of a gradient from the host: number of the output (VPPS_NONE:
     * the loss); of table entries: the table. share: number of the partial sum, if CTAs or threads store such. */
    uint32_t block, index, share;
    /* CONTRIBUTION (gradient for an input): first of its bits in `taken`, which marks gradients that were added up */
    uint64_t first_bit;
} vpps_tensor;

typedef struct vpps_checked_block {
    const vpps_block *block;
    vpps_checked_cell *cell;
    vpps_block_view view;
    /* for each input of the cell, and each vertex (or node of a list): number of the output that it reads */
    uint32_t **sources;
    uint32_t **rows;       /* for each table lookup of the cell, and each vertex: number of the entry that is read */
    uint32_t first_output; /* output k of vertex p has the number first_output + k * n + p */
    /* for each value: number of its tensor; VPPS_NONE: the value is not in memory, or only during one pass (pass_record) */
    uint32_t *kept;
    /* for each value that is in memory only during one pass (forward, backward), and each vertex: number of its tensor; 0: not made yet */
    uint32_t **pass_record;
    /* for each gradient for an input that the current task computes: number of its tensor or, of several partial sums, of the first one's tensor */
    uint32_t *contributions;
    /* for each gradient for an input of the cell: index in `taken` of its first bit. A vertex's bit is set once the
     * gradient that this vertex computes for the input has been added to the gradient of the output that it reads. */
    uint64_t *contribution_bits;
    /* for each stage (part of the cell): where its bits begin in `ran`; bit p is set once vertex p has run the stage */
    uint64_t *stage_bits;
} vpps_checked_block;

/* A place in the memory pool, and the number of the tensor that must lie there. */
typedef struct vpps_location {
    uint32_t offset, tensor, words;
} vpps_location;

/* ---- the pool */

typedef struct vpps_word {
    uint32_t tensor;
    /* last write: 1 + number of the thread or CTA (0: none); number of its task in the list of tasks of its group */
    uint32_t writer, written;
    /* number of the set (vpps_reader_sets) of processors that have read the word since it was written */
    uint32_t readers;
} vpps_word;

/* A reader or writer of memory. `unit`: number of a thread or CTA, or n_vps + number of a group of them that acts as a
 * whole. `place`: number of the task that reads or writes, in its group's order. */
typedef struct vpps_actor {
    uint32_t unit, group, place;
} vpps_actor;

typedef struct vpps_reader {
    uint32_t unit, place;
} vpps_reader;

/* For each word of memory, the checker needs the set of its readers (threads or CTAs and their tasks). Equal sets are
 * stored once: all words of a tensor have the same readers, so there are few sets. */
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
    uint32_t given; /* if the host gives the gradient of `node`: index of `node` in request->outputs */
    bool taken;     /* whether a task has added `factor` (the loss's derivative by the output) to its gradient */
    bool added;     /* whether a task has added the output's value to the loss */
} vpps_term_of_loss;

typedef struct vpps_stream {
    /* at, end: where in the script (the batch's program) the next task begins, the last one ends; place: tasks done */
    uint32_t at, end, place;
    bool ended, waiting, paused, normed, updated;
    uint32_t norm_place, loss_place;
} vpps_stream;

typedef struct vpps_checker {
    /* input: the script (a batch's program of 32-bit words) to check, and the caller's request that it must fulfil */
    const uint32_t *script;
    size_t words;
    const vpps_task_header *header;
    vpps_compiled_cell *const *cells;
    uint32_t n_cells;
    const vpps_target *target;
    const vpps_graph *g;
    const vpps_batch_request *request;
    const uint32_t *outputs, *gradients; /* memory offsets where the host reads requested outputs and gradients */
    const vpps_given_array *given;       /* offsets where the host writes gradients between forward and backward */
    bool training;
    uint32_t n_vps, n_groups, group_size;

    /* result of the check: OK, or a status whose message says why the batch's program is refused */
    vpps_status status;
    char reason[384];
    bool running; /* true: a task is being executed, so that an error message names the task */
    uint32_t group, at;

    uint32_t n_records; /* number of the graph's vertices */
    uint8_t *needed;    /* for each vertex: whether what the caller wants (outputs, gradients, a step) needs it */
    uint8_t *whole;     /* by vertex: 1: its gradient is requested; 0: if a sum in the loss, its summands replace it */
    uint32_t *dropout;  /* number of the vertex's first element under dropout, counted through all vertices */
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

    /* the abstract machine that executes the batch's program: a stream of tasks for each group of processors */
    vpps_stream *streams;
    bool goes_on; /* whether the host has ended the pause between forward and backward */
    /* [g * n_groups + h]: how many tasks of group h (CTAs or threads), by barriers, end before group g's next task */
    uint32_t *known;
    /* for each barrier and group of processors: number of tasks that the group had run before the barrier's last signal */
    uint32_t *carried;
    /* for each barrier: signals: number of signals so far; totals: number in the batch's whole program */
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
    /* The latest checked read: `word`: state of the memory word before; `result`: set of its readers after. The next
     * word mostly has the same state, and then gets the same result without a check. */
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

/* Refuses the script (the batch's program that is checked) with this message; keeps an earlier error. */
void vpps_check_record(vpps_checker *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Refuses the batch's program; has the value false, so that a checking function may `return VPPS_REFUSE(...)`. */
#define VPPS_REFUSE(...) (vpps_check_record(__VA_ARGS__), false)
/* Returns zeroed memory that lives as long as the checker; NULL: out of memory, and c->status is MEMORY. */
void *vpps_check_zeros(vpps_checker *c, uint64_t n, size_t bytes);
/* Returns words [address, address + n) of the script (a batch's program); NULL: too short: refused, naming `what`. */
const uint32_t *vpps_check_words(vpps_checker *c, uint64_t address, uint64_t n, const char *what);

static inline bool vpps_bit(const uint64_t *bits, uint64_t i) { return bits[i / 64] >> (i % 64) & 1; }
static inline void vpps_set_bit(uint64_t *bits, uint64_t i) { bits[i / 64] |= (uint64_t)1 << (i % 64); }
static inline uint64_t vpps_bit_words(uint64_t n) { return n / 64 + 1; }

/* ---- demand.c */

/* Finds the vertex (record) that computes x, and the number of x in the vertex's cell (0: an op). False: no node x. */
bool vpps_check_resolve(const vpps_graph *g, vpps_node x, uint32_t *record, uint32_t *node);
/* A vertex of the graph (a cell applied once, or a single op), and the nodes and indices that it reads. members: how
 * many nodes each list input reads; an op's arguments count as one list. */
typedef struct vpps_record_view {
    const vpps_cell_data *cell; /* the cell that is applied; NULL: the vertex is an op */
    const vpps_op_node *op;
    const vpps_signature *signature; /* the op's signature */
    /* args: arguments of an op, or the nodes that a cell reads through inputs of exactly one node; listed: the nodes that it reads through
     * list inputs (of any number of nodes); indices: the integers given to the vertex, such as table rows */
    const uint32_t *args, *listed, *indices;
    const uint32_t *members;
    uint32_t n_args;
    uint64_t n_listed; /* length of `listed`: nodes read through all list inputs, each of which reads any number */
} vpps_record_view;
vpps_record_view vpps_check_view(const vpps_graph *g, uint32_t record);
/* Returns the signature (op and shape) of a node. */
const vpps_signature *vpps_check_signature(const vpps_graph *g, vpps_node x);
/* Finds what the caller's request needs: vertices, terms of the loss, each vertex's random numbers for dropout. */
bool vpps_check_demands(vpps_checker *c);
/* Finds which outputs of vertices get gradients, and how many terms each sums up. Call it after vpps_check_arrays. */
bool vpps_check_gradients(vpps_checker *c);
/* Returns, as bits, which outputs of vertex p of the block (vertices of one cell, from 0 on) the loss depends on. */
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

bool vpps_check_arrays(vpps_checker *c); /* compares inputs, table rows and integers of vertices with the graph's */
bool vpps_check_tables(vpps_checker *c);

/* ---- blocks.c */

/* Refuses the batch's program with a message that names vertex p of a block (vertices of one cell); returns false. */
bool vpps_refuse_vertex(vpps_checker *c, const vpps_checked_block *b, uint32_t p, const char *what);
bool vpps_check_blocks(vpps_checker *c);
/* Returns where in the pool (the batch's memory) an output lies. `output`: a number from vpps_check_output. */
vpps_location vpps_check_location(const vpps_checker *c, uint32_t output);
/* Returns x's number among all vertices' outputs. VPPS_NONE: the batch's program does not compute x, and is refused. */
uint32_t vpps_check_output(vpps_checker *c, vpps_node x);
/* Returns the block of vertices that computes an output. *k: the output's number in its vertex; *position: the vertex's in the block. */
uint32_t vpps_check_block_of(const vpps_checker *c, uint32_t output, uint32_t *k, uint32_t *position);
/* Adds tensor t, whose values lie from `offset` on; returns its number; VPPS_NONE: outside the batch's memory. */
uint32_t vpps_check_add_tensor(vpps_checker *c, uint64_t offset, vpps_tensor t);
/* Adds a tensor (values in memory) to c->tensors: value v of the cell, for n vertices (or nodes of lists) of block b from `first` on.
 * `record`: offset of what the first one keeps for later tasks. If CTAs or threads store partial sums, adds one for each. */
bool vpps_check_add_kept(vpps_checker *c, const vpps_checked_block *b, uint32_t v, uint32_t record, uint32_t first,
                         uint32_t n);

/* ---- words.c */

bool vpps_check_open_pool(vpps_checker *c);
void vpps_check_close_pool(vpps_checker *c);
/* Makes `unit` (number of a thread or CTA, or n_vps + that of a group) reader and writer of all memory checked next. */
void vpps_check_act(vpps_checker *c, uint32_t unit);
/* Returns the number, counted through all groups, of virtual processor (CTA or thread) `member` of the current task's group. */
static inline uint32_t vpps_check_vp(const vpps_checker *c, uint32_t member) {
    return c->group * c->group_size + member;
}
static inline void vpps_check_act_as(vpps_checker *c, uint32_t member) { vpps_check_act(c, vpps_check_vp(c, member)); }
/* Lets the current processor (thread, CTA) or group of them (set by vpps_check_act) read n words: checks that the words
 * hold the tensor, and that a barrier comes between their writing and this read. */
bool vpps_check_read(vpps_checker *c, uint32_t offset, uint32_t n, uint32_t tensor);
/* Notes that n words now hold value `item` of a tensor (it has one per vertex, or per node that a list input reads).
 * Checks that barriers order earlier accesses before this write by the CTA, thread or group set by vpps_check_act. */
bool vpps_check_write(vpps_checker *c, uint32_t offset, uint32_t n, uint32_t tensor, uint32_t item);
/* Describes in words, for messages, which value of the tensor lies at this offset in the pool of memory; writes the words to `text`. */
void vpps_check_describe(const vpps_checker *c, uint32_t tensor, uint32_t offset, char *text, size_t size);

/* ---- tasks.c, parameters.c */

bool vpps_check_stage(vpps_checker *c, const vpps_task *t);
bool vpps_check_constants(vpps_checker *c, uint32_t address, uint32_t n);
/* Once all groups of threads or CTAs pause after forward: lets the host read outputs and write gradients. */
bool vpps_check_pause(vpps_checker *c);
/* Returns where in the batch's memory a cell's value lies for `item`, a vertex or a node that a vertex reads through a list input. */
vpps_location vpps_check_operand(const vpps_checker *c, const vpps_checked_block *b, uint32_t value, uint32_t item);
/* Marks a gradient's term, which lies at `offset`, as used. The gradient is of output number `output` or, if VPPS_NONE,
 * of a row of a table. Returns the term's number in c->tensors; VPPS_NONE: another gradient's term, or used twice. */
uint32_t vpps_check_take(vpps_checker *c, uint32_t offset, uint32_t words, uint32_t output, uint32_t table,
                         uint32_t row);
/* Marks a term of an output's gradient as used: the product of the scalar at pair[0] and the vector at pair[1]. */
bool vpps_check_take_pair(vpps_checker *c, const uint32_t *pair, uint32_t words, uint32_t output);
bool vpps_check_outer(vpps_checker *c, uint32_t block, uint32_t first, uint32_t n);
bool vpps_check_entries(vpps_checker *c, uint32_t table, uint32_t address);
bool vpps_check_loss(vpps_checker *c, uint32_t address, uint32_t n);
bool vpps_check_norm(vpps_checker *c);
bool vpps_check_update(vpps_checker *c);
/* checks that each output that the request asks for lies at the offset where the host reads it */
bool vpps_check_outputs(vpps_checker *c);
/* checks, after the batch's last task, that no group of threads or CTAs has left out any work */
bool vpps_check_end(vpps_checker *c);

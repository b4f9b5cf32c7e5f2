/* cpu.h - the CPU device: virtual processors (VPs) are threads, each with its own rows of every matrix.
 *
 *   device.c   memory, launching, parameters to and from the model
 *   threads.c  waiting and waking
 *   meetings.c barriers of many VPs
 *   pages.c    memory in pages
 *   settle.c   binds VPs, and their memory, to CPUs
 *   check.c    checks scripts before they run
 *   vp.c       a VP's loop over its tasks
 *   stage.c      stages of cells, tile by tile, for the vertices whose condition holds
 *   tile.c       how tiles are laid out: tile.h
 *   in_place.c   removes needless copies into tiles
 *   steps.c, tile_products.c  the steps of a stage's program over a tile
 *   blocks.c   matrices as blocks of rows
 *   outer.c, updates.c  parameters: their gradients, norms and updates
 *   packs.c    operands of products in bf16
 *   gradients.c  gradients that are accumulated over launches
 *   copies.c   transposed copies of matrices, for backward
 *   units.c, amx.c, avx512_*.c  the processor's instructions for products
 *   measure.c, probe.c, choices.c, tuning.c  measure them, store the times, choose by them, and apply the choice
 *   groups.c   how many groups of VPs suit a batch
 *   share.c    exchange of gradients with other processes
 *   entries.c  lookup tables that are sharded over processes
 *   failure.c  how a failed batch ends */
#pragma once

#include "cell/program.h"
#include "runtime/cpu/choices.h"
#include "runtime/cpu/kernels.h"
#include "runtime/device.h"
#include "runtime/layout.h"
#include "runtime/log.h"
#include "runtime/places.h"
#include "runtime/share.h"
#include "script/script.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct vpps_cpu_precision {
    vpps_precision precision; /* precision of products, never AUTO */
    uint32_t parts;           /* bf16 numbers per operand: 2 in bf16x3, 1 in bf16; 0 in fp32 */
    vpps_bf16_unit unit;      /* instructions of the products; in fp32 only the name is set */
} vpps_cpu_precision;

/* A block is at most VPPS_BLOCK_ROWS rows of a matrix, owned by one VP: stored by columns and padded with zero rows to
 * a multiple of 16, so that a product reads memory in order. Element (r, k) is at k * ld + r - first_row. */
enum { VPPS_BLOCK_ROWS = 64, VPPS_ROW_UNIT = 16 };

/* Matrices of at least so many rows are dealt by rows to groups of any size, even if some VPs of a large group get
 * none: dealing a level's few vertices instead would keep still fewer VPs busy. */
enum { VPPS_ENOUGH_ROWS = 128 };

typedef struct vpps_cpu vpps_cpu;
typedef struct vpps_vp vpps_vp;
typedef struct vpps_entries vpps_entries;

typedef struct vpps_matrix_block {
    uint32_t first_row, rows;
    size_t ld;
    float *values, *gradient, *states[VPPS_MAX_STATES];
    uint32_t *packed; /* bf16 copy of the values, in pairs; NULL in fp32 */
} vpps_matrix_block;

typedef struct vpps_cpu_matrix {
    vpps_matrix_block *blocks; /* blocks of rows, in order; NULL: the parameter is no matrix */
    uint32_t n_blocks;
    uint32_t *first_block; /* indexed by VP (n_vps + 1 entries): the number of the VP's first block */
    /* Indexed by VP: a transposed copy of its rows, in panels of 64 columns that are stored row by row. Element (r, k)
     * is at k / 64 * 64 * rows + r * 64 + k % 64. */
    float **transposed;
    uint32_t wanted;     /* number of the latest launch that multiplies with the copies; its update renews them */
    bool fresh;          /* the copies agree with the present values */
    uint32_t **packed_t; /* transposed copies in bf16: rows are the matrix's columns, in pairs */
} vpps_cpu_matrix;

/* Blocks of rows of a matrix that one VP, or consecutive VPs, own. */
typedef struct vpps_blocks {
    const vpps_matrix_block *blocks;
    uint32_t n;
} vpps_blocks;

/* A range of adjacent floats. */
typedef struct vpps_run {
    float *at;
    size_t n;
} vpps_run;

/* Identifies packed bf16 vectors: the tile for which they were packed, and where they lie. */
typedef struct vpps_packed {
    uint64_t tile;
    size_t at;
} vpps_packed;

/* A barrier (or VPPS_NO_BARRIER) and the number of signals that it gets. */
typedef struct vpps_passed {
    uint32_t barrier, signals;
} vpps_passed;

struct vpps_vp {
    vpps_cpu *cpu;
    uint32_t index;
    pthread_t thread;
    bool has_thread;
    float *scratch; /* memory for the values of a tile (vertices processed together) */
    size_t scratch_floats;
    const float **pointers; /* list of addresses: of a product's vectors, or of a list's members */
    uint32_t *live;         /* vertices of the current task whose condition holds */
    uint32_t *d_at;         /* indexed by the cell's outer products: where their vectors dy begin in `pointers` */
    vpps_product_term *terms;
    vpps_bf16_term *bf16_terms;
    double *sums;      /* squared norms of the two values of each outer product */
    uint64_t tile;     /* number of the current tile, counted from 1 */
    uint32_t *vectors; /* the tile's vectors in bf16 */
    size_t vector_words, vector_capacity;
    vpps_packed *packed; /* packed vectors, indexed by the keys of vpps_pack_vectors */
    uint32_t *
        touched; /* indexed by parameter: number of the accumulated sum (cpu->sum.number) that the VP's gradient is of */
    uint32_t *by_update; /* indexed by parameter: number of the launch whose update computes its gradient */
    /* For parameters whose gradient the update computes: where the gradient's vectors x begin in `copies`, or NO_COPY. */
    size_t *copy_of;
    float *copies; /* copies of vectors x that the update itself changes */
    size_t n_copies;
    uint32_t copied;       /* number of the launch that `copies` belongs to */
    uint32_t shared;       /* number of the launch whose gradients are summed over all processes */
    uint32_t met[2];       /* barriers of its group, and of all VPs, that it has signalled in this launch */
    vpps_passed passed[2]; /* latest barriers of its group, and of all VPs, that it skipped without waiting */
    atomic_uint tasks;     /* number of tasks that the VP has run in all launches */
};

typedef struct vpps_counter {
    _Alignas(64) atomic_uint value; /* aligned to a cache line, since VPs spin on it */
    atomic_uint sleepers;           /* number of threads that sleep until the value changes */
} vpps_counter;

/* Barriers as trees of counters (meetings.c): nodes, and one gate for each leaf. */
typedef struct vpps_meetings {
    vpps_counter *all, *all_gates, *group, *group_gates; /* n_counters each; a group's lie at the indices of its VPs */
    vpps_counter *finish; /* nodes of the barrier at the end of a launch; they count over all launches */
    size_t n_counters;
    bool ordered;      /* at every barrier of the script, the VPs that signal it also wait for it right afterwards */
    bool taken;        /* barriers are trees; otherwise they are plain counters */
    uint32_t *signals; /* indexed by barrier: the signals that it gets */
} vpps_meetings;

/* The batch in flight. */
typedef struct vpps_cpu_batch {
    const uint32_t *script;
    vpps_task_header header;
    vpps_block_view *views;
    vpps_step_part part;     /* part of a training step that the launch runs */
    vpps_half half;          /* half of the batch that the launch runs */
    uint64_t *updates;       /* indexed by parameter: optimiser steps made so far */
    float (*corrections)[2]; /* indexed by parameter: bias corrections of the optimiser in this batch */
    /* Indexed by matrix: outer products of the batch that add to its gradient. If there is only 1, the update may compute the gradient. */
    uint32_t *uses;
    uint64_t *vectors; /* by matrix: vectors that the batch multiplies with its transpose in large tasks */
    /* Gradients of table entries that the tasks NORM and UPDATE use: first this process's, after the exchange those of all processes. */
    vpps_row_segment *segments;
    uint32_t n_segments;
    uint64_t start_ns;
    uint64_t end_ns; /* time at which the last VP was done */
    double loss;
    atomic_bool failed; /* set by the first VP that fails; all others then stop */
    vpps_outcome outcome;
} vpps_cpu_batch;

/* Gradients that are accumulated over launches until an update. */
typedef struct vpps_cpu_sum {
    uint32_t number;     /* the first launch of each sum increments it */
    bool open;           /* a sum is under way */
    bool untaken;        /* the latest launch's loss and table gradients are still to be added to `loss` and `rows` */
    double loss;         /* loss of the accumulated launches */
    vpps_row_sums *rows; /* accumulated gradients of table entries */
} vpps_cpu_sum;

struct vpps_cpu {
    vpps_device device;
    const vpps_model *model;
    vpps_options options;
    const vpps_cpu_units *units;
    const struct vpps_probe *probe; /* measured times of products; NULL: nothing was measured */
    vpps_cpu_choice choice;
    const vpps_kernels *kernels; /* arithmetic for the chosen instruction set */
    vpps_cpu_precision precision;
    bool caller_works;
    uint32_t n_vps, n_states;
    uint64_t watchdog_ns, spin_ns; /* spin_ns: a waiter spins so long before it sleeps */
    vpps_plan plan;
    vpps_task_plan machine;
    vpps_rows gradients; /* range of the vectors' gradients in the pool */
    float *pool;         /* address of the pool's word 0; memory begins at word plan.sharded */
    float *pool_memory;
    size_t pool_bytes;
    vpps_vp *vps;
    vpps_places places;        /* CPUs that this process may use */
    uint32_t *chosen;          /* indexed by VP: its CPU in `places` */
    vpps_hold hold;            /* how tightly VPs are bound to these CPUs */
    vpps_cpu_matrix *matrices; /* indexed by parameter: its blocks, if it is a matrix */
    float *matrix_memory;      /* values, gradients, states and transposed copies; each VP's are adjacent */
    size_t matrix_bytes;
    uint32_t *pack_memory; /* weights in bf16; NULL in fp32 */
    size_t pack_bytes;
    vpps_counter *counters; /* indexed by barrier: the number of signals so far */
    size_t n_counters;
    vpps_meetings meetings;
    double *norms;  /* indexed by VP: its sum of squared gradients */
    double squares; /* sum of squared gradients of sharded tables, over all processes */

    vpps_cpu_batch batch;
    vpps_cpu_sum sum;
    vpps_share *share; /* exchange of gradients with other processes; NULL: there is only one process */
    /* Counters, over all batches, of VPs that have come to an exchange of gradients, and of finished exchanges. */
    vpps_counter arrived, released;
    uint32_t shared_batches;
    vpps_entries *entries; /* fetches entries of sharded lookup tables; NULL: tables are not sharded */
    uint32_t launch;       /* number of launches so far */
    pthread_mutex_t failure_lock;

    /* members for starting and finishing: workers wait until `epoch` changes, the caller waits for `done` */
    vpps_counter epoch;
    vpps_counter done; /* number of launches that all VPs have finished */
    uint32_t wanted;   /* number of launches that were started */
    atomic_bool quit;
};

/* Checks that the script is made for this device and that its parts lie inside it. Fails with SCRIPT. */
vpps_status vpps_check_script(const vpps_cpu *cpu, const vpps_batch *batch);
/* Checks that a block's arrays lie inside the script, and its records inside the pool. Fails with SCRIPT. */
vpps_status vpps_check_block(const vpps_task_header *h, const vpps_block_view *view, uint32_t number);

/* Checks the group's task at word `at`. The group's tasks end at `end`, with an END. Returns false after failing the batch with SCRIPT. */
bool vpps_check_task(vpps_vp *vp, uint32_t at, uint32_t end, uint32_t group);

/* Prepares a launch up to the start of the VPs: checks the batch's script, and lets them run it. Fails with SCRIPT, MEMORY. */
vpps_status vpps_cpu_prepare(vpps_cpu *cpu, const vpps_batch *batch);

/* Runs the VP's share of a task that vpps_check_task has accepted. Returns false after the VP's last task. */
bool vpps_vp_task(vpps_vp *vp, uint32_t at, const vpps_task *task);

/* Runs the VP's tasks of the script. A task that is unknown, cut short or refers to missing things ends the batch with
 * SCRIPT; a wait longer than the watchdog's time ends it with STALL. */
void vpps_vp_run(vpps_vp *vp);

/* Returns the vertices of a STAGE task that a VP processes. */
vpps_rows vpps_stage_part(const vpps_cpu *cpu, uint32_t vp, const vpps_task *task);
/* Runs the VP's share of a STAGE task. */
void vpps_vp_stage(vpps_vp *vp, uint32_t address, const vpps_task *task);

/* ---- threads.c */

/* Waits, first spinning, then asleep, until the counter's value is at least `least` (modulo 2^32). Ends early if the batch has failed (and
 * until_failure), or after limit_ns if that is not 0; time in which the process was stopped does not count. */
typedef enum vpps_wait_end { VPPS_WAIT_REACHED, VPPS_WAIT_FAILED, VPPS_WAIT_TIMEOUT } vpps_wait_end;
vpps_wait_end vpps_wait_for(vpps_cpu *cpu, vpps_counter *counter, uint32_t least, uint64_t limit_ns,
                            bool until_failure);

/* Wakes all threads that sleep on the counter. To be called after a sequentially consistent change of its value. */
void vpps_wake(vpps_counter *counter);

/* ---- meetings.c */

/* NEIGHBOURS: VPs that add to one node of a tree. LEAST_TREE: number of VPs from which a tree costs less than one counter. The cost is the
 * number of consecutive cache-line transfers: n - 1 for a counter; 8 + n / 8, and those of a gate, for a tree. */
enum { VPPS_NEIGHBOURS = 8, VPPS_LEAST_TREE = 12 };

vpps_status vpps_meetings_open(vpps_cpu *cpu);
void vpps_meetings_close(vpps_cpu *cpu);

/* Decides whether a launch's barriers are trees of counters: sets m->ordered and m->taken. Fails with MEMORY. */
vpps_status vpps_choose_meetings(vpps_cpu *cpu, const uint32_t *script);

/* Returns whether all barriers of the script are meetings: all VPs that signal a barrier wait for it in their next task. Sets
 * signals[n_barriers] to the number of signals of each barrier. The script's parts lie inside it. */
bool vpps_are_meetings(const uint32_t *script, uint32_t *signals);

/* Signals a tree of n members that `member` has come to its meeting number `meeting`, from 1 on. Returns true for the
 * last member; everything that the others did before is then visible. */
bool vpps_meet(vpps_counter *nodes, uint32_t n, uint32_t member, uint32_t meeting);

/* Signals a barrier that is a tree and gets `signals` signals. */
void vpps_vp_signal_meeting(vpps_vp *vp, uint32_t signals);
/* Waits at such a barrier. After a timeout, *came is the number of signals that came. */
vpps_wait_end vpps_vp_wait_meeting(vpps_vp *vp, uint32_t signals, uint32_t *came);

/* Wakes all VPs that wait at a meeting, after a failure. */
void vpps_meetings_wake(vpps_cpu *cpu);

/* Maps zeroed memory in pages, which the system assigns when they are touched. Returns NULL on failure. Unmap it with the same size. */
void *vpps_map_pages(size_t bytes);
void vpps_unmap_pages(void *memory, size_t bytes);

/* ---- settle.c */

/* Chooses a CPU for each VP. Fails with MEMORY. */
vpps_status vpps_cpu_choose_places(vpps_cpu *cpu);

/* Binds the calling thread to its VP's CPU, unless it is the caller's thread, and touches the pages of the VP's
 * parameters, which so come to that CPU's memory node. To be called before the model's parameters are written. */
void vpps_vp_settle(const vpps_vp *vp);

/* Makes room for `floats` floats in vp->scratch. Returns false if out of memory. */
bool vpps_vp_scratch(vpps_vp *vp, size_t floats);

/* Decides which gradients the update computes itself. */
void vpps_choose_updates(vpps_cpu *cpu);

/* Run the VP's share of the tasks OUTER, ENTRIES, NORM and UPDATE. */
void vpps_vp_outer(vpps_vp *vp, uint32_t address, uint32_t block, uint32_t first, uint32_t n);
void vpps_vp_entries(vpps_vp *vp, uint32_t number, uint32_t address);
void vpps_vp_norm(vpps_vp *vp);
void vpps_vp_update(vpps_vp *vp);

/* Opens the exchange of gradients between processes (share.c). */
vpps_status vpps_cpu_open_share(vpps_cpu *cpu, vpps_communicator *c);

/* Exchanges gradients with other processes, before a VP's first task that reads all gradients. Returns false if the batch has failed. */
bool vpps_vp_share(vpps_vp *vp);

/* Wakes all VPs that wait for the exchange, after a failure. */
void vpps_share_wake(vpps_cpu *cpu);

/* Opens the exchange of entries of lookup tables that are sharded over processes (entries.c). */
vpps_status vpps_entries_open(vpps_entries **out, const vpps_cpu *cpu, vpps_communicator *c);
void vpps_entries_close(vpps_entries *e);

/* Returns a copy of the batch's script, or NULL if out of memory. */
uint32_t *vpps_entries_script(vpps_entries *e, const vpps_batch *batch);

/* Fetches the entries that cpu->batch.views look up from all processes, which do the same at the same time, into the pool
 * after the batch's tensors. Writes their places into the copied script. Fails with POOL, MEMORY, SCRIPT, STALL, or
 * STATE if other processes do something else or train another model. */
vpps_status vpps_entries_fetch(vpps_entries *e, const vpps_cpu *cpu, uint32_t *script);

/* Sends entries to other processes until none asks for any. Fails as vpps_entries_fetch does. */
vpps_status vpps_entries_serve(vpps_entries *e);

/* Returns the pool offset of the fetched entry that a script names by `offset`; VPPS_NO_OFFSET: it was not fetched. */
uint32_t vpps_entry_place(const vpps_entries *e, uint32_t offset);

/* Adds the costs of the latest fetch to `cost`. */
void vpps_entries_cost(const vpps_entries *e, vpps_share_cost *cost);

/* Returns the blocks of member `member`, where the VPs are divided into `group` equal parts. */
static inline vpps_blocks vpps_blocks_of(const vpps_cpu *cpu, vpps_param param, uint32_t member, uint32_t group) {
    const vpps_cpu_matrix *m = &cpu->matrices[param];
    const uint32_t share = cpu->n_vps / group, first = m->first_block[member * share];
    return (vpps_blocks){m->blocks + first, m->first_block[(member + 1) * share] - first};
}

/* Makes blocks for every matrix, with room for `states` optimiser states. */
vpps_status vpps_make_matrices(vpps_cpu *cpu, uint32_t states);
void vpps_free_matrices(vpps_cpu *cpu);

/* Allocates memory for weights in bf16, if products are in bf16. */
vpps_status vpps_make_packs(vpps_cpu *cpu);
/* Packs a block's weights after its values changed. The VP that owns the block calls it. */
void vpps_pack_block(const vpps_cpu *cpu, uint32_t param, uint32_t vp, const vpps_matrix_block *b);
/* Packs all weights of a matrix, if products are in bf16. */
void vpps_pack_matrix(const vpps_cpu *cpu, uint32_t param);

/* Packs the block's part of its VP's transposed copy in bf16. */
void vpps_pack_copy(const vpps_cpu *cpu, uint32_t param, uint32_t vp, const vpps_matrix_block *b);

/* Packs n vectors of `depth` elements, from x[i] + skip on, as bf16 rows at word *at of vp->vectors, which the next
 * call may move. Vectors already packed under `key` since vpps_forget_vectors are not packed again, unless the key is
 * VPPS_NONE. Returns false if out of memory. */
bool vpps_pack_vectors(vpps_vp *vp, uint32_t key, uint32_t n, uint32_t depth, const float *const *x, uint32_t skip,
                       size_t *at);
/* Packs the vectors and spreads them, with one key for the rows that are packed first and one for the spread vectors. */
bool vpps_spread_vectors(vpps_vp *vp, uint32_t key, uint32_t spread_key, uint32_t n, uint32_t depth,
                         const float *const *x, uint32_t skip, size_t *at);
void vpps_forget_vectors(vpps_vp *vp);

/* Copies a part of a matrix between the blocks and an array of consecutive rows. `part` is VPPS_MATRIX_VALUES,
 * VPPS_MATRIX_GRADIENT, or VPPS_MATRIX_STATES plus the state's number. */
enum { VPPS_MATRIX_VALUES, VPPS_MATRIX_GRADIENT, VPPS_MATRIX_STATES };
void vpps_copy_matrix(vpps_cpu *cpu, uint32_t param, float *rows, uint32_t part, bool to_rows);

/* Adds the latest launch's gradients of table entries to the accumulated sums (gradients.c), before the next launch
 * reuses their memory. Fails with MEMORY. */
vpps_status vpps_take_gradients(vpps_cpu *cpu);
/* Prepares a launch that updates: sets cpu->batch.segments and the loss to the accumulated sums. Fails with MEMORY. */
vpps_status vpps_open_update(vpps_cpu *cpu);
/* Prepares a launch that computes gradients without an update: begins a sum, or continues the present one. */
void vpps_open_sum(vpps_cpu *cpu);
/* Functions of the device's table (runtime/device.h). */
void vpps_cpu_zero_gradients(vpps_device *d);
vpps_status vpps_cpu_read_gradients(vpps_device *d, vpps_model *model);
vpps_status vpps_cpu_write_gradients(vpps_device *d, const vpps_model *model);
void vpps_cpu_choice_text(const vpps_device *d, char *text);
vpps_status vpps_cpu_take_choice(vpps_device *d, const char *text);
vpps_status vpps_cpu_tune(vpps_device *d);
bool vpps_cpu_measured(const vpps_device *d, uint32_t i, vpps_trial *out);

/* Returns the VP's rows of a parameter. */
static inline vpps_rows vpps_rows_of_vp(const vpps_cpu *cpu, vpps_param param, uint32_t vp) {
    return vpps_rows_of(cpu->model->params[param].rows, VPPS_ROW_UNIT, cpu->n_vps, vp);
}

/* Returns where an item of a value lies in the pool: an input, a lookup, a parameter or a value of the block's records.
 * `item` counts the block's vertices or members. */
static inline float *vpps_in_pool(const vpps_cpu *cpu, const vpps_block_view *view, const vpps_cell_value *x,
                                  uint32_t item) {
    switch (x->kind) {
    case VPPS_VALUE_INPUT: return cpu->pool + view->inputs[x->input][item];
    case VPPS_VALUE_LOOKUP: return cpu->pool + view->lookups[x->lookup][item];
    case VPPS_VALUE_PARAMETER: return cpu->pool + cpu->plan.values[x->vector];
    default: return cpu->pool + view->block->kept[x->axis] + (size_t)item * view->cell->kept_words[x->axis] + x->offset;
    }
}

/* Chooses kernels, precision and unit, by trials of this processor unless the options forbid it. To be called before
 * there are matrices. Fails as the communicator does. */
vpps_status vpps_cpu_open_products(vpps_cpu *cpu);

/* Chooses how stages are split over VPs: by an earlier profile of the same machine and model, unless the options forbid
 * it; with options->tune and without such a profile, by a new one on the batches that are trained. */
void vpps_cpu_open_splits(vpps_cpu *cpu);

/* ---- groups.c */

/* Returns the number of groups, at most `most`, that a batch's estimated cost suggests. */
uint32_t vpps_cpu_groups(const vpps_batch_extent *e, uint32_t most);

/* Decides from the script alone which matrices' transposed copies this launch uses, and renews outdated ones (copies.c). */
void vpps_choose_copies(vpps_cpu *cpu);

/* Returns whether VPs use transposed copies of the matrix in this launch. The update of a block then also updates its copy. */
static inline bool vpps_has_copies(const vpps_cpu *cpu, uint32_t param) {
    const bool needed = cpu->precision.parts && !cpu->precision.unit.product_t;
    return needed || cpu->matrices[param].wanted == cpu->launch;
}

/* Makes a VP's transposed copy of its rows of a matrix. */
void vpps_transpose_rows(const vpps_cpu *cpu, uint32_t param, uint32_t vp);

/* Returns the number of vectors that one VP multiplies with transposed matrices for a product, in a task of so many
 * items. `rows`: the stage is split by rows. */
static inline uint32_t vpps_vectors_of_task(const vpps_compiled_cell *c, const vpps_program_step *product, bool rows,
                                            const uint32_t *items) {
    const uint32_t n = items[product->axis] * product->to.cols;
    return rows ? n : n / c->needs.group;
}

/* Returns the gradient's norm from the VPs' sums of squares, added in the order of VPs; 0 if the script does not compute it. */
double vpps_cpu_norm(const vpps_cpu *cpu);

/* Reports a failure, unless another VP has already, and stops the batch. `address` is the task's word. */
void vpps_vp_fail(vpps_vp *vp, vpps_status status, uint32_t address, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Reports a failure that no task causes, and stops the batch. */
void vpps_cpu_fail(vpps_cpu *cpu, vpps_status status, const char *message);

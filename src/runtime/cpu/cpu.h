/* cpu.h - the CPU device: threads run virtual processors (VPs), each of which has its own rows of every matrix.
 *
 *   device.c, pages.c, failure.c   memory, launching, parameters to and from the model; how a failed batch ends
 *   threads.c, meetings.c, crowd.c, bind_threads.c   waiting, waking, barriers; how many threads run VPs, and on which CPUs
 *   check.c, vp.c   check batches' programs (scripts) before they run; a thread's loop over its VPs' tasks
 *   stage.c, tile.c, steps.c, tile_products.c   stages (parts) of cells, by tiles (a few vertices); a tile's layout and steps
 *   outer.c, updates.c, gradients.c   parameters: their gradients, accumulated over launches, too; norms and updates
 *   blocks.c, copies.c, packs.c   matrices as blocks of rows, transposed for backward, packed in bf16
 *   units.c, amx.c, avx512_*.c   the processor's instructions for products
 *   measure.c, probe.c, choices.c, tuning.c, groups.c   measure them, store the times, choose by them, and apply the choice
 *   share.c, entries.c   exchange of gradients, and of entries of lookup tables, with other processes */
#pragma once

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
    uint32_t parts;           /* number of bf16 numbers that represent an operand: 2 in bf16x3, 1 in bf16; 0 in fp32 */
    /* functions that use the chosen instructions for products; in fp32 only the name is set */
    vpps_bf16_unit unit;
} vpps_cpu_precision;

/* A matrix is stored in blocks of at most VPPS_BLOCK_ROWS rows, each owned by one thread. A block is stored by columns,
 * padded with zero rows to a multiple of 16, so products read memory in order. Element (r, k) is at k * ld + r -
 * first_row. */
enum { VPPS_BLOCK_ROWS = 64, VPPS_ROW_UNIT = 16 };

/* Least number of matrix rows with which a group's virtual processors (VPs: threads) divide a product by rows, even if some VPs of a large
 * group get no rows. Dividing the product by vertices would keep still fewer VPs busy, since a level of the graph has few vertices. */
enum { VPPS_ENOUGH_ROWS = 128 };

typedef struct vpps_cpu vpps_cpu;
typedef struct vpps_vp vpps_vp;
typedef struct vpps_entries vpps_entries;

typedef struct vpps_matrix_block {
    uint32_t first_row, rows;
    size_t ld;
    float *values, *gradient, *states[VPPS_MAX_STATES];
    uint32_t *packed; /* bf16 copy of the values, two in a word; NULL in fp32 */
} vpps_matrix_block;

typedef struct vpps_cpu_matrix {
    vpps_matrix_block *blocks; /* the matrix's blocks of rows, in order; NULL: the parameter is a vector or table */
    uint32_t n_blocks;
    uint32_t *first_block; /* rows of virtual processor (thread) v: blocks first_block[v] to first_block[v + 1] - 1 */
    /* Indexed by virtual processor (thread): a transposed copy of the rows that it owns, in panels of 64 columns that are stored row by
     * row. Element (r, k) is at k / 64 * 64 * rows + r * 64 + k % 64. */
    float **transposed;
    /* number of the latest launch that uses the matrix's transposed copies; the update in that launch renews them */
    uint32_t used_in;
    bool fresh;          /* whether the transposed copies agree with the current values */
    uint32_t **packed_t; /* transposed copies in bf16, two elements of a matrix column in a word */
} vpps_cpu_matrix;

/* Adjacent blocks of rows of a matrix, owned by one virtual processor (thread) or by several consecutive virtual processors. */
typedef struct vpps_blocks {
    const vpps_matrix_block *blocks;
    uint32_t n;
} vpps_blocks;

typedef struct vpps_run {
    float *at;
    size_t n;
} vpps_run;

/* Vectors in bf16: the number of the tile (vertices computed together) that they belong to, and their first word in vpps_vp.vectors. */
typedef struct vpps_packed {
    uint64_t tile;
    size_t at;
} vpps_packed;

/* A barrier for which a virtual processor (thread) must still wait (VPPS_NO_BARRIER: none), and the number of signals that open it. */
typedef struct vpps_awaited {
    uint32_t barrier, signals;
} vpps_awaited;

struct vpps_vp {
    vpps_cpu *cpu;
    uint32_t index;
    pthread_t thread;
    bool has_thread;
    float *scratch; /* memory for the values of a tile (vertices processed together) */
    size_t scratch_floats;
    const float **pointers; /* scratch list of addresses, such as those of the vectors that a product multiplies */
    /* scratch: a gradient's terms that are a scalar times a vector, as pairs of the offsets of scalar and vector */
    uint32_t *pairs;
    uint32_t *live; /* numbers of those vertices of the task for which the cell's condition holds */
    uint32_t *d_at; /* for each outer product dy x^T of the cell: index in `pointers` of its first dy */
    vpps_product_term *terms;
    vpps_bf16_term *bf16_terms;
    double *sums;      /* squared norms of the vectors dy and x of each outer product dy x^T */
    uint64_t tile;     /* number of the current tile (vertices computed together), counted from 1 */
    uint32_t *vectors; /* vectors of the tile (vertices computed together), converted to bf16 */
    size_t vector_words, vector_capacity;
    /* packed[v + k * number of values]: where in `vectors` value v is; k = 0: whole vectors; k > 0: one thread's rows of them, plain or spread */
    vpps_packed *packed;
    uint32_t *touched; /* by parameter: number of the gradient sum (cpu->sum) to which this thread last added */
    /* for each parameter: number of the latest launch whose update computes its gradient, instead of reading it */
    uint32_t *by_update;
    /* by parameter whose gradient (sum of dy x^T) the update computes: index in `copies` of the first x, or NO_COPY */
    size_t *copy_of;
    float *copies; /* factors x of gradients dy x^T that are parameters themselves: copies from before the update */
    size_t n_copies;
    uint32_t copied; /* number of the launch in which the vectors in `copies` were copied */
    uint32_t shared; /* number of the latest launch whose gradients all processes have exchanged */
    /* barriers signalled in this launch: [0] of this group of threads, [1] of all groups */
    uint32_t met[2];
    vpps_awaited awaited[2]; /* barriers still to wait for: [0] of this thread's group of threads, [1] of all threads */
    atomic_uint tasks;       /* number of tasks that this virtual processor (thread) has run in all launches */
    uint32_t at;         /* word of the script (the batch's program) where the next task begins; 0: the last has run */
    vpps_track *track;   /* the virtual processor's (thread's) part of the trace; NULL: none */
    uint32_t progress;   /* watchdog: number of tasks that all threads had run when this one last timed out */
    uint64_t stalled_ns; /* watchdog: nanoseconds for which this thread has waited while no thread ran a task */
};

typedef struct vpps_counter {
    _Alignas(64) atomic_uint value; /* on a cache line of its own, since threads spin on it */
    atomic_uint sleepers;           /* number of threads that sleep until the value changes */
} vpps_counter;

/* Barriers as trees of counters (meetings.c). A virtual processor (VP: a thread) signals a barrier by incrementing counters, the nodes of a
 * tree. VPs wait for other counters, the gates: one for each VPPS_NEIGHBOURS VPs. The VP that signals last sets all gates. */
typedef struct vpps_meetings {
    /* Counters that VPs (threads) increment on arrival: `all`: the tree of all VPs; `group`: a tree for each group, whose first counter has
     * the index of the group's first VP. all_gates, group_gates: counters that VPs watch until all have arrived. */
    vpps_counter *all, *all_gates, *group, *group_gates;
    vpps_counter *finish; /* tree of counters for the barrier at the end of each launch; never reset, they count on */
    size_t n_counters;
    bool ordered;      /* true: each thread that signals a barrier waits for that barrier right afterwards */
    bool taken;        /* true: the launch's barriers are trees of counters; false: each is one counter */
    uint32_t *signals; /* indexed by barrier: number of signals that open the barrier */
} vpps_meetings;

/* The batch that is running. */
typedef struct vpps_cpu_batch {
    const uint32_t *script;
    vpps_task_header header;
    vpps_block_view *views;
    vpps_goal goal;          /* work of the launch: a whole step, only gradients, or only an update */
    vpps_half half;          /* which tasks of the batch's program are run: all, forward's, or backward's */
    float (*corrections)[2]; /* indexed by parameter: bias corrections of the optimiser in this batch */
    /* for each parameter: number of the batch's outer products that add to its gradient; 1: the update may compute the gradient itself */
    uint32_t *uses;
    /* for each matrix: number of vectors that its transpose multiplies; tasks of fewer than choice.few vectors do not count */
    uint64_t *vectors;
    /* gradients of table entries for the tasks NORM and UPDATE: this process's or, after an exchange, sums over all processes */
    vpps_row_segment *segments;
    uint32_t n_segments;
    uint64_t start_ns, end_ns; /* end_ns: time at which the last thread was done */
    double loss;
    atomic_bool failed; /* whether a thread has failed; all others then stop */
    vpps_outcome outcome;
} vpps_cpu_batch;

/* A sum of gradients over several launches, until an update. */
typedef struct vpps_cpu_sum {
    uint32_t number; /* counts these sums: the first launch after an update, or after clearing, begins a new one */
    bool open;       /* whether gradients have been summed since the latest update */
    /* whether the sums, `loss` and device.row_sums, still lack the latest launch's loss and gradients of table entries */
    bool untaken;
    double loss; /* sum of the losses of these launches (a launch runs a batch's program) */
} vpps_cpu_sum;

/* A launch is run by 2^rung threads, at most one for each virtual processor; rung < VPPS_RUNGS. Worker thread w takes part if the launch's
 * rung is at least vpps_rung_of(w). */
enum { VPPS_RUNGS = 11 };
static inline uint32_t vpps_rung_of(uint32_t worker) { return worker ? 32 - (uint32_t)__builtin_clz(worker) : 0; }

/* Measured speeds of launches of one kind, such as training, by which crowd.c chooses how many threads (2^rung) run such launches. Speeds
 * are measured over windows: series of consecutive launches with one number of threads. */
typedef struct vpps_crowd {
    /* the launches of the current window (series) run on 2^rung threads; the fastest window had 2^home threads */
    uint32_t rung, home;
    /* another number of threads is tried each `period` windows (series of launches), next after `left` windows */
    uint32_t period, left;
    bool down, ends;     /* down: fewer threads were tried last, not more; ends: the launch ends a window (series) */
    atomic_bool crowded; /* whether in this series of launches a thread waited long (over much_ns) for a core */
    /* this series of launches: its programs' length; its time, with pauses; the latest launch's; a thread that waits longer sets `crowded` */
    uint64_t words, ns, latest_ns, much_ns;
    double speeds[VPPS_RUNGS]; /* speed of 2^i threads: words of the batches' programs (their length) run per ns */
} vpps_crowd;

struct vpps_cpu {
    vpps_device device;
    const vpps_model *model;
    vpps_options options;
    const vpps_cpu_units *units;
    const struct vpps_probe *probe; /* measured times of products; NULL: nothing was measured */
    vpps_cpu_choice choice;
    const vpps_kernels *kernels; /* functions for the arithmetic, compiled for the chosen instruction set */
    vpps_cpu_precision precision;
    uint32_t n_vps, n_states;
    /* watchdog: longest wait without progress; spin: time that a thread spins before it sleeps */
    uint64_t watchdog_ns, spin_ns;
    vpps_pool_plan plan;
    vpps_target target;
    vpps_rows gradients; /* range, in the pool (the device's memory), of the gradients of vector parameters */
    /* The device's memory. Offsets from plan.sharded on lie in it; smaller ones number entries of tables divided among processes. */
    float *pool;
    float *pool_memory;
    size_t pool_bytes;
    vpps_vp *vps;
    vpps_places places;        /* CPUs that this process may use */
    uint32_t *chosen;          /* indexed by virtual processor (thread): its CPU, as an index into `places` */
    vpps_hold hold;            /* how tightly virtual processors (threads) are bound to the chosen CPUs */
    vpps_cpu_matrix *matrices; /* for each parameter that is a matrix: its blocks of rows */
    /* memory for matrices' values, gradients, states and transposed copies; each thread's parts are adjacent */
    float *matrix_memory;
    size_t matrix_bytes;
    uint32_t *pack_memory; /* weights in bf16; NULL in fp32 */
    size_t pack_bytes;
    vpps_counter *counters; /* indexed by barrier: the number of signals so far */
    size_t n_counters;
    vpps_meetings meetings;
    double *norms;  /* indexed by virtual processor (thread): sum of squares of the gradients that it owns */
    double squares; /* sum of squared gradients of sharded tables, over all processes */

    vpps_cpu_batch batch;
    vpps_cpu_sum sum;
    vpps_share *share; /* exchange of gradients with other processes; NULL: there is only one process */
    /* arrived: how often threads have come to an exchange of gradients; released: number of finished exchanges. Neither is ever reset. */
    vpps_counter arrived, released;
    uint32_t shared_batches;
    vpps_entries *entries; /* fetches entries of sharded lookup tables; NULL: tables are not sharded */
    uint32_t launch;       /* number of the current launch, counted from 1 */
    pthread_mutex_t failure_lock;

    /* element r counts launches of workers 2^(r - 1) to 2^r - 1 (r = 0: worker 0), which sleep until it changes */
    vpps_counter epoch[VPPS_RUNGS];
    vpps_counter done; /* number of launches that have finished */
    uint32_t started;  /* number of launches that have started; the caller waits until `done` is equal */
    atomic_bool quit;
    uint32_t threads;  /* number of threads that take part in the launch */
    vpps_crowd *crowd; /* speeds by which the running launch's number of threads was chosen: an element of `crowds` */
    /* speeds measured with fewer or more threads, for each kind of launch: [vpps_half: all, forward, backward] [0: inference, 1: training, 2: update] */
    vpps_crowd crowds[VPPS_BACKWARD_HALF + 1][3];
};

/* Checks that the script (the batch's program) is made for this device, and that its arrays lie inside the script or,
 * for gradients of table entries, inside the pool (device memory). Fails with SCRIPT. */
vpps_status vpps_check_script(const vpps_cpu *cpu, const vpps_batch *batch);
/* Checks a block (vertices of one cell): its arrays lie inside the script (the batch's program), and its vertices' kept
 * values inside the pool (device memory). Fails with SCRIPT. */
vpps_status vpps_check_block(const vpps_task_header *h, const vpps_block_view *view, uint32_t number);

/* Checks the task at word `at` of the script (the batch's program). `end`: end of the tasks that group `group` of
 * threads runs. Returns false if the task is malformed; the batch then fails with SCRIPT. */
bool vpps_check_task(vpps_vp *vp, uint32_t at, uint32_t end, uint32_t group);

/* Checks a batch's program and prepares its launch by threads. Fails with SCRIPT, MEMORY, or as vpps_entries_fetch. */
vpps_status vpps_cpu_prepare(vpps_cpu *cpu, const vpps_batch *batch);

/* Runs the part of a checked task (vpps_check_task) that belongs to a virtual processor (thread). Returns false after its last task. */
bool vpps_vp_task(vpps_vp *vp, uint32_t at, const vpps_task *task);

/* Runs virtual processors (workers, each with its own rows of the matrices) `first` to end - 1 in this thread, by
 * turns: each runs its tasks until it has to wait at a barrier. The batch fails with SCRIPT at a malformed task, and
 * with STALL if a wait exceeds watchdog_ns. */
void vpps_run_vps(vpps_cpu *cpu, uint32_t first, uint32_t end);

/* Returns the range of vertices on which the virtual processor (thread) works in a STAGE task (part of a cell, run over vertices). */
vpps_rows vpps_stage_part(const vpps_cpu *cpu, uint32_t vp, const vpps_task *task);
/* Runs a virtual processor's (thread's) part of a STAGE task, which runs a stage (part of a cell) over some vertices. */
void vpps_vp_stage(vpps_vp *vp, uint32_t address, const vpps_task *task);

/* Waits until the counter's value is at least `least` (modulo 2^32): spins, then sleeps. Ends early after limit_ns, if that is not 0,
 * and, with until_failure, when the batch fails. Time in which the process was stopped does not count. limit_ns VPPS_ONLY_LOOK: does not
 * wait. */
#define VPPS_ONLY_LOOK UINT64_MAX
typedef enum vpps_wait_end { VPPS_WAIT_REACHED, VPPS_WAIT_FAILED, VPPS_WAIT_TIMEOUT } vpps_wait_end;
vpps_wait_end vpps_wait_for(vpps_cpu *cpu, vpps_counter *counter, uint32_t least, uint64_t limit_ns,
                            bool until_failure);

/* Wakes all threads that sleep on the counter. To be called after a sequentially consistent change of its value. */
void vpps_wake(vpps_counter *counter);

/* Chooses how many threads run the launch, by times of earlier launches. Results do not depend on it. */
void vpps_choose_threads(vpps_cpu *cpu, const vpps_batch *batch);
/* At the end of a window (series of launches), notes whether this thread has waited long for cores. */
void vpps_note_waiting(vpps_crowd *c);

/* VPPS_NEIGHBOURS: number of virtual processors (VPs: threads) that signal one node of a tree of counters.
 * VPPS_LEAST_TREE: least number of VPs for which a barrier is a tree. With n VPs the cache line of a single counter
 * moves n - 1 times in series; lines of a tree, 9 + n / 8 times. */
enum { VPPS_NEIGHBOURS = 8, VPPS_LEAST_TREE = 12 };

vpps_status vpps_meetings_open(vpps_cpu *cpu);
void vpps_meetings_close(vpps_cpu *cpu);

/* Chooses trees of counters (meetings.taken) or single counters as the launch's barriers. Fails with MEMORY. */
vpps_status vpps_choose_meetings(vpps_cpu *cpu, const uint32_t *script);

/* Returns whether barriers of the script (batch's program) can be trees of counters: each thread that signals a barrier
 * waits for it in its next task. Sets signals[b] to barrier b's number of signals. All tasks' addresses must lie in the script. */
bool vpps_are_meetings(const uint32_t *script, uint32_t *signals);

/* Signals a barrier of n threads that is a tree of counters, as thread `member`. `meeting`: how often these threads have met in the tree,
 * this time included. Returns true for the last thread, which then sees all that the other threads wrote before. */
bool vpps_meet(vpps_counter *nodes, uint32_t n, uint32_t member, uint32_t meeting);

/* Arrives at a barrier of `signals` threads that is a tree of counters, without waiting for the others. */
void vpps_vp_signal_meeting(vpps_vp *vp, uint32_t signals);
/* Waits at a barrier that is a tree of counters. After a timeout, *came is the number of signals that came. */
vpps_wait_end vpps_vp_wait_meeting(vpps_vp *vp, uint32_t signals, uint64_t limit_ns, uint32_t *came);

/* Wakes all threads that wait at barriers that are trees of counters, after a failure. */
void vpps_meetings_wake(vpps_cpu *cpu);

/* Maps zeroed memory; the system assigns pages when they are touched. Returns NULL on failure. vpps_unmap_pages takes the same size. */
void *vpps_map_pages(size_t bytes);
void vpps_unmap_pages(void *memory, size_t bytes);

/* Chooses a CPU for each virtual processor (thread). Fails with MEMORY. */
vpps_status vpps_cpu_choose_places(vpps_cpu *cpu);

/* Binds a virtual processor's thread, which calls this, to its CPU (unless it is the user's thread), and touches the pages of its
 * parameters, so that they come to that CPU's memory node. To be called before the model's parameters are written. */
void vpps_bind_vp(const vpps_vp *vp);

/* Makes room for `floats` floats in vp->scratch. Returns false if out of memory. */
bool vpps_vp_scratch(vpps_vp *vp, size_t floats);

/* Decides for which matrices the update computes the gradient itself, so that the gradient is not written to memory. */
void vpps_choose_updates(vpps_cpu *cpu);

/* Run a virtual processor's (thread's) part of a task: OUTER (outer products), ENTRIES (gradients of table entries), NORM, UPDATE. */
void vpps_vp_outer(vpps_vp *vp, uint32_t address, uint32_t block, uint32_t first, uint32_t n);
void vpps_vp_entries(vpps_vp *vp, uint32_t number, uint32_t address);
void vpps_vp_norm(vpps_vp *vp);
void vpps_vp_update(vpps_vp *vp);

/* Opens the exchange of gradients between processes (share.c). */
vpps_status vpps_cpu_open_share(vpps_cpu *cpu, vpps_communicator *c);

/* Exchanges gradients with other processes, before a thread's first task that reads all gradients. False: the batch failed. */
bool vpps_vp_share(vpps_vp *vp);

/* Wakes all threads that wait for the exchange of gradients; called after a failure. */
void vpps_share_wake(vpps_cpu *cpu);

/* Opens the exchange of entries of lookup tables that are sharded over processes (entries.c). */
vpps_status vpps_entries_open(vpps_entries **out, const vpps_cpu *cpu, vpps_communicator *c);
void vpps_entries_close(vpps_entries *e);

/* Returns a copy of the script (the batch's program), for vpps_entries_fetch to change, or NULL if out of memory. */
uint32_t *vpps_entries_script(vpps_entries *e, const vpps_batch *batch);

/* Gets the entries of sharded tables that the batch looks up from the processes that own them, stores them in the pool
 * after the batch's tensors, and writes their addresses into `script`, the copy of the batch's program. All processes
 * call this at once. Fails with POOL, MEMORY, SCRIPT, STALL; STATE: others do something else, or have another model. */
vpps_status vpps_entries_fetch(vpps_entries *e, const vpps_cpu *cpu, uint32_t *script);

/* Sends table entries to other processes until no process asks for any. Fails as vpps_entries_fetch does. */
vpps_status vpps_entries_serve(vpps_entries *e);

/* Returns the offset in the pool (memory) at which a sharded table's entry was stored, or VPPS_NO_OFFSET if the batch
 * does not look it up. `offset` names the entry in the batch's program: as if the pool began with whole tables. */
uint32_t vpps_entry_place(const vpps_entries *e, uint32_t offset);

void vpps_entries_cost(const vpps_entries *e, vpps_share_cost *cost);

/* Divides a matrix's blocks of rows into `group` parts, each owned by n_vps / group threads; returns part `member`. */
static inline vpps_blocks vpps_blocks_of(const vpps_cpu *cpu, vpps_param param, uint32_t member, uint32_t group) {
    const vpps_cpu_matrix *m = &cpu->matrices[param];
    const uint32_t share = cpu->n_vps / group, first = m->first_block[member * share];
    return (vpps_blocks){m->blocks + first, m->first_block[(member + 1) * share] - first};
}

/* Makes blocks of rows for every matrix, with room for `states` optimiser states. */
vpps_status vpps_make_matrices(vpps_cpu *cpu, uint32_t states);
void vpps_free_matrices(vpps_cpu *cpu);

/* Allocates memory for bf16 copies of the weights, if products are in bf16. */
vpps_status vpps_make_packs(vpps_cpu *cpu);
/* Converts the weights of a block of rows to packed bf16 after they changed. The thread that owns the block calls it. */
void vpps_pack_block(const vpps_cpu *cpu, uint32_t param, uint32_t vp, const vpps_matrix_block *b);
/* Converts all weights of a matrix to packed bf16, if products are in bf16. */
void vpps_pack_matrix(const vpps_cpu *cpu, uint32_t param);

/* Converts to bf16 the part of a virtual processor's (thread's) transposed copy that consists of the block's rows. */
void vpps_pack_copy(const vpps_cpu *cpu, uint32_t param, uint32_t vp, const vpps_matrix_block *b);

/* Packs n vectors of `depth` elements, from x[i] + skip on, as bf16 rows at word *at of vp->vectors, which the next call may move. `key`
 * identifies the vectors: those packed since vpps_forget_vectors are not packed again. VPPS_NONE: always packs. False: out of memory. */
bool vpps_pack_vectors(vpps_vp *vp, uint32_t key, uint32_t n, uint32_t depth, const float *const *x, uint32_t skip,
                       size_t *at);
/* Packs vectors as vpps_pack_vectors does (`key` identifies them), then pairs each element with a zero, for AMX's products with transposed
 * matrices. spread_key identifies these pairs, which begin at word *at of vp->vectors. False: out of memory. */
bool vpps_spread_vectors(vpps_vp *vp, uint32_t key, uint32_t spread_key, uint32_t n, uint32_t depth,
                         const float *const *x, uint32_t skip, size_t *at);
void vpps_forget_vectors(vpps_vp *vp);

/* Copies a matrix's values, gradient or state (`part`) from its blocks to `rows`, row after row, or back (!to_rows). */
void vpps_copy_matrix(vpps_cpu *cpu, uint32_t param, float *rows, uint32_t part, bool to_rows);

/* Prepares a launch that updates parameters: gives it the summed gradients of table entries and the summed loss. Fails with MEMORY. */
vpps_status vpps_open_update(vpps_cpu *cpu);
/* Prepares a launch that computes gradients without an update: begins a sum of gradients, or continues the current one. */
void vpps_open_sum(vpps_cpu *cpu);
/* Implementations of functions of vpps_device_table (runtime/device.h). */
void vpps_cpu_zero_gradients(vpps_device *d);
vpps_status vpps_cpu_take_gradients(vpps_device *d);
void vpps_cpu_choice_text(const vpps_device *d, char *text);
vpps_status vpps_cpu_take_choice(vpps_device *d, const char *text);
vpps_status vpps_cpu_tune(vpps_device *d);
bool vpps_cpu_measured(const vpps_device *d, uint32_t i, vpps_trial *out);

/* Returns the range of a parameter's rows that a virtual processor (thread) owns. */
static inline vpps_rows vpps_rows_of_vp(const vpps_cpu *cpu, vpps_param param, uint32_t vp) {
    return vpps_rows_of(cpu->model->params[param].rows, VPPS_ROW_UNIT, cpu->n_vps, vp);
}

/* Returns the address of an operand: an input, table entry, parameter, or a value kept for longer than one pass (forward or backward).
 * item: number, in a block (vertices of one cell), of a vertex or of a node that the vertices' list inputs read. */
static inline float *vpps_in_pool(const vpps_cpu *cpu, const vpps_block_view *view, const vpps_operand *o,
                                  uint32_t item) {
    switch (o->place) {
    case VPPS_PLACE_INPUT: return cpu->pool + vpps_input_at(view, o->at, item);
    case VPPS_PLACE_ENTRY: return cpu->pool + view->lookups[o->at][item];
    case VPPS_PLACE_PARAMETER: return cpu->pool + cpu->plan.values[o->at];
    default: return cpu->pool + view->block->kept[o->axis] + (size_t)item * view->cell->kept_words[o->axis] + o->at;
    }
}

/* Chooses how matrix products are computed (instructions, precision), by measuring this processor if the options allow.
 * All processes take the first one's choice; fails if they cannot communicate. Precedes vpps_make_matrices. */
vpps_status vpps_cpu_open_products(vpps_cpu *cpu);

/* Chooses whether virtual processors (threads) divide the work of a stage (part of a cell) by rows or by vertices. Takes what an earlier
 * run measured with this machine and model, unless the options forbid that. Otherwise, options->tune makes trained batches measure both. */
void vpps_cpu_open_splits(vpps_cpu *cpu);

/* Returns the number of groups of virtual processors (threads), at most `most`, that a batch's estimated cost suggests. */
uint32_t vpps_cpu_groups(const vpps_batch_extent *e, uint32_t most);

/* Decides by the batch's program alone which matrices' transposed copies this launch uses; renews outdated ones. */
void vpps_choose_copies(vpps_cpu *cpu);

/* Returns whether this launch uses transposed copies of the matrix. Whoever updates a block of rows then also updates its copy. */
static inline bool vpps_has_copies(const vpps_cpu *cpu, uint32_t param) {
    const bool needed = cpu->precision.parts && !cpu->precision.unit.product_t;
    return needed || cpu->matrices[param].used_in == cpu->launch;
}

/* Copies a virtual processor's (thread's) rows of a matrix, transposed, for products with the transposed matrix. */
void vpps_transpose_rows(const vpps_cpu *cpu, uint32_t param, uint32_t vp);

/* Returns how many vectors a thread multiplies with a transposed matrix in step `product` of a task. items[0]: number
 * of the task's vertices; items[d]: of nodes that list input d - 1 reads. `rows`: threads divide the work by rows. */
static inline uint32_t vpps_vectors_of_task(const vpps_compiled_cell *c, const vpps_program_step *product, bool rows,
                                            const uint32_t *items) {
    const uint32_t n = items[product->axis] * product->to.cols;
    return rows ? n : n / c->needs.group;
}

/* Returns the gradient's norm, by the threads' sums of squares in order; 0 if the batch's program computes none. */
double vpps_cpu_norm(const vpps_cpu *cpu);

/* Makes the batch fail unless it has failed already. Returns false. `address`: of the task, in the batch's program. */
bool vpps_vp_fail(vpps_vp *vp, vpps_status status, uint32_t address, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Makes the batch fail for a reason that lies in no task, and stops it. */
void vpps_cpu_fail(vpps_cpu *cpu, vpps_status status, const char *message);

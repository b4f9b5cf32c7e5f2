/* cpu.h - the CPU device: virtual processors are threads, each with its own rows of every matrix.
 *
 *   device.c   memory, launching, parameters to and from the model
 *   threads.c  waiting and waking
 *   meetings.c barriers of many VPs
 *   pages.c    memory
 *   settle.c   where VPs run, and their memory with them
 *   check.c    may a script be run here?
 *   vp.c       a VP's loop over its tasks
 *   stage.c      stages of cells, tile after tile, but for vertices whose condition does not hold
 *   tile.c       how tiles are laid out: tile.h
 *   in_place.c   what need not be copied into tiles
 *   steps.c, tile_products.c  the steps of a stage's program over a tile
 *   params.c   parameters: their gradients and updates
 *   packs.c    operands of products in bf16
 *   gradients.c  gradients that add up over launches
 *   copies.c   transposed copies of matrices, for backward
 *   units.c, amx.c, avx512_*.c  what this processor makes products with
 *   measure.c, probe.c, choices.c, tuning.c  how fast that is, kept, what is chosen by it, and applied
 *   groups.c   how many groups of VPs suit a batch
 *   share.c    gradients of other processes
 *   entries.c  lookup tables that are shared out over processes
 *   failure.c  how a batch that cannot go on ends
 */
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
    vpps_precision precision; /* never AUTO */
    uint32_t parts;           /* of an operand: 0 in fp32, 2 in bf16x3, 1 in bf16 */
    vpps_bf16_unit unit;      /* in fp32 only its name */
} vpps_cpu_precision;

/* At most so many rows of a matrix, owned by one VP: column after column, padded with zero rows to a multiple of 16, so that
 * a product's operands follow each other in memory. Element (r, k) at k * ld + r - first_row. */
enum { VPPS_BLOCK_ROWS = 64, VPPS_ROW_UNIT = 16 };

/* Matrices of so many rows are dealt by rows to groups of any size, though some VPs of a large group then have none: dealing the few
 * vertices of a level instead would keep still fewer VPs busy. */
enum { VPPS_ENOUGH_ROWS = 128 };

typedef struct vpps_cpu vpps_cpu;
typedef struct vpps_vp vpps_vp;
typedef struct vpps_entries vpps_entries;

typedef struct vpps_matrix_block {
    uint32_t first_row, rows;
    size_t ld;
    float *values, *gradient, *states[VPPS_MAX_STATES];
    uint32_t *packed; /* the values in bf16, in pairs; in fp32 NULL */
} vpps_matrix_block;

typedef struct vpps_cpu_matrix {
    vpps_matrix_block *blocks; /* by row; NULL: the parameter is no matrix */
    uint32_t n_blocks;
    uint32_t *first_block; /* of each VP, n_vps + 1 */
    /* Of each VP, a copy of all its rows in parts of 64 columns, each row after row: element (r, k) at
     * k / 64 * 64 * rows + r * 64 + k % 64. */
    float **transposed;
    uint32_t wanted;     /* the latest launch that multiplies with the copies: its update makes them anew */
    bool fresh;          /* they are of the values as they are */
    uint32_t **packed_t; /* in bf16 the copies are these: the matrix's columns are rows, in pairs */
} vpps_cpu_matrix;

/* Blocks of a VP, or of consecutive ones. */
typedef struct vpps_blocks {
    const vpps_matrix_block *blocks;
    uint32_t n;
} vpps_blocks;

/* Elements that lie side by side. */
typedef struct vpps_run {
    float *at;
    size_t n;
} vpps_run;

/* A tile's vectors in bf16: in which tile they were packed, and where. */
typedef struct vpps_packed {
    uint64_t tile;
    size_t at;
} vpps_packed;

/* A barrier, VPPS_NO_BARRIER: none, and its signals. */
typedef struct vpps_passed {
    uint32_t barrier, signals;
} vpps_passed;

struct vpps_vp {
    vpps_cpu *cpu;
    uint32_t index;
    pthread_t thread;
    bool has_thread;
    float *scratch; /* tiles */
    size_t scratch_floats;
    const float **pointers; /* vectors of products, members of lists */
    uint32_t *live;         /* vertices of a task whose condition holds */
    uint32_t *d_at;         /* of a cell's outer products: their vectors in `pointers` */
    vpps_product_term *terms;
    vpps_bf16_term *bf16_terms;
    double *sums;      /* of squares, of an outer product's two values */
    uint64_t tile;     /* number of the tile at hand, from 1 on */
    uint32_t *vectors; /* its vectors in bf16 */
    size_t vector_words, vector_capacity;
    vpps_packed *packed; /* by key: vpps_pack_vectors */
    uint32_t *touched; /* of each parameter: the sum of gradients (cpu->sum) that the VP's part of its gradient is of */
    uint32_t *by_update; /* of each parameter: launch that left the gradient to the update */
    size_t *copy_of;     /* of each such parameter: where in `copies` its gradient's vectors x begin, or NO_COPY */
    float *copies;       /* of vectors x that the update itself changes */
    size_t n_copies;
    uint32_t copied;       /* launch that `copies` is of */
    uint32_t shared;       /* launch whose gradients are those of all processes */
    uint32_t met[2];       /* meetings of its group, and of all VPs, that it has come to in this launch */
    vpps_passed passed[2]; /* barriers of its group, and of all VPs, that it has not waited for: see vp.c */
    atomic_uint tasks;     /* that it has run in all launches */
};

typedef struct vpps_counter {
    _Alignas(64) atomic_uint value; /* a cache line each: VPs spin on them */
    atomic_uint sleepers;           /* threads that sleep until the value changes */
} vpps_counter;

/* Where VPs meet in a tree: see meetings.c. Nodes, and a gate for each leaf. */
typedef struct vpps_meetings {
    vpps_counter *all, *all_gates, *group, *group_gates; /* n_counters from `all` on; of groups, member by member */
    vpps_counter *finish;                                /* nodes only: counted through the launches */
    size_t n_counters;
    bool ordered;      /* the script's barriers are meetings: its VPs come to them one after the other */
    bool taken;        /* in trees; else they are `counters` */
    uint32_t *signals; /* that each barrier gets */
} vpps_meetings;

struct vpps_cpu {
    vpps_device device;
    const vpps_model *model;
    vpps_options options;
    const vpps_cpu_units *units;
    const struct vpps_probe *probe; /* trials of their products; NULL: none were made */
    vpps_cpu_choice choice;
    const vpps_kernels *kernels; /* and the next two: as it says */
    vpps_cpu_precision precision;
    bool caller_works;
    uint32_t n_vps, n_states;
    uint64_t watchdog_ns, spin_ns; /* spin_ns: a waiter spins so long before it sleeps */
    vpps_plan plan;
    vpps_task_plan machine;
    vpps_rows gradients; /* of vectors, in the pool */
    float *pool;         /* word 0: memory begins at word plan.sharded */
    float *pool_memory;
    size_t pool_bytes;
    vpps_vp *vps;
    vpps_places places;        /* CPUs of this process, */
    uint32_t *chosen;          /* each VP's among them, */
    vpps_hold hold;            /* and how closely VPs are held there */
    vpps_cpu_matrix *matrices; /* of every parameter */
    float *matrix_memory;      /* values, gradients, states and transposed copies; each VP's side by side */
    size_t matrix_bytes;
    uint32_t *pack_memory; /* weights in bf16; in fp32 NULL */
    size_t pack_bytes;
    vpps_counter *counters; /* of barriers */
    size_t n_counters;
    vpps_meetings meetings;
    double *norms;  /* published by the VPs */
    double squares; /* of the gradients of tables that are shared out, of all processes */

    /* the batch in flight */
    const uint32_t *script;
    vpps_task_header task_header;
    vpps_block_view *views;
    uint64_t *updates;       /* of each parameter's state */
    float (*corrections)[2]; /* of each parameter, for the batch's step */
    /* Of each matrix: outer products of the batch that add to its gradient; 1: the update may make it. */
    uint32_t *uses;
    uint64_t *vectors;          /* of each matrix: that the batch multiplies with its transpose, in tasks of enough */
    vpps_row_segment *segments; /* what NORM and UPDATE take: the script's tables; then those of all processes */
    uint32_t n_segments;
    vpps_share *share; /* NULL: there is one process */
    vpps_counter arrived,
        released; /* counters of the VPs that have come to an exchange, over all batches; and of exchanges that are done */
    uint32_t shared_batches;
    vpps_entries *entries; /* NULL: tables are whole */
    uint32_t launch;       /* number of launches so far */
    vpps_step_part part;   /* of the latest launch */
    vpps_half half;        /* likewise */

    /* gradients that add up over launches until an update */
    uint32_t sum;            /* the sum's number: the first launch of each sum adds one */
    bool summing;            /* there are some */
    bool untaken;            /* those of the latest launch are in the pool, and not in the next two */
    double sum_loss;         /* of the launches that add up */
    vpps_row_sums *row_sums; /* of tables' entries */
    uint64_t start_ns;
    double loss;
    atomic_bool failed; /* set by the first VP that fails; all others stop */
    pthread_mutex_t failure_lock;
    vpps_outcome outcome;
    uint64_t end_ns; /* when the last VP was done */

    /* starting and finishing: workers wait for `epoch` to change, the caller for `done` */
    vpps_counter epoch;
    vpps_counter done; /* launches that all VPs have done */
    uint32_t wanted;   /* launches */
    atomic_bool quit;
};

/* check_script: is the script made for this device, and do its parts lie inside it? check_block, then, for each block that has a view: do
 * its arrays lie inside the script, and its records inside the pool? Both fail with SCRIPT. */
vpps_status vpps_check_script(const vpps_cpu *cpu, const vpps_batch *batch);
vpps_status vpps_check_block(const vpps_task_header *h, const vpps_block_view *view, uint32_t number);

/* Can the group's task at word `at` run? The group's tasks end at `end` with an END. False: the VP has failed with SCRIPT. */
bool vpps_check_task(vpps_vp *vp, uint32_t at, uint32_t end, uint32_t group);

/* Prepares a launch up to the start of the VPs: checks the batch's script, and makes it the one that they run. Fails with SCRIPT,
 * MEMORY. */
vpps_status vpps_cpu_prepare(vpps_cpu *cpu, const vpps_batch *batch);

/* Runs the VP's share of a task that vpps_check_task has accepted. False: it was the VP's last task. */
bool vpps_vp_task(vpps_vp *vp, uint32_t at, const vpps_task *task);

/* Runs the VP's part of the script. A task that is unknown, cut short, or that names what there is not ends the
 * batch with SCRIPT; a wait longer than the watchdog's time with STALL. */
void vpps_vp_run(vpps_vp *vp);

/* The vertices of a STAGE that a VP runs, and its share of it. */
vpps_rows vpps_stage_part(const vpps_cpu *cpu, uint32_t vp, const vpps_task *task);
void vpps_vp_stage(vpps_vp *vp, uint32_t address, const vpps_task *task);

/* ---- threads.c */

/* Waits, spinning for a moment, then asleep, until the counter's value is at least `least` (modulo 2^32). Ends before if the batch has
 * failed, or the time is up, if there is a limit; time in which the process was stopped does not count. */
typedef enum vpps_wait_end { VPPS_WAIT_REACHED, VPPS_WAIT_FAILED, VPPS_WAIT_TIMEOUT } vpps_wait_end;
vpps_wait_end vpps_wait_for(vpps_cpu *cpu, vpps_counter *counter, uint32_t least, uint64_t limit_ns,
                            bool until_failure);

/* After a sequentially consistent change of the counter's value: wakes all threads that sleep on it. */
void vpps_wake(vpps_counter *counter);

/* ---- meetings.c */

/* NEIGHBOURS: VPs that add to one node of a tree. LEAST_TREE: from so many VPs on a tree costs less than a counter. The cost is the number
 * of cache-line hand-overs one after the other: n - 1 for a counter; 8 + n / 8 and those of a gate for a tree. */
enum { VPPS_NEIGHBOURS = 8, VPPS_LEAST_TREE = 12 };

vpps_status vpps_meetings_open(vpps_cpu *cpu);
void vpps_meetings_close(vpps_cpu *cpu);

/* Decides for a launch how VPs meet: m->ordered, m->taken. Fails with MEMORY. */
vpps_status vpps_choose_meetings(vpps_cpu *cpu, const uint32_t *script);

/* Are all barriers of the script, whose parts lie inside it, meetings of a group or of all VPs? signals[n_barriers] becomes how many each
 * barrier gets. */
bool vpps_are_meetings(const uint32_t *script, uint32_t *signals);

/* A member of n comes to its next meeting, `meeting` from 1 on. True: it is the last, and all that the others did before is done. */
bool vpps_meet(vpps_counter *nodes, uint32_t n, uint32_t member, uint32_t meeting);

/* A barrier that gets so many signals. Wait: of a TIMEOUT, *came is how many came. */
void vpps_vp_signal_meeting(vpps_vp *vp, uint32_t signals);
vpps_wait_end vpps_vp_wait_meeting(vpps_vp *vp, uint32_t signals, uint32_t *came);

/* Wakes all VPs that wait at a meeting, after a failure. */
void vpps_meetings_wake(vpps_cpu *cpu);

/* Zeroed memory, at the start of a page; pages come when they are touched. NULL: none. Unmapped with the same size. */
void *vpps_map_pages(size_t bytes);
void vpps_unmap_pages(void *memory, size_t bytes);

/* ---- settle.c */

/* Chooses a place for each VP. Fails with MEMORY. */
vpps_status vpps_cpu_choose_places(vpps_cpu *cpu);

/* Of a VP, by its own thread before the model's parameters are written: holds the thread to its place, unless the caller's is the VP's, and
 * touches the pages of its parameters, which come to the memory of that place's node. */
void vpps_vp_settle(const vpps_vp *vp);

/* Makes room in vp->scratch. False: out of memory. */
bool vpps_vp_scratch(vpps_vp *vp, size_t floats);

/* Decides which gradients are left to the update. */
void vpps_choose_updates(vpps_cpu *cpu);

/* The tasks on parameters. */
void vpps_vp_outer(vpps_vp *vp, uint32_t address, uint32_t block, uint32_t first, uint32_t n);
void vpps_vp_entries(vpps_vp *vp, uint32_t number, uint32_t address);
void vpps_vp_norm(vpps_vp *vp);
void vpps_vp_update(vpps_vp *vp);

/* Gradients of several processes: see share.c. */
vpps_status vpps_cpu_open_share(vpps_cpu *cpu, vpps_communicator *c);

/* To be called by each VP before its first task that reads all gradients. False: the batch has failed. */
bool vpps_vp_share(vpps_vp *vp);

/* Wakes all VPs that wait for the exchange, after a failure. */
void vpps_share_wake(vpps_cpu *cpu);

/* Lookup tables that are shared out: see entries.c. */
vpps_status vpps_entries_open(vpps_entries **out, const vpps_cpu *cpu, vpps_communicator *c);
void vpps_entries_close(vpps_entries *e);

/* A copy of the batch's script. NULL: out of memory. */
uint32_t *vpps_entries_script(vpps_entries *e, const vpps_batch *batch);

/* Gets the entries that cpu->views look up, from all processes, together with them, into the pool after the batch's tensors, and
 * writes into the copied script where they lie. Fails with POOL, MEMORY, SCRIPT, STATE (others do something else than this
 * process, or train another model), STALL. */
vpps_status vpps_entries_fetch(vpps_entries *e, const vpps_cpu *cpu, uint32_t *script);

/* Hands out entries until no process asks for any. Fails likewise. */
vpps_status vpps_entries_serve(vpps_entries *e);

/* The offset in the pool of a fetched entry that a script names so; VPPS_NO_OFFSET: it was not fetched. */
uint32_t vpps_entry_place(const vpps_entries *e, uint32_t offset);

/* Adds the costs of the latest fetch. */
void vpps_entries_cost(const vpps_entries *e, vpps_share_cost *cost);

/* Blocks of part `member` of `group` equal parts of the VPs. */
static inline vpps_blocks vpps_blocks_of(const vpps_cpu *cpu, vpps_param param, uint32_t member, uint32_t group) {
    const vpps_cpu_matrix *m = &cpu->matrices[param];
    const uint32_t share = cpu->n_vps / group, first = m->first_block[member * share];
    return (vpps_blocks){m->blocks + first, m->first_block[(member + 1) * share] - first};
}

/* Makes blocks for every matrix, with room for so many states. */
vpps_status vpps_make_matrices(vpps_cpu *cpu, uint32_t states);
void vpps_free_matrices(vpps_cpu *cpu);

/* Weights in bf16: their memory; packing a block's after its values changed, by the VP that owns it; packing a matrix's. In fp32 there are
 * none. */
vpps_status vpps_make_packs(vpps_cpu *cpu);
void vpps_pack_block(const vpps_cpu *cpu, uint32_t param, uint32_t vp, const vpps_matrix_block *b);
void vpps_pack_matrix(const vpps_cpu *cpu, uint32_t param);

/* The block's part of its VP's transposed copy in bf16. */
void vpps_pack_copy(const vpps_cpu *cpu, uint32_t param, uint32_t vp, const vpps_matrix_block *b);

/* n vectors of `depth` elements, from x[i] + skip on, in bf16 rows, from word *at of vp->vectors on, which the next call may move.
 * What was packed under the key since vpps_forget_vectors is not packed again, unless the key is VPPS_NONE. False: out of
 * memory. */
bool vpps_pack_vectors(vpps_vp *vp, uint32_t key, uint32_t n, uint32_t depth, const float *const *x, uint32_t skip,
                       size_t *at);
/* The same vectors spread, under two keys: for the rows that they are packed in first, and for what comes of them. */
bool vpps_spread_vectors(vpps_vp *vp, uint32_t key, uint32_t spread_key, uint32_t n, uint32_t depth,
                         const float *const *x, uint32_t skip, size_t *at);
void vpps_forget_vectors(vpps_vp *vp);

/* Copies a part of a matrix between the blocks and rows lying one after the other. `part`: VPPS_MATRIX_VALUES, ..._GRADIENT, or
 * ..._STATES plus the state's number. */
enum { VPPS_MATRIX_VALUES, VPPS_MATRIX_GRADIENT, VPPS_MATRIX_STATES };
void vpps_copy_matrix(vpps_cpu *cpu, uint32_t param, float *rows, uint32_t part, bool to_rows);

/* Gradients that add up over launches: see gradients.c. Takes over what the latest launch added,
 * before the next one, which has its place in the pool. Fails with MEMORY. */
vpps_status vpps_take_gradients(vpps_cpu *cpu);
/* For a launch that updates: cpu->segments and the loss are the sums'. Fails with MEMORY. */
vpps_status vpps_open_update(vpps_cpu *cpu);
/* Before a launch that makes gradients without an update: begins a sum, or goes on with the present one. */
void vpps_open_sum(vpps_cpu *cpu);
/* For the device's table: see runtime/device.h. */
void vpps_cpu_zero_gradients(vpps_device *d);
vpps_status vpps_cpu_read_gradients(vpps_device *d, vpps_model *model);
vpps_status vpps_cpu_write_gradients(vpps_device *d, const vpps_model *model);

/* The VP's rows of a parameter. */
static inline vpps_rows vpps_rows_of_vp(const vpps_cpu *cpu, vpps_param param, uint32_t vp) {
    return vpps_rows_of(cpu->model->params[param].rows, VPPS_ROW_UNIT, cpu->n_vps, vp);
}

/* Where an item of a value lies in the pool: what the block's records name, or a kept value that does not only pass. `item`
 * counts the block's vertices or members. */
static inline float *vpps_in_pool(const vpps_cpu *cpu, const vpps_block_view *view, const vpps_cell_value *x,
                                  uint32_t item) {
    switch (x->kind) {
    case VPPS_VALUE_INPUT: return cpu->pool + view->inputs[x->input][item];
    case VPPS_VALUE_LOOKUP: return cpu->pool + view->lookups[x->lookup][item];
    case VPPS_VALUE_PARAMETER: return cpu->pool + cpu->plan.values[x->vector];
    default: return cpu->pool + view->block->kept[x->axis] + (size_t)item * view->cell->kept_words[x->axis] + x->offset;
    }
}

/* Takes a choice of kernels, precision and unit, by trials of this processor unless the options forbid it; before there are
 * matrices. Fails as the communicator does. */
vpps_status vpps_cpu_open_products(vpps_cpu *cpu);

/* For the device's table. */
void vpps_cpu_choice_text(const vpps_device *d, char *text);
vpps_status vpps_cpu_take_choice(vpps_device *d, const char *text);

/* Chooses how stages are shared out: by an earlier profile of such a machine and model, unless the options forbid it; with options->tune
 * and no such profile, by a new one, on the batches that are trained. */
void vpps_cpu_open_splits(vpps_cpu *cpu);

/* ---- groups.c */

/* By what a batch costs. */
uint32_t vpps_cpu_groups(const vpps_batch_extent *e, uint32_t most);

/* For the device's table: see runtime/device.h. */
vpps_status vpps_cpu_tune(vpps_device *d);
bool vpps_cpu_measured(const vpps_device *d, uint32_t i, vpps_trial *out);

/* Decides by its script alone which matrices' transposed copies this launch uses, and makes those that are out of date: see copies.c. */
void vpps_choose_copies(vpps_cpu *cpu);

/* Does a VP use copies of the matrix in this launch? The update of a block also updates its copy. */
static inline bool vpps_has_copies(const vpps_cpu *cpu, uint32_t param) {
    const bool needed = cpu->precision.parts && !cpu->precision.unit.product_t;
    return needed || cpu->matrices[param].wanted == cpu->launch;
}

/* Makes a VP's copy of its rows. */
void vpps_transpose_rows(const vpps_cpu *cpu, uint32_t param, uint32_t vp);

/* The vectors that one VP multiplies with transposed matrices for a product, in a task of so many items; `rows`: by rows. */
static inline uint32_t vpps_vectors_of_task(const vpps_compiled_cell *c, const vpps_program_step *product, bool rows,
                                            const uint32_t *items) {
    const uint32_t n = items[product->axis] * product->to.cols;
    return rows ? n : n / c->needs.group;
}

/* The norm of the gradient, whose parts the VPs have published, added in their order; 0 where the script takes none. */
double vpps_cpu_norm(const vpps_cpu *cpu);

/* Reports a failure, unless another VP has, and stops the batch. `address`: of the task. */
void vpps_vp_fail(vpps_vp *vp, vpps_status status, uint32_t address, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same for a failure that no task causes. */
void vpps_cpu_fail(vpps_cpu *cpu, vpps_status status, const char *message);

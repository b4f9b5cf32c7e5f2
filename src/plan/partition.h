/* partition.h - which rows of which matrix lie in which registers of which VP.
 *
 * Rows are owned as plan.h says (vpps_rows_of, with blocks of rpw rows): row r of every matrix with equally many rows is
 * the same VP's, so a cell's elementwise tail needs no barrier after its products. Where every VP's rows of a matrix are
 * few (256 rows over 132 VPs: two), all VPs hold some of every matrix, and a product is shared by all of them.
 *
 * A piece is rpw consecutive rows of one matrix, held by one warp. A VP's pieces, matrix after matrix, longest rows first,
 * are dealt to its warps round-robin: piece i to warp i % warps as that warp's slot i / warps. A slot is a partition of
 * the register file: rpw x steps registers of every thread, element l + 32 j of a row in lane l's register j. Since code
 * names registers by literal numbers, slot s has as many steps in every warp of every VP: those of the longest row there.
 * A gradient's piece lies beside its weights' (same warp, same slot, other registers); it leaves them once, for the update.
 *
 * The transposed copy, where there is one, holds columns as if they were rows: pieces of rpw columns.
 */
#ifndef VPPS_PARTITION_H
#define VPPS_PARTITION_H

#include "graph/model.h"
#include "plan/machine.h"
#include "plan/plan.h"

/* Column steps that one switch over slots multiplies: operands take so many registers, however long rows are. */
enum { VPPS_CHUNK_STEPS = 8, VPPS_LANES = 32, VPPS_MAX_RPW = 8 };

/* What may be chosen; the rest follows from it, the model and the machine. */
typedef struct vpps_partition_choice {
    uint32_t rpw;         /* rows per warp: 1, 2, 4, 8 */
    uint32_t threads;     /* of a CTA: 256, 384, 512 */
    uint32_t ctas_per_sm; /* 1, 2 */
    uint32_t vectors;     /* multiplied at a time: 1, 2, 4 */
    uint32_t spare;       /* registers of the budget to leave alone: a plan whose kernel spilled is retried with more */
    bool transposed;      /* a transposed copy in registers: backward is a product of rows too; else partial sums */
    bool deferred;        /* gradients by one product a matrix after the kernel's first part; else in registers */
} vpps_partition_choice;

typedef enum vpps_level { VPPS_LEVEL_REGISTERS, VPPS_LEVEL_SHARED, VPPS_LEVEL_STREAM } vpps_level;

typedef struct vpps_slot {
    uint32_t steps;
    vpps_level level;
    uint32_t at;     /* registers: its first one; shared memory: its first word; stream: 0 */
    uint32_t master; /* its first word in a VP's block of the master copy: [warp][row][step][lane] */
} vpps_slot;

/* A matrix, or its transposed copy, over the VPs. */
typedef struct vpps_placing {
    vpps_slot *slots;
    uint32_t n_slots;
    uint32_t *first_piece; /* [vp * n_matrices + matrix] */
    uint32_t registers;    /* of every thread */
    uint32_t shared_words; /* of every CTA */
} vpps_placing;

typedef struct vpps_matrix {
    uint32_t param, rows, cols;
    uint64_t gradient; /* first word in the gradients' buffer: rows x cols, row after row */
} vpps_matrix;

typedef struct vpps_partition {
    vpps_machine machine;
    vpps_partition_choice choice;
    uint32_t n_vps, warps;
    uint32_t n_matrices, n_params;
    vpps_matrix *matrices;      /* in the order of placing: longest rows first */
    uint32_t *matrix_of_param;  /* UINT32_MAX: no matrix */
    vpps_placing rows, columns; /* columns.n_slots 0: no transposed copy */
    uint32_t budget;            /* registers a thread may use for weights, gradients and transposed copy together */
    uint32_t cached;            /* that it uses */
    uint64_t vp_words;          /* of the master copy, a VP's block */
    uint64_t master_words;      /* the blocks, and a row of zeros behind them */
    uint64_t zero_row;          /* where that lies */
    uint64_t gradient_words;
} vpps_partition;

/* Makes the plan. Fails with POOL: the choice does not fit (the message says by how much); ARGUMENT: a value that
 * vpps_partition_choice does not have. Free with vpps_partition_destroy in any case. */
vpps_status vpps_partition_create(vpps_partition *out, const vpps_model *model, const vpps_machine *machine,
                                  const vpps_partition_choice *choice);
void vpps_partition_destroy(vpps_partition *p);

/* Choices that fit, the most promising first: of one rpw all, then of the next; at most `room` (VPPS_MAX_CHOICES are
 * enough for all). `fixed`: values other than 0 are kept, as are `transposed` and `deferred` where keep_strategy. */
enum { VPPS_MAX_CHOICES = 64 };
uint32_t vpps_partition_choices(const vpps_model *model, const vpps_machine *machine,
                                const vpps_partition_choice *fixed, bool keep_strategy, vpps_partition_choice *out,
                                uint32_t room);

/* Where row r of matrix m lies: VP, warp, slot, row of the piece; and the first word in the master copy. */
typedef struct vpps_row_place {
    uint32_t vp, warp, slot, row;
    uint64_t word;
} vpps_row_place;
vpps_row_place vpps_partition_row(const vpps_partition *p, uint32_t matrix, uint32_t row);

/* The VP's pieces of a matrix's rows (columns: of its transposed copy): numbers first .. first + n - 1. */
typedef struct vpps_pieces {
    uint32_t first, n;
    vpps_rows rows; /* that they hold */
} vpps_pieces;
vpps_pieces vpps_partition_pieces(const vpps_partition *p, bool columns, uint32_t matrix, uint32_t vp);

/* Tables for people: sizes and levels, then a row a VP (at most `vps` of them; 0: all); a picture of register files. */
vpps_status vpps_partition_print(const vpps_partition *p, const vpps_model *model, uint32_t vps, FILE *file);
vpps_status vpps_partition_svg(const vpps_partition *p, const vpps_model *model, FILE *file);

#endif

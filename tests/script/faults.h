/* faults.h - scripts with one fault each, made by hand from right ones: how they are edited, and where. */
#pragma once

#include "common/training.h"
#include "mutate.h"

typedef struct batch {
    vpps_model *model;
    vpps_graph *g;
    job job;
    editor e;
} batch;

enum { ROWS = 64, STEPS = 4 };

/* Schedules b->g, which must give a right script. */
void begin_batch(batch *b); /* a model without parameters, and its graph */
void open_batch(batch *b, vpps_node loss, way w);
/* Opens a recurrent network over a few words, trained by two virtual processors that share out rows. */
void open_recurrent(batch *b);
/* Opens a batch that infers op(x) of a vector of ROWS, by so many virtual processors. */
void open_inference(batch *b, vpps_node (*op)(vpps_graph *g, vpps_node x), uint32_t n_vps);
void close_batch(batch *b);

/* Returns what the checker says of the script as it is now. */
vpps_status verify_edited(const batch *b);

/* Returns the last block of a cell that has vertices. */
vpps_block *block_of(batch *b, const char *cell, uint32_t *number);
/* Return an address: of task number n, from 0, of a kind; of the n-th task that waits. */
uint32_t find(batch *b, vpps_task_kind kind, uint32_t n);
uint32_t find_wait(batch *b, uint32_t n);

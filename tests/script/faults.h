/* faults.h - scripts with one fault each, made by hand from right ones: what is edited, and where. */
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
void open_batch(batch *b, vpps_node loss, way w);
/* A recurrent net over a few words, trained by two VPs that share rows out. */
void open_recurrent(batch *b);
/* What infers op(x) of a vector of ROWS, by so many VPs. */
void open_inference(batch *b, vpps_node (*op)(vpps_graph *g, vpps_node x), uint32_t n_vps);
void close_batch(batch *b);

/* What the checker says of the script as it is now. */
vpps_status verify_edited(const batch *b);

/* The last block of a cell with vertices. */
vpps_block *block_of(batch *b, const char *cell, uint32_t *number);
/* The address of the n-th task of a kind, from 0; of the n-th that waits; of the first stage of a block. */
uint32_t find(batch *b, vpps_task_kind kind, uint32_t n);
uint32_t find_wait(batch *b, uint32_t n);
uint32_t stage_of(batch *b, uint32_t block);

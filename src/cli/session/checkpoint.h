/* checkpoint.h - what a checkpoint holds besides its tensors: options, vocabularies, the position in training. */
#pragma once

#include "cli/session/best.h"
#include "cli/session/plot.h"
#include "cli/session/session.h"

/* How far training has come. A checkpoint from the middle of an epoch continues with the epoch's next batch. */
typedef struct position {
    uint32_t epoch;   /* finished epochs */
    uint32_t batch;   /* finished batches of the current epoch */
    uint64_t trained; /* number of examples trained on since the network's training began */
    double loss_sum;  /* sum of the current epoch's n_losses finite losses */
    uint32_t n_losses;
    /* --train-accuracy: numbers of correctly classified, and of labelled, words or nodes in the current epoch */
    uint64_t right, labelled;
    best_measure best; /* the best measurements of dev */
    uint32_t lr_drops; /* number of times that --lr-schedule plateau has lowered the learning rate */
} position;

/* Checks that vocabularies and file names are UTF-8, which a checkpoint's metadata must be. Fails with FORMAT. */
vpps_status checkpoint_check(const settings *s, const corpus *c);

/* Writes a checkpoint. `curves`: the points that a resumed run's plot begins with; `states`: the recurrent states (--carry) that its next
 * batch begins with, NULL for none. */
vpps_status checkpoint_save(session *x, const char *path, const corpus *c, const position *p, const plot *curves,
                            const carry *states);

/* Takes options, classes and vocabularies from a checkpoint. Options on the command line take precedence; when training is resumed, those that are
 * OPTION_FIXED must equal the checkpoint's. Data files may have moved: see checkpoint_check_data. `p` NULL: no training position is needed. Call it
 * before session_open, and vpps_load afterwards. Fails with IO, FORMAT (a missing entry), ARGUMENT (another network or fixed option), MEMORY. */
vpps_status checkpoint_describe(const char *path, settings *s, corpus *c, position *p);

/* Reads a checkpoint's learning curves into a plot without points; a checkpoint without curves adds none. */
vpps_status checkpoint_curves(const char *path, plot *p);

/* Reads the recurrent states (--carry) with which the next batch begins. Fails with FORMAT: the checkpoint has no states, or states of another batch
 * size. */
vpps_status checkpoint_carry(const char *path, const session *x, carry *states);

/* Returns whether files a and b are checkpoints of one run: same network, words, data, and options that --resume may not change. */
bool checkpoint_same_run(const settings *s, const char *a, const char *b);

/* Checks by hashes that the data that were read equal those the checkpoint was trained on. Fails with ARGUMENT. */
vpps_status checkpoint_check_data(const char *path, const settings *s, const corpus *c);

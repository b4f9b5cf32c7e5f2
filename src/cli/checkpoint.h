/* checkpoint.h - a checkpoint's contents besides its tensors: options, vocabularies, position. */
#pragma once

#include "cli/best.h"
#include "cli/plot.h"
#include "cli/session.h"

/* Where training stands. A checkpoint taken in the middle of an epoch continues with the next batch of it. */
typedef struct position {
    uint32_t epoch;   /* epochs finished */
    uint32_t batch;   /* batches finished in the one begun */
    uint64_t trained; /* examples, since the network's training began */
    double loss_sum;  /* over the finite losses of the epoch begun */
    uint32_t n_losses;
    uint64_t right, labelled; /* --train-accuracy: positions of the epoch begun that were classified right, and all */
    best_measure best;        /* on dev */
    uint32_t lr_drops;        /* how often --lr-schedule plateau has lowered the learning rate */
} position;

/* Checks that the vocabularies and the names of files are UTF-8, as a checkpoint's metadata must be. Fails with FORMAT. */
vpps_status checkpoint_check(const settings *s, const corpus *c);

/* `curves`: what a resumed run's plot is to begin with; `states`: what its next batch is to begin with, NULL: nothing. */
vpps_status checkpoint_save(session *x, const char *path, const corpus *c, const position *p, const plot *curves,
                            const carry *states);

/* Takes options, classes and vocabularies from a checkpoint. An option on the command line wins, unless training is
 * resumed and it is fixed: then it must say the same. Paths may lead elsewhere: checkpoint_check_data. `p` NULL: the position
 * is not wanted, and need not be there. Call before the session is opened; vpps_load afterwards.
 * Fails with IO, FORMAT (a file without what it takes), ARGUMENT (another network, another fixed option), MEMORY. */
vpps_status checkpoint_describe(const char *path, settings *s, corpus *c, position *p);

/* The curves of the run so far, into a plot without points; none where the checkpoint has none. */
vpps_status checkpoint_curves(const char *path, plot *p);

/* The states that the next batch begins with. Fails with FORMAT: there are none, or of another batch size. */
vpps_status checkpoint_carry(const char *path, const session *x, carry *states);

/* Are two files checkpoints of one run: of the same network, options that cannot change, words and data? */
bool checkpoint_same_run(const settings *s, const char *a, const char *b);

/* Are the data that were read those that the checkpoint was made with, wherever they lie? Fails with ARGUMENT. */
vpps_status checkpoint_check_data(const char *path, const settings *s, const corpus *c);

/* train.c - `vpps train`: epochs over shuffled examples, with evaluation, checkpoints, log and plot.
 *
 * vpps_fb only starts a batch, and returns the loss of the preceding batch, so that the next graph is built while
 * the device runs. Only the end of an epoch, a checkpoint and an evaluation wait. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/number.h"
#include "cli/common/signals.h"
#include "cli/input/corpus_read.h"
#include "cli/output/log.h"
#include "cli/output/output_files.h"
#include "cli/output/progress.h"
#include "cli/session/checkpoint.h"
#include "cli/session/measure.h"
#include "cli/session/parameters.h"
#include "cli/session/plot.h"
#include "cli/session/schedule.h"
#include "cli/session/team.h"
#include "io/descriptor.h"
#include "io/output.h"
#include "runtime/cores.h"
#include "runtime/devices.h"
#include "runtime/handle.h"

#include <math.h>

/* A moment of a run: ns of training so far, without evaluation and files, and number of sentences trained so far. */
typedef struct clock_mark {
    uint64_t ns, sentences;
} clock_mark;

typedef struct trainer {
    settings *s;
    corpus corpus;
    team team;
    session session;
    position position;
    progress progress;
    run_log log;
    plot plot;
    uint32_t *order;    /* examples of the training split in this epoch's order */
    uint32_t *costs;    /* predicted work per example, by which processes share the examples (team_costs) */
    uint32_t *own;      /* the examples of a batch that this process trains */
    carry carry;        /* --carry: recurrent states after the latest piece of each stream (part of the text) */
    char *options;      /* the options that must be equal in all processes */
    bool stop;          /* whether the processes have agreed to stop */
    clock_mark started; /* when the first batch ended, in which kernels are compiled or matrix products timed */
    bool measured;      /* whether the network has been evaluated since its latest update */
    bool saved;         /* whether --save has written the network since its latest update */
    double counts[2];   /* of words or nodes in this process's part of the batch: [0] classified right, [1] labelled */
    bool in_flight;     /* whether a batch runs whose loss has not been taken yet */
    uint32_t flight_batch; /* number of the batch in flight in its epoch, from 1 */
    float flight_rate;     /* learning rate of the batch that is running */
    uint64_t eval_ns;      /* ns spent on evaluation and files, not counted in sentences per second */
    train_summary summary;
} trainer;

/* Returns the number of examples per update of the parameters: --accumulate times --batch. An update counts as one batch of the epoch. */
static uint32_t batch_examples(const trainer *t) {
    const uint64_t n = (uint64_t)t->s->batch * t->s->accumulate;
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static uint32_t batches_per_epoch(const trainer *t) {
    const uint32_t n = t->corpus.split[SPLIT_TRAIN].n_examples, examples = batch_examples(t);
    return n / examples + (n % examples != 0);
}

/* ---------------------------------------------------------------- set-up */

/* Shows a message of the engine above the line of progress, and logs it. */
static void tell(void *context, const char *line) {
    trainer *t = context;
    progress_line(&t->progress, "%s", line);
    log_engine(&t->log, line); /* a log that cannot be written is reported with the next batch */
}

static vpps_status open_files(trainer *t) {
    const settings *s = t->s;
    const char *const paths[] = {s->save, s->save_best, s->plot, s->trace}; /* log_open checks the log */
    VPPS_TRY(output_files_check(s));
    VPPS_TRY(overwrite_check_run(s));
    for (size_t i = 0; i < VPPS_COUNT(paths); i++) VPPS_TRY(output_file_check(paths[i]));
    VPPS_TRY(log_open(&t->log, s->log, s->resume != NULL));
    if (t->log.was_cut) corpus_note(&t->corpus, "%s: its last line is cut: the log goes on in the next one", s->log);
    return VPPS_OK;
}

/* Checks that there are dev data for options that decide by measurements of dev. */
static vpps_status check_dev(const trainer *t) {
    const settings *s = t->s;
    const char *option = s->save_best                         ? "save-best"
                         : s->patience                        ? "patience"
                         : s->lr_schedule == SCHEDULE_PLATEAU ? "lr-schedule plateau"
                                                              : NULL;
    if (!option) return VPPS_OK;
    if (!s->eval_every) return vpps_fail(VPPS_ARGUMENT, "--%s goes with --eval-every of 1 or more", option);
    if (t->corpus.split[SPLIT_DEV].present) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "--%s needs a dev part to measure, and %s has none: --dev FILE", option,
                     corpus_name(s));
}

/* Refuses an option that was given with a value other than the default, but has no effect because of the values of other options. */
static vpps_status check_effect(const settings *s) {
    const bool in_steps = s->lr_schedule == SCHEDULE_STEP || s->lr_schedule == SCHEDULE_PLATEAU;
    if (options_given(s, "momentum") && s->momentum != 0.9f && s->optimizer != VPPS_MOMENTUM)
        return vpps_fail(VPPS_ARGUMENT, "--momentum goes with --optimizer momentum");
    if (options_given(s, "lr-every") && s->lr_every != 1 && !in_steps)
        return vpps_fail(VPPS_ARGUMENT, "--lr-every goes with --lr-schedule step or plateau");
    return VPPS_OK;
}

/* Loads the state (checkpoint) from which a resumed run continues. */
static vpps_status take_up(trainer *t) {
    const char *path = t->s->resume;
    VPPS_TRY(checkpoint_check_data(path, t->s, &t->corpus));
    VPPS_TRY(session_load(&t->session, path));
    if (t->s->net.carry && t->position.batch) VPPS_TRY(checkpoint_carry(path, &t->session, &t->carry));
    if (t->position.batch <= batches_per_epoch(t)) return checkpoint_curves(path, &t->plot);
    return vpps_fail(VPPS_FORMAT, "%s stands at batch %u of an epoch, but the data has %u: other data?", path,
                     t->position.batch, batches_per_epoch(t));
}

/* Returns whether a signal has come to any of the processes; each process learns this after the same batch. */
static bool stopped(const trainer *t) { return t->team.c ? t->stop : interrupted; }

static vpps_status open_trainer(trainer *t) {
    settings *s = t->s;
    if (s->resume) VPPS_TRY(checkpoint_describe(s->resume, s, &t->corpus, &t->position));
    if (s->init) VPPS_TRY(init_take_sizes(s));
    options_complete(s);
    VPPS_TRY(check_effect(s));
    t->saved = s->resume && !options_given(s, "save");
    t->options = team_options(s);
    team_quieten(&t->team, s);
    VPPS_TRY(open_files(t));

    progress_open(&t->progress, s->quiet);
    t->session.log = tell;
    t->session.log_context = t;
    t->session.team = t->team.c ? &t->team : NULL;
    VPPS_TRY(session_open_on(&t->session, s, &t->corpus));
    if (s->save || s->save_best) VPPS_TRY(checkpoint_check(s, &t->corpus));
    VPPS_TRY(check_dev(t));
    if (s->net.carry) VPPS_TRY(team_alone(t->session.team, "carry"));
    if (s->net.carry) VPPS_TRY(carry_open(&t->carry, batch_examples(t)));
    const char *data = corpus_name(s);
    plot_open(&t->plot, s->network->name, data, task_for(s));
    if (s->resume) VPPS_TRY(take_up(t));
    if (s->class_weights && !s->resume) VPPS_TRY(class_weights_set(&t->session, &t->corpus));
    if (s->class_weights) VPPS_TRY(class_weights_tell(&t->session, &t->corpus, tell, t));
    const uint32_t n = t->corpus.split[SPLIT_TRAIN].n_examples;
    t->order = malloc(((size_t)n + 1) * sizeof *t->order);
    t->own = malloc(((size_t)n + 1) * sizeof *t->own);
    if (!t->order || !t->own) return vpps_fail(VPPS_MEMORY, "no memory for the order of %u examples", n);
    VPPS_TRY(team_costs(&t->team, &t->corpus, s->network->kind, &t->corpus.split[SPLIT_TRAIN], &t->costs));
    interrupt_install(); /* before this line a signal ends the process, which has nothing to save */

    vpps_stats stats = {.size = sizeof stats};
    VPPS_TRY(vpps_handle_stats(t->session.handle, &stats));
    char examples[48], words[32], classes[32], vps[32], cores[64] = "";
    const vpps_device_table *device = vpps_device_named(stats.device);
    if (device && device->host_vps && stats.vps > vpps_cores_allowed())
        snprintf(cores, sizeof cores, " on %u cores: more VPs than cores are slower", vpps_cores_allowed());
    progress_line(&t->progress, "%s on %s: %s, %s, %s; %s with %s%s", s->network->name, data,
                  number_of(n, task_for(s)->examples, examples, sizeof examples),
                  number_of(s->net.words, "words", words, sizeof words),
                  number_of(s->net.classes, "classes", classes, sizeof classes), stats.device,
                  number_of(stats.vps, "VPs", vps, sizeof vps), cores);
    if (s->precision)
        progress_line(&t->progress, "products in %s (%s), all else in fp32", stats.precision, stats.precision_unit);
    if (t->position.epoch || t->position.batch)
        progress_line(&t->progress, "resumed from %s after epoch %u, batch %u", s->resume, t->position.epoch,
                      t->position.batch);
    if (t->team.c) progress_line(&t->progress, "%u processes", t->team.size);
    return log_start(&t->log, s, n);
}

static void close_trainer(trainer *t) {
    progress_end(&t->progress);
    log_close(&t->log);
    plot_free(&t->plot);
    VPPS_FREE(t->order, t->costs, t->own, t->options);
    carry_free(&t->carry, t->session.handle);
    session_close(&t->session);
    corpus_close(&t->corpus);
}

/* ---------------------------------------------------------------- batches */

static clock_mark mark_now(const trainer *t) { return (clock_mark){vpps_now_ns() - t->eval_ns, t->summary.sentences}; }

/* Returns sentences per second since `begin`, without the run's first batch if there were others; NaN: there were no sentences. */
static double rate_since(const trainer *t, clock_mark begin) {
    const clock_mark now = mark_now(t);
    if (begin.ns < t->started.ns && t->started.sentences < now.sentences) begin = t->started;
    const double seconds = (double)(now.ns - begin.ns) * 1e-9;
    return now.sentences > begin.sentences ? (double)(now.sentences - begin.sentences) / seconds : NAN;
}

static double mean_loss(const trainer *t) {
    return t->position.n_losses ? t->position.loss_sum / t->position.n_losses : NAN;
}

static vpps_status take_loss(trainer *t, float loss) {
    const uint32_t batch = t->flight_batch;
    t->in_flight = false;
    t->stop |= vpps_handle_votes(t->session.handle) != 0;
    if (isfinite(loss)) {
        t->position.loss_sum += (double)loss;
        t->position.n_losses++;
    }
    VPPS_TRY(plot_loss(&t->plot, t->position.epoch + (double)batch / batches_per_epoch(t), (double)loss));
    if (batch % t->s->log_every != 0) return VPPS_OK;
    return log_batch(&t->log, t->position.epoch + 1, batch, (double)loss, (double)t->flight_rate);
}

static double train_accuracy(const position *p) { return p->labelled ? (double)p->right / (double)p->labelled : NAN; }

/* Waits for the running batch, if there is one, and adds its loss; with --train-accuracy also its counts, summed over all processes. */
static vpps_status finish_batch(trainer *t) {
    if (!t->in_flight) return VPPS_OK;
    float loss;
    VPPS_TRY(vpps_sync_latest_loss(t->session.handle, &loss));
    if (t->s->train_accuracy) {
        VPPS_TRY(team_sum(&t->team, 2, t->counts));
        t->position.right += (uint64_t)t->counts[0];
        t->position.labelled += (uint64_t)t->counts[1];
        t->counts[0] = t->counts[1] = 0;
    }
    return take_loss(t, loss);
}

/* Writes a checkpoint, and notes it in *saved. With path NULL writes no file, but with has_part sends this process's rows of tables divided
 * among processes to the first process, which writes them. */
static vpps_status save_to(trainer *t, const char *path, bool has_part, saved_file *saved) {
    if (!path) return has_part ? vpps_save(t->session.handle, "", NULL, 0) : VPPS_OK;
    const uint64_t begin = vpps_now_ns();
    const position *p = &t->position;
    VPPS_TRY(vpps_trace_begin(t->session.handle, "save"));
    VPPS_TRY(checkpoint_save(&t->session, path, &t->corpus, p, &t->plot, p->batch ? &t->carry : NULL));
    VPPS_TRY(vpps_trace_end(t->session.handle));
    *saved = (saved_file){path, p->epoch, p->batch};
    t->eval_ns += vpps_now_ns() - begin;
    return VPPS_OK;
}

/* Writes the checkpoint of --save: one process writes, all wait. */
static vpps_status save(trainer *t) {
    VPPS_TRY(save_to(t, t->s->save, t->team.saves, &t->summary.saved));
    t->saved = true;
    return team_meet(&t->team);
}

/* Builds the graph of this process's part of n examples from number `first` of the epoch on. *loss is the sum of their losses divided by
 * `in_batch`. */
static vpps_status build_graph(trainer *t, uint32_t first, uint32_t n, uint32_t in_batch, vpps_node *loss) {
    uint32_t n_own;
    *loss = VPPS_NO_NODE;
    VPPS_TRY(team_deal(&t->team, t->costs, t->order + first, n, t->own, &n_own));
    if (t->carry.n_streams) {
        t->session.carry = &t->carry;
        t->carry.first = first - t->position.batch * batch_examples(t);
    }
    if (n_own)
        VPPS_TRY(
            session_add_batch(&t->session, &t->corpus, &t->corpus.split[SPLIT_TRAIN], t->own, n_own, in_batch, loss));
    t->session.carry = NULL;
    return VPPS_OK;
}

/* Sets the engine's learning rate for the next batch, and the rates of --lr-of. */
static vpps_status set_rates(trainer *t, float *rate) {
    const session *x = &t->session;
    const position *p = &t->position;
    const uint32_t batches = batches_per_epoch(t);
    *rate = schedule_rate(t->s, t->s->lr, p->epoch, p->batch, batches, p->lr_drops);
    VPPS_TRY(vpps_set_learning_rate(x->handle, *rate));
    for (const parameter_rate *r = x->rates; r < x->rates + x->n_rates; r++) {
        const vpps_param_group group = {.size = sizeof group,
                                        .lr = schedule_rate(t->s, r->lr, p->epoch, p->batch, batches, p->lr_drops),
                                        .momentum = NAN,
                                        .weight_decay = NAN};
        VPPS_TRY(vpps_set_param_group(x->handle, 1, &r->param, &group));
    }
    return VPPS_OK;
}

static vpps_status count_graph(trainer *t) {
    vpps_stats stats = {.size = sizeof stats};
    VPPS_TRY(vpps_handle_stats(t->session.handle, &stats));
    t->summary.levels += stats.levels;
    t->summary.steps += stats.steps;
    t->summary.instructions += stats.instructions;
    t->summary.script_bytes += stats.script_bytes;
    return VPPS_OK;
}

/* Starts the batch of n examples from number `first` of the epoch on, and takes the preceding batch's loss. */
static vpps_status step(trainer *t, uint32_t first, uint32_t n) {
    vpps_node loss;
    float stale;
    VPPS_TRY(build_graph(t, first, n, n, &loss));
    VPPS_TRY(vpps_fb(t->session.handle, t->session.graph, loss, &stale));
    VPPS_TRY(count_graph(t));
    return t->in_flight ? take_loss(t, stale) : VPPS_OK;
}

/* Trains a batch of n examples as several graphs of --batch examples each: accumulates their gradients, then updates once. */
static vpps_status step_in_parts(trainer *t, uint32_t first, uint32_t n) {
    vpps_node loss;
    for (uint32_t done = 0; done < n; done += t->s->batch) {
        VPPS_TRY(build_graph(t, first + done, vpps_min_u32(t->s->batch, n - done), n, &loss));
        VPPS_TRY(finish_batch(t));
        VPPS_TRY(t->s->train_accuracy ? session_backward(&t->session, loss, t->counts)
                                      : vpps_backward(t->session.handle, t->session.graph, loss, NULL));
        VPPS_TRY(count_graph(t));
    }
    return vpps_update(t->session.handle);
}

static vpps_status train_batch(trainer *t) {
    const uint32_t first = t->position.batch * batch_examples(t);
    const uint32_t n = vpps_min_u32(batch_examples(t), t->corpus.split[SPLIT_TRAIN].n_examples - first);
    float rate;
    VPPS_TRY(set_rates(t, &rate));
    vpps_handle_vote(t->session.handle, interrupted != 0);
    VPPS_TRY(t->s->accumulate > 1 || t->s->train_accuracy ? step_in_parts(t, first, n) : step(t, first, n));
    t->in_flight = true;
    t->flight_batch = ++t->position.batch;
    t->flight_rate = rate;
    t->position.trained += n;
    t->summary.sentences += n;
    t->summary.batches++;
    t->measured = t->saved = false;
    return VPPS_OK;
}

static vpps_status begin_epoch(trainer *t) {
    const corpus_split *train = &t->corpus.split[SPLIT_TRAIN];
    if (!t->s->net.carry) return corpus_shuffle(train, t->s->seed, t->position.epoch, t->order), VPPS_OK;
    carry_order(train->examples, train->n_examples, t->carry.n_streams, t->order);
    if (t->position.batch) return VPPS_OK;
    carry_free(&t->carry, t->session.handle);
    return carry_open(&t->carry, batch_examples(t));
}

static bool at_limit(const trainer *t) { return t->s->max_batches && t->summary.batches >= t->s->max_batches; }

/* Trains the rest of an epoch; stops early at a limit or a signal. */
static vpps_status train_epoch(trainer *t) {
    const corpus_split *train = &t->corpus.split[SPLIT_TRAIN];
    char label[32];
    snprintf(label, sizeof label, "epoch %u/%u", t->position.epoch + 1, t->s->epochs);
    progress_begin(&t->progress, label, task_for(t->s)->examples, (uint64_t)t->position.batch * batch_examples(t),
                   train->n_examples);
    VPPS_TRY(begin_epoch(t));
    VPPS_TRY(team_meet(&t->team));
    team_busy(&t->team, false);
    while (t->position.batch < batches_per_epoch(t) && !stopped(t) && !at_limit(t)) {
        VPPS_TRY(train_batch(t));
        if (t->summary.batches == 1) {
            VPPS_TRY(finish_batch(t));
            t->started = mark_now(t);
        }
        const uint64_t done = (uint64_t)t->position.batch * batch_examples(t);
        progress_update(&t->progress, done < train->n_examples ? done : train->n_examples, mean_loss(t));
        if (t->s->save_every && t->summary.batches % t->s->save_every == 0) {
            VPPS_TRY(finish_batch(t));
            team_busy(&t->team, true);
            VPPS_TRY(save(t));
            team_busy(&t->team, false);
        }
    }
    VPPS_TRY(finish_batch(t));
    team_busy(&t->team, true); /* until the next epoch, other processes' watchdogs wait for this one */
    return VPPS_OK;
}

/* ---------------------------------------------------------------- evaluation */

static void forget_measures(trainer *t) {
    for (int i = 0; i < N_SPLITS; i++) t->summary.split[i].known = false;
}

/* Measures dev and test. If interrupted, drops all measured values and leaves t->measured false. */
static vpps_status evaluate(trainer *t) {
    const uint64_t begin = vpps_now_ns();
    bool known = true;
    VPPS_TRY(vpps_trace_begin(t->session.handle, "evaluate"));
    for (int i = SPLIT_DEV; i <= SPLIT_TEST && known; i++) {
        if (!t->corpus.split[i].present) continue;
        VPPS_TRY(measure_part(&t->session, &t->corpus, &t->corpus.split[i], &interrupted, &t->summary.split[i]));
        known = t->summary.split[i].known; /* false: interrupted before the end, in all processes alike */
    }
    VPPS_TRY(vpps_trace_end(t->session.handle));
    t->eval_ns += vpps_now_ns() - begin;
    t->measured = known;
    t->stop |= !known;
    if (!known) forget_measures(t);
    return VPPS_OK;
}

/* Adds the latest measurement to the curves. Sets *best if dev was never better, for --save-best. */
static vpps_status take_measures(trainer *t, bool due, bool *best) {
    position *p = &t->position;
    for (int i = SPLIT_DEV; i <= SPLIT_TEST; i++) {
        if (!t->corpus.split[i].present) continue;
        VPPS_TRY(plot_measures(&t->plot, i, p->epoch + (double)p->batch / batches_per_epoch(t), &t->summary.split[i]));
    }
    *best = best_take(&p->best, task_for(t->s), &t->summary.split[SPLIT_DEV], p->epoch, p->batch, due);
    if (due && schedule_drops(t->s, &p->best)) p->lr_drops++;
    return *best ? save_to(t, t->s->save_best, t->team.saves_best, &t->summary.saved_best) : VPPS_OK;
}

/* Computes the mean number of losses per example in this run, over all processes. */
static vpps_status count_losses(trainer *t) {
    double sums[2] = {(double)t->session.trained_losses, (double)t->session.trained_examples};
    VPPS_TRY(team_sum(&t->team, 2, sums));
    t->summary.losses = sums[1] > 0 ? sums[0] / sums[1] : 0;
    return VPPS_OK;
}

static void print_epoch(trainer *t, double loss, double rate) {
    const task *kind = task_for(t->s);
    char text[256] = "", value[64];
    size_t len = 0;
    if (t->s->train_accuracy) {
        number_text(100 * t->summary.train_accuracy, 1, value, sizeof value);
        len = (size_t)snprintf(text, sizeof text, "  train accuracy %s%%", value);
    }
    for (int i = SPLIT_DEV; i <= SPLIT_TEST; i++) {
        const measures *m = &t->summary.split[i];
        bool named = false;
        for (int k = 0; k < MAX_METRICS && kind->metrics[k].name; k++) {
            if (!report_has(m, k)) continue;
            report_metric(&kind->metrics[k], m->value[k], value, sizeof value);
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s %s", named ? "" : "  ",
                                    named ? "" : split_names[i], value);
            named = true;
            if (len >= sizeof text) len = sizeof text - 1;
        }
    }
    report_loss(kind, loss, t->summary.losses, value, sizeof value);
    char speed[48] = "";
    if (!isnan(rate)) snprintf(speed, sizeof speed, "  %.0f %s/s", rate, kind->examples);
    progress_line(&t->progress, "epoch %u/%u  loss %s%s%s", t->position.epoch, t->s->epochs, value, text, speed);
}

static bool out_of_patience(const trainer *t) { return best_is_old(&t->position.best, t->s->patience); }

/* Ends an epoch after its last batch: measures the network if --eval-every asks for a measurement now, moves the run's position to the next
 * epoch, and saves a checkpoint. If the user interrupts the measurement, the position stays at the epoch's end: a resumed run repeats the
 * measurement. */
static vpps_status finish_epoch(trainer *t, double rate) {
    const double loss = mean_loss(t);
    position *p = &t->position;
    const uint32_t epoch = p->epoch + 1;
    const bool due = t->s->eval_every && epoch % t->s->eval_every == 0;
    bool best;
    forget_measures(t);
    if (due || (t->s->eval_every && epoch == t->s->epochs)) {
        VPPS_TRY(evaluate(t));
        if (!t->measured) return VPPS_OK;
    }
    t->summary.train_accuracy = train_accuracy(p);
    t->summary.loss = loss;
    p->epoch = epoch;
    p->batch = p->n_losses = 0;
    p->loss_sum = 0;
    p->right = p->labelled = 0;
    if (t->measured) VPPS_TRY(take_measures(t, due, &best));
    VPPS_TRY(count_losses(t));
    print_epoch(t, loss, rate);
    VPPS_TRY(log_epoch(&t->log, p->epoch, loss, t->summary.train_accuracy, rate, task_for(t->s),
                       &t->summary.split[SPLIT_DEV], &t->summary.split[SPLIT_TEST]));
    if (t->s->plot) VPPS_TRY(plot_write(&t->plot, t->s->plot));
    return save(t);
}

/* ---------------------------------------------------------------- the run */

static vpps_status summarize(trainer *t) {
    train_summary *u = &t->summary;
    u->stats = (vpps_stats){.size = sizeof u->stats};
    VPPS_TRY(vpps_handle_stats(t->session.handle, &u->stats));
    u->settings = t->s;
    u->session = &t->session;
    double nodes = (double)u->stats.total_nodes;
    VPPS_TRY(team_sum(&t->team, 1, &nodes));
    VPPS_TRY(count_losses(t));
    u->nodes = (uint64_t)nodes;
    u->processes = t->team.size;
    u->epoch = t->position.epoch;
    u->best = t->position.best;
    u->interrupted = stopped(t);
    u->out_of_patience = out_of_patience(t);
    progress_end(&t->progress);
    VPPS_TRY(log_end(&t->log, u));
    return t->team.rank ? VPPS_OK : report_train(u);
}

static void tell_nothing_left(trainer *t) {
    const settings *s = t->s;
    const position *p = &t->position;
    char line[512], count[48];
    if (!s->resume)
        snprintf(line, sizeof line, "nothing is trained: --epochs is %u", s->epochs);
    else if (out_of_patience(t))
        snprintf(line, sizeof line, "nothing is left to train: dev has been no better for %s (--patience %u)",
                 number_of(p->best.since, "measurements", count, sizeof count), s->patience);
    else
        snprintf(line, sizeof line, "nothing is left to train: %s%s has %s, and --epochs is %u",
                 VPPS_PATH_ARGS(s->resume), number_of(p->epoch, "epochs", count, sizeof count), s->epochs);
    tell(t, line);
}

/* Saves the final network, then measures it unless that was done. The saved checkpoint lacks this measurement, which a longer run would not
 * make here. If --save-best finds the network the best, it is saved again, with the measurement. */
static vpps_status conclude(trainer *t) {
    bool best;
    if (!t->saved) VPPS_TRY(save(t));
    if (!t->s->eval_every || stopped(t) || t->measured) return VPPS_OK;
    forget_measures(t);
    VPPS_TRY(evaluate(t));
    if (!t->measured) return VPPS_OK;
    VPPS_TRY(take_measures(t, false, &best));
    double kept = t->s->save_best != NULL;
    /* only the first process has --save-best; the sum over all processes (more than 0: given) tells the others */
    VPPS_TRY(team_sum(&t->team, 1, &kept));
    return best && kept > 0 ? save(t) : VPPS_OK;
}

static vpps_status train(trainer *t) {
    VPPS_TRY(team_open(&t->team, t->s));
    VPPS_TRY(team_agree(&t->team, open_trainer(t))); /* all processes begin, or none does */
    VPPS_TRY(team_compare(&t->team, t->options, &t->corpus, t->session.model));
    const clock_mark begin = mark_now(t);
    t->summary.loss = t->summary.train_accuracy = NAN;
    while (t->position.epoch < t->s->epochs && !stopped(t) && !at_limit(t) && !out_of_patience(t)) {
        const clock_mark epoch_begin = mark_now(t);
        VPPS_TRY(train_epoch(t));
        if (t->position.batch < batches_per_epoch(t)) break;
        VPPS_TRY(finish_epoch(t, rate_since(t, epoch_begin)));
    }
    if (t->position.batch) t->summary.loss = mean_loss(t);
    if (t->position.batch) t->summary.train_accuracy = train_accuracy(&t->position);
    if (!t->summary.batches && !stopped(t)) tell_nothing_left(t);
    t->summary.seconds = (double)(mark_now(t).ns - begin.ns) * 1e-9;
    if (t->summary.batches > 1) t->summary.start_seconds = (double)(t->started.ns - begin.ns) * 1e-9;
    t->summary.sentences_per_s = rate_since(t, begin);
    VPPS_TRY(conclude(t));
    if (t->s->plot) VPPS_TRY(plot_write(&t->plot, t->s->plot));
    VPPS_TRY(session_write_trace(&t->session));
    return summarize(t);
}

int command_train(settings *s) {
    trainer t = {.s = s};
    const vpps_status status = train(&t);
    int code = stopped(&t) ? EXIT_INTERRUPTED : 0;
    if (status != VPPS_OK) {
        progress_end(&t.progress);
        code = team_fail(&t.team, status);
    }
    close_trainer(&t);
    team_close(&t.team);
    return code;
}

/* report.c - prints results, for people and for programs. */
#include "cli/output/report.h"
#include "base/base.h"
#include "cli/common/number.h"
#include "cli/input/corpus_read.h"
#include "cli/output/trials.h"
#include "cli/session/classes.h"

#include <inttypes.h>
#include <math.h>

json_t *report_measures(const task *t, const measures *m) {
    if (!m->known) return json_null();
    json_t *o = json_object();
    for (int i = 0; i < MAX_METRICS && t->metrics[i].name; i++) {
        json_object_set_new(o, t->metrics[i].name, report_number(m->value[i]));
    }
    return o;
}

void report_metric(const metric *kind, double value, char *text, size_t n) {
    char number[32];
    number_text(kind->share ? 100 * value : value, kind->share ? 1 : fabs(value) < 1000 ? 2 : 0, number, sizeof number);
    snprintf(text, n, "%s %s%s", kind->text, number, kind->share && isfinite(value) ? "%" : "");
}

void report_loss(const task *t, double loss, double losses, char *text, size_t n) {
    char number[32], each[32];
    number_text(loss, 4, number, sizeof number);
    number_text(loss / losses, 4, each, sizeof each);
    const bool several = t->loss_of && losses > 1 && isfinite(loss);
    snprintf(text, n, several ? "%s (%s a %s)" : "%s", number, each, t->loss_of);
}

bool report_has(const measures *m, int i) {
    return m->known && (!isnan(m->value[i]) || (m->nonfinite && m->counted[i]));
}

/* ---------------------------------------------------------------- train */

/* Returns the measures of the test split if known, else the measures of the dev split. */
static const measures *final_measures(const train_summary *t) {
    return t->split[SPLIT_TEST].known ? &t->split[SPLIT_TEST] : &t->split[SPLIT_DEV];
}

/* Adds the metrics' values to an object, with the signature that says how they were computed. */
static void set_result(json_t *o, const task *t, const measures *m) {
    json_object_set_new(o, "metrics", report_measures(t, m));
    if (t == task_of(NET_TREES))
        json_object_set_new(o, "accuracy", report_measures(t, m)); /* "accuracy" is the older name of "metrics" */
    if (t->signature) json_object_set_new(o, "signature", json_string(t->signature()));
}

/* Returns as JSON the number of words for which --vectors has a vector, and the number of other words; null without --vectors. */
static json_t *vectors_json(const train_summary *t) {
    const vpps_vectors_found *f = &t->session->vectors;
    if (!f->words) return json_null();
    return json_pack("{si si si so}", "words", (int)f->words, "found", (int)f->found, "composed", (int)f->composed,
                     "share", report_number((double)(f->found + f->composed) / f->words));
}

/* Returns as JSON how many parameters were taken from the file of --init; null without --init. */
static json_t *init_json(const init_found *f) {
    if (!f->parameters) return json_null();
    return json_pack("{si si si}", "parameters", (int)f->parameters, "whole", (int)f->whole, "partly", (int)f->partly);
}

static void set_saved(json_t *o, const train_summary *t) {
    const saved_file *s = &t->saved, *best = &t->saved_best;
    json_object_set_new(o, "save", s->path ? json_string(s->path) : json_null());
    json_object_set_new(o, "save_epoch", s->path ? json_integer(s->epoch) : json_null());
    json_object_set_new(o, "save_batch", s->path ? json_integer(s->batch) : json_null());
    json_object_set_new(o, "save_best", best->path ? json_string(best->path) : json_null());
    json_object_set_new(o, "save_best_epoch", best->path ? json_integer(best->epoch) : json_null());
}

json_t *report_train_json(const train_summary *t) {
    const settings *s = t->settings;
    json_t *o = json_pack("{ss ss si si si}", "model", s->network->name, "device", t->stats.device, "vps",
                          (int)t->stats.vps, "batch", (int)s->batch, "hidden", (int)s->net.hidden);
    json_object_set_new(o, "precision", json_string(t->stats.precision));
    json_object_set_new(o, "precision_unit", json_string(t->stats.precision_unit));
    /* null means that embeddings are as large as the hidden state */
    json_object_set_new(o, "embed", s->net.embed ? json_integer(s->net.embed) : json_null());
    json_object_set_new(o, "layers", s->net.layers ? json_integer(s->net.layers) : json_null());
    json_object_set_new(o, "data", json_string(corpus_name(s)));
    json_object_set_new(o, "epochs", json_integer(t->epoch));
    json_object_set_new(o, "sentences", json_integer((json_int_t)t->sentences));
    json_object_set_new(o, "seconds", report_number(t->seconds));
    json_object_set_new(o, "start_seconds", report_number(t->start_seconds));
    json_object_set_new(o, "sentences_per_s", report_number(t->sentences_per_s));
    json_object_set_new(o, "batches", json_integer((json_int_t)t->batches));
    json_object_set_new(o, "skipped", json_integer((json_int_t)t->stats.skipped));
    json_object_set_new(o, "nodes", json_integer((json_int_t)t->nodes));
    json_object_set_new(o, "loss", report_number(t->loss));
    json_object_set_new(o, "train_accuracy", report_number(t->train_accuracy));
    set_result(o, task_for(s), final_measures(t));
    json_object_set_new(o, "dev", report_measures(task_for(s), &t->split[SPLIT_DEV]));
    json_object_set_new(o, "test", report_measures(task_for(s), &t->split[SPLIT_TEST]));
    json_object_set_new(o, "best_dev", t->best.any.found ? report_number(t->best.any.value) : json_null());
    json_object_set_new(o, "best_dev_epoch", t->best.any.found ? json_integer(t->best.epoch) : json_null());
    json_object_set_new(o, "host_ms_per_batch", report_number(t->host_ms_per_batch));
    json_object_set_new(o, "device_ms_per_batch", report_number(t->device_ms_per_batch));
    json_object_set_new(o, "gap_ms_per_batch", report_number(t->gap_ms_per_batch));
    json_object_set_new(o, "build_ns_per_node", report_number(t->build_ns_per_node));
    json_object_set_new(o, "flops_per_sentence", report_number(t->flops_per_sentence));
    json_object_set_new(o, "bytes_per_batch", report_number(t->bytes_per_batch));
    json_object_set_new(o, "script_bytes_per_batch", report_number(t->script_bytes_per_batch));
    json_object_set_new(o, "levels_per_batch", report_number(t->levels_per_batch));
    json_object_set_new(o, "steps_per_batch", report_number(t->steps_per_batch));
    json_object_set_new(o, "policy", t->stats.policy ? json_string(t->stats.policy) : json_null());
    json_object_set_new(o, "gradients", t->stats.gradients ? json_string(t->stats.gradients) : json_null());
    json_object_set_new(o, "instructions_per_batch", report_number(t->instructions_per_batch));
    json_object_set_new(o, "pool_bytes", json_integer((json_int_t)t->stats.peak_pool_bytes));
    json_object_set_new(o, "processes", json_integer(t->processes));
    json_object_set_new(o, "imbalance", report_number(t->stats.imbalance));
    json_object_set_new(o, "exchange_ms_per_batch", report_number(t->exchange_ms_per_batch));
    json_object_set_new(o, "sent_bytes_per_batch", report_number(t->sent_bytes_per_batch));
    json_object_set_new(o, "plans", trials_json(t->session->handle, s->verbose));
    json_object_set_new(o, "vectors", vectors_json(t));
    set_saved(o, t);
    json_object_set_new(o, "init", init_json(&t->session->init));
    json_object_set_new(o, "out_of_patience", json_boolean(t->out_of_patience));
    json_object_set_new(o, "interrupted", json_boolean(t->interrupted));
    return o;
}

/* Prints a line such as `test       root  44.1 %   all nodes  80.2 %   (2210 trees, 82600 labelled nodes)`. */
static void print_measures(const char *name, const task *t, const measures *m) {
    if (!m->known) return;
    const char *separator = "(";
    bool first = true;
    printf("%-9s", name);
    for (int i = 0; i < MAX_METRICS && t->metrics[i].name; i++) {
        char number[32];
        if (!report_has(m, i)) continue;
        number_text(t->metrics[i].share ? 100 * m->value[i] : m->value[i], t->metrics[i].share ? 1 : 2, number,
                    sizeof number);
        printf(t->metrics[i].share ? "%s%s %5s %%" : "%s%s %s", first ? "  " : "   ", t->metrics[i].text, number);
        first = false;
    }
    fputs("   ", stdout);
    for (int i = 0; i < MAX_METRICS && t->metrics[i].name; i++) {
        if (!report_has(m, i) || !t->metrics[i].of) continue;
        char text[64];
        printf("%s%s", separator, number_of(m->counted[i], t->metrics[i].of, text, sizeof text));
        separator = ", ";
    }
    puts(*separator == ',' ? ")" : "");
}

/* Prints a line: a result's name, its value or file, and after how many epochs and batches the result was made. */
static void print_when(const char *name, const char *what, uint32_t epoch, uint32_t batch) {
    printf("%-9s  %s   after epoch %u", name, what, epoch);
    if (batch) printf(" and batch %u of the next", batch);
    putchar('\n');
}

static void print_best(const task *t, const train_summary *u) {
    if (!u->best.any.found) return;
    char text[64];
    report_metric(&t->metrics[u->best.metric], u->best.any.value, text, sizeof text);
    print_when("best dev", text, u->best.epoch, u->best.batch);
}

vpps_status report_train(const train_summary *t) {
    if (t->settings->json) return report_json_line(report_train_json(t), stdout);
    if (t->settings->quiet) return VPPS_OK;
    const task *kind = task_for(t->settings);
    char text[96], time[32], rate[96] = "";
    int n = 0;
    if (t->sentences) n = snprintf(rate, sizeof rate, ": %.0f a second", t->sentences_per_s);
    if (t->start_seconds > t->seconds / 10)
        snprintf(rate + n, sizeof rate - (size_t)n, ", %s of start-up left out",
                 number_time(t->start_seconds, time, sizeof time));
    if (t->sentences || t->interrupted)
        printf("%-9s  %s in %s%s\n", t->interrupted ? "stopped" : "trained",
               number_of(t->sentences, kind->examples, text, sizeof text), number_time(t->seconds, time, sizeof time),
               rate);
    if (t->batches) {
        report_loss(kind, t->loss, t->losses, text, sizeof text);
        printf("loss       %s\n", text);
    }
    print_measures("dev", kind, &t->split[SPLIT_DEV]);
    print_measures("test", kind, &t->split[SPLIT_TEST]);
    print_best(kind, t);
    if (t->session->vectors.words) {
        const uint32_t have = t->session->vectors.found + t->session->vectors.composed;
        printf("vectors    of %u of %u words (%.1f %%)\n", have, t->session->vectors.words,
               100.0 * have / t->session->vectors.words);
    }
    if (kind->signature) printf("signature  %s\n", kind->signature());
    if (t->stats.skipped)
        printf("skipped    %s with a loss or gradient that is not finite\n",
               number_of(t->stats.skipped, "batches", text, sizeof text));
    if (t->batches && t->settings->verbose) {
        printf("a batch    host %.2f ms   device %.2f ms   gap %.3f ms   script %.1f KB   %.0f levels   %.0f "
               "instructions   gradients by %s\n",
               t->host_ms_per_batch, t->device_ms_per_batch, t->gap_ms_per_batch, t->script_bytes_per_batch / 1e3,
               t->levels_per_batch, t->instructions_per_batch, t->stats.gradients);
    }
    if (t->processes > 1 && t->settings->verbose) {
        printf("processes  %u   imbalance %.1f %%   exchange %.2f ms and %.1f KB a batch\n", t->processes,
               100 * t->stats.imbalance, t->exchange_ms_per_batch, t->sent_bytes_per_batch / 1e3);
    }
    if (t->out_of_patience) {
        printf("patience   dev has been no better for %u measurement%s\n", t->best.since,
               t->best.since == 1 ? "" : "s");
    }
    if (t->saved.path) print_when("saved", t->saved.path, t->saved.epoch, t->saved.batch);
    if (t->saved_best.path) print_when("best", t->saved_best.path, t->saved_best.epoch, t->saved_best.batch);
    if (t->settings->save_best && !t->saved_best.path) {
        printf("best       %s was not written: no measurement of this run was the best\n", t->settings->save_best);
    }
    return flush_stdout();
}

/* ---------------------------------------------------------------- eval */

vpps_status report_eval(session *x, const corpus *c, const measures *m, double seconds) {
    const settings *s = x->settings;
    const task *t = task_for(s);
    if (!s->json) {
        if (!s->quiet) print_measures(split_names[s->split], t, m);
        if (!s->quiet && t->signature) printf("signature  %s\n", t->signature());
        if (!s->quiet && x->classes) classes_print(x->classes, c->vocab[VOCAB_CLASSES], stdout);
        return flush_stdout();
    }
    vpps_stats stats = {.size = sizeof stats};
    VPPS_TRY(vpps_handle_stats(x->handle, &stats));
    json_t *o = json_pack("{ss ss si ss ss ss}", "model", s->network->name, "device", stats.device, "vps",
                          (int)stats.vps, "file", s->model, "data", corpus_name(s), "split", split_names[s->split]);
    json_object_set_new(o, "precision", json_string(stats.precision));
    json_object_set_new(o, "sentences", json_integer(m->examples));
    json_object_set_new(o, "seconds", report_number(seconds));
    json_object_set_new(o, "sentences_per_s", report_number(seconds > 0 ? m->examples / seconds : 0));
    set_result(o, t, m);
    if (x->classes) json_object_update_missing_new(o, classes_json(x->classes, c->vocab[VOCAB_CLASSES]));
    return report_json_line(o, stdout);
}

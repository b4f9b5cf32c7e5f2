/* report.c - prints results, for people and for programs. */
#include "cli/output/report.h"
#include "base/base.h"
#include "cli/common/number.h"
#include "cli/input/corpus_read.h"
#include "cli/session/classes.h"

#include <inttypes.h>
#include <math.h>

json_t *report_measures(const task *t, const measures *m) {
    if (!m->known) return json_null();
    json_t *o = json_object();
    for (int i = 0; i < MAX_METRICS && t->metrics[i].name; i++)
        json_object_set_new(o, t->metrics[i].name, report_number(m->value[i]));
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

/* Adds the metrics' values to an object, with the signature that says how they were computed. */
static void set_result(json_t *o, const task *t, const measures *m) {
    json_object_set_new(o, "metrics", report_measures(t, m));
    if (t->signature) json_object_set_new(o, "signature", json_string(t->signature()));
}

static double per_batch(const train_summary *t, double sum) { return sum / (t->batches ? (double)t->batches : 1); }

static json_t *count_or_null(uint32_t n) { return n ? json_integer(n) : json_null(); }

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
    const vpps_stats *x = &t->stats;
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"seconds", t->seconds},
        {"start_seconds", t->start_seconds},
        {"sentences_per_s", t->sentences_per_s},
        {"loss", t->loss},
        {"train_accuracy", t->train_accuracy},
        {"host_ms_per_batch", per_batch(t, 1e-6 * (double)x->total_host_ns)},
        {"device_ms_per_batch", per_batch(t, 1e-6 * (double)x->total_device_ns)},
        {"gap_ms_per_batch", per_batch(t, 1e-6 * (double)x->total_gap_ns)},
        {"script_bytes_per_batch", per_batch(t, (double)t->script_bytes)},
        {"levels_per_batch", per_batch(t, (double)t->levels)},
        {"steps_per_batch", per_batch(t, (double)t->steps)},
        {"instructions_per_batch", per_batch(t, (double)t->instructions)},
        {"imbalance", x->imbalance},
        {"exchange_ms_per_batch", per_batch(t, 1e-6 * (double)x->total_exchange_ns)},
        {"sent_bytes_per_batch", per_batch(t, (double)x->total_sent_bytes)},
    };
    /* embed null: embeddings are as large as the hidden state */
    json_t *o = json_pack(
        "{ss ss si si si ss ss so so so* sI sI sI sI sI sI sI ss? ss? sb sb}", "model", s->network->name, "device",
        x->device, "vps", (int)x->vps, "batch", (int)s->batch, "hidden", (int)s->net.hidden, "precision", x->precision,
        "precision_unit", x->precision_unit, "embed", count_or_null(s->net.embed), "layers",
        count_or_null(s->net.layers), "data", json_string(corpus_name(s)), "epochs", (json_int_t)t->epoch, "sentences",
        (json_int_t)t->sentences, "batches", (json_int_t)t->batches, "skipped", (json_int_t)x->skipped, "nodes",
        (json_int_t)t->nodes, "pool_bytes", (json_int_t)x->peak_pool_bytes, "processes", (json_int_t)t->processes,
        "policy", x->policy, "gradients", x->gradients, "out_of_patience", (int)t->out_of_patience, "interrupted",
        (int)t->interrupted);
    for (size_t i = 0; i < VPPS_COUNT(numbers); i++)
        json_object_set_new(o, numbers[i].name, report_number(numbers[i].value));
    set_result(o, task_for(s), &t->split[t->split[SPLIT_TEST].known ? SPLIT_TEST : SPLIT_DEV]);
    json_object_set_new(o, "dev", report_measures(task_for(s), &t->split[SPLIT_DEV]));
    json_object_set_new(o, "test", report_measures(task_for(s), &t->split[SPLIT_TEST]));
    json_object_set_new(o, "best_dev", t->best.any.found ? report_number(t->best.any.value) : json_null());
    json_object_set_new(o, "best_dev_epoch", t->best.any.found ? json_integer(t->best.epoch) : json_null());
    json_object_set_new(o, "plans", trials_json(t->session->handle, false));
    set_saved(o, t);
    const vpps_vectors_found *f = &t->session->vectors; /* all zero without --vectors */
    json_object_set_new(o, "vectors",
                        f->words ? json_pack("{si si so}", "words", (int)f->words, "found", (int)f->found, "share",
                                             report_number((double)f->found / f->words))
                                 : json_null());
    const init_found *init = &t->session->init;
    json_object_set_new(o, "init",
                        init->parameters
                            ? json_pack("{si si}", "parameters", (int)init->parameters, "whole", (int)init->whole)
                            : json_null());
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
    if (t->best.any.found) {
        report_metric(&kind->metrics[t->best.metric], t->best.any.value, text, sizeof text);
        print_when("best dev", text, t->best.epoch, t->best.batch);
    }
    if (kind->signature) printf("signature  %s\n", kind->signature());
    if (t->stats.skipped)
        printf("skipped    %s with a loss or gradient that is not finite\n",
               number_of(t->stats.skipped, "batches", text, sizeof text));
    if (t->out_of_patience)
        printf("patience   dev has been no better for %s\n",
               number_of(t->best.since, "measurements", text, sizeof text));
    if (t->saved.path) print_when("saved", t->saved.path, t->saved.epoch, t->saved.batch);
    if (t->saved_best.path) print_when("best", t->saved_best.path, t->saved_best.epoch, t->saved_best.batch);
    if (t->settings->save_best && !t->saved_best.path)
        printf("best       %s was not written: no measurement of this run was the best\n", t->settings->save_best);
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
    json_t *o =
        json_pack("{ss ss si ss ss ss ss sI so so}", "model", s->network->name, "device", stats.device, "vps",
                  (int)stats.vps, "file", s->model, "data", corpus_name(s), "split", split_names[s->split], "precision",
                  stats.precision, "sentences", (json_int_t)m->examples, "seconds", report_number(seconds),
                  "sentences_per_s", report_number(seconds > 0 ? m->examples / seconds : 0));
    set_result(o, t, m);
    if (x->classes) json_object_update_missing_new(o, classes_json(x->classes, c->vocab[VOCAB_CLASSES]));
    return report_json_line(o, stdout);
}

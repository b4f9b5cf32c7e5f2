/* report.c - results and failures, for people and for programs. */
#include "report.h"
#include "base/base.h"
#include "trials.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>

json_t *report_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

json_t *report_accuracy(const accuracy *a) {
    if (!a->known) return json_null();
    return json_pack("{so so}", "root", report_number(accuracy_root(a)), "nodes", report_number(accuracy_nodes(a)));
}

vpps_status report_json_line(json_t *object, FILE *file) {
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(object);
    if (!text) return vpps_fail(VPPS_MEMORY, "no memory for a line of JSON");
    const bool written = fprintf(file, "%s\n", text) > 0 && fflush(file) == 0;
    free(text);
    return written ? VPPS_OK : vpps_fail(VPPS_IO, "cannot write a line of JSON: %s", strerror(errno));
}

static vpps_status flush_stdout(void) {
    if (fflush(stdout) != 0 || ferror(stdout)) return vpps_fail(VPPS_IO, "stdout: %s", strerror(errno));
    return VPPS_OK;
}

/* ---------------------------------------------------------------- train */

static double sentences_per_s(const train_summary *t) { return t->seconds > 0 ? (double)t->sentences / t->seconds : 0; }

/* test where there is one, else dev */
static const accuracy *final_accuracy(const train_summary *t) {
    return t->split[SPLIT_TEST].known ? &t->split[SPLIT_TEST] : &t->split[SPLIT_DEV];
}

json_t *report_train_json(const train_summary *t) {
    const settings *s = t->settings;
    json_t *o = json_pack("{ss ss si si si}", "model", s->network->name, "device", t->device, "vps", (int)t->vps,
                          "batch", (int)s->batch, "hidden", (int)s->net.hidden);
    json_object_set_new(o, "embed", s->net.embed ? json_integer(s->net.embed) : json_null()); /* null: hidden */
    json_object_set_new(o, "data", json_string(corpus_name(s)));
    json_object_set_new(o, "epochs", json_integer(t->epoch));
    json_object_set_new(o, "sentences", json_integer((json_int_t)t->sentences));
    json_object_set_new(o, "seconds", report_number(t->seconds));
    json_object_set_new(o, "sentences_per_s", report_number(sentences_per_s(t)));
    json_object_set_new(o, "batches", json_integer((json_int_t)t->batches));
    json_object_set_new(o, "skipped", json_integer((json_int_t)t->skipped));
    json_object_set_new(o, "nodes", json_integer((json_int_t)t->nodes));
    json_object_set_new(o, "loss", report_number(t->loss));
    json_object_set_new(o, "accuracy", report_accuracy(final_accuracy(t)));
    json_object_set_new(o, "dev", report_accuracy(&t->split[SPLIT_DEV]));
    json_object_set_new(o, "test", report_accuracy(&t->split[SPLIT_TEST]));
    json_object_set_new(o, "best_dev_root", t->best_dev < 0 ? json_null() : report_number(t->best_dev));
    json_object_set_new(o, "best_dev_epoch", t->best_dev < 0 ? json_null() : json_integer(t->best_epoch));
    json_object_set_new(o, "host_ms_per_batch", report_number(t->host_ms_per_batch));
    json_object_set_new(o, "device_ms_per_batch", report_number(t->device_ms_per_batch));
    json_object_set_new(o, "script_bytes_per_batch", report_number(t->script_bytes_per_batch));
    json_object_set_new(o, "levels_per_batch", report_number(t->levels_per_batch));
    json_object_set_new(o, "instructions_per_batch", report_number(t->instructions_per_batch));
    json_object_set_new(o, "pool_bytes", json_integer((json_int_t)t->pool_bytes));
    json_object_set_new(o, "plans", trials_json(t->handle));
    json_object_set_new(o, "save", t->checkpoint ? json_string(t->checkpoint) : json_null());
    json_object_set_new(o, "interrupted", json_boolean(t->interrupted));
    return o;
}

static void print_accuracy(const char *name, const accuracy *a) {
    if (!a->known) return;
    printf("%-9s  root %5.1f %%", name, 100 * accuracy_root(a));
    if (a->nodes > a->roots) printf("   all nodes %5.1f %%", 100 * accuracy_nodes(a));
    printf("   (%llu trees", (unsigned long long)a->roots);
    if (a->nodes > a->roots) printf(", %llu labelled nodes", (unsigned long long)a->nodes);
    puts(")");
}

vpps_status report_train(const train_summary *t) {
    if (t->settings->json) return report_json_line(report_train_json(t), stdout);
    if (t->settings->quiet) return VPPS_OK;
    printf("%-9s  %llu trees in %.1f s: %.0f trees/s\n", t->interrupted ? "stopped" : "trained",
           (unsigned long long)t->sentences, t->seconds, sentences_per_s(t));
    if (isfinite(t->loss)) printf("loss       %.4f a tree\n", t->loss);
    print_accuracy("dev", &t->split[SPLIT_DEV]);
    print_accuracy("test", &t->split[SPLIT_TEST]);
    if (t->best_dev >= 0) printf("best dev   root %5.1f %%   after epoch %u\n", 100 * t->best_dev, t->best_epoch);
    if (t->skipped) printf("skipped    %llu batches with a loss that is not finite\n", (unsigned long long)t->skipped);
    if (t->batches) {
        printf("a batch    host %.2f ms   device %.2f ms   script %.1f KB   %.0f levels   %.0f instructions\n",
               t->host_ms_per_batch, t->device_ms_per_batch, t->script_bytes_per_batch / 1e3, t->levels_per_batch,
               t->instructions_per_batch);
    }
    if (t->checkpoint) printf("saved      %s\n", t->checkpoint);
    return flush_stdout();
}

/* ---------------------------------------------------------------- eval */

vpps_status report_eval(session *x, const corpus_split *split, const accuracy *a, double seconds) {
    const settings *s = x->settings;
    if (!s->json) {
        if (!s->quiet) print_accuracy(split_names[s->split], a);
        return flush_stdout();
    }
    vpps_stats stats;
    VPPS_TRY(vpps_handle_stats(x->handle, &stats));
    json_t *o = json_pack("{ss ss si ss ss ss}", "model", s->network->name, "device", stats.device, "vps",
                          (int)stats.vps, "file", s->model, "data", corpus_name(s), "split", split_names[s->split]);
    json_object_set_new(o, "sentences", json_integer(split->n_trees));
    json_object_set_new(o, "seconds", report_number(seconds));
    json_object_set_new(o, "sentences_per_s", report_number(seconds > 0 ? split->n_trees / seconds : 0));
    json_object_set_new(o, "accuracy", report_accuracy(a));
    return report_json_line(o, stdout);
}

/* ---------------------------------------------------------------- failures */

void report_failure(vpps_status status) {
    const char *message = vpps_error_message();
    fprintf(stderr, "vpps: %s\n", *message ? message : vpps_status_name(status));
}

int report_usage(const char *command, const char *format, ...) {
    va_list arguments;
    const char *space = command ? " " : "";
    if (!command) command = "";
    fprintf(stderr, "vpps%s%s: ", space, command);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nTry `vpps%s%s --help'.\n", space, command);
    return EXIT_USAGE;
}

/* checkpoint.c - reads and writes a checkpoint's metadata: options, vocabularies, position.
 *
 *     network                 name
 *     option.NAME             every saved row of the option table
 *     classes                 number of classes
 *     vocabulary, characters, class_names, lexicon
 *                             words, one per line; a network has some of these entries
 *     train.*                 the position; the plot's curves; the folder that paths are relative to; carried states
 *     data.train, dev, test   hashes of the contents of each split's files */
#include "cli/session/checkpoint.h"
#include "base/base.h"
#include "cli/input/corpus_notes.h"
#include "cli/input/corpus_read.h"
#include "cli/input/data_files.h"
#include "cli/options/save_name.h"
#include "cli/session/defaults.h"
#include "io/descriptor.h"
#include "io/json.h"
#include "io/safetensors.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <unistd.h>

enum { MAX_ENTRIES = OPTIONS_MAX + 24, VALUE_BYTES = 64 };

/* largest value of a checkpoint's counters; a larger one means a damaged file */
#define MOST_COUNTED (UINT64_C(1) << 53)
/* value of train.best_* without a measurement; measured values are not negative */
#define NO_VALUE (-1.0)

typedef struct entry_list {
    vpps_metadata entries[MAX_ENTRIES];
    uint32_t n;
    char keys[MAX_ENTRIES][VALUE_BYTES];
    char values[MAX_ENTRIES][VALUE_BYTES]; /* values of the entries, except for long texts */
} entry_list;

/* Adds a metadata entry. With `text` NULL, returns memory in the list for the value, which the caller fills. */
static char *add_entry(entry_list *list, const char *prefix, const char *key, const char *text) {
    const uint32_t i = list->n++;
    snprintf(list->keys[i], sizeof list->keys[i], "%s%s", prefix, key);
    list->entries[i] = (vpps_metadata){list->keys[i], text ? text : list->values[i]};
    return list->values[i];
}

static vpps_status fail_text(const char *place, const char *text, const char *what) {
    return vpps_fail(VPPS_FORMAT, "%s'%.64s' (%s) is not UTF-8, as a checkpoint needs it", place, text, what);
}

vpps_status checkpoint_check(const settings *s, const corpus *c) {
    for (int k = 0; k < N_VOCABS; k++) {
        for (uint32_t i = 0; c->vocab[k] && i < vpps_vocab_size(c->vocab[k]); i++) {
            const char *word = vpps_vocab_word(c->vocab[k], i);
            if (vpps_is_utf8(word)) continue;
            char place[300];
            corpus_find_word(c, word, place, sizeof place);
            return fail_text(place, word, vocab_names[k]);
        }
    }
    size_t n;
    const cli_option *rows = options_rows(s, &n);
    for (size_t i = 0; i < n; i++) {
        if (!(rows[i].flags & OPTION_SAVED) || rows[i].row.kind != OPTION_TEXT) continue;
        const char *text = options_text(s, &rows[i]);
        if (text && !vpps_is_utf8(text)) return fail_text("", text, rows[i].row.name);
    }
    return VPPS_OK;
}

/* printf's format of the hash of a split's contents. */
#define CONTENT_FORMAT "vpps-64 %016" PRIx64

/* Adds hashes of the data files' contents, and the folder of relative paths; nothing for generated data. */
static void add_data(entry_list *list, const corpus *c, const char *folder) {
    bool files = false;
    for (int i = 0; i < N_SPLITS; i++) {
        if (!c->split[i].present || !c->split[i].n_files) continue;
        snprintf(add_entry(list, "data.", split_names[i], NULL), VALUE_BYTES, CONTENT_FORMAT, c->split[i].content);
        files = true;
    }
    if (files && *folder) add_entry(list, "train.", "folder", folder);
}

static void add_number(entry_list *list, const char *key, uint64_t value) {
    snprintf(add_entry(list, "train.", key, NULL), VALUE_BYTES, "%" PRIu64, value);
}

static void add_real(entry_list *list, const char *key, double value) {
    snprintf(add_entry(list, "train.", key, NULL), VALUE_BYTES, "%.17g", value);
}

static void add_best(entry_list *list, const char *value, const char *next, const best_value *best) {
    add_real(list, value, best->found ? best->value : NO_VALUE);
    add_real(list, next, best->found && isfinite(best->next) ? best->next : NO_VALUE);
}

/* Adds the position in training. train.best_metric is MAX_METRICS while no metric is chosen. */
static void add_position(entry_list *list, const position *p) {
    add_number(list, "epoch", p->epoch);
    add_number(list, "batch", p->batch);
    add_number(list, "trained", p->trained);
    add_real(list, "loss_sum", p->loss_sum);
    add_number(list, "n_losses", p->n_losses);
    add_best(list, "best_dev", "best_next", &p->best.any);
    add_best(list, "best_due", "best_due_next", &p->best.due);
    add_number(list, "best_metric", p->best.chosen ? p->best.metric : MAX_METRICS);
    add_number(list, "best_epoch", p->best.epoch);
    add_number(list, "best_batch", p->best.batch);
    add_number(list, "best_since", p->best.since);
    add_number(list, "lr_drops", p->lr_drops);
    add_number(list, "right", p->right);
    add_number(list, "labelled", p->labelled);
}

vpps_status checkpoint_save(session *x, const char *path, const corpus *c, const position *p, const plot *curves,
                            const carry *states) {
    const settings *s = x->settings;
    char folder[PATH_MAX];
    VPPS_FREED char *curves_text = NULL, *states_text = NULL;
    entry_list list = {.n = 0};
    if (!getcwd(folder, sizeof folder) || !vpps_is_utf8(folder)) *folder = '\0';
    if (states && states->n_states) VPPS_TRY(carry_to_text(states, x->handle, &states_text));
    VPPS_TRY(plot_to_text(curves, &curves_text));
    add_entry(&list, "", "network", s->network->name);
    size_t n;
    const cli_option *rows = options_rows(s, &n);
    for (size_t i = 0; i < n; i++) {
        if (!(rows[i].flags & OPTION_SAVED)) continue;
        /* an option with a text as value: an entry of any length, and only if the option is given */
        if (rows[i].row.kind == OPTION_TEXT) {
            const char *text = options_text(s, &rows[i]);
            if (text) add_entry(&list, "option.", rows[i].row.name, text);
        } else {
            options_write(s, &rows[i], add_entry(&list, "option.", rows[i].row.name, NULL), VALUE_BYTES);
        }
    }
    snprintf(add_entry(&list, "", "classes", NULL), VALUE_BYTES, "%" PRIu32, c->classes);
    add_position(&list, p);
    add_entry(&list, "train.", "curves", curves_text);
    if (states_text) add_entry(&list, "train.", "carry", states_text);
    if (s->save && save_name_varies(s->save)) add_entry(&list, "train.", "save", basename(s->save));
    add_data(&list, c, folder);
    char *words[N_VOCABS] = {NULL};
    vpps_status status = VPPS_OK;
    for (int k = 0; k < N_VOCABS && status == VPPS_OK; k++) {
        if (!c->vocab[k]) continue;
        status = vpps_vocab_to_text(c->vocab[k], &words[k]);
        add_entry(&list, "", vocab_names[k], words[k]);
    }
    if (status == VPPS_OK) status = vpps_save(x->handle, path, list.entries, list.n);
    for (int k = 0; k < N_VOCABS; k++) free(words[k]);
    return status;
}

/* ---------------------------------------------------------------- reading */

/* A checkpoint that is open for reading. */
typedef struct checkpoint {
    const char *path;
    vpps_safetensors *file;
} checkpoint;

static vpps_status open_file(checkpoint *k, const char *path) {
    *k = (checkpoint){.path = path};
    return vpps_safetensors_open_on_disk(&k->file, path);
}

static void close_file(checkpoint *k) { vpps_safetensors_close(k->file); }

/* Returns an entry of the metadata, NULL when there is none. */
static const char *entry_of(const checkpoint *k, const char *prefix, const char *name) {
    char key[VALUE_BYTES];
    snprintf(key, sizeof key, "%s%s", prefix, name);
    return vpps_safetensors_metadata(k->file, key);
}

/* Reads a metadata entry that must exist. */
static vpps_status need(const checkpoint *k, const char *key, const char **value) {
    *value = vpps_safetensors_metadata(k->file, key);
    if (*value) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT,
                     "%s: no \"%s\" in its metadata: not a checkpoint of `vpps train`, or of an older version", k->path,
                     key);
}

static vpps_status fail_number(const checkpoint *k, const char *key, const char *text, const char *expected) {
    return vpps_fail(VPPS_FORMAT, "%s: \"%s\" is \"%.32s\", not %s", k->path, key, text, expected);
}

/* Reads a real number from an entry that must exist: finite, and not negative unless it is NO_VALUE. */
static vpps_status need_real(const checkpoint *k, const char *key, double *out) {
    const char *text;
    char *end;
    VPPS_TRY(need(k, key, &text));
    *out = strtod(text, &end);
    const bool good = end != text && !*end && isfinite(*out) && (*out >= 0 || *out == NO_VALUE);
    return good ? VPPS_OK : fail_number(k, key, text, "a number that fits");
}

/* Reads a whole number up to `most` from an entry that must exist. */
static vpps_status need_number(const checkpoint *k, const char *key, uint64_t most, uint64_t *out) {
    const char *text;
    VPPS_TRY(need(k, key, &text));
    return vpps_read_number(text, most, out) ? VPPS_OK : fail_number(k, key, text, "a whole number that fits");
}

static vpps_status need_u32(const checkpoint *k, const char *key, uint32_t *out) {
    uint64_t x;
    /* the limit INT32_MAX leaves room: a resumed run increases the numbers */
    VPPS_TRY(need_number(k, key, INT32_MAX, &x));
    *out = (uint32_t)x;
    return VPPS_OK;
}

/* What is needed to compare a resumed run's command line with the run's checkpoint. */
typedef struct resuming {
    /* true: the checkpoint has hashes of the data files' contents, so that the files may have moved */
    bool by_content;
    bool from_files;    /* whether the checkpoint's data were files */
    FILE *before, *now; /* texts for the error message: values of changed options in the checkpoint (before), and now */
} resuming;

/* Returns whether the command takes an option from a checkpoint; only --resume takes options of the engine. */
static bool is_taken(const settings *s, const cli_option *o) {
    return (o->flags & OPTION_SAVED) && (s->command == COMMAND_TRAIN || !(o->flags & OPTION_RESUMED));
}

/* Notes, for the error message, an option whose value changed. `before` NULL: the option was not given when the checkpoint was made. */
static void note_change(const resuming *r, const char *name, const char *before, const char *now) {
    const char *separator = ftell(r->now) ? ", " : "";
    const bool given = before && *before;
    fprintf(r->before, "%s%s--%s%s%.200s", separator, given ? "" : "no ", name, given ? " " : "", given ? before : "");
    fprintf(r->now, "%s%s--%s%s%.200s", separator, *now ? "" : "no ", name, *now ? " " : "", now);
}

static vpps_status fail_fixed(const char *path, const char *name, const char *before, const char *now) {
    return vpps_fail(VPPS_ARGUMENT, "%s was made with --%s %.200s: training cannot resume with %.200s", path, name,
                     before, now);
}

/* Checks an option on the command line that the checkpoint lacks: either a text option that was not given when the checkpoint was made, or an option
 * newer than the checkpoint, which then was made with the option's default. */
static vpps_status check_new(const char *path, const settings *s, const cli_option *o, const resuming *r) {
    const bool moved = r->by_content && r->from_files && (o->flags & OPTION_DATA);
    const bool is_text = o->row.kind == OPTION_TEXT, fixed = o->flags & OPTION_FIXED;
    char now[4096], before[4096];
    if (s->command != COMMAND_TRAIN || moved) return VPPS_OK;
    if (is_text && fixed)
        return vpps_fail(VPPS_ARGUMENT, "%s was made without --%s: training cannot resume with it", path, o->row.name);
    const settings defaults = options_defaults(s);
    options_write(s, o, now, sizeof now);
    options_write(&defaults, o, before, sizeof before);
    if (is_text || (!fixed && strcmp(now, before) != 0)) note_change(r, o->row.name, is_text ? NULL : before, now);
    if (is_text || !fixed || strcmp(now, before) == 0) return VPPS_OK;
    return fail_fixed(path, o->row.name, before, now);
}

/* Takes one saved option. If the option is on the command line, keeps the given value, and checks that it equals the saved one where it must not
 * change. */
static vpps_status take_option(const checkpoint *k, settings *s, corpus *c, const cli_option *o, bool given,
                               const resuming *r) {
    char now[4096], why[160];
    const char *value = entry_of(k, "option.", o->row.name);
    /* the checkpoint lacks the option: a text option that was not given, or an option newer than the checkpoint; keep the default */
    if (!value) { return given ? check_new(k->path, s, o, r) : VPPS_OK; }
    if (!given) {
        if (strcmp(o->row.name, "tokenizer") == 0 && strcmp(value, "none") != 0 && strcmp(value, "simple") != 0) {
            return vpps_fail(VPPS_ARGUMENT,
                             "%s%s was trained on words of the command '%.200s': pipe text through it, and give "
                             "--tokenizer none",
                             VPPS_PATH_ARGS(k->path), value);
        }
        if (o->row.kind == OPTION_TEXT) { /* keeps a copy, to which the settings point */
            value = c->texts[c->n_texts] = strdup(value);
            if (!value) return vpps_fail(VPPS_MEMORY, "no memory for the options of %s", k->path);
            c->n_texts++;
        }
        if (options_read(s, o, value, why, sizeof why)) return VPPS_OK;
        return vpps_fail(VPPS_FORMAT, "%s: \"option.%s\" is \"%.64s\", not %s", k->path, o->row.name, value, why);
    }
    if (s->command == COMMAND_TRAIN && !(r->by_content && (o->flags & OPTION_CONTENT))) {
        options_write(s, o, now, sizeof now);
        const bool differs = strcmp(now, value) != 0;
        if (differs && (o->flags & OPTION_FIXED)) return fail_fixed(k->path, o->row.name, value, now);
        if (differs) note_change(r, o->row.name, value, now);
    }
    return VPPS_OK;
}

static resuming look_at_data(const checkpoint *k, const settings *s) {
    size_t n;
    const cli_option *rows = options_rows(s, &n);
    resuming r = {.by_content = vpps_safetensors_metadata(k->file, "data.train") != NULL};
    for (size_t i = 0; i < n; i++) {
        if (!(rows[i].flags & OPTION_DATA) || rows[i].row.kind != OPTION_TEXT) continue;
        r.from_files |= entry_of(k, "option.", rows[i].row.name) != NULL;
    }
    return r;
}

/* Returns whether a data file of that name exists. Sentences with translations are two files; the name with the ending --source is the
 * first one. */
static bool is_there(const settings *s, const char *path) {
    char ending[64] = "", name[4096];
    if (access(path, F_OK) == 0) return true;
    if (s->source) snprintf(ending, sizeof ending, ".%s", s->source);
    return *ending && data_name(path, ending, name, sizeof name) == VPPS_OK && access(name, F_OK) == 0;
}

/* Makes the checkpoint's relative paths relative to the folder in which the checkpoint was made, unless they exist in the current folder. */
static vpps_status find_paths(const checkpoint *k, settings *s, corpus *c) {
    size_t n;
    const cli_option *rows = options_rows(s, &n);
    const char *folder = vpps_safetensors_metadata(k->file, "train.folder");
    for (size_t i = 0; folder && i < n; i++) {
        char *there, why[160];
        const char *text = rows[i].flags & OPTION_CONTENT ? options_text(s, &rows[i]) : NULL;
        if (!text || *text == '/' || s->given[i] || is_there(s, text)) continue;
        if (asprintf(&there, "%s/%s", folder, text) < 0)
            return vpps_fail(VPPS_MEMORY, "no memory for the name of %s", text);
        if (is_there(s, there) && c->n_texts < OPTIONS_MAX && options_read(s, &rows[i], there, why, sizeof why)) {
            c->texts[c->n_texts++] = there;
        } else {
            free(there);
        }
    }
    return VPPS_OK;
}

/* Sets --save for a resumed run that wrote one file per epoch: the same name, in the folder of the run's checkpoint. */
static vpps_status take_save_name(const checkpoint *k, settings *s, corpus *c) {
    const char *name = vpps_safetensors_metadata(k->file, "train.save"), *base = basename(k->path);
    char *whole;
    uint32_t epoch;
    if (s->command != COMMAND_TRAIN || s->save || !name || !save_name_matches(name, base, &epoch)) return VPPS_OK;
    if (asprintf(&whole, "%.*s%s", (int)(base - k->path), k->path, name) < 0)
        return vpps_fail(VPPS_MEMORY, "no memory for the name of %s", k->path);
    s->save = c->texts[c->n_texts++] = whole;
    return VPPS_OK;
}

/* Takes all options from the checkpoint. Data on the command line replace all data files of the checkpoint. */
static vpps_status take_all_options(const checkpoint *k, settings *s, corpus *c, resuming r) {
    size_t n;
    const cli_option *rows = options_rows(s, &n);
    bool other_data = false;
    for (size_t i = 0; i < n; i++) other_data |= (rows[i].flags & OPTION_DATA) && s->given[i];
    /* A resumed run needs the same data, perhaps in moved files: the command line may name files of single splits, or all by --data. */
    if (s->command == COMMAND_TRAIN) other_data = r.by_content && s->data;
    for (size_t i = 0; i < n; i++) {
        if (!is_taken(s, &rows[i])) continue;
        if (other_data && (rows[i].flags & OPTION_DATA) && rows[i].row.kind == OPTION_TEXT && !s->given[i]) continue;
        VPPS_TRY(take_option(k, s, c, &rows[i], s->given[i], &r));
    }
    if (s->command == COMMAND_TRAIN && options_given(s, "generate") && options_name_files(s)) {
        return vpps_fail(VPPS_ARGUMENT, "%s was made with %s: training cannot resume with --generate", k->path,
                         corpus_name(s));
    }
    VPPS_TRY(take_save_name(k, s, c));
    return find_paths(k, s, c);
}

/* Takes the checkpoint's options, and adds a note about options on the command line whose values differ from the checkpoint's, where this is
 * allowed. */
static vpps_status take_options(const checkpoint *k, settings *s, corpus *c) {
    resuming r = look_at_data(k, s);
    char *before = NULL, *now = NULL;
    size_t before_bytes, now_bytes;
    r.before = open_memstream(&before, &before_bytes);
    r.now = open_memstream(&now, &now_bytes);
    vpps_status status = r.before && r.now ? take_all_options(k, s, c, r)
                                           : vpps_fail(VPPS_MEMORY, "no memory for the options of %s", k->path);
    status = vpps_text_end(r.before, status, &before);
    status = vpps_text_end(r.now, status, &now);
    if (status == VPPS_OK && *now) {
        corpus_note(c, "%s%s was made with %s: it goes on with %s", VPPS_PATH_ARGS(k->path), before, now);
    }
    VPPS_FREE(before, now);
    return status;
}

static vpps_status take_vocabularies(const checkpoint *k, corpus *c) {
    for (int i = 0; i < N_VOCABS; i++) {
        /* not every network has this vocabulary; a missing vocabulary of words is reported elsewhere */
        const char *text = vpps_safetensors_metadata(k->file, vocab_names[i]);
        if (text) VPPS_TRY(vpps_vocab_from_text(&c->vocab[i], text));
    }
    return VPPS_OK;
}

/* Reads a best value, and from the entry `next` the best value of the next metric. */
static vpps_status take_value(const checkpoint *k, const char *value, const char *next, best_value *best) {
    VPPS_TRY(need_real(k, value, &best->value));
    VPPS_TRY(need_real(k, next, &best->next));
    best->found = best->value >= 0;
    if (best->next < 0) best->next = NAN;
    return VPPS_OK;
}

/* Reads the best measurements of the dev data. */
static vpps_status take_best(const checkpoint *k, best_measure *b) {
    uint64_t number;
    VPPS_TRY(take_value(k, "train.best_dev", "train.best_next", &b->any));
    VPPS_TRY(take_value(k, "train.best_due", "train.best_due_next", &b->due));
    VPPS_TRY(need_number(k, "train.best_metric", MAX_METRICS, &number));
    b->chosen = number < MAX_METRICS;
    b->metric = (uint32_t)number;
    if (b->any.found && !b->chosen) return vpps_fail(VPPS_FORMAT, "%s: \"train.best_dev\" is of no metric", k->path);
    VPPS_TRY(need_u32(k, "train.best_epoch", &b->epoch));
    VPPS_TRY(need_u32(k, "train.best_batch", &b->batch));
    return need_u32(k, "train.best_since", &b->since);
}

/* Reads the position in training that a resumed run continues from. */
static vpps_status take_position(const checkpoint *k, position *p) {
    VPPS_TRY(need_u32(k, "train.epoch", &p->epoch));
    VPPS_TRY(need_u32(k, "train.batch", &p->batch));
    VPPS_TRY(need_number(k, "train.trained", MOST_COUNTED, &p->trained));
    VPPS_TRY(need_real(k, "train.loss_sum", &p->loss_sum));
    VPPS_TRY(need_u32(k, "train.n_losses", &p->n_losses));
    VPPS_TRY(need_u32(k, "train.lr_drops", &p->lr_drops));
    VPPS_TRY(need_number(k, "train.right", MOST_COUNTED, &p->right));
    VPPS_TRY(need_number(k, "train.labelled", MOST_COUNTED, &p->labelled));
    return take_best(k, &p->best);
}

vpps_status checkpoint_describe(const char *path, settings *s, corpus *c, position *p) {
    VPPS_CLOSED_BY(close_file) checkpoint k;
    const char *text;
    VPPS_TRY(open_file(&k, path));
    VPPS_TRY(need(&k, "network", &text));
    if (strcmp(text, s->network->name) != 0)
        return vpps_fail(VPPS_ARGUMENT, "%s holds the network %.64s, not %s", path, text, s->network->name);
    VPPS_TRY(take_options(&k, s, c));
    VPPS_TRY(need_u32(&k, "classes", &c->classes));
    VPPS_TRY(need(&k, "vocabulary", &text));
    VPPS_TRY(take_vocabularies(&k, c));
    VPPS_TRY(corpus_check(c, s, path));
    corpus_set_sizes(c, s);
    return p ? take_position(&k, p) : VPPS_OK;
}

vpps_status checkpoint_curves(const char *path, plot *p) {
    VPPS_CLOSED_BY(close_file) checkpoint k;
    VPPS_TRY(open_file(&k, path));
    const char *text = vpps_safetensors_metadata(k.file, "train.curves");
    return text ? plot_from_text(p, path, text) : VPPS_OK; /* without them, the picture begins where the run goes on */
}

vpps_status checkpoint_carry(const char *path, const session *x, carry *states) {
    VPPS_CLOSED_BY(close_file) checkpoint k;
    VPPS_TRY(open_file(&k, path));
    const char *text = vpps_safetensors_metadata(k.file, "train.carry");
    if (!text)
        return vpps_fail(VPPS_FORMAT,
                         "%s stands in the middle of an epoch, and has no states to carry on: expected a run "
                         "with --carry",
                         path);
    return carry_from_text(states, x->handle, path, text);
}

/* ---------------------------------------------------------------- the same run */

/* Returns whether an entry of the metadata is the same in all checkpoints of a run. */
static bool is_of_run(const settings *s, const char *key) {
    static const char option[] = "option.";
    if (strncmp(key, option, sizeof option - 1) != 0) {
        return strncmp(key, "train.", 6) != 0 && strncmp(key, "vpps.", 5) != 0;
    }
    size_t at;
    const cli_option *o = options_find(s, key + sizeof option - 1, &at);
    return o && (o->flags & OPTION_FIXED) && !(o->flags & OPTION_CONTENT);
}

static bool has_all(const settings *s, const vpps_safetensors *a, const vpps_safetensors *b) {
    for (size_t i = 0; i < vpps_safetensors_metadata_count(a); i++) {
        const vpps_metadata entry = vpps_safetensors_metadata_at(a, i);
        const char *there = vpps_safetensors_metadata(b, entry.key);
        if (is_of_run(s, entry.key) && (!there || strcmp(there, entry.value) != 0)) return false;
    }
    return true;
}

bool checkpoint_same_run(const settings *s, const char *a, const char *b) {
    vpps_safetensors *x = NULL, *y = NULL;
    const bool same = vpps_safetensors_open_on_disk(&x, a) == VPPS_OK &&
                      vpps_safetensors_open_on_disk(&y, b) == VPPS_OK && has_all(s, x, y) && has_all(s, y, x);
    vpps_safetensors_close(x);
    vpps_safetensors_close(y);
    return same;
}

/* ---------------------------------------------------------------- the same data */

static vpps_status check_lexicon(const char *path, const settings *s, const corpus *c) {
    vpps_vocab *now = NULL;
    char *before = NULL, *text = NULL;
    if (!s->lexicon || !options_given(s, "lexicon") || !c->vocab[VOCAB_LEXICON]) return VPPS_OK;
    vpps_status status = vpps_vocab_create(&now);
    if (status == VPPS_OK) status = vpps_lexicon_read_file(now, s->lexicon);
    if (status == VPPS_OK) status = vpps_vocab_to_text(now, &text);
    if (status == VPPS_OK) status = vpps_vocab_to_text(c->vocab[VOCAB_LEXICON], &before);
    if (status == VPPS_OK && strcmp(text, before) != 0) {
        status = vpps_fail(VPPS_ARGUMENT, "%s was made with another lexicon than %s: training cannot resume with it",
                           path, s->lexicon);
    }
    vpps_vocab_destroy(now);
    VPPS_FREE(before, text);
    return status;
}

vpps_status checkpoint_check_data(const char *path, const settings *s, const corpus *c) {
    VPPS_CLOSED_BY(close_file) checkpoint k;
    VPPS_TRY(open_file(&k, path));
    if (!look_at_data(&k, s).by_content) return VPPS_OK;
    for (int i = 0; i < N_SPLITS; i++) {
        char now[VALUE_BYTES];
        const char *before = entry_of(&k, "data.", split_names[i]);
        const corpus_split *split = &c->split[i];
        const bool present = split->present && split->n_files;
        snprintf(now, sizeof now, CONTENT_FORMAT, split->content);
        /* a hash is "METHOD NUMBER"; a file with a number alone is too old to be compared */
        const bool known = before && strchr(before, ' ');
        const bool same = before ? present && (!known || strcmp(before, now) == 0) : !present;
        if (same) continue;
        return vpps_fail(VPPS_ARGUMENT,
                         "%s was made %s: training cannot resume with %s; --init %s begins a new run with its "
                         "parameters",
                         path,
                         !before   ? "without a part that is here"
                         : present ? "with other data"
                                   : "with a part that is missing",
                         present ? split->files[0].name : split_names[i], path);
    }
    return check_lexicon(path, s, c);
}

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
#include "cli/input/corpus_read.h"
#include "cli/input/data_files.h"
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

static vpps_status fail_text(const char *text, const char *what) {
    return vpps_fail(VPPS_FORMAT, "'%.64s' (%s) is not UTF-8, as a checkpoint needs it", text, what);
}

vpps_status checkpoint_check(const settings *s, const corpus *c) {
    for (int k = 0; k < N_VOCABS; k++) {
        for (uint32_t i = 0; c->vocab[k] && i < vpps_vocab_size(c->vocab[k]); i++) {
            const char *word = vpps_vocab_word(c->vocab[k], i);
            if (!vpps_is_utf8(word)) return fail_text(word, vocab_names[k]);
        }
    }
    for (const cli_option *o = options_rows(s); o->row.help; o++) {
        if (!(o->flags & OPTION_SAVED) || o->row.kind != OPTION_TEXT) continue;
        const char *text = options_text(s, o);
        if (text && !vpps_is_utf8(text)) return fail_text(text, o->row.name);
    }
    return VPPS_OK;
}

/* printf's format of the hash of a split's contents. */
#define CONTENT_FORMAT "vpps-64 %016" PRIx64

/* Adds hashes of the data files' contents, and the folder to which relative paths refer; adds nothing for generated data. */
static void add_data(entry_list *list, const corpus *c, const char *folder) {
    bool files = false;
    for (int i = 0; i < N_SPLITS; i++) {
        if (!c->split[i].present || !c->split[i].n_files) continue;
        snprintf(add_entry(list, "data.", split_names[i], NULL), VALUE_BYTES, CONTENT_FORMAT, c->split[i].content);
        files = true;
    }
    if (files && *folder) add_entry(list, "train.", "folder", folder);
}

/* The position in training as entries train.NAME. `most`: the largest value that is read, since larger ones mean a damaged file. INT32_MAX
 * leaves room for a resumed run to increase a number without overflow. */
static const struct {
    const char *key;
    size_t offset; /* the member's place in `position` */
    enum { REAL, U32, U64 } kind;
    uint64_t most;
} position_entries[] = {
    {"train.epoch", offsetof(position, epoch), U32, INT32_MAX},
    {"train.batch", offsetof(position, batch), U32, INT32_MAX},
    {"train.trained", offsetof(position, trained), U64, MOST_COUNTED},
    {"train.loss_sum", offsetof(position, loss_sum), REAL, 0},
    {"train.n_losses", offsetof(position, n_losses), U32, INT32_MAX},
    {"train.best_dev", offsetof(position, best.any.value), REAL, 0},
    {"train.best_next", offsetof(position, best.any.next), REAL, 0},
    {"train.best_due", offsetof(position, best.due.value), REAL, 0},
    {"train.best_due_next", offsetof(position, best.due.next), REAL, 0},
    {"train.best_metric", offsetof(position, best.metric), U32, MAX_METRICS}, /* MAX_METRICS: no metric is chosen */
    {"train.best_epoch", offsetof(position, best.epoch), U32, INT32_MAX},
    {"train.best_batch", offsetof(position, best.batch), U32, INT32_MAX},
    {"train.best_since", offsetof(position, best.since), U32, INT32_MAX},
    {"train.lr_drops", offsetof(position, lr_drops), U32, INT32_MAX},
    {"train.right", offsetof(position, right), U64, MOST_COUNTED},
    {"train.labelled", offsetof(position, labelled), U64, MOST_COUNTED},
};

static void mark_missing(best_value *best) {
    if (!best->found || !isfinite(best->next)) best->next = NO_VALUE;
    if (!best->found) best->value = NO_VALUE;
}

/* Adds the position in training. In the copy p, marks such as NO_VALUE replace values that were not measured. */
static void add_position(entry_list *list, position p) {
    mark_missing(&p.best.any);
    mark_missing(&p.best.due);
    if (!p.best.chosen) p.best.metric = MAX_METRICS;
    for (size_t i = 0; i < VPPS_COUNT(position_entries); i++) {
        const void *at = (const char *)&p + position_entries[i].offset;
        char *text = add_entry(list, "", position_entries[i].key, NULL);
        if (position_entries[i].kind == REAL)
            snprintf(text, VALUE_BYTES, "%.17g", *(const double *)at);
        else
            snprintf(text, VALUE_BYTES, "%" PRIu64,
                     position_entries[i].kind == U64 ? *(const uint64_t *)at : *(const uint32_t *)at);
    }
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
    for (const cli_option *o = options_rows(s); o->row.help; o++) {
        if (!(o->flags & OPTION_SAVED)) continue;
        /* an option whose value is text has an entry only if it is given; the entry may have any length */
        const char *text = o->row.kind == OPTION_TEXT ? options_text(s, o) : NULL;
        if (text) add_entry(&list, "option.", o->row.name, text);
        if (o->row.kind != OPTION_TEXT)
            options_write(s, o, add_entry(&list, "option.", o->row.name, NULL), VALUE_BYTES);
    }
    snprintf(add_entry(&list, "", "classes", NULL), VALUE_BYTES, "%" PRIu32, c->classes);
    add_position(&list, *p);
    add_entry(&list, "train.", "curves", curves_text);
    if (states_text) add_entry(&list, "train.", "carry", states_text);
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

typedef struct checkpoint {
    const char *path;
    vpps_safetensors *file;
} checkpoint;

static vpps_status open_file(checkpoint *k, const char *path) {
    *k = (checkpoint){.path = path};
    return vpps_safetensors_open(&k->file, path);
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

/* Reads a whole number up to `most` from an entry that must exist. */
static vpps_status need_number(const checkpoint *k, const char *key, uint64_t most, uint64_t *out) {
    const char *text;
    VPPS_TRY(need(k, key, &text));
    return vpps_read_number(text, most, out) ? VPPS_OK : fail_number(k, key, text, "a whole number that fits");
}

/* What is needed to compare a resumed run's command line with the run's checkpoint. */
typedef struct resuming {
    /* true: the checkpoint has hashes of the data files' contents, which identify files that have moved */
    bool by_content;
    bool from_files;    /* whether the checkpoint's run read data files, not generated data */
    FILE *before, *now; /* texts for the error message: values of changed options in the checkpoint (before), and now */
} resuming;

/* Sets an option that is not on the command line to its saved value. */
static vpps_status take_saved(const checkpoint *k, settings *s, corpus *c, const cli_option *o, const char *value) {
    char why[160];
    if (o->row.kind == OPTION_TEXT) { /* keeps a copy, to which the settings point */
        value = c->texts[c->n_texts] = strdup(value);
        if (!value) return vpps_fail(VPPS_MEMORY, "no memory for the options of %s", k->path);
        c->n_texts++;
    }
    if (options_read(s, o, value, why, sizeof why)) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "%s: \"option.%s\" is \"%.64s\", not %s", k->path, o->row.name, value, why);
}

/* Compares an option on a resumed run's command line to its saved value `before` (may be empty). Adds a changed value to the lists in r. */
static vpps_status check_given(const checkpoint *k, const settings *s, const cli_option *o, const char *before,
                               const resuming *r) {
    char now[4096];
    const char *name = o->row.name, *separator = ftell(r->now) ? ", " : "";
    options_write(s, o, now, sizeof now);
    if (strcmp(now, before) == 0) return VPPS_OK;
    if (o->flags & OPTION_FIXED)
        return vpps_fail(VPPS_ARGUMENT, "%s was made with --%s %.200s: training cannot resume with %.200s", k->path,
                         name, before, now);
    fprintf(r->before, "%s%s--%s%s%.200s", separator, *before ? "" : "no ", name, *before ? " " : "", before);
    fprintf(r->now, "%s%s--%s%s%.200s", separator, *now ? "" : "no ", name, *now ? " " : "", now);
    return VPPS_OK;
}

/* Takes one saved option. A value on the command line has precedence, but must equal the saved one if the option must not change. The
 * checkpoint lacks text options that were not given, and options newer than itself, which had their defaults. */
static vpps_status take_option(const checkpoint *k, settings *s, corpus *c, const cli_option *o, const resuming *r) {
    const char *value = entry_of(k, "option.", o->row.name);
    if (!s->given[o->number]) return value ? take_saved(k, s, c, o, value) : VPPS_OK;
    const bool moved = r->by_content && (value ? o->flags & OPTION_CONTENT : r->from_files && (o->flags & OPTION_DATA));
    if (s->command != COMMAND_TRAIN || moved) return VPPS_OK;
    if (value) return check_given(k, s, o, value, r);
    if (o->row.kind == OPTION_TEXT && (o->flags & OPTION_FIXED))
        return vpps_fail(VPPS_ARGUMENT, "%s was made without --%s: training cannot resume with it", k->path,
                         o->row.name);
    char text[VALUE_BYTES] = "";
    const settings defaults = options_defaults(s);
    if (o->row.kind != OPTION_TEXT) options_write(&defaults, o, text, sizeof text);
    return check_given(k, s, o, text, r);
}

static resuming look_at_data(const checkpoint *k, const settings *s) {
    resuming r = {.by_content = vpps_safetensors_metadata(k->file, "data.train") != NULL};
    for (const cli_option *o = options_rows(s); o->row.help; o++)
        if ((o->flags & OPTION_DATA) && o->row.kind == OPTION_TEXT)
            r.from_files |= entry_of(k, "option.", o->row.name) != NULL;
    return r;
}

/* Returns whether a data file of that name exists. Sentences with translations are two files: this looks for PATH.SOURCE, where SOURCE is
 * --source's value. */
static bool is_there(const settings *s, const char *path) {
    char ending[64] = "", name[4096];
    if (access(path, F_OK) == 0) return true;
    if (s->source) snprintf(ending, sizeof ending, ".%s", s->source);
    return *ending && data_name(path, ending, name, sizeof name) == VPPS_OK && access(name, F_OK) == 0;
}

/* Turns relative paths of the checkpoint that do not exist in the current folder into paths through the folder where it was made. */
static vpps_status find_paths(const checkpoint *k, settings *s, corpus *c) {
    const char *folder = vpps_safetensors_metadata(k->file, "train.folder");
    for (const cli_option *o = options_rows(s); folder && o->row.help; o++) {
        char *there, why[160];
        const char *text = o->flags & OPTION_CONTENT ? options_text(s, o) : NULL;
        if (!text || *text == '/' || s->given[o->number] || is_there(s, text)) continue;
        if (asprintf(&there, "%s/%s", folder, text) < 0)
            return vpps_fail(VPPS_MEMORY, "no memory for the name of %s", text);
        if (is_there(s, there) && c->n_texts < OPTIONS_MAX && options_read(s, o, there, why, sizeof why))
            c->texts[c->n_texts++] = there;
        else
            free(there);
    }
    return VPPS_OK;
}

/* Takes all options from the checkpoint. Data on the command line replace all data files of the checkpoint. */
static vpps_status take_all_options(const checkpoint *k, settings *s, corpus *c, const resuming *r) {
    bool other_data = false;
    for (const cli_option *o = options_rows(s); o->row.help; o++)
        other_data |= (o->flags & OPTION_DATA) && s->given[o->number];
    /* A resumed run needs the checkpoint's data. --data replaces all paths if the files are recognised by hashes of
     * their contents (by_content); other options name files of single splits. */
    if (s->command == COMMAND_TRAIN) other_data = r->by_content && s->data;
    for (const cli_option *o = options_rows(s); o->row.help; o++) {
        const bool replaced =
            other_data && (o->flags & OPTION_DATA) && o->row.kind == OPTION_TEXT && !s->given[o->number];
        const bool engine = (o->flags & OPTION_RESUMED) && s->command != COMMAND_TRAIN; /* for resumed training */
        if ((o->flags & OPTION_SAVED) && !engine && !replaced) VPPS_TRY(take_option(k, s, c, o, r));
    }
    if (s->command == COMMAND_TRAIN && options_given(s, "generate") && options_name_files(s))
        return vpps_fail(VPPS_ARGUMENT, "%s was made with %s: training cannot resume with --generate", k->path,
                         corpus_name(s));
    return find_paths(k, s, c);
}

/* Takes the checkpoint's options, and adds a note about options on the command line whose values differ from the checkpoint's, where this is
 * allowed. */
static vpps_status take_options(const checkpoint *k, settings *s, corpus *c) {
    resuming r = look_at_data(k, s);
    VPPS_FREED char *before = NULL, *now = NULL;
    size_t before_bytes, now_bytes;
    r.before = open_memstream(&before, &before_bytes);
    r.now = open_memstream(&now, &now_bytes);
    vpps_status status = r.before && r.now ? take_all_options(k, s, c, &r)
                                           : vpps_fail(VPPS_MEMORY, "no memory for the options of %s", k->path);
    status = vpps_text_end(r.before, status, &before);
    status = vpps_text_end(r.now, status, &now);
    if (status == VPPS_OK && *now)
        corpus_note(c, "%s%s was made with %s: it goes on with %s", VPPS_PATH_ARGS(k->path), before, now);
    return status;
}

/* Reads a member of the position in training from its entry in the checkpoint, which must exist. A real number must be
 * finite and at least 0, or NO_VALUE (not measured). */
static vpps_status take_entry(const checkpoint *k, size_t i, position *p) {
    const char *text, *key = position_entries[i].key;
    void *at = (char *)p + position_entries[i].offset;
    if (position_entries[i].kind != REAL) {
        uint64_t number;
        VPPS_TRY(need_number(k, key, position_entries[i].most, &number));
        if (position_entries[i].kind == U32)
            *(uint32_t *)at = (uint32_t)number;
        else
            *(uint64_t *)at = number;
        return VPPS_OK;
    }
    char *end;
    VPPS_TRY(need(k, key, &text));
    const double x = *(double *)at = strtod(text, &end);
    const bool good = end != text && !*end && isfinite(x) && (x >= 0 || x == NO_VALUE);
    return good ? VPPS_OK : fail_number(k, key, text, "a number that fits");
}

static void take_marks(best_value *best) {
    best->found = best->value >= 0;
    if (best->next < 0) best->next = NAN;
}

/* Reads the position in training that a resumed run continues from. */
static vpps_status take_position(const checkpoint *k, position *p) {
    for (size_t i = 0; i < VPPS_COUNT(position_entries); i++) VPPS_TRY(take_entry(k, i, p));
    take_marks(&p->best.any);
    take_marks(&p->best.due);
    p->best.chosen = p->best.metric < MAX_METRICS;
    if (!p->best.any.found || p->best.chosen) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "%s: \"train.best_dev\" is of no metric", k->path);
}

vpps_status checkpoint_describe(const char *path, settings *s, corpus *c, position *p) {
    VPPS_CLOSED_BY(close_file) checkpoint k;
    const char *text;
    uint64_t classes;
    VPPS_TRY(open_file(&k, path));
    VPPS_TRY(need(&k, "network", &text));
    if (strcmp(text, s->network->name) != 0)
        return vpps_fail(VPPS_ARGUMENT, "%s holds the network %.64s, not %s", path, text, s->network->name);
    VPPS_TRY(take_options(&k, s, c));
    VPPS_TRY(need_number(&k, "classes", INT32_MAX, &classes));
    c->classes = (uint32_t)classes;
    VPPS_TRY(need(&k, "vocabulary", &text));
    for (int i = 0; i < N_VOCABS; i++) {
        /* not every network has this vocabulary; a missing vocabulary of words is reported elsewhere */
        text = vpps_safetensors_metadata(k.file, vocab_names[i]);
        if (text) VPPS_TRY(vpps_vocab_from_text(&c->vocab[i], text));
    }
    VPPS_TRY(corpus_check(c, s, path));
    corpus_set_sizes(c, s);
    return p ? take_position(&k, p) : VPPS_OK;
}

vpps_status checkpoint_curves(const char *path, plot *p) {
    VPPS_CLOSED_BY(close_file) checkpoint k;
    VPPS_TRY(open_file(&k, path));
    const char *text = vpps_safetensors_metadata(k.file, "train.curves");
    return text ? plot_from_text(p, path, text) : VPPS_OK; /* NULL: the plot begins where training resumes */
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
    if (strncmp(key, option, sizeof option - 1) != 0)
        return strncmp(key, "train.", 6) != 0 && strncmp(key, "vpps.", 5) != 0;
    const cli_option *o = options_find(s, key + sizeof option - 1);
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
    VPPS_CLOSED_BY(close_file) checkpoint x, y = {0};
    return open_file(&x, a) == VPPS_OK && open_file(&y, b) == VPPS_OK && has_all(s, x.file, y.file) &&
           has_all(s, y.file, x.file);
}

/* ---------------------------------------------------------------- the same data */

static void destroy_vocab(vpps_vocab **v) { vpps_vocab_destroy(*v); }

static vpps_status check_lexicon(const char *path, const settings *s, const corpus *c) {
    VPPS_CLOSED_BY(destroy_vocab) vpps_vocab *now = NULL;
    VPPS_FREED char *before = NULL, *text = NULL;
    if (!s->lexicon || !options_given(s, "lexicon") || !c->vocab[VOCAB_LEXICON]) return VPPS_OK;
    VPPS_TRY(vpps_vocab_create(&now));
    VPPS_TRY(vpps_lexicon_read_file(now, s->lexicon));
    VPPS_TRY(vpps_vocab_to_text(now, &text));
    VPPS_TRY(vpps_vocab_to_text(c->vocab[VOCAB_LEXICON], &before));
    if (strcmp(text, before) == 0) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "%s was made with another lexicon than %s: training cannot resume with it", path,
                     s->lexicon);
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

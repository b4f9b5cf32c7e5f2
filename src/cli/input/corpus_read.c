/* corpus_read.c - reads and generates the data of all kinds of networks; task.h has the functions in which kinds differ. */
#include "cli/input/corpus_read.h"
#include "base/base.h"
#include "base/hash.h"
#include "cli/input/data_files.h"
#include "cli/input/fields.h"
#include "cli/input/input.h"
#include "cli/input/tokenize.h"
#include "io/stream.h"

#include <unistd.h>

/* ---------------------------------------------------------------- sources */

const char *corpus_name(const settings *s) {
    if (s->command == COMMAND_EVAL && s->parts[s->split]) return s->parts[s->split];
    if (s->data) return s->data;
    for (int i = 0; i < N_SPLITS; i++)
        if (s->parts[i]) return s->parts[i];
    const task *t = task_for(s);
    return t->generated ? t->generated : s->generate == NET_COMPLETE_TREES ? "complete trees" : "listops";
}

static vpps_status read_text(const char *path, const char *ending, char *name, size_t n, task_text *text) {
    char *bytes;
    VPPS_TRY(data_name(path, ending, name, n));
    VPPS_TRY(vpps_file_read_all(name, &bytes, &text->len));
    if (!bytes) bytes = calloc(1, 1); /* an empty file gives an empty text */
    if (!bytes) return vpps_fail(VPPS_MEMORY, "no memory for %s", name);
    text->name = name;
    text->text = bytes;
    return VPPS_OK;
}

/* Splits plain text by --tokenizer; text with tags or brackets is split already. */
static vpps_status split_words(const settings *s, task_text *text) {
    const net_kind kind = s->network->kind;
    const bool plain = kind == NET_TEXT || kind == NET_SENTENCES || task_for(s)->paired;
    char *words = (char *)(uintptr_t)text->text; /* allocated by read_text */
    const vpps_status status =
        plain ? tokenize_file(s, text->name, kind == NET_SENTENCES, &words, &text->len) : VPPS_OK;
    text->text = words;
    return status;
}

/* Frees the text of a file. The member is const so that tasks (functions that read data) do not change the text. */
static void free_text(task_text *text) { free((char *)(uintptr_t)text->text); }

static vpps_status add_file(corpus_split *split, const char *name) {
    char *copy = strdup(name);
    if (!copy || !VPPS_RESERVE(split->files, split->n_files + 1)) {
        free(copy);
        return vpps_fail(VPPS_MEMORY, "no memory for the name of %s", name);
    }
    split->files[split->n_files++] = (corpus_file){copy, corpus_read_so_far(split)};
    return VPPS_OK;
}

/* Endings of the names of the two files of pairs: of source sentences, and of translations; empty: one file, such as JSONL, has both. */
typedef struct endings {
    char source[64], target[64];
} endings;

static vpps_status fail_endings(const char *name) {
    return vpps_fail(VPPS_ARGUMENT,
                     "%s%s: --source and --target must tell how the files of a pair end, as --source de --target en; "
                     "only JSONL, CSV and TSV have both sides in one file",
                     VPPS_PATH_ARGS(name));
}

/* Adds to the error message that --source and --target give the endings of the two files' names. */
static vpps_status add_endings(vpps_status status) {
    return vpps_fail(
        status,
        "%.300s; of pairs in two files --source and --target must tell how they end, as --source de --target en",
        vpps_error_message());
}

/* Reads a file of a split, or two files if data are pairs. */
static vpps_status read_file(corpus *c, const settings *s, corpus_split *split, const char *path, const endings *e) {
    const task *t = task_for(s);
    const bool two = *e->target;
    input_form form = INPUT_AUTO;
    char names[2][4096];
    task_text texts[2] = {{0}};
    vpps_status status = read_text(path, e->source, names[0], sizeof names[0], &texts[0]);
    if (status == VPPS_OK && two) status = read_text(path, e->target, names[1], sizeof names[1], &texts[1]);
    if (status == VPPS_OK && !two) status = corpus_records_form(c, s, &texts[0], &form);
    if (status == VPPS_OK && t->paired && !two && form == INPUT_AUTO) status = fail_endings(names[0]);
    if (status == VPPS_OK) status = add_file(split, names[0]);
    for (int i = 0; i < 2 && status == VPPS_OK && texts[i].text; i++) {
        corpus_note_encoding(c, names[i], texts[i].text, texts[i].len);
        split->content = vpps_hash_bytes(texts[i].text, texts[i].len, split->content + 1);
    }
    for (int i = 0; i < 2 && status == VPPS_OK && texts[i].text && !fields_are(form); i++)
        status = split_words(s, &texts[i]);
    if (status == VPPS_OK)
        status = fields_are(form) ? corpus_records_read(c, s, split, &texts[0], form)
                                  : t->read(c, s, split, &texts[0], two ? &texts[1] : NULL);
    free_text(&texts[0]);
    free_text(&texts[1]);
    return status;
}

static vpps_status read_files(corpus *c, const settings *s, corpus_split *split, const char *path, const endings *e) {
    const task *t = task_for(s);
    data_list list;
    vpps_status status = data_list_open(&list, path, e->source);
    for (size_t i = 0; i < list.n && status == VPPS_OK; i++) status = read_file(c, s, split, list.paths[i], e);
    data_list_close(&list);
    if (status != VPPS_OK) return status;
    if (corpus_read_so_far(split) == 0)
        return vpps_fail(VPPS_FORMAT, "%s: expected %s, found none", split->n_files == 1 ? split->files[0].name : path,
                         t->examples);
    return t->finish ? t->finish(c, s, split) : VPPS_OK;
}

/* Sets the name endings of the two files of pairs. Returns false when only one of --source and --target is given. */
static bool set_endings(const settings *s, endings *e) {
    *e = (endings){"", ""};
    if (!task_for(s)->paired || (!s->source && !s->target)) return true;
    if (!s->source || !s->target) return false;
    snprintf(e->source, sizeof e->source, ".%s", s->source);
    snprintf(e->target, sizeof e->target, ".%s", s->target);
    return true;
}

static vpps_status read_split(corpus *c, const settings *s, int which, int wanted) {
    char path[4096];
    endings e;
    if (!set_endings(s, &e)) return fail_endings(corpus_name(s));
    const vpps_status found = data_file(s, which, wanted, e.source, path, sizeof path);
    if (found != VPPS_OK) return task_for(s)->paired && !*e.source ? add_endings(found) : found;
    if (!*path) return VPPS_OK;
    if (fields_are(input_form_of(s, path))) e = (endings){"", ""}; /* records have source and target in one file */
    VPPS_TRY(read_files(c, s, &c->split[which], path, &e));
    c->split[which].present = true;
    return VPPS_OK;
}

/* Calls `see` for the file `path` or, where sentences and translations are in two files, for both. */
static vpps_status see_pair(const char *option, const char *path, const endings *e,
                            vpps_status (*see)(void *context, const char *option, const char *path), void *context) {
    char name[4096];
    VPPS_TRY(data_name(path, e->source, name, sizeof name));
    VPPS_TRY(see(context, option, name));
    if (!*e->target) return VPPS_OK;
    VPPS_TRY(data_name(path, e->target, name, sizeof name));
    return see(context, option, name);
}

vpps_status corpus_list_files(const settings *s,
                              vpps_status (*see)(void *context, const char *option, const char *path), void *context) {
    endings e;
    const int wanted = s->command == COMMAND_EVAL ? (int)s->split : SPLIT_TRAIN;
    if (!options_name_files(s) || !set_endings(s, &e)) return VPPS_OK;
    for (int part = 0; part < N_SPLITS; part++) {
        char path[4096];
        data_list list;
        const char *option = s->parts[part] ? split_names[part] : "data";
        if (data_file(s, part, wanted, e.source, path, sizeof path) != VPPS_OK || !*path) continue;
        if (data_list_open(&list, path, e.source) != VPPS_OK) continue;
        const bool folder = list.n != 1 || strcmp(list.paths[0], path) != 0;
        vpps_status status = folder ? see(context, option, path) : VPPS_OK;
        for (size_t i = 0; i < list.n && status == VPPS_OK; i++)
            status = see_pair(option, list.paths[i], &e, see, context);
        data_list_close(&list);
        VPPS_TRY(status);
    }
    return VPPS_OK;
}

/* Generates a split from its own seed. All splits are drawn in the same way, so short training examples occur in dev and test, too, until
 * exclude_training_examples removes them. */
static vpps_status generate_split(corpus *c, const settings *s, int which) {
    const uint64_t seed = vpps_mix64(s->seed * N_SPLITS + (uint64_t)which);
    const uint32_t n = which == SPLIT_TRAIN ? s->examples : vpps_max_u32(s->examples / 10, 100);
    c->split[which].present = true;
    return task_for(s)->generate(c, s, &c->split[which], seed, n);
}

vpps_status corpus_example(corpus *c, net_kind kind, const corpus_split *split, uint32_t i, net_example *x) {
    memset(x, 0, sizeof *x);
    return task_of(kind)->example(c, split, i, x);
}

/* ---------------------------------------------------------------- the examples that can be used */

static vpps_status list_usable(corpus *c, const settings *s, int which) {
    corpus_split *split = &c->split[which];
    const task *t = task_for(s);
    const bool training = which == SPLIT_TRAIN && s->command != COMMAND_EVAL;
    split->examples = calloc((size_t)split->n_all + 1, sizeof *split->examples);
    if (!split->examples) return vpps_fail(VPPS_MEMORY, "no memory for %u %s", split->n_all, t->examples);
    for (uint32_t i = 0; i < split->n_all; i++) {
        net_example x;
        if (t->usable) VPPS_TRY(corpus_example(c, s->network->kind, split, i, &x));
        if (!t->usable || t->usable(&x, s, training)) split->examples[split->n_examples++] = i;
    }
    if (split->n_examples) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "none of the %u %s %s has %s", split->n_all, split_names[which], t->examples,
                     t->lacks ? t->lacks : "any content");
}

static uint64_t hash_ids(uint64_t h, const uint32_t *ids, uint32_t n) {
    h = vpps_mix64(h + n);
    for (uint32_t i = 0; ids && i < n; i++) h = vpps_mix64(h + ids[i]);
    return h;
}

/* Hashes an example as the network sees it, in 64 bits: equal inputs have equal hashes, different inputs practically never have. */
static vpps_status hash_example(corpus *c, net_kind kind, const corpus_split *split, uint32_t i, uint64_t *hash) {
    net_example example;
    const net_example *x = &example;
    VPPS_TRY(corpus_example(c, kind, split, split->examples[i], &example));
    uint64_t h = hash_ids(0, x->sentence.words, x->sentence.n_words);
    for (uint32_t k = 0; x->tree && k < x->tree->n_nodes; k++) {
        const vpps_tree_node *node = &x->tree->nodes[k];
        h = vpps_mix64(h + (node->left < 0 ? 2 * (uint64_t)node->word + 1 : 2 * (uint64_t)node->left));
    }
    if (x->sentence.heads) h = hash_ids(h, x->sentence.heads, x->sentence.n_words);
    if (x->lattice) {
        const vpps_lattice *l = x->lattice;
        for (uint32_t a = 0; a < l->first_arc[l->n_nodes]; a++)
            h = vpps_mix64(h + ((uint64_t)l->arcs[a].from << 32 | l->arcs[a].id));
    }
    for (uint32_t e = 0; e < x->n_edges; e++) {
        h = vpps_mix64(h + ((uint64_t)x->edges[e].from << 32 | x->edges[e].to));
        h = vpps_mix64(h + x->edges[e].type);
    }
    *hash = h;
    return VPPS_OK;
}

/* Removes training examples from generated dev and test splits, so that only unseen examples are measured. */
static vpps_status exclude_training_examples(corpus *c, net_kind kind) {
    const corpus_split *train = &c->split[SPLIT_TRAIN];
    VPPS_FREED uint64_t *seen = vpps_scratch((size_t)train->n_examples * sizeof *seen);
    if (!seen) return vpps_fail(VPPS_MEMORY, "no memory for hashes");
    for (uint32_t i = 0; i < train->n_examples; i++) VPPS_TRY(hash_example(c, kind, train, i, &seen[i]));
    qsort(seen, train->n_examples, sizeof *seen, vpps_by_number);
    for (int which = SPLIT_DEV; which < N_SPLITS; which++) {
        corpus_split *split = &c->split[which];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < split->n_examples; i++) {
            uint64_t hash = 0;
            VPPS_TRY(hash_example(c, kind, split, i, &hash));
            const bool known = bsearch(&hash, seen, train->n_examples, sizeof *seen, vpps_by_number) != NULL;
            if (!known) split->examples[kept++] = split->examples[i];
        }
        split->n_examples = kept;
        split->present = kept > 0;
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the whole */

/* Adds to the error message that the data files named by a checkpoint may have moved. */
static vpps_status tell_moved(const settings *s, vpps_status status) {
    const char *file = s->resume ? s->resume : s->model, *const paths[] = {s->data, s->parts[0], s->parts[1],
                                                                           s->parts[2]};
    static const char *const options[] = {"data", "train", "dev", "test"};
    bool gone = false;
    if (status != VPPS_IO || !file) return status;
    for (size_t i = 0; i < VPPS_COUNT(options); i++) {
        if (options_given(s, options[i])) return status;
        gone |= paths[i] && access(paths[i], F_OK) != 0;
    }
    if (!gone) return status;
    return vpps_fail(status, "%.400s; %s was made with these data: if they have moved, --data names their place",
                     vpps_error_message(), file);
}

vpps_status corpus_open(corpus *c, settings *s) {
    const task *t = task_for(s);
    const bool files = options_name_files(s);
    const int wanted = s->command == COMMAND_EVAL ? (int)s->split : SPLIT_TRAIN;
    for (int i = 0; i < N_SPLITS; i++) {
        const bool needed = s->command == COMMAND_TRAIN || i == wanted || (!files && i == SPLIT_TRAIN);
        if (!needed) continue;
        const vpps_status status = files ? read_split(c, s, i, wanted) : generate_split(c, s, i);
        if (status != VPPS_OK) return tell_moved(s, status);
    }
    if (!c->vocab[VOCAB_WORDS]) {
        VPPS_TRY(t->learn(c, s));
        if (c->classes < 2)
            return vpps_fail(VPPS_FORMAT, "the training %s have %u class%s, a classifier needs 2 at least", t->examples,
                             c->classes, c->classes == 1 ? "" : "es");
    }
    /* --function-tags auto becomes what the data decided (are tags such as SBJ in NP-SBJ kept?), so that the checkpoint has the decision */
    if (s->function_tags == FUNCTION_TAGS_AUTO && c->tags_known)
        s->function_tags = c->keeps_tags ? FUNCTION_TAGS_KEEP : FUNCTION_TAGS_CUT;
    corpus_set_sizes(c, s);
    for (int i = 0; i < N_SPLITS; i++) {
        if (!c->split[i].present) continue;
        VPPS_TRY(t->map(c, s, &c->split[i]));
        VPPS_TRY(list_usable(c, s, i));
        if (files && i != SPLIT_TRAIN) corpus_note_labels(c, i);
        if (files && task_for(s)->classifies) corpus_note_tags(c, i);
    }
    if (!files) VPPS_TRY(exclude_training_examples(c, s->network->kind));
    if (c->split[wanted].present) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "all generated %s %s occur in training, too", split_names[wanted], t->examples);
}

vpps_status corpus_add_input(corpus *c, const settings *s, const task_text *text, const task_text *target) {
    return task_for(s)->read(c, s, &c->split[SPLIT_TEST], text, target);
}

vpps_status corpus_end_input(corpus *c, const settings *s) {
    corpus_split *split = &c->split[SPLIT_TEST];
    if (task_for(s)->finish) VPPS_TRY(task_for(s)->finish(c, s, split));
    split->present = true;
    VPPS_TRY(task_for(s)->map(c, s, split));
    split->n_examples = split->n_all;
    split->examples = malloc(((size_t)split->n_all + 1) * sizeof *split->examples);
    if (!split->examples) return vpps_fail(VPPS_MEMORY, "no memory for %u %s", split->n_all, task_for(s)->examples);
    for (uint32_t i = 0; i < split->n_all; i++) split->examples[i] = i;
    return VPPS_OK;
}

/* corpus.c - reading or generating the data, and the vocabulary with its frequency cut. */
#include "corpus.h"
#include "base/base.h"

#include <errno.h>
#include <sys/stat.h>

const char *const split_names[N_SPLITS] = {"train", "dev", "test"};

/* ---------------------------------------------------------------- sources */

static vpps_status read_trees(corpus_split *split, const char *path) {
    VPPS_TRY(vpps_treebank_create(&split->bank));
    return vpps_treebank_read_file(split->bank, path);
}

/* A folder has the parts train.txt, dev.txt and test.txt, of which only the wanted must exist; a file is the wanted
 * part itself. */
static vpps_status read_split(corpus *c, const char *path, int which, bool needed) {
    struct stat st;
    if (stat(path, &st) != 0) return vpps_fail(VPPS_IO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode)) return needed ? read_trees(&c->split[which], path) : VPPS_OK;
    char file[4096];
    const int len = snprintf(file, sizeof file, "%s/%s.txt", path, split_names[which]);
    if (len < 0 || (size_t)len >= sizeof file) return vpps_fail(VPPS_IO, "%s: the path is too long", path);
    if (!needed && stat(file, &st) != 0 && errno == ENOENT) return VPPS_OK;
    return read_trees(&c->split[which], file);
}

const char *corpus_name(const settings *s) {
    if (s->data) return s->data;
    return s->generate == NET_COMPLETE_TREES ? "complete trees" : "listops";
}

/* Every split has its own seed; the others are drawn in the same way as the training trees, so that short expressions
 * come again (exclude_training_trees). */
static vpps_status generate_split(corpus *c, const settings *s, int which) {
    const uint64_t seed = vpps_mix64(s->seed * N_SPLITS + (uint64_t)which);
    const uint32_t n = which == SPLIT_TRAIN ? s->trees : vpps_max_u32(s->trees / 10, 100);
    VPPS_TRY(vpps_treebank_create(&c->split[which].bank));
    if (s->generate == NET_COMPLETE_TREES) {
        const vpps_complete_trees complete = {.seed = seed, .leaves = s->leaves};
        return vpps_treebank_generate_complete(c->split[which].bank, &complete, n);
    }
    const vpps_listops listops = {.seed = seed};
    return vpps_treebank_generate_listops(c->split[which].bank, &listops, n);
}

/* ---------------------------------------------------------------- vocabulary */

/* The rarer words of the training trees are what <unk>'s embedding is trained on. */
static vpps_status make_vocab(corpus *c, uint32_t min_count) {
    const vpps_treebank *bank = c->split[SPLIT_TRAIN].bank;
    uint32_t *counts;
    VPPS_TRY(vpps_treebank_counts(bank, &counts));
    const vpps_status status = vpps_vocab_cut(&c->vocab, vpps_treebank_vocab(bank), counts, min_count);
    free(counts);
    return status;
}

vpps_status corpus_map_words(const vpps_treebank *bank, const vpps_vocab *v, uint32_t **words) {
    return vpps_vocab_map(vpps_treebank_vocab(bank), v, 0, words);
}

/* ---------------------------------------------------------------- the trees that can be used */

static bool has_label(vpps_tree tree, bool at_root) {
    if (at_root) return tree.nodes[tree.n_nodes - 1].label >= 0;
    for (uint32_t k = 0; k < tree.n_nodes; k++) {
        if (tree.nodes[k].label >= 0) return true;
    }
    return false;
}

/* Equal trees have equal hashes; at 64 bits, unequal ones do not meet. */
static uint64_t hash_tree(vpps_tree tree, const uint32_t *words) {
    uint64_t h = tree.n_nodes;
    for (uint32_t k = 0; k < tree.n_nodes; k++) {
        const vpps_tree_node *node = &tree.nodes[k];
        h = vpps_mix64(h + (node->left < 0 ? 2 * (uint64_t)words[node->word] + 1 : 2 * (uint64_t)node->left));
    }
    return h;
}

static int compare_u64(const void *a, const void *b) {
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Takes from a generated split the trees that were trained on: what is measured there has not been seen. */
static vpps_status exclude_training_trees(const corpus_split *train, corpus_split *split) {
    uint64_t *seen = malloc(train->n_trees * sizeof *seen);
    if (!seen) return vpps_fail(VPPS_MEMORY, "no memory for %u trees", train->n_trees);
    for (uint32_t i = 0; i < train->n_trees; i++) {
        seen[i] = hash_tree(vpps_treebank_tree(train->bank, train->trees[i]), train->words);
    }
    qsort(seen, train->n_trees, sizeof *seen, compare_u64);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < split->n_trees; i++) {
        const uint64_t h = hash_tree(vpps_treebank_tree(split->bank, split->trees[i]), split->words);
        if (!bsearch(&h, seen, train->n_trees, sizeof h, compare_u64)) split->trees[kept++] = split->trees[i];
    }
    split->n_trees = kept;
    free(seen);
    return VPPS_OK;
}

static vpps_status finish_split(corpus *c, const settings *s, int which) {
    corpus_split *split = &c->split[which];
    if (!split->bank) return VPPS_OK;
    const uint32_t n = vpps_treebank_size(split->bank), classes = vpps_treebank_classes(split->bank);
    if (classes > c->classes) {
        return vpps_fail(VPPS_FORMAT, "the %s trees have label %u, but the network was made for the labels 0 to %u",
                         split_names[which], classes - 1, c->classes - 1);
    }
    VPPS_TRY(corpus_map_words(split->bank, c->vocab, &split->words));
    split->trees = calloc(n ? n : 1, sizeof *split->trees);
    if (!split->trees) return vpps_fail(VPPS_MEMORY, "no memory for %u trees", n);
    const bool at_root = which == SPLIT_TRAIN && s->command != COMMAND_EVAL && s->net.loss == NET_HEADS_ROOT;
    for (uint32_t i = 0; i < n; i++) {
        if (has_label(vpps_treebank_tree(split->bank, i), at_root)) split->trees[split->n_trees++] = i;
    }
    if (!split->n_trees) {
        return vpps_fail(VPPS_FORMAT, "none of the %u %s trees has a label%s", n, split_names[which],
                         at_root ? " at its root" : "");
    }
    return VPPS_OK;
}

vpps_status corpus_open(corpus *c, const settings *s) {
    const int wanted = s->command == COMMAND_EVAL ? (int)s->split : SPLIT_TRAIN;
    for (int i = 0; i < N_SPLITS; i++) {
        const bool needed = s->command == COMMAND_TRAIN || i == wanted || (!s->data && i == SPLIT_TRAIN);
        if (!needed) continue;
        VPPS_TRY(s->data ? read_split(c, s->data, i, i == wanted) : generate_split(c, s, i));
    }
    if (!c->vocab) {
        VPPS_TRY(make_vocab(c, s->min_count));
        c->classes = vpps_treebank_classes(c->split[SPLIT_TRAIN].bank);
        if (c->classes < 2) {
            return vpps_fail(VPPS_FORMAT, "the training trees have %u class%s, a classifier needs 2 at least",
                             c->classes, c->classes == 1 ? "" : "es");
        }
    }
    for (int i = 0; i < N_SPLITS; i++) VPPS_TRY(finish_split(c, s, i));
    for (int i = SPLIT_DEV; i < N_SPLITS && !s->data; i++) {
        if (c->split[i].bank) VPPS_TRY(exclude_training_trees(&c->split[SPLIT_TRAIN], &c->split[i]));
    }
    return VPPS_OK;
}

void corpus_shuffle(const corpus_split *split, uint64_t seed, uint32_t epoch, uint32_t *order) {
    uint64_t state = vpps_mix64(vpps_mix64(seed) + epoch);
    memcpy(order, split->trees, split->n_trees * sizeof *order);
    for (uint32_t i = split->n_trees; i > 1; i--) { /* Fisher and Yates */
        const uint32_t j = vpps_random_below(&state, i), last = order[i - 1];
        order[i - 1] = order[j];
        order[j] = last;
    }
}

void corpus_close(corpus *c) {
    for (int i = 0; i < N_SPLITS; i++) {
        free(c->split[i].words);
        free(c->split[i].trees);
        vpps_treebank_destroy(c->split[i].bank);
    }
    vpps_vocab_destroy(c->vocab);
    free(c->data);
    memset(c, 0, sizeof *c);
}

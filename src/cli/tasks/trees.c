/* trees.c - the task of labelled binary trees, measured by the accuracy at roots and at all nodes.
 *
 * Files hold trees with numbers as labels (the Stanford Sentiment Treebank's format), or constituents with names
 * (the Penn Treebank's), which are made binary, with a class for every phrase and part of speech. */
#include "base/base.h"
#include "cli/input/corpus_read.h"
#include "cli/output/answers.h"
#include "cli/session/measure.h"
#include "cli/session/session.h"
#include "cli/tasks/words.h"
#include "io/stream.h"
#include "io/text.h"
#include "io/treebank.h"

#include <math.h>

enum { OUTPUT_TREE, OUTPUT_LABEL };
enum { ROOT, NODES };

/* ---------------------------------------------------------------- reading */

/* Returns whether the first tree's label is no number: a constituent's name, or missing as at a Penn tree's root. */
static bool is_constituents(const task_text *text) {
    const char *at = memchr(text->text, '(', text->len), *end = text->text + text->len;
    if (!at) return false;
    do { at++; } while (at < end && vpps_is_space(*at));
    if (at < end && *at == '-') at++;
    while (at < end && *at >= '0' && *at <= '9') at++;
    return at == end || !(vpps_is_space(*at) || *at == ')') || !(at[-1] >= '0' && at[-1] <= '9');
}

/* Returns whether function tags (SBJ in NP-SBJ) are cut off labels. If --function-tags is auto, the form of the training data decides, and
 * checkpoints record the decision. Checkpoints without a record were made with function tags cut off. */
static bool cuts_tags(const corpus *c, const settings *s, const corpus_split *split, bool training) {
    if (s->function_tags != FUNCTION_TAGS_AUTO) return s->function_tags == FUNCTION_TAGS_CUT;
    return training ? vpps_constituents_look_penn(split->constituents) : !c->keeps_tags;
}

/* Converts the constituent trees of all files of a split to binary trees. */
static vpps_status finish(corpus *c, const settings *s, corpus_split *split) {
    const bool training = split == &c->split[SPLIT_TRAIN] && !c->vocab[VOCAB_WORDS];
    if (!split->constituents) return VPPS_OK;
    const uint32_t written = vpps_vocab_size(vpps_constituents_labels(split->constituents));
    const bool cut = cuts_tags(c, s, split, training);
    c->keeps_tags = !cut;
    c->tags_known = true;
    if (cut) VPPS_TRY(vpps_constituents_cut(split->constituents));
    const uint32_t left = vpps_vocab_size(vpps_constituents_labels(split->constituents));
    if (training && left < written)
        corpus_note(c,
                    "%s%s: function tags are left out, NP-SBJ is NP: of %u labels as written, %u are left "
                    "(--function-tags keep)",
                    VPPS_PATH_ARGS(split->files[0].name), written, left);
    if (!c->vocab[VOCAB_CLASSES]) VPPS_TRY(vpps_vocab_create(&c->vocab[VOCAB_CLASSES]));
    VPPS_TRY(vpps_treebank_create(&split->bank));
    const vpps_status status =
        vpps_constituents_binarise(split->constituents, VPPS_LEFT_BRANCHING, c->vocab[VOCAB_CLASSES], split->bank);
    vpps_constituents_destroy(split->constituents);
    split->constituents = NULL;
    return status;
}

static vpps_status read_part(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                             const task_text *target) {
    (void)s;
    (void)target;
    /* true for the file that sets the format, which all later files must have */
    const bool first = split == &c->split[SPLIT_TRAIN] && !c->vocab[VOCAB_WORDS] && !split->bank;
    if (split->constituents || c->vocab[VOCAB_CLASSES] || (first && is_constituents(text))) {
        if (!split->constituents) VPPS_TRY(vpps_constituents_create(&split->constituents, VPPS_LABELS_WHOLE));
        return vpps_constituents_read_text(split->constituents, text->name, text->text, text->len);
    }
    if (!split->bank) VPPS_TRY(vpps_treebank_create(&split->bank));
    return vpps_treebank_read_text(split->bank, text->name, text->text, text->len);
}

static vpps_status generate(corpus *c, const settings *s, corpus_split *split, uint64_t seed, uint32_t n) {
    (void)c;
    VPPS_TRY(vpps_treebank_create(&split->bank));
    if (s->generate == NET_COMPLETE_TREES) {
        const vpps_complete_trees complete = {.seed = seed, .leaves = s->leaves};
        return vpps_treebank_generate_complete(split->bank, &complete, n);
    }
    const vpps_listops listops = {.seed = seed};
    return vpps_treebank_generate_listops(split->bank, &listops, n);
}

/* ---------------------------------------------------------------- ids */

/* Makes the vocabulary of words; the rare words of the training trees train the embedding of <unk>. */
static vpps_status learn(corpus *c, const settings *s) {
    const vpps_treebank *bank = c->split[SPLIT_TRAIN].bank;
    VPPS_FREED uint32_t *counts = NULL;
    VPPS_TRY(vpps_treebank_counts(bank, &counts));
    /* labels that only dev and test have get the numbers after these classes */
    c->classes = vpps_treebank_classes(bank);
    return task_cut(c, &c->vocab[VOCAB_WORDS], vpps_treebank_vocab(bank), counts, s->min_count);
}

/* Returns the first tree that has a label of `classes` or more; such a tree must exist. */
static uint32_t first_beyond(const vpps_treebank *bank, uint32_t classes) {
    for (uint32_t i = 0;; i++) {
        const vpps_tree tree = vpps_treebank_tree(bank, i);
        for (uint32_t k = 0; k < tree.n_nodes; k++)
            if (tree.nodes[k].label >= 0 && (uint32_t)tree.nodes[k].label >= classes) return i;
    }
}

static vpps_status map(corpus *c, const settings *s, corpus_split *split) {
    const uint32_t classes = vpps_treebank_classes(split->bank);
    if (classes > c->classes && !c->vocab[VOCAB_CLASSES] && s->command != COMMAND_PREDICT) {
        char place[300];
        corpus_place(split, first_beyond(split->bank, c->classes), place, sizeof place);
        return vpps_fail(VPPS_FORMAT, "%s: expected labels 0 to %u, which the network was made for, found label %u",
                         place, c->classes - 1, classes - 1);
    }
    split->n_all = vpps_treebank_size(split->bank);
    return vpps_vocab_map(vpps_treebank_vocab(split->bank), c->vocab[VOCAB_WORDS], 0, &split->ids[VOCAB_WORDS]);
}

static vpps_status example(corpus *c, const corpus_split *split, uint32_t i, net_example *x) {
    const vpps_tree tree = vpps_treebank_tree(split->bank, i);
    corpus_scratch *scratch = &c->scratch;
    if (!VPPS_RESERVE(scratch->nodes, tree.n_nodes))
        return vpps_fail(VPPS_MEMORY, "no memory for a tree of %u nodes", tree.n_nodes);
    for (uint32_t k = 0; k < tree.n_nodes; k++) {
        vpps_tree_node *node = &scratch->nodes[k];
        *node = tree.nodes[k];
        if (node->left < 0) node->word = split->ids[VOCAB_WORDS][node->word];
        if (node->label >= 0 && (uint32_t)node->label >= c->classes) node->label = -1;
    }
    scratch->tree = (vpps_tree){scratch->nodes, tree.n_nodes, tree.n_leaves};
    x->tree = &scratch->tree;
    return VPPS_OK;
}

static bool usable(const net_example *x, const settings *s, bool training) {
    const vpps_tree *tree = x->tree;
    if (training && s->net.loss == NET_HEADS_ROOT) return tree->nodes[tree->n_nodes - 1].label >= 0;
    for (uint32_t k = 0; k < tree->n_nodes; k++)
        if (tree->nodes[k].label >= 0) return true;
    return false;
}

/* ---------------------------------------------------------------- measuring */

/* Counts the labelled nodes that the network classified: all nodes, and roots. A label unknown to training is never right. */
static vpps_status count(void *context, const corpus_split *split, uint32_t i, const int32_t *predicted, uint32_t *n) {
    accuracy *a = context;
    const vpps_tree tree = vpps_treebank_tree(split->bank, i);
    for (uint32_t k = 0; k < tree.n_nodes; k++) {
        const int32_t label = tree.nodes[k].label;
        if (label < 0 || predicted[k] < 0) continue;
        accuracy_count(&a[NODES], (uint32_t)label, (uint32_t)predicted[k]);
        if (k + 1 == tree.n_nodes) accuracy_count(&a[ROOT], (uint32_t)label, (uint32_t)predicted[k]);
    }
    *n = tree.n_nodes;
    return VPPS_OK;
}

static vpps_status measure(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m) {
    class_counts *of_nodes = x->settings->classes_of == CLASSES_OF_NODES ? x->classes : NULL;
    accuracy a[] = {[ROOT] = {.classes = of_nodes ? NULL : x->classes}, [NODES] = {.classes = of_nodes}};
    VPPS_TRY(session_predict_all(x, c, split, stop, count, a));
    VPPS_TRY(measure_accuracy(x, a[ROOT], ROOT, m));
    VPPS_TRY(measure_accuracy(x, a[NODES], NODES, m));
    /* if only roots have labels, the accuracy at all nodes would repeat theirs: it is not reported */
    if (m->counted[NODES] <= m->counted[ROOT]) m->value[NODES] = NAN;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- prediction */

static json_t *gold_label(const answers *a, int32_t label) {
    return label < 0 ? json_null() : answer_label(a, (uint32_t)label);
}

/* Prints a tree (`whole`) or its root's label. `labels` replace the tree's own labels; NULL: its own labels are printed. */
static vpps_status print_answer(answers *a, vpps_tree tree, const vpps_vocab *words, const int32_t *labels,
                                bool whole) {
    const uint32_t root = tree.n_nodes - 1;
    if (whole) return vpps_tree_print(a->file, tree, words, labels, a->names);
    vpps_tree_print_label(a->file, labels ? labels[root] : tree.nodes[root].label, a->names);
    return VPPS_OK;
}

/* Makes the JSON answer: the root's class, and the class of each classified node with the range of the node's words: begin .. end - 1. */
static vpps_status answer_json(answers *a, const corpus *c, vpps_tree tree, const vpps_vocab *words,
                               const float *const *logits) {
    VPPS_FREED uint32_t *begins = vpps_scratch(((size_t)tree.n_nodes + 1) * sizeof *begins);
    uint32_t leaves = 0;
    if (!begins) return vpps_fail(VPPS_MEMORY, "no memory for a tree of %u nodes", tree.n_nodes);
    const float *root = logits[tree.n_nodes - 1];
    json_t *o = root ? answer_class(a, root, c->classes) : json_object();
    if (a->gold) json_object_set_new(o, "gold", gold_label(a, tree.nodes[tree.n_nodes - 1].label));
    json_t *all_words = json_array(), *nodes = json_array();
    for (uint32_t k = 0; k < tree.n_nodes; k++) { /* visits nodes children first, leaves from left to right */
        const vpps_tree_node *node = &tree.nodes[k];
        begins[k] = node->left < 0 ? leaves++ : begins[node->left];
        if (node->left < 0) {
            const char *word = vpps_vocab_word(words, node->word);
            json_array_append_new(all_words, answer_text(word, strlen(word)));
        }
        if (!logits[k]) continue;
        json_t *row = answer_class(a, logits[k], c->classes);
        json_object_set_new(row, "begin", json_integer(begins[k]));
        json_object_set_new(row, "end", json_integer(leaves));
        if (a->gold) json_object_set_new(row, "gold", gold_label(a, node->label));
        json_array_append_new(nodes, row);
    }
    json_object_set_new(o, "words", all_words);
    json_object_set_new(o, "nodes", nodes);
    return answers_end_json(a, o);
}

static vpps_status predict_json(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a) {
    VPPS_CLOSED_BY(position_logits_free) position_logits p = {0};
    size_t at = 0;
    VPPS_TRY(session_logits(x, c, split, split->examples + first, n, NET_HEADS_ALL, &p));
    for (uint32_t i = first; i < first + n; i++) {
        const vpps_tree tree = vpps_treebank_tree(split->bank, i);
        VPPS_TRY(answer_json(a, c, tree, vpps_treebank_vocab(split->bank), p.of + at));
        at += tree.n_nodes;
    }
    return VPPS_OK;
}

static vpps_status predict(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a) {
    int32_t *predicted = NULL;
    size_t at = 0;
    if (a->json) return predict_json(x, c, split, first, n, a);
    const vpps_vocab *words = vpps_treebank_vocab(split->bank);
    const bool whole = x->settings->output == OUTPUT_TREE;
    vpps_status status = session_predict(x, c, split, split->examples + first, n, NET_HEADS_ALL, &predicted);
    for (uint32_t i = first; i < first + n && status == VPPS_OK; i++) {
        const vpps_tree tree = vpps_treebank_tree(split->bank, i);
        if (a->gold) status = print_answer(a, tree, words, NULL, whole);
        if (a->gold) fputc('\t', a->file);
        if (status == VPPS_OK) status = print_answer(a, tree, words, predicted + at, whole);
        if (status == VPPS_OK) status = answers_end(a);
        at += tree.n_nodes;
    }
    VPPS_FREE_ARRAYS(predicted);
    return status;
}

const task task_trees = {
    .examples = "trees",
    .loss_of = "node",
    .n_generated = 20000, /* this number of ListOps trees trains in about a minute */
    .metrics = {{"root", "root", true, false, "trees"}, {"nodes", "all nodes", true, false, "labelled nodes"}},
    .read = read_part,
    .finish = finish,
    .generate = generate,
    .learn = learn,
    .map = map,
    .usable = usable,
    .lacks = "a label that can be trained on",
    .classifies = true,
    .example = example,
    .measure = measure,
    .predict = predict,
};

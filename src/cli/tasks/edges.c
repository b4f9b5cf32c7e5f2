/* edges.c - the task of graphs whose edges have types, measured by the accuracy of labels, which nodes or whole graphs have. */
#include "base/base.h"
#include "cli/input/corpus_read.h"
#include "cli/output/answers.h"
#include "cli/session/measure.h"
#include "cli/session/session.h"
#include "cli/tasks/tags.h"
#include "cli/tasks/words.h"
#include "io/text.h"

static bool whole(const settings *s) { return s->network->kind == NET_GRAPHS; }

/* ---------------------------------------------------------------- reading */

static vpps_status read_part(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                             const task_text *target) {
    const bool predict = s->command == COMMAND_PREDICT;
    const vpps_edge_labels labels = predict ? VPPS_NO_LABELS : whole(s) ? VPPS_GRAPH_LABELS : VPPS_NODE_LABELS;
    (void)c;
    (void)target;
    VPPS_TRY(task_need_sentences(&split->sentences));
    if (!split->edge_lists) VPPS_TRY(vpps_edge_lists_create(&split->edge_lists));
    split->edge_lists->numbers = s->net.numbers;
    const uint32_t before = vpps_sentences_size(split->sentences);
    VPPS_TRY(vpps_edge_lists_read_text(split->edge_lists, split->sentences, text->name, text->text, text->len, labels));
    const bool one = vpps_sentences_size(split->sentences) == before + 1;
    return predict && one ? task_keep_text(split, text) : VPPS_OK;
}

/* ---------------------------------------------------------------- generated graphs
 *
 * Each node has a colour, an edge "owner" to another node, and an edge "next" to another node; further edges "near" carry no information. A
 * node's label is the colour of its owner's next node; if that node is white, the label is missing. The first node is white, and the
 * graph's label is the colour of its owner's next node. Features of nodes, if any, carry no information. */

enum { FEWEST = 3, MOST = 14 };

static const char *const colours[] = {"white", "red", "green", "blue", "black"};

static uint32_t other(uint64_t *random, uint32_t node, uint32_t n) {
    return (node + 1 + vpps_random_below(random, n - 1)) % n;
}

/* Draws a node other than `node` and other than node 0, the only node without a colour. At least one node must remain. */
static uint32_t other_coloured(uint64_t *random, uint32_t node, uint32_t n) {
    const uint32_t to = 1 + vpps_random_below(random, n - 1);
    return to != node ? to : node + 1 < n ? node + 1 : node - 1;
}

static void print_graph(FILE *f, uint64_t *random, uint32_t numbers) {
    uint32_t colour[MOST] = {0}, owner[MOST] = {0}, next[MOST] = {0};
    const uint32_t n = FEWEST + vpps_random_below(random, MOST - FEWEST + 1);
    for (uint32_t i = 0; i < n; i++) {
        colour[i] = i ? 1 + vpps_random_below(random, VPPS_COUNT(colours) - 1) : 0;
        owner[i] = other(random, i, n);
        next[i] = other(random, i, n);
    }
    next[owner[0]] = other_coloured(random, owner[0], n);
    fprintf(f, "graph %s\n", colours[colour[next[owner[0]]]]);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t label = colour[next[owner[i]]];
        fprintf(f, "node %s %s", colours[colour[i]], label ? colours[label] : "-");
        for (uint32_t k = 0; k < numbers; k++) fprintf(f, " %.3g", (double)vpps_random_unit(random) - 0.5);
        fputc('\n', f);
    }
    for (uint32_t i = 0; i < n; i++)
        fprintf(f, "edge %u %u owner\nedge %u %u next\n", i + 1, owner[i] + 1, i + 1, next[i] + 1);
    for (uint32_t i = 0; i < n / 2; i++) {
        const uint32_t from = vpps_random_below(random, n);
        fprintf(f, "edge %u %u near\n", from + 1, other(random, from, n) + 1);
    }
}

static vpps_status generate(corpus *c, const settings *s, corpus_split *split, uint64_t seed, uint32_t n) {
    VPPS_FREED char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    for (uint32_t i = 0; f && i < n; i++) print_graph(f, &seed, s->net.numbers);
    VPPS_TRY(vpps_text_end(f, VPPS_OK, &text));
    return read_part(c, s, split, &(task_text){"generated", text, bytes}, NULL);
}

/* ---------------------------------------------------------------- ids */

static vpps_status learn(corpus *c, const settings *s) {
    const vpps_edge_lists *train = c->split[SPLIT_TRAIN].edge_lists;
    if (!train->n_edges) return vpps_fail(VPPS_FORMAT, "the training graphs have no edges");
    VPPS_TRY(task_copy_vocab(&c->vocab[VOCAB_EDGE_TYPES], train->types));
    return tags_learn_sentences(c, s);
}

static void note_types(corpus *c, const corpus_split *split) {
    const vpps_edge_lists *e = split->edge_lists;
    size_t n = 0, first = 0;
    for (size_t i = 0; i < e->n_edges; i++)
        if (split->ids[VOCAB_EDGE_TYPES][e->edges[i].type] == VPPS_NO_WORD && !n++) first = i;
    if (!n) return;
    corpus_note(c,
                "the training part has no edge of type '%.40s': such edges are left out, with others of unknown types "
                "%zu of %zu",
                vpps_vocab_word(e->types, e->edges[first].type), n, e->n_edges);
}

static vpps_status map(corpus *c, const settings *s, corpus_split *split) {
    VPPS_TRY(vpps_vocab_map(split->edge_lists->types, c->vocab[VOCAB_EDGE_TYPES], VPPS_NO_WORD,
                            &split->ids[VOCAB_EDGE_TYPES]));
    VPPS_TRY(tags_map_sentences(c, s, split));
    if (s->command != COMMAND_PREDICT) note_types(c, split);
    return VPPS_OK;
}

/* Returns the network's class for a label of the split; VPPS_NO_WORD: no label, or one unknown to training. */
static uint32_t class_of_label(const corpus_split *split, uint32_t label) {
    return label == VPPS_NO_WORD ? label : split->ids[VOCAB_CLASSES][label];
}

/* Copies the edges whose types the network knows. */
static vpps_status copy_edges(corpus *c, const corpus_split *split, uint32_t i, net_example *x) {
    const struct vpps_edge_list *g = &split->edge_lists->graphs[i];
    corpus_scratch *scratch = &c->scratch;
    if (!VPPS_RESERVE(scratch->edges, (size_t)g->n_edges + 1))
        return vpps_fail(VPPS_MEMORY, "no memory for %u edges", g->n_edges);
    x->edges = scratch->edges;
    for (uint32_t k = 0; k < g->n_edges; k++) {
        const vpps_edge *edge = &split->edge_lists->edges[g->first_edge + k];
        const uint32_t type = split->ids[VOCAB_EDGE_TYPES][edge->type];
        if (type != VPPS_NO_WORD) scratch->edges[x->n_edges++] = (net_edge){edge->from, edge->to, type};
    }
    return VPPS_OK;
}

static vpps_status example(corpus *c, const corpus_split *split, uint32_t i, net_example *x) {
    const vpps_sentence nodes = vpps_sentences_get(split->sentences, i);
    const vpps_edge_lists *e = split->edge_lists;
    corpus_scratch *scratch = &c->scratch;
    VPPS_TRY(task_copy_ids(&scratch->words, nodes.words, nodes.n_words, split->ids[VOCAB_WORDS]));
    VPPS_TRY(copy_edges(c, split, i, x));
    x->sentence = (vpps_sentence){.words = scratch->words, .n_words = nodes.n_words};
    x->numbers = e->numbers ? e->values + e->graphs[i].first_node * e->numbers : NULL;
    x->label = vpps_sentences_label(split->sentences, i);
    if (x->label != VPPS_NO_WORD) /* a label unknown to training becomes c->classes, one past the last class */
        x->label = vpps_min_u32(class_of_label(split, x->label), c->classes);
    if (!nodes.tags) return VPPS_OK;
    VPPS_TRY(task_copy_ids(&scratch->tags, nodes.tags, nodes.n_words, NULL));
    for (uint32_t k = 0; k < nodes.n_words; k++) {
        /* label 0 means that some node has a label, VPPS_NO_WORD that no node has one */
        if (nodes.tags[k] != VPPS_NO_WORD) x->label = 0;
        scratch->tags[k] = class_of_label(split, nodes.tags[k]);
    }
    x->sentence.tags = scratch->tags;
    return VPPS_OK;
}

/* Returns whether a graph has a label that can be used. Training needs a label known to the network; measuring needs any label, and counts
 * an unknown one as wrong. */
static bool usable(const net_example *x, const settings *s, bool training) {
    bool known = !x->sentence.tags && x->label < s->net.classes;
    if (!training) return x->label != VPPS_NO_WORD;
    for (uint32_t k = 0; x->sentence.tags && k < x->sentence.n_words; k++)
        known |= x->sentence.tags[k] < s->net.classes;
    return known;
}

/* ---------------------------------------------------------------- measuring */

static vpps_status count(void *context, const corpus_split *split, uint32_t i, const int32_t *predicted, uint32_t *n) {
    const vpps_sentence nodes = vpps_sentences_get(split->sentences, i);
    *n = nodes.tags ? nodes.n_words : 1;
    for (uint32_t k = 0; k < *n; k++) {
        const uint32_t label = nodes.tags ? nodes.tags[k] : vpps_sentences_label(split->sentences, i);
        if (label != VPPS_NO_WORD) accuracy_count(context, class_of_label(split, label), (uint32_t)predicted[k]);
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- prediction */

/* Prints the line of a node or a graph with the predicted label `said` in place of the line's own label, the text from `label` to `end`. */
static void print_labelled(FILE *f, const vpps_line *line, const char *label, const char *end, const char *said) {
    const bool had = label < end;
    fprintf(f, "%.*s%s%s%.*s", (int)(label - line->begin), line->begin, had ? "" : " ", said, (int)(line->next - end),
            end);
}

/* Prints the lines of a graph, with the network's labels in place of the labels that the lines have; line ends stay. */
static vpps_status answer_lines(answers *a, const corpus *c, const corpus_split *split, const float *const *logits,
                                uint32_t i, bool of_graph) {
    const vpps_text t = task_text_of(split, i);
    const vpps_edge_labels labels = of_graph ? VPPS_GRAPH_LABELS : VPPS_NODE_LABELS;
    const char *label, *end;
    for (vpps_line line = {0}; vpps_text_next_line(&t, &line);) {
        if (vpps_edge_lists_label(line.begin, line.end, labels, &label, &end)) {
            const uint32_t said = likeliest_class(*logits++, c->classes);
            print_labelled(a->file, &line, label, end, vpps_vocab_word(c->vocab[VOCAB_CLASSES], said));
        } else {
            fprintf(a->file, "%.*s", (int)(line.next - line.begin), line.begin);
        }
    }
    return answers_end(a);
}

static vpps_status answer_json(answers *a, const corpus *c, const float *const *logits, uint32_t n_nodes,
                               bool of_graph) {
    if (of_graph) return answers_end_json(a, answer_class(a, *logits, c->classes));
    json_t *o = json_object(), *labels = json_array();
    for (uint32_t k = 0; k < n_nodes; k++) json_array_append_new(labels, answer_class(a, logits[k], c->classes));
    json_object_set_new(o, "nodes", labels);
    return answers_end_json(a, o);
}

static vpps_status predict(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a) {
    const bool of_graph = whole(x->settings);
    VPPS_CLOSED_BY(position_logits_free) position_logits p = {0};
    size_t at = 0;
    VPPS_TRY(session_logits(x, c, split, split->examples + first, n, NET_HEADS_ALL, &p));
    for (uint32_t i = first; i < first + n; i++) {
        const uint32_t n_nodes = vpps_sentences_get(split->sentences, i).n_words;
        VPPS_TRY(a->json ? answer_json(a, c, p.of + at, n_nodes, of_graph)
                         : answer_lines(a, c, split, p.of + at, i, of_graph));
        at += of_graph ? 1 : n_nodes;
    }
    return VPPS_OK;
}

#define EDGES_TASK(label_of, of)                                                                                       \
    {                                                                                                                  \
        .examples = "graphs", .own_form = "lists of edges", .generated = "generated graphs", .loss_of = label_of,      \
        .n_generated = 3000, .classifies = true, .metrics = {{"accuracy", "accuracy", true, false, of}},               \
        .read = read_part, .generate = generate, .learn = learn, .map = map, .usable = usable, .lacks = "a label",     \
        .example = example, .count = count, .predict = predict                                                         \
    }

const task task_nodes = EDGES_TASK("node", "nodes");
const task task_graphs = EDGES_TASK(NULL, "graphs");

/* edge_lists.c - reads graphs with typed edges. */
#include "edge_lists.h"

#include "base/base.h"
#include "sequences.h"

vpps_status vpps_edge_lists_create(vpps_edge_lists **out) {
    vpps_edge_lists *e = *out = calloc(1, sizeof *e);
    if (!e) return vpps_fail(VPPS_MEMORY, "graphs: out of memory");
    const vpps_status status = vpps_vocab_create(&e->types);
    if (status == VPPS_OK) return VPPS_OK;
    free(e);
    *out = NULL;
    return status;
}

void vpps_edge_lists_destroy(vpps_edge_lists *e) {
    if (!e) return;
    vpps_vocab_destroy(e->types);
    VPPS_FREE_ARRAYS(e->values, e->edges, e->graphs);
    free(e);
}

/* ---------------------------------------------------------------- lines */

typedef struct graph_reader {
    vpps_edge_lists *e;
    vpps_sentences *nodes;
    const vpps_text *t;
    vpps_edge_labels wanted;
    uint32_t line;  /* first line of the current graph; 0: none has begun */
    uint32_t label; /* the current graph's label */
} graph_reader;

static vpps_status fail_memory(const graph_reader *r) {
    return vpps_fail(VPPS_MEMORY, "%s: out of memory at line %u", r->t->name, r->line);
}

/* Fails with FORMAT because the line has something else at `at` than what is expected there. */
static vpps_status fail_at(const graph_reader *r, const char *at, const vpps_line *line, const char *expected) {
    at = vpps_skip_blanks(at, line->end);
    return vpps_text_fail(r->t, at, expected, at == line->end ? "the end of the line" : NULL);
}

static vpps_status expect_end(const graph_reader *r, const char *at, const vpps_line *line) {
    return vpps_skip_blanks(at, line->end) == line->end ? VPPS_OK : fail_at(r, at, line, "the end of the line");
}

/* Takes a line's next word as a label of the given kind, of nodes or of graphs. The result is an empty word if the word is "-" or missing,
 * or if the caller asked for labels of the other kind. */
static vpps_word next_label(const graph_reader *r, const char **at, const vpps_line *line, vpps_edge_labels kind) {
    vpps_word w;
    return !vpps_text_next_word(at, line->end, &w) || vpps_word_is(w, "-") || r->wanted != kind ? (vpps_word){0} : w;
}

/* ---------------------------------------------------------------- graphs */

static uint32_t graphs_so_far(const graph_reader *r) { return vpps_sentences_size(r->nodes); }

static size_t nodes_so_far(const graph_reader *r) {
    return r->nodes->n_words - r->e->graphs[graphs_so_far(r)].first_node;
}

static vpps_status end_graph(graph_reader *r, const char *at) {
    if (!r->line) return VPPS_OK;
    struct vpps_edge_list *g = &r->e->graphs[graphs_so_far(r)];
    if (!nodes_so_far(r))
        return vpps_text_fail(r->t, at, "a node of the graph before", at == r->t->end ? "the end" : NULL);
    if (r->e->n_edges - g->first_edge > UINT32_MAX) return fail_memory(r);
    g->n_edges = (uint32_t)(r->e->n_edges - g->first_edge);
    return vpps_sentences_end(r->nodes, r->line, r->label);
}

static vpps_status begin_graph(graph_reader *r, const char *at, const vpps_line *line) {
    vpps_edge_lists *e = r->e;
    VPPS_TRY(end_graph(r, line->begin));
    r->line = line->number;
    const vpps_word label = next_label(r, &at, line, VPPS_GRAPH_LABELS);
    r->label = VPPS_NO_WORD;
    if (label.at) VPPS_TRY(vpps_vocab_add_unchecked(r->nodes->tag_vocab, label.at, label.len, &r->label));
    if (!VPPS_RESERVE(e->graphs, (size_t)graphs_so_far(r) + 1)) return fail_memory(r);
    e->graphs[graphs_so_far(r)] = (struct vpps_edge_list){r->nodes->n_words, e->n_edges, 0};
    return expect_end(r, at, line);
}

static vpps_status read_node(graph_reader *r, const char *at, const vpps_line *line) {
    vpps_edge_lists *e = r->e;
    const size_t n = r->nodes->n_words;
    vpps_word w;
    if (nodes_so_far(r) >= UINT32_MAX - 1) return vpps_text_fail(r->t, line->begin, "fewer than 2^32 - 1 nodes", NULL);
    if (!vpps_text_next_word(&at, line->end, &w)) return fail_at(r, at, line, "the node's word");
    const vpps_word label = next_label(r, &at, line, VPPS_NODE_LABELS);
    r->nodes->line = line->number;
    VPPS_TRY(vpps_sentences_add_word(r->nodes, w.at, w.len, label.at, label.len));
    if (!VPPS_RESERVE(e->values, (n + 1) * e->numbers + 1)) return fail_memory(r);
    for (uint32_t i = 0; i < e->numbers; i++) {
        const char *before = at;
        if (vpps_text_next_word(&at, line->end, &w) &&
            vpps_text_number(w.at, w.at + w.len, &e->values[n * e->numbers + i]))
            continue;
        char expected[80];
        snprintf(expected, sizeof expected, "a label and %u numbers, of which this is number %u", e->numbers, i + 1);
        return fail_at(r, before, line, expected);
    }
    return expect_end(r, at, line);
}

/* Converts a node's number, which counts from 1 in the text, to a number that counts from 0. */
static bool parse_end(const graph_reader *r, const vpps_word *w, uint32_t *node) {
    uint64_t v;
    if (!vpps_text_whole_number(w->at, w->at + w->len, nodes_so_far(r), &v) || !v) return false;
    *node = (uint32_t)v - 1;
    return true;
}

static vpps_status read_edge(graph_reader *r, const char *at, const vpps_line *line) {
    static const char *const names[] = {"from", "to"};
    vpps_edge_lists *e = r->e;
    uint32_t ends[2] = {0};
    vpps_edge edge;
    vpps_word w;
    for (int i = 0; i < 2; i++) {
        const char *before = at;
        if (vpps_text_next_word(&at, line->end, &w) && parse_end(r, &w, &ends[i])) continue;
        char expected[80];
        snprintf(expected, sizeof expected, "the node that the edge is %s: 1 to %zu, the last one above", names[i],
                 nodes_so_far(r));
        return fail_at(r, before, line, nodes_so_far(r) ? expected : "a node above its edges");
    }
    if (!vpps_text_next_word(&at, line->end, &w)) w = (vpps_word){"-", 1};
    edge = (vpps_edge){ends[0], ends[1], 0};
    VPPS_TRY(vpps_vocab_add_unchecked(e->types, w.at, w.len, &edge.type));
    if (!VPPS_RESERVE(e->edges, e->n_edges + 1)) return fail_memory(r);
    e->edges[e->n_edges++] = edge;
    return expect_end(r, at, line);
}

static vpps_status read_line(graph_reader *r, const vpps_line *line) {
    const char *at = line->begin;
    vpps_word w;
    if (!vpps_text_next_word(&at, line->end, &w) || *w.at == '#') return VPPS_OK;
    if (vpps_word_is(w, "graph")) return begin_graph(r, at, line);
    if (!r->line) return vpps_text_fail(r->t, w.at, "'graph', which begins one", NULL);
    if (vpps_word_is(w, "node")) return read_node(r, at, line);
    if (vpps_word_is(w, "edge")) return read_edge(r, at, line);
    return vpps_text_fail(r->t, w.at, "'graph', 'node' or 'edge'", NULL);
}

vpps_status vpps_edge_lists_read_text(vpps_edge_lists *e, vpps_sentences *nodes, const char *name, const char *text,
                                      size_t len, vpps_edge_labels labels) {
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(nodes);
    const size_t n_edges = e->n_edges;
    const uint32_t n_types = vpps_vocab_size(e->types);
    static const vpps_sentences_kind kinds[] = {
        [VPPS_NODE_LABELS] = VPPS_TAGGED, [VPPS_GRAPH_LABELS] = VPPS_LABELLED, [VPPS_NO_LABELS] = VPPS_PLAIN};
    graph_reader r = {.e = e, .nodes = nodes, .t = &t, .wanted = labels};
    vpps_line line = {0};
    VPPS_TRY(vpps_text_check(&t));
    VPPS_TRY(vpps_sentences_begin(nodes, kinds[labels]));
    vpps_status status = VPPS_OK;
    while (status == VPPS_OK && vpps_text_next_line(&t, &line)) status = read_line(&r, &line);
    if (status == VPPS_OK) status = end_graph(&r, t.end);
    if (status == VPPS_OK) return VPPS_OK;
    vpps_sentences_restore(nodes, before);
    vpps_vocab_truncate(e->types, n_types);
    e->n_edges = n_edges;
    return status;
}

bool vpps_edge_lists_label(const char *begin, const char *end, vpps_edge_labels labels, const char **at,
                           const char **label_end) {
    vpps_word w;
    const char *p = begin;
    if (!vpps_text_next_word(&p, end, &w) || !vpps_word_is(w, labels == VPPS_NODE_LABELS ? "node" : "graph"))
        return false;
    if (labels == VPPS_NODE_LABELS && !vpps_text_next_word(&p, end, &w)) return false;
    *at = *label_end = p;
    if (vpps_text_next_word(&p, end, &w)) {
        *at = w.at;
        *label_end = w.at + w.len;
    }
    return true;
}

/* fuzz_edge_lists.c - reads any bytes as lists of edges, in a way that the first byte chooses: what is read keeps the header's promises; a refusal
 * leaves the graphs as they were. */
#include "fuzz.h"
#include "io/edge_lists.h"

#include <math.h>

static void check_graph(const vpps_edge_lists *e, const vpps_sentences *s, uint32_t i, vpps_edge_labels labels) {
    const vpps_sentence x = vpps_sentences_get(s, i);
    const struct vpps_edge_list *g = &e->graphs[i];
    const uint32_t label = vpps_sentences_label(s, i), n_labels = vpps_vocab_size(vpps_sentences_tag_vocab(s));
    require(x.n_words > 0 && (x.tags != NULL) == (labels == VPPS_NODE_LABELS));
    require(label == VPPS_NO_WORD || (label < n_labels && labels == VPPS_GRAPH_LABELS));
    require(g->first_edge + g->n_edges <= e->n_edges);
    for (uint32_t k = 0; k < x.n_words; k++) {
        require(x.words[k] < vpps_vocab_size(vpps_sentences_vocab(s)));
        require(!x.tags || x.tags[k] == VPPS_NO_WORD || x.tags[k] < n_labels);
        for (uint32_t v = 0; v < e->numbers; v++) require(isfinite(e->values[(g->first_node + k) * e->numbers + v]));
    }
    for (uint32_t k = 0; k < g->n_edges; k++) {
        const vpps_edge *edge = &e->edges[g->first_edge + k];
        require(edge->from < x.n_words && edge->to < x.n_words && edge->type < vpps_vocab_size(e->types));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char *const first[] = {"graph g\nnode a p\nedge 1 1 t\n", "graph g\nnode a p 1 2\nedge 1 1 t\n"};
    if (n == 0) return 0;
    const vpps_edge_labels labels = (vpps_edge_labels)(data[0] % 3);
    const bool numbers = data[0] & 4;
    vpps_edge_lists *e;
    vpps_sentences *s;
    require(vpps_edge_lists_create(&e) == VPPS_OK);
    require(vpps_sentences_create(&s) == VPPS_OK);
    e->numbers = numbers ? 2 : 0;
    require(vpps_edge_lists_read_text(e, s, "first", first[numbers], strlen(first[numbers]), labels) == VPPS_OK);
    const uint32_t n_labels = vpps_vocab_size(vpps_sentences_tag_vocab(s));
    if (vpps_edge_lists_read_text(e, s, "fuzz", (const char *)data + 1, n - 1, labels) == VPPS_OK) {
        for (uint32_t i = 0; i < vpps_sentences_size(s); i++) check_graph(e, s, i, labels);
    } else {
        require(vpps_sentences_size(s) == 1 && vpps_sentences_total_words(s) == 1 && e->n_edges == 1);
        require(vpps_vocab_size(vpps_sentences_vocab(s)) == 1 && vpps_vocab_size(e->types) == 1);
        require(vpps_vocab_size(vpps_sentences_tag_vocab(s)) == n_labels);
        require(strncmp(vpps_error_message(), "fuzz:", 5) == 0);
        check_graph(e, s, 0, labels);
    }
    vpps_edge_lists_destroy(e);
    vpps_sentences_destroy(s);
    return 0;
}

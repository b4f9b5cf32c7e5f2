/* corpus.c - functions on splits of the data (training, dev and test data) that all kinds of networks share. */
#include "cli/input/corpus.h"
#include "base/base.h"

const char *const vocab_names[N_VOCABS] = {"vocabulary", "characters", "edge_types", "class_names", "lexicon"};

static uint32_t vocab_size(const corpus *c, int which) {
    return c->vocab[which] ? vpps_vocab_size(c->vocab[which]) : 0;
}

static bool needs_vocab(const settings *s, int which) {
    const net_kind kind = s->network->kind;
    const bool lattices = kind == NET_LATTICES || kind == NET_LATTICE_PAIRS;
    switch (which) {
    case VOCAB_CHARACTERS: return lattices || s->network->spells;
    case VOCAB_EDGE_TYPES: return kind == NET_NODES || kind == NET_GRAPHS;
    case VOCAB_CLASSES: return kind != NET_TREES && kind != NET_TEXT;
    case VOCAB_LEXICON: return lattices;
    default: return true;
    }
}

vpps_status corpus_check(const corpus *c, const settings *s, const char *path) {
    for (int k = 0; k < N_VOCABS; k++) {
        if (c->vocab[k] || !needs_vocab(s, k)) continue;
        return vpps_fail(VPPS_FORMAT, "%s: no \"%s\" in its metadata, which %s needs", path, vocab_names[k],
                         s->network->name);
    }
    const net_kind kind = s->network->kind;
    const uint32_t names = vocab_size(c, kind == NET_TEXT ? VOCAB_WORDS : VOCAB_CLASSES);
    /* dev and test may have names of constituents that the training data lack */
    if (kind == NET_TREES ? !names || names >= c->classes : names == c->classes) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "%s: its metadata has %u classes, but %u names of them", path, c->classes, names);
}

uint32_t corpus_read_so_far(const corpus_split *split) {
    if (split->words) return vpps_sentences_size(split->words);
    if (split->sentences) return vpps_sentences_size(split->sentences);
    if (split->constituents) return vpps_constituents_size(split->constituents);
    return split->bank ? vpps_treebank_size(split->bank) : 0;
}

const corpus_file *corpus_file_of(const corpus_split *split, uint32_t i) {
    const corpus_file *file = split->files;
    for (size_t k = 0; k < split->n_files && split->files[k].first <= i; k++) file = &split->files[k];
    return file;
}

void corpus_place(const corpus_split *split, uint32_t i, char *text, size_t n) {
    const corpus_file *file = corpus_file_of(split, i);
    const uint32_t line =
        split->sentences ? vpps_sentences_line(split->sentences, i) : vpps_treebank_line(split->bank, i);
    snprintf(text, n, "%s:%u", file ? file->name : "generated", line);
}

void corpus_set_sizes(const corpus *c, settings *s) {
    s->net.words = vocab_size(c, VOCAB_WORDS);
    s->net.characters = vocab_size(c, VOCAB_CHARACTERS);
    s->net.edge_types = vocab_size(c, VOCAB_EDGE_TYPES);
    s->net.classes = c->classes;
}

void corpus_shuffle(const corpus_split *split, uint64_t seed, uint32_t epoch, uint32_t *order) {
    uint64_t state = vpps_mix64(vpps_mix64(seed) + epoch);
    memcpy(order, split->examples, split->n_examples * sizeof *order);
    for (uint32_t i = split->n_examples; i > 1; i--) { /* Fisher-Yates shuffle */
        const uint32_t j = vpps_random_below(&state, i), last = order[i - 1];
        order[i - 1] = order[j];
        order[j] = last;
    }
}

void corpus_clear_split(corpus_split *split) {
    for (int k = 0; k < N_VOCABS; k++) free(split->ids[k]);
    for (size_t k = 0; k < split->n_files; k++) free(split->files[k].name);
    VPPS_FREE_ARRAYS(split->files, split->text, split->text_ends);
    VPPS_FREE(split->stream, split->starts, split->examples);
    vpps_treebank_destroy(split->bank);
    vpps_constituents_destroy(split->constituents);
    vpps_sentences_destroy(split->sentences);
    vpps_sentences_destroy(split->target);
    vpps_sentences_destroy(split->words);
    vpps_lattices_destroy(split->lattices);
    vpps_spellings_destroy(split->spellings);
    vpps_edge_lists_destroy(split->edge_lists);
    *split = (corpus_split){.present = false};
}

void corpus_close(corpus *c) {
    for (int i = 0; i < N_SPLITS; i++) corpus_clear_split(&c->split[i]);
    for (int k = 0; k < N_VOCABS; k++) vpps_vocab_destroy(c->vocab[k]);
    corpus_scratch *x = &c->scratch;
    VPPS_FREE_ARRAYS(x->nodes, x->arcs, x->words, x->tags, x->target, x->characters, x->spellings, x->edges);
    for (uint32_t i = 0; i < c->n_texts; i++) free(c->texts[i]);
    for (size_t i = 0; i < c->n_notes; i++) free(c->notes[i]);
    VPPS_FREE_ARRAYS(c->notes);
    memset(c, 0, sizeof *c);
}

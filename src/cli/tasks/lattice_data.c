/* lattice_data.c - ids of the characters and words on the arcs of lattices. */
#include "cli/tasks/lattice_data.h"
#include "base/base.h"
#include "cli/tasks/words.h"

/* Returns the names of characters or of words on arcs. */
static const vpps_vocab *names_of(const corpus *c, const corpus_split *split, int which) {
    return which == VOCAB_WORDS ? c->vocab[VOCAB_LEXICON] : vpps_sentences_vocab(split->sentences);
}

vpps_status lattice_build(const corpus *c, corpus_split *split) {
    VPPS_TRY(vpps_lattices_create(&split->lattices));
    return vpps_lattices_build(split->lattices, split->sentences, c->vocab[VOCAB_LEXICON]);
}

vpps_status lattice_generate(corpus *c, const settings *s, corpus_split *split, uint64_t seed, uint32_t n) {
    VPPS_TRY(task_generate_sentences(c, s, split, seed, n));
    return lattice_build(c, split);
}

/* Makes a vocabulary from the ids on arcs of the training split; an id's frequency is the number of arcs that have the id. */
static vpps_status learn_vocab(corpus *c, const settings *s, int which) {
    const corpus_split *train = &c->split[SPLIT_TRAIN];
    const vpps_vocab *names = names_of(c, train, which);
    VPPS_FREED uint32_t *counts = vpps_scratch(((size_t)vpps_vocab_size(names) + 1) * sizeof *counts);
    if (!counts) return vpps_fail(VPPS_MEMORY, "no memory for the words of lattices");
    for (uint32_t i = 0; i < vpps_lattices_size(train->lattices); i++) {
        const vpps_lattice l = vpps_lattices_get(train->lattices, i);
        for (uint32_t a = 0; a < l.first_arc[l.n_nodes]; a++)
            if (l.arcs[a].is_character == (which == VOCAB_CHARACTERS)) counts[l.arcs[a].id]++;
    }
    return task_cut(c, &c->vocab[which], names, counts, s->min_count);
}

vpps_status lattice_learn(corpus *c, const settings *s) {
    VPPS_TRY(learn_vocab(c, s, VOCAB_CHARACTERS));
    return learn_vocab(c, s, VOCAB_WORDS);
}

static vpps_status map_vocab(const corpus *c, corpus_split *split, int which) {
    return task_map_ids(split, which, names_of(c, split, which), c->vocab[which], 0);
}

vpps_status lattice_map(const corpus *c, corpus_split *split) {
    split->n_all = vpps_lattices_size(split->lattices);
    VPPS_TRY(map_vocab(c, split, VOCAB_CHARACTERS));
    return map_vocab(c, split, VOCAB_WORDS);
}

vpps_status lattice_example(corpus *c, const corpus_split *split, uint32_t i, net_example *x) {
    corpus_scratch *scratch = &c->scratch;
    scratch->lattice = vpps_lattices_get(split->lattices, i);
    vpps_lattice *l = &scratch->lattice;
    const uint32_t n_arcs = l->first_arc[l->n_nodes];
    if (!VPPS_RESERVE(scratch->arcs, (size_t)n_arcs + 1))
        return vpps_fail(VPPS_MEMORY, "no memory for a lattice of %u arcs", n_arcs);
    for (uint32_t a = 0; a < n_arcs; a++) {
        scratch->arcs[a] = l->arcs[a];
        scratch->arcs[a].id = split->ids[l->arcs[a].is_character ? VOCAB_CHARACTERS : VOCAB_WORDS][l->arcs[a].id];
    }
    l->arcs = scratch->arcs;
    x->lattice = l;
    return VPPS_OK;
}

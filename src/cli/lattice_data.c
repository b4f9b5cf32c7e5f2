/* lattice_data.c - see lattice_data.h. */
#include "lattice_data.h"
#include "base/base.h"

vpps_status lattice_numbers(vpps_vocab **out, uint32_t n) {
    VPPS_TRY(vpps_vocab_create(out));
    for (uint32_t i = 0; i < n; i++) {
        char text[16];
        uint32_t id;
        const int len = snprintf(text, sizeof text, "%u", i);
        VPPS_TRY(vpps_vocab_add(*out, text, (size_t)len, &id));
    }
    return VPPS_OK;
}

vpps_status lattice_build(const corpus *c, corpus_split *split) {
    VPPS_TRY(vpps_lattices_create(&split->lattices));
    return vpps_lattices_build(split->lattices, split->sentences, c->vocab[VOCAB_LEXICON]);
}

/* The names of a split's ids: of its sentences' characters and the lexicon, or (NULL) numbers. */
static const vpps_vocab *names_of(const corpus *c, const corpus_split *split, bool characters) {
    if (!split->sentences) return NULL;
    return characters ? vpps_sentences_vocab(split->sentences) : c->vocab[VOCAB_LEXICON];
}

static uint32_t count_ids(const corpus_split *split, bool characters) {
    return characters ? vpps_lattices_characters(split->lattices) : vpps_lattices_words(split->lattices);
}

/* How many arcs of the training part have each id below n. */
static vpps_status learn_vocab(corpus *c, const settings *s, bool characters) {
    const corpus_split *train = &c->split[SPLIT_TRAIN];
    const vpps_vocab *names = names_of(c, train, characters);
    vpps_vocab *numbers = NULL;
    if (!names) VPPS_TRY(lattice_numbers(&numbers, count_ids(train, characters)));
    if (!names) names = numbers;
    uint32_t *counts = calloc((size_t)vpps_vocab_size(names) + 1, sizeof *counts);
    for (uint32_t i = 0; counts && i < vpps_lattices_size(train->lattices); i++) {
        const vpps_lattice l = vpps_lattices_get(train->lattices, i);
        for (uint32_t a = 0; a < l.first_arc[l.n_nodes]; a++) {
            if (l.arcs[a].is_character == characters) counts[l.arcs[a].id]++;
        }
    }
    const int which = characters ? VOCAB_CHARACTERS : VOCAB_WORDS;
    const vpps_status status = counts ? vpps_vocab_cut(&c->vocab[which], names, counts, s->min_count)
                                      : vpps_fail(VPPS_MEMORY, "no memory for the words of lattices");
    free(counts);
    vpps_vocab_destroy(numbers);
    return status;
}

vpps_status lattice_learn(corpus *c, const settings *s) {
    VPPS_TRY(learn_vocab(c, s, true));
    return learn_vocab(c, s, false);
}

static vpps_status map_vocab(const corpus *c, corpus_split *split, bool characters) {
    const int which = characters ? VOCAB_CHARACTERS : VOCAB_WORDS;
    const vpps_vocab *names = names_of(c, split, characters);
    if (names) return task_map_ids(split, which, names, c->vocab[which], 0);
    vpps_vocab *numbers;
    VPPS_TRY(lattice_numbers(&numbers, count_ids(split, characters)));
    const vpps_status status = task_map_ids(split, which, numbers, c->vocab[which], 0);
    vpps_vocab_destroy(numbers);
    return status;
}

vpps_status lattice_map(const corpus *c, corpus_split *split) {
    split->n_all = vpps_lattices_size(split->lattices);
    VPPS_TRY(map_vocab(c, split, true));
    return map_vocab(c, split, false);
}

vpps_status lattice_example(corpus *c, const corpus_split *split, uint32_t i, net_example *x) {
    corpus_scratch *scratch = &c->scratch;
    scratch->lattice = vpps_lattices_get(split->lattices, i);
    vpps_lattice *l = &scratch->lattice;
    const uint32_t n_arcs = l->first_arc[l->n_nodes];
    if (!VPPS_RESERVE(scratch->arcs, scratch->arcs_capacity, (size_t)n_arcs + 1)) {
        return vpps_fail(VPPS_MEMORY, "no memory for a lattice of %u arcs", n_arcs);
    }
    for (uint32_t a = 0; a < n_arcs; a++) {
        scratch->arcs[a] = l->arcs[a];
        scratch->arcs[a].id = split->ids[l->arcs[a].is_character ? VOCAB_CHARACTERS : VOCAB_WORDS][l->arcs[a].id];
    }
    l->arcs = scratch->arcs;
    x->lattice = l;
    return VPPS_OK;
}

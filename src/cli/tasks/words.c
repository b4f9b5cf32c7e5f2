/* words.c - reads words, and characters and words on the arcs of lattices, and maps them to ids. */
#include "cli/tasks/words.h"
#include "base/base.h"
#include "cli/input/corpus_read.h"

vpps_status task_read_characters(vpps_sentences *out, const task_text *text) {
    VPPS_FREED char *spaced = vpps_scratch(2 * text->len + 1);
    if (!spaced) return vpps_fail(VPPS_MEMORY, "no memory for the characters of %s", text->name);
    size_t n = 0;
    for (size_t at = 0; at < text->len;) {
        const uint32_t bytes = vpps_utf8_character(text->text + at, text->len - at);
        memcpy(spaced + n, text->text + at, bytes);
        n += bytes;
        at += bytes;
        if (text->text[at - 1] != '\n' && text->text[at - 1] != '\r') spaced[n++] = ' ';
    }
    return vpps_sentences_read_lines_text(out, text->name, spaced, n, NULL);
}

vpps_status task_need_sentences(vpps_sentences **s) { return *s ? VPPS_OK : vpps_sentences_create(s); }

vpps_status task_generate_sentences(corpus *c, const settings *s, corpus_split *split, uint64_t seed, uint32_t n) {
    const task *t = task_for(s);
    vpps_language language = t->language;
    language.seed = seed;
    vpps_vocab **lexicon = language.characters && !c->vocab[VOCAB_LEXICON] ? &c->vocab[VOCAB_LEXICON] : NULL;
    if (lexicon) VPPS_TRY(vpps_vocab_create(lexicon));
    VPPS_TRY(vpps_sentences_create(&split->sentences));
    if (t->paired) VPPS_TRY(vpps_sentences_create(&split->target));
    return vpps_sentences_generate(split->sentences, split->target, lexicon ? *lexicon : NULL, &language, n);
}

vpps_status task_add_words(vpps_vocab *to, const vpps_vocab *from) {
    for (uint32_t i = 0, id; i < vpps_vocab_size(from); i++) {
        const char *word = vpps_vocab_word(from, i);
        VPPS_TRY(vpps_vocab_add(to, word, strlen(word), &id));
    }
    return VPPS_OK;
}

vpps_status task_copy_vocab(vpps_vocab **out, const vpps_vocab *from) {
    VPPS_TRY(vpps_vocab_create(out));
    return task_add_words(*out, from);
}

static void note_cut(corpus *c, const vpps_vocab *words, const uint32_t *counts, uint32_t min_count) {
    enum { MUCH = 5 }; /* adds a note if at least 1 / MUCH of the text's words become <unk>, since they are rare */
    uint64_t all = 0, cut = 0;
    uint32_t rare = 0, n = 0;
    for (uint32_t i = 0; i < vpps_vocab_size(words); i++) {
        all += counts[i];
        n += counts[i] > 0;
        if (!counts[i] || counts[i] >= min_count) continue;
        rare++;
        cut += counts[i];
    }
    if (cut * MUCH < all || !cut) return;
    corpus_note(c, "%u of %u different words occur fewer than %u times, and become <unk>: --min-count 1 keeps them",
                rare, n, min_count);
}

vpps_status task_cut(corpus *c, vpps_vocab **out, const vpps_vocab *words, const uint32_t *counts, uint32_t min_count) {
    note_cut(c, words, counts, min_count);
    return vpps_vocab_cut(out, words, counts, min_count);
}

vpps_status task_cut_words(corpus *c, vpps_vocab **out, const vpps_sentences *sentences, uint32_t min_count,
                           bool ends) {
    VPPS_FREED uint32_t *counts = NULL;
    VPPS_TRY(vpps_sentences_counts(sentences, &counts));
    const vpps_vocab *words = vpps_sentences_vocab(sentences);
    const uint32_t end = vpps_vocab_find(words, END_WORD, sizeof END_WORD - 1);
    note_cut(c, words, counts, min_count);
    if (end != VPPS_NO_WORD && ends) counts[end] = UINT32_MAX;
    return vpps_vocab_cut(out, words, counts, min_count);
}

vpps_status task_copy_ids(uint32_t **out, const uint32_t *ids, uint32_t n, const uint32_t *map) {
    if (!VPPS_RESERVE(*out, (size_t)n + 1)) return vpps_fail(VPPS_MEMORY, "no memory for %u words", n);
    for (uint32_t i = 0; i < n; i++) (*out)[i] = map ? map[ids[i]] : ids[i];
    return VPPS_OK;
}

vpps_status task_keep_text(corpus_split *split, const task_text *text) {
    const uint32_t n = vpps_sentences_size(split->sentences);
    const size_t before = n > 1 ? split->text_ends[n - 2] : 0;
    if (!VPPS_RESERVE(split->text_ends, n) || !VPPS_RESERVE(split->text, before + text->len + 1))
        return vpps_fail(VPPS_MEMORY, "no memory for the text of %s", text->name);
    if (text->len) memcpy(split->text + before, text->text, text->len);
    split->text_ends[n - 1] = before + text->len;
    return VPPS_OK;
}

vpps_text task_text_of(const corpus_split *split, uint32_t i) {
    const size_t begin = i ? split->text_ends[i - 1] : 0;
    return vpps_text_of("text", split->text + begin, split->text_ends[i] - begin, "");
}

/* ---------------------------------------------------------------- lattices */

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

vpps_status lattice_map(const corpus *c, corpus_split *split) {
    split->n_all = vpps_lattices_size(split->lattices);
    VPPS_TRY(vpps_vocab_map(names_of(c, split, VOCAB_CHARACTERS), c->vocab[VOCAB_CHARACTERS], 0,
                            &split->ids[VOCAB_CHARACTERS]));
    return vpps_vocab_map(names_of(c, split, VOCAB_WORDS), c->vocab[VOCAB_WORDS], 0, &split->ids[VOCAB_WORDS]);
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

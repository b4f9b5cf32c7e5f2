/* vocab_cut.c - makes a network's vocabulary from all words of a text: counting, cutting rare words, mapping ids. */
#include "sequences.h"

#include "base/base.h"

static const char unknown_word[] = "<unk>";

static vpps_status new_ids(const vpps_vocab *v, uint32_t **ids) {
    const uint32_t n = vpps_vocab_size(v);
    *ids = calloc(n ? n : 1, sizeof **ids);
    return *ids ? VPPS_OK : vpps_fail(VPPS_MEMORY, "vocabulary: out of memory for a number for each of %u words", n);
}

vpps_status vpps_treebank_counts(const vpps_treebank *tb, uint32_t **counts) {
    VPPS_NEED(tb, counts);
    VPPS_TRY(new_ids(vpps_treebank_vocab(tb), counts));
    for (uint32_t i = 0; i < vpps_treebank_size(tb); i++) {
        const vpps_tree tree = vpps_treebank_tree(tb, i);
        for (uint32_t k = 0; k < tree.n_nodes; k++)
            if (tree.nodes[k].left < 0) (*counts)[tree.nodes[k].word]++;
    }
    return VPPS_OK;
}

vpps_status vpps_sentences_counts(const vpps_sentences *s, uint32_t **counts) {
    VPPS_NEED(s, counts);
    VPPS_TRY(new_ids(s->vocab, counts));
    for (size_t i = 0; i < s->n_words; i++) (*counts)[s->words[i]]++;
    return VPPS_OK;
}

vpps_status vpps_vocab_cut(vpps_vocab **out, const vpps_vocab *all, const uint32_t *counts, uint32_t min_count) {
    VPPS_NEED(out, all);
    vpps_vocab *v;
    uint32_t id;
    *out = NULL;
    VPPS_TRY(vpps_vocab_create(&v));
    vpps_status status = vpps_vocab_add(v, unknown_word, sizeof unknown_word - 1, &id);
    for (uint32_t w = 0; w < vpps_vocab_size(all) && status == VPPS_OK; w++) {
        const char *word = vpps_vocab_word(all, w);
        if (!counts || counts[w] >= min_count) status = vpps_vocab_add(v, word, strlen(word), &id);
    }
    if (status != VPPS_OK) {
        vpps_vocab_destroy(v);
        return status;
    }
    *out = v;
    return VPPS_OK;
}

vpps_status vpps_vocab_map(const vpps_vocab *from, const vpps_vocab *to, uint32_t missing, uint32_t **ids) {
    VPPS_NEED(from, to, ids);
    VPPS_TRY(new_ids(from, ids));
    for (uint32_t w = 0; w < vpps_vocab_size(from); w++) {
        const char *word = vpps_vocab_word(from, w);
        const uint32_t id = vpps_vocab_find(to, word, strlen(word));
        (*ids)[w] = id == VPPS_NO_WORD ? missing : id;
    }
    return VPPS_OK;
}

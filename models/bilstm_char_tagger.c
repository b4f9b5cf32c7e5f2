/* bilstm_char_tagger.c - the bidirectional LSTM tagger that spells rare words: as bilstm_tagger.c, but the embedding of a rare word, which
 * training could not learn, is made of the word's characters by another bidirectional LSTM. The network is the tagger with character-based
 * features of Neubig et al., "DyNet: The Dynamic Neural Network Toolkit" (2017), which VPPS (MICRO 2018) evaluates; spelling with the last
 * states of two LSTMs is from Ling et al., "Finding Function in Form: Compositional Character Models for Open Vocabulary Word
 * Representation" (EMNLP 2015).
 *
 * For a rare word w of the characters z_1 .. z_l, with their embeddings Z:
 *     (g_f(j), .) = LSTM_sf(Z[z_j], g_f(j - 1), .)      from left to right, of embed - embed / 2 elements
 *     (g_b(j), .) = LSTM_sb(Z[z_j], g_b(j + 1), .)      from right to left, of embed / 2 elements (rounded down)
 *     x = [g_f(l); g_b(1)]
 * For any other word x = E[w]. bilstm_tagger.c tells how a tag is predicted from x, with --layers layers; words are spelled by one
 * layer. Dropout applies to x and to the characters' embeddings.
 *
 * Parameters, with A characters, e = embed, a = character_embed, and q = floor(e / 2), p = e - q: those of
 * bilstm_tagger.c and A a + 4 p (a + p + 1) + 4 q (a + q + 1).
 */
#include "bilstm.h"

typedef struct bilstm_char_tagger_net {
    bilstm_net base;
    part_embedding characters;
    bilstm spelling;
} bilstm_char_tagger_net;

static vpps_status build(void *net, vpps_model *model) {
    bilstm_char_tagger_net *t = net;
    const net_config *c = &t->base.base.config;
    const bilstm_shape spelling = {.forward = "spell_forward",
                                   .backward = "spell_backward",
                                   .join = "spelled word",
                                   .inputs = c->character_embed,
                                   .forward_hidden = c->embed - c->embed / 2,
                                   .backward_hidden = c->embed / 2};
    PART_TRY(bilstm_words(&t->base, model));
    PART_TRY(part_embedding_make(&t->characters, c, model, "characters", c->characters, c->character_embed,
                                 "bilstm-char-tagger character"));
    PART_TRY(bilstm_make(&t->spelling, &t->base.base, model, spelling));
    return bilstm_predictor(&t->base, model);
}

/* Sets *x to an embedding made of a word's characters: the last outputs of a forward and a backward LSTM. */
static vpps_status spell(bilstm_char_tagger_net *t, vpps_graph *g, const net_spelling *word, vpps_node *x) {
    bilstm *b = &t->spelling;
    PART_TRY(bilstm_reserve(b, &t->base.base.scratch[1], word->n));
    for (uint32_t j = 0; j < word->n; j++) b->x[j] = part_embed(&t->characters, g, word->characters[j]);
    bilstm_run(b, g, word->n);
    *x = bilstm_join(b, g, b->forward_at[word->n - 1], b->backward_at[0]);
    return VPPS_OK;
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    bilstm_char_tagger_net *t = net;
    bilstm *b = &t->base.sentence;
    PART_TRY(bilstm_reserve(b, t->base.base.scratch, x->sentence.n_words));
    for (uint32_t k = 0; k < x->sentence.n_words; k++) {
        if (x->spellings && x->spellings[k].n > 0) {
            PART_TRY(spell(t, g, &x->spellings[k], &b->x[k]));
        } else {
            b->x[k] = part_embed(&t->base.words, g, x->sentence.words[k]);
        }
    }
    return bilstm_tag(&t->base, g, &x->sentence, heads, scores);
}

/* A word's embedding has two halves (of two LSTMs), so its size is at least 2. */
static const option_row options[] = {
    {"embed", "N", "Size of a word's embedding", OPTION_U32, offsetof(net_config, embed), 2, 65536, true},
    {"character-embed", "N", "Size of a character's embedding", OPTION_U32, offsetof(net_config, character_embed), 1,
     65536, true},
    BILSTM_OPTIONS,
    PART_CRF,
    {0},
};

const network bilstm_char_tagger = {
    .name = "bilstm-char-tagger",
    .summary = "bidirectional LSTM that tags words; spells rare ones",
    .source = "Neubig et al. 2017; Ling et al. 2015",
    .options = options,
    .embedding = "embedding",
    .kind = NET_TAGGING,
    .defaults = {.embed = 64, .hidden = 256, .layers = 1, .character_embed = 64, .mlp = 256},
    .spells = true,
    .bytes = sizeof(bilstm_char_tagger_net),
    .build = build,
    .add = add,
    .chain = part_crf_chain,
};

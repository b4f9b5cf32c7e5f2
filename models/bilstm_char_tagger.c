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
    part_net base;
    part_embedding words, characters;
    bilstm spelling, sentence;
} bilstm_char_tagger_net;

/* ---------------------------------------------------------------- parameters */

static vpps_status declare(void *net, vpps_model *model) {
    bilstm_char_tagger_net *t = net;
    const net_config *c = &t->base.config;
    const bilstm_sizes sizes = {
        .inputs = c->character_embed, .forward = c->embed - c->embed / 2, .backward = c->embed / 2};
    vpps_status s = part_embedding_declare(&t->words, model, "embedding", c->words, c->embed);
    if (s == VPPS_OK) {
        s = part_embedding_declare(&t->characters, model, "characters", c->characters, c->character_embed);
    }
    if (s == VPPS_OK) s = bilstm_declare(&t->spelling, model, "spell_forward", "spell_backward", sizes);
    if (s == VPPS_OK) s = bilstm_declare_tagger(&t->sentence, &t->base.classifier, model, c);
    return s;
}

static void destroy(void *net) {
    bilstm_char_tagger_net *t = net;
    if (t) {
        bilstm_free(&t->spelling);
        bilstm_free(&t->sentence);
    }
    part_destroy(net);
}

/* ---------------------------------------------------------------- cells */

static vpps_status record(void *net, vpps_model *model) {
    bilstm_char_tagger_net *t = net;
    vpps_status s = part_embedding_record(&t->words, &t->base.config, model, "bilstm-char-tagger word");
    if (s == VPPS_OK) s = part_embedding_record(&t->characters, &t->base.config, model, "bilstm-char-tagger character");
    if (s == VPPS_OK) {
        s = bilstm_record(&t->spelling, model, "bilstm-char-tagger spell forward", "bilstm-char-tagger spell backward");
    }
    if (s == VPPS_OK) {
        s = bilstm_record_join(&t->spelling, &t->base.config, model, "bilstm-char-tagger spelled word");
    }
    if (s == VPPS_OK) s = bilstm_record_tagger(&t->sentence, &t->base.classifier, model, "bilstm-char-tagger");
    return s;
}

static vpps_status create(void **net, vpps_model *model, const net_config *config) {
    return part_create(net, sizeof(bilstm_char_tagger_net), model, config, declare, record);
}

/* ---------------------------------------------------------------- a sentence */

/* Sets *x to an embedding made of a word's characters: the forward LSTM's output after the last character, the backward LSTM's after the
 * first. */
static vpps_status spell(bilstm_char_tagger_net *t, vpps_graph *g, const net_spelling *word, vpps_node *x) {
    bilstm *b = &t->spelling;
    const vpps_status s = bilstm_reserve(b, word->n);
    if (s != VPPS_OK) return s;
    for (uint32_t j = 0; j < word->n; j++) b->x[j] = part_embed(&t->characters, g, word->characters[j]);
    bilstm_run(b, g, word->n);
    *x = bilstm_join(b, g, b->forward_at[word->n - 1], b->backward_at[0]);
    return VPPS_OK;
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    bilstm_char_tagger_net *t = net;
    const vpps_sentence *sentence = &x->sentence;
    vpps_status s = bilstm_reserve(&t->sentence, sentence->n_words);
    for (uint32_t k = 0; s == VPPS_OK && k < sentence->n_words; k++) {
        vpps_node *embedding = &t->sentence.x[k];
        if (x->spellings && x->spellings[k].n > 0) {
            s = spell(t, g, &x->spellings[k], embedding);
        } else {
            *embedding = part_embed(&t->words, g, sentence->words[k]);
        }
    }
    return s == VPPS_OK ? bilstm_tag(&t->sentence, &t->base.classifier, g, sentence, heads, scores) : s;
}

/* ---------------------------------------------------------------- the table row */

static void chain(void *net, vpps_graph *g, vpps_node nodes[NET_CHAIN]) {
    const bilstm_char_tagger_net *t = net;
    bilstm_chain(&t->sentence, g, nodes);
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

extern const network bilstm_char_tagger;
const network bilstm_char_tagger = {
    .name = "bilstm-char-tagger",
    .summary = "bidirectional LSTM that tags words; spells rare ones",
    .source = "Neubig et al. 2017; Ling et al. 2015",
    .options = options,
    .embedding = "embedding",
    .kind = NET_TAGGING,
    .defaults = {.embed = 64, .hidden = 256, .layers = 1, .character_embed = 64, .mlp = 256},
    .spells = true,
    .create = create,
    .add = add,
    .chain = chain,
    .destroy = destroy,
};

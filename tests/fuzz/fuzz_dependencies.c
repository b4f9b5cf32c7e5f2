/* fuzz_dependencies.c - reads any bytes as dependency trees, in a way that the first byte chooses: what is read keeps the header's promises; a
 * refusal leaves the sentences as they were. */
#include "fuzz.h"
#include "vpps_data.h"

static const vpps_dependencies ways[] = {
    {0}, {.cut_subtypes = true}, {.heads_only = true}, {.label = "label"}, {.heads_only = true, .label = "label"}};

static void check_tree(const vpps_sentences *s, uint32_t i, const vpps_dependencies *how) {
    const vpps_sentence x = vpps_sentences_get(s, i);
    const uint32_t label = vpps_sentences_label(s, i), n_tags = vpps_vocab_size(vpps_sentences_tag_vocab(s));
    uint32_t roots = 0;
    require(x.n_words > 0 && x.heads && (x.tags != NULL) == (!how->heads_only && !how->label));
    require(label == VPPS_NO_WORD || (label < n_tags && how->label && !how->heads_only));
    for (uint32_t k = 0; k < x.n_words; k++) {
        uint32_t at = k + 1, steps = 0;
        require(x.words[k] < vpps_vocab_size(vpps_sentences_vocab(s)) && (!x.tags || x.tags[k] < n_tags));
        for (; at && steps < 1000; at = x.heads[at - 1], steps++) require(at <= x.n_words);
        require(at == 0 || x.n_words >= 1000);
        require(vpps_sentences_word_line(s, i, k) >= vpps_sentences_line(s, i));
        roots += x.heads[k] == 0;
    }
    require(roots == 1 || (roots > 1 && !how->label));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char first[] = "1\ta\t\t\t\t\t0\tx:y\t\t\n";
    if (n == 0) return 0;
    const vpps_dependencies *how = &ways[data[0] % VPPS_COUNT(ways)];
    vpps_sentences *s;
    require(vpps_sentences_create(&s) == VPPS_OK);
    require(vpps_sentences_read_dependencies_text(s, "first", first, sizeof first - 1, how) == VPPS_OK);
    const uint32_t n_tags = vpps_vocab_size(vpps_sentences_tag_vocab(s));
    if (vpps_sentences_read_dependencies_text(s, "fuzz", (const char *)data + 1, n - 1, how) == VPPS_OK) {
        for (uint32_t i = 0; i < vpps_sentences_size(s); i++) check_tree(s, i, how);
    } else {
        require(vpps_sentences_size(s) == 1 && vpps_sentences_total_words(s) == 1);
        require(vpps_vocab_size(vpps_sentences_vocab(s)) == 1);
        require(vpps_vocab_size(vpps_sentences_tag_vocab(s)) == n_tags);
        require(strncmp(vpps_error_message(), "fuzz:", 5) == 0);
    }
    vpps_sentences_destroy(s);
    return 0;
}

/* fuzz_lattices.c - builds lattices from any bytes: up to an empty line those of a lexicon, then sentences of characters, a line each. What is built
 * keeps the header's promises. */
#include "fuzz.h"
#include "vpps_data.h"

static void check_lattice(const vpps_lattices *l, vpps_lattice lattice, vpps_sentence s) {
    require(lattice.n_nodes == s.n_words + 1 && lattice.first_arc[0] == 0 && lattice.first_arc[1] == 0);
    for (uint32_t i = 0; i < lattice.n_nodes; i++) {
        require(lattice.tags[i] < vpps_lattices_tags(l));
        require(i == 0 || lattice.first_arc[i + 1] > lattice.first_arc[i]);
        for (uint32_t a = lattice.first_arc[i]; a < lattice.first_arc[i + 1]; a++) {
            const vpps_lattice_arc *arc = &lattice.arcs[a];
            require(arc->from < i && arc->is_character == (a == lattice.first_arc[i]));
            require(arc->is_character == (arc->from == i - 1));
            require(arc->id < (arc->is_character ? vpps_lattices_characters(l) : vpps_lattices_words(l)));
            require(!arc->is_character || arc->id == s.words[i - 1]);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    const char *text = (const char *)data, *blank = n ? memmem(text, n, "\n\n", 2) : NULL;
    const size_t n_lexicon = blank ? (size_t)(blank - text) : n;
    vpps_lattices *l;
    vpps_sentences *s;
    vpps_vocab *words;
    require(vpps_lattices_create(&l) == VPPS_OK && vpps_sentences_create(&s) == VPPS_OK);
    require(vpps_vocab_create(&words) == VPPS_OK);
    if (vpps_lexicon_read_text(words, "fuzz", text, n_lexicon) != VPPS_OK ||
        (blank && vpps_sentences_read_lines_text(s, "fuzz", blank, n - n_lexicon, NULL) != VPPS_OK)) {
        require(strncmp(vpps_error_message(), "fuzz:", 5) == 0);
    } else {
        require(vpps_lattices_build(l, s, words) == VPPS_OK);
        require(vpps_lattices_size(l) == vpps_sentences_size(s) && vpps_lattices_words(l) <= vpps_vocab_size(words));
        for (uint32_t i = 0; i < vpps_lattices_size(l); i++)
            check_lattice(l, vpps_lattices_get(l, i), vpps_sentences_get(s, i));
    }
    vpps_lattices_destroy(l);
    vpps_sentences_destroy(s);
    vpps_vocab_destroy(words);
    return 0;
}

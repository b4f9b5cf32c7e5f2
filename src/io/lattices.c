/* lattices.c - lattices in memory: one array each for tags, arcs, and the nodes' first arcs. Reads them from text that
 * lists them as numbers (vpps_data.h), or builds them of a lexicon's words found in sentences of characters. */
#include "base/base.h"
#include "file.h"
#include "text.h"
#include "vocab.h"

struct vpps_lattices {
    uint32_t *tags; /* one tag per node */
    size_t n_nodes;
    uint32_t *first_arcs; /* index of each node's first arc within its lattice; one more entry ends each lattice */
    vpps_lattice_arc *arcs;
    size_t n_arcs;
    struct vpps_lattice_range {
        size_t first_node, first_arc;
        uint32_t n_nodes, line;
    } * ranges;
    uint32_t n_lattices;
    uint32_t tag_ids, character_ids, word_ids; /* 1 + the largest id of tags, of characters, of words */
};

/* Sizes of a vpps_lattices at some time. A reader that fails cuts the lattices back to these sizes. */
typedef struct mark {
    size_t n_nodes, n_arcs;
    uint32_t n_lattices, tag_ids, character_ids, word_ids;
} mark;

vpps_status vpps_lattices_create(vpps_lattices **out) {
    VPPS_NEED(out);
    *out = calloc(1, sizeof **out);
    return *out ? VPPS_OK : vpps_fail(VPPS_MEMORY, "lattices: out of memory");
}

void vpps_lattices_destroy(vpps_lattices *l) {
    if (!l) return;
    VPPS_FREE_ARRAYS(l->tags, l->first_arcs, l->arcs, l->ranges);
    free(l);
}

uint32_t vpps_lattices_size(const vpps_lattices *l) { return l ? l->n_lattices : 0; }

/* Returns the first arcs of lattice i's nodes; each lattice has one entry more than nodes. */
static uint32_t *first_arcs_of(const vpps_lattices *l, uint32_t i) {
    return l->first_arcs + l->ranges[i].first_node + i;
}

vpps_lattice vpps_lattices_get(const vpps_lattices *l, uint32_t i) {
    if (i >= vpps_lattices_size(l)) return (vpps_lattice){0};
    const struct vpps_lattice_range *r = &l->ranges[i];
    return (vpps_lattice){r->n_nodes, l->tags + r->first_node, first_arcs_of(l, i),
                          l->arcs ? l->arcs + r->first_arc : NULL};
}

uint32_t vpps_lattices_line(const vpps_lattices *l, uint32_t i) {
    return i < vpps_lattices_size(l) ? l->ranges[i].line : 0;
}

uint32_t vpps_lattices_tags(const vpps_lattices *l) { return l ? l->tag_ids : 0; }

uint32_t vpps_lattices_characters(const vpps_lattices *l) { return l ? l->character_ids : 0; }

uint32_t vpps_lattices_words(const vpps_lattices *l) { return l ? l->word_ids : 0; }

static mark extent(const vpps_lattices *l) {
    return (mark){l->n_nodes, l->n_arcs, l->n_lattices, l->tag_ids, l->character_ids, l->word_ids};
}

static void restore(vpps_lattices *l, mark before) {
    l->n_nodes = before.n_nodes;
    l->n_arcs = before.n_arcs;
    l->n_lattices = before.n_lattices;
    l->tag_ids = before.tag_ids;
    l->character_ids = before.character_ids;
    l->word_ids = before.word_ids;
}

/* ---------------------------------------------------------------- adding
 *
 * A lattice is added in this order of calls: begin; add_tag for every node; for each node add_arc for every arc into it, then end_node; end. */

static vpps_status fail_memory(const vpps_lattices *l) {
    return vpps_fail(VPPS_MEMORY, "lattices: out of memory at lattice %u", l->n_lattices);
}

/* Begins a lattice. `line`: its first line in the text, 0 without a text. */
static vpps_status begin(vpps_lattices *l, uint32_t line) {
    if (l->n_lattices == UINT32_MAX || !VPPS_RESERVE(l->ranges, (size_t)l->n_lattices + 1)) return fail_memory(l);
    l->ranges[l->n_lattices] = (struct vpps_lattice_range){l->n_nodes, l->n_arcs, 0, line};
    return VPPS_OK;
}

static vpps_status add_tag(vpps_lattices *l, uint32_t tag) {
    if (!VPPS_RESERVE(l->tags, l->n_nodes + 1)) return fail_memory(l);
    l->tags[l->n_nodes++] = tag;
    l->tag_ids = vpps_max_u32(l->tag_ids, tag + 1);
    return VPPS_OK;
}

static vpps_status add_arc(vpps_lattices *l, uint32_t node, uint32_t from, uint32_t id) {
    if (!VPPS_RESERVE(l->arcs, l->n_arcs + 1)) return fail_memory(l);
    const bool is_character = from + 1 == node;
    uint32_t *ids = is_character ? &l->character_ids : &l->word_ids;
    *ids = vpps_max_u32(*ids, id + 1);
    l->arcs[l->n_arcs++] = (vpps_lattice_arc){from, id, is_character};
    return VPPS_OK;
}

static vpps_status end_node(vpps_lattices *l, uint32_t node) {
    const struct vpps_lattice_range *r = &l->ranges[l->n_lattices];
    const size_t at = r->first_node + l->n_lattices + node, n_arcs = l->n_arcs - r->first_arc;
    if (n_arcs > UINT32_MAX || !VPPS_RESERVE(l->first_arcs, at + 2)) return fail_memory(l);
    if (node == 0) l->first_arcs[at] = 0;
    l->first_arcs[at + 1] = (uint32_t)n_arcs;
    return VPPS_OK;
}

static void end(vpps_lattices *l) {
    struct vpps_lattice_range *r = &l->ranges[l->n_lattices++];
    r->n_nodes = (uint32_t)(l->n_nodes - r->first_node);
}

/* ---------------------------------------------------------------- lexicon */

static vpps_status read_lexicon(vpps_vocab *words, const vpps_text *t) {
    vpps_line line = {0};
    VPPS_TRY(vpps_text_check(t));
    while (vpps_text_next_line(t, &line)) {
        const char *tab = memchr(line.begin, '\t', (size_t)(line.end - line.begin)), *end = line.begin;
        uint32_t id;
        if (vpps_line_is_blank(&line)) continue;
        if (vpps_is_blank(*line.begin)) return vpps_text_fail(t, line.begin, "a word", NULL);
        if (tab) {
            end = vpps_trim_blanks(line.begin, tab);
        } else {
            while (end < line.end && !vpps_is_blank(*end)) end++;
        }
        VPPS_TRY(vpps_vocab_add_unchecked(words, line.begin, (size_t)(end - line.begin), &id));
    }
    return VPPS_OK;
}

vpps_status vpps_lexicon_read_text(vpps_vocab *words, const char *name, const char *text, size_t len) {
    VPPS_NEED(words, name);
    if (len) VPPS_NEED(text);
    const vpps_text t = vpps_text_of(name, text, len, "");
    const uint32_t before = vpps_vocab_size(words);
    vpps_status status = read_lexicon(words, &t);
    if (status != VPPS_OK) vpps_vocab_truncate(words, before);
    return status;
}

vpps_status vpps_lexicon_read_file(vpps_vocab *words, const char *path) {
    VPPS_NEED(words, path);
    VPPS_TEXT_OF_FILE(path, text, len);
    return vpps_lexicon_read_text(words, path, text, len);
}

/* ---------------------------------------------------------------- of sentences and a lexicon
 *
 * A sentence's characters are joined to one text. A candidate word is a part of this text, looked up by its hash:
 * seven look-ups per character. */

typedef struct builder {
    vpps_lattices *l;
    const vpps_vocab *characters, *lexicon;
    char *text;     /* the sentence's characters, joined */
    size_t *starts; /* starts[i]: offset in `text` of character i; one more entry: the end */
} builder;

static vpps_status join_characters(builder *b, vpps_sentence s) {
    size_t bytes = 0;
    if (!VPPS_RESERVE(b->starts, (size_t)s.n_words + 1))
        return vpps_fail(VPPS_MEMORY, "lattices: out of memory for a sentence of %u characters", s.n_words);
    for (uint32_t i = 0; i < s.n_words; i++) {
        const char *character = vpps_vocab_word(b->characters, s.words[i]);
        const size_t len = strlen(character);
        if (!VPPS_RESERVE(b->text, bytes + len))
            return vpps_fail(VPPS_MEMORY, "lattices: out of memory at %zu bytes of a sentence", bytes);
        memcpy(b->text + bytes, character, len);
        b->starts[i] = bytes;
        bytes += len;
    }
    b->starts[s.n_words] = bytes;
    return VPPS_OK;
}

/* Adds the character and the words that end at node `node`. */
static vpps_status add_arcs(builder *b, vpps_sentence s, uint32_t node) {
    if (node > 0) VPPS_TRY(add_arc(b->l, node, node - 1, s.words[node - 1]));
    for (uint32_t n = VPPS_LATTICE_WORD_MIN; n <= VPPS_LATTICE_WORD_MAX && n <= node; n++) {
        const size_t begin = b->starts[node - n];
        const uint32_t word = vpps_vocab_find(b->lexicon, b->text + begin, b->starts[node] - begin);
        if (word != VPPS_NO_WORD) VPPS_TRY(add_arc(b->l, node, node - n, word));
    }
    return end_node(b->l, node);
}

static vpps_status build_lattice(builder *b, vpps_sentence s, uint32_t line) {
    if (s.n_words == UINT32_MAX) return vpps_fail(VPPS_MEMORY, "lattices: a sentence has too many characters");
    VPPS_TRY(join_characters(b, s));
    VPPS_TRY(begin(b->l, line));
    VPPS_TRY(add_tag(b->l, 0));
    for (uint32_t i = 0; i < s.n_words; i++) VPPS_TRY(add_tag(b->l, s.tags ? s.tags[i] : 0));
    for (uint32_t node = 0; node <= s.n_words; node++) VPPS_TRY(add_arcs(b, s, node));
    end(b->l);
    return VPPS_OK;
}

vpps_status vpps_lattices_build(vpps_lattices *l, const vpps_sentences *characters, const vpps_vocab *lexicon) {
    VPPS_NEED(l, characters, lexicon);
    builder b = {.l = l, .characters = vpps_sentences_vocab(characters), .lexicon = lexicon};
    const mark before = extent(l);
    vpps_status status = VPPS_OK;
    for (uint32_t i = 0; i < vpps_sentences_size(characters) && status == VPPS_OK; i++)
        status = build_lattice(&b, vpps_sentences_get(characters, i), vpps_sentences_line(characters, i));
    VPPS_FREE_ARRAYS(b.text, b.starts);
    if (status != VPPS_OK) restore(l, before);
    return status;
}

/* ---------------------------------------------------------------- of whole numbers between white space */

typedef struct number_reader {
    vpps_lattices *l;
    vpps_text text;
    const char *at;
    const char *number;  /* first byte of the latest number */
    const char *counted; /* position up to which line ends have been counted */
    uint32_t line;       /* number of the line, from 1, in which `counted` lies */
} number_reader;

static void skip_space(number_reader *r) {
    const char *before;
    do {
        before = r->at;
        while (r->at < r->text.end && vpps_is_space(*r->at)) r->at++;
        r->at = vpps_skip_mark(r->at, r->text.end);
    } while (r->at > before);
}

/* Reads the next number, which must be less than UINT32_MAX, so that 1 + an id fits. `what` is the number's name in messages. */
static vpps_status read_number(number_reader *r, const char *what, uint32_t *value) {
    skip_space(r);
    const char *p = r->number = r->at;
    uint64_t v = 0;
    while (p < r->text.end && *p >= '0' && *p <= '9' && v < UINT32_MAX) v = v * 10 + (uint64_t)(*p++ - '0');
    if (p == r->number || v >= UINT32_MAX || (p < r->text.end && !vpps_is_space(*p)))
        return vpps_text_fail(&r->text, r->number, what, NULL);
    *value = (uint32_t)v;
    r->at = p;
    return VPPS_OK;
}

/* Reads the arcs into node i, which all come from earlier nodes. The first node has no arcs; any other node has the arc of a character, then arcs of
 * words. */
static vpps_status read_arcs(number_reader *r, uint32_t i) {
    uint32_t k, from, id;
    VPPS_TRY(read_number(r, "the number of arcs into the node", &k));
    if (i == 0 && k > 0) return vpps_text_fail(&r->text, r->number, "0 arcs into node 0", NULL);
    if (i > 0 && k == 0) return vpps_text_fail(&r->text, r->number, "an arc into every node but node 0", NULL);
    for (uint32_t a = 0; a < k; a++) {
        VPPS_TRY(read_number(r, "the node an arc is from", &from));
        const bool fits = a == 0 ? from == i - 1 : from < i - 1;
        if (!fits) {
            char expected[80];
            snprintf(expected, sizeof expected,
                     a == 0 ? "the character's arc, from node %u" : "a word's arc, from a node below %u", i - 1);
            return vpps_text_fail(&r->text, r->number, expected, NULL);
        }
        VPPS_TRY(read_number(r, "the id of an arc", &id));
        VPPS_TRY(add_arc(r->l, i, from, id));
    }
    return end_node(r->l, i);
}

/* Returns the line of the latest number. Counting continues where the preceding call ended, so calls must advance through the text. */
static uint32_t line_of_number(number_reader *r) {
    for (; r->counted < r->number; r->counted++) r->line += *r->counted == '\n';
    return r->line;
}

static vpps_status read_lattice(number_reader *r) {
    uint32_t n, tag;
    VPPS_TRY(read_number(r, "the number of nodes", &n));
    if (n == 0) return vpps_text_fail(&r->text, r->number, "at least 1 node", NULL);
    VPPS_TRY(begin(r->l, line_of_number(r)));
    for (uint32_t i = 0; i < n; i++) {
        VPPS_TRY(read_number(r, "the tag of a node", &tag));
        VPPS_TRY(add_tag(r->l, tag));
    }
    for (uint32_t i = 0; i < n; i++) VPPS_TRY(read_arcs(r, i));
    end(r->l);
    return VPPS_OK;
}

static vpps_status read_lattices(number_reader *r) {
    uint32_t n;
    VPPS_TRY(read_number(r, "the number of lattices", &n));
    for (uint32_t i = 0; i < n; i++) VPPS_TRY(read_lattice(r));
    skip_space(r);
    if (r->at == r->text.end) return VPPS_OK;
    char expected[64];
    snprintf(expected, sizeof expected, "the end after %u lattice%s", n, n == 1 ? "" : "s");
    return vpps_text_fail(&r->text, r->at, expected, NULL);
}

vpps_status vpps_lattices_read_text(vpps_lattices *l, const char *name, const char *text, size_t len) {
    VPPS_NEED(l, name);
    if (len) VPPS_NEED(text);
    number_reader r = {.l = l, .text = vpps_text_of(name, text, len, "")};
    r.at = r.counted = r.text.begin;
    r.line = 1;
    const mark before = extent(l);
    VPPS_TRY(vpps_text_check_encoding(&r.text));
    vpps_status status = read_lattices(&r);
    if (status != VPPS_OK) restore(l, before);
    return status;
}

vpps_status vpps_lattices_read_file(vpps_lattices *l, const char *path) {
    VPPS_NEED(l, path);
    VPPS_TEXT_OF_FILE(path, text, len);
    return vpps_lattices_read_text(l, path, text, len);
}

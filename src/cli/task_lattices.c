/* task_lattices.c - lattices with a tag for every character: entities' F1.
 *
 * Files hold sentences of tagged characters, from which a lexicon (--lexicon) makes lattices; or, without one, lattices of
 * ids, whose tags are numbers.
 */
#include "base/base.h"
#include "io/file.h"
#include "lattice_data.h"

/* ---------------------------------------------------------------- reading */

/* Once: what a checkpoint has, or the file. */
static vpps_status read_lexicon(corpus *c, const char *path) {
    if (c->vocab[VOCAB_LEXICON]) return VPPS_OK;
    VPPS_TRY(vpps_vocab_create(&c->vocab[VOCAB_LEXICON]));
    return vpps_lexicon_read_file(c->vocab[VOCAB_LEXICON], path);
}

/* Plain text for prediction: a sentence a line, whose characters are parted by spaces or not. */
static vpps_status read_characters(corpus_split *split, const task_text *text) {
    char *spaced = malloc(2 * text->len + 1);
    if (!spaced) return vpps_fail(VPPS_MEMORY, "no memory for %zu bytes of text", text->len);
    size_t n = 0;
    for (size_t at = 0; at < text->len;) {
        const uint32_t bytes = vpps_utf8_character(text->text + at, text->len - at);
        memcpy(spaced + n, text->text + at, bytes);
        n += bytes;
        at += bytes;
        if (text->text[at - 1] != '\n' && text->text[at - 1] != '\r') spaced[n++] = ' ';
    }
    const vpps_status status = vpps_sentences_read_lines_text(split->sentences, text->name, spaced, n, NULL);
    free(spaced);
    return status;
}

static vpps_status read_part(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                             const task_text *target) {
    (void)target;
    if (!s->lexicon && !c->vocab[VOCAB_LEXICON]) {
        VPPS_TRY(vpps_lattices_create(&split->lattices));
        return vpps_lattices_read_text(split->lattices, text->name, text->text, text->len);
    }
    VPPS_TRY(read_lexicon(c, s->lexicon));
    VPPS_TRY(vpps_sentences_create(&split->sentences));
    VPPS_TRY(s->command == COMMAND_PREDICT ? read_characters(split, text) : tags_read(split->sentences, text));
    return lattice_build(c, split);
}

static vpps_status generate(corpus *c, const settings *s, corpus_split *split, uint64_t seed, uint32_t n) {
    const vpps_language language = {.seed = seed, .characters = true, .tags = true};
    const bool first = !c->vocab[VOCAB_LEXICON];
    (void)s;
    if (first) VPPS_TRY(vpps_vocab_create(&c->vocab[VOCAB_LEXICON]));
    VPPS_TRY(vpps_sentences_create(&split->sentences));
    VPPS_TRY(vpps_sentences_generate(split->sentences, NULL, first ? c->vocab[VOCAB_LEXICON] : NULL, &language, n));
    return lattice_build(c, split);
}

/* ---------------------------------------------------------------- ids */

/* Tags as words: the sentences', or numbers, which the caller frees (*numbers). */
static vpps_status tag_names(const corpus_split *split, vpps_vocab **numbers, const vpps_vocab **names) {
    *numbers = NULL;
    if (!split->sentences) VPPS_TRY(lattice_numbers(numbers, vpps_lattices_tags(split->lattices)));
    *names = split->sentences ? vpps_sentences_tag_vocab(split->sentences) : *numbers;
    return VPPS_OK;
}

static vpps_status learn(corpus *c, const settings *s) {
    vpps_vocab *numbers;
    const vpps_vocab *names;
    VPPS_TRY(tag_names(&c->split[SPLIT_TRAIN], &numbers, &names));
    const vpps_status status = tags_learn(c, names);
    vpps_vocab_destroy(numbers);
    VPPS_TRY(status);
    return lattice_learn(c, s);
}

static vpps_status map(corpus *c, const settings *s, corpus_split *split) {
    vpps_vocab *numbers;
    const vpps_vocab *names;
    (void)s;
    VPPS_TRY(tag_names(split, &numbers, &names));
    const bool tagged = vpps_vocab_size(names) > 0; /* plain text has none */
    const vpps_status status =
        tagged ? task_map_ids(split, VOCAB_CLASSES, names, c->vocab[VOCAB_CLASSES], VPPS_NO_WORD) : VPPS_OK;
    vpps_vocab_destroy(numbers);
    VPPS_TRY(status);
    return lattice_map(c, split);
}

static vpps_status example(corpus *c, const corpus_split *split, uint32_t i, net_example *x) {
    corpus_scratch *scratch = &c->scratch;
    VPPS_TRY(lattice_example(c, split, i, x));
    const uint32_t n = x->lattice->n_nodes;
    if (split->ids[VOCAB_CLASSES]) {
        VPPS_TRY(
            task_copy_ids(&scratch->tags, &scratch->tags_capacity, x->lattice->tags, n, split->ids[VOCAB_CLASSES]));
    } else {
        VPPS_TRY(task_copy_ids(&scratch->tags, &scratch->tags_capacity, x->lattice->tags, n, NULL));
        for (uint32_t k = 0; k < n; k++) scratch->tags[k] = VPPS_NO_WORD;
    }
    scratch->lattice.tags = scratch->tags;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- measuring and prediction */

static const uint32_t *gold(const corpus_split *split, uint32_t i, uint32_t *n) {
    const vpps_lattice l = vpps_lattices_get(split->lattices, i);
    *n = l.n_nodes - 1;
    return l.tags + 1;
}

static vpps_status measure(session *x, corpus *c, corpus_split *split, const volatile int *stop, measures *m) {
    vpps_vocab *numbers;
    const vpps_vocab *names;
    VPPS_TRY(tag_names(split, &numbers, &names));
    const vpps_status status = tags_measure(x, c, split, names, gold, stop, m);
    vpps_vocab_destroy(numbers);
    return status;
}

/* A character and its tag a line, as columns, and a blank line behind a sentence. Of ids there is only the tag. */
static vpps_status predict(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n) {
    int32_t *predicted = NULL;
    size_t capacity = 0, at = 0;
    const vpps_status status =
        session_predict(x, c, split, split->examples + first, n, NET_HEADS_ALL, &predicted, &capacity);
    for (uint32_t i = first; i < first + n && status == VPPS_OK; i++) {
        const uint32_t positions = vpps_lattices_get(split->lattices, i).n_nodes - 1;
        for (uint32_t k = 0; k < positions; k++) {
            if (split->sentences) {
                const vpps_sentence sentence = vpps_sentences_get(split->sentences, i);
                printf("%s\t", vpps_vocab_word(vpps_sentences_vocab(split->sentences), sentence.words[k]));
            }
            puts(vpps_vocab_word(c->vocab[VOCAB_CLASSES], (uint32_t)predicted[at++]));
        }
        putchar('\n');
    }
    free(predicted);
    return status;
}

const task task_lattices = {
    .examples = "lattices",
    .generated = "generated lattices",
    .n_generated = 3000,
    .metrics = TAGS_METRICS,
    .read = read_part,
    .generate = generate,
    .learn = learn,
    .map = map,
    .example = example,
    .measure = measure,
    .predict = predict,
};

/* sentences.c - the task of sentences with one label each, measured by accuracy. A file's lines are a label, a tab and a sentence. */
#include "base/base.h"
#include "cli/input/task.h"
#include "cli/output/answers.h"
#include "cli/session/measure.h"
#include "cli/session/session.h"
#include "cli/tasks/tags.h"
#include "cli/tasks/words.h"
#include "io/stream.h"
#include "io/text.h"

/* Sets *labelled to whether the first line has a tab. Fails if the text before the tab is no label of the network. */
static vpps_status find_label(const corpus *c, const vpps_text *t, bool *labelled) {
    vpps_line line = {0};
    bool more = vpps_text_next_line(t, &line);
    while (more && vpps_line_is_blank(&line)) more = vpps_text_next_line(t, &line);
    const char *tab = more ? memchr(line.begin, '\t', (size_t)(line.end - line.begin)) : NULL;
    const char *label = vpps_skip_blanks(line.begin, tab ? tab : line.begin),
               *end = tab ? vpps_trim_blanks(label, tab) : label;
    *labelled = tab != NULL;
    if (!tab || vpps_vocab_find(c->vocab[VOCAB_CLASSES], label, (size_t)(end - label)) != VPPS_NO_WORD) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT,
                     "%s%s:%u:1: expected a label of the network before the tab, found '%.*s'; --input-format text or "
                     "labelled says what the lines are",
                     VPPS_PATH_ARGS(t->name), line.number, (int)(end - label > 64 ? 64 : end - label), label);
}

static vpps_status look(const corpus *c, const settings *s, input_form form, const task_text *first,
                        input_reading *in) {
    const vpps_text t = vpps_text_of(first->name, first->text, first->len, "");
    bool labelled = form == INPUT_LABELLED;
    (void)s;
    if (form == INPUT_AUTO) VPPS_TRY(find_label(c, &t, &labelled));
    *in = (input_reading){.form = labelled ? READ_LABELLED : READ_LINES};
    return VPPS_OK;
}

static vpps_status read_part(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                             const task_text *target) {
    (void)s;
    (void)target;
    VPPS_TRY(task_need_sentences(&split->sentences));
    if (c->input.form == READ_LINES)
        return vpps_sentences_read_lines_text(split->sentences, text->name, text->text, text->len, NULL);
    return vpps_sentences_read_labelled_text(split->sentences, text->name, text->text, text->len);
}

/* Generates sentences of signs, labelled by whether the number of pluses is even or odd: the parity task of Graves
 * 2016, section 3.1. There the network gets all signs at once; here signs are words. Short sentences are frequent. */
static vpps_status generate_parity(vpps_sentences *to, uint64_t seed, uint32_t n) {
    enum { MOST_SIGNS = 16 };
    VPPS_FREED char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    for (uint32_t i = 0; f && i < n; i++) {
        const uint32_t longest = 1 + vpps_random_below(&seed, MOST_SIGNS);
        const uint32_t n_signs = 1 + vpps_random_below(&seed, longest), signs = vpps_random_below(&seed, 1u << longest);
        uint32_t odd = 0;
        for (uint32_t k = 0; k < n_signs; k++) odd ^= signs >> k & 1;
        fputs(odd ? "odd\t" : "even\t", f);
        for (uint32_t k = 0; k < n_signs; k++) fprintf(f, "%s%c", k ? " " : "", signs >> k & 1 ? '+' : '-');
        fputc('\n', f);
    }
    VPPS_TRY(vpps_text_end(f, VPPS_OK, &text));
    return vpps_sentences_read_labelled_text(to, "generated", text, bytes);
}

static vpps_status generate(corpus *c, const settings *s, corpus_split *split, uint64_t seed, uint32_t n) {
    if (!s->network->parity) return task_generate_sentences(c, s, split, seed, n);
    VPPS_TRY(vpps_sentences_create(&split->sentences));
    return generate_parity(split->sentences, seed, n);
}

/* Returns the network's label of sentence i; VPPS_NO_WORD: no label, or one unknown to training. */
static uint32_t label_of(const corpus_split *split, uint32_t i) {
    const uint32_t label = vpps_sentences_label(split->sentences, i);
    return label == VPPS_NO_WORD ? label : split->ids[VOCAB_CLASSES][label];
}

static vpps_status example(corpus *c, const corpus_split *split, uint32_t i, net_example *x) {
    const vpps_sentence sentence = vpps_sentences_get(split->sentences, i);
    corpus_scratch *scratch = &c->scratch;
    VPPS_TRY(task_copy_ids(&scratch->words, sentence.words, sentence.n_words, split->ids[VOCAB_WORDS]));
    x->sentence = (vpps_sentence){.words = scratch->words, .n_words = sentence.n_words};
    x->label = label_of(split, i);
    return VPPS_OK;
}

static vpps_status count(void *context, const corpus_split *split, uint32_t i, const int32_t *predicted, uint32_t *n) {
    accuracy_count(context, label_of(split, i), (uint32_t)predicted[0]);
    *n = 1;
    return VPPS_OK;
}

/* Returns the label in sentence i's text, NULL if there is none. */
static const char *gold_label(const corpus_split *split, uint32_t i) {
    const uint32_t label = vpps_sentences_label(split->sentences, i);
    const char *name =
        label == VPPS_NO_WORD ? NULL : vpps_vocab_word(vpps_sentences_tag_vocab(split->sentences), label);
    return name && strcmp(name, "_") != 0 ? name : NULL;
}

/* Prints answers in the input's format: the label (with a->gold the text's label before it), a tab, the sentence. */
static vpps_status predict(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a) {
    VPPS_CLOSED_BY(position_logits_free) position_logits p = {0};
    VPPS_TRY(session_logits(x, c, split, split->examples + first, n, NET_HEADS_ALL, &p));
    for (uint32_t i = 0; i < n; i++) {
        const char *gold = gold_label(split, first + i);
        if (a->json) {
            json_t *o = answer_class(a, p.of[i], c->classes);
            if (a->gold) json_object_set_new(o, "gold", gold ? answer_text(gold, strlen(gold)) : json_null());
            VPPS_TRY(answers_end_json(a, o));
            continue;
        }
        if (a->gold) fprintf(a->file, "%s\t", gold ? gold : "_");
        const vpps_sentence sentence = vpps_sentences_get(split->sentences, first + i);
        fputs(vpps_vocab_word(c->vocab[VOCAB_CLASSES], likeliest_class(p.of[i], c->classes)), a->file);
        for (uint32_t k = 0; k < sentence.n_words; k++)
            fprintf(a->file, "%c%s", k ? ' ' : '\t',
                    vpps_vocab_word(vpps_sentences_vocab(split->sentences), sentence.words[k]));
        VPPS_TRY(answers_end(a));
    }
    return VPPS_OK;
}

const task task_sentences = {
    .examples = "sentences",
    .generated = "generated sentences",
    .n_generated = 5000,
    .classifies = true,
    .metrics = {{"accuracy", "accuracy", true, false, "sentences"}},
    .look = look,
    .read = read_part,
    .language = {.labels = true},
    .generate = generate,
    .learn = tags_learn_sentences,
    .map = tags_map_sentences,
    .example = example,
    .count = count,
    .predict = predict,
};

/* dependencies.c - the task of dependency trees of CoNLL-U, measured by the accuracy of words' relations to their
 * heads, or of sentences' labels.
 *
 * Either every word has a label, its relation (DEPREL), or, with --sentence-label, the root of every sentence has
 * one. A network reads words and heads; its prediction for a word depends on the word and its descendants. */
#include "base/base.h"
#include "cli/output/answers.h"
#include "cli/session/measure.h"
#include "cli/session/session.h"
#include "cli/tasks/tags.h"
#include "cli/tasks/words.h"
#include "io/sequences.h"
#include "io/text.h"

/* ---------------------------------------------------------------- reading */

static vpps_dependencies how_of(const settings *s) {
    return (vpps_dependencies){.cut_subtypes = s->subtypes == SUBTYPES_CUT,
                               .heads_only = s->command == COMMAND_PREDICT,
                               .label = s->sentence_label};
}

static vpps_status read_part(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                             const task_text *target) {
    const vpps_dependencies how = how_of(s);
    (void)c;
    (void)target;
    VPPS_TRY(task_need_sentences(&split->sentences));
    const uint32_t before = vpps_sentences_size(split->sentences);
    VPPS_TRY(vpps_sentences_read_dependencies_text(split->sentences, text->name, text->text, text->len, &how));
    const bool one = vpps_sentences_size(split->sentences) == before + 1;
    return how.heads_only && one ? task_keep_text(split, text) : VPPS_OK;
}

/* ---------------------------------------------------------------- generated sentences
 *
 * A word's relation to its head depends on the word's descendants: a noun's particle (ga, wo, ni, de, no; "and" of a
 * further noun), or the first word of a clause (that, because; the main clause has none). A sentence's polarity is
 * negative if "not" depends directly on the main verb; "not" in inner clauses does not count. */

/* room for the words of a generated sentence, which has fewer than 512; how deep its clauses may be nested */
enum { MOST_WORDS = 1024, MOST_DEPTH = 2 };

typedef struct drawn_word {
    const char *word, *relation;
    uint32_t head; /* number of the word's head, from 1; 0: the word is the root */
} drawn_word;

typedef struct drawn {
    drawn_word words[MOST_WORDS];
    uint32_t n;
    uint64_t *random;
    bool negative;
} drawn;

static uint32_t below(drawn *s, uint32_t n) { return vpps_random_below(s->random, n); }

/* Adds a word and returns its number, from 1. */
static uint32_t add(drawn *s, const char *word, const char *relation) {
    s->words[s->n++] = (drawn_word){word, relation, 0};
    return s->n;
}

static void add_clause(drawn *s, const char *mark, const char *relation, uint32_t depth, uint32_t *verb);

static void add_noun(drawn *s, const char *particle, const char *relation, uint32_t depth, uint32_t *noun) {
    static const char *const nouns[] = {"dog",   "cat",    "child",   "bird", "house",
                                        "river", "letter", "teacher", "road", "song"};
    static const char *const adjectives[] = {"old", "small", "red", "quiet", "happy", "cold"};
    uint32_t parts[8], n = 0;
    const bool joined = strcmp(particle, "and") == 0;
    if (joined) parts[n++] = add(s, particle, "cc");
    if (below(s, 2)) parts[n++] = add(s, below(s, 2) ? "the" : "a", "det");
    for (uint32_t i = below(s, 3); i > 0; i--)
        parts[n++] = add(s, adjectives[below(s, VPPS_COUNT(adjectives))], "amod");
    if (depth < MOST_DEPTH && !below(s, 5)) add_clause(s, "that", "acl", depth + 1, &parts[n++]);
    if (depth < MOST_DEPTH && !below(s, 4)) add_noun(s, "no", "nmod", depth + 1, &parts[n++]);
    *noun = add(s, nouns[below(s, VPPS_COUNT(nouns))], relation);
    if (!joined) parts[n++] = add(s, particle, "case");
    if (depth < MOST_DEPTH && !below(s, 5)) add_noun(s, "and", "conj", depth + 1, &parts[n++]);
    for (uint32_t i = 0; i < n; i++) s->words[parts[i] - 1].head = *noun;
}

/* Adds a clause. *verb: its verb's place in the sentence, from 1. `mark`: its first word, as "that"; NULL: main
 * clause. */
static void add_clause(drawn *s, const char *mark, const char *relation, uint32_t depth, uint32_t *verb) {
    static const char *const verbs[] = {"sees", "finds", "gives", "likes", "carries", "forgets", "paints", "hears"};
    static const struct {
        const char *particle, *relation;
    } roles[] = {{"ga", "nsubj"}, {"wo", "obj"}, {"ni", "iobj"}, {"de", "obl"}};
    uint32_t parts[8], n = 0;
    if (mark) parts[n++] = add(s, mark, "mark");
    if (depth < MOST_DEPTH && !below(s, 5)) add_clause(s, "because", "advcl", depth + 1, &parts[n++]);
    for (size_t i = 0; i < VPPS_COUNT(roles); i++)
        if (below(s, 2)) add_noun(s, roles[i].particle, roles[i].relation, depth, &parts[n++]);
    *verb = add(s, verbs[below(s, VPPS_COUNT(verbs))], relation);
    if (below(s, 2)) {
        parts[n++] = add(s, "not", "advmod");
        if (!mark) s->negative = true;
    }
    for (uint32_t i = 0; i < n; i++) s->words[parts[i] - 1].head = *verb;
}

static vpps_status generate_sentences(vpps_sentences *to, const vpps_dependencies *how, uint64_t seed, uint32_t n) {
    static drawn s;
    VPPS_FREED char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    for (uint32_t i = 0; f && i < n; i++) {
        uint32_t verb;
        s = (drawn){.random = &seed};
        add_clause(&s, NULL, "root", 0, &verb);
        fprintf(f, "# polarity = %s\n", s.negative ? "negative" : "positive");
        for (uint32_t k = 0; k < s.n; k++)
            fprintf(f, "%u\t%s\t_\t_\t_\t_\t%u\t%s\t_\t_\n", k + 1, s.words[k].word, s.words[k].head,
                    s.words[k].relation);
        fputc('\n', f);
    }
    VPPS_TRY(vpps_text_end(f, VPPS_OK, &text));
    return vpps_sentences_read_dependencies_text(to, "generated", text, bytes, how);
}

static vpps_status generate(corpus *c, const settings *s, corpus_split *split, uint64_t seed, uint32_t n) {
    const vpps_dependencies how = how_of(s);
    (void)c;
    VPPS_TRY(vpps_sentences_create(&split->sentences));
    return generate_sentences(split->sentences, &how, seed, n);
}

/* ---------------------------------------------------------------- ids */

/* Returns the number of the root of the sentence, which has exactly one. */
static uint32_t root_of(const vpps_sentence *x) {
    uint32_t k = 0;
    while (x->heads[k]) k++;
    return k;
}

/* Returns whether word k of sentence i has a label. *label becomes the label's id, VPPS_NO_WORD if the label is unknown to training. */
static bool label_of(const corpus_split *split, uint32_t i, uint32_t k, uint32_t *label) {
    const vpps_sentence x = vpps_sentences_get(split->sentences, i);
    const uint32_t own = x.tags ? x.tags[k] : x.heads[k] ? VPPS_NO_WORD : vpps_sentences_label(split->sentences, i);
    *label = own == VPPS_NO_WORD ? own : split->ids[VOCAB_CLASSES][own];
    return own != VPPS_NO_WORD;
}

static vpps_status example(corpus *c, const corpus_split *split, uint32_t i, net_example *x) {
    const vpps_sentence sentence = vpps_sentences_get(split->sentences, i);
    corpus_scratch *scratch = &c->scratch;
    VPPS_TRY(task_copy_ids(&scratch->words, sentence.words, sentence.n_words, split->ids[VOCAB_WORDS]));
    VPPS_TRY(task_copy_ids(&scratch->tags, sentence.words, sentence.n_words, NULL));
    x->sentence = (vpps_sentence){scratch->words, scratch->tags, sentence.n_words, sentence.heads};
    x->label = VPPS_NO_WORD;
    for (uint32_t k = 0; k < sentence.n_words; k++) {
        /* label 0 means that some word has a label, VPPS_NO_WORD that no word has one */
        if (label_of(split, i, k, &scratch->tags[k])) x->label = 0;
    }
    return VPPS_OK;
}

static bool usable(const net_example *x, const settings *s, bool training) {
    bool known = false;
    for (uint32_t k = 0; k < x->sentence.n_words; k++) known |= x->sentence.tags[k] < s->net.classes;
    return training ? known : x->label != VPPS_NO_WORD;
}

/* ---------------------------------------------------------------- measuring */

static vpps_status count(void *context, const corpus_split *split, uint32_t i, const int32_t *predicted, uint32_t *n) {
    *n = vpps_sentences_get(split->sentences, i).n_words;
    for (uint32_t k = 0; k < *n; k++) {
        uint32_t label;
        if (label_of(split, i, k, &label)) accuracy_count(context, label, (uint32_t)predicted[k]);
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- prediction */

/* A network's predictions for a sentence: one for each word or, if sentences have labels, one for the root. */
typedef struct said {
    const corpus *c;
    const float *const *logits;
    const char *label; /* NAME of comments "# NAME = LABEL"; NULL: words' relations are predicted */
    uint32_t root;
} said;

static const char *class_of(const said *y, uint32_t k) {
    return vpps_vocab_word(y->c->vocab[VOCAB_CLASSES], likeliest_class(y->logits[k], y->c->classes));
}

/* Returns whether a line is a word's: its ID is a plain number. */
static bool is_word(const vpps_line *line) {
    const char *at = vpps_skip_blanks(line->begin, line->end), *p = at;
    while (p < line->end && *p >= '0' && *p <= '9') p++;
    return p > at && vpps_skip_blanks(p, line->end) > p;
}

/* Prints a word's line with `relation` in place of its DEPREL. */
static void print_word(FILE *f, const vpps_line *line, const char *relation) {
    enum { DEPREL = 8 };
    vpps_word own = {line->end, 0}; /* the column is always found: the line was checked when it was read */
    vpps_columns_find('\t', line->begin, (size_t)(line->end - line->begin), DEPREL, &own);
    const char *end = own.at + own.len;
    fprintf(f, "%.*s%s%.*s", (int)(own.at - line->begin), line->begin, relation, (int)(line->next - end), end);
}

/* Prints the lines of a sentence, with the network's labels in place of the labels that the lines have; line ends stay. */
static vpps_status answer_lines(answers *a, const corpus_split *split, const said *y, uint32_t i) {
    const vpps_text t = task_text_of(split, i);
    bool begun = false;
    uint32_t k = 0;
    for (vpps_line line = {0}; vpps_text_next_line(&t, &line);) {
        if (!begun && *line.begin != '#') { /* prints the label as the last of the comments, before the first word */
            begun = true;
            if (y->label)
                fprintf(a->file, "# %s = %s%.*s", y->label, class_of(y, y->root), (int)(line.next - line.end),
                        line.end);
        }
        if (is_word(&line) && !y->label)
            print_word(a->file, &line, class_of(y, k++));
        else if (!y->label || !vpps_comment_value(&line, y->label))
            fprintf(a->file, "%.*s", (int)(line.next - line.begin), line.begin);
    }
    return answers_end(a);
}

static vpps_status answer_json(answers *a, const corpus_split *split, const said *y, const vpps_sentence *x) {
    json_t *o = y->label ? answer_class(a, y->logits[y->root], y->c->classes) : json_object();
    json_t *words = json_array(), *heads = json_array(), *relations = json_array();
    for (uint32_t k = 0; k < x->n_words; k++) {
        const char *word = vpps_vocab_word(vpps_sentences_vocab(split->sentences), x->words[k]);
        json_array_append_new(words, answer_text(word, strlen(word)));
        json_array_append_new(heads, json_integer(x->heads[k]));
        if (!y->label) json_array_append_new(relations, answer_class(a, y->logits[k], y->c->classes));
    }
    json_object_set_new(o, "words", words);
    json_object_set_new(o, "heads", heads);
    if (!y->label) json_object_set(o, "relations", relations);
    json_decref(relations);
    return answers_end_json(a, o);
}

static vpps_status predict(session *x, corpus *c, corpus_split *split, uint32_t first, uint32_t n, answers *a) {
    VPPS_CLOSED_BY(position_logits_free) position_logits p = {0};
    size_t at = 0;
    VPPS_TRY(session_logits(x, c, split, split->examples + first, n, NET_HEADS_ALL, &p));
    for (uint32_t i = first; i < first + n; i++) {
        const vpps_sentence sentence = vpps_sentences_get(split->sentences, i);
        const char *label = x->settings->sentence_label;
        const said y = {c, p.of + at, label, label ? root_of(&sentence) : 0};
        VPPS_TRY(a->json ? answer_json(a, split, &y, &sentence) : answer_lines(a, split, &y, i));
        at += sentence.n_words;
    }
    return VPPS_OK;
}

const task task_dependencies = {
    .examples = "sentences",
    .own_form = "CoNLL-U",
    .generated = "generated sentences",
    .loss_of = "label",
    .n_generated = 5000,
    .classifies = true,
    .metrics = {{"accuracy", "accuracy", true, false, "labels"}},
    .read = read_part,
    .generate = generate,
    .learn = tags_learn_sentences,
    .map = tags_map_sentences,
    .usable = usable,
    .lacks = "a label: none has the comment that --sentence-label names",
    .example = example,
    .count = count,
    .predict = predict,
};

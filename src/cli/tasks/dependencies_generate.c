/* dependencies_generate.c - generates dependency trees of a small language, in CoNLL-U.
 *
 * A word's relation to its head depends on the word's descendants: a noun's particle (ga, wo, ni, de, no; "and" of a
 * further noun), or the first word of a clause (that, because; the main clause has none). A sentence's polarity is
 * negative if "not" depends directly on the main verb; "not" in inner clauses does not count. */
#include "base/base.h"
#include "cli/tasks/dependencies.h"

/* the longest sentence with clauses to MOST_DEPTH has fewer than MOST_WORDS / 2 words */
enum { MOST_WORDS = 1024, MOST_DEPTH = 2 };

typedef struct node {
    const char *word, *relation;
    uint32_t head; /* number of the word's head, from 1; 0: the word is the root */
} node;

typedef struct sentence {
    node words[MOST_WORDS];
    uint32_t n;
    uint64_t *random;
    bool negative;
} sentence;

static uint32_t below(sentence *s, uint32_t n) { return vpps_random_below(s->random, n); }

/* Adds a word and returns its number, from 1. */
static uint32_t add(sentence *s, const char *word, const char *relation) {
    s->words[s->n++] = (node){word, relation, 0};
    return s->n;
}

static void add_clause(sentence *s, const char *mark, const char *relation, uint32_t depth, uint32_t *verb);

/* Adds a noun with all its dependents; *noun is its number. */
static void add_noun(sentence *s, const char *particle, const char *relation, uint32_t depth, uint32_t *noun) {
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

/* Adds a clause; *verb is the number of its verb. mark NULL: the main clause. */
static void add_clause(sentence *s, const char *mark, const char *relation, uint32_t depth, uint32_t *verb) {
    static const char *const verbs[] = {"sees", "finds", "gives", "likes", "carries", "forgets", "paints", "hears"};
    static const struct {
        const char *particle, *relation;
    } roles[] = {{"ga", "nsubj"}, {"wo", "obj"}, {"ni", "iobj"}, {"de", "obl"}};
    uint32_t parts[8], n = 0;
    if (mark) parts[n++] = add(s, mark, "mark");
    if (depth < MOST_DEPTH && !below(s, 5)) add_clause(s, "because", "advcl", depth + 1, &parts[n++]);
    for (size_t i = 0; i < VPPS_COUNT(roles); i++) {
        if (below(s, 2)) add_noun(s, roles[i].particle, roles[i].relation, depth, &parts[n++]);
    }
    *verb = add(s, verbs[below(s, VPPS_COUNT(verbs))], relation);
    if (below(s, 2)) {
        parts[n++] = add(s, "not", "advmod");
        if (!mark) s->negative = true;
    }
    for (uint32_t i = 0; i < n; i++) s->words[parts[i] - 1].head = *verb;
}

vpps_status dependencies_generate(vpps_sentences *to, const vpps_dependencies *how, uint64_t seed, uint32_t n) {
    static sentence s;
    VPPS_FREED char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    for (uint32_t i = 0; f && i < n; i++) {
        uint32_t verb;
        s = (sentence){.random = &seed};
        add_clause(&s, NULL, "root", 0, &verb);
        fprintf(f, "# polarity = %s\n", s.negative ? "negative" : "positive");
        for (uint32_t k = 0; k < s.n; k++) {
            fprintf(f, "%u\t%s\t_\t_\t_\t_\t%u\t%s\t_\t_\n", k + 1, s.words[k].word, s.words[k].head,
                    s.words[k].relation);
        }
        fputc('\n', f);
    }
    VPPS_TRY(vpps_text_end(f, VPPS_OK, &text));
    return vpps_sentences_read_dependencies_text(to, "generated", text, bytes, how);
}

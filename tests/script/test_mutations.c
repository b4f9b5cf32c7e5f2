/* test_mutations.c - the checker refuses every wrong script, and every wrong compiled cell.
 *
 * What is wrong is not for the checker to say: a changed script that it accepts must make no difference (subjects.h). */
#include "common/testing.h"
#include "mutate.h"
#include "subjects.h"

static void try_script(const subject *s, executor *x, uint32_t kind, uint64_t seed, tally *t) {
    AT_END(editor_close) editor e;
    ck_assert(editor_open(&e, s, seed));
    const bool changed = mutations[kind].apply(&e, mutations[kind].argument);
    if (changed && (e.words != s->words || memcmp(e.script, s->script, s->words * sizeof *e.script) != 0)) {
        subject mutant = *s;
        /* a copy without slack, so that reads past its end are noticed */
        FREED uint32_t *script = need(malloc(e.words * sizeof *script));
        memcpy(script, e.script, e.words * sizeof *script);
        mutant.script = script;
        mutant.words = e.words;
        if (!judge(&mutant, x, t)) {
            printf("accepted: %s; seed %llu; first words that differ:", mutations[kind].name, (unsigned long long)seed);
            for (size_t i = 0, n = 0; i < s->words && i < e.words && n < 8; i++) {
                if (script[i] == s->script[i]) continue;
                printf(" [%zu] %x -> %x", i, s->script[i], script[i]);
                n++;
            }
            printf("\n");
        }
    }
}

/* Tries a change of a cell. False: the cell has nothing of that kind. */
static bool try_cell(const subject *s, executor *x, uint32_t kind, uint64_t *random, tally *t) {
    const uint32_t number = vpps_random_below(random, s->n_cells);
    const vpps_compiled_cell *cell = s->cells[number];
    vpps_compiled_cell *changed = copy_cell(cell), **cells = malloc(s->n_cells * sizeof *cells);
    ck_assert(changed && cells);
    memcpy(cells, s->cells, s->n_cells * sizeof *cells);
    cells[number] = changed;
    subject mutant = *s;
    mutant.cells = cells;
    const bool did = mutate_cell(kind, changed, random);
    if (did && !judge(&mutant, x, t)) printf("accepted: %s in cell %s\n", cell_mutation(kind), cell->name);
    vpps_compiled_cell_free(changed);
    free(cells);
    return did;
}

static void mutate_script(const job *j, executor *x, uint64_t seed, tally *tallies) {
    for (uint32_t kind = 0; kind < n_mutations; kind++)
        for (uint32_t i = 0; i < mutations[kind].times; i++)
            try_script(&j->subject, x, kind, vpps_mix64(seed * 100000 + kind * 1000 + i), &tallies[kind]);
}

static void mutate_cells(const job *j, executor *x, uint64_t seed, tally *tallies) {
    enum { WANTED = 1, TRIES = 2 };
    for (uint32_t kind = 0; kind < n_cell_mutations(); kind++) {
        uint64_t random = vpps_mix64(seed * 2000 + kind);
        for (uint32_t i = 0, n = 0; i < TRIES && n < WANTED; i++)
            n += try_cell(&j->subject, x, kind, &random, &tallies[kind]);
    }
}

static void expect_all(const tally *all, const char *what, uint32_t n) {
    printf("%s of %u scripts: %u tried, %u rejected, %u without effect\n", what, n, all->tried, all->refused,
           all->without_effect);
    fflush(stdout);
    ck_assert_uint_gt(all->refused, 0);
    ck_assert_uint_eq(all->tried, all->refused + all->without_effect);
}

/* Scripts with more words are left out every day, since the checker's time grows with the script. */
#define MOST_WORDS (test_full() ? UINT32_MAX : 2000)

TEST_GROUP("mutations", .seconds = 300);

TEST(wrong_scripts_are_refused) {
    tally *tallies = calloc(n_mutations, sizeof *tallies), all = {0, 0, 0};
    ck_assert_ptr_nonnull(tallies);
    const uint32_t n = each_small(cases(40), MOST_WORDS, mutate_script, tallies);
    for (uint32_t k = 0; k < n_mutations; k++) report(mutations[k].name, &tallies[k], &all);
    free(tallies);
    expect_all(&all, "mutations", n);
}

TEST(wrong_cells_are_refused) {
    tally *tallies = calloc(n_cell_mutations(), sizeof *tallies), all = {0, 0, 0};
    ck_assert_ptr_nonnull(tallies);
    const uint32_t n = each_small(cases(40), MOST_WORDS, mutate_cells, tallies);
    for (uint32_t k = 0; k < n_cell_mutations(); k++) report(cell_mutation(k), &tallies[k], &all);
    free(tallies);
    expect_all(&all, "mutations of the cells", n);
}

/* Changes every word of some scripts: one more, one less, and one bit flipped. */
static void mutate_words(const job *j, executor *x, uint64_t seed, tally *tallies) {
    subject mutant = j->subject;
    FREED uint32_t *script = need(malloc(mutant.words * sizeof *script));
    memcpy(script, mutant.script, mutant.words * sizeof *script);
    mutant.script = script;
    for (size_t i = 0; i < mutant.words; i++) {
        const uint32_t word = script[i], others[] = {word + 1, word - 1, word ^ 1u << vpps_random_below(&seed, 32)};
        for (uint32_t k = 0; k < VPPS_COUNT(others); k++) {
            script[i] = others[k];
            if (!judge(&mutant, x, tallies)) printf("accepted: word %zu, %x -> %x\n", i, word, others[k]);
        }
        script[i] = word;
    }
}

TEST(every_word_counts) {
    tally all = {0, 0, 0};
    const uint32_t n = each_small(cases(10), 1000, mutate_words, &all);
    expect_all(&all, "words", n);
}

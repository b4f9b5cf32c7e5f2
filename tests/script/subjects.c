/* subjects.c - see subjects.h. */
#include "subjects.h"

#include "common/testing.h"

way way_of(uint32_t k) {
    static const uint32_t vps[] = {1, 2, 3, 8, 2, 3, 8, 8}, groups[] = {1, 1, 1, 1, 2, 3, 8, 4};
    return (way){.n_vps = vps[k % 8],
                 .groups = groups[k % 8],
                 .waves = 1 + (k + k / 8) % 3,
                 .slices = 1 + (k / 3 + k / 8) % 3,
                 .split_elems = k / 8 == 1 ? UINT32_MAX : 0,
                 .accumulate = k / 8 == 2,
                 .inference = k / 8 == 3};
}

const char *way_text(way w) {
    static char text[100];
    snprintf(text, sizeof text, "%u VPs, %u groups, %u waves of %u slices, %s%s", w.n_vps, w.groups, w.waves, w.slices,
             w.split_elems ? "vertices" : "rows",
             w.inference    ? ", inference"
             : w.accumulate ? ", gradients level by level"
                            : "");
    return text;
}

uint32_t cases(uint32_t n) { return test_full() ? 5 * n : test_scaled(n); }

/* ---------------------------------------------------------------- small ones */

/* Returns whether the job is small enough to be run several times. */
static bool is_small(const job *j) { return j->batch->pool_words < 20000 && j->batch->script_words < 6000; }

void draw_small(rg_case *c, uint64_t seed) {
    static const uint32_t sizes[] = {1, 2, 3, 5, 16, 17, 32, 33, 48};
    uint64_t random = seed + 3;
    rg_draw(c, seed, 3 + (uint32_t)(seed % 12));
    for (uint32_t i = 0; i < RG_SIZES; i++)
        c->sizes[i] = sizes[vpps_random_below(&random, (uint32_t)VPPS_COUNT(sizes))];
    if (seed % 2) return;
    for (uint32_t i = 0; i < c->n_cells; i++) { /* half of the cases are mostly vertices of cells with lists */
        c->cells[i].head = false;
        c->cells[i].variable |= i == 0;
        c->cells[i].n_steps = vpps_min_u32(c->cells[i].n_steps, 5);
    }
    for (uint32_t i = 1; i < c->n_steps; i += 2) c->steps[i].what = RG_APPLY;
}

uint32_t each_small(uint32_t n, uint32_t words, mutator mutate, tally *tallies) {
    const uint64_t first = test_seed() * 100000;
    uint32_t n_scripts = 0;
    for (uint64_t seed = first; n_scripts < n && seed < first + 3000; seed++) {
        rg_case c;
        rg_built built;
        draw_small(&c, seed);
        TEST_OK(rg_build(&built, &c, NULL));
        job j;
        TEST_OK(job_open(&j, built.g[0], built.loss[0], way_of((uint32_t)(seed % WAYS)), seed));
        if (is_small(&j) && j.subject.words <= words) {
            TEST_OK(verify_subject(&j.subject));
            executor *x = executor_open(&j);
            if (executor_is_usable(x)) {
                ck_assert_msg(!executor_differs(x, &j.subject),
                              "seed %llu: the result of a correct script depends on order", (unsigned long long)seed);
                mutate(&j, x, seed, tallies);
                n_scripts++;
            }
            executor_close(x);
        }
        job_close(&j);
        rg_destroy(&built);
    }
    return n_scripts;
}

/* ---------------------------------------------------------------- mutants */

bool judge(const subject *mutant, executor *x, tally *t) {
    t->tried++;
    if (verify_subject(mutant) != VPPS_OK) {
        t->refused++;
        return true;
    }
    if (executor_differs(x, mutant)) return false;
    t->without_effect++;
    return true;
}

void report(const char *what, const tally *t, tally *all) {
    printf("  %-42s %6u tried, %6u rejected, %6u without effect\n", what, t->tried, t->refused, t->without_effect);
    all->tried += t->tried;
    all->refused += t->refused;
    all->without_effect += t->without_effect;
}

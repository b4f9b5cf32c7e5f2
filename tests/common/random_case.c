/* random_case.c - draws a case, and makes a failing case smaller. */
#include "random_graph.h"

static rg_step draw_step(uint64_t *random, bool in_cell) {
    rg_step s;
    const uint32_t way = vpps_random_below(random, 10);
    const uint32_t extra = RG_WHATS - VPPS_OP_COUNT;
    /* a third of the steps are ops that networks mostly consist of */
    static const uint8_t common[] = {VPPS_OP_AFFINE, VPPS_OP_AFFINE,  VPPS_OP_MUL, VPPS_OP_TANH,
                                     VPPS_OP_ADD,    VPPS_OP_SIGMOID, VPPS_OP_SUM, VPPS_OP_CONCAT};
    if (way == 3 && in_cell) {
        s.what = RG_ATTEND;
    } else if (way < 3) {
        s.what = common[vpps_random_below(random, (uint32_t)VPPS_COUNT(common))];
    } else if (way < 5 && !in_cell) {
        s.what = (uint8_t)(VPPS_OP_COUNT + vpps_random_below(random, extra));
    } else {
        s.what = (uint8_t)vpps_random_below(random, VPPS_OP_COUNT);
    }
    s.rows = (uint8_t)vpps_random_below(random, RG_SIZES);
    s.cols = (uint8_t)vpps_random_below(random, RG_SIZES * 4);
    for (int i = 0; i < 3; i++) s.pick[i] = (uint32_t)vpps_random(random);
    return s;
}

void rg_draw(rg_case *c, uint64_t seed, uint32_t n_steps) {
    static const uint32_t sizes[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64, 65, 100, 129};
    uint64_t random = vpps_mix64(seed), lists = vpps_mix64(seed + 1);
    *c = (rg_case){.seed = seed};
    for (int i = 0; i < RG_SIZES; i++) c->sizes[i] = sizes[vpps_random_below(&random, (uint32_t)VPPS_COUNT(sizes))];
    if (vpps_random_below(&random, 50) == 0) c->sizes[0] = 257;
    c->columns = 1 + vpps_random_below(&random, 4);
    c->batches = 1 + vpps_random_below(&random, 2);
    c->frozen = vpps_random_below(&random, 3) == 0;
    c->n_cells = vpps_random_below(&random, RG_DRAWN_CELLS + 1);
    for (uint32_t i = 0; i < c->n_cells; i++) {
        rg_cell *cell = &c->cells[i];
        cell->head = vpps_random_below(&random, 4) == 0;
        cell->n_children = (uint8_t)vpps_random_below(&random, 3);
        cell->variable = vpps_random_below(&random, 2);
        cell->rest = vpps_random_below(&random, 2);
        cell->n_pull_lists = (uint8_t)(cell->variable ? vpps_random_below(&random, 5) / 2 : 0);
        cell->only_pulled = cell->n_pull_lists && (cell->head || vpps_random_below(&random, 3) == 0);
        if (cell->head && !cell->only_pulled) cell->variable = false;
        cell->apart = vpps_random_below(&lists, 2);
        cell->twice = vpps_random_below(&lists, 2);
        cell->n_steps = vpps_random_below(&random, RG_CELL_STEPS) + 1;
        for (uint32_t k = 0; k < cell->n_steps; k++) cell->steps[k] = draw_step(&random, true);
    }
    c->n_steps = vpps_min_u32(RG_STEPS, n_steps / 2 + vpps_random_below(&random, n_steps + 1));
    for (uint32_t i = 0; i < c->n_steps; i++) c->steps[i] = draw_step(&random, false);
}

typedef struct shrinker {
    rg_case *c;
    bool (*fails)(const rg_case *c, void *context);
    void *context;
    uint32_t tries;
} shrinker;

/* Takes the candidate if it fails too. */
static bool accept(shrinker *s, const rg_case *candidate) {
    if (!s->tries) return false;
    s->tries--;
    if (!s->fails(candidate, s->context)) return false;
    *s->c = *candidate;
    return true;
}

static bool drop_steps(shrinker *s, rg_step *(*steps_of)(rg_case *, uint32_t **, uint32_t), uint32_t which) {
    bool progress = false;
    uint32_t *n;
    steps_of(s->c, &n, which);
    for (uint32_t chunk = *n; chunk > 0; chunk /= 2) {
        for (uint32_t at = 0; at + chunk <= *n && s->tries;) {
            rg_case candidate = *s->c;
            uint32_t *count;
            rg_step *steps = steps_of(&candidate, &count, which);
            memmove(steps + at, steps + at + chunk, (*count - at - chunk) * sizeof *steps);
            *count -= chunk;
            if (accept(s, &candidate)) {
                progress = true;
            } else {
                at += chunk;
            }
        }
    }
    return progress;
}

static rg_step *graph_steps(rg_case *c, uint32_t **n, uint32_t which) {
    (void)which;
    *n = &c->n_steps;
    return c->steps;
}
static rg_step *cell_steps(rg_case *c, uint32_t **n, uint32_t which) {
    *n = &c->cells[which].n_steps;
    return c->cells[which].steps;
}

static bool simplify_sizes(shrinker *s) {
    bool progress = false;
    for (uint32_t i = 0; i <= RG_SIZES; i++) {
        static const uint32_t wanted[] = {1, 2, 3, 8};
        for (size_t k = 0; k < VPPS_COUNT(wanted); k++) {
            rg_case candidate = *s->c;
            uint32_t *size = i < RG_SIZES ? &candidate.sizes[i] : &candidate.columns;
            if (*size <= wanted[k]) break;
            *size = wanted[k];
            if (accept(s, &candidate)) {
                progress = true;
                break;
            }
        }
    }
    return progress;
}

static bool simplify_picks(shrinker *s) {
    bool progress = false;
    for (uint32_t i = 0; i < s->c->n_steps; i++) {
        for (int k = 0; k < 3; k++) {
            rg_case candidate = *s->c;
            if (!candidate.steps[i].pick[k]) continue;
            candidate.steps[i].pick[k] = 0;
            progress |= accept(s, &candidate);
        }
        rg_case candidate = *s->c;
        if (!candidate.steps[i].rows && !candidate.steps[i].cols) continue;
        candidate.steps[i].rows = candidate.steps[i].cols = 0;
        progress |= accept(s, &candidate);
    }
    return progress;
}

static bool simplify_rest(shrinker *s) {
    bool progress = false;
    rg_case candidate = *s->c;
    candidate.batches = 1;
    if (s->c->batches > 1) progress |= accept(s, &candidate);
    candidate = *s->c;
    candidate.frozen = false;
    if (s->c->frozen) progress |= accept(s, &candidate);
    for (uint32_t i = 0; i < s->c->n_cells; i++) {
        candidate = *s->c;
        candidate.cells[i].apart = candidate.cells[i].twice = false;
        if (s->c->cells[i].apart || s->c->cells[i].twice) progress |= accept(s, &candidate);
    }
    while (s->c->n_cells) {
        candidate = *s->c;
        candidate.n_cells--;
        if (!accept(s, &candidate)) break;
        progress = true;
    }
    return progress;
}

void rg_shrink(rg_case *c, bool (*fails)(const rg_case *c, void *context), void *context, uint32_t tries) {
    shrinker s = {c, fails, context, tries};
    bool progress = true;
    while (progress && s.tries) {
        progress = simplify_rest(&s);
        progress |= drop_steps(&s, graph_steps, 0);
        for (uint32_t i = 0; i < c->n_cells; i++) progress |= drop_steps(&s, cell_steps, i);
        progress |= simplify_sizes(&s);
        progress |= simplify_picks(&s);
    }
}

/* choices.c - see choices.h. */
#include "runtime/cpu/choices.h"
#include "base/base.h"

#include <stdio.h>

#define NEVER UINT32_MAX

const vpps_cpu_choice vpps_cpu_defaults = {
#define X(name, value, what) .name = value,
    VPPS_CPU_CHOICE_TABLE(X)
#undef X
};

const vpps_cpu_choice vpps_cpu_spreads = {.tile = 96, .few = 9, .pays = 64};

const char *const vpps_cpu_ways[VPPS_CPU_WAYS] = {
#define X(name) #name,
    VPPS_CPU_WAY_TABLE(X)
#undef X
};

void vpps_cpu_tuning_free(vpps_cpu_tuning *t) {
    free(t->shapes);
    free(t->trials);
}

/* ---------------------------------------------------------------- choosing */

static bool is_way(const vpps_trial *t, vpps_cpu_way way) { return !strcmp(t->product, vpps_cpu_ways[way]); }

/* The trial of a way with so many vectors, 0: with any; or NULL. */
static vpps_trial *find_trial(vpps_trial *trials, uint32_t n, vpps_cpu_way way, uint32_t vectors) {
    for (uint32_t i = 0; i < n; i++)
        if (is_way(&trials[i], way) && (!vectors || trials[i].vectors == vectors)) return &trials[i];
    return NULL;
}

static void choose_tile(vpps_trial *trials, uint32_t n, vpps_cpu_choice *c) {
    const double margin = 0.03;
    const vpps_trial *usual = find_trial(trials, n, VPPS_CPU_WAY_tile, c->tile);
    double least = usual ? usual->ns_per_vector * (1 - margin) : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_way(&trials[i], VPPS_CPU_WAY_tile) || !(trials[i].ns_per_vector < least)) continue;
        least = trials[i].ns_per_vector;
        c->tile = trials[i].vectors;
    }
}

/* From the numbers of vectors on where all that were tried are clearly faster with a copy; and how many vectors gain what the
 * copy costs twice, for it also displaces what products read from the caches. */
static void choose_copy(vpps_trial *trials, uint32_t n, vpps_cpu_choice *c) {
    const double clear = 0.25;
    vpps_trial *transpose = find_trial(trials, n, VPPS_CPU_WAY_transpose, 0);
    double gain = 0; /* ns a vector, the least */
    if (!transpose) return;
    c->few = c->pays = NEVER;
    for (uint32_t i = n; i-- > 0;) {
        const vpps_trial *copy = &trials[i], *rows = find_trial(trials, n, VPPS_CPU_WAY_rows, copy->vectors);
        if (!is_way(copy, VPPS_CPU_WAY_copy) || !rows) continue;
        const double g = rows->ns_per_vector - copy->ns_per_vector;
        if (!(g > clear * rows->ns_per_vector)) break;
        c->few = copy->vectors;
        if (gain <= 0 || g < gain) gain = g;
    }
    if (c->few != NEVER && transpose->ns_per_vector < 1e6 * gain)
        c->pays = 1 + (uint32_t)(2 * transpose->ns_per_vector / gain);
    transpose->vectors = c->pays;
}

static bool is_chosen(const vpps_trial *t, const vpps_cpu_choice *c) {
    if (is_way(t, VPPS_CPU_WAY_tile)) return t->vectors == c->tile;
    if (is_way(t, VPPS_CPU_WAY_rows)) return t->vectors < c->few;
    if (is_way(t, VPPS_CPU_WAY_copy)) return t->vectors >= c->few;
    return c->pays != NEVER;
}

vpps_cpu_choice vpps_cpu_choose_ways(vpps_trial *trials, uint32_t n) {
    vpps_cpu_choice c = vpps_cpu_defaults;
    choose_tile(trials, n, &c);
    choose_copy(trials, n, &c);
    for (uint32_t i = 0; i < n; i++)
        trials[i].state = is_chosen(&trials[i], &c) ? VPPS_TRIAL_CURRENT : VPPS_TRIAL_MEASURED;
    return c;
}

/* ---------------------------------------------------------------- trials as text */

/* Lines: "product ROWS COLUMNS WAY VECTORS NS", "split NAME NS", of which "*" follows the chosen one. */
char *vpps_cpu_write_trials(const vpps_cpu_tuning *t) {
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f) return NULL;
    for (uint32_t i = 0; i < t->n_trials; i++) {
        const vpps_trial *x = &t->trials[i];
        fprintf(f, "product %u %u %s %u %.3f\n", x->rows, x->cols, x->product, x->vectors, x->ns_per_vector);
    }
    for (uint32_t i = 0; i < t->splits.n; i++) {
        const vpps_trial *x = &t->splits.trials[i];
        fprintf(f, "split %s %.3f%s\n", x->split, x->ns_per_node, x->state == VPPS_TRIAL_CURRENT ? " *" : "");
    }
    if (fclose(f)) return free(text), NULL;
    return text;
}

static bool read_product(vpps_cpu_tuning *t, const char *line) {
    vpps_trial x = {.state = VPPS_TRIAL_MEASURED};
    char way[16];
    int end = 0;
    bool known = false;
    if (sscanf(line, "product %u %u %15s %u %lf%n", &x.rows, &x.cols, way, &x.vectors, &x.ns_per_vector, &end) != 5 ||
        line[end] || !(x.ns_per_vector > 0))
        return false;
    for (uint32_t i = 0; i < VPPS_CPU_WAYS; i++)
        if (!strcmp(way, vpps_cpu_ways[i])) x.product = vpps_cpu_ways[i];
    for (uint32_t i = 0; i < t->n_shapes; i++) known |= vpps_same_shape(t->shapes[i], (vpps_cpu_shape){x.rows, x.cols});
    if (!known || !x.product || !VPPS_RESERVE(t->trials, t->trials_capacity, t->n_trials + 1u)) return false;
    t->trials[t->n_trials++] = x;
    return true;
}

static bool read_split(vpps_cpu_tuning *t, const char *line) {
    char name[16], chosen = 0;
    double ns;
    if (sscanf(line, "split %15s %lf %c", name, &ns, &chosen) < 2 || !(ns > 0)) return false;
    for (uint32_t i = 0; i < t->splits.n; i++) {
        vpps_trial *x = &t->splits.trials[i];
        if (strcmp(x->split, name) != 0) continue;
        x->ns_per_node = ns;
        x->state = chosen == '*' ? VPPS_TRIAL_REMEMBERED : VPPS_TRIAL_MEASURED;
        return true;
    }
    return false;
}

bool vpps_cpu_read_trials(vpps_cpu_tuning *t, char *text) {
    bool ok = true;
    t->n_trials = 0;
    for (char *next, *line = strtok_r(text, "\n", &next); line && ok; line = strtok_r(NULL, "\n", &next))
        ok = *line == 'p' ? read_product(t, line) : read_split(t, line);
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < t->splits.n; i++) chosen += t->splits.trials[i].state == VPPS_TRIAL_REMEMBERED;
    if (ok && chosen == (t->splits.n > 0)) return true;
    t->n_trials = 0;
    return false;
}

/* profile.c - see profile.h. Batches differ, and other work disturbs some of them: trials take turns, and medians of the
 * time a node are compared. */
#include "runtime/profile.h"
#include "base/base.h"
#include "codegen/cache.h"
#include "script/policies.h"

void vpps_profile_groups(vpps_profile *p, uint32_t n_vps, uint32_t most) {
    *p = (vpps_profile){0};
    for (uint32_t groups = 1; groups <= most; groups++) {
        if (n_vps % groups) continue;
        if (p->n == VPPS_MOST_TRIALS) p->n--; /* the most come last */
        p->trials[p->n++] = (vpps_trial){.groups = groups, .state = VPPS_TRIAL_WAITING};
    }
    p->done = p->n == 1;
    if (p->done) p->trials[0].state = VPPS_TRIAL_CURRENT;
}

void vpps_profile_policies(vpps_profile *p) {
    *p = (vpps_profile){.margin = 0.02};
    for (const vpps_policy *policy = vpps_policies; policy->name && p->n < VPPS_MOST_TRIALS; policy++)
        p->trials[p->n++] = (vpps_trial){.policy = policy->name, .state = VPPS_TRIAL_WAITING};
}

void vpps_profile_splits(vpps_profile *p) {
    static const char *const splits[] = {"size", "rows", "vertices"};
    *p = (vpps_profile){.margin = 0.1, .n = VPPS_COUNT(splits)};
    for (uint32_t i = 0; i < p->n; i++) p->trials[i] = (vpps_trial){.split = splits[i], .state = VPPS_TRIAL_WAITING};
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double vpps_median(double *x, size_t n) {
    qsort(x, n, sizeof *x, by_size);
    return x[n / 2];
}

static void choose(vpps_profile *p) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        vpps_trial *t = &p->trials[i];
        t->state = t->batches ? VPPS_TRIAL_MEASURED : VPPS_TRIAL_WAITING;
        if (!t->batches) continue;
        t->ns_per_node = vpps_median(p->ns[i], t->batches);
        const vpps_trial *b = &p->trials[best];
        const double margin = best ? 0 : p->margin;
        if (!b->batches || t->ns_per_node < b->ns_per_node * (1 - margin)) best = i;
    }
    p->trials[best].state = VPPS_TRIAL_CURRENT;
    p->asked = best;
    p->done = true;
}

const vpps_trial *vpps_profile_next(vpps_profile *p) {
    if (!p->done) p->asked = p->batches++ % p->n;
    return &p->trials[p->asked];
}

void vpps_profile_note(vpps_profile *p, bool as_asked, uint64_t nodes, uint64_t device_ns) {
    if (!vpps_profile_goes_on(p) || !p->batches) return;
    vpps_trial *t = &p->trials[p->asked];
    const bool first = p->batches <= p->n; /* cells are compiled, and memory is touched, the first time */
    if (!first && as_asked && nodes && t->batches < VPPS_TRIAL_BATCHES) {
        p->ns[p->asked][t->batches++] = (double)device_ns / (double)nodes;
        t->state = VPPS_TRIAL_MEASURED;
    }
    if (p->batches == p->n * (VPPS_TRIAL_BATCHES + 1)) choose(p);
}

/* ---------------------------------------------------------------- for later runs */

char *vpps_profile_recall(const vpps_cache_key *key) {
    void *bytes = NULL;
    size_t size = 0;
    if (vpps_cache_read(key, &bytes, &size, NULL) != VPPS_OK || !bytes) return NULL;
    char *text = realloc(bytes, size + 1);
    if (text)
        text[size] = '\0';
    else
        free(bytes);
    return text;
}

vpps_status vpps_profile_keep(const vpps_cache_key *key, const char *text) {
    return vpps_cache_write(key, text, strlen(text));
}

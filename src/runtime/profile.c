/* profile.c - times the alternatives of a choice on batches, and takes the fastest. Since batches differ and other work
 * disturbs some of them, the alternatives' median times per node are compared. */
#include "runtime/profile.h"
#include "codegen/cache.h"
#include "runtime/log.h"

/* Makes the disk cache's key of the text (such as the fastest kernel) that m identifies. *shapes: part of the key, to be freed. Fails with MEMORY. */
static vpps_status key_of(const vpps_memory *m, char **shapes, vpps_cache_key *key) {
    size_t size = 0;
    *shapes = NULL;
    FILE *f = open_memstream(shapes, &size);
    for (uint32_t i = 0; f && m->model && i < m->model->n_params; i++) {
        const vpps_parameter_data *p = &m->model->params[i];
        if (p->kind == VPPS_MATRIX) fprintf(f, "%s %u %u\n", p->name, p->rows, p->cols);
    }
    if (!f || fclose(f)) return vpps_fail(VPPS_MEMORY, "out of memory");
    *key = (vpps_cache_key){"tuning", m->what, m->machine, *shapes, size};
    return VPPS_OK;
}

char *vpps_recall(const vpps_memory *m) {
    char *shapes, *text = NULL;
    void *bytes = NULL;
    size_t size = 0;
    vpps_cache_key key;
    if (key_of(m, &shapes, &key) == VPPS_OK && vpps_cache_read(&key, &bytes, &size) == VPPS_OK && bytes)
        text = malloc(size + 1); /* adds the final zero; strndup might read past the bytes */
    if (text) {
        memcpy(text, bytes, size);
        text[size] = 0;
    }
    VPPS_FREE(bytes, shapes);
    return text;
}

vpps_status vpps_remember(const vpps_memory *m, const char *text) {
    char *shapes;
    vpps_cache_key key;
    vpps_status status = key_of(m, &shapes, &key);
    if (status == VPPS_OK) status = vpps_cache_write(&key, text, strlen(text));
    free(shapes);
    return status;
}

void vpps_profile_groups(vpps_profile *p, uint32_t n_vps, uint32_t most) {
    *p = (vpps_profile){.batches = VPPS_TRIAL_BATCHES};
    for (uint32_t groups = 1; groups <= most; groups++) {
        if (n_vps % groups) continue;
        if (p->n == VPPS_MOST_TRIALS) p->n--; /* the list is full: the new number replaces the largest so far */
        p->trials[p->n++] = (vpps_trial){.groups = groups};
    }
    if (p->n == 1) vpps_profile_take(p, p->n);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Sorts n > 0 numbers and returns their median; of two middle numbers, the larger one. */
static double median(double *x, size_t n) {
    qsort(x, n, sizeof *x, by_size);
    return x[n / 2];
}

uint32_t vpps_profile_best(const vpps_profile *p) {
    uint32_t best = p->n;
    for (uint32_t i = 0; i < p->n; i++) {
        const double ns = p->trials[i].ns_per_node;
        if (ns > 0 && (best == p->n || ns < p->trials[best].ns_per_node * (best ? 1 : 1 - p->margin))) best = i;
    }
    return best;
}

static void keep(const vpps_profile *p) {
    char text[VPPS_CANDIDATE_BYTES];
    p->name(vpps_profile_current(p), text);
    if (vpps_remember(&p->memory, text) != VPPS_OK)
        vpps_log_line(p->options, "the choice could not be kept for other runs: %s", vpps_error_message());
}

void vpps_profile_take(vpps_profile *p, uint32_t i) {
    vpps_trial *before = &p->trials[p->current];
    const uint32_t best = vpps_profile_best(p);
    if (before->state == VPPS_TRIAL_CURRENT) before->state = VPPS_TRIAL_MEASURED;
    p->done = i == p->n;
    p->current = !p->done ? i : best < p->n ? best : 0;
    p->trials[p->current].state = VPPS_TRIAL_CURRENT;
    if (p->done && best < p->n && p->name) keep(p);
}

void vpps_profile_resume(vpps_profile *p, const char *text) {
    for (uint32_t i = 0; i < p->n && !p->done; i++) {
        char name[VPPS_CANDIDATE_BYTES];
        p->name(&p->trials[i], name);
        if (strcmp(text, name) != 0) continue;
        p->trials[i].state = VPPS_TRIAL_REMEMBERED;
        p->current = i;
        p->done = true;
    }
}

void vpps_profile_note(vpps_profile *p, bool as_asked, uint64_t nodes, uint64_t ns) {
    if (!vpps_profile_goes_on(p) || !nodes) return;
    const uint32_t i = p->current, batch = p->given[i]++;
    vpps_trial *t = &p->trials[i];
    if (batch > p->batches) return; /* timed often enough: runs on until the next alternative's kernel is compiled */
    if (batch && as_asked) p->ns[i][t->batches++] = (double)ns / (double)nodes;
    if (batch == p->batches && t->batches) t->ns_per_node = median(p->ns[i], t->batches);
    if (p->one_by_one) return;
    if (t->batches) t->state = VPPS_TRIAL_MEASURED;
    p->current = (i + 1) % p->n;
    if (batch == p->batches && !p->current) vpps_profile_take(p, p->n);
}

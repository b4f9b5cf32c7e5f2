/* snapshot.c - copies of the parameters, which handles for inference read while another handle trains. */
#include "runtime/snapshot.h"

#include <pthread.h>
#include <stdatomic.h>

struct vpps_snapshot {
    vpps_model models[2]; /* the two copies: models with nothing but parameters' descriptions and values */
    uint32_t current;     /* index of the copy that readers get; protected by the lock */
    atomic_uint holders;
    _Atomic uint64_t version;
    pthread_mutex_t lock;
};

static void free_parameters(vpps_model *m) {
    for (size_t p = 0; m->params && p < m->n_params; p++) free(m->params[p].values);
    free(m->params);
}

static bool copy_parameters(vpps_model *to, const vpps_model *from) {
    to->n_params = from->n_params;
    to->params = calloc(from->n_params + 1, sizeof *to->params);
    bool ok = to->params != NULL;
    for (size_t p = 0; p < from->n_params && ok; p++) {
        const vpps_parameter_data *d = &from->params[p];
        const size_t bytes = vpps_param_elems(d) * sizeof(float);
        to->params[p] = (vpps_parameter_data){.name = d->name,
                                              .kind = d->kind,
                                              .count = d->count,
                                              .rows = d->rows,
                                              .cols = d->cols,
                                              .values = malloc(bytes)};
        ok = to->params[p].values != NULL;
        if (ok) memcpy(to->params[p].values, d->values, bytes);
    }
    return ok;
}

vpps_status vpps_snapshot_create(vpps_snapshot **out, const vpps_model *model) {
    vpps_snapshot *s = *out = calloc(1, sizeof *s);
    if (!s) return vpps_fail(VPPS_MEMORY, "snapshot: out of memory");
    pthread_mutex_init(&s->lock, NULL);
    atomic_store(&s->holders, 1);
    if (copy_parameters(&s->models[0], model) && copy_parameters(&s->models[1], model)) return VPPS_OK;
    vpps_snapshot_drop(s);
    *out = NULL;
    return vpps_fail(VPPS_MEMORY, "snapshot: out of memory for two copies of the parameters");
}

vpps_snapshot *vpps_snapshot_share(vpps_snapshot *s) {
    atomic_fetch_add(&s->holders, 1);
    return s;
}

void vpps_snapshot_drop(vpps_snapshot *s) {
    if (!s || atomic_fetch_sub(&s->holders, 1) > 1) return;
    free_parameters(&s->models[0]);
    free_parameters(&s->models[1]);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

vpps_model *vpps_snapshot_spare(vpps_snapshot *s) { return &s->models[1 - s->current]; }

void vpps_snapshot_publish(vpps_snapshot *s) {
    pthread_mutex_lock(&s->lock);
    s->current = 1 - s->current;
    atomic_fetch_add(&s->version, 1);
    pthread_mutex_unlock(&s->lock);
}

uint64_t vpps_snapshot_version(const vpps_snapshot *s) { return atomic_load(&s->version); }

const vpps_model *vpps_snapshot_lock(vpps_snapshot *s, uint64_t *version) {
    pthread_mutex_lock(&s->lock);
    *version = atomic_load(&s->version);
    return &s->models[s->current];
}

void vpps_snapshot_unlock(vpps_snapshot *s) { pthread_mutex_unlock(&s->lock); }

/* policies.c - finds a handle's batching policy by name, and stores learned policies. */
#include "runtime/policies.h"

#include "codegen/cache.h"

static vpps_cache_key key_of(const vpps_graph_kind *kind) {
    return (vpps_cache_key){.kind = "policy",
                            .description = kind->names,
                            .toolchain = "vpps " VPPS_VERSION,
                            .source = kind->key,
                            .source_bytes = kind->key_bytes};
}

/* Returns a stored batching policy (which vertices run together) learned on this kind of graph; NULL: none. */
static void *read_policy(const vpps_graph_kind *kind, size_t *bytes) {
    const vpps_cache_key key = key_of(kind);
    void *packed = NULL;
    return vpps_cache_read(&key, &packed, bytes) == VPPS_OK ? packed : NULL;
}

static void write_policy(const vpps_graph_kind *kind, const void *packed, size_t bytes) {
    const vpps_cache_key key = key_of(kind);
    (void)vpps_cache_write(&key, packed, bytes);
}

const vpps_policy_store vpps_policies_on_disk = {read_policy, write_policy};

vpps_status vpps_open_policy(const char *name, const vpps_policy **policy, vpps_profile *profile) {
    *policy = vpps_policies;
    if (!name) return VPPS_OK;
    if (!strcmp(name, "auto")) {
        *profile = (vpps_profile){.batches = VPPS_TRIAL_BATCHES, .margin = 0.02}; /* a gain below 2 % may be noise */
        for (const vpps_policy *p = vpps_policies; p->name && profile->n < VPPS_MOST_TRIALS; p++)
            profile->trials[profile->n++] = (vpps_trial){.policy = p->name};
        return VPPS_OK;
    }
    *policy = vpps_policy_find(name);
    if (*policy) return VPPS_OK;
    char names[256] = "auto";
    size_t n = strlen(names);
    for (const vpps_policy *p = vpps_policies; p->name && n < sizeof names; p++)
        n += (size_t)snprintf(names + n, sizeof names - n, ", %s", p->name);
    return vpps_fail(VPPS_ARGUMENT, "policy %s: unknown; there are: %s", name, names);
}

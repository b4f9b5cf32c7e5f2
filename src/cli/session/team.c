/* team.c - joins the processes of a run, compares their options, and ends them together. */
#include "cli/session/team.h"
#include "base/base.h"
#include "base/hash.h"
#include "cli/common/failure.h"
#include "cli/common/signals.h"
#include "runtime/comm/comm.h"
#include "runtime/cores.h"
#include "runtime/devices.h"

#include <inttypes.h>
#include <sched.h>

enum { COMMUNICATOR_AUTO, COMMUNICATOR_MPI, COMMUNICATOR_NONE };

/* ---------------------------------------------------------------- joining */

static long number_in(const char *variable) {
    const char *text = getenv(variable);
    return text ? strtol(text, NULL, 10) : 0;
}

/* Returns how many processes were started together. Open MPI and MPICH's hydra tell the number in the environment. Tasks of srun count only
 * if a process manager (PMIx) joins them: else they may be unrelated programs. */
static long started_together(void) {
    static const char *const launchers[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"};
    for (size_t i = 0; i < VPPS_COUNT(launchers); i++)
        if (number_in(launchers[i]) > 1) return number_in(launchers[i]);
    return getenv("PMIX_RANK") ? number_in("SLURM_STEP_NUM_TASKS") : 0;
}

/* Gives each process as many cores as the process with the fewest can use. Processes on a GPU need none. */
static vpps_status share_cores(team *t) {
    struct own_cores {
        cpu_set_t set; /* the cores that a process may run on */
        uint32_t n;    /* number of cores that the process may use at once */
    } own;
    VPPS_FREED struct own_cores *all = vpps_scratch(t->size * sizeof *all);
    if (!all) return vpps_fail(VPPS_MEMORY, "no memory for %u processes", t->size);
    memset(&own, 0, sizeof own);
    if (sched_getaffinity(0, sizeof own.set, &own.set)) CPU_SET(0, &own.set);
    own.n = vpps_cores_allowed();
    VPPS_TRY(vpps_comm_gather(t->c, &own, all, sizeof own));
    t->cores = UINT32_MAX;
    for (uint32_t p = 0; p < t->size; p++) {
        uint32_t sharing = 0;
        for (uint32_t q = 0; q < t->size; q++)
            sharing += strcmp(t->c->hosts[p], t->c->hosts[q]) == 0 && CPU_EQUAL(&all[p].set, &all[q].set);
        t->cores = vpps_min_u32(t->cores, vpps_max_u32(all[p].n / sharing, 1));
    }
    return VPPS_OK;
}

uint32_t team_vps(const team *t, const settings *s) {
    const vpps_device_table *device; /* device->host_vps: its virtual processors are threads of this process */
    if (s->vps || vpps_device_meant(s->device, &device) != VPPS_OK || !device->host_vps) return s->vps;
    return t->cores;
}

vpps_status team_open(team *t, const settings *s) {
    *t = (team){.size = 1};
    if (s->communicator == COMMUNICATOR_NONE) return VPPS_OK;
    if (s->communicator == COMMUNICATOR_AUTO && started_together() < 2) return VPPS_OK;
    VPPS_TRY(vpps_communicator_open(&t->c, "mpi", NULL, s->watchdog_ms));
    t->rank = t->c->rank;
    t->size = t->c->size;
    /* an MPI library other than the launcher's finds one process only: each process would train alone */
    if (t->size == 1 && started_together() > 1)
        return vpps_fail(VPPS_DEVICE,
                         "%ld processes were started together, but the library of MPI finds one: it is not the "
                         "launcher's, which VPPS_MPI can name",
                         started_together());
    team_busy(t, true);
    return share_cores(t);
}

void team_close(team *t) {
    vpps_communicator_close(t->c);
    *t = (team){.size = 1};
}

void team_busy(const team *t, bool busy) {
    if (t->c) atomic_store(&t->c->patient, busy);
}

void team_quieten(team *t, settings *s) {
    const bool sharded = t->c && s->shard_tables;
    t->saves = sharded && s->save;
    t->saves_best = sharded && s->save_best;
    if (!t->rank) return;
    s->save = s->save_best = s->log = s->plot = s->trace = NULL;
    s->quiet = true;
    s->json = false;
}

/* ---------------------------------------------------------------- agreeing */

vpps_status team_agree(team *t, vpps_status status) {
    if (!t->c) return status;
    const vpps_status all = vpps_comm_agree(t->c, status);
    t->agreed = all != VPPS_OK && all != VPPS_STALL;
    return all;
}

vpps_status team_alone(const team *t, const char *option) {
    if (!t || !t->c) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "--%s goes with one process; there are %u", option, t->size);
}

vpps_status team_meet(team *t) { return t->c ? vpps_comm_agree(t->c, VPPS_OK) : VPPS_OK; }

vpps_status team_sum(team *t, uint32_t n, double *values) { return t->c ? vpps_comm_sum(t->c, values, n) : VPPS_OK; }

char *team_options(const settings *s) {
    char *text = NULL, value[64];
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    if (!f) return NULL;
    fprintf(f, "version %s\nnetwork %s\n", vpps_version(), s->network->name);
    for (const cli_option *o = options_rows(s); o->row.help; o++) {
        /* skips paths, which may differ between processes */
        if (!options_apply(s, o) || (o->flags & (OPTION_INPUT | OPTION_OUTPUT | OPTION_CONTENT))) continue;
        const char *given = o->row.kind == OPTION_TEXT ? options_text(s, o) : value;
        if (given == value) options_write(s, o, value, sizeof value);
        fprintf(f, "--%s %s\n", o->row.name, given ? given : "");
    }
    vpps_text_end(f, VPPS_OK, &text);
    return text;
}

static uint64_t hash_of_parameters(vpps_model *model) {
    uint64_t hash = 0;
    for (vpps_param p = 0; p < vpps_param_count(model); p++) {
        vpps_param_info info = {.size = sizeof info};
        /* skips lookup tables divided among processes, since each process has different entries */
        if (vpps_param_describe(model, p, &info) != VPPS_OK || info.step > 1) continue;
        hash = vpps_hash_bytes(vpps_param_values(model, p), (size_t)info.count * info.rows * info.cols * sizeof(float),
                               hash + 1);
    }
    return hash;
}

vpps_status team_compare(team *t, const char *options, const corpus *c, vpps_model *model) {
    VPPS_FREED char *text = NULL;
    size_t bytes;
    if (!t->c) return VPPS_OK;
    vpps_status status = options ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for the options");
    FILE *f = status == VPPS_OK ? open_memstream(&text, &bytes) : NULL;
    if (f) fputs(options, f);
    for (int i = 0; f && i < N_SPLITS; i++) {
        const corpus_split *split = &c->split[i];
        if (!split->present) continue;
        fprintf(f, "%s-examples %u\n", split_names[i], split->n_examples);
        fprintf(f, "%s-data %016" PRIx64 "\n", split_names[i],
                vpps_hash_bytes(split->examples, split->n_examples * sizeof *split->examples, split->content));
    }
    if (f) fprintf(f, "parameters %016" PRIx64 "\n", hash_of_parameters(model));
    VPPS_TRY(team_agree(t, vpps_text_end(f, status, &text)));
    status = vpps_comm_compare(t->c, text);
    t->agreed = status == VPPS_ARGUMENT;
    return status;
}

int team_fail(team *t, vpps_status status) {
    char message[VPPS_MESSAGE_BYTES];
    snprintf(message, sizeof message, "%s", vpps_error_message());
    /* a gradient that is not finite, or different settings, make all processes fail alike: only the first reports the failure */
    const bool agreed = t->agreed || status == VPPS_NONFINITE || status == VPPS_STATE;
    if (!t->c || (agreed && !t->rank)) report_failure(status);
    if (!t->c || agreed) return EXIT_RUNTIME;
    /* table->tell sends the error to the process of rank 0, and waits until that process ends this one. A stall (a process waited too long
     * for another one) is not sent: every process has noticed it, or caused it. */
    const bool lost = status == VPPS_STALL || status == VPPS_DEVICE;
    if (status != VPPS_STALL && !t->c->ended) t->c->table->tell(t->c, message);
    if (t->c->ended) {
        /* another process has reported the failure, and ends this process */
    } else if (lost && interrupted) {
        /* prints nothing: a signal is ending all processes, which broke the connection; the process that failed first has said why */
    } else if (strstr(message, "rank ")) {
        report_failure(status);
    } else {
        fprintf(stderr, "vpps: rank %u on %s: %s\n", t->rank, t->c->hosts[t->rank], message);
    }
    t->c->table->end(t->c, EXIT_RUNTIME);
    return EXIT_RUNTIME;
}

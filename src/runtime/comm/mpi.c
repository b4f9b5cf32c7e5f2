/* mpi.c - the communicator for MPI: finds the library, and waits for messages with a time limit.
 *
 * Each operation starts messages to and from single processes, and tests until all have arrived. So a wait knows which process does not
 * answer, and can read a report of a failure meanwhile. During a batch, a process has failed if it does not
 * answer within the watchdog's time; at other times, if it sends no sign of life. */
#include "runtime/comm/mpi.h"
#include "base/library.h"
#include "runtime/comm/comm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { TAG_DATA = 1, TAG_NOTE = 2 };

/* Kinds of short messages (notes) that a process sends unasked. FAILED, and WAITING (the sender waits for others' data,
 * so the delay is not its fault), go to the first process. THERE, a sign of life, goes to the first process, and from
 * the first process to all. ENDING goes from the process that ends the run to all, which then report no failure. */
typedef enum note_kind { NOTE_THERE = 1, NOTE_WAITING, NOTE_FAILED, NOTE_ENDING } note_kind;
typedef struct note {
    uint32_t kind, rank;
    char message[VPPS_MESSAGE_BYTES]; /* the failure's text, if this note (short message) tells of a failure */
} note;

typedef struct mpi_row {
    vpps_communicator c;
    const vpps_mpi_binding *binding;
    vpps_mpi *mpi;
    uint32_t *peers; /* for each message in transit, in the order of starting: the other process */
    size_t n_messages;
    note notes[NOTE_ENDING + 1]; /* short messages to send, one of each kind: MPI may read one after the call */
    uint64_t *heard_ns;          /* for each process: time at which its last sign of life came */
    bool *waiting;               /* for each process: whether it has reported that it, too, waits for messages */
    uint64_t beat_ns;            /* time at which this process sent its last sign of life */
    pthread_mutex_t lock;        /* protects all calls of MPI */
    pthread_t beater;
    bool has_beater;
    pthread_cond_t stop_beating;
    bool stop;
} mpi_row;

static vpps_status failed_call(mpi_row *m, int error) {
    char text[200];
    m->binding->describe(m->mpi, error, text, sizeof text);
    m->n_messages = 0;
    return vpps_fail(VPPS_DEVICE, "%s: %s", m->binding->name, text);
}

/* ---------------------------------------------------------------- waiting */

/* The time that a call has spent waiting, without the time in which the process was stopped. */
typedef struct patience {
    uint64_t begin_ns, last_ns, waited_ns;
} patience;

static uint64_t have_waited(patience *p) {
    enum { LONGEST_NS = 200 * 1000 * 1000 };
    const uint64_t now = vpps_now_ns(), passed = now - p->last_ns;
    p->last_ns = now;
    p->waited_ns += passed < LONGEST_NS ? passed : LONGEST_NS;
    return p->waited_ns;
}

static patience begin_wait(void) {
    const uint64_t now = vpps_now_ns();
    return (patience){now, now, 0};
}

static void tell_first(mpi_row *m, note_kind kind, const char *text) {
    note *n = &m->notes[kind];
    if (kind == NOTE_FAILED) snprintf(n->message, sizeof n->message, "%s", text);
    m->binding->tell(m->mpi, n, kind == NOTE_FAILED ? sizeof *n : offsetof(note, message), 0, TAG_NOTE);
}

/* Sends a short message of this kind: to all others if this is the first process or `everyone` is set, else to the first process. */
static void tell_short(mpi_row *m, note_kind kind, bool everyone) {
    for (uint32_t p = 0; p < m->c.size; p++)
        if (p != m->c.rank && (everyone || !p || !m->c.rank))
            m->binding->tell(m->mpi, &m->notes[kind], offsetof(note, message), (int)p, TAG_NOTE);
}

/* Sends a sign of life if the last one is long ago, while other processes wait for this one. */
static void beat(mpi_row *m) {
    const uint64_t now = vpps_now_ns();
    if (now - m->beat_ns < m->c.watchdog_ns / 8) return;
    m->beat_ns = now;
    tell_short(m, NOTE_THERE, false);
}

/* Waits until process `by`, which has announced that it ends the run, ends this process. */
static vpps_status wait_for_end(mpi_row *m, uint32_t by) {
    m->c.ended = true;
    for (patience p = begin_wait(); have_waited(&p) < m->c.watchdog_ns / 2;)
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    return vpps_fail(VPPS_DEVICE, "rank %u on %s has ended the run", by, m->c.hosts[by]);
}

/* Reads the short messages of other processes. Fails if a process reports a failure, with the reported message. */
static vpps_status hear(mpi_row *m) {
    for (;;) {
        bool there;
        note n = {.kind = 0};
        if (m->binding->heard(m->mpi, TAG_NOTE, &there) || !there) return VPPS_OK;
        if (m->binding->receive(m->mpi, &n, sizeof n, TAG_NOTE) || n.rank >= m->c.size) return VPPS_OK;
        m->heard_ns[n.rank] = vpps_now_ns();
        if (n.kind == NOTE_WAITING) m->waiting[n.rank] = true;
        if (n.kind == NOTE_ENDING) return wait_for_end(m, n.rank);
        if (n.kind == NOTE_FAILED)
            return vpps_fail(VPPS_DEVICE, "rank %u on %s: %.400s", n.rank, m->c.hosts[n.rank], n.message);
    }
}

/* Returns whether a process from which this one expects a message counts as dead: it has not answered in time. While processes may be busy
 * for long (`patient`), signs of life count instead: every process sends them to the first one, and the first one to all. */
static bool is_silent(mpi_row *m, const patience *p, uint64_t limit_ns) {
    if (p->waited_ns < limit_ns) return false;
    if (!atomic_load(&m->c.patient) || p->waited_ns > 60 * limit_ns) return true;
    for (uint32_t i = 0; i < m->n_messages; i++) {
        const uint32_t peer = m->peers[i];
        if (m->c.rank && peer) continue;
        if (p->last_ns - m->heard_ns[peer] > limit_ns && m->binding->pending(m->mpi, i)) return true;
    }
    return false;
}

/* Tests until all started messages have arrived (then sets *done), or until limit_ns is over. */
static vpps_status wait_until(mpi_row *m, uint64_t limit_ns, bool *done) {
    enum { SPIN_NS = 200 * 1000, YIELD_NS = 5 * 1000 * 1000, SLEEP_NS = 100 * 1000, HEAR_NS = 1000 * 1000 };
    patience p = begin_wait();
    uint64_t heard_ns = p.begin_ns;
    for (;;) {
        const int error = m->binding->test(m->mpi, done);
        if (error) return failed_call(m, error);
        if (*done) return VPPS_OK;
        const uint64_t waited = have_waited(&p);
        if (p.last_ns - heard_ns > HEAR_NS) {
            if (atomic_load(&m->c.patient)) beat(m);
            VPPS_TRY(hear(m));
            if (is_silent(m, &p, limit_ns)) return VPPS_OK;
            heard_ns = p.last_ns;
        }
        if (waited > YIELD_NS) {
            nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
        } else if (waited > SPIN_NS) {
            sched_yield();
        }
    }
}

/* Writes "rank 2 on HOST, rank 3 on HOST": the processes whose messages are missing, except those that have reported that they wait. */
static void name_missing(mpi_row *m, char *text, size_t n) {
    size_t len = 0;
    *text = '\0';
    for (uint32_t p = 0; p < m->c.size && len + 1 < n; p++) {
        bool missing = false;
        for (uint32_t i = 0; i < m->n_messages && !m->waiting[p]; i++)
            missing |= m->peers[i] == p && m->binding->pending(m->mpi, i);
        if (!missing) continue;
        const int more = snprintf(text + len, n - len, "%srank %u on %s", len ? ", " : "", p, m->c.hosts[p]);
        len = more > 0 && (size_t)more < n - len ? len + (size_t)more : n - 1;
    }
}

/* Finds the process to blame after a timeout. Each waiting process tells the first process that it waits; the first process then names
 * the process that does not wait. If the first process itself does not answer, the others fail a little later and name the first process.
 * All this takes the last quarter of the watchdog's time. */
static vpps_status find_culprit(mpi_row *m, uint64_t limit_ns, bool *done) {
    char missing[300];
    const uint32_t rank = m->c.rank, size = m->c.size;
    /* limit_ns is three quarters of the watchdog's time, so grace_ns is a sixteenth of that time */
    const uint64_t grace_ns = limit_ns / 12;
    const bool was_patient = atomic_exchange(&m->c.patient, false);
    if (rank) tell_first(m, NOTE_WAITING, "");
    const vpps_status status = wait_until(m, grace_ns * (rank ? rank > 1 ? 4 : 2 : 1), done);
    atomic_store(&m->c.patient, was_patient);
    if (status != VPPS_OK || *done) return status;
    /* process 0 did not answer in time: marks all others as waiting, so that name_missing blames process 0 alone */
    for (uint32_t p = 1; p < size && rank; p++) m->waiting[p] = true;
    name_missing(m, missing, sizeof missing);
    if (!*missing) { /* all processes wait, so none is to blame: names those whose message has not come */
        memset(m->waiting, 0, size * sizeof *m->waiting);
        name_missing(m, missing, sizeof missing);
    }
    return vpps_fail(VPPS_STALL, "nothing was heard of %s for %.1f s", missing, (double)limit_ns * 1e-9);
}

static vpps_status finish(mpi_row *m) {
    bool done;
    const uint64_t limit_ns = m->c.watchdog_ns / 4 * 3;
    memset(m->waiting, 0, m->c.size * sizeof *m->waiting);
    vpps_status status = hear(m);
    if (status == VPPS_OK) status = wait_until(m, limit_ns, &done);
    if (status == VPPS_OK && !done) status = find_culprit(m, limit_ns, &done);
    m->n_messages = 0;
    return status;
}

/* ---------------------------------------------------------------- a busy process is there */

/* The function of a thread that sends this process's signs of life while it is busy. A call that waits sends signs of life itself. */
static void *keep_beating(void *argument) {
    mpi_row *m = argument;
    pthread_mutex_lock(&m->lock);
    while (!m->stop) {
        const uint64_t pause_ns = m->c.watchdog_ns / 8;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += (time_t)((until.tv_nsec + pause_ns) / 1000000000u);
        until.tv_nsec = (long)((until.tv_nsec + pause_ns) % 1000000000u);
        pthread_cond_timedwait(&m->stop_beating, &m->lock, &until);
        if (!m->stop && atomic_load(&m->c.patient)) beat(m);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

static vpps_status start_beating(mpi_row *m) {
    m->heard_ns = calloc(m->c.size, sizeof *m->heard_ns);
    m->waiting = calloc(m->c.size, sizeof *m->waiting);
    if (!m->heard_ns || !m->waiting) return vpps_fail(VPPS_MEMORY, "communicator: out of memory");
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->stop_beating, NULL);
    const int error = pthread_create(&m->beater, NULL, keep_beating, m);
    if (error) return vpps_fail(VPPS_DEVICE, "communicator: cannot start a thread: %s", strerror(error));
    m->has_beater = true;
    return VPPS_OK;
}

static void stop_beating(mpi_row *m) {
    if (!m->has_beater) return;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_signal(&m->stop_beating);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->beater, NULL);
    m->has_beater = false;
}

/* ---------------------------------------------------------------- the table */

/* Starts to send or receive a parcel, in pieces whose sizes fit an int. */
static vpps_status begin(mpi_row *m, bool receives, const vpps_parcel *parcel, uint32_t peer) {
    enum { MOST = 1 << 30 };
    for (size_t at = 0, count; at < parcel->bytes; at += count) {
        count = parcel->bytes - at < MOST ? parcel->bytes - at : MOST;
        if (!VPPS_RESERVE(m->peers, m->n_messages + 1)) return vpps_fail(VPPS_MEMORY, "communicator: out of memory");
        m->peers[m->n_messages++] = peer;
        const int error =
            m->binding->start(m->mpi, receives, (char *)parcel->data + at, (int)count, (int)peer, TAG_DATA);
        if (error) return failed_call(m, error);
        if (!receives) m->c.sent_bytes += count;
    }
    return VPPS_OK;
}

static vpps_status exchange(mpi_row *m) {
    const vpps_communicator *c = &m->c;
    for (uint32_t i = 1; i < c->size; i++) {
        const uint32_t from = (c->rank + c->size - i) % c->size;
        VPPS_TRY(begin(m, true, &c->in[from], from));
    }
    for (uint32_t i = 1; i < c->size; i++) { /* each process begins with another peer, so that all links are used */
        const uint32_t to = (c->rank + i) % c->size;
        VPPS_TRY(begin(m, false, &c->out[to], to));
    }
    return finish(m);
}

static vpps_status mpi_exchange(vpps_communicator *c) {
    mpi_row *m = (mpi_row *)c;
    pthread_mutex_lock(&m->lock);
    const vpps_status status = exchange(m);
    pthread_mutex_unlock(&m->lock);
    return status;
}

static void mpi_tell(vpps_communicator *c, const char *text) {
    mpi_row *m = (mpi_row *)c;
    if (!c->rank) return;
    pthread_mutex_lock(&m->lock);
    tell_first(m, NOTE_FAILED, text);
    patience p = begin_wait(); /* gives process 0, which ends all processes after a failure, time to do so */
    while (have_waited(&p) < c->watchdog_ns / 4) {
        bool ignored;
        m->binding->heard(m->mpi, TAG_NOTE, &ignored); /* calls MPI only to let it deliver messages */
        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    }
    pthread_mutex_unlock(&m->lock);
}

static void mpi_end(vpps_communicator *c, int exit_code) {
    mpi_row *m = (mpi_row *)c;
    pthread_mutex_lock(&m->lock);
    tell_short(m, NOTE_ENDING, true);
    m->binding->end(m->mpi, exit_code);
    _exit(exit_code);
}

static void mpi_close(vpps_communicator *c) {
    mpi_row *m = (mpi_row *)c;
    stop_beating(m);
    if (m->mpi) m->binding->close(m->mpi);
    VPPS_FREE_ARRAYS(m->peers);
    VPPS_FREE(m->heard_ns, m->waiting);
    vpps_comm_free(c);
    free(m);
}

static const vpps_comm_table table = {.exchange = mpi_exchange, .tell = mpi_tell, .end = mpi_end, .close = mpi_close};

/* ---------------------------------------------------------------- the library */

static const char *const open_mpi_files[] = {"libmpi.so.40", "libmpi.so"};
static const char *const mpich_files[] = {"libmpich.so.12", "libmpi.so.12", "libmpich.so"};

static void *open_first(const char *const *files, size_t n) {
    void *library = NULL;
    for (size_t i = 0; i < n && !library; i++) library = dlopen(files[i], RTLD_NOW | RTLD_GLOBAL);
    return library;
}

/* Opens MPI's library: the program's own if it is linked with one, otherwise the launcher's, which the environment identifies. With another
 * implementation's library, each process would run alone. */
static void *find_library(void) {
    const char *own = getenv("VPPS_MPI");
    if (own && *own) return dlopen(own, RTLD_NOW | RTLD_GLOBAL);
    if (dlsym(RTLD_DEFAULT, "MPI_Init_thread")) return dlopen(NULL, RTLD_NOW);
    const bool mpich_first = !getenv("OMPI_COMM_WORLD_SIZE") && !getenv("PMIX_RANK") && getenv("PMI_RANK");
    void *library = mpich_first ? open_first(mpich_files, VPPS_COUNT(mpich_files))
                                : open_first(open_mpi_files, VPPS_COUNT(open_mpi_files));
    if (library) return library;
    return mpich_first ? open_first(open_mpi_files, VPPS_COUNT(open_mpi_files))
                       : open_first(mpich_files, VPPS_COUNT(mpich_files));
}

/* Returns the binding for the library's implementation of MPI, which its version text names. */
static const vpps_mpi_binding *binding_of(void *library) {
    static const char *const mpich_kin[] = {"MPICH", "Intel", "MVAPICH", "CRAY"};
    if (dlsym(library, "ompi_mpi_comm_world")) return &vpps_mpi_open_mpi;
    char version[8192] = ""; /* MPICH's MPI_MAX_LIBRARY_VERSION_STRING */
    int len = 0, (*get_version)(char *, int *);
    if (vpps_library_find("MPI", library, "MPI_Get_library_version", &get_version) || get_version(version, &len))
        return NULL;
    for (size_t i = 0; i < VPPS_COUNT(mpich_kin); i++)
        if (strstr(version, mpich_kin[i])) return &vpps_mpi_mpich;
    return NULL;
}

static vpps_status open_row(mpi_row *m, const void *comm, uint32_t watchdog_ms) {
    int rank, size;
    char host[VPPS_HOST_BYTES] = "";
    void *library = find_library();
    if (!library) {
        const char *why = dlerror();
        return vpps_fail(VPPS_DEVICE, "MPI: found no library of Open MPI or MPICH; VPPS_MPI can name it (%.200s)",
                         why ? why : "");
    }
    m->binding = binding_of(library);
    if (!m->binding)
        return vpps_fail(VPPS_DEVICE, "MPI: the library is neither Open MPI nor of MPICH's kin; expected one of these");
    VPPS_TRY(m->binding->open(&m->mpi, library, comm, &rank, &size));
    VPPS_TRY(vpps_comm_init(&m->c, &table, (uint32_t)rank, (uint32_t)size, watchdog_ms));
    for (uint32_t kind = 0; kind < VPPS_COUNT(m->notes); kind++)
        m->notes[kind] = (note){.kind = kind, .rank = m->c.rank};
    VPPS_TRY(start_beating(m));
    if (gethostname(host, sizeof host - 1)) snprintf(host, sizeof host, "?");
    atomic_store(&m->c.patient, true); /* 60 times the usual limit: processes may start at different times */
    VPPS_TRY(vpps_comm_share_hosts(&m->c, host));
    atomic_store(&m->c.patient, false);
    return VPPS_OK;
}

vpps_status vpps_mpi_open(vpps_communicator **out, const void *comm, uint32_t watchdog_ms) {
    mpi_row *m = calloc(1, sizeof *m);
    if (!m) return vpps_fail(VPPS_MEMORY, "communicator: out of memory");
    const vpps_status status = open_row(m, comm, watchdog_ms);
    if (status == VPPS_OK) {
        *out = &m->c;
    } else {
        mpi_close(&m->c);
    }
    return status;
}

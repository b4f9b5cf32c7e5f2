/* driver_simt.c - software SIMT behind the interface of driver.h. Device memory is host memory, and every call is finished when it returns.
 * $VPPS_SIMT_SMS (default 4) is the number of SMs; $VPPS_SIMT_SEED (default 0) selects the order in which CTAs, warps and threads run. */
#include "runtime/gpu/driver.h"
#include "runtime/simt/simt.h"

#include <stdatomic.h>

enum { ALIGNMENT = 256, DEFAULT_SMS = 4, MAX_SMS = 1024, DEVICE = 0, PINNED = 1 };

/* Value of every byte of newly allocated memory. Floats that are read before they are written are then NaN, and indices out of range. */
enum { UNWRITTEN = 0xff };

typedef vpps_simt_piece piece;

typedef struct machine {
    vpps_driver driver;
    piece *memory[VPPS_SIMT_MEMORIES];
    uint32_t seed, cta_shared_bytes;
} machine;

static atomic_uint live_allocations;

uint32_t vpps_simt_live_allocations(void) { return atomic_load(&live_allocations); }

static machine *machine_of(vpps_driver *d) { return (machine *)(void *)d; }

/* ---------------------------------------------------------------- memory */

static vpps_status take_piece(piece **list, size_t bytes, char **out) {
    const size_t padded = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT; /* more than 0, so that 0 bytes get an address */
    piece *p = malloc(sizeof *p);
    char *memory = padded > bytes ? aligned_alloc(ALIGNMENT, padded) : NULL;
    if (!p || !memory) {
        VPPS_FREE(p, memory);
        return vpps_fail(VPPS_MEMORY, "software SIMT: out of memory: %zu bytes", bytes);
    }
    memset(memory, UNWRITTEN, padded);
    *p = (piece){.next = *list, .memory = memory, .bytes = bytes};
    *list = p;
    atomic_fetch_add(&live_allocations, 1);
    *out = memory;
    return VPPS_OK;
}

static void give_piece(piece **list, const void *memory) {
    for (piece **at = list; *at; at = &(*at)->next) {
        piece *p = *at;
        if (p->memory != memory) continue;
        *at = p->next;
        VPPS_FREE(p->memory, p->words, p);
        atomic_fetch_sub(&live_allocations, 1);
        return;
    }
}

/* Sets *out to the host address of `bytes` bytes at a device address. The bytes must lie within one allocation. */
static vpps_status find(const machine *m, uint64_t address, size_t bytes, char **out) {
    *out = (char *)(uintptr_t)address;
    for (const piece *p = m->memory[DEVICE]; p; p = p->next) {
        const uint64_t first = (uintptr_t)p->memory;
        if (address >= first && address - first <= p->bytes && bytes <= p->bytes - (address - first)) return VPPS_OK;
    }
    return vpps_fail(VPPS_DEVICE, "software SIMT: %zu bytes at %#llx are not device memory", bytes,
                     (unsigned long long)address);
}

static vpps_status allocate(vpps_driver *d, size_t bytes, uint64_t *address) {
    char *memory;
    VPPS_TRY(take_piece(&machine_of(d)->memory[DEVICE], bytes, &memory));
    *address = (uintptr_t)memory;
    return VPPS_OK;
}

static void release(vpps_driver *d, uint64_t address) {
    give_piece(&machine_of(d)->memory[DEVICE], (const void *)(uintptr_t)address);
}

static vpps_status allocate_host(vpps_driver *d, size_t bytes, void **out) {
    char *memory;
    VPPS_TRY(take_piece(&machine_of(d)->memory[PINNED], bytes, &memory));
    *out = memory;
    return VPPS_OK;
}

static void release_host(vpps_driver *d, void *memory) { give_piece(&machine_of(d)->memory[PINNED], memory); }

static size_t free_bytes(vpps_driver *d) {
    (void)d;
    return (size_t)8 << 30;
}

static vpps_status write_memory(vpps_driver *d, uint64_t to, const void *from, size_t bytes) {
    char *memory;
    VPPS_TRY(find(machine_of(d), to, bytes, &memory));
    memcpy(memory, from, bytes);
    return VPPS_OK;
}

static vpps_status read_memory(vpps_driver *d, void *to, uint64_t from, size_t bytes) {
    char *memory;
    VPPS_TRY(find(machine_of(d), from, bytes, &memory));
    memcpy(to, memory, bytes);
    return VPPS_OK;
}

static vpps_status copy(vpps_driver *d, uint64_t to, uint64_t from, size_t bytes) {
    char *target, *source;
    VPPS_TRY(find(machine_of(d), to, bytes, &target));
    VPPS_TRY(find(machine_of(d), from, bytes, &source));
    memcpy(target, source, bytes);
    return VPPS_OK;
}

static vpps_status clear(vpps_driver *d, uint64_t address, size_t bytes) {
    char *memory;
    VPPS_TRY(find(machine_of(d), address, bytes, &memory));
    memset(memory, 0, bytes);
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the caller's memory, which is the host's */

static vpps_status check_outside(vpps_driver *d, const void *array, size_t bytes, const char *what) {
    (void)d, (void)array, (void)bytes, (void)what;
    return VPPS_OK;
}

static size_t room_outside(vpps_driver *d, uint64_t address) {
    (void)d, (void)address;
    return SIZE_MAX;
}

static vpps_status copy_outside(vpps_driver *d, const vpps_outside_copy *c) {
    char *own;
    const size_t own_bytes = (c->n - 1) * (c->in ? c->to_step : c->from_step) + c->bytes;
    if (c->in || c->from) VPPS_TRY(find(machine_of(d), c->in ? c->to : c->from, own_bytes, &own));
    for (size_t i = 0; i < c->n; i++) {
        char *to = (char *)(uintptr_t)(c->to + i * c->to_step);
        if (c->from)
            memcpy(to, (const char *)(uintptr_t)(c->from + i * c->from_step), c->bytes);
        else
            memset(to, 0, c->bytes);
    }
    return VPPS_OK;
}

static vpps_status order(vpps_driver *d, void *stream, bool theirs_first) {
    (void)d, (void)stream, (void)theirs_first;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- kernels */

static vpps_status load(vpps_driver *d, const char *source, const char *description, const vpps_launch_shape *shape,
                        vpps_kernel **out, vpps_cubin_report *report) {
    machine *m = machine_of(d);
    if (shape->dynamic_shared_bytes > m->cta_shared_bytes)
        return vpps_fail(VPPS_DEVICE, "software SIMT: a CTA of %u bytes of dynamic shared memory, where its GPU has %u",
                         shape->dynamic_shared_bytes, m->cta_shared_bytes);
    *report = (vpps_cubin_report){0};
    vpps_simt_kernel *kernel;
    VPPS_TRY(vpps_simt_load(&kernel, source, description, &report->seconds));
    report->cached = report->seconds == 0;
    *out = (vpps_kernel *)(void *)kernel;
    return VPPS_OK;
}

static void unload(vpps_driver *d, vpps_kernel *kernel) {
    (void)d;
    vpps_simt_unload((vpps_simt_kernel *)(void *)kernel);
}

static vpps_status launch(vpps_driver *d, vpps_kernel *kernel, const vpps_launch_shape *shape, const void *arguments,
                          size_t bytes) {
    return vpps_simt_run((vpps_simt_kernel *)(void *)kernel, shape->ctas, shape->threads, shape->dynamic_shared_bytes,
                         arguments, bytes, machine_of(d)->seed, machine_of(d)->memory);
}

/* ---------------------------------------------------------------- marks and waits */

static vpps_status mark(vpps_driver *d, uint32_t which) {
    (void)d;
    (void)which;
    return VPPS_OK;
}

static bool passed(vpps_driver *d, uint32_t which) {
    (void)d;
    (void)which;
    return true;
}

static vpps_status wait_for_all(vpps_driver *d) {
    (void)d;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the machine */

/* Reads a number, at most `most`, from environment variable `name`. Not set: gives `otherwise`. Fails with ARGUMENT. */
static vpps_status number_from(const char *name, uint32_t otherwise, uint32_t most, uint32_t *out) {
    const char *text = getenv(name);
    *out = otherwise;
    if (!text || !*text) return VPPS_OK;
    uint64_t value;
    if (!vpps_read_number(text, most, &value))
        return vpps_fail(VPPS_ARGUMENT, "%s is \"%.40s\", not a number up to %u", name, text, most);
    *out = (uint32_t)value;
    return VPPS_OK;
}

static vpps_status is_idle(void *context, bool *answer) {
    (void)context;
    *answer = true;
    return VPPS_OK;
}

static void stream(vpps_driver *d, vpps_gpu_stream *out) {
    (void)d;
    *out = (vpps_gpu_stream){.idle = is_idle};
}

static vpps_status within(vpps_driver *d, vpps_status (*work)(void *context, struct CUstream_st *stream),
                          void *context) {
    (void)d;
    return work(context, NULL);
}

static vpps_status open_machine(vpps_driver **out, uint32_t number, vpps_machine *description) {
    uint32_t sms, seed;
    (void)number;
    VPPS_TRY(vpps_simt_check());
    VPPS_TRY(number_from("VPPS_SIMT_SMS", DEFAULT_SMS, MAX_SMS, &sms));
    VPPS_TRY(number_from("VPPS_SIMT_SEED", 0, UINT32_MAX, &seed));
    VPPS_TRY(vpps_machine_named(description, "sm_90", sms ? sms : DEFAULT_SMS));
    snprintf(description->name, sizeof description->name, "software SIMT");
    machine *m = calloc(1, sizeof *m);
    if (!m) return vpps_fail(VPPS_MEMORY, "software SIMT: out of memory");
    m->driver.table = &vpps_driver_simt;
    m->seed = seed;
    m->cta_shared_bytes = description->cta_shared_bytes;
    *out = &m->driver;
    return VPPS_OK;
}

static vpps_status branch(vpps_driver *d, vpps_driver **out) {
    machine *m = calloc(1, sizeof *m);
    if (!m) return vpps_fail(VPPS_MEMORY, "software SIMT: out of memory");
    m->driver.table = d->table;
    *out = &m->driver;
    return VPPS_OK;
}

static void close_machine(vpps_driver *d) {
    if (!d) return;
    machine *m = machine_of(d);
    while (m->memory[DEVICE]) give_piece(&m->memory[DEVICE], m->memory[DEVICE]->memory);
    while (m->memory[PINNED]) give_piece(&m->memory[PINNED], m->memory[PINNED]->memory);
    free(m);
}

const vpps_driver_table vpps_driver_simt = {
    .name = "simt",
    .open = open_machine,
    .branch = branch,
    .close = close_machine,
    .allocate = allocate,
    .release = release,
    .allocate_host = allocate_host,
    .release_host = release_host,
    .free_bytes = free_bytes,
    .write = write_memory,
    .read = read_memory,
    .copy = copy,
    .clear = clear,
    .upload = write_memory,
    .check_outside = check_outside,
    .room_outside = room_outside,
    .copy_outside = copy_outside,
    .order = order,
    .load = load,
    .unload = unload,
    .launch = launch,
    .stream = stream,
    .within = within,
    .mark = mark,
    .passed = passed,
    .await = mark,
    .wait = wait_for_all,
};

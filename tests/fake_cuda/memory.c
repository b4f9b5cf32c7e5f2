/* memory.c - the fake driver's memory: blocks between guards, filled with junk at first, and copies that are checked against them. */
#include "fake_cuda/state.h"

enum { GUARD_BYTES = 256, GUARD = 0xC5, JUNK = 0xA7 };

/* Bit that is added to a host address to make a device address; the result is no canonical address of x86-64 or AArch64. */
#define DEVICE_BIT ((uint64_t)1 << 62)

typedef struct block {
    struct block *next;
    unsigned char *raw; /* guard, content, guard */
    size_t bytes;
    bool pinned;
    int gpu;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *blocks;
static size_t used_bytes; /* of device memory */

static unsigned char *content(const block *b) { return b->raw + GUARD_BYTES; }

/* Returns the block that contains all of [at, at + bytes); NULL: there is none. The lock must be held. */
static block *find(bool pinned, uintptr_t at, size_t bytes) {
    for (block *b = blocks; b; b = b->next) {
        const uintptr_t start = (uintptr_t)content(b);
        if (b->pinned == pinned && at >= start && at - start <= b->bytes && bytes <= b->bytes - (at - start)) return b;
    }
    return NULL;
}

static void count_blocks(bool pinned, int change) {
    fake_count(pinned ? offsetof(fake_cuda_counts, pinned_blocks) : offsetof(fake_cuda_counts, device_blocks), change);
}

/* Adds a block and returns its content; NULL: no memory. */
static void *add(size_t bytes, bool pinned) {
    block *b = malloc(sizeof *b);
    unsigned char *raw = aligned_alloc(256, (bytes + 2 * GUARD_BYTES + 255) / 256 * 256);
    pthread_mutex_lock(&lock);
    const bool fits = b && raw && (pinned || bytes <= fake_device.memory_bytes - used_bytes);
    if (fits) {
        *b = (block){blocks, raw, bytes, pinned, 0};
        memset(raw, GUARD, GUARD_BYTES);
        memset(raw + GUARD_BYTES, JUNK, bytes);
        memset(raw + GUARD_BYTES + bytes, GUARD, GUARD_BYTES);
        blocks = b;
        if (!pinned) used_bytes += bytes;
    }
    pthread_mutex_unlock(&lock);
    if (!fits) {
        free(b);
        free(raw);
        return NULL;
    }
    count_blocks(pinned, 1);
    return raw + GUARD_BYTES;
}

static bool is_intact(const block *b) {
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (b->raw[i] != GUARD || b->raw[GUARD_BYTES + b->bytes + i] != GUARD) return false;
    return true;
}

static vpps_cu_result take_away(uintptr_t at, bool pinned) {
    block *b = NULL;
    pthread_mutex_lock(&lock);
    for (block **link = &blocks; *link; link = &(*link)->next)
        if ((*link)->pinned == pinned && (uintptr_t)content(*link) == at) {
            b = *link;
            *link = b->next;
            if (!pinned) used_bytes -= b->bytes;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (!b) {
        COUNT(refused, 1);
        return VPPS_CU_INVALID_VALUE;
    }
    if (!is_intact(b)) COUNT(damaged, 1);
    free(b->raw);
    free(b);
    count_blocks(pinned, -1);
    return VPPS_CU_SUCCESS;
}

void *fake_host(uint64_t address, size_t bytes) {
    const uintptr_t at = (uintptr_t)(address & ~DEVICE_BIT);
    LOCKED(&lock);
    return address & DEVICE_BIT && find(false, at, bytes) ? (void *)at : NULL;
}

void fake_move(uint64_t address, int gpu) {
    LOCKED(&lock);
    block *b = find(false, (uintptr_t)(address & ~DEVICE_BIT), 1);
    if (b) b->gpu = gpu;
}

bool fake_is_pinned(const void *memory) { return fake_pinned_range(memory, 1); }

bool fake_pinned_range(const void *memory, size_t bytes) {
    LOCKED(&lock);
    return find(true, (uintptr_t)memory, bytes) != NULL;
}

vpps_cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    ENTER(cuMemGetInfo_v2, true);
    LOCKED(&lock);
    *free_bytes = fake_device.memory_bytes - used_bytes;
    *total = fake_device.memory_bytes;
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuMemAlloc_v2(vpps_cu_address *address, size_t bytes) {
    ENTER(cuMemAlloc_v2, true);
    if (bytes == 0) return VPPS_CU_INVALID_VALUE;
    void *memory = add(bytes, false);
    if (!memory) return VPPS_CU_OUT_OF_MEMORY;
    *address = (uintptr_t)memory | DEVICE_BIT;
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuMemFree_v2(vpps_cu_address address) {
    ENTER_RELEASE(cuMemFree_v2);
    const vpps_cu_result code = take_away((uintptr_t)(address & ~DEVICE_BIT), false);
    return code != VPPS_CU_SUCCESS ? code : fake_error();
}

vpps_cu_result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    ENTER(cuMemHostAlloc, true);
    if (bytes == 0 || flags != 0) return VPPS_CU_INVALID_VALUE;
    *memory = add(bytes, true);
    return *memory ? VPPS_CU_SUCCESS : VPPS_CU_OUT_OF_MEMORY;
}

vpps_cu_result cuMemFreeHost(void *memory) {
    ENTER_RELEASE(cuMemFreeHost);
    const vpps_cu_result code = take_away((uintptr_t)memory, true);
    return code != VPPS_CU_SUCCESS ? code : fake_error();
}

vpps_cu_result cuPointerGetAttribute(void *value, unsigned attribute, vpps_cu_address address) {
    ENTER(cuPointerGetAttribute, true);
    LOCKED(&lock);
    const block *b = address & DEVICE_BIT ? find(false, (uintptr_t)(address & ~DEVICE_BIT), 0) : NULL;
    if (!b) return VPPS_CU_INVALID_VALUE;
    switch (attribute) {
    case VPPS_CU_POINTER_MEMORY_TYPE: *(unsigned *)value = VPPS_CU_MEMORY_OF_DEVICE; return VPPS_CU_SUCCESS;
    case VPPS_CU_POINTER_DEVICE: *(int *)value = b->gpu; return VPPS_CU_SUCCESS;
    case VPPS_CU_POINTER_RANGE_START:
        *(vpps_cu_address *)value = (uintptr_t)content(b) | DEVICE_BIT;
        return VPPS_CU_SUCCESS;
    case VPPS_CU_POINTER_RANGE_BYTES: *(size_t *)value = b->bytes; return VPPS_CU_SUCCESS;
    default: return VPPS_CU_INVALID_VALUE;
    }
}

typedef struct copy_work {
    void *to;
    const void *from;
    size_t bytes;
    void *staged; /* staged copy, freed after use */
} copy_work;

static vpps_cu_result copy(void *payload) {
    const copy_work *c = payload;
    memcpy(c->to, c->from, c->bytes);
    free(c->staged);
    return VPPS_CU_SUCCESS;
}

/* Pinned memory is read when the copy's turn comes; other memory is staged before the call returns (CUDA Driver API, "API synchronization behavior"). */
vpps_cu_result cuMemcpyHtoDAsync_v2(vpps_cu_address to, const void *from, size_t bytes, vpps_cu_stream stream) {
    ENTER(cuMemcpyHtoDAsync_v2, true);
    copy_work c = {fake_host(to, bytes), from, bytes, NULL};
    if (!stream || !c.to || bytes == 0) return VPPS_CU_INVALID_VALUE;
    if (fake_is_pinned(from)) {
        if (!fake_pinned_range(from, bytes)) return VPPS_CU_INVALID_VALUE;
    } else {
        c.from = c.staged = malloc(bytes);
        if (!c.staged) return VPPS_CU_OUT_OF_MEMORY;
        memcpy(c.staged, from, bytes);
    }
    fake_enqueue(copy, &c, sizeof c);
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuMemcpyDtoHAsync_v2(void *to, vpps_cu_address from, size_t bytes, vpps_cu_stream stream) {
    ENTER(cuMemcpyDtoHAsync_v2, true);
    const copy_work c = {to, fake_host(from, bytes), bytes, NULL};
    if (!stream || !c.from || bytes == 0) return VPPS_CU_INVALID_VALUE;
    if (fake_is_pinned(to) && !fake_pinned_range(to, bytes)) return VPPS_CU_INVALID_VALUE;
    fake_enqueue(copy, &c, sizeof c);
    if (!fake_is_pinned(to)) fake_drain();
    return fake_error();
}

vpps_cu_result cuMemcpyDtoDAsync_v2(vpps_cu_address to, vpps_cu_address from, size_t bytes, vpps_cu_stream stream) {
    ENTER(cuMemcpyDtoDAsync_v2, true);
    const copy_work c = {fake_host(to, bytes), fake_host(from, bytes), bytes, NULL};
    if (!stream || !c.to || !c.from || bytes == 0) return VPPS_CU_INVALID_VALUE;
    fake_note("copy %zu s%u; ", bytes, fake_stream_number(stream));
    fake_enqueue(copy, &c, sizeof c);
    return VPPS_CU_SUCCESS;
}

static vpps_cu_result copy_rows(void *payload) {
    const vpps_cu_copy_2d *c = payload;
    for (size_t i = 0; i < c->height; i++)
        memcpy((char *)c->to_host + i * c->to_pitch, (const char *)c->from_host + i * c->from_pitch, c->width_bytes);
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuMemcpy2DAsync_v2(const struct CUDA_MEMCPY2D_st *asked, vpps_cu_stream stream) {
    ENTER(cuMemcpy2DAsync_v2, true);
    vpps_cu_copy_2d c = *(const vpps_cu_copy_2d *)(const void *)asked;
    const bool on_device = c.from_type == VPPS_CU_MEMORY_OF_DEVICE && c.to_type == VPPS_CU_MEMORY_OF_DEVICE;
    if (!stream || !on_device || !c.width_bytes || !c.height || c.from_x_bytes || c.from_y || c.to_x_bytes || c.to_y ||
        c.from_pitch < c.width_bytes || c.to_pitch < c.width_bytes || c.from_pitch > INT32_MAX ||
        c.to_pitch > INT32_MAX)
        return VPPS_CU_INVALID_VALUE;
    c.from_host = fake_host(c.from, (c.height - 1) * c.from_pitch + c.width_bytes);
    c.to_host = fake_host(c.to, (c.height - 1) * c.to_pitch + c.width_bytes);
    if (!c.from_host || !c.to_host) return VPPS_CU_INVALID_VALUE;
    fake_note("copy %zu x %zu s%u; ", c.width_bytes, c.height, fake_stream_number(stream));
    fake_enqueue(copy_rows, &c, sizeof c);
    return VPPS_CU_SUCCESS;
}

typedef struct set_work {
    uint32_t *to;
    size_t words;
    unsigned value;
} set_work;

static vpps_cu_result set(void *payload) {
    const set_work *s = payload;
    for (size_t i = 0; i < s->words; i++) s->to[i] = s->value;
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuMemsetD32Async(vpps_cu_address to, unsigned value, size_t words, vpps_cu_stream stream) {
    ENTER(cuMemsetD32Async, true);
    const set_work s = {fake_host(to, 4 * words), words, value};
    if (!stream || !s.to || words == 0 || to % 4 != 0) return VPPS_CU_INVALID_VALUE;
    fake_note("set %zu s%u; ", words, fake_stream_number(stream));
    fake_enqueue(set, &s, sizeof s);
    return VPPS_CU_SUCCESS;
}

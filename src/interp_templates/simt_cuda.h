/* simt_cuda.h - CUDA's built-ins for a kernel that the host's C++ compiler compiles; the kernel's text follows this file. The file's first
 * half, plain C, is the interface between the kernel's library and the scheduler (runtime/simt/run.c). */
#ifndef VPPS_SIMT_CUDA_H
#define VPPS_SIMT_CUDA_H

typedef struct vpps_simt_index {
    unsigned x, y, z;
} vpps_simt_index;

typedef struct vpps_simt_thread {
    vpps_simt_index thread, block;
    float *dynamic_shared; /* dynamic shared memory of the thread's CTA */
} vpps_simt_thread;

/* Operations that all lanes of a warp's mask execute together. */
typedef enum vpps_simt_collective { VPPS_SIMT_SHUFFLE, VPPS_SIMT_BALLOT, VPPS_SIMT_SYNCWARP } vpps_simt_collective;

/* Functions of the simulator that runs CUDA threads on a CPU: only inside these functions does it switch to another thread. line: number of
 * a line of the kernel's source. */
typedef struct vpps_simt_hooks {
    void (*barrier)(vpps_simt_thread *self, unsigned line);
    void (*sleep)(vpps_simt_thread *self, unsigned line);
    /* Does a collective operation. SHUFFLE returns `value` of lane `source`; BALLOT the mask of lanes with non-zero values. */
    unsigned (*collective)(vpps_simt_thread *self, vpps_simt_collective kind, unsigned line, unsigned mask,
                           unsigned value, unsigned source);
    unsigned long long (*now_ns)(void);
    /* called before each read and write of memory, if the kernel is compiled with VPPS_SIMT_WATCHED */
    void (*access)(vpps_simt_thread *self, const void *at, unsigned bytes, unsigned is_write);
} vpps_simt_hooks;

/* What a kernel that is compiled for the CPU shares with the scheduler that runs the kernel's threads there. */
typedef struct vpps_simt_port {
    vpps_simt_thread *self;      /* the thread that is running */
    unsigned long long progress; /* counts atomic operations that changed memory, for the detection of deadlocks */
    vpps_simt_index threads, ctas;
    vpps_simt_hooks hooks;
} vpps_simt_port;

/* The type of the only symbol that a kernel exports when it is compiled to a library for the CPU. */
typedef struct vpps_simt_library {
    vpps_simt_port *port;
    char *shared, *shared_end; /* range of the static __shared__ variables, which belong to the running CTA */
    char *image, *image_end;   /* bytes [image, image_end): the loaded library, which is a kernel built for the CPU */
    unsigned argument_bytes, watched;
    void (*enter)(const void *arguments); /* runs the kernel */
} vpps_simt_library;

#ifdef __cplusplus

#define VPPS_SIMT 1
#ifndef VPPS_SIMT_WATCHED
#define VPPS_SIMT_WATCHED 0
#endif

#define __global__
#define __device__
#define __constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

/* Static __shared__ variables get a section of their own. The scheduler exchanges the section's contents when another CTA runs. */
#define __shared__ static __attribute__((section("vpps_shared"), used))
#define VPPS_DYNAMIC_SHARED(name) float *const name = vpps_simt_here.self->dynamic_shared

static vpps_simt_port vpps_simt_here;
__shared__ __align__(128) char vpps_simt_first; /* makes sure that section vpps_shared exists and is aligned */
extern "C" __attribute__((visibility("hidden"))) char __start_vpps_shared[], __stop_vpps_shared[], __ehdr_start[],
    _end[];

template <class A> constexpr unsigned vpps_simt_size(void (*)(A)) { return sizeof(A); }
template <class A> inline void vpps_simt_call(void (*kernel)(A), const void *arguments) {
    kernel(*(const A *)arguments);
}

/* Defines the exported symbol; must follow the kernel's text. */
#define VPPS_SIMT_EXPORT(kernel)                                                                                       \
    static void vpps_simt_enter(const void *arguments) { vpps_simt_call(kernel, arguments); }                          \
    extern "C" __attribute__((visibility("default"), used)) const vpps_simt_library vpps_simt_exported = {             \
        &vpps_simt_here,        __start_vpps_shared, __stop_vpps_shared, __ehdr_start, _end,                           \
        vpps_simt_size(kernel), VPPS_SIMT_WATCHED,   vpps_simt_enter};

#define threadIdx (vpps_simt_here.self->thread)
#define blockIdx (vpps_simt_here.self->block)
#define blockDim (vpps_simt_here.threads)
#define gridDim (vpps_simt_here.ctas)

#define VPPS_SIMT_SELF vpps_simt_here.self, __LINE__

#define __syncthreads() vpps_simt_here.hooks.barrier(VPPS_SIMT_SELF)
#define __nanosleep(ns) ((void)(ns), vpps_simt_here.hooks.sleep(VPPS_SIMT_SELF))
#define __syncwarp(...) vpps_simt_sync(__LINE__, ##__VA_ARGS__)
#define __shfl_sync(...) vpps_simt_shuffle(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) vpps_simt_shuffle_xor(__LINE__, __VA_ARGS__)
#define __ballot_sync(...) vpps_simt_ballot(__LINE__, __VA_ARGS__)

static inline void vpps_simt_sync(unsigned line, unsigned mask = 0xffffffffu) {
    vpps_simt_here.hooks.collective(vpps_simt_here.self, VPPS_SIMT_SYNCWARP, line, mask, 0, 0);
}
static inline unsigned vpps_simt_ballot(unsigned line, unsigned mask, int predicate) {
    return vpps_simt_here.hooks.collective(vpps_simt_here.self, VPPS_SIMT_BALLOT, line, mask, predicate != 0, 0);
}
template <class T> static inline T vpps_simt_shuffle(unsigned line, unsigned mask, T value, unsigned source) {
    static_assert(sizeof(T) == 4, "shuffles are of 32 bits here");
    unsigned bits;
    __builtin_memcpy(&bits, &value, 4);
    bits = vpps_simt_here.hooks.collective(vpps_simt_here.self, VPPS_SIMT_SHUFFLE, line, mask, bits, source % 32);
    __builtin_memcpy(&value, &bits, 4);
    return value;
}
template <class T> static inline T vpps_simt_shuffle_xor(unsigned line, unsigned mask, T value, unsigned lanes) {
    return vpps_simt_shuffle(line, mask, value, threadIdx.x % 32 ^ lanes);
}

/* VPPS_SIMT_WATCHED: the kernel is compiled as for ThreadSanitizer and calls these functions before each memory access. */
#if VPPS_SIMT_WATCHED
#define VPPS_SIMT_UNWATCHED __attribute__((no_sanitize("thread")))
#define VPPS_SIMT_ACCESS(name, bytes, is_write)                                                                        \
    __attribute__((visibility("hidden"))) VPPS_SIMT_UNWATCHED void __tsan_##name(void *at) {                           \
        vpps_simt_here.hooks.access(vpps_simt_here.self, at, bytes, is_write);                                         \
    }
#define VPPS_SIMT_ACCESSES(bytes)                                                                                      \
    VPPS_SIMT_ACCESS(read##bytes, bytes, 0)                                                                            \
    VPPS_SIMT_ACCESS(write##bytes, bytes, 1)                                                                           \
    VPPS_SIMT_ACCESS(unaligned_read##bytes, bytes, 0)                                                                  \
    VPPS_SIMT_ACCESS(unaligned_write##bytes, bytes, 1)
/* Accesses to blocks: gcc calls read_range and write_range, clang memcpy and memset, from version 15 on with the prefix __tsan_. */
#define VPPS_SIMT_BLOCKS(prefix)                                                                                       \
    __attribute__((visibility("hidden")))                                                                              \
    VPPS_SIMT_UNWATCHED void *prefix##memcpy(void *to, const void *from, unsigned long bytes) {                        \
        vpps_simt_here.hooks.access(vpps_simt_here.self, from, (unsigned)bytes, 0);                                    \
        vpps_simt_here.hooks.access(vpps_simt_here.self, to, (unsigned)bytes, 1);                                      \
        for (unsigned long i = 0; i < bytes; i++) ((volatile char *)to)[i] = ((const char *)from)[i];                  \
        return to;                                                                                                     \
    }                                                                                                                  \
    __attribute__((visibility("hidden")))                                                                              \
    VPPS_SIMT_UNWATCHED void *prefix##memset(void *to, int value, unsigned long bytes) {                               \
        vpps_simt_here.hooks.access(vpps_simt_here.self, to, (unsigned)bytes, 1);                                      \
        for (unsigned long i = 0; i < bytes; i++) ((volatile char *)to)[i] = (char)value;                              \
        return to;                                                                                                     \
    }
extern "C" {
VPPS_SIMT_BLOCKS()
VPPS_SIMT_BLOCKS(__tsan_)
VPPS_SIMT_ACCESSES(1)
VPPS_SIMT_ACCESSES(2)
VPPS_SIMT_ACCESSES(4)
VPPS_SIMT_ACCESSES(8)
VPPS_SIMT_ACCESSES(16)
__attribute__((visibility("hidden"))) VPPS_SIMT_UNWATCHED void __tsan_read_range(void *at, long bytes) {
    vpps_simt_here.hooks.access(vpps_simt_here.self, at, (unsigned)bytes, 0);
}
__attribute__((visibility("hidden"))) VPPS_SIMT_UNWATCHED void __tsan_write_range(void *at, long bytes) {
    vpps_simt_here.hooks.access(vpps_simt_here.self, at, (unsigned)bytes, 1);
}
__attribute__((visibility("hidden"))) void __tsan_init() {}
__attribute__((visibility("hidden"))) void __tsan_func_entry(void *) {}
__attribute__((visibility("hidden"))) void __tsan_func_exit(void *) {}
}
#else
#define VPPS_SIMT_UNWATCHED
#endif

/* Sets a word to `value`, and returns what it held before, as an atomic exchange. No lock is needed, since all threads of all CTAs run in one
 * thread of the host. */
VPPS_SIMT_UNWATCHED static inline unsigned vpps_simt_change(unsigned *at, unsigned value) {
    const unsigned before = *at;
    *at = value;
    vpps_simt_here.progress += value != before;
    return before;
}
VPPS_SIMT_UNWATCHED static inline unsigned atomicAdd(unsigned *at, unsigned value) {
    return vpps_simt_change(at, *at + value);
}
VPPS_SIMT_UNWATCHED static inline unsigned atomicCAS(unsigned *at, unsigned compare, unsigned value) {
    return *at == compare ? vpps_simt_change(at, value) : *at;
}
static inline void VPPS_RELEASE_ADD(unsigned *at, unsigned value) { atomicAdd(at, value); }
VPPS_SIMT_UNWATCHED static inline unsigned VPPS_ACQUIRE_LOAD(const unsigned *at) {
    return *(const volatile unsigned *)at;
}
static inline unsigned long long VPPS_GLOBAL_TIMER() { return vpps_simt_here.hooks.now_ns(); }

/* The C library's functions, declared here because their headers take as long to compile as a small kernel. */
extern "C" {
float expf(float) noexcept;
float logf(float) noexcept;
float sqrtf(float) noexcept;
float fabsf(float) noexcept;
float fmaf(float, float, float) noexcept;
float fmaxf(float, float) noexcept;
float copysignf(float, float) noexcept;
}
static inline bool isfinite(float x) { return __builtin_isfinite(x); }
static inline float __fdividef(float a, float b) { return a / b; }

static inline float __uint_as_float(unsigned bits) {
    float x;
    __builtin_memcpy(&x, &bits, 4);
    return x;
}
static inline unsigned __float_as_uint(float x) {
    unsigned bits;
    __builtin_memcpy(&bits, &x, 4);
    return bits;
}

static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
/* Selects four of eight bytes: x has bytes 0 to 3, y bytes 4 to 7. The selector's lowest digit is the number of the first byte. */
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned result = 0;
    for (unsigned i = 0; i < 4; i++) result |= (unsigned)(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return result;
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }

#endif
#endif

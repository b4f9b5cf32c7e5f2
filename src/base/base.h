/* base.h - utilities that every folder uses: failing with a message, growing arrays, deterministic random numbers, time. */
#pragma once

#include "vpps.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Sets the thread's error message and returns `status`: a function that fails ends with `return vpps_fail(...)`. An argument may be
 * vpps_error_message(), the message that the call replaces. */
vpps_status vpps_fail(vpps_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
#ifdef __clang_analyzer__ /* clang's analyzer cannot look into vpps_fail: the macro shows that it returns `status` */
#define vpps_fail(status, ...) (vpps_fail(status, __VA_ARGS__), (status))
#endif

/* After a UTF-8 text was cut to fit a buffer: drops its last character if some of the character's bytes are missing. */
void vpps_drop_cut_character(char *text);

/* Writes a user's name inside a comment of C, with '_' for characters that would end the comment. */
void vpps_write_comment(FILE *out, const char *name);

/* Sets the thread's error message to a copy saved from vpps_error_message(), to report an earlier failure. */
void vpps_restore_message(const char *text);

#define VPPS_MESSAGE_BYTES 512

/* Returns this process's number. A child of fork() has another, by which it knows that its parent's threads do not exist in it. */
uint32_t vpps_process_number(void);

/* Returns the status from the enclosing function if an expression of type vpps_status fails. */
#define VPPS_TRY(expression)                                                                                           \
    do {                                                                                                               \
        vpps_status try_status_ = (expression);                                                                        \
        if (try_status_ != VPPS_OK) return try_status_;                                                                \
    } while (0)

/* Fails with ARGUMENT, naming the public function and the argument, if any of these pointers is NULL. */
#define VPPS_NEED(...)                                                                                                 \
    VPPS_TRY(                                                                                                          \
        vpps_need(__func__, #__VA_ARGS__, (const void *[]){__VA_ARGS__}, VPPS_COUNT(((const void *[]){__VA_ARGS__}))))

/* Sets the error message for VPPS_NEED: argument number i of `names`, which are separated by ", ", is NULL. */
void vpps_name_null(const char *function, const char *names, size_t i);
static inline vpps_status vpps_need(const char *function, const char *names, const void *const *pointers, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (pointers[i]) continue;
        vpps_name_null(function, names, i);
        return VPPS_ARGUMENT;
    }
    return VPPS_OK;
}

/* For functions that return no status: sets the error ARGUMENT and returns `value` if the pointer is NULL. */
#define VPPS_NEED_OR(value, pointer)                                                                                   \
    do {                                                                                                               \
        if (!(pointer)) {                                                                                              \
            vpps_fail(VPPS_ARGUMENT, "%s: %s is NULL", __func__, #pointer);                                            \
            return (value);                                                                                            \
        }                                                                                                              \
    } while (0)

/* Copy a public struct whose first member is `size`: versions of the library differ in the number of members. `own` is this version's
 * struct, of own_bytes; `least`: size of the struct's first version; `name`: for messages. vpps_take_struct copies the caller's struct into
 * own; members that the caller's struct lacks are unchanged in own. vpps_give_struct copies own into the caller's struct, as far as its
 * size allows, and zeroes members that own lacks. Fail with ARGUMENT: a size less than the first version's or above 4,096; or the caller
 * has set a member that this version does not know. */
vpps_status vpps_take_struct(void *own, size_t own_bytes, size_t least, const void *given, const char *name);
vpps_status vpps_give_struct(void *to, const void *own, size_t own_bytes, size_t least, const char *name);

/* The size of a struct's first version, whose last member is `last`. */
#define VPPS_LEAST(type, last) (offsetof(type, last) + sizeof(((type *)NULL)->last))

#define VPPS_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define VPPS_LIKELY(x) __builtin_expect(!!(x), 1)
#define VPPS_UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline uint32_t vpps_min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint32_t vpps_max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }

static inline uint32_t vpps_float_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}
static inline float vpps_bits_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Comparison functions for qsort. They sort 64-bit numbers, structs whose first member is a uint32_t, and strings. */
int vpps_by_number(const void *a, const void *b);
int vpps_by_word(const void *a, const void *b);
int vpps_by_text(const void *a, const void *b);

/* A growable array is a pointer, NULL at first, whose capacity lies in front of its first element; VPPS_FREE_ARRAYS frees it, never
 * free(). VPPS_RESERVE makes room for `needed` elements and keeps the content. False: out of memory, and nothing has changed. */
#define VPPS_RESERVE(array, needed)                                                                                    \
    (((array) && (needed) <= vpps_capacity(array)) || vpps_grow(&(array), (needed), sizeof(*(array))))
static inline size_t vpps_capacity(const void *array) { return array ? ((const size_t *)array)[-2] : 0; }
bool vpps_grow(void *array, size_t needed, size_t element_bytes);

/* Frees each of these growable arrays, which may be NULL. */
#define VPPS_FREE_ARRAYS(...) vpps_free_arrays((void *[]){__VA_ARGS__}, VPPS_COUNT(((void *[]){__VA_ARGS__})))
void vpps_free_arrays(void *const *arrays, size_t n);

/* Frees each of these pointers, which may be NULL. */
#define VPPS_FREE(...) vpps_free_all((void *[]){__VA_ARGS__}, VPPS_COUNT(((void *[]){__VA_ARGS__})))
void vpps_free_all(void *const *pointers, size_t n);

/* VPPS_FREED: the pointer variable's memory is freed at the end of the variable's scope. VPPS_CLOSED_BY(close): close(&variable) is called there.
 * clang's analyzer ignores both, and would report memory of malloc in such a variable as leaked; memory of vpps_scratch (below) it does not. */
#define VPPS_FREED VPPS_CLOSED_BY(vpps_free_at)
#define VPPS_CLOSED_BY(close) __attribute__((cleanup(close)))
void vpps_free_at(void *pointer);
/* Returns zeroed memory, which free() frees; NULL: out of memory. */
void *vpps_scratch(size_t bytes);

/* Closes f, a stream of open_memstream that writes *text; NULL: open_memstream failed. *text must be NULL when the stream is opened.
 * Returns `status`, or MEMORY if `status` is OK but the text is incomplete. After a failure *text is freed and NULL. */
vpps_status vpps_text_end(FILE *f, vpps_status status, char **text);

/* Reads a whole number up to `most` that consists of decimal digits. False: the text is no such number, and *out is unchanged. */
bool vpps_read_number(const char *text, uint64_t most, uint64_t *out);

/* Fails with ARGUMENT, naming `where` and `what`, if n is too large for the 32-bit counts and positions of a batch. */
static inline vpps_status vpps_need_count(uint64_t n, const char *where, const char *what) {
    if (VPPS_LIKELY(n < UINT32_MAX)) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "%s: 2^32 %s or more; expected smaller batches", where, what);
}

/* Copies the value of the first "KEY : VALUE" line of a file under /proc, cut to n bytes; "unknown" if there is no such line. */
void vpps_proc_value(const char *path, const char *key, char *value, size_t n);

static inline uint64_t vpps_clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline uint64_t vpps_now_ns(void) { return vpps_clock_ns(CLOCK_MONOTONIC); }
/* Returns the CPU time of this thread in nanoseconds; it does not advance while other threads have the core. */
static inline uint64_t vpps_thread_ns(void) { return vpps_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

/* SplitMix64 (Steele, Lea and Flood 2014): hashes a counter, so that random numbers are the same on all machines. */
static inline uint64_t vpps_mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static inline uint64_t vpps_random(uint64_t *state) { return vpps_mix64(*state += 0x9e3779b97f4a7c15u); }

/* vpps_random_unit draws a number in [0, 1) of 24 bits, vpps_random_below a whole number less than n > 0 (multiply-shift, Lemire 2019). */
static inline float vpps_random_unit(uint64_t *state) { return (float)(vpps_random(state) >> 40) * 0x1p-24f; }
static inline uint32_t vpps_random_below(uint64_t *state, uint32_t n) {
    return (uint32_t)(((vpps_random(state) >> 32) * n) >> 32);
}

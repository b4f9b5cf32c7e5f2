/* pages.c - memory in pages, in large pages where the system has them. Memory that is read over and over then rarely misses in the TLB, and
 * is not concentrated by chance on few sets of a cache that is indexed by physical addresses. */
#include "runtime/cpu/cpu.h"

#include <sys/mman.h>

enum { LARGE_PAGE = 2 << 20 };

static size_t mapped_bytes(size_t bytes) {
    const size_t unit = bytes >= LARGE_PAGE / 2 ? LARGE_PAGE : 4096;
    return (bytes + unit) / unit * unit;
}

void *vpps_map_pages(size_t bytes) {
    const size_t size = mapped_bytes(bytes), spare = size >= LARGE_PAGE ? LARGE_PAGE : 0;
    if (size < bytes || size + spare < size) return NULL;
    char *at = mmap(NULL, size + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return NULL;
    if (!spare) return at;
    const size_t before = (LARGE_PAGE - (uintptr_t)at % LARGE_PAGE) % LARGE_PAGE;
    if (before) munmap(at, before);
    if (spare - before) munmap(at + before + size, spare - before);
    madvise(at + before, size, MADV_HUGEPAGE);
    return at + before;
}

void vpps_unmap_pages(void *memory, size_t bytes) {
    if (memory) munmap(memory, mapped_bytes(bytes));
}

/* cache_key.h - the key by which a compiled kernel is found in the cache. */
#pragma once

#include "base/base.h"

/* The key of a cache entry. All members are hashed; the entry also keeps the strings as readable text. */
typedef struct vpps_cache_key {
    const char *kind;        /* "cubin": GPU code; "simt": kernel as CPU code; "tuning": choices measured as fastest */
    const char *description; /* one readable line that describes the kernel */
    const char *toolchain;   /* compiler, version, architecture, options */
    const void *source;
    size_t source_bytes;
} vpps_cache_key;

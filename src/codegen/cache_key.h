/* cache_key.h - what tells one compiled kernel from another. */
#pragma once

#include "base/base.h"

/* What identifies an entry. All text and bytes are hashed; `description` is kept readable in the entry. */
typedef struct vpps_cache_key {
    const char *kind;        /* "cubin", "simt", "tuning" */
    const char *description; /* one line for people: what the kernel is made of */
    const char *toolchain;   /* compiler, version, architecture, options */
    const void *source;
    size_t source_bytes;
} vpps_cache_key;

/* cache.h - keeps compiled kernels on disk, in $VPPS_CACHE_DIR, else $XDG_CACHE_HOME/vpps, else ~/.cache/vpps.
 *
 * An entry is one file, named by a hash of its key. The file contains a description of the key as text, the kernel, and a checksum. A
 * damaged entry counts as missing and is replaced. Files are written under a temporary name and renamed, so concurrent processes see only
 * whole entries. While the folder is larger than $VPPS_CACHE_BYTES (default: 512 MiB), the least recently used entries are removed. */
#pragma once

#include "codegen/cache_key.h"

/* Reads an entry into *bytes (malloc'd, owned by the caller; *size bytes) and marks the entry as used. Returns OK with
 * *bytes NULL if the entry is missing or damaged, or if other users may write to it or to the folder. Fails with MEMORY. */
vpps_status vpps_cache_read(const vpps_cache_key *key, void **bytes, size_t *size);

/* Writes an entry. Removes temporary files of killed processes and, if the cache is too large, the least recently used entries. Fails with
 * IO (the message names the path) if writing fails or the entry exceeds the cache's limit, with ARGUMENT if VPPS_CACHE_BYTES is no number,
 * and with MEMORY. A caller may ignore the failure. */
vpps_status vpps_cache_write(const vpps_cache_key *key, const void *bytes, size_t size);

/* Takes the lock on the cache, so that two processes or threads do not compile the same missing entry twice. Waits at most most_ms. Returns
 * the lock for vpps_cache_unlock, or -1 if another still holds it or locking failed; the caller then works without the lock. */
int vpps_cache_lock(uint64_t most_ms);
void vpps_cache_unlock(int lock);

typedef struct vpps_cache_entry {
    char file[64];                              /* file name within the folder */
    const char *kind, *description, *toolchain; /* strings of the entry's vpps_cache_key; "" if the entry is damaged */
    uint64_t bytes;                             /* size of the file */
    int64_t used;                               /* time of the last use, in seconds since 1970 */
    bool damaged;
} vpps_cache_entry;

/* Calls see() for every entry, the most recently used first, until see() returns false. see() may be NULL if only the
 * folder is wanted. If `folder` is not NULL, *folder is set to the folder's path, which need not exist (static memory,
 * valid until the thread's next call). Fails with IO, MEMORY. */
vpps_status vpps_cache_list(bool (*see)(const vpps_cache_entry *entry, void *context), void *context,
                            const char **folder);

/* Removes all entries; *removed and *bytes become their number and total size. Other files in the folder stay. Fails with IO, MEMORY. */
vpps_status vpps_cache_clear(uint32_t *removed, uint64_t *bytes);

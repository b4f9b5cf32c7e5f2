/* cache.h - compiled kernels on disk, in $VPPS_CACHE_DIR, else $XDG_CACHE_HOME/vpps, else ~/.cache/vpps.
 *
 * An entry is one file, named by a hash of everything that shaped it. It describes itself (what the key was made of, as
 * text), and carries a checksum: a damaged entry is as good as none, and is replaced. Files are written under another
 * name and renamed, so concurrent processes see whole entries only. The folder is kept below $VPPS_CACHE_BYTES (512 MiB
 * without) by removing what was used longest ago.
 */
#pragma once

#include "codegen/cache_key.h"

/* Reads an entry into *bytes (malloc'd, the caller's; *size bytes). OK with *bytes NULL: there is none, or it is
 * damaged (then `why`, of at least VPPS_MESSAGE_BYTES if not NULL, says how; else it is empty). Marks it as used. Fails
 * with MEMORY. */
vpps_status vpps_cache_read(const vpps_cache_key *key, void **bytes, size_t *size, char *why);

/* Writes an entry, and removes old ones and temporary files that killed processes left. Fails with IO (the message names
 * the path; also where the entry is larger than the whole cache may be), ARGUMENT: VPPS_CACHE_BYTES is no number, MEMORY:
 * a caller may go on without. */
vpps_status vpps_cache_write(const vpps_cache_key *key, const void *bytes, size_t size);

/* Makes other processes, and other threads, that call this wait until vpps_cache_unlock, for so many ms at most: two that lack the
 * same entry should not both make it. Returns what to unlock; -1: another one still has the lock, or there can be none, and a
 * caller goes on without. */
int vpps_cache_lock(uint64_t most_ms);
void vpps_cache_unlock(int lock);

typedef struct vpps_cache_entry {
    char file[64];                              /* name in the folder */
    const char *kind, *description, *toolchain; /* "" when it is damaged */
    uint64_t bytes;                             /* of the file */
    int64_t used;                               /* when last, in seconds since 1970 */
    bool damaged;
} vpps_cache_entry;

/* Calls see() for every entry, the one used last first; stops when it returns false; NULL: only the folder is wanted.
 * *folder, if not NULL, is set to the folder's path, which need not exist (static memory of the module, valid until the
 * next call of the thread). Fails with IO, MEMORY. */
vpps_status vpps_cache_list(bool (*see)(const vpps_cache_entry *entry, void *context), void *context,
                            const char **folder);

/* Removes all entries; *removed and *bytes say how much. Other files in the folder are left alone. Fails with IO, MEMORY. */
vpps_status vpps_cache_clear(uint32_t *removed, uint64_t *bytes);

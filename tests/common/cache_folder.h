/* cache_folder.h - a kernel cache of a test's own, and its files. */
#ifndef VPPS_TESTS_CACHE_FOLDER_H
#define VPPS_TESTS_CACHE_FOLDER_H

#include "common/testing.h"

/* Makes a temporary folder; the cache is `cache` in it, which does not exist yet. Both paths are static. */
const char *cache_folder_make(void);
void cache_folder_remove(void);

/* The folder's path and then `name`; a static buffer for each of two calls in turn. */
const char *cache_folder_path(const char *name);

/* Files in the cache, of any name; with `entry`, copies the path of one that ends in .vpps ("" without). */
int cache_folder_count(char *entry, size_t entry_bytes);

/* Whole files; the memory is the caller's. */
char *cache_folder_load(const char *path, size_t *n);
void cache_folder_store(const char *path, const void *bytes, size_t n);

#endif

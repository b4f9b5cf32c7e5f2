/* folder.h - a temporary folder of a test's own, which may hold a kernel cache, and files in it. */
#pragma once

#include "common/testing.h"

/* One folder at a time; its path is static. */
const char *folder_make(void);
void folder_remove(void);

/* The path of a name in it; a static buffer for each of four calls in turn. */
const char *folder_path(const char *name);

/* Whole files; the memory is the caller's. */
char *folder_load(const char *path, size_t *n);
void folder_store(const char *path, const void *bytes, size_t n);

/* Makes the folder; the cache is `cache` in it, which does not exist yet. Both paths are static. */
const char *cache_folder_make(void);

/* The cache's path and then `name`; a static buffer for each of four calls in turn. */
const char *cache_folder_path(const char *name);

/* Calls see(path) for every file of the cache. */
void cache_folder_each(void (*see)(const char *path));

/* Files in the cache, of any name; with `entry`, copies the path of one that ends in .vpps ("" without). */
int cache_folder_count(char *entry, size_t entry_bytes);

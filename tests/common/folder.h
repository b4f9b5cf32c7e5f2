/* folder.h - a temporary folder for one test, which may hold a kernel cache, and files in the folder. */
#pragma once

#include "common/testing.h"

/* Makes the folder and returns its path (static). The folder is removed before the next is made, and when the process that made it exits. */
const char *folder_make(void);

/* Returns the path of a name in the folder, in one of four static buffers used in turn. */
const char *folder_path(const char *name);

/* Read and write whole files; the caller frees the memory. A NUL byte follows the *n bytes read. */
char *folder_load(const char *path, size_t *n);
void folder_store(const char *path, const void *bytes, size_t n);

/* Makes the folder; the cache will be its subfolder `cache`, which does not exist yet. Both paths are static. */
const char *cache_folder_make(void);

/* Returns the path of `name` in the cache, in one of four static buffers used in turn. */
const char *cache_folder_path(const char *name);

/* Calls see(path) for every file of the cache. */
void cache_folder_each(void (*see)(const char *path));

/* Counts the files in the cache, whatever their names. */
int cache_folder_count(void);

/* Returns the path of one that ends in .vpps, in one of the buffers of cache_folder_path; "": there is none. */
const char *cache_folder_entry(void);

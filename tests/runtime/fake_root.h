/* fake_root.h - a folder with files like those of /proc and /sys, for tests of code that reads them. */
#pragma once

/* Makes the folder and returns its name. Until fake_root_close removes it with all its files, there is only one. */
const char *fake_root_open(void);
void fake_root_close(void);

/* Writes a file in the folder, and creates the file's parent folders. `path` is a format of printf. */
void fake_root_put(const char *text, const char *path, ...) __attribute__((format(printf, 2, 3)));

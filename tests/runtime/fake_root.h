/* fake_root.h - a folder with files like those of /proc and /sys, for tests of code that reads them. */
#pragma once

/* Makes the folder and returns its name. There is only one at a time. */
const char *fake_root_open(void);

/* Writes a file in the folder, and creates the file's parent folders. `path` is a format of printf. */
void fake_root_put(const char *text, const char *path, ...) __attribute__((format(printf, 2, 3)));

/* fake_root.h - a folder with files as the kernel would write them, for what reads /proc and /sys. */
#pragma once

/* Makes the folder; its name, until it is removed with all its files. One at a time. */
const char *fake_root_open(void);
void fake_root_close(void);

/* Writes a file under it, and the folders above the file. The path is printed as by printf. */
void fake_root_put(const char *text, const char *path, ...) __attribute__((format(printf, 2, 3)));

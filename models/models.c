/* models.c - the table of networks. */
#include "models.h"

#include <string.h>

extern const network tree_lstm;

const network *const networks[] = {&tree_lstm, NULL};

const network *network_find(const char *name) {
    for (const network *const *n = networks; *n; n++) {
        if (strcmp((*n)->name, name) == 0) return *n;
    }
    return NULL;
}

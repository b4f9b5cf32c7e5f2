/* save_name.c - handles "{epoch}" in checkpoint names. */
#include "cli/options/save_name.h"
#include "base/base.h"

static const char word[] = "{epoch}";
enum { WORD = sizeof word - 1 };

bool save_name_varies(const char *name) { return strstr(name, word) != NULL; }

/* Returns the length of a word in braces at the beginning of a text, 0 if there is none. */
static size_t braced(const char *text) {
    const size_t n = strcspn(text, "}/ ");
    return *text == '{' && text[n] == '}' ? n + 1 : 0;
}

vpps_status save_name_check(const char *option, const char *name) {
    const char *found = strstr(name, word);
    for (const char *at = name; *at; at++) {
        const size_t n = braced(at);
        if (!n || strncmp(at, word, WORD) == 0) continue;
        return vpps_fail(VPPS_ARGUMENT, "--%s %s: %.*s is not known: only %s stands for something, the epoch's number",
                         option, name, (int)n, at, word);
    }
    if (!found) return VPPS_OK;
    if (strchr(found, '/'))
        return vpps_fail(VPPS_ARGUMENT, "--%s %s: %s must be in the file's name, not in a folder's", option, name,
                         word);
    if (strstr(found + WORD, word)) return vpps_fail(VPPS_ARGUMENT, "--%s %s: expected %s once", option, name, word);
    return VPPS_OK;
}

char *save_name_of(const char *name, uint32_t epoch) {
    const char *found = strstr(name, word);
    char *path;
    if (!found) return strdup(name);
    return asprintf(&path, "%.*s%u%s", (int)(found - name), name, epoch, found + WORD) < 0 ? NULL : path;
}

bool save_name_matches(const char *name, const char *path, uint32_t *epoch) {
    const char *found = strstr(name, word);
    if (!found || strncmp(path, name, (size_t)(found - name)) != 0) return false;
    const char *digits = path + (found - name);
    const size_t n = strspn(digits, "0123456789");
    if (!n || n > 7 || (*digits == '0' && n > 1) || strcmp(digits + n, found + WORD) != 0) return false;
    *epoch = (uint32_t)strtoul(digits, NULL, 10);
    return true;
}

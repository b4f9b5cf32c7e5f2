/* cache.c - `vpps cache`: lists or removes the compiled kernels on disk, or prints their folder. */
#include "codegen/cache.h"
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"
#include "cli/common/json.h"

#include <inttypes.h>

typedef struct listing {
    json_t *entries; /* the cache's entries as JSON; NULL: the entries are printed as a table */
    uint32_t n, damaged;
    uint64_t bytes;
    bool failed;
} listing;

static bool list_entry(const vpps_cache_entry *entry, void *context) {
    listing *l = context;
    if (l->entries) {
        json_t *row = json_pack("{ss ss ss ss sI sI sb}", "file", entry->file, "kind", entry->kind, "description",
                                entry->description, "toolchain", entry->toolchain, "bytes", (json_int_t)entry->bytes,
                                "used", (json_int_t)entry->used, "damaged", entry->damaged);
        if (json_array_append_new(l->entries, row) != 0) l->failed = true; /* out of memory, or a text is not UTF-8 */
        if (l->failed) return false;
    } else {
        char date[32] = "?";
        struct tm local;
        const time_t used = (time_t)entry->used;
        if (localtime_r(&used, &local)) strftime(date, sizeof date, "%Y-%m-%d %H:%M", &local);
        if (!l->n) printf("%-16s %12s  %-8s %s\n", "used", "bytes", "kind", "description");
        printf("%-16s %12" PRIu64 "  %-8s %s\n", date, entry->bytes, entry->damaged ? "damaged" : entry->kind,
               entry->damaged ? entry->file : entry->description);
    }
    l->n++;
    l->damaged += entry->damaged;
    l->bytes += entry->bytes;
    return true;
}

static vpps_status list(bool json) {
    const char *folder;
    json_auto_t *entries = json ? json_array() : NULL;
    listing l = {.entries = entries};
    if (json && !entries) return vpps_fail(VPPS_MEMORY, "no memory for a list of the kernel cache");
    VPPS_TRY(vpps_cache_list(list_entry, &l, &folder));
    if (l.failed) return vpps_fail(VPPS_MEMORY, "an entry cannot be written as JSON");
    if (json)
        return report_json_line(
            json_pack("{ss sI sO}", "folder", folder, "bytes", (json_int_t)l.bytes, "entries", entries), stdout);
    printf("%" PRIu32 " %s, %" PRIu64 " bytes in %s\n", l.n, l.n == 1 ? "entry" : "entries", l.bytes, folder);
    if (l.damaged > 0) printf("%" PRIu32 " damaged: made anew when needed\n", l.damaged);
    return flush_stdout();
}

static vpps_status clear(void) {
    uint32_t removed;
    uint64_t bytes;
    VPPS_TRY(vpps_cache_clear(&removed, &bytes));
    printf("removed %" PRIu32 " %s, %" PRIu64 " bytes\n", removed, removed == 1 ? "entry" : "entries", bytes);
    return flush_stdout();
}

static vpps_status print_path(void) {
    const char *folder;
    VPPS_TRY(vpps_cache_list(NULL, NULL, &folder));
    puts(folder);
    return flush_stdout();
}

int command_cache(settings *s) {
    const char *action = s->action;
    if (!action) return report_usage("cache", "expected list, clear or path");
    if (s->json && strcmp(action, "list") != 0) return report_usage("cache", "--json is for list");
    if (strcmp(action, "list") == 0) return exit_code(list(s->json));
    if (strcmp(action, "clear") == 0) return exit_code(clear());
    if (strcmp(action, "path") == 0) return exit_code(print_path());
    return report_usage("cache", "expected list, clear or path, found '%s'", action);
}

/* cores.c - finds how many CPU cores this process may use. The files are described in cgroups(7) and proc_pid_mountinfo(5), the quotas in
 * the kernel's documentation, "Control Group v2" (cpu.max) and "CFS Bandwidth Control" (cpu.cfs_quota_us). */
#include "runtime/cores.h"

#include <limits.h>
#include <sched.h>

static bool lists(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ',')) return true;
    return false;
}

/* Reads up to two numbers from file `name` in `folder`. Returns how many it read. */
static int read_numbers(const char *folder, const char *name, double *numbers) {
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    const int n = fscanf(f, "%lf %lf", &numbers[0], &numbers[1]);
    fclose(f);
    return n > 0 ? n : 0;
}

/* Returns the quota of the control group at `folder`, in cores; 0 if it has none ("max", -1). */
static double quota_of(const char *folder, bool v2) {
    double x[2], period[2];
    if (v2) return read_numbers(folder, "cpu.max", x) == 2 && x[0] > 0 && x[1] > 0 ? x[0] / x[1] : 0;
    const bool known = read_numbers(folder, "cpu.cfs_quota_us", x) && read_numbers(folder, "cpu.cfs_period_us", period);
    return known && x[0] > 0 && period[0] > 0 ? x[0] / period[0] : 0;
}

/* Reads this process's control group, in cgroups version 2 or 1, from lines "NUMBER:CONTROLLERS:PATH" of /proc/self/cgroup. False: none. */
static bool find_group(const char *root, bool v2, char *group) {
    char path[PATH_MAX], line[PATH_MAX], controllers[256];
    bool found = false;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "r");
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;
        if (!second) continue;
        snprintf(controllers, sizeof controllers, "%.*s", (int)(second - first - 1), first + 1);
        found = v2 ? !*controllers : lists(controllers, "cpu");
        snprintf(group, PATH_MAX, "%.*s", (int)strcspn(second + 1, "\n"), second + 1);
    }
    if (f) fclose(f);
    return found;
}

/* Returns the smallest CPU quota of the control group at `folder` and its ancestors, up to the mount point (a path of `mount` bytes). */
static double least_quota(char *folder, size_t mount, bool v2) {
    double least = 0;
    for (;;) {
        const double quota = quota_of(folder, v2);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < mount) return least;
        *slash = '\0';
    }
}

/* Returns this process's CPU quota in cgroups mounted by a mountinfo line: NUMBER PARENT DEVICE ROOT MOUNT ... - TYPE SOURCE OPTIONS. */
static double quota_by_mount(const char *root, const char *line) {
    char top[PATH_MAX], mount[PATH_MAX], type[64], options[1024], group[PATH_MAX], folder[2 * PATH_MAX];
    const char *rest = strstr(line, " - ");
    if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", top, mount) != 2 ||
        sscanf(rest, " - %63s %*s %1023s", type, options) != 2)
        return 0;
    const bool v2 = !strcmp(type, "cgroup2");
    if (!(v2 || (!strcmp(type, "cgroup") && lists(options, "cpu"))) || !find_group(root, v2, group)) return 0;
    const size_t n = strcmp(top, "/") ? strlen(top) : 0; /* length of the mounted cgroup's path; 0: the root cgroup */
    const char *below = strncmp(group, top, n) ? "" : group + n;
    const int length = snprintf(folder, sizeof folder, "%s%s", root, mount);
    snprintf(folder + length, sizeof folder - (size_t)length, "%s", strcmp(below, "/") ? below : "");
    return least_quota(folder, (size_t)length, v2);
}

double vpps_cores_quota(const char *root) {
    char path[PATH_MAX], line[4 * PATH_MAX];
    double least = 0;
    snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        const double quota = quota_by_mount(root, line);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
    }
    if (f) fclose(f);
    return least;
}

uint32_t vpps_cores_allowed(void) {
    cpu_set_t allowed[VPPS_CPU_SETS];
    const bool known = sched_getaffinity(0, sizeof allowed, allowed) == 0;
    const uint32_t n = known ? (uint32_t)CPU_COUNT_S(sizeof allowed, allowed) : 1;
    const double quota = vpps_cores_quota("");
    if (quota <= 0 || quota >= (double)n) return n;
    return quota < 1 ? 1 : (uint32_t)quota;
}

/* test_cores.c - how many cores a process may use, according to files like those of the Linux kernel. */
#include "fake_root.h"
#include "runtime/cores.h"

#include <unistd.h>

#define V2 "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1                                                                                                             \
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"                                      \
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"

typedef struct quota_case {
    const char *mounts, *groups;
    struct {
        const char *path, *text; /* below /sys/fs/cgroup */
    } files[4];
    double cores; /* 0: no quota */
} quota_case;

static const quota_case cases[] = {
    {"", "0::/\n", {{NULL, NULL}}, 0},
    {V2, "0::/\n", {{NULL, NULL}}, 0},
    {V2, "0::/\n", {{"cpu.max", "max 100000\n"}}, 0},
    {V2, "0::/\n", {{"cpu.max", "150000 100000\n"}}, 1.5},
    /* the process's own group and its ancestors: the smallest quota counts */
    {V2, "0::/a/b\n", {{"a/b/cpu.max", "300000 100000\n"}}, 3},
    {V2, "0::/a/b\n", {{"a/b/cpu.max", "max 100000\n"}, {"a/cpu.max", "40000 20000\n"}}, 2},
    {V2, "0::/a/b\n", {{"a/b/cpu.max", "50000 100000\n"}, {"a/cpu.max", "400000 100000\n"}}, 0.5},
    {V2, "0::/a/b\n", {{"c/cpu.max", "50000 100000\n"}}, 0}, /* another's */
    /* a container that sees only its own group's folder, but the path that the folder has outside; and a group inside it */
    {"30 23 0:26 /docker/77 /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
     "0::/docker/77/job\n",
     {{"job/cpu.max", "200000 100000\n"}},
     2},
    {V2, "0::/docker/77\n", {{"cpu.max", "700000 100000\n"}}, 7},
    /* version 1 */
    {V1,
     "3:cpuset:/x\n2:cpu,cpuacct:/job\n",
     {{"cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n"},
      {"cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"},
      {"cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
      {"cpu,cpuacct/cpu.cfs_period_us", "100000\n"}},
     2.5},
    {V1,
     "2:cpu,cpuacct:/job/part\n",
     {{"cpu,cpuacct/job/part/cpu.cfs_quota_us", "-1\n"},
      {"cpu,cpuacct/job/part/cpu.cfs_period_us", "100000\n"},
      {"cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n"},
      {"cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"}},
     4},
    {V1, "3:cpuset:/job\n", {{"cpuset/job/cpu.cfs_quota_us", "100000\n"}}, 0},
    /* both versions, as systemd mounts them: version 2 without the controller */
    {V1 V2, "2:cpu,cpuacct:/\n0::/user\n", {{"cpu,cpuacct/cpu.cfs_quota_us", "-1\n"}}, 0},
    /* files without the needed information */
    {V2, "0::/\n", {{"cpu.max", ""}}, 0},
    {V2, "0::/\n", {{"cpu.max", "100000 0\n"}}, 0},
    {"30 23\n - \n" V2, "\n::\n0::/\n", {{"cpu.max", "100000 50000\n"}}, 2},
};

TEST_EACH(quotas, 0, VPPS_COUNT(cases)) {
    const quota_case *c = &cases[_i];
    const char *root = fake_root_open();
    fake_root_put(c->mounts, "/proc/self/mountinfo");
    fake_root_put(c->groups, "/proc/self/cgroup");
    for (size_t i = 0; i < VPPS_COUNT(c->files) && c->files[i].path; i++)
        fake_root_put(c->files[i].text, "/sys/fs/cgroup/%s", c->files[i].path);
    const double cores = vpps_cores_quota(root);
    ck_assert_msg(cores == c->cores, "%g cores, expected %g", cores, c->cores);
}

/* The process has at least one core, and at most as many as the machine. */
TEST(cores_of_this_process) {
    const uint32_t n = vpps_cores_allowed();
    const double quota = vpps_cores_quota("");
    ck_assert_uint_ge(n, 1);
    ck_assert_int_le((long)n, sysconf(_SC_NPROCESSORS_CONF));
    if (quota >= 1) ck_assert(n <= quota);
    ck_assert(vpps_cores_quota("/nowhere") == 0);
}

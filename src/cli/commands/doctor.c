/* doctor.c - `vpps doctor`: examines the machine and prints what it finds. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"
#include "cli/common/json.h"
#include "runtime/cores.h"
#include "runtime/cpu/probe.h"
#include "runtime/cpu/processor.h"
#include "runtime/devices.h"
#include "runtime/places.h"

#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* ---------------------------------------------------------------- devices */

static json_t *devices(void) {
    json_t *all = json_array();
    for (const vpps_device_table *const *d = vpps_devices; *d; d++) {
        vpps_device_facts facts = {.ready = !(*d)->examine};
        json_t *o = json_pack("{ss}", "name", (*d)->name);
        if ((*d)->examine) (*d)->examine(&facts);
        for (uint32_t i = 0; i < facts.n; i++)
            json_object_set_new(o, facts.facts[i].name,
                                facts.facts[i].number ? json_integer(strtoll(facts.facts[i].text, NULL, 10))
                                                      : json_string(facts.facts[i].text));
        json_object_set_new(o, "state", json_string((*d)->examine ? facts.state : "ready"));
        json_object_set_new(o, "ready", json_boolean(facts.ready));
        json_array_append_new(all, o);
    }
    return all;
}

/* ---------------------------------------------------------------- the machine */

/* Adds numbers of sockets, memory nodes, caches and cores for the CPUs that this process may use. */
static void add_places(json_t *processor) {
    vpps_places p = {0};
    if (vpps_places_here(&p) != VPPS_OK) return;
    const vpps_place_counts n = vpps_count_places(&p);
    free(p.at);
    json_object_update_new(processor, json_pack("{si si si si si}", "cores_allowed", (int)n.cpus, "sockets",
                                                (int)n.packages, "memory_nodes", (int)n.nodes, "shared_caches",
                                                (int)n.caches, "physical_cores", (int)n.cores));
    if (n.slow_cores) json_object_set_new(processor, "slow_cores", json_integer(n.slow_cores));
}

static json_t *processor(void) {
    char name[VPPS_PROCESSOR_BYTES];
    vpps_processor_name(name, sizeof name);
    json_t *features = json_array();
#if defined(__x86_64__)
    __builtin_cpu_init();
#define FEATURE(f)                                                                                                     \
    { f, __builtin_cpu_supports(f) != 0 }
    const struct {
        const char *name;
        bool there;
    } known[] = {FEATURE("sse4.2"),   FEATURE("avx"),        FEATURE("avx2"),
                 FEATURE("fma"),      FEATURE("avx512f"),    FEATURE("avx512bw"),
                 FEATURE("avx512vl"), FEATURE("avx512vnni"), FEATURE("avx512bf16")};
#undef FEATURE
    for (size_t i = 0; i < VPPS_COUNT(known); i++)
        if (known[i].there) json_array_append_new(features, json_string(known[i].name));
#endif
    const vpps_cpu_units *units = vpps_units_of_this_cpu();
    json_t *amx_state = units->bf16[VPPS_BF16_AMX].product
                            ? json_string("ready")
                            : json_sprintf("not ready: %s", units->why_not[VPPS_BF16_AMX]);
    struct utsname system = {0};
    const vpps_cpu_problem problem = {.asked = VPPS_PRECISION_FP32, .wanted = getenv("VPPS_ISA")};
    char why[160];
    const vpps_cpu_choice choice = vpps_cpu_choose(units, &problem, NULL, 0, why, sizeof why);
    uname(&system);
    json_t *o = json_pack("{ss ss si so ss so}", "name", name, "architecture", system.machine, "cores",
                          (int)sysconf(_SC_NPROCESSORS_ONLN), "features", features, "kernels",
                          units->kernels[choice.kernels]->isa, "amx", amx_state);
    add_places(o);
    const double quota = vpps_cores_quota("");
    if (quota > 0) json_object_set_new(o, "cores_quota", report_number(quota));
    return o;
}

static json_t *caches(void) {
    const long line = sysconf(_SC_LEVEL1_DCACHE_LINESIZE), l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE);
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return json_pack("{sI sI sI sI}", "line_bytes", (json_int_t)line, "l1d_bytes", (json_int_t)l1, "l2_bytes",
                     (json_int_t)l2, "l3_bytes", (json_int_t)l3);
}

static json_t *memory(void) {
    const json_int_t page = sysconf(_SC_PAGESIZE);
    json_t *o = json_pack("{sI sI}", "physical_bytes", page * sysconf(_SC_PHYS_PAGES), "available_bytes",
                          page * sysconf(_SC_AVPHYS_PAGES));
    long long limit;
    FILE *f = fopen("/sys/fs/cgroup/memory.max", "r"); /* a limit in bytes, or "max" for none */
    if (f && fscanf(f, "%lld", &limit) == 1) json_object_set_new(o, "limit_bytes", json_integer(limit));
    if (f) fclose(f);
    return o;
}

static json_t *libraries(void) {
    return json_pack("{ss ss ss ss ss}", "vpps", vpps_version(), "jansson", jansson_version_str(), "zlib",
                     zlibVersion(), "zstd", ZSTD_versionString(), "glibc", gnu_get_libc_version());
}

/* ---------------------------------------------------------------- products of the CPU */

/* Returns the speed, in GFLOP/s, of the CPU's forward products with one kind of instructions (unit), measured with the largest number of
 * vectors up to `vectors`. `far`: weights come from memory, not from a cache. */
static double rate_of(const vpps_probe *p, const vpps_trial *unit, uint32_t vectors, bool far) {
    const vpps_trial *best = NULL;
    for (uint32_t i = 0; i < p->n; i++) {
        const vpps_trial *t = &p->trials[i];
        if (t->unit == unit->unit && t->precision == unit->precision && t->far == far && t->vectors <= vectors &&
            !strcmp(t->product, vpps_cpu_ways[VPPS_CPU_WAY_forward]) && (!best || t->vectors > best->vectors))
            best = t;
    }
    return best ? 2.0 * VPPS_TRIAL_SIDE * VPPS_TRIAL_SIDE / best->ns_per_vector : 0;
}

/* Returns whether training would choose this kind of instructions (unit) for its precision. */
static bool is_taken(const vpps_probe *p, const vpps_trial *unit) {
    const vpps_cpu_units *units = vpps_units_of_this_cpu();
    vpps_cpu_problem problem = {.cache_bytes = SIZE_MAX, .wanted = getenv("VPPS_ISA")};
    char why[160];
    while (strcmp(vpps_precision_names[problem.asked], unit->precision) != 0) problem.asked++;
    const vpps_cpu_choice c = vpps_cpu_choose(units, &problem, p->trials, p->n, why, sizeof why);
    return vpps_cpu_is_chosen(units, &c, unit);
}

/* Returns a JSON row for each kind of instructions (unit) and precision: the measured speeds of its products. */
static json_t *products(void) {
    const vpps_probe *p = vpps_probe_processor();
    json_t *rows = json_array();
    for (uint32_t i = 0; i < p->n; i++) {
        const vpps_trial *t = &p->trials[i];
        if (t->far || t->vectors != 1 || strcmp(t->product, vpps_cpu_ways[VPPS_CPU_WAY_forward]) != 0) continue;
        const bool taken = is_taken(p, t);
        const double one = rate_of(p, t, 1, false), many = rate_of(p, t, UINT32_MAX, false),
                     far = rate_of(p, t, 1, true);
        json_t *state =
            json_sprintf("%4.0f GFLOP/s with one vector, %4.0f with many, %4.0f with one and weights from memory%s",
                         one, many, far, taken ? ": taken" : "");
        json_array_append_new(rows, json_pack("{so ss ss sb sf sf sf so}", "name",
                                              json_sprintf("%s %s", t->precision, t->unit), "precision", t->precision,
                                              "unit", t->unit, "taken", (int)taken, "gflops_one", one, "gflops_many",
                                              many, "gflops_one_far", far, "state", state));
    }
    if (*p->note) json_array_append_new(rows, json_pack("{ss ss}", "name", "note", "state", p->note));
    return rows;
}

/* ---------------------------------------------------------------- as text */

static void print_value(const char *key, const json_t *value) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    const char *suffix = strstr(key, "_bytes");
    if (suffix) { /* a size in bytes; 0, sysconf's result for an unknown size, is not printed */
        double x = (double)json_integer_value(value);
        size_t unit = 0;
        for (; x >= 1024 && unit + 1 < VPPS_COUNT(units); unit++) x /= 1024;
        if (x > 0) printf("    %-18.*s %.4g %s\n", (int)(suffix - key), key, x, units[unit]);
    } else if (json_is_string(value)) {
        printf("    %-18s %s\n", key, json_string_value(value));
    } else if (json_is_number(value)) {
        printf("    %-18s %g\n", key, json_number_value(value));
    } else if (json_is_array(value)) {
        printf("    %-18s", key);
        for (size_t i = 0; i < json_array_size(value); i++) printf(" %s", json_string_value(json_array_get(value, i)));
        putchar('\n');
    }
}

static void print_machine(json_t *machine) {
    const char *section, *key;
    json_t *members, *value;
    json_object_foreach(machine, section, members) {
        printf("%s\n", section);
        for (size_t i = 0; i < json_array_size(members); i++) {
            const json_t *device = json_array_get(members, i);
            printf("    %-18s %s\n", json_string_value(json_object_get(device, "name")),
                   json_string_value(json_object_get(device, "state")));
        }
        if (json_is_object(members)) json_object_foreach(members, key, value) print_value(key, value);
    }
}

int command_doctor(settings *s) {
    json_t *machine = json_pack("{so so so so so so}", "devices", devices(), "processor", processor(), "products",
                                products(), "caches", caches(), "memory", memory(), "libraries", libraries());
    if (s->json || !machine) return exit_code(report_json_line(machine, stdout));
    print_machine(machine);
    json_decref(machine);
    return exit_code(flush_stdout());
}

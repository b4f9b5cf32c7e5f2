/* test_device.c - runs scripts that are broken on purpose on the CPU device: each gives an error that names virtual processor and task, and neither
 * hangs nor crashes; the next batch runs as usual. */
#include "runtime/cpu/cpu.h"
#include "small_network.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tests of stalls have a short watchdog time; in other tests a busy machine may take long. */
enum { IMPATIENT_MS = 30, PATIENT_MS = 60000, WILD = 1 << 30 };

/* ---------------------------------------------------------------- a device and a script */

/* How many virtual processors, in how many groups, and who runs virtual processor 0. */
typedef struct setup {
    uint32_t vps, groups;
    vpps_caller caller;
} setup;

static const setup setups[] = {
    {1, 1, VPPS_CALLER_WORKS}, {2, 2, VPPS_CALLER_FREE}, {3, 1, VPPS_CALLER_FREE},
    {8, 1, VPPS_CALLER_WORKS}, {8, 4, VPPS_CALLER_FREE}, {24, 2, VPPS_CALLER_WORKS},
};
enum { N_SETUPS = VPPS_COUNT(setups) };

typedef struct fixture {
    small_network net;
    vpps_options options;
    vpps_pool_plan plan;
    vpps_device *device;
    vpps_history history;
    vpps_batch *batch;
    uint32_t *whole; /* the script before it is broken */
    size_t whole_words;
} fixture;

static void open_fixture(fixture *f, const setup *s) {
    *f = (fixture){0};
    f->net = sn_of(3);
    f->options = sn_options(s->vps, VPPS_ADAM);
    f->options.watchdog_ms = PATIENT_MS;
    f->options.caller = s->caller;
    TEST_OK(vpps_device_cpu.create(&f->device, f->net.model, &f->options, &f->plan));
    TEST_OK(vpps_batch_create(&f->batch));
    const vpps_batch_request request = {.loss =
                                            sn_build_many(&f->net, 0, 12), /* components that groups can share out */
                                        .optimizer = &f->options.optimizer,
                                        .guard = true,
                                        .step = 1,
                                        .groups = s->groups};
    TEST_OK(vpps_schedule_batch(f->batch, &f->history, f->device->target, f->net.g, &request));
    ck_assert_uint_eq(f->batch->n_groups, s->groups);
    f->whole_words = f->batch->script_words;
    f->whole = malloc(f->whole_words * sizeof *f->whole);
    ck_assert_ptr_nonnull(f->whole);
    memcpy(f->whole, f->batch->script, f->whole_words * sizeof *f->whole);
}

static void close_fixture(fixture *f) {
    vpps_device_cpu.destroy(f->device);
    vpps_batch_destroy(f->batch);
    vpps_history_free(&f->history);
    sn_close(&f->net);
    free(f->whole);
}

static void mend(fixture *f) {
    f->batch->script_words = f->whole_words;
    memcpy(f->batch->script, f->whole, f->whole_words * sizeof *f->whole);
}

static vpps_outcome run(fixture *f) {
    vpps_outcome out;
    TEST_OK(vpps_device_cpu.launch(f->device, f->batch));
    vpps_device_cpu.wait(f->device, &out);
    ck_assert(vpps_device_cpu.finished(f->device));
    return out;
}

/* Runs the unbroken script with the model's own parameters. */
static float run_whole(fixture *f) {
    mend(f);
    TEST_OK(vpps_device_write_parameters(f->device, f->net.model, f->options.optimizer.kind));
    const vpps_outcome out = run(f);
    ck_assert_msg(out.status == VPPS_OK, "%s", out.message);
    ck_assert(isfinite(out.loss) && out.loss > 0);
    return out.loss;
}

/* ---------------------------------------------------------------- finding and changing tasks */

static vpps_task_header *header(fixture *f) { return (vpps_task_header *)(void *)f->batch->script; }
static uint32_t *starts(fixture *f) { return f->batch->script + VPPS_TASK_HEADER_WORDS; }
static vpps_block *block(fixture *f, uint32_t i) {
    return (vpps_block *)(void *)(f->batch->script + header(f)->blocks) + i;
}
static vpps_table *table(fixture *f, uint32_t i) {
    return (vpps_table *)(void *)(f->batch->script + header(f)->tables) + i;
}

/* Returns task number n of a kind in a group. */
static vpps_task *find(fixture *f, uint32_t group, vpps_task_kind kind, uint32_t n) {
    vpps_task *t = (vpps_task *)(void *)(f->batch->script + starts(f)[group]);
    for (; t < vpps_end_of_tasks(f->batch->script, group); t++)
        if (t->kind == kind && n-- == 0) return t;
    ck_abort_msg("group %u has too few %s", group, vpps_task_rows[kind].name);
}

/* Returns the n-th task of a group that waits or, with `signals`, signals; the last one if there are fewer. */
static vpps_task *find_barrier(fixture *f, uint32_t group, bool signals, uint32_t n) {
    vpps_task *t = (vpps_task *)(void *)(f->batch->script + starts(f)[group]), *found = NULL;
    for (; t < vpps_end_of_tasks(f->batch->script, group); t++) {
        if ((signals ? t->signal : t->wait) == VPPS_NO_BARRIER) continue;
        found = t;
        if (n-- == 0) break;
    }
    ck_assert_ptr_nonnull(found);
    return found;
}

/* ---------------------------------------------------------------- faults that VPs find
 *
 * All are put into the last group's tasks: with several groups, the others' are right, and wait in vain. */

static uint32_t last_group(fixture *f) { return header(f)->n_groups - 1; }
static vpps_task *of_last(fixture *f, vpps_task_kind kind, uint32_t n) { return find(f, last_group(f), kind, n); }
static vpps_task *wait_of(fixture *f, uint32_t n) { return find_barrier(f, last_group(f), false, n); }
static vpps_task *signal_of(fixture *f, uint32_t n) { return find_barrier(f, last_group(f), true, n); }
static vpps_task *loss_of(fixture *f) { return find(f, 0, VPPS_TASK_LOSS, 0); } /* the first processor adds it up */

/* Each row: a name, the status, a text in the message, whether several groups are needed, and what makes the fault. The last signal is for the
 * barrier of all virtual processors before the update. Vertices past a block's end: first vertex and number are valid by themselves. */
#define FAULTS(X)                                                                                                      \
    X(drop_signal, STALL, "barrier", false, signal_of(f, 1)->signal = VPPS_NO_BARRIER)                                 \
    X(drop_last_signal, STALL, "barrier", false, signal_of(f, UINT32_MAX)->signal = VPPS_NO_BARRIER)                   \
    X(wait_for_more, STALL, "barrier", false, wait_of(f, 2)->signals++)                                                \
    X(wait_for_all_there_can_be, STALL, "barrier", false, wait_of(f, 0)->signals = INT32_MAX)                          \
    X(signal_another, STALL, "barrier", false, signal_of(f, 0)->signal++)                                              \
    X(wait_for_another, STALL, "barrier", false, wait_of(f, 0)->wait++)                                                \
    X(signal_absent, SCRIPT, "barrier 1073741824; the script has", false, signal_of(f, 0)->signal = WILD)              \
    X(wait_for_absent, SCRIPT, "; the script has", false, wait_of(f, 1)->wait = header(f)->n_barriers)                 \
    X(unknown_kind, SCRIPT, "is unknown", false, wait_of(f, 0)->kind = VPPS_TASK_COUNT)                                \
    X(wild_kind, SCRIPT, "task 1073741824 is unknown", false, of_last(f, VPPS_TASK_STAGE, 0)->kind = WILD)             \
    X(absent_block, SCRIPT, "; the script has", false,                                                                 \
      of_last(f, VPPS_TASK_STAGE, 0)->operands[0] = header(f)->n_blocks)                                               \
    X(foreign_block, SCRIPT, "is group 0's, not group", true, vpps_task *stage = of_last(f, VPPS_TASK_STAGE, 0);       \
      block(f, stage->operands[0])->group = (last_group(f) + 1) % header(f)->n_groups)                                 \
    X(absent_stage, SCRIPT, "stage ", false, vpps_task *stage = of_last(f, VPPS_TASK_STAGE, 1);                        \
      stage->stage = f->batch->cells[block(f, stage->operands[0])->cell]->n_stages)                                    \
    X(too_many_vertices, SCRIPT, "vertices from 0 on; block", false, of_last(f, VPPS_TASK_STAGE, 0)->operands[2]++)    \
    X(vertices_past_the_end, SCRIPT, "; block", false, vpps_task *stage = of_last(f, VPPS_TASK_STAGE, 0);              \
      stage->operands[1] = 1; stage->operands[2] = block(f, stage->operands[0])->n)                                    \
    X(first_at_the_end, SCRIPT, "; block", false, vpps_task *stage = of_last(f, VPPS_TASK_STAGE, 0);                   \
      stage->operands[1] = block(f, stage->operands[0])->n; stage->operands[2] = 1)                                    \
    X(gradients_past_the_end, SCRIPT, "; block", false, vpps_task *outer = of_last(f, VPPS_TASK_OUTER, 0);             \
      outer->operands[1] = 1; outer->operands[2] = block(f, outer->operands[0])->n)                                    \
    X(gradients_of_absent_block, SCRIPT, "; the script has", false,                                                    \
      of_last(f, VPPS_TASK_OUTER, 0)->operands[0] = header(f)->n_blocks)                                               \
    X(gradients_of_too_many, SCRIPT, "vertices from 0 on; block", false,                                               \
      of_last(f, VPPS_TASK_OUTER, 0)->operands[2]++)                                                                   \
    X(absent_table, SCRIPT, "table 1; the script has 1", false,                                                        \
      of_last(f, VPPS_TASK_ENTRIES, 0)->operands[0] = header(f)->n_tables)                                             \
    X(constants_beyond, SCRIPT, "pairs from word", false,                                                              \
      of_last(f, VPPS_TASK_CONSTANTS, 0)->operands[0] = header(f)->words - 1)                                          \
    X(too_many_constants, SCRIPT, "2147483648 pairs from word", false,                                                 \
      of_last(f, VPPS_TASK_CONSTANTS, 0)->operands[1] = WILD * 2u)                                                     \
    X(update_in_inference, SCRIPT, "no optimiser", false, header(f)->update = 0)                                       \
    X(no_end, SCRIPT, "expected END", false, of_last(f, VPPS_TASK_END, 0)->kind = VPPS_TASK_NORM)                      \
    X(early_end, SCRIPT, "expected END", false, of_last(f, VPPS_TASK_STAGE, 1)->kind = VPPS_TASK_END)                  \
    X(cut_short, SCRIPT, "a task is cut short: 11 of its 12 words", false, starts(f)[last_group(f) + 1]--)             \
    X(no_instructions, SCRIPT, "expected END", false, starts(f)[last_group(f)] = starts(f)[last_group(f) + 1])

typedef struct fault {
    const char *name;
    void (*make)(fixture *f);
    vpps_status status;
    const char *text;
    bool with_groups;
} fault;

#define X(name, status, text, groups, ...)                                                                             \
    static void name(fixture *f) { __VA_ARGS__; }
FAULTS(X)
#undef X
#define X(name, status, text, groups, ...) {#name, name, VPPS_##status, text, groups},
static const fault faults[] = {FAULTS(X)};
#undef X
enum { N_FAULTS = VPPS_COUNT(faults) };

/* The failure must name the fault and its place, and must come in time. */
static void expect_failure(fixture *f, const fault *b) {
    uint64_t *watchdog_ns = &((vpps_cpu *)f->device)->watchdog_ns, start = vpps_now_ns();
    if (b->status == VPPS_STALL) *watchdog_ns = IMPATIENT_MS * 1000000u;
    const vpps_outcome out = run(f);
    *watchdog_ns = PATIENT_MS * (uint64_t)1000000;
    ck_assert_msg(out.status == b->status, "%s: %s instead of %s: %s", b->name, vpps_status_name(out.status),
                  vpps_status_name(b->status), out.message);
    uint32_t vp, word;
    ck_assert_msg(sscanf(out.message, "VP %u, task at word %u: ", &vp, &word) == 2, "%s: %s", b->name, out.message);
    ck_assert_msg(vp < f->options.vps && word >= starts(f)[0] && word <= f->batch->script_words, "%s: %s", b->name,
                  out.message);
    ck_assert_msg(strstr(out.message, b->text) != NULL, "%s: \"%s\" lacks \"%s\"", b->name, out.message, b->text);
    ck_assert_msg(!isfinite(out.loss), "%s: a loss, %g", b->name, (double)out.loss);
    ck_assert_msg(vpps_now_ns() - start < 20000000000u, "%s: took far longer than the watchdog's time", b->name);
}

TEST_GROUP("broken scripts", .seconds = 60);

/* Tries every fault in every setup; after each, the unbroken script gives the same bits as before. */
TEST_EACH(faults_are_reported_and_survived, 0, 2 * N_SETUPS) {
    const setup *s = &setups[_i / 2];
    const bool stalls = _i % 2; /* these faults take the watchdog's time */
    AT_END(close_fixture) fixture f;
    open_fixture(&f, s);
    const float loss = run_whole(&f);
    for (size_t i = 0; i < N_FAULTS; i++) {
        if ((faults[i].status == VPPS_STALL) != stalls || (faults[i].with_groups && s->groups == 1)) continue;
        mend(&f);
        faults[i].make(&f);
        expect_failure(&f, &faults[i]);
        const float again = run_whole(&f);
        ck_assert_msg(memcmp(&again, &loss, sizeof loss) == 0, "after %s the loss is %.9g, not %.9g", faults[i].name,
                      (double)again, (double)loss);
    }
}

/* ---------------------------------------------------------------- scripts that are not begun */

#define REFUSED(X)                                                                                                     \
    X(wrong_magic, header(f)->magic++)                                                                                 \
    X(other_vps, header(f)->n_vps++)                                                                                   \
    X(no_groups, header(f)->n_groups = 0)                                                                              \
    X(too_many_groups, header(f)->n_groups = f->options.vps + 1)                                                       \
    X(too_many_barriers, header(f)->n_barriers = UINT32_MAX)                                                           \
    X(too_much_pool, header(f)->pool_words = f->plan.pool_words + 1)                                                   \
    X(more_words, header(f)->words++)                                                                                  \
    X(blocks_beyond, header(f)->blocks = header(f)->words - 1)                                                         \
    X(too_many_blocks, header(f)->n_blocks = UINT32_MAX)                                                               \
    X(tables_beyond, header(f)->tables = WILD)                                                                         \
    X(too_many_tables, header(f)->n_tables = UINT32_MAX)                                                               \
    X(instructions_beyond, starts(f)[header(f)->n_groups] = header(f)->words + 1)                                      \
    X(instructions_backwards, starts(f)[0] = starts(f)[1] + 1)                                                         \
    X(instructions_in_header, starts(f)[0] = 0)                                                                        \
    X(unknown_optimiser, header(f)->update = VPPS_ADAMW + 2)                                                           \
    X(absent_cell, block(f, 0)->cell = f->batch->n_cells)                                                              \
    X(absent_group, block(f, 0)->group = header(f)->n_groups)                                                          \
    X(wild_arrays, block(f, 0)->arrays = UINT32_MAX)                                                                   \
    X(arrays_beyond, block(f, 0)->arrays = header(f)->words - 1)                                                       \
    X(too_many_in_block, block(f, 0)->n = UINT32_MAX)                                                                  \
    X(wild_kept, block(f, header(f)->n_blocks - 1)->kept[0] = UINT32_MAX)                                              \
    X(no_table, table(f, 0)->param = f->net.b)                                                                         \
    X(absent_parameter, table(f, 0)->param = WILD)                                                                     \
    X(too_many_entries, table(f, 0)->n = UINT32_MAX)                                                                   \
    X(wild_entries, table(f, 0)->rows = UINT32_MAX)                                                                    \
    X(gradients_beyond, table(f, 0)->gradients = header(f)->pool_words)

#define X(name, ...)                                                                                                   \
    static void name(fixture *f) { __VA_ARGS__; }
REFUSED(X)
#undef X
#define X(name, ...) {#name, name},
static const struct {
    const char *name;
    void (*make)(fixture *f);
} refused[] = {REFUSED(X)};
#undef X

TEST_EACH(wild_headers_are_refused, 0, N_SETUPS) {
    AT_END(close_fixture) fixture f;
    open_fixture(&f, &setups[_i]);
    const float loss = run_whole(&f);
    for (size_t i = 0; i < VPPS_COUNT(refused); i++) {
        mend(&f);
        refused[i].make(&f);
        const vpps_status status = vpps_device_cpu.launch(f.device, f.batch);
        ck_assert_msg(status == VPPS_SCRIPT, "%s: %s: %s", refused[i].name, vpps_status_name(status),
                      vpps_error_message());
        ck_assert_msg(strncmp(vpps_error_message(), "script: ", 8) == 0, "%s: %s", refused[i].name,
                      vpps_error_message());
        ck_assert(vpps_device_cpu.finished(f.device));
        ck_assert_float_eq(run_whole(&f), loss);
    }
}

/* Whatever value a word gets that the checks above read, nothing hangs or crashes. */
TEST_EACH(wild_words_do_no_harm, 0, N_SETUPS) {
    AT_END(close_fixture) fixture f;
    open_fixture(&f, &setups[_i]);
    uint64_t random = test_seed() + (uint64_t)_i;
    const float loss = run_whole(&f);
    for (uint32_t i = 0; i < test_scaled(400); i++) {
        mend(&f);
        const uint32_t wild[] = {0, 1, (uint32_t)vpps_random(&random), WILD, INT32_MAX, UINT32_MAX};
        const uint32_t value = wild[vpps_random_below(&random, VPPS_COUNT(wild))];
        const uint32_t group = vpps_random_below(&random, header(&f)->n_groups);
        static const vpps_task_kind kinds[] = {VPPS_TASK_STAGE, VPPS_TASK_OUTER, VPPS_TASK_ENTRIES, VPPS_TASK_LOSS};
        const vpps_task_kind kind = kinds[vpps_random_below(&random, VPPS_COUNT(kinds))];
        vpps_task *t = kind == VPPS_TASK_LOSS ? loss_of(&f) : find(&f, group, kind, 0);
        uint32_t *words[] = {&t->kind,  &t->operands[0], &t->operands[1],  &t->operands[2],
                             &t->stage, &t->pass_record, &t->contributions};
        const uint32_t n = kind == VPPS_TASK_STAGE ? VPPS_COUNT(words) : 1 + vpps_task_rows[kind].n_operands,
                       word = vpps_random_below(&random, n);
        /* only the verifier could detect other, or fewer, existing vertices: keeps these values */
        if (value < 2 || (kind == VPPS_TASK_LOSS && word == 1 && value < header(&f)->words)) continue;
        *words[word] = value;
        ck_assert_int_eq(run(&f).status, VPPS_SCRIPT);
    }
    ck_assert_float_eq(run_whole(&f), loss);
}

/* ---------------------------------------------------------------- waiting */

TEST_GROUP("waiting", .seconds = 60);

typedef struct waiter {
    vpps_cpu cpu;
    vpps_counter word;
    vpps_wait_end end;
} waiter;

static void *wait_a_second(void *argument) {
    waiter *w = argument;
    w->end = vpps_wait_for(&w->cpu, &w->word, 1, 1000000000, true);
    return NULL;
}

static waiter *new_waiter(void) {
    void *memory = NULL;
    ck_assert_int_eq(posix_memalign(&memory, 64, sizeof(waiter)), 0);
    return memset(memory, 0, sizeof(waiter));
}

static void sleep_ms(long ms) {
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left)) {}
}

/* Time in which the process is stopped does not count as waiting for the watchdog. */
TEST(being_stopped_is_no_stall) {
    pthread_t thread;
    FREED waiter *w = new_waiter();
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_a_second, w), 0);
    const pid_t test = getpid(), child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        sleep_ms(50);
        kill(test, SIGSTOP);
        sleep_ms(1500);
        kill(test, SIGCONT);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    sleep_ms(100);
    atomic_store(&w->word.value, 1);
    vpps_wake(&w->word);
    pthread_join(thread, NULL);
    ck_assert_int_eq(w->end, VPPS_WAIT_REACHED);
}

/* A process that is not stopped does stall. */
TEST(waiting_ends_with_the_watchdogs_time) {
    FREED waiter *w = new_waiter();
    wait_a_second(w);
    ck_assert_int_eq(w->end, VPPS_WAIT_TIMEOUT);
}

/* test_device.c - the CPU device on scripts that are broken on purpose: an error that names VP, barrier and
 * instruction; never a hang, never a crash. And what follows from its threads: any number of VPs, either caller. */
#include "common/testing.h"
#include "nodes/script.h"
#include "runtime/device.h"
#include "small_network.h"

#include <math.h>

enum { VPS = 3, WATCHDOG_MS = 150 };

typedef struct fixture {
    small_network net;
    vpps_options options;
    vpps_plan plan;
    vpps_device *device;
    vpps_scheduler *scheduler;
} fixture;

static void open_fixture(fixture *f, vpps_caller caller) {
    sn_open(&f->net, 3);
    f->options = sn_options(VPS, VPPS_SGD);
    f->options.watchdog_ms = WATCHDOG_MS;
    f->options.caller = caller;
    TEST_OK(vpps_device_cpu.create(&f->device, f->net.model, &f->options, &f->plan));
    TEST_OK(vpps_scheduler_create(&f->scheduler));
    const vpps_request request = {.loss = sn_build(&f->net, 3, 1), .optimizer = &f->options.optimizer, .step = 1};
    TEST_OK(vpps_schedule(f->scheduler, &f->plan, f->net.g, &request));
}

static void close_fixture(fixture *f) {
    vpps_scheduler_destroy(f->scheduler);
    vpps_device_cpu.destroy(f->device);
    sn_close(&f->net);
}

static vpps_outcome run(fixture *f) {
    vpps_outcome out;
    TEST_OK(vpps_device_cpu.launch(f->device, f->scheduler->script));
    vpps_device_cpu.wait(f->device, &out);
    return out;
}

/* The n-th control instruction `opcode` in the VPs' own streams; NULL when there are fewer. */
static uint32_t *find(fixture *f, vpps_opcode opcode, uint32_t n) {
    uint32_t *script = f->scheduler->script;
    const uint32_t *starts = vpps_script_starts(script);
    for (uint32_t vp = 0; vp < VPS; vp++) {
        for (uint32_t *at = script + starts[vp], *end = script + starts[vp + 1]; at < end;) {
            if (vpps_word_opcode(*at) == opcode && n-- == 0) return at;
            at += vpps_instruction_words(at, end);
        }
    }
    return NULL;
}

static void expect(fixture *f, vpps_status status, const char *text) {
    const uint64_t start = vpps_now_ns();
    const vpps_outcome out = run(f);
    ck_assert_msg(out.status == status, "%s instead of %s: %s", vpps_status_name(out.status), vpps_status_name(status),
                  out.message);
    ck_assert_msg(strstr(out.message, "VP ") && strstr(out.message, "instruction at word "), "%s", out.message);
    ck_assert_msg(strstr(out.message, text) != NULL, "\"%s\" lacks \"%s\"", out.message, text);
    ck_assert_msg(vpps_now_ns() - start < 20000000000u, "took far longer than the watchdog's time");
}

static void break_script(fixture *f, int kind) {
    uint32_t *at;
    switch (kind) {
    case 0: /* a signal dropped: as long an instruction that does nothing would be a NOP pair */
        ck_assert_ptr_nonnull(at = find(f, VPPS_I_SIGNAL, 1));
        at[0] = at[1] = VPPS_I_NOP;
        break;
    case 1: /* a wait for more than there are */
        ck_assert_ptr_nonnull(at = find(f, VPPS_I_WAIT, 2));
        at[2]++;
        break;
    case 2: /* a signal to another barrier */
        ck_assert_ptr_nonnull(at = find(f, VPPS_I_SIGNAL, 0));
        at[1]++;
        break;
    default: break;
    }
}

START_TEST(stalls_are_reported)
    {
        fixture f;
        open_fixture(&f, _i % 2 ? VPPS_CALLER_FREE : VPPS_CALLER_WORKS);
        break_script(&f, _i / 2);
        expect(&f, VPPS_STALL, "barrier");
        close_fixture(&f);
    }
END_TEST

START_TEST(wild_scripts_are_refused)
    {
        fixture f;
        open_fixture(&f, _i % 2 ? VPPS_CALLER_FREE : VPPS_CALLER_WORKS);
        uint32_t *at = find(&f, VPPS_I_WAIT, 0);
        ck_assert_ptr_nonnull(at);
        switch (_i / 2) {
        case 0:
            at[0] = 255;
            expect(&f, VPPS_SCRIPT, "opcode 255");
            break;
        case 1:
            at[1] = 1u << 30;
            expect(&f, VPPS_SCRIPT, "barrier 1073741824");
            break;
        default: /* the last word of a stream begins an instruction that is longer */
            f.scheduler->script[vpps_script_starts(f.scheduler->script)[VPS] - 1] = VPPS_I_WAIT;
            expect(&f, VPPS_SCRIPT, "cut short");
            break;
        }
        close_fixture(&f);
    }
END_TEST

/* After a failure the device still runs correct scripts and ends cleanly. */
START_TEST(device_survives_a_stall)
    {
        fixture f;
        open_fixture(&f, VPPS_CALLER_FREE);
        uint32_t *at = find(&f, VPPS_I_WAIT, 0);
        at[2]++;
        expect(&f, VPPS_STALL, "barrier");
        at[2]--;
        const vpps_outcome out = run(&f);
        ck_assert_msg(out.status == VPPS_OK, "%s", out.message);
        ck_assert(isfinite(out.loss) && out.loss > 0);
        close_fixture(&f);
    }
END_TEST

/* Who calls does not change a bit; more VPs than cores, or than rows, work. */
START_TEST(callers_agree)
    {
        static const uint32_t vps[] = {1, 2, 3, 8, 40};
        float losses[2][6];
        for (int caller = 0; caller < 2; caller++) {
            small_network net;
            sn_open(&net, 5);
            vpps_options options = sn_options(vps[_i], VPPS_ADAM);
            options.caller = caller ? VPPS_CALLER_FREE : VPPS_CALLER_WORKS;
            vpps_handle *h;
            TEST_OK(vpps_handle_create(&h, net.model, &options));
            for (uint32_t b = 0; b < 6; b++) {
                TEST_OK(vpps_fb(h, net.g, sn_build(&net, b, 1), NULL));
                TEST_OK(vpps_sync_latest_loss(h, &losses[caller][b]));
            }
            vpps_handle_destroy(h);
            sn_close(&net);
        }
        ck_assert_int_eq(memcmp(losses[0], losses[1], sizeof losses[0]), 0);
    }
END_TEST

int main(void) {
    Suite *suite = suite_create("device");
    TCase *broken = tcase_create("broken scripts");
    tcase_set_timeout(broken, 60);
    tcase_add_loop_test(broken, stalls_are_reported, 0, 6);
    tcase_add_loop_test(broken, wild_scripts_are_refused, 0, 6);
    tcase_add_test(broken, device_survives_a_stall);
    suite_add_tcase(suite, broken);
    TCase *threads = tcase_create("threads");
    tcase_set_timeout(threads, 60);
    tcase_add_loop_test(threads, callers_agree, 0, 5);
    suite_add_tcase(suite, threads);
    return test_main(suite);
}

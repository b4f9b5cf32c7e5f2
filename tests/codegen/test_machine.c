/* test_machine.c - machines by name: what any GPU must satisfy, and wrong names. */
#include "codegen/machine.h"
#include "common/testing.h"

static const uint32_t known[] = {75, 80, 86, 89, 90, 100, 103, 120};

TEST_EACH(every_architecture, 0, VPPS_COUNT(known)) {
    const uint32_t arch = known[_i];
    vpps_machine full, bare, small;
    char name[16];
    snprintf(name, sizeof name, "sm_%u", arch);
    TEST_OK(vpps_machine_named(&full, name, 0));
    TEST_OK(vpps_machine_named(&bare, name + 3, 0));
    ck_assert_mem_eq(&full, &bare, sizeof full);
    ck_assert_str_eq(full.name, name);
    ck_assert_uint_eq(full.arch, arch);
    ck_assert_uint_ge(full.sms, 64);
    ck_assert_uint_eq(full.sm_registers, 65536);
    ck_assert_uint_ge(full.cta_shared_bytes, 64 * 1024);
    /* From sm_80 on the system reserves 1 KiB for every CTA. */
    ck_assert_uint_eq(full.sm_shared_bytes - full.cta_shared_bytes, arch < 80 ? 0 : 1024);
    ck_assert_uint_ge(full.l2_bytes, (uint64_t)4 << 20);
    TEST_OK(vpps_machine_named(&small, name, 3));
    ck_assert_uint_eq(small.sms, 3);
    small.sms = full.sms;
    ck_assert_mem_eq(&full, &small, sizeof full);
}

TEST(hopper) {
    vpps_machine m;
    TEST_OK(vpps_machine_named(&m, "sm_90", 0));
    ck_assert_uint_eq(m.sms, 132);
    ck_assert_uint_eq(m.sm_shared_bytes, 233472); /* as the driver reports for an H100 */
    ck_assert_uint_eq(m.cta_shared_bytes, 232448);
    ck_assert_uint_eq(m.l2_bytes, 52428800);
}

TEST(no_architecture) {
    char names[] = "|sm_|70|sm_70|sm_90a|SM_90|-90|+90| 90|90 |0|4294967386|99999999999999999999", *rest = names;
    vpps_machine m = {.sms = 7};
    for (const char *name; (name = strsep(&rest, "|"));) {
        TEST_FAILS(vpps_machine_named(&m, name, 0), VPPS_ARGUMENT,
                   "sm_75, sm_80, sm_86, sm_89, sm_90, sm_100, sm_103, sm_120");
        ck_assert_ptr_nonnull(strstr(vpps_error_message(), name));
    }
    ck_assert_uint_eq(m.sms, 7);
}

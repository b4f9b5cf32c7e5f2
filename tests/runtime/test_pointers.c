/* test_pointers.c - arrays in the device's memory (vpps_set_pointer_mode): results equal those with the host's arrays, copies are ordered with the
 * caller's stream, and wrong arrays are refused before anything runs. (CUDA's own calls: test_driver_cuda.c.) */
#include "common/gpu_tests.h"
#include "runtime/gpu/gpu.h"
#include "runtime/small_network.h"

enum { VECTORS = 4, APART = SN_HIDDEN + 3 };

static const sn_setting on_simt = {.device = "simt", .vps = 2, .optimizer = VPPS_MOMENTUM};
static const sn_setting on_cpu = {.device = "cpu", .vps = 1, .optimizer = VPPS_MOMENTUM};

static float inputs[VECTORS * SN_EMBED], slopes[VECTORS * SN_HIDDEN];

__attribute__((constructor)) static void draw(void) {
    uint64_t random = 3;
    for (size_t i = 0; i < VPPS_COUNT(inputs); i++) inputs[i] = vpps_random_unit(&random) - 0.5f;
    for (size_t i = 0; i < VPPS_COUNT(slopes); i++) slopes[i] = vpps_random_unit(&random) - 0.5f;
}

/* The nodes of a step, and arrays for its results. The values are not adjacent. */
typedef struct step {
    vpps_node x[VECTORS + 1], y[VECTORS]; /* no y reads the last x */
    float values[VECTORS * APART], gradients[(VECTORS + 1) * SN_EMBED];
    float *value_outs[VECTORS], *gradient_outs[VECTORS + 1];
    const float *given[VECTORS];
} step;

/* Builds the nodes on inputs from the host, or on a kept value's columns. */
static void build(const small_network *n, vpps_value kept, step *s) {
    vpps_graph_clear(n->g);
    s->x[0] = kept ? vpps_kept_columns(n->g, n->h, kept) : vpps_input_many(n->g, VECTORS, SN_EMBED, 1, inputs);
    for (uint32_t i = 0; i < VECTORS; i++) {
        s->x[i] = s->x[0] + i;
        s->y[i] = vpps_tanh(n->g, vpps_affine1(n->g, n->b, n->W, s->x[i]));
        s->value_outs[i] = s->values + (size_t)i * APART;
        s->given[i] = i == 2 ? NULL : slopes + (size_t)i * SN_HIDDEN;
    }
    s->x[VECTORS] = vpps_input(n->g, SN_EMBED, 1, inputs);
    for (uint32_t i = 0; i <= VECTORS; i++) s->gradient_outs[i] = s->gradients + (size_t)i * SN_EMBED;
    memset(s->values, 0x55, sizeof s->values);
    memset(s->gradients, 0x55, sizeof s->gradients);
}

#define REQUEST_OF(s)                                                                                                  \
    VPPS_REQUEST(.n_values = VECTORS, .values = (s)->y, .value_outs = (s)->value_outs, .n_gradients = VECTORS + 1,     \
                 .gradients = (s)->x, .gradient_outs = (s)->gradient_outs)

static void run(const small_network *n, step *s) {
    TEST_OK(vpps_step_forward(n->h, n->g, REQUEST_OF(s)));
    TEST_OK(vpps_step_backward(n->h, VECTORS, s->given));
    TEST_OK(vpps_update(n->h));
}

static void device_mode(const small_network *n) { TEST_OK(vpps_set_pointer_mode(n->h, VPPS_POINTERS_DEVICE, NULL)); }

static vpps_value keep_inputs(const small_network *n) {
    vpps_value kept;
    TEST_OK(vpps_keep_data(n->h, SN_EMBED, VECTORS, inputs, &kept));
    return kept;
}

/* ---------------------------------------------------------------- on any GPU */

TEST_GROUP(GPU_GROUP);

/* Copies n numbers between the host and an array in the device's memory, by a kept value. */
static void copy_array(const small_network *n, bool to_device, float *device, float *host, uint32_t words) {
    vpps_value kept;
    TEST_OK(vpps_set_pointer_mode(n->h, to_device ? VPPS_POINTERS_HOST : VPPS_POINTERS_DEVICE, NULL));
    TEST_OK(vpps_keep_data(n->h, words, 1, to_device ? host : device, &kept));
    TEST_OK(vpps_set_pointer_mode(n->h, to_device ? VPPS_POINTERS_DEVICE : VPPS_POINTERS_HOST, NULL));
    TEST_OK(vpps_read_kept(n->h, kept, to_device ? device : host));
    TEST_OK(vpps_release(n->h, kept));
    device_mode(n);
}

/* Places the step's arrays (values, gradients, slopes) at block `at` of the device's memory. */
static void move_to(step *s, float *at) {
    float *const gradients = at + VPPS_COUNT(s->values), *const given = gradients + VPPS_COUNT(s->gradients);
    for (uint32_t i = 0; i < VECTORS; i++) {
        s->value_outs[i] = at + (size_t)i * APART;
        s->given[i] = s->given[i] ? given + (size_t)i * SN_HIDDEN : NULL;
    }
    for (uint32_t i = 0; i <= VECTORS; i++) s->gradient_outs[i] = gradients + (size_t)i * SN_EMBED;
}

enum { BLOCK = VECTORS * APART + (VECTORS + 1) * SN_EMBED + VECTORS * SN_HIDDEN };

static void expect_results(const step *want, const float *block) {
    for (uint32_t i = 0; i < VECTORS; i++)
        sn_expect_near(block + (size_t)i * APART, want->values + (size_t)i * APART, SN_HIDDEN, 1e-5);
    sn_expect_near(block + VPPS_COUNT(want->values), want->gradients, VPPS_COUNT(want->gradients), 1e-5);
}

TEST(results_are_those_of_arrays_of_the_host) {
    const sn_setting setting = {.device = test_gpu_device(), .optimizer = VPPS_MOMENTUM};
    AT_END(sn_close) small_network a = sn_on(&setting), b = sn_on(&setting);
    float block[BLOCK] = {0}, *at, back[VPPS_COUNT(inputs)];
    vpps_array *array;
    step want, got;
    TEST_FAILS(vpps_array_create(&array, b.h, SIZE_MAX / 4 + 1, &at), VPPS_MEMORY, "floats"); /* 0 bytes, modulo 2^64 */
    TEST_OK(vpps_array_create(&array, b.h, BLOCK, &at));
    memcpy(block + BLOCK - VPPS_COUNT(slopes), slopes, sizeof slopes);
    TEST_OK(vpps_set_pointer_mode(b.h, VPPS_POINTERS_HOST, NULL));
    vpps_value kept = keep_inputs(&b);
    device_mode(&b);
    TEST_OK(vpps_read_kept(b.h, kept, at));
    TEST_OK(vpps_keep_data(b.h, SN_EMBED, VECTORS, at, &kept));
    copy_array(&b, false, at, back, VPPS_COUNT(back));
    ck_assert_mem_eq(back, inputs, sizeof back);
    copy_array(&b, true, at, block, BLOCK);
    for (uint32_t batch = 0; batch < 3; batch++) {
        build(&a, 0, &want);
        build(&b, kept, &got);
        move_to(&got, at);
        run(&a, &want);
        run(&b, &got);
        copy_array(&b, false, at, block, BLOCK);
        expect_results(&want, block);
    }
    build(&a, 0, &want);
    build(&b, kept, &got);
    move_to(&got, at);
    TEST_OK(vpps_forward(a.h, a.g, VECTORS, want.y, want.value_outs));
    TEST_OK(vpps_forward(b.h, b.g, VECTORS, got.y, got.value_outs));
    TEST_OK(vpps_backward(a.h, a.g, vpps_sum_elements(a.g, want.y[0]), REQUEST_OF(&want)));
    TEST_OK(vpps_backward(b.h, b.g, vpps_sum_elements(b.g, got.y[0]), REQUEST_OF(&got)));
    copy_array(&b, false, at, block, BLOCK);
    expect_results(&want, block);
    sn_expect_alike(&a, &b, 1e-5);
    vpps_array_destroy(array);
}

/* ---------------------------------------------------------------- the driver's calls */

TEST_GROUP("pointers", .seconds = 120, .left_out = gpu_left_out());

static char calls[512];
static uint32_t checks_left; /* number of checks of arrays until one fails; 0: none fails */

/* Notes a call with two numbers that its arguments have. */
static void note(const char *what, size_t a, size_t b) {
    const size_t n = strlen(calls);
    snprintf(calls + n, sizeof calls - n, "%s %zu %zu; ", what, a, b);
}

static vpps_status note_order(vpps_driver *d, void *stream, bool theirs_first) {
    note(theirs_first ? "after" : "before", (size_t)(uintptr_t)stream, 0);
    return vpps_driver_simt.order(d, stream, theirs_first);
}

static vpps_status note_copy(vpps_driver *d, const vpps_outside_copy *c) {
    note(c->from ? c->in ? "in" : "out" : "zeros", c->bytes / sizeof(float), c->n);
    return vpps_driver_simt.copy_outside(d, c);
}

static vpps_status note_launch(vpps_driver *d, vpps_kernel *kernel, const vpps_launch_shape *shape,
                               const void *arguments, size_t bytes) {
    note("launch", 0, 0);
    return vpps_driver_simt.launch(d, kernel, shape, arguments, bytes);
}

static vpps_status check_some(vpps_driver *d, const void *array, size_t bytes, const char *what) {
    (void)d, (void)array;
    return checks_left && !--checks_left ? vpps_fail(VPPS_ARGUMENT, "%s: %zu bytes elsewhere", what, bytes) : VPPS_OK;
}

static uint64_t ends; /* end of the arrays' allocation; 0: unknown */

static size_t room_to_end(vpps_driver *d, uint64_t address) {
    (void)d;
    return ends > address ? ends - address : 0;
}

static void watch(const small_network *n) {
    static vpps_driver_table driver;
    vpps_options o = sn_options_on(&on_simt);
    driver = vpps_driver_simt;
    driver.order = note_order;
    driver.copy_outside = note_copy;
    driver.launch = note_launch;
    driver.check_outside = check_some;
    driver.room_outside = room_to_end;
    ends = UINT64_MAX;
    gpu_drive_by(n->h, &driver, &o);
    *calls = 0;
}

static void expect_calls(const char *want) {
    ck_assert_str_eq(calls, want);
    *calls = 0;
}

/* One call copies adjacent values, or vectors at equal distances. */
TEST(copies_are_few_and_in_the_streams_order) {
    AT_END(sn_close) small_network n = sn_on(&on_simt);
    step s;
    watch(&n);
    TEST_OK(vpps_set_pointer_mode(n.h, VPPS_POINTERS_DEVICE, (void *)(uintptr_t)7));
    const vpps_value kept = keep_inputs(&n);
    expect_calls("after 7 0; in 48 1; before 7 0; ");
    build(&n, kept, &s);
    TEST_OK(vpps_step_forward(n.h, n.g, REQUEST_OF(&s)));
    expect_calls("launch 0 0; after 7 0; out 37 4; before 7 0; ");
    TEST_OK(vpps_set_pointer_mode(n.h, VPPS_POINTERS_DEVICE, (void *)(uintptr_t)8));
    TEST_OK(vpps_step_backward(n.h, VECTORS, s.given));
    expect_calls("after 8 0; in 37 2; zeros 37 1; in 37 1; before 8 0; launch 0 0; after 8 0; out 12 4; zeros 12 1; "
                 "before 8 0; ");
    build(&n, kept, &s);
    ends = (uintptr_t)s.value_outs[3]; /* the last value lies in another allocation */
    TEST_OK(vpps_step_forward(n.h, n.g, REQUEST_OF(&s)));
    expect_calls("launch 0 0; after 8 0; out 37 3; out 37 1; before 8 0; ");
    TEST_OK(vpps_step_drop(n.h));
    ends = 0;
    TEST_OK(vpps_step_forward(n.h, n.g, REQUEST_OF(&s)));
    expect_calls("launch 0 0; after 8 0; out 37 1; out 37 1; out 37 1; out 37 1; before 8 0; ");
    TEST_OK(vpps_step_drop(n.h));
    TEST_OK(vpps_set_pointer_mode(n.h, VPPS_POINTERS_HOST, NULL));
    build(&n, kept, &s);
    run(&n, &s);
    expect_calls("launch 0 0; launch 0 0; launch 0 0; ");
}

/* ---------------------------------------------------------------- refusals */

#define REFUSES(after, call, text)                                                                                     \
    checks_left = (after);                                                                                             \
    TEST_FAILS(call, VPPS_ARGUMENT, text);                                                                             \
    ck_assert_uint_eq(checks_left, 0);                                                                                 \
    expect_calls("")

TEST(arrays_elsewhere_are_refused_before_anything_runs) {
    AT_END(sn_close) small_network n = sn_on(&on_simt);
    step s;
    vpps_value kept, other;
    watch(&n);
    device_mode(&n);
    kept = keep_inputs(&n);
    *calls = 0;
    REFUSES(1, vpps_keep_data(n.h, SN_EMBED, VECTORS, inputs, &other), "keep_data: data: 192 bytes elsewhere");
    ck_assert(other == VPPS_NO_VALUE);
    REFUSES(1, vpps_read_kept(n.h, kept, s.values), "read_kept: out: 192 bytes elsewhere");
    build(&n, kept, &s);
    REFUSES(3, vpps_forward(n.h, n.g, VECTORS, s.y, s.value_outs), "forward: outs[2]: 148 bytes elsewhere");
    REFUSES(2, vpps_step_forward(n.h, n.g, REQUEST_OF(&s)), "request: value_outs[1]: 148 bytes elsewhere");
    REFUSES(9, vpps_step_forward(n.h, n.g, REQUEST_OF(&s)), "request: gradient_outs[4]: 48 bytes elsewhere");
    REFUSES(1, vpps_backward(n.h, n.g, vpps_sum_elements(n.g, s.y[0]), REQUEST_OF(&s)), "request: value_outs[0]");
    const vpps_node loss = vpps_sum_elements(n.g, s.y[0]);
    TEST_FAILS(vpps_backward(n.h, n.g, loss, VPPS_REQUEST(.n_values = 1, .values = &loss, .value_outs = s.value_outs)),
               VPPS_ARGUMENT, "the loss, which the host has");
    s.y[1] = 1000000;
    TEST_FAILS(vpps_step_forward(n.h, n.g, REQUEST_OF(&s)), VPPS_ARGUMENT, "1000000");
    build(&n, kept, &s);
    TEST_OK(vpps_step_forward(n.h, n.g, REQUEST_OF(&s)));
    *calls = 0;
    REFUSES(3, vpps_step_backward(n.h, VECTORS, s.given), "step_backward: gradients[3]: 148 bytes elsewhere");
    TEST_OK(vpps_step_backward(n.h, VECTORS, s.given)); /* the step is still open */
}

TEST(modes_and_devices_are_checked) {
    AT_END(sn_close) small_network n = sn_on(&on_cpu);
    vpps_array *array;
    float *at;
    TEST_FAILS(vpps_set_pointer_mode(n.h, VPPS_POINTERS_DEVICE, NULL), VPPS_ARGUMENT,
               "device cpu: has no memory of its own; expected cuda");
    TEST_FAILS(vpps_array_create(&array, n.h, 4, &at), VPPS_ARGUMENT, "device cpu: has no memory");
    TEST_FAILS(vpps_set_pointer_mode(n.h, (vpps_pointer_mode)7, NULL), VPPS_ARGUMENT, "7; expected VPPS_POINTERS_HOST");
    TEST_OK(vpps_set_pointer_mode(n.h, VPPS_POINTERS_HOST, NULL));
    const vpps_value kept = keep_inputs(&n);
    vpps_graph_clear(n.g);
    ck_assert_uint_eq(vpps_kept_columns(n.g, n.h, kept) + VECTORS, vpps_constant(n.g, 1, 1, 0));
    ck_assert_uint_eq(vpps_kept_columns(n.g, n.h, kept + 1), VPPS_NO_NODE);
    TEST_FAILS(vpps_graph_status(n.g), VPPS_STATE, "released");
}

TEST(arrays_outlive_their_handle) {
    small_network n = sn_on(&on_simt);
    vpps_array *array;
    float *at, want[VPPS_COUNT(inputs)];
    device_mode(&n);
    TEST_OK(vpps_array_create(&array, n.h, VPPS_COUNT(inputs), &at));
    TEST_OK(vpps_read_kept(n.h, keep_inputs(&n), at));
    TEST_OK(vpps_set_pointer_mode(n.h, VPPS_POINTERS_HOST, NULL));
    TEST_OK(vpps_read_kept(n.h, keep_inputs(&n), want));
    sn_close(&n);
    ck_assert_mem_eq(at, want, sizeof want);
    vpps_array_destroy(array);
    vpps_array_destroy(NULL);
}

/* The norm of the parameters' gradients reveals gradients that are not finite. */
TEST(gradients_that_are_not_finite_skip_the_update) {
    AT_END(sn_close) small_network n = sn_on(&on_simt);
    step s;
    device_mode(&n);
    build(&n, keep_inputs(&n), &s);
    TEST_OK(vpps_step_forward(n.h, n.g, REQUEST_OF(&s)));
    float wrong[SN_HIDDEN] = {[5] = NAN};
    s.given[1] = wrong;
    TEST_OK(vpps_step_backward(n.h, VECTORS, s.given));
    TEST_OK(vpps_update(n.h));
    TEST_FAILS(vpps_sync_latest_loss(n.h, NULL), VPPS_NONFINITE, "norm");
}

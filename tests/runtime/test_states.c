/* test_states.c - the optimiser's state: which optimiser it belongs to, how often it was updated, who takes it over. */
#include "common/folder.h"
#include "graph/model.h"
#include "runtime/small_network.h"

static const sn_setting settings[] = {
    {.device = "cpu", .vps = 1, .optimizer = VPPS_ADAM, .caller = VPPS_CALLER_WORKS},
    {.device = "cpu", .vps = 3, .optimizer = VPPS_ADAMW, .clip = 1e9f, .gradients = VPPS_GRADIENTS_ACCUMULATE},
    {.device = "simt", .vps = 2, .optimizer = VPPS_ADAM},
    {.device = "simt", .vps = 2, .optimizer = VPPS_ADAM, .gradients = VPPS_GRADIENTS_CUBLAS},
};

static void reopen(small_network *n, const vpps_options *o) {
    vpps_handle_destroy(n->h);
    TEST_OK(vpps_handle_create(&n->h, n->model, o));
}

static void copy_values(const small_network *to, const small_network *from) {
    for (uint32_t p = 0; p < SN_PARAMS; p++)
        memcpy(to->model->params[p].values, from->model->params[p].values,
               vpps_param_elems(&to->model->params[p]) * sizeof(float));
}

/* Makes a model with equal values after as many batches, but without optimiser state. */
static small_network without_state(const small_network *from) {
    small_network n = sn_of(1);
    copy_values(&n, from);
    n.model->batches = from->model->batches;
    return n;
}

TEST_GROUP("states", .before_each = (SFun)folder_make, .seconds = 60);

/* A new handle with the same optimiser takes over state; one with another optimiser begins anew. */
TEST_EACH(a_new_handle_takes_over_state_of_its_kind, 0, VPPS_OPTIMIZERS *VPPS_OPTIMIZERS) {
    const vpps_optimizer_kind kind = (vpps_optimizer_kind)(_i / VPPS_OPTIMIZERS),
                              next = (vpps_optimizer_kind)(_i % VPPS_OPTIMIZERS);
    const vpps_options before = sn_options(2, kind), after = sn_options(2, next);
    vpps_options refused = sn_options(2, (vpps_optimizer_kind)((kind + 1u) % VPPS_OPTIMIZERS));
    refused.pool_bytes = 64;
    AT_END(sn_close) small_network a = sn_with(1, &before), b = {.h = NULL};
    sn_train(&a, 0, 4);
    if (kind == next) {
        b = sn_with(1, &before);
        sn_train(&b, 0, 4);
    } else {
        b = without_state(&a);
        TEST_OK(vpps_handle_create(&b.h, b.model, &after));
    }
    vpps_handle_destroy(a.h);
    TEST_FAILS(vpps_handle_create(&a.h, a.model, &refused), VPPS_POOL, "pool"); /* and changes nothing */
    TEST_OK(vpps_handle_create(&a.h, a.model, &after));
    sn_train(&a, 4, 7);
    sn_train(&b, 4, 7);
    ck_assert(models_are_equal(a.model, b.model, true));
}

/* State moves from one device to another. */
TEST(state_moves_between_devices) {
    if (gpu_left_out()) return;
    const vpps_options cpu = sn_options_on(&settings[0]), simt = sn_options_on(&settings[2]);
    AT_END(sn_close) small_network a = sn_with(1, &cpu), b = sn_with(1, &cpu);
    sn_train(&a, 0, 3);
    reopen(&a, &simt);
    sn_train(&a, 3, 6);
    reopen(&a, &cpu);
    sn_train(&a, 6, 9);
    sn_train(&b, 0, 9);
    sn_expect_alike(&a, &b, 1e-3);
    for (uint32_t p = 0; p < SN_PARAMS; p++) ck_assert_uint_eq(a.model->params[p].updates, 9);
}

/* If only the model's values are written, without the state that the handle has, state begins anew. */
SN_EACH(state_that_the_model_lacks_is_zero) {
    AT_END(sn_close) small_network a = sn_on(&settings[_i]), b = sn_on(&settings[_i]);
    sn_train(&a, 0, 3);
    AT_END(sn_close) small_network fresh = without_state(&a);
    for (uint32_t k = 0; k < 3; k++) sn_fb(&b, k);
    TEST_OK(vpps_sync_latest_loss(b.h, NULL));
    copy_values(&b, &a);
    TEST_OK(vpps_write_parameters(b.h)); /* the state was never read */
    const vpps_options o = sn_options_on(&settings[_i]);
    TEST_OK(vpps_handle_create(&fresh.h, fresh.model, &o));
    sn_train(&b, 3, 5);
    sn_train(&fresh, 3, 5);
    ck_assert(models_are_equal(b.model, fresh.model, true));
}

/* ---------------------------------------------------------------- the correction of Adam's means */

typedef enum past { OTHER_OPTIMIZER, FROZEN, FROZEN_IN_PARTS, SKIPPED, STOPPED, PASTS } past;

static void live(small_network *n, const vpps_options *o, past what) {
    vpps_options other = *o;
    const bool freezes = what == FROZEN || what == FROZEN_IN_PARTS;
    other.optimizer.kind = VPPS_ADAGRAD; /* this optimiser leaves a state */
    other.device = "cpu";
    other.gradients = VPPS_GRADIENTS_DEFERRED;
    if (what == OTHER_OPTIMIZER) reopen(n, &other);
    TEST_OK(vpps_freeze(n->model, n->W, freezes));
    TEST_OK(vpps_freeze(n->model, n->E, freezes));
    for (uint32_t k = 0; k < 6; k++) {
        const vpps_node loss = sn_build(n, k, what == SKIPPED || what == STOPPED ? INFINITY : 1);
        const vpps_status expected = what == STOPPED && k % 2 ? VPPS_NONFINITE : VPPS_OK;
        if (what == FROZEN_IN_PARTS)
            sn_parts(n, loss);
        else
            ck_assert_int_eq(vpps_fb(n->h, n->g, loss, NULL), expected); /* no batch follows one that fails */
    }
    TEST_OK(vpps_freeze(n->model, n->W, false));
    TEST_OK(vpps_freeze(n->model, n->E, false));
    if (what == OTHER_OPTIMIZER) TEST_OK(vpps_read_parameters(n->h));
    if (what == OTHER_OPTIMIZER) reopen(n, o);
}

/* Whatever the model's past, Adam's first step of a weight has the length of the learning rate. */
GPU_EACH(the_first_step_is_a_first_step, (SN_HERE - !gpu_left_out()) * PASTS, SN_HERE *PASTS) {
    const sn_setting *s = &settings[_i / PASTS];
    vpps_options o = sn_options_on(s);
    o.optimizer.weight_decay = 0;
    o.nonfinite = _i % PASTS == SKIPPED ? VPPS_NONFINITE_SKIP : VPPS_NONFINITE_STOP;
    AT_END(sn_close) small_network n = sn_with(1, &o);
    live(&n, &o, (past)(_i % PASTS));
    size_t count;
    FREED float *before = handle_values(n.model, n.h, &count);
    sn_step(&n, 7);
    FREED float *after = handle_values(n.model, n.h, &count);
    size_t at = 0;
    for (uint32_t p = 0; p < SN_PARAMS; p++) {
        float most = 0;
        for (size_t end = at + vpps_param_elems(&n.model->params[p]); at < end; at++)
            most = fmaxf(most, fabsf(after[at] - before[at]));
        if (p == n.W || p == n.E)
            ck_assert_msg(fabsf(most / o.optimizer.lr - 1) < 1e-3f, "%s moves by %g", n.model->params[p].name,
                          (double)most);
    }
}

/* Queued batches, and one that is not applied, leave the count as it is. */
SN_EACH(skipped_batches_do_not_count) {
    vpps_options o = sn_options_on(&settings[_i]);
    o.nonfinite = VPPS_NONFINITE_SKIP;
    AT_END(sn_close) small_network a = sn_with(1, &o), b = sn_with(1, &o);
    for (uint32_t k = 0; k < 8; k++) {
        const bool skipped = k == 2 || k == 3 || k == 6;
        if (skipped) b.model->batches++;
        if (!skipped) sn_fb(&b, k);
        TEST_OK(vpps_fb(a.h, a.g, sn_build(&a, k, skipped ? NAN : 1), NULL));
    }
    sn_expect_alike(&a, &b, 0);
    ck_assert_uint_eq(a.model->params[a.W].updates, 5);
}

/* ---------------------------------------------------------------- checkpoints */

static void train_unequally(small_network *n) {
    TEST_OK(vpps_freeze(n->model, n->W, true));
    sn_train(n, 0, 3);
    TEST_OK(vpps_freeze(n->model, n->W, false));
    sn_train(n, 3, 5);
}

/* Replaces a text in the checkpoint's header, which its checksum does not cover, by a text of equal length. */
static void edit(const char *path, const char *from, const char *to) {
    size_t bytes;
    FREED char *whole = folder_load(path, &bytes);
    char *at = memmem(whole, bytes, from, strlen(from));
    ck_assert_ptr_nonnull(at);
    memcpy(at, to, strlen(to));
    folder_store(path, whole, bytes);
}

TEST(a_checkpoint_has_the_counts) {
    const vpps_options o = sn_options(2, VPPS_ADAM);
    AT_END(sn_close) small_network a = sn_with(1, &o), b = sn_with(2, &o);
    char path[4096];
    snprintf(path, sizeof path, "%s", folder_path("a.safetensors"));
    train_unequally(&a);
    TEST_OK(vpps_save(a.h, path, NULL, 0));
    sn_train(&a, 5, 8);
    sn_train(&b, 0, 1);
    TEST_OK(vpps_load(b.h, path));
    ck_assert_uint_eq(b.model->params[b.W].updates, 2);
    ck_assert_uint_eq(b.model->params[b.U].updates, 5);
    sn_train(&b, 5, 8);
    ck_assert(models_are_equal(a.model, b.model, true));

    edit(path, " b_c\\n", " b_d\\n");
    TEST_FAILS(vpps_load(b.h, path), VPPS_FORMAT, "vpps.updates has no number of parameter b_c");
    edit(path, "vpps.updates", "vpps.updated"); /* in a file without counts, all batches count */
    TEST_OK(vpps_load(b.h, path));
    for (uint32_t p = 0; p < SN_PARAMS; p++) ck_assert_uint_eq(b.model->params[p].updates, 5);
}

int main(void) {
    setenv("VPPS_LIBCUBLAS", test_beside("fake_cublas.so"), 1);
    return test_main("states");
}

/* learning_tests.c - on the CPU, networks overfit one batch; on the GPU or software SIMT, their losses agree with the reference's. */
#include "common/gpu_tests.h"
#include "common/reference.h"
#include "fixture.h"

#include "runtime/simt/fiber.h"

TEST_GROUP("learning", .seconds = 60);

TEST_EACH(one_batch_is_overfitted, 0, case_count()) {
    enum { MOST_STEPS = 400 };
    AT_END(fixture_close) fixture f;
    vpps_options o = options_for("cpu");
    o.vps = 1;
    o.verify = false;
    o.optimizer =
        (vpps_optimizer){.kind = VPPS_ADAM, .lr = 0.01f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .clip = 5};
    fixture_open(&f, _i, NULL, 16, 16, 0);
    OWNED(vpps_handle) *h = new_handle(f.model, &o);
    float first = 0, loss = 0;
    uint32_t step = 0;
    for (; step < MOST_STEPS && !(step && loss < 0.01f); step++) {
        loss = train_batch(h, f.g, build(&f, loss_heads(&f)));
        if (!step) first = loss;
    }
    ck_assert_msg(loss < 0.01f && first > 0.5f, "%s: the loss of an example goes from %g to %g in %u steps", f.name,
                  (double)first, (double)loss, step);
}

enum { BATCHES = 3, HIDDEN = 12, EMBED = 10 };

static const vpps_optimizer sgd = {.kind = VPPS_SGD, .lr = 0.1f};

/* Computes the losses in double precision. */
static void train_reference(int i, double losses[BATCHES]) {
    AT_END(fixture_close) fixture f;
    fixture_open(&f, i, NULL, HIDDEN, EMBED, 0);
    OWNED(ref_model) *m = ref_model_create(f.model);
    for (uint32_t k = 0; k < BATCHES; k++) {
        const vpps_node loss = build(&f, loss_heads(&f));
        OWNED(ref_run) *r = need(ref_forward(f.g, m, &(ref_mode){.training = true}));
        ref_backward(r, m, loss);
        losses[k] = r->values[r->first[loss]];
        ref_step(m, r, &sgd);
    }
}

/* Software SIMT has its own stacks, which ThreadSanitizer cannot follow: checks that it says so. */
static bool is_refused(const char *device, vpps_status status) {
    if (!VPPS_SIMT_TSAN || strcmp(device, "simt") != 0) return false;
    ck_assert_msg(status == VPPS_DEVICE && strstr(vpps_error_message(), "ThreadSanitizer"), "%s: %s",
                  vpps_status_name(status), vpps_error_message());
    TEST_LEFT_OUT("the_gpu_agrees: software SIMT cannot be followed by ThreadSanitizer");
    return true;
}

static void train_on(const char *device, int i, const double want[BATCHES]) {
    AT_END(fixture_close) fixture f;
    OWNED(vpps_handle) *h = NULL;
    vpps_options o = options_for(device);
    o.optimizer = sgd;
    fixture_open(&f, i, NULL, HIDDEN, EMBED, 0);
    const vpps_status status = vpps_handle_create(&h, f.model, &o);
    const bool refused = is_refused(device, status);
    if (!refused) ck_assert_msg(status == VPPS_OK, "%s: %s", device, vpps_error_message());
    for (uint32_t k = 0; !refused && k < BATCHES; k++) {
        const float got = train_batch(h, f.g, build(&f, loss_heads(&f)));
        ck_assert_msg(fabs((double)got - want[k]) <= 1e-5 * want[k], "%s on %s, batch %u: loss %.8g, not %.8g", f.name,
                      device, k, (double)got, want[k]);
    }
}

/* Software SIMT compiles a kernel for each case, which takes long: it runs one case of each network; make test, of every sixth one. */
GPU_EACH(the_gpu_agrees, case_count() / 6, case_count()) {
    double want[BATCHES];
    if (!case_at(_i).fullest) return;
    train_reference(_i, want);
    setenv("VPPS_SIMT_SMS", "2", 1);
    train_on(test_gpu_device(), _i, want);
}

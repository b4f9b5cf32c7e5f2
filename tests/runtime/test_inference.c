/* test_inference.c - handles for inference in other threads than the trainer's see parameters as they are after whole batches. */
#include "common/gpu_tests.h"
#include "runtime/simt/fiber.h"
#include "runtime/small_network.h"

#include <pthread.h>
#include <stdatomic.h>

enum { READERS = 3, BATCHES = 30, MOST_SEEN = 4000, OUTPUTS = SN_CLASSES };

typedef struct answer {
    float of[OUTPUTS];
} answer;

typedef struct world {
    small_network n;
    vpps_handle *trainer;
    const vpps_options *options;
    uint32_t batches;
    answer published[BATCHES + 1]; /* what the trainer computes itself */
    atomic_bool done;
} world;

typedef struct reading {
    world *w;
    vpps_handle *h;
    answer seen[MOST_SEEN];
    uint32_t n;
} reading;

/* Computes the answer to one fixed question. */
static answer ask(const small_network *n, vpps_handle *h) {
    answer a;
    vpps_graph_clear(n->g);
    const vpps_node scores = sn_scores(n, sn_chain(n, &(uint64_t){5}, 4));
    TEST_OK(vpps_forward(h, n->g, 1, &scores, (float *[]){a.of}));
    return a;
}

static void *read_on(void *argument) {
    reading *r = argument;
    small_network own = r->w->n;
    OWNED(vpps_graph) *g = own.g = new_graph(own.model);
    for (bool last = false; !last && r->n < MOST_SEEN;) {
        last = atomic_load(&r->w->done);
        r->seen[r->n++] = ask(&own, r->h);
    }
    return NULL;
}

static void *train_on(void *argument) {
    world *w = argument;
    for (uint32_t batch = 1; batch <= w->batches; batch++) {
        TEST_OK(vpps_fb(w->trainer, w->n.g, sn_build(&w->n, batch, 1), NULL));
        w->published[batch] = ask(&w->n, w->trainer);
        TEST_OK(vpps_publish_parameters(w->trainer));
    }
    atomic_store(&w->done, true);
    return NULL;
}

/* Checks that every answer is one of the trainer's, and that none is older than the preceding one. */
static void check_answers(const world *w, const reading *r) {
    uint32_t version = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        while (version <= w->batches && memcmp(&w->published[version], &r->seen[i], sizeof(answer)) != 0) version++;
        ck_assert_msg(version <= w->batches, "answer %u of %u is none that the trainer gave, or an older one", i, r->n);
    }
    if (r->n < MOST_SEEN) ck_assert_uint_eq(version, w->batches);
}

static void run_all(const char *device, uint32_t vps, uint32_t batches) {
    static reading readers[READERS];
    pthread_t threads[READERS], trainer;
    vpps_options o = sn_options(vps, VPPS_ADAM);
    world w = {.options = &o, .batches = batches};
    o.device = device;
    o.no_tuning = true;
    o.verify = false;
    o.watchdog_ms = 60000;
    w.n = sn_of(1);
    TEST_OK(vpps_handle_create(&w.trainer, w.n.model, &o));
    TEST_OK(vpps_publish_parameters(w.trainer)); /* no handle reads them yet */
    w.published[0] = ask(&w.n, w.trainer);
    for (uint32_t i = 0; i < READERS; i++) {
        readers[i] = (reading){.w = &w};
        TEST_OK(vpps_handle_create_inference(&readers[i].h, w.trainer, &o));
    }
    ck_assert_int_eq(pthread_create(&trainer, NULL, train_on, &w), 0);
    for (uint32_t i = 0; i < READERS; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, read_on, &readers[i]), 0);
    pthread_join(trainer, NULL);
    for (uint32_t i = 0; i < READERS; i++) pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < READERS; i++) check_answers(&w, &readers[i]);
    vpps_handle_destroy(readers[0].h);
    vpps_handle_destroy(w.trainer); /* before the other readers */
    const answer last = ask(&w.n, readers[1].h);
    ck_assert_mem_eq(&last, &w.published[w.batches], sizeof last);
    for (uint32_t i = 1; i < READERS; i++) vpps_handle_destroy(readers[i].h);
    sn_close(&w.n);
}

TEST_GROUP("inference", .seconds = 120);

TEST_EACH(readers_see_whole_batches, 0, 2) { run_all("cpu", 1 + (uint32_t)_i, BATCHES); }

GPU_EACH(readers_see_whole_batches_on_the_gpu_path, 1, 2) {
    if (VPPS_SIMT_TSAN)
        TEST_LEFT_OUT("readers on software SIMT: ThreadSanitizer cannot follow its stacks");
    else
        run_all("simt", 2, _i ? BATCHES : BATCHES / 3);
}

TEST(a_handle_for_inference_trains_nothing) {
    vpps_handle *h, *reader, *other;
    vpps_options o = sn_options(1, VPPS_ADAM);
    AT_END(sn_close) small_network n = sn_of(1);
    TEST_OK(vpps_handle_create(&h, n.model, &o));
    TEST_OK(vpps_handle_create_inference(&reader, h, NULL));
    sn_expect_refused(&n, reader, true, ": the handle is one for inference");
    TEST_FAILS(vpps_handle_create_inference(&other, NULL, NULL), VPPS_ARGUMENT, "no handle");
    TEST_FAILS(vpps_handle_create_inference(NULL, h, NULL), VPPS_ARGUMENT, "out is NULL");
    o.device = "none";
    TEST_FAILS(vpps_handle_create_inference(&other, h, &o), VPPS_DEVICE, "none: unknown");
    TEST_FAILS(vpps_handle_create(&other, n.model, NULL), VPPS_STATE, "has one already");
    vpps_param p;
    TEST_FAILS(vpps_add_vector(n.model, &p, "more", 3, NULL), VPPS_STATE, "has a handle");
    ck_assert_uint_eq(stats_of(reader).batches, 0);
    vpps_handle_destroy(h);
    TEST_OK(vpps_handle_create(&h, n.model, NULL)); /* the model has no handle that trains */
    vpps_handle_destroy(reader);
    vpps_handle_destroy(h);
    TEST_OK(vpps_add_vector(n.model, &p, "more", 3, NULL));
}

/* A value that one handle keeps is unknown to another handle. */
TEST(readers_keep_values_of_their_own) {
    vpps_value v;
    const vpps_options o = sn_options(1, VPPS_ADAM);
    const float data[SN_HIDDEN] = {1};
    float out[SN_HIDDEN], *const outs[] = {out};
    AT_END(sn_close) small_network n = sn_with(1, &o);
    OWNED(vpps_handle) *reader;
    TEST_OK(vpps_handle_create_inference(&reader, n.h, &o));
    TEST_OK(vpps_keep_data(reader, SN_HIDDEN, 1, data, &v));
    vpps_graph_clear(n.g);
    const vpps_node x = vpps_tanh(n.g, vpps_kept(n.g, reader, v));
    TEST_FAILS(vpps_forward(n.h, n.g, 1, &x, outs), VPPS_STATE, "another handle keeps");
    TEST_OK(vpps_forward(reader, n.g, 1, &x, outs));
    ck_assert(out[0] > 0.7f && out[1] == 0);
}

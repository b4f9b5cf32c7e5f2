/* test_trace.c - a trace has whole batches, phases and tasks, changes no bit, and has a limit. bench_host measures its cost. */
#include "runtime/handle.h"
#include "runtime/small_network.h"

#include <jansson.h>

enum { VPS = 2, BATCHES = 6, CALLER = 1, DEVICE = 2, FIRST_VP = 10 };

static const vpps_caller callers[] = {VPPS_CALLER_WORKS, VPPS_CALLER_FREE};

static vpps_options options_of(uint64_t events) {
    vpps_options o = sn_options(VPS, VPPS_SGD);
    o.verify = false;
    o.trace_events = events;
    return o;
}

static void train(const small_network *n, uint32_t batches) {
    for (uint32_t k = 0; k < batches; k++) {
        TEST_OK(vpps_trace_begin(n->h, "build"));
        const vpps_node node = sn_build(n, k, 1);
        TEST_OK(vpps_trace_end(n->h));
        TEST_OK(vpps_fb(n->h, n->g, node, NULL));
    }
    TEST_OK(vpps_sync_latest_loss(n->h, NULL));
}

static json_t *read_trace(vpps_handle *h) {
    FILE *file = need(tmpfile());
    json_error_t error;
    TEST_OK(vpps_trace_write(h, file));
    rewind(file);
    json_t *trace = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    ck_assert_msg(trace != NULL, "line %d: %s", error.line, error.text);
    return trace;
}

static const char *text_of(const json_t *event, const char *key) {
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

/* Returns a time in nanoseconds: the file has three decimals of a microsecond. */
static int64_t ns_of(const json_t *event, const char *key) {
    const json_t *number = json_object_get(event, key);
    ck_assert_msg(json_is_number(number), "an event has no number \"%s\"", key);
    return llround(json_number_value(number) * 1e3);
}

static bool is_on(const json_t *event, uint32_t track) {
    return !strcmp(text_of(event, "ph"), "X") && json_integer_value(json_object_get(event, "tid")) == track;
}

/* Counts the track's spans with this name (category NULL) or this category. */
static uint32_t count(const json_t *trace, uint32_t track, const char *name, const char *category) {
    uint32_t n = 0;
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        if (!is_on(event, track)) continue;
        n += category ? !strcmp(text_of(event, "cat"), category) : !strcmp(text_of(event, "name"), name);
    }
    return n;
}

/* Checks that every span of a track lies inside the spans that are open at its begin, which the file lists before it. */
static void expect_nested(const json_t *trace, uint32_t track) {
    int64_t ends[VPPS_OPEN_SPANS + 8] = {INT64_MAX}; /* the batch's own spans are added */
    uint32_t depth = 0;
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        if (!is_on(event, track)) continue;
        const int64_t begin = ns_of(event, "ts"), end = begin + ns_of(event, "dur");
        while (depth && begin >= ends[depth]) depth--;
        ck_assert_msg(end <= ends[depth], "%s ends %lld ns after what it lies in", text_of(event, "name"),
                      (long long)(end - ends[depth]));
        const char *kind = text_of(event, "cat");
        if (track >= FIRST_VP) {
            const uint32_t expected = !strcmp(kind, "batch")                            ? 0
                                      : !strcmp(kind, "phase") || !strcmp(kind, "wait") ? 1
                                                                                        : 2;
            ck_assert_msg(depth == expected, "%s %s at depth %u", kind, text_of(event, "name"), depth);
        }
        ck_assert_uint_lt(depth + 1, VPPS_COUNT(ends));
        ends[++depth] = end;
    }
}

TEST_EACH(holds_what_ran, 0, 2) {
    vpps_options o = options_of(100000);
    o.caller = callers[_i];
    AT_END(sn_close) small_network n = sn_with(1, &o);
    train(&n, BATCHES);
    float value[SN_CLASSES], *out = value;
    vpps_graph_clear(n.g);
    const vpps_node logits = vpps_affine1(n.g, n.b_c, n.C, vpps_parameter(n.g, n.b));
    TEST_OK(vpps_forward(n.h, n.g, 1, &logits, &out));

    json_auto_t *trace = read_trace(n.h);
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(trace, "otherData"), "batches")), BATCHES + 1);
    static const char *const by_caller[] = {"build", "schedule", "launch"};
    for (int i = 0; i < 3; i++) {
        const uint32_t wanted = BATCHES + (i > 0);
        ck_assert_msg(count(trace, CALLER, by_caller[i], NULL) == wanted, "%s: not %u times", by_caller[i], wanted);
    }
    ck_assert_uint_gt(count(trace, CALLER, "wait for device", NULL), 0);
    ck_assert_uint_eq(count(trace, DEVICE, NULL, "batch"), BATCHES + 1);
    ck_assert_uint_eq(count(trace, DEVICE, "batch 1", NULL), 1);
    expect_nested(trace, CALLER);
    for (uint32_t v = 0; v < VPS; v++) {
        const uint32_t track = FIRST_VP + v;
        expect_nested(trace, track);
        ck_assert_uint_eq(count(trace, track, NULL, "batch"), BATCHES + 1);
        ck_assert_uint_eq(count(trace, track, "update", NULL), BATCHES);
        ck_assert_uint_eq(count(trace, track, "forward", NULL), 1);
        ck_assert_uint_ge(count(trace, track, NULL, "stage"), 2 * BATCHES);
        ck_assert_uint_ge(count(trace, track, NULL, "gradients"), BATCHES);
        /* no wait follows the last phase */
        ck_assert_uint_ge(count(trace, track, NULL, "phase"), count(trace, track, NULL, "wait"));
        ck_assert_uint_ge(count(trace, track, NULL, "wait"), BATCHES);
    }
}

TEST(changes_no_bit) {
    small_network n[2];
    for (int i = 0; i < 2; i++) {
        const vpps_options o = options_of(i ? 100000 : 0);
        n[i] = sn_with(1, &o);
        train(&n[i], BATCHES);
    }
    sn_expect_alike(&n[0], &n[1], 0);
    for (int i = 0; i < 2; i++) sn_close(&n[i]);
}

/* For every limit up to what a run needs: whole batches, no more events than the limit, and the number of batches left out. */
TEST(has_a_limit) {
    for (uint64_t limit = 1; limit < 700; limit += 37) {
        const vpps_options o = options_of(limit);
        AT_END(sn_close) small_network n = sn_with(1, &o);
        train(&n, BATCHES);
        json_auto_t *trace = read_trace(n.h);
        const json_t *about = json_object_get(trace, "otherData");
        const json_int_t noted = json_integer_value(json_object_get(about, "batches"));
        ck_assert_int_eq(noted + json_integer_value(json_object_get(about, "batches_left_out")), BATCHES);
        uint64_t events = n.h->trace->n_launches;
        for (uint32_t v = 0; v < VPS; v++) {
            events += n.h->trace->tracks[v].n;
            ck_assert_int_eq(count(trace, FIRST_VP + v, NULL, "batch"), noted);
            ck_assert_int_eq(count(trace, FIRST_VP + v, "update", NULL), noted); /* the last task */
        }
        ck_assert_uint_le(events, limit);
    }
}

TEST(is_off_unless_asked_for) {
    const vpps_options o = options_of(0);
    AT_END(sn_close) small_network n = sn_with(1, &o);
    train(&n, 2); /* begins and ends the trace's parts */
    ck_assert_ptr_null(n.h->trace);
    ck_assert_ptr_null(n.h->device->trace);
    TEST_OK(vpps_trace_end(n.h));
    TEST_FAILS(vpps_trace_write(n.h, stdout), VPPS_STATE, "trace_events");
}

TEST(wrong_calls) {
    const vpps_options o = options_of(1000);
    AT_END(sn_close) small_network n = sn_with(1, &o);
    TEST_FAILS(vpps_trace_end(n.h), VPPS_STATE, "nothing to end");
    TEST_FAILS(vpps_trace_begin(n.h, NULL), VPPS_ARGUMENT, "name");
    for (int i = 0; i < VPPS_OPEN_SPANS; i++)
        TEST_OK(vpps_trace_begin(n.h, "a name of more than thirty-one characters"));
    TEST_FAILS(vpps_trace_begin(n.h, "one more"), VPPS_STATE, "one more");
    for (int i = 0; i < VPPS_OPEN_SPANS; i++) TEST_OK(vpps_trace_end(n.h));
    json_auto_t *trace = read_trace(n.h);
    ck_assert_uint_eq(count(trace, CALLER, "a name of more than thirty-one ", NULL), VPPS_OPEN_SPANS);
    expect_nested(trace, CALLER);
    FILE *full = need(fopen("/dev/full", "w"));
    TEST_FAILS(vpps_trace_write(n.h, full), VPPS_IO, "No space");
    fclose(full);
}

/* The file holds names as JSON text, whatever characters they have. */
TEST(any_name) {
    static const char *const names[] = {"a \"quoted\" \\ name", "\xff\xfe"};
    const vpps_options o = options_of(1000);
    AT_END(sn_close) small_network n = sn_with(1, &o);
    for (int i = 0; i < 2; i++) {
        TEST_OK(vpps_trace_begin(n.h, names[i]));
        TEST_OK(vpps_trace_end(n.h));
    }
    json_auto_t *trace = read_trace(n.h);
    ck_assert_uint_eq(count(trace, CALLER, names[0], NULL), 1);
    ck_assert_uint_eq(count(trace, CALLER, "(not UTF-8)", NULL), 1);
}

/* A name that is too long is cut between two characters. */
TEST(long_names) {
    enum { BYTES = 402 };
    char name[BYTES + 1] = "", kept[32] = "";
    for (size_t i = 0; i < BYTES; i += 3) memcpy(name + i, "\xe2\x82\xac", 4);
    memcpy(kept, name, 30); /* of 31 bytes */
    AT_END(sn_close) small_network n = sn_of(1);
    vpps_graph *r = begin_cell(n.model, name);
    TEST_OK(vpps_scatter(r, vpps_lookup(r, n.E, vpps_pull_index(r))));
    const vpps_cell cell = end_cell(r);
    const vpps_options o = options_of(1000);
    vpps_handle *h = n.h = new_handle(n.model, &o);
    TEST_OK(vpps_trace_begin(h, name));
    TEST_OK(vpps_trace_end(h));
    const uint32_t word = 1;
    const vpps_vertex v = APPLY(n.g, cell, INDICES(1, &word));
    TEST_OK(vpps_fb(h, n.g, vpps_sum_elements(n.g, vpps_scattered(n.g, v, 0)), NULL));
    json_auto_t *trace = read_trace(h);
    ck_assert_uint_eq(count(trace, CALLER, kept, NULL), 1);
    uint32_t stages = 0;
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        ck_assert_ptr_null(strstr(text_of(event, "name"), "not UTF-8"));
        if (strcmp(text_of(event, "cat"), "stage") != 0 || strncmp(text_of(event, "name"), kept, 30) != 0) continue;
        ck_assert_ptr_nonnull(strstr(text_of(event, "name"), "\xe2\x82\xac, "));
        stages++;
    }
    ck_assert_uint_gt(stages, 0);
}

/* One virtual processor runs a chain: the others have no vertices of a level, do not wait, and nobody waits for them. */
TEST(who_has_no_part_of_a_chain_does_not_wait) {
    enum { CHAIN = 100, FEW = 10 };
    const vpps_options o = options_of(100000);
    AT_END(sn_close) small_network n = sn_of(1);
    vpps_graph *r = begin_cell(n.model, "chain");
    const vpps_node word = vpps_lookup(r, n.E, vpps_pull_index(r));
    TEST_OK(vpps_scatter(r, vpps_tanh(r, vpps_add(r, word, vpps_gather(r, 0, 0, SN_EMBED, 1)))));
    const vpps_cell cell = end_cell(r);
    OWNED(vpps_handle) *h = new_handle(n.model, &o);
    const vpps_node begin = vpps_lookup(n.g, n.E, 0);
    vpps_vertex v = vpps_source(n.g, 1, &begin);
    for (uint32_t i = 0; i < CHAIN; i++) {
        const uint32_t one = 1;
        v = APPLY(n.g, cell, CHILDREN(1, &v), INDICES(1, &one));
    }
    TEST_OK(vpps_fb(h, n.g, vpps_sum_elements(n.g, vpps_scattered(n.g, v, 0)), NULL));
    json_auto_t *trace = read_trace(h);
    uint32_t waiting = 0;
    for (uint32_t k = 0; k < VPS; k++) waiting += count(trace, FIRST_VP + k, NULL, "wait") > FEW;
    ck_assert_uint_eq(waiting, 1);
}

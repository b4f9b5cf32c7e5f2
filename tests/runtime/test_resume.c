/* test_resume.c - checkpoints of a run: what continues from one is the run itself, to the last bit; what cannot be
 * loaded changes nothing. */
#include "common/testing.h"
#include "graph/model.h"
#include "runtime/small_network.h"

#include <stdio.h>
#include <unistd.h>

static char folder[64];
static char *path_of(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/vpps-resume-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}
static void remove_folder(void) {
    static const char *const names[] = {"a.safetensors", "b.safetensors", "cut.safetensors"};
    for (size_t i = 0; i < VPPS_COUNT(names); i++) unlink(path_of(names[i]));
    rmdir(folder);
}

static void train(const small_network *n, vpps_handle *h, uint32_t first, uint32_t end) {
    for (uint32_t k = first; k < end; k++) TEST_OK(vpps_fb(h, n->g, sn_build(n, k, 1), NULL));
    TEST_OK(vpps_read_parameters(h));
}

static bool equal(const small_network *a, const small_network *b) {
    bool same = true;
    for (uint32_t p = 0; p < SN_PARAMS; p++) {
        const vpps_parameter_data *x = &a->model->params[p], *y = &b->model->params[p];
        const size_t bytes = vpps_param_elems(x) * sizeof(float);
        same &= !memcmp(x->values, y->values, bytes);
        for (int s = 0; s < VPPS_MAX_STATES; s++) {
            ck_assert_int_eq(!x->states[s], !y->states[s]);
            if (x->states[s]) same &= !memcmp(x->states[s], y->states[s], bytes);
        }
    }
    return same;
}

START_TEST(a_resumed_run_gives_the_same_bits)
    {
        vpps_options o = sn_options(2 + _i % 2, (vpps_optimizer_kind)_i);
        o.seed = 5;
        o.gradients = _i % 2 ? VPPS_GRADIENTS_ACCUMULATE : VPPS_GRADIENTS_DEFERRED;
        small_network whole, again;
        vpps_handle *hw, *ha;
        sn_open(&whole, 1);
        sn_open(&again, 2); /* other initial values */
        TEST_OK(vpps_handle_create(&hw, whole.model, &o));
        train(&whole, hw, 0, 7);
        const vpps_metadata notes[] = {{"epoch", "3"}, {"note", "a \"quoted\" \xc3\xa9"}};
        TEST_OK(vpps_save(hw, path_of("a.safetensors"), notes, 2));
        train(&whole, hw, 7, 14);

        o.seed = 99; /* the checkpoint's dropout goes on, not this one's */
        TEST_OK(vpps_handle_create(&ha, again.model, &o));
        train(&again, ha, 20, 23); /* loading forgets what was before */
        TEST_OK(vpps_load(ha, path_of("a.safetensors")));
        train(&again, ha, 7, 14);
        ck_assert_msg(equal(&whole, &again), "the resumed run differs");

        char *text;
        TEST_OK(vpps_checkpoint_metadata(path_of("a.safetensors"), "note", &text));
        ck_assert_str_eq(text, notes[1].value);
        free(text);
        TEST_OK(vpps_checkpoint_metadata(path_of("a.safetensors"), "absent", &text));
        ck_assert_ptr_null(text);
        vpps_stats stats = {.size = sizeof stats};
        TEST_OK(vpps_handle_stats(ha, &stats));
        ck_assert_msg(stats.batches == 14, "the model has seen %llu batches, not 14",
                      (unsigned long long)stats.batches);
        vpps_handle_destroy(hw);
        vpps_handle_destroy(ha);
        sn_close(&whole);
        sn_close(&again);
    }
END_TEST

/* Parameters that are added after loading begin as they would have. */
START_TEST(initialisers_go_on)
    {
        small_network whole, again;
        vpps_handle *h;
        vpps_param more;
        const vpps_options o = sn_options(1, VPPS_SGD);
        float *values[2];
        sn_open(&whole, 1);
        TEST_OK(vpps_handle_create(&h, whole.model, &o));
        train(&whole, h, 0, 1);
        TEST_OK(vpps_save(h, path_of("a.safetensors"), NULL, 0));
        vpps_handle_destroy(h);
        TEST_OK(vpps_add_matrix(whole.model, &more, "more", SN_HIDDEN, SN_EMBED, NULL));
        values[0] = vpps_param_values(whole.model, more);
        for (uint64_t seed = 1; seed <= 2; seed++) { /* the model's own seed, and another */
            sn_open(&again, seed);
            TEST_OK(vpps_handle_create(&h, again.model, &o));
            TEST_OK(vpps_load(h, path_of("a.safetensors")));
            vpps_handle_destroy(h);
            TEST_OK(vpps_add_matrix(again.model, &more, "more", SN_HIDDEN, SN_EMBED, NULL));
            values[1] = vpps_param_values(again.model, more);
            ck_assert_msg(!memcmp(values[0], values[1], (size_t)SN_HIDDEN * SN_EMBED * sizeof(float)),
                          "seed %u: other values", (unsigned)seed);
            sn_close(&again);
        }
        sn_close(&whole);
    }
END_TEST

/* State that does not fit the optimiser starts at zero. */
START_TEST(another_optimizer_starts_afresh)
    {
        vpps_options o = sn_options(2, VPPS_ADAM);
        small_network a, b;
        vpps_handle *h;
        sn_open(&a, 1);
        TEST_OK(vpps_handle_create(&h, a.model, &o));
        train(&a, h, 0, 5);
        TEST_OK(vpps_save(h, path_of("a.safetensors"), NULL, 0));
        vpps_handle_destroy(h);
        sn_open(&b, 2);
        o.optimizer.kind = VPPS_MOMENTUM;
        TEST_OK(vpps_handle_create(&h, b.model, &o));
        train(&b, h, 0, 3);
        TEST_OK(vpps_load(h, path_of("a.safetensors")));
        TEST_OK(vpps_read_parameters(h));
        for (uint32_t p = 0; p < SN_PARAMS; p++) {
            const vpps_parameter_data *x = &a.model->params[p], *y = &b.model->params[p];
            ck_assert(!memcmp(x->values, y->values, vpps_param_elems(x) * sizeof(float)));
            for (size_t e = 0; y->states[0] && e < vpps_param_elems(y); e++) ck_assert_float_eq(y->states[0][e], 0);
        }
        vpps_handle_destroy(h);
        sn_close(&a);
        sn_close(&b);
    }
END_TEST

static void cut(const char *from, const char *to, long bytes) {
    char buffer[4096];
    char from_path[128];
    snprintf(from_path, sizeof from_path, "%s", path_of(from));
    FILE *in = fopen(from_path, "rb"), *out = fopen(path_of(to), "wb");
    ck_assert(in && out);
    while (bytes > 0) {
        const size_t n = fread(buffer, 1, bytes < 4096 ? (size_t)bytes : 4096, in);
        if (!n) break;
        fwrite(buffer, 1, n, out);
        bytes -= (long)n;
    }
    fclose(in);
    fclose(out);
}

START_TEST(a_failed_load_changes_nothing)
    {
        const vpps_options o = sn_options(2, VPPS_ADAM);
        small_network n, witness;
        vpps_handle *h, *hw, *ho;
        sn_open(&n, 1);
        sn_open(&witness, 1);
        TEST_OK(vpps_handle_create(&h, n.model, &o));
        TEST_OK(vpps_handle_create(&hw, witness.model, &o));

        /* another model: one parameter of other shape, the rest alike */
        vpps_model *other;
        vpps_param p;
        TEST_OK(vpps_model_create(&other, 1));
        TEST_OK(vpps_add_lookup(other, &p, "E", SN_WORDS, SN_EMBED, 1, NULL));
        TEST_OK(vpps_add_matrix(other, &p, "W", SN_HIDDEN, SN_EMBED, NULL));
        TEST_OK(vpps_add_matrix(other, &p, "U", SN_HIDDEN, SN_HIDDEN, NULL));
        TEST_OK(vpps_add_vector(other, &p, "b", SN_HIDDEN, NULL));
        TEST_OK(vpps_add_matrix(other, &p, "C", SN_CLASSES + 1, SN_HIDDEN, NULL));
        TEST_OK(vpps_handle_create(&ho, other, &o));
        TEST_OK(vpps_save(ho, path_of("a.safetensors"), NULL, 0));
        vpps_handle_destroy(ho);
        vpps_model_destroy(other);
        TEST_OK(vpps_save(h, path_of("b.safetensors"), NULL, 0));

        for (uint32_t k = 0; k < 10; k++) {
            TEST_OK(vpps_fb(h, n.g, sn_build(&n, k, 1), NULL));
            TEST_OK(vpps_fb(hw, witness.g, sn_build(&witness, k, 1), NULL));
            if (k == 2) TEST_FAILS(vpps_load(h, path_of("a.safetensors")), VPPS_FORMAT, "C");
            if (k == 3) TEST_FAILS(vpps_load(h, path_of("absent.safetensors")), VPPS_IO, "absent");
            if (k >= 4 && k < 8) { /* within the header, the data, and one byte short */
                static const long sizes[] = {4, 200, 5000, -1};
                cut("b.safetensors", "cut.safetensors", 1 << 30);
                FILE *f = fopen(path_of("cut.safetensors"), "rb");
                ck_assert_ptr_nonnull(f);
                fseek(f, 0, SEEK_END);
                const long whole = ftell(f);
                fclose(f);
                cut("b.safetensors", "cut.safetensors", sizes[k - 4] > 0 ? sizes[k - 4] : whole - 1);
                TEST_FAILS(vpps_load(h, path_of("cut.safetensors")), VPPS_FORMAT, "cut");
            }
            if (k == 8) TEST_FAILS(vpps_save(h, path_of("no such folder/x"), NULL, 0), VPPS_IO, "no such folder");
        }
        TEST_OK(vpps_read_parameters(h));
        TEST_OK(vpps_read_parameters(hw));
        ck_assert_msg(equal(&n, &witness), "a failed vpps_load or vpps_save left a trace");
        vpps_handle_destroy(h);
        vpps_handle_destroy(hw);
        sn_close(&n);
        sn_close(&witness);
    }
END_TEST

int main(void) {
    Suite *s = suite_create("resume");
    TCase *t = tcase_create("resume");
    tcase_add_checked_fixture(t, make_folder, remove_folder);
    tcase_add_loop_test(t, a_resumed_run_gives_the_same_bits, 0, 5);
    tcase_add_test(t, initialisers_go_on);
    tcase_add_test(t, another_optimizer_starts_afresh);
    tcase_add_test(t, a_failed_load_changes_nothing);
    suite_add_tcase(s, t);
    return test_main(s);
}

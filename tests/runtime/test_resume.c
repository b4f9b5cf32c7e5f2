/* test_resume.c - a run resumed from a checkpoint has the same bits; a checkpoint that cannot be loaded changes nothing. */
#include "common/folder.h"
#include "graph/model.h"
#include "runtime/small_network.h"

TEST_GROUP("resume", .before_each = (SFun)folder_make);

TEST_EACH(a_resumed_run_gives_the_same_bits, 0, 5) {
    vpps_options o = sn_options(2 + _i % 2, (vpps_optimizer_kind)_i);
    o.seed = 5;
    o.gradients = _i % 2 ? VPPS_GRADIENTS_ACCUMULATE : VPPS_GRADIENTS_DEFERRED;
    AT_END(sn_close) small_network whole = sn_with(1, &o);
    o.seed = 99;                                           /* the checkpoint's dropout continues, not this seed's */
    AT_END(sn_close) small_network again = sn_with(2, &o); /* other initial values */
    sn_train(&whole, 0, 7);
    const vpps_metadata notes[] = {{"epoch", "3"}, {"note", "a \"quoted\" \xc3\xa9"}};
    TEST_OK(vpps_save(whole.h, folder_path("a.safetensors"), notes, 2));
    sn_train(&whole, 7, 14);
    sn_train(&again, 20, 23); /* loading forgets what was before */
    TEST_OK(vpps_load(again.h, folder_path("a.safetensors")));
    sn_train(&again, 7, 14);
    ck_assert_msg(models_are_equal(whole.model, again.model, true), "the resumed run differs");

    char *text;
    TEST_OK(vpps_checkpoint_metadata(folder_path("a.safetensors"), "note", &text));
    ck_assert_str_eq(text, notes[1].value);
    free(text);
    TEST_OK(vpps_checkpoint_metadata(folder_path("a.safetensors"), "absent", &text));
    ck_assert_ptr_null(text);
    ck_assert_uint_eq(stats_of(again.h).batches, 14);
}

/* Ends the handle; returns the values of a parameter that is added then. */
static const float *values_of_another(small_network *n) {
    vpps_param more;
    vpps_handle_destroy(n->h);
    n->h = NULL;
    TEST_OK(vpps_add_matrix(n->model, &more, "more", SN_HIDDEN, SN_EMBED, NULL));
    return vpps_param_values(n->model, more);
}

/* Parameters that are added after loading begin as they would have without it. */
TEST(initialisers_go_on) {
    const vpps_options o = sn_options(1, VPPS_SGD);
    AT_END(sn_close) small_network whole = sn_with(1, &o);
    sn_train(&whole, 0, 1);
    TEST_OK(vpps_save(whole.h, folder_path("a.safetensors"), NULL, 0));
    const float *values = values_of_another(&whole);
    for (uint64_t seed = 1; seed <= 2; seed++) { /* the model's own seed, then another one */
        AT_END(sn_close) small_network again = sn_with(seed, &o);
        TEST_OK(vpps_load(again.h, folder_path("a.safetensors")));
        ck_assert_mem_eq(values, values_of_another(&again), (size_t)SN_HIDDEN * SN_EMBED * sizeof(float));
    }
}

/* State of another optimiser is not used: state begins at zero. */
TEST(another_optimizer_starts_afresh) {
    vpps_options o = sn_options(2, VPPS_ADAM);
    AT_END(sn_close) small_network a = sn_with(1, &o);
    sn_train(&a, 0, 5);
    TEST_OK(vpps_save(a.h, folder_path("a.safetensors"), NULL, 0));
    o.optimizer.kind = VPPS_MOMENTUM;
    AT_END(sn_close) small_network b = sn_with(2, &o);
    sn_train(&b, 0, 3);
    TEST_OK(vpps_load(b.h, folder_path("a.safetensors")));
    TEST_OK(vpps_read_parameters(b.h));
    ck_assert(models_are_equal(a.model, b.model, false));
    for (uint32_t p = 0; p < SN_PARAMS; p++) {
        const vpps_parameter_data *y = &b.model->params[p];
        for (size_t e = 0; y->states[0] && e < vpps_param_elems(y); e++) ck_assert_float_eq(y->states[0][e], 0);
    }
}

TEST(a_failed_load_changes_nothing) {
    const vpps_options o = sn_options(2, VPPS_ADAM);
    AT_END(sn_close) small_network n = sn_with(1, &o), witness = sn_with(1, &o);

    /* another model: one parameter has another shape, the rest is alike */
    AT_END(sn_close) small_network other = sn_of_sizes(1, SN_WORDS, SN_EMBED, SN_HIDDEN, SN_CLASSES + 1);
    other.h = new_handle(other.model, &o);
    TEST_OK(vpps_save(other.h, folder_path("a.safetensors"), NULL, 0));
    TEST_OK(vpps_save(n.h, folder_path("b.safetensors"), NULL, 0));

    for (uint32_t k = 0; k < 10; k++) {
        sn_fb(&n, k);
        sn_fb(&witness, k);
        if (k == 2) TEST_FAILS(vpps_load(n.h, folder_path("a.safetensors")), VPPS_FORMAT, "C");
        if (k == 3) TEST_FAILS(vpps_load(n.h, folder_path("absent.safetensors")), VPPS_IO, "absent");
        if (k >= 4 && k < 8) { /* cut within the header, within the data, one byte short */
            static const size_t sizes[] = {4, 200, 5000, 0};
            size_t bytes;
            char *whole = folder_load(folder_path("b.safetensors"), &bytes);
            folder_store(folder_path("cut.safetensors"), whole, sizes[k - 4] ? sizes[k - 4] : bytes - 1);
            free(whole);
            TEST_FAILS(vpps_load(n.h, folder_path("cut.safetensors")), VPPS_FORMAT, "cut");
        }
        if (k == 8) TEST_FAILS(vpps_save(n.h, folder_path("no such folder/x"), NULL, 0), VPPS_IO, "no such folder");
    }
    sn_expect_alike(&n, &witness, 0); /* no failed vpps_load or vpps_save has left a trace */
}

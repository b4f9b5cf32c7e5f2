/* test_null.c - NULL where something is needed: ARGUMENT and a message, from every public call that returns a status or
 * makes a node; nothing is touched before. */
#include "common/testing.h"
#include "vpps_data.h"

/* Stands for any object: the check comes before anything is read. */
static _Alignas(64) char any[1 << 16];

#define NULLS(call)                                                                                                    \
    do {                                                                                                               \
        memset(any, 0, sizeof any);                                                                                    \
        const vpps_status status_ = (call);                                                                            \
        ck_assert_msg(status_ == VPPS_ARGUMENT, "%s: %s", #call, vpps_status_name(status_));                           \
        ck_assert_msg(*vpps_error_message(), "%s: no message", #call);                                                 \
    } while (0)

/* Where the graph is there, it keeps the error. */
#define NO_NODE(call)                                                                                                  \
    do {                                                                                                               \
        vpps_graph_clear(g);                                                                                           \
        ck_assert_msg((call) == UINT32_MAX, "%s", #call);                                                              \
        ck_assert_msg(strstr(vpps_error_message(), "NULL"), "%s: %s", #call, vpps_error_message());                    \
    } while (0)

START_TEST(calls_with_a_status)
    {
        NULLS(vpps_add_lookup((void *)any, (void *)any, NULL, 1, 1, 1, (void *)any));
        NULLS(vpps_add_lookup((void *)any, NULL, "x", 1, 1, 1, (void *)any));
        NULLS(vpps_add_lookup(NULL, (void *)any, "x", 1, 1, 1, (void *)any));
        NULLS(vpps_add_matrix((void *)any, (void *)any, NULL, 1, 1, (void *)any));
        NULLS(vpps_add_matrix((void *)any, NULL, "x", 1, 1, (void *)any));
        NULLS(vpps_add_matrix(NULL, (void *)any, "x", 1, 1, (void *)any));
        NULLS(vpps_add_vector((void *)any, (void *)any, NULL, 1, (void *)any));
        NULLS(vpps_add_vector((void *)any, NULL, "x", 1, (void *)any));
        NULLS(vpps_add_vector(NULL, (void *)any, "x", 1, (void *)any));
        NULLS(vpps_bleu_add(NULL, 1, (void *)any, 1, (void *)any));
        NULLS(vpps_cell_begin((void *)any, "x", NULL));
        NULLS(vpps_cell_begin((void *)any, NULL, (void *)any));
        NULLS(vpps_cell_begin(NULL, "x", (void *)any));
        NULLS(vpps_cell_end((void *)any, NULL));
        NULLS(vpps_cell_end(NULL, (void *)any));
        NULLS(vpps_checkpoint_metadata("x", "x", NULL));
        NULLS(vpps_checkpoint_metadata("x", NULL, (void *)any));
        NULLS(vpps_checkpoint_metadata(NULL, "x", (void *)any));
        NULLS(vpps_constituents_binarise((void *)any, VPPS_LEFT_BRANCHING, (void *)any, NULL));
        NULLS(vpps_constituents_binarise((void *)any, VPPS_LEFT_BRANCHING, NULL, (void *)any));
        NULLS(vpps_constituents_binarise(NULL, VPPS_LEFT_BRANCHING, (void *)any, (void *)any));
        NULLS(vpps_constituents_create(NULL, VPPS_LABELS_RAW));
        NULLS(vpps_constituents_cut(NULL));
        NULLS(vpps_constituents_read_file((void *)any, NULL));
        NULLS(vpps_constituents_read_file(NULL, "x"));
        NULLS(vpps_constituents_read_text((void *)any, NULL, "x", 1));
        NULLS(vpps_constituents_read_text(NULL, "x", "x", 1));
        NULLS(vpps_disassemble((void *)any, (void *)any, 1, NULL));
        NULLS(vpps_disassemble((void *)any, NULL, 1, stdout));
        NULLS(vpps_disassemble(NULL, (void *)any, 1, stdout));
        NULLS(vpps_f1_add(NULL, 1, (void *)any, (void *)any));
        NULLS(vpps_f1_create((void *)any, NULL));
        NULLS(vpps_f1_create(NULL, (void *)any));
        NULLS(vpps_fb((void *)any, NULL, 1, (void *)any));
        NULLS(vpps_fb(NULL, (void *)any, 1, (void *)any));
        NULLS(vpps_forward((void *)any, (void *)any, 1, (void *)any, NULL));
        NULLS(vpps_forward((void *)any, (void *)any, 1, NULL, (void *)any));
        NULLS(vpps_forward((void *)any, NULL, 1, (void *)any, (void *)any));
        NULLS(vpps_forward(NULL, (void *)any, 1, (void *)any, (void *)any));
        NULLS(vpps_forward_end(NULL));
        NULLS(vpps_freeze(NULL, 1, false));
        NULLS(vpps_graph_cost((void *)any, NULL));
        NULLS(vpps_graph_cost(NULL, (void *)any));
        NULLS(vpps_graph_create((void *)any, NULL));
        NULLS(vpps_graph_create(NULL, (void *)any));
        NULLS(vpps_graph_status(NULL));
        NULLS(vpps_handle_create((void *)any, NULL, (void *)any));
        NULLS(vpps_handle_create(NULL, (void *)any, (void *)any));
        NULLS(vpps_handle_stats((void *)any, NULL));
        NULLS(vpps_handle_stats(NULL, (void *)any));
        NULLS(vpps_handle_trials((void *)any, (void *)any, (void *)any, NULL));
        NULLS(vpps_handle_trials((void *)any, (void *)any, NULL, (void *)any));
        NULLS(vpps_handle_trials(NULL, (void *)any, (void *)any, (void *)any));
        NULLS(vpps_lattices_build((void *)any, (void *)any, NULL));
        NULLS(vpps_lattices_build((void *)any, NULL, (void *)any));
        NULLS(vpps_lattices_build(NULL, (void *)any, (void *)any));
        NULLS(vpps_lattices_create(NULL));
        NULLS(vpps_lattices_read_file((void *)any, NULL));
        NULLS(vpps_lattices_read_file(NULL, "x"));
        NULLS(vpps_lattices_read_text((void *)any, NULL, "x", 1));
        NULLS(vpps_lattices_read_text(NULL, "x", "x", 1));
        NULLS(vpps_lexicon_read_file((void *)any, NULL));
        NULLS(vpps_lexicon_read_file(NULL, "x"));
        NULLS(vpps_lexicon_read_text((void *)any, NULL, "x", 1));
        NULLS(vpps_lexicon_read_text(NULL, "x", "x", 1));
        NULLS(vpps_load((void *)any, NULL));
        NULLS(vpps_load(NULL, "x"));
        NULLS(vpps_model_create(NULL, 1));
        NULLS(vpps_node_shape((void *)any, 1, (void *)any, NULL));
        NULLS(vpps_node_shape((void *)any, 1, NULL, (void *)any));
        NULLS(vpps_node_shape(NULL, 1, (void *)any, (void *)any));
        NULLS(vpps_param_describe((void *)any, 1, NULL));
        NULLS(vpps_param_describe(NULL, 1, (void *)any));
        NULLS(vpps_param_find((void *)any, "x", NULL));
        NULLS(vpps_param_find((void *)any, NULL, (void *)any));
        NULLS(vpps_param_find(NULL, "x", (void *)any));
        NULLS(vpps_poll_loss((void *)any, NULL, (void *)any));
        NULLS(vpps_poll_loss(NULL, (void *)any, (void *)any));
        NULLS(vpps_push(NULL, 1));
        NULLS(vpps_pushed_many(NULL, 1, (void *)any, 0, (void *)any));
        NULLS(vpps_pushed_many((void *)any, 1, NULL, 0, (void *)any));
        NULLS(vpps_pushed_many((void *)any, 1, (void *)any, 0, NULL));
        NULLS(vpps_read_parameters(NULL));
        NULLS(vpps_save((void *)any, NULL, (void *)any, 1));
        NULLS(vpps_save(NULL, "x", (void *)any, 1));
        NULLS(vpps_scatter(NULL, 1));
        NULLS(vpps_condition(NULL, 1));
        NULLS(vpps_condition_is(NULL, 1, 1));
        NULLS(vpps_scatter_else(NULL, 1, 1));
        NULLS(vpps_scattered_many(NULL, 1, (void *)any, 0, (void *)any));
        NULLS(vpps_shard_tables(NULL, (void *)any));
        NULLS(vpps_sentences_counts((void *)any, NULL));
        NULLS(vpps_sentences_counts(NULL, (void *)any));
        NULLS(vpps_sentences_create(NULL));
        NULLS(vpps_sentences_generate(NULL, (void *)any, (void *)any, (void *)any, 1));
        NULLS(vpps_sentences_read_columns_file((void *)any, NULL, (void *)any));
        NULLS(vpps_sentences_read_columns_file(NULL, "x", (void *)any));
        NULLS(vpps_sentences_read_columns_text((void *)any, NULL, "x", 1, (void *)any));
        NULLS(vpps_sentences_read_columns_text(NULL, "x", "x", 1, (void *)any));
        NULLS(vpps_sentences_read_labelled_file((void *)any, NULL));
        NULLS(vpps_sentences_read_labelled_file(NULL, "x"));
        NULLS(vpps_sentences_read_labelled_text((void *)any, NULL, "x", 1));
        NULLS(vpps_sentences_read_labelled_text(NULL, "x", "x", 1));
        NULLS(vpps_sentences_read_lines_file((void *)any, NULL, (void *)any));
        NULLS(vpps_sentences_read_lines_file(NULL, "x", (void *)any));
        NULLS(vpps_sentences_read_lines_text((void *)any, NULL, "x", 1, (void *)any));
        NULLS(vpps_sentences_read_lines_text(NULL, "x", "x", 1, (void *)any));
        NULLS(vpps_sentences_read_parallel_files((void *)any, (void *)any, "x", NULL, (void *)any));
        NULLS(vpps_sentences_read_parallel_files((void *)any, (void *)any, NULL, "x", (void *)any));
        NULLS(vpps_sentences_read_parallel_files((void *)any, NULL, "x", "x", (void *)any));
        NULLS(vpps_sentences_read_parallel_files(NULL, (void *)any, "x", "x", (void *)any));
        NULLS(vpps_sentences_read_parallel_texts((void *)any, (void *)any, "x", "x", 1, NULL, "x", 1, (void *)any));
        NULLS(vpps_sentences_read_parallel_texts((void *)any, (void *)any, NULL, "x", 1, "x", "x", 1, (void *)any));
        NULLS(vpps_sentences_read_parallel_texts((void *)any, NULL, "x", "x", 1, "x", "x", 1, (void *)any));
        NULLS(vpps_sentences_read_parallel_texts(NULL, (void *)any, "x", "x", 1, "x", "x", 1, (void *)any));
        NULLS(vpps_sentences_read_tagged_file((void *)any, NULL));
        NULLS(vpps_sentences_read_tagged_file(NULL, "x"));
        NULLS(vpps_sentences_read_tagged_text((void *)any, NULL, "x", 1));
        NULLS(vpps_sentences_read_tagged_text(NULL, "x", "x", 1));
        NULLS(vpps_set_learning_rate(NULL, 0.0f));
        NULLS(vpps_spellings_create((void *)any, NULL));
        NULLS(vpps_spellings_create(NULL, (void *)any));
        NULLS(vpps_sync_latest_loss(NULL, (void *)any));
        NULLS(vpps_trace_begin((void *)any, NULL));
        NULLS(vpps_trace_begin(NULL, "x"));
        NULLS(vpps_trace_end(NULL));
        NULLS(vpps_trace_write((void *)any, NULL));
        NULLS(vpps_trace_write(NULL, stdout));
        NULLS(vpps_treebank_counts((void *)any, NULL));
        NULLS(vpps_treebank_counts(NULL, (void *)any));
        NULLS(vpps_treebank_create(NULL));
        NULLS(vpps_treebank_generate_complete(NULL, (void *)any, 1));
        NULLS(vpps_treebank_generate_listops(NULL, (void *)any, 1));
        NULLS(vpps_treebank_read_file((void *)any, NULL));
        NULLS(vpps_treebank_read_file(NULL, "x"));
        NULLS(vpps_treebank_read_text((void *)any, NULL, "x", 1));
        NULLS(vpps_treebank_read_text(NULL, "x", "x", 1));
        NULLS(vpps_treebank_write((void *)any, 1, NULL));
        NULLS(vpps_treebank_write(NULL, 1, stdout));
        NULLS(vpps_vectors_describe("x", NULL));
        NULLS(vpps_vectors_describe(NULL, (void *)any));
        NULLS(vpps_vectors_read("x", (void *)any, 1, NULL, (void *)any));
        NULLS(vpps_vectors_read("x", NULL, 1, (void *)any, (void *)any));
        NULLS(vpps_vectors_read(NULL, (void *)any, 1, (void *)any, (void *)any));
        NULLS(vpps_vocab_add((void *)any, "x", 1, NULL));
        NULLS(vpps_vocab_add(NULL, "x", 1, (void *)any));
        NULLS(vpps_vocab_create(NULL));
        NULLS(vpps_vocab_cut((void *)any, NULL, (void *)any, 1));
        NULLS(vpps_vocab_cut(NULL, (void *)any, (void *)any, 1));
        NULLS(vpps_vocab_from_text((void *)any, NULL));
        NULLS(vpps_vocab_from_text(NULL, "x"));
        NULLS(vpps_vocab_map((void *)any, (void *)any, 1, NULL));
        NULLS(vpps_vocab_map((void *)any, NULL, 1, (void *)any));
        NULLS(vpps_vocab_map(NULL, (void *)any, 1, (void *)any));
        NULLS(vpps_vocab_to_text((void *)any, NULL));
        NULLS(vpps_vocab_to_text(NULL, (void *)any));
        NULLS(vpps_write_parameters(NULL));
    }
END_TEST

START_TEST(calls_that_make_nodes)
    {
        vpps_model *model;
        vpps_graph *g;
        TEST_OK(vpps_model_create(&model, 1));
        TEST_OK(vpps_graph_create(&g, model));
        NO_NODE(vpps_input(NULL, 0, 0, (const void *)any));
        NO_NODE(vpps_input_many(NULL, 0, 0, 0, (const void *)any));
        NO_NODE(vpps_input_many(g, 1, 1, 1, NULL));
        NO_NODE(vpps_lookup(NULL, 0, 0));
        NO_NODE(vpps_parameter(NULL, 0));
        NO_NODE(vpps_constant(NULL, 0, 0, 0.5f));
        NO_NODE(vpps_zeros(NULL, 0, 0));
        NO_NODE(vpps_ones(NULL, 0, 0));
        NO_NODE(vpps_affine(NULL, 0, 2, (const void *)any, (const void *)any));
        NO_NODE(vpps_affine(g, 0, 2, NULL, (const void *)any));
        NO_NODE(vpps_affine(g, 0, 2, (const void *)any, NULL));
        NO_NODE(vpps_matvec(NULL, 0, 0));
        NO_NODE(vpps_affine1(NULL, 0, 0, 0));
        NO_NODE(vpps_affine2(NULL, 0, 0, 0, 0, 0));
        NO_NODE(vpps_matmul(NULL, 0, 0));
        NO_NODE(vpps_add(NULL, 0, 0));
        NO_NODE(vpps_sub(NULL, 0, 0));
        NO_NODE(vpps_mul(NULL, 0, 0));
        NO_NODE(vpps_div(NULL, 0, 0));
        NO_NODE(vpps_max(NULL, 0, 0));
        NO_NODE(vpps_min(NULL, 0, 0));
        NO_NODE(vpps_sum(NULL, 2, (const void *)any));
        NO_NODE(vpps_sum(g, 2, NULL));
        NO_NODE(vpps_average(NULL, 2, (const void *)any));
        NO_NODE(vpps_average(g, 2, NULL));
        NO_NODE(vpps_max_of(NULL, 2, (const void *)any));
        NO_NODE(vpps_max_of(g, 2, NULL));
        NO_NODE(vpps_min_of(NULL, 2, (const void *)any));
        NO_NODE(vpps_min_of(g, 2, NULL));
        NO_NODE(vpps_negate(NULL, 0));
        NO_NODE(vpps_one_minus(NULL, 0));
        NO_NODE(vpps_reciprocal(NULL, 0));
        NO_NODE(vpps_scale(NULL, 0, 0.5f));
        NO_NODE(vpps_scale_by(NULL, 0, 0));
        NO_NODE(vpps_when(NULL, 0, 0));
        NO_NODE(vpps_select(NULL, 0, 0, 0));
        NO_NODE(vpps_argmax(NULL, 0));
        NO_NODE(vpps_lookup_at(NULL, 0, 0));
        NO_NODE(vpps_sigmoid(NULL, 0));
        NO_NODE(vpps_tanh(NULL, 0));
        NO_NODE(vpps_relu(NULL, 0));
        NO_NODE(vpps_elu(NULL, 0, 0.5f));
        NO_NODE(vpps_gelu(NULL, 0));
        NO_NODE(vpps_exp(NULL, 0));
        NO_NODE(vpps_log(NULL, 0));
        NO_NODE(vpps_square(NULL, 0));
        NO_NODE(vpps_sqrt(NULL, 0));
        NO_NODE(vpps_abs(NULL, 0));
        NO_NODE(vpps_dropout(NULL, 0, 0.5f));
        NO_NODE(vpps_concat(NULL, 2, (const void *)any));
        NO_NODE(vpps_concat(g, 2, NULL));
        NO_NODE(vpps_slice(NULL, 0, 0, 0));
        NO_NODE(vpps_dot(NULL, 0, 0));
        NO_NODE(vpps_squared_distance(NULL, 0, 0));
        NO_NODE(vpps_sum_elements(NULL, 0));
        NO_NODE(vpps_softmax(NULL, 0));
        NO_NODE(vpps_log_softmax(NULL, 0));
        NO_NODE(vpps_weighted_sum(NULL, 0, 2, (const void *)any));
        NO_NODE(vpps_weighted_sum(g, 0, 2, NULL));
        NO_NODE(vpps_cross_entropy(NULL, 0, 0));
        NO_NODE(vpps_hinge(NULL, 0, 0, 0.5f));
        NO_NODE(vpps_binary_log_loss(NULL, 0, 0));
        NO_NODE(vpps_gather(NULL, 0, 0, 0, 0));
        NO_NODE(vpps_gather_list(NULL, 0, 0, 0));
        NO_NODE(vpps_gather_list_from(NULL, 0, 0, 0, 0));
        NO_NODE(vpps_pull_list(NULL, 0, 0));
        NO_NODE(vpps_gather_list_of(NULL, 0, 0, 0, 0));
        NO_NODE(vpps_pull_list_of(NULL, 0, 0, 0));
        NO_NODE(vpps_softmax_list(NULL, 0));
        NO_NODE(vpps_weighted_sum_list(NULL, 0, 0));
        NO_NODE(vpps_concat_list(NULL, 0, 0));
        NO_NODE(vpps_pull(NULL, 0, 0));
        NO_NODE(vpps_pull_index(NULL));
        NO_NODE(vpps_apply(NULL, (const void *)any));
        NO_NODE(vpps_apply(g, NULL));
        NO_NODE(vpps_apply_many(NULL, (const void *)any));
        NO_NODE(vpps_apply_many(g, NULL));
        NO_NODE(vpps_while(NULL, (const void *)any, 1, NULL));
        NO_NODE(vpps_while(g, NULL, 1, NULL));
        NO_NODE(vpps_case(NULL, 1, (const void *)any));
        NO_NODE(vpps_case(g, 1, NULL));
        NO_NODE(vpps_source(NULL, 2, (const void *)any));
        NO_NODE(vpps_source(g, 2, NULL));
        NO_NODE(vpps_pushed(NULL, 0, 0));
        NO_NODE(vpps_scattered(NULL, 0, 0));
        vpps_graph_destroy(g);
        vpps_model_destroy(model);
    }
END_TEST

int main(void) {
    Suite *suite = suite_create("null");
    TCase *t = tcase_create("null");
    tcase_add_test(t, calls_with_a_status);
    tcase_add_test(t, calls_that_make_nodes);
    suite_add_tcase(suite, t);
    return test_main(suite);
}

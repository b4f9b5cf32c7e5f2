/* child_sum_tree_lstm_golden.h - made by child_sum_tree_lstm.py: do not edit. */
/* clang-format off */
#ifndef VPPS_TESTS_CHILD_SUM_TREE_LSTM_GOLDEN_H
#define VPPS_TESTS_CHILD_SUM_TREE_LSTM_GOLDEN_H

#include "golden.h"

static const net_example golden_dependencies[] = {
    {.sentence = {.words = (const uint32_t[]){19, 17, 13, 13}, .tags = (const uint32_t[]){2, 1, 4, 4}, .n_words = 4,
        .heads = (const uint32_t[]){0, 0, 1, 0}}},
    {.sentence = {.words = (const uint32_t[]){14, 16, 25, 8, 6, 23, 2}, .tags = (const uint32_t[]){0, VPPS_NO_WORD, 4,
        2, 3, 4, 4}, .n_words = 7, .heads = (const uint32_t[]){0, 1, 1, 0, 1, 0, 4}}},
    {.sentence = {.words = (const uint32_t[]){28, 13}, .tags = (const uint32_t[]){1, 2}, .n_words = 2, .heads =
        (const uint32_t[]){2, 0}}},
    {.sentence = {.words = (const uint32_t[]){18, 5, 2, 2, 7, 3, 28, 4, 7, 27}, .tags = (const uint32_t[]){1, 4, 4, 4,
        0, 0, 1, 0, 0, 2}, .n_words = 10, .heads = (const uint32_t[]){0, 0, 7, 6, 3, 0, 6, 0, 6, 3}}},
    {.sentence = {.words = (const uint32_t[]){5, 9, 22, 11, 19}, .tags = (const uint32_t[]){1, VPPS_NO_WORD,
        VPPS_NO_WORD, 1, 4}, .n_words = 5, .heads = (const uint32_t[]){4, 1, 4, 0, 3}}},
    {.sentence = {.words = (const uint32_t[]){28, 1, 26, 17}, .tags = (const uint32_t[]){2, VPPS_NO_WORD, 2,
        VPPS_NO_WORD}, .n_words = 4, .heads = (const uint32_t[]){0, 1, 1, 1}}},
    {.sentence = {.words = (const uint32_t[]){21, 0, 20, 29, 14, 21, 14, 17}, .tags = (const uint32_t[]){3, 0, 0,
        VPPS_NO_WORD, 2, 0, VPPS_NO_WORD, 1}, .n_words = 8, .heads = (const uint32_t[]){7, 6, 2, 1, 3, 0, 6, 1}}},
    {.sentence = {.words = (const uint32_t[]){0, 29, 26, 11, 20, 16, 16, 28}, .tags = (const uint32_t[]){3, 0, 2, 3,
        3, VPPS_NO_WORD, 3, 4}, .n_words = 8, .heads = (const uint32_t[]){2, 0, 8, 5, 2, 1, 5, 0}}},
    {.sentence = {.words = (const uint32_t[]){25, 13, 15, 18}, .tags = (const uint32_t[]){2, 4, 3, 2}, .n_words = 4,
        .heads = (const uint32_t[]){4, 3, 4, 0}}},
    {.sentence = {.words = (const uint32_t[]){9, 15, 16, 0, 17, 26, 4, 6, 2, 25, 26}, .tags = (const uint32_t[]){0, 0,
        3, VPPS_NO_WORD, 1, 3, 1, 0, VPPS_NO_WORD, 1, 3}, .n_words = 11, .heads = (const uint32_t[]){2, 6, 11, 8, 6,
        0, 5, 0, 0, 9, 6}}},
    {.sentence = {.words = (const uint32_t[]){19, 29, 0, 23, 21, 18, 17, 28, 5, 11, 12, 2}, .tags =
        (const uint32_t[]){4, 0, 0, 4, VPPS_NO_WORD, 2, 0, 2, 0, 3, 0, 1}, .n_words = 12, .heads =
        (const uint32_t[]){7, 0, 0, 0, 0, 9, 0, 4, 1, 5, 5, 1}}},
    {.sentence = {.words = (const uint32_t[]){24, 15, 16, 3, 17, 1, 24}, .tags = (const uint32_t[]){0, VPPS_NO_WORD,
        4, 3, 2, 1, VPPS_NO_WORD}, .n_words = 7, .heads = (const uint32_t[]){3, 0, 6, 6, 2, 0, 6}}},
    {.sentence = {.words = (const uint32_t[]){20, 24, 25, 22, 21, 28, 20, 21, 5, 2, 17}, .tags =
        (const uint32_t[]){VPPS_NO_WORD, 3, VPPS_NO_WORD, 4, 1, 4, 0, 1, 1, 4, VPPS_NO_WORD}, .n_words = 11, .heads =
        (const uint32_t[]){10, 10, 0, 9, 3, 3, 0, 11, 3, 7, 0}}},
    {.sentence = {.words = (const uint32_t[]){11, 12, 7, 19, 3, 11, 5, 0, 27, 26}, .tags = (const uint32_t[]){3, 0, 4,
        0, 4, 1, 0, VPPS_NO_WORD, 2, 3}, .n_words = 10, .heads = (const uint32_t[]){2, 9, 1, 0, 6, 2, 0, 5, 0, 5}}},
    {.sentence = {.words = (const uint32_t[]){21, 16, 16, 17, 21, 28, 27, 27, 25, 23, 22, 23}, .tags =
        (const uint32_t[]){0, 2, 0, 2, 2, 2, 2, 2, 1, 0, VPPS_NO_WORD, 1}, .n_words = 12, .heads =
        (const uint32_t[]){0, 3, 0, 1, 1, 0, 11, 10, 2, 3, 2, 9}}},
    {.sentence = {.words = (const uint32_t[]){22, 11, 8}, .tags = (const uint32_t[]){0, 2, 4}, .n_words = 3, .heads =
        (const uint32_t[]){3, 1, 0}}},
    {.sentence = {.words = (const uint32_t[]){16, 1, 16, 8, 10, 28, 0, 19, 9, 17, 25}, .tags =
        (const uint32_t[]){VPPS_NO_WORD, VPPS_NO_WORD, 0, 3, 1, 1, 1, 0, 0, VPPS_NO_WORD, 1}, .n_words = 11, .heads =
        (const uint32_t[]){11, 11, 2, 5, 2, 11, 4, 0, 7, 3, 0}}},
    {.sentence = {.words = (const uint32_t[]){4, 27, 6, 24, 20, 8, 15, 6}, .tags = (const uint32_t[]){VPPS_NO_WORD, 4,
        VPPS_NO_WORD, 3, 1, 1, 3, 4}, .n_words = 8, .heads = (const uint32_t[]){5, 0, 0, 6, 0, 5, 0, 3}}},
    {.sentence = {.words = (const uint32_t[]){17, 12, 24, 15, 16, 1, 4, 7}, .tags = (const uint32_t[]){4, 2, 3, 4, 1,
        2, VPPS_NO_WORD, 2}, .n_words = 8, .heads = (const uint32_t[]){8, 4, 4, 0, 4, 7, 2, 7}}},
    {.sentence = {.words = (const uint32_t[]){26}, .tags = (const uint32_t[]){0}, .n_words = 1, .heads =
        (const uint32_t[]){0}}},
    {.sentence = {.words = (const uint32_t[]){27}, .tags = (const uint32_t[]){2}, .n_words = 1, .heads =
        (const uint32_t[]){0}}},
    {.sentence = {.words = (const uint32_t[]){25, 25, 18, 18, 16, 4, 18}, .tags = (const uint32_t[]){4, 4, 3, 1, 1, 1,
        VPPS_NO_WORD}, .n_words = 7, .heads = (const uint32_t[]){6, 0, 2, 6, 4, 2, 5}}},
    {.sentence = {.words = (const uint32_t[]){10, 4, 7, 3, 28, 24, 15, 4, 12}, .tags = (const uint32_t[]){0, 4,
        VPPS_NO_WORD, 3, 1, 3, 2, 2, 4}, .n_words = 9, .heads = (const uint32_t[]){7, 7, 1, 1, 7, 2, 0, 5, 4}}},
    {.sentence = {.words = (const uint32_t[]){3, 16, 26, 17, 17, 2, 16, 16}, .tags = (const uint32_t[]){3,
        VPPS_NO_WORD, 2, 4, 4, 4, 4, VPPS_NO_WORD}, .n_words = 8, .heads = (const uint32_t[]){7, 3, 0, 0, 4, 8, 4,
        0}}},
    {.sentence = {.words = (const uint32_t[]){22, 24, 3, 27, 21}, .tags = (const uint32_t[]){3, 3, 3, 0, 4}, .n_words
        = 5, .heads = (const uint32_t[]){0, 5, 5, 0, 0}}},
    {.sentence = {.words = (const uint32_t[]){18, 29, 21, 24, 28, 13, 4, 8, 27}, .tags = (const uint32_t[]){0,
        VPPS_NO_WORD, 2, 0, VPPS_NO_WORD, 3, 2, 1, 1}, .n_words = 9, .heads = (const uint32_t[]){0, 0, 0, 2, 0, 3, 1,
        1, 1}}},
    {.sentence = {.words = (const uint32_t[]){6, 23, 6, 12, 1, 17, 20, 25}, .tags = (const uint32_t[]){4, 0, 3, 4, 3,
        1, 0, VPPS_NO_WORD}, .n_words = 8, .heads = (const uint32_t[]){7, 1, 5, 7, 0, 7, 0, 7}}},
    {.sentence = {.words = (const uint32_t[]){6, 27, 10}, .tags = (const uint32_t[]){0, 0, 2}, .n_words = 3, .heads =
        (const uint32_t[]){0, 0, 2}}},
    {.sentence = {.words = (const uint32_t[]){9, 21, 21, 29}, .tags = (const uint32_t[]){4, 1, 2, VPPS_NO_WORD},
        .n_words = 4, .heads = (const uint32_t[]){0, 0, 4, 0}}},
    {.sentence = {.words = (const uint32_t[]){5, 3, 9, 25}, .tags = (const uint32_t[]){VPPS_NO_WORD, 3, 3, 1},
        .n_words = 4, .heads = (const uint32_t[]){0, 4, 0, 0}}},
    {.sentence = {.words = (const uint32_t[]){6, 4, 25, 11, 27, 7}, .tags = (const uint32_t[]){VPPS_NO_WORD, 0, 1, 0,
        4, 1}, .n_words = 6, .heads = (const uint32_t[]){2, 0, 2, 2, 3, 2}}},
    {.sentence = {.words = (const uint32_t[]){24, 1, 19, 19}, .tags = (const uint32_t[]){4, 2, 4, VPPS_NO_WORD},
        .n_words = 4, .heads = (const uint32_t[]){0, 1, 0, 1}}},
    {.sentence = {.words = (const uint32_t[]){24, 18, 23, 11, 2, 4, 17, 25}, .tags = (const uint32_t[]){0,
        VPPS_NO_WORD, 0, 3, 1, VPPS_NO_WORD, 2, 0}, .n_words = 8, .heads = (const uint32_t[]){7, 6, 8, 6, 8, 8, 5,
        0}}},
    {.sentence = {.words = (const uint32_t[]){23, 11, 9, 16, 18, 8, 27, 12, 4, 20}, .tags = (const uint32_t[]){2,
        VPPS_NO_WORD, 3, 3, 3, 2, 2, 4, 4, 2}, .n_words = 10, .heads = (const uint32_t[]){10, 0, 9, 0, 4, 2, 10, 0, 5,
        8}}},
    {.sentence = {.words = (const uint32_t[]){2, 14, 20, 21, 14}, .tags = (const uint32_t[]){3, 2, 0, 1, 3}, .n_words
        = 5, .heads = (const uint32_t[]){3, 0, 0, 5, 3}}},
    {.sentence = {.words = (const uint32_t[]){0, 18}, .tags = (const uint32_t[]){3, 3}, .n_words = 2, .heads =
        (const uint32_t[]){0, 1}}},
    {.sentence = {.words = (const uint32_t[]){5}, .tags = (const uint32_t[]){1}, .n_words = 1, .heads =
        (const uint32_t[]){0}}},
    {.sentence = {.words = (const uint32_t[]){29, 8, 7, 2, 9}, .tags = (const uint32_t[]){4, 3, 3, 3, VPPS_NO_WORD},
        .n_words = 5, .heads = (const uint32_t[]){3, 0, 0, 3, 0}}},
    {.sentence = {.words = (const uint32_t[]){13, 16, 21, 0, 0, 16, 2, 0, 28, 3, 26}, .tags = (const uint32_t[]){0, 2,
        VPPS_NO_WORD, VPPS_NO_WORD, 0, VPPS_NO_WORD, 1, 3, 4, 2, 4}, .n_words = 11, .heads = (const uint32_t[]){0, 5,
        0, 1, 0, 3, 4, 5, 2, 8, 2}}},
    {.sentence = {.words = (const uint32_t[]){8}, .tags = (const uint32_t[]){0}, .n_words = 1, .heads =
        (const uint32_t[]){0}}},
};

static const golden child_sum_tree_lstm_golden = {
    .name = "child-sum-tree-lstm",
    .network = "child-sum-tree-lstm",
    .config = {.words = 30, .classes = 5, .embed = 20, .hidden = 24},
    .n_tensors = 15,
    .tensors = (const golden_tensor[]){{"embedding", 0.5}, {"W_i", 0.3}, {"U_i", 0.3}, {"b_i", 0.1}, {"W_f", 0.3},
        {"U_f", 0.3}, {"b_f", 0.1}, {"W_o", 0.3}, {"U_o", 0.3}, {"b_o", 0.1}, {"W_u", 0.3}, {"U_u", 0.3},
        {"b_u", 0.1}, {"W_s", 0.3}, {"b_s", 0.1}},
    .n_examples = 40,
    .examples = golden_dependencies,
    .sgd = {8.89284238347, 7.68606040474, 11.7215339891, 12.5206253879, 9.08318291343, 8.54887971159, 9.0729289185,
        5.46765495085, 9.08958712976, 5.45259192142, 8.82413076527, 7.17933644219, 11.4222719331, 12.363314539,
        9.09405789245, 8.39836097721, 8.9368144207, 5.28343159763, 8.87291250835, 5.37027749157},
    .adam = {8.89284238347, 7.53709242459, 11.5037455247, 12.3905839398, 9.57294473677, 9.01720440884, 8.80708136377,
        5.2613245592, 8.84254331055, 5.61438364958, 7.65901112336, 6.42582330225, 10.398961692, 11.2434581928,
        8.62771076105, 7.8971141769, 8.52535358919, 4.77792638763, 8.08359437575, 5.24866829563},
};

#endif

/* crf_golden.h - made by crf.py: do not edit. */
/* clang-format off */
#ifndef VPPS_TESTS_CRF_GOLDEN_H
#define VPPS_TESTS_CRF_GOLDEN_H

#include "golden.h"

static const net_example golden_chained[] = {
    {.sentence = {WORDS(18, 7, 7, 15, 14, 22, 1), TAGS(0, 4, 4, 0, 4, 3, 2)}},
    {.sentence = {WORDS(28), TAGS(1)}},
    {.sentence = {WORDS(23, 0, 28, 9, 0, 13, 2, 22, 15, 7), TAGS(1, 3, 2, 4, 3, 2, 2, 3, 1, 3)}},
    {.sentence = {WORDS(6, 25, 10, 16, 18, 22, 8, 15, 20, 29, 10), TAGS(3, 3, 1, 0, 0, 1, 1, 4, 4, 3, 3)}},
    {.sentence = {WORDS(16, 2, 24, 16, 5, 27, 10), TAGS(NO_WORD, 3, 1, 4, 2, 4, 3)}},
    {.sentence = {WORDS(20, 27), TAGS(3, 3)}},
    {.sentence = {WORDS(1, 22, 2, 24), TAGS(1, 2, 3, 0)}},
    {.sentence = {WORDS(22, 18, 7, 22, 12, 10), TAGS(4, 0, 3, 0, 3, 4)}},
    {.sentence = {WORDS(7, 11), TAGS(3, 0)}},
    {.sentence = {WORDS(23, 10, 1, 4), TAGS(4, 3, 1, NO_WORD)}},
    {.sentence = {WORDS(12, 3, 6, 15, 12, 12, 20, 11), TAGS(1, 3, 3, 3, 0, 2, 4, 2)}},
    {.sentence = {WORDS(29, 6, 12, 16, 27, 14, 20, 3), TAGS(3, 1, 0, 2, 1, 0, 2, 1)}},
    {.sentence = {WORDS(17, 14, 18, 23), TAGS(4, 2, 2, 2)}},
    {.sentence = {WORDS(23, 25, 26, 15), TAGS(1, 0, 1, 0)}},
    {.sentence = {WORDS(4, 12, 14, 15, 3), TAGS(0, 4, NO_WORD, 0, 0)}},
    {.sentence = {WORDS(14), TAGS(3)}},
    {.sentence = {WORDS(19, 2, 9, 14, 14, 6, 29, 14, 27, 5), TAGS(4, 3, 0, 4, 2, 1, 0, 4, 0, 2)}},
    {.sentence = {WORDS(3, 15, 29, 26, 7, 3, 4), TAGS(2, 2, 0, 1, 0, 1, 3)}},
    {.sentence = {WORDS(7, 27, 8, 3), TAGS(3, 2, 3, 2)}},
    {.sentence = {WORDS(14, 12, 3, 7, 24), TAGS(1, 0, NO_WORD, 1, 4)}},
    {.sentence = {WORDS(23, 24, 8, 25, 9, 16, 11, 0, 25), TAGS(2, 3, 4, 4, 3, 4, 2, 1, 3)}},
    {.sentence = {WORDS(11, 12, 5, 16, 28, 7, 21, 3, 9, 20, 4), TAGS(3, 0, 4, 0, 4, 3, 4, 2, 1, 4, 1)}},
    {.sentence = {WORDS(17, 20, 27, 14, 9, 17, 15, 1, 5, 11, 26), TAGS(2, 4, 1, 4, 1, 1, 2, 1, 1, 4, 3)}},
    {.sentence = {WORDS(20, 22, 29, 27), TAGS(1, 3, 0, 2)}},
    {.sentence = {WORDS(19, 19, 17, 11, 12, 8, 5, 10, 2, 12, 18, 27), TAGS(2, 4, 3, NO_WORD, 4, 3, 2, 2, 0, 1, 3,
        4)}},
    {.sentence = {WORDS(9, 3, 22, 26, 27, 11, 8, 1, 15, 5), TAGS(2, 2, 3, 4, 1, 0, 3, 3, 2, 3)}},
    {.sentence = {WORDS(22, 0, 27, 10, 9, 7), TAGS(2, 4, 1, 3, 1, 2)}},
    {.sentence = {WORDS(3, 10, 7, 25, 7), TAGS(0, 4, 0, 2, 4)}},
    {.sentence = {WORDS(24, 1, 1, 26, 20, 1, 27, 23, 4), TAGS(4, 0, 3, 4, 4, 1, 4, 1, 4)}},
    {.sentence = {WORDS(5, 20, 12, 5, 29, 26, 26, 17, 29, 22, 10), TAGS(1, 4, 1, 1, 1, 0, 4, NO_WORD, 0, 1, 3)}},
    {.sentence = {WORDS(0, 24, 13, 22, 6, 0, 8, 27, 19), TAGS(3, 2, 3, 2, 2, 2, 0, 0, 1)}},
    {.sentence = {WORDS(14, 12, 1, 1, 10, 18, 27, 17), TAGS(4, 4, 3, 2, 3, 0, 0, 3)}},
    {.sentence = {WORDS(20, 8), TAGS(0, 3)}},
    {.sentence = {WORDS(21, 13, 14, 5, 6, 24, 28, 8, 17, 2, 11), TAGS(4, 1, 1, 3, 2, 0, 0, 4, 4, 3, 1)}},
    {.sentence = {WORDS(9, 27, 20, 25, 20, 5, 27, 18, 20, 21), TAGS(0, 1, 4, 0, 3, 0, 3, 4, NO_WORD, 1)}},
    {.sentence = {WORDS(13), TAGS(1)}},
    {.sentence = {WORDS(2, 27, 27, 28, 18, 14), TAGS(0, 1, 0, 4, 2, 1)}},
    {.sentence = {WORDS(20, 1), TAGS(3, 3)}},
    {.sentence = {WORDS(1, 24, 23, 2, 19, 12, 9, 4, 4, 8, 10, 8), TAGS(0, 4, 1, 4, 3, 2, 4, 1, 3, 4, 1, 1)}},
    {.sentence = {WORDS(18, 21, 27, 6, 4, 20, 2), TAGS(4, 4, 4, 3, NO_WORD, 3, 4)}},
};

static const golden bilstm_tagger_crf_golden = {
    .name = "bilstm-tagger-crf",
    .network = "bilstm-tagger",
    .config = {.words = 30, .classes = 5, .embed = 20, .hidden = 24, .mlp = 16, .crf = true},
    TENSORS({"embedding", 0.5}, LSTM("forward"), LSTM("backward"), {"W_h", 0.3}, {"b_h", 0.1}, {"W_s", 0.3},
        {"b_s", 0.1}, {"crf.transitions", 0.5}, {"crf.begin", 0.1}, {"crf.end", 0.1}),
    .n_examples = 40,
    .examples = golden_chained,
    .sgd = {13.0766510009, 4.80556054447, 8.21157888408, 3.67100341959, 8.92822359219, 15.0143234986, 8.67691464364,
        10.5906602896, 5.98651010493, 8.05185164319, 11.3200144072, 4.65307161785, 7.34661338062, 3.78856894979,
        8.15376866184, 14.1743103986, 8.28383159646, 10.3524239998, 5.65411251463, 7.79937960701},
    .adam = {13.0766510009, 5.04518745305, 8.74688093352, 3.93676157215, 9.49519443919, 16.2021131838, 8.30927749724,
        10.8310216198, 5.2477975614, 8.49284640837, 11.1525209901, 4.54525299241, 6.96477784832, 3.8198849913,
        7.93799473994, 13.5057077639, 7.52101598003, 9.92131965666, 4.94481438574, 7.64920437577},
};

#endif

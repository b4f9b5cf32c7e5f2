/* act_golden.h - made by act.py: do not edit. */
/* clang-format off */
#ifndef VPPS_TESTS_ACT_GOLDEN_H
#define VPPS_TESTS_ACT_GOLDEN_H

#include "golden.h"

static const net_example golden_labelled[] = {
    {.sentence = {WORDS(26, 20, 15, 11, 13, 21, 19, 27)}, .label = 4},
    {.sentence = {WORDS(21, 15, 1, 18, 6, 15, 4)}, .label = 2},
    {.sentence = {WORDS(14, 19, 9, 19, 25, 26, 5, 2)}, .label = 3},
    {.sentence = {WORDS(14, 18)}, .label = 2},
    {.sentence = {WORDS(27, 15, 23, 17, 2, 6, 13)}, .label = 1},
    {.sentence = {WORDS(11, 1)}, .label = 2},
    {.sentence = {WORDS(0, 13, 0, 27, 25, 24, 26)}, .label = 0},
    {.sentence = {WORDS(7, 16, 24)}, .label = 1},
    {.sentence = {WORDS(3, 15, 29, 27)}, .label = 4},
    {.sentence = {WORDS(10, 5, 26, 25, 2, 1, 21, 11, 10)}, .label = 1},
    {.sentence = {WORDS(29, 11, 20, 16, 19)}, .label = 4},
    {.sentence = {WORDS(22, 15, 19, 21, 8, 15, 19, 16)}, .label = 1},
    {.sentence = {WORDS(29, 14, 20, 13, 16, 3, 4, 22)}, .label = 4},
    {.sentence = {WORDS(8, 28)}, .label = 0},
    {.sentence = {WORDS(2, 18, 10, 22, 9, 10)}, .label = 3},
    {.sentence = {WORDS(28, 10, 7, 5, 1, 21, 28, 16, 14)}, .label = 0},
    {.sentence = {WORDS(24)}, .label = 2},
    {.sentence = {WORDS(23, 7, 23, 12, 2, 19, 26, 5)}, .label = 3},
    {.sentence = {WORDS(14, 1, 12)}, .label = 1},
    {.sentence = {WORDS(5)}, .label = 1},
    {.sentence = {WORDS(11, 19, 20, 25, 5)}, .label = 3},
    {.sentence = {WORDS(6)}, .label = 0},
    {.sentence = {WORDS(27, 26)}, .label = 1},
    {.sentence = {WORDS(10, 28, 29, 11)}, .label = 1},
    {.sentence = {WORDS(8, 20, 22, 12, 13, 22, 9, 18, 1)}, .label = 4},
    {.sentence = {WORDS(19, 23, 12)}, .label = 4},
    {.sentence = {WORDS(24, 7, 23, 5, 3, 6, 23)}, .label = 3},
    {.sentence = {WORDS(17, 8, 2, 21)}, .label = 1},
    {.sentence = {WORDS(12, 7, 3, 18, 14, 1)}, .label = 3},
    {.sentence = {WORDS(0, 6)}, .label = 4},
    {.sentence = {WORDS(19, 14)}, .label = 4},
    {.sentence = {WORDS(0, 16, 20, 14, 15, 13)}, .label = 3},
    {.sentence = {WORDS(28, 5, 0, 21, 22, 0, 13)}, .label = 0},
    {.sentence = {WORDS(11, 6, 29, 2, 5, 28, 4, 16, 28)}, .label = 3},
    {.sentence = {WORDS(5, 20, 4, 24, 4, 22, 7, 28)}, .label = 1},
    {.sentence = {WORDS(0, 10, 26, 9)}, .label = 2},
    {.sentence = {WORDS(6, 24, 12, 20, 18, 16, 8, 2)}, .label = 0},
    {.sentence = {WORDS(11, 15, 6, 7, 1, 15)}, .label = 3},
    {.sentence = {WORDS(24, 24, 12, 1, 18)}, .label = 1},
    {.sentence = {WORDS(14, 27, 23, 10, 22, 10)}, .label = 4},
};

static const golden act_golden = {
    .name = "act",
    .network = "act",
    .config = {.words = 30, .classes = 5, .embed = 20, .hidden = 24, .turns = 4, .ponder = 0.05},
    TENSORS({"embedding", 0.5}, {"W", 0.3}, {"w_1", 0.1}, {"U_s", 0.3}, {"b", 0.1}, {"U_p", 0.3}, {"b_p", 0.1},
        {"W_s", 0.3}, {"b_s", 0.1}),
    .n_examples = 40,
    .examples = golden_labelled,
    .sgd = {2.49696842194, 2.51235946247, 2.27357888024, 2.5291694249, 2.13300277394, 2.13263609188, 2.59342175164,
        2.45211744784, 2.80600376394, 2.12461949453, 2.3548403965, 2.04589168867, 1.9994778499, 2.00163095563,
        1.97535743711, 1.83979484848, 2.51414182504, 2.32795140371, 2.53950285915, 1.80544897176},
    .adam = {2.49696842194, 2.54454194648, 2.34945767027, 2.33477872714, 2.17614790545, 2.75598117522, 2.81494804672,
        2.63988757691, 3.13842314348, 2.75907819807, 2.81932625009, 1.79350420401, 2.40545920531, 2.31001425849,
        1.95748934139, 1.82690653049, 2.12044995654, 2.27162741899, 2.3821760073, 2.40275847442},
};

#endif

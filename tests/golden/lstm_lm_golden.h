/* lstm_lm_golden.h - made by lstm_lm.py: do not edit. */
/* clang-format off */
#ifndef VPPS_TESTS_LSTM_LM_GOLDEN_H
#define VPPS_TESTS_LSTM_LM_GOLDEN_H

#include "golden.h"

static const net_example golden_text[] = {
    {.sentence = {.words = (const uint32_t[]){28, 15, 11}, .n_words = 3}},
    {.sentence = {.words = (const uint32_t[]){1, 14, 29}, .n_words = 3}},
    {.sentence = {.words = (const uint32_t[]){18, 20, 9, 7, 4, 2, 1, 13, 27}, .n_words = 9}},
    {.sentence = {.words = (const uint32_t[]){10, 9, 23, 7, 1, 21, 16, 24, 2, 22}, .n_words = 10}},
    {.sentence = {.words = (const uint32_t[]){9, 7, 18, 23, 5, 21, 1, 18, 12, 10, 1}, .n_words = 11}},
    {.sentence = {.words = (const uint32_t[]){20, 9, 0, 24, 22, 13, 10, 17, 11}, .n_words = 9}},
    {.sentence = {.words = (const uint32_t[]){6, 13, 13, 4, 18, 27, 8, 14, 25, 2}, .n_words = 10}},
    {.sentence = {.words = (const uint32_t[]){23, 11, 4, 23, 15, 12, 23, 19}, .n_words = 8}},
    {.sentence = {.words = (const uint32_t[]){12, 1, 2, 29}, .n_words = 4}},
    {.sentence = {.words = (const uint32_t[]){1, 9, 26, 11, 4, 27, 6, 25, 22, 16, 12}, .n_words = 11}},
    {.sentence = {.words = (const uint32_t[]){15, 26, 3, 10}, .n_words = 4}},
    {.sentence = {.words = (const uint32_t[]){24, 8, 29, 16, 7, 24, 24, 11, 3, 0, 11, 10}, .n_words = 12}},
    {.sentence = {.words = (const uint32_t[]){26, 4, 29, 15, 22, 22, 0}, .n_words = 7}},
    {.sentence = {.words = (const uint32_t[]){7, 4, 21, 20, 15}, .n_words = 5}},
    {.sentence = {.words = (const uint32_t[]){0, 13}, .n_words = 2}},
    {.sentence = {.words = (const uint32_t[]){25, 11, 18, 22, 0, 21, 19, 26, 3, 12}, .n_words = 10}},
    {.sentence = {.words = (const uint32_t[]){11, 16, 14, 1, 12, 15}, .n_words = 6}},
    {.sentence = {.words = (const uint32_t[]){17, 24}, .n_words = 2}},
    {.sentence = {.words = (const uint32_t[]){7, 27, 7, 25, 29, 6, 13, 29, 11}, .n_words = 9}},
    {.sentence = {.words = (const uint32_t[]){15, 16, 19, 18, 29, 13, 5, 13, 16, 16, 29, 1}, .n_words = 12}},
    {.sentence = {.words = (const uint32_t[]){25, 19, 11, 7, 23, 11, 19, 23, 0}, .n_words = 9}},
    {.sentence = {.words = (const uint32_t[]){5, 16, 12, 14, 4, 25, 29, 7, 21}, .n_words = 9}},
    {.sentence = {.words = (const uint32_t[]){7, 8, 24, 13, 26, 8, 21, 3}, .n_words = 8}},
    {.sentence = {.words = (const uint32_t[]){11, 21, 9, 8, 24, 25, 17, 8, 9, 19}, .n_words = 10}},
    {.sentence = {.words = (const uint32_t[]){25, 0, 5, 26, 7, 19, 0, 16}, .n_words = 8}},
    {.sentence = {.words = (const uint32_t[]){6, 25, 20, 24, 3}, .n_words = 5}},
    {.sentence = {.words = (const uint32_t[]){29, 19, 5, 13, 7, 0, 4, 29, 8, 5, 8}, .n_words = 11}},
    {.sentence = {.words = (const uint32_t[]){9, 17, 6, 13, 17, 15, 23}, .n_words = 7}},
    {.sentence = {.words = (const uint32_t[]){26, 17, 19, 18, 6, 21}, .n_words = 6}},
    {.sentence = {.words = (const uint32_t[]){3, 12, 17, 9, 6, 10, 20, 17}, .n_words = 8}},
    {.sentence = {.words = (const uint32_t[]){28, 19, 24, 3, 12}, .n_words = 5}},
    {.sentence = {.words = (const uint32_t[]){3, 15, 20, 6, 11, 23}, .n_words = 6}},
    {.sentence = {.words = (const uint32_t[]){18, 24, 14, 23, 24, 26, 24, 6, 26, 7}, .n_words = 10}},
    {.sentence = {.words = (const uint32_t[]){5, 19}, .n_words = 2}},
    {.sentence = {.words = (const uint32_t[]){4, 12, 5, 28, 2}, .n_words = 5}},
    {.sentence = {.words = (const uint32_t[]){20, 7, 9, 5, 20, 4, 19, 28, 11, 1, 23, 6}, .n_words = 12}},
    {.sentence = {.words = (const uint32_t[]){24, 18, 17, 9, 8, 16, 1, 27, 24}, .n_words = 9}},
    {.sentence = {.words = (const uint32_t[]){1, 14, 19, 6, 14, 2, 1}, .n_words = 7}},
    {.sentence = {.words = (const uint32_t[]){20, 27, 12, 4, 29}, .n_words = 5}},
    {.sentence = {.words = (const uint32_t[]){16, 5, 16, 22, 12, 14, 1, 20}, .n_words = 8}},
};

static const golden lstm_lm_golden = {
    .name = "lstm-lm",
    .network = "lstm-lm",
    .config = {.words = 30, .classes = 30, .embed = 20, .hidden = 24},
    .n_tensors = 15,
    .tensors = (const golden_tensor[]){{"embedding", 0.5}, {"lstm.W_i", 0.3}, {"lstm.U_i", 0.3}, {"lstm.b_i", 0.1},
        {"lstm.W_f", 0.3}, {"lstm.U_f", 0.3}, {"lstm.b_f", 0.1}, {"lstm.W_o", 0.3}, {"lstm.U_o", 0.3},
        {"lstm.b_o", 0.1}, {"lstm.W_u", 0.3}, {"lstm.U_u", 0.3}, {"lstm.b_u", 0.1}, {"W_s", 0.3}, {"b_s", 0.1}},
    .n_examples = 40,
    .examples = golden_text,
    .sgd = {17.9515279918, 29.4209944384, 23.2987536425, 17.1571059118, 20.6970364836, 27.3525583419, 22.9665609315,
        18.3750144294, 21.763883588, 21.4128855606, 17.6403049411, 28.9338342766, 23.0685617759, 17.0216171064,
        20.3111355816, 26.5959689589, 22.610082287, 18.0333555699, 21.3946570971, 21.1501707969},
    .adam = {17.9515279918, 29.3583436528, 23.359764902, 17.05812717, 20.914540409, 27.4260647988, 23.614301015,
        18.4059097065, 22.2740006382, 21.095720447, 16.2068794356, 26.9062302808, 22.0039224433, 15.7471528663,
        19.8189530326, 25.1755105169, 21.5536006168, 16.8491165255, 20.8011382747, 19.6737133333},
};

#endif

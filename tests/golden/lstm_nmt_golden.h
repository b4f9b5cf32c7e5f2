/* lstm_nmt_golden.h - made by lstm_nmt.py: do not edit. */
/* clang-format off */
#ifndef VPPS_TESTS_LSTM_NMT_GOLDEN_H
#define VPPS_TESTS_LSTM_NMT_GOLDEN_H

#include "golden.h"

static const net_example golden_pairs[] = {
    {.sentence = {.words = (const uint32_t[]){28, 15, 11, 0, 1, 14, 29, 5}, .n_words = 8}, .target = {.words =
        (const uint32_t[]){0, 21, 25, 23, 5, 8, 17, 14, 23, 0}, .n_words = 10}},
    {.sentence = {.words = (const uint32_t[]){10, 9, 23, 7, 1, 21}, .n_words = 6}, .target = {.words =
        (const uint32_t[]){0, 25, 3, 13, 15, 25, 23, 0}, .n_words = 8}},
    {.sentence = {.words = (const uint32_t[]){23, 5, 21, 1, 18, 12, 10, 1, 21}, .n_words = 9}, .target = {.words =
        (const uint32_t[]){0, 0}, .n_words = 2}},
    {.sentence = {.words = (const uint32_t[]){0, 24, 22, 13, 10, 17, 11, 20, 6, 13}, .n_words = 10}, .target = {.words
        = (const uint32_t[]){0, 15, 19, 23, 0}, .n_words = 5}},
    {.sentence = {.words = (const uint32_t[]){14, 25, 2, 7, 23, 11, 4, 23, 15}, .n_words = 9}, .target = {.words =
        (const uint32_t[]){0, 24, 20, 0}, .n_words = 4}},
    {.sentence = {.words = (const uint32_t[]){12, 1, 2, 29, 7, 1, 9, 26, 11}, .n_words = 9}, .target = {.words =
        (const uint32_t[]){0, 23, 7, 6, 3, 0}, .n_words = 6}},
    {.sentence = {.words = (const uint32_t[]){12, 27, 15, 26, 3, 10, 0}, .n_words = 7}, .target = {.words =
        (const uint32_t[]){0, 24, 5, 17, 8, 0}, .n_words = 6}},
    {.sentence = {.words = (const uint32_t[]){24, 11, 3, 0, 11}, .n_words = 5}, .target = {.words =
        (const uint32_t[]){0, 0}, .n_words = 2}},
    {.sentence = {.words = (const uint32_t[]){26, 4, 29, 15}, .n_words = 4}, .target = {.words = (const uint32_t[]){0,
        23, 1, 0}, .n_words = 4}},
    {.sentence = {.words = (const uint32_t[]){7, 4}, .n_words = 2}, .target = {.words = (const uint32_t[]){0, 6, 0},
        .n_words = 3}},
    {.sentence = {.words = (const uint32_t[]){2, 0, 13, 27, 25, 11}, .n_words = 6}, .target = {.words =
        (const uint32_t[]){0, 13, 1, 7, 20, 22, 9, 13, 5, 0}, .n_words = 10}},
    {.sentence = {.words = (const uint32_t[]){16, 14}, .n_words = 2}, .target = {.words = (const uint32_t[]){0, 13,
        0}, .n_words = 3}},
    {.sentence = {.words = (const uint32_t[]){12, 17, 24, 27, 7, 27}, .n_words = 6}, .target = {.words =
        (const uint32_t[]){0, 21, 5, 7, 9, 5, 7, 4, 0}, .n_words = 9}},
    {.sentence = {.words = (const uint32_t[]){16, 19, 18, 29, 13, 5}, .n_words = 6}, .target = {.words =
        (const uint32_t[]){0, 17, 2, 15, 0}, .n_words = 5}},
    {.sentence = {.words = (const uint32_t[]){1, 25}, .n_words = 2}, .target = {.words = (const uint32_t[]){0, 17, 18,
        4, 12, 10, 24, 16, 13, 16, 0}, .n_words = 11}},
    {.sentence = {.words = (const uint32_t[]){12, 14, 4, 25, 29, 7, 21}, .n_words = 7}, .target = {.words =
        (const uint32_t[]){0, 18, 9, 5, 19, 7, 19, 17, 9, 0}, .n_words = 10}},
    {.sentence = {.words = (const uint32_t[]){11, 21}, .n_words = 2}, .target = {.words = (const uint32_t[]){0, 19,
        15, 21, 8, 24, 10, 20, 10, 16, 0}, .n_words = 11}},
    {.sentence = {.words = (const uint32_t[]){5}, .n_words = 1}, .target = {.words = (const uint32_t[]){0, 23, 5, 1,
        12, 5, 22, 0}, .n_words = 8}},
    {.sentence = {.words = (const uint32_t[]){20, 24, 3, 28, 29, 19}, .n_words = 6}, .target = {.words =
        (const uint32_t[]){0, 9, 3, 1, 25, 15, 0}, .n_words = 7}},
    {.sentence = {.words = (const uint32_t[]){5, 8, 13, 9, 17, 6, 13, 17, 15}, .n_words = 9}, .target = {.words =
        (const uint32_t[]){0, 23, 2, 13, 0}, .n_words = 5}},
    {.sentence = {.words = (const uint32_t[]){18, 6, 21, 15, 3, 12, 17, 9, 6, 10}, .n_words = 10}, .target = {.words =
        (const uint32_t[]){0, 0}, .n_words = 2}},
    {.sentence = {.words = (const uint32_t[]){22, 28, 19, 24, 3, 12, 26, 3}, .n_words = 8}, .target = {.words =
        (const uint32_t[]){0, 16, 7, 22, 14, 13, 0}, .n_words = 7}},
    {.sentence = {.words = (const uint32_t[]){24, 14, 23, 24, 26, 24, 6, 26, 7}, .n_words = 9}, .target = {.words =
        (const uint32_t[]){0, 11, 15, 6, 0}, .n_words = 5}},
    {.sentence = {.words = (const uint32_t[]){12, 5, 28, 2, 14}, .n_words = 5}, .target = {.words =
        (const uint32_t[]){0, 0}, .n_words = 2}},
    {.sentence = {.words = (const uint32_t[]){9, 5, 20, 4, 19, 28, 11, 1}, .n_words = 8}, .target = {.words =
        (const uint32_t[]){0, 2, 5, 20, 0}, .n_words = 5}},
    {.sentence = {.words = (const uint32_t[]){17, 9, 8, 16, 1, 27, 24, 21, 1}, .n_words = 9}, .target = {.words =
        (const uint32_t[]){0, 10, 17, 5, 13, 0}, .n_words = 6}},
    {.sentence = {.words = (const uint32_t[]){16, 20}, .n_words = 2}, .target = {.words = (const uint32_t[]){0, 13,
        10, 10, 13, 7, 1, 2, 0}, .n_words = 9}},
    {.sentence = {.words = (const uint32_t[]){12, 14, 1}, .n_words = 3}, .target = {.words = (const uint32_t[]){0, 0},
        .n_words = 2}},
    {.sentence = {.words = (const uint32_t[]){4, 5, 6, 3}, .n_words = 4}, .target = {.words = (const uint32_t[]){0,
        14, 12, 25, 9, 23, 0}, .n_words = 7}},
    {.sentence = {.words = (const uint32_t[]){23, 21}, .n_words = 2}, .target = {.words = (const uint32_t[]){0, 25,
        0}, .n_words = 3}},
    {.sentence = {.words = (const uint32_t[]){20, 27}, .n_words = 2}, .target = {.words = (const uint32_t[]){0, 21,
        17, 5, 0}, .n_words = 5}},
    {.sentence = {.words = (const uint32_t[]){7, 22, 23}, .n_words = 3}, .target = {.words = (const uint32_t[]){0, 24,
        12, 14, 21, 12, 19, 22, 10, 9, 0}, .n_words = 11}},
    {.sentence = {.words = (const uint32_t[]){8, 9, 23, 22}, .n_words = 4}, .target = {.words = (const uint32_t[]){0,
        13, 20, 1, 14, 12, 1, 8, 23, 0}, .n_words = 10}},
    {.sentence = {.words = (const uint32_t[]){13}, .n_words = 1}, .target = {.words = (const uint32_t[]){0, 18, 20,
        24, 24, 25, 18, 23, 13, 0}, .n_words = 10}},
    {.sentence = {.words = (const uint32_t[]){20, 16, 6, 12, 12, 8, 21, 28, 18, 12}, .n_words = 10}, .target = {.words
        = (const uint32_t[]){0, 20, 11, 1, 1, 20, 20, 15, 16, 0}, .n_words = 10}},
    {.sentence = {.words = (const uint32_t[]){13, 18, 6, 8}, .n_words = 4}, .target = {.words = (const uint32_t[]){0,
        16, 10, 23, 25, 0}, .n_words = 6}},
    {.sentence = {.words = (const uint32_t[]){22}, .n_words = 1}, .target = {.words = (const uint32_t[]){0, 0},
        .n_words = 2}},
    {.sentence = {.words = (const uint32_t[]){13, 4, 15, 17, 25, 11}, .n_words = 6}, .target = {.words =
        (const uint32_t[]){0, 24, 12, 10, 21, 10, 11, 0}, .n_words = 8}},
    {.sentence = {.words = (const uint32_t[]){16, 13, 5, 0, 22, 18, 12, 8}, .n_words = 8}, .target = {.words =
        (const uint32_t[]){0, 0}, .n_words = 2}},
    {.sentence = {.words = (const uint32_t[]){7, 4, 16, 25, 0, 8, 20, 12}, .n_words = 8}, .target = {.words =
        (const uint32_t[]){0, 20, 24, 8, 0}, .n_words = 5}},
};

static const golden lstm_nmt_golden = {
    .name = "lstm-nmt",
    .network = "lstm-nmt",
    .config = {.words = 30, .classes = 26, .embed = 20, .hidden = 24},
    .n_tensors = 28,
    .tensors = (const golden_tensor[]){{"source", 0.5}, {"target", 0.5}, {"encoder.W_i", 0.3}, {"encoder.U_i", 0.3},
        {"encoder.b_i", 0.1}, {"encoder.W_f", 0.3}, {"encoder.U_f", 0.3}, {"encoder.b_f", 0.1}, {"encoder.W_o", 0.3},
        {"encoder.U_o", 0.3}, {"encoder.b_o", 0.1}, {"encoder.W_u", 0.3}, {"encoder.U_u", 0.3}, {"encoder.b_u", 0.1},
        {"decoder.W_i", 0.3}, {"decoder.U_i", 0.3}, {"decoder.b_i", 0.1}, {"decoder.W_f", 0.3}, {"decoder.U_f", 0.3},
        {"decoder.b_f", 0.1}, {"decoder.W_o", 0.3}, {"decoder.U_o", 0.3}, {"decoder.b_o", 0.1}, {"decoder.W_u", 0.3},
        {"decoder.U_u", 0.3}, {"decoder.b_u", 0.1}, {"W_s", 0.3}, {"b_s", 0.1}},
    .n_examples = 40,
    .examples = golden_pairs,
    .sgd = {17.0196779603, 11.1628201597, 12.6961561638, 25.1100799117, 21.4386486718, 8.81621814783, 14.0148047182,
        17.3352881522, 25.2371602499, 9.78811276737, 15.7057587725, 10.1019477989, 11.6285866295, 24.8863959135,
        20.6995010932, 8.54023091025, 13.2967071783, 17.0433357536, 24.4419012676, 9.46553435374},
    .adam = {17.0196779603, 11.2643545226, 12.8492736284, 25.1782299819, 21.3914836047, 8.7191418676, 13.8377038447,
        17.4136202255, 25.2443450514, 9.68941652737, 14.4845023509, 9.22159557686, 10.6467850414, 23.0799984691,
        18.810320805, 7.79678541288, 11.988583432, 16.0231270293, 22.3524199895, 8.50867395137},
};

static const golden lstm_nmt_attention_golden = {
    .name = "lstm-nmt-attention",
    .network = "lstm-nmt",
    .config = {.words = 30, .classes = 26, .embed = 20, .hidden = 24, .attention = true},
    .n_tensors = 29,
    .tensors = (const golden_tensor[]){{"source", 0.5}, {"target", 0.5}, {"encoder.W_i", 0.3}, {"encoder.U_i", 0.3},
        {"encoder.b_i", 0.1}, {"encoder.W_f", 0.3}, {"encoder.U_f", 0.3}, {"encoder.b_f", 0.1}, {"encoder.W_o", 0.3},
        {"encoder.U_o", 0.3}, {"encoder.b_o", 0.1}, {"encoder.W_u", 0.3}, {"encoder.U_u", 0.3}, {"encoder.b_u", 0.1},
        {"decoder.W_i", 0.3}, {"decoder.U_i", 0.3}, {"decoder.b_i", 0.1}, {"decoder.W_f", 0.3}, {"decoder.U_f", 0.3},
        {"decoder.b_f", 0.1}, {"decoder.W_o", 0.3}, {"decoder.U_o", 0.3}, {"decoder.b_o", 0.1}, {"decoder.W_u", 0.3},
        {"decoder.U_u", 0.3}, {"decoder.b_u", 0.1}, {"W_s", 0.3}, {"b_s", 0.1}, {"W_a", 0.3}},
    .n_examples = 40,
    .examples = golden_pairs,
    .sgd = {16.9485501654, 11.226801318, 12.9905965256, 25.0054009537, 21.3249787001, 8.92099742493, 13.3534837438,
        17.3900032582, 25.9304573177, 9.67107776057, 15.7313390607, 10.1484386405, 11.7422788475, 24.9015444905,
        20.4080651769, 8.7212241548, 12.622272743, 16.9636814229, 24.5456471844, 9.48941084098},
    .adam = {16.9485501654, 11.2775667113, 12.8461579901, 25.5176211878, 21.7323106682, 8.54533654227, 13.0688051775,
        18.1896064343, 25.5321476865, 9.68839425355, 15.1887348855, 9.65568608689, 10.6797295614, 21.8614930966,
        18.5154702294, 7.08881530198, 11.0954587026, 15.1679744065, 22.134356416, 8.11721058599},
};

static const golden lstm_nmt_input_feeding_golden = {
    .name = "lstm-nmt-input-feeding",
    .network = "lstm-nmt",
    .config = {.words = 30, .classes = 26, .embed = 20, .hidden = 24, .input_feeding = true},
    .n_tensors = 29,
    .tensors = (const golden_tensor[]){{"source", 0.5}, {"target", 0.5}, {"encoder.W_i", 0.3}, {"encoder.U_i", 0.3},
        {"encoder.b_i", 0.1}, {"encoder.W_f", 0.3}, {"encoder.U_f", 0.3}, {"encoder.b_f", 0.1}, {"encoder.W_o", 0.3},
        {"encoder.U_o", 0.3}, {"encoder.b_o", 0.1}, {"encoder.W_u", 0.3}, {"encoder.U_u", 0.3}, {"encoder.b_u", 0.1},
        {"decoder.W_i", 0.3}, {"decoder.U_i", 0.3}, {"decoder.b_i", 0.1}, {"decoder.W_f", 0.3}, {"decoder.U_f", 0.3},
        {"decoder.b_f", 0.1}, {"decoder.W_o", 0.3}, {"decoder.U_o", 0.3}, {"decoder.b_o", 0.1}, {"decoder.W_u", 0.3},
        {"decoder.U_u", 0.3}, {"decoder.b_u", 0.1}, {"W_s", 0.3}, {"b_s", 0.1}, {"W_a", 0.3}},
    .n_examples = 40,
    .examples = golden_pairs,
    .sgd = {16.9828626946, 11.2725868877, 12.6613700797, 24.9602634634, 21.190645893, 9.20794103791, 13.5825474646,
        17.0743367032, 25.4917734666, 9.82148187249, 15.769374022, 10.0928856193, 11.6235079014, 25.0022991446,
        20.4399039264, 9.0552379501, 12.8603942182, 16.5960068115, 24.3405151149, 9.53888449819},
    .adam = {16.9828626946, 11.2989377492, 12.295370146, 26.8208531477, 21.3817735128, 9.33745070711, 13.6860330915,
        17.8781547471, 24.8651180045, 9.95998355687, 15.8314121957, 9.65273536571, 10.8381517299, 23.4773306839,
        19.191999211, 8.11368803587, 11.6635174234, 15.9238374012, 22.628356809, 8.47563443676},
};

static const golden lstm_nmt_2_layers_golden = {
    .name = "lstm-nmt-2-layers",
    .network = "lstm-nmt",
    .config = {.words = 30, .classes = 26, .embed = 20, .hidden = 24, .attention = true, .layers = 2},
    .n_tensors = 53,
    .tensors = (const golden_tensor[]){{"source", 0.5}, {"target", 0.5}, {"encoder.W_i", 0.3}, {"encoder.U_i", 0.3},
        {"encoder.b_i", 0.1}, {"encoder.W_f", 0.3}, {"encoder.U_f", 0.3}, {"encoder.b_f", 0.1}, {"encoder.W_o", 0.3},
        {"encoder.U_o", 0.3}, {"encoder.b_o", 0.1}, {"encoder.W_u", 0.3}, {"encoder.U_u", 0.3}, {"encoder.b_u", 0.1},
        {"encoder2.W_i", 0.3}, {"encoder2.U_i", 0.3}, {"encoder2.b_i", 0.1}, {"encoder2.W_f", 0.3},
        {"encoder2.U_f", 0.3}, {"encoder2.b_f", 0.1}, {"encoder2.W_o", 0.3}, {"encoder2.U_o", 0.3},
        {"encoder2.b_o", 0.1}, {"encoder2.W_u", 0.3}, {"encoder2.U_u", 0.3}, {"encoder2.b_u", 0.1},
        {"decoder.W_i", 0.3}, {"decoder.U_i", 0.3}, {"decoder.b_i", 0.1}, {"decoder.W_f", 0.3}, {"decoder.U_f", 0.3},
        {"decoder.b_f", 0.1}, {"decoder.W_o", 0.3}, {"decoder.U_o", 0.3}, {"decoder.b_o", 0.1}, {"decoder.W_u", 0.3},
        {"decoder.U_u", 0.3}, {"decoder.b_u", 0.1}, {"decoder2.W_i", 0.3}, {"decoder2.U_i", 0.3},
        {"decoder2.b_i", 0.1}, {"decoder2.W_f", 0.3}, {"decoder2.U_f", 0.3}, {"decoder2.b_f", 0.1},
        {"decoder2.W_o", 0.3}, {"decoder2.U_o", 0.3}, {"decoder2.b_o", 0.1}, {"decoder2.W_u", 0.3},
        {"decoder2.U_u", 0.3}, {"decoder2.b_u", 0.1}, {"W_s", 0.3}, {"b_s", 0.1}, {"W_a", 0.3}},
    .n_examples = 40,
    .examples = golden_pairs,
    .sgd = {17.1624979193, 11.2165592656, 12.6495155217, 24.7394643093, 21.2405424235, 8.90318174326, 13.4837906066,
        17.3439794751, 26.1601264454, 9.77398098898, 16.0275664333, 10.2566691921, 11.7655627722, 25.2762060544,
        20.7996416786, 8.88299333215, 13.0851781598, 17.1624435239, 25.2968447653, 9.71301074711},
    .adam = {17.1624979193, 11.2014424386, 12.4209565515, 27.1840094358, 21.639133833, 9.40103471512, 14.1466547813,
        17.8858558947, 25.9075654495, 10.2729846741, 15.753350128, 10.4644132083, 11.448715809, 24.3838776235,
        19.8640243487, 8.75461566006, 12.327422292, 16.861884393, 24.1740542035, 9.52218709289},
};

#endif

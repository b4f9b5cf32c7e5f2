/* gat_golden.h - made by gat.py: do not edit. */
/* clang-format off */
#ifndef VPPS_TESTS_GAT_GOLDEN_H
#define VPPS_TESTS_GAT_GOLDEN_H

#include "golden.h"

static const net_example golden_graphs[] = {
    {.sentence = {.words = (const uint32_t[]){9}, .tags = (const uint32_t[]){1}, .n_words = 1}, .label = 1, .numbers =
        (const float[]){0.0f, 0.75f}},
    {.sentence = {.words = (const uint32_t[]){18, 21, 21, 18, 7}, .tags = (const uint32_t[]){4, VPPS_NO_WORD,
        VPPS_NO_WORD, VPPS_NO_WORD, VPPS_NO_WORD}, .n_words = 5}, .label = 1, .edges = (const net_edge[]){{4, 3, 3},
        {0, 3, 1}, {0, 1, 2}, {0, 2, 0}, {3, 1, 0}, {0, 3, 1}}, .n_edges = 6, .numbers = (const float[]){0.75f, -1.0f,
        -1.0f, -1.0f, 0.25f, 1.0f, -0.5f, -1.0f, -0.5f, 0.0f}},
    {.sentence = {.words = (const uint32_t[]){13, 28}, .tags = (const uint32_t[]){4, VPPS_NO_WORD}, .n_words = 2},
        .label = 2, .numbers = (const float[]){0.5f, 0.25f, 1.0f, 0.5f}},
    {.sentence = {.words = (const uint32_t[]){24, 4, 23, 5, 28}, .tags = (const uint32_t[]){0, 1, VPPS_NO_WORD,
        VPPS_NO_WORD, VPPS_NO_WORD}, .n_words = 5}, .label = 3, .edges = (const net_edge[]){{0, 0, 3}, {1, 0, 0},
        {4, 1, 2}, {2, 1, 1}, {2, 3, 0}, {4, 0, 2}, {4, 0, 1}, {4, 3, 0}}, .n_edges = 8, .numbers =
        (const float[]){0.75f, 1.0f, -1.0f, 0.5f, 0.25f, -0.25f, 0.0f, 1.0f, -0.75f, -0.25f}},
    {.sentence = {.words = (const uint32_t[]){16, 19, 5, 11, 21}, .tags = (const uint32_t[]){4, VPPS_NO_WORD,
        VPPS_NO_WORD, 0, VPPS_NO_WORD}, .n_words = 5}, .label = 3, .edges = (const net_edge[]){{3, 1, 0}, {4, 4, 1}},
        .n_edges = 2, .numbers = (const float[]){0.25f, -0.5f, -1.0f, -0.5f, -0.75f, -0.25f, 0.75f, 0.5f, 0.75f,
        -0.75f}},
    {.sentence = {.words = (const uint32_t[]){9, 1, 11}, .tags = (const uint32_t[]){1, 1, VPPS_NO_WORD}, .n_words =
        3}, .label = 3, .edges = (const net_edge[]){{0, 2, 2}, {2, 0, 1}, {1, 2, 3}, {1, 2, 2}}, .n_edges = 4,
        .numbers = (const float[]){-1.0f, -0.5f, 1.0f, -0.5f, 1.0f, 0.5f}},
    {.sentence = {.words = (const uint32_t[]){20}, .tags = (const uint32_t[]){1}, .n_words = 1}, .label = 2, .edges =
        (const net_edge[]){{0, 0, 0}}, .n_edges = 1, .numbers = (const float[]){0.25f, 0.0f}},
    {.sentence = {.words = (const uint32_t[]){20, 3, 3, 6, 25}, .tags = (const uint32_t[]){2, 4, VPPS_NO_WORD, 3,
        VPPS_NO_WORD}, .n_words = 5}, .label = 3, .edges = (const net_edge[]){{3, 2, 1}, {4, 1, 2}, {2, 1, 0},
        {2, 0, 3}, {0, 2, 0}, {1, 2, 1}, {4, 0, 2}}, .n_edges = 7, .numbers = (const float[]){1.0f, 0.5f, 0.0f, 0.75f,
        -0.75f, 1.0f, -1.0f, 0.75f, 0.25f, 0.5f}},
    {.sentence = {.words = (const uint32_t[]){17, 19, 23, 21}, .tags = (const uint32_t[]){1, 4, 1, 0}, .n_words = 4},
        .label = 2, .edges = (const net_edge[]){{2, 3, 3}}, .n_edges = 1, .numbers = (const float[]){-0.75f, -1.0f,
        0.25f, 0.5f, 0.5f, 0.25f, -0.5f, 0.25f}},
    {.sentence = {.words = (const uint32_t[]){25, 3, 13}, .tags = (const uint32_t[]){0, 3, VPPS_NO_WORD}, .n_words =
        3}, .label = 0, .edges = (const net_edge[]){{0, 0, 2}, {1, 2, 3}, {2, 1, 0}}, .n_edges = 3, .numbers =
        (const float[]){0.5f, -0.25f, -0.75f, -0.75f, -0.25f, 0.25f}},
    {.sentence = {.words = (const uint32_t[]){11, 7, 19}, .tags = (const uint32_t[]){2, VPPS_NO_WORD, VPPS_NO_WORD},
        .n_words = 3}, .label = 2, .edges = (const net_edge[]){{0, 2, 1}, {2, 1, 3}, {2, 2, 2}, {0, 2, 0}, {2, 1, 2},
        {0, 0, 2}}, .n_edges = 6, .numbers = (const float[]){0.5f, 0.0f, 0.5f, -0.75f, -0.75f, -1.0f}},
    {.sentence = {.words = (const uint32_t[]){8, 27, 20, 7}, .tags = (const uint32_t[]){2, 2, 0, 1}, .n_words = 4},
        .label = 2, .edges = (const net_edge[]){{1, 2, 0}, {1, 3, 2}, {0, 1, 3}, {3, 0, 3}, {3, 0, 2}, {0, 1, 2},
        {0, 3, 0}, {3, 2, 0}}, .n_edges = 8, .numbers = (const float[]){1.0f, 0.25f, 0.0f, -0.5f, 0.75f, -0.75f, 1.0f,
        1.0f}},
    {.sentence = {.words = (const uint32_t[]){13}, .tags = (const uint32_t[]){3}, .n_words = 1}, .label = 3, .numbers
        = (const float[]){0.75f, 0.75f}},
    {.sentence = {.words = (const uint32_t[]){17}, .tags = (const uint32_t[]){2}, .n_words = 1}, .label = 3, .numbers
        = (const float[]){-0.25f, -0.5f}},
    {.sentence = {.words = (const uint32_t[]){22, 22, 12, 4, 17}, .tags = (const uint32_t[]){0, 2, VPPS_NO_WORD, 2,
        3}, .n_words = 5}, .label = 1, .edges = (const net_edge[]){{4, 0, 2}, {0, 2, 3}, {3, 4, 3}, {4, 0, 3}},
        .n_edges = 4, .numbers = (const float[]){-0.25f, 0.75f, -1.0f, 0.0f, -1.0f, -1.0f, -0.25f, -1.0f, -0.5f,
        -0.75f}},
    {.sentence = {.words = (const uint32_t[]){17, 25}, .tags = (const uint32_t[]){3, 4}, .n_words = 2}, .label = 1,
        .edges = (const net_edge[]){{0, 0, 1}}, .n_edges = 1, .numbers = (const float[]){-0.5f, 0.0f, 0.0f, 0.75f}},
    {.sentence = {.words = (const uint32_t[]){27, 9, 28, 28, 23}, .tags = (const uint32_t[]){2, 3, 3, VPPS_NO_WORD,
        4}, .n_words = 5}, .label = 2, .edges = (const net_edge[]){{4, 4, 2}, {0, 1, 3}, {0, 3, 3}, {3, 0, 1},
        {1, 0, 2}, {1, 1, 2}, {3, 3, 1}, {2, 2, 2}}, .n_edges = 8, .numbers = (const float[]){0.5f, 0.75f, 0.25f,
        -1.0f, 1.0f, -0.25f, 0.5f, 0.0f, 0.25f, -0.75f}},
    {.sentence = {.words = (const uint32_t[]){5}, .tags = (const uint32_t[]){0}, .n_words = 1}, .label = 2, .numbers =
        (const float[]){-0.75f, 0.0f}},
    {.sentence = {.words = (const uint32_t[]){17, 24, 26}, .tags = (const uint32_t[]){4, VPPS_NO_WORD, VPPS_NO_WORD},
        .n_words = 3}, .label = 0, .edges = (const net_edge[]){{2, 1, 0}, {1, 2, 0}, {2, 2, 3}, {0, 1, 0}, {1, 0, 1},
        {0, 2, 0}}, .n_edges = 6, .numbers = (const float[]){-0.75f, -1.0f, 0.25f, 1.0f, 0.5f, 0.75f}},
    {.sentence = {.words = (const uint32_t[]){17, 15, 12, 5, 17}, .tags = (const uint32_t[]){2, 1, VPPS_NO_WORD,
        VPPS_NO_WORD, VPPS_NO_WORD}, .n_words = 5}, .label = 4, .edges = (const net_edge[]){{2, 0, 1}, {2, 4, 1},
        {0, 1, 2}, {2, 1, 0}, {2, 3, 2}, {0, 2, 2}, {0, 1, 0}, {1, 2, 3}}, .n_edges = 8, .numbers =
        (const float[]){0.25f, -0.5f, 0.25f, -0.5f, 0.75f, 0.0f, -0.5f, -0.5f, 0.75f, 0.25f}},
    {.sentence = {.words = (const uint32_t[]){26, 18, 2}, .tags = (const uint32_t[]){2, 4, VPPS_NO_WORD}, .n_words =
        3}, .label = 4, .edges = (const net_edge[]){{0, 1, 2}, {2, 1, 1}, {0, 0, 0}, {0, 0, 1}, {1, 0, 3}}, .n_edges =
        5, .numbers = (const float[]){-1.0f, 1.0f, 0.0f, 0.25f, -1.0f, 0.75f}},
    {.sentence = {.words = (const uint32_t[]){15, 25, 4}, .tags = (const uint32_t[]){0, 4, 1}, .n_words = 3}, .label =
        0, .edges = (const net_edge[]){{0, 2, 2}, {0, 1, 0}, {1, 2, 3}}, .n_edges = 3, .numbers =
        (const float[]){0.75f, 1.0f, -0.5f, -0.5f, 0.0f, -1.0f}},
    {.sentence = {.words = (const uint32_t[]){12, 2, 28}, .tags = (const uint32_t[]){4, 3, 0}, .n_words = 3}, .label =
        4, .edges = (const net_edge[]){{0, 0, 1}, {1, 2, 2}, {1, 0, 2}, {1, 1, 2}, {0, 0, 2}}, .n_edges = 5, .numbers
        = (const float[]){0.75f, -0.25f, -0.75f, -0.75f, -0.75f, -0.75f}},
    {.sentence = {.words = (const uint32_t[]){27}, .tags = (const uint32_t[]){0}, .n_words = 1}, .label = 1, .edges =
        (const net_edge[]){{0, 0, 1}, {0, 0, 0}}, .n_edges = 2, .numbers = (const float[]){-0.5f, 0.0f}},
    {.sentence = {.words = (const uint32_t[]){17, 16, 8, 25}, .tags = (const uint32_t[]){3, 3, 0, VPPS_NO_WORD},
        .n_words = 4}, .label = 4, .edges = (const net_edge[]){{0, 3, 2}, {1, 0, 2}, {0, 3, 1}, {0, 1, 0}, {0, 0, 2}},
        .n_edges = 5, .numbers = (const float[]){0.0f, 0.75f, -1.0f, -0.75f, -0.25f, 0.0f, -0.25f, 0.75f}},
    {.sentence = {.words = (const uint32_t[]){3}, .tags = (const uint32_t[]){3}, .n_words = 1}, .label = 2, .edges =
        (const net_edge[]){{0, 0, 2}}, .n_edges = 1, .numbers = (const float[]){0.5f, -0.5f}},
    {.sentence = {.words = (const uint32_t[]){20}, .tags = (const uint32_t[]){3}, .n_words = 1}, .label = 3, .edges =
        (const net_edge[]){{0, 0, 2}}, .n_edges = 1, .numbers = (const float[]){-0.25f, 1.0f}},
    {.sentence = {.words = (const uint32_t[]){6, 24}, .tags = (const uint32_t[]){4, 4}, .n_words = 2}, .label = 4,
        .numbers = (const float[]){-0.5f, -0.25f, -1.0f, 0.25f}},
    {.sentence = {.words = (const uint32_t[]){9, 8, 17, 8, 1}, .tags = (const uint32_t[]){2, 0, 0, 0, VPPS_NO_WORD},
        .n_words = 5}, .label = 1, .edges = (const net_edge[]){{3, 3, 1}, {1, 2, 1}, {0, 2, 1}, {2, 4, 2}}, .n_edges =
        4, .numbers = (const float[]){-0.5f, 0.25f, -0.75f, -0.25f, -0.75f, -1.0f, 1.0f, -0.75f, 0.75f, 0.0f}},
    {.sentence = {.words = (const uint32_t[]){4, 10, 17}, .tags = (const uint32_t[]){2, VPPS_NO_WORD, VPPS_NO_WORD},
        .n_words = 3}, .label = 0, .edges = (const net_edge[]){{0, 1, 3}, {1, 2, 3}, {1, 2, 1}, {1, 0, 3}, {0, 1, 1}},
        .n_edges = 5, .numbers = (const float[]){-1.0f, 0.0f, -0.75f, 1.0f, 0.25f, -1.0f}},
    {.sentence = {.words = (const uint32_t[]){11, 13, 15}, .tags = (const uint32_t[]){0, 0, 0}, .n_words = 3}, .label
        = 1, .edges = (const net_edge[]){{1, 1, 0}}, .n_edges = 1, .numbers = (const float[]){-0.25f, 1.0f, 1.0f,
        0.5f, -0.25f, -1.0f}},
    {.sentence = {.words = (const uint32_t[]){5, 17}, .tags = (const uint32_t[]){0, VPPS_NO_WORD}, .n_words = 2},
        .label = 0, .numbers = (const float[]){1.0f, 0.5f, -0.75f, -1.0f}},
    {.sentence = {.words = (const uint32_t[]){22}, .tags = (const uint32_t[]){1}, .n_words = 1}, .label = 1, .numbers
        = (const float[]){0.25f, -0.25f}},
    {.sentence = {.words = (const uint32_t[]){3, 17, 20, 0}, .tags = (const uint32_t[]){3, 1, VPPS_NO_WORD, 3},
        .n_words = 4}, .label = 3, .edges = (const net_edge[]){{0, 2, 3}, {0, 2, 1}}, .n_edges = 2, .numbers =
        (const float[]){1.0f, -0.75f, -1.0f, -0.5f, -0.75f, -1.0f, 0.5f, -1.0f}},
    {.sentence = {.words = (const uint32_t[]){18, 26, 2, 6, 25}, .tags = (const uint32_t[]){4, VPPS_NO_WORD,
        VPPS_NO_WORD, VPPS_NO_WORD, VPPS_NO_WORD}, .n_words = 5}, .label = 0, .edges = (const net_edge[]){{4, 0, 3},
        {4, 1, 0}, {2, 1, 0}, {4, 4, 1}, {2, 4, 2}, {3, 2, 2}, {4, 0, 3}, {2, 3, 0}}, .n_edges = 8, .numbers =
        (const float[]){-0.25f, 1.0f, 1.0f, 0.5f, -0.75f, 0.75f, -0.75f, -0.5f, -0.75f, 0.75f}},
    {.sentence = {.words = (const uint32_t[]){16, 10, 16, 5, 20}, .tags = (const uint32_t[]){0, 3, VPPS_NO_WORD, 3,
        VPPS_NO_WORD}, .n_words = 5}, .label = 4, .edges = (const net_edge[]){{1, 3, 2}, {0, 3, 2}, {1, 2, 3},
        {1, 2, 3}}, .n_edges = 4, .numbers = (const float[]){-0.75f, 1.0f, -0.75f, 0.75f, -0.25f, -0.75f, -0.25f,
        0.25f, -0.5f, 1.0f}},
    {.sentence = {.words = (const uint32_t[]){19}, .tags = (const uint32_t[]){2}, .n_words = 1}, .label = 3, .edges =
        (const net_edge[]){{0, 0, 0}}, .n_edges = 1, .numbers = (const float[]){0.75f, 0.5f}},
    {.sentence = {.words = (const uint32_t[]){10, 28}, .tags = (const uint32_t[]){1, 4}, .n_words = 2}, .label = 0,
        .edges = (const net_edge[]){{0, 1, 0}, {1, 0, 3}}, .n_edges = 2, .numbers = (const float[]){0.75f, 0.5f,
        -1.0f, 1.0f}},
    {.sentence = {.words = (const uint32_t[]){7}, .tags = (const uint32_t[]){2}, .n_words = 1}, .label = 1, .numbers =
        (const float[]){0.0f, 0.5f}},
    {.sentence = {.words = (const uint32_t[]){8}, .tags = (const uint32_t[]){1}, .n_words = 1}, .label = 1, .edges =
        (const net_edge[]){{0, 0, 3}}, .n_edges = 1, .numbers = (const float[]){0.5f, -0.75f}},
};

static const golden gat_1_golden = {
    .name = "gat-1",
    .network = "gat",
    .config = {.words = 30, .classes = 5, .embed = 20, .hidden = 24, .layers = 1, .heads = 3, .edge_types = 4,
        .numbers = 2},
    .n_tensors = 15,
    .tensors = (const golden_tensor[]){{"embedding", 0.5}, {"W_x", 0.3}, {"b_x", 0.1}, {"W_n", 0.3},
        {"round.forward", 0.5}, {"round.backward", 0.5}, {"round.W_q", 0.1}, {"round.b_q", 0.1}, {"round.W_v", 0.1},
        {"round.a", 0.1}, {"round.W_o", 0.1}, {"round.W_h", 0.1}, {"round.b_o", 0.1}, {"W_s", 0.3}, {"b_s", 0.1}},
    .n_examples = 40,
    .examples = golden_graphs,
    .sgd = {1.81879950468, 3.96753820269, 5.3741106589, 3.64231269666, 4.05487446223, 3.6841185458, 2.97830765107,
        4.26244779615, 4.87866757867, 2.53841439602, 1.79705541757, 3.01973505974, 4.26684559645, 3.74227747065,
        3.43825612691, 2.94269887823, 2.72574713883, 3.59280931197, 3.69706688377, 2.40209202761},
    .adam = {1.81879950468, 4.04573989389, 5.67045237565, 4.26300201775, 4.80909510805, 3.05100732082, 3.31008327449,
        4.54433591166, 4.47502026702, 2.95932326661, 1.76234782011, 2.81057706034, 4.75467933124, 3.48460012685,
        3.34438986959, 2.20730287122, 2.73318420381, 3.43308168039, 2.70257275378, 1.41630554237},
};

static const golden gat_2_golden = {
    .name = "gat-2",
    .network = "gat",
    .config = {.words = 30, .classes = 5, .embed = 20, .hidden = 24, .layers = 2, .heads = 3, .edge_types = 4,
        .numbers = 2},
    .n_tensors = 24,
    .tensors = (const golden_tensor[]){{"embedding", 0.5}, {"W_x", 0.3}, {"b_x", 0.1}, {"W_n", 0.3},
        {"round.forward", 0.5}, {"round.backward", 0.5}, {"round.W_q", 0.1}, {"round.b_q", 0.1}, {"round.W_v", 0.1},
        {"round.a", 0.1}, {"round.W_o", 0.1}, {"round.W_h", 0.1}, {"round.b_o", 0.1}, {"round2.forward", 0.5},
        {"round2.backward", 0.5}, {"round2.W_q", 0.1}, {"round2.b_q", 0.1}, {"round2.W_v", 0.1}, {"round2.a", 0.1},
        {"round2.W_o", 0.1}, {"round2.W_h", 0.1}, {"round2.b_o", 0.1}, {"W_s", 0.3}, {"b_s", 0.1}},
    .n_examples = 40,
    .examples = golden_graphs,
    .sgd = {2.59436227579, 2.93102915389, 6.72088809616, 3.83321339519, 3.91242321801, 3.9446075683, 2.94995516705,
        4.0225592807, 5.20602846858, 2.43204381393, 2.01913107965, 3.33080843642, 4.06476708406, 3.53007677836,
        3.34562065622, 3.16578669991, 2.70205613125, 3.49852587759, 3.56166269347, 2.3174532426},
    .adam = {2.59436227579, 3.36498866996, 8.2532164889, 4.69291874576, 4.6240358068, 3.51893420028, 3.62672674836,
        4.50257743775, 5.03863840965, 2.29491644796, 1.95144616748, 3.5871495758, 4.53491546392, 3.45770657582,
        3.70302885142, 3.04271656112, 2.78531675375, 3.54571321262, 2.62535200499, 1.81928626085},
};

static const golden gat_classifier_2_golden = {
    .name = "gat-classifier-2",
    .network = "gat-classifier",
    .config = {.words = 30, .classes = 5, .embed = 20, .hidden = 24, .layers = 2, .heads = 3, .edge_types = 4,
        .numbers = 2},
    .n_tensors = 24,
    .tensors = (const golden_tensor[]){{"embedding", 0.5}, {"W_x", 0.3}, {"b_x", 0.1}, {"W_n", 0.3},
        {"round.forward", 0.5}, {"round.backward", 0.5}, {"round.W_q", 0.1}, {"round.b_q", 0.1}, {"round.W_v", 0.1},
        {"round.a", 0.1}, {"round.W_o", 0.1}, {"round.W_h", 0.1}, {"round.b_o", 0.1}, {"round2.forward", 0.5},
        {"round2.backward", 0.5}, {"round2.W_q", 0.1}, {"round2.b_q", 0.1}, {"round2.W_v", 0.1}, {"round2.a", 0.1},
        {"round2.W_o", 0.1}, {"round2.W_h", 0.1}, {"round2.b_o", 0.1}, {"W_s", 0.3}, {"b_s", 0.1}},
    .n_examples = 40,
    .examples = golden_graphs,
    .sgd = {1.4269286389, 1.66179608107, 1.6861605554, 1.61699446042, 2.01162419311, 2.14354064912, 1.74370423797,
        1.64958483678, 1.48268545815, 1.49523203272, 1.52665152404, 1.35937936038, 1.69072163455, 1.78676125515,
        1.84907860482, 1.57405440958, 1.43285296409, 1.49024636381, 1.21189678634, 1.21527637454},
    .adam = {1.4269286389, 1.75427918509, 1.73825515446, 1.93464411021, 2.7204362614, 2.74878998348, 3.81743750902,
        2.18707635828, 1.31493831259, 3.6114444505, 1.85272917918, 1.11593605529, 1.33056840937, 1.56932842216,
        2.06940907566, 2.740986795, 2.86998185728, 1.93334199268, 1.96032502258, 1.3524683217},
};

#endif

/* dropout_tests.c - where dropout is: on every embedding, on what each further layer of LSTMs reads, and on what each layer of the
 * classifier reads; of a transformer, also on what attention and feed-forward add, and on what the second matrix of feed-forward reads;
 * nowhere else. What is dropped shows in a step of training: an element of an embedding that is 0 gets no gradient, and no gradient gets
 * the column that it is multiplied with. */
#include "fixture.h"

/* ---------------------------------------------------------------- examples of one word to three
 *
 * So few that some elements are dropped at every place where a parameter is used. */

#define SENTENCE_OF(...)                                                                                               \
    .words = (const uint32_t[]){__VA_ARGS__}, .n_words = sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)
#define SENTENCE(...)                                                                                                  \
    { SENTENCE_OF(__VA_ARGS__) }

/* Two characters that form a word. */
static const vpps_lattice lattice = {3, (const uint32_t[]){0, 1, 0}, (const uint32_t[]){0, 0, 1, 3},
                                     (const vpps_lattice_arc[]){{0, 1, true}, {1, 2, true}, {0, 1, false}}};

/* (1 (-1 (-1 2) (-1 0)) (-1 3)) */
static const vpps_tree tree = {
    (const vpps_tree_node[]){
        {-1, -1, -1, 2}, {-1, -1, -1, 0}, {-1, 0, 1, VPPS_NO_WORD}, {-1, -1, -1, 3}, {1, 2, 3, VPPS_NO_WORD}},
    5, 3};

static const net_example shortest[] = {
    [NET_TREES] = {.tree = &tree},
    [NET_TAGGING] = {.sentence = {SENTENCE_OF(0, 2), .tags = (const uint32_t[]){1, 0}},
                     .spellings = (const net_spelling[]){{NULL, 0}, {(const uint32_t[]){1}, 1}}},
    [NET_SENTENCES] = {.sentence = SENTENCE(1, 2), .label = 3},
    [NET_TEXT] = {.sentence = SENTENCE(1, 2)},
    [NET_LATTICES] = {.lattice = &lattice},
    [NET_PAIRS] = {.sentence = SENTENCE(1, 2), .target = SENTENCE(0, 2)},
    [NET_LATTICE_PAIRS] = {.lattice = &lattice, .target = SENTENCE(0, 2)},
    [NET_DEPENDENCIES] = {.sentence = {SENTENCE_OF(1, 2), .tags = (const uint32_t[]){1, VPPS_NO_WORD},
                                       .heads = (const uint32_t[]){0, 1}}},
    [NET_NODES] = {.sentence = {SENTENCE_OF(1, 2), .tags = (const uint32_t[]){1, 0}},
                   .edges = (const net_edge[]){{0, 1, 0}},
                   .n_edges = 1,
                   .numbers = (const float[]){1, 2, -1, 1}},
    [NET_GRAPHS] = {.sentence = SENTENCE(1, 2),
                    .label = 3,
                    .edges = (const net_edge[]){{0, 1, 0}},
                    .n_edges = 1,
                    .numbers = (const float[]){1, 2, -1, 1}},
};

/* ---------------------------------------------------------------- what a step changes */

/* How many elements of a table's used entries, or columns of a matrix, a step changes. */
typedef struct changes {
    uint32_t changed, unchanged;
} changes;

static void count_table(changes *c, const vpps_param_info *info, const float *before, const float *after) {
    const uint32_t n = info->rows * info->cols;
    for (uint32_t id = 0; id < info->count; id++, before += n, after += n) {
        if (memcmp(before, after, n * sizeof *before) == 0) continue;
        for (uint32_t i = 0; i < n; i++) ++*(before[i] != after[i] ? &c->changed : &c->unchanged);
    }
}

static bool column_changed(const vpps_param_info *info, uint32_t j, const float *before, const float *after) {
    for (uint32_t i = 0; i < info->rows; i++)
        if (before[i * info->cols + j] != after[i * info->cols + j]) return true;
    return false;
}

static void count_columns(changes *c, const vpps_param_info *info, const float *before, const float *after) {
    for (uint32_t j = 0; j < info->cols; j++) ++*(column_changed(info, j, before, after) ? &c->changed : &c->unchanged);
}

/* What a matrix is multiplied with: states, which have no dropout; embeddings or the classifier's inputs, which have; or both. */
typedef enum operand { DROPPED, NOT_DROPPED, BOTH } operand;

static operand operand_of(const network *n, const char *matrix) {
    const bool at_words = strcmp(n->name, "td-rnn") == 0 || strcmp(n->name, "tree-fc") == 0;
    if (strcmp(matrix, "W_l") == 0 || strcmp(matrix, "W_r") == 0) return at_words ? BOTH : NOT_DROPPED;
    if (strncmp(matrix, "U_", 2) == 0 || strstr(matrix, ".U_")) return NOT_DROPPED;
    if (strncmp(matrix, "round", 5) == 0 || strcmp(matrix, "W_n") == 0) return NOT_DROPPED;
    if (strncmp(matrix, "layer", 5) == 0) return strstr(matrix, ".W_2") ? DROPPED : NOT_DROPPED;
    if (strncmp(matrix, "W_M", 3) == 0 || strcmp(matrix, "W_a") == 0) return NOT_DROPPED;
    return DROPPED;
}

static void check_changes(const fixture *f, vpps_param p, const float *before) {
    vpps_param_info info = {.size = sizeof info};
    changes c = {0};
    const float *after = vpps_param_values(f->model, p);
    TEST_OK(vpps_param_describe(f->model, p, &info));
    if (info.kind == VPPS_VECTOR) return;
    (info.kind == VPPS_LOOKUP ? count_table : count_columns)(&c, &info, before, after);
    const bool words = info.kind == VPPS_LOOKUP && strncmp(info.name, "round", 5) != 0;
    const operand o = words ? DROPPED : operand_of(f->net, info.name);
    const bool reached = info.kind == VPPS_LOOKUP || strcmp(info.name, "W_s") == 0 || strcmp(info.name, "W_h") == 0;
    ck_assert_msg(c.changed || !reached, "%s: %s has no gradient", f->name, info.name);
    if (!c.changed || o == BOTH) return;
    /* sometimes rounding hides a change */
    const bool dropped = c.unchanged > (c.changed + c.unchanged) / 20;
    ck_assert_msg(dropped == (o == DROPPED), "%s: %u of what %s is used with are dropped, %u are not", f->name,
                  c.unchanged, info.name, c.changed);
}

/* Both directions of a layer above the first read the same values: what is dropped for one is dropped for the other. */
static void check_directions(const fixture *f, float *const *before) {
    vpps_param p[2];
    vpps_param_info info = {.size = sizeof info};
    if (f->config.layers < 2 || strncmp(f->net->name, "bilstm-", 7) != 0) return;
    TEST_OK(vpps_param_find(f->model, "forward2.W_i", &p[0]));
    TEST_OK(vpps_param_find(f->model, "backward2.W_i", &p[1]));
    TEST_OK(vpps_param_describe(f->model, p[0], &info));
    uint32_t differ = 0;
    for (uint32_t j = 0; j < info.cols; j++) {
        const bool changed[] = {column_changed(&info, j, before[p[0]], vpps_param_values(f->model, p[0])),
                                column_changed(&info, j, before[p[1]], vpps_param_values(f->model, p[1]))};
        differ += changed[0] != changed[1];
    }
    ck_assert_msg(differ <= info.cols / 20, "%s: %u of %u elements are dropped for one direction alone", f->name,
                  differ, info.cols);
}

TEST_GROUP("dropout");

TEST_EACH(dropout_is_where_it_is_documented, 0, case_count()) {
    enum { HIDDEN = 128, EMBED = 257 }; /* so wide that chance neither empties nor fills a vector */
    vpps_options o = options_for("cpu");
    AT_END(fixture_close) fixture f;
    float *before[128];
    const net_case c = case_at(_i);
    examples e = *examples_of(c.net->kind);
    e.n = 1;
    e.x = &shortest[c.net->kind];
    o.optimizer = (vpps_optimizer){.kind = VPPS_SGD, .lr = 1};
    o.seed = test_seed();
    fixture_open(&f, _i, &e, HIDDEN, EMBED, 0.6f);
    ck_assert_uint_le(vpps_param_count(f.model), VPPS_COUNT(before));
    for (vpps_param p = 0; p < vpps_param_count(f.model); p++) {
        vpps_param_info info = {.size = sizeof info};
        TEST_OK(vpps_param_describe(f.model, p, &info));
        const size_t bytes = (size_t)info.count * info.rows * info.cols * sizeof *before[p];
        before[p] = malloc(bytes);
        ck_assert_ptr_nonnull(before[p]);
        memcpy(before[p], vpps_param_values(f.model, p), bytes);
    }
    OWNED(vpps_handle) *h = new_handle(f.model, &o);
    TEST_OK(vpps_fb(h, f.g, build(&f, NET_HEADS_LABELLED), NULL));
    TEST_OK(vpps_read_parameters(h));
    for (vpps_param p = 0; p < vpps_param_count(f.model); p++) check_changes(&f, p, before[p]);
    check_directions(&f, before);
    for (vpps_param p = 0; p < vpps_param_count(f.model); p++) free(before[p]);
}

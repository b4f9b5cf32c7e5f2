/* row_tests.c - the rows of the table of networks, and numbers of parameters. */
#include "fixture.h"

/* ---------------------------------------------------------------- the row */

static void check_option(const network *n, const option_row *o) {
    const char *const at = (const char *)&n->defaults + o->offset;
    double value = 0;
    ck_assert_msg(o->help && *o->help && o->offset < sizeof(net_config), "%s: --%s", n->name, o->name);
    ck_assert_msg(option_of(n, o->offset) == o, "%s: --%s sets what another option sets", n->name, o->name);
    if (o->kind == OPTION_U32) value = *(const uint32_t *)(const void *)at;
    if (o->kind == OPTION_F32) value = (double)*(const float *)(const void *)at;
    if (o->kind != OPTION_U32 && o->kind != OPTION_F32) return;
    ck_assert_msg(value >= o->min && value <= o->max, "%s: --%s is %g by default, out of its range", n->name, o->name,
                  value);
}

static int n_networks(void) {
    int n = 0;
    while (networks[n]) n++;
    return n;
}

TEST_GROUP("rows");

TEST_EACH(a_row_is_complete, 0, n_networks()) {
    const network *n = networks[_i];
    const bool pairs = n->kind == NET_PAIRS || n->kind == NET_LATTICE_PAIRS;
    ck_assert_ptr_eq(network_find(n->name), n); /* also: no two networks have one name */
    ck_assert_ptr_null(network_find("no such network"));
    ck_assert(n->summary && *n->summary && n->source && *n->source);
    ck_assert_uint_eq(examples_of(n->kind)->kind, n->kind);
    ck_assert(HAS_OPTION(n, hidden) && n->defaults.hidden > 0);
    for (const option_row *o = n->options; o->name; o++) check_option(n, o);
    ck_assert_msg(n->bytes && n->build && n->add, "%s", n->name);
    ck_assert_msg((n->encode != NULL) == pairs, "%s", n->name);
    ck_assert_msg((n->decode != NULL) == (pairs || n->kind == NET_TEXT), "%s", n->name);
    ck_assert_msg(n->embedding != NULL, "%s", n->name);
    ck_assert_msg(!n->spells || n->kind == NET_TAGGING, "%s", n->name);
    ck_assert_uint_le(n->defaults.loss, NET_HEADS_ROOT);
    ck_assert(!roots_only(n) || n->defaults.loss == NET_HEADS_ROOT);
    ck_assert(n->kind == NET_TREES || n->defaults.loss == NET_HEADS_LABELLED);
}

/* ---------------------------------------------------------------- how many parameters */

static uint64_t lstm(uint64_t e, uint64_t d) { return 4 * d * (e + d + 1); }
static uint64_t gru(uint64_t e, uint64_t d) { return 3 * d * (e + d + 1); }

/* Returns the number of parameters by the head comments' formulas: V words, A characters, C classes, e = embed, a = character_embed, d = hidden, m =
 * mlp, L = layers; 1 or 0 for attention and input feeding. */
static uint64_t documented(const char *name, const net_config *c) {
    const uint64_t V = c->words, A = c->characters, C = c->classes, e = c->embed, a = c->character_embed, d = c->hidden,
                   m = c->mlp, feeding = c->input_feeding, attention = c->attention || feeding, L = c->layers;
    const uint64_t classifier = C * d + C, leaf = V * e + 3 * d * e, inner = 10 * d * d + 4 * d;
    const uint64_t hidden_layer = m ? m * d + m + C * m + C : classifier;
    const uint64_t tagger = V * e + 8 * d * (e + d + 1) + (L - 1) * 8 * d * (3 * d + 1) +
                            (m ? m * (2 * d + 1) + C * (m + 1) : C * (2 * d + 1));
    const uint64_t f = c->feed_forward ? c->feed_forward : 4 * d,
                   r = c->heads ? c->heads * ((d + c->heads - 1) / c->heads) : 0;
    const uint64_t layers = (L - 1) * 4 * d * (2 * d + 1);
    const uint64_t language = V * e + lstm(e, d) + layers + classifier;
    const uint64_t graph =
        V * e + d * (e + c->numbers + 1) + L * (3 * r * d + 2 * c->edge_types * r + 2 * r + d * d + d) + classifier;
    const struct {
        const char *name;
        uint64_t count;
    } rows[] = {
        {"tree-lstm", leaf + inner + classifier},
        {"tree-lstm-2type", leaf + 3 * d + 2 * inner + classifier},
        {"tree-gru", V * e + 2 * d * e + 12 * d * d + 6 * d + classifier},
        {"rvnn", V * e + d * e + 2 * d * d + 2 * d + classifier},
        {"mv-rnn", V * (d + d * d) + 4 * d * d + classifier},
        {"td-rnn", V * d + 2 * d * d + d + d * (d + 1) + classifier},
        {"td-lstm", leaf + inner + d * (d + 1) + classifier},
        {"tree-fc", V * d + 2 * d * d + d + classifier},
        {"bilstm-tagger", tagger},
        {"bilstm-char-tagger", tagger + A * a + lstm(a, e - e / 2) + lstm(a, e / 2)},
        {"bilstm-classifier", tagger},
        {"lstm-lm", language},
        {"lstm-lm-fixed", language},
        {"lstm-nmt",
         V * e + C * e + 2 * lstm(e, d) + 2 * layers + classifier + attention * 2 * d * d + feeding * 4 * d * d},
        {"lattice-lstm", (A + V) * e + 2 * lstm(e, d) + hidden_layer},
        {"child-sum-tree-lstm", V * e + lstm(e, d) + classifier},
        {"transformer-tagger", V * d + L * (4 * r * d + 2 * r + 2 * f * d + f + 6 * d) + 2 * d + classifier},
        {"gat", graph},
        {"gat-classifier", graph},
        {"act", V * e + d * (e + d + 2) + d + 1 + classifier},
        {"lattice-gru", (A + V + C) * e + 2 * gru(e, d) + d * d + d + classifier + attention * 2 * d * d},
    };
    for (size_t i = 0; i < VPPS_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0) return rows[i].count;
    ck_abort_msg("how many parameters has %s? Add the formula of its head comment here", name);
    return 0;
}

TEST_EACH(parameters_are_as_documented, 0, case_count()) {
    static const uint32_t sizes[][2] = {{5, 3}, {8, 8}, {7, 12}}; /* hidden, embed */
    for (size_t i = 0; i < VPPS_COUNT(sizes); i++) {
        AT_END(fixture_close) fixture f;
        uint64_t count = 0;
        fixture_open(&f, _i, NULL, sizes[i][0], sizes[i][1], 0);
        for (vpps_param p = 0; p < vpps_param_count(f.model); p++) {
            vpps_param_info info = {.size = sizeof info};
            TEST_OK(vpps_param_describe(f.model, p, &info));
            count += (uint64_t)info.count * info.rows * info.cols;
        }
        ck_assert_msg(count == documented(f.net->name, &f.config), "%s: %llu parameters at hidden %u, embed %u", f.name,
                      (unsigned long long)count, sizes[i][0], sizes[i][1]);
    }
}

/* The table that pretrained vectors initialise has a vector for every word, of a size that an option sets. */
TEST_EACH(embeddings_are_named, 0, case_count()) {
    AT_END(fixture_close) fixture f;
    vpps_param table;
    vpps_param_info info = {.size = sizeof info};
    fixture_open(&f, _i, NULL, 5, 3, 0);
    TEST_OK(vpps_param_find(f.model, f.net->embedding, &table));
    TEST_OK(vpps_param_describe(f.model, table, &info));
    ck_assert_int_eq(info.kind, VPPS_LOOKUP);
    ck_assert_uint_eq(info.count, f.config.words);
    ck_assert_uint_eq(info.rows * info.cols, HAS_OPTION(f.net, embed) ? f.config.embed : f.config.hidden);
}

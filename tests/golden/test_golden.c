/* test_golden.c - compares the losses of small networks of models/ with those of independent implementations in PyTorch, which the scripts in this
 * folder wrote to the data files, as golden.py says. The JSON objects' members are named as the structs' members. */
#include "base/arena.h"
#include "common/training.h"
#include "models.h"

#include <jansson.h>

/* As in golden.py: each step trains on the next BATCH examples, and begins again after the last one. */
enum { BATCH = 4, BATCHES = 20 };

/* The files, and the number of each golden in its file. */
static const struct {
    const char *file;
    size_t i;
} goldens[] = {{"tree_lstm", 0},
               {"lstm_lm", 0},
               {"lstm_lm", 1},
               {"bilstm_tagger", 0},
               {"bilstm_tagger", 1},
               {"bilstm_tagger", 2},
               {"lstm_nmt", 0},
               {"lstm_nmt", 1},
               {"lstm_nmt", 2},
               {"lstm_nmt", 3},
               {"lattice_lstm", 0},
               {"act", 0},
               {"transformer_tagger", 0},
               {"transformer_tagger", 1},
               {"crf", 0}};
enum { N_GOLDENS = sizeof goldens / sizeof *goldens, MOST_POSITIONS = 64 };

/* ---------------------------------------------------------------- reading */

/* A network that PyTorch trained twice, and its examples. */
typedef struct golden {
    vpps_arena memory;
    json_t *file;
    const json_t *of; /* the object in the file */
    const char *name;
    net_config config;
    uint32_t n_examples;
    net_example *examples;
} golden;

#define NEW(array, n) ck_assert(VPPS_TAKE_ZEROS(a, array, (n) + 1))

static const json_t *get(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    ck_assert_msg(value != NULL, "golden: no member '%s'", name);
    return value;
}

static uint32_t id_of(const json_t *number) {
    const json_int_t value = json_integer_value(number);
    ck_assert_msg(json_is_integer(number) && value >= 0 && value <= UINT32_MAX, "golden: not an id");
    return (uint32_t)value;
}

/* Returns an array's ids and their number; NULL and 0 if the array is missing. */
static const uint32_t *ids(vpps_arena *a, const json_t *array, uint32_t *n) {
    *n = (uint32_t)json_array_size(array);
    if (!array) return NULL;
    uint32_t *values;
    NEW(values, *n);
    for (uint32_t i = 0; i < *n; i++) values[i] = id_of(json_array_get(array, i));
    return values;
}

static vpps_sentence read_sentence(vpps_arena *a, const json_t *from) {
    vpps_sentence s = {0};
    uint32_t n;
    s.tags = ids(a, json_object_get(from, "tags"), &n);
    s.words = ids(a, get(from, "words"), &s.n_words);
    return s;
}

static const vpps_tree *read_tree(vpps_arena *a, const json_t *from) {
    vpps_tree *tree;
    vpps_tree_node *nodes;
    const uint32_t n = (uint32_t)json_array_size(from);
    NEW(tree, 1);
    NEW(nodes, n);
    for (uint32_t i = 0; i < n; i++) {
        json_t *node = json_array_get(from, i), *word;
        ck_assert_int_eq(json_unpack(node, "[iiio!]", &nodes[i].label, &nodes[i].left, &nodes[i].right, &word), 0);
        nodes[i].word = id_of(word);
    }
    *tree = (vpps_tree){nodes, n, (n + 1) / 2};
    return tree;
}

static const vpps_lattice *read_lattice(vpps_arena *a, const json_t *from) {
    const json_t *arcs = get(from, "arcs");
    vpps_lattice *lattice;
    vpps_lattice_arc *to;
    uint32_t n, n_first;
    NEW(lattice, 1);
    NEW(to, json_array_size(arcs));
    for (size_t i = 0; i < json_array_size(arcs); i++) {
        const uint32_t *arc = ids(a, json_array_get(arcs, i), &n);
        ck_assert_uint_eq(n, 3);
        to[i] = (vpps_lattice_arc){arc[0], arc[1], arc[2] != 0};
    }
    lattice->tags = ids(a, get(from, "tags"), &lattice->n_nodes);
    lattice->first_arc = ids(a, get(from, "first"), &n_first);
    lattice->arcs = to;
    ck_assert_uint_eq(n_first, lattice->n_nodes + 1);
    return lattice;
}

static net_example read_example(vpps_arena *a, const json_t *from) {
    net_example x = {0};
    const json_t *tree = json_object_get(from, "tree"), *lattice = json_object_get(from, "lattice");
    const json_t *sentence = json_object_get(from, "sentence"), *target = json_object_get(from, "target");
    const json_t *spellings = json_object_get(from, "spellings");
    const json_t *label = json_object_get(from, "label");
    if (tree) x.tree = read_tree(a, tree);
    if (lattice) x.lattice = read_lattice(a, lattice);
    if (sentence) x.sentence = read_sentence(a, sentence);
    if (target) x.target = read_sentence(a, target);
    if (label) x.label = id_of(label);
    net_spelling *spelled;
    NEW(spelled, json_array_size(spellings));
    for (size_t i = 0; i < json_array_size(spellings); i++)
        spelled[i].characters = ids(a, json_array_get(spellings, i), &spelled[i].n);
    if (spellings) x.spellings = spelled;
    return x;
}

static net_config read_config(const json_t *from) {
    net_config c = {0};
    int attention = 0, input_feeding = 0, crf = 0;
    double ponder = 0;
#define SIZE(name) #name, &c.name
    json_error_t error;
    ck_assert_msg(
        json_unpack_ex((json_t *)(uintptr_t)from, &error, JSON_STRICT,
                       "{s:i, s:i, s:i, s:i, s?i, s?i, s?i, s?i, s?i, s?i, s?i, s?i, s?i, s?i, s?i, s?i, s?F}",
                       SIZE(words), SIZE(classes), SIZE(embed), SIZE(hidden), SIZE(characters), SIZE(edge_types),
                       SIZE(layers), SIZE(numbers), SIZE(heads), SIZE(feed_forward), SIZE(character_embed), SIZE(mlp),
                       SIZE(turns), "attention", &attention, "input_feeding", &input_feeding, "crf", &crf, "ponder",
                       &ponder) == 0,
        "golden: config: %s", error.text);
    c.attention = attention, c.input_feeding = input_feeding, c.crf = crf, c.ponder = (float)ponder;
    return c;
}

static golden open_golden(int number) {
    golden g = {0};
    char path[64];
    json_error_t error;
    snprintf(path, sizeof path, "tests/golden/%s.json", goldens[number].file);
    g.file = json_load_file(path, 0, &error);
    ck_assert_msg(g.file != NULL, "%s:%d: %s", path, error.line, error.text);
    g.of = json_array_get(get(g.file, "goldens"), goldens[number].i);
    g.name = json_string_value(get(g.of, "name"));
    g.config = read_config(get(g.of, "config"));
    const json_t *examples = get(g.file, "examples");
    g.n_examples = (uint32_t)json_array_size(examples);
    vpps_arena *a = &g.memory;
    NEW(g.examples, g.n_examples);
    for (uint32_t e = 0; e < g.n_examples; e++) g.examples[e] = read_example(a, json_array_get(examples, e));
    return g;
}

static void close_golden(golden *g) {
    vpps_arena_free(&g->memory);
    json_decref(g->file);
}

/* ---------------------------------------------------------------- training */

/* Sets value i of tensor t to scale * sin(0.37 i + 0.0011 i^2 + t). */
static void set_parameters(const golden *from, vpps_model *model) {
    const json_t *tensors = get(from->of, "tensors");
    ck_assert_uint_eq(vpps_param_count(model), json_array_size(tensors));
    for (uint32_t t = 0; t < vpps_param_count(model); t++) {
        const char *name;
        double scale;
        vpps_param p;
        vpps_param_info info = {.size = sizeof info};
        ck_assert_int_eq(json_unpack(json_array_get(tensors, t), "[sF!]", &name, &scale), 0);
        TEST_OK(vpps_param_find(model, name, &p));
        TEST_OK(vpps_param_describe(model, p, &info));
        float *values = vpps_param_values(model, p);
        for (uint32_t i = 0; i < info.count * info.rows * info.cols; i++)
            values[i] = (float)(scale * sin(0.37 * i + 0.0011 * i * i + t));
    }
}

/* Returns the mean over the batch's examples of the sum of their losses at known labels, plus the examples' other costs. */
static vpps_node add_batch(const golden *from, const network *type, void *net, vpps_graph *g, uint32_t batch) {
    vpps_node logits[MOST_POSITIONS], nll[MOST_POSITIONS], terms[BATCH * (MOST_POSITIONS + 1)];
    uint32_t n_terms = 0;
    vpps_graph_clear(g);
    for (uint32_t k = 0; k < BATCH; k++) {
        const net_example *x = &from->examples[(batch * BATCH + k) % from->n_examples];
        const uint32_t n = net_positions(type->kind, x);
        ck_assert_uint_le(n, MOST_POSITIONS);
        vpps_node cost = VPPS_NO_NODE;
        TEST_OK(type->add(net, g, x, NET_HEADS_LABELLED, &(net_scores){.logits = logits, .nll = nll, .cost = &cost}));
        if (cost != VPPS_NO_NODE) terms[n_terms++] = cost;
        for (uint32_t i = 0; i < n; i++)
            if (nll[i] != VPPS_NO_NODE) terms[n_terms++] = nll[i];
    }
    return vpps_scale(g, vpps_sum(g, n_terms, terms), 1.0f / BATCH);
}

static void check_loss(float loss, double expected, const char *name, const vpps_options *o, uint32_t batch) {
    ck_assert_msg(fabs((double)loss - expected) <= 1e-5 * expected, "%s, %s, %u VPs, batch %u: loss %.8g, not %.8g",
                  name, o->optimizer.kind == VPPS_SGD ? "sgd" : "adam", o->vps, batch, (double)loss, expected);
}

/* A network with the golden parameters, and what trains it. */
typedef struct trained {
    const network *type;
    void *net;
    training of;
} trained;

static trained open_network(const golden *from, const vpps_options *o) {
    const char *name = json_string_value(get(from->of, "network"));
    trained t = {network_find(name), NULL, training_of(1)};
    ck_assert_msg(t.type != NULL, "no network %s", name);
    TEST_OK(network_create(t.type, &t.net, t.of.model, &from->config));
    set_parameters(from, t.of.model);
    training_start(&t.of, o);
    return t;
}

static void close_network(trained *t) {
    network_destroy(t->net);
    training_end(&t->of);
}

static void check_losses(const golden *from, const char *losses, const vpps_options *o) {
    const json_t *array = get(from->of, losses);
    double expected[BATCHES];
    ck_assert_uint_eq(json_array_size(array), BATCHES);
    for (uint32_t i = 0; i < BATCHES; i++) expected[i] = json_real_value(json_array_get(array, i));
    AT_END(close_network) trained t = open_network(from, o);
    for (uint32_t batch = 0; batch < BATCHES; batch++) {
        float stale, latest;
        TEST_OK(vpps_fb(t.of.h, t.of.g, add_batch(from, t.type, t.net, t.of.g, batch), &stale));
        if (batch) check_loss(stale, expected[batch - 1], from->name, o, batch - 1); /* the preceding batch's loss */
        if (batch % 3 != 0 && batch + 1 < BATCHES) continue;                         /* leaves this batch in flight */
        TEST_OK(vpps_sync_latest_loss(t.of.h, &latest));
        check_loss(latest, expected[batch], from->name, o, batch);
    }
}

static const vpps_optimizer sgd = {.kind = VPPS_SGD, .lr = 0.2f};
static const vpps_optimizer adam = {.kind = VPPS_ADAM, .lr = 0.03f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};

static void check_golden(int number, int options) {
    AT_END(close_golden) golden from = open_golden(number);
    static const uint32_t vps[] = {1, 2, 3, 8};
    vpps_options o = default_options();
    o.vps = vps[options % 4];
    o.gradients = options & 4 ? VPPS_GRADIENTS_ACCUMULATE : VPPS_GRADIENTS_DEFERRED;
    o.portable = options & 1;
    o.pool_bytes = 64u << 20;
    o.optimizer = sgd;
    check_losses(&from, "sgd", &o);
    o.optimizer = adam;
    check_losses(&from, "adam", &o);
}

TEST_GROUP("golden losses", .seconds = 60);

/* Tests one network with all of the engine's options, and all networks, for their equations, with two sets of options. */
TEST_EACH(options_agree, 0, 8) { check_golden(0, _i); }

TEST_EACH(networks_agree, 0, N_GOLDENS) {
    check_golden(_i, 0);
    check_golden(_i, 5);
}

enum { PRECISE_BATCHES = 40 };

/* bf16x3 trains as fp32 does; bf16 differs slightly, otherwise it would be fp32 in disguise. */
TEST_EACH(precisions_agree, 0, 2 * N_GOLDENS) {
    static float losses[3][PRECISE_BATCHES];
    static const vpps_precision precisions[] = {VPPS_PRECISION_FP32, VPPS_PRECISION_BF16X3, VPPS_PRECISION_BF16};
    AT_END(close_golden) golden from = open_golden(_i / 2);
    vpps_options o = default_options();
    o.vps = 1;
    o.no_tuning = true;           /* measured times must not choose the order of sums */
    o.caller = VPPS_CALLER_WORKS; /* does not wait for threads: there are hundreds of small batches */
    o.pool_bytes = 64u << 20;
    o.optimizer = _i % 2 ? adam : sgd;
    if (_i % 2) o.optimizer.lr = 0.002f; /* the command's rate; with adam's 0.03, any error grows with each batch */
    const bool grows = !strcmp(from.name, "act") || !strcmp(from.name, "lstm-nmt-input-feeding");
    if (grows && !(_i % 2)) o.optimizer.lr = 0.1f; /* with 0.2 any error grows with each batch, in act a thousandfold */
    const uint32_t batches = test_scaled(PRECISE_BATCHES);
    for (int p = 0; p < 3; p++) {
        o.precision = precisions[p];
        AT_END(close_network) trained t = open_network(&from, &o);
        for (uint32_t batch = 0; batch < batches; batch++)
            losses[p][batch] = train_batch(t.of.h, t.of.g, add_batch(&from, t.type, t.net, t.of.g, batch));
    }
    double most[3] = {0};
    for (uint32_t batch = 0; batch < batches; batch++)
        for (int p = 1; p < 3; p++)
            most[p] = fmax(most[p], fabs((double)losses[p][batch] / (double)losses[0][batch] - 1));
    ck_assert_msg(most[1] <= 1e-4, "%s, %s: bf16x3 is off by %g of fp32's loss", from.name, _i % 2 ? "adam" : "sgd",
                  most[1]);
    ck_assert_msg(most[2] > most[1], "%s: bf16 is off by %g, bf16x3 by %g", from.name, most[2], most[1]);
}

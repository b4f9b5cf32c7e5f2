/* golden.c - reads goldens. The JSON objects' members are named as the structs' members. */
#include "golden/golden.h"

#include "common/testing.h"

#include <jansson.h>

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

static void read_losses(const json_t *from, double losses[GOLDEN_BATCHES]) {
    ck_assert_uint_eq(json_array_size(from), GOLDEN_BATCHES);
    for (size_t i = 0; i < GOLDEN_BATCHES; i++) losses[i] = json_real_value(json_array_get(from, i));
}

static const char *text_of(vpps_arena *a, const json_t *string) {
    char *text;
    NEW(text, json_string_length(string));
    return memcpy(text, json_string_value(string), json_string_length(string));
}

golden golden_read(vpps_arena *a, const char *name, size_t i) {
    char path[64];
    snprintf(path, sizeof path, "tests/golden/%s.json", name);
    json_error_t error;
    json_t *file = json_load_file(path, 0, &error);
    ck_assert_msg(file != NULL, "%s:%d: %s", path, error.line, error.text);
    const json_t *from = json_array_get(get(file, "goldens"), i), *tensors = get(from, "tensors"),
                 *examples = get(file, "examples");
    golden_tensor *tensor;
    net_example *example;
    golden g = {.name = text_of(a, get(from, "name")),
                .network = text_of(a, get(from, "network")),
                .config = read_config(get(from, "config")),
                .n_tensors = (uint32_t)json_array_size(tensors),
                .n_examples = (uint32_t)json_array_size(examples)};
    NEW(tensor, g.n_tensors);
    for (uint32_t t = 0; t < g.n_tensors; t++) {
        const json_t *pair = json_array_get(tensors, t);
        tensor[t] = (golden_tensor){text_of(a, json_array_get(pair, 0)), json_real_value(json_array_get(pair, 1))};
    }
    NEW(example, g.n_examples);
    for (uint32_t e = 0; e < g.n_examples; e++) example[e] = read_example(a, json_array_get(examples, e));
    g.tensors = tensor, g.examples = example;
    read_losses(get(from, "sgd"), g.sgd);
    read_losses(get(from, "adam"), g.adam);
    json_decref(file);
    return g;
}

/* init_rows.c - finds the vocabulary (of words, characters, ...) that a parameter's rows belong to. To find it, records the network again
 * with one more word in a vocabulary, and sees which parameters have more rows. */
#include "cli/session/init_rows.h"
#include "base/base.h"
#include "cli/session/parameters.h"

/* Records a network on its own model with small vocabularies, so that it is made quickly. */
static vpps_status make_model(const settings *s, const net_config *config, vpps_model **model) {
    net_config own = *config;
    void *instance = NULL;
    VPPS_TRY(vpps_model_create(model, 1));
    if (s->class_weights) VPPS_TRY(parameters_declare_weights(*model, &own));
    const vpps_status status = network_create(s->network, &instance, *model, &own);
    network_destroy(instance);
    return status;
}

static uint32_t few(uint32_t n) {
    enum { FEW = 8 };
    return vpps_min_u32(n, FEW);
}

static bool same_shape(const vpps_param_info *a, const vpps_param_info *b) {
    return a->count == b->count && a->rows == b->rows && a->cols == b->cols;
}

/* Returns whether parameter b has one more entry, row or element than a, and is otherwise equal. */
static bool has_row_more(const vpps_param_info *a, const vpps_param_info *b) {
    vpps_param_info larger = *a;
    ++*(a->kind == VPPS_LOOKUP ? &larger.count : &larger.rows);
    return same_shape(&larger, b);
}

/* Marks in `rows` the parameters whose shape changes when a vocabulary has one more word. */
static vpps_status compare(vpps_model *model, vpps_model *larger, int vocab, init_rows *rows) {
    for (vpps_param p = 0; p < vpps_param_count(model); p++) {
        vpps_param there;
        vpps_param_info a = {.size = sizeof a}, b = {.size = sizeof b};
        VPPS_TRY(vpps_param_describe(model, p, &a));
        if (vpps_param_find(larger, a.name, &there) == VPPS_OK) {
            VPPS_TRY(vpps_param_describe(larger, there, &b));
            if (same_shape(&a, &b)) continue;
            rows[p] = (init_rows){vocab, rows[p].vocab == N_VOCABS && has_row_more(&a, &b)};
        } else {
            rows[p] = (init_rows){vocab, false};
        }
    }
    return VPPS_OK;
}

vpps_status init_find_rows(const session *x, init_rows **out) {
    const network *net = x->settings->network;
    const bool text = net->kind == NET_TEXT; /* a text model's classes are its words */
    const uint32_t n = vpps_param_count(x->model);
    net_config config = x->settings->net;
    config.words = few(config.words);
    config.characters = few(config.characters);
    config.edge_types = few(config.edge_types);
    config.classes = few(config.classes);
    net_config larger[N_VOCABS] = {
        [VOCAB_WORDS] = config, [VOCAB_CHARACTERS] = config, [VOCAB_EDGE_TYPES] = config, [VOCAB_CLASSES] = config};
    larger[VOCAB_WORDS].words++;
    larger[VOCAB_WORDS].classes += text;
    larger[VOCAB_CHARACTERS].characters++;
    larger[VOCAB_EDGE_TYPES].edge_types++;
    larger[VOCAB_CLASSES].classes++;
    vpps_model *model = NULL;
    *out = calloc((size_t)n + 1, sizeof **out);
    vpps_status status =
        *out ? make_model(x->settings, &config, &model) : vpps_fail(VPPS_MEMORY, "no memory for --init");
    if (status == VPPS_OK && vpps_param_count(model) != n)
        status = vpps_fail(VPPS_ARGUMENT, "%s has other parameters with fewer words", net->name);
    for (uint32_t p = 0; p < n && status == VPPS_OK; p++) (*out)[p] = (init_rows){N_VOCABS, false};
    for (int k = VOCAB_WORDS; k <= VOCAB_CLASSES && status == VPPS_OK; k++) {
        vpps_model *other = NULL;
        if (text && k == VOCAB_CLASSES) continue;
        if (k == VOCAB_CHARACTERS && !config.characters) continue;
        if (k == VOCAB_EDGE_TYPES && !config.edge_types) continue;
        status = make_model(x->settings, &larger[k], &other);
        if (status == VPPS_OK) status = compare(model, other, k, *out);
        vpps_model_destroy(other);
    }
    vpps_model_destroy(model);
    return status;
}

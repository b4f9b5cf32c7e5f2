/* export_main.c - see export_main.h. The program is made of the files of src/cli/main, real C that names the cells' functions by the prefix
 * net_, and of the lines that are written here: the network's sizes and layers. */
#include "cli/export_main.h"
#include "base/base.h"
#include "cli/chain.h"
#include "cli/tokenize.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>

extern const char main_lines[], main_sentences[], main_trees[], main_tags[], main_labels[], main_bilstm[],
    main_transformer[], main_act[];

/* Where vectors go through layers. */
typedef enum layer_kind { NO_LAYERS, LSTM_LAYERS, ATTENTION_LAYERS } layer_kind;

typedef struct program {
    const network *of;
    const char *names; /* of the cells, where the files have others */
    const char *files[3];
    layer_kind layers;
} program;

extern const network tree_lstm, tree_lstm_2type, tree_gru, rvnn, mv_rnn, td_rnn, td_lstm, tree_fc, bilstm_tagger,
    bilstm_char_tagger, bilstm_classifier, act, transformer_tagger;

#define TREE "#define LEAF net_leaf\n#define INNER(tree, node) net_inner\n"
#define PYRAMID "#define LEAF net_leaf\n#define PYRAMID net_inner\n"
#define TWO_KINDS                                                                                                      \
    "#define LEAF net_tree_lstm_leaf\n#define KINDS\n"                                                                 \
    "#define INNER(tree, node) (kind_of(tree, node) ? net_tree_lstm_inner__kind_2 : net_tree_lstm_inner__kind_1)\n"

static const program programs[] = {
    {&tree_lstm, TREE, {main_trees}, NO_LAYERS},
    {&tree_lstm_2type, TWO_KINDS, {main_trees}, NO_LAYERS},
    {&tree_gru, TREE, {main_trees}, NO_LAYERS},
    {&rvnn, TREE, {main_trees}, NO_LAYERS},
    {&mv_rnn, TREE, {main_trees}, NO_LAYERS},
    {&td_rnn, PYRAMID, {main_trees}, NO_LAYERS},
    {&td_lstm, PYRAMID, {main_trees}, NO_LAYERS},
    {&tree_fc, TREE, {main_trees}, NO_LAYERS},
    {&bilstm_tagger, "", {main_sentences, main_tags, main_bilstm}, LSTM_LAYERS},
    {&bilstm_char_tagger, "#define SPELLED\n", {main_sentences, main_tags, main_bilstm}, LSTM_LAYERS},
    {&bilstm_classifier, "#define WHOLE\n", {main_sentences, main_labels, main_bilstm}, LSTM_LAYERS},
    {&act, "", {main_sentences, main_labels, main_act}, NO_LAYERS},
    {&transformer_tagger, "", {main_sentences, main_tags, main_transformer}, ATTENTION_LAYERS},
};

static const program *program_of(const settings *s) {
    for (size_t i = 0; i < VPPS_COUNT(programs); i++)
        if (programs[i].of == s->network) return &programs[i];
    return NULL;
}

vpps_status export_main_check(const settings *s, const corpus *c) {
    if (!program_of(s)) return vpps_fail(VPPS_ARGUMENT, "--main: there is no program for %s", s->network->name);
    if (s->weights || s->losses)
        return vpps_fail(VPPS_ARGUMENT,
                         "--main: the program has its weights in the C file and no labels; expected no --%s",
                         s->weights ? "weights" : "losses");
    if (s->network->kind == NET_TREES && c->vocab[VOCAB_CLASSES])
        return vpps_fail(
            VPPS_ARGUMENT,
            "--main: the network's trees have labels with names, which predict makes binary first; expected "
            "trees with numbers");
    if (s->tokenizer != TOKENIZER_NONE)
        return vpps_fail(
            VPPS_ARGUMENT,
            "--main: the network's text is split by --tokenizer simple; expected words with blanks between");
    return VPPS_OK;
}

/* ---------------------------------------------------------------- text */

/* A file with the names' prefix in the place of net_ and NET_. */
static void put_file(const settings *s, const char *text, FILE *f) {
    const char *prefix = s->prefix ? s->prefix : "net";
    for (const char *at = text; *at; at++) {
        const bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        const bool lower = begins && strncmp(at, "net_", 4) == 0, upper = begins && strncmp(at, "NET_", 4) == 0;
        if (!lower && !upper) {
            fputc(*at, f);
            continue;
        }
        for (const char *c = prefix; *c; c++) fputc(lower ? *c : toupper((unsigned char)*c), f);
        at += 2;
    }
}

static void put_line(const settings *s, FILE *f, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put_line(const settings *s, FILE *f, const char *format, ...) {
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    put_file(s, line, f);
}

/* "static step *const NAME_layers[] = {net_NAME, net_NAME2};": functions of layers above the first have `between` and a number. */
static void put_layers(const settings *s, FILE *f, const char *type, const char *array, const char *name,
                       const char *between) {
    const uint32_t n = s->net.layers ? s->net.layers : 1;
    put_line(s, f, "static %s *const %s[] = {net_%s", type, array, name);
    for (uint32_t l = 2; l <= n; l++) put_line(s, f, ", net_%s%s%u", name, between, l);
    fputs("};\n", f);
}

static void put_sizes(const settings *s, const corpus *c, const program *p, FILE *f) {
    const uint32_t layers = s->net.layers ? s->net.layers : 1;
    put_line(s, f, "\nenum { CLASSES = %u, LAYERS = %u, TURNS = %u, HIDDEN = %u };\n%s", c->classes, layers,
             s->net.turns, s->net.hidden, p->names);
    if (p->layers == ATTENTION_LAYERS) put_line(s, f, "enum { SCRATCH = NET_LAYER_SCRATCH0 };\n"); /* of every layer */
    if (p->layers != LSTM_LAYERS) return;
    const uint32_t spelled = s->network->spells ? s->net.character_embed : 0,
                   joined = layers > 1 ? 2 * s->net.hidden : 0;
    put_line(s, f, "enum { WIDTH = %u };\n#define JOIN %s\n", vpps_max_u32(s->net.embed, vpps_max_u32(spelled, joined)),
             layers > 1 ? "net_layer" : "NULL");
}

static void put_scores(FILE *f, const char *name, const float *scores, size_t n) {
    fprintf(f, "static const float chain_%s[%zu] = {", name, n);
    for (size_t i = 0; i < n; i++) {
        if (isfinite(scores[i]))
            fprintf(f, "%af,", (double)scores[i]);
        else
            fputs("-INFINITY,", f);
    }
    fputs("};\n", f);
}

/* Which tag follows which, where that matters. */
static vpps_status put_chain(session *x, const corpus *c, FILE *f) {
    VPPS_CLOSED_BY(chain_close) tag_chain chain = {0};
    if (x->settings->network->kind != NET_TAGGING) return VPPS_OK;
    VPPS_TRY(session_open_chain(x, c, &chain));
    if (!chain.classes) return VPPS_OK;
    const size_t n = chain.classes;
    fputs("#define CHAIN\n", f);
    put_scores(f, "next", chain.next, n * n);
    put_scores(f, "begin", chain.begin, n);
    put_scores(f, "end", chain.end, n);
    return VPPS_OK;
}

vpps_status export_main(session *x, const corpus *c, FILE *f) {
    const settings *s = x->settings;
    const program *p = program_of(s);
    put_sizes(s, c, p, f);
    VPPS_TRY(put_chain(x, c, f));
    put_file(s, main_lines, f);
    for (size_t i = 0; i < VPPS_COUNT(p->files) && p->files[i]; i++) {
        const bool layers = p->files[i] == main_bilstm || p->files[i] == main_transformer;
        if (layers && p->layers == LSTM_LAYERS) {
            put_line(s, f,
                     "typedef int step(const float *restrict before, const float *restrict x, float *restrict out);\n");
            put_layers(s, f, "step", "forward_layers", "forward", "");
            put_layers(s, f, "step", "backward_layers", "backward", "");
        }
        if (layers && p->layers == ATTENTION_LAYERS) {
            put_line(s, f,
                     "typedef int layer(const float *restrict word, const float *const *words, size_t n, float "
                     "*restrict scratch, "
                     "float *restrict out);\n");
            put_layers(s, f, "layer", "layers", "layer", "_");
        }
        put_file(s, p->files[i], f);
    }
    return VPPS_OK;
}

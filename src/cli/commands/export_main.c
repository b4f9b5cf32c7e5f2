/* export_main.c - writes the program of `vpps export --main`: the embedded files of src/cli/main, which call the cells' functions with the
 * prefix net_; some C99 sources of vpps; and lines that are printed here, with the network's sizes and layers. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/input/fields.h"
#include "cli/input/tokenize.h"
#include "cli/session/chain.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>

extern const char main_lines[], main_forms[], main_records[], main_values[], main_sentences[], main_trees[],
    main_tags[], main_columns[], main_tagger[], main_labels[], main_bilstm[], main_transformer[], main_act[],
    main_json_types[], main_json[], main_chunks[], main_chain_types[], main_chain[], main_tokens[], main_csv_types[],
    main_csv[], main_lists[];

typedef enum layer_kind { NO_LAYERS, LSTM_LAYERS, ATTENTION_LAYERS } layer_kind;

typedef struct program {
    const network *of;
    /* #define lines for the headers of an exported program (src/cli/main/), as of LEAF, the name of the C function that computes a tree's leaf */
    const char *names;
    /* text of the C file that computes the network's scores; NULL: main/trees.h does */
    const char *scores;
    layer_kind layers;
} program;

extern const network tree_lstm, tree_lstm_2type, tree_gru, rvnn, mv_rnn, td_rnn, td_lstm, tree_fc, bilstm_tagger,
    bilstm_char_tagger, bilstm_classifier, act, transformer_tagger;

#define TREE "#define LEAF net_leaf_many\n#define INNER(kind) net_inner_many\n"
#define PYRAMID "#define LEAF net_leaf\n#define PYRAMID net_inner_many\n"
#define TWO_KINDS                                                                                                      \
    "#define LEAF net_tree_lstm_leaf_many\n#define KINDS\n"                                                            \
    "#define INNER(kind) (kind ? net_tree_lstm_inner__kind_2_many : net_tree_lstm_inner__kind_1_many)\n"

static const program programs[] = {
    {&tree_lstm, TREE, NULL, NO_LAYERS},
    {&tree_lstm_2type, TWO_KINDS, NULL, NO_LAYERS},
    {&tree_gru, TREE, NULL, NO_LAYERS},
    {&rvnn, TREE, NULL, NO_LAYERS},
    {&mv_rnn, TREE, NULL, NO_LAYERS},
    {&td_rnn, PYRAMID, NULL, NO_LAYERS},
    {&td_lstm, PYRAMID, NULL, NO_LAYERS},
    {&tree_fc, TREE, NULL, NO_LAYERS},
    {&bilstm_tagger, "", main_bilstm, LSTM_LAYERS},
    {&bilstm_char_tagger, "#define SPELLED\n", main_bilstm, LSTM_LAYERS},
    {&bilstm_classifier, "#define WHOLE\n", main_bilstm, LSTM_LAYERS},
    {&act, "", main_act, NO_LAYERS},
    {&transformer_tagger, "", main_transformer, ATTENTION_LAYERS},
};

static const program *program_of(const settings *s) {
    for (size_t i = 0; i < VPPS_COUNT(programs); i++)
        if (programs[i].of == s->network) return &programs[i];
    return NULL;
}

vpps_status export_main_check(const settings *s) {
    if (!program_of(s)) return vpps_fail(VPPS_ARGUMENT, "--main: there is no program for %s", s->network->name);
    if (s->weights || s->losses)
        return vpps_fail(VPPS_ARGUMENT,
                         "--main: the program has its weights in the C file and no labels; expected no --%s",
                         s->weights ? "weights" : "losses");
    return VPPS_OK;
}

/* ---------------------------------------------------------------- text */

/* Prints an embedded file with --prefix's value for net_ and NET_, without its #pragma once and its #includes of other such files. */
static void put_file(const settings *s, const char *text, FILE *f) {
    const char *prefix = s->prefix ? s->prefix : "net";
    for (const char *at = text; *at; at++) {
        while (strncmp(at, "#include \"", 10) == 0 || strncmp(at, "#pragma once", 12) == 0) at = strchr(at, '\n') + 1;
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

/* Prints an array of one function per layer, e.g. "static TYPE *const ARRAY[] = {net_NAME, net_NAME_2};" with "_" as `between`. */
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
    /* all layers need the same number of floats of scratch memory per word */
    if (p->layers == ATTENTION_LAYERS) put_line(s, f, "enum { SCRATCH = NET_LAYER_SCRATCH0 };\n");
    if (p->layers != LSTM_LAYERS) return;
    const uint32_t spelled = s->network->spells ? s->net.character_embed : 0,
                   joined = layers > 1 ? 2 * s->net.hidden : 0;
    put_line(s, f, "enum { WIDTH = %u };\n#define JOIN %s\n", vpps_max_u32(s->net.embed, vpps_max_u32(spelled, joined)),
             layers > 1 ? "net_layer" : "NULL");
}

static void put_scores(FILE *f, const char *name, const float *scores, size_t n) {
    fprintf(f, "static const float chain_%s[%zu] = {", name, n);
    for (size_t i = 0; i < n; i++)
        if (isfinite(scores[i]))
            fprintf(f, "%af,", (double)scores[i]);
        else
            fputs("-INFINITY,", f);
    fputs("};\n", f);
}

/* If the network has a CRF, sets *there, and prints the CRF's scores of pairs of successive tags, of first tags and of last tags. */
static vpps_status put_chain(session *x, const corpus *c, FILE *f, bool *there) {
    VPPS_CLOSED_BY(chain_close) tag_chain chain = {0};
    if (x->settings->network->kind != NET_TAGGING) return VPPS_OK;
    VPPS_TRY(session_open_chain(x, c, &chain));
    *there = chain.classes > 0;
    if (!*there) return VPPS_OK;
    const size_t n = chain.classes;
    fputs("#define CHAIN\n", f);
    put_scores(f, "next", chain.next, n * n);
    put_scores(f, "begin", chain.begin, n);
    put_scores(f, "end", chain.end, n);
    return VPPS_OK;
}

/* Prints definitions for the exported program: the names of output fields, the input formats that the network reads, and whether class
 * labels are names (NAMED) or chunk tags (CHUNKS). */
static void put_names(const settings *s, const corpus *c, FILE *f) {
    const char *const *names = fields_text_names(s->network->kind);
    const vpps_vocab *classes = c->vocab[VOCAB_CLASSES];
    static const char *const texts[] = {
        [NET_TREES] = "#define ANSWER_NAMES \"label\", \"score\", \"words\", \"nodes\"\n"
                      "#define UNANSWERED(i) ((i) < 2)\n#define CELLS 3\n#define LABEL_NAMES NULL\n"
                      "#define READS(form) ((form) < TAGGED || (form) > LABELLED)\n#define LOOKS 0\n"
                      "#define TEXT_NAME \"tree\"\nenum { OPTIONS = 2 };\n",
        [NET_TAGGING] = "#define ANSWER_NAMES \"words\", \"tags\", \"spans\"\n"
                        "#define UNANSWERED(i) ((i) == 1)\n#define CELLS 2\n"
                        "#define LABEL_NAMES \"gold\", \"tags\", \"labels\"\n"
                        "#define READS(form) ((form) != LABELLED)\n#define LOOKS 1\n"
                        "#define TEXT_NAME \"text\"\nenum { OPTIONS = 5 };\n",
        [NET_SENTENCES] = "#define ANSWER_NAMES \"label\", \"score\"\n"
                          "#define UNANSWERED(i) 1\n#define CELLS 2\n#define LABEL_NAMES \"gold\", \"label\"\n"
                          "#define READS(form) ((form) != TAGGED && (form) != COLUMNS)\n#define LOOKS 1\n"
                          "#define TEXT_NAME \"text\"\nenum { OPTIONS = 3 };\n"};
    fprintf(f, "%s#define TEXT_NAMES", texts[s->network->kind]);
    for (size_t i = 0; names[i]; i++) fprintf(f, "%s \"%s\"", i ? "," : "", names[i]);
    fprintf(f, "\n%s%s%s", s->network->kind == NET_TREES && classes ? "#define NAMED\n" : "",
            s->network->kind == NET_TAGGING && vpps_f1_applies(classes) ? "#define CHUNKS\n" : "",
            s->tokenizer == TOKENIZER_SIMPLE ? "#define TOKENS\n" : "");
}

static void put_functions(const settings *s, const program *p, FILE *f) {
    if (p->layers == LSTM_LAYERS) {
        put_line(s, f,
                 "typedef int step(const float *restrict before, const float *restrict x, float *restrict out);\n");
        put_layers(s, f, "step", "forward_layers", "forward", "");
        put_layers(s, f, "step", "backward_layers", "backward", "");
    }
    if (p->layers == ATTENTION_LAYERS) {
        put_line(s, f,
                 "typedef int layer(const float *restrict word, const float *const *words, size_t n, float "
                 "*restrict scratch, float *restrict out);\n");
        put_layers(s, f, "layer", "layers", "layer", "_");
    }
}

static void put_files(const settings *s, FILE *f, const char *const *files) {
    for (; *files; files++) put_file(s, *files, f);
}

vpps_status export_main(session *x, const corpus *c, FILE *f) {
    const settings *s = x->settings;
    const program *p = program_of(s);
    bool chain = false;
    put_sizes(s, c, p, f);
    put_names(s, c, f);
    VPPS_TRY(put_chain(x, c, f, &chain));
    put_files(s, f,
              (const char *const[]){main_lines, main_json_types, main_json, main_csv_types, main_csv, main_forms,
                                    main_records, main_values, NULL});
    if (s->tokenizer == TOKENIZER_SIMPLE) put_file(s, main_tokens, f);
    if (chain) put_files(s, f, (const char *const[]){main_chain_types, main_chain, NULL});
    if (s->network->kind == NET_TREES)
        put_file(s, main_trees, f);
    else if (s->network->kind == NET_TAGGING)
        put_files(
            s, f,
            (const char *const[]){main_lists, main_sentences, main_chunks, main_tags, main_columns, main_tagger, NULL});
    else
        put_files(s, f, (const char *const[]){main_lists, main_sentences, main_labels, NULL});
    put_functions(s, p, f);
    if (p->scores) put_file(s, p->scores, f);
    return VPPS_OK;
}

/* forms.c - see forms.h. */
#include "forms.h"

DESTROYED_BY(vpps_edge_lists, vpps_edge_lists_destroy)

#define READ(reader, store) (r->path ? reader##_file(store, r->path) : reader##_text(store, "t", r->text, r->n))
#define READ_AS(reader, store, how)                                                                                    \
    (r->path ? reader##_file(store, r->path, how) : reader##_text(store, "t", r->text, r->n, how))

/* ---------------------------------------------------------------- what is shown */

static void show_sentences(const vpps_sentences *s, FILE *out) {
    for (uint32_t i = 0; i < vpps_sentences_size(s); i++) {
        const vpps_sentence x = vpps_sentences_get(s, i);
        for (uint32_t k = 0; k < x.n_words; k++) {
            const char *word = vpps_vocab_word(vpps_sentences_vocab(s), x.words[k]);
            const char *tag = x.tags ? vpps_vocab_word(vpps_sentences_tag_vocab(s), x.tags[k]) : "";
            if (x.heads) fprintf(out, "%s<%u %s ", word, x.heads[k], tag);
            if (!x.heads) fprintf(out, "[%s]%s ", word, tag);
        }
        const char *label = vpps_vocab_word(vpps_sentences_tag_vocab(s), vpps_sentences_label(s, i));
        fprintf(out, "%s\n", label ? label : "");
    }
}

static void show_trees(const vpps_treebank *tb, FILE *out) {
    for (uint32_t i = 0; i < vpps_treebank_size(tb); i++) TEST_OK(vpps_treebank_write(tb, i, out));
}

static void show_constituent(const vpps_constituents *c, vpps_constituent_tree tree, uint32_t i, FILE *out) {
    const vpps_constituent *node = &tree.nodes[i];
    fprintf(out, "(%s", vpps_vocab_word(vpps_constituents_labels(c), node->label));
    if (node->n_children == 0) fprintf(out, " %s", vpps_vocab_word(vpps_constituents_vocab(c), node->word));
    uint32_t children[1024], child = i - 1;
    ck_assert_uint_le(node->n_children, VPPS_COUNT(children));
    for (uint32_t k = node->n_children; k-- > 0; child -= tree.nodes[child].n_nodes) children[k] = child;
    for (uint32_t k = 0; k < node->n_children; k++) {
        fputc(' ', out);
        show_constituent(c, tree, children[k], out);
    }
    fputc(')', out);
}

static void show_constituents(const vpps_constituents *c, FILE *out) {
    for (uint32_t i = 0; i < vpps_constituents_size(c); i++) {
        const vpps_constituent_tree tree = vpps_constituents_tree(c, i);
        show_constituent(c, tree, tree.n_nodes - 1, out);
        fputc('\n', out);
    }
}

static void show_lattices(const vpps_lattices *l, FILE *out) {
    for (uint32_t i = 0; i < vpps_lattices_size(l); i++) {
        const vpps_lattice lattice = vpps_lattices_get(l, i);
        ck_assert_uint_eq(lattice.first_arc[0], 0);
        for (uint32_t n = 0; n < lattice.n_nodes; n++) {
            fprintf(out, "%u[", lattice.tags[n]);
            for (uint32_t a = lattice.first_arc[n]; a < lattice.first_arc[n + 1]; a++) {
                const vpps_lattice_arc *arc = &lattice.arcs[a];
                fprintf(out, " %u:%u%c", arc->from, arc->id, arc->is_character ? 'c' : 'w');
            }
            fputs(" ] ", out);
        }
        fputc('\n', out);
    }
}

/* Shows graphs as "LABEL: WORD/LABEL(NUMBERS) ... FROM>TO TYPE ...". */
static void show_edges(const vpps_edge_lists *e, const vpps_sentences *nodes, FILE *out) {
    const vpps_vocab *labels = vpps_sentences_tag_vocab(nodes);
    for (uint32_t i = 0; i < vpps_sentences_size(nodes); i++) {
        const vpps_sentence x = vpps_sentences_get(nodes, i);
        const struct vpps_edge_list *g = &e->graphs[i];
        const char *label = vpps_vocab_word(labels, vpps_sentences_label(nodes, i));
        fprintf(out, "%s:", label ? label : "");
        for (uint32_t k = 0; k < x.n_words; k++) {
            label = x.tags ? vpps_vocab_word(labels, x.tags[k]) : NULL;
            fprintf(out, " %s/%s", vpps_vocab_word(vpps_sentences_vocab(nodes), x.words[k]), label ? label : "");
            const float *values = e->values + (g->first_node + k) * e->numbers;
            for (uint32_t n = 0; n < e->numbers; n++) fprintf(out, "(%g)", (double)values[n]);
        }
        for (uint32_t k = 0; k < g->n_edges; k++) {
            const vpps_edge *edge = &e->edges[g->first_edge + k];
            fprintf(out, " %u>%u %s", edge->from, edge->to, vpps_vocab_word(e->types, edge->type));
        }
        fputc('\n', out);
    }
}

#define SHOWN_IN_A_BUFFER(name, type, show)                                                                            \
    const char *name(const type *of) {                                                                                 \
        static char text[4096];                                                                                        \
        memset(text, 0, sizeof text);                                                                                  \
        FILE *out = fmemopen(text, sizeof text, "w");                                                                  \
        show(of, out);                                                                                                 \
        ck_assert_int_eq(fclose(out), 0);                                                                              \
        return text;                                                                                                   \
    }
SHOWN_IN_A_BUFFER(sentences_shown, vpps_sentences, show_sentences)
SHOWN_IN_A_BUFFER(lattices_shown, vpps_lattices, show_lattices)

#define SHOWN_AS_TEXT(name, type, show)                                                                                \
    char *name(const type *of, size_t *n) {                                                                            \
        char *text;                                                                                                    \
        FILE *out = open_memstream(&text, n);                                                                          \
        ck_assert_ptr_nonnull(out);                                                                                    \
        show(of, out);                                                                                                 \
        ck_assert_int_eq(fclose(out), 0);                                                                              \
        return text;                                                                                                   \
    }
SHOWN_AS_TEXT(sentences_text, vpps_sentences, show_sentences)
SHOWN_AS_TEXT(treebank_text, vpps_treebank, show_trees)
SHOWN_AS_TEXT(constituents_text, vpps_constituents, show_constituents)

/* ---------------------------------------------------------------- reading */

vpps_status form_read_sentences(const reading *r, vpps_sentences *s) {
    switch (r->format) {
    case TAGGED: return READ(vpps_sentences_read_tagged, s);
    case COLUMNS: return READ_AS(vpps_sentences_read_columns, s, r->options);
    case LINES: return READ_AS(vpps_sentences_read_lines, s, r->options);
    case LABELLED: return READ(vpps_sentences_read_labelled, s);
    default: return READ_AS(vpps_sentences_read_dependencies, s, r->options);
    }
}

static vpps_status read_parallel(const reading *r, vpps_sentences *s, vpps_sentences *t) {
    static const vpps_parallel skip = {.skip_empty = true};
    return r->path ? vpps_sentences_read_parallel_files(s, t, r->path, r->path, &skip)
                   : vpps_sentences_read_parallel_texts(s, t, "t", r->text, r->n, "t", r->text, r->n, &skip);
}

/* Everything that a text can be read into; what a format does not use stays empty. */
typedef struct store {
    vpps_sentences *sentences, *others;
    vpps_treebank *trees;
    vpps_constituents *constituents;
    vpps_vocab *lexicon;
    vpps_edge_lists *edges;
} store;

static vpps_status read_into(store *s, const reading *r) {
    const form_edges *edges = r->options;
    switch (r->format) {
    case PARALLEL: return read_parallel(r, s->sentences, s->others);
    case TREES: return READ(vpps_treebank_read, s->trees);
    case CONSTITUENTS: return READ(vpps_constituents_read, s->constituents);
    case LEXICON: return READ(vpps_lexicon_read, s->lexicon);
    case EDGES: return vpps_edge_lists_read_text(s->edges, s->sentences, "t", r->text, r->n, edges->labels);
    default: return form_read_sentences(r, s->sentences);
    }
}

static void show_store(const store *s, int format, FILE *out) {
    FREED char *words;
    TEST_OK(vpps_vocab_to_text(s->lexicon, &words));
    if (format == EDGES) show_edges(s->edges, s->sentences, out);
    if (format != EDGES) show_sentences(s->sentences, out);
    show_sentences(s->others, out);
    show_trees(s->trees, out);
    show_constituents(s->constituents, out);
    fputs(words, out);
}

static uint32_t count_words(const store *s) {
    return vpps_vocab_size(vpps_sentences_vocab(s->sentences)) +
           vpps_vocab_size(vpps_sentences_tag_vocab(s->sentences)) + vpps_vocab_size(vpps_treebank_vocab(s->trees)) +
           vpps_treebank_classes(s->trees) + vpps_vocab_size(vpps_constituents_vocab(s->constituents)) +
           vpps_vocab_size(vpps_constituents_labels(s->constituents)) + vpps_vocab_size(s->lexicon) +
           vpps_vocab_size(s->edges->types);
}

static vpps_status read_and_show(const reading *r, FILE *out, uint32_t *n_words) {
    OWNED(vpps_sentences) *sentences = new_sentences(), *others = new_sentences();
    OWNED(vpps_treebank) *trees = new_treebank();
    OWNED(vpps_vocab) *lexicon = new_vocab();
    OWNED(vpps_constituents) *constituents;
    OWNED(vpps_edge_lists) *edges;
    const vpps_labels *labels = r->format == CONSTITUENTS ? r->options : NULL;
    TEST_OK(vpps_constituents_create(&constituents, labels ? *labels : VPPS_LABELS_RAW));
    TEST_OK(vpps_edge_lists_create(&edges));
    edges->numbers = r->format == EDGES ? ((const form_edges *)r->options)->numbers : 0;
    store s = {sentences, others, trees, constituents, lexicon, edges};
    reading now = *r, before = *r;
    before.text = r->before, before.n = r->before ? strlen(r->before) : 0, before.path = NULL;
    if (r->text && !r->n) now.n = strlen(r->text);
    if (r->before) TEST_OK(read_into(&s, &before));
    const vpps_status status = read_into(&s, &now);
    *n_words = count_words(&s);
    if (r->before && status != VPPS_OK) TEST_OK(read_into(&s, &before));
    show_store(&s, r->format, out);
    return status;
}

vpps_status form_try(const reading *r, char **shown, uint32_t *n_words) {
    size_t n;
    FILE *out = need(open_memstream(shown, &n));
    const vpps_status status = read_and_show(r, out, n_words);
    ck_assert_int_eq(fclose(out), 0);
    return status;
}

void form_takes(const reading *r, const char *shown) {
    FREED char *found;
    uint32_t n_words;
    TEST_OK(form_try(r, &found, &n_words));
    ck_assert_str_eq(found, shown);
}

void form_refuses(const reading *r, const char *message) {
    FREED char *shown, *wanted = strdup("");
    uint32_t n_words, n_wanted = 0;
    reading twice = *r;
    twice.text = r->before, twice.n = 0;
    CHECK_STATUS(form_try(r, &shown, &n_words), VPPS_FORMAT);
    ck_assert_str_eq(vpps_error_message(), message);
    if (r->before) free(wanted);
    if (r->before) TEST_OK(form_try(&twice, &wanted, &n_wanted));
    ck_assert_str_eq(shown, wanted);
    ck_assert_uint_eq(n_words, n_wanted);
}

/* ---------------------------------------------------------------- the formats */

static const vpps_columns tabs = {.tabs = true}, conllu = {.conllu = true};
static const vpps_lines lines = {.end_word = "<eos>", .keep_empty = true};
static const vpps_labels cut = VPPS_LABELS_CUT;
#define SMALL(format, options, text)                                                                                   \
    { format, options, text, 0, NULL, NULL }

const form forms[] = {
    {"word|TAG", "wikiner/dev.txt", SMALL(TAGGED, NULL, "a|X b|O\n\nc|O\n")},
    {"columns of blanks", "weibo_ner/weiboNER.conll.dev", SMALL(COLUMNS, NULL, "a x X\nb x O\n\nc x O\n")},
    {"columns of tabs", "weibo_ner/weiboNER_2nd_conll.test", SMALL(COLUMNS, &tabs, "a b\tX\nc\tO\n\nd\tO\n")},
    {"columns of CoNLL-U", NULL,
     SMALL(COLUMNS, &conllu, "# a\n1\ta\ta\tX\tX\t_\t0\troot\t_\t_\n2-3\tbc\t_\t_\t_\t_\t_\t_\t_\t_\n")},
    {"dependency trees", NULL,
     SMALL(DEPENDENCIES, NULL, "# a\n1\ta\ta\tX\tX\t_\t0\troot\t_\t_\n\n1\tb\tb\tX\tX\t_\t0\troot\t_\t_\n")},
    {"labelled lines", NULL, SMALL(LABELLED, NULL, "x y\ta b\n\nz\tc d\n")},
    {"lines", "ptb_lm/ptb.valid.txt", SMALL(LINES, &lines, "a b\n\nc d\n")},
    {"parallel lines", "iwslt15_envi/tst2013.vi", SMALL(PARALLEL, NULL, "a b\n\nc d\n")},
    {"trees with numbers", "sst/dev.txt", SMALL(TREES, NULL, "(1 (0 a) (2 b))\n\n(0 a)\n")},
    {"trees with names", "treebank/gum.dev.txt", SMALL(CONSTITUENTS, &cut, "(S (NP a) (VP b))\n\n(X a)\n")},
    {"a lexicon", "weibo_ner/lexicon.txt", SMALL(LEXICON, NULL, "ab 1 n\ncd\nef 2 v\n")},
};
const int n_forms = (int)VPPS_COUNT(forms);

char *form_text(const form *f, const char *path, const char *text, size_t n) {
    const reading r = {f->small.format, f->small.options, text, n, path, NULL};
    char *shown;
    uint32_t n_words;
    TEST_OK(form_try(&r, &shown, &n_words));
    ck_assert_str_ne(shown, "");
    return shown;
}

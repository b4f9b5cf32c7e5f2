/* forms.c - see forms.h. */
#include "forms.h"

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

const char *sentences_shown(const vpps_sentences *s) {
    static char text[4096];
    memset(text, 0, sizeof text);
    FILE *file = fmemopen(text, sizeof text, "w");
    show_sentences(s, file);
    ck_assert_int_eq(fclose(file), 0);
    return text;
}

static vpps_status read_tagged(vpps_sentences *s, const char *path, const char *text, size_t n) {
    return path ? vpps_sentences_read_tagged_file(s, path) : vpps_sentences_read_tagged_text(s, "t", text, n);
}

static vpps_status read_blanks(vpps_sentences *s, const char *path, const char *text, size_t n) {
    return path ? vpps_sentences_read_columns_file(s, path, NULL)
                : vpps_sentences_read_columns_text(s, "t", text, n, NULL);
}

static vpps_status read_tabs(vpps_sentences *s, const char *path, const char *text, size_t n) {
    static const vpps_columns tabs = {.tabs = true};
    return path ? vpps_sentences_read_columns_file(s, path, &tabs)
                : vpps_sentences_read_columns_text(s, "t", text, n, &tabs);
}

static vpps_status read_conllu(vpps_sentences *s, const char *path, const char *text, size_t n) {
    static const vpps_columns columns = {.conllu = true};
    return path ? vpps_sentences_read_columns_file(s, path, &columns)
                : vpps_sentences_read_columns_text(s, "t", text, n, &columns);
}

static vpps_status read_dependencies(vpps_sentences *s, const char *path, const char *text, size_t n) {
    return path ? vpps_sentences_read_dependencies_file(s, path, NULL)
                : vpps_sentences_read_dependencies_text(s, "t", text, n, NULL);
}

static vpps_status read_labelled(vpps_sentences *s, const char *path, const char *text, size_t n) {
    return path ? vpps_sentences_read_labelled_file(s, path) : vpps_sentences_read_labelled_text(s, "t", text, n);
}

static vpps_status read_plain(vpps_sentences *s, const char *path, const char *text, size_t n) {
    static const vpps_lines lines = {.end_word = "<eos>", .keep_empty = true};
    return path ? vpps_sentences_read_lines_file(s, path, &lines)
                : vpps_sentences_read_lines_text(s, "t", text, n, &lines);
}

/* Uses the same text on both sides. */
static vpps_status parallel(const char *path, const char *text, size_t n, FILE *out) {
    static const vpps_parallel skip = {.skip_empty = true};
    OWNED(vpps_sentences) *a = new_sentences();
    OWNED(vpps_sentences) *b = new_sentences();
    const vpps_status status = path ? vpps_sentences_read_parallel_files(a, b, path, path, &skip)
                                    : vpps_sentences_read_parallel_texts(a, b, "t", text, n, "t", text, n, &skip);
    if (status == VPPS_OK) {
        show_sentences(a, out);
        show_sentences(b, out);
    }
    return status;
}

static vpps_status sentiment(const char *path, const char *text, size_t n, FILE *out) {
    OWNED(vpps_treebank) *tb = new_treebank();
    const vpps_status status = path ? vpps_treebank_read_file(tb, path) : vpps_treebank_read_text(tb, "t", text, n);
    for (uint32_t i = 0; status == VPPS_OK && i < vpps_treebank_size(tb); i++) TEST_OK(vpps_treebank_write(tb, i, out));
    return status;
}

static vpps_status constituents(const char *path, const char *text, size_t n, FILE *out) {
    OWNED(vpps_constituents) *c;
    TEST_OK(vpps_constituents_create(&c, VPPS_LABELS_CUT));
    const vpps_status status =
        path ? vpps_constituents_read_file(c, path) : vpps_constituents_read_text(c, "t", text, n);
    for (uint32_t i = 0; status == VPPS_OK && i < vpps_constituents_size(c); i++) {
        const vpps_constituent_tree tree = vpps_constituents_tree(c, i);
        for (uint32_t k = 0; k < tree.n_nodes; k++) { /* in post-order */
            const vpps_constituent *node = &tree.nodes[k];
            const char *word = vpps_vocab_word(vpps_constituents_vocab(c), node->word);
            fprintf(out, "%s %u %s\n", vpps_vocab_word(vpps_constituents_labels(c), node->label), node->n_children,
                    word ? word : "");
        }
    }
    return status;
}

static vpps_status lattices(const char *path, const char *text, size_t n, FILE *out) {
    OWNED(vpps_lattices) *l = new_lattices();
    const vpps_status status = path ? vpps_lattices_read_file(l, path) : vpps_lattices_read_text(l, "t", text, n);
    for (uint32_t i = 0; status == VPPS_OK && i < vpps_lattices_size(l); i++) {
        const vpps_lattice lattice = vpps_lattices_get(l, i);
        for (uint32_t k = 0; k < lattice.n_nodes; k++) {
            fprintf(out, "%u:", lattice.tags[k]);
            for (uint32_t a = lattice.first_arc[k]; a < lattice.first_arc[k + 1]; a++)
                fprintf(out, " %u-%u", lattice.arcs[a].from, lattice.arcs[a].id);
            fputc('\n', out);
        }
    }
    return status;
}

static vpps_status lexicon(const char *path, const char *text, size_t n, FILE *out) {
    FREED char *words;
    OWNED(vpps_vocab) *v = new_vocab();
    const vpps_status status = path ? vpps_lexicon_read_file(v, path) : vpps_lexicon_read_text(v, "t", text, n);
    TEST_OK(vpps_vocab_to_text(v, &words));
    fputs(words, out);
    return status;
}

const form forms[] = {
    {"word|TAG", "a|X b|O\n\nc|O\n", "wikiner/dev.txt", .sentences = read_tagged},
    {"columns of blanks", "a x X\nb x O\n\nc x O\n", "weibo_ner/weiboNER.conll.dev", .sentences = read_blanks},
    {"columns of tabs", "a b\tX\nc\tO\n\nd\tO\n", "weibo_ner/weiboNER_2nd_conll.test", .sentences = read_tabs},
    {"columns of CoNLL-U", "# a\n1\ta\ta\tX\tX\t_\t0\troot\t_\t_\n2-3\tbc\t_\t_\t_\t_\t_\t_\t_\t_\n", NULL,
     .sentences = read_conllu},
    {"dependency trees", "# a\n1\ta\ta\tX\tX\t_\t0\troot\t_\t_\n\n1\tb\tb\tX\tX\t_\t0\troot\t_\t_\n", NULL,
     .sentences = read_dependencies},
    {"labelled lines", "x y\ta b\n\nz\tc d\n", NULL, .sentences = read_labelled},
    {"lines", "a b\n\nc d\n", "ptb_lm/ptb.valid.txt", .sentences = read_plain},
    {"parallel lines", "a b\n\nc d\n", "iwslt15_envi/tst2013.vi", .other = parallel},
    {"trees with numbers", "(1 (0 a) (2 b))\n\n(0 a)\n", "sst/dev.txt", .other = sentiment},
    {"trees with names", "(S (NP a) (VP b))\n\n(X a)\n", "treebank/gum.dev.txt", .other = constituents},
    {"lattices", "2\n2 0 1\n0\n1 0 5\n1 3\n0\n", "lattice_ids/dev.txt", .other = lattices},
    {"a lexicon", "ab 1 n\ncd\nef 2 v\n", "weibo_ner/lexicon.txt", .other = lexicon},
};
const int n_forms = (int)VPPS_COUNT(forms);

vpps_status form_read(const form *f, const char *path, const char *text, size_t n, FILE *out) {
    if (f->other) return f->other(path, text, n, out);
    OWNED(vpps_sentences) *s = new_sentences();
    const vpps_status status = f->sentences(s, path, text, n);
    if (status == VPPS_OK) show_sentences(s, out);
    return status;
}

char *form_shown(const form *f, const char *path, const char *text, size_t n) {
    char *shown;
    size_t bytes;
    FILE *out = open_memstream(&shown, &bytes);
    ck_assert(out != NULL);
    const vpps_status status = form_read(f, path, text, n, out);
    ck_assert_msg(status == VPPS_OK, "%s: %s", f->name, vpps_error_message());
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_uint_gt(bytes, 0);
    return shown;
}

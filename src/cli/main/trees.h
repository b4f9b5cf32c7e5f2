/* trees.h - an exported program that labels the nodes of trees, which are written with brackets. LEAF, INNER(kind): the network's C functions
 * for leaves and inner nodes; kind: 0, or with KINDS (two cells for inner nodes) 0 or 1. PYRAMID, only for networks that classify sentences: the C
 * function that combines two neighbouring vectors. NAMED: labels are names, not numbers; a bracket may then have any number of children. */
typedef struct node {
    size_t left, right; /* indices of the children; both 0 for a leaf */
    size_t level;       /* 0: a leaf; else 2 * the height above the leaves + kind of the inner node (see INNER) */
    text word;
    long label; /* predicted; -1: none */
} node;

/* One input and its tree's nodes, children before parents; a blank line has no nodes. */
typedef struct tree {
    example x;
    size_t first, n;
} tree;

/* Trees whose nodes are computed together, level by level. */
typedef struct forest {
    reader r;
    tree *trees;
    node *nodes;
    float *scores; /* CLASSES scores for each node */
    size_t n_trees, n;
} forest;

struct answer {
    const forest *f;
    const tree *t;
};

static size_t add_node(forest *f, node n) {
    f->nodes = grow(f->nodes, f->n + 1, sizeof *f->nodes);
    f->nodes[f->n] = n;
    return f->n++;
}

#ifdef KINDS
/* Mixes bits as SplitMix64 does. The hash of the tree's size, a node's index and its left child's index selects one of two cells for the node. */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static void find_kinds(forest *f, const tree *t) {
    for (size_t k = 0; k < t->n; k++) {
        node *x = &f->nodes[t->first + k];
        if (x->level) x->level += mix(mix(t->n) + ((uint64_t)k << 32) + x->left - t->first) >> 63;
    }
}
#endif

static size_t add_inner(forest *f, size_t left, size_t right) {
    const size_t l = f->nodes[left].level / 2, r = f->nodes[right].level / 2;
    return add_node(f, (node){left, right, 2 + 2 * (l > r ? l : r), {NULL, 0}, -1});
}

/* ---------------------------------------------------------------- reading */

static int begins(text *left, char c) {
    while (left->len && vpps_is_space(*left->at)) *left = after(*left, 1);
    return left->len && *left->at == c;
}

static void expect(text *left, char c, const char *expected) {
    if (!begins(left, c)) stop(expected);
    *left = after(*left, 1);
}

static text token(text *left) {
    (void)begins(left, '(');
    text t = {left->at, 0};
    while (t.len < left->len && !vpps_is_space(t.at[t.len]) && t.at[t.len] != '(' && t.at[t.len] != ')') t.len++;
    *left = after(*left, t.len);
    return t;
}

static void read_label(text *left, text *label, int outermost) {
    *label = token(left);
#ifdef NAMED
    if (!label->len && !(outermost && begins(left, '('))) stop("a label");
#else
    int good = label->len && label->len < 4 && (*label->at != '0' || label->len == 1);
    for (size_t i = 0; i < label->len; i++) good = good && label->at[i] >= '0' && label->at[i] <= '9';
    (void)outermost;
    if (!good && !(label->len == 2 && memcmp(label->at, "-1", 2) == 0)) stop("a label from -1 to 999");
#endif
}

/* Returns whether a leaf of a Penn treebank tree is a null element (-NONE-), such as a trace. */
static int is_null(text label, text word) {
#ifdef NAMED
    return label.len == 6 && memcmp(label.at, "-NONE-", 6) == 0 &&
           (!word.len || *word.at == '*' || (word.len == 1 && *word.at == '0'));
#else
    (void)label, (void)word;
    return 0;
#endif
}

/* Reads a tree in brackets and appends its nodes. A bracket with one child becomes the child; one with more than two becomes binary nodes
 * that branch to the left. open[i]: the node and number of children of open bracket i. */
static void read_tree(forest *f, text left) {
    const size_t none = (size_t)-1;
    struct {
        size_t node, n;
    } *open = room(left.len, sizeof *open);
    size_t depth = 0;
    do {
        text label, word;
        expect(&left, '(', "'('");
        read_label(&left, &label, depth == 0);
        if (begins(&left, '(')) {
            open[depth].n = 0;
            open[depth++].node = none;
            continue;
        }
        word = token(&left);
        if (!word.len) stop("a word or '('");
        expect(&left, ')', "')' after the word");
        size_t done = is_null(label, word) ? none : add_node(f, (node){0, 0, 0, word, -1});
        while (depth) {
            size_t *to = &open[depth - 1].node;
            if (done != none) *to = *to == none ? done : add_inner(f, *to, done);
            open[depth - 1].n++;
#ifdef NAMED
            if (begins(&left, '(')) break;
#else
            if (open[depth - 1].n < 2) break;
#endif
            expect(&left, ')', "')'");
            done = open[--depth].node;
        }
    } while (depth);
    free(open);
    if (trim(left).len) stop("one tree");
}

static void add_tree(forest *f, const example *x) {
    tree t = {*x, f->n, 0};
    const int cell = is_table(f->r.form);
    if (!x->blank) {
        char *text_of_cell = cell ? cell_of(&f->r, x) : NULL;
        const text of = cell                 ? (text){text_of_cell, strlen(text_of_cell)}
                        : f->r.form == JSONL ? flat_value(value_in(&x->json))
                                             : x->line;
        if (trim(of).len) read_tree(f, of);
    }
    t.n = f->n - t.first;
#ifdef KINDS
    find_kinds(f, &t);
#endif
    f->trees = grow(f->trees, f->n_trees + 1, sizeof *f->trees);
    f->trees[f->n_trees++] = t;
}

/* ---------------------------------------------------------------- computing */

#ifdef PYRAMID
/* Classifies each tree by its words alone: repeatedly combines neighbouring vectors to a shorter row of vectors, until one vector is left, which is
 * the root's. */
static void label_nodes(forest *f) {
    const float **from = room(f->n, sizeof *from);
    float **to = room(f->n, sizeof *to), *at = room(2 * f->n * NET_OUT, sizeof *at), *next = at + f->n * NET_OUT;
    for (size_t i = 0; i < f->n_trees; i++) {
        const tree *t = &f->trees[i];
        size_t n = 0;
        for (size_t k = t->first; k < t->first + t->n; k++) {
            const node *x = &f->nodes[k];
            if (!x->level) need(LEAF(known(net_word_number(x->word.at, x->word.len)), at + n++ * NET_OUT));
        }
        for (; n > 1; n--) {
            for (size_t k = 0; k < n; k++) from[k] = at + k * NET_OUT, to[k] = next + k * NET_OUT;
            need(PYRAMID(n - 1, from, from + 1, to));
            memcpy(at, next, (n - 1) * NET_OUT * sizeof *at);
        }
        if (!n) continue;
        float *scores = f->scores + (t->first + t->n - 1) * CLASSES;
        need(net_classifier(at, scores));
        f->nodes[t->first + t->n - 1].label = (long)likeliest(scores);
    }
    free((void *)from);
    free((void *)to);
    free(at);
}
#else
/* Computes scores and labels of the nodes of all trees. The nodes of one level (equal height above the leaves) are computed together. */
static void label_nodes(forest *f) {
    const float **left = room(2 * f->n, sizeof *left), **right = left + f->n;
    float **out = room(2 * f->n, sizeof *out), **pushed = out + f->n, *at = room(f->n * NET_OUT, sizeof *at);
    uint32_t *words = room(f->n, sizeof *words);
    /* for each level: the end of its nodes in left, right and out, sorted by level */
    size_t *ends = room(f->n + 3, 2 * sizeof *ends);
    for (size_t k = 0; k < f->n; k++) ends[f->nodes[k].level + 1]++;
    for (size_t l = 1; l < 2 * f->n + 3; l++) ends[l] += ends[l - 1];
    for (size_t k = 0; k < f->n; k++) {
        const node *x = &f->nodes[k];
        const size_t i = ends[x->level]++;
        words[i] = x->level ? 0 : known(net_word_number(x->word.at, x->word.len));
        left[i] = at + x->left * NET_OUT;
        right[i] = at + x->right * NET_OUT;
        out[i] = at + k * NET_OUT;
        pushed[i] = f->scores + k * CLASSES;
    }
    for (size_t l = 0, i = 0; i < f->n; i = ends[l++]) {
        const size_t n = ends[l] - i;
        if (l == 0)
            need(LEAF(n, words, out, pushed));
        else if (n)
            need(INNER(l & 1)(n, left + i, right + i, out + i, pushed + i));
    }
    for (size_t k = 0; k < f->n; k++) f->nodes[k].label = (long)likeliest(f->scores + k * CLASSES);
    free((void *)left);
    free((void *)out);
    free(at);
    free(words);
    free(ends);
}
#endif

/* ---------------------------------------------------------------- printing */

static void put_label(long label, int quoted) {
#ifdef NAMED
    const char *name = net_class_text((uint32_t)label);
    if (quoted && name)
        vpps_json_write_string(stdout, name);
    else if (name)
        fputs(name, stdout);
    else
#endif
        printf("%ld", label);
    (void)quoted;
}

/* Prints a tree in brackets with predicted labels. The stack holds what is still to be printed: a node's index + 1, or 0 for a closing bracket. */
static void put_tree(const forest *f, const tree *t) {
    size_t *stack = room(2 * t->n + 2, sizeof *stack), n = 0;
    if (t->n) stack[n++] = t->first + t->n;
    for (int first = 1; n; first = 0) {
        const size_t k = stack[--n];
        if (!k) {
            putchar(')');
            continue;
        }
        const node *x = &f->nodes[k - 1];
        fputs(first ? "(" : " (", stdout);
        put_label(x->label, 0);
        if (!x->level) {
            putchar(' ');
            put(x->word);
            putchar(')');
        } else {
            stack[n++] = 0;
            stack[n++] = x->right + 1;
            stack[n++] = x->left + 1;
        }
    }
    free(stack);
}

/* Prints a JSON list of a tree's words, or of its nodes, each with the range of its words from begin up to end. */
static void put_list(const answer *a, int words) {
    const tree *t = a->t;
    size_t *begins_at = room(t->n, sizeof *begins_at), leaves = 0;
    const char *comma = "[";
    for (size_t k = 0; k < t->n; k++) {
        const node *x = &a->f->nodes[t->first + k];
        begins_at[k] = x->level ? begins_at[x->left - t->first] : leaves++;
        if (words ? x->level > 0 : x->label < 0) continue;
        fputs(comma, stdout);
        comma = ",";
        if (words) {
            put_string(x->word);
            continue;
        }
        fputs("{\"label\":", stdout);
        put_label(x->label, 1);
        fputs(",\"score\":", stdout);
        put_number(score_of(a->f->scores + (t->first + k) * CLASSES, (size_t)x->label));
        printf(",\"begin\":%lu,\"end\":%lu}", (unsigned long)begins_at[k], (unsigned long)leaves);
    }
    free(begins_at);
    putchar(']');
}

static void put_value(const answer *a, size_t i) {
    const size_t root = a->t->first + a->t->n - 1;
    const long label = a->f->nodes[root].label;
    if (i == 0)
        put_label(label, 1);
    else if (i == 1)
        put_number(score_of(a->f->scores + root * CLASSES, (size_t)label));
    else
        put_list(a, i == 2);
}

static void put_cell(const answer *a, size_t i, char separator, int tabs) {
    const size_t root = a->t->first + a->t->n - 1;
    const long label = a->f->nodes[root].label;
    char digits[24], *words = NULL;
    const char *cell = digits;
    size_t len = 0;
    sprintf(digits, "%ld", label);
#ifdef NAMED
    if (net_class_text((uint32_t)label)) cell = net_class_text((uint32_t)label);
#endif
    for (size_t k = a->t->first; i == 2 && k <= root; k++)
        if (!a->f->nodes[k].level) words = add_joined(words, &len, a->f->nodes[k].word);
    if (i == 1)
        put_number_cell(score_of(a->f->scores + root * CLASSES, (size_t)label), separator);
    else
        csv_write(stdout, words ? words : cell, separator, tabs);
    release(words);
}

/* ---------------------------------------------------------------- all of it */

static form look(input in, form wanted, int sure) {
    (void)in, (void)wanted, (void)sure;
    return PLAIN;
}

/* Labels and prints all trees of the forest, then empties it. */
static void answer_trees(void *forest_that_waits) {
    forest *f = forest_that_waits;
    f->scores = room(f->n * CLASSES, sizeof *f->scores);
    label_nodes(f);
    for (size_t i = 0; i < f->n_trees; i++) {
        tree *t = &f->trees[i];
        const answer a = {f, t};
        if (f->r.form >= JSONL && !t->x.blank)
            put_record(&f->r, &t->x, t->n ? &a : NULL);
        else
            put_tree(f, t);
        fputs(t->x.end, stdout);
        drop_example(&t->x);
    }
    free(f->scores);
    f->n = f->n_trees = 0;
}

static void answer_input(input *in) {
    enum { ENOUGH = 1024 /* number of nodes to read before all are computed */ };
    forest f = {begin_reader(in), NULL, NULL, NULL, 0, 0};
    place.waiting = &f;
    place.answer = answer_trees;
    for (example x; next_example(in, &f.r, &x);) {
        add_tree(&f, &x);
        if (f.n + f.n_trees > ENOUGH) answer_trees(&f);
    }
    answer_trees(&f);
    end_reader(&f.r);
    place.answer = NULL;
    release(f.trees);
    release(f.nodes);
}

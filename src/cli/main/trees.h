/* trees.h - the program of an exported network on trees in brackets, one a line, whose labels are replaced. Children lie before parents.
 * LEAF, INNER(tree, node) and, for networks that classify whole sentences, PYRAMID say which functions there are. */
typedef struct node {
    size_t left, right; /* equal: a leaf */
    text word;
    long label;
} node;

typedef struct tree {
    node *nodes;
    size_t n, most;
} tree;

static text skip(text t) {
    while (t.len && is_blank(*t.at)) t.at++, t.len--;
    return t;
}

static size_t add_node(tree *t, node n) {
    if (t->n == t->most) {
        t->most = 2 * t->most + 64;
        t->nodes = realloc(t->nodes, t->most * sizeof *t->nodes);
        if (!t->nodes) fail(0, "out of memory");
    }
    t->nodes[t->n] = n;
    return t->n++;
}

static void take(text *left, size_t number, char c, const char *expected) {
    *left = skip(*left);
    if (!left->len || *left->at != c) fail(number, expected);
    left->at++;
    left->len--;
}

/* -1 to 999, as printf writes it. */
static int is_label(text t) {
    for (size_t i = 0; i < t.len; i++)
        if (t.at[i] < '0' || t.at[i] > '9') return t.len == 2 && memcmp(t.at, "-1", 2) == 0;
    return t.len > 0 && t.len < 4 && (*t.at != '0' || t.len == 1);
}

static text token(text *left) {
    *left = skip(*left);
    text t = {left->at, 0};
    while (t.len < left->len && !is_blank(t.at[t.len]) && t.at[t.len] != '(' && t.at[t.len] != ')') t.len++;
    left->at += t.len;
    left->len -= t.len;
    return t;
}

/* Reads the tree of a line. open[i]: what bracket i has so far; a line nests no deeper than it is long. */
static void read_tree(tree *t, text left, size_t number) {
    size_t depth = 0, *open = room(left.len, sizeof *open);
    const size_t none = (size_t)-1;
    t->n = 0;
    do {
        take(&left, number, '(', "expected '('");
        if (!is_label(token(&left))) fail(number, "expected a label from -1 to 999");
        left = skip(left);
        if (left.len && *left.at == '(') {
            open[depth++] = none;
            continue;
        }
        const text word = token(&left);
        if (!word.len) fail(number, "expected a word or '('");
        take(&left, number, ')', "expected ')' after the word");
        size_t done = add_node(t, (node){0, 0, word, -1});
        while (depth && open[depth - 1] != none) {
            take(&left, number, ')', "expected ')' after the second subtree");
            done = add_node(t, (node){open[--depth], done, {NULL, 0}, -1});
        }
        if (depth) open[depth - 1] = done;
    } while (depth);
    free(open);
    if (skip(left).len) fail(number, "expected one tree, found more");
}

#ifdef PYRAMID
/* Neighbours become one, level by level, until one is left, which is the root's. */
static void label_nodes(tree *t) {
    float *at = room((t->n + 1) * NET_OUT, sizeof *at), *made = at + t->n * NET_OUT, scores[CLASSES];
    size_t n = 0;
    for (size_t k = 0; k < t->n; k++) {
        const node *x = &t->nodes[k];
        if (x->left == x->right) need(LEAF(known(net_word_number(x->word.at, x->word.len)), at + n++ * NET_OUT));
    }
    for (; n > 1; n--) {
        for (size_t i = 0; i + 1 < n; i++) {
            need(PYRAMID(at + i * NET_OUT, at + (i + 1) * NET_OUT, made));
            memcpy(at + i * NET_OUT, made, NET_OUT * sizeof *at);
        }
    }
    need(net_classifier(at, scores));
    t->nodes[t->n - 1].label = (long)greatest(scores, CLASSES);
    free(at);
}
#else
#ifdef KINDS
/* Which of two cells an inner vertex has: a hash of the tree's size, the node's number and its left child's (SplitMix64). */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static int kind_of(const tree *t, size_t k) {
    return (int)(mix(mix(t->n) + ((uint64_t)k << 32) + t->nodes[k].left) >> 63);
}
#endif

static void label_nodes(tree *t) {
    float *at = room(t->n * NET_OUT, sizeof *at), scores[CLASSES];
    for (size_t k = 0; k < t->n; k++) {
        node *x = &t->nodes[k];
        if (x->left == x->right)
            need(LEAF(known(net_word_number(x->word.at, x->word.len)), at + k * NET_OUT, scores));
        else
            need(INNER(t, k)(at + x->left * NET_OUT, at + x->right * NET_OUT, at + k * NET_OUT, scores));
        x->label = (long)greatest(scores, CLASSES);
    }
    free(at);
}
#endif

/* stack: nodes that are still to come, + 1; 0: a bracket that closes. */
static void put_tree(const tree *t) {
    size_t *stack = room(2 * t->n + 2, sizeof *stack), n = 0;
    stack[n++] = t->n;
    for (int first = 1; n; first = 0) {
        const size_t k = stack[--n];
        if (!k) {
            putchar(')');
            continue;
        }
        const node *x = &t->nodes[k - 1];
        printf("%s(%ld", first ? "" : " ", x->label);
        if (x->left == x->right) {
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

int main(void) {
    text all, line;
    char *input = read_input(&all);
    tree t = {NULL, 0, 0};
    for (size_t number = 1; next_line(&all, &line); number++) {
        if (skip(line).len) {
            read_tree(&t, line, number);
            label_nodes(&t);
            put_tree(&t);
        }
        putchar('\n');
    }
    free(t.nodes);
    free(input);
    return 0;
}

/* context_tests.c - what each position depends on: a changed id changes the logits where the network reads the id, and nowhere else. */
#include "fixture.h"

typedef struct subject {
    fixture f;
    ref_model *m;
    const net_example *x;
    uint32_t i; /* number of x */
    ref_run *as_it_is;
    vpps_node logits[MOST_POSITIONS]; /* logits of as_it_is, on the other graph */
} subject;

#define UNTOUCHED 1e-12
#define SEEN 1e-9

/* Finds the largest change of each position's logits if `other` replaces the example. */
static void changes(subject *s, const net_example *other, double change[MOST_POSITIONS]) {
    fixture *f = &s->f;
    vpps_graph_clear(f->g);
    add_example(f, s->i, other, NET_HEADS_ALL);
    OWNED(ref_run) *r = run_forward(f->g, s->m, &(ref_mode){.training = false});
    for (uint32_t k = 0; k < net_positions(f->net->kind, s->x); k++) {
        const bool asked = f->logits[s->i][k] != VPPS_NO_NODE;
        change[k] = asked ? difference(s->as_it_is, s->logits[k], r, f->logits[s->i][k]) : 0;
    }
}

/* Checks that `what` number j affects positions from `first` on; `before_too`: earlier positions may change as well. */
static void check_seen_from(subject *s, const net_example *other, const char *what, uint32_t j, uint32_t first,
                            bool before_too) {
    double change[MOST_POSITIONS] = {0};
    changes(s, other, change);
    for (uint32_t k = 0; k < net_positions(s->f.net->kind, s->x); k++) {
        const bool right = k >= first ? change[k] > SEEN : before_too || change[k] < UNTOUCHED;
        ck_assert_msg(right, "%s, example %u: %s %u changes position %u by %g", s->f.name, s->i, what, j, k, change[k]);
    }
}

/* ---------------------------------------------------------------- replacing */

typedef struct copied {
    uint32_t ids[MOST_POSITIONS];
} copied;

/* Replaces word j of the sentence, whose words are then those in *copy. */
static void replace_word(vpps_sentence *s, uint32_t j, uint32_t words, copied *copy) {
    ck_assert_uint_le(s->n_words, MOST_POSITIONS);
    memcpy(copy->ids, s->words, s->n_words * sizeof *copy->ids);
    copy->ids[j] = (copy->ids[j] + 1) % words;
    s->words = copy->ids;
}

static void each_source_word(subject *s) {
    for (uint32_t j = 0; j < s->x->sentence.n_words; j++) {
        net_example other = *s->x;
        copied copy;
        if (s->f.net->spells && s->x->spellings[j].n) continue;
        replace_word(&other.sentence, j, s->f.config.words, &copy);
        check_seen_from(s, &other, "word", j, 0, false);
    }
}

static void each_character(subject *s) {
    for (uint32_t j = 0; s->f.net->spells && j < s->x->sentence.n_words; j++) {
        for (uint32_t i = 0; i < s->x->spellings[j].n; i++) {
            net_spelling spellings[MOST_POSITIONS];
            copied copy;
            net_example other = *s->x;
            vpps_sentence characters = {.words = s->x->spellings[j].characters, .n_words = s->x->spellings[j].n};
            memcpy(spellings, s->x->spellings, s->x->sentence.n_words * sizeof *spellings);
            replace_word(&characters, i, s->f.config.characters, &copy);
            spellings[j].characters = copy.ids;
            other.spellings = spellings;
            check_seen_from(s, &other, "a character of word", j, 0, false);
        }
    }
}

/* Word j affects the positions that predict later words. */
static void each_text_word(subject *s) {
    for (uint32_t j = 0; j < s->x->sentence.n_words; j++) {
        net_example other = *s->x;
        copied copy;
        replace_word(&other.sentence, j, s->f.config.words, &copy);
        check_seen_from(s, &other, "word", j, j, false);
    }
}

static void each_target_word(subject *s) {
    for (uint32_t j = 0; j < s->x->target.n_words; j++) {
        net_example other = *s->x;
        copied copy;
        replace_word(&other.target, j, s->f.config.classes, &copy);
        check_seen_from(s, &other, "the target's word", j, j, false);
    }
}

/* Replaces arc a into node i by `arc`, which affects positions from its node on, or all if something else reads the whole lattice. */
static void replace_arc(subject *s, uint32_t i, uint32_t a, vpps_lattice_arc arc, const char *what) {
    const vpps_lattice *l = s->x->lattice;
    const bool everywhere = s->f.net->kind != NET_LATTICES;
    vpps_lattice_arc arcs[MOST_POSITIONS];
    vpps_lattice lattice = *l;
    net_example other = *s->x;
    ck_assert_uint_le(l->first_arc[l->n_nodes], MOST_POSITIONS);
    memcpy(arcs, l->arcs, l->first_arc[l->n_nodes] * sizeof *arcs);
    arcs[a] = arc;
    lattice.arcs = arcs;
    other.lattice = &lattice;
    check_seen_from(s, &other, what, a, everywhere ? 0 : i - 1, !everywhere);
}

static void each_arc(subject *s) {
    const vpps_lattice *l = s->x->lattice;
    for (uint32_t i = 1; i < l->n_nodes; i++) {
        for (uint32_t a = l->first_arc[i]; a < l->first_arc[i + 1]; a++) {
            vpps_lattice_arc arc = l->arcs[a];
            const uint32_t ids = arc.is_character ? s->f.config.characters : s->f.config.words;
            replace_arc(s, i, a, (vpps_lattice_arc){arc.from, (arc.id + 1) % ids, arc.is_character}, "the id of arc");
            if (arc.is_character || i < 3) continue;
            arc.from = (arc.from + 1) % (i - 1);
            replace_arc(s, i, a, arc, "the start of arc");
        }
    }
}

static bool is_above(const vpps_tree *t, uint32_t node, uint32_t leaf) {
    uint32_t first = node; /* in post-order, a node's subtree begins with its first leaf */
    while (t->nodes[first].left >= 0) first = (uint32_t)t->nodes[first].left;
    return first <= leaf && leaf <= node;
}

/* A leaf affects the nodes above it. */
static void each_leaf(subject *s) {
    const vpps_tree *t = s->x->tree;
    for (uint32_t j = 0; j < t->n_nodes; j++) {
        vpps_tree_node nodes[MOST_POSITIONS];
        vpps_tree tree = *t;
        double change[MOST_POSITIONS] = {0};
        if (t->nodes[j].left >= 0) continue;
        memcpy(nodes, t->nodes, t->n_nodes * sizeof *nodes);
        nodes[j].word = (nodes[j].word + 1) % s->f.config.words;
        tree.nodes = nodes;
        changes(s, &(net_example){.tree = &tree}, change);
        for (uint32_t k = 0; k < t->n_nodes; k++) {
            const bool seen = is_above(t, k, j) && (k + 1 == t->n_nodes || !roots_only(s->f.net));
            ck_assert_msg(seen ? change[k] > SEEN : change[k] < UNTOUCHED, "%s, tree %u: leaf %u changes node %u by %g",
                          s->f.name, s->i, j, k, change[k]);
        }
    }
}

/* A word affects itself and the words above it. */
static void each_dependent(subject *s) {
    const vpps_sentence *x = &s->x->sentence;
    for (uint32_t j = 0; j < x->n_words; j++) {
        net_example other = *s->x;
        copied copy;
        double change[MOST_POSITIONS] = {0};
        bool seen[MOST_POSITIONS] = {false};
        replace_word(&other.sentence, j, s->f.config.words, &copy);
        changes(s, &other, change);
        for (uint32_t k = j + 1; k; k = x->heads[k - 1]) seen[k - 1] = true;
        for (uint32_t k = 0; k < x->n_words; k++)
            ck_assert_msg(seen[k] ? change[k] > SEEN : change[k] < UNTOUCHED,
                          "%s, sentence %u: word %u changes word %u by %g", s->f.name, s->i, j, k, change[k]);
    }
}

/* A node affects nodes up to as many edges away as there are rounds. */
static void mark_near(const net_example *x, uint32_t rounds, bool *seen) {
    for (uint32_t r = 0; r < rounds; r++) {
        bool further[MOST_POSITIONS];
        memcpy(further, seen, sizeof further);
        for (uint32_t e = 0; e < x->n_edges; e++) {
            further[x->edges[e].to] |= seen[x->edges[e].from];
            further[x->edges[e].from] |= seen[x->edges[e].to];
        }
        memcpy(seen, further, sizeof further);
    }
}

static void check_near(subject *s, const net_example *other, const bool *seen, const char *what, uint32_t j) {
    double change[MOST_POSITIONS] = {0};
    changes(s, other, change);
    for (uint32_t k = 0; k < net_positions(s->f.net->kind, s->x); k++) {
        const bool sees = s->f.net->kind == NET_GRAPHS || seen[k];
        ck_assert_msg(sees ? change[k] > SEEN : change[k] < UNTOUCHED, "%s, graph %u: %s %u changes position %u by %g",
                      s->f.name, s->i, what, j, k, change[k]);
    }
}

static void each_node(subject *s) {
    for (uint32_t j = 0; j < s->x->sentence.n_words; j++) {
        net_example other = *s->x;
        copied copy;
        bool seen[MOST_POSITIONS] = {false};
        float numbers[MOST_NUMBERS * MOST_POSITIONS];
        seen[j] = true;
        mark_near(s->x, s->f.config.layers, seen);
        replace_word(&other.sentence, j, s->f.config.words, &copy);
        check_near(s, &other, seen, "word", j);
        other = *s->x;
        memcpy(numbers, other.numbers, MOST_NUMBERS * s->x->sentence.n_words * sizeof *numbers);
        numbers[MOST_NUMBERS * j + 1] += 1;
        other.numbers = numbers;
        check_near(s, &other, seen, "a number of node", j);
    }
}

static void each_edge(subject *s) {
    for (uint32_t j = 0; j < s->x->n_edges; j++) {
        net_example other = *s->x;
        net_edge edges[MOST_EDGES];
        bool seen[MOST_POSITIONS] = {false};
        memcpy(edges, other.edges, other.n_edges * sizeof *edges);
        edges[j].type = (edges[j].type + 1) % s->f.config.edge_types;
        other.edges = edges;
        seen[edges[j].from] = seen[edges[j].to] = true;
        mark_near(s->x, s->f.config.layers - 1, seen);
        check_near(s, &other, seen, "the type of edge", j);
        const uint32_t from = edges[j].from;
        edges[j] = (net_edge){edges[j].to, from, s->x->edges[j].type};
        if (from != edges[j].from) check_near(s, &other, seen, "the direction of edge", j);
    }
}

static void replace_everything(subject *s) {
    switch (s->f.net->kind) {
    case NET_TREES: each_leaf(s); break;
    case NET_TAGGING: /* both sides determine a tag */
        each_source_word(s);
        each_character(s);
        break;
    case NET_SENTENCES: each_source_word(s); break;
    case NET_TEXT: each_text_word(s); break;
    case NET_LATTICES: each_arc(s); break;
    case NET_DEPENDENCIES: each_dependent(s); break;
    case NET_NODES:
    case NET_GRAPHS:
        each_node(s);
        each_edge(s);
        break;
    case NET_PAIRS:
        each_source_word(s);
        each_target_word(s);
        break;
    case NET_LATTICE_PAIRS:
        each_arc(s);
        each_target_word(s);
        break;
    }
}

TEST_GROUP("context");

TEST_EACH(positions_see_what_they_may, 0, case_count()) {
    subject s;
    fixture whole;
    fixture_open(&s.f, _i, NULL, 8, 6, 0);
    fixture_open(&whole, _i, NULL, 8, 6, 0);
    s.m = scattered_model(s.f.model);
    for (s.i = 0; s.i < s.f.e->n; s.i++) {
        s.x = &s.f.e->x[s.i];
        vpps_graph_clear(whole.g);
        add_example(&whole, s.i, s.x, NET_HEADS_ALL);
        s.as_it_is = run_forward(whole.g, s.m, &(ref_mode){.training = false});
        memcpy(s.logits, whole.logits[s.i], sizeof s.logits);
        replace_everything(&s);
        ref_run_destroy(s.as_it_is);
    }
    ref_model_destroy(s.m);
    fixture_close(&whole);
    fixture_close(&s.f);
}

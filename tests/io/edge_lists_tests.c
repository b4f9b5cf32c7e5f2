/* edge_lists_tests.c - the reader of graphs in lists of edges: what it accepts, and what it refuses with which words. */
#include "forms.h"

DESTROYED_BY(vpps_edge_lists, vpps_edge_lists_destroy)

/* ---------------------------------------------------------------- what is accepted */

static const struct good_case {
    form_edges how;
    const char *text, *shown;
} good_cases[] = {
    {{VPPS_NODE_LABELS, 0}, "", ""},
    {{VPPS_NODE_LABELS, 0}, "# a\n \t\n", ""},
    {{VPPS_NODE_LABELS, 0}, "graph\nnode a", ": a/\n"},
    {{VPPS_NODE_LABELS, 0},
     "graph x\nnode a p\nnode b -\nedge 1 2 t\nedge 2 2\ngraph\nnode a q\nnode c\nedge 2 1 t\n",
     ": a/p b/ 0>1 t 1>1 -\n: a/q c/ 1>0 t\n"},
    {{VPPS_GRAPH_LABELS, 0}, "graph x\nnode a p\ngraph -\nnode b\ngraph\nnode a\n", "x: a/\n: b/\n: a/\n"},
    {{VPPS_NO_LABELS, 1}, "graph x\nnode a p 1.5\nnode b - -2e1\nedge 1 2 t\n", ": a/(1.5) b/(-20) 0>1 t\n"},
    {{VPPS_NODE_LABELS, 2}, "graph\nnode a p 1 2\n", ": a/p(1)(2)\n"},
    /* edges between nodes; words that look like keywords; blanks, CR LF, a byte order mark, comments */
    {{VPPS_NODE_LABELS, 0},
     "\xef\xbb\xbfgraph\r\n\tnode  #1\tnode \r\n# c\r\nedge 1 1 edge\r\n node graph graph",
     ": #1/node graph/graph 0>0 edge\n"},
};

TEST_GROUP("edge lists");

TEST_EACH(good_text, 0, VPPS_COUNT(good_cases)) {
    form_takes(&(reading){EDGES, &good_cases[_i].how, good_cases[_i].text, 0, NULL, NULL}, good_cases[_i].shown);
}

/* Nor do labels of nodes and of graphs mix. */
TEST(nodes_know_their_lines) {
    static const char text[] = "# c\ngraph\n\nnode a\ngraph\nnode b\nedge 1 1\nnode c\n";
    OWNED(vpps_edge_lists) *e;
    OWNED(vpps_sentences) *nodes = new_sentences();
    TEST_OK(vpps_edge_lists_create(&e));
    TEST_OK(vpps_edge_lists_read_text(e, nodes, "t", text, sizeof text - 1, VPPS_NODE_LABELS));
    ck_assert_uint_eq(vpps_sentences_line(nodes, 1), 5);
    ck_assert_uint_eq(vpps_sentences_word_line(nodes, 0, 0), 4);
    ck_assert_uint_eq(vpps_sentences_word_line(nodes, 1, 1), 8);
    CHECK_STATUS(vpps_edge_lists_read_text(e, nodes, "t", text, sizeof text - 1, VPPS_GRAPH_LABELS), VPPS_STATE);
}

/* ---------------------------------------------------------------- what is refused */

static const struct bad_case {
    form_edges how;
    const char *text, *message;
} bad_cases[] = {
    {{VPPS_NODE_LABELS, 0}, "node a\n", "t:1:1: expected 'graph', which begins one, found 'node'"},
    {{VPPS_NODE_LABELS, 0}, "graph\nnode a\nnodes b\n", "t:3:1: expected 'graph', 'node' or 'edge', found 'nodes'"},
    {{VPPS_NODE_LABELS, 0}, "graph a b\n", "t:1:9: expected the end of the line, found 'b'"},
    {{VPPS_NODE_LABELS, 0}, "graph\n", "t:2:1: expected a node of the graph before, found the end"},
    {{VPPS_NODE_LABELS, 0}, "graph\n graph\nnode a\n", "t:2:1: expected a node of the graph before, found a space"},
    {{VPPS_NODE_LABELS, 0}, "graph\nnode\n", "t:2:5: expected the node's word, found the end of the line"},
    {{VPPS_NODE_LABELS, 0}, "graph\nnode a b 1\n", "t:2:10: expected the end of the line, found '1'"},
    {{VPPS_NODE_LABELS, 2}, "graph\nnode a b 1 2 3\n", "t:2:14: expected the end of the line, found '3'"},
    {{VPPS_NODE_LABELS, 2},
     "graph\nnode a b 1\n",
     "t:2:11: expected a label and 2 numbers, of which this is number 2, found the end of the line"},
    {{VPPS_NO_LABELS, 1},
     "graph\nnode a 1\n",
     "t:2:9: expected a label and 1 numbers, of which this is number 1, found the end of the line"},
    {{VPPS_NODE_LABELS, 1},
     "graph\nnode a b 1x\n",
     "t:2:10: expected a label and 1 numbers, of which this is number 1, found '1x'"},
    {{VPPS_NODE_LABELS, 1},
     "graph\nnode a b nan\n",
     "t:2:10: expected a label and 1 numbers, of which this is number 1, found 'nan'"},
    {{VPPS_NODE_LABELS, 1},
     "graph\nnode a b 1e40\n",
     "t:2:10: expected a label and 1 numbers, of which this is number 1, found '1e40'"},
    {{VPPS_NODE_LABELS, 0}, "graph\nedge 1 1\n", "t:2:6: expected a node above its edges, found '1'"},
    {{VPPS_NODE_LABELS, 0},
     "graph\nnode a\nedge 1 2 t\nnode b\n",
     "t:3:8: expected the node that the edge is to: 1 to 1, the last one above, found '2'"},
    {{VPPS_NODE_LABELS, 0},
     "graph\nnode a\nedge 0 1\n",
     "t:3:6: expected the node that the edge is from: 1 to 1, the last one above, found '0'"},
    {{VPPS_NODE_LABELS, 0},
     "graph\nnode a\nedge 1 4294967297\n",
     "t:3:8: expected the node that the edge is to: 1 to 1, the last one above, found '4294967297'"},
    {{VPPS_NODE_LABELS, 0},
     "graph\nnode a\nedge 1 +1\n",
     "t:3:8: expected the node that the edge is to: 1 to 1, the last one above, found '+1'"},
    {{VPPS_NODE_LABELS, 0},
     "graph\nnode a\nedge 1\n",
     "t:3:7: expected the node that the edge is to: 1 to 1, the last one above, found the end of the line"},
    {{VPPS_NODE_LABELS, 0}, "graph\nnode a\nedge 1 1 t u\n", "t:3:12: expected the end of the line, found 'u'"},
    {{VPPS_NODE_LABELS, 0}, "graph\rnode a\r", "t:1:6: expected LF after CR, found CR alone"},
};

TEST_EACH(bad_text, 0, VPPS_COUNT(bad_cases)) {
    static const char *const before[] = {"graph g\nnode a n\nedge 1 1 k\n", "graph g\nnode a n 1\nedge 1 1 k\n",
                                         "graph g\nnode a n 1 2\nedge 1 1 k\n"};
    const struct bad_case *c = &bad_cases[_i];
    form_refuses(&(reading){EDGES, &c->how, c->text, 0, NULL, before[c->how.numbers]}, c->message);
}

/* ---------------------------------------------------------------- where labels are */

TEST(labels_are_found) {
    static const struct {
        vpps_edge_labels labels;
        const char *line, *label; /* NULL: the line may not have a label */
    } cases[] = {
        {VPPS_NODE_LABELS, "node a b 1", "b"}, {VPPS_NODE_LABELS, " node  a", ""},   {VPPS_NODE_LABELS, "node", NULL},
        {VPPS_NODE_LABELS, "graph a", NULL},   {VPPS_GRAPH_LABELS, "graph - ", "-"}, {VPPS_GRAPH_LABELS, "graph", ""},
        {VPPS_GRAPH_LABELS, "edge 1 1", NULL}, {VPPS_GRAPH_LABELS, "", NULL},
    };
    for (size_t i = 0; i < VPPS_COUNT(cases); i++) {
        const char *line = cases[i].line, *at, *end;
        const bool found = vpps_edge_lists_label(line, line + strlen(line), cases[i].labels, &at, &end);
        ck_assert_msg(found == (cases[i].label != NULL), "'%s'", line);
        if (found)
            ck_assert_msg(end - at == (ptrdiff_t)strlen(cases[i].label) &&
                              strncmp(at, cases[i].label, (size_t)(end - at)) == 0,
                          "'%s': '%.*s'", line, (int)(end - at), at);
    }
}

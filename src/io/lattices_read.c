/* lattices_read.c - reads lattices from whole numbers between white space. */
#include "lattices.h"

#include "base/base.h"
#include "file.h"
#include "text.h"

typedef struct number_reader {
    vpps_lattices *l;
    vpps_text text;
    const char *at;
    const char *number;  /* first byte of the latest number */
    const char *counted; /* position up to which line ends have been counted */
    uint32_t line;       /* line number at `counted`, from 1 */
} number_reader;

/* Skips white space and byte order marks. */
static void skip_space(number_reader *r) {
    const char *before;
    do {
        before = r->at;
        while (r->at < r->text.end && vpps_is_space(*r->at)) r->at++;
        r->at = vpps_skip_mark(r->at, r->text.end);
    } while (r->at > before);
}

/* Reads the next number, which must be less than UINT32_MAX, so that 1 + an id fits. `what` is the number's name in messages. */
static vpps_status read_number(number_reader *r, const char *what, uint32_t *value) {
    skip_space(r);
    const char *p = r->number = r->at;
    uint64_t v = 0;
    while (p < r->text.end && *p >= '0' && *p <= '9' && v < UINT32_MAX) v = v * 10 + (uint64_t)(*p++ - '0');
    if (p == r->number || v >= UINT32_MAX || (p < r->text.end && !vpps_is_space(*p))) {
        return vpps_text_fail(&r->text, r->number, what, NULL);
    }
    *value = (uint32_t)v;
    r->at = p;
    return VPPS_OK;
}

/* Reads the arcs into node i, which all come from earlier nodes. The first node has no arcs; any other node has the arc of a character, then arcs of
 * words. */
static vpps_status read_arcs(number_reader *r, uint32_t i) {
    uint32_t k, from, id;
    VPPS_TRY(read_number(r, "the number of arcs into the node", &k));
    if (i == 0 && k > 0) return vpps_text_fail(&r->text, r->number, "0 arcs into node 0", NULL);
    if (i > 0 && k == 0) return vpps_text_fail(&r->text, r->number, "an arc into every node but node 0", NULL);
    for (uint32_t a = 0; a < k; a++) {
        VPPS_TRY(read_number(r, "the node an arc is from", &from));
        const bool fits = a == 0 ? from == i - 1 : from < i - 1;
        if (!fits) {
            char expected[80];
            snprintf(expected, sizeof expected,
                     a == 0 ? "the character's arc, from node %u" : "a word's arc, from a node below %u", i - 1);
            return vpps_text_fail(&r->text, r->number, expected, NULL);
        }
        VPPS_TRY(read_number(r, "the id of an arc", &id));
        VPPS_TRY(vpps_lattices_add_arc(r->l, i, from, id));
    }
    return vpps_lattices_end_node(r->l, i);
}

/* Returns the line of the latest number. Counting continues where the preceding call ended, so calls must advance through the text. */
static uint32_t line_of_number(number_reader *r) {
    for (; r->counted < r->number; r->counted++) r->line += *r->counted == '\n';
    return r->line;
}

static vpps_status read_lattice(number_reader *r) {
    uint32_t n, tag;
    VPPS_TRY(read_number(r, "the number of nodes", &n));
    if (n == 0) return vpps_text_fail(&r->text, r->number, "at least 1 node", NULL);
    VPPS_TRY(vpps_lattices_begin(r->l, line_of_number(r)));
    for (uint32_t i = 0; i < n; i++) {
        VPPS_TRY(read_number(r, "the tag of a node", &tag));
        VPPS_TRY(vpps_lattices_add_tag(r->l, tag));
    }
    for (uint32_t i = 0; i < n; i++) VPPS_TRY(read_arcs(r, i));
    vpps_lattices_end(r->l);
    return VPPS_OK;
}

static vpps_status read_lattices(number_reader *r) {
    uint32_t n;
    VPPS_TRY(read_number(r, "the number of lattices", &n));
    for (uint32_t i = 0; i < n; i++) VPPS_TRY(read_lattice(r));
    skip_space(r);
    if (r->at == r->text.end) return VPPS_OK;
    char expected[64];
    snprintf(expected, sizeof expected, "the end after %u lattice%s", n, n == 1 ? "" : "s");
    return vpps_text_fail(&r->text, r->at, expected, NULL);
}

vpps_status vpps_lattices_read_text(vpps_lattices *l, const char *name, const char *text, size_t len) {
    VPPS_NEED(l, name);
    if (len) VPPS_NEED(text);
    number_reader r = {.l = l, .text = vpps_text_of(name, text, len, "")};
    r.at = r.counted = r.text.begin;
    r.line = 1;
    const vpps_lattices_mark before = vpps_lattices_extent(l);
    VPPS_TRY(vpps_text_check_encoding(&r.text));
    vpps_status status = read_lattices(&r);
    if (status != VPPS_OK) vpps_lattices_restore(l, before);
    return status;
}

vpps_status vpps_lattices_read_file(vpps_lattices *l, const char *path) {
    VPPS_NEED(l, path);
    VPPS_TEXT_OF_FILE(path, text, len);
    return vpps_lattices_read_text(l, path, text, len);
}

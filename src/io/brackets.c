/* brackets.c - goes through a text of bracketed trees, such as (S (NP ...)), token by token. */
#include "brackets.h"

#include "base/base.h"

vpps_status vpps_brackets_open(vpps_brackets *b, const char *name, const char *text, size_t len) {
    *b = (vpps_brackets){.text = vpps_text_of(name, text, len, "()")};
    return vpps_text_check(&b->text);
}

vpps_status vpps_brackets_fail(const vpps_brackets *b, const char *expected) {
    return vpps_text_fail(&b->text, b->at, expected, NULL);
}

bool vpps_brackets_next_tree(vpps_brackets *b) {
    while (vpps_text_next_line(&b->text, &b->line)) {
        b->at = vpps_skip_blanks(b->line.begin, b->line.end);
        b->in_tree = b->at < b->line.end;
        if (b->in_tree) return true;
    }
    return false;
}

vpps_status vpps_brackets_end_tree(vpps_brackets *b) {
    b->in_tree = false;
    vpps_brackets_skip(b);
    return b->at == b->line.end ? VPPS_OK : vpps_brackets_fail(b, "end of line after the tree");
}

/* Goes to the next line that is not blank if the tree may continue there; else does nothing. */
static void go_on_in_next_line(vpps_brackets *b) {
    vpps_line line = b->line;
    while (vpps_text_next_line(&b->text, &line)) {
        const char *at = vpps_skip_blanks(line.begin, line.end);
        if (at == line.end) continue;
        if (at == line.begin && *at == '(') return;
        b->at = at;
        b->line = line;
        return;
    }
}

void vpps_brackets_skip(vpps_brackets *b) {
    b->at = vpps_skip_blanks(b->at, b->line.end);
    if (b->at == b->line.end && b->in_tree) go_on_in_next_line(b);
}

size_t vpps_brackets_token(vpps_brackets *b, const char **token) {
    const char *p = b->at;
    while (p < b->line.end && !vpps_is_blank(*p) && *p != '(' && *p != ')') p++;
    *token = b->at;
    const size_t len = (size_t)(p - b->at);
    b->at = p;
    vpps_brackets_skip(b);
    return len;
}

vpps_status vpps_brackets_take(vpps_brackets *b, char bracket, const char *expected) {
    if (vpps_brackets_peek(b) != bracket) return vpps_brackets_fail(b, expected);
    b->at++;
    if (bracket == '(') vpps_brackets_skip(b);
    return VPPS_OK;
}

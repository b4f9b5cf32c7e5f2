/* lines.h - the program of an exported network: standard input as lines of words. */
#include <stdio.h>
#include <stdlib.h>

typedef struct text {
    const char *at;
    size_t len;
} text;

static void fail(size_t line, const char *why) {
    fflush(stdout);
    fprintf(stderr, "stdin:%lu: %s\n", (unsigned long)line, why);
    exit(1);
}

/* Memory of n elements, zeros. */
VPPS_UNUSED static void *room(size_t n, size_t size) {
    void *p = calloc(n + 1, size);
    if (!p) fail(0, "out of memory");
    return p;
}

static char *read_input(text *input) {
    size_t n = 0, most = 1 << 16;
    char *all = malloc(most);
    for (size_t got; all && (got = fread(all + n, 1, most - n, stdin)) > 0;) {
        n += got;
        if (n == most) all = realloc(all, most *= 2);
    }
    if (!all || ferror(stdin)) fail(0, "cannot be read");
    if (memchr(all, '\0', n)) fail(0, "expected text, found a NUL byte");
    *input = (text){all, n};
    return all;
}

/* The next line of what is left, without its end; 0: there is none. */
static int next_line(text *left, text *line) {
    const char *end = left->len ? memchr(left->at, '\n', left->len) : NULL;
    if (!left->len) return 0;
    *line = (text){left->at, end ? (size_t)(end - left->at) : left->len};
    left->at += line->len + (end != NULL);
    left->len -= line->len + (end != NULL);
    if (line->len && line->at[line->len - 1] == '\r') line->len--;
    return 1;
}

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }

VPPS_UNUSED static uint32_t known(uint32_t number) { return number == UINT32_MAX ? 0 : number; }

VPPS_UNUSED static size_t greatest(const float *x, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++) best = x[i] > x[best] ? i : best;
    return best;
}

static void put(text t) { fwrite(t.at, 1, t.len, stdout); }

/* An index that is out of range would be this program's fault. */
static void need(int status) {
    if (status != NET_OK) fail(0, "an index is out of range");
}

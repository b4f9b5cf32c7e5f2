/* lines.h - the program of an exported network: standard input as lines, and memory. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct text {
    const char *at;
    size_t len;
} text;

/* What is left of the input, and its latest line. */
typedef struct input {
    char *all; /* to be freed */
    text left, line;
    size_t number;
    const char *end; /* of the line: "\n" or "\r\n" */
    void *waiting;   /* what was read and is answered, by this function, before the program stops; or NULL */
    void (*answer)(void *waiting);
} input;

/* Ends the program: what its latest line should be; NULL: there is no line. */
static void stop(const input *in, const char *expected) {
    if (in && in->answer) in->answer(in->waiting);
    fflush(stdout);
    fprintf(stderr, "stdin:%lu: expected %s\n", (unsigned long)(in ? in->number : 0), expected);
    exit(1);
}

static void *need_memory(void *p) {
    if (!p) stop(NULL, "more memory");
    return p;
}

/* Memory of n elements, zeros. */
VPPS_UNUSED static void *room(size_t n, size_t size) { return need_memory(calloc(n + 1, size)); }

/* An array that grows, with room for n elements: its capacity lies before the first. */
static void *grow(void *array, size_t n, size_t size) {
    size_t *head = array ? (size_t *)array - 2 : NULL;
    if (head && n <= *head) return array;
    head = need_memory(realloc(head, 2 * sizeof *head + 2 * n * size));
    *head = 2 * n;
    return head + 2;
}
static void release(void *array) {
    if (array) free((size_t *)array - 2);
}

static input read_input(void) {
    input in = {NULL, {NULL, 0}, {NULL, 0}, 0, "\n", NULL, NULL};
    size_t n = 0, most = 1 << 16;
    in.all = need_memory(malloc(most));
    for (size_t got; (got = fread(in.all + n, 1, most - n, stdin)) > 0;) {
        n += got;
        if (n == most) in.all = need_memory(realloc(in.all, most *= 2));
    }
    if (ferror(stdin)) stop(NULL, "readable input");
    if (memchr(in.all, '\0', n)) stop(NULL, "text, found a NUL byte");
    in.left = (text){in.all, n};
    return in;
}

static text after(text t, size_t n) { return (text){t.at + n, t.len - n}; }

/* Goes to the next line, without its end and a byte order mark; 0: there is none. */
static int next_line(input *in) {
    const char *end = in->left.len ? memchr(in->left.at, '\n', in->left.len) : NULL;
    text line = {in->left.at, end ? (size_t)(end - in->left.at) : in->left.len};
    if (!in->left.len) return 0;
    in->left = after(in->left, line.len + (end != NULL));
    in->end = end && line.len && end[-1] == '\r' ? "\r\n" : "\n";
    line.len -= in->end[0] == '\r';
    in->line = line.len > 2 && memcmp(line.at, "\xef\xbb\xbf", 3) == 0 ? after(line, 3) : line;
    in->number++;
    if (memchr(in->line.at, '\r', in->line.len)) stop(in, "LF after CR, found CR alone");
    return 1;
}

/* ---- what the parts of vpps need that follow */
typedef int vpps_status;
enum { VPPS_OK, VPPS_MEMORY };
#define vpps_fail(status, ...) (stop(NULL, "more memory"), status)
#define VPPS_FREE(a, b) (free(a), free((void *)(b)))
#define VPPS_RESERVE(array, needed) (((array) = grow((array), (needed), sizeof *(array))) != NULL)
#define VPPS_FREE_ARRAYS(array) release(array)
static int vpps_by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}
static int vpps_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Without the blanks around it. */
static text trim(text t) {
    while (t.len && vpps_is_space(*t.at)) t = after(t, 1);
    while (t.len && vpps_is_space(t.at[t.len - 1])) t.len--;
    return t;
}

VPPS_UNUSED static uint32_t known(uint32_t number) { return number == UINT32_MAX ? 0 : number; }

static size_t likeliest(const float *x) {
    size_t best = 0;
    for (size_t i = 1; i < CLASSES; i++) best = x[i] > x[best] ? i : best;
    return best;
}

static void put(text t) { fwrite(t.at, 1, t.len, stdout); }

/* An index that is out of range would be this program's fault. */
static void need(int status) {
    if (status != NET_OK) stop(NULL, "indices in range");
}

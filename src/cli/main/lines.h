/* lines.h - the base of an exported network's program: its main function, options, reading of lines, and memory. */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct text {
    const char *at;
    size_t len;
} text;

/* An input file in memory, read line by line. */
typedef struct input {
    char *all;       /* the whole file's text, to be freed */
    text left, line; /* the text not read yet; the line just read, without byte order mark */
    text whole;      /* the line just read, with its byte order mark */
    size_t number;
    const char *end; /* end of the line just read: LF or CR LF */
    int raw;         /* lines are parts of records, in which a CR, and a byte order mark after line 1, are text */
} input;

/* The program's options, named as those of vpps predict; NULL: not given. */
static struct { const char *input_format, *text_field, *label_field, *word_column, *tag_column; } asked;

/* The place in the input that error messages name. `waiting`: input that was read but not answered yet. `answer`: function that prints the answers to
 * that input before the program stops. */
static struct {
    const char *name;
    size_t line; /* number of the line that a message is about; 0: the whole file */
    void *waiting;
    void (*answer)(void *waiting);
} place;

/* Prints the answers to all input read so far, then a message to standard error, and ends the program. */
static void stop_with(const char *format, ...) {
    void (*answer)(void *waiting) = place.answer;
    const unsigned long line = place.line;
    va_list arguments;
    place.answer = NULL;
    if (answer) answer(place.waiting);
    fflush(stdout);
    fprintf(stderr, "%s:", place.name ? place.name : "stdin");
    fprintf(stderr, line ? "%lu: " : " ", line);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void stop(const char *expected) { stop_with("expected %s", expected); }

static void *need_memory(void *p) {
    if (!p) stop("more memory");
    return p;
}

/* Allocates n elements, set to 0. */
static void *room(size_t n, size_t size) { return need_memory(calloc(n + 1, size)); }

/* Grows an array to at least n elements. Its capacity is stored before the first element. */
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

/* Reads a whole file, or standard input if `name` is NULL or "-". */
static input read_input(const char *name) {
    input in = {NULL, {NULL, 0}, {NULL, 0}, {NULL, 0}, 0, "\n", 0};
    size_t n = 0, most = 1 << 16;
    FILE *f = stdin;
    place.name = name && strcmp(name, "-") != 0 ? name : NULL;
    place.line = 0;
    if (place.name) f = fopen(name, "rb");
    if (!f) stop("a file that can be opened");
    in.all = need_memory(malloc(most + 1));
    for (size_t got; (got = fread(in.all + n, 1, most - n, f)) > 0;) {
        n += got;
        if (n == most) in.all = need_memory(realloc(in.all, 2 * most + 1)), most *= 2;
    }
    if (ferror(f)) stop("readable input");
    if (f != stdin) fclose(f);
    in.all[n] = '\0';
    in.left = (text){in.all, n};
    if (strncmp(in.all, "\xff\xfe", 2) == 0 || strncmp(in.all, "\xfe\xff", 2) == 0) stop("UTF-8, found UTF-16");
    if (strncmp(in.all, "\x1f\x8b", 2) == 0 || strncmp(in.all, "\x28\xb5\x2f\xfd", 4) == 0)
        stop("text, found a compressed file");
    if (memchr(in.all, '\0', n)) stop("text, found a NUL byte");
    return in;
}

static text after(text t, size_t n) { return (text){t.at + n, t.len - n}; }

/* Returns the text without its byte order mark. */
static text unmarked(text t) { return t.len > 2 && memcmp(t.at, "\xef\xbb\xbf", 3) == 0 ? after(t, 3) : t; }

/* Sets in->line to the next line, without line end and byte order mark. Returns 0 at the input's end. */
static int next_line(input *in) {
    const char *end = in->left.len ? memchr(in->left.at, '\n', in->left.len) : NULL;
    text line = {in->left.at, end ? (size_t)(end - in->left.at) : in->left.len};
    if (!in->left.len) return 0;
    in->left = after(in->left, line.len + (end != NULL));
    in->end = end && line.len && end[-1] == '\r' ? "\r\n" : "\n";
    line.len -= in->end[0] == '\r';
    in->whole = line;
    place.line = ++in->number;
    in->line = in->raw && in->number > 1 ? line : unmarked(line);
    if (!in->raw && memchr(line.at, '\r', line.len)) stop("LF after CR, found CR alone");
    return 1;
}

/* Returns the complete lines in the first 64 KB of the input, by which its format is found. */
static input first_lines(input in) {
    enum { MOST = 1 << 16 };
    const size_t all = in.left.len < MOST ? in.left.len : MOST;
    size_t n = all;
    while (all == MOST && n && in.left.at[n - 1] != '\n') n--;
    in.left.len = n ? n : all;
    in.raw = 1;
    return in;
}

/* ---------------------------------------------------------------- names that the copied sources of vpps use */
typedef int vpps_status;
enum { VPPS_OK, VPPS_MEMORY };
#define vpps_fail(status, ...) (stop_with(__VA_ARGS__), VPPS_OK)
#define VPPS_TRY(status) ((void)(status))
#define VPPS_FREE(a, b) (free(a), free((void *)(b)))
#define VPPS_RESERVE(array, needed) (((array) = grow((array), (needed), sizeof *(array))) != NULL)
#define VPPS_FREE_ARRAYS(array) release(array)
static int vpps_by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}
static int vpps_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Returns the text without white space at its ends. */
static text trim(text t) {
    while (t.len && vpps_is_space(*t.at)) t = after(t, 1);
    while (t.len && vpps_is_space(t.at[t.len - 1])) t.len--;
    return t;
}

/* Returns a zero-terminated copy of the text; the caller frees it. */
static char *copy(text t) { return memcpy(room(t.len, 1), t.at, t.len); }

VPPS_UNUSED static int is(text t, const char *other) {
    return t.len == strlen(other) && memcmp(t.at, other, t.len) == 0;
}

VPPS_UNUSED static uint32_t known(uint32_t number) { return number == UINT32_MAX ? 0 : number; }

static size_t likeliest(const float *x) {
    size_t best = 0;
    for (size_t i = 1; i < CLASSES; i++) best = x[i] > x[best] ? i : best;
    return best;
}

static void put(text t) { fwrite(t.at, 1, t.len, stdout); }

/* Stops the program if a C function of the network (`status`) failed. Only a bug in this program can cause this. */
static void need(int status) {
    if (status != NET_OK) stop("indices in range");
}

/* ---------------------------------------------------------------- the program */
static void answer_input(input *in);

/* Returns the value if argument i is the option "--name=value" or "--name value", else NULL. */
static const char *value_of(char **arguments, int *i, const char *name) {
    const char *at = arguments[*i];
    const size_t len = strlen(name);
    if (strncmp(at, "--", 2) != 0 || strncmp(at + 2, name, len) != 0) return NULL;
    if (at[2 + len] == '=') return at + 3 + len;
    return at[2 + len] ? NULL : arguments[++*i];
}

int main(int n, char **arguments) {
    static const char *const names[] = {"input-format", "text-field", "label-field", "word-column", "tag-column"};
    const char **const values[] = {&asked.input_format, &asked.text_field, &asked.label_field, &asked.word_column,
                                   &asked.tag_column};
    int files = 0, i = 1;
    for (; i < n && arguments[i]; i++) {
        const char *value = NULL;
        for (int k = 0; k < OPTIONS && !value && i < n; k++)
            if ((value = value_of(arguments, &i, names[k]))) *values[k] = value;
        if (value) continue;
        if (i >= n || (arguments[i][0] == '-' && arguments[i][1])) {
            fprintf(stderr, "usage: %s", arguments[0]);
            for (int k = 0; k < OPTIONS; k++) fprintf(stderr, " [--%s=VALUE]", names[k]);
            fputs(" [FILE...]\n", stderr);
            return 2;
        }
        arguments[files++] = arguments[i];
    }
    if (!files) arguments[files++] = NULL;
    for (i = 0; i < files; i++) {
        input in = read_input(arguments[i]);
        answer_input(&in);
        free(in.all);
    }
    place.line = 0;
    place.answer = NULL;
    if (fflush(stdout) != 0 || ferror(stdout)) stop("to write the answers");
    return 0;
}

#include "base.h"
#undef vpps_fail

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>

static _Thread_local char message[VPPS_MESSAGE_BYTES];

static const char *const status_names[] = {
#define X(id, text) #id,
    VPPS_STATUS_TABLE(X)
#undef X
};

const char *vpps_status_name(vpps_status status) {
    return (size_t)status < VPPS_COUNT(status_names) ? status_names[status] : "UNKNOWN";
}

const char *vpps_error_message(void) { return message; }

const char *vpps_version(void) { return VPPS_VERSION; }

/* Replaces control characters by '?', since names from files may contain commands to a terminal. */
static void hide_commands(char *text) {
    for (unsigned char before = 0, c; (c = (unsigned char)*text); text++, before = c) {
        /* true: `before` and c are the two UTF-8 bytes of a control character from U+0080 to U+009F */
        const bool high = before == 0xc2 && c >= 0x80 && c < 0xa0;
        if (high) text[-1] = '?';
        if (high || (c < ' ' && c != '\n' && c != '\t') || c == 0x7f) *text = '?';
    }
}

vpps_status vpps_fail(vpps_status status, const char *format, ...) {
    va_list arguments;
    char text[sizeof message];
    text[0] = '\0';
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    vpps_drop_cut_character(text);
    hide_commands(text);
    memcpy(message, text, strlen(text) + 1);
    return status;
}

void vpps_name_null(const char *function, const char *names, size_t i) {
    for (; i > 0; i--) names = strchr(names, ' ') + 1;
    vpps_fail(VPPS_ARGUMENT, "%s: %.*s is NULL", function, (int)strcspn(names, ","), names);
}

void vpps_restore_message(const char *text) {
    if (text != message) snprintf(message, sizeof message, "%s", text);
    vpps_drop_cut_character(message);
    hide_commands(message);
}

int vpps_by_number(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int vpps_by_word(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

int vpps_by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Bytes in front of a growable array's first element, for its capacity; they keep malloc's alignment. */
enum { ARRAY_HEAD = 2 * sizeof(size_t) };

static void *head_of(void *array) { return array ? (char *)array - ARRAY_HEAD : NULL; }

bool vpps_grow(void *array, size_t needed, size_t element_bytes) {
    void *old;
    memcpy(&old, array, sizeof old);
    size_t wanted = old ? vpps_capacity(old) : 16;
    while (wanted < needed) wanted += wanted / 2 + 1;
    if (wanted > (SIZE_MAX - ARRAY_HEAD) / element_bytes) return false;
    size_t *head = realloc(head_of(old), ARRAY_HEAD + wanted * element_bytes);
    if (!head) return false;
    head[0] = wanted;
    head[1] = 0; /* if someone passes the array to free(), libc finds size 0 here and aborts */
    void *grown = head + 2;
    memcpy(array, &grown, sizeof grown);
    return true;
}

void vpps_free_arrays(void *const *arrays, size_t n) {
    for (size_t i = 0; i < n; i++) free(head_of(arrays[i]));
}

void vpps_free_all(void *const *pointers, size_t n) {
    for (size_t i = 0; i < n; i++) free(pointers[i]);
}

void *vpps_scratch(size_t bytes) { return calloc(1, bytes); }

void vpps_free_at(void *pointer) {
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    free(memory);
}

vpps_status vpps_text_end(FILE *f, vpps_status status, char **text) {
    const bool cut = !f || ferror(f), closed = f && fclose(f) == 0;
    if (status == VPPS_OK && (cut || !closed)) status = vpps_fail(VPPS_MEMORY, "no memory for a text");
    if (status == VPPS_OK) return status;
    free(*text);
    *text = NULL;
    return status;
}

void vpps_write_comment(FILE *out, const char *name) {
    for (const char *c = name; *c; c++) {
        const bool ends = (*c == '*' && (c[1] == '/' || (c > name && c[-1] == '/'))) || (*c == '?' && c[1] == '?');
        fputc(ends ? '_' : *c, out);
    }
}

void vpps_drop_cut_character(char *text) {
    const size_t n = strlen(text);
    size_t at = n;
    while (at && n - at < 3 && ((unsigned char)text[at - 1] & 0xc0) == 0x80) at--;
    if (!at) return;
    const unsigned char lead = (unsigned char)text[at - 1];
    const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (n - at + 1 < length) text[at - 1] = '\0';
}

static uint32_t process_number;

static void count_process(void) { process_number++; }
static void watch_forks(void) { pthread_atfork(NULL, NULL, count_process); }

uint32_t vpps_process_number(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return process_number;
}

void vpps_proc_value(const char *path, const char *key, char *value, size_t n) {
    snprintf(value, n, "unknown");
    FILE *f = fopen(path, "r");
    if (!f) return;
    char line[512];
    while (fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0) continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(value, n, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    fclose(f);
}

bool vpps_read_number(const char *text, uint64_t most, uint64_t *out) {
    if (!*text || text[strspn(text, "0123456789")]) return false;
    errno = 0;
    const uint64_t value = strtoull(text, NULL, 10);
    if (errno || value > most) return false;
    *out = value;
    return true;
}

/* Largest size of a public struct in any version; a greater `size` means that the caller's memory was never set. */
enum { MOST_BYTES = 4096 };

static vpps_status check_size(size_t given, size_t least, const char *name) {
    if (given >= least && given <= MOST_BYTES && given % sizeof(size_t) == 0) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "%s: its size is %zu; expected sizeof(%s), which is at least %zu and at most %d",
                     name, given, name, least, MOST_BYTES);
}

static size_t size_of(const void *x) {
    size_t size;
    memcpy(&size, x, sizeof size);
    return size;
}

vpps_status vpps_take_struct(void *own, size_t own_bytes, size_t least, const void *given, const char *name) {
    const size_t size = size_of(given);
    const unsigned char *bytes = given;
    VPPS_TRY(check_size(size, least, name));
    for (size_t i = own_bytes; i < size; i++)
        if (bytes[i])
            return vpps_fail(VPPS_ARGUMENT, "%s: byte %zu is set, which this version, %s, does not know", name, i,
                             VPPS_VERSION);
    memcpy(own, given, size < own_bytes ? size : own_bytes);
    memcpy(own, &own_bytes, sizeof own_bytes);
    return VPPS_OK;
}

vpps_status vpps_give_struct(void *to, const void *own, size_t own_bytes, size_t least, const char *name) {
    const size_t size = size_of(to);
    VPPS_TRY(check_size(size, least, name));
    const size_t common = size < own_bytes ? size : own_bytes;
    memcpy((char *)to + sizeof size, (const char *)own + sizeof size, common - sizeof size);
    memset((char *)to + common, 0, size - common);
    return VPPS_OK;
}

/* cache_entry.c - writes and parses the files of the kernel cache. */
#include "codegen/cache_entry.h"
#include "base/hash.h"

#include <inttypes.h>

enum { KIND = 1, DESCRIPTION, TOOLCHAIN, KEY, SOURCE_BYTES, PAYLOAD_BYTES, CHECKSUM, N_LINES };

static const char *const words[N_LINES] = {"vpps-cache ", "kind ",         "description ",   "toolchain ",
                                           "key ",        "source-bytes ", "payload-bytes ", "checksum "};
#define VERSION "2"

static vpps_status no_memory(void) { return vpps_fail(VPPS_MEMORY, "no memory for an entry of the kernel cache"); }

static void write_digits(const vpps_hash *h, char digits[VPPS_ENTRY_DIGITS + 1]) {
    snprintf(digits, VPPS_ENTRY_DIGITS + 1, "%016" PRIx64 "%016" PRIx64, vpps_hash_digest(h, 0),
             vpps_hash_digest(h, 1));
}

/* Adds one member of a key to the hash, the member's length first, so that different keys never hash the same sequence of bytes. */
static void hash_member(vpps_hash *h, const void *bytes, size_t n) {
    const uint64_t length = n;
    vpps_hash_add(h, &length, sizeof length);
    vpps_hash_add(h, bytes, n);
}

void vpps_entry_hash_key(const vpps_cache_key *key, char digits[VPPS_ENTRY_DIGITS + 1]) {
    vpps_hash h;
    vpps_hash_begin(&h, 0);
    hash_member(&h, key->kind, strlen(key->kind));
    hash_member(&h, key->description, strlen(key->description));
    hash_member(&h, key->toolchain, strlen(key->toolchain));
    hash_member(&h, key->source, key->source_bytes);
    write_digits(&h, digits);
}

static void hash_content(const void *lines, size_t lines_bytes, const void *payload, size_t payload_bytes,
                         char digits[VPPS_ENTRY_DIGITS + 1]) {
    vpps_hash h;
    vpps_hash_begin(&h, 0);
    vpps_hash_add(&h, lines, lines_bytes);
    vpps_hash_add(&h, payload, payload_bytes);
    write_digits(&h, digits);
}

static void write_line(FILE *f, int line, const char *value) {
    fputs(words[line], f);
    for (const char *c = value; *c; c++) putc((unsigned char)*c < ' ' ? ' ' : *c, f);
    putc('\n', f);
}

static void write_number(FILE *f, int line, uint64_t value) { fprintf(f, "%s%" PRIu64 "\n", words[line], value); }

vpps_status vpps_entry_encode(const vpps_cache_key *key, const char *digits, const void *payload, size_t payload_bytes,
                              char **header, size_t *header_bytes) {
    char checksum[VPPS_ENTRY_DIGITS + 1];
    *header = NULL;
    FILE *f = open_memstream(header, header_bytes);
    if (!f) return no_memory();
    write_line(f, 0, VERSION);
    write_line(f, KIND, key->kind);
    write_line(f, DESCRIPTION, key->description);
    write_line(f, TOOLCHAIN, key->toolchain);
    write_line(f, KEY, digits);
    write_number(f, SOURCE_BYTES, key->source_bytes);
    write_number(f, PAYLOAD_BYTES, payload_bytes);
    vpps_status status = fflush(f) == 0 ? VPPS_OK : no_memory();
    if (status == VPPS_OK) {
        hash_content(*header, *header_bytes, payload, payload_bytes, checksum);
        write_line(f, CHECKSUM, checksum);
    }
    return vpps_text_end(f, status, header);
}

/* Finds each header line's value and its length. Returns the payload after the last line, or NULL if the lines are not as expected. */
static char *split_lines(char *file, size_t n, char *values[N_LINES], size_t lengths[N_LINES]) {
    char *at = file;
    const char *end = file + n;
    for (int i = 0; i < N_LINES; i++) {
        const size_t word = strlen(words[i]);
        char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end || (size_t)(line_end - at) < word || memcmp(at, words[i], word) != 0) return NULL;
        values[i] = at + word;
        lengths[i] = (size_t)(line_end - values[i]);
        at = line_end + 1;
    }
    return at;
}

bool vpps_entry_decode(char *file, size_t n, vpps_entry *out) {
    char *values[N_LINES], checksum[VPPS_ENTRY_DIGITS + 1];
    size_t lengths[N_LINES];
    const char *payload = split_lines(file, n, values, lengths);
    if (!payload) return false;
    *out = (vpps_entry){.payload = payload, .payload_bytes = n - (size_t)(payload - file)};
    if (lengths[0] != strlen(VERSION) || memcmp(values[0], VERSION, lengths[0]) != 0) return false;
    const size_t lines = (size_t)(values[CHECKSUM] - file) - strlen(words[CHECKSUM]);
    hash_content(file, lines, payload, out->payload_bytes, checksum);
    if (lengths[CHECKSUM] != VPPS_ENTRY_DIGITS || memcmp(values[CHECKSUM], checksum, VPPS_ENTRY_DIGITS) != 0)
        return false;
    for (int i = 0; i < N_LINES; i++) values[i][lengths[i]] = '\0';
    out->kind = values[KIND];
    out->description = values[DESCRIPTION];
    out->toolchain = values[TOOLCHAIN];
    out->key = values[KEY];
    return true;
}

static bool begins_with_key(const char *name) { return strspn(name, "0123456789abcdef") == VPPS_ENTRY_DIGITS; }

bool vpps_entry_is_name(const char *name) {
    return begins_with_key(name) && strcmp(name + VPPS_ENTRY_DIGITS, ".vpps") == 0;
}

bool vpps_entry_is_temporary_name(const char *name) {
    return begins_with_key(name) && strncmp(name + VPPS_ENTRY_DIGITS, ".vpps.tmp-", 10) == 0;
}

/* carried_states.c - carries recurrent states from one piece of a text to the next, and to checkpoints. */
#include "cli/session/carried_states.h"
#include "base/base.h"

#include <inttypes.h>

/* The first n % n_streams streams (parts of the text) have one piece more than the others. */
void carry_order(const uint32_t *examples, uint32_t n, uint32_t n_streams, uint32_t *order) {
    const uint32_t length = n / n_streams, longer = n % n_streams;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t stream = i % n_streams, piece = i / n_streams;
        order[i] = examples[stream * length + vpps_min_u32(stream, longer) + piece];
    }
}

vpps_status carry_open(carry *c, uint32_t n_streams) {
    *c = (carry){.n_streams = n_streams};
    c->streams = calloc((size_t)n_streams + 1, sizeof *c->streams);
    return c->streams ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for the states of %u streams", n_streams);
}

void carry_free(carry *c, vpps_handle *h) {
    for (uint32_t s = 0; c->streams && s < c->n_streams; s++) {
        for (uint32_t k = 0; k < NET_STATES; k++) {
            vpps_release(h, c->streams[s].states[k]);
            vpps_release(h, c->streams[s].before[k]);
        }
    }
    free(c->streams);
    *c = (carry){0};
}

void carry_take(const carry *c, vpps_handle *h, vpps_graph *g, uint32_t i, net_decoding *d) {
    const carry_stream *s = &c->streams[c->first + i];
    *d = (net_decoding){0};
    if (!s->states[0]) return;
    d->n_states = c->n_states;
    for (uint32_t k = 0; k < c->n_states; k++) d->states[k] = vpps_kept(g, h, s->states[k]);
}

vpps_status carry_keep(carry *c, vpps_handle *h, vpps_graph *g, uint32_t i, const net_decoding *d) {
    carry_stream *s = &c->streams[c->first + i];
    c->n_states = d->n_states;
    for (uint32_t k = 0; k < d->n_states; k++) {
        /* releases a value that is no longer needed: the graph that read it has run */
        VPPS_TRY(vpps_release(h, s->before[k]));
        s->before[k] = s->states[k];
        VPPS_TRY(vpps_keep(h, g, d->states[k], &s->states[k]));
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- as text
 *
 * "STREAMS STATES", then per stream and state "ROWS:" and the bits of each element as eight digits, or "-" for a
 * stream before its first piece. */

static vpps_status write_stream(const carry *c, vpps_handle *h, const carry_stream *s, FILE *f) {
    if (!s->states[0]) return fputs(" -", f), VPPS_OK;
    for (uint32_t k = 0; k < c->n_states; k++) {
        uint32_t rows, cols;
        VPPS_TRY(vpps_kept_shape(h, s->states[k], &rows, &cols));
        VPPS_FREED float *values = vpps_scratch(((size_t)rows * cols + 1) * sizeof *values);
        if (!values) return vpps_fail(VPPS_MEMORY, "no memory for a state of %u numbers", rows);
        VPPS_TRY(vpps_read_kept(h, s->states[k], values));
        fprintf(f, " %" PRIu32 ":", rows);
        for (uint32_t i = 0; i < rows; i++) fprintf(f, "%08" PRIx32, vpps_float_bits(values[i]));
    }
    return VPPS_OK;
}

vpps_status carry_to_text(const carry *c, vpps_handle *h, char **out) {
    size_t bytes;
    *out = NULL;
    FILE *f = open_memstream(out, &bytes);
    vpps_status status = VPPS_OK;
    if (f) fprintf(f, "%" PRIu32 " %" PRIu32, c->n_streams, c->n_states);
    for (uint32_t s = 0; f && s < c->n_streams && status == VPPS_OK; s++)
        status = write_stream(c, h, &c->streams[s], f);
    return vpps_text_end(f, status, out);
}

static vpps_status fail_text(const char *path) {
    return vpps_fail(VPPS_FORMAT, "%s: \"train.carry\" are not the states of as many streams as a batch has examples",
                     path);
}

/* Reads a number and the character `end` after it, and moves *at past both. */
static bool take_number(const char **at, char end, uint32_t *out) {
    char *after;
    const unsigned long value = strtoul(*at, &after, 10);
    if (after == *at || *after != end || value > 1u << 22) return false;
    *out = (uint32_t)value;
    *at = after + 1;
    return true;
}

static vpps_status read_state(vpps_handle *h, const char *path, const char **at, vpps_value *out) {
    uint32_t rows;
    if (!take_number(at, ':', &rows) || !rows) return fail_text(path);
    VPPS_FREED float *values = vpps_scratch(rows * sizeof *values);
    if (!values) return vpps_fail(VPPS_MEMORY, "no memory for a state of %u numbers", rows);
    for (uint32_t i = 0; i < rows; i++, *at += 8) {
        uint32_t bits;
        int length = 0;
        if (sscanf(*at, "%8" SCNx32 "%n", &bits, &length) != 1 || length != 8) return fail_text(path);
        values[i] = vpps_bits_float(bits);
    }
    if (**at && **at != ' ') return fail_text(path);
    *at += **at == ' ';
    return vpps_keep_data(h, rows, 1, values, out);
}

vpps_status carry_from_text(carry *c, vpps_handle *h, const char *path, const char *text) {
    const char *at = text;
    uint32_t streams;
    if (!take_number(&at, ' ', &streams) || streams != c->n_streams || !take_number(&at, ' ', &c->n_states) ||
        c->n_states > NET_STATES)
        return fail_text(path);
    for (uint32_t s = 0; s < streams; s++) {
        if (at[0] == '-') {
            at += at[1] == ' ' ? 2 : 1;
            continue;
        }
        for (uint32_t k = 0; k < c->n_states; k++) VPPS_TRY(read_state(h, path, &at, &c->streams[s].states[k]));
    }
    return *at ? fail_text(path) : VPPS_OK;
}

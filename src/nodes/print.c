/* print.c - scripts as text: one instruction a line, with its address; offsets in the pool as @hex. */
#include "nodes/script.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>

/* ---------------------------------------------------------------- text */

typedef struct vpps_text {
    char *at;
    size_t room; /* the terminating zero included */
} vpps_text;

static void put(vpps_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(vpps_text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(t->at, t->room, format, arguments);
    va_end(arguments);
    if (n < 0) return;
    size_t used = (size_t)n < t->room ? (size_t)n : t->room - 1;
    t->at += used;
    t->room -= used;
}

static void put_parameter(vpps_text *t, const vpps_graph *g, uint32_t param) {
    if (param == VPPS_NO_PARAM)
        put(t, " -");
    else if (g && param < g->model->n_params)
        put(t, " %s", g->model->params[param].name);
    else
        put(t, " parameter %u", param);
}

static float as_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* ---------------------------------------------------------------- an instruction */

enum { SHOWN_OPERANDS = 8 }; /* of a list; the rest is counted */

static void put_list(vpps_text *t, const uint32_t *w) {
    put(t, " [");
    for (uint32_t i = 0; i < w[0] && i < SHOWN_OPERANDS; i++) put(t, i ? " @%x" : "@%x", w[1 + i]);
    if (w[0] > SHOWN_OPERANDS) put(t, " and %u more", w[0] - SHOWN_OPERANDS);
    put(t, "]");
}

static void put_plain(vpps_text *t, const uint32_t *at, const vpps_instruction_row *row) {
    const uint32_t *w = at + 1;
    if (at[0] & VPPS_WORD_SPLIT && row->form == VPPS_FORM_EW) put(t, " x %u", *w++);
    put(t, " %s @%x", at[0] & VPPS_WORD_ACC ? "+=" : "=", *w++);
    for (const char *kind = row->operands; *kind; kind++) {
        switch (*kind) {
        case 'f': put(t, " %g", (double)as_float(*w++)); break;
        case 'u':
        case 'e': put(t, " %u", *w++); break;
        case 's': put(t, " scalar @%x", *w++); break;
        case '*':
            put_list(t, w);
            w += 1 + w[0];
            break;
        default: put(t, " @%x", *w++); break;
        }
    }
    if (row->form == VPPS_FORM_MATMUL) put(t, " r %u k %u c %u", w[0], w[1], w[2]);
}

static void put_special(vpps_text *t, const uint32_t *at, const vpps_graph *g) {
    switch (vpps_word_opcode(at[0])) {
    case VPPS_I_AFFINE:
    case VPPS_I_AFFINE_T:
    case VPPS_I_AFFINE_P:
    case VPPS_I_REDUCE_P:
    case VPPS_I_OUTER: put(t, " vectors from %u, bundle %u", at[1], at[2]); break;
    case VPPS_I_TRANSPOSE:
    case VPPS_I_NORM:
    case VPPS_I_UPDATE: put_parameter(t, g, at[1]); break;
    case VPPS_I_NORM_ROWS:
    case VPPS_I_UPDATE_ROWS:
        put_parameter(t, g, at[1]);
        put(t, " entries at %u", at[2]);
        break;
    case VPPS_I_LOAD: put(t, " @%x from %u", at[1], at[2]); break;
    case VPPS_I_CALL: put(t, " %u", at[1]); break;
    case VPPS_I_SIGNAL: put(t, " barrier %u", at[1]); break;
    case VPPS_I_WAIT: put(t, " barrier %u for %u", at[1], at[2]); break;
    default: break;
    }
}

void vpps_format_instruction(const uint32_t *at, const uint32_t *end, const vpps_graph *g, char *text, size_t size) {
    vpps_text t = {text, size};
    uint32_t opcode = at < end ? vpps_word_opcode(at[0]) : VPPS_I_COUNT;
    text[0] = 0;
    if (opcode >= VPPS_I_COUNT) {
        put(&t, "no instruction");
        return;
    }
    const vpps_instruction_row *row = &vpps_instructions[opcode];
    for (const char *c = row->name; *c; c++) put(&t, "%c", tolower((unsigned char)*c));
    if (!vpps_instruction_words(at, end)) {
        put(&t, ", cut off");
        return;
    }
    if (row->form != VPPS_FORM_CONTROL || opcode == VPPS_I_LOAD || opcode == VPPS_I_CALL) {
        put(&t, " %u", vpps_word_length(at[0]));
    }
    if (row->form == VPPS_FORM_SHARED || row->form == VPPS_FORM_CONTROL)
        put_special(&t, at, g);
    else
        put_plain(&t, at, row);
}

/* ---------------------------------------------------------------- bundles */

typedef struct vpps_listing {
    const uint32_t *script;
    size_t words;
    const vpps_graph *g;
    FILE *file;
    uint32_t *seen; /* addresses of segments and bundles printed so far */
    size_t n_seen, seen_capacity;
    bool malformed, memory;
} vpps_listing;

/* Was this address printed before? It counts as printed from now on. */
static bool seen_before(vpps_listing *l, uint32_t address) {
    for (size_t i = 0; i < l->n_seen; i++) {
        if (l->seen[i] == address) return true;
    }
    if (VPPS_RESERVE(l->seen, l->seen_capacity, l->n_seen + 1))
        l->seen[l->n_seen++] = address;
    else
        l->memory = true;
    return l->memory;
}

static bool has_words(vpps_listing *l, uint64_t address, uint64_t n) {
    if (address + n <= l->words) return true;
    l->malformed = true;
    return false;
}

static void print_list(vpps_listing *l, uint32_t number, const uint32_t *w) {
    uint32_t members = w[0] && w[0] <= l->words ? l->script[w[0] - 1] : 0;
    fprintf(l->file, "               list %u: %u vectors of %u, values [", number, members, w[3]);
    for (uint32_t i = 0; i < members && i < SHOWN_OPERANDS && has_words(l, (uint64_t)w[0] + i, 1); i++) {
        fprintf(l->file, i ? " @%x" : "@%x", l->script[w[0] + i]);
    }
    fprintf(l->file, members > SHOWN_OPERANDS ? " ...]" : "]");
    if (w[1]) fprintf(l->file, ", gradients at %u", w[1]);
    if (w[2]) fprintf(l->file, ", partial sums @%x", w[2]);
    fprintf(l->file, "\n");
}

static void print_bundle(vpps_listing *l, uint32_t address) {
    char text[512];
    if (!has_words(l, address, 2)) return;
    uint32_t n_lists = l->script[address], n_outputs = l->script[address + 1];
    uint64_t at = (uint64_t)address + 2;
    for (uint32_t i = 0; i < n_lists && has_words(l, at, 4); i++, at += 4) print_list(l, i, l->script + at);
    if (l->malformed) return;
    for (uint32_t o = 0; o < n_outputs && has_words(l, at, 5); o++) {
        const uint32_t *w = l->script + at;
        vpps_text t = {text, sizeof text};
        at += 5;
        if (!has_words(l, at, 2 * (uint64_t)w[4])) return;
        for (uint32_t q = 0; q < w[4]; q++) {
            if (q) put(&t, " +");
            put_parameter(&t, l->g, w[5 + 2 * q]);
            put(&t, " * list %u", w[5 + 2 * q + 1]);
        }
        if (w[2] != VPPS_NO_PARAM) {
            put(&t, " +");
            put_parameter(&t, l->g, w[2]);
        }
        fprintf(l->file, "               @%x, %u rows =%s", w[0], w[3], text);
        if (w[1] != VPPS_NO_OFFSET) fprintf(l->file, "; gradients @%x", w[1]);
        fprintf(l->file, "\n");
        at += 2 * (uint64_t)w[4];
    }
}

/* ---------------------------------------------------------------- the listing */

static bool uses_bundle(uint32_t opcode) {
    return opcode == VPPS_I_AFFINE || opcode == VPPS_I_AFFINE_T || opcode == VPPS_I_AFFINE_P ||
           opcode == VPPS_I_REDUCE_P || opcode == VPPS_I_OUTER;
}

static void print_instructions(vpps_listing *l, uint64_t from, uint64_t to, bool in_segment) {
    char text[512];
    if (to > l->words || from > to) {
        l->malformed = true;
        return;
    }
    const uint32_t *at = l->script + from, *end = l->script + to;
    while (at < end) {
        const uint32_t n = vpps_instruction_words(at, end);
        const uint32_t opcode = vpps_word_opcode(at[0]);
        vpps_format_instruction(at, end, l->g, text, sizeof text);
        fprintf(l->file, "%s%8u  %s\n", in_segment ? "    " : "", (uint32_t)(at - l->script), text);
        if (!n) {
            l->malformed = true;
            return;
        }
        if (uses_bundle(opcode) && !seen_before(l, at[2])) print_bundle(l, at[2]);
        if (opcode == VPPS_I_CALL && !in_segment && !seen_before(l, at[1])) {
            print_instructions(l, at[1], (uint64_t)at[1] + vpps_word_length(at[0]), true);
        }
        if (opcode == VPPS_I_END) return;
        at += n;
    }
}

static void print_header(const vpps_listing *l, const vpps_script_header *h) {
    fprintf(l->file, "script of %u words for %u VPs, %u barriers, pool of %u words\n", h->words, h->n_vps,
            h->n_barriers, h->pool_words);
    if (h->loss == VPPS_NO_OFFSET) {
        fprintf(l->file, "inference\n");
    } else {
        fprintf(l->file, "training, loss @%x, dropout key %08x%08x\n", h->loss, h->dropout_key[1], h->dropout_key[0]);
    }
    if (!h->update) return;
    static const char *const names[] = {
#define X(id, name, states) name,
        VPPS_OPTIMIZER_TABLE(X)
#undef X
    };
    fprintf(l->file, "update %u by %s, lr %g, momentum %g, betas %g %g, epsilon %g, weight decay %g, clip %g%s\n",
            h->step, h->update <= VPPS_COUNT(names) ? names[h->update - 1] : "an unknown optimiser", (double)h->lr,
            (double)h->momentum, (double)h->beta1, (double)h->beta2, (double)h->epsilon, (double)h->weight_decay,
            (double)h->clip, h->guard ? ", unless the loss or the norm is not finite" : "");
}

vpps_status vpps_print_script(const uint32_t *script, size_t words, const vpps_graph *g, FILE *file) {
    vpps_listing l = {.script = script, .words = words, .g = g, .file = file};
    vpps_script_header header;
    if (words < VPPS_HEADER_WORDS || script[0] != VPPS_SCRIPT_MAGIC) {
        return vpps_fail(VPPS_SCRIPT, "print: %zu words that do not begin like a script", words);
    }
    memcpy(&header, script, sizeof header);
    print_header(&l, &header);
    const uint32_t *starts = vpps_script_starts(script);
    for (uint32_t vp = 0; vp < header.n_vps && !l.malformed && !l.memory; vp++) {
        if (!has_words(&l, (uint64_t)VPPS_HEADER_WORDS + vp + 2, 0)) break;
        fprintf(file, "VP %u, %lld words\n", vp, (long long)starts[vp + 1] - starts[vp]);
        print_instructions(&l, starts[vp], starts[vp + 1], false);
    }
    free(l.seen);
    if (ferror(file)) return vpps_fail(VPPS_IO, "print: the script could not be written: %s", strerror(errno));
    if (l.memory) return vpps_fail(VPPS_MEMORY, "print: out of memory");
    return l.malformed ? vpps_fail(VPPS_SCRIPT, "print: the script is malformed; it is printed as far as it goes")
                       : VPPS_OK;
}

/* editor.c - finds the instructions of a script, and makes room or takes it away. */
#include "mutate.h"

/* ---------------------------------------------------------------- finding instructions */

static bool add_sites(editor *e, uint32_t from, uint32_t to, site like) {
    for (uint32_t at = from; at < to;) {
        uint32_t n = vpps_instruction_words(e->script + at, e->script + to), op = vpps_word_opcode(e->script[at]);
        if (!n || !VPPS_RESERVE(e->sites, e->sites_capacity, e->n_sites + 1)) return false;
        like.at = at;
        like.words = n;
        e->sites[e->n_sites++] = like;
        if (op == VPPS_I_CALL) {
            uint32_t segment = e->script[at + 1], length = vpps_word_length(e->script[at]);
            bool seen = false;
            for (size_t i = 0; i < e->n_sites; i++)
                seen |= e->sites[i].vp == UINT32_MAX && e->sites[i].segment == segment;
            if (!seen && !add_sites(e, segment, segment + length,
                                    (site){.vp = UINT32_MAX, .segment = segment, .segment_words = length})) {
                return false;
            }
        }
        if (op == VPPS_I_END) return true;
        at += n;
    }
    return true;
}

bool editor_open(editor *e, const subject *of, uint64_t seed) {
    *e = (editor){.of = of, .random = seed};
    if (!VPPS_RESERVE(e->script, e->capacity, of->words * 2 + 64)) return false;
    memcpy(e->script, of->script, of->words * sizeof *e->script);
    e->words = of->words;
    for (uint32_t vp = 0; vp < of->plan->n_vps; vp++) {
        if (!add_sites(e, editor_starts(e)[vp], editor_starts(e)[vp + 1], (site){.vp = vp})) return false;
    }
    return true;
}

void editor_close(editor *e) {
    free(e->script);
    free(e->sites);
}

/* ---------------------------------------------------------------- changing the number of words */

static bool append(editor *e, const uint32_t *words, size_t n) {
    if (!VPPS_RESERVE(e->script, e->capacity, e->words + n)) return false;
    if (n) memcpy(e->script + e->words, words, n * sizeof *words);
    e->words += n;
    return true;
}

/* Appends [from, to) of the script, with `n` words instead of the `removed` ones at `at` when that lies inside. */
static bool append_spliced(editor *e, uint32_t from, uint32_t to, uint32_t at, uint32_t removed, const uint32_t *words,
                           uint32_t n) {
    if (!VPPS_RESERVE(e->script, e->capacity, e->words + (to - from) + n)) return false;
    if (at < from || at >= to) return append(e, e->script + from, to - from);
    return append(e, e->script + from, at - from) && append(e, words, n) &&
           append(e, e->script + at + removed, to - at - removed);
}

bool editor_splice(editor *e, const site *s, uint32_t at, uint32_t removed, const uint32_t *words, uint32_t n) {
    uint32_t end = (uint32_t)e->words;
    if (s->vp == UINT32_MAX) {
        if (!append_spliced(e, s->segment, s->segment + s->segment_words, at, removed, words, n)) return false;
        for (size_t i = 0; i < e->n_sites; i++) {
            uint32_t *call = e->script + e->sites[i].at;
            if (vpps_word_opcode(*call) != VPPS_I_CALL || call[1] != s->segment) continue;
            call[0] = vpps_word(VPPS_I_CALL, 0, (uint32_t)e->words - end);
            call[1] = end;
        }
    } else {
        for (uint32_t vp = 0; vp < e->of->plan->n_vps; vp++) {
            uint32_t from = editor_starts(e)[vp], to = editor_starts(e)[vp + 1], moved = (uint32_t)e->words;
            if (!append_spliced(e, from, to, at, removed, words, n)) return false;
            editor_starts(e)[vp] = moved; /* starts[vp + 1] is still the old one */
        }
        editor_starts(e)[e->of->plan->n_vps] = (uint32_t)e->words;
    }
    editor_header(e)->words = (uint32_t)e->words;
    return true;
}

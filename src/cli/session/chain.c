/* chain.c - rules of tag schemes, Viterbi decoding, and marginals of a chain of tags. */
#include "cli/session/chain.h"
#include "base/base.h"
#include "io/chunks.h"

#include <math.h>

bool chain_allows(chain_scheme scheme, const char *before, const char *now) {
    vpps_chunk_tag a, b;
    vpps_chunk_tag_read(before, &a);
    vpps_chunk_tag_read(now, &b);
    const bool within = b.part == 'I' || b.part == 'E'; /* tag `now` is I or E: its word is in a chunk, not first */
    const bool open = a.part == 'B' || a.part == 'I';   /* tag `before` is B or I: its chunk may go on */
    const bool goes_on = open && within && strcmp(a.type, b.type) == 0;
    switch (scheme) {
    /* IOB1: B only separates two chunks of one type */
    case CHAIN_IOB1: return b.part != 'B' || (open && strcmp(a.type, b.type) == 0);
    case CHAIN_IOB2: return !within || goes_on;
    case CHAIN_IOBES: return within || open ? goes_on : true;
    default: return true;
    }
}

/* Marks in `reached` the tags that a chain of tags can reach: it begins with a tag where ends[] > -inf, and goes on from tag b to tag a
 * where next[a * of_a + b * of_b] > -inf. */
static void spread(const tag_chain *ch, const float *ends, size_t of_a, size_t of_b, bool *reached) {
    const uint32_t n = ch->classes;
    for (uint32_t a = 0; a < n; a++) reached[a] = ends[a] > -INFINITY;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < n && !reached[a]; b++)
                more |= reached[a] = reached[b] && ch->next[a * of_a + b * of_b] > -INFINITY;
    }
}

/* Checks that the scheme's rules allow every tag in some sentence; a tag that they allow nowhere belongs to another scheme. */
static vpps_status check_tags(const tag_chain *ch, chain_scheme scheme, const vpps_vocab *tags) {
    const uint32_t n = ch->classes;
    const char *other = NULL;
    bool *from_begin = calloc(2 * (size_t)n + 1, sizeof *from_begin);
    if (!from_begin) return vpps_fail(VPPS_MEMORY, "no memory for %u tags", n);
    bool *const to_end = from_begin + n;
    spread(ch, ch->begin, n, 1, from_begin);
    spread(ch, ch->end, 1, n, to_end);
    for (uint32_t i = 0; i < n && !other; i++) {
        vpps_chunk_tag tag;
        vpps_chunk_tag_read(vpps_vocab_word(tags, i), &tag);
        const bool ends = tag.part == 'E' || tag.part == 'S';
        if (!from_begin[i] || !to_end[i] || (ends && scheme != CHAIN_IOBES)) other = vpps_vocab_word(tags, i);
    }
    free(from_begin);
    if (!other) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "--scheme: the network's tag '%.40s' is of another scheme", other);
}

vpps_status chain_forbid(tag_chain *ch, chain_scheme scheme, const vpps_vocab *tags) {
    if (scheme == CHAIN_ANY) return VPPS_OK;
    if (!tags || vpps_vocab_find(tags, "O", 1) == VPPS_NO_WORD || !vpps_f1_applies(tags))
        return vpps_fail(VPPS_ARGUMENT,
                         "--scheme: the network's tags are not those of chunks; expected O, B-x, I-x and so on");
    for (uint32_t i = 0; i < ch->classes; i++) {
        const char *tag = vpps_vocab_word(tags, i);
        if (!chain_allows(scheme, "O", tag)) ch->begin[i] = -INFINITY;
        if (!chain_allows(scheme, tag, "O")) ch->end[i] = -INFINITY;
        for (uint32_t j = 0; j < ch->classes; j++)
            if (!chain_allows(scheme, vpps_vocab_word(tags, j), tag)) ch->next[(size_t)i * ch->classes + j] = -INFINITY;
    }
    return check_tags(ch, scheme, tags);
}

vpps_status chain_check(chain_scheme scheme, const vpps_vocab *tags) {
    tag_chain ch = {0};
    if (scheme == CHAIN_ANY) return VPPS_OK;
    VPPS_TRY(chain_open(&ch, tags ? vpps_vocab_size(tags) : 0));
    const vpps_status status = chain_forbid(&ch, scheme, tags);
    chain_close(&ch);
    return status;
}

vpps_status chain_open(tag_chain *ch, uint32_t classes) {
    const size_t n = classes;
    *ch = (tag_chain){.classes = classes, .next = calloc(n * n + 2 * n + 1, sizeof *ch->next)};
    if (!ch->next)
        return vpps_fail(VPPS_MEMORY, "no memory for the scores of which of %u tags follow each other", classes);
    ch->begin = ch->next + n * n;
    ch->end = ch->begin + n;
    return VPPS_OK;
}

void chain_close(tag_chain *ch) {
    free(ch->next);
    *ch = (tag_chain){0};
}

/* constituents_labels.c - recognises function tags after labels, as in NP-SBJ-1 (Bies et al. 1995, section 2). */
#include "constituents.h"

#include "base/base.h"

/* Returns whether a text is a function tag (a capital letter, then capital letters and digits) or an index (digits). */
static bool is_tag(const char *text, size_t len) {
    bool letters = false, good = len > 0;
    for (size_t i = 0; i < len && good; i++) {
        const bool letter = text[i] >= 'A' && text[i] <= 'Z';
        if (i == 0) letters = letter;
        good = (letter && letters) || (text[i] >= '0' && text[i] <= '9');
    }
    return good;
}

size_t vpps_label_without_tags(const char *label, size_t len) {
    for (size_t i = len; i-- > 1;) {
        if (label[i] != '-' && label[i] != '=') continue;
        if (!is_tag(label + i + 1, len - i - 1)) break;
        len = i;
    }
    return len;
}

bool vpps_constituents_look_penn(const vpps_constituents *c) {
    VPPS_NEED_OR(false, c);
    bool np = false, vp = false;
    for (uint32_t i = 0; i < vpps_vocab_size(c->labels); i++) {
        const char *label = vpps_vocab_word(c->labels, i);
        if (vpps_label_without_tags(label, strlen(label)) != 2) continue;
        np |= memcmp(label, "NP", 2) == 0;
        vp |= memcmp(label, "VP", 2) == 0;
    }
    return np && vp;
}

static vpps_status cut_all(const vpps_vocab *from, vpps_vocab *to, uint32_t *ids) {
    for (uint32_t i = 0; i < vpps_vocab_size(from); i++) {
        const char *label = vpps_vocab_word(from, i);
        VPPS_TRY(vpps_vocab_add_unchecked(to, label, vpps_label_without_tags(label, strlen(label)), &ids[i]));
    }
    return VPPS_OK;
}

vpps_status vpps_constituents_cut(vpps_constituents *c) {
    VPPS_NEED(c);
    vpps_vocab *labels;
    VPPS_TRY(vpps_vocab_create(&labels));
    uint32_t *ids = malloc(((size_t)vpps_vocab_size(c->labels) + 1) * sizeof *ids);
    const vpps_status status =
        ids ? cut_all(c->labels, labels, ids)
            : vpps_fail(VPPS_MEMORY, "constituents: out of memory for %u labels", vpps_vocab_size(c->labels));
    if (status == VPPS_OK) {
        for (size_t i = 0; i < c->n_nodes; i++) c->nodes[i].label = ids[c->nodes[i].label];
        vpps_vocab_replace(c->labels, labels);
    } else {
        vpps_vocab_destroy(labels);
    }
    free(ids);
    return status;
}

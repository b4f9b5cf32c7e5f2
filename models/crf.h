/* crf.h - a conditional random field over the tags of a sentence (Lafferty, McCallum and Pereira 2001), as in the
 * taggers of Huang, Xu and Yu (2015) and Lample et al. (2016, section 2.2).
 *
 * For n words with scores e_1 .. e_n (vectors of C tags) and tags y_1 .. y_n:
 *     s(y) = b[y_1] + sum over k of e_k[y_k] + sum over k > 1 of T[y_k-1, y_k] + f[y_n]      p(y) = e^s(y) / sum over all y' of e^s(y')
 * T, b and f are the parameters crf.transitions (a table with one entry, C x C: preceding tag x tag), crf.begin and
 * crf.end, initially zero. */
#ifndef VPPS_CRF_H
#define VPPS_CRF_H

#include "models.h"

typedef struct part_crf {
    uint32_t classes; /* number of tags; 0: there is no random field */
    vpps_param transitions, begin, end;
    vpps_cell first, next, last;
} part_crf;

/* part_crf_declare declares the random field's parameters, part_crf_record records its cells; both do nothing unless net_config.crf. */
vpps_status part_crf_declare(part_crf *c, vpps_model *model, const net_config *config);
vpps_status part_crf_record(part_crf *c, vpps_model *model);

/* Returns which positions need logits: NET_HEADS_ALL if there is a conditional random field, else `heads`. */
net_heads part_crf_heads(const part_crf *c, net_heads heads);

/* Replaces the losses of a sentence's n words by terms whose sum is -log p(y); all words must have logits. Removes the
 * losses if a word's tag is unknown. */
void part_crf_add(const part_crf *c, vpps_graph *g, uint32_t n, const uint32_t *tags, const net_scores *scores);

/* Sets `chain` to nodes of the random field's parameters: scores of tag pairs, of first tags and of last tags. */
void part_crf_chain(const part_crf *c, vpps_graph *g, vpps_node chain[NET_CHAIN]);

/* The row of --crf in a tagger's table of command-line options. */
#define PART_CRF                                                                                                       \
    {                                                                                                                  \
        "crf", NULL, "Learn which tag follows which, too: a conditional random field over a sentence's tags",          \
            OPTION_FLAG, offsetof(net_config, crf), 0, 0, true                                                         \
    }

#endif

/* mutate.h - small changes to correct scripts: what a bug in a scheduler would look like. */
#ifndef VPPS_TESTS_NODES_MUTATE_H
#define VPPS_TESTS_NODES_MUTATE_H

#include "fixture.h"

typedef struct site {
    uint32_t at, words; /* of an instruction */
    uint32_t vp;        /* of a stream; UINT32_MAX: in a segment */
    uint32_t segment, segment_words;
} site;

/* A script that is being changed. */
typedef struct editor {
    const subject *of;
    uint32_t *script;
    size_t words, capacity;
    site *sites;
    size_t n_sites, sites_capacity;
    uint64_t random;
} editor;

/* A copy of the subject's script, and where its instructions are. False: out of memory. */
bool editor_open(editor *e, const subject *of, uint64_t seed);
void editor_close(editor *e);

/* Puts n words in the place of `removed` ones in instruction s. What holds them moves to the end of the script. */
bool editor_splice(editor *e, const site *s, uint32_t at, uint32_t removed, const uint32_t *words, uint32_t n);

static inline vpps_script_header *editor_header(editor *e) {
    void *at = e->script;
    return at;
}
static inline uint32_t *editor_starts(editor *e) { return e->script + VPPS_HEADER_WORDS; }

typedef struct mutation {
    const char *name;
    bool (*apply)(editor *e); /* false: nothing to change in this script */
} mutation;

extern const mutation mutations[];
extern const size_t n_mutations;

#endif

/* mutate.h - small changes to correct scripts, and to compiled cells: what a bug would look like. */
#pragma once

#include "fixture.h"

/* A task of a group. */
typedef struct site {
    uint32_t at, group; /* at: its address */
} site;

/* A script that is being changed. */
typedef struct editor {
    const subject *of;
    uint32_t *script;
    size_t words;
    site *sites;
    size_t n_sites;
    uint64_t random;
} editor;

/* A copy of the subject's script, and where its tasks are. False: out of memory. */
bool editor_open(editor *e, const subject *of, uint64_t seed);
void editor_close(editor *e);

/* The task at an address; it moves when the script grows. */
static inline vpps_task *editor_task(editor *e, uint32_t at) {
    void *task = e->script + at;
    return task;
}

/* Puts a task before the one at `at`; takes that one out. What comes after it moves. */
bool editor_insert(editor *e, uint32_t at, const vpps_task *task);
bool editor_remove(editor *e, uint32_t at);

static inline vpps_task_header *editor_header(editor *e) {
    void *at = e->script;
    return at;
}

typedef struct mutation {
    const char *name;
    bool (*apply)(editor *e); /* false: nothing to change in this script */
} mutation;

extern const mutation mutations[];
extern const size_t n_mutations;

/* What a word of a script is. */
typedef enum word_kind {
    WORD_REST,
    WORD_HEADER,
    WORD_START,
    WORD_BLOCK,
    WORD_RECORD,
    WORD_CONTRIBUTION,
    WORD_DATA,
    WORD_TABLE,
    WORD_ENTRY,
    WORD_CONSTANT,
    WORD_TERM,
    WORD_KIND,
    WORD_OPERAND,
    WORD_BARRIER,
    WORD_KINDS
} word_kind;

extern const char *const word_kind_names[WORD_KINDS];

/* Writes a word_kind for every word of a correct script. */
void find_word_kinds(const subject *s, uint8_t *kinds);

typedef struct cell_mutation {
    const char *name;
    bool (*apply)(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random);
    bool remake; /* the cell's programs are made anew afterwards */
} cell_mutation;

extern const cell_mutation cell_mutations[];
extern const size_t n_cell_mutations;

/* A copy of a compiled cell, to be changed. NULL: out of memory. */
vpps_compiled_cell *copy_cell(const vpps_compiled_cell *c);

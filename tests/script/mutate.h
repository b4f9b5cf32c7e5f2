/* mutate.h - small changes to correct scripts and compiled cells, such as a bug might make. */
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

/* Copies the subject's script, and lists its tasks. False: out of memory. */
bool editor_open(editor *e, const subject *of, uint64_t seed);
void editor_close(editor *e);

/* Returns the task at an address; it moves if the script grows. */
static inline vpps_task *editor_task(editor *e, uint32_t at) {
    void *task = e->script + at;
    return task;
}

/* Insert a task before the one at `at`, or remove that one. What follows it moves. */
bool editor_insert(editor *e, uint32_t at, const vpps_task *task);
bool editor_remove(editor *e, uint32_t at);

static inline vpps_task_header *editor_header(editor *e) {
    void *at = e->script;
    return at;
}

/* A kind of change of scripts, each at a drawn place. */
typedef struct mutation {
    const char *name;
    bool (*apply)(editor *e, uint32_t argument); /* false: the script has nothing to change */
    uint32_t argument, times;                    /* times: number of attempts in a script */
} mutation;

extern const mutation mutations[];
extern const size_t n_mutations;

/* Lists of a compiled cell; those from PROGRAM on belong to a stage. */
enum {
    LIST_CELL,
    LIST_VALUES,
    LIST_ARGS,
    LIST_CONTRIBUTIONS,
    LIST_OUTERS,
    LIST_STAGES,
    LIST_ORDER,
    LIST_OUTPUTS,
    LIST_LOOKUPS,
    LIST_WORDS,
    LIST_PROGRAM,
    LIST_STEPS,
    LIST_OPERANDS,
    LIST_SLOTS,
    LIST_DEALT,
    CELL_LISTS
};

/* What a field holds. SIZE, INDEX, COUNT and VALUE may be other numbers in range, with which programs can still be made. */
typedef enum field_domain {
    DOMAIN_NUMBER,
    DOMAIN_BOOL,
    DOMAIN_KIND, /* of a union */
    DOMAIN_SIZE,
    DOMAIN_INDEX,
    DOMAIN_COUNT,
    DOMAIN_VALUE
} field_domain;

typedef struct cell_field {
    const char *what;
    uint8_t list, domain, bytes;
    uint16_t kinds; /* the kinds of items that have the field, as bits; 0: all */
    size_t at;
} cell_field;

extern const cell_field cell_fields[];
extern const size_t n_cell_fields;

/* Returns the items of a list, or of a stage's program. */
void *cell_items(vpps_compiled_cell *c, uint32_t list, uint32_t stage, uint32_t *n, size_t *bytes);
bool has_field(const void *item, const cell_field *f);
uint64_t get_field(const void *item, const cell_field *f);
void set_field(void *item, const cell_field *f, uint64_t value);

/* Changes of compiled cells: each field, as a wrong pass might set it or at random; and items of lists. */
uint32_t n_cell_mutations(void);
const char *cell_mutation(uint32_t kind);
bool mutate_cell(uint32_t kind, vpps_compiled_cell *c, uint64_t *random); /* false: nothing was changed */

/* Copies a compiled cell, which may then be changed. NULL: out of memory. */
vpps_compiled_cell *copy_cell(const vpps_compiled_cell *c);

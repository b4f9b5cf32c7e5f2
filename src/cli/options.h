/* options.h - the table of options, from which the command line is parsed (parse.h) and checkpoints are described. */
#pragma once

#include "models.h"

typedef enum command_bit {
    COMMAND_TRAIN = 1,
    COMMAND_EVAL = 2,
    COMMAND_PREDICT = 4,
    COMMAND_SCRIPT = 8,
    COMMAND_DOCTOR = 16,
    COMMAND_PLAN = 32,
    COMMAND_KERNEL = 64,
    COMMAND_CACHE = 128,
    COMMAND_TUNE = 256,
    COMMAND_CELL = 512,
    COMMAND_GENERATE = 1024,
    COMMAND_EXPORT = 2048,
    COMMAND_POLICY = 4096,
    COMMAND_COMPLETION = 32768
} command_bit;

enum { SPLIT_TRAIN, SPLIT_DEV, SPLIT_TEST, N_SPLITS };
extern const char *const split_names[N_SPLITS];
enum { CALLER_AUTO, CALLER_WORKS, CALLER_FREE };
enum { CLASSES_OF_ROOT, CLASSES_OF_NODES };
enum { SUBTYPES_KEEP, SUBTYPES_CUT };
enum { FUNCTION_TAGS_AUTO, FUNCTION_TAGS_CUT, FUNCTION_TAGS_KEEP };

#define OPTIONS_MAX 128 /* twice what there are */

/* --lr-schedule, in the order of its words. */
enum { SCHEDULE_CONSTANT, SCHEDULE_LINEAR, SCHEDULE_COSINE, SCHEDULE_STEP, SCHEDULE_PLATEAU };

/* The values of all options, with the defaults filled in. */
typedef struct settings {
    command_bit command;
    const network *network; /* NULL for a command without one */
    const char *action;     /* of `vpps cache` */
    net_config net;

    const char *data;            /* a folder or a file */
    const char *parts[N_SPLITS]; /* files; without them and data: generate */
    const char *lexicon, *source, *target;
    const char *word_column, *tag_column; /* numbers from 1, or names */
    const char *vectors;
    bool freeze_vectors;
    uint32_t generate; /* a net_generator */
    uint32_t function_tags, subtypes;
    uint32_t tokenizer;         /* TOKENIZER_NONE, TOKENIZER_SIMPLE */
    const char *sentence_label; /* DEPENDENCIES: the comment that labels a sentence; NULL: relations are learned */
    uint32_t examples, leaves, min_count;
    uint64_t seed;
    uint32_t split;

    uint32_t batch, accumulate, epochs, max_batches, eval_every, save_every;
    uint32_t optimizer; /* a vpps_optimizer_kind */
    float lr, lr_decay, momentum, weight_decay, clip;
    uint32_t lr_schedule, lr_every, warmup;
    const char *class_weights;
    bool train_accuracy;
    const char *freeze, *lr_of; /* lists, with commas: parameters.h */
    uint32_t gradients, nonfinite;

    const char *device;
    uint32_t vps, groups, waves, slices, caller, communicator, watchdog_ms;
    uint32_t precision; /* a vpps_precision */
    uint32_t policy;    /* number of a policy, after the last one: auto */
    uint64_t pool_bytes;
    bool portable, verify, shard_tables;

    const char *arch; /* NULL: the GPU that is here, else sm_90 */
    uint32_t sms;
    uint32_t rpw, threads; /* 0: not said */
    bool all, report, no_cache, no_tuning;
    uint32_t vps_shown;

    uint32_t scheme; /* tags: a chain_scheme */
    const char *csv;
    uint32_t classes_of; /* trees: roots, or all labelled nodes */
    const char *model, *save, *save_best, *resume, *init, *log, *plot, *trace, *config;
    uint32_t patience;
    uint32_t top, on_error;               /* predict: classes shown; 0: stop, 1: skip */
    uint32_t input_format, output_format; /* an input_form, an output_form */
    bool gold;
    const char *text_field, *label_field;
    uint64_t line_bytes;
    uint64_t drawn_seed; /* generate */
    uint32_t count, most_words;
    float temperature, top_p;
    const char *prompt;
    uint32_t log_every, output, trace_events;
    uint32_t beam, max_words;
    float length_penalty;
    const char *c_file, *header, *prefix, *weights; /* export: as C */
    uint32_t c_precision;                           /* a vpps_c_precision */
    bool losses, main_program;
    bool quiet, verbose, json, force;
    char **files; /* predict: what to read, in this order; n_files 0: standard input */
    int n_files;

    bool given[OPTIONS_MAX]; /* row i of options_rows() was on the command line */
} settings;

/* After parsing and after a checkpoint: fills in the defaults that depend on other options. */
void options_complete(settings *s);

/* A row without a name is a heading: its commands list the rows below it in --help, all others in --help-engine. */
typedef struct cli_option {
    option_row row;
    int key;
    unsigned commands; /* command_bit set */
    unsigned flags;
    bool of_network; /* the offset is into settings.net */
    unsigned kinds;  /* 1 << net_kind, of the networks that have it; 0: all */
} cli_option;

/* Flags: SAVED is kept in checkpoints; FIXED cannot change when training is resumed (the network's shape, and what
 * the position in the epoch counts); DATA says where examples come from. INPUT and OUTPUT: a file that is read, or written
 * (those of data are found by corpus_list_files). CONTENT: a path, which may change when training is resumed as long as
 * what it holds does not. NAMES_NETWORK: a checkpoint that tells which network is meant. RESUMED: how the engine works, which
 * shapes the last bits of results: it is SAVED, and taken by --resume alone. FILES: how files of data are read. LIST: a text of
 * items with commas between; given more than once, the option has the items of all. */
enum {
    OPTION_SAVED = 1,
    OPTION_FIXED = 2,
    OPTION_DATA = 4,
    OPTION_INPUT = 8,
    OPTION_OUTPUT = 16,
    OPTION_CONTENT = 32,
    OPTION_NAMES_NETWORK = 64,
    OPTION_RESUMED = 128,
    OPTION_FILES = 256,
    OPTION_LIST = 512
};

/* Names of other programs' options, for hints. */
typedef struct option_alias {
    const char *alias, *name; /* name NULL: it is no option, but the hint is */
    const char *hint;
} option_alias;

extern const option_alias option_aliases[]; /* ends with a NULL alias */
enum { OPTION_ALIASES = 26 };               /* how many there are */

/* The alias of that name; NULL: there is none. */
const option_alias *options_alias(const char *alias);

/* The rows of s's network and of all commands, in a fixed order; *n of them, at most OPTIONS_MAX. */
const cli_option *options_rows(const settings *s, size_t *n);

/* Does s name files, rather than have data generated? */
bool options_name_files(const settings *s);

/* Is the row of data that are generated, where s names files, or of files, where it names none? */
bool options_unused(const settings *s, const cli_option *o);

/* Was --NAME on the command line? */
bool options_given(const settings *s, const char *name);

/* Does s's command and network have the row? Without a network: do all networks have it? */
bool options_apply(const settings *s, const cli_option *o);

/* A text option's value, NULL when it has none. */
const char *options_text(const settings *s, const cli_option *o);

/* The row's value as text, or back. options_read gives false when the text is not a value of the row; `why`
 * (of why_bytes) then says what is expected. Text values keep the pointer. */
void options_write(const settings *s, const cli_option *o, char *text, size_t n);
bool options_read(settings *s, const cli_option *o, const char *text, char *why, size_t why_bytes);

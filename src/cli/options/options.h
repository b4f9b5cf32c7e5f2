/* options.h - the table of options, which defines the command line (commands/parse.c) and the options kept in checkpoints. */
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
    COMMAND_EXPORT = 2048
} command_bit;

enum { SPLIT_TRAIN, SPLIT_DEV, SPLIT_TEST, N_SPLITS };
extern const char *const split_names[N_SPLITS];
enum { CALLER_AUTO, CALLER_WORKS, CALLER_FREE };
enum { CLASSES_OF_ROOT, CLASSES_OF_NODES };
enum { SUBTYPES_KEEP, SUBTYPES_CUT };
enum { FUNCTION_TAGS_AUTO, FUNCTION_TAGS_CUT, FUNCTION_TAGS_KEEP };

/* Room for the rows of the table of options, a network's own rows and the last row: about twice as many as there are. */
#define OPTIONS_MAX 256

/* The values of --lr-schedule, in the order of the option's choices. */
enum { SCHEDULE_CONSTANT, SCHEDULE_LINEAR, SCHEDULE_COSINE, SCHEDULE_STEP, SCHEDULE_PLATEAU };

/* The values of all options, defaults included. */
typedef struct settings {
    command_bit command;
    const network *network; /* the command's network; NULL: it has none */
    const char *action;     /* action of `vpps cache`: list, clear or path */
    net_config net;

    const char *data;            /* value of --data: a folder or a file */
    const char *parts[N_SPLITS]; /* values of --train, --dev, --test; without these and `data`, data are generated */
    const char *lexicon, *source, *target;
    const char *word_column, *tag_column; /* columns of words and of tags: a number, from 1, or a name */
    const char *vectors;
    bool freeze_vectors;
    uint32_t generate; /* a net_generator */
    uint32_t function_tags, subtypes;
    uint32_t tokenizer; /* TOKENIZER_NONE, TOKENIZER_SIMPLE */
    /* networks on dependency trees: a sentence's label is in the CoNLL-U comment "# NAME = LABEL" of this name; NULL: words have labels */
    const char *sentence_label;
    uint32_t examples, leaves, min_count;
    uint64_t seed;
    uint32_t split;

    uint32_t batch, accumulate, epochs, max_batches, eval_every, save_every;
    uint32_t optimizer; /* a vpps_optimizer_kind */
    float lr, lr_decay, momentum, weight_decay, clip;
    uint32_t lr_schedule, lr_every, warmup;
    const char *class_weights;
    bool train_accuracy;
    const char *freeze, *lr_of; /* lists separated by commas; freeze: names of parameters; lr_of: NAME=LEARNING_RATE */
    uint32_t gradients, nonfinite;

    const char *device;
    uint32_t vps, groups, waves, slices, caller, communicator, watchdog_ms;
    uint32_t precision; /* a vpps_precision */
    uint32_t policy;    /* index of a batching policy; the index after the last policy is auto */
    uint64_t pool_bytes;
    bool portable, verify, shard_tables;

    const char *arch; /* target GPU; NULL: the GPU of this machine, else sm_90 */
    uint32_t sms;
    uint32_t rpw, threads; /* matrix rows per warp (--rpw), threads per CTA; 0: not given */
    bool all, report, no_cache, no_tuning;
    uint32_t vps_shown;

    uint32_t scheme;     /* value of --scheme, the rules for tags: a chain_scheme (chain.h) */
    uint32_t classes_of; /* trees: which nodes the confusion matrix counts: CLASSES_OF_ROOT or CLASSES_OF_NODES */
    const char *model, *save, *save_best, *resume, *init, *log, *plot, *trace;
    uint32_t patience;
    uint32_t top, on_error;               /* top: classes to list; on_error: 0 stops at, 1 skips a faulty line */
    uint32_t input_format, output_format; /* predict: values of the enums input_form and output_form */
    uint32_t data_format;                 /* --input-format of training and measuring: an input_form */
    bool gold;
    const char *text_field, *label_field;
    uint64_t line_bytes;
    uint64_t drawn_seed; /* `vpps generate`: its --seed */
    uint32_t count, most_words;
    float temperature, top_p;
    const char *prompt;
    uint32_t log_every, output, trace_events;
    uint32_t beam, max_words;
    float length_penalty;
    /* `vpps export`: names of the C file, the header and the file of weights to write; prefix of the C file's functions and constants */
    const char *c_file, *header, *prefix, *weights;
    uint32_t c_precision; /* a vpps_c_precision */
    bool losses, main_program;
    bool quiet, json, force;
    char **files; /* predict: input files in order; n_files 0: standard input */
    int n_files;

    bool given[OPTIONS_MAX]; /* given[i]: whether the option of row number i was on the command line */
} settings;

/* Fills in the defaults that depend on other options; called after parsing, and again after options were read from a checkpoint. */
void options_complete(settings *s);

/* A row of the table of options. A row without a name is a heading of the rows up to the next heading, a group. A command's --help lists
 * the groups whose heading names the command in `commands`, and --help-engine lists the groups that --help leaves out. */
typedef struct cli_option {
    option_row row;
    int key;           /* the option's letter; without a letter, a number larger than any character */
    unsigned commands; /* the commands with this option, as a set of command_bit */
    unsigned flags;
    bool of_network; /* whether row.offset is the offset of a member of settings.net, not of settings */
    unsigned kinds;  /* set of the networks with this option, as bits 1 << net_kind; 0: all networks have it */
    size_t number;   /* this option's index in settings.given (the options on the command line) */
} cli_option;

/* An option's flags. SAVED: kept in checkpoints. FIXED: cannot change when training is resumed, as the network's shape and the size of a
 * batch. DATA: says where examples come from. INPUT, OUTPUT: the value is a file to read or write (corpus_list_files finds data files).
 * CONTENT: a path that may change when training is resumed if the file's content is the same. NAMES_NETWORK: a checkpoint that tells which
 * network is meant. RESUMED: how the engine works, which affects the last bits of results; kept in checkpoints, but only --resume reads it.
 * FILES: how data files are read. LIST: a text of items separated by commas; repeated options are joined. */
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

/* Returns the rows of s's network and of all commands, in a fixed order, headings included. The last row's help is NULL. */
const cli_option *options_rows(const settings *s);

/* Finds an option by its name. Of several rows with one name, finds the row that s's command and network have (options_apply), else the
 * first row. Returns NULL when there is none. */
const cli_option *options_find(const settings *s, const char *name);

/* Returns whether s names data files; else data are generated. */
bool options_name_files(const settings *s);

/* Returns whether an option has no effect: it is about generated data while s names files, or about files while s names none. */
bool options_unused(const settings *s, const cli_option *o);

/* Returns whether --NAME was on the command line. */
bool options_given(const settings *s, const char *name);

/* Returns whether s's command and network have the option; without a network, whether all networks have it. False for a heading. */
bool options_apply(const settings *s, const cli_option *o);

/* Returns the value of a text option, NULL when it has none. */
const char *options_text(const settings *s, const cli_option *o);

/* options_write writes an option's value as text; options_read reads it back. options_read returns false when the text
 * is no value of the option, and writes to `why` what is expected. A text option keeps the pointer `text`. */
void options_write(const settings *s, const cli_option *o, char *text, size_t n);
bool options_read(settings *s, const cli_option *o, const char *text, char *why, size_t why_bytes);

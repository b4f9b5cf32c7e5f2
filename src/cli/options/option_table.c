/* option_table.c - the table of options. */
#include "base/base.h"
#include "cli/options/options.h"
#include "runtime/devices.h"
#include "script/policies.h"

#define TRAIN COMMAND_TRAIN
#define PLANS (COMMAND_PLAN | COMMAND_KERNEL)
#define SHOWN (COMMAND_SCRIPT | COMMAND_CELL) /* commands that work on the first batch */
#define DATA (COMMAND_TRAIN | COMMAND_EVAL | SHOWN | COMMAND_TUNE | PLANS)
#define ENGINE (COMMAND_TRAIN | COMMAND_EVAL | COMMAND_PREDICT | COMMAND_GENERATE | SHOWN | COMMAND_TUNE)
#define RUNS (COMMAND_TRAIN | COMMAND_EVAL | COMMAND_PREDICT | COMMAND_GENERATE | COMMAND_TUNE)
#define RESULTS (COMMAND_TRAIN | COMMAND_EVAL | COMMAND_PREDICT)
#define FROM_FILE (COMMAND_EVAL | COMMAND_PREDICT | COMMAND_GENERATE | COMMAND_EXPORT | SHOWN | PLANS)
#define SHAPED (COMMAND_TRAIN | SHOWN | COMMAND_TUNE | PLANS)
#define SAVED OPTION_SAVED
#define FIXED (OPTION_SAVED | OPTION_FIXED)
#define RESUMED (OPTION_SAVED | OPTION_RESUMED)
#define SOURCE (FIXED | OPTION_DATA)
#define OF_FILES (FIXED | OPTION_FILES)
#define PATHS (SOURCE | OPTION_CONTENT)
#define CHECKPOINT (OPTION_INPUT | OPTION_NAMES_NETWORK)
#define TREES (1u << NET_TREES)
#define LATTICES (1u << NET_LATTICES)
#define TAGS (1u << NET_TAGGING | 1u << NET_LATTICES)
#define PAIRS (1u << NET_PAIRS | 1u << NET_LATTICE_PAIRS)
#define DEPENDENCIES (1u << NET_DEPENDENCIES)
#define LABELS (TAGS | 1u << NET_SENTENCES)
#define GOLD (TREES | LABELS)
#define RECORDS (GOLD | PAIRS | 1u << NET_TEXT)
#define CLASSES (GOLD | DEPENDENCIES | 1u << NET_NODES | 1u << NET_GRAPHS)
#define WORDS (TAGS | PAIRS | 1u << NET_SENTENCES | 1u << NET_TEXT)
#define RANKED (CLASSES | PAIRS | 1u << NET_TEXT)
#define U32_MAX 4294967295.0
#define FORMS "auto|text|tagged|columns|labelled|jsonl|csv|tsv"

/* The names of optimizers, in the order of vpps_optimizer_kind. */
#define X(id, name, states, lr) "|" name
static const char optimizer_names[] = VPPS_OPTIMIZER_TABLE(X);
#undef X

/* The names of precisions, in the order of vpps_precision. */
#define X(id, name) "|" name
static const char precision_names[] = VPPS_PRECISION_TABLE(X);
#undef X

/* The values of --policy and --device, and the help of --device, which options_rows fills in from their tables. */
static char policy_names[128], device_names[128], device_help[256];

static void list_policies(void) {
    size_t n = (size_t)snprintf(policy_names, sizeof policy_names, "default|");
    for (const vpps_policy *p = vpps_policies; p->name; p++)
        n += (size_t)snprintf(policy_names + n, sizeof policy_names - n, "%s|", p->name);
    snprintf(policy_names + n, sizeof policy_names - n, "auto");
}

static void list_devices(void) {
    size_t n = (size_t)snprintf(device_help, sizeof device_help, "The device: auto");
    size_t len = (size_t)snprintf(device_names, sizeof device_names, "auto");
    for (const vpps_device_table *const *d = vpps_devices; *d; d++) {
        const char *note = (*d)->note;
        len += (size_t)snprintf(device_names + len, sizeof device_names - len, "|%s", (*d)->name);
        n += (size_t)snprintf(device_help + n, sizeof device_help - n, ", %s%s%s%s", (*d)->name, note ? " (" : "",
                              note ? note : "", note ? ")" : "");
    }
}

static const char generator_names[] = "listops|complete";

#define HEADING_FOR(commands, text)                                                                                    \
    { {NULL, NULL, text, OPTION_FLAG, 0, 0, 0, false}, 0, commands, 0, false, 0, 0 }
#define HEADING(text) HEADING_FOR(~0u, text)
#define ROW_FOR(kinds, kind, name, field, argument, low, high, key, commands, flags, help)                             \
    { {name, argument, help, kind, offsetof(settings, field), low, high, false}, key, commands, flags, false, kinds, 0 }
#define ROW(...) ROW_FOR(0, __VA_ARGS__)
#define COUNT(name, field, low, high, key, commands, flags, help)                                                      \
    ROW(OPTION_U32, name, field, "N", low, high, key, commands, flags, help)
#define REAL(name, field, low, high, commands, flags, help)                                                            \
    ROW(OPTION_F32, name, field, "X", low, high, 0, commands, flags, help)
#define CHOICE(name, field, words, key, commands, flags, help)                                                         \
    ROW(OPTION_CHOICE, name, field, words, 0, 0, key, commands, flags, help)
#define TEXT(name, field, argument, key, commands, flags, help)                                                        \
    ROW(OPTION_TEXT, name, field, argument, 0, 0, key, commands, flags, help)
#define FLAG(name, field, key, commands, flags, help)                                                                  \
    ROW(OPTION_FLAG, name, field, NULL, 0, 0, key, commands, flags, help)

/* clang-format off */
static const cli_option table[] = {
    HEADING("Data:"),
    TEXT("data", data, "PATH", 0, DATA, PATHS,
         "A file, or a folder with files that have the words train, dev (or val) and test in their names"),
    TEXT("train", parts[SPLIT_TRAIN], "PATH", 0, DATA, PATHS, "The training part: a file, or a folder whose files are read"),
    TEXT("dev", parts[SPLIT_DEV], "PATH", 0, DATA, PATHS, "The part that is measured while training"),
    TEXT("test", parts[SPLIT_TEST], "PATH", 0, DATA, PATHS, "The part that is measured, too"),
    ROW_FOR(LATTICES, OPTION_TEXT, "lexicon", lexicon, "FILE", 0, 0, 0, SHAPED, OF_FILES | OPTION_INPUT | OPTION_CONTENT,
            "Words, one a line, that make lattices of sentences"),
    ROW_FOR(TAGS, OPTION_TEXT, "word-column", word_column, "COLUMN", 0, 0, 0, DATA | COMMAND_PREDICT, OF_FILES,
            "The column of words: a number from 1, or a name of CoNLL-U's (default: 1, or FORM)"),
    ROW_FOR(TAGS, OPTION_TEXT, "tag-column", tag_column, "COLUMN", 0, 0, 0, DATA | COMMAND_PREDICT, OF_FILES,
            "The column of tags: a number from 1, or a name of CoNLL-U's (default: the last, or UPOS)"),
    ROW_FOR(PAIRS, OPTION_TEXT, "source", source, "ENDING", 0, 0, 0, DATA, OF_FILES,
            "Files of sources end in .ENDING, as de"),
    ROW_FOR(PAIRS, OPTION_TEXT, "target", target, "ENDING", 0, 0, 0, DATA, OF_FILES,
            "Files of translations end in .ENDING, as en"),
    ROW_FOR(RECORDS, OPTION_TEXT, "text-field", text_field, "NAME", 0, 0, 0, DATA | COMMAND_PREDICT, OF_FILES,
            "The field of JSONL, CSV or TSV that holds the text; a number, from 1: the first line has no names (default: text, or words)"),
    ROW_FOR(LABELS | PAIRS, OPTION_TEXT, "label-field", label_field, "NAME", 0, 0, 0, DATA | COMMAND_PREDICT, OF_FILES,
            "The field that holds the label, tags or translation, for predict with --gold (default: gold, label, tags, or target)"),
    ROW_FOR(RECORDS, OPTION_CHOICE, "input-format", data_format, FORMS, 0, 0, 0, DATA, OF_FILES,
            "The format of data files; auto: by the file's name, else by its first line"),
    ROW_FOR(WORDS, OPTION_CHOICE, "tokenizer", tokenizer, "none|simple", 0, 0, 0, DATA | COMMAND_PREDICT, OF_FILES,
            "Split text into words first: simple makes punctuation words of its own; predict and eval do as training did"),
    ROW_FOR(TREES, OPTION_CHOICE, "generate", generate, generator_names, 0, 0, 0, DATA, SOURCE,
            "Without data: ListOps trees, or complete trees with their most frequent word as the label"),
    ROW_FOR(TREES, OPTION_CHOICE, "function-tags", function_tags, "auto|cut|keep", 0, 0, 0, DATA, OF_FILES,
            "Labels with names: NP-SBJ is NP, or stays; auto: cut where there are NP and VP, as in the Penn Treebank"),
    ROW_FOR(DEPENDENCIES, OPTION_CHOICE, "subtypes", subtypes, "keep|cut", 0, 0, 0, DATA, OF_FILES,
            "Relations as written, or without their subtypes: nsubj:pass is nsubj"),
    ROW_FOR(DEPENDENCIES, OPTION_TEXT, "sentence-label", sentence_label, "NAME", 0, 0, 0, DATA, FIXED,
            "Learn the labels of sentences, which comments \"# NAME = LABEL\" give, instead of words' relations"),
    COUNT("examples", examples, 1, 1e8, 0, DATA, SOURCE,
          "Generated training examples; dev and test get a tenth of that each, at least 100"),
    ROW_FOR(TREES, OPTION_U32, "leaves", leaves, "N", 1, 1e6, 0, DATA, FIXED, "Leaves of a generated complete tree"),
    COUNT("min-count", min_count, 1, U32_MAX, 0, SHAPED, FIXED,
          "Words seen fewer than N times in training become <unk>, or are spelled"),
    TEXT("vectors", vectors, "FILE", 0, TRAIN, FIXED | OPTION_INPUT,
         "Begin with pretrained vectors of words, of word2vec, GloVe or fastText; --embed is theirs"),
    ROW(OPTION_FLAG, "freeze-vectors", freeze_vectors, NULL, 0, 0, 0, TRAIN, FIXED,
        "Do not train the embeddings that --vectors sets, nor those of other words"),
    ROW(OPTION_U64, "seed", seed, "N", 0, 0, 0, DATA, FIXED, "Seed of data, initial values, order and dropout"),
    CHOICE("split", split, "train|dev|test", 0, COMMAND_EVAL, 0, "The part of the data to measure"),

    HEADING("Training:"),
    COUNT("batch", batch, 1, 1 << 20, 'b', ENGINE | PLANS, FIXED, "Examples a batch"),
    COUNT("accumulate", accumulate, 1, 4095, 0, TRAIN, FIXED,
          "Add the gradients of N times --batch examples up before an update, in the memory of one --batch"),
    COUNT("epochs", epochs, 0, 1e6, 'e', TRAIN, SAVED, "Passes over the training part, resumed ones included"),
    COUNT("max-batches", max_batches, 0, U32_MAX, 0, TRAIN, 0, "Stop after N batches of this run; 0: no limit"),
    COUNT("eval-every", eval_every, 0, U32_MAX, 0, TRAIN, SAVED,
          "Evaluate dev and test every N epochs and at the end; 0: never"),
    COUNT("patience", patience, 0, U32_MAX, 0, TRAIN, SAVED,
          "Stop when N measurements of dev in a row were no better; 0: do not"),
    CHOICE("optimizer", optimizer, optimizer_names + 1, 0, TRAIN | COMMAND_KERNEL | COMMAND_TUNE, SAVED,
           "The rule of the update"),
    REAL("lr", lr, 0, 1e6, TRAIN, SAVED,
         "Learning rate (default: 0.1 for sgd and momentum, 0.05 for adagrad, 0.002 for adam and adamw)"),
    CHOICE("lr-schedule", lr_schedule, "constant|linear|cosine|step|plateau", 0, TRAIN, SAVED,
           "The learning rate falls to 0 by the end of --epochs; by --lr-decay; or so when dev is no better"),
    REAL("lr-decay", lr_decay, 0.001, 1, TRAIN, SAVED,
         "Factor on the learning rate after every epoch; of step and plateau after --lr-every (then 0.1 unless given)"),
    COUNT("lr-every", lr_every, 1, U32_MAX, 0, TRAIN, SAVED,
          "Epochs between two steps; measurements of dev in a row that were no better before plateau lowers the rate"),
    COUNT("warmup", warmup, 0, U32_MAX, 0, TRAIN, SAVED, "Batches in which the learning rate rises to its first value"),
    TEXT("lr-of", lr_of, "NAME=X,...", 0, TRAIN, SAVED | OPTION_LIST,
         "Learning rates that parameters have instead of --lr, as embedding=0.0005"),
    TEXT("freeze", freeze, "NAME,...", 0, TRAIN, SAVED | OPTION_LIST, "Parameters that stay as they are, as embedding"),
    REAL("momentum", momentum, 0, 1, TRAIN, SAVED, "Factor of the momentum optimizer"),
    REAL("weight-decay", weight_decay, 0, 1e6, TRAIN, SAVED, "L2 penalty; decoupled for adamw"),
    REAL("clip", clip, 0, 1e9, TRAIN, SAVED, "Largest norm of all gradients together; 0: no limit"),
    REAL("label-smoothing", net.label_smoothing, 0, 1, TRAIN, SAVED,
         "Share of the training loss that all classes have alike, instead of the label alone"),
    ROW_FOR(TAGS, OPTION_CHOICE, "scheme", scheme, "any|iob1|iob2|iobes", 0, 0, 0, RESULTS, SAVED,
            "Predict only tags that the scheme of chunks lets follow each other; iobes: BILOU and BMES, too"),
    ROW_FOR(CLASSES, OPTION_TEXT, "class-weights", class_weights, "balanced|FILE", 0, 0, 0, TRAIN, FIXED | OPTION_INPUT,
            "Weights of labels in the training loss: a file with a label and its weight a line, or by how rare they are"),
    ROW_FOR(CLASSES, OPTION_FLAG, "train-accuracy", train_accuracy, NULL, 0, 0, 0, TRAIN, SAVED,
            "Tell the accuracy on the training part, too, by the scores that each batch is trained with"),
    CHOICE("gradients", gradients, "deferred|accumulate|cublas|auto|cublas-tf32", 0, TRAIN | COMMAND_SCRIPT, SAVED,
           "One product a matrix at the end of the batch, or one a level; GPU: by cuBLAS, or the faster one"),
    CHOICE("nonfinite", nonfinite, "stop|skip|ignore", 0, TRAIN, SAVED,
           "What to do about a batch whose loss is NaN or infinite"),

    HEADING("Files:"),
    TEXT("model", model, "FILE", 'm', FROM_FILE, CHECKPOINT, "The checkpoint to use"),
    TEXT("save", save, "FILE", 's', TRAIN, OPTION_OUTPUT, "Write a checkpoint after every epoch, at the end and when interrupted"),
    TEXT("save", save, "FILE", 's', COMMAND_EXPORT, OPTION_OUTPUT, "Write the parameters to this file"),
    TEXT("c", c_file, "FILE.c", 0, COMMAND_EXPORT, OPTION_OUTPUT, "Write the cells as C99 functions, and the words and labels, to this file"),
    TEXT("header", header, "FILE.h", 0, COMMAND_EXPORT, OPTION_OUTPUT, "With --c: prototypes and constants, which the file includes"),
    TEXT("weights", weights, "FILE", 0, COMMAND_EXPORT, OPTION_OUTPUT,
         "With --c: the weights, which the program maps or links; without it they are in the C file"),
    TEXT("save-best", save_best, "FILE", 0, TRAIN, OPTION_OUTPUT,
         "Write a checkpoint after every measurement of dev that is the best so far"),
    COUNT("save-every", save_every, 0, U32_MAX, 0, TRAIN, 0, "Write it after every N batches, too; 0: do not"),
    TEXT("resume", resume, "FILE", 'r', TRAIN, CHECKPOINT,
         "Continue from a checkpoint, with its options; --save is FILE unless given"),
    TEXT("init", init, "FILE", 0, TRAIN, OPTION_INPUT,
         "Begin a new run with the parameters of a checkpoint whose names and shapes fit"),
    FLAG("force", force, 0, TRAIN | COMMAND_EXPORT, 0,
         "Replace checkpoints and logs of other runs; without it a file that exists is an error"),
    TEXT("log", log, "FILE.jsonl", 0, TRAIN, OPTION_OUTPUT, "Write one JSON object a line: batches, epochs, the summary"),
    COUNT("log-every", log_every, 1, U32_MAX, 0, TRAIN, 0, "Log every Nth batch"),
    TEXT("plot", plot, "FILE.svg", 0, TRAIN, OPTION_OUTPUT, "Draw the loss and what is measured, after every epoch"),
    TEXT("trace", trace, "FILE.json", 0, RESULTS, OPTION_OUTPUT,
         "Write what the host and each virtual processor did when, for ui.perfetto.dev"),
    COUNT("trace-events", trace_events, 1, 1e8, 0, RESULTS, 0,
          "With --trace: note the batches whose events, from the first one on, are no more than these"),

    HEADING("Output:"),
    ROW_FOR(TREES, OPTION_CHOICE, "output", output, "tree|label", 0, 0, 'o', COMMAND_PREDICT, 0,
            "Print the tree with predicted labels, or the root's label alone"),
    ROW_FOR(PAIRS, OPTION_U32, "beam", beam, "N", 1, 1000, 0, RESULTS, FIXED,
            "Hypotheses kept while translating; 1: greedy search"),
    ROW_FOR(PAIRS, OPTION_U32, "max-words", max_words, "N", 0, 1e6, 0, RESULTS, FIXED,
            "Words of a translation at most; 0: 10 and twice the source's length"),
    ROW_FOR(PAIRS, OPTION_F32, "length-penalty", length_penalty, "X", 0, 10, 0, RESULTS, FIXED,
            "With --beam: exponent of the length that log-probabilities are divided by"),
    ROW_FOR(TREES, OPTION_CHOICE, "classes-of", classes_of, "root|nodes", 0, 0, 0, COMMAND_EVAL, 0,
            "What the tables of classes count: roots, or all labelled nodes"),
    COUNT("count", count, 1, 1e6, 'n', COMMAND_GENERATE, 0, "Sentences to make"),
    REAL("temperature", temperature, 0, 100, COMMAND_GENERATE, 0,
         "Logits are divided by X: below 1 likely words become likelier; 0: always the likeliest word"),
    REAL("top-p", top_p, 0, 1, COMMAND_GENERATE, 0,
         "Draw from the likeliest words alone, as few as have this probability together"),
    TEXT("prompt", prompt, "TEXT", 'p', COMMAND_GENERATE, 0, "Words that every sentence begins with"),
    COUNT("max-words", most_words, 0, 1e6, 0, COMMAND_GENERATE, 0, "Words of a sentence at most, the prompt's not counted; 0: 100"),
    ROW(OPTION_U64, "seed", drawn_seed, "N", 0, 0, 0, COMMAND_GENERATE, 0, "Seed of what is drawn"),
    ROW(OPTION_FLAG, "json", json, NULL, 0, 0, 'j', COMMAND_PREDICT | COMMAND_GENERATE, 0,
        "Print a JSON object a line, with scores, and spans where there are some"),
    ROW_FOR(RANKED, OPTION_U32, "top", top, "N", 1, 1e6, 0, COMMAND_PREDICT, 0,
            "With --json: the N likeliest classes, and how likely they are; or the N best translations of the beam"),
    CHOICE("input-format", input_format, FORMS, 0, COMMAND_PREDICT, 0,
           "The format of what is read; auto: by the file's name, else by its first line"),
    CHOICE("output-format", output_format, "auto|text|columns|jsonl|csv|tsv", 0, COMMAND_PREDICT, 0,
           "The form of what is printed; auto: that of what is read"),
    ROW_FOR(GOLD | PAIRS, OPTION_FLAG, "gold", gold, NULL, 0, 0, 0, COMMAND_PREDICT, 0,
            "Print the labels or tags that the input has, too, before the network's; of a pair, how likely its target is"),
    CHOICE("on-error", on_error, "stop|skip", 0, COMMAND_PREDICT, 0,
           "A line that cannot be read: end, or print an empty line instead, and what is wrong on stderr"),
    ROW(OPTION_BYTES, "line-bytes", line_bytes, "BYTES", 0, 0, 0, COMMAND_PREDICT, 0,
        "The longest line that is read; a longer one is an error"),
    FLAG("json", json, 'j', TRAIN | COMMAND_EVAL | COMMAND_DOCTOR | COMMAND_CACHE | COMMAND_TUNE | COMMAND_CELL | PLANS, 0,
         "The last line on stdout is one JSON object"),
    FLAG("quiet", quiet, 'q', TRAIN | COMMAND_EVAL, 0, "Print nothing but errors and what --json asks for"),
    FLAG("all", all, 'a', COMMAND_PLAN, 0, "List every choice that the profile tries, a line each"),
    COUNT("vps-shown", vps_shown, 0, U32_MAX, 0, COMMAND_PLAN, 0, "Virtual processors in the last table; 0: all"),
    FLAG("report", report, 0, COMMAND_KERNEL, 0,
         "Compile it, and print what the compiler says of it instead of the source"),

    TEXT("prefix", prefix, "NAME", 0, COMMAND_EXPORT, 0, "With --c: what the functions' names begin with (default: net)"),
    CHOICE("precision", c_precision, "fp32|bf16|int8", 0, COMMAND_EXPORT, 0,
           "With --c: the weights' form; int8: with a scale for each row of a matrix and each entry of a table"),
    FLAG("losses", losses, 0, COMMAND_EXPORT, 0, "With --c: losses, too, which take labels"),
    ROW_FOR(GOLD & ~LATTICES, OPTION_FLAG, "main", main_program, NULL, 0, 0, 0, COMMAND_EXPORT, 0,
            "With --c: a whole program, which answers as predict does"),

    HEADING("Device:"),
    TEXT("device", device, device_names, 'd', ENGINE, RESUMED, device_help),
    COUNT("vps", vps, 0, 4096, 0, ENGINE, RESUMED, "Virtual processors; 0: one for every core allowed, or multiprocessor"),
    CHOICE("precision", precision, precision_names + 1, 0, ENGINE | PLANS, SAVED,
           "What products round their operands to; auto: bf16x3 where that is faster, else fp32"),
    CHOICE("communicator", communicator, "auto|mpi|none", 0, TRAIN, 0,
           "Train together with other processes, by MPI; auto: with those that mpirun or srun started"),

    HEADING_FOR(PLANS, "GPU:"),
    TEXT("arch", arch, "sm_90", 0, PLANS, 0,
         "The GPU's architecture; all: with --report, every one that can be compiled for (default: that of the GPU "
         "here, else sm_90)"),
    COUNT("sms", sms, 0, 4096, 0, PLANS, 0, "Streaming multiprocessors; 0: as many as the machine has"),
    COUNT("rpw", rpw, 0, 1024, 0, ENGINE | PLANS, RESUMED,
          "Consecutive rows of a matrix that are one virtual processor's; 0: measured while training"),
    COUNT("threads", threads, 0, 1024, 0, ENGINE | PLANS, RESUMED,
          "Threads of a virtual processor, a multiple of 32; 0: measured while training"),
    FLAG("no-cache", no_cache, 0, COMMAND_KERNEL, 0, "With --report: compile anew, and keep nothing on disk"),

    HEADING_FOR(PLANS, "Engine:"),
    COUNT("groups", groups, 0, 4096, 0, ENGINE | PLANS, RESUMED,
          "Groups of virtual processors that share out a batch's inputs; 0: by an estimate of cost"),
    COUNT("waves", waves, 0, U32_MAX, 0, ENGINE, RESUMED,
          "Parts of a batch that run one after the other in the same memory; 0: by what they keep (GPU: one)"),
    COUNT("slices", slices, 0, U32_MAX, 0, ENGINE, RESUMED,
          "Parts of each wave's classifiers that are trained one after the other in the same memory; 0: one"),
    CHOICE("policy", policy, policy_names, 0, ENGINE, RESUMED,
           "Which vertices run together where several cells read each other; auto: by profile"),
    FLAG("no-tuning", no_tuning, 0, ENGINE & ~COMMAND_TUNE, RESUMED,
         "Take the first choice, and measure nothing; CPU: that of a table"),
    CHOICE("caller", caller, "auto|works|free", 0, RUNS, 0, "Is the calling thread a virtual processor?"),
    FLAG("shard-tables", shard_tables, 0, TRAIN, RESUMED,
         "Together with other processes: each keeps a share of the rows of lookup tables, and gets those that a batch uses"),
    FLAG("portable", portable, 0, ENGINE, RESUMED, "Plain C instead of wide vectors"),
    FLAG("verify", verify, 0, ENGINE, 0, "Check every script before it runs (slow)"),
    ROW(OPTION_BYTES, "pool-bytes", pool_bytes, "BYTES", 0, 0, 0, ENGINE, RESUMED,
        "Memory for parameters and one batch, as 512M; 0: as much as offsets reach"),
    ROW(OPTION_U32, "watchdog-ms", watchdog_ms, "MS", 0, U32_MAX, 0, RUNS, 0,
        "A wait longer than this is an error; 0: 10000"),
};
/* clang-format on */

const cli_option *options_rows(const settings *s) {
    static cli_option rows[OPTIONS_MAX];
    size_t n = 0;
    list_policies();
    list_devices();
    if (s->network) {
        rows[n++] = (cli_option)HEADING("Network:");
        /* eval and predict take the network's own options from a checkpoint only */
        for (const option_row *r = s->network->options; r->name && n < OPTIONS_MAX - VPPS_COUNT(table) - 1; r++)
            rows[n++] = (cli_option){*r, 0, SHAPED, r->fixed ? FIXED : SAVED, true, 0, 0};
    }
    memcpy(rows + n, table, sizeof table);
    n += VPPS_COUNT(table);
    rows[n] = (cli_option){.key = 0};
    for (size_t i = 0; i < n; i++) {
        rows[i].number = i;
        if (!rows[i].key) rows[i].key = 0x100 + (int)i; /* larger than any character: the option has no short form */
    }
    return rows;
}

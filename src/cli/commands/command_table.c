/* command_table.c - the table of commands. */
#include "cli/commands/commands.h"

#include <limits.h>

/* clang-format off */
const command commands[] = {
    {"train", "to train and use networks", COMMAND_TRAIN, OPERAND_NETWORK, 0, command_train, "train a network", "",
     "Train a network. With no options: on generated data, with every core allowed."},
    {"eval", NULL, COMMAND_EVAL, OPERAND_NETWORK, 1, command_eval, "measure a checkpoint", "--model MODEL [FILE]",
     "Measure a checkpoint on FILE, in a form that it can be trained on (- is standard input), or on the test part of the data it was trained with."},
    {"predict", NULL, COMMAND_PREDICT, OPERAND_NETWORK, INT_MAX, command_predict, "label, tag or translate files, or standard input",
     "--model MODEL [FILE...]",
     "Read examples from files (- is standard input, and so is none), one a line, and print what a checkpoint's network says of them: bracketed trees (a "
     "label may be -1) with labels, sentences with tags, perplexities of sentences, translations."},
    {"generate", NULL, COMMAND_GENERATE, OPERAND_NETWORK, 0, command_generate, "make sentences with a language model",
     "--model MODEL", "Make sentences with a language model: draw one word after the other."},
    {"export", NULL, COMMAND_EXPORT, OPERAND_NETWORK, 0, command_export, "write a checkpoint's parameters alone, or C",
     "--model MODEL [--save FILE] [--c FILE.c]",
     "Write a checkpoint's parameters to a file, with the network's name, sizes and vocabularies: what predict and --init "
     "need, and nothing of the training. Or write its cells as C99 functions."},
    {"cell", "to look into networks", COMMAND_CELL, OPERAND_NETWORK, 0, command_cell, "print a network's cells as they are compiled", "",
     "Print the cells of the first training batch as they are compiled for the device's virtual processors: stages and "
     "their operations, what is kept, contributed and deferred, what it costs."},
    {"script", NULL, COMMAND_SCRIPT, OPERAND_NETWORK, 0, command_script, "print the device script of the first batch", "",
     "Print the device script of the first training batch."},
    {"plan", NULL, COMMAND_PLAN, OPERAND_NETWORK, 0, command_plan, "show how a network's matrices lie in a GPU's registers",
     "",
     "Show how the matrices of the cells of the first training batch would lie in the registers of a GPU, for the profile's "
     "first choice, or for all. Needs no GPU."},
    {"kernel", NULL, COMMAND_KERNEL, OPERAND_NETWORK, 0, command_kernel,
     "print a network's GPU kernel, or what the compiler says of it", "",
     "Print the CUDA C++ source of the kernel that the cells of the first training batch become; or compile it and report. "
     "Needs no GPU."},
    {"doctor", "for this machine", COMMAND_DOCTOR, OPERAND_NONE, 0, command_doctor, "show devices, processor, memory and libraries", "",
     "Show the machine: devices, processor, memory, libraries."},
    {"tune", NULL, COMMAND_TUNE, OPERAND_NETWORK, 0, command_tune, "find the fastest choice by training with each: a GPU's, or a CPU's",
     "", "Measure the choices that there are on batches of the training data."},
    {"cache", NULL, COMMAND_CACHE, OPERAND_ACTION, 0, command_cache, "list, clear or path: compiled kernels on disk", "list|clear|path",
     "List the compiled kernels on disk, remove them, or print where they are."},
    {0},
};
/* clang-format on */

const command *command_find(const char *name) {
    for (const command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}

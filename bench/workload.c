#include "workload.h"
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/input/corpus_read.h"

#include <getopt.h>
#include <string.h>

vpps_status workload_open(workload *w, const char *name, const char *data, const char *size) {
    const bool embeds = strcmp(name, "transformer-tagger") != 0; /* a transformer's embeddings have its hidden size */
    const char *words[] = {name,      "--hidden",    size, embeds ? "--embed" : "--hidden", size,
                           "--quiet", "--min-count", "1",  data ? "--train" : "--examples", data ? data : "2000"};
    *w = (workload){.s = {.command = COMMAND_TRAIN, .network = network_find(words[0])}};
    optind = 0; /* makes GNU's getopt start from the beginning */
    options_parse(&w->s, command_find("train"), VPPS_COUNT(words), (char **)(uintptr_t)words);
    options_complete(&w->s);
    return session_open_on(&w->x, &w->s, &w->c);
}

void workload_close(workload *w) {
    session_close(&w->x);
    corpus_close(&w->c);
}

vpps_status workload_batch(workload *w, uint32_t n, vpps_node *loss) {
    enum { MOST = 128 };
    const corpus_split *train = &w->c.split[SPLIT_TRAIN];
    uint32_t examples[MOST];
    n = vpps_min_u32(n, MOST);
    for (uint32_t i = 0; i < n; i++) examples[i] = train->examples[w->next++ % train->n_examples];
    return session_add_batch(&w->x, &w->c, train, examples, n, n, loss);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_doubles(double *x, size_t n) { qsort(x, n, sizeof *x, by_value); }

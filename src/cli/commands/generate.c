/* generate.c - `vpps generate`: draws sentences from a language model, word by word.
 *
 * Each sentence has its own random numbers, which depend only on --seed and the sentence's number: the result
 * depends neither on --batch nor on how many sentences are drawn. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"
#include "cli/input/task.h"
#include "cli/output/answers.h"
#include "cli/session/checkpoint.h"
#include "io/text.h"

#include <math.h>

enum { DEFAULT_WORDS = 100 };

typedef struct sentence {
    uint64_t random;
    uint32_t *words; /* the prompt's words, then those drawn */
    size_t n;
    double log_probability; /* log-probability of the drawn words, without temperature and --top-p */
    uint32_t fed;           /* number of words that the network has read */
    bool ended;
    net_decoding d;
    float *states[NET_STATES];
} sentence;

typedef struct choice {
    double p;
    uint32_t word;
} choice;

typedef struct generator {
    const settings *s;
    session x;
    corpus c;
    uint32_t end_word, max_words;
    uint32_t *prompt, n_prompt;
    choice *choices; /* the classes to draw a word from, one entry per class */
    float *logits;   /* logits of a batch's sentences, one after the other */
} generator;

/* ---------------------------------------------------------------- drawing */

static int compare_choices(const void *a, const void *b) {
    const choice *x = a, *y = b;
    if (x->p != y->p) return x->p > y->p ? -1 : 1;
    return x->word < y->word ? -1 : x->word > y->word;
}

/* Draws the next word by temperature and --top-p, never <unk>, which stands for unknown words. The nucleus is that of
 * Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", section 3.1. */
static uint32_t draw(const generator *g, const float *logits, uint64_t *random) {
    const uint32_t n = g->c.classes;
    const double t = (double)g->s->temperature;
    uint32_t best = n > 1 ? 1 : 0;
    for (uint32_t i = best; i < n; i++) best = logits[i] > logits[best] ? i : best;
    if (t <= 0) return best;
    double total = 0;
    for (uint32_t i = 1; i < n; i++) {
        g->choices[i - 1] = (choice){exp(((double)logits[i] - (double)logits[best]) / t), i};
        total += g->choices[i - 1].p;
    }
    uint32_t kept = n - 1;
    if (g->s->top_p < 1) {
        const double most = (double)g->s->top_p * total;
        qsort(g->choices, kept, sizeof *g->choices, compare_choices);
        for (kept = 0, total = 0; kept < n - 1 && (!kept || total < most);) total += g->choices[kept++].p;
    }
    double left = (double)vpps_random_unit(random) * total;
    for (uint32_t i = 0; i < kept; i++) {
        left -= g->choices[i].p;
        if (left < 0) return g->choices[i].word;
    }
    return kept ? g->choices[kept - 1].word : best;
}

/* ---------------------------------------------------------------- steps */

/* Adds a sentence's next step to the graph, and requests its states and logits. */
static vpps_status add_step(generator *g, sentence *s, float *logits, vpps_node *nodes, float **outs, uint32_t *n) {
    const uint32_t hidden = g->s->net.hidden;
    for (uint32_t i = 0; i < s->d.n_states; i++) s->d.states[i] = vpps_input(g->x.graph, hidden, 1, s->states[i]);
    const uint32_t word = s->fed ? s->words[s->fed - 1] : g->end_word; /* the word that the network now reads */
    VPPS_TRY(g->s->network->decode(g->x.net, g->x.graph, word, &s->d));
    s->fed++;
    for (uint32_t i = 0; i < s->d.n_states; i++) {
        if (!s->states[i]) s->states[i] = malloc(hidden * sizeof(float));
        if (!s->states[i]) return vpps_fail(VPPS_MEMORY, "no memory for a sentence");
        nodes[*n] = s->d.states[i];
        outs[(*n)++] = s->states[i];
    }
    nodes[*n] = s->d.logits;
    outs[(*n)++] = logits;
    return VPPS_OK;
}

static vpps_status take_word(generator *g, sentence *s, const float *logits) {
    if (s->fed <= g->n_prompt) return VPPS_OK; /* the next word is given by the prompt */
    const uint32_t word = draw(g, logits, &s->random);
    const double nll = answer_nll(logits, g->c.classes, word);
    if (!isfinite(nll)) {
        g->x.nonfinite = true;
        return session_check_scores(&g->x);
    }
    s->log_probability -= nll;
    if (word == g->end_word) {
        s->ended = true;
        return VPPS_OK;
    }
    if (!VPPS_RESERVE(s->words, s->n + 1)) return vpps_fail(VPPS_MEMORY, "no memory for a sentence");
    s->words[s->n++] = word;
    s->ended = s->n - g->n_prompt >= g->max_words;
    return VPPS_OK;
}

/* Adds one word to each unfinished sentence; *live: number of these sentences. */
static vpps_status step(generator *g, sentence *sentences, uint32_t n, vpps_node *nodes, float **outs, uint32_t *live) {
    uint32_t n_nodes = 0;
    *live = 0;
    vpps_graph_clear(g->x.graph);
    for (uint32_t i = 0; i < n; i++) {
        if (sentences[i].ended) continue;
        VPPS_TRY(add_step(g, &sentences[i], g->logits + (size_t)i * g->c.classes, nodes, outs, &n_nodes));
        ++*live;
    }
    if (!*live) return VPPS_OK;
    VPPS_TRY(vpps_forward(g->x.handle, g->x.graph, n_nodes, nodes, outs));
    for (uint32_t i = 0; i < n; i++)
        if (!sentences[i].ended) VPPS_TRY(take_word(g, &sentences[i], g->logits + (size_t)i * g->c.classes));
    return VPPS_OK;
}

/* ---------------------------------------------------------------- sentences */

static vpps_status print_sentence(const generator *g, const sentence *s) {
    VPPS_FREED char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    for (size_t k = 0; f && k < s->n; k++)
        fprintf(f, "%s%s", k ? " " : "", vpps_vocab_word(g->c.vocab[VOCAB_WORDS], s->words[k]));
    VPPS_TRY(vpps_text_end(f, VPPS_OK, &text));
    if (g->s->json)
        return report_json_line(
            json_pack("{so so}", "text", answer_text(text, len), "log_probability", report_number(s->log_probability)),
            stdout);
    puts(text);
    return flush_stdout();
}

static vpps_status make_batch(generator *g, uint32_t first, uint32_t n) {
    sentence *sentences = calloc(n, sizeof *sentences);
    VPPS_FREED vpps_node *nodes = vpps_scratch((size_t)n * (NET_STATES + 1) * sizeof *nodes);
    VPPS_FREED float **outs = vpps_scratch((size_t)n * (NET_STATES + 1) * sizeof *outs);
    bool ok = sentences && nodes && outs;
    for (uint32_t i = 0; ok && i < n; i++) {
        sentence *s = &sentences[i];
        s->random = vpps_mix64(vpps_mix64(g->s->drawn_seed) + first + i);
        ok = VPPS_RESERVE(s->words, (size_t)g->n_prompt + 1);
        for (; ok && s->n < g->n_prompt; s->n++) s->words[s->n] = g->prompt[s->n];
    }
    vpps_status status = ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for %u sentences", n);
    for (uint32_t live = n; live && status == VPPS_OK;) status = step(g, sentences, n, nodes, outs, &live);
    for (uint32_t i = 0; i < n && status == VPPS_OK; i++) status = print_sentence(g, &sentences[i]);
    for (uint32_t i = 0; sentences && i < n; i++) {
        VPPS_FREE_ARRAYS(sentences[i].words);
        for (int k = 0; k < NET_STATES; k++) free(sentences[i].states[k]);
    }
    free(sentences);
    return status;
}

/* ---------------------------------------------------------------- the command */

static vpps_status read_prompt(generator *g) {
    const char *at = g->s->prompt;
    vpps_word word;
    const vpps_vocab *words = g->c.vocab[VOCAB_WORDS];
    if (!at) return VPPS_OK;
    g->prompt = malloc((strlen(at) + 1) * sizeof *g->prompt);
    if (!g->prompt) return vpps_fail(VPPS_MEMORY, "no memory for the prompt");
    const char *end = at + strlen(at);
    while (vpps_text_next_word(&at, end, &word)) {
        const uint32_t id = vpps_vocab_find(words, word.at, word.len);
        if (id == VPPS_NO_WORD || id == g->end_word)
            return vpps_fail(VPPS_ARGUMENT,
                             id == VPPS_NO_WORD ? "--prompt: %s does not know the word '%.*s'"
                                                : "--prompt: in %s the word '%.*s' marks the end of a sentence",
                             g->s->model, (int)(word.len < 64 ? word.len : 64), word.at);
        g->prompt[g->n_prompt++] = id;
    }
    return VPPS_OK;
}

static vpps_status generate(generator *g, settings *s) {
    VPPS_TRY(open_trained(&g->x, s, &g->c, false));
    g->end_word = vpps_vocab_find(g->c.vocab[VOCAB_WORDS], END_WORD, sizeof END_WORD - 1);
    if (g->end_word == VPPS_NO_WORD) g->end_word = 0;
    VPPS_TRY(read_prompt(g));
    g->max_words = s->most_words ? s->most_words : DEFAULT_WORDS;
    g->choices = malloc(((size_t)g->c.classes + 1) * sizeof *g->choices);
    g->logits = malloc((size_t)s->batch * g->c.classes * sizeof *g->logits);
    if (!g->choices || !g->logits) return vpps_fail(VPPS_MEMORY, "no memory for %u words", g->c.classes);
    for (uint32_t i = 0; i < s->count; i += s->batch) VPPS_TRY(make_batch(g, i, vpps_min_u32(s->batch, s->count - i)));
    return VPPS_OK;
}

int command_generate(settings *s) {
    if (s->network->kind != NET_TEXT)
        return report_usage("generate", "%s is no language model; lstm-lm is one", s->network->name);
    generator g = {.s = s};
    const int code = exit_code(generate(&g, s));
    VPPS_FREE(g.prompt, g.choices, g.logits);
    session_close(&g.x);
    corpus_close(&g.c);
    return code;
}

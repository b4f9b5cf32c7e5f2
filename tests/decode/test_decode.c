/* test_decode.c - greedy search and beam search: on chains with known best translations, and, for every network of pairs, compared with searches that
 * examine all translations. */
#include "chain.h"
#include "cli/session/decode.h"
#include "common/training.h"
#include "graph/model.h"
#include "oracle.h"

enum { MOST_WORDS = 5, SOURCES = 6, KINDS = 3, NO_FAILURE = 1000 };

/* ---------------------------------------------------------------- sources */

typedef struct given {
    net_kind kind;
    uint32_t n_words[SOURCES], words[SOURCES][MOST_WORDS];
    uint32_t next, fails_at;
    /* holds one example at a time */
    uint32_t here[MOST_WORDS + 1], tags[MOST_WORDS + 1], first_arc[MOST_WORDS + 2];
    vpps_lattice_arc arcs[2 * MOST_WORDS];
    vpps_lattice lattice;
} given;

/* Makes a lattice of characters 1 to n, of which every two neighbours are also a word. Node 0's tag stands for the first word. */
static void make_lattice(given *f, uint32_t n) {
    uint32_t k = 0;
    f->first_arc[0] = f->first_arc[1] = 0;
    for (uint32_t i = 0; i < n; i++) {
        f->arcs[k++] = (vpps_lattice_arc){i, f->here[i], true};
        if (i) f->arcs[k++] = (vpps_lattice_arc){i - 1, (f->here[i - 1] + f->here[i]) % 4, false};
        f->first_arc[i + 2] = k;
    }
    f->tags[0] = f->here[0];
    f->lattice = (vpps_lattice){n + 1, f->tags, f->first_arc, f->arcs};
}

/* Gives each example once, in order; the preceding example is overwritten. */
static vpps_status give(void *context, uint32_t i, net_example *x) {
    given *f = context;
    if (i == f->fails_at) return vpps_fail(VPPS_IO, "no source %u", i);
    ck_assert_uint_eq(i, f->next++);
    memset(f->here, 0xff, sizeof f->here);
    memset(f->arcs, 0xff, sizeof f->arcs);
    memcpy(f->here, f->words[i], f->n_words[i] * sizeof *f->here);
    if (f->kind == NET_LATTICE_PAIRS) {
        make_lattice(f, f->n_words[i]);
        x->lattice = &f->lattice;
    } else {
        x->sentence = (vpps_sentence){.words = f->here, .n_words = f->n_words[i]};
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- a network */

typedef struct fixture {
    vpps_model *model;
    given given;
    decoder d;
    decoded out;
} fixture;

/* Opens a network. With `draw`, draws parameters that make some words much likelier than others. */
static void open(fixture *f, const network *net, const net_config *config, bool draw) {
    vpps_options options = default_options();
    options.vps = 1;
    *f = (fixture){.given = {.kind = net->kind, .fails_at = NO_FAILURE},
                   .d = {.net = net, .classes = config->classes, .options = {.beam = 1}}};
    TEST_OK(vpps_model_create(&f->model, test_seed()));
    TEST_OK(network_create(net, &f->d.instance, f->model, config));
    uint64_t random = test_seed() + 5;
    for (uint32_t p = 0; draw && p < vpps_param_count(f->model); p++) {
        const vpps_parameter_data *of = &f->model->params[p];
        for (size_t i = 0; i < vpps_param_elems(of); i++) of->values[i] = 3 * vpps_random_unit(&random) - 1.5f;
    }
    TEST_OK(vpps_graph_create(&f->d.graph, f->model));
    TEST_OK(vpps_handle_create(&f->d.handle, f->model, &options));
}

static void close(fixture *f) {
    decoded_destroy(&f->out);
    vpps_handle_destroy(f->d.handle);
    vpps_graph_destroy(f->d.graph);
    network_destroy(f->d.instance);
    vpps_model_destroy(f->model);
}

static vpps_status search(fixture *f, uint32_t n, uint32_t beam, uint32_t max_words, double alpha) {
    decoded_destroy(&f->out);
    f->given.next = 0;
    f->d.options = (decoder_options){beam, max_words, (float)alpha, 1};
    return decode_batch(&f->d, n, give, &f->given, &f->out);
}

static uint32_t n_words(const decoded *d, uint32_t i) { return (uint32_t)(d->first[i + 1] - d->first[i]); }

/* Checks translation i of the latest search; words end with -1. */
static void is(const fixture *f, uint32_t i, const int *words, double score) {
    uint32_t n = 0;
    for (; words[n] >= 0; n++) {
        ck_assert_uint_lt(n, n_words(&f->out, i));
        ck_assert_int_eq((int)f->out.words[f->out.first[i] + n], words[n]);
    }
    ck_assert_uint_eq(n_words(&f->out, i), n);
    ck_assert_double_eq_tol(f->out.scores[i], score, 1e-5);
}

/* ---------------------------------------------------------------- chains */

static void open_chains(fixture *f, const network *net) {
    const net_config config = {.classes = CHAIN_CLASSES};
    static const uint32_t which[SOURCES] = {CHAIN_TRAP, CHAIN_LENGTHS, CHAIN_EVEN, CHAIN_LENGTHS, CHAIN_TRAP};
    open(f, net, &config, false);
    for (uint32_t i = 0; i < SOURCES; i++) {
        f->given.n_words[i] = 1;
        f->given.words[i][0] = which[i];
    }
}

TEST_GROUP("chains");

TEST_EACH(greedy_search_falls_into_the_trap, 0, 2) {
    AT_END(close) fixture f;
    open_chains(&f, _i ? &lattice_chain : &chain);
    TEST_OK(search(&f, 1, 1, 9, 0));
    is(&f, 0, (const int[]){1, -1}, log(0.55 * 0.4));
    TEST_OK(search(&f, 1, 2, 9, 0));
    is(&f, 0, (const int[]){2, -1}, log(0.45 * 0.9));
}

/* The end word counts: the sentences have 2 and 3 words. Greedy search ignores lengths. */
TEST(length_penalty_favours_long_sentences) {
    const double shorter = log(0.5 * 0.5), longer = log(0.5 * 0.7 * 0.7);
    AT_END(close) fixture f;
    open_chains(&f, &chain);
    f.given.words[0][0] = CHAIN_LENGTHS;
    TEST_OK(search(&f, 1, 4, 9, 0));
    is(&f, 0, (const int[]){1, -1}, shorter);
    TEST_OK(search(&f, 1, 4, 9, 1));
    is(&f, 0, (const int[]){2, 3, -1}, longer / (8.0 / 6));
    TEST_OK(search(&f, 1, 4, 9, 0.6));
    is(&f, 0, (const int[]){2, 3, -1}, longer / pow(8.0 / 6, 0.6));
    TEST_OK(search(&f, 1, 4, 9, 0.01));
    is(&f, 0, (const int[]){1, -1}, shorter / pow(7.0 / 6, 0.01));
    TEST_OK(search(&f, 1, 1, 9, 1));
    is(&f, 0, (const int[]){1, -1}, shorter);
}

/* The two best hypotheses of two words end; the best one of three words follows from worse ones. */
TEST(beams_stay_full) {
    AT_END(close) fixture f;
    open_chains(&f, &chain);
    TEST_OK(search(&f, 1, 2, 3, 10));
    is(&f, 0, (const int[]){1, 2, -1}, log(0.55 * 0.2 * 0.9) / pow(8.0 / 6, 10));
}

/* Of equal scores, the word with the lower id and the earlier hypothesis win. */
TEST(ties) {
    const double word = log(0.25);
    AT_END(close) fixture f;
    open_chains(&f, &chain);
    f.given.words[0][0] = CHAIN_EVEN;
    for (uint32_t beam = 1; beam <= 3; beam++) { /* the end word comes first */
        TEST_OK(search(&f, 1, beam, 3, 0));
        is(&f, 0, (const int[]){-1}, word);
    }
    f.d.end_word = 1; /* second */
    TEST_OK(search(&f, 1, 1, 3, 0));
    is(&f, 0, (const int[]){0, 0, 0, -1}, 3 * word);
    TEST_OK(search(&f, 1, 2, 3, 0));
    is(&f, 0, (const int[]){-1}, word);
    TEST_OK(search(&f, 1, 8, 2, 10)); /* two words are better than one: word 0, the end word, no other */
    is(&f, 0, (const int[]){0, -1}, 2 * word / pow(7.0 / 6, 10));
    f.d.end_word = 3; /* beyond the beam, until the end */
    TEST_OK(search(&f, 1, 3, 3, 0));
    is(&f, 0, (const int[]){0, 0, 0, -1}, 3 * word);
}

TEST_EACH(most_words, 0, 2) {
    AT_END(close) fixture f;
    open_chains(&f, _i ? &lattice_chain : &chain);
    f.d.end_word = 3; /* never reached */
    for (uint32_t i = 0; i < 3; i++) {
        f.given.n_words[i] = i + 1;
        f.given.words[i][0] = CHAIN_EVEN;
    }
    TEST_OK(search(&f, 3, 1, 0, 0));
    for (uint32_t i = 0; i < 3; i++) ck_assert_uint_eq(n_words(&f.out, i), 2 * (i + 1) + 10);
    TEST_OK(search(&f, 3, 2, 7, 1));
    for (uint32_t i = 0; i < 3; i++) /* (5 + 7) / 6 */
        is(&f, i, (const int[]){0, 0, 0, 0, 0, 0, 0, -1}, 7 * log(0.25) / 2);
    f.d.end_word = 0; /* at most one word: a word without the end word, or the end word alone */
    f.given.words[0][0] = CHAIN_TRAP;
    TEST_OK(search(&f, 1, 2, 1, 0));
    is(&f, 0, (const int[]){1, -1}, log(0.55));
    TEST_OK(search(&f, 1, 3, 1, 0));
    ck_assert_uint_eq(n_words(&f.out, 0), 0);
}

/* Finished sources, and hypotheses that have lost, need no further steps. */
TEST(no_step_too_many) {
    AT_END(close) fixture f;
    open_chains(&f, &chain);
    chain_net *c = f.d.instance;
    TEST_OK(search(&f, 5, 1, 50, 0));
    uint32_t words = 0;
    for (uint32_t i = 0; i < 5; i++) words += n_words(&f.out, i) + 1;
    ck_assert_uint_eq(words, 2 + 2 + 1 + 2 + 2);
    ck_assert_uint_eq(c->n_decoded, words);

    c->n_decoded = 0; /* 0, then 1 and 2; then .405 exceeds all that 1 can reach */
    TEST_OK(search(&f, 1, 2, 50, 0));
    ck_assert_uint_eq(c->n_decoded, 3);
}

TEST(failures) {
    AT_END(close) fixture f;
    open_chains(&f, &chain);
    f.d.classes = CHAIN_CLASSES + 1;
    TEST_FAILS(search(&f, 1, 2, 9, 0), VPPS_SHAPE, "4 x 1 logits");
    f.d.classes = CHAIN_CLASSES;
    f.given.fails_at = 2;
    TEST_FAILS(search(&f, 4, 2, 9, 0), VPPS_IO, "no source 2");
    f.given.fails_at = NO_FAILURE;
    f.given.words[3][0] = CHAIN_INFINITE;
    TEST_FAILS(search(&f, 4, 2, 9, 0), VPPS_NONFINITE, "not finite");
    ck_assert(!f.out.words && !f.out.first && !f.out.scores && !f.out.n);

    TEST_OK(search(&f, 3, 2, 9, 0)); /* and later searches work */
    is(&f, 0, (const int[]){2, -1}, log(0.45 * 0.9));
    TEST_OK(search(&f, 0, 2, 9, 0));
    ck_assert_uint_eq(f.out.n, 0);
}

/* ---------------------------------------------------------------- every network of pairs */

/* Returns network number `number`, from 0, among those that translate pairs; NULL: there are fewer. */
static const network *network_of_pairs(int number) {
    for (const network *const *n = networks; *n; n++)
        if (((*n)->kind == NET_PAIRS || (*n)->kind == NET_LATTICE_PAIRS) && number-- == 0) return *n;
    return NULL;
}

static int n_rows(void) {
    int n = 0;
    while (network_of_pairs(n)) n++;
    return KINDS * n;
}

/* Opens network row / KINDS of pairs: without attention, with attention, with input feeding too. Sources have 1 to MOST_WORDS words. */
static void open_row(fixture *f, int row) {
    const network *net = network_of_pairs(row / KINDS);
    net_config config = net->defaults;
    config.words = config.characters = 4;
    config.classes = ORACLE_CLASSES;
    config.embed = 3;
    config.hidden = 5;
    config.attention = row % KINDS > 0;
    config.input_feeding = row % KINDS > 1;
    if (net->kind == NET_PAIRS) config.layers = 1 + (uint32_t)row % 2;
    open(f, net, &config, true);
    f->d.end_word = ORACLE_END;
    uint64_t random = test_seed() + 9;
    for (uint32_t i = 0; i < SOURCES; i++) {
        f->given.n_words[i] = 1 + i % MOST_WORDS;
        for (uint32_t k = 0; k < MOST_WORDS; k++) f->given.words[i][k] = vpps_random_below(&random, 4);
    }
}

static void open_oracles(fixture *f, oracle *oracles) {
    f->given.next = 0;
    for (uint32_t i = 0; i < SOURCES; i++) {
        net_example x = {0};
        TEST_OK(give(&f->given, i, &x));
        oracle_open(&oracles[i], f->d.handle, f->d.graph, f->d.net, f->d.instance, &x);
    }
}

/* Compares the scores of the words, since rounding may exchange words of equal scores. */
static void agrees(const fixture *f, const oracle *o, uint32_t i, double alpha, double want) {
    const double score = f->out.scores[i];
    const double worth = oracle_score(o, f->out.words + f->out.first[i], n_words(&f->out, i), alpha);
    ck_assert_msg(fabs(score - want) < 1e-4 && fabs(score - worth) < 1e-4,
                  "%s, source %u: score %.9g of words worth %.9g; expected %.9g", f->d.net->name, i, score, worth,
                  want);
}

static const double alphas[] = {0, 0.6, 1.5};

TEST_GROUP("networks", .seconds = 60);

TEST_EACH(searches_find_what_they_should, 0, n_rows()) {
    enum { ALL = 400 };
    AT_END(close) fixture f;
    oracle oracles[SOURCES];
    open_row(&f, _i);
    open_oracles(&f, oracles);
    TEST_OK(search(&f, SOURCES, 1, ORACLE_WORDS, 0.6));
    for (uint32_t i = 0; i < SOURCES; i++) agrees(&f, &oracles[i], i, 0, oracle_greedy(&oracles[i]));
    for (size_t a = 0; a < VPPS_COUNT(alphas); a++) {
        TEST_OK(search(&f, SOURCES, ALL, ORACLE_WORDS, alphas[a]));
        for (uint32_t i = 0; i < SOURCES; i++) {
            double scores[ORACLE_PREFIXES];
            oracle_rank(&oracles[i], alphas[a], scores);
            agrees(&f, &oracles[i], i, alphas[a], scores[0]);
        }
        for (uint32_t beam = 2; beam < 6; beam++) {
            TEST_OK(search(&f, SOURCES, beam, ORACLE_WORDS, alphas[a]));
            for (uint32_t i = 0; i < SOURCES; i++)
                agrees(&f, &oracles[i], i, alphas[a], oracle_beam(&oracles[i], beam, alphas[a]));
        }
    }
}

/* A beam that holds every sentence lists the best ones, each once, the best first. */
TEST_EACH(the_best_ones_are_ranked, 0, n_rows()) {
    enum { ALL = 400, BEST = 12 };
    AT_END(close) fixture f;
    oracle oracles[SOURCES];
    open_row(&f, _i);
    open_oracles(&f, oracles);
    for (size_t a = 0; a < VPPS_COUNT(alphas); a++) {
        f.d.options = (decoder_options){ALL, ORACLE_WORDS, (float)alphas[a], BEST};
        f.given.next = 0;
        decoded_destroy(&f.out);
        TEST_OK(decode_batch(&f.d, SOURCES, give, &f.given, &f.out));
        for (uint32_t i = 0; i < SOURCES; i++) {
            double scores[ORACLE_PREFIXES];
            oracle_rank(&oracles[i], alphas[a], scores);
            ck_assert_uint_eq(f.out.of[i + 1] - f.out.of[i], BEST);
            for (size_t k = f.out.of[i], n = 0; k < f.out.of[i + 1]; k++, n++) {
                const uint32_t words = (uint32_t)(f.out.first[k + 1] - f.out.first[k]);
                const double worth = oracle_score(&oracles[i], f.out.words + f.out.first[k], words, alphas[a]);
                ck_assert_msg(fabs(f.out.scores[k] - worth) < 1e-4 && fabs(worth - scores[n]) < 1e-4,
                              "%s, source %u, place %zu: score %.9g of words worth %.9g; expected %.9g", f.d.net->name,
                              i, n, f.out.scores[k], worth, scores[n]);
                for (size_t l = f.out.of[i]; l < k; l++)
                    ck_assert(f.out.first[l + 1] - f.out.first[l] != words ||
                              memcmp(f.out.words + f.out.first[l], f.out.words + f.out.first[k],
                                     words * sizeof *f.out.words) != 0);
            }
        }
    }
    decoded_destroy(&f.out);
}

/* Translates sources of all lengths together, and each alone. */
TEST_EACH(a_batch_is_its_sources, 0, n_rows()) {
    AT_END(close) fixture f;
    open_row(&f, _i);
    const given all = f.given;
    for (uint32_t beam = 1; beam < 4; beam++) {
        f.given = all;
        TEST_OK(search(&f, SOURCES, beam, 0, 0.6));
        decoded together = f.out;
        f.out = (decoded){0};
        for (uint32_t i = 0; i < SOURCES; i++) {
            f.given.n_words[0] = all.n_words[i];
            memcpy(f.given.words[0], all.words[i], sizeof all.words[i]);
            TEST_OK(search(&f, 1, beam, 0, 0.6));
            ck_assert_uint_eq(n_words(&f.out, 0), n_words(&together, i));
            ck_assert_mem_eq(f.out.words, together.words + together.first[i], n_words(&f.out, 0) * sizeof *f.out.words);
            ck_assert_double_eq_tol(f.out.scores[0], together.scores[i], 1e-4);
        }
        decoded_destroy(&together);
    }
}

/* Greedy search by the device equals that by the host, which needs the logits of every word; it takes one forward pass. */
TEST_EACH(the_device_decides_as_the_host_does, 0, n_rows()) {
    AT_END(close) fixture f;
    open_row(&f, _i);
    const network *net = f.d.net;
    network by_host = *net;
    by_host.greedy = NULL;
    static const uint32_t limits[] = {1, 4, 0, 1001}; /* so many do not fit the pool together */
    for (size_t k = 0; k < VPPS_COUNT(limits); k++) {
        f.d.net = &by_host;
        TEST_OK(search(&f, SOURCES, 1, limits[k], 0));
        decoded want = f.out;
        f.out = (decoded){0};
        f.d.net = net;
        f.d.options = (decoder_options){.beam = 1, .max_words = limits[k]};
        ck_assert_int_eq(decode_by_device(&f.d), limits[k] != 1001);
        TEST_OK(search(&f, SOURCES, 1, limits[k], 0));
        ck_assert_mem_eq(f.out.first, want.first, (SOURCES + 1) * sizeof *want.first);
        ck_assert_mem_eq(f.out.words, want.words, want.first[SOURCES] * sizeof *want.words);
        for (uint32_t i = 0; i < SOURCES; i++)
            ck_assert_double_eq_tol(f.out.scores[i], want.scores[i], 1e-4 * (1 + fabs(want.scores[i])));
        decoded_destroy(&want);
    }
}

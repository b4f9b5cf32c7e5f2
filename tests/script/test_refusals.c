/* test_refusals.c - scripts, cells and their programs with one field damaged, and the refusals that the checker must answer with: each at
 * least once. A refusal that is taken out leaves its row unmet. Those that no single field leads to are in test_faults.c and
 * test_cell_faults.c. */
#include "cell/program.h"
#include "common/training.h"
#include "faults.h"
#include "subjects.h"

static const char *const refusals[] = {
    "its list of contributions has a negative length",
    "it is no vertex that the request needs",
    "it is there twice",
    "it is a vertex of another cell",
    "and group",
    "members, but no lists",
    "was compiled for groups of",
    "its counts make no sense",
    "is needed, but in no block",
    "is no output that its vertex's cell was compiled to offer",
    "its operands do not fit its instruction",
    "it is no stack of members, nor a member's part of one",
    "a part does not fit",
    "its parts have other rows",
    "its part is outside",
    "what it is decided by does not fit",
    "it is no entry of a table, by a number",
    "it is no matrix of the model",
    "its rows are shared out, but it wants more than rows",
    "it is no instruction",
    "an instruction's result is in no slot",
    "it reads rows that other VPs make in the same stage",
    "it reads a share where it wants the sum",
    "a factor of the product is read in another way",
    "a transposed product starts from something",
    "what the product starts from does not fit",
    "the product's bias does not fit",
    "a factor of the product does not fit",
    "a product of nothing",
    "there is no such lookup",
    "it is no lookup of a table",
    "it is made of a value that there is not",
    "an operand is not as its value",
    "rows are shared out of what has columns",
    "it reads a slot that does not hold what it is made of",
    "it reads other rows than the slot has",
    "it reads what is not there",
    "it reads what its stage, or a later one, makes",
    "is added twice",
    "what earlier waves added up is lost",
    "there is no table",
    "; it has",
    "the loss is the sum of other terms",
    "terms of the loss; expected at most",
    "is not in the parameters' gradients yet",
    "contributions are not added up yet",
    "a norm that nobody asks for",
    "'s gradients without a barrier between",
    "it reads the loss without a barrier between",
    "an update that nobody asks for",
    "is read where it does not lie",
    "is overwritten before it is read",
    "never runs stage",
    "terms are added up",
    "never updates its parameters",
    "it is made in another stage, or twice",
    "it is made in another shape",
    "its slot is not like it",
    "it is kept in another place, or twice",
    "its shares are kept as a whole, or the reverse",
    "it is kept in another list's record",
    "it is in the record of a pass, but is read after it",
    "it is kept outside the record",
    "it is kept in the place of what stays",
    "a stage keeps two values in one place",
    "it is contributed to something else, or twice",
    "its shares are contributed as a whole, or the reverse",
    "its rows are not dealt as they are made",
    "a product goes nowhere",
    "it stores another value",
    "it is kept nowhere",
    "it is contributed to nothing",
    "it loads another value",
    "data without any",
    "there is no such gradient",
    "positions of what finds none",
    "positions do not follow what found them",
    "it is made by an instruction",
    "it is made in the slot of what it is made of",
    "it is made by a product",
    "a product is made in the slot of its factor",
    "it is made before what it is made of",
    "its step makes no sense",
    "its step is unknown",
    "it is kept, but not stored",
    "lists other values than it makes",
    "is shared out in two ways",
    "a share is read where the sum is wanted",
    "an input is no output",
    "it is contributed, but by no step",
    "it is contributed to a list, but is none, or the reverse",
    "a stage makes what is there",
    "there is no such input",
    "it is no vector of the model",
    "its description makes no sense",
    "its shape is another",
    "no stage makes it",
    "it has as many inputs as another op",
    "its inputs are others",
    ": lookup",
    "is no node of the vertex",
    "is no value of the vertex",
    "is not what node",
    "its condition is no scalar input",
    "is otherwise no input of its shape",
    "is not what it should be where the condition",
    "is of nothing",
    "is no vector's, and no matrix's",
    "'s gradient is no value, or nobody asks for it",
    "'s gradient is not what the vertex's derivative asks for",
    "is not what the vertex's derivative asks for",
    "its list has another length",
    "it reads another kept value",
    "it has no such index",
    "it looks up an entry that its table has not",
    "it looks up another entry",
    "a word of its record is another",
    "its data are others",
    "its list does not begin, or not end, where the block says",
    "gets no gradients of entries",
    "is there twice, or gets no gradient",
    "entries; ",
    "tables; ",
    "inference has tables with gradients",
    "'s gradient number",
    "has run this stage",
    "has no such stage, or not so many vertices",
    "is added to the gradient of what is no such term of the loss",
    "is outside the pool",
    "a gradient is the sum of what does not belong to it: word",
    "is taken twice",
    "the header's step or dropout key is not the one asked for",
    "the header asks for an update",
    "the header's optimiser is not the one asked for",
    "what parameters step by is not what is asked for",
    "the header's guard is not as asked for",
    "the magic word is wrong",
    "words, there are",
    "groups, the machine has",
    "words of a pool of",
    "it has more barriers than words",
    "it is no whole task",
    "END signals",
    "'s tasks are words",
    "there is no barrier",
    "signals, barrier",
    ": task ",
    "signals, and no more come",
    "without a barrier between",
    "OUTER: gradients after their norm or update",
    "ENTRIES: gradients after their norm or update",
    "OUTER: there is no block",
    " is of group ",
    "of the pool are asked for",
    "is of the same parameter as another",
    "is of the same node as another",
    "OUTER: block",
    "STAGE: there is no block",
    "it is an output, but not kept",
    "a parameter's gradient wants it, but it is not kept",
    "it is a contribution's factor, but not kept",
    "it is contributed as factors of something else",
    "has no factors",
    "a pair at",
    "hold no factors of its",
    "is to nothing",
    "lies at",
    "its gradient gets",
    "outer product 0 does not fit",
    "the group's tasks do not end",
    "words 4294967295 to",
};

static bool met[VPPS_COUNT(refusals)];

/* Asks the checker, and marks the rows that its answer has. */
static void ask(const subject *s) {
    if (verify_subject(s) == VPPS_OK) return;
    const char *message = vpps_error_message();
    for (size_t i = 0; i < VPPS_COUNT(refusals); i++)
        if (!met[i]) met[i] = strstr(message, refusals[i]) != NULL;
}

/* ---------------------------------------------------------------- damage */

static uint32_t every = 1, turn; /* one damage out of `every` is done */

/* Gives a field of an item other values, one after the other. */
static void damage(const subject *s, void *item, size_t bytes, const cell_field *f) {
    uint8_t before[sizeof(vpps_compiled_cell)];
    if (turn++ % every) return;
    memcpy(before, item, bytes);
    const uint64_t right = get_field(item, f), others[] = {right ^ 1, right + 1, right - 1, 0, UINT64_MAX};
    for (size_t k = 0; k < (f->domain == DOMAIN_BOOL ? 1 : VPPS_COUNT(others)); k++) {
        set_field(item, f, others[k]);
        ask(s);
    }
    for (uint32_t k = 0; k < 10 && f->bytes == 1 && f->domain != DOMAIN_BOOL; k++) {
        set_field(item, f, k);
        ask(s);
    }
    memcpy(item, before, bytes);
}

static void damage_cell(const subject *s, vpps_compiled_cell *c) {
    for (size_t k = 0; k < n_cell_fields; k++) {
        const cell_field *f = &cell_fields[k];
        for (uint32_t stage = 0; stage < (f->list < LIST_PROGRAM ? 1 : c->n_stages); stage++) {
            uint32_t n;
            size_t bytes;
            uint8_t *items = cell_items(c, f->list, stage, &n, &bytes);
            for (uint32_t i = 0; i < n; i++)
                if (has_field(items + i * bytes, f)) damage(s, items + i * bytes, bytes, f);
        }
    }
}

/* One word in so many of the script, one field in so many of the cells. */
static void damage_all(const subject *of, uint32_t every_word, uint32_t every_field) {
    subject s = *of;
    uint32_t *script = malloc(s.words * sizeof *script);
    ck_assert_ptr_nonnull(script);
    memcpy(script, s.script, s.words * sizeof *script);
    s.script = script;
    every = every_word;
    for (size_t i = 0; i < s.words; i++) damage(&s, &script[i], sizeof *script, &(cell_field){.bytes = sizeof *script});
    free(script);
    every = every_field;
    for (uint32_t i = 0; i < of->n_cells; i++) damage_cell(of, of->cells[i]);
}

/* What test_mutations.c does to tasks and to cells. */
static void mutate_all(const job *j, uint64_t seed) {
    enum { TRIES = 4 };
    for (uint32_t kind = 0; kind < n_mutations; kind++) {
        for (uint32_t i = 0; i < TRIES; i++) {
            editor e;
            ck_assert(editor_open(&e, &j->subject, vpps_mix64(seed * 1000 + kind * TRIES + i)));
            if (mutations[kind].apply(&e, mutations[kind].argument)) {
                subject s = j->subject;
                s.script = e.script;
                s.words = e.words;
                ask(&s);
            }
            editor_close(&e);
        }
    }
    uint64_t random = vpps_mix64(seed);
    for (uint32_t kind = 0; kind < n_cell_mutations(); kind += kind < 2 * n_cell_fields ? 2 : 1) {
        for (uint32_t i = 0; i < j->subject.n_cells; i++) {
            vpps_compiled_cell *c = copy_cell(j->subject.cells[i]), *cells[64];
            ck_assert_uint_le(j->subject.n_cells, VPPS_COUNT(cells));
            memcpy(cells, j->subject.cells, j->subject.n_cells * sizeof *cells);
            cells[i] = c;
            subject s = j->subject;
            s.cells = cells;
            if (mutate_cell(kind, c, s.g->model, &random)) ask(&s);
            vpps_compiled_cell_free(c);
        }
    }
}

/* ---------------------------------------------------------------- subjects */

static bool all_are_met(void) {
    bool all = true;
    for (size_t i = 0; i < VPPS_COUNT(refusals); i++) all = all && met[i];
    return all;
}

/* A loop that ends by a condition, and looks up entries by numbers that argmax finds. */
static void open_decided(batch *b) {
    vpps_param table, other, w;
    TEST_OK(vpps_model_create(&b->model, 1));
    TEST_OK(vpps_add_lookup(b->model, &table, "T", 3, 4, 1, NULL));
    TEST_OK(vpps_add_lookup(b->model, &other, "T2", 3, 2, 1, NULL));
    TEST_OK(vpps_add_matrix(b->model, &w, "W", 4, 4, NULL));
    vpps_graph *r = begin_cell(b->model, "turn");
    const vpps_node goes_on = vpps_gather(r, 0, 0, 1, 1), state = vpps_gather(r, 0, 1, 4, 1);
    const vpps_node word = vpps_argmax(r, vpps_matvec(r, w, state));
    TEST_OK(vpps_condition(r, goes_on));
    TEST_OK(vpps_scatter_else(r, vpps_tanh(r, goes_on), goes_on));
    TEST_OK(vpps_scatter_else(r, vpps_add(r, state, vpps_lookup_at(r, table, vpps_slice(r, word, 0, 1))), state));
    const vpps_cell cell = end_cell(r);
    TEST_OK(vpps_graph_create(&b->g, b->model));
    const vpps_node start[] = {vpps_ones(b->g, 1, 1), vpps_ones(b->g, 4, 1)};
    const vpps_vertex at = vpps_source(b->g, 2, start);
    const vpps_application a = {.size = sizeof a, .cell = cell, .n_children = 1, .children = &at};
    const vpps_vertex last = vpps_while(b->g, &a, 3, NULL);
    const vpps_node out[] = {vpps_scattered(b->g, last, 0), vpps_scattered(b->g, last, 1)};
    open_batch(b, VPPS_NO_NODE, (way){.n_vps = 2, .groups = 1, .inference = true, .wanted = out, .n_wanted = 2});
}

/* Vertices that attend to others and each to the one before, whose gradients are sums of pairs. */
static void open_attention(batch *b) {
    enum { LEAVES = 3, SIZE = 4, VERTICES = 2 };
    vpps_param table, matrix;
    TEST_OK(vpps_model_create(&b->model, 1));
    TEST_OK(vpps_add_lookup(b->model, &table, "T", LEAVES, SIZE, 1, NULL));
    TEST_OK(vpps_add_matrix(b->model, &matrix, "W", SIZE, SIZE, NULL));
    vpps_graph *r = begin_cell(b->model, "leaf");
    const vpps_node x = vpps_lookup(r, table, vpps_pull_index(r));
    TEST_OK(vpps_scatter(r, vpps_matvec(r, matrix, x)));
    TEST_OK(vpps_scatter(r, vpps_tanh(r, x)));
    const vpps_cell leaf = end_cell(r);
    r = begin_cell(b->model, "attends");
    const vpps_node query = vpps_lookup(r, table, vpps_pull_index(r));
    const vpps_node keys = vpps_gather_list(r, 0, SIZE, 1), values = vpps_gather_list(r, 1, SIZE, 1);
    const vpps_node sum = vpps_weighted_sum_list(r, vpps_softmax_list(r, vpps_dot(r, keys, query)), values);
    TEST_OK(vpps_scatter(r, sum));
    TEST_OK(vpps_scatter(r, vpps_tanh(r, sum)));
    const vpps_cell attends = end_cell(r);
    TEST_OK(vpps_graph_create(&b->g, b->model));
    vpps_vertex children[LEAVES + VERTICES];
    vpps_node terms[VERTICES];
    for (uint32_t i = 0; i < LEAVES; i++)
        children[i] = vpps_apply(b->g, VPPS_APPLICATION(.cell = leaf, .n_indices = 1, .indices = &i));
    for (uint32_t i = 0; i < VERTICES; i++) {
        const vpps_vertex v = vpps_apply(b->g, VPPS_APPLICATION(.cell = attends, .n_children = LEAVES + i,
                                                                .children = children, .n_indices = 1, .indices = &i));
        children[LEAVES + i] = v;
        terms[i] = vpps_sum_elements(b->g, vpps_scattered(b->g, v, 0));
    }
    open_batch(b, vpps_sum(b->g, VERTICES, terms), (way){.n_vps = 2, .groups = 1});
}

TEST_GROUP("refusals", .seconds = 300);

TEST(every_refusal_is_met) {
    enum { MOST = 600, WORDS = 1500, EVERY_WORD = 61, EVERY_FIELD = 2 };
    /* Seeds whose scripts met a refusal that no other before them had; where they no longer do, all are gone through. */
    static const uint64_t telling[] = {59, 540, 280, 13, 184, 16, 54, 458};
    void (*const opened[])(batch *) = {open_recurrent, open_decided, open_attention};
    batch b;
    for (size_t i = 0; i < VPPS_COUNT(opened); i++) {
        opened[i](&b);
        damage_all(&b.job.subject, 1, 1);
        mutate_all(&b.job, i);
        close_batch(&b);
    }
    for (uint64_t n = 0; n < MOST + VPPS_COUNT(telling) && !all_are_met(); n++) {
        const uint64_t seed = n < VPPS_COUNT(telling) ? telling[n] : n - VPPS_COUNT(telling);
        rg_case c;
        rg_built built;
        job j;
        draw_small(&c, seed);
        turn = (uint32_t)seed; /* which fields are damaged follows from the seed alone */
        TEST_OK(rg_build(&built, &c, NULL));
        TEST_OK(job_open(&j, built.g[0], built.loss[0], way_of((uint32_t)(seed % WAYS)), seed));
        if (j.batch->script_words < WORDS) {
            damage_all(&j.subject, EVERY_WORD, EVERY_FIELD);
            mutate_all(&j, seed);
        }
        job_close(&j);
        rg_destroy(&built);
    }
    for (size_t i = 0; i < VPPS_COUNT(refusals); i++)
        if (!met[i]) printf("not met: %s\n", refusals[i]);
    fflush(stdout);
    ck_assert(all_are_met());
}

int main(void) { return test_main("refusals"); }

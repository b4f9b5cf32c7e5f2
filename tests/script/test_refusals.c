/* test_refusals.c - damages one field of scripts, cells and their programs, and lists the refusals that the checker must give: each at least once. If
 * a refusal is removed, its row stays unmet. Refusals that need more than one damaged field are in test_faults.c and test_cell_faults.c. */
#include "faults.h"
#include "subjects.h"

static const char *const refusals[] = {
    "contribution list of negative length",
    "vertex that the request does not need",
    "duplicate vertex",
    "vertex of another cell",
    "cells, ",
    "list members in a cell without lists",
    "was compiled for groups of",
    "counts out of range",
    "is in no block",
    "cell was compiled without this output",
    "operands do not fit the instruction",
    "neither a stack of members nor a member's rows of one",
    "stacked or sliced operand of wrong shape",
    "rows of the stacked operands do not add up",
    "slice outside of its operand",
    "operand of argmax or lookup_at does not fit",
    "not a table entry chosen by a scalar",
    "not a matrix of the model",
    "rows are shared out, but the instruction needs whole vectors",
    "unknown instruction",
    "instruction on an operand that is in no slot",
    "reads rows that other VPs make in the same stage",
    "reads a share instead of the sum of shares",
    "shares read as a whole value, or the reverse",
    "wrong access to a factor of a product",
    "transposed product with a value to add",
    "value to add has other rows than the product",
    "the product's bias does not fit",
    "a factor of the product does not fit",
    "product without operands",
    "no such lookup",
    "not a lookup of a table",
    "operand is no value of the cell",
    "operand differs from its value in shape, axis or rows",
    "shared-out rows of a value with several columns",
    "reads a slot that does not hold the operand",
    "reads other rows than the slot holds",
    "operand is not at its place",
    "reads a value that this stage or a later one makes",
    "duplicate gradient",
    "the gradient of earlier waves is lost",
    ": no table",
    "; the table has",
    "wrong term of the loss",
    "terms of the loss; expected at most",
    "is missing in the parameters' gradients",
    "contributions are missing",
    "unexpected norm",
    "unknown form of pairs",
    "'s gradients without a barrier in between",
    "reads the loss before all",
    "unexpected update",
    "is not at the offset where the host reads it",
    "never runs stage",
    "terms are added up",
    "never updates its parameters",
    "made in the wrong stage, or twice",
    ", result: shape mismatch",
    "slot of wrong size, axis or rows",
    "stored in the wrong place, or twice",
    "shares stored as a whole value, or the reverse",
    "stored in the record of another axis",
    "stored in a pass record, but read after the pass",
    "stored outside the record",
    "stored over a value that is read later",
    "two values of one stage stored in one place",
    "wrong or duplicate contribution",
    "shares contributed as a whole value, or the reverse",
    "rows shared out in another way than they are made",
    "result without a destination",
    "stores another value than its operand",
    "store without a destination",
    "contribution without a destination",
    "loads another value than its operand",
    "load of data in a cell without data",
    "no such gradient",
    "positions of an instruction that finds none",
    "positions do not belong to their instruction",
    "instruction for a value of another kind",
    "result in the slot of an operand",
    "product for a value of another kind",
    "product in the slot of a factor",
    "made before its operands",
    "invalid step",
    "unknown kind of step",
    "kept value is not stored",
    "lists other values than it makes",
    "is shared out in two ways",
    "a share is read instead of the sum",
    "input used as an output",
    "no step makes the contribution",
    "axis of a contribution differs from its destination's",
    "a stage makes a value that is given",
    "no such input",
    "not a vector of the model",
    "invalid description of a value",
    ", given: shape mismatch",
    "no stage makes the value",
    "number of inputs differs from the op's",
    "wrong inputs",
    ": lookup",
    "is no node of the vertex",
    "is no value of the vertex",
    ", does not compute node",
    "the condition is no scalar input",
    "its other value is no input of its shape",
    "is wrong where the condition",
    "without factors",
    "is neither a vector's nor a matrix's",
    "'s gradient is no value, or not asked for",
    "'s gradient differs from the vertex's derivative",
    "differs from the vertex's derivative",
    "wrong number of list members",
    "reads another kept value",
    "no such index",
    "lookup of an entry beyond the table",
    "lookup of another entry",
    "wrong word in the record",
    "wrong data",
    "list does not begin or end with the block's members",
    "gets no gradients of entries",
    "is duplicate, or gets no gradient",
    "entries; ",
    "tables; ",
    "inference has tables with gradients",
    "is the sum of",
    "has run this stage",
    "has no such stage, or fewer vertices",
    "is added to a gradient without such a term of the loss",
    "is outside the pool",
    "foreign contribution in a gradient: word ",
    "no contribution in a gradient",
    "duplicate contribution: ",
    "the header has the wrong step",
    "the header has the wrong dropout key",
    "the header has an update in inference",
    "the header has the wrong optimizer",
    "wrong numbers for the parameters' steps",
    "the header has the wrong guard",
    "wrong magic word",
    "words, the script has",
    "groups, the machine has",
    "words of a pool of",
    "more barriers than words",
    "incomplete task",
    "END signals",
    "invalid range of tasks, words",
    "no barrier",
    "signals, barrier",
    ": unknown task ",
    "signals, and no more come",
    "is written and read without a barrier",
    "is written twice without a barrier",
    "OUTER: gradients added after their norm or update",
    "ENTRIES: gradients added after their norm or update",
    "OUTER: no block",
    " belongs to group ",
    "are used; the batch has",
    "duplicate parameter",
    "duplicate node",
    "OUTER: block",
    "STAGE: no block",
    "output is not kept",
    "factor of a parameter's gradient is not kept",
    "factor of a contribution is not kept",
    "factors of a scaled contribution do not give its value",
    "has no factors",
    "pair at",
    "hold none of its factors",
    "goes nowhere",
    "lies at",
    "contributions; expected 1 to",
    "outer product 0 does not fit",
    "the group's tasks have no END",
    "words 4294967295 to",
    "deadlock: barrier",
    "is read and overwritten without a barrier",
    "holds a value that was never written",
    "expected value",
    "its arrays end at word",
};

static bool met[VPPS_COUNT(refusals)];

/* Asks the checker, and marks the rows that its answer contains. */
static void ask(const subject *s) {
    if (verify_subject(s) == VPPS_OK) return;
    const char *message = vpps_error_message();
    for (size_t i = 0; i < VPPS_COUNT(refusals); i++)
        if (!met[i]) met[i] = strstr(message, refusals[i]) != NULL;
}

/* ---------------------------------------------------------------- damage */

static uint32_t every = 1, turn; /* one damage out of `every` is made */

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

/* Damages one word in so many of the script, and one field in so many of the cells. */
static void damage_all(const subject *of, uint32_t every_word, uint32_t every_field) {
    subject s = *of;
    uint32_t *script = need(malloc(s.words * sizeof *script));
    memcpy(script, s.script, s.words * sizeof *script);
    s.script = script;
    every = every_word;
    for (size_t i = 0; i < s.words; i++) {
        const uint32_t right = script[i],
                       back[] = {1, VPPS_BLOCK_WORDS}; /* equal to the preceding item in a list, or block */
        for (uint32_t k = 0; k < VPPS_COUNT(back) && turn % every == 0; k++) {
            if (i < back[k]) continue;
            script[i] = script[i - back[k]];
            ask(&s);
            script[i] = right;
        }
        damage(&s, &script[i], sizeof *script, &(cell_field){.bytes = sizeof *script});
    }
    free(script);
    every = every_field;
    for (uint32_t i = 0; i < of->n_cells; i++) damage_cell(of, of->cells[i]);
}

/* Makes the changes of test_mutations.c to tasks and cells. */
static void mutate_all(const job *j, uint64_t seed) {
    for (uint32_t kind = 0; kind < n_mutations; kind++) {
        for (uint32_t i = 0; i < mutations[kind].times; i++) {
            AT_END(editor_close) editor e;
            ck_assert(editor_open(&e, &j->subject, vpps_mix64(seed * 100000 + kind * 1000 + i)));
            if (mutations[kind].apply(&e, mutations[kind].argument)) {
                subject s = j->subject;
                s.script = e.script;
                s.words = e.words;
                ask(&s);
            }
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
            if (mutate_cell(kind, c, &random)) ask(&s);
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

/* Opens a loop that ends by a condition, and looks up entries by numbers that argmax finds. */
static void open_decided(batch *b) {
    begin_batch(b);
    const vpps_param table = add_lookup(b->model, "T", 3, 4, 1);
    add_lookup(b->model, "T2", 3, 2, 1);
    const vpps_param w = add_matrix(b->model, "W", 4, 4);
    vpps_graph *r = begin_cell(b->model, "turn");
    const vpps_node goes_on = vpps_gather(r, 0, 0, 1, 1), state = vpps_gather(r, 0, 1, 4, 1);
    const vpps_node word = vpps_argmax(r, vpps_matvec(r, w, state));
    TEST_OK(vpps_condition(r, goes_on));
    TEST_OK(vpps_scatter_else(r, vpps_tanh(r, goes_on), goes_on));
    TEST_OK(vpps_scatter_else(r, vpps_add(r, state, vpps_lookup_at(r, table, vpps_slice(r, word, 0, 1))), state));
    const vpps_cell cell = end_cell(r);
    const vpps_node start[] = {vpps_ones(b->g, 1, 1), vpps_ones(b->g, 4, 1)};
    const vpps_vertex at = vpps_source(b->g, 2, start);
    const vpps_vertex last =
        vpps_while(b->g, VPPS_APPLICATION(.cell = cell, .n_children = 1, .children = &at), 3, NULL);
    const vpps_node out[] = {vpps_scattered(b->g, last, 0), vpps_scattered(b->g, last, 1)};
    open_batch(b, VPPS_NO_NODE, (way){.n_vps = 2, .groups = 1, .inference = true, .wanted = out, .n_wanted = 2});
}

/* Opens n vertices that attend to the same leaves, the last one also to the other vertices: gradients are sums of pairs, of many vertices' as runs. */
static void open_attention(batch *b, uint32_t n) {
    enum { LEAVES = 4, SIZE = 4, VERTICES = 4 };
    begin_batch(b);
    const vpps_param table = add_lookup(b->model, "T", LEAVES, SIZE, 1), matrix = add_matrix(b->model, "W", SIZE, SIZE);
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
    vpps_vertex children[LEAVES + VERTICES];
    vpps_node terms[VERTICES];
    for (uint32_t i = 0; i < LEAVES; i++) children[i] = APPLY(b->g, leaf, INDICES(1, &i));
    for (uint32_t i = 0; i < n; i++) {
        const vpps_vertex v = APPLY(b->g, attends, CHILDREN(i + 1 < n ? LEAVES : LEAVES + i, children), INDICES(1, &i));
        children[LEAVES + i] = v;
        terms[i] = vpps_sum_elements(b->g, vpps_scattered(b->g, v, 0));
    }
    open_batch(b, vpps_sum(b->g, n, terms), (way){.n_vps = 2, .groups = 1});
    ck_assert_uint_eq(vpps_task_header_of(b->job.batch->script)->pairs, n < VERTICES ? 1 : VPPS_PAIRS_IN_RUNS);
}

static void open_pairs(batch *b) { open_attention(b, 2); }
static void open_runs(batch *b) { open_attention(b, 4); }

TEST_GROUP("refusals", .seconds = 300);

TEST(every_refusal_is_met) {
    enum { MOST = 600, WORDS = 1500, EVERY_WORD = 61, EVERY_FIELD = 2 };
    /* Seeds whose scripts, mutated or damaged, were the first to meet some refusal; if these no longer meet all, all seeds are tried, in both ways. */
    static const struct {
        uint64_t seed;
        bool damaged;
    } telling[] = {{540, false}, {13, false}, {184, false}, {16, false}, {458, false},
                   {11, false},  {280, true}, {13, true},   {54, true}};
    void (*const opened[])(batch *) = {open_recurrent, open_decided, open_pairs, open_runs};
    batch b;
    for (size_t i = 0; i < VPPS_COUNT(opened); i++) {
        opened[i](&b);
        damage_all(&b.job.subject, 1, 1);
        mutate_all(&b.job, i);
        close_batch(&b);
    }
    for (uint64_t n = 0; n < MOST + VPPS_COUNT(telling) && !all_are_met(); n++) {
        const bool told = n < VPPS_COUNT(telling);
        const uint64_t seed = told ? telling[n].seed : n - VPPS_COUNT(telling);
        rg_case c;
        AT_END(rg_destroy) rg_built built;
        AT_END(job_close) job j;
        draw_small(&c, seed);
        turn = (uint32_t)seed; /* the seed alone determines which fields are damaged */
        TEST_OK(rg_build(&built, &c, NULL));
        TEST_OK(job_open(&j, built.g[0], built.loss[0], way_of((uint32_t)(seed % WAYS)), seed));
        if (j.batch->script_words < WORDS) {
            if (!told || telling[n].damaged) damage_all(&j.subject, EVERY_WORD, EVERY_FIELD);
            if (!told || !telling[n].damaged) mutate_all(&j, seed);
        }
    }
    for (size_t i = 0; i < VPPS_COUNT(refusals); i++)
        if (!met[i]) printf("not met: %s\n", refusals[i]);
    fflush(stdout);
    ck_assert(all_are_met());
}

/* word_kinds.c - see mutate.h. What each word of a script is, found from the header on. */
#include "mutate.h"

const char *const word_kind_names[WORD_KINDS] = {
    [WORD_REST] = "a word that nothing names",
    [WORD_HEADER] = "a word of the header",
    [WORD_START] = "a group's start",
    [WORD_BLOCK] = "a block's description",
    [WORD_PLACE] = "where values lie",
    [WORD_VERTEX] = "a vertex",
    [WORD_INPUT] = "an input's offset",
    [WORD_LOOKUP] = "a lookup's offset",
    [WORD_NUMBER] = "a vertex's number",
    [WORD_LIST] = "a list's start",
    [WORD_CONTRIBUTION] = "a block's list of contributions",
    [WORD_DATA] = "an input's data",
    [WORD_TABLE] = "a table's description",
    [WORD_ENTRY] = "a table's entries and contributions",
    [WORD_CONSTANT] = "a constant and its place",
    [WORD_TERM] = "a term of the loss",
    [WORD_KIND] = "a task's kind",
    [WORD_OPERAND] = "a task's operand",
    [WORD_BARRIER] = "a task's barrier",
};

static void set(uint8_t *kinds, size_t at, size_t n, word_kind kind) { memset(kinds + at, kind, n); }

static void set_block(const subject *s, uint8_t *kinds, const vpps_block *b) {
    vpps_block_view view;
    const vpps_compiled_cell *c = s->cells[b->cell];
    vpps_view_block(s->script, b, c, &view);
    for (uint32_t r = 0; r < VPPS_AXES; r++)
        if (c->kept_words[r]) set(kinds, (size_t)(&b->kept[r] - s->script), 1, WORD_PLACE);
    const struct {
        const uint32_t *const *of;
        uint32_t n;
        word_kind kind;
    } arrays[] = {{view.inputs, c->n_inputs, WORD_INPUT},
                  {view.lookups, c->n_lookups, WORD_LOOKUP},
                  {view.words, c->n_words, WORD_NUMBER},
                  {view.lists + 1, c->n_lists, WORD_LIST}};
    set(kinds, (size_t)(view.vertices - s->script), b->n, WORD_VERTEX);
    if (view.data) set(kinds, (size_t)(view.data - s->script), b->n, WORD_DATA);
    for (uint32_t a = 0; a < VPPS_COUNT(arrays); a++) {
        for (uint32_t i = 0; i < arrays[a].n; i++) {
            const uint32_t *at = arrays[a].of[i];
            const uint32_t n = arrays[a].kind == WORD_INPUT  ? vpps_items(b, c->input_axis[i])
                               : arrays[a].kind == WORD_LIST ? b->n + 1
                                                             : b->n;
            if (at) set(kinds, (size_t)(at - s->script), n, arrays[a].kind);
        }
    }
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        if (!view.gradient_starts[k]) continue;
        const size_t at = (size_t)(view.gradient_starts[k] - s->script);
        set(kinds, at, b->n + 1u, WORD_LIST);
        set(kinds, at + b->n + 1u, view.gradient_starts[k][b->n], WORD_CONTRIBUTION);
        if (!view.pairs[k]) continue;
        const size_t pairs = (size_t)(view.pair_starts[k] - s->script);
        set(kinds, pairs, b->n + 1u, WORD_LIST);
        set(kinds, pairs + b->n + 1u, 2 * view.pair_starts[k][b->n], WORD_CONTRIBUTION);
    }
    for (uint32_t p = 0; view.data && p < b->n; p++)
        set(kinds, view.data[p], vpps_value_words(&c->values[0]), WORD_DATA);
}

void find_word_kinds(const subject *s, uint8_t *kinds) {
    const vpps_task_header *h = vpps_task_header_of(s->script);
    const uint32_t *starts = vpps_task_starts(s->script);
    set(kinds, 0, s->words, WORD_REST);
    set(kinds, 0, VPPS_TASK_HEADER_WORDS, WORD_HEADER);
    set(kinds, VPPS_TASK_HEADER_WORDS, h->n_groups + 1u, WORD_START);
    set(kinds, h->blocks, (size_t)h->n_blocks * VPPS_BLOCK_WORDS, WORD_BLOCK);
    for (uint32_t i = 0; i < h->n_blocks; i++) set_block(s, kinds, vpps_block_at(s->script, i));
    set(kinds, h->tables, (size_t)h->n_tables * VPPS_TABLE_WORDS, WORD_TABLE);
    for (uint32_t i = 0; i < h->n_tables; i++) {
        const vpps_table *t = vpps_table_at(s->script, i);
        set(kinds, t->rows, t->n, WORD_ENTRY);
    }
    for (uint32_t at = starts[0]; at < starts[h->n_groups]; at += VPPS_TASK_WORDS) {
        const vpps_task *t = vpps_task_at(s->script, at);
        const uint32_t *o = t->operands;
        set(kinds, at, 1, WORD_KIND);
        set(kinds, (size_t)(o - s->script), vpps_task_rows[t->kind].n_operands, WORD_OPERAND);
        set(kinds, (size_t)(&t->wait - s->script), t->wait == VPPS_NO_BARRIER ? 1 : 2, WORD_BARRIER);
        set(kinds, (size_t)(&t->signal - s->script), 1, WORD_BARRIER);
        if (t->kind == VPPS_TASK_STAGE) set(kinds, (size_t)(&t->stage - s->script), 1, WORD_OPERAND);
        if (t->kind == VPPS_TASK_STAGE) set(kinds, (size_t)(&t->pass_record - s->script), 2, WORD_PLACE);
        if (t->kind == VPPS_TASK_CONSTANTS) set(kinds, o[0], 2 * (size_t)o[1], WORD_CONSTANT);
        if (t->kind == VPPS_TASK_ENTRIES) {
            const vpps_entry_sums sums = vpps_sums_at(s->script, o[1]);
            set(kinds, o[1], 2 + 2 * (size_t)sums.n + sums.starts[sums.n], WORD_ENTRY);
        }
        if (t->kind == VPPS_TASK_LOSS) set(kinds, o[0], 2 * (size_t)o[1], WORD_TERM);
    }
}

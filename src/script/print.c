/* print.c - prints a batch's program (script): header, vertices by cell (blocks), tasks by group of threads or CTAs. */
#include "cell/print.h"
#include "script/script.h"
#include "script/task.h"

#include <inttypes.h>

static void print_blocks(const vpps_batch *b, FILE *file) {
    const vpps_task_header *h = vpps_task_header_of(b->script);
    for (uint32_t i = 0; i < h->n_blocks; i++) {
        const vpps_block *block = vpps_block_at(b->script, i);
        const vpps_compiled_cell *c = b->cells[block->cell];
        if (!block->n) continue;
        fprintf(file, "block %u: %s, group %u, %u vertices", i, c->name, block->group, block->n);
        for (uint32_t l = 0; l < c->n_lists; l++) {
            fprintf(file, ", %u members", block->members[l]);
            if (c->n_lists > 1) fprintf(file, " of list %u", l);
        }
        fprintf(file, ", kept at %u (%u words each)", block->kept[0], c->kept_words[0]);
        fputc('\n', file);
    }
}

static void print_stage(const vpps_batch *b, const vpps_task *t, FILE *file) {
    const vpps_compiled_cell *c = b->cells[vpps_block_at(b->script, t->operands[0])->cell];
    const vpps_cell_stage *s = &c->stages[t->stage];
    const uint32_t first = t->operands[1], n = t->operands[2];
    fprintf(file, "STAGE      block %u (%s), stage %u (%s%s, by %s), vertices %u to %u", t->operands[0], c->name,
            t->stage, s->backward ? "backward " : "", vpps_pass_name(s->pass), vpps_split_name(s->split), first,
            first + n - 1);
    if (s->uses_pass_record) fprintf(file, ", pass record at %u", t->pass_record);
    for (uint32_t j = 0; j < c->n_contributions; j++) {
        if (c->values[c->contributions[j].value].stage != t->stage || c->contributions[j].scaled) continue;
        fprintf(file, ", contributions at %u", t->contributions);
        break;
    }
}

static void print_task(const vpps_batch *b, const vpps_task *t, FILE *file) {
    const uint32_t at = (uint32_t)((const uint32_t *)(const void *)t - b->script);
    const vpps_task_row *row = &vpps_task_rows[t->kind];
    if (t->wait != VPPS_NO_BARRIER) fprintf(file, "%10sWAIT       barrier %u, %u signals\n", "", t->wait, t->signals);
    fprintf(file, "%8u  ", at);
    if (t->kind == VPPS_TASK_STAGE) {
        print_stage(b, t, file);
    } else {
        fprintf(file, row->n_operands ? "%-10s" : "%s", row->name);
        for (uint32_t i = 0; i < row->n_operands; i++) fprintf(file, " %u", t->operands[i]);
    }
    fputc('\n', file);
    if (t->signal != VPPS_NO_BARRIER) fprintf(file, "%10sSIGNAL     barrier %u\n", "", t->signal);
}

vpps_status vpps_print_batch(const vpps_batch *b, const vpps_model *model, FILE *file) {
    const vpps_task_header *h = vpps_task_header_of(b->script);
    fprintf(file,
            "script: words %u, VPs %u, groups %u, waves %u, slices %u, barriers %u; of the pool's %u words %u are "
            "parameters', and of the others at most %" PRIu64 " are live at once\n",
            h->words, h->n_vps, h->n_groups, b->n_waves, b->n_slices, h->n_barriers, h->pool_words, b->parameter_words,
            b->live_words);
    print_blocks(b, file);
    for (uint32_t i = 0; i < h->n_tables; i++) {
        const vpps_table *t = vpps_table_at(b->script, i);
        fprintf(file, "table %u: %s, %u entries, gradients at %u\n", i, model->params[t->param].name, t->n,
                t->gradients);
    }
    for (uint32_t group = 0; group < h->n_groups; group++) {
        fprintf(file, "group %u:\n", group);
        const vpps_task *end = vpps_end_of_tasks(b->script, group);
        for (const vpps_task *t = vpps_first_task(b->script, group); t < end; t++) print_task(b, t, file);
    }
    return ferror(file) ? vpps_fail(VPPS_IO, "script: it cannot be written") : VPPS_OK;
}

/* print.c - a script as text: header, blocks, then each group's instructions with what they cost, and the sum. */
#include "cell/print.h"
#include "script/cost.h"
#include "script/work.h"

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

static void print_stage(const vpps_batch *b, const uint32_t *o, FILE *file) {
    const vpps_compiled_cell *c = b->cells[vpps_block_at(b->script, o[0])->cell];
    const vpps_cell_stage *s = &c->stages[o[1]];
    fprintf(file, "STAGE      block %u (%s), stage %u (%s%s, by %s), vertices %u to %u", o[0], c->name, o[1],
            s->backward ? "backward " : "", vpps_part_name(s->part), vpps_split_name(s->split), o[2], o[2] + o[3] - 1);
    if (s->passing) fprintf(file, ", passing values at %u", o[4]);
    for (uint32_t j = 0; j < c->n_contributions; j++) {
        if (c->values[c->contributions[j].value].stage != o[1]) continue;
        fprintf(file, ", contributions at %u", o[5]);
        break;
    }
}

static void print_cost(const char *before, const vpps_task_cost *c, FILE *file) {
    if (!c->bytes) return;
    fprintf(file, "%s%" PRIu64 " flops, %" PRIu64 " bytes", before, c->product_flops + c->other_flops, c->bytes);
}

vpps_status vpps_print_batch(const vpps_batch *b, const vpps_graph *g, FILE *file) {
    const vpps_task_header *h = vpps_task_header_of(b->script);
    fprintf(
        file,
        "script: %u words, %u VPs in %u groups, %u waves of %u slices, %u barriers, %u words of the pool, %u of them "
        "parameters'; of the "
        "others, at most %" PRIu64 " are live at once\n",
        h->words, h->n_vps, h->n_groups, b->n_waves, b->n_slices, h->n_barriers, h->pool_words, b->parameter_words,
        b->live_words);
    print_blocks(b, file);
    for (uint32_t i = 0; i < h->n_tables; i++) {
        const vpps_table *t = vpps_table_at(b->script, i);
        if (g) {
            fprintf(file, "table %u: %s, %u entries, gradients at %u\n", i, g->model->params[t->param].name, t->n,
                    t->gradients);
        } else {
            fprintf(file, "table %u: parameter %u, %u entries, gradients at %u\n", i, t->param, t->n, t->gradients);
        }
    }
    for (uint32_t group = 0; group < h->n_groups; group++) {
        const uint32_t *starts = b->script + VPPS_TASK_HEADER_WORDS;
        fprintf(file, "group %u:\n", group);
        for (uint32_t at = starts[group]; at < starts[group + 1];) {
            const uint32_t task = b->script[at], *o = b->script + at + 1;
            if (task >= VPPS_TASK_COUNT) return vpps_fail(VPPS_SCRIPT, "word %u: opcode %u is unknown", at, task);
            fprintf(file, "%8u  ", at);
            if (task == VPPS_TASK_STAGE) {
                print_stage(b, o, file);
            } else {
                fprintf(file, vpps_tasks[task].words ? "%-10s" : "%s", vpps_tasks[task].name);
                for (uint32_t i = 0; i < vpps_tasks[task].words; i++) fprintf(file, " %u", o[i]);
            }
            vpps_task_cost cost = {0};
            if (g) vpps_add_task_cost(b, g->model, at, &cost);
            print_cost(": ", &cost, file);
            fputc('\n', file);
            at += 1 + vpps_tasks[task].words;
        }
    }
    if (g) {
        const vpps_task_cost cost = vpps_cost_of_batch(b, g->model);
        print_cost("in all: ", &cost, file);
        fprintf(file, "; %" PRIu64 " of the flops are products\n", cost.product_flops);
    }
    return ferror(file) ? vpps_fail(VPPS_IO, "script: it cannot be written") : VPPS_OK;
}

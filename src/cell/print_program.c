/* print_program.c - prints the steps of a stage (part of a cell's work between two barriers), one line for each step. */
#include "cell/print.h"

#include <ctype.h>

static const char *const step_names[] = {
    [VPPS_STEP_LOAD] = "load",       [VPPS_STEP_GRADIENT] = "gradient", [VPPS_STEP_RUN] = "run",
    [VPPS_STEP_PRODUCT] = "product", [VPPS_STEP_STORE] = "store",       [VPPS_STEP_CONTRIBUTE] = "contribute",
    [VPPS_STEP_OUTER] = "outer",
};

static void write_place(FILE *out, const vpps_model *model, const vpps_compiled_cell *c, const vpps_operand *o) {
    switch (o->place) {
    case VPPS_PLACE_SLOT: fprintf(out, "s%u", o->at); break;
    case VPPS_PLACE_RECORD: /* such as "record 48": the vertex's kept values, from word 48 on */
        if (vpps_is_pass_record(o->record)) fputs(o->record == VPPS_RECORD_FORWARD ? "forward " : "backward ", out);
        fprintf(out, "record %u%s", o->at, o->axis ? " of a member" : "");
        break;
    case VPPS_PLACE_INPUT: fprintf(out, "in%u", o->at); break;
    case VPPS_PLACE_ENTRY: fprintf(out, "entry of %s", vpps_table_name(model, c->lookups[o->at].table)); break;
    case VPPS_PLACE_PARAMETER: fputs(model->params[o->at].name, out); break;
    case VPPS_PLACE_DATA: fputs("data", out); break;
    case VPPS_PLACE_CONTRIBUTION:
        fprintf(out, c->contributions[o->at].lookup ? "lookup %u" : "in%u", c->contributions[o->at].index);
        break;
    default: fputs("0", out);
    }
}

static void write_operand(FILE *out, const vpps_model *model, const vpps_compiled_cell *c, const vpps_operand *o) {
    if (o->matrix != VPPS_NO_PARAM) fprintf(out, "%s ", model->params[o->matrix].name);
    write_place(out, model, c, o);
    if (o->access == VPPS_ACCESS_SCALAR && vpps_operand_words(o) > 1) fprintf(out, "[%u]", o->element);
    if (o->access == VPPS_ACCESS_MEMBERS) fputs("...", out);
    if (o->shares) fputs(", in shares", out);
}

void vpps_print_steps(FILE *out, const vpps_model *model, const vpps_compiled_cell *c, uint32_t stage) {
    const vpps_program *p = &c->programs[stage];
    for (uint32_t i = 0; i < p->n; i++) {
        const vpps_program_step *s = &p->steps[i];
        const char *between = "";
        fprintf(out, "      %-10s ", step_names[s->kind]);
        write_operand(out, model, c, &s->to);
        fputs(" = ", out);
        if (s->kind == VPPS_STEP_GRADIENT) fprintf(out, "out%u", s->output);
        if (s->kind == VPPS_STEP_RUN) {
            for (const char *name = vpps_instructions[s->run.of.opcode].name; *name; name++)
                fputc(tolower((unsigned char)*name), out);
            if (s->run.of.table != VPPS_NO_PARAM) fprintf(out, " %s", model->params[s->run.of.table].name);
            between = " ";
        }
        if (s->kind == VPPS_STEP_PRODUCT && s->product.start.place) {
            write_operand(out, model, c, &s->product.start);
            between = " + ";
        }
        for (uint32_t k = 0; k < s->n; k++) {
            fputs(between, out);
            write_operand(out, model, c, &p->operands[s->first + k]);
            between = s->kind == VPPS_STEP_PRODUCT ? " + " : ", ";
        }
        fputs(s->kind == VPPS_STEP_PRODUCT && s->product.transposed ? ", transposed\n" : "\n", out);
    }
}

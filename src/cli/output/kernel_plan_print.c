/* kernel_plan_print.c - prints, as tables, where a kernel keeps weights and how it divides work. */
#include "cli/output/kernel_plan_print.h"

#include <errno.h>
#include <inttypes.h>

const char *const vpps_resident_levels[] = {"registers", "shared", "stream"};
enum { LEVELS = VPPS_COUNT(vpps_resident_levels) };
_Static_assert(LEVELS == VPPS_RESIDENT_STREAM + 1, "every level has a name");

static uint32_t rows_of(const vpps_model *model, const vpps_resident *m) {
    const vpps_parameter_data *p = &model->params[m->matrix];
    return m->transposed ? p->cols : p->rows;
}

static uint32_t columns_of(const vpps_model *model, const vpps_resident *m) {
    const vpps_parameter_data *p = &model->params[m->matrix];
    return (m->transposed ? p->rows : p->cols) / m->shares;
}

vpps_rows vpps_resident_rows(const vpps_kernel_plan *p, const vpps_model *model, const vpps_resident *m, uint32_t vp) {
    return vpps_rows_of(rows_of(model, m), p->row_unit, p->group / m->shares, vp % p->group / m->shares);
}

bool vpps_in_memory(const vpps_kernel_plan *p, const vpps_model *model, vpps_param param) {
    bool any = false;
    for (uint32_t i = 0; i < p->residents.n; i++) any |= p->residents.list[i].matrix == param;
    return model->params[param].kind == VPPS_MATRIX && !any;
}

void vpps_name_fragment(const vpps_model *model, const vpps_fragment *f, char *text, size_t bytes) {
    size_t used = 0;
    *text = '\0';
    for (uint32_t k = 0; k < VPPS_FRAGMENT_ROWS && used < bytes; k++) {
        const vpps_weight_row *x = &f->rows[k], *before = k ? x - 1 : NULL;
        if (x->matrix == VPPS_NO_PARAM ||
            (before && before->matrix == x->matrix && before->transposed == x->transposed))
            continue;
        used += (size_t)snprintf(text + used, bytes - used, "%s%s%s", used ? ", " : "", model->params[x->matrix].name,
                                 x->transposed ? "^T" : "");
    }
    if (used >= bytes) vpps_drop_cut_character(text);
}

double vpps_register_share(const vpps_kernel_plan *p, const vpps_machine *machine) {
    return (double)p->residents.registers * p->threads * p->n_vps / ((double)machine->sm_registers * machine->sms);
}

static void print_size(FILE *f, uint64_t bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    double x = (double)bytes;
    size_t unit = 0;
    for (; x >= 1024 && unit + 1 < VPPS_COUNT(units); unit++) x /= 1024;
    fprintf(f, "%.*f %s", unit ? 1 : 0, x, units[unit]);
}

static void print_head(const vpps_kernel_plan *p, const vpps_machine *machine, FILE *f) {
    fprintf(f, "machine        %s: %u SMs of %u registers, shared memory of ", machine->name, machine->sms,
            machine->sm_registers);
    print_size(f, machine->sm_shared_bytes);
    fprintf(f, "\nVPs            %u CTAs of %u threads, in groups of %u that each have the model; rows by %u\n",
            p->n_vps, p->threads, p->group, p->row_unit);
    fprintf(f, "cells          %u, of %u stages\n", p->n_cells, p->first_stage[p->n_cells]);
    static const char *const products[] = {"fp32", "bf16", "bf16x3"};
    fprintf(f, "products       in %s\n", products[p->parts]);
    fprintf(f, "registers      %u of a thread for weights: %.1f %% of all SMs' register file\n", p->residents.registers,
            100 * vpps_register_share(p, machine));
    fputs("shared memory  ", f);
    print_size(f, 4 * (uint64_t)p->residents.shared_words);
    fputs(" of weights a CTA, ", f);
    print_size(f, 4 * (uint64_t)p->tile_words);
    fputs(" for tiles, ", f);
    print_size(f, 4 * (uint64_t)p->script_words);
    fputs(" for a script", f);
    if (p->staged_words) fputs(", ", f);
    if (p->staged_words) print_size(f, 4 * (uint64_t)p->staged_words);
    fputs(p->staged_words ? " for late weights\n" : "\n", f);
}

static const char *place_text(uint32_t level, uint32_t at, uint32_t words, char text[40]) {
    if (level == VPPS_RESIDENT_STREAM) return "read at each use";
    snprintf(text, 40, "%u - %u of a thread", at, at + words - 1);
    return text;
}

/* Prints where the fragments (eight rows of weights each, for the instruction mma) of bf16 products are stored. */
static void print_fragments(const vpps_kernel_plan *p, const vpps_model *model, FILE *f) {
    char name[256], place[40];
    fprintf(f, "\n%8s %8s %8s  %-10s %-20s %s\n", "fragment", "cols", "words", "level", "words", "8 rows of");
    for (uint32_t i = 0; i < p->residents.n_fragments; i++) {
        const vpps_fragment *x = &p->residents.fragments[i];
        const uint32_t words = vpps_fragment_words(x, p->parts);
        vpps_name_fragment(model, x, name, sizeof name);
        fprintf(f, "%8u %8u %8u  %-10s %-20s %s\n", i, x->length, words, vpps_resident_levels[x->level],
                place_text(x->level, x->at, words, place), name);
    }
}

static void print_matrices(const vpps_kernel_plan *p, const vpps_model *model, FILE *f) {
    int width = 6;
    char place[40];
    for (uint32_t i = 0; i < model->n_params; i++)
        if (model->params[i].kind == VPPS_MATRIX)
            width = (int)vpps_max_u32((uint32_t)width, (uint32_t)strlen(model->params[i].name));
    fprintf(f, "\n%-*s %-10s %8s %8s %9s %8s  %-10s %s\n", width, "matrix", "", "rows", "cols", "rows a VP", "words",
            "level", "words");
    for (uint32_t i = 0; i < p->residents.n; i++) {
        const vpps_resident *m = &p->residents.list[i];
        fprintf(f, "%-*s %-10s %8u %8u %9u ", width, model->params[m->matrix].name, m->transposed ? "transposed" : "",
                rows_of(model, m), columns_of(model, m), m->rows);
        if (p->parts) {
            fprintf(f, "%8s  %-10s in fragments\n", "-", vpps_resident_levels[m->level]);
            continue;
        }
        const uint32_t words = vpps_words_of_thread(m);
        fprintf(f, "%8u  %-10s %s\n", words, vpps_resident_levels[m->level], place_text(m->level, m->at, words, place));
    }
    for (uint32_t i = 0; i < model->n_params; i++) {
        const vpps_parameter_data *data = &model->params[i];
        if (!vpps_in_memory(p, model, i)) continue;
        fprintf(f, "%-*s %-10s %8u %8u %9s %8s  %-10s by one VP, where it lies\n", width, data->name, "", data->rows,
                data->cols, "-", "-", "memory");
    }
    if (p->parts) print_fragments(p, model, f);
}

/* Returns whether matrix i is the first with its number of rows. One column of the table stands for all matrices with as many rows. */
static bool is_first_of_height(const vpps_kernel_plan *p, const vpps_model *model, uint32_t i) {
    for (uint32_t before = 0; before < i; before++)
        if (rows_of(model, &p->residents.list[before]) == rows_of(model, &p->residents.list[i])) return false;
    return true;
}

static bool has_level(const vpps_kernel_plan *p, uint32_t level) {
    for (uint32_t i = 0; i < p->residents.n; i++)
        if (p->residents.list[i].level == level) return true;
    return false;
}

static void print_heading(const vpps_kernel_plan *p, const vpps_model *model, FILE *f) {
    fprintf(f, "\n%4s", "VP");
    for (uint32_t i = 0; i < p->residents.n; i++) {
        char title[24];
        if (!is_first_of_height(p, model, i)) continue;
        snprintf(title, sizeof title, "rows/%u", rows_of(model, &p->residents.list[i]));
        fprintf(f, " %10s", title);
    }
    for (uint32_t level = 0; level < LEVELS; level++)
        if (has_level(p, level)) fprintf(f, " %10s", vpps_resident_levels[level]);
    fprintf(f, " %8s\n", "fill");
}

static void print_vp(const vpps_kernel_plan *p, const vpps_model *model, uint32_t vp, FILE *f) {
    uint64_t words[LEVELS] = {0}, all = 0, room = 0;
    fprintf(f, "%4u", vp);
    for (uint32_t i = 0; i < p->residents.n; i++) {
        const vpps_resident *m = &p->residents.list[i];
        const vpps_rows own = vpps_resident_rows(p, model, m, vp);
        const uint64_t held = (uint64_t)(own.end - own.first) * columns_of(model, m);
        words[m->level] += held;
        all += held;
        if (!p->parts) room += (uint64_t)vpps_words_of_thread(m) * p->threads;
        if (is_first_of_height(p, model, i)) fprintf(f, " %10u", own.end - own.first);
    }
    for (uint32_t i = 0; i < p->residents.n_fragments; i++)
        room +=
            (uint64_t)p->residents.fragments[i].steps * (VPPS_FRAGMENT_ROWS * VPPS_FRAGMENT_DEPTH / 32) * p->threads;
    for (uint32_t level = 0; level < LEVELS; level++)
        if (has_level(p, level)) fprintf(f, " %10" PRIu64, words[level]);
    fprintf(f, " %6.1f %%\n", room ? 100 * (double)all / (double)room : 0);
}

vpps_status vpps_kernel_plan_print(const vpps_kernel_plan *p, const vpps_model *model, const vpps_machine *machine,
                                   uint32_t vps, FILE *file) {
    print_head(p, machine, file);
    print_matrices(p, model, file);
    const uint32_t shown = vps ? vpps_min_u32(vps, p->n_vps) : p->n_vps;
    print_heading(p, model, file);
    for (uint32_t vp = 0; vp < shown; vp++) print_vp(p, model, vp, file);
    if (shown < p->n_vps) fprintf(file, " ... %u more VPs\n", p->n_vps - shown);
    return ferror(file) ? vpps_fail(VPPS_IO, "the plan's tables cannot be written: %s", strerror(errno)) : VPPS_OK;
}

/* partition_print.c - a plan as tables: what was chosen, matrices, slots, and what each VP holds. */
#include "plan/partition.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* ---------------------------------------------------------------- what a VP holds */

enum { LEVELS = VPPS_LEVEL_STREAM + 1 };
static const char *const level_names[LEVELS] = {"registers", "shared", "stream"};

typedef struct vp_load {
    uint32_t pieces, copy_pieces;
    uint64_t words[LEVELS]; /* elements of rows, without padding */
    uint64_t copy_words;
} vp_load;

static vp_load load_of(const vpps_partition *p, uint32_t vp) {
    const uint32_t rpw = p->choice.rpw;
    vp_load load = {0};
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        vpps_pieces rows = vpps_partition_pieces(p, false, m, vp);
        load.pieces += rows.n;
        for (uint32_t i = 0; i < rows.n; i++) {
            uint32_t held = vpps_min_u32(rpw, rows.rows.end - rows.rows.first - i * rpw);
            vpps_level level = p->rows.slots[(rows.first + i) / p->warps].level;
            load.words[level] += (uint64_t)held * p->matrices[m].cols;
        }
        if (!p->columns.n_slots) continue;
        vpps_pieces columns = vpps_partition_pieces(p, true, m, vp);
        load.copy_pieces += columns.n;
        load.copy_words += (uint64_t)(columns.rows.end - columns.rows.first) * p->matrices[m].rows;
    }
    return load;
}

/* Words that the slots of a VP have room for. */
static uint64_t room_of(const vpps_partition *p, const vpps_placing *placing) {
    uint64_t steps = 0;
    for (uint32_t s = 0; s < placing->n_slots; s++) steps += placing->slots[s].steps;
    return steps * p->choice.rpw * p->choice.threads;
}

static double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

static double fill_of(const vpps_partition *p, const vp_load *load) {
    uint64_t words = load->copy_words;
    for (int level = 0; level < LEVELS; level++) words += load->words[level];
    return percent((double)words, (double)(room_of(p, &p->rows) + room_of(p, &p->columns)));
}

/* ---------------------------------------------------------------- head */

static void print_size(FILE *f, uint64_t bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    double x = (double)bytes;
    size_t unit = 0;
    for (; x >= 1024 && unit + 1 < VPPS_COUNT(units); unit++) x /= 1024;
    fprintf(f, "%.*f %s", unit ? 1 : 0, x, units[unit]);
}

/* Registers a thread, and what share of all SMs' register files they are. */
static void print_registers(const vpps_partition *p, FILE *f) {
    const uint32_t weights = p->rows.registers, gradients = p->choice.deferred ? 0 : weights;
    const double file = (double)p->machine.sm_registers * p->machine.sms;
    const double each = (double)p->choice.threads * p->n_vps;
    fprintf(f, "registers      %u of %u a thread: weights %u, gradients %u, transposed copy %u\n", p->cached, p->budget,
            weights, gradients, p->columns.registers);
    fprintf(f, "register file  %.1f %% of all SMs': weights %.1f %%, gradients %.1f %%, transposed copy %.1f %%\n",
            percent(p->cached * each, file), percent(weights * each, file), percent(gradients * each, file),
            percent(p->columns.registers * each, file));
}

static void print_head(const vpps_partition *p, FILE *f) {
    const vpps_partition_choice *c = &p->choice;
    fprintf(f, "machine        %s: %u SMs of %u registers, shared memory of ", p->machine.name, p->machine.sms,
            p->machine.sm_registers);
    print_size(f, p->machine.sm_shared_bytes);
    fprintf(f, "\nVPs            %u CTAs of %u threads (%u warps), %u an SM; rpw %u, vectors %u\n", p->n_vps,
            c->threads, p->warps, c->ctas_per_sm, c->rpw, c->vectors);
    fprintf(f, "strategy       gradients %s, backward by %s\n", c->deferred ? "deferred" : "in registers",
            c->transposed ? "a transposed copy" : "partial sums");
    print_registers(p, f);
    fputs("shared memory  ", f);
    print_size(f, 4 * (uint64_t)p->rows.shared_words);
    fputs(" of weights a CTA\nmaster copy    ", f);
    print_size(f, 4 * p->master_words);
    fputs(", gradients ", f);
    print_size(f, 4 * p->gradient_words);
    fputc('\n', f);
}

static void print_spread(const vpps_partition *p, FILE *f) {
    uint32_t fewest = UINT32_MAX, most = 0;
    double least = 100, fullest = 0;
    for (uint32_t vp = 0; vp < p->n_vps; vp++) {
        vp_load load = load_of(p, vp);
        uint32_t pieces = load.pieces + load.copy_pieces;
        double fill = fill_of(p, &load);
        fewest = vpps_min_u32(fewest, pieces);
        most = vpps_max_u32(most, pieces);
        if (fill < least) least = fill;
        if (fill > fullest) fullest = fill;
    }
    fprintf(f, "a VP           %u to %u pieces; its slots are filled to %.1f - %.1f %%\n", fewest, most, least,
            fullest);
}

/* ---------------------------------------------------------------- matrices, slots */

static void print_matrices(const vpps_partition *p, const vpps_model *model, FILE *f) {
    int width = 6;
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        int length = (int)strlen(model->params[p->matrices[m].param].name);
        if (length > width) width = length;
    }
    fprintf(f, "\n%-*s %8s %8s %6s %8s %11s\n", width, "matrix", "rows", "cols", "steps", "pieces", "words");
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        const vpps_matrix *matrix = &p->matrices[m];
        fprintf(f, "%-*s %8u %8u %6u %8u %11" PRIu64 "\n", width, model->params[matrix->param].name, matrix->rows,
                matrix->cols, (matrix->cols + VPPS_LANES - 1) / VPPS_LANES,
                (matrix->rows + p->choice.rpw - 1) / p->choice.rpw, (uint64_t)matrix->rows * matrix->cols);
    }
}

static void print_slot_run(const vpps_partition *p, const vpps_placing *placing, uint32_t first, uint32_t end,
                           FILE *f) {
    const vpps_slot *slot = &placing->slots[first], *last = &placing->slots[end - 1];
    char numbers[32], place[48] = "";
    snprintf(numbers, sizeof numbers, end - first > 1 ? "%u - %u" : "%u", first, end - 1);
    if (slot->level == VPPS_LEVEL_REGISTERS) {
        snprintf(place, sizeof place, "%u - %u", slot->at, last->at + p->choice.rpw * last->steps - 1);
    } else if (slot->level == VPPS_LEVEL_SHARED) {
        snprintf(place, sizeof place, "words %u - %u", slot->at,
                 last->at + p->choice.rpw * last->steps * p->choice.threads - 1);
    }
    fprintf(f, "%-12s %-14s %6u  %-10s %s\n", placing == &p->rows ? "weights" : "copy", numbers, slot->steps,
            level_names[slot->level], place);
}

static bool alike(const vpps_slot *a, const vpps_slot *b) { return a->steps == b->steps && a->level == b->level; }

/* Slots of one length that follow each other in one level are a line. */
static void print_slots(const vpps_partition *p, const vpps_placing *placing, FILE *f) {
    for (uint32_t first = 0, end; first < placing->n_slots; first = end) {
        for (end = first + 1; end < placing->n_slots; end++) {
            if (!alike(&placing->slots[end], &placing->slots[first])) break;
        }
        print_slot_run(p, placing, first, end, f);
    }
}

/* ---------------------------------------------------------------- VPs */

/* Matrices of equally many rows share them out alike: one column for each number of rows. True for the first such. */
static bool is_first_of_height(const vpps_partition *p, uint32_t m) {
    for (uint32_t before = 0; before < m; before++) {
        if (p->matrices[before].rows == p->matrices[m].rows) return false;
    }
    return true;
}

static bool has_level(const vpps_partition *p, int level) {
    for (uint32_t s = 0; s < p->rows.n_slots; s++) {
        if ((int)p->rows.slots[s].level == level) return true;
    }
    return false;
}

static void print_vp_heading(const vpps_partition *p, FILE *f) {
    fprintf(f, "\n%4s %7s", "VP", "pieces");
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        char title[24];
        if (!is_first_of_height(p, m)) continue;
        snprintf(title, sizeof title, "rows/%u", p->matrices[m].rows);
        fprintf(f, " %10s", title);
    }
    for (int level = 0; level < LEVELS; level++) {
        if (has_level(p, level)) fprintf(f, " %10s", level_names[level]);
    }
    if (p->columns.n_slots) fprintf(f, " %7s %10s", "pieces", "copy");
    fprintf(f, " %8s\n", "fill");
}

static void print_vp(const vpps_partition *p, uint32_t vp, FILE *f) {
    const vp_load load = load_of(p, vp);
    fprintf(f, "%4u %7u", vp, load.pieces);
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        if (!is_first_of_height(p, m)) continue;
        vpps_rows rows = vpps_partition_pieces(p, false, m, vp).rows;
        fprintf(f, " %10u", rows.end - rows.first);
    }
    for (int level = 0; level < LEVELS; level++) {
        if (has_level(p, level)) fprintf(f, " %10" PRIu64, load.words[level]);
    }
    if (p->columns.n_slots) fprintf(f, " %7u %10" PRIu64, load.copy_pieces, load.copy_words);
    fprintf(f, " %6.1f %%\n", fill_of(p, &load));
}

vpps_status vpps_partition_print(const vpps_partition *p, const vpps_model *model, uint32_t vps, FILE *file) {
    print_head(p, file);
    print_spread(p, file);
    print_matrices(p, model, file);
    fprintf(file, "\n%-12s %-14s %6s  %-10s %s\n", "slots", "number", "steps", "level", "registers of a thread");
    print_slots(p, &p->rows, file);
    print_slots(p, &p->columns, file);

    const uint32_t shown = vps ? vpps_min_u32(vps, p->n_vps) : p->n_vps;
    print_vp_heading(p, file);
    for (uint32_t vp = 0; vp < shown; vp++) print_vp(p, vp, file);
    if (shown < p->n_vps) fprintf(file, " ... %u more VPs\n", p->n_vps - shown);
    return ferror(file) ? vpps_fail(VPPS_IO, "partition: the tables cannot be written: %s", strerror(errno)) : VPPS_OK;
}

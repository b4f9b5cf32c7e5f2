/* partition.c - see partition.h. */
#include "plan/partition.h"

/* Registers a thread of a CTA of so many threads may keep weights in, when one vector is multiplied at a time with one
 * row a warp. Measured: what compiles without spills. */
static const struct shape {
    uint32_t threads, ctas_per_sm, budget;
} shapes[] = {{256, 1, 224}, {384, 1, 144}, {512, 1, 96}, {256, 2, 96}};

static const struct shape *find_shape(uint32_t threads, uint32_t ctas_per_sm) {
    for (size_t i = 0; i < VPPS_COUNT(shapes); i++) {
        if (shapes[i].threads == threads && shapes[i].ctas_per_sm == ctas_per_sm) return &shapes[i];
    }
    return NULL;
}

/* Shared memory that a CTA takes beside weights: static variables (script, staged vectors, tables: at most 48 KiB) and
 * what the system keeps for itself (1 KiB; CUDA C++ Programming Guide, "Compute Capability 8.x", shared memory). */
enum { INTERPRETER_SHARED_BYTES = 49 << 10 };

static uint32_t steps_of(uint32_t elems) { return (elems + VPPS_LANES - 1) / VPPS_LANES; }

static uint32_t pieces_of(uint32_t rows, uint32_t rpw) { return (rows + rpw - 1) / rpw; }

/* ---------------------------------------------------------------- matrices */

static int longest_first(const void *a, const void *b) {
    const vpps_matrix *x = a, *y = b;
    uint32_t long_x = steps_of(x->cols), long_y = steps_of(y->cols);
    if (long_x != long_y) return long_x < long_y ? 1 : -1;
    return x->param < y->param ? -1 : x->param > y->param;
}

static vpps_status collect_matrices(vpps_partition *p, const vpps_model *model) {
    p->n_params = (uint32_t)model->n_params;
    p->matrices = calloc(model->n_params + 1, sizeof *p->matrices);
    p->matrix_of_param = malloc((model->n_params + 1) * sizeof *p->matrix_of_param);
    if (!p->matrices || !p->matrix_of_param) return vpps_fail(VPPS_MEMORY, "partition: out of memory");
    for (uint32_t i = 0; i < p->n_params; i++) {
        const vpps_parameter_data *data = &model->params[i];
        p->matrix_of_param[i] = UINT32_MAX;
        if (data->kind == VPPS_MATRIX) {
            p->matrices[p->n_matrices++] = (vpps_matrix){.param = i, .rows = data->rows, .cols = data->cols};
        }
    }
    qsort(p->matrices, p->n_matrices, sizeof *p->matrices, longest_first);
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        vpps_matrix *matrix = &p->matrices[m];
        p->matrix_of_param[matrix->param] = m;
        matrix->gradient = p->gradient_words;
        p->gradient_words += ((uint64_t)matrix->rows * matrix->cols + 31) & ~(uint64_t)31;
    }
    return VPPS_OK;
}

/* One VP for every SM's CTA, but no more than there are pieces of the tallest matrix: others would own nothing. */
static uint32_t count_vps(const vpps_partition *p) {
    uint32_t resident = p->machine.sms * p->choice.ctas_per_sm, most = 0;
    for (uint32_t m = 0; m < p->n_matrices; m++) {
        most = vpps_max_u32(most, pieces_of(p->matrices[m].rows, p->choice.rpw));
    }
    return most ? vpps_min_u32(resident, most) : resident;
}

vpps_pieces vpps_partition_pieces(const vpps_partition *p, bool columns, uint32_t matrix, uint32_t vp) {
    const vpps_matrix *m = &p->matrices[matrix];
    const vpps_placing *placing = columns ? &p->columns : &p->rows;
    vpps_rows rows = vpps_rows_of(columns ? m->cols : m->rows, p->choice.rpw, p->n_vps, vp);
    return (vpps_pieces){placing->first_piece[(size_t)vp * p->n_matrices + matrix],
                         pieces_of(rows.end - rows.first, p->choice.rpw), rows};
}

/* ---------------------------------------------------------------- placing */

/* Deals every VP's pieces to its warps; the slots are as long as the longest rows in them. */
static vpps_status place(vpps_partition *p, bool columns) {
    vpps_placing *placing = columns ? &p->columns : &p->rows;
    placing->first_piece = calloc((size_t)p->n_vps * p->n_matrices + 1, sizeof *placing->first_piece);
    if (!placing->first_piece) return vpps_fail(VPPS_MEMORY, "partition: out of memory");
    size_t capacity = 0;
    for (uint32_t vp = 0; vp < p->n_vps; vp++) {
        uint32_t next = 0;
        for (uint32_t m = 0; m < p->n_matrices; m++) {
            placing->first_piece[(size_t)vp * p->n_matrices + m] = next;
            uint32_t end = next + vpps_partition_pieces(p, columns, m, vp).n;
            uint32_t steps = steps_of(columns ? p->matrices[m].rows : p->matrices[m].cols);
            for (; next < end; next++) {
                uint32_t slot = next / p->warps;
                if (slot >= placing->n_slots) {
                    if (!VPPS_RESERVE(placing->slots, capacity, slot + 1u)) {
                        return vpps_fail(VPPS_MEMORY, "partition: out of memory");
                    }
                    placing->slots[slot] = (vpps_slot){0};
                    placing->n_slots = slot + 1;
                }
                placing->slots[slot].steps = vpps_max_u32(placing->slots[slot].steps, steps);
            }
        }
    }
    return VPPS_OK;
}

/* Gives slots their registers; without `all`, those that do not fit `room` go to shared memory, then to a stream. */
static void give_levels(vpps_partition *p, vpps_placing *placing, uint32_t room, bool all) {
    uint32_t share = vpps_min_u32(p->machine.sm_shared_bytes / p->choice.ctas_per_sm, p->machine.cta_shared_bytes);
    uint32_t shared_room = share > INTERPRETER_SHARED_BYTES ? (share - INTERPRETER_SHARED_BYTES) / 4 : 0;
    for (uint32_t s = 0; s < placing->n_slots; s++) {
        vpps_slot *slot = &placing->slots[s];
        uint32_t registers = p->choice.rpw * slot->steps, words = registers * p->choice.threads;
        if (all || placing->registers + registers <= room) {
            slot->level = VPPS_LEVEL_REGISTERS;
            slot->at = placing->registers;
            placing->registers += registers;
        } else if (placing->shared_words + words <= shared_room) {
            slot->level = VPPS_LEVEL_SHARED;
            slot->at = placing->shared_words;
            placing->shared_words += words;
        } else {
            slot->level = VPPS_LEVEL_STREAM;
        }
    }
}

static void lay_out_master(vpps_partition *p) {
    uint32_t longest = 0;
    for (uint32_t s = 0; s < p->rows.n_slots; s++) {
        vpps_slot *slot = &p->rows.slots[s];
        slot->master = (uint32_t)p->vp_words;
        p->vp_words += (uint64_t)p->choice.rpw * slot->steps * p->choice.threads;
        longest = vpps_max_u32(longest, slot->steps);
    }
    p->zero_row = p->vp_words * p->n_vps;
    p->master_words = p->zero_row + (uint64_t)longest * VPPS_LANES + VPPS_LANES;
}

/* Operands take registers too: the rows of the table count one vector and one row. */
static uint32_t budget_of(const vpps_partition_choice *c) {
    uint32_t operands = c->vectors * (VPPS_CHUNK_STEPS + c->rpw), counted = VPPS_CHUNK_STEPS + 1;
    uint32_t budget = find_shape(c->threads, c->ctas_per_sm)->budget, less = operands - counted + c->spare;
    return less < budget ? budget - less : 0;
}

static bool is_power_of_two(uint32_t x) { return x && !(x & (x - 1)); }

static vpps_status check_choice(const vpps_partition_choice *c, const vpps_machine *machine) {
    if (!find_shape(c->threads, c->ctas_per_sm) || !is_power_of_two(c->rpw) || c->rpw > VPPS_MAX_RPW ||
        !is_power_of_two(c->vectors) || c->vectors > 4) {
        return vpps_fail(
            VPPS_ARGUMENT,
            "partition: rpw %u, %u threads, %u CTAs an SM, %u vectors; expected rpw 1, 2, 4 or 8; 256, 384 "
            "or 512 threads, or 2 CTAs of 256; 1, 2 or 4 vectors",
            c->rpw, c->threads, c->ctas_per_sm, c->vectors);
    }
    if (c->ctas_per_sm * INTERPRETER_SHARED_BYTES > machine->sm_shared_bytes) {
        return vpps_fail(VPPS_POOL, "partition: %u CTAs need %u bytes of an SM's shared memory; there are %u",
                         c->ctas_per_sm, c->ctas_per_sm * INTERPRETER_SHARED_BYTES, machine->sm_shared_bytes);
    }
    return VPPS_OK;
}

static vpps_status make(vpps_partition *p, const vpps_model *model) {
    VPPS_TRY(check_choice(&p->choice, &p->machine));
    VPPS_TRY(collect_matrices(p, model));
    p->warps = p->choice.threads / VPPS_LANES;
    p->n_vps = count_vps(p);
    p->budget = budget_of(&p->choice);
    VPPS_TRY(place(p, false));
    if (p->choice.transposed) VPPS_TRY(place(p, true));
    bool all = p->choice.transposed || !p->choice.deferred;
    if (p->choice.transposed) give_levels(p, &p->columns, 0, true);
    give_levels(p, &p->rows, p->budget, all);
    p->cached = p->rows.registers * (p->choice.deferred ? 1 : 2) + p->columns.registers;
    lay_out_master(p);
    if (p->cached > p->budget) {
        return vpps_fail(VPPS_POOL,
                         "partition: rpw %u, %u threads, %u CTAs an SM%s%s: %u registers a thread for weights; there "
                         "are %u",
                         p->choice.rpw, p->choice.threads, p->choice.ctas_per_sm,
                         p->choice.transposed ? ", transposed copy" : "", p->choice.deferred ? ", deferred" : "",
                         p->cached, p->budget);
    }
    if (p->master_words > UINT32_MAX || p->gradient_words > UINT32_MAX) {
        return vpps_fail(VPPS_POOL, "partition: the matrices take more than 2^32 words");
    }
    return VPPS_OK;
}

vpps_status vpps_partition_create(vpps_partition *out, const vpps_model *model, const vpps_machine *machine,
                                  const vpps_partition_choice *choice) {
    *out = (vpps_partition){.machine = *machine, .choice = *choice};
    return make(out, model);
}

void vpps_partition_destroy(vpps_partition *p) {
    vpps_placing *placings[] = {&p->rows, &p->columns};
    for (size_t i = 0; i < VPPS_COUNT(placings); i++) {
        free(placings[i]->slots);
        free(placings[i]->first_piece);
    }
    free(p->matrices);
    free(p->matrix_of_param);
    *p = (vpps_partition){0};
}

/* ---------------------------------------------------------------- choices */

static bool fits(const vpps_model *model, const vpps_machine *machine, const vpps_partition_choice *c) {
    vpps_partition p;
    bool yes = vpps_partition_create(&p, model, machine, c) == VPPS_OK;
    vpps_partition_destroy(&p);
    return yes;
}

/* Of one rpw and shape: each strategy with as many vectors at a time as fit. Without barriers between a product and its
 * sum, the transposed copy comes first; gradients in registers before deferred ones. */
static uint32_t add_strategies(const vpps_model *model, const vpps_machine *machine, vpps_partition_choice c,
                               const vpps_partition_choice *fixed, bool keep_strategy, vpps_partition_choice *out,
                               uint32_t room) {
    uint32_t n = 0;
    for (uint32_t strategy = 0; strategy < 4 && n < room; strategy++) {
        c.transposed = !(strategy & 1);
        c.deferred = strategy >> 1;
        if (keep_strategy && (c.transposed != fixed->transposed || c.deferred != fixed->deferred)) continue;
        for (c.vectors = 4; c.vectors; c.vectors /= 2) {
            if (fixed->vectors && c.vectors != fixed->vectors) continue;
            if (!fits(model, machine, &c)) continue;
            out[n++] = c;
            break;
        }
    }
    return n;
}

uint32_t vpps_partition_choices(const vpps_model *model, const vpps_machine *machine,
                                const vpps_partition_choice *fixed, bool keep_strategy, vpps_partition_choice *out,
                                uint32_t room) {
    uint32_t n = 0;
    for (uint32_t rpw = 1; rpw <= VPPS_MAX_RPW; rpw *= 2) {
        if (fixed->rpw && rpw != fixed->rpw) continue;
        for (size_t i = 0; i < VPPS_COUNT(shapes); i++) {
            if (fixed->threads && shapes[i].threads != fixed->threads) continue;
            if (fixed->ctas_per_sm && shapes[i].ctas_per_sm != fixed->ctas_per_sm) continue;
            vpps_partition_choice c = {
                .rpw = rpw, .threads = shapes[i].threads, .ctas_per_sm = shapes[i].ctas_per_sm, .spare = fixed->spare};
            n += add_strategies(model, machine, c, fixed, keep_strategy, out + n, room - n);
        }
    }
    return n;
}

/* ---------------------------------------------------------------- where a row lies */

vpps_row_place vpps_partition_row(const vpps_partition *p, uint32_t matrix, uint32_t row) {
    const uint32_t rpw = p->choice.rpw, block = row / rpw, blocks = pieces_of(p->matrices[matrix].rows, rpw);
    vpps_row_place at = {.vp = (uint32_t)((((uint64_t)block + 1) * p->n_vps - 1) / blocks), .row = row % rpw};
    vpps_pieces pieces = vpps_partition_pieces(p, false, matrix, at.vp);
    uint32_t piece = pieces.first + (row - pieces.rows.first) / rpw;
    at.warp = piece % p->warps;
    at.slot = piece / p->warps;
    const vpps_slot *slot = &p->rows.slots[at.slot];
    at.word = p->vp_words * at.vp + slot->master + (uint64_t)(at.warp * rpw + at.row) * slot->steps * VPPS_LANES;
    return at;
}

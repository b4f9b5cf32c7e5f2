/* history.c - keeps vertex types, their compiled cells, and what was found about the latest batch, from batch to batch (history.h). */
#include "script/history.h"

enum { MOST_KEPT = 1024 }; /* default limit of vertex types (a cell, or an op with its shapes) plus compiled cells */

/* Frees the type's compiled cells that were last used by batch number `last` or an earlier one. */
static void drop_compiled(vpps_history *h, vpps_known_type *t, uint64_t last) {
    uint32_t left = 0;
    for (uint32_t k = 0; k < t->n_made; k++) {
        t->made[left] = t->made[k];
        t->made[left].place = VPPS_CELL_LEFT_OUT; /* devices free kernels before cells: no kernel has this cell */
        if (t->made[k].last_used > last)
            left++;
        else
            vpps_compiled_cell_free(t->made[k].cell);
    }
    h->n_compiled -= t->n_made - left;
    t->n_made = left;
}

static void drop_type(vpps_history *h, vpps_known_type *t) {
    drop_compiled(h, t, UINT64_MAX);
    VPPS_FREE_ARRAYS(t->made);
    vpps_type_free(t->type);
}

void vpps_history_free(vpps_history *h) {
    for (uint32_t i = 0; i < h->n_types; i++) drop_type(h, &h->types[i]);
    VPPS_FREE_ARRAYS(h->types, h->of_cell, h->key);
    vpps_index_free(&h->indices);
    *h = (vpps_history){0};
}

static uint32_t most_kept(const vpps_history *h) { return h->most ? h->most : MOST_KEPT; }

bool vpps_history_is_full(const vpps_history *h) { return h->n_types + h->n_compiled > most_kept(h); }

static uint64_t median_use(const vpps_history *h) {
    uint64_t n = 0, *uses = calloc(h->n_types + (size_t)h->n_compiled + 1, sizeof *uses);
    if (!uses) return 0;
    for (uint32_t i = 0; i < h->n_types; i++) {
        uses[n++] = h->types[i].last_used;
        for (uint32_t k = 0; k < h->types[i].n_made; k++) uses[n++] = h->types[i].made[k].last_used;
    }
    qsort(uses, n, sizeof *uses, vpps_by_number);
    const uint64_t median = uses[n / 2];
    free(uses);
    return median;
}

void vpps_history_drop(vpps_history *h) {
    const uint64_t median = median_use(h), last = median < h->n_batches ? median : h->n_batches - 1;
    uint32_t left = 0;
    for (uint32_t i = 0; i < h->n_types; i++) {
        vpps_known_type *t = &h->types[i];
        drop_compiled(h, t, last);
        if (t->type->cell || t->last_used > last) {
            if (t->type->cell) h->of_cell[t->type->key[1]] = left;
            h->types[left++] = *t;
        } else {
            drop_type(h, t);
        }
    }
    h->n_types = left;
    vpps_index_clear(&h->indices);
    for (uint32_t i = 0; i < left; i++) vpps_index_add(&h->indices, h->types[i].type->hash, i);
    /* the most types (kinds of vertices) and compiled cells to keep: what is left may double before the next drop */
    h->most = vpps_max_u32(most_kept(h), 2 * (left + h->n_compiled));
}

void vpps_remember_batch(vpps_history *h, bool training, vpps_usual_groups usual) {
    h->n_batches++;
    h->usual[training] = usual;
}

void vpps_remember_type(vpps_history *h, uint32_t type, vpps_type_guess guess) {
    h->types[type].last_used = h->n_batches;
    h->types[type].guess = guess;
}

vpps_usual_groups vpps_usual_after(vpps_usual_groups usual, uint32_t groups) {
    if (groups >= usual.groups) return (vpps_usual_groups){.groups = groups};
    usual.wanted = vpps_max_u32(usual.wanted, groups);
    if (++usual.fewer > VPPS_FEW_BATCHES) return (vpps_usual_groups){.groups = usual.wanted};
    return usual;
}

static bool same_needs(const vpps_cell_needs *a, const vpps_cell_needs *b) { return !memcmp(a, b, sizeof *a); }

/* Adds `more` to `to`, without gradients of outputs that are not in the set `outputs`. Both tell what a compiled cell must compute:
 * outputs that are read, and gradients. */
static void add_needs(vpps_cell_needs *to, const vpps_cell_needs *more, uint64_t outputs) {
    to->gradient_in |= more->gradient_in;
    to->gradient_out |= more->gradient_out & outputs;
    to->recurrent_in |= more->recurrent_in;
    to->recurrent_out |= more->recurrent_out;
    to->read_out |= more->read_out;
}

/* Returns the outputs, as bits, all of whose parameters are also parameters of outputs in the set `own`, which have
 * gradients in a batch. Gradients of other outputs would train parameters that do not affect the batch's loss. */
static uint64_t outputs_alike(const vpps_type *type, uint64_t own) {
    uint64_t outputs = UINT64_MAX;
    for (uint32_t i = 0; i < type->n_params; i++)
        if (!(type->params_reach[i] & own)) outputs &= ~type->params_reach[i];
    return outputs;
}

/* A cell is compiled for what a batch needs of it. Adds to `needs` what earlier compilations of it compute, so that the
 * new one serves earlier batches, too; of gradients, only those of outputs in `differentiable`. */
static void widen(const vpps_known_type *t, uint64_t differentiable, vpps_cell_needs *needs) {
    const uint64_t outputs = differentiable & outputs_alike(t->type, needs->gradient_out);
    for (uint32_t i = 0; i < t->n_made; i++) {
        const vpps_cell_needs *had = &t->made[i].cell->needs;
        if (had->training == needs->training && had->drops == needs->drops && had->frozen == needs->frozen &&
            had->fixed == needs->fixed && had->asked_gradients == needs->asked_gradients)
            add_needs(needs, had, outputs);
    }
}

vpps_status vpps_compiled_for(vpps_history *h, const vpps_model *model, uint32_t type, vpps_cell_needs needs,
                              const uint64_t *widens, vpps_compiled_cell **out) {
    vpps_known_type *t = &h->types[type];
    if (widens) widen(t, *widens, &needs);
    if (!VPPS_RESERVE(t->made, t->n_made + 1u)) return vpps_no_memory();
    uint32_t i = 0;
    while (i < t->n_made && !same_needs(&t->made[i].cell->needs, &needs)) i++;
    if (i == t->n_made) {
        VPPS_TRY(vpps_lower_type(t->type, needs.drops, out));
        const vpps_status status = vpps_compile_cell(model, *out, &needs);
        if (status != VPPS_OK) return vpps_compiled_cell_free(*out), status;
        t->made[t->n_made++] = (vpps_made_cell){.cell = *out};
        h->n_compiled++;
    }
    t->made[i].last_used = h->n_batches + 1;
    *out = t->made[i].cell;
    return VPPS_OK;
}

/* Returns whether a later compiled cell of this type computes all outputs and gradients that its cell i computes. */
static bool is_superseded(const vpps_known_type *t, uint32_t i) {
    const vpps_cell_needs *needs = &t->made[i].cell->needs;
    const uint64_t outputs = outputs_alike(t->type, needs->gradient_out);
    while (++i < t->n_made) {
        vpps_cell_needs both = *needs;
        add_needs(&both, &t->made[i].cell->needs, outputs);
        if (same_needs(&both, &t->made[i].cell->needs)) return true;
    }
    return false;
}

static bool has_cell(uint32_t n, vpps_compiled_cell *const *cells, const vpps_compiled_cell *cell) {
    for (uint32_t i = 0; i < n; i++)
        if (cells[i] == cell) return true;
    return false;
}

/* Returns whether two compiled cells may be in one GPU kernel. */
static bool share_kernel(const vpps_compiled_cell *a, const vpps_compiled_cell *b) {
    return a->needs.training == b->needs.training && a->needs.group == b->needs.group &&
           a->needs.rows.unit == b->needs.rows.unit;
}

/* Returns whether all these cells are in the GPU kernel in use. */
static bool all_loaded(const vpps_history *h, uint32_t n, vpps_compiled_cell *const *cells) {
    for (uint32_t t = 0; t < h->n_types; t++)
        for (uint32_t i = 0; i < h->types[t].n_made; i++)
            if (h->types[t].made[i].place != VPPS_CELL_LOADED && has_cell(n, cells, h->types[t].made[i].cell))
                return false;
    return true;
}

uint32_t vpps_kernel_set(const vpps_history *h, uint32_t n, vpps_compiled_cell *const *cells, uint32_t most,
                         vpps_compiled_cell **out) {
    const bool loaded = all_loaded(h, n, cells);
    uint32_t n_out = 0, own = 0;
    for (uint32_t t = 0; t < h->n_types && n; t++)
        for (uint32_t i = 0; i < h->types[t].n_made; i++) {
            const vpps_made_cell *m = &h->types[t].made[i];
            const bool stays = m->place != VPPS_CELL_LEFT_OUT && share_kernel(m->cell, cells[0]);
            if (loaded ? stays && m->place == VPPS_CELL_LOADED
                       : (stays && !is_superseded(&h->types[t], i)) || has_cell(n, cells, m->cell))
                out[n_out++] = m->cell;
        }
    if (loaded || n_out <= most) return n_out;
    /* only the n given cells, in the order of h->types: the GPU finds a kernel by its list of cells, order included */
    for (uint32_t i = 0; i < n_out; i++)
        if (has_cell(n, cells, out[i])) out[own++] = out[i];
    return own;
}

void vpps_remember_kernel(vpps_history *h, uint32_t n, vpps_compiled_cell *const *cells, bool made) {
    if (all_loaded(h, n, cells)) return;
    for (uint32_t t = 0; t < h->n_types; t++)
        for (uint32_t i = 0; i < h->types[t].n_made; i++) {
            vpps_made_cell *m = &h->types[t].made[i];
            const bool in = has_cell(n, cells, m->cell);
            if (made ? share_kernel(m->cell, cells[0]) : in && m->place == VPPS_CELL_EXPECTED)
                m->place = made && in ? VPPS_CELL_LOADED : VPPS_CELL_LEFT_OUT;
        }
}

bool vpps_has_news(vpps_history *h, bool training, uint32_t *likely) {
    const uint64_t seen = h->foreseen[training];
    *likely = h->usual[training].fewer >= VPPS_SOON_BATCHES ? h->usual[training].wanted : 0;
    h->foreseen[training] = (uint64_t)h->n_compiled << 32 | *likely;
    return h->foreseen[training] != seen;
}

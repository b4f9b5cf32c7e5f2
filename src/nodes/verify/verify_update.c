/* verify_update.c - parameters: TRANSPOSE, norms, updates. Each VP does the rows it owns. */
#include "nodes/verify/verify.h"

const uint32_t *vpps_verify_script(vpps_verifier *v, uint64_t address, uint64_t n) {
    if (address >= VPPS_HEADER_WORDS && address + n <= v->words) return v->script + address;
    vpps_verify_record(v, "it needs words %" PRIu64 " to %" PRIu64 " of a script of %u", address, address + n,
                       v->words);
    return NULL;
}

bool vpps_verify_read_matrix(vpps_verifier *v, uint32_t matrix, uint32_t owner) {
    vpps_shadow *s = &v->matrix_values[vpps_verify_owner(v, matrix, owner)];
    if (s->token == VPPS_HOLDS_SPENT) return VPPS_REFUSE(v, "matrix %s is updated already", v->params[matrix].name);
    return vpps_verify_touch_read(v, s, "matrix", matrix);
}

/* Before an update the VP reads the loss (is it finite?) and all VPs' norms (are they, and by how much to clip?). */
static bool read_guards(vpps_verifier *v) {
    if (v->request->guard && !vpps_verify_read_value(v, v->request->loss, 0, 1)) return false;
    for (uint32_t vp = 0; VPPS_TAKES_NORM(v->header) && vp < v->n_vps; vp++) {
        if (!vpps_verify_read(v, v->plan->norms + vp, 1, VPPS_HOLDS_NORM | vp)) return false;
    }
    return true;
}

static uint32_t n_states(const vpps_verifier *v) {
    static const uint32_t states[] = {
#define X(id, name, n) n,
        VPPS_OPTIMIZER_TABLE(X)
#undef X
    };
    return states[v->request->optimizer->kind];
}

/* Values and optimiser state in the pool, elements [from, from + n) of a parameter. */
static bool update_words(vpps_verifier *v, uint32_t param, uint32_t from, uint32_t n) {
    if (!vpps_verify_read(v, v->plan->values[param] + from, n, VPPS_HOLDS_INITIAL) ||
        !vpps_verify_write(v, v->plan->values[param] + from, n, VPPS_HOLDS_SPENT)) {
        return false;
    }
    for (uint32_t i = 0; i < n_states(v); i++) {
        if (!vpps_verify_write(v, v->plan->states[i][param] + from, n, VPPS_HOLDS_SPENT)) return false;
    }
    return true;
}

/* The VP's own rows of a parameter's gradient, complete. */
static bool read_parameter_gradient(vpps_verifier *v, uint32_t param, vpps_rows rows) {
    if (v->params[param].kind == VPPS_VECTOR) {
        return vpps_verify_read_gradient(v, v->n_nodes + param, rows.first, rows.end - rows.first);
    }
    vpps_shadow *s = &v->matrix_gradients[vpps_verify_owner(v, param, v->vp)];
    if (s->count != v->outer_expected[param]) {
        return VPPS_REFUSE(v, "the gradient of matrix %s has %u contributions of %u", v->params[param].name, s->count,
                           v->outer_expected[param]);
    }
    return vpps_verify_touch_read(v, s, "gradient of matrix", param);
}

static bool update_parameter(vpps_verifier *v, uint32_t param, vpps_rows rows) {
    if (!read_guards(v) || !read_parameter_gradient(v, param, rows)) return false;
    if (v->params[param].kind == VPPS_VECTOR) {
        return update_words(v, param, rows.first, rows.end - rows.first) &&
               vpps_verify_write(v, v->plan->gradients[param] + rows.first, rows.end - rows.first, VPPS_HOLDS_SPENT);
    }
    vpps_shadow *values = &v->matrix_values[vpps_verify_owner(v, param, v->vp)];
    if (!vpps_verify_touch_write(v, values, "matrix", param)) return false;
    values->token = v->matrix_gradients[vpps_verify_owner(v, param, v->vp)].token = VPPS_HOLDS_SPENT;
    return true;
}

static bool once(vpps_verifier *v, uint8_t *flag, const char *what) {
    if (*flag) return VPPS_REFUSE(v, "%s a second time", what);
    *flag = 1;
    return true;
}

static bool run_parameter(vpps_verifier *v, uint32_t opcode, uint32_t param) {
    if (param >= v->n_params) return VPPS_REFUSE(v, "there is no parameter %u", param);
    const vpps_parameter_data *p = &v->params[param];
    size_t owner = vpps_verify_owner(v, param, v->vp);
    if (opcode == VPPS_I_TRANSPOSE) {
        if (p->kind != VPPS_MATRIX) return VPPS_REFUSE(v, "%s is not a matrix", p->name);
        for (uint32_t vp = 0; vp < v->n_vps; vp++) {
            if (!vpps_verify_read_matrix(v, param, vp)) return false;
        }
        return once(v, &v->transposed[owner], "it is transposed");
    }
    if (p->kind == VPPS_LOOKUP || !v->updated_param[param]) return VPPS_REFUSE(v, "%s is not to be updated", p->name);
    vpps_rows rows = vpps_verify_own(v, p->rows);
    if (opcode == VPPS_I_NORM) {
        if (v->vps[v->vp].norm_published) return VPPS_REFUSE(v, "the VP's norm is published already");
        if (!once(v, &v->normed[owner], "its norm is taken")) return false;
        v->vps[v->vp].normed += rows.first < rows.end;
        return rows.first == rows.end || read_parameter_gradient(v, param, rows);
    }
    return once(v, &v->updated[owner], "it is updated") && (rows.first == rows.end || update_parameter(v, param, rows));
}

static bool run_row(vpps_verifier *v, uint32_t opcode, uint32_t table, uint32_t row, uint32_t gradient) {
    uint32_t slot = vpps_verify_row(v, table, row);
    if (slot == UINT32_MAX || v->slots[slot].start != gradient) {
        return VPPS_REFUSE(v, "entry %u of %s has no gradient at %u", row, v->params[table].name, gradient);
    }
    const bool norm = opcode == VPPS_I_NORM_ROWS;
    int64_t bit = (norm ? v->row_normed : v->row_updated) + (int64_t)v->slots[slot].row * v->n_vps + v->vp;
    if (vpps_verify_bit(v, bit)) {
        return VPPS_REFUSE(v, "entry %u of %s comes a second time", row, v->params[table].name);
    }
    vpps_verify_set_bit(v, bit);
    vpps_rows rows = vpps_verify_own(v, v->slots[slot].words);
    if (rows.first == rows.end) return true;
    if (!vpps_verify_read_gradient(v, slot, rows.first, rows.end - rows.first)) return false;
    if (norm) {
        v->vps[v->vp].normed++;
        return true;
    }
    return update_words(v, table, row * v->slots[slot].words + rows.first, rows.end - rows.first);
}

static bool run_rows(vpps_verifier *v, uint32_t opcode, uint32_t table, uint32_t address, uint32_t n) {
    if (table >= v->n_params || v->params[table].kind != VPPS_LOOKUP) {
        return VPPS_REFUSE(v, "there is no table %u", table);
    }
    const uint32_t *list = vpps_verify_script(v, address, 2 * (uint64_t)n);
    if (!list || (opcode == VPPS_I_UPDATE_ROWS && !read_guards(v))) return false;
    if (opcode == VPPS_I_NORM_ROWS && v->vps[v->vp].norm_published) {
        return VPPS_REFUSE(v, "the VP's norm is published already");
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!run_row(v, opcode, table, list[2 * i], list[2 * i + 1])) return false;
    }
    return true;
}

bool vpps_verify_parameter(vpps_verifier *v, uint32_t opcode, const uint32_t *operands, uint32_t n) {
    if (!v->training) return VPPS_REFUSE(v, "gradients were not asked for");
    if (opcode != VPPS_I_TRANSPOSE && !v->request->optimizer) return VPPS_REFUSE(v, "no update was asked for");
    if ((opcode == VPPS_I_NORM || opcode == VPPS_I_NORM_ROWS) && !VPPS_TAKES_NORM(v->header)) {
        return VPPS_REFUSE(v, "no norm was asked for");
    }
    if (opcode == VPPS_I_NORM_ROWS || opcode == VPPS_I_UPDATE_ROWS)
        return run_rows(v, opcode, operands[0], operands[1], n);
    return run_parameter(v, opcode, operands[0]);
}

/* Pieces of gradients that the VP's sum of squares must have. */
static uint32_t norms_due(const vpps_verifier *v) {
    uint32_t n = 0;
    for (uint32_t p = 0; p < v->n_params; p++) {
        vpps_rows rows = vpps_verify_own(v, v->params[p].rows);
        n += v->updated_param[p] && rows.first < rows.end;
    }
    for (uint32_t i = 0; i < v->row_table_size; i++) {
        if (v->rows[i].slot == UINT32_MAX) continue;
        vpps_rows rows = vpps_verify_own(v, v->slots[v->rows[i].slot].words);
        n += rows.first < rows.end;
    }
    return n;
}

bool vpps_verify_norm_end(vpps_verifier *v) {
    vpps_vp_state *vp = &v->vps[v->vp];
    if (!v->training || !VPPS_TAKES_NORM(v->header)) return VPPS_REFUSE(v, "no norm was asked for");
    if (vp->norm_published) return VPPS_REFUSE(v, "the VP's norm is published already");
    uint32_t due = norms_due(v);
    if (vp->normed != due) return VPPS_REFUSE(v, "the VP's norm is of %u gradients, not of %u", vp->normed, due);
    vp->norm_published = true;
    return vpps_verify_write(v, v->plan->norms + v->vp, 1, VPPS_HOLDS_NORM | v->vp);
}

/* eager.c - divides each product of a recurrent cell in two. The terms whose operands need no child vertex run for all vertices at once,
 * before the recurrence (Cavs, section 3.4); the remaining terms run in it. For example, W x of a whole sequence becomes one product. */
#include "cell/cell.h"

void vpps_mark_recurrent(const vpps_compiled_cell *c, uint8_t *recurrent) {
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        recurrent[v] = (x->kind == VPPS_VALUE_INPUT && (c->needs.recurrent_in >> x->input & 1)) ||
                       (x->kind == VPPS_VALUE_GRADIENT && (c->needs.recurrent_out >> x->output & 1));
        for (uint32_t i = 0; i < x->n_args; i++) {
            const uint32_t a = c->args[x->first_arg + i].value;
            if ((v < c->n_forward) == (a < c->n_forward)) recurrent[v] |= recurrent[a];
        }
    }
}

vpps_status vpps_separate_eager(vpps_compiled_cell *c) {
    if (!c->needs.recurrent_in) return VPPS_OK;
    vpps_compiled_cell to = {0};
    const size_t n = c->n_values + 1u;
    uint8_t *recurrent = calloc(n, 1);
    uint32_t *map = calloc(n, sizeof *map);
    bool ok = recurrent && map;
    if (ok) vpps_mark_recurrent(c, recurrent);
    for (uint32_t v = 0; ok && v < c->n_values; v++) {
        vpps_cell_value x = c->values[v];
        const vpps_cell_arg *args = &c->args[x.first_arg];
        const uint32_t n_args = x.n_args;
        uint32_t n_eager = 0, before = VPPS_NONE;
        for (uint32_t i = 0; i < n_args && x.kind == VPPS_VALUE_PRODUCT && recurrent[v]; i++)
            n_eager += !recurrent[args[i].value];
        x.n_args = 0;
        if (n_eager) {
            before = vpps_cell_add(&to, x);
            ok = before != VPPS_NONE;
            for (uint32_t i = 0; ok && i < n_args; i++)
                if (!recurrent[args[i].value])
                    ok = vpps_cell_add_arg(&to, map[args[i].value], args[i].element, args[i].matrix);
            x.bias = VPPS_NO_PARAM;
        }
        map[v] = ok ? vpps_cell_add(&to, x) : VPPS_NONE;
        ok = map[v] != VPPS_NONE;
        if (ok && n_eager) ok = vpps_cell_add_arg(&to, before, 0, VPPS_NO_PARAM);
        for (uint32_t i = 0; ok && i < n_args; i++)
            if (!n_eager || recurrent[args[i].value])
                ok = vpps_cell_add_arg(&to, map[args[i].value], args[i].element, args[i].matrix);
    }
    if (ok) {
        VPPS_FREE_ARRAYS(c->values, c->args);
        c->values = to.values;
        c->args = to.args;
        c->n_forward = c->n_values = to.n_values;
        c->n_args = to.n_args;
        c->holds = map[c->holds];
        for (uint32_t k = 0; k < c->n_outputs; k++)
            if (c->outputs[k].value != VPPS_NONE) c->outputs[k].value = map[c->outputs[k].value];
    } else {
        VPPS_FREE_ARRAYS(to.values, to.args);
    }
    VPPS_FREE(recurrent, map);
    return ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name);
}

/* tables.c - reads whole lookup tables that are sharded over processes, for checkpoints. */
#include "runtime/tables.h"

#define DONE VPPS_NO_PARAM

/* A request of the first process to the others: send entries [first, first + n) of a table. */
typedef struct order {
    uint32_t param, state; /* state: 0 for the table's values, k + 1 for the optimiser's state number k */
    uint32_t first, n;     /* range of the table's entries: n entries, from entry `first` on */
} order;

/* Returns the first entry of [first, first + n) that process `rank` owns. */
static uint32_t first_of(const order *o, uint32_t size, uint32_t rank) {
    return o->first + (rank + size - o->first % size) % size;
}
static uint32_t count_of(const order *o, uint32_t size, uint32_t rank) {
    const uint32_t first = first_of(o, size, rank), end = o->first + o->n;
    return first < end ? (end - 1 - first) / size + 1 : 0;
}

static float *held_array(const vpps_parameter_data *p, uint32_t state) {
    return state ? p->states[state - 1] : p->values;
}

vpps_status vpps_table_read(void *source, size_t i, uint64_t first, size_t room, float *out, size_t *got) {
    const vpps_table_source *s = source;
    vpps_communicator *c = s->c;
    const vpps_table_tensor *t = &s->tensors[i];
    const vpps_parameter_data *p = &s->model->params[t->param];
    const size_t words = (size_t)p->rows * p->cols, n = room / words * words;
    order o = {t->param, (uint32_t)(t->state + 1), (uint32_t)(first / words), (uint32_t)(n / words)};
    *got = n;
    float *scratch = malloc(n * sizeof *scratch);
    if (!scratch) return vpps_fail(VPPS_MEMORY, "lookup tables: out of memory for a piece");
    vpps_status status = vpps_comm_broadcast(c, &o, sizeof o, 0);
    float *at = scratch;
    for (uint32_t q = 0; q < c->size; q++) {
        const size_t elems = q ? count_of(&o, c->size, q) * words : 0;
        c->out[q] = (vpps_parcel){NULL, 0};
        c->in[q] = (vpps_parcel){at, elems * sizeof *at};
        at += elems;
    }
    if (status == VPPS_OK) status = c->table->exchange(c);
    for (uint32_t q = 0; q < c->size && status == VPPS_OK; q++) {
        const float *from = q ? c->in[q].data : held_array(p, o.state) + first_of(&o, c->size, 0) / c->size * words;
        float *to = out + (size_t)(first_of(&o, c->size, q) - o.first) * words;
        for (uint32_t k = count_of(&o, c->size, q); k > 0; k--, from += words, to += c->size * words)
            memcpy(to, from, words * sizeof *to);
    }
    free(scratch);
    return status;
}

vpps_status vpps_tables_done(vpps_communicator *c) {
    order o = {DONE, 0, 0, 0};
    return vpps_comm_broadcast(c, &o, sizeof o, 0);
}

vpps_status vpps_tables_give(vpps_communicator *c, const vpps_model *model) {
    for (;;) {
        order o;
        VPPS_TRY(vpps_comm_broadcast(c, &o, sizeof o, 0));
        if (o.param == DONE) return VPPS_OK;
        const vpps_parameter_data *p = &model->params[o.param];
        const size_t words = (size_t)p->rows * p->cols;
        float *from = held_array(p, o.state) + first_of(&o, c->size, c->rank) / c->size * words;
        for (uint32_t q = 0; q < c->size; q++) c->out[q] = c->in[q] = (vpps_parcel){NULL, 0};
        c->out[0] = (vpps_parcel){from, count_of(&o, c->size, c->rank) * words * sizeof *from};
        VPPS_TRY(c->table->exchange(c));
    }
}

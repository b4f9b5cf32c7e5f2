/* generate_places.c - writes C expressions for elements of values that a stage (part of a cell) uses and for numbers
 * that instructions take (real, integer, random), and code that stores elements. generate_stage.h explains names. */
#include "codegen/generate_stage.h"

#include <stdarg.h>

typedef vpps_stage_work work;

bool vpps_made_in_loop(const work *w, uint32_t v) {
    const uint32_t made_in = w->s.made_in[v];
    return made_in == w->segment || (w->joined && made_in + 1 == w->segment);
}

void vpps_put_slot(const work *w, uint32_t v, const char *item, const char *element) {
    fprintf(w->out, "vpps_slot<%u>(s%u, %s, %s)", vpps_segment_width(&w->s, v), v, item, element);
}

/* Writes a C expression for an element of an operand that is in memory, not in a slot (buffer of a tile's values). */
static void put_place(const work *w, const vpps_operand *o, const char *item, const char *element) {
    switch (o->place) {
    case VPPS_PLACE_INPUT: fprintf(w->out, "vpps_at(pool, in%u[f%u + %s], %s)", o->at, o->axis, item, element); return;
    case VPPS_PLACE_ENTRY: fprintf(w->out, "vpps_at(pool, lk%u[f0 + %s], %s)", o->at, item, element); return;
    case VPPS_PLACE_PARAMETER: fprintf(w->out, "vpps_at(pool, %uu, %s)", w->g->pool->values[o->at], element); return;
    case VPPS_PLACE_DATA: fprintf(w->out, "__uint_as_float(script[data[f0 + %s] + %s])", item, element); return;
    case VPPS_PLACE_CONTRIBUTION:
        fprintf(w->out, "vpps_contributed<%u>(pool, c%u, f%u + %s, %s)", vpps_operand_words(o), o->at, o->axis, item,
                element);
        return;
    default: break;
    }
    char records[16] = "pass_record";
    if (!vpps_is_pass_record(o->record)) snprintf(records, sizeof records, "k%u", o->axis);
    fprintf(w->out, "vpps_kept<%u, %u>(pool, %s, f%u + %s, %s)", w->c->kept_words[o->record], o->at, records, o->axis,
            item, element);
}

void vpps_put_memory(const work *w, uint32_t v, const char *item, const char *element) {
    put_place(w, w->s.memory[v], item, element);
}

void vpps_put_element(const work *w, uint32_t v, const char *item, const char *in_slot, const char *in_memory) {
    if (vpps_in_slot(w, v))
        vpps_put_slot(w, v, item, in_slot);
    else
        vpps_put_memory(w, v, item, in_memory);
}

void vpps_put_at(const work *w, uint32_t v, const char *item, const char *element, ...) {
    char text[160];
    va_list arguments;
    va_start(arguments, element);
    vsnprintf(text, sizeof text, element, arguments);
    va_end(arguments);
    vpps_put_element(w, v, item, text, text);
}

void vpps_put_vertex(const work *w, uint32_t axis) {
    if (axis) fprintf(w->out, "const unsigned vx = vpps_vertex_of(ls%u, f0, n0, f%u + item);\n(void)vx;\n", axis, axis);
}

static const char *vertex_of(uint32_t axis) { return axis ? "vx" : "item"; }

static void put_count(const work *w, const vpps_cell_count *count, uint32_t axis) {
    fprintf(w->out, "%uu", count->base);
    for (uint32_t d = 1; d <= w->c->n_lists; d++)
        if (count->list[d]) fprintf(w->out, " + %uu * vpps_members(ls%u, f0 + %s)", count->list[d], d, vertex_of(axis));
}

void vpps_put_f(const work *w, const vpps_program_step *s) {
    const vpps_cell_number *f = &s->run.of.f;
    if (f->kind == VPPS_NUMBER_INVERSE) {
        fprintf(w->out, "vpps_inverse(");
        put_count(w, &f->count, s->axis);
        fprintf(w->out, ")");
    } else if (f->kind == VPPS_NUMBER_WORD) {
        fprintf(w->out, "__uint_as_float(wd%u[f0 + %s])", f->word, vertex_of(s->axis));
    } else {
        fprintf(w->out, "__uint_as_float(0x%08xu)", vpps_float_bits(f->real));
    }
}

void vpps_put_u(const work *w, const vpps_program_step *s) {
    const vpps_cell_number *u = &s->run.of.u;
    if (u->kind == VPPS_NUMBER_WORD) {
        fprintf(w->out, "wd%u[f0 + %s]", u->word, vertex_of(s->axis));
    } else if (u->kind == VPPS_NUMBER_POSITION) {
        put_count(w, &u->count, s->axis);
        if (s->axis) fprintf(w->out, " + (f%u + item - ls%u[f0 + vx])", s->axis, s->axis); /* the member's position */
    } else {
        fprintf(w->out, "%uu", u->whole);
    }
}

void vpps_put_random(const work *w, const vpps_program_step *s) {
    const vpps_cell_number *e = &s->run.of.u;
    fprintf(w->out, "dropout_uniform(vpps_header.dropout_key[0], vpps_header.dropout_key[1], wd%u[f0 + %s] + ", e->word,
            vertex_of(s->axis));
    put_count(w, &e->count, s->axis);
    if (s->axis) fprintf(w->out, " + (f%u + item - ls%u[f0 + vx]) * %uu", s->axis, s->axis, vpps_operand_words(&s->to));
    fprintf(w->out, " + element)");
}

void vpps_store_in_slot(const work *w, uint32_t v) {
    if (!vpps_in_slot(w, v) || w->s.last_read[v] <= w->segment + 1) return;
    vpps_put_slot(w, v, "item", "e");
    fprintf(w->out, " = v%u;\n", v);
}

void vpps_store_in_memory(const work *w, uint32_t v, const char *from) {
    const vpps_program *p = w->s.p;
    for (uint32_t i = 0; i < p->n; i++) {
        const vpps_operand *to = &p->steps[i].to;
        if (to->value != v || (to->place != VPPS_PLACE_RECORD && to->place != VPPS_PLACE_CONTRIBUTION)) continue;
        const bool parts = to->place == VPPS_PLACE_RECORD && vpps_is_kept_in_parts(w->g, w->c, v);
        put_place(w, to, "item", "element");
        fprintf(w->out, parts ? " = vpps_in_parts(%s);\n" : " = %s;\n", from);
    }
}

void vpps_store_made(const work *w, uint32_t v) {
    char name[16];
    snprintf(name, sizeof name, "v%u", v);
    vpps_store_in_slot(w, v);
    vpps_store_in_memory(w, v, name);
}

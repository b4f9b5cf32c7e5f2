/* generate_elements.c - values of a stage that are made element by element. See generate_stage.h. */
#include "codegen/generate_stage.h"

typedef vpps_stage_work work;

/* ---------------------------------------------------------------- where values lie */

static void put_slot(const work *w, uint32_t v, const char *item, const char *element) {
    fprintf(w->out, "s%u[(%s) * %u + (%s)]", v, item, vpps_segment_width(&w->s, v), element);
}

/* Item `item` of the tile, element `element` of the value. What differs between the values of an item is added last, to an
 * address: then it is part of the load's instruction. */
static void put_memory(const work *w, uint32_t v, const char *item, const char *element) {
    char at[128];
    snprintf(at, sizeof at, "f%u + %s", vpps_stage_value(w, v)->domain, item);
    fprintf(w->out, "(pool + (");
    const uint32_t offset = vpps_generate_place(w->out, w->g, w->c, v, at);
    fprintf(w->out, ") + (%s))[%u]", element, offset);
}

/* Does the loop over elements that is being written make it? */
static bool made_here(const work *w, uint32_t v) {
    const uint32_t made_in = w->s.made_in[v];
    return made_in == w->segment || (w->joined && made_in + 1 == w->segment && vpps_is_product(vpps_stage_value(w, v)));
}

void vpps_put_at(const work *w, uint32_t v, const char *item, const char *element) {
    if (vpps_in_slot(w, v)) {
        put_slot(w, v, item, element);
    } else {
        put_memory(w, v, item, element);
    }
}

void vpps_put_pointer(const work *w, uint32_t v, const char *item) {
    fprintf(w->out, "&");
    vpps_put_at(w, v, item, "0u");
}

const char *vpps_item_for(const work *w, const vpps_cell_value *x, uint32_t v) {
    return vpps_stage_value(w, v)->domain == x->domain ? "item" : "vx";
}

/* The argument's element that belongs to the current one, or the one that is wanted always. */
static void put_operand(const work *w, const vpps_cell_value *x, uint32_t i) {
    const vpps_cell_arg *a = vpps_stage_arg(w, x, i);
    const uint32_t v = a->value;
    char element[32];
    if (vpps_reads_alike(&w->s, (uint32_t)(x - w->c->values), i)) {
        if (made_here(w, v)) {
            fprintf(w->out, "v%u", v);
        } else if (vpps_in_slot(w, v)) {
            put_slot(w, v, "item", "e");
        } else {
            fprintf(w->out, "m%u", v);
        }
        return;
    }
    const char *types = vpps_instructions[x->run.opcode].operands;
    uint32_t at = 0;
    bool scalar = false;
    for (; *types && *types != '*'; types++)
        if (strchr("tsv", *types) && at++ == i) scalar = *types == 's';
    if (scalar) {
        snprintf(element, sizeof element, "%u", a->element);
        vpps_put_at(w, v, vpps_item_for(w, x, v), element);
    } else if (vpps_in_slot(w, v)) {
        put_slot(w, v, vpps_item_for(w, x, v), "e");
    } else {
        put_memory(w, v, vpps_item_for(w, x, v), "el");
    }
}

/* ---------------------------------------------------------------- numbers among operands */

/* Members of all lists that are counted, each as often as the count says. */
static void put_before(const work *w, const vpps_cell_count *count) {
    fprintf(w->out, "0u");
    for (uint32_t d = 1; d <= w->c->n_lists; d++)
        if (count->list[d]) fprintf(w->out, " + %uu * (ls%u[f0 + vx + 1] - ls%u[f0 + vx])", count->list[d], d, d);
}

static void put_member(const work *w, const vpps_cell_value *x) {
    if (x->domain) {
        fprintf(w->out, "(f%u + item - ls%u[f0 + vx])", x->domain, x->domain);
    } else {
        fprintf(w->out, "0u");
    }
}

void vpps_put_f(const work *w, const vpps_cell_value *x) {
    const vpps_cell_number *f = &x->run.f;
    if (f->kind == VPPS_NUMBER_INVERSE) {
        fprintf(w->out, "1.0f / (float)(%uu + ", f->count.base);
        put_before(w, &f->count);
        fprintf(w->out, ")");
    } else if (f->kind == VPPS_NUMBER_WORD) {
        fprintf(w->out, "__uint_as_float(wd%u[f0 + vx])", f->word);
    } else {
        uint32_t bits;
        memcpy(&bits, &f->real, sizeof bits);
        fprintf(w->out, "__uint_as_float(0x%08xu)", bits);
    }
}

void vpps_put_u(const work *w, const vpps_cell_value *x) {
    const vpps_cell_number *u = &x->run.u;
    if (u->kind == VPPS_NUMBER_WORD) {
        fprintf(w->out, "wd%u[f0 + vx]", u->word);
    } else {
        fprintf(w->out, "%uu", u->kind == VPPS_NUMBER_POSITION ? u->count.base : u->whole);
    }
    if (u->kind != VPPS_NUMBER_POSITION) return;
    fprintf(w->out, " + ");
    put_before(w, &u->count);
    fprintf(w->out, " + ");
    put_member(w, x);
}

static void put_random(const work *w, const vpps_cell_value *x) {
    fprintf(w->out, "dropout_uniform(vpps_header.dropout_key[0], vpps_header.dropout_key[1], wd%u[f0 + vx] + %uu + ",
            x->run.u.word, x->run.u.count.base);
    put_before(w, &x->run.u.count);
    fprintf(w->out, " + ");
    put_member(w, x);
    fprintf(w->out, " * %uu + el)", vpps_value_words(x));
}

/* ---------------------------------------------------------------- elements */

/* x, y, z, s, f, u, random of the formula. */
static void make_formula(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    const char *types = vpps_instructions[x->run.opcode].operands;
    static const struct {
        char letter;
        const char *otherwise;
        void (*put)(const work *w, const vpps_cell_value *x);
    } numbers[] = {{'f', "0.0f", vpps_put_f}, {'u', "0u", vpps_put_u}, {'e', "0.0f", put_random}};
    uint32_t arg = 0, tensors = 0;
    fprintf(w->out, "const float v%u = vpps_value_%s(", v, vpps_instructions[x->run.opcode].name);
    for (const char *t = types; *t == 't'; t++, tensors++) {
        put_operand(w, x, arg++);
        fprintf(w->out, ", ");
    }
    for (; tensors < 3; tensors++) fprintf(w->out, "0.0f, ");
    if (strchr(types, 's')) {
        put_operand(w, x, arg++);
    } else {
        fprintf(w->out, "0.0f");
    }
    for (size_t i = 0; i < VPPS_COUNT(numbers); i++) {
        fprintf(w->out, ", ");
        if (strchr(types, numbers[i].letter)) {
            numbers[i].put(w, x);
        } else {
            fprintf(w->out, "%s", numbers[i].otherwise);
        }
    }
    fprintf(w->out, ");\n");
}

static void put_list_loop(const work *w, uint32_t domain) {
    fprintf(w->out, "for (unsigned m = ls%u[f0 + item] - f%u; m < ls%u[f0 + item + 1] - f%u; m++) ", domain, domain,
            domain, domain);
}

/* Member m of argument i. */
static void put_member_operand(const work *w, const vpps_cell_value *x, uint32_t i) {
    const uint32_t v = vpps_stage_arg(w, x, i)->value;
    if (vpps_in_slot(w, v)) {
        put_slot(w, v, "m", "e");
    } else {
        put_memory(w, v, "m", "el");
    }
}

static bool goes_over(const work *w, const vpps_cell_value *x, uint32_t i) {
    return !x->domain && vpps_stage_value(w, vpps_stage_arg(w, x, i)->value)->domain;
}

static void make_sum(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    uint32_t alone = 0;
    fprintf(w->out, "float v%u = 0.0f;\n", v);
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (goes_over(w, x, i)) {
            put_list_loop(w, vpps_stage_value(w, vpps_stage_arg(w, x, i)->value)->domain);
            fprintf(w->out, "v%u += ", v);
            put_member_operand(w, x, i);
        } else {
            alone++;
            fprintf(w->out, "v%u += ", v);
            put_operand(w, x, i);
        }
        fprintf(w->out, ";\n");
    }
    if (x->run.f.kind != VPPS_NUMBER_INVERSE) {
        fprintf(w->out, "v%u *= ", v);
        vpps_put_f(w, x);
        fprintf(w->out, ";\n");
        return;
    }
    fprintf(w->out, "{ const unsigned n = %uu", alone);
    for (uint32_t i = 0; i < x->n_args; i++) {
        const uint32_t d = vpps_stage_value(w, vpps_stage_arg(w, x, i)->value)->domain;
        if (goes_over(w, x, i)) fprintf(w->out, " + ls%u[f0 + item + 1] - ls%u[f0 + item]", d, d);
    }
    fprintf(w->out, "; v%u *= n ? 1.0f / (float)n : 0.0f; }\n", v);
}

static void make_weighted_sum(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    const uint32_t weights = vpps_stage_arg(w, x, 0)->value;
    fprintf(w->out, "float v%u = 0.0f;\n", v);
    if (x->run.over_list) {
        put_list_loop(w, vpps_stage_value(w, weights)->domain);
        fprintf(w->out, "v%u += ", v);
        vpps_put_at(w, weights, "m", "0u");
        fprintf(w->out, " * ");
        put_member_operand(w, x, 1);
        fprintf(w->out, ";\n");
        return;
    }
    fprintf(w->out, "{ unsigned k = 0;\n");
    for (uint32_t i = 1; i < x->n_args; i++) {
        if (goes_over(w, x, i)) put_list_loop(w, vpps_stage_value(w, vpps_stage_arg(w, x, i)->value)->domain);
        fprintf(w->out, "{ v%u += ", v);
        vpps_put_at(w, weights, vpps_item_for(w, x, weights), "k");
        fprintf(w->out, " * ");
        if (goes_over(w, x, i)) {
            put_member_operand(w, x, i);
        } else {
            put_operand(w, x, i);
        }
        fprintf(w->out, "; k++; }\n");
    }
    fprintf(w->out, "}\n");
}

/* MAX_OF, MIN_OF, and the position of the first that has it. A NaN is the extreme. */
static void make_extreme(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    const char sign = x->run.opcode == VPPS_I_MAX_OF ? '>' : '<';
    fprintf(w->out, "float v%u = 0.0f, v%u;\n{ unsigned k = 0, best = 0;\n", v, v + 1);
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (goes_over(w, x, i)) put_list_loop(w, vpps_stage_value(w, vpps_stage_arg(w, x, i)->value)->domain);
        fprintf(w->out, "{ const float y = ");
        if (goes_over(w, x, i)) {
            put_member_operand(w, x, i);
        } else {
            put_operand(w, x, i);
        }
        fprintf(w->out, "; if (k == 0 || y %c v%u || (y != y && v%u == v%u)) { v%u = y; best = k; } k++; }\n", sign, v,
                v, v, v);
    }
    fprintf(w->out, "v%u = __uint_as_float(best); }\n", v + 1);
}

static void make_matmul(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v), *a = vpps_stage_value(w, vpps_stage_arg(w, x, 0)->value);
    const uint32_t r = x->rows, c = x->cols, k = x->run.opcode == VPPS_I_MATMUL_TN ? a->rows : a->cols;
    char left[64], right[64];
    if (x->run.opcode == VPPS_I_MATMUL_TN) {
        snprintf(left, sizeof left, "el %% %uu * %uu + k", r, k);
    } else {
        snprintf(left, sizeof left, "k * %uu + el %% %uu", r, r);
    }
    if (x->run.opcode == VPPS_I_MATMUL_NT) {
        snprintf(right, sizeof right, "k * %uu + el / %uu", c, r);
    } else {
        snprintf(right, sizeof right, "el / %uu * %uu + k", r, k);
    }
    fprintf(w->out, "float v%u = 0.0f;\n#pragma unroll 1\nfor (unsigned k = 0; k < %u; k++) v%u += ", v, k, v);
    vpps_put_at(w, vpps_stage_arg(w, x, 0)->value, vpps_item_for(w, x, vpps_stage_arg(w, x, 0)->value), left);
    fprintf(w->out, " * ");
    vpps_put_at(w, vpps_stage_arg(w, x, 1)->value, vpps_item_for(w, x, vpps_stage_arg(w, x, 1)->value), right);
    fprintf(w->out, ";\n");
}

/* Element `el` of the value is row el % rows of column el / rows. */
static void make_parts(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    char element[128];
    const vpps_cell_arg *a = vpps_stage_arg(w, x, 0);
    const vpps_cell_value *y = vpps_stage_value(w, a->value);
    if (x->run.over_list && x->run.opcode == VPPS_I_STACK) {
        snprintf(element, sizeof element, "el / %uu * %uu + el %% %uu", x->rows, y->rows, y->rows);
        fprintf(
            w->out,
            "float v%u = 0.0f;\n{ const unsigned m = ls%u[f0 + item] + el %% %uu / %uu;\nif (m < ls%u[f0 + item + 1]) "
            "v%u = ",
            v, y->domain, x->rows, y->rows, y->domain, v);
        char item[48];
        snprintf(item, sizeof item, "m - f%u", y->domain);
        vpps_put_at(w, a->value, item, element);
        fprintf(w->out, "; }\n");
        return;
    }
    if (x->run.over_list) {
        snprintf(element, sizeof element, "el / %uu * %uu + el %% %uu + (f%u + item - ls%u[f0 + vx]) * %uu", x->rows,
                 y->rows, x->rows, x->domain, x->domain, x->rows);
        fprintf(w->out, "const float v%u = ", v);
        vpps_put_at(w, a->value, "vx", element);
        fprintf(w->out, ";\n");
        return;
    }
    fprintf(w->out, "float v%u = 0.0f;\n{ const unsigned row = el %% %uu, column = el / %uu;\n", v, x->rows, x->rows);
    uint32_t row = 0;
    for (uint32_t k = 0; k < x->n_args; k++) {
        a = vpps_stage_arg(w, x, k);
        y = vpps_stage_value(w, a->value);
        if (x->run.opcode == VPPS_I_SLICE) {
            snprintf(element, sizeof element, "column * %uu + row + %uu", y->rows, x->run.u.whole);
        } else {
            const uint32_t first = x->run.opcode == VPPS_I_PLACE ? x->run.u.whole : row;
            snprintf(element, sizeof element, "column * %uu + row - %uu", y->rows, first);
            fprintf(w->out, "if (row - %uu < %uu) ", first, y->rows);
        }
        fprintf(w->out, "v%u = ", v);
        vpps_put_at(w, a->value, vpps_item_for(w, x, a->value), element);
        fprintf(w->out, ";\n");
        row += y->rows;
    }
    fprintf(w->out, "}\n");
}

/* Where the first two contributions, mostly all that there are, lie; where there are fewer, what stands behind the lists. */
static void find_gradient(const work *w, uint32_t v) {
    const uint32_t k = vpps_stage_value(w, v)->output;
    fprintf(w->out,
            "unsigned g%u = gs%u[f0 + item];\nconst unsigned h%u = gs%u[f0 + item + 1];\nunsigned i%u = ge%u[g%u], j%u "
            "= ge%u[g%u + 1];\n",
            v, k, v, k, v, k, v, v, k, v);
}

static void know_gradient(const work *w, uint32_t v) { fprintf(w->out, "vpps_know(i%u), vpps_know(j%u);\n", v, v); }

static void begin_gradient(const work *w, uint32_t v) {
    fprintf(w->out,
            "float v%u = 0.0f, second%u = 0.0f;\nif (g%u < h%u) v%u = pool[i%u + el];\nif (g%u + 1 < h%u) second%u = "
            "pool[j%u + el];\n",
            v, v, v, v, v, v, v, v, v, v);
}

static void make_gradient(const work *w, uint32_t v) {
    fprintf(w->out,
            "if (g%u + 1 < h%u) v%u += second%u;\n#pragma unroll 1\nfor (g%u += 2; g%u < h%u; g%u++) v%u += "
            "pool[ge%u[g%u] + el];\n",
            v, v, v, v, v, v, v, v, v, vpps_stage_value(w, v)->output, v);
}

static void make_element(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    switch (x->kind) {
    case VPPS_VALUE_DATA:
        fprintf(w->out, "const float v%u = __uint_as_float(script[data[f0 + item] + el]);\n", v);
        return;
    case VPPS_VALUE_GRADIENT: make_gradient(w, v); return;
    default: break;
    }
    switch (x->run.opcode) {
    case VPPS_I_SUM: make_sum(w, v); return;
    case VPPS_I_WEIGHTED_SUM: make_weighted_sum(w, v); return;
    case VPPS_I_MAX_OF:
    case VPPS_I_MIN_OF: make_extreme(w, v); return;
    default: break;
    }
    if (vpps_instructions[x->run.opcode].form == VPPS_FORM_PARTS) {
        make_parts(w, v);
    } else if (vpps_instructions[x->run.opcode].form == VPPS_FORM_MATMUL) {
        make_matmul(w, v);
    } else {
        make_formula(w, v);
    }
}

/* To where the value is kept and contributed, from `from`. */
static void store(const work *w, uint32_t v, const char *from) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    if (x->kept) {
        const bool parts = vpps_is_kept_in_parts(w->g, w->c, v);
        put_memory(w, v, "item", "el");
        fprintf(w->out, " = %s(%s);\n", parts ? "vpps_in_parts" : "", from);
    }
    for (uint32_t j = 0; j < w->c->n_contributions; j++) {
        if (w->c->contributions[j].value != v) continue;
        fprintf(w->out, "pool[c%u + (f%u + item) * %uu + el] = %s;\n", j, x->domain, vpps_value_words(x), from);
    }
}

void vpps_store_in_slot(const work *w, uint32_t v) {
    if (!vpps_in_slot(w, v) || w->s.last_read[v] <= w->segment + 1) return;
    put_slot(w, v, "item", "e");
    fprintf(w->out, " = v%u;\n", v);
}

void vpps_store_made(const work *w, uint32_t v) {
    char name[16];
    snprintf(name, sizeof name, "v%u", v);
    vpps_store_in_slot(w, v);
    store(w, v, name);
}

static bool has_positions(const work *w, uint32_t v) {
    return v + 1 < w->c->n_values && w->c->values[v + 1].kind == VPPS_VALUE_POSITIONS;
}

static void put_gradients(const work *w, const vpps_segment *g, void (*put)(const work *, uint32_t)) {
    for (uint32_t k = 0; k < g->n; k++) {
        const vpps_step_of_segment *step = &w->s.steps[g->first + k];
        if (step->kind == VPPS_SEGMENT_STEP_MAKE && vpps_stage_value(w, step->value)->kind == VPPS_VALUE_GRADIENT)
            put(w, step->value);
    }
}

/* Operands that are read alike from memory, each once, before anything is stored. What lies far is loaded behind all that tells
 * where it lies, or one would wait for the other. `put` declares and loads value u. */
static void load_operands(const work *w, const vpps_segment *g, uint8_t *loaded,
                          void (*put)(const work *w, uint32_t u)) {
    memset(loaded, 0, w->c->n_values);
    for (uint32_t k = 0; k < g->n; k++) {
        const vpps_step_of_segment *step = &w->s.steps[g->first + k];
        const vpps_cell_value *x = vpps_stage_value(w, step->value);
        for (uint32_t i = 0; i < x->n_args && step->kind == VPPS_SEGMENT_STEP_MAKE; i++) {
            const uint32_t u = vpps_stage_arg(w, x, i)->value;
            if (loaded[u] || vpps_in_slot(w, u) || made_here(w, u) || !vpps_reads_alike(&w->s, step->value, i)) {
                continue;
            }
            loaded[u] = 1;
            put(w, u);
        }
    }
}

/* Does the script say where the value lies? */
static bool has_place(const work *w, uint32_t u) {
    const uint8_t kind = vpps_stage_value(w, u)->kind;
    return kind == VPPS_VALUE_INPUT || kind == VPPS_VALUE_LOOKUP;
}

static void find_operand(const work *w, uint32_t u) {
    char item[32];
    if (!has_place(w, u)) return;
    snprintf(item, sizeof item, "f%u + item", vpps_stage_value(w, u)->domain);
    fprintf(w->out, "unsigned p%u = ", u);
    vpps_generate_place(w->out, w->g, w->c, u, item);
    fprintf(w->out, ";\n");
}

static void know_operand(const work *w, uint32_t u) {
    if (has_place(w, u)) fprintf(w->out, "vpps_know(p%u);\n", u);
}

static void declare_operand(const work *w, uint32_t u) { fprintf(w->out, "float m%u = 0.0f;\n", u); }

static void load_declared(const work *w, uint32_t u) {
    fprintf(w->out, "m%u = ", u);
    if (has_place(w, u)) {
        fprintf(w->out, "(pool + p%u + (el))[0]", u);
    } else {
        put_memory(w, u, "item", "el");
    }
    fprintf(w->out, ";\n");
}

static void load_operand(const work *w, uint32_t u) {
    fprintf(w->out, "const float ");
    load_declared(w, u);
}

/* Is there a thread for every element of a tile? */
static bool is_one_round(const work *w, uint32_t domain, uint32_t width) {
    return !domain && w->tile * width <= w->g->plan->threads;
}

/* Opens the loop over n items and their elements, which a tile of vertices may have fewer of than there are threads. Two braces
 * close it. */
static void open_elements(const work *w, const char *n, uint32_t domain, uint32_t rows, uint32_t width, bool dealt) {
    enum { SHORT = 4 /* times around: a compiler would make as many copies of a loop */ };
    if (is_one_round(w, domain, width)) {
        fprintf(w->out, "{\nconst unsigned i = threadIdx.x;\n");
    } else {
        const bool short_loop = !domain && w->tile * width <= SHORT * w->g->plan->threads;
        fprintf(w->out, "%sfor (unsigned i = threadIdx.x; i < %s * %uu; i += VPPS_THREADS) {\n",
                short_loop ? "#pragma unroll 1\n" : "", n, width);
    }
    fprintf(w->out, "const unsigned item = i / %uu, e = i %% %uu;\n", width, width);
    fprintf(w->out, "if (item < %s", n);
    if (dealt) {
        fprintf(w->out, " && e < r%u.end - r%u.first) {\nconst unsigned el = r%u.first + e;\n", rows, rows, rows);
    } else {
        fprintf(w->out, ") {\nconst unsigned el = e;\n");
    }
    if (domain) {
        fprintf(w->out, "const unsigned vx = vpps_vertex_of(ls%u, f0, n0, f%u + item);\n", domain, domain);
    } else {
        fprintf(w->out, "const unsigned vx = item;\n");
    }
    fprintf(w->out, "(void)vx, (void)el, (void)e;\n");
}

static void open_segment(const work *w, const vpps_segment *g) {
    const uint32_t v = w->s.steps[g->first].value;
    char n[16];
    snprintf(n, sizeof n, "n%u", g->domain);
    open_elements(w, n, g->domain, vpps_stage_value(w, v)->rows, vpps_segment_width(&w->s, v), g->dealt);
}

bool vpps_put_early_loads(const work *w, const vpps_segment *g, uint8_t *loaded) {
    if (!is_one_round(w, g->domain, vpps_segment_width(&w->s, w->s.steps[g->first].value))) return false;
    load_operands(w, g, loaded, declare_operand);
    open_segment(w, g);
    load_operands(w, g, loaded, find_operand);
    load_operands(w, g, loaded, know_operand);
    load_operands(w, g, loaded, load_declared);
    fprintf(w->out, "}\n}\n");
    return true;
}

void vpps_put_elements(const work *w, const vpps_segment *g, uint8_t *loaded) {
    open_segment(w, g);
    put_gradients(w, g, find_gradient);
    if (!w->loaded_early) load_operands(w, g, loaded, find_operand);
    put_gradients(w, g, know_gradient);
    if (!w->loaded_early) {
        load_operands(w, g, loaded, know_operand);
        load_operands(w, g, loaded, load_operand);
    }
    put_gradients(w, g, begin_gradient);
    if (w->joined) vpps_put_joined(w, g - 1);
    for (uint32_t pass = 0; pass < 2; pass++) { /* all is read, then all is stored */
        for (uint32_t k = 0; k < g->n; k++) {
            const vpps_step_of_segment *step = &w->s.steps[g->first + k];
            const uint32_t u = step->value;
            if (pass == 0 && step->kind == VPPS_SEGMENT_STEP_LOAD) {
                fprintf(w->out, "const float v%u = ", u);
                put_memory(w, u, "item", "el");
                fprintf(w->out, ";\n");
            } else if (pass == 0 && step->kind == VPPS_SEGMENT_STEP_STORE) {
                fprintf(w->out, "const float t%u = ", u);
                if (made_here(w, u)) {
                    fprintf(w->out, "v%u", u);
                } else {
                    put_slot(w, u, "item", "e");
                }
                fprintf(w->out, ";\n");
            } else if (pass == 0) {
                make_element(w, u);
            } else if (step->kind == VPPS_SEGMENT_STEP_LOAD) {
                put_slot(w, u, "item", "e");
                fprintf(w->out, " = v%u;\n", u);
            } else if (step->kind == VPPS_SEGMENT_STEP_STORE) {
                char name[16];
                snprintf(name, sizeof name, "t%u", u);
                store(w, u, name);
            } else {
                vpps_store_made(w, u);
                if (has_positions(w, u)) vpps_store_made(w, u + 1);
            }
        }
    }
    for (uint32_t k = 0; w->joined && k < g[-1].n; k++) vpps_store_finished(w, w->s.steps[g[-1].first + k].value);
    fprintf(w->out, "}\n}\n");
}

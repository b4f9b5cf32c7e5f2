/* generate_stage.c - a stage as a function of the kernel. See segments.h for what it is made of. */
#include "codegen/generate_work.h"
#include "script/task.h"

#include <inttypes.h>

typedef struct work {
    const vpps_generation *g;
    const vpps_compiled_cell *c;
    vpps_segments s;
    FILE *out;
    uint32_t segment, tile;
    bool joined;          /* the segment finishes the products of the one before */
    uint32_t chunk;       /* items of a product at a time */
    uint32_t part_words;  /* of shared memory, for the sums of warps */
    uint32_t near_at;     /* where in shared memory, behind the weights, operands of products are brought */
    uint32_t near_item;   /* words there of an item, for the segment's operands; 0: they are read where they lie */
    uint32_t near_turns;  /* of so many times NEAR_ITEMS items */
    uint32_t near_words;  /* for all of them, at most */
    uint32_t *near;       /* of every operand of the segment: where it begins there; VPPS_NONE: read where it lies */
    uint8_t *streamed;    /* of every product by rows: one of its matrices is read from memory */
    uint32_t *part_at;    /* of every other: where in an item's words its rows' sums begin */
    uint32_t *item_words; /* of every segment: of an item, for the sums of all its products' rows */
} work;

static const vpps_cell_value *value_of(const work *w, uint32_t v) { return &w->c->values[v]; }
static const vpps_cell_arg *arg_of(const work *w, const vpps_cell_value *x, uint32_t i) {
    return &w->c->args[x->first_arg + i];
}

/* ---------------------------------------------------------------- where values lie */

static void put_slot(const work *w, uint32_t v, const char *item, const char *element) {
    fprintf(w->out, "s%u[(%s) * %u + (%s)]", v, item, vpps_segment_width(&w->s, v), element);
}

/* Item `item` of the tile, element `element` of the value. What differs between the values of an item is added last, to an
 * address: then it is part of the load's instruction. */
static void put_memory(const work *w, uint32_t v, const char *item, const char *element) {
    char at[128];
    snprintf(at, sizeof at, "f%u + %s", value_of(w, v)->domain, item);
    fprintf(w->out, "(pool + (");
    const uint32_t offset = vpps_generate_place(w->out, w->g, w->c, v, at);
    fprintf(w->out, ") + (%s))[%u]", element, offset);
}

/* Does the loop over elements that is being written make it? */
static bool made_here(const work *w, uint32_t v) {
    const uint32_t made_in = w->s.made_in[v];
    return made_in == w->segment || (w->joined && made_in + 1 == w->segment && vpps_is_product(value_of(w, v)));
}

static bool in_slot(const work *w, uint32_t v) { return w->s.slot[v] != VPPS_NONE && w->s.made_in[v] != VPPS_NONE; }

/* Any element of any item, from where it lies. */
static void put_at(const work *w, uint32_t v, const char *item, const char *element) {
    if (in_slot(w, v)) {
        put_slot(w, v, item, element);
    } else {
        put_memory(w, v, item, element);
    }
}

/* The item of an argument that the current one of a value has, where it is no list that is gone over. */
static const char *item_for(const work *w, const vpps_cell_value *x, uint32_t v) {
    return value_of(w, v)->domain == x->domain ? "item" : "vx";
}

/* The argument's element that belongs to the current one, or the one that is wanted always. */
static void put_operand(const work *w, const vpps_cell_value *x, uint32_t i) {
    const vpps_cell_arg *a = arg_of(w, x, i);
    const uint32_t v = a->value;
    char element[32];
    if (vpps_reads_alike(&w->s, (uint32_t)(x - w->c->values), i)) {
        if (made_here(w, v)) {
            fprintf(w->out, "v%u", v);
        } else if (in_slot(w, v)) {
            put_slot(w, v, "item", "e");
        } else {
            fprintf(w->out, "m%u", v);
        }
        return;
    }
    const char *types = vpps_instructions[x->opcode].operands;
    uint32_t at = 0;
    bool scalar = false;
    for (; *types && *types != '*'; types++)
        if (strchr("tsv", *types) && at++ == i) scalar = *types == 's';
    if (scalar) {
        snprintf(element, sizeof element, "%u", a->element);
        put_at(w, v, item_for(w, x, v), element);
    } else if (in_slot(w, v)) {
        put_slot(w, v, item_for(w, x, v), "e");
    } else {
        put_memory(w, v, item_for(w, x, v), "el");
    }
}

/* ---------------------------------------------------------------- numbers among operands */

/* Members of all lists that are counted, each as often as e_list says. */
static void put_before(const work *w, const vpps_cell_value *x) {
    fprintf(w->out, "0u");
    for (uint32_t d = 1; d <= w->c->n_lists; d++)
        if (x->e_list[d]) fprintf(w->out, " + %uu * (ls%u[f0 + vx + 1] - ls%u[f0 + vx])", x->e_list[d], d, d);
}

static void put_member(const work *w, const vpps_cell_value *x) {
    if (x->domain) {
        fprintf(w->out, "(f%u + item - ls%u[f0 + vx])", x->domain, x->domain);
    } else {
        fprintf(w->out, "0u");
    }
}

static void put_f(const work *w, const vpps_cell_value *x) {
    if (x->average && x->opcode == VPPS_I_SCALE) {
        fprintf(w->out, "1.0f / (float)(%uu + ", x->u);
        put_before(w, x);
        fprintf(w->out, ")");
    } else if (x->f_word != VPPS_NONE) {
        fprintf(w->out, "__uint_as_float(wd%u[f0 + vx])", x->f_word);
    } else {
        uint32_t bits;
        memcpy(&bits, &x->f, sizeof bits);
        fprintf(w->out, "__uint_as_float(0x%08xu)", bits);
    }
}

static void put_u(const work *w, const vpps_cell_value *x) {
    if (x->u_word != VPPS_NONE) {
        fprintf(w->out, "wd%u[f0 + vx]", x->u_word);
    } else {
        fprintf(w->out, "%uu", x->u);
    }
    if (!x->position) return;
    fprintf(w->out, " + ");
    put_before(w, x);
    fprintf(w->out, " + ");
    put_member(w, x);
}

static void put_random(const work *w, const vpps_cell_value *x) {
    fprintf(w->out, "dropout_uniform(vpps_header.dropout_key[0], vpps_header.dropout_key[1], wd%u[f0 + vx] + %uu + ",
            x->e_word, x->e_add);
    put_before(w, x);
    fprintf(w->out, " + ");
    put_member(w, x);
    fprintf(w->out, " * %uu + el)", vpps_value_words(x));
}

/* ---------------------------------------------------------------- elements */

/* x, y, z, s, f, u, random of the formula. */
static void make_formula(const work *w, uint32_t v) {
    const vpps_cell_value *x = value_of(w, v);
    const char *types = vpps_instructions[x->opcode].operands;
    uint32_t arg = 0, tensors = 0;
    fprintf(w->out, "const float v%u = vpps_value_%s(", v, vpps_instructions[x->opcode].name);
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
    fprintf(w->out, ", ");
    if (strchr(types, 'f')) {
        put_f(w, x);
    } else {
        fprintf(w->out, "0.0f");
    }
    fprintf(w->out, ", ");
    if (strchr(types, 'u')) {
        put_u(w, x);
    } else {
        fprintf(w->out, "0u");
    }
    fprintf(w->out, ", ");
    if (strchr(types, 'e')) {
        put_random(w, x);
    } else {
        fprintf(w->out, "0.0f");
    }
    fprintf(w->out, ");\n");
}

static void put_list_loop(const work *w, uint32_t domain) {
    fprintf(w->out, "for (unsigned m = ls%u[f0 + item] - f%u; m < ls%u[f0 + item + 1] - f%u; m++) ", domain, domain,
            domain, domain);
}

/* Member m of argument i. */
static void put_member_operand(const work *w, const vpps_cell_value *x, uint32_t i) {
    const uint32_t v = arg_of(w, x, i)->value;
    if (in_slot(w, v)) {
        put_slot(w, v, "m", "e");
    } else {
        put_memory(w, v, "m", "el");
    }
}

static bool goes_over(const work *w, const vpps_cell_value *x, uint32_t i) {
    return !x->domain && value_of(w, arg_of(w, x, i)->value)->domain;
}

static void make_sum(const work *w, uint32_t v) {
    const vpps_cell_value *x = value_of(w, v);
    uint32_t alone = 0;
    fprintf(w->out, "float v%u = 0.0f;\n", v);
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (goes_over(w, x, i)) {
            put_list_loop(w, value_of(w, arg_of(w, x, i)->value)->domain);
            fprintf(w->out, "v%u += ", v);
            put_member_operand(w, x, i);
        } else {
            alone++;
            fprintf(w->out, "v%u += ", v);
            put_operand(w, x, i);
        }
        fprintf(w->out, ";\n");
    }
    if (!x->average) {
        fprintf(w->out, "v%u *= ", v);
        put_f(w, x);
        fprintf(w->out, ";\n");
        return;
    }
    fprintf(w->out, "{ const unsigned n = %uu", alone);
    for (uint32_t i = 0; i < x->n_args; i++) {
        const uint32_t d = value_of(w, arg_of(w, x, i)->value)->domain;
        if (goes_over(w, x, i)) fprintf(w->out, " + ls%u[f0 + item + 1] - ls%u[f0 + item]", d, d);
    }
    fprintf(w->out, "; v%u *= n ? 1.0f / (float)n : 0.0f; }\n", v);
}

static void make_weighted_sum(const work *w, uint32_t v) {
    const vpps_cell_value *x = value_of(w, v);
    const uint32_t weights = arg_of(w, x, 0)->value;
    fprintf(w->out, "float v%u = 0.0f;\n", v);
    if (x->over_list) {
        put_list_loop(w, value_of(w, weights)->domain);
        fprintf(w->out, "v%u += ", v);
        put_at(w, weights, "m", "0u");
        fprintf(w->out, " * ");
        put_member_operand(w, x, 1);
        fprintf(w->out, ";\n");
        return;
    }
    fprintf(w->out, "{ unsigned k = 0;\n");
    for (uint32_t i = 1; i < x->n_args; i++) {
        if (goes_over(w, x, i)) put_list_loop(w, value_of(w, arg_of(w, x, i)->value)->domain);
        fprintf(w->out, "{ v%u += ", v);
        put_at(w, weights, item_for(w, x, weights), "k");
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
    const vpps_cell_value *x = value_of(w, v);
    const char sign = x->opcode == VPPS_I_MAX_OF ? '>' : '<';
    fprintf(w->out, "float v%u = 0.0f, v%u;\n{ unsigned k = 0, best = 0;\n", v, v + 1);
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (goes_over(w, x, i)) put_list_loop(w, value_of(w, arg_of(w, x, i)->value)->domain);
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
    const vpps_cell_value *x = value_of(w, v), *a = value_of(w, arg_of(w, x, 0)->value);
    const uint32_t r = x->rows, c = x->cols, k = x->opcode == VPPS_I_MATMUL_TN ? a->rows : a->cols;
    char left[64], right[64];
    if (x->opcode == VPPS_I_MATMUL_TN) {
        snprintf(left, sizeof left, "el %% %uu * %uu + k", r, k);
    } else {
        snprintf(left, sizeof left, "k * %uu + el %% %uu", r, r);
    }
    if (x->opcode == VPPS_I_MATMUL_NT) {
        snprintf(right, sizeof right, "k * %uu + el / %uu", c, r);
    } else {
        snprintf(right, sizeof right, "el / %uu * %uu + k", r, k);
    }
    fprintf(w->out, "float v%u = 0.0f;\n#pragma unroll 1\nfor (unsigned k = 0; k < %u; k++) v%u += ", v, k, v);
    put_at(w, arg_of(w, x, 0)->value, item_for(w, x, arg_of(w, x, 0)->value), left);
    fprintf(w->out, " * ");
    put_at(w, arg_of(w, x, 1)->value, item_for(w, x, arg_of(w, x, 1)->value), right);
    fprintf(w->out, ";\n");
}

/* Element `el` of the value is row el % rows of column el / rows. */
static void make_parts(const work *w, uint32_t v) {
    const vpps_cell_value *x = value_of(w, v);
    char element[128];
    const vpps_cell_arg *a = arg_of(w, x, 0);
    const vpps_cell_value *y = value_of(w, a->value);
    if (x->over_list && x->kind == VPPS_VALUE_STACK) {
        snprintf(element, sizeof element, "el / %uu * %uu + el %% %uu", x->rows, y->rows, y->rows);
        fprintf(
            w->out,
            "float v%u = 0.0f;\n{ const unsigned m = ls%u[f0 + item] + el %% %uu / %uu;\nif (m < ls%u[f0 + item + 1]) "
            "v%u = ",
            v, y->domain, x->rows, y->rows, y->domain, v);
        char item[48];
        snprintf(item, sizeof item, "m - f%u", y->domain);
        put_at(w, a->value, item, element);
        fprintf(w->out, "; }\n");
        return;
    }
    if (x->over_list) {
        snprintf(element, sizeof element, "el / %uu * %uu + el %% %uu + (f%u + item - ls%u[f0 + vx]) * %uu", x->rows,
                 y->rows, x->rows, x->domain, x->domain, x->rows);
        fprintf(w->out, "const float v%u = ", v);
        put_at(w, a->value, "vx", element);
        fprintf(w->out, ";\n");
        return;
    }
    fprintf(w->out, "float v%u = 0.0f;\n{ const unsigned row = el %% %uu, column = el / %uu;\n", v, x->rows, x->rows);
    uint32_t row = 0;
    for (uint32_t k = 0; k < x->n_args; k++) {
        a = arg_of(w, x, k);
        y = value_of(w, a->value);
        if (x->kind == VPPS_VALUE_SLICE) {
            snprintf(element, sizeof element, "column * %uu + row + %uu", y->rows, x->index);
        } else {
            const uint32_t first = x->kind == VPPS_VALUE_PLACE ? x->index : row;
            snprintf(element, sizeof element, "column * %uu + row - %uu", y->rows, first);
            fprintf(w->out, "if (row - %uu < %uu) ", first, y->rows);
        }
        fprintf(w->out, "v%u = ", v);
        put_at(w, a->value, item_for(w, x, a->value), element);
        fprintf(w->out, ";\n");
        row += y->rows;
    }
    fprintf(w->out, "}\n");
}

/* Where the first contribution, mostly the only one, lies; where there is none, what stands behind the lists. */
static void find_gradient(const work *w, uint32_t v) {
    const uint32_t k = value_of(w, v)->index;
    fprintf(w->out, "unsigned g%u = gs%u[f0 + item];\nconst unsigned h%u = gs%u[f0 + item + 1], i%u = ge%u[g%u];\n", v,
            k, v, k, v, k, v);
}

static void begin_gradient(const work *w, uint32_t v) {
    fprintf(w->out, "float v%u = 0.0f;\nif (g%u < h%u) v%u = pool[i%u + el];\n", v, v, v, v, v);
}

static void make_gradient(const work *w, uint32_t v) {
    fprintf(w->out, "#pragma unroll 1\nfor (g%u++; g%u < h%u; g%u++) v%u += pool[ge%u[g%u] + el];\n", v, v, v, v, v,
            value_of(w, v)->index, v);
}

static void make_element(const work *w, uint32_t v) {
    const vpps_cell_value *x = value_of(w, v);
    switch (x->kind) {
    case VPPS_VALUE_DATA:
        fprintf(w->out, "const float v%u = __uint_as_float(script[data[f0 + item] + el]);\n", v);
        return;
    case VPPS_VALUE_GRADIENT: make_gradient(w, v); return;
    case VPPS_VALUE_RUN: break;
    default: make_parts(w, v); return;
    }
    switch (x->opcode) {
    case VPPS_I_SUM: make_sum(w, v); return;
    case VPPS_I_WEIGHTED_SUM: make_weighted_sum(w, v); return;
    case VPPS_I_MAX_OF:
    case VPPS_I_MIN_OF: make_extreme(w, v); return;
    default: break;
    }
    if (vpps_instructions[x->opcode].form == VPPS_FORM_MATMUL) {
        make_matmul(w, v);
    } else {
        make_formula(w, v);
    }
}

/* To where the value is kept and contributed, from `from`. */
static void store(const work *w, uint32_t v, const char *from) {
    const vpps_cell_value *x = value_of(w, v);
    if (x->kept) {
        put_memory(w, v, "item", "el");
        fprintf(w->out, " = %s;\n", from);
    }
    for (uint32_t j = 0; j < w->c->n_contributions; j++) {
        if (w->c->contributions[j].value != v) continue;
        fprintf(w->out, "pool[c%u + (f%u + item) * %uu + el] = %s;\n", j, x->domain, vpps_value_words(x), from);
    }
}

/* To its slot, where a later segment reads it. */
static void store_in_slot(const work *w, uint32_t v) {
    if (!in_slot(w, v) || w->s.last_read[v] <= w->segment + 1) return;
    put_slot(w, v, "item", "e");
    fprintf(w->out, " = v%u;\n", v);
}

static void store_made(const work *w, uint32_t v) {
    char name[16];
    snprintf(name, sizeof name, "v%u", v);
    store_in_slot(w, v);
    store(w, v, name);
}

static bool has_positions(const work *w, uint32_t v) {
    return v + 1 < w->c->n_values && w->c->values[v + 1].kind == VPPS_VALUE_POSITIONS;
}

static void put_gradients(const work *w, const vpps_segment *g, void (*put)(const work *, uint32_t)) {
    for (uint32_t k = 0; k < g->n; k++) {
        const vpps_step_of_segment *step = &w->s.steps[g->first + k];
        if (step->kind == VPPS_STEP_MAKE && value_of(w, step->value)->kind == VPPS_VALUE_GRADIENT) put(w, step->value);
    }
}

/* Operands that are read alike from memory, each once, before anything is stored. What lies far is loaded behind all that tells
 * where it lies, or one would wait for the other. */
static void load_operands(const work *w, const vpps_segment *g, uint8_t *loaded) {
    memset(loaded, 0, w->c->n_values);
    put_gradients(w, g, find_gradient);
    for (uint32_t k = 0; k < g->n; k++) {
        const vpps_step_of_segment *step = &w->s.steps[g->first + k];
        const vpps_cell_value *x = value_of(w, step->value);
        for (uint32_t i = 0; i < x->n_args && step->kind == VPPS_STEP_MAKE; i++) {
            const uint32_t u = arg_of(w, x, i)->value;
            if (loaded[u] || in_slot(w, u) || made_here(w, u) || !vpps_reads_alike(&w->s, step->value, i)) { continue; }
            loaded[u] = 1;
            fprintf(w->out, "const float m%u = ", u);
            put_memory(w, u, "item", "el");
            fprintf(w->out, ";\n");
        }
    }
    put_gradients(w, g, begin_gradient);
}

/* Opens the loop over n items and their elements, which a tile of vertices may have fewer of than there are threads. Two braces
 * close it. */
static void open_elements(const work *w, const char *n, uint32_t domain, uint32_t rows, uint32_t width, bool dealt) {
    enum { SHORT = 4 /* times around: a compiler would make as many copies of a loop */ };
    if (!domain && w->tile * width <= w->g->plan->threads) {
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
        fprintf(w->out, "const unsigned vx = vpps_vertex_of(ls%u + f0, n0, f%u + item);\n", domain, domain);
    } else {
        fprintf(w->out, "const unsigned vx = item;\n");
    }
    fprintf(w->out, "(void)vx, (void)el, (void)e;\n");
}

static void put_joined(const work *w, const vpps_segment *products);
static void store_finished(const work *w, uint32_t v);

static void put_elements(const work *w, const vpps_segment *g, uint8_t *loaded) {
    const uint32_t v = w->s.steps[g->first].value;
    char n[16];
    snprintf(n, sizeof n, "n%u", g->domain);
    open_elements(w, n, g->domain, value_of(w, v)->rows, vpps_segment_width(&w->s, v), g->dealt);
    load_operands(w, g, loaded);
    if (w->joined) put_joined(w, g - 1);
    for (uint32_t pass = 0; pass < 2; pass++) { /* all is read, then all is stored */
        for (uint32_t k = 0; k < g->n; k++) {
            const vpps_step_of_segment *step = &w->s.steps[g->first + k];
            const uint32_t u = step->value;
            if (pass == 0 && step->kind == VPPS_STEP_LOAD) {
                fprintf(w->out, "const float v%u = ", u);
                put_memory(w, u, "item", "el");
                fprintf(w->out, ";\n");
            } else if (pass == 0 && step->kind == VPPS_STEP_STORE) {
                fprintf(w->out, "const float t%u = ", u);
                if (made_here(w, u)) {
                    fprintf(w->out, "v%u", u);
                } else {
                    put_slot(w, u, "item", "e");
                }
                fprintf(w->out, ";\n");
            } else if (pass == 0) {
                make_element(w, u);
            } else if (step->kind == VPPS_STEP_LOAD) {
                put_slot(w, u, "item", "e");
                fprintf(w->out, " = v%u;\n", u);
            } else if (step->kind == VPPS_STEP_STORE) {
                char name[16];
                snprintf(name, sizeof name, "t%u", u);
                store(w, u, name);
            } else {
                store_made(w, u);
                if (has_positions(w, u)) store_made(w, u + 1);
            }
        }
    }
    for (uint32_t k = 0; w->joined && k < g[-1].n; k++) store_finished(w, w->s.steps[g[-1].first + k].value);
    fprintf(w->out, "}\n}\n");
}

/* ---------------------------------------------------------------- whole vectors */

/* A pointer to the argument's item. */
static void put_pointer(const work *w, uint32_t v, const char *item) {
    fprintf(w->out, "&");
    put_at(w, v, item, "0u");
}

static bool needs_top(uint32_t opcode) {
    return opcode == VPPS_I_CROSS_ENTROPY || opcode == VPPS_I_SOFTMAX || opcode == VPPS_I_LOG_SOFTMAX;
}

/* The arguments of the instruction's functions, for element k of the tensors. */
static void put_arguments(const work *w, const vpps_cell_value *x) {
    uint32_t tensor = 0, scalar = 0;
    fprintf(w->out, "(totals");
    for (const char *t = vpps_instructions[x->opcode].operands; *t; t++) {
        if (*t == 't') fprintf(w->out, ", p%u[k]", tensor++);
        if (*t == 's') fprintf(w->out, ", q%u", scalar++);
        if (*t == 'f') fprintf(w->out, ", f");
        if (*t == 'u') fprintf(w->out, ", vpps_pick{k == label, picked}");
    }
    fprintf(w->out, ")");
}

/* The sums over `length` elements of p0, p1 ..., by a warp. */
static void put_totals(const work *w, const vpps_cell_value *x, const char *length) {
    const char *name = vpps_instructions[x->opcode].name, *types = vpps_instructions[x->opcode].operands;
    if (strchr(types, 'u')) {
        fprintf(w->out, "const unsigned label = ");
        put_u(w, x);
        fprintf(w->out, ";\nconst float picked = p0[label];\n");
    }
    if (strchr(types, 'f')) {
        fprintf(w->out, "const float f = ");
        put_f(w, x);
        fprintf(w->out, ";\n");
    }
    fprintf(w->out, "vpps_totals totals = {0.0f, 0.0f};\n");
    if (needs_top(x->opcode)) {
        fprintf(
            w->out,
            "totals.top = __uint_as_float(0xff800000u);\nfor (unsigned k = VPPS_LANE; k < %s; k += 32) totals.top = "
            "fmaxf(totals.top, p0[k]);\ntotals.top = vpps_warp_max(totals.top);\n",
            length);
    }
    fprintf(w->out, "{ float sum = 0.0f;\nfor (unsigned k = VPPS_LANE; k < %s; k += 32) sum += vpps_term_%s", length,
            name);
    put_arguments(w, x);
    fprintf(w->out, ";\ntotals.sum = vpps_warp_sum(sum);\nconst unsigned k = 0;\n(void)k;\n");
    fprintf(w->out, "totals.sum = vpps_finish_%s", name);
    put_arguments(w, x);
    fprintf(w->out, "; }\n");
}

static void put_values(const work *w, uint32_t v, const char *length, const char *to) {
    const vpps_cell_value *x = value_of(w, v);
    if (vpps_instructions[x->opcode].form == VPPS_FORM_REDUCE) {
        fprintf(w->out, "if (VPPS_LANE == 0) %s[0] = totals.sum;\n", to);
        return;
    }
    fprintf(w->out, "for (unsigned k = VPPS_LANE; k < %s; k += 32) %s[k] = vpps_value_%s", length, to,
            vpps_instructions[x->opcode].name);
    put_arguments(w, x);
    fprintf(w->out, ";\n");
}

static void put_whole(const work *w, uint32_t v) {
    const vpps_cell_value *x = value_of(w, v);
    const char *types = vpps_instructions[x->opcode].operands;
    char length[32], to[64];
    snprintf(length, sizeof length, "%uu", vpps_value_words(value_of(w, arg_of(w, x, 0)->value)));
    fprintf(w->out, "#pragma unroll 1\nfor (unsigned item = VPPS_WARP; item < n%u; item += VPPS_WARPS) {\n", x->domain);
    if (x->domain) {
        fprintf(w->out, "const unsigned vx = vpps_vertex_of(ls%u + f0, n0, f%u + item);\n", x->domain, x->domain);
    } else {
        fprintf(w->out, "const unsigned vx = item;\n");
    }
    fprintf(w->out, "(void)vx;\n");
    uint32_t arg = 0, tensor = 0, scalar = 0;
    for (const char *t = types; *t; t++) {
        const uint32_t u = strchr("ts", *t) ? arg_of(w, x, arg)->value : 0;
        if (*t == 't') {
            fprintf(w->out, "const float *p%u = ", tensor++);
            put_pointer(w, u, item_for(w, x, u));
            fprintf(w->out, ";\n");
            arg++;
        } else if (*t == 's') {
            char element[16];
            snprintf(element, sizeof element, "%u", arg_of(w, x, arg)->element);
            fprintf(w->out, "const float q%u = ", scalar++);
            put_at(w, u, item_for(w, x, u), element);
            fprintf(w->out, ";\n");
            arg++;
        }
    }
    put_totals(w, x, length);
    snprintf(to, sizeof to, "(s%u + item * %uu)", v, vpps_segment_width(&w->s, v));
    put_values(w, v, length, to);
    fprintf(w->out, "}\n");
}

/* SOFTMAX and its gradient of each vertex's list of scalars, which lie side by side in their slots. */
static void put_lists(const work *w, uint32_t v) {
    const vpps_cell_value *x = value_of(w, v);
    char to[64];
    fprintf(w->out,
            "#pragma unroll 1\nfor (unsigned item = VPPS_WARP; item < n0; item += VPPS_WARPS) {\nconst unsigned vx = "
            "item, member = "
            "ls%u[f0 + "
            "item] - f%u, length = ls%u[f0 + item + 1] - ls%u[f0 + item];\n(void)vx;\n",
            x->domain, x->domain, x->domain, x->domain);
    for (uint32_t i = 0; i < x->n_args; i++)
        fprintf(w->out, "const float *p%u = s%u + member;\n", i, arg_of(w, x, i)->value);
    put_totals(w, x, "length");
    snprintf(to, sizeof to, "(s%u + member)", v);
    put_values(w, v, "length", to);
    fprintf(w->out, "}\n");
}

/* ---------------------------------------------------------------- products by one VP */

static void put_start(const work *w, const vpps_cell_value *x, const char *row, const char *element) {
    if (x->param != VPPS_NO_PARAM) fprintf(w->out, " + pool[%uu + %s]", w->g->pool->values[x->param], row);
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (arg_of(w, x, i)->matrix != VPPS_NO_PARAM) continue;
        fprintf(w->out, " + ");
        put_at(w, arg_of(w, x, i)->value, "item", element);
    }
}

static void put_matrices(const work *w, uint32_t v) {
    const vpps_cell_value *x = value_of(w, v);
    const bool transposed = x->kind == VPPS_VALUE_PRODUCT_T;
    const uint32_t words = vpps_value_words(x);
    fprintf(w->out, "#pragma unroll 1\nfor (unsigned i = %s; i < n%u * %uu; i += %s) {\n",
            transposed ? "threadIdx.x" : "VPPS_WARP", x->domain, words, transposed ? "VPPS_THREADS" : "VPPS_WARPS");
    fprintf(w->out,
            "const unsigned item = i / %uu, el = i %% %uu, row = el %% %uu, column = el / %uu;\n(void)column;\nfloat "
            "sum = 0.0f;\n",
            words, words, x->rows, x->rows);
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = arg_of(w, x, k);
        if (a->matrix == VPPS_NO_PARAM) continue;
        const vpps_parameter_data *m = &w->g->model->params[a->matrix];
        const uint32_t length = value_of(w, a->value)->rows;
        fprintf(w->out, "{ const float *x = ");
        put_pointer(w, a->value, "item");
        fprintf(w->out, " + column * %uu;\nconst float *m = (const float *)a.matrices + %uu + row * %uu;\n", length,
                w->g->matrix_at[a->matrix], transposed ? 1 : m->cols);
        if (transposed) {
            fprintf(w->out, "for (unsigned k = 0; k < %u; k++) sum = vpps_multiply_add(m[k * %uu], x[k], sum); }\n",
                    length, m->cols);
        } else {
            fprintf(w->out,
                    "for (unsigned k = VPPS_LANE; k < %u; k += 32) sum = vpps_multiply_add(m[k], x[k], sum); }\n",
                    length);
        }
    }
    if (!transposed) fprintf(w->out, "sum = vpps_warp_sum(sum);\n");
    fprintf(w->out, "%ss%u[i] = sum", transposed ? "" : "if (VPPS_LANE == 0) ", v);
    put_start(w, x, "row", "el");
    fprintf(w->out, ";\n}\n");
}

/* ---------------------------------------------------------------- products by rows */

/* A thread's output: row block + row * blocks of those that the VP owns, of one of the segment's products. */
typedef struct output {
    uint32_t value, row;
} output;

/* Outputs that are made at once: their threads share out rows alike. */
typedef struct pass {
    const output *outputs;
    uint32_t n, blocks, at, item_words; /* where their sums begin among an item's */
} pass;

static const vpps_resident *resident_of(const work *w, const vpps_cell_value *x, vpps_param matrix) {
    return vpps_resident_of(&w->g->plan->residents, matrix, x->kind == VPPS_VALUE_PRODUCT_T);
}

static uint32_t blocks_of(const work *w, uint32_t v) {
    return vpps_blocks_of_rows(vpps_segment_width(&w->s, v), value_of(w, v)->kind == VPPS_VALUE_PRODUCT_T,
                               w->g->plan->threads);
}

static uint32_t rows_of_thread(const work *w, uint32_t v) {
    const uint32_t blocks = blocks_of(w, v);
    return (vpps_segment_width(&w->s, v) + blocks - 1) / blocks;
}

static uint32_t warps_of(const work *w) { return w->g->plan->threads / 32; }

/* Words of a row's sums of all warps, side by side so that a thread loads four at once. The gap spreads them over banks. */
static uint32_t part_stride(const work *w) {
    const uint32_t warps = warps_of(w);
    return warps < 4 ? warps : warps == 4 ? 4 : vpps_quads_up(warps) + 4;
}

/* Does a value of the item begin at a multiple of four words, and end at one? Records and vectors of 16 words and more do, and entries
 * of tables whose entries are such multiples. */
static bool has_quads(const work *w, uint32_t v) { return !in_slot(w, v) && vpps_has_quads(value_of(w, v)); }

/* Are the words of an operand brought near? */
static bool is_near(const work *w, uint32_t operand) { return w->near_item && w->near[operand] != VPPS_NONE; }

/* The thread's columns of some items in round `round` over an operand: y0, y1 and so on. */
static void put_columns(const work *w, const pass *p, uint32_t operand, uint32_t run, const char *round, bool whole,
                        uint32_t vectors) {
    const uint32_t words = w->g->plan->threads / p->blocks * run;
    const char *const type = vpps_run_type(run);
    fprintf(w->out, "const unsigned from = own + %s * %u;\n", round, words);
    if (!whole) fprintf(w->out, "const bool there = from < %u;\n", value_of(w, operand)->rows);
    for (uint32_t i = 0; i < vectors; i++) {
        fprintf(w->out, "const %s y%u = ", type, i);
        if (!whole) fprintf(w->out, "!there ? %s{0.0f} : ", type);
        if (run == 1 || has_quads(w, operand)) {
            fprintf(w->out, "*(const %s *)(x%u + from);\n", type, i);
            continue;
        }
        fprintf(w->out, "%s", type);
        for (uint32_t k = 0; k < run; k++) fprintf(w->out, "%sx%u[from + %u]", k ? ", " : "{", i, k);
        fprintf(w->out, "};\n");
    }
}

/* Adds a matrix's row times these columns to the output's sums. */
static void put_row_products(const work *w, const pass *p, uint32_t o, const vpps_resident *m, const char *round,
                             uint32_t vectors) {
    const uint32_t threads = w->g->plan->threads, at = p->outputs[o].row * m->columns;
    const bool shared = m->level == VPPS_RESIDENT_SHARED;
    const char *const type = vpps_run_type(m->run);
    fprintf(w->out, "{");
    if (shared) {
        fprintf(w->out, " const %s weight = ((const %s *)(shared + %u) + threadIdx.x)[(%u + %s) * %u];", type, type,
                m->at * threads, at / m->run, round, threads);
    }
    for (uint32_t k = 0; k < m->run; k++) {
        for (uint32_t i = 0; i < vectors; i++) {
            const char *const element = vpps_run_element(m->run, k);
            fprintf(w->out, " q[%u] += ", i * p->n + o);
            if (shared) {
                fprintf(w->out, "weight%s", element);
            } else {
                fprintf(w->out, "w[%u + %s * %u]", m->at + at + k, round, m->run);
            }
            fprintf(w->out, " * y%u%s;", i, element);
        }
    }
    fprintf(w->out, " }\n");
}

/* The matrices that the pass multiplies an operand with: all of one layout. NULL: none. *far: all are in shared memory. */
static const vpps_resident *matrix_of(const work *w, const pass *p, uint32_t operand, bool *far) {
    const vpps_resident *m = NULL;
    *far = true;
    for (uint32_t o = 0; o < p->n; o++) {
        const vpps_cell_value *x = value_of(w, p->outputs[o].value);
        for (uint32_t k = 0; k < x->n_args; k++) {
            const vpps_cell_arg *a = arg_of(w, x, k);
            if (a->matrix == VPPS_NO_PARAM || a->value != operand) continue;
            m = resident_of(w, x, a->matrix);
            *far &= m->level == VPPS_RESIDENT_SHARED;
        }
    }
    return m;
}

static void put_round(const work *w, const pass *p, uint32_t operand, const char *round, bool whole, uint32_t run,
                      uint32_t vectors) {
    fprintf(w->out, "{\n");
    put_columns(w, p, operand, run, round, whole, vectors);
    for (uint32_t o = 0; o < p->n; o++) {
        const vpps_cell_value *x = value_of(w, p->outputs[o].value);
        for (uint32_t k = 0; k < x->n_args; k++) {
            const vpps_cell_arg *a = arg_of(w, x, k);
            if (a->matrix != VPPS_NO_PARAM && a->value == operand)
                put_row_products(w, p, o, resident_of(w, x, a->matrix), round, vectors);
        }
    }
    fprintf(w->out, "}\n");
}

static bool has_near(const work *w, const pass *p) {
    bool far, any = false;
    for (uint32_t v = 0; v < w->c->n_values && !any; v++) any = is_near(w, v) && matrix_of(w, p, v, &far);
    return any;
}

/* Items at a time whose operands are brought near. */
enum { NEAR_ITEMS = 4 };

/* Begins to bring operands of `items` items from number `first` on to `to`. */
static void put_copies(const work *w, const pass *p, const char *first, uint32_t items, const char *to) {
    bool far;
    char item[64];
    snprintf(item, sizeof item, "vpps_least(%s + i / quads, n - 1)", first);
    for (uint32_t v = 0; v < w->c->n_values; v++) {
        if (!is_near(w, v) || !matrix_of(w, p, v, &far)) continue;
        fprintf(
            w->out,
            "{\nconst unsigned quads = %u;\n#pragma unroll\nfor (unsigned k = 0; k < (%u * quads + VPPS_THREADS - 1) / "
            "VPPS_THREADS; k++) {\nconst unsigned i = k * VPPS_THREADS + threadIdx.x;\nif (i < %u * quads) "
            "vpps_copy_quad(%s + i / quads * %u + %u + i %% quads * 4, ",
            value_of(w, v)->rows / 4, items, items, to, w->near_item, w->near[v]);
        put_pointer(w, v, item);
        fprintf(w->out, " + i %% quads * 4);\n}\n}\n");
    }
}

/* One operand of a pass: its columns, times the rows of all matrices that it is multiplied with. `near`: operands that are brought
 * near lie there, those of item `at` first. */
static void put_operand_products(const work *w, const pass *p, uint32_t operand, uint32_t vectors, bool near) {
    bool far;
    const vpps_resident *m = matrix_of(w, p, operand, &far);
    if (!m) return;
    const uint32_t span = w->g->plan->threads / p->blocks, rounds = m->columns / m->run;
    const uint32_t length = value_of(w, operand)->rows, lanes = vpps_lanes_of_block(p->blocks);
    fprintf(w->out, "{\nconst unsigned own = (VPPS_WARP * %u + VPPS_LANE %% %u) * %u;\n", lanes, lanes, m->run);
    for (uint32_t i = 0; i < vectors; i++) {
        char item[64];
        fprintf(w->out, "const float *const x%u = ", i);
        if (near && is_near(w, operand)) {
            fprintf(w->out, "there + %u", i * w->near_item + w->near[operand]);
        } else {
            snprintf(item, sizeof item, "vpps_least(at + %uu, n - 1)", i);
            put_pointer(w, operand, item);
        }
        fprintf(w->out, ";\n");
    }
    if (far &&
        rounds > 1) { /* straight-line code would begin with all loads at once, in registers that there are not */
        fprintf(w->out, "#pragma unroll 1\nfor (unsigned round = 0; round < %u; round++)\n", rounds);
        put_round(w, p, operand, "round", m->columns * span <= length, m->run, vectors);
    } else {
        for (uint32_t k = 0; k < rounds; k++) {
            char round[16];
            snprintf(round, sizeof round, "%uu", k);
            put_round(w, p, operand, round, (k + 1) * span * m->run <= length, m->run, vectors);
        }
    }
    fprintf(w->out, "}\n");
}

/* The outputs of `vectors` items from number `at` on: the sums of each warp's columns. Lane l of a block is left with the sums number
 * l / each * has and the next of all, `each` lanes with the same ones. */
static void put_vectors(const work *w, const pass *p, uint32_t vectors, bool near) {
    const uint32_t lanes = vpps_lanes_of_block(p->blocks), n = vectors * p->n;
    uint32_t folded = 1;
    while (folded < n && folded < lanes) folded *= 2;
    folded = (n + folded - 1) / folded * folded;
    const uint32_t has = vpps_max_u32(1, folded / lanes), each = vpps_max_u32(1, lanes / folded);
    fprintf(w->out, "float q[%u];\n#pragma unroll\nfor (int k = 0; k < %u; k++) q[k] = 0.0f;\n", folded, folded);
    for (uint32_t v = 0; v < w->c->n_values; v++) put_operand_products(w, p, v, vectors, near);
    fprintf(w->out, "vpps_fold<%u, %u>(q);\n", folded, lanes);
    if (each > 1) fprintf(w->out, "if (VPPS_LANE %% %u == 0) {\n", each);
    fprintf(w->out, "const unsigned place = VPPS_LANE %% %u / %u;\n", lanes, each);
    for (uint32_t k = 0; k < has; k++) {
        if (has % p->n == 0) { /* the lane's are of whole items */
            fprintf(w->out, "{ const unsigned item = place * %u + %u, output = %u;\n", has / p->n, k / p->n, k % p->n);
        } else {
            fprintf(w->out, "{ const unsigned k = place * %u + %u, item = k / %u, output = k %% %u;\n", has, k, p->n,
                    p->n);
        }
        fprintf(w->out,
                "if (item < %u && at + item < n) part[(at + item) * %u + %u + (output * %u + VPPS_LANE / %u) * %u + "
                "VPPS_WARP] = "
                "q[%u]; }\n",
                vectors, p->item_words, p->at, p->blocks, lanes, part_stride(w), k);
    }
    if (each > 1) fprintf(w->out, "}\n");
}

/* Element e of the VP's rows of product v, of its sum, which is without what it starts from. */
static void put_finished(const work *w, uint32_t v) {
    const vpps_cell_value *x = value_of(w, v);
    fprintf(w->out, "const float v%u = sum%u", v, v);
    if (x->param != VPPS_NO_PARAM)
        fprintf(w->out, " + shared[%uu + e]", vpps_resident_vector_of(&w->g->plan->residents, x->param)->at);
    for (uint32_t i = 0; i < x->n_args; i++) {
        const uint32_t u = arg_of(w, x, i)->value;
        if (arg_of(w, x, i)->matrix != VPPS_NO_PARAM) continue;
        fprintf(w->out, " + ");
        put_at(w, u, "item", in_slot(w, u) ? "e" : "el");
    }
    fprintf(w->out, ";\n");
}

static void store_finished(const work *w, uint32_t v) {
    if (w->s.late[v]) {
        store_in_slot(w, v);
    } else {
        store_made(w, v);
    }
}

/* The outputs of the only item. */
static void put_single(const work *w, const pass *p) {
    const bool near = has_near(w, p);
    fprintf(w->out, "const unsigned at = 0;\n");
    if (near) {
        put_copies(w, p, "0u", 1, "near");
        fprintf(w->out, "vpps_wait_for_copies();\n__syncthreads();\nconst float *const there = near;\n");
    }
    put_vectors(w, p, 1, near);
}

/* The outputs of `vectors` items at a time, of n. Their operands are brought near while those before are multiplied, if there is room
 * for that. */
static void put_several(const work *w, const pass *p, uint32_t vectors) {
    if (!has_near(w, p)) {
        fprintf(w->out, "#pragma unroll 1\nfor (unsigned at = 0; at < n; at += %u) {\n", vectors);
        put_vectors(w, p, vectors, false);
        fprintf(w->out, "}\n");
        return;
    }
    fprintf(w->out, "#pragma unroll 1\n");
    if (w->near_turns > 1) {
        const uint32_t words = NEAR_ITEMS * w->near_item;
        fprintf(w->out,
                "for (unsigned coming = 0; coming < n + %d; coming += %d) {\nif (coming) {\nvpps_wait_for_copies();\n"
                "__syncthreads();\n}\nif (coming < n) {\nfloat *const to = near + coming / %d %% %u * %u;\n",
                NEAR_ITEMS, NEAR_ITEMS, NEAR_ITEMS, w->near_turns, words);
        put_copies(w, p, "coming", NEAR_ITEMS, "to");
        fprintf(
            w->out,
            "}\nif (!coming) continue;\nconst unsigned first = coming - %d;\nconst float *const begin = near + first "
            "/ %d %% %u * %u;\n",
            NEAR_ITEMS, NEAR_ITEMS, w->near_turns, words);
    } else {
        fprintf(w->out, "for (unsigned first = 0; first < n; first += %d) {\nif (first) __syncthreads();\n",
                NEAR_ITEMS);
        put_copies(w, p, "first", NEAR_ITEMS, "near");
        fprintf(w->out, "vpps_wait_for_copies();\n__syncthreads();\nconst float *const begin = near;\n");
    }
    if (vectors == NEAR_ITEMS) {
        fprintf(w->out, "{\nconst unsigned at = first;\n");
    } else {
        fprintf(w->out, "#pragma unroll 1\nfor (unsigned at = first; at < vpps_least(first + %d, n); at += %u) {\n",
                NEAR_ITEMS, vectors);
    }
    fprintf(w->out, "const float *const there = begin + (at - first) * %u;\n", w->near_item);
    put_vectors(w, p, vectors, true);
    fprintf(w->out, "}\n}\n");
}

/* Several vectors at a time, and one alone without work for others. */
static void put_pass(const work *w, const pass *p) {
    enum { MOST = 32 };
    const uint32_t vectors = p->n > MOST / 2 ? 1 : p->n > MOST / NEAR_ITEMS ? 2 : NEAR_ITEMS;
    if (has_near(w, p) && p->at) fprintf(w->out, "__syncthreads();\n"); /* what is near is not read any more */
    if (vectors > 1) {
        fprintf(w->out, "if (n == 1) {\n");
        put_single(w, p);
        fprintf(w->out, "} else {\n");
    }
    put_several(w, p, vectors);
    if (vectors > 1) fprintf(w->out, "}\n");
}

/* Its matrices are read from memory, by warps or, where it is short, by threads. */
static bool is_streamed(const work *w, uint32_t v) { return w->streamed[v]; }

static bool is_short(const work *w, uint32_t v) {
    return !w->g->plan->parts && vpps_product_is_short(w->c, value_of(w, v));
}

static bool has_streamed_matrix(const work *w, uint32_t v) {
    const vpps_cell_value *x = value_of(w, v);
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_param matrix = arg_of(w, x, k)->matrix;
        if (matrix != VPPS_NO_PARAM && resident_of(w, x, matrix)->level == VPPS_RESIDENT_STREAM) return true;
    }
    return false;
}

static const vpps_fragment *fragment_of(const work *w, const vpps_product_tile *tile, uint32_t operand,
                                        uint32_t which) {
    vpps_fragment weights;
    if (!vpps_fragment_of(w->c, tile, operand, which, w->g->plan->threads, &weights)) return NULL;
    return vpps_resident_fragment(&w->g->plan->residents, &weights);
}

static bool has_streamed_fragment(const work *w, const vpps_product_tile *tile) {
    const vpps_fragment *f;
    for (uint32_t v = 0; v < w->c->n_values; v++)
        for (uint32_t k = 0; (f = fragment_of(w, tile, v, k)) != NULL; k++)
            if (f->level == VPPS_RESIDENT_STREAM) return true;
    return false;
}

/* The segment's tiles with a product whose weights stay close, the caller's to be freed. NULL: out of memory. */
static vpps_product_tile *list_tiles(const work *w, const vpps_segment *g, uint32_t *n) {
    uint32_t all;
    vpps_product_tile *tiles = vpps_tile_products(&w->s, g, &all);
    *n = 0;
    for (uint32_t t = 0; tiles && t < all; t++) {
        bool any = false;
        for (uint32_t i = 0; i < VPPS_FRAGMENT_ROWS && !any; i++)
            any = tiles[t].rows[i].value != VPPS_NONE && !is_streamed(w, tiles[t].rows[i].value);
        if (any) tiles[(*n)++] = tiles[t];
    }
    return tiles;
}

static bool place_tiles(const work *w, const vpps_segment *g) {
    const uint32_t stride = part_stride(w);
    uint32_t n;
    vpps_product_tile *tiles = vpps_tile_products(&w->s, g, &n);
    for (uint32_t t = 0; tiles && t < n; t++)
        for (uint32_t i = 0; i < VPPS_FRAGMENT_ROWS && has_streamed_fragment(w, &tiles[t]); i++)
            if (tiles[t].rows[i].value != VPPS_NONE) w->streamed[tiles[t].rows[i].value] = 1;
    free(tiles);
    tiles = list_tiles(w, g, &n);
    if (!tiles) return false;
    for (uint32_t k = 0; k < n * VPPS_FRAGMENT_ROWS; k++) {
        const vpps_product_row *row = &tiles[k / VPPS_FRAGMENT_ROWS].rows[k % VPPS_FRAGMENT_ROWS];
        if (row->value != VPPS_NONE && !row->row) w->part_at[row->value] = k * stride;
    }
    w->item_words[g - w->s.list] = n * VPPS_FRAGMENT_ROWS * stride;
    free(tiles);
    return true;
}

/* Which products are streamed, and where the others' sums lie. */
static bool place_products(const work *w) {
    for (uint32_t i = 0; i < w->s.n; i++) {
        const vpps_segment *g = &w->s.list[i];
        w->item_words[i] = 0;
        if (g->kind != VPPS_SEGMENT_PRODUCTS) continue;
        if (w->g->plan->parts) {
            if (!place_tiles(w, g)) return false;
            continue;
        }
        for (uint32_t k = 0; k < g->n; k++) {
            const uint32_t v = w->s.steps[g->first + k].value;
            w->streamed[v] = is_short(w, v) || has_streamed_matrix(w, v);
        }
        for (uint32_t blocks = w->g->plan->threads / 32; blocks; blocks--) {
            for (uint32_t k = 0; k < g->n; k++) {
                const uint32_t v = w->s.steps[g->first + k].value;
                if (is_streamed(w, v) || blocks_of(w, v) != blocks) continue;
                w->part_at[v] = w->item_words[i];
                w->item_words[i] += rows_of_thread(w, v) * blocks * part_stride(w);
            }
            w->item_words[i] = vpps_quads_up(w->item_words[i]); /* where four sums begin at a quad */
        }
    }
    return true;
}

/* ---------------------------------------------------------------- products in bf16 */

/* What the tiles' products make of one operand of 16 items. */
static void put_operand_tiles(const work *w, const vpps_product_tile *tiles, uint32_t n, uint32_t operand) {
    const uint32_t length = value_of(w, operand)->rows, threads = w->g->plan->threads, parts = w->g->plan->parts;
    const vpps_fragment *f = NULL;
    for (uint32_t t = 0; t < n && !f; t++) f = fragment_of(w, &tiles[t], operand, 0);
    if (!f) return;
    const uint32_t elements = f->steps * VPPS_FRAGMENT_DEPTH, steps = f->steps;
    fprintf(w->out, "if (VPPS_WARP * %u < %u) {\n", elements, length);
    fprintf(w->out, "const float *const x0 = ");
    put_pointer(w, operand, "vpps_least(at + VPPS_LANE / 4, n - 1)");
    fprintf(w->out, ", *const x1 = ");
    put_pointer(w, operand, "vpps_least(at + 8 + VPPS_LANE / 4, n - 1)");
    fprintf(w->out, ";\n");
    for (uint32_t s = 0; s < steps; s++) {
        fprintf(
            w->out,
            "{ const vpps_words x = vpps_take<%s, %s, %u>(x0, x1, at + 8 < n, VPPS_WARP * %u + VPPS_LANE %% 4 * 4 + "
            "%u);\n",
            has_quads(w, operand) ? "true" : "false", elements * (threads / 32) <= length ? "true" : "false", length,
            elements, s * VPPS_FRAGMENT_DEPTH);
        for (uint32_t t = 0; t < n; t++) {
            for (uint32_t k = 0; (f = fragment_of(w, &tiles[t], operand, k)) != NULL; k++) {
                fprintf(w->out, "{ const unsigned b[%u] = {", 2 * parts);
                for (uint32_t i = 0; i < 2 * parts; i++) {
                    const uint32_t word = f->at + s * 2 * parts + i;
                    if (f->level == VPPS_RESIDENT_REGISTERS) {
                        fprintf(w->out, "%s__float_as_uint(w[%u])", i ? ", " : "", word);
                    } else {
                        fprintf(w->out, "%s__float_as_uint((shared + threadIdx.x)[%u])", i ? ", " : "", word * threads);
                    }
                }
                fprintf(w->out, "};\nvpps_add_products(sums[%u], x, b); }\n", t);
            }
        }
        fprintf(w->out, "}\n");
    }
    fprintf(w->out, "}\n");
}

/* Some tiles, the first of them number `first`: 16 items at a time, the sums of each warp's elements. */
static void put_tiles(const work *w, const vpps_product_tile *tiles, uint32_t n, uint32_t first, uint32_t item_words) {
    const uint32_t stride = part_stride(w);
    fprintf(
        w->out,
        "#pragma unroll 1\nfor (unsigned at = 0; at < n; at += 16) {\nfloat sums[%u][4];\n#pragma unroll\nfor (int k = "
        "0; k < %u; k++) sums[k / 4][k %% 4] = 0.0f;\n",
        n, 4 * n);
    for (uint32_t v = 0; v < w->c->n_values; v++) put_operand_tiles(w, tiles, n, v);
    for (uint32_t half = 0; half < 2; half++) {
        fprintf(w->out,
                "if (at + %u + VPPS_LANE / 4 < n) {\nfloat *const to = part + (at + %u + VPPS_LANE / 4) * %u + (%u + "
                "VPPS_LANE %% 4 * 2) * %u + VPPS_WARP;\n",
                8 * half, 8 * half, item_words, first * VPPS_FRAGMENT_ROWS, stride);
        for (uint32_t t = 0; t < n; t++)
            for (uint32_t i = 0; i < 2; i++)
                fprintf(w->out, "to[%u] = sums[%u][%u];\n", (t * VPPS_FRAGMENT_ROWS + i) * stride, t, 2 * half + i);
        fprintf(w->out, "}\n");
    }
    fprintf(w->out, "}\n");
}

static bool put_all_tiles(const work *w, const vpps_segment *g) {
    enum { MOST = 8 };
    uint32_t n;
    vpps_product_tile *tiles = list_tiles(w, g, &n);
    if (!tiles) return false;
    for (uint32_t first = 0; first < n; first += MOST)
        put_tiles(w, tiles + first, vpps_min_u32(n - first, MOST), first, w->item_words[g - w->s.list]);
    free(tiles);
    return true;
}

/* The outputs whose threads share out rows in so many blocks, of products whose matrices stay close. */
static void put_passes(const work *w, const vpps_segment *g, uint32_t blocks, output *outputs) {
    enum { MOST = 32 };
    uint32_t all = 0, at = VPPS_NONE;
    for (uint32_t k = 0; k < g->n; k++) {
        const uint32_t v = w->s.steps[g->first + k].value;
        if (is_streamed(w, v) || blocks_of(w, v) != blocks) continue;
        if (!all) at = w->part_at[v];
        for (uint32_t r = 0; r < rows_of_thread(w, v); r++) outputs[all++] = (output){v, r};
    }
    for (uint32_t first = 0; first < all; first += MOST) {
        const pass p = {outputs + first, vpps_min_u32(all - first, MOST), blocks, at + first * blocks * part_stride(w),
                        w->item_words[g - w->s.list]};
        put_pass(w, &p);
    }
}

static bool put_all_passes(const work *w, const vpps_segment *g) {
    uint32_t all = 0;
    for (uint32_t k = 0; k < g->n; k++) all += rows_of_thread(w, w->s.steps[g->first + k].value);
    output *outputs = calloc(all + 1u, sizeof *outputs);
    if (!outputs) return false;
    for (uint32_t blocks = w->g->plan->threads / 32; blocks; blocks--) put_passes(w, g, blocks, outputs);
    free(outputs);
    return true;
}

/* ---------------------------------------------------------------- finishing products */

/* Product v's element e of an item: the warps' sums. */
static void put_sum(const work *w, uint32_t v, const vpps_segment *products) {
    fprintf(w->out, "const float sum%u = vpps_sum_of_warps<%u>((part + (item - first_item) * %u + e * %u) + %u);\n", v,
            warps_of(w), w->item_words[products - w->s.list], part_stride(w), w->part_at[v]);
}

/* Element `el` of a short product. */
static void put_short_sum(const work *w, uint32_t v) {
    const vpps_cell_value *x = value_of(w, v);
    const bool transposed = x->kind == VPPS_VALUE_PRODUCT_T;
    fprintf(w->out, "float sum%u = 0.0f;\n", v);
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = arg_of(w, x, k);
        if (a->matrix == VPPS_NO_PARAM) continue;
        const uint32_t cols = w->g->model->params[a->matrix].cols;
        fprintf(w->out, "{ const float *const x = ");
        put_pointer(w, a->value, "item");
        fprintf(
            w->out,
            ", *const m = (const float *)a.matrices + %uu + el * %uu;\n#pragma unroll\nfor (unsigned k = 0; k < %u; "
            "k++) sum%u += m[k * %uu] * x[k]; }\n",
            w->g->matrix_at[a->matrix], transposed ? 1 : cols, value_of(w, a->value)->rows, v, transposed ? cols : 1);
    }
}

/* A thread an element. */
static void put_short(const work *w, uint32_t v) {
    const uint32_t rows = value_of(w, v)->rows;
    fprintf(
        w->out,
        "{\nconst unsigned width = r%u.end - r%u.first;\n#pragma unroll 1\nfor (unsigned i = threadIdx.x; i < n * "
        "width; i += VPPS_THREADS) {\nconst unsigned item = first_item + i / width, e = i %% width, el = r%u.first + "
        "e;\n",
        rows, rows, rows);
    put_short_sum(w, v);
    put_finished(w, v);
    store_finished(w, v);
    fprintf(w->out, "}\n}\n");
}

/* What the products of the segment before have become, of the thread's element. */
static void put_joined(const work *w, const vpps_segment *products) {
    fprintf(w->out, "const unsigned first_item = 0;\n");
    for (uint32_t k = 0; k < products->n; k++) {
        const uint32_t v = w->s.steps[products->first + k].value;
        if (is_short(w, v)) {
            put_short_sum(w, v);
        } else {
            put_sum(w, v, products);
        }
        put_finished(w, v);
    }
}

/* The warps' sums: a thread finishes all of an item's rows with the same number. */
static void put_sums(const work *w, const vpps_segment *g) {
    for (uint32_t i = 0; i < g->n; i++) {
        const uint32_t first = w->s.steps[g->first + i].value, rows = value_of(w, first)->rows,
                       width = vpps_segment_width(&w->s, first);
        bool seen = is_streamed(w, first);
        for (uint32_t k = 0; k < i && !seen; k++) {
            const uint32_t v = w->s.steps[g->first + k].value;
            seen = value_of(w, v)->rows == rows && !is_streamed(w, v);
        }
        if (seen) continue;
        fprintf(w->out, "#pragma unroll 1\nfor (unsigned i = threadIdx.x; i < n * %uu; i += VPPS_THREADS) {\n", width);
        fprintf(w->out,
                "const unsigned item = first_item + i / %uu, e = i %% %uu;\nif (e < r%u.end - r%u.first) {\nconst "
                "unsigned el = r%u.first + e;\n",
                width, width, rows, rows, rows);
        for (uint32_t k = i; k < g->n; k++) {
            const uint32_t v = w->s.steps[g->first + k].value;
            if (value_of(w, v)->rows != rows || is_streamed(w, v)) continue;
            put_sum(w, v, g);
            put_finished(w, v);
            store_finished(w, v);
        }
        fprintf(w->out, "}\n}\n");
    }
}

/* A warp a row. */
static void put_streamed(const work *w, uint32_t v) {
    const vpps_cell_value *x = value_of(w, v);
    const bool transposed = x->kind == VPPS_VALUE_PRODUCT_T;
    fprintf(w->out,
            "{\nconst unsigned width = r%u.end - r%u.first;\n#pragma unroll 1\nfor (unsigned i = VPPS_WARP; i < n * "
            "width; i += "
            "VPPS_WARPS) {\nconst unsigned item = first_item + i / width, e = i %% width, el = r%u.first + e;\nfloat "
            "sum = 0.0f;\n",
            x->rows, x->rows, x->rows);
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = arg_of(w, x, k);
        if (a->matrix == VPPS_NO_PARAM) continue;
        const uint32_t cols = w->g->model->params[a->matrix].cols;
        fprintf(w->out, "{ const float *x = ");
        put_pointer(w, a->value, "item");
        fprintf(
            w->out,
            ", *m = (const float *)a.matrices + %uu + el * %uu;\nfor (unsigned k = VPPS_LANE; k < %u; k += 32) sum = "
            "vpps_multiply_add(m[k * %uu], x[k], sum); }\n",
            w->g->matrix_at[a->matrix], transposed ? 1 : cols, value_of(w, a->value)->rows, transposed ? cols : 1);
    }
    fprintf(w->out, "const float sum%u = vpps_warp_sum(sum);\nif (VPPS_LANE != 0) continue;\n", v);
    put_finished(w, v);
    store_finished(w, v);
    fprintf(w->out, "}\n}\n");
}

/* All items of a tile at once? */
static bool is_whole_tile(const work *w) { return !w->c->n_lists && w->chunk >= w->tile; }

/* Can the segment behind products finish them? A thread of it has all rows of an item's products at its own element. */
static bool can_join(const work *w, uint32_t segment) {
    const vpps_segment *g = &w->s.list[segment], *next = g + 1;
    if (g->kind != VPPS_SEGMENT_PRODUCTS || segment + 1 >= w->s.n || next->kind != VPPS_SEGMENT_ELEMENTS ||
        !next->dealt || next->domain || g->domain || !is_whole_tile(w)) {
        return false;
    }
    const uint32_t rows = value_of(w, w->s.steps[next->first].value)->rows;
    for (uint32_t k = 0; k < g->n; k++) {
        const uint32_t v = w->s.steps[g->first + k].value;
        if (value_of(w, v)->rows != rows || (is_streamed(w, v) && !is_short(w, v))) return false;
    }
    for (uint32_t k = 0; k < next->n; k++) {
        const vpps_step_of_segment *step = &w->s.steps[next->first + k];
        const vpps_cell_value *x = value_of(w, step->value);
        for (uint32_t i = 0; i < x->n_args && step->kind == VPPS_STEP_MAKE; i++) {
            const bool product = w->s.made_in[arg_of(w, x, i)->value] == segment;
            if (product && !vpps_reads_alike(&w->s, step->value, i)) return false;
        }
    }
    return true;
}

/* Where the operands of the segment's products are brought, all of an item's one behind the other. */
static void place_near(work *w, const vpps_segment *g) {
    w->near_item = 0;
    for (uint32_t v = 0; v < w->c->n_values; v++) w->near[v] = VPPS_NONE;
    for (uint32_t k = 0; k < g->n && g->kind == VPPS_SEGMENT_PRODUCTS && !w->g->plan->parts; k++) {
        const vpps_cell_value *x = value_of(w, w->s.steps[g->first + k].value);
        for (uint32_t i = 0; i < x->n_args && !is_streamed(w, w->s.steps[g->first + k].value); i++) {
            const vpps_cell_arg *a = arg_of(w, x, i);
            if (a->matrix == VPPS_NO_PARAM || w->near[a->value] != VPPS_NONE || !has_quads(w, a->value)) continue;
            if (resident_of(w, x, a->matrix)->level != VPPS_RESIDENT_SHARED) continue;
            w->near[a->value] = w->near_item;
            w->near_item += value_of(w, a->value)->rows;
        }
    }
    w->near_turns = w->near_item ? vpps_min_u32(2, w->near_words / (NEAR_ITEMS * w->near_item)) : 0;
    if (!w->near_turns) w->near_item = 0;
}

static bool put_products(work *w, const vpps_segment *g, bool joined) {
    const bool whole = is_whole_tile(w);
    place_near(w, g);
    if (whole) {
        fprintf(w->out, "{\nconst unsigned first_item = 0, n = n%u;\n", g->domain);
    } else {
        fprintf(w->out, "#pragma unroll 1\nfor (unsigned first_item = 0; first_item < n%u; first_item += %u) {\n",
                g->domain, w->chunk);
        fprintf(w->out, "const unsigned n = vpps_least(n%u - first_item, %u);\n", g->domain, w->chunk);
    }
    fprintf(w->out, "{\nconst unsigned before = f%u;\nconst unsigned f%u = before + first_item;\n(void)f%u;\n",
            g->domain, g->domain, g->domain);
    if (!(w->g->plan->parts ? put_all_tiles(w, g) : put_all_passes(w, g))) return false;
    fprintf(w->out, "}\n");
    for (uint32_t k = 0; k < g->n; k++) {
        const uint32_t v = w->s.steps[g->first + k].value;
        if (is_streamed(w, v) && !is_short(w, v)) put_streamed(w, v);
        if (is_short(w, v) && !joined) put_short(w, v);
    }
    if (w->item_words[g - w->s.list] && !joined) {
        fprintf(w->out, "__syncthreads();\n");
        put_sums(w, g);
    }
    if (!whole) fprintf(w->out, "__syncthreads();\n");
    fprintf(w->out, "}\n");
    return true;
}

/* ---------------------------------------------------------------- the function */

static bool put_segment(work *w, const vpps_segment *g, uint8_t *loaded) {
    w->joined = w->segment && can_join(w, w->segment - 1);
    const uint32_t v = w->s.steps[g->first].value;
    switch (g->kind) {
    case VPPS_SEGMENT_ELEMENTS: put_elements(w, g, loaded); return true;
    case VPPS_SEGMENT_PRODUCTS: return put_products(w, g, can_join(w, w->segment));
    case VPPS_SEGMENT_WHOLE: put_whole(w, v); return true;
    case VPPS_SEGMENT_LISTS: put_lists(w, v); return true;
    default: put_matrices(w, v); return true;
    }
}

/* How many vertices a tile has, and where slots lie; and how much is left to bring operands near. */
static void choose_room(work *w, vpps_stage_room *room) {
    enum {
        WORDS = 6144,
        MOST = 32,
        LISTS_TILE = 8,
        LIMIT = 12288,
        PART_WORDS = 4096,
        LEAST_WORDS = 3072, /* for tiles, where there are operands to be brought */
        PASS = 16           /* of mma */
    };
    uint32_t part = 0, near = 0;
    for (uint32_t k = 0; k < w->s.n; k++) part = vpps_max_u32(part, w->item_words[k]);
    const uint32_t words = part + w->s.floats[0] + 1;
    const bool in_tiles = !w->c->n_lists && w->s.floats[0] <= LIMIT;
    const uint32_t least = in_tiles ? vpps_max_u32(LEAST_WORDS, words) : vpps_max_u32(PART_WORDS, part);
    w->near_words = VPPS_TILE_WORDS - vpps_min_u32(vpps_quads_up(least), VPPS_TILE_WORDS);
    for (uint32_t k = 0; k < w->s.n; k++) {
        place_near(w, &w->s.list[k]);
        near = vpps_max_u32(near, w->near_turns * NEAR_ITEMS * w->near_item);
    }
    const uint32_t limit = vpps_min_u32(LIMIT, VPPS_TILE_WORDS - near);
    *room = (vpps_stage_room){.tile = LISTS_TILE};
    if (in_tiles) {
        const uint32_t whole = vpps_min_u32(MOST, limit / words) / PASS * PASS;
        const uint32_t some = vpps_min_u32(MOST, vpps_min_u32(WORDS, limit) / words);
        w->chunk = room->tile = w->g->plan->parts && whole ? whole : vpps_max_u32(1, some);
        w->part_words = room->tile * part;
        room->shared_words = w->part_words + room->tile * w->s.floats[0];
    } else {
        w->chunk = part ? vpps_max_u32(1, vpps_min_u32(MOST, PART_WORDS / part)) : 1;
        room->shared_words = w->part_words = w->chunk * part;
        memcpy(room->scratch_words, w->s.floats, sizeof room->scratch_words);
    }
    w->near_at = vpps_quads_up(room->shared_words);
    if (near) room->shared_words = w->near_at + near;
}

static void put_rows(const work *w) {
    const vpps_cell_stage *stage = &w->c->stages[w->s.stage];
    for (uint32_t i = 0; i < stage->n && w->s.rows; i++) {
        const uint32_t v = w->c->order[stage->first + i], rows = value_of(w, v)->rows;
        bool seen = !vpps_is_dealt(&w->s, v);
        for (uint32_t k = 0; k < i && !seen; k++) seen = value_of(w, w->c->order[stage->first + k])->rows == rows;
        if (!seen) fprintf(w->out, "const vpps_rows r%u = vpps_rows_of(%u, VPPS_GROUP, member);\n", rows, rows);
    }
}

/* Where the task's passing records and contributions lie, as if there were items from 0 on. */
static void put_places(const work *w) {
    enum { STAGE_PLACES = 5 }; /* behind block, stage, first, count */
    const uint32_t passing = w->c->kept_words[vpps_passing_record(w->c, w->s.stage)];
    const bool passes = w->c->stages[w->s.stage].passing;
    bool contributes = false;
    for (uint32_t j = 0; j < w->c->n_contributions; j++)
        contributes |= value_of(w, w->c->contributions[j].value)->stage == w->s.stage;
    if (passes || contributes) /* the script's STAGE is behind the WAIT, where the task waits */
        fprintf(
            w->out,
            "const unsigned *const places = (const unsigned *)a.script + t.address + (t.wait == VPPS_KERNEL_NOTHING ? "
            "%u : %u);\n",
            STAGE_PLACES, 1 + vpps_tasks[VPPS_TASK_WAIT].words + STAGE_PLACES);
    if (passes) fprintf(w->out, "const unsigned passing = places[0] - t.operands[1] * %uu;\n(void)passing;\n", passing);
    if (!contributes) return;
    fprintf(w->out, "unsigned next = places[1];\n");
    for (uint32_t j = 0; j < w->c->n_contributions; j++) {
        const vpps_cell_value *x = value_of(w, w->c->contributions[j].value);
        const uint32_t words = vpps_value_words(x);
        char first[48] = "t.operands[1]", n[96] = "t.operands[2]";
        if (x->stage != w->s.stage) continue;
        if (x->domain) {
            snprintf(first, sizeof first, "ls%u[t.operands[1]]", x->domain);
            snprintf(n, sizeof n, "(ls%u[t.operands[1] + t.operands[2]] - %s)", x->domain, first);
        }
        fprintf(w->out, "const unsigned c%u = next - %s * %uu;\nnext += (%s * %uu + 15) & ~15u;\n", j, first, words, n,
                words);
    }
    fprintf(w->out, "(void)next;\n");
}

vpps_status vpps_generate_stage(const vpps_generation *g, const vpps_compiled_cell *c, uint32_t stage, uint32_t number,
                                vpps_stage_room *room) {
    work w = {.g = g, .c = c, .out = g->out};
    uint8_t *loaded = calloc(c->n_values + 1u, 1);
    if (!loaded) return vpps_fail(VPPS_MEMORY, "kernel: out of memory");
    vpps_status status = vpps_segments_make(&w.s, c, stage);
    w.streamed = calloc(c->n_values + 1u, 1);
    w.part_at = calloc(c->n_values + 1u, sizeof *w.part_at);
    w.item_words = calloc(w.s.n + 1u, sizeof *w.item_words);
    w.near = calloc(c->n_values + 1u, sizeof *w.near);
    bool ok = status == VPPS_OK;
    if (ok) ok = w.streamed && w.part_at && w.item_words && w.near && place_products(&w);
    if (!ok && status == VPPS_OK) status = vpps_fail(VPPS_MEMORY, "kernel: out of memory");
    if (ok) {
        choose_room(&w, room);
        w.tile = room->tile;
        fprintf(w.out,
                "\n/* cell %s, stage %u */\nVPPS_PART void vpps_stage_%u(const vpps_arguments &a, float "
                "(&w)[VPPS_WEIGHTS + 1], float *shared, const vpps_kernel_task &t) {\n",
                c->name, stage, number);
        vpps_generate_view(w.out, c, "t.operands[0]");
        fprintf(w.out,
                "const unsigned member = blockIdx.x %% VPPS_GROUP;\nfloat *const part = shared + VPPS_SHARED_WEIGHTS, "
                "*const "
                "near = part + %u;\n",
                w.near_at);
        put_rows(&w);
        put_places(&w);
        if (w.s.rows) {
            fprintf(w.out, "const unsigned begin = t.operands[1], end = begin + t.operands[2];\n");
        } else {
            fprintf(w.out, "const vpps_rows share = vpps_share_of(t.operands[2], VPPS_GROUP, member);\n"
                           "const unsigned begin = t.operands[1] + share.first, end = t.operands[1] + share.end;\n");
        }
        fprintf(w.out, "#pragma unroll 1\nfor (unsigned f0 = begin; f0 < end; f0 += %u) {\n", room->tile);
        fprintf(w.out, "const unsigned n0 = vpps_least(end - f0, %uu);\n", room->tile);
        for (uint32_t d = 1; d <= c->n_lists; d++)
            fprintf(w.out, "const unsigned f%u = ls%u[f0], n%u = ls%u[f0 + n0] - f%u;\n", d, d, d, d, d);
        if (room->scratch_words[0] || c->n_lists) {
            fprintf(w.out,
                    "float *const region0 = (float *)a.scratch + (unsigned long long)blockIdx.x * a.scratch_words;\n");
        } else {
            fprintf(w.out, "float *const region0 = part + %uu;\n", w.part_words);
        }
        for (uint32_t d = 1; d <= c->n_lists; d++)
            fprintf(w.out, "float *const region%u = region%u + %uu * n%u;\n", d, d - 1, w.s.floats[d - 1], d - 1);
        for (uint32_t v = 0; v < c->n_values; v++)
            if (in_slot(&w, v))
                fprintf(w.out, "float *const s%u = region%u + %uu * n%u;\n", v, c->values[v].domain, w.s.slot[v],
                        c->values[v].domain);
        for (w.segment = 0; w.segment < w.s.n && ok; w.segment++) {
            if (w.segment) fprintf(w.out, "__syncthreads();\n"); /* slots, and sums of warps */
            ok = put_segment(&w, &w.s.list[w.segment], loaded);
        }
        fprintf(
            w.out,
            "if (end - f0 > %u) __syncthreads();\n}\n(void)w, (void)pool, (void)part, (void)near, (void)member;\n}\n",
            room->tile);
        if (!ok) status = vpps_fail(VPPS_MEMORY, "kernel: out of memory");
    }
    vpps_segments_free(&w.s);
    void *const parts[] = {loaded, w.streamed, w.part_at, w.item_words, w.near};
    for (size_t i = 0; i < VPPS_COUNT(parts); i++) free(parts[i]);
    return status;
}

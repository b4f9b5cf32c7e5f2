/* replay.c - see replay.h. */
#include "export/replay.h"

#include <ctype.h>

enum { TEXT = 512 };

typedef struct writer {
    const replay *r;
    FILE *f;
    char *header;
    float **values; /* of each node */
} writer;

static FILE *open_file(const replay *r, const char *ending) {
    char path[TEXT];
    snprintf(path, sizeof path, "%s/%s%s", r->folder, r->name, ending);
    return fopen(path, "w+b");
}

/* ---------------------------------------------------------------- the engine's values */

static vpps_status compute(writer *w) {
    vpps_graph *g = w->r->g;
    vpps_node *nodes = malloc((g->n_nodes + 1u) * sizeof *nodes);
    w->values = calloc(g->n_nodes + 1u, sizeof *w->values);
    if (!nodes || !w->values) return free(nodes), vpps_fail(VPPS_MEMORY, "no memory");
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        nodes[i] = i;
        w->values[i] = calloc(vpps_words(vpps_plain_signature(g, i)) + 1u, sizeof(float));
    }
    const vpps_status status = vpps_forward(w->r->h, g, g->n_nodes, nodes, w->values);
    free(nodes);
    return status;
}

/* Writes node values: xI: node I as vertices read it; eI: as the engine computed it. */
static void put_values(const writer *w, vpps_node x) {
    const uint32_t words = vpps_words(vpps_plain_signature(w->r->g, x));
    for (int k = 0; k < 2; k++) {
        fprintf(w->f, "__attribute__((unused)) static %sfloat %c%u[%u] = {", k ? "const " : "", "xe"[k], x, words);
        for (uint32_t i = 0; i < words; i++) {
            const double value = (double)w->values[x][i];
            if (value - value == 0)
                fprintf(w->f, "%af,", value);
            else
                fprintf(w->f, "%s,", value != value ? "NAN" : value > 0 ? "INFINITY" : "-INFINITY");
        }
        fprintf(w->f, "};\n");
    }
}

/* ---------------------------------------------------------------- a vertex */

typedef struct vertex {
    const vpps_graph *g;
    const vpps_cell_data *cell;
    const uint32_t *record;
    uint32_t first, number;
    bool is_first; /* of its cell */
    char function[64], constants[64];
} vertex;

/* Returns the node that is input i of the vertex, for member m of its list. */
static vpps_node input_node(const vertex *v, uint32_t i, uint32_t m) {
    const bool list = v->cell->inputs[i].axis;
    const vpps_node *nodes = list ? vpps_listed_nodes(v->g, v->cell, v->record) : vpps_own_nodes(v->cell, v->record);
    for (uint32_t k = 0; k < i; k++)
        if (!v->cell->inputs[k].axis == !list) nodes += vpps_members(v->record, v->cell->inputs[k].axis);
    return nodes[m];
}

static void put_gathered(const writer *w, const vertex *v, uint32_t axis, uint32_t child, const char *to) {
    const uint32_t n = vpps_members(v->record, axis);
    for (uint32_t i = 0; i < v->cell->n_inputs; i++) {
        const vpps_cell_input *in = &v->cell->inputs[i];
        if (in->pulled || in->axis != axis || (!axis && in->child != child)) continue;
        for (uint32_t m = 0; m < n; m++) {
            const vpps_node x = input_node(v, i, m);
            fprintf(w->f, "memcpy(%s[%u] + %s_OUT%u, x%u, sizeof x%u);\n", to, m, w->r->name, in->output, x, x);
        }
    }
}

/* Declares the C variable that is passed as argument `name` of the function. */
static void put_argument(const writer *w, const vertex *v, const char *name, uint32_t number) {
    const uint32_t members = number < v->cell->n_lists ? vpps_members(v->record, number + 1) : 0;
    char to[48];
    snprintf(to, sizeof to, "%s%u", name, number);
    if (strcmp(name, "child") == 0 || strcmp(name, "list") == 0) {
        const bool list = *name == 'l';
        const uint32_t n = list ? members : 1;
        fprintf(w->f, "static float b%s[%u][%s_OUT + 1];\n", to, n + 1, w->r->name);
        snprintf(to, sizeof to, "b%s%u", name, number);
        put_gathered(w, v, list ? number + 1 : 0, number, to);
        if (!list) {
            fprintf(w->f, "const float *child%u = %s[0];\n", number, to);
            return;
        }
        fprintf(w->f, "const float *list%u[%u] = {NULL};\nfor (size_t m = 0; m != %u; m++) list%u[m] = %s[m];\n",
                number, n + 1, n, number, to);
    } else if (strcmp(name, "pull") == 0 || strcmp(name, "pulls") == 0) {
        for (uint32_t i = 0; i < v->cell->n_inputs; i++) {
            const vpps_cell_input *in = &v->cell->inputs[i];
            const bool list = name[4] == 's';
            if (!in->pulled || in->child != number || (in->axis > 0) != list) continue;
            if (!list) fprintf(w->f, "const float *pull%u = x%u;\n", number, input_node(v, i, 0));
            if (!list) continue;
            fprintf(w->f, "const float *pulls%u[] = {", number);
            for (uint32_t m = 0; m < vpps_members(v->record, in->axis); m++)
                fprintf(w->f, "x%u, ", input_node(v, i, m));
            fputs("NULL};\n", w->f);
        }
    } else if (strcmp(name, "n") == 0) {
        fprintf(w->f, "size_t n%u = %u;\n", number, members);
    } else if (strcmp(name, "index") == 0) {
        fprintf(w->f, "uint32_t index%u = %u;\n", number, vpps_indices_of(v->cell, v->record)[number]);
    } else if (strcmp(name, "scratch") == 0) {
        fprintf(w->f, "static float scratch%u[%s_SCRATCH%u * %u + 1];\n", number, v->constants, number, members);
    }
}

/* Writes a call with an index out of range, which must fail and change nothing. */
static void put_wrong_index(const writer *w, const vertex *v, uint32_t number, const char *call) {
    const uint32_t limit = v->cell->index_limits[number];
    if (limit == UINT32_MAX) return;
    fprintf(w->f,
            "{\nconst uint32_t right = index%u;\nindex%u = %uu;\nif (%s != %s_INDEX) return fail(%u);\nindex%u = "
            "UINT32_MAX;\n"
            "if (%s != %s_INDEX || memcmp(out, before, sizeof out) != 0) return fail(%u);\nindex%u = right;\n}\n",
            number, number, limit, call, w->r->name, v->number, number, call, w->r->name, v->number, number);
}

/* Writes the same for a list with fewer or more members than the cell takes. */
static void put_wrong_members(const writer *w, const vertex *v, const char *call) {
    for (uint32_t l = 0; l < v->cell->n_lists; l++) {
        const uint32_t least = v->cell->min_members[l + 1], most = v->cell->most_members[l + 1];
        const uint32_t wrong[] = {least ? least - 1 : 0, most ? most + 1 : 0};
        for (int k = 0; k < 2; k++) {
            if (k ? !most : !least) continue;
            fprintf(w->f, "n%u = %u;\nif (%s != %s_MEMBERS) return fail(%u);\nn%u = %u;\n", l, wrong[k], call,
                    w->r->name, v->number, l, vpps_members(v->record, l + 1));
        }
    }
}

static void put_comparison(const writer *w, const vertex *v) {
    for (uint32_t k = 0; k < v->cell->n_scattered + v->cell->n_pushed; k++) {
        const bool scattered = k < v->cell->n_scattered;
        const uint32_t output = v->cell->offers[k].output;
        const bool given = output & VPPS_CELL_INPUT;
        const vpps_node x = given ? input_node(v, output & ~VPPS_CELL_INPUT, 0) : v->first + output;
        fprintf(w->f, "differs += differ(%u, %u, %s + %s_%s%u, %c%u, sizeof e%u / sizeof *e%u);\n", v->number, k,
                scattered ? "out" : "pushed", v->constants, scattered ? "OUT" : "PUSH",
                scattered ? k : k - v->cell->n_scattered, given ? 'x' : 'e', x, x, x);
        if (w->r->chained && !given)
            fprintf(w->f, "memcpy(x%u, %s + %s_%s%u, sizeof x%u);\n", x, scattered ? "out" : "pushed", v->constants,
                    scattered ? "OUT" : "PUSH", scattered ? k : k - v->cell->n_scattered, x);
    }
}

/* Writes a call's arguments: as they are, zeros, or arrays of both in turn, which are declared if `arrays` is true. */
static void put_arguments(const writer *w, const char *call, const char *form, bool arrays) {
    const char *between = "";
    for (const char *at = strchr(call, '(') + 1; *at && *at != ')'; between = ", ") {
        const size_t len = strcspn(at, ",)");
        const bool index = strncmp(at, "index", 5) == 0, given = *at == 'o' || strncmp(at, "pushed", 6) == 0;
        const char *zero = index ? "0" : "zeros", *type = index ? "uint32_t " : "const float *";
        if (arrays && !given && *at != 'w')
            fprintf(w->f, "%s%.*s_of[N];\nfor (int r = 0; r < N; r++) %.*s_of[r] = r %% 2 ? %s : %.*s;\n", type,
                    (int)len, at, (int)len, at, zero, (int)len, at);
        else if (!arrays && *at == 'w')
            fputs(strcmp(form, "_of") == 0 ? "weights, N" : "weights", w->f);
        else if (!arrays && *form == '0' && !given)
            fprintf(w->f, "%s%s", between, zero);
        else if (!arrays)
            fprintf(w->f, "%s%.*s%s", between, (int)len, at, form);
        at += len + (at[len] == ',' ? 2 : 0);
    }
}

/* Writes a call for several vertices, every second one of zeros: each gets the same results as alone, or nothing if an index is out of range. */
static void put_many(const writer *w, const vertex *v, const char *call) {
    char function[80];
    snprintf(function, sizeof function, "int %s_many(", v->function);
    if (!strstr(w->header, function)) return;
    const char *name = v->constants, *weights = w->r->beside ? "" : "N, ";
    fprintf(w->f, "{\nenum { N = 13 };\nstatic float outs[N][%s_OUT + 1], pushes[N][%s_PUSHED + 1], zeros[1 << 16];\n",
            name, name);
    fprintf(w->f, "static float out0[%s_OUT + 1], pushed0[%s_PUSHED + 1];\nfloat *out_of[N], *pushed_of[N];\n", name,
            name);
    fputs(
        "for (int r = 0; r < N; r++) out_of[r] = outs[r], pushed_of[r] = pushes[r];\n(void)out_of, (void)pushed_of;\n",
        w->f);
    put_arguments(w, call, "", true);
    for (uint32_t i = 0; i < v->cell->n_indices; i++) {
        snprintf(function, sizeof function, "index%u", i);
        if (!strstr(call, function) || v->cell->index_limits[i] == UINT32_MAX) continue;
        fprintf(w->f, "index%u_of[N - 1] = UINT32_MAX;\nif (%s_many(%s", i, v->function, weights);
        put_arguments(w, call, "_of", false);
        fprintf(
            w->f,
            ") != %s_INDEX || memcmp(outs, zeros, sizeof *outs) != 0) return fail(%u);\nindex%u_of[N - 1] = index%u;\n",
            w->r->name, v->number, i, i);
    }
    fprintf(w->f, "if (%s_many(%s", v->function, weights);
    put_arguments(w, call, "_of", false);
    fprintf(w->f, ") != %s_OK || %s(", w->r->name, v->function);
    put_arguments(w, call, "0", false);
    fprintf(w->f,
            ") != %s_OK) return fail(%u);\nfor (int r = 0; r < N; r++) {\n"
            "differs += differ(%u, 100 + r, outs[r], r %% 2 ? out0 : out, %s_OUT);\n"
            "differs += differ(%u, 200 + r, pushes[r], r %% 2 ? pushed0 : pushed, %s_PUSHED);\n}\n}\n",
            w->r->name, v->number, v->number, name, v->number, name);
}

/* Writes the call for a vertex, by its cell's function's prototype. */
static void put_vertex(const writer *w, vertex *v, const char *prototype) {
    char call[2 * TEXT] = "", name[32];
    const char *open = strchr(prototype, '('), *end = strchr(prototype, ')');
    snprintf(v->function, sizeof v->function, "%.*s", (int)(open - prototype - 4), prototype + 4);
    for (size_t i = 0; i < sizeof v->function; i++) v->constants[i] = (char)toupper((unsigned char)v->function[i]);
    fprintf(w->f,
            "static int call_%u(void) {\nint differs = 0;\nfloat out[%s_OUT + 1] = {0}, before[%s_OUT + 1] = {0}, "
            "pushed[%s_PUSHED + 1];\n"
            "(void)out, (void)pushed, (void)before;\n",
            v->number, v->constants, v->constants, v->constants);
    size_t n = (size_t)snprintf(call, sizeof call, "%s(", v->function);
    for (const char *at = open + 1; at < end;) {
        const char *stop = at + strcspn(at, ",)"), *begin = stop;
        while (isalnum((unsigned char)begin[-1])) begin--;
        snprintf(name, sizeof name, "%.*s", (int)(stop - begin), begin);
        n += (size_t)snprintf(call + n, sizeof call - n, "%s%s", at == open + 1 ? "" : ", ", name);
        const size_t letters = strcspn(name, "0123456789");
        const uint32_t number = (uint32_t)strtoul(name + letters, NULL, 10);
        name[letters] = '\0';
        put_argument(w, v, name, number);
        at = stop + 1;
    }
    snprintf(call + n, sizeof call - n, ")");
    for (const char *at = strstr(prototype, "index"); at && at < end; at = strstr(at + 1, "index"))
        put_wrong_index(w, v, (uint32_t)strtoul(at + 5, NULL, 10), call);
    put_wrong_members(w, v, call);
    fprintf(w->f, "if (%s != %s_OK) return fail(%u);\n", call, w->r->name, v->number);
    put_comparison(w, v);
    if (v->is_first) put_many(w, v, call);
    fputs("return differs;\n}\n", w->f);
}

/* ---------------------------------------------------------------- the program */

static const char beginning[] =
    "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    "static int fail(int vertex) {\n    printf(\"vertex %d: another status\\n\", vertex);\n    return 1;\n}\n"
    "static int differ(int vertex, int output, const float *got, const float *want, size_t n) {\n"
    "    double most = 1e-30;\n"
    "    for (size_t i = 0; i < n; i++)\n"
    "        if (fabs((double)want[i]) < INFINITY && fabs((double)want[i]) > most) most = fabs((double)want[i]);\n"
    "    for (size_t i = 0; i < n; i++) {\n"
    "        if (fabs((double)got[i] - (double)want[i]) <= TOLERANCE * most || got[i] == want[i]) continue;\n"
    "        if (got[i] != got[i] && want[i] != want[i]) continue;\n"
    "        printf(\"vertex %d, output %d, element %d: %.9g, expected %.9g\\n\", vertex, output, (int)i, "
    "(double)got[i], (double)want[i]);\n"
    "        return 1;\n"
    "    }\n"
    "    return 0;\n"
    "}\n";

/* Returns prototype number i of the header, that of cell i. */
static const char *prototype_of(const writer *w, uint32_t i) {
    char begin[80];
    const int len = snprintf(begin, sizeof begin, "\nint %s_", w->r->name);
    const char *at = w->header;
    for (uint32_t k = 0; at && k <= i;) {
        at = strstr(at, begin);
        if (at) at++;
        if (!at) break;
        const char *many = strstr(at, "_many(");
        k += strncmp(at + len - 1, "weights_fit(", 12) != 0 &&
             !(many && many < strchr(at, '\n') && many + 5 == strchr(at, '('));
    }
    return at;
}

static void put_program(const writer *w) {
    const vpps_graph *g = w->r->g;
    fprintf(w->f, "#include \"%s.h\"\n#define TOLERANCE %g\n%s", w->r->name, w->r->tolerance, beginning);
    fprintf(w->f, "int %s_replay(void);\n", w->r->name);
    if (w->r->beside)
        fprintf(w->f,
                "static char bytes[1 << 22];\nstatic const void *weights;\n"
                "static void load(void) {\nFILE *f = fopen(\"%s/%s.bin\", \"rb\");\n"
                "char *at = bytes + (64 - (size_t)bytes %% 64) %% 64;\nsize_t n = fread(at, 1, sizeof bytes - 64, f);\n"
                "fclose(f);\nweights = %s_weights_fit(at, n) ? at : NULL;\nat[n - 1]++;\n"
                "if (%s_weights_fit(at, n) || %s_weights_fit(at, n - 1)) weights = NULL;\nat[n - 1]--;\n}\n",
                w->r->folder, w->r->name, w->r->name, w->r->name, w->r->name);
    for (uint32_t x = 0; x < g->n_nodes; x++) put_values(w, x);
    uint32_t n = 0;
    uint64_t tried = 0; /* cells; cells with equal lower bits count as one */
    for (size_t i = 0; i < g->n_records; i++) {
        const vpps_record *record = &g->records[i];
        if (record->cell == VPPS_NODE_RECORD) continue;
        const bool is_first = !(tried >> (record->cell & 63) & 1);
        vertex v = {g, vpps_cell_of(g, record->cell), g->words + record->at, record->first, n++, is_first, "", ""};
        tried |= UINT64_C(1) << (record->cell & 63);
        put_vertex(w, &v, prototype_of(w, record->cell));
    }
    fprintf(w->f, "int %s_replay(void) {\nint differs = 0;\n%s", w->r->name,
            w->r->beside ? "load();\nif (!weights) return fail(-1);\n" : "");
    for (uint32_t i = 0; i < n; i++) fprintf(w->f, "differs += call_%u();\n", i);
    fprintf(w->f, "return differs;\n}\n#ifdef ALONE\nint main(void) { return %s_replay() != 0; }\n#endif\n",
            w->r->name);
}

static vpps_status export(writer *w) {
    const replay *r = w->r;
    char header_name[TEXT];
    FILE *c = open_file(r, ".c"), *h = open_file(r, ".h"), *b = r->beside ? open_file(r, ".bin") : NULL;
    snprintf(header_name, sizeof header_name, "%s.h", r->name);
    const vpps_c_export options = {.size = sizeof options,
                                   .prefix = r->name,
                                   .header = h,
                                   .header_name = header_name,
                                   .weights = b,
                                   .precision = r->precision,
                                   .losses = true};
    vpps_status status = vpps_export_c(r->g->model, c, &options);
    const long bytes = ftell(h);
    w->header = calloc((size_t)bytes + 1, 1);
    rewind(h);
    if (status == VPPS_OK && (!w->header || fread(w->header, 1, (size_t)bytes, h) != (size_t)bytes))
        status = vpps_fail(VPPS_IO, "the header cannot be read");
    fclose(c), fclose(h);
    if (b) fclose(b);
    return status;
}

vpps_status replay_write(const replay *r) {
    writer w = {.r = r};
    vpps_status status = compute(&w);
    if (status == VPPS_OK) status = export(&w);
    if (status == VPPS_OK) {
        w.f = open_file(r, "_calls.c");
        put_program(&w);
        if (fclose(w.f) != 0) status = vpps_fail(VPPS_IO, "the program cannot be written");
    }
    for (uint32_t i = 0; w.values && i < r->g->n_nodes; i++) free(w.values[i]);
    VPPS_FREE(w.values, w.header);
    return status;
}

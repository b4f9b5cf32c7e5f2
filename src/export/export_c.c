/* export_c.c - writes a model's cells as one C file: its names, header, and text that is the same for every model. */
#include "export/export.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>

extern const char vpps_c_math[], vpps_c_functions[], vpps_c_products[], vpps_c_fp32[], vpps_c_bf16[], vpps_c_int8[],
    vpps_c_file[];

enum { SUFFIX = 12 /* SUFFIX: characters of a name kept free for a number that makes it unique */ };

/* Makes names[n] a C identifier that begins with `begin` and goes on with `from`, different from names[0] to names[n - 1]. */
static void make_name(const char *begin, const char *from, char (*names)[VPPS_C_NAME], size_t n) {
    char *to = names[n];
    snprintf(to, VPPS_C_NAME - SUFFIX, "%s%s", begin, from);
    for (char *c = to; *c; c++)
        if (!isalnum((unsigned char)*c)) *c = '_';
    const size_t len = strlen(to);
    uint32_t number = 2;
    for (size_t i = 0; i < n;) {
        const bool same = strcasecmp(to, names[i]) == 0; /* case does not count: constants are names in capitals */
        if (same) snprintf(to + len, SUFFIX, "_%u", number++);
        i = same ? 0 : i + 1;
    }
}

vpps_c_text vpps_c_weights(const vpps_c_writer *w, vpps_param p) {
    const bool scaled = w->model->params[p].kind != VPPS_VECTOR && w->options->precision == VPPS_C_INT8;
    w->used[p] = true;
    return scaled ? vpps_c_say("%s, %s_scale", w->names[p], w->names[p]) : vpps_c_say("%s", w->names[p]);
}

/* ---------------------------------------------------------------- what is exported */

/* Assigns offsets to the cell's results. Leaves out losses: scalars that depend on a label (an index that the caller gives, and by which no table
 * entry is selected). */
static vpps_status place_values(vpps_c_cell *x) {
    const vpps_cell_data *d = x->cell;
    bool *labelled = calloc(d->n_nodes + 1u, sizeof *labelled);
    x->places = calloc(d->n_scattered + d->n_pushed + 1u, sizeof *x->places);
    if (!labelled || !x->places) {
        free(labelled);
        return vpps_fail(VPPS_MEMORY, "cell %s: out of memory", d->name);
    }
    for (uint32_t t = 0; t < d->n_nodes; t++) {
        const vpps_op_node *node = &d->nodes[t];
        labelled[t] = d->imm_pulled[t] && d->signatures[node->signature].op != VPPS_OP_LOOKUP;
        for (uint32_t i = 0; i < node->n_args; i++) {
            const uint32_t a = d->args[node->args + i];
            labelled[t] |= !(a & VPPS_CELL_INPUT) && labelled[a];
        }
    }
    for (uint32_t k = 0; k < d->n_scattered + d->n_pushed; k++) {
        const uint32_t words = d->offers[k].rows * d->offers[k].cols;
        if (k < d->n_scattered) {
            x->places[k] = x->w->output_at[k];
            x->out_words = vpps_max_u32(x->out_words, x->places[k] + words);
            continue;
        }
        const uint32_t node = d->pushed[k - d->n_scattered];
        const bool loss = !(node & VPPS_CELL_INPUT) && words == 1 && labelled[node];
        x->places[k] = loss && !x->w->options->losses ? VPPS_NONE : x->push_words;
        if (x->places[k] != VPPS_NONE) x->push_words += words;
    }
    free(labelled);
    return VPPS_OK;
}

/* Compiles the cell for inference by one thread (VP) that computes whole vertices. */
static vpps_status compile(vpps_c_cell *x) {
    const vpps_cell_data *d = x->cell;
    vpps_cell_needs needs = {.group = 1, .rows = {.unit = 1, .least = UINT32_MAX, .split_elems = UINT32_MAX}};
    for (uint32_t k = 0; k < d->n_scattered + d->n_pushed; k++) {
        const uint32_t output = d->offers[k].output;
        if (!(output & VPPS_CELL_INPUT) && x->places[k] != VPPS_NONE) needs.read_out |= UINT64_C(1) << output;
    }
    VPPS_TRY(vpps_lower_cell(d, false, &x->c));
    return vpps_compile_cell(x->w->model, x->c, &needs);
}

static vpps_status write_cell(vpps_c_cell *x, FILE *declarations) {
    VPPS_TRY(place_values(x));
    VPPS_TRY(compile(x));
    return vpps_c_write_cell(x, declarations);
}

/* Gives each output number k an offset, equal in all cells: the sum of the largest output 0 of any cell, the largest output 1, ... k - 1. */
static bool place_outputs(vpps_c_writer *w) {
    uint32_t most = 0;
    for (size_t i = 0; i < w->model->n_cells; i++) {
        const vpps_cell_data *d = w->model->cells[i];
        most = vpps_max_u32(most, d->n_scattered);
        for (uint32_t k = 0; k < d->n_inputs; k++)
            if (!d->inputs[k].pulled) most = vpps_max_u32(most, d->inputs[k].output + 1);
    }
    uint32_t *words = w->output_at = calloc(most + 2u, sizeof *words), at = 0;
    for (size_t i = 0; words && i < w->model->n_cells; i++) {
        const vpps_cell_data *d = w->model->cells[i];
        for (uint32_t k = 0; k < d->n_scattered; k++)
            words[k] = vpps_max_u32(words[k], d->offers[k].rows * d->offers[k].cols);
        for (uint32_t k = 0; k < d->n_inputs; k++) {
            const vpps_cell_input *in = &d->inputs[k];
            if (!in->pulled) words[in->output] = vpps_max_u32(words[in->output], in->rows * in->cols);
        }
    }
    w->n_outputs = most;
    for (uint32_t k = 0; words && k <= most; k++) { /* turns sizes into offsets; the last offset is the total size */
        const uint32_t here = words[k];
        words[k] = at;
        at += here;
    }
    return words;
}

/* Copies embedded C text to the file, without its `#pragma once`. */
static void put_template(const vpps_c_writer *w, const char *template) {
    static const char once[] = "#pragma once\n";
    const char *at = strstr(template, once);
    fputc('\n', w->out);
    if (at) fwrite(template, 1, (size_t)(at - template), w->out);
    fputs(at ? at + sizeof once - 1 : template, w->out);
}

static void put_begin(const vpps_c_writer *w, const char *declarations) {
    const vpps_c_export *o = w->options;
    const char *const weights[] = {
        [VPPS_C_FP32] = vpps_c_fp32, [VPPS_C_BF16] = vpps_c_bf16, [VPPS_C_INT8] = vpps_c_int8};
    fputs("/* The cells of a trained network, written by vpps. C99; needs libc and libm. */\n", w->out);
    fputs("#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n", w->out);
    if (o->header)
        fprintf(w->out, "\n#include \"%s\"\n", o->header_name);
    else
        fprintf(w->out, "\n%s", declarations);
    fputs("\n#ifdef __GNUC__\n#define VPPS_UNUSED __attribute__((unused))\n"
          "#define VPPS_INLINE static inline __attribute__((always_inline, unused))\n"
          "#else\n#define VPPS_UNUSED\n#define VPPS_INLINE static inline\n#endif\n\nenum { MOST_ROWS = 64, AT_ONCE = "
          "4, TOGETHER = 8 };\n",
          w->out);
    put_template(w, vpps_c_math);
    put_template(w, vpps_c_functions);
    put_template(w, weights[o->precision]);
    put_template(w, vpps_c_products);
}

static void put_header(const vpps_c_writer *w, const char *declarations) {
    fprintf(
        w->options->header,
        "/* The cells of a trained network, written by vpps. */\n#ifndef %s_H\n#define %s_H\n\n#include <stddef.h>\n"
        "#include <stdint.h>\n\n%s#endif\n",
        w->upper, w->upper, declarations);
}

static void put_codes(const vpps_c_writer *w, FILE *to) {
    fprintf(to,
            "/* What functions return. Where it is not %s_OK, nothing was written. */\n"
            "enum { %s_OK, %s_INDEX /* an index is out of range */, %s_MEMBERS /* a list has too few or many members "
            "*/ };\n\n"
            "/* Output k of a vertex, whatever its cell, begins %s_OUTk floats after the beginning of the array out. "
            "*/\nenum {",
            w->upper, w->upper, w->upper, w->upper, w->upper);
    for (uint32_t k = 0; k < w->n_outputs; k++) fprintf(to, " %s_OUT%u = %u,", w->upper, k, w->output_at[k]);
    fprintf(to, " %s_OUT = %u };\n\n", w->upper, w->output_at[w->n_outputs]);
    if (w->options->weights)
        fprintf(to,
                "/* Returns whether `weights`, at a multiple of 64, is the file of weights that functions take. */\n"
                "int %s_weights_fit(const void *weights, size_t bytes);\n\n",
                w->prefix);
}

static void put_indented(FILE *out, const char *text) {
    int depth = 0;
    for (const char *end; *text; text = end) {
        end = strchr(text, '\n') + 1;
        if (*text == '}') depth--;
        fprintf(out, "%*s%.*s", *text == '\n' ? 0 : 4 * depth, "", (int)(end - text), text);
        for (const char *c = text + (*text == '}'); c < end; c++) depth += (*c == '{') - (*c == '}');
    }
}

static vpps_status write_cells(vpps_c_writer *w, FILE *functions, FILE *declarations) {
    char(*names)[VPPS_C_NAME] = calloc(w->model->n_cells + 1, sizeof *names);
    vpps_status status = names ? VPPS_OK : vpps_fail(VPPS_MEMORY, "export: out of memory");
    put_codes(w, declarations);
    for (size_t i = 0; i < w->model->n_cells && status == VPPS_OK; i++) {
        vpps_c_cell x = {.w = w, .cell = w->model->cells[i], .out = functions};
        const char *omit = w->options->omit, *name = x.cell->name;
        const size_t len = omit ? strlen(omit) : 0;
        if (len && strncmp(name, omit, len) == 0 && name[len] == ' ') name += len + 1;
        make_name("", name, names, i);
        for (size_t k = 0; k < sizeof x.name; k++) x.upper[k] = (char)toupper((unsigned char)(x.name[k] = names[i][k]));
        status = write_cell(&x, declarations);
        vpps_segments_free(&x.s);
        vpps_compiled_cell_free(x.c);
        VPPS_FREE(x.places, x.body);
    }
    free(names);
    return status;
}

/* Writes the functions to memory first, because this marks the parameters that the file must hold. */
static vpps_status write_text(vpps_c_writer *w, FILE *out) {
    char *functions = NULL, *declarations = NULL;
    size_t n_functions, n_declarations;
    FILE *f = open_memstream(&functions, &n_functions), *d = open_memstream(&declarations, &n_declarations);
    vpps_status status = f && d ? write_cells(w, f, d) : vpps_fail(VPPS_MEMORY, "export: out of memory");
    const bool lost = f && fclose(f) != 0, lost_too = d && fclose(d) != 0;
    if (lost || lost_too) status = vpps_fail(VPPS_MEMORY, "export: out of memory");
    w->out = out;
    if (status == VPPS_OK) {
        put_begin(w, declarations);
        if (w->options->header) put_header(w, declarations);
        status = vpps_c_write_weights(w);
    }
    if (status == VPPS_OK && w->options->weights) {
        put_template(w, vpps_c_file);
        fprintf(out, "\nint %s_weights_fit(const void *weights, size_t bytes) { return fits(weights, bytes); }\n",
                w->prefix);
    }
    if (status == VPPS_OK) put_indented(out, functions);
    VPPS_FREE(functions, declarations);
    return status;
}

static vpps_status check_options(const vpps_model *model, const vpps_c_export *o) {
    const char *prefix = o->prefix ? o->prefix : "net";
    if (!model->n_cells) return vpps_fail(VPPS_ARGUMENT, "the model has no cells to export");
    if (o->precision > VPPS_C_INT8)
        return vpps_fail(VPPS_ARGUMENT, "precision %u; expected a vpps_c_precision", o->precision);
    bool good = isalpha((unsigned char)*prefix) && strlen(prefix) < VPPS_C_NAME - SUFFIX;
    for (const char *c = prefix; *c; c++) good = good && (isalnum((unsigned char)*c) || *c == '_');
    if (!good)
        return vpps_fail(VPPS_ARGUMENT, "prefix '%.60s'; expected a C identifier that begins with a letter", prefix);
    if (o->header && !o->header_name) return vpps_fail(VPPS_ARGUMENT, "a header without a name to include it by");
    return VPPS_OK;
}

vpps_status vpps_export_c(const vpps_model *model, FILE *out, const vpps_c_export *options) {
    vpps_c_export own = {.size = sizeof own};
    VPPS_NEED(model);
    VPPS_NEED(out);
    if (options)
        VPPS_TRY(vpps_take_struct(&own, sizeof own, VPPS_LEAST(vpps_c_export, losses), options, "vpps_c_export"));
    VPPS_TRY(check_options(model, &own));
    struct vpps_c_beside beside = {.hash = 2166136261u};
    vpps_c_writer w = {.model = model, .options = &own, .prefix = own.prefix ? own.prefix : "net", .beside = &beside};
    w.upper = strdup(w.prefix);
    w.names = calloc(model->n_params + 1, sizeof *w.names);
    w.used = calloc(model->n_params + 1, sizeof *w.used);
    vpps_status status = VPPS_OK;
    if (!w.upper || !w.names || !w.used || !place_outputs(&w)) status = vpps_fail(VPPS_MEMORY, "export: out of memory");
    for (char *c = w.upper; c && *c; c++) *c = (char)toupper((unsigned char)*c);
    for (size_t i = 0; i < model->n_params && status == VPPS_OK; i++)
        make_name("w_", model->params[i].name, w.names, i);
    if (status == VPPS_OK) status = write_text(&w, out);
    const bool bad = fflush(out) != 0 || ferror(out) || (own.header && (fflush(own.header) != 0 || ferror(own.header)));
    if (status == VPPS_OK && bad) status = vpps_fail(VPPS_IO, "the text cannot be written: %s", strerror(errno));
    VPPS_FREE(w.upper, w.names, w.used, w.output_at);
    return status;
}

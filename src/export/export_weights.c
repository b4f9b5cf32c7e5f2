/* export_weights.c - writes the parameters of an exported C file. Matrices are stored in blocks of rows, as products.h reads them. */
#include "export/export.h"

#include <errno.h>
#include <math.h>

enum { BYTES = 64 /* BYTES: alignment of each array in a file of weights */ };

/* An array of weights that is being written: as numbers into the C file, or as bytes into the file of weights. */
typedef struct array {
    const vpps_c_writer *w;
    size_t n; /* count of numbers written so far */
} array;

/* Writes bytes to the file of weights and adds them to its FNV-1a hash, which the exported C checks. */
static void put_bytes(const vpps_c_writer *w, const void *bytes, size_t size) {
    fwrite(bytes, size, 1, w->options->weights);
    for (size_t i = 0; i < size; i++)
        w->beside->hash = (w->beside->hash ^ ((const unsigned char *)bytes)[i]) * 16777619u;
    w->beside->bytes += size;
}

static void put_number(array *a, const void *bytes, size_t size, const char *number) {
    if (a->w->options->weights)
        put_bytes(a->w, bytes, size);
    else
        fprintf(a->w->out, "%s%s", a->n % 8 ? " " : "\n", number);
    a->n++;
}

static void put_float(array *a, float x) {
    char number[40];
    snprintf(number, sizeof number, "%af,", (double)x);
    put_number(a, &x, sizeof x, number);
}

/* Rounds x to the nearest bf16 (to even at a tie), and returns the 16 bits of the bf16. */
static uint32_t bf16_of(float x) {
    const uint32_t u = vpps_float_bits(x);
    return (u + 0x7fffu + (u >> 16 & 1)) >> 16;
}

static void put_word(array *a, uint32_t u) {
    char number[16];
    snprintf(number, sizeof number, "0x%xu,", u);
    put_number(a, &u, sizeof u, number);
}

static void put_half(array *a, uint32_t u) {
    const uint16_t half = (uint16_t)u;
    char number[16];
    snprintf(number, sizeof number, "0x%xu,", u);
    put_number(a, &half, sizeof half, number);
}

static void put_byte(array *a, float x, float scale) {
    const int8_t q = (int8_t)(scale > 0 ? lrintf(x / scale) : 0);
    char number[8];
    snprintf(number, sizeof number, "%d,", q);
    put_number(a, &q, 1, number);
}

/* Returns the int8 scale of a matrix row or table entry: its greatest absolute value / 127. */
static float scale_of(const float *x, size_t n) {
    float most = 0;
    for (size_t i = 0; i < n; i++) most = fmaxf(most, fabsf(x[i]));
    return most / 127;
}

/* ---------------------------------------------------------------- matrices, tables, vectors */

/* Writes a block of `width` matrix rows from row `first` on, column after column. */
static void put_block(array *a, const vpps_parameter_data *p, uint32_t first, uint32_t width, const float *scales) {
    const vpps_c_precision precision = a->w->options->precision;
    const uint32_t half = (width + 1) / 2;
    for (uint32_t k = 0; k < p->cols; k++) {
        const float *column = p->values + (size_t)first * p->cols + k;
        for (uint32_t j = 0; j < (precision == VPPS_C_BF16 ? half : width); j++) {
            const float x = column[(size_t)j * p->cols];
            if (precision == VPPS_C_FP32)
                put_float(a, x);
            else if (precision == VPPS_C_INT8)
                put_byte(a, x, scales[first + j]);
            else
                put_word(a, bf16_of(x) | (half + j < width ? bf16_of(column[(size_t)(half + j) * p->cols]) << 16 : 0));
        }
    }
}

static void put_matrix(array *a, const vpps_parameter_data *p, const float *scales) {
    uint32_t width;
    for (uint32_t i = 0; i < p->rows; i += width) {
        const uint32_t left = p->rows - i;
        width = left >= 64 ? 64 : left >= 16 ? 16 : left;
        put_block(a, p, i, width, scales);
    }
}

static void put_values(array *a, const vpps_parameter_data *p, const float *scales) {
    const vpps_c_precision precision = p->kind == VPPS_VECTOR ? VPPS_C_FP32 : a->w->options->precision;
    const size_t words = (size_t)p->rows * p->cols;
    for (size_t i = 0; i < vpps_param_elems(p); i++) {
        if (precision == VPPS_C_FP32)
            put_float(a, p->values[i]);
        else if (precision == VPPS_C_BF16)
            put_half(a, bf16_of(p->values[i]));
        else
            put_byte(a, p->values[i], scales[i / words]);
    }
}

void vpps_c_round(const vpps_model *model, vpps_param param, vpps_c_precision precision) {
    const vpps_parameter_data *p = &model->params[param];
    const size_t words = p->kind == VPPS_MATRIX ? p->cols : (size_t)p->rows * p->cols;
    for (size_t i = 0; i < vpps_param_elems(p) && p->kind != VPPS_VECTOR; i += words) {
        const float scale = scale_of(p->values + i, words);
        for (float *x = p->values + i; x < p->values + i + words; x++) {
            if (precision == VPPS_C_BF16) *x = vpps_bits_float(bf16_of(*x) << 16);
            if (precision == VPPS_C_INT8) *x = scale > 0 ? scale * rintf(*x / scale) : 0;
        }
    }
}

/* Begins an array of weights: in the C file, or in the file of weights, with its C name defined as an offset there. */
static array begin_array(const vpps_c_writer *w, const char *type, const char *name, const char *suffix, size_t elems) {
    if (!w->options->weights) {
        fprintf(w->out, "static const %s %s%s[%zu] = {", type, name, suffix, elems);
    } else {
        while (w->beside->bytes % BYTES) put_bytes(w, "", 1);
        fprintf(w->out, "#define %s%s ((const %s *)((const char *)weights + %zu))\n", name, suffix, type,
                w->beside->bytes);
    }
    return (array){.w = w};
}

static void end_array(const array *a) {
    if (!a->w->options->weights) fputs("\n};\n", a->w->out);
}

static vpps_status check_values(const vpps_c_writer *w, const vpps_parameter_data *p) {
    if (vpps_is_sharded(p))
        return vpps_fail(VPPS_ARGUMENT, "parameter %s is shared out over processes; expected all of it", p->name);
    for (size_t i = 0; i < vpps_param_elems(p); i++) {
        const bool finite = isfinite(p->values[i]);
        if (finite && (w->options->precision != VPPS_C_BF16 || isfinite(vpps_bits_float(bf16_of(p->values[i]) << 16))))
            continue;
        return vpps_fail(VPPS_ARGUMENT, "parameter %s: element %zu is %g; expected a finite number%s", p->name, i,
                         (double)p->values[i], finite ? " of bf16's range" : "");
    }
    return VPPS_OK;
}

static vpps_status put_parameter(const vpps_c_writer *w, vpps_param i) {
    const vpps_parameter_data *p = &w->model->params[i];
    const bool matrix = p->kind == VPPS_MATRIX, scaled = p->kind != VPPS_VECTOR && w->options->precision == VPPS_C_INT8;
    const uint32_t rows = matrix ? p->rows : p->count;
    const size_t words = matrix ? p->cols : (size_t)p->rows * p->cols;
    float *scales = scaled ? calloc(rows + 1u, sizeof *scales) : NULL;
    if (scaled && !scales) return vpps_fail(VPPS_MEMORY, "parameter %s: out of memory", p->name);
    fputs("\n/* ", w->out);
    vpps_write_comment(w->out, p->name);
    if (p->kind == VPPS_LOOKUP) fprintf(w->out, ": %u entries of", p->count);
    fprintf(w->out, " %u x %u */\n", p->rows, p->cols);
    if (scaled) {
        array a = begin_array(w, "float", w->names[i], "_scale", rows);
        for (uint32_t r = 0; r < rows; r++) put_float(&a, scales[r] = scale_of(p->values + r * words, words));
        end_array(&a);
    }
    size_t elems = vpps_param_elems(p);
    if (matrix && w->options->precision == VPPS_C_BF16) elems = (p->rows + (size_t)1) / 2 * p->cols;
    array a = begin_array(w,
                          matrix                   ? "matrix_weight"
                          : p->kind == VPPS_VECTOR ? "float"
                                                   : "table_weight",
                          w->names[i], "", elems);
    (matrix ? put_matrix : put_values)(&a, p, scales);
    end_array(&a);
    free(scales);
    return VPPS_OK;
}

vpps_status vpps_c_write_weights(const vpps_c_writer *w) {
    static const char kind[] = "VPPSnet1"; /* the first bytes of a file of weights */
    FILE *f = w->options->weights;
    if (f) put_bytes(w, kind, sizeof kind - 1);
    for (vpps_param i = 0; i < w->model->n_params; i++) {
        if (!w->used[i]) continue;
        VPPS_TRY(check_values(w, &w->model->params[i]));
        VPPS_TRY(put_parameter(w, i));
    }
    if (f)
        fprintf(w->out, "#define WEIGHTS_BYTES %zuu\n#define WEIGHTS_HASH 0x%xu\n", w->beside->bytes, w->beside->hash);
    if (f && (fflush(f) != 0 || ferror(f)))
        return vpps_fail(VPPS_IO, "the weights cannot be written: %s", strerror(errno));
    return VPPS_OK;
}

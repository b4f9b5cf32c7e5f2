/* scalar.h - the language of the networks' equations: small vectors of doubles, passed by value, and a model's parameters by name. Shapes that do not
 * fit fail the check. */
#pragma once

#include "models.h"

/* ---------------------------------------------------------------- vectors */

enum { MOST_ELEMENTS = 24 };

typedef struct vec {
    uint32_t n;
    double at[MOST_ELEMENTS];
} vec;

vec zeros(uint32_t n);
vec concatenation(vec a, vec b);
double inner_product(vec a, vec b);

/* Elementwise. */
vec sum_of(vec x, vec y), product_of(vec x, vec y), quotient_of(vec x, vec y);
vec tanh_of(vec x), sigmoid_of(vec x), relu_of(vec x), elu_of(vec x), exp_of(vec x);
vec gelu_of(vec x); /* by erf */

vec slice_of(vec x, uint32_t first, uint32_t n);

/* ---------------------------------------------------------------- parameters */

enum { MOST_WEIGHTS = 128 };

/* Copies of all values, each in the order of vpps_param_values. */
typedef struct weights {
    vpps_model *model;
    uint32_t n;
    size_t elements[MOST_WEIGHTS];
    double *of[MOST_WEIGHTS];
} weights;

void weights_copy(weights *w, vpps_model *model);
void weights_free(weights *w);

vec vector(const weights *w, const char *name);
vec entry(const weights *w, const char *table, uint32_t id);

/* W x, b + W x, b + W x + U y. */
vec times(const weights *w, const char *W, vec x);
vec affine(const weights *w, const char *b, const char *W, vec x);
vec affine2(const weights *w, const char *b, const char *W, vec x, const char *U, vec y);

/* Returns the values of a parameter of this kind. */
const double *values_of(const weights *w, const char *name, vpps_param_kind kind, vpps_param_info *info);

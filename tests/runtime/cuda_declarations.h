/* cuda_declarations.h - tells whether these tests' compilation compared our declarations of CUDA and cuBLAS with the toolkit's. */
#pragma once

#include <stdbool.h>

extern const bool cuda_declarations_compared, cublas_declarations_compared;

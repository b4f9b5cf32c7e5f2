/* cuda_declarations.h - were our declarations of CUDA and cuBLAS compared with the toolkit's, when these tests were compiled? */
#pragma once

#include <stdbool.h>

extern const bool cuda_declarations_compared, cublas_declarations_compared;

/* cuda_declarations.h - were our declarations of CUDA and cuBLAS compared with the toolkit's, when these tests were compiled? */
#ifndef VPPS_TESTS_CUDA_DECLARATIONS_H
#define VPPS_TESTS_CUDA_DECLARATIONS_H

#include <stdbool.h>

extern const bool cuda_declarations_compared, cublas_declarations_compared;

#endif

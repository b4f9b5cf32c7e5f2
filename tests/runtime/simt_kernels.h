/* simt_kernels.h - the kernels that test_simt.c runs, as text, and the struct of their parameter. */
#pragma once

/* The parameter of all these kernels; ARGUMENTS is the same struct as text, the first line of each kernel. */
typedef struct vpps_arguments {
    unsigned long long in, out, counters;
    unsigned n, mode;
} vpps_arguments;
#define ARGUMENTS "struct vpps_arguments { unsigned long long in, out, counters; unsigned n, mode; };\n"

static const char vector_kernel[] =
    ARGUMENTS "extern \"C\" __global__ void __launch_bounds__(256, 1) vpps_kernel(const vpps_arguments a) {\n"
              "    const float *in = (const float *)a.in;\n"
              "    float *out = (float *)a.out;\n"
              "    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += gridDim.x * blockDim.x)\n"
              "        out[i] = in[i] + in[a.n - 1 - i];\n"
              "}\n";

static const char warp_kernel[] =
    ARGUMENTS "extern \"C\" __global__ void __launch_bounds__(64) vpps_kernel(const vpps_arguments a) {\n"
              "    const unsigned i = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x % 32;\n"
              "    float *out = (float *)a.out + 8 * i;\n"
              "    float x = ((const float *)a.in)[i], sum = x;\n"
              "    unsigned bits = __float_as_uint(x), all = bits;\n"
              "    for (int m = 16; m; m >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, m);\n"
              "    for (int m = 16; m; m >>= 1) all ^= __shfl_xor_sync(0xffffffffu, all, m);\n"
              "    __syncwarp();\n"
              "    out[0] = sum;\n"
              "    out[1] = __uint_as_float(all);\n"
              "    out[2] = __shfl_sync(0xffffffffu, x, 5);\n"
              "    out[3] = __uint_as_float(__ballot_sync(0xffffffffu, x > 0.0f));\n"
              "    if (lane < 16) { __syncwarp(0xffffu); out[4] = __shfl_xor_sync(0xffffu, x, 1); }\n"
              "    else out[4] = __shfl_xor_sync(0xffff0000u, x, 2);\n"
              "}\n";

/* Sums a CTA's values, which floats represent exactly, in a loop, by a dynamic and two static shared arrays. Sleeping lets other CTAs run while these
 * arrays are in use. */
static const char reduce_kernel[] =
    ARGUMENTS "struct box { unsigned cta; float sum; };\n"
              "__shared__ box vpps_box;\n"
              "__device__ __forceinline__ float vpps_sum(float x) {\n"
              "    __shared__ float parts[32];\n"
              "    VPPS_DYNAMIC_SHARED(all);\n"
              "    for (int m = 16; m; m >>= 1) x += __shfl_xor_sync(0xffffffffu, x, m);\n"
              "    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;\n"
              "    all[threadIdx.x] = x;\n"
              "    __syncthreads();\n"
              "    __nanosleep(10);\n"
              "    float sum = 0.0f;\n"
              "    for (unsigned w = 0; w < blockDim.x / 32; w++) sum += parts[w] + all[w * 32 + 7] - parts[w];\n"
              "    __syncthreads();\n"
              "    return sum;\n"
              "}\n"
              "extern \"C\" __global__ void vpps_kernel(const vpps_arguments a) {\n"
              "    float *out = (float *)a.out + blockIdx.x * blockDim.x + threadIdx.x;\n"
              "    if (threadIdx.x == 0) vpps_box.cta = blockIdx.x;\n"
              "    __syncthreads();\n"
              "    for (unsigned round = 0; round < a.n; round++) {\n"
              "        const float sum = vpps_sum((float)(vpps_box.cta + threadIdx.x * round));\n"
              "        if (threadIdx.x == round % blockDim.x) vpps_box.sum = sum;\n"
              "        __syncthreads();\n"
              "        *out += vpps_box.sum;\n"
              "        __syncthreads();\n"
              "    }\n"
              "}\n";

/* In each phase a CTA adds the number that its left neighbour had after the preceding phase; between phases all CTAs wait for all. Mode 1: one CTA
 * does not signal once. */
static const char signal_kernel[] = ARGUMENTS
    "extern \"C\" __global__ void vpps_kernel(const vpps_arguments a) {\n"
    "    float *out = (float *)a.out;\n"
    "    unsigned *counters = (unsigned *)a.counters;\n"
    "    const unsigned left = (blockIdx.x + gridDim.x - 1) % gridDim.x, width = gridDim.x;\n"
    "    out[blockIdx.x] = (float)(blockIdx.x + 1);\n"
    "    for (unsigned phase = 0; phase < a.n; phase++) {\n"
    "        __syncthreads();\n"
    "        if (threadIdx.x == 0 && !(a.mode == 1 && phase == 2 && blockIdx.x == 3))\n"
    "            VPPS_RELEASE_ADD(counters + phase, 1u);\n"
    "        if (threadIdx.x == 0)\n"
    "            while (VPPS_ACQUIRE_LOAD(counters + phase) < gridDim.x) __nanosleep(20);\n"
    "        __syncthreads();\n"
    "        if (threadIdx.x == 0)\n"
    "            out[(phase + 1) * width + blockIdx.x] = out[phase * width + blockIdx.x] + out[phase * width + left];\n"
    "    }\n"
    "    if (VPPS_GLOBAL_TIMER() == 0) out[0] = 0.0f;\n"
    "}\n";

static const char builtin_kernel[] = ARGUMENTS
    "__constant__ const unsigned vpps_table[2] = {3, 5};\n"
    "template <int N> __device__ __noinline__ float vpps_scaled(float x) { return x * N; }\n"
    "extern \"C\" __global__ void vpps_kernel(const vpps_arguments a) {\n"
    "    __shared__ float vpps_unwritten[4];\n"
    "    VPPS_DYNAMIC_SHARED(vpps_dynamic);\n"
    "    float *out = (float *)a.out;\n"
    "    unsigned *counters = (unsigned *)a.counters;\n"
    "    const float x = ((const float *)a.in)[threadIdx.x];\n"
    "    atomicAdd(counters, threadIdx.x);\n"
    "    if (atomicCAS(counters + 1, 0u, threadIdx.x + 1) == 0) atomicAdd(counters + 2, 1u);\n"
    "    if (threadIdx.x) return;\n"
    "    const float results[] = {fmaf(x, x, 1.0f), expf(x), logf(x * x), sqrtf(x * x), fabsf(x), fmaxf(x, 0.25f),\n"
    "        copysignf(2.0f, x), __fdividef(x, 4.0f), isfinite(__uint_as_float(0x7f800000)) ? 1.0f : 0.0f,\n"
    "        vpps_unwritten[3] != vpps_unwritten[3] ? 1.0f : 0.0f, vpps_dynamic[5] != vpps_dynamic[5] ? 1.0f : 0.0f,\n"
    "        vpps_scaled<3>(x), (float)vpps_table[1]};\n"
    "    for (unsigned i = 0; i < sizeof results / 4; i++) out[i] = results[i];\n"
    "    const unsigned words[] = {__umulhi(0x80000001u, 6u), (unsigned)__popc(0xf0f0u), __float_as_uint(1.0f)};\n"
    "    for (unsigned i = 0; i < sizeof words / 4; i++) counters[200 + i] = words[i];\n"
    "}\n";

/* Reads what another warp has written; mode 1: without a barrier in between. */
static const char race_kernel[] =
    ARGUMENTS "extern \"C\" __global__ void vpps_kernel(const vpps_arguments a) {\n"
              "    __shared__ float vpps_values[128];\n"
              "    for (unsigned round = 0; round < 4; round++) {\n"
              "        vpps_values[threadIdx.x] = (float)(threadIdx.x + round);\n"
              "        if (a.mode == 0) __syncthreads();\n"
              "        ((float *)a.out)[round * 128 + threadIdx.x] = vpps_values[(threadIdx.x + 127) % 128];\n"
              "        __syncthreads();\n"
              "    }\n"
              "}\n";

/* Rounds of writes and reads, with barriers of the CTA and of warps between them. Each mode but 0 makes one error. */
static const char watched_kernel[] =
    ARGUMENTS "extern \"C\" __global__ void vpps_kernel(const vpps_arguments a) {\n"
              "    VPPS_DYNAMIC_SHARED(all);\n"
              "    __shared__ float once;\n"
              "    float *out = (float *)a.out;\n"
              "    struct row { float x[16]; };\n"
              "    const unsigned i = threadIdx.x;\n"
              "    for (unsigned round = 0; round < 3; round++) {\n"
              "        all[i] = (float)i;\n"
              "        if (a.mode != 1) __syncthreads();\n" /* line 10: reads another warp's word */
              "        out[i] = all[(i + 32) % 64];\n"
              "        __syncthreads();\n" /* line 12 */
              "        if (i == 63) all[i] = 1.0f;\n"
              "        if (a.mode != 2) __syncwarp();\n" /* another lane's */
              "        if (i > 61) out[64 + i] = all[63];\n"
              "        __syncthreads();\n"                         /* line 16 */
              "        if (a.mode == 3 || i == 40) once = 1.0f;\n" /* written by all */
              "        if (a.mode == 4) out[i] = once;\n"          /* all threads read the word while one writes */
              "        __syncthreads();\n"                         /* line 19 */
              "        out[128 + i] = once;\n"
              "        if (a.mode == 5 && i == 9) all[64] = once;\n"       /* beyond the CTA's shared memory */
              "        if (a.mode == 6 && i == 9) out[0] += out[-1];\n"    /* before the device's */
              "        if (a.mode == 7 && i == 9) out[192] = once;\n"      /* after it */
              "        if (a.mode == 8 && i == 9) out[0] = *(float *)8;\n" /* nowhere */
              "        __syncthreads();\n"                                 /* line 25 */
              "        if (i == 33 && a.mode == 9) *(row *)(all + 8) = row();\n"
              "        if (i == 33 && a.mode != 9) *(row *)(all + 8) = *(row *)(out + 8);\n"
              "        if (a.mode == 9 || a.mode == 10) all[i] = 1.0f;\n" /* writes to a row that another CTA writes */
              "        if (a.mode == 11) out[i] = 1.0f;\n"                /* writes to a row that another CTA reads */
              "        __syncthreads();\n"
              "    }\n"
              "}\n";

static const char divergent_kernel[] = ARGUMENTS
    "extern \"C\" __global__ void vpps_kernel(const vpps_arguments a) {\n"
    "    float *out = (float *)a.out;\n"
    "    if (blockIdx.x == 1) {\n"
    "        if (a.mode == 1 && threadIdx.x < 40) __syncthreads();\n" /* line 5; the other threads wait in line 15 */
    "        if (a.mode == 2) {\n"
    "            if (threadIdx.x < 32)\n"
    "                __syncthreads();\n" /* line 8 */
    "            else\n"
    "                __syncthreads();\n" /* line 10 */
    "        }\n"
    "        if (a.mode == 3 && threadIdx.x < 5) __syncwarp();\n" /* line 12; the other lanes wait in line 15 */
    "        if (a.mode == 4 && threadIdx.x >= 40) return;\n"
    "    }\n"
    "    __syncthreads();\n"
    "    out[blockIdx.x * 64 + threadIdx.x] = 1.0f;\n"
    "}\n";

static const char mask_kernel[] =
    ARGUMENTS "extern \"C\" __global__ void vpps_kernel(const vpps_arguments a) {\n"
              "    const unsigned lane = threadIdx.x % 32;\n"
              "    float x = 1.0f;\n"
              "    if (a.mode == 1) x = __shfl_xor_sync(0xffffu, x, 1);\n"               /* line 5 */
              "    if (a.mode == 2 && lane < 16) x = __shfl_xor_sync(0xffffu, x, 16);\n" /* line 6 */
              "    if (a.mode == 3) { if (lane < 16)\n"
              "        x = __shfl_xor_sync(0xffffffffu, x, 1);\n" /* line 8 */
              "    else\n"
              "        x = __shfl_xor_sync(0xffffffffu, x, 1); }\n" /* line 10 */
              "    if (a.mode == 4 && lane == 3) return;\n"
              "    if (a.mode == 4) x = __ballot_sync(0xffffffffu, 1);\n" /* line 12 */
              "    ((float *)a.out)[threadIdx.x] = x;\n"
              "}\n";

/* Who comes when. */
static const char order_kernel[] =
    ARGUMENTS "extern \"C\" __global__ void vpps_kernel(const vpps_arguments a) {\n"
              "    const unsigned place = atomicAdd((unsigned *)a.counters, 1u);\n"
              "    ((float *)a.out)[place] = (float)(blockIdx.x * blockDim.x + threadIdx.x);\n"
              "}\n";

// gpu_launch.cu - what launches cost beside their kernel: microseconds an iteration, by what goes with a launch.
//
//     nvcc -O2 -arch=sm_90 -cudart static bench/gpu_launch.cu -o gpu_launch && ./gpu_launch
//
// A kernel of one CTA an SM that waits for a number of cycles, launched again and again: queued, or waited for each time. Every
// line is the median, lowest and highest of 5 repeats, and the host's part of it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cuda_runtime.h>
#include <vector>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const cudaError_t code_ = (call);                                                                              \
        if (code_ != cudaSuccess) {                                                                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(code_));                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { THREADS = 256, SHARED = 200 * 1024, ROOM = 1 << 20, SMALL = 4096, LARGE = 65536, REPEATS = 5 };

// What goes with a launch.
enum {
    PLAIN = 0,
    COOPERATIVE = 1,
    UPLOAD = 2,   // a copy to the device: from pinned memory, in the same stream
    BIG = 4,      // of 64 KiB, not 4
    PAGEABLE = 8, // from memory that is not pinned
    OTHER = 16,   // by a stream of its own, which the launch waits for
    CLEAR = 32,   // a memset
    CLOCKS = 64,  // events that take the time, before and after
    MARK = 128,   // an event that does not, after
    FETCH = 256,  // a copy of 64 bytes to pinned memory, after
    MAPPED = 512, // the kernel reads pinned memory
    FLAG = 1024,  // the kernel writes to it, at its end
    WAIT = 2048,  // the host waits, for the flag or for the stream, and then copies 64 bytes
};

static const struct {
    const char *name;
    int with;
} cases[] = {
    {"plain launch", PLAIN},
    {"cooperative launch", COOPERATIVE},
    {"+ copy to the device, 4 KiB", COOPERATIVE | UPLOAD},
    {"+ copy to the device, 64 KiB", COOPERATIVE | UPLOAD | BIG},
    {"+ copy of 4 KiB that is not pinned", COOPERATIVE | UPLOAD | PAGEABLE},
    {"+ copy of 4 KiB by another stream", COOPERATIVE | UPLOAD | OTHER},
    {"+ copy of 64 KiB by another stream", COOPERATIVE | UPLOAD | OTHER | BIG},
    {"+ memset", COOPERATIVE | CLEAR},
    {"+ two events that time", COOPERATIVE | CLOCKS},
    {"+ an event without timing", COOPERATIVE | MARK},
    {"+ copy of 64 bytes to the host", COOPERATIVE | FETCH},
    {"+ kernel reads the host's memory", COOPERATIVE | MAPPED},
    {"copy, memset, events that time, copy back", COOPERATIVE | UPLOAD | CLEAR | CLOCKS | FETCH},
    {"copy by another stream, kernel writes to the host", COOPERATIVE | UPLOAD | OTHER | FLAG},
    {"waited for: copy, memset, events that time, copy back", COOPERATIVE | UPLOAD | CLEAR | CLOCKS | WAIT},
    {"waited for: copy, kernel writes to the host", COOPERATIVE | UPLOAD | FLAG | WAIT},
};

static __global__ void __launch_bounds__(THREADS, 1)
    spin(unsigned cycles, const unsigned *script, unsigned *out, volatile unsigned *flag, unsigned value) {
    const long long begin = clock64();
    const unsigned word = script[threadIdx.x];
    while (clock64() - begin < cycles) {}
    if (threadIdx.x || blockIdx.x) return;
    out[0] = word + value;
    if (!flag) return;
    __threadfence_system();
    *flag = value;
}

static double now_us() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

struct bench {
    cudaStream_t stream, other;
    cudaEvent_t begin, end, mark;
    char *device, *pinned, *pageable;
    unsigned *out, *told; // on the device, in pinned memory
    int sms;
};

static void launch(const bench &b, int with, unsigned cycles, unsigned value) {
    const size_t bytes = with & BIG ? LARGE : SMALL;
    const char *from = with & PAGEABLE ? b.pageable : b.pinned;
    const unsigned *script = (const unsigned *)(with & MAPPED ? b.pinned : b.device);
    unsigned *out = b.out, *flag = with & FLAG ? b.told : nullptr;
    void *arguments[] = {&cycles, &script, &out, &flag, &value};
    if (with & UPLOAD)
        TRY(cudaMemcpyAsync(b.device, from, bytes, cudaMemcpyHostToDevice, with & OTHER ? b.other : b.stream));
    if (with & OTHER) {
        TRY(cudaEventRecord(b.mark, b.other));
        TRY(cudaStreamWaitEvent(b.stream, b.mark, 0));
    }
    if (with & CLEAR) TRY(cudaMemsetAsync(b.device + ROOM / 2, 0, SMALL, b.stream));
    if (with & CLOCKS) TRY(cudaEventRecord(b.begin, b.stream));
    if (with & COOPERATIVE)
        TRY(cudaLaunchCooperativeKernel((void *)spin, b.sms, THREADS, arguments, SHARED, b.stream));
    else
        TRY(cudaLaunchKernel((void *)spin, b.sms, THREADS, arguments, SHARED, b.stream));
    if (with & CLOCKS) TRY(cudaEventRecord(b.end, b.stream));
    if (with & MARK) TRY(cudaEventRecord(b.mark, b.stream));
    if (with & FETCH) TRY(cudaMemcpyAsync(b.told + 16, b.out, 64, cudaMemcpyDeviceToHost, b.stream));
}

static void wait(const bench &b, int with, unsigned value) {
    char got[64];
    if (with & FLAG) {
        while (*(volatile unsigned *)b.told != value) {}
        return;
    }
    while (cudaStreamQuery(b.stream) == cudaErrorNotReady) {}
    TRY(cudaMemcpyAsync(got, b.out, sizeof got, cudaMemcpyDeviceToHost, b.stream));
    while (cudaStreamQuery(b.stream) == cudaErrorNotReady) {}
}

static void measure(const bench &b, const char *name, int with, unsigned cycles) {
    const int n = cycles ? 300 : 1000;
    std::vector<double> wall, host;
    for (unsigned repeat = 0, value = 0; repeat < REPEATS; repeat++) {
        double spent = 0;
        TRY(cudaDeviceSynchronize());
        const double begin = now_us();
        for (int i = 0; i < n; i++) {
            const double before = now_us();
            launch(b, with, cycles, ++value);
            spent += now_us() - before;
            if (with & WAIT) wait(b, with, value);
        }
        TRY(cudaDeviceSynchronize());
        wall.push_back((now_us() - begin) / n);
        host.push_back(spent / n);
    }
    std::sort(wall.begin(), wall.end());
    std::sort(host.begin(), host.end());
    printf("%6u cycles  %-54s %7.2f us (%.2f to %.2f), host %.2f\n", cycles, name, wall[REPEATS / 2], wall[0],
           wall[REPEATS - 1], host[REPEATS / 2]);
}

int main() {
    bench b;
    TRY(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking));
    TRY(cudaStreamCreateWithFlags(&b.other, cudaStreamNonBlocking));
    TRY(cudaEventCreate(&b.begin));
    TRY(cudaEventCreate(&b.end));
    TRY(cudaEventCreateWithFlags(&b.mark, cudaEventDisableTiming));
    TRY(cudaMalloc(&b.device, ROOM));
    TRY(cudaMalloc(&b.out, SMALL));
    TRY(cudaHostAlloc(&b.pinned, ROOM, cudaHostAllocMapped));
    TRY(cudaHostAlloc(&b.told, SMALL, cudaHostAllocMapped));
    b.pageable = (char *)malloc(ROOM);
    memset(b.pageable, 1, ROOM);
    memset(b.pinned, 1, ROOM);
    memset(b.told, 0, SMALL);
    TRY(cudaDeviceGetAttribute(&b.sms, cudaDevAttrMultiProcessorCount, 0));
    TRY(cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
    for (const double begin = now_us(); now_us() - begin < 1e6;) { // an idle GPU's clock is low
        launch(b, COOPERATIVE, 100000, 0);
        TRY(cudaStreamSynchronize(b.stream));
    }
    for (unsigned cycles : {0u, 90000u})
        for (const auto &c : cases) measure(b, c.name, c.with, cycles);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// record_probe.cu - a program for `swsim record` on a GPU: kernels of a known time, copies and a graph, over some seconds, so
// that the clocks are tied again. Compiled with the shared runtime (nvcc --cudart=shared) where it runs.
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error_));                   \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

__global__ void spin(long long time_ns, int *out)
{
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < (unsigned long long)time_ns);
    *out = (int)now;
}

int main()
{
    const int times = 100, bytes = 1 << 20;
    int *device, *host;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaMalloc(&device, bytes));
    CHECK(cudaMallocHost(&host, bytes));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < times; i++) {
        CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
        spin<<<1, 1, 0, stream>>>(20000000, device);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
    }
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    spin<<<1, 1, 0, stream>>>(1000000, device);
    CHECK(cudaMemsetAsync(device, 0, bytes, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < times; i++)
        CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaFreeHost(host));
    CHECK(cudaFree(device));
    return 0;
}

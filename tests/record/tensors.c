/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors.c - `tensors N` for `swsim record --device=none`: N tensors beside each other, which come and go in an order of their own, each
 * used by a second stream and held for it; then one tensor over the memory of all of them, which is used N times; and all
 * of that once more. The tensors are told as PyTorch tells its profiler of them. `tensors N streams`: as many streams, each of
 * which uses a tensor of its own and is used again when all have been made.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "trace/record/recorder/swsim_ops.h"

enum { BYTES = 512, STEP = 7919 };

struct device {
    int8_t type, index;
};

static struct {
    uint32_t (*text)(const char *);
    void (*op)(const void *, uint32_t, const struct swsim_access *, size_t);
    void (*tell)(void *, int64_t, size_t, size_t, struct device);
    int (*alloc)(void **, size_t), (*make_stream)(void **, unsigned), (*make_event)(void **);
    int (*record)(void *, void *), (*await)(void *, void *, unsigned), (*query)(void *);
    int (*sync_stream)(void *), (*sync)(void);
} call;

static char *memory;
static void **streams, *between;

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    CHECK(found ? 0 : 1);
    return found;
}

static void find_all(void)
{
    void *self = dlopen(NULL, RTLD_NOW), *cuda = dlopen("libcudart.so.13", RTLD_NOW);
    *(void **)&call.text = find(self, "swsim_text");
    *(void **)&call.op = find(self, "swsim_op");
    *(void **)&call.tell = find(self, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
    *(void **)&call.alloc = find(cuda, "cudaMalloc");
    *(void **)&call.make_stream = find(cuda, "cudaStreamCreateWithFlags");
    *(void **)&call.make_event = find(cuda, "cudaEventCreate");
    *(void **)&call.record = find(cuda, "cudaEventRecord");
    *(void **)&call.await = find(cuda, "cudaStreamWaitEvent");
    *(void **)&call.query = find(cuda, "cudaEventQuery");
    *(void **)&call.sync_stream = find(cuda, "cudaStreamSynchronize");
    *(void **)&call.sync = find(cuda, "cudaDeviceSynchronize");
}

static void tell(int place, int count, int sign)
{
    const struct device device = {1, 0};
    call.tell(memory + place * BYTES, (int64_t)sign * count * BYTES, 0, 0, device);
}

static void use(int place, int count, int stream, uint64_t write)
{
    const struct swsim_access access = {(uint64_t)(uintptr_t)(memory + place * BYTES),
                                        (uint64_t)(count * BYTES) | write};
    call.op(streams[stream], call.text("work"), &access, 1);
}

static void order(int from, int to)
{
    CHECK(call.record(between, streams[from]));
    CHECK(call.await(streams[to], between, 0));
}

static void pass(int count, void **held)
{
    for (int i = 0; i < count; i++) {
        const int place = (int)((int64_t)i * STEP % count);
        tell(place, 1, 1);
        use(place, 1, 0, SWSIM_OPS_WRITE);
    }
    order(0, 1);
    for (int i = 0; i < count; i++)
        use(i, 1, 1, 0);
    for (int i = 0; i < count; i++) {
        CHECK(call.record(held[i], streams[1]));
        tell(count - 1 - i, 1, -1);
    }
    CHECK(call.sync_stream(streams[1]));
    for (int i = 0; i < count; i++)
        CHECK(call.query(held[i]));
    tell(0, count, 1);
    for (int i = 0; i < count; i++)
        use(0, count, 0, SWSIM_OPS_WRITE);
    tell(0, count, -1);
}

static void use_streams(int count)
{
    for (int i = 0; i < count; i++)
        use(i, 1, i, SWSIM_OPS_WRITE);
}

int main(int argc, char **argv)
{
    const int count = argc > 1 ? atoi(argv[1]) : 0;
    void **held = calloc((size_t)count + 1, sizeof *held);
    const bool many = argc > 2 && strcmp(argv[2], "streams") == 0;
    const int stream_count = many ? count : 2;
    streams = calloc((size_t)stream_count, sizeof *streams);
    CHECK(held && streams && count % STEP ? 0 : 1);
    find_all();
    CHECK(call.alloc((void **)&memory, (size_t)count * BYTES));
    for (int s = 0; s < stream_count; s++)
        CHECK(call.make_stream(&streams[s], 1));
    CHECK(call.make_event(&between));
    for (int i = 0; i < count; i++)
        CHECK(call.make_event(&held[i]));
    for (int i = 0; i < 2; i++)
        if (many)
            use_streams(count);
        else
            pass(count, held);
    CHECK(call.sync());
    free(held);
    free(streams);
    return 0;
}

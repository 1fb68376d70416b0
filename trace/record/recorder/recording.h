/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording.h - the file that the recorder writes and import reads: what one process called, thread by thread.
 *
 * A file is a row of chunks of RECORDING_CHUNK bytes. Each has a head and belongs to one thread; its items fill it
 * from the head on, `used` bytes of it. The chunks of a thread are numbered. A chunk is memory of the file, so what
 * was written is there however the process ends. Numbers are of the machine's own byte order.
 *
 * An item is a call that went well, written when it returned: a head and words. One of NCCL, which may wait for other
 * ranks, is written when it begins, and may never have returned (took_ns). A query went well if it was answered; behind
 * one whose answer was no, the same answer to the same thread is left out: for an event, until it is recorded again; for
 * a stream, until the thread writes something else but such answers. Handles and addresses are those of the process. A stream is its handle; 1 is the legacy default stream of the thread's device, 2 that of the thread
 * (cudaStreamLegacy, cudaStreamPerThread). Times are CLOCK_MONOTONIC, in ns.
 */
#ifndef SWSIM_RECORDING_H
#define SWSIM_RECORDING_H

#include <stdint.h>

#define RECORDING_CUT   ".cut" /* in the folder of the files: some calls could not be written */
#define RECORDING_MAGIC "swsim recording" /* with its end 16 bytes */
enum { RECORDING_VERSION = 9, RECORDING_CHUNK = 1 << 18, RECORDING_MAX_WORDS = 512 };
enum { RECORDING_LOCKS = 1 << 16 }; /* the largest number of a lock */

struct recording_chunk {
    char magic[16];
    uint32_t version, thread;
    uint64_t number; /* of the thread's chunks */
    uint64_t used;   /* bytes of items behind this head */
};

struct recording_item {
    uint16_t kind, words; /* enum recording_kind; of 8 bytes */
    uint32_t took_ns;     /* UINT32_MAX: as long or longer, or it has not returned */
    int64_t at_ns;
    uint64_t word[];
};

/*    NAME, how many words at least, words */
#define RECORDING_LIST(X)                                                                          \
    X(NONE, 0, "a call that failed")                                                               \
    X(PROCESS, 4,                                                                                  \
      "pid, rank + 1, size, time of day at at_ns in ns (0: not told), are there items TOUCH?")     \
    X(THREAD, 1, "number of the system")                                                           \
    X(TEXT, 2, "number, characters: names that other items have")                                  \
    X(AFTER, 4,                                                                                    \
      "thread, count, way (enum recording_way), object by which it is the n-th time, of a lock "   \
      "the lock, or 0: all of this thread comes after that many items of the other")               \
    X(SEVERAL, 1, "object: several threads let others go on by it, so which comes n-th is luck")   \
    X(LOCK, 2,                                                                                     \
      "lock, may others have it at once? the thread has it, from before its next item on")         \
    X(UNLOCK, 1, "lock")                                                                           \
    X(SIGNAL, 1, "lock: those that take it from now on know what this thread has done")            \
    X(END, 0, "the process ended by itself")                                                       \
    X(UNSEEN, 1, "text: a library whose calls cannot be seen")                                     \
    X(DEVICE, 1, "device: the thread's own from now on")                                           \
    X(STREAM, 2, "stream, flags")                                                                  \
    X(STREAM_END, 1, "stream")                                                                     \
    X(EVENT, 2, "event, flags")                                                                    \
    X(EVENT_END, 1, "event")                                                                       \
    X(RECORD, 3, "event, stream, flags")                                                           \
    X(WAIT, 3, "stream, event, flags")                                                             \
    X(SYNC_STREAM, 1, "stream")                                                                    \
    X(SYNC_EVENT, 1, "event")                                                                      \
    X(QUERY_STREAM, 2, "is it idle?, stream")                                                      \
    X(QUERY_EVENT, 2, "is it done?, event; more events: are all of them?")                         \
    X(SYNC_DEVICE, 0, "")                                                                          \
    X(KERNEL, 3, "number, text, is its every argument known?")                                     \
    X(LAUNCH, 2,                                                                                   \
      "stream, kernel, addresses; RECORDING_WRITE: may be written; RECORDING_POINTER: it is one")  \
    X(COPY, 6, "stream, to, from, bytes, direction as cudaMemcpyKind, does the host wait?")        \
    X(COPY_2D, 9,                                                                                  \
      "stream, to, its pitch, from, its pitch, width, height, direction, does the host wait?; of " \
      "several slices: bytes from one to the next, of both ends, and their number")                \
    X(FILL, 5, "stream, to, pitch, width, height; bytes from slice to slice, their number")        \
    X(ALLOC, 3, "address, bytes, enum recording_memory")                                           \
    X(ALLOC_ASYNC, 3, "address, bytes, stream")                                                    \
    X(FREE, 2, "address, enum recording_memory")                                                   \
    X(FREE_ASYNC, 2, "address, stream")                                                            \
    X(PHYSICAL, 4, "handle, bytes, enum recording_memory, device: memory without an address")      \
    X(PHYSICAL_KEPT, 1, "handle: it has one more end")                                             \
    X(PHYSICAL_END, 1, "handle")                                                                   \
    X(MAP, 4, "address, bytes, handle, offset")                                                    \
    X(UNMAP, 2, "address, bytes: of whole mappings")                                               \
    X(WRITE_VALUE, 5, "stream, address, bytes, value, CUstreamWriteValue_flags")                   \
    X(WAIT_VALUE, 5, "stream, address, bytes, value, CUstreamWaitValue_flags")                     \
    X(HOST_CALL, 2, "stream, number")                                                              \
    X(HOST_BEGIN, 1, "number: this thread executes the function")                                  \
    X(HOST_END, 1, "number")                                                                       \
    X(CAPTURE, 1, "stream; into a graph: that, of its nodes those in front")                       \
    X(CAPTURE_END, 2, "stream, graph")                                                             \
    X(GRAPH, 2, "executable, graph: it is made of that, or becomes that")                          \
    X(GRAPH_LAUNCH, 2, "executable, stream")                                                       \
    X(COMM, 5, "communicator, id, id, rank, size")                                                 \
    X(COMM_END, 1, "communicator")                                                                 \
    X(COLLECTIVE, 9,                                                                               \
      "communicator, stream, enum recording_collective, from, to, count, type, operation, root")   \
    X(MESSAGE, 7, "communicator, stream, is it sent?, address, count, type, peer")                 \
    X(GROUP, 0, "")                                                                                \
    X(GROUP_END, 0, "is it only simulated?")                                                       \
    X(TOUCH, 3,                                                                                    \
      "address, enum recording_touch, has the program more threads?: the host's first access "     \
      "since the device's, or to be read and then to be written")                                  \
    X(NO_TIMES, 1, "text: why device operations have no measured times")                           \
    X(PUSH, 1, "number of the call that is the thread's next item")                                \
    X(PUSHED_AS, 2, "number of a call, correlation: one of those that CUPTI gives a call")         \
    X(DEVICE_OP, 7,                                                                                \
      "correlation of its push, enum recording_operation, device and stream as CUPTI numbers "     \
      "them, start, end in ns of CUPTI's clock (0: not known), node of a graph (0: none)")         \
    X(CLOCK, 3, "ns of CUPTI's clock, CLOCK_MONOTONIC then, how long both readings took")          \
    X(RESET, 0, "the thread's device gives back all that it has")                                  \
    X(LOST, 1, "records that CUPTI had no room for")                                               \
    X(UNMODELLED, 1,                                                                               \
      "characters: the name of what was called; it orders work or touches memory, and no item "    \
      "says how")                                                                                  \
    X(COPY_BATCH, 1,                                                                               \
      "stream; to, from, bytes of each copy: they come in the stream's order, and in none among "  \
      "themselves")                                                                                \
    X(WHERE, 1, "text: the line that the thread's calls come from, from now on; 0: not known")     \
    X(OPERATOR, 2,                                                                                 \
      "stream, text; address and bytes of each access, RECORDING_WRITE in the bytes: what an "     \
      "operation of the program does, whose kernels are no items")                                 \
    X(TENSOR, 5,                                                                                   \
      "address, bytes, device, bytes that the allocator of PyTorch has of the device by now, "     \
      "text "                                                                                      \
      "of the operator that allocates it, 0: none does. Memory of a tensor, a part of that of "    \
      "ALLOC")                                                                                     \
    X(TENSOR_END, 1, "address: the program has no tensor there any more")                          \
    X(TENSOR_REFUSED, 2, "bytes, device: the allocator has no memory for a tensor")                \
    X(WORK, 2, "operations with numbers, enum recording_rate: of the thread's next OPERATOR")      \
    X(STEP, 0, "an optimizer's step is over")                                                      \
    X(TENSORS_ARE, 1, "enum recording_tensor; addresses in tensors, which are that")

enum recording_kind {
#define X(name, ...) RECORDING_##name,
    RECORDING_LIST(X)
#undef X
        RECORDING_KINDS
};

/* How a thread came to know of another one's items. */
enum recording_way {
    RECORDING_WAITED,
    RECORDING_LOCKED,  /* the two might have taken the lock the other way round */
    RECORDING_IN_TIME, /* by a call that may give up, as one that only tries, or with a time limit */
    RECORDING_POLLED /* by a lock that it took again and again, and paused, until the other had had it */
};

enum recording_operation {
    RECORDING_OPERATION_KERNEL,
    RECORDING_OPERATION_COPY,
    RECORDING_OPERATION_FILL
};

enum recording_memory {
    RECORDING_MEMORY_DEVICE,
    RECORDING_MEMORY_PINNED,
    RECORDING_MEMORY_MANAGED,
    RECORDING_MEMORY_REGISTERED /* the program's own memory, which cudaHostRegister pins */
};

/*    NAME, function of NCCL */
#define RECORDING_COLLECTIVE_LIST(X)                                                               \
    X(ALL_REDUCE, ncclAllReduce)                                                                   \
    X(BROADCAST, ncclBroadcast)                                                                    \
    X(REDUCE, ncclReduce)                                                                          \
    X(ALL_GATHER, ncclAllGather)                                                                   \
    X(REDUCE_SCATTER, ncclReduceScatter)                                                           \
    X(ALL_TO_ALL, ncclAlltoAll)                                                                    \
    X(GATHER, ncclGather)                                                                          \
    X(SCATTER, ncclScatter)

enum recording_collective {
#define X(name, function) RECORDING_##name,
    RECORDING_COLLECTIVE_LIST(X)
#undef X
        RECORDING_COLLECTIVES
};

/* The numbers that work computes with: GPUs have a rate for each. */
enum recording_rate {
    RECORDING_RATE_F64,
    RECORDING_RATE_F32,
    RECORDING_RATE_TF32,
    RECORDING_RATE_F16,
    RECORDING_RATE_F8,
    RECORDING_RATES
};

/* What a tensor is for. */
enum recording_tensor {
    RECORDING_TENSOR_PARAMETER,
    RECORDING_TENSOR_GRADIENT,  /* of a parameter */
    RECORDING_TENSOR_OPTIMIZER, /* what an optimizer keeps */
    RECORDING_TENSOR_FORWARD,   /* an operator's result, but for the following */
    RECORDING_TENSOR_BACKWARD,  /* the same in a backward pass */
    RECORDING_TENSOR_STEP,      /* the same in an optimizer's step */
    RECORDING_TENSORS
};

enum recording_touch {
    RECORDING_TOUCH_READ,
    RECORDING_TOUCH_WRITE,
    RECORDING_TOUCH_UNSEEN /* later ones may not be seen */
};

/* In an address of LAUNCH; no address of a process has the bits. Without POINTER it is a word of a struct, which
   looks like an address. */
#define RECORDING_WRITE   (UINT64_C(1) << 63)
#define RECORDING_POINTER (UINT64_C(1) << 62)

#endif

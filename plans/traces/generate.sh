#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# generate.sh FOLDER - what PyTorch's profiler records of a recommender on two ranks, three steps of it: rank0.json and
# rank1.json in FOLDER. It is plans/traces/recommender, on which README.md shows what a trace is good for.
#
# The times follow the rules of streams: work begins when it has been launched, when the work before it on its stream
# and the events that it waits for are over; a collective when all ranks have begun it. Rank 1 has the longer bags.
set -eu
folder=${1:?usage: generate.sh FOLDER}
mkdir -p "$folder"
exec awk -v folder="$folder" '
function event(r, text)
{
    printf("%s%s\n", events[r]++ ? "," : "", text) >(folder "/rank" r ".json")
}
function row(cat, name, pid, tid, start, end, args)
{
    return sprintf("{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, \"args\": {%s}}",
        cat, name, pid, tid, start, end - start, args)
}
# A call of rank r that takes `time`; returns its correlation id.
function call(r, name, time)
{
    id[r]++
    event(r, row("cuda_runtime", name, 100 + r, 100 + r, host[r], host[r] + time, "\"correlation\": " id[r]))
    host[r] += time
    return id[r]
}
function latest(a, b) { return a > b ? a : b }
# Work that rank r has just launched on stream s, from `start` to `end`.
function work(r, cat, name, s, start, end, args)
{
    event(r, row(cat, name, r, s, start, end, sprintf("\"device\": %d, \"stream\": %d, \"correlation\": %d%s", r, s, id[r], args)))
    free[r, s] = end
}
# When work can begin that rank r launches now on stream s, behind the work of stream `other` (0: of none).
function ready(r, s, other,    start)
{
    if (other) {
        call(r, "cudaEventRecord", 1)
        call(r, "cudaStreamWaitEvent", 1)
    }
    start = latest(host[r] + 7, free[r, s] + 1)
    return other ? latest(start, free[r, other] + 2) : start
}
function kernel(r, name, s, time, other,    start)
{
    start = ready(r, s, other)
    call(r, "cudaLaunchKernel", 5)
    work(r, "kernel", name, s, start, start + time * drift, "")
    host[r] += 3
}
function copy(r, time, bytes,    start)
{
    start = ready(r, 20, 0)
    call(r, "cudaMemcpyAsync", 8)
    work(r, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 20, start, start + time * drift, ", \"bytes\": " bytes)
}
# All ranks together, behind their streams `other`.
function collective(name, time, other,    r, start, last)
{
    last = 0
    for (r = 0; r < ranks; r++) {
        start[r] = ready(r, 24, other)
        call(r, "cudaLaunchKernel", 6)
        last = latest(last, start[r])
        host[r] += 4
    }
    for (r = 0; r < ranks; r++)
        work(r, "kernel", name, 24, start[r], last + time * drift, ", \"Process Group Name\": \"world\"")
}
# What rank r has called since its last section is one more, with a name: record_function of PyTorch.
function section(r, name)
{
    event(r, row("user_annotation", name, 100 + r, 100 + r, since[r], host[r], ""))
    since[r] = host[r]
}
function step(number,    r, begin)
{
    for (r = 0; r < ranks; r++) {
        begin[r] = host[r]
        since[r] = host[r] += 40
        copy(r, 180, 1048576)
        section(r, "copy_batch")
        kernel(r, "void dense_forward<float>(float const*, float*)", 7, 700, 20)
        section(r, "dense_forward")
        copy(r, 380, 4194304)
        section(r, "copy_ids")
    }
    collective("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 900, 20)
    for (r = 0; r < ranks; r++) {
        section(r, "exchange")
        kernel(r, "void embedding_bags<float>(float const*, float*)", 7, 500 + 250 * r, 24)
        kernel(r, "void interaction_forward<float>(float const*, float*)", 7, 300, 0)
        section(r, "lookup")
        kernel(r, "void backward<float>(float const*, float*)", 7, 1500, 0)
        section(r, "backward")
    }
    collective("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 600, 7)
    for (r = 0; r < ranks; r++) {
        section(r, "all_reduce")
        kernel(r, "void embedding_update<float>(float*, float const*)", 7, 350, 0)
        kernel(r, "void adam<float>(float*, float const*)", 7, 250, 24)
        # loss.item()
        call(r, "cudaStreamSynchronize", latest(free[r, 7] - host[r], 0) + 4)
        section(r, "update")
        event(r, row("user_annotation", "ProfilerStep#" number, 100 + r, 100 + r, begin[r], host[r], ""))
    }
}
BEGIN {
    ranks = 2
    for (r = 0; r < ranks; r++) {
        host[r] = 1000 + 30 * r
        printf("{\"schemaVersion\": 1, \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": %d},\n\"traceEvents\": [\n",
            r, ranks) >(folder "/rank" r ".json")
    }
    for (number = 10; number < 13; number++) {
        drift = 1 + (number - 11) / 100
        step(number)
    }
    for (r = 0; r < ranks; r++)
        print "]}" >(folder "/rank" r ".json")
}'

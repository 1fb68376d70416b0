#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pipeline_traces.py DIR NAMES RANKS MICROBATCHES [SHAPE]: traces of PyTorch's profiler, one a rank, of a 1F1B step.

NAMES are those of the annotations: "actions" ("PP:1F3"), "gpipe" ("Forward 3"), "none" ("work 3"). A pass receives on streams 20 and 21,
computes with two kernels on stream 7, and sends on 22 and 23; backward ones are launched by autograd's thread. The host is ahead of the device.
The device has annotations as Kineto writes them: over the launches of the annotated thread alone. SHAPE "calls" leaves the
annotations of the host out, "device" these and the calls. Prints the passes, "RANK NAME START END" in microseconds."""
import json
import sys

FORWARD, BACKWARD, MESSAGE, LAUNCH = 100, 200, 30, 5
HOST, AUTOGRAD, COMPUTE, RECEIVED, SENT = 1, 2, 7, {"F": 20, "B": 21}, {"F": 22, "B": 23}


def order(rank, ranks, microbatches):
    """The passes of a rank under 1F1B."""
    warm = min(ranks - rank, microbatches)
    passes = [("F", m) for m in range(warm)]
    for m in range(microbatches):
        passes.append(("B", m))
        if warm + m < microbatches:
            passes.append(("F", warm + m))
    return passes


def simulate(ranks, microbatches):
    """(rank, kind, microbatch) -> when its message begins to be awaited, it computes, and ends."""
    orders = [order(r, ranks, microbatches) for r in range(ranks)]
    at, free, times = [0] * ranks, [1000] * ranks, {}
    while any(at[r] < len(orders[r]) for r in range(ranks)):
        for r in range(ranks):
            if at[r] == len(orders[r]):
                continue
            kind, m = orders[r][at[r]]
            peer = r - 1 if kind == "F" else r + 1
            has_peer = 0 <= peer < ranks
            if has_peer and (peer, kind, m) not in times:
                continue
            arrival = times[peer, kind, m][2] + MESSAGE if has_peer else 0
            begin = max(free[r] + 10, arrival)
            end = begin + (FORWARD if kind == "F" else BACKWARD)
            times[r, kind, m] = (free[r], begin, end, has_peer)
            free[r] = end + 2
            at[r] += 1
    return orders, times


def name_of(names, rank, kind, m):
    if names == "gpipe":
        return ("Forward %d" if kind == "F" else "Backward %d") % m
    return "PP:%d%s%d" % (rank, kind, m) if names == "actions" else "work %d" % m


class Trace:
    def __init__(self):
        self.events, self.next = [], 1

    def add(self, cat, name, pid, tid, start, end, args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
                            "ts": start, "dur": end - start, "args": args})

    def message(self, what, peer, call, stream, start, end):
        self.work("ncclDevKernel_SendRecv(ncclDevComm*)", HOST, call, stream, start, end,
                  {"Collective name": what, "Dst Rank" if what == "send" else "Src Rank": peer, "Process Group Name": "pp"})

    def work(self, name, thread, call, stream, start, end, more={}):
        args = {"correlation": self.next}
        self.add("cuda_runtime", "cudaLaunchKernel", 7, thread, call, call + LAUNCH, args)
        self.add("kernel", name, 0, stream, start, end, dict(args, device=0, stream=stream, **more))
        self.next += 1


def write(directory, names, rank, orders, times, shape):
    trace, call, sent = Trace(), 100, {"F": 0, "B": 0}
    for kind, m in orders[rank]:
        awaited, begin, end, receives = times[rank, kind, m]
        name, opened = name_of(names, rank, kind, m), call
        middle = begin + (end - begin) // 2
        call += LAUNCH
        if receives:
            trace.message("recv", rank + (-1 if kind == "F" else 1), call, RECEIVED[kind], awaited, begin - 1)
            trace.add("gpu_user_annotation", name, 0, RECEIVED[kind], awaited, begin - 1, {})
        for start, stop in ((begin, middle), (middle + 1, end)):
            call += 2 * LAUNCH
            trace.work("gemm", HOST if kind == "F" else AUTOGRAD, call, COMPUTE, start, stop)
        if kind == "F" or shape == "device":
            trace.add("gpu_user_annotation", name, 0, COMPUTE, begin, end, {})
        peer = rank + (1 if kind == "F" else -1)
        if (peer, kind, m) in times:
            call += 2 * LAUNCH
            arrived = times[peer, kind, m][1] - 1
            trace.message("send", peer, call, SENT[kind], max(end, sent[kind]) + 1, arrived)
            sent[kind] = arrived
        trace.add("user_annotation", name, 7, HOST, opened, call + 2 * LAUNCH, {})
        call += 3 * LAUNCH
        if names != "none":
            print(rank, name, begin, end)
    gone = {"all": (), "calls": ("user_annotation",), "device": ("user_annotation", "cuda_runtime")}[shape]
    kept = [event for event in trace.events if event["cat"] not in gone]
    with open("%s/rank%d.json" % (directory, rank), "w") as out:
        json.dump({"schemaVersion": 1, "traceEvents": kept,
                   "distributedInfo": {"rank": rank, "world_size": len(orders)}}, out)


def main():
    directory, names, ranks, microbatches = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    shape = sys.argv[5] if len(sys.argv) > 5 else "all"
    orders, times = simulate(ranks, microbatches)
    for rank in range(ranks):
        write(directory, names, rank, orders, times, shape)


main()

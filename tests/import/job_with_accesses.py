# SPDX-License-Identifier: Apache-2.0
# job_with_accesses.py FOLDER [CHANGE...]: a training loop on a GPU as PyTorch's profiler and its ExecutionTraceObserver
# record it: kineto.json, et.json. In each of four steps a batch is copied on stream 20, stream 7 waits for it by an event and
# computes with it, adds to the weights, and copies the loss to pinned memory, which the host reads behind a sync. Changes:
#
#   no_wait      stream 7 does not wait for the copy, and begins before it has ended
#   no_sync      the host reads the loss without a sync
#   no_ids       the wait does not name its event
#   no_schema    the operator that adds to the weights has no schema
#   renamed      the operators of both files have other names
#   old          the execution trace has the layout of version 1.0.1
#   swapped      a kernel of step 2 begins between two of step 1
#   gpu_scalar   the host reads the loss from the device's memory, by a copy that blocks
#
# With `pipeline` it is one of TorchRec's: step n copies batch n + 2 on stream 20, trains batch n on stream 7, and then looks the tables
# up for batch n + 1 on stream 21, which waits for the copy and for the optimizer's end. Changes:
#
#   early        the lookup comes first, and waits for the copy alone
#   same_stream  it comes first, on stream 7
#   rings        batches are copied to three buffers that the program made itself
#   no_event     stream 21 does not wait for the copy
#   own_names    the annotations have names that tell no stage
#   triton       a kernel without a schema is part of the forward pass
import json, sys

folder, changes = sys.argv[1], set(sys.argv[2:])
events, nodes = [], []
PID = 77
SCHEMAS = {
    "aten::copy_": "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    "aten::mm": "aten::mm(Tensor self, Tensor mat2) -> Tensor",
    "aten::add_": "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "aten::view": "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    "aten::sum": "aten::sum.out(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    "aten::_local_scalar_dense": "aten::_local_scalar_dense(Tensor self) -> Scalar",
    "aten::empty": "aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None) -> Tensor",
}
correlation = 0
number = 0


def add(cat, name, tid, start, duration, **args):
    events.append({"ph": "X", "cat": cat, "name": name, "pid": PID if isinstance(tid, int) and tid < 100 else 0, "tid": tid,
                   "ts": start, "dur": duration, "args": args})


def tensor(storage, device="cuda:0"):
    return [1000 + storage, storage, 0, 1024, 4, device]


def operator(name, start, duration, inputs, outputs, schema=True):
    global number
    number += 1
    add("cpu_op", name, 1, start, duration, **{"External id": number, "Record function id": number})
    text = SCHEMAS[name] if schema else ""
    other = name.replace("aten", "prims") if "renamed" in changes else name
    if "old" in changes:
        nodes.append({"name": other, "id": 10 + number, "rf_id": number, "op_schema": text, "inputs": inputs, "outputs": outputs})
        return
    nodes.append({"id": 10 + number, "name": other, "ctrl_deps": 2,
                  "inputs": {"values": inputs, "shapes": [], "types": [], "strides": []},
                  "outputs": {"values": outputs, "shapes": [], "types": [], "strides": []},
                  "attrs": [{"name": "rf_id", "type": "uint64", "value": number},
                            {"name": "op_schema", "type": "string", "value": text}]})


def call(name, start, duration):
    global correlation
    correlation += 1
    add("cuda_runtime", name, 1, start, duration, correlation=correlation)
    return correlation


def work(cat, name, stream, start, duration, of):
    add(cat, name, 200 + stream, start, duration, correlation=of, stream=stream, device=0)


WEIGHTS, LOSS, PINNED, TABLES = 1, 2, 3, 4
clock = 0


def annotated(name, *parts):
    """A section of the step, whose parts launch something each."""
    global clock
    start = clock
    clock += 10
    for part in parts:
        part()
        clock += 20
    if "own_names" in changes:
        name = {"copy_batch_to_gpu": "upload", "prefetch": "embed", "forward": "net", "backward": "grads", "optimizer": "update"}[name]
    add("user_annotation", f"## {name} ##", 1, start, clock - start - 5)


ended, records = {}, {}


def launched(name, stream, duration, inputs, outputs, schema=True, cat="kernel", kernel=None):
    operator(name, clock, 15, inputs, outputs, schema)
    begin = max(clock + 10, ended.get(stream, 0) + 2)
    work(cat, kernel or name, stream, begin, duration, call("cudaLaunchKernel", clock + 2, 5))
    ended[stream] = begin + duration


def record(key, stream):
    records[key] = (call("cudaEventRecord", clock, 2), stream, ended.get(stream, 0))


def wait(key, stream):
    if key not in records:
        return
    number, source, end = records[key]
    add("cuda_sync", "Stream Wait Event", 200 + stream, clock, 1, correlation=call("cudaStreamWaitEvent", clock, 2), stream=stream,
        wait_on_stream=source, wait_on_cuda_event_record_corr_id=number, wait_on_cuda_event_id=1)
    ended[stream] = max(ended.get(stream, 0), end)


def pipeline_step(n):
    """Step n of the profiler, which works on batches n, n + 1 and n + 2."""
    global clock
    clock = begin = 10000 * n + 1000
    batch = lambda i: 10 + i % 3 if "rings" in changes else 100 + i
    rows, result, grad = (lambda i: 1000 + i), 2000 + n, 3000 + n
    lookup_stream = 7 if "same_stream" in changes else 21

    def lookup():
        annotated("prefetch", *([] if "no_event" in changes else [lambda: wait(("copy", n + 1), lookup_stream)]),
                  *([] if "early" in changes or "same_stream" in changes else [lambda: wait(("optimizer", n), lookup_stream)]),
                  lambda: launched("aten::mm", lookup_stream, 700, [tensor(batch(n + 1)), tensor(TABLES)], [tensor(rows(n + 1))]),
                  lambda: record(("lookup", n + 1), lookup_stream))

    annotated("copy_batch_to_gpu", lambda: wait(("forward", n - 1), 20),
              lambda: launched("aten::copy_", 20, 500, [tensor(batch(n + 2)), tensor(5000 + n, "cpu"), True], [tensor(batch(n + 2))],
                               cat="gpu_memcpy", kernel="Memcpy HtoD (Pinned -> Device)"),
              lambda: record(("copy", n + 2), 20))
    if "early" in changes or "same_stream" in changes:
        lookup()
    annotated("forward", lambda: wait(("lookup", n), 7), lambda: wait(("copy", n), 7),
              lambda: launched("aten::mm", 7, 900, [tensor(batch(n)), tensor(WEIGHTS)], [tensor(result)]),
              *([lambda: launched("triton_poi_fused_add_0", 7, 300, [tensor(result), tensor(rows(n))], [], False)] if "triton" in changes else []),
              lambda: launched("aten::mm", 7, 900, [tensor(result), tensor(rows(n))], [tensor(result + 500)]),
              lambda: record(("forward", n), 7))
    annotated("backward", lambda: launched("aten::mm", 7, 1500, [tensor(result + 500), tensor(WEIGHTS)], [tensor(grad)]))
    annotated("optimizer", lambda: launched("aten::add_", 7, 400, [tensor(WEIGHTS), tensor(grad), 1], [tensor(WEIGHTS)]),
              lambda: launched("aten::add_", 7, 400, [tensor(TABLES), tensor(grad), 1], [tensor(TABLES)]),
              lambda: record(("optimizer", n), 7))
    if not ("early" in changes or "same_stream" in changes):
        lookup()
    add("user_annotation", f"ProfilerStep#{n}", 1, begin, 6000)


if "triton" in changes:
    SCHEMAS["triton_poi_fused_add_0"] = ""
for step in range(8 if "pipeline" in changes else 0):
    pipeline_step(step)
for step in range(0 if "pipeline" in changes else 4):
    at = 10000 * step + 1000
    batch = 10 + 10 * step
    begin = at + (130 if "no_wait" in changes else 565)
    host, result = 100 + step, 11 + 10 * step
    add("user_annotation", f"ProfilerStep#{step}", 1, at, 9000)
    operator("aten::empty", at + 5, 5, [[1024]], [tensor(batch)])
    operator("aten::copy_", at + 20, 30, [tensor(batch), tensor(host, "cpu"), True], [tensor(batch)])
    work("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 20, at + 60, 500, call("cudaMemcpyAsync", at + 30, 10))
    record = call("cudaEventRecord", at + 60, 2)
    if "no_wait" not in changes:
        wait = call("cudaStreamWaitEvent", at + 70, 2)
        ids = {} if "no_ids" in changes else {"wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": record, "wait_on_cuda_event_id": 1}
        add("cuda_sync", "Stream Wait Event", 207, at + 70, 1, correlation=wait, stream=7, **ids)
    operator("aten::view", at + 90, 5, [tensor(batch), [32, 32]], [tensor(batch)])
    operator("aten::mm", at + 100, 30, [tensor(batch), tensor(WEIGHTS)], [tensor(result)])
    work("kernel", "gemm", 7, begin - 6500 * ("swapped" in changes and step == 2), 3000, call("cudaLaunchKernel", at + 110, 10))
    operator("aten::sum", at + 140, 30, [tensor(result), None, tensor(LOSS)], [tensor(LOSS)])
    work("kernel", "reduce", 7, begin + 3005, 1000, call("cudaLaunchKernel", at + 150, 10))
    operator("aten::add_", at + 180, 30, [tensor(WEIGHTS), tensor(result), 1], [tensor(WEIGHTS)], "no_schema" not in changes)
    work("kernel", "add", 7, begin + 4010, 1000, call("cudaLaunchKernel", at + 190, 10))
    if "gpu_scalar" in changes:
        operator("aten::_local_scalar_dense", at + 220, begin + 5000 - at, [tensor(LOSS)], [])
        work("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 7, begin + 5015, 100, call("cudaMemcpyAsync", at + 230, begin + 4890 - at))
        continue
    operator("aten::copy_", at + 220, 30, [tensor(PINNED, "cpu"), tensor(LOSS), True], [tensor(PINNED, "cpu")])
    work("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 7, begin + 5015, 100, call("cudaMemcpyAsync", at + 230, 10))
    if "no_sync" not in changes:
        call("cudaStreamSynchronize", at + 260, begin + 4860 - at)
    operator("aten::_local_scalar_dense", at + 5700, 10, [tensor(PINNED, "cpu")], [])
events.sort(key=lambda event: event["ts"])
with open(f"{folder}/kineto.json", "w") as file:
    json.dump({"distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": events}, file)
with open(f"{folder}/et.json", "w") as file:
    json.dump({"schema": "1.1.1-chakra.0.0.4", "pid": PID, "nodes": nodes}, file)

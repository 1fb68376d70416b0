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
#   gpu_scalar   the host reads the loss from the device's memory, by a copy that blocks
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


WEIGHTS, LOSS, PINNED = 1, 2, 3
for step in range(4):
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
    work("kernel", "gemm", 7, begin, 3000, call("cudaLaunchKernel", at + 110, 10))
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

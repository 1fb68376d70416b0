# SPDX-License-Identifier: Apache-2.0
# pipeline_run.py - a schedule executed by PyTorch's runtime: a process for each rank, gloo between them, a layer for
# each stage. The gradients of every stage are compared with those of the same model in one process.
import os, pathlib, re, signal, tempfile, time

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules, stage

from pipelining import read_rows

WIDTH = 8
torch.set_num_threads(1)


def layers(stages):
    torch.manual_seed(1)
    return [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()).double() for _ in range(stages)]


def batch(microbatches):
    torch.manual_seed(2)
    return torch.randn(2, microbatches, WIDTH).double()


def loss(output, target):
    return ((output - target) ** 2).sum()


# The gradients of each layer, computed one microbatch after the other.
def serial_gradients(stages, microbatches):
    model = torch.nn.Sequential(*layers(stages))
    for x, y in zip(*(half.chunk(microbatches) for half in batch(microbatches))):
        loss(model(x), y).backward()
    return [[p.grad for p in layer.parameters()] for layer in model]


# A send or receive ends before the next begins, as in a single queue whose messages wait for their peers.
def block_messages():
    def start_and_wait(ops, desc=None):
        for work in dist.batch_isend_irecv(ops) if ops else ():
            work.wait()
        return []

    schedules._batch_p2p = start_and_wait


# 2.9.1 greets the neighbours with an int64 that they receive as a float32, for which gloo ends the process.
def greet_nobody():
    if hasattr(stage._PipelineStageBase, "_get_init_p2p_neighbors_ops"):
        stage._PipelineStageBase._get_init_p2p_neighbors_ops = lambda self: []


def held_stages(row):
    return sorted({int(stage) for word in row for stage in re.findall(r"(\d+)F", word)})


def run_rank(rank, path, rows, microbatches, format, store, how):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=len(rows))
    held = held_stages(rows[rank])
    count = 1 + max(stage for row in rows for stage in held_stages(row))
    model, x, y = layers(count), *batch(microbatches)
    between = torch.zeros(1, WIDTH, dtype=x.dtype, requires_grad=True)
    stages = [PipelineStage(model[s], s, count, torch.device("cpu"), input_args=between if s else x[:1],
                            output_args=between) for s in held]
    runtime = schedules._PipelineScheduleRuntime(stages, microbatches, loss_fn=loss, scale_grads=False, **how)
    runtime._load_csv(str(path), format)
    runtime.step(*([x] if 0 in held else []), **({"target": y} if count - 1 in held else {}))
    want = serial_gradients(count, microbatches)
    return all(torch.allclose(p.grad, g, rtol=1e-10, atol=1e-12)
               for s in held for p, g in zip(model[s].parameters(), want[s]))


def child(rank, blocking, log, *arguments):
    code = 3
    try:
        for number in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
        greet_nobody()
        if blocking:
            block_messages()
        code = 0 if run_rank(rank, *arguments) else 2
    except Exception as error:
        print(f"rank {rank}: {type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(code)


# Execute the schedule in a file: "right", "wrong gradients", "an error", or "hangs" when it has not ended in time.
def execute(path, microbatches, format="compute_comms", blocking=False, limit_s=60, **how):
    rows = read_rows(path)
    with tempfile.TemporaryDirectory() as folder:
        pids = []
        for rank in range(len(rows)):
            pid = os.fork()
            if pid == 0:
                child(rank, blocking, pathlib.Path(folder) / "log", path, rows, microbatches, format, pathlib.Path(folder) / "store", how)
            pids.append(pid)
        end = outcome(pids, time.monotonic() + limit_s)
        if end == "an error":
            end += ": " + (pathlib.Path(folder) / "log").read_text()[-600:]
        return end


def outcome(pids, end):
    codes = {}
    while len(codes) < len(pids) and time.monotonic() < end:
        for pid in set(pids) - set(codes):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                codes[pid] = os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    for pid in set(pids) - set(codes):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if 3 in codes.values():
        return "an error"
    if len(codes) < len(pids):
        return "hangs"
    return "wrong gradients" if any(codes.values()) else "right"

# SPDX-License-Identifier: Apache-2.0
# loops.py RANK RANKS FOLDER [RUN...] - training loops of PyTorch over gloo on the CPU, with layers that sleep and real ones,
# under its profiler. Each run leaves FOLDER/RUN-RANK.json, the trace, and rank 0 FOLDER/RUN.ms, the measured times of its steps but
# the first WARM ones.
import sys, time

SIZE = 1 << 16
WARM, STEPS = 1, 7
SLOW = 4  # times as long as the table says: what disturbs a step is then a small part of it

# Run: the loop and its arguments, times in units of SLOW milliseconds.
runs = {
    "data": ("data_parallel", dict(forward=20, layers=[16, 12, 8], overlap=True)),
    "data-slow": ("data_parallel", dict(forward=20, layers=[16, 36, 8], overlap=True)),
    "data-fast": ("data_parallel", dict(forward=5, layers=[16, 12, 8], overlap=True)),
    "data-serial": ("data_parallel", dict(forward=20, layers=[16, 12, 8], overlap=False)),
    "table": ("table", dict(dense=[20, 30], lookup=10)),
    "table-even": ("table", dict(dense=[20, 20], lookup=10)),
    "table-lookup": ("table", dict(dense=[20, 30], lookup=25)),
    "pipe": ("pipe", dict(order="1f1b", batches=4, forward=10, backward=20)),
    "pipe-8": ("pipe", dict(order="1f1b", batches=8, forward=10, backward=20)),
    "pipe-gpipe": ("pipe", dict(order="gpipe", batches=4, forward=10, backward=20)),
    "pipe-backward": ("pipe", dict(order="1f1b", batches=4, forward=10, backward=30)),
    "pipe-forward": ("pipe", dict(order="1f1b", batches=4, forward=25, backward=20)),
    "real": ("real", dict(times=1)),
    "real-thrice": ("real", dict(times=3)),
}


def layer(name, ms):
    with record_function(name):
        time.sleep(SLOW * ms / 1000)


def data_parallel(forward, layers, overlap):
    """The gradients of a layer are reduced while the layers before it go backward."""
    layer("forward", forward)
    works = []
    for number, ms in enumerate(layers):
        layer(f"backward{number}", ms)
        works.append(dist.all_reduce(torch.ones(SIZE), async_op=True))
        if not overlap:
            works[-1].wait()
    for work in works if overlap else []:
        work.wait()
    layer("optimizer", 4)


def table(dense, lookup):
    """The next batch is on its way while the dense layers compute; ranks have different ones."""
    given, taken = torch.ones(SIZE), torch.ones(SIZE)
    work = dist.all_to_all_single(taken, given, async_op=True)
    layer(f"dense{rank}", dense[rank])
    work.wait()
    layer("lookup", lookup)
    dist.all_to_all_single(taken, given)


def passes(order, batches):
    """The forwards and backwards of this rank, in their order."""
    ahead = batches if order == "gpipe" else min(batches, ranks - rank)
    todo = [("F", batch) for batch in range(ahead)]
    for batch in range(batches):
        todo.append(("B", batch))
        if ahead + batch < batches:
            todo.append(("F", ahead + batch))
    return todo


def pipe(order, batches, forward, backward):
    sent = []
    for what, batch in passes(order, batches):
        before, after = (rank - 1, rank + 1) if what == "F" else (rank + 1, rank - 1)
        if 0 <= before < ranks:
            dist.recv(torch.ones(1024), before)
        layer(what, forward if what == "F" else backward)
        if 0 <= after < ranks:
            sent.append(dist.isend(torch.ones(1024), after))
    for work in sent:
        work.wait()


def real(times):
    """Layers that compute; autograd asks for the reduction of each gradient when it has it."""
    value = torch.ones(2048, 512)
    works = []
    for parameter in model.parameters():
        parameter.grad = None
    hooks = [parameter.register_post_accumulate_grad_hook(lambda done: works.append(dist.all_reduce(done.grad, async_op=True)))
             for parameter in model.parameters()]
    for number, part in enumerate(model):
        with record_function(f"forward{number}"):
            for _ in range(times if number == 1 else 1):
                after = part(value)
        value = after
    with record_function("backward"):
        value.sum().backward()
    for work in works:
        work.wait()
    with record_function("optimizer"), torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.001 * parameter.grad
    for hook in hooks:
        hook.remove()


def train(run):
    loop, arguments = runs[run]
    ends = []
    plan = profiler.schedule(wait=0, warmup=1, active=WARM + STEPS)
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], schedule=plan, record_shapes=True, with_stack=True,
                          on_trace_ready=lambda made: made.export_chrome_trace(f"{folder}/{run}-{rank}.json")) as made:
        for step in range(1 + WARM + STEPS):
            globals()[loop](**arguments)
            dist.all_reduce(torch.ones(1))  # the loss
            made.step()
            ends.append(time.perf_counter())
    if rank == 0:
        with open(f"{folder}/{run}.ms", "w") as out:
            for begin, end in zip(ends[WARM:], ends[WARM + 1:]):
                out.write(f"{(end - begin) * 1000}\n")
    dist.barrier()


if __name__ == "__main__":
    import torch, torch.distributed as dist
    from torch import profiler
    from torch.profiler import record_function

    rank, ranks, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)])
    dist.init_process_group("gloo", rank=rank, world_size=ranks, store=dist.FileStore(folder + "/store", ranks))
    for run in sys.argv[4:] or runs:
        train(run)
    dist.destroy_process_group()

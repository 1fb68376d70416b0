# SPDX-License-Identifier: Apache-2.0
# Programs of PyTorch, right ones and ones with a mistake that t_dry.py looks for: dry_program.py CASE, under torchrun where the
# case has two ranks. A line that a verdict should name ends with the comment that t_dry.py looks for.
import os
import sys

import torch
import torch.distributed as dist
from torch import nn


def model(layers=2, width=256):
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)])


def begin():
    rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    return rank, device


def end():
    torch.cuda.synchronize()
    dist.destroy_process_group()


# ---- one rank ---------------------------------------------------------------------------------------------

# Batches come on a side stream, one ahead.
def loader(waits, records=True):
    net, copies = model().cuda(), torch.cuda.Stream()
    batches = [torch.randn(64, 256).pin_memory() for _ in range(4)]
    torch.cuda.synchronize()

    def fetch(i):
        with torch.cuda.stream(copies):
            batch = torch.empty(64, 256, device="cuda")
            batch.copy_(batches[i], non_blocking=True)  # loader: copy
            return batch

    following = fetch(0)
    for i in range(4):
        batch = following
        if waits:
            torch.cuda.current_stream().wait_stream(copies)
        if records:
            batch.record_stream(torch.cuda.current_stream())
        following = fetch(i + 1) if i < 3 else None
        net(batch).sum().backward()  # loader: use
        del batch
    torch.cuda.synchronize()


# What the allocator of PyTorch itself says of its peaks: t_dry.py holds the plan against it.
def memory():
    net, side = model(3, 512).cuda(), torch.cuda.Stream()
    adam = torch.optim.Adam(net.parameters())
    for _ in range(3):
        batch = torch.randn(4096, 512, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            batch.mul_(2)
        torch.cuda.current_stream().wait_stream(side)
        batch.record_stream(side)
        net(batch).sum().backward()
        del batch
        adam.step()
        adam.zero_grad()
    torch.cuda.synchronize()
    told = torch.cuda.memory_stats()
    print("peak", told["active_bytes.all.peak"], "reserved", told["reserved_bytes.all.peak"],
          "parameters", sum(p.numel() * 4 for p in net.parameters()))


# What the forward pass computes goes to the host on a stream of its own.
def offload(waits):
    side, kept = torch.cuda.Stream(), []
    for _ in range(3):
        made = torch.randn(512, 512, device="cuda")  # offload: made
        if waits:
            side.wait_stream(torch.cuda.current_stream())
        host = torch.empty(512, 512, pin_memory=True)
        with torch.cuda.stream(side):
            host.copy_(made, non_blocking=True)  # offload: copy
        made.record_stream(side)
        kept.append(host)
    torch.cuda.synchronize()


# The event stands for what its stream had done by then.
def event(right):
    copies, there = torch.cuda.Stream(), torch.cuda.Event()
    host = torch.randn(256, 256).pin_memory()
    batch = torch.empty(256, 256, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(copies):
        batch.copy_(host, non_blocking=True)  # event: copy
    there.record(copies if right else torch.cuda.current_stream())
    torch.cuda.current_stream().wait_event(there)
    (batch @ batch).sum()  # event: use
    torch.cuda.synchronize()


# One pinned buffer for all batches.
def refill(waits):
    host, copies = torch.empty(256, 256, pin_memory=True), torch.cuda.Stream()
    batch = torch.empty(256, 256, device="cuda")
    done = torch.cuda.Event()
    torch.cuda.synchronize()
    for i in range(2):
        if waits and i:
            done.synchronize()
        host.fill_(i)  # refill: fill
        with torch.cuda.stream(copies):
            batch.copy_(host, non_blocking=True)  # refill: copy
            done.record(copies)
    torch.cuda.synchronize()


# A thread copies weights to the host while the main one goes on.
def checkpoint(waits):
    import threading
    import time
    weight, side = torch.randn(512, 512, device="cuda"), torch.cuda.Stream()
    host, saved = torch.empty(512, 512, pin_memory=True), threading.Event()
    torch.cuda.synchronize()

    def save():
        with torch.cuda.stream(side):
            host.copy_(weight, non_blocking=True)  # checkpoint: copy
        side.synchronize()
        saved.set()

    thread = threading.Thread(target=save)
    thread.start()
    if waits:
        saved.wait()
    time.sleep(0.3)  # in this run it comes late enough
    weight.add_(1)  # checkpoint: step
    thread.join()
    torch.cuda.synchronize()


# A step as a graph, on a batch that is refilled.
def graph():
    net, batch = model().cuda(), torch.randn(32, 256, device="cuda")
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        for _ in range(2):
            net(batch).sum().backward()
    torch.cuda.current_stream().wait_stream(warm)
    net.zero_grad()
    step = torch.cuda.CUDAGraph()
    with torch.cuda.graph(step):
        net(batch).sum().backward()
    for _ in range(2):
        batch.copy_(torch.randn(32, 256).pin_memory(), non_blocking=True)
        step.replay()
    torch.cuda.synchronize()


# What only shapes are taken from is not read; a tensor of a class of the program's own is a tensor.
def shapes():
    class Own(nn.Parameter):
        pass

    weight, empty, side = Own(torch.randn(64, 64, device="cuda")), torch.empty(64, device="cuda"), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    weight.detach().add_(1)
    assert "Own" in repr(weight) or "Parameter" in repr(weight)
    with torch.cuda.stream(side):
        torch.zeros_like(weight).add_(1)
        torch.zeros_like(empty).add_(1)
        empty.new_zeros(64).add_(1)
    torch.cuda.synchronize()


# With values: a step that depends on them, as on a computer without a GPU.
def values():
    torch.manual_seed(0)
    net = model()
    batch, target = torch.randn(32, 256), torch.randn(32, 256)
    losses = []
    for where in ("cpu", "cuda"):
        torch.manual_seed(1)
        copy = model()
        copy.load_state_dict(net.state_dict())
        copy.to(where)
        optimizer = torch.optim.Adam(copy.parameters(), lr=1e-2)
        own = []
        for _ in range(3):
            loss = (copy(batch.to(where)) - target.to(where)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(copy.parameters(), 0.1)
            optimizer.step()
            own.append(loss.item())
        losses.append(own)
    large = (batch.cuda() > 0.5).nonzero().size(0)
    source = torch.ones(1000)
    ones = source.cuda() * source[0]
    source.zero_()  # it has been copied
    assert ones.sum().item() == 1000, ones.sum().item()
    for i in range(100):  # a kernel makes other numbers of them before they are copied
        halves = (torch.arange(64, device="cuda") / 2 + i).to("cpu", torch.float64)
        assert halves[63] == 31.5 + i, halves[63]
    assert losses[0] == losses[1], losses
    assert large == (batch > 0.5).sum().item(), large


# ---- two ranks --------------------------------------------------------------------------------------------

def ddp(steps=2):
    _, device = begin()
    net = nn.parallel.DistributedDataParallel(model().to(device), device_ids=[device], bucket_cap_mb=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(32, 256, device=device)).pow(2).mean().backward()
        optimizer.step()
    end()


def fsdp(steps=2):
    from torch.distributed.fsdp import fully_shard
    _, device = begin()
    net = model(3).to(device)
    for layer in net:
        fully_shard(layer)
    fully_shard(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(steps):
        net(torch.randn(32, 256, device=device)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    end()


# Nobody says where a batch ends: inference, and an optimizer that is not PyTorch's.
# Its first answer is for another input, so its operations repeat from the network on, where the input is in use.
def inference():
    net, device = model().cuda(), torch.device("cuda")

    @torch.no_grad()
    def answer(batch):
        return net(batch).sum()

    answer(torch.ones(32, 256, device=device))
    for _ in range(12):
        answer(torch.randn(32, 256, device=device))
    torch.cuda.synchronize()


def own_optimizer(waits):
    _, device = begin()
    net, side = model().to(device), torch.cuda.Stream()
    for _ in range(14):
        net(torch.randn(32, 256, device=device)).pow(2).mean().backward()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.no_grad():
            for parameter in net.parameters():
                dist.all_reduce(parameter.grad)  # own_optimizer: reduce
                parameter.add_(parameter.grad, alpha=-0.05)
                parameter.grad.zero_()
        if waits:
            torch.cuda.current_stream().wait_stream(side)
    end()


def train(net, device, rows=32, make=lambda parameters: torch.optim.SGD(parameters, lr=0.1, foreach=False)):
    optimizer = make(net.parameters())
    for _ in range(2):
        net(torch.randn(rows, 256, device=device)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    end()


# Gradients of two batches are added before they are reduced; the graph never changes; ranks share the optimizer's state.
def ddp_options():
    from torch.distributed.optim import ZeroRedundancyOptimizer
    _, device = begin()
    net = nn.parallel.DistributedDataParallel(model().to(device), device_ids=[device])
    with net.no_sync():
        net(torch.randn(32, 256, device=device)).pow(2).mean().backward()
    net(torch.randn(32, 256, device=device)).pow(2).mean().backward()
    net = nn.parallel.DistributedDataParallel(model().to(device), device_ids=[device], static_graph=True)
    train(net, device, make=lambda parameters: ZeroRedundancyOptimizer(parameters, torch.optim.Adam, lr=0.1))


# A hook that divides gradients on a stream of its own.
def hook(waits):
    _, device = begin()
    side = torch.cuda.Stream()

    def reduce_bucket(state, bucket):
        gradients = bucket.buffer()
        if waits:
            side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            gradients.div_(2)  # hook: use
        torch.cuda.current_stream().wait_stream(side)
        return dist.all_reduce(gradients, async_op=True).get_future().then(lambda future: future.value()[0])

    net = nn.parallel.DistributedDataParallel(model().to(device), device_ids=[device])
    net.register_comm_hook(None, reduce_bucket)
    train(net, device)


def fsdp1(offload):
    from torch.distributed.fsdp import BackwardPrefetch, CPUOffload, FullyShardedDataParallel
    _, device = begin()
    options = {"device_id": device, "cpu_offload": CPUOffload(offload), "forward_prefetch": True,
               "backward_prefetch": BackwardPrefetch.BACKWARD_PRE}
    layers = [FullyShardedDataParallel(layer, **options) for layer in model(3)]
    train(FullyShardedDataParallel(nn.Sequential(*layers), **options), device)


# Shards on the host; or shards that have replicas, on four ranks.
def fsdp_variant(replicas=1, **options):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    _, device = begin()
    net = model(3)
    if replicas > 1:
        shape = (replicas, dist.get_world_size() // replicas)
        options["mesh"] = init_device_mesh("cuda", shape, mesh_dim_names=("replicate", "shard"))
        net.to(device)
    for layer in [*net, net]:
        fully_shard(layer, **options)
    train(net, device)


def fsdp_offload():
    from torch.distributed.fsdp import CPUOffloadPolicy
    fsdp_variant(offload_policy=CPUOffloadPolicy())


# Layers are split over ranks, and so is the sequence between them.
def tensor():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor import parallel
    _, device = begin()
    net = nn.Sequential(nn.LayerNorm(256), nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).to(device)
    parallel.parallelize_module(net, init_device_mesh("cuda", (2,)), {
        "0": parallel.SequenceParallel(sequence_dim=0), "1": parallel.ColwiseParallel(input_layouts=Shard(0)),
        "3": parallel.RowwiseParallel(output_layouts=Shard(0))})
    train(net, device, rows=16)


# Gradients are summed on the group's own stream while the next ones are computed.
def reduce(waits):
    _, device = begin()
    weights = [torch.randn(256, 256, device=device) for _ in range(3)]
    works = []
    for weight in weights:
        gradient = weight @ weight
        works.append((dist.all_reduce(gradient, async_op=True), weight, gradient))  # reduce: sum
    for work, weight, gradient in works:
        if waits:
            work.wait()
        weight.sub_(gradient)  # reduce: use
    end()


def ring(batched):
    rank, device = begin()
    own, other = torch.randn(1 << 20, device=device), torch.empty(1 << 20, device=device)
    if batched:
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, own, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)]):
            work.wait()
    else:
        dist.send(own, 1 - rank)  # ring: send
        dist.recv(other, 1 - rank)
    other.add_(1)
    end()


# Two groups of the same ranks, which one rank uses in another order.
def groups(alike):
    rank, device = begin()
    one, two = dist.new_group([0, 1]), dist.new_group([0, 1])
    x, y = torch.ones(1 << 20, device=device), torch.ones(1 << 20, device=device)
    pairs = [(one, x), (two, y)]
    works = [dist.all_reduce(t, group=g, async_op=True) for g, t in (pairs if alike or rank == 0 else pairs[::-1])]
    for work in works:
        work.wait()
    end()


# A compiled graph, in which a pass moves the second collective in front of the first, on one rank only.
def compiled(alike):
    import torch.distributed._functional_collectives as functional
    from torch.fx.experimental.proxy_tensor import make_fx
    rank, device = begin()

    def step(x, w):
        first = functional.all_reduce(x @ w, "sum", dist.group.WORLD)
        second = functional.all_reduce(x.sum(0), "sum", dist.group.WORLD)
        return first + second

    x, w = torch.randn(256, 256, device=device), nn.Parameter(torch.randn(256, 256, device=device))
    optimizer = torch.optim.SGD([w], lr=0.1)
    compiled_step = make_fx(step)(x, w.detach())
    if not alike and rank == 1:
        nodes = compiled_step.graph.nodes
        first, second = [node for node in nodes if "all_reduce" in str(node.target)]
        first.prepend(second.args[0])
        first.prepend(second)
        compiled_step.recompile()
    for _ in range(3):
        w.grad = compiled_step(x, w.detach())  # compiled: step
        optimizer.step()
    end()


def pipeline():
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    rank, device = begin()
    stage = PipelineStage(model(1).to(device), rank, 2, device)
    schedule = Schedule1F1B(stage, 4, loss_fn=lambda out, target: (out - target).pow(2).mean())
    batch = torch.randn(32, 256, device=device)
    for _ in range(2):
        schedule.step(*([batch] if rank == 0 else []), **({"target": batch, "losses": []} if rank == 1 else {}))
    end()


# Megatron-core's 1F1B schedule with a small GPT, a stage a rank.
def megatron():
    from megatron.core import parallel_state
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
    from megatron.core.transformer.transformer_config import TransformerConfig
    _, device = begin()
    stages, length = dist.get_world_size(), 32
    parallel_state.initialize_model_parallel(1, stages)
    model_parallel_cuda_manual_seed(1)
    options = {name: False for name in ("gradient_accumulation_fusion", "masked_softmax_fusion", "bias_dropout_fusion")}
    config = TransformerConfig(num_layers=2 * stages, hidden_size=64, num_attention_heads=4, use_cpu_initialization=True,
                               pipeline_dtype=torch.float32, pipeline_model_parallel_size=stages, **options)
    net = GPTModel(config, get_gpt_layer_local_spec(normalization="LayerNorm"), 128, length,
                   pre_process=parallel_state.is_pipeline_first_stage(),
                   post_process=parallel_state.is_pipeline_last_stage()).to(device)

    def forward(_, net):
        tokens = torch.zeros(2, length, dtype=torch.long, device=device)
        positions = torch.arange(length, device=device).unsqueeze(0)
        mask = torch.ones(1, 1, length, length, dtype=torch.bool, device=device).triu(1)
        return net(tokens, positions, mask, labels=tokens), lambda losses: (losses.mean(), {})

    for _ in range(8):
        get_forward_backward_func()(forward_step_func=forward, data_iterator=None, model=net, num_microbatches=4,
                                    seq_length=length, micro_batch_size=2, forward_only=False)
    end()


CASES = {
    "memory": memory,
    "loader": lambda: loader(True),
    "loader_unwaited": lambda: loader(False),
    "loader_unrecorded": lambda: loader(True, records=False),
    "offload": lambda: offload(True),
    "offload_unwaited": lambda: offload(False),
    "event": lambda: event(True),
    "event_wrong": lambda: event(False),
    "refill": lambda: refill(True),
    "refill_unwaited": lambda: refill(False),
    "checkpoint": lambda: checkpoint(True),
    "checkpoint_unwaited": lambda: checkpoint(False),
    "graph": graph,
    "shapes": shapes,
    "values": values,
    "ddp": ddp,
    "fsdp": fsdp,
    "ddp_steps": lambda: ddp(24),
    "fsdp_steps": lambda: fsdp(14),
    "inference": inference,
    "own_optimizer": lambda: own_optimizer(True),
    "own_optimizer_unwaited": lambda: own_optimizer(False),
    "ddp_options": ddp_options,
    "hook": lambda: hook(True),
    "hook_unwaited": lambda: hook(False),
    "fsdp1": lambda: fsdp1(False),
    "fsdp1_offload": lambda: fsdp1(True),
    "fsdp_offload": fsdp_offload,
    "hybrid": lambda: fsdp_variant(replicas=2),
    "tensor": tensor,
    "reduce": lambda: reduce(True),
    "reduce_unwaited": lambda: reduce(False),
    "ring": lambda: ring(True),
    "ring_unbatched": lambda: ring(False),
    "groups": lambda: groups(True),
    "groups_crossed": lambda: groups(False),
    "compiled": lambda: compiled(True),
    "compiled_reordered": lambda: compiled(False),
    "pipeline": pipeline,
    "megatron": megatron,
}
if __name__ == "__main__":
    CASES[sys.argv[1]]()
    print("done", flush=True)

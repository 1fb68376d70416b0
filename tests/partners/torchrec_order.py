# SPDX-License-Identifier: Apache-2.0
"""The order in which TorchRec's pipelines make their calls, on the CPU over gloo.

    torchrec_order.py OUT.json [PIPELINE...]

Two processes shard one embedding table each and drive every pipeline over eight batches. Rank 0 writes
{"version": ..., "orders": {PIPELINE: [[call, batch], ...]}, "refused": {PIPELINE: reason}}. A call is one of TorchRec's own
annotations (record_function) or, inside of them, a method of the sharded module that we wrap; the n-th of a name is
that of batch n. Streams: on the CPU TorchRec's are None or those of torch.cpu, which do nothing.
"""
import contextlib, functools, json, os, re, sys, tempfile, threading

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

BATCHES = 8
NAMES = {
    "wait_sparse_data_dist": "InputDistWait",
    "zero_grad": "ZeroGrad", "wait_for_batch": "WaitBatch", "forward": "Forward", "backward": "Backward",
    "optimizer": "OptimizerStep", "start_embedding_lookup": "StartLookup", "sharded_module_prefetch": "EmbPrefetch",
    "emb_backward": "EmbBackward", "eval": "Forward", "load_batch": "LoadBatch",
}


class Log:
    """What was called by the thread that trains, in order; `open` are for each thread the calls that have not ended."""

    def __init__(self):
        self.calls, self.counts, self.open, self.own = [], {}, {}, "InputTransform"

    def add(self, name, number=None):
        if threading.current_thread() is not threading.main_thread():
            return number
        if number is None:
            number = self.counts.setdefault(name, 0)
            self.counts[name] += 1
        self.calls.append([name, number])
        return number

    def inside(self):
        return self.open.setdefault(threading.get_ident(), [])

    def innermost(self):
        """Of the thread; of the one that trains, where it has none: autograd's threads work for that one."""
        known = [call for call in self.inside() or self.open.get(threading.main_thread().ident, []) if call[0]]
        return known[-1] if known else None


log = Log()


class Annotation:
    """Stands for record_function in TorchRec's modules. Forward is logged when it ends: the lookup is a part of it."""

    def __init__(self, text, *_):
        stage = re.match(r"## Pipeline Stage \d+ : (\w+) for batch (\d+)", text)
        self.number = int(stage.group(2)) if stage else None
        self.name = stage.group(1) if stage else NAMES.get(text.strip("# ").split()[0]) if text[:3] == "## " else None

    def __enter__(self):
        # PipelinedForward takes the ids that InputDistWait has sent, under the same annotation.
        number, outer = self.number, dict(log.inside())
        if self.name == "Forward":
            number = log.counts.get(self.name, 0)
        elif self.name == "InputDistWait" and "Forward" in outer:
            self.name, number = "TakeIds", outer["Forward"]
        elif self.name:
            number = log.add(self.name, self.number)
        log.inside().append((self.name, number))

    def __exit__(self, *_):
        log.inside().pop()
        if self.name == "Forward":
            log.add(self.name)


class NoEvent:
    def record(self, *_):
        pass

    wait = record


def wrap(owner, method, name, number=lambda *_: None):
    call = getattr(owner, method)

    def logged(*args, **kwargs):
        log.inside().append((name, log.add(name, number(*args))))
        try:
            return call(*args, **kwargs)
        finally:
            log.inside().pop()

    setattr(owner, method, logged)


def make_replicated(device):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.dense = torch.nn.Linear(4, 1)

        def forward(self, batch):
            out = self.dense(batch.dense)
            return torch.nn.functional.mse_loss(out, batch.label, reduction="none").mean().unsqueeze(0), out.detach()

    return torch.nn.parallel.DistributedDataParallel(Model().to(device))


def make_model(device, kernel=None):
    import torchrec
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.model_parallel import DistributedModelParallel
    from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints, Topology
    from torchrec.distributed.types import ShardingEnv
    from fbgemm_gpu.split_embedding_configs import EmbOptimType

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bags = torchrec.EmbeddingBagCollection(
                tables=[torchrec.EmbeddingBagConfig(name=f"t{i}", embedding_dim=8, num_embeddings=64,
                                                    feature_names=[f"f{i}"]) for i in range(2)],
                device=torch.device("meta"))
            self.bottom = torch.nn.Linear(4, 8)
            self.dense = torch.nn.Linear(8 * 3, 1)

        def forward(self, batch):
            dense = self.bottom(batch.dense)
            pooled = self.bags(batch.sparse)
            out = self.dense(torch.cat([pooled.values(), dense], dim=1))
            loss = torch.nn.functional.mse_loss(out, batch.label, reduction="none").mean()
            return loss.unsqueeze(0), out.detach()

    sharder = EmbeddingBagCollectionSharder(
        fused_params={"optimizer": EmbOptimType.EXACT_SGD, "learning_rate": 0.1})
    model = Model()
    world = dist.get_world_size()
    constraints = kernel and {f"t{i}": ParameterConstraints(sharding_types=["table_wise"], compute_kernels=[kernel])
                              for i in range(2)}
    planner = EmbeddingShardingPlanner(topology=Topology(world_size=world, local_world_size=world, compute_device=device.type),
                                       constraints=constraints)
    plan = planner.collective_plan(model, [sharder], dist.group.WORLD)
    return DistributedModelParallel(model, env=ShardingEnv.from_process_group(dist.group.WORLD), device=device,
                                    plan=plan, sharders=[sharder])


def batches():
    import torchrec
    from torchrec.streamable import Pipelineable

    class Batch(Pipelineable):
        def __init__(self, number, sparse, dense, label):
            self.number, self.sparse, self.dense, self.label = number, sparse, dense, label

        def to(self, device, non_blocking=False):
            log.inside().append(("DataCopy" if log.own == "GpuPostproc" else "H2D", self.number))
            copy = Batch(self.number, self.sparse.to(device=device, non_blocking=non_blocking),
                         self.dense.to(device, non_blocking=non_blocking), self.label.to(device, non_blocking=non_blocking))
            log.inside().pop()
            return copy

        def record_stream(self, stream):
            for part in self.sparse, self.dense, self.label:
                part.record_stream(stream)

        def pin_memory(self):
            return Batch(self.number, self.sparse.pin_memory(), self.dense.pin_memory(), self.label.pin_memory())

    torch.manual_seed(1 + dist.get_rank())
    for number in range(BATCHES):
        lengths = torch.randint(0, 3, (2 * 4,))
        yield Batch(number, torchrec.KeyedJaggedTensor(["f0", "f1"], torch.randint(0, 64, (int(lengths.sum()),)),
                                               lengths=lengths),
                    torch.randn(4, 4), torch.randn(4, 1))


def shifted(batch):
    """The user's own work on a batch."""
    log.inside().append((log.own, batch.number))
    batch.dense = batch.dense + 1
    log.inside().pop()
    return batch


def staged(pipelines, model, optimizer, device):
    """Two stages ahead of a loop of the user's own, as in the plan."""
    from torchrec.distributed.train_pipeline.pipeline_stage import PipelineStage

    streams, log.own = torch.get_device_module(device), "GpuPostproc"
    stages = [PipelineStage(name="DataCopy", runnable=lambda batch: batch.to(device, non_blocking=True),
                            stream=streams.Stream()),
              PipelineStage(name="GpuPostproc", runnable=shifted, stream=streams.Stream())]
    pipeline = pipelines.StagedTrainPipeline(stages, compute_stream=streams.current_stream())

    class Loop:
        def progress(self, data):
            batch = pipeline.progress(data)
            if batch is None:
                raise StopIteration
            with Annotation("## zero_grad ##"):
                optimizer.zero_grad()
            with Annotation("## forward ##"):
                losses, _ = model(batch)
            with Annotation("## backward ##"):
                losses.sum().backward()
            with Annotation("## optimizer ##"):
                optimizer.step()

    return Loop()


def no_compiler(pipeline):
    """CompAutograd's loop without a compiler: its calls are the same."""
    pipeline.get_compiled_autograd_ctx = contextlib.nullcontext
    return pipeline


def with_streams(pipeline):
    """Since 1.5 the prefetch does nothing without streams; these order nothing."""
    if pipeline._prefetch_stream is None:
        pipeline._data_dist_stream = pipeline._prefetch_stream = torch.cpu.Stream()
    return pipeline


def table(pipelines):
    return {
        "base": lambda *a: pipelines.TrainPipelineBase(*a),
        "pt2": lambda *a: pipelines.TrainPipelinePT2(*a, input_transformer=shifted,
                                                   compile_configs=pipelines.TorchCompileConfig(compile_on_iter=-1)),
        "sparse_dist": lambda *a: pipelines.TrainPipelineSparseDist(*a),
        "sparse_dist.after_forward": lambda *a: pipelines.TrainPipelineSparseDist(*a, enqueue_batch_after_forward=True),
        "sparse_dist_lite": lambda *a: pipelines.TrainPipelineSparseDistLite(*a),
        "fused_sparse_dist": lambda *a: pipelines.TrainPipelineFusedSparseDist(*a),
        "fused_sparse_dist.new": lambda *a: pipelines.TrainPipelineFusedSparseDist(*a, emb_lookup_stream="new"),
        "fused_sparse_dist.current": lambda *a: pipelines.TrainPipelineFusedSparseDist(*a, emb_lookup_stream="current"),
        "fused_sparse_dist.after_data_dist":
            lambda *a: pipelines.TrainPipelineFusedSparseDist(*a, embedding_lookup_after_data_dist=True),
        "semi_sync": lambda *a: pipelines.TrainPipelineSemiSync(*a, start_batch=0),
        "semi_sync.start": lambda *a: pipelines.TrainPipelineSemiSync(*a, start_batch=BATCHES),
        "prefetch": lambda *a: with_streams(pipelines.PrefetchTrainPipelineSparseDist(*a)),
        "comp_autograd": lambda *a: no_compiler(pipelines.TrainPipelineSparseDistCompAutograd(*a)),
        "staged": lambda *a: staged(pipelines, *a),
        "eval_sparse_dist": lambda *a: pipelines.EvalPipelineSparseDist(*a),
        "eval_fused_sparse_dist": lambda *a: pipelines.EvalPipelineFusedSparseDist(*a),
        "eval_fused_sparse_dist.prefetch":
            lambda *a: pipelines.EvalPipelineFusedSparseDist(*a, enable_embedding_lookup_prefetch=True),
    }


def drive(make, device, kernel=None, pinned=False):
    log.__init__()
    model = make_replicated(device) if kernel == "replicated" else make_model(device, kernel)
    optimizer = torch.optim.SGD([p for name, p in model.named_parameters() if "bags" not in name], lr=0.1)
    optimizer.zero_grad = functools.partial(optimizer.zero_grad, set_to_none=False)  # so that it has work on the device
    if kernel != "replicated":
        wrap(model.module.bags, "compute_and_output_dist", "EmbLookup")
    pipeline = make(model, optimizer, device)
    if "Eval" in type(pipeline).__name__:
        model.eval()
    data = (batch.pin_memory() for batch in batches()) if pinned else batches()
    for _ in range(BATCHES):
        try:
            pipeline.progress(data)
        except StopIteration:
            break
    return log.calls


def patch():
    """Our annotations in all modules of TorchRec's pipelines."""
    import importlib, pkgutil
    import torchrec.distributed.train_pipeline as package
    for module in pkgutil.iter_modules(package.__path__):
        if module.name in ("tests",):
            continue
        try:
            module = importlib.import_module(f"{package.__name__}.{module.name}")
        except ImportError:
            continue
        if hasattr(module, "record_function"):
            module.record_function = Annotation
        if hasattr(module, "_to_device"):
            wrap(module, "_to_device", "H2D", lambda batch, *_: batch.number)
        if hasattr(module, "_start_data_dist"):
            wrap(module, "_start_data_dist", "InputDistStart", lambda modules, batch, *_: batch.number)


def patch_streams():
    """What TorchRec does with streams and events does nothing."""
    # Streams of torch.cpu are none to the allocator, nor to the context manager that TorchRec takes for them.
    torch.Tensor.record_stream = lambda tensor, stream: None
    torch.cpu.Stream.device = torch.device("cpu")
    torch.cuda.stream = lambda stream: contextlib.nullcontext()
    torch.cuda.current_stream = torch.cpu.current_stream  # a module without a stream is taken for one of CUDA
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.Event = NoEvent
    if not hasattr(torch.cpu, "Event"):
        torch.cpu.Event = NoEvent


def main(rank, world, meeting, out, wanted):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    import torchrec
    import torchrec.distributed.train_pipeline.train_pipelines as pipelines
    patch()
    patch_streams()
    device = torch.device("cpu")
    orders, refused = {}, {}
    for name, make in table(pipelines).items():
        if wanted and name not in wanted:
            continue
        try:
            orders[name] = drive(make, device)
        except Exception as error:
            if os.environ.get("VERBOSE"):
                import traceback; traceback.print_exc()
            refused[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    if rank == 0:
        json.dump({"version": torchrec.__version__, "orders": orders, "refused": refused}, open(out, "w"))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(main, args=(2, os.path.join(folder, "meeting"), sys.argv[1], sys.argv[2:]), nprocs=2)

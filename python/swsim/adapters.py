# SPDX-License-Identifier: Apache-2.0
"""Plans from the objects of TorchRec, PyTorch and Megatron. Nothing is imported here: only attributes of the objects are read."""
from __future__ import annotations

import os
import pathlib
import sys
import tempfile
from typing import Any, Optional

from .errors import UsageError
from .plan import Plan, canonical

# The plans of TorchRec's pipelines, one for each class. plans/README.md says where each of their waits comes from.
_TORCHREC = {
    "TrainPipelineBase": "base",
    "TrainPipelineSparseDist": "sparse_dist",
    "TrainPipelineSparseDistLite": "sparse_dist_lite",
    "TrainPipelineFusedSparseDist": "fused_sparse_dist",
    "TrainPipelineSemiSync": "semi_sync",
    "PrefetchTrainPipelineSparseDist": "prefetch",
    "TrainPipelineSparseDistCompAutograd": "comp_autograd",
    "TrainPipelinePT2": "pt2",
    "EvalPipelineSparseDist": "eval_sparse_dist",
    "EvalPipelineFusedSparseDist": "eval_fused_sparse_dist",
    "StagedTrainPipeline": "staged",
}


def _plans() -> pathlib.Path:
    """The folder of the plans: in the package, or in the project where it is used from there."""
    own = pathlib.Path(__file__).with_name("plans")
    return own if own.is_dir() else pathlib.Path(__file__).parents[2] / "plans"


# The streams of a pipeline: the attribute of the object, the name in the plan.
_STREAMS = {"_memcpy_stream": "memcpy", "_data_dist_stream": "data_dist", "_prefetch_stream": "prefetch"}


def _is_current(pipeline: Any, stream: Any) -> bool:
    """True if the stream is the current one of the pipeline's device."""
    torch: Any = sys.modules.get("torch")  # it is there, if the pipeline is one of TorchRec's
    if torch is None or not hasattr(torch, "get_device_module"):
        return False
    return bool(torch.get_device_module(getattr(pipeline, "_device", None)).current_stream() == stream)


def _variant(pipeline: Any, name: str) -> str:
    """The plan of the pipeline with the options that it was made with."""
    if name == "sparse_dist" and getattr(pipeline, "_enqueue_batch_after_forward", False):
        return "sparse_dist.after_forward"
    if name == "eval_fused_sparse_dist" and getattr(pipeline, "_enable_embedding_lookup_prefetch", False):
        return "eval_fused_sparse_dist.prefetch"
    if name != "fused_sparse_dist":
        return name
    lookup = getattr(pipeline, "_emb_lookup_stream", None)
    if lookup is not None and lookup is not getattr(pipeline, "_data_dist_stream", None):
        return "fused_sparse_dist.current" if _is_current(pipeline, lookup) else "fused_sparse_dist.new"
    after = getattr(pipeline, "_embedding_lookup_after_data_dist", False)
    return "fused_sparse_dist.after_data_dist" if after else name


def _merge_streams(pipeline: Any, plan: dict[str, Any]) -> None:
    """One stream under two attributes of the object is one stream in the plan."""
    names: dict[int, str] = {}
    for attribute, name in _STREAMS.items():
        stream = getattr(pipeline, attribute, None)
        if stream is None:  # no GPU
            continue
        first = names.setdefault(id(stream), name)
        for task in plan["schedule"].values():
            if task.get("stream") == name:
                task["stream"] = first


def from_torchrec(pipeline: Any) -> dict[str, Any]:
    """The plan of a pipeline of TorchRec: that of the class that the object has or is derived from, with the order of the
    options that it was made with, and its streams. The times in it are examples; verify looks at none. What an own
    subclass does otherwise is not in it."""
    for base in type(pipeline).__mro__:
        if base.__name__ in _TORCHREC:
            plan = canonical(_plans() / "torchrec" / f"{_variant(pipeline, _TORCHREC[base.__name__])}.yaml")
            plan["name"] = type(pipeline).__name__
            _merge_streams(pipeline, plan)
            return plan
    raise UsageError(f"{type(pipeline).__name__} is no pipeline of TorchRec that has a plan: {', '.join(_TORCHREC)}")


def from_staged(pipeline: Any, train: bool = True) -> Plan:
    """The plan of a StagedTrainPipeline: a task for each of its stages, on the stage's stream, each behind the one before;
    with `train` a last task, Train, on the default stream, for the loop that takes the finished batches."""
    stages = list(getattr(pipeline, "_pipeline_stages", []))
    if not stages:
        raise UsageError(f"{type(pipeline).__name__} has no list of stages, as StagedTrainPipeline has")
    plan, names, previous = Plan(type(pipeline).__name__), dict[int, str](), None
    for number, stage in enumerate(stages):
        stream = names.setdefault(id(stage.stream), f"stream{len(names)}")
        reads = [f"batch{number - 1}"] if number else []
        plan.task(stage.name, stage=number, stream=stream, reads=reads, writes=[f"batch{number}"])
        if previous is not None:
            plan.needs(stage.name, previous)
        previous = stage.name
    if train and previous is not None:
        plan.task("Train", stage=len(stages), reads=[f"batch{len(stages) - 1}"], writes=["weights"])
        plan.buffer("weights", scope="shared").needs("Train", previous)
    return plan


def from_schedule(schedule: Any) -> dict[str, Any]:
    """The plan of a schedule of torch.distributed.pipelining: the actions of each rank, with their messages if the
    schedule has them."""
    order = getattr(schedule, "pipeline_order_with_comms", None) or getattr(schedule, "pipeline_order", None)
    if not order and hasattr(schedule, "_get_pipeline_order"):
        order = schedule._get_pipeline_order()  # pylint: disable=protected-access
    if not order:
        raise UsageError(f"{type(schedule).__name__} lists no actions of ranks (pipeline_order)")
    rows = [",".join("" if action is None else str(action) for action in order[rank]) for rank in sorted(order)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"{type(schedule).__name__}.csv")
        pathlib.Path(path).write_text("\n".join(rows) + "\n", encoding="utf-8")
        return canonical(path)


def from_megatron(parallel_state: Any, microbatches: int, *, messages: Optional[str] = "batch",
                  grad_reduce: str = "end") -> dict[str, Any]:
    """The plan of a step of Megatron-LM: its schedule, its messages, and the groups of all ranks. `parallel_state` is
    megatron.core.parallel_state after initialize_model_parallel. `messages`: batch, odd_even, overlap_p2p or
    overlap_p2p_flush, as the options of Megatron are; None: one by one. `grad_reduce`: none, end, stage or overlap."""

    def size(name: str) -> int:
        ask = getattr(parallel_state, f"get_{name}_world_size", None)
        if ask is None:
            raise UsageError(f"{parallel_state!r} has no get_{name}_world_size, as megatron.core.parallel_state has")
        return int(ask() or 1)

    ranks, chunks = size("pipeline_model_parallel"), size("virtual_pipeline_model_parallel")
    generate: dict[str, Any] = {"schedule": "interleaved_1f1b" if chunks > 1 else "1f1b", "ranks": ranks,
                                "microbatches": microbatches}
    generate.update({"chunks": chunks} if chunks > 1 else {})
    generate.update({"megatron": messages} if messages is not None else {})
    replicas, experts = size("data_parallel"), size("expert_model_parallel")
    parallel = {"tp": size("tensor_model_parallel"), "cp": size("context_parallel"), "ep": experts,
                "dp": replicas, "pp": ranks, "order": "tp-cp-ep-dp-pp", "grad_reduce": grad_reduce}
    return canonical({"swplan": 1, "name": "megatron", "generate": generate,
                      "parallel": {key: value for key, value in parallel.items() if value != 1}})

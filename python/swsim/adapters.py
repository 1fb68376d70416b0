# SPDX-License-Identifier: Apache-2.0
"""Plans from the objects of TorchRec and PyTorch. Nothing is imported here: only attributes of the objects are read."""
from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any

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


def from_torchrec(pipeline: Any) -> dict[str, Any]:
    """The plan of a pipeline of TorchRec, by the class that the object has or is derived from. The times in it are
    examples; verify looks at none. What an own subclass does otherwise is not in it."""
    for base in type(pipeline).__mro__:
        if base.__name__ in _TORCHREC:
            plan = canonical(_plans() / "torchrec" / f"{_TORCHREC[base.__name__]}.yaml")
            plan["name"] = type(pipeline).__name__
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

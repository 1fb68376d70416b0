# SPDX-License-Identifier: Apache-2.0
"""The names of the SWPipeline reference on this engine: a program that uses it runs with its import line changed.

    from swsim.swpipeline import PipelineTask, TaskSchedule, PipelinePlan, SWPipeline, DataFlowPipeline, TaskProfiler

What differs: every plan is proved when its pipeline is made, so a plan that must hang is refused. `device` is the number of
a GPU, as there; where PyTorch sees no GPU, tasks compute on the host, and streams order nothing. device="host" asks for that.
Streams are PyTorch's, or None for the default one.
"""
from __future__ import annotations

import contextlib
import dataclasses
import statistics
import sys
import time
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Union

from .errors import TaskError
from .pipeline import Context as IterContext
from .pipeline import Pipeline
from .plan import Plan

__all__ = ["DataFlowPipeline", "DeclaredIO", "IterContext", "PipelinePlan", "PipelineTask", "ProfileResult", "SWPipeline",
           "TaskProfiler", "TaskSchedule"]


@dataclasses.dataclass
class DeclaredIO:
    """State outside the context that a task reads and writes: how to copy it, and how to put a copy back."""

    capture: Callable[[], Any]
    restore: Callable[[Any], None]


@dataclasses.dataclass(eq=False)
class PipelineTask:
    """A unit of work. Tasks of one name are one task."""

    name: str
    fn: Callable[[IterContext], Any]
    io: list[DeclaredIO] = dataclasses.field(default_factory=list)

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PipelineTask) and other.name == self.name


TaskRef = Union[PipelineTask, str]


def _name(task: TaskRef) -> str:
    return task if isinstance(task, str) else task.name


@dataclasses.dataclass
class TaskSchedule:
    """When and where a task runs."""

    stage: int = 0
    stream: Any = None
    thread_group: str = "default"
    globally_ordered: bool = False


@dataclasses.dataclass
class PipelinePlan:
    """Tasks with their schedules, and what each of them needs: (task, needed task)."""

    schedule: dict[PipelineTask, TaskSchedule]
    intra_iter_deps: Sequence[tuple[TaskRef, TaskRef]] = ()
    inter_iter_deps: Sequence[tuple[TaskRef, TaskRef]] = ()
    pipeline_depth: Optional[int] = None

    def to_plan(self, name: str = "pipeline") -> tuple[Plan, dict[str, Any]]:
        """The plan as swsim has it, and the streams by their names in it."""
        plan, streams = Plan(name), {}
        numbers: dict[int, str] = {}
        for task, schedule in self.schedule.items():
            keys: dict[str, Any] = {"stage": schedule.stage, "thread_group": schedule.thread_group}
            if schedule.globally_ordered:
                keys["globally_ordered"] = True
            if schedule.stream is not None:
                keys["stream"] = numbers.setdefault(id(schedule.stream), f"stream{len(numbers)}")
                streams[keys["stream"]] = schedule.stream
            plan.task(task.name, **keys)
        for needing, needed in self.intra_iter_deps:
            plan.needs(_name(needing), _name(needed))
        for needing, needed in self.inter_iter_deps:
            plan.needs(_name(needing), _name(needed), 1)
        return plan, streams


def _has_gpu() -> bool:
    """True if PyTorch is there and sees a GPU."""
    torch: Any = sys.modules.get("torch")  # a program with streams of PyTorch has imported it
    return torch is not None and bool(torch.cuda.is_available())


def _emit_nvtx(wanted: bool) -> Any:
    """The context in which PyTorch names kernels of the backward pass for Nsight Systems."""
    if not wanted:
        return contextlib.nullcontext()
    torch: Any = sys.modules.get("torch")
    if torch is None:
        raise ValueError("emit_nvtx needs PyTorch, which the program has not imported")
    return torch.autograd.profiler.emit_nvtx() if torch.cuda.is_available() else contextlib.nullcontext()


class _PipelineBase:
    """What both pipelines have."""

    driver = "clock"

    def __init__(self, plan: PipelinePlan, device: Union[int, str] = 0, max_depth: int = 0):
        if device != "host" and (isinstance(device, bool) or not isinstance(device, int) or device < 0):
            raise ValueError(f"found device {device!r}, expected the number of a GPU or \"host\"")
        on_gpu = device != "host" and _has_gpu()
        if on_gpu:
            sys.modules["torch"].cuda.set_device(device)
        self.plan, self.device = plan, device if on_gpu else "host"
        text, streams = plan.to_plan()
        groups = {schedule.thread_group for schedule in plan.schedule.values()}
        self.pipeline = Pipeline(text, {task.name: task.fn for task in plan.schedule}, driver=self.driver,
                                 device="cuda" if on_gpu else "host", max_depth=max_depth,
                                 threads="workers" if len(groups) > 1 else "caller", streams=streams if on_gpu else None)
        self.pipeline.shortcuts.io = {task.name: list(task.io) for task in plan.schedule}
        self._started = False

    def fill_pipeline(self, data_iter: Iterable[Any]) -> Iterator[Any]:
        """Fetch batches and begin. RuntimeError if it is filled already."""
        if self._started:
            raise RuntimeError("the pipeline is filled: drain it first")
        iterator = iter(data_iter)
        self.pipeline.fill(iterator)
        self._started = True
        return iterator

    def progress(self, data_iter: Optional[Iterator[Any]] = None) -> int:
        """Retire the oldest iteration and return its number. StopIteration: none is left."""
        try:
            contexts = self.pipeline.progress(more=data_iter is not None)
        except TaskError as error:
            self._started = False
            raise RuntimeError(str(error)) from error
        if not contexts:
            self._started = False
            raise StopIteration
        return contexts[0].iteration

    def drain(self) -> None:
        """Retire what is in flight. The pipeline can be filled again."""
        self.pipeline.drain()
        self._started = False

    def run(self, data_iter: Iterable[Any], verbose: bool = False, emit_nvtx: bool = False) -> float:
        """Run all data through the pipeline. Returns seconds."""
        begin = time.perf_counter()
        with _emit_nvtx(emit_nvtx):
            count = sum(1 for _ in self.pipeline.run(data_iter))
        return self._told("pipelined", count, time.perf_counter() - begin, verbose)

    def run_serial(self, data_iter: Iterable[Any], verbose: bool = False, emit_nvtx: bool = False) -> float:
        """Run one task after another. Returns seconds."""
        begin, count = time.perf_counter(), 0
        with _emit_nvtx(emit_nvtx):
            for count, batch in enumerate(data_iter, 1):
                self.pipeline.run_one_serial([batch], count - 1)
        return self._told("serial", count, time.perf_counter() - begin, verbose)

    @staticmethod
    def _told(kind: str, count: int, seconds: float, verbose: bool) -> float:
        if verbose and count:
            print(f"{kind}: {count} iterations, {1e3 * seconds / count:.3f} ms each")
        return seconds

    def run_one_serial_iter(self, batch: Any, iter_idx: int = 0) -> None:
        """One iteration, one task after another."""
        self.pipeline.run_one_serial([batch], iter_idx)

    def enable_shortcut(self, *names: str) -> None:
        """Keep what these tasks do when they run next, and leave them out from then on."""
        for name in names:
            if name not in self.pipeline.task_names:
                raise ValueError(f"there is no task '{name}'")
            self.pipeline.shortcuts.enable(name)

    def disable_shortcut(self, *names: str) -> None:
        """Run these tasks again; without names all."""
        for name in names or (None,):
            self.pipeline.shortcuts.disable(name)

    def format_schedule(self, num_periods: int = 0) -> str:
        """Which iteration each task works on, period by period."""
        return self.pipeline.format_schedule(num_periods)

    def print_schedule(self, num_periods: int = 0) -> None:
        """Print format_schedule."""
        print(self.format_schedule(num_periods))

    def print_stage_analysis(self) -> None:
        """Print the least depth, and the order of submission."""
        print(self.pipeline.format_stage_analysis())

    def close(self) -> None:
        """Stop what is in flight."""
        self.pipeline.close()

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(device={self.device!r}, depth={self.pipeline.depth}, "
                f"tasks={self.pipeline.task_names})\n\n{self.format_schedule()}")


class SWPipeline(_PipelineBase):
    """The clock-driven pipeline: each period submits every task once."""


class DataFlowPipeline(_PipelineBase):
    """The data-flow pipeline: a task begins when what it needs is there. Stages are not looked at."""

    driver = "dataflow"

    def __init__(self, plan: PipelinePlan, max_depth: int, device: Union[int, str] = 0):
        super().__init__(plan, device, max_depth)


@dataclasses.dataclass
class ProfileResult:
    """Time of a serial iteration, and how much shorter it is without each task, in seconds."""

    baseline_s: float
    exposed_s: dict[str, float]

    def print_report(self) -> None:
        """A table of the tasks."""
        print(f"Baseline serial iteration: {1e3 * self.baseline_s:.3f} ms\n")
        rows = [*self.exposed_s.items(), ("SUM", sum(self.exposed_s.values()))]
        print(f"{'Task':24}  {'Exposed':>10}  {'% baseline':>12}")
        for name, seconds in rows:
            share = 100 * seconds / self.baseline_s if self.baseline_s else 0.0
            print(f"{name:24}  {1e3 * seconds:8.3f}ms  {share:11.1f}%")


class TaskProfiler:
    """Measures the exposed time of each task: the time of a serial iteration less that with the task short-cut."""

    def __init__(self, pipeline: _PipelineBase):
        self.pipeline = pipeline

    def _measure(self, batch: Any, iterations: int, rounds: int) -> float:
        times = []
        for _ in range(rounds):
            begin = time.perf_counter()
            for iteration in range(iterations):
                self.pipeline.run_one_serial_iter(batch, iteration)
            times.append((time.perf_counter() - begin) / iterations)
        return statistics.median(times)

    def profile(self, batch: Any, num_warmup: int = 3, num_measure: int = 10, num_rounds: int = 3,
                skip_tasks: Optional[set[str]] = None) -> ProfileResult:
        """Measure with this batch. `skip_tasks` are never short-cut."""
        self._measure(batch, num_warmup, 1)
        baseline = self._measure(batch, num_measure, num_rounds)
        exposed = {}
        for name in self.pipeline.pipeline.task_names:
            if name not in (skip_tasks or set()):
                self.pipeline.enable_shortcut(name)
                self.pipeline.run_one_serial_iter(batch)
                exposed[name] = max(0.0, baseline - self._measure(batch, num_measure, num_rounds))
                self.pipeline.disable_shortcut(name)
        return ProfileResult(baseline, exposed)

    def profile_many(self, batches: Iterable[Any], **options: Any) -> list[ProfileResult]:
        """A profile for each batch."""
        return [self.profile(batch, **options) for batch in batches]

# SPDX-License-Identifier: Apache-2.0
"""swsim: prove, predict, tune and draw plans of overlapped GPU training, and run them.

    import swsim

    verdict = swsim.verify("train.yaml")       # a path, a text, a dictionary or a swsim.Plan
    if not verdict:
        print(verdict)                         # what goes wrong, step by step
        print(verdict.diff)                    # a repair that has been proved
    print(swsim.predict("train.yaml")[0])      # how long an iteration takes, and why

Options of a function that it does not name are those of the command of its name (`swsim verify --help`), written with
underscores: swsim.verify(plan, no_fix=True, limit="time=2s"). `progress` is called with a line of text now and then.
Wrong plans raise PlanError, which has file, line and column. KeyboardInterrupt ends a question at once.
"""
from __future__ import annotations

import json
import os
import subprocess
import tempfile
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from . import _program
from ._program import Option, Progress, arguments, ask, program
from .errors import Error, LimitError, PlanError, Problem, TaskError, UsageError
from .plan import Plan, PlanLike, canonical, plan_text, plan_words
from .results import Imported, PathLike, Prediction, Run, Tuning, Verdict, render

__all__ = ["Error", "Imported", "LimitError", "Pipeline", "Plan", "PlanError", "Prediction", "Problem", "Run", "TaskError",
           "Tuning", "UsageError", "Verdict", "canonical", "from_megatron", "from_schedule", "from_staged", "from_torchrec", "import_dump",
           "import_trace", "predict", "program", "record", "render", "runs", "schema", "schema_names", "tune", "verify", "version", "what_if"]


def version() -> str:
    """The release of the program."""
    return subprocess.run([program(), "--version"], capture_output=True, check=True, text=True).stdout.split()[-1]


def _read(path: str) -> Optional[str]:
    """The text of a file; None if it was not written."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def verify(plan: PlanLike, *, driver: Optional[str] = None, faults: bool = False,
           properties: Optional[Iterable[str]] = None, progress: Optional[Progress] = None, **options: Option) -> Verdict:
    """Prove the plan or refute it: no deadlock, no race, collectives in one order, in every interleaving. With
    expect=True it is compared with the plan's `expect:`, and `problems` has what differs."""
    words, text = plan_words(plan)
    folder = tempfile.TemporaryDirectory(prefix="swsim.")  # pylint: disable=consider-using-with
    repaired, witness = os.path.join(folder.name, "repaired.yaml"), os.path.join(folder.name, "witness.db")
    fix = None if options.get("no_fix") else repaired
    answer = ask(["verify", words, *arguments({"driver": driver, "faults": faults, "property": properties, "fix": fix,
                                               "witness": witness, **options})], text, progress)
    return Verdict(answer.documents, _read(repaired), answer.messages, answer.problems, folder)


def predict(plan: PlanLike, *, driver: Optional[str] = None, iterations: Optional[int] = None,
            jitter: Union[str, None] = None, progress: Optional[Progress] = None, **options: Option) -> list[Prediction]:
    """Simulate the plan: how long an iteration takes, and what every stream waits for. One prediction for each driver."""
    words, text = plan_words(plan)
    asked: dict[str, Option] = {"iterations": iterations, "jitter": jitter, **options}
    answer = ask(["predict", words, *arguments({"driver": driver, **asked})], text, progress)
    return [Prediction(document, (plan, asked)) for document in answer.documents]


def what_if(plan: PlanLike, changes: Union[Mapping[str, str], Sequence[str]], *, driver: Optional[str] = None,
            iterations: Optional[int] = None, progress: Optional[Progress] = None, **options: Option) -> list[Prediction]:
    """Predict the plan as it is, with each change alone, and with all of them: {"Forward": "0.8x", "H2D": "2ms"}. The
    documents have `what_if`, and `difference_ns` to the plan as it is."""
    words, text = plan_words(plan)
    items = [f"{task}={change}" for task, change in changes.items()] if isinstance(changes, Mapping) else list(changes)
    answer = ask(["predict", words, *(f"--what-if={item}" for item in items),
                  *arguments({"driver": driver, "iterations": iterations, **options})], text, progress)
    return [Prediction(document) for document in answer.documents]


def tune(plan: PlanLike, *, driver: Optional[str] = None, budget: Optional[int] = None, memory: Union[str, int, None] = None,
         progress: Optional[Progress] = None, **options: Option) -> Tuning:
    """Search a better plan. Only plans that are proved are taken."""
    words, text = plan_words(plan)
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "tuned.yaml")
        answer = ask(["tune", words, *arguments({"driver": driver, "budget": budget, "memory": memory, "output": output,
                                                 **options})], text, progress)
        return Tuning(answer.documents[0], _read(output) or plan_text(plan))


def _import(files: Union[PathLike, Iterable[PathLike]], output: Optional[PathLike], progress: Optional[Progress],
            options: Mapping[str, Option]) -> Imported:
    listed = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    with tempfile.TemporaryDirectory() as folder:
        path = os.fspath(output) if output is not None else os.path.join(folder, "job.yaml")
        answer = ask(["import", *(os.fspath(file) for file in listed), "--report", *arguments({"output": path, **options})], None, progress)
        return Imported(_read(path) or "", answer.documents[0], answer.messages)


def import_trace(files: Union[PathLike, Iterable[PathLike]], output: Optional[PathLike] = None, *,
                 form: Optional[str] = None, progress: Optional[Progress] = None, **options: Option) -> Imported:
    """Make a plan of the traces of a job: files or folders of PyTorch's profiler, Nsight Systems, or `swsim record`."""
    return _import(files, output, progress, {"form": form, **options})


def import_dump(files: Union[PathLike, Iterable[PathLike]], output: Optional[PathLike] = None, *, host_waits: bool = False,
                progress: Optional[Progress] = None, **options: Option) -> Imported:
    """Make a plan of the dumps of a hang by PyTorch's flight recorder, one file for each rank."""
    return _import(files, output, progress, {"host_waits": host_waits, **options})


def record(command: Sequence[str], output: PathLike = "recording.swr", **options: Option) -> str:
    """Run a program and record what its threads call of CUDA and NCCL. Returns the path of the recording, which
    import_trace reads. The program's output goes where this process's goes; if it fails, that is a UsageError."""
    words = [program(), "record", *arguments({"output": output, **options}), "--", *command]
    code = subprocess.run(words, check=False).returncode
    if code != 0:
        raise UsageError(f"swsim record ended with exit code {code}: {' '.join(command)}")
    return os.fspath(output)


def runs(store: PathLike) -> list[Run]:
    """The runs in a trace store, oldest first."""
    return [Run(store, document) for document in _program.ask(["runs", os.fspath(store)]).documents]


def schema(name: str) -> list[Any]:
    """The JSON Schema of plans ("plan"), or of the document of an answer ("verdict", "prediction", ...)."""
    answer = ask(["schema", name])
    try:
        return answer.documents
    except ValueError:
        return [json.loads(answer.output)]


def schema_names() -> list[str]:
    """The names that `schema` takes, of JSON Schemas."""
    return [str(one["name"]) for one in ask(["schema"]).documents[0]["documents"] if one["name"] != "store"]


from .adapters import from_megatron, from_schedule, from_staged, from_torchrec  # noqa: E402  pylint: disable=wrong-import-position
from .pipeline import Pipeline  # noqa: E402  pylint: disable=wrong-import-position

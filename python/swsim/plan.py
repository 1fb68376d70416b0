# SPDX-License-Identifier: Apache-2.0
"""Plans: from a path, a text, a dictionary, or built by calls."""
from __future__ import annotations

import json
import os
from typing import Any, Mapping, Union

from . import _program
from .errors import UsageError

PlanLike = Union["Plan", Mapping[str, Any], str, "os.PathLike[str]"]


class Plan:
    """A plan of the pipeline form, built by calls. Keys and values are those of swplan(5):

        plan = (Plan("train", retire="device")
                .task("H2D", stage=0, stream="memcpy", writes=["batch"])
                .task("Forward", stage=1, reads=["batch"])
                .needs("Forward", "H2D"))

    A fault in it is found when it is used, by the program, and is a PlanError."""

    def __init__(self, name: str = "plan", **keys: Any):
        self._keys: dict[str, Any] = {"swplan": 1, "name": name, **keys}

    def set(self, **keys: Any) -> "Plan":
        """Keys of the plan itself: ranks=2, driver="clock", machine={...}."""
        self._keys.update(keys)
        return self

    def _put(self, where: str, name: str, keys: Any) -> "Plan":
        self._keys.setdefault(where, {}).setdefault(name, {}).update(keys)
        return self

    def task(self, name: str, **keys: Any) -> "Plan":
        """A task, or more keys of one: stage, stream, thread_group, time, reads, writes, work, ..."""
        return self._put("schedule", name, keys)

    def buffer(self, name: str, **keys: Any) -> "Plan":
        """A buffer: scope="shared", bytes="4 MiB"."""
        return self._put("buffers", name, keys)

    def stream(self, name: str, **keys: Any) -> "Plan":
        """Keys of a stream."""
        return self._put("streams", name, keys)

    def comm(self, name: str, ranks: list[int]) -> "Plan":
        """A communicator and its ranks."""
        self._keys.setdefault("comms", {})[name] = ranks
        return self

    def needs(self, task: str, on: str, distance: int = 0) -> "Plan":
        """`task` of iteration i needs `on` of iteration i - distance."""
        if distance == 0:
            self._keys.setdefault("intra_iter_deps", []).append([task, on])
        else:
            edge = [task, on] if distance == 1 else [task, on, distance]
            self._keys.setdefault("inter_iter_deps", []).append(edge)
        return self

    def to_dict(self) -> dict[str, Any]:
        """A copy as a dictionary."""
        copy: dict[str, Any] = json.loads(json.dumps(self._keys))
        return copy

    def __str__(self) -> str:
        return json.dumps(self._keys, indent=2)

    def __repr__(self) -> str:
        return f"<swsim.Plan {self._keys['name']}, {len(self._keys.get('schedule', {}))} tasks>"


def plan_words(plan: PlanLike) -> tuple[str, Union[str, None]]:
    """What names the plan on a command line, and what goes to its standard input.

    A string that has a line's end, or begins with a brace, is the text of a plan; any other one is a path."""
    try:
        if isinstance(plan, Plan):
            return "-", str(plan)
        if isinstance(plan, Mapping):
            return "-", json.dumps(plan)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the plan has a value that JSON does not have: {error}") from error
    if not isinstance(plan, (str, os.PathLike)):
        raise UsageError(f"found {type(plan).__name__}, expected a plan: a path, a text, a dictionary or a swsim.Plan")
    if isinstance(plan, str) and ("\n" in plan or plan.lstrip().startswith("{")):
        return "-", plan
    return os.fspath(plan), None


def plan_text(plan: PlanLike) -> str:
    """The text of a plan, as it was written."""
    path, text = plan_words(plan)
    if text is not None:
        return text
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}") from error


def canonical(plan: PlanLike) -> dict[str, Any]:
    """The plan as `swsim export` prints it, all keys in their usual order and no defaults."""
    path, text = plan_words(plan)
    document: dict[str, Any] = _program.ask(["export", path], text).documents[0]
    return document

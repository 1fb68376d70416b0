# SPDX-License-Identifier: Apache-2.0
"""What can go wrong: one exception for each exit code of the program."""
from __future__ import annotations

import dataclasses
from typing import Optional, Sequence


@dataclasses.dataclass(frozen=True)
class Problem:
    """One error of a plan or another input, and its place: lines and columns begin with 1; None means no place."""

    text: str
    file: Optional[str] = None
    line: Optional[int] = None
    column: Optional[int] = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return f"{place}: {self.text}" if place else self.text


class Error(Exception):
    """Base of all errors of this package. `problems` has all of them, `file`, `line`, `column` are those of the first."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()):
        super().__init__(message)
        self.problems = tuple(problems)
        first = self.problems[0] if self.problems else Problem(message)
        self.file, self.line, self.column = first.file, first.line, first.column


class UsageError(Error):
    """The question cannot be asked so: an unknown option, a value out of range, a file that cannot be opened."""


class PlanError(Error):
    """The plan, or another input, is wrong."""


class LimitError(Error):
    """A limit was reached, or the question was interrupted, before there was any answer."""


class TaskError(Error):
    """A pipeline failed for a reason that is not an exception of a task."""

# SPDX-License-Identifier: Apache-2.0
"""Run the program `swsim` and read the JSON that it prints.

Each question is a process. It ends on KeyboardInterrupt, holds no lock of the interpreter, and cannot take the
interpreter with it. A question costs a few milliseconds more than the work itself.
"""
from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from typing import IO, Any, Callable, Iterable, Mapping, NoReturn, Optional, Union

from .errors import LimitError, PlanError, Problem, UsageError

Progress = Callable[[str], None]
Option = Union[None, bool, int, float, str, "os.PathLike[str]", Iterable[Union[str, int]]]

_OK, _VIOLATED, _REFUSED, _INPUT, _LIMIT = range(5)  # the exit codes of the program


def program(name: str = "swsim") -> str:
    """The path of a program of the package: where pip installed it, else in PATH."""
    try:
        files = importlib.metadata.distribution("swsim").files or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = str(file.locate())
        if file.name == name and os.access(path, os.X_OK):
            return os.path.realpath(path)
    found = shutil.which(name)
    if found is None:
        raise UsageError(f"the program {name} is neither in the installed package swsim nor in PATH")
    return found


def arguments(options: Mapping[str, Option]) -> list[str]:
    """Options of the command: limit="time=2s", no_fix=True. None and False are left out."""
    out = []
    for key, value in options.items():
        name = "--" + key.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            out.append(name)
        elif isinstance(value, (str, int, float, os.PathLike)):
            out.append(f"{name}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
        else:
            out.append(f"{name}={','.join(str(item) for item in value)}")
    return out


def _read_messages(stream: IO[bytes], progress: Optional[Progress], out: list[str]) -> None:
    """Sort the lines of standard error: a line of progress begins with a tab and is no message."""
    for line in stream:
        text = line.decode(errors="replace")
        if not text.startswith("\t"):
            out.append(text)
        elif progress is not None:
            progress(text.strip())


def _finish(process: "subprocess.Popen[bytes]", reader: threading.Thread) -> bytes:
    """The whole output. On KeyboardInterrupt the process ends first, by one signal."""
    assert process.stdout is not None
    try:
        output = process.stdout.read()
        process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        process.wait()
        raise
    finally:
        reader.join()
    return output


def _has_errors(document: Any) -> bool:
    return bool(str(document.get("schema", "")).startswith("swsim.errors/"))


class Answer:
    """What a command printed: its output, its messages, and its exit code."""

    def __init__(self, code: int, output: bytes, messages: str):
        self.code, self.output, self.messages = code, output, messages

    @property
    def _objects(self) -> list[Any]:
        lines = self.output.decode(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    @property
    def documents(self) -> list[Any]:
        """The JSON objects of the output, one for each line, but for the errors."""
        return [one for one in self._objects if not _has_errors(one)]

    @property
    def problems(self) -> list[Problem]:
        """The errors in the output. Also a question that is answered can have some: a verdict that the plan does not
        expect."""
        return [Problem(error["text"], error["file"], error["line"], error["column"])
                for one in self._objects if _has_errors(one) for error in one["errors"]]

    def fail(self) -> NoReturn:
        """Raise the exception that the exit code stands for."""
        problems = self.problems
        text = "\n".join(str(problem) for problem in problems) or self.messages.strip() or f"exit code {self.code}"
        kind = {_INPUT: PlanError, _LIMIT: LimitError}.get(self.code, UsageError)
        raise kind(text, problems)


def ask(words: list[str], text: Optional[str] = None, progress: Optional[Progress] = None) -> Answer:
    """Run `swsim WORDS --json`, with `text` as its standard input. A violated plan and a question that was cut short
    have an answer, too; anything else is an exception.

    The process has a session of its own, so that Ctrl-C on a terminal reaches it once, from here."""
    words = [*words, "--json"] + ([] if progress is None else ["--progress=always"])
    messages: list[str] = []
    with tempfile.TemporaryFile() as given:
        given.write((text or "").encode())
        given.seek(0)
        with subprocess.Popen([program(), *words], stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              start_new_session=True) as process:
            assert process.stderr is not None
            reader = threading.Thread(target=_read_messages, args=(process.stderr, progress, messages), daemon=True)
            reader.start()
            output = _finish(process, reader)
    answer = Answer(process.returncode, output, "".join(messages))
    if answer.code not in (_OK, _VIOLATED) and (answer.code != _LIMIT or not answer.documents):
        answer.fail()
    return answer

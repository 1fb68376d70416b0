# SPDX-License-Identifier: Apache-2.0
"""Answers: verdicts, predictions, searches, imports and stored runs, with a view for notebooks."""
from __future__ import annotations

import contextlib
import html
import os
import pathlib
import tempfile
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from . import _program
from .errors import Problem, UsageError
from .plan import PlanLike, plan_words

if TYPE_CHECKING:
    from ._documents import ImportDocument, PredictionDocument, RunDocument, TuningDocument, VerdictDocument

_WORST = ["violated", "undecided", "proved"]
_COLOURS = {"violated": "#b3261e", "undecided": "#8a6d00", "proved": "#1b6e3c"}
PathLike = Union[str, "os.PathLike[str]"]


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """An HTML table."""
    cells = ["".join(f"<td style='text-align:left'>{html.escape(str(cell))}</td>" for cell in row) for row in rows]
    return ("<table><tr>" + "".join(f"<th style='text-align:left'>{html.escape(word)}</th>" for word in head) + "</tr>"
            + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>")


def _picture(svg: str) -> str:
    """A picture as an element of a page, as wide as the page at most."""
    return ("<div style='overflow-x:auto;background:#fff'>" + svg[svg.index("<svg"):].replace("<svg ", "<svg style='max-width:100%;height:auto' ", 1)
            + "</div>")


def render(what: PlanLike, output: Optional[PathLike] = None, format: Optional[str] = None, run: Optional[int] = None,
           **options: _program.Option) -> str:
    """Draw a plan, or a run of a trace store. Without `output` the picture is returned as text: `format` is svg (the
    default), html or json. With it the file is written and its path returned. Other options are those of the command:
    rank="0-3", iterations="10..14", theme="dark"."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.fspath(output) if output is not None else os.path.join(folder, "picture." + (format or "svg"))
        words, text = plan_words(what)
        _program.ask(["render", words, f"--output={path}",
                      *_program.arguments({"run": run, "format": format if output is not None else None, **options})],
                     text)
        return path if output is not None else pathlib.Path(path).read_text(encoding="utf-8")


class Verdict:
    """What `swsim verify` found out. `documents` has one object for each driver; the other attributes are about the
    driver whose verdict is worst. True in a condition if the plan is proved."""

    def __init__(self, documents: Sequence["VerdictDocument"], repaired: Optional[str], messages: str,
                 problems: Sequence[Problem] = (), folder: Optional["tempfile.TemporaryDirectory[str]"] = None):
        self.documents, self.messages = tuple(documents), messages
        self.problems = tuple(problems)  # with expect=True: what is not as the plan expects, with its place
        self._folder = folder  # has the counterexamples in witness.db, and goes with this object
        self.document = min(self.documents, key=lambda document: _WORST.index(document["verdict"]))
        self.repair = repaired  # the repaired plan as text; None: no repair was found, or none is needed

    @property
    def verdict(self) -> str:
        """proved, violated or undecided."""
        return self.document["verdict"]

    @property
    def proved(self) -> bool:
        """True if the plan is proved under each driver that was asked for."""
        return self.verdict == "proved"

    def __bool__(self) -> bool:
        return self.proved

    @property
    def properties(self) -> dict[str, str]:
        """The outcome of each property: proved, always, some, undecided, not applicable."""
        return dict(self.document["properties"])  # type: ignore[arg-type]

    @property
    def coverage(self) -> Any:
        """What the verdict is about: how many tasks say what they access, and what was not asked."""
        return self.document["coverage"]

    @property
    def violation(self) -> Optional[str]:
        """The violated property whose story is told; None."""
        return self.document["violation"]

    @property
    def sentence(self) -> Optional[str]:
        """What goes wrong, in one sentence; None."""
        return self.document["sentence"]

    @property
    def story(self) -> Any:
        """The steps to the violation: step, rank, agent, action, task, iteration."""
        return self.document["witness"] or []

    @property
    def blocked(self) -> Any:
        """Who is blocked in the end, and on what."""
        return self.document["blocked"] or []

    def render(self, output: Optional[PathLike] = None, format: Optional[str] = None, **options: _program.Option) -> str:
        """The counterexample as a storyboard, as swsim.render draws it. UsageError: there is none."""
        store = os.path.join(self._folder.name, "witness.db") if self._folder is not None else ""
        if not os.path.exists(store):
            raise UsageError(f"{self!r} has no counterexample to draw")
        drivers = [document["driver"] for document in self.documents if document["verdict"] == "violated"]
        return render(store, output, format, run=1 + drivers.index(self.document["driver"]), **options)

    def _places(self) -> list[str]:
        """Where the operations at fault are: "A(0): on stream s, pushed by thread t, line 9"."""
        out = []
        for one in self.document["operations"]:
            pushed = f", pushed by {one['pushed_by']}" if one["pushed_by"] else ""
            out.append(f"{one['operation']}: on {one['agent']}{pushed}" + (f", line {one['line']}" if one["line"] else ""))
        return out

    @property
    def _fix(self) -> Optional[dict[str, Any]]:
        fixes = [document["fix"] for document in self.documents if document["fix"]]
        return dict(fixes[0]) if fixes else None

    @property
    def change(self) -> Optional[str]:
        """What the repair changes, in words; None."""
        fix = self._fix
        return None if fix is None else str(fix["change"])

    @property
    def diff(self) -> Optional[str]:
        """The repair as a diff of the plan; None."""
        fix = self._fix
        return None if fix is None else str(fix["diff"])

    def __repr__(self) -> str:
        return f"<swsim.Verdict {self.document['plan']}: {self.verdict}{', ' + self.violation if self.violation else ''}>"

    def __str__(self) -> str:
        lines = [f"{self.document['plan']}: {self.verdict}"]
        if self.sentence:
            lines += [f"{self.violation}: {self.sentence}", *("  " + where for where in self._places())]
        lines += [f"  {step['step']}. {step['agent']} {step['action']}" for step in self.story]
        lines += [f"  blocked: {agent['agent']} {agent['waits_for']}" for agent in self.blocked]
        if self.diff:
            lines += [f"Fix (proved): {self.change}", self.diff]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        out = [f"<p><b>{html.escape(self.document['plan'])}</b>: "
               f"<b style='color:{_COLOURS[self.verdict]}'>{self.verdict}</b></p>"]
        if self.sentence:
            out.append(f"<p>{html.escape(str(self.violation))}: {html.escape(self.sentence)}</p>")
            out += [f"<p>{html.escape(where)}</p>" for where in self._places()]
        if self.story:
            with contextlib.suppress(UsageError):  # too long to be drawn
                out.append(_picture(self.render()))
            out.append(f"<details><summary>{len(self.story)} steps</summary>"
                       + _table(["step", "who", "does", "line"],
                                [[step["step"], step['agent'], step["action"], step["line"] or ""] for step in self.story])
                       + "</details>")
        if self.blocked:
            out.append(_table(["blocked", "because", "line"],
                              [[agent['agent'], agent["waits_for"], agent["line"] or ""] for agent in self.blocked]))
        if self.diff:
            out.append(f"<p>Fix (proved): {html.escape(str(self.change))}</p><pre>{html.escape(self.diff)}</pre>")
        return "".join(out)


class Prediction:
    """What `swsim predict` found out under one driver: `document` has all of it."""

    def __init__(self, document: "PredictionDocument", question: Optional[tuple[PlanLike, dict[str, Any]]] = None):
        self.document, self._question = document, question

    @property
    def driver(self) -> str:
        """clock, dataflow or none."""
        return self.document["driver"]

    @property
    def iteration_ns(self) -> Any:
        """Time of an iteration: mean, p50, p95, p99 and their intervals."""
        return self.document["iteration_ns"]

    @property
    def streams(self) -> Any:
        """For each stream how long it is busy, and why it is idle."""
        return self.document["streams"]

    @property
    def within(self) -> Optional[bool]:
        """True if it keeps the bounds of max_iteration="11ms" and expect=True; None if neither was given."""
        return self.document.get("within")

    def rows(self) -> list[dict[str, Any]]:
        """A row for each stream: its share of busy time, and of idle time by cause."""
        return [{"stream": name, "busy": stream["busy"], **stream["stall"]} for name, stream in self.streams.items()]

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame."""
        import pandas  # pylint: disable=import-outside-toplevel,import-error

        return pandas.DataFrame(self.rows()).set_index("stream")

    def timeline(self, format: str = "svg", **options: Any) -> str:
        """The simulated run as a picture, text of SVG or HTML. Options are those of render."""
        if self._question is None:
            raise UsageError("only a prediction of a plan as it is has a timeline")
        plan, asked = self._question
        words, text = plan_words(plan)
        with tempfile.TemporaryDirectory() as folder:
            store = os.path.join(folder, "run.db")
            asked = {**asked, "driver": None if self.driver == "none" else self.driver}
            _program.ask(["predict", words, "--quiet", f"--db={store}", *_program.arguments(asked)], text)
            return render(store, format=format, **options)

    def __repr__(self) -> str:
        mean = self.iteration_ns["mean"] if self.iteration_ns else None
        makespan = self.document["makespan_ns"] or 0
        time = f"{mean / 1e6:.3f} ms an iteration" if mean is not None else f"{makespan / 1e6:.3f} ms"
        return f"<swsim.Prediction {self.document['plan']}, {self.driver}: {time}>"

    def _repr_html_(self) -> str:
        rows = [[row["stream"], *(f"{100 * (share or 0):.1f}%" for key, share in row.items() if key != "stream")]
                for row in self.rows()]
        head = ["stream", *(key.replace("_", " ") for key in self.rows()[0] if key != "stream")] if rows else []
        picture = ""
        if self._question is not None:
            try:
                picture = _picture(self.timeline())
            except UsageError as error:  # nothing to draw
                picture = f"<p>{html.escape(str(error))}</p>"
        return f"<p>{html.escape(repr(self)[1:-1])}</p>" + _table(head, rows) + picture


class Tuning:
    """What `swsim tune` found: `document` has the figures before and after, `plan` is the text of the best plan."""

    def __init__(self, document: "TuningDocument", plan: str):
        self.document, self.plan = document, plan

    @property
    def better(self) -> bool:
        """True if a better plan than the given one was found."""
        return bool(self.document["better"])

    @property
    def diff(self) -> str:
        """The changes as a diff of the plan."""
        return str(self.document["diff"])

    def __repr__(self) -> str:
        return f"<swsim.Tuning {self.document['plan']}: {'better' if self.better else 'no better'} plan>"


class Imported:
    """A job that was read: `plan` is its plan as text, `document` says what was read of each rank, `messages` what the
    plan leaves out."""

    def __init__(self, plan: str, document: "ImportDocument", messages: str):
        self.plan, self.document, self.messages = plan, document, messages

    def __repr__(self) -> str:
        return f"<swsim.Imported {self.document['plan']}, {len(self.document['ranks'])} ranks>"


class Run:
    """A run in a trace store."""

    def __init__(self, store: PathLike, document: "RunDocument"):
        self.store, self.document = os.fspath(store), document

    @property
    def number(self) -> int:
        """Its number in the store."""
        return int(self.document["run"])

    def render(self, output: Optional[PathLike] = None, format: Optional[str] = None, **options: _program.Option) -> str:
        """As swsim.render."""
        return render(self.store, output, format, run=self.number, **options)

    def ledger(self) -> list[dict[str, Any]]:
        """Why its streams were idle: a row for each rank, stream and cause."""
        document = _program.ask(["runs", self.store, f"--run={self.number}"]).documents[0]
        return list(document["ledger"])

    def to_frame(self) -> Any:
        """The ledger as a pandas DataFrame."""
        import pandas  # pylint: disable=import-outside-toplevel,import-error

        return pandas.DataFrame(self.ledger())

    def __repr__(self) -> str:
        return f"<swsim.Run {self.number} of {self.store}: {self.document['kind']}, {self.document['plan']}>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self)[1:-1])}</p>" + _picture(self.render())

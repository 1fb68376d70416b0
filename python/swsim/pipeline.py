# SPDX-License-Identifier: Apache-2.0
"""Run a plan whose tasks are functions in Python, on the pipeline engine of libswpipe.

    def copy(ctx):
        ctx.x = ctx.batch * 2

    def train(ctx):
        ctx.loss = ctx.x + 1

    with swsim.Pipeline(plan, {"Copy": copy, "Train": train}) as pipe:
        for ctx in pipe.run(range(10)):
            print(ctx.iteration, ctx.loss)

A task gets the context of its iteration. What a task raises leaves the call that runs the pipeline, as it is.
"""
from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
import itertools
import os
import pathlib
import sys
import threading
import types
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, Type, Union

from . import _swpipe as c
from ._shortcut import Shortcuts
from .errors import PlanError, TaskError, UsageError
from .plan import PlanLike, canonical, plan_text

Task = Callable[["Context"], Any]
NS = 1_000_000_000

_library: Optional[ctypes.CDLL] = None


def library() -> ctypes.CDLL:
    """libswpipe: that of the package, else that of the loader."""
    global _library  # pylint: disable=global-statement
    if _library is None:
        own = pathlib.Path(__file__).with_name("lib") / "libswpipe.so.0"
        try:
            lib = ctypes.CDLL(str(own) if own.exists() else own.name)
        except OSError as error:
            raise UsageError(f"libswpipe cannot be loaded: {error}") from error
        for name, (result, parameters) in c.CALLS.items():
            call = getattr(lib, name)
            call.restype, call.argtypes = result, parameters
        _library = lib
    return _library


class Context:
    """One iteration on one rank. Tasks pass values to later tasks as attributes, and free them early with `del`.

    batch, iteration, rank are set. The methods are for the task that is being called."""

    def __init__(self, batch: Any, rank: int, pipeline: "Pipeline"):
        self.batch, self.rank, self.iteration = batch, rank, -1
        self._pipeline = pipeline

    @property
    def iter_idx(self) -> int:
        """The iteration, by the name of the SWPipeline reference."""
        return self.iteration

    @property
    def _handle(self) -> Any:
        handle = getattr(self._pipeline._local, "handle", None)  # pylint: disable=protected-access
        if handle is None:
            raise UsageError("this call is for a function of a task, on the thread that the task runs on")
        return handle

    @property
    def stream(self) -> int:
        """The task's cudaStream_t as a number; 0 on the host device."""
        return int(library().swpipe_stream(self._handle) or 0)

    def launch(self, function: Callable[[], Any]) -> None:
        """Call `function` in the order of the task's stream, when what was pushed to it before is done."""
        self._pipeline._launch(self._handle, function)  # pylint: disable=protected-access

    def work(self) -> None:
        """Push the work that the plan describes for this task."""
        self._check(library().swpipe_work(self._handle))

    def sync(self) -> None:
        """Wait until what was pushed to the task's stream is done."""
        self._check(library().swpipe_sync(self._handle))

    def all_reduce(self, send: Any, recv: Any, number: str = "f32", comm: Optional[str] = None) -> None:
        """Add up the members' numbers. Memory: anything with a writable buffer, or a tensor."""
        (sent, count), (received, _) = _memory(send, number), _memory(recv, number)
        self._check(library().swpipe_all_reduce(self._handle, _name(comm), sent, received, count, _number(number)))

    def all_gather(self, send: Any, recv: Any, number: str = "f32", comm: Optional[str] = None) -> None:
        """Gather the numbers of all members, by place."""
        (sent, count), (received, _) = _memory(send, number), _memory(recv, number)
        self._check(library().swpipe_all_gather(self._handle, _name(comm), sent, received, count, _number(number)))

    def all_to_all(self, send: Any, recv: Any, number: str = "f32", comm: Optional[str] = None) -> None:
        """Give each member an equal block of `send`, and get one of each into `recv`."""
        (sent, count), (received, _) = _memory(send, number), _memory(recv, number)
        size = library().swpipe_comm_size(self._handle, _name(comm))
        if size > 0 and count % size:
            raise UsageError(f"all_to_all: {count} numbers are no equal blocks for {size} members")
        self._check(library().swpipe_all_to_all(self._handle, _name(comm), sent, received, count // max(size, 1),
                                                _number(number)))

    def _check(self, result: int) -> None:
        if result != 0:
            raise _Told()


class _Told(Exception):
    """A call failed, and the library knows the reason."""


_NUMBERS = {"f32": (c.SWPIPE_F32, 4), "f16": (c.SWPIPE_F16, 2), "bf16": (c.SWPIPE_BF16, 2), "i32": (c.SWPIPE_I32, 4),
            "i64": (c.SWPIPE_I64, 8)}


def _number(name: str) -> int:
    if name not in _NUMBERS:
        raise UsageError(f"found number type '{name}', expected one of {', '.join(_NUMBERS)}")
    return _NUMBERS[name][0]


def _name(name: Optional[str]) -> Optional[bytes]:
    return None if name is None else name.encode()


def _memory(value: Any, number: str) -> tuple[int, int]:
    """The address of some memory, and how many numbers are in it."""
    _number(number)
    if hasattr(value, "data_ptr"):  # a tensor
        return int(value.data_ptr()), value.numel() * value.element_size() // _NUMBERS[number][1]
    view = memoryview(value).cast("B")
    return ctypes.addressof(ctypes.c_char.from_buffer(view)), view.nbytes // _NUMBERS[number][1]


def _fields(structure: Any) -> dict[str, Any]:
    """The types of the members of a structure."""
    return dict(structure._fields_)


def _sources(batches: Any, ranks: int) -> list[Iterator[Any]]:
    """An iterator for each rank: of one iterable where there is one rank, else one of each rank's."""
    if ranks == 1 and not (isinstance(batches, (list, tuple)) and len(batches) == 1 and hasattr(batches[0], "__next__")):
        return [iter(batches)]
    each = [batches(rank) for rank in range(ranks)] if callable(batches) else list(batches)
    if len(each) != ranks:
        raise UsageError(f"found batches for {len(each)} ranks, expected {ranks}")
    return [iter(one) for one in each]


class Pipeline:
    """A plan with a function for each task that shall do more than what the plan describes.

    `threads`: "caller" runs all functions on the calling thread, "workers" on a thread for each thread group.
    `streams`: streams of the program for streams of the plan, as objects of PyTorch or as numbers (device="cuda").
    `batches` of run and fill: an iterable; of several ranks a list of iterables, or a function of the rank.
    After a fork the child's pipeline does nothing."""

    def __init__(self, plan: PlanLike, tasks: Mapping[str, Task], *, driver: str = "clock", device: str = "host",
                 ranks: int = 0, max_depth: int = 0, threads: str = "caller",
                 streams: Optional[Mapping[str, Any]] = None, message: Optional[Callable[[str], None]] = None,
                 wait_timeout: float = 0, progress_timeout: float = 0):
        self._lib, self._pid, self._pipe = library(), os.getpid(), ctypes.c_void_p()
        self._local, self._tokens = threading.local(), itertools.count(1)
        self._contexts: dict[int, Context] = {}
        self._launched: dict[int, Callable[[], Any]] = {}
        self._sources: list[Iterator[Any]] = []
        self._retired: list[Context] = []
        self._raised: Optional[BaseException] = None
        self._messages: list[str] = []
        self._message = message or (lambda text: print(text, file=sys.stderr))
        self._streams = dict(streams or {})
        self.shortcuts = Shortcuts()
        self._keep: list[Any] = []  # what C points to
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "swsim") if threads == "workers" else None
        self._make_callbacks()
        self._open(plan, tasks, driver, device, ranks, max_depth, threads, wait_timeout, progress_timeout)

    # ---- opening -----------------------------------------------------------------------------------

    def _make_callbacks(self) -> None:
        fields = _fields(c.swpipe_hooks)
        self._call_launched = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._run_launched)
        self._next = _fields(c.swpipe_source)["next"](self._next_batch)
        self._source = c.swpipe_source(next=self._next)
        self._hooks = c.swpipe_hooks(retired=fields["retired"](self._keep_retired), release=fields["release"](self._release))

    def _function(self, name: str, body: Task, stream: Any) -> Any:
        """The C function of a task."""

        def call(handle: int, _: Any) -> int:
            context = self._contexts[self._lib.swpipe_batch(handle)]
            context.iteration = self._lib.swpipe_iteration(handle)
            self._local.handle = handle
            try:
                with _current(stream):
                    self.shortcuts.call(name, body, context)
            except _Told:
                return -1
            except BaseException as error:  # pylint: disable=broad-except
                return self._fail(handle, name, error)
            finally:
                self._local.handle = None
            if self._raised is not None:
                return self._fail(handle, name, self._raised)
            return 0

        return c.swpipe_function(call)

    def _open(self, plan: PlanLike, tasks: Mapping[str, Task], driver: str, device: str, ranks: int, max_depth: int,
              threads: str, wait_timeout: float, progress_timeout: float) -> None:
        words = {"clock": c.SWPIPE_CLOCK, "dataflow": c.SWPIPE_DATAFLOW, "host": c.SWPIPE_HOST, "cuda": c.SWPIPE_CUDA,
                 "workers": c.SWPIPE_WORKERS, "caller": c.SWPIPE_CALLER}
        for word, allowed in ((driver, ("clock", "dataflow")), (device, ("host", "cuda")), (threads, ("caller", "workers"))):
            if word not in allowed:
                raise UsageError(f"found '{word}', expected {' or '.join(allowed)}")
        schedule = canonical(plan).get("schedule", {}) if self._streams else {}
        functions = [c.swpipe_task(name=name.encode(), function=self._function(
            name, body, self._streams.get(schedule.get(name, {}).get("stream", "main")))) for name, body in tasks.items()]
        own = [c.swpipe_own_stream(name=name.encode(), handle=int(getattr(stream, "cuda_stream", stream)))
               for name, stream in self._streams.items()]
        told = _fields(c.swpipe_config)["message"](self._tell)
        self._keep += [functions, own, told]
        config = c.swpipe_config(
            plan_file=b"plan", plan_text=plan_text(plan).encode(), tasks=(c.swpipe_task * len(functions))(*functions),
            task_count=len(functions), driver=words[driver], device=words[device], threads=words[threads], ranks=ranks,
            max_depth=max_depth, wait_timeout_ns=int(wait_timeout * NS), progress_timeout_ns=int(progress_timeout * NS),
            hooks=self._hooks, message=told,
            own=c.swpipe_own(streams=(c.swpipe_own_stream * len(own))(*own), stream_count=len(own)))
        self._keep.append(config)
        status = self._lib.swpipe_open(ctypes.byref(config), ctypes.byref(self._pipe))
        self._flush()
        if status != c.SWPIPE_OK:
            reason = self.error
            self._close_handle()
            raise (PlanError if status == c.SWPIPE_INPUT else UsageError)(reason)

    # ---- called by C -------------------------------------------------------------------------------

    def _tell(self, _: Any, text: bytes) -> None:
        self._messages.append(text.decode(errors="replace").rstrip("\n"))

    def _flush(self) -> None:
        """Hand out messages, on the calling thread and not while C code runs."""
        for text in self._messages:
            self._message(text)
        self._messages.clear()

    def _fail(self, handle: int, name: str, error: BaseException) -> int:
        if self._raised is None:
            self._raised = error
        text = f"{name}: {type(error).__name__}: {error}".replace("%", "%%")
        return int(self._lib.swpipe_fail(handle, text.encode()))

    def _run_launched(self, key: int) -> None:
        try:
            self._launched.pop(key)()
        except BaseException as error:  # pylint: disable=broad-except
            if self._raised is None:
                self._raised = error  # the next function of a task fails with it, or the end of the run

    def _launch(self, handle: int, function: Callable[[], Any]) -> None:
        key = next(self._tokens)
        self._launched[key] = function
        if self._lib.swpipe_launch(handle, ctypes.cast(self._call_launched, ctypes.c_void_p), key) != 0:
            del self._launched[key]
            raise _Told()

    def _add_batch(self, rank: int, batch: Any) -> int:
        token = next(self._tokens)
        self._contexts[token] = Context(batch, rank, self)
        return token

    def _next_batch(self, _: Any, rank: int, out: Any) -> int:
        try:
            out[0] = self._add_batch(rank, next(self._sources[rank]))
            return 1
        except StopIteration:
            return 0
        except BaseException as error:  # pylint: disable=broad-except
            self._raised = error
            return -1

    def _keep_retired(self, _: Any, retired: Any) -> None:
        context = self._contexts[retired.contents.batch]
        context.iteration = retired.contents.iteration
        self._retired.append(context)

    def _release(self, _: Any, _rank: int, batch: int) -> None:
        self._contexts.pop(batch, None)

    # ---- calls -------------------------------------------------------------------------------------

    @property
    def error(self) -> str:
        """The last failure, in words."""
        return (self._lib.swpipe_error(self._pipe) or b"").decode(errors="replace")

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise UsageError("a pipeline belongs to the process that opened it: open another one after the fork")
        if not self._pipe:
            raise UsageError("the pipeline is closed")

    def _ask(self, call: Any, *given: Any) -> int:
        """Call the library. With workers it is called on another thread, so that KeyboardInterrupt is heard here."""
        self._check_process()
        if self._thread is None:
            status = call(self._pipe, *given)
        else:
            future = self._thread.submit(call, self._pipe, *given)
            try:
                status = future.result()
            except KeyboardInterrupt as error:
                self._raised = error  # the next function of a task fails with it
                status = future.result()
        self._flush()
        return int(status)

    def _raise(self, status: int) -> None:
        """Nothing for OK and END. A task's own exception else, or a TaskError."""
        raised, self._raised = self._raised, None
        if raised is None and status in (c.SWPIPE_OK, c.SWPIPE_END):
            return
        reason = self.error
        self._ask(self._lib.swpipe_drain)
        self._raised = None
        self._retired.clear()
        raise raised if raised is not None else TaskError(reason)

    def _take(self) -> Iterator[Context]:
        retired, self._retired = self._retired, []
        yield from retired

    def fill(self, batches: Any) -> None:
        """Fetch batches and begin iterations until the pipeline is full."""
        self._check_process()
        self._sources = _sources(batches, self._lib.swpipe_rank_count(self._pipe))
        self._raise(self._ask(self._lib.swpipe_fill, ctypes.byref(self._source)))

    def progress(self, more: bool = True) -> list[Context]:
        """Retire the oldest iteration and, with `more`, begin a new one. Returns the contexts that were retired, one of each
        rank; none: all iterations have been retired."""
        status = self._ask(self._lib.swpipe_progress, ctypes.byref(self._source) if more else None, None)
        self._raise(status)
        return list(self._take())

    def drain(self) -> list[Context]:
        """Retire what is in flight, and begin nothing new."""
        self._raise(self._ask(self._lib.swpipe_drain))
        return list(self._take())

    def run(self, batches: Any) -> Iterator[Context]:
        """Fill, progress to the end, and yield each context as it is retired. A loop that is left early drains."""
        self.fill(batches)
        ended = False
        try:
            while retired := self.progress():
                yield from retired
            ended = True
        finally:
            if not ended and self._pipe and os.getpid() == self._pid:
                self._ask(self._lib.swpipe_drain)
                self._retired.clear()

    def run_serial(self, batches: Any) -> list[Context]:
        """One task after another, iteration by iteration: what the pipelined run must equal."""
        out = []
        each = _sources(batches, self._lib.swpipe_rank_count(self._pipe))
        for iteration, row in enumerate(zip(*each)):
            out += self.run_one_serial(row, iteration)
        return out

    def run_one_serial(self, batches: Sequence[Any], iteration: int = 0) -> list[Context]:
        """One iteration with one batch for each rank, finished on the device when this returns."""
        tokens = [self._add_batch(rank, batch) for rank, batch in enumerate(batches)]
        contexts = [self._contexts[token] for token in tokens]
        try:
            given = (ctypes.c_void_p * len(tokens))(*tokens)
            self._raise(self._ask(self._lib.swpipe_run_one_serial, given, iteration))
        finally:
            self._retired.clear()
            for token in tokens:
                self._contexts.pop(token, None)
        return contexts

    def record(self, store: Union[str, "os.PathLike[str]", None]) -> None:
        """Add later runs to a trace store; None: no more."""
        path = None if store is None else os.fspath(store).encode()
        self._raise(self._ask(self._lib.swpipe_record, path))

    def recorded(self) -> tuple[int, bool, str]:
        """The last recorded run: its number, True if the plan allows every step of it, and why not."""
        out = c.swpipe_recorded()
        self._raise(self._ask(self._lib.swpipe_recorded, ctypes.byref(out)))
        return int(out.run), out.legal == 1, (out.why or b"").decode()

    def verify(self, limit: float = 0) -> tuple[Optional[bool], str]:
        """True if the plan is proved, False if it is violated, None if undecided after `limit` seconds; and the text."""
        out = c.swpipe_answer()
        self._raise(self._ask(self._lib.swpipe_verify, int(limit * NS), ctypes.byref(out)))
        return {1: True, 0: False}.get(out.holds), (out.text or b"").decode()

    def predict(self) -> str:
        """The prediction of the plan, as text."""
        out = c.swpipe_answer()
        self._raise(self._ask(self._lib.swpipe_predict, ctypes.byref(out)))
        return (out.text or b"").decode()

    def _format(self, call: Any, *given: Any) -> str:
        self._check_process()
        address = call(self._pipe, *given)
        if not address:
            raise TaskError(self.error)
        text = ctypes.string_at(address).decode()
        ctypes.CDLL(None).free(ctypes.c_void_p(address))
        return text

    def format_schedule(self, periods: int = 0) -> str:
        """Which iteration each task works on, period by period."""
        return self._format(self._lib.swpipe_format_schedule, periods)

    def format_stage_analysis(self) -> str:
        """The least depth, and what the order of submission may stall."""
        return self._format(self._lib.swpipe_format_stage_analysis)

    @property
    def depth(self) -> int:
        """How many iterations can be in flight."""
        return int(self._lib.swpipe_depth(self._pipe))

    @property
    def task_names(self) -> list[str]:
        """The tasks, in the order of the pipeline."""
        count = self._lib.swpipe_task_count(self._pipe)
        return [self._lib.swpipe_task_name(self._pipe, task).decode() for task in range(count)]

    def _close_handle(self) -> None:
        pipe, self._pipe = self._pipe, ctypes.c_void_p()
        if pipe:
            self._lib.swpipe_close(pipe)

    def close(self) -> None:
        """Stop what is in flight. In a child of a fork this does nothing."""
        if os.getpid() != self._pid:
            return
        self._close_handle()
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[types.TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # opening failed
            self.close()


def _current(stream: Any) -> Any:
    """The stream of PyTorch as the current one; nothing for other streams."""
    if hasattr(stream, "cuda_stream"):
        import torch  # pylint: disable=import-outside-toplevel,import-error

        return torch.cuda.stream(stream)
    return contextlib.nullcontext()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pipeline.py - a pipeline whose tasks are functions in Python, by ctypes: proved, run, recorded.

    python3 pipeline.py [FILE.db]     libswpipe.so.0 is found by the loader: ldconfig, or LD_LIBRARY_PATH

A batch is a list of numbers. CopyIn copies it, InputDist exchanges it with the other rank (an all-to-all), Train adds up.
Both ranks of the plan are in this process. SWPIPE_CALLER: functions are called on the thread that calls, so there is
one thread, as in TorchRec, and nothing waits for the interpreter's lock.

The structures below are those of swpipe.h, member by member; all that is zero is a default. A structure of another
length is another version of the library: its soname, libswpipe.so.0, is the number of the layout.

An exception must not leave a function: ctypes prints it and returns 0, and 0 is success. `function` below makes
it the task's failure, with its text as the reason.
"""
import ctypes as c
import sys

OK, END = 0, 1
CLOCK, DATAFLOW = 0, 1
WORKERS, CALLER = 0, 1
I64 = 4
RANKS, ITERATIONS, EACH = 2, 8, 3

FUNCTION = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p)
LAUNCHED = c.CFUNCTYPE(None, c.c_void_p)
NEXT = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.POINTER(c.c_void_p))
MESSAGE = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)


class Task(c.Structure):
    _fields_ = [("name", c.c_char_p), ("function", FUNCTION), ("arg", c.c_void_p), ("io", c.c_void_p),
                ("io_count", c.c_size_t)]


class Source(c.Structure):
    _fields_ = [("next", NEXT), ("arg", c.c_void_p)]


class Retired(c.Structure):
    _fields_ = [("iteration", c.c_int64), ("rank", c.c_int), ("batch", c.c_void_p), ("result", c.c_void_p)]


STARTED = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_char_p)
STOPPED = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)
RETIRED = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Retired))
RELEASE = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_void_p)


class Hooks(c.Structure):
    _fields_ = [("started", STARTED), ("stopped", STOPPED), ("retired", RETIRED), ("release", RELEASE),
                ("arg", c.c_void_p)]


class Allocator(c.Structure):
    _fields_ = [("alloc", c.c_void_p), ("release", c.c_void_p), ("arg", c.c_void_p)]


class Own(c.Structure):
    _fields_ = [("streams", c.c_void_p), ("stream_count", c.c_size_t), ("comms", c.c_void_p),
                ("comm_count", c.c_size_t), ("allocator", Allocator)]


class Policy(c.Structure):
    _fields_ = [("choose", c.c_void_p), ("arg", c.c_void_p)]


class Config(c.Structure):
    _fields_ = [("plan_file", c.c_char_p), ("plan_text", c.c_char_p), ("tasks", c.POINTER(Task)),
                ("task_count", c.c_size_t), ("driver", c.c_int), ("device", c.c_int), ("ranks", c.c_int),
                ("max_depth", c.c_int), ("wait_timeout_ns", c.c_int64), ("spin_ns", c.c_int64),
                ("progress_timeout_ns", c.c_int64), ("graph", c.c_int), ("threads", c.c_int),
                ("device_only", c.POINTER(c.c_char_p)), ("device_only_count", c.c_size_t), ("group", c.c_void_p),
                ("hooks", Hooks), ("own", Own), ("gpu", c.c_int), ("proof_limit_ns", c.c_int64),
                ("message", MESSAGE), ("message_arg", c.c_void_p), ("policy", Policy)]


class Answer(c.Structure):
    _fields_ = [("holds", c.c_int), ("text", c.c_char_p), ("json", c.c_char_p), ("repair", c.c_char_p)]


class Recorded(c.Structure):
    _fields_ = [("run", c.c_int64), ("iterations", c.c_int64), ("steps", c.c_int64), ("legal", c.c_int),
                ("why", c.c_char_p), ("seconds", c.c_double), ("iteration_seconds", c.c_double)]


P, S, I = c.c_void_p, c.c_char_p, c.c_int
CALLS = {  # name: result, arguments. Without them ctypes cuts a pointer to 32 bits
    "swpipe_open": (I, P, P), "swpipe_close": (None, P), "swpipe_error": (S, P), "swpipe_status_name": (S, I),
    "swpipe_verify": (I, P, c.c_int64, P), "swpipe_predict": (I, P, P), "swpipe_fill": (I, P, P),
    "swpipe_progress": (I, P, P, P), "swpipe_drain": (I, P), "swpipe_record": (I, P, S), "swpipe_recorded": (I, P, P),
    "swpipe_iteration": (c.c_int64, P), "swpipe_rank": (I, P), "swpipe_batch": (P, P), "swpipe_fail": (I, P, S),
    "swpipe_launch": (I, P, LAUNCHED, P), "swpipe_alloc": (P, P, S, c.c_size_t), "swpipe_get": (P, P, S),
    "swpipe_all_to_all": (I, P, S, P, P, c.c_size_t, I),
}


def load(path="libswpipe.so.0"):
    lib = c.CDLL(path)
    for name, (result, *arguments) in CALLS.items():
        getattr(lib, name).restype, getattr(lib, name).argtypes = result, arguments
    return lib


PLAN = b"""swplan: 1
name: pipeline
ranks: 2
retire: device
schedule:
  CopyIn: {stage: 0, stream: memcpy, thread_group: io, time: 100us, writes: [ids]}
  InputDist: {stage: 1, stream: dist, globally_ordered: true, time: 100us, reads: [ids], writes: [mine],
              work: {collective: all_to_all, comm: dp, bytes: 48 B}}
  Train: {stage: 2, stream: main, thread_group: train, time: 200us, reads: [mine], writes: [weights]}
intra_iter_deps: [[InputDist, CopyIn], [Train, InputDist]]
inter_iter_deps: [[Train, Train]]
buffers: {weights: {scope: shared}}
"""

lib = load()
Numbers = c.c_int64 * (RANKS * EACH)
weights = [0] * RANKS
batches = {}  # a batch is the address of an array that lives here until the hook `release`
given = [0] * RANKS
failures = []  # exceptions of bodies in stream order: the next function of a task fails with the first


def function(body):
    """A function of a task. An exception is its failure."""

    @FUNCTION
    def called(context, _):
        try:
            body(context)
            return failed(context, failures[0]) if failures else 0
        except Exception as error:  # pylint: disable=broad-except
            return failed(context, error)

    return called


def failed(context, error):
    return lib.swpipe_fail(context, str(error).replace("%", "%%").encode())


bodies = {}  # what streams have still to call


@LAUNCHED
def call(key):
    try:
        bodies.pop(key)()
    except Exception as error:  # pylint: disable=broad-except
        failures.append(error)


def push(context, body):
    """Device work of the host device: body() in stream order, on the stream's thread."""
    bodies[id(body)] = body
    if lib.swpipe_launch(context, call, id(body)) != 0:
        del bodies[id(body)]
        raise RuntimeError("the stream takes no more work")


def memory(context, name):
    """Memory of the library under a name of the iteration, which frees it. All its tasks find it."""
    address = lib.swpipe_get(context, name) or lib.swpipe_alloc(context, name, c.sizeof(Numbers))
    if not address:
        raise MemoryError(name.decode())
    return address


@function
def copy_in(context):
    ids, batch = memory(context, b"ids"), lib.swpipe_batch(context)
    push(context, lambda: c.memmove(ids, batch, c.sizeof(Numbers)))


@function
def input_dist(context):
    if lib.swpipe_all_to_all(context, None, memory(context, b"ids"), memory(context, b"mine"), EACH, I64) != 0:
        raise RuntimeError("all-to-all")


@function
def train(context):
    mine, rank = Numbers.from_address(memory(context, b"mine")), lib.swpipe_rank(context)

    def step():
        weights[rank] += sum(mine)

    push(context, step)


@NEXT
def next_batch(_, rank, out):
    if given[rank] == ITERATIONS:
        return 0
    batch = Numbers(*(100 * rank + given[rank] for _ in Numbers()))
    batches[c.addressof(batch)] = batch
    given[rank] += 1
    out[0] = c.addressof(batch)
    return 1


@RELEASE
def release(_, _rank, batch):
    del batches[batch]


@MESSAGE
def message(_, text):
    print(text.decode().rstrip("\n"), file=sys.stderr)


def run(pipe, file):
    """The last status, and how many iterations."""
    source, iteration, count = Source(next_batch), c.c_int64(), 0
    status = lib.swpipe_record(pipe, file)
    if status == OK:
        status = lib.swpipe_fill(pipe, c.byref(source))
    while status == OK:
        status = lib.swpipe_progress(pipe, c.byref(source), c.byref(iteration))
        count += status == OK
    return status, count


def main():
    tasks = (Task * 3)(Task(b"CopyIn", copy_in), Task(b"InputDist", input_dist), Task(b"Train", train))
    config = Config(plan_file=b"pipeline.py", plan_text=PLAN, tasks=tasks, task_count=len(tasks), threads=CALLER,
                    hooks=Hooks(release=release), message=message)
    pipe, answer, recorded = c.c_void_p(), Answer(), Recorded()
    file = sys.argv[1].encode() if len(sys.argv) > 1 else None
    status, count = lib.swpipe_open(c.byref(config), c.byref(pipe)), 0
    if status == OK:
        status = lib.swpipe_verify(pipe, 0, c.byref(answer))
    if status == OK:
        print("proved" if answer.holds == 1 else answer.text.decode())
        status, count = run(pipe, file)
    if status == END and not failures:
        print(f"{count} iterations, sums {weights}")
    elif status == END:
        print(f"pipeline.py: {failures[0]}", file=sys.stderr)
    else:
        print(f"pipeline.py: {lib.swpipe_status_name(status).decode()}: {lib.swpipe_error(pipe).decode()}",
              file=sys.stderr)
    if status == END and file is not None and lib.swpipe_recorded(pipe, c.byref(recorded)) == OK:
        print(f"recorded, run {recorded.run}:", "as the plan allows" if recorded.legal == 1 else recorded.why.decode())
    lib.swpipe_close(pipe)
    assert not batches, "each batch is given back once"
    return 0 if status == END and not failures else 1


if __name__ == "__main__":
    sys.exit(main())

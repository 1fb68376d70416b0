# SPDX-License-Identifier: Apache-2.0
"""The public libraries called from Python by ctypes, as any language with a foreign function interface would.

    python3 tests/from_python.py LIBSWPIPE LIBSWSIM PLAN

Prints TAP. libswpipe: a plan with functions in Python for two tasks, run for ten iterations. libswsim: verdict and
prediction of PLAN as JSON.
"""
import ctypes as c
import json
import sys

cases = 0


def check(what, ok):
    global cases
    cases += 1
    print(f"{'ok' if ok else 'not ok'} {cases} - {what}")


class Task(c.Structure):
    _fields_ = [("name", c.c_char_p), ("function", c.c_void_p), ("arg", c.c_void_p), ("io", c.c_void_p),
                ("io_count", c.c_size_t)]


class Source(c.Structure):
    _fields_ = [("next", c.c_void_p), ("arg", c.c_void_p)]


FUNCTION = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p)
NEXT = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.POINTER(c.c_void_p))


class Config(c.Structure):
    """The members up to the tasks; zeros behind them are defaults."""
    _fields_ = [("plan_file", c.c_char_p), ("plan_text", c.c_char_p), ("tasks", c.POINTER(Task)),
                ("task_count", c.c_size_t), ("zeros", c.c_char * 1024)]


PLAN = b"""swplan: 1
name: from_python
schedule:
  Load: {stage: 0, stream: load, writes: [x], host_time: 10us}
  Square: {stage: 1, stream: main, reads: [x], host_time: 10us}
intra_iter_deps: [[Square, Load]]
buffers: {x: {scope: iteration, bytes: 8 B}}
"""


def squares(lib):
    loaded, squared, batches = {}, [], iter(range(1, 11))

    @FUNCTION
    def load(context, _):
        loaded[lib.swpipe_iteration(context)] = lib.swpipe_batch(context) or 0
        return 0

    @FUNCTION
    def square(context, _):
        squared.append(loaded[lib.swpipe_iteration(context)] ** 2)
        return 0

    @NEXT
    def next_batch(_, rank, out):
        batch = next(batches, None)
        if batch is None:
            return 0
        out[0] = batch
        return 1

    tasks = (Task * 2)(Task(b"Load", c.cast(load, c.c_void_p)), Task(b"Square", c.cast(square, c.c_void_p)))
    config = Config(b"from_python.yaml", PLAN, tasks, 2)
    pipe, iteration, retired = c.c_void_p(), c.c_int64(), 0
    source = Source(c.cast(next_batch, c.c_void_p))
    check("a plan is opened with functions of this language", lib.swpipe_open(c.byref(config), c.byref(pipe)) == 0)
    print("#", lib.swpipe_error(pipe).decode())
    check("filled", lib.swpipe_fill(pipe, c.byref(source)) == 0)
    while lib.swpipe_progress(pipe, c.byref(source), c.byref(iteration)) == 0:
        retired += 1
    check("ten iterations are retired", retired == 10 and iteration.value == 9)
    check("the sum of the squares is 385", sum(squared) == 385)
    lib.swpipe_close(pipe)


def verdicts(lib, path):
    plan, result = c.c_void_p(), c.c_void_p()
    check("a plan is read", lib.swsim_read(path.encode(), c.byref(plan)) == 0)
    check("verified", lib.swsim_verify(plan, None, c.byref(result)) == 0)
    lines = [json.loads(line) for line in lib.swsim_json(result).decode().splitlines()]
    check("the verdicts are JSON", lines and all(line["verdict"] == "proved" for line in lines))
    lib.swsim_free(result)
    check("predicted", lib.swsim_predict(plan, None, c.byref(result)) == 0)
    lines = [json.loads(line) for line in lib.swsim_json(result).decode().splitlines()]
    check("and so is the prediction", lines and lines[0]["iteration_ns"]["mean"] > 0)
    lib.swsim_free(result)
    lib.swsim_close(plan)
    check("a plan that is not there", lib.swsim_read(b"/does/not/exist.yaml", c.byref(plan)) != 0)
    check("has an error", b"/does/not/exist.yaml" in lib.swsim_plan_error(plan))
    lib.swsim_close(plan)


def load_libraries(swpipe, swsim):
    pipe, sim = c.CDLL(swpipe), c.CDLL(swsim)
    pipe.swpipe_error.restype = c.c_char_p
    pipe.swpipe_iteration.restype = c.c_int64
    pipe.swpipe_iteration.argtypes = [c.c_void_p]
    pipe.swpipe_batch.restype = c.c_void_p
    pipe.swpipe_batch.argtypes = [c.c_void_p]
    pipe.swpipe_close.restype = None
    for name in ("swsim_json", "swsim_plan_error"):
        getattr(sim, name).restype = c.c_char_p
    return pipe, sim


pipe_library, sim_library = load_libraries(sys.argv[1], sys.argv[2])
squares(pipe_library)
verdicts(sim_library, sys.argv[3])
print(f"1..{cases}")

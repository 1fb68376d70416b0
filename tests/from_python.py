# SPDX-License-Identifier: Apache-2.0
"""The public libraries called from Python by ctypes, as any language with a foreign function interface would.

    python3 tests/from_python.py LIBSWPIPE LIBSWSIM SOURCES

Prints TAP. libswpipe: a plan with functions in Python for two tasks, run for ten iterations. libswsim: verdict and
prediction of a plan of SOURCES as JSON, with options, and a schedule that is tuned. The Python package has tests of its own.
"""
import ctypes as c
import json
import os
import subprocess
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


class Options(c.Structure):
    """struct swsim_options, which has the size of the first release for good."""
    _fields_ = [("driver", c.c_int), ("ranks", c.c_int), ("max_depth", c.c_int), ("threads", c.c_int),
                ("iterations", c.c_int64), ("faults", c.c_int), ("no_fix", c.c_int), ("whole_story", c.c_int),
                ("limit_states", c.c_int64), ("limit_bytes", c.c_int64), ("limit_ns", c.c_int64),
                ("properties", c.c_char_p), ("seed", c.c_int64), ("replications", c.c_int64), ("opaque", c.c_int),
                ("jitter", c.c_char_p), ("profile", c.c_char_p), ("times", c.c_char_p), ("p2p", c.c_char_p),
                ("memory_bytes", c.c_int64), ("candidates", c.c_int64), ("allow_stale", c.c_int), ("keep", c.c_char_p),
                ("axes", c.c_char_p), ("samples", c.c_int), ("half_size", c.c_int), ("title", c.c_char_p),
                ("cores", c.c_int), ("reserved_int", c.c_int), ("reserved", c.c_void_p * 7)]


def ask(lib, verb, plan, **options):
    """The JSON lines of a question; the error where there is no answer."""
    result = c.c_void_p()
    status = getattr(lib, verb)(plan, c.byref(Options(**options)), c.byref(result))
    answer = lib.swsim_error(result) if status else [json.loads(line) for line in lib.swsim_json(result).splitlines()]
    lib.swsim_free(result)
    return answer


def options(lib, path):
    plan = c.c_void_p()
    lib.swsim_read(path.encode(), c.byref(plan))
    line = ask(lib, "swsim_verify", plan, properties=b"race", no_fix=1)[0]
    check("one property is verified", line["properties"]["race"] == "proved" != line["properties"]["deadlock"])
    steady = ask(lib, "swsim_predict", plan, iterations=200)[0]["iteration_ns"]["mean"]
    varied = ask(lib, "swsim_predict", plan, iterations=200, jitter=b"*=exponential", seed=3)[0]["iteration_ns"]["mean"]
    check("jitter is predicted", varied > steady)
    shared = ask(lib, "swsim_predict", plan, iterations=200, cores=1)[0]["iteration_ns"]["mean"]
    check("one core for all work takes longer", shared > steady)
    check("a wrong word is told", b"did you mean 'race'" in ask(lib, "swsim_verify", plan, properties=b"rase"))
    lib.swsim_close(plan)
    text = b"swplan: 1\nname: s\ngenerate: {schedule: 1f1b, ranks: 2, microbatches: 4}\n"
    lib.swsim_parse(b"s.yaml", text, c.byref(plan))
    tuned = ask(lib, "swsim_tune", plan, axes=b"schedule=1f1b,gpipe;microbatches=4,8")[0]["candidates"]
    check("schedules are tuned", {row["schedule"] for row in tuned} == {"1f1b", "gpipe"})
    check("under each channel", len(ask(lib, "swsim_verify", plan, p2p=b"all")[0]["p2p"]) > 3)
    lib.swsim_close(plan)
    store = c.c_void_p()
    check("a store that is not there", lib.swsim_store_open(b"/does/not/exist.db", c.byref(store)) != 0)
    check("is named", b"/does/not/exist.db" in lib.swsim_store_error(store))
    lib.swsim_store_close(store)


def load_libraries(swpipe, swsim):
    pipe, sim = c.CDLL(swpipe), c.CDLL(swsim)
    pipe.swpipe_error.restype = c.c_char_p
    pipe.swpipe_iteration.restype = c.c_int64
    pipe.swpipe_iteration.argtypes = [c.c_void_p]
    pipe.swpipe_batch.restype = c.c_void_p
    pipe.swpipe_batch.argtypes = [c.c_void_p]
    pipe.swpipe_close.restype = None
    for name in ("swsim_json", "swsim_plan_error", "swsim_error", "swsim_store_error"):
        getattr(sim, name).restype = c.c_char_p
    return pipe, sim


pipe_library, sim_library = load_libraries(sys.argv[1], sys.argv[2])
example_plan = os.path.join(sys.argv[3], "plans/examples/hello.yaml")
squares(pipe_library)
verdicts(sim_library, example_plan)
options(sim_library, example_plan)
print(f"1..{cases}")

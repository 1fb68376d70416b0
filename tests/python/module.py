# SPDX-License-Identifier: Apache-2.0
"""The Python package as a user has it. Prints TAP.

    python3 tests/python/module.py SOURCES FOLDER COMPILER      the package, the programs, the libraries are found
"""
import contextlib
import ctypes
import importlib.util
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import traceback

import swsim
from swsim import _swpipe
from swsim.swpipeline import (DataFlowPipeline, DeclaredIO, PipelinePlan, PipelineTask, SWPipeline, TaskProfiler,
                              TaskSchedule)

SOURCES, FOLDER, COMPILER = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3].split()
cases = failures = 0


def check(what, passed, told=""):
    """One case."""
    global cases, failures
    cases += 1
    failures += not passed
    print("ok" if passed else "not ok", cases, "-", what, flush=True)
    if not passed:
        for line in str(told).splitlines():
            print("#", line)


def skip(what, why):
    """A case that cannot be tried here."""
    global cases
    cases += 1
    print("ok", cases, "-", what, "# SKIP", why, flush=True)


def raises(kind, call):
    """The exception of this kind that the call raises; None."""
    try:
        call()
    except kind as error:
        return error
    return None


HELLO = SOURCES / "plans/examples/hello.yaml"
BROKEN = SOURCES / "plans/bugs/nccl_send_send_broken.yaml"


# ---- questions -----------------------------------------------------------------------------------


def little(**keys):
    """A plan of two tasks, built by calls."""
    return (swsim.Plan("little", **keys).task("Copy", stage=0, stream="memcpy", writes=["x"])
            .task("Train", stage=1, reads=["x"]).needs("Train", "Copy"))


def questions():
    """verify, predict, what_if, tune, render."""
    verdict = swsim.verify(HELLO)
    check("a path is verified, under both drivers", verdict.proved and len(verdict.documents) == 2, verdict)
    check("a plan built by calls, a dictionary, a text: the same verdict",
          all(swsim.verify(plan, driver="clock") for plan in (little(), little().to_dict(), str(little()))))
    race = little().to_dict() | {"intra_iter_deps": []}
    verdict = swsim.verify(race, driver="clock")
    check("a missing dependence is a race", not verdict and verdict.violation in ("race", "value"), verdict)
    check("with a story and a repair that holds", verdict.story and verdict.repair and swsim.verify(verdict.repair), verdict)
    check("the repair is also a diff", verdict.diff.startswith("@@") and verdict.change, verdict.diff)
    check("a text and a view for notebooks: storyboard, steps, repair",
          verdict.violation in str(verdict) and "None" not in str(verdict)
          and all(part in verdict._repr_html_() for part in ("<svg", "<table>", "Fix (proved)")), verdict)
    check("the storyboard is a file, too", pathlib.Path(verdict.render(FOLDER / "story.svg")).stat().st_size > 1000)
    check("a proved plan has none", raises(swsim.UsageError, swsim.verify(HELLO).render))
    check("no repair is searched if none is wanted", swsim.verify(race, driver="clock", no_fix=True).repair is None)
    verdict = swsim.verify(BROKEN)
    check("a deadlock has who is blocked", verdict.violation == "deadlock" and verdict.blocked
          and "blocked: " in str(verdict) and "waits for" in verdict._repr_html_(), verdict)
    check("steps and operations have lines", verdict.document["operations"][0]["line"] == 10
          and all(step["line"] and step["column"] for step in verdict.story), verdict.story)
    prediction = swsim.predict(HELLO, driver="clock", iterations=100)[0]
    check("a prediction has times and streams", prediction.iteration_ns["mean"] == 4e6 and "main" in prediction.streams)
    check("its view has a timeline, or says what is missing", "<table>" in prediction._repr_html_())
    check("the timeline is a page, too", "<html" in prediction.timeline("html").lower())
    plain, faster = swsim.what_if(HELLO, {"Compute": "0.5x"}, driver="clock", iterations=100)
    check("what if: half the time", plain.iteration_ns["mean"] == 2 * faster.iteration_ns["mean"])
    check("a bound of the time is kept, or not",
          [swsim.predict(HELLO, driver="clock", max_iteration=time)[0].within for time in ("5ms", "3ms")] == [True, False])
    wanted = swsim.verify(race | {"expect": {}}, driver="clock", expect=True)
    check("what is not as the plan expects has a place",
          wanted.problems and wanted.problems[0].line and "expects no violation" in wanted.problems[0].text, wanted.problems)
    check("... and a plan that is as it expects has none", not swsim.verify(HELLO, expect=True).problems)
    tuning = swsim.tune(little(), budget=50)
    check("a tuned plan is proved", swsim.verify(tuning.plan, driver="clock"), tuning.plan)
    path = swsim.render(HELLO, FOLDER / "hello.dot")
    check("a picture is written", pathlib.Path(path).stat().st_size > 0)
    check("a plan in its usual form", swsim.canonical(little())["name"] == "little")
    if importlib.util.find_spec("pandas"):
        check("a frame has a row for each stream", set(prediction.to_frame().index) == set(prediction.streams))
    else:
        skip("a frame", "pandas is not installed")


def errors():
    """Wrong plans and questions are exceptions with places."""
    error = raises(swsim.PlanError, lambda: swsim.verify("swplan: 1\nschedule:\n  A: {stag: 1}\n  B: {stage: x}\n"))
    check("a wrong key has line and column", error and (error.line, error.column) == (3, 7), error)
    check("every error is listed", error and len(error.problems) == 2, error and error.problems)
    check("a file that is not there", raises(swsim.UsageError, lambda: swsim.verify("/does/not/exist.yaml")))
    check("what is no plan", "found NoneType" in str(raises(swsim.UsageError, lambda: swsim.verify(None))))
    check("a plan with a value that no file can have",
          raises(swsim.UsageError, lambda: swsim.verify(little().task("Copy", time=object()))))
    check("an option that is not there", raises(swsim.UsageError, lambda: swsim.verify(HELLO, nothing=True)))
    large = "swplan: 1\nname: large\ngenerate: {schedule: 1f1b, ranks: 2, microbatches: 4}\n"
    verdict = swsim.verify(SOURCES / "plans/torchrec/sparse_dist.yaml", driver="clock", limit="states=3", no_reduction=True)
    check("a limit is a verdict", verdict.verdict == "undecided" and not verdict, verdict)
    check("a generated plan", swsim.verify(large).proved)


def interrupted():
    """KeyboardInterrupt ends a question; progress is told."""
    slow = SOURCES / "plans/torchrec/sparse_dist.yaml"
    lines = []
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts tests in the background has it ignored
    threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    error = raises(KeyboardInterrupt, lambda: swsim.tune(slow, budget=10000000, progress=lines.append))
    check("KeyboardInterrupt ends a question", error is not None and time.monotonic() - begin < 60)
    check("progress is told", lines and "\t" not in lines[0], lines)


def jobs():
    """Traces and dumps, and the runs of a store."""
    store = FOLDER / "job.db"
    job = swsim.import_trace(SOURCES / "plans/traces/recommender", db=store)
    check("a trace becomes a plan", len(job.document["ranks"]) == 2 and swsim.verify(job.plan), job.messages)
    job = swsim.import_dump(SOURCES / "plans/traces/hang", host_waits=True)
    check("a hang is explained", swsim.verify(job.plan, no_fix=True).verdict == "violated", job.messages)
    runs = swsim.runs(store)
    check("a store has runs", runs and runs[0].number >= 1, runs)
    check("a run has a ledger and a page", runs and runs[-1].ledger() and "<html" in runs[-1].render(format="html").lower())


# ---- pipelines -----------------------------------------------------------------------------------


def copy(ctx):
    """The first task."""
    ctx.x = ctx.batch * 2


def train(ctx):
    """The second one."""
    ctx.loss = ctx.x + 1


TASKS = {"Copy": copy, "Train": train}


def boom(ctx):
    """Fails in the fourth iteration."""
    if ctx.iteration == 3:
        raise KeyError("100% three")
    ctx.loss = 0


def interrupt(ctx):
    """As if Ctrl-C were pressed in the third iteration."""
    if ctx.iteration == 2:
        raise KeyboardInterrupt
    ctx.loss = 0


def pipelines():
    """Tasks in Python, under both drivers and kinds of threads."""
    wanted = [2 * number + 1 for number in range(20)]
    for driver in ("clock", "dataflow"):
        for threads in ("caller", "workers"):
            kind = f"{driver}, {threads}"
            with swsim.Pipeline(little(), TASKS, driver=driver, threads=threads, max_depth=3 if driver == "dataflow" else 0,
                                message=lambda _: None) as pipe:
                check(f"{kind}: proved", pipe.verify()[0] is True)
                check(f"{kind}: results as in serial", [ctx.loss for ctx in pipe.run(range(20))] == wanted
                      == [ctx.loss for ctx in pipe.run_serial(range(20))])
                pipe.record("")
                check(f"{kind}: a recorded run is legal", len(list(pipe.run(range(5)))) == 5 and pipe.recorded()[1],
                      pipe.recorded())
            for body, error in ((boom, KeyError), (interrupt, KeyboardInterrupt)):
                with swsim.Pipeline(little(), {"Copy": copy, "Train": body}, driver=driver, threads=threads,
                                    message=lambda _: None) as pipe:
                    raised = raises(error, lambda: list(pipe.run(range(10))))
                    names = [frame.name for frame in traceback.extract_tb(raised.__traceback__)] if raised else []
                    check(f"{kind}: {error.__name__} of a task leaves run as it is", body.__name__ in names, names)
                    check(f"{kind}: ... and the pipeline runs again", len(list(pipe.run(range(2)))) == 2)
    with swsim.Pipeline(little(ranks=2), TASKS, message=lambda _: None) as pipe:
        out = [(ctx.rank, ctx.loss) for ctx in pipe.run([[1, 2], [10, 20]])]
        check("two ranks have batches of their own", sorted(out) == [(0, 3), (0, 5), (1, 21), (1, 41)], out)
    loop = SOURCES / "plans/deadlocks/modes_d_dep.yaml"
    check("a plan that must hang is refused", raises(swsim.PlanError, lambda: swsim.Pipeline(loop, {}, message=str)))
    check("a task that is not in the plan", raises(swsim.Error, lambda: swsim.Pipeline(little(), {"Nothing": copy})))


def forked():
    """In a child nothing is called, and closing does nothing."""
    pipe = swsim.Pipeline(little(), TASKS, message=lambda _: None)
    pipe.fill(range(10))
    child = os.fork()
    if child == 0:
        refused = raises(swsim.UsageError, pipe.progress)
        pipe.close()
        os._exit(0 if refused else 1)
    check("a child of a fork is refused", os.waitpid(child, 0)[1] == 0)
    check("... and its parent goes on", len(pipe.drain()) > 0)
    pipe.close()
    check("a closed pipeline says so", raises(swsim.UsageError, pipe.progress))


def reference():
    """The names of the SWPipeline reference."""
    state = {"seen": 0}

    def forward(ctx):
        state["seen"] += 1
        ctx.y = ctx.x + state["seen"]

    first, second = PipelineTask("H2D", copy), PipelineTask(
        "Forward", forward, io=[DeclaredIO(lambda: dict(state), lambda kept: state.update(kept))])
    plan = PipelinePlan(schedule={first: TaskSchedule(stage=0, thread_group="io"), second: TaskSchedule(stage=1)},
                        intra_iter_deps=[(second, first)], pipeline_depth=2)
    pipe = SWPipeline(plan)
    iterator, retired = pipe.fill_pipeline(range(5)), []
    check("filled twice is an error", raises(RuntimeError, lambda: pipe.fill_pipeline(range(5))))
    while True:
        try:
            retired.append(pipe.progress(iterator))
        except StopIteration:
            break
    check("progress returns iterations, then StopIteration", retired == list(range(5)), retired)
    check("run returns seconds", pipe.run(range(5)) > 0 and pipe.run_serial(range(5)) > 0)
    check("the schedule is printed", "H2D" in pipe.format_schedule(3) and "SWPipeline(" in repr(pipe))
    pipe.enable_shortcut("Forward")
    seen = state["seen"]
    for number in range(4):
        pipe.run_one_serial_iter(number, number)
    check("a short-cut task runs once, and its state is put back", state["seen"] == seen + 1, state)
    pipe.disable_shortcut("Forward")
    check("an unknown task is a ValueError", raises(ValueError, lambda: pipe.enable_shortcut("Nothing")))
    result = TaskProfiler(pipe).profile(1, num_warmup=1, num_measure=2, num_rounds=1)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        result.print_report()
    check("a profile has each task", set(result.exposed_s) == {"H2D", "Forward"} and "SUM" in out.getvalue())
    check("data-flow: the same calls", DataFlowPipeline(plan, max_depth=3).run(range(10)) > 0)
    check("the reference's device and emit_nvtx", raises(ValueError, lambda: SWPipeline(plan, device="gpu"))
          and "device='host'" in repr(SWPipeline(plan, device="host")))
    quickstart()


def quickstart():
    """The program of the reference's pages on tensors of the CPU, where PyTorch is: nothing but the import line differs."""
    if not importlib.util.find_spec("torch"):
        skip("the reference's quickstart on tensors", "PyTorch is not installed")
        return
    import torch  # pylint: disable=import-outside-toplevel,import-error

    torch.manual_seed(1)
    weights = torch.zeros(4, requires_grad=True)
    batches = [{"x": torch.randn(8, 4), "y": torch.randn(8)} for _ in range(12)]
    stream = torch.cpu.Stream()

    def copy_batch(ctx):
        ctx.x = ctx.batch["x"].to("cpu", non_blocking=True)
        ctx.y = ctx.batch["y"].to("cpu", non_blocking=True)

    def forward_task(ctx):
        ctx.loss = ((ctx.x @ weights - ctx.y) ** 2).mean()
        del ctx.x

    def backward(ctx):
        ctx.loss.backward()

    def optimize(_):
        with torch.no_grad():
            weights.sub_(0.1 * weights.grad)
        weights.grad = None

    tasks = [PipelineTask("H2D", copy_batch), PipelineTask("Forward", forward_task), PipelineTask("Backward", backward),
             PipelineTask("Optim", optimize)]
    h2d, fwd, bwd, optim = tasks
    plan = PipelinePlan(schedule={h2d: TaskSchedule(stage=0, stream=stream, thread_group="io"),
                                  fwd: TaskSchedule(stage=1, thread_group="compute"),
                                  bwd: TaskSchedule(stage=1, thread_group="compute"),
                                  optim: TaskSchedule(stage=1, thread_group="compute")},
                        intra_iter_deps=[(fwd, h2d), (bwd, fwd), (optim, bwd)], inter_iter_deps=[(fwd, optim)], pipeline_depth=2)
    results = []
    pipe = SWPipeline(plan, device=0)
    for run in (pipe.run, pipe.run_serial, DataFlowPipeline(plan, max_depth=3, device=0).run):
        with torch.no_grad():
            weights.zero_()
        seconds = run(iter(batches))
        results.append((weights.detach().clone(), seconds))
    check("the reference's quickstart trains the same weights, pipelined, serial and by data flow",
          results[0][0].abs().sum() > 0 and all(torch.equal(results[0][0], other) and seconds > 0 for other, seconds in results),
          results)


# ---- objects of others ---------------------------------------------------------------------------


class Stage:  # pylint: disable=too-few-public-methods
    """As PipelineStage of TorchRec."""

    def __init__(self, name, stream):
        self.name, self.stream = name, stream


class TrainPipelineSparseDist:  # pylint: disable=too-few-public-methods
    """As TorchRec's, by name."""


class Mine(TrainPipelineSparseDist):  # pylint: disable=too-few-public-methods
    """A user's own."""


def adapters():
    """Plans from objects."""
    pipeline = Mine()
    pipeline._enqueue_batch_after_forward = True
    check("with the order of its options", swsim.from_torchrec(pipeline)["schedule"]["H2D"]
          == swsim.canonical(SOURCES / "plans/torchrec/sparse_dist.after_forward.yaml")["schedule"]["H2D"]
          and swsim.from_torchrec(pipeline) != swsim.from_torchrec(Mine()))
    pipeline._memcpy_stream = pipeline._data_dist_stream = object()
    streams = {task.get("stream") for task in swsim.from_torchrec(pipeline)["schedule"].values()}
    check("one stream under two names is one stream", "memcpy" in streams and "data_dist" not in streams, streams)
    state = type("parallel_state", (), {f"get_{name}_world_size": staticmethod(lambda size=size: size) for name, size in {
        "pipeline_model_parallel": 4, "virtual_pipeline_model_parallel": 2, "tensor_model_parallel": 2, "data_parallel": 2,
        "context_parallel": 1, "expert_model_parallel": 0}.items()})
    plan = swsim.from_megatron(state, 8)
    check("Megatron's sizes become groups and a schedule with its messages",
          plan["generate"]["schedule"] == "interleaved_1f1b" and plan["parallel"]["tp"] == 2 and swsim.verify(plan), plan)
    check("an object without sizes", raises(swsim.UsageError, lambda: swsim.from_megatron(object(), 8)))
    check("messages that Megatron does not have", raises(swsim.PlanError, lambda: swsim.from_megatron(state, 8, messages="x")))
    plan = swsim.from_torchrec(Mine())
    check("a class derived from TorchRec's", plan["name"] == "Mine" and swsim.verify(plan, driver="clock"))
    check("a class that has no plan", raises(swsim.UsageError, lambda: swsim.from_torchrec(object())))
    staged = type("StagedTrainPipeline", (), {})()
    staged._pipeline_stages = [Stage("Copy", object()), Stage("Post", object())]
    plan = swsim.from_staged(staged)
    check("stages become tasks on their streams", swsim.verify(plan, driver="clock") and "Post" in str(plan), plan)
    schedule = type("Schedule1F1B", (), {})()
    schedule.pipeline_order = {0: ["0F0", "0F1", "0B0", "0B1"], 1: ["1F0", "1B0", "1F1", "1B1"]}
    plan = swsim.from_schedule(schedule)
    check("actions of ranks become rank programs", swsim.predict(plan, times="F=1ms,B=2ms"), plan)


# ---- agents --------------------------------------------------------------------------------------


def converse(messages):
    """The answers of the server to these lines."""
    lines = "\n".join(message if isinstance(message, str) else json.dumps(message) for message in messages)
    done = subprocess.run([sys.executable, "-m", "swsim.mcp"], input=lines + "\n", capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def agents():
    """The server speaks the protocol."""
    calls = [("verify", {"plan": str(BROKEN)}), ("predict", {"plan": str(HELLO), "iterations": 50}),
             ("what_if", {"plan": str(HELLO), "changes": {"Compute": "0.5x"}}), ("schema", {"name": "plan"}),
             ("verify", {"plan": "swplan: 1\nschedule: {A: {stag: 1}}\n"}), ("verify", {}), ("nothing", {}),
             ("why", {"plan": str(HELLO), "driver": "clock", "iterations": 50}), ("explain", {"word": "globally_ordered"}),
             ("explain", {"word": "nothing_of_it"})]
    answers = converse([{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}},
                        {"jsonrpc": "2.0", "method": "notifications/initialized"},
                        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
                        *({"jsonrpc": "2.0", "id": 3 + number, "method": "tools/call",
                           "params": {"name": name, "arguments": given}} for number, (name, given) in enumerate(calls)),
                        "no JSON", {"jsonrpc": "2.0", "id": 20, "method": "nothing"}])
    check("mcp: a protocol is agreed on", answers[0]["result"]["protocolVersion"] == "2025-03-26", answers)
    tools = {tool["name"] for tool in answers[1]["result"]["tools"]}
    check("mcp: tools are listed, a notification has no answer", {"verify", "predict", "what_if"} <= tools, tools)
    results = [one.get("result", {}) for one in answers[2:]]
    verdict = results[0]["structuredContent"]["documents"][0]["verdict"]
    check("mcp: a plan is refuted, with a repair", verdict == "violated" and results[0]["structuredContent"]["repaired_plan"])
    check("mcp: predictions", len(results[1]["structuredContent"]["documents"]) >= 1
          and len(results[2]["structuredContent"]["documents"]) >= 2)
    check("mcp: the schema of plans", "properties" in results[3]["structuredContent"]["documents"][0])
    check("mcp: a wrong plan is told to the agent", results[4]["isError"] and "stag" in results[4]["content"][0]["text"])
    wrong = answers[7:9] + answers[12:]
    check("mcp: wrong calls are errors of the protocol",
          [one.get("error", {}).get("code") for one in wrong] == [-32602, -32602, -32700, -32601], wrong)
    check("mcp: why an iteration takes its time", "Compute" in json.dumps(results[7]["structuredContent"])
          and "critical_path" in results[7]["structuredContent"]["documents"][0], results[7])
    check("mcp: what a key means", any("order" in one["meaning"] for one in results[8]["structuredContent"]["meanings"])
          and results[9]["isError"], results[8:])
    if not importlib.util.find_spec("mcp"):
        skip("the public client of the protocol", "mcp is not installed")
        return
    done = subprocess.run([sys.executable, SOURCES / "tests/python/mcp_client.py", BROKEN], capture_output=True, text=True, check=False)
    check("the public client of the protocol lists and calls tools", done.returncode == 0, done.stdout + done.stderr)


# ---- the package itself --------------------------------------------------------------------------


def layout():
    """The structures for ctypes have the layout of the headers."""
    text = '#include <stddef.h>\n#include "swpipe.h"\n'
    structures = [kind for kind in vars(_swpipe).values() if isinstance(kind, type) and issubclass(kind, ctypes.Structure)]
    for kind in structures:
        name = f"struct {kind.__name__}"
        text += f'_Static_assert(sizeof({name}) == {ctypes.sizeof(kind)}, "");\n'
        for member, _ in kind._fields_:
            text += f'_Static_assert(offsetof({name}, {member}) == {getattr(kind, member).offset}, "");\n'
    try:
        built = subprocess.run([*COMPILER, "-fsyntax-only", "-I", str(SOURCES / "gpu/lib"), "-x", "c", "-"], input=text,
                               capture_output=True, text=True, check=False)
    except OSError:
        skip("structures have the layout of the headers", "no compiler here")
        return
    check("structures have the layout of the headers", len(structures) > 15 and built.returncode == 0, built.stderr)
    exported = subprocess.run(["nm", "-D", "--defined-only", "libswpipe.so"], capture_output=True, text=True, check=False).stdout
    names = {line.split()[-1].split("@")[0] for line in exported.splitlines()}
    missing = {name for name in names if name.startswith("swpipe_") and "_print" not in name} - set(_swpipe.CALLS)
    check("every function of the library can be called", names and not missing, missing)


def others():
    """mypy, pytest, the example."""
    if importlib.util.find_spec("mypy"):
        done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", SOURCES / "python/pyproject.toml", "--cache-dir",
                               FOLDER / "mypy", "-p", "swsim"], capture_output=True, text=True, check=False)
        check("the types are right, mypy --strict", done.returncode == 0, done.stdout)
    else:
        skip("the types are right", "mypy is not installed")
    if importlib.util.find_spec("pytest"):
        (FOLDER / "test_plans.py").write_text(
            "import pytest\n"
            f"@pytest.mark.swsim({str(HELLO)!r}, driver='clock')\n"
            "def test_right(swsim_plan): assert swsim_plan.properties['deadlock'] == 'proved'\n"
            f"@pytest.mark.swsim({str(BROKEN)!r})\n"
            "def test_wrong(): pass\n")
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "swsim.pytest_plugin", "-p", "no:cacheprovider",
                               FOLDER / "test_plans.py"], capture_output=True, text=True, check=False)
        check("pytest: a right plan passes, a wrong one fails with its story",
              "1 passed" in done.stdout and "deadlock" in done.stdout, done.stdout)
    else:
        skip("the plugin of pytest", "pytest is not installed")
    notebook = SOURCES / "doc/notebook.ipynb"
    text = "\n".join("".join(cell["source"]) for cell in json.loads(notebook.read_text())["cells"]
                     if cell["cell_type"] == "code")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, cwd=SOURCES)
    check("the cells of the notebook run", done.returncode == 0 and "repaired" in done.stdout, done.stdout + done.stderr)
    if all(importlib.util.find_spec(name) for name in ("nbclient", "nbformat", "ipykernel")):
        import nbclient  # pylint: disable=import-outside-toplevel
        import nbformat  # pylint: disable=import-outside-toplevel

        read = nbformat.read(notebook, as_version=4)
        nbclient.NotebookClient(read, timeout=120, resources={"metadata": {"path": str(SOURCES)}}).execute()
        shown = json.dumps(read)
        check("in a notebook a verdict is a story, a prediction a timeline", "Fix (proved)" in shown and "<svg" in shown)
    else:
        skip("the notebook in a kernel", "nbclient or ipykernel is not installed")
    done = subprocess.run([sys.executable, SOURCES / "doc/examples/pipeline.py"], capture_output=True, text=True, check=False)
    check("the example runs, and its run is judged", "as the plan allows" in done.stdout and "2568" in done.stdout,
          done.stdout + done.stderr)
    check("the version is that of the program", swsim.version() in (SOURCES / "configure.ac").read_text())
    schemas = json.loads((SOURCES / "doc/schema/verdict.json").read_text())
    typed = __import__("swsim._documents", fromlist=["VerdictDocument"]).VerdictDocument
    check("documents are typed by their schemas", set(typed.__annotations__) == set(schemas["properties"]))


for test in (questions, errors, interrupted, jobs, pipelines, forked, reference, adapters, agents, layout, others):
    try:
        test()
    except Exception:  # pylint: disable=broad-except
        check(f"{test.__name__} goes to its end", False, traceback.format_exc())
print(f"1..{cases}")
sys.exit(failures > 0)

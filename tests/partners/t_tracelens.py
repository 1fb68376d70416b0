# SPDX-License-Identifier: Apache-2.0
# TraceLens (AMD; from its repository, as PyPI has another package of that name) on what `swsim render -o trace.json` writes:
# busy, computing, copying and communicating time, and that each operation has its launch, against the trace store.
import collections, json, os, sqlite3, warnings

from tap import check, done, folder, here, needs, swsim

needs("TraceLens", "pandas")
warnings.filterwarnings("ignore")
from TraceLens import TreePerfAnalyzer

plans = here.parent.parent / "plans"


def length(intervals):
    """How long they are, where they overlap once."""
    total, end = 0, None
    for start, stop in sorted(intervals):
        if end is None or start > end:
            end = start
        total += max(stop - end, 0)
        end = max(end, stop)
    return total


def compare(what, database):
    trace = folder / "trace.json"
    made = swsim("render", "--rank=0", "-o", trace, database)
    if not check(f"{what}: a trace", made.returncode == 0, made.stderr):
        return
    events = json.loads(trace.read_text())["traceEvents"]
    work = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    classes = collections.defaultdict(list)
    for event in work:
        name = event["name"].lower()
        classes["comm" if "nccl" in name else "copy" if event["cat"] != "kernel" else "compute"].append(
            (event["ts"] * 1000, (event["ts"] + event["dur"]) * 1000))
    store = sqlite3.connect(database)
    spans = store.execute("SELECT start_ns, end_ns FROM span JOIN agent ON agent.id = agent "
                          "WHERE span.kind = 'device' AND rank = 0").fetchall()
    store.close()
    analyzer = TreePerfAnalyzer.from_file(profile_filepath=str(trace))
    times = analyzer.get_df_gpu_timeline().set_index("type")["time ms"]
    ours = {"busy_time": length(spans), "computation_time": length(classes["compute"]),
            "total_memcpy_time": length(classes["copy"]), "total_comm_time": length(classes["comm"])}
    wrong = {name: (times[name], ns / 1e6) for name, ns in ours.items() if abs(times[name] - ns / 1e6) > 1e-3}
    check(f"{what}: busy, computing, copying and communicating time", not wrong, wrong)
    launched = sum(launch["direct_kernel_count"] for launch in analyzer.get_kernel_launchers(include_nccl=True))
    check(f"{what}: each of {len(work)} operations has its launch", launched == len(work), launched)


RUNS = [("sparse_dist, predicted", ("predict", "-q", "--driver=clock", "-n8", "--db"), "torchrec/sparse_dist.yaml"),
        ("prefetch, predicted", ("predict", "-q", "--driver=dataflow", "-n8", "--db"), "torchrec/prefetch.yaml"),
        ("recommender, imported", ("import", "-q", "-o", folder / "plan.yaml", "--db"), "traces/recommender")]
for number, (what, command, plan) in enumerate(RUNS):
    database = folder / f"run{number}.db"
    made = swsim(*command, database, plans / plan)
    if check(f"{what}: a run", made.returncode == 0, made.stderr):
        compare(what, database)
done()

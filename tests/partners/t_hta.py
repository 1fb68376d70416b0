# SPDX-License-Identifier: Apache-2.0
# HolisticTraceAnalysis on what `swsim render -o trace.json` writes: its figures of kernels, communication, overlap and idle
# time against those of the trace store, for predicted, measured and imported runs. Times in whole nanoseconds.
import collections, gzip, json, logging, os, sqlite3, subprocess

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
from tap import check, comment, done, folder, here, needs, swsim

needs("hta.trace_analysis")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
from hta.utils.utils import get_kernel_type

plans = here.parent.parent / "plans"


# The intervals without their overlaps, and how long they are.
def union(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def length(intervals):
    return sum(end - start for start, end in intervals)


def common(a, b):
    return length(a) + length(b) - length(union(a + b))


# Work of a rank in the store: by name, and the intervals of each class. The trace says what a name is.
def ours(store, rank, class_of):
    by_name, classes = collections.defaultdict(list), collections.defaultdict(list)
    for task, start, end in store.execute(
            "SELECT task, start_ns, end_ns FROM span JOIN agent ON agent.id = agent "
            "WHERE span.kind = 'device' AND rank = ?", (rank,)):
        by_name[task].append(end - start)
        classes[class_of[task]].append((start, end))
    return by_name, classes


def export(database, rank):
    trace = folder / f"rank{rank}.json.gz"
    made = swsim("render", f"--rank={rank}", "-o", trace, database)
    assert made.returncode == 0, made.stderr
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    names = {event["name"]: event["args"]["task"] for event in events if event.get("cat") in ("kernel", "gpu_memcpy")}
    return trace, names


def same(theirs_us, ours_ns):
    return abs(theirs_us * 1000 - ours_ns) < 0.5


def compare_rank(what, analysis, rank, names, store):
    by_name, classes = ours(store, rank, {task: get_kernel_type(name) for name, task in names.items()})
    kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=10 ** 6, duration_ratio=1.0,
                                                include_memory_kernels=True)[1]
    rows = [row for _, row in kernels[kernels["rank"] == rank].iterrows()]
    wrong = [row["name"] for row in rows
             if not (same(row["sum (us)"], sum(by_name[names[row["name"]]]))
                     and same(row["max (us)"], max(by_name[names[row["name"]]]))
                     and same(row["min (us)"], min(by_name[names[row["name"]]])))]
    check(f"{what}: sum, longest and shortest of {len(rows)} kernels", not wrong and len(rows) == len(by_name), wrong)
    work, compute = union(sum(classes.values(), [])), union(classes["COMPUTATION"])
    time = analysis.get_temporal_breakdown(visualize=False).set_index("rank").loc[rank]
    whole = work[-1][1] - work[0][0]
    check(f"{what}: whole, idle and computing time", same(time["kernel_time(us)"], whole)
          and same(time["idle_time(us)"], whole - length(work)) and same(time["compute_time(us)"], length(compute)),
          f"{time}\n{whole} {length(work)} {length(compute)}")
    talk = union(classes["COMMUNICATION"])
    if length(talk):
        overlap = analysis.get_comm_comp_overlap(visualize=False).set_index("rank")["comp_comm_overlap_pctg"][rank]
        mine = 100 * common(talk, compute) / length(talk)
        check(f"{what}: {mine:.2f}% of communication beside computation", abs(overlap - mine) < 0.0051, overlap)
    streams = analysis.t.get_trace(rank)
    busy = streams[streams["stream"] > 0].groupby("stream")["dur"].sum()
    mine = [ns for ns, in store.execute("SELECT sum(end_ns - start_ns) FROM span JOIN agent ON agent.id = agent "
                                        "WHERE span.kind = 'device' AND rank = ? GROUP BY agent", (rank,)) if ns]
    check(f"{what}: busy time of {len(mine)} streams", sorted(round(us * 1000) for us in busy if us) == sorted(mine),
          f"{busy}\n{mine}")


def compare(what, ranks):
    exported = {rank: export(store_path, rank) for rank in range(ranks)}
    analysis = TraceAnalysis(trace_files={rank: str(trace) for rank, (trace, _) in exported.items()},
                             include_last_profiler_step=True)
    store = sqlite3.connect(store_path)
    for rank in range(ranks):
        compare_rank(f"{what}, rank {rank}", analysis, rank, exported[rank][1], store)
    store.close()


RUNS = [(f"{name}, predicted", 2, ("predict", "-q", "--driver=clock", "-n8", "--db"), f"torchrec/{name}.yaml")
        for name in ("sparse_dist", "prefetch", "semi_sync", "base")]
RUNS += [("reference/sparse_dist, data-flow", 2, ("predict", "-q", "--driver=dataflow", "-n8", "--db"), "reference/sparse_dist.yaml"),
         ("1F1B, predicted", 4, ("predict", "-q", "--db"), "examples/one_f_one_b.yaml"),
         ("recommender, imported", 2, ("import", "-q", "-o", folder / "plan.yaml", "--db"), "traces/recommender")]
RUNS += [("hello, measured", 1, ("--quiet", "-n5", "--driver=clock", "--db"), "examples/hello.yaml")]
for number, (what, ranks, command, plan) in enumerate(RUNS):
    store_path = folder / f"run{number}.db"
    program = os.environ.get("SWRUN", "./swrun") if "measured" in what else os.environ.get("SWSIM", "./swsim")
    made = subprocess.run([program, *map(str, command), store_path, plans / plan], capture_output=True, text=True)
    if check(f"{what}: a run", made.returncode == 0, made.stderr):
        compare(what, ranks)
done()

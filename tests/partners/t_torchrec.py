# SPDX-License-Identifier: Apache-2.0
# TorchRec's pipelines on the CPU beside our plans of them: the order in which rank 0 makes its calls, over eight batches,
# against the order in which the clock driver submits the plan's tasks (torchrec_order.py drives them, over gloo).
#
# The sequence has three parts: the filling, until the third batch has been trained, the loop, and the emptying.
import json, os, pathlib, subprocess, sys

from tap import check, comment, done, folder, here, needs, skip, swsim

needs("fbgemm_gpu", "torchrec.distributed.train_pipeline")

BATCHES = 8
plans = here.parent.parent / "plans"
REFERENCE = ("base", "comp_autograd", "fused_sparse_dist", "prefetch", "sparse_dist", "sparse_dist_lite")
TORCHREC = ("base", "pt2", "sparse_dist", "sparse_dist.after_forward", "sparse_dist_lite", "fused_sparse_dist",
            "fused_sparse_dist.new", "fused_sparse_dist.current", "fused_sparse_dist.after_data_dist", "semi_sync",
            "semi_sync.start", "prefetch", "comp_autograd", "staged", "eval_sparse_dist", "eval_fused_sparse_dist",
            "eval_fused_sparse_dist.prefetch")
PLANS = [("torchrec", name, name) for name in TORCHREC] + [("reference", name + ".upstream", name) for name in REFERENCE]


def ours(path):
    store, trace = folder / "run.db", folder / "trace.json"
    store.unlink(missing_ok=True)
    made = swsim("predict", "-q", "--driver=clock", "-n", BATCHES, "--db", store, path)
    assert made.returncode == 0, made.stderr
    made = swsim("render", "--rank=0", "-o", trace, store)
    assert made.returncode == 0, made.stderr
    work = [event for event in json.loads(trace.read_text())["traceEvents"]
            if event.get("cat") == "user_annotation" and "iteration" in event.get("args", {})]
    return [(event["name"], event["args"]["iteration"]) for event in sorted(work, key=lambda event: event["ts"])]


# Until Forward(2) has been called, until Forward(5), and the rest.
def parts(calls):
    at = [calls.index(("Forward", batch)) + 1 for batch in (2, BATCHES - 3)]
    return calls[:at[0]], calls[at[0]:at[1]], calls[at[1]:]


def words(calls):
    return " ".join(f"{name}({batch})" for name, batch in calls)


# A filling that does the same in another order, or twice.
def each_once(calls):
    return sorted(set(calls), key=lambda call: (call[1], call[0]))


# The calls that differ, up to the first batch that is trained.
def beginning(calls):
    return calls[:calls.index(("Forward", 0)) + 1]


def compare(label, theirs, path):
    mine = ours(path)
    both = {name for name, _ in theirs} & {name for name, _ in mine}
    theirs = [call for call in theirs if call[0] in both and call[1] < BATCHES]  # behind the last batch: nothing to do
    mine = [call for call in mine if call[0] in both]
    told = lambda a, b: f"theirs: {words(a)}\nours:   {words(b)}"
    for part, a, b in zip(("filling", "loop", "emptying"), parts(theirs), parts(mine)):
        if part == "filling" and a != b:
            check(f"{label}: {part}, the same calls in another order", each_once(a) == each_once(b), told(a, b))
            comment(told(beginning(a), beginning(b)))
        else:
            check(f"{label}: {part}, {len(a)} calls of {len(both)} kinds", a == b, told(a, b))


out = folder / "orders.json"
driven = subprocess.run([sys.executable, "-W", "ignore", here / "torchrec_order.py", out], capture_output=True, text=True)
if not out.exists():
    skip("TorchRec's pipelines cannot be driven here: " + (driven.stderr.strip().splitlines() or ["?"])[-1])
    done()
result = json.loads(out.read_text())
comment(f"TorchRec {result['version']}")
for kind, plan, pipeline in PLANS:
    path = plans / kind / f"{plan}.yaml"
    if pipeline not in result["orders"]:
        skip(f"{kind}/{plan}: {result['refused'].get(pipeline, 'not in this version')}")
        continue
    compare(f"{kind}/{plan}", [tuple(call) for call in result["orders"][pipeline]], path)
done()

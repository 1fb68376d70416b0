# SPDX-License-Identifier: Apache-2.0
# Perfetto's trace processor on what `swsim render -o trace.json` writes: no event is dropped, and its slices, their times and the
# flows are those of the file. Its package fetches the program itself at the first use.
import collections, json

from tap import check, done, folder, here, needs, skip, swsim

needs("perfetto")
from perfetto.trace_processor import TraceProcessor

plans = here.parent.parent / "plans"
RUNS = [("sparse_dist, predicted", ("predict", "-q", "--driver=clock", "-n8", "--db"), "torchrec/sparse_dist.yaml"),
        ("recommender, imported", ("import", "-q", "-o", folder / "plan.yaml", "--db"), "traces/recommender")]


def compare(what, trace):
    events = json.loads(trace.read_text())["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    try:
        opened = TraceProcessor(trace=str(trace))
    except Exception as error:  # of the download, where its address cannot be reached
        return skip(f"{what}: no trace processor: {str(error).splitlines()[0]}")
    with opened as processor:
        errors = [(row.name, row.value) for row in processor.query(
            "select name, value from stats where severity in ('error', 'data_loss') and value > 0")]
        slices = {row.category: (row.n, row.ns) for row in processor.query(
            "select category, count(*) as n, sum(dur) as ns from slice group by 1")}
        flows = [row.n for row in processor.query("select count(*) as n from flow")][0]
    check(f"{what}: nothing is dropped", not errors, errors)
    ours = collections.defaultdict(lambda: (0, 0))
    for event in complete:
        n, ns = ours[event["cat"]]
        ours[event["cat"]] = n + 1, ns + round(event["dur"] * 1000)
    check(f"{what}: slices and their times", slices == dict(ours), (slices, dict(ours)))
    check(f"{what}: flows", flows == sum(event["ph"] == "s" for event in events), flows)


for number, (what, command, plan) in enumerate(RUNS):
    database, trace = folder / f"run{number}.db", folder / f"trace{number}.json"
    made = swsim(*command, database, plans / plan)
    if made.returncode == 0:
        made = swsim("render", "-o", trace, database)
    if not check(f"{what}: a trace", made.returncode == 0, made.stderr):
        continue
    compare(what, trace)
done()

# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages against the program: the times of random plans, found by both.

    python3 compare_times.py SWSIM FORM SEED PLANS [CHANGE]

predicts PLANS random plans of the FORM `host` or `pipeline` (these under both drivers), the
first of them from SEED, with times.py and with `SWSIM predict --json --db`. It compares the
whole time, each piece of work with its start and end, and when each iteration was admitted and
over. It prints each disagreement with its seed and plan, then what was compared; it exits with
1 where there is one. It compares the causes of idle times, too, where one thread of a host program
or one task of a pipeline pushes to the stream. CHANGE is `the whole time`, `work`, `CPU work` or `iterations`: what the
program says of it ends a nanosecond later, which must then be seen; or `idle`: it has no cause.
"""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter

from generate import generate_timed_host, generate_timed_pipeline
from host import duration, lower_host
from pipeline import NotRead, PipelineMachine
from steps import Machine
from times import Clock

SPANS = """
    select agent.rank, agent.name, start_ns, end_ns from span join agent on agent.id = span.agent
    where span.kind = ? and start_ns < end_ns
"""


IDLE = """
    select agent.rank, agent.name, start_ns, end_ns, cause from span join agent on agent.id = span.agent
    where span.kind = 'wait' and agent.kind = 'stream'
"""


def predict(swsim, plan, options):
    """What the program says: its object of JSON, work on streams and threads, iterations."""
    with tempfile.TemporaryDirectory() as folder:
        path, store = os.path.join(folder, "plan.yaml"), os.path.join(folder, "store.db")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(plan, file)
        ran = subprocess.run(
            [swsim, "predict", "--json", "--db", store, *options, path],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if ran.returncode not in (0, 1):
            raise RuntimeError(f"{swsim} exits with {ran.returncode}: {ran.stderr}\n{plan}")
        with sqlite3.connect(store) as rows:
            device = sorted(rows.execute(SPANS, ["device"]).fetchall())
            host = sorted(rows.execute(SPANS, ["host"]).fetchall())
            iterations = rows.execute("select rank, number, start_ns, retire_ns from iteration")
            iterations = sorted(iterations.fetchall())
            return json.loads(ran.stdout), device, host, iterations, rows.execute(IDLE).fetchall()


def different_ends(answer, run):
    total = answer["makespan_ns"]
    if "mismatch" in answer["violations"]:
        return ["a mismatch, expected none"]
    if answer["deadlock"] != run.stuck:
        return [f"deadlock: {answer['deadlock']}, expected {run.stuck}"]
    if not run.stuck and total != run.end:
        return [f"the whole time: {total}, expected {run.end}"]
    return []


def different_phases(answer, run):
    """Fill, to the end of the first iteration on every rank; drain, from the last admission."""
    fill = max(over for (_, iteration), (_, over) in run.iterations.items() if iteration == 0)
    drain = run.end - max(admitted for admitted, _ in run.iterations.values())
    for key, ours in (("fill_ns", fill), ("drain_ns", drain)):
        if answer[key] != ours:
            yield f"{key}: {answer[key]}, expected {ours}"


def different_timeout(answer, plan, machine, run):
    """Of the operations that exceed the limit of their communicator the one whose limit is over first."""
    limits = plan.get("machine", {}).get("timeout", {})
    exceed = set()
    for number, (called, end) in run.calls.items():
        operation = machine.program.operations[number]
        name = machine.program.comm_names[operation.comm]
        limit = duration(limits.get(name))
        taken = -1 if end is None else end - called
        if limit and not 0 <= taken <= limit:
            rank = machine.program.streams[operation.stream][0]
            exceed.add((called + limit, rank, name, called, taken, limit))
    first = {one[1:] for one in exceed if one[0] == min(exceed)[0]}
    said = answer.get("timeout")
    keys = ("rank", "comm", "called_ns", "taken_ns", "limit_ns")
    said = said and tuple(said[key] for key in keys)
    if (said or None) not in (first or {None}):
        return [f"timeout: {said}, expected one of {sorted(first)}"]
    return []


def first_difference(what, theirs, ours, until):
    """A sentence that says where two lists of spans differ; only of those that end by then."""
    theirs, ours = (
        Counter(one for one in spans if until is None or one[-1] < until)
        for spans in (theirs, ours)
    )
    if theirs == ours:
        return []
    return [f"{what}: {sorted(theirs - ours)[:2]}, expected {sorted(ours - theirs)[:2]}"]


def different_sums(answer):
    """Busy and idle times of a stream are the whole time."""
    for stream, account in answer["streams"].items():
        whole = account["busy"] + sum(account["stall"].values())
        if answer["makespan_ns"] and abs(whole - 1) > 1e-9:
            yield f"the account of stream {stream}: {whole}, expected 1"


def different_causes(theirs, ours):
    """Where an idle time has none of the causes that the page allows."""
    for rank, stream, start, end, causes in ours:
        said = [
            (cause, max(start, their_start), min(end, their_end))
            for their_rank, their_stream, their_start, their_end, cause in theirs
            if (their_rank, their_stream) == (rank, stream)
            and their_start < end
            and start < their_end
        ]
        if sum(end - start for _, start, end in said) != end - start or not all(
            cause.startswith(tuple(causes)) for cause, _, _ in said
        ):
            yield f"idle: stream {stream} of rank {rank} from {start} to {end}: {said}, expected {causes}"
            return


class Comparison:
    """Counts what was compared, and prints what differs."""

    def __init__(self, change):
        self.change = change
        self.counts, self.causes = Counter(), Counter()

    def changed(self, said):
        """What the program says, with each end of what CHANGE names a nanosecond later."""
        answer, *lists, idle = said
        if self.change == "the whole time" and answer["makespan_ns"] is not None:
            answer = {**answer, "makespan_ns": answer["makespan_ns"] + 1}
        names = ("work", "CPU work", "iterations")
        return (
            answer,
            *(
                [(*one[:-1], one[-1] + (name == self.change)) for one in ones]
                for name, ones in zip(names, lists)
            ),
            [(*one[:4], "idle" if self.change == "idle" else one[4]) for one in idle],
        )

    def compare(self, title, plan, machine, said):
        answer, device, host, iterations, idle = self.changed(said)
        latency = duration(plan.get("machine", {}).get("launch_latency"))
        run = Clock(machine, latency).simulate()
        for spans in (run.device, run.host):  # the program stores work that takes time
            spans[:] = [span for span in spans if span[-2] < span[-1]]
        found = []
        if run.mismatch and "mismatch" not in answer["violations"]:
            found.append("no mismatch, expected one")
        if not run.mismatch:
            found += different_ends(answer, run)
        if not run.mismatch:
            found += different_timeout(answer, plan, machine, run)
            self.counts["timeouts"] += "timeout" in answer
        until = run.end if run.mismatch else None
        found += first_difference("work", device, run.device, until)
        host = [(rank, *times) for rank, _, *times in host]
        found += first_difference("CPU work", host, run.host, until)
        over = [(*which, *times) for which, times in run.iterations.items() if times[1] is not None]
        found += first_difference("iterations", iterations, over, until)
        if run.iterations and not run.mismatch and not run.stuck:
            found += different_phases(answer, run)
        if not run.mismatch and not run.stuck:
            found += [*different_causes(idle, run.idle), *different_sums(answer)]
            self.counts["idle times"] += len(run.idle)
            for *_, causes in run.idle:
                self.causes["/".join(sorted(causes))] += 1
        self.counts["compared"] += 1
        self.counts["iterations"] += len(over)
        self.counts["stuck"] += run.stuck
        self.counts["mismatch"] += run.mismatch
        self.counts["ended"] += not run.stuck and not run.mismatch
        self.counts["pieces of work"] += len(run.device) + len(run.host)
        if found:
            self.counts["disagree"] += 1
            print(f"disagreement: {title}: {'; '.join(found)}\n{json.dumps(plan)}")

    def host(self, swsim, seed):
        plan, _ = generate_timed_host(seed)
        said = predict(swsim, plan, [])
        self.compare(f"host program {seed}", plan, Machine(lower_host(plan)), said)

    def pipeline(self, swsim, seed):
        plan, _, iterations = generate_timed_pipeline(seed)
        options = [] if "batches" in plan else ["-n", str(iterations)]
        for driver in ("clock", "dataflow"):
            title = f"pipeline {seed}, {' '.join([*options, '--driver=' + driver])}"
            try:
                machine = PipelineMachine(plan, driver, iterations)
            except NotRead:
                self.counts["not read"] += 1
                continue
            said = predict(swsim, plan, [*options, "--driver=" + driver])
            self.compare(title, plan, machine, said)

    def summary(self):
        ends = ("compared", "ended", "stuck", "mismatch", "not read")
        for what in (*ends, "iterations", "pieces of work", "idle times", "timeouts", "disagree"):
            print(f"{what}: {self.counts[what]}")
        for causes, count in sorted(self.causes.items()):
            print(f"idle for {causes}: {count}")
        return 1 if self.counts["disagree"] else 0


def main(swsim, form, seed, plans, change=None):
    comparison = Comparison(change)
    for number in range(int(seed), int(seed) + int(plans)):
        getattr(comparison, form)(swsim, number)
    return comparison.summary()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

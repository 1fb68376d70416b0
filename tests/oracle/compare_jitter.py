# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages against the program: how predicted durations vary.

    python3 compare_jitter.py SWSIM SEED ITERATIONS [CHANGE]

predicts pipelines of a task for each distribution of swplan(5), DISTRIBUTIONS, and compares the
durations with the distribution that the page names (a Kolmogorov-Smirnov statistic), those of two
ranks, of device and CPU part and of neighbouring iterations with each other (a correlation), and
those of another driver and of a plan with a task more (equal: doc/semantics.md, section 8). It
prints what differs and exits with 1 where something does. CHANGE is a distribution, whose name
then stands for another one, which must be seen. It shares no code with the program.
"""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from math import erf, exp, gamma, log, sqrt

MEAN = 1_000_000  # ns
FAR, TOGETHER = 2.6, 5.0  # times 1 / sqrt(n): one of a million statistics is as far away


def normal_cdf(value):
    return (1 + erf(value / sqrt(2))) / 2


def truncated(variation):
    """Normal around 1, cut off below 0, and scaled to the mean 1 again."""
    cut = normal_cdf(-1 / variation)
    mean = 1 + variation * exp(-1 / (2 * variation**2)) / (sqrt(6.283185307179586) * (1 - cut))
    return lambda x: (normal_cdf((x * mean - 1) / variation) - cut) / (1 - cut)


def lognormal(variation):
    spread = sqrt(log(1 + variation**2))
    return lambda x: normal_cdf((log(x) + spread**2 / 2) / spread) if x > 0 else 0


def gamma_cdf(variation):
    """The incomplete gamma function by its series."""
    shape = 1 / variation**2

    def cdf(x):
        x *= shape
        term = total = 1 / shape
        for number in range(1, 2000):
            term *= x / (shape + number)
            total += term
            if term < total * 1e-12:
                break
        return min(1.0, total * exp(shape * log(x) - x) / gamma(shape)) if x > 0 else 0

    return cdf


def steps(*factors):
    return lambda x: sum(factor <= x for factor in factors) / len(factors)


def spiked(cdf, share, add):
    return lambda x: (1 - share) * cdf(x) + share * cdf(x - add)


def exponential(x):
    return 1 - exp(-x) if x > 0 else 0


DISTRIBUTIONS = {
    "uniform(half=0.4)": lambda x: min(1, max(0, (x - 0.6) / 0.8)),
    "normal(cv=0.2)": truncated(0.2),
    "normal(cv=1.5)": truncated(1.5),
    "lognormal(cv=0.5)": lognormal(0.5),
    "lognormal(cv=2)": lognormal(2),
    "gamma(cv=0.5)": gamma_cdf(0.5),
    "gamma(cv=1.5)": gamma_cdf(1.5),
    "exponential": exponential,
    "pareto(alpha=2.5)": lambda x: 1 - (0.6 / x) ** 2.5 if x > 0.6 else 0,
    "empirical(0.5, 1, 1.25, 2)": steps(0.5, 1, 1.25, 2),
    "constant": steps(1),
    "spike(p=0.1, add=3ms)": spiked(steps(1), 0.1, 3),
    "exponential + spike(p=25%, add=2ms)": spiked(exponential, 0.25, 2),
}
TASKS = {name: f"T{number}" for number, name in enumerate(DISTRIBUTIONS)}


def plan_of(more=False):
    schedule = (
        {"Extra": {"stream": "extra", "time": "1ms", "jitter": "exponential"}} if more else {}
    )
    for name, task in TASKS.items():
        keys = {"stream": task, "thread_group": task, "time": "1ms", "jitter": name}
        schedule[task] = {**keys, "host_time": "1ms", "host_jitter": name}
    return {"swplan": 1, "ranks": 2, "schedule": schedule}


def durations(swsim, plan, seed, iterations, driver):
    """(task, part, rank): the durations of its iterations, in means."""
    with tempfile.TemporaryDirectory() as folder:
        path, store = os.path.join(folder, "plan.yaml"), os.path.join(folder, "store.db")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(plan, file)
        run = [
            swsim,
            "predict",
            "-q",
            f"--driver={driver}",
            f"--seed={seed}",
            f"-n{iterations}",
            f"--db={store}",
            path,
        ]
        subprocess.run(run, check=True, capture_output=True, timeout=300)
        with sqlite3.connect(store) as rows:
            found = rows.execute(
                "select task, span.kind, rank, end_ns - start_ns from span join agent on agent.id = span.agent"
                " where span.kind in ('device', 'host') order by iteration"
            ).fetchall()
    parts = {}
    for task, kind, rank, time in found:
        parts.setdefault((task, kind, rank), []).append(time / MEAN)
    return parts


def distance(values, cdf):
    """Of the empirical distribution from another one, both of which may jump; in 1 / sqrt(n)."""
    values, worst = sorted(values), 0
    for number, value in enumerate(values):
        below, at = cdf(value - 2e-6), cdf(value + 2e-6)
        if number + 1 == len(values) or values[number + 1] - value > 4e-6:
            worst = max(worst, (number + 1) / len(values) - at, at - (number + 1) / len(values))
        if number == 0 or value - values[number - 1] > 4e-6:
            worst = max(worst, below - number / len(values), number / len(values) - below)
    return worst * sqrt(len(values))


def correlation(one, other):
    """Of ranks, since a distribution may have no variance; in 1 / sqrt(n)."""

    def places(values):
        order = sorted(range(len(values)), key=lambda place: values[place])
        found = [0] * len(values)
        for place, index in enumerate(order):
            found[index] = place
        return found

    one, other, middle = places(one), places(other), (len(one) - 1) / 2
    total = sum((a - middle) * (b - middle) for a, b in zip(one, other))
    return abs(total / sum((a - middle) ** 2 for a in one)) * sqrt(len(one))


def main(swsim, seed, iterations, change=None):
    parts = durations(swsim, plan_of(), seed, iterations, "clock")
    count = wrong = 0
    for (task, kind, rank), values in sorted(parts.items()):
        name = next(name for name, one in TASKS.items() if one == task)
        cdf = exponential if name == change else DISTRIBUTIONS[name]
        far = distance(values, cdf)
        count += 1
        print(f"{name}, {kind} part of rank {rank}: {len(values)} draws, {far:.2f}")
        if len(values) != int(iterations) or far > FAR:
            wrong += 1
            print(
                f"disagreement: {name}: {kind} part of rank {rank}: {far:.2f}, expected at most {FAR}"
            )
        if name.startswith(("uniform", "normal", "lognormal", "gamma", "exp", "pareto")):
            others = {"the iteration before": (values[1:], values[:-1])}
            if rank == 0:
                others["rank 1"] = (values, parts[task, kind, 1])
                others["the other part"] = (
                    values,
                    parts[task, "host" if kind == "device" else "device", 0],
                )
            for what, pair in others.items():
                count += 1
                if correlation(*pair) > TOGETHER:
                    wrong += 1
                    print(f"disagreement: {name}: {kind} part of rank {rank} follows {what}")
    same = durations(swsim, plan_of(True), seed, iterations, "dataflow")
    other = durations(swsim, plan_of(), int(seed) + 1, iterations, "clock")
    for key in parts:
        count += 1
        if same[key] != parts[key]:
            wrong += 1
            print(f"disagreement: {key}: another driver and a task more draw other numbers")
        if not key[0] == TASKS["constant"] and other[key] == parts[key]:
            wrong += 1
            print(f"disagreement: {key}: another seed draws the same numbers")
    print(f"compared: {count}\ndisagree: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages against the program: random plans, judged by both.

    python3 compare.py SWSIM FORM SEED PLANS LIMIT [CHANGE]

judges PLANS random plans of the FORM `host` or `pipeline` (these under both drivers), the first
of them from SEED, with search.py and with `SWSIM verify --json`, and compares the answer for
each property, by the rules of doc/semantics.md, section 9, on what is undecided, and the length
of the story that is shown. A plan with more than LIMIT states is left out and counted. It
prints each disagreement with its seed and plan, then what was compared, how often each
property was violated and how many operations of each kind the compared host programs have; it
exits with 1 where there is a disagreement. CHANGE is `PROPERTY:OLD:NEW`: the
program's answer OLD is read as NEW, which must then be seen.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter

from generate import generate_host, generate_pipeline
from host import lower_host
from pipeline import NotRead, PipelineMachine
from search import PROPERTIES, search
from steps import Machine


def verdicts(swsim, plan, options):
    """What the program says of a plan: objects of its JSON, and what it says else."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(plan, file)
        ran = subprocess.run(
            [swsim, "verify", "--json", "--no-fix", *options, path],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    if ran.returncode not in (0, 1, 3, 4):
        raise RuntimeError(f"{swsim} exits with {ran.returncode}: {ran.stderr}")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def allowed(what, answers):
    """The answers that section 9 allows for a property, where the runs have these."""
    answer = answers.answer(what)
    found = {answer}
    if what in ("value", "serial") and ("race" in answers.length or "lifetime" in answers.length):
        found = {"undecided"}
    if what == "drain" and "deadlock" in answers.length:
        found = {"undecided"}
    if what != "mismatch" and "mismatch" in answers.length:
        found = {"undecided"} if answer == "proved" else {"undecided", answer}
    return found


def differences(answers, unmatched, verdict, properties):
    """The sentences that say where a verdict is another one."""
    said = verdict["properties"]
    for what in properties:
        expected = allowed(what, answers)
        if said[what] not in expected:
            yield f"{what}: {said[what]}, expected {' or '.join(sorted(expected))}"
    message = "always" if unmatched else "proved"
    if said["message"] != message:
        yield f"message: {said['message']}, expected {message}"
    shown = verdict["violation"]
    if shown in answers.length and len(verdict["witness"]) != answers.length[shown]:
        steps = len(verdict["witness"])
        yield f"a story of {shown} of {steps} steps, expected {answers.length[shown]}"


FLAG_KEYS = ("value", "add", "at_least", "equals", "count")


def operations(steps):
    """The first keys of all steps, those of bodies among them, and with each the key that says what
    is done with a flag."""
    for step in steps:
        kind = next(iter(step))
        yield kind
        yield from (f"{kind} {key}" for key in FLAG_KEYS if key in step)
        for inner in ("body", "then", "else"):
            yield from operations(step.get(inner, []))
        if kind == "query":
            yield f"query_{step['query']}"
        elif "then" in step or "else" in step:
            yield f"{kind} else"


class Comparison:
    """Counts what was compared, and prints what differs."""

    def __init__(self, limit, change):
        self.limit = limit
        self.change = change.split(":") if change else None
        self.counts, self.violated, self.answers = Counter(), Counter(), Counter()
        self.operations = Counter()

    def changed(self, verdict):
        if self.change:
            what, old, new = self.change
            if verdict["properties"][what] == old:
                verdict["properties"][what] = new
        return verdict

    def compare(self, title, plan, machine, verdict, properties):
        answers, states = search(machine, self.limit)
        if answers is None:
            self.counts["too large"] += 1
            return
        self.counts["compared"] += 1
        self.counts["states"] += states
        for steps in plan.get("threads", {}).values():
            self.operations.update(operations(steps))
        for keys in plan.get("flags", {}).values():
            self.operations.update(f"flags {key}" for key in keys)
        unmatched = machine.program.unmatched
        for what in properties:
            self.answers[answers.answer(what)] += 1
            self.violated[what] += what in answers.length
        self.violated["message"] += unmatched
        found = list(differences(answers, unmatched, self.changed(verdict), properties))
        if found:
            self.counts["disagree"] += 1
            print(f"disagreement: {title}: {'; '.join(found)}\n{json.dumps(plan)}")

    def host(self, swsim, seed):
        plan, _ = generate_host(seed)
        said = verdicts(swsim, plan, [])[0]
        if "properties" not in said:
            self.refused(f"host program {seed}", plan, said)
            return
        properties = [what for what in PROPERTIES if what not in ("serial", "slot", "drain")]
        self.compare(f"host program {seed}", plan, Machine(lower_host(plan)), said, properties)

    def pipeline(self, swsim, seed):
        plan, _, iterations = generate_pipeline(seed)
        options = [] if "batches" in plan else ["-n", str(iterations)]
        for driver in ("clock", "dataflow"):
            title = f"pipeline {seed}, {' '.join([*options, '--driver=' + driver])}"
            said = verdicts(swsim, plan, [*options, "--driver=" + driver])[0]
            if "properties" not in said:
                self.refused(title, plan, said)
                return
            try:
                machine = PipelineMachine(plan, driver, iterations)
            except NotRead:
                self.counts["not read"] += 1
                continue
            self.compare(title, plan, machine, said, PROPERTIES)

    def refused(self, title, plan, said):
        self.counts["refused"] += 1
        print(f"refused: {title}: {said['errors'][0]['text']}\n{json.dumps(plan)}")

    def summary(self):
        for what in ("compared", "states", "too large", "not read", "refused", "disagree"):
            print(f"{what}: {self.counts[what]}")
        for what, count in sorted(self.answers.items()):
            print(f"answer {what}: {count}")
        for what, count in sorted(self.violated.items()):
            print(f"violated {what}: {count}")
        for what, count in sorted(self.operations.items()):
            print(f"operation {what}: {count}")
        return 1 if self.counts["disagree"] or self.counts["refused"] else 0


def main(swsim, form, seed, plans, limit, change=None):
    comparison = Comparison(int(limit), change)
    for number in range(int(seed), int(seed) + int(plans)):
        getattr(comparison, form)(swsim, number)
    return comparison.summary()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

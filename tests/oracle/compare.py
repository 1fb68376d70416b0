# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages against the program: random plans, judged by both.

    python3 compare.py SWSIM FORM SEED PLANS LIMIT [CHANGE]

judges PLANS random plans of the FORM `host`, `pipeline` (under both drivers), `open` (pipelines with any
number of iterations), `host_faults`, `pipeline_faults` or `open_faults` (with --faults), the first
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
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter

from faults import with_faults
from generate import generate_host, generate_meeting, generate_pipeline, generate_ranks
from host import lower_host
from pipeline import NotRead, PipelineMachine
from ranks import NotPlaced, lower_ranks
from search import PROPERTIES, search, walk
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

    # ---- any number of iterations: each number is one of them --------------------------------------

    MOST = 3  # iterations of a finite run
    FEW = "--limit=states=20000"

    def open(self, swsim, seed):
        plan, _, _ = generate_pipeline(seed)
        plan.pop("batches", None)
        for driver in ("clock", "dataflow"):
            title = f"pipeline {seed}, --driver={driver}"
            said = verdicts(swsim, plan, ["--driver=" + driver, self.FEW])[0]
            if "properties" not in said:
                self.refused(title, plan, said)
                return
            try:
                machines = [
                    PipelineMachine(plan, driver, count) for count in range(1, self.MOST + 1)
                ]
            except NotRead:
                self.counts["not read"] += 1
                continue
            found = [search(machine, self.limit)[0] for machine in machines]
            self.compare_open(title, plan, self.changed(said), found)

    def compare_open(self, title, plan, said, found):
        """What is proved of any number is so of each; what is violated is so with few iterations, if
        the story has no more of them."""
        finite = [answers for answers in found if answers]
        if not finite:
            self.counts["too large"] += 1
            return
        self.counts["compared"] += 1
        steps = said.get("witness") or []
        named = [re.search(r"iteration (\d+)|\((\d+)\)", step["action"]) for step in steps]
        admitted = 1 + max((int(one[1] or one[2]) for one in named if one), default=0)
        wrong = []
        for what in PROPERTIES:
            answer = said["properties"][what]
            self.answers[answer] += 1
            shown = [what in answers.length for answers in finite]
            self.violated[what] += answer in ("some", "always")
            if answer == "proved" and any(shown):
                wrong.append(f"{what}: proved, expected some or always")
            if answer == "always" and None not in found and found[-1].answer(what) == "some":
                self.counts["always, but not of a run so short"] += 1
            if answer not in ("some", "always") or any(shown):
                continue
            if what == said["violation"] and admitted < self.MOST and None not in found:
                wrong.append(f"{what}: {answer}, expected proved")
            else:
                self.counts["violated by more iterations"] += 1
        if wrong:
            self.counts["disagree"] += 1
            print(f"disagreement: {title}: {'; '.join(wrong)}\n{json.dumps(plan)}")

    # ---- rank programs: few of their states can be visited, so runs are drawn -----------------------

    RUNS = 3

    def ranks(self, swsim, seed):
        plan, _ = generate_ranks(seed)
        title, said = f"rank programs {seed}", verdicts(swsim, plan, [self.FEW])[0]
        try:
            machine = Machine(lower_host(lower_ranks(plan)))
        except NotPlaced:
            self.counts["not read"] += 1
            if "properties" in said:
                self.counts["disagree"] += 1
                print(f"disagreement: {title}: accepted, expected none\n{json.dumps(plan)}")
            return
        if "properties" not in said:
            self.refused(title, plan, said)
            return
        draw = random.Random(f"runs {seed}")
        runs = [found | {end} for found, end in (walk(machine, draw) for _ in range(self.RUNS))]
        said = self.changed(said)["properties"]
        self.counts["compared"] += 1
        chance = "sm_slots" in plan.get("machine", {})
        self.counts["with groups"] += "parallel" in plan
        wrong = []
        for what in ("deadlock", "mismatch", "race", "lifetime", "value"):
            shown = [what in run for run in runs]
            answer = said[what]
            self.answers[answer] += 1
            self.violated[what] += any(shown)
            expected = {"always"} if all(shown) else {"some"} if any(shown) else {"proved"}
            if any(shown) != all(shown) or chance:
                expected |= {"some"}
            if what == "value" and any({"race", "lifetime"} & run for run in runs):
                expected = {"undecided"}
            if what != "mismatch" and any("mismatch" in run for run in runs):
                expected |= {"undecided", "always", "some"}
            if answer not in expected | ({"undecided"} if chance else set()):
                wrong.append(f"{what}: {answer}, expected {' or '.join(sorted(expected))}")
        self.violated["message"] += machine.program.unmatched
        if (said["message"] == "always") != machine.program.unmatched:
            wrong.append(f"message: {said['message']}, expected the other")
        for words in plan["programs"]:
            self.operations.update(re.sub(r"\d", "", word) for word in words.split())
        if wrong:
            self.counts["disagree"] += 1
            print(f"disagreement: {title}: {'; '.join(wrong)}\n{json.dumps(plan)}")

    # ---- faults ----------------------------------------------------------------------------------

    @staticmethod
    def fails(seed, plan):
        """The plan with what it does about a failure, and maybe a time limit that may be exceeded."""
        draw = random.Random(f"faults {seed}")
        rule = draw.choice([None, "none", "wake", "abort", "group_abort"])
        comms = [step for step in json.dumps(plan).split('"comm": "')[1:]]
        machine = {key: value for key, value in plan.get("machine", {}).items() if key != "timeout"}
        if comms and draw.random() < 0.3:
            machine["timeout"] = {draw.choice(comms).split('"')[0]: "1s"}
        plan = {**plan, **({"on_failure": rule} if rule else {})}
        return {**plan, "machine": machine} if machine else plan

    def judge_faults(self, title, plan, make, said):
        """`make()` is the machine with faults; or a list of them, of which any one may be the run's."""
        properties = said["properties"]
        answer = self.changed(said)["properties"]["faults"]
        self.answers[answer] += 1
        judged = ("deadlock", "mismatch", "drain")
        if any(properties[what] in ("some", "always") for what in judged):
            self.counts["hangs anyway"] += 1
            expected = {"undecided"}
        else:
            expected = self.expected_faults(make())
            self.counts["compared"] += 1
            self.operations[plan.get("on_failure", "by default")] += 1
        if answer == "undecided" and (said["limit"] or "undecided" in map(properties.get, judged)):
            self.counts["undecided"] += 1
            expected = None
        if expected and answer not in expected:
            self.counts["disagree"] += 1
            print(
                f"disagreement: {title}: faults: {answer}, expected {' or '.join(sorted(expected))}\n{json.dumps(plan)}"
            )

    def expected_faults(self, machines):
        """The answers that are right; where there are too many states, those that some runs leave."""
        ends = set()
        whole = True
        for machine in machines:
            answers, states = search(machine, self.limit)
            self.counts["states"] += states
            whole = whole and answers is not None
            if answers:
                ends |= answers.ends
            else:
                draw = random.Random(states)
                for _ in range(self.RUNS * 4):
                    machine.calm = draw.randrange(80)
                    ends.add(walk(machine, draw)[1])
        self.violated["faults"] += "faults" in ends
        self.counts["too large"] += not whole
        if "faults" in ends:
            return {"some"} if None in ends else {"some", "always"}
        return {"proved"} if whole else {"proved", "some"} if None in ends else None

    def host_faults(self, swsim, seed):
        plan = self.fails(seed, generate_host(seed)[0])
        title = f"host program {seed}, --faults"
        said = verdicts(swsim, plan, ["--faults", self.FEW])[0]
        if "properties" not in said:
            self.refused(title, plan, said)
            return
        machine = with_faults(Machine)
        make = lambda: [machine(plan, lower_host(plan), usual="none")]
        self.judge_faults(title, plan, make, said)

    def pipeline_faults(self, swsim, seed, open=False):
        meets = seed % 2
        plan, _, iterations = generate_meeting(seed) if meets else generate_pipeline(seed)
        plan = self.fails(seed, plan)
        options = [] if "batches" in plan else ["-n", str(iterations)]
        counts = [iterations]  # with `batches:` it is not looked at
        if open:
            plan.pop("batches", None)
            options, counts = [], range(1, self.MOST + 1)
        options += (
            ["--no-reduction"] if meets and not open else [self.FEW]
        )  # else by structure, without a fault
        for driver in ("clock", "dataflow"):
            title = f"pipeline {seed}, {' '.join([*options, '--faults', '--driver=' + driver])}"
            said = verdicts(swsim, plan, [*options, "--faults", "--driver=" + driver])[0]
            if "properties" not in said:
                self.refused(title, plan, said)
                return
            machine = with_faults(PipelineMachine)
            make = lambda: [
                machine(plan, plan, driver, count, usual="group_abort") for count in counts
            ]
            try:
                self.judge_faults(title, plan, make, said)
            except NotRead:
                self.counts["not read"] += 1

    def open_faults(self, swsim, seed):
        self.pipeline_faults(swsim, seed, True)

    def refused(self, title, plan, said):
        if "than can be tracked" in said["errors"][0]["text"]:  # messages of 0 bytes, all eager
            self.counts["not read"] += 1
            return
        self.counts["refused"] += 1
        print(f"refused: {title}: {said['errors'][0]['text']}\n{json.dumps(plan)}")

    def summary(self):
        for what in (
            "compared",
            "states",
            "too large",
            "hangs anyway",
            "undecided",
            "always, but not of a run so short",
            "violated by more iterations",
            "with groups",
            "not read",
            "refused",
            "disagree",
        ):
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

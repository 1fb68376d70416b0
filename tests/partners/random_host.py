# SPDX-License-Identifier: Apache-2.0
"""Random host programs of the oracle (tests/oracle/generate.py) for partners that can express a part of them."""

import pathlib, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "oracle"))
from generate import LOCKS, HostPlan


class RandomHost(HostPlan):
    """A program whose features are among `words`, apart from those of scenes. Every second one has threads of one rank and no
    streams."""

    def __init__(self, seed, words):
        super().__init__(seed)
        self.features = [feature for feature in self.features if feature in words]
        self.branches, self.alone, self.held = False, seed % 2 == 1, []
        if self.alone:
            self.plan, self.communicates, self.scene = {"swplan": 1, "queues": {"q": self.one_of([1, 2])}}, False, None
            self.threads = {f"r0.{name}": [] for name in "abc"[: self.one_of([2, 3])]}
            more = [feature for feature in "lock queue flags barrier ticket repeat".split() if feature in words]
            self.features = ["lock", *self.random.sample(more, self.one_of([1, 1, 2]))]

    def kinds(self, top):
        return [kind for kind in super().kinds(top) if not (self.alone and kind == "launch")] + ["compute"] * self.alone

    def make_locked(self, rank, flags):
        """Seldom a lock that the thread holds already: that always hangs."""
        free = [lock for lock in LOCKS if lock not in self.held]
        if not self.alone or not free or self.chance(0.03):
            return super().make_locked(rank, flags) if free else self.make_compute(rank, flags)
        self.held.append(self.one_of(free))
        inner = [step for _ in range(self.one_of([1, 2])) for step in self.steps(rank, False, flags)]
        lock = self.held.pop()
        return [{"lock": lock}, *inner, {"unlock": lock}]

    def made(self):
        """Mostly with a signal or an item for every wait."""
        plan, _ = super().made()
        steps = [step for steps in plan["threads"].values() for step in steps]
        flags = {kind: {step[kind] for step in steps if kind in step} for kind in ("await", "signal")}
        wanted = [{"signal": flag} for flag in sorted(flags["await"] - flags["signal"])]
        apart = sum(("put" in step) - ("get" in step) for step in steps)
        for step in wanted + [{"get" if apart > 0 else "put": "q"}] * abs(apart) if self.alone and self.chance(0.8) else []:
            steps = self.one_of(list(plan["threads"].values()))
            steps.insert(self.one_of([0, len(steps)]), step)
        return plan

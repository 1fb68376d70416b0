# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages: all interleavings of a machine (steps.py), breadth first, and what
they violate.

Written from doc/semantics.md, section 9: the answers `proved`, `some` and `always`, and what
ends a run. Nothing is reduced, so the first violation found is a shortest one. It shares no
code with the program.
"""

# A run that has violated one of the first stays one that has; one of the second ends it.
LASTING = ("race", "value", "lifetime", "bound", "slot", "serial")
ENDS = ("deadlock", "drain", "mismatch")
PROPERTIES = LASTING + ENDS


class Answers:
    """What the runs that are known so far violate."""

    def __init__(self):
        self.length = {}  # the steps of a shortest run that violates a property
        self.avoided = set()  # the properties that a whole run does not violate

        self.ends = set()  # how whole runs end

    def violated(self, what, length):
        self.length.setdefault(what, length)

    def run_ends(self, violated, end):
        """A run has violated these lasting properties, and ends with this one, or well."""
        self.ends.add(end)
        self.avoided.update(what for what in LASTING if what not in violated)
        self.avoided.update(what for what in ENDS if what != end)

    def answer(self, what):
        if what not in self.length:
            return "proved"
        return "some" if what in self.avoided else "always"


def search(machine, limit):
    """The answers of all runs, and the number of states; no answers above `limit` states."""
    answers = Answers()
    first = machine.start()
    machine.check_bound(first)
    for what in first["violated"]:
        answers.violated(what, 0)
    seen = {tuple(first.values())}
    level, length = [first], 0
    while level:
        following = []
        for state in level:
            at_end = True
            for after, mismatch in machine.steps(state):
                at_end = False
                for what in after["violated"]:
                    answers.violated(what, length + 1)
                if mismatch:
                    answers.violated("mismatch", length + 1)
                    answers.run_ends(after["violated"], "mismatch")
                    continue
                key = tuple(after.values())
                if key not in seen:
                    seen.add(key)
                    following.append(after)
            if at_end:
                end = machine.end(state)  # which may violate lasting ones, too
                for what in state["violated"] | ({end} if end else set()):
                    answers.violated(what, length)
                answers.run_ends(state["violated"], end)
            if len(seen) > limit:
                return None, len(seen)
        level, length = following, length + 1
    return answers, len(seen)


def walk(machine, draw):
    """One run: the next step of an agent that can take one, each time a random one. What it violates, and its end."""
    state = machine.start()
    machine.check_bound(state)
    while True:
        taken = machine.any_step(state, draw)
        machine.calm -= machine.calm > 0
        if not taken:
            return state["violated"], machine.end(state)
        state, mismatch = taken
        if mismatch:
            return state["violated"], "mismatch"

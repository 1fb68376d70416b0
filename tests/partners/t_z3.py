# SPDX-License-Identifier: Apache-2.0
# Random host programs as formulas for Z3, which is another way of looking at all runs: a run is a set of steps that were
# taken, each with a time. Z3 is asked for a run that ends with a step left and none that can be taken (deadlock), and for one
# in which two members of a communicator meet that differ (mismatch). Written from doc/semantics.md, without the machine and
# without a search. In it: launches, records, waits, syncs, flags, queues, locks, collectives, sends and receives.
#
#   SWSIM_PLANS=N    how many plans (60)      SWSIM_SEED=S    the first seed that is tried (1)
import itertools, json, os

from random_host import RandomHost
from tap import check, comment, done, folder, needs, swsim

needs("z3")
import z3

SYNCS = ("sync_stream", "sync_event", "sync_device")


WORDS = "queue lock group collective sync flags events".split()
OBJECTS = {"signal": "flag", "await": "flag", "record": "event", "wait": "event", "lock": "lock", "unlock": "lock"}
KINDS = {"launch", "collective", "group", "sync", "put", "get", "compute", *OBJECTS}


class Plan:
    """A random program: threads[(rank, name)] is a list of operations, each a dict with `kind`."""

    def __init__(self, seed):
        self.seed, self.plan = seed, RandomHost(seed, WORDS).made()
        self.ranks, self.comms = self.plan.get("ranks", 1), self.plan.get("comms", {})
        self.capacity = self.plan.get("queues", {}).get("q", 1)
        self.threads = {}
        for thread, steps in self.plan["threads"].items():
            rank, name = thread[1:].split(".")
            self.threads[int(rank), name] = [self.read(step) for step in steps if "compute" not in step]

    def fits(self):
        """False if a step cannot be expressed in the formula: then the seed is passed over."""
        steps = [step for steps in self.plan["threads"].values() for step in steps]
        values = {"add", "value", "at_least", "equals"}
        fitting = (next(iter(step)) in KINDS and len(step.get("group", "-")) == 1 and not values & set(step) for step in steps)
        return all(fitting) and "machine" not in self.plan and "flags" not in self.plan

    def read(self, step):
        kind = next(iter(step))
        op = {"kind": f"sync_{step[kind]}" if kind == "sync" else kind, OBJECTS.get(kind, "name"): step[kind], **step}
        if kind == "collective":
            root = step.get("root", min(self.comms[step["comm"]])) if step.get("op") == "broadcast" else None
            op["tag"] = step[kind], step.get("op", "all_reduce"), root
        if kind == "group":
            way = "send" if "send" in step[kind][0] else "recv"
            op |= {"kind": way, "tag": step[kind][0][way], "peer": step[kind][0]["peer"]}
        return op


class Step:
    """Something that happens at most once: whether it was taken, and when."""

    def __init__(self, name):
        self.taken, self.time = z3.Bool("x " + name), z3.Int("t " + name)


class Item:
    """An operation, with the steps of its call and of its stream."""

    def __init__(self, op, rank, thread, place):
        name = f"{rank}.{thread}.{place}"
        self.op, self.kind, self.rank, self.stream = op, op["kind"], rank, op.get("stream")
        self.thread, self.place = (rank, thread), place
        self.call = Step("call " + name)
        # The call of a sync is where it looks, and it ends in a step of its own.
        self.over = Step("over " + name) if self.kind in SYNCS else self.call
        self.pushed = self.kind in ("launch", "record", "wait", "collective", "send", "recv")
        self.start = Step("start " + name) if self.pushed else None
        self.finish = self.start if self.kind in ("record", "wait") else Step("finish " + name) if self.pushed else None


def count(conditions):
    return z3.Sum([z3.If(condition, 1, 0) for condition in conditions]) if conditions else z3.IntVal(0)


class Formula:
    def __init__(self, plan):
        self.plan = plan
        self.items = [
            Item(op, rank, name, place)
            for (rank, name), ops in plan.threads.items()
            for place, op in enumerate(ops)
        ]
        self.solver = z3.Solver()
        self.solver.set("timeout", 60000)
        self.steps = {}  # a step's guard, of a function that says whether another came before
        for item in self.items:
            self.add(item.call, self.called(item))
            if item.over is not item.call:
                self.add(item.over, self.synced(item))
            if item.pushed:
                self.add(item.start, self.started(item))
                if item.finish is not item.start:
                    self.add(item.finish, self.finished(item))
        for step, guard in self.steps.items():
            at = lambda other, step=step: z3.And(other.taken, other.time < step.time)
            self.solver.add(z3.Implies(step.taken, guard(at)), step.time >= 0)
        hosts = [step for item in self.items for step in {item.call, item.over}]
        self.solver.add(z3.Distinct(*[step.time for step in hosts]) if len(hosts) > 1 else True)

    def add(self, step, guard):
        self.steps[step] = guard

    def of(self, **wanted):
        return [item for item in self.items if all(getattr(item, key, None) == value for key, value in wanted.items())]

    def earlier(self, one, two):
        """`one` was called before `two`, which was called."""
        if one.thread == two.thread:
            return z3.BoolVal(one.place < two.place)
        return z3.And(one.call.taken, one.call.time < two.call.time)

    # ---- guards --------------------------------------------------------------------------------------

    def called(self, item):
        before = [other for other in self.items if other.thread == item.thread and other.place == item.place - 1]
        pick = lambda kind, **op: [o for o in self.items if o.kind == kind and all(o.op.get(k) == v for k, v in op.items())]

        def guard(at):
            own = [at(other.over) for other in before]
            if item.kind == "await":
                own.append(z3.Or([at(o.call) for o in pick("signal", flag=item.op["flag"])]))
            if item.kind in ("put", "get"):
                held = count([at(o.call) for o in pick("put")]) - count([at(o.call) for o in pick("get")])
                own.append(held < self.plan.capacity if item.kind == "put" else held > 0)
            if item.kind == "lock":
                of_rank = lambda kind: [at(o.call) for o in pick(kind, lock=item.op["lock"]) if o.rank == item.rank]
                own.append(count(of_rank("lock")) == count(of_rank("unlock")))
            return z3.And(own)

        return guard

    def means(self, item, record):
        """The event of a wait or a sync is that of this record: the last one before its call."""
        others = [o for o in self.records(item) if o is not record]
        later = [z3.And(self.earlier(record, o), self.earlier(o, item)) for o in others]
        return z3.And(self.earlier(record, item), z3.Not(z3.Or(later)))

    def records(self, item):
        return [o for o in self.of(kind="record", rank=item.rank) if o.op["event"] == item.op["event"]]

    def reached(self, item, at):
        return z3.And([z3.Implies(self.means(item, r), at(r.finish)) for r in self.records(item)])

    def synced(self, item):
        pushed = [o for o in self.of(pushed=True, rank=item.rank) if item.kind == "sync_device" or o.stream == item.stream]

        def guard(at):
            if item.kind == "sync_event":
                return z3.And(at(item.call), self.reached(item, at))
            return z3.And(at(item.call), *[z3.Implies(self.earlier(o, item), at(o.finish)) for o in pushed])

        return guard

    def started(self, item):
        comm = item.op.get("comm")
        before = [
            o
            for o in self.of(pushed=True, rank=item.rank)
            if o is not item and (o.stream == item.stream or (comm and o.op.get("comm") == comm))
        ]

        def guard(at):
            own = [z3.Implies(self.earlier(o, item), at(o.finish)) for o in before]
            if item.kind == "wait":
                own.append(self.reached(item, at))
            return z3.And(at(item.call), *own)

        return guard

    def number(self, item):
        """How many of its kind this rank has called before it on the communicator, of a message in its direction."""
        same = [
            o
            for o in self.of(kind=item.kind, rank=item.rank)
            if o is not item and o.op["comm"] == item.op["comm"] and o.op.get("peer") == item.op.get("peer")
        ]
        return count([self.earlier(o, item) for o in same])

    def partners(self, item):
        kind = {"send": "recv", "recv": "send"}.get(item.kind, "collective")
        for other in self.of(kind=kind):
            apart = other.op["comm"] == item.op["comm"] and other.rank != item.rank
            if apart and (kind == "collective" or (other.rank == item.op["peer"] and other.op["peer"] == item.rank)):
                yield other

    def finished(self, item):
        def guard(at):
            if item.kind == "launch":
                return at(item.start)
            met = {}
            for other in self.partners(item):
                here = z3.And(at(other.start), self.number(item) == self.number(other))
                met.setdefault(other.rank, []).append(here)
            members = [item.op["peer"]] if "peer" in item.op else self.plan.comms[item.op["comm"]]
            wanted = [rank for rank in members if "peer" in item.op or rank != item.rank]
            return z3.And(at(item.start), *[z3.Or(met.get(rank, [])) for rank in wanted])

        return guard

    # ---- questions -----------------------------------------------------------------------------------

    def mismatch(self):
        differ = [
            z3.And(item.start.taken, other.start.taken, self.number(item) == self.number(other))
            for item in self.items
            if "comm" in item.op
            for other in self.partners(item)
            if other.op["tag"] != item.op["tag"]
        ]
        return self.solver.check(z3.Or(differ))

    def deadlock(self):
        at_end = lambda other: other.taken
        stuck = [z3.Implies(z3.Not(step.taken), z3.Not(guard(at_end))) for step, guard in self.steps.items()]
        self.solver.push()
        self.solver.add(*stuck)
        answer = self.solver.check(z3.Or([z3.Not(step.taken) for step in self.steps]))
        self.solver.pop()
        return answer


def outcome(answer):
    return "violated" if answer == z3.sat else "proved" if answer == z3.unsat else "unknown"


def main():
    plans, first = int(os.environ.get("SWSIM_PLANS", 60)), int(os.environ.get("SWSIM_SEED", 1))
    comment(f"SWSIM_PLANS={plans} SWSIM_SEED={first}, Z3 {z3.get_version_string()}")
    seen, wrong, unknown = {}, [], 0
    path = folder / "plan.json"
    fitting = filter(Plan.fits, map(Plan, itertools.count(first)))
    for plan in itertools.islice(fitting, plans):
        path.write_text(json.dumps(plan.plan))
        told = swsim("verify", "--json", "--no-fix", "--property=deadlock,mismatch", path)
        if not told.stdout:
            wrong.append(f"seed {plan.seed}: {told.stderr}")
            continue
        properties = json.loads(told.stdout.splitlines()[0])["properties"]
        ours = {key: "proved" if properties[key] == "proved" else "violated" for key in ("mismatch", "deadlock")}
        formula = Formula(plan)
        theirs = {"mismatch": outcome(formula.mismatch())}
        if theirs["mismatch"] == "proved":  # else no run is followed beyond it
            theirs["deadlock"] = outcome(formula.deadlock())
        for key, answer in theirs.items():
            unknown += answer == "unknown"
            seen[key, answer] = seen.get((key, answer), 0) + 1
            if answer not in ("unknown", ours[key]):
                wrong.append(f"seed {plan.seed}: {key} is {answer} for Z3 and {ours[key]} for swsim\n{json.dumps(plan.plan)}")
    check(f"{plans} plans, {sum(seen.values())} answers, {unknown} open: swsim agrees", not wrong, "\n".join(wrong[:3]))
    comment(", ".join(f"{key} {answer}: {n}" for (key, answer), n in sorted(seen.items())))
    for key in ("mismatch", "deadlock"):
        check(f"both answers for {key} occur", seen.get((key, "proved")) and seen.get((key, "violated")), seen)
    done()


main()

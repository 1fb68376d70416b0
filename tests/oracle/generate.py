# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages: random plans, made from a seed, with a few of the features that a
form has.

Written from swplan(5). It shares no code with the program, nor with its own generator of plans
(tests/random_plan.c). A plan is printed as JSON, which is YAML, too. `python3 generate.py FORM
SEED` prints one of the FORM `host` or `pipeline`, with its features behind it.
"""

import json
import random
import sys

HOST_FEATURES = tuple("""
    repeat barrier queue lock ticket callback body alloc sm share_device hw_queues
    launch_queue launch_lock launch_order_implicit eager group collective bytes pageable
    sync flags events inputs memory launch_blocking host
    """.split())
STREAMS, FLAGS, EVENTS, LOCKS = ("s", "t", "u"), ("f", "h"), ("e", "g"), ("l", "m")


class RandomPlan:
    """What both forms have."""

    def __init__(self, seed, features, share):
        self.random = random.Random(seed)
        self.features = [feature for feature in features if self.chance(share)]

    def has(self, feature):
        return feature in self.features

    def chance(self, share):
        return self.random.random() < share

    def one_of(self, things):
        return self.random.choice(things)

    def some_used(self, form):
        """Some of the buffers that work reads or writes."""
        text = json.dumps(form)
        used = [name for name in self.buffers if f'["{name}"]' in text]
        return used[: self.random.randint(0, len(used))]


class HostPlan(RandomPlan):
    """One random host program."""

    def __init__(self, seed):
        super().__init__(f"host {seed}", HOST_FEATURES, 0.35)
        self.communicates = self.has("collective") or self.has("group")
        ranks = self.one_of([1, 2, 2, 2, 3] if self.communicates else [1, 1, 2])
        self.threads = {}
        for rank in range(ranks):
            for name in ("a", "b")[: 1 + self.chance(0.5 if ranks < 3 else 0.15)]:
                self.threads[f"r{rank}.{name}"] = []
        self.streams = STREAMS[: self.one_of([1, 2, 2, 3])]
        self.buffers = ["x", "y"][: self.one_of([1, 2])]
        self.plan = {"swplan": 1, "ranks": ranks}
        self.comms = {}
        if self.communicates:
            for name in ("A", "B")[: self.one_of([1, 1, 2])]:
                self.comms[name] = self.random.sample(
                    range(ranks), self.random.randint(min(2, ranks), ranks)
                )
            self.plan["comms"] = self.comms
        if self.has("queue"):
            self.plan["queues"] = {"q": self.one_of([1, 2])}
        self.turns = [0] * ranks
        self.allocated = {}  # (rank, name): whether it is not freed yet
        self.names = 0

    def new_name(self):
        self.names += 1
        return f"k{self.names}"

    # ---- steps ---------------------------------------------------------------------------------

    def accesses(self):
        if self.chance(0.4):
            return {}
        keys = {self.one_of(["reads", "writes"]): [self.one_of(self.buffers)]}
        if "reads" in keys and self.chance(0.2):
            keys["writes"] = [self.one_of(self.buffers)]
        return keys

    def stream(self):
        return {"stream": self.one_of(self.streams)}

    def slots(self):
        return {"sm": self.one_of([1, 1, 2])} if self.has("sm") and self.chance(0.7) else {}

    def kinds(self, top):
        """The kinds that the features allow; `top`: outside of repeats, turns and locks."""
        kinds = ["launch"] * 4 + ["compute"]
        for feature, more in (
            ("events", ["record", "wait"] * 2),
            ("sync", ["sync"] * 2),
            ("flags", ["flag"] * 2),
            ("queue", ["queue"] * 2),
            ("lock", ["locked"]),
            ("barrier", ["barrier"]),
            ("callback", ["callback"]),
            ("body", ["body"]),
            ("pageable", ["copy"]),
            ("host", ["host"]),
        ):
            kinds += more if self.has(feature) else []
        kinds += ["turn"] if top and self.has("ticket") else []
        kinds += ["memory"] * 3 if top and self.has("alloc") else []
        kinds += ["collective"] if self.has("collective") else []
        kinds += ["group"] if self.has("group") else []
        return kinds

    def steps(self, rank, top=True, flags=FLAGS):
        return getattr(self, "make_" + self.one_of(self.kinds(top)))(rank, flags)

    def make_launch(self, rank, flags):
        return [{"launch": self.new_name(), **self.stream(), **self.slots(), **self.accesses()}]

    def make_copy(self, rank, flags):
        pageable = {"pageable": True} if self.chance(0.6) else {}
        return [
            {"copy": self.one_of(["h2d", "d2h"]), **self.stream(), **pageable, **self.accesses()}
        ]

    def make_host(self, rank, flags):
        return [{"host": "1ms"}]

    def make_compute(self, rank, flags):
        return [{"compute": self.new_name(), **self.accesses()}]

    def make_record(self, rank, flags):
        return [{"record": self.one_of(EVENTS), **self.stream()}]

    def make_wait(self, rank, flags):
        return [{"wait": self.one_of(EVENTS), **self.stream()}]

    def make_sync(self, rank, flags):
        what = self.one_of(["stream", "event", "device"])
        keys = {"stream": self.stream(), "event": {"event": self.one_of(EVENTS)}, "device": {}}
        return [{"sync": what, **keys[what]}]

    def make_flag(self, rank, flags):
        return [{self.one_of(["signal", "await"]): self.one_of(flags)}]

    def make_queue(self, rank, flags):
        return [{self.one_of(["put", "get"]): "q"}]

    def make_locked(self, rank, flags):
        lock = self.one_of(LOCKS)
        unlock = [{"unlock": lock}] if self.chance(0.93) else []
        return [{"lock": lock}] + self.steps(rank, False, flags) + unlock

    def make_barrier(self, rank, flags):
        return [{"barrier": "all"}]

    def make_turn(self, rank, flags):
        turn = self.turns[rank]
        self.turns[rank] += 1
        return [{"ticket": turn}] + self.steps(rank, False, flags) + [{"serve": turn}]

    def cheap_steps(self, rank, flags, kinds):
        kinds = ["compute"] + [kind for feature, kind in kinds if self.has(feature)]
        return [
            step
            for _ in range(self.one_of([1, 1, 2]))
            for step in getattr(self, "make_" + self.one_of(kinds))(rank, flags)
        ]

    def make_callback(self, rank, flags):
        body = self.cheap_steps(rank, flags, (("flags", "flag"), ("queue", "queue")))
        if self.has("lock") and self.chance(0.4):
            body = [{"lock": "l"}, *body, {"unlock": "l"}]
        return [{"callback": self.new_name(), **self.stream(), "body": body}]

    def make_body(self, rank, flags):
        body = self.cheap_steps(rank, flags, (("flags", "flag"),))
        return [{"launch": self.new_name(), **self.stream(), **self.slots(), "body": body}]

    def make_memory(self, rank, flags):
        """Allocate memory, or use or free what is there."""
        mine = [name for (owner, name), there in self.allocated.items() if owner == rank and there]
        choice, stream = self.random.random(), self.stream()
        access = {self.one_of(["writes", "writes", "reads"]): [self.one_of(mine)]} if mine else {}
        count = sum(owner == rank for owner, _ in self.allocated)
        if count < 3 and (choice < 0.5 or not mine):
            name = f"m{count}"
            self.allocated[rank, name] = True
            other = stream if self.chance(0.6) else self.stream()
            use = (
                [{"launch": self.new_name(), **other, "writes": [name]}] if self.chance(0.8) else []
            )
            return [{"alloc": name, **stream}] + use
        if not mine or choice < 0.8:
            return [{"launch": self.new_name(), **stream, **access}]
        if choice < 0.87:
            return [{"record_stream": self.one_of(mine), **stream}]
        name = self.one_of(mine)
        self.allocated[rank, name] = self.chance(0.1)  # else it is freed twice
        return [{"free": name}]

    def comm_of(self, rank):
        names = [name for name, members in self.comms.items() if rank in members]
        return self.one_of(names) if names else None

    def make_collective(self, rank, flags):
        """A collective of one member: its peers may have none, or another one."""
        comm = self.comm_of(rank)
        if not comm:
            return self.make_launch(rank, flags)
        step = {
            "collective": self.one_of(["c1", "c1", "c2"]),
            "comm": comm,
            **self.stream(),
            **self.slots(),
        }
        if self.has("bytes") and self.chance(0.5):
            step["bytes"] = self.one_of(["1MiB", "2MiB"])
        return [{**step, **self.accesses()}]

    def make_group(self, rank, flags):
        comm = self.comm_of(rank)
        if not comm:
            return self.make_launch(rank, flags)
        parts = []
        for _ in range(self.one_of([1, 1, 2])):
            part = {
                self.one_of(["send", "recv"]): self.one_of(["t1", "t2"]),
                "peer": self.one_of(self.comms[comm]),
            }
            if self.has("bytes") and self.chance(0.6):
                part["bytes"] = self.one_of(["1MiB", "2MiB", "0B"])
            parts.append(part)
        return [{"group": parts, "comm": comm, **self.stream(), **self.accesses()}]

    # ---- communication that meets --------------------------------------------------------------

    def thread_of(self, rank):
        return self.one_of(
            [steps for name, steps in self.threads.items() if name.startswith(f"r{rank}.")]
        )

    def add_collective(self, comm):
        kind = self.one_of([{}, {}, {"op": "all_gather"}, {"op": "broadcast"}])
        tag = self.one_of(["c1", "c2", "c3"])
        for rank in self.comms[comm]:
            self.thread_of(rank).append(
                {
                    "collective": tag,
                    "comm": comm,
                    **kind,
                    **self.stream(),
                    **self.slots(),
                    **self.accesses(),
                }
            )

    def add_message(self, comm):
        sender, receiver = self.random.sample(self.comms[comm], 2)
        tag = self.one_of(["t1", "t2"])
        sends, receives = [{"send": tag, "peer": receiver}], [{"recv": tag, "peer": sender}]
        if self.chance(0.3):
            sends.append({"recv": "t9", "peer": receiver})
            receives.append({"send": "t9", "peer": sender})
        if self.has("bytes"):
            for part in sends + receives:
                part["bytes"] = "1MiB" if self.chance(0.9) else "2MiB"
        for rank, parts in ((sender, sends), (receiver, receives)):
            self.thread_of(rank).append(
                {"group": parts, "comm": comm, **self.stream(), **self.accesses()}
            )

    def add_communication(self):
        comm = self.one_of(list(self.comms))
        if self.has("collective") and (not self.has("group") or self.chance(0.6)):
            self.add_collective(comm)
        elif len(self.comms[comm]) > 1:
            self.add_message(comm)

    # ---- the whole -----------------------------------------------------------------------------

    def add_threads(self):
        for _ in range(self.random.randint(4, 11)):
            name = self.one_of(list(self.threads))
            rank = int(name[1 : name.index(".")])
            if self.communicates and self.chance(0.5):
                self.add_communication()
            elif self.has("repeat") and self.chance(0.3):
                body = []  # with flags of its own: a flag is in repeats or outside of them
                for _ in range(self.one_of([1, 2])):
                    body += self.steps(rank, False, ("again", "anew"))
                self.threads[name].append({"repeat": self.one_of([2, 2, 3]), "body": body})
            else:
                self.threads[name] += self.steps(rank)
        self.plan["threads"] = {name: steps for name, steps in self.threads.items() if steps}

    def add_machine(self):
        machine = {}
        if self.has("sm"):
            machine["sm_slots"] = self.one_of([1, 2, 2])
            if self.has("share_device") and len(self.turns) > 1:
                machine["share_device"] = [[0, 1]]
        if self.has("hw_queues"):
            machine["hw_queues"] = self.one_of([1, 2])
            if self.chance(0.4):
                self.plan["streams"] = {
                    self.streams[0]: {"hw_queue": self.random.randrange(machine["hw_queues"])}
                }
        if self.has("launch_queue"):
            machine["launch_queue"] = self.one_of([1, 2, 3])
        for feature in ("launch_lock", "launch_blocking"):
            if self.has(feature):
                machine[feature] = True
        if self.has("launch_order_implicit") and self.comms:
            machine["launch_order_implicit"] = True
        if self.has("eager") and self.comms:
            limit = self.one_of(
                [("eager_messages", 1), ("eager_messages", 2), ("eager_bytes", "2MiB")]
            )
            machine[limit[0]] = {self.one_of(list(self.comms)): limit[1]}
        if self.has("memory"):
            machine["memory"] = self.one_of(["1MiB", "2MiB", "3MiB", "4MiB"])
            self.plan["buffers"] = {
                name: {"scope": "shared", "bytes": self.one_of(["1MiB", "2MiB"])}
                for name in (*self.buffers, "m0", "m1", "m2")
            }
        if machine:
            self.plan["machine"] = machine

    def made(self):
        self.add_threads()
        self.add_machine()
        if self.has("inputs"):
            self.plan["inputs"] = self.some_used(self.plan["threads"])
        return self.plan, self.features


def generate_host(seed):
    return HostPlan(seed).made()


PIPELINE_FEATURES = tuple("""
    stages inter ranks groups tickets locks host_sync sync_after host_work retire
    launch_queue num_slots elide enqueue_order max_in_flight memory overrides messages eager
    sm hw_queues slot_reset forget_done retired_dep ticket_at shared max_depth batches
    broadcast two_comms share_device launch_order_implicit host_time host_after inputs
    """.split())
TASK_STREAMS, TASK_GROUPS = ("main", "s"), ("default", "g")


class PipelinePlan(RandomPlan):
    """One random pipeline, and a number of iterations."""

    def __init__(self, seed):
        super().__init__(f"pipeline {seed}", PIPELINE_FEATURES, 0.3)
        self.ranks = 2 if self.has("ranks") or self.has("messages") else 1
        self.tasks = self.random.sample(
            ["A", "B", "C", "D"], self.one_of([1, 2, 2, 3, 3][: 7 - 2 * self.ranks])
        )
        self.buffers = ["x", "y"][: self.one_of([1, 2])]
        self.schedule, self.changes = {}, {}
        self.plan = {"swplan": 1, "ranks": self.ranks, "schedule": self.schedule}

    # ---- tasks ---------------------------------------------------------------------------------

    def task(self):
        keys = {}
        for feature, share, key, choices in (
            ("stages", 0.6, "stage", [0, 1, 1, 2] if self.ranks == 1 else [0, 1]),
            ("groups", 0.6, "thread_group", TASK_GROUPS),
            ("tickets", 0.6, "globally_ordered", [True]),
            ("locks", 0.6, "holds", [["l"], ["m"], ["l", "m"], ["m", "l"]]),
            ("host_sync", 0.4, "host_sync", ["stream", "device"]),
            ("host_time", 0.4, "host_time", ["1ms"]),
        ):
            if self.has(feature) and self.chance(share):
                keys[key] = self.one_of(choices)
        if self.chance(0.5):
            keys["stream"] = self.one_of(TASK_STREAMS)
        if self.has("host_work") and self.chance(0.4):
            keys["work"] = {"host": "1ms"}
        else:
            self.device_keys(keys)
        if self.chance(0.7):
            keys[self.one_of(["reads", "writes", "writes"])] = [self.one_of(self.buffers)]
            if self.chance(0.3):
                keys.setdefault(self.one_of(["reads", "writes"]), [self.one_of(self.buffers)])
        return keys

    def device_keys(self, keys):
        if self.has("sync_after") and self.chance(0.4):
            keys["sync_after"] = self.one_of(["stream", "device"])
        if self.has("host_after") and self.chance(0.4):
            keys["host_after"] = "1ms"
        if self.has("sm") and self.chance(0.7):
            keys["sm"] = self.one_of([1, 1, 2])

    def add_dependences(self):
        order = self.random.sample(self.tasks, len(self.tasks))
        intra = [
            [order[later], order[earlier]]
            for later in range(len(order))
            for earlier in range(later)
            if self.chance(0.45)
        ]
        inter = {}
        if self.has("inter"):
            for _ in range(self.one_of([1, 1, 2])):
                ends = (self.one_of(self.tasks), self.one_of(self.tasks))
                inter[ends] = [*ends] + ([self.one_of([1, 2])] if self.chance(0.3) else [])
        if intra:
            self.plan["intra_iter_deps"] = intra
        if inter:
            self.plan["inter_iter_deps"] = list(inter.values())

    # ---- two ranks -----------------------------------------------------------------------------

    def add_communication(self):
        """Tasks of two ranks meet; at least one does, as else they have runs of their own."""
        on_device = [
            task for task in self.tasks if "host" not in self.schedule[task].get("work", {})
        ]
        chosen = [task for task in on_device if self.chance(0.5)] or on_device[:1]
        if not chosen:
            self.schedule[self.tasks[0]] = {}
            chosen = self.tasks[:1]
        for task in chosen:
            comm = {
                "comm": (
                    self.one_of(["dp", "tp"])
                    if self.has("two_comms") and task != chosen[0]
                    else "dp"
                )
            }
            if self.has("messages") and self.chance(0.6):
                self.add_message(task, comm)
                continue
            kinds = ["all_reduce"] + (["broadcast", "all_gather"] if self.has("broadcast") else [])
            work = {"collective": self.one_of(kinds), **comm}
            if work["collective"] == "broadcast" and self.chance(0.5):
                work["root"] = self.one_of([0, 1])
            self.schedule[task]["work"] = work

    def add_message(self, task, comm):
        bytes_ = [{}, {}]
        if self.chance(0.4):
            bytes_ = [{"bytes": "1MiB"}, {"bytes": self.one_of(["1MiB", "2MiB"])}]
        kinds = self.random.sample(["send", "recv"], 2)
        if self.chance(0.1):
            kinds[1] = kinds[0]  # no rank takes what the other one sends, or none sends
        works = [
            {kind: f"m{task}", "peer": 1 - rank, **comm, **bytes_[rank]}
            for rank, kind in enumerate(kinds)
        ]
        self.schedule[task]["work"] = works[0]
        self.changes[task] = {"work": works[1]}

    def add_overrides(self):
        other = {}
        if self.has("overrides"):
            change = self.changes.setdefault(self.one_of(self.tasks), {})
            for share, key, choices in (
                (0.5, "stream", TASK_STREAMS),
                (0.4, "thread_group", TASK_GROUPS),
            ):
                if self.chance(share):
                    change[key] = self.one_of(choices)
            if self.has("stages") and self.chance(0.3):
                change["stage"] = self.one_of([0, 1])
            if self.chance(0.5):
                orders = [
                    self.random.sample(self.tasks, len(self.tasks)),
                    "stage-ascending",
                    "stage-descending",
                ]
                other["enqueue_order"] = self.one_of(orders)
        changes = {task: keys for task, keys in self.changes.items() if keys}
        if changes:
            other["schedule"] = changes
        if other:
            self.plan["rank_overrides"] = {"1": other}

    # ---- the whole -----------------------------------------------------------------------------

    def add_keys(self):
        orders = [
            "stage-descending",
            "stage-ascending",
            self.random.sample(self.tasks, len(self.tasks)),
        ]
        for feature, key, choices in (
            ("retire", "retire", ["device", "device", "last-task", "submit"]),
            ("num_slots", "num_slots", [1, 1, 2, 3]),
            ("elide", "elide_same_stream", [True]),
            ("enqueue_order", "enqueue_order", orders),
            ("max_in_flight", "max_in_flight", [1, 2]),
            ("max_depth", "max_depth", [1, 2, 3]),
            ("slot_reset", "slot_reset", ["submit"]),
            ("forget_done", "forget_done", ["retire"]),
            ("retired_dep", "retired_dep", ["skip"]),
        ):
            if self.has(feature):
                self.plan[key] = self.one_of(choices)
        if self.has("ticket_at") and self.has("tickets"):
            self.plan["ticket_at"] = "fire"

    def add_machine(self):
        machine, two = {}, self.ranks == 2
        if self.has("sm"):
            machine["sm_slots"] = self.one_of([1, 2])
            if self.has("share_device") and two:
                machine["share_device"] = [[0, 1]]
        if self.has("hw_queues"):
            machine["hw_queues"] = 1
        if self.has("launch_queue"):
            machine["launch_queue"] = self.one_of([1, 2, 3, 4])
        if self.has("launch_order_implicit") and two:
            machine["launch_order_implicit"] = True
        if self.has("eager") and two:
            limit = self.one_of(
                [("eager_messages", 1), ("eager_messages", 2), ("eager_bytes", "2MiB")]
            )
            machine[limit[0]] = {"dp": limit[1]}
        buffers = {}
        if self.has("shared"):
            buffers[self.one_of(self.buffers)] = {
                "scope": "shared",
                "bytes": self.one_of(["1MiB", "2MiB"]),
            }
        if self.has("memory"):
            for name in self.buffers:
                buffers.setdefault(
                    name, {"scope": "iteration", "bytes": self.one_of(["1MiB", "2MiB"])}
                )
            machine["memory"] = self.one_of(["1MiB", "2MiB", "3MiB", "5MiB"])
        if buffers:
            self.plan["buffers"] = buffers
        if machine:
            self.plan["machine"] = machine

    def made(self):
        for task in self.tasks:
            self.schedule[task] = self.task()
        self.add_dependences()
        if self.ranks == 2:
            self.add_communication()
            self.add_overrides()
            if self.has("batches"):
                self.plan["batches"] = self.one_of([[1, 2], [2, 1], [2, 2]])
        self.add_keys()
        self.add_machine()
        if self.has("inputs"):
            self.plan["inputs"] = self.some_used(self.schedule)
        iterations = self.one_of([1, 2, 2, 3] if self.ranks == 1 else [1, 2])
        return self.plan, self.features, iterations


def generate_pipeline(seed):
    return PipelinePlan(seed).made()


if __name__ == "__main__":
    plan, features, *iterations = {"host": generate_host, "pipeline": generate_pipeline}[
        sys.argv[1]
    ](int(sys.argv[2]))
    print(json.dumps(plan))
    print(
        "# " + " ".join(features + [f"-n {count}" for count in iterations if "batches" not in plan])
    )

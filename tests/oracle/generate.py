# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages: random plans, made from a seed, with a few of the features that a form has.

Written from swplan(5). It shares no code with the program, nor with its own generator of plans (tests/random_plan.c). A
plan is printed as JSON, which is YAML, too. `python3 generate.py host SEED` prints one, with its features behind it.
"""

import json
import random
import sys

HOST_FEATURES = ("repeat", "barrier", "queue", "lock", "ticket", "callback", "body", "alloc", "sm", "share_device",
                 "hw_queues", "launch_queue", "launch_lock", "launch_order_implicit", "eager", "group", "collective",
                 "bytes", "pageable", "sync", "flags", "events", "inputs", "memory", "launch_blocking", "host")
STREAMS, FLAGS, EVENTS, LOCKS = ("s", "t", "u"), ("f", "h"), ("e", "g"), ("l", "m")


class HostPlan:
    """One random host program."""

    def __init__(self, seed):
        self.random = random.Random(f"host {seed}")
        self.features = [feature for feature in HOST_FEATURES if self.chance(.35)]
        self.communicates = self.has("collective") or self.has("group")
        ranks = self.one_of([1, 2, 2, 2, 3] if self.communicates else [1, 1, 2])
        self.threads = {}
        for rank in range(ranks):
            for name in ("a", "b")[:1 + self.chance(.5 if ranks < 3 else .15)]:
                self.threads[f"r{rank}.{name}"] = []
        self.streams = STREAMS[:self.one_of([1, 2, 2, 3])]
        self.buffers = ["x", "y"][:self.one_of([1, 2])]
        self.plan = {"swplan": 1, "ranks": ranks}
        self.comms = {}
        if self.communicates:
            for name in ("A", "B")[:self.one_of([1, 1, 2])]:
                self.comms[name] = self.random.sample(range(ranks), self.random.randint(min(2, ranks), ranks))
            self.plan["comms"] = self.comms
        if self.has("queue"):
            self.plan["queues"] = {"q": self.one_of([1, 2])}
        self.turns = [0] * ranks
        self.allocated = {}  # (rank, name): whether it is not freed yet
        self.names = 0

    def has(self, feature):
        return feature in self.features

    def chance(self, share):
        return self.random.random() < share

    def one_of(self, things):
        return self.random.choice(things)

    def new_name(self):
        self.names += 1
        return f"k{self.names}"

    # ---- steps ------------------------------------------------------------------------------------------------

    def accesses(self):
        if self.chance(.4):
            return {}
        keys = {self.one_of(["reads", "writes"]): [self.one_of(self.buffers)]}
        if "reads" in keys and self.chance(.2):
            keys["writes"] = [self.one_of(self.buffers)]
        return keys

    def stream(self):
        return {"stream": self.one_of(self.streams)}

    def slots(self):
        return {"sm": self.one_of([1, 1, 2])} if self.has("sm") and self.chance(.7) else {}

    def kinds(self, top):
        """The kinds of steps that the features allow; `top`: outside of repeats, turns and locked sections."""
        kinds = ["launch"] * 4 + ["compute"]
        for feature, more in (("events", ["record", "wait"] * 2), ("sync", ["sync"] * 2), ("flags", ["flag"] * 2),
                              ("queue", ["queue"] * 2), ("lock", ["locked"]), ("barrier", ["barrier"]),
                              ("callback", ["callback"]), ("body", ["body"]), ("pageable", ["copy"]),
                              ("host", ["host"])):
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
        pageable = {"pageable": True} if self.chance(.6) else {}
        return [{"copy": self.one_of(["h2d", "d2h"]), **self.stream(), **pageable, **self.accesses()}]

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
        unlock = [{"unlock": lock}] if self.chance(.93) else []
        return [{"lock": lock}] + self.steps(rank, False, flags) + unlock

    def make_barrier(self, rank, flags):
        return [{"barrier": "all"}]

    def make_turn(self, rank, flags):
        turn = self.turns[rank]
        self.turns[rank] += 1
        return [{"ticket": turn}] + self.steps(rank, False, flags) + [{"serve": turn}]

    def cheap_steps(self, rank, flags, kinds):
        kinds = ["compute"] + [kind for feature, kind in kinds if self.has(feature)]
        return [step for _ in range(self.one_of([1, 1, 2]))
                for step in getattr(self, "make_" + self.one_of(kinds))(rank, flags)]

    def make_callback(self, rank, flags):
        body = self.cheap_steps(rank, flags, (("flags", "flag"), ("queue", "queue")))
        if self.has("lock") and self.chance(.4):
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
        if count < 3 and (choice < .5 or not mine):
            name = f"m{count}"
            self.allocated[rank, name] = True
            other = stream if self.chance(.6) else self.stream()
            use = [{"launch": self.new_name(), **other, "writes": [name]}] if self.chance(.8) else []
            return [{"alloc": name, **stream}] + use
        if not mine or choice < .8:
            return [{"launch": self.new_name(), **stream, **access}]
        if choice < .87:
            return [{"record_stream": self.one_of(mine), **stream}]
        name = self.one_of(mine)
        self.allocated[rank, name] = self.chance(.1)  # else it is freed twice
        return [{"free": name}]

    def comm_of(self, rank):
        names = [name for name, members in self.comms.items() if rank in members]
        return self.one_of(names) if names else None

    def make_collective(self, rank, flags):
        """A collective of one member: its peers may have none, or another one."""
        comm = self.comm_of(rank)
        if not comm:
            return self.make_launch(rank, flags)
        step = {"collective": self.one_of(["c1", "c1", "c2"]), "comm": comm, **self.stream(), **self.slots()}
        if self.has("bytes") and self.chance(.5):
            step["bytes"] = self.one_of(["1MiB", "2MiB"])
        return [{**step, **self.accesses()}]

    def make_group(self, rank, flags):
        comm = self.comm_of(rank)
        if not comm:
            return self.make_launch(rank, flags)
        parts = []
        for _ in range(self.one_of([1, 1, 2])):
            part = {self.one_of(["send", "recv"]): self.one_of(["t1", "t2"]), "peer": self.one_of(self.comms[comm])}
            if self.has("bytes") and self.chance(.6):
                part["bytes"] = self.one_of(["1MiB", "2MiB", "0B"])
            parts.append(part)
        return [{"group": parts, "comm": comm, **self.stream(), **self.accesses()}]

    # ---- communication that meets -----------------------------------------------------------------------------

    def thread_of(self, rank):
        return self.one_of([steps for name, steps in self.threads.items() if name.startswith(f"r{rank}.")])

    def add_collective(self, comm):
        kind = self.one_of([{}, {}, {"op": "all_gather"}, {"op": "broadcast"}])
        tag = self.one_of(["c1", "c2", "c3"])
        for rank in self.comms[comm]:
            self.thread_of(rank).append({"collective": tag, "comm": comm, **kind, **self.stream(), **self.slots(),
                                         **self.accesses()})

    def add_message(self, comm):
        sender, receiver = self.random.sample(self.comms[comm], 2)
        tag = self.one_of(["t1", "t2"])
        sends, receives = [{"send": tag, "peer": receiver}], [{"recv": tag, "peer": sender}]
        if self.chance(.3):
            sends.append({"recv": "t9", "peer": receiver})
            receives.append({"send": "t9", "peer": sender})
        if self.has("bytes"):
            for part in sends + receives:
                part["bytes"] = "1MiB" if self.chance(.9) else "2MiB"
        for rank, parts in ((sender, sends), (receiver, receives)):
            self.thread_of(rank).append({"group": parts, "comm": comm, **self.stream(), **self.accesses()})

    def add_communication(self):
        comm = self.one_of(list(self.comms))
        if self.has("collective") and (not self.has("group") or self.chance(.6)):
            self.add_collective(comm)
        elif len(self.comms[comm]) > 1:
            self.add_message(comm)

    # ---- the whole --------------------------------------------------------------------------------------------

    def add_threads(self):
        for _ in range(self.random.randint(4, 11)):
            name = self.one_of(list(self.threads))
            rank = int(name[1:name.index(".")])
            if self.communicates and self.chance(.5):
                self.add_communication()
            elif self.has("repeat") and self.chance(.3):
                body = [step for _ in range(self.one_of([1, 2]))
                        for step in self.steps(rank, False, ("again", "anew"))]  # a flag is in repeats or outside
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
            if self.chance(.4):
                self.plan["streams"] = {self.streams[0]: {"hw_queue": self.random.randrange(machine["hw_queues"])}}
        if self.has("launch_queue"):
            machine["launch_queue"] = self.one_of([1, 2, 3])
        for feature in ("launch_lock", "launch_blocking"):
            if self.has(feature):
                machine[feature] = True
        if self.has("launch_order_implicit") and self.comms:
            machine["launch_order_implicit"] = True
        if self.has("eager") and self.comms:
            limit = self.one_of([("eager_messages", 1), ("eager_messages", 2), ("eager_bytes", "2MiB")])
            machine[limit[0]] = {self.one_of(list(self.comms)): limit[1]}
        if self.has("memory"):
            machine["memory"] = self.one_of(["1MiB", "2MiB", "3MiB", "4MiB"])
            self.plan["buffers"] = {name: {"scope": "shared", "bytes": self.one_of(["1MiB", "2MiB"])}
                                    for name in (*self.buffers, "m0", "m1", "m2")}
        if machine:
            self.plan["machine"] = machine

    def made(self):
        self.add_threads()
        self.add_machine()
        if self.has("inputs"):
            text = json.dumps(self.plan["threads"])
            used = [name for name in self.buffers if f'["{name}"]' in text]
            self.plan["inputs"] = used[:self.random.randint(0, len(used))]
        return self.plan, self.features


def generate_host(seed):
    return HostPlan(seed).made()


if __name__ == "__main__":
    plan, features = {"host": generate_host}[sys.argv[1]](int(sys.argv[2]))
    print(json.dumps(plan))
    print("# " + " ".join(features))

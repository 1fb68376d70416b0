# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages: random plans, made from a seed, with a few of the features that a
form has.

Written from swplan(5). It shares no code with the program, nor with its own generator of plans
(tests/random_plan.c). A plan is printed as JSON, which is YAML, too. `python3 generate.py FORM
SEED` prints one of a form of FORMS, with its features behind it.
"""

import json
import random
import sys

HOST_FEATURES = tuple("""
    repeat barrier queue lock ticket callback body alloc sm share_device hw_queues
    launch_queue launch_lock launch_order_implicit eager group collective bytes pageable
    sync flags stream_flags values events inputs memory launch_blocking host first_use_blocks abort
    greedy rings
    """.split())
# Pieces of a program in which one rule decides the verdict, which single random steps hardly make.
HOST_SCENES = (
    *["freed_memory", "handshake", "links", "kept_memory"] * 2,
    "disordered_memory",
    "host_memory",
    "relay",
    "crossed",
    "credit",
)
# The first two have as many bytes, the first and third as many elements; the last says no number.
ELEMENTS = (
    {"dtype": "f32", "count": 8},
    {"dtype": "i64", "count": 4},
    {"dtype": "i64", "count": 8},
    {"dtype": "bf16"},
)
STREAMS, FLAGS, EVENTS, LOCKS = ("s", "t", "u"), ("f", "h"), ("e", "g"), ("l", "m")


class RandomPlan:
    """What both forms have."""

    copies = True  # whether there are tasks that copy

    def __init__(self, seed, features, share):
        self.random, self.seed = random.Random(seed), seed
        self.features = [feature for feature in features if self.chance(share)]

    def has(self, feature):
        return feature in self.features

    def chance(self, share):
        return self.random.random() < share

    def one_of(self, things):
        return self.random.choice(things)

    def time(self):
        if self.exact:
            return f"{self.random.randint(0, 100000)}ns"
        return f"{self.one_of([0, 10, 10, 20, 30])}us"

    def add_shares(self, plan, works):
        """Resources of which there may not be enough; drawn apart from all else."""
        draw = random.Random(f"shares {self.seed}")
        if draw.random() < 0.65 or any("greedy" in work for work in works):
            return
        machine = plan.setdefault("machine", {})
        wanted = ["0.3", "0.5", "0.6", "0.9", "1"]
        for work in works:
            if draw.random() < 0.5 and self.can_share(work):
                resources = draw.sample(["sm", "link", "core"], draw.choice([1, 1, 2]))
                work["shares"] = {resource: float(draw.choice(wanted)) for resource in resources}
        if draw.random() < 0.3:
            kind = draw.choice(["kernel", "copy", "collective", "p2p"])
            machine["shares"] = {kind: {draw.choice(["sm", "link", "core"]): 0.7}}
        if draw.random() < 0.4:
            machine["cores"] = draw.choice([1, 1, 2, 3])
        if draw.random() < 0.4 and self.copies:
            machine["copy_engines"] = draw.choice([1, 2, 3])
            for step in works:
                if next(iter(step)) == "launch" and "body" not in step and draw.random() < 0.6:
                    kept = {
                        key: step[key] for key in step if key not in ("launch", "sm", "host_time")
                    }
                    step.clear()
                    step.update({"copy": draw.choice(["h2d", "d2h", "d2d"]), **kept})

    def add_latency(self):
        if self.chance(0.2):
            self.plan.setdefault("machine", {})["launch_latency"] = self.time()

    def some_used(self, form):
        """Some of the buffers that work reads or writes."""
        text = json.dumps(form)
        used = [name for name in self.buffers if f'["{name}"]' in text]
        return used[: self.random.randint(0, len(used))]


class HostPlan(RandomPlan):
    """One random host program."""

    waits = 0

    def __init__(self, seed):
        super().__init__(f"host {seed}", HOST_FEATURES, 0.35)
        self.branches = random.Random(f"branches {seed}").random() < 0.3
        self.scene = self.one_of(HOST_SCENES) if self.chance(0.4) else None
        meets = self.scene in ("relay", "crossed", "credit", "links")
        if self.scene and self.chance(0.5):  # hardly anything else in the plan
            self.features = self.features[:2]
        self.communicates = meets or self.has("collective") or self.has("group")
        ranks = self.one_of([1, 2, 2, 2, 3] if self.communicates else [1, 1, 2])
        ranks = 2 if meets else ranks
        ranks = self.one_of([2, 3]) if self.scene == "links" else ranks
        self.threads = {}
        for rank in range(ranks):
            for name in ("a", "b")[: 1 + self.chance(0.5 if ranks < 3 else 0.15)]:
                self.threads[f"r{rank}.{name}"] = []
        self.streams = STREAMS[: self.one_of([2, 3] if self.scene else [1, 2, 2, 3])]
        self.buffers = ["x", "y"][: self.one_of([1, 2])]
        self.plan = {"swplan": 1, "ranks": ranks}
        self.comms = {}
        if self.communicates:
            for name in ("A", "B")[: 2 if meets else self.one_of([1, 1, 2])]:
                self.comms[name] = self.random.sample(
                    range(ranks), self.random.randint(min(2, ranks), ranks)
                )
            self.plan["comms"] = self.comms
        if self.has("queue"):
            self.plan["queues"] = {"q": self.one_of([1, 2])}
        self.turns = [0] * ranks
        self.credit = {}  # eager messages of a scene
        self.flags = {}
        self.allocated = {}  # (rank, name): whether it is not freed yet
        self.kept = []  # the buffers of a scene
        self.rings = {}  # the buffers with several instances
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
            ("stream_flags", ["stream_flag"] * 2),
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
        kinds += ["abort"] * 2 if top and self.comms and self.has("abort") else []
        return kinds

    def steps(self, rank, top=True, flags=FLAGS):
        return getattr(self, "make_" + self.one_of(self.kinds(top)))(rank, flags)

    def make_launch(self, rank, flags):
        slots = self.slots()
        if slots and self.has("greedy") and self.chance(0.5):
            slots["greedy"] = True
        return [{"launch": self.new_name(), **self.stream(), **slots, **self.accesses()}]

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

    def flag_step(self, kind, flag, again, where):
        """An operation of a flag, maybe with a value; `again`: in a repeat."""
        step = {kind: flag}
        keys = {
            "signal": ["value", "add"],
            "write": ["value", "add"],
            "await": ["at_least", "equals"],
            "wait_flag": ["at_least", "equals"],
            "acquire": ["count"],
        }.get(kind, [])
        if keys and (kind == "wait_flag" or self.has("values") and self.chance(0.6)):
            key = self.one_of(keys)
            if kind == "wait_flag":  # rare: each of them has its turn
                HostPlan.waits = 1 - HostPlan.waits
                key = keys[HostPlan.waits]
            values = [1, 1, 2, 2, 3] + {"value": [0], "add": [-1], "equals": [0, 0]}.get(key, [])
            if again and key != "count":
                values += ["iteration + 1"] * 3 + ["iteration"] * 2 + ["2 * iteration + 1"]
                values = [value for value in values if (key, value) != ("add", "iteration")]
            step[key] = self.one_of(values)
        return [{**step, **where}]

    def make_flag(self, rank, flags):
        kinds = ["signal", "await"]
        if self.has("values"):
            kinds = kinds * 2 + ["clear", "acquire"]
        return self.flag_step(self.one_of(kinds), self.one_of(flags), flags != FLAGS, {})

    def make_stream_flag(self, rank, flags):
        kind = self.one_of(["write", "write", "write", "wait_flag", "await"])
        where = {} if kind == "await" else self.stream()
        return self.flag_step(kind, self.one_of(flags), flags != FLAGS, where)

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
        return [self.free(name)]

    def free(self, name):
        return {"free": name, **(self.stream() if self.chance(0.2) else {})}

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
            step |= self.one_of([{"bytes": "1MiB"}, {"bytes": "2MiB"}, *ELEMENTS])
        return [{**step, **self.accesses()}]

    def make_abort(self, rank, flags):
        """Communicators of the rank, one by one or together."""
        mine = [name for name, members in self.comms.items() if rank in members]
        if not mine:
            return self.make_launch(rank, flags)
        mine = self.random.sample(mine, self.random.randint(1, len(mine)))
        if self.chance(0.5):
            return [{"abort": name} for name in mine]
        return [{"abort": mine if len(mine) > 1 or self.chance(0.3) else mine[0]}]

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
            elif self.has("bytes"):
                part |= self.one_of(ELEMENTS)
            parts.append(part)
        return [{"group": parts, "comm": comm, **self.stream(), **self.accesses()}]

    # ---- branches ------------------------------------------------------------------------------

    def branch(self, rank, depth):
        """The steps of a branch; some kinds are refused there."""
        steps = []
        for _ in range(self.one_of([0, 1, 1, 2])):
            if depth < 2 and self.chance(0.2):
                steps += self.branching(rank, depth + 1)
            else:
                steps += self.steps(rank, False)
        refused = {"barrier", "ticket"}
        if self.plan_connects():
            refused |= {"collective", "group"}
        elif self.has("eager") or self.credit:
            refused.add("group")
        return [step for step in steps if not refused & set(step)]

    def plan_connects(self):
        return self.has("first_use_blocks") or self.scene == "links"

    def branching(self, rank, depth=0):
        """An operation with branches, and maybe what it asks for, in front of it."""
        choices = ["event", "event", "stream", "device", "flag", "lock", "choose"]
        choices += ["queue", "get", "put"] if "queues" in self.plan else []
        choices += ["acquire"] if self.has("values") else []
        what = self.one_of(choices)
        before, stream = [], self.stream()
        if what in ("event", "stream", "device") and self.chance(0.7):
            before.append({"launch": self.new_name(), **stream, **self.accesses()})
        if what == "event":
            event = self.one_of(EVENTS)
            before += [{"record": event, **stream}] if self.chance(0.7) else []
            step = {"query": "event", "event": event}
        elif what == "stream":
            step = {"query": "stream", **stream}
        elif what in ("device", "queue"):
            step = {"query": what, **({"queue": "q"} if what == "queue" else {})}
        elif what == "flag":
            step = {"query": "flag", "flag": self.one_of(FLAGS)}
            if self.has("values") and self.chance(0.6):
                step[self.one_of(["at_least", "equals"])] = self.one_of([0, 1, 2])
        elif what == "choose":
            step = {"choose": self.new_name()}
        else:
            names = {"lock": self.one_of(LOCKS), "acquire": self.one_of(FLAGS)}
            step = {what: names.get(what, "q")}
        step["then"] = self.branch(rank, depth)
        if what == "lock" and self.chance(0.9):
            step["then"].append({"unlock": step["lock"]})
        if self.chance(0.7):
            step["else"] = self.branch(rank, depth)
        return [*before, step]

    def add_branches(self):
        for _ in range(self.one_of([1, 1, 2])):
            name = self.one_of(list(self.threads))
            steps, place = self.threads[name], self.random.randint(0, len(self.threads[name]))
            made = self.branching(int(name[1 : name.index(".")]))
            if self.has("repeat") and self.chance(0.2):
                made = [{"repeat": 2, "body": made}]
            self.threads[name] = [*steps[:place], *made, *steps[place:]]

    # ---- communication that meets --------------------------------------------------------------

    def thread_of(self, rank):
        return self.one_of(
            [steps for name, steps in self.threads.items() if name.startswith(f"r{rank}.")]
        )

    def kind(self, comm):
        """A kind of collective; a broadcast may name its root."""
        kind = self.one_of([{}, {}, {"op": "all_gather"}, {"op": "broadcast"}, {"op": "broadcast"}])
        if "broadcast" in kind.values() and self.chance(0.6):
            kind = {**kind, "root": self.one_of(self.comms[comm])}
        return kind

    def add_collective(self, comm):
        kind = self.kind(comm)
        tag = self.one_of(["c1", "c2", "c3"])
        for rank in self.comms[comm]:
            self.thread_of(rank).append(
                {
                    "collective": tag,
                    "comm": comm,
                    **(self.kind(comm) if self.chance(0.04) else kind),
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
            elements = self.chance(0.5)
            for part in sends + receives:
                usual = self.chance(0.9)
                part |= self.one_of(ELEMENTS[: 1 if usual else 4]) if elements else {}
                part |= {"bytes": "1MiB" if usual else "2MiB"} if not elements else {}
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

    # ---- scenes --------------------------------------------------------------------------------

    def add_freed_memory(self):
        """Memory is freed once or twice, by one thread or two, and handed out again."""
        rank = self.random.randrange(len(self.turns))
        mine, other = self.thread_of(rank), self.thread_of(rank)
        stream, user = self.stream(), self.one_of([{}, self.stream()])
        self.allocated |= {(rank, name): False for name in ("m0", "m1", "m2")}
        mine.append({"alloc": "m0", **stream})
        if user and self.chance(0.9):
            mine += [{"record": "made", **stream}, {"wait": "made", **user}]
        if self.chance(0.7):
            access = {self.one_of(["reads", "writes"]): ["m0"]}
            mine.append({"launch": "use", **stream, **user, **access})
        early = self.chance(0.3)
        if user and self.chance(0.2 if early else 0.6):
            mine.append({"record_stream": "m0", **self.one_of([user, user, user, stream])})
        if early:  # an allocation is called before the memory is free, and takes effect behind that
            mine.append({"callback": "call", **stream, "body": [{"await": "freed"}]})
            mine.append({"alloc": "m2", **stream})
        if other is not mine:
            mine.append({"signal": "used"})
            other.append({"await": "used"})
        frees = [self.free("m0") for _ in range(self.one_of([1, 1, 1, 2]))]
        for free in frees:
            self.one_of([mine, other]).append(free)
        if early:
            other.append({"signal": "freed"})
        if early and self.chance(0.7):
            return
        if self.chance(0.2):
            self.one_of([mine, other]).append({"launch": "late", **stream, "reads": ["m0"]})
        if self.chance(0.8):
            again = self.one_of([stream, stream, self.stream()])
            self.one_of([mine, other]).append({"alloc": "m1", **again})

    def add_disordered_memory(self):
        """An alloc, a free and a record_stream in any order, by one thread or two."""
        rank = self.random.randrange(len(self.turns))
        threads = [self.thread_of(rank), self.thread_of(rank)]
        self.allocated |= {(rank, name): False for name in ("m0", "m1", "m2")}
        calls = [{"alloc": "m0", **self.stream()}, self.free("m0")]
        if self.chance(0.5):
            calls.append({"record_stream": "m0", **self.stream()})
        elif self.chance(0.5):
            calls.append(self.free("m0"))
        if self.chance(0.5):
            self.random.shuffle(calls)
        for call in calls:
            to = self.random.randrange(2)
            if self.chance(0.5):  # what was called so far is known, one way or the other
                meeting = [{"signal": "done"}, {"await": "done"}]
                threads[1 - to].append(meeting[0])
                if threads[0] is not threads[1]:
                    threads[to].append(meeting[1])
            threads[to].append(call)

    def add_host_memory(self):
        """Memory of the host is filled, copied from and freed, by one thread or two."""
        rank = self.random.randrange(len(self.turns))
        mine, other = self.thread_of(rank), self.thread_of(rank)
        stream = self.stream()
        mine.append({"host_alloc": "pin"})
        if self.chance(0.7):
            mine.append({"compute": "fill", "writes": ["pin"]})
        access = {self.one_of(["reads", "reads", "writes"]): ["pin"]}
        mine.append({"copy": "h2d", **stream, **access})
        if self.chance(0.3):
            mine.append({"record_stream": "pin", **self.one_of([stream, stream, self.stream()])})
        if self.chance(0.4):
            mine.append(self.one_of([{"sync": "stream", **stream}, {"sync": "device"}]))
        elif self.chance(0.3):
            mine += [{"record": "e", **stream}, {"sync": "event", "event": "e"}]
        if other is not mine and self.chance(0.8):
            mine.append({"signal": "used"})
            other.append({"await": "used"})
        other.append({"free": "pin"})
        if self.chance(0.15):
            mine.append(self.one_of([{"free": "pin"}, {"compute": "late", "reads": ["pin"]}]))

    def add_kept_memory(self):
        """A host that runs ahead of the device, and frees memory that streams still use."""
        rank = self.random.randrange(len(self.turns))
        self.kept = [f"h{number}" for number in range(self.one_of([2, 3, 3, 4]))]
        homes = self.one_of([self.streams[:1], self.streams])
        many = self.chance(0.3)
        mine = self.thread_of(rank)
        for number, name in enumerate(self.kept):
            thread = self.thread_of(rank) if many else mine
            home, user = self.one_of(homes), self.one_of(self.streams)
            event = self.one_of(["made", "used"])
            thread.append({"alloc": name, "stream": home})
            if user != home:
                thread.append({"record": "ready", "stream": home})
                thread.append({"wait": "ready", "stream": user})
            thread.append({"launch": f"use{number}", "stream": user, "writes": [name]})
            thread.append({"record": event, "stream": user})
            if user != home and self.chance(0.8):
                thread.append({"record_stream": name, "stream": user})
            if self.chance(0.2):
                thread.append({"sync": "event", "event": event})
            if self.chance(0.9):
                where = {"stream": self.one_of([home, user])} if self.chance(0.2) else {}
                thread.append({"free": name, **where})
            if self.chance(0.3):  # what limits the host
                event = self.one_of(["made", "used"])
                thread.append(self.one_of([{"sync": "event", "event": event}, {"sync": "device"}]))

    def add_relay(self):
        """What one rank knows comes back to it through another one, or does not."""
        here, there = self.random.sample([0, 1], 2)
        buffer, tags = self.buffers[0], ["first", "second"]
        rendezvous = self.chance(0.3)  # it comes back with the end of a message from here
        comms = [self.one_of(["A", "B"]) for _ in tags]
        streams = self.random.sample(self.streams, 2)
        steps = {here: self.thread_of(here), there: self.thread_of(there)}
        accesses = [{self.one_of(["reads", "writes"]): [buffer]}, {"writes": [buffer]}]
        accesses = self.random.sample(accesses, 2)
        steps[here].append({"launch": "before", "stream": streams[0], **accesses[0]})
        back = self.one_of(self.streams)
        for tag, comm, stream in zip(tags, comms, streams):
            kind = self.kind(comm)
            message = self.chance(0.25) if not rendezvous else tag == "second"
            ends = {here: there, there: here}
            sender = here if rendezvous else self.one_of([here, there])
            if message and self.chance(0.5):
                self.credit = {"eager_messages": {comm: 1}}
            for rank in (here, there):
                where = {"comm": comm, "stream": stream if rank == here else back}
                if message:
                    part = {"send" if rank == sender else "recv": tag, "peer": ends[rank]}
                    steps[rank].append({"group": [part], **where})
                else:
                    steps[rank].append({"collective": tag, **kind, **where})
        steps[here].append({"launch": "behind", "stream": streams[1], **accesses[1]})

    def add_handshake(self):
        """Two threads of a rank access one buffer, with an order between them or nearly one."""
        rank = self.random.randrange(len(self.turns))
        names = [f"r{rank}.{name}" for name in self.random.sample("ab", 2)]
        pair = [self.threads.setdefault(name, []) for name in names]
        stream, where = self.stream(), [{"reads": ["x"]}, {"writes": ["x"]}]
        self.random.shuffle(where)
        first, second = ({"compute": self.new_name(), **access} for access in where)
        kernel = {"launch": self.new_name(), **stream, **where[0]}
        turn, self.turns[rank] = self.turns[rank], self.turns[rank] + 2
        self.plan["queues"] = {"q": 1}
        ways = {
            "flag": ([first, {"signal": "met"}], [{"await": "met"}, second]),
            "late flag": (
                [{"signal": "met"}, first, {"signal": "met"}],
                [{"await": "met"}, second],
            ),
            "counted flag": (
                [first, {"signal": "met", "add": 1}],
                [{"await": "met", "at_least": 1}, second],
            ),
            "overwritten flag": (
                [first, {"signal": "met"}, {"signal": "met", "value": 2}],
                [{"await": "met", self.one_of(["at_least", "equals"]): 1}, second],
            ),
            "wiped flag": (
                [{"signal": "met"}, first],
                [{"clear": "met"}, {"await": "met"}, second],
            ),
            "semaphore": (
                [{"acquire": "met"}, first, {"signal": "met", "add": 1}],
                [{"acquire": "met"}, second, {"signal": "met", "add": 1}],
            ),
            "epochs": (
                [
                    {
                        "repeat": 2,
                        "body": [
                            {**first, "reads": ["y"]},
                            {"signal": "met", "value": "iteration + 1"},
                        ],
                    }
                ],
                [
                    {
                        "repeat": 2,
                        "body": [
                            {"await": "met", "at_least": self.one_of(["iteration + 1", 1])},
                            {"compute": "k", "reads": ["x"]},
                        ],
                    }
                ],
            ),
            "lock": (
                [{"lock": "l"}, first, {"unlock": "l"}],
                [{"lock": "l"}, second, {"unlock": "l"}],
            ),
            "put": ([first, {"put": "q"}], [{"get": "q"}, second]),
            "place": ([first, {"get": "q"}], [{"put": "q"}, {"put": "q"}, second]),
            "turn": (
                [{"ticket": turn}, first, {"serve": turn}],
                [{"ticket": turn + 1}, second, {"serve": turn + 1}],
            ),
            "barrier": ([first, {"barrier": "met"}], [{"barrier": "met"}, second]),
            "event": (
                [kernel, {"record": "e", **stream}, {"signal": "met"}],
                [{"await": "met"}, {"sync": "event", "event": "e"}, second],
            ),
            "own event": (
                [kernel, {"record": "e", **stream}, {"sync": "event", "event": "e"}, second],
                [],
            ),
            "stream": (
                [kernel, {"signal": "met"}],
                [{"await": "met"}, {"sync": self.one_of(["stream", "device"]), **stream}, second],
            ),
            "written flag": (
                [kernel, {"write": "met", **stream}],
                [{"await": "met"}, second],
            ),
            "wait of a stream": (
                [first, {"signal": "met"}],
                [
                    {"wait_flag": "met", "at_least": 1, **stream},
                    {"launch": "k", **stream, **where[1]},
                ],
            ),
            "out of a body": (
                [kernel, {"callback": "call", **stream, "body": [{"signal": "met"}]}],
                [{"await": "met"}, second],
            ),
            "behind a body": (
                [
                    {"callback": "call", **stream, "body": [first]},
                    {"launch": "k", **stream, **where[1]},
                ],
                [],
            ),
            "into a body": ([kernel, {"callback": "call", **stream, "body": [second]}], []),
        }
        for thread, steps in zip(pair, ways[self.one_of(list(ways))]):
            for step in steps:
                if step.get("sync") == "device":
                    step.pop("stream")
            thread.extend(steps)

    def add_credit(self):
        """Messages that are sent before they are received: as many as may be, or more."""
        sender, receiver = self.random.sample([0, 1], 2)
        there = sender if self.chance(0.3) else receiver
        key, limit = self.one_of(
            [("eager_messages", 1), ("eager_messages", 2)]
            + [("eager_bytes", size) for size in ("1MiB", "2MiB", "3MiB")]
        )
        self.credit = {key: {"A": limit}}
        sizes = [self.one_of([{"bytes": "1MiB"}] * 4 + [{"bytes": "2MiB"}, {}]) for _ in range(3)]
        sizes = sizes[: self.one_of([1, 2, 3])]
        meeting = {"collective": "then", "comm": "A", **self.stream()}
        sends = [
            {"group": [{"send": f"t{k}", "peer": there, **size}], "comm": "A", **self.stream()}
            for k, size in enumerate(sizes)
        ]
        receives = [
            {"group": [{"recv": f"t{k}", "peer": sender, **size}], "comm": "A", **self.stream()}
            for k, size in enumerate(sizes)
        ]
        self.thread_of(sender).extend([*sends, meeting])
        self.thread_of(receiver).append(dict(meeting))
        self.thread_of(there).extend(receives)

    def add_crossed(self):
        """Collectives of two communicators, which each rank calls in an order of its own."""
        twice, once = self.random.sample(["A", "B"], 2)
        orders = [self.random.sample([twice, twice, once], 3) for _ in range(2)]
        streams = [{"A": self.stream(), "B": self.stream()} for _ in range(2)]
        if self.chance(0.5):  # an order that only implicit order can hang
            orders = [[twice, twice, once], [once, twice, twice]]
            streams = [dict(zip("AB", self.random.sample(self.streams, 2))), streams[1]]
            streams[0] = {comm: {"stream": name} for comm, name in streams[0].items()}
            streams[1]["A"] = streams[1]["B"]
        ranks = self.random.sample([0, 1], 2)
        for rank, order, where in zip(ranks, orders, streams):
            thread, issued = self.thread_of(rank), {"A": 0, "B": 0}
            for comm in order:
                tag = f"{comm.lower()}{issued[comm]}"
                issued[comm] += 1
                thread.append({"collective": tag, "comm": comm, **where[comm], **self.slots()})
                if self.chance(0.1):
                    thread.append({"sync": "stream", **where[comm]})

    def add_links(self):
        """Messages on cold links, which each rank calls in one order, divided into calls of its own."""
        ranks = list(range(len(self.turns)))
        self.comms["A"] = ranks
        ends = [self.random.sample(ranks, 2) for _ in range(self.one_of([2, 2, 3]))]
        threads = {rank: self.thread_of(rank) for rank in ranks}
        for rank in ranks:
            calls, where = [], {"comm": "A", "stream": self.streams[0]}
            for number, (sender, receiver) in enumerate(ends):
                if rank not in (sender, receiver):
                    continue
                kind, peer = ("send", receiver) if rank == sender else ("recv", sender)
                if not calls or self.chance(0.5):
                    calls.append([])
                calls[-1].append({kind: f"t{number}", "peer": peer})
            threads[rank].extend({"group": call, **where} for call in calls)

    # ---- the whole -----------------------------------------------------------------------------

    def add_threads(self):
        if self.scene:
            getattr(self, "add_" + self.scene)()
        for _ in range(self.random.randint(0, 3) if self.scene else self.random.randint(4, 11)):
            name = self.one_of(list(self.threads))
            rank = int(name[1 : name.index(".")])
            if self.communicates and self.chance(0.5):
                self.add_communication()
            elif self.has("repeat") and self.chance(0.3):
                body = []  # with flags of its own beside those of the plan
                outside = self.buffers
                if self.has("rings"):
                    self.buffers = ["z", "z", *outside]
                    self.rings = {"z": {"instances": 2 + (len(outside) > 1)}}
                for _ in range(self.one_of([1, 2])):
                    body += self.steps(rank, False, ("again", "anew", *FLAGS))
                self.buffers = outside
                self.threads[name].append({"repeat": self.one_of([2, 2, 3]), "body": body})
            else:
                self.threads[name] += self.steps(rank)
        if self.branches:
            self.add_branches()
        self.add_flags()
        if not any(self.threads.values()):
            self.threads["r0.a"].append({"host": "1ms"})
        self.plan["threads"] = {name: steps for name, steps in self.threads.items() if steps}

    def add_flags(self):
        """What the flags are that are used: only those of repeats may be one for each iteration."""
        text = json.dumps(self.threads)
        for name in ("again", "anew"):
            if f'"{name}"' in text and self.chance(0.6):
                self.flags[name] = {"scope": "iteration"}
        for name in (*FLAGS, "again", "anew", "met"):
            if self.has("values") and f'"{name}"' in text and self.chance(0.25):
                self.flags.setdefault(name, {})["value"] = self.one_of([1, 1, 2])
        if self.flags:
            self.plan["flags"] = self.flags

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
        if self.comms and (self.has("first_use_blocks") or self.scene == "links"):
            machine["first_use_blocks"] = True
        crossed = self.scene == "crossed" and self.chance(0.7)
        if self.comms and (crossed or self.has("launch_order_implicit")):
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
        if self.rings:
            sizes = {"bytes": self.one_of(["1MiB", "2MiB"])} if self.has("memory") else {}
            self.plan.setdefault("buffers", {})["z"] = {**self.rings["z"], **sizes}
        if self.kept:
            machine["memory"] = self.one_of(["1MiB", "2MiB", "2MiB", "3MiB", "4MiB"])
            self.plan.setdefault("buffers", {}).update(
                {
                    name: {"scope": "shared", "bytes": self.one_of(["1MiB", "1MiB", "2MiB"])}
                    for name in self.kept
                }
            )
        for key, limits in self.credit.items():
            machine[key] = {**machine.get(key, {}), **limits}
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


def nested(steps):
    """The steps with those of repeats and branches; the bodies of callbacks have no work of their own."""
    for step in steps:
        yield step
        for key in ("body", "then", "else"):
            if key != "body" or "repeat" in step:
                yield from nested(step.get(key, []))


class TimedHostPlan(HostPlan):
    """One random host program whose parts take time."""

    def __init__(self, seed):
        super().__init__(f"timed {seed}")
        self.features = [name for name in self.features if name != "abort"]  # refused
        self.exact = self.chance(0.6)  # else many things happen at one instant

    def can_share(self, step):
        kind = next(iter(step))
        return kind in ("launch", "copy", "collective", "group") and "body" not in step

    def times(self, repeated):
        if repeated and self.chance(0.3):
            return [self.time() for _ in range(self.one_of([1, 2, 3]))]
        return self.time()

    def add_times(self, steps, repeated=False):
        for step in steps:
            kind = next(iter(step))
            if kind == "repeat":
                self.add_times(step["body"], True)
            elif kind == "host":
                step["host"] = self.times(repeated)
            elif kind in ("launch", "copy", "collective", "group", "callback", "compute"):
                if self.chance(0.9) and not (kind in ("launch", "callback") and "body" in step):
                    step["time"] = self.times(repeated)
                if kind == "launch" and self.chance(0.3):
                    step["host_time"] = self.times(repeated)
            self.add_times(step.get("body", []) if kind in ("launch", "callback") else [], repeated)
            for branch in ("then", "else"):
                self.add_times(step.get(branch, []), repeated)

    def made(self):
        plan, features = super().made()
        for steps in plan["threads"].values():
            self.add_times(steps)
        self.add_shares(
            plan, [step for steps in plan["threads"].values() for step in nested(steps)]
        )
        if self.comms and self.chance(0.5):
            limit = {self.one_of(list(self.comms)): self.time()}
            plan.setdefault("machine", {})["timeout"] = limit
        self.add_latency()
        return plan, features


def generate_timed_host(seed):
    return TimedHostPlan(seed).made()


PIPELINE_FEATURES = tuple("""
    stages inter ranks groups tickets locks host_sync sync_after host_work retire
    launch_queue num_slots elide enqueue_order max_in_flight memory overrides messages eager
    sm hw_queues slot_reset forget_done retired_dep ticket_at shared max_depth batches
    broadcast two_comms share_device launch_order_implicit host_time host_after inputs launch_lock
    """.split())
PIPELINE_SCENES = ("relay", "crossed", "retired", "held")
TASK_STREAMS, TASK_GROUPS = ("main", "s"), ("default", "g")


class PipelinePlan(RandomPlan):
    """One random pipeline, and a number of iterations."""

    def __init__(self, seed):
        super().__init__(f"pipeline {seed}", PIPELINE_FEATURES, 0.3)
        self.scene = self.one_of(PIPELINE_SCENES) if self.chance(0.4) else None
        if self.scene:
            self.features = [name for name in self.features if name != "tickets"][:4]
        meets = self.scene in ("relay", "crossed", "held")
        self.ranks = 2 if meets or self.has("ranks") or self.has("messages") else 1
        self.ranks = 1 if self.scene == "retired" else self.ranks
        self.shared = None
        self.tasks = self.random.sample(
            ["A", "B", "C", "D"], self.one_of([1, 2, 2, 3, 3][: 7 - 2 * self.ranks])
        )
        if self.scene:
            self.tasks = ["A", "B"] if self.scene in ("retired", "held") else ["A", "B", "C"]
        self.buffers = ["x", "y"][: self.one_of([1, 2])]
        self.schedule, self.changes = {}, {}
        self.extras = random.Random(f"extras {seed}")
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
            self.schedule[task]["work"] = {**self.collective(kinds), **comm}

    def collective(self, kinds):
        """A kind of collective; a broadcast may name its root."""
        work = {"collective": self.one_of(kinds)}
        if work["collective"] == "broadcast" and self.chance(0.6):
            work["root"] = self.one_of([0, 1])
        return work

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
            self.plan.setdefault("rank_overrides", {"1": {}})["1"] = {
                **other,
                **self.plan.get("rank_overrides", {}).get("1", {}),
            }

    # ---- scenes --------------------------------------------------------------------------------

    def add_relay(self):
        """What rank 0 knows comes back to it through rank 1, or does not: A and B meet, and C is
        behind B."""
        buffer, kinds = self.buffers[0], ["broadcast", "broadcast", "all_reduce"]
        for task, stream in zip("ABC", self.random.sample(["main", "s", "s"], 3)):
            self.schedule[task] = {"stream": stream}
        for task in "AB":
            comm = {"comm": self.one_of(["dp", "tp"])}
            self.schedule[task]["work"] = {**self.collective(kinds), **comm}
        self.schedule["A"][self.one_of(["reads", "writes"])] = [buffer]
        self.schedule["C"]["writes"] = [buffer]
        if self.chance(0.3):
            self.schedule["C"]["reads"] = [buffer]
        together = self.one_of(TASK_STREAMS)
        self.changes = {task: {"stream": together} for task in "ABC"}
        self.plan["enqueue_order"] = ["A", "B", "C"]
        if self.chance(0.5):
            self.plan["intra_iter_deps"] = [["C", "B"]]

    def add_retired(self):
        """An iteration ends before the next accesses what it has, if its driver waits for that."""
        buffer = self.buffers[0]
        self.shared = buffer
        access = self.random.sample([{"reads": [buffer]}, {"writes": [buffer]}], 2)
        for task, thread_group, keys in zip("AB", TASK_GROUPS, access):
            on_host = {"work": {"host": "1ms"}} if self.chance(0.5) else {}
            self.schedule[task] = {"thread_group": thread_group, **on_host, **keys}
            self.schedule[task]["stream"] = self.one_of(TASK_STREAMS)
        self.plan["intra_iter_deps"] = [["B", "A"]]
        self.plan["retire"] = self.one_of(["device", "submit", "last-task"])
        if self.chance(0.5):  # the next one may be handed out before that, and skips its dependence
            self.schedule["B"]["stage"] = 1
            self.plan["inter_iter_deps"] = [["A", "B"]]
            self.plan["retired_dep"] = "skip"

    def add_crossed(self):
        """Collectives of two communicators, which each rank calls in an order of its own."""
        comms = ["dp", "dp", "tp"]
        orders = []
        for _ in range(2):  # the tasks of one communicator in one order on both ranks
            order = self.random.sample("ABC", 3)
            places = [place for place, task in enumerate(order) if task != "C"]
            order[places[0]], order[places[1]] = "A", "B"
            orders.append(order)
        streams = [[self.one_of(TASK_STREAMS) for _ in "ABC"] for _ in range(2)]
        if self.chance(0.6):  # an order that only implicit order can hang
            orders, streams = [["A", "B", "C"], ["C", "A", "B"]], [["s", "s", "main"], ["s"] * 3]
        for number, task in enumerate("ABC"):
            work = {"collective": "all_reduce", "comm": comms[number]}
            self.schedule[task] = {"stream": streams[0][number], "work": work}
            self.changes[task] = {"stream": streams[1][number]}
        self.plan["enqueue_order"] = orders[0]
        self.plan["rank_overrides"] = {"1": {"enqueue_order": orders[1]}}
        if self.chance(0.3):
            for task in "ABC":
                self.schedule[task]["globally_ordered"] = True

    def add_held(self):
        """Two workers hold one lock while they wait for the other rank, or give it back before."""
        for task, comm, stream, group in zip("AB", ["dp", "tp"], TASK_STREAMS, TASK_GROUPS):
            work = {"collective": "all_reduce", "comm": comm}
            keys = {"stream": stream, "thread_group": group, "holds": ["l"], "work": work}
            if self.chance(0.8):
                keys["sync_after"] = "stream"
            self.schedule[task] = keys

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
                self.plan.setdefault(key, self.one_of(choices))
        if self.has("ticket_at") and self.has("tickets"):
            self.plan["ticket_at"] = self.one_of(["fire", "iteration"])

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
        if self.has("launch_lock"):
            machine["launch_lock"] = True
        crossed = self.scene == "crossed" and self.chance(0.7)
        if two and (crossed or self.has("launch_order_implicit")):
            machine["launch_order_implicit"] = True
        if self.has("eager") and '"dp"' in json.dumps(self.plan):
            limit = self.one_of(
                [("eager_messages", 1), ("eager_messages", 2), ("eager_bytes", "2MiB")]
            )
            machine[limit[0]] = {"dp": limit[1]}
        buffers = {}
        if self.shared or self.has("shared"):
            ring = {"instances": self.one_of([2, 2, 3])} if self.chance(0.3) else {}
            buffers[self.shared or self.one_of(self.buffers)] = {
                "scope": "shared",
                **ring,
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

    def add_extras(self):
        """Greedy kernels, types of elements, time limits, turns of one rank; drawn apart from all else."""
        extras, tasks = self.extras, [*self.schedule.values(), *self.changes.values()]
        for keys in self.schedule.values():
            if "sm" in keys and "work" not in keys and extras.random() < 0.4:
                keys["greedy"] = True
        for task, keys in self.changes.items():
            if "work" in keys:
                self.schedule[task].pop("greedy", None)
        works = [keys["work"] for keys in tasks if "comm" in keys.get("work", {})]
        typed = extras.random() < 0.4
        for work in works if typed else []:
            element = extras.choice(ELEMENTS[:1] * 9 + ELEMENTS[1:])
            work |= {"dtype": element["dtype"]} if "bytes" in work else element
        if works and extras.random() < 0.3:
            limit = {works[0]["comm"]: f"{extras.choice([5, 20, 50])}us"}
            self.plan.setdefault("machine", {})["timeout"] = limit
        if (
            self.ranks == 2 and extras.random() < 0.25
        ):  # a task that is ordered on the other rank alone
            other = self.plan.setdefault("rank_overrides", {}).setdefault("1", {})
            other.setdefault("schedule", {}).setdefault(extras.choice(self.tasks), {})[
                "globally_ordered"
            ] = True
            if extras.random() < 0.4:
                self.plan["ticket_at"] = "iteration"

    def made(self):
        for task in self.tasks:
            self.schedule[task] = self.task()
        if self.scene:
            getattr(self, "add_" + self.scene)()
        else:
            self.add_dependences()
        if self.ranks == 2:
            if not self.scene:
                self.add_communication()
            self.add_overrides()
            if self.has("batches"):
                self.plan["batches"] = self.one_of([[1, 2], [2, 1], [2, 2]])
        self.add_keys()
        self.add_machine()
        self.add_extras()
        if self.has("inputs"):
            self.plan["inputs"] = self.some_used(self.schedule)
        iterations = self.one_of([1, 2, 2, 3] if self.ranks == 1 else [1, 2])
        return self.plan, self.features, iterations


def generate_pipeline(seed):
    return PipelinePlan(seed).made()


def generate_meeting(seed):
    """A small pipeline whose two ranks wait for each other, and its iterations: what else fails seldom."""
    draw = random.Random(f"meeting {seed}")
    schedule = {}
    for task, comm in zip("AB", ["dp", draw.choice(["dp", "tp"])]):
        schedule[task] = {"work": {"collective": "all_reduce", "comm": comm}}
        if draw.random() < 0.4:
            schedule[task]["sync_after"] = draw.choice(["stream", "device"])
        if draw.random() < 0.4:
            schedule[task]["stream"] = "s"
    if draw.random() < 0.6:
        del schedule["B"]
    plan = {"swplan": 1, "ranks": 2, "schedule": schedule}
    plan["retire"] = draw.choice(["submit", "device", "device", "last-task"])
    return plan, [], draw.choice([1, 1, 2])


class TimedPipelinePlan(PipelinePlan):
    """One random pipeline whose parts take time, and a larger number of iterations."""

    copies = False

    def can_share(self, keys):
        return True

    def __init__(self, seed):
        super().__init__(f"timed {seed}")
        self.exact = self.chance(0.6)

    def add_times(self, keys):
        work = keys.get("work", {})
        if "host" in work:
            work["host"] = self.time()
        elif not work and self.chance(0.2):
            keys["work"] = {"spin": self.time()}
        elif self.chance(0.9):
            keys["time"] = self.time()
        for share, key in ((0.4, "host_time"), (0.15, "host_after")):
            if self.chance(share) and ("host" not in work or key == "host_time"):
                keys[key] = self.time()

    def made(self):
        plan, features, _ = super().made()
        for keys in self.schedule.values():
            self.add_times(keys)
        changes = plan.get("rank_overrides", {}).get("1", {}).get("schedule", {})
        for task in self.random.sample(list(changes), len(changes) // 2):
            changes[task]["time"] = self.time()
        if "batches" in plan:
            plan["batches"] = [self.random.randint(1, 9), self.random.randint(1, 9)]
        self.add_latency()
        self.add_shares(plan, list(self.schedule.values()))
        return plan, features, self.random.randint(1, 14)


def generate_timed_pipeline(seed):
    return TimedPipelinePlan(seed).made()


class RankPlan(RandomPlan):
    """Lists of actions, mostly in an order in which they can be done."""

    def __init__(self, seed):
        super().__init__(f"ranks {seed}", "split shards overlap waits messages broken".split(), 0.4)
        self.ranks = self.one_of([1, 2, 2, 2, 3])
        chunks = self.one_of([1, 1, 2])
        self.stages = self.ranks * chunks
        turned = self.chance(0.5)  # in the shape of a V, or round after round
        ranks = list(range(self.ranks))
        self.rank_of = (ranks + (ranks[::-1] if turned else ranks))[: self.stages]
        self.copies = 2 if chunks == 2 and self.chance(0.3) else 1
        self.microbatches = self.one_of([1, 2, 2, 3])
        self.plan = {"swplan": 1}

    def passes(self):
        """All passes, in a random order that their inputs allow."""
        length = self.stages // self.copies
        kinds = ["F"] + self.one_of(
            [["B"], ["I", "W"]] if self.has("split") else [["B"], ["B"], []]
        )
        needs = {}
        for stage in range(self.stages):
            for number in range(self.microbatches):
                first, last = stage % length == 0, (stage + 1) % length == 0
                for place, kind in enumerate(kinds):
                    need = [(stage, kinds[place - 1], number)] if place else []
                    need += [(stage - 1, "F", number)] if kind == "F" and not first else []
                    need += [(stage + 1, kind, number)] if kind in "BI" and not last else []
                    needs[stage, kind, number] = need
        order = []
        while len(order) < len(needs):
            ready = [
                one for one in needs if one not in order and all(on in order for on in needs[one])
            ]
            order.append(self.one_of(ready))
        return order

    def other_end(self, stage, kind):
        """The stage that needs the result of a pass, if it is on another rank."""
        to = stage + {"F": 1, "B": -1, "I": -1, "W": 0}[kind]
        length = self.stages // self.copies
        inside = 0 <= to < self.stages and to // length == stage // length
        return to if inside and self.rank_of[to] != self.rank_of[stage] else None

    def add_passes(self):
        for stage, kind, number in self.passes():
            self.lists[self.rank_of[stage]].append(f"{stage}{kind}{number}")
            to = self.other_end(stage, kind)
            if self.has("messages") and to is not None:
                way = "F" if kind == "F" else "B"
                self.lists[self.rank_of[stage]].append(f"{stage}SEND_{way}{number}")
                self.lists[self.rank_of[to]].append(f"{to}RECV_{way}{number}")

    def insert(self, words, word, place):
        words.insert(min(max(0, place + self.one_of([0, 0, 0, 0, -1, 1])), len(words)), word)

    def add_shards(self):
        """Parameters are gathered before their first pass, and maybe again."""
        for stage, rank in enumerate(self.rank_of):
            words = self.lists[rank]
            at = [
                place
                for place, word in enumerate(words)
                if word[:2] in (f"{stage}F", f"{stage}B", f"{stage}W")
            ]
            if self.chance(0.5):
                self.insert(words, f"{stage}REDUCE_GRAD", at[-1] + 1)
                if self.has("waits") and self.chance(0.5):
                    words.append(f"{stage}WAIT_REDUCE_GRAD")
            if self.chance(0.7):
                words.insert(at[-1] + 1, f"{stage}RESHARD")
                if len(at) > 1 and self.chance(0.3):
                    words.insert(at[1], f"{stage}UNSHARD")
                    words.insert(at[1], f"{stage}RESHARD")
            words.insert(at[0] if self.chance(0.8) else 0, f"{stage}UNSHARD")

    def add_overlaps(self):
        for words in self.lists:
            for place in range(len(words) - 1):
                pair = words[place : place + 2]
                if len(pair) == 2 and sorted(word[1] for word in pair if word[-2] in "FB") == [
                    "B",
                    "F",
                ]:
                    if self.chance(0.7):
                        words[place : place + 2] = [
                            "(" + ";".join(sorted(pair, key=lambda w: w[1] != "F")) + ")OVERLAP_F_B"
                        ]

    def add_waits(self):
        for words in self.lists:
            for word in [one for one in words if "SEND" in one or "RECV" in one]:
                if self.chance(0.3):
                    wait = word.replace("SEND", "WAIT_SEND").replace("RECV", "WAIT_RECV")
                    self.insert(words, wait, self.random.randint(words.index(word) + 1, len(words)))

    def break_lists(self):
        for _ in range(self.one_of([1, 1, 2])):
            words = self.one_of(self.lists)
            place = self.random.randrange(len(words))
            if self.chance(0.3) and not ("SHARD" in words[place]):
                del words[place]
            elif place + 1 < len(words) and not any(
                "SHARD" in word for word in words[place : place + 2]
            ):
                words[place], words[place + 1] = words[place + 1], words[place]
            if not words:
                words.append(f"{self.rank_of.index(self.lists.index(words))}F0")

    def made(self):
        self.lists = [[] for _ in range(self.ranks)]
        self.add_passes()
        for feature in ("shards", "overlap", "waits"):
            if self.has(feature):
                getattr(
                    self,
                    {"shards": "add_shards", "overlap": "add_overlaps", "waits": "add_waits"}[
                        feature
                    ],
                )()
        if self.has("broken"):
            self.break_lists()
        self.plan["programs"] = [" ".join(words) for words in self.lists]
        p2p = {}
        for share, key, choices in (
            (0.7, "fifo", ["group", "pair", "edge", "direction"]),
            (0.4, "batch", [True]),
            (0.2, "metadata", ["each"]),
            (0.3, "bytes", ["1MiB"]),
            (0.2, "eager_messages", [1, 2]),
        ):
            if self.chance(share):
                p2p[key] = self.one_of(choices)
        if p2p:
            self.plan["p2p"] = p2p
        if self.copies > 1:
            self.plan["copies"] = self.copies
        if self.has("shards"):
            self.plan["fsdp"] = {"replicas": self.one_of([1, 1, 2])}
        if self.chance(0.2):
            self.plan["machine"] = {"sm_slots": self.one_of([1, 2])}
        self.add_grid(random.Random(f"grid {self.seed}"))
        return self.plan, self.features

    def add_grid(self, draw):
        """Groups of ranks around the lists; one rank may do its passes in an order of its own."""
        if self.ranks > 2 or self.has("shards") or self.has("overlap") or draw.random() < 0.2:
            return
        grid = {"tp": draw.choice([1, 2]), "dp": draw.choice([1, 2, 2])}
        if draw.random() < 0.3:
            grid["order"] = "tp-cp-ep-pp-dp"
        grid["grad_reduce"] = draw.choice(["none", "end", "stage", "overlap"])
        if self.copies > 1:
            grid["grad_reduce"] = "none"
        rank = draw.randrange(self.ranks * grid["tp"] * grid["dp"])
        order = grid.get("order", "").startswith("tp-cp-ep-pp")
        mine = rank // grid["tp"] % self.ranks if order else rank // grid["tp"] // grid["dp"]
        words = list(self.lists[mine])
        if (
            grid["grad_reduce"] == "none"
            and self.has("messages")
            and len(words) > 2
            and draw.random() < 0.5
        ):
            place = draw.randrange(len(words) - 1)
            words[place], words[place + 1] = words[place + 1], words[place]
            grid["ranks"] = {str(rank): {"program": " ".join(words)}}
        self.plan["parallel"] = grid


def generate_ranks(seed):
    return RankPlan(seed).made()


FORMS = {
    "ranks": generate_ranks,
    "host": generate_host,
    "pipeline": generate_pipeline,
    "timed_host": generate_timed_host,
    "timed_pipeline": generate_timed_pipeline,
}

if __name__ == "__main__":
    plan, features, *iterations = FORMS[sys.argv[1]](int(sys.argv[2]))
    print(json.dumps(plan))
    print(
        "# " + " ".join(features + [f"-n {count}" for count in iterations if "batches" not in plan])
    )

# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages: a host program (`threads:`) as operations of the machine
(steps.py).

Written from doc/semantics.md, sections 1 (scope of names), 3 (operations, repeats, barriers,
tickets), 7 (knobs that are lowered) and 10 (defaults), and from swplan(5), HOST PROGRAMS. It
shares no code with the program. It knows the keys that generate.py writes, and refuses others:
`async`, graphs, `device:`, the legacy stream, `lazy_load` and `alloc_may_sync` are not
read here.
"""

import re
from collections import Counter, defaultdict
from fractions import Fraction

from steps import Access, Comm, Part, Program

KEYS = set(
    "swplan ranks machine comms queues streams flags buffers inputs threads on_failure".split()
)
MACHINE_KEYS = set("""
    sm_slots share_device hw_queues launch_queue launch_lock launch_order_implicit
    launch_blocking first_use_blocks timeout eager_messages eager_bytes memory launch_latency
    copy_engines cores shares
    """.split())
PUSHED_UNDER_LOCK = {
    "launch",
    "copy",
    "collective",
    "group",
    "record",
    "wait",
    "callback",
    "write",
    "wait_flag",
}  # not `alloc`
PUSHED = PUSHED_UNDER_LOCK | {"alloc"}
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
KINDS = {"launch": "kernel", "copy": "copy", "collective": "collective", "group": "p2p"}
ELEMENTS = {"f32": 4, "i64": 8, "bf16": 2}
TIMES = {"ns": 1, "us": 1000, "ms": 1000000}


def size(text):
    """Bytes of a size as plans write it; 0 for none."""
    if text is None:
        return 0
    number, unit = re.fullmatch(r"(\d+)(B|KiB|MiB)", text).groups()
    return int(number) * UNITS[unit]


def moved(step):
    """Bytes of a message or collective, by its bytes or its elements."""
    if "count" in step:
        return step["count"] * ELEMENTS[step["dtype"]]
    return size(step.get("bytes"))


def shares_of(machine, kind, given, copies=None):
    """swplan(5), SHARING A DEVICE: what work of a kind demands; `copies`: the direction of a copy."""
    usual = machine.get("shares", {}).get(kind, {})
    demand = {"core": 1, **usual, **given}
    engines = machine.get("copy_engines", 0)
    if copies and engines:
        others = {1: "all", 2: "h2d" if copies == "h2d" else "others"}
        demand["engine " + others.get(engines, copies)] = 1
    return {resource: Fraction(str(share)) for resource, share in demand.items() if share}


def duration(text, iteration=None):
    """Nanoseconds of a time; of a list, in a repeat, of the one that the iteration takes."""
    if isinstance(text, list):
        text = text[iteration % len(text)]
    if text is None:
        return 0
    number, unit = re.fullmatch(r"(\d+)(ns|us|ms)", text).groups()
    return int(number) * TIMES[unit]


def refuse_unknown(keys, known):
    for key in keys:
        if key not in known:
            raise ValueError(f"{key}: not read by this oracle")


def rank_of(thread):
    return int(thread[1 : thread.index(".")])


def kind_of(step):
    return next(iter(step))


def plain_steps(steps):
    """The steps of a thread without its repeats, each body once, and those of branches behind theirs."""
    for step in steps:
        if kind_of(step) == "repeat":
            yield from plain_steps(step["body"])
            continue
        yield step
        for branch in ("then", "else"):
            yield from plain_steps(step.get(branch, []))


def has_branches(step):
    return kind_of(step) in ("query", "choose") or "then" in step or "else" in step


class HostProgram:
    """Fills in a Program from a plan."""

    def __init__(self, plan):
        refuse_unknown(plan, KEYS)
        self.plan = plan
        self.machine = plan.get("machine", {})
        refuse_unknown(self.machine, MACHINE_KEYS)
        self.comms = plan.get("comms", {})
        self.comm_names = list(self.comms)
        self.queue_names = list(plan.get("queues", {}))
        named = [rank_of(thread) for thread in plan["threads"]]
        named += [rank for members in self.comms.values() for rank in members]
        self.program = Program(plan.get("ranks") or 1 + max(named))
        self.messages = Counter()  # (communicator, from, to, tag): sends less receives
        self.branches = 0  # so many are around the step
        self.uncounted = set()  # channels with messages in branches
        self.notice_threads()
        for stream in self.used:
            if stream in self.pushers:
                Program.number(self.program.streams, stream)

    def notice_threads(self):
        """Which threads push to a stream, record an event, name a barrier; and the streams in the
        order in which they are used, also by what pushes nothing."""
        self.used = []
        self.pushers, self.recorders, self.barriers = (
            defaultdict(set),
            defaultdict(set),
            defaultdict(list),
        )
        for thread, steps in self.plan["threads"].items():
            rank = rank_of(thread)
            for step in plain_steps(steps):
                kind = kind_of(step)
                waits = step.get("sync") == "stream" or step.get("query") == "stream"
                if kind in PUSHED or (kind != "sync" and "stream" in step) or waits:
                    self.used.append((rank, step.get("stream", "main")))
                if kind in PUSHED:
                    self.pushers[rank, step.get("stream", "main")].add(thread)
                if kind == "record":
                    self.recorders[rank, step["record"]].add(thread)
                if kind == "barrier" and thread not in self.barriers[step["barrier"]]:
                    self.barriers[step["barrier"]].append(thread)

    # ---- the operations of a step --------------------------------------------------------------

    def lower_thread(self, thread, steps):
        self.thread, self.rank, self.out, self.meetings = thread, rank_of(thread), [], Counter()
        iteration = 0
        for step in steps:
            if kind_of(step) != "repeat":
                self.lower(step, None)
                continue
            self.first = iteration  # a list of times is that of one repeat
            for _ in range(step["repeat"]):
                for inner in step["body"]:
                    self.lower(inner, iteration)
                iteration += 1
        return self.out

    def emit(self, kind, **fields):
        self.out.append(self.program.add(kind, **fields))

    def lower(self, step, iteration):
        """Add the operations of a step; `iteration` is that of its repeat, or None."""
        kind = kind_of(step)
        self.iteration = iteration
        self.name = (self.rank, step.get("stream", "main"))
        self.stream = (
            Program.number(self.program.streams, self.name) if self.name in self.pushers else None
        )
        if self.time(step, "host_time"):
            time, core = self.time(step, "host_time"), {"core": Fraction(1)}
            self.emit("compute", time=time, shares=core)
        if self.machine.get("first_use_blocks") and kind == "collective":
            self.connect_comm(step["comm"])
        if self.machine.get("first_use_blocks") and kind == "group":
            self.connect_links(step)
        locked = self.machine.get("launch_lock") and kind in PUSHED_UNDER_LOCK
        lock = Program.number(self.program.locks, (self.rank, "the context")) if locked else None
        if locked:
            self.emit("lock", object=lock)
        getattr(self, "lower_" + kind)(step)
        if locked:
            self.emit("unlock", object=lock)
        if has_branches(step):
            self.lower_branches(step, iteration)
        if kind == "copy" and step.get("pageable"):
            self.emit("staged")
            self.sync_stream()
        elif kind in ("launch", "collective", "group") and self.machine.get("launch_blocking"):
            self.sync_stream()

    def lower_branches(self, step, iteration):
        """What follows the operation that was added last, which says where it goes on else."""
        self.branches += 1
        ends = len(self.out) - 1
        for branch in ("then", "else"):
            if branch == "else" and step.get("else"):
                self.emit("jump")
                self.operation_at(ends).otherwise = len(self.out) - ends
                ends = len(self.out) - 1
            for inner in step.get(branch, []):
                self.lower(inner, iteration)
        self.operation_at(ends).otherwise = len(self.out) - ends
        self.branches -= 1

    def operation_at(self, place):
        return self.program.operations[self.out[place]]

    def accesses(self, step):
        return [(self.instance(name), "read") for name in step.get("reads", [])] + [
            (self.instance(name), "write") for name in step.get("writes", [])
        ]

    def instance(self, name):
        """Iteration i of a repeat uses instance i mod their number."""
        instances = self.plan.get("buffers", {}).get(name, {}).get("instances", 1)
        return self.rank, name if instances == 1 else f"{name}({self.iteration % instances})"

    def time(self, step, key="time"):
        """How long the operation of a step takes."""
        return duration(step.get(key), self.iteration and self.iteration - self.first)

    def lower_compute(self, step):
        time, core = self.time(step), {"core": Fraction(1)}
        self.emit("compute", accesses=self.accesses(step), time=time, shares=core)

    def lower_host(self, step):
        time, core = self.time(step, "host"), {"core": Fraction(1)}
        self.emit("compute", accesses=self.accesses(step), time=time, shares=core)

    def body(self, steps):
        """The operations of a body, apart from those of the thread."""
        outside, inside, stream, name = self.out, [], self.stream, self.name
        self.out = inside
        for step in steps:
            self.lower(step, self.iteration)
        self.out, self.stream, self.name = outside, stream, name
        return tuple(inside)

    def lower_launch(self, step):
        if "body" in step:
            self.lower_callback(step)
        else:
            slots, greedy = step.get("sm", 0), step.get("greedy")
            self.emit(
                "kernel",
                stream=self.stream,
                slots=1 if greedy else slots,
                most=slots if greedy else 0,
                accesses=self.accesses(step),
                time=self.time(step),
                shares=self.shares(step),
            )

    def shares(self, step):
        kind = kind_of(step)
        copies = step["copy"] if kind == "copy" else None
        return shares_of(self.machine, KINDS[kind], step.get("shares", {}), copies)

    def lower_copy(self, step):
        accesses, time, shares = self.accesses(step), self.time(step), self.shares(step)
        self.emit("kernel", stream=self.stream, accesses=accesses, time=time, shares=shares)

    def lower_callback(self, step):
        body = self.body(step["body"])
        slots, time = step.get("sm", 0), self.time(step)
        self.emit("callback", stream=self.stream, slots=slots, body=body, time=time)

    def meet(self, mine, others):
        """Set flags of a first use, then await others."""
        for kind, names in (("signal", mine), ("await", others)):
            for name in names:
                self.emit(kind, object=Program.number(self.program.flags, ("first use", *name)))

    def connect_comm(self, comm):
        """The first collective: a thread of each member meets those of the others."""
        others = [(comm, member) for member in sorted(self.comms[comm]) if member != self.rank]
        self.meet([(comm, self.rank)], others)

    def connect_links(self, step):
        """The first messages: ends of directions meet in rounds, and once more when all are connected."""
        members = sorted(self.comms[step["comm"]])
        rounds = defaultdict(set)
        for part in step["group"]:
            ends = (self.rank, part["peer"]) if "send" in part else (part["peer"], self.rank)
            behind = members.index(ends[1]) - members.index(ends[0])
            if behind:
                rounds[behind % len(members)].add((ends, "send" in part))
        for moment in ("set up", "all connected"):
            for _, links in sorted(rounds.items()):
                links = sorted(links)
                self.meet(
                    [(step["comm"], moment, ends, send) for ends, send in links],
                    [(step["comm"], moment, ends, not send) for ends, send in links],
                )

    def lower_collective(self, step):
        kind = step.get("op", "all_reduce")
        root = step.get("root", min(self.comms[step["comm"]])) if kind == "broadcast" else None
        self.emit(
            "collective",
            stream=self.stream,
            slots=step.get("sm", 0),
            root=root,
            comm=self.comm_names.index(step["comm"]),
            accesses=self.accesses(step),
            match=(step["collective"], kind, root, moved(step), step.get("dtype")),
            time=self.time(step),
            shares=self.shares(step),
        )

    def lower_group(self, step):
        parts = []
        for part in step["group"]:
            send = "send" in part
            tag = part["send" if send else "recv"]
            parts.append(Part(send, part["peer"], tag, moved(part), part.get("dtype")))
            ends = (self.rank, part["peer"]) if send else (part["peer"], self.rank)
            self.messages[step["comm"], ends, tag] += 1 if send else -1
            if self.branches:
                self.uncounted.add((step["comm"], ends))
        self.emit(
            "group",
            stream=self.stream,
            slots=step.get("sm", 0),
            comm=self.comm_names.index(step["comm"]),
            parts=tuple(parts),
            accesses=self.accesses(step),
            time=self.time(step),
            shares=self.shares(step),
        )

    def event(self, name):
        return Program.number(self.program.events, (self.rank, name))

    def lower_record(self, step):
        self.emit("record", stream=self.stream, object=self.event(step["record"]))

    def lower_wait(self, step):
        self.emit("wait", stream=self.stream, object=self.event(step["wait"]))

    def sync_stream(self):
        """A wait for the stream of the step; two steps where other threads push to it."""
        others = bool(self.pushers[self.name] - {self.thread})
        self.emit("sync", stream=Program.number(self.program.streams, self.name), others=others)

    def lower_sync(self, step):
        if step["sync"] == "stream":
            self.sync_stream()
        elif step["sync"] == "event":
            others = bool(self.recorders[self.rank, step["event"]] - {self.thread})
            self.emit("sync_event", object=self.event(step["event"]), others=others)
        else:
            others = any(
                threads - {self.thread}
                for name, threads in self.pushers.items()
                if name[0] == self.rank
            )
            self.emit("sync", object=self.rank, others=others)

    def lower_query(self, step):
        what = step["query"]
        if what == "stream":
            self.emit("query", stream=Program.number(self.program.streams, self.name))
        elif what == "device":
            self.emit("query", object=self.rank)
        elif what == "event":
            self.emit("query_event", object=self.event(step["event"]))
        elif what == "queue":
            self.emit("query_queue", object=self.queue_names.index(step["queue"]))
        else:
            keys = {key: value for key, value in step.items() if key in ("at_least", "equals")}
            self.flag_step("query_flag", {"query_flag": step["flag"], **keys})

    def lower_choose(self, step):
        self.emit("choose")

    def flag(self, name):
        """Section 3, repeats: one flag, or with `scope: iteration` one for each iteration."""
        keys = self.plan.get("flags", {}).get(name, {})
        own = self.iteration if keys.get("scope") == "iteration" else None
        flag = Program.number(self.program.flags, (name, own))
        self.program.begins[flag] = keys.get("value", 0)
        return flag

    def flag_value(self, text):
        """A number, `iteration`, or a multiple of it and a number."""
        if isinstance(text, int):
            return text
        each, base = re.fullmatch(r"(?:(\d+) *\* *)?iteration *([+-] *\d+)?", text).groups()
        return int(each or 1) * self.iteration + int((base or "0").replace(" ", ""))

    def flag_step(self, kind, step, **where):
        """An operation of a flag, and the key that says what it does with it."""
        rule, value = ("value", 1)
        for key in ("value", "add", "at_least", "equals", "count"):
            if key in step:
                rule, value = key, self.flag_value(step[key])
        if kind == "acquire":
            rule = "count"
        self.emit(
            kind, object=self.flag(next(iter(step.values()))), rule=rule, value=value, **where
        )

    def lower_signal(self, step):
        self.flag_step("signal", step)

    def lower_clear(self, step):
        self.flag_step("signal", {**step, "value": 0})

    def lower_await(self, step):
        self.flag_step("await", step)

    def lower_acquire(self, step):
        self.flag_step("acquire", step)

    def lower_write(self, step):
        self.flag_step("write", step, stream=self.stream)

    def lower_wait_flag(self, step):
        self.flag_step("wait_flag", step, stream=self.stream)

    def lower_put(self, step):
        self.emit("put", object=self.queue_names.index(step["put"]))

    def lower_get(self, step):
        self.emit("get", object=self.queue_names.index(step["get"]))

    def lower_lock(self, step):
        self.emit("lock", object=Program.number(self.program.locks, (self.rank, step["lock"])))

    def lower_unlock(self, step):
        self.emit("unlock", object=Program.number(self.program.locks, (self.rank, step["unlock"])))

    def lower_ticket(self, step):
        self.emit("ticket", object=step["ticket"])

    def lower_serve(self, step):
        self.emit("serve")

    def lower_barrier(self, step):
        """The k-th use sets a flag, and awaits those of the k-th use of the other threads."""
        name = step["barrier"]
        use = self.meetings[name]
        self.meetings[name] += 1
        flags = {
            thread: Program.number(self.program.flags, ("barrier", name, use, thread))
            for thread in self.barriers[name]
        }
        self.emit("signal", object=flags[self.thread])
        for thread, flag in flags.items():
            if thread != self.thread:
                self.emit("await", object=flag)

    def lower_abort(self, step):
        """All of them, and then the device is waited for."""
        names = step["abort"] if isinstance(step["abort"], list) else [step["abort"]]
        for name in names:
            self.emit("abort", object=(self.comm_names.index(name), self.rank))
        self.lower_sync({"sync": "device"})

    def buffer(self, name):
        return Program.number(self.program.buffers, (self.rank, name))

    def lower_alloc(self, step):
        buffer = self.buffer(step["alloc"])
        self.emit("alloc", stream=self.stream, object=buffer)
        self.program.allocated[buffer] = len(self.program.accesses)
        self.program.accesses.append(Access(buffer, "alloc", self.stream, self.out[-1]))
        self.program.called[buffer] = len(self.program.accesses)
        self.program.accesses.append(Access(buffer, "call", None, self.out[-1]))

    def lower_host_alloc(self, step):
        buffer = self.buffer(step["host_alloc"])
        self.emit("host_alloc", object=buffer)
        self.program.on_host.add(buffer)
        for table, how in ((self.program.allocated, "alloc"), (self.program.called, "call")):
            table[buffer] = len(self.program.accesses)
            self.program.accesses.append(Access(buffer, how, None, self.out[-1]))

    def lower_free(self, step):
        """With a stream it is cudaFreeAsync."""
        self.emit(
            "free",
            object=self.buffer(step["free"]),
            stream=self.freed_in(step),
            asynchronous="stream" in step,
        )

    def freed_in(self, step):
        """The stream that a `free` names; None: the one that the memory was allocated for."""
        name = (self.rank, step.get("stream"))
        return Program.number(self.program.streams, name) if "stream" in step else None

    def lower_record_stream(self, step):
        self.emit("record_stream", stream=self.stream, object=self.buffer(step["record_stream"]))

    # ---- the machine ---------------------------------------------------------------------------

    def knobs(self):
        program, machine = self.program, self.machine
        program.queues = list(self.plan.get("queues", {}).values())
        for name, members in self.comms.items():
            program.comms.append(
                Comm(
                    members,
                    machine.get("eager_messages", {}).get(name, 0),
                    size(machine.get("eager_bytes", {}).get(name)),
                )
            )
        for ranks in machine.get("share_device", []):
            for rank in ranks:
                program.device[rank] = ranks[0]
        program.sm_slots = machine.get("sm_slots", 0)
        program.cores = machine.get("cores")
        program.order_implicit = machine.get("launch_order_implicit", False)
        program.memory = [size(machine.get("memory"))] * program.ranks
        if "launch_queue" in machine:
            program.room = dict.fromkeys(range(len(program.streams)), machine["launch_queue"])
        named = {
            name: keys["hw_queue"]
            for name, keys in self.plan.get("streams", {}).items()
            if "hw_queue" in keys
        }
        program.deal_hardware_queues(machine.get("hw_queues", 0), named)

    def values(self):
        """Which buffers hold a value from the beginning, and how big they are."""
        program = self.program
        names = [name.partition("(")[0] for _, name in program.buffers]
        made = {names[access.buffer] for access in program.accesses if access.how != "read"}
        for buffer, name in enumerate(names):
            declared = self.plan.get("buffers", {}).get(name, {})
            program.bytes[buffer] = size(declared.get("bytes"))
            if declared.get("instances", 1) > 1:  # all of them count with the first that is used
                first = program.buffers[buffer][1].endswith("(0)")
                program.bytes[buffer] *= declared["instances"] if first else 0
            ring = declared.get("instances", 1) > 1 and "inputs" not in self.plan
            if ring:
                continue
            if name in self.plan["inputs"] if "inputs" in self.plan else name not in made:
                program.inputs.add(buffer)

    def lowered(self):
        for thread, steps in self.plan["threads"].items():
            self.program.threads.append((rank_of(thread), self.lower_thread(thread, steps)))
        for operation in self.program.operations:
            if operation.kind == "free" and operation.stream is None:
                allocation = self.program.allocated[operation.object]
                operation.stream = self.program.accesses[allocation].stream
        self.knobs()
        self.values()
        self.program.comm_names = self.comm_names
        self.program.unmatched = any(
            count
            for (*channel, _), count in self.messages.items()
            if tuple(channel) not in self.uncounted
        )
        return self.program


def lower_host(plan):
    return HostProgram(plan).lowered()

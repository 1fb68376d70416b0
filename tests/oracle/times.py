# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages: the times of one run, as `swsim predict` simulates it.

Written from doc/semantics.md, sections 2 (agents) and 8 (time), doc/predict.md, swplan(5) and
swsim-predict(1): the machine of steps.py with a clock beside it, which takes each step as early as
possible. At an instant ends what has taken its time, then the first agent that can step does,
over and over: host threads, then streams, then communicators. It shares no code with the
program, and looks at every agent at every step. Times do not vary here.
"""

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor

from steps import IMMEDIATE, MARK

CPU_PARTS = ("compute", "nothing")
SYNCS = ("sync", "sync_event")
WORK = "kernel collective group callback write wait_flag".split()


@dataclass
class Run:
    """What happened, and when, in ns."""

    end: int = 0
    stuck: bool = False
    mismatch: bool = False  # the run is not defined behind its end
    violated: frozenset = frozenset()
    device: list = field(default_factory=list)  # (rank, stream, start, end) of work
    idle: list = field(default_factory=list)  # (rank, stream, start, end, the causes it may have)
    host: list = field(default_factory=list)  # (rank, start, end) of CPU parts of threads
    iterations: dict = field(default_factory=dict)  # (rank, iteration): [admitted, over]
    calls: dict = field(
        default_factory=dict
    )  # operation of a communicator: (its call, its end or None)


class Clock:
    """Simulates a machine; `latency` is that of a launch."""

    def __init__(self, machine, latency=0):
        self.machine, self.program, self.latency = machine, machine.program, latency
        self.state = machine.start()
        self.now = 0
        self.timers = {}  # what takes time: (its end, its kind, its number among all that began)
        self.began = 0
        self.synced = {}  # thread: the place of the last sync in which it was blocked
        self.since = {}  # what takes time, or took it: its start
        self.over = set()  # what has taken its time, and not ended yet
        self.starts = {}  # stream: the start of the work at its head
        self.pushed = {}  # operation: when
        self.slowed = {}  # what takes time: the work left, its rate, since when
        self.greedy = {}  # stream: the slots of its greedy kernel, the work left, since when
        self.run = Run()
        calls = [op.stream for op in self.program.operations if op.kind == "callback"]
        self.agents = [("thread", thread) for thread in machine.thread_order()]
        self.agents += [("body", stream) for stream in dict.fromkeys(calls)]
        self.agents += [("stream", stream) for stream in range(len(self.program.streams))]
        self.agents += [("comm", comm) for comm in range(len(self.program.comms))]

    # ---- time ----------------------------------------------------------------------------------

    def begin(self, what, time):
        """`what` takes time from now on, until it is among those that are over."""
        kind = {"thread": 0, "body": 0, "stream": 1, "launch": 1, "comm": 2}[what[0]]
        self.timers[what] = (self.now + time, kind, self.began)
        self.since[what] = self.now
        self.slowed.pop(what, None)
        self.began += 1

    def lasts(self, what, time):
        """Whether `what` goes on; it begins with the first call."""
        if what in self.over:
            return False
        if what not in self.timers:
            self.begin(what, time)
        return True

    # ---- threads, and bodies of callbacks ------------------------------------------------------

    def works(self, agent, operation):
        """Whether a CPU part goes on. One without time is none."""
        if operation.kind not in CPU_PARTS or not operation.time:
            return False
        return self.lasts(agent, operation.time)

    def note_cpu_part(self, agent, rank, operation):
        self.over.discard(agent)
        if operation.kind in CPU_PARTS:
            start = self.since[agent] if operation.time else self.now
            self.run.host.append((rank, start, self.now))

    def step_thread(self, after, thread):
        agent, number = ("thread", thread), self.machine.next_operation(self.state, thread)
        operation = self.program.operations[number] if number is not None else None
        if operation and self.works(agent, operation):
            return False
        taken = self.machine.step_thread(after, thread)
        if taken and operation:
            self.note_cpu_part(agent, self.program.threads[thread][0], operation)
            self.pushed.setdefault(number, self.now)
            if operation.comm is not None:
                self.run.calls[number] = (self.now, None)
        return taken

    def body_left(self, stream):
        """The next operation in the body of a running callback, or None."""
        items = self.state["items", stream]
        if not items or not self.state["running", stream]:
            return None
        body, position = self.program.operations[items[0][0]].body, self.state["body", stream]
        return self.program.operations[body[position]] if position < len(body) else None

    def step_body(self, after, stream):
        operation = self.body_left(stream)
        if not operation or self.works(("body", stream), operation):
            return False
        taken = self.machine.step_stream(after, stream)
        if taken:
            self.note_cpu_part(("body", stream), self.program.streams[stream][0], operation)
        return taken

    # ---- streams and communicators -------------------------------------------------------------

    def on_its_way(self, number):
        """Whether the launch of work has not come to its stream yet."""
        if number == MARK or self.program.operations[number].kind in IMMEDIATE:
            return False
        left = self.pushed[number] + self.latency - self.now
        return left > 0 and self.lasts(("launch", number), left)

    def goes_on(self, stream, operation):
        """Whether the work that a stream is at goes on."""
        if operation.kind == "collective" or self.body_left(stream):
            return True
        if operation.kind == "group" and not self.machine.group_matched(self.state, stream):
            return True
        return self.lasts(("stream", stream), operation.time)

    def step_stream(self, after, stream):
        items = self.state["items", stream]
        if not items:
            return False
        number, running = items[0][0], self.state["running", stream]
        if running and self.goes_on(stream, self.program.operations[number]):
            return False
        if not running and self.on_its_way(number):
            return False
        taken = self.machine.step_stream(after, stream)
        if taken and running:
            self.note_work(stream, self.program.operations[number])
        elif taken:
            self.starts[stream] = self.now
            if self.program.operations[number].kind in ("kernel", "callback", "write", "wait_flag"):
                self.begin(("stream", stream), self.program.operations[number].time)
                self.begin_greedy(stream, self.program.operations[number])
        return taken

    def begin_greedy(self, stream, operation):
        if operation.most and self.program.sm_slots:
            most = min(operation.most, self.program.sm_slots)
            self.greedy[stream] = (most, Fraction(operation.time), self.now)

    def retime_greedy(self):
        """A greedy kernel does its work at the part of its slots that it has."""
        for stream, (had, left, since) in self.greedy.items():
            has, what = self.state["has", stream], ("stream", stream)
            if has == had or what not in self.timers:
                continue
            operation = self.program.operations[self.state["items", stream][0][0]]
            most = min(operation.most, self.program.sm_slots)
            left -= Fraction((self.now - since) * had, most)
            end = self.now + floor(left * most / has + Fraction(1, 2))
            self.timers[what] = (end, *self.timers[what][1:])
            self.greedy[stream] = (has, left, self.now)

    def note_work(self, stream, operation):
        self.over.discard(("stream", stream))
        self.greedy.pop(stream, None)
        self.ends(operation)
        group = operation.kind == "group"
        start = self.since["stream", stream] if group else self.starts[stream]
        self.run.device.append((*self.program.streams[stream], start, self.now))

    def ends(self, operation):
        """Notes when an operation of a communicator that a thread has called ends."""
        for number, (called, _) in self.run.calls.items():
            if self.program.operations[number] is operation:
                self.run.calls[number] = (called, self.now)

    def step_comm(self, after, comm):
        members = self.program.comms[comm].members
        numbers = [self.state["collective", comm, member] for member in members]
        if None in numbers:
            return False
        operations = [self.program.operations[number] for number in numbers]
        time = max(operation.time for operation in operations)
        if self.lasts(("comm", comm), time):
            return False
        self.over.discard(("comm", comm))
        self.machine.step_comm(after, comm)
        for operation in operations:
            self.ends(operation)
            where = self.program.streams[operation.stream]
            self.run.device.append((*where, self.since["comm", comm], self.now))
        return True

    # ---- shares (swplan(5), SHARING A DEVICE) ---------------------------------------------------

    def running(self, stream):
        """The operation that a stream is at."""
        return self.program.operations[self.state["items", stream][0][0]]

    def demands(self):
        """(what takes time or waits, (rank, resource), its share) of all that runs now."""
        for what in self.timers:
            kind, number = what
            if kind in ("thread", "body"):
                table = self.program.threads if kind == "thread" else self.program.streams
                operation = self.body_left(number) if kind == "body" else None
                if kind == "thread":
                    at = self.machine.next_operation(self.state, number)
                    operation = self.program.operations[at]
                yield from self.demanded(what, table[number][0], operation.shares, ("core",))
            if kind == "stream" and self.running(number).kind in ("kernel", "group"):
                operation, rank = self.running(number), self.program.streams[number][0]
                yield from self.demanded(what, rank, operation.shares, operation.shares)
            if kind == "comm":
                for rank in self.program.comms[number].members:
                    at = self.state["collective", number, rank]
                    shares = self.program.operations[at].shares
                    yield from self.demanded(what, rank, shares, shares)
        for stream, (rank, _) in enumerate(self.program.streams):  # waits for peers
            if not self.state["items", stream] or not self.state["running", stream]:
                continue
            operation = self.running(stream)
            moves = ("comm", operation.comm) in self.timers or ("stream", stream) in self.timers
            if operation.kind in ("collective", "group") and not moves:
                yield from self.demanded(("waits", stream), rank, operation.shares, ("sm",))

    def demanded(self, what, rank, shares, resources):
        for resource in resources:
            if resource in shares and (resource != "core" or self.program.cores):
                yield what, (None if resource == "core" else rank, resource), shares[resource]

    def share(self):
        """Where there is not enough of a resource, all that demands it is slower in proportion."""
        demands, wanted = list(self.demands()), Counter()
        for _, resource, share in demands:
            wanted[resource] += share
        rates = dict.fromkeys(self.timers, Fraction(1))
        for what, resource, _ in demands:
            there = self.program.cores if resource[0] is None else 1
            if what in rates and wanted[resource] > there:
                rates[what] = min(rates[what], Fraction(there) / wanted[resource])
        self.slowed = {what: one for what, one in self.slowed.items() if what in self.timers}
        for what, rate in rates.items():
            end, *order = self.timers[what]
            left, had, since = self.slowed.get(
                what, (Fraction(end - self.now), Fraction(1), self.now)
            )
            if rate == had and (what in self.slowed or rate == 1):
                continue
            left -= (self.now - since) * had
            self.timers[what] = (self.now + floor(left / rate + Fraction(1, 2)), *order)
            self.slowed[what] = (left, rate, self.now)

    # ---- the stall account ----------------------------------------------------------------------

    def account(self, until):
        """Why each stream is idle from now on, where one thread or one task pushes to it."""
        if self.now == until:
            return
        for thread in range(len(self.program.threads)):
            number = self.machine.next_operation(self.state, thread)
            if number is not None and self.program.operations[number].kind in SYNCS:
                self.synced[thread] = self.state["position", thread]
        for stream, name in enumerate(self.program.streams):
            causes = (
                self.head_causes(stream)
                if self.state["items", stream]
                else self.push_causes(stream)
            )
            if causes:
                self.run.idle.append((*name, self.now, until, causes))

    def head_causes(self, stream):
        """Of a stream with work; none while it is busy. The page does not say which of several counts."""
        number, _, bound = self.state["items", stream][0]
        operation, rank = self.program.operations[number], self.program.streams[stream][0]
        if self.state["running", stream]:
            moves = ("comm", operation.comm) in self.timers or ("stream", stream) in self.timers
            return set() if moves or operation.comm is None else {"collective peer"}
        causes = set()
        if operation.kind == "wait" and bound is not None and self.state["reached", bound] is None:
            causes.add("dependence")
        if operation.kind == "wait_flag" and not self.machine.has_value(self.state, operation):
            causes.add("dependence")
        slots = self.machine.slots_of(number)
        full = self.state["slots", self.program.device[rank]] + slots > self.program.sm_slots
        issued = (
            operation.comm is not None and self.state["issued", operation.comm, rank][0] != number
        )
        order = self.program.order_implicit and operation.comm is not None
        order = order and self.state["not started", rank][0] != number
        if not self.machine.at_front(self.state, stream) or (slots and full) or issued or order:
            causes.add("resource")
        return causes or {"host launch"}

    def push_causes(self, stream):
        """Of an empty one: what the thread that pushes next does."""
        if self.machine.drains:
            return self.instance_causes(stream)
        pushing = [
            thread
            for thread, (_, numbers) in enumerate(self.program.threads)
            if any(
                self.program.operations[number].stream == stream for number in self.pushes(numbers)
            )
        ]
        if len(pushing) > 1 or any(operation.otherwise for operation in self.program.operations):
            return set()
        if not pushing:
            return {"no more data"}
        thread = pushing[0]
        numbers, at = self.program.threads[thread][1], self.state["position", thread]
        left = [number for number in self.pushes(numbers[at:])]
        mine = [number for number in left if self.program.operations[number].stream == stream]
        if not mine:
            return {"no more data"}
        operation = self.program.operations[numbers[at]]
        if ("thread", thread) in self.timers:
            before = [
                place
                for place, number in enumerate(numbers[:at])
                if number in self.pushes([number])
                and self.program.operations[number].stream == stream
            ]
            waited = self.synced.get(thread, -1) > max(before, default=-1)
            return {"host waits in sync"} if waited else {"host launch"}
        if operation.kind in SYNCS:
            return {"host waits in sync"}
        if operation.kind == "await" and self.program.flags[operation.object][0] == "first use":
            return {"collective peer"}
        if left[0] != mine[0] or operation.kind == "ticket":
            return {"head-of-line"}
        if operation.kind == "lock" or operation.kind in (*IMMEDIATE, *WORK):
            return {"resource"}
        return {"back-pressure"} if operation.kind == "put" else {"dependence"}

    def instance_causes(self, stream):
        """In a pipeline: where the next instance is that will push; of one task, as of several the
        page does not say which is next."""
        pipeline, instances = self.machine.pipeline, self.machine.instances
        left = [number for number in range(len(instances)) if self.will_push(number, stream)]
        if not left:
            return {"no more data"}
        if len({instances[number].task for number in left}) > 1:
            return set()
        number = min(left, key=lambda number: instances[number].iteration)
        rank, worker = instances[number].rank, instances[number].worker
        if number == self.state["instance", worker] or number in dict(
            self.state["queue of", worker]
        ):
            return self.worker_causes(stream, worker, number)
        if pipeline.dataflow and instances[number].iteration < self.state["admitted", rank]:
            lacking = {"dependence", "host launch", "head-of-line", "resource", "collective peer"}
            return lacking | {"back-pressure"}
        driver = self.program.operations[self.machine.next_operation(self.state, rank)]
        admits = {"admit": driver.object, "enqueue": driver.object - 1}.get(driver.kind)
        if admits is not None and not self.machine.has_room(self.state, rank, admits):
            return {"resource"}
        return {"back-pressure" if pipeline.dataflow else "period clock"}

    def will_push(self, number, stream):
        """Whether an instance with work for the stream is not submitted; where no task has work
        for it, one that records there."""
        instance = self.machine.instances[number]
        batches = self.machine.pipeline.batches[instance.rank]
        if instance.iteration >= batches or self.state["submitted", number] is not None:
            return False
        pushes = self.pushes(instance.operations)
        if all(op.stream != stream for op in self.program.operations if op.kind in WORK):
            pushes = instance.operations
        return any(self.program.operations[push].stream == stream for push in pushes)

    def worker_causes(self, stream, worker, number):
        """What the worker that has the instance, or has it in its queue, does."""
        current = self.state["instance", worker]
        if ("thread", worker) in self.timers:
            return {"host launch"}
        numbers = self.machine.instances[current].operations[self.state["position", worker] :]
        operation, pushes = self.program.operations[numbers[0]], self.pushes(numbers)
        if operation.kind == "await" and self.program.flags[operation.object][0] == "first use":
            return {"collective peer"}
        if current != number and not pushes:
            return {"head-of-line", "dependence"}
        others = pushes and self.program.operations[pushes[0]].stream != stream
        if current != number or others or operation.kind == "ticket":
            return {"head-of-line"}
        if operation.kind == "lock" or operation.kind in (*IMMEDIATE, *WORK):
            return {"resource"}
        return {"dependence"}

    def pushes(self, numbers):
        """The operations of a list that push work."""
        return [number for number in numbers if self.program.operations[number].kind in WORK]

    # ---- all of them ---------------------------------------------------------------------------

    def step(self, agent):
        """The step of an agent, if it can take one now."""
        kind, number = agent
        after = dict(self.state)
        taken = getattr(self, "step_" + kind)(after, number)
        if not taken:
            return False
        self.run.mismatch = taken == "mismatch"
        self.machine.settle(after)
        self.machine.check_bound(after)
        self.machine.note_iterations(self.state, after, self.now, self.run.iterations)
        self.state = after
        self.retime_greedy()
        self.run.end = self.now
        return True

    def end_one(self):
        """What ends now ends; False where nothing does."""
        ending = min(self.timers, key=self.timers.get, default=None)
        if ending is None or self.timers[ending][0] > self.now:
            return False
        del self.timers[ending]
        self.over.add(ending)
        if ending[0] != "launch":
            self.step(ending)
        return True

    def simulate(self):
        while not self.run.mismatch:
            while not self.run.mismatch and self.end_one():
                pass
            while not self.run.mismatch and any(self.step(agent) for agent in self.agents):
                pass
            if not self.timers:
                break
            self.share()
            until = min(self.timers.values())[0]
            self.account(until)
            self.now = until
        self.run.stuck = not self.run.mismatch and self.machine.work_remains(self.state)
        self.run.violated = self.state["violated"]
        return self.run

# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages: a pipeline (`schedule:`) of a given number of iterations, under
one of its drivers.

Written from doc/semantics.md, sections 4 (drivers, retiring, the knobs of implementations), 5
(slots), 7 (the launch queue of pipelines), 9 (serial, slot, bound, drain) and 10 (defaults),
and from swplan(5). It shares no code with the program. It knows the keys that generate.py
writes. An open number of iterations, failures, `staleness`, work that is pageable and a period
whose dependences form a cycle are not read here.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction

from host import duration, moved, refuse_unknown, shares_of, size
from steps import BLOCKED, DONE, Comm, Machine, Part, Program

KEYS = set("""
    swplan ranks schedule intra_iter_deps inter_iter_deps machine comms buffers inputs
    rank_overrides enqueue_order retire batches num_slots max_depth max_in_flight slot_reset
    elide_same_stream ticket_at forget_done retired_dep on_failure
    """.split())
MACHINE_KEYS = set("""
    sm_slots share_device hw_queues launch_queue launch_order_implicit eager_messages
    eager_bytes memory launch_latency launch_lock timeout cores shares
    """.split())
TASK_KEYS = set("""
    stage stream thread_group globally_ordered holds host_sync sync_after host_time
    host_after work sm reads writes time greedy shares
    """.split())


class NotRead(Exception):
    """A plan that this reading has no rule for."""


@dataclass
class Instance:
    """A task of one iteration on one rank."""

    rank: int
    task: str
    iteration: int
    worker: int  # its thread
    flag: int  # its place among the CPU signals
    event: int
    operations: list = field(default_factory=list)
    record: int = None
    needs: list = field(default_factory=list)  # the instances it depends on
    successors: list = field(default_factory=list)


def sorted_by_need(tasks, needs, cost):
    """A topological order, of ready tasks by cost and name. None for a cycle."""
    order = []
    while len(order) < len(tasks):
        ready = [
            task
            for task in tasks
            if task not in order and all(need in order for need in needs[task])
        ]
        if not ready:
            return None
        order.append(min(ready, key=lambda task: (cost[task], task)))
    return order


class Pipeline:
    """Fills in a Program from a plan: instances, and the operations of workers and drivers."""

    def __init__(self, plan, driver, iterations):
        refuse_unknown(plan, KEYS)
        refuse_unknown(plan.get("machine", {}), MACHINE_KEYS)
        self.plan = plan
        self.dataflow = driver == "dataflow"
        self.ranks = plan.get("ranks", 1)
        self.tasks = list(plan["schedule"])
        self.intra = plan.get("intra_iter_deps", [])
        self.inter = [(*dependence, 1)[:3] for dependence in plan.get("inter_iter_deps", [])]
        self.schedules = [self.schedule_of(rank) for rank in range(self.ranks)]
        self.batches = plan.get("batches") or [iterations] * self.ranks
        self.iterations = max(self.batches)
        self.depth = 1 + max(
            keys["stage"] for schedule in self.schedules for keys in schedule.values()
        )
        self.by_turn = self.dataflow and plan.get("ticket_at", "pipelined") == "pipelined"
        self.contexts = plan.get("max_depth", self.depth) if self.dataflow else self.depth
        self.slots = plan.get(
            "num_slots", self.contexts + max((far for _, _, far in self.inter), default=0)
        )
        self.serial_order = self.topological()
        self.orders = [self.enqueue_order(rank, not self.dataflow) for rank in range(self.ranks)]
        self.program = Program(self.ranks)
        self.name_comms()
        self.messages = Counter()
        self.instances, self.numbers = [], {}

    def schedule_of(self, rank):
        """The tasks of a rank with defaults and overrides (section 10)."""
        changes = self.plan.get("rank_overrides", {}).get(str(rank), {}).get("schedule", {})
        schedule = {}
        for task, keys in self.plan["schedule"].items():
            refuse_unknown({**keys, **changes.get(task, {})}, TASK_KEYS)
            schedule[task] = {
                "stage": 0,
                "stream": "main",
                "thread_group": "default",
                "work": {},
                **keys,
                **changes.get(task, {}),
            }
        return schedule

    def name_comms(self):
        """A communicator that a `work` names and `comms:` does not spans all ranks."""
        machine = self.plan.get("machine", {})
        members = dict(self.plan.get("comms", {}))
        for schedule in self.schedules:
            for keys in schedule.values():
                if "comm" in keys["work"]:
                    members.setdefault(keys["work"]["comm"], list(range(self.ranks)))
        self.comm_names = list(members)
        for name, ranks in members.items():
            self.program.comms.append(
                Comm(
                    ranks,
                    machine.get("eager_messages", {}).get(name, 0),
                    size(machine.get("eager_bytes", {}).get(name)),
                )
            )

    # ---- section 4: orders ---------------------------------------------------------------------

    def topological(self):
        needs = {task: [on for task_of, on in self.intra if task_of == task] for task in self.tasks}
        return sorted_by_need(self.tasks, needs, dict.fromkeys(self.tasks, 0))

    def enqueue_order(self, rank, staged):
        changes = self.plan.get("rank_overrides", {}).get(str(rank), {})
        order = changes.get("enqueue_order", self.plan.get("enqueue_order", "ready-first"))
        schedule = self.schedules[rank]
        stage = {task: keys["stage"] if staged else 0 for task, keys in schedule.items()}
        if isinstance(order, list):
            return order
        if order == "stage-descending":
            return sorted(self.serial_order, key=lambda task: -stage[task])
        if order == "stage-ascending":
            return sorted(self.serial_order, key=lambda task: stage[task])
        needs = self.needs_of_period(stage)
        cost = {
            task: sum(schedule[on]["stream"] != schedule[task]["stream"] for on in needs[task])
            for task in self.tasks
        }
        found = sorted_by_need(self.tasks, needs, cost)
        if found is None:
            raise NotRead("a cycle within a period")
        return found

    def needs_of_period(self, stage):
        needs = defaultdict(list)
        for task, on, far in [(task, on, 0) for task, on in self.intra] + self.inter:
            if stage[on] == stage[task] + far:
                needs[task].append(on)
        return needs

    def leads_to(self, task):
        """The tasks that depend on this one, over any number of iterations."""
        found, waiting = set(), [task]
        while waiting:
            on = waiting.pop()
            for later in [of for of, what, *_ in self.intra + self.inter if what == on]:
                if later not in found:
                    found.add(later)
                    waiting.append(later)
        return found

    def turn_stages(self):
        """Stages of the software pipeline of turns: those of the plan, or by chains."""
        schedule, last = self.schedules[0], self.contexts - 1
        stage = {task: min(keys["stage"], last) for task, keys in schedule.items()}
        chains = all(keys["stage"] == 0 for keys in schedule.values())
        edges = [(task, on, -far) for task, on, far in self.inter]
        for task, on in self.intra:
            recurs = on in self.leads_to(task)
            changes = schedule[task]["stream"] != schedule[on]["stream"]
            edges.append((task, on, int(chains and changes and not recurs)))
        changed = True
        while changed:
            changed = False
            for task, on, behind in edges:
                least = min(stage[on] + behind, last)
                if least > stage[task]:
                    stage[task], changed = least, True
        return stage

    def rounds(self, rank):
        """The globally ordered instances of a rank in the order of their turns."""
        stage = self.turn_stages()
        places = {task: place for place, task in enumerate(self.enqueue_order(0, True))}
        order = sorted_by_need(self.tasks, self.needs_of_period(stage), places)
        if order is None:
            raise NotRead("a cycle within a round")
        return [
            (turn - stage[task], task)
            for turn in range(self.batches[rank] + self.contexts)
            for task in order
            if self.schedules[rank][task].get("globally_ordered")
            and 0 <= turn - stage[task] < self.batches[rank]
        ]

    def handed_out(self, rank, period):
        """Clock: the instances of a period, as (iteration, task)."""
        for task in self.orders[rank]:
            iteration = period - self.schedules[rank][task]["stage"]
            if 0 <= iteration < self.batches[rank]:
                yield iteration, task

    def turns(self, rank):
        """The tickets of a rank's globally ordered instances."""
        if self.dataflow:
            needs = {task: [on for of, on in self.intra if of == task] for task in self.tasks}
            places = {task: place for place, task in enumerate(self.orders[0])}
            ordered = [
                task
                for task in sorted_by_need(self.tasks, needs, places)
                if self.schedules[rank][task].get("globally_ordered")
            ]
            return {
                (iteration, task): iteration * len(ordered) + place
                for iteration in range(self.iterations)
                for place, task in enumerate(ordered)
            }
        turns = {}
        for period in range(self.batches[rank] + self.depth):
            for instance in self.handed_out(rank, period):
                if self.schedules[rank][instance[1]].get("globally_ordered"):
                    turns[instance] = len(turns)
        return turns

    # ---- instances -----------------------------------------------------------------------------

    def name_instances(self):
        """Streams, workers, places and dependences, before any operation."""
        program = self.program
        workers = {}
        for rank in range(self.ranks):
            used = [keys["thread_group"] for keys in self.schedules[rank].values()]
            for task in self.tasks:
                Program.number(program.streams, (rank, self.schedules[rank][task]["stream"]))
            for group in self.groups():
                if group in used:
                    workers[rank, group] = self.ranks + len(workers)
        for rank in range(self.ranks):
            for iteration in range(self.iterations):
                for task in self.tasks:
                    place = (rank, task, iteration % self.slots)
                    self.numbers[rank, iteration, task] = len(self.instances)
                    self.instances.append(
                        Instance(
                            rank,
                            task,
                            iteration,
                            workers[rank, self.schedules[rank][task]["thread_group"]],
                            Program.number(program.flags, place),
                            Program.number(program.events, place),
                        )
                    )
        for instance in self.instances:
            following = [(task, 0) for task, on in self.intra if on == instance.task]
            following += [(task, far) for task, on, far in self.inter if on == instance.task]
            for task, far in following:
                key = (instance.rank, instance.iteration + far, task)
                if key in self.numbers:
                    instance.successors.append(self.numbers[key])
        return workers

    def groups(self):
        """Section 8: in the order in which the plan first names them."""
        named = [keys.get("thread_group", "default") for keys in self.plan["schedule"].values()]
        for changes in self.plan.get("rank_overrides", {}).values():
            for keys in changes.get("schedule", {}).values():
                named += [keys["thread_group"]] if "thread_group" in keys else []
        return list(dict.fromkeys(named))

    def dependences(self, task, iteration):
        """(task, iteration) that an instance depends on, in the order of the plan."""
        return [(on, iteration) for task_of, on in self.intra if task_of == task] + [
            (on, iteration - far) for task_of, on, far in self.inter if task_of == task
        ]

    def scope(self, name, iteration):
        """The iteration of a buffer instance, or None for a shared one; of a ring a text."""
        declared = self.plan.get("buffers", {}).get(name, {})
        instances = declared.get("instances", 1)
        if instances > 1:
            return f"{iteration % instances} of {instances}"
        return None if declared.get("scope") == "shared" or "instances" in declared else iteration

    def lower_instance(self, instance, turn):
        """Section 4, "How a worker executes an instance": the steps behind `take`, in order."""
        rank, task, iteration = instance.rank, instance.task, instance.iteration
        keys = self.schedules[rank][task]
        self.out, self.rank, self.keys, self.iteration = instance.operations, rank, keys, iteration
        self.stream = self.program.streams.index((rank, keys["stream"]))
        for on, earlier in self.dependences(task, iteration):
            self.lower_dependence("await", on, earlier, instance)
        for on, earlier in self.dependences(task, iteration):
            same = self.schedules[rank][on]["stream"] == keys["stream"]
            if not (same and self.plan.get("elide_same_stream")):
                self.lower_dependence("wait", on, earlier, instance)
        waits_for_turn = keys.get("globally_ordered") and not self.by_turn
        if waits_for_turn:
            self.emit("ticket", object=turn)
        locks = [Program.number(self.program.locks, (rank, name)) for name in keys.get("holds", [])]
        for lock in locks:
            self.emit("lock", object=lock)
        if "host_sync" in keys:
            self.lower_sync(keys["host_sync"])
        own = keys.get("shares", {}).get("core", 1)
        self.core = {"core": Fraction(str(own))} if own else {}
        if duration(keys.get("host_time")) and "host" not in keys["work"]:
            self.emit("nothing", time=duration(keys["host_time"]), shares=self.core)
        self.lower_work(task)
        if duration(keys.get("host_after")):
            self.emit("nothing", time=duration(keys["host_after"]), shares=self.core)
        if "sync_after" in keys:
            self.lower_sync(keys["sync_after"])
        for lock in reversed(locks):
            self.emit("unlock", object=lock)
        if waits_for_turn:
            self.emit("serve")
        instance.record = self.push("record", stream=self.stream, object=instance.event)
        self.emit("signal", object=instance.flag)
        self.emit("complete", instances=(self.numbers[rank, iteration, task],))

    def emit(self, kind, **fields):
        self.out.append(self.program.add(kind, iteration=self.iteration, **fields))
        return self.out[-1]

    def lower_dependence(self, kind, on, earlier, instance):
        """Its signal or its event; one before the first iteration has no effect."""
        locked = kind == "wait" and self.locks_pushes()
        if earlier < 0:
            for _ in ["lock", kind, "unlock"] if locked else [kind]:
                self.emit("nothing")
            return
        source = self.numbers[instance.rank, earlier, on]
        if locked:
            self.emit("lock", object=self.context(), source=source)
        if kind == "await":
            instance.needs.append(source)
            number = self.emit("await", object=self.instances[source].flag, source=source)
        else:
            number = self.emit(
                "wait", stream=self.stream, object=self.instances[source].event, source=source
            )
        self.program.operations[number].iteration = earlier
        if locked:
            self.emit("unlock", object=self.context(), source=source)

    def locks_pushes(self):
        """Section 7, `launch_lock`."""
        return self.plan.get("machine", {}).get("launch_lock")

    def context(self):
        return Program.number(self.program.locks, (self.rank, "the context of CUDA"))

    def push(self, kind, **fields):
        """A push, under the lock of the context where the machine says so."""
        if self.locks_pushes():
            self.emit("lock", object=self.context())
        number = self.emit(kind, **fields)
        if self.locks_pushes():
            self.emit("unlock", object=self.context())
        return number

    def lower_sync(self, what):
        """Wait for a stream or the device; two steps where other workers push to it."""
        groups = defaultdict(set)
        for keys in self.schedules[self.rank].values():
            groups[keys["stream"]].add(keys["thread_group"])
        if what == "stream":
            self.emit("sync", stream=self.stream, others=len(groups[self.keys["stream"]]) > 1)
        else:
            others = any(pushing - {self.keys["thread_group"]} for pushing in groups.values())
            self.emit("sync", object=self.rank, others=others)

    def lower_work(self, task):
        keys, work = self.keys, self.keys["work"]
        accesses = [
            ((self.rank, name, self.scope(name, self.iteration)), how)
            for how in ("read", "write")
            for name in keys.get(how + "s", [])
        ]
        if "host" in work:
            time = duration(keys.get("host_time")) + duration(work["host"])
            self.emit("compute", accesses=accesses, time=time, shares=self.core)
            return
        fields = {"stream": self.stream, "slots": keys.get("sm", 0), "accesses": accesses}
        fields["time"] = duration(keys.get("time")) or duration(work.get("spin"))
        kind = "collective" if "collective" in work else "p2p" if "comm" in work else "kernel"
        machine = self.plan.get("machine", {})
        fields["shares"] = shares_of(machine, kind, keys.get("shares", {}))
        if "comm" in work:
            fields["comm"] = self.comm_names.index(work["comm"])
        if "collective" in work:
            members = self.program.comms[fields["comm"]].members
            root = work.get("root", min(members)) if work["collective"] == "broadcast" else None
            match = (task, self.iteration, work["collective"], root, moved(work), work.get("dtype"))
            self.push("collective", root=root, match=match, **fields)
        elif "comm" in work:
            send = "send" in work
            tag = work["send" if send else "recv"]
            part = Part(send, work["peer"], tag, moved(work), work.get("dtype"))
            if not self.iteration:
                ends = (self.rank, part.peer) if send else (part.peer, self.rank)
                self.messages[work["comm"], ends, part.tag] += 1 if send else -1
            self.push("group", parts=(part,), **fields)
        else:
            if keys.get("greedy"):
                fields["most"], fields["slots"] = keys["sm"], 1
            self.push("kernel", **fields)

    # ---- section 4: what drivers do ------------------------------------------------------------

    def driver_operations(self, rank):
        self.out, self.iteration = [], None
        batches = self.batches[rank]
        if self.dataflow:
            for iteration in range(min(self.contexts, batches)):
                self.emit("admit", object=iteration)
        else:
            for period in range(self.depth):
                self.lower_period(rank, period)
        for iteration in range(batches):
            self.emit("retire", object=iteration)
            if self.dataflow and self.contexts + iteration < batches:
                self.emit("admit", object=self.contexts + iteration)
            if (
                not self.dataflow and iteration + 1 < batches
            ):  # the last period is batches + depth - 2
                self.lower_period(rank, self.depth + iteration)
        return self.out

    def lower_period(self, rank, period):
        """All ranks admit an iteration in the first period that touches it on one of them."""
        first = min(keys["stage"] for schedule in self.schedules for keys in schedule.values())
        admitted = max(0, min(self.batches[rank], period - first + 1))
        handed = tuple(
            self.numbers[rank, iteration, task] for iteration, task in self.handed_out(rank, period)
        )
        self.emit("enqueue", object=admitted, instances=handed)

    # ---- the machine ---------------------------------------------------------------------------

    def window(self, rank):
        """How many iterations may be admitted and not over, where `last-task` retires them."""
        queued = [
            self.program.room[stream] // count
            for stream, count in self.pushes().items()
            if self.program.streams[stream][0] == rank
        ]
        return self.contexts + 3 + max(self.contexts, *queued)

    def pushes(self):
        """What an iteration pushes to each stream."""
        program, plan = self.program, self.plan
        pushed = Counter()
        for rank, schedule in enumerate(self.schedules):
            for task, keys in schedule.items():
                stream = program.streams.index((rank, keys["stream"]))
                waits = [
                    on
                    for on, _ in self.dependences(task, 0)
                    if not (
                        plan.get("elide_same_stream") and schedule[on]["stream"] == keys["stream"]
                    )
                ]
                pushed[stream] += len(waits) + ("host" not in keys["work"]) + 1
        return pushed

    def launch_queues(self):
        """Section 7: what depth + 2 iterations push; with `retire: device` depth, and no more."""
        program, plan = self.program, self.plan
        given = plan.get("machine", {}).get("launch_queue")
        to_device = plan.get("retire") == "device"
        for stream, count in self.pushes().items():
            usual = count * (self.contexts if to_device else self.contexts + 2)
            program.room[stream] = (
                usual if given is None else min(given, usual) if to_device else given
            )

    def serial_run(self):
        """Section 9, `serial`: the writes that a serial run has made before each access."""
        program = self.program
        moments = {}
        for instance in self.instances:
            for number in instance.operations:
                for access in program.operations[number].accesses:
                    moments[access] = (instance.iteration, self.serial_order.index(instance.task))
        for number, access in enumerate(program.accesses):
            access.serial = sum(
                1 << other
                for other, written in enumerate(program.accesses)
                if written.buffer == access.buffer
                and written.how == "write"
                and moments[other] < moments[number]
            )

    def buffers(self):
        program, plan = self.program, self.plan
        declared = plan.get("buffers", {})
        for name in declared:
            for rank in range(self.ranks):
                instances = declared[name].get("instances", 1)
                for iteration in range(self.iterations if instances == 1 else instances):
                    Program.number(program.buffers, (rank, name, self.scope(name, iteration)))
        for buffer, (_, name, iteration) in enumerate(program.buffers):
            program.bytes[buffer] = size(declared.get(name, {}).get("bytes"))
            if name in plan["inputs"] if "inputs" in plan else iteration is None:
                program.inputs.add(buffer)

    def lowered(self):
        workers = self.name_instances()
        for rank in range(self.ranks):
            turns = self.turns(rank)
            for instance in self.instances:
                if instance.rank == rank:
                    self.lower_instance(instance, turns.get((instance.iteration, instance.task), 0))
        self.serial_run()
        for rank in range(self.ranks):
            self.program.threads.append((rank, self.driver_operations(rank)))
        for rank, _ in workers:
            self.program.threads.append((rank, ()))
        machine = self.plan.get("machine", {})
        for ranks in machine.get("share_device", []):
            for rank in ranks:
                self.program.device[rank] = ranks[0]
        self.program.sm_slots = machine.get("sm_slots", 0)
        self.program.cores = machine.get("cores")
        self.program.order_implicit = machine.get("launch_order_implicit", False)
        self.program.memory = [size(machine.get("memory"))] * self.ranks
        self.program.deal_hardware_queues(machine.get("hw_queues", 0), {})
        self.launch_queues()
        self.buffers()
        self.program.comm_names = self.comm_names
        self.program.unmatched = any(self.messages.values())
        return self


class PipelineMachine(Machine):
    """The machine with the drivers' operations and slots."""

    serial = drains = True

    def __init__(self, plan, driver, iterations):
        self.pipeline = Pipeline(plan, driver, iterations).lowered()
        self.plan = plan
        self.instances = self.pipeline.instances
        self.retire_rule = plan.get("retire", "submit")
        self.at_fire = self.pipeline.dataflow and plan.get("ticket_at") == "fire"
        ranks = range(self.pipeline.ranks) if self.pipeline.by_turn else []
        self.rounds = {rank: self.pipeline.rounds(rank) for rank in ranks}
        super().__init__(self.pipeline.program)

    def start(self):
        state = super().start()
        for worker in range(self.pipeline.ranks, len(self.program.threads)):
            state["queue of", worker] = ()
            state["instance", worker] = None
            state["locked", worker] = False
        for flag in range(len(self.program.flags)):
            state["owner of flag", flag] = None
        for event in range(len(self.program.events)):
            state["owner of event", event] = None
        for rank in range(self.pipeline.ranks):
            state["admitted", rank] = state["retired", rank] = state["next turn", rank] = 0
            for iteration in range(self.pipeline.iterations):
                state["admission", rank, iteration] = 0  # what the driver knew
        for number in range(len(self.instances)):
            state["fired", number] = False
            state["submitted", number] = None  # what its worker knew
            state["turn", number] = None
        return state

    def at(self, rank, iteration, tasks):
        return [self.pipeline.numbers[rank, iteration, task] for task in tasks]

    # ---- workers -------------------------------------------------------------------------------

    def next_operation(self, state, thread):
        if thread < self.pipeline.ranks:
            return super().next_operation(state, thread)
        if state["instance", thread] is None:
            return None
        return self.instances[state["instance", thread]].operations[state["position", thread]]

    def step_thread(self, state, thread):
        if thread < self.pipeline.ranks:
            return super().step_thread(state, thread)
        if state["instance", thread] is None:
            return self.take(state, thread)
        operations = self.instances[state["instance", thread]].operations
        done = self.carry_out(state, operations[state["position", thread]], ("knows", thread))
        if done == DONE:
            state["position", thread] += 1
            if state["position", thread] == len(operations):
                state["instance", thread], state["position", thread] = None, 0
        return done != BLOCKED

    def take(self, state, worker):
        if not state["queue of", worker]:
            return False
        number, known = state["queue of", worker][0]
        state["queue of", worker] = state["queue of", worker][1:]
        state["instance", worker] = number
        state["knows", worker] |= known
        if self.plan.get("slot_reset") == "submit":
            self.clear_place(state, number)
        return True

    def do_nothing(self, state, number, row):
        return DONE

    def do_complete(self, state, number, row):
        (instance,) = self.program.operations[number].instances
        state["submitted", instance] = state[row]
        if self.pipeline.dataflow:
            for successor in self.instances[instance].successors:
                self.fire(state, successor)
            self.fire_turn(state, instance)
        return DONE

    def turn(self, state, number, row):
        if self.at_fire:
            return state["turn", state["instance", row[1]]]
        return super().turn(state, number, row)

    # ---- section 5: slots ----------------------------------------------------------------------

    def clear_place(self, state, number):
        instance = self.instances[number]
        state["flag", instance.flag] = (0, 0)
        state["record", instance.event] = None
        state["owner of flag", instance.flag] = state["owner of event", instance.event] = (
            instance.iteration
        )

    def check_owner(self, state, kind, operation):
        if state["owner of " + kind, operation.object] != operation.iteration:
            self.violate(state, "slot")

    def skipped(self, state, operation, row):
        """`retired_dep: skip`: of a retired iteration. The worker learns what the driver knows."""
        source = self.instances[operation.source]
        if (
            self.plan.get("retired_dep") != "skip"
            or source.iteration >= state["retired", source.rank]
        ):
            return False
        state[row] |= state["knows", source.rank]
        return True

    def do_record(self, state, number, row):
        done = super().do_record(state, number, row)
        if done == DONE:
            self.check_owner(state, "event", self.program.operations[number])
        return done

    def do_wait(self, state, number, row):
        operation = self.program.operations[number]
        if self.skipped(state, operation, row):
            return DONE
        done = super().do_wait(state, number, row)
        if done == DONE:
            self.check_owner(state, "event", operation)
        return done

    def do_signal(self, state, number, row):
        self.check_owner(state, "flag", self.program.operations[number])
        return super().do_signal(state, number, row)

    def do_lock(self, state, number, row):
        """One that belongs to a wait is not taken where the wait is skipped."""
        operation = self.program.operations[number]
        if operation.source is not None and self.skipped(state, operation, row):
            return DONE
        done = super().do_lock(state, number, row)
        if done == DONE and operation.source is not None:
            state["locked", row[1]] = True
        return done

    def do_unlock(self, state, number, row):
        operation = self.program.operations[number]
        if operation.source is not None:
            if not state["locked", row[1]]:
                self.skipped(state, operation, row)
                return DONE
            state["locked", row[1]] = False
        return super().do_unlock(state, number, row)

    def do_await(self, state, number, row):
        operation = self.program.operations[number]
        if self.skipped(state, operation, row):
            return DONE
        done = super().do_await(state, number, row)
        if done == DONE:
            self.check_owner(state, "flag", operation)
        return done

    # ---- section 4: drivers --------------------------------------------------------------------

    def admit(self, state, rank, iteration):
        state["admitted", rank] = iteration + 1
        if self.plan.get("slot_reset") != "submit":
            for number in self.at(rank, iteration, self.pipeline.tasks):
                self.clear_place(state, number)

    def has_room(self, state, rank, iteration):
        """Section 4, retiring: `last-task` waits for the end of an iteration a window ago."""
        ago = iteration - self.pipeline.window(rank)
        return self.retire_rule != "last-task" or ago < 0 or ago not in self.in_flight(state, rank)

    def do_enqueue(self, state, number, row):
        operation = self.program.operations[number]
        if not self.has_room(state, row[1], operation.object - 1):
            return BLOCKED
        for iteration in range(state["admitted", row[1]], operation.object):
            self.admit(state, row[1], iteration)
        for instance in operation.instances:
            state["queue of", self.instances[instance].worker] += ((instance, state[row]),)
        return DONE

    def do_admit(self, state, number, row):
        rank, iteration = row[1], self.program.operations[number].object
        if not self.has_room(state, rank, iteration):
            return BLOCKED
        state["admission", rank, iteration] = state[row]
        self.admit(state, rank, iteration)
        for instance in self.at(rank, iteration, self.pipeline.orders[rank]):
            self.fire(state, instance)
        return DONE

    def fire(self, state, number):
        """Data-flow: put an instance into its worker's queue, if it can be."""
        instance = self.instances[number]
        rank, retired = instance.rank, state["retired", instance.rank]
        if state["fired", number] or not retired <= instance.iteration < state["admitted", rank]:
            return
        for need in instance.needs:
            forgotten = (
                self.plan.get("forget_done") == "retire"
                and self.instances[need].iteration < retired
            )
            if forgotten or state["submitted", need] is None:
                return
        known = state["admission", rank, instance.iteration]
        for earlier in self.earlier_turns(state, number):
            if state["submitted", earlier] is None:
                return
            known |= state["submitted", earlier]
        state["fired", number] = True
        if self.at_fire and self.pipeline.schedules[rank][instance.task].get("globally_ordered"):
            state["turn", number] = state["next turn", rank]
            state["next turn", rank] += 1
        state["queue of", instance.worker] += ((number, known),)

    def rounds_of(self, state, rank):
        """The turns of a rank; none where they are no condition to fire."""
        return self.rounds.get(rank, [])

    def earlier_turns(self, state, number):
        """`ticket_at: pipelined`: the ordered instances of its rank that have their turn before."""
        instance = self.instances[number]
        rank, turns = instance.rank, self.rounds_of(state, instance.rank)
        turn = instance.iteration, instance.task
        before = turns[: turns.index(turn)] if turn in turns else []
        return [self.pipeline.numbers[(rank, *earlier)] for earlier in before]

    def fire_turn(self, state, number):
        """The end of a turn may fire the next one."""
        instance = self.instances[number]
        rank, turns = instance.rank, self.rounds_of(state, instance.rank)
        turn = instance.iteration, instance.task
        if turn in turns[:-1]:
            after = turns[turns.index(turn) + 1]
            self.fire(state, self.pipeline.numbers[(rank, *after)])

    def retired_by(self, state, rank, iteration):
        """What is known once an iteration is over by the plan's rule; None where it is not."""
        waited = []
        last = self.pipeline.numbers[rank, iteration, self.pipeline.serial_order[-1]]
        for number in self.at(rank, iteration, self.pipeline.tasks):
            if self.retire_rule != "last-task":
                waited.append(state["submitted", number])
            if self.retire_rule == "device" or (self.retire_rule == "last-task" and number == last):
                waited.append(state["reached", self.instances[number].record])
        return None if None in waited else waited

    def do_retire(self, state, number, row):
        rank, iteration = row[1], self.program.operations[number].object
        waited = self.retired_by(state, rank, iteration)
        if waited is None:
            return BLOCKED
        for known in waited:
            state[row] |= known
        state["retired", rank] = iteration + 1
        if self.pipeline.dataflow:
            for later in range(iteration + 1, state["admitted", rank]):
                for instance in self.at(rank, later, self.pipeline.orders[rank]):
                    self.fire(state, instance)
        return DONE

    # ---- section 8 -----------------------------------------------------------------------------

    def thread_order(self):
        """Rank by rank, the driver and then the workers; here all drivers come first."""
        threads = range(len(self.program.threads))
        return sorted(threads, key=lambda thread: self.program.threads[thread][0])

    def note_iterations(self, before, after, now, iterations):
        for rank in range(self.pipeline.ranks):
            for iteration in range(before["admitted", rank], after["admitted", rank]):
                iterations[rank, iteration] = [now, None]
            flying = self.in_flight(after, rank)
            oldest = min(flying, default=after["admitted", rank])  # one after the other is over
            for iteration in range(oldest):
                times = iterations[rank, iteration]
                times[1] = now if times[1] is None else times[1]

    # ---- section 9 -----------------------------------------------------------------------------

    def in_flight(self, state, rank):
        """The iterations admitted whose tasks are not all submitted with their events reached."""
        return [
            iteration
            for iteration in range(state["admitted", rank])
            if any(
                state["submitted", number] is None
                or state["reached", self.instances[number].record] is None
                for number in self.at(rank, iteration, self.pipeline.tasks)
            )
        ]

    def check_bound(self, state):
        most = self.plan.get("max_in_flight")
        for rank, room in enumerate(self.program.memory):
            if not state["admitted", rank] or not room and not most:
                continue  # section 7: looked at when an iteration is admitted
            flying = self.in_flight(state, rank)
            held = sum(
                self.program.bytes[buffer]
                for buffer, (owner, _, iteration) in enumerate(self.program.buffers)
                if owner == rank and (not isinstance(iteration, int) or iteration in flying)
            )
            if (most and len(flying) > most) or (room and held > room):
                self.violate(state, "bound")

    def work_remains(self, state):
        workers = range(self.pipeline.ranks, len(self.program.threads))
        return (
            super().work_remains(state)
            or any(
                state["instance", worker] is not None or state["queue of", worker]
                for worker in workers
            )
            or any(
                instance.iteration < state["admitted", instance.rank]
                and state["submitted", number] is None
                for number, instance in enumerate(self.instances)
            )
        )

    def end(self, state):
        if not self.work_remains(state):
            return "drain" if self.messages_left(state) else None
        self.find_stale_waits(state)
        admitted = all(
            state["admitted", rank] == count for rank, count in enumerate(self.pipeline.batches)
        )
        return "drain" if admitted else "deadlock"

    def messages_left(self, state):
        """A message that the next fill would receive."""
        return any(
            len(sides[0]) > len(sides[1]) for key, sides in state.items() if key[0] == "channel"
        )

    def find_stale_waits(self, state):
        """Section 5: a thread is blocked at an `await` of a younger iteration's place."""
        for worker in range(self.pipeline.ranks, len(self.program.threads)):
            if state["instance", worker] is None:
                continue
            operations = self.instances[state["instance", worker]].operations
            operation = self.program.operations[operations[state["position", worker]]]
            if operation.kind == "await":
                owner = state["owner of flag", operation.object]
                if owner is not None and owner > operation.iteration:
                    self.violate(state, "slot")

# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages: the machine of a plan, one step of one agent at a time.

Written from doc/semantics.md alone: section 2 (agents, streams, immediate effects), section 3
(operations), section 7 (residency slots, hardware queues, launch queues, order of issue) and
section 9 (happens-before, values, lifetime, bound). It shares no code with the program, and
reduces nothing: it is slow, and short enough to be read beside the page.

A state is a dict with the same keys in the same order for a whole search; all values are
immutable. What an agent or an object knows (section 9, happens-before) is an int: bit n says
that access n is known to have happened.
"""

from dataclasses import dataclass, field

# HALF: the call of a wait is made, its end is a step of its own.
BLOCKED, DONE, HALF = "blocked", "done", "half"
# Section 2: they take effect at the head of a stream, at once.
IMMEDIATE = ("record", "wait", "alloc")
# In the place of an operation: the thread named behind it waits for what is before this place.
MARK = -1


@dataclass
class Operation:
    """One operation; what its fields name depends on its kind."""

    kind: str
    stream: int = None
    slots: int = 0
    most: int = 0  # of a greedy kernel: the most slots that it takes; it needs one
    comm: int = None
    match: tuple = ()  # of a collective: what all members must agree in
    root: int = None  # of a broadcast
    parts: tuple = ()  # of a group
    accesses: list = field(default_factory=list)
    body: tuple = ()  # of a callback
    object: int = None  # an event, flag, lock, queue, buffer, rank, member or number of a turn
    rule: str = None  # of a flag: the key that says what is done with it, and the value
    value: int = 1
    otherwise: int = 0  # with branches, or a jump: where it goes on, counted from itself
    asynchronous: bool = False  # of a free: cudaFreeAsync
    others: bool = False  # of a sync: other threads push to what it waits for, so it is two steps
    iteration: int = None  # of a pipeline
    source: int = None  # of a pipeline's wait and await: the instance that is meant
    instances: tuple = ()  # of a pipeline's driver
    time: int = 0  # how long it takes (times.py), in ns
    shares: dict = field(default_factory=dict)  # of `sm`, `link`, `core` and a copy engine


@dataclass
class Part:
    """A send or a receive of a group."""

    send: bool
    peer: int
    tag: tuple
    bytes: int
    dtype: str = None


@dataclass
class Access:
    """What an operation does to a buffer: `read`, `write` or `alloc`."""

    buffer: int
    how: str
    stream: int
    operation: int
    serial: int = 0  # the writes to its buffer that a serial run has made before it


@dataclass
class Comm:
    """A communicator."""

    members: list
    eager_messages: int = 0
    eager_bytes: int = 0


class Program:
    """Operations and objects, all known by number; host.py and pipeline.py fill it in."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.streams, self.events, self.flags, self.locks, self.buffers = [], [], [], [], []
        self.operations, self.accesses, self.comms = [], [], []
        self.comm_names = []  # of the comms
        self.threads = []  # (rank, list of operations)
        self.queues = []  # capacities
        self.begins = {}  # flag: its value at the beginning, where that is not 0
        self.room = {}  # stream: how many items it holds
        self.hardware_queue = {}  # stream: its queue, if streams share some
        self.device = list(range(ranks))
        self.sm_slots = 0
        self.cores = None  # that the work of all ranks shares
        self.order_implicit = False
        self.inputs = set()  # buffers that hold a value from the beginning
        self.bytes = {}  # buffer: its size
        self.memory = [0] * ranks  # 0: any number of bytes
        self.allocated = {}  # buffer: the number of the access that its alloc is
        self.on_host = set()  # buffers that are allocated in memory of the host
        self.called = {}  # buffer: that of the call of its alloc
        self.unmatched = False  # section 9, `message`

    @staticmethod
    def number(table, key):
        if key not in table:
            table.append(key)
        return table.index(key)

    def add(self, kind, accesses=(), **fields):
        """Add an operation; `accesses` are (buffer, how). Returns its number."""
        operation = Operation(kind, **fields)
        for buffer, how in accesses:
            operation.accesses.append(len(self.accesses))
            where = Program.number(self.buffers, buffer)
            self.accesses.append(Access(where, how, operation.stream, len(self.operations)))
        self.operations.append(operation)
        return len(self.operations) - 1

    def deal_hardware_queues(self, count, named):
        """Section 7: streams share `count` queues if they are more, or if one's is named."""
        for rank in range(self.ranks):
            mine = [stream for stream in self.streams if stream[0] == rank]
            chosen = {stream: named[stream[1]] for stream in mine if stream[1] in named}
            if not count or (len(mine) <= count and not chosen):
                continue
            dealt = 0
            for stream in mine:
                if stream in chosen:
                    queue = chosen[stream]
                else:
                    queue, dealt = dealt % count, dealt + 1
                self.hardware_queue[self.streams.index(stream)] = queue

    def close(self):
        """What follows from all accesses together."""
        self.writes = [0] * len(self.buffers)
        self.touches = [0] * len(self.buffers)
        for number, access in enumerate(self.accesses):
            if access.how in ("read", "write"):
                self.touches[access.buffer] |= 1 << number
            if access.how == "write":
                self.writes[access.buffer] |= 1 << number
        self.conflicts = []
        for access in self.accesses:
            against = self.touches[access.buffer] if access.how == "write" else 0
            if access.how == "read":
                against = self.writes[access.buffer]
            for same in self.operations[access.operation].accesses:
                against &= ~(1 << same)
            self.conflicts.append(against)


class Machine:
    """The steps of a program."""

    serial = False  # whether `serial` is judged: in pipelines
    drains = False  # whether a run has an end of the data: in pipelines
    calm = 0  # so many more steps before something may fail

    def __init__(self, program):
        self.program = program
        program.close()

    # ---- states --------------------------------------------------------------------------------

    def start(self):
        """The state in which a run begins."""
        program = self.program
        state = {"made": 0, "violated": frozenset()}
        for thread in range(len(program.threads)):
            state["position", thread] = 0
            state["knows", thread] = 0
            state["sync", thread] = None
        for stream in range(len(program.streams)):
            state["items", stream] = ()
            state["running", stream] = False
            state["carries", stream] = 0
            state["body", stream] = 0
            state["freed in", stream] = ()
            state["has", stream] = 0
        for event in range(len(program.events)):
            state["record", event] = None
        for flag in range(len(program.flags)):
            state["flag", flag] = (program.begins.get(flag, 0), 0)
        for lock in range(len(program.locks)):
            state["lock", lock] = (False, 0)
        for queue in range(len(program.queues)):
            state["queue", queue] = ((), ())
        for number, operation in enumerate(program.operations):
            if operation.kind == "record":
                state["reached", number] = None
        for rank in range(program.ranks):
            state["served", rank] = (0, 0)
            state["not started", rank] = ()
            state["slots", rank] = 0
            for queue in set(program.hardware_queue.values()):
                state["hardware", rank, queue] = ()
        for number, comm in enumerate(program.comms):
            for rank in comm.members:
                state["issued", number, rank] = ()
                state["collective", number, rank] = None
                state["aborted", number, rank] = False
                for peer in comm.members:
                    state["channel", number, rank, peer] = ((), ())
        for buffer in range(len(program.buffers)):
            state["freed", buffer] = False
            state["live", buffer] = False
            state["noted", buffer] = ()
            state["keepers", buffer] = ()
            state["freed behind", buffer] = None
        return state

    def violate(self, state, what):
        state["violated"] = state["violated"] | {what}

    def work_remains(self, state):
        return any(
            state["position", thread] < len(operations)
            for thread, (_, operations) in enumerate(self.program.threads)
        ) or any(state["items", stream] for stream in range(len(self.program.streams)))

    def end(self, state):
        """The property that a state without a step violates, or None."""
        return "deadlock" if self.work_remains(state) else None

    # ---- section 9: accesses -------------------------------------------------------------------

    def access(self, state, operation, row):
        """Make the accesses of an operation. `row` is the key of what its agent knows."""
        program, known = self.program, state[row]
        for how in ("read", "write"):
            for number in operation.accesses:
                access = program.accesses[number]
                if access.how != how:
                    continue
                written = state["made"] & program.writes[access.buffer]
                if state["made"] & program.conflicts[number] & ~known:
                    self.violate(state, "race")
                if how == "read" and access.buffer not in program.inputs and not written:
                    self.violate(state, "value")
                if self.serial and written & ~(1 << number) != access.serial:
                    self.violate(state, "serial")
                allocation = program.allocated.get(access.buffer)
                if allocation is not None and not known >> allocation & 1:
                    self.violate(state, "lifetime")
        for number in operation.accesses:
            state["made"] |= 1 << number
            state[row] |= 1 << number

    def check_freed(self, state, operation):
        """A push of work, or CPU work, that accesses a freed buffer."""
        if any(
            state["freed", self.program.accesses[number].buffer] for number in operation.accesses
        ):
            self.violate(state, "lifetime")

    def check_bound(self, state):
        """At the start: a host program holds what it uses and never allocates."""
        for rank, size in enumerate(self.program.memory):
            if size and self.used_bytes(rank) > size:
                self.violate(state, "bound")

    def used_bytes(self, rank):
        program = self.program
        return sum(
            program.bytes.get(buffer, 0)
            for buffer, name in enumerate(program.buffers)
            if name[0] == rank and buffer not in program.allocated and program.touches[buffer]
        )

    def last_queued(self, state, stream):
        """The operation behind all others of a stream, or None."""
        numbers = [item[0] for item in state["items", stream] if item[0] != MARK]
        return numbers[-1] if numbers else None

    def place_of(self, state, stream, number):
        """Where in the stream the operation is queued; 0 where it is not any more."""
        numbers = [item[0] for item in state["items", stream] if item[0] != MARK]
        return 1 + numbers.index(number) if number in numbers else 0

    def is_kept(self, state, buffer):
        """Freed memory that recorded streams have not come past."""
        return any(self.place_of(state, *keeper) for keeper in state["keepers", buffer])

    def held_bytes(self, state, rank, home):
        """The bytes that cannot be handed out to an alloc on the stream `home`."""
        program, held = self.program, 0
        spans = {}  # of other streams: the places at which memory is in use
        for buffer in program.allocated:
            if program.buffers[buffer][0] != rank or buffer in program.on_host:
                continue
            size = program.bytes.get(buffer, 0)
            kept = state["live", buffer] or self.is_kept(state, buffer)
            stream = self.stream_of(state, buffer)
            if stream == home:
                held += size * kept
                continue
            first = self.place_of(state, stream, self.allocation(buffer))
            end = len(state["items", stream]) + 1
            if not kept:
                if state["freed behind", buffer] is None:
                    continue
                last = self.place_of(state, *state["freed behind", buffer])
                if last == 0:
                    continue
                end = last
            spans.setdefault(stream, []).append((max(first - 1, 0), end, size))
        for stream, all_spans in spans.items():
            held += max(
                sum(size for first, end, size in all_spans if first <= place < end)
                for place in range(len(state["items", stream]) + 1)
            )
        return held

    def allocation(self, buffer):
        """The operation that allocates it."""
        return self.program.accesses[self.program.allocated[buffer]].operation

    def stream_of(self, state, buffer):
        """The stream in whose order the memory is handed out again."""
        behind = state["freed behind", buffer]
        return behind[0] if behind else self.program.operations[self.allocation(buffer)].stream

    def in_use(self, state, buffer, row):
        """Whether a buffer is in use that a stream hands out again, or a thread frees on the host;
        `row` is the key of what that agent knows."""
        program, stream = self.program, row[1] if row[0] == "carries" else None
        for number, access in enumerate(program.accesses):
            unknown = state["made"] >> number & 1 and not state[row] >> number & 1
            if access.buffer != buffer or access.how not in ("read", "write"):
                continue
            if unknown and access.stream not in state["noted", buffer]:
                return True
        for other, (rank, _) in enumerate(program.streams):
            if (
                other == stream
                or rank != program.buffers[buffer][0]
                or other in state["noted", buffer]
            ):
                continue
            queued = state["items", other][1 if state["running", other] else 0 :]
            for number, _, _ in queued:
                if number != MARK and any(
                    program.accesses[access].buffer == buffer
                    for access in program.operations[number].accesses
                ):
                    return True
        return False

    # ---- section 3: operations of a thread or of a callback's body -----------------------------

    def do_compute(self, state, number, row):
        operation = self.program.operations[number]
        self.check_freed(state, operation)
        self.access(state, operation, row)
        return DONE

    def push(self, state, number, row, bound=None):
        """Add an operation to its stream; `bound` is the record that a wait waits for, or what an
        alloc may be given."""
        program, operation = self.program, self.program.operations[number]
        stream = operation.stream
        rank = program.streams[stream][0]
        held = sum(item[0] != MARK for item in state["items", stream])
        if stream in program.room and held >= program.room[stream]:
            return BLOCKED
        self.check_freed(state, operation)
        if operation.kind == "alloc":  # memory that is freed later is not handed out to it
            bound = state["freed in", stream]
        state["items", stream] += ((number, state[row], bound),)
        if stream in program.hardware_queue:
            state["hardware", rank, program.hardware_queue[stream]] += (stream,)
        if operation.comm is not None:
            state["issued", operation.comm, rank] += (number,)
            state["not started", rank] += (number,)
        return DONE

    do_kernel = do_collective = do_group = do_callback = do_write = do_wait_flag = push

    def do_record(self, state, number, row):
        if self.push(state, number, row) == BLOCKED:
            return BLOCKED
        state["record", self.program.operations[number].object] = number
        return DONE

    def do_wait(self, state, number, row):
        return self.push(
            state, number, row, state["record", self.program.operations[number].object]
        )

    def do_alloc(self, state, number, row):
        program, operation = self.program, self.program.operations[number]
        call = 1 << program.called[operation.object]
        state["made"] |= call
        state[row] |= call  # known to what is pushed, too
        if self.push(state, number, row) == BLOCKED:
            return BLOCKED
        state["live", operation.object] = True
        state["freed", operation.object] = False
        state["keepers", operation.object], state["freed behind", operation.object] = (), None
        rank = program.streams[operation.stream][0]
        size = program.memory[rank]
        held = self.used_bytes(rank) + self.held_bytes(state, rank, operation.stream)
        if size and held > size:
            self.violate(state, "bound")
        return DONE

    def do_host_alloc(self, state, number, row):
        buffer = self.program.operations[number].object
        known = 1 << self.program.called[buffer] | 1 << self.program.allocated[buffer]
        state["made"] |= known
        state[row] |= known
        state["live", buffer] = True
        return DONE

    def check_live(self, state, operation, row):
        """A free or a record_stream comes behind the alloc, as its thread knows, and before any
        free. Whether there is something to free."""
        program, buffer = self.program, operation.object
        live = state["live", buffer] or buffer not in program.allocated
        live = live and not state["freed", buffer]
        known = buffer not in program.called or state[row] >> program.called[buffer] & 1
        if not live or not known:
            self.violate(state, "lifetime")
        return live

    def do_free(self, state, number, row):
        operation = self.program.operations[number]
        buffer, stream = operation.object, operation.stream
        if not self.check_live(state, operation, row):
            return DONE
        if buffer in self.program.on_host:
            if self.in_use(state, buffer, row):
                self.violate(state, "lifetime")
            state["freed", buffer], state["live", buffer] = True, False
            return DONE
        if operation.asynchronous:  # record_stream is no call of that allocator
            state["noted", buffer] = ()
        state["keepers", buffer] = tuple(
            (other, self.last_queued(state, other))
            for other in state["noted", buffer]
            if other != stream and self.last_queued(state, other) is not None
        )
        state["freed behind", buffer] = (stream, self.last_queued(state, stream))
        state["freed in", stream] += (buffer,)
        state["freed", buffer], state["live", buffer] = True, False
        return DONE

    def do_record_stream(self, state, number, row):
        operation = self.program.operations[number]
        live = self.check_live(state, operation, row)
        if live and operation.stream is not None:  # None: nothing is ever pushed to it
            noted = state["noted", operation.object]
            state["noted", operation.object] = tuple(sorted({*noted, operation.stream}))
        return DONE

    def do_staged(self, state, number, row):
        """The copy of pageable memory waits: the sync behind this. past_sync is the other way."""
        return DONE

    def do_sync(self, state, number, row):
        """Wait for a stream or (`object`: a rank) for all streams of a device."""
        program, operation = self.program, self.program.operations[number]
        streams = [operation.stream]
        if operation.stream is None:
            streams = [
                stream for stream, name in enumerate(program.streams) if name[0] == operation.object
            ]
        busy = [stream for stream in streams if state["items", stream]]
        if not operation.others:
            if busy:
                return BLOCKED
            for stream in streams:
                state[row] |= state["carries", stream]
            return DONE
        thread = row[1]
        if state["sync", thread] is None:
            learnt = 0
            for stream in streams:
                if stream in busy:
                    state["items", stream] += ((MARK, thread, None),)
                else:
                    learnt |= state["carries", stream]
            state["sync", thread] = (len(busy), learnt)
            return HALF
        left, learnt = state["sync", thread]
        if left:
            return BLOCKED
        state[row] |= learnt
        state["sync", thread] = None
        return DONE

    def do_sync_event(self, state, number, row):
        operation = self.program.operations[number]
        record = state["record", operation.object]
        if operation.others:
            thread = row[1]
            if state["sync", thread] is None:
                state["sync", thread] = ("record", record)
                return HALF
            record = state["sync", thread][1]
        if record is not None:
            if state["reached", record] is None:
                return BLOCKED
            state[row] |= state["reached", record]
        if operation.others:
            state["sync", row[1]] = None
        return DONE

    def change_flag(self, state, operation, known):
        """Section 3, flags: a set to another value carries what is known; an addition joins it."""
        value, carried = state["flag", operation.object]
        if operation.rule == "add":
            state["flag", operation.object] = (value + operation.value, carried | known)
        elif operation.rule == "count":
            state["flag", operation.object] = (value - operation.value, carried | known)
        elif value != operation.value:
            state["flag", operation.object] = (operation.value, known)

    def has_value(self, state, operation):
        """Whether a flag has the value that is waited for."""
        value = state["flag", operation.object][0]
        return value == operation.value if operation.rule == "equals" else value >= operation.value

    def do_abort(self, state, number, row):
        """The member (communicator, rank) ends with an error; what has not met a partner is gone."""
        self.abort_member(state, *self.program.operations[number].object)
        return DONE

    def abort_member(self, state, comm, rank):
        state["aborted", comm, rank] = True
        for peer in self.program.comms[comm].members:
            sends, receives = state["channel", comm, rank, peer]
            state["channel", comm, rank, peer] = (sends[: len(receives)], receives)
            sends, receives = state["channel", comm, peer, rank]
            state["channel", comm, peer, rank] = (sends, receives[: len(sends)])

    def do_signal(self, state, number, row):
        self.change_flag(state, self.program.operations[number], state[row])
        return DONE

    def do_await(self, state, number, row):
        operation = self.program.operations[number]
        if not self.has_value(state, operation):
            return BLOCKED
        state[row] |= state["flag", operation.object][1]
        return DONE

    def do_acquire(self, state, number, row):
        if self.do_await(state, number, row) == BLOCKED:
            return BLOCKED
        self.change_flag(state, self.program.operations[number], state[row])
        return DONE

    def do_put(self, state, number, row):
        queue = self.program.operations[number].object
        items, free = state["queue", queue]
        if len(items) == self.program.queues[queue]:
            return BLOCKED
        if free:
            state[row] |= free[0]
        state["queue", queue] = (items + (state[row],), free[1:])
        return DONE

    def do_get(self, state, number, row):
        queue = self.program.operations[number].object
        items, free = state["queue", queue]
        if not items:
            return BLOCKED
        state[row] |= items[0]
        state["queue", queue] = (items[1:], free + (state[row],))
        return DONE

    def do_lock(self, state, number, row):
        lock = self.program.operations[number].object
        held, known = state["lock", lock]
        if held:
            return BLOCKED
        state[row] |= known
        state["lock", lock] = (True, known)
        return DONE

    def do_unlock(self, state, number, row):
        lock = self.program.operations[number].object
        state["lock", lock] = (False, state[row])
        return DONE

    def rank_of(self, row):
        """The rank of an agent, by the key of what it knows."""
        table = self.program.threads if row[0] == "knows" else self.program.streams
        return table[row[1]][0]

    def do_ticket(self, state, number, row):
        served, known = state["served", self.rank_of(row)]
        if served != self.turn(state, number, row):
            return BLOCKED
        state[row] |= known
        return DONE

    def turn(self, state, number, row):
        return self.program.operations[number].object

    def do_serve(self, state, number, row):
        served, known = state["served", self.rank_of(row)]
        state["served", self.rank_of(row)] = (served + 1, known | state[row])
        return DONE

    # ---- section 3: branches -------------------------------------------------------------------

    def do_query(self, state, number, row):
        """Whether a stream, or (`object`: a rank) the device, has no work; if so, what it knows."""
        operation = self.program.operations[number]
        streams = [operation.stream]
        if operation.stream is None:
            streams = [
                stream
                for stream, name in enumerate(self.program.streams)
                if name[0] == operation.object
            ]
        if any(state["items", stream] for stream in streams):
            return BLOCKED
        for stream in streams:
            state[row] |= state["carries", stream]
        return DONE

    def do_query_event(self, state, number, row):
        record = state["record", self.program.operations[number].object]
        if record is None:
            return DONE
        if state["reached", record] is None:
            return BLOCKED
        state[row] |= state["reached", record]
        return DONE

    def do_query_flag(self, state, number, row):
        return self.do_await(state, number, row)

    def do_query_queue(self, state, number, row):
        items = state["queue", self.program.operations[number].object][0]
        if not items:
            return BLOCKED
        state[row] |= items[0]
        return DONE

    def do_choose(self, state, number, row):
        """The first branch; other_branch is the other way."""
        return DONE

    def go_on(self, state, thread, distance):
        """So many operations further; a jump there is no step."""
        operations = self.operations_of(state, thread)
        position = state["position", thread] + distance
        while position < len(operations):
            operation = self.program.operations[operations[position]]
            if operation.kind != "jump":
                break
            position += operation.otherwise
        state["position", thread] = position

    def other_branch(self, state, thread):
        number = self.next_operation(state, thread)
        if number is None or self.program.operations[number].kind != "choose":
            return False
        self.go_on(state, thread, self.program.operations[number].otherwise)
        return True

    # ---- section 2: streams --------------------------------------------------------------------

    def at_front(self, state, stream):
        """Whether the stream is at the front of its hardware queue."""
        queue = self.program.hardware_queue.get(stream)
        return (
            queue is None or state["hardware", self.program.streams[stream][0], queue][0] == stream
        )

    def leave_front(self, state, stream):
        queue = self.program.hardware_queue.get(stream)
        if queue is not None:
            key = ("hardware", self.program.streams[stream][0], queue)
            state[key] = state[key][1:]

    def settle(self, state):
        """Let immediate effects happen until there are no more of them."""
        changed = True
        while changed:
            changed = False
            for stream in range(len(self.program.streams)):
                while self.immediate_effect(state, stream):
                    changed = True

    def immediate_effect(self, state, stream):
        if not state["items", stream] or state["running", stream]:
            return False
        number, known, bound = state["items", stream][0]
        if number == MARK:
            left, learnt = state["sync", known]
            state["sync", known] = (left - 1, learnt | state["carries", stream])
            state["items", stream] = state["items", stream][1:]
            return True
        operation = self.program.operations[number]
        if operation.kind not in IMMEDIATE or not self.at_front(state, stream):
            return False
        waits = operation.kind == "wait" and bound is not None
        if waits and state["reached", bound] is None:
            return False
        state["carries", stream] |= known
        if waits:
            state["carries", stream] |= state["reached", bound]
        if operation.kind == "record":
            state["reached", number] = state["carries", stream]
        if operation.kind == "alloc":
            if any(self.in_use(state, buffer, ("carries", stream)) for buffer in bound):
                self.violate(state, "lifetime")
            allocation = 1 << self.program.allocated[operation.object]
            state["made"] |= allocation
            state["carries", stream] |= allocation
        self.leave_front(state, stream)
        state["items", stream] = state["items", stream][1:]
        return True

    def slots_of(self, number):
        return self.program.operations[number].slots if self.program.sm_slots else 0

    def can_start(self, state, stream):
        number = state["items", stream][0][0]
        operation = self.program.operations[number]
        rank = self.program.streams[stream][0]
        if number == MARK or operation.kind in IMMEDIATE or not self.at_front(state, stream):
            return False
        used = state["slots", self.program.device[rank]]
        if self.slots_of(number) and used + operation.slots > self.program.sm_slots:
            return False
        if operation.kind == "wait_flag" and not self.has_value(state, operation):
            return False
        if operation.comm is None:
            return True
        if self.program.order_implicit and state["not started", rank][0] != number:
            return False
        return state["issued", operation.comm, rank][0] == number

    def begin(self, state, stream):
        """Start the head of a stream. Returns whether that is a mismatch."""
        number, known, _ = state["items", stream][0]
        operation = self.program.operations[number]
        rank = self.program.streams[stream][0]
        state["running", stream] = True
        state["body", stream] = 0
        state["carries", stream] |= known
        device = self.program.device[rank]
        state["has", stream] = self.slots_of(number)
        if operation.most and self.program.sm_slots:
            free = self.program.sm_slots - state["slots", device]
            state["has", stream] = min(free, operation.most)
        state["slots", device] += state["has", stream]
        self.leave_front(state, stream)
        if operation.comm is not None:
            left = state["not started", rank]
            state["not started", rank] = tuple(other for other in left if other != number)
        self.access(state, operation, ("carries", stream))
        if operation.kind == "write":
            self.change_flag(state, operation, state["carries", stream])
        if operation.kind == "wait_flag":
            state["carries", stream] |= state["flag", operation.object][1]
        if self.is_aborted(state, operation, rank):
            return False
        if operation.kind == "collective":
            return self.join_collective(state, number, rank)
        if operation.kind == "group":
            return self.join_channels(state, number, rank, state["carries", stream])
        return False

    def is_aborted(self, state, operation, rank):
        return operation.comm is not None and state["aborted", operation.comm, rank]

    def finish(self, state, stream):
        """The running head of a stream is over."""
        number = state["items", stream][0][0]
        rank = self.program.streams[stream][0]
        comm = self.program.operations[number].comm
        state["slots", self.program.device[rank]] -= state["has", stream]
        state["has", stream] = 0
        if comm is not None:
            state["issued", comm, rank] = state["issued", comm, rank][1:]
        state["items", stream] = state["items", stream][1:]
        state["running", stream] = False
        self.grow(state, self.program.device[rank])

    def grow(self, state, device):
        """Greedy kernels that run have first what has become free, in the order of the streams."""
        program = self.program
        for rank in range(program.ranks):
            for stream, name in enumerate(program.streams):
                if name[0] != rank or program.device[rank] != device:
                    continue
                if not state["running", stream]:
                    continue
                most = program.operations[state["items", stream][0][0]].most
                more = min(program.sm_slots - state["slots", device], most - state["has", stream])
                if most and program.sm_slots and more > 0:
                    state["has", stream] += more
                    state["slots", device] += more

    # ---- section 3: collectives and groups -----------------------------------------------------

    def join_collective(self, state, number, rank):
        operation = self.program.operations[number]
        state["collective", operation.comm, rank] = number
        for member in self.program.comms[operation.comm].members:
            other = state["collective", operation.comm, member]
            if other is None or state["aborted", operation.comm, member]:
                continue
            if self.program.operations[other].match != operation.match:
                return True
        return False

    def complete_collective(self, state, comm):
        """Data go from the root of a broadcast to all members, else from all to all."""
        members = self.program.comms[comm].members
        streams, learnt = {}, 0
        for member in members:
            operation = self.program.operations[state["collective", comm, member]]
            streams[member] = operation.stream
            if operation.root in (None, member):
                learnt |= state["carries", operation.stream]
        for member in members:
            state["carries", streams[member]] |= learnt
            state["collective", comm, member] = None
            self.finish(state, streams[member])

    def channel(self, number, part, rank):
        comm = self.program.operations[number].comm
        return (
            ("channel", comm, rank, part.peer) if part.send else ("channel", comm, part.peer, rank)
        )

    def join_channels(self, state, number, rank, known):
        """Each part takes the next place of its channel, and must agree with its opposite."""
        mismatch = False
        operation = self.program.operations[number]
        for index, part in enumerate(operation.parts):
            key = self.channel(number, part, rank)
            sides = [*state[key]]
            mine, others = (0, 1) if part.send else (1, 0)
            place = len(sides[mine])
            sides[mine] += ((number, index, known),)
            state[key] = tuple(sides)
            if place < len(sides[others]):
                opposite = self.program.operations[sides[others][place][0]]
                peer = opposite.parts[sides[others][place][1]]
                sizes = part.bytes and peer.bytes and part.bytes != peer.bytes
                types = part.dtype and peer.dtype and part.dtype != peer.dtype
                same = part.tag == peer.tag and operation.iteration == opposite.iteration
                mismatch = mismatch or not same or bool(sizes or types)
        return mismatch

    def place(self, state, number, index, rank):
        """The key of a part's channel, and its place there."""
        part = self.program.operations[number].parts[index]
        key = self.channel(number, part, rank)
        side = state[key][0 if part.send else 1]
        return key, [entry[:2] for entry in side].index((number, index))

    def part_matched(self, state, number, index, rank):
        operation = self.program.operations[number]
        part = operation.parts[index]
        key, place = self.place(state, number, index, rank)
        sends, receives = state[key]
        if not part.send:
            return place < len(sends)
        if place < len(receives):
            return True
        if part.peer == rank:
            return False
        comm = self.program.comms[operation.comm]
        unmatched = sends[len(receives) : place + 1]
        size = sum(self.program.operations[other].parts[its].bytes for other, its, _ in unmatched)
        return len(unmatched) <= comm.eager_messages or 0 < comm.eager_bytes >= size

    def group_matched(self, state, stream):
        number = state["items", stream][0][0]
        rank = self.program.streams[stream][0]
        parts = range(len(self.program.operations[number].parts))
        return all(self.part_matched(state, number, index, rank) for index in parts)

    def finish_group(self, state, stream):
        number = state["items", stream][0][0]
        rank = self.program.streams[stream][0]
        operation = self.program.operations[number]
        comm = self.program.comms[operation.comm]
        for index, part in enumerate(operation.parts):
            key, place = self.place(state, number, index, rank)
            sends, receives = state[key]
            if not part.send:
                state["carries", stream] |= sends[place][2]
            elif not comm.eager_messages and not comm.eager_bytes:
                state["carries", stream] |= receives[place][2]
        self.finish(state, stream)

    # ---- section 8: time (times.py) ------------------------------------------------------------

    def thread_order(self):
        """The threads in the order of their numbers."""
        return range(len(self.program.threads))

    def note_iterations(self, before, after, now, iterations):
        """Notes which iterations a step admits, and which are over with it: in pipelines."""

    # ---- section 2: the steps of all agents ----------------------------------------------------

    def carry_out(self, state, number, row):
        return getattr(self, "do_" + self.program.operations[number].kind)(state, number, row)

    def operations_of(self, state, thread):
        """The list of a thread."""
        return self.program.threads[thread][1]

    def next_operation(self, state, thread):
        """The number of the operation that a thread is at, or None."""
        operations = self.operations_of(state, thread)
        position = state["position", thread]
        return operations[position] if position < len(operations) else None

    def step_thread(self, state, thread):
        """One step of a thread, done to `state`; False where it has none."""
        operations = self.operations_of(state, thread)
        position = state["position", thread]
        if position == len(operations):
            return False
        done = self.carry_out(state, operations[position], ("knows", thread))
        otherwise = self.program.operations[operations[position]].otherwise
        if done == DONE:
            self.go_on(state, thread, 1)
        elif done == BLOCKED and otherwise:
            self.go_on(state, thread, otherwise)
            return True
        return done != BLOCKED

    def past_sync(self, state, thread):
        """The copy of pageable memory is back without a wait."""
        operations = self.operations_of(state, thread)
        position = state["position", thread]
        if position == len(operations):
            return False
        if self.program.operations[operations[position]].kind != "staged":
            return False
        self.go_on(state, thread, 2)
        return True

    def step_stream(self, state, stream):
        """Likewise; "mismatch" where the step is one."""
        if not state["items", stream]:
            return False
        if not state["running", stream]:
            if not self.can_start(state, stream):
                return False
            return "mismatch" if self.begin(state, stream) else True
        number = state["items", stream][0][0]
        operation, rank = self.program.operations[number], self.program.streams[stream][0]
        if self.is_aborted(state, operation, rank):
            state["collective", operation.comm, rank] = None
            self.finish(state, stream)
            return True
        if operation.kind == "collective":
            return False
        if operation.kind == "group":
            if not self.group_matched(state, stream):
                return False
            self.finish_group(state, stream)
            return True
        position = state["body", stream]
        if position < len(operation.body):
            state["body", stream] += 1
            return self.carry_out(state, operation.body[position], ("carries", stream)) != BLOCKED
        self.finish(state, stream)
        return True

    def step_comm(self, state, comm):
        members = self.program.comms[comm].members
        if any(
            state["collective", comm, member] is None or state["aborted", comm, member]
            for member in members
        ):
            return False
        self.complete_collective(state, comm)
        return True

    def agents(self):
        """All that may step, each with the function that does it."""
        program = self.program
        kinds = {operation.kind for operation in program.operations}
        agents = [(self.step_thread, thread) for thread in range(len(program.threads))]
        if "staged" in kinds:
            agents += [(self.past_sync, thread) for thread in range(len(program.threads))]
        if "choose" in kinds:
            agents += [(self.other_branch, thread) for thread in range(len(program.threads))]
        agents += [(self.step_stream, stream) for stream in range(len(program.streams))]
        return agents + [(self.step_comm, comm) for comm in range(len(program.comms))]

    def after(self, state, agents):
        """The states behind a step of each of them that has one, with whether that step is a mismatch."""
        for step, agent in agents:
            after = dict(state)
            taken = step(after, agent)
            if taken:
                self.settle(after)
                self.check_bound(after)
                yield after, taken == "mismatch"

    def steps(self, state):
        """The states that one step leads to, each with whether that step is a mismatch."""
        return self.after(state, self.agents())

    def any_step(self, state, draw):
        """One of them, or None."""
        agents = self.agents()
        draw.shuffle(agents)
        return next(self.after(state, agents), None)

# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages: a plan of which one thing fails.

Written from doc/semantics.md, sections 4 (Failures) and 9 (`faults`). It shares no code with the
program. `with_faults(Machine)` is the machine of steps.py or pipeline.py, in which one fault may
happen at any moment and watchdogs act. What is read and written does not matter here and is
left out of the state.
"""

WOKEN = ("await", "acquire", "ticket", "lock", "put", "get")
WORK = ("compute", "kernel", "collective", "group", "callback", "alloc", "write", "wait_flag")


def with_faults(base):
    """A class of machines with the faults of a plan, by the `on_failure` of its form."""

    class Faulty(base):
        def __init__(self, plan, *arguments, usual):
            super().__init__(*arguments)
            self.rule = plan.get("on_failure", usual)
            self.drivers = plan.get("ranks", 1) if "schedule" in plan else 0
            limits = plan.get("machine", {}).get("timeout", {})
            names = self.program.comm_names
            self.limited = [names.index(name) for name in limits]
            used = {operation.comm for operation in self.program.operations}
            self.watched = [
                (number, comm.members)
                for number, comm in enumerate(self.program.comms)
                if number in used and len(comm.members) > 1
            ]
            self.early = (
                {}
            )  # (rank, iteration): its driver's list and rounds, if its data end there
            for rank in range(self.drivers):
                if any(
                    rank in comm.members for comm in self.program.comms if len(comm.members) > 1
                ):
                    self.shorten(rank)

        def shorten(self, rank):
            pipeline = self.pipeline
            whole = pipeline.batches[rank]
            for iteration in range(whole):
                pipeline.batches[rank] = iteration
                rounds = pipeline.rounds(rank) if pipeline.by_turn else []
                self.early[rank, iteration] = pipeline.driver_operations(rank), rounds
            pipeline.batches[rank] = whole

        def start(self):
            state = super().start()
            state["fault"] = False
            for thread in range(len(self.program.threads)):
                state["over", thread] = False
            for rank in range(self.program.ranks):
                state["stopped", rank] = state["dead", rank] = False
                state["early", rank] = None  # how many iterations it has then
                state["aborting", rank] = False  # a watchdog that waits for the device
            return state

        # ---- what does not matter here ---------------------------------------------------------

        def access(self, state, operation, row):
            pass

        def violate(self, state, what):
            pass

        def check_bound(self, state):
            pass

        # ---- agents ----------------------------------------------------------------------------

        def operations_of(self, state, thread):
            early = state["early", thread] if thread < self.drivers else None
            return (
                super().operations_of(state, thread)
                if early is None
                else self.early[thread, early][0]
            )

        def rounds_of(self, state, rank):
            early = state["early", rank]
            return super().rounds_of(state, rank) if early is None else self.early[rank, early][1]

        def rests(self, state, thread):
            return state["over", thread] or state["dead", self.program.threads[thread][0]]

        def step_thread(self, state, thread):
            rank, number = self.program.threads[thread][0], self.next_operation(state, thread)
            if self.rests(state, thread):
                return False
            if not state["stopped", rank]:
                return super().step_thread(state, thread)
            if number is None:
                return False  # a worker starts no later instance
            if thread < self.drivers or self.program.operations[number].kind in WOKEN:
                state["over", thread] = True
                return True
            return super().step_thread(state, thread)

        def past_sync(self, state, thread):
            return not self.rests(state, thread) and super().past_sync(state, thread)

        def other_branch(self, state, thread):
            return not self.rests(state, thread) and super().other_branch(state, thread)

        def in_body(self, state, stream):
            """The operation that the callback of a stream is at, or None."""
            if not state["items", stream] or not state["running", stream]:
                return None
            body = self.program.operations[state["items", stream][0][0]].body
            position = state["body", stream]
            return self.program.operations[body[position]] if position < len(body) else None

        def step_stream(self, state, stream):
            rank, inside = self.program.streams[stream][0], self.in_body(state, stream)
            if state["dead", rank]:
                return False
            if state["stopped", rank] and inside and inside.kind in WOKEN:
                self.leave_body(state, stream)
                return True
            taken = super().step_stream(state, stream)
            return taken and (bool(taken) if state["fault"] else taken)

        def leave_body(self, state, stream):
            """The callback returns to its stream."""
            state["body", stream] = len(self.program.operations[state["items", stream][0][0]].body)

        def step_comm(self, state, comm):
            at = [state["collective", comm, member] for member in self.program.comms[comm].members]
            if None in at or len({self.program.operations[number].match for number in at}) > 1:
                return False
            return super().step_comm(state, comm)

        def steps(self, state):
            yield from super().steps(state)
            for happens in [
                *self.watchdogs(state),
                *([] if state["fault"] or self.calm else self.faults(state)),
            ]:
                after = dict(state)
                happens(after)
                self.settle(after)
                yield after, False

        def any_step(self, state, draw):
            following = list(self.steps(state))
            return draw.choice(following) if following else None

        # ---- faults ----------------------------------------------------------------------------

        def faults(self, state):
            for thread in range(len(self.program.threads)):
                if thread < self.drivers:
                    yield from self.data_end(state, thread)
                elif self.is_work(self.operation_at(state, thread)):
                    yield lambda after, thread=thread: self.fail_thread(after, thread)
            for stream in range(len(self.program.streams)):
                if self.is_work(self.in_body(state, stream)):
                    yield lambda after, stream=stream: self.fail_callback(after, stream)
            if self.program.ranks > 1:
                for rank in range(self.program.ranks):
                    yield lambda after, rank=rank: self.die(after, rank)
            for comm in self.limited:
                for rank in self.program.comms[comm].members:
                    if len(self.program.comms[comm].members) > 1 and state["issued", comm, rank]:
                        yield lambda after, comm=comm, rank=rank: self.exceed(after, comm, rank)

        def operation_at(self, state, thread):
            number = self.next_operation(state, thread)
            return None if number is None else self.program.operations[number]

        def is_work(self, operation):
            if operation is None:
                return False
            return operation.kind in WORK or (operation.kind == "nothing" and operation.time > 0)

        def fail_thread(self, after, thread):
            after["fault"] = after["over", thread] = True
            if self.rule != "none":
                self.stop(after, self.program.threads[thread][0])

        def fail_callback(self, after, stream):
            after["fault"] = True
            self.leave_body(after, stream)
            if self.rule != "none":
                self.stop(after, self.program.streams[stream][0])

        def stop(self, after, rank):
            after["stopped", rank] = not after["dead", rank]

        def die(self, after, rank):
            after["fault"] = after["dead", rank] = True

        def exceed(self, after, comm, rank):
            after["fault"] = True
            if self.rule in ("none", "wake"):
                self.die(after, rank)
            else:
                self.abort(after, comm, rank)
                after["aborting", rank] = self.rule == "abort"

        def data_end(self, state, rank):
            """The driver is about to admit an iteration."""
            operation = self.operation_at(state, rank)
            if operation is None or operation.kind not in ("enqueue", "admit"):
                return
            iteration = state["admitted", rank]
            last = operation.object - 1 if operation.kind == "enqueue" else operation.object
            if iteration > last or (rank, iteration) not in self.early:
                return
            if operation.kind == "admit" or self.has_room(state, rank, last):
                yield lambda after: self.end_early(after, rank, iteration)

        def end_early(self, after, rank, iteration):
            after["fault"], after["early", rank] = True, iteration
            if self.pipeline.by_turn:  # turns of iterations that are not there are passed
                for number, instance in enumerate(self.instances):
                    if instance.rank == rank and instance.iteration < iteration:
                        self.fire(after, number)

        # ---- watchdogs -------------------------------------------------------------------------

        def watchdogs(self, state):
            if self.rule not in ("abort", "group_abort") or not state["fault"]:
                return
            for comm, members in self.watched:
                reason = any(
                    state["stopped", rank]
                    or state["dead", rank]
                    or state["early", rank] is not None
                    for rank in members
                )
                left = [
                    rank
                    for rank in members
                    if not state["aborted", comm, rank] and not state["dead", rank]
                ]
                if not reason or not left:
                    continue
                if self.rule == "group_abort":
                    yield lambda after, comm=comm, members=members: self.abort(
                        after, comm, *members
                    )
                for rank in left if self.rule == "abort" else []:
                    if not state["aborting", rank]:
                        yield lambda after, comm=comm, rank=rank: self.abort_one(after, comm, rank)
            for rank in range(self.program.ranks):
                if (
                    state["aborting", rank]
                    and not state["dead", rank]
                    and self.is_idle(state, rank)
                ):
                    yield lambda after, rank=rank: after.update({("aborting", rank): False})

        def is_idle(self, state, rank):
            streams = enumerate(self.program.streams)
            return not any(state["items", stream] for stream, name in streams if name[0] == rank)

        def abort(self, after, comm, *ranks):
            for rank in ranks:
                self.abort_member(after, comm, rank)
                self.stop(after, rank)

        def abort_one(self, after, comm, rank):
            self.abort(after, comm, rank)
            after["aborting", rank] = True

        # ---- section 9 -------------------------------------------------------------------------

        def end(self, state):
            """Whether a thread of a living rank is blocked after a fault."""
            if not state["fault"]:
                return "no fault"
            return "faults" if self.is_blocked(state) else None

        def is_blocked(self, state):
            for thread in range(len(self.program.threads)):
                if not self.rests(state, thread) and self.next_operation(state, thread) is not None:
                    return True
                waits = thread >= self.drivers > 0 and state["queue of", thread]
                rank = self.program.threads[thread][0]
                if waits and not self.rests(state, thread) and not state["stopped", rank]:
                    return True
            for stream, (rank, _) in enumerate(self.program.streams):
                if not state["dead", rank] and self.in_body(state, stream):
                    return True
            return any(
                state["aborting", rank] and not state["dead", rank]
                for rank in range(self.program.ranks)
            )

    return Faulty

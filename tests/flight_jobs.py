#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random jobs, their dumps of the flight recorder, and what becomes of them, for t_flight.sh.

A job is a program of collectives and messages that is right for all ranks; then one rank does something else: a call
left out, made twice, of another size, kind or group, two calls in the other order, a batch taken apart, or it comes no
further. An explorer of its own, which knows nothing of swsim, tells what becomes of the job under a hypothesis. The
dumps are written as PyTorch does, versions 2.3 to 2.10, as pickle or JSON, and `swsim import` and `swsim verify` must
come to the same verdict and name that rank.

    flight_jobs.py SWSIM FOLDER SEED COUNT
"""
import json
import os
import pickle
import random
import struct
import subprocess
import sys

BYTES = {"Float": 4, "Half": 2, "BFloat16": 2, "Double": 8, "Long": 8, "Byte": 1}
COLLECTIVES = ["all_reduce", "_all_gather_base", "all_gather", "_reduce_scatter_base", "broadcast", "all_to_all",
               "reduce", "gather", "scatter", "all_reduce_barrier"]
UNSIZED = {"all_to_all", "scatter"}
HYPOTHESES = [("async", []), ("waits", ["--host-waits"]), ("order", ["--launch-order"]), ("slots", ["--sm-slots=1"]),
              ("waits and slots", ["--host-waits", "--sm-slots=1"])]


# ---- jobs -----------------------------------------------------------------------------------------

class Group:
    def __init__(self, name, ranks):
        self.name, self.ranks = name, ranks


class Call:
    """parts: (name, numel) of a collective, ("send" or "recv", peer, numel) of a message."""

    def __init__(self, group, parts, dtype, batch=False):
        self.group, self.parts, self.dtype, self.batch = group, parts, dtype, batch

    def is_message(self):
        return self.parts[0][0] in ("send", "recv")

    def signature(self):
        return [(name, 0 if name in UNSIZED else numel * BYTES[self.dtype]) for name, numel in self.parts]

    def copy(self):
        return Call(self.group, list(self.parts), self.dtype, self.batch)


def make_groups(rng, world):
    groups = [Group("0", list(range(world)))]
    for number in range(rng.randrange(3)):
        name = rng.choice([str(number + 1), "%016x" % rng.getrandbits(64)])
        ranks = sorted(rng.sample(range(world), rng.randrange(2, world + 1)))
        groups.append(Group(name, ranks))
        rest = [r for r in range(world) if r not in ranks]
        if rest and rng.random() < 0.5:  # another one of this name
            groups.append(Group(name, rest))
    return groups


def add_ring(rng, programs, group, dtype, numel, kind):
    ranks = group.ranks
    for place, rank in enumerate(ranks):
        after, before = ranks[(place + 1) % len(ranks)], ranks[place - 1]
        parts = [("send", after, numel), ("recv", before, numel)]
        if kind == "batch":
            rng.shuffle(parts)
            programs[rank].append(Call(group, parts, dtype, True))
        else:
            for part in parts if place % 2 == 0 else parts[::-1]:
                programs[rank].append(Call(group, [part], dtype))


def add_step(rng, programs, groups):
    group = rng.choice(groups)
    dtype, numel = rng.choice(list(BYTES)), rng.choice([1, 8, 300, 70000])
    kind = rng.choice(["collective"] * 5 + ["collectives", "pair", "batch", "ring"])
    if kind == "collective" or len(group.ranks) < 2:
        name = rng.choice(COLLECTIVES)
        for rank in group.ranks:
            programs[rank].append(Call(group, [(name, numel)], dtype))
    elif kind == "collectives":
        name = rng.choice(["_reduce_scatter_base", "_all_gather_base", "all_reduce"])
        parts = [(name, numel + k) for k in range(rng.randrange(2, 4))]
        for rank in group.ranks:
            programs[rank].append(Call(group, parts, dtype, True))
    elif kind == "pair":
        source, target = rng.sample(group.ranks, 2)
        programs[source].append(Call(group, [("send", target, numel)], dtype))
        programs[target].append(Call(group, [("recv", source, numel)], dtype))
    else:
        add_ring(rng, programs, group, dtype, numel, kind)


def mutate(rng, job):
    """What one rank does otherwise; its rank and a word for it."""
    rank = rng.randrange(job.world)
    program = job.programs[rank]
    job.changed_group = None
    word = rng.choice(["nothing", "drop", "drop", "twice", "swap", "swap", "size", "kind", "group", "apart", "cut"])
    if len(program) < 2 or word == "nothing":
        return rank, "nothing"
    at = rng.randrange(len(program) - 1)
    call = program[at] = program[at].copy()
    job.changed_group = None if call.is_message() else call.group
    if word == "drop":
        del program[at]
    elif word == "twice":
        program.insert(at, call)
    elif word == "swap":
        program[at], program[at + 1] = program[at + 1], program[at]
    elif word == "size":
        call.parts = [part[:-1] + (part[-1] * 2,) for part in call.parts]
    elif word == "kind" and not call.is_message():
        name = rng.choice([name for name in COLLECTIVES if name != call.parts[0][0]])
        call.parts = [(name, numel) for _, numel in call.parts]
    elif word == "group" and not call.is_message():
        call.group = rng.choice([group for group in job.groups if rank in group.ranks])
    elif word == "apart" and call.batch:
        program[at:at + 1] = [Call(call.group, [part], call.dtype) for part in call.parts]
    elif word == "cut":
        del program[at:]
    return rank, word


class Job:
    def __init__(self, rng):
        self.world = rng.randrange(2, 6)
        self.groups = make_groups(rng, self.world)
        self.programs = [[] for _ in range(self.world)]
        for _ in range(rng.randrange(2, 9)):
            add_step(rng, self.programs, self.groups)
        self.culprit, self.mutation = mutate(rng, self)


# ---- what becomes of a job ------------------------------------------------------------------------

class Run:
    """The job explored: every call is pushed to the stream of its group, which does one at a time."""

    def __init__(self, programs, ranks, waits=False, order=False, slots=0):
        self.ranks, self.waits, self.order, self.slots = ranks, waits, order, slots
        self.programs = {}
        for rank in ranks:
            self.programs[rank] = []
            for call in programs[rank]:
                call = call.copy()
                if call.is_message():
                    call.parts = [part for part in call.parts if part[1] in ranks]
                if call.parts:
                    self.programs[rank].append(call)

    def head(self, state, rank, group):
        """The index of the oldest call of a group that is pushed and not over; None."""
        pushed, over, _ = state[rank]
        for index in range(pushed):
            if index not in over and self.programs[rank][index].group is group:
                return index
        return None

    def started(self, state, rank, group):
        index = self.head(state, rank, group)
        return index if index is not None and index in state[rank][2] else None

    def arrived(self, state, group, source, target, word):
        """The sizes of the messages of a channel whose call has started, in order."""
        rank, peer = (source, target) if word == "send" else (target, source)
        found = []
        for index, call in enumerate(self.programs[rank]):
            if call.group is group and call.is_message() and (index in state[rank][1] or index in state[rank][2]):
                found += [part[2] * BYTES[call.dtype] for part in call.parts if part[0] == word and part[1] == peer]
        return found

    def is_mismatch(self, state):
        for group in {call.group for program in self.programs.values() for call in program}:
            members = [rank for rank in group.ranks if rank in self.ranks]
            heads = [(rank, self.started(state, rank, group)) for rank in members]
            calls = [self.programs[rank][index] for rank, index in heads if index is not None]
            signatures = [call.signature() for call in calls if not call.is_message()]
            if any(signature != signatures[0] for signature in signatures):
                return True
            for source in members:
                for target in members:
                    sent = self.arrived(state, group, source, target, "send")
                    received = self.arrived(state, group, source, target, "recv")
                    if any(a != b for a, b in zip(sent, received)):
                        return True
        return False

    def is_over(self, state, rank, index):
        call = self.programs[rank][index]
        if not call.is_message():
            members = [member for member in call.group.ranks if member in self.ranks]
            heads = [(member, self.started(state, member, call.group)) for member in members]
            return all(at is not None and not self.programs[member][at].is_message() for member, at in heads)
        for word, peer, _ in call.parts:
            before = [part for k, other in enumerate(self.programs[rank][:index + 1])
                      if other.group is call.group and other.is_message() for part in other.parts
                      if part[0] == word and part[1] == peer]
            source, target = (rank, peer) if word == "send" else (peer, rank)
            other = "recv" if word == "send" else "send"
            if len(self.arrived(state, call.group, source, target, other)) < len(before):
                return False
        return True

    def settle(self, state):
        """All pushes and ends that are possible; ends of a collective are one step of all members."""
        state = {rank: (pushed, set(over), set(begun)) for rank, (pushed, over, begun) in state.items()}
        moved = True
        while moved:
            moved = False
            if self.is_mismatch(state):
                return state
            for rank in self.ranks:
                pushed, over, begun = state[rank]
                if pushed < len(self.programs[rank]) and (not self.waits or len(over) == pushed):
                    state[rank] = (pushed + 1, over, begun)
                    moved = True
            ends = [(rank, index) for rank in self.ranks for index in state[rank][2] - state[rank][1]
                    if self.is_over(state, rank, index)]
            for rank, index in ends:
                state[rank][1].add(index)
                moved = True
            if not self.slots and not moved:
                for rank, index in self.starts(state)[:1]:
                    state[rank][2].add(index)
                    moved = True
        return state

    def starts(self, state):
        found = []
        for rank in self.ranks:
            pushed, over, begun = state[rank]
            if self.slots and len(begun - over) >= self.slots:
                continue
            for group in {call.group for call in self.programs[rank]}:
                index = self.head(state, rank, group)
                if index is None or index in begun or (self.order and not begun >= set(range(index))):
                    continue
                found.append((rank, index))
        return sorted(found)

    def outcomes(self, most=3000):
        """The outcomes of all orders, and a last state; None where there are too many."""
        first = self.settle({rank: (0, set(), set()) for rank in self.ranks})
        todo, seen, found, last = [first], set(), set(), first
        while todo:
            state = todo.pop()
            key = tuple((state[r][0], frozenset(state[r][1]), frozenset(state[r][2])) for r in self.ranks)
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > most:
                return None, first
            if self.is_mismatch(state):
                found.add("mismatch")
                last = state
                continue
            starts = self.starts(state)
            for rank, index in starts:
                after = {r: (p, set(o), set(b)) for r, (p, o, b) in state.items()}
                after[rank][2].add(index)
                todo.append(self.settle(after))
            if not starts:
                done = all(len(state[r][1]) == len(self.programs[r]) for r in self.ranks)
                found.add("done" if done else "deadlock")
                last = state
        return found, last


# ---- dumps ----------------------------------------------------------------------------------------

def state_word(state, rank, index):
    _, over, begun = state[rank]
    return "completed" if index in over else "started" if index in begun else "scheduled"


def sizes_of(job, call, name, numel, minor):
    scale = len(call.group.ranks)
    if name in ("all_to_all",) and minor < 4:
        return [], []
    if name in ("_all_gather_base", "all_gather", "gather"):
        return [[numel]], [[numel, scale]]
    if name in ("_reduce_scatter_base", "scatter"):
        return [[numel]], [[numel]]
    return [[numel]], [[numel]]


def write_entries(job, rank, calls, state, minor, is_json, open_end):
    """The entries of the calls that a rank has pushed. open_end: it is still in the last batch."""
    entries, collectives, messages = [], {}, {}

    def add(call, name, inputs, outputs, word):
        key = call.group
        entry = {"record_id": len(entries), "pg_id": job.groups.index(call.group),
                 "process_group": [call.group.name, "desc"] if is_json else (call.group.name, "desc"),
                 "collective_seq_id": collectives.get(key, 0), "p2p_seq_id": messages.get(key, 0),
                 "op_id": len(entries) + 1, "profiling_name": "nccl:" + name,
                 "time_created_ns": 1730000000000000000 + len(entries) * 1000,
                 "input_sizes": inputs, "input_dtypes": [call.dtype] * len(inputs),
                 "output_sizes": outputs, "output_dtypes": [call.dtype] * len(outputs), "state": word,
                 "time_discovered_started_ns": 0 if is_json else None,
                 "time_discovered_completed_ns": 0 if is_json else None,
                 "retired": word == "completed", "timeout_ms": 600000, "is_p2p": call.is_message()}
        if word == "completed":
            entry["time_discovered_completed_ns"] = entry["time_created_ns"] + 500
            entry["duration_ms"] = 0.25
        if not is_json:
            entry["frames"] = [{"name": "step", "filename": "/home/user/train.py", "line": 10 + len(entries)}]
        if minor >= 10:
            entry["thread_id"], entry["thread_name"] = "140000", "pt_main_thread"
        entries.append(entry)

    for index, call in enumerate(calls):
        counter = messages if call.is_message() else collectives
        counter[call.group] = counter.get(call.group, 0) + 1
        word = state_word(state, rank, index)
        last_open = open_end and index == len(calls) - 1
        if not call.is_message() and call.batch and minor < 7:
            inputs = [[numel] for _, numel in call.parts]
            add(call, call.parts[0][0] + "_coalesced", inputs, inputs, word)
            continue
        for part in call.parts:
            if call.is_message():
                arrow = "->" if part[0] == "send" else "<-"
                here, there = call.group.ranks.index(rank), call.group.ranks.index(part[1])
                name = "%s %d%s%d" % (part[0], here, arrow, there)
                inputs = outputs = [[part[2]]]
            else:
                name = part[0]
                inputs, outputs = sizes_of(job, call, name, part[1], minor)
            add(call, name, inputs, outputs, "scheduled" if call.batch else word)
        if call.batch and not last_open:
            add(call, "coalesced" if call.is_message() or minor % 2 else "allreduce_coalesced", [], [], word)
    return entries


def write_pickle(value):
    """As PyTorch's own pickler: protocol 2, texts and dicts kept in the memo when they come again."""
    out, memo = [b"\x80\x02"], {}

    def text(word):
        if word in memo:
            place = memo[word]
            out.append(b"h" + bytes([place]) if place < 256 else b"j" + struct.pack("<I", place))
            return
        raw = word.encode()
        out.append(b"X" + struct.pack("<I", len(raw)) + raw)
        place = memo[word] = len(memo)
        out.append(b"q" + bytes([place]) if place < 256 else b"r" + struct.pack("<I", place))

    def put(item):
        if item is None:
            out.append(b"N")
        elif isinstance(item, bool):
            out.append(b"\x88" if item else b"\x89")
        elif isinstance(item, int):
            if 0 <= item < 256:
                out.append(b"K" + bytes([item]))
            elif 0 <= item < 65536:
                out.append(b"M" + struct.pack("<H", item))
            elif -2 ** 31 <= item < 2 ** 31:
                out.append(b"J" + struct.pack("<i", item))
            else:
                out.append(b"\x8a\x08" + struct.pack("<q", item))
        elif isinstance(item, float):
            out.append(b"G" + struct.pack(">d", item))
        elif isinstance(item, str):
            text(item)
        elif isinstance(item, dict):
            out.append(b"}(")
            for key, member in item.items():
                put(key)
                put(member)
            out.append(b"u")
        elif isinstance(item, tuple):
            out.append(b"(")
            for member in item:
                put(member)
            out.append(b"t")
        else:
            out.append(b"](")
            for member in item:
                put(member)
            out.append(b"e")

    put(value)
    return b"".join(out) + b"."


def write_dump(rng, job, rank, entries, minor, is_json, folder):
    mine = [group for group in job.groups if rank in group.ranks]
    dump = {"version": "2.%d" % minor, "comm_lib_version" if minor >= 10 else "nccl_version": "2.21.5",
            "pg_config": {group.name: {"name": group.name, "desc": "desc", "ranks": str(group.ranks)} for group in mine},
            "pg_status": {str(job.groups.index(group)): {
                "last_%s_collective" % word: "3" if is_json else 3 for word in ("enqueued", "started", "completed")}
                for group in mine}}
    if entries or not is_json:
        dump["entries"] = entries
    prefix = "comm_lib_trace_rank_" if minor >= 10 else "nccl_trace_rank_"
    path = os.path.join(folder, prefix + str(rank))
    with open(path, "wb") as out:
        if is_json:
            out.write(json.dumps(dump).encode())
        else:
            protocol = rng.choice([0, 0, 0, 2, 4, 5])
            out.write(pickle.dumps(dump, protocol) if protocol else write_pickle(dump))
    return path


# ---- one case -------------------------------------------------------------------------------------

class Case:
    """A job, the hypothesis it ran under, and its dumps."""

    def __init__(self, seed, folder):
        self.rng = rng = random.Random(seed)
        self.job = job = Job(rng)
        self.minor, self.is_json = rng.randrange(3, 11), rng.random() < 0.5
        self.waits = rng.random() < 0.3
        everyone = list(range(job.world))
        self.ranks = [r for r in everyone if r == 0 or rng.random() < 0.6] if rng.random() < 0.2 else everyone
        outcomes, state = Run(job.programs, everyone, self.waits).outcomes()
        self.ran = outcomes
        self.calls = {r: job.programs[r][:state[r][0]] for r in everyone}
        self.open_rank = self.leave_open(state)
        self.entries = {r: write_entries(job, r, self.calls[r], state, self.minor, self.is_json, r == self.open_rank)
                        for r in everyone}
        if self.open_rank is not None:
            self.calls[self.open_rank] = self.calls[self.open_rank][:-1]
        self.lost = self.lose(state) if rng.random() < 0.3 and self.open_rank is None else 0
        self.paths = [write_dump(rng, job, r, self.entries[r], self.minor, self.is_json, folder) for r in self.ranks]
        rng.shuffle(self.paths)

    def leave_open(self, state):
        """A rank whose last call is a batch that it has not ended, where nothing of it is over."""
        if self.rng.random() < 0.3:
            for rank, calls in self.calls.items():
                if calls and calls[-1].batch and len(calls[-1].parts) > 1 and len(calls) - 1 not in state[rank][1] \
                        and (calls[-1].is_message() or self.minor >= 7):
                    return rank
        return None

    def lose(self, state):
        """Rings lose the oldest entries, of calls that are over on all ranks."""
        lost = 0
        for rank, entries in self.entries.items():
            over = 0
            while over < len(entries) and entries[over]["state"] == "completed":
                over += 1
            if self.rng.random() < 0.6 and over > 0 and over < len(entries):
                lost += (drop := self.rng.randrange(over + 1))
                self.entries[rank] = entries[drop:]
        return lost

    def unseen(self):
        """The ranks without a dump that the others' calls name."""
        called = {r for rank in self.ranks for call in self.calls[rank] for r in call.group.ranks}
        return called - set(self.ranks)

    def expected(self, name):
        if self.lost and name != ("waits" if self.waits else "async"):
            return None
        outcomes, _ = Run(self.calls, self.ranks, waits="waits" in name, order=name == "order",
                          slots=1 if "slots" in name else 0).outcomes()
        return outcomes


def ask(swsim, case, folder, options):
    plan = os.path.join(folder, "plan.yaml")
    done = subprocess.run([swsim, "import", *options, "-o", plan, *case.paths], capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr
    verdict = subprocess.run([swsim, "verify", "--json", "--no-fix", plan], capture_output=True, text=True)
    return (json.loads(verdict.stdout) if verdict.stdout else None), done.stderr + verdict.stderr


def agrees(outcomes, verdict):
    properties = verdict["properties"]
    if outcomes == {"done"}:
        return verdict["verdict"] == "proved"
    if len(outcomes) == 1:
        return properties[next(iter(outcomes))] == "always"
    if outcomes == {"done", "deadlock"}:
        return properties["deadlock"] == "some"
    return verdict["verdict"] == "violated"


def names_rank(verdict, rank):
    """Does one wait for this rank, or is it one of the two whose calls differ?"""
    if verdict["violation"] == "mismatch":
        starts = [step for step in verdict["witness"] if "starts" in step["action"]]
        return rank in [step["rank"] for step in starts]
    return any("rank %d " % rank in agent["agent"] + " waits: " + agent["waits_for"] for agent in verdict["blocked"])


def is_odd(case):
    """Has one rank of three or more another collective than the others, or none? Then there is one repair."""
    return case.job.mutation in ("drop", "size", "kind") and len(case.ranks) == case.job.world and not case.lost and \
        not case.waits and case.open_rank is None and case.job.changed_group is not None and \
        len(case.job.changed_group.ranks) > 2


def repaired_rank(swsim, folder):
    """The rank that the proved repair changes; None: there is none, or one of the machine."""
    done = subprocess.run([swsim, "verify", "--json", os.path.join(folder, "plan.yaml")], capture_output=True, text=True)
    fix = json.loads(done.stdout)["fix"]
    words = fix["change"].split() if fix and fix["proved"] else []
    return int(words[1]) if words[:1] == ["rank"] and fix["edits"] == 1 else None


def try_case(swsim, seed, folder, counts):
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))
    case = Case(seed, folder)
    if not case.paths or not any(case.entries[r] for r in case.ranks):
        return True
    for word, found in (("rings", case.lost), ("open batches", case.open_rank is not None),
                        ("without a rank", len(case.ranks) < case.job.world)):
        counts[word] = counts.get(word, 0) + bool(found)
    for name, options in HYPOTHESES:
        outcomes = case.expected(name)
        if outcomes is None:
            continue
        verdict, said = ask(swsim, case, folder, options)
        counts["asked"] += 1
        if "no dump, and all others" in said:  # an unseen rank is known not to have come
            outcomes = {"deadlock"}
        what = " or ".join(sorted(outcomes))
        counts[what] = counts.get(what, 0) + 1
        named = not case.unseen() or "no dump" in said
        if verdict is None or not agrees(outcomes, verdict) or not named or "hypotheses" not in said:
            print("seed %d, %s: expected %s, got %s" % (seed, name, what, verdict and verdict["properties"]))
            print("  %s of rank %d, version 2.%d, %s, lost %d, open %s, ranks %s" % (
                case.job.mutation, case.job.culprit, case.minor, "json" if case.is_json else "pickle", case.lost,
                case.open_rank, case.ranks))
            print("  " + said.strip())
            return False
        if outcomes in ({"deadlock"}, {"mismatch"}) and case.job.mutation != "nothing" and \
                case.open_rank is None and case.job.culprit in case.ranks:
            counts["culprits"] += 1
            named = names_rank(verdict, case.job.culprit)
            counts["named"] += named
            if name == "async" and is_odd(case):
                counts["odd"] += 1
                repaired = repaired_rank(swsim, folder)
                counts["repaired"] += repaired == case.job.culprit
                if repaired != case.job.culprit:
                    print("seed %d: %s of rank %d is repaired at %s" % (
                        seed, case.job.mutation, case.job.culprit, repaired))
            if not named:
                print("seed %d, %s: %s of rank %d is not named" % (seed, name, case.job.mutation, case.job.culprit))
    return True


def main():
    swsim, folder, seed, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    counts = {"asked": 0, "culprits": 0, "named": 0, "odd": 0, "repaired": 0}
    failures = 0
    for k in range(count):
        failures += not try_case(swsim, seed + k, folder, counts)
    print("seeds %d to %d: %s" % (seed, seed + count - 1, ", ".join("%s %d" % item for item in counts.items())))
    sys.exit(failures > 0 or counts["named"] < 0.95 * counts["culprits"] or counts["repaired"] < 0.5 * counts["odd"])


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""A second reading of the pages: rank programs (`programs:`) as host programs (host.py).

Written from doc/semantics.md, sections 6 (rank programs, sharded parameters) and 9 (what actions
read and write), and from swplan(5), RANK PROGRAMS. It shares no code with the program. It knows the
keys that generate.py writes, and refuses others: groups but tp and dp, `generate:`, costs and memory are
not read here.
"""

import re
from collections import namedtuple

from host import refuse_unknown

KEYS = set("swplan programs machine p2p fsdp copies fragment parallel".split())
GRID_KEYS = set("tp dp order grad_reduce ranks".split())
P2P_KEYS = set("fifo batch metadata bytes eager_messages".split())
PASSES = ("F", "B", "I", "W")
Action = namedtuple("Action", "stage kind microbatch")


class NotPlaced(Exception):
    """Lists that are refused: without a stage, or without messages and with an action that never gets its inputs."""


def read_actions(text):
    """The actions of a word: two of an OVERLAP_F_B."""
    both = re.fullmatch(r"\((.*);(.*)\)OVERLAP_F_B", text)
    words = both.groups() if both else [text]
    found = [re.fullmatch(r"(\d+)([A-Z_]*[A-Z])(\d*)", word).groups() for word in words]
    return tuple(Action(int(stage), kind, int(number or 0)) for stage, kind, number in found)


class RankPrograms:
    """The host program that the lists of a plan are."""

    def __init__(self, plan):
        refuse_unknown(plan, KEYS)
        self.p2p = plan.get("p2p", {})
        refuse_unknown(self.p2p, P2P_KEYS)
        self.plan = plan
        self.lists = [[read_actions(word) for word in text.split()] for text in plan["programs"]]
        self.rank_of = {
            action.stage: rank
            for rank, words in enumerate(self.lists)
            for word in words
            for action in word
        }
        self.stages = 1 + max(self.rank_of)
        if len(self.rank_of) < self.stages:
            raise NotPlaced
        self.copy = self.stages // plan.get("copies", 1)
        if not any("SEND" in action.kind or "RECV" in action.kind for action in self.all_actions()):
            self.add_messages()
        self.grid = plan.get("parallel", {})
        refuse_unknown(self.grid, GRID_KEYS)
        self.reduce = self.grid.get("grad_reduce", "none")
        self.sizes = {
            "tp": self.grid.get("tp", 1),
            "dp": self.grid.get("dp", 1),
            "pp": len(self.lists),
        }
        self.slots = {"sm": 1} if plan.get("machine", {}).get("sm_slots") else {}
        self.comms, self.threads = {}, {}

    def all_actions(self, rank=None):
        lists = self.lists if rank is None else [self.lists[rank]]
        return [action for words in lists for word in words for action in word]

    def before(self, stage):
        """The stage whose output this one takes, or None; `behind` is the opposite."""
        return stage - 1 if stage % self.copy else None

    def behind(self, stage):
        return stage + 1 if (stage + 1) % self.copy else None

    # ---- messages that are not in the lists ------------------------------------------------------

    def result(self, action):
        """The stage that needs what a pass makes, if it is on another rank, and the kind of message."""
        other = {"F": self.behind, "B": self.before, "I": self.before}.get(
            action.kind, lambda _: None
        )(action.stage)
        if other is None or self.rank_of[other] == self.rank_of[action.stage]:
            return None, None
        return other, "F" if action.kind == "F" else "B"

    def needs(self, action):
        """The passes of which any one must have been placed before, for each input."""
        stage, kind, number = action
        ends = []
        if kind == "F" and self.before(stage) is not None:
            ends.append((self.before(stage), "F"))
        if kind in ("B", "I") and self.behind(stage) is not None:
            ends.append((self.behind(stage), "BI"))
        return [[Action(other, one, number) for one in kinds] for other, kinds in ends]

    def add_messages(self):
        """Section 6: pass after pass over the ranks, each tries its next action."""
        left, placed = [list(words) for words in self.lists], set()
        lists = [[] for _ in self.lists]
        while any(left):
            went_on = False
            for rank, words in enumerate(left):
                if not words or not all(
                    any(one in placed or one in words[0] for one in need)
                    for action in words[0]
                    for need in self.needs(action)
                ):
                    continue
                went_on, word = True, words.pop(0)
                lists[rank].append(word)
                placed.update(word)
                for action in word:
                    other, kind = self.result(action)
                    if other is not None:
                        lists[rank].append(
                            (Action(action.stage, "SEND_" + kind, action.microbatch),)
                        )
                        to = lists[self.rank_of[other]]
                        to.append((Action(other, "RECV_" + kind, action.microbatch),))
            if not went_on:
                raise NotPlaced
        self.lists = lists

    # ---- groups ------------------------------------------------------------------------------------

    def replicas(self):
        """The places of a pipeline in the grid: (tp, dp); or its number among those of `fsdp:`."""
        if self.grid:
            return [(t, d) for t in range(self.sizes["tp"]) for d in range(self.sizes["dp"])]
        return range(self.plan.get("fsdp", {}).get("replicas", 1))

    def at(self, rank, replica):
        """The number of a rank of one of the pipelines."""
        if not self.grid:
            return rank + replica * len(self.lists)
        places, number, stride = {"tp": replica[0], "dp": replica[1], "pp": rank}, 0, 1
        for dimension in self.grid.get("order", "tp-cp-ep-dp-pp").split("-"):
            number += places.get(dimension, 0) * stride
            stride *= self.sizes.get(dimension, 1)
        return number

    def group(self, dimension):
        """The communicator of this rank whose members differ in that dimension only."""
        t, d = self.replica
        comm = f"tp {self.rank} {d}" if dimension == "tp" else f"dp {self.rank} {t}"
        places = [(n, d) if dimension == "tp" else (t, n) for n in range(self.sizes[dimension])]
        self.comms[comm] = [self.at(self.rank, place) for place in places]
        return comm

    def reduced_list(self, words):
        """The list with the reductions that `grad_reduce:` adds."""
        passes = [action for word in words for action in word if action.kind in ("B", "I", "W")]
        stages = sorted({action.stage for action in passes})
        reduces = {stage: (Action(stage, "REDUCE_GRAD", 0),) for stage in stages}
        if self.reduce == "none":
            return words
        if self.reduce == "end":
            return [*words, *reduces.values()]
        last = {
            action.stage: place
            for place, word in enumerate(words)
            for action in word
            if action.kind in ("B", "I", "W")
        }
        out = []
        for place, word in enumerate(words):
            out += [word, *(reduces[stage] for stage in stages if last.get(stage) == place)]
        waits = [(Action(stage, "WAIT_REDUCE_GRAD", 0),) for stage in stages]
        return out + (waits if self.reduce == "overlap" else [])

    # ---- a list as a thread ------------------------------------------------------------------------

    def lower_list(self, rank, replica):
        self.rank, self.replica, self.out = rank, replica, []
        self.named = set()  # the events that were recorded
        self.unshards, self.fresh = (
            {},
            {},
        )  # of a stage: how many, the event that its next pass awaits
        own = self.grid.get("ranks", {}).get(str(self.at(rank, replica)))
        words = self.lists[rank]
        if own:
            words = [read_actions(word) for word in own["program"].split()]
        words = self.reduced_list(words)
        mine = [action for word in words for action in word]
        self.gathered = {action.stage for action in mine if action.kind == "UNSHARD"}
        self.reduced = {action.stage for action in mine if action.kind == "REDUCE_GRAD"}
        batch = []
        for word in [*words, None]:
            message = word and re.match("SEND_|RECV_", word[0].kind)
            if batch and not (message and self.p2p.get("batch")):
                self.lower_messages(batch)
                batch = []
            if message:
                batch.append(word[0])
            elif word and word[0].kind in PASSES:
                self.lower_passes(word)
            elif word:
                getattr(self, "lower_" + word[0].kind.lower())(word[0])
        self.emit("sync", "device")
        if self.missing(mine):
            self.emit("compute", "the end", reads=["missing"])
        return self.out

    def emit(self, kind, name, **keys):
        self.out.append({kind: name, **keys})

    def record(self, event, stream):
        self.emit("record", event, stream=stream)
        self.named.add(event)

    def wait(self, event, stream):
        """For what the list names earlier."""
        if event in self.named:
            self.emit("wait", event, stream=stream)

    def accesses(self, action):
        """Section 9: what a pass reads and writes, and the messages whose receives it waits for."""
        stage, kind, number = action
        before, behind = self.before(stage), self.behind(stage)
        reads, writes, receives = [], [], []
        if before is not None:
            reads.append(f"act.{before}.{number}")
            receives.append(f"RECV_F.{stage}.{number}")
        if kind == "F":
            writes.append(f"act.{stage}.{number}")
        elif behind is not None:
            reads.append(f"grad.{behind}.{number}")
            receives.append(f"RECV_B.{stage}.{number}")
        if kind in ("B", "I"):
            reads.append(f"act.{stage}.{number}")
            writes += [f"grad.{stage}.{number}", f"left.{stage}.{number}"]
        if kind == "W":
            reads.append(f"left.{stage}.{number}")
        if kind in ("B", "W") and stage in self.reduced:
            writes.append(f"weight_gradient.{stage}.0")
        if stage in self.gathered:
            reads.append(f"parameters.{stage}.{max(0, self.unshards.get(stage, 0) - 1)}")
        return reads, writes, receives

    def lower_passes(self, word):
        """One pass, or two at once."""
        reads, writes = [], []
        for action in word:
            more, made, receives = self.accesses(action)
            reads, writes = reads + more, writes + made
            for event in receives:
                self.wait(event, "compute")
            self.wait(self.fresh.pop(action.stage, None), "compute")
        name = " ".join(f"{stage}{kind}{number}" for stage, kind, number in word)
        self.emit("launch", name, stream="compute", reads=reads, writes=writes, **self.slots)
        if self.sizes["tp"] > 1 and {action.kind for action in word} & {"F", "I", "B"}:
            where = {"comm": self.group("tp"), "stream": "compute", **self.slots}
            self.emit("collective", "tp of " + name, **where)
        for stage, kind, number in word:
            self.record(f"{kind}.{stage}.{number}", "compute")

    def message(self, action):
        """A part of a group, and its communicator, which is the name of its stream, too."""
        stage, kind, number = action
        sends, direction = kind.startswith("SEND"), kind[-1]
        to = stage + (1 if direction == "F" else -1) * (1 if sends else -1)
        other = self.rank_of[to]
        ends = (self.rank, other) if sends else (other, self.rank)
        comm = {
            "group": "pp",
            "pair": "pair {} {}".format(*sorted(ends)),
            "edge": "edge {} {}".format(*ends),
            "direction": direction,
        }[self.p2p.get("fifo", "group")]
        whole = self.p2p.get("fifo", "group") in ("group", "direction")
        at = [
            self.at(rank, self.replica)
            for rank in (range(len(self.lists)) if whole else sorted(ends))
        ]
        comm = f"{comm}@{self.replica}"
        self.comms[comm] = at
        tag = f"{direction}{number}@{to if sends else stage}"
        part = {"send" if sends else "recv": tag, "peer": self.at(other, self.replica)}
        if "bytes" in self.p2p:
            part["bytes"] = self.p2p["bytes"]
        return comm, part

    def lower_messages(self, actions):
        groups = {}
        for action in actions:
            comm, part = self.message(action)
            groups.setdefault(comm, []).append((action, part))
        for comm, parts in groups.items():
            reads, writes = [], []
            for (stage, kind, number), _ in parts:
                if kind == "SEND_F":
                    self.wait(f"F.{stage}.{number}", comm)
                if kind == "SEND_B":
                    self.wait(f"B.{stage}.{number}", comm)
                    self.wait(f"I.{stage}.{number}", comm)
                value = "act" if kind[-1] == "F" else "grad"
                if kind.startswith("SEND"):
                    reads.append(f"{value}.{stage}.{number}")
                writes.append(self.left_by(f"{kind}.{stage}.{number}"))
            where = {"comm": comm, "stream": comm, **self.slots}
            if self.p2p.get("metadata") == "each":
                told = [
                    {
                        key: f"{text}.meta" if key != "peer" else text
                        for key, text in part.items()
                        if key != "bytes"
                    }
                    for _, part in parts
                ]
                self.out.append({"group": [{**part, "bytes": "64B"} for part in told], **where})
            self.out.append(
                {"group": [part for _, part in parts], **where, "reads": reads, "writes": writes}
            )
            for (stage, kind, number), _ in parts:
                self.record(f"{kind}.{stage}.{number}", comm)

    def shared(self):
        """The ranks with the same stages in all replicas."""
        if self.grid:
            return self.group("dp")
        comm = f"fsdp.{self.rank}"
        self.comms[comm] = [self.at(self.rank, replica) for replica in self.replicas()]
        return comm

    def lower_unshard(self, action):
        stage = action.stage
        number = self.unshards[stage] = self.unshards.get(stage, 0) + 1
        memory = f"parameters.{stage}.{number - 1}"
        self.emit("alloc", memory, stream="fsdp")
        where = {"comm": self.shared(), "stream": "fsdp", **self.slots}
        self.emit("collective", f"unshard {stage}", op="all_gather", writes=[memory], **where)
        self.fresh[stage] = f"unsharded {stage}"
        self.record(self.fresh[stage], "fsdp")

    def lower_reshard(self, action):
        memory = f"parameters.{action.stage}.{self.unshards[action.stage] - 1}"
        self.emit("host", "1ns")
        self.emit("record_stream", memory, stream="compute")
        self.emit("free", memory)

    def lower_reduce_grad(self, action):
        """Behind the last backward pass of the stage that the list names before."""
        stage = action.stage
        stream = "fsdp"
        if self.grid:
            stream = "compute" if self.reduce in ("end", "stage") else "dp"
        self.wait(self.last_backward(stage), stream)
        where = {"comm": self.shared(), "stream": stream, **self.slots}
        self.emit(
            "collective",
            f"reduce {stage}",
            op="reduce_scatter",
            reads=[f"weight_gradient.{stage}.0"],
            writes=[self.left_by(f"REDUCE_GRAD.{stage}.0")],
            **where,
        )
        self.record(f"REDUCE_GRAD.{stage}.0", stream)

    def last_backward(self, stage):
        passes = [step["record"] for step in self.out if "record" in step]
        mine = [event for event in passes if re.fullmatch(rf"[BIW]\.{stage}\.\d+", event)]
        return mine[-1] if mine else None

    def lower_wait(self, action):
        """Stream `compute` waits, and reads what the message or reduction leaves."""
        event = action.kind[len("WAIT_") :] + f".{action.stage}.{action.microbatch}"
        self.wait(event, "compute")
        self.emit("launch", f"wait {event}", stream="compute", reads=[self.left_by(event)])

    @staticmethod
    def left_by(event):
        """The buffer of a message that came, or a name for what is done."""
        kind, stage, number = event.split(".")
        names = {
            "RECV_F": f"act.{int(stage) - 1}.{number}",
            "RECV_B": f"grad.{int(stage) + 1}.{number}",
        }
        return names.get(kind, f"done {event}")

    lower_wait_send_f = lower_wait_send_b = lower_wait_recv_f = lower_wait_recv_b = lower_wait
    lower_wait_reduce_grad = lower_wait

    def missing(self, mine):
        """Whether the training step needs a pass that the list has not, for each microbatch up to the last."""
        if self.plan.get("fragment"):
            return False
        actions = self.all_actions()
        backward = any(one.kind in ("B", "I") for one in actions)
        for stage in {one.stage for one in mine}:
            for number in range(1 + max(one.microbatch for one in actions)):
                has = {
                    one.kind for one in actions if (one.stage, one.microbatch) == (stage, number)
                }
                if (
                    "F" not in has
                    or (backward and not has & {"B", "I"})
                    or ("I" in has and "W" not in has)
                ):
                    return True
        return False

    def host_program(self):
        """The plan whose threads these are."""
        count, replicas = len(self.lists), self.replicas()
        for replica in replicas:
            for rank in range(count):
                self.threads[f"r{self.at(rank, replica)}.main"] = self.lower_list(rank, replica)
        machine = dict(self.plan.get("machine", {}))
        if "eager_messages" in self.p2p:
            machine["eager_messages"] = {
                comm: self.p2p["eager_messages"] for comm in self.comms if "@" in comm
            }
        return {
            "swplan": 1,
            "ranks": count * len(replicas),
            "comms": self.comms,
            "threads": self.threads,
            "machine": machine,
            "inputs": [],
        }


def lower_ranks(plan):
    """The host program of a plan's lists."""
    return RankPrograms(plan).host_program()

# SPDX-License-Identifier: Apache-2.0
# The messages of Megatron's schedules beside ours: its own loops run, one rank after the other, on stand-ins for the
# passes and for torch.distributed, and each send, receive and wait is written down with the message it is about.
import os, types
from unittest import mock

from tap import check, done, needs, swsim

needs("torch", "megatron.core.pipeline_parallel.schedules")
import importlib.metadata, torch
from megatron.core.enums import ModelType
from megatron.core.pipeline_parallel import p2p_communication, schedules

LONG = "SWSIM_LONG" in os.environ
RANKS = (2, 3, 4, 5, 8) if LONG else (2, 3, 4)
VERSION = importlib.metadata.version("megatron-core")
WORLD = "world"


# A tensor that knows its pass: a plain number would do if Megatron did not look at `_base`.
class Message:
    _base = None

    def __init__(self):
        self.about = None


class Group:
    def __init__(self, ranks, rank):
        self.ranks, self.own = ranks, rank

    def size(self):
        return self.ranks

    def rank(self):
        return self.own


class Config:
    def __init__(self, **given):
        self.__dict__.update(given)

    def __getattr__(self, name):
        return None


# One rank's loop, as words in our text. `words` of a receive are filled in when a pass takes what it brought.
class Rank:
    def __init__(self, ranks, rank, chunks, microbatches, group, order, moe, forward_only):
        self.ranks, self.rank, self.chunks, self.microbatches = ranks, rank, chunks, microbatches
        self.list, self.done, self.groups = [], {}, set()
        self.forward_only = forward_only
        self.config = Config(
            batch_p2p_comm=order == "batch", overlap_p2p_comm=order.startswith("overlap"),
            overlap_p2p_comm_warmup_flush=order.endswith("flush"), pipeline_dtype=torch.float32, hidden_size=1,
            microbatch_group_size_per_vp_stage=group, overlap_moe_expert_parallel_comm=moe, fine_grained_activation_offloading=False,
            virtual_pipeline_model_parallel_size=chunks if chunks > 1 else None, cuda_graph_scope=[],
            cuda_graph_impl="none", variable_seq_lengths=False)

    def note(self, *word):
        self.list.append(list(word))
        return self.list[-1]

    # ---- torch.distributed
    def move(self, kind, tensor, peer, group):
        message = [kind, tensor]
        self.groups.add((kind == "SEND") == (self.rank % 2 == 0) if group != WORLD else "other way")
        self.list.append(message)
        return types.SimpleNamespace(wait=lambda: self.list.append(["WAIT", message]))

    def isend(self, tensor, dst, group):
        return self.move("SEND", tensor, dst, group)

    def irecv(self, tensor, src, group):
        return self.move("RECV", tensor, src, group)

    def batch(self, operations):
        return [operation() for operation in operations]

    # ---- passes
    def stage(self, chunk):
        return chunk * self.ranks + self.rank

    def take(self, tensor, way, stage, microbatch):
        if tensor is not None:
            tensor.about = (way, stage, microbatch)

    def forward(self, chunk, tensor, microbatch):
        stage = self.stage(chunk)
        self.take(tensor, "F", stage, microbatch)
        self.note("F", stage, microbatch)
        made = Message()
        made.about = ("F", stage, microbatch)
        self.done[made] = stage, microbatch
        return made

    def backward(self, gradient, made):
        stage, microbatch = self.done[made]
        self.take(gradient, "B", stage, microbatch)
        self.note("B", stage, microbatch)
        out = Message()
        out.about = ("B", stage, microbatch)
        return out

    def forward_step(self, *arguments, current_microbatch, vp_stage=0, **_):
        return self.forward(vp_stage, arguments[3 + 1], current_microbatch), 0

    def forward_step_line(self, *arguments, current_microbatch, **_):
        tensor = arguments[4]
        return [self.forward(0, tensor[0] if isinstance(tensor, list) else tensor, current_microbatch)], 0

    def backward_step(self, taken, made, gradient, *_):
        first = made[0] if isinstance(made, list) else made
        out = self.backward(gradient[0] if isinstance(gradient, list) else gradient, first)
        return [out] if isinstance(made, list) else out

    # Megatron's combined passes: waits, both passes, calls.
    def combined(self, config, step, data, model, count, store, before_f, after_f, before_b, after_b, microbatch_of,
                 chunk_of, *_, f_virtual_microbatch_id=None, b_virtual_microbatch_id=None, pre_forward=None,
                 pre_backward=None, post_forward=None, post_backward=None, **__):
        f, b, out, gradient = f_virtual_microbatch_id, b_virtual_microbatch_id, None, None
        start = len(self.list)
        if f is not None and pre_forward:
            pre_forward()
        if b is not None and pre_backward:
            pre_backward()
        if f is not None:
            chunk, microbatch = chunk_of(f, forward=True), microbatch_of(f, forward=True)
            out = self.forward(chunk, before_f(f, chunk, microbatch), microbatch)
            after_f(chunk, out, 0)
        if b is not None:
            chunk = chunk_of(b, forward=False)
            taken, made, upper = before_b(b, chunk)
            gradient = self.backward(upper, made)
            after_b(b)
        if f is not None and b is not None:
            backward = self.list.pop()
            self.list[-1] = ["OVERLAP", self.list[-1], backward]
        if f is not None and post_forward:
            out = post_forward(out)
        if b is not None and post_backward:
            gradient = post_backward(gradient)
        return out, gradient

    def run(self):
        model = [torch.nn.Identity() for _ in range(self.chunks)]
        line = self.chunks == 1
        communicator = p2p_communication.P2PCommunicator.__new__(p2p_communication.P2PCommunicator)
        communicator.pp_group, communicator.config = Group(self.ranks, self.rank), self.config
        communicator.next_rank, communicator.prev_rank = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
        communicator.virtual_pipeline_model_parallel_size = self.config.virtual_pipeline_model_parallel_size
        groups = types.SimpleNamespace(**{name: Group(1, 0) for name in "tp cp embd pos_embd pp dp_cp".split()})
        distributed = types.SimpleNamespace(
            isend=self.isend, irecv=self.irecv, batch_isend_irecv=self.batch, get_backend=lambda group: "nccl",
            P2POp=lambda how, tensor, peer, group: lambda: how(tensor, peer, group),
            group=types.SimpleNamespace(WORLD=WORLD), ProcessGroup=None)
        fake = types.SimpleNamespace(
            distributed=distributed, empty=lambda *_, **__: Message(), zeros=lambda *_, **__: 0, int=int, nn=torch.nn, Tensor=torch.Tensor, Size=torch.Size,
            cuda=types.SimpleNamespace(current_device=lambda: 0, synchronize=lambda: None))
        # Its own ask whether torch.distributed has begun.
        patches = dict(is_pp_first_stage=lambda group: group.rank() == 0,
                       is_pp_last_stage=lambda group: group.rank() == group.size() - 1,
                       get_model_config=lambda _: self.config, get_model_type=lambda _: ModelType.encoder_or_decoder,
                       forward_step=self.forward_step_line if line else self.forward_step, torch=fake, backward_step=self.backward_step,
                       combined_1f1b_schedule_for_interleaved_pipelining=self.combined)
        loop = schedules.forward_backward_pipelining_without_interleaving if line else \
            schedules.forward_backward_pipelining_with_interleaving
        with mock.patch.multiple(schedules, **patches), mock.patch.object(p2p_communication, "torch", fake):
            loop(forward_step_func=None, data_iterator=[None] * self.chunks, model=model, num_microbatches=self.microbatches,
                 seq_length=1, micro_batch_size=1, forward_only=self.forward_only, p2p_communicator=communicator,
                 pg_collection=groups)
        return " ".join(word for word in map(self.text, self.list) if word)

    def text(self, word):
        if word[0] == "OVERLAP":
            return "(%s;%s)OVERLAP_F_B" % (self.text(word[1]), self.text(word[2]))
        if word[0] == "WAIT":
            kind, tensor = word[1]
            way, stage, microbatch = tensor.about
            return f"{stage}WAIT_{kind}_{way}{microbatch}"
        if word[0] in ("SEND", "RECV"):
            way, stage, microbatch = word[1].about
            return f"{stage}{word[0]}_{way}{microbatch}"
        return "%d%s%d" % (word[1], word[0], word[2])


def theirs(ranks, *rest):
    return [Rank(ranks, rank, *rest).run() for rank in range(ranks)]


def ours(ranks, chunks, microbatches, group, order, moe, forward_only):
    name = "forward_only" if forward_only else "interleaved_1f1b" if chunks > 1 else "1f1b"
    how = [f"-v{chunks}"] + ([f"--group={group}"] if chunks > 1 else []) + (["--moe-overlap"] if moe else [])
    made = swsim("generate", name, f"-p{ranks}", f"-m{microbatches}", f"--megatron={order}", *how)
    csv = swsim("export", "--format=csv", "-", stdin=made.stdout).stdout
    return [line.replace(",", " ") for line in csv.splitlines()] or [made.stderr]


def accepted(ranks, microbatches, group):
    return ranks <= group <= microbatches and (microbatches % group == 0 or microbatches % group >= ranks)


def cases(chunk_counts):
    for ranks in RANKS:
        for chunks in chunk_counts:
            for microbatches in (1, 2, 3, 5, 8) if chunks == 1 else (ranks, 2 * ranks, 2 * ranks + 1, 3 * ranks):
                for group in {ranks, ranks + 1} if chunks > 1 else {ranks}:
                    if chunks == 1 or accepted(ranks, microbatches, group):
                        yield ranks, chunks, microbatches, group


def compare(what, chunk_counts, order, moe=False, forward_only=False):
    equal, differ = 0, []
    for case in cases(chunk_counts):
        try:
            want = theirs(*case, order, moe, forward_only)
        except (AssertionError, IndexError) as error:  # its own checks, or a list that it left empty
            differ.append("p %d, v %d, m %d, group %d: Megatron itself: %r" % (*case, error))
            continue
        made = ours(*case, order, moe, forward_only)
        equal += want == made
        differ += ["p %d, v %d, m %d, group %d\n%s\n%s" % (*case, w, o) for w, o in zip(want, made) if w != o]
    check(f"{what}, {order}: the messages of Megatron {VERSION} in {equal} cases", equal and not differ, "\n".join(differ[:2]))


for order in ("batch", "odd_even"):
    compare("1f1b", (1,), order)
    compare("forward_only", (1,), order, forward_only=True)
for order in ("batch", "odd_even", "overlap_p2p", "overlap_p2p_flush"):
    compare("interleaved_1f1b", (2, 3), order)
    compare("forward_only of several chunks", (2, 3), order, forward_only=True)
    compare("interleaved_1f1b with --moe-overlap", (2, 3), order, moe=True)

# On two ranks each way has a group of its own.
both = Rank(2, 0, 2, 4, 2, "overlap_p2p", False, False)
both.run()
check("two ranks: a group each way", both.groups == {True, "other way"}, both.groups)
done()

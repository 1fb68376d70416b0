# SPDX-License-Identifier: Apache-2.0
# The interleaved order of Megatron beside ours: its number of warm-up passes and its table of microbatches and chunks,
# from its own functions, and the loop around them: warm-up forwards, pairs of a forward and a backward, the rest.
import os, types

from tap import check, done, needs, swsim

needs("torch", "megatron.core.pipeline_parallel.schedules")
import importlib.metadata
from megatron.core.pipeline_parallel import schedules

LONG = "SWSIM_LONG" in os.environ
RANKS = (2, 3, 4, 6, 8) if LONG else (2, 3, 4)
VERSION = importlib.metadata.version("megatron-core")


# The groups of a rank, as far as its functions ask.
def groups(ranks, chunks, rank):
    group = types.SimpleNamespace(size=lambda: ranks, rank=lambda: rank)
    return types.SimpleNamespace(pp_group=group, virtual_pipeline_model_parallel_size=chunks if chunks > 1 else None)


def order(ranks, chunks, microbatches, group, rank, moe):
    total, _, warm, left = schedules.get_pp_rank_microbatches(
        microbatches, chunks, group, False, moe, groups(ranks, chunks, rank))
    table = schedules.get_schedule_table(microbatches, chunks, group)

    def word(k, kind):
        microbatch, chunk = table[k]
        return f"{(chunk if kind == 'F' else chunks - 1 - chunk) * ranks + rank}{kind}{microbatch}"

    made = [word(k, "F") for k in range(warm)]
    for k in range(left):
        pair = [word(warm + k, "F"), word(k, "B")]
        made += ["(%s;%s)OVERLAP_F_B" % tuple(pair)] if moe else pair
    return made + [word(k, "B") for k in range(left, total)]


def theirs(ranks, *rest):
    *numbers, moe = rest
    return "".join(",".join(order(ranks, *numbers, rank, moe)) + "\n" for rank in range(ranks))


def ours(ranks, chunks, microbatches, group, moe):
    name, how = ("interleaved_1f1b", [f"-v{chunks}", f"--group={group}"]) if chunks > 1 else ("1f1b", [])
    made = swsim("generate", name, f"-p{ranks}", f"-m{microbatches}", *how, *(["--moe-overlap"] if moe else []))
    return made and swsim("export", "--format=csv", "-", stdin=made.stdout).stdout if made.returncode == 0 else None


# Its condition on a group of microbatches (forward_backward_pipelining_with_interleaving).
def accepted(ranks, microbatches, group):
    return ranks <= group <= microbatches and (microbatches % group == 0 or microbatches % group >= ranks)


def cases(chunk_counts):
    for ranks in RANKS:
        for chunks in chunk_counts:
            for microbatches in (1, 2, 3, 4, 6, 8, 9, 11, 16) if chunks == 1 else (ranks, 2 * ranks, 2 * ranks + 1, 3 * ranks, 4 * ranks):
                for group in {ranks, ranks + 1, 2 * ranks} if chunks > 1 else {ranks}:
                    if chunks == 1 or accepted(ranks, microbatches, group):
                        yield ranks, chunks, microbatches, group


def compare(what, chunk_counts, moe):
    equal, differ = 0, []
    for case in cases(chunk_counts):
        want, made = theirs(*case, moe), ours(*case, moe)
        equal += want == made
        if want != made:
            differ.append("p %d, v %d, m %d, group %d\n%s\n%s" % (*case, want, made))
    check(f"{what} equals Megatron's {VERSION} in {equal} cases", equal and not differ, "\n".join(differ[:1]))


compare("1f1b", (1,), False)
compare("interleaved_1f1b", (2, 3, 4), False)
compare("interleaved_1f1b with --moe-overlap", (2, 3), True)
done()

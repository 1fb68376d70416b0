# SPDX-License-Identifier: Apache-2.0
# pipelining.py - the schedules of torch.distributed.pipelining as lists of words, made without processes or models:
# a stage is only asked for its number and its rank, and what the schedule never looks at is left out.
import csv, re, types

import torch.nn
from torch.distributed.pipelining import schedules

# Ours and theirs, and the numbers of chunks a rank to try; None: one stage a rank.
CLASSES = {
    "gpipe": (schedules.ScheduleGPipe, None),
    "1f1b": (schedules.Schedule1F1B, None),
    "interleaved_1f1b": (schedules.ScheduleInterleaved1F1B, (1, 2, 3, 4)),
    "looped_bfs": (schedules.ScheduleLoopedBFS, (1, 2, 3, 4)),
    "interleaved_zero_bubble": (schedules.ScheduleInterleavedZeroBubble, (1, 2, 3, 4)),
    "zbv": (schedules.ScheduleZBVZeroBubble, (2,)),
    "dualpipe_v": (schedules.ScheduleDualPipeV, (2,)),
}


def stage(index, ranks, stages, rank):
    return types.SimpleNamespace(
        stage_index=index, num_stages=stages, group_size=ranks, group_rank=rank, has_backward=True,
        is_first=index == 0, is_last=index == stages - 1, submod=torch.nn.Identity())


def stages_of(ranks, chunks):
    return [stage(chunk * ranks, ranks, ranks * chunks, 0) for chunk in range(chunks)]


# A row of words a rank; empty cells are kept.
def words(order):
    return [["" if action is None else str(action) for action in order[rank]] for rank in sorted(order)]


def compact(rows):
    return [[word for word in row if word] for row in rows]


def text(rows):
    return "".join(",".join(row) + "\n" for row in rows)


PASS = re.compile(r"\d+[FIWB]\d+$|\(.*\)OVERLAP_F_B$")


def passes(rows):
    return [[word for word in row if PASS.match(word)] for row in rows]


# Their order of passes. Raises ValueError where the class does not take these numbers.
def compute_only(cls, ranks, chunks, microbatches):
    if issubclass(cls, schedules.PipelineScheduleSingle):
        return words(cls(stage(0, ranks, ranks, 0), microbatches).pipeline_order)
    return words(cls(stages_of(ranks, chunks), microbatches).pipeline_order)


# Their runtime with a schedule read from a file, in either of its formats.
def load(path, ranks, chunks, microbatches, format="compute_only", **how):
    runtime = schedules._PipelineScheduleRuntime(stages_of(ranks, chunks), microbatches, **how)
    runtime._load_csv(str(path), format)
    return runtime


# A file as the csv module of Python reads it.
def read_rows(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))

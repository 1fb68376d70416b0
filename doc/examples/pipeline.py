#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pipeline.py - a pipeline whose tasks are functions in Python: proved, run on two ranks, recorded and judged.

    python3 pipeline.py [FILE.db]     the package swsim is installed: pip install ./python
"""
import array
import sys

import swsim

plan = (swsim.Plan("pipeline", ranks=2, retire="device")
        .task("CopyIn", stage=0, stream="memcpy", thread_group="io", writes=["ids"])
        .task("InputDist", stage=1, stream="dist", globally_ordered=True, reads=["ids"], writes=["mine"],
              work={"collective": "all_to_all", "comm": "dp", "bytes": "48 B"})
        .task("Train", stage=2, thread_group="train", reads=["mine"], writes=["weights"])
        .needs("InputDist", "CopyIn").needs("Train", "InputDist").needs("Train", "Train", 1)
        .buffer("weights", scope="shared"))
weights = [0, 0]


def copy_in(ctx):
    ctx.ids, ctx.mine = array.array("q", ctx.batch), array.array("q", [0] * 6)


def input_dist(ctx):
    ctx.all_to_all(ctx.ids, ctx.mine, "i64")  # each rank gives the other one half of its numbers


def train(ctx):
    def step():
        weights[ctx.rank] += sum(ctx.mine)

    ctx.launch(step)  # in the order of the stream, behind the exchange


with swsim.Pipeline(plan, {"CopyIn": copy_in, "InputDist": input_dist, "Train": train}) as pipe:
    print("proved" if pipe.verify()[0] else pipe.verify()[1])
    pipe.record(sys.argv[1] if len(sys.argv) > 1 else "")
    batches = [[[100 * rank + number] * 6 for number in range(8)] for rank in range(2)]
    count = sum(1 for ctx in pipe.run(batches) if ctx.rank == 0)
    print(f"{count} iterations, sums {weights}")
    run, legal, why = pipe.recorded()
    print(f"recorded, run {run}:", "as the plan allows" if legal else why)

# SPDX-License-Identifier: Apache-2.0
# Our schedules executed by PyTorch's runtime, a process a rank with gloo between them: gradients are those of the model
# in one process. With messages that block, as in one queue for all messages of a rank, a run hangs where verify says so.
from tap import check, done, folder, needs, swsim

needs("torch.distributed.pipelining")
import torch
from pipeline_run import execute

VERSION = next((known for known in ("2.9", "2.15") if torch.__version__.startswith(known + ".")), None)
RUNS = [
    ("gpipe", 3, 1, 4),
    ("1f1b", 2, 1, 4),
    ("1f1b", 4, 1, 8),
    ("interleaved_1f1b", 2, 2, 4),
    ("interleaved_1f1b", 3, 2, 6),
    ("looped_bfs", 2, 2, 3),
    ("interleaved_zero_bubble", 2, 2, 4),
    ("interleaved_zero_bubble", 4, 2, 8),
    ("zbv", 2, 2, 4),
    ("zbv", 4, 2, 8),
    ("dualpipe_v", 2, 2, 5),
    ("dualpipe_v", 3, 2, 7),
]
# Those whose receives are put off, too: a run that hangs takes as long as it is given.
DEFERRED = [("gpipe", 3, 1, 4), ("1f1b", 2, 1, 4), ("interleaved_1f1b", 2, 2, 4), ("zbv", 2, 2, 4), ("dualpipe_v", 2, 2, 5),
            ("dualpipe_v", 4, 2, 8), ("interleaved_zero_bubble", 2, 2, 4)]
HANG_S = 15


def generated(name, ranks, chunks, microbatches, *how):
    plan = swsim("generate", name, f"-p{ranks}", f"-v{chunks}", f"-m{microbatches}").stdout
    made = swsim("export", *how, "-", stdin=plan)
    assert made.returncode == 0, made.stderr
    return made.stdout


def file_of(case, *how):
    path = folder / "schedule.csv"
    path.write_text(generated(*case, "--format=csv", *how))
    return path


def ran(case, what, want, path, **how):
    end = execute(path, case[3], **how)
    check(f"{case[0]}, {case[1]} ranks, {case[3]} microbatches, {what}: {want}", end == want, end)


# Is the schedule proved when messages share queues in this way?
def proved(case, fifo, *how):
    plan = generated(*case, *how) + f"p2p: {{fifo: {fifo}}}\n"
    verdict = swsim("verify", "--no-fix", "-", stdin=plan)
    assert verdict.returncode in (0, 1), verdict.stderr
    return verdict.returncode == 0


for case in RUNS:
    ran(case, "messages added by PyTorch", "right", file_of(case), format="compute_only")
    for order in ("early", "timed"):
        how = [f"--pytorch={VERSION}", f"--comms={order}"]
        check(f"{case}, {order}: proved", proved(case, "group", *how))
        ran(case, order, "right", file_of(case, *how))
        ran(case, order + ", messages block", "right", file_of(case, *how), blocking=True)
for case in DEFERRED:
    if VERSION == "2.15":
        want = "right" if proved(case, "edge", "--comms=deferred") else "wrong gradients"
        ran(case, "PyTorch's own defer_pp_recv", want, file_of(case), format="compute_only", defer_pp_recv=True)
    how = [f"--pytorch={VERSION}", "--comms=deferred"]
    ran(case, "deferred", "right" if proved(case, "edge", *how) else "wrong gradients", file_of(case, *how))
    ran(case, "deferred, messages block", "right" if proved(case, "group", *how) else "hangs", file_of(case, *how),
        blocking=True, limit_s=HANG_S)
done()

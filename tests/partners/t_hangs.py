# SPDX-License-Identifier: Apache-2.0
# Real hangs over gloo, read from the dumps of PyTorch's flight recorder: hangs.py makes each, `swsim import` reads the dumps
# of its ranks, as pickle and as JSON, and `swsim verify` says what is wrong. Where PyTorch has its analyzer
# (torch.distributed.flight_recorder, from 2.10 on), what becomes of the same dumps there is a comment.
import importlib.util, re, subprocess, sys

from tap import check, comment, done, folder, here, needs, swsim

needs("torch", "torch._C._distributed_c10d")
from torch._C import _distributed_c10d

if not hasattr(_distributed_c10d, "_dump_fr_trace"):
    from tap import skip

    skip("this PyTorch has no flight recorder for gloo")
    done()

# The case, its ranks, the exit status of verify, what it or import says.
cases = [
    ("nothing", 2, 0, "proved"),
    ("skipped", 2, 1, "mismatch, always: all_reduce meets broadcast"),
    ("short", 2, 1, "is in all_reduce of communicator pg0, waits for rank 1"),
    ("opposite", 2, 1, "is in all_reduce of communicator pg1, waits for rank 1"),
    ("opposite_later", 2, 1, "is in all_reduce of communicator pg2, waits for rank 0"),
    ("size", 2, 1, "they differ in bytes"),
    ("kind", 2, 1, "mismatch, always: all_gather meets all_reduce"),
    ("message", 2, 1, "is in all_reduce of communicator pg0, waits for rank 0"),
    ("sends", 2, 0, "except messages: gloo records no sends and receives"),
    ("halves", 4, 1, "is in all_reduce of communicator pg2, waits for rank 3"),
]


def hang(case, ranks):
    place = folder / case
    place.mkdir()
    command = [sys.executable, "-W", "ignore", here / "hangs.py", case]
    jobs = [subprocess.Popen([*command, str(rank), str(ranks), place], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for rank in range(ranks)]
    return place, b"".join(job.communicate(timeout=120)[0] for job in jobs).decode()


def analyze(place):
    if not importlib.util.find_spec("torch.distributed.flight_recorder"):
        return
    job = subprocess.run([sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", "-p", "nccl_trace_rank_", place],
                         capture_output=True, text=True)
    lines = (job.stdout + job.stderr).splitlines()
    comment(f"PyTorch's analyzer: {lines[-1] if lines else 'nothing'}")


for case, ranks, code, words in cases:
    place, told = hang(case, ranks)
    plan, again = place / "plan.yaml", place / "again.yaml"
    pickles = swsim("import", "-o", plan, "--name=" + case, *[place / f"nccl_trace_rank_{rank}" for rank in range(ranks)])
    swsim("import", "-o", again, "--name=" + case, *[place / f"{rank}.json" for rank in range(ranks)])
    verdict = swsim("verify", "--no-fix", plan)
    everything = told + pickles.stderr + verdict.stdout + verdict.stderr
    unnumbered = re.sub(r"\b([a-z]+) #\d+ ", r"\1 ", everything)  # "is in #3 all_reduce": the numbers of calls are the dumps'
    check(f"{case}: {words}", verdict.returncode == code and words in unnumbered, everything)
    check("... the dump as JSON says the same", plan.exists() and again.exists() and again.read_text() == plan.read_text())
    analyze(place)
done()

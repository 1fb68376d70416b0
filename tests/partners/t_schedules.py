# SPDX-License-Identifier: Apache-2.0
# The schedules of torch.distributed.pipelining beside ours, over a grid of ranks, chunks and microbatches: the order
# of passes of every class, then the same order with its messages, byte for byte. Where PyTorch is known to differ, the
# difference is the case (doc/partners.md).
import contextlib, io, itertools, os, re

from tap import check, comment, done, folder, needs, swsim

needs("torch.distributed.pipelining")
import torch
from executed import calls_of, row
from pipelining import CLASSES, compute_only, load, passes, read_rows, schedules, text

SIMULATED = re.compile(r"\d+(F|I|W|B|SEND_F|RECV_F|SEND_B|RECV_B)\d+$")

LONG = "SWSIM_LONG" in os.environ
RANKS = (1, 2, 3, 4, 5, 6, 8) if LONG else (1, 2, 3, 4, 6)
MICROBATCHES = (*range(1, 17), 20, 24) if LONG else (1, 2, 3, 4, 5, 7, 8, 10, 12)


def grid(chunks):
    return itertools.product(RANKS, chunks or (1,), MICROBATCHES)


# The schedule that `swsim generate` makes, as a file of PyTorch; None: it refuses.
def generated(name, ranks, chunks, microbatches, *how):
    made = swsim("generate", name, f"-p{ranks}", f"-m{microbatches}", f"-v{chunks}")
    if made.returncode:
        return None
    written = swsim("export", "--format=csv", *how, "-", stdin=made.stdout)
    assert written.returncode == 0, written.stderr
    return written.stdout


# PyTorch's table of 1F1B counts the forwards of the last rank from 1 where it has more than one rank or chunk.
def last_rank_from_zero(rows):
    last = [word.replace(f"F{n}", f"F{n - 1}") if "F" in word else word
            for word in rows[-1] for n in [int(word.split("F")[-1]) if "F" in word else 0]]
    return rows[:-1] + [last]


def theirs(name, cls, ranks, chunks, microbatches):
    try:
        return passes(compute_only(cls, ranks, chunks, microbatches))
    except ValueError:
        return None


def compare_orders(name, cls, chunks):
    equal = refused = 0
    only_ours, only_theirs, differ = [], [], []
    for case in grid(chunks):
        rows, ours = theirs(name, cls, *case), generated(name, *case)
        if rows and name == "1f1b":
            rows = last_rank_from_zero(rows)
        if rows is None or ours is None:
            refused += rows is None and ours is None
            only_ours += [case] if rows is None and ours else []
            only_theirs += [case] if rows and ours is None else []
        elif ours == text(rows):
            equal += 1
        else:
            differ.append((case, text(rows), ours))
    check(f"{name}: the order of passes equals PyTorch's {torch.__version__} in {equal} cases", equal and not differ,
          differ and "p %d, v %d, m %d\ntheirs\n%sours\n%s" % (*differ[0][0], *differ[0][1:]))
    check(f"{name}: what PyTorch accepts is accepted", not only_theirs, only_theirs)
    comment(f"refused by both {refused}, by PyTorch alone {len(only_ours)}: {only_ours[:6]}")


# The version whose additions ours are; None: of this one none is known.
VERSION = next((known for known in ("2.9", "2.15") if torch.__version__.startswith(known + ".")), None)
# Ways to complete a schedule: a name, options of `swsim export`, arguments of their runtime.
WAYS = [("as it comes", [f"--pytorch={VERSION}"], {})]
if VERSION == "2.15":
    WAYS.append(("with defer_pp_recv", ["--pytorch=2.15", "--comms=deferred"], {"defer_pp_recv": True}))


# Our passes, completed by their runtime and written by it.
def completed(passes, ranks, chunks, microbatches, how):
    path = folder / "passes.csv"
    path.write_text(passes)
    runtime = load(path, ranks, chunks, microbatches, **how)
    runtime._dump_csv(str(folder / "complete.csv"), "compute_comms")
    return text(read_rows(folder / "complete.csv"))


def compare_messages(name, chunks, way, options, how):
    equal, differ = 0, []
    for case in grid(chunks):
        ours = generated(name, *case)
        if ours is None:
            continue
        want, made = completed(ours, *case, how), generated(name, *case, *options)
        if made == want:
            equal += 1
        else:
            differ.append("p %d, v %d, m %d\n%s\n%s" % (*case, want, made))
    check(f"{name}: completed {way} it equals PyTorch's {torch.__version__} in {equal} cases", equal and not differ,
          "\n".join(differ[:1]))


# PyTorch's validation and its simulator on schedules that we complete. The simulator knows passes and messages only.
def simulated(rows, microbatches):
    order = {rank: [schedules._Action.from_str(word) for word in row if SIMULATED.match(word)]
             for rank, row in enumerate(rows)}
    count = 1 + max(action.stage_index for actions in order.values() for action in actions)
    ranks = schedules._validate_schedule(order, len(rows), count, microbatches)
    with contextlib.redirect_stdout(io.StringIO()):
        schedules._simulate_comms_compute(order, ranks.__getitem__, count)


def compare_simulator(name, chunks, order):
    ran, refused = 0, []
    for case in grid(chunks):
        made = generated(name, *case, "--pytorch=2.9", f"--comms={order}")
        if made is None:
            continue
        try:
            simulated([line.split(",") for line in made.splitlines()], case[2])
            ran += 1
        except (AssertionError, ValueError) as error:
            refused.append(f"{case}: {error}")
    check(f"{name}: {order} messages pass its validation and its simulator in {ran} cases", ran and not refused,
          "\n".join(refused[:1]))


# GPipe and 1F1B as they run, without a file: passes and messages in the order of `--comms=deferred`.
def compare_executed(name, cls):
    equal, differ, together, alone = 0, [], 0, 0
    for ranks, _, microbatches in grid(None):
        try:
            calls = [calls_of(cls, ranks, rank, microbatches) for rank in range(ranks)]
        except ValueError:
            continue
        want = text([row(rank) for rank in calls])
        made = generated(name, ranks, 1, microbatches, "--comms=deferred")
        if made == want:
            equal += 1
        else:
            differ.append(f"p {ranks}, m {microbatches}\n{want}\n{made}")
        groups = [call for rank in calls for call in rank if isinstance(call, list)]
        together += sum(len(group) > 1 for group in groups)
        alone += sum(len(group) == 1 for group in groups)
    check(f"{name}: what PyTorch {torch.__version__} executes, messages too, equals ours, deferred, in {equal} cases",
          equal and not differ, "\n".join(differ[:1]))
    comment(f"of its calls of messages {together} have two, {alone} one")


# The same in one queue for all messages of a rank, a message at a time, and those next to each other together.
def compare_queue(name, hangs):
    wrong, count = [], 0
    for ranks, _, microbatches in grid(None):
        plan = swsim("generate", name, f"-p{ranks}", f"-m{microbatches}").stdout
        plan = swsim("export", "--comms=deferred", "-", stdin=plan).stdout
        for batch in ("false", "true"):
            verdict = swsim("verify", "-q", "--no-fix", "-", stdin=plan + f"p2p: {{fifo: group, batch: {batch}}}\n")
            want = 1 if hangs and batch == "false" and ranks > 1 and microbatches > 1 else 0
            wrong += [] if verdict.returncode == want else [(ranks, microbatches, batch, verdict.stdout + verdict.stderr)]
            count += 1
    check(f"{name}: so executed, {'it hangs unless messages go together' if hangs else 'it is proved'}, {count} cases",
          not wrong, wrong[:1])


for name in ("gpipe", "1f1b"):
    compare_executed(name, CLASSES[name][0])
    compare_queue(name, hangs=name == "1f1b")
for name, (cls, chunks) in CLASSES.items():
    for order in ("early", "deferred", "timed"):
        compare_simulator(name, chunks, order)
    compare_orders(name, cls, chunks)
    for way, options, how in WAYS if VERSION else ():
        compare_messages(name, chunks, way, options, how)
done()

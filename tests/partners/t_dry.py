# SPDX-License-Identifier: Apache-2.0
# `swsim record --device=none` of PyTorch's wheel for CUDA, which is not changed: programs that are right are proved, and each
# mistake of dry_program.py is found, a race with the lines that it names. No GPU is there or needed.
import importlib.util, os, pathlib, re, subprocess, sys

from tap import check, done, folder, here, needs, skip, swsim

needs("torch")
import torch

if torch.version.cuda is None:
    skip("this PyTorch is not for CUDA")
    done()
program = here / "dry_program.py"
lines = {}
for number, line in enumerate(program.read_text().splitlines(), 1):
    found = re.search(r"# (\w+: \w+)$", line)
    if found:
        lines[found.group(1)] = f"dry_program.py:{number}"
os.environ["OMP_NUM_THREADS"] = "1"
run_text = {}
only = sys.argv[1:]  # cases; none: all


def record(case, ranks=0, options=(), imports=()):
    """The verdict of the case; None: the program or its import failed, which is told, or it is not asked for."""
    if only and case not in only:
        return None
    recording, plan = folder / f"{case}.swr", folder / f"{case}.yaml"
    command = [sys.executable, program, case]
    if ranks:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks, program, case]
    run = swsim("record", "--device=none", "--host-accesses", *options, "-o", recording, "--", *command)
    told = f"status {run.returncode}\n{run.stdout[-2000:]}\n{run.stderr[-4000:]}"
    if not check(f"{case}: runs", run.returncode == 0 and run.stdout.count("done") == max(ranks, 1), told):
        return None
    run_text[case] = run.stdout
    made = swsim("import", "-q", *imports, "-o", plan, recording)
    if not check(f"{case}: is imported", made.returncode == 0, made.stderr):
        return None
    return swsim("verify", "--no-fix", plan)


def right(case, ranks=0, alone="", **options):
    """It is proved, and its ranks stand for many, unless they are alone for a reason that has these words."""
    verdict = record(case, ranks, **options)
    if not verdict:
        return
    check(f"{case}: is proved", verdict.returncode == 0, verdict.stdout[:3000])
    if ranks:
        many = swsim("verify", "--no-fix", f"--ranks={64 * ranks}", folder / f"{case}.yaml")
        told = re.search(alone or "and any number of ranks", many.stderr if alone else many.stdout)
        check(f"{case}: for {64 * ranks} ranks", many.returncode == (3 if alone else 0) and told, many.stdout[:3000] + many.stderr)


def steps(case, ranks=0):
    """Its steps are written once, and stand for any number."""
    verdict = record(case, ranks, imports=["--repeat=like"])
    if verdict:
        check(f"{case}: any number of steps", verdict.returncode == 0 and "or more iterations" in verdict.stdout, verdict.stdout[:3000])


def wrong(case, words, *places, ranks=0, **options):
    """The headline has these words, and the lines of these places."""
    verdict = record(case, ranks, **options)
    if not verdict:
        return
    head = "\n".join(verdict.stdout.splitlines()[:2])
    check(f"{case}: {words}", verdict.returncode == 1 and re.search(words, head), verdict.stdout[:3000])
    for place in places:
        check(f"{case}: at the line of {place}", lines[place] in head, f"{lines[place]}\n{head}")


def memory():
    """The plan's memory is what the allocator says of itself; each tensor is of at least 512 bytes."""
    verdict = record("memory")
    if not verdict:
        return
    check("memory: is proved", verdict.returncode == 0, verdict.stdout[:3000])
    plan = (folder / "memory.yaml").read_text()
    told = dict(re.findall(r"(peak|reserved|parameters) (\d+)", run_text["memory"]))
    found = re.search(r"^memory:\n- \{(.*)\}$", plan, re.M)
    line = found.group(1) if found else ""
    sizes = {key: round(float(number) * {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit])
             for key, number, unit in re.findall(r"(\w+): ([\d.]+)([KMG]?i?B)", line)}
    for key in ("peak", "reserved", "parameters"):
        check(f"memory: {key} as the allocator says", sizes.get(key) == int(told[key]), f"{told}\n{line}")
    all_parameters = int(told["parameters"])
    check("memory: optimizer", 2 * all_parameters <= sizes.get("optimizer", 0) <= 2 * all_parameters + 512 * 7, line)
    check("memory: some gradients are there", 0 < sizes.get("gradients", 0) <= all_parameters, line)
    check("memory: a batch is held for the other stream", sizes.get("held", 0) >= 4096 * 512 * 4, line)
    uses = sum(size for key, size in sizes.items() if key not in ("peak", "reserved", "device"))
    check("memory: all of the peak is for something", uses == sizes["peak"], line)
    fits = swsim("predict", "-q", "--hardware=h100-sxm", folder / "memory.yaml")
    check("memory: it fits", fits.returncode == 0 and "rank 0: fits on h100-sxm" in fits.stdout, fits.stdout)


def gate():
    """The line of the workflow, with a program of this test: it passes, and fails for each reason that the page has."""
    if only and "gate" not in only:
        return
    workflow = (here.parent.parent / "doc" / "examples" / "dry_run.yml").read_text()
    line = re.search(r"run: swsim (dry .* --) torchrun --nproc-per-node=2 train.py$", workflow, re.M)
    if not check("gate: the workflow has its line", line, workflow):
        return

    def run(case, ranks=0, **changes):
        words = line.group(1).replace("-o job", f"-o {folder}/gate_{case}{len(changes)}")
        for old, new in changes.items():
            words = re.sub(f"--{old.replace('_', '-')}=\\S+", f"--{old.replace('_', '-')}={new}", words)
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks else []
        return swsim(*words.split(), sys.executable, *launcher, program, case)

    good = run("memory")
    check("gate: a right program passes", good.returncode == 0 and "fits on h100-sxm" in good.stdout, good.stdout + good.stderr)
    check("gate: ... with its step", re.search(r"^step    [\d.]+ .s, the median of 2", good.stdout, re.M), good.stdout)
    check("gate: ... and its cost", re.search(r"the run took \d+ s, its largest process \d+ MiB", good.stderr), good.stderr)
    small = folder / "small.yaml"
    small.write_text("base: h100-sxm\nmemory: 1100MB\nname: small\n")
    over = run("memory", hardware=small)
    check("gate: memory that does not fit", over.returncode == 1 and "does not fit on small" in over.stdout, over.stdout)
    slow = swsim("predict", "-q", "--hardware=h100-sxm", "--max-step=1us", f"{folder}/gate_memory0.yaml")
    check("gate: a step that is too long", slow.returncode == 1 and "longer than --max-step=1us" in slow.stderr, slow.stderr)
    unstepped = run("refill")
    check("gate: a limit of steps for a program that has none", unstepped.returncode == 3 and "predict of" in unstepped.stderr and
          "without a described reason" not in unstepped.stderr, unstepped.stderr)
    reordered = run("compiled_reordered", 2)
    check("gate: a compiled graph whose collectives a pass moved on one rank", reordered.returncode == 1 and
          "mismatch" in reordered.stdout, reordered.stdout)
    race = run("hook_unwaited", 2)
    check("gate: a race", race.returncode == 1 and "race" in race.stdout, race.stdout)


def megatron():
    """The program's own plan has too many states; one that has more interleavings is proved, and its steps are found."""
    if only and "megatron" not in only:
        return
    if importlib.util.find_spec("megatron") is None:
        skip("megatron: Megatron-core is not here")
        return
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run = swsim("dry", "--values", "-o", f"{folder}/megatron", "--", sys.executable, *launcher, program, "megatron")
    check("megatron: is proved", run.returncode == 0, run.stdout + run.stderr[-4000:])
    check("megatron: by a plan with more interleavings", "has more interleavings" in run.stderr, run.stderr[-4000:])
    check("megatron: its steps are written once", "or more iterations" in run.stdout or "of 5 iterations" in run.stdout, run.stdout)


memory()
gate()
right("loader")
wrong("loader_unwaited", "race", "loader: copy", "loader: use")
wrong("loader_unrecorded", "race")
right("offload")
wrong("offload_unwaited", "race", "offload: made", "offload: copy")
right("event")
wrong("event_wrong", "race", "event: copy", "event: use")
right("refill")
wrong("refill_unwaited", "race", "refill: fill", "refill: copy")
right("checkpoint")
wrong("checkpoint_unwaited", "race", "checkpoint: copy", "checkpoint: step")
right("graph")
right("shapes")
right("values", options=["--values"])
right("ddp", 2)
right("fsdp", 2)
steps("ddp_steps", 2)
steps("fsdp_steps", 2)
steps("inference")
steps("own_optimizer", 2)
wrong("own_optimizer_unwaited", "race", "own_optimizer: reduce", ranks=2, imports=["--repeat=like"])
right("ddp_options", 2)
right("hook", 2)
wrong("hook_unwaited", "race", "hook: use", ranks=2)
right("fsdp1", 2)
right("fsdp1_offload", 2)
right("fsdp_offload", 2)
right("hybrid", 4)
right("tensor", 2, alone="rank 0 sends to rank 1")
right("reduce", 2)
wrong("reduce_unwaited", "race", "reduce: use", ranks=2)
right("ring", 2, alone="rank 0 sends to rank 1")
wrong("ring_unbatched", "deadlock", ranks=2)
in_turn = ["--sm-slots=1", "--launch-order"]
right("groups", 2, imports=in_turn)
wrong("groups_crossed", "deadlock", ranks=2, imports=in_turn)
right("compiled", 2)
wrong("compiled_reordered", "mismatch", "compiled: step", ranks=2)
# PyTorch 2.9 greets neighbours with int64, which they receive as float32.
wrong("pipeline", "int64", ranks=2, options=["--values"])
megatron()
done()

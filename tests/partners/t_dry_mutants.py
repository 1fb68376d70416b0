# SPDX-License-Identifier: Apache-2.0
# Right programs on the device that is not there, and each with one mistake. Counted are alarms on right programs, which are failures, and
# what becomes of the mistakes. They are of two sorts:
# - in the plan of a recording one wait, synchronisation, record or order of two threads is left out, a wait comes a piece of work later,
#   a record one earlier, or two neighbouring collectives of one rank change places. Such a plan is refuted, or proved all the same:
#   what was left out said nothing that others do not say, if swcheck, another program, accepts the certificate of that proof.
# - of a program of dry_right.py one statement is left out, and the program is recorded again. It must be refuted, unless its
#   line says why it is needless, or why a recording misses it. A capture that CUDA refuses, or of which no graph can be made, is
#   found, too.
# SWSIM_LONG=1 tries all programs; those named as arguments are tried alone.
import os, random, re, subprocess, sys, time

from tap import check, comment, done, folder, here, needs, skip, swsim

needs("torch")
import torch

if torch.version.cuda is None:
    skip("this PyTorch is not for CUDA")
    done()
sys.dont_write_bytecode = True
from dry_right import RIGHT

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["PYTHONPATH"] = str(here)  # for a changed program in a folder of its own
seed = int(os.environ.get("SWSIM_SEED", "1"))
comment(f"seed {seed}")
long = "SWSIM_LONG" in os.environ
most = 4 if long else 2  # of each kind in a program
programs = {"dry_program.py": {**dict.fromkeys(("memory", "loader", "offload", "event", "refill", "checkpoint", "graph", "shapes"), (1, False)),
                               **dict.fromkeys(("ddp", "fsdp", "ddp_options", "hook", "fsdp1", "fsdp1_offload", "fsdp_offload", "tensor",
                                                "reduce", "ring", "groups"), (2, False)), "hybrid": (4, False)},
            "dry_right.py": {case: (ranks, values) for case, (ranks, values, _) in RIGHT.items()}}
shortly = ("loader", "hook", "double_buffer", "saved_tensors", "shares")
work = r"  - \{(launch|copy|fill|collective|group|send|recv|graph)"
kinds = {"wait": r"  - \{wait: ", "sync": r"  - \{sync: ", "record": r"  - \{record: ", "await": r"  - \{await: ",
         "late wait": r"  - \{wait: ", "early record": r"  - \{record: ", "collective": r"  - \{(collective: |group: )"}
statement = re.compile(r"^( +)(\S.*\.(wait_stream|wait_event|wait|record|record_stream|synchronize)\(.*\))( +# (needless|missed): .*)?$")
swcheck = os.path.join(os.path.dirname(os.environ.get("SWSIM", "./swsim")), "swcheck")


def plan_mutants(case, lines):
    """Kind, number of the line, lines of each: the same ones whether the program is tried alone or with others."""
    chance, found = random.Random(f"{seed} {case}"), []

    def near(number, pattern, step):
        """The next line of the same thread and stream that is like this."""
        stream = re.search(r"stream: (\S+?)[,}]", lines[number])
        for n in range(number + step, number + 20 * step, step):
            if not (0 <= n < len(lines) and lines[n].startswith("  - ")):
                return None
            if re.match(pattern, lines[n]) and (not stream or f"stream: {stream.group(1)}" in lines[n]):
                return n
        return None

    for number, line in enumerate(lines):
        for kind, pattern in kinds.items():
            if not re.match(pattern, line):
                continue
            rest = lines[:number] + lines[number + 1:]
            other = near(number, pattern if kind == "collective" else work, -1 if kind == "early record" else 1)
            if kind in ("wait", "sync", "record", "await"):
                found.append((kind, number, rest))
            elif other is not None and kind == "collective" and lines[other] != line:
                swapped = list(lines)
                swapped[number], swapped[other] = lines[other], line
                found.append((kind, number, swapped))
            elif other is not None and kind != "collective":
                rest.insert(other, line)  # behind a wait's work, in front of a record's
                found.append((kind, number, rest))
    # of each kind alike
    return [m for kind in kinds for own in [[m for m in found if m[0] == kind]] for m in chance.sample(own, min(len(own), most))]


def judge(plan):
    """found, equivalent (proved by two programs), proved, undecided or refused; the verdict."""
    certificate = folder / "certificate"
    certificate.unlink(missing_ok=True)
    run = subprocess.run(["timeout", "60", os.environ.get("SWSIM", "./swsim"), "verify", "-q", "--no-fix", f"--certificate={certificate}", plan],
                         capture_output=True, text=True)
    if run.returncode != 0:
        return {1: "found", 3: "refused"}.get(run.returncode, "undecided"), run.stdout + run.stderr
    checked = subprocess.run([swcheck, plan, certificate], capture_output=True, text=True) if certificate.exists() else None
    return "equivalent" if checked and checked.returncode == 0 else "proved", run.stdout


def record(program, case, ranks, values, plan):
    """What went wrong, if something did. A program that hangs is stopped, and its recording is whole up to there."""
    recording = plan.with_suffix(".swr")
    launcher = [] if ranks == 1 else ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    run = swsim("record", "--device=none", "--host-accesses", *(["--values"] if values else []), "-o", recording, "--",
                "timeout", "60", sys.executable, *launcher, program, case)
    # a GPU that takes one operation of a communicator at a time
    made = swsim("import", "-q", "-o", plan, *(["--sm-slots=1", "--launch-order"] if case == "groups" else []), recording)
    return run.stderr[-2000:] + made.stderr if run.returncode not in (0, 124) or made.returncode else None


verdicts = ("found", "equivalent", "proved", "undecided", "refused")  # refused: it is no plan, as a capture that is not joined
table = {kind: dict.fromkeys(verdicts, 0) for kind in kinds}
statements, judged, alarms = {}, 0, 0
for file, cases in programs.items():
    source = (here / file).read_text().splitlines()
    for case, (ranks, values) in cases.items():
        if case not in sys.argv[1:] if sys.argv[1:] else not long and case not in shortly:
            continue
        plan, mutant = folder / f"{case}.yaml", folder / "mutant.yaml"
        wrong = record(here / file, case, ranks, values, plan)
        if not check(f"{case}: is recorded", not wrong, wrong):
            continue
        lines = plan.read_text().splitlines()
        right, told = judge(plan)
        judged += 1
        alarms += right == "found"
        check(f"{case}: no alarm", right in ("equivalent", "proved"), f"{right}\n{told[:3000]}")
        begin = time.monotonic()
        for kind, number, changed in plan_mutants(case, lines):
            mutant.write_text("\n".join(changed) + "\n")
            verdict, told = judge(mutant)
            table[kind][verdict] += 1
            if verdict not in ("found", "equivalent"):
                comment(f"{case}: {verdict}, {kind} {lines[number].strip()[:100]}: {told[:300]}")
            if time.monotonic() - begin > 240:
                comment(f"{case}: no more mutants, for want of time")
                break
        if file != "dry_right.py":
            continue
        first = next(n for n, line in enumerate(source) if line == f"def {case}():")
        last = next((n for n in range(first + 1, len(source)) if source[n].startswith(("@", "# ", "def ", "if "))), len(source))
        for number in range(first, last):
            leaves = statement.match(source[number])
            if not leaves:
                continue
            changed = list(source)
            changed[number] = leaves.group(1) + "pass"
            program, mutant = folder / f"{case}_{number + 1}.py", folder / f"{case}_{number + 1}.yaml"
            program.write_text("\n".join(changed) + "\n")
            wrong = record(program, case, ranks, values, mutant)
            if wrong:
                verdict, told = "found" if re.search("CUDA error|a plan cannot express", wrong) else "not recorded", wrong
            else:
                verdict, told = judge(mutant)
            call, expected = leaves.group(3), leaves.group(5) or "found"
            row = statements.setdefault(call, {})
            name = "found" if verdict == "found" else "needless" if expected == "needless" else "missed"
            row[name] = row.get(name, 0) + 1
            # what a run misses by luck another one finds
            passed = name == expected or expected == "missed" if verdict != "undecided" else False
            check(f"{case}: without {file}:{number + 1} {leaves.group(2)} it is {expected}", passed, f"{verdict}\n{told[:3000]}")
comment(f"{judged} right programs, {alarms} alarms")
for kind, row in table.items():
    comment(f"plan, {kind}: {sum(row.values())} mutants, " + ", ".join(f"{count} {name}" for name, count in row.items() if count))
total = {name: sum(row[name] for row in table.values()) for name in verdicts}
comment(f"plans, all: {sum(total.values())} mutants, " + ", ".join(f"{count} {name}" for name, count in total.items()))
for call, row in statements.items():
    comment(f"program, {call}: {sum(row.values())} left out, " + ", ".join(f"{count} {name}" for name, count in row.items()))
comment(f"programs, all: {sum(sum(row.values()) for row in statements.values())} statements left out")
check("some mutants of plans are refuted", sys.argv[1:] or total["found"] > 0, table)
check("each is decided", total["undecided"] == 0, total)
done()

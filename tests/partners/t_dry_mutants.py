# SPDX-License-Identifier: Apache-2.0
# Right programs on the device that is not there, and each with one mistake: of the plan of its recording one wait, synchronisation, record
# or order of two threads is left out, or two neighbouring collectives of one rank change places. Counted are alarms on right programs,
# which are failures; mutants that are refuted; and those that are proved all the same: what was left out said nothing that others do
# not say, if swcheck, another program, accepts the certificate of that proof. SWSIM_LONG=1 tries all programs and more mutants of each.
import os, random, re, subprocess, sys, time

from tap import check, comment, done, folder, here, needs, skip, swsim

needs("torch")
import torch

if torch.version.cuda is None:
    skip("this PyTorch is not for CUDA")
    done()
os.environ["OMP_NUM_THREADS"] = "1"
seed = int(os.environ.get("SWSIM_SEED", "1"))
comment(f"seed {seed}")
chance = random.Random(seed)
long = "SWSIM_LONG" in os.environ
most = 60 if long else 12
cases = [("loader", 1), ("hook", 2)]
if long:
    cases = [(case, 1) for case in ("memory", "loader", "offload", "event", "refill", "checkpoint")] + \
        [(case, 2) for case in ("ddp", "fsdp", "ddp_options", "hook", "fsdp1", "fsdp_offload", "tensor", "reduce", "ring", "groups")]
if sys.argv[1:]:
    cases = [case for case in cases if case[0] in sys.argv[1:]]
kinds = {"wait": r"  - \{wait: ", "sync": r"  - \{sync: ", "record": r"  - \{record: ", "await": r"  - \{await: ",
         "collective": r"  - \{(collective: |group: )"}
swcheck = os.path.join(os.path.dirname(os.environ.get("SWSIM", "./swsim")), "swcheck")


def mutants(lines):
    """Kind, number of the line, lines of each."""
    found = []
    for number, line in enumerate(lines):
        for kind, pattern in kinds.items():
            if not re.match(pattern, line):
                continue
            if kind != "collective":
                found.append((kind, number, lines[:number] + lines[number + 1:]))
                continue
            behind = next((n for n in range(number + 1, min(number + 20, len(lines)))
                           if re.match(pattern, lines[n]) or not lines[n].startswith("  - ")), None)
            if behind and re.match(pattern, lines[behind]) and lines[behind] != line:
                swapped = list(lines)
                swapped[number], swapped[behind] = lines[behind], line
                found.append((kind, number, swapped))
    # of each kind alike
    chosen = []
    for kind in kinds:
        own = [m for m in found if m[0] == kind]
        chosen += chance.sample(own, min(len(own), most // len(kinds) + 1))
    return chosen


def judge(lines):
    """found, proved by two programs, proved, undecided or refused."""
    plan, certificate = folder / "mutant.yaml", folder / "mutant.certificate"
    certificate.unlink(missing_ok=True)
    plan.write_text("\n".join(lines) + "\n")
    run = subprocess.run(["timeout", "60", os.environ.get("SWSIM", "./swsim"), "verify", "-q", "--no-fix", f"--certificate={certificate}", plan],
                         capture_output=True, text=True)
    if run.returncode == 1:
        return "found"
    if run.returncode != 0:
        return "refused" if run.returncode == 3 else "undecided"
    checked = subprocess.run([swcheck, plan, certificate], capture_output=True, text=True) if certificate.exists() else None
    return "equivalent" if checked and checked.returncode == 0 else "proved"


verdicts = ("found", "equivalent", "proved", "undecided", "refused")
table = {kind: dict.fromkeys(verdicts, 0) for kind in kinds}
programs = alarms = 0
for case, ranks in cases:
    recording, plan = folder / f"{case}.swr", folder / f"{case}.yaml"
    program = [here / "dry_program.py", case]
    launcher = [] if ranks == 1 else ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks]
    run = swsim("record", "--device=none", "--host-accesses", "-o", recording, "--", sys.executable, *launcher, *program)
    made = swsim("import", "-q", "-o", plan, recording)
    if not check(f"{case}: is recorded", run.returncode == 0 and made.returncode == 0, run.stderr[-2000:] + made.stderr):
        continue
    lines = plan.read_text().splitlines()
    right = judge(lines)
    programs += 1
    alarms += right == "found"
    check(f"{case}: no alarm", right in ("equivalent", "proved"), right)
    begin = time.monotonic()
    for kind, number, changed in mutants(lines):
        verdict = judge(changed)
        table[kind][verdict] += 1
        if verdict in ("proved", "undecided"):
            comment(f"{case}: {verdict} without {lines[number].strip()[:100]}")
        if time.monotonic() - begin > 120:
            comment(f"{case}: no more mutants, for want of time")
            break
comment(f"{programs} right programs, {alarms} alarms")
for kind, row in table.items():
    comment(f"{kind}: {sum(row.values())} mutants, " + ", ".join(f"{count} {name}" for name, count in row.items() if count))
total = {name: sum(row[name] for row in table.values()) for name in verdicts}
comment("all: " + ", ".join(f"{count} {name}" for name, count in total.items()))
check("some mutants are refuted", total["found"] > 0, table)
check("some collectives out of order, too", table["collective"]["found"] > 0 or not sum(table["collective"].values()), table)
done()

# SPDX-License-Identifier: Apache-2.0
# What operations read and write, from PyTorch's ExecutionTraceObserver: accesses.py does something with a tensor that gloo still
# sends, reduces or receives; verify must call it a race where it is one, and prove it where it is a view or another tensor.
import subprocess, sys, time

from tap import check, done, folder, here, needs, skip, swsim

needs("torch", "torch.distributed")
from accesses import cases

port = str(20000 + time.time_ns() // 1000 % 30000)
jobs = [subprocess.Popen([sys.executable, "-W", "ignore", here / "accesses.py", str(rank), "2", folder, port], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT) for rank in range(2)]
told = "".join(job.communicate(timeout=300)[0].decode() for job in jobs)
if not check("the cases are recorded", all(job.returncode == 0 for job in jobs), told):
    done()
for case, (called, middle, races) in cases.items():
    plan = folder / f"{case}.yaml"
    made = swsim("import", "--force", "-o", plan, folder / case)
    verdict = swsim("verify", "--no-fix", plan)
    if races:
        right = verdict.returncode == 1 and "race, always" in verdict.stdout
    else:
        right = verdict.returncode == 0 and "proved     for every" in verdict.stdout
    check(f"{case}: {middle} is {'a race' if races else 'none'}", right, made.stderr + verdict.stdout + (plan.read_text() if plan.exists() else ""))
done()

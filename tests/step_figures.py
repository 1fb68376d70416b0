# SPDX-License-Identifier: Apache-2.0
"""What repeating one step and communication without time say of traces of real jobs, against what the traces measured.

    step_figures.py SWSIM TRACE...            lines: what, trace, step, predicted or gained, measured or exposed (ns)
    step_figures.py --forms SWSIM STEP PATH   the period by the host programs of that step and by the pipeline (ns)
"""
import gzip, json, re, subprocess, sys

def run(*args, text=None):
    return subprocess.run(args, input=text, capture_output=True, text=True, check=True).stdout

def makespan(swsim, plan):
    return json.loads(run(swsim, "predict", "--json", "-", text=plan).splitlines()[0])["makespan_ns"]

def repeated(plan, times):
    """The plan with the step of each thread executed so many times; the time up to its first step is no part of it."""
    out, threads, begun = [], False, True
    for line in plan.splitlines():
        if not line.startswith(" "):
            threads = line == "threads:"
        if threads and re.match(r"  \S.*:$", line):
            begun = False
        elif threads and line.startswith("  - "):
            if not begun and not re.match(r"  - \{host: [^,}]*\}$", line):
                out.append(f"  - repeat: {times}\n    body:")
                begun = True
            line = "  " + line if begun else line
        out.append(line)
    return "\n".join(out) + "\n"

def without_communication(plan):
    return re.sub(r"(- \{(?:launch: nccl|collective: )[^}]*?), time: [^,}]*", r"\1", plan)

def union(spans):
    out = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out

def length(spans):
    return sum(end - begin for begin, end in spans)

def read(path):
    with gzip.open(path) as file:
        events = json.load(file)
    events = events["traceEvents"] if isinstance(events, dict) else events
    events = [e for e in events if e.get("ph") == "X"]
    steps, work, calls = {}, [], {}
    for e in events:
        begin, dur = round(float(e["ts"]) * 1000), round(float(e["dur"]) * 1000)
        step = re.match(r"ProfilerStep#(\d+)", e["name"])
        category = e.get("cat", "").lower()
        if step and "gpu" not in category:
            steps[int(step[1])] = (begin, begin + dur)
        correlation = e.get("args", {}).get("correlation")
        if category in ("runtime", "cuda_runtime", "cuda_driver"):
            calls[correlation] = begin
        elif category in ("kernel", "gpu_memcpy", "gpu_memset"):
            work.append((begin, begin + dur, "nccl" in e["name"].lower(), correlation))
    return steps, [(b, e, n, calls.get(c, b)) for b, e, n, c in work]

def exposed(work):
    """Time in which communication runs and nothing else does."""
    rest = union((b, e) for b, e, nccl, _ in work if not nccl)
    return length(union([(b, e) for b, e, _, _ in work])) - length(rest)

def main(swsim, traces):
    for trace in traces:
        steps, work = read(trace)
        name = trace.rsplit("/", 1)[-1].split(".")[0]
        for step, (begin, end) in sorted(steps.items()):
            plan = run(swsim, "import", "-q", f"--steps={step}..{step}", trace)
            others = [e - b for s, (b, e) in steps.items() if s != step]
            print("repeated", name, step, period(swsim, plan), sum(others) // len(others))
            own = [w for w in work if begin <= w[3] < end]
            if any(nccl for _, _, nccl, _ in own):
                gain = makespan(swsim, plan) - makespan(swsim, without_communication(plan))
                print("communication", name, step, gain, exposed(own))

def period(swsim, plan):
    return (makespan(swsim, repeated(plan, 8)) - makespan(swsim, repeated(plan, 2))) // 6

def forms(swsim, step, path):
    pipeline = run(swsim, "import", "-q", "--form=pipeline", path)
    predicted = json.loads(run(swsim, "predict", "--json", "-", text=pipeline).splitlines()[0])
    print(period(swsim, run(swsim, "import", "-q", f"--steps={step}..{step}", path)), predicted["iteration_ns"]["mean"])

if sys.argv[1] == "--forms":
    forms(*sys.argv[2:])
else:
    main(sys.argv[1], sys.argv[2:])

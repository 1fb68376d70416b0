# SPDX-License-Identifier: Apache-2.0
"""Predictions of plans imported from traces of real jobs, against what the traces measured; times in ns.

    step_figures.py replay SWSIM PATH...       the plan as it is: trace, predicted, measured
    step_figures.py collectives SWSIM PATH...  NCCL kernels of each rank, waiting included: trace, rank, predicted, measured
    step_figures.py steps SWSIM TRACE...       each step repeated, and without communication: what, trace, step, predicted
                                               or gained, measured mean of the others or exposed
    step_figures.py loader SWSIM TRACE OTHER   the pipeline without its DataLoader, against the steps of the other trace:
                                               predicted, mean and median measured
    step_figures.py forms SWSIM STEP PATH      the period by the host programs of that step, and by the pipeline
"""
import gzip, json, os, re, sqlite3, statistics, subprocess, sys, tempfile

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
    flags = sorted(set(re.findall(r"- \{(?:signal|await): ([^,}]*)", plan)))
    if flags:  # each execution of the step has flags of its own
        out.append("flags: {" + ", ".join(f"{flag}: {{scope: iteration}}" for flag in flags) + "}")
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

def named(path):
    return os.path.basename(path.rstrip("/")).split(".")[0]

def replay(swsim, *paths):
    for path in paths:
        with tempfile.NamedTemporaryFile(suffix=".yaml") as plan:
            report = json.loads(run(swsim, "import", "-q", "--report", "--json", "-o", plan.name, path))
            predicted = subprocess.run([swsim, "predict", "--json", plan.name], capture_output=True, text=True)
        measured = max(rank["measured_ns"] for rank in report["ranks"])
        if predicted.returncode:
            print("refused", named(path), f"{report['unexplained']:.3f}", measured)
        else:
            print("replayed", named(path), json.loads(predicted.stdout.splitlines()[0])["makespan_ns"], measured)

def measured_collectives(path):
    """Per rank: the time of its NCCL kernels, as the trace has it."""
    if os.path.isdir(path):
        return [time for file in sorted(os.listdir(path)) for time in measured_collectives(os.path.join(path, file))]
    if ".sqlite" not in path:
        return [sum(end - begin for begin, end, nccl, _ in read(path)[1] if nccl)]
    with tempfile.NamedTemporaryFile() as file:
        with gzip.open(path) as packed:
            file.write(packed.read())
        file.flush()
        return [time for time, in sqlite3.connect(file.name).execute(
            'SELECT sum("end" - start) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName '
            "WHERE s.value LIKE '%nccl%' GROUP BY globalPid ORDER BY globalPid")]

def collectives(swsim, *paths):
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            plan, db = os.path.join(folder, "plan.yaml"), os.path.join(folder, "runs.db")
            run(swsim, "import", "-q", "-o", plan, path)
            run(swsim, "predict", "-q", "--db", db, plan)
            rows = sqlite3.connect(db).execute(
                "SELECT a.rank, sum(s.end_ns - s.start_ns) FROM span s JOIN agent a ON a.id = s.agent WHERE a.kind = 'stream' "
                "AND (s.task LIKE '%nccl%' AND s.kind = 'device' OR s.cause = 'collective peer') GROUP BY 1 ORDER BY 1").fetchall()
        for (rank, predicted), measured in zip(rows, measured_collectives(path)):
            print("collectives", named(path), rank, predicted, measured)

def loader(swsim, trace, other):
    plan = run(swsim, "import", "-q", "--form=pipeline", trace)
    predicted = json.loads(run(swsim, "predict", "--json", "--what-if=DataLoader=0x", "-", text=plan).splitlines()[-1])
    lengths = [end - begin for begin, end in read(other)[0].values()]
    print("loader", predicted["iteration_ns"]["mean"], int(statistics.mean(lengths)), int(statistics.median(lengths)))

def steps(swsim, *traces):
    for trace in traces:
        ranges, work = read(trace)
        name = named(trace)
        for step, (begin, end) in sorted(ranges.items()):
            plan = run(swsim, "import", "-q", f"--steps={step}..{step}", trace)
            others = [e - b for s, (b, e) in ranges.items() if s != step]
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

{"replay": replay, "collectives": collectives, "steps": steps, "loader": loader, "forms": forms}[sys.argv[1]](*sys.argv[2:])

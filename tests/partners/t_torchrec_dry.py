# SPDX-License-Identifier: Apache-2.0
# TorchRec's own pipelines on two ranks of the device that is not there, beside our plans of them: streams, waits, order of
# pushes, waits of the host, copies and collectives of an iteration in the middle. Each recording is proved, too.
#
# What a stream waits for is compared as what it leads to: for each pair of tasks A and B, after which instance of A
# an instance of B begins. What differs must be what DIFFERENCES explains. t_torchrec_dry.py PIPELINE... runs these alone.
import importlib.metadata, json, os, pathlib, re, subprocess, sys

from tap import check, comment, done, folder, here, needs, skip, swsim

needs("torch")
import torch

if torch.version.cuda is None:
    skip("this PyTorch is not for CUDA")
    done()
fbgemm = sorted(pathlib.Path(sys.prefix).glob("fbgemm-gpu/*"))
packages = {package.metadata["Name"].lower() for package in importlib.metadata.distributions()}
if "torchrec" not in packages or not fbgemm and "fbgemm-gpu" not in packages:
    skip("TorchRec or FBGEMM for CUDA is not here")
    done()
environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=os.pathsep.join(map(str, fbgemm)), PYTHONWARNINGS="ignore")
plans = here.parent.parent / "plans" / "torchrec"
AT = 4  # the batch that is looked at, of eight
PIPELINES = ("base", "pt2", "sparse_dist", "sparse_dist.after_forward", "sparse_dist_lite", "fused_sparse_dist",
             "fused_sparse_dist.new", "fused_sparse_dist.current", "fused_sparse_dist.after_data_dist", "semi_sync",
             "semi_sync.start", "prefetch", "comp_autograd", "staged", "eval_sparse_dist", "eval_fused_sparse_dist",
             "eval_fused_sparse_dist.prefetch")
LATER = r"(\w+) begins behind (H2D|InputDistStart|EmbLookup)\((\d)\), in the plan \2\((-?\d)\)"
DIFFERENCES = [  # pipelines, what differs, why
    (".*", "InputDistStart: the host waits for .*",
     "the splits are sums over the ids of a key, which the host reads (length_per_key): InputDistStart waits for them, too"),
    (".*", LATER, "wait_stream waits for all that has been pushed, copy, exchange or lookup of a later batch with it"),
    ("sparse_dist.*|prefetch|comp_autograd", r"AllReduce begins behind EmbUpdate\(0\).*"
     r"|InputDist(Start|Wait) begins behind EmbUpdate\(-2\), in the plan EmbUpdate\(-3\)",
     "the layers below the interaction have their gradients behind EmbUpdate; in a plan one Backward is before both"),
    ("fused_sparse_dist.current", r"(ZeroGrad|WaitBatch) begins behind OutputDist\(-1\), in the plan OutputDist\(0\)",
     "collectives are on their communicator's stream, for which main waits in Forward"),
    ("fused_sparse_dist.after_data_dist", r"EmbLookup begins behind (InputDistStart\(0\)|AllReduce\(-2\)).*",
     "collectives are on their communicator's stream: the lookup does not queue behind the splits"),
    ("pt2", "without work in the program: LoadBatch", "loading is the host's"),
    ("comp_autograd", "without work in the program: BackwardRest", "driven without its compiler, which moves GradDist"),
    ("prefetch", r"EmbPrefetch begins behind \w+\(-[23]\), in the plan .*",
     "TorchRec's prefetch stream waits for no lookup: FBGEMM counts the users of each row in the cache instead"),
]
VIOLATED = {  # the embeddings have no record_stream; rows that the cache keeps apart are one buffer
    "fused_sparse_dist": r"race, always: .*Forward\(\d\) aten.cat",
    "fused_sparse_dist.after_data_dist": r"race, always: .*Forward\(\d\) aten.cat",
    "prefetch": r"race, always: .*(EmbPrefetch\(\d\).*split_embedding|split_embedding.*EmbPrefetch\(\d\))",
}


class Run:
    """What one rank pushes: (TASK, BATCH) in the order of their first pushes, and of each what is done before it begins.
    Sets of operations are bits of a number."""

    def __init__(self):
        self.order, self.operations, self.before, self.streams = [], {}, [], {}
        self.syncs, self.copies, self.collectives, self.exchanges = {}, {}, [], {}
        self.stream, self.event, self.waited = {}, {}, []

    def push(self, stream, task, behind=0):
        if task not in self.operations:
            self.order.append(task)
        self.operations.setdefault(task, []).append(len(self.before))
        self.streams.setdefault(task, []).append(stream)
        before = self.stream.get(stream, 0) | behind
        self.stream[stream] = before | 1 << len(self.before)
        self.before.append(before)
        return self.stream[stream]

    def wait(self, stream, event):
        self.stream[stream] = self.stream.get(stream, 0) | self.event.get(event, 0)

    def is_before(self, one, other):
        """All of one is done when the other begins; if that is an exchange, when its collective does."""
        bits = sum(1 << i for i in self.operations[one])
        return all(self.before[i] & bits == bits for i in self.exchanges.get(other, self.operations[other]))

    def behind(self, name, names):
        """The latest batch of each task that is before this task's, counted from its own batch."""
        found = {}
        for other in names:
            there = [batch for task, batch in self.operations if task == other and self.is_before((task, batch), (name, AT))]
            if there:
                found[other] = max(there) - AT
        return found

    def window(self, names):
        """From Forward to Forward."""
        order = [task for task in self.order if task[0] in names]
        cut = [order.index(("Forward", AT + more)) for more in (0, 1)]
        return [(name, batch - AT) for name, batch in order[cut[0]:cut[1]]]


def of_plan(path):
    """The plan as the machine has it, over as many iterations as the program runs."""
    plan = json.loads(swsim("export", "--format=json", path).stdout)
    lines = json.loads(swsim("lower", "--json", "--ranks=2", path).stdout)["lines"]
    tasks, order, name = {}, [], None
    for line in lines[1:lines.index("rank 1")]:
        if "enqueue order " in line:
            order = line.split("enqueue order ")[1].split(", ")
        elif line.startswith("  task "):
            name = line.split()[1].rstrip(",")
            tasks[name] = []
        else:
            tasks[name].append(line.strip())
    run, comm = Run(), 0
    for period in range(12):
        for name in order:
            batch = period - plan["schedule"][name]["stage"]
            if not 0 <= batch < 8:
                continue
            for line in tasks[name]:
                word, on = line.split()[0], re.search(r" on (\w+)", line)
                if word == "wait":
                    other, back = re.match(r"wait the event of (\w+)\(i(-\d+)?\)", line).groups()
                    run.wait(on[1], (other, batch + int(back or 0)))
                elif word == "record":
                    run.event[name, batch] = run.stream[on[1]]
                elif word == "sync":
                    run.syncs.setdefault((name, batch), []).append(line.split()[1] if "device" in line else on[1])
                elif word == "collective":
                    kind = plan["schedule"][name]["work"]["collective"]
                    run.collectives.append((name, batch, kind))
                    comm = run.push(on[1], (name, batch), comm)
                elif word in ("launch", "copy"):
                    run.push(on[1], (name, batch))
                    if word == "copy":
                        run.copies[name, batch] = plan["schedule"][name]["work"]["copy"]
    return plan, run


class Names:
    """The tasks of a plan that calls of the program are: by what was open in Python, and by what they do. A task begins
    behind its last wait for another stream; the ids of a batch are taken from their exchange before that."""

    def __init__(self, tasks, threads):
        self.tasks, self.last, self.sent, self.waits = tasks, {}, set(), {}
        for calls in threads.values():
            for number, call in enumerate(calls):
                if "wait" in call and "at" in call:
                    self.waits[call["at"]] = number

    def task(self, thread, number, call):
        place = re.match(r"(\w+)\((\d+)\)", call.get("at", ""))
        if place:
            self.last[thread] = place[1], int(place[2])
        name, batch = self.last.get(thread, ("Begin", 0))
        what = call.get("collective", "") or call.get("launch", "")
        exchange = "group" in call or what.startswith("all_to_all")
        begun = number > self.waits.get(f"{name}({batch})", -1)
        if name in ("Backward", "EmbBackward"):
            if exchange:
                name = "GradDist"
            elif what.startswith("all_reduce"):
                name = "AllReduce"
            elif "backward_codegen" in what:
                name = "EmbUpdate" if "EmbUpdate" in self.tasks else "EmbBackward"
            elif name == "EmbBackward" or self.sent & {("GradDist", batch), ("AllReduce", batch)}:
                name = "Between"
        elif name == "StartLookup" or name == "EmbPrefetch" and not begun:
            name = "TakeIds"
        elif name == "Forward" and "LoadBatch" in self.tasks and ("EmbLookup", batch) not in self.sent:
            name = "InputDistWait" if ("InputDistStart", batch) in self.sent else "Between"
        elif name == "EmbLookup" and ("OutputDist", batch) in self.sent and not exchange:
            name = "Between"
        elif name == "EmbLookup" or name == "Forward" and exchange:
            name = "OutputDist" if exchange else "EmbLookup"
        elif name == "Forward" and "OutputDist" in self.tasks and not begun:
            name = "Between"
        self.sent.add((name, batch))
        return name, batch


def of_program(plan, tasks):
    """What the first rank's threads called; the awaits of the plan say in which order."""
    threads = {name: calls for name, calls in plan["threads"].items() if name.startswith("r1.")}
    at, given, run, names = dict.fromkeys(threads, 0), set(), Run(), Names(tasks, threads)
    while True:
        moved = False
        for thread, calls in threads.items():
            while at[thread] < len(calls):
                call = calls[at[thread]]
                if "await" in call and call["await"] not in given:
                    break
                at[thread] += 1
                moved = True
                pushed = not call.keys() & {"await", "signal"}
                task = names.task(thread, at[thread] - 1, call) if pushed else None
                if "at" in call and task[0] in tasks and run.waited:  # between two tasks: the second one waits
                    run.syncs.setdefault(task, []).extend(run.waited)
                    run.waited = []
                take(run, task, call, given)
        if not moved:
            break
    assert all(at[thread] == len(calls) for thread, calls in threads.items())
    return run


def take(run, task, call, given):
    stream = call.get("stream")
    if "signal" in call:
        given.add(call["signal"])
    elif "record" in call:
        run.event[call["record"]] = run.stream.get(stream, 0)
    elif "wait" in call:
        run.wait(stream, call["wait"])
        if call.get("at", "").startswith("WaitBatch"):
            run.push(stream, task)
    elif call.get("sync") == "device" and "at" not in call:
        run.waited.append("device")
    elif "sync" in call and call["sync"] in ("stream", "device"):
        run.syncs.setdefault(task, []).append(stream or "device")
    elif "group" in call or "collective" in call:
        run.collectives.append((*task, "all_to_all" if "group" in call else call["collective"].split()[0]))
        run.exchanges.setdefault(task, []).append(len(run.before))
        run.push(stream, task)
    elif "launch" in call or "copy" in call:
        run.push(stream, task)
        if "copy" in call:
            run.copies.setdefault(task, call["copy"])


def roles(program, plan, tasks):
    """The names of the plan's streams for those of the program, by the tasks that both have on them; collectives of the
    program are on the stream of their communicator."""
    found = {}
    for name in tasks:
        if program.operations[name, AT][0] not in program.exchanges.get((name, AT), []):
            found.setdefault(program.streams[name, AT][0], set()).add(plan.streams[name, AT][0])
    return found


def record(pipeline):
    recording, plan = folder / f"{pipeline}.swr", folder / f"{pipeline}.yaml"
    command = [os.environ.get("SWSIM", "./swsim"), "record", "--device=none", "--values", "-o", recording, "--", sys.executable,
               "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", here / "torchrec_streams.py", pipeline]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment)
    if "no such pipeline" in run.stdout:
        skip(f"{pipeline}: not in this version of TorchRec")
        return None
    if not check(f"{pipeline}: runs", run.returncode == 0 and run.stdout.count("done") == 2, run.stderr[-4000:]):
        return None
    made = swsim("import", "-q", "--queries=none", "-o", plan, recording)
    if not check(f"{pipeline}: is imported", made.returncode == 0, made.stderr):
        return None
    verdict = swsim("verify", "--no-fix", plan)
    if pipeline in VIOLATED:
        lines = verdict.stdout.splitlines()  # a slow search tells of the violation before it has the verdict
        last = max((n for n, line in enumerate(lines) if line.startswith(pipeline)), default=0)
        head = "\n".join(lines[last:last + 2])
        check(f"{pipeline}: has a race", verdict.returncode == 1 and re.search(VIOLATED[pipeline], head), verdict.stdout[:3000])
    else:
        check(f"{pipeline}: is proved", verdict.returncode == 0, verdict.stdout[:3000])
    return json.loads(swsim("export", "--format=json", plan).stdout)


def compare(pipeline, recorded):
    """Checks what differs; the row of the table."""
    text, ours = of_plan(plans / f"{pipeline}.yaml")
    tasks = list(text["schedule"])
    theirs = of_program(recorded, tasks)
    both = [name for name in tasks if (name, AT) in theirs.operations and (name, AT) in ours.operations]
    streams = roles(theirs, ours, both)
    told = {"streams": [f"without work in the program: {name}" for name in tasks if name not in both] +
                       [f"stream {stream} is {' and '.join(sorted(names))}" for stream, names in streams.items() if len(names) > 1],
            "waits": [], "order": [], "host": [], "copies": []}
    for name in both:
        one, other = theirs.behind(name, both), ours.behind(name, both)
        told["waits"] += [f"{name} begins behind {task}({one.get(task)}), in the plan {task}({other.get(task)})"
                          for task in both if one.get(task) != other.get(task)]
        if (name, AT) in theirs.syncs or (name, AT) in ours.syncs:
            one = {next(iter(streams.get(s, {s}))) for s in theirs.syncs.get((name, AT), [])}
            other = set(ours.syncs.get((name, AT), []))
            if one != other:
                told["host"].append(f"{name}: the host waits for {sorted(one)}, in the plan {sorted(other)}")
        if theirs.copies.get((name, AT)) != ours.copies.get((name, AT)) and (name, AT) in ours.copies:
            told["copies"].append(f"{name} copies {theirs.copies.get((name, AT))}, in the plan {ours.copies[name, AT]}")
    main = [name for name in both if text["schedule"][name].get("thread_group") is None]  # others come when they like
    if theirs.window(main) != ours.window(main):
        told["order"].append(f"order {theirs.window(main)}, in the plan {ours.window(main)}")
    one, other = ({(name, kind) for name, batch, kind in run.collectives if batch == AT and name in both} for run in (theirs, ours))
    if one != other:
        told["order"].append(f"collectives {sorted(one)}, in the plan {sorted(other)}")
    row = {column: "equal" for column in told}
    for column, lines in told.items():
        for line in lines:
            row[column] = explain(pipeline, line, row[column])
    row["streams"] = ", ".join(sorted(name for names in streams.values() for name in names)) + \
        ("" if row["streams"] == "equal" else f"; {row['streams']}")
    return row


def explain(pipeline, line, known):
    for names, what, why in DIFFERENCES:
        found = re.fullmatch(what, line)
        if re.fullmatch(names, pipeline) and found and (what != LATER or int(found[3]) > int(found[4])):
            comment(f"{pipeline}: {line}: {why}")
            number = f"({DIFFERENCES.index((names, what, why)) + 1})"
            return number if known == "equal" else known if number in known else f"{known} {number}"
    check(f"{pipeline}: {line}", False)
    return "differs"


rows = []
for pipeline in sys.argv[1:] or PIPELINES:
    recorded = record(pipeline)
    if recorded:
        row = compare(pipeline, recorded)
        check(f"{pipeline}: as its plan, but for what is explained", "differs" not in " ".join(row.values()))
        rows.append((pipeline, row))
comment("pipeline | streams | waits | order | waits of the host | copies")
for pipeline, row in rows:
    comment(" | ".join([pipeline, row["streams"], row["waits"], row["order"], row["host"], row["copies"]]))
for number, (_, _, why) in enumerate(DIFFERENCES, 1):
    comment(f"({number}) {why}")
done()

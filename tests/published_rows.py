# SPDX-License-Identifier: Apache-2.0
"""Every row of the published figures of pipeline schedules, against the predictions of swsim.

    published_rows.py SWSIM FOLDER      FOLDER has schedules/cases.csv, zero-bubble/targets.csv and pytorch/

A line for each row, FILE:LINE STATE SCHEDULE: TEXT, then a count for each file. STATE is

    equal     all figures of the row, to four digits; makespans, counts and bytes exactly
    better    of a schedule that is found: less than was published
    near      by how much TEXT says, with the reason; the test holds it to that
    none      the row has no figure that a schedule and its costs determine: TEXT says why
    WRONG     none of these; a row of an unknown kind is wrong, too
"""
import csv, functools, json, re, subprocess, sys

swsim, folder = sys.argv[1:3]
FREE = "p2p: {fifo: edge}\n"
MIB = 1 << 20
RULES = {"1F1B": "1f1b", "ZB-H1": "zb_h1", "ZB-H2": "zb_h2"}
FOUND = {"ZB-1p": "zb_1p", "ZB-2p": "zb_2p", "ZB-V": "zbv_auto"}


class Wrong(Exception):
    pass


def expect(what, found, expected):
    if found != expected:
        raise Wrong(f"{what} {found}, expected {expected}")


def run(*args, text):
    done = subprocess.run((swsim, *args), input=text, capture_output=True, text=True)
    if done.returncode:
        raise Wrong(done.stderr.strip().splitlines()[0])
    return done.stdout


@functools.lru_cache(None)
def predicted(keys, schedule, ranks, microbatches, chunks=None):
    chunks = f", chunks: {chunks}" if chunks else ""
    plan = f"swplan: 1\n{keys}generate: {{schedule: {schedule}, ranks: {ranks}, microbatches: {microbatches}{chunks}}}\n"
    return json.loads(run("predict", "--json", "-", text=plan).splitlines()[0])


def times(**ns):
    return "times: {" + ", ".join(f"{key}: {value}ns" for key, value in ns.items()) + "}\n"


def bubbles(prediction):
    return [rank["span_ns"] - rank["busy_ns"] for rank in prediction["pipeline"]["ranks"]]


def most(prediction):
    return [rank["memory"]["most_bytes"] for rank in prediction["pipeline"]["ranks"]]


# ---- with the costs of real models, in microseconds --------------------------------------------------


def span_of(name, p, m, f, b, w, c, per_chunk, chunks=None):
    """The span in us, and the work of a rank; costs of a stage, or of one of its two chunks."""
    work = m * (f + b + w) * (2 if per_chunk else 1)
    parts = chunks or 1
    scale = 2 if per_chunk and name != "ZB-V" else 1
    each = [1000 * scale * cost // parts for cost in (f, b, w)]
    keys = times(F=each[0], I=each[1], W=each[2]) + f"p2p: {{fifo: edge, latency: {c}us}}\n"
    schedule = RULES.get(name) or FOUND.get(name) or "interleaved_1f1b"
    return predicted(keys, schedule, p, m, chunks)["pipeline"]["span_ns"] / 1000, work


def four(rate):
    return f"{rate:.4f}"


def found_row(rate, published):
    if four(rate) == published:
        return "equal", published
    if rate > float(published):
        raise Wrong(f"{four(rate)}, published {published}")
    return "better", f"{four(rate)}, published {published}"


def costs_row(row):
    name = row["schedule"]
    number = {key: int(value) for key, value in re.findall(r"\b(p|m|T_F|T_B|T_W|T_comm)=(\d+)", row["inputs"])}
    per_chunk, layers = "per-chunk" in row["inputs"], re.search(r"(\d+) layers", row["inputs"])
    # One layer a chunk; embedding and head are a layer each.
    chunks = None if name != "1F1B-I" else (int(layers[1]) + 2) // number["p"] if layers else 2
    span, work = span_of(name, *number.values(), per_chunk, chunks)
    published = re.search(r"bubble_rate=([.\d]+)", row["expected"])[1]
    cost = re.search(r"cost=(\d+)", row["expected"])
    rate = 1 - work / span
    if name in FOUND:
        return found_row(rate, published)
    if name == "1F1B-I" and four(rate) != published:
        # In the published model the first microbatch of a group alone waits for the message from the last rank to the first.
        expect("rate without p messages", four(1 - work / (span - number["p"] * number["T_comm"])), published)
        return "near", f"{four(rate)}, published {published}: p messages more, as all microbatches wait from rank p - 1 to rank 0"
    expect("rate", four(rate), published)
    if cost:
        expect("span", span, float(cost[1]))
    return "equal", published


def target_row(row):
    number = [int(row[key]) for key in ("p", "m", "T_F", "T_B", "T_W", "T_C")]
    span, work = span_of(row["schedule"], *number, row["family"] == "vshape")
    if row["schedule"] in FOUND and span != float(row["makespan"]):
        return found_row(1 - work / span, row["bubble_rate"])
    expect("span", span, float(row["makespan"]))
    expect("rate", four(1 - work / span), row["bubble_rate"])
    return "equal", row["makespan"]


# ---- closed forms ------------------------------------------------------------------------------------

UNIT = times(F=1000, I=1000, W=1000) + FREE
HELD = "stages: {activation: 2MiB, left: 1MiB}\n"
SIZES = ((2, 8), (4, 12), (8, 24))


def table_row(row):
    name = row["schedule"]
    for p, m in SIZES:
        prediction = predicted(UNIT + HELD, RULES[name], p, m)
        bubble = {"1F1B": 3, "ZB-H1": 1, "ZB-H2": 0}[name] * (p - 1) * 1000
        held = {"1F1B": [(p - i, 0) for i in range(p)], "ZB-H1": [(p - i, i) for i in range(p)],
                "ZB-H2": [(2 * p - 2 * i - 1, 2 * i) for i in range(p)]}[name]
        expect("bubble", max(bubbles(prediction)), bubble)
        expect("memory", most(prediction), [(2 * whole + left) * MIB for whole, left in held])
    return "equal", f"{len(SIZES)} sizes"


def makespan_row(row):
    p, m = map(int, re.search(r"p=(\d+) m=(\d+)", row["inputs"]).groups())
    prediction = predicted(UNIT + HELD, {"ZB-V": "zbv"}.get(row["schedule"]) or RULES[row["schedule"]], p, m)
    expect("makespan", prediction["makespan_ns"], 1000 * int(re.search(r"makespan=(\d+)", row["expected"])[1]))
    if row["schedule"] == "ZB-V":
        expect("span", prediction["pipeline"]["span_ns"], 1000 * int(re.search(r"span=(\d+)", row["expected"])[1]))
        expect("memory", most(prediction), [int(re.search(r"peak=(\d+)", row["expected"])[1]) * 2 * MIB] * p)
    return "equal", row["expected"].split(";")[0]


def controlled_row(row):
    kinds = {"V-Min": ("v_min", lambda p: (p + 4) // 3, 2 / 3), "V-Half": ("v_half", lambda p: (p + 2) // 2, 1 / 2),
             "V-ZB": ("zbv_auto", lambda p: p, 0)}
    for name in row["schedule"].split("/"):
        schedule, held, part = kinds[name]
        for p, m in SIZES[1:]:
            prediction = predicted(UNIT + HELD, schedule, p, m)
            if max(most(prediction)) > held(p) * 4 * MIB:
                raise Wrong(f"{name}: {max(most(prediction))} bytes")
            bubble = prediction["pipeline"]["span_ns"] / 1000 - 6 * m
            if bubble > part * 6 * (p - 1):
                raise Wrong(f"{name}: a bubble of {bubble} at p {p} m {m}")
    return "equal", "no more memory, no longer bubble, 4 x 12 and 8 x 24"


def dualpipe_row(row):
    if "makespan" in row["expected"]:
        expect("makespan", predicted(UNIT, "dualpipe", 8, 20)["makespan_ns"], 66000)
        return "equal", "66"
    schedule, ranks, m = ("dualpipe", 8, 20) if row["schedule"] == "DualPipe" else ("dualpipe_v", 4, 10)
    for both in (2000, 2500, 3000):
        prediction = predicted(times(F=1000, I=1000, W=1000, OVERLAP_F_B=both) + FREE, schedule, ranks, m)
        found = prediction["makespan_ns"] - min(rank["busy_ns"] for rank in prediction["pipeline"]["ranks"])
        expect(f"bubble with F&B {both}", found, 3 * (both + 2000 - 3000))
    prediction = predicted(UNIT + HELD, schedule, ranks, m)
    expect("activations", max(most(prediction)), 9 * 2 * MIB)
    return "equal", "PP 8, F&B 2, 2.5, 3: bubbles 3, 4.5, 6; 9 activations"


def pytorch_row(row):
    path = folder + "/pytorch/zb1p_2rank_2stagep_"
    compute = open(path + "compute.csv").read()
    if row["schedule"] == "same, lowered":
        expect("text", run("export", "--format=csv", "--merge", "--comms=early", "-", text=compute), open(path + "comms.csv").read().replace("\r", ""))
        return "equal", "byte for byte"
    prediction = predicted(UNIT + "stages: {activation: 2MiB}\n", "interleaved_zero_bubble", 2, 8, 2)
    expect("makespan", prediction["makespan_ns"], 49000)
    expect("columns", compute.splitlines()[0].count(",") + 1, 49)
    expect("memory", most(prediction), [4 * 2 * MIB] * 2)
    return "equal", "49, 4 activations"


def interleaved_row(row):
    for d, v in ((4, 2), (4, 3), (8, 2)):
        m = 4 * d
        prediction = predicted(UNIT + HELD, "interleaved_1f1b", d, m, v)
        if "Table 1" in row["source"]:
            expect("bubble", max(bubbles(prediction)), (d - 1) * 3000)
            continue
        made = run("generate", "interleaved_1f1b", f"-p{d}", f"-m{m}", f"-v{v}", text="")
        csv_rows = run("export", "--format=csv", "--comms=early", "-", text=made).splitlines()
        for i, words in enumerate(csv_rows):
            passes = [word for word in words.split(",") if re.match(r"\d+[FBIW]\d", word)]
            expect(f"warm-up of rank {i}", next(n for n, word in enumerate(passes) if "F" not in word), d * (v - 1) + 2 * (d - i) - 1)
        expect("memory", most(prediction)[0], (d * v + d - 1) * 2 * MIB)
    return "equal", "1F1B-I; the other schedules of this paper are not ours"


# ---- models ------------------------------------------------------------------------------------------

GPT = {"22B": "hidden: 6144, heads: 64, sequence: 2048, microbatch: 4, tensor: 8",
       "175B": "hidden: 12288, heads: 96, sequence: 2048, microbatch: 1, tensor: 8"}
LAYERS = {"22B": 48, "175B": 96}
BOTH = ", sequence_parallel: true, selective: true"


def memory(model, layers, more="", keys="", schedule=("gpipe", 1, 1)):
    return predicted(f"model: {{layers: {layers}, {model}{more}}}\n{keys}", *schedule)["pipeline"]["ranks"][0]["memory"]


def gib_row(row):
    name = row["inputs"].split()[0]
    schedule = ("gpipe", 1, 1) if name == "22B" else ("interleaved_1f1b", 8, 64, 3)
    key = "weights_and_state_bytes" if "params" in row["schedule"] else "most_activations_bytes"
    more = BOTH if "selective" in row["schedule"] else ""
    expect("bytes", memory(GPT[name], LAYERS[name], more, "", schedule)[key], float(row["expected"].split()[0]) * 1024 * MIB)
    return "equal", row["expected"]


def percent_row(row):
    name, what = row["inputs"].split()[0], row["schedule"].split()[1].rstrip(":")
    more, keys = {"sequence": (", sequence_parallel: true", ""), "selective": (", selective: true", ""), "both": (BOTH, ""),
                  "full": ("", "checkpoint: always\n")}[what]
    # Of a layer: what computes a pass once more holds one layer more.
    each = [memory(GPT[name], 2, *how)["most_activations_bytes"] - memory(GPT[name], 1, *how)["most_activations_bytes"]
            for how in ((more, keys), ("", ""))]
    percent, published = 100 * each[0] / each[1], float(row["expected"].split()[0])
    if abs(percent - published) > 0.15:
        raise Wrong(f"{percent:.2f}%, published {published}%")
    if round(percent, 2) == published:
        return "equal", row["expected"]
    return "near", f"{percent:.2f}%, published {published}%: read from a figure, within 0.15 points of its own formula"


def megatron_row(row):
    s, b, h, f, v, t, layers = 512, 2, 256, 640, 1000, 2, 8
    sizes = f"hidden: {h}, heads: 4, sequence: {s}, microbatch: {b}, ffn: {f}, tensor: {t}, vocab: {v}" + BOTH
    for schedule, p, m, chunks in (("gpipe", 1, 1, None), ("1f1b", 4, 2, None), ("1f1b", 4, 8, None), ("interleaved_1f1b", 4, 8, 2)):
        passes = s * b * (18 * h + 4 * f) * layers / t
        ends = (8 * s * b * p + s * b * h * p) / t
        more = 1 + (p - 1) / (p * chunks) if chunks else min(1, m / p)
        # Of an interleaved schedule the formula counts the embedding with each chunk, not with the first one alone.
        model = sizes.replace(f", vocab: {v}", "") if chunks else sizes
        expected = passes * more + (0 if chunks else ends * more) + (4 * s * b * h * (1 + v / h) / t if p == 1 else 0)
        expect(f"bytes of {schedule}, {p} ranks", memory(model, layers, "", "", (schedule, p, m, chunks))["most_activations_bytes"],
               expected)
    return "equal", "p 1 and 4, m 2 and 8; interleaved without embedding"


def none(why):
    return lambda row: ("none", why)


# (source, schedule or inputs, what to do): the first that matches.
KINDS = [
    (r"Table 5 \+|Table 8", r"", costs_row),
    (r"Table 2", r"", table_row),
    (r"App\. B", r"", none("a lower bound of any order; no figure")),
    (r"closed form|rule of", r"", makespan_row),
    (r"README of sail-sg|HF space", r"", controlled_row),
    (r"inputs only", r"", none("inputs alone: nothing was published")),
    (r"DualPipe", r"", dualpipe_row),
    (r"pytorch artifacts", r"", pytorch_row),
    (r"PipeOffload", r"", interleaved_row),
    (r"calculon", r"^memory: ", gib_row),
    (r"calculon", r"^memory ", percent_row),
    (r"calculon|issue #21|torchrec", r"measured|Maglev", none("measured on GPUs; no times of passes were published")),
    (r"Megatron", r"^memory weights", none("norms, shared experts, and layers with and without experts in one model: `model:` has none of these")),
    (r"Megatron", r"^memory activation", megatron_row),
]


def cases_row(row):
    for source, schedule, judge in KINDS:
        if re.search(source, row["source"]) and re.search(schedule, row["schedule"]):
            return judge(row)
    raise Wrong("a row of an unknown kind")


def main():
    for name, judge in (("zero-bubble/targets.csv", target_row), ("schedules/cases.csv", cases_row)):
        counts = {}
        with open(f"{folder}/{name}", newline="") as file:
            for line, row in enumerate(csv.DictReader(file), 2):
                try:
                    state, told = judge(row)
                except (Wrong, KeyError, TypeError, ValueError) as error:
                    state, told = "WRONG", f"{type(error).__name__}: {error}"
                counts[state] = counts.get(state, 0) + 1
                print(f"{name.split('/')[1]}:{line} {state} {row['schedule']}: {told}", flush=True)
        print(f"{name}: {sum(counts.values())} rows,", ", ".join(f"{count} {state}" for state, count in sorted(counts.items())))


main()

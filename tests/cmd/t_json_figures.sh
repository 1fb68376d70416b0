#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The figures of --json are those that the same command prints for people, those of the store, or follow from the plan.
. "${srcdir:-.}/tests/tap.sh"
command -v python3 >/dev/null || skip_all "no python3 to read JSON"
plans=$srcdir/plans
hello=$plans/examples/hello.yaml

# asks COMMAND...: its JSON is in $dir/json, its text in $dir/text.
asks()
{
    "$@" >"$dir/text" 2>"$dir/err" </dev/null
    "$@" --json >"$dir/json" 2>"$dir/err" </dev/null
    test -s "$dir/json"
}
# holds EXPRESSION: of the objects `all`, the first of which is `o`. said(WORDS): the number behind WORDS in the text, in ns,
# bytes or as it stands; near(A, B): as the text rounds.
holds()
{
    python3 - "$dir" "$1" <<'END'
import json, re, sqlite3, sys
dir = sys.argv[1]
all = [json.loads(line) for line in open(dir + "/json")]
o = all[0]
text = open(dir + "/text").read()
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "KiB": 2 ** 10, "MiB": 2 ** 20, "%": 0.01, "": 1}
def said(words):
    number, unit = re.search(words + r" *=? *([0-9.]+) ?(ns|us|ms|s\b|B|KiB|MiB|%|)", text).groups()
    return float(number) * UNITS[unit]
def near(a, b):
    return abs(a - b) <= 0.006 * abs(b)
def rows(store, query):
    return sqlite3.connect(dir + "/" + store).execute(query).fetchall()
if not eval("(" + sys.argv[2] + ")"):
    sys.exit("%s\n%s\n%s" % (sys.argv[2], json.dumps(o)[:3000], text))
END
}

# same_bound: iterations and bytes of a rank, as verify has them
same_bound()
{
    "$SWSIM" verify --json --driver=clock "$plans/torchrec/sparse_dist.yaml" >"$dir/bound"
    "$SWSIM" predict -q "$plans/torchrec/sparse_dist.yaml" >"$dir/predicted"
    "$SWSIM" tune -q --budget=3 "$plans/torchrec/sparse_dist.yaml" >"$dir/tuned"
    python3 - "$dir" <<'END2'
import json, re, sys
bound, predicted, tuned = (open(sys.argv[1] + "/" + name).read() for name in ("bound", "predicted", "tuned"))
most = json.loads(bound)["in_flight"]
want = (most["iterations_max"], "%.0f MiB" % (most["bytes_max"] / 2 ** 20))
found = [(int(m[1]), m[2]) for m in (re.search(r"at most (\d+) iterations, (\S+ MiB) a rank", predicted),
                                     re.search(r"in flight at most +(\d+)[^\n]*\n  +bytes of a rank +(\S+ MiB)", tuned))]
sys.exit(0 if found == [want, want] else "%s, %s" % (want, found))
END2
}

# ---- verify ------------------------------------------------------------------------------------------

printf '%s\n' 'swplan: 1' 'threads:' '  r0.a: [{compute: x}, {compute: y}]' '  r0.b: [{compute: u}, {compute: v}]' >"$dir/two.yaml"
asks "$SWSIM" verify --no-reduction "$dir/two.yaml"
check "two threads of two steps: a square of states" holds 'o["states"] == 9 and o["transitions"] == 12'
asks "$SWSIM" verify --driver=clock "$hello"
check "in flight: no more than the slots, with the bytes of each" holds \
    'o["in_flight"]["bytes_max"] == o["in_flight"]["iterations_max"] * 5 * 2 ** 20'
asks "$SWSIM" verify --p2p=all "$plans/examples/one_f_one_b.yaml"
check "channels: step and bubble" holds '[(round(r["makespan_ns"] / 1e6, 1), round(100 * r["bubble_rate"], 2)) for r in o["p2p"]] ==
    [(float(a), float(b)) for a, b in re.findall(r"([0-9.]+) ms +([0-9.]+)%", text)]'

# ---- predict -----------------------------------------------------------------------------------------

asks "$SWSIM" predict -n 50 --driver=clock "$hello"
for figure in fill drain makespan; do
    check "predict: $figure" holds "near(o['${figure}_ns'], said('$figure'.replace('makespan', 'total')))"
done
check "throughput" holds 'near(o["throughput_per_s"], said("throughput"))'
check "mean and most in flight" holds 'abs(o["in_flight_mean"] - float(re.search(r"([0-9.]+) on average", text)[1])) <= 0.051'
check "most bytes in flight" holds 'near(o["in_flight_bytes_max"], float(re.search(r"in this run \d+, ([0-9.]+) MiB", text)[1]) * 2 ** 20)'
sed 's/input: {scope: iteration/&, bytes: 4MiB}\n  weights: {scope: shared/' "$hello" >"$dir/shared.yaml"
asks "$SWSIM" predict -n 50 --driver=clock "$dir/shared.yaml"
check "with a shared buffer, too" holds 'o["in_flight_bytes_max"] == (5 * o["in_flight_max"] + 4) * 2 ** 20 and
    near(o["in_flight_bytes_max"], float(re.search(r"in this run \d+, ([0-9.]+) MiB", text)[1]) * 2 ** 20)'
check "verify, predict and tune have one bound of what is in flight" same_bound
check "busy and idle are the whole" holds \
    'len(o["streams"]) == 3 and not [s for s in o["streams"].values() if abs(s["busy"] + sum(s["stall"].values()) - 1) > 1e-9]'
check "the over-time list has the most" holds \
    'max(p["iterations"] for p in o["in_flight"]) == o["in_flight_max"] and max(p["bytes"] for p in o["in_flight"]) == o["in_flight_bytes_max"]'
asks "$SWSIM" predict "$plans/examples/one_f_one_b.yaml"
check "rank programs: passes and waits are the span" holds \
    'not [r for r in o["pipeline"]["ranks"] if r["busy_ns"] + sum(r["idle_ns"].values()) != r["span_ns"] or r["last_ns"] - r["first_ns"] != r["span_ns"]]'
check "as long as the passes of the plan" holds '{r["busy_ns"] for r in o["pipeline"]["ranks"]} == {24000000}'
asks "$SWSIM" stages "$hello"
check "stages: the least depth" holds 'o["lds"] == said("LDS") == len(o["lds_example"]) and o["depth"] == said("Pipeline depth")'

# ---- stores ------------------------------------------------------------------------------------------

"$SWRUN" -q -n 30 --ranks=2 --db="$dir/runs.db" "$hello" >"$dir/null"
"$SWRUN" -q -n 30 --ranks=2 --serial --db="$dir/runs.db" "$hello" >"$dir/null"
asks "$SWSIM" runs "$dir/runs.db"
check "runs: spans and iterations as in the tables" holds \
    '[(r["run"], r["spans"]) for r in all] == rows("runs.db", "SELECT run, count(*) FROM span GROUP BY run") and [r["iterations"] for r in all] == [30, 30]'
asks "$SWSIM" watch "$dir/runs.db"
check "watch: all iterations in the time of the run" holds 'near(o["iterations_per_s"] * o["time_ns"] / 1e9, 30) and o["quiet_ns"] < 60e9'
asks "$SWSIM" compare "$dir/runs.db"
check "compare: the error is that of the times" holds \
    'abs(o["runs"][0]["predicted_ns"] / o["runs"][0]["measured_ns"] - 1 - o["runs"][0]["error"]) < 1e-9 and abs(o["runs"][0]["error"]) == o["worst_error"]'
check "each task once an iteration, but for those that the first ones ran ahead" holds \
    'not [t for s in o["runs"][0]["streams"].values() for t in s["tasks"].values() for k in ("measured", "predicted") if not 0.5 < t[k + "_count"] < 1.01]'
"$SWRUN" --json -n 30 --ranks=2 "$hello" >"$dir/json"
check "swrun: tasks of the plan, periods, its time" holds \
    'o["tasks"] == 180 and o["makespan_ns"] == round(o["seconds"] * 1e9) and not o["violations"] and o["legal"]'

# ---- import ------------------------------------------------------------------------------------------

asks "$SWSIM" import --report -o "$dir/job.yaml" --db="$dir/job.db" "$plans/traces/recommender"
check "import: a rank is its streams" holds \
    'not [r for r in o["ranks"] if r["busy_ns"] != sum(s["busy_ns"] for s in r["streams"]) or r["busy_ns"] < 1e7]'
check "as printed" holds 'near(o["ranks"][0]["busy_ns"], said("all +busy")) and near(o["ranks"][0]["measured_ns"], said("rank0.json:"))'
asks "$SWSIM" compare "$dir/job.db:1" "$dir/job.yaml"
check "two runs: rows and what is left are the change" holds \
    'abs(o["second"]["step_ns"] - o["first"]["step_ns"] - o["change_ns"]) < 1'
done_testing

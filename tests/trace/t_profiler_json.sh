#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs as traces of PyTorch's profiler: the rules of the format, the same figures as in the store, and that our own
# import makes of one the plan that ran.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/plans
out=$dir/trace.json

to_json()
{
    "$SWSIM" render "$@" -o "$out"
}

check "a prediction is stored" exits 0 \
    "$SWSIM" predict -q --driver clock -n 8 --db "$dir/run.db" "$plans/torchrec/sparse_dist.yaml"
check "and written as JSON" exits 0 to_json "$dir/run.db"
check "a collective is a kernel of NCCL, with our name and its communicator" \
    grep -q '"cat":"kernel","name":"ncclDevKernel_SendRecv (InputDistStart)".*"task":"InputDistStart".*"Process Group Name":"dp"' "$out"
check "a copy is one of CUDA" \
    grep -q '"cat":"gpu_memcpy","name":"Memcpy HtoD (Pinned -> Device) (H2D)".*"bytes":4194304' "$out"
check "its call" grep -q '"cat":"cuda_runtime","name":"cudaMemcpyAsync"' "$out"
check "idle time has its cause" grep -q '"cat":"wait","name":"dependence on H2D"' "$out"
check "no rank where there are several" sh -c "! grep -q distributedInfo '$out'"
cp "$out" "$dir/plain.json"
"$SWSIM" render -o - "$dir/run.db" >"$dir/standard.json"
check "the same on standard output" cmp "$dir/plain.json" "$dir/standard.json"
check "compressed" exits 0 "$SWSIM" render -o "$dir/packed.json.gz" "$dir/run.db"
check "... it is the same" sh -c "gzip -dc '$dir/packed.json.gz' | cmp - '$dir/plain.json'"
check "... and can be imported" exits 0 "$SWSIM" import -q -o "$dir/packed.yaml" "$dir/packed.json.gz"
check "... into a folder that is not there" complains 2 'cannot' "$SWSIM" render -o "$dir/none/packed.json.gz" "$dir/run.db"
check "a plan on standard output has no times" complains 2 'a plan has no times' "$SWSIM" render -o - "$plans/torchrec/base.yaml"
check "dependences can be left out" exits 0 to_json --arrows=none "$dir/run.db"
check "..." sh -c "! grep -q '\"cat\":\"dependence\"' '$out'"
check "streams only" exits 0 to_json --no-threads "$dir/run.db"
check "..." sh -c "! grep -q 'cuda_runtime\|user_annotation' '$out'"
check "a part of the iterations" exits 0 to_json --from=3 --to=4 "$dir/run.db"
check "..." sh -c "grep -q 'ProfilerStep#3' '$out' && ! grep -q 'ProfilerStep#6' '$out'"
check "one rank" exits 0 to_json --rank=1 "$dir/run.db"
check "is told, as HTA looks for it" grep -q '"rank": 1, "world_size": 2' "$out"
check "a rank that is not there" complains 3 'has no rank 7' to_json --rank=7 "$dir/run.db"
check "a picture of one rank" exits 0 "$SWSIM" render --rank=1 -o "$dir/run.svg" "$dir/run.db"
check "a plan has no times" complains 2 'a plan has no times' to_json "$plans/torchrec/base.yaml"

# Both ways of import: all ranks in one file, and a file for each.
for rank in 0 1; do
    "$SWSIM" render --rank=$rank -o "$dir/r$rank.json" "$dir/run.db"
done
to_json "$dir/run.db"
has_both() { exits 0 "$SWSIM" import -q -o "$dir/$1.yaml" $2 && [ "$(grep -c 'ncclDevKernel_AllReduce (AllReduce), comm: dp' "$dir/$1.yaml")" -eq 16 ]; }
check "the files of both ranks are a job" has_both apart "$dir/r0.json $dir/r1.json"
check "and so is the file of all" has_both joined "$out"
check "its plan is proved" exits 0 "$SWSIM" verify -q "$dir/apart.yaml"

# One run of each other form and kind.
for plan in one_f_one_b host_program; do
    "$SWSIM" predict -q --db "$dir/$plan.db" "$plans/examples/$plan.yaml" >"$dir/log"
done
check "rank programs" exits 0 to_json "$dir/one_f_one_b.db"
check "have messages" grep -q '"name":"ncclDevKernel_SendRecv (send F0@1 to rank 1)"' "$out"
check "... which say where they go" grep -q '"Process Group Name":"pp.*","Collective name":"send","Dst Rank":1' "$out"
# A measured run has calls.
"$SWRUN" -q --db "$dir/passes.db" "$plans/examples/one_f_one_b.yaml" >"$dir/log"
for ranks in "" "--rank=0" "--rank=1" "--rank=2" "--rank=3"; do
    "$SWSIM" render $ranks -o "$dir/passes${ranks#--rank=}.json" "$dir/passes.db"
done
check "... and are messages of the imported plan" sh -c '"$1" import -q --force -o "$2/passes.yaml" "$2/passes.json" && \
    grep -q "send: " "$2/passes.yaml" && "$1" verify -q --no-fix "$2/passes.yaml"' sh "$SWSIM" "$dir"
check "... from a file for each rank, too" sh -c '"$1" import -q --force -o "$2/passes.yaml" "$2"/passes?.json && \
    grep -q "send: " "$2/passes.yaml" && "$1" verify -q --no-fix "$2/passes.yaml"' sh "$SWSIM" "$dir"
check "host programs" exits 0 to_json "$dir/host_program.db"
check "have threads" grep -q '"cat":"user_annotation","name":"read_batch1"' "$out"
"$SWSIM" import -q --db "$dir/imported.db" -o "$dir/imported.yaml" "$plans/traces/recommender"
check "an import" exits 0 to_json --rank=0 "$dir/imported.db"
check "keeps the names of the profiler" grep -q '"name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL' "$out"
check "... and its steps" grep -q '"name":"ProfilerStep#12"' "$out"
check "a measured run" exits 0 "$SWRUN" -q -n 5 --driver clock --db "$dir/measured.db" "$plans/examples/hello.yaml"
check "with its time of day" sh -c "'$SWSIM' render -o '$out' '$dir/measured.db' && grep -q '\"baseTimeNanoseconds\": [1-9]' '$out'"
"$SWSIM" verify -q --witness="$dir/witness.db" "$plans/bugs/nccl_send_send_broken.yaml" >"$dir/log" 2>&1
check "a counterexample has no times" complains 3 'steps and no times' to_json "$dir/witness.db"

# The rules that Perfetto and HTA rely on, and the sums of the store.
python3 -c 'import sqlite3' 2>"$dir/log" || { skip "no python3 with sqlite3: rules and sums"; done_testing; exit; }
cat >"$dir/rules.py" <<'PYTHON'
import collections, json, re, sqlite3, sys

trace = json.load(open(sys.argv[1]), parse_float=str, parse_int=str)
store = sqlite3.connect(sys.argv[2])
events = trace["traceEvents"]
ns = lambda text: int(text.partition(".")[0]) * 1000 + int(text.partition(".")[2].ljust(3, "0") or 0)
need = {"X": "cat name pid tid ts dur", "s": "cat name id pid tid ts", "f": "cat name id pid tid ts bp",
        "M": "name pid args", "C": "name pid ts args"}
for event in events:
    assert all(key in event for key in need[event["ph"]].split()), event
complete = [e for e in events if e["ph"] == "X"]
rows = collections.defaultdict(list)
for e in complete:
    rows[e["pid"], e["tid"]].append((ns(e["ts"]), -ns(e["dur"])))
for row, spans in rows.items():  # slices of a row nest
    open_ends = []
    for start, negative in sorted(spans):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        assert not open_ends or start - negative <= open_ends[-1], (row, start)
        open_ends.append(start - negative)
named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
assert set(rows) <= named, set(rows) - named
work = [e for e in complete if e["cat"] in ("kernel", "gpu_memcpy")]
assert all(int(e["args"]["stream"]) > 0 for e in work)
calls = {e["args"]["correlation"]: e for e in complete if e["cat"] == "cuda_runtime" and "args" in e and "correlation" in e["args"]}
placed = [e for e in work if e["args"]["correlation"] in calls]
steps = [e for e in complete if e["name"].startswith("ProfilerStep#")]
assert not steps or len(placed) == len(work) == len(calls)
for e in placed:
    assert ns(calls[e["args"]["correlation"]]["ts"]) <= ns(e["ts"])
    if steps:
        at = ns(calls[e["args"]["correlation"]]["ts"])
        assert any(ns(s["ts"]) <= at <= ns(s["ts"]) + ns(s["dur"]) for s in steps)
ends = collections.Counter((e["cat"], e["id"], e["ph"]) for e in events if e["ph"] in "sf")
assert set(ends.values()) <= {1} and all((c, i, "f" if p == "s" else "s") in ends for c, i, p in ends)
begun = {}  # Perfetto takes events of one time in their order: the outer slice first, a flow behind the slice that it is bound to
for e in events:
    place = e["pid"], e.get("tid"), e.get("ts")
    if e["ph"] == "X":
        assert begun.get(place, 0) == 0 or begun[place] >= ns(e["dur"]), e
        begun[place] = ns(e["dur"])
    assert e["ph"] not in "sf" or (place in begun and e.get("bp", "e") == "e"), e
    assert e["ph"] != "C" or all(re.fullmatch(r"-?[0-9.]+", value) for value in e["args"].values()), e
sums = collections.Counter()
for e in work:
    sums[e["pid"], e["args"].get("task")] += ns(e["dur"])
for rank, task, total in store.execute(
        "SELECT rank, task, sum(end_ns - start_ns) FROM span JOIN agent ON agent.id = agent "
        "WHERE span.kind = 'device' GROUP BY 1, 2"):
    assert sums.pop((str(rank), task)) == total, (rank, task)
assert not sums
for e in events:  # never fewer than none in flight, and none at the end
    assert e["ph"] != "C" or int(e["args"]["iterations"]) >= 0
print(len(events), "events")
PYTHON
for run in run one_f_one_b host_program imported measured; do
    to_json "$dir/$run.db"
    check "the rules, and the sums of the store: $run" python3 "$dir/rules.py" "$out" "$dir/$run.db"
done
done_testing

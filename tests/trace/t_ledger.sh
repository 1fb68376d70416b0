#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The ledger in the store: why streams were idle, of imports, predictions and pipelined runs.
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/traces.sh"

# Stream 7 is idle for 5 us until its launch, 10 us until its work begins; then for `first`, and without a cause.
{
    echo '{"schemaVersion": 1, "traceEvents": [{"ph":"M","name":"process_name","pid":7,"args":{"name":"python"}}'
    call cudaLaunchKernel 1 1000 5 1
    work kernel first 20 1010 200 1
    call cudaStreamWaitEvent 1 1006 1 2
    call cudaLaunchKernel 1 1008 5 3
    work kernel second 7 1212 100 3
    call cudaLaunchKernel 1 1014 5 4
    work kernel third 7 1400 100 4
    echo ']}'
} >"$dir/trace.json"
two_tasks >"$dir/plan.yaml"

runs="$SWSIM runs"
check "an import is stored" exits 0 "$SWSIM" import --db "$dir/runs.db" -o "$dir/imported.yaml" "$dir/trace.json"
check "with its ledger" prints 0 '^rank 0 stream s7: busy 200 us, idle 300 us$' $runs --run 1 "$dir/runs.db"
check "an event, by the order of calls, and what it was" prints 0 \
    '204 us  dependence  *by call order  *first on s20 (an event, by the order of calls)$' $runs --run 1 "$dir/runs.db"
check "a launch" prints 0 '8.00 us  host  *by id ' $runs --run 1 "$dir/runs.db"
check "what nothing explains" prints 0 '88.0 us  unexplained' $runs --run 1 "$dir/runs.db"
check "as JSON" prints 0 '"cause":"dependence","word":"call order","waits_for":"first"' $runs --json --run 1 "$dir/runs.db"
check "it is drawn with its causes" exits 0 "$SWSIM" render -o "$dir/run.svg" "$dir/runs.db"
check "..." grep -q 'waits for first on s20 (an event, by the order of calls); rank 0 stream s7' "$dir/run.svg"
check "the legend tells the causes" grep -q 'waiting for other work' "$dir/run.svg"
check "... each of them" grep -q 'idle without a known cause' "$dir/run.svg"
check "... and no other" sh -c "! grep -q 'waiting for a resource' '$dir/run.svg'"
check "a prediction is stored" exits 0 "$SWSIM" predict --driver clock -n 10 --db "$dir/runs.db" "$dir/plan.yaml"
check "with its ledger, too" prints 0 'dependence  *by model  *dependence on Copy' $runs --run 2 "$dir/runs.db"
check "a pipelined run" exits 0 "$SWRUN" --quiet -n 12 --driver clock --db "$dir/runs.db" "$dir/plan.yaml"
check "has it from its steps" prints 0 '^rank 0 stream memcpy: busy' $runs --run 3 "$dir/runs.db"
check "no such run" complains 3 'has no run 9' $runs --run 9 "$dir/runs.db"
check "a serial run" exits 0 "$SWRUN" --quiet -n 3 --serial --db "$dir/runs.db" "$dir/plan.yaml"
check "has no ledger" complains 3 'run 4 has no ledger' $runs --run 4 "$dir/runs.db"

# Two ranks of one all-reduce, which they end together: rank 0 waits 400 us for rank 1.
rank()
{
    echo "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": $1, \"world_size\": 2}, \"traceEvents\": [{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":7,\"args\":{\"name\":\"python\"}}"
    call cudaLaunchKernel 1 $((1500 - $2 - 10)) 5 1
    work kernel "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)" 24 $((1500 - $2)) $2 1
    call cudaLaunchKernel 1 1502 5 2
    work kernel compute 24 1510 100 2
    echo ']}'
}
rank 0 500 >"$dir/r0.json"
rank 1 100 >"$dir/r1.json"
check "two ranks are imported" exits 0 "$SWSIM" import --db "$dir/ranks.db" -o "$dir/ranks.yaml" "$dir/r0.json" "$dir/r1.json"
check "a rank that waits for the other one says so" prints 0 '400 us  peer  *by ranks  *other ranks in ncclDevKernel_AllReduce' \
    $runs --run 1 "$dir/ranks.db"
check "and the work is what is left" prints 0 '^rank 0 stream s24: busy 200 us' $runs --run 1 "$dir/ranks.db"

if command -v python3 >/dev/null; then
    # sums: of each stream, busy and idle make the time until its last work ended; age: the store as it was before.
    python3 - "$dir" "$srcdir/tests/older_store.sql" >"$dir/sums" 2>&1 <<'PYTHON'
import shutil, sqlite3, sys
path = sys.argv[1] + "/runs.db"
db = sqlite3.connect(path)
for agent, end in db.execute("select a.id, max(s.end_ns) from agent a join span s on s.agent = a.id where a.kind = 'stream'"
                             " and s.kind = 'device' and a.run = 1 group by a.id"):
    busy, = db.execute("select sum(end_ns - start_ns) from span where agent = ? and kind = 'device'", (agent,)).fetchone()
    idle, = db.execute("select sum(idle_ns) from ledger where agent = ?", (agent,)).fetchone()
    assert busy + (idle or 0) == end, (agent, busy, idle, end)
assert db.execute("pragma user_version").fetchone() == (4,)
for a, b in db.execute("select ifnull(sum(end_ns - start_ns), 0), (select sum(idle_ns) from ledger l where l.agent = s.agent)"
                       " from span s join agent a on a.id = s.agent where s.run = 2 and s.kind = 'wait' and a.kind = 'stream'"
                       " group by s.agent"):
    assert a == b, (a, b)
db.close()
shutil.copy(path, sys.argv[1] + "/old.db")
db = sqlite3.connect(sys.argv[1] + "/old.db")
db.executescript(open(sys.argv[2]).read() + "drop table ledger; pragma user_version = 2")
PYTHON
    check "busy and idle make the whole" sh -c "! grep . '$dir/sums'"
    check "an older store has no ledger" complains 3 'older schema, without ledgers' $runs --run 1 "$dir/old.db"
    check "but is listed" prints 0 '^ *1 .*measured' $runs "$dir/old.db"
    check "and brought up to date" exits 0 "$SWSIM" import --db "$dir/old.db" "$dir/trace.json"
    check "for the runs to come" prints 0 'by call order' $runs --run 5 "$dir/old.db"
else
    skip "python3 looks into stores, and is not here"
fi
done_testing

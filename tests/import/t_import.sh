#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim import`: traces become plans that are proved and that take as long as the job did. The traces here are
# written by this test; those of real jobs are in ../shared/data and are skipped where they are not.
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/traces.sh"
: "${SWSIM_SHARED:=$srcdir/../shared}"

# ---- traces ---------------------------------------------------------------------------------------

# Two streams with an event between them, whose record nobody names; then the host waits. 1000 us in all.
two_streams()
{
    call cudaMemcpyAsync 1 1000.000 10.000 1
    work gpu_memcpy "Memcpy HtoD (Pinned -> Device)" 20 1012.500 200.250 1 ',"bytes":4096'
    call cudaStreamWaitEvent 1 1020.000 2.000 2
    call cudaLaunchKernel 1 1030.000 8.000 3
    work kernel "void at::native::(anonymous namespace)::first<float, 4>(int)" 7 1214.000 300.500 3
    call cudaEventQuery 1 1040.000 1.000 4
    call cudaLaunchKernel 1 1050.000 8.000 5
    work kernel second 7 1516.000 400.000 5
    call cudaStreamSynchronize 1 1060.000 930.000 6
    call cudaLaunchKernel 1 1991.000 5.000 7
    work kernel third 7 1998.000 2.000 7
}
two_streams | trace 0 >"$dir/two.json"
gzip -c "$dir/two.json" >"$dir/two.json.gz"

# A rank of a job with one all-reduce, which both ranks end together: rank 1 comes late, and its clock is 50 us ahead.
rank()
{
    call cudaLaunchKernel 1 "$2" 5.000 1
    work kernel "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)" 24 "$3" "$4" 1
    call cudaStreamSynchronize 1 "$5" "$6" 2
    call cudaLaunchKernel 1 "$7" 5.000 3
    work kernel compute 7 "$8" 100.000 3
}
rank 0 1000.000 1010.000 500.000 1020.000 492.000 1514.000 1520.000 | trace 0 >"$dir/r0.json"
rank 1 1450.000 1460.000 100.000 1470.000 92.000 1564.000 1570.000 | trace 1 >"$dir/r1.json"

# ---- what an import says --------------------------------------------------------------------------

# takes NS TOLERANCE FILE...: the plan of these files is proved, and its prediction is that long.
takes()
{
    ns=$1 tolerance=$2
    shift 2
    imports "$@" && "$SWSIM" verify "$dir/plan.yaml" || return
    got=$("$SWSIM" predict --json "$dir/plan.yaml" | field makespan_ns)
    echo "predicted $got ns, measured $ns ns"
    [ "$got" -ge $((ns - tolerance)) ] && [ "$got" -le $((ns + tolerance)) ]
}
reports()
{
    key=$1 value=$2
    shift 2
    "$SWSIM" import --report --json "$@" >"$dir/report" || return
    cat "$dir/report"
    [ "$(field "$key" <"$dir/report")" = "$value" ]
}

# refuses FILE PATTERN: one sentence, exit 3, and nothing is written.
refuses()
{
    rm -f "$dir/none.yaml"
    complains 3 "$2" "$SWSIM" import -o "$dir/none.yaml" "$1" || return
    [ "$(wc -l <"$dir/err")" -eq 1 ] && [ ! -e "$dir/none.yaml" ]
}

check "a trace is proved, and takes as long as the job" takes 1000000 1000 "$dir/two.json"
check "compressed, too" takes 1000000 1000 "$dir/two.json.gz"
check "a bare array of events, too" sh -c "sed -n '/^{.ph/,/^\]/p' '$dir/two.json' | sed '1s/^/[/; s/^\]}/]/' >'$dir/array.json'"
check "..." takes 1000000 1000 "$dir/array.json"
check "kernels have short names" has 'launch: first, stream: s7' "$dir/two.json"
check "times keep their nanoseconds" has 'time: 200.25us' "$dir/two.json"
check "a copy keeps its direction and bytes" has 'copy: h2d.*bytes: 4KiB' "$dir/two.json"
check "a wait is found by the order of calls" has 'wait: e0, stream: s7' "$dir/two.json"
check "a stream that the host waits for is found by time" has 'sync: stream, stream: s7' "$dir/two.json"
check "the ledger knows by whose word" reports event_call 184000 "$dir/two.json"
check "nothing is unexplained" reports unexplained 0 "$dir/two.json"
check "the report is for people, too" prints 0 "s7 .*launch.*event_call" "$SWSIM" import --report "$dir/two.json"
check "the plan goes to standard output" prints 0 "^threads:" "$SWSIM" import "$dir/two.json"
check "with a name" has "^name: job" --name=job "$dir/two.json"
check "--detail is for pipelines" complains 2 "detail has no effect on a trace as host programs" \
    "$SWSIM" import --detail=2 -o "$dir/none.yaml" "$dir/two.json"
for option in --repeat=same --launch-queue=1024; do
    check "$option is for host programs" complains 2 "no effect on a trace as a pipeline" \
        "$SWSIM" import --form=pipeline $option -o "$dir/none.yaml" "$dir/two.json"
done
check "... and nothing is written" test ! -e "$dir/none.yaml"
check "without a launch queue" sh -c "! '$SWSIM' import --launch-queue=0 '$dir/two.json' | grep launch_queue"
check "the plan is canonical" sh -c "'$SWSIM' import '$dir/two.json' >'$dir/a' && '$SWSIM' export '$dir/a' | cmp - '$dir/a'"

# The id of a record: the wait is for the first kernel, not for the last one before it.
{
    call cudaLaunchKernel 1 1000 5 1
    work kernel first 20 1010 100 1
    call cudaEventRecord 1 1006 1 2
    call cudaLaunchKernel 1 1008 5 3
    work kernel later 20 1110 900 3
    call cudaStreamWaitEvent 1 1014 1 4
    echo ',{"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":7,"ts":1014,"dur":1,"args":{"stream":7,"wait_on_stream":20,"wait_on_cuda_event_record_corr_id":2,"correlation":4}}'
    call cudaLaunchKernel 1 1016 5 5
    work kernel after 7 1112 50 5
} | trace 0 >"$dir/ids.json"
check "the id of a record is believed" reports event_id 96000 "$dir/ids.json"
check "... and its edge ends behind the first kernel" sh -c \
    "'$SWSIM' import '$dir/ids.json' | grep -A1 'launch: first' | grep 'record: e0'"
sed 's/corr_id":2/corr_id":-1/' "$dir/ids.json" >"$dir/broken_ids.json"
check "a record without an id is counted" reports records_missing 1 "$dir/broken_ids.json"

# Two threads take turns at one stream.
{
    call cudaLaunchKernel 1 1000 5 1
    work kernel forward 7 1010 50 1
    call cudaLaunchKernel 2 1200 5 2
    work kernel backward 7 1210 50 2
    call cudaLaunchKernel 1 1400 5 3
    work kernel optimizer 7 1410 50 3
} | trace 0 >"$dir/threads.json"
check "threads hand over" has 'await: handoff1' "$dir/threads.json"
check "... and the time is kept" takes 460000 0 "$dir/threads.json"

# HIP, the names of 2021, and numbers in quotes.
{
    call hipLaunchKernel 1 1000 5 1 | sed 's/"cuda_runtime"/"Runtime"/; s/"tid":1/"tid":"1"/'
    work Kernel vector_add 7 1010 50 1
} | trace 0 >"$dir/hip.json"
sed 's/"rank": 0/"rank": 1/' "$dir/hip.json" >"$dir/hip1.json"
check "names of HIP and of earlier versions" takes 60000 0 "$dir/hip.json"

# ---- steps ----------------------------------------------------------------------------------------

{
    step 5 1000 100
    call cudaLaunchKernel 1 1000 5 1
    work kernel a 7 1010 50 1
    step 6 1100 100
    call cudaLaunchKernel 1 1100 5 2
    work kernel b 7 1110 50 2
} | trace 0 >"$dir/steps.json"
check "one step alone, to the end of its annotation" takes 100000 0 --steps=6 "$dir/steps.json"
check "... has its work alone" has 'launch: b' --steps=6..6 "$dir/steps.json"
check "both" takes 200000 0 --steps=5..6 "$dir/steps.json"
check "a step that is not there" complains 3 "the steps 5 to 6 are recorded in it, not 8 to 9" \
    "$SWSIM" import --steps=8..9 "$dir/steps.json"
check "... of several" complains 3 "not 6 to 7" "$SWSIM" import --steps=6..7 "$dir/steps.json"
check "no steps at all" complains 3 "no step of the profiler" "$SWSIM" import --steps=1 "$dir/two.json"
check "a step without work of a GPU" sh -c "sed '/\"name\":\"b\"/d' '$dir/steps.json' >'$dir/idle_step.json'"
check "..." complains 3 "no work of a GPU" "$SWSIM" import --steps=6 "$dir/idle_step.json"
# Work whose launch is not in the trace, of a graph: before, within and behind step 6, some on a stream of its own;
# and work that was launched before the first call.
{
    step 5 1000 100
    call cudaLaunchKernel 1 1000 5 11
    work kernel a 7 1010 50 11
    work kernel launched_before 7 1002 5 9
    work kernel graph_before 7 1065 5 0
    step 6 1100 100
    call cudaLaunchKernel 1 1100 5 12
    work kernel b 7 1110 50 12
    work kernel graph_within 7 1165 20 0
    work kernel graph_alone 9 1130 20 77
    step 7 1200 100
    call cudaLaunchKernel 1 1200 5 13
    work kernel c 7 1210 50 13
    work kernel graph_behind 7 1265 5 0
    work kernel graph_alone_behind 9 1230 20 78
} | trace 0 >"$dir/graph_steps.json"
# kernels STEPS NAME...: the plan of these steps launches just these, in the order of their names.
kernels()
{
    steps=$1
    shift
    imports --steps="$steps" "$dir/graph_steps.json" || return
    grep -o 'launch: [a-z_]*' "$dir/plan.yaml" | sed 's/.* //' | sort | tr '\n' ' ' | tee "$dir/kernels" | grep -qx "$* "
    found=$?
    cat "$dir/kernels"
    return $found
}
check "work without a launch is that of its step" kernels 6 b graph_alone graph_within
check "... of two" kernels 5..6 a b graph_alone graph_before graph_within
check "... of all" kernels 5..7 a b c graph_alone graph_alone_behind graph_before graph_behind graph_within
check "... but not what was launched before the trace began" complains 0 \
    "within the steps and were launched before the first call of the trace are left out: 1\$" \
    "$SWSIM" import --steps=5 -o "$dir/plan.yaml" "$dir/graph_steps.json"
check "... and is counted" reports unlaunched 2 --steps=6 "$dir/graph_steps.json"
check "steps the wrong way round" complains 2 "expected steps" "$SWSIM" import --steps=6..5 "$dir/steps.json"
check "no steps" complains 2 "expected steps such as 5..10" "$SWSIM" import --steps=x "$dir/steps.json"

# An event of Chrome's format may be a begin and an end.
if command -v python3 >/dev/null; then
    python3 - "$dir" <<'PYTHON'
import json
import sys

folder = sys.argv[1]
trace = json.load(open(folder + "/steps.json"))
parts = []
for event in trace["traceEvents"]:
    if event["ph"] != "X":
        continue
    end = event["ts"] + event["dur"]
    begin = {key: value for key, value in event.items() if key != "dur"}
    parts.append((event["ts"], 1, -event["dur"], dict(begin, ph="B")))
    parts.append((end, 0, 0, {"ph": "E", "pid": event["pid"], "tid": event["tid"], "ts": end}))
events = [part[3] for part in sorted(parts, key=lambda part: part[:3])]
for name, kept in (("whole", events), ("unclosed", events[:-1]), ("unopened", events[1:]), ("many", events[:1] * 5000)):
    json.dump(dict(trace, traceEvents=kept), open("%s/%s.json" % (folder, name), "w"))
twice = trace["traceEvents"]
json.dump({"traceEvents": twice + [event for event in twice if event["name"].startswith("ProfilerStep")]}, open(folder + "/twice.json", "w"))
PYTHON
    "$SWSIM" import --name=x "$dir/steps.json" >"$dir/x_events"
    "$SWSIM" import --name=x "$dir/whole.json" >"$dir/b_e_events"
    check "events that begin and end are those that last" cmp "$dir/x_events" "$dir/b_e_events"
    check "... one that does not end is left out, and said" complains 0 "left out: 1 event without an end" \
        "$SWSIM" import -o "$dir/plan.yaml" "$dir/unclosed.json"
    check "... an end alone is left out" has 'launch: b' "$dir/unopened.json"
    check "... too many open ones are refused" complains 3 'more than 4096 events begin' "$SWSIM" import "$dir/many.json"
    check "a step that is annotated twice is stored once" prints 0 "measured" sh -c \
        "'$SWSIM' import -q --db='$dir/twice.db' -o '$dir/plan.yaml' '$dir/twice.json' && '$SWSIM' runs '$dir/twice.db'"
fi

# ---- the measured run -----------------------------------------------------------------------------

echo 'no store' >"$dir/text.db"
check "a store that is none" complains 3 "not a swsim trace store" \
    "$SWSIM" import --db="$dir/text.db" -o "$dir/unwritten.yaml" "$dir/steps.json"
check "... leaves no plan" test ! -e "$dir/unwritten.yaml"
check "the measured run goes into a store" exits 0 "$SWSIM" import --db="$dir/runs.db" "$dir/steps.json"
check "... with its steps" prints 0 'measured .* 2 .*steps' "$SWSIM" runs "$dir/runs.db"
check "... and is drawn" exits 0 "$SWSIM" render -o "$dir/run.svg" "$dir/runs.db"

# ---- ranks ----------------------------------------------------------------------------------------

check "ranks meet" has 'collective: .*comm: nccl0' "$dir/r1.json" "$dir/r0.json"
check "... for the least of their times" has 'collective: .* time: 0.1ms' "$dir/r1.json" "$dir/r0.json"
check "... in the order that the files say" sh -c \
    "'$SWSIM' import --report --json '$dir/r1.json' '$dir/r0.json' | grep -q 'r0.json.*r1.json'"
check "... with clocks aligned" takes 620000 2000 "$dir/r0.json" "$dir/r1.json"
sed 's/AllReduce/AllGather/' "$dir/r1.json" >"$dir/other.json"
check "collectives of another kind do not belong to them" complains 3 \
    "r0.json and .*other.json do not belong together: .*kind" "$SWSIM" import "$dir/r0.json" "$dir/other.json"
sed 's/"world_size": 2/"world_size": 4/' "$dir/r1.json" >"$dir/larger.json"
check "ranks of jobs of two sizes" complains 3 "one is of a job of 2 ranks, the other of 4" \
    "$SWSIM" import "$dir/r0.json" "$dir/larger.json"
check "the same rank twice does not either" complains 3 "both say that they are rank 0" \
    "$SWSIM" import "$dir/r0.json" "$dir/two.json"

# Two ranks in one file, one behind the other, with the same ids: processes 7 and 8, each with a device's row of its own, or
# with rows of one name.
joined()
{
    rank 0 1000.000 1010.000 500.000 1020.000 492.000 1514.000 1520.000
    rank 1 1450.000 1460.000 100.000 1470.000 92.000 1564.000 1570.000 | sed "s/\"pid\":7/\"pid\":8/; s/\"pid\":0/\"pid\":$1/"
}
joined 1 | trace -1 >"$dir/joined.json"
joined 0 | trace -1 >"$dir/same_rows.json"
check "two processes in one file are ranks" takes 620000 2000 "$dir/joined.json"
check "... that meet" has 'collective: .*comm: nccl0' "$dir/joined.json"
check "... also if their devices have one name" takes 620000 2000 "$dir/same_rows.json"
check "... and are named" sh -c "'$SWSIM' import --report '$dir/joined.json' | grep 'rank 1, .*joined.json, process 8'"
check "... and chosen" takes 220000 1000 --ranks=1 "$dir/joined.json"
check "ranks without a collective in common" complains 3 \
    "array.json and .*hip1.json do not belong together: they have no collective" "$SWSIM" import "$dir/array.json" "$dir/hip1.json"

# Rank 0 sends to rank 1 twice and receives once, by kernels of one name; rank 1's clock is 5 ms ahead.
message()
{
    call cudaLaunchKernel 1 $(($2 - 8)) 5 "$4"
    work kernel "ncclDevKernel_SendRecv(ncclDevComm*)" 21 "$2" "$3" "$4" ",\"Collective name\":\"$1\",\"$5 Rank\":$6,\"Process Group Name\":\"7\",\"Process Group Ranks\":\"[0, 1]\""
}
{
    message send 1100 200 1 Dst 1
    message recv 1400 100 2 Src 1
    message send 1600 300 3 Dst 1
} | trace 0 >"$dir/p0.json"
{
    message recv 6200 100 1 Src 0
    message send 6350 150 2 Dst 0
    message recv 6600 300 3 Src 0
} | trace 1 >"$dir/p1.json"
check "messages of NCCL have their two ranks" has "send: message, peer: 1" "$dir/p0.json" "$dir/p1.json"
check "... and their ways" has "7.0to1: \[0, 1\]" "$dir/p0.json" "$dir/p1.json"
check "... they take the least time of both" takes 808000 2000 "$dir/p0.json" "$dir/p1.json"
check "... the job is proved" exits 0 "$SWSIM" verify "$dir/plan.yaml"
sed 's/"recv"/"send"/; s/"Src Rank"/"Dst Rank"/' "$dir/p1.json" >"$dir/p2.json"
# The same by two ranks of a larger job, whose group counts them 0 and 1: listed by the kernels, or by distributedInfo.
sed 's/\[0, 1\]/[4, 6]/' "$dir/p0.json" | sed 's/"rank": 0, "world_size": 2/"rank": 4, "world_size": 8/' >"$dir/p4.json"
sed 's/\[0, 1\]/[4, 6]/' "$dir/p1.json" | sed 's/"rank": 1, "world_size": 2/"rank": 6, "world_size": 8/' >"$dir/p6.json"
check "... numbers of a group are those of its list" has "7.4to6" "$dir/p4.json" "$dir/p6.json"
for rank in 4 6; do
    sed 's/,"Process Group Ranks":"[^"]*"//; s/"world_size": 8/"world_size": 8, "pg_config": [{"pg_name": "7", "pg_size": 2, "ranks": [4, 6]}]/' \
        "$dir/p$rank.json" >"$dir/g$rank.json"
done
check "... or of the job's" has "7.4to6" "$dir/g4.json" "$dir/g6.json"
check "... ranks that both send do not belong together" complains 3 "do not belong together" "$SWSIM" import "$dir/p0.json" "$dir/p2.json"

sed 's/"\[4, 6\]"/[4, 6]/' "$dir/p4.json" >"$dir/l4.json"
sed 's/"\[4, 6\]"/[4, 6]/' "$dir/p6.json" >"$dir/l6.json"
check "... also where the list is no text" has "7.4to6" "$dir/l4.json" "$dir/l6.json"
# The members of one group are not those of the next event.
{
    call cudaLaunchKernel 1 1010 5 9
    work kernel ncclDevKernel_AllReduce 21 1020 20 9 ',"Process Group Name":"8","Process Group Ranks":"[0, 6]"'
    grep -E 'correlation":[1-3][,}]' "$dir/p0.json" | sed 's/,"Process Group Ranks":"[^"]*"//'
} | trace 0 >"$dir/leak.json"
check "... and belongs to its event alone" has "7.0to1: \[0, 1\]" "$dir/leak.json" "$dir/p1.json"
check "a rank that its job cannot have" complains 3 "it says that it is rank 5 of a job of 2 ranks" \
    sh -c "sed 's/\"rank\": 0/\"rank\": 5/' '$dir/p0.json' >'$dir/beyond.json'; '$SWSIM' import '$dir/beyond.json'"
sed '/"ts":1600/d; /"correlation":3/d' "$dir/p0.json" >"$dir/fewer.json"
check "ranks with other numbers of messages: which, and a way out" complains 3 \
    "of communicator 7.0to1 one has 1 operations, the other 2 (--steps" "$SWSIM" import "$dir/fewer.json" "$dir/p1.json"

# Three ranks in a row: the last has a communicator with the second alone, and a clock of its own.
group()
{
    work kernel ncclDevKernel_AllReduce "$1" "$2" "$3" "$4" ",\"Process Group Name\":\"$5\""
}
{ call cudaLaunchKernel 1 1000 5 1; group 24 1010 500 1 left; } | trace 0 >"$dir/row0.json"
{
    call cudaLaunchKernel 1 1300 5 1
    group 24 1310 200 1 left
    call cudaLaunchKernel 1 1520 5 2
    group 28 1530 300 2 right
} | trace 1 >"$dir/row1.json"
{ call cudaLaunchKernel 1 98700 5 1; group 28 98710 100 1 right; } | trace 2 >"$dir/row2.json"
sed -i 's/"world_size": 2/"world_size": 3/' "$dir"/row?.json
check "clocks are aligned along communicators" takes 830000 2000 "$dir/row0.json" "$dir/row1.json" "$dir/row2.json"
check "... not beyond them" complains 3 "no collective in common" "$SWSIM" import "$dir/row0.json" "$dir/row2.json"

# A folder is its files, rank2 before rank10; what else lies there is passed over.
mkdir "$dir/job" "$dir/none"
cp "$dir/r0.json" "$dir/job/rank2.json"
gzip -c "$dir/r1.json" >"$dir/job/rank10.json.gz"
echo 'a job of two ranks' >"$dir/job/README"
echo '{"seed": 1}' >"$dir/job/config.json"
check "a folder is its ranks" takes 620000 2000 "$dir/job/"
check "... with its name" has '^name: job' "$dir/job/"
check "... others than traces are passed over" complains 0 "2 of 4 files are no traces" "$SWSIM" import "$dir/job"
sed 's/"distributedInfo": {[^}]*}, //' "$dir/r0.json" >"$dir/job/rank2.json"
sed 's/"distributedInfo": {[^}]*}, //' "$dir/r1.json" | gzip >"$dir/job/rank10.json.gz"
check "... in the order of numbers in their names" sh -c \
    "'$SWSIM' import --report --json '$dir/job' 2>/dev/null | grep -q 'rank2.json.*rank10.json'"
check "a folder without a trace" complains 3 "no file in it is a trace" "$SWSIM" import "$dir/none"
head -c 100 "$dir/job/rank10.json.gz" >"$dir/job/rank11.json.gz"
check "a damaged file of a folder" complains 3 "rank11.json.gz: .*truncated" "$SWSIM" import "$dir/job"
check "one rank of two" takes 220000 1000 --ranks=1 "$dir/r0.json" "$dir/r1.json"
check "both by a list" has 'collective: .*comm: nccl0' --ranks=0,1..3 "$dir/r0.json" "$dir/r1.json"
check "a rank without a number has that of its place" has 'launch: first' --ranks=1 "$dir/r0.json" "$dir/array.json"
check "a rank that is not there" complains 3 "no file is of one of these ranks" "$SWSIM" import --ranks=7 "$dir/r0.json"
check "no ranks" complains 2 "expected ranks such as" "$SWSIM" import --ranks=1, "$dir/r0.json"

# many RANK FIRST LAST: all-reduces at uneven times, which are the same on all ranks.
many()
{
    k=$2
    while [ "$k" -le "$3" ]; do
        at=$((k * 1000 + k * k * 50 + 1000))
        call cudaLaunchKernel 1 "$at" 5 "$((k + 1))"
        work kernel ncclDevKernel_AllReduce 24 "$((at + 10))" 100 "$((k + 1))"
        k=$((k + 1))
    done | trace "$1"
}
many 0 1 9 >"$dir/many.0"
many 1 0 9 >"$dir/many.1"
check "a trace that begins one collective earlier" has 'launch: ncclDevKernel_AllReduce' "$dir/many.0" "$dir/many.1"
check "... meets in the others" sh -c "[ \$(grep -c 'collective: ncclDevKernel' '$dir/plan.yaml') -eq 18 ]"
many 1 0 14 >"$dir/many.1"
check "... but not in many" complains 3 "one has 9 operations, the other 15" "$SWSIM" import "$dir/many.0" "$dir/many.1"

# ---- Nsight Systems -------------------------------------------------------------------------------

# export_nsys FILE VALUES...: kernels as rows of an export with one process and few columns.
export_nsys()
{
    python3 - "$@" <<'PYTHON'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
pid, tid = 7 << 24, (7 << 24) + 7
db.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(1, "cudaLaunchKernel_v7000"), (2, "void f<int>(int)"), (3, "cudaStreamSynchronize_v3020")])
db.execute('CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, "end" INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER)')
db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", [(1000, 6000, tid, 1, 1), (7000, 111000, tid, 2, 3)])
if len(sys.argv) > 2:
    db.execute('CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, "end" INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER)')
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 7, 1, ?, 2)", (int(sys.argv[2]), int(sys.argv[3]), pid))
db.commit()
PYTHON
}
if command -v python3 >/dev/null; then
    export_nsys "$dir/nsys" 10000 110000
    gzip -c "$dir/nsys" >"$dir/nsys.gz"
    check "an export of Nsight Systems" takes 110000 1000 "$dir/nsys"
    check "... compressed" takes 110000 1000 "$dir/nsys.gz"
    check "... has short names" has 'launch: f, stream: s7, time: 0.1ms' "$dir/nsys"
    # Other versions have other columns and tables.
    python3 - "$dir/nsys" "$dir/nsys.old" "$dir/nsys.new" "$dir/nsys.copies" "$dir/nsys.both" <<'PYTHON'
import shutil, sqlite3, sys
def change(path, *statements):
    shutil.copy(sys.argv[1], path)
    db = sqlite3.connect(path)
    for statement in statements:
        db.execute(statement)
    db.commit()
old, new, copies, both = sys.argv[2:]
change(old, "CREATE TABLE k AS SELECT start, \"end\", streamId, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL",
       "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL", "ALTER TABLE k RENAME TO CUPTI_ACTIVITY_KIND_KERNEL")
change(new, "CREATE TABLE META_DATA_EXPORT (name, value)",
       "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '9.99.0')",
       "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN shortName INTEGER",
       "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN contextId INTEGER",
       "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, \"end\", other)",
       "CREATE TABLE NVTX_EVENTS (start, \"end\", eventType, text, globalTid)")
change(both, "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, \"end\", streamId, correlationId, copyKind, bytes, globalPid)",
       "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (120000, 130000, 7, 1, 1, 64, 117440512)")
change(copies, "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL",
       "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, \"end\", streamId, correlationId, copyKind, bytes, globalPid)",
       "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (10000, 110000, 7, 1, 1, 64, 117440512)")
PYTHON
    check "... of a version with fewer columns" takes 110000 1000 "$dir/nsys.old"
    check "... of one with more columns and tables" takes 110000 1000 "$dir/nsys.new"
    check "... a copy has its direction in its name" has 'copy: h2d, name: Memcpy HtoD' "$dir/nsys.both"
    check "... whose launches have no kernels" complains 3 "launch kernels (1 times), and no kernel is recorded" \
        "$SWSIM" import "$dir/nsys.copies"
    export_nsys "$dir/nsys.none"
    check "... without kernels" complains 3 "no work of a GPU" "$SWSIM" import "$dir/nsys.none"
    export_nsys "$dir/nsys.back" 10000 9000
    check "... with a time that runs backwards" complains 3 "left out: 1, first 'void f<int>" "$SWSIM" import "$dir/nsys.back"
    check "... and nothing else" complains 3 "no work of a GPU" "$SWSIM" import "$dir/nsys.back"
    # One reversed row among twenty is left out; of nine among twenty nothing is believed.
    python3 - "$dir/nsys" "$dir/nsys.one_back" "$dir/nsys.many_back" <<'PYTHON'
import shutil, sqlite3, sys
for path, backwards in (sys.argv[2], 1), (sys.argv[3], 9):
    shutil.copy(sys.argv[1], path)
    db = sqlite3.connect(path)
    for n in range(10):
        back = 500 if n < backwards else 0
        begin = 120000 + 2000 * n
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 1)", (begin, begin + 100, (7 << 24) + 7, n + 10))
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 7, ?, ?, 2)", (begin + 200, begin + 400 - back, n + 10, 7 << 24))
    db.commit()
PYTHON
    check "... with one reversed row of many" complains 0 "are left out: 1, first" \
        "$SWSIM" import -o "$dir/plan.yaml" "$dir/nsys.one_back"
    check "... the others are read" sh -c "[ \$(grep -c 'launch: f' '$dir/plan.yaml') = 10 ]"
    check "... a plan that is proved" exits 0 "$SWSIM" verify -q "$dir/plan.yaml"
    check "... with nine of 23" complains 3 "9 of its 23 events end before they begin or have no time" "$SWSIM" import "$dir/nsys.many_back"
    head -c 5000 "$dir/nsys" >"$dir/nsys.cut"
    check "... cut off" complains 3 "Nsight Systems" "$SWSIM" import "$dir/nsys.cut"
else
    skip "no python3 to write an export of Nsight Systems"
fi
check "another file of SQLite" complains 3 "not an export of Nsight Systems" "$SWSIM" import "$dir/runs.db"
"$SWSIM" predict -q -n 5 --db="$dir/store.db" "$srcdir/plans/examples/hello.yaml" >"$dir/out"
check "a trace store, by its verb" complains 3 "a trace store, which 'swsim runs' lists" "$SWSIM" import "$dir/store.db"
check "nor is it a plan" complains 3 "found a file of SQLite, expected a plan: 'swsim runs'" "$SWSIM" verify "$dir/store.db"
check "nor is a trace" complains 3 "found the trace of a profiler, expected a plan: 'swsim import' makes one" \
    "$SWSIM" predict "$srcdir/plans/traces/recommender/rank0.json"
check "which is told once" sh -c "'$SWSIM' verify '$srcdir/plans/traces/recommender/rank0.json' 2>&1 | grep -c error: | grep -qx 1"
gzip -c "$srcdir/plans/traces/recommender/rank0.json" >"$dir/rank0.json.gz"
check "nor a compressed one" complains 3 "found a compressed file" "$SWSIM" verify "$dir/rank0.json.gz"
check "nor a dump" complains 3 "found the dump of a flight recorder" "$SWSIM" verify "$srcdir/plans/traces/hang/rank0.json"
printf '\200\002}.' >"$dir/dump.pickle"
check "nor a pickle" complains 3 "found a pickle" "$SWSIM" verify "$dir/dump.pickle"

# ---- what nothing explains ------------------------------------------------------------------------

{
    call cudaLaunchKernel 1 1000 5 1
    work kernel early 7 1010 50 1
    call cudaLaunchKernel 1 1010 5 2
    work kernel late 7 2060 50 2
} | trace 0 >"$dir/late.json"
check "a plan that takes less than half of the job's time is refused" complains 4 \
    "replayed 110 us of 1.11 ms measured (-90.1%).* idle for .*, 0 ns instead of 1.00 ms; --opaque" \
    "$SWSIM" import -o "$dir/late.yaml" "$dir/late.json"
check "... and not written" test ! -e "$dir/late.yaml"
check "... unless it is forced, and says what it cannot explain" sh -c \
    "'$SWSIM' import --force -o '$dir/late.yaml' '$dir/late.json' 2>&1 | grep 'for 90% of its time the device is idle'"
check "... in the plan, too" grep '^unexplained: 0.9' "$dir/late.yaml"
check "... and predict refuses, with what helps" complains 4 "more than 5%.*import --opaque" "$SWSIM" predict "$dir/late.yaml"
check "... unless it is told to" exits 0 "$SWSIM" predict --opaque "$dir/late.yaml"
{ two_tasks; echo 'unexplained: 0.5'; } >"$dir/dark.yaml"
check "... tune refuses a pipeline" complains 4 "more than 5%" "$SWSIM" tune --budget=1 "$dir/dark.yaml"
check "... and with --opaque takes it" exits 0 "$SWSIM" tune --budget=1 --opaque "$dir/dark.yaml"
{ "$SWSIM" generate 1f1b --ranks=2 --microbatches=2; echo 'unexplained: 0.5'; } >"$dir/dark_ranks.yaml"
check "... and rank programs" complains 4 "more than 5%" "$SWSIM" tune --schedule=1f1b "$dir/dark_ranks.yaml"
check "... likewise" exits 0 "$SWSIM" tune --opaque --schedule=1f1b "$dir/dark_ranks.yaml"
check "compare leaves it out" complains 3 "5% of the time without a cause" sh -c \
    "'$SWSIM' import --force --db='$dir/late.db' '$dir/late.json' && '$SWSIM' compare '$dir/late.db'"
check "... unless it is told to" prints 0 "late" "$SWSIM" compare --opaque "$dir/late.db"
check "idle time as work" takes 1110000 20000 --opaque "$dir/late.json"
check "work without a launch is counted" sh -c \
    "sed '/\"cuda_runtime\".*\"correlation\":2}/d' '$dir/late.json' >'$dir/unlaunched.json'"
check "..." reports unlaunched 1 "$dir/unlaunched.json"

# A device that works up to 10 us before an unexplained gap of 20 us, on a busy stream: 2% of its time.
{
    call cudaLaunchKernel 1 1000 5 1
    work kernel long 7 1010 1000 1
    call cudaLaunchKernel 1 1010 5 2
    work kernel after 7 2030 10 2
} | trace 0 >"$dir/little.json"
check "a little that is unexplained, though it is most of the idle time, is predicted" takes 1040000 25000 "$dir/little.json"

# A server: the profiler begins while the device works on something older.
{
    call cudaLaunchKernel 1 1000 5 1
    work kernel first 7 6000 50 1
    call cudaLaunchKernel 1 1010 5 2
    work kernel second 7 6051 50 2
} | trace 0 >"$dir/lead_in.json"
check "work from before the trace is not unexplained" reports unexplained 0 "$dir/lead_in.json"
check "... and takes its time in the plan" takes 5101000 1000 "$dir/lead_in.json"
check "... under its name" has 'launch: before the trace, stream: s7, time: 5ms' "$dir/lead_in.json"

# Blocking copies as HIP names them, behind a kernel of 10 ms; and hipFree, which waits for the device.
blocking()
{
    call hipLaunchKernel 1 1000 5 1
    work kernel gemm 0 1010 10000 1
    call $1 1 1010 10010 2
    [ $1 = hipFree ] || work gpu_memcpy "Memcpy DtoH (Device -> Host)" 0 11012 5 2
    call hipLaunchKernel 1 11030 5 3
    work kernel gemm 0 11040 10000 3
}
for copy in hipMemcpyWithStream hipMemcpyAsync hipFree; do
    blocking $copy | trace 0 >"$dir/blocking.json"
    check "$copy waits for the kernel before it" has 'sync: ' "$dir/blocking.json"
    check "... so a faster kernel is a gain" sh -c \
        "'$SWSIM' predict --what-if=gemm=0.5x '$dir/plan.yaml' | grep -E 'gemm.*-(10.0|9.99) ms'"
done

# A job whose host frees memory for 2 ms before each launch: the report and what-if know it, with its operator and line.
{
    for i in 0 1 2; do
        t=$((1000 + 3000 * i))
        act python_function "train.py(41): step" 1 $t 2900
        act python_function "/opt/lib/python3.11/site-packages/torch/nn/modules/module.py(1501): _call_impl" 1 $t 2900
        act cpu_op aten::empty 1 $t 2100
        call hipFree 1 $((t + 10)) 2000 $((3 * i + 1))
        call hipLaunchKernel 1 $((t + 2100)) 5 $((3 * i + 2))
        work kernel gemm 0 $((t + 2110)) 500 $((3 * i + 2))
    done
} | trace 0 >"$dir/free.json"
check "what the host did while nothing was launched is told" prints 0 "85%  hipFree in aten::empty, train.py(41): step" \
    "$SWSIM" import --report "$dir/free.json"
check "... as JSON" prints 0 '"host":\[{"name":"hipFree","within":"aten::empty","line":"train.py(41): step","ns":6000000}' \
    "$SWSIM" import --report --json "$dir/free.json"
check "... in the ledger of the run" sh -c "'$SWSIM' import -q --db='$dir/free.db' '$dir/free.json' 2>/dev/null &&
    '$SWSIM' runs --run=1 '$dir/free.db' | grep 'its launch by the host, which is in hipFree in aten::empty, train.py(41): step'"
check "... and is CPU time of its name" has 'host: 2ms, name: hipFree' "$dir/free.json"
check "... which a what-if removes" sh -c "'$SWSIM' predict --what-if=hipFree=0x '$dir/plan.yaml' | grep -E 'hipFree.*-6.00 ms'"

# The host without what it did: an operator or a line that the plan has no operation of.
{
    for i in 0 1 2; do
        t=$((1000 + 3000 * i))
        act python_function "data.py(12): next_batch" 1 $t 2000
        act cpu_op aten::stack 1 $((t + 300)) 1600
        call cudaLaunchKernel 1 $((t + 2100)) 5 $((i + 1))
        work kernel gemm 0 $((t + 2110)) 500 $((i + 1))
    done
} | trace 0 >"$dir/loader.json"
without()
{
    "$SWSIM" import -q --without="$1" -o "$dir/plan.yaml" "$dir/loader.json" 2>/dev/null
    [ "$("$SWSIM" predict --json "$dir/plan.yaml" | field makespan_ns)" = "$2" ]
}
# From the first launch: 6.51 ms, of which two batches are made.
check "a job whose host makes batches" without nothing 6510000
check "... without the operator that makes them" without aten::stack 3310000
check "... without the line of Python around it" without "data.py(12): next_batch" 2510000
check "... which is the gain of its stall" prints 0 "^ *4.98 ms  *3.20 ms  s0 .* which is in aten::stack" "$SWSIM" why "$dir/loader.json"

# Thirty kernels of one place each, and one that comes often, all too narrow for a box: the legend names that one.
{
    call cudaGraphLaunch 1 1000 100 1
    i=0
    while [ $i -lt 3000 ]; do
        [ $((i % 100)) = 0 ] && name=rare$i || name=frequent
        work kernel $name 7 $((1100 + 10 * i)) 10 1
        i=$((i + 1))
    done
    call cudaStreamSynchronize 1 1110 30100 2
} | trace 0 >"$dir/narrow.json"
"$SWSIM" import -q --db="$dir/narrow.db" "$dir/narrow.json" 2>/dev/null
"$SWSIM" render -o "$dir/narrow.svg" "$dir/narrow.db"
check "a picture names narrow work that is much of the time" found ">frequent<" "$dir/narrow.svg"
check "... and counts what is less than 1% of it" found "and 30 more, too short to be seen" "$dir/narrow.svg"

# A graph is one launch, whatever it holds; the thread works beside it.
{
    call cudaGraphLaunch 1 1000 100 1
    i=0
    while [ $i -lt 1500 ]; do
        work kernel node 7 $((1100 + 10 * i)) 10 1
        i=$((i + 1))
    done
    call cudaStreamSynchronize 1 15000 1110 2
} | trace 0 >"$dir/graph.json"
check "a graph of 1500 kernels is one launch" has 'launch_queue: 1500' "$dir/graph.json"
check "... of the 1 that a queue of 1 holds" has 'launch_queue: 1500' --launch-queue=1 "$dir/graph.json"
check "launches of one kernel each are as many" has 'launch_queue: 1024' "$dir/two.json"

# Files of real jobs that were once replayed wrong or refused.
files=$SWSIM_SHARED/reviews/files
if [ -d "$files" ]; then
    for file in "$files"/*_item.json "$files"/refused*.json* "$files"/graph*.gz "$files"/hip*.gz "$files"/lead*.gz; do
        check "${file##*/} is replayed within 1%" sh -c \
            "'$SWSIM' import -o '$dir/plan.yaml' '$file' 2>&1 | grep -E 'replayed .* \\([+-]0\\.[0-9]%\\)'"
    done
else
    skip "no files of real jobs in $files"
fi

# HIP begins work up to 50 us after the end of its launch.
{
    call hipLaunchKernel 1 1000 5 1
    work kernel first 0 1010 50 1
    call hipLaunchKernel 1 1100 5 2
    work kernel second 0 1141 50 2
} | trace 0 >"$dir/latency.json"
check "a launch that takes 36 us is a launch" reports unexplained 0 "$dir/latency.json"

# ---- devices that are not read ----------------------------------------------------------------------

# other CATEGORY PROCESS: a process on the CPU, and work of another device in this category and process.
other()
{
    range forward 1 1000 500
    echo ",{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":9,\"tid\":0,\"args\":{\"name\":\"$2\"}}"
    echo ",{\"ph\":\"X\",\"cat\":\"$1\",\"name\":\"op\",\"pid\":9,\"tid\":1,\"ts\":1100,\"dur\":50,\"args\":{}}"
}
while read -r category process name; do
    other "$category" "$process" | trace 0 >"$dir/other.json"
    check "$category of $process is refused by its name" refuses "$dir/other.json" "a trace of $name, whose work is not read"
done <<'END'
none Ascend an Ascend NPU
mtia_ccp_events python MTIA
xpu_runtime python an Intel XPU
hpu_op python a Gaudi HPU
none /device:TPU:0 a TPU
END
other none python | trace 0 >"$dir/other.json"
check "a process on CPUs alone is proved, except a device" sh -c \
    "'$SWSIM' import '$dir/other.json' 2>/dev/null | '$SWSIM' verify - | grep 'except.*work of a device: the trace has CPU time alone'"
{ range forward 1 1000 500; range nccl:all_reduce 1 1100 50; } | trace 0 >"$dir/other.json"
check "ranks of NCCL without work of a GPU" refuses "$dir/other.json" "ranks communicate over nccl.*ProfilerActivity.CUDA"
{ range forward 1 1000 500; range mpi:all_reduce 1 1100 50; } | trace 0 >"$dir/other.json"
check "ranks of MPI" refuses "$dir/other.json" "ranks communicate over mpi, whose operations are not read"

# ---- files that are no traces, with the command that helps ------------------------------------------------

echo x >"$dir/report.nsys-rep"
check "a report of Nsight Systems" refuses "$dir/report.nsys-rep" "nsys export --type sqlite"
tar -C "$dir" -cf "$dir/traces.tar" two.json
gzip -c "$dir/traces.tar" >"$dir/traces.tar.gz"
check "an archive" refuses "$dir/traces.tar" "'tar xf FILE'"
check "... compressed" refuses "$dir/traces.tar.gz" "'tar xf FILE'"
printf 'PK\003\004' >"$dir/traces.zip"
check "... of zip" refuses "$dir/traces.zip" "'unzip FILE'"
echo '{"schema": "1.1", "nodes": []}' >"$dir/et.json"
check "an execution trace" refuses "$dir/et.json" "import the trace of torch.profiler of the same run"

# Events that a file has twice count once.
{ two_streams; two_streams; } | trace 0 >"$dir/twice.json"
check "what stands in a file twice counts once" takes 1000000 0 "$dir/twice.json"
check "... as a warning says" found "repeated calls and operations of the device count once: 10 are left out" "$dir/err"
check "... and the report" reports duplicated 10 "$dir/twice.json"
imports --name=two "$dir/twice.json" && mv "$dir/plan.yaml" "$dir/twice.yaml" && imports --name=two "$dir/two.json"
check "... the plan is that of the others" cmp "$dir/twice.yaml" "$dir/plan.yaml"

# Work that the stream still had when the trace began: the wait is for what was pushed behind it.
{
    work kernel before 7 1000 500 101
    work kernel before 7 1501 99 102
    call cudaLaunchKernel 1 1100 5 1
    work kernel behind 7 1602 48 1
    call cudaStreamSynchronize 1 1110 542 2
    call cudaLaunchKernel 1 1660 5 3
    work kernel last 7 1670 10 3
} | trace 0 >"$dir/leftovers.json"
check "leftovers of the time before the trace" takes 680000 3000 "$dir/leftovers.json"

# ---- bad input ------------------------------------------------------------------------------------

head -c 300 "$dir/two.json.gz" >"$dir/cut.json.gz"
head -c 700 "$dir/two.json" >"$dir/cut.json"
call cudaLaunchKernel 1 1000 5 1 | trace 0 >"$dir/cpu.json"
sed 's/"dur":300.500/"dur":-3/' "$dir/two.json" >"$dir/backwards.json"
echo '{"events": []}' >"$dir/none.json"
echo 'swplan: 1' >"$dir/plan.txt"
: >"$dir/empty"
check "a truncated compressed file" refuses "$dir/cut.json.gz" "truncated"
check "a truncated text" refuses "$dir/cut.json" "ends before it is complete"
# Chrome's format lets the ']' of a list of events be missing, and a writer that is ended leaves its last comma.
sed '$d' "$dir/array.json" >"$dir/open.json"
{ cat "$dir/open.json"; echo ','; } >"$dir/comma.json"
sed '$s/}$//' "$dir/open.json" >"$dir/open_cut.json"
sed '$d' "$dir/two.json" >"$dir/object_cut.json"
"$SWSIM" import --name=x "$dir/array.json" >"$dir/closed_plan" 2>"$dir/err"
for list in open comma; do
    check "a list without its end is read, and said ($list)" complains 0 "$list.json: its list of events has no end" \
        "$SWSIM" import --name=x -o "$dir/$list.yaml" "$dir/$list.json"
    check "... as with its end" cmp "$dir/closed_plan" "$dir/$list.yaml"
done
check "a list that is cut off in an event" refuses "$dir/open_cut.json" "ends before it is complete"
check "an object that is cut off behind an event" refuses "$dir/object_cut.json" "ends before it is complete"
for list in array two; do
    { printf '\357\273\277'; cat "$dir/$list.json"; } >"$dir/marked.json"
    "$SWSIM" import --name=x "$dir/$list.json" >"$dir/unmarked_plan" 2>"$dir/err"
    check "a byte order mark is passed over ($list)" exits 0 "$SWSIM" import --name=x -o "$dir/marked.yaml" "$dir/marked.json"
    check "... and changes nothing" cmp "$dir/unmarked_plan" "$dir/marked.yaml"
done
check "no work of a GPU" refuses "$dir/cpu.json" "no work of a GPU"
{
    call cudaLaunchKernel 1 1000.000 5.000 1
    work kernel early 7 500.000 20.000 1
} | trace 0 >"$dir/early.json"
check "work that is over before its launch" refuses "$dir/early.json" "its times run backwards: 1 of 1 operations"
n=1
while [ $n -le 20 ]; do
    call cudaLaunchKernel 1 $((9000 - 100 * n)) 5 "$n"
    work kernel f 7 $((9010 - 100 * n)) 50 "$n"
    n=$((n + 1))
done | trace >"$dir/reversed.json"
check "times that fall where ids rise" refuses "$dir/reversed.json" "later calls of a thread have earlier ids"
# Of events that end before they begin, the file's others are read.
check "an event that ends before it begins is left out, and said" complains 0 "left out: 1, first 'void at::native" \
    "$SWSIM" import --force -o "$dir/plan.yaml" "$dir/backwards.json"
check "... the others are read" sh -c "grep 'launch: second' '$dir/plan.yaml' && ! grep 'launch: first' '$dir/plan.yaml'"
check "... a plan that is proved" exits 0 "$SWSIM" verify -q "$dir/plan.yaml"
sed 's/"dur":/"dur":-/' "$dir/two.json" >"$dir/all_back.json"
check "... a file of nothing else" refuses "$dir/all_back.json" "of its .* events end before they begin"
# A row that names the wrong stream: its work goes on long after the wait, and the other's ends in it.
{
    call cudaLaunchKernel 1 1000 5 1
    work kernel short 20 1010 100 1
    call cudaLaunchKernel 1 1006 5 2
    work kernel long 7 1015 900 2
    call cudaStreamSynchronize 1 1012 99 3
    echo ',{"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":0,"tid":7,"ts":1012,"dur":99,"args":{"stream":7,"correlation":3}}'
    call cudaLaunchKernel 1 1120 5 4
    work kernel after 20 1130 50 4
} | trace >"$dir/wrong_sync.json"
check "a row that names a stream which works on is not believed" has 'sync: stream, stream: s20' "$dir/wrong_sync.json"
check "... and is counted" reports still_running 1 "$dir/wrong_sync.json"
# An event without a time is no reason to refuse the others.
{ sed '$d' "$dir/two.json"; echo ',{"ph":"X","cat":"kernel","name":"timeless","pid":0,"tid":7,"dur":5,"args":{"stream":7,"correlation":9}}'; echo ']}'; } >"$dir/timeless.json"
check "an event without a time is left out, and said" complains 0 "left out: 1, first 'timeless'" \
    "$SWSIM" import -o "$dir/plan.yaml" "$dir/timeless.json"
# Two streams that work at the same time, named by `stream`, by the thread of the event alone, and by nothing.
{
    call cudaLaunchKernel 1 1000 5 4294967290
    work kernel left 7 1010 400 4294967290
    call cudaLaunchKernel 1 1005 5 4294967292
    work kernel right 9 1015 400 4294967292
    call cudaDeviceSynchronize 1 1020 400 4294967294
} | trace >"$dir/streams.json"
sed 's/"stream":[79],//' "$dir/streams.json" >"$dir/threads.json"
sed 's/"pid":0,"tid":[79]/"pid":0,"tid":"device"/' "$dir/threads.json" >"$dir/nowhere.json"
sed 's/4294967290/-6/; s/4294967292/-4/; s/4294967294/-2/' "$dir/streams.json" >"$dir/signed.json"
"$SWSIM" import --name=x "$dir/streams.json" >"$dir/streams_plan" 2>"$dir/err"
check "streams without their key are those of the events' threads" \
    sh -c "'$SWSIM' import --name=x '$dir/threads.json' | cmp - '$dir/streams_plan'"
check "ids that a file shows as signed" \
    sh -c "'$SWSIM' import --name=x '$dir/signed.json' | cmp - '$dir/streams_plan' && grep 'stream: s9' '$dir/streams_plan'"
check "work that overlaps on one stream is said" complains 0 "operations of one stream overlap" \
    "$SWSIM" import --force -o "$dir/plan.yaml" "$dir/nowhere.json"
check "... counted" prints 0 '1 operations of a stream begin before the one in front of them' \
    "$SWSIM" import --report --force -o "$dir/plan.yaml" "$dir/nowhere.json"
check "... not predicted" complains 4 "more than 5%" "$SWSIM" predict "$dir/plan.yaml"
check "... nor with --opaque of the import" sh -c \
    "'$SWSIM' import -q --opaque --force -o '$dir/plan.yaml' '$dir/nowhere.json'; '$SWSIM' predict '$dir/plan.yaml'; [ \$? = 4 ]"
sed 's/"ts":1998.000/"ts":1998000000000.000/' "$dir/two.json" >"$dir/apart.json"
sed 's/"ts":1998.000/"ts":1e300/' "$dir/two.json" >"$dir/huge.json"
check "times that are not of one clock" refuses "$dir/apart.json" "hours apart"
check "a time that no clock shows is left out, and said" complains 0 "left out: 1, first .third" "$SWSIM" import -o "$dir/plan.yaml" "$dir/huge.json"
check "JSON that is no trace" refuses "$dir/none.json" "not a trace"
check "a plan is no trace" refuses "$dir/plan.txt" "neither JSON"
check "nothing at all" refuses "$dir/empty" "empty"
check "a file that is not there" complains 2 "cannot open" "$SWSIM" import "$dir/missing.json"

# ---- dumps of hangs -------------------------------------------------------------------------------

# dump RANK GROUPS: the entries of standard input, `pg name seq p2p sizes state` each, as a dump. GROUPS: "pg ranks" lines.
dump()
{
    echo "{\"version\": \"2.4\", \"rank\": $1, \"pg_config\": {$2}, \"entries\": ["
    awk '{ printf("%s{\"record_id\": %d, \"pg_id\": 0, \"process_group\": [\"%s\", \"d\"], \"collective_seq_id\": %d, \"profiling_name\": \"nccl:%s\", \"input_sizes\": [[%s]], \"output_sizes\": [[%s]], \"input_dtypes\": [\"Float\"], \"output_dtypes\": [\"Float\"], \"state\": \"%s\", \"is_p2p\": %s}\n",
        (NR > 1) ? "," : "", NR - 1, $1, $3, $2, $4, $4, $6, $5) }'
    echo ']}'
}
both='"0": {"name": "0", "desc": "a", "ranks": "[0, 1]"}, "1": {"name": "1", "desc": "b", "ranks": "[0, 1]"}'
# entry PG NAME SEQ SIZE P2P STATE
entry()
{
    printf '%s %s %s %s %s %s\n' "$1" "$2" "$3" "$4" "${5:-false}" "${6:-scheduled}"
}
# two CASE: from the entries in $dir/a and $dir/b the dumps of two ranks.
two_dumps()
{
    dump 0 "$both" <"$dir/a" | sed 's/@/ /' >"$dir/$1.0"
    dump 1 "$both" <"$dir/b" | sed 's/@/ /' >"$dir/$1.1"
}
# judged CASE VERDICT [OPTION...]: of the plan of these dumps.
judged()
{
    name=$1 verdict=$2
    shift 2
    "$SWSIM" import "$@" -o "$dir/hang.yaml" "$dir/$name.1" "$dir/$name.0" 2>"$dir/err"
    cat "$dir/err"
    grep -q hypotheses "$dir/err" || return
    "$SWSIM" verify --no-fix "$dir/hang.yaml" >"$dir/out" 2>&1
    cat "$dir/hang.yaml" "$dir/out"
    grep -qE "$verdict" "$dir/out"
}
{ entry 0 all_reduce 1 8; entry 0 all_reduce 2 8; entry 0 all_gather 3 8; } >"$dir/a"
{ entry 0 all_reduce 1 8; entry 0 all_gather 2 8; } >"$dir/b"
two_dumps extra
check "one all-reduce too many is a mismatch, always" judged extra 'mismatch.* always'
check "... whether the host waits or not" judged extra 'mismatch.* always' --host-waits
{ entry 0 all_reduce 1 8; entry 1 all_reduce 1 8; } >"$dir/a"
{ entry 1 all_reduce 1 8; entry 0 all_reduce 1 8; } >"$dir/b"
two_dumps order
check "two groups in opposite orders come through if the host does not wait" judged order 'proved'
check "... and hang always if it does" judged order 'deadlock.* always' --host-waits
check "... and sometimes if one kernel runs at once" judged order 'deadlock.* some' --sm-slots=1
{ entry 0 all_reduce 1 8; entry 0 send@0-\>1 1 8 true; } >"$dir/a"
{ entry 0 recv@1\<-0 1 8 true; entry 0 all_reduce 1 8; } >"$dir/b"
two_dumps message
check "a send after an all-reduce, received before it, hangs always" judged message 'deadlock.* always'
{ entry 0 all_reduce 1 8; } >"$dir/a"
{ entry 0 all_reduce 1 16; } >"$dir/b"
two_dumps size
check "an all-reduce of two sizes is a mismatch, always" judged size 'mismatch.* always'
{ entry 0 all_reduce 5 8; entry 0 all_reduce 6 8; entry 0 all_reduce 7 8; } >"$dir/a"
{ entry 0 all_reduce 6 8; entry 0 all_reduce 7 8; } >"$dir/b"
two_dumps ring
check "what a ring has lost is left out" judged ring 'proved'
{ entry 0 all_reduce 6 8; } >"$dir/b"
two_dumps late
check "a rank that does not come is waited for" judged late 'deadlock.* always'
check "two dumps of one rank" complains 3 "both are of rank 0" "$SWSIM" import "$dir/late.0" "$dir/size.0"
check "a trace and a dump" complains 3 "do not belong together" "$SWSIM" import "$dir/late.0" "$dir/two.json"
echo '{"entries": []}' >"$dir/none.0"
check "a dump without entries" complains 3 "no entries" "$SWSIM" import "$dir/none.0"

rm -f "$dir/none.yaml"
check "a dump has no run to store" complains 2 "a dump has no measured run" \
    "$SWSIM" import --db="$dir/none.db" -o "$dir/none.yaml" "$dir/late.0"
check "... and nothing is written" sh -c "[ ! -e '$dir/none.yaml' ] && [ ! -e '$dir/none.db' ]"

# Pickle: protocol 2, {"entries": [{"profiling_name": "nccl:all_reduce", "collective_seq_id": 1}]}; the name by the memo.
text()
{
    printf 'X'
    printf "\\$(printf %03o "${#1}")\\000\\000\\000%s" "$1"
}
pickle()
{
    printf '\200\002}'
    text entries
    printf ']q\001(}('
    text profiling_name
    text nccl:all_reduce
    text collective_seq_id
    printf 'K\001ueh\0010s.'
}
pickle >"$dir/nccl_trace_rank_0"
check "a dump of pickle" has 'collective: all_reduce, comm: pgdefault' "$dir/nccl_trace_rank_0"
printf '\200\002cos\nsystem\nX\004\000\000\000true\205R.' >"$dir/evil"
check "pickle that would call something is not followed" complains 3 "GLOBAL would import" "$SWSIM" import "$dir/evil"
# An instruction behind a dict, two texts and an empty tuple, which all of these would use.
while read -r name code; do
    printf "\\200\\002}X\\002\\000\\000\\000osX\\006\\000\\000\\000system)\\$code\\001\\000\\000\\000os\\nsystem\\n." >"$dir/code"
    check "$name is not followed" complains 3 "not of data alone ($name would" "$SWSIM" import "$dir/code"
done <<'CODES'
GLOBAL 143
STACK_GLOBAL 223
REDUCE 122
BUILD 142
INST 151
OBJ 157
NEWOBJ 201
NEWOBJ_EX 222
EXT1 202
EXT2 203
EXT4 204
PERSID 120
BINPERSID 121
NEXT_BUFFER 227
CODES
printf '\200\002}2.' >"$dir/odd"
check "an instruction that no dump needs" complains 3 "0x32, which no dump needs" "$SWSIM" import "$dir/odd"
head -c 30 "$dir/nccl_trace_rank_0" >"$dir/short"
check "pickle that ends too early" complains 3 "ends before it is complete" "$SWSIM" import "$dir/short"
printf '\200\002K\001a.' >"$dir/odd"
check "pickle that is damaged" complains 3 "damaged" "$SWSIM" import "$dir/odd"

# ---- the trace of the README ----------------------------------------------------------------------

sh "$srcdir/plans/traces/generate_hang.sh" "$dir/dumps_of_plans"
check "plans/traces/hang is what generate_hang.sh writes" diff -r "$srcdir/plans/traces/hang" "$dir/dumps_of_plans"
sh "$srcdir/plans/traces/generate.sh" "$dir/recommender"
for rank in 0 1; do
    check "plans/traces/recommender/rank$rank.json is what generate.sh writes" \
        cmp "$srcdir/plans/traces/recommender/rank$rank.json" "$dir/recommender/rank$rank.json"
done
check "a predicted run of it is as long as the measured one" takes 14757000 100000 "$srcdir/plans/traces/recommender"
check "what if its all-to-all took no time" prints 0 'nccl.*SendRecv=0x .* -582 us +- [0-9.]* us' \
    "$SWSIM" predict --what-if='ncclDevKernel_SendRecv=0x' "$dir/plan.yaml"
check "... by the beginning of the name, as JSON" prints 0 '"difference_ns":-581900,' \
    "$SWSIM" predict --json --what-if='ncclDevKernel_Send*=0x' "$dir/plan.yaml"
check "no such name" complains 2 "no task matches" "$SWSIM" predict --what-if='rccl*=0x' "$dir/plan.yaml"

# ---- repeated steps -------------------------------------------------------------------------------

# folds OPTION REPEATS: so many threads repeat a step, and the plan takes as long as without.
folds()
{
    repeats=$1
    shift
    imports "$@" || return
    [ "$(grep -c 'repeat: 3' "$dir/plan.yaml")" = "$repeats" ] || return
    ns=$("$SWSIM" predict --json "$dir/plan.yaml" | field makespan_ns)
    imports --repeat=never "$@" && [ "$("$SWSIM" predict --json "$dir/plan.yaml" | field makespan_ns)" = "$ns" ]
}
check "three steps that do the same are one, three times" folds 2 "$srcdir/plans/traces/recommender"
check "... not where it is not wanted" folds 0 --repeat=never "$srcdir/plans/traces/recommender"

# Three steps of two kernels on two streams, of which the second waits for the first: STEP of them says so otherwise, by
# a wait in front of its third kernel.
unlike()
{
    for k in 0 1 2; do
        base=$((1000 + 1000 * k)) id=$((10 * k))
        step "$k" $base.000 1000.000
        call cudaLaunchKernel 1 $((base + 10)).000 5.000 $((id + 1))
        work kernel first 7 $((base + 20)).000 200.000 $((id + 1))
        call cudaEventRecord 1 $((base + 16)).000 1.000 $((id + 2))
        [ "$k" = "$1" ] || call cudaStreamWaitEvent 1 $((base + 18)).000 1.000 $((id + 3))
        call cudaLaunchKernel 1 $((base + 20)).000 5.000 $((id + 4))
        begin=221
        [ "$k" = "$1" ] && begin=30
        work kernel second 8 $((base + begin)).000 100.000 $((id + 4))
        [ "$k" = "$1" ] && call cudaStreamWaitEvent 1 $((base + 26)).000 1.000 $((id + 3))
        call cudaLaunchKernel 1 $((base + 28)).000 5.000 $((id + 5))
        work kernel third 8 $((base + 322)).000 100.000 $((id + 5))
    done
}
repeats_in()
{
    imports "$@" && grep -c 'repeat: 3' "$dir/plan.yaml"
}
unlike 3 | trace 0 >"$dir/alike.json"
unlike 1 | trace 0 >"$dir/unlike.json"
check "steps with one wait" folds 1 "$dir/alike.json"
check "a step that waits otherwise is another one" prints 1 '^0$' repeats_in "$dir/unlike.json"
check "... or takes the wait of most" prints 0 '^1$' repeats_in --repeat=like "$dir/unlike.json"
check "... and is proved, except the other waits" prints 0 'except waits of single steps: --repeat=like' \
    "$SWSIM" verify "$dir/plan.yaml"
check "... which steps alike have not" prints 1 '^0$' sh -c \
    '"$1" import --repeat=like -o "$2/plan.yaml" "$2/alike.json" && grep -c "waits of single" "$2/plan.yaml"' sh "$SWSIM" "$dir"

# ---- profiles -------------------------------------------------------------------------------------

# Three steps of a kernel, twice a step: the first time it always takes 20 us, then 40, 50 and 60. A step is as long as it is late.
k=0
while [ "$k" -lt 3 ]; do
    step "$k" $((k * 1000 + 1000)) 240
    call cudaLaunchKernel 1 $((k * 1000 + 1000)) 5 $((k * 2 + 1))
    work kernel gemm 7 $((k * 1000 + 1010)) 20 $((k * 2 + 1))
    call cudaLaunchKernel 1 $((k * 1000 + 1200)) 5 $((k * 2 + 2))
    work kernel gemm 7 $((k * 1000 + 1210)) $((40 + k * 10)) $((k * 2 + 2))
    k=$((k + 1))
done | trace 0 >"$dir/three.json"
# profiled LEAST MOST [OPTION...]: a prediction of step 2, of 270 us, is so long on average with the times of all steps.
profiled()
{
    least=$1 most=$2
    shift 2
    rm -f "$dir/three.db"
    imports --db="$dir/three.db" "$dir/three.json" && imports --steps=2 --name=three "$dir/three.json" &&
        exits 0 "$SWSIM" predict --json --profile="$dir/three.db" "$@" "$dir/plan.yaml" || return
    got=$(field makespan_ns <"$dir/out")
    echo "predicted $got ns"
    awk -v got="$got" -v least="$least" -v most="$most" 'BEGIN { exit !(got >= least && got <= most) }'
}
check "operations have the times of all steps" profiled 258000 262000 --replications=500
check "... as a note says" found "imported: 2 of 2 operations have those of 3 steps" "$dir/err"
check "... one of them at a time" profiled 250000 270000
imports "$dir/two.json" && cp "$dir/plan.yaml" "$dir/two.plan"
check "a profile of another plan" complains 3 "no imported run of two" "$SWSIM" predict --profile="$dir/three.db" "$dir/two.plan"
imports --db="$dir/two.db" "$dir/two.json"
check "a profile without steps" complains 3 "has fewer than two steps" "$SWSIM" predict --profile="$dir/two.db" "$dir/two.plan"

# ---- traces of real jobs --------------------------------------------------------------------------

# replays FILE...: proved, and within 1% of what was measured (of half a millisecond or more).
replays()
{
    "$SWSIM" import --report --json -o "$dir/plan.yaml" "$@" >"$dir/report" 2>/dev/null &&
        "$SWSIM" verify "$dir/plan.yaml" || return
    got=$("$SWSIM" predict --json "$dir/plan.yaml" | field makespan_ns)
    want=$(grep -oE '"measured_ns":[0-9]+' "$dir/report" | tr -dc '0-9\n' | sort -n | tail -n 1)
    echo "predicted $got ns, measured $want ns"
    awk -v got="$got" -v want="$want" 'BEGIN { exit !(got > 0.99 * want && got < 1.01 * want) }'
}
counts()
{
    [ "$("$SWSIM" import --report --json "$3" | field "$1")" = "$2" ]
}
data=$SWSIM_SHARED/data
if [ -d "$data/traces" ]; then
    for name in kineto/alexnet_trace kineto/multi_stream_event_sync_trace traces/torchrec_a100_rank0_of_8 \
        traces/resnet50_workers0_steps5_10 traces/resnet50_workers4_steps5_10 \
        kineto/event_sync_trace; do
        check "$name replays itself" replays "$data/$name.json.gz"
    done
    check "eight ranks replay themselves" replays "$data"/traces/dlrm_8ranks/*
    check "a rank whose work is not recorded is refused" sh -c \
        "'$SWSIM' import --force -o '$dir/refused.yaml' '$data/kineto/torchrec_rank0_of_16_trace.json.gz' 2>/dev/null &&
         '$SWSIM' verify '$dir/refused.yaml' && ! '$SWSIM' predict '$dir/refused.yaml' >/dev/null 2>&1"
    check "two processes replay themselves" replays "$data/traces/nsys_2gpu.sqlite.gz"
    check "two processes of Nsight Systems" sh -c \
        "'$SWSIM' import --report --json -o '$dir/nsys.yaml' '$data/traces/nsys_2gpu.sqlite.gz' |
         grep -q 'operations\":2636.*operations\":2663' && '$SWSIM' verify '$dir/nsys.yaml'"
    check "9450 operations" counts operations 9450 "$data/traces/torchrec_a100_rank0_of_8.json.gz"
    check "9096 operations" counts operations 9096 "$data/traces/resnet50_workers0_steps5_10.json.gz"
    check "ids that are broken" counts records_missing 2 "$data/traces/event_ids_broken.json.gz"
    check "ids that are right" counts records_missing 0 "$data/traces/event_ids_valid.json.gz"
else
    skip "no traces of real jobs in $data"
fi
done_testing

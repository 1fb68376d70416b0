#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim import` of traces without a device: training loops of tests/partners/loops.py over gloo on two processes, as
# PyTorch 2.9.1 recorded them, without the operators that import has no use for. cpu_data reduces gradients while the
# layers before go backward (two steps); cpu_pipe is 1F1B with four microbatches (one step).
. "${srcdir:-.}/tests/tap.sh"

dumps=$srcdir/tests/dumps
# imports PLAN TRACE...
imports()
{
    plan=$1
    shift
    "$SWSIM" import -o "$plan" "$@" >"$dir/out" 2>"$dir/err"
}
# takes FROM TO [OPTION...] PLAN: its prediction, in milliseconds, is between the two.
takes()
{
    from=$1 to=$2
    shift 2
    "$SWSIM" predict --json "$@" | tail -n 1 | tr ',' '\n' | sed -n 's/^"makespan_ns"://p' |
        awk -v from="$from" -v to="$to" '{ print; ok = $1 >= from * 1e6 && $1 <= to * 1e6 } END { exit !ok }'
}
count()
{
    grep -c "$1" "$2"
}
# strip SCRIPT NAME: the traces of cpu_NAME, less what a script of sed takes away, in $dir.
strip()
{
    for rank in 0 1; do
        sed "$1" "$dumps/cpu_$2/rank$rank.json" |
            awk '/^]/ { sub(/,$/, "", last) } NR > 1 { print last } { last = $0 } END { print last }' >"$dir/rank$rank.json"
    done
}

for name in data pipe; do
    imports "$dir/$name.yaml" "$dumps/cpu_$name"/rank?.json
    check "$name: the plan is proved" says "proved" "$SWSIM" verify --no-fix "$dir/$name.yaml"
    { sed '$d' "$dumps/cpu_$name/rank0.json" | sed '$s/$/,/'; sed 1d "$dumps/cpu_$name/rank1.json"; } >"$dir/joined.json"
    imports "$dir/joined.yaml" --name="$(sed -n 's/^name: //p' "$dir/$name.yaml")" "$dir/joined.json"
    check "$name: both processes in one file are the same job" cmp "$dir/joined.yaml" "$dir/$name.yaml"
    cp "$dir/$name.yaml" "$dir/plan.yaml"
    "$SWSIM" import --json -o "$dir/plan.yaml" "$dumps/cpu_$name"/rank?.json >/dev/null 2>&1
    check "... and with --json the same" cmp -s "$dir/plan.yaml" "$dir/$name.yaml"
done
check "data: the two steps take what they took, 514 ms" takes 509 519 "$dir/data.yaml"
check "data: collectives are on the stream of their group" found "collective: 'gloo:all_reduce', comm: gloo.0, stream: gloo.0" "$dir/data.yaml"
check "data: CPU time has the name of its annotation" found "name: backward2" "$dir/data.yaml"
check "data: a layer that takes twice as long, 48 ms more a step" takes 605 615 --what-if=backward1=2x "$dir/data.yaml"
check "pipe: the step takes what it took, 613 ms" takes 606 619 "$dir/pipe.yaml"
check "pipe: messages know their other rank" found "send: message, peer: 1" "$dir/pipe.yaml"
check "pipe: all of them are received" test "$(count 'send: message' "$dir/pipe.yaml")" = "$(count 'recv: message' "$dir/pipe.yaml")"
waits=$(count 'sync: event' "$dir/pipe.yaml")
check "pipe: each operation is waited for, $waits times" test "$waits" = "$(count 'record: e' "$dir/pipe.yaml")"

"$SWSIM" import -q --db="$dir/cpu.db" "$dumps"/cpu_data/rank?.json 2>/dev/null
"$SWSIM" render -o "$dir/cpu.svg" "$dir/cpu.db"
check "data: the picture has the annotations of its threads" found ">backward1 3<" "$dir/cpu.svg"

# Two ranks that do nothing but exchange for 40 ms, and go on 4 ms late on a busy machine: they wait, and do not compute.
python3 - "$dir" <<'END'
import json, sys
for rank in (0, 1):
    events = []
    def add(cat, name, tid, start, end, **args):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": 100 + rank, "tid": tid, "ts": start, "dur": end - start, "args": args})
    for step in range(3):
        at = 1000 + 60000 * step
        add("user_annotation", "exchange", 1, at, at + 44000)
        add("cpu_op", "c10d::alltoall_base_", 1, at + 50, at + 100)
        add("user_annotation", "gloo:all_to_all", 2, at + 150, at + 40000)
        add("user_annotation", "compute", 1, at + 44100, at + 54000)
    with open(f"{sys.argv[1]}/late{rank}.json", "w") as file:
        json.dump({"distributedInfo": {"backend": "gloo", "rank": rank, "world_size": 2}, "traceEvents": events}, file)
END
imports "$dir/late.yaml" "$dir/late0.json" "$dir/late1.json"
check "a thread that is late behind a long wait has waited" test "$(count 'sync: event' "$dir/late.yaml")" = 2
check "... so collectives that take no time are a gain of nearly all that they took" says "gloo.=0x .* -39.9 ms" "$SWSIM" predict --what-if='gloo*=0x' "$dir/late.yaml"

# One rank as a pipeline.
imports "$dir/plan.yaml" --form=pipeline "$dumps/cpu_data/rank0.json"
check "data as a pipeline: a layer is CPU time of its task" grep -q 'host_time: 6679' "$dir/plan.yaml"
check "... an iteration takes what a step took, 257 ms" sh -c "'$SWSIM' predict -n 50 '$dir/plan.yaml' 2>&1 | grep -E '^ *iteration +25[5-9] ms'"
check "... that the layers are CPU time is said" found "a layer is CPU time" "$dir/err"
check "... and that the other rank has no trace, in the verdict" \
    says "except 1 of 2 ranks: no trace of them" "$SWSIM" verify "$dir/plan.yaml"
printf '{"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "a layer", "pid": 1, "tid": 1, "ts": 1, "dur": 1000}]}' >"$dir/one.json"
check "a process that works alone is no pipeline" complains 3 "neither work of a GPU nor operations of gloo, of which a pipeline" \
    "$SWSIM" import --form=pipeline "$dir/one.json"
imports "$dir/none.yaml" --form=pipeline "$dumps/cpu_pipe/rank0.json"
check "pipe as a pipeline: messages are refused" found "it has messages between ranks" "$dir/err"

# Without stacks the waits are inferred; without shapes, too.
strip '/python_function/d' pipe
imports "$dir/plan.yaml" "$dir"/rank?.json
check "without stacks: as many waits" test "$(count 'sync: event' "$dir/plan.yaml")" = "$waits"
check "... and the same time" takes 606 619 "$dir/plan.yaml"
strip '/python_function/d; s/, "args": {"Concrete Inputs": [^}]*}//' data
imports "$dir/plan.yaml" "$dir"/rank?.json
check "without stacks and shapes: the same time" takes 505 523 "$dir/plan.yaml"
check "... and overlap is kept: a layer that takes twice as long" takes 600 620 --what-if=backward1=2x "$dir/plan.yaml"
strip 's/"world_size": 2/"world_size": 3/; s/, "args": {"Concrete Inputs": [^}]*}//' pipe
imports "$dir/plan.yaml" "$dir"/rank?.json
check "three ranks, and no shapes: which rank a message is for is asked" found "which rank a message goes to or comes from is not recorded" "$dir/err"
strip '/all_\{0,1\}reduce/d; s/"world_size": 2/"world_size": 4/; s/"pg_size": 2, "ranks": \[0, 1\]}/"pg_size": 4, "ranks": [0, 1, 2, 3]}, {"pg_name": "1", "pg_size": 2, "ranks": [1, 2]}, {"pg_name": "2", "pg_size": 2, "ranks": [0, 2]}/' pipe
imports "$dir/both.yaml" "$dir"/rank?.json
imports "$dir/plan.yaml" "$dir"/rank0.json
check "a rank of one of several process groups: that of all ranks is assumed" \
    found "the process group of 8 messages is not recorded: the group of all ranks is assumed" "$dir/err"
check "... in the verdict, too" says "the process groups of 8 messages: that of all ranks is assumed" "$SWSIM" verify "$dir/plan.yaml"
check "... which is tested where the other rank has a trace" takes 606 619 "$dir/both.yaml"
sed '/c10d::recv_/d; /gloo:recv/d; /c10d::send/d; /gloo:send/d' "$dir/rank1.json" >"$dir/silent.json"
check "... where it has no such message, the files are refused" \
    complains 3 "one has 4 operations, the other none" "$SWSIM" import -o "$dir/none.yaml" "$dir/rank0.json" "$dir/silent.json"
check "... and nothing is written" test ! -e "$dir/none.yaml"
strip '/all_\{0,1\}reduce/d; s/"world_size": 2/"world_size": 4/; s/"pg_size": 2, "ranks": \[0, 1\]}/"pg_size": 4, "ranks": [1, 0, 2, 3]}, {"pg_name": "1", "pg_size": 2, "ranks": [0, 3]}/; s/"rank": 0/"rank": 1/' pipe
imports "$dir/plan.yaml" "$dir"/rank0.json
check "a number that is the rank's own in that of all ranks" \
    found "the process group of a message to or from its rank 1 is not recorded" "$dir/err"
strip 's/"pg_config": \[/&{"pg_name": "1", "pg_size": 2, "ranks": [0, 1]}, /' data
imports "$dir/plan.yaml" "$dir"/rank?.json
check "two process groups, one with threads: which is asked" found "to which of 2 process groups a collective belongs" "$dir/err"
# A process group of one rank alone has threads of its own, where it has collectives.
strip 's/"ranks": \[0, 1\]}/&, {"pg_name": "1", "pg_size": 1, "ranks": [0]}/' data
imports "$dir/plan.yaml" "$dir"/rank?.json
check "a process group of one rank, without collectives" takes 509 519 "$dir/plan.yaml"
at=453647069
{
    sed 1q "$dir/rank0.json"
    for n in 0 5; do
        echo "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"c10d::allreduce_\", \"pid\": 28389, \"tid\": 28389, \"ts\": $at${n}000.5, \"dur\": 100},"
        echo "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"gloo:all_reduce\", \"pid\": 28389, \"tid\": 2920$n, \"ts\": $at${n}200.5, \"dur\": 50},"
    done
    sed 1d "$dir/rank0.json"
} >"$dir/alone.json"
imports "$dir/plan.yaml" "$dir/alone.json" "$dir/rank1.json"
check "... with some" found "stream: gloo.1" "$dir/plan.yaml"
check "... the others meet as before" takes 500 519 "$dir/plan.yaml"
printf '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}' >"$dir/none.json"
imports "$dir/plan.yaml" "$dir/none.json"
check "operators alone are no plan" found "no work of a GPU is recorded in it" "$dir/err"
printf '{"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "a layer", "pid": 1, "tid": 1, "ts": 1, "dur": 1000}]}' >"$dir/one.json"
imports "$dir/plan.yaml" "$dir/one.json"
check "a process without others: its annotations" takes 1 1 "$dir/plan.yaml"
check "... and that there is nothing else is said" found "neither work of a GPU nor operations of gloo" "$dir/err"
strip '/"c10d::allreduce_"/d' data
imports "$dir/plan.yaml" "$dir"/rank?.json
check "operations that nothing asks for are counted" found "8 operations of gloo that no operator of the trace asks for" "$dir/err"
# Steps of a loop on a CPU, whose annotations are all that is recorded.
{
    comma=
    printf '{"traceEvents": ['
    for step in 3 4 5 6; do
        begin=$((step * 1000))
        for part in "ProfilerStep#$step $begin 990" "load $((begin + 10)) $((step * 100))" "forward $((begin + 700)) 200"; do
            set -- $part
            printf '%s{"ph": "X", "cat": "user_annotation", "name": "%s", "pid": 1, "tid": 1, "ts": %s, "dur": %s}\n' "$comma" "$1" "$2" "$3"
            comma=,
        done
    done
    echo ']}'
} >"$dir/loop.json"
imports "$dir/plan.yaml" "$dir/loop.json"
check "steps on a CPU are repeated" found "repeat: 4" "$dir/plan.yaml"
check "... each with its times" found "host: \[0.3ms, 0.4ms, 0.5ms, 0.6ms\], name: load" "$dir/plan.yaml"
check "... which add up" takes 3.98 4.0 "$dir/plan.yaml"
# Operators without annotations: 20 of them, more than the order of ids can be told from.
{
    printf '{"traceEvents": ['
    for at in $(seq 1 20); do
        printf '{"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "pid": 1, "tid": 1, "ts": %s, "dur": 5},' "${at}0"
    done
    echo '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 300, "dur": 5}]}'
} >"$dir/many.json"
check "... and no ids that would run backwards" exits 0 "$SWSIM" import -o "$dir/plan.yaml" "$dir/many.json"
command -v python3 >/dev/null || {
    done_testing
    exit
}
# Messages whose waits end late have the order in which they were asked for: the ends tell no other one.
python3 - "$dir" <<'PYTHON'
import json
import sys

for rank in 0, 1:
    events = [{"ph": "X", "cat": "user_annotation", "name": "all", "pid": 1, "tid": 1, "ts": 0, "dur": 100000}]
    def received(i):
        return 1010 + 5000 * i + 2000 + 53 * i * i % 700
    for i in range(10):
        # The receiver waits at once, the sender for each message as the next one has come.
        start = 1000 + 5000 * i + 10 * rank
        late = received(i + 1 if rank == 0 else i)
        events.append({"ph": "X", "cat": "cpu_op", "name": "c10d::recv_" if rank else "c10d::send", "pid": 1, "tid": 1, "ts": start, "dur": 5})
        events.append({"ph": "X", "cat": "user_annotation", "name": "gloo:recv" if rank else "gloo:send", "pid": 1, "tid": 1, "ts": start + 5, "dur": late - start})
    json.dump({"distributedInfo": {"backend": "gloo", "rank": rank, "world_size": 2}, "traceEvents": events},
              open("%s/late%d.json" % (sys.argv[1], rank), "w"))
PYTHON
imports "$dir/plan.yaml" "$dir"/late?.json
check "messages that are waited for late meet in their order" test "$(count 'send: message' "$dir/plan.yaml")" = 10
check "... and are proved" exits 0 "$SWSIM" verify -q "$dir/plan.yaml"
check "... each takes what its receiver waited, behind the sender's call" found 'recv: message.*time: 2482us' "$dir/plan.yaml"
done_testing

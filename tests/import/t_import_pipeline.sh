#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim import --form=pipeline`: the annotations of a trace become tasks of a plan that is proved and whose period is
# the measured one. The traces here are written by this test; those of real jobs are in ../shared/data and are skipped
# where they are not.
. "${srcdir:-.}/tests/tap.sh"
. "${srcdir:-.}/tests/traces.sh"
: "${SWSIM_SHARED:=$srcdir/../shared}"
form=pipeline

# ---- traces ---------------------------------------------------------------------------------------

# A step of 1000 us from $1 on, of TorchRec's names: batch $2 is copied on stream 20, the ids of the one before are
# exchanged on 21, and the one before that is trained on 7, half of it by another thread; then the host waits.
torchrec_step()
{
    t=$1 n=$2
    range "ProfilerStep#$n" 1 "$t" 1000
    range "## load_batch ##" 1 $((t + 5)) 45
    call cudaMemcpyAsync 1 $((t + 10)) 5 "${n}1"
    work gpu_memcpy "Memcpy HtoD (Pinned -> Device)" 20 $((t + 15)) 300 "${n}1"
    range "## forward ##" 1 $((t + 55)) 195
    call cudaLaunchKernel 1 $((t + 60)) 5 "${n}2"
    work kernel forward 7 $((t + 65)) 300 "${n}2"
    range "## sparse_data_dist ##" 1 $((t + 255)) 45
    call cudaLaunchKernel 1 $((t + 260)) 5 "${n}3"
    work kernel "ncclDevKernel_SendRecv(ncclDevComm*)" 21 $((t + 315)) 200 "${n}3"
    range "## backward ##" 1 $((t + 305)) 395
    call cudaLaunchKernel 2 $((t + 310)) 5 "${n}4"
    work kernel backward 7 $((t + 365)) 600 "${n}4"
    range "## optimizer ##" 1 $((t + 705)) 290
    call cudaLaunchKernel 1 $((t + 710)) 5 "${n}5"
    work kernel optimizer 7 $((t + 965)) 25 "${n}5"
    call cudaStreamSynchronize 1 $((t + 720)) 270 "${n}6"
}
{
    for n in 1 2 3 4; do torchrec_step $((n * 1000)) "$n"; done
} | trace >"$dir/torchrec.json"

# ---- what an import says --------------------------------------------------------------------------

# takes NS TOLERANCE FILE...: the plan of these files is proved, and its period is that long.
takes()
{
    ns=$1 tolerance=$2
    shift 2
    imports "$@" && "$SWSIM" verify "$dir/plan.yaml" || return
    got=$("$SWSIM" predict --json "$dir/plan.yaml" | sed 's/.*"iteration_ns":{"mean":\([0-9]*\).*/\1/')
    echo "predicted $got ns, measured $ns ns"
    [ "$got" -ge $((ns - tolerance)) ] && [ "$got" -le $((ns + tolerance)) ]
}
# task NAME KEY VALUE FILE...
task()
{
    name=$1 key=$2 value=$3
    shift 3
    imports "$@" && sed -n "/^  $name:/,/^  [^ ]/p" "$dir/plan.yaml" | tee "$dir/task" | grep "^    $key: $value\$" ||
        { cat "$dir/plan.yaml"; return 1; }
}

# saves LEAST MOST FILE...: microseconds of a step, where all-to-alls take half their time.
saves()
{
    least=$1 most=$2
    shift 2
    imports "$@" || return
    for task in $(grep -o '^  [a-z_.]*all_to_all[.0-9]*' "$dir/plan.yaml"); do set -- "$@" "--what-if=$task=0.5x"; done
    shift
    "$SWSIM" predict --json "$@" "$dir/plan.yaml" | tail -n 1 >"$dir/predicted"
    cat "$dir/predicted"
    saved=$(field difference_ns <"$dir/predicted")
    saved=${saved#-}
    [ $((${saved%%.*} / 1000)) -ge "$least" ] && [ $((${saved%%.*} / 1000)) -le "$most" ]
}

check "a trace is proved, and its period is that of the steps" takes 1000000 20000 "$dir/torchrec.json"
check "annotations are tasks" task forward time 0.3ms "$dir/torchrec.json"
check "work of another thread is that of the open annotation" task backward time 0.6ms "$dir/torchrec.json"
check "TorchRec's names have stages" task load_batch stage 0 "$dir/torchrec.json"
check "... the exchange of ids, too" task sparse_data_dist stage 1 "$dir/torchrec.json"
check "... and the training" task optimizer stage 2 "$dir/torchrec.json"
check "a thread that waits does so behind its push" task optimizer sync_after stream "$dir/torchrec.json"
check "... after the CPU time before the wait" task optimizer host_after 5us "$dir/torchrec.json"
check "a batch is there before its next stage begins" has '\[forward, sparse_data_dist\]' "$dir/torchrec.json"
check "TorchRec's sections have buffers" has 'batch: \{\}' "$dir/torchrec.json"
check "... all of which are ordered" prints 0 "proved  " "$SWSIM" verify "$dir/plan.yaml"
grep -v '\[sparse_data_dist, load_batch\]' "$dir/plan.yaml" >"$dir/race.yaml"
check "... a race is one of a batch" prints 1 "batch" "$SWSIM" verify "$dir/race.yaml"
check "work of a stream stays in order" has '\[optimizer, backward\]' "$dir/torchrec.json"
check "the plan says how much the annotations cover" has 'about: 5 annotations cover 97\.0% of a step of 1\.000 ms \(mean of 4\)' "$dir/torchrec.json"
check "the plan is canonical" \
    sh -c "'$SWSIM' import --form=pipeline '$dir/torchrec.json' >'$dir/a' && '$SWSIM' export '$dir/a' | cmp - '$dir/a'"
check "host programs are the default" sh -c "'$SWSIM' import --form=host '$dir/torchrec.json' >'$dir/a' &&
    '$SWSIM' import '$dir/torchrec.json' | cmp - '$dir/a'"
check "... work of the measured run is named by its task" sh -c "
    '$SWSIM' import --form=pipeline --db='$dir/runs.db' '$dir/torchrec.json' 2>'$dir/err'; '$SWSIM' compare '$dir/runs.db' | grep -E '^ +600 us +600 us  backward\$'"
check "... its pieces are counted by the step" prints 0 '"backward":{"measured_ns":[0-9.]*,"predicted_ns":[0-9.]*,"measured_count":[1-9],"predicted_count":1}' \
    "$SWSIM" compare --json "$dir/runs.db"
sed '/ProfilerStep/d' "$dir/torchrec.json" >"$dir/unnumbered.json"
check "steps without the profiler's are compared, too" prints 0 'worst 0\.[0-9]%, of 1 run' sh -c "
    '$SWSIM' import -q --form=pipeline --db='$dir/unnumbered.db' -o '$dir/plan.yaml' '$dir/unnumbered.json' &&
    '$SWSIM' compare '$dir/unnumbered.db'"
# The times of an import are a profile for plans with its tasks, as those of a serial run are.
profiled() { "$SWSIM" predict --json "$@" | sed 's/.*"iteration_ns":{"mean":\([0-9.]*\).*/\1/'; }
"$SWSIM" import -q --form=pipeline --db="$dir/job.db" -o "$dir/job.yaml" "$dir/torchrec.json"
sed 's/time: 0.3ms/time: 1us/' "$dir/job.yaml" >"$dir/wrong.yaml"
check "a plan with other times takes those of an import" sh -c "! cmp '$dir/job.yaml' '$dir/wrong.yaml'"
check "... its period is the job's" [ "$(profiled --profile="$dir/job.db" "$dir/wrong.yaml")" = "$(profiled "$dir/job.yaml")" ]
check "... which is said" complains 0 'imported: 6 of 6 tasks have those of 4 steps' \
    "$SWSIM" predict --profile="$dir/job.db" "$dir/wrong.yaml"
check "... tune takes them, too" exits 0 "$SWSIM" tune --budget=50 --profile="$dir/job.db" -o "$dir/tuned.yaml" "$dir/wrong.yaml"
check "... and writes them" sh -c "sed -n '/^  forward:/,/^  [^ ]/p' '$dir/tuned.yaml' | grep 'time: 0.3ms'"
"$SWSIM" import -q --db="$dir/job.db" -o "$dir/plan.yaml" "$dir/torchrec.json"
check "an import of host programs has no tasks" complains 3 "was imported as host programs" \
    "$SWSIM" tune --profile="$dir/job.db:2" "$dir/wrong.yaml"
imports "$dir/torchrec.json"
check "a what-if" prints 0 "forward=0.5x" "$SWSIM" predict --what-if=forward=0.5x "$dir/plan.yaml"
check "another form" complains 2 "expected host.pipeline" "$SWSIM" import --form=x "$dir/torchrec.json"

# Numbers that end the names say which batch an annotation is about.
{
    for n in 1 2 3; do
        t=$((n * 1000))
        range "copy $((n + 1))" 1 "$t" 100
        call cudaMemcpyAsync 1 $((t + 10)) 5 "${n}1"
        work gpu_memcpy "Memcpy HtoD (Pinned -> Device)" 20 $((t + 15)) 300 "${n}1"
        range "train $n" 1 $((t + 100)) 900
        call cudaLaunchKernel 1 $((t + 110)) 5 "${n}2"
        work kernel forward 7 $((t + 115)) 880 "${n}2"
    done
} | trace >"$dir/numbers.json"
check "annotations with numbers have stages" task train stage 1 "$dir/numbers.json"
check "... without steps of the profiler" takes 1000000 20000 "$dir/numbers.json"

{
    range everything 1 990 3020
    sed -n '/^,/p' "$dir/numbers.json"
} | trace >"$dir/inner.json"
check "... within one that holds them all" takes 1000000 20000 "$dir/inner.json"

{
    call cudaLaunchKernel 1 1000 5 1
    work kernel a 7 1010 50 1
} | trace >"$dir/bare.json"
check "no annotation at all" complains 3 "no thread that launches work has annotations" "$SWSIM" import --form=pipeline "$dir/bare.json"

# Two ranks, whose forwards take $2 us on rank $1, and which then meet in an all-reduce of 100 us.
rank_of_two()
{
    rank=$1 forward=$2 other=$3
    slowest=$forward
    [ "$other" -le "$slowest" ] || slowest=$other
    for n in 1 2 3; do
        t=$((n * 1000))
        range "ProfilerStep#$n" 1 "$t" 1000
        range "## forward ##" 1 $((t + 5)) 45
        call cudaLaunchKernel 1 $((t + 10)) 5 "${n}1"
        work kernel forward 7 $((t + 15)) "$forward" "${n}1"
        range "## ${4:-backward} ##" 1 $((t + 55)) 940
        call cudaLaunchKernel 1 $((t + 60)) 5 "${n}2"
        work kernel "ncclDevKernel_AllReduce_Sum(ncclDevComm*)" 21 $((t + 15 + forward)) $((slowest - forward + 100)) "${n}2"
        call cudaLaunchKernel 1 $((t + 70)) 5 "${n}3"
        work kernel backward 7 $((t + 115 + slowest)) 300 "${n}3"
        call cudaStreamSynchronize 1 $((t + 80)) $((slowest + 335)) "${n}4"
    done | trace "$rank"
}
rank_of_two 0 300 500 >"$dir/r0.json"
rank_of_two 1 500 300 >"$dir/r1.json"
check "two ranks are one pipeline" has '^ranks: 2$' "$dir/r0.json" "$dir/r1.json"
check "... whose period is that of the steps" takes 1000000 20000 "$dir/r0.json" "$dir/r1.json"
check "... they meet" has 'work: \{collective: all_reduce, comm: nccl0\}' "$dir/r0.json" "$dir/r1.json"
check "... for the least time of any" task backward.all_reduce time 0.1ms "$dir/r0.json" "$dir/r1.json"
check "... the first one's times are the plan's" task forward time 0.3ms "$dir/r0.json" "$dir/r1.json"
check "... the other's are its own" sh -c "sed -n '/^rank_overrides:/,\$p' '$dir/plan.yaml' | grep -A1 forward: | grep "time: 0.5ms""
check "... and nothing else" sh -c "[ \$(sed -n '/^rank_overrides:/,\$p' '$dir/plan.yaml' | wc -l) = 5 ]"
check "... it is canonical" sh -c "'$SWSIM' export '$dir/plan.yaml' | cmp - '$dir/plan.yaml'"
# Rank $1 begins its only step at $2 us and meets the other one until 1600 us.
late_rank()
{
    {
        range "ProfilerStep#1" 1 "$2" $((2000 - $2))
        range "## forward ##" 1 $(($2 + 5)) $((1990 - $2))
        call cudaLaunchKernel 1 $(($2 + 60)) 5 12
        work kernel "ncclDevKernel_AllReduce_Sum(ncclDevComm*)" 21 $(($2 + 65)) $((1535 - $2)) 12
        call cudaStreamSynchronize 1 $(($2 + 70)) $((1535 - $2)) 14
    } | trace "$1"
}
late_rank 0 1000 >"$dir/early.json"
late_rank 1 1400 >"$dir/late.json"
check "ranks that begin apart are said to" has 'begin their first step 0\.400 ms apart' "$dir/early.json" "$dir/late.json"
check "... what the early one waits for is no time of its own" takes 600000 20000 "$dir/early.json" "$dir/late.json"
check "... nor without detail" takes 600000 20000 --detail=100 "$dir/early.json" "$dir/late.json"
check "... in host programs the time up to a step is none of it" sh -c \
    "'$SWSIM' import '$dir/early.json' '$dir/late.json' | grep -A1 '^  r1.t0:' | grep '^  - {host: 0.4ms}'"
check "ranks that begin together are not" sh -c "! '$SWSIM' import --form=pipeline '$dir/r0.json' '$dir/r1.json' | grep apart"
rank_of_two 1 500 300 evaluate >"$dir/r2.json"
check "ranks that are not alike" complains 3 "not alike: a step of the one has the annotation backward where a step of the other has evaluate" \
    "$SWSIM" import --form=pipeline "$dir/r0.json" "$dir/r2.json"
sed 's/ncclDevKernel_AllReduce_Sum(ncclDevComm.)/gemm/' "$dir/r1.json" >"$dir/r3.json"
check "... nor two of which one communicates" complains 3 "do not belong together" "$SWSIM" import --form=pipeline "$dir/r0.json" "$dir/r3.json"

# An export of Nsight Systems with ranges of NVTX, some with their text in StringIds, and one of an operator.
if python3 -c 'import sqlite3' 2>/dev/null; then
    python3 - "$dir/nvtx.sqlite" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
process, thread = 7 << 24, (7 << 24) + 7
db.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(1, "cudaLaunchKernel"), (2, "f"), (3, "train")])
db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId)")
db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, demangledName)")
db.execute("CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid, textId)")
for step in range(3):
    t = 1000000 * (step + 1)
    db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, 'load', ?, NULL)", (t, t + 300000, thread))
    db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, 'aten::mul, op_id = 7', ?, NULL)", (t + 290000, t + 800000, thread))
    db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, NULL, ?, 3)", (t + 300000, t + 1000000, thread))
    db.execute("INSERT INTO NVTX_EVENTS VALUES (?, NULL, 34, 'mark', ?, NULL)", (t, thread))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 1)", (t + 310000, t + 315000, thread, step + 1))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, ?, 2)", (t + 320000, t + 920000, step + 1, process))
db.commit()
END
    # Four ranks: two groups of two with an all-reduce of their own, and an all-gather of all.
    python3 - "$dir" <<'END'
import json, sys
def rank(number, forward, group):
    events = []
    def event(category, name, tid, start, length, **args):
        events.append({"ph": "X", "cat": category, "name": name, "pid": 7, "tid": tid, "ts": start, "dur": length, "args": args})
    for n in 1, 2, 3:
        t = 1000 * n
        def launch(offset, c, name="cudaLaunchKernel", length=5):
            event("cuda_runtime", name, 1, t + offset, length, correlation=10 * n + c)
        def kernel(name, stream, start, length, c, **args):
            event("kernel", name, stream, start, length, stream=stream, device=0, correlation=10 * n + c, **args)
        event("user_annotation", f"ProfilerStep#{n}", 1, t, 1000)
        event("user_annotation", "forward", 1, t + 5, 45)
        event("user_annotation", "backward", 1, t + 55, 940)
        launch(10, 1), kernel("f", 7, t + 15, forward, 1)
        launch(60, 2), kernel("ncclDevKernel_AllReduce", 21, t + 15 + forward, 500 - forward, 2, **{"Process Group Name": group})
        launch(65, 3), kernel("ncclDevKernel_AllGather", 22, t + 515, 50, 3, **{"Process Group Name": "world"})
        launch(70, 4), kernel("b", 7, t + 565, 300, 4)
        launch(80, 5, "cudaStreamSynchronize", 785)
    with open(f"{sys.argv[1]}/group{number}.json", "w") as file:
        json.dump({"distributedInfo": {"rank": number, "world_size": 4}, "traceEvents": events}, file)
rank(0, 300, "tp0"), rank(1, 400, "tp0"), rank(2, 350, "tp1"), rank(3, 400, "tp1")
END
    check "ranks of several groups are one pipeline" takes 1000000 20000 "$dir"/group?.json
    check "... each meets those of its own" sh -c "sed -n '/^rank_overrides:/,\$p' '$dir/plan.yaml' | grep -c 'collective: all_reduce, comm: tp1' | grep -x 2"

    check "ranges of NVTX are tasks" task train time 0.6ms "$dir/nvtx.sqlite"
    check "... in the order of the thread" has 'enqueue_order: \[load, train\]' "$dir/nvtx.sqlite"
    check "... and their period is measured" takes 1000000 20000 "$dir/nvtx.sqlite"
else
    skip "ranges of NVTX" "no python3 with sqlite3"
fi

# ---- real jobs ------------------------------------------------------------------------------------

traces=$SWSIM_SHARED/data/traces
if [ -d "$traces" ]; then
    job=$traces/torchrec_a100_rank0_of_8.json.gz
    check "a TorchRec job takes 77.9 ms" takes 77900000 3895000 "$job"
    check "... its ten annotations cover a step" has 'about: 10 annotations cover 9[89]' "$job"
    check "... with its buffers" has 'features: \{\}' "$job"
    check "... in three stages" task load_batch stage 0 "$job"
    check "... the forward in the last" task forward stage 2 "$job"
    check "... and there are more tasks with more detail, fewer with less" sh -c "
        for n in 1 100; do '$SWSIM' import --form=pipeline --detail=\$n '$job' 2>/dev/null | grep -c stage: ; done |
        { read -r many; read -r few; echo \$many \$few; [ \$few -lt 20 ] && [ \$many -gt \$few ]; }"
    check "... without detail it takes as long" takes 77900000 3895000 --detail=100 "$job"
    check "... and tune finds no fault in it" exits 0 "$SWSIM" tune --budget=60 "$dir/plan.yaml"
    check "... and all-to-alls at half their time save 3 ms" saves 2500 4000 "$job"
    for workers in 0 4; do
        job=$traces/resnet50_workers${workers}_steps5_10.json.gz
        period=$([ $workers = 0 ] && echo 174886000 || echo 139748000)
        check "a job with few annotations, $workers loaders" takes "$period" $((period / 20)) "$job"
        check "... has tasks for the rest" has '^  unannotated:' "$job"
    done
    check "no data loader, as with four of them" sh -c "
        '$SWSIM' import --form=pipeline -o '$dir/loader.yaml' '$traces/resnet50_workers0_steps5_10.json.gz'
        '$SWSIM' predict --json --what-if=DataLoader=0x '$dir/loader.yaml' | tail -n 1 >'$dir/loader'
        period=\$(sed 's/.*\"iteration_ns\":{\"mean\":\([0-9]*\).*/\1/' '$dir/loader'); echo \$period
        [ \$period -gt 113900000 ] && [ \$period -lt 139300000 ]" # 126.6 ms and 10%
    for rank in 0 7; do
        check "rank $rank of a job of 8, of one step" imports "$traces/dlrm_8ranks/rank$rank.json.gz"
        check "... is proved" exits 0 "$SWSIM" verify "$dir/plan.yaml"
    done
    check "a job of 8 has its buffers" has 'tables: \{scope: shared\}' "$traces/dlrm_8ranks"
    check "a job of 8 is one pipeline" takes 13700000 1400000 "$traces/dlrm_8ranks"
    check "... without detail, too" takes 13700000 1400000 --detail=100 "$traces/dlrm_8ranks"
    check "... in which all meet" has 'collective: all_to_all' "$traces/dlrm_8ranks"
    check "a job without a cause for its idle time is refused" sh -c "
        '$SWSIM' import --form=pipeline -o '$dir/refused.yaml' '$SWSIM_SHARED/data/kineto/torchrec_rank0_of_16_trace.json.gz' &&
        '$SWSIM' predict '$dir/refused.yaml'; [ \$? -eq 4 ]"
    check "... with --opaque it has the measured time" takes 215200000 32000000 --opaque \
        "$SWSIM_SHARED/data/kineto/torchrec_rank0_of_16_trace.json.gz"
else
    skip "traces of real jobs" "no $traces"
fi

done_testing

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Device times in recordings, on emulated CUDA and CUPTI: operations have the times that were measured, on clocks that drift;
# predictions replay the run; where CUPTI cannot be had, one sentence says why, and the rest is as before.
. "${srcdir:-.}/tests/tap.sh"
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" SWSIM_EMULATED_GPUS=2
cupti=$PWD/tests/cuda_emulation/libcupti.so
program=$PWD/tests/record/program
[ -f "$cupti" ] || skip_all "built without CUDA's toolkit, which the emulation is compiled against"
export SWSIM_CUPTI="$cupti"

# record CASE [OPTION...]: leaves $dir/CASE.yaml, and the program's output in $dir/said.
record()
{
    races=report_bugs=0 # the program's own, which the thread sanitizer must not end it for
    [ "${2-}" = fixed ] && races=
    rm -rf "$dir/$1.swr"
    TSAN_OPTIONS="${TSAN_OPTIONS-} $races" "$SWSIM" record $how -o "$dir/$1.swr" -- "$program" "$@" >"$dir/said" 2>"$dir/log" &&
        "$SWSIM" import -o "$dir/$1.yaml" "$dir/$1.swr" 2>>"$dir/log" || { cat "$dir/log"; return 1; }
}
how=''
logs() { grep -q -- "$1" "$dir/log" || { cat "$dir/log"; return 1; }; }

# ---- measured times: the GPUs' clocks are 5% too fast -------------------------------------------------

export SWSIM_EMULATION_DRIFT=50000
check "a program of 60 kernels of 20 ms" record measured
check "each operation has a time" logs '63 device operations with measured times'
check "the plan says so" grep -q 'with measured times of 63 operations of devices' "$dir/measured.yaml"
# The least: on a busy machine some are late. Without ties while running it would be 21 ms.
least() { sed -n 's/.*{launch: spin.* time: \([0-9.]*\)\(us\|ns\|ms\).*/\1 \2/p' "$dir/measured.yaml" |
    awk '{ns = $1 * ($2 == "ms" ? 1e6 : $2 == "us" ? 1e3 : 1); if (!m || ns < m) m = ns} END {print m; exit !(m > 19.8e6 && m < 20.5e6)}'; }
check "on the host's clock" least
check "clocks and calls agree" sh -c '! grep contradict "$0"' "$dir/log"
# The loop of the plan: from the first spin to the wait behind the last.
replays() {
    awk '/launch: spin/ {on = 1} {line[NR] = $0; of[NR] = !/^  - / || on} /sync: stream/ {last = NR}
         END {for (i = 1; i <= NR; i++) if (of[i] && (i <= last || line[i] !~ /^  - /)) print line[i]}' "$dir/measured.yaml" >"$dir/loop.yaml"
    ran=$(sed -n 's/ ms$//p' "$dir/said")
    loop=$("$SWSIM" predict --json "$dir/loop.yaml" 2>/dev/null | field makespan_ns)
    echo "ran $ran ms, predicted $loop ns"
    awk -v ran="$ran" -v ns="$loop" 'BEGIN {exit !(ns / 1e6 > ran * .97 && ns / 1e6 < ran * 1.03)}'
}
# Where a busy machine wakes the program late 60 times, the plan does not know of it: four more recordings, when others may be done.
soon_replays() {
    replays && return
    for pause in 2 5 10 20; do sleep "$pause"; record measured && replays && return; done
    return 1
}
check "a prediction replays the run" soon_replays
unset SWSIM_EMULATION_DRIFT

check "copies, fills and kernels" record host_reads fixed
check "have times" sh -c '! grep -E "copy:|launch:" "$0" | grep -v "time:"' "$dir/host_reads.yaml"
check "so have the operations of a graph" record graph fixed
check "by its capture" sh -c 'sed -n "/^graphs:/,/^threads:/p" "$0" | grep -q "launch: fill.*time:"' "$dir/graph.yaml"
check "and those of NCCL" record unawaited fixed
check "on all ranks" sh -c '[ "$(grep -c "collective:.*time:" "$0")" = 6 ]' "$dir/unawaited.yaml"
check "and copies between devices" record peer_copy fixed
check "of any kind" sh -c '! grep -E "copy:" "$0" | grep -v "time:"' "$dir/peer_copy.yaml"

# The run itself goes to a store, with the names of the plan, so that a prediction stands beside it.
stored()
{
    rm -f "$dir/runs.db"
    "$SWSIM" import --db="$dir/runs.db" -o "$dir/$1.yaml" "$dir/$1.swr" 2>"$dir/log" &&
        "$SWSIM" predict --quiet --db="$dir/runs.db" "$dir/$1.yaml" >/dev/null 2>>"$dir/log" &&
        "$SWSIM" compare "$dir/runs.db" >"$dir/compared" 2>>"$dir/log" &&
        "$SWSIM" compare --json "$dir/runs.db" >"$dir/compared.json" 2>>"$dir/log" && return
    cat "$dir/log"
    return 1
}
compared() { grep -qE -- "$1" "$dir/compared" || { cat "$dir/compared"; return 1; }; }
# task_times TASK MEASURED PREDICTED: patterns of its times in ns. The table leaves out tasks of a small share, as any is on a busy machine.
task_times() { grep -qE -- "\"$1\":\{\"measured_ns\":$2,\"predicted_ns\":$3," "$dir/compared.json" || { cat "$dir/compared.json"; return 1; }; }
both() { task_times "$1" '[0-9.]+' '[0-9.]+'; }
check "the measured run is stored" stored measured
check "beside its prediction" compared '  measured .* -?[0-9]+\.[0-9]%$'
long='(1[2-9]|[2-9][0-9])[0-9]{8}(\.[0-9]+)?'
check "its work by name" task_times 'spin[^"]*' "$long" "$long"
check "it can be drawn" "$SWSIM" render "$dir/runs.db" -o "$dir/run.html"
check "that of a graph" stored graph
check "has the graph's streams" both 'fill<float>[^"]*'
check "that of two ranks" stored unawaited
check "has the least time of a collective" task_times 'all_reduce[^"]*' '([0-9.]+)' '\1'

# Messages have the names of the plan.
no_group() { grep '"group":' "$dir/compared.json" && return 1; return 0; }
check "a message" record message fixed
check "is stored" stored message
check "as it is sent" both 'send int8 to rank 1'
check "and received" both 'receive int8 from rank 0'
check "a group of messages" record missing_group fixed
check "is stored" stored missing_group
check "by its first one" both 'send int8 to rank 1 and others'
check "on each rank" both 'send int8 to rank 0 and others'
check "and not as a group" no_group

# One run of swrun, with times by events in its own log and by CUPTI in a recording of it.
if [ -x tests/swrun_shared ]; then
    check "a run of swrun is recorded" sh -c '"$1" record -o "$2/own.swr" -- "$3/tests/swrun_shared" --device cuda --db "$2/own.db" -n 3 --ranks 1 "$4/plans/torchrec/base.yaml" >"$2/log" 2>&1' sh \
        "$SWSIM" "$dir" "$PWD" "$srcdir"
    check "its own log has times by events" logs '^  clock  *CUDA events, within '
    check "and goes to the same store with times by CUPTI" "$SWSIM" import --db="$dir/own.db" -o "$dir/own.yaml" "$dir/own.swr"
    check "which has both" prints 0 'measured .*recorded by CUPTI' "$SWSIM" runs "$dir/own.db"
    check "of one plan's run" grep -q 'measured .*TrainPipelineBase.*emulated CUDA' "$dir/out"
fi

# Times change no verdict.
# The run of a program with a mistake may fail, now and then.
finds() { { record "$1" || record "$1" || record "$1"; } && prints 1 "$2" "$SWSIM" verify --no-fix "$dir/$1.yaml"; }
proves() { record "$1" fixed && prints 0 'proved' "$SWSIM" verify --no-fix "$dir/$1.yaml"; }
for case in missing_wait graph host_function unawaited; do
    [ $case = host_function ] || check "$case is found with times" finds $case race
    check "$case is proved with times" proves $case
done

# ---- what can fail ------------------------------------------------------------------------------------

# none NAME=VALUE PATTERN: the recording is made all the same, without times, and one sentence says why.
none()
{
    env "$1" "$SWSIM" record -o "$dir/none.swr" -- "$program" missing_wait fixed 2>"$dir/log" &&
        "$SWSIM" import -o "$dir/none.yaml" "$dir/none.swr" 2>>"$dir/log"
    grep -q "none.swr: device operations are recorded without their times: $2" "$dir/log" &&
        [ "$(grep -c 'without their times' "$dir/log")" = 1 ] && grep -q ' 0 device operations with' "$dir/log" &&
        grep -q 'without times' "$dir/none.yaml" && prints 0 proved "$SWSIM" verify --no-fix "$dir/none.yaml" || { cat "$dir/log"; return 1; }
}
check "no such library" none SWSIM_CUPTI="$dir/no.so" 'SWSIM_CUPTI: .*no.so: cannot open'
check "a library of something else" none SWSIM_CUPTI="$PWD/tests/cuda_emulation/libcudart.so" 'libcupti.so has no cuptiGetVersion'
check "one that is too old" none SWSIM_EMULATED_CUPTI=12 'libcupti.so is of version 12, expected 13'
check "a profiler has it" none SWSIM_EMULATION_FAULT=cuptiSubscribe=1:39 'cuptiSubscribe: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)'
check "no privileges" none SWSIM_EMULATION_FAULT=cuptiActivityEnable=3:35 'cuptiActivityEnable: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)'
check "no callbacks" none SWSIM_EMULATION_FAULT=cuptiActivityRegisterCallbacks=1:999 'cuptiActivityRegisterCallbacks: CUPTI_ERROR_UNKNOWN (999)'

export SWSIM_EMULATION_FAULT=activity=2,activity=4
check "records that are lost" record missing_wait fixed
check "are counted" logs 'CUPTI lost 2 records'
check "and what has no time" logs '2 of 5 operations of devices have no measured time'
unset SWSIM_EMULATION_FAULT

# ---- a program that polls: 24,000 calls, of which no record is wanted ---------------------------------

SWSIM_EMULATED_CUPTI_ROOM=120; export SWSIM_EMULATED_CUPTI_ROOM
check "a program that polls, with room for 120 records" record polled
check "has asked 16,000 times" grep -q '16000 queries' "$dir/said"
check "and loses no record" sh -c '! grep lost "$0"' "$dir/log"
check "its work has times" logs '5 device operations with measured times'
SWSIM_EMULATION_FAULT=cuptiActivityEnableRuntimeApi=10:15; export SWSIM_EMULATION_FAULT
check "a CUPTI that does not know one of the queries" record polled
check "loses records, which is told" logs 'CUPTI lost [0-9]* records'
unset SWSIM_EMULATED_CUPTI_ROOM
check "has times where it has room for them" record polled
check "of all work" logs '5 device operations with measured times'
unset SWSIM_EMULATION_FAULT

how=--no-device-times
check "none are asked for" record missing_wait fixed
check "and none are there" grep -q 'without times' "$dir/missing_wait.yaml"
check "nothing to store" complains 3 'missing_wait.swr: no operation of a device has a measured time' \
    "$SWSIM" import --db="$dir/none.db" -o "$dir/none.yaml.2" "$dir/missing_wait.swr"
check "... and nothing is written" sh -c '[ ! -e "$0/none.db" ] && [ ! -e "$0/none.yaml.2" ]' "$dir"
check "which is no news" sh -c '! grep "without their times" "$0"' "$dir/log"
done_testing

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - all tests that need a GPU, once, in under eight minutes: prints one table, writes it as JSON.
#
#     tests/gpu/run.sh [BUILD]    BUILD: programs, from `make` or tests/gpu/pack.sh (default: beside tests/ in a
#                                 pack, else gpu-pack/ where there is one, else build/)
#
#     OUT=DIR                     folder of the two results (default doc/measurements/), named by date and GPU and written
#                                 anew behind each row: the JSON, and an archive with the output of all rows
#     ROWS=PATTERN                only the rows whose names match, as in ROWS='sparse_dist*'
#     SECONDS_AT_MOST=N           for all rows together (default 460); rows not begun by then fail
#     SWSIM_GPU_EMULATED=1        try the script out on emulated CUDA (tests/cuda_emulation): no result of a
#                                 GPU. Table and JSON say so, and nothing is written under doc/. With
#                                 SWSIM_LONG=1, too, predictions for all plans and not for one
#
# Rows come in the order of what a first run must tell: a figure within a minute, whether the device keeps its contract, the
# library and several ranks, the cost of things; then every plan, and what takes long. Warnings of NCCL are in their output
# (NCCL_DEBUG).
#
# On the machine: a driver, NCCL (in the system, or Python's nvidia/nccl), compute-sanitizer of the CUDA
# toolkit for its row, nvcc with g++, libcudart.so and libcupti.so for that of device times. A row without what it needs is
# skipped and says so; nothing is installed or fetched. Exit status: 0 all passed, 1 a row failed, 77 no GPU here, with a message.
#
# A row is `ok`, `skipped`, `missed` or `FAILED`. Missed: all results are right, but a figure misses its goal; the
# script still passes. A failed row does not stop the others.
set -u
cd "$(dirname "$0")/../.." || exit 1
begun=$(date +%s)
emulated=${SWSIM_GPU_EMULATED:-}
build=${1:-}
if [ -z "$build" ]; then
    build=build
    for place in gpu-pack .; do [ ! -x $place/swrun ] || build=$place; done
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# ---- the machine -----------------------------------------------------------------------------------

if [ -n "$emulated" ]; then
    variant=_emulated dlrm=$build/tests/dlrm_emulated seconds_of_drift=3 waits=50
    swrun=$build/tests/swrun_emulated suite=$build/tests/gpu/t_device_emulated overhead=$build/tests/overhead_emulated
    settle=1 iterations=4 rounds=1 tasks=200 long=20
    slack=10 # times all budgets: a busy machine, a sanitizer
    predicted=plans/reference/sparse_dist.yaml
    [ -z "${SWSIM_LONG:-}" ] || predicted='plans/reference/*.yaml'
    out=${OUT:-$dir}
    case $(realpath -m "$out")/ in
    "$(realpath -m doc)"/*) echo "emulated runs write nothing under doc/"; exit 1 ;;
    esac
    echo "EMULATED CUDA: not a result of a GPU"
else
    variant= dlrm=$build/doc/examples/dlrm/dlrm_cuda seconds_of_drift=20 waits=300
    swrun=$build/swrun suite=$build/tests/gpu/t_device overhead=$build/tests/bench/overhead
    settle=6 iterations=30 rounds=3 tasks=2000 long=3000
    slack=1
    predicted='plans/reference/*.yaml'
    out=${OUT:-doc/measurements}
fi
at_most=${SECONDS_AT_MOST:-$((460 * slack))}
need()
{
    local program
    for program; do
        [ -x "$program" ] || { echo "$program is not there: tests/gpu/pack.sh makes it"; exit 1; }
    done
}
need "$swrun"

# NCCL in a Python that swrun does not search by itself.
if [ -z "$emulated" ] && [ -z "${SWSIM_NCCL:-}" ]; then
    nccl_in_python=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib")' 2>/dev/null)
    if [ -e "$nccl_in_python/libnccl.so.2" ] && ! ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2'; then
        export SWSIM_NCCL=$nccl_in_python
    fi
fi

# swrun's description of the GPU, or the reason why there is none: "cuda: NAME, driver for CUDA X, CUDA runtime Y, NCCL Z".
# Its time limit is generous, because no row begins before it.
timeout $((120 * slack)) "$swrun" --device cuda --ranks 1 --serial -n 1 --json plans/examples/hello.yaml >"$dir/probe" 2>&1
status=$?
if [ $status -ne 0 ]; then
    why=$(grep -m 1 'error: ' "$dir/probe" | sed 's/^[^:]*: error: //')
    case $why in
    "no CUDA driver or GPU"*) echo "$why: nothing was run"; exit 77 ;;
    esac
    echo "the GPU here cannot be used (exit status $status): ${why:-no reason given}"
    exit 1
fi
need "$suite" "$overhead" "$build/swsim"
swrun=$(realpath "$swrun") suite=$(realpath "$suite") overhead=$(realpath "$overhead") swsim=$(realpath "$build/swsim")
device=$(sed -n 's/.*"device_name":"\([^"]*\)".*/\1/p' "$dir/probe" | head -n 1)
gpu=$(sed 's/^cuda: //; s/, driver for CUDA.*//' <<<"$device")
cuda=$(sed -n 's/.*CUDA runtime \([0-9.]*\).*/\1/p' <<<"$device")
nccl=$(sed -n 's/.*NCCL \([0-9][0-9.]*\).*/\1/p' <<<"$device")
driver=none
if [ -z "$emulated" ]; then
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)
    [ -n "$driver" ] || driver=$(sed -n 's/.*Kernel Module *\(for x86_64 *\)\?\([0-9.]*\).*/\2/p' /proc/driver/nvidia/version 2>/dev/null)
fi
processor=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
cores=$(getconf _NPROCESSORS_ONLN)
commit=$(cat "$build/commit" 2>/dev/null || git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)

# Clocks, MIG, who may use the GPU; and a process that keeps the driver loaded between rows.
export NCCL_DEBUG=${NCCL_DEBUG:-WARN}
state=
if command -v nvidia-smi >/dev/null; then
    state=$(nvidia-smi --query-gpu=clocks.sm,clocks.max.sm,mig.mode.current,compute_mode,persistence_mode --format=csv,noheader 2>/dev/null | head -n 1)
    mkdir -p "$dir/logs"
    nvidia-smi --query-gpu=timestamp,clocks.sm,temperature.gpu,power.draw --format=csv -l 5 >"$dir/logs/clocks.csv" 2>&1 &
    trap 'kill '$!' 2>/dev/null; rm -rf "$dir"' EXIT
fi

find_tool()
{
    command -v "$1" || ls "${CUDA_HOME:-/usr/local/cuda}/bin/$1" /usr/local/cuda*/bin/"$1" 2>/dev/null | head -n 1
}
sanitizer=$(find_tool compute-sanitizer)
nvcc=$(find_tool nvcc)

# ---- rows ------------------------------------------------------------------------------------------
#
# The command of a row may write three files: $FIGURES, a JSON object, $WORDS, its note in the table,
# and $MISSED, the goal that it missed.

failed=0
lacks= # what the rows from here on need and is not here
rows=()
stem=gpu-$(date +%Y-%m-%d)-$(tr -cs 'A-Za-z0-9' - <<<"$gpu" | sed 's/-*$//')
mkdir -p "$out" "$dir/logs" || exit 1
export FIGURES=$dir/figures WORDS=$dir/words MISSED=$dir/missed
elapsed() { awk -v a="$1" -v b="$(date +%s.%N)" 'BEGIN { printf "%.3f", b - a }'; }
left() { echo $((at_most - $(date +%s) + begun)); }
json_text() { sed 's/\\/\\\\/g; s/"/\\"/g' <<<"$1" | tr -d '\000-\037'; }
wanted() { [[ $1 == ${ROWS:-*} ]]; } # the right side is a pattern

file_name() { echo "$(tr -cs 'A-Za-z0-9_' - <<<"$1" | sed 's/-*$//').log"; }

# write_json COMPLETE: all rows so far, whole at any moment.
write_json()
{
    {
        printf '{"emulated":%s,"gpu":"%s","driver":"%s","cuda":"%s","nccl":"%s","device":"%s","cpu":"%s","cores":%d,' \
            "$([ -n "$emulated" ] && echo true || echo false)" "$(json_text "$gpu")" "$driver" "$cuda" "$nccl" \
            "$(json_text "$device")" "$(json_text "$processor")" "$cores"
        printf '"commit":"%s","date":"%s","state":"%s","rows_wanted":"%s","complete":%s,"passed":%s,"seconds":%d,"rows":[\n' \
            "$(json_text "$commit")" "$(date -u +%FT%TZ)" "$(json_text "$state")" "$(json_text "${ROWS:-*}")" "$1" \
            "$([ $failed -eq 0 ] && echo true || echo false)" $(($(date +%s) - begun))
        for i in "${!rows[@]}"; do
            printf '%s%s\n' "${rows[$i]}" "$([ "$i" -lt $((${#rows[@]} - 1)) ] && echo ,)"
        done
        printf '],"compare":%s}\n' "$(cat "$dir/compare.json" 2>/dev/null || echo null)"
    } >"$out/.$stem.json" && mv "$out/.$stem.json" "$out/$stem.json"
    tar -czf "$out/.$stem.logs" -C "$dir" logs 2>/dev/null && mv "$out/.$stem.logs" "$out/$stem.logs.tar.gz"
}

# say NAME STATUS SECONDS [NOTE]: a line of the table, an object of the JSON.
say()
{
    local words figures=null note=${4:-}
    words=$(cat "$WORDS" 2>/dev/null)
    [ ! -s "$FIGURES" ] || figures=$(cat "$FIGURES")
    printf '%-38s %-8s %6.1f s  %s\n' "$1" "$2" "$3" "$words${words:+${note:+; }}$note"
    cp "$dir/log" "$dir/logs/$(file_name "$1")" 2>/dev/null
    rows+=("{\"name\":\"$(json_text "$1")\",\"status\":\"$2\",\"seconds\":$3,\"figures\":$figures,\"note\":\"$(json_text "$note")\"}")
    [ "$2" != FAILED ] || failed=1
    write_json false
    rm -f "$FIGURES" "$WORDS" "$MISSED"
}
skip() { ! wanted "$1" || say "$1" skipped 0 "$2"; }

# fail NAME SECONDS WHY: the end of the row's output is shown.
fail()
{
    rm -f "$FIGURES" "$WORDS"
    say "$1" FAILED "$2" "$3"
    tail -n 8 "$dir/log" | sed 's/^/    /'
    echo "    all of it: logs/$(file_name "$1") in $stem.logs.tar.gz: send that"
}

# row BUDGET NAME COMMAND...: must exit with 0 within BUDGET seconds; its output is in $dir/log.
row()
{
    local budget=$(($1 * slack)) name=$2 start status=0
    shift 2
    wanted "$name" || return 0
    : >"$dir/log"
    if [ -n "$lacks" ]; then
        say "$name" skipped 0 "$lacks"
        return
    fi
    if [ "$(left)" -le 0 ]; then
        fail "$name" 0 "no time left"
        return
    fi
    [ "$budget" -le "$(left)" ] || budget=$(left)
    start=$(date +%s.%N)
    timeout -k 5 "$budget" "$@" >"$dir/log" 2>&1 </dev/null || status=$?
    case $status in
    0)
        if [ -z "$emulated" ] && [ -s "$MISSED" ]; then # an emulation has no goals
            say "$name" missed "$(elapsed "$start")" "$(cat "$MISSED")"
        else
            say "$name" ok "$(elapsed "$start")"
        fi ;;
    77) say "$name" skipped "$(elapsed "$start")" "$(tail -n 1 "$dir/log")" ;;
    124 | 137) fail "$name" "$(elapsed "$start")" "over its $budget s" ;;
    *) fail "$name" "$(elapsed "$start")" "exit status $status" ;;
    esac
}

# ask BUDGET NAME FUNCTION [ARGUMENT...]: a row whose command is an exported function of this script.
ask() { row "$1" "$2" bash -c '"$@"' - "${@:3}"; }

# field KEY FILE: the number behind "KEY": in a file of JSON, the first.
field() { sed -n "s/.*\"$1\":\(-\{0,1\}[0-9][0-9.eE+-]*\).*/\1/p" "$2" | head -n 1; }

# A legal run, with the right results if there is a serial run for comparison.
run_plan()
{
    local file=$1 mean
    shift
    "$swrun" --device cuda --json --timeout $((15 * slack))s "$@" "$file" >"$dir/run.json" || { cat "$dir/run.json"; return 1; }
    cat "$dir/run.json"
    ! grep -q '"legal":false\|"legal":null\|"results_match_serial":false' "$dir/run.json" || return 1
    mean=$(sed -n 's/.*"iteration_ns":{"mean":\([0-9.]*\).*/\1/p' "$dir/run.json" | head -n 1)
    [ "${mean:-0}" != 0 ] || return 0 # no iterations: a host program
    echo "{\"iteration_ns\":$mean,\"clock_error_ns\":$(field clock_error_ns "$dir/run.json")}" >"$FIGURES"
    awk -v ns="$mean" 'BEGIN { printf "%.3f ms", ns / 1e6 }' >"$WORDS"
}
# plan BUDGET NAME PLAN OPTION...
plan() { ask "$1" "$2" run_plan "${@:3}"; }

# The conformance suite under compute-sanitizer, which sees no device on some virtual machines.
run_sanitized()
{
    local status=0 within=$((80 * slack))
    timeout -k 2 "$within" "$sanitizer" --report-api-errors no --error-exitcode 9 "$suite" cuda alone || status=$?
    [ $status -ne 124 ] || ! grep -q '========= [IU]n' "$dir/log" || return 9
    [ $status -ne 124 ] || { echo "no error, but not through within $within s"; return 77; }
    ! grep -q 'Device not supported' "$dir/log" || { echo "compute-sanitizer: Device not supported"; return 77; }
    return $status
}

# The runtime's cost a task beside CUDA's own calls. Goals: 1 us more a task, 2 us to fire a successor.
run_overhead()
{
    "$overhead" --device=cuda --iterations="$1" --json >"$FIGURES" || return 1
    cat "$FIGURES"
    awk -v direct="$(field direct_ns "$FIGURES")" -v clock="$(field clock_ns "$FIGURES")" \
        -v more="$(field overhead_ns "$FIGURES")" -v same="$(field fire_same_ns "$FIGURES")" \
        -v other="$(field fire_other_ns "$FIGURES")" -v missed="$MISSED" 'BEGIN {
            printf "%.2f us a task, CUDA alone %.2f; fires in %.2f us, on another thread %.2f", clock / 1e3, direct / 1e3, same / 1e3, other / 1e3
            if (more > 1000) printf "aim: 1 us more a task. " >missed
            if (same > 2000 || other > 2000) printf "aim: 2 us to fire" >missed }' >"$WORDS"
}

# The cost of a trace to an iteration. Goal: less than 2% of 10 ms.
run_trace()
{
    DEVICE=cuda JSON=yes SWRUN=$swrun ITERATIONS=$1 sh tests/bench/trace.sh "$2" >"$FIGURES" || return 1
    cat "$FIGURES"
    awk -v long="$(sed 's/.*"iterations":{\([^}]*\)}.*/\1/; s/.*"share":\([^,]*\).*/\1/' "$FIGURES")" \
        -v short="$(sed 's/.*"tasks":{\([^}]*\)}.*/\1/; s/.*"share":\([^,]*\).*/\1/' "$FIGURES")" -v missed="$MISSED" 'BEGIN {
            printf "%.2f%% of 10 ms, %.2f%% where tasks take 50 us", 100 * long, 100 * short
            if (long > 0.02) printf "aim: less than 2%% of 10 ms" >missed }' >"$WORDS"
}

# Serial runs give the profile from which pipelined ones are predicted. Goals: median 2%, worst 5%.
run_compare()
{
    DEVICE=cuda ITERATIONS=$1 RANKS=1 WORK=yes REALTIME=no QUIET=1 PLANS=$2 DB=$dir/runs.db SWSIM=$swsim SWRUN=$swrun \
        srcdir=$PWD sh tests/bench/compare.sh || return 1
    "$swsim" compare --json "$dir/runs.db" >"$dir/compare.json" || return 1
    local median worst runs
    median=$(field median_error "$dir/compare.json") worst=$(field worst_error "$dir/compare.json")
    runs=$(grep -o '"error":' "$dir/compare.json" | wc -l)
    [ -n "$median" ] && [ -n "$worst" ] || { echo "no errors in what swsim compare says"; return 1; }
    echo "{\"runs\":$runs,\"median_error\":$median,\"worst_error\":$worst}" >"$FIGURES"
    awk -v runs="$runs" -v median="$median" -v worst="$worst" -v missed="$MISSED" 'BEGIN {
            printf "median error %.1f%%, worst %.1f%%, of %d runs", 100 * median, 100 * worst, runs
            if (median > 0.02 || worst > 0.05) printf "aim: median 2%%, worst 5%%" >missed }' >"$WORDS"
}

# Device times of a recording: each operation has one, kernels of 20 ms say so, times and calls agree, and the prediction
# replays what was recorded. Where CUPTI cannot be had the row is skipped, and says why.
run_recorded()
{
    local probe=$build/tests/record/program home said
    if [ -z "$emulated" ]; then
        [ -n "$nvcc" ] || { echo "no nvcc here"; return 77; }
        command -v g++ >/dev/null || { echo "no g++ here, which nvcc needs"; return 77; }
        probe=$dir/probe home=$(dirname "$(dirname "$(realpath "$nvcc")")")
        ls "$home"/lib64/libcudart.so "$home"/targets/*/lib/libcudart.so 2>/dev/null | grep -q . ||
            { echo "no libcudart.so beside $nvcc, to which the program is linked"; return 77; }
        "$nvcc" --cudart=shared -o "$probe" tests/gpu/record_probe.cu || return 1
        export LD_LIBRARY_PATH=$home/lib64:$home/extras/CUPTI/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    else
        [ -x "$probe" ] || { echo "no $probe here"; return 77; }
        home=$(realpath "$build/tests/cuda_emulation")
        export LD_LIBRARY_PATH=$home${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} SWSIM_CUPTI=$home/libcupti.so
        export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}"
    fi
    rm -rf "$dir/probe.swr"
    "$swsim" record -o "$dir/probe.swr" -- "$probe" measured 2>&1 | tee "$dir/recorded"
    said=$(sed -n 's/.*are recorded without their times: //p' "$dir/recorded")
    [ -z "$said" ] || { echo "$said"; return 77; }
    "$swsim" import -o "$dir/probe.yaml" "$dir/probe.swr" 2>&1 | tee -a "$dir/recorded"
    ! grep 'warning: .*\(lost\|no measured time\|contradict\|another number\|no recorded call\)' "$dir/recorded" || return 1
    "$swsim" predict --json "$dir/probe.yaml" >"$dir/probe.json" || return 1
    sed -n '/^threads:/,$ s/.*{launch: [^,]*spin[^,]*,.* time: \([0-9.]*\)\(ns\|us\|ms\).*/\1 \2/p' "$dir/probe.yaml" | head -n 50 |
        awk '{print $1 * ($2 == "ms" ? 1e6 : $2 == "us" ? 1e3 : 1)}' | sort -n >"$dir/spins"
    awk -v total="$(field makespan_ns "$dir/probe.json")" -v figures="$FIGURES" -v words="$WORDS" '
        { spin[NR] = $1 }
        END {
            middle = spin[int((NR + 1) / 2)]
            printf "{\"spin_ns\":%d,\"least_spin_ns\":%d,\"makespan_ns\":%d}\n", middle, spin[1], total >figures
            printf "kernels of 20 ms took %.3f, at least %.3f", middle / 1e6, spin[1] / 1e6 >words
            exit !(NR == 50 && spin[1] > 19.9e6 && spin[1] < 20.5e6) }' "$dir/spins"
}

# A row of the program tests/gpu/rows; WORDS_OF: a program of awk that has its figures as in["KEY"] and prints the note.
run_rows()
{
    "$build/tests/gpu/rows$variant" "${@:2}" >"$FIGURES" || return 1
    cat "$FIGURES"
    tr -d '{}"' <"$FIGURES" | tr ',' '\n' | awk -F: -v missed="$MISSED" "{ at[\$1] = \$2 } END { $1 }" >"$WORDS"
}

# The DLRM of the examples has the losses of its loop on the host: products by cuBLAS add up in another order.
run_cublas()
{
    local home=doc/examples/dlrm in_python
    in_python=$(python3 -c 'import nvidia.cublas as c; print(list(c.__path__)[0] + "/lib")' 2>/dev/null)
    export LD_LIBRARY_PATH=${CUDA_HOME:-/usr/local/cuda}/lib64${in_python:+:$in_python}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    [ -x "$dlrm" ] || { echo "no $dlrm here: it is built where cuBLAS is"; return 77; }
    [ -x "$build/$home/dlrm" ] || { echo "no $build/$home/dlrm here, whose losses are compared"; return 77; }
    ! ldd "$dlrm" | grep 'cublas.*not found' || { echo "no cuBLAS here"; return 77; }
    "$build/$home/dlrm" plain --quiet --iterations 25 >"$dir/losses.host" || return 1
    "$dlrm" $home/sparse_dist.yaml --quiet --iterations 25 >"$dir/losses.cuda" || return 1
    paste "$dir/losses.host" "$dir/losses.cuda" | awk -v figures="$FIGURES" -v words="$WORDS" '
        { a = $(NF / 2); b = $NF; d = a > b ? a - b : b - a; if (a != 0) d /= a < 0 ? -a : a; if (d > worst) worst = d }
        END {
            printf "{\"iterations\":%d,\"worst_loss_error\":%.3g}\n", NR, worst >figures
            printf "losses within %.1g of the loop on the host", worst >words
            exit !(NR > 0 && worst < 1e-3) }'
}

# children PID: its child processes.
children()
{
    local stat line rest
    for stat in /proc/[0-9]*/stat; do
        read -r line 2>/dev/null <"$stat" || continue
        rest=${line##*) }
        rest=${rest#* }
        [ "${rest%% *}" != "$1" ] || echo "${line%% *}"
    done
}

# One of the ranks is killed: the others end by themselves within 20 s, and name it.
killed_rank()
{
    "$swrun" --device cuda --ranks "$1" -n 50000000 --timeout 10s plans/torchrec/sparse_dist.yaml &
    local pid=$! ranks=() status=0 victim
    for _ in $(seq 100); do
        sleep 0.2
        mapfile -t ranks < <(children $pid | sort -n)
        [ "${#ranks[@]}" -lt "$1" ] || break
    done
    [ "${#ranks[@]}" -eq "$1" ] || { kill -9 $pid; echo "the ranks did not start"; return 1; }
    sleep "$settle" # until they work
    victim=${ranks[$(($1 - 1))]}
    kill -9 "$victim"
    (sleep 20; kill -9 $pid 2>/dev/null) &
    local guard=$!
    wait $pid || status=$?
    kill $guard 2>/dev/null
    [ "$status" -eq 1 ] || { echo "swrun ended with $status, expected 1"; return 1; }
}
says_who_died()
{
    local status=0
    killed_rank "$1" >"$dir/killed" 2>&1 || status=$?
    cat "$dir/killed"
    [ $status -eq 0 ] && grep -q "rank $(($1 - 1)): its process was killed by signal 9" "$dir/killed"
}
export -f children field killed_rank run_compare run_cublas run_overhead run_plan run_recorded run_rows run_sanitized run_trace says_who_died
export build dir dlrm emulated variant nvcc overhead sanitizer settle slack suite swrun swsim

# ---- the table -------------------------------------------------------------------------------------

echo "GPU: $gpu, driver $driver; host: $processor, $cores cores; commit $commit"
echo "swrun sees: $device"

plan 20 "a first plan: sparse_dist" plans/reference/sparse_dist.yaml --ranks 1 -n $iterations
row 60 "device conformance" "$suite" cuda alone
# The library: the caller's GPU, last error and environment; what the program has made itself. With fewer GPUs than
# their parts need, those are left out, and the log says so.
row 60 "library: hooks and the caller's CUDA" "$build/tests/gpu/t_swpipe_hooks$variant" cuda
row 60 "library: the program's own" "$build/tests/gpu/t_swpipe_own$variant" cuda

# With NCCL and several processes.
[ -n "$nccl" ] || lacks="no NCCL here"
row 60 "device conformance, several ranks" "$suite" cuda
ask 60 "push of an all-reduce" run_rows 'printf "%.1f us, NCCL alone %.1f", at["push_ns"] / 1e3, at["nccl_ns"] / 1e3
    if (at["push_ns"] > at["nccl_ns"] + 15000) printf "aim: 15 us more than NCCL" >missed' push $waits
row 90 "library: collectives on own memory" "$build/tests/gpu/t_swpipe_collectives$variant" cuda
row 150 "library: groups and their recordings" "$build/tests/gpu/t_swpipe_group$variant" cuda
for ranks in 2 4; do
    for kind in clock dataflow; do
        plan 40 "sparse_dist $kind, $ranks ranks" plans/reference/sparse_dist.yaml --ranks $ranks --driver $kind -n $iterations
    done
done
for schedule in gpipe 1f1b zbv; do
    for ranks in 2 4; do
        "$swsim" generate $schedule --ranks=$ranks --microbatches=8 --comms >"$dir/$schedule.yaml" 2>"$dir/log" ||
            { fail "$schedule, $ranks ranks" 0 "$(head -n 1 "$dir/log")"; continue; }
        plan 40 "$schedule, $ranks ranks" "$dir/$schedule.yaml"
    done
done
for ranks in 2 4; do
    ask 60 "one of $ranks ranks is killed" says_who_died $ranks
done

plan 40 "sparse_dist clock, graphs, 2 ranks" plans/reference/sparse_dist.yaml --ranks 2 --graph=require -n $iterations
lacks=

# What things cost.
ask 60 "overhead" run_overhead $tasks
ask 60 "what a trace costs" run_trace $((5 * iterations)) $rounds
# Rows with a program of their own.
ask 30 "waits: after the end of the work" run_rows 'printf "%.1f us where it is short, CUDA %.1f; %.1f us where it is long, CUDA %.1f",
    at["short_ns"] / 1e3, at["short_cuda_ns"] / 1e3, at["long_ns"] / 1e3, at["long_cuda_ns"] / 1e3
    if (at["short_ns"] > at["short_cuda_ns"] + 10000) printf "aim: 10 us more than CUDA where it is short" >missed' poll $waits
ask 60 "a pipeline by hand, and in the library" run_rows 'printf "%.1f us an iteration by hand, clock %.1f, data-flow %.1f",
    at["hand_ns"] / 1e3, at["clock_ns"] / 1e3, at["dataflow_ns"] / 1e3
    if (at["dataflow_ns"] > 1.05 * at["hand_ns"]) printf "aim: 5%% more than by hand" >missed' hand $tasks
ask 30 "a pipeline fails and is filled again" run_rows 'printf "drained in %.2f ms, clock; %.2f, data-flow",
    at["clock_drain_ns"] / 1e6, at["dataflow_drain_ns"] / 1e6' refill
ask 30 "an illegal address" run_rows 'printf "told after %.1f ms, ended after %.1f", at["told_ns"] / 1e6, at["ended_ns"] / 1e6' illegal
ask 60 "a kernel that hangs" run_rows 'printf "told after %.1f s, closed after %.1f", at["told_ns"] / 1e9, at["closed_ns"] / 1e9
    if (at["closed_ns"] > 10e9) printf "aim: closed within 10 s" >missed' hung
ask 60 "drift of the clocks" run_rows 'printf "%.2f ppm, within %.2f; off that line by %.1f us", at["ppm"], at["error_ppm"],
    at["worst_ns"] / 1e3' drift $seconds_of_drift
ask 60 "library: cuBLAS" run_cublas

# A program that knows nothing of swsim.
ask 60 "recorded: device times by CUPTI" run_recorded

# Every plan.
for file in plans/torchrec/*.yaml; do
    # one needs four ranks, two read older tables than a serial run
    case $file in *.two_groups.yaml | */semi_sync.yaml | */semi_sync.ready_first.yaml) continue ;; esac
    plan 20 "$(basename "$file" .yaml), all collectives" "$file" --ranks 1 -n $iterations
done
for file in plans/reference/*.yaml; do
    case $file in *.upstream.yaml) continue ;; esac
    for kind in clock dataflow; do
        plan 20 "$(basename "$file" .yaml) $kind" "$file" --ranks 1 --driver $kind -n $iterations
    done
done
ask 150 "predicted against measured" run_compare $((4 * iterations)) "$predicted"
# Steady periods as graphs, and the cost of an empty period.
for plan in sparse_dist fused_sparse_dist staged; do
    plan 20 "$plan clock, graphs" plans/reference/$plan.yaml --ranks 1 --graph=require -n $iterations
done
plan 20 "nothing to do, pushes" tests/bench/nothing.yaml -n $((20 * iterations))
plan 20 "nothing to do, graphs" tests/bench/nothing.yaml --graph=require -n $((20 * iterations))
plan 60 "half a minute: clocks are tied again" plans/torchrec/sparse_dist.yaml --ranks 1 -n $long

# The longest comes last.
if [ -n "$emulated" ]; then
    skip "conformance under compute-sanitizer" "emulated CUDA checks addresses itself"
elif [ -n "$sanitizer" ]; then
    ask 90 "conformance under compute-sanitizer" run_sanitized
else
    skip "conformance under compute-sanitizer" "no compute-sanitizer here"
fi

# ---- the result ------------------------------------------------------------------------------------

if [ ${#rows[@]} -eq 0 ]; then
    echo "no row matches ROWS='${ROWS:-}'"
    exit 1
fi
seconds=$(($(date +%s) - begun))
write_json true
echo "$([ $failed -eq 0 ] && echo passed || echo FAILED) in $seconds s${emulated:+, on EMULATED CUDA, not a GPU}"
echo "written: $out/$stem.json, $out/$stem.logs.tar.gz"
exit $failed

#!/bin/bash
# run.sh - everything that needs a GPU, once, in under eight minutes: prints one table, writes it as JSON.
#
#     tests/gpu/run.sh [BUILD]    BUILD: programs, from `make` or tests/gpu/pack.sh (default gpu-pack/ where
#                                 there is one, else build/)
#
#     OUT=DIR                     where the JSON goes (default doc/measurements/), named by date and GPU
#     SECONDS_AT_MOST=N           for all rows together (default 460); what has not begun by then fails
#     SWSIM_GPU_EMULATED=1        try the script out on emulated CUDA (tests/cuda_emulation): no result of a
#                                 GPU. Table and JSON say so, and nothing is written under doc/
#
# On the machine: a driver, NCCL (in the system, or Python's nvidia/nccl), compute-sanitizer of the CUDA
# toolkit for its row. Exit status: 0 all passed, 1 something failed, 77 no GPU here, which is said.
set -u
cd "$(dirname "$0")/../.." || exit 1
begun=$(date +%s)
at_most=${SECONDS_AT_MOST:-460}
emulated=${SWSIM_GPU_EMULATED:-}
build=${1:-}
[ -n "$build" ] || { [ -x gpu-pack/swrun ] && build=gpu-pack || build=build; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# ---- what is here ----------------------------------------------------------------------------------

if [ -n "$emulated" ]; then
    swrun=$build/tests/swrun_emulated suite=$build/tests/t_device_emulated
    gpu="emulated CUDA: not a GPU" driver=none settle=1 iterations=8
    predicted=plans/torchrec/sparse_dist.yaml
    out=${OUT:-$dir}
    case $(realpath -m "$out")/ in
    "$(realpath doc)"/*) echo "emulated runs write nothing under doc/"; exit 1 ;;
    esac
    echo "EMULATED CUDA: not a result of a GPU"
else
    swrun=$build/swrun suite=$build/tests/t_device settle=6 iterations=30
    predicted='plans/torchrec/*.yaml'
    out=${OUT:-doc/measurements}
    if ! seen=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null) || [ -z "$seen" ]; then
        echo "no GPU here (nvidia-smi finds none): nothing was run"
        exit 77
    fi
    seen=$(head -n 1 <<<"$seen")
    gpu=${seen%, *} driver=${seen##*, }
fi
for program in "$swrun" "$suite" "$build/swsim"; do
    [ -x "$program" ] || { echo "$program is not there: tests/gpu/pack.sh makes it"; exit 1; }
done
swrun=$(realpath "$swrun") suite=$(realpath "$suite") swsim=$(realpath "$build/swsim")

# NCCL in a Python that swrun would not look at by itself.
if [ -z "$emulated" ] && [ -z "${SWSIM_NCCL:-}" ]; then
    nccl_in_python=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib")' 2>/dev/null)
    if [ -e "$nccl_in_python/libnccl.so.2" ] && ! ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2'; then
        export SWSIM_NCCL=$nccl_in_python
    fi
fi
find_tool()
{
    command -v "$1" || ls "${CUDA_HOME:-/usr/local/cuda}/bin/$1" /usr/local/cuda*/bin/"$1" 2>/dev/null | head -n 1
}
sanitizer=$(find_tool compute-sanitizer)

# ---- rows ------------------------------------------------------------------------------------------

failed=0
rows=()
elapsed() { awk -v a="$1" -v b="$(date +%s.%N)" 'BEGIN { printf "%.3f", b - a }'; }
left() { echo $((at_most - $(date +%s) + begun)); }
json_text() { sed 's/\\/\\\\/g; s/"/\\"/g' <<<"$1" | tr -d '\000-\037'; }

# say NAME STATE SECONDS [ITERATION_NS [NOTE]]: a line of the table, an object of the JSON.
say()
{
    local iteration=${4:-} note=${5:-}
    printf '%-40s %-8s %6.1f s  %12s  %s\n' "$1" "$2" "$3" \
        "${iteration:+$(awk -v ns="$iteration" 'BEGIN { printf "%.3f ms", ns / 1e6 }')}" "$note"
    rows+=("{\"name\":\"$(json_text "$1")\",\"state\":\"$2\",\"seconds\":$3,\"iteration_ns\":${iteration:-null},\"note\":\"$(json_text "$note")\"}")
    [ "$2" != FAILED ] || failed=1
}
skip() { say "$1" skipped 0 "" "$2"; }

# row BUDGET NAME COMMAND...: must exit with 0 within BUDGET seconds; its output is in $dir/log.
row()
{
    local budget=$1 name=$2 start status=0 mean
    shift 2
    if [ "$(left)" -le 0 ]; then
        say "$name" FAILED 0 "" "no time left"
        return
    fi
    [ "$budget" -le "$(left)" ] || budget=$(left)
    start=$(date +%s.%N)
    timeout -k 5 "$budget" "$@" >"$dir/log" 2>&1 </dev/null || status=$?
    mean=$(sed -n 's/.*"iteration_ns":{"mean":\([0-9.]*\).*/\1/p' "$dir/log" | head -n 1)
    [ "${mean:-0}" != 0 ] || mean= # no iterations: a host program
    case $status in
    0) say "$name" ok "$(elapsed "$start")" "$mean" ;;
    77) say "$name" skipped "$(elapsed "$start")" "" "$(tail -n 1 "$dir/log")" ;;
    124 | 137) say "$name" FAILED "$(elapsed "$start")" "" "over its $budget s" ;;
    *) say "$name" FAILED "$(elapsed "$start")" "" "exit status $status" ;;
    esac
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || tail -n 8 "$dir/log" | sed 's/^/    /'
}

# plan BUDGET NAME PLAN OPTION...: a run that is legal, and right where it has a serial run to be compared with.
checked='
    file=$1; shift
    "$SWRUN" --device cuda --json --timeout 15s "$@" "$file" >"$LOG.json" || { cat "$LOG.json"; exit 1; }
    cat "$LOG.json"
    ! grep -q "\"legal\":false\|\"legal\":null\|\"results_match_serial\":false" "$LOG.json"'
plan() { row "$1" "$2" env SWRUN="$swrun" LOG="$dir/run" bash -c "$checked" - "${@:3}"; }

# children PID: the processes it has started.
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

# One of the ranks is killed: the others end by themselves within 20 s, and say which.
killed_rank()
{
    "$swrun" --device cuda --ranks "$1" -n 100000000 --timeout 10s plans/torchrec/sparse_dist.yaml &
    local pid=$! ranks=() status=0 victim
    for _ in $(seq 100); do
        sleep 0.2
        mapfile -t ranks < <(children $pid | sort -n)
        [ "${#ranks[@]}" -lt "$1" ] || break
    done
    [ "${#ranks[@]}" -eq "$1" ] || { kill -9 $pid; echo "the ranks did not start"; return 1; }
    sleep "$settle" # until they are at work
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
export -f killed_rank says_who_died children
export swrun dir settle

# ---- the table -------------------------------------------------------------------------------------

echo "GPU: $gpu, driver $driver"
device=$("$swrun" --device cuda --ranks 1 --serial -n 1 --json plans/examples/hello.yaml 2>&1 |
         sed -n 's/.*"device_name":"\([^"]*\)".*/\1/p' | head -n 1)
echo "swrun sees: ${device:-nothing}"
cuda=$(sed -n 's/.*CUDA runtime \([0-9.]*\).*/\1/p' <<<"$device")
nccl=$(sed -n 's/.*NCCL \([0-9.]*\).*/\1/p' <<<"$device")

row 60 "device conformance" "$suite" cuda
if [ -n "$emulated" ]; then
    skip "conformance under compute-sanitizer" "emulated CUDA checks addresses itself"
elif [ -n "$sanitizer" ]; then
    row 90 "conformance under compute-sanitizer" "$sanitizer" --error-exitcode 9 "$suite" cuda alone
else
    skip "conformance under compute-sanitizer" "no compute-sanitizer here"
fi

for file in plans/torchrec/*.yaml; do
    case $file in *.upstream.yaml) continue ;; esac
    for kind in clock dataflow; do
        plan 20 "$(basename "$file" .yaml) $kind" "$file" --ranks 1 --driver $kind -n $iterations
    done
done
for ranks in 2 4; do
    for kind in clock dataflow; do
        plan 40 "sparse_dist $kind, $ranks ranks" plans/torchrec/sparse_dist.yaml --ranks $ranks --driver $kind -n $iterations
    done
done
for schedule in gpipe 1f1b zbv; do
    for ranks in 2 4; do
        "$swsim" generate $schedule --ranks=$ranks --microbatches=8 --comms >"$dir/$schedule.yaml" 2>"$dir/log" ||
            { say "$schedule, $ranks ranks" FAILED 0 "" "$(head -n 1 "$dir/log")"; continue; }
        plan 40 "$schedule, $ranks ranks" "$dir/$schedule.yaml"
    done
done
for ranks in 2 4; do
    row 60 "one of $ranks ranks is killed" bash -c "says_who_died $ranks"
done

# Steady periods as graphs, and what a period costs where nothing is to be done.
for plan in sparse_dist fused_sparse_dist staged; do
    plan 20 "$plan clock, graphs" plans/torchrec/$plan.yaml --ranks 1 --graph=require -n $iterations
done
plan 40 "sparse_dist clock, graphs, 2 ranks" plans/torchrec/sparse_dist.yaml --ranks 2 --graph=require -n $iterations
plan 20 "nothing to do, pushes" tests/bench/nothing.yaml -n $((20 * iterations))
plan 20 "nothing to do, graphs" tests/bench/nothing.yaml --graph=require -n $((20 * iterations))

# Rows to come: overhead (host time per task beside the same CUDA calls in plain C). Add them here, each with a
# budget of its own.

compare='
    "$SRC/tests/bench/compare.sh" || exit
    "$SWSIM" compare --json "$DB" >"$DB.json"'
row 150 "predicted against measured" env DEVICE=cuda ITERATIONS=$((4 * iterations)) RANKS=1 WORK=yes REALTIME=no QUIET=1 PLANS="$predicted" DB="$dir/runs.db" \
    SRC="$PWD" SWSIM="$swsim" SWRUN="$swrun" srcdir="$PWD" bash -c "$compare"
errors=$(tail -n 1 "$dir/log")

# ---- the result ------------------------------------------------------------------------------------

echo "$errors"
mkdir -p "$out"
name=$(tr -cs 'A-Za-z0-9' - <<<"$gpu" | sed 's/-*$//')
file=$out/gpu-$(date +%Y-%m-%d)-$name.json
{
    printf '{"emulated":%s,"gpu":"%s","driver":"%s","cuda":"%s","nccl":"%s","device":"%s","date":"%s","passed":%s,"seconds":%d,"rows":[\n' \
        "$([ -n "$emulated" ] && echo true || echo false)" "$(json_text "$gpu")" "$driver" "$cuda" "$nccl" \
        "$(json_text "$device")" "$(date -u +%FT%TZ)" "$([ $failed -eq 0 ] && echo true || echo false)" $(($(date +%s) - begun))
    for i in "${!rows[@]}"; do
        printf '%s%s\n' "${rows[$i]}" "$([ "$i" -lt $((${#rows[@]} - 1)) ] && echo ,)"
    done
    printf '],"compare":%s}\n' "$(cat "$dir/runs.db.json" 2>/dev/null || echo null)"
} >"$file"
echo "$([ $failed -eq 0 ] && echo passed || echo FAILED) in $(($(date +%s) - begun)) s${emulated:+, on EMULATED CUDA, not a GPU}"
echo "written: $file"
exit $failed

#!/bin/bash
# run.sh - everything that needs a GPU, once: the device conformance suite, then the TorchRec plans on
# the cuda device under both drivers. Prints one table and writes it as JSON.
#
#     tests/gpu/run.sh [BUILD]        BUILD: a build folder with CUDA (default build/)
#
# The programs in BUILD may come from another machine: they link CUDA's runtime statically and load
# NCCL when they need it; the libraries they find missing there can lie in BUILD/lib. The result goes to
# $OUT or doc/measurements/, named by GPU and date. Exit status: 0 all passed, 1 something failed, 77
# no GPU (or no driver) here, which is said.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${1:-build}
out=${OUT:-doc/measurements}
[ -d "$build/lib" ] && export LD_LIBRARY_PATH=$PWD/$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

if ! gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null) || [ -z "$gpu" ]; then
    echo "no GPU here (nvidia-smi finds none): nothing was run"
    exit 77
fi
[ -x "$build/swrun" ] || { echo "$build/swrun is not there: build with CUDA first"; exit 1; }

failed=0
rows=()
# row NAME COMMAND...: run, keep one line of the table and one object of the JSON.
row()
{
    local name=$1 log start status=0 seconds
    shift
    log=$(mktemp)
    start=$(date +%s.%N)
    timeout 120 "$@" >"$log" 2>&1 || status=$?
    seconds=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.3f", b - a }')
    [ "$status" -eq 0 ] || { failed=1; tail -n 5 "$log"; }
    local mean
    mean=$(sed -n 's/.*"iteration_ns":{"mean":\([0-9.]*\).*/\1/p' "$log" | head -n 1)
    printf '%-52s %-6s %12s ns  %8s s\n' "$name" "$([ "$status" -eq 0 ] && echo ok || echo FAILED)" \
        "${mean:--}" "$seconds"
    rows+=("{\"name\":\"$name\",\"status\":$status,\"iteration_ns\":${mean:-null},\"seconds\":$seconds}")
    rm -f "$log"
}

echo "GPU: $gpu"
row "device conformance" "$build/tests/t_device"
for driver in clock dataflow; do
    for plan in plans/torchrec/*.yaml; do
        case $plan in *.upstream.yaml) continue ;; esac
        row "$driver $(basename "$plan" .yaml)" \
            "$build/swrun" --device cuda --ranks 1 --driver "$driver" -n 50 --json "$plan"
    done
done

mkdir -p "$out"
file=$out/gpu-$(date +%Y-%m-%d).json
{
    printf '{"gpu":"%s","date":"%s","rows":[\n' "$gpu" "$(date -u +%FT%TZ)"
    (IFS=,; printf '%s\n' "${rows[*]}")
    echo ']}'
} >"$file"
echo "written: $file"
exit "$failed"

#!/bin/sh
# tests/gpu/run.sh, tried out on emulated CUDA, so that it works on the day a GPU is there: every row, and so
# every TorchRec plan under both drivers, pipeline-parallel plans, two and four ranks, a killed rank.
set -u
: "${srcdir:=.}"
. "$srcdir/tests/tap.sh"
build=$PWD
unset SWSIM_NCCL

if [ ! -x tests/swrun_emulated ] || [ ! -x swsim ]; then
    skip "built without CUDA's toolkit, which the emulation is compiled against, or without swsim"
    done_testing
    exit
fi
if ! command -v bash >/dev/null; then
    skip "no bash"
    done_testing
    exit
fi
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

check "all rows pass" prints 0 'passed in .*EMULATED CUDA, not a GPU' \
    env SWSIM_GPU_EMULATED=1 OUT="$dir/json" "$srcdir/tests/gpu/run.sh" "$build"
cp "$dir/out" "$dir/table"
check "the table begins with what it is not" sh -c 'head -n 1 "$1" | grep -q "EMULATED CUDA: not a result of a GPU"' sh "$dir/table"
json=$(ls "$dir/json/"*.json)
check "so does the JSON" sh -c 'head -c 60 "$1" | grep -q "{\"emulated\":true,\"gpu\":\"emulated CUDA: not a GPU\""' sh "$json"
check "which has the versions" grep -q '"cuda":"[0-9][0-9.]*","nccl":"[0-9][0-9.]*"' "$json"
check "every TorchRec plan under both drivers" sh -c '
    for plan in "$2"/plans/torchrec/*.yaml; do
        name=$(basename "$plan" .yaml)
        case $name in *.upstream) continue ;; esac
        for kind in clock dataflow; do
            grep -q "\"name\":\"$name $kind\",\"state\":\"ok\"" "$1" || { echo "no $name $kind"; exit 1; }
        done
    done' sh "$json" "$srcdir"
check "and what was predicted" grep -q '"compare":{"runs":\[{' "$json"
if command -v python3 >/dev/null; then
    check "it is JSON" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$json"
else
    skip "no python3 to parse it with"
fi
check "emulated results go nowhere under doc/" sh -c '
    SWSIM_GPU_EMULATED=1 OUT="$1/doc/measurements" "$1/tests/gpu/run.sh" "$2" >"$3/out" 2>&1
    test $? -eq 1 && grep -q "nothing under doc" "$3/out"' sh "$srcdir" "$build" "$dir"
if [ -n "${SWSIM_LONG:-}" ] && [ -w "$srcdir" ]; then
    check "what is carried to a GPU is built" prints 0 'packed: ' "$srcdir/tests/gpu/pack.sh" "$dir/pack"
    check "and is small" sh -c 'test "$(du -sk "$1" | cut -f 1)" -lt 40960' sh "$dir/pack"
    check "and runs" prints 0 '"legal":true' env -i "$dir/pack/swrun" -n 5 --json "$srcdir/plans/examples/hello.yaml"
else
    skip "tests/gpu/pack.sh: only with SWSIM_LONG=1"
fi
if ! command -v nvidia-smi >/dev/null; then
    check "without a GPU nothing is run" exits 77 "$srcdir/tests/gpu/run.sh" "$build"
else
    skip "there may be a GPU here"
fi
done_testing

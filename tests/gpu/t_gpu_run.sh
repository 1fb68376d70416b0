#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/run.sh, tried out on emulated CUDA, so that it works on the day a GPU is there: every row, and so
# every TorchRec plan under both drivers, pipeline-parallel plans, two and four ranks, a killed rank, overhead,
# what a trace costs, predictions.
. "${srcdir:-.}/tests/tap.sh"
build=$PWD
unset SWSIM_NCCL

if [ ! -x tests/swrun_emulated ] || [ ! -x tests/overhead_emulated ] || [ ! -x swsim ]; then
    skip_all "built without CUDA's toolkit, which the emulation is compiled against, or without swsim"
fi
if ! command -v bash >/dev/null; then
    skip_all "no bash"
fi

check "all rows pass" prints 0 'passed in .*EMULATED CUDA, not a GPU' \
    env SWSIM_GPU_EMULATED=1 OUT="$dir/json" "$srcdir/tests/gpu/run.sh" "$build"
cp "$dir/out" "$dir/table"
check "the table begins with what it is not" sh -c 'head -n 1 "$1" | grep -q "EMULATED CUDA: not a result of a GPU"' sh "$dir/table"
json=$(ls "$dir/json/"*.json)
check "so does the JSON" sh -c 'head -c 60 "$1" | grep -q "{\"emulated\":true,\"gpu\":\"emulated CUDA: not a GPU\""' sh "$json"
check "which has the versions" grep -q '"cuda":"[0-9][0-9.]*","nccl":"[0-9][0-9.]*"' "$json"
check "every TorchRec plan under both drivers" sh -c '
    for plan in "$2"/plans/reference/*.yaml; do
        name=$(basename "$plan" .yaml)
        case $name in *.upstream) continue ;; esac
        for kind in clock dataflow; do
            grep -q "\"name\":\"$name $kind\",\"status\":\"ok\"" "$1" || { echo "no $name $kind"; exit 1; }
        done
    done' sh "$json" "$srcdir"
check "and what was predicted" grep -q '"compare":{[^[]*"runs":\[{' "$json"
check "no row failed, none without a reason was skipped" sh -c '! grep -e "\"FAILED\"" -e "\"skipped\".*\"note\":\"\"" "$1"' sh "$json"
# figure ROW PATTERN: the row is well, and its figures match.
figure() { grep -q "\"name\":\"$1\",\"status\":\"ok\",\"seconds\":[0-9.]*,\"figures\":{$2" "$json" || { grep "\"$1\"" "$json"; false; }; }
check "what a task costs, and firing" figure overhead '.*"direct_ns":[0-9]*,"clock_ns":[0-9]*.*"fire_other_ns":[0-9]'
check "what a trace costs" figure "what a trace costs" '"iterations":{"bare_ns":[0-9]*,"kept_ns":[0-9]*.*"tasks":{"bare_ns"'
check "how far predictions are off" figure "predicted against measured" '"runs":[0-9]*,"median_error":[0-9.]*,"worst_error":[0-9]'
check "and the table says so" grep -q '^predicted against measured .*median error [0-9.]*%, worst [0-9.]*%, of [0-9]* runs' "$dir/table"
check "device times of a recording" figure "recorded: device times by CUPTI" '"spin_ns":[0-9]*,"least_spin_ns":[0-9]*,"makespan_ns":[0-9]'
check "waits" figure "waits: after the end of the work" '"short_ns":[0-9]*,"short_cuda_ns":[0-9]*,"long_ns":[0-9]*,"long_cuda_ns":[0-9]'
check "a pipeline by hand" figure "a pipeline by hand, and in the library" '"hand_ns":[0-9]*,"clock_ns":[0-9]*,"dataflow_ns":[0-9]'
check "one that is filled again" figure "a pipeline fails and is filled again" '"clock_drain_ns":[0-9]'
check "the push of a collective" figure "push of an all-reduce" '"push_ns":[0-9]*,"nccl_ns":[0-9]'
check "takes no 15 us beside NCCL's call" sh -c 'tests/gpu/rows_emulated push 200 | tr -dc "0-9,\n" | awk -F, "{ exit !(\$1 < \$2 + 15000) }"'
check "an illegal address" figure "an illegal address" '"told_ns":[0-9]*,"ended_ns":[0-9]'
check "drift" figure "drift of the clocks" '"ppm":-*[0-9.]*,"error_ppm":[0-9.]*,"worst_ns":[0-9]'
drift_of() { SWSIM_EMULATION_DRIFT=$1 tests/gpu/rows_emulated drift 3 | awk -F'[:,]' -v ppm="$1" '{print; exit !($2 - ppm < $4 + 1 && ppm - $2 < $4 + 1)}'; }
check "the drift of a clock that is 300 ppm too fast" drift_of 300
if [ -x tests/dlrm_emulated ]; then
    check "cuBLAS" figure "library: cuBLAS" '"iterations":25,"worst_loss_error":0}'
else
    skip "built without cuBLAS"
fi
check "the host" grep -q '"cpu":"[^"]*","cores":[1-9][0-9]*,"commit":"[^"]*","date":"20' "$json"
if command -v python3 >/dev/null; then
    check "it is JSON, of the form we say" python3 -c '
import json, sys
result = json.load(open(sys.argv[1]))
for key in ("gpu", "driver", "cuda", "nccl", "date", "cpu", "cores", "commit", "passed", "seconds", "compare"):
    assert key in result, key
for row in result["rows"]:
    assert sorted(row) == ["figures", "name", "note", "seconds", "status"], row
    assert row["figures"] is None or isinstance(row["figures"], dict), row
names = [row["name"] for row in result["rows"]]
assert len(names) == len(set(names)), "a name twice"' "$json"
else
    skip "no python3 to parse it with"
fi
check "emulated results go nowhere under doc/" sh -c '
    SWSIM_GPU_EMULATED=1 OUT="$1/doc/measurements" "$1/tests/gpu/run.sh" "$2" >"$3/out" 2>&1
    test $? -eq 1 && grep -q "nothing under doc" "$3/out"' sh "$srcdir" "$build" "$dir"

# A suite that fails: the other rows go on, and what it said is kept.
mkdir -p "$dir/broken/tests/gpu"
ln -s "$build/swsim" "$dir/broken/swsim"
ln -s "$build/tests/swrun_emulated" "$build/tests/overhead_emulated" "$dir/broken/tests/"
printf '#!/bin/sh\necho broken here\nexit 5\n' >"$dir/broken/tests/gpu/t_device_emulated"
chmod +x "$dir/broken/tests/gpu/t_device_emulated"
check "a row that fails fails the whole" prints 1 '^device conformance *FAILED .*exit status 5' \
    env SWSIM_GPU_EMULATED=1 OUT="$dir/broken/out" ROWS='@(device*|overhead)' "$srcdir/tests/gpu/run.sh" "$dir/broken"
check "but not the others" grep -q '^overhead  *ok' "$dir/out"
check "its output is kept" sh -c 'tar -xzOf "$1" logs/device-conformance.log | grep -qx "broken here"' sh "$dir"/broken/out/*.logs.tar.gz
check "in two files, as many as any run has" sh -c 'test "$(ls -A "$1" | wc -l)" -eq 2' sh "$dir/broken/out"
check "the JSON says so" grep -q '"passed":false' "$dir"/broken/out/*.json
# A machine that is taken away in the middle leaves what was measured: a row looks at the JSON behind the row before.
printf '#!/bin/sh\ncp "$OUT"/*.json "$OUT/meanwhile"\n' >"$dir/broken/tests/gpu/t_swpipe_hooks_emulated"
chmod +x "$dir/broken/tests/gpu/t_swpipe_hooks_emulated"
check "the JSON is there behind each row" prints 0 '^library: hooks.* ok' \
    env SWSIM_GPU_EMULATED=1 OUT="$dir/broken/rows" ROWS='@(a first plan*|library: hooks*)' "$srcdir/tests/gpu/run.sh" "$dir/broken"
check "with the rows so far" sh -c 'grep -q "\"complete\":false" "$1" && grep -q "\"name\":\"a first plan: sparse_dist\",\"status\":\"ok\"" "$1"' sh "$dir/broken/rows/meanwhile"
check "a row without time fails" prints 1 '^overhead *FAILED .*no time left' \
    env SWSIM_GPU_EMULATED=1 OUT="$dir/late" ROWS=overhead SECONDS_AT_MOST=0 "$srcdir/tests/gpu/run.sh" "$build"
# What the machine has is kept: the state of its GPU, here as a driver would tell it, and the output of all rows.
mkdir "$dir/tools"
cat >"$dir/tools/nvidia-smi" <<'END'
#!/bin/sh
case $* in
*mig.mode.current*) echo '1980 MHz, 1980 MHz, Disabled, Default, Enabled' ;;
*"-l 5"*) echo 'timestamp, clocks.sm'; exec sleep 613.571 ;;
esac
END
chmod +x "$dir/tools/nvidia-smi"
check "a machine without NCCL" prints 0 '^device conformance  *ok' env PATH="$dir/tools:$PATH" SWSIM_NCCL=/nowhere SWSIM_GPU_EMULATED=1 \
    OUT="$dir/bare" ROWS='@(device*|an illegal address|1f1b, 2*)' "$srcdir/tests/gpu/run.sh" "$build"
bare=$(ls "$dir"/bare/*.json)
skipped() { grep -q "\"name\":\"$1\",\"status\":\"skipped\".*\"note\":\"no NCCL here\"" "$bare"; }
check "skips the rows that need it" skipped "1f1b, 2 ranks"
check "also that of the suite with several ranks" skipped "device conformance, several ranks"
check "clocks, MIG and compute mode are in the JSON" grep -q '"state":"1980 MHz, 1980 MHz, Disabled, Default, Enabled"' "$bare"
kept() { tar -tzf "$dir"/bare/*.logs.tar.gz >"$dir/names" && for name; do grep -qx "logs/$name" "$dir/names" || { cat "$dir/names"; return 1; }; done; }
check "an archive has the output of the rows" kept device-conformance.log an-illegal-address.log clocks.csv
check "and no process of it is left" sh -c '! ps -eo comm,args | grep "^sleep" | grep -qF 613.571'
check "rows that there are not" prints 1 "no row matches ROWS='nothing'" \
    env SWSIM_GPU_EMULATED=1 OUT="$dir/late" ROWS=nothing "$srcdir/tests/gpu/run.sh" "$build"

# What these programs are linked with here, and a GPU's machine may not have.
linked_in()
{
    ldd ./swsim ./swrun ./libswrecord.so | sed -n 's/^[[:space:]]*\(lib[^ ]*\)\.so.*/\1/p' | sed 's/-[0-9]*$//' | sort -u |
        grep -Evx 'lib(c|m|dl|rt|pthread|gcc_s|asan|tsan|ubsan|cudart)' >"$dir/libraries"
    while read -r library; do
        grep -q "library $library\.\(a\|so\)" "$srcdir/tests/gpu/pack.sh" || { echo "# $library"; return 1; }
    done <"$dir/libraries"
}
check "what is carried to a GPU brings its libraries" linked_in

# The pack in an empty place, with nothing in the environment.
if [ -n "${SWSIM_LONG:-}" ] && [ -w "$srcdir" ]; then
    mkdir "$dir/empty"
    check "what is carried to a GPU is built" prints 0 'packed: ' env SWSIM_GPU_EMULATED=1 "$srcdir/tests/gpu/pack.sh" "$dir/pack"
    check "and is small" sh -c 'test "$(du -sk "$1" | cut -f 1)" -lt 21000' sh "$dir/pack.tar.gz"
    if [ -x tests/dlrm_emulated ]; then
        check "it has the DLRM with cuBLAS" test -x "$dir/pack/doc/examples/dlrm/dlrm_cuda"
    fi
    mv "$dir/pack" "$dir/empty/carried"
    carried() { (cd "$dir/empty" && env -i "$@"); }
    check "and runs" prints 0 '"legal":true' carried carried/swrun -n 5 --json carried/plans/examples/hello.yaml
    check "the whole, emulated, from there" prints 0 'passed in .*EMULATED CUDA, not a GPU' \
        carried SWSIM_GPU_EMULATED=1 OUT="$dir/empty/out" carried/tests/gpu/run.sh
    [ ! -x tests/dlrm_emulated ] ||
        check "with the row of cuBLAS" grep -q '"name":"library: cuBLAS","status":"ok"' "$dir"/empty/out/*.json
    check "and that of a recorded program" grep -q '"name":"recorded: device times by CUPTI","status":"ok"' "$dir"/empty/out/*.json
    command -v nvidia-smi >/dev/null ||
        check "without a GPU nothing is run there" exits 77 carried carried/tests/gpu/run.sh
else
    skip "tests/gpu/pack.sh: only with SWSIM_LONG=1"
fi
if ! command -v nvidia-smi >/dev/null; then
    check "without a GPU nothing is run" prints 77 'no CUDA driver or GPU: .*nothing was run' "$srcdir/tests/gpu/run.sh" "$build"
else
    skip "there may be a GPU here"
fi
done_testing

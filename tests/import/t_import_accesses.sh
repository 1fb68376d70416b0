#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim import` of a profile with the execution trace that PyTorch records beside it: what operations read and write, so
# that races are found where a wait is missing. The files are those of job_with_accesses.py.
. "${srcdir:-.}/tests/tap.sh"

# job NAME [CHANGE...]: its files in $dir/NAME, its plan in $dir/NAME.yaml.
job()
{
    name=$1
    shift
    mkdir -p "$dir/$name"
    python3 "$srcdir/tests/import/job_with_accesses.py" "$dir/$name" "$@"
    "$SWSIM" import -o "$dir/$name.yaml" "$dir/$name" 2>"$dir/err"
}
verdict()
{
    says "$2" "$SWSIM" verify --no-fix "$dir/$1.yaml"
}
violates()
{
    "$SWSIM" verify --no-fix "$dir/$1.yaml" >"$dir/out" 2>&1
    [ $? = 1 ] && grep -q "$2" "$dir/out" || { cat "$dir/out"; return 1; }
}

job right
check "a right job is proved, with all its accesses" verdict right "proved     for every interleaving of 4 iterations  "
check "a batch of each step is one buffer with an instance a step" found "step.0: {scope: iteration}" "$dir/right.yaml"
check "a view reads nothing" says "^1$" sh -c "grep -c 'reads: .step.0, only.s7.' '$dir/right.yaml'"
check "out= and copy_ write what they do not read" found "reads: \[only.s7\], writes: \[storage3\]" "$dir/right.yaml"
check "the host reads pinned memory" found "_local_scalar_dense', reads: \[storage3\]" "$dir/right.yaml"
check "the report counts them" says "et.json tells what 20 of 20 operations access; CPU work touches it 4 times" \
    "$SWSIM" import --report "$dir/right"
check "... and JSON does" says '"with_accesses":20' "$SWSIM" import --report --json "$dir/right"
"$SWSIM" import -q -o "$dir/alone.yaml" "$dir/right/kineto.json"
check "without the execution trace nothing is declared" verdict alone "except race: no operation declares what it reads or writes"
check "the plan takes the same time" sh -c "
    '$SWSIM' predict '$dir/alone.yaml' 2>&1 | grep makespan >'$dir/a'
    '$SWSIM' predict '$dir/right.yaml' 2>&1 | grep makespan | cmp - '$dir/a'"
job old old
check "version 1.0.1 tells the same" sh -c "sed 's/^name: .*//' '$dir/old.yaml' >'$dir/a'; sed 's/^name: .*//' '$dir/right.yaml' | cmp - '$dir/a'"

job no_wait no_wait
check "a stream that does not wait for the copy races with it" violates no_wait "race, always: gemm accesses buffer storage10, which Memcpy HtoD"
job no_sync no_sync
check "a host that does not wait for the loss races for it" violates no_sync "race, always: .*_local_scalar_dense(0)"
job gpu_scalar gpu_scalar
check "the copy of a scalar blocks, and is no touch of the host" verdict gpu_scalar "proved     for every"
job no_ids no_ids
check "a wait that does not name its event is no proof" verdict no_ids \
    "except the events of 4 waits: inferred from calls and times (enable_cuda_sync_events records them)"
job no_schema no_schema
cp "$dir/err" "$dir/noted"
check "an operator without a schema declares nothing" verdict no_schema "except race: 20 of 24 operations declare accesses"
job renamed renamed
check "a trace of another run is left out" found "its operators are not those of" "$dir/err"
check "... with what it would have told" verdict renamed "except race: no operation declares"
check "an execution trace alone is refused" complains 3 "import the trace of torch.profiler of the same run" \
    "$SWSIM" import -o "$dir/plan.yaml" "$dir/right/et.json"
check "an operator without a schema is named" found "no schema tells what 4 of 20 operations access: add (4)" "$dir/noted"

# pipe NAME [CHANGE...]: the pipeline of these files in $dir/NAME.yaml.
pipe()
{
    job "$@"
    "$SWSIM" import --form=pipeline --detail=1 -o "$dir/$1.yaml" "$dir/$1" 2>"$dir/err" || cat "$dir/err"
}
verdicts() # PLAN VERDICT...
{
    "$SWSIM" verify --json --no-fix "$dir/$1.yaml" >"$dir/json"
    shift
    for word; do grep -q "$word" "$dir/json" || { cat "$dir/json"; return 1; }; done
}
pipe pipe
check "a pipeline of a right job is proved, its accesses too" verdict pipe "proved     for any number of iterations"
pipe pipe_no_wait no_wait
check "... and a race is found in it" violates pipe_no_wait "race, always: .* which unannotated.2(0) of stream s20 writes"
pipe pipe_no_sync no_sync
check "... and what the host reads without a wait is no part of the proof" verdict pipe_no_sync \
    "except 4 accesses of the host: no wait orders them (aten::_local_scalar_dense) behind those of the device"
job swapped swapped
check "works of two steps that begin in turns have their places" \
    "$SWSIM" import --form=pipeline --detail=1 -o "$dir/swapped.yaml" "$dir/swapped"
pipe torchrec pipeline
check "race, value and serial of a pipeline over three batches" verdicts torchrec '"race":"proved"' '"value":"proved","serial":"proved"' \
    '"all":5,"with_accesses":5'
check "... memory of an iteration" found "copy_batch_to_gpu.out: {}" "$dir/torchrec.yaml"
check "... and of all" found "optimizer.state.2: {scope: shared}" "$dir/torchrec.yaml"
check "... the dependence that keeps them apart" found "\[prefetch, optimizer\]" "$dir/torchrec.yaml"
pipe early pipeline early
check "a lookup in front of the update of its table races with it" violates early "race, always: optimizer(0) .*optimizer.state"
pipe same_stream pipeline same_stream
check "... on one stream it reads what is an iteration old" verdicts same_stream '"race":"proved"' '"value":"proved","serial":"always"'
pipe rings pipeline rings
check "buffers that every third batch uses are one with three instances" found "{scope: shared, instances: 3}" "$dir/rings.yaml"
check "... which is proved" verdict rings "proved     for any number of iterations"
pipe no_event pipeline no_event
check "a copy that nobody waits for is a race, whatever its stage" violates no_event "race, .*copy_batch_to_gpu"
pipe own pipeline own_names
check "memory tells the stages where names do not" sh -c "grep -A1 '^  \(upload\|embed\|net\|grads\|update\):' '$dir/own.yaml' | grep -o '[0-9]' | tr -d '\n' | grep -x 02221"
check "... of a pipeline that is proved" verdicts own '"race":"proved"' '"value":"proved","serial":"proved"'
pipe own_early pipeline own_names early
check "... or not" violates own_early "race, always: update(0) .*update.state"
pipe triton pipeline triton
check "kernels without a schema are named in the verdict" verdict triton \
    "except accesses of 8 operations: no schema tells those of triton_poi_fused_add_0 (8)"
sed 's/"pid": 77/"pid": 78/' "$dir/right/et.json" >"$dir/other.json"
check "one of another process is taken by its place, and by its operators" sh -c "
    '$SWSIM' import -q -o '$dir/plan.yaml' '$dir/right/kineto.json' '$dir/other.json' && grep -q 'step.0' '$dir/plan.yaml'"
head -c 3000 "$dir/right/et.json" >"$dir/cut.json"
check "one that is cut off is refused" complains 3 "ends before it is complete" \
    "$SWSIM" import -o "$dir/plan.yaml" "$dir/right/kineto.json" "$dir/cut.json"
done_testing

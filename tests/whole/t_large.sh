#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Large schedules: verified and predicted in no more memory than an action needs at any size.
. "${srcdir:-.}/tests/tap.sh"

test -z "${INSTRUMENT_FLAGS-}" || skip_all "a sanitizer takes memory of its own"
(ulimit -v 100000 && "$SWSIM" --version) >/dev/null 2>&1 || skip_all "memory cannot be limited here"

# within MIB VERB PLAN: the verb succeeds in an address space of so many MiB
within()
{
    (ulimit -v $(($1 * 1024)) && exits 0 "$SWSIM" "$2" "$3")
}

# schedule NAME RANKS MICROBATCHES MIB [OPTION...]
schedule()
{
    name=$1 ranks=$2 microbatches=$3 mib=$4
    shift 4
    "$SWSIM" generate "$name" --ranks="$ranks" --microbatches="$microbatches" --brief "$@" > "$dir/plan.yaml"
    echo 'times: {F: 1ms, B: 2ms}' >> "$dir/plan.yaml"
    for verb in verify predict; do
        check "$verb $name, $ranks ranks, $microbatches microbatches${*:+ $*}, in $mib MiB" within "$mib" $verb "$dir/plan.yaml"
    done
}

proves()
{
    prints 0 'proved  *for every interleaving' "$SWSIM" verify "$dir/plan.yaml"
}

schedule 1f1b 16 64 64
check "proved" proves
schedule 1f1b 64 256 128
check "proved" proves
schedule interleaved_1f1b 16 64 96 --chunks=8
# ends_at NANOSECONDS: of the plan, (m + p - 1) (F + B) without the time of messages
ends_at()
{
    "$SWSIM" predict --json "$dir/plan.yaml" > "$dir/row.json" && [ "$(field makespan_ns < "$dir/row.json")" = "$1" ]
}
schedule 1f1b 300 16 96
echo 'p2p: {fifo: edge}' >> "$dir/plan.yaml"
check "300 stages: as long as the closed form says" ends_at $(((300 + 16 - 1) * 3))000000

# too_large WORDS OPTION...: what predict says in an address space of 100 MB
too_large()
{
    words=$1
    shift
    (ulimit -v 100000 && complains 2 "$words" "$SWSIM" predict -n 3 --ranks=8192 --jitter='*=exponential' "$@" \
        "$srcdir/plans/torchrec/sparse_dist.yaml") && grep -q 'error: out of memory: the system gave .* refused more' "$dir/err"
}
check "a prediction that does not fit says what takes less" \
    too_large 'a simulation of 8192 ranks did not fit into memory: fewer --ranks take less'
check "and that several do not" too_large 'into memory, with others beside it: fewer --ranks or --threads take less' \
    --replications=2 --threads=2

if [ -n "${SWSIM_LONG:-}" ]; then
    schedule 1f1b 256 1024 400
    schedule interleaved_1f1b 64 512 400 --chunks=8
    free_kib=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo 2>/dev/null)
    if [ "${free_kib:-0}" -gt $((5 * 1024 * 1024)) ]; then
        schedule 1f1b 1024 4096 5120
    else
        skip "1,024 ranks, 4,096 microbatches: 5 GiB of free memory"
    fi
else
    skip "half a million passes and more: only with SWSIM_LONG=1"
fi
done_testing

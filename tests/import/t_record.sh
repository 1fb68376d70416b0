#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# swsim record on emulated CUDA as shared libraries: programs with known mistakes whose runs go well are found out, and
# proved when they are repaired; runs of swrun have the verdicts of their plans.
. "${srcdir:-.}/tests/tap.sh"
# The recorder comes before the libraries of what it records; a sanitizer that is linked into both would be first.
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}"
program=$PWD/tests/record/program
swrun=$PWD/tests/swrun_shared

# Without CUDA's toolkit there is nothing to record, but what goes wrong is told.
check "no program" complains 2 'missing' "$SWSIM" record
check "a folder" complains 2 'is a folder, not a program' "$SWSIM" record -- "$dir"
echo 'no program' >"$dir/text"
check "one that nobody may execute" complains 2 'text cannot be executed' "$SWSIM" record -- "$dir/text"
if [ "$(id -u)" = 0 ] && cp /bin/true "$dir/other" && chown nobody "$dir/other" && chmod u+s "$dir/other"; then
    check "one that runs as its owner" complains 3 'other runs as its owner or group' "$SWSIM" record -- "$dir/other"
else
    skip "only root can make a program of another owner"
fi
check "a program that is not there" complains 2 'no/such/program: no such program' "$SWSIM" record -- no/such/program
check "one that uses no CUDA" complains 3 'true made no call to CUDA' "$SWSIM" record -o "$dir/none" -- true
check "which leaves nothing behind" sh -c '! ls "$1" | grep -q none' sh "$dir"
check "the program's own exit status is told" complains 2 'sh exited with 3' "$SWSIM" record -o "$dir/none" -- sh -c 'exit 3'
echo 'int main(void) { return 0; }' >"$dir/static.c"
if "$CC" -static -o "$dir/static" "$dir/static.c" 2>/dev/null; then
    check "a program linked statically" complains 3 'static is linked statically' "$SWSIM" record -- "$dir/static"
else
    skip "nothing can be linked statically here"
fi
# named RANK [NAME=VALUE...]: the recording's name, where it cannot be written
named()
{
    rank=$1
    shift
    complains 2 "cannot write $dir/none/r$rank.swr" env "$@" "$SWSIM" record -o "$dir/none/r%r.swr" -- true
}
check "without a launcher %r is 0" named 0 WORLD_SIZE=4
check "torchrun's rank is %r" named 3 RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost
check "Open MPI's is" named 2 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4
check "PMIx's is" named 2 PMIX_RANK=2
check "Slurm's is" named 5 SLURM_PROCID=5 SLURM_NTASKS=8
check "that of a job of PyTorch, of two" named 1 RANK=1 WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2
check "a rank that is none is refused" complains 2 'RANK: found "4", expected a number' \
    env RANK=4 WORLD_SIZE=4 "$SWSIM" record -o "$dir/r%r.swr" -- true
printf 'swsim recording\0\2\0\0\0' >"$dir/cut"
check "a file that is cut off" complains 3 'the recording is damaged: its end is missing' "$SWSIM" import "$dir/cut"
if [ ! -x "$program" ]; then
    skip "built without CUDA's toolkit, which the emulation is compiled against"
    done_testing; exit
fi
if strings ./swrun 2>/dev/null | grep -q libcudart_static_; then
    check "a runtime that is linked in" complains 3 'the runtime is linked into it' "$SWSIM" record -o "$dir/none" -- ./swrun --version
fi

export SWSIM_EMULATED_GPUS=2 SWSIM_RECORD_TIMES=0 # t_record_times.sh has times
# record CASE [OPTION...]: leaves $dir/CASE.yaml. `import` and `how` are further options.
record()
{
    races=report_bugs=0 # the program's own, which the thread sanitizer must not end it for
    [ "${2-}" = fixed ] && races=
    rm -rf "$dir/$1.swr"
    TSAN_OPTIONS="${TSAN_OPTIONS-} $races" "$SWSIM" record $how -o "$dir/$1.swr" -- "$program" "$@" >"$dir/log" 2>&1
    ended=$?
    "$SWSIM" import $import -o "$dir/$1.yaml" "$dir/$1.swr" >>"$dir/log" 2>&1 || cat "$dir/log"
    return $ended
}
import='' how=''
# The run of a program with a mistake may fail, now and then.
finds() { { record "$1" || record "$1" || record "$1"; } && prints 1 "$2" "$SWSIM" verify --no-fix "$dir/$1.yaml"; }
hangs() { record "$1"; prints 1 "$2" "$SWSIM" verify --no-fix "$dir/$1.yaml"; }
proves() { record "$1" fixed && prints 0 'proved' "$SWSIM" verify --no-fix "$dir/$1.yaml"; }

check "a missing wait" finds missing_wait 'race.*axpy.*fill'
check "a wait that may come before the record" finds wait_before_record 'race'
check "an event that is recorded again too early" finds event_reused 'race'
check "memory freed under a copy" finds freed_early 'race.*free registered0'
check "a graph's result, not waited for" finds graph 'race'
check "a wait that is missing before the host's" finds sync_behind_wait 'race'
check "a result of other ranks, not waited for" finds unawaited 'race'
check "a run that hangs: the ranks call different things" hangs mismatch 'mismatch'
check "a run that hangs: messages without a group" hangs missing_group 'deadlock\|message'
check "a run that hangs or fails: a message without a receiver" hangs no_receiver 'deadlock\|message'
check "the default stream and a non-blocking one" finds default_stream 'race'
check "... the other way round" finds behind_default 'race'
check "a copy in the default stream" finds plain_copy 'race'
check "the default stream of a thread, and a non-blocking one" finds thread_stream 'race'
check "the default streams of two threads" finds streams_of_threads 'race'
check "a copy to another device that does not wait" finds peer_copy 'race'
check "a copy between devices on a stream" finds peer_copy_alone 'race'
check "... that a later stream does not wait for" finds peer_copy_first 'race'
for case in default_stream behind_default plain_copy thread_stream streams_of_threads peer_copy peer_copy_alone peer_copy_first; do
    check "$case, repaired" proves $case
done
check "a program that becomes another" finds becomes_another 'race.*axpy.*fill'
check "the first one repaired" proves becomes_another
check "memory that nothing uses is freed too late" finds free_waits 'race.*axpy.*fill'
for case in free_waits missing_wait wait_before_record event_reused freed_early graph unawaited mismatch missing_group no_receiver host_function sync_behind_wait; do
    check "$case, repaired" proves $case
done
but_for() { record "$1" fixed && prints 0 "except .*$2" "$SWSIM" verify --no-fix "$dir/$1.yaml"; }
check "the host's accesses, which are not seen" but_for host_reads "the host's accesses to 1 allocation.*--host-accesses"
check "a stream that reads what another one writes" finds driver_asked 'race.*axpy accesses.*fill'
check "the driver's query, given out by the runtime, is a wait" proves driver_asked
check "... if it is asked until it is done" prints 0 'except \(other answers of 1 query: .*--queries=wait\|1 loop of queries: .*--queries=loops\)' "$SWSIM" verify --no-fix "$dir/driver_asked.yaml"
check "a call that NCCL refuses" but_for refused '2 calls of NCCL: refused by it'
if grep -q '__[at]san_init' "$program"; then
    skip "a sanitizer opens no library with RTLD_DEEPBIND"
else
    check "a library that goes past the recorder" but_for deep_library 'a library opened with RTLD_DEEPBIND: the recorder does not see what it does'
fi
check "a half of an allocation that nothing has written" finds half_written 'value.*copy of [^,]* reads buffer device3.4096, which nothing has written'
check "half_written, repaired" proves half_written
if [ -f tests/cuda_emulation/libcublas.so ]; then
    unseen_writer() { export LD_PRELOAD="$PWD/tests/cuda_emulation/libcublas.so"; record half_written; unset LD_PRELOAD; prints 0 'except libcublas.so' "$SWSIM" verify --no-fix "$dir/half_written.yaml"; }
    check "... which a library that is not seen may have written" unseen_writer
else
    skip "built without cuBLAS"
fi
import='--sm-slots=1 --launch-order'
check "another order of communicators on a rank" finds other_order 'deadlock'
check "repaired" proves other_order
import='' how=--host-accesses
check "the host reads too early" finds host_reads 'race.*read pinned0'
check "the host writes too early" finds host_writes 'race.*write pinned0'
check "the first, repaired" proves host_reads
check "where they are seen, nothing is left out" sh -c '! grep unrecorded "$1"' sh "$dir/host_reads.yaml"
check "the second, repaired" proves host_writes
how=''

# The same through the driver, whose functions are linked or asked for by name.
runtime_program=$program program=$PWD/tests/record/driver_program
check "a program of the driver without a wait" finds plain 'race.*fill.*axpy'
check "the wait is there" proves plain
check "its functions are asked for by name" finds asked 'race.*fill.*axpy'
check "the wait is there" proves asked
program=$runtime_program

# With the order of the calls a thread that was late is late in every run.
import=--order=seen
check "threads in the order of their calls" record wait_before_record
check "have no mistake" prints 0 'proved' "$SWSIM" verify "$dir/wait_before_record.yaml"
import=''

# An option that does nothing for a recording is refused.
check "no pipeline" complains 2 'form=pipeline has no effect on a recording' "$SWSIM" import --form=pipeline "$dir/wait_before_record.swr"
check "no steps" complains 2 'steps has no effect on a recording' "$SWSIM" import --steps=1 "$dir/wait_before_record.swr"
check "no ledger" complains 2 'only traces and dumps have a ledger' "$SWSIM" import --report "$dir/wait_before_record.swr"

# Nor is a prediction more than it knows.
check "a prediction says that nothing has a time" prints 0 'no work of the plan has a time' "$SWSIM" predict "$dir/wait_before_record.yaml"
check "... for programs, too" prints 0 '"untimed":true' "$SWSIM" predict --json "$dir/wait_before_record.yaml"
check "... and that of a change" prints 0 'as it is.*no work of the plan has a time' "$SWSIM" predict --what-if axpy=2ms "$dir/wait_before_record.yaml"
check "... without a share of nothing" sh -c '! "$0" predict --what-if axpy=2ms "$1" | grep inf' "$SWSIM" "$dir/wait_before_record.yaml"

# Runs of swrun. verdict FILE
verdict() { "$SWSIM" verify --no-fix --json ${2:-} "$1" 2>/dev/null | sed -n '1s/.*"verdict":"\([a-z]*\)".*/\1/p'; }
run_as_plan()
{
    rm -rf "$dir/run.swr"
    "$SWSIM" record -o "$dir/run.swr" -- "$swrun" --device cuda -n 6 "$1" >"$dir/log" 2>&1
    "$SWSIM" import -o "$dir/run.yaml" "$dir/run.swr" >>"$dir/log" 2>&1 || cat "$dir/log"
    recorded=$(verdict "$dir/run.yaml") given=$(verdict "$1" --driver=clock)
    echo "plan: $given, recorded: $recorded"
    [ -n "$given" ] && [ "$recorded" = "$given" ]
}
plans='base sparse_dist prefetch'
[ -z "${SWSIM_LONG-}" ] || plans=$(cd "$srcdir/plans/reference" && ls *.yaml | sed 's/\.yaml//')
for plan in $plans; do
    check "a run of reference/$plan" run_as_plan "$srcdir/plans/reference/$plan.yaml"
done
cat >"$dir/racy.yaml" <<'END'
swplan: 1
name: racy
schedule:
  A: {stage: 0, stream: s, time: 100us, writes: [x]}
  B: {stage: 0, stream: t, time: 100us, reads: [x], writes: [y]}
buffers: {x: {scope: iteration}, y: {scope: shared}}
END
check "a run of a plan that races" run_as_plan "$dir/racy.yaml"
done_testing

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run of swrun on emulated CUDA, recorded from outside, has the verdict of the plan that was run: for every plan under
# plans/ that CUDA can run. SWSIM_LONG: all of them; else those of two folders.
. "${srcdir:-.}/tests/tap.sh"
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" SWSIM_EMULATED_GPUS=4 SWSIM_RECORD_TIMES=0
swrun=$PWD/tests/swrun_shared
[ -x "$swrun" ] || skip_all "built without CUDA's toolkit, which the emulation is compiled against"

# Verdicts that no recording can have: the calls of CUDA do not show what is wrong. FILE reason
cat >"$dir/unseen" <<'END'
cpu_race_broken             the threads of swrun do not touch the memory of the host
callback_refill_broken      the threads of swrun do not touch the memory of the host
non_blocking_read_broken    the threads of swrun do not touch the memory of the host
pageable_result_broken      the threads of swrun do not touch the memory of the host
pinned_refill_broken        the threads of swrun do not touch the memory of the host
work_host_read_broken       the threads of swrun do not touch the memory of the host
num_slots_broken            threads that hang have no more calls
slots_equal_depth_broken    threads that hang have no more calls
tickets_against_dependences_broken  threads that hang have no more calls
lmcache_gil_callback_broken threads that hang have no more calls
modes_d_dep                 threads that hang have no more calls
pqra                        threads that hang have no more calls
scenario1_broken            threads that hang have no more calls
scenario2_broken            threads that hang have no more calls
scenario3_broken            threads that hang have no more calls
torchrec_eager_cliff_fixed  NCCL does not tell how many messages it buffers
mismatch_broken             NCCL's calls have no names
END
# The order of locks is that of the run: there is a violation in it, or not.
by_luck=' nccl_two_launch_threads_broken launch_lock_broken '
# Properties of a pipeline, of values or of the reaction to faults.
unseen_properties='bound slot value serial lifetime faults'

first() { sed -n "1s/.*\"$1\":\"\([a-z]*\)\".*/\1/p"; }
verify() { "$SWSIM" verify --no-fix --json "$@" 2>/dev/null; }
# The property that is violated
property() { sed -n '1s/.*"\([a-z]*\)":"\(always\|some\)".*/\1/p'; }
# The number of residency slots of a plan, which CUDA does not tell.
slots() { sed -n 's/.*sm_slots: *\([0-9]*\).*/--sm-slots=\1/p' "$1" | head -1; }

as_the_plan()
{
    name=$(basename "$1" .yaml)
    verify "$1" $(sed -n 's/^schedule:.*/--driver=clock/p' "$1") >"$dir/given"
    given=$(first verdict <"$dir/given") property=$(property <"$dir/given")
    "$SWSIM" import $(slots "$1") -o "$dir/run.yaml" "$dir/run.swr" 2>"$dir/log" || cat "$dir/log"
    recorded=$(verify "$dir/run.yaml" | first verdict)
    echo "plan: $given ($property), recorded: $recorded"
    case " $unseen_properties " in *" ${property:-none} "*) return 0 ;; esac
    case $by_luck in *" $name "*) return 0 ;; esac
    if grep -q "^$name " "$dir/unseen"; then
        [ "$recorded" != "$given" ] && return
        echo "but the list of those that cannot be found has it"
        return 1
    fi
    [ -n "$recorded" ] && [ "$recorded" = "$given" ]
}

# A run of PLAN that may take so long.
record()
{
    rm -rf "$dir/run.swr"
    "$SWSIM" record -o "$dir/run.swr" -- \
        "$swrun" --device cuda --timeout "$2" $(sed -n 's/^schedule:.*/-n 6/p' "$1") "$1" >"$dir/log" 2>&1
}

# Runs until one shows the verdict. In a recording threads come in the order of their locks: where a thread of this plan
# happened to be first (9 of 60 runs), its wait is behind the record, and nothing is wrong.
runs_of() { case $1 in */sglang_wait_before_record_broken.yaml) echo 20 ;; *) echo 2 ;; esac; }

# Some plans are not for several processes, or not for CUDA. A busy machine may cut a run off: it gets more time once.
try()
{
    record "$1" 2s
    if [ ! -e "$dir/run.swr" ]; then
        grep -q 'cannot be processes\|processes do not share\|cannot be executed' "$dir/log" && return
        check "a run of ${1##*plans/}" sh -c 'cat "$1"; false' sh "$dir/log"
        return
    fi
    left=$(runs_of "$1")
    while [ $((left -= 1)) -gt 0 ] && ! as_the_plan "$1" >/dev/null; do
        record "$1" 10s
    done
    check "a run of ${1##*plans/}" as_the_plan "$1"
}

folders='bugs properties'
[ -z "${SWSIM_LONG-}" ] || folders=$(cd "$srcdir/plans" && ls -d */)
for folder in $folders; do
    for plan in "$srcdir/plans/${folder%/}"/*.yaml; do
        [ ! -f "$plan" ] || try "$plan"
    done
done
done_testing

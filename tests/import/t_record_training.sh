#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What training programs do, recorded on emulated CUDA: PyTorch's caching allocator, staging and prefetching, a loader's
# thread, captured steps, buckets of gradients, gathered shards, stages, several communicators. The right program is proved,
# and the verdict names what it does not hold for; each mistake, whose run goes well, is found out with its operations.
. "${srcdir:-.}/tests/tap.sh"
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" SWSIM_RECORD_TIMES=0 SWSIM_EMULATED_GPUS=2
program=$PWD/tests/record/training
[ -x "$program" ] || skip_all "built without CUDA's toolkit, which the emulation is compiled against"

# A run that was too slow for the answer it is about is repeated.
how='' import=''
record()
{
    left=30
    while [ $((left -= 1)) -gt 0 ]; do
        rm -rf "$dir/run.swr"
        TSAN_OPTIONS="${TSAN_OPTIONS-} report_bugs=0" "$SWSIM" record $how -o "$dir/run.swr" -- "$program" "$@" >"$dir/log" 2>&1
        ended=$?
        grep -q 'exited with 3' "$dir/log" || break
    done
    "$SWSIM" import $import -o "$dir/run.yaml" "$dir/run.swr" 2>>"$dir/log" || cat "$dir/log"
    return $ended
}
# proves CASE [MISTAKE [TEXT]]: clean but for that text
proves() { record "$1" ${2:+"$2"} && prints 0 "${3:+, except }${3-proved}  " "$SWSIM" verify --no-fix "$dir/run.yaml"; }
# The run of a program with a mistake may fail, now and then.
finds() { { record "$1" "$2" || record "$1" "$2" || record "$1" "$2"; } && prints 1 "$3" "$SWSIM" verify --no-fix "$dir/run.yaml"; }
# A run that hangs is ended.
hangs() { record "$1" "$2"; prints 1 "$3" "$SWSIM" verify --no-fix "$dir/run.yaml"; }
extents='extents of kernels: memory from each pointer to the next that is used'
orders='\(proved \|, except other orders of locks in [0-9]* places\{0,1\}: threads take them as in the run\)  '
proves_in_order() { record "$1" && prints 0 "$orders" "$SWSIM" verify --no-fix "$dir/run.yaml"; }
asked='where work is not done yet the program may go another way; if it asks until it is, import with --queries=wait'
on_two='axpy[(0-9)]* accesses buffer device3[.0-9]*, which fill<float>[(0-9)]* of stream stream1 writes'

check "a caching allocator whose queries say yes" proves allocator '' "other answers of 3 queries: $asked"
for mistake in no_record_stream freed_before_use event_of_owner; do
    check "... $mistake" finds allocator $mistake "race.*$on_two"
done
check "one that waits" proves allocator_waits '' "$extents"
check "... for more than it needs" proves allocator_waits waits_for_more "$extents"
check "... for nothing" finds allocator_waits no_wait "race.*$on_two"

how=--host-accesses
# A first question that is answered with no is one more loop in its stead.
staging="\(other answers of [12] quer[yies]*: $asked\)\{0,1\}\(, \)\{0,1\}\([12] loops\{0,1\} of queries: .*--queries=loops\)\{0,1\}"
check "staging in pinned memory" proves staging '' "$staging"
for mistake in no_query recorded_before_copy of_other_stream; do
    check "... $mistake" finds staging $mistake 'race.*copy of [^,]* accesses buffer pinned0.0, which write pinned0 of thread main writes'
done
check "a buffer that the stream's host function writes again" proves refill
check "... that of another stream" finds refill by_other_stream 'race.*write pinned0 accesses buffer pinned0.0, which copy [ot][^,]* of stream stream1 reads'
how=''

check "two slots, filled and used by turns" proves prefetch
check "... with a wait for more than it needs" proves prefetch waits_for_more
for mistake in no_consumed waits_before_record records_before_launch; do
    check "... $mistake" finds prefetch $mistake "race.*$on_two"
done
check "a thread that loads" proves_in_order loader
for mistake in no_consumed no_wait; do
    check "... $mistake" finds loader $mistake "race.*$on_two"
done
# Where the lock was taken later in the run, its order hides the mistake, which the verdict says.
hidden_by_locks() { record loader "$1" && "$SWSIM" verify --no-fix "$dir/run.yaml" | grep 'race.*axpy.*fill<float>\|race.*fill<float>.*axpy\|except other orders of locks'; }
for mistake in told_before_record given_before_record; do
    check "... $mistake" hidden_by_locks $mistake
done
check "one that is told by semaphores" proves loader_by_semaphores
check "... too early" finds loader_by_semaphores posted_before_record "race.*$on_two"
check "... with room for one more" finds loader_by_semaphores room_for_one_more 'race.*axpy.*fill<float>\|race.*fill<float>.*axpy'
check "an event for each batch" proves events
check "... one for all, recorded again before the other thread waits" finds events one_event "race.*$on_two"

check "a captured step with an input of its own" proves step_graph
check "... that is filled under its launch" finds step_graph filled_under_launch 'race.*axpy accesses buffer device3, which fill<float> of stream stream2 writes'
check "... that is launched too early" finds step_graph launched_too_early 'race.*axpy accesses buffer device3, which fill<float> of stream stream2 writes'
check "branches of a graph" proves branches
check "... joined too late" finds branches joined_too_late 'race.*fill<float> accesses buffer device0, which axpy of stream graph1.stream1 reads'

check "streams that the default stream's work orders" proves hidden_order
for mistake in non_blocking no_default_work; do
    check "... $mistake" finds hidden_order $mistake 'race.*axpy accesses buffer device0, which fill<float> of stream blocking1 writes'
done
check "a stream that is destroyed, and waited for" proves destroyed
check "... not waited for" finds destroyed no_wait 'race.*axpy accesses buffer device0, which fill<float> of stream stream4 writes'
check "an event" proves made_again
check "... that is another one, never recorded" finds made_again not_recorded_again 'race.*axpy accesses buffer device0, which fill<float> of stream stream1 writes'
check "default streams of two threads" proves_in_order thread_streams
for mistake in recorded_elsewhere no_wait; do
    check "... $mistake" finds thread_streams $mistake 'race.*buffer device0, which .* of stream default.thread[12]'
done
check "memory of a pool, used by another stream" proves pool
check "... freed too early" finds pool freed_too_early 'race.*axpy accesses buffer device3, which free device3 of stream stream1 writes'
check "... freed by a third one" finds pool freed_by_third 'race.*free device3 accesses buffer device3, which fill<float> of stream stream1'
check "a copy from pageable memory" proves copied_in
for mistake in no_wait asynchronous; do
    check "... $mistake" finds copied_in $mistake 'race.*axpy accesses buffer device0, which copy [ot][^,]* of stream [a-z0-9]* writes'
done
check "work in front of such a copy" proves copied_behind
check "... without the copy" finds copied_behind not_copied 'race.*axpy accesses buffer device0, which fill<float> of stream default writes'
check "a copy to pageable memory" proves copied_out
check "... that need not wait" finds copied_out asynchronous 'race.*fill<float> accesses buffer device0, which copy [ot][^,]* of stream stream1 reads'
check "results for another device" proves to_peer
for mistake in sent_too_early read_too_early; do
    check "... $mistake" finds to_peer $mistake 'race.*axpy accesses buffer r1.device5, which copy of [^,]* of rank 0 stream stream1 writes'
done

program=$PWD/tests/record/ranks
check "buckets of gradients" proves buckets
check "... reduced before they are ready" finds buckets bucket_not_ready 'race.*all_reduce float32 sum.*fill<float>\|race.*fill<float>.*all_reduce float32 sum'
check "... used before they are reduced" finds buckets optimizer_too_early 'race.*all_reduce float32 sum.*axpy\|race.*axpy.*all_reduce float32 sum'
check "... in another order on a rank" hangs buckets other_order 'mismatch.*all_reduce float32 sum(0) meets all_reduce float32 sum(0).*they differ in bytes (192 B, 64 B)'
check "gathered shards, two in flight" proves shards
for mistake in no_limit waits_for_gathered computes_too_early; do
    check "... $mistake" finds shards $mistake 'race.*all_gather float32.*axpy\|race.*axpy.*all_gather float32'
done
check "stages: one forward, one backward" proves stages
for mistake in no_group gradient_first activation_first; do
    check "... $mistake, which goes well, too" proves stages $mistake
done
check "... each receives first" hangs stages each_waits 'deadlock'
check "... one receives once more" hangs stages one_more 'message.*rank 1 receives float32.*from rank 0.*has no send'
check "what is received ahead" proves received_ahead
check "... overwritten" finds received_ahead overwritten 'race.*receive float32 from rank 0 accesses.*which axpy of rank 1'
check "... used too early" finds received_ahead used_too_early 'race.*axpy accesses.*which receive float32 from rank 0'
room='the room that several communicators need at once: .*--sm-slots=1 has one at a time'
check "two communicators, in one order by events" proves communicators
check "... without events: the room is told" proves communicators no_events "$room"
check "... also where the order differs" proves communicators no_events_other_order "$room"
check "... by events in another order on a rank" hangs communicators other_order 'deadlock'
import=--sm-slots=1
check "with room for one: events" proves communicators
check "... no events" finds communicators no_events 'deadlock, in some interleavings'
check "... another order" finds communicators no_events_other_order 'deadlock'
import=--launch-order
check "in the order of launches that is told, too" proves communicators no_events "$room"
import='--launch-order --sm-slots=1'
check "in the order of launches: one" proves communicators no_events
check "... another order" finds communicators no_events_other_order 'deadlock'
import=''
watched() { record watched && prints 0 'except other orders of locks in [0-9]* places\{0,1\}: [^,]*, \(other answers of [0-9]* quer[yies]*: [^,]*, [^,]*, \)\{0,1\}[0-9]* loops\{0,1\} of queries: .*--queries=loops  ' joined "$SWSIM" verify --no-fix "$dir/run.yaml"; }
check "a thread that looks after collectives" watched
check "... whose word is not waited for" finds watched not_heard 'race.*all_reduce float32 sum.*axpy\|race.*axpy.*all_reduce float32 sum'
done_testing

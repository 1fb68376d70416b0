#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Broken plans: seven verbs refuse each with exit status 3 and a sentence that names the file; none crashes, hangs or
# writes a picture. The last lines count them.
. "${srcdir:-.}/tests/tap.sh"

SECONDS_EACH=20

# The plan that each row below spoils.
head_of()
{
    printf 'swplan: 1\nname: broken\nranks: 2\n'
}
tasks_of()
{
    printf 'schedule:\n  A: {stage: 0, stream: s, time: 1us, writes: [b]%s}\n' "$1"
    printf '  B: {stage: 1, stream: t, time: 1us, reads: [b]}\nintra_iter_deps: [[B, A]]\nbuffers: {b: {scope: iteration, bytes: 1KiB}}\n'
}

# complaints: what is wrong with how the verbs refuse $dir/broken.yaml; nothing if all is well.
complaints()
{
    for verb in verify predict render lower schedule stages export; do
        set --
        [ "$verb" = render ] && set -- -o "$dir/picture.dot"
        timeout "$SECONDS_EACH" "$SWSIM" "$verb" -q "$dir/broken.yaml" "$@" >"$dir/out" 2>"$dir/err" </dev/null
        code=$?
        [ "$code" -eq 3 ] || echo "$verb: exit status $code, expected 3"
        grep -q '^swsim: .*broken\.yaml' "$dir/err" || echo "$verb: the message names no file: $(head -n 2 "$dir/err")"
        [ ! -e "$dir/picture.dot" ] || echo "$verb: it wrote a picture"
    done
}

plans=0 faults=0
# try NAME: the plan in $dir/broken.yaml.
try()
{
    plans=$((plans + 1))
    said=$(complaints)
    [ -z "$said" ] && return
    faults=$((faults + 1))
    check "$1" refused_well "$said"
}
refused_well()
{
    echo "$1"
    false
}

# Rows: a key of the plan, or of its task A, that is wrong.
of_plan='swplan: 2
swplan: x
swplan: []
swplan: 1
name: []
name: ""
name: {a: 1}
ranks: 0
ranks: -1
ranks: 2.5
ranks: 99999999999999999999
ranks: two
ranks: [2]
pipeline_depth: 0
pipeline_depth: 7
pipeline_depth: x
max_depth: 0
max_depth: 100000
retire: never
retire: [device]
enqueue_order: random
slots: -3
num_slots: 0
elide_same_stream: 3
ticket_at: noon
slot_reset: x
retired_dep: x
forget_done: x
no_such_key: 1
inter_iter_deps: [[A, B, 0]]
inter_iter_deps: [[A, B, -1]]
inter_iter_deps: [[A, B, 1000]]
inter_iter_deps: [[A]]
inter_iter_deps: [A, B]
inter_iter_deps: [[A, C]]
inter_iter_deps: [[A, B, x]]
inter_iter_deps: 1
machine: 3
machine: {sm_slots: -1}
machine: {hw_queues: -1}
machine: {hw_queues: many}
machine: {launch_queue: -1}
machine: {memory: 3}
machine: {memory: -1KiB}
machine: {memory: 1ZiB}
machine: {no_such_knob: 1}
machine: {lazy_load: perhaps}
comms: {dp: [0, 0]}
comms: {dp: [0, 7]}
comms: {dp: []}
comms: {dp: x}
comms: [1]
rank_overrides: {7: {schedule: {A: {time: 2us}}}}
rank_overrides: {-1: {schedule: {A: {time: 2us}}}}
rank_overrides: {x: {schedule: {A: {time: 2us}}}}
rank_overrides: {0: {schedule: {Z: {time: 2us}}}}
rank_overrides: {0: {schedule: {A: {time: -2us}}}}
rank_overrides: [0]
threads: {r0.a: []}
threads: {r0.a: [{host: 1us}]}
programs: {0: [F0]}
generate: {schedule: 1f1b, ranks: 2, microbatches: 2}
expect: {deadlock: maybe}
expect: {luck: proved}
locks: 3
queues: {q: 0}
times: {A: -1ms}
about: []'
of_task='time: 1us
time: -1us
time: 1
time: 1 fortnight
time: 1e300s
time: 99999999999h
time: nan
time: []
stage: 0
host_time: x
host_time: -1us
host_after: x
reads: [[b]]
reads: nothing
reads: [{b: 1}]
writes: {b: 1}
holds: [1, [2]]
thread_group: []
sm: -1
sm: 1.5
sm: x
globally_ordered: 7
host_sync: always
sync_after: never
work: 3
work: {sing: 1}
work: {copy: sideways, bytes: 1KiB}
work: {copy: h2d, bytes: -1}
work: {copy: h2d, bytes: 1PiB, pageable: perhaps}
work: {collective: hug, comm: dp, bytes: 1KiB}
work: {collective: all_reduce, comm: [], bytes: 1KiB}
work: {collective: all_reduce, comm: dp, bytes: many}
work: {collective: broadcast, comm: dp, bytes: 1KiB, root: 9}
work: {gemm: {m: 0, n: 1, k: 1}}
work: {gemm: {m: 99999999999, n: 99999999999, k: 99999999999}}
work: {send: x, to: 9}
no_such_key: 1'

while IFS= read -r row; do
    { head_of; tasks_of ''; echo "$row"; } >"$dir/broken.yaml"
    try "$row"
done <<END
$of_plan
END
while IFS= read -r row; do
    { head_of; tasks_of ", $row"; } >"$dir/broken.yaml"
    try "task: $row"
done <<END
$of_task
END

# raw NAME FORMAT: a whole file, as printf makes it.
raw()
{
    # shellcheck disable=SC2059
    printf "$2" >"$dir/broken.yaml"
    try "$1"
}
raw "an empty file" ''
raw "spaces" '   \n\n'
raw "a scalar" 'swplan\n'
raw "a list" '\055 1\n- 2\n'
raw "no tasks" 'swplan: 1\nname: x\n'
raw "an empty schedule" 'swplan: 1\nname: x\nschedule: {}\n'
raw "a list of tasks" 'swplan: 1\nname: x\nschedule: [A, B]\n'
raw "an open bracket" 'swplan: 1\nschedule: {A: {stage: 0\n'
raw "a tab" 'swplan: 1\n\tname: x\n'
raw "an open quote" 'swplan: 1\nname: "x\n'
raw "an anchor" 'swplan: 1\nname: &a x\nabout: *a\n'
raw "a tag" 'swplan: 1\nname: !!binary x\n'
raw "two documents" 'swplan: 1\nname: x\n---\nswplan: 1\n'
raw "a NUL" 'swplan: 1\nname: a\0b\n'
raw "bytes that are no UTF-8" 'swplan: 1\nname: \377\376\n'
raw "a control character" 'swplan: 1\nname: "a\\x1b[31m"\nschedule: {A: {stage: 0, time: 1us}}\n'
raw "UTF-16" '\377\376s\0w\0p\0'
raw "half a byte order mark" '\357\273swplan: 1\n'
raw "a dependence on itself" 'swplan: 1\nname: x\nschedule: {A: {stage: 0, time: 1us}}\nintra_iter_deps: [[A, A]]\n'
raw "a ring" 'swplan: 1\nname: x\nschedule: {A: {stage: 0, time: 1us}, B: {stage: 0, time: 1us}}\nintra_iter_deps: [[A, B], [B, A]]\n'
raw "one task twice" 'swplan: 1\nname: x\nschedule:\n  A: {stage: 0, time: 1us}\n  A: {stage: 0, time: 1us}\n'
raw "one key twice" 'swplan: 1\nname: x\nname: y\nschedule: {A: {stage: 0, time: 1us}}\n'
raw "a stage below 0" 'swplan: 1\nname: x\nschedule: {A: {stage: 0, time: 1us}, B: {stage: -5, time: 1us}}\n'
raw "JSON that ends" '{"swplan": 1, "name": "x", "schedule": {"A": {"stage": 0'
raw "JSON and more" '{"swplan": 1} {"swplan": 1}'
raw "threads that are a number" 'swplan: 1\nname: x\nthreads: 3\n'
raw "an action that is none" 'swplan: 1\nname: x\nthreads: {r0.a: [{fly: 1us}]}\n'
raw "an action of two" 'swplan: 1\nname: x\nthreads: {r0.a: [{host: 1us, launch: k}]}\n'
raw "a thread without a rank" 'swplan: 1\nname: x\nthreads: {rx.a: [{host: 1us}]}\n'
raw "no microbatches" 'swplan: 1\nname: x\ngenerate: {schedule: 1f1b, ranks: 2, microbatches: 0}\n'
raw "an unknown schedule" 'swplan: 1\nname: x\ngenerate: {schedule: 1f2b, ranks: 2, microbatches: 2}\n'
raw "a schedule of too few microbatches" 'swplan: 1\nname: x\ngenerate: {schedule: dualpipe, ranks: 2, microbatches: 1}\n'
raw "too many ranks" 'swplan: 1\nname: x\ngenerate: {schedule: 1f1b, ranks: 99999999, microbatches: 2}\n'
{ printf 'swplan: 1\nname: x\nabout: '; awk 'BEGIN { for (i = 0; i < 500; i++) printf "["; for (i = 0; i < 500; i++) printf "]" }'; } >"$dir/broken.yaml"
try "500 levels"
{ printf 'swplan: 1\nname: '; awk 'BEGIN { for (i = 0; i < 100000; i++) printf "x" }'; } >"$dir/broken.yaml"
try "a long name"

check "$plans broken plans are refused by seven verbs each" test "$faults" -eq 0
echo "# $plans broken plans, $faults faults"
done_testing

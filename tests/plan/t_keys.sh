#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A key that is accepted has an effect: for every key of a plan file two plans that differ in nothing else, and
# what must differ with them: the lowered program, a verdict, a prediction, the schedule, a run, or for
# the texts meant for the reader the exported plan. Where a key can have no effect it is refused. The keys are those of
# the parser's own tables, so a key without a row here fails.
. "${srcdir:-.}/tests/tap.sh"

: "${COMBINE_KEYS:=tests/combine_keys}"
: "${PLAN_JSON:=tests/plan_json}"
covered=

# observe WHAT FILE: to standard output, what a reader of the plan would see, without the tool's own times.
observe()
{
    case $1 in
    lower) "$SWSIM" lower "$2" ;;
    dataflow) "$SWSIM" lower --driver=dataflow "$2" ;;
    schedule) "$SWSIM" schedule "$2" ;;
    export) "$SWSIM" export "$2" ;;
    verdict) "$SWSIM" verify --json --no-fix "$2" | grep -oE '"(driver|properties|in_flight)":("[a-z]*"|\{[^}]*\})' ;;
    covers) "$SWSIM" verify --json --no-fix "$2" | grep -oE '"but_for":\[[^]]*\]' ;;
    faults) "$SWSIM" verify --json --no-fix --faults "$2" | grep -oE '"properties":\{[^}]*\}' ;;
    expect) "$SWSIM" verify --expect --no-fix -q "$2" >"$dir/expected" 2>&1 && echo as expected || echo otherwise ;;
    predict) "$SWSIM" predict --json $(sed -n 's/^schedule:.*/-n 20/p' "$2") "$2" | grep -oE '"(makespan|iteration|fill)_ns":[^}]*' ;;
    hardware) "$SWSIM" predict -q --hardware=h100-sxm "$2" | grep '^  total' ;;
    measured) "$SWSIM" predict -q --hardware=h100-sxm --operators="$srcdir/tests/faults/operators.csv" "$2" | grep '^  total' ;;
    fits) "$SWSIM" predict -q --hardware=h100-sxm "$2" | grep -A 9 '^memory' ;;
    exit) "$SWSIM" predict -q "$2" >/dev/null; echo $? ;;
    held) "$SWSIM" predict --json "$2" | grep -oE '"most_bytes":[0-9]+' ;;
    moved) # longer than a small copy takes, the shortest of three runs
        for run in 1 2 3; do "$SWRUN" --no-check --stats --json "$2" | grep -oE '"device_ns":[0-9]+'; done |
            tr -dc '0-9\n' | sort -n | awk 'NR == 1 { print ($1 > 200000 ? "long" : "short") }' ;;
    computed) "$SWRUN" "$2" | grep -E '^  (loss|gradients) ' ;;
    run) "$SWRUN" $(sed -n 's/^schedule:.*/-n 2/p' "$2") "$2" 2>&1 >"$dir/run" | grep -v '^swrun: note: rank' ; echo $? ;;
    esac
}
# one_side FILE WHAT BASE TEXT: what is observed of BASE with TEXT in the place of `@`, a plan.
one_side()
{
    printf 'swplan: 1\n%s%s%s\n' "${3%%@*}" "$4" "${3#*@}" >"$dir/plan.yaml"
    { echo ---; cat "$dir/plan.yaml"; } >>"$dir/plans"
    observe "$2" "$dir/plan.yaml" >"$dir/$1" 2>"$dir/err"
    cat "$dir/plan.yaml" "$dir/err" "$dir/$1"
    ! grep ': error: ' "$dir/err" && test -s "$dir/$1"
}
# differ WHAT BASE A B: BASE with A and with B in the place of `@` are plans, and are not observed alike.
differ()
{
    one_side a "$@" && shift 3 && one_side b "$what" "$base" "$1" || return
    ! cmp -s "$dir/a" "$dir/b"
}
# row KEY WHAT BASE A B
row()
{
    covered="$covered $1"
    what=$2 base=$3
    check "$1: $2" differ "$2" "$3" "$4" "$5"
}
# refuses TEXT PLAN: an error with a position says this.
is_refused()
{
    printf 'swplan: 1\n%s\n' "$2" >"$dir/plan.yaml"
    "$SWSIM" lower "$dir/plan.yaml" >"$dir/out" 2>"$dir/err" && return 1
    cat "$dir/err"
    grep -E "plan.yaml:[0-9]+:[0-9]+: error: " "$dir/err" | grep -qF -- "$1"
}
refuses()
{
    check "refused: $1" is_refused "$1" "$2"
}

# ---- all forms -----------------------------------------------------------------------------------

two='ranks: 2
@
schedule: {A: {time: 1ms, stream: s}, B: {stage: 1, time: 2ms}}
intra_iter_deps: [[B, A]]'
row sections.name export "$two" 'name: one' 'name: other'
row sections.about export "$two" '' 'about: a text'
row sections.source export "$two" '' 'source: a text'
row sections.ranks lower '@
schedule: {A: {time: 1ms}}' '' 'ranks: 2'
row sections.comms verdict 'ranks: 3
@
schedule: {A: {work: {collective: barrier, comm: c}}}
rank_overrides: {2: {schedule: {A: {work: {spin: 1us}}}}}' '' 'comms: {c: [0, 1]}'
row sections.unexplained export "$two" '' 'unexplained: 0.5'
row sections.unrecorded covers "$two" '' 'unrecorded: {messages: the dump has none}'
row sections.on_failure faults 'ranks: 2
@
schedule: {A: {work: {collective: barrier, comm: c}}}' '' 'on_failure: none'
row sections.expect expect "$two" 'expect: {}' 'expect: {race: some}'
row sections.machine predict "$two" '' 'machine: {launch_blocking: true}'

# ---- pipeline form -------------------------------------------------------------------------------

row sections.schedule lower 'schedule: @' '{A: {}}' '{A: {}, B: {}}'
row sections.intra_iter_deps lower 'schedule: {A: {}, B: {}}
@' '' 'intra_iter_deps: [[B, A]]'
row sections.inter_iter_deps lower 'schedule: {A: {}, B: {}}
@' '' 'inter_iter_deps: [[B, A]]'
row sections.flags verdict 'threads: {r0.main: [{await: f}]}
@' '' 'flags: {f: {value: 1}}'
row sections.streams lower 'schedule: {A: {}, B: {stream: s}}
@' '' 'streams: {s: {legacy: true}}'
row sections.buffers verdict 'schedule: {A: {stream: a, writes: [x]}, B: {stream: b, writes: [x]}}
intra_iter_deps: [[B, A]]
@' '' 'buffers: {x: {scope: shared}}'
row sections.inputs verdict 'schedule: {A: {reads: [x]}}
@' '' 'inputs: [x]'
row sections.staleness verdict 'buffers: {x: {scope: shared}}
schedule: {Read: {stage: 0, reads: [x], stream: s}, Write: {stage: 1, writes: [x], stream: s}}
intra_iter_deps: [[Write, Read]]
@' '' 'staleness: {x: 1}'
row sections.driver verdict "$two" '' 'driver: clock'
row sections.enqueue_order lower "$two" '' 'enqueue_order: [B, A]'
row sections.rank_overrides lower "$two" '' 'rank_overrides: {1: {schedule: {A: {stream: t}}}}'
row override.schedule lower "$two" '' 'rank_overrides: {1: {schedule: {A: {stream: t}}}}'
row override.enqueue_order lower "$two" '' 'rank_overrides: {1: {enqueue_order: [B, A]}}'
row sections.max_depth dataflow "$two" '' 'max_depth: 1'
row sections.max_in_flight verdict "$two" '' 'max_in_flight: 1'
row sections.num_slots lower "$two" '' 'num_slots: 1'
row sections.batches verdict 'ranks: 2
@
schedule: {A: {work: {collective: barrier, comm: c}}}' 'batches: [1, 1]' 'batches: [1, 2]'
row sections.retire predict "$two" '' 'retire: device'
row sections.elide_same_stream lower 'schedule: {A: {}, B: {}}
intra_iter_deps: [[B, A]]
@' '' 'elide_same_stream: true'
row sections.slot_reset verdict "$two
num_slots: 1" '' 'slot_reset: submit'
row sections.retired_dep verdict 'max_depth: 2
@
schedule: {Forward: {stream: s, reads: [w]}, Update: {stream: t, writes: [w]}}
intra_iter_deps: [[Update, Forward]]
inter_iter_deps: [[Forward, Update]]
buffers: {w: {scope: shared}}' '' 'retired_dep: skip'
row sections.forget_done verdict 'max_depth: 2
@
schedule: {Load: {stream: s, thread_group: io}, Forward: {}, Update: {}}
intra_iter_deps: [[Forward, Load], [Update, Forward]]
inter_iter_deps: [[Forward, Update]]' '' 'forget_done: retire'
row sections.ticket_at verdict 'ranks: 2
@
schedule:
  A: {stream: s, thread_group: s}
  B: {stream: t, thread_group: t}
  C: {stream: s, thread_group: s, globally_ordered: true, work: {collective: barrier, comm: c}}
  D: {stream: t, thread_group: t, globally_ordered: true, work: {collective: barrier, comm: c}}
intra_iter_deps: [[C, A], [D, B]]' '' 'ticket_at: fire'
refuses 'found "comms" beside "programs", expected only keys of rank programs' 'programs: [[0F0], [1F0]]
comms: {pp: [0]}'
# The depth follows from the stages: another number is an error.
covered="$covered sections.swplan sections.pipeline_depth"
refuses 'found pipeline_depth 3, expected 2' 'schedule: {A: {}, B: {stage: 1}}
pipeline_depth: 3'
no_version()
{
    printf 'schedule: {A: {}}\n' >"$dir/plan.yaml"
    complains 3 'expected "swplan: 1"' "$SWSIM" lower "$dir/plan.yaml"
}
check "refused: no version" no_version

row buffer.scope verdict 'schedule: {A: {stream: a, writes: [x]}, B: {stream: b, writes: [x]}}
intra_iter_deps: [[B, A]]
buffers: {x: {@}}' '' 'scope: shared'
row buffer.instances verdict 'threads:
  r0.a: [{repeat: 3, body: [{compute: c, writes: [x]}, {copy: h2d, stream: s, reads: [x]}, {sync: event, event: e}, {record: e, stream: s}]}]
buffers: {x: {@}}' '' 'instances: 2'
row buffer.bytes verdict 'schedule: {A: {writes: [x]}}
machine: {memory: 1KiB}
buffers: {x: {@}}' '' 'bytes: 1MiB'

# ---- tasks ---------------------------------------------------------------------------------------

task='ranks: 2
schedule: {A: {time: 1ms, stream: s, @}, B: {time: 2ms}}'
row task.stage schedule "$task" '' 'stage: 1'
row task.stream lower 'schedule: {A: {@}}' '' 'stream: t'
row task.thread_group lower "$task" '' 'thread_group: g'
row task.globally_ordered lower "$task" '' 'globally_ordered: true'
row task.time predict 'schedule: {A: {@}}' '' 'time: 2ms'
row task.host_time predict "$task" '' 'host_time: 5ms'
row task.jitter predict 'schedule: {A: {time: 1ms, @}}' '' 'jitter: uniform(half=0.5)'
row task.host_jitter predict 'schedule: {A: {host_time: 1ms, @}}' '' 'host_jitter: uniform(half=0.5)'
row task.sm predict "schedule: {A: {time: 1ms, stream: s, @}, B: {time: 2ms, sm: 1}}
machine: {sm_slots: 2}" '' 'sm: 2'
row task.shares predict "schedule: {A: {time: 1ms, stream: s, @}, B: {time: 2ms, shares: {sm: 1}}}" '' 'shares: {sm: 1}'
row task.work lower "$task" '' 'work: {host: 1ms}'
row task.reads verdict 'schedule: {A: {@}}' '' 'reads: [x]'
row task.writes verdict 'schedule: {A: {@}, B: {stream: s, writes: [x]}}' '' 'writes: [x]'
row task.host_sync lower "$task" '' 'host_sync: stream'
row task.host_after predict 'schedule: {A: {time: 3ms, @}}' '' 'host_after: 5ms'
row task.sync_after lower "$task" '' 'sync_after: stream'
row task.holds lower "$task" '' 'holds: [l]'
row shares.sm predict "schedule: {A: {time: 1ms, stream: s, shares: {@}}, B: {time: 2ms, shares: {sm: 1}}}" '' 'sm: 1'
row shares.core predict "schedule: {A: {time: 1ms, stream: s, shares: {@}}, B: {time: 2ms}}
machine: {cores: 1}" '' 'core: 0'
row shares.link predict "schedule: {A: {time: 1ms, stream: s, shares: {@}}, B: {time: 2ms, shares: {link: 1}}}" '' 'link: 1'

# ---- work ----------------------------------------------------------------------------------------

works='schedule: {A: {time: 1us, work: {@}}}'
row task.greedy predict 'schedule: {A: {sm: 1, stream: a, time: 1ms}, B: {sm: 2, stream: b, time: 9ms@}}
batches: [1]
machine: {sm_slots: 2}' '' ', greedy: true'
row copy.copy predict 'schedule: {A: {time: 1ms, work: {copy: @, bytes: 1KiB}}, B: {stream: s, time: 2ms, work: {copy: h2d, bytes: 1KiB}}}
machine: {copy_engines: 2}' h2d d2h
row copy.bytes moved 'batches: [1]
schedule: {A: {work: {copy: h2d, bytes: @}}}' 4B 16MiB
row copy.pageable lower "$works" 'copy: h2d, bytes: 1KiB' 'copy: h2d, bytes: 1KiB, pageable: true'
row collective.collective verdict 'ranks: 2
schedule: {A: {work: {collective: @, comm: c}}}
rank_overrides: {1: {schedule: {A: {work: {collective: barrier, comm: c}}}}}' barrier all_reduce
row collective.comm lower "$works" 'collective: barrier, comm: c' 'collective: barrier, comm: d'
row collective.root verdict 'ranks: 2
schedule: {A: {work: {collective: broadcast, comm: c, @}}}
rank_overrides: {1: {schedule: {A: {work: {collective: broadcast, comm: c, root: 1}}}}}' '' 'root: 1'
row collective.bytes verdict 'ranks: 2
schedule: {A: {work: {collective: all_reduce, comm: c, @}}}
rank_overrides: {1: {schedule: {A: {work: {collective: all_reduce, comm: c, bytes: 1MiB}}}}}' '' 'bytes: 1MiB'
typed='ranks: 2
schedule: {A: {work: {collective: all_reduce, comm: c, @}}}
rank_overrides: {1: {schedule: {A: {work: {collective: all_reduce, comm: c, dtype: f32, bytes: 32B}}}}}'
row collective.dtype verdict "$typed" 'bytes: 32B' 'bytes: 32B, dtype: f32'
row collective.count verdict "$typed" 'dtype: f32, count: 8' 'dtype: f32, count: 9'
for way in send recv; do
    typed="ranks: 2
schedule: {A: {work: {$way: x, peer: 1, comm: c, @}}}
rank_overrides: {1: {schedule: {A: {work: {$([ $way = send ] && echo recv || echo send): x, peer: 0, comm: c, dtype: f32, bytes: 32B}}}}}"
    row $way.dtype verdict "$typed" 'dtype: f32' 'dtype: i32'
    row $way.count verdict "$typed" 'dtype: f32, count: 8' 'dtype: f32, count: 9'
done
pair='ranks: 3
schedule: {A: {work: {send: x, peer: 1, comm: c, bytes: 1KiB}}, B: {stream: s}}
rank_overrides: {1: {schedule: {A: {work: {recv: x, peer: 0, comm: c, bytes: 1KiB}}}}, 2: {schedule: {A: {work: {spin: 1us}}}}}'
change() { printf '%s' "$pair" | sed "s/$1/@/"; }
row send.send verdict "$(change 'send: x')" 'send: x' 'send: y'
row send.peer verdict "$(change 'peer: 1')" 'peer: 1' 'peer: 2'
row send.comm verdict "$(change 'comm: c, bytes: 1KiB}}, B')" 'comm: c}}, B' 'comm: d}}, B'
row send.bytes verdict "$(change 'bytes: 1KiB}}, B')" 'bytes: 1KiB}}, B' 'bytes: 2KiB}}, B'
row recv.recv verdict "$(change 'recv: x')" 'recv: x' 'recv: y'
row recv.peer verdict "$(change 'peer: 0')" 'peer: 0' 'peer: 2'
row recv.comm verdict "$(change 'comm: c, bytes: 1KiB}}}}, 2')" 'comm: c}}}}, 2' 'comm: d}}}}, 2'
row recv.bytes verdict "$(change 'bytes: 1KiB}}}}, 2')" 'bytes: 1KiB}}}}, 2' 'bytes: 2KiB}}}}, 2'
# The host device says where it cuts a kernel down.
row gemm_work.gemm run "$works" 'spin: 1us' 'gemm: {m: 8, n: 2000, k: 8}'
row gemm.m run "$works" 'gemm: {m: 8, n: 8, k: 8}' 'gemm: {m: 2000, n: 8, k: 8}'
row gemm.n run "$works" 'gemm: {m: 8, n: 8, k: 8}' 'gemm: {m: 8, n: 2000, k: 8}'
row gemm.k run "$works" 'gemm: {m: 8, n: 8, k: 8}' 'gemm: {m: 8, n: 8, k: 2000}'
row gather_work.gather run "$works" 'spin: 1us' 'gather: {rows: 8388608, dim: 1}'
row gather.rows run "$works" 'gather: {rows: 8, dim: 8}' 'gather: {rows: 8388608, dim: 8}'
row gather.dim run "$works" 'gather: {rows: 1024, dim: 8}' 'gather: {rows: 1024, dim: 8192}'
row axpy_work.axpy run "$works" 'spin: 1us' 'axpy: {elements: 8388608}'
row axpy.elements run "$works" 'axpy: {elements: 8}' 'axpy: {elements: 8388608}'
row spin_work.spin predict 'schedule: {A: {work: {@}}}' 'spin: 1us' 'spin: 1ms'
row host_work.host predict 'schedule: {A: {work: {@}}}' 'host: 1us' 'host: 1ms'
row gemm.dtype run "$works" 'gemm: {m: 8, n: 8, k: 8}' 'gemm: {m: 8, n: 8, k: 8, dtype: bf16}'
row gather.dtype run "$works" 'gather: {rows: 8, dim: 8}' 'gather: {rows: 8, dim: 8, dtype: bf16}'

# ---- streams, the machine ------------------------------------------------------------------------

row stream.legacy lower 'schedule: {A: {}, B: {stream: s}}
streams: {s: {@}}' '' 'legacy: true'
row stream.blocking lower 'schedule: {A: {}, B: {stream: s}}
streams: {s: {legacy: true}, main: {@}}' '' 'blocking: false'
row stream.hw_queue predict 'machine: {hw_queues: 2}
schedule: {A: {stream: s, time: 1ms}, B: {stream: t, time: 2ms}, C: {stream: s}}
inter_iter_deps: [[A, B]]
intra_iter_deps: [[C, B]]
streams: {s: {@}}' '' 'hw_queue: 1'

machine='schedule: {A: {stream: s, time: 1ms, sm: 1, work: {copy: h2d, bytes: 1KiB}}, B: {time: 1ms, sm: 1}, C: {stream: u, work: {copy: h2d, bytes: 1KiB}, time: 1ms}}
machine: {@}'
row machine.sm_slots predict "$machine" '' 'sm_slots: 1'
row machine.share_device predict 'threads: {r0.main: [{launch: k, sm: 1, time: 1ms}], r1.main: [{launch: k, sm: 1, time: 1ms}]}
machine: {sm_slots: 1@}' '' ', share_device: [[0, 1]]'
row machine.hw_queues predict 'schedule: {A: {stream: s, time: 1ms}, B: {stream: t, time: 2ms}, C: {stream: u}}
intra_iter_deps: [[C, B], [C, A]]
machine: {@}' '' 'hw_queues: 1'
row machine.launch_queue verdict "$machine" '' 'launch_queue: 1'
row machine.launch_latency predict 'threads: {r0.main: [{launch: k, stream: s, time: 1ms}, {sync: stream, stream: s}]}
@' '' 'machine: {launch_latency: 5us}'
row machine.lazy_load lower "$machine" '' 'lazy_load: true'
row machine.launch_lock lower "$machine" '' 'launch_lock: true'
row machine.launch_blocking lower "$machine" '' 'launch_blocking: true'
row machine.copy_engines predict "$machine" '' 'copy_engines: 1'
row machine.cores predict 'schedule: {A: {stream: s, time: 1ms}, B: {stream: t, time: 2ms}}
machine: {@}' '' 'cores: 1'
row machine.memory verdict "buffers: {x: {bytes: 1MiB, scope: shared}}
schedule: {A: {writes: [x]}}
machine: {@}" '' 'memory: 1KiB'
row machine.memory verdict 'generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
stages: {activation: 1MiB}
machine: {memory: @}' '[4MiB, 1MiB]' '[1MiB, 4MiB]'
row machine.shares predict "$machine" '' 'shares: {copy: {link: 0.7}}'
comms='comms: {c: [0, 1], d: [0, 1]}
threads: {r0.main: [{collective: x, comm: c, stream: s, time: 1ms}, {collective: y, comm: d, stream: t, time: 1ms}],
          r1.main: [{collective: y, comm: d, stream: t, time: 1ms}, {collective: x, comm: c, stream: s, time: 1ms}]}
machine: {@}'
row machine.first_use_blocks lower "$comms" '' 'first_use_blocks: true'
row machine.launch_order_implicit verdict 'comms: {c: [0], d: [0]}
threads: {r0.main: [{callback: a, stream: s, body: [{await: f}]}, {collective: x, comm: c, stream: s},
                    {collective: y, comm: d, stream: t}, {callback: b, stream: t, body: [{signal: f}]}]}
machine: {@}' '' 'launch_order_implicit: true'
row machine.alloc_may_sync lower 'threads: {r0.main: [{alloc: x, stream: s}]}
machine: {@}' '' 'alloc_may_sync: true'
eager='comms: {c: [0, 1]}
threads: {r0.main: [{group: [{send: x, peer: 1, bytes: 1KiB}], comm: c}, {group: [{recv: y, peer: 1, bytes: 1KiB}], comm: c}],
          r1.main: [{group: [{send: y, peer: 0, bytes: 1KiB}], comm: c}, {group: [{recv: x, peer: 0, bytes: 1KiB}], comm: c}]}
machine: {@}'
row machine.eager_messages verdict "$eager" '' 'eager_messages: {c: 1}'
row machine.timeout exit 'comms: {c: [0, 1]}
threads: {r0.main: [{host: 2ms}, {collective: x, comm: c}], r1.main: [{collective: x, comm: c}]}
machine: {timeout: {c: @}}' 1ms 3ms
row machine.eager_bytes verdict "$eager" '' 'eager_bytes: {c: 1KiB}'
kinds='ranks: 2
comms: {c: [0, 1]}
threads:
  r0.main: [{launch: k, time: 1ms}, {copy: h2d, time: 1ms, stream: s}, {collective: x, comm: c, stream: t, time: 1ms},
            {group: [{send: x, peer: 1}], comm: c, stream: u, time: 1ms}, {launch: l, time: 9ms, stream: v, shares: {sm: 0.6, link: 0.6}}]
  r1.main: [{collective: x, comm: c}, {group: [{recv: x, peer: 0}], comm: c, time: 1ms}]
machine: {shares: {@}}'
row kind.kernel predict "$kinds" '' 'kernel: {sm: 0.7}'
row kind.copy predict "$kinds" '' 'copy: {link: 0.7}'
row kind.collective predict "$kinds" '' 'collective: {sm: 0.7}'
row kind.p2p predict "$kinds" '' 'p2p: {sm: 0.7}'

# ---- rank programs -------------------------------------------------------------------------------

row sections.programs lower 'programs: @' '[0F0]' '[0F0 0F1]'
generate='generate: {schedule: interleaved_1f1b, ranks: 2, microbatches: 4, @}
times: {F: 1ms, B: 2ms}'
row sections.generate lower 'generate: @' '{schedule: gpipe, ranks: 2, microbatches: 2}' '{schedule: 1f1b, ranks: 2, microbatches: 2}'
row generate.schedule lower 'generate: {schedule: @, ranks: 2, microbatches: 2}' gpipe 1f1b
row generate.ranks lower 'generate: {schedule: gpipe, ranks: @, microbatches: 2}' 2 3
row generate.microbatches lower 'generate: {schedule: gpipe, ranks: 2, microbatches: @}' 2 3
row generate.chunks lower "$generate" 'chunks: 2' 'chunks: 3'
row generate.group lower "$generate" 'chunks: 2' 'chunks: 2, group: 4'
what=lower base='stages: {activation: 1MiB, weights: 1MiB}
generate: {schedule: zb_2p, ranks: 3, microbatches: 8, memory: fit}
machine: {memory: @}'
check "as many as fit: generate.memory" differ "$what" "$base" 4MiB 9MiB
row generate.memory lower 'generate: {schedule: zb_2p, ranks: 3, microbatches: 6, memory: @}' 2 4
what=lower base='times: {F: 1ms, I: 1ms, W: 1ms}
stages: {activation: 100B, left: @}
generate: {schedule: zb_2p, ranks: 3, microbatches: 8, memory: 4}'
check "what is found: stage.left" differ "$what" "$base" 1B 100B
row sections.copies lower 'programs: [0F0 3F0 3B0 0B0, 1F0 2F0 1B0 2B0]
@' 'copies: 2' 'copies: 4'
refuses 'found copies 2, expected 1 as "generate" says' 'generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
copies: 2'
refuses 'found copies 4, expected 2 as "generate" says' 'copies: 4
generate: {schedule: dualpipe, ranks: 2, microbatches: 4}'
one_error()
{
    is_refused 'found "0", expected a whole number from 1' "$1" && ! grep 'as "generate" says' "$dir/err"
}
check "a number that is no number of copies is one error" one_error 'copies: 0
generate: {schedule: 1f1b, ranks: 2, microbatches: 4}'
check "... nor of ranks" one_error 'ranks: 0
generate: {schedule: 1f1b, ranks: 2, microbatches: 4}'
row generate.megatron lower "$generate" 'chunks: 2, group: 2' 'chunks: 2, group: 2, megatron: overlap_p2p'
row generate.moe_overlap lower "$generate" 'chunks: 2' 'chunks: 2, moe_overlap: true'
lists='generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
times: {F: 1ms, B: 2ms}
@'
row sections.p2p lower "$lists" '' 'p2p: {fifo: pair}'
row p2p.fifo lower "$lists" '' 'p2p: {fifo: pair}'
row p2p.batch lower "$lists" '' 'p2p: {batch: true}'
row p2p.metadata lower "$lists" '' 'p2p: {metadata: each}'
row p2p.bytes verdict "$lists
machine: {memory: 1KiB}" '' 'p2p: {bytes: 1MiB}'
crossed='programs: [0F0 0F1 0SEND_F0 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1, 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1]
@'
row p2p.eager_messages verdict "$crossed" '' 'p2p: {eager_messages: 1}'
row p2p.eager_bytes verdict "$crossed" 'p2p: {bytes: 1KiB}' 'p2p: {bytes: 1KiB, eager_bytes: 1MiB}'
sent='p2p: {bytes: 1MiB, @}
generate: {schedule: 1f1b, ranks: 4, microbatches: 4}
times: {F: 1ms, B: 2ms}'
row p2p.latency predict "$sent" '' 'latency: 1ms'
row p2p.bandwidth predict "$sent" '' 'bandwidth: 1GB/s'
row p2p.forward predict "$sent" '' 'forward: {latency: 1ms}'
row p2p.backward predict "$sent" '' 'backward: {latency: 1ms}'
row p2p.node predict "$sent" 'between: {latency: 1ms}, node: 4' 'between: {latency: 1ms}, node: 2'
row p2p.between predict "$sent" 'node: 2, between: {latency: 2ms}' 'node: 2, between: {latency: 1ms}'
row p2p.edges predict "$sent" '' 'edges: [{from: 0, to: 1, latency: 1ms}]'
row link.latency predict "$sent" 'forward: {}' 'forward: {latency: 1ms}'
row link.bandwidth predict "$sent" 'forward: {}' 'forward: {bandwidth: 1GB/s}'
row link.bytes predict "$sent" 'bandwidth: 1GB/s' 'bandwidth: 1GB/s, forward: {bytes: 2MiB}'
row edge.from predict "$sent" 'edges: [{from: 0, to: 1, latency: 1ms}]' 'edges: [{from: 2, to: 1, latency: 1ms}]'
row edge.to predict "$sent" 'edges: [{from: 0, to: 1, latency: 1ms}]' 'edges: [{from: 0, to: 2, latency: 1ms}]'
row edge.latency predict "$sent" 'edges: [{from: 0, to: 1}]' 'edges: [{from: 0, to: 1, latency: 1ms}]'
row edge.bandwidth predict "$sent" 'edges: [{from: 0, to: 1}]' 'edges: [{from: 0, to: 1, bandwidth: 1GB/s}]'
row edge.bytes predict "$sent" 'bandwidth: 1GB/s' 'bandwidth: 1GB/s, edges: [{from: 0, to: 1, bytes: 2MiB}]'
row sections.times predict 'programs: [0F0]
@' '' 'times: {F: 1ms}'
sharded='programs: [0UNSHARD 0F0 0RESHARD 0UNSHARD 0B0 0RESHARD 0REDUCE_GRAD 0WAIT_REDUCE_GRAD]
@'
row sections.fsdp lower "$sharded" '' 'fsdp: {replicas: 2}'
row fsdp.replicas lower "$sharded" '' 'fsdp: {replicas: 2}'
row fsdp.bytes verdict "$sharded
machine: {memory: 1KiB}" '' 'fsdp: {bytes: 1MiB}'
real='generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
arithmetic: {@}'
row sections.arithmetic verdict "$lists
machine: {memory: 1KiB}" '' 'arithmetic: {}'
row arithmetic.width computed "$real" '' 'width: 8'
row arithmetic.batch computed "$real" '' 'batch: 4'
row arithmetic.layers_per_stage computed "$real" '' 'layers_per_stage: 2'
row arithmetic.activation computed "$real" '' 'activation: gelu'
row arithmetic.loss computed "$real" '' 'loss: cross_entropy'
row arithmetic.seed computed "$real" '' 'seed: 1'
row sections.fragment verdict 'programs: [0B0]
@' '' 'fragment: true'
for action in UNSHARD RESHARD REDUCE_GRAD WAIT_REDUCE_GRAD; do
    row "time.$action" predict "$sharded" '' "times: {$action: 1ms}"
done
for action in F I W; do
    row "time.$action" predict 'programs: [0F0 0I0 0W0]
@' '' "times: {$action: 1ms}"
done
for action in B SEND_F RECV_F SEND_B RECV_B WAIT_SEND_F WAIT_SEND_B WAIT_RECV_F WAIT_RECV_B; do
    row "time.$action" predict 'programs: [0F0 0SEND_F0 0RECV_B0 0WAIT_RECV_B0 0B0 0WAIT_SEND_F0, 1RECV_F0 1WAIT_RECV_F0 1F0 1B0 1SEND_B0 1WAIT_SEND_B0]
@' '' "times: {$action: 1ms}"
done
row time.OVERLAP_F_B predict 'programs: [0F0 (0F1;0B0)OVERLAP_F_B 0B1]
@' '' 'times: {OVERLAP_F_B: 1ms}'

# Groups of ranks around a pipeline; differs: of one rank, cost: of the collectives of a kind of group.
around='generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
times: {F: 1ms, B: 2ms, REDUCE_GRAD: 3ms, REDUCE_EMBEDDING: 4ms}
p2p: {bytes: 1MiB}
parallel: {@}'
row sections.parallel lower 'generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
@' '' 'parallel: {dp: 2}'
for key in tp cp dp; do
    row "parallel.$key" lower "$around" '' "$key: 2"
done
row parallel.ep lower "$around" 'dp: 2, grad_reduce: end' 'dp: 2, ep: 2, grad_reduce: end'
row parallel.expert_tp lower "$around" 'tp: 2, ep: 2, dp: 2, grad_reduce: end' 'tp: 2, ep: 2, dp: 2, expert_tp: 1, grad_reduce: end'
row parallel.order lower "$around" 'tp: 2, dp: 2' 'tp: 2, dp: 2, order: dp-tp-pp'
row parallel.mesh lower "$around" 'tp: 2, dp: 2' 'tp: 2, dp: 2, mesh: [pp, tp, dp]'
check "parallel.pp: the number of lists" refuses '3' 'generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
parallel: {pp: 3}'
check "parallel.world: is counted" refuses '5' 'generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
parallel: {dp: 2, world: 5}'
covered="$covered parallel.pp parallel.world"
row parallel.grad_reduce lower "$around" 'dp: 2' 'dp: 2, grad_reduce: overlap'
row parallel.embedding lower "$around" 'dp: 2' 'dp: 2, embedding: last'
row parallel.costs predict "$around" 'tp: 2' 'tp: 2, costs: {tp: {time: 1ms}}'
row parallel.ranks verdict "$around" 'dp: 2, grad_reduce: end' 'dp: 2, grad_reduce: end, ranks: {0: {grad_reduce: none}}'
row differs.grad_reduce verdict "$around" 'dp: 2, grad_reduce: end, ranks: {0: {}}' 'dp: 2, grad_reduce: end, ranks: {0: {grad_reduce: none}}'
row differs.embedding verdict "$around" 'dp: 2, embedding: last, ranks: {0: {}}' 'dp: 2, embedding: last, ranks: {0: {embedding: none}}'
row differs.program verdict "$around" 'dp: 2' 'dp: 2, ranks: {0: {program: 0F0 0SEND_F0}}'
for key in 'time: 1ms' 'latency: 1ms' 'bandwidth: 1GB/s'; do
    row "cost.${key%%:*}" predict "$around" 'tp: 2, costs: {tp: {}}' "tp: 2, costs: {tp: {$key}}"
done
row cost.bytes predict "$around" 'tp: 2, costs: {tp: {bandwidth: 1GB/s}}' 'tp: 2, costs: {tp: {bandwidth: 1GB/s, bytes: 8MiB}}'
row cost.between predict 'p2p: {node: 2, bytes: 1MiB}
generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
parallel: {tp: 4, costs: {tp: {@}}}' 'between: {latency: 1ms}' 'between: {latency: 2ms}'
row cost.call lower "$around" 'tp: 2' 'tp: 2, costs: {tp: {call: gather_scatter}}'
row cost.overlap predict "$around" 'tp: 2, costs: {tp: {time: 1ms}}' 'tp: 2, costs: {tp: {time: 1ms, overlap: true}}'
for pass in F B; do
    row "cost.$pass" predict "$around" 'tp: 2, costs: {tp: {time: 1ms}}' "tp: 2, costs: {tp: {time: 1ms, $pass: 2}}"
done
for pass in I W; do
    row "cost.$pass" predict 'generate: {schedule: zb_h1, ranks: 2, microbatches: 4}
parallel: {tp: 2, costs: {tp: {time: 1ms@}}}' '' ", $pass: 2"
done
row time.REDUCE_EMBEDDING predict 'generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
parallel: {dp: 2, embedding: last}
@' '' 'times: {REDUCE_EMBEDDING: 1ms}'

# Costs of the lists: a time changes a prediction, bytes break a bound.
costly='generate: {schedule: zb_h1, ranks: 2, microbatches: 4}
machine: {memory: 10MiB}
@'
row sections.stages predict "$costly" '' 'stages: {F: 1ms}'
row sections.layers predict "$costly" '' 'layers: {count: 2, F: 1ms}'
row sections.balance predict "$costly" 'layers: {count: 3, F: 1ms}' 'layers: {count: 3, F: 1ms}
balance: [3, 0]'
row sections.checkpoint predict "$costly" 'stages: {F: 1ms}' 'stages: {F: 1ms}
checkpoint: always'
row sections.release verdict "$costly" 'p2p: {bytes: 3MiB}' 'p2p: {bytes: 3MiB}
release: send'
# costs TABLE BEFORE COMMA: every key of a table of costs, behind BEFORE and COMMA in the plan
costs()
{
    for time in F I W; do
        row "$1.$time" predict "$costly" "$2}" "$2$3$time: 1ms}"
    done
    for time in dispatch combine; do
        row "$1.$time" predict "$costly" "$2}" "$2$3$time: 1ms}"
    done
    row "$1.optimizer" predict "$costly" "$2}" "$2$3optimizer: 1ms}"
    row "$1.B" predict 'generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
@' "$2}" "$2$3B: 1ms}"
    row "$1.activation" verdict "$costly" "$2}" "$2$3activation: 20MiB}"
    row "$1.left" verdict "$costly" "$2}" "$2$3left: 20MiB}"
    row "$1.input" verdict "checkpoint: always
$costly" "$2}" "$2$3input: 20MiB}"
    row "$1.weights" verdict "$costly" "$2}" "$2$3weights: 20MiB}"
    row "$1.state" verdict "$costly" "$2}" "$2$3state: 20MiB}"
}
costs stage 'stages: {' ''
costs layer 'layers: {count: 2' ', '
row layer.count predict "$costly" 'layers: {count: 2, F: 1ms}' 'layers: {count: 3, F: 1ms}'
row layer.embedding predict "$costly" 'layers: {count: 2}' 'layers: {count: 2, embedding: {F: 1ms}}'
row layer.head predict "$costly" 'layers: {count: 2}' 'layers: {count: 2, head: {F: 1ms}}'
inner() { row "single.$1" "$2" "$costly" 'layers: {count: 2, head: {}}' "layers: {count: 2, head: {$1: $3}}"; }
for key in F I W dispatch combine optimizer; do inner "$key" predict 1ms; done
for key in activation left weights state; do inner "$key" verdict 20MiB; done
row single.input verdict "checkpoint: always
$costly" 'layers: {count: 2, head: {}}' 'layers: {count: 2, head: {input: 20MiB}}'
row single.B predict 'generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
@' 'layers: {count: 2, head: {}}' 'layers: {count: 2, head: {B: 1ms}}'
# A transformer: rank 0 holds 20 GiB of weights and state, 2 GiB of activations.
modelled='generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
model: {layers: 4, hidden: 4096, heads: 32, sequence: 2048, microbatch: 1, @}
stages: {optimizer: 1ms}'
holds() { row "model.$1" held "$modelled" "$2" "$3"; }
row sections.model held 'generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
stages: {weights: 1MiB}
@' 'fragment: false' 'model: {layers: 4, hidden: 4096, heads: 32, sequence: 2048, microbatch: 1}'
for key in layers hidden heads sequence microbatch; do
    row "model.$key" held "generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
model: {$(for other in layers hidden heads sequence microbatch; do
        [ "$other" = "$key" ] || printf '%s: 8, ' "$other"
    done) $key: @}" 8 16
done
holds ffn 'vocab: 8' 'vocab: 8, ffn: 4096'
holds gated 'vocab: 8' 'vocab: 8, gated: true'
holds kv_heads 'vocab: 8' 'vocab: 8, kv_heads: 8'
holds vocab 'tensor: 1' 'tensor: 1, vocab: 32000'
holds tensor 'vocab: 8' 'vocab: 8, tensor: 2'
holds context 'vocab: 8' 'vocab: 8, context: 2'
holds data 'distributed_optimizer: true' 'distributed_optimizer: true, data: 4'
holds distributed_optimizer 'vocab: 8' 'vocab: 8, data: 4, distributed_optimizer: true'
holds experts 'vocab: 8' 'vocab: 8, experts: 4'
holds top_k 'experts: 4' 'experts: 4, top_k: 2'
holds expert_parallel 'experts: 4' 'experts: 4, expert_parallel: 2'
holds sequence_parallel 'tensor: 2' 'tensor: 2, sequence_parallel: true'
holds selective 'vocab: 8' 'vocab: 8, selective: true'
row model.tied held 'generate: {schedule: 1f1b, ranks: 1, microbatches: 4}
model: {layers: 4, hidden: 8, heads: 8, sequence: 8, microbatch: 1, vocab: 80, @}' 'tensor: 1' 'tensor: 1, tied: true'
row model.rate predict "$modelled" 'vocab: 8' 'vocab: 8, rate: 1TFLOPS'

# ---- host programs -------------------------------------------------------------------------------

threads='comms: {c: [0, 1], d: [0, 1], own: [0]}
graphs: {g: [{launch: k}], h: [{launch: l}]}
machine: {sm_slots: 2, copy_engines: 1}
streams: {legacy: {legacy: true}, own: {blocking: false}}
threads: {r0.main: [{launch: z, stream: z, time: 1ms, sm: 1, shares: {sm: 0.6, link: 0.6}, writes: [z]}, @], r1.main: []}'
# op KEY WHAT A B: in a host program
op() { row "$1" "$2" "$threads" "$3" "$4"; }
row sections.queues verdict '@
threads: {r0.main: [{put: q}, {put: q}]}' 'queues: {q: 1}' 'queues: {q: 2}'
# What a kernel does, of which hardware makes a time.
row LAUNCH.cost hardware 'threads: {r0.main: [{launch: k@}]}' '' ', cost: {bytes: 1GiB}'
row op_cost.bytes hardware 'threads: {r0.main: [{launch: k, cost: {bytes: @}}]}' 1GiB 2GiB
row op_cost.flops hardware 'threads: {r0.main: [{launch: k, cost: {flops: @}}]}' 1000000000000 2000000000000
row op_cost.numbers hardware 'threads: {r0.main: [{launch: k, cost: {flops: 1000000000000, numbers: @}}]}' f16 f8
row op_cost.shapes measured 'threads: {r0.main: [{launch: aten.mm, cost: {shapes: @}}]}' "'f16[8x8] f16[8x8]'" "'f16[8x9] f16[9x8]'"
refuses 'found "f17", expected' 'threads: {r0.main: [{launch: k, cost: {flops: 1, numbers: f17}}]}'
# What a recording says of memory.
held='threads: {r0.main: [{launch: k}], r1.main: [{launch: k}]}
memory: [{rank: 0, peak: 70GiB, device: 100GiB, reserved: 100GiB@}]'
row sections.memory fits 'threads: {r0.main: [{launch: k}]}
memory: [{rank: 0, peak: @}]' 1GiB 2GiB
row memory.rank fits "$(printf '%s' "$held" | sed 's/rank: 0/rank: @/; s/GiB@/GiB/')" 0 1
row memory.peak fits 'threads: {r0.main: [{launch: k}]}
memory: [{rank: 0, peak: @}]' 1GiB 80GiB
row memory.device fits "$(printf '%s' "$held" | sed 's/device: 100GiB/device: @/; s/GiB@/GiB/')" 70GiB 100GiB
row memory.reserved fits "$(printf '%s' "$held" | sed 's/reserved: 100GiB@/reserved: @/')" 100GiB 50GiB
for key in parameters gradients optimizer activations backward communication workspace held other; do
    row memory.$key fits "$held" '' ", $key: 1GiB"
done
row memory.refused fits "$held" '' ', refused: 1GiB'
row memory.at fits "$held" '' ", at: 'train.py:7'"
refuses 'found "2", expected a whole number from 0 to 1' "$(printf '%s' "$held" | sed 's/rank: 0/rank: 2/; s/@//')"
row sections.graphs lower '@
threads: {r0.main: [{launch: g, graph: true}]}' 'graphs: {g: [{launch: k}]}' 'graphs: {g: [{launch: k}, {launch: k}]}'
row sections.threads lower 'threads: @' '{r0.main: [{host: 1ms}]}' '{r0.main: [{host: 2ms}]}'

op HOST.host predict '{host: 1ms}' '{host: 9ms}'
op HOST.name lower '{host: 1ms}' '{host: 1ms, name: n}'
op HOST.jitter predict '{host: 9ms}' '{host: 9ms, jitter: uniform(half=0.5)}'
op HOST.reads verdict '{host: 1ms}' '{host: 1ms, reads: [z]}'
op HOST.writes verdict '{host: 1ms}' '{host: 1ms, writes: [z]}'
op COMPUTE.compute lower '{compute: a}' '{compute: b}'
op COMPUTE.time predict '{compute: a}' '{compute: a, time: 9ms}'
op COMPUTE.jitter predict '{compute: a, time: 9ms}' '{compute: a, time: 9ms, jitter: uniform(half=0.5)}'
op COMPUTE.reads verdict '{compute: a}' '{compute: a, reads: [z]}'
op COMPUTE.writes verdict '{compute: a}' '{compute: a, writes: [z]}'

# pushes TABLE OPERATION OPERATION_OF_ANY_RANK: what every push of device work takes
pushes()
{
    op "$1.stream" lower "{$2}" "{$2, stream: s}"
    op "$1.device" lower "{$3}" "{$3, device: 1}"
    op "$1.at" lower "{$2}" "{$2, at: 'a.py:1'}"
    op "$1.host_time" predict "{$2}" "{$2, host_time: 9ms}"
    op "$1.time" predict "{$2}" "{$2, time: 9ms}"
    op "$1.jitter" predict "{$2, time: 9ms}" "{$2, time: 9ms, jitter: uniform(half=0.5)}"
    op "$1.sm" predict "{$2, time: 9ms}" "{$2, time: 9ms, sm: 2}"
    op "$1.shares" predict "{$2, time: 9ms}" "{$2, time: 9ms, shares: {sm: 0.6}}"
    op "$1.reads" verdict "{$2}" "{$2, reads: [z]}"
    op "$1.writes" verdict "{$2}" "{$2, writes: [z]}"
}
op LAUNCH.launch lower '{launch: a}' '{launch: b}'
pushes LAUNCH 'launch: a' 'launch: a'
op LAUNCH.greedy predict '{launch: a, sm: 2, time: 9ms}' '{launch: a, sm: 2, time: 9ms, greedy: true}'
op LAUNCH.work run '{launch: a}' '{launch: a, work: {axpy: {elements: 8388608}}}'
op LAUNCH.body lower '{launch: a}' '{launch: a, body: [{compute: b}]}'
op LAUNCH.graph lower '{launch: g}' '{launch: g, graph: true}'
row COPY.copy predict 'threads: {r0.main: [{copy: h2d, time: 1ms}, {copy: @, time: 1ms, stream: s}]}
machine: {copy_engines: 2}' h2d d2h
op COPY.name lower '{copy: h2d}' '{copy: h2d, name: n}'
row repeat.repeat predict 'threads: {r0.m: [{repeat: @, body: [{host: 1ms}]}]}' 2 3
row repeat.body predict 'threads: {r0.m: [{repeat: 2, body: [{host: 1ms}@]}]}' '' ', {host: 1ms}'
row COPY.bytes moved 'threads: {r0.main: [{copy: h2d, bytes: @}]}' 4B 16MiB
row RECORD.external lower 'graphs: {g: [{launch: k}, {record: e@}]}
threads: {r0.main: [{launch: g, graph: true}]}' '' ', external: true'
row WAIT.external lower 'graphs: {g: [{record: e}, {wait: e@}]}
threads: {r0.main: [{launch: g, graph: true}]}' '' ', external: true'
op COPY.pageable lower '{copy: h2d}' '{copy: h2d, pageable: true}'
pushes COPY 'copy: h2d' 'copy: h2d'
# meets KEY WHAT A B: in a call of rank 0 that meets one of rank 1
meets() { row "$1" "$2" "${threads%r1.main*}r1.main: [$5]}" "$3" "$4"; }
meets COLLECTIVE.collective verdict '{collective: x, comm: c}' '{collective: y, comm: c}' '{collective: x, comm: c}'
meets COLLECTIVE.comm verdict '{collective: x, comm: c}' '{collective: x, comm: d}' '{collective: x, comm: c}'
meets COLLECTIVE.op verdict '{collective: x, comm: c}' '{collective: x, comm: c, op: barrier}' '{collective: x, comm: c}'
meets COLLECTIVE.root verdict '{collective: x, comm: c, op: broadcast}' '{collective: x, comm: c, op: broadcast, root: 1}' \
    '{collective: x, comm: c, op: broadcast}'
meets COLLECTIVE.bytes verdict '{collective: x, comm: c}' '{collective: x, comm: c, bytes: 1KiB}' '{collective: x, comm: c}'
meets COLLECTIVE.dtype verdict '{collective: x, comm: c}' '{collective: x, comm: c, dtype: f32}' '{collective: x, comm: c}'
meets COLLECTIVE.count verdict '{collective: x, comm: c, dtype: f32, count: 8}' '{collective: x, comm: c, dtype: f32, count: 9}' \
    '{collective: x, comm: c, dtype: f32, bytes: 32B}'
op COLLECTIVE.async lower '{collective: x, comm: c}' '{collective: x, comm: c, async: true}'
op COLLECTIVE.work lower '{collective: x, comm: c, async: true}' '{collective: x, comm: c, async: true, work: w}'
pushes COLLECTIVE 'collective: x, comm: own' 'collective: x, comm: c'
op GROUP.group lower '{group: [{send: x, peer: 1}], comm: c}' '{group: [{send: y, peer: 1}], comm: c}'
op GROUP.comm lower '{group: [{send: x, peer: 1}], comm: c}' '{group: [{send: x, peer: 1}], comm: d}'
op GROUP.async lower '{group: [{send: x, peer: 1}], comm: c}' '{group: [{send: x, peer: 1}], comm: c, async: true}'
op GROUP.work lower '{group: [{send: x, peer: 1}], comm: c, async: true}' '{group: [{send: x, peer: 1}], comm: c, async: true, work: w}'
pushes GROUP 'group: [{send: x, peer: 0}, {recv: x, peer: 0}], comm: c' 'group: [{send: x, peer: 0}], comm: c'

# part TABLE PART PART_OF_THE_OTHER: what every part of a group takes
part()
{
    other="{group: [{$3}], comm: c}"
    meets "$1.bytes" verdict "{group: [{$2, bytes: 1KiB}], comm: c}" "{group: [{$2, bytes: 2KiB}], comm: c}" \
        "{group: [{$3, bytes: 1KiB}], comm: c}"
    meets "$1.dtype" verdict "{group: [{$2, dtype: f32}], comm: c}" "{group: [{$2, dtype: i32}], comm: c}" \
        "{group: [{$3, dtype: i32}], comm: c}"
    meets "$1.count" verdict "{group: [{$2, dtype: f32, count: 8}], comm: c}" "{group: [{$2, dtype: f32, count: 9}], comm: c}" \
        "{group: [{$3, dtype: f32, bytes: 32B}], comm: c}"
    meets "$1.comm" verdict "{group: [{$2}], comm: c}" "{group: [{$2, comm: d}], comm: c}" "$other"
    meets "$1.stream" lower "{group: [{$2}], comm: c}" "{group: [{$2, stream: t}], comm: c}" "$other"
    meets "$1.device" lower "{group: [{$2}], comm: c}" "{group: [{$2, device: 1}], comm: c}" "$other"
    meets "$1.reads" verdict "{group: [{$2}], comm: c}" "{group: [{$2, reads: [z]}], comm: c}" "$other"
    meets "$1.writes" verdict "{group: [{$2}], comm: c}" "{group: [{$2, writes: [z]}], comm: c}" "$other"
}
part send_part 'send: x, peer: 1' 'recv: x, peer: 0'
part recv_part 'recv: x, peer: 1' 'send: x, peer: 0'
part collective_part 'collective: x' 'collective: x'
# group KEY A B OTHER
group() { meets "$1" verdict "{group: [{$2}], comm: c}" "{group: [{$3}], comm: c}" "{group: [{$4}], comm: c}"; }
group send_part.send 'send: x, peer: 1' 'send: y, peer: 1' 'recv: x, peer: 0'
group send_part.peer 'send: x, peer: 1' 'send: x, peer: 0' 'recv: x, peer: 0'
group recv_part.recv 'recv: x, peer: 1' 'recv: y, peer: 1' 'send: x, peer: 0'
group recv_part.peer 'recv: x, peer: 1' 'recv: x, peer: 0' 'send: x, peer: 0'
group collective_part.collective 'collective: x' 'collective: y' 'collective: x'
group collective_part.op 'collective: x' 'collective: x, op: barrier' 'collective: x'
group collective_part.root 'collective: x, op: broadcast' 'collective: x, op: broadcast, root: 1' 'collective: x, op: broadcast'

for event in record wait; do
    table=$(echo $event | tr a-z A-Z)
    op "$table.$event" lower "{$event: e}" "{$event: f}"
    op "$table.stream" lower "{$event: e}" "{$event: e, stream: s}"
    op "$table.device" lower "{$event: e}" "{$event: e, device: 1}"
    op "$table.host_time" predict "{$event: e}" "{$event: e, host_time: 9ms}"
done
op SYNC.sync lower '{sync: stream}' '{sync: device}'
op SYNC.stream lower '{sync: stream}' '{sync: stream, stream: s}'
op SYNC.device lower '{sync: device}' '{sync: device, device: 1}'
op SYNC.event lower '{sync: event, event: e}' '{sync: event, event: f}'
op SIGNAL.signal lower '{signal: a}' '{signal: b}'
op WRITE.write lower '{write: a}' '{write: b}'
op WRITE.stream lower '{write: a}' '{write: a, stream: s}'
op WRITE.device lower '{write: a}' '{write: a, device: 1}'
op WRITE.host_time predict '{write: a}' '{write: a, host_time: 9ms}'
op WAIT_FLAG.wait_flag lower '{wait_flag: a}' '{wait_flag: b}'
op WAIT_FLAG.stream lower '{wait_flag: a}' '{wait_flag: a, stream: s}'
op WAIT_FLAG.device lower '{wait_flag: a}' '{wait_flag: a, device: 1}'
op WAIT_FLAG.host_time predict '{wait_flag: a}' '{wait_flag: a, host_time: 9ms}'
op AWAIT.await lower '{await: a}' '{await: b}'
for use in "SIGNAL signal value add" "WRITE write value add" "AWAIT await at_least equals" "WAIT_FLAG wait_flag at_least equals" \
    "ACQUIRE acquire count count"; do
    set -- $use
    op "$1.$3" lower "{$2: a}" "{$2: a, $3: 2}"
    [ "$3" = "$4" ] || op "$1.$4" lower "{$2: a}" "{$2: a, $4: 2}"
done
op CLEAR.clear lower '{clear: a}' '{clear: b}'
op ACQUIRE.acquire lower '{acquire: a}' '{acquire: b}'
row flag.value verdict 'threads: {r0.main: [{await: f}]}
flags: {f: {@}}' '' 'value: 1'
row flag.scope lower 'threads: {r0.main: [{repeat: 2, body: [{signal: f}]}]}
flags: {f: {@}}' '' 'scope: iteration'
row PUT.put lower 'queues: {q: 1, r: 1}
threads: {r0.main: [{put: @}]}' q r
row GET.get lower 'queues: {q: 1, r: 1}
threads: {r0.main: [{get: @}]}' q r
op LOCK.lock lower '{lock: a}' '{lock: b}'
op LOCK.then lower '{lock: a, then: []}' '{lock: a, then: [{compute: k}]}'
op LOCK.else lower '{lock: a, else: []}' '{lock: a, else: [{compute: k}]}'
op ACQUIRE.then lower '{acquire: a, then: []}' '{acquire: a, then: [{compute: k}]}'
op ACQUIRE.else lower '{acquire: a}' '{acquire: a, else: []}'
for key in get put; do
    name=$(echo $key | tr a-z A-Z)
    row $name.then lower 'queues: {q: 1}
threads: {r0.a: [@]}
' "{$key: q, then: []}" "{$key: q, then: [{compute: k}]}"
    row $name.else lower 'queues: {q: 1}
threads: {r0.a: [@]}
' "{$key: q}" "{$key: q, else: []}"
done
op QUERY.query lower '{query: stream}' '{query: device}'
op QUERY.stream lower '{query: stream}' '{query: stream, stream: s}'
op QUERY.device lower '{query: device}' '{query: device, device: 1}'
op QUERY.event lower '{query: event, event: e}' '{query: event, event: f}'
op QUERY.at lower '{query: device}' '{query: device, at: train.py:1}'
op QUERY.then lower '{query: device}' '{query: device, then: [{compute: k}]}'
op QUERY.else lower '{query: device}' '{query: device, else: [{compute: k}]}'
op QUERY_FLAG.query lower '{query: flag, flag: a}' '{query: device}'
op QUERY_FLAG.flag lower '{query: flag, flag: a}' '{query: flag, flag: b}'
op QUERY_FLAG.at_least lower '{query: flag, flag: a}' '{query: flag, flag: a, at_least: 2}'
op QUERY_FLAG.equals lower '{query: flag, flag: a}' '{query: flag, flag: a, equals: 1}'
op QUERY_FLAG.at lower '{query: flag, flag: a}' '{query: flag, flag: a, at: train.py:1}'
op QUERY_FLAG.then lower '{query: flag, flag: a}' '{query: flag, flag: a, then: [{compute: k}]}'
op QUERY_FLAG.else lower '{query: flag, flag: a}' '{query: flag, flag: a, else: [{compute: k}]}'
asks='queues: {q: 1, r: 1}
threads: {r0.a: [@]}
'
row QUERY_QUEUE.query lower "$asks" '{query: queue, queue: q}' '{query: device}'
row QUERY_QUEUE.queue lower "$asks" '{query: queue, queue: q}' '{query: queue, queue: r}'
row QUERY_QUEUE.at lower "$asks" '{query: queue, queue: q}' '{query: queue, queue: q, at: train.py:1}'
row QUERY_QUEUE.then lower "$asks" '{query: queue, queue: q}' '{query: queue, queue: q, then: [{compute: k}]}'
row QUERY_QUEUE.else lower "$asks" '{query: queue, queue: q}' '{query: queue, queue: q, else: [{compute: k}]}'
op CHOOSE.choose lower '{choose: a}' '{choose: b}'
op CHOOSE.at lower '{choose: a}' '{choose: a, at: train.py:1}'
op CHOOSE.then lower '{choose: a}' '{choose: a, then: [{compute: k}]}'
op CHOOSE.else lower '{choose: a}' '{choose: a, else: [{compute: k}]}'
op UNLOCK.unlock lower '{lock: a}, {unlock: a}' '{lock: a}, {unlock: b}'
op BARRIER.barrier lower '{barrier: a}], r0.other: [{barrier: a}' '{barrier: b}], r0.other: [{barrier: a}'
op TICKET.ticket lower '{ticket: 0}' '{ticket: 1}'
op SERVE.serve lower '{ticket: 0}' '{ticket: 0}, {serve: 0}'
refuses 'found serve 1 behind ticket 0, expected {serve: 0}' 'threads: {r0.main: [{ticket: 0}, {serve: 1}]}'
refuses 'found serve 0 without a ticket before it' 'threads: {r0.main: [{ticket: 0}], r0.other: [{serve: 0}]}'
op CALLBACK.callback lower '{callback: a, body: []}' '{callback: b, body: []}'
op CALLBACK.body lower '{callback: a, body: []}' '{callback: a, body: [{signal: f}]}'
op CALLBACK.stream lower '{callback: a, body: []}' '{callback: a, body: [], stream: s}'
op CALLBACK.device lower '{callback: a, body: []}' '{callback: a, body: [], device: 1}'
op CALLBACK.host_time predict '{callback: a, body: []}' '{callback: a, body: [], host_time: 9ms}'
op CALLBACK.time predict '{callback: a, body: []}' '{callback: a, body: [], time: 9ms}'
op CALLBACK.jitter predict '{callback: a, body: [], time: 9ms}' '{callback: a, body: [], time: 9ms, jitter: uniform(half=0.5)}'
op ALLOC.alloc lower '{alloc: a}' '{alloc: b}'
op ALLOC.stream lower '{alloc: a}' '{alloc: a, stream: s}'
op ALLOC.device lower '{alloc: a}' '{alloc: a, device: 1}'
op ALLOC.host_time predict '{alloc: a}' '{alloc: a, host_time: 9ms}'
op HOST_ALLOC.host_alloc lower '{host_alloc: a}' '{host_alloc: b}'
op FREE.free lower '{alloc: a}, {alloc: b}, {free: a}' '{alloc: a}, {alloc: b}, {free: b}'
op FREE.stream lower '{alloc: a}, {free: a}' '{alloc: a}, {free: a, stream: s}'
op RECORD_STREAM.record_stream lower '{alloc: a}, {alloc: b}, {record_stream: a}' '{alloc: a}, {alloc: b}, {record_stream: b}'
op FREE.device lower '{alloc: a}, {free: a}' '{alloc: a}, {free: a, device: 1}'
op ABORT.abort lower '{abort: c}' '{abort: [c, d]}'
op ABORT.device lower '{abort: c}' '{abort: c, device: 1}'
op RECORD_STREAM.device lower '{alloc: a}, {record_stream: a}' '{alloc: a}, {record_stream: a, device: 1}'
op RECORD_STREAM.stream lower '{alloc: a}, {record_stream: a}' '{alloc: a}, {record_stream: a, stream: s}'
# placed TABLE OPERATION [OPERATION...]: the last one is called somewhere
placed() { op "$1.at" lower "${3:+$3, }{$2}" "${3:+$3, }{$2, at: 'a.py:1'}"; }
placed HOST 'host: 1ms'
placed COMPUTE 'compute: a'
placed RECORD 'record: e'
placed WAIT 'wait: e'
placed SYNC 'sync: stream'
placed WRITE 'write: a'
placed WAIT_FLAG 'wait_flag: a'
placed CALLBACK 'callback: a, body: []'
placed ALLOC 'alloc: a'
placed HOST_ALLOC 'host_alloc: a'
placed FREE 'free: a' '{alloc: a}'
placed RECORD_STREAM 'record_stream: a' '{alloc: a}'

# ---- keys that another key leaves without effect -------------------------------------------------

refuses 'found "pageable" in a copy on the device' 'threads: {r0.main: [{copy: d2d, pageable: true}]}'
refuses 'found "pageable" in a copy on the device' 'schedule: {A: {work: {copy: d2d, bytes: 1KiB, pageable: true}}}'
refuses 'found "external" outside of a graph' 'threads: {r0.main: [{record: e, external: true}]}'
refuses 'found "jitter" without "time"' 'threads: {r0.main: [{launch: k, jitter: exponential}]}'
refuses 'found "jitter" without "time"' 'schedule: {A: {jitter: exponential}}'
refuses 'found "host_jitter" without "host_time"' 'schedule: {A: {host_jitter: exponential}}'
refuses 'found "time" beside work "spin"' 'schedule: {A: {time: 1ms, work: {spin: 1ms}}}'
refuses 'found "sm" beside work "host"' 'schedule: {A: {sm: 1, work: {host: 1ms}}}
machine: {sm_slots: 1}'
refuses 'found ranks 0 and 1 on one device, which no communicator connects' 'ranks: 2
schedule: {A: {sm: 1}}
machine: {sm_slots: 1, share_device: [[0, 1]]}'

lists='generate: {schedule: 1f1b, ranks: 2, microbatches: 4}'
no_bytes='found "bandwidth" of messages without bytes, expected "bytes" in "p2p"'
for link in 'bandwidth: 1GB/s' 'forward: {bandwidth: 1GB/s}' 'edges: [{from: 0, to: 1, bandwidth: 1GB/s}]' \
    'node: 1, between: {bandwidth: 1GB/s}'; do
    refuses "$no_bytes" "$lists
p2p: {$link}"
    row_of_bytes() { one_side a lower "$lists
p2p: {$link, @}" "$1"; }
    check "... but not with bytes: $link" row_of_bytes 'bytes: 1KiB'
    check "... nor with messages that tell a shape" row_of_bytes 'metadata: first'
done
refuses 'found "node" without "between", expected what a message' "$lists
p2p: {node: 2}"
refuses 'found "between" without "node", expected the number of ranks on a node' "$lists
p2p: {between: {latency: 1ms}}"
refuses 'found "between" without a cost, expected "latency", "bandwidth" or "bytes" between nodes' "$lists
p2p: {bytes: 1KiB, node: 2, between: {}}"
no_outputs='found "release: send" of outputs without bytes, expected "bytes" of forward messages in "p2p"'
refuses "$no_outputs" "$lists
release: send"
refuses "$no_outputs" "$lists
p2p: {backward: {bytes: 1MiB}}
release: send"
# Bytes of forward messages, whoever says them, give it an effect.
for bytes in 'p2p: {forward: {bytes: 1MiB}}' 'p2p: {node: 1, between: {bytes: 1MiB}}' 'p2p: {edges: [{from: 0, to: 1, bytes: 1MiB}]}' \
    'model: {layers: 4, hidden: 64, heads: 4, sequence: 32, microbatch: 1}' 'arithmetic: {}'; do
    what=held base="$lists
$bytes
@"
    check "release: send, $bytes" differ held "$base" '' 'release: send'
done
model='model: {layers: 4, hidden: 64, heads: 4, sequence: 32, microbatch: 1'
for key in 'top_k: 2|"experts", expected both' 'expert_parallel: 2|"experts", expected both' \
    'tied: true|"vocab", expected the rows' 'sequence_parallel: true|"tensor", expected the ranks' \
    'data: 2|"distributed_optimizer", expected both'; do
    refuses "found \"${key%%:*}\" without ${key#*|}" "$lists
$model, ${key%%|*}}"
done
for key in 'latency: 1us' 'bandwidth: 1GB/s'; do
    refuses "found \"${key%%:*}\" beside \"time\", expected one of them" "$lists
parallel: {tp: 2, costs: {tp: {time: 1ms, $key}}}"
done
refuses 'found "bytes" of sharded parameters, expected lists with UNSHARD or REDUCE_GRAD' "$lists
fsdp: {replicas: 2, bytes: 1MiB}"

# ---- what lowering refuses has a position ---------------------------------------------------------

refuses 'found task A of rank 1 on communicator c, expected one of its members' 'ranks: 2
comms: {c: [0]}
schedule: {A: {work: {collective: all_reduce, comm: c}}}'
refuses 'found root 1 in task A' 'ranks: 2
comms: {c: [0]}
rank_overrides: {1: {schedule: {A: {work: {spin: 1ms}}}}}
schedule: {A: {work: {collective: broadcast, comm: c, root: 1}}}'
refuses 'found peer 0 in task A of rank 0, expected another member' 'ranks: 2
comms: {c: [0, 1]}
schedule: {A: {work: {send: x, peer: 0, comm: c}}}'
refuses 'found "1073741825", expected a whole number from 0 to 1073741824' 'schedule: {A: {}}
batches: [1073741825]'
refuses 'found "50001s", expected at most 50000 s' "$lists
times: {REDUCE_GRAD: 50001s}"
refuses 'found a message of 128 TiB, expected at most 64.0 TiB' "$lists
p2p: {bytes: 128TiB}"
refuses 'found activation of 40962 TiB, expected at most 64.0 TiB' "$lists
model: {layers: 4, hidden: 4096, heads: 32, sequence: 16777216, microbatch: 1}"
refuses 'found stages up to 2, expected a multiple of 2 stages for 2 copies of a model' 'programs: [[0F0, 1F0, 2F0]]
copies: 2'
refuses 'found stages up to 2 but none of the ranks names stage 1' 'programs: [[0F0, 2F0]]'

# ---- every key of the parser's tables has a row --------------------------------------------------

# TABLE.KEY, a line each: what the tables of the parser hold behind the preprocessor.
keys()
{
    for file in "$srcdir"/plan/text/*.c; do
        case $file in */keys_hardware.c) continue ;; esac # no plan has these keys: tests/cmd/t_hardware.sh
        $CC -E -P -I"$srcdir" "$file" | tr '\n' ' ' | sed 's/static const struct /\n&/g' |
            sed -nE 's/^static const struct (field|[a-z_]*section \{.*\}) ([A-Za-z0-9_]+)\[\] = \{([^;]*)\};.*/\2 \3/p'
        echo
    done | while read -r table rest; do
        printf '%s\n' "$rest" | grep -oE '\.key = \(?"[^"]+"' | sed -E "s/.*\"(.*)\"/${table%_fields}.\1/"
    done | sort
}
all_covered()
{
    keys >"$dir/keys"
    test "$(wc -l <"$dir/keys")" -gt 150 || { cat "$dir/keys"; return 1; }
    printf '%s\n' $covered | sort -u >"$dir/covered"
    comm -3 "$dir/keys" "$dir/covered" >"$dir/missing"
    cat "$dir/missing"
    ! test -s "$dir/missing"
}
check "every key has a row here, and every row a key" all_covered

# ---- the schema --------------------------------------------------------------------------------------

schema_takes_them()
{
    "$SWSIM" schema plan >"$dir/schema.json" && "$PLAN_JSON" "$dir/plans" >"$dir/lines" &&
        python3 "$srcdir/tests/schema.py" plans "$dir/schema.json" "$dir/lines"
}
check "the plans above are as swsim schema plan says" schema_takes_them

# ---- keys beside each other, and without values ---------------------------------------------------

# The product does not contradict itself, nor crash, about any combination of the plans above.
check "keys beside each other, and without values" "$COMBINE_KEYS" "$dir/plans"

done_testing

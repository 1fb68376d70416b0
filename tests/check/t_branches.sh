#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Branches on a state that races, through the front door: query, choose, and operations that give up (doc/semantics.md, section 3).
. "${srcdir:-.}/tests/tap.sh"

reality=$srcdir/plans/reality
# head THREADS...: a plan of these threads in $dir/plan.yaml.
plan() { { echo "swplan: 1"; cat; } >"$dir/plan.yaml"; }
refuses() { check "refused: $2" complains 3 "$1" "$SWSIM" verify "$dir/plan.yaml"; }
# agree PLAN: the same verdict with reduction and without.
outcomes() { "$SWSIM" verify --no-fix --json "$@" | sed 's/.*"properties":\({[^}]*}\).*/\1/'; }
agree() { [ "$(outcomes "$1")" = "$(outcomes --no-reduction "$1")" ] || { outcomes "$1"; outcomes --no-reduction "$1"; false; }; }
same_plan()
{
    "$SWSIM" export "$1" >"$dir/once.yaml" && "$SWSIM" export "$dir/once.yaml" >"$dir/twice.yaml" &&
        cmp "$dir/once.yaml" "$dir/twice.yaml" && agree "$dir/once.yaml"
}

for name in event_poll work_poll queue_empty lazy_init try_lock skipped_step; do
    for which in broken fixed; do
        check "$name, $which: as it expects" exits 0 "$SWSIM" verify --quiet --expect "$reality/${name}_$which.yaml"
        check "... with reduction as without" agree "$reality/${name}_$which.yaml"
        check "... and its canonical text means the same" same_plan "$reality/${name}_$which.yaml"
    done
    check "$name, fixed: a run is legal" prints 0 '"legal":true' "$SWRUN" --json "$reality/${name}_fixed.yaml"
    check "$name, fixed: its certificate holds" sh -c \
        "'$SWSIM' verify --quiet --certificate='$dir/proof' '$reality/${name}_fixed.yaml' && '$SWCHECK' '$reality/${name}_fixed.yaml' '$dir/proof'"
done

# ---- stories --------------------------------------------------------------------------------------

check "a story says that an event had not happened" says "asks for event copied0, which has not happened yet" \
    "$SWSIM" verify --no-fix --full "$reality/event_poll_broken.yaml"
check "... that it had" says "asks for event reduced, which has happened" \
    "$SWSIM" verify --no-fix --full "$reality/work_poll_broken.yaml"
check "... what a queue had" says "consumer0  finds an item in queue batches" \
    "$SWSIM" verify --no-fix --full "$reality/queue_empty_broken.yaml"
check "... that a flag was not set" says "asks for made at 1 or more, which is not yet so" \
    "$SWSIM" verify --no-fix --full "$reality/lazy_init_broken.yaml"
check "... that a lock was held" says "finds lock log held, and does not wait" \
    "$SWSIM" verify --no-fix --full "$reality/try_lock_broken.yaml"
check "... which way was chosen" says "the gradients are finite: the other branch" \
    "$SWSIM" verify --no-fix --full "$reality/skipped_step_broken.yaml"

# ---- order ----------------------------------------------------------------------------------------

# An answer "yes" gives the order of a wait, for each kind of question; "no" gives none.
for question in "{query: event, event: e" "{query: stream, stream: s" "{query: device" "{query: flag, flag: f" \
    "{query: queue, queue: q" "{get: q" "{lock: l" "{acquire: f"; do
    unlock=
    [ "$question" = "{lock: l" ] && unlock=", {unlock: l}"
    plan <<END
queues: {q: 1}
threads:
  r0.a:
    - {lock: l}
    - {launch: k, stream: s, writes: [x]}
    - {record: e, stream: s}
    - {sync: device}
    - {put: q}
    - {signal: f}
    - {unlock: l}
  r0.b:
    - {await: begun}
    - $question, then: [{compute: use, reads: [x]}$unlock]}
  r0.c:
    - {signal: begun}
END
    sed "s/then: /else: /" "$dir/plan.yaml" >"$dir/else.yaml"
    check "$question: no gives no order" prints 1 '"race":"some"' "$SWSIM" verify --no-fix --json "$dir/else.yaml"
    case $question in
    "{query: event"* | "{query: stream"* | "{query: device"* | "{lock"*) # yes, also before anything was pushed
        sed -e 's/{await: begun}/{await: pushed}/' -e 's/- {sync: device}/- {signal: pushed}\n    &/' \
            "$dir/plan.yaml" >"$dir/pushed.yaml" ;;
    *) cp "$dir/plan.yaml" "$dir/pushed.yaml" ;;
    esac
    check "... yes gives the order of a wait" prints 0 '"race":"proved"' "$SWSIM" verify --json "$dir/pushed.yaml"
done

# ---- other rooms ----------------------------------------------------------------------------------

plan <<END
threads:
  r0.a:
    - {launch: k, stream: s, time: 2ms}
    - {record: e, stream: s}
    - {host: 1ms}
    - {query: event, event: e, then: [{host: 10ms}], else: [{host: 3ms}]}
    - {query: event, event: e, then: [{host: 100ms}], else: [{host: 1ms}]}
    - {choose: luck, then: [{host: 1000ms}], else: [{host: 1ms}]}
END
check "a prediction takes the answer of its time, and then of choose" prints 0 '"makespan_ns":1104000000' \
    "$SWSIM" predict --json "$dir/plan.yaml"
check "a trace of the plan's lowering" says "query event e, else 3 further" "$SWSIM" lower "$dir/plan.yaml"

"$SWSIM" verify --quiet --no-fix --witness="$dir/witness.db" "$reality/work_poll_broken.yaml"
check "a run repeats a counterexample with its answers" exits 0 "$SWRUN" --replay "$dir/witness.db"
"$SWSIM" verify --quiet --no-fix --witness="$dir/choice.db" "$reality/skipped_step_broken.yaml"
check "... and with its choices" exits 0 "$SWRUN" --replay "$dir/choice.db"

plan <<END
threads:
  r0.a:
    - {choose: luck, then: [{launch: yes, stream: s}], else: [{launch: no, stream: s}]}
END
branch() { "$SWRUN" --seed="$1" --stats "$dir/plan.yaml" | grep -o 'yes\|no' | sort -u; }
drawn() { for seed in 1 2 3 4 5 6 7 8; do branch $seed; done | sort -u | wc -l; }
check "runs draw the branch of choose by the seed" [ "$(drawn)" -ge 2 ]

# ---- repairs --------------------------------------------------------------------------------------

check "a repair of a plan with branches is proved" says "Fix (proved)" "$SWSIM" verify "$reality/event_poll_broken.yaml"

# ---- what is refused ------------------------------------------------------------------------------

plan <<END
threads:
  r0.a: [{choose: x, then: [{barrier: b}]}, {barrier: b}]
END
refuses 'found "barrier" in a branch' "a barrier in a branch"
plan <<END
threads:
  r0.a: [{choose: x, else: [{ticket: 0}, {serve: 0}]}]
END
refuses 'found "ticket" in a branch' "a turn in a branch"
plan <<END
threads:
  r0.a: [{callback: c, stream: s, body: [{query: queue, queue: q}]}]
queues: {q: 1}
END
refuses 'found "query" in the body of a callback' "a query in a callback"
plan <<END
threads:
  r0.a: [{callback: c, stream: s, body: [{lock: l, else: []}]}]
END
refuses 'found "lock" with branches in a body' "a try-lock in a callback"
plan <<END
comms: {c: [0, 1]}
machine: {first_use_blocks: true}
threads:
  r*.a: [{choose: x, then: [{collective: y, comm: c, stream: s}]}]
END
refuses 'found "collective" in a branch under first_use_blocks' "a first use in a branch"
plan <<END
comms: {c: [0, 1]}
machine: {eager_messages: {c: 1}}
threads:
  r0.a: [{choose: x, then: [{send: y, peer: 1, comm: c, stream: s}]}]
  r1.a: [{recv: y, peer: 0, comm: c, stream: s}]
END
refuses 'found a message in a branch on communicator c, which sends eagerly' "an eager message in a branch"
plan <<END
threads:
  r0.a: [{query: collective, work: w}]
END
refuses 'found "collective", expected event, stream, device, flag or queue; .* the event that its "work" names' "a question for a collective"
plan <<END
threads:
  r0.a: [{query: event}]
END
refuses 'found "query: event" without "event"' "a question for no event"
plan <<END
threads:
  r0.a: [{choose: x, then: [{repeat: 2, body: [{compute: c}]}]}]
END
refuses 'found "repeat"' "a repeat in a branch"

done_testing

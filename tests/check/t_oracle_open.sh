#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The second reading of t_oracle.sh for what has more runs than can be counted out or another form: pipelines with any number of
# iterations (each number up to three is judged), plans that survive a fault or do not, and rank programs (some runs of each).
# SWSIM_PLANS plans of a form, half as many with faults, the first from SWSIM_SEED; SWSIM_LONG=1: more of them.
. "${srcdir:-.}/tests/tap.sh"
python3 -c "import dataclasses" 2>/dev/null || skip_all "no python3 (3.7 or later) for the second reading"
PYTHONDONTWRITEBYTECODE=1 # the sources may be read-only
export PYTHONDONTWRITEBYTECODE
given=${SWSIM_PLANS-}${SWSIM_SEED-}
[ -z "${SWSIM_LONG-}" ] || : "${SWSIM_PLANS:=1000}"
: "${SWSIM_PLANS:=50}" "${SWSIM_SEED:=1000}"
echo "# SWSIM_SEED=$SWSIM_SEED SWSIM_PLANS=$SWSIM_PLANS"

# oracle FORM PLANS [CHANGE]
oracle() { python3 "$srcdir/tests/oracle/compare.py" "$SWSIM" "$1" "$SWSIM_SEED" "$2" 600 ${3+"$3"}; }
# agrees FORM PLANS: the figures are left in $dir/FORM.
agrees() { oracle "$1" "$2" >"$dir/$1" 2>&1 || { cat "$dir/$1"; false; }; }
# more FORM LINE: the figure behind "LINE:" is not 0.
more()
{
    figure=$(sed -n "s/^$2: //p" "$dir/$1")
    [ "${figure:-0}" -ge 1 ] || { cat "$dir/$1"; false; }
}
# sees FORM PROPERTY OLD NEW: where the program answers NEW for OLD, that is a disagreement about PROPERTY.
sees()
{
    oracle "$1" 12 "$2:$3:$4" >"$dir/changed" 2>&1
    [ $? -eq 1 ] || { cat "$dir/changed"; return 1; }
    found "^disagreement: .*$2: $4, expected .*$3" "$dir/changed"
}

# verdicts FORM PLANS "LINE..." PROPERTY OLD NEW: of that form; each line is a figure that is not 0, and OLD read as NEW is seen.
verdicts()
{
    check "random plans, $1: the same verdicts" agrees "$1" "$2"
    sed 's/^/# /' "$dir/$1"
    if [ -n "$given" ]; then
        skip "each answer in one of them: only with the test's own seed"
        return
    fi
    for line in $3; do
        check "... $line in one of them" more "$1" "$(echo "$line" | tr = ' ')"
    done
    check "a wrong verdict is seen: $6 for $5" sees "$1" "$4" "$5" "$6"
}

rules="operation=none operation=wake operation=abort operation=group_abort"
verdicts open "$SWSIM_PLANS" "violated=deadlock violated=race violated=serial violated=slot answer=always answer=some" \
    bound always proved
verdicts host_faults "$SWSIM_PLANS" "answer=proved answer=some $rules" faults proved some
verdicts pipeline_faults $((SWSIM_PLANS / 2)) "answer=proved answer=some $rules" faults proved some
verdicts open_faults $((SWSIM_PLANS / 2)) "answer=proved answer=some $rules" faults proved some
words="F B I W SEND_F SEND_B RECV_F RECV_B UNSHARD RESHARD REDUCE_GRAD (F;B)OVERLAP_F_B"
words="$words WAIT_SEND_F WAIT_SEND_B WAIT_RECV_F WAIT_RECV_B WAIT_REDUCE_GRAD"
# shellcheck disable=SC2086
verdicts ranks $((SWSIM_PLANS * 3)) \
    "$(printf 'operation=%s ' $words) violated=deadlock violated=mismatch violated=race violated=value violated=lifetime with=groups" \
    race proved always

# answers PROPERTY ANSWER OPTION...: of the plan on standard input.
answers()
{
    property=$1 answer=$2
    shift 2
    cat >"$dir/sentence.yaml"
    "$SWSIM" verify --json --no-fix "$@" "$dir/sentence.yaml" >"$dir/said"
    found "\"$property\": *\"$answer\"" "$dir/said"
}

# Sentences of doc/semantics.md that random plans hardly meet.
check "unlock by another thread: its knowledge takes the place of what the lock carried" answers race always <<'E'
{swplan: 1, comms: {A: [0, 1]}, threads: {
 r0.a: [{lock: l}, {compute: c, writes: [x]}, {unlock: l}, {lock: l}, {collective: b, op: broadcast, root: 1, comm: A}],
 r1.d: [{collective: b, op: broadcast, root: 1, comm: A}, {sync: stream}, {signal: f}],
 r0.b: [{await: f}, {unlock: l}, {signal: g}],
 r0.c: [{await: g}, {lock: l}, {compute: d, writes: [x]}]}}
E
check "a graph that nobody launches writes its buffers, so they hold nothing at first" answers value always <<'E'
{swplan: 1, graphs: {g: [{launch: k, writes: [x]}]}, threads: {r0.a: [{launch: l, reads: [x]}, {sync: device}]}}
E
check "the only rank does not die, which would be survived" answers faults always --faults <<'E'
{swplan: 1, threads: {r0.a: [{launch: k}, {signal: f}], r0.b: [{await: f}]}}
E
check "a kernel with a body is a kernel under launch_blocking" answers deadlock always <<'E'
{swplan: 1, machine: {launch_blocking: true}, threads: {r0.a: [{launch: k, body: [{await: f}]}, {signal: f}]}}
E
check "work that is never fired violates drain" answers drain "\(some\|always\)" -n 3 --driver=dataflow <<'E'
{swplan: 1, retire: last-task, schedule: {A: {thread_group: a, work: {host: 1ms}}, B: {thread_group: b}},
 inter_iter_deps: [[A, A]]}
E

done_testing

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim schedule` prints the tables the reference prints, cell for cell: tests/expected/schedule/NAME.txt
# holds a line `index|task|thread|stream|P0 P1 ...` for each row of plans/reference/NAME.yaml.
. "${srcdir:-.}/tests/tap.sh"

# The table without its head, widths and rules.
cells()
{
    "$SWSIM" schedule --periods="$2" "$1" >"$dir/table" || return
    sed '1,2d; s/^ *//; s/   *| */|/; s/   */|/; s/   */|/; s/   */|/; s/  */ /g' "$dir/table"
}

# same EXPECTED PLAN: the cells are those of the file; the number of periods is that of its first row.
same()
{
    periods=$(head -n 1 "$1" | cut -d '|' -f 5 | wc -w)
    cells "$2" "$periods" >"$dir/got" && diff "$1" "$dir/got"
}

# The JSON form says what the text says.
same_json()
{
    periods=$(head -n 1 "$1" | cut -d '|' -f 5 | wc -w)
    "$SWSIM" schedule --json --periods="$periods" "$2" | tr '{' '\n' |
        sed -n 's/^"index":\([0-9]*\),"task":"\([^"]*\)","thread":"\([^"]*\)","stream":"\([^"]*\)".*"iterations":\[\([^]]*\)\].*/\1|\2|\3|\4|\5/p' |
        sed 's/null/--/g; :again; s/\([|,]\)\([0-9]\)/\1i\2/; t again; s/,/ /g' >"$dir/got"
    diff "$1" "$dir/got"
}

for expected in "$srcdir"/tests/expected/schedule/*.txt; do
    test -f "$expected" || continue
    name=$(basename "$expected" .txt)
    plan=$srcdir/plans/reference/$name.yaml
    check "$name" same "$expected" "$plan"
    check "$name as JSON" same_json "$expected" "$plan"
done

# Stage analysis: the plans of the reference use every stage.
optimal()
{
    "$SWSIM" stages "$1" | grep -q '^LDS == depth (Dilworth-optimal)$'
}
for plan in "$srcdir"/plans/reference/*.yaml "$srcdir"/plans/torchrec/*.yaml; do
    test -f "$plan" || continue
    check "$(basename "$(dirname "$plan")")/$(basename "$plan" .yaml) has no empty stage" optimal "$plan"
done

# The enqueue order of the ready-first rule, as the reference's pseudocode gives it.
ready_first()
{
    "$SWSIM" stages "$srcdir/plans/reference/sparse_dist.yaml" >"$dir/out" || return
    got=$(sed -n '/^Enqueue order (ready-first)/,/^Stall/s/^ *[0-9][0-9]*  *\([A-Za-z0-9]*\) .*/\1/p' \
        "$dir/out" | tr '\n' ' ')
    echo "$got"
    test "$got" = "H2D InputDistStart InputDistWait ZeroGrad WaitBatch Forward Backward OptimizerStep "
}
check "ready-first order" ready_first

cat >"$dir/gap.yaml" <<'PLAN'
swplan: 1
schedule:
  A: {stage: 0}
  B: {stage: 2}
intra_iter_deps: [[B, A]]
PLAN
says_gap()
{
    "$SWSIM" stages "$dir/gap.yaml" >"$dir/out" && grep -qF 'LDS = 2 (example: (2, 0))' "$dir/out" &&
        grep -qF '1 of the 3 stages have no task' "$dir/out"
}
check "an empty stage is seen" says_gap

# order PLAN RANK: the enqueue order of one rank.
order()
{
    "$SWSIM" stages "$1" >"$dir/out" || return
    rank=" of rank $2"
    test "$2" = 0 && rank=
    sed -n "/^Enqueue order$rank (/,/^Stall/s/^ *[0-9][0-9]*  *\([A-Za-z0-9]*\) .*/\1/p" "$dir/out" | tr '\n' ' '
}

# is PLAN RANK TASKS: that rank's enqueue order.
is()
{
    got=$(order "$1" "$2")
    echo "# got $got"
    test "$got" = "$3 "
}

# On rank 1 B is on A's stream: it costs no stall there, and comes before C.
cat >"$dir/own.yaml" <<'PLAN'
swplan: 1
ranks: 2
schedule:
  A: {stage: 0, stream: x}
  B: {stage: 0, stream: y}
  C: {stage: 0, stream: x}
intra_iter_deps: [[B, A], [C, A]]
rank_overrides: {1: {schedule: {B: {stream: x}}}}
PLAN
check "ready-first on rank 0" is "$dir/own.yaml" 0 "A C B"
check "ready-first by a rank's own streams" is "$dir/own.yaml" 1 "A B C"
sed 's/stream: x}}}}/stage: 1}}, enqueue_order: stage-descending}}/' "$dir/own.yaml" >"$dir/stage.yaml"
check "stage-descending by a rank's own stages" is "$dir/stage.yaml" 1 "B A C"

# Tasks of one stage keep their places in the order of all tasks, B Z A: A waits for Z of the other stage.
cat >"$dir/ties.yaml" <<'PLAN'
swplan: 1
schedule:
  A: {stage: 1}
  B: {stage: 1}
  Z: {stage: 0}
intra_iter_deps: [[A, Z]]
enqueue_order: stage-descending
PLAN
check "stage-descending" is "$dir/ties.yaml" 0 "B A Z"
sed 's/descending/ascending/' "$dir/ties.yaml" >"$dir/up.yaml"
check "stage-ascending" is "$dir/up.yaml" 0 "Z B A"

# A dependence on a later period: said with the stages, and refused where a pipeline is opened (tests/gpu/t_swpipe.c).
later()
{
    "$SWSIM" stages "$1" >"$dir/out" && grep -qF -- "$2" "$dir/out"
}
printf 'swplan: 1\nschedule: {A: {stage: 1}, B: {stage: 0}}\nintra_iter_deps: [[B, A]]\n' >"$dir/later.yaml"
check "an earlier stage waits for a later one" later "$dir/later.yaml" "B (stage 0) waits for A (stage 1)"
check "in one thread, a deadlock" later "$dir/later.yaml" "a deadlock under the clock driver"
check "also as JSON" sh -c "'$SWSIM' stages --json '$dir/later.yaml' |
    grep -qF '\"later\":[{\"task\":\"B\",\"on\":\"A\",\"distance\":0,\"one_thread\":true}]'"
sed 's/B: {/&thread_group: b, /' "$dir/later.yaml" >"$dir/threads.yaml"
check "in two threads it depends" later "$dir/threads.yaml" "whether that hangs depends on the threads"
check "no such dependence, no such line" sh -c "! '$SWSIM' stages '$dir/own.yaml' | grep -q later"
sed '1a driver: dataflow' "$dir/own.yaml" >"$dir/dataflow.yaml"
check "data-flow has no periods" sh -c "'$SWSIM' schedule '$dir/dataflow.yaml' | grep -q 'data-flow driver has none'"
check "and under the clock nothing is said" sh -c "! '$SWSIM' schedule '$dir/own.yaml' | grep -q 'data-flow'"

# ---- completing a schedule of passes ---------------------------------------------------------------

# made GENERATE... -- EXPORT...: the schedule, completed, in $dir/made.csv.
made()
{
    generate=
    while test "$1" != --; do
        generate="$generate $1"
        shift
    done
    shift
    # shellcheck disable=SC2086
    "$SWSIM" generate $generate | "$SWSIM" export --format=csv "$@" - >"$dir/made.csv"
}
row()
{
    sed -n "$1p" "$dir/made.csv" | grep -qxF -- "$2" || { cat "$dir/made.csv"; false; }
}
made 1f1b -p2 -m2 -- --comms=early
check "messages, received at once" row 2 "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1"
made 1f1b -p2 -m2 -- --pytorch=2.15
check "what PyTorch 2.15 adds" row 1 \
    "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0WAIT_SEND_F0,0RECV_B1,0B1,0WAIT_SEND_F1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD"
check "... is proved" says proved "$SWSIM" verify "$dir/made.csv"
check "... and completed no second time" complains 3 "found 0UNSHARD, expected passes alone" \
    "$SWSIM" export --comms=early "$dir/made.csv"
printf '0F0,0I0,0W0\n' >"$dir/split.csv"
cat >"$dir/idle.yaml" <<'PLAN'
swplan: 1
name: idle
programs:
  - [0F0, 0SEND_F0, 0RECV_B0, 0B0]
  - []
  - [1RECV_F0, 1F0, 1B0, 1SEND_B0]
PLAN
check "a rank without actions is no row" complains 3 'rank 1 has no actions, and a schedule has no empty rows' \
    "$SWSIM" export -f csv "$dir/idle.yaml"
check "I and W are joined" prints 0 '^0F0,0B0$' "$SWSIM" export -f csv --merge "$dir/split.csv"
check "a file whose only W is in WAIT_SEND is not of the old dialect" sh -c "
    printf '0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0\n1RECV_F0,1F0,1B0,1SEND_B0\n' | '$SWSIM' export - | grep -q 0B0"
for schedule in "interleaved_1f1b -p4 -v2 -m8" "zbv -p4 -m8" "dualpipe_v -p4 -m9" "interleaved_zero_bubble -p3 -v2 -m6"; do
    # shellcheck disable=SC2086
    made $schedule -- --comms=timed
    check "timed messages of $schedule need no buffers" prints 0 proved "$SWSIM" verify "$dir/made.csv"
done
# With free messages, a queue for each rank costs what a queue for each edge does.
makespan()
{
    printf 'times: {F: 1us, B: 2us}\np2p: {fifo: %s}\n' "$2" | cat "$1" - | "$SWSIM" predict - |
        sed -n 's/^  total *//p'
}
"$SWSIM" generate interleaved_1f1b -p4 -v2 -m8 | "$SWSIM" export --comms=timed - >"$dir/timed.yaml"
check "... and hold up none: 57, not 67" test "$(makespan "$dir/timed.yaml" group) $(makespan "$dir/timed.yaml" edge)" = "57.0 us 57.0 us"
"$SWSIM" generate zbv -p4 -m8 | "$SWSIM" export --comms=deferred - >"$dir/deferred.yaml"
printf 'p2p: {fifo: edge}\n' >>"$dir/deferred.yaml"
check "deferred receives of a V: forward and backward messages of one link change places" \
    says "mismatch.*differ in tag" "$SWSIM" verify --no-fix "$dir/deferred.yaml"
check "a schedule says what it leaves out" complains 0 "left out: p2p" "$SWSIM" export -f csv "$dir/deferred.yaml"
check "a pipeline has no passes" complains 3 "of another form" "$SWSIM" export --comms=early "$dir/own.yaml"

# ---- the messages of Megatron-LM ----------------------------------------------------------------------

megatron() { "$SWSIM" generate "$@" >"$dir/megatron.yaml" && "$SWSIM" export -f csv "$dir/megatron.yaml" >"$dir/made.csv" 2>"$dir/err"; }
megatron 1f1b -p3 -m3 --megatron=batch
check "a batch for each call" row 2 "1RECV_F0,1WAIT_RECV_F0,1F0,1SEND_F0,1WAIT_SEND_F0,1RECV_F1,1WAIT_RECV_F1,1F1,1SEND_F1,1RECV_B0,1WAIT_SEND_F1,1WAIT_RECV_B0,1B0,1SEND_B0,1RECV_F2,1WAIT_SEND_B0,1WAIT_RECV_F2,1F2,1SEND_F2,1RECV_B1,1WAIT_SEND_F2,1WAIT_RECV_B1,1B1,1SEND_B1,1WAIT_SEND_B1,1RECV_B2,1WAIT_RECV_B2,1B2,1SEND_B2,1WAIT_SEND_B2"
check "... is a batch" grep -q '^p2p: {batch: true}' "$dir/megatron.yaml"
megatron 1f1b -p3 -m3 --megatron=odd_even
check "one by one: the odd rank receives before it sends" grep -q '1B0,1RECV_F2,1SEND_B0,' "$dir/made.csv"
check "... the even one sends first" sh -c "! grep -q ',2RECV_F2,2SEND_F' '$dir/made.csv'"
check "... each pair of ranks has a communicator" grep -q '^p2p: {fifo: pair}' "$dir/megatron.yaml"
megatron interleaved_1f1b -p4 -v2 -m4 --megatron=overlap_p2p
check "overlapped: a pass awaits its input, a send the send before it" grep -q ',7F0,7RECV_F1,7B0,7SEND_B0,7WAIT_RECV_F1,7F1,7RECV_F2,7B1,7SEND_B1,7WAIT_SEND_B0,' "$dir/made.csv"
for p in 2 3 4 5; do
    for order in batch odd_even overlap_p2p overlap_p2p_flush; do
        wanted=proved
        test "$p$order" != 2batch || wanted="mismatch, always"
        for how in "" --moe-overlap; do
            "$SWSIM" generate interleaved_1f1b -p$p -v2 -m$((2 * p)) --megatron=$order $how >"$dir/megatron.yaml"
            check "$p ranks, $order $how: $wanted" says "$wanted" "$SWSIM" verify -q --no-fix "$dir/megatron.yaml"
        done
    done
done
"$SWSIM" generate interleaved_1f1b -p4 -v2 -m8 --megatron=odd_even --brief >"$dir/brief.yaml"
check "a key of the plan" grep -q 'megatron: odd_even' "$dir/brief.yaml"
check "... makes the same lists" sh -c "'$SWSIM' generate interleaved_1f1b -p4 -v2 -m8 --megatron=odd_even | '$SWSIM' lower - >'$dir/a' &&
    '$SWSIM' lower '$dir/brief.yaml' >'$dir/b' && grep -v '^name' '$dir/a' >'$dir/c'; grep -v '^name' '$dir/b' | cmp '$dir/c' -"
check "... and has the channel of the plan, where it says one" says "fifo: group" sh -c "
    { cat '$dir/brief.yaml'; echo 'p2p: {fifo: group}'; } | '$SWSIM' export -"
check "overlapped, steps are shorter" sh -c "for order in odd_even overlap_p2p; do
    { '$SWSIM' generate interleaved_1f1b -p4 -v2 -m8 --megatron=\$order --brief | sed 's/^p2p.*//'; echo 'times: {F: 1ms, B: 2ms}'; echo 'p2p: {latency: 500us}'; } |
        '$SWSIM' predict --json - | sed -E 's/.*\"total_ns\":([0-9]+).*/\1/'
    done | sort -n -c 2>'$dir/sorted'; test -s '$dir/sorted'"
for refused in "1f1b -p4 -m4 --megatron=overlap_p2p" "gpipe -p4 -m4 --megatron=batch" "interleaved_1f1b -p4 -m4 --megatron=batch" "interleaved_1f1b -p4 -v2 -m3 --megatron=batch"; do
    # shellcheck disable=SC2086
    check "not Megatron's: $refused" exits 3 "$SWSIM" generate $refused
done

# ---- every schedule, of random sizes and costs ------------------------------------------------------------------

seed=${SWSIM_SEED:-$(date +%s)}
# sizes: lines "schedule ranks microbatches chunks F I W latency memory"
sizes()
{
    "$SWSIM" generate --help | sed -nE 's/^  ([a-z][a-z0-9_]+)  +[a-z].*/\1/p' | awk -v seed="$seed" '
        function below(n) { return int(rand() * n) }
        BEGIN { srand(seed) }
        { for (i = 0; i < 2; i++)
              print $1, 1 + below(6), 1 + below(12), below(4), 1 + below(9), 1 + below(9), 1 + below(9), below(4), below(9) }'
}
# one_size SCHEDULE ...: refused for a reason, or decided under every channel, and right where each edge has a channel
one_size()
{
    name=$1 memory=$9
    set -- -p"$2" -m"$3" --times="F=$5us,I=$6us,W=$7us" --chunks="$4" --latency="$8us"
    [ "$memory" -gt 0 ] && case $name in zb_?p | zbv_auto | v_*) set -- "$@" --memory="$memory" ;; esac
    [ "$name" = interleaved_1f1b ] && [ "$memory" -gt 4 ] && set -- "$@" --moe-overlap
    # shellcheck disable=SC2046
    set -- $(printf '%s\n' "$@" | grep -v -e '--chunks=0' -e '--latency=0us')
    "$SWSIM" generate "$name" "$@" >"$dir/grid.yaml" 2>"$dir/grid.err"
    code=$?
    [ $code = 0 ] || grep -q 'found .* expected' "$dir/grid.err" || { echo "generate $name $*: $code"; return 1; }
    [ $code = 0 ] || return 0
    made=$((made + 1))
    "$SWSIM" verify --p2p=all "$dir/grid.yaml" >"$dir/grid.out" 2>&1
    code=$?
    [ $code -le 1 ] && grep -qE '^. *edge  *proved' "$dir/grid.out" || { echo "$name $*: $code"; return 1; }
}
grid()
{
    made=0
    sizes >"$dir/sizes"
    while read -r size; do
        # shellcheck disable=SC2086
        one_size $size </dev/null || { echo "SWSIM_SEED=$seed"; return 1; }
    done <"$dir/sizes"
    [ "$made" -ge 10 ] || { echo "SWSIM_SEED=$seed: $made plans"; return 1; }
}
check "all schedules of random sizes are refused with a reason or right with a channel for each edge" grid

# A plan with the actions of a schedule that was found takes as long as its parameters, and as its text says.
span_of()
{
    "$SWSIM" predict -q "$1" | sed -n 's/^  total *//p'
}
found_alike()
{
    "$SWSIM" generate "$@" >"$dir/lists.yaml" && "$SWSIM" generate --brief "$@" >"$dir/brief.yaml" || return
    said=$(sed -n "s/.*Makespan \([0-9.]*\)\([a-z]*\)\..*/\1 \2/p" "$dir/lists.yaml")
    lists=$(span_of "$dir/lists.yaml") brief=$(span_of "$dir/brief.yaml")
    [ -n "$lists" ] && [ "$lists" = "$brief" ] && [ "${lists%% *}" = "$(printf %.1f "${said%% *}")" ] && return
    echo "$*: lists $lists, brief $brief, said $said"
    false
}
check "a schedule that is found for one stream of messages" found_alike zb_1p -p3 -m11 --times=F=3ms,I=2ms,W=1ms
check "... for slow messages" found_alike zb_2p -p4 -m4 --times=F=3ms,I=2ms,W=1ms --latency=1ms
check "... for a memory" found_alike zbv_auto -p6 -m14 --times=F=1ms,I=1ms,W=1ms --memory=15

"$SWSIM" generate 1f1b -p 2 -m 2 --megatron=batch > "$dir/megatron.yaml"
later()
{
    "$SWSIM" generate zb_h1 -p2 -m4 | "$SWSIM" export -f csv - >"$dir/passes.csv" &&
        exits 0 "$SWSIM" export -f csv --pytorch=2.15 "$dir/passes.csv" && grep -q WAIT_SEND "$dir/out" && ! grep warning "$dir/err" &&
        mv "$dir/out" "$dir/waits.csv" &&
        complains 0 'only a version from 2.15 on of PyTorch reads WAIT_SEND_F' "$SWSIM" export -f csv "$dir/waits.csv"
}
check "waits for a version that was asked for are not warned of" later
check "a CSV with waits that PyTorch does not know is told" says "no version of PyTorch reads WAIT_RECV_F" \
    "$SWSIM" export --format=csv "$dir/megatron.yaml"
"$SWSIM" generate dualpipe -p 2 -m 4 > "$dir/dualpipe.yaml"
check "and one of two copies of the model" says "2 copies of the model" "$SWSIM" export --format=csv "$dir/dualpipe.yaml"
done_testing

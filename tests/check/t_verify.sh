#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Verdicts through the front door: every plan of ours as it expects, the bug zoo, PyTorch's schedule,
# exit codes, limits, the JSON contract, witnesses.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/plans

for folder in "$plans"/*/; do
    ls "$folder"*.yaml >/dev/null 2>&1 || continue # traces
    check "plans/$(basename "$folder"): all verdicts as expected" \
        exits 0 "$SWSIM" verify --expect "$folder"*.yaml
done
check "a JSON plan is a plan" exits 0 "$SWSIM" verify --expect "$plans/examples/json_plan.json"
# One has 720,000 states without reduction.
small=$(ls "$plans"/bugs/*.yaml | grep -v torchrec_cache_map)
check "without reduction the verdicts of the small plans are the same" \
    exits 0 "$SWSIM" verify --no-reduction --expect $small "$plans"/deadlocks/modes_[abc].yaml
check "two thread groups, deeper data-flow: still proved" \
    exits 0 "$SWSIM" verify --driver=dataflow --max-depth=8 "$plans/reference/sparse_dist.yaml"
check "ten iterations instead of any number" \
    exits 0 "$SWSIM" verify --iterations=10 "$plans/reference/fused_sparse_dist.yaml"

broken=$plans/deadlocks/scenario1_broken.yaml
check "a violation exits with 1" exits 1 "$SWSIM" verify "$broken"
check "with --expect the same plan exits with 0" exits 0 "$SWSIM" verify --expect "$broken"
sed 's/deadlock: always/deadlock: some/' "$broken" >"$dir/wrong.yaml"
check "a wrong expectation exits with 1" exits 1 "$SWSIM" verify --expect "$dir/wrong.yaml"
check "a limit exits with 4" \
    exits 4 "$SWSIM" verify --no-reduction --limit=states=100 "$plans/reference/sparse_dist.yaml"
check "the story names who waits for what" \
    says "is at FillCache(1), waits for the CPU signal of UpdateRows(0)" "$SWSIM" verify "$broken"
check "what a drained pipeline leaves behind is named" \
    says "the message of Transfer(1) is left" "$SWSIM" verify "$plans/properties/refill_broken.yaml"
check "a wait for a cleared slot names both iterations" \
    says "Prepare(1) looks for iteration 0 in a slot that belongs to iteration 2" \
    "$SWSIM" verify --driver=clock "$plans/traps/slots_equal_depth_broken.yaml"
sed -e 's/eager_messages: {link: 1}/eager_bytes: {link: 1GiB}/' -e 's/bytes: 1MiB/bytes: 1KiB/' \
    -e '/^batches/d' "$plans/properties/refill_broken.yaml" >"$dir/credit.yaml"
check "more credit than can be tracked is refused" exits 3 "$SWSIM" verify "$dir/credit.yaml"
check "and says so" says "room for more messages of 1024 bytes" "$SWSIM" verify "$dir/credit.yaml"
sed 's/^ranks/batches: [3, 3]\nranks/' "$dir/credit.yaml" >"$dir/few.yaml"
check "but with an end of the data it suffices" exits 0 "$SWSIM" verify "$dir/few.yaml"
check "and the cycle" says "cycle: thread default -> thread default" "$SWSIM" verify "$broken"

for key in plan driver verdict iterations properties states transitions seconds peak_bytes witness blocked; do
    check "JSON has \"$key\"" says "\"$key\":" "$SWSIM" verify --json "$broken"
done
for suffix in txt json dot svg; do
    check "a witness as .$suffix" exits 1 "$SWSIM" verify --witness="$dir/w.$suffix" "$broken"
    check "is there" test -s "$dir/w.$suffix"
done

# Two threads push to one stream, and the other rank is waited for: a rank that went ahead would leave every order of pushes in it.
# Under data-flow the admissions order the collectives.
cat >"$dir/ahead.yaml" <<'EOF'
swplan: 1
ranks: 2
schedule:
  Reduce: {stage: 2, stream: main, thread_group: one, work: {collective: all_reduce, comm: world, bytes: 8B}}
  Update: {stage: 1, stream: main, thread_group: two}
  Send: {stage: 0, stream: main, thread_group: one, work: {collective: broadcast, comm: feed, bytes: 8B}}
intra_iter_deps: [[Update, Reduce]]
EOF
check "no rank goes ahead and fills its stream with choices" \
    exits 0 "$SWSIM" verify --driver=clock --limit=states=5000 "$dir/ahead.yaml"
check "admissions put collectives without dependences into one order" \
    prints 0 "any number of iterations and ranks.*by structure" "$SWSIM" verify --driver=dataflow --limit=states=1 "$dir/ahead.yaml"

# Two collectives, one behind the other, on two communicators and one thread: no search, however many
# ranks there are.
cat >"$dir/two.yaml" <<'EOF'
swplan: 1
name: two
ranks: 6
max_depth: 3
schedule:
  Spread: {stage: 0, stream: a, work: {collective: all_to_all, comm: rows, bytes: 1MiB}}
  Sum: {stage: 1, stream: b, work: {collective: all_reduce, comm: grads, bytes: 1MiB}}
intra_iter_deps: [[Sum, Spread]]
EOF
sed 's/^schedule/comms: {rows: [0, 1, 2, 3, 4, 5], grads: [0, 1, 2, 3, 4, 5]}\n&/' "$dir/two.yaml" >"$dir/named.yaml"
cat "$dir/two.yaml" - >"$dir/apart.yaml" <<'EOF'
comms: {low: [0, 1, 2], high: [3, 4, 5]}
rank_overrides:
  0: {schedule: {Sum: {work: {collective: all_reduce, comm: low, bytes: 1MiB}}}}
  1: {schedule: {Sum: {work: {collective: all_reduce, comm: low, bytes: 1MiB}}}}
  2: {schedule: {Sum: {work: {collective: all_reduce, comm: low, bytes: 1MiB}}}}
  3: {schedule: {Sum: {work: {collective: all_reduce, comm: high, bytes: 1MiB}}}}
  4: {schedule: {Sum: {work: {collective: all_reduce, comm: high, bytes: 1MiB}}}}
  5: {schedule: {Sum: {work: {collective: all_reduce, comm: high, bytes: 1MiB}}}}
EOF
# Both take turns, which data-flow keeps, or the line behind the first one blocks.
sed 's/work:/globally_ordered: true, &/' "$dir/two.yaml" >"$dir/ordered.yaml"
sed 's/^schedule:/ticket_at: iteration\n&/' "$dir/ordered.yaml" >"$dir/turns.yaml"
by_structure() { "$SWSIM" verify --limit=states=50000 "$@" >"$dir/out" && test "$(grep -c "by structure" "$dir/out")" -eq 2; }
any_ranks() { by_structure "$@" && test "$(grep -c "any number of iterations and ranks" "$dir/out")" -eq 2; }
these_ranks() { by_structure "$@" && ! grep -q "number of ranks" "$dir/out"; }
check "two collectives on two communicators need no search" any_ranks "$dir/two.yaml"
check "what can be in flight is a figure" \
    says '"in_flight":{"iterations_max":8,"bytes_max":41943040,"launch_queue":15}' "$SWSIM" verify --json --driver=clock "$srcdir/plans/examples/hello.yaml"
check "nor on 64 ranks" any_ranks --ranks=64 "$dir/two.yaml"
check "communicators with a list of ranks: proved for these" these_ranks "$dir/named.yaml"
check "so are ranks that differ in theirs" these_ranks "$dir/apart.yaml"
check "JSON says so, too" says '"ranks":"unbounded"' "$SWSIM" verify --json "$dir/two.yaml"
check "and the number where it counts" says '"ranks":6' "$SWSIM" verify --json "$dir/named.yaml"
check "in turns neither on any number of ranks" any_ranks "$dir/ordered.yaml"
check "in turns a line blocks" says "deadlock" "$SWSIM" verify --driver=dataflow --no-fix "$dir/turns.yaml"
check "on 16 ranks, too, which is found before the combinations of their first steps are" says "deadlock" \
    "$SWSIM" verify --driver=dataflow --no-fix --ranks=16 --limit=states=20000 "$dir/turns.yaml"

# A property asked for alone is no more proved than beside the others.
cat >"$dir/behind.yaml" <<'EOF'
swplan: 1
comms: {pair: [0, 1]}
threads:
  r0.main:
    - {collective: sum, comm: pair, stream: s}
    - {sync: stream, stream: s}
    - {launch: left, stream: s, writes: [grad]}
    - {launch: right, stream: t, writes: [grad]}
  r1.main:
    - {collective: max, comm: pair, stream: s}
EOF
check "a race that may come behind a mismatch is undecided" \
    exits 4 "$SWSIM" verify --property=race "$dir/behind.yaml"
check "an empty list of properties is not all" complains 2 "found ',,', expected items" "$SWSIM" verify --property=,, "$dir/behind.yaml"
check "and the reason is said" says "behind a mismatch" "$SWSIM" verify --property=race "$dir/behind.yaml"
check "also in JSON" says '"hidden":"behind a mismatch' "$SWSIM" verify --json --property=slot "$dir/behind.yaml"
cat >"$dir/drain.yaml" <<'EOF'
swplan: 1
schedule:
  Late: {stage: 1}
  Early: {stage: 0}
intra_iter_deps: [[Early, Late]]
EOF
check "a drain that a hang never reaches is undecided" \
    says "undecided *behind a deadlock" "$SWSIM" verify --driver=clock --property=drain "$dir/drain.yaml"
printf 'swplan: 1\nthreads: {r0.main: [{launch: k, stream: s}]}\n' >"$dir/one.yaml"
lacks_structure() { ! "$SWSIM" verify "$dir/one.yaml" | grep -q "by structure"; }
check "a host program is never proved by structure" lacks_structure
cat >"$dir/never_there.yaml" <<'EOF'
swplan: 1
queues: {q: 1}
threads:
  r0.a: [{put: q}, {launch: left, stream: s, writes: [x]}, {launch: right, stream: t, writes: [x]}]
  r0.b: [{put: q}]
EOF
check "a race that a hang may forestall is not always there" \
    says "race, in some interleavings" "$SWSIM" verify "$dir/never_there.yaml"
check "the hang is" says "deadlock, always" "$SWSIM" verify "$dir/never_there.yaml"

# What a dependence before the first iteration would call takes no lock either, and makes no stream wait: the two tasks are
# unordered in every run. With a legacy stream, too.
cat >"$dir/first.yaml" <<'EOF'
swplan: 1
driver: clock
machine: {launch_lock: true}
buffers: {w: {scope: shared}}
schedule:
  T0: {stream: s, thread_group: g0, work: {host: 1us}, writes: [w]}
  T1: {stream: s, thread_group: g1, work: {host: 1us}, reads: [w]}
inter_iter_deps: [[T0, T0, 1], [T1, T1, 1]]
EOF
{ grep -v '^machine' "$dir/first.yaml"; echo 'streams: {s: {legacy: true}}'; } >"$dir/first_legacy.yaml"
for plan in first first_legacy; do
    for search in --no-reduction --threads=1; do
        check "$plan: nothing is called for a dependence that is not there ($search)" \
            says "race, always" "$SWSIM" verify -n 1 --no-fix $search "$dir/$plan.yaml"
    done
done

# Whether every run violates a property is another search, and a limit may end it.
cat >"$dir/many.yaml" <<'EOF'
swplan: 1
threads:
  r0.a: [{host: 1us, writes: [x]}, {host: 1us}, {host: 1us}, {host: 1us}]
  r0.b: [{host: 1us, writes: [x]}, {host: 1us}, {host: 1us}, {host: 1us}]
  r0.c: [{host: 1us}, {host: 1us}, {host: 1us}]
EOF
few() { says "$1" "$SWSIM" verify --no-fix --no-reduction --limit=states=12 ${2-} "$dir/many.yaml"; }
check "a quantifier that a limit cuts short says so" few 'race, in some interleavings or all'
check "also in JSON" few '"maybe_always":\["race"\]' --json
check "one that is decided does not" says "race, always" "$SWSIM" verify --no-fix --no-reduction "$dir/many.yaml"
check "in JSON neither" says '"maybe_always":\[\]' "$SWSIM" verify --json --no-fix --no-reduction "$dir/many.yaml"
one_by_one()
{
    "$SWSIM" verify -q --no-fix --no-reduction --limit=time=200ms "$plans/reference/sparse_dist.yaml" "$dir/many.yaml" >"$dir/timed"
    cat "$dir/timed"
    [ "$(grep -c 'limit reached: time' "$dir/timed")" -eq 2 ] && grep -q "race, always" "$dir/timed"
}
check "the time of a limit is that of each plan and driver" one_by_one

# The size of a schedule hides nothing: a pass before the receive of its input.
for m in 8 32 64 128 512; do
    "$SWSIM" generate 1f1b -p 8 -m $m --comms | sed 's/ 1RECV_F3 \(.*\)1F3 / 1F3 1RECV_F3 \1/' >"$dir/late$m.yaml"
    check "1F1B with $m microbatches, a receive too late" \
        says "race, always: receive F3@1 from rank 0" "$SWSIM" verify -q --no-fix "$dir/late$m.yaml"
done
"$SWSIM" generate 1f1b -p 8 -m 512 --comms >"$dir/m512.yaml"
check "in order it is proved" exits 0 "$SWSIM" verify "$dir/m512.yaml"
sed 's/^programs:/machine: {sm_slots: 4}\nprograms:/' "$dir/m512.yaml" >"$dir/slots512.yaml"
check "where runs differ in too many ways races are undecided" \
    says "undecided *race: too many actions" "$SWSIM" verify --property=race "$dir/slots512.yaml"

# A message without a partner is named, with its place; hiding it is no repair.
"$SWSIM" generate 1f1b -p 2 -m 4 --comms | sed 's/ 0RECV_B2 / /; s/^programs:/p2p: {fifo: pair}\nprograms:/' >"$dir/lone.yaml"
check "a dropped receive is named" says "message, always: 1SEND_B2 (row 2, column [0-9]*) has no 0RECV_B2" \
    "$SWSIM" verify -q --no-fix "$dir/lone.yaml"
hides() { "$SWSIM" verify --fix-budget=300 "$dir/lone.yaml" | grep -q eager; }
offers_no_eager() { ! hides; }
check "eager messages are no repair of it" offers_no_eager

# Rank programs: each pass finds what it reads before it in its list, and none is missing.
lists() { printf '%s\n' "$@" >"$dir/lists.csv" && "$SWSIM" verify -q --no-fix "$dir/lists.csv"; }
check "B before F reads nothing" says "value, always: 0B0 (row 1, column 1) comes before 0F0" lists 0B0,0F0
check "B without F reads nothing" says "value, always: 0B0 (row 1, column 1) has no 0F0" lists 0B0
check "a W without I" says "value, always: 0W1 (row 1, column 4) has no 0I1" lists 0F0,0I0,0W0,0W1,0F1
check "a stage without a microbatch" says "value, always: row 1 has no 0B1" lists 0F0,0B0,0F1
check "a dropped message: its pass lacks it" says "value, always: 0B0 (row 1, column 3) has no 0RECV_B0" \
    lists 0F0,0SEND_F0,0B0 1RECV_F0,1F0,1B0
check "only forward passes are complete" exits 0 lists 0F0,0F1
fragment() { printf 'swplan: 1\nfragment: true\nprograms: [[%s]]\n' "$1" >"$dir/piece.yaml" && "$SWSIM" verify --no-fix "$dir/piece.yaml"; }
check "a piece is judged by what it has" says " proved " fragment 0B0
check "also for its order" says "0B0 (row 1, column 1) comes before 0F0" fragment "0B0, 0F0"

# Values and the serial order in the other forms.
uninitialised() { printf 'swplan: 1\n%s\nthreads: {r0.m: [{launch: a, stream: s, reads: [x]}, {launch: b, stream: s, writes: [x]}]}\n' "$1" >"$dir/host.yaml" && "$SWSIM" verify --no-fix "$dir/host.yaml"; }
check "a host program reads before it writes" says "value, always: a reads buffer x, which nothing has written" uninitialised ""
check "unless it comes from outside" exits 0 uninitialised "inputs: [x]"
unwritten() { printf 'swplan: 1\nthreads: {r0.m: [{launch: a, stream: s, reads: [x]}]}\n' >"$dir/host.yaml" && "$SWSIM" verify --json "$dir/host.yaml"; }
check "what no operation writes is assumed to come from outside" says "buffers that no operation writes hold values" unwritten
check "which is said where there is such a buffer" sh -c '! "$@" | grep -q "buffers that no operation"' sh \
    "$SWSIM" verify --json "$plans/properties/cpu_race_fixed.yaml"
# What CUDA leaves open of a copy with pageable memory.
pageable()
{
    printf 'swplan: 1\nschedule:\n' >"$dir/pageable.yaml"
    printf '  %s\n' "Copy: {stage: 0, stream: copies, reads: [data], writes: [batch], $1 work: {copy: $2, bytes: 1KiB, pageable: true}}" \
        "Read: {stage: 0, stream: main, thread_group: other, reads: [batch], work: {$3}}" >>"$dir/pageable.yaml"
    printf '%s\n' 'inputs: [data]' 'buffers: {data: {scope: shared, bytes: 1KiB}, batch: {scope: iteration, bytes: 1KiB}}' \
        'intra_iter_deps: [[Read, Copy]]' >>"$dir/pageable.yaml"
    "$SWSIM" verify --no-fix --property=race --driver=dataflow "$dir/pageable.yaml"
}
check "a copy to pageable memory may be back before it has ended" prints 1 'race, in some interleavings' pageable '' d2h 'host: 1us'
check "... unless its task waits" prints 0 proved pageable 'sync_after: stream,' d2h 'host: 1us'
pageable '' d2h 'host: 1us' >/dev/null
check "swrun cannot be made to come back early" complains 2 'a copy with pageable memory is back before it has ended' \
    sh -c '"$0" verify -q --no-fix --property=race --driver=dataflow --witness="$2/early.db" "$2/pageable.yaml"; "$1" --replay="$2/early.db"' \
    "$SWSIM" "$SWRUN" "$dir"
check "a copy from it: the device work behind it waits for it" prints 0 proved pageable '' h2d 'axpy: {elements: 16}'
check "without iterations there is no serial run" says '"serial":"not applicable"' \
    "$SWSIM" verify --json "$plans/properties/cpu_race_fixed.yaml"
check "behind a race values are undecided" says '"value":"undecided"' \
    "$SWSIM" verify --json --no-fix "$plans/properties/cpu_race_broken.yaml"
check "asked alone, too" says "behind a race" "$SWSIM" verify --property=value "$plans/properties/cpu_race_broken.yaml"
sed '/^staleness/d' "$plans/properties/staleness.yaml" >"$dir/stale.yaml"
check "a stale read says how old it is" says "reads buffer table 1 iteration old; serial: 0" \
    "$SWSIM" verify --no-fix "$dir/stale.yaml"

if [ -n "${SWSIM_SHARED-}" ] && [ -d "$SWSIM_SHARED/zoo" ]; then
    check "the bug zoo: exactly the expected verdicts" \
        exits 0 "$SWSIM" verify --expect "$SWSIM_SHARED"/zoo/*.yaml
    check "PyTorch's zb1p schedule with communication is proved" says "proved" \
        "$SWSIM" verify "$SWSIM_SHARED/data/pytorch/zb1p_2rank_2stagep_comms.csv"
    check "and without, in both dialects" exits 0 "$SWSIM" verify \
        "$SWSIM_SHARED/data/pytorch/zb1p_2rank_2stagep_compute.csv" \
        "$SWSIM_SHARED/data/pytorch/zb1p_2rank_2stagep_compute.olddialect.csv"
else
    skip "no shared data beside the checkout: bug zoo and PyTorch schedules"
fi

# Recorded jobs, whose threads hand their work on by flags: DLRM on 2 ranks, FSDP with tensor parallelism on 4, and FSDP2 on 2.
recordings=${SWSIM_SHARED:-$srcdir/../shared}/reviews/performance/recordings
decided()
{
    gzip -dc "$recordings/$1.yaml.gz" >"$dir/$1.yaml" && prints 0 ' except ' "$SWSIM" verify --no-fix --limit=states="$2" "$dir/$1.yaml"
}
if [ -r "$recordings/dlrm.yaml.gz" ]; then
    check "TorchRec's DLRM, recorded on 2 ranks, in few states" decided dlrm 100
    check "FSDP with tensor parallelism, recorded on 4 ranks, in few states" decided fsdptp 100
    check "FSDP2, recorded on 2 ranks, in few states" decided fsdp2 1000
else
    skip "no recordings of jobs beside the checkout"
fi
# A backward pass before its forward pass is told by that; a long story of a ring begins with the ring.
printf '0B0,0F0,0F1,0B1\n1F0,1B0,1F1,1B1\n' >"$dir/backwards.csv"
check "a backward pass before its forward pass" sh -c "'$SWSIM' verify '$dir/backwards.csv' 2>&1 |
    grep -qF 'rank 0 (row 1) has 0B0 at column 1 before 0F0 at column 2'"
"$SWSIM" generate 1f1b -p 4 -m 16 --comms |
    sed 's/^\(  2: \)2RECV_F0 2F0/\12RECV_B0 2RECV_F0 2F0/' >"$dir/ring.yaml"
check "a long story begins with its ring" sh -c "'$SWSIM' verify --no-shorten '$dir/ring.yaml' |
    sed -n 3,12p | grep -q '^  cycle: '"
# Options that have no effect on a plan are refused, by every verb alike.
host="$plans/examples/host_program.yaml" piped="$plans/examples/hello.yaml"
for verb in verify lower; do
    for option in --iterations=3 --max-depth=2 --driver=clock; do
        check "$verb: no ${option%=*} of host programs" complains 2 \
            "found ${option%=*}, but only plans of the pipeline form" "$SWSIM" $verb $option "$host"
    done
    check "$verb: no depth under the clock driver" complains 2 'only data-flow has it' \
        "$SWSIM" $verb --driver=clock --max-depth=2 "$piped"
    check "$verb: both of pipelines" exits 0 "$SWSIM" $verb --driver=dataflow -n 2 --max-depth=2 "$piped"
done
check "one step is no steps" sh -c "'$SWSIM' verify --no-fix '$plans/faults/flag_broken.yaml' | grep -q 'in 1 step  1 state '"
sed 's/^ranks: .*/ranks: 4096/' "$plans/examples/two_ranks.yaml" >"$dir/ranks.yaml"
check "4,096 ranks are proved without a state" exits 0 "$SWSIM" verify --quiet "$dir/ranks.yaml"
check "and lowered" exits 0 "$SWSIM" lower --quiet "$dir/ranks.yaml"
check "where a state is needed it is too large" complains 3 'more than 2 GiB' "$SWSIM" verify --no-reduction "$dir/ranks.yaml"
# Ranks have data for different numbers of iterations.
printf '%s\n' 'swplan: 1' 'name: uneven' 'ranks: 2' 'batches: [0, 3]' 'schedule: {A: {stage: 0}, B: {stage: 1}}' \
    'intra_iter_deps: [[B, A]]' >"$dir/uneven.yaml"
says_iterations()
{
    sed "s/^batches.*/batches: $1/" "$dir/uneven.yaml" >"$dir/data.yaml"
    "$SWSIM" verify --driver=clock "$dir/data.yaml" >"$dir/out" && "$SWSIM" verify --driver=clock --json "$dir/data.yaml" >"$dir/json" &&
        grep -q "proved for $2, except race: no task declares what it reads or writes  " "$dir/out" && grep -q "\"iterations\":$3," "$dir/json"
}
check "a verdict says for how many iterations ranks have data" says_iterations '[0, 3]' '0 to 3 iterations' 3
check "... whichever rank has more" says_iterations '[5, 1]' '1 to 5 iterations' 5
check "... and of one it says so" says_iterations '[1, 1]' '1 iteration' 1
# Two ranks show what many equal ones violate: a search of 24 alone finds only a story of thousands of steps.
cat >"$dir/many.yaml" <<'EOF'
swplan: 1
name: many
ranks: 24
max_depth: 4
schedule:
  H2D: {stage: 0, stream: memcpy}
  Splits: {stage: 1, stream: data_dist, work: {collective: all_to_all, comm: sparse, bytes: 1KiB}}
  Ids: {stage: 1, stream: data_dist, work: {collective: all_to_all, comm: sparse, bytes: 1MiB}}
  Lookup: {stage: 2}
  Out: {stage: 2, stream: dist, work: {collective: all_to_all, comm: emb, bytes: 4MiB}}
  Back: {stage: 2}
  GradOut: {stage: 2, stream: dist, work: {collective: all_to_all, comm: emb, bytes: 4MiB}}
intra_iter_deps: [[Splits, H2D], [Ids, Splits], [Lookup, Ids], [Out, Lookup], [Back, Out], [GradOut, Back]]
EOF
# steps_of RANKS: those to the mismatch, as it was found.
steps_of()
{
    "$SWSIM" verify --quiet --no-fix --driver=dataflow --ranks="$1" "$dir/many.yaml" >"$dir/out"
    grep -q 'mismatch, in some interleavings[^:]*: .*Splits' "$dir/out" && sed -n 's/.* in \([0-9]*\) steps.*/\1/p' "$dir/out"
}
has_story_of_two()
{
    two=$(steps_of 2) && many=$(steps_of 24) && [ "$many" -gt "$two" ] && [ "$many" -le $((12 * 2 * two)) ]
}
check "24 ranks mismatch as two do" has_story_of_two

# crowd EARLY: forty threads meet at a barrier; thread t7 writes before it, t39 reads behind it, or too early.
crowd()
{
    awk -v early="$1" 'BEGIN {
        print "swplan: 1\nbuffers: {x: {}}\nthreads:"
        for (i = 0; i < 40; i++)
            printf "  r0.t%d: [%s%s%s]\n", i, i == 7 || i == early ? "{compute: " (i == 7 ? "w, writes" : "r, reads") ": [x]}, " : "",
                   "{barrier: b}", i == 39 && early != 39 ? ", {compute: r, reads: [x]}" : "" }' >"$dir/crowd.yaml"
}
crowd_is()
{
    crowd "$1" && exits "$2" "$SWSIM" verify "$dir/crowd.yaml" && said "$3"
}
check "a barrier of many threads orders what is before it and behind it" crowd_is none 0 'proved'
check "but not what is before it on both sides" crowd_is 39 1 'race, always'
sed '/r0.t5:/!s/{barrier: b}/{barrier: b}, {barrier: b}/' "$dir/crowd.yaml" >"$dir/once.yaml"
check "who does not come is named" exits 1 "$SWSIM" verify --no-fix "$dir/once.yaml"
check "in the story" said 'thread t0 .*waits for arrival 2 of r0.t5 at barrier b'
check "what threads do alike is told once" said '^ *87-152  *the same 2 lines, 33 times more'

# named WORK COMMS: eight equal ranks, whose plan names a rank that fewer ranks do not have.
named()
{
    cat >"$dir/named.yaml" <<PLAN
swplan: 1
ranks: 8
comms: {$2}
schedule:
  A: {stage: 0, stream: a, time: 1ms, work: {collective: $1, comm: all, bytes: 1KiB}}
  B: {stage: 0, stream: a, time: 1ms, work: {collective: all_reduce, comm: all, bytes: 1KiB}}
PLAN
    prints 0 'proved for any number of iterations' "$SWSIM" verify "$dir/named.yaml" &&
        ! grep -q 'and ranks' "$dir/out" && exits 0 "$SWSIM" predict "$dir/named.yaml"
}
check "a root that two ranks do not have" named "broadcast, root: 5" "all: all"
check "a communicator whose members two ranks do not have, used or not" named all_reduce "all: all, pair: [0, 7]"
done_testing

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Words of a verdict beside "proved": warnings about names, work without accesses; --werror; errors in JSON.
. "${srcdir:-.}/tests/tap.sh"

plans="$srcdir/plans"

# plan FILE: standard input as a plan.
plan()
{
    { echo "swplan: 1"; cat; } >"$dir/$1"
}
# warns PLAN POSITION TEXT: a warning at LINE:COLUMN says this, and the verdict line counts it.
warns()
{
    "$SWSIM" verify --no-fix "$dir/$1" >"$dir/out" 2>"$dir/err"
    cat "$dir/out" "$dir/err"
    grep -qF -- "$1:$2: warning: $3" "$dir/err"
}
counted()
{
    grep -Eq 'proved .*except .*[0-9]+ warnings?' "$dir/out"
}
# misspelt PLAN NAME MISSPELT: with the first use of the name misspelt the plan is not plainly proved.
misspelt()
{
    sed "0,/$2/s//$3/" "$plans/$1" >"$dir/misspelt.yaml"
    "$SWSIM" verify --json --no-fix "$dir/misspelt.yaml" >"$dir/out" 2>"$dir/err"
    cat "$dir/out" "$dir/err"
    ! grep '"verdict":"proved","but_for":\[\]' "$dir/out"
}
quiet()
{
    exits 0 "$SWSIM" "$@" && ! grep -q warning "$dir/err"
}

# ---- names ---------------------------------------------------------------------------------------

plan reads.yaml <<'PLAN'
schedule:
  Copy: {stage: 0, stream: memcpy, writes: [batch]}
  Work: {stage: 1, reads: [bach]}
intra_iter_deps: [[Work, Copy]]
PLAN
check "a buffer that nobody writes" warns reads.yaml 4:28 \
    'buffer "bach" is read and never written; did you mean "batch"?'
check "the verdict says so" grep -q '^  value, always' "$dir/out"
check "with the line" grep -qF '  Work: {stage: 1, reads: [bach]}' "$dir/err"
check "and a caret" grep -q '^                             ^$' "$dir/err"

sed 's/bach/batch/; s/writes: .batch.//; /^schedule/i inputs: [batch]' "$dir/reads.yaml" >"$dir/input.yaml"
sed 's/bach/pictures/' "$dir/reads.yaml" >"$dir/outside.yaml"
check "one that is near no other one" warns outside.yaml 4:28 \
    'buffer "pictures" is read and never written; list it under "inputs" if its values come from outside the plan, as those of a batch do'
check "an input needs no write" quiet verify "$dir/input.yaml"

plan weights.yaml <<'PLAN'
driver: clock
schedule:
  Train: {stage: 0, reads: [weights], writes: [grads]}
  Update: {stage: 0, stream: update, reads: [grads], writes: [weights]}
intra_iter_deps: [[Update, Train]]
inputs: [weights]
PLAN
check "weights that each iteration has of its own" warns weights.yaml 4:29 \
    'buffer "weights" is an input that is written, and not under "buffers"'
check "are counted" counted
for scope in iteration shared; do
    { cat "$dir/weights.yaml"; echo "buffers: {weights: {scope: $scope}}"; } >"$dir/declared.yaml"
    "$SWSIM" verify --no-fix "$dir/declared.yaml" >"$dir/out" 2>"$dir/err"
    check "with scope $scope nothing is asked" sh -c "! grep -q warning '$dir/err'"
done
check "and shared ones race" grep -q '  race, always: Update(0) accesses buffer weights' "$dir/out"

plan stream.yaml <<'PLAN'
schedule:
  A: {stage: 0, stream: compute, writes: [x]}
  B: {stage: 0, stream: compute, reads: [x]}
  C: {stage: 0, stream: comptue, reads: [x]}
intra_iter_deps: [[B, A], [C, A]]
PLAN
check "a stream that is used once" warns stream.yaml 5:25 'stream "comptue" is used once; did you mean "compute"?'
check "the verdict says so" counted

plan series.yaml <<'PLAN'
schedule:
  A: {stage: 0, stream: s1, writes: [x1]}
  B: {stage: 0, stream: s1, reads: [x1], writes: [x2]}
  C: {stage: 0, stream: fwd, reads: [x2]}
  D: {stage: 0, stream: bwd, reads: [x2]}
intra_iter_deps: [[B, A], [C, B], [D, B]]
PLAN
check "a series of names is none of misspellings" quiet verify "$dir/series.yaml"

plan events.yaml <<'PLAN'
threads:
  r0.main:
    - {launch: forward, stream: a, writes: [x]}
    - {record: fwd_done, stream: a}
    - {wait: fwd_don, stream: b}
    - {sync: event, event: nope}
    - {launch: other, stream: b, writes: [y]}
PLAN
check "an event that nobody records" warns events.yaml 6:14 \
    'event "fwd_don" is waited for and never recorded: nothing waits; did you mean "fwd_done"?'
check "nor this one, which no other is like" grep -qF '7:28: warning: event "nope" is waited for' "$dir/err"
check "the verdict counts both" grep -q 'except 2 warnings' "$dir/out"

plan stays.yaml <<'PLAN'
threads:
  r0.a: [{repeat: 2, body: [{signal: ready}, {signal: epoch, value: iteration + 1}, {signal: once}]}, {signal: start}]
  r0.b: [{repeat: 2, body: [{await: ready}, {await: epoch, at_least: iteration + 1}, {await: start}]}, {await: once}]
PLAN
check "a flag that stays set in a repeat" warns stays.yaml 3:38 'flag "ready" is set and awaited in a repeat and stays set'
plan scoped.yaml <<'PLAN'
flags: {ready: {scope: iteration}}
threads:
  r0.a: [{repeat: 3, body: [{signal: ready}]}]
  r0.b: [{repeat: 3, body: [{await: ready}]}]
PLAN
check "... but not one of each iteration" sh -c "'$SWSIM' verify '$dir/scoped.yaml' 2>'$dir/err' && ! test -s '$dir/err'"
plan flags.yaml <<'PLAN'
threads:
  r0.main:
    - {await: ready}
  r0.other:
    - {signal: raedy}
PLAN
check "a flag that nobody sets" warns flags.yaml 4:15 'flag "ready" is awaited and never set; did you mean "raedy"?'

plan buffers.yaml <<'PLAN'
schedule: {A: {stage: 0, writes: [x]}}
buffers: {x: {bytes: 1KiB}, spare: {bytes: 1KiB}}
PLAN
check "a buffer that is declared only" warns buffers.yaml 3:29 'buffer "spare" is declared and not used'

plan comms.yaml <<'PLAN'
ranks: 2
comms: {dp: [0, 1]}
schedule:
  A: {stage: 0, work: {collective: all_reduce, comm: dp}, writes: [x]}
  B: {stage: 0, work: {collective: all_reduce, comm: tp}, writes: [y]}
PLAN
check "a communicator that is not declared" warns comms.yaml 6:54 'communicator "tp" is not under "comms"'

plan default.yaml <<'PLAN'
schedule:
  A: {stage: 0, stream: copy, writes: [x]}
  B: {stage: 0, stream: default, reads: [x]}
intra_iter_deps: [[B, A]]
PLAN
check "a stream called default" warns default.yaml 4:25 'stream "default" is a stream like the others'

plan legacy.yaml <<'PLAN'
streams: {default: {legacy: true}}
schedule:
  A: {stage: 0, stream: copy, writes: [x]}
  B: {stage: 0, stream: default, reads: [x]}
intra_iter_deps: [[B, A]]
PLAN
check "is none to warn of where it is the legacy stream" quiet verify "$dir/legacy.yaml"
plan declared.yaml <<'PLAN'
streams: {copi: {legacy: true}}
schedule: {A: {stage: 0, stream: copy, writes: [x]}}
PLAN
check "a stream that is declared only" warns declared.yaml 2:11 'stream "copi" is declared and not used; did you mean "copy"?'

plan groups.yaml <<'PLAN'
schedule:
  A: {stage: 0, thread_group: loader, writes: [x]}
  B: {stage: 0, thread_group: laoder, reads: [x]}
intra_iter_deps: [[B, A]]
PLAN
check "a thread group that is used once" warns groups.yaml 4:31 'thread group "laoder" is used once; did you mean "loader"?'

# A misspelt name in a plan that is proved.
check "a misspelt buffer" misspelt examples/hello.yaml '\[input\]' '[inptu]'
check "a misspelt read" misspelt examples/hello.yaml 'reads: \[output\]' 'reads: [outptu]'
check "a misspelt stream" misspelt torchrec/sparse_dist.yaml 'stream: data_dist' 'stream: data_dits'
# never_plain PLAN...: whatever plan loses a letter of the first buffer that is read, or of the stream that is
# named last, is not plainly proved, if it was; a stream of one task may be called anything.
never_plain()
{
    seen=0
    for plan in "$@"; do
        "$SWSIM" verify --json --no-fix --limit=time=2s "$plan" >"$dir/right.out" 2>/dev/null || continue
        for edit in '0,/reads: \[\([a-z]\)[a-z]\([a-z][a-z]\)/s//reads: [\1\2/' \
            '0,/wait: \([a-z]\)[a-z]\([a-z][a-z]\)/s//wait: \1\2/' \
            '0,/await: \([a-z]\)[a-z]\([a-z][a-z]\)/s//await: \1\2/'; do
            grep -v '^#' "$plan" >"$dir/bare.yaml"
            sed "$edit" "$dir/bare.yaml" >"$dir/wrong.yaml"
            cmp -s "$dir/bare.yaml" "$dir/wrong.yaml" && continue
            "$SWSIM" verify --json --no-fix --limit=time=2s "$dir/wrong.yaml" >"$dir/wrong.out" 2>/dev/null
            grep -q '"verdict":"proved","but_for":\[\]' "$dir/wrong.out" && echo "plainly proved: $plan, $edit"
            seen=$((seen + 1))
        done
    done
    echo "$seen plans"
    test "$seen" -ge 60
}
never_plain "$plans"/*/*.yaml >"$dir/never"
check "misspelt names in all plans that are proved" sh -c "cat '$dir/never'; ! grep plainly '$dir/never'"
check "of which there are many" sh -c "test \$(grep -o '^[0-9]*' '$dir/never') -ge 60"
check "a misspelt event" misspelt examples/host_program.yaml 'wait: ' 'wait: x'

# ---- accesses ------------------------------------------------------------------------------------

plan none.yaml <<'PLAN'
schedule: {H2D: {stage: 0, stream: m}, F: {stage: 1}}
PLAN
plan part.yaml <<'PLAN'
schedule: {H2D: {stage: 0, stream: m, writes: [b]}, F: {stage: 1, reads: [b]}, G: {stage: 1, stream: g}}
intra_iter_deps: [[F, H2D]]
PLAN
check "nothing declared" prints 0 'proved for any number of iterations and ranks, except race: no task declares what it reads or writes' "$SWSIM" verify "$dir/none.yaml"
check "is no race that was asked for" prints 0 '  proved     for any' "$SWSIM" verify --property=deadlock "$dir/none.yaml"
check "in JSON" prints 0 '"verdict":"proved","but_for":\["race: no task declares what it reads or writes"\]' "$SWSIM" verify --json "$dir/none.yaml"
check "the coverage in JSON" said '"coverage":{"unit":"tasks","all":2,"with_accesses":0,"buffers":0,"not_asked":\['
check "partly declared" prints 0 'proved for any number of iterations and ranks, except race: 2 of 3 tasks declare accesses' "$SWSIM" verify "$dir/part.yaml"
check "in yellow" prints 0 '33mproved for .*, except race: 2 of 3 tasks' "$SWSIM" verify --color=always "$dir/part.yaml"
check "in JSON" prints 0 '"but_for":\["race: 2 of 3 tasks declare accesses"\]' "$SWSIM" verify --json "$dir/part.yaml"
check "--require=accesses: partly declared" complains 1 'part.yaml:2:[0-9]*: error: task G declares neither reads nor writes' "$SWSIM" verify --require=accesses "$dir/part.yaml"
check "--require=accesses: nothing declared" complains 1 '0 of 2 tasks declare what they access' "$SWSIM" verify --require=accesses "$dir/none.yaml"
check "--require=accesses: all declared" exits 0 "$SWSIM" verify --require=accesses "$plans/examples/hello.yaml"
check "coverage is not required" exits 0 "$SWSIM" verify --expect "$dir/part.yaml"
plan covered.yaml <<'PLAN'
expect: {coverage: all}
threads:
  r0.a:
    - repeat: 3
      body:
        - {launch: k, stream: s, writes: [x]}
        - {launch: l, stream: s}
        - {launch: m, stream: s, body: [{compute: c, reads: [x]}]}
PLAN
check "expect: {coverage: all} is expected" complains 1 'covered.yaml:8:[0-9]*: error: launch l declares neither' "$SWSIM" verify --expect "$dir/covered.yaml"
check "once for all iterations" test "$(grep -c 'launch l declares' "$dir/err")" -eq 1
check "a kernel with steps is not counted beside them" said '6 of 9 operations declare'
check "else not" exits 0 "$SWSIM" verify "$dir/covered.yaml"
check "it is kept" prints 0 'expect: {coverage: all}' "$SWSIM" export --format=yaml "$dir/covered.yaml"
check "no other word" complains 3 'expected all' sh -c "sed 's/coverage: all/coverage: most/' '$dir/covered.yaml' | '$SWSIM' verify -"
check "actions have accesses by their meaning" prints 0 '"coverage":{"unit":"actions","all":\([0-9]*\),"with_accesses":\1,' \
    "$SWSIM" verify --json "$plans/examples/gpipe.yaml"
check "what was not asked for" prints 0 '"not_asked":\["message","mismatch","race",' "$SWSIM" verify --json --property=deadlock "$dir/part.yaml"
check "all declared is plain" prints 0 '"verdict":"proved","but_for":\[\]' "$SWSIM" verify --json "$plans/examples/hello.yaml"

# ---- buffers across iterations, CPU tasks ---------------------------------------------------------

plan weights.yaml <<'PLAN'
buffers: {grads: {scope: shared}}
schedule:
  Load: {stage: 0, stream: copies, time: 1ms, writes: [batch]}
  Forward: {stage: 1, time: 1ms, reads: [batch, weights], writes: [act]}
  Backward: {stage: 1, time: 2ms, reads: [act], writes: [grads]}
  Step: {stage: 1, time: 1ms, reads: [grads], writes: [weights]}
intra_iter_deps: [[Forward, Load], [Backward, Forward], [Step, Backward]]
PLAN
check "a buffer that the last iteration wrote" complains 1 'buffer "weights" is not under "buffers", where others are: .* Forward (line 5) does not see what Step (line 7) left' \
    "$SWSIM" verify --no-fix "$dir/weights.yaml"
check "to declare it is a repair" says 'buffer weights: scope shared, one for all iterations' "$SWSIM" verify --fix="$dir/mended.yaml" "$dir/weights.yaml"
check "which is proved" prints 0 ' proved ' "$SWSIM" verify --no-fix "$dir/mended.yaml"
sed 's/stage: 1, time: 1ms, reads: .grads/stage: 1, stream: opt, time: 1ms, reads: [grads/' "$dir/weights.yaml" >"$dir/two.yaml"
check "beside another repair" says 'buffer weights: scope shared, one for all iterations' "$SWSIM" verify --fix="$dir/mended.yaml" "$dir/two.yaml"
check "both are needed" said 'and add the dependence'
check "and proved" prints 0 ' proved ' "$SWSIM" verify --no-fix "$dir/mended.yaml"
sed '/^buffers/d; s/, weights]/]/; s/writes: .weights/writes: [new/' "$dir/weights.yaml" >"$dir/none_declared.yaml"
check "no buffer crosses" prints 0 '"warnings":\[\]' "$SWSIM" verify --json --no-fix "$dir/none_declared.yaml"
plan guard.yaml <<'PLAN'
buffers: {grads: {scope: shared}}
schedule:
  Fill: {stage: 0, stream: copies, time: 1ms, writes: [pin]}
  Use: {stage: 1, time: 1ms, reads: [pin], writes: [grads]}
intra_iter_deps: [[Use, Fill]]
inter_iter_deps: [[Fill, Use]]
PLAN
check "a dependence between iterations guards one buffer" complains 0 'Fill (line 4) does not see what Use (line 5) left' "$SWSIM" verify --no-fix "$dir/guard.yaml"

plan cpu.yaml <<'PLAN'
schedule:
  Load: {stage: 0, host_time: 5ms, writes: [batch]}
  Sort: {stage: 0, work: {host: 5ms}, writes: [rows]}
  Forward: {stage: 1, time: 1ms, reads: [batch, rows], host_time: 10us}
intra_iter_deps: [[Forward, Load], [Forward, Sort]]
PLAN
check "a task with CPU time alone" complains 0 'task Load has CPU time and neither stream, time nor work: .* "work: {host: 5ms}"' "$SWSIM" verify --no-fix "$dir/cpu.yaml"
check "no other" test "$(grep -c ': warning: ' "$dir/err")" -eq 1
sed -i 's/Sort: {stage: 0,/& thread_group: sorter,/' "$dir/cpu.yaml"
check "it is drawn on its thread" sh -c "'$SWSIM' render '$dir/cpu.yaml' -o '$dir/cpu.dot' 2>/dev/null &&
    sed -n '/label=\"thread default/,/}/p' '$dir/cpu.dot' | grep -q 'Load' &&
    sed -n '/label=\"thread sorter/,/}/p' '$dir/cpu.dot' | grep -q 'Sort'"

# ---- dead writes ---------------------------------------------------------------------------------

plan dead.yaml <<'PLAN'
threads:
  r0.a:
    - {launch: make, stream: s, writes: [x]}
    - {launch: fill, stream: s, writes: [x]}
    - {launch: use, stream: s, reads: [x]}
PLAN
check "a dead write" complains 0 'dead.yaml:4:7: warning: what make (line 4) writes to buffer x is overwritten by fill (line 5)' \
    "$SWSIM" verify "$dir/dead.yaml"
check "casts no doubt on the proof" said ' proved  '
check "in JSON" prints 0 '{"kind":"dead_write","file":".*dead.yaml","line":4' "$SWSIM" verify --json "$dir/dead.yaml"
# alive NAME EDIT: with the edit of sed there is none.
alive()
{
    sed "$2" "$dir/dead.yaml" >"$dir/alive.yaml"
    check "$1" prints 0 '  proved  ' "$SWSIM" verify --quiet "$dir/alive.yaml"
    check "is no dead write" test ! -s "$dir/err"
}
alive "one that adds" 's/fill, stream: s, writes/fill, stream: s, reads: [x], writes/'
alive "a buffer that nothing reads" '/use/d'
alive "two buffers" 's/make, stream: s, writes: .x/make, stream: s, writes: [z/'
alive "a read between them" '/fill/i\    - {launch: look, stream: s, reads: [x]}'
alive "an operator of a recording may read what it writes" "5s/fill,/fill, at: 'train.py:9',/"
plan dead_loop.yaml <<'PLAN'
threads:
  r0.a:
    - repeat: 3
      body:
        - {launch: fill, stream: s, writes: [x]}
    - {launch: use, stream: s, reads: [x]}
PLAN
check "a dead write of each iteration but the last, told once" complains 0 'what fill(0) (line 6) writes .* overwritten by fill(1) (line 6)' \
    "$SWSIM" verify "$dir/dead_loop.yaml"
check "once" test "$(grep -c ': warning: ' "$dir/err")" -eq 1
plan dead_task.yaml <<'PLAN'
schedule:
  Clear: {stage: 0, writes: [g]}
  Fill: {stage: 0, writes: [g]}
  Use: {stage: 0, reads: [g]}
intra_iter_deps: [[Fill, Clear], [Use, Fill]]
PLAN
check "a dead write of a task" complains 0 'what Clear (line 3) writes to buffer g is overwritten by Fill (line 4)' "$SWSIM" verify "$dir/dead_task.yaml"
plan dead_between.yaml <<'PLAN'
schedule:
  Get: {stage: 0, writes: [g]}
  Look: {stage: 0, reads: [g]}
  Put: {stage: 0, writes: [g]}
buffers: {g: {scope: shared}}
intra_iter_deps: [[Look, Get], [Put, Look]]
inter_iter_deps: [[Get, Put]]
PLAN
check "between iterations" complains 0 'what Put (line 5) writes to buffer g is overwritten by Get (line 3)' "$SWSIM" verify "$dir/dead_between.yaml"

# ---- options -------------------------------------------------------------------------------------

check "--werror: warnings" exits 1 "$SWSIM" verify --werror "$dir/stream.yaml"
check "--werror: no accesses" exits 1 "$SWSIM" verify --werror "$dir/none.yaml"
check "--werror: a plain proof" exits 0 "$SWSIM" verify --werror "$plans/examples/hello.yaml"
check "predict warns" complains 0 'warning: stream "comptue"' "$SWSIM" predict -n 20 "$dir/stream.yaml"
check "predict --werror" exits 1 "$SWSIM" predict --werror -n 20 "$dir/stream.yaml"
check "swrun warns" complains 0 'warning: stream "comptue"' "$SWRUN" -n 5 "$dir/stream.yaml"
check "swrun --werror" exits 1 "$SWRUN" --werror -n 5 "$dir/stream.yaml"
check "-q: no warnings" quiet verify -q "$dir/stream.yaml"
check "but the verdict counts them" counted
for command in "$SWSIM verify" "$SWSIM predict -n 20" "$SWRUN -n 5"; do
    check "${command##*/}: warnings in JSON" prints 0 \
        '"warnings":\[{"kind":"similar_name","file":".*stream.yaml","line":5,"column":25,"text":"stream ' \
        $command --json "$dir/stream.yaml"
done

# ---- errors in JSON ------------------------------------------------------------------------------

plan bad.yaml <<'PLAN'
schedule: {A: {stage: 0, streem: x}}
PLAN
for verb in verify predict "render -o x.svg" schedule stages lower export tune; do
    check "${verb%% *}: errors in JSON" prints 3 \
        '^{"schema":"swsim.errors/1","errors":\[{"file":".*bad.yaml","line":2,"column":26,"text":"found unknown key ' \
        "$SWSIM" $verb --json "$dir/bad.yaml"
done
check "swrun: errors in JSON" prints 3 '^{"schema":"swsim.errors/1","errors":\[{"file":".*bad.yaml","line":2,' "$SWRUN" --json "$dir/bad.yaml"
check "generate: errors in JSON" prints 2 '^{"schema":"swsim.errors/1","errors":\[{"file":null,' "$SWSIM" generate --json nothing -p 2 -m 2
check "runs: errors in JSON" prints 2 '^{"schema":"swsim.errors/1","errors":\[{"file":null,' "$SWSIM" runs --json "$dir/none.db"
check "compare: errors in JSON" prints 2 '^{"schema":"swsim.errors/1","errors":\[{"file":null,' "$SWSIM" compare --json "$dir/none.db"
check "an option that is none" prints 2 '^{"schema":"swsim.errors/1","errors":\[{"file":null,"line":null,"column":null,"text":"unknown option' \
    "$SWSIM" verify --bogus --json "$dir/part.yaml"
check "of several plans the bad one" prints 3 '^{"schema":"swsim.errors/1","errors":' "$SWSIM" verify --json "$dir/part.yaml" "$dir/bad.yaml" "$dir/none.yaml"
check "the others are judged" test "$(grep -c '"verdict":"proved"' "$dir/out")" -eq 4

# PyTorch's table of 1F1B is off by one on the last rank.
printf '0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\n1F0,1F1,1B0,1F2,1B1,1F3,1B2,1B3\n' >"$dir/off.csv"
check "1F1B off by one on the last rank" sh -c "'$SWSIM' verify '$dir/off.csv' 2>&1 |
    grep -qF 'off.csv:2:5: warning: the last rank (row 2) does 1F1 before its first backward'"
printf '0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n' >"$dir/right.csv"
check "1F1B as it should be" sh -c "! '$SWSIM' verify '$dir/right.csv' 2>&1 | grep -q warning"

# An edge of p2p that no message takes: of lists, of rules, of a schedule that is found.
edges()
{
    printf 'swplan: 1\ntimes: {F: 1ms, B: 2ms, I: 1ms, W: 1ms}\np2p: {edges: [%s]}\n%s\n' "$1" "$2" >"$dir/edges.yaml"
    "$SWSIM" predict "$dir/edges.yaml" 2>&1 >"$dir/out" | tee "$dir/err" | grep -c 'warning: '
}
warns_of_edge() { test "$(edges "$1" "$2")" -eq 1 && grep -qE "$3" "$dir/err"; }
warns_of_none() { test "$(edges "$1" "$2")" -eq 0; }
four='{from: 0, to: 1}, {from: 1, to: 0}, {from: 2, to: 3}, {from: 3, to: 2}'
for schedule in gpipe 1f1b zb_1p zbv v_half dualpipe; do
    rule="generate: {schedule: $schedule, ranks: 4, microbatches: 8}"
    check "$schedule: its edges" warns_of_none "$four" "$rule"
    check "$schedule: an edge that is none of them" warns_of_edge "$four, {from: 3, to: 1}" "$rule" \
        'edges.yaml:3:87: warning: no message goes from rank 3 to rank 1: this edge has no effect$'
done
rule='generate: {schedule: 1f1b, ranks: 4, microbatches: 8'
check "around a ring only with chunks" warns_of_none '{from: 3, to: 0}, {from: 0, to: 3}' \
    "$(echo "$rule" | sed 's/1f1b/interleaved_1f1b/'), chunks: 2}"
check "else both are counted" warns_of_edge '{from: 3, to: 0}, {from: 0, to: 3}' "$rule}" \
    'edges.yaml:3:15: warning: no message goes from rank 3 to rank 0: this edge has no effect .1 more like it.$'
check "forward passes alone" warns_of_edge '{from: 0, to: 1}, {from: 1, to: 0}' 'programs: [0F0 0F1, 1F0 1F1]' \
    'from rank 1 to rank 0'
check "in a group of ranks" warns_of_none '{from: 0, to: 1}' "$rule}
parallel: {dp: 2}"
check "the kind in JSON" prints 0 '"warnings":\[{"kind":"unused_edge",' "$SWSIM" verify --json "$(edges '{from: 0, to: 2}' "$rule}" >"$dir/n" && echo "$dir/edges.yaml")"
done_testing

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first five minutes of five newcomers, who do what the output of the last command tells them and nothing else: how
# many commands they type, how many lines they read, how many wrong turns they take, a wrong turn being a command whose output
# neither is the answer nor says what to do. The counts may not be larger than those in doc/trust.md.
. "${srcdir:-.}/tests/tap.sh"
programs=$(cd "$(dirname "$SWSIM")" && pwd) || exit 1
plans=$(cd "$srcdir/plans" && pwd) || exit 1
pages=$(cd "$srcdir/doc" && pwd) || exit 1
sources=$(cd "$srcdir" && pwd) || exit 1
PATH=$programs:$PATH
mkdir "$dir/desk"
cd "$dir/desk" || exit 1

# types COMMAND...: a command and its output, which is read to the end. What is looked for in it is in $dir/read.
types()
{
    commands=$((commands + 1))
    "$@" >"$dir/read" 2>&1
    code=$?
    lines=$((lines + $(wc -l <"$dir/read")))
    printf '# $ %s\n' "$*" >>"$dir/tale"
    sed 's/^/# /' "$dir/read" >>"$dir/tale"
    return $code
}
reads()
{
    grep -qE "$1" "$dir/read"
}
wrong_turn()
{
    turns=$((turns + 1))
    echo "# a wrong turn" >>"$dir/tale"
}

# newcomer NAME FUNCTION: it ends with the answer, and with no more of each count than the page says.
newcomer()
{
    commands=0 lines=0 turns=0
    : >"$dir/tale"
    "$2"
    arrived=$?
    cat "$dir/tale"
    echo "# $1: $commands, $lines, $turns"
    check "$1: the answer is there" test $arrived -eq 0
    allowed=$(sed -n "s/^| $1 [^|]*|[^|]*| \\([0-9]*, [0-9]*, [0-9]*\\) |.*/\\1/p" "$pages/trust.md" | tr -d ,)
    check "$1: $commands commands, $lines lines, $turns wrong turns; the page has $allowed" no_more $allowed
}
no_more()
{
    [ $# -eq 3 ] && [ "$commands" -le "$1" ] && [ "$lines" -le "$2" ] && [ "$turns" -le "$3" ]
}

# A pipeline of one's own, with misspelt keys, a dependence that is missing and a buffer that is not declared.
own_pipeline()
{
    cat >video.yaml <<'PLAN'
swplan: 1
name: video
schedule:
  Upload: {stage: 0, stream: h2d, time: 1.5ms, read: [clip], writes: [batch]}
  Train: {stage: 1, thread: main, time: 5ms, reads: [batch, weights], writes: [weights, loss]}
  Metrics: {stage: 2, stream: d2h, time: 100us, reads: [loss]}
intra_iter_deps: [[Metrics, Train]]
inputs: [clip]
buffers:
  batch: {scope: iteration, bytes: 16MB}
  loss: {scope: iteration, bytes: 4B}
PLAN
    while [ $commands -lt 12 ]; do
        types swsim verify video.yaml
        if reads 'did you mean'; then # every suggestion is taken
            sed -n 's/.*yaml:\([0-9]*\):.*found unknown key "\([a-z_]*\)".*did you mean "\([a-z_]*\)".*/\1s|\2:|\3:|/p' "$dir/read" >"$dir/edits"
            sed -i -f "$dir/edits" video.yaml
        elif reads 'Fix \(proved'; then
            types swsim verify -q --fix video.yaml
            reads 'fixed: .*\(proved under both drivers\)' && swsim verify -q video.yaml >"$dir/fixed" && return 0
        elif reads 'buffer "weights" is not under "buffers".*scope shared'; then
            sed -i 's/^buffers:/&\n  weights: {scope: shared}/' video.yaml
        elif [ $code -eq 0 ] && reads 'proved' && ! reads 'violated|warning'; then
            return 0
        else
            wrong_turn
            return 1
        fi
    done
    return 1
}

# Dumps of a job that hangs: who waits for whom, and which call differs.
hang_dump()
{
    types swsim import -q -o hang.yaml "$plans/traces/hang" || wrong_turn
    types swsim verify hang.yaml
    reads 'mismatch, always: #12 _all_gather_base meets #12 all_reduce' || wrong_turn
    reads 'Fix \(proved\): rank 2'
}

# A trace of a training job: what takes the time, and what would it gain.
trace()
{
    types swsim why "$plans/traces/recommender" || wrong_turn
    reads 'ncclDevKernel_SendRecv' || wrong_turn
    types swsim import -q -o job.yaml "$plans/traces/recommender" || wrong_turn
    types swsim predict -q --what-if='*SendRecv*=0.5x' job.yaml || wrong_turn
    reads 'SendRecv.*=0.5x .*-4[0-9]* us'
}

# A schedule: does it hang, how large is its bubble, a picture to show around.
schedule()
{
    types swsim generate zb_h1 -p 4 -m 8 -o zb.yaml || types sh -c 'swsim generate zb_h1 -p 4 -m 8 >zb.yaml'
    types swsim verify zb.yaml || wrong_turn
    types swsim predict -q zb.yaml || wrong_turn
    if reads '[-]-times'; then
        types swsim predict -q "$(sed -n 's/.*give it one with //p' "$dir/read")" zb.yaml || wrong_turn
        if reads 'takes no time'; then wrong_turn; fi # the option that it named is not enough
    elif reads 'no work of the plan has a time'; then
        wrong_turn
    fi
    reads 'bubble' || wrong_turn
    types swsim render zb.yaml -o zb.html && test -s zb.html
}

# A notebook of Python: a plan as a dictionary, its verdict, its repair.
notebook()
{
    mkdir -p "$dir/site/swsim"
    python3 "$sources/python/generate.py" "$sources" "$dir/site/swsim" && cp "$sources"/python/swsim/*.py "$dir/site/swsim" || return 1
    cat >cell.py <<'CELL'
import swsim
verdict = swsim.verify({"swplan": 1, "name": "mine", "schedule": {
    "Copy": {"stage": 0, "stream": "h2d", "time": "1ms", "writes": ["batch"]},
    "Work": {"stage": 1, "time": "2ms", "reads": ["batch"]}}, "buffers": {"batch": {"scope": "iteration"}}})
print(verdict)
print(verdict.repair)
CELL
    types env PYTHONPATH="$dir/site" LD_LIBRARY_PATH="$programs" python3 cell.py || wrong_turn
    reads 'race' && reads 'Work waits for Copy'
}

newcomer "a pipeline of one's own, with three mistakes," own_pipeline
newcomer "dumps of a hang" hang_dump
newcomer "a trace" trace
newcomer "a schedule" schedule
case ${INSTRUMENT_FLAGS-} in
*-fsanitize=*) skip "a sanitizer must be in the program, and python3 has none" ;;
*)
    if python3 -c 'import ctypes, sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
        newcomer "a notebook of Python" notebook
    else
        skip "no python3 of 3.9 or newer with ctypes"
    fi
    ;;
esac
done_testing

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command line: usage errors and their suggestions, help, exit codes, files that cannot be read or
# written.
. "${srcdir:-.}/tests/tap.sh"

cat >"$dir/good.yaml" <<'PLAN'
swplan: 1
name: good
schedule:
  Copy: {stage: 0, stream: memcpy, time: 1ms, writes: [batch]}
  Work: {stage: 1, time: 2ms, reads: [batch]}
intra_iter_deps:
  - [Work, Copy]
buffers: {batch: {scope: iteration}}
PLAN
cat >"$dir/bad.yaml" <<'PLAN'
swplan: 1
schedule:
  Copy: {stage: 0, streem: memcpy}
PLAN
cat >"$dir/threads.yaml" <<'PLAN'
swplan: 1
name: crossed
comms: {A: [0, 1]}
threads:
  r0.main:
    - {collective: x, comm: A, stream: s}
    - {collective: y, comm: A, stream: s}
  r1.main:
    - {collective: y, comm: A, stream: s}
    - {collective: x, comm: A, stream: s}
expect: {mismatch: always}
PLAN

# Understood, but no program can be made of it.
cat >"$dir/twice.yaml" <<'PLAN'
swplan: 1
name: twice
threads:
  r0.main:
    - {alloc: b, stream: s}
    - {alloc: b, stream: s}
buffers: {b: {scope: shared}}
PLAN

# says CODE TEXT COMMAND...: exits with CODE, TEXT is in its messages and nothing on standard output.
says()
{
    want=$1
    text=$2
    shift 2
    exits "$want" "$@" || return
    test ! -s "$dir/out" || { cat "$dir/out"; return 1; }
    grep -qF -- "$text" "$dir/err" && return
    echo "expected: $text"
    cat "$dir/err"
    false
}

# says_too CODE TEXT COMMAND...: the same, whatever is on standard output.
says_too()
{
    want=$1
    text=$2
    shift 2
    exits "$want" "$@" && grep -qF -- "$text" "$dir/err"
}

# prints TEXT COMMAND...: exits with 0, TEXT is in its output and it has no messages.
prints()
{
    text=$1
    shift
    exits 0 "$@" || return
    test ! -s "$dir/err" || { cat "$dir/err"; return 1; }
    grep -qF -- "$text" "$dir/out" && return
    echo "expected: $text"
    cat "$dir/out"
    false
}

# full COMMAND...: with a full disk behind standard output the command exits with 2 and says why.
full()
{
    "$@" >/dev/full 2>"$dir/err"
    test $? -eq 2 && grep -q 'No space left' "$dir/err"
}

# ---- help and version ----------------------------------------------------------------------------

check "swsim --help" prints "Usage: swsim" "$SWSIM" --help
check "swsim -h" prints "Usage: swsim" "$SWSIM" -h
check "swsim --version" prints "swsim " "$SWSIM" --version
check "swrun --help" prints "Usage: swrun" "$SWRUN" --help
check "swrun --version" prints "swrun " "$SWRUN" --version
for verb in verify predict render schedule stages lower generate groups export compare why explain tune runs watch import; do
    check "swsim $verb --help" prints "Usage: swsim $verb" "$SWSIM" "$verb" --help
    check "swsim $verb --version" prints "swsim " "$SWSIM" "$verb" --version
    check "swsim --help knows $verb" prints "  $verb " "$SWSIM" --help
done

# ---- wrong use -----------------------------------------------------------------------------------

check "no verb" says 2 "missing verb" "$SWSIM"
"$SWSIM" --help >"$dir/help"
"$SWSIM" help | cmp - "$dir/help"
check "swsim help says what swsim --help does" test $? -eq 0
check "help on an unknown verb" says 2 "did you mean 'verify'" "$SWSIM" help verfy
check "help on two verbs" says 2 "expected one verb" "$SWSIM" help verify predict
check "an unknown verb" says 2 "unknown verb 'frobnicate'" "$SWSIM" frobnicate
check "a verb with a slip" says 2 "did you mean 'verify'?" "$SWSIM" verfiy
check "an unknown option" says 2 "unknown option '--xyzzy'" "$SWSIM" verify --xyzzy
check "an option with a slip" says 2 "did you mean '--iterations'?" "$SWSIM" verify --itertions=3 x
check "an unknown letter" says 2 "unknown option '-z'" "$SWSIM" schedule -z x
check "an unknown option before the verb" says 2 "unknown option '--jsn'" "$SWSIM" --jsn verify
check "an ambiguous option" says 2 "'--s' is ambiguous: --seed" "$SWSIM" predict --s=3 x
check "an option without its value" says 2 "'--periods' needs a value" "$SWSIM" schedule --periods
check "a value that none is wanted" says 2 "'--json' takes no value" "$SWSIM" schedule --json=1 x
check "a number that is none" says 2 "--periods: found 'many'" "$SWSIM" schedule --periods=many x
check "a number out of range" says 2 "--periods: found '0'" "$SWSIM" schedule --periods 0 x
check "a number too big" says 2 "found '99999999999999999999'" \
    "$SWSIM" schedule --periods 99999999999999999999 x
# PROGRAM [VERB]: each number among its options, and the largest that it may be.
numbers()
{
    "$@" --help | grep -oE -- '--[a-z-]+=(N|S|PT|N\|unbounded)( |$)' | sort -u | while read -r option; do
        name=${option%%=*}
        for found in -1 x 99999999999999999999; do
            "$@" "$name=$found" "$dir/good.yaml" >"$dir/out" 2>"$dir/err"
            code=$?
            grep -qF -- "error: $name: found '$found', expected a whole number from" "$dir/err" && test $code -eq 2 ||
                { echo "$* $name=$found: $code, $(cat "$dir/err")" >&2; return 1; }
        done
        echo "$name $(sed -n 's/.* from [0-9]* to \([0-9]*\)$/\1/p' "$dir/err") $*"
    done
}

all_numbers()
{
    { for verb in $("$SWSIM" help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p'); do
        numbers "$SWSIM" "$verb" || exit
    done; numbers "$SWRUN"; } >"$dir/numbers"
}

# An option has one limit, however many commands have it.
one_limit()
{
    awk '$1 in most && most[$1] != $2 { print $1, most[$1], $0; bad = 1 } { most[$1] = $2 } END { exit bad }' "$dir/numbers" &&
        test "$(grep -c -- --iterations "$dir/numbers")" -eq 4
}

# PLAN N MOST: the same exit code and message in all commands that have -n.
too_many_iterations()
{
    for command in "$SWSIM verify" "$SWSIM predict" "$SWSIM lower" "$SWRUN"; do
        says 2 "found $2 iterations, expected at most $3" $command -n "$2" "$1" || { echo "$command"; return 1; }
    done
}

check "numbers that are none, or out of range, in every command" all_numbers
check "an option has the same limit in each" one_limit
check "too many iterations for the plan" too_many_iterations "$srcdir/plans/torchrec/sparse_dist.yaml" 1073741824 67108839
check "a choice that is none" says 2 "--driver: found 'blue', expected clock|dataflow|both" \
    "$SWSIM" verify --driver=blue x
check "a missing argument" says 2 "missing argument" "$SWSIM" schedule
check "too many arguments" says 2 "unexpected argument 'b'" "$SWSIM" schedule a b
# Lines of a --help that a terminal of 100 columns would break.
wide_help()
{
    { "$SWSIM" --help; "$SWRUN" --help; "$SWCHECK" --help
      for verb in $("$SWSIM" --help | sed -n '/^Verbs:/,/^$/ { s/^  \([a-z]*\) .*/\1/p }'); do "$SWSIM" "$verb" --help; done
    } | awk 'length > 100'
}
wide_help >"$dir/wide"
check "no help is wider than 100 columns" cmp "$dir/wide" /dev/null
check "explain says what a property is" prints "without happens-before" "$SWSIM" explain race
check "... a cause of stalls" prints "ticket's turn has not come" "$SWSIM" explain head_of_line
check "... a warning, whose lines are one sentence" prints "a write that another overwrites, in every run" "$SWSIM" explain dead_write
check "... one of several words" prints "admit, retire (term)" "$SWSIM" explain Retire
check "... a key of plans" prints "turns in the order of a software pipeline" "$SWSIM" explain ticket_at
check "... and lists all words" prints "deadlock (property" "$SWSIM" explain
# Each word in front of a row of a report, each cause of a stall, and each word of its JSON.
row_words()
{
    "$SWSIM" predict "$srcdir/plans/torchrec/sparse_dist.yaml"
    "$SWSIM" predict "$srcdir/plans/examples/one_f_one_b.yaml"
    "$SWSIM" tune -q --budget=5 "$srcdir/plans/examples/hello.yaml"
    "$SWRUN" -n 5 "$srcdir/plans/examples/hello.yaml"
}
explains_all()
{
    {
        row_words 2>"$dir/err" | sed -nE 's/^  ([a-z]+([ -][a-z]+)*) {2,}[0-9a-z].*/\1/p' | grep -vxE 'stream|task|rank|main|memcpy|nccl|all'
        sed -n 's/^    X([A-Z_]*, "\([a-z_]*\)", "\([a-z -]*\)").*/\1\n\2/p' "$srcdir/sim/engine/simulate.h"
        cat "$srcdir"/doc/schema/verdict.json "$srcdir"/doc/schema/replayed.json "$srcdir"/doc/schema/measured.json | tr -d '\n' |
            grep -oE '"enum": *\[[^]]*\]' | grep -oE '"[a-z_ ]+"' | tr -d '"' | grep -vxE 'enum|none|open|actions|operations|tasks|bias|weight|cuda'
    } | sort -u >"$dir/words"
    test "$(wc -l <"$dir/words")" -gt 40 || return 1
    unknown=$(while read -r word; do "$SWSIM" explain "$word" >/dev/null 2>&1 || echo "$word"; done <"$dir/words")
    echo "$unknown"
    test -z "$unknown"
}
check "explain knows the words of the reports" explains_all
check "... with a dash or a space, one or several" prints "an iteration is admitted" "$SWSIM" explain ADMITS
check "a word that is none" says 2 "did you mean 'race'?" "$SWSIM" explain Racce
check "a hint where to look" says 2 "'swsim schedule --help' tells more" "$SWSIM" schedule
check "swrun without a plan" says 2 "missing argument" "$SWRUN"
check "swrun with a slip" says 2 "did you mean '--device'?" "$SWRUN" --devise=host x

# ---- options that exclude each other -------------------------------------------------------------

# Each option on the left is refused beside each on the right, in both orders.
exclude_each_other() # COMMAND... -- OPTION OTHER...
{
    command=
    while [ "$1" != -- ]; do command="$command $1"; shift; done
    option=$2
    shift 2
    for other; do
        wanted="found ${option%%=*} together with ${other%%=*}"
        says 2 "$wanted" $command "$option" "$other" && says 2 "$wanted" $command "$other" "$option" || return
    done
}

check "verify --fix" exclude_each_other "$SWSIM" verify x -- --fix=y --bitstate
check "predict --what-if" exclude_each_other "$SWSIM" predict x -- --what-if=A=2x --sweep=ranks=1..2 --db=y
check "predict --critical-path" exclude_each_other "$SWSIM" predict x -- \
    --critical-path --sweep=ranks=1..2 --what-if=A=2x
check "predict --profile" exclude_each_other "$SWSIM" predict x -- --profile=y '--jitter=*=exponential'
check "generate --brief" exclude_each_other "$SWSIM" generate 1f1b -p2 -m4 -- --brief --comms --group=2
check "swrun --processes" exclude_each_other "$SWRUN" x -- --processes --one-process
check "swrun --shortcut" exclude_each_other "$SWRUN" x -- --shortcut=A --graph
check "swrun --profile" exclude_each_other "$SWRUN" x -- --profile --driver=clock --serial --db=y \
    --max-depth=2 --graph --processes --shortcut=A --stats --replay=y
check "swrun --replay" exclude_each_other "$SWRUN" -- --replay=y --driver=clock --iterations=5 --ranks=2 \
    --max-depth=2 --processes --one-process --rendezvous=z --serial --graph --shortcut=A --stats --no-check
check "a reason, where it is not plain" says 2 "one task after another" "$SWRUN" --profile --stats x
check "--help says it, too" prints "not with --sweep, --db" "$SWSIM" predict --help

# ---- options anywhere ----------------------------------------------------------------------------

good=$dir/good.yaml
check "options after the plan" prints "P6" "$SWSIM" schedule "$good" --periods=7
check "options before the verb" prints '"periods":5' "$SWSIM" --json schedule "$good"
check "an abbreviated option" prints "P6" "$SWSIM" schedule --peri 7 "$good"
check "a short option" prints "P6" "$SWSIM" schedule -n7 "$good"
check "-- ends the options" says 2 "No such file" "$SWSIM" schedule -- --periods
check "a plan from standard input" sh -c "'$SWSIM' schedule - <'$good' | grep -q 'i0  *i1'"

# ---- inputs --------------------------------------------------------------------------------------

check "a missing file" says 2 "No such file" "$SWSIM" schedule "$dir/none.yaml"
check "a directory" says 2 "directory" "$SWSIM" schedule "$dir"
if test "$(id -u)" -eq 0; then
    skip "root can read everything"
else
    cp "$good" "$dir/secret.yaml"
    chmod 0 "$dir/secret.yaml"
    check "an unreadable file" says 2 "Permission denied" "$SWSIM" schedule "$dir/secret.yaml"
fi
check "a bad plan" says 3 "bad.yaml:3:" "$SWSIM" schedule "$dir/bad.yaml"
check "an empty plan" says 3 "error" "$SWSIM" schedule /dev/null
check "a plan of another form" says 3 "has no schedule table" "$SWSIM" schedule "$dir/threads.yaml"
check "stages of another form" says 3 "has no stage analysis" "$SWSIM" stages "$dir/threads.yaml"
check "a store that is not there" exits 2 "$SWSIM" runs "$dir/none.db"
check "a store that is none" exits 3 "$SWSIM" runs "$good"
check "messages have no colour in a file" sh -c \
    "! '$SWSIM' schedule '$dir/bad.yaml' 2>&1 | grep -q '\\['"
check "--color=always has" sh -c \
    "'$SWSIM' schedule --color=always '$dir/bad.yaml' 2>&1 | grep -q '\\['"

# ---- outputs -------------------------------------------------------------------------------------

if test -e /dev/full; then
    check "schedule on a full disk" full "$SWSIM" schedule "$good"
    check "schedule --json on a full disk" full "$SWSIM" schedule --json "$good"
    check "stages on a full disk" full "$SWSIM" stages "$good"
    check "lower on a full disk" full "$SWSIM" lower "$good"
    check "generate on a full disk" full "$SWSIM" generate 1f1b --ranks=4 --microbatches=8
    check "verify on a full disk" full "$SWSIM" verify "$good"
    check "predict on a full disk" full "$SWSIM" predict "$good"
    check "swrun on a full disk" full "$SWRUN" -n 3 "$good"
    check "--help on a full disk" full "$SWSIM" --help
    check "--version on a full disk" full "$SWSIM" --version
else
    skip "no /dev/full here"
fi

# ---- exit codes of verdicts ----------------------------------------------------------------------

crossed=$dir/threads.yaml
check "a plan that holds" exits 0 "$SWSIM" verify "$good"
check "a plan that does not" exits 1 "$SWSIM" verify "$crossed"
check "as expected" exits 0 "$SWSIM" verify --expect "$crossed"
searched=${srcdir:-.}/plans/traps/sequencer_inversion_fixed.yaml # proved, but not by structure alone
check "a limit" exits 4 "$SWSIM" verify --limit states=1 "$searched"
check "the limit loses to the violation" \
    exits 1 "$SWSIM" verify --limit states=2 "$searched" "$crossed"
check "a plan that no program can be made of" says 3 "twice.yaml:6:" "$SWSIM" verify "$dir/twice.yaml"
check "its line is shown" says 3 "    - {alloc: b, stream: s}" "$SWSIM" verify "$dir/twice.yaml"
check "a bad plan wins over a violation" exits 3 "$SWSIM" verify "$crossed" "$dir/bad.yaml" "$good"
check "a bad plan wins over a missing one" exits 3 "$SWSIM" verify "$dir/none.yaml" "$dir/bad.yaml"
check "a missing plan wins over a violation" exits 2 "$SWSIM" verify "$crossed" "$dir/none.yaml"
check "verify --json is one object a driver" sh -c \
    "test \$('$SWSIM' verify --json '$good' | grep -c '^{\"schema\":\"swsim.verdict/1\",\"plan\":\"[^\"]*\",\"driver\":') -eq 2"
check "predict" prints '"driver":"clock"' "$SWSIM" predict --json --driver=clock "$good"
check "swrun" exits 0 "$SWRUN" -n 5 "$good"

# ---- pictures and stores ---------------------------------------------------------------------------

# holds TEXT FILE: the file is there and says TEXT.
holds()
{
    grep -qF -- "$1" "$2" || { head -c 2000 "$2"; return 1; }
}

check "verify --witness=FILE.txt" exits 1 "$SWSIM" verify "$crossed" --witness="$dir/w.txt"
check "is the whole story" holds "pushes collective x" "$dir/w.txt"
check "verify --witness=FILE.json" exits 1 "$SWSIM" verify "$crossed" --witness="$dir/w.json"
check "is the JSON object" holds '"violation":"mismatch"' "$dir/w.json"
check "verify --witness=FILE.svg" exits 1 "$SWSIM" verify "$crossed" --witness="$dir/w.svg"
check "is a picture" holds '</svg>' "$dir/w.svg"
check "verify --witness=FILE.dot" exits 1 "$SWSIM" verify "$crossed" --witness="$dir/w.dot"
check "is a graph" holds 'graph' "$dir/w.dot"
check "verify --witness of an unknown kind" exits 2 "$SWSIM" verify "$crossed" --witness="$dir/w.x"
check "verify --witness where nothing can be written" says_too 2 "cannot" \
    "$SWSIM" verify "$crossed" --witness="$dir/none/w.txt"
check "predict --db" exits 0 "$SWSIM" predict --db="$dir/runs.db" -n 20 --driver=clock "$good"
check "runs lists it" prints "simulated" "$SWSIM" runs "$dir/runs.db"
check "runs --json" prints '"driver":"clock"' "$SWSIM" runs --json "$dir/runs.db"
check "render a run" exits 0 "$SWSIM" render "$dir/runs.db" -o "$dir/run.svg"
check "is a picture" holds '</svg>' "$dir/run.svg"
check "render some iterations" exits 0 \
    "$SWSIM" render "$dir/runs.db" --from=3 --to=5 --no-threads -o "$dir/run.dot"
check "render a run that is not there" exits 3 "$SWSIM" render --run=9 "$dir/runs.db" -o "$dir/x.svg"
check "render a plan" exits 0 "$SWSIM" render "$good" -o "$dir/plan.svg"
check "is a picture" holds '</svg>' "$dir/plan.svg"
library=$(grep -ao 'libgvc\.so[.0-9]*' "$SWSIM" | head -n 1)
mkdir "$dir/no_graphviz" && : >"$dir/no_graphviz/$library"
check "a picture where Graphviz cannot be loaded" says 2 "PNG, PDF and graphs of plans need Graphviz" \
    env LD_LIBRARY_PATH="$dir/no_graphviz" "$SWSIM" render "$good" -o "$dir/x.svg"
check "a run as SVG needs none" exits 0 env LD_LIBRARY_PATH="$dir/no_graphviz" "$SWSIM" render "$dir/runs.db" -o "$dir/none.svg"
check "... and is the same picture" cmp "$dir/run.svg" "$dir/none.svg"
check "all else works there" exits 0 env LD_LIBRARY_PATH="$dir/no_graphviz" "$SWSIM" verify "$good"
check "the server for agents, without the Python package" says 2 "part of the Python package" env PATH="$dir/no_graphviz" "$SWSIM" mcp
printf '#!/bin/sh\necho served "$@"\n' >"$dir/no_graphviz/swsim-mcp" && chmod +x "$dir/no_graphviz/swsim-mcp"
check "... and with it" prints served env PATH="$dir/no_graphviz:$PATH" "$SWSIM" mcp
check "it takes no plan" says 2 "expected none" "$SWSIM" mcp "$good"
check "render without --output" says 2 "--output" "$SWSIM" render "$good"

# ---- plans out -----------------------------------------------------------------------------------

check "generate makes a plan that verify takes" sh -c \
    "'$SWSIM' generate 1f1b --ranks=2 --microbatches=4 | '$SWSIM' verify -"
check "generate without ranks" says 2 "--ranks" "$SWSIM" generate 1f1b --microbatches=4
check "generate a schedule that is none" exits 2 "$SWSIM" generate 2f2b --ranks=2 --microbatches=4
check "export is what it exported" sh -c \
    "'$SWSIM' export '$good' >'$dir/a.yaml' && '$SWSIM' export '$dir/a.yaml' | cmp - '$dir/a.yaml'"
check "export --format json is the same plan" sh -c \
    "'$SWSIM' export --format json '$good' >'$dir/a.json' &&
     '$SWSIM' export '$dir/a.json' | cmp - '$dir/a.yaml'"
check "export --format csv" sh -c \
    "'$SWSIM' generate gpipe --ranks=2 --microbatches=2 | '$SWSIM' export --format csv - |
     grep -q '^0F0,0F1'"

check "a number of options may have an exponent" prints ", 200 iterations" "$SWSIM" predict -n 2e2 --driver=clock "$srcdir/plans/examples/hello.yaml"
check "too large" complains 2 "found '1e18', expected" "$SWSIM" predict -n 1e18 "$srcdir/plans/examples/hello.yaml"
check "without a number" complains 2 "found '1e', expected" "$SWSIM" predict -n 1e "$srcdir/plans/examples/hello.yaml"
check "with a fraction" complains 2 "found '1.5e3', expected" "$SWSIM" predict -n 1.5e3 "$srcdir/plans/examples/hello.yaml"

cat >"$dir/disorder.yaml" <<'PLAN'
swplan: 1
schedule:
  Copy: {stage: 0, streem: memcpy}
  Work: {stage: one}
buffers: {b: {scop: shared}}
machine: {coers: 1}
PLAN
"$SWSIM" verify "$dir/disorder.yaml" 2>&1 | sed -n 's/.*yaml:\([0-9]*\):[0-9]*: error.*/\1/p' >"$dir/lines"
check "errors of a file are in the order of its lines" sh -c 'test "$(tr "\n" " " <"$1")" = "3 4 5 6 "' sh "$dir/lines"

# ---- terminals ------------------------------------------------------------------------------------

# fits COLUMNS COMMAND: on a terminal this wide no line of the report is wider, escape sequences apart.
fits()
{
    script -qec "stty cols $1 && $2" /dev/null >"$dir/out" 2>&1
    ! sed 's/\r$//; s/\x1b\[[0-9;]*m//g' "$dir/out" | awk -v most="$1" '/^ *[-+@]/ { next } length($0) > most' | grep . &&
        grep -q good "$dir/out"
}
if command -v script >/dev/null; then
    for columns in 50 80; do
        check "verify fits $columns columns" fits $columns "$SWSIM verify -q $good $srcdir/plans/torchrec/sparse_dist.yaml"
        check "predict fits $columns columns" fits $columns "$SWSIM predict -q $good; $SWSIM predict -q $srcdir/plans/torchrec/sparse_dist.yaml"
    done
else
    skip "no script(1) here"
fi
"$SWSIM" verify "$srcdir/plans/torchrec/sparse_dist.yaml" >"$dir/out"
check "lines stay whole in a file" test "$(wc -l <"$dir/out")" -eq 1

# ---- completion ----------------------------------------------------------------------------------

# completes WANTED WORD...: bash offers WANTED for the last word, which the cursor is at.
completes()
{
    wanted=$1
    shift
    SWSIM_COMPLETION=$srcdir/tools/completion/swsim.bash bash -c '
        . "$SWSIM_COMPLETION"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _swsim "$1" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
        printf "%s\n" "${COMPREPLY[@]}"' bash "$@" >"$dir/out"
    grep -qxF -- "$wanted" "$dir/out" || { cat "$dir/out"; return 1; }
}

# The same in zsh, with its functions of completion replaced by ones that print what is offered.
zsh_completes()
{
    wanted=$1
    shift
    SWSIM_COMPLETION=$srcdir/tools/completion/_swsim zsh -f -c '
        compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -rl -- "$@" }
        compset() { : }
        _files() { print -r -- "$words[CURRENT]" }
        words=("$@") CURRENT=$#
        . "$SWSIM_COMPLETION"' zsh "$@" >"$dir/out" 2>&1
    grep -qxF -- "$wanted" "$dir/out" || { cat "$dir/out"; return 1; }
}

# The same in fish: $2 is the line. fish prints a tab and the help behind each candidate.
fish_completes()
{
    SWSIM_COMPLETION=$srcdir/tools/completion/swsim.fish fish --no-config -c '
        source $SWSIM_COMPLETION
        complete -C $argv[1]' "$2" >"$dir/out" 2>&1
    cut -f 1 <"$dir/out" | grep -qxF -- "$1" || { cat "$dir/out"; return 1; }
}

# The options of a --help with `=` where a value follows, and the values that it names for them, one a line: in Python,
# by other means than the shells'.
cat >"$dir/offered.py" <<'END'
import re, sys
text = re.sub(r"\n {30}(?! |not with)", "  ", sys.stdin.read())
for line in text.split("\n"):
    found = re.match(r" +(?:-., )?(--[a-z0-9-]+)(\[?=(\S+?)\]?)?(?: +(.*))?$", line)
    if not found:
        continue
    name, value, placeholder, words = found.groups()
    print(name + ("=" if value and value[0] == "=" else ""))
    values = placeholder.split("|") if placeholder and "|" in placeholder else []
    words = re.sub(r" *\(default.*", "", words or "").split(": ")[-1]
    if placeholder == "LIST":
        values = words.split() if "separated by commas" in line else re.split(", *", words)
        values = values if len(values) > 1 and all(re.fullmatch(r"[a-z0-9_]+", v) for v in values) else []
    for value in values:
        if value[0].islower() or value[0].isdigit():
            print(name + "=" + value)
END
# all_of SHELL: what it offers for every verb is what the --help has.
all_of()
{
    "$SWSIM" --help | sed -n '/^Verbs:/,/^$/ { s/^  \([a-z]*\) .*/\1/p }' | while read -r verb; do
        "$SWSIM" "$verb" --help | python3 "$dir/offered.py" | sort -u >"$dir/help"
        [ -s "$dir/help" ] || echo "$verb has no help"
        grep -v '=.' "$dir/help" >"$dir/options"
        "offers_in_$1" "$verb" -- >"$dir/offered"
        sort -u "$dir/offered" | diff "$dir/options" - || echo "options of $verb"
        sed -n 's/=..*//p' "$dir/help" | sort -u | while read -r option; do
            "offers_in_$1" "$verb" "$option" value | sort -u >"$dir/offered"
            sed -n "s/^$option=//p" "$dir/help" | grep . | diff - "$dir/offered" || echo "values of $verb $option"
        done
    done >"$dir/differences"
    cat "$dir/differences"
    test ! -s "$dir/differences"
}
# offers_in_SHELL VERB OPTION [value]: options that begin so, or the option's values.
offers_in_bash()
{
    if [ $# = 3 ]; then completes '' "$SWSIM" "$1" "$2" = ''; else completes '' "$SWSIM" "$1" "$2"; fi >/dev/null
    grep . "$dir/out"
}
offers_in_zsh()
{
    if [ $# = 3 ]; then zsh_completes '' "$SWSIM" "$1" "$2="; else zsh_completes '' "$SWSIM" "$1" "$2"; fi >/dev/null
    grep . "$dir/out"
}
offers_in_fish()
{
    if [ $# = 3 ]; then fish_completes '' "$SWSIM $1 $2="; else fish_completes '' "$SWSIM $1 $2"; fi >/dev/null
    cut -f 1 "$dir/out" | if [ $# = 3 ]; then sed 's/^[^=]*=//'; else cat; fi | grep .
}

if command -v bash >/dev/null; then
    check "bash completes a verb" completes verify "$SWSIM" ver
    check "an option" completes --max-depth= "$SWSIM" verify --max
    check "an option that another one excludes, once" eval \
        'completes --what-if= "$SWSIM" predict --what && [ "$(wc -l <"$dir/out")" -eq 1 ]'
    check "a common option" completes --json "$SWSIM" schedule --j
    check "a choice" completes dataflow "$SWSIM" verify --driver = data
    check "a schedule" completes zbv_auto "$SWSIM" generate zbv_
    check "a kind of objects" completes verdict "$SWSIM" schema ver
    check "a word" completes head_of_line "$SWSIM" explain head
    check "a verb behind help" completes verify "$SWSIM" help ver
    check "a file" completes "$good" "$SWSIM" verify "$dir/goo"
    check "the second word of a list" completes deadlock,race "$SWSIM" verify --property = deadlock,ra
    check "every option and value of every verb" all_of bash
else
    skip "no bash here"
fi
if command -v zsh >/dev/null; then
    check "zsh completes a verb" zsh_completes verify "$SWSIM" ver
    check "an option" zsh_completes --max-depth= "$SWSIM" verify --max
    check "a choice" zsh_completes dataflow "$SWSIM" verify --driver=data
    check "a schedule" zsh_completes zbv_auto "$SWSIM" generate zbv_
    check "a kind of objects" zsh_completes verdict "$SWSIM" schema ver
    check "a word" zsh_completes head_of_line "$SWSIM" explain head
    check "a verb behind help" zsh_completes verify "$SWSIM" help ver
    check "a file" zsh_completes "$dir/goo" "$SWSIM" verify "$dir/goo"
    check "every option and value of every verb" all_of zsh
else
    skip "no zsh here"
fi
if command -v fish >/dev/null; then
    check "fish completes a verb" fish_completes verify "$SWSIM ver"
    check "an option" fish_completes --max-depth= "$SWSIM verify --max"
    check "an option whose help is on the next line" eval \
        'fish_completes --driver= "$SWSIM verify --dri" && grep -q "which driver" "$dir/out"'
    check "a choice" fish_completes --driver=dataflow "$SWSIM verify --driver=data"
    check "a schedule" fish_completes zbv_auto "$SWSIM generate zbv_"
    check "a word" fish_completes head_of_line "$SWSIM explain head"
    check "a verb behind help" fish_completes verify "$SWSIM help ver"
    check "a kind of objects" fish_completes verdict "$SWSIM schema ver"
    check "a file" fish_completes "$good" "$SWSIM verify $dir/goo"
    check "the second word of a list" fish_completes --property=deadlock,race "$SWSIM verify --property=deadlock,ra"
    check "every option and value of every verb" all_of fish
else
    skip "no fish here"
fi

done_testing

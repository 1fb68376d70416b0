#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files that are none, standard streams that are closed, outputs that end, and names that are no text: each command of
# the tables below ends in time, with its exit status and one sentence; writes its files whole or not at all, and messages
# nowhere but to standard error; and prints text and JSON that a terminal and a parser can take.
# SWSIM_LONG=1: also the combinations that take long.
. "${srcdir:-.}/tests/tap.sh"
top=$(realpath "$srcdir")
programs=$(realpath "$(dirname "$SWSIM")")
PATH=$programs:$PATH
work=$dir/work
mkdir "$work" "$dir/said"
cd "$work" || exit 99
cp "$top/tests/faults/small.yaml" plan.yaml
cp "$top/tests/faults/small_broken.yaml" broken.yaml
cp "$top/tests/faults/ranks.yaml" ranks.yaml
cp "$top/tests/faults/trace.json" trace.json
swrun -q -n 3 --serial --db=runs.db plan.yaml >"$dir/log" 2>&1 && swrun -q -n 3 --db=runs.db plan.yaml >>"$dir/log" 2>&1
swsim verify -q --no-fix --witness=witness.db broken.yaml >>"$dir/log" 2>&1
swsim verify -q --certificate=certificate plan.yaml >>"$dir/log" 2>&1
check "the files to begin with" test -s runs.db -a -s witness.db -a -s certificate
mkdir folder
mkfifo pipe
ln -s nowhere broken_link
ln -s loop loop
if command -v python3 >/dev/null; then
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
fi
ls -A >"$dir/before"

# ---- what is said ------------------------------------------------------------------------------------

# terminal_safe FILE: UTF-8 without controls but tabs and new lines, and without what changes the direction of text.
terminal_safe()
{
    iconv -f UTF-8 -t UTF-8 "$1" >/dev/null 2>&1 || { echo "not UTF-8:"; cat -v "$1"; return 1; }
    ! LC_ALL=C grep -nP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae\x8e\x8f]|\xe2\x81[\xa6-\xa9]' "$1" | cat -v | grep .
}
# left_alone [NAME...]: nothing is there that was not, but for these.
left_alone()
{
    ls -A | grep -vxF "$(printf '%s\n' "$@" '?')" | diff "$dir/before" - && return
    echo "files were left or taken"
    ls -A | grep -vxFf "$dir/before" | while IFS= read -r left; do rm -rf "./$left"; done
    false
}
# try CODES COMMAND...: it ends within 30 s with one of these; failures (2, 3) have one sentence.
try()
{
    codes=$1
    shift
    timeout -k 5 30 "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    judge "$codes" $code "$dir/out" "$dir/err"
}
sentences=1 # at most
judge()
{
    case " $1 " in
    *" $2 "*) ;;
    *) echo "exit status $2, expected $1"; cat -v "$3" "$4"; return 1 ;;
    esac
    terminal_safe "$3" && terminal_safe "$4" || return
    [ "$2" -lt 2 ] && return
    said=$(grep -c 'error: ' "$4")
    [ "$said" -ge 1 ] && [ "$said" -le "$sentences" ] && return
    echo "$said sentences:"
    cat -v "$4"
    false
}
# json FILE: objects of JSON in UTF-8.
json()
{
    command -v python3 >/dev/null || return 0
    python3 - "$1" <<'PY'
import json, sys
text = open(sys.argv[1], "rb").read().decode("utf-8")
decoder, at = json.JSONDecoder(), 0
while text[at:].strip():
    at += len(text[at:]) - len(text[at:].lstrip())
    at = decoder.raw_decode(text, at)[1]
PY
}

# ---- inputs that are no files ------------------------------------------------------------------------

# Commands, @ being what they read. Behind |: another exit status than 2 and 3 that is right where nothing is there to be read.
readers='swsim verify @
swsim verify --json @
swsim verify --fix @
swsim predict -n 5 @
swsim predict -n 5 --profile=@ plan.yaml
swsim render -o new.svg @
swsim render -o new.svg @ runs.db
swsim schedule @
swsim stages @
swsim lower @
swsim groups @
swsim export @
swsim import @
swsim import --json @
swsim import trace.json @
swsim compare @
swsim compare @ runs.db
swsim compare runs.db @
swsim compare runs.db:1 @
swsim tune --budget=3 @
swsim tune --budget=3 --profile=@ plan.yaml
swsim runs @
swsim runs --json @
swsim watch --timeout=1s @
swrun -n 3 @
swrun -n 3 --json @
swrun --replay=@
swcheck @ certificate
swcheck plan.yaml @ | 1
swcheck --json plan.yaml @ | 1'
# each_reader TRY [LEFT...]: TRY CODES COMMAND for each of them, with @ replaced by $input.
each_reader()
{
    bad=0
    while IFS='|' read -r line code; do
        read -ra words <<<"$line"
        "$@" "2 3 $code" "${words[@]//@/$input}" || { echo "... of: ${words[*]//@/$input}"; bad=1; }
    done <<<"$readers"
    return $bad
}
for input in folder broken_link socket loop /dev/null /proc/self/mem none; do
    [ $input != socket ] || [ -S socket ] || continue
    check "what reads $input" each_reader try
    check "... leaves all as it was" left_alone
done
for input in /dev/zero /dev/full; do
    if [ -n "${SWSIM_LONG-}" ]; then
        check "what reads $input" each_reader try
    else
        check "a plan that never ends" try 3 swsim verify $input
        check "a store" try 3 swsim runs $input
        check "a trace" try 3 swsim import $input
        check "a certificate" try 1 swcheck plan.yaml $input
    fi
done
# The first byte that is in no text ends what is read: 512 MiB of them would end it, too.
first_byte()
{
    try 3 "$@" && grep -q ':1:1: error: found a bad byte' "$dir/err" && return
    cat -v "$dir/err"
    false
}
for input in /dev/zero /dev/full; do
    check "a plan of zeros without end is refused at the first" first_byte swsim verify $input
    check "... in a pipe, too" first_byte sh -c "cat $input | swsim verify -"
done
# Plans that grow while they are read, faster than they are: 512 MiB end them.
grows()
{
    { echo 'swplan: 1'; yes '# and more' | head -c 700000000; } >growing.yaml &
    writer=$!
    sleep 0.2
    try "0 2 3" "$@" growing.yaml
    result=$?
    kill $writer 2>/dev/null
    wait $writer 2>/dev/null
    rm -f growing.yaml
    return $result
}
if [ -n "${SWSIM_LONG-}" ]; then
    check "a plan that grows" grows swsim verify
    check "a trace that grows" grows swsim import
else
    skip "files that grow: only with SWSIM_LONG=1"
fi
if [ "$(id -u)" -ne 0 ]; then
    for input in plan.yaml runs.db trace.json certificate; do
        cp $input "hidden_$input"
        chmod 0 "hidden_$input"
    done
    ls -A >"$dir/before"
    for input in hidden_plan.yaml hidden_runs.db hidden_trace.json hidden_certificate; do
        check "what may not read $input" each_reader try
        check "... leaves all as it was" left_alone
    done
else
    skip "the superuser may read anything"
fi

# A pipe that no process writes to, for all of them at once; then writers that come late, leave at once, and stop midway.
input=pipe
started=0
start()
{
    codes=$1
    shift
    started=$((started + 1))
    echo "$codes" >"$dir/said/$started.codes"
    echo "$*" >"$dir/said/$started.command"
    (
        timeout -k 5 60 "$@" >"$dir/said/$started.out" 2>"$dir/said/$started.err" </dev/null
        echo $? >"$dir/said/$started.code"
    ) &
}
begun=$SECONDS
each_reader start
wait
ended()
{
    bad=0
    for number in $(seq "$started"); do
        judge "$(cat "$dir/said/$number.codes")" "$(cat "$dir/said/$number.code")" "$dir/said/$number.out" "$dir/said/$number.err" ||
            { echo "... of: $(cat "$dir/said/$number.command")"; bad=1; }
    done
    return $bad
}
check "what reads a pipe without a writer ends" ended
check "... and says why" sh -c 'grep -h "error: " "$1"/*.err | grep -c "no process has opened this pipe for writing in 10 s\|not an ordinary file" |
    grep -qx "$2"' sh "$dir/said" $started
check "... and leaves all as it was" left_alone
# late COMMAND...: through a pipe as from the file
late()
{
    timeout 30 "${@//@/plan.yaml}" >"$dir/want" 2>"$dir/err" </dev/null
    want=$?
    (sleep 0.5; cat plan.yaml >pipe) &
    timeout 30 "${@//@/pipe}" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    wait
    [ $code -eq $want ] && cmp "$dir/want" "$dir/out" && return
    echo "exit status $code, expected $want"
    cat "$dir/err"
    false
}
for row in 'schedule @' 'stages @' 'lower @' 'groups @' 'export @' 'schedule --json @'; do
    # shellcheck disable=SC2086
    check "swsim ${row% @} of a pipe whose writer comes late" late swsim $row
done
late_answers() { (sleep 0.5; cat "$1" >pipe) & try 0 "${@:2}" && wait; }
check "swsim predict of one" late_answers plan.yaml swsim predict -n 5 pipe
check "swsim verify of one" late_answers plan.yaml swsim verify pipe
check "swsim render of one" late_answers plan.yaml swsim render -o pipe.svg pipe
check "swsim compare with one" late_answers plan.yaml swsim compare runs.db:1 pipe
check "swrun of one" late_answers plan.yaml swrun -n 3 pipe
check "swcheck of a certificate in one" late_answers certificate swcheck plan.yaml pipe
rm -f pipe.svg
between() { "${@:2}" < <(cat "$1") >"$dir/out" 2>"$dir/err" || { cat "$dir/err"; return 1; }; }
check "a pipe by the name /dev/stdin" between plan.yaml swsim lower /dev/stdin
check "a pipe by the name /dev/stdin, whose writer is gone" sh -c '{ true; } | { sleep 0.3; swsim lower /dev/stdin; } 2>&1 | grep -q "empty file"'
leaves() { (sleep 0.3; : >pipe) & try "$@" && wait; }
check "a writer that leaves at once" leaves 3 swsim lower pipe
half() { (sleep 0.3; head -c 200 plan.yaml >pipe) & try "$@" && wait; }
check "a writer that leaves midway" half 3 swsim lower pipe
late_fix() { (sleep 0.3; cat broken.yaml >pipe) & try 2 swsim verify --fix pipe && wait && grep -q 'pipe was not changed\|cannot read pipe' "$dir/err"; }
[ -z "${SWSIM_LONG-}" ] || check "a pipe is not repaired in its place" late_fix

# ---- standard streams that are closed -----------------------------------------------------------------

# Commands whose file is new*, or that only print.
writers='swsim verify plan.yaml
swsim verify --json plan.yaml
swsim verify -q --no-fix --witness=new.txt broken.yaml
swsim verify -q --no-fix --witness=new.json broken.yaml
swsim verify -q --no-fix --witness=new.svg broken.yaml
swsim verify -q --no-fix --witness=new.db broken.yaml
swsim verify --fix=new.yaml broken.yaml
swsim verify --certificate=new plan.yaml
swsim predict -n 5 plan.yaml
swsim predict -n 5 --db=new.db plan.yaml
swsim render -o new.svg plan.yaml
swsim render -o new.svg runs.db
swsim render -o new.png plan.yaml
swsim render -o new.html runs.db
swsim render -o new.dot plan.yaml
swsim schedule plan.yaml
swsim stages plan.yaml
swsim lower plan.yaml
swsim groups ranks.yaml
swsim export plan.yaml
swsim export -o new.yaml plan.yaml
swsim generate -o new.yaml 1f1b -p2 -m2
swsim import -o new.yaml trace.json
swsim import -o new.yaml --db=new.db trace.json
swsim compare runs.db
swsim tune --budget=3 -o new.yaml plan.yaml
swsim tune --budget=3 --picture=new.svg ranks.yaml
swsim runs runs.db
swsim watch runs.db
swsim schema verdict
swrun -n 3 plan.yaml
swrun -n 3 --stats --db=new.db plan.yaml
swrun -n 3 --processes --db=new.db ranks.yaml
swrun --replay=witness.db
swcheck plan.yaml certificate
swsim record -o new.swr -- true
swsim verify none
swsim nonsense'
# new_files FOLDER: what commands have written there
new_files()
{
    (cd "$1" && for file in new*; do [ ! -e "$file" ] || echo "$file"; done)
}
# whole: the command has written what it writes with all streams; stores and times are read in their place.
whole()
{
    for file in $(new_files .); do
        case $file in
        *.db) swsim runs "$file" >"$dir/log" 2>&1 || { cat "$dir/log"; return 1; } ;;
        *.txt) tail -n 1 "$file" | cmp - <(tail -n 1 "$dir/reference/$file") || return ;;
        *.json) json "$file" || return ;;
        *) cmp "$file" "$dir/reference/$file" || return ;;
        esac
    done
}
# with CODES REDIRECTIONS COMMAND: its exit status, and its files.
with()
{
    rm -rf new*
    eval "timeout -k 5 30 $3 $2" >"$dir/out" 2>"$dir/err"
    code=$?
    terminal_safe "$dir/out" && terminal_safe "$dir/err" && whole && new_files . >"$dir/files"
    well=$?
    rm -rf new*
    case " $1 " in *" $code "*) [ $well -eq 0 ] && return ;; esac
    echo "with $2: exit status $code, expected $1"
    cat -v "$dir/err"
    false
}
# Exit status and files are those of the command with all its streams, but that it fails where it has something to print
# and standard output takes nothing. A pipe that is closed ends it: a file is then there or not.
all_streams()
{
    rm -rf new* "$dir/reference"
    mkdir "$dir/reference"
    eval "timeout -k 5 30 $1" >"$dir/want" 2>"$dir/err" </dev/null
    want=$? fails=$want
    for file in $(new_files .); do mv "$file" "$dir/reference"; done
    new_files "$dir/reference" >"$dir/files_wanted"
    [ ! -s "$dir/want" ] || fails=2
    bad=0
    for closed in '<&-' '2>&-' '<&- 2>&-' '2>/dev/full'; do
        [ -n "${SWSIM_LONG-}" ] || [ "$closed" != '<&-' ] || continue
        with "$want" "$closed" "$1" && diff "$dir/files_wanted" "$dir/files" || bad=1
    done
    for closed in '>&-' '<&- >&- 2>&-' '>/dev/full'; do
        with "$fails" "$closed" "$1" && diff "$dir/files_wanted" "$dir/files" || bad=1
    done
    with "$want 141" '| : ; (exit ${PIPESTATUS[0]})' "$1" && left_alone || bad=1
    return $bad
}
while read -r line; do
    check "streams of $line" all_streams "$line"
done <<<"$writers"
no_input() { "$@" - >"$dir/out" 2>"$dir/err" <&-; code=$?; judge 2 $code "$dir/out" "$dir/err"; }
for command in 'swsim verify' 'swsim export' 'swsim import' 'swrun -n 3' 'swcheck plan.yaml'; do
    # shellcheck disable=SC2086
    check "$command - without a standard input" no_input $command
done

# ---- outputs that take nothing ------------------------------------------------------------------------

# Commands, @ being what they write.
outputs='swsim verify --no-fix --witness=@ broken.yaml
swsim verify --fix=@ broken.yaml
swsim verify --certificate=@ plan.yaml
swsim render --output=@ plan.yaml
swsim render --output=@ runs.db
swsim export -o @ plan.yaml
swsim generate -o @ 1f1b -p2 -m2
swsim import -o @ trace.json
swsim tune --budget=3 -o @ plan.yaml
swsim tune --budget=3 --picture=@ ranks.yaml
swsim predict -n 5 --db=@ plan.yaml
swsim import --db=@ -o /dev/null trace.json
swrun -n 3 --db=@ plan.yaml
swrun -n 3 --processes --db=@ ranks.yaml
swsim record -o @ -- true'
# A picture says its format by the end of its name, so a link has one.
for name in full folder pipe socket; do
    case $name in full) of=/dev/full ;; *) of=$name ;; esac
    ln -s $of to_$name.svg
done
ls -A >"$dir/before"
each_output()
{
    bad=0
    while read -r line; do
        # shellcheck disable=SC2086
        set -- "$1" ${line//@/$output}
        "$1" "2 3" "${@:2}" || { echo "... of: ${*:2}"; bad=1; }
    done <<<"$outputs"
    return $bad
}
for output in to_full.svg to_folder.svg to_socket.svg none/new.svg /proc/version loop "$(printf '%05000d' 0).svg"; do
    [ $output != to_socket.svg ] || [ -S socket ] || continue
    check "what writes $(printf '%.20s' "$output")" each_output try
    check "... leaves all as it was" left_alone
done
output=to_pipe.svg started=0
rm -f "$dir/said/"*
each_output start
wait
check "what writes to a pipe that no process reads ends" ended
check "... and leaves all as it was" left_alone
left_early() { (exec 3<pipe; sleep 1) & (sleep 0.2; try 2 "$@"); result=$?; wait; return $result; }
swsim generate 1f1b -p16 -m512 >"$dir/large.yaml"
check "a reader that leaves" left_early swsim export -o pipe "$dir/large.yaml"
check "... is told of" grep -q 'cannot write pipe: Broken pipe' "$dir/err"

into_head() { "$@" | head -n 1 >"$dir/out"; code=${PIPESTATUS[0]}; case $code in 0|141) ;; *) false ;; esac; }
check "swsim lower of much | head" into_head swsim lower "$dir/large.yaml"
check "swsim watch | head" into_head swsim watch runs.db

# ---- names --------------------------------------------------------------------------------------------

names=(new$'\n'lines $'\e[31mred\a' $'\302\233\342\200\256\342\201\246' $'bad\377\376utf' -dash '--' ' ' "it's \"quoted\"" '%s%n' 'a:1' 'x?mode=memory')
shown() { printf '%q' "$1" | cut -c1-40; }
# named CODES COMMAND...: try, and JSON is JSON
named()
{
    try "$@" || return
    case " ${*:2} " in *' --json '*) json "$dir/out" ;; esac
}
each_named()
{
    bad=0
    while IFS='|' read -r line code; do
        read -ra words <<<"$line"
        named "0 1 2 3" "${words[@]//@/$input}" || { echo "... of: ${words[*]//@/$input}" | cat -v; bad=1; }
    done <<<"$readers
swsim schedule --json @
swsim stages --json @
swsim lower --json @
swsim groups --json @
swsim predict -n 5 --json @
swsim tune --budget=3 --json @
swsim compare --json @
swsim render -q -o @.svg plan.yaml
swsim render -q -o new.svg --json @
swsim verify -q --no-fix --witness=@.db broken.yaml
swsim verify -q --no-fix --witness=@.txt broken.yaml
swsim verify -q --certificate=@.cert plan.yaml
swsim export -o @.yaml plan.yaml
swsim export --json @
swsim predict -n 5 --db=@.db plan.yaml
swrun -n 3 --db=@.db plan.yaml
swrun -n 3 --json --db=@.db plan.yaml
swsim record -o @.swr -- true
swsim record -o new.swr -- @
swsim generate @
swsim schema @
swsim @"
    ls -A | grep -vxFf "$dir/before" | while IFS= read -r left; do rm -rf "./$left"; done
    return $bad
}
mkdir "$work/names"
for source in plan.yaml broken.yaml runs.db; do cp "$source" names/; done
cp trace.json ranks.yaml certificate names/
cd names || exit 99
ls -A >"$dir/before"
for name in "${names[@]}"; do
    for source in plan.yaml runs.db; do
        if [ -z "${SWSIM_LONG-}" ]; then
            case $source$name in plan.yaml[nb$'\e'-]*|runs.db[$'\e\302'b]*) ;; *) continue ;; esac
        fi
        cp $source "./$name"
        input=./$name
        check "a copy of $source named $(shown "$name")" each_named
        rm -f "./$name"
    done
done
# Names as they are, behind -- where they look like options.
for name in "${names[@]}"; do
    cp plan.yaml "./$name"
    check "$(shown "$name") behind --" named "0 2" swsim lower --json -- "$name"
    rm -f "./$name"
done
long=$(printf '%04200d' 0)
for command in 'swsim verify' 'swsim import' 'swsim runs' 'swsim compare' 'swrun' 'swrun --replay' 'swsim tune' 'swsim schema' swsim; do
    # shellcheck disable=SC2086
    check "$command of a name of 4,200 bytes" try 2 $command "$long"
done

# ---- names in plans -----------------------------------------------------------------------------------

rm -f ./*
cp "$top/tests/faults/small.yaml" plan.yaml
yaml='\e[31m\x07\u009b\u202e\u2066\n'
printf 'swplan: 1\nname: "n%s"\nabout: "a%s"\nschedule:\n  A: {stage: 0, stream: s, time: 1us, writes: [b]}\n  B: {stage: 1, stream: t, time: 1us, reads: [b]}\nintra_iter_deps: [[B, A]]\nbuffers: {b: {scope: iteration, bytes: 1KiB}}\n' "$yaml" "$yaml" >about.yaml
sed "s/^name:.*/name: x/; s/\\bA\\b/\"A$yaml\"/g" about.yaml >task.yaml
sed "s/^name:.*/name: x/; s/\\bs\\b/\"s$yaml\"/g" about.yaml >stream.yaml
sed "s/^name:.*/name: x/; s/\\bb\\b/\"b$yaml\"/g" about.yaml >buffer.yaml
printf 'swplan: 1\nname: "\377\376"\nschedule: {A: {stage: 0}}\n' >bytes.yaml
printf 'swplan: 1\nname: x\nthreads: {"r0.t%s": [{host: 1us}, {launch: "k%s", stream: "s%s", time: 1us}]}\n' "$yaml" "$yaml" "$yaml" >threads.yaml
ls -A >"$dir/before"
sentences=9 # a plan may have several mistakes
for input in about.yaml task.yaml stream.yaml buffer.yaml bytes.yaml threads.yaml; do
    check "names in a plan: ${input%.yaml}" each_named
done

# Names are cut between characters: of two bytes each, behind an even and an odd number of bytes.
wide=$(printf 'é%.0s' $(seq 60))
for before in '' x; do
    sed "s/\\bA\\b/$before$wide/g; s/\\bs\\b/$before$wide/g; s/\\bb\\b/$before$wide/g; s/^name:.*/name: $before$wide/; s/^about:.*//" about.yaml >wide.yaml
    for row in 'swrun -q -n 3 --db=wide.db wide.yaml' 'swsim watch wide.db' 'swsim watch --json wide.db' 'swsim runs wide.db' 'swsim schedule wide.yaml' \
        'swsim lower wide.yaml' 'swsim predict -n 3 wide.yaml' 'swsim stages wide.yaml' 'swsim tune --budget=3 wide.yaml' 'swsim verify wide.yaml' \
        'swsim render -o wide.svg wide.db' 'swsim render -o wide.svg wide.yaml' 'swsim compare wide.db:1 wide.yaml' 'swrun -n 3 --stats wide.yaml'; do
        # shellcheck disable=SC2086
        check "names of ${before:-no}two bytes a character: $row" named 0 $row
    done
    check "the picture is UTF-8" terminal_safe wide.svg
done
done_testing

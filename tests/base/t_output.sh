#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files are written whole or not at all (base/output.h), and a full disk is noticed on every way out.
. "${srcdir:-.}/tests/tap.sh"
plan=$srcdir/tests/faults/small.yaml
broken=$srcdir/tests/faults/small_broken.yaml
work=$dir/work
mkdir "$work"

export_to()
{
    "$SWSIM" export -o "$1" "$plan"
}

alone()
{
    test "$(ls -A "$work")" = "$1" || { ls -la "$work"; false; }
}

check "a new file" export_to "$work/new.yaml"
check "has the permissions that the mask leaves" \
    sh -c 'umask 027; "$1" export -o "$2" "$3"; ls -l "$2" | grep -q "^-rw-r-----"' - "$SWSIM" "$dir/masked" "$plan"
check "and stands alone" alone new.yaml

# What a killed process left beside a file goes when the file is written next; what may be another's stays.
gone=$(sh -c 'echo $$')
for name in ".new.yaml.$gone-0" ".new.yaml.$gone-0x" ".new.yaml.$$-0" ".other.yaml.$gone-0" ".new.yaml.$gone-1"; do
    touch -d '1 hour ago' "$work/$name"
done
touch "$work/.new.yaml.$gone-1"
check "a file of whom nothing is left" export_to "$work/new.yaml"
check "takes along what it left" test ! -e "$work/.new.yaml.$gone-0"
check "of whom is there, of another file, and what is young, stays" \
    test -e "$work/.new.yaml.$$-0" -a -e "$work/.other.yaml.$gone-0" -a -e "$work/.new.yaml.$gone-1" -a -e "$work/.new.yaml.$gone-0x"
rm -f "$work"/.new.yaml.* "$work"/.other.yaml.*

chmod 604 "$work/new.yaml"
check "a file that is there is replaced" export_to "$work/new.yaml"
check "and keeps its permissions" sh -c 'ls -l "$1" | grep -q "^-rw----r--"' - "$work/new.yaml"

ln -s work/new.yaml "$dir/link"
echo old >"$work/new.yaml"
check "a link is followed" export_to "$dir/link"
check "and stays one" test -L "$dir/link"
check "its target has the text" grep -q "name: small" "$work/new.yaml"
ln -s work/later.yaml "$dir/dangling"
check "a link to nothing makes its target" export_to "$dir/dangling"
check "and stays one too" test -L "$dir/dangling" -a -s "$work/later.yaml"
rm "$work/later.yaml"
ln -s loop "$dir/loop"
check "a link to itself is refused" complains 2 "cannot write .*loop: Too many levels" \
    "$SWSIM" export -o "$dir/loop" "$plan"

check "an empty device takes anything" export_to /dev/null
check "and is still one" test -c /dev/null
mkfifo "$dir/pipe"
cat "$dir/pipe" >"$dir/piped" &
check "a pipe is written to" export_to "$dir/pipe"
wait $!
check "all of it" cmp "$dir/piped" "$work/new.yaml"

if [ "$(id -u)" -ne 0 ]; then
    echo kept >"$work/mine"
    chmod 444 "$work/mine"
    check "a protected file is not replaced" complains 2 "cannot write .*mine: Permission denied" \
        "$SWSIM" export -o "$work/mine" "$plan"
    check "and stays" grep -q kept "$work/mine"
    rm -f "$work/mine"
    chmod 555 "$work"
    check "in a folder that lets no file be made a file is written in place" export_to "$work/new.yaml"
    check "a new one cannot be made" exits 2 "$SWSIM" export -o "$work/other" "$plan"
    chmod 755 "$work"
else
    skip "the superuser may write anywhere"
fi
check "a folder is none" complains 2 "cannot write .*work: Is a directory" "$SWSIM" export -o "$work" "$plan"
check "a folder that is not there" complains 2 "cannot write .*: No such file" \
    "$SWSIM" export -o "$dir/none/x" "$plan"

echo old >"$work/new.yaml"
check "a plan that cannot be written leaves the old file" \
    exits 3 "$SWSIM" export --format=csv -o "$work/new.yaml" "$plan"
check "as it was" grep -q old "$work/new.yaml"

# Everything that goes to standard output, when its disk is full.
full()
{
    "$@" >/dev/full 2>"$dir/err" </dev/null
    code=$?
    test $code -eq 2 && test "$(grep -c ': error: ' "$dir/err")" -eq 1 &&
        grep -q "No space left" "$dir/err" && return
    echo "exit code $code"
    cat "$dir/err"
    false
}

check "a store" exits 0 "$SWRUN" -n 3 --serial --db="$dir/r.db" "$plan"
check "with a second run" exits 0 "$SWRUN" -n 3 --db="$dir/r.db" "$plan"
check "a witness" exits 1 "$SWSIM" verify --no-fix --witness="$dir/w.db" "$broken"
while read -r line; do
    # Words of a row are arguments.
    # shellcheck disable=SC2086
    set -- $line
    case $1 in swsim) shift && set -- "$SWSIM" "$@" ;; *) shift && set -- "$SWRUN" "$@" ;; esac
    check "a full disk: $line" full "$@"
done <<ROWS
swsim --help
swsim --version
swsim verify $plan
swsim verify $broken
swsim verify --json $plan $broken
swsim predict -n 20 $plan
swsim predict -n 20 --json $plan
swsim predict -n 20 --driver=dataflow --sweep=max_depth=1..3 $plan
swsim schedule $plan
swsim schedule --json $plan
swsim stages $plan
swsim stages --json $plan
swsim lower $plan
swsim lower --json $plan
swsim generate 1f1b -p2 -m4
swsim export $plan
swsim export --json $plan
swsim compare $dir/r.db
swsim compare --json $dir/r.db
swsim runs $dir/r.db
swsim runs --json $dir/r.db
swsim tune --budget=5 $plan
swsim tune --budget=5 --json $plan
swsim tune --budget=5 -o - $plan
swrun --help
swrun -n 3 $plan
swrun -n 3 --json $plan
swrun -n 3 --stats $plan
swrun -n 3 --profile $plan
swrun -n 3 --processes $srcdir/tests/faults/ranks.yaml
swrun --replay=$dir/w.db
ROWS
# ---- a file system without room ---------------------------------------------------------------------
# A memory disk, mounted in name spaces of the test's own.

# on_disk SIZE SCRIPT: run it in a folder of a disk of that size, with the names $swsim, $swrun and $plan.
on_disk()
{
    mkdir -p "$dir/disk"
    swsim=$(realpath "$SWSIM") swrun=$(realpath "$SWRUN") plan=$(realpath "$plan") unshare -rm sh -c '
        mount -t tmpfs -o size="$1" none "$2" && cd "$2" && eval "$3"' - "$1" "$dir/disk" "$2"
}
# keeps_old COMMAND: exit code 2 and a sentence; `out.svg` and the rest of the folder are as before.
keeps_old()
{
    on_disk 64k "echo old >out.svg; head -c 56k /dev/zero >taken; $1 >/dev/null 2>'$dir/err'; code=\$?
        cat '$dir/err'; ls -lA; [ \$code -eq 2 ] && [ \"\$(cat out.svg)\" = old ] && [ \"\$(ls -A | xargs)\" = 'out.svg taken' ]" &&
        grep -q 'No space left' "$dir/err"
}
# no_store COMMAND: exit code 2, and no file.
no_store()
{
    on_disk 8k "head -c 4k /dev/zero >taken; $1 --db=run.db \"\$plan\" >/dev/null 2>'$dir/err'; code=\$?
        cat '$dir/err'; ls -lA; [ \$code -eq 2 ] && [ \"\$(ls -A)\" = taken ]"
}
# `ulimit -f`: no signal ends a command whose file may not grow; it says why, and leaves no store.
too_large()
(
    rm -f "$dir"/limited.db*
    ulimit -f 8
    "$@" --db="$dir/limited.db" "$plan" >/dev/null 2>"$dir/err"
    code=$?
    cat "$dir/err"
    [ "$code" -eq 2 ] && grep -q 'error: ' "$dir/err"
)
check "a limit of file sizes: swrun" too_large "$SWRUN" -n 3
check "a limit of file sizes: swsim" too_large "$SWSIM" predict -n 5

# A folder without leave to write, for somebody else than root, who always has it.
mkdir "$dir/closed"
chmod 755 "$dir" "$dir/closed"
if [ "$(id -u)" -eq 0 ] && setpriv --reuid=65534 --clear-groups "$SWSIM" --version >/dev/null 2>&1; then
    check "a store where none may be made" complains 2 'cannot open trace store .*closed/n.db: .*: Permission denied' \
        setpriv --reuid=65534 --clear-groups "$SWSIM" predict --db="$dir/closed/n.db" "$plan"
else
    skip "nobody else can be had to run swsim"
fi
# A process that has locked a store, and was stopped.
if python3 -c 'import sqlite3' 2>"$dir/err"; then
    "$SWSIM" predict --db="$dir/held.db" "$plan" >"$dir/out"
    python3 -c 'import os, signal, sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)' "$dir/held.db" >"$dir/holding" &
    holder=$!
    until grep -q locked "$dir/holding"; do sleep .1; done
    check "a store that a stopped process has" complains 2 \
        "cannot open trace store .*held.db: process $holder has it and is stopped: continue it, or end it" \
        "$SWSIM" runs "$dir/held.db"
    kill -KILL "$holder"
    check "is read when that is gone" exits 0 "$SWSIM" runs "$dir/held.db"
else
    skip "no Python with SQLite"
    skip "no Python with SQLite"
fi
if unshare -rm true 2>"$dir/err"; then
    big='"$swsim" generate 1f1b -p16 -m128'
    check "a full disk: export" keeps_old "$big | \"\$swsim\" export -o out.svg -"
    check "a full disk: a certificate" keeps_old "$big | \"\$swsim\" verify --certificate=out.svg -"
    check "a run to draw" exits 0 "$SWSIM" predict -n 200 --db "$dir/pictured.db" "$plan"
    check "a full disk: a picture" keeps_old "\"\$swsim\" render --output=out.svg '$dir/pictured.db'"
    check "a full disk: a run" on_disk 1m '"$swrun" --quiet -n 100000 --db run.db "$plan" 2>&1 | grep full'
    for command in '"$swsim" predict -n 5' '"$swrun" --quiet -n 3'; do
        check "a full disk: no empty store is left" no_store "$command"
    done
    check "a full disk: its exit code, and what is there" on_disk 1m '"$swrun" --quiet -n 100000 --db run.db "$plan"
        [ $? -eq 2 ] && "$swsim" runs run.db | grep open'
else
    skip "no name spaces: $(cat "$dir/err")"
fi
done_testing

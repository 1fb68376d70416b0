#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# t_hostile.sh - files from strangers: no verb crashes, computes without bound, keeps silent about a failure or
# lets foreign bytes reach a terminal or a picture.
. "${srcdir:-.}/tests/tap.sh"

hello=$srcdir/plans/examples/hello.yaml

# ---- names that are no files ------------------------------------------------------------------------

for name in :memory: 'file:x?mode=memory'; do
    check "swrun --db=$name" complains 2 'expected the name of a file' "$SWRUN" -n 3 --db="$name" "$hello"
    check "swsim predict --db=$name" complains 2 'expected the name of a file' "$SWSIM" predict --db="$name" "$hello"
    check "swsim runs $name" complains 2 'expected the name of a file' "$SWSIM" runs "$name"
done

# ---- an environment that lies ------------------------------------------------------------------------

srun()
{
    SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_JOB_ID=1 SLURM_STEP_NUM_TASKS=$1 "$SWRUN" -n 2 "$hello"
}
check "a job of 2147483647 tasks" complains 2 'found 2147483647 processes .*at most 65536 ranks' srun 2147483647
check "a job of 65537 tasks" complains 2 'found 65537 processes' srun 65537

# ---- more than is allowed --------------------------------------------------------------------------

awk 'BEGIN { print "swplan: 1\nname: many\nschedule:"
    for (i = 0; i < 262145; i++)
        printf "  T%d: {stage: 0}\n", i
    print "intra_iter_deps: [[T262144, T0]]" }' >"$dir/tasks.yaml"
too_many_is_one_error()
{
    "$SWSIM" verify "$dir/tasks.yaml" >"$dir/out" 2>&1
    [ $? -eq 3 ] && grep -q 'found 262145 tasks, expected from 1 to 262144' "$dir/out" && [ "$(grep -c error: "$dir/out")" -eq 1 ]
}
check "too many tasks are one error" too_many_is_one_error

# ---- many errors -----------------------------------------------------------------------------------

{
    echo 'swplan: 1'
    yes 'a: 1' | head -n 400000
} >"$dir/doubled.yaml"
within()
{
    limit=$1
    shift
    timeout "$limit" "$@"
}
check "400,000 doubled keys" complains 3 'not read after so many errors' within 20 "$SWSIM" verify "$dir/doubled.yaml"
{
    echo 'swplan: 1'
    seq 1 200000 | sed 's/.*/k&: 1/'
} >"$dir/unknown.yaml"
check "200,000 unknown keys" complains 3 'not read after so many errors' within 20 "$SWSIM" verify "$dir/unknown.yaml"
{
    echo 'swplan: 1'
    echo 'schedule: {A: {stage: 0}}'
    echo 'intra_iter_deps:'
    seq 1 100000 | sed 's/.*/- [A, B&]/'
} >"$dir/dangling.yaml"
check "100,000 unknown tasks" complains 3 'not read after so many errors' within 20 "$SWSIM" verify "$dir/dangling.yaml"

# ---- stores ----------------------------------------------------------------------------------------

# Broken files in place of stores: the store of two runs is $dir/whole.db, what is broken $dir/broken.db.
"$SWRUN" -q -n 3 --db="$dir/whole.db" "$hello" >/dev/null 2>&1
"$SWRUN" -q -n 3 --serial --db="$dir/whole.db" "$hello" >/dev/null 2>&1
whole_bytes=$(wc -c <"$dir/whole.db")

# survives CODES COMMAND...: it ends in time with one of these exit codes, and says one sentence if it is not 0.
survives()
{
    codes=$1
    shift
    timeout 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    case " $codes " in
    *" $code "*) ;;
    *) echo "exit code $code of $*"; cat "$dir/err"; return 1 ;;
    esac
    [ "$code" -eq 0 ] || [ "$(grep -c 'error: ' "$dir/err")" -eq 1 ] || { echo "$*"; cat "$dir/err"; return 1; }
}
# reads CODES: what reads stores survives this one, and leaves it as it is, with no other file beside it.
reads()
{
    cp "$dir/broken.db" "$dir/before.db"
    survives "$1" "$SWSIM" runs "$dir/broken.db" && survives "$1" "$SWSIM" render -o "$dir/x.svg" "$dir/broken.db" &&
        survives "$1" "$SWSIM" compare "$dir/whole.db" "$dir/broken.db" &&
        survives "$1" "$SWSIM" predict --profile="$dir/broken.db" "$hello" || return
    cmp "$dir/before.db" "$dir/broken.db" && [ ! -e "$dir/broken.db-wal" ] && [ ! -e "$dir/broken.db-journal" ]
}
# writes CODES: likewise what adds a run, each to a copy.
writes()
{
    cp "$dir/broken.db" "$dir/before.db"
    survives "$1" "$SWRUN" -n 3 --db="$dir/broken.db" "$hello" || return
    cp "$dir/before.db" "$dir/broken.db"
    survives "$1" "$SWSIM" predict --iterations=20 --db="$dir/broken.db" "$hello"
}
refused_unchanged()
{
    writes 3 && cmp "$dir/before.db" "$dir/broken.db"
}
# flip PLACE BIT: the whole store with one bit changed.
flip()
{
    cp "$dir/whole.db" "$dir/broken.db"
    byte=$(od -An -tu1 -j "$1" -N1 "$dir/broken.db")
    printf "\\$(printf %03o $((byte ^ (1 << $2))))" | dd of="$dir/broken.db" bs=1 seek="$1" conv=notrunc 2>/dev/null
}
flips()
{
    while read -r place bit; do
        flip "$place" "$bit"
        reads "0 2 3" && writes "0 2 3" || { echo "byte $place, bit $bit"; return 1; }
    done <"$dir/places"
}

: >"$dir/broken.db"
check "an empty file is no store" reads 3
head -c "$whole_bytes" /dev/zero >"$dir/broken.db"
check "zeros are none" reads 3
check "... nor written to" refused_unchanged
head -c $((whole_bytes / 2)) "$dir/whole.db" >"$dir/broken.db"
check "half a store is damaged" reads 3
check "... and not written to" refused_unchanged
flip 53 0 # of the header: found where a page is added
check "damage that a write finds has the exit code of damage" complains 3 "is a damaged trace store" \
    "$SWSIM" predict --db="$dir/broken.db" "$hello"
seed=${SWSIM_SEED:-$(date +%s)}
awk -v seed="$seed" -v bytes="$whole_bytes" 'BEGIN { srand(seed)
    for (i = 0; i < 12; i++) print int(rand() * (i % 2 ? bytes : 4096)), int(rand() * 8) }' >"$dir/places"
check "bits flipped (SWSIM_SEED=$seed)" flips

if ! command -v sqlite3 >/dev/null; then
    skip "no sqlite3 here to change a store with"
    done_testing
    exit 0
fi

"$SWRUN" -q -n 3 --db="$dir/run.db" "$hello" >/dev/null 2>&1
"$SWSIM" verify -q --witness="$dir/witness.db" "$srcdir/plans/deadlocks/pqra.yaml" >/dev/null 2>&1

# changed STORE SQL: a copy of it, in $dir/changed.db
changed()
{
    rm -f "$dir/changed.db"
    cp "$dir/$1.db" "$dir/changed.db" && sqlite3 "$dir/changed.db" "$2"
}

for table in span agent iteration stat; do
    changed run "DROP TABLE $table"
    check "swrun into a store without the table $table" complains 3 "no such table: $table" \
        "$SWRUN" -n 3 --db="$dir/changed.db" "$hello"
    changed run "DROP TABLE $table"
    check "swsim render of one" complains 3 "no such table: $table" "$SWSIM" render -o "$dir/x.svg" "$dir/changed.db"
done

# ---- foreign bytes ---------------------------------------------------------------------------------

# harmless: what the last `hears` heard is UTF-8 without C0 (but for new lines and tabs), C1 and what changes the
# direction of text
harmless()
{
    if ! iconv -f UTF-8 -t UTF-8 "$1" >/dev/null 2>&1; then
        echo "bytes that are no UTF-8"
        return 1
    fi
    if LC_ALL=C grep -nP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae\x8e\x8f]|\xe2\x81[\xa6-\xa9]' "$1" >"$dir/acts"; then
        cat -v "$dir/acts"
        return 1
    fi
}
hears()
{
    timeout 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    test "$code" -lt 5 || { echo "exit code $code"; return 1; }
    harmless "$dir/out" && harmless "$dir/err"
}
esc=$(printf '\033[31m\a\302\233\342\200\256\342\201\246\377')

# In a store: every text in every table.
nasty="char(27) || '[31m' || char(7, 155, 8238, 8294, 10) || CAST(x'ff' AS TEXT) || '<&\"]]>'"
changed run "UPDATE run SET plan_name = plan_name || $nasty, note = $nasty, device = $nasty;
    UPDATE agent SET name = name || $nasty; UPDATE span SET task = task || $nasty, cause = $nasty;
    UPDATE stat SET key = key || $nasty"
for verb in runs 'runs --json' 'watch --timeout=2s' "render -o $dir/x.svg" "render -o $dir/x.dot" 'compare' 'compare --json'; do
    check "swsim $verb of a store with nasty names" hears "$SWSIM" $verb "$dir/changed.db"
done
check "the SVG has none of it" harmless "$dir/x.svg"
check "nor has the DOT" harmless "$dir/x.dot"
if command -v xmllint >/dev/null; then
    check "the SVG is well-formed" xmllint --noout "$dir/x.svg"
elif command -v python3 >/dev/null; then
    check "the SVG is well-formed" python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$dir/x.svg"
else
    skip "no reader of XML here"
fi
changed witness "UPDATE run SET plan_name = plan_name || $nasty, note = $nasty;
    UPDATE agent SET name = name || $nasty; UPDATE span SET task = $nasty, cause = $nasty;
    UPDATE step_word SET op = $nasty, agent = $nasty; UPDATE blocked SET waits_for = $nasty, agent = agent || $nasty"
for verb in runs "render -o $dir/x.svg" "render -o $dir/x.dot"; do
    check "swsim $verb of a witness with nasty names" hears "$SWSIM" $verb "$dir/changed.db"
done
check "its SVG has none of it" harmless "$dir/x.svg"
check "swrun --replay of it" hears "$SWRUN" --replay="$dir/changed.db" --timeout=1s

# In plans, schedules, file names and options.
yaml='\e[31m\x07\u009b\u202e\u2066'
good=$dir/$esc.yaml
cp "$hello" "$good"
printf 'swplan: 1\n"%s": 1\nname: "%s"\nschedule: {"%s": {stage: 0, "%s": 1, stream: "%s", work: "%s"}}\nretire: "%s"\n' \
    "$yaml" "$yaml" "$yaml" "$yaml" "$yaml" "$yaml" "$yaml" >"$dir/keys.yaml"
printf 'swplan: 1\nabout: "%s"\nschedule: {A: {stage: 0, writes: ["%s"]}}\nintra_iter_deps: [["%s", A]]\n' \
    "$yaml" "$yaml" "$yaml" >"$dir/names.yaml"
printf '%s0F0,0B0\n1F0%s,1B0\n' "$esc" "$esc" >"$dir/cells.csv"
printf 'swplan: 1\n# %s\nschedule: {A: {stage: 0}}\n' "$esc" >"$dir/bytes.yaml"
for verb in verify predict lower schedule stages export 'tune --budget=3' compare "render -o $dir/x.svg" 'verify --json' 'predict --json' 'export --format=csv' 'runs'; do
    for plan in "$good" "$dir/keys.yaml" "$dir/names.yaml" "$dir/cells.csv" "$dir/bytes.yaml" "$dir/none$esc"; do
        check "swsim $verb $(printf '%s' "${plan#"$dir"/}" | tr -cd 'a-z.')" hears "$SWSIM" $verb "$plan"
    done
done
for plan in "$good" "$dir/keys.yaml" "$dir/names.yaml" "$dir/cells.csv"; do
    check "swrun $(printf '%s' "${plan#"$dir"/}" | tr -cd 'a-z.')" hears "$SWRUN" -n 2 "$plan"
done
for option in driver=X limit=X jitter=X iterations=X property=X what-if=X X; do
    for verb in verify predict tune; do
        check "swsim $verb --$option" hears "$SWSIM" "$verb" "--$(printf '%s' "$option" | sed "s/X/$(printf '%s' "$esc" | sed 's/[[\/&]/\\&/g')/")" "$hello"
    done
done
check "swrun --db" hears "$SWRUN" -n 2 --db="$dir/$esc.db" "$hello"
for option in device driver timeout mem rendezvous inject; do
    check "swrun --$option" hears "$SWRUN" -n 2 "--$option=$esc" "$hello"
done
check "swsim generate" hears "$SWSIM" generate "$esc"
check "a verb" hears "$SWSIM" "$esc"

# ---- stores that are too large, or lie ---------------------------------------------------------------

small_render()
(
    test -n "${INSTRUMENT_FLAGS-}" || ulimit -v 3000000 # a sanitizer's shadow memory is larger
    within 60 "$SWSIM" render -o "$dir/x.svg" "$dir/changed.db"
)
changed witness "UPDATE span SET end_ns = 2000000 WHERE id = 2"
check "a witness of two million steps" complains 3 'too large to draw: 2000000 steps' small_render
changed witness "UPDATE span SET end_ns = 9223372036854775807 WHERE id = 2"
check "a step beyond all numbers" complains 3 'impossible time' small_render
changed witness "UPDATE span SET start_ns = -1000 WHERE id = 2"
check "a step before the first" complains 3 'found step -1000' small_render

done_testing

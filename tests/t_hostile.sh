#!/bin/sh
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

small_render()
(
    ulimit -v 3000000
    within 60 "$SWSIM" render -o "$dir/x.svg" "$dir/changed.db"
)
changed witness "UPDATE span SET end_ns = 2000000 WHERE id = 2"
check "a witness of two million steps" complains 3 'too large to draw: 2000000 steps' small_render
changed witness "UPDATE span SET end_ns = 9223372036854775807 WHERE id = 2"
check "a step beyond all numbers" complains 3 'impossible time' small_render
changed witness "UPDATE span SET start_ns = -1000 WHERE id = 2"
check "a step before the first" complains 3 'found step -1000' small_render

done_testing

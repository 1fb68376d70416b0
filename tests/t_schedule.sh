#!/bin/sh
# `swsim schedule` prints the tables the reference prints, cell for cell: tests/expected/schedule/NAME.txt
# holds a line `index|task|thread|stream|P0 P1 ...` for each row of plans/torchrec/NAME.yaml.
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
    plan=$srcdir/plans/torchrec/$name.yaml
    check "$name" same "$expected" "$plan"
    check "$name as JSON" same_json "$expected" "$plan"
done

# Stage analysis: the plans of the reference use every stage.
optimal()
{
    "$SWSIM" stages "$1" | grep -q '^LDS == depth (Dilworth-optimal)$'
}
for plan in "$srcdir"/plans/torchrec/*.yaml; do
    test -f "$plan" || continue
    check "$(basename "$plan" .yaml) has no empty stage" optimal "$plan"
done

# The enqueue order of the ready-first rule, as the reference's pseudocode gives it.
ready_first()
{
    "$SWSIM" stages "$srcdir/plans/torchrec/sparse_dist.yaml" >"$dir/out" || return
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
done_testing

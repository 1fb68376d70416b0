#!/bin/sh
# swcheck and `swsim verify --certificate` on the command line, with the plans of the project: the certificate of a
# plan that was mended does not pass for the broken one, not even with its hash, and no field of one may be changed at will.
. "${srcdir:-.}/tests/tap.sh"

plans=$srcdir/plans
good=$plans/examples/hello.yaml
rank=$plans/examples/one_f_one_b.yaml
searched=$plans/faults/lock_fixed.yaml

# fails CODE PATTERN COMMAND...
fails()
{
    code=$1 pattern=$2
    shift 2
    exits "$code" "$@" && says "$pattern" "$@"
}

check "a pipeline has a certificate" exits 0 "$SWSIM" verify --quiet --certificate="$dir/hello" "$good"
check "swcheck says yes" prints 0 'yes: .*deadlock-free.*race-free.*any number of iterations, driver dataflow' \
    "$SWCHECK" "$good" "$dir/hello"
check "a rank program has one" exits 0 "$SWSIM" verify --quiet --certificate="$dir/rank" "$rank"
check "and swcheck says yes" prints 0 'yes: .*race-free.*written before they are read.*by run' "$SWCHECK" "$rank" "$dir/rank"
check "a searched plan has one" exits 0 "$SWSIM" verify --quiet --certificate="$dir/searched" "$searched"
check "swcheck closes its set of states" prints 0 'yes: .*by states' "$SWCHECK" "$searched" "$dir/searched"
check "--quiet prints nothing" prints 0 '^$' sh -c '"$1" -q "$2" "$3" && echo' sh "$SWCHECK" "$good" "$dir/hello"
check "it reads standard input" prints 0 yes sh -c '"$1" "$2" - <"$3"' sh "$SWCHECK" "$good" "$dir/hello"
check "a certificate of another plan" prints 1 'another plan' "$SWCHECK" "$rank" "$dir/hello"
check "an empty certificate" prints 1 'empty' "$SWCHECK" "$good" /dev/null
check "no certificate" fails 2 'cannot read' "$SWCHECK" "$good" "$dir/none"
check "no plan" fails 2 'cannot' "$SWCHECK" "$dir/none" "$dir/hello"
check "a bad plan" fails 3 'expected' "$SWCHECK" "$dir/hello" "$dir/hello"
check "one argument" fails 2 'missing argument' "$SWCHECK" "$good"
check "an unknown option" fails 2 'unknown option' "$SWCHECK" --quite "$good" "$dir/hello"
check "--help" prints 0 'Usage: swcheck' "$SWCHECK" --help
check "--version" prints 0 '^swcheck ' "$SWCHECK" --version
check "a violated plan gets none" fails 1 'was not written' \
    "$SWSIM" verify --quiet --no-fix --certificate="$dir/none" "$plans/deadlocks/scenario1_broken.yaml"
check "and no file" test ! -e "$dir/none"
check "one plan at a time" fails 2 'found 2 plans' "$SWSIM" verify --certificate="$dir/none" "$good" "$rank"

# hash_of PLAN: as swcheck tells it.
hash_of()
{
    printf 'swcert 1\nplan x\n' | "$SWCHECK" "$1" - | sed 's/.* //'
}

# refused DRIVER FIXED BROKEN: what was mended, for what was broken. Counts in $tried.
refused()
{
    rm -f "$dir/fixed"
    "$SWSIM" verify --quiet --no-fix --driver="$1" --limit=states=5000,time=2s --certificate="$dir/fixed" "$2" >/dev/null 2>&1
    [ -e "$dir/fixed" ] || return 0
    tried=$((tried + 1))
    sed "s/^plan .*/plan $(hash_of "$3")/" "$dir/fixed" >"$dir/patched"
    "$SWCHECK" -q "$3" "$dir/fixed" && echo "$3: accepted with another hash" && return 1
    "$SWCHECK" -q "$3" "$dir/patched" || return 0
    violated=$("$SWSIM" verify --quiet --no-fix --driver="$1" --json "$3" | tr ',' '\n' |
        sed -n 's/.*"\([a-z]*\)":"\(some\|always\)".*/\1/p' | sort -u)
    for property in $violated; do
        grep -q "^proves.* $property" "$dir/patched" && echo "$3, $1: $property" && return 1
    done
    return 0
}

mended_is_refused()
{
    failed=0 tried=0
    for fixed in "$plans"/*/*_fixed.yaml; do
        broken=${fixed%_fixed.yaml}_broken.yaml
        [ -e "$broken" ] || continue
        for driver in clock dataflow; do
            refused "$driver" "$fixed" "$broken" || failed=1
            grep -q '^schedule:' "$fixed" || break
        done
    done
    [ "$failed" -eq 0 ] && [ "$tried" -gt 10 ]
}
check "the certificate of a mended plan is none of the broken one" mended_is_refused

# Each line of a certificate, left out.
each_line_counts()
{
    lines=$(grep -n '^end$' "$2" | head -n 1 | cut -d: -f1)
    n=1
    while [ "$n" -le "$lines" ]; do
        sed "${n}d" "$2" >"$dir/shorter"
        "$SWCHECK" -q "$1" "$dir/shorter" && echo "line $n is not needed" && return 1
        n=$((n + 1))
    done
}
check "every line of a pipeline's certificate counts" each_line_counts "$good" "$dir/hello"
check "every line of a rank program's" each_line_counts "$rank" "$dir/rank"
check "every line of a searched plan's" each_line_counts "$searched" "$dir/searched"
done_testing

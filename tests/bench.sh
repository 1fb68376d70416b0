#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh - how fast the checker and the simulator are here: one line for each plan and driver, with
# the figures that the commands give of themselves. `make bench` runs it; PLANS narrows it down.
set -eu
: "${srcdir:=.}"
: "${SWSIM:=./swsim}"
: "${PLANS:=$srcdir/plans/reference/*.yaml}"

# field KEY: the value of a key in the JSON object on standard input, or nothing.
field()
{
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p"
}

# columns: align lines of cells with a bar between; four digits are enough of a fraction.
columns()
{
    awk -F '|' '{
        printf "%-32s", $1
        for (i = 2; i <= NF; i++)
            printf " %15s", $i ~ /^[0-9]+[.e]/ ? sprintf("%.4g", $i) : $i
        print ""
    }'
}

# table KEY...: a head line; then, for each line "PLAN OBJECT" on standard input, the plan and the
# values of these keys.
table()
{
    {
        printf 'plan'
        printf '|%s' "$@"
        echo
        while read -r plan object; do
            printf '%s' "$plan"
            for key in "$@"; do
                printf '|%s' "$(echo "$object" | field "$key")"
            done
            echo
        done
    } | columns
}

# each COMMAND...: the command for every plan, its objects each after the plan's name. A plan that is
# refuted or undecided is measured like any other; what is wrong with a bad one, the command says.
each()
{
    for plan in $PLANS; do
        "$SWSIM" "$@" --json --quiet "$plan" | sed "s|^|$(basename "$plan" .yaml) |"
    done
}

each verify | table driver verdict states transitions seconds peak_bytes
echo
each predict --iterations 10000 | table driver tasks_simulated seconds

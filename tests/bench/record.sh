#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# record.sh [ROUNDS] - the cost of a call under `swsim record`, on emulated CUDA: the same program alone and recorded, in
# turns, ROUNDS times (15). Nanoseconds a call: the fastest round, and the one in the middle. `make bench-record` runs it.
set -eu
: "${SWSIM:=./swsim}"
: "${PROGRAM:=tests/record/program}"
rounds=${1:-15}
[ -x "$PROGRAM" ] || { echo "$PROGRAM is not there: built without CUDA, which the emulation needs" >&2; exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for round in $(seq "$rounds"); do
    SWSIM_RECORD_TIMES=0 "$PROGRAM" overhead | sed 's/^/alone /' >>"$dir/all"
    "$SWSIM" record -q --no-device-times -o "$dir/run.swr" -- "$PROGRAM" overhead 2>"$dir/log" >"$dir/out" ||
        { cat "$dir/log" >&2; exit 2; }
    sed 's/^/recorded /' "$dir/out" >>"$dir/all"
    rm -f "$dir/run.swr"
done
# WAY CALL WHICH: of the sorted rounds
nth() { sed -n "s/^$1 $2 //p" "$dir/all" | sort -n | sed -n "$3p"; }
printf '%-10s %22s %22s\n' '' 'alone, fastest (middle)' 'recorded'
for call in query lock launch; do
    printf '%-10s %12s (%s) ns %16s (%s) ns\n' "$call" "$(nth alone $call 1)" "$(nth alone $call $(((rounds + 1) / 2)))" \
        "$(nth recorded $call 1)" "$(nth recorded $call $(((rounds + 1) / 2)))"
done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# timed_driver.sh DRIVER ARGUMENT... - run Automake's driver of a test; then add a line ":seconds: ELAPSED CPU" to
# the .trs file that it writes.
set -u
trs=
previous=
for argument; do
    test "$previous" = --trs-file && trs=$argument
    previous=$argument
done
start=$(date +%s.%N)
"$@"
code=$?
end=$(date +%s.%N)
if [ -n "$trs" ] && [ -f "$trs" ]; then
    times >"$trs.times" # of this shell, then of its children: user, system
    awk -v start="$start" -v end="$end" '
        function seconds(text,  part) { split(text, part, /[ms]/); return 60 * part[1] + part[2] }
        FNR == 2 { printf ":seconds: %.1f %.1f\n", end - start, seconds($1) + seconds($2) }
        ' "$trs.times" >>"$trs"
    rm -f "$trs.times"
fi
exit $code

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare.sh - predicted against measured over the TorchRec plans: a serial run and a pipelined run under
# each driver, then `swsim compare`. `make bench` runs it.
#
#   DEVICE=host|cuda    which device (default host)
#   ITERATIONS=N        of each run (default 200)
#   RANKS=N             instead of the plans' own
#   WORK=yes|no         no: kernels are taken out of the plans and copies and messages made small, so that
#                       tasks sleep for their time. By default so on the host device with fewer cores than
#                       CORES (default 16), because streams that compute at the same time would share them
#   REALTIME=yes|no     threads wake before those of other programs (chrt -f 1). By default where that is
#                       allowed and tasks sleep: then a machine that also does other things disturbs little
#   PLANS=PATTERN       other plans
#   LIMIT=SHARE         exit with 1 when the worst error is more, as in 5%
#   DB=FILE             keep the runs here (default: a temporary store, removed)
set -eu
: "${srcdir:=.}"
: "${SWSIM:=./swsim}"
: "${SWRUN:=./swrun}"
: "${DEVICE:=host}"
: "${ITERATIONS:=200}"
: "${RANKS:=}"
: "${CORES:=16}"
: "${WORK:=}"
: "${REALTIME:=}"
: "${LIMIT:=}"
: "${DB:=}"
: "${PLANS:=$srcdir/plans/reference/*.yaml}"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
db=${DB:-$dir/runs.db}
cores=$(getconf _NPROCESSORS_ONLN)
if [ -z "$WORK" ]; then
    WORK=yes
    [ "$DEVICE" != host ] || [ "$cores" -ge "$CORES" ] || WORK=no
fi
if [ -z "$REALTIME" ]; then
    REALTIME=no
    if [ "$WORK" = no ] && chrt -f 1 true 2>/dev/null; then REALTIME=yes; fi
fi
first=
[ "$REALTIME" = no ] || first='chrt -f 1'

# plan FILE: the plan as it is run here.
plan()
{
    if [ "$WORK" = yes ]; then
        cat "$1"
    else
        sed -E 's/work: \{(gemm|gather|axpy): \{[^}]*\}\}//; s/(copy|collective): ([^}]*)bytes: [0-9]+[kKMG]i?B/\1: \2bytes: 1KiB/' "$1"
    fi
}

# run OPTION...: one more run in the store. A run that is not legal is no measurement.
run()
{
    $first "$SWRUN" --quiet --device "$DEVICE" -n "$ITERATIONS" ${RANKS:+--ranks "$RANKS"} --db "$db" "$@" \
        >"$dir/out" 2>&1 || { cat "$dir/out" >&2; exit 1; }
}

echo "device $DEVICE, $cores cores, $ITERATIONS iterations a run, load $(cut -d ' ' -f 1 /proc/loadavg 2>/dev/null || echo unknown)"
[ "$WORK" = yes ] || echo "tasks sleep for their time: kernels are left out, copies and messages are small"
[ "$REALTIME" = no ] || echo "real-time priority"
for file in $PLANS; do
    case $file in *.upstream.yaml) continue ;; esac
    plan "$file" >"$dir/plan.yaml"
    run --serial "$dir/plan.yaml"
    run --driver both "$dir/plan.yaml"
done
"$SWSIM" compare ${LIMIT:+--limit-error "$LIMIT"} ${QUIET:+--quiet} "$db"

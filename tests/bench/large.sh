#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# large.sh [RANKSxMICROBATCHES...] - time and memory of large schedules: 1F1B verified and predicted, processor seconds and
# MB, and each for 1,000 passes. Without arguments: 1, 4, 16, 64, 256 and 512 thousand passes, and interleaved 1F1B with
# 512 stages. 1024x4096 has 8.4 million and takes about 2 GB.
set -eu
: "${SWSIM:=./swsim}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
/usr/bin/time -f %U true 2>/dev/null || { echo "large.sh: found no GNU time, expected /usr/bin/time" >&2; exit 1; }

# row TITLE PASSES OPTION...
row()
{
    title=$1 passes=$2
    shift 2
    "$SWSIM" generate "$@" --brief >"$dir/plan.yaml"
    echo 'times: {F: 1ms, B: 2ms}' >>"$dir/plan.yaml"
    for verb in verify predict; do
        /usr/bin/time -o "$dir/used" -f '%U %S %M' "$SWSIM" $verb "$dir/plan.yaml" >"$dir/out"
        awk -v title="$title" -v verb=$verb -v passes="$passes" '{
            seconds = $1 + $2; mb = $3 * 1024 / 1e6
            printf "%-34s %-8s %9d passes %8.2f s %8.0f MB %8.4f s and %6.3f MB a thousand\n",
                title, verb, passes, seconds, mb, 1000 * seconds / passes, 1000 * mb / passes
        }' "$dir/used"
    done
}

[ $# -gt 0 ] || set -- 8x64 16x128 32x256 64x512 128x1024 256x1024 interleaved
for size in "$@"; do
    if [ "$size" = interleaved ]; then
        row 'interleaved, 64 ranks x 8 x 512' 524288 interleaved_1f1b --ranks=64 --chunks=8 --microbatches=512
        continue
    fi
    ranks=${size%x*} microbatches=${size#*x}
    row "1F1B, $ranks ranks x $microbatches" $((2 * ranks * microbatches)) 1f1b --ranks="$ranks" --microbatches="$microbatches"
done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Predictions of plans imported from traces of real jobs, against what those traces measured beside them: the job itself;
# collectives of each rank; one step, repeated, against the other steps; communication that takes no time against the time
# that it was alone; a job without its data loader. The figures of doc/measurements.md; the traces are in ../shared/data.
. "${srcdir:-.}/tests/tap.sh"
: "${SWSIM_SHARED:=$srcdir/../shared}"
data=$SWSIM_SHARED/data/traces

command -v python3 >/dev/null || skip_all "no python3"
[ -d "$data" ] || skip_all "no traces of real jobs in $data"

# figures KIND FILE...: those of step_figures.py, one a line.
figures()
{
    kind=$1
    shift
    python3 "$srcdir/tests/step_figures.py" "$kind" "$SWSIM" "$@" >"$dir/figures" 2>"$dir/err" || cat "$dir/err"
    cat "$dir/figures"
}
# Of each of $1 lines the figure of column $2 is that of the column behind it, within $3%.
agree()
{
    awk -v lines="$1" -v at="$2" -v most="$3" '
        { error = $at / $(at + 1) - 1; wrong += error > most / 100 || error < -most / 100; printf "%s %s %.2f%%\n", $2, $3, 100 * error }
        END { exit !(NR == lines && !wrong) }' "$dir/figures"
}
# The mean error of a period, over the steps, and the mean of their sizes: at most 1% and $1%.
repeats()
{
    awk -v most="$1" '$1 == "repeated" { error = $4 / $5 - 1; sum += error; size += error < 0 ? -error : error; steps++ }
        END { printf "mean error %.2f%%, mean size %.2f%%, %d steps\n", 100 * sum / steps, 100 * size / steps, steps
              exit !(steps == 6 && sum / steps < 0.01 && sum / steps > -0.01 && size / steps <= most / 100) }' "$dir/figures"
}
gains_at_most_the_exposed()
{
    awk '$1 == "communication" { steps++; wrong += $4 < 0 || $4 > $5 }
        END { printf "%d steps, %d outside\n", steps, wrong; exit !(steps == 6 && !wrong) }' "$dir/figures"
}

check "jobs are replayed" figures replay "$data/dlrm_8ranks" "$data"/*.gz "$SWSIM_SHARED/data/kineto"/[aem]*.gz
check "... within 1% of what they took" agree 11 3 1
check "collectives of each rank" figures collectives "$data/dlrm_8ranks"
check "... take what they took within 2%" agree 8 4 2
check "... in an export of Nsight Systems" figures collectives "$data/nsys_2gpu.sqlite.gz"
check "... within 3%" agree 2 4 3
# The other trace has one step with a copy of 40 ms instead of 3, so its median tells more than its mean.
check "a job without its data loader" figures loader "$data/resnet50_workers0_steps5_10.json.gz" "$data/resnet50_workers4_steps5_10.json.gz"
check "... takes what it took with one of four threads, within 10% of the median" \
    awk '{ error = $2 / $4 - 1; printf "%.2f%% of the mean, %.2f%% of the median\n", 100 * ($2 / $3 - 1), 100 * error; exit !(error < 0.1 && error > -0.1) }' "$dir/figures"

for name in torchrec_a100_rank0_of_8 resnet50_workers0_steps5_10; do
    check "$name: each step is repeated" figures steps "$data/$name.json.gz"
    check "... and lasts as long as the others" repeats 5
    [ "$name" = resnet50_workers0_steps5_10 ] ||
        check "... without communication no more is gained than it is exposed" gains_at_most_the_exposed
done
# Of the eight ranks one step each is recorded: no period is measured, and the two forms are two ways to one.
forms_agree()
{
    set -- $(python3 "$srcdir/tests/step_figures.py" forms "$SWSIM" 10 "$data/dlrm_8ranks" 2>&1)
    echo "host programs $1 ns, pipeline $2 ns"
    awk -v host="$1" -v pipeline="$2" 'BEGIN { error = pipeline / host - 1; exit !(host > 1e7 && error < 0.01 && error > -0.01) }'
}
check "dlrm_8ranks: its step repeated and its pipeline have one period" forms_agree
done_testing

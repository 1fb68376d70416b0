#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How much there may be: long runs and their memory, a large store, large plans, many plans in one command.
#
#     SWSIM=./swsim SWRUN=./swrun sh tests/bench/load.sh [PART...]
#
# Parts: run stats store plans tasks ranks host; by default all, and `long`, a run of a million iterations (13 minutes and more). A row has the command, its size, processor and wall
# seconds, the most memory, and the exit code. A row beside the one of half the size shows the growth.
#
#   ITERATIONS=N   of the longer run (default 30,000; the shorter has half as many)
#   COPIES=N       the large store is a run of 500 iterations, so many times (default 800: 2.3 GB; needs sqlite3)
#   LIMIT=SECONDS  for a command (default 300)
set -u
: "${SWSIM:=./swsim}"
: "${SWRUN:=./swrun}"
: "${srcdir:=$(dirname "$0")/../..}"
: "${ITERATIONS:=30000}"
: "${COPIES:=800}"
: "${LIMIT:=300}"
case $SWSIM in */*) SWSIM=$(cd "$(dirname "$SWSIM")" && pwd)/$(basename "$SWSIM") ;; esac
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
trap 'exit 99' INT TERM

# row SIZE COMMAND...
row()
{
    size=$1
    shift
    env time -f '%U %S %e %M %x' -o "$dir/time" timeout "$LIMIT" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    name=$(basename "$1")
    shift
    tail -n 1 "$dir/time" | awk -v size="$size" -v command="$name $(echo "$*" | sed "s;$dir/;;g")" '{
        printf "%-56.56s %12s  %8.2f %8.2f %8.1f %4s\n", command, size, $1 + $2, $3, $4 / 1024, $5 }'
    grep -m 1 -o 'error: .*' "$dir/err" | sed "s;$dir/;;g; s;^;    ;"
}

# ---- plans ---------------------------------------------------------------------------------------

# Eight tasks an iteration of 0.8 ms, so 10,000 operations a second.
steady_plan()
{
    cat <<'PLAN'
swplan: 1
name: steady
max_depth: 3
schedule:
  A: {stage: 0, stream: memcpy, thread_group: io, time: 380us}
  B: {stage: 0, stream: memcpy, thread_group: io, time: 380us}
  C: {stage: 1, stream: dist, thread_group: dist, time: 380us}
  D: {stage: 1, stream: dist, thread_group: dist, time: 380us}
  E: {stage: 2, time: 190us}
  F: {stage: 2, time: 190us}
  G: {stage: 2, time: 190us}
  H: {stage: 2, time: 190us}
intra_iter_deps: [[B, A], [C, B], [D, C], [E, D], [F, E], [G, F], [H, G]]
PLAN
}
fast_plan() { steady_plan | sed 's/, time: [0-9]*us//; s/time: [0-9]*us//; s/name: steady/name: fast/'; }
tasks_plan()
{
    awk -v n="$1" 'BEGIN {
        print "swplan: 1\nname: tasks\nschedule:"
        for (i = 0; i < n; i++) printf "  T%d: {stage: %d, stream: s%d, time: 10us}\n", i, int(i * 4 / n), i % 8
        print "intra_iter_deps:"
        for (i = 1; i < n; i++) printf "  - [T%d, T%d]\n", i, i - 1
    }'
}
ranks_plan()
{
    cat <<PLAN
swplan: 1
name: ranks
ranks: $1
schedule:
  Copy: {stage: 0, stream: memcpy, time: 1ms}
  Meet: {stage: 1, time: 1ms, globally_ordered: true, work: {collective: all_reduce, comm: dp, bytes: 4KiB}}
  Step: {stage: 1, time: 1ms}
intra_iter_deps: [[Meet, Copy], [Step, Meet]]
PLAN
}
host_plan()
{
    awk -v n="$1" 'BEGIN {
        print "swplan: 1\nname: host\nthreads:\n  r0.main:"
        for (i = 0; i < n / 2; i++) printf "  - {launch: k%d, stream: s, time: 1us}\n  - {sync: device}\n", i % 10
    }'
}

# ---- parts ---------------------------------------------------------------------------------------

part_run()
{
    steady_plan >"$dir/steady.yaml"
    for n in $((ITERATIONS / 2)) "$ITERATIONS"; do
        rm -f "$dir/run.db"
        row "$n" "$SWRUN" --driver=dataflow -n "$n" --db="$dir/run.db" "$dir/steady.yaml"
        sed -n 's/^  \(iteration\|held\|legal\) /    &/p' "$dir/out"
    done
    rm -f "$dir/run.db"
}

# Up to 13,000 operations a second; the rest is the machine's.
part_long()
{
    steady_plan | sed 's/380us/300us/; s/190us/150us/' >"$dir/long.yaml"
    LIMIT=6000
    row 1000000 "$SWRUN" --driver=dataflow -n 1000000 --db="$dir/run.db" "$dir/long.yaml"
    sed -n 's/^  \(iteration\|throughput\|held\|legal\) /    &/p' "$dir/out"
    rm -f "$dir/run.db"
}

part_stats()
{
    fast_plan >"$dir/fast.yaml"
    for n in $((ITERATIONS * 2)) $((ITERATIONS * 4)); do
        row "$n" "$SWRUN" --driver=dataflow --stats --no-check -n "$n" "$dir/fast.yaml"
        row "$n" "$SWRUN" --driver=dataflow --stats -n "$n" "$dir/fast.yaml"
    done
}

# The first run of a store becomes $2 times as long.
lengthen()
{
    sqlite3 "$1" >"$dir/sql.out" <<SQL
PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; PRAGMA cache_size = -400000;
CREATE TEMP TABLE size AS SELECT max(number) + 1 AS iterations, max(retire_ns) + 1 AS ns,
    (SELECT max(id) FROM span) AS spans, (SELECT max(seq) + 1 FROM step) AS steps FROM iteration;
CREATE TEMP TABLE copy AS WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < $2 - 1)
    SELECT k FROM n;
CREATE TEMP TABLE spans AS SELECT * FROM span;
CREATE TEMP TABLE edges AS SELECT * FROM edge;
CREATE TEMP TABLE iterations AS SELECT * FROM iteration;
CREATE TEMP TABLE steps AS SELECT * FROM step_block;
BEGIN;
INSERT INTO span SELECT id + k * size.spans, run, agent, kind, task, iteration + k * iterations, start_ns + k * ns,
    end_ns + k * ns, cause FROM copy, size, spans;
INSERT INTO edge SELECT run, from_span + k * spans, to_span + k * spans, kind FROM copy, size, edges;
INSERT INTO iteration SELECT run, rank, number + k * size.iterations, start_ns + k * ns, retire_ns + k * ns
    FROM copy, size, iterations;
INSERT INTO step_block (run, seq, words, iterations, iteration, time_ns, numbers) SELECT run, seq + k * size.steps, words,
    steps.iterations, iteration + k * size.iterations, time_ns + k * ns, numbers FROM copy, size, steps;
UPDATE run SET duration_ns = duration_ns * $2, iterations_wanted = iterations_wanted * $2;
COMMIT;
SQL
}

part_store()
{
    command -v sqlite3 >/dev/null || { echo "    no sqlite3 here"; return; }
    fast_plan >"$dir/fast.yaml"
    "$SWRUN" --driver=dataflow -n 500 --db="$dir/large.db" "$dir/fast.yaml" >/dev/null || return
    lengthen "$dir/large.db" "$COPIES"
    size=$(du -m "$dir/large.db" | cut -f1)MB
    middle=$((COPIES * 250))
    row "$size" "$SWSIM" runs "$dir/large.db"
    row "$size" "$SWSIM" render -o "$dir/first.svg" "$dir/large.db"
    row "$size" "$SWSIM" render --from=$middle --to=$((middle + 9)) -o "$dir/middle.svg" "$dir/large.db"
    row "$size" "$SWSIM" compare "$dir/large.db"
    rm -f "$dir/large.db"
}

part_plans()
{
    for n in 500 1000; do
        mkdir "$dir/many.$n"
        i=0
        while [ $i -lt $n ]; do
            steady_plan | sed "s/name: steady/name: p$i/" >"$dir/many.$n/$i.yaml"
            i=$((i + 1))
        done
        cd "$dir/many.$n" || exit 99
        row "$n plans" "$SWSIM" verify -q *.yaml
        cd - >/dev/null || exit 99
        rm -r "$dir/many.$n"
    done
    part_zoo
}

# Copies of the plans of plans/ in turn, so many that each size has the same share of each.
part_zoo()
{
    for n in 1 2 5; do
        mkdir "$dir/zoo.$n"
        for plan in "$srcdir"/plans/*/*.yaml; do
            case $plan in *.upstream.yaml) continue ;; esac
            i=0
            while [ $i -lt $n ]; do
                cp "$plan" "$dir/zoo.$n/$i.$(basename "$plan")"
                i=$((i + 1))
            done
        done
        set -- "$dir/zoo.$n"/*.yaml
        row "$# plans" "$SWSIM" verify -q "$@"
        awk '/^[^ ]/ { rows[$3]++ } END { for (verdict in rows) printf "    %d rows: %s\n", rows[verdict], verdict }' "$dir/out"
        rm -r "$dir/zoo.$n"
    done
}

# verbs SIZE FILE [swrun's options]
verbs()
{
    row "$1" "$SWSIM" verify "$2"
    row "$1" "$SWSIM" predict "$2"
    row "$1" "$SWSIM" export "$2"
    row "$1" "$SWSIM" render -o "$dir/plan.svg" "$2"
}
part_tasks()
{
    for n in 2048 4096; do
        tasks_plan $n >"$dir/tasks.yaml"
        verbs $n "$dir/tasks.yaml"
        row $n "$SWRUN" -n 10 "$dir/tasks.yaml"
    done
}
part_ranks()
{
    for n in 512 1024 4096; do
        ranks_plan $n >"$dir/ranks.yaml"
        verbs $n "$dir/ranks.yaml"
    done
    for n in 32 64; do
        ranks_plan $n >"$dir/ranks.yaml"
        row $n "$SWRUN" -n 10 "$dir/ranks.yaml"
    done
}
part_host()
{
    for n in 500000 1000000; do
        host_plan $n >"$dir/host.yaml"
        verbs $n "$dir/host.yaml"
    done
    for n in 20000 40000; do
        host_plan $n >"$dir/host.yaml"
        row $n "$SWRUN" "$dir/host.yaml"
    done
}

printf '%-56s %12s  %8s %8s %8s %4s\n' command size 'cpu (s)' 'wall (s)' MiB exit
for part in ${*:-run stats store plans tasks ranks host}; do
    part_$part
done

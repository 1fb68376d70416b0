#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Speed, as instructions executed: what a command costs changes only with a commit that says so.
#
#     tests/whole/t_instructions.sh            compare with tests/expected/instructions (part of `make check`)
#     tests/whole/t_instructions.sh --write    measure and rewrite that file: `make instructions`
#     tests/whole/t_instructions.sh --growth [PATTERN]   exponents of time and memory, of rows that match: `make bench-growth`
#
# Growth: for each shape of plan twice the input costs at most LIMIT times the instructions. Checked with every compiler. Counts: each command beside
# its committed count, within 5%. A count depends on compiler, flags, libraries and processor, so it is
# compared only where these are those of the file.
#
# valgrind counts (callgrind, without caches): a clock says nothing on a machine that does other work.
set -u
: "${srcdir:=.}"
: "${SWSIM:=./swsim}"
: "${CC:=cc}"
: "${CFLAGS:=}"
: "${INSTRUMENT_FLAGS:=}"
. "$srcdir/tests/tap.sh"

case $SWSIM in /*) ;; *) SWSIM=$(pwd)/$SWSIM ;; esac
srcdir=$(cd "$srcdir" && pwd)
table=$srcdir/tests/expected/instructions
LIMIT=2.2
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# Why nothing can be counted here, or nothing.
obstacle()
{
    command -v valgrind >/dev/null || echo "valgrind is not installed"
    test -z "$INSTRUMENT_FLAGS" || echo "built with $INSTRUMENT_FLAGS"
    ! grep -qs "define SWSIM_CHECKS" config.h || echo "built with --enable-checks"
}

# The things that counts depend on, on one line.
fingerprint()
{
    flags=$(echo "$CFLAGS" | sed 's/-Werror//g' | xargs)
    compiler=$($CC --version | head -n 1)
    libraries=$(pkg-config --modversion yaml-0.1 sqlite3 libcgraph 2>/dev/null | xargs)
    avx2=$(grep -qw avx2 /proc/cpuinfo && echo avx2)
    echo "$compiler; $flags; $(getconf GNU_LIBC_VERSION); $libraries; $(valgrind --version); $(uname -m) $avx2"
}

# instructions ARGUMENT...: how many swsim and its children execute; nothing if it refuses the input. Fixed environment and
# folder: both are in memory that the program reads.
instructions()
{
    (cd "$dir" && ln -sf "$SWSIM" swsim &&
        env -i LC_ALL=C LD_BIND_NOW=1 PATH=/usr/bin:/bin valgrind --tool=callgrind \
            --callgrind-out-file=/dev/null ./swsim "$@" 2>collected >/dev/null </dev/null)
    case $? in # 1 and 4: violated, undecided
    0 | 1 | 4) awk '/Collected :/ { count += $NF; any = 1 } END { if (any) printf "%.0f\n", count }' "$dir/collected" ;;
    *) grep -m 1 error "$dir/collected" >&2 ;;
    esac
}

# ---- shapes of plans -----------------------------------------------------------------------------

# shape NAME N: the file of a plan of this shape, N units long, on standard output.
shape()
{
    case $1 in
    deep | wide) # a pipeline of N tasks: one after the other, or a tree on N / 2 streams
        awk -v n="$2" -v wide="$([ "$1" = wide ] && echo 1)" 'BEGIN {
            print "swplan: 1\nname: shape\nschedule:"
            for (i = 0; i < n; i++)
                printf "  T%d: {stage: %d, stream: s%d, time: %dus, host_time: 1us}\n", i,
                    int(i * 2 / n), i % (wide ? n / 2 : 2), 50 + i * 37 % 200
            print "intra_iter_deps:"
            for (i = 1; i < n; i++)
                printf "  - [T%d, T%d]\n", i, wide ? int((i - 1) / 2) : i - 1 }' ;;
    groups | groups_timeless) # a pipeline of N tasks, two a stream and a thread group
        awk -v n="$2" -v times="$([ "$1" = groups ] && echo 1)" 'BEGIN {
            print "swplan: 1\nname: shape\nschedule:"
            for (i = 0; i < n; i++)
                printf "  T%d: {stage: 0, stream: s%d, thread_group: g%d%s}\n", i, int(i / 2), int(i / 2),
                    times ? ", host_time: 1us, time: " 50 + i * 37 % 200 "us" : "" }' ;;
    stages) # a pipeline of N tasks, each with a stage of its own, that share a buffer
        awk -v n="$2" 'BEGIN {
            print "swplan: 1\nname: shape\nbuffers: {b: {scope: iteration, bytes: 4MiB}}\nschedule:"
            for (i = 0; i < n; i++)
                printf "  T%d: {stage: %d, stream: s, time: 1us, %s: [b]}\n", i, i, i % 2 ? "reads" : "writes"
            print "intra_iter_deps:"
            for (i = 1; i < n; i++)
                printf "  - [T%d, T%d]\n", i, i - 1 }' ;;
    between) # a pipeline of N tasks, a buffer written and read in turn, with a task between any two of these
        awk -v n="$2" 'BEGIN {
            print "swplan: 1\nname: shape\nbuffers:\n  b: {scope: shared, bytes: 4MiB}\nschedule:"
            for (i = 0; i < n; i++)
                printf "  T%d: {stage: %d, stream: s%d, time: 1us%s}\n", i, int(i * 2 / n), i % 7,
                    i % 2 ? "" : i % 4 ? ", reads: [b]" : ", writes: [b]"
            print "intra_iter_deps:"
            for (i = 1; i < n; i++)
                printf "  - [T%d, T%d]\n", i, i - 1
            printf "inter_iter_deps:\n  - [T0, T%d]\n", n - 1 }' ;;
    passed) # a pipeline of N tasks that pass on a buffer each, of which `buffers:` names none
        awk -v n="$2" 'BEGIN {
            print "swplan: 1\nname: shape\nbuffers: {w: {}}\nschedule:"
            for (i = 0; i < n; i++)
                printf "  T%d: {stage: 0, stream: s%d, time: 1us%s, writes: [b%d]}\n", i, i % 4, i ? ", reads: [b" i "]" : "", i + 1
            print "intra_iter_deps:"
            for (i = 1; i < n; i++)
                printf "  - [T%d, T%d]\n", i, i - 1 }' ;;
    readers) # a pipeline of N tasks: the first writes, and waits for the others, which read
        awk -v n="$2" 'BEGIN {
            print "swplan: 1\nname: shape\nbuffers:\n  b: {scope: shared, bytes: 4MiB}\nschedule:"
            for (i = 0; i < n; i++)
                printf "  T%d: {stage: %d, stream: s%d, time: %dus, host_time: 1us, %s: [b]}\n", i,
                    i ? 1 : 0, i % 2, 50 + i * 37 % 200, i ? "reads" : "writes"
            print "intra_iter_deps:"
            for (i = 1; i < n; i++)
                printf "  - [T%d, T0]\n", i
            print "inter_iter_deps:"
            for (i = 1; i < n; i++)
                printf "  - [T0, T%d]\n", i }' ;;
    comms) # on four ranks a pipeline of N collectives, each with its communicator, on 8 streams
        awk -v n="$2" 'BEGIN {
            print "swplan: 1\nname: shape\nranks: 4\nschedule:"
            for (i = 0; i < n; i++)
                printf "  C%d: {stage: 0, stream: s%d, time: 50us, host_time: 1us, work: {collective: all_reduce, comm: c%d, bytes: 1MiB}}\n",
                    i, i % 8, i
            print "intra_iter_deps:"
            for (i = 1; i < n; i++)
                printf "  - [C%d, C%d]\n", i, i - 1 }' ;;
    grid) # 1F1B on four stages in groups: tp 2, dp N
        cat <<END
swplan: 1
name: shape
p2p: {fifo: pair, bytes: 1MiB, latency: 10us, bandwidth: 25GB/s}
parallel: {tp: 2, dp: $2, pp: 4, order: tp-dp-pp, grad_reduce: overlap, costs: {tp: {F: 2, B: 2, latency: 5us, bandwidth: 200GB/s}}}
times: {F: 1ms, B: 2ms}
generate: {schedule: 1f1b, ranks: 4, microbatches: 16}
END
        ;;
    layers) # sharded training of N layers on two ranks: a gather and a pass a layer
        awk -v n="$2" 'BEGIN {
            print "swplan: 1\nname: shape\nranks: 2\nschedule:"
            for (i = 0; i < n; i++)
                printf "  G%d: {stage: 0, stream: comm, time: 30us, host_time: 1us, reads: [w%d], writes: [f%d], work: {collective: all_gather, comm: dp, bytes: 8MiB}}\n" \
                    "  F%d: {stage: 0, time: 90us, host_time: 2us, reads: [f%d]}\n", i, i, i, i, i
            print "intra_iter_deps:"
            for (i = 0; i < n; i++)
                printf i ? "  - [F%d, G%d]\n  - [F%d, F%d]\n" : "  - [F%d, G%d]\n", i, i, i, i - 1
            print "buffers:"
            for (i = 0; i < n; i++)
                printf "  w%d: {scope: shared, bytes: 8MiB}\n  f%d: {scope: iteration, bytes: 8MiB}\n", i, i }' ;;
    buckets) # data-parallel training of N / 4 layers on two ranks: forward, backward, all-reduce of its gradients, update
        awk -v n="$2" 'BEGIN {
            print "swplan: 1\nname: shape\nranks: 2\nschedule:"
            k = int(n / 4)
            for (i = 0; i < k; i++) {
                printf "  F%d: {stage: 0, time: 50us, host_time: 2us, reads: [w%d]}\n", i, i
                printf "  B%d: {stage: 0, time: 90us, host_time: 2us, reads: [w%d], writes: [g%d]}\n", i, i, i
                printf "  R%d: {stage: 0, stream: comm, time: 80us, host_time: 2us, reads: [g%d], writes: [g%d], " \
                    "work: {collective: all_reduce, comm: dp, bytes: 1MiB}}\n", i, i, i
                printf "  O%d: {stage: 0, time: 10us, host_time: 2us, reads: [g%d], writes: [w%d]}\n", i, i, i
            }
            print "intra_iter_deps:"
            for (i = 0; i < k; i++)
                printf "%s  - [B%d, %s%d]\n  - [R%d, B%d]\n  - [O%d, R%d]\n", i ? "  - [F" i ", F" i - 1 "]\n" : "",
                    i, i < k - 1 ? "B" : "F", i < k - 1 ? i + 1 : i, i, i, i, i
            print "inter_iter_deps:"
            for (i = 0; i < k; i++)
                printf "  - [F%d, O%d]\n  - [B%d, O%d]\n", i, i, i, i
            print "buffers:"
            for (i = 0; i < k; i++)
                printf "  w%d: {scope: shared, bytes: 1MiB}\n  g%d: {scope: iteration, bytes: 1MiB}\n", i, i }' ;;
    programs) # 1F1B of 16 ranks, N microbatches
        printf 'swplan: 1\nname: shape\ntimes: {F: 1ms, B: 2ms}\n'
        printf 'generate: {schedule: 1f1b, ranks: 16, microbatches: %d}\n' "$2" ;;
    holes) # two rows, which leave out all microbatches but two of N + 1
        printf 'swplan: 1\nname: shape\nprograms:\n  - 0F0 0SEND_F0 0F%d\n  - 1RECV_F0 1F0 1F%d\n' "$2" "$2" ;;
    host) # two threads and a queue, N batches
        awk -v n="$2" 'BEGIN {
            print "swplan: 1\nname: shape\nqueues: {batches: 2}\nthreads:\n  r0.loader:"
            for (i = 0; i < n; i++)
                printf "    - {host: 500us, name: read}\n" \
                    "    - {copy: h2d, bytes: 4MiB, stream: memcpy, time: 2ms, host_time: 20us}\n" \
                    "    - {record: copied%d, stream: memcpy}\n    - {put: batches}\n", i
            print "  r0.trainer:"
            for (i = 0; i < n; i++)
                printf "    - {get: batches}\n    - {wait: copied%d, stream: compute}\n" \
                    "    - {launch: train, stream: compute, time: 3ms, host_time: 60us}\n", i }' ;;
    exchange) # an all-to-all by messages: N pairs of ranks, a send and a receive each
        awk -v n="$2" 'BEGIN {
            r = int(sqrt(n) + .5)
            printf "swplan: 1\nname: shape\ncomms: {all: ["
            for (i = 0; i < r; i++)
                printf "%s%d", i ? ", " : "", i
            print "]}\nthreads:"
            for (i = 0; i < r; i++) {
                printf "  r%d.main:\n    - {group: [", i
                for (k = 0; k < r; k++)
                    printf "%s{send: x%d_%d, peer: %d, bytes: 1KiB}, {recv: x%d_%d, peer: %d, bytes: 1KiB}",
                        k ? ", " : "", i, k, k, k, i, k
                print "], comm: all, stream: s}\n    - {sync: stream, stream: s}"
            } }' ;;
    flags) # two threads of a repeat, and N flags that each iteration has its own of
        awk -v n="$2" 'BEGIN {
            print "swplan: 1\nname: shape\nflags:"
            for (i = 0; i < n; i++)
                printf "  f%d: {scope: iteration}\n", i
            for (t = 0; t < 2; t++) {
                printf "%s  r0.t%d: [{repeat: 3, body: [", t ? "" : "threads:\n", t
                for (i = 0; i < n; i++)
                    printf "%s{%s: f%d}", i ? ", " : "", t ? "await" : "signal", i
                print "]}]"
            } }' ;;
    repeats) # N ranks with a repeat, and a communicator for each two
        awk -v n="$2" 'BEGIN {
            printf "swplan: 1\nname: shape\nranks: %d\ncomms:\n", n
            for (i = 0; i < n; i += 2)
                printf "  c%d: [%d, %d]\n", i, i, i + 1
            print "threads:"
            for (i = 0; i < n; i++)
                printf "  r%d.main: [{repeat: 5, body: [{launch: k, stream: s}, {record: e, stream: s}, {wait: e, stream: t}, {collective: x, comm: c%d, stream: t}, {sync: device}]}]\n", i, i - i % 2 }' ;;
    barriers) # N threads of a rank that meet twice
        echo "swplan: 1
name: shape
threads:"
        seq -f '  r0.t%.0f: [{host: 1us}, {barrier: b}, {host: 2us}, {barrier: b}]' 1 "$2" ;;
    job) sh "$srcdir/tests/bench/job.sh" "$2" ;; # as imported from a trace, N steps
    ranks) # data-parallel training on N ranks
        sed "s/^ranks: .*/ranks: $2/" "$srcdir/plans/examples/two_ranks.yaml" ;;
    *_device) # the same, where the host waits for the device
        shape "${1%_device}" "$2" | sed 's/^swplan: 1/&\nretire: device/' ;;
    esac
}

# The recordings, of tests/record/tensors N NAME on the device that is not there.
is_recording() { case $1 in tensors | streams) true ;; *) false ;; esac; }

# plan NAME N: the name of such a file or recording in $dir.
plan()
{
    if [ -e "$dir/$1$2" ]; then
        :
    elif is_recording "$1"; then
        "$SWSIM" record --device=none -q -o "$dir/$1$2" -- tests/record/tensors "$2" "$1" >&2
    else
        shape "$1" "$2" >"$dir/$1$2"
    fi
    echo "$1$2"
}

# ---- growth --------------------------------------------------------------------------------------

# "SHAPE N COMMAND": N against 2 N.
growth='deep 300 verify -q --driver=clock
deep 300 verify -q --driver=dataflow
deep_device 1000 predict -q --driver=clock -n 20
deep 1000 predict -q --driver=clock -n 20
deep 300 predict -q --driver=dataflow -n 20
wide 300 verify -q --driver=clock
stages 125 verify -q --driver=clock
readers 250 verify -q --driver=dataflow
between 500 verify -q --driver=dataflow
passed 1000 verify -q --driver=clock
passed 500 predict -q --driver=dataflow -n 10
deep 300 lower -q
deep 300 schedule -q
deep 300 stages -q
deep 300 export -q
comms 64 verify -q --driver=clock
comms 64 predict -q --driver=dataflow -n 20
comms 256 predict -q --driver=dataflow -n 20
grid 256 verify -q
grid 256 predict -q
layers 256 verify -q --driver=dataflow
buckets 256 verify -q --driver=dataflow
buckets 256 verify -q --driver=clock
buckets 128 predict -q --driver=dataflow -n 20
stages 60 predict -q --driver=clock -n 20
between 250 predict -q --driver=clock -n 20
readers 500 predict -q --driver=dataflow -n 20
holes 4000 verify -q
job 50 verify -q
host 500 lower -q
deep 50 tune -q --budget=20
deep 100 render -q -o plan.dot
groups 500 predict -q --driver=clock -n 20
groups_device 250 predict -q --driver=dataflow -n 20
groups 500 verify -q
groups_timeless 500 predict -q --driver=dataflow -n 20
groups_timeless 500 verify -q
flags 500 verify -q --no-fix
flags 500 predict -q
layers 120 predict -q --driver=dataflow -n 20
wide 400 predict -q --driver=clock -n 10
wide 200 predict -q --driver=dataflow -n 10
programs 32 verify -q
programs 32 predict -q
holes 4000 predict -q
exchange 1024 verify -q --no-fix
repeats 1024 verify -q --no-fix
exchange 1024 predict -q --hardware=h100-sxm --ranks=1024
repeats 512 predict -q
host 500 verify -q --limit=states=2000
host 500 predict -q
job 50 predict -q
ranks 64 verify -q
ranks 128 predict -q --driver=clock -n 20
ranks 512 predict -q --driver=clock -n 100 --jitter=*=gamma(cv=0.2)
ranks 64 predict -q --driver=dataflow -n 20
ranks 64 predict -q --driver=dataflow -n 100 --jitter=*=gamma(cv=0.2)
barriers 2000 verify -q
barriers 2000 predict -q
tensors 500 import -q --repeat=like -o plan.out
streams 1000 import -q --repeat=like -o plan.out'

# Verbs without a shape of their own.
other_verbs='groups'

# Every verb that reads a plan has a row, and every shape one of verify and one of predict.
all_pairs_have_rows()
{
    for verb in $("$SWSIM" --help | awk '/^  [a-z]+ .*PLAN/ { print $1 }'); do
        echo " $other_verbs $(echo "$growth" | awk '{ print $3 }' | xargs) " | grep -q " $verb " ||
            { echo "no row for the verb $verb"; return 1; }
    done
    for name in $(sed -n '/^shape()/,/^}/s/^    \([a-z_ |]*\)).*/\1/p' "$srcdir/tests/whole/t_instructions.sh" | tr -d '|'); do
        for verb in verify predict; do
            echo "$growth" | grep -q "^$name\(_device\)\? [0-9]* $verb " ||
                { echo "no row for $verb of the shape $name"; return 1; }
        done
    done
}

# grows_at_most LIMIT SHAPE N COMMAND...: the cost of starting the program is left out.
grows_at_most()
{
    limit=$1 name=$2 n=$3
    shift 3
    once=$(instructions "$@" "$(plan "$name" "$n")")
    twice=$(instructions "$@" "$(plan "$name" $((2 * n)))")
    echo "$once instructions for $n, $twice for twice that; $start of them to start"
    awk -v once="$once" -v twice="$twice" -v start="$start" -v limit="$limit" 'BEGIN {
        ratio = (twice - start) / (once - start)
        printf "%.2f times; at most %s\n", ratio, limit
        exit !(once > start && ratio <= limit) }'
}

# check_growth LIMIT: the rows on standard input.
check_growth()
{
    while read -r name n command; do
        if is_recording "$name" && ! [ -e none/libcudart.so.13 ]; then
            skip "$command of $name: built without the imitated device"
            continue
        fi
        # shellcheck disable=SC2086
        check "$command: twice $name $n costs at most $1 times" \
            grows_at_most "$1" "$name" "$n" $command
    done
}

# ---- exponents -----------------------------------------------------------------------------------

# used COMMAND...: its processor seconds and MiB of memory; exit status 1 if it took longer than a minute or failed.
used()
{
    (cd "$dir" && PROCTIME_OUT=$dir/used "$PROCTIME" 1 60 "$SWSIM" "$@" >"$dir/out" 2>&1 </dev/null)
    awk '{ print $1, $2 / 1024; exit !($3 == 0 || $3 == 1 || $3 == 4) }' "$dir/used"
}

# exponents_of SHAPE N COMMAND...: three sizes or more, N, 2 N, ... until a run takes .4 s, or swsim refuses the size. Fitted to the last three
# sizes (least squares of logarithms): of seconds where they are .04 and more, of MiB where there are 8 beyond those of
# starting.
exponents_of()
{
    name=$1 n=$2
    shift 2
    for step in 0 1 2 3 4 5 6 7 8 9 10; do
        size=$((n << step))
        now=$(used "$@" "$(plan "$name" $size)") || break
        rm -r "$dir/$name$size"
        echo "$size $now"
        awk -v now="${now% *}" -v step=$step 'BEGIN { exit !(now >= (step < 2 ? 4 : .4)) }' && break
    done | awk -v name="$name" -v command="$*" -v start="$start_mib" '
        function exponent(y, least,    i, k, sx, sy, sxx, sxy) {
            for (i = NR; i > 0 && i > NR - 3 && y[i] >= least; i--) {
                k++; sx += log(x[i]); sy += log(y[i]); sxx += log(x[i]) ^ 2; sxy += log(x[i]) * log(y[i])
            }
            return k > 1 ? sprintf("%.2f", (k * sxy - sx * sy) / (k * sxx - sx * sx)) : "-"
        }
        { x[NR] = $1; seconds[NR] = $2; mib[NR] = $3 - start; last = $3 }
        END { printf "%-16s %-56s %8d %7.2f %8.1f %7s %7s\n",
            name, command, x[NR], seconds[NR], last, exponent(seconds, .04), exponent(mib, 8) }'
}

print_exponents()
{
    start_mib=$(used --version | cut -d ' ' -f 2)
    printf '%-16s %-56s %8s %7s %8s %7s %7s\n' shape command N seconds MiB 'N^ s' 'N^ MiB'
    echo "$growth" | grep -e "$1" | while read -r name n command; do
        if is_recording "$name" && ! [ -x tests/record/tensors ]; then
            echo "$name: tests/record/tensors is not built"
            continue
        fi
        # shellcheck disable=SC2086
        exponents_of "$name" "$n" $command
    done
}

# ---- counts --------------------------------------------------------------------------------------

# The commands that are counted, one a line. @SHAPE:N is a plan of that shape; other plans are in plans/.
commands='--version
verify -q reference/sparse_dist.yaml
verify -q --threads=1 --no-reduction --driver=clock --ranks=1 --limit=states=5000 reference/sparse_dist.yaml
verify -q --threads=1 --no-reduction --driver=dataflow --limit=states=5000 reference/prefetch.yaml
verify -q --threads=1 --no-fix deadlocks/scenario3_broken.yaml
verify -q --threads=1 bugs/nccl_one_slot_opposite_order_broken.yaml
verify -q @deep:300
verify -q @wide:300
verify -q @programs:32
verify -q @ranks:64
predict -q --threads=1 --driver=clock reference/sparse_dist.yaml
predict -q --threads=1 --driver=dataflow reference/prefetch.yaml
predict -q --threads=1 --driver=clock -n 300 --jitter=*=gamma(cv=0.2) reference/sparse_dist.yaml
predict -q --threads=1 --driver=clock --replications=8 --jitter=*=gamma(cv=0.2) reference/sparse_dist.yaml
predict -q --threads=1 --driver=dataflow --ranks=8 -n 2000 --jitter=*=normal(cv=0.3) reference/sparse_dist.yaml
predict -q --threads=1 --critical-path --driver=dataflow -n 100 reference/semi_sync.yaml
predict -q --threads=1 --driver=clock -n 10 @wide:100
predict -q --threads=1 --driver=dataflow -n 100 --jitter=*=gamma(cv=0.2) @ranks:16
predict -q --threads=1 @programs:32
predict -q --threads=1 @host:500
predict -q --threads=1 -n 20 @ranks:16
lower -q @programs:32
schedule -q reference/sparse_dist.yaml
render -q -o plan.dot reference/sparse_dist.yaml'

# count_of COMMAND: its instructions.
count_of()
{
    arguments=
    for word in $1; do
        case $word in
        @*) word=$(plan "$(echo "${word#@}" | cut -d : -f 1)" "${word##*:}") ;;
        *.yaml) word=plans/$word ;;
        esac
        arguments="$arguments $word"
    done
    # shellcheck disable=SC2086
    instructions $arguments
}

# near COMMAND COUNT: is the count within 5% of the committed one?
near()
{
    committed=$(awk -v command="$1" '{ count = $1; sub(/^[0-9]+ /, "") } $0 == command { print count }' \
        "$table")
    echo "$2 instructions; committed: ${committed:-none}"
    test -n "$committed" || { echo "commit a count: make instructions"; return 1; }
    awk -v new="$2" -v old="$committed" 'BEGIN { exit !(new > 1.05 * old) }' &&
        { echo "slower by more than 5%: mend it, or commit the count and say why"; return 1; }
    awk -v new="$2" -v old="$committed" 'BEGIN { exit !(new < 0.95 * old) }' &&
        { echo "faster by more than 5%: commit the better count, make instructions"; return 1; }
    return 0
}

check_counts()
{
    if [ "$(sed -n 's/^# //p' "$table")" != "$(fingerprint)" ]; then
        skip "counts are those of another system: $(sed -n 's/^# //p' "$table")"
        return
    fi
    while read -r command; do
        check "$command" near "$command" "$(count_of "$command")"
    done <<EOF
$commands
EOF
}

write_table()
{
    {
        echo "# $(fingerprint)"
        echo "$commands" | while read -r command; do
            echo "$(count_of "$command") $command"
        done
    } >"$dir/table" && cp "$dir/table" "$table" && cat "$table"
}

# --------------------------------------------------------------------------------------------------

set -f # a command may have stars
ln -s "$srcdir/plans" "$dir/plans"
if [ "${1-}" = --growth ]; then
    : "${PROCTIME:=tests/bench/proctime}"
    case $PROCTIME in /*) ;; *) PROCTIME=$(pwd)/$PROCTIME ;; esac
    print_exponents "${2-}"
    exit
fi
obstacle=$(obstacle)
if [ "${1-}" = --write ]; then
    test -z "$obstacle" || { echo "$obstacle" >&2; exit 1; }
    write_table
    exit
fi
if [ -n "$obstacle" ]; then
    skip "$obstacle"
else
    start=$(instructions --version)
    check "every verb of plans and every shape has a row" all_pairs_have_rows
    check_growth "$LIMIT" <<EOF
$growth
EOF
    check_counts
fi
done_testing

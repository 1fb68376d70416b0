#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Under mpirun: `swsim predict` shares replications, with the figures of one process; one voice, one exit
# code, and an end whatever happens to a rank. Without MPI, or without its launcher, one process does all.
# And `swrun`, which speaks with one voice as well and refuses ranks on two machines, which are two network namespaces here.
. "${srcdir:-.}/tests/tap.sh"
. "$srcdir/tests/run_plans.sh"

one=swm1-$$ two=swm2-$$ # machines, if they can be made
clean_up()
{
    for machine in $one $two; do
        for pid in $(ip netns pids $machine); do
            kill -s KILL "$pid"
        done
        ip netns del $machine
    done
    rm -rf "$dir"
}
trap 'clean_up 2>/dev/null' EXIT
trap 'exit 99' INT TERM
plan=$srcdir/plans/reference/sparse_dist.yaml

# Root may not call mpirun unless it says so twice; there may be fewer processors than ranks.
# A chroot without /sys is told of by a library of MPI.
export HWLOC_HIDE_ERRORS=2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

# Memory that parts of MPI leave behind has no name any more when they are unloaded, so it cannot be excepted.
export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS-}"

# The figures without the time it took to find them.
figures()
{
    sed 's/"seconds":[^,]*,"cpu_seconds":[^,}]*//g; s/tasks simulated in .*/tasks simulated/'
}
# same RANKS ARGUMENT...: one process and so many ranks say the same, byte for byte.
same()
{
    ranks=$1
    shift
    "$SWSIM" predict "$@" >"$dir/raw.one" 2>"$dir/err"
    one=$?
    mpirun -n "$ranks" "$SWSIM" predict "$@" >"$dir/raw.many" 2>"$dir/err"
    many=$?
    figures <"$dir/raw.one" >"$dir/one"
    figures <"$dir/raw.many" >"$dir/many"
    test "$one" -eq "$many" && test -s "$dir/one" && cmp "$dir/one" "$dir/many" && return
    echo "exit codes $one and $many"
    diff "$dir/one" "$dir/many" | head -n 5
    cat "$dir/err"
    false
}
# ends CODE LINES PATTERN RANKS ARGUMENT...: the exit code; so many lines from swsim, one like this.
ends()
{
    want=$1 lines=$2 pattern=$3 ranks=$4
    shift 4
    mpirun -n "$ranks" "$SWSIM" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    said=$(grep -c 'swsim: ' "$dir/err")
    test "$code" -eq "$want" && test "$said" -eq "$lines" &&
        { test -z "$pattern" || grep -q -e "$pattern" "$dir/err"; } && return
    echo "exit code $code, expected $want; $said lines, expected $lines, one like '$pattern':"
    cat "$dir/out" "$dir/err"
    false
}

# ---- not under mpirun ----------------------------------------------------------------------------

as_rank() { env OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK="$@" 2>"$dir/err"; }
"$SWSIM" predict --quiet "$plan" >"$dir/alone"
check "a rank 0 that MPI does not know does all by itself" sh -c 'cmp "$1" -' sh "$dir/alone" <<END
$(as_rank 0 "$SWSIM" predict --quiet "$plan")
END
as_rank 0 "$SWSIM" predict --quiet "$plan" >/dev/null
check "and says that it does" grep -q 'rank 0 of 3 works alone' "$dir/err"
check "the others do nothing" sh -c 'test -z "$1" && test ! -s "$2"' sh \
    "$(as_rank 1 "$SWSIM" predict "$plan")" "$dir/err"
check "unless they are told to" sh -c 'cmp "$1" -' sh "$dir/alone" <<END
$(as_rank 1 "$SWSIM" predict --quiet --no-mpi "$plan")
END
check "swsim is not linked with MPI" sh -c '! ldd "$1" | grep -i libmpi' sh "$SWSIM"

if ! command -v mpirun >/dev/null; then
    skip_all "mpirun is not installed"
elif ! mpirun -n 2 true 2>"$dir/err"; then
    skip_all "mpirun does not work here: $(grep -v -e '^-' -e '^$' "$dir/err" | head -n 1)"
elif mpirun -n 2 "$SWSIM" predict --quiet "$plan" 2>&1 >/dev/null | grep -q 'works alone'; then
    skip_all "swsim is built without MPI, or with another than mpirun's"
fi

# ---- the same figures ----------------------------------------------------------------------------

jitter='--jitter=*=gamma(cv=0.3)'
check "two ranks: all figures of JSON" same 2 "$jitter" --replications=50 -n 200 --json "$plan"
check "three ranks, two threads each" \
    same 3 "$jitter" --replications=50 -n 200 --threads=2 --json "$plan"
check "the report, other seed" \
    same 3 "$jitter" --replications=7 -n 100 --seed=5 "$plan"
check "fewer replications than ranks" same 3 "$jitter" --replications=2 -n 100 --json "$plan"
check "one replication" same 2 "$jitter" -n 100 --json "$plan"
check "a job of one rank" same 1 "$jitter" --replications=3 -n 100 --json "$plan"
check "a sweep" same 3 "$jitter" --replications=20 -n 50 --sweep=max_depth=1..3 "$plan"
check "a what-if" same 2 "$jitter" --replications=20 -n 50 --what-if=Forward=0.8x "$plan"
check "host programs, and their deadlock with its exit code" \
    same 2 --replications=5 --json "$srcdir/plans/bugs/nccl_one_slot_same_order_broken.yaml"
check "what slows work on a shared device" \
    same 2 "$jitter" --replications=4 -n 50 --json "$srcdir/plans/examples/shared_device.yaml"
check "a store has the first replication of it" \
    ends 0 0 '' 2 predict --quiet --replications=4 -n 20 --driver=clock --db="$dir/t.db" "$plan"
check "once" sh -c 'test "$("$1" runs --json "$2" | grep -o "\"run\":" | wc -l)" -eq 1' sh "$SWSIM" "$dir/t.db"

# ---- one voice -----------------------------------------------------------------------------------

printf 'swplan: 2\nschedule: {A: {stage: 0}}\n' >"$dir/bad.yaml"
check "a bad plan is said once" ends 3 1 'bad.yaml:1:' 3 predict --replications=3 "$dir/bad.yaml"
check "wrong use, too" ends 2 2 "unknown option '--nope'" 3 predict --nope "$plan"
check "ranks without work are told of" ends 0 1 '1 of 2 ranks without work' 2 predict --quiet "$plan"
check "standard input is not for all" ends 2 1 'standard input' 2 predict --replications=2 -
check "help is printed once" sh -c \
    'test "$(mpirun -n 2 "$1" predict --help | grep -c ^Usage)" -eq 1' sh "$SWSIM"

# Ranks that were not given the same.
mpirun -n 1 "$SWSIM" predict --replications=2 -n 50 "$plan" : \
    -n 1 "$SWSIM" predict --replications=2 -n 51 "$plan" >"$dir/out" 2>"$dir/err"
check "other arguments are noticed" sh -c 'test "$1" -eq 2 && grep -q "MPI rank 1: its arguments" "$2"' \
    sh $? "$dir/err"
mpirun -n 1 "$SWSIM" predict --replications=2 "$plan" : \
    -n 1 "$SWSIM" predict --replications=2 "$dir/bad.yaml" >"$dir/out" 2>"$dir/err"
check "what one rank cannot read, rank 0 says" sh -c \
    'test "$1" -eq 3 && grep -q "MPI rank 1: .*bad.yaml:1:" "$2"' sh $? "$dir/err"
mpirun -n 1 "$SWSIM" predict --replications=2 "$dir/nothing.yaml" : \
    -n 1 "$SWSIM" predict --replications=2 "$plan" >"$dir/out" 2>"$dir/err"
check "and nobody waits for a rank 0 that cannot" sh -c 'test "$1" -eq 2 && grep -q "nothing.yaml" "$2"' \
    sh $? "$dir/err"

# swrun as well: rank 0 speaks, or says what another rank has told it. A rank that cannot begin waits for
# a rank 0 that has failed, too, at most some seconds.
run_ends()
{
    want=$1 lines=$2 pattern=$3
    shift 3
    mpirun "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    said=$(grep -c 'swrun: ' "$dir/err")
    test "$code" -eq "$want" && test "$said" -eq "$lines" && grep -q -e "$pattern" "$dir/err" && return
    echo "exit code $code, expected $want; $said lines, expected $lines, one like '$pattern':"
    cat "$dir/out" "$dir/err"
    false
}
check "swrun: a bad plan is said once" run_ends 3 1 'bad.yaml:1:' -n 3 "$SWRUN" "$dir/bad.yaml"
check "so is a plan that is not there" run_ends 2 1 'nothing.yaml' -n 3 "$SWRUN" "$dir/nothing.yaml"
check "and wrong use" run_ends 2 2 "unknown option '--nope'" -n 3 "$SWRUN" --nope "$plan"
check "which depends on the plan" run_ends 2 1 '2 ranks, but 3 processes' -n 3 "$SWRUN" --ranks=2 "$plan"
check "standard input is rank 0's" run_ends 2 1 'standard input' -n 2 "$SWRUN" -
check "what another rank cannot read, rank 0 says" run_ends 3 2 'rank 1: .*bad.yaml:1:9: found version 2' \
    -n 1 "$SWRUN" -n 5 "$plan" : -n 1 "$SWRUN" -n 5 "$dir/bad.yaml"
check "what takes one process, rank 0 does" sh -c \
    'test "$(mpirun -n 2 "$1" --profile -n 2 "$2" | grep -c Baseline)" -eq 1' sh "$SWRUN" "$plan"
check "with --one-process rank 0 has all ranks, and one run is stored" sh -c \
    'test "$(mpirun -n 2 "$1" --one-process -n 2 --db="$3" "$2" | grep -c throughput)" -eq 1 &&
     test "$("$4" runs --json "$3" | grep -o "\"run\":" | wc -l)" -eq 1' sh "$SWRUN" "$plan" "$dir/one.db" "$SWSIM"
for rank in 0 1; do
    PMI_RANK=$rank PMI_SIZE=2 "$SWRUN" --rendezvous "t_mpi.$$" "$dir/bad.yaml" 2>"$dir/said.$rank"
    echo $? >>"$dir/codes"
done
check "without a launcher that ends them all: once, and all end" sh -c \
    'test "$(tr "\n" " " <"$1/codes")" = "3 0 " && test -s "$1/said.0" && test ! -s "$1/said.1"' sh "$dir"

# ---- a rank dies ---------------------------------------------------------------------------------

# The ranks of a long prediction, once they are at work. $1: the signal for the last of them.
dies()
{
    mpirun -n 2 sh -c 'echo $$ >"$1.$OMPI_COMM_WORLD_RANK"; shift; exec "$@"' sh "$dir/pid" \
        "$SWSIM" predict --replications=100000 -n 100000 "$plan" \
        >"$dir/out" 2>"$dir/err" </dev/null &
    job=$!
    for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        sleep 0.2
        test -s "$dir/pid.1" && test $try -ge 8 && break
    done
    kill -s "$1" "$(cat "$dir/pid.1")"
    (sleep 30; : >"$dir/late"; kill -s KILL $job) >/dev/null 2>&1 &
    guard=$!
    wait $job 2>/dev/null
    code=$?
    kill $guard 2>/dev/null
    runs "$(cat "$dir/pid.0")" && sleep 1
    test "$code" -ne 0 && test ! -e "$dir/late" && ! runs "$(cat "$dir/pid.0")" && return
    echo "exit code $code"
    cat "$dir/err"
    false
}
check "one rank is ended: all end" dies TERM
check "one rank is killed: all end" dies KILL

# ---- two machines --------------------------------------------------------------------------------

# Two network namespaces and a cable between them. mpirun starts what is on the second through $agent, as
# it would through ssh.
make_machines()
{
    ip netns add $one && ip netns add $two &&
        ip link add m1 netns $one type veth peer name m2 netns $two &&
        ip -n $one addr add 10.77.1.1/24 dev m1 && ip -n $two addr add 10.77.1.2/24 dev m2 &&
        ip -n $one link set lo up && ip -n $two link set lo up &&
        ip -n $one link set m1 up && ip -n $two link set m2 up || return
    mkdir "$dir/tmp"
    cat >"$dir/agent" <<AGENT
#!/bin/sh
shift
exec ip netns exec $two unshare --uts sh -c "hostname two; TMPDIR=$dir/tmp; export TMPDIR; \$*"
AGENT
    chmod +x "$dir/agent"
}
# on_two COMMAND...: three ranks of it, one on the first machine.
on_two()
{
    ip netns exec $one unshare --uts sh -c 'hostname one; exec "$@"' sh mpirun -n 3 \
        --host 10.77.1.1:1,10.77.1.2:2 --mca plm_rsh_agent "$dir/agent" \
        --mca oob_tcp_if_include 10.77.1.0/24 --mca btl_tcp_if_include 10.77.1.0/24 "$@"
}
# two_say CODE PATTERN COMMAND...: of the first machine's rank, on both outputs.
two_say()
{
    want=$1 pattern=$2
    shift 2
    on_two "$@" >"$dir/out" 2>&1 </dev/null
    code=$?
    test "$code" -eq "$want" && grep -q -e "$pattern" "$dir/out" && return
    echo "exit code $code, expected $want; nothing like '$pattern' in:"
    cat "$dir/out"
    false
}

if ! make_machines 2>"$dir/err"; then
    skip_all "no network namespaces: $(head -n 1 "$dir/err")"
elif ! on_two true 2>"$dir/err" >/dev/null </dev/null; then
    skip_all "mpirun does not start anything in another namespace: $(grep -v '^-*$' "$dir/err" | head -n 1)"
fi

quick_plan 3 300KiB >"$dir/quick.yaml"
check "predictions on two machines" two_say 0 '"replications":9' "$SWSIM" predict --json --replications=9 -n 50 "$plan"
check "swrun refuses ranks on two machines" two_say 2 'put the 3 ranks on several machines' "$SWRUN" -n 20 "$dir/quick.yaml"
check "and says so once" sh -c 'test "$(grep -c "several machines" "$1")" -eq 1' sh "$dir/out"
done_testing

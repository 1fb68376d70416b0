#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The environment: every variable that the sources read is in the ENVIRONMENT of a manual page, and no other; a value
# that is none is refused with a sentence that names the variable, or ignored as the page says. No value makes a
# command crash or hang, or reaches a terminal as it is.
. "${srcdir:-.}/tests/tap.sh"
hello=$srcdir/plans/examples/hello.yaml
small=$srcdir/tests/faults/small.yaml

# ---- pages and sources -----------------------------------------------------------------------------

# All literals that look like the name of a variable, in the files that read or set some: calls may take theirs from a table.
# SWPIPE_ begins constants of the library, which messages name.
read_names()
{
    # shellcheck disable=SC2046
    (cd "$srcdir" && find $(source_folders) -name '*.[ch]' -exec grep -lE '\b(get|set|unset)env\(|define [A-Z_]*VARIABLE' {} + |
        xargs grep -hoE '"([A-Z][A-Z0-9]*(_[A-Za-z0-9]+)+|PATH|HOME|TERM|RANK)"') | tr -d '"' | grep -v '^SWPIPE_' | sort -u
}
described_names()
{
    awk '/^\.Sh /{ here = $0 == ".Sh ENVIRONMENT" } here && sub(/^\.It Ev /, "") { gsub(/ , /, "\n"); print }' \
        "$srcdir"/doc/*.[1-8] | sort -u
}
same_names()
{
    read_names >"$dir/read"
    described_names >"$dir/described"
    test "$(wc -l <"$dir/read")" -gt 20 && diff "$dir/read" "$dir/described"
}
check "the variables that are read are those that the pages describe" same_names
check "every section is found" sh -c 'test "$(grep -lx "\.Sh ENVIRONMENT" "$1"/doc/*.[1-8] | wc -l)" -eq 7' sh "$srcdir"

# ---- values ----------------------------------------------------------------------------------------

mkdir "$dir/folder"
mkfifo "$dir/pipe"
: >"$dir/empty"
# One a line, as printf's %b takes it: what is no number, no name of a file that is there, or no text for a terminal.
cat >"$dir/values" <<ROWS
garbage
99999999999999999999999999
2147483648
-1
 1
1x
0x1
1.5
$dir/no/such/path
$dir/folder
$dir/pipe
$dir/empty
/dev/zero
two\\nlines
\\033[31mred\\007
\\302\\233\\342\\200\\256
\\377\\376
$(head -c 5000 /dev/zero | tr '\0' a)
ROWS

# terminal_safe FILE: no control but tabs and new lines, no byte that is not UTF-8.
terminal_safe()
{
    iconv -f UTF-8 -t UTF-8 "$1" >/dev/null 2>&1 || { echo "not UTF-8:"; cat -v "$1"; return 1; }
    ! LC_ALL=C grep -nP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae\x8e\x8f]|\xe2\x81[\xa6-\xa9]' "$1" | cat -v | grep .
}
# The commands of the tests below; OPTIONS... are further variables.
#   ends CODE VARIABLE VALUE COMMAND...    with this exit code, in time; what is said may be shown
#   refuses VARIABLE VALUE COMMAND...      exit code 2 and one error, which names the variable and what is expected
ends()
{
    want=$1 variable=$2 value=$3
    shift 3
    timeout 60 env "$variable=$value" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    terminal_safe "$dir/out" && terminal_safe "$dir/err" || return
    test "$code" -eq "$want" && return
    echo "exit code $code, expected $want"
    cat -v "$dir/out" "$dir/err"
    false
}
refuses()
{
    ends 2 "$@" || return
    test "$(grep -c 'error: ' "$dir/err")" -eq 1 && grep -q "error: environment variable $1: found .*, expected " "$dir/err" && return
    echo "no such sentence"
    cat -v "$dir/err"
    false
}
# each TEST VARIABLE COMMAND...: with every value, but for those that `fit`, a pattern of grep's.
fit=
each()
{
    test_=$1 variable_=$2
    shift 2
    bad=0
    while IFS= read -r format; do
        [ -n "$fit" ] && printf '%s\n' "$format" | grep -qxE -e "$fit" && continue
        value_=$(printf '%b' "$format")
        $test_ "$variable_" "$value_" "$@" || { printf 'with %s=%.60s\n' "$variable_" "$format"; bad=1; }
    done <"$dir/values"
    return $bad
}
ignored() { ends 0 "$@"; }

for variable in OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_SIZE; do
    check "predict refuses $variable" each refuses $variable sh -c \
        ': "${OMPI_COMM_WORLD_RANK:=0}" "${OMPI_COMM_WORLD_SIZE:=2}"; export OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE; exec "$@"' sh \
        "$SWSIM" predict -q -n 2 "$hello"
    check "swrun refuses $variable" each refuses $variable sh -c \
        ': "${OMPI_COMM_WORLD_RANK:=0}" "${OMPI_COMM_WORLD_SIZE:=2}"; export OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE; exec "$@"' sh \
        "$SWRUN" -q -n 2 "$hello"
done
for variable in PMI_RANK PMI_SIZE MPI_LOCALNRANKS; do
    check "swrun refuses $variable" each refuses $variable sh -c \
        ': "${PMI_RANK:=0}" "${PMI_SIZE:=2}"; export PMI_RANK PMI_SIZE; exec "$@"' sh "$SWRUN" -q -n 2 "$hello"
done
for variable in SLURM_PROCID SLURM_STEP_NUM_TASKS SLURM_STEP_NUM_NODES; do
    check "predict refuses $variable" each refuses $variable sh -c \
        ': "${SLURM_PROCID:=0}" "${SLURM_STEP_NUM_TASKS:=2}"; export SLURM_PROCID SLURM_STEP_NUM_TASKS SLURM_STEP_ID=0; exec "$@"' sh \
        "$SWSIM" predict -q -n 2 "$hello"
    check "$variable is ignored outside of a step" each ignored $variable sh -c \
        ': "${SLURM_PROCID:=0}" "${SLURM_STEP_NUM_TASKS:=2}"; export SLURM_PROCID SLURM_STEP_NUM_TASKS; exec "$@"' sh \
        "$SWSIM" predict -q -n 2 "$hello"
done
for variable in RANK OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK SLURM_PROCID; do
    check "record refuses a rank in $variable that it puts into a name" each refuses $variable "$SWSIM" record -o "$dir/r%r.swr" -- true
done
check "a rank must be less than the number of processes" refuses OMPI_COMM_WORLD_RANK 2 env OMPI_COMM_WORLD_SIZE=2 \
    "$SWRUN" -q -n 2 "$hello"
check "of which there is one" refuses OMPI_COMM_WORLD_SIZE 0 env OMPI_COMM_WORLD_RANK=0 "$SWRUN" -q -n 2 "$hello"
check "a rank alone is none" ignored OMPI_COMM_WORLD_RANK garbage "$SWRUN" -q -n 2 "$hello"
check "nor an empty one" ignored OMPI_COMM_WORLD_RANK '' env OMPI_COMM_WORLD_SIZE=2 "$SWRUN" -q -n 2 "$hello"
check "--one-process ignores it" ignored OMPI_COMM_WORLD_RANK garbage env OMPI_COMM_WORLD_SIZE=2 "$SWRUN" -q --one-process -n 2 "$hello"
check "--no-mpi ignores it" ignored OMPI_COMM_WORLD_RANK garbage env OMPI_COMM_WORLD_SIZE=2 "$SWSIM" predict -q --no-mpi -n 2 "$hello"
for verb in verify lower stages; do
    check "$verb ignores it" ignored OMPI_COMM_WORLD_RANK garbage env OMPI_COMM_WORLD_SIZE=2 "$SWSIM" $verb -q "$hello"
done

check "SWSIM_DRAW_SECONDS" each refuses SWSIM_DRAW_SECONDS "$SWSIM" render -q -o "$dir/x.svg" "$hello"
check "... and when it is empty" refuses SWSIM_DRAW_SECONDS '' "$SWSIM" render -q -o "$dir/x.svg" "$hello"
check "... which leaves no picture" test ! -e "$dir/x.svg"
check "SWSIM_RECORD_TIMES" each refuses SWSIM_RECORD_TIMES "$SWSIM" record -o "$dir/r.swr" -- true
check "... which leaves no recording" sh -c '! ls "$1" | grep -q "r.*swr"' sh "$dir"
for variable in NO_COLOR TERM; do
    check "any $variable will do" each ignored $variable "$SWSIM" verify -q "$hello"
    check "... of swrun" each ignored $variable "$SWRUN" -q -n 2 "$hello"
done

# Two ranks that a launcher might have started.
cat >"$dir/two_ranks" <<ROWS
OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 "$SWRUN" -q -n 2 --ranks=2 "$hello" &
OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 "$SWRUN" -q -n 2 --ranks=2 "$hello"
first=\$?
wait \$! && exit \$first
ROWS
fit='a{5000}'
check "ranks meet under any SWRUN_RENDEZVOUS" each ignored SWRUN_RENDEZVOUS sh "$dir/two_ranks"
fit=
check "of at most 60 bytes" refuses SWRUN_RENDEZVOUS "$(head -c 61 /dev/zero | tr '\0' a)" env \
    OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$SWRUN" -q -n 2 --ranks=2 "$hello"
check "so --rendezvous" complains 2 'error: --rendezvous: found 61 bytes, expected a name of at most 60' env \
    OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$SWRUN" -n 2 --rendezvous="$(head -c 61 /dev/zero | tr '\0' a)" "$hello"
check "which no launcher needs" each ignored SWRUN_RENDEZVOUS "$SWRUN" -q -n 2 "$hello"
few="$dir/[nfe].*|/dev/zero|0x1|1x|1\.5|-1| 1" # where there are many variables
fit=$few
for variable in PMIX_NAMESPACE OMPI_MCA_ess_base_jobid OMPI_MCA_orte_ess_jobid; do
    check "ranks meet under any $variable" each ignored $variable sh "$dir/two_ranks"
done
fit=
# Jobs whose names differ at their ends alone are two jobs.
long=$(head -c 200 /dev/zero | tr '\0' a)
two_jobs()
{
    OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 PMIX_NAMESPACE=${long}1 "$SWRUN" -q -n 2 --timeout=1s --ranks=2 "$hello" >/dev/null 2>&1 &
    ! OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 PMIX_NAMESPACE=${long}2 "$SWRUN" -q -n 2 --timeout=1s --ranks=2 "$hello" >"$dir/out" 2>&1 || return
    wait $!
    grep -q 'rank 1' "$dir/out" && return
    cat "$dir/out"
    false
}
check "a rank of another job is not met" two_jobs
fit=$few
check "SLURM_JOB_ID names a job" each ignored SLURM_JOB_ID env SLURM_STEP_ID=0 sh "$dir/two_ranks"
check "with SLURM_STEP_ID" each ignored SLURM_STEP_ID env SLURM_JOB_ID=0 sh "$dir/two_ranks"
fit=

# ---- several machines -------------------------------------------------------------------------------

for machines in "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1" "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=1" \
    "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2 SLURM_STEP_ID=0"; do
    check "ranks on several machines are refused: $machines" complains 2 'error: the launcher has put the 2 ranks on several machines' \
        env $machines timeout 10 "$SWRUN" -n 2 --ranks=2 "$hello"
    check "... but for --one-process" env $machines "$SWRUN" -q --one-process -n 2 "$hello"
done

# ---- what is recorded -------------------------------------------------------------------------------

printf '#!/bin/sh\nexit 3\n' >"$dir/program"
chmod +x "$dir/program"
mkdir "$dir/folder/program"
path_finds()
(
    cd "$dir" && PATH=$1 "$swsim" record -o none.swr -- program >out 2>err
    grep -q 'program exited with 3' err && return
    cat err
    false
)
swsim=$(realpath "$SWSIM")
check "PATH: an empty folder is this one" path_finds "/usr/bin::/bin"
check "... as is an empty PATH" path_finds ""
check "... and a folder is no program" path_finds "$dir/folder:$dir"
not_found() { ends 2 "$@" && grep -q 'no_such_program: no such program' "$dir/err"; }
check "any PATH will do" each not_found PATH "$swsim" record -o "$dir/none.swr" -- no_such_program

program=$PWD/tests/record/program
if [ ! -x "$program" ]; then
    skip "built without CUDA's toolkit: there is no program to record"
    done_testing; exit
fi
export ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS-}" SWSIM_EMULATED_GPUS=2

# recorded VARIABLE VALUE [NAME=VALUE...]: the program is recorded, and the recording can be read.
recorded()
{
    variable=$1 value=$2
    shift 2
    rm -rf "$dir/r.swr"
    ends 0 "$variable" "$value" "$@" "$SWSIM" record -o "$dir/r.swr" -- "$program" missing_wait fixed || return
    cp "$dir/err" "$dir/recorded"
    ends 0 "$variable" "$value" "$SWSIM" import -o "$dir/r.yaml" "$dir/r.swr"
}
# measured VARIABLE VALUE: how many device operations have times is a number other than 0.
cupti=$PWD/tests/cuda_emulation/libcupti.so
measured() { recorded "$@" SWSIM_CUPTI="$cupti" && found ' [1-9][0-9]* device operations with' "$dir/recorded"; }
unmeasured() { recorded "$@" SWSIM_CUPTI="$cupti" && found ' 0 device operations with' "$dir/recorded"; }
untimed() { recorded "$@" && found 'recorded without their times: SWSIM_CUPTI: ' "$dir/recorded"; }
no_rank()
{
    recorded "$@" SWSIM_RECORD_TIMES=0 && found "variable $1 is no number that a launcher sets; process .* without a rank" "$dir/recorded"
}
for variable in SWSIM_RECORD SWSIM_RECORD_STATIC SWSIM_RECORD_TOUCH SWSIM_RECORD_ASK_TWICE; do
    check "record replaces any $variable" each measured $variable
done
check "... and asks for no host accesses then" sh -c '! grep -q "host accesses" "$1"' sh "$dir/r.yaml"
check "SWSIM_RECORD_TIMES=0" unmeasured SWSIM_RECORD_TIMES 0
check "SWSIM_RECORD_TIMES=1" measured SWSIM_RECORD_TIMES 1
check "SWSIM_CUPTI that names none is told" each untimed SWSIM_CUPTI
fit='.*/pipe|\\.*|two.*' # the loader of any program waits for a pipe, and says a name as it is
check "LD_PRELOAD comes behind" each measured LD_PRELOAD
fit=$few
for variable in RANK OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK SLURM_PROCID; do
    check "a recorded process tells that $variable is none" each no_rank $variable
done
check "a rank is less than the number" no_rank RANK 2 WORLD_SIZE=2
for variable in WORLD_SIZE OMPI_COMM_WORLD_SIZE PMIX_SIZE PMI_SIZE SLURM_NTASKS; do
    check "a number of processes that is none" each no_rank $variable \
        "$(echo $variable | sed 's/WORLD_SIZE/RANK/; s/SIZE/RANK/; s/^OMPI_COMM_/&WORLD_/; s/NTASKS/PROCID/')=0"
done
fit=

# ---- NCCL -------------------------------------------------------------------------------------------

SWRUN=$PWD/tests/swrun_emulated
cat >"$dir/quick.yaml" <<'PLAN'
swplan: 1
name: quick
ranks: 2
schedule:
  Meet: {stage: 0, time: 10us, writes: [y], globally_ordered: true, work: {collective: all_to_all, comm: dp, bytes: 6KiB}}
buffers: {y: {scope: shared}}
PLAN
# The reason is said once: each rank may find it.
no_nccl()
{
    ends 2 "$@" "$SWRUN" --device=cuda --processes -q -n 1 "$dir/quick.yaml" || return
    grep -q 'error: .*SWSIM_NCCL' "$dir/err" && return
    cat -v "$dir/err"
    false
}
check "SWSIM_NCCL that names none is refused" each no_nccl SWSIM_NCCL
# Beside the NCCL that the emulation names, none of the others is looked at; without, whether one is found is the machine's matter.
searched()
{
    ends 0 "$@" "$SWRUN" --device=cuda --processes -q -n 1 "$dir/quick.yaml" || return
    timeout 60 env "$1=$2" SWSIM_NCCL= "$SWRUN" --device=cuda --processes -q -n 1 "$dir/quick.yaml" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    terminal_safe "$dir/err" && test $code -le 2 && return
    echo "exit code $code"
    cat -v "$dir/err"
    false
}
for variable in CUDA_HOME VIRTUAL_ENV CONDA_PREFIX HOME; do
    check "any $variable will do" each searched $variable
done
for variable in NCCL_HOSTID NCCL_NET NCCL_P2P_DISABLE NCCL_SHM_DISABLE NCCL_SOCKET_IFNAME CUDA_DEVICE_MAX_CONNECTIONS \
    NCCL_RUNTIME_CONNECT CUDA_MODULE_LOADING; do
    check "$variable is for NCCL and CUDA" each ignored $variable "$SWRUN" --device=cuda --processes -q -n 1 "$dir/quick.yaml"
done
done_testing

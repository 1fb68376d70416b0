#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libswpipe with ranks that are processes: on emulated CUDA (not a GPU), and in a program that mpirun starts.
. "${srcdir:-.}/tests/tap.sh"
: "${INSTRUMENT_FLAGS:=}"
unset SWSIM_NCCL

if [ -x tests/gpu/t_swpipe_group_emulated ]; then
    check "groups on emulated CUDA" sh -c "tests/gpu/t_swpipe_group_emulated cuda >'$dir/out' 2>&1 || { cat '$dir/out'; exit 1; }"
    check "with a GPU for each" sh -c "SWSIM_EMULATED_GPUS=4 tests/gpu/t_swpipe_group_emulated cuda >'$dir/out' 2>&1 || { cat '$dir/out'; exit 1; }"
    check "ranks that are threads, with a GPU each" sh -c "SWSIM_EMULATED_GPUS=4 tests/gpu/t_swpipe_group_emulated cuda threads >'$dir/out' 2>&1 || { cat '$dir/out'; exit 1; }"
    check "a GPU that each rank is shown alone is not shared" sh -c "tests/gpu/t_swpipe_group_emulated cuda shown >'$dir/out' 2>&1 || { cat '$dir/out'; exit 1; }"
    check "what the program has made itself" sh -c "SWSIM_EMULATED_GPUS=4 tests/gpu/t_swpipe_own_emulated cuda >'$dir/out' 2>&1 || { cat '$dir/out'; exit 1; }"
    check "GPUs by number" sh -c "SWSIM_EMULATION_LEAKS=1 SWSIM_EMULATED_GPUS=4 tests/gpu/t_swpipe_hooks_emulated cuda >'$dir/out' 2>&1 || { cat '$dir/out'; exit 1; }"
    check "a caller's GPU comes back without a context on it" env SWSIM_EMULATED_GPUS=4 SWSIM_EMULATION_CONTEXTS=1 \
        tests/gpu/t_swpipe_hooks_emulated untouched
    check "policies" sh -c "tests/gpu/t_swpipe_policy_emulated cuda >'$dir/out' 2>&1 || { cat '$dir/out'; exit 1; }"
    check "collectives on own memory" sh -c "tests/gpu/t_swpipe_collectives_emulated cuda >'$dir/out' 2>&1 || { cat '$dir/out'; exit 1; }"
else
    skip "built without CUDA's toolkit, which the emulation is compiled against"
fi

if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null; then
    skip "no mpirun and mpicc here"
    done_testing
    exit
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS-}"
cat >"$dir/group.c" <<'END'
#include <stdio.h>
#include <swpipe_mpi.h>
static int next(void *left, int rank, void **batch)
{
    (void)rank;
    *batch = left;
    return (*(int *)left)-- > 0;
}
int main(int argc, char **argv)
{
    static const char plan[] =
        "swplan: 1\nname: mpi\nschedule:\n"
        "  Sum: {stage: 0, globally_ordered: true, writes: [s], work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"
        "  Step: {stage: 1, reads: [s]}\nintra_iter_deps: [[Step, Sum]]\ninter_iter_deps: [[Sum, Step]]\n";
    struct swpipe_group *group;
    struct swpipe *pipe;
    MPI_Init(&argc, &argv);
    int status = swpipe_join_mpi(MPI_COMM_WORLD, &group);
    if (status == SWPIPE_OK) {
        int left = 10 + swpipe_group_rank(group);
        struct swpipe_config config = {.plan_text = plan, .ranks = swpipe_group_size(group), .group = group};
        struct swpipe_source source = {next, &left};
        status = swpipe_open(&config, &pipe);
        if (status == SWPIPE_OK)
            status = swpipe_run(pipe, &source, NULL);
        printf("rank %d: %s %s\n", swpipe_group_rank(group), swpipe_status_name(status), swpipe_error(pipe));
        swpipe_close(pipe);
    } else {
        printf("%s\n", swpipe_group_error(group));
    }
    swpipe_leave(group);
    MPI_Finalize();
    return status;
}
END
# shellcheck disable=SC2086
libs="libswpipe.a $(sed -n 's/^YAML_LIBS = //p; s/^SQLITE_LIBS = //p; s/^CUDA_LIBS = //p; s/^LIBS = //p' Makefile | tr '\n' ' ')"
check "a program with MPI compiles" sh -c "mpicc -std=c11 $INSTRUMENT_FLAGS -I'$srcdir/gpu/lib' -o '$dir/group' '$dir/group.c' $libs >'$dir/log' 2>&1 || { cat '$dir/log'; exit 1; }"
for ranks in 2 4; do
    check "and runs with $ranks ranks" sh -c "mpirun -n $ranks '$dir/group' >'$dir/out' 2>&1 && test \$(grep -c ': ok' '$dir/out') -eq $ranks || { cat '$dir/out'; exit 1; }"
done
done_testing

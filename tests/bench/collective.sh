#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make bench-collective: collectives of the host device (collective.c) beside those of MPI (collective_mpi.c), where mpicc is.
#
#     COLLECTIVE=tests/bench/collective srcdir=. tests/bench/collective.sh [RANKS]...
#
# ROUNDS=N: of each row (default 5)
set -u
here=${srcdir:-.}/tests/bench
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
[ $# -gt 0 ] || set -- 2
for ranks in "$@"; do
    "${COLLECTIVE:-tests/bench/collective}" --ranks="$ranks" --rounds="${ROUNDS:-5}" || exit 1
    if ! command -v mpicc >/dev/null || ! command -v mpirun >/dev/null; then
        echo "# without MPI: there is no mpicc"
        continue
    fi
    mpicc -O2 "$here/collective_mpi.c" -o "$dir/mpi" || exit 1
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n "$ranks" "$dir/mpi" || exit 1
done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make bench-hand: the library beside a pipeline by hand (hand.c), and beside oneTBB and StarPU where they are installed.
#
#     HAND=tests/bench/hand srcdir=. tests/bench/hand.sh [arguments of hand]
#
# Not with real-time priority where StarPU is installed: its workers spin, and leave the machine no time.
set -u
here=${srcdir:-.}/tests/bench
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
peers=

# peer NAME PACKAGE COMPILER SOURCE: a peer of hand as a shared object, if the package is there.
peer()
{
    flags=$(pkg-config --cflags --libs "$2" 2>/dev/null) || { echo "# without $1: pkg-config knows no $2"; return; }
    # The flags are several words.
    # shellcheck disable=SC2086
    if $3 -O2 -shared -fPIC "$here/$4" -o "$dir/$1.so" $flags; then
        peers="$peers --peer=$1=$dir/$1.so"
    else
        echo "# without $1: $4 was not compiled"
    fi
}
peer tbb tbb "${CXX:-c++}" hand_tbb.cpp
peer starpu starpu-1.3 "${CC:-cc}" hand_starpu.c
# shellcheck disable=SC2086
STARPU_SILENT=1 "${HAND:-tests/bench/hand}" $peers "$@"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header of every room compiles alone: whoever includes it need not know what it needs.
. "${srcdir:-.}/tests/tap.sh"
: "${TEST_CPPFLAGS:=-D_GNU_SOURCE -I$srcdir}"

# The header of others that this one is for, where it is not installed; else nothing.
lacks()
{
    [ "$1" = gpu/lib/swpipe_mpi.h ] || return 0
    # shellcheck disable=SC2086
    echo '#include <mpi.h>' | $CC $TEST_CPPFLAGS -fsyntax-only -x c - 2>/dev/null || echo mpi.h
}

compiles_alone()
{
    # shellcheck disable=SC2086
    echo "#include \"$1\"" |
        $CC $TEST_CPPFLAGS -std=c11 -Wall -Wextra -Werror -fsyntax-only -x c -
}

for name in $(cd "$srcdir" && find base plan machine trace sim check improve api gpu -name '*.h' | sort); do
    missing=$(lacks "$name")
    if [ -n "$missing" ]; then
        skip "$name compiles alone: $missing is not installed"
    else
        check "$name compiles alone" compiles_alone "$name"
    fi
done
done_testing

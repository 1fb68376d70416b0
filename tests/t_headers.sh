#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header of every room compiles alone: whoever includes it need not know what it needs.
. "${srcdir:-.}/tests/tap.sh"
: "${TEST_CPPFLAGS:=-D_GNU_SOURCE -I$srcdir}"

compiles_alone()
{
    # shellcheck disable=SC2086
    echo "#include \"$1\"" |
        $CC $TEST_CPPFLAGS -std=c11 -Wall -Wextra -Werror -fsyntax-only -x c -
}

for name in $(cd "$srcdir" && find plan machine proof trace sim check improve api import net gpu -name '*.h' | sort); do
    check "$name compiles alone" compiles_alone "$name"
done
done_testing

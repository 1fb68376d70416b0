#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every fuzz target for some seconds with libFuzzer (tests/fuzz/run.sh): only in `make check-long`, and where clang has
# libFuzzer.
. "${srcdir:-.}/tests/tap.sh"

if [ -z "${SWSIM_LONG-}" ]; then
    skip_all "libFuzzer runs in 'make check-long' and 'make fuzz'"
fi

found_nothing()
{
    SECONDS_EACH=${SWSIM_FUZZ_SECONDS:-5} "$srcdir/tests/fuzz/run.sh" >"$dir/table" 2>&1
    status=$?
    cat "$dir/table"
    return $status
}

check "no target of libFuzzer finds anything" found_nothing
done_testing

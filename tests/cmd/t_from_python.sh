#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared libraries are loaded from a language with a foreign function interface: tests/from_python.py.
. "${srcdir:-.}/tests/tap.sh"
: "${INSTRUMENT_FLAGS:=}"

command -v python3 >/dev/null 2>&1 || skip_all "python3 is not here"
python3 -c 'import ctypes' 2>/dev/null || skip_all "this python3 has no ctypes"
preload=
case $INSTRUMENT_FLAGS in
*-fsanitize=thread*) skip_all "the thread sanitizer must be in the program, and python3 has none" ;;
*-fsanitize=address*) preload=$($CC -print-file-name=libasan.so 2>/dev/null) ;;
esac
case $preload in
"" | /*) ;;
*) skip_all "the address sanitizer must come first, and $CC has no shared one" ;;
esac
# Memory that Python leaves at its end is not ours.
[ -z "$preload" ] || ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" LD_PRELOAD=$preload
[ -z "$preload" ] || export ASAN_OPTIONS LD_PRELOAD
exec python3 "$srcdir/tests/from_python.py" ./libswpipe.so ./libswsim.so "$srcdir"

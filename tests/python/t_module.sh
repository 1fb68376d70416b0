#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Python package, from the source with the programs and libraries of this build: tests/python/module.py. Its types are
# checked with mypy, its plugin with pytest, its frames with pandas, where these are installed.
. "${srcdir:-.}/tests/tap.sh"
: "${INSTRUMENT_FLAGS:=}"

command -v python3 >/dev/null 2>&1 || skip_all "python3 is not here"
python3 -c 'import ctypes, sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || skip_all "no python3 of 3.9 or newer with ctypes"
case $INSTRUMENT_FLAGS in
*-fsanitize=*) skip_all "a sanitizer must be in the program, and python3 has none" ;;
esac
build=$PWD
mkdir -p "$dir/site/swsim"
python3 "$srcdir/python/generate.py" "$srcdir" "$dir/site/swsim" || exit 99
cp "$srcdir"/python/swsim/*.py "$srcdir/python/swsim/py.typed" "$dir/site/swsim"
mkdir -p "$dir/site/swsim/plans" && cp -r "$srcdir/plans/torchrec" "$dir/site/swsim/plans"
PATH=$build:$PATH
LD_LIBRARY_PATH=$build
PYTHONPATH=$dir/site
PYTHONDONTWRITEBYTECODE=1
export PATH LD_LIBRARY_PATH PYTHONPATH PYTHONDONTWRITEBYTECODE
exec python3 "$srcdir/tests/python/module.py" "$srcdir" "$dir" "$CC"

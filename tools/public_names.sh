#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# public_names.sh [-v NODE] PREFIX HEADER...: the functions that public headers declare, a name a line; with -v, the
# linker's version script that exports them under that version and nothing else.
#
# A declaration begins in the first column; a typedef, a static function, a comment and what is indented are none.
node=
[ "$1" != -v ] || { node=$2 && shift 2; }
prefix=$1
shift
names=$(sed -n "/^typedef/d; /^static/d; s/^[a-z][^(]*[ *]\\(${prefix}[a-z0-9_]*\\)(.*/\\1/p" "$@" | LC_ALL=C sort -u)
[ -n "$names" ] || { echo "$0: no $prefix function is declared" >&2; exit 1; }
if [ -z "$node" ]; then
    echo "$names"
    exit
fi
echo "$node {"
echo "global:"
echo "$names" | sed 's/.*/    &;/'
echo "local:"
echo "    *;"
echo "};"

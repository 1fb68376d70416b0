#!/bin/sh
# public_names.sh PREFIX HEADER [NODE]: the functions that a public header declares, a name a line; with NODE, the
# linker's version script that exports them under that version and nothing else.
#
# A declaration begins in the first column; a typedef, a comment and what is indented are none.
prefix=$1 header=$2 node=${3-}
names=$(sed -n "/^typedef/d; s/^[a-z][^(]*[ *]\\(${prefix}[a-z0-9_]*\\)(.*/\\1/p" "$header" | LC_ALL=C sort -u)
[ -n "$names" ] || { echo "$0: $header declares no $prefix function" >&2; exit 1; }
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

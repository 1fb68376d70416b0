#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the programs are built with (SECURITY.md), and that another folder gives the same bytes.
. "${srcdir:-.}/tests/tap.sh"
top=$(cd "$srcdir" && pwd)

# made_with FLAG: did configure take it?
made_with()
{
    grep -q "^HARDENING_[A-Z]*FLAGS = .*$1" Makefile
}
# has PROGRAM TEXT READELF_OPTION: whether its headers say so.
has()
{
    readelf "$3" --wide "$1" | grep -q "$2"
}
for program in "$SWSIM" "$SWRUN" libswsim.so libswpipe.so libswrecord.so none/libswnone.so; do
    name=${program##*/}
    for row in '-Wl,-z,relro,-z,now|GNU_RELRO|--segments' '-Wl,-z,relro,-z,now|BIND_NOW|--dynamic' \
        '-fstack-protector-strong|__stack_chk_fail|--symbols' '-D_FORTIFY_SOURCE=3|__[a-z]*printf_chk|--symbols'; do
        flag=${row%%|*} rest=${row#*|}
        if made_with "$flag"; then
            check "$name: $flag (${rest%|*})" has "$program" "${rest%|*}" "${rest#*|}"
        else
            skip "not built with $flag"
        fi
    done
done

# make_in FOLDER: a build from a copy of the sources there.
make_in()
{
    mkdir -p "$1/build" && (cd "$top" && git ls-files -z | tar c --null -T -) | tar x -C "$1" &&
        (cd "$1" && ./autogen.sh && cd build && ../configure -q && make -s all) >"$dir/log" 2>&1
}
same_everywhere()
{
    make_in "$dir/one" && make_in "$dir/another/folder" || { tail -n 20 "$dir/log"; return 1; }
    for made in swsim swrun libswpipe.a libswsim.a libswpipe.so libswsim.so libswrecord.so none/libswnone.so; do
        cmp "$dir/one/build/$made" "$dir/another/folder/build/$made" || return 1
    done
}
if [ -z "${SWSIM_LONG-}" ]; then
    skip "two builds in two folders: SWSIM_LONG=1 for them"
elif ! grep -q '^FOLDER_CFLAGS = .*prefix-map' Makefile || [ ! -e "$top/.git" ]; then
    skip "no checkout, or a compiler that writes where it was"
else
    check "two folders, the same bytes" same_everywhere
fi
done_testing

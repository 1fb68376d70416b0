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

nm -g --defined-only libswpipe.a 2>/dev/null | awk 'NF == 3 && $3 !~ /^swpipe_/ { print $3 }' \
    >"$dir/names"
check "the library exports no other names" test ! -s "$dir/names"
nm -g --defined-only libswpipe.a | awk 'NF == 3 { print $3 }' | sort >"$dir/has"
grep -v '^typedef' "$srcdir/gpu/lib/swpipe.h" | sed -n 's/^[a-z].*[ *]\(swpipe_[a-z_]*\)(.*/\1/p' | sort -u >"$dir/wants"
check "every function of the header is in it" sh -c "test -s '$dir/wants' && test -z \"\$(comm -23 '$dir/wants' '$dir/has')\""

if ${MAKE:-make} install-swpipelibDATA install-includeHEADERS install-pkgconfigDATA \
    prefix="$dir/root" >"$dir/log" 2>&1; then
    PKG_CONFIG_PATH=$(dirname "$(find "$dir/root" -name swpipe.pc)")
    export PKG_CONFIG_PATH
    flags=$(pkg-config --define-variable=prefix="$dir/root" --cflags --libs swpipe)
    cat >"$dir/own.c" <<'END'
#include <swpipe.h>
int plan_read(void) { return 3; } /* a name the library uses inside */
int main(void)
{
    struct swpipe *pipe;
    const struct swpipe_config config = {.plan_file = "/does/not/exist"};
    enum swpipe_status status = swpipe_open(&config, &pipe);
    swpipe_close(pipe);
    return status == SWPIPE_OK ? 1 : plan_read();
}
END
    # shellcheck disable=SC2086
    check "a program builds with pkg-config's flags" \
        $CC $INSTRUMENT_FLAGS -o "$dir/own" "$dir/own.c" $flags
    "$dir/own"
    check "and runs, with a plan_read of its own" test $? -eq 3
else
    cat "$dir/log"
    check "the library installs" false
fi
done_testing

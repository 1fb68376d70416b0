#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A picture that is not whole is never called written: plugins that cannot be loaded, edges that are lost, files that end in
# the middle. inject.so refuses Graphviz, Pango and Cairo the n-th allocation: an SVG then has all its parts, a PNG or PDF is
# a complete file, or there is none, and a sentence says why. Whether a PNG or PDF lacks a letter cannot be seen.
. "${srcdir:-.}/tests/tap.sh"
library=$PWD/tests/faults/inject.so
test -z "${INSTRUMENT_FLAGS-}" || skip_all "a sanitizer's allocator cannot be made to fail"
"$SWSIM" render "$srcdir/plans/examples/hello.yaml" -o "$dir/probe.dot" 2>/dev/null || skip_all "no Graphviz"
plan=$srcdir/tests/faults/small.yaml

# parts FILE: what two SVGs must have in common. Without memory for a font there may be other sizes, as with other fonts.
parts()
{
    sed 's/-\{0,1\}[0-9][0-9.]*//g' "$1"
}

# is_complete KIND FILE: all parts of an SVG; of the others the end (tests/trace/t_whole.c looks into them).
is_complete()
{
    case $1 in
    svg) parts "$2" | cmp -s - "$dir/whole" ;;
    png) tail -c 8 "$2" | cmp -s - "$dir/end" ;;
    pdf) test "$(tail -n 1 "$2")" = %%EOF ;;
    esac
}
printf 'IEND\256B`\202' >"$dir/end"

# is_honest KIND: of an attempt that left $dir/out.KIND or nothing.
is_honest()
{
    if [ $code -eq 0 ]; then
        is_complete "$1" "$dir/out.$1"
    else
        test $code -eq 2 -a ! -e "$dir/out.$1" && grep -q ': error: .' "$dir/err"
    fi
}

# whole_or_refused KIND FUNCTION N...: where the n-th allocation under the function or the library is refused.
whole_or_refused()
{
    kind=$1 from=$2 bad=0
    shift 2
    rm -f "$dir/trace"
    "$SWSIM" render -o "$dir/sound.$kind" "$plan" && parts "$dir/sound.$kind" >"$dir/whole" || return
    is_complete $kind "$dir/sound.$kind" || return
    for call; do
        rm -f "$dir/out.$kind"
        LD_PRELOAD=$library SWSIM_INJECT=memory:$call SWSIM_INJECT_FROM=$from SWSIM_INJECT_TRACE=$dir/trace \
            SWSIM_DRAW_SECONDS=5 "$SWSIM" render -o "$dir/out.$kind" "$plan" >"$dir/out" 2>"$dir/err"
        code=$?
        is_honest $kind && continue
        echo "call $call of $from: exit code $code"
        cat "$dir/err"
        bad=1
    done
    test -s "$dir/trace" || { echo "no call of $from failed"; bad=1; }
    test $bad -eq 0
}

check "a plugin of shapes that cannot be loaded" whole_or_refused svg gvjobs_output_langname $(seq 1 2 19)
check "a way that cannot be found for an edge" whole_or_refused svg libpathplan 1 3 5 6 7 8
check "letters that cannot be measured, as pixels" whole_or_refused png cairo_scaled_font_glyph_extents $(seq 1 9 64)

"$SWSIM" render -o "$dir/one.pdf" "$plan" 2>/dev/null
sleep 1.1
"$SWSIM" render -o "$dir/two.pdf" "$plan" 2>/dev/null
if grep -qa CreationDate "$dir/one.pdf" || cmp -s "$dir/one.pdf" "$dir/two.pdf"; then
    check "one plan makes one PDF, whatever the time" cmp "$dir/one.pdf" "$dir/two.pdf"
    check "letters that cannot be drawn, in a PDF" whole_or_refused pdf pango_cairo_show_layout $(seq 1 49 400)
else
    skip "Cairo compresses the date of a PDF"
fi
done_testing

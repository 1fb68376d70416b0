#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commands of doc/gallery.md make every picture that it shows, none larger than 100 kB.
. "${srcdir:-.}/tests/tap.sh"
"$SWSIM" render "$srcdir/plans/examples/hello.yaml" -o "$dir/probe.dot" 2>/dev/null || skip_all "no Graphviz"
mkdir "$dir/bin"
ln -s "$(cd "$(dirname "$SWSIM")" && pwd)/$(basename "$SWSIM")" "$dir/bin/swsim"
check "its commands run" env PATH="$dir/bin:$PATH" sh "$srcdir/tools/gallery.sh" "$dir/pictures"
for picture in $(sed -n 's/.*](gallery\/\(.*\))$/\1/p' "$srcdir/doc/gallery.md"); do
    check "$picture is made" test -s "$dir/pictures/$picture"
    check "$picture is in the tree, and small" sh -c "test \$(wc -c <'$srcdir/doc/gallery/$picture') -lt 102400"
done
check "no other is there" sh -c "
    for file in '$srcdir'/doc/gallery/*.svg; do grep -q \"(gallery/\$(basename \"\$file\"))\" '$srcdir/doc/gallery.md' || exit 1; done"
done_testing

#!/bin/sh
# No room includes a header of a room that it may not know: core knows nobody, trace knows core,
# and sim, check and gpu know core and trace but never each other. And the map of the house is complete.
set -u
: "${srcdir:=.}"
. "$srcdir/tests/tap.sh"

# includes_only ROOM ALLOWED...: ROOM includes headers of these rooms and its own. Prints each line
# that does not and fails when there is one.
includes_only()
{
    room=$1
    test -d "$srcdir/$room" || return
    known=$(echo "$@" | tr ' ' '|')
    offences=$(cd "$srcdir" && find "$room" -name '*.[ch]' -o -name '*.cu' | sort | xargs -r \
        grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' /dev/null |
        grep -E '"(\.\./)?(core|trace|sim|check|gpu|cmd|tests)/' |
        grep -vE "\"(\.\./)?($known)/")
    printf '%s' "$offences"
    test -z "$offences"
}

check "core knows nobody" includes_only core
check "trace knows core" includes_only trace core
check "sim knows core and trace" includes_only sim core trace
check "check knows core and trace" includes_only check core trace
check "gpu knows core and trace" includes_only gpu core trace
check "cmd knows every room, and no test" includes_only cmd core trace sim check gpu

# named_in_map: doc/architecture.md has a word for every source file, or for the header it belongs to.
named_in_map()
{
    missing=0
    for file in "$srcdir"/core/*.c "$srcdir"/trace/*.c "$srcdir"/sim/*.c "$srcdir"/check/*.c "$srcdir"/gpu/*.c \
        "$srcdir"/cmd/*.c; do
        name=$(basename "$file" .c)
        grep -q "\`$name\.[ch]\`" "$srcdir/doc/architecture.md" && continue
        missing=1
        echo "$file"
    done
    test "$missing" -eq 0
}
check "the map in doc/architecture.md shows every file" named_in_map
done_testing

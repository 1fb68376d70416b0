#!/bin/sh
# No room includes a header of a room that it may not know: core knows nobody, trace knows core,
# and sim, check and gpu know core and trace but never each other.
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
done_testing

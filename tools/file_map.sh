#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# file_map.sh - prints doc/files.md: every source file with the first sentence of its first comment.
#
#     tools/file_map.sh >doc/files.md      # in the checkout; `make file-map` does it
#
# The first comment of a file begins with "NAME - ". A .c file that says "see NAME.h" there is named in the row of that
# header, or in none where it has the header's name. The rooms are those of the table in doc/architecture.md.
set -u
cd "$(dirname "$0")/.." || exit 1

cat <<'EOF'
# Files

`make file-map` writes this page from the first sentence of each file; tests/whole/t_rooms.sh compares. A `.c` file that is not
listed implements the header of its name. [architecture.md](architecture.md) says what each room is for.
EOF

# The first sentence of each file: FILE, tab, sentence.
first_sentences()
{
    awk '
        function finish() {
            if (name == "" || done) return
            gsub(/[ \t]+/, " ", text)
            sub(/ ?\*\/.*$/, "", text)
            if (match(text, /[.;]( |$)/)) text = substr(text, 1, RSTART - 1)
            sub(/^ +/, "", text); sub(/[ .]+$/, "", text)
            printf "%s\t%s\n", file, text
            done = 1
        }
        FNR == 1 {
            finish()
            file = FILENAME; name = FILENAME; sub(/.*\//, "", name); started = done = 0; text = ""
        }
        done { next }
        !started && index($0, name " - ") && /^(\/\*| \*|\/\/|#)/ {
            started = 1
            text = substr($0, index($0, name " - ") + length(name) + 3)
            if (text ~ /[.;]( |$)|\*\//) finish()
            next
        }
        started {
            line = $0; sub(/^ \*/, "", line)
            if (line ~ /^ *$/) { finish(); next }
            text = text " " line
            if (text ~ /[.;]( |$)|\*\//) finish()
        }
        FNR > 12 && !started { printf "%s\t\n", file; done = 1 }
        END { finish() }' "$@"
}

sed -n 's/^| `\([a-z/]*\)\/` | *\([^|]*[^| ]\) *|\(.*\)|$/\1\t\2/p' doc/architecture.md | while IFS='	' read -r room holds; do
    printf '\n## %s: %s\n\n| file | idea |\n|---|---|\n' "$room" "${holds%%:*}"
    # shellcheck disable=SC2046
    first_sentences $(find "$room" -maxdepth 1 -name '*.[ch]' -o -maxdepth 1 -name '*.cu' -o -maxdepth 1 -name '*.inc' | LC_ALL=C sort) |
        awk -F '\t' '
            {
                name = $1; sub(/.*\//, "", name)
                stem = name; sub(/\.[a-z]*$/, "", stem)
                if ($2 ~ /^see [a-z_0-9]+\.h$/) {
                    header = substr($2, 5)
                    if (header != stem ".h") also[header] = also[header] (also[header] == "" ? "" : ", ") "`" name "`"
                    seen[name] = 1
                    next
                }
                if (name ~ /\.c$/ && (stem ".h" in text)) next
                order[++count] = name; text[name] = $2
            }
            END {
                for (i = 1; i <= count; i++) {
                    name = order[i]
                    stem = name; sub(/\.[a-z]*$/, "", stem)
                    if (name ~ /\.c$/ && (stem ".h" in text)) continue
                    more = also[name] == "" ? "" : " (" also[name] ")"
                    printf "| `%s` | %s%s |\n", name, text[name], more
                }
            }'
done

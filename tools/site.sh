#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# site.sh FOLDER - the project's pages, manual pages and pictures as static HTML in FOLDER, which must be new or empty.
#
# pandoc turns Markdown into HTML, mandoc the manual pages; nothing is fetched, and the pages load nothing from the network.
# The rows of `pages` are the order of the menu: section, file. Files that a page links to come along.
set -eu
folder=${1:?usage: site.sh FOLDER}
cd "$(dirname "$0")/.."
for tool in pandoc mandoc; do
    command -v $tool >/dev/null || { echo "site.sh: $tool is needed (Debian package $tool)" >&2; exit 2; }
done
[ -z "$(ls -A "$folder" 2>/dev/null)" ] || { echo "site.sh: $folder is not empty" >&2; exit 2; }
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

pages='
Start|README.md
Start|doc/tour.md
Start|doc/hangs.md
Start|doc/stalls.md
Start|doc/tutorial.md
Start|doc/tutorial-plans.md
Start|doc/tutorial-run.md
Start|doc/coming-from.md
Start|doc/examples/dlrm/README.md
Start|plans/README.md
Use|doc/python.md
Use|doc/json.md
Use|doc/dry-run.md
Use|doc/dry-run-gate.md
Use|doc/predict.md
Use|doc/predict-shared.md
Use|doc/tuning.md
Use|doc/pipeline-parallel.md
Use|doc/repairs.md
Use|doc/gallery.md
Manual|doc/swsim.1
Manual|doc/swsim-compare.1
Manual|doc/swsim-dry.1
Manual|doc/swsim-explain.1
Manual|doc/swsim-export.1
Manual|doc/swsim-generate.1
Manual|doc/swsim-groups.1
Manual|doc/swsim-import.1
Manual|doc/swsim-lower.1
Manual|doc/swsim-mcp.1
Manual|doc/swsim-predict.1
Manual|doc/swsim-record.1
Manual|doc/swsim-render.1
Manual|doc/swsim-runs.1
Manual|doc/swsim-schedule.1
Manual|doc/swsim-schema.1
Manual|doc/swsim-stages.1
Manual|doc/swsim-tune.1
Manual|doc/swsim-verify.1
Manual|doc/swsim-watch.1
Manual|doc/swsim-why.1
Manual|doc/swrun.1
Manual|doc/swcheck.1
Manual|doc/swplan.5
Manual|doc/swpipe.3
Manual|doc/libswsim.3
Meaning|doc/semantics.md
Meaning|doc/glossary.md
Meaning|doc/checker.md
Meaning|doc/certificate.md
Trust|doc/trust.md
Trust|doc/measurements.md
Trust|doc/partners.md
Trust|SECURITY.md
House|doc/architecture.md
House|CONTRIBUTING.md
'
# Pages that are not named above come last.
for file in doc/*.md doc/*.[1-8]; do
    case $pages in *"|$file
"*) ;; *) pages="${pages}More|$file
" ;; esac
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The HTML file of a page of the source tree.
target()
{
    case $1 in
    README.md) echo index.html ;;
    */README.md) echo "${1%README.md}index.html" ;;
    *.md) echo "${1%.md}.html" ;;
    *) echo "$1.html" ;;
    esac
}

title()
{
    case $1 in
    */README.md) echo "${1%/README.md}" ;;
    *.md) sed -n 's/^# //p' "$1" | head -n 1 ;;
    *) echo "$1" | sed 's|.*/\(.*\)\.\([1-8]\)$|\1(\2)|' ;;
    esac
}

# The way from a file of the site to its top: "../" for each folder.
to_top()
{
    echo "$1" | sed 's|[^/]*$||; s|[^/]*/|../|g'
}

# The menu as it stands on the page $1.
menu()
{
    top=$(to_top "$1")
    section=
    echo "$pages" | while IFS='|' read -r name file; do
        [ -n "$file" ] || continue
        [ "$name" = "$section" ] || echo "<h2>$name</h2>"
        section=$name
        to=$(target "$file")
        here=
        [ "$to" != "$1" ] || here=' aria-current="page"'
        echo "<a href=\"$top$to\"$here>$(title "$file")</a>"
    done
}

# page SOURCE: standard input, Markdown, becomes its page. The filter lists the files that it links to.
page()
{
    to=$(target "$1")
    mkdir -p "$folder/$(dirname "$to")"
    menu "$to" >"$work/menu"
    SITE_PAGE=$1 SITE_LINKED=$work/linked pandoc -f gfm -t html5 --lua-filter tools/site/links.lua \
        --template tools/site/page.html -M pagetitle="$(title "$1")" -V top="$(to_top "$to")" \
        -V menu="$(cat "$work/menu")" -o "$folder/$to"
}

: >"$work/linked"
echo "$pages" | while IFS='|' read -r _ file; do
    case $file in
    '') ;;
    *.md) page "$file" <"$file" ;;
    *)
        {
            echo '<div class="manual">'
            # Manual pages of others are named, not linked.
            mandoc -T html -O 'fragment,man=%N.%S.html' "$file" | sed -E '/^$/d
                s|<a class="Xr" (href="(lib)?sw[a-z-]+\.[1-8]\.html")|<a \1|g
                s|<a class="Xr" [^>]*>([^<]*)</a>|\1|g'
            echo '</div>'
        } | page "$file"
        ;;
    esac
done
cp tools/site/style.css "$folder/style.css"

# bring FILE: as it is, at the same place.
bring()
{
    mkdir -p "$folder/$(dirname "$1")"
    cp "$1" "$folder/$1"
}

# A folder has a page with its files.
list_folder()
(
    [ ! -e "$folder/$1/index.html" ] || exit 0
    {
        printf '# %s\n\n' "$1"
        for file in "$1"/*; do
            printf -- '- [%s](%s)\n' "${file##*/}" "${file##*/}"
        done
    } >"$work/README.md"
    page "$1/README.md" <"$work/README.md"
)

sort -u "$work/linked" >"$work/brought"
while read -r file; do
    if [ -d "$file" ]; then
        list_folder "$file"
        find "$file" -type f >"$work/inside"
        while read -r inside; do bring "$inside"; done <"$work/inside"
    else
        bring "$file"
    fi
done <"$work/brought"
echo "$folder/index.html"

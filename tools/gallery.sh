#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gallery.sh [FOLDER]: make the pictures of doc/gallery.md, by the commands that it shows, in FOLDER (default doc/gallery).
# The commands are those behind "$ " in the page; swsim, swrun and dot are taken from PATH. They run at the top of the
# source, where `out` is a folder of their own.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$top/doc/gallery}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$top"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
sed -n 's/^    \$ //p' doc/gallery.md | sed "s,\([ =]\)out/,\1$out/,g" >"$out/commands"
while IFS= read -r command; do
    echo "$command" | sed "s,$out/,out/,g"
    sh -c "$command" >/dev/null </dev/null
done <"$out/commands"
for picture in "$out"/*.svg; do
    cp "$picture" "$folder"
done

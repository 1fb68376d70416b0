#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sbom.sh - prints the bill of materials of files of a release, as SPDX 2.3 in JSON.
#
#     sbom.sh VERSION FILE...          tarball, Debian packages, wheel, with their checksums
#
# The libraries are those that `../configure` finds with pkg-config here, in the versions of here; the wheel has libyaml, SQLite and
# zlib inside, the Debian packages use those of the system, the tarball names what it is built with. SOURCE_DATE_EPOCH is the date, so
# the same files have the same bill.
set -eu
test $# -gt 1 || { echo "usage: sbom.sh VERSION FILE..." >&2 && exit 2; }
version=$1
shift

# NAME MODULE LICENSE, of pkg-config; Random123 has none, it is headers.
libraries='libyaml yaml-0.1 MIT
sqlite sqlite3 blessing
zlib zlib Zlib
graphviz libcgraph EPL-1.0'

relation()
{
    printf ',\n    {"spdxElementId": "SPDXRef-%s", "relationshipType": "%s", "relatedSpdxElement": "SPDXRef-%s"}' "$@"
}
package()
{
    printf '    {"SPDXID": "SPDXRef-%s", "name": "%s", "versionInfo": "%s", "licenseDeclared": "%s", "licenseConcluded": "%s",\n' \
        "$1" "${4-$1}" "$2" "$3" "$3"
    printf '     "downloadLocation": "NOASSERTION", "copyrightText": "NOASSERTION", "filesAnalyzed": false%s}' "${5-}"
}

sums=$(sha256sum "$@")
name=swsim-$version-$(printf %s "$sums" | sha256sum | cut -c1-16)
cat <<END
{
  "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "swsim-$version",
  "documentNamespace": "https://spdx.org/spdxdocs/$name",
  "creationInfo": {"created": "$(date -u -d "@${SOURCE_DATE_EPOCH-0}" +%FT%TZ)", "creators": ["Tool: swsim/tools/sbom.sh"]},
  "packages": [
END
relations=
count=0
while read -r sum file; do
    count=$((count + 1))
    package "file-$count" "$version" Apache-2.0 swsim \
        ", \"packageFileName\": \"${file##*/}\", \"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"$sum\"}]"
    printf ',\n'
    test -z "$relations" || relations="$relations,"
    case $file in
    *.whl) how=STATIC_LINK ;;
    *.deb) how=DYNAMIC_LINK ;;
    *) how=DEPENDS_ON ;;
    esac
    relations="$relations
    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-file-$count\"}"
    while read -r library _ _; do
        case $library in
        graphviz) relations="$relations$(relation graphviz OPTIONAL_DEPENDENCY_OF "file-$count")" ;; # opened to draw
        *) relations="$relations$(relation "file-$count" "$how" "$library")" ;;
        esac
    done <<<"$libraries"
    relations="$relations$(relation "file-$count" CONTAINS random123)"
done <<<"$sums"
while read -r library module license; do
    package "$library" "$(pkg-config --modversion "$module" 2>/dev/null || echo NOASSERTION)" "$license"
    printf ',\n'
done <<<"$libraries"
package random123 NOASSERTION BSD-3-Clause
cat <<END

  ],
  "relationships": [$relations
  ]
}
END

# SPDX-License-Identifier: Apache-2.0
# Every scheme has a section, and a link to it.
"$LOCUS" schemes --markdown >doc.md
head -n 3 doc.md
schemes=$("$LOCUS" schemes --json | grep -c '^    "name": ')
echo "$(($(grep -c '^## ' doc.md) - schemes)) section beside the schemes"
"$LOCUS" schemes --json | sed -n 's/^    "name": "\(.*\)",$/\1/p' | while read -r name; do
    grep -q "^## $name\$" doc.md || echo "no section: $name"
    grep -q "^| \[$name\](#$name) |" doc.md || echo "no row: $name"
done
"$LOCUS" schemes alibi --markdown

#!/bin/sh
# Prints the changelog's section of a version. Fails unless package.json has that version.
#   sh .github/release-notes.sh 0.2.0
set -eu
version=$1
cd "$(dirname "$0")/.."
packaged=$(node -p 'require("./package.json").version')
[ "$packaged" = "$version" ] || { echo "package.json has version $packaged, not $version" >&2; exit 1; }
notes=$(awk -v head="## [$version]" 'index($0, "## [") == 1 { wanted = index($0, head) == 1; next } wanted' CHANGELOG.md)
[ -n "$notes" ] || { echo "CHANGELOG.md has no section ## [$version]" >&2; exit 1; }
printf '%s\n' "$notes"

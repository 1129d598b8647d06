#!/bin/sh
# Prints the path of a Node.js of another version: that of the npm package which carries the binary for this system, kept in a cache outside
# the source tree.
#   install-node.sh MAJOR     installs its latest release first when there is none
set -eu

major=${1:?usage: install-node.sh MAJOR}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodelease-test
folder=$cache/node-$major
package=$(node -p '`node-${process.platform}-${process.arch}`')
binary=$folder/node_modules/$package/bin/node

if [ ! -x "$binary" ]; then
  echo "Installing Node.js $major into $folder." >&2
  mkdir -p "$cache"
  # Installed aside and moved into place in one step: an aborted install, or two at once, leave no half of it.
  installing=$(mktemp -d "$cache/installing-XXXXXX")
  trap 'rm -rf "$installing"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  npm install --prefix "$installing" --no-audit --no-fund --no-save "$package@$major" >&2
  [ -x "$binary" ] || mv -T "$installing" "$folder" 2>/dev/null || [ -x "$binary" ]
fi
echo "$binary"

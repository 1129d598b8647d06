#!/bin/sh
# Prints the path of the checker of histories, test/support/programs/porcupine.go, kept in a cache outside the source tree, where it is built
# when it is missing. Needs Go 1.24 or later.
set -eu

version=1.3.1
source=$(cd "$(dirname "$0")/../programs" && pwd)/porcupine.go
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodelease-test
folder=$cache/porcupine-$version-$(cksum <"$source" | cut -d ' ' -f 1)

if [ ! -x "$folder/porcupine" ]; then
  command -v go >/dev/null || { echo 'go is not there, so Porcupine cannot be built: https://go.dev/dl/' >&2 && exit 1; }
  echo "Building the checker of histories with Porcupine $version, once, into $folder." >&2
  mkdir -p "$cache"
  # Put aside and moved into place in one step: an aborted run, or two at once, leave no half of it.
  new=$(mktemp -d "$cache/installing-XXXXXX")
  trap 'rm -rf "$new"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  cp "$source" "$new/main.go"
  cd "$new"
  go mod init porcupine >&2
  go get "github.com/anishathalye/porcupine@v$version" >&2
  CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o porcupine . >&2
  cd "$cache"
  chmod 755 "$new"
  [ -e "$folder" ] || mv -T "$new" "$folder" 2>/dev/null || [ -x "$folder/porcupine" ]
fi
echo "$folder/porcupine"

#!/bin/sh
# Prints the folder of packages that examples/own-store needs: dynalite, a stand-in for DynamoDB, and the client of its SDK.
# It is kept in a cache outside the source tree, and got there first when it is missing. Needs npm.
set -eu

folder=${XDG_CACHE_HOME:-$HOME/.cache}/nodelease-test/dynalite-4.0.0
if [ ! -d "$folder" ]; then
  echo "Installing dynalite into $folder." >&2
  mkdir -p "$(dirname "$folder")"
  # Installed aside and moved into place in one step: an aborted install, or two at once, leave no half of it.
  installing=$(mktemp -d "$(dirname "$folder")/installing-XXXXXX")
  trap 'rm -rf "$installing"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  npm install --prefix "$installing" --no-audit --no-fund --no-save dynalite@4.0.0 @aws-sdk/client-dynamodb@3.1164.0 >&2
  [ -d "$folder" ] || mv -T "$installing" "$folder"
fi
echo "$folder/node_modules"

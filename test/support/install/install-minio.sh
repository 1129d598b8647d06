#!/bin/sh
# Prints the path of a MinIO server binary: the tests' own, kept in a cache outside the source tree, else one on the PATH.
# Where there is neither, it builds one into the cache, which takes minutes and needs Go.
set -eu

version=v0.0.0-20260212201848-7aac2a2c5b7c
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodelease-test
folder=$cache/minio-$version

if [ -x "$folder/minio" ]; then
  echo "$folder/minio"
  exit 0
fi
! command -v minio || exit 0

if ! command -v go >/dev/null; then
  echo "Go (1.24 or later) is not installed, so MinIO cannot be built." >&2
  exit 1
fi
echo "Building MinIO $version once into $folder; this takes 3 minutes or more." >&2
mkdir -p "$folder"
# Built aside and moved into place in one step: an aborted install, or two at once, leave no half-written binary.
building=$(mktemp -d "$cache/building-XXXXXX")
trap 'rm -rf "$building"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
CGO_ENABLED=0 GOBIN=$building go install -trimpath -ldflags='-s -w' "github.com/minio/minio@$version" >&2
mv -f "$building/minio" "$folder/minio"
echo "$folder/minio"

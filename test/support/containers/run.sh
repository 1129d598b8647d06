#!/usr/bin/env bash
# Runs the tests with their servers in containers where there is neither a Docker engine nor an image registry: podman
# runs them, speaking Docker's API, from images built here of the same names that testcontainers asks for.
#   npm run test:containers [-- arguments of vitest]
# Debian or Ubuntu, as root. Containers and state live next to the tests' cache, outside the source tree, and go at the end.
set -euo pipefail
cd "$(dirname "$0")/../../.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodelease-test
mkdir -p "$cache"
# Of this run alone: podman's own database would otherwise tie later runs to this one's folders.
run=$(mktemp -d "$cache/containers-XXXXXX")
# Elsewhere, since podman allows its run root 50 characters, and the path of a Unix socket about 100.
short=$(mktemp -d /tmp/nodelease-podman-XXXXXX)
service=

finish() {
  local code=$?
  trap - EXIT
  if [ -n "$service" ]; then
    podman rm --all --force --time 2 >/dev/null 2>&1 || true
    kill "$service" 2>/dev/null || true
    for _ in $(seq 50); do
      kill -0 "$service" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$service" 2>/dev/null || true
    wait "$service" 2>/dev/null || true
    umount "$run/graph/overlay" 2>/dev/null || true
  fi
  rm -rf "$run" "$short"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo '== Podman and images'
sh test/support/install/install-podman.sh >/dev/null
images=$(bash test/support/containers/install-base-images.sh)
sh test/support/containers/podman-home.sh "$short" "$run/graph" "$images"
export CONTAINERS_CONF=$short/containers.conf CONTAINERS_STORAGE_CONF=$short/storage.conf

echo '== Docker API'
podman system service --time=0 "unix://$short/docker.sock" &
service=$!
for _ in $(seq 100); do
  [ -S "$short/docker.sock" ] && break
  kill -0 "$service" || exit 1
  sleep 0.1
done

echo '== Tests'
export DOCKER_HOST=unix://$short/docker.sock
export TESTCONTAINERS_RYUK_DISABLED=true
export TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1
# What runs images and compose files itself does so by podman's own command line.
export NODELEASE_TEST_CONTAINER_ENGINE=podman
if [ $# -gt 0 ]; then npx vitest run "$@"; else npm test; fi

#!/usr/bin/env bash
# Runs the tests with their servers in containers where there is neither a Docker engine nor an image registry: podman
# runs them, speaking Docker's API, from images built here of the same names that testcontainers asks for.
#   npm run test:containers [-- arguments of vitest]
# Debian or Ubuntu, as root. Images and state live beside the tests' cache, outside the source tree, and go at the end.
set -euo pipefail
cd "$(dirname "$0")/../../.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodelease-test
mkdir -p "$cache"
# Of this run alone: podman's own database would otherwise tie later runs to this one's folders.
run=$(mktemp -d "$cache/containers-XXXXXX")
# Elsewhere, since podman allows its run root 50 characters, and the path of a Unix socket about 100.
short=$(mktemp -d /tmp/nodelease-podman-XXXXXX)
podman=(podman --root "$run/storage" --runroot "$short/state" --storage-driver vfs --runtime runc)
service=

finish() {
  local code=$?
  trap - EXIT
  if [ -n "$service" ]; then
    "${podman[@]}" rm --all --force --time 2 >/dev/null 2>&1 || true
    kill "$service" 2>/dev/null || true
    for _ in $(seq 50); do
      kill -0 "$service" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$service" 2>/dev/null || true
    wait "$service" 2>/dev/null || true
  fi
  rm -rf "$run" "$short"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo '== Podman'
missing=()
command -v podman >/dev/null || missing+=(podman)
command -v runc >/dev/null || missing+=(runc)
command -v iptables >/dev/null || missing+=(iptables)
[ -d /usr/lib/cni ] || missing+=(containernetworking-plugins)
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "Not installed: ${missing[*]}. Install them, or run this as root on Debian or Ubuntu." >&2
    exit 1
  fi
  apt-get update
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" uidmap
fi
# Podman's default limits are refused inside other containers, and so is systemd's cgroup manager.
export CONTAINERS_CONF=$run/containers.conf
cat >"$CONTAINERS_CONF" <<'CONF'
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
CONF

echo '== Images'
image=$(sed -n "s/^export const MINIO_IMAGE = '\(.*\)';$/\1/p" test/support/minio-container.ts)
[ -n "$image" ] || {
  echo 'test/support/minio-container.ts names no MINIO_IMAGE' >&2
  exit 1
}
minio=$(sh test/support/install-minio.sh)
mkdir -p "$run/image/tmp"
ln "$minio" "$run/image/minio" 2>/dev/null || cp "$minio" "$run/image/minio"
cat >"$run/image/Containerfile" <<'FILE'
FROM scratch
COPY minio /usr/bin/minio
COPY tmp /tmp
ENTRYPOINT ["/usr/bin/minio"]
FILE
"${podman[@]}" build --quiet -t "docker.io/$image" -f "$run/image/Containerfile" "$run/image"

echo '== Docker API'
"${podman[@]}" system service --time=0 "unix://$short/docker.sock" &
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
if [ $# -gt 0 ]; then npx vitest run "$@"; else npm test; fi

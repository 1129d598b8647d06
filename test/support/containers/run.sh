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
# The name that a module of the tests asks for.
image_name() {
  local name
  name=$(sed -n "s/^export const [A-Z]*_IMAGE = '\(.*\)';$/\1/p" "$1")
  [ -n "$name" ] || {
    echo "$1 names no image" >&2
    exit 1
  }
  # As a registry would know it: an image without an owner is an official one.
  case $name in */*) echo "docker.io/$name" ;; *) echo "docker.io/library/$name" ;; esac
}

minio=$(sh test/support/install-minio.sh)
mkdir -p "$run/minio/tmp"
ln "$minio" "$run/minio/minio" 2>/dev/null || cp "$minio" "$run/minio/minio"
cat >"$run/minio/Containerfile" <<'FILE'
FROM scratch
COPY minio /usr/bin/minio
COPY tmp /tmp
ENTRYPOINT ["/usr/bin/minio"]
FILE
name=$(image_name test/support/minio-container.ts)
"${podman[@]}" build --quiet -t "$name" -f "$run/minio/Containerfile" "$run/minio"

# ZooKeeper: the host's package, its Java and the libraries that this needs. The official image's settings are understood
# as far as the tests use them.
class_path=$(sh test/support/install-zookeeper.sh)
java=$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")
root=$run/zookeeper/root
mkdir -p "$root/tmp" "$root/bin" "$root/usr/share/java" "$root$java"
cp -L /bin/sh "$root/bin/sh"
# The symbolic links would lead out of the image; some of them lead nowhere on a host without a desktop.
cp -RL "$java/bin" "$java/lib" "$java/conf" "$root$java" 2>/dev/null || true
rm -f "$root$java/lib/src.zip"
cp -L /usr/share/java/*.jar "$root/usr/share/java"
ldd /bin/sh "$java/bin/java" "$java/lib/server/libjvm.so" "$java"/lib/lib{java,jli,net,nio,zip,management}.so |
  awk '$2 == "=>" && $3 ~ /^[/]/ { print $3 } NF == 2 && $1 ~ /^[/]/ { print $1 }' | sort -u | while read -r library; do
  case $library in "$java"/*) continue ;; esac
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
cat >"$root/start" <<FILE
#!/bin/sh
{
  echo "tickTime=\$ZOO_TICK_TIME"
  echo "maxClientCnxns=\$ZOO_MAX_CLIENT_CNXNS"
  echo "admin.enableServer=\$ZOO_ADMINSERVER_ENABLED"
  echo "4lw.commands.whitelist=\$ZOO_4LW_COMMANDS_WHITELIST"
  echo clientPort=2181
  echo dataDir=/tmp/data
  for line in \$ZOO_CFG_EXTRA; do echo "\$line"; done
} >/tmp/zoo.cfg
exec $java/bin/java -Xmx128m -XX:+UseSerialGC -cp $class_path org.apache.zookeeper.server.quorum.QuorumPeerMain /tmp/zoo.cfg
FILE
chmod 755 "$root/start"
cat >"$run/zookeeper/Containerfile" <<'FILE'
FROM scratch
COPY root /
ENTRYPOINT ["/start"]
FILE
name=$(image_name test/support/zookeeper-container.ts)
"${podman[@]}" build --quiet -t "$name" -f "$run/zookeeper/Containerfile" "$run/zookeeper"
rm -rf "$run/zookeeper"

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

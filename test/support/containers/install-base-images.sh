#!/usr/bin/env bash
# Prints the folder of the images that the project's own ones and the tests' servers begin with, made here where no registry can be reached
# and under the very names that a registry has them by: a store of podman, to be read in addition to another one.
#   install-base-images.sh     builds them first when they are missing (as root on Debian or Ubuntu; needs Go; takes some minutes)
# They are kept in a cache outside the source tree, and built again when what they are made of changes.
set -euo pipefail
cd "$(dirname "$0")/../../.."

node=22.23.3
npm=10.9.9
mc=v0.0.0-20250313080218-cf909e1063a9
here=test/support/containers

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
node_image=$(sed -n 's/^ARG NODE_IMAGE=//p' infra/docker/Dockerfile)
minio_image=$(image_name test/support/servers/minio-container.ts)
zookeeper_image=$(image_name test/support/servers/zookeeper-container.ts)

cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodelease-test
key=$( (echo "$node_image $minio_image $zookeeper_image" && cat test/support/install/install-minio.sh $here/install-base-images.sh $here/podman-home.sh \
  $here/{node,minio,zookeeper}/*) | sha256sum | cut -c1-16)
folder=$cache/images-$key
if [ -d "$folder" ]; then
  echo "$folder"
  exit 0
fi

minio=$(sh test/support/install/install-minio.sh)
if ! command -v debootstrap >/dev/null; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo 'debootstrap is not installed, so that no base image can be made. Start Docker, or on Debian or Ubuntu: apt-get install debootstrap' >&2
    exit 1
  fi
  install() {
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends debootstrap >&2
  }
  # The list of packages may be old, or missing, as in most images of containers.
  install || { apt-get update >&2 && install; }
fi
echo "Building the base images once into $folder; this takes some minutes." >&2
# Built aside and moved into place in one step: an aborted build, or two at once, leave nothing half-made.
building=$(mktemp -d "$cache/building-XXXXXX")
home=$(mktemp -d /tmp/nodelease-images-XXXXXX)
finish() {
  # Podman leaves the last layer mounted where it was interrupted.
  umount "$building/store/overlay" 2>/dev/null || true
  rm -rf "$building" "$home"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
sh $here/podman-home.sh "$home" "$building/store"
export CONTAINERS_CONF=$home/containers.conf CONTAINERS_STORAGE_CONF=$home/storage.conf

# As the official image has it, without what is not read in a container.
root=$building/root
debootstrap --variant=minbase bookworm "$root" >&2
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,info,locale}/* "$root"/var/log/*.log "$root"/dev/*
tar -C "$root" -c . | podman import --quiet --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' --change 'CMD ["bash"]' - localhost/debian >&2

# The processor by the name that Node.js has for it.
arch=$(command -v node >/dev/null && node -p process.arch)
cp -r $here/{node,minio,zookeeper} "$building"
(
  cd "$building"
  npm pack --silent "node-linux-$arch@$node" "npm@$npm" >&2
  tar -xzf node-linux-*.tgz --strip-components=2 -C node package/bin/node
  mkdir node/npm
  tar -xzf npm-*.tgz --strip-components=1 -C node/npm
  chmod 755 node/node node/npm/bin/*.js
)
CGO_ENABLED=0 GOBIN=$building/minio go install -trimpath -ldflags='-s -w' "github.com/minio/mc@$mc" >&2
cp "$minio" "$building/minio/minio"
podman build --quiet -t "$node_image" "$building/node" >&2
podman build --quiet -t "$minio_image" "$building/minio" >&2
# With the network of this machine, so that its packages come from where this machine has them.
podman build --quiet --network host -t "$zookeeper_image" "$building/zookeeper" >&2
umount "$building/store/overlay" 2>/dev/null || true
mv -T "$building/store" "$folder"
echo "$folder"

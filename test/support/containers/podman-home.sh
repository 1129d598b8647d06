#!/bin/sh
# Makes podman's settings in a folder, so that everything of one run stays in places of its own:
#   podman-home.sh FOLDER GRAPH [IMAGES]
# FOLDER gets containers.conf and storage.conf, for CONTAINERS_CONF and CONTAINERS_STORAGE_CONF; podman allows its path some 40 characters.
# GRAPH is where images and containers are kept, and IMAGES the same of an earlier run, which is only read.
set -eu
folder=$1
graph=$2
images=${3:-}

# On top of another overlay, as within a container, the kernel refuses one.
driver=vfs
if grep -q '\boverlay$' /proc/filesystems && [ "$(stat -f -c %T "$(dirname "$graph")")" != overlayfs ]; then driver=overlay; fi

mkdir -p "$folder" "$graph"
# Podman's default limits are refused inside other containers, and so is systemd's cgroup manager. The subnet of the default network may
# already be somebody else's, and podman does not look; those of further networks are looked for.
cat >"$folder/containers.conf" <<CONF
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
tmp_dir = "$folder/tmp"
[network]
network_backend = "netavark"
network_config_dir = "$folder/networks"
default_subnet = "10.$((64 + $$ % 128)).$(($$ / 128 % 256)).0/24"
CONF
cat >"$folder/storage.conf" <<CONF
[storage]
driver = "$driver"
graphroot = "$graph"
runroot = "$folder/run"
[storage.options]
additionalimagestores = [${images:+\"$images\"}]
CONF

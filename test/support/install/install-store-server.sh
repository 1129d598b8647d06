#!/bin/sh
# Prints where a server is that tests keep leases on, or that the table of docs/design/protocol.md has: a jar, a program, or a folder of
# Python modules.
# It is kept in a cache outside the source tree, and got there first when it is missing.
#   install-store-server.sh s3mock | s3proxy                       needs Maven, and Java 17 or later to run
#   install-store-server.sh moto | gcp-storage-emulator            needs Python 3 with pip
#   install-store-server.sh gofakes3 | versitygw | fake-gcs-server needs Go
#   install-store-server.sh rclone                                 needs Go 1.26
#   install-store-server.sh s3s-fs                                 needs Rust with cargo; half an hour
#   install-store-server.sh s3rver | azurite | dynalite            needs npm
set -eu

server=${1:?usage: install-store-server.sh NAME}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodelease-test
case $server in
  s3mock) version=4.11.0 tool=mvn needs='Maven (Debian: apt-get install maven)' ;;
  s3proxy) version=2.6.0 tool=mvn needs='Maven (Debian: apt-get install maven)' ;;
  moto) version=5.2.5 tool=python3 needs='Python 3 with pip' ;;
  gofakes3) version=v1.2.0 tool=go needs='Go (1.24 or later)' ;;
  versitygw) version=v1.8.0 tool=go needs='Go (1.24 or later)' ;;
  rclone) version=v1.76.0 tool=go needs='Go (1.26 or later)' ;;
  s3s-fs) version=0.14.1 tool=cargo needs='Rust (cargo)' ;;
  s3rver) version=3.7.1 tool=npm needs='npm' ;;
  azurite) version=3.37.0 tool=npm needs='npm' ;;
  dynalite) version=4.0.0 tool=npm needs='npm' ;;
  fake-gcs-server) version=v1.56.1 tool=go needs='Go (1.24 or later)' ;;
  gcp-storage-emulator) version=2024.8.3 tool=python3 needs='Python 3 with pip' ;;
  *) echo "There is no server $server here." >&2 && exit 64 ;;
esac
folder=$cache/$server-$version

if [ ! -d "$folder" ]; then
  if ! command -v "$tool" >/dev/null; then
    echo "$needs is not installed, so $server cannot be." >&2
    exit 1
  fi
  echo "Installing $server $version into $folder." >&2
  mkdir -p "$cache"
  # Several tests may come at once.
  if command -v flock >/dev/null; then exec 9>"$cache/$server.lock" && flock 9; fi
fi
if [ ! -d "$folder" ]; then
  # Installed aside and moved into place in one step: an aborted install, or two at once, leave no half of it.
  installing=$(mktemp -d "$cache/installing-XXXXXX")
  trap 'rm -rf "$installing"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  maven() { mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy -Dartifact="$1" -DoutputDirectory="$installing" -Dmdep.stripVersion=true >&2; }
  case $server in
    s3mock) maven "com.adobe.testing:s3mock:$version:jar:exec" ;;
    s3proxy) maven "org.gaul:s3proxy:$version:jar:jar-with-dependencies" ;;
    moto) python3 -m pip install --quiet --target "$installing" "moto[server]==$version" >&2 ;;
    gofakes3) GOBIN=$installing go install "github.com/johannesboyne/gofakes3/cmd/gofakes3@$version" >&2 ;;
    versitygw) CGO_ENABLED=0 GOBIN=$installing go install "github.com/versity/versitygw/cmd/versitygw@$version" >&2 ;;
    rclone) CGO_ENABLED=0 GOBIN=$installing go install "github.com/rclone/rclone@$version" >&2 ;;
    s3s-fs) CARGO_TARGET_DIR=$installing/target cargo install --quiet --root "$installing" --version "$version" --features binary s3s-fs >&2 && rm -rf "$installing/target" ;;
    s3rver | azurite | dynalite) npm install --prefix "$installing" --no-audit --no-fund --no-save "$server@$version" >&2 ;;
    fake-gcs-server) CGO_ENABLED=0 GOBIN=$installing go install -trimpath -ldflags='-s -w' "github.com/fsouza/fake-gcs-server@$version" >&2 ;;
    gcp-storage-emulator) python3 -m pip install --quiet --target "$installing" "gcp-storage-emulator==$version" >&2 ;;
  esac
  [ -d "$folder" ] || mv -T "$installing" "$folder"
fi
case $server in
  s3mock) echo "$folder/s3mock-exec.jar" ;;
  s3proxy) echo "$folder/s3proxy-jar-with-dependencies.jar" ;;
  moto | gcp-storage-emulator) echo "$folder" ;;
  gofakes3 | versitygw | fake-gcs-server | rclone) echo "$folder/$server" ;;
  s3s-fs) echo "$folder/bin/$server" ;;
  s3rver) echo "$folder/node_modules/s3rver/bin/s3rver.js" ;;
  azurite) echo "$folder/node_modules/azurite/dist/src/azurite.js" ;;
  dynalite) echo "$folder/node_modules/dynalite/cli.js" ;;
esac

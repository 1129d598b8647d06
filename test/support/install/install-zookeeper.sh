#!/bin/sh
# Prints the class path of a local ZooKeeper, server and command line client: that of Debian's and Ubuntu's package.
#   install-zookeeper.sh          installs the package first when it is missing, with Java (as root)
#   install-zookeeper.sh --find   fails instead when something is missing
set -eu

jars=/usr/share/java

# The server names fewer parts of Netty in its own class path than it needs for TLS.
class_path="$jars/zookeeper.jar:$jars/slf4j-simple.jar:$jars/netty-codec.jar:$jars/netty-resolver.jar:$jars/netty-transport-native-unix-common.jar"

found() {
  command -v java >/dev/null && [ -e "$jars/zookeeper.jar" ] && [ -e "$jars/slf4j-simple.jar" ]
}

if ! found; then
  [ "${1:-}" != --find ] || exit 1
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "ZooKeeper is not installed. Debian or Ubuntu: apt-get install zookeeper" >&2
    exit 1
  fi
  echo 'Installing zookeeper with apt-get.' >&2
  . "$(dirname "$0")/apt.sh"
  apt_install zookeeper
  found || {
    echo 'The package zookeeper is not what was expected: no java, or no jars in /usr/share/java.' >&2
    exit 1
  }
fi
echo "$class_path"

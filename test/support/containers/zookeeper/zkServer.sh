#!/bin/sh
# zkServer.sh status: exits with 0 while the server serves.
case $(java -Xmx32m -XX:TieredStopAtLevel=1 -cp '/usr/share/java/*' org.apache.zookeeper.client.FourLetterWordMain localhost 2181 srvr 2>/dev/null) in
  *Mode:*) exit 0 ;;
  *) exit 1 ;;
esac

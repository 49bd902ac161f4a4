#!/usr/bin/env bash
# A real Apache Pinot (ZooKeeper, controller, broker, server, minion) on loopback, to measure against.
#   pinot.sh fetch LIB        fetch the jars of pom.xml into LIB, once (about 200 MB; needs mvn)
#   pinot.sh start LIB DIR    start it with its data in DIR, return when it answers
#   pinot.sh stop DIR [ROLE]  stop exactly the processes that start wrote down, or one of them
#   pinot.sh server LIB DIR   start the server anew, over the data in DIR, and return at once
# Ports: PINOT_ZK, PINOT_CONTROLLER, PINOT_BROKER, PINOT_SERVER, PINOT_ADMIN, PINOT_MINION.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
zk=${PINOT_ZK:-2191} controller=${PINOT_CONTROLLER:-9100} broker=${PINOT_BROKER:-8199}
server=${PINOT_SERVER:-8198} admin=${PINOT_ADMIN:-8197} minion=${PINOT_MINION:-9614}
opens=()
for package in java.nio sun.nio.ch java.lang java.util java.lang.reflect java.net jdk.internal.ref sun.security.action; do
  opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
done

role() { # role NAME HEAP ARGUMENT...: one process in a session of its own; it writes logs where it stands
  local name=$1 heap=$2
  shift 2
  cd "$dir"
  setsid java "$heap" "${opens[@]}" --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED -Dplugins.dir="$dir/plugins" \
    -cp "$lib/*" org.apache.pinot.tools.admin.PinotAdministrator "$@" >"$dir/log/$name.log" 2>&1 </dev/null &
  echo $! >"$dir/pids/$name"
}

start_server() {
  role server -Xmx4g StartServer -zkAddress "127.0.0.1:$zk" -clusterName benchmark -configFileName "$dir/server.conf"
}

wait_for() { # wait_for URL
  for _ in $(seq 90); do
    curl -fs "$1" >/dev/null 2>&1 && return 0
    sleep 1
  done
  echo "no answer: $1" >&2
  return 1
}

case "${1:-}" in
fetch)
  mkdir -p "$2.part"
  mvn -B -q -f "$here/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
    -DoutputDirectory="$(cd "$2.part" && pwd)" -DincludeScope=runtime
  [ ! -d "$2" ] || rmdir "$2" # an empty one would take the jars in a folder of its own
  mv "$2.part" "$2"
  ;;
start)
  lib=$(cd "$2" && pwd)
  mkdir -p "$3"
  dir=$(cd "$3" && pwd)
  mkdir -p "$dir"/{log,pids,plugins}
  cat >"$dir/controller.conf" <<CONF
pinot.service.role=CONTROLLER
pinot.cluster.name=benchmark
controller.port=$controller
controller.host=127.0.0.1
controller.zk.str=127.0.0.1:$zk
controller.data.dir=$dir/controller
controller.helix.cluster.name=benchmark
controller.task.scheduler.enabled=true
CONF
  cat >"$dir/server.conf" <<CONF
pinot.cluster.name=benchmark
pinot.zk.server=127.0.0.1:$zk
pinot.server.netty.host=127.0.0.1
pinot.server.netty.port=$server
pinot.server.adminapi.port=$admin
pinot.server.grpc.enable=false
pinot.server.instance.dataDir=$dir/server
pinot.server.instance.segmentTarDir=$dir/segments
CONF
  role zk -Xmx256m StartZookeeper -zkPort "$zk" -dataDir "$dir/zk"
  sleep 6
  role controller -Xmx512m StartController -configFileName "$dir/controller.conf"
  wait_for "http://127.0.0.1:$controller/health"
  role broker -Xmx1g StartBroker -zkAddress "127.0.0.1:$zk" -clusterName benchmark -brokerHost 127.0.0.1 -brokerPort "$broker"
  start_server
  role minion -Xmx1g StartMinion -zkAddress "127.0.0.1:$zk" -clusterName benchmark -minionHost 127.0.0.1 -minionPort "$minion"
  wait_for "http://127.0.0.1:$broker/health"
  wait_for "http://127.0.0.1:$admin/health"
  sleep 8
  ;;
server)
  lib=$(cd "$2" && pwd)
  dir=$(cd "$3" && pwd)
  start_server
  ;;
stop)
  dir=$2
  for name in ${3:-minion server broker controller zk}; do # ZooKeeper last: the others hang without it
    [ -f "$dir/pids/$name" ] || continue
    pid=$(cat "$dir/pids/$name")
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 20); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.5
    done
    kill -9 "$pid" 2>/dev/null || true
    rm -f "$dir/pids/$name"
  done
  ;;
*)
  echo "usage: pinot.sh fetch LIB | start LIB DIR | server LIB DIR | stop DIR [ROLE]" >&2
  exit 2
  ;;
esac

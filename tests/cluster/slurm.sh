#!/usr/bin/env bash
# A real Slurm on this one machine, for the tests:  slurm.sh install | start [accounting] | node NAME | stop | status
#
# Two pretend nodes (n1, n2: two slurmd on this host) of 16 CPUs and 2 pretend GPUs each; jobs go to n2 first.
# Where the host permits, they have a network of their own, in which there is this machine alone: no job reaches what
# listens at 127.0.0.1, or anything beyond. Partition `low` is preempted by partition `high`. There is no accounting
# database, nothing here may need sacct; with `accounting` there is one, and the QOS `few` lets a user have two jobs in
# the queue, `one` a single one. `node` starts one that was lost.
# Needs root and Debian or Ubuntu.
# State, logs and pid files live in $REPRISE_SLURM_DIR (default /var/tmp/reprise-slurm); daemons are only ever stopped
# through the pid files they wrote.
set -euo pipefail
unset SLURM_CONF

ACCOUNTING=${2:-}
DIR=${REPRISE_SLURM_DIR:-/var/tmp/reprise-slurm}
NODES=(n1 n2)
MARK='# reprise-slurm'
NETWORK=reprise-nodes # a network namespace
LINK=(reprise-host reprise-node)

fail() { echo "slurm.sh: $*" >&2; exit 1; }

# Runs "$@" until it succeeds, for at most $1 seconds.
wait_for() {
  local deadline=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do
    (( SECONDS < deadline )) || return 1
    sleep 0.1
  done
}

# The pid in file $1, if that process still runs the program $2 (a zombie does not: PID 1 of a container may never reap it).
running() {
  local pid
  pid=$(cat "$1" 2>/dev/null) && [[ -n $pid ]] || return 1
  [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "$2"* ]] || return 1
  [[ $(sed 's/.*) //' "/proc/$pid/stat") != Z* ]] && echo "$pid"
}

stopped() { ! running "$@" >/dev/null; }

stop_daemon() { # NAME PIDFILE
  local pid
  pid=$(running "$2" "$1") || return 0
  kill "$pid"
  wait_for 20 stopped "$2" "$1" || kill -KILL "$pid"
  rm -f "$2"
}

install_packages() {
  command -v slurmctld >/dev/null && command -v munged >/dev/null && command -v slurmdbd >/dev/null &&
    command -v mariadbd >/dev/null && command -v ip >/dev/null && return
  # The packages' scripts would start daemons of their own.
  if [[ ! -e /usr/sbin/policy-rc.d ]]; then
    printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends slurm-wlm munge slurmdbd mariadb-server iproute2 >/dev/null
}

# A machine that belongs to a cluster is not ours to configure.
refuse_foreign_cluster() {
  [[ ! -e /etc/slurm/slurm.conf ]] || grep -q '^ClusterName=reprise$' /etc/slurm/slurm.conf ||
    fail '/etc/slurm/slurm.conf is that of another cluster'
}

write_configuration() {
  local host tracking=linuxproc binding=none device
  host=$(hostname -s)
  mkdir -p /etc/slurm "$DIR"/{state,log,run,gpu,spool/n1,spool/n2}
  # Where the old freezer hierarchy is writable no process escapes scancel; elsewhere parent links must do.
  rm -f /etc/slurm/cgroup.conf
  if [[ -w /sys/fs/cgroup/freezer/release_agent && ${REPRISE_SLURM_CGROUP:-1} == 1 ]]; then
    tracking=cgroup
    echo 'CgroupAutomount=yes' > /etc/slurm/cgroup.conf
  fi
  # Where processes may be bound to cores at all, tasks are, to as many as their step asked for.
  if taskset --cpu-list 0 true 2>/dev/null; then binding=affinity; fi
  for device in 0 1; do # GRES wants a device file: twins of /dev/null
    [[ -c $DIR/gpu/$device ]] || mknod -m 666 "$DIR/gpu/$device" c 1 3
  done
  printf 'AutoDetect=off\nName=gpu File=%s/gpu/[0-1]\n' "$DIR" > /etc/slurm/gres.conf
  cat > /etc/slurm/slurm.conf <<CONF
ClusterName=reprise
SlurmctldHost=$host($CONTROLLER)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# Also the time a requeued job waits before it starts again (120 s by default; the least is 5).
AuthInfo=cred_expire=5
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool/%n
SlurmctldPidFile=$DIR/run/slurmctld.pid
SlurmdPidFile=$DIR/run/slurmd.%n.pid
SlurmctldLogFile=$DIR/log/slurmctld.log
SlurmdLogFile=$DIR/log/slurmd.%n.log
ProctrackType=proctrack/$tracking
TaskPlugin=task/$binding
MpiDefault=none
ReturnToService=2
# A silent node is given up after this many seconds (300 by default).
SlurmdTimeout=12
KillWait=5
UnkillableStepTimeout=300
MinJobAge=300
JobRequeue=1
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_interval=1
# Resources are declared, not detected.
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
NodeName=DEFAULT CPUs=16 RealMemory=32000 Gres=gpu:2
NodeName=n1 NodeHostname=$host NodeAddr=$NODE Port=17001 Weight=2
NodeName=n2 NodeHostname=$host NodeAddr=$NODE Port=17002 Weight=1
PartitionName=low Nodes=ALL Default=YES DefaultTime=60 MaxTime=INFINITE PriorityTier=1 PreemptMode=REQUEUE GraceTime=20
PartitionName=high Nodes=ALL DefaultTime=60 MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF
CONF
}

# The database's own, on a port of its own, away from any other on this machine.
add_accounting() {
  sed -i '/^AccountingStorageType/d' /etc/slurm/slurm.conf
  cat >> /etc/slurm/slurm.conf <<CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$CONTROLLER
AccountingStorageEnforce=limits,qos
CONF
  install -m 600 /dev/null /etc/slurm/slurmdbd.conf # slurmdbd refuses anything wider
  cat > /etc/slurm/slurmdbd.conf <<CONF
AuthType=auth/munge
DbdHost=localhost
DbdAddr=$CONTROLLER
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=33306
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
LogFile=$DIR/log/slurmdbd.log
PidFile=$DIR/run/slurmdbd.pid
CONF
}

sql() { "$1" --no-defaults --socket="$DIR/run/mysql/socket" "${@:2}"; }

start_database() {
  install -d -o mysql -g mysql "$DIR/mysql" "$DIR/run/mysql"
  [[ -d $DIR/mysql/mysql ]] || mariadb-install-db --no-defaults --user=mysql --datadir="$DIR/mysql" --skip-test-db \
    --auth-root-authentication-method=socket >"$DIR/log/mariadb-install.log" 2>&1
  setsid runuser -u mysql -- mariadbd --no-defaults --datadir="$DIR/mysql" --bind-address=127.0.0.1 --port=33306 \
    --socket="$DIR/run/mysql/socket" --pid-file="$DIR/run/mysql/pid" --innodb-buffer-pool-size=64M \
    --innodb-lock-wait-timeout=900 --innodb-flush-log-at-trx-commit=0 >"$DIR/log/mariadbd.log" 2>&1 </dev/null &
  wait_for 30 sql mariadb-admin ping || fail "MariaDB does not answer, see $DIR/log/mariadbd.log"
  sql mariadb --execute="CREATE DATABASE IF NOT EXISTS slurm_acct_db;
    CREATE USER IF NOT EXISTS slurm@'127.0.0.1' IDENTIFIED BY 'slurm';
    CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED BY 'slurm';
    GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1'; GRANT ALL ON slurm_acct_db.* TO slurm@localhost;"
  slurmdbd
  wait_for 60 sacctmgr --noheader --immediate show cluster || fail "slurmdbd does not answer, see $DIR/log/slurmdbd.log"
  sacctmgr --immediate --quiet add cluster reprise >/dev/null 2>&1 || true # there from an earlier life
  sacctmgr --immediate --quiet add qos few,one >/dev/null 2>&1 || true
  sacctmgr --immediate --quiet modify qos few set MaxSubmitJobsPerUser=2 >/dev/null
  sacctmgr --immediate --quiet modify qos one set MaxSubmitJobsPerUser=1 >/dev/null
  sacctmgr --immediate --quiet modify user root set qos=normal,few,one >/dev/null
}

isolated() { ip -n "$NETWORK" link show "${LINK[1]}" up 2>/dev/null | grep -q .; }

# Prints why not, where it can't be done: then the nodes share this machine's network.
isolate_nodes() {
  isolated && return
  join_networks # what a machine that went down left of it
  ip netns add "$NETWORK" || return
  ip link add "${LINK[0]}" type veth peer name "${LINK[1]}" netns "$NETWORK" &&
    ip address add 10.213.77.1/30 dev "${LINK[0]}" && ip link set "${LINK[0]}" up &&
    ip -n "$NETWORK" address add 10.213.77.2/30 dev "${LINK[1]}" && ip -n "$NETWORK" link set "${LINK[1]}" up &&
    ip -n "$NETWORK" link set lo up && return
  join_networks
  return 1
}

join_networks() {
  ip link delete "${LINK[0]}" 2>/dev/null || true
  ip netns delete "$NETWORK" 2>/dev/null || true
}

# torch.distributed connects to the first node by name.
name_nodes() {
  grep -q "$MARK\$" /etc/hosts || echo "127.0.0.1 ${NODES[*]} $MARK" >> /etc/hosts
}

forget_nodes() {
  grep -v "$MARK\$" /etc/hosts > "$DIR/hosts" || true
  cat "$DIR/hosts" > /etc/hosts # a bind mount in a container: it can't be replaced by a rename
}

start_munge() {
  munge -n </dev/null >/dev/null 2>&1 && return
  install -d -o munge -g munge -m 0755 /run/munge
  install -d -o munge -g munge -m 0700 /etc/munge /var/lib/munge /var/log/munge
  [[ -s /etc/munge/munge.key ]] || runuser -u munge -- mungekey --create
  runuser -u munge -- munged
  wait_for 10 munge -n || fail 'munged does not answer, see /var/log/munge'
  cp /run/munge/munged.pid "$DIR/run/munged.pid" # so that only a munged of ours is stopped
}

all_idle() { [[ $(sinfo --noheader --Node --partition=low --format=%t | grep -cx idle) == "${#NODES[@]}" ]]; }

explain() {
  sinfo --Node --format='%N %t %E'
  squeue
  tail -n 20 "$DIR"/log/slurm*.log
}

start() {
  running "$DIR/run/slurmctld.pid" slurmctld >/dev/null && { status; return; }
  refuse_foreign_cluster
  isolate_nodes || echo 'slurm.sh: the nodes share the network of this machine' >&2
  CONTROLLER=127.0.0.1 NODE=127.0.0.1
  if isolated; then CONTROLLER=10.213.77.1 NODE=10.213.77.2; fi
  write_configuration
  name_nodes
  start_munge
  rm -rf "$DIR"/state/* "$DIR"/spool/*/* # jobs that a crashed controller left behind would hold the nodes
  if [[ $ACCOUNTING == accounting ]]; then add_accounting; start_database; fi
  slurmctld
  wait_for 20 scontrol ping || fail "slurmctld does not answer, see $DIR/log/slurmctld.log"
  for node in "${NODES[@]}"; do start_node "$node"; done
  wait_for 120 all_idle || { explain >&2; fail "nodes are not idle, see $DIR/log"; }
  status
}

start_node() { # NAME
  if isolated; then nsenter --net="/run/netns/$NETWORK" slurmd -N "$1"; else slurmd -N "$1"; fi
}

no_jobs() { [[ -z $(squeue --noheader) ]]; }

stop() {
  if running "$DIR/run/slurmctld.pid" slurmctld >/dev/null; then
    squeue --noheader --format=%A | xargs -r scancel --quiet --full --signal=KILL || true
    squeue --noheader --format=%A | xargs -r scancel --quiet || true
    wait_for 20 no_jobs || echo 'slurm.sh: some jobs do not end' >&2
  fi
  for node in "${NODES[@]}"; do stop_daemon slurmd "$DIR/run/slurmd.$node.pid"; done
  stop_daemon slurmctld "$DIR/run/slurmctld.pid"
  stop_daemon slurmdbd "$DIR/run/slurmdbd.pid"
  stop_daemon mariadbd "$DIR/run/mysql/pid"
  stop_daemon munged "$DIR/run/munged.pid"
  forget_nodes
  join_networks
}

status() {
  running "$DIR/run/slurmctld.pid" slurmctld >/dev/null || fail 'not running'
  sinfo --Node --format='%N %P %t %C %G'
}

[[ $(id -u) == 0 ]] || fail 'needs root'
case ${1:-} in
  install) install_packages ;;
  start) start ;;
  node) start_node "$2" ;;
  stop) stop ;;
  status) status ;;
  *) fail 'say install, start, start accounting, node NAME, stop or status' ;;
esac

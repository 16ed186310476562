# A Slurm of three nodes on this machine: munged, slurmctld and three slurmds of Debian's packages, as
# root, in namespaces of the process that sources this file. They end with that process, whatever
# happens; their network is their own, their files are in `shared`. `here` is the folder of this file.
# shellcheck shell=bash disable=SC2154

# What stands in the way; "" when nothing does.
why_no_slurm() {
  local tool missing=()
  [[ $(id -u) == 0 ]] || { echo "this needs root"; return; }
  for tool in slurmctld slurmd slurmstepd munged srun salloc sbatch scontrol; do
    find_tool "$tool" >/dev/null || missing+=("$tool")
  done
  if ((${#missing[@]} > 0)); then
    echo "${missing[*]} not found (apt-get install slurmctld slurmd slurm-client munge)"
    return
  fi
  for tool in unshare ip mpirun; do
    command -v "$tool" >/dev/null || { echo "$tool was not found"; return; }
  done
  [[ -n $(plugin_folder) ]] || { echo "Slurm's plug-in mpi_pmix was not found (slurm-wlm-basic-plugins, libpmix2)"; return; }
  unshare --net --mount --pid --uts --ipc --fork bash -c 'ip link add one type bridge && ip link add two type veth peer name three' 2>/dev/null ||
    echo "the kernel allows no namespaces, or no bridges in them"
}

find_tool() { PATH=$PATH:/usr/sbin:/sbin command -v "$1"; }

plugin_folder() {
  local folder
  for folder in /usr/lib/*/slurm-wlm /usr/lib/*/slurm /usr/lib64/slurm; do
    if [[ -e $folder/mpi_pmix.so ]]; then echo "$folder"; return; fi
  done
}

# Each daemon finds the settings below in SLURM_CONF, and so does whoever talks to them.
write_settings() {
  cat >"$shared/etc/slurm.conf" <<TEXT
ClusterName=catena
SlurmctldHost=login(10.78.0.100)
SlurmctldPort=17000
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$shared/run/munge.socket
CredType=cred/munge
MpiDefault=none
PluginDir=$(plugin_folder)
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation=$shared/state
SlurmdSpoolDir=$shared/spool.%n
# The pmix plug-in of each node keeps files here.
TmpFS=$shared/tmp.%n
SlurmctldLogFile=$shared/log/slurmctld.log
SlurmdLogFile=$shared/log/slurmd.%n.log
SlurmctldPidFile=$shared/run/slurmctld.pid
SlurmdPidFile=$shared/run/slurmd.%n.pid
# More processors than there are, and as many GPUs as we like.
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
# Jobs begin at once.
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1
MinJobAge=300
GresTypes=gpu
NodeName=n[1-3] NodeHostname=login NodeAddr=10.78.0.[1-3] Port=17001-17003 CPUs=4 RealMemory=1000 Gres=gpu:h200:2
PartitionName=main Nodes=n[1-3] Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES PriorityTier=1 GraceTime=15
# Its jobs take the nodes from those of main.
PartitionName=urgent Nodes=n[1-3] MaxTime=INFINITE State=UP PriorityTier=10
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
TEXT
  echo "NodeName=n[1-3] Name=gpu Type=h200 File=$shared/run/nvidia[0-1]" >"$shared/etc/gres.conf"
  echo CgroupAutomount=no >"$shared/etc/cgroup.conf"
}

# A node has its own name, network, /dev/shm and System V memory. Open MPI would otherwise take the ranks
# of two nodes for ranks of one machine, or one for another. The name of the third one has a domain. The
# daemons must be started by names that end in slurmctld and slurmd, else Slurm drops the GPUs.
be_node() {
  local name=$1 shared=$2 host=$1
  if [[ $name == n3 ]]; then host=n3.cluster.test; fi
  hostname "$host"
  mount -t tmpfs -o size=128m tmpfs /dev/shm
  touch "$shared/run/$name.there"
  until ip link show eth0 >/dev/null 2>&1; do sleep 0.02; done
  ip link set lo up
  ip addr add "10.78.0.${name#n}/24" dev eth0
  ip link set eth0 up
  exec "$shared/sbin/slurmd" -D -N "$name" -d "$shared/sbin/slurmstepd"
}
start_node() {
  local name=$1
  unshare --net --mount --uts --ipc --propagation private bash "$here/slurm_test" --node "$name" "$shared" \
    </dev/null >"$shared/log/$name.out" 2>&1 &
  echo $! >"$shared/run/$name"
  disown  # nobody is to be told when it is killed
  until [[ -e $shared/run/$name.there ]]; do sleep 0.02; done
  ip link add "$name" type veth peer name eth0 netns "$(node_pid "$name")"
  ip link set "$name" master cluster0
  ip link set "$name" up
}
node_pid() { cat "$shared/run/$1"; }
on_node() {
  local name=$1
  shift
  nsenter -t "$(node_pid "$name")" -m -u -i "$@"
}

# The network between the nodes and this machine, in which nobody else is.
make_network() {
  ip link set lo up
  ip link add cluster0 type bridge
  ip addr add 10.78.0.100/24 dev cluster0
  ip link set cluster0 up
  printf '127.0.0.1 localhost\n10.78.0.100 login\n10.78.0.1 n1\n10.78.0.2 n2\n10.78.0.3 n3.cluster.test n3\n' >"$shared/hosts"
  mount --bind "$shared/hosts" /etc/hosts
}

make_cluster() {
  local daemon number
  hostname login
  mkdir -p "$shared"/{etc,state,run,log,sbin,spool.n1,spool.n2,spool.n3,tmp.n1,tmp.n2,tmp.n3}
  chmod 755 "$shared" "$shared/run"
  chmod 1777 "$shared"/tmp.n?
  for daemon in slurmctld slurmd slurmstepd; do ln -sf "$(realpath "$(find_tool $daemon)")" "$shared/sbin/$daemon"; done
  for number in 0 1; do mknod "$shared/run/nvidia$number" c 195 $number; done
  dd if=/dev/urandom of="$shared/run/munge.key" bs=1024 count=1 2>/dev/null
  chmod 400 "$shared/run/munge.key"
  make_network
  write_settings
  export SLURM_CONF=$shared/etc/slurm.conf
  "$(find_tool munged)" --force --key-file="$shared/run/munge.key" --socket="$shared/run/munge.socket" \
    --pid-file="$shared/run/munged.pid" --log-file="$shared/log/munged.log" --seed-file="$shared/run/munge.seed" \
    >"$shared/log/munged.out" 2>&1 || { echo "munged did not start"; cat "$shared/log/munged.out"; return 1; }
  "$shared/sbin/slurmctld" -D -c </dev/null >"$shared/log/slurmctld.out" 2>&1 &
  for number in 1 2 3; do start_node n$number; done
  for _ in {1..200}; do
    if [[ $(sinfo --noheader --states=idle --format=%D 2>/dev/null) == 3 ]]; then return; fi
    sleep 0.1
  done
  echo "the cluster did not start"
  sinfo
  tail -n 20 "$shared"/log/*
  return 1
}

# Processes of jobs, wherever they run.
job_processes() {
  local folder words
  for folder in /proc/[0-9]*; do
    words=$( { tr '\0' ' ' <"$folder/cmdline"; } 2>/dev/null) || continue
    case $words in
      *--rank-process* | "$program"* | "$resumable"* | slurmstepd:* | *sbin/slurmstepd* | srun\ * | */srun\ * | orted* | sleep\ 60*)
        [[ $words == *"sbin/slurmd "* ]] || echo "${folder#/proc/} $words" ;;
    esac
  done
}

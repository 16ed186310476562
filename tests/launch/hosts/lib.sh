# Two pretended hosts, nodea and nodeb, made of namespaces: each has its own network, name, process
# numbers, /dev/shm, /tmp and ssh daemon; a cable (a pair of virtual interfaces) joins them. All of
# it lives inside the namespaces of the process that sources this file and goes with that process.
# `here` is the folder of this file, `shared` one that the hosts share.
# shellcheck shell=bash disable=SC2154

find_sshd() {
  local path
  for path in "${CATENA_TEST_SSHD:-}" "$(command -v sshd)" /usr/sbin/sshd /usr/local/sbin/sshd; do
    if [[ -x $path ]]; then echo "$path"; return; fi
  done
}

# What stands in the way of making hosts; "" when nothing does.
why_no_hosts() {
  local tool
  [[ $(id -u) == 0 ]] || { echo "this needs root"; return; }
  for tool in ip unshare nsenter ssh-keygen mpirun; do
    command -v "$tool" >/dev/null || { echo "$tool was not found"; return; }
  done
  [[ -n $(find_sshd) ]] || { echo "sshd was not found (apt-get install openssh-server)"; return; }
  unshare --net --mount --pid --uts --ipc --fork true 2>/dev/null || echo "the kernel allows no namespaces here"
}

# The first process of a host, in its new namespaces; sets the host up and stays.
be_host() {
  local name=$1 address=$2 shared=$3 folder
  hostname "$name"
  ip link set lo up
  mount -t tmpfs -o size=256m tmpfs /dev/shm
  mount -t tmpfs tmpfs /run
  mkdir -p /run/sshd /run/home/.ssh /run/tmp
  chmod 700 /run/home/.ssh
  { echo 'root:x:0:0:root:/run/home:/bin/bash'; echo 'sshd:x:999:65534::/run/sshd:/usr/sbin/nologin'; } >/run/passwd
  mount --bind /run/passwd /etc/passwd
  printf '127.0.0.1 localhost\n10.77.0.1 nodea\n10.77.0.2 nodeb\n10.77.0.2 far.cluster.test\n' >/run/hosts
  mount --bind /run/hosts /etc/hosts
  cp "$shared/id" /run/home/.ssh/id_ed25519
  chmod 600 /run/home/.ssh/id_ed25519
  cp "$shared/id.pub" /run/home/.ssh/authorized_keys
  printf 'Host *\n%s\n' "StrictHostKeyChecking no
UserKnownHostsFile /dev/null
IdentityFile /run/home/.ssh/id_ed25519
LogLevel ERROR" >/run/home/.ssh/config
  cp "$shared/id" /run/hostkey
  chmod 600 /run/hostkey
  printf '%s\n' "ListenAddress $address" 'HostKey /run/hostkey' 'PidFile /run/sshd.pid' 'UsePAM no' \
    'PermitRootLogin yes' 'AuthorizedKeysFile /run/home/.ssh/authorized_keys' 'StrictModes no' \
    "SetEnv PATH=$PATH TMPDIR=/run/tmp" 'MaxStartups 100' >/run/sshd_config
  touch "$shared/$name.ready"
  folder=$shared/end
  while [[ ! -e $folder ]]; do sleep 0.2; done
}

# Runs a command on a host.
on() {
  local name=$1
  shift
  nsenter -t "$(<"$shared/$name.pid")" -m -u -i -n -p \
    env -C /run/home HOME=/run/home TMPDIR=/run/tmp OMP_WAIT_POLICY=passive "$@"
}

start_sshd() { on "$1" "$(find_sshd)" -f /run/sshd_config -E /run/sshd.log; }

make_host() {
  local name=$1 address=$2 outer
  unshare --net --mount --uts --ipc --pid --fork --kill-child --mount-proc --propagation private \
    bash "$here/hosts_test" --host "$name" "$address" "$shared" </dev/null >"$shared/$name.out" 2>&1 &
  outer=$!
  for _ in {1..200}; do
    if [[ -e $shared/$name.ready ]]; then break; fi
    sleep 0.02
  done
  [[ -e $shared/$name.ready ]] || { cat "$shared/$name.out"; return 1; }
  tr -d ' ' <"/proc/$outer/task/$outer/children" >"$shared/$name.pid"
}

make_hosts() {
  ssh-keygen -q -t ed25519 -N '' -f "$shared/id"
  make_host nodea 10.77.0.1 && make_host nodeb 10.77.0.2 || return 1
  ip link add cable0 type veth peer name cable1
  ip link set cable0 netns "$(<"$shared/nodea.pid")" name eth0
  ip link set cable1 netns "$(<"$shared/nodeb.pid")" name eth0
  on nodea ip addr add 10.77.0.1/24 dev eth0
  on nodeb ip addr add 10.77.0.2/24 dev eth0
  on nodea ip link set eth0 up
  on nodeb ip link set eth0 up
  start_sshd nodea
  if [[ ${1:-} != no-sshd ]]; then start_sshd nodeb; fi
}

# The processes of jobs on a host: all but its first one, its ssh daemon and what watches it.
job_processes() {
  # shellcheck disable=SC2016
  on "$1" bash -c 'me=$$; for p in /proc/[0-9]*; do
    pid=${p#/proc/}; [[ $pid == 1 || $pid == "$me" ]] && continue
    words=$( { tr "\0" " " <"$p/cmdline"; } 2>/dev/null) || continue
    case $words in "" | sleep\ 0.2* | *sshd_config* | *"[listener]"*) continue ;; esac
    echo "$pid $words"; done'
}

#!/usr/bin/env bash
# Proves the README's two commands on a fresh Debian 12: makes one with debootstrap, holding git, make and
# ca-certificates only, clones the committed state of this repository into it, and runs `make demo`, `make demo` again
# and `make test` in a chroot, with the time of each, the peak of the memory of its processes and the disk it filled.
# Needs root, debootstrap and about 8 GB below DIRECTORY.
#
#   scripts/prove_fresh_machine.sh [--copy-host-network-config] [--keep] [--only TARGET,...] [DIRECTORY]
#
#   --copy-host-network-config  take over how this machine reaches package mirrors: resolver, hosts file, apt sources,
#                               proxies and keys, certificates, pip's configuration and the environment's proxy and
#                               certificate variables. For machines behind a mirror or a proxy.
#   --only TARGET,...           make targets to run, comma-separated (default demo,demo,test)
#   --keep                      leave the system in DIRECTORY, and start from it if it is there
#   DIRECTORY                   default: a new one below $TMPDIR
#
# Exit code: that of the first command that failed.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
copy_network=no keep=no targets=demo,demo,test directory=""
while (($#)); do
  case $1 in
    --copy-host-network-config) copy_network=yes ;;
    --keep) keep=yes ;;
    --only) targets=${2:?--only needs make targets}; shift ;;
    -*) sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 2 ;;
    *) directory=$1 ;;
  esac
  shift
done
[[ $(id -u) == 0 ]] || { echo "error: debootstrap and chroot need root" >&2; exit 3; }
command -v debootstrap >/dev/null || { echo "error: no debootstrap: apt-get install debootstrap" >&2; exit 3; }
directory=${directory:-$(mktemp -d "${TMPDIR:-/tmp}/fresh-debian.XXXXXX")}
directory=$(realpath -m "$directory")
root=$directory/root

mounted=()
clean_up() {
  local i
  for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do umount "${mounted[i]}" || true; done
  if [[ $keep == no ]]; then rm -rf --one-file-system "$directory"; fi
}
trap clean_up EXIT

mount_into() {  # TYPE SOURCE FOLDER
  mount -t "$1" "$2" "$root/$3"
  mounted+=("$root/$3")
}

debian_mirror() {  # the one this machine uses, if it names one
  if [[ $copy_network == yes ]]; then
    { sed -n 's/^URIs: *\([^ ]*\/debian\) *$/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null
      sed -n 's/^deb \(\[[^]]*\] \)\?\([^ ]*\/debian\/\?\) .*/\2/p' /etc/apt/sources.list 2>/dev/null; } | head -n 1
  fi
}

timed() {  # WORDS COMMAND...
  local TIMEFORMAT="== $1: %R s; processor time %U s, and %S s in the kernel"
  echo "== $1"
  shift
  time "$@"
}

gigabytes() { awk -v kibibytes="$1" 'BEGIN { printf "%.2f GB", kibibytes * 1024 / 1e9 }'; }

disk_use() { gigabytes "$(du -skx "$1" | cut -f1)"; }  # FOLDER

memory_of_system() {  # KiB that the processes in the chroot hold, shared pages counted once
  find /proc -maxdepth 2 -path '/proc/[0-9]*/root' -lname "$root" 2>/dev/null | sed 's/root$/smaps_rollup/' |
    xargs -r cat 2>/dev/null | awk '/^Pss:/ { sum += $2 } END { print sum + 0 }'
}

watch_memory() {  # FILE: holds the peak so far
  local peak=0 current
  while sleep 0.5; do
    current=$(memory_of_system) || true
    if ((current > peak)); then peak=$current; echo "$peak" >"$1"; fi
  done
}

measured() {  # WORDS COMMAND...: timed, and the peak of the memory
  local peak_file=$directory/memory-peak watcher code=0
  echo 0 >"$peak_file"
  watch_memory "$peak_file" &
  watcher=$!
  timed "$@" || code=$?
  kill "$watcher"
  wait "$watcher" 2>/dev/null || true
  echo "== $1: peak of memory $(gigabytes "$(<"$peak_file")"), clone $(disk_use "$root/root/replayeval"), \
all of the system $(disk_use "$root")"
  return "$code"
}

make_system() {
  mkdir -p "$directory"
  debootstrap --variant=minbase --include=git,make,ca-certificates bookworm "$root" "$(debian_mirror)" \
    >"$directory/debootstrap.log" 2>&1 || { tail -n 5 "$directory/debootstrap.log" >&2; return 1; }
}

copy_network_config() {
  local path
  for path in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d \
    /etc/apt/trusted.gpg.d /etc/apt/auth.conf.d /usr/share/keyrings /etc/ssl/certs /usr/local/share/ca-certificates \
    /root/.config/pip /root/.pip; do
    if [[ -e $path ]]; then
      mkdir -p "$root$(dirname "$path")"
      cp -aL --remove-destination "$path" "$root$(dirname "$path")/" 2>/dev/null || cp -a "$path" "$root$(dirname "$path")/"
    fi
  done
  # Hooks of other programs would look for those programs.
  rm -f "$root"/etc/apt/apt.conf.d/*packagekit* "$root"/etc/apt/apt.conf.d/*appstream* "$root"/etc/apt/apt.conf.d/*debconf*
}

inside() {  # COMMAND: in the chroot, with a login's environment and no more
  local environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
    "TERM=${TERM:-dumb}") name
  if [[ $copy_network == yes ]]; then
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR PIP_CERT \
      PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_DEFAULT_TIMEOUT REQUESTS_CA_BUNDLE CURL_CA_BUNDLE; do
      if [[ -n ${!name:-} ]]; then environment+=("$name=${!name}"); fi
    done
  fi
  chroot "$root" /usr/bin/env -i "${environment[@]}" /bin/bash -c "$1" </dev/null
}

if [[ ! -x $root/usr/bin/git ]]; then timed "debootstrap" make_system; fi
mount_into proc proc proc
mkdir -p "$root/dev/shm"  # debootstrap made the few device nodes that are needed
mount_into tmpfs tmpfs dev/shm
if [[ $copy_network == yes ]]; then copy_network_config; fi

# A bare copy of the committed state is what there is to clone, as on a server.
rm -rf "$root/srv/replayeval.git" "$root/root/replayeval"
git clone --quiet --bare --no-hardlinks "$repository" "$root/srv/replayeval.git"
chown -R 0:0 "$root/srv/replayeval.git"
timed "git clone" inside 'git clone --quiet /srv/replayeval.git /root/replayeval'
echo "== $(inside 'cat /etc/debian_version') with $(nproc) cores, revision $(inside 'git -C /root/replayeval rev-parse HEAD')"
for target in ${targets//,/ }; do
  measured "make $target" inside "cd /root/replayeval && make $target"
done

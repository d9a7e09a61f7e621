# shellcheck shell=bash
# The distribution's packages: which are missing, and how they get here.

# listed_packages FILE...: "package probe" lines without comments.
listed_packages() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@"; }

is_debian() { grep -qx 'ID=debian' /etc/os-release 2>/dev/null; }

# probe_present WORD: a path that exists or a command that is found; python3-venv's probe is the module itself.
probe_present() {
  case $1 in
    /*) [[ -e $1 ]] ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
  esac
}

# missing_packages FILE... [-- PACKAGE...]: one a line. Packages after -- have no probe: without dpkg they are not asked
# for here, and whoever reads their files says what is missing.
missing_packages() {
  local lists=() package probe
  while (($#)) && [[ $1 != -- ]]; do
    lists+=("$1")
    shift
  done
  shift || true
  if command -v dpkg-query >/dev/null 2>&1; then
    local wanted
    wanted=$({ listed_packages "${lists[@]}" | awk '{ print $1 }'; printf '%s\n' "$@"; } | sed '/^$/d' | sort -u)
    # shellcheck disable=SC2086  # one package a word
    comm -23 <(printf '%s\n' "$wanted") \
      <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null | awk '$2 == "installed" { print $1 }' |
        sort -u)
  else
    listed_packages "${lists[@]}" | while read -r package probe; do
      probe_present "$probe" || printf '%s\n' "$package"
    done
  fi
}

apt_install() {  # PACKAGE...
  export DEBIAN_FRONTEND=noninteractive
  apt-get update || return
  apt-get install -y --no-install-recommends "$@"
}

# require_packages [--stage NAME] FILE... [-- PACKAGE...]: installs what is missing, or names it.
require_packages() {
  local missing stage=packages
  if [[ $1 == --stage ]]; then
    stage=$2
    shift 2
  fi
  missing=$(missing_packages "$@" | tr '\n' ' ')
  missing=${missing% }
  if [[ -z $missing ]]; then
    record_stage "$stage" 0.0
    return
  fi
  if ! command -v apt-get >/dev/null 2>&1; then
    fail "missing packages (Debian's names), and there is no apt-get here to install them: $missing"
  fi
  if [[ $(id -u) != 0 ]]; then
    fail "missing packages, and only root can install them. Run: sudo apt-get install -y --no-install-recommends $missing"
  fi
  # shellcheck disable=SC2086  # one package a word
  quiet_stage "$stage" apt_install $missing ||
    fail "apt-get could not install: $missing (log: $(stage_log "$stage"))"
}

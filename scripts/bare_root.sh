# Sourced by the prove_*.sh scripts: a fresh Debian or Ubuntu in a folder. Needs root and debootstrap.

# make_root SUITE [FOLDER]: sets `root` to the folder, with SUITE's smallest system in it; a temporary one, removed when
# the script ends, where no FOLDER is given. A FOLDER that has a system keeps it.
make_root() {
  local suite=$1
  given_root=${2:-}
  root=${given_root:-$(mktemp -d)}
  trap leave_root EXIT
  if [ ! -e "$root/bin/sh" ]; then
    case $suite in
      bookworm | trixie) debootstrap --variant=minbase "$suite" "$root" ;;
      noble)  # Debian's debootstrap knows neither Ubuntu's release nor its keys; all Ubuntu releases share one script
        debootstrap --variant=minbase --components=main,universe --no-check-gpg noble "$root" \
          http://archive.ubuntu.com/ubuntu gutsy ;;
      *) echo "unknown suite $suite" >&2; exit 2 ;;
    esac
  fi
  mount -t proc proc "$root/proc"
  mount --bind /dev "$root/dev"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # The certificates of this machine, for machines behind a proxy; a root without a proxy needs none.
  if [ -e /etc/ssl/certs/ca-certificates.crt ] && [ ! -e "$root/etc/ssl/certs/ca-certificates.crt" ]; then
    mkdir -p "$root/etc/ssl/certs"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  fi
}

leave_root() {
  umount "$root/proc" "$root/dev" 2>/dev/null || true
  [ -n "$given_root" ] || rm -rf --one-file-system "$root"
}

# put_sources: what is committed, in /fusec of the root.
put_sources() {
  mkdir -p "$root/fusec"
  git archive HEAD | tar -x -C "$root/fusec"
}

# in_root COMMAND [NAME=VALUE...]: runs it there in /fusec, with nothing of this machine's environment.
in_root() {
  local command=$1
  shift
  chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 "$@" /bin/bash -euc "cd /fusec && $command"
}

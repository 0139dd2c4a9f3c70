"""Makes the root file systems that the operator's image stands on: Debian's Python, unpacked and never started.

Called by `release.build`. No program of a package runs while it is made, so that one machine makes it for every
processor, and nothing of the moment gets into it. It has no shell and no package manager. What it is made of depends
on the packages that the mirrors have on that day: the same mirrors give the same bytes.
"""

import re
import tarfile
from pathlib import Path

from lab.build.bases import fetch_debian
from lab.settings import Versions
from release.source import Source

PYTHON = "3.11"
"""Debian 12's, and that of `.python-version`."""
PACKAGES = ("base-files", "ca-certificates", "netbase", "python3-minimal", f"python{PYTHON}", "tzdata")
UNUSED = (
    *("adduser", "bsdutils", "coreutils", "dash", "debconf", "debianutils", "diffutils", "dpkg", "findutils", "grep"),
    *("gzip", "hostname", "init-system-helpers", "login", "ncurses-base", "ncurses-bin", "passwd", "perl-base", "sed"),
    *("sysvinit-utils", "tar", "util-linux", "util-linux-extra", "mawk", "openssl", "bash"),
)
"""What packages name for their own installation, and a program never starts: removed again."""
PACKAGE_FOLDER = "var/lib/dpkg/status.d"
"""Where scanners of images look for the packages of an image that has no package manager."""

_UNPACK = f"""set -eu
root="$1"
mkdir -p "$root/{PACKAGE_FOLDER}"
for package in "$root"/var/cache/apt/archives/*.deb; do
  name=$(dpkg-deb --field "$package" Package)
  case " {" ".join(UNUSED)} " in
    *" $name "*)
      dpkg-deb --fsys-tarfile "$package" | tar --list | grep -v '/$' | sed "s,^\\.,$root," \\
        | tr '\\n' '\\0' | xargs -0 rm -f ;;
    *) dpkg-deb --field "$package" > "$root/{PACKAGE_FOLDER}/$name" ;;
  esac
done
mkdir -p "$root/etc/ssl/certs" "$root/usr/lib/ssl"
cat "$root"/usr/share/ca-certificates/mozilla/*.crt > "$root/etc/ssl/certs/ca-certificates.crt"
ln -sf /etc/ssl/certs/ca-certificates.crt "$root/usr/lib/ssl/cert.pem"
echo 'root:x:0:0:root:/root:/usr/sbin/nologin' > "$root/etc/passwd"
echo 'streamapp:x:10003:10003:streamapp:/tmp:/usr/sbin/nologin' >> "$root/etc/passwd"
printf 'root:x:0:\\nstreamapp:x:10003:\\n' > "$root/etc/group"
echo 'hosts: files dns' > "$root/etc/nsswitch.conf"
"""

LEFT_OUT = re.compile(
    r"(dev|etc/(apt|cron.daily|hostname|logrotate.d|resolv.conf|update-motd.d)|usr/share/(doc-base|info|lintian|locale|man)|var/(backups|cache|lib/apt|lib/dpkg/(?!status\.d)[^/]*|log)"
    r"|usr/lib/[^/]+/gconv|usr/lib/python3[^/]*/(EXTERNALLY-MANAGED|test|idlelib|__pycache__|.*/__pycache__))(/|$)"
)
"""What a program never reads, or what says something about this machine."""


def root_file_system(source: Source, processor: str, versions: Versions, target: Path, log: Path) -> None:
    """Write the tar of a root file system for a processor by Debian's name.

    Raises LabError with the words of mmdebstrap.
    """
    hook, raw = target.with_suffix(".sh"), target.with_suffix(".raw")
    hook.write_text(_UNPACK)
    options = (
        "--variant=extract",
        f"--architectures={processor}",
        f"--include={','.join(PACKAGES)}",
        # The packages still lie there as files when this hook runs.
        f'--extract-hook=sh {hook} "$1"',
        "--format=tar",
    )
    fetch_debian(f"system of {processor}", options, raw, versions, log, source.environment())
    keep(raw, target, source.epoch)
    raw.unlink()


def keep(raw: Path, target: Path, epoch: int) -> None:
    """Copy a tar without what is left out, by name, with nothing newer than the commit."""
    with tarfile.open(raw) as whole, tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as kept:
        for entry in sorted(whole, key=lambda entry: entry.name):
            if LEFT_OUT.match(entry.name.lstrip("./")):
                continue
            entry.mtime = min(int(entry.mtime), epoch)
            entry.pax_headers = {}
            kept.addfile(entry, whole.extractfile(entry) if entry.isfile() else None)

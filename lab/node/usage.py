"""How much memory the lab's processes use, read from `/proc` on the outside."""

from pathlib import Path


def memory_of(lab_pid: int, inner_pid: int) -> int:
    """Give the resident bytes of a process that the lab knows as `inner_pid`; 0 if it just ended.

    `lab_pid` is the outside process id of the lab's process 1, whose namespace tells the lab's processes from others.
    """
    namespace = _namespace(lab_pid)
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue  # it ended while we looked
        if lines.get("NSpid", "").split()[-1:] == [str(inner_pid)] and _namespace(int(status.parent.name)) == namespace:
            return int(lines.get("VmRSS", "0 kB").split()[0]) * 1024
    return 0


def processes_of(lab_pid: int) -> list[int]:
    """Give the outside ids of every process in the lab's process-id namespace."""
    namespace = _namespace(lab_pid)
    found = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for pid in found if _namespace(pid) == namespace]


def _namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""

"""How much memory the lab's processes use, read from `/proc` on the outside."""

from pathlib import Path


def memory_of(proc: Path, pid: int) -> int:
    """Give the resident bytes of a process; 0 if it just ended.

    `proc` is the `/proc` of the namespace that knows the process as `pid`, see `proc_of`.
    """
    try:
        lines = dict(line.split(":", 1) for line in (proc / str(pid) / "status").read_text().splitlines())
    except OSError:
        return 0
    return int(lines.get("VmRSS", "0 kB").split()[0]) * 1024


def proc_of(proc: Path, pid: int) -> Path:
    """Give the `/proc` of the node whose process 1 is `pid` in `proc`, as seen from there."""
    return proc / str(pid) / "root" / "proc"


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

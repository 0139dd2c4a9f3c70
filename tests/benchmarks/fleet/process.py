"""The operator as a process of its own: `python -m streamapp` from any checkout, and what the kernel says of it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True, slots=True)
class OperatorProcess:
    """One process."""

    pid: int

    def cpu_seconds(self) -> float:
        """Processor time of all its threads so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mib(self) -> float:
        """Resident memory."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE_MIB

    def threads(self) -> int:
        """How many it has."""
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))


@asynccontextmanager
async def operator(source: Path, kubeconfig: Path, log: Path) -> AsyncIterator[OperatorProcess]:
    """Run the operator of a checkout until the block ends; its log goes to a file."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(source / "operator"),
        "KUBECONFIG": str(kubeconfig),
        "STREAMAPP_PORT": "0",
        "STREAMAPP_API_PORT": "0",
        "STREAMAPP_SEED_IMAGE": "seed:bench",
        "STREAMAPP_AGENT_IMAGE": "agent:bench",
    }
    with log.open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "streamapp"), env=environment, stdout=said, stderr=said
        )
        try:
            yield OperatorProcess(process.pid)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(30):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()

"""A scratch copy of the set-up scripts, with stand-ins for apt, dpkg and pip on its PATH."""

import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What the scripts may find beside the stand-ins.
TOOLS = ("bash", "env", "sed", "awk", "sort", "comm", "cut", "tr", "tail", "grep", "date", "mkdir", "mv", "rm", "cat",
         "dirname", "basename", "sha256sum", "printf", "id", "python3")


class Sandbox:
    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self._folder.name).resolve()
        self.bin = self.root / "stand-ins"
        self.bin.mkdir()
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        for tool in TOOLS:
            found = shutil.which(tool, path="/usr/bin:/bin")
            if found:
                (self.bin / tool).symlink_to(found)
        self.calls = self.root / "calls.txt"

    def close(self):
        self._folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def stand_in(self, name, body, folder=None):
        """A program that appends its name and arguments to calls.txt and then does `body` (shell)."""
        path = (folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()
        path.write_text(f'#!/bin/bash\nprintf "%s\\n" "{name} $*" >>"{self.calls}"\n{body}\n', encoding="utf-8")
        path.chmod(0o755)

    def installed(self, *packages):
        """dpkg-query, as if exactly these packages were installed."""
        (self.root / "installed.txt").write_text("".join(f"{package} installed\n" for package in packages),
                                                 encoding="utf-8")
        self.stand_in("dpkg-query", f'cat "{self.root}/installed.txt"')

    def called(self, name):
        if not self.calls.exists():
            return []
        return [line for line in self.calls.read_text(encoding="utf-8").splitlines() if line.split(" ")[0] == name]

    def shell(self, commands):
        """Runs the commands after sourcing the set-up's functions; nothing outside the sandbox is on PATH."""
        script = "set -euo pipefail\n" + "".join(f". scripts/lib/{name}.sh\n"
                                                 for name in ("stages", "packages", "python", "text")) + commands
        return subprocess.run([str(self.bin / "bash"), "-c", script], cwd=self.root, text=True, capture_output=True,
                              env={"PATH": str(self.bin), "HOME": os.environ.get("HOME", "/")}, timeout=60, check=False)

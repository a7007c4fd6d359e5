"""Where the daemon listens: TCP for editors, a Unix socket for the CLI. A live socket is never taken over."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
from pathlib import Path

import psutil

from ..core.address import Address
from ..core.errors import StoreFailed


def listen_tcp(address: Address) -> socket.socket:
    """A listening TCP socket. Errors: StoreFailed says who has the port, where that can be known."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise StoreFailed(_bind_error(address, error)) from None
    return listener


class UnixListener:
    """A listening Unix socket, mode 0600, and the lock beside it that says it is ours."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: int | None = None

    def open(self) -> socket.socket:
        """The listening socket; a stale one of a dead daemon is replaced. Errors: StoreFailed when it is live."""
        try:
            self._check_folder()
            # The lock, not the socket, decides: two daemons that start at once cannot both find the socket stale.
            lock_path = self._path.with_name(f"{self._path.name}.lock")
            self._lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._unlock()
            raise StoreFailed("a Corral daemon is already running on this socket") from None
        except OSError as error:
            raise StoreFailed(f"the socket cannot be made: {error.strerror}; set CORRAL_SOCKET elsewhere") from None
        if self._path.exists():
            if _answers(self._path):
                self._unlock()
                raise StoreFailed("another program answers on this socket: stop it, or set CORRAL_SOCKET elsewhere")
            self._path.unlink()
        return self._bind()

    def close(self) -> None:
        """Remove the socket, if it is ours, and give the lock back."""
        if self._lock is not None:
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _bind(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        previous = os.umask(0o177)
        try:
            listener.bind(str(self._path))
            listener.listen(1024)
        except OSError as error:
            listener.close()
            self.close()
            raise StoreFailed(f"the socket cannot be made: {error.strerror}; set CORRAL_SOCKET elsewhere") from None
        finally:
            os.umask(previous)
        return listener

    def _check_folder(self) -> None:
        folder = self._path.parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        owner = folder.stat()
        shared = stat.S_IMODE(owner.st_mode) & 0o022 and not owner.st_mode & stat.S_ISVTX
        if owner.st_uid not in (os.getuid(), 0) or shared:
            # In a folder that others may write to, they could put a socket of their own in our place.
            raise PermissionError(errno.EPERM, "its folder belongs to somebody else or is open to others")


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2.0)
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def _bind_error(address: Address, error: OSError) -> str:
    where = f"{address.host}:{address.port}"
    if error.errno != errno.EADDRINUSE:
        return f"cannot listen on {where}: {error.strerror}"
    owner = _port_owner(address.port)
    by = f" by {owner}" if owner else ""
    return f"port {address.port} is taken{by}: stop that program, or set CORRAL_HOST to another port"


def _port_owner(port: int) -> str:
    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return ""
    for connection in connections:
        if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port:
            return _process_name(connection.pid)
    return ""


def _process_name(pid: int | None) -> str:
    if pid is None:
        return ""
    try:
        return f"{psutil.Process(pid).name()} (pid {pid})"
    except psutil.Error:
        return f"pid {pid}"

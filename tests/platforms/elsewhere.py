"""Runs a program of the kit as if the system were Windows: what its standard library has not is absent, or refuses.

    elsewhere.py schema-patch|verify-schemas WORDS...

Absent are modules and names of POSIX; a file is not opened a second time while `tempfile` has it, none is renamed over
another, and what is read without an encoding, or printed beyond that of a Western console, is an error. Paths stay
those of this system. What a lock is asked for is told to stderr.
"""

import os
import signal
import sys
import types

MODULES = "fcntl pwd grp resource termios tty pty posix_ipc syslog crypt nis spwd".split()
OF_OS = """chown fchown fchmod lchown chroot ctermid fork forkpty register_at_fork killpg kill getuid geteuid getgid getegid
getgroups getpgid getpgrp setsid setuid setgid nice sched_getaffinity sched_setaffinity sched_yield mkfifo mknod uname
sysconf confstr pathconf statvfs fstatvfs getloadavg pread pwrite preadv pwritev posix_fadvise posix_fallocate posix_spawn
sendfile copy_file_range splice memfd_create pipe2 openpty ttyname lockf fchdir sync fdatasync wait wait3 wait4 waitid
WNOHANG WIFEXITED WIFSIGNALED WEXITSTATUS WTERMSIG O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_SYNC O_NOCTTY getxattr
setxattr listxattr""".split()
OF_SIGNAL = """SIGALRM SIGKILL SIGHUP SIGQUIT SIGUSR1 SIGUSR2 SIGPIPE SIGCHLD SIGTSTP SIGWINCH alarm setitimer pause
pthread_sigmask sigwait sigpending siginterrupt set_wakeup_fd""".split()


def refuse(what: str):
    def refused(*_, **__):
        raise PermissionError(13, f"not on this system: {what}")

    return refused


def rename(source, target, real=os.rename):
    if os.path.exists(target):
        raise FileExistsError(17, "File exists", str(target))
    real(source, target)


def without_posix() -> None:
    # These know the system by its name themselves, once, and must know the real one.
    import hashlib  # noqa: F401
    import multiprocessing  # noqa: F401
    import pathlib  # noqa: F401
    import shutil
    import subprocess  # noqa: F401
    import tempfile

    import click  # noqa: F401
    import rich.console  # noqa: F401

    shutil._use_fd_functions, shutil._copyxattr = False, lambda *_, **__: None  # it asks once, too
    for name in MODULES:
        sys.modules[name] = None
    for module, names in ((os, OF_OS), (signal, OF_SIGNAL)):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    os.rename, tempfile.NamedTemporaryFile = rename, refuse("a file of tempfile, opened a second time")
    sys.modules["msvcrt"] = types.SimpleNamespace(
        LK_LOCK=1, locking=lambda *_: print("locked", file=sys.stderr, flush=True)
    )
    sys.platform = "win32"


def main() -> int:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="cp1252")
    without_posix()
    import mmap

    mmap.mmap = type("mmap", (mmap.mmap,), {"madvise": property()})  # hasattr says no
    from schema_patch.commands import main as programs

    program = programs.main_verify if sys.argv[1] == "verify-schemas" else programs.main
    return program(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())

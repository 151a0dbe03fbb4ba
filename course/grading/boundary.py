"""The boundary of the operating system around learner code, under the fence: whatever Python is talked into, it holds.

No file but the check's own folder and what Python and the engine are made of; no network; no signal to another process,
none looked into, none started; no setting of a file that is not read or written either. Put up once, inside the child,
before the learner's code is there; threads started later are within it.

    Linux 5.13 and later, x86_64 and aarch64    Landlock for files and network, seccomp for system calls
    macOS                                       the Seatbelt profile that `sandbox-exec` uses, by `sandbox_init`

This file runs inside the child, which cannot import `course`; so it uses the standard library only. No package on PyPI
wraps both without a compiler or a library of the system, so the calls are made here by `ctypes`.

Source:  Documentation/userspace-api/landlock.rst and seccomp_filter.rst, include/uapi/linux/landlock.h, seccomp.h,
         filter.h and the tables of system calls of Linux 6.12
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterator, Sequence

__all__ = ["BoundaryError", "available", "raise_boundary"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _PATH_BENEATH = 444, 445, 446, 1  # the same numbers on all machines
_SET_NO_NEW_PRIVS, _SECCOMP_SET_FILTER, _ALL_THREADS = 38, 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_MAKE_DEVICES_SOCKETS_AND_PIPES = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11
_NUM_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # by Landlock's version; from 5 on `ioctl` on devices too
_NUM_FILE_RIGHTS_NOW = 16
_TCP, _ABSTRACT_SOCKETS_AND_SIGNALS = 0b11, 0b11

_ALSO_READ = (
    "/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/localtime",
    "/usr/share/zoneinfo", "/System/Library", "/Library/Apple",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/zero")

# System calls that reach out of the process, by machine: x86_64, aarch64; -1 where there is none.
_REFUSED = {
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242), "sendto": (44, 206), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    "fork": (57, -1), "vfork": (58, -1), "execve": (59, 221), "execveat": (322, 281), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "process_madvise": (440, 440),
    "kcmp": (312, 272), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "tkill": (200, 130),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "setns": (308, 268), "unshare": (272, 97), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "syslog": (103, 116), "sethostname": (170, 161), "setdomainname": (171, 162),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "iopl": (172, -1), "ioperm": (173, -1), "personality": (135, 92), "setpriority": (141, 140),
    "ioprio_set": (251, 30), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "sched_setaffinity": (203, 122), "migrate_pages": (256, 238),
    "move_pages": (279, 239), "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, -1),
    "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54), "utime": (132, -1), "utimes": (235, -1),
    "futimesat": (261, -1), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "fanotify_init": (300, 262),
    "inotify_init": (253, -1), "inotify_init1": (294, 26), "setuid": (105, 146), "setgid": (106, 144),
    "setreuid": (113, 145), "setregid": (114, 143), "setresuid": (117, 147), "setresgid": (119, 149),
    "setgroups": (116, 159), "capset": (126, 91), "setsid": (112, 157), "setpgid": (109, 154), "vhangup": (153, 58),
    "mknod": (133, -1), "mknodat": (259, 33), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "setrlimit": (160, 164), "truncate": (76, 45), "setfsuid": (122, 151), "setfsgid": (123, 152),
    "process_mrelease": (448, 448), "setxattrat": (463, 463), "removexattrat": (466, 466), "file_setattr": (469, 469),
    "open_tree_attr": (467, 467), "statmount": (457, 457), "listmount": (458, 458),
}  # fmt: skip
# These keep what they are to do in memory, where no filter looks. Told that there are none, libraries use older ones.
_NOT_THERE = {"clone3": (435, 435), "openat2": (437, 437)}
# Those that are refused with some arguments, and where the argument stands that decides.
_CLONE, _FCNTL, _IOCTL, _LIMIT = (56, 220), (72, 25), (16, 29), (302, 261)
_SIGNALS = {"kill": (62, 129), "tgkill": (234, 131)}
_OPENS = {"open": ((2, -1), 1), "openat": ((257, 56), 2)}
_CLONE_THREAD, _CLONE_NAMESPACES = 0x10000, 0x7E020000
_BOTH_WRITES, _EMPTIES = 3, 0x200  # O_WRONLY | O_RDWR, O_TRUNC
_FCNTL_SIGNALS_OTHERS = (8, 10, 15, 1024, 1026)  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
_IOCTL_HARMLESS = (
    0x5401,
    0x802C542A,
    0x5413,
    0x541B,
    0x5421,
    0x5450,
    0x5451,
)  # is it a terminal; how much; close on exec
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_X32 = 0x40000000  # another numbering of the same calls, on x86_64

_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_REFUSE, _NO_SUCH_CALL, _NO_TERMINAL = (0x00050000 | number for number in (1, 38, 25))  # EPERM, ENOSYS, ENOTTY
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # where they lie in `struct seccomp_data`, low half first

_CAPABILITIES = 0x20080522
_FILE_CAPABILITIES = 1 << 1 | 1 << 2
"""Root's rights to files of others, without which it may not read its own Python; Landlock says which."""

_Step = tuple[int, int, int, int]


class BoundaryError(OSError):
    """The system has such a boundary, and would not put it up."""


def available() -> str | None:
    """What this system has, in words, or `None`."""
    if sys.platform == "darwin":
        return "Seatbelt" if _seatbelt() is not None else None
    if sys.platform != "linux" or platform.machine() not in _MACHINES or sys.byteorder != "little":
        return None
    version = _system_call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    filters = _system_call(_SECCOMP[platform.machine()], 2, 0, struct.pack("=I", _REFUSE & 0xFFFF0000)) == 0
    return f"Landlock {version} and seccomp" if version >= 1 and filters else None


def raise_boundary(own: str, readable: Sequence[str], listable: Sequence[str], denied: Sequence[str]) -> None:
    """Put it up for this thread and all that it starts. No other thread may run yet.

    Args:
        own: the one folder that may be written.
        readable: files, and folders whose files may be read, but for those in `denied`.
        listable: folders whose names may be listed.

    Raises:
        BoundaryError: the system refused; nothing may be run then.
    """
    if sys.platform == "darwin":
        _raise_seatbelt(own, readable, denied)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise BoundaryError(ctypes.get_errno(), "no_new_privs was refused")
    _drop_capabilities()
    _raise_landlock(own, readable, listable, denied)
    _raise_seccomp()


def _drop_capabilities() -> None:
    """Make root an ordinary user but for files, so that what the kernel leaves to root alone is closed too."""
    header = struct.pack("=Ii", _CAPABILITIES, 0)
    kept = ctypes.create_string_buffer(24)
    if _system_call({"x86_64": 125, "aarch64": 90}[platform.machine()], header, kept):
        raise BoundaryError(ctypes.get_errno(), "the capabilities were not told")
    effective, permitted, *_ = struct.unpack("=6I", kept.raw)
    left = struct.pack("=6I", effective & _FILE_CAPABILITIES, permitted & _FILE_CAPABILITIES, 0, 0, 0, 0)
    if _system_call({"x86_64": 126, "aarch64": 91}[platform.machine()], header, left):
        raise BoundaryError(ctypes.get_errno(), "capabilities were not given up")


def _system_call(number: int, *arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments))


# -- Landlock ----------------------------------------------------------------------------------------


def _raise_landlock(own: str, readable: Sequence[str], listable: Sequence[str], denied: Sequence[str]) -> None:
    version = _system_call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    all_rights = (1 << _NUM_FILE_RIGHTS.get(version, _NUM_FILE_RIGHTS_NOW)) - 1
    attributes = struct.pack(
        "=QQQ", all_rights, _TCP if version >= 4 else 0, _ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0
    )
    size = {1: 8, 2: 8, 3: 8, 4: 16, 5: 16}.get(version, 24)
    ruleset = _system_call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint(0))
    if ruleset < 0:
        raise BoundaryError(ctypes.get_errno(), "Landlock made no ruleset")
    read = _READ_FILE | _EXECUTE
    closed = [os.path.realpath(each) for each in denied]
    for path in (*readable, *_ALSO_READ):
        for part, is_folder in _parts(os.path.realpath(path), closed):
            _allow(ruleset, part, read | _READ_DIR if is_folder else read)
    for path in (*readable, *listable):
        _allow(ruleset, path, _READ_DIR)
    for path in _DEVICES:
        _allow(ruleset, path, _READ_FILE | _WRITE_FILE)
    _allow(ruleset, own, all_rights & ~(_EXECUTE | _MAKE_DEVICES_SOCKETS_AND_PIPES))
    if _system_call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0)):
        raise BoundaryError(ctypes.get_errno(), "Landlock was refused")
    os.close(ruleset)


def _parts(path: str, closed: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The largest files and folders that make up `path` without what is closed; whether each is a folder."""
    if any(path == each or path.startswith(each + os.sep) for each in closed):
        return
    is_folder = os.path.isdir(path)  # noqa: PTH112 (pathlib costs 10 ms here)
    if not is_folder or not any(each.startswith(path + os.sep) for each in closed):
        yield path, is_folder
        return
    for name in os.listdir(path):  # noqa: PTH208
        yield from _parts(f"{path}{os.sep}{name}", closed)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)  # type: ignore[attr-defined, unused-ignore]  # Linux has it
    except OSError:
        return  # it is not there, so there is nothing to allow
    if not os.path.isdir(path):  # noqa: PTH112
        rights &= _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
    rule = struct.pack("=Qi", rights, descriptor)
    failed = _system_call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint(0))
    number = ctypes.get_errno()
    os.close(descriptor)
    if failed:
        raise BoundaryError(number, f"Landlock did not take {path}")


# -- seccomp -----------------------------------------------------------------------------------------


def _raise_seccomp() -> None:
    program = b"".join(struct.pack("=HBBI", *each) for each in _filter(platform.machine(), os.getpid()))
    kept = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(kept))
    if _system_call(
        _SECCOMP[platform.machine()], ctypes.c_uint(_SECCOMP_SET_FILTER), ctypes.c_uint(_ALL_THREADS), header
    ):
        raise BoundaryError(ctypes.get_errno(), "seccomp was refused")


def _filter(machine: str, process: int) -> list[_Step]:
    """The program that decides about each system call: (code, steps on if true, steps on if false, operand)."""
    column, architecture = _MACHINES[machine]
    program = [_load(_ARCHITECTURE), *_unless(architecture, _KILL), _load(_NUMBER)]
    if machine == "x86_64":
        program += _when(_X32, _REFUSE, _IF_AT_LEAST)
    for numbers in _REFUSED.values():
        program += _when(numbers[column], _REFUSE) if numbers[column] >= 0 else []
    for numbers in _NOT_THERE.values():
        program += _when(numbers[column], _NO_SUCH_CALL)
    cases = {
        _CLONE: [_argument(0), *_when(_CLONE_NAMESPACES, _REFUSE, _IF_ANY_BIT),
                 *_when(_CLONE_THREAD, _ALLOW, _IF_ANY_BIT), _return(_REFUSE)],
        _FCNTL: [_argument(1), *_when_any(_FCNTL_SIGNALS_OTHERS, _REFUSE), _return(_ALLOW)],
        _IOCTL: [_argument(1), *_when_any(_IOCTL_HARMLESS, _ALLOW), _return(_NO_TERMINAL)],
        # A process may ask for limits, which is with nothing new in the third argument, and for its own alone.
        _LIMIT: [_argument(2), *_unless(0, _REFUSE), _argument(2, half=4), *_unless(0, _REFUSE),
                 _argument(0), *_when_any((0, process), _ALLOW), _return(_REFUSE)],
        **{numbers: [_argument(0), *_when(process, _ALLOW), _return(_REFUSE)] for numbers in _SIGNALS.values()},
        **{numbers: _of_open(place) for numbers, place in _OPENS.values()},
    }  # fmt: skip
    for numbers, steps in cases.items():
        program += [(_IF_EQUAL, 0, len(steps), numbers[column]), *steps] if numbers[column] >= 0 else []
    return [*program, _return(_ALLOW)]


def _of_open(place: int) -> list[_Step]:
    """Landlock asks for no right where a file is opened in a fourth mode, and early ones for none to empty it."""
    return [
        _argument(place), (_AND, 0, 0, _BOTH_WRITES), *_when(_BOTH_WRITES, _REFUSE),
        _argument(place), (_AND, 0, 0, _BOTH_WRITES | _EMPTIES), *_when(_EMPTIES, _REFUSE), _return(_ALLOW),
    ]  # fmt: skip


def _load(place: int) -> _Step:
    return _LOAD, 0, 0, place


def _argument(number: int, half: int = 0) -> _Step:
    return _load(_ARGUMENTS + 8 * number + half)


def _return(answer: int) -> _Step:
    return _RETURN, 0, 0, answer


def _when(value: int, answer: int, test: int = _IF_EQUAL) -> list[_Step]:
    return [(test, 0, 1, value), _return(answer)]


def _when_any(values: Sequence[int], answer: int) -> list[_Step]:
    return [step for value in values for step in _when(value, answer)]


def _unless(value: int, answer: int) -> list[_Step]:
    return [(_IF_EQUAL, 1, 0, value), _return(answer)]


# -- macOS -------------------------------------------------------------------------------------------


def _seatbelt() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("/usr/lib/libSystem.B.dylib")
    except OSError:
        return None
    return library if hasattr(library, "sandbox_init") else None


def _raise_seatbelt(own: str, readable: Sequence[str], denied: Sequence[str]) -> None:
    library = _seatbelt()
    if library is None:
        raise BoundaryError("there is no sandbox_init")

    def paths(those: Sequence[str]) -> str:
        return " ".join(f'(subpath "{_escaped(os.path.realpath(each))}")' for each in those)

    profile = f"""(version 1)
(deny default)
(allow sysctl-read) (allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read-metadata)
(allow file-read* file-map-executable {paths([*readable, *_ALSO_READ])})
(allow file-read* file-write-data {" ".join(f'(literal "{each}")' for each in _DEVICES)})
(allow file* {paths([own])})
{f"(deny file-read* {paths(denied)})" if denied else ""}
(allow signal (target self))
"""
    error = ctypes.c_char_p()
    if library.sandbox_init(profile.encode(), ctypes.c_uint64(0), ctypes.byref(error)):
        raise BoundaryError((error.value or b"sandbox_init failed").decode(errors="replace"))


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')

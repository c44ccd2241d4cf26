# SPDX-License-Identifier: Apache-2.0
"""The rules, each with samples that prove it can fail.

A rule is a function from a file to findings (line number, sentence).  Samples that would break a rule in
this file are spelt in two pieces.
"""

import dataclasses
import itertools
import re
import typing

from source import File

COLUMNS_MAX = 110
TAB_COLUMNS = 8


@dataclasses.dataclass
class Rule:
    name: str
    check: typing.Callable
    bad: list  # samples (path, text): each must have a finding
    good: list  # and these none

    def findings(self, files):
        return [f"{file.path}:{line}: {sentence}" for file in files for line, sentence in self.check(file)]

    def check_samples(self):
        for path, text in self.bad:
            assert list(self.check(File(path, text))), f"{self.name}: no finding in {path}: {text!r}"
        for path, text in self.good:
            found = list(self.check(File(path, text)))
            assert not found, f"{self.name}: finding in good {path}: {text!r}: {found}"


def each_line(lines, pattern, sentence):
    for number, line in enumerate(lines, 1):
        match = re.search(pattern, line)
        if match:
            yield number, sentence.format(match.group().strip(" (\t"))


# Calls


def call_pattern(names):
    """A call of one of the names, but not of a member that happens to share it."""
    return re.compile(rf"(?<![\w.>])(?:{'|'.join(names)})\s*\(")


UNSAFE = call_pattern(["strcpy", "strcat", "stpcpy", "v?sprintf", "gets", "strtok", "ato[ilf]", "atoll",
                       "alloca", "system", "popen", "s?rand", "s?random", "[dlm]rand48"])
TO_STDOUT = re.compile(r"(?<![\w.>])(?:v?printf|puts|putchar)\s*\(|\bstdout\b")
SYSTEM_CALLS = call_pattern([
    # files
    "open(?:at)?", "creat", "close", "p?readv?", "p?writev?", "preadv2", "pwritev2", "lseek", "fsync",
    "fdatasync", "ftruncate", "(?:posix_)?fallocate", "unlink(?:at)?", "rename", "[fl]?stat", "statx",
    "mkdir", "rmdir", "flock", "fcntl", "ioctl", r"io_uring_\w+",
    # memory
    "mmap", "munmap", "mprotect", "madvise", "mlock2?", "munlock", "memfd_create",
    # threads, processes, waiting and time
    r"pthread_\w+", r"sem_\w+", r"thrd_\w+", r"mtx_\w+", r"cnd_\w+", "v?fork", r"exec[lv]\w*", "clone",
    "kill", "eventfd", r"epoll_\w+", "p?poll", "p?select", "u?sleep", "nanosleep", r"clock_\w+", "time",
    "gettimeofday",
    # the rest
    "socket(?:pair)?", "connect", "bind", "listen", "accept4?", "send(?:to|msg)?", "recv(?:from|msg)?",
    "getrandom", "syscall"])
SLEEPS = re.compile(r"(?<![\w>])(?:\w+_)?(?:sleep|usleep|nanosleep)(?:_\w+)?\s*\(|^\s*sleep\s+[\d.$]")


def unsafe_calls(file):
    return each_line(file.code_lines, UNSAFE, "{} is banned") if file.is_c else ()


def environment(file):
    if not file.is_c or file.is_test or file.room in ("app", "os"):
        return ()
    return each_line(file.code_lines, call_pattern(["(?:secure_)?getenv"]), "{} outside src/app and src/os")


def prints(file):
    if not file.is_c or not file.room or file.room == "app":
        return ()
    return each_line(file.code_lines, TO_STDOUT, "{} in a room of the library")


def system_calls(file):
    """A file may give a function of its own the name of a call: a file-local name is a bare verb."""
    if not file.is_c or not file.room or file.room == "os":
        return
    own = set(re.findall(r"^static [^=;{]*?\b(\w+)\(", "\n".join(file.code_lines), re.MULTILINE))
    for number, sentence in each_line(file.code_lines, SYSTEM_CALLS, "{} outside src/os"):
        if sentence.split()[0] not in own:
            yield number, sentence


def sleeps(file):
    if not file.is_test:
        return ()
    return each_line(file.code_lines if file.is_c else file.lines, SLEEPS, "{} in a test; wait for the event")


# Form


def licence(file):
    if file.is_code and not any("SPDX-License-Identifier: Apache-2.0" in x for x in file.lines[:2]):
        yield 1, "no SPDX-License-Identifier: Apache-2.0"


def columns(file):
    """A line that is one string may be longer: what a user will read stays whole."""
    if not file.is_code:
        return
    for number, line in enumerate(file.lines, 1):
        width = len(line.expandtabs(TAB_COLUMNS))
        if width > COLUMNS_MAX and not re.fullmatch(r'\s*"(?:[^"\\]|\\.)*"[,;)]*', line):
            yield number, f"{width} columns; {COLUMNS_MAX} at most"


def indentation(file):
    return each_line(file.lines, r"^ (?!\*)", "spaces{}for indentation; use tabs") if file.is_c else ()


def trailing_blanks(file):
    return each_line(file.lines, r"[ \t]+$", "blanks at the end of the line{}")


CONTROL = re.compile(r"(\t+)(?:} )?(?:else\b|(?:if|for|while)\b ?\()")


def braces(file):
    """A body of several lines stands in braces, one statement or more."""
    if not file.is_c:
        return
    lines = file.code_lines
    for start, line in enumerate(lines):
        head = CONTROL.match(line)
        if not head:
            continue
        end, depth = start, 0
        while end < len(lines) - 1 and depth + lines[end].count("(") != lines[end].count(")"):
            depth += lines[end].count("(") - lines[end].count(")")
            end += 1
        if lines[end].rstrip().endswith(("{", ";", "\\")):
            continue
        inside = len(head.group(1)) + 1
        body = itertools.takewhile(lambda x: x.startswith("\t" * inside), lines[end + 1:])
        if len(list(body)) > 1:
            yield start + 1, "a body of several lines without braces"


def unfinished(file):
    return each_line(file.lines, r"\b(?:TO[D]O|FIX[M]E|X[X]X)\b", "{}: finish it or file it")


def machine_paths(file):
    pattern = r"(?<![\w./])/(?:work|home|root|Users|tmp/rooms)/"
    return each_line(file.lines, pattern, "{} is a path of one machine")


RULES = [
    Rule("no unsafe calls", unsafe_calls,
         bad=[("src/base/a.c", "\tstrcpy(a, b);"), ("tests/unit/a_test.c", "x = rand ();"),
              ("src/a/a.h", "atoi(t)"), ("src/a/a.c", "\tvsprintf(a, b, c);")],
         good=[("src/a/a.c", "/* strcpy(a, b) */ s = \"system()\"; snprintf(a, 1, b); my_rand(); a->rand();"),
               ("a.py", "system()")]),
    Rule("the environment is read by the app and os", environment,
         bad=[("src/store/a.c", "\tgetenv(\"HOME\");")],
         good=[("src/app/a.c", "\tgetenv(\"HOME\");"), ("src/os/a.c", "\tsecure_getenv(\"HOME\");"),
               ("tests/unit/a_test.c", "getenv(\"X\");")]),
    Rule("rooms of the library do not print", prints,
         bad=[("src/store/a.c", "\tprintf(\"x\");"), ("src/conf/a.c", "fputs(\"x\", stdout);")],
         good=[("src/app/a.c", "\tprintf(\"x\");"),
               ("src/conf/a.c", "fprintf(out, \"x\"); snprintf(a, 1, \"x\");")]),
    Rule("system calls are the os room's", system_calls,
         bad=[("src/store/a.c", "\tfd = open(path, 0);"),
              ("src/exec/a.c", "pthread_create(&t, NULL, f, NULL);"),
              ("src/app/a.c", "clock_gettime(CLOCK_MONOTONIC, &ts);"),
              ("src/store/a.c", "pwrite (fd, p, n, 0);")],
         good=[("src/os/a.c", "\tfd = open(path, 0);"),
               ("src/store/a.c", "ops->read(x); os_file_open(x); s.close(y);"),
               ("src/store/a.c", "static int read(struct a *a)\n{\n}\n\tread(a);"),
               ("tests/a.c", "close(fd);")]),
    Rule("tests do not sleep", sleeps,
         bad=[("tests/unit/a_test.c", "\tusleep(10);"), ("tests/e2e/a.py", "time.sle" "ep(1)"),
              ("tests/e2e/a.sh", "sle" "ep 1"), ("tests/unit/a_test.c", "os_sle" "ep_ns(5);")],
         good=[("src/os/a.c", "\tusleep(10);"), ("tests/unit/a_test.c", "/* no sle" "ep(1) */")]),
    Rule("every file names its licence", licence,
         bad=[("src/a/a.c", "int a;\n"),
              ("tools/x", "#!/bin/sh\n\n# SPDX-License-Identifier: Apache-2.0")],
         good=[("tools/x", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0"), ("README.md", "# x")]),
    Rule("lines fit", columns,
         bad=[("src/a/a.c", "x" * 111), ("src/a/a.c", "\t" * 13 + "1234567"),
              ("src/a/a.c", 'f("' + "x" * 111 + '");')],
         good=[("src/a/a.c", "x" * 110), ("README.md", "x" * 200), ("a.c", '\t"' + "x" * 200 + '",')]),
    Rule("C is indented with tabs", indentation,
         bad=[("src/a/a.c", "    int a;")],
         good=[("src/a/a.c", "/*\n * a\n */\n\tint a,\n\t    b;"), ("a.py", "    x")]),
    Rule("bodies of several lines have braces", braces,
         bad=[("src/a/a.c", "\tif (a)\n\t\tf(b,\n\t\t  c);\n"),
              ("tests/a.c", "\tfor (;;)\n\t\t/* why */\n\t\tf();"),
              ("src/a/a.c", "\tif (a &&\n\t    b)\n\t\tf(c,\n\t\t  d);\n"),
              ("src/a/a.h", "\tif (a) {\n\t} else\n\t\tf(b,\n\t\t  c);\n")],
         good=[("src/a/a.c", "\tif (a &&\n\t    b)\n\t\tf(c);\n\tg();\n"),
               ("src/a/a.c", "\tif (a) {\n\t\tf(b,\n\t\t  c);\n\t}\n"),
               ("src/a/a.c", "\twhile (f(a,\n\t\t b))\n\t\t;\n\tg();\n"),
               ("src/a/a.c", "\tdo {\n\t\tf();\n\t\tg();\n\t} while (a);\n")]),
    Rule("no blanks at line ends", trailing_blanks,
         bad=[("README.md", "a ")], good=[("README.md", "a\n\nb")]),
    Rule("nothing is left unfinished", unfinished,
         bad=[("src/a/a.c", "/* TO" "DO: x */"), ("README.md", "FIX" "ME")], good=[("a.c", "TODOS todo")]),
    Rule("no path of one machine", machine_paths,
         bad=[("README.md", "see /" "home/me/x"), ("a.py", "'/" "work/x'")],
         good=[("a.c", "/usr/include ../parts/x https://a.b/home/x")]),
]

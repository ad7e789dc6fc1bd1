"""The demo's corpus: the documentation of Python's standard library, read from its docstrings.

Nothing is shipped and nothing is downloaded: every machine that can run the demo already holds
some thousands of real documents. A document is a module, class, function, method or property;
its id is its qualified name, so keys stay valid across Python versions.
"""

import inspect
import re
import types
import warnings
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from typing import TypedDict

GROUP_CHARACTERS = 800
"""Paragraphs are joined into one chunk up to this length, the heading not counted."""

FIRST_WORDS = 2
"""What the planted defect leaves of a text: of `json > loads` the module and nothing else.

With one word more the vector holds the name as well, and hybrid search hardly suffers.
"""

# Public modules that import without a window, a prompt or output, on Linux and macOS.
# Packages stand before their submodules: what both export is named by the package.
_MODULES = """
builtins abc argparse array ast asyncio asyncio.base_events asyncio.events asyncio.subprocess
atexit base64 bdb binascii bisect bz2 cProfile calendar cmath cmd code codecs codeop collections
collections.abc colorsys compileall concurrent.futures configparser contextlib contextvars copy
copyreg csv ctypes ctypes.util curses curses.ascii curses.panel curses.textpad dataclasses
datetime dbm dbm.dumb decimal difflib dis doctest email email.charset email.contentmanager
email.encoders email.errors email.generator email.header email.headerregistry email.message
email.mime.application email.mime.audio email.mime.base email.mime.image email.mime.message
email.mime.multipart email.mime.text email.parser email.policy email.utils enum errno faulthandler
fcntl filecmp fileinput fnmatch fractions ftplib functools gc getopt getpass gettext glob graphlib
grp gzip hashlib heapq hmac html html.entities html.parser http http.client http.cookiejar
http.cookies http.server imaplib importlib importlib.abc importlib.machinery importlib.metadata
importlib.resources importlib.resources.abc importlib.util inspect io ipaddress itertools json
json.tool keyword linecache locale logging logging.config logging.handlers lzma mailbox marshal
math mimetypes mmap modulefinder multiprocessing multiprocessing.connection
multiprocessing.managers multiprocessing.pool multiprocessing.shared_memory netrc numbers operator
optparse os os.path pathlib pdb pickle pickletools pkgutil platform plistlib poplib pprint profile
pstats pty pwd py_compile pyclbr pydoc queue quopri random re reprlib resource runpy sched secrets
select selectors shelve shlex shutil signal site smtplib socket socketserver sqlite3 ssl stat
statistics string stringprep struct subprocess symtable sys sysconfig syslog tabnanny tarfile
tempfile termios textwrap threading time timeit token tokenize tomllib trace traceback tracemalloc
tty types typing unicodedata unittest unittest.mock urllib.error urllib.parse urllib.request
urllib.response urllib.robotparser uuid venv warnings wave weakref webbrowser wsgiref.handlers
wsgiref.headers wsgiref.simple_server wsgiref.util wsgiref.validate xml.dom xml.dom.minidom
xml.dom.pulldom xml.etree.ElementTree xml.parsers.expat xml.sax xml.sax.handler xml.sax.saxutils
xml.sax.xmlreader xmlrpc.client xmlrpc.server zipapp zipfile zipimport zlib zoneinfo
"""

_NO_DOCUMENTS = {
    # The C base of socket.socket goes by this name too; without it, its methods are the socket's.
    "socket.SocketType",
    # What is found there is what the running program has put there.
    "sys.breakpointhook",
    "sys.displayhook",
    "sys.excepthook",
    "sys.unraisablehook",
    "threading.excepthook",
}

_ROUTINES = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    staticmethod,
    classmethod,
    type(cache(len)),
)
_ATTRIBUTES = (property, cached_property, types.GetSetDescriptorType, types.MemberDescriptorType)

_Rank = tuple[bool, bool, bool, int, str]


class ChunkRecord(TypedDict):
    """One line of chunks.jsonl."""

    document_id: str
    chunk_index: int
    content: str
    language: str


def standard_library_chunks() -> Iterator[ChunkRecord]:
    """Yield the chunks of the running interpreter's docstrings, sorted by document id and index.

    Each content opens with the qualified name, once as a trail of words (a full-text parser takes
    a dotted name for a single one) and once with the signature, where Python knows it.
    """
    for document_id, documented in sorted(_documents().items()):
        trail = document_id.replace(".", " > ")
        heading = f"{trail}\n{document_id}{_signature(documented)}"
        for index, group in enumerate(_paragraph_groups(_docstring(documented))):
            yield ChunkRecord(
                document_id=document_id,
                chunk_index=index,
                content=f"{heading}\n\n{group}",
                language="en",
            )


def first_words(content: str, words: int = FIRST_WORDS) -> str:
    """Return the first words of a text: what a re-index with a wrong length limit embeds."""
    return " ".join(content.split()[:words])


def _documents() -> dict[str, object]:
    """Return document id -> object, one id for each documented object."""
    modules = _modules()
    exports = _canonical(modules)
    documents: dict[str, object] = {**modules, **exports}
    classes = {name: value for name, value in exports.items() if isinstance(value, type)}
    taken = {id(_plain(value)) for value in exports.values()}
    # Shallow classes first: what several inherit from a base without a document goes to the one
    # nearest to that base.
    for class_name in sorted(classes, key=lambda name: (len(classes[name].__mro__), name)):
        for name, member in _members(classes[class_name], set(classes.values())):
            if id(_plain(member)) not in taken:
                taken.add(id(_plain(member)))
                documents[f"{class_name}.{name}"] = member
    return {name: value for name, value in documents.items() if _docstring(value)}


def _modules() -> dict[str, types.ModuleType]:
    """Import the modules of the list that this interpreter has."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _MODULES.split():
            try:
                found[name] = import_module(name)
            except ImportError:
                continue
    return found


def _canonical(modules: dict[str, types.ModuleType]) -> dict[str, object]:
    """Return qualified name -> function or class, each object under its best name only.

    The best: a builtin, then the module that defines it, then its own name, then the list's order.
    """
    best: dict[int, tuple[_Rank, str, object]] = {}
    for order, (module_name, module) in enumerate(modules.items()):
        builtin = module_name == "builtins"
        for name, value in _public(module, module_name):
            qualified = name if builtin else f"{module_name}.{name}"
            own_name = getattr(value, "__name__", None) == name
            rank = (not builtin, _home(value) != module_name, not own_name, order, name)
            known = best.get(id(_plain(value)))
            if qualified not in _NO_DOCUMENTS and (known is None or rank < known[0]):
                best[id(_plain(value))] = (rank, qualified, value)
    return {qualified: value for _, qualified, value in best.values()}


def _public(module: types.ModuleType, module_name: str) -> Iterator[tuple[str, object]]:
    """Yield the functions and classes that a module offers: its __all__, or what it defines.

    A module written in C and Python both defines in its own name and in `_name`; the builtins
    come from several.
    """
    declared = vars(module) if module_name == "builtins" else getattr(module, "__all__", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(declared or vars(module)):
            value = getattr(module, name, None)
            ours = declared or _home(value) in (module_name, f"_{module_name}")
            if ours and not name.startswith("_") and isinstance(value, (type, *_ROUTINES)):
                yield name, value


def _members(owner: type, documented: set[type]) -> Iterator[tuple[str, object]]:
    """Yield a class's public methods and properties, with those of its undocumented bases.

    A base that is a document of its own keeps its members, and an override that repeats the
    docstring of one of those is left out.
    """
    elsewhere = [base for base in owner.__mro__[1:] if base in documented]
    for name, (base, value) in _attributes(owner).items():
        if name.startswith("_") or base in elsewhere:
            continue
        if not isinstance(value, (*_ROUTINES, *_ATTRIBUTES)):
            continue
        inherited = (_docstring(vars(parent).get(name)) for parent in elsewhere)
        if _docstring(value) not in inherited:
            yield name, value


def _attributes(owner: type) -> dict[str, tuple[type, object]]:
    """Return name -> the class that Python finds the name in, and what it finds there."""
    found: dict[str, tuple[type, object]] = {}
    for base in reversed(owner.__mro__):
        found.update({name: (base, value) for name, value in vars(base).items()})
    return found


def _docstring(documented: object) -> str:
    """Return an object's own docstring, or "" if it has none or only inherits one."""
    text = getattr(_plain(documented), "__doc__", None)
    if not isinstance(text, str):
        return ""
    parents = documented.__mro__[1:] if isinstance(documented, type) else ()
    if any(text == vars(parent).get("__doc__") for parent in parents):
        return ""
    return inspect.cleandoc(text).strip()


def _signature(documented: object) -> str:
    """Return "(a, b=1)", or "" where Python cannot tell.

    Defaults that differ from run to run or machine to machine are cut out: objects that print as
    <...> with their memory address, lists of these, and absolute paths.
    """
    plain = _plain(documented)
    if not callable(plain):
        return ""
    try:
        signature = str(inspect.signature(plain))
    except (AttributeError, NameError, TypeError, ValueError):
        # The first two: inspect evaluates the names in a C function's text (curses' fail).
        return ""
    signature = re.sub(r"<[^<>]*(?:<[^<>]*>[^<>]*)*>|'(?:/|[A-Z]:)[^']+'", "...", signature)
    return re.sub(r"\[\.\.\.(?:, \.\.\.)*\]", "...", signature)


def _plain(documented: object) -> object:
    """Return the function that a static, class or bound method wraps, else the object itself."""
    if isinstance(documented, (types.MethodType, staticmethod, classmethod)):
        return documented.__func__
    return documented


def _home(documented: object) -> str | None:
    """Return the name of the module that says it defines an object."""
    return getattr(documented, "__module__", None)


def _paragraph_groups(text: str) -> Iterator[str]:
    """Yield a text's paragraphs, joined up to GROUP_CHARACTERS; a longer one is cut at a line."""
    group = ""
    for separator, piece in _pieces(text):
        if group and len(group) + len(piece) > GROUP_CHARACTERS:
            yield group
            group = ""
        group = group + separator + piece if group else piece
    yield group


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the paragraphs of a text, or the lines of a long one, after what parts each."""
    for paragraph in re.split(r"\n\s*\n", text):
        if len(paragraph) <= GROUP_CHARACTERS:
            yield "\n\n", paragraph
            continue
        for number, line in enumerate(paragraph.splitlines()):
            yield ("\n" if number else "\n\n"), line

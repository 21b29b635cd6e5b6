"""Recognises paths and numbers among the words of a log. Pure.

A word is what stands between white space; one is looked at without what is around it.
"""

import re
from dataclasses import dataclass

MAX_PATH_CHARACTERS = 240
MAX_WORD_CHARACTERS = 300

_WRAPPING = "\"'`“”‘’«»()[]{}<>,;!?*，。、；！？（）【】《》「」"
_WRAPPING_END = f"{_WRAPPING}.:"
_LINE_NUMBER = re.compile(r"(?::\d+){1,2}(?:-\d+)?:?$")
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]")
_BETWEEN_WIDE = re.compile(r"[\w.%+~/\\:@$€£-]+", re.ASCII)
_NOT_IN_PATHS = re.compile(r"[\s|&;$<>()*?!{}\[\]\"'`=,%^#\x00-\x1f]|//|\.\.\.|\\\\.*\\\\")
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}$")
_DRIVE = re.compile(r"^[A-Za-z]:[\\/]|^\\\\\w|^\.{1,2}\\")
_DOMAIN = re.compile(
    r"^[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|ai|cn|edu|gov|app|co|me|uk|de)$", re.IGNORECASE
)
_HAS_NAME_SIGN = re.compile(r"[a-z0-9][_-][a-z]|^\.\w|[a-z][A-Z]")


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# A name without a directory is a file only by an extension nobody uses for anything else.
_FILE_EXTENSIONS = _words(
    "astro bash bat c cc cfg cjs clj cmake conf cpp cs css csv cts cxx dart db diff dockerfile docx el erl ex exs"
    " fish gif go gradle graphql h hpp hs html ini ipynb java jpeg jpg js json json5 jsonl jsx kt kts less lock"
    " log lua m4 md mdx mjs mk ml mm mts nix patch pdf php pl plist png po prisma properties proto ps1 py pyi"
    " pyx rb rs rst sass scala scss sh sol sql sqlite sqlite3 svelte svg swift tar tex tf tgz toml ts tsv tsx"
    " txt vim vue wasm webp xlsx xml yaml yml zig zip zsh zst"
)
_PRODUCTS = _words(
    "node.js next.js vue.js react.js nuxt.js express.js three.js d3.js ember.js backbone.js discord.js docs.rs"
    " console.log math.log np.log asp.net"
)
_DOTFILES = _words(
    ".env .gitignore .gitattributes .gitmodules .dockerignore .bashrc .zshrc .profile .npmrc .nvmrc .editorconfig"
    " .eslintrc .prettierrc .babelrc .flake8 .pylintrc .vimrc .htaccess .env.local .env.example"
)
_KNOWN_ROOTS = _words(
    "src lib libs app apps test tests spec docs doc bin pkg cmd internal packages scripts script config configs etc"
    " usr home tmp var opt public static templates components node_modules dist build modules tools vendor crates"
    " examples fixtures migrations assets include . .. ~"
)
_DEVICES = ("/dev/", "/bin/", "/usr/bin/", "/usr/local/bin/", "/proc/")
_NOT_ROOTS = _words(
    "origin upstream refs heads tags feature feat fix bugfix hotfix chore release application text image audio"
    " video multipart font"
)


def looks_like_path(word: str) -> bool:
    """A single word, nothing a shell would act on, with a separator or a file's extension. Not a URL, a
    domain, a date, a version, a fraction, a media type, a branch of a remote, or an "and/or"."""
    if not 2 < len(word) <= MAX_PATH_CHARACTERS or _NOT_IN_PATHS.search(word):
        return False
    if _DRIVE.match(word):
        return True
    if ":" in word or "\\" in word or "~" in word[1:] or word[0] in "-+@":
        return False
    return _with_directory(word) if "/" in word else _bare_file(word)


def _bare_file(word: str) -> bool:
    if word in _DOTFILES:
        return True
    name, _, extension = word.rpartition(".")
    if extension.isupper():
        extension = extension.lower()
    return extension in _FILE_EXTENSIONS and bool(name.strip("._")) and word.lower() not in _PRODUCTS


def _with_directory(word: str) -> bool:
    parts = [part for part in word.split("/") if part]
    if not parts or word.startswith(_DEVICES) or not any(map(str.isalpha, word)):
        return False
    first = parts[0]
    if first in _NOT_ROOTS or _DOMAIN.match(first) or (first in "sy" and word[-1] == "/"):
        return False
    known = first in _KNOWN_ROOTS or _EXTENSION.search(parts[-1]) is not None
    if len(parts) == 1:
        # "/compact" is a command, "build/" a folder.
        return known if word[0] == "/" else first.isascii()
    return known or word[0] == "/" or len(parts) > 2 or any(map(_HAS_NAME_SIGN.search, parts))


def bare_word(word: str) -> str:
    """`word` without what prose wraps around a path: quotes, brackets, a link's text, a line number."""
    word = word.rpartition("](")[2].lstrip(_WRAPPING).rstrip(_WRAPPING_END)
    return _LINE_NUMBER.sub("", word) if ":" in word else word


@dataclass(frozen=True, slots=True)
class WordFacts:
    """What a word names. `measured`: those numbers that have a unit or a fraction; of plain integers tool
    output is full."""

    paths: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()


# Most words of a log are neither path nor number; this sorts them out before anything else is asked.
worth_a_look = re.compile(r"/|\\|\.[A-Za-z]|^\W*\d|[^\x00-\x7f]\d").search
_NUMBER_START = frozenset("0123456789$€£¥")
_NUMBER = re.compile(
    r"([$€£¥])?(?:0|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,14})(\.\d+)?"
    r"(%|x|×|ns|us|µs|ms|s|sec|min|px|rem|em|[KMGTkmgt]i?[Bb]?|[kMG]?Hz|fps|rpm)?",
)


def word_facts(word: str) -> WordFacts | None:
    """None when the word names nothing. Chinese is written without spaces: one word may name several."""
    if len(word) > MAX_WORD_CHARACTERS or "://" in word:
        return None
    word = bare_word(word)
    if word.isascii() or word[:1] in "/~." or not _WIDE.search(word):
        return _named_by(word)
    found = [named for run in _BETWEEN_WIDE.findall(word) if (named := _named_by(bare_word(run)))]
    if not found:
        return None
    return WordFacts(
        tuple(path for named in found for path in named.paths),
        tuple(number for named in found for number in named.numbers),
        tuple(number for named in found for number in named.measured),
    )


def _named_by(word: str) -> WordFacts | None:
    if word[:1] in _NUMBER_START and (number := _NUMBER.fullmatch(word)):
        if any(number.groups()):
            return WordFacts(numbers=(word,), measured=(word,))
        # One digit alone counts things; two and more are ports, sizes, limits.
        return WordFacts(numbers=(word,)) if len(word) > 1 else None
    return WordFacts(paths=(_without_diff_side(word),)) if looks_like_path(word) else None


def _without_diff_side(path: str) -> str:
    return path[2:] if path.startswith(("a/", "b/")) and path.count("/") > 1 else path

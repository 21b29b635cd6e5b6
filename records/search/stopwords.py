"""Words that say nothing of what a text is about, and the endings of questions. Pure."""

_ENGLISH = """
a about am an and any are as at be been being but by can could did do does doing for from had has have
having he her hers him his how i if in into is it its just me my no not of on or our she should so some
such than that the their them then there these they this those to too up was we were what when where which
who whom whose why will with would you your yours s t d ll m re ve
"""
ENGLISH = frozenset(_ENGLISH.split())

CHINESE_CHARACTERS = frozenset(
    "的了是在和与及或也都就而着之其这那个有被把对为以于我你他她它们吗呢吧啊呀么什哪谁怎样几多少请问"
)
_PAIRS = """
什么 哪个 哪些 哪里 哪儿 怎么 怎样 为什 多少 几个 是什 是谁 谁是 我们 你们 他们 这个 那个 是否 有没 没有 一个 如何 因为 所以
但是 可以 知道 你知 道吗
"""
CHINESE_PAIRS = frozenset(_PAIRS.split())


def is_chinese_stop(text: str) -> bool:
    """A single character or a pair of neighbours."""
    return text in CHINESE_PAIRS or all(character in CHINESE_CHARACTERS for character in text)

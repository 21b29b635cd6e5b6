"""What people say to coding agents whatever the subject is: "now fix the failing test". Pure.

These are no stop words: records are searched by them. But that a record holds them doesn't make it worth
telling unasked (`relevance`), and the frequencies of a small store can't say so.
"""

import re
from collections.abc import Iterable
from functools import cache

from .folding import fold_case_kept
from .stopwords import CHINESE_CHARACTERS, CHINESE_PAIRS
from .terms import is_cjk, stem

_ENGLISH = """
able above absolutely accept access according across act action actual actually add again ago agree ah
ahead ain all allow almost along already alright also alternative although always amazing amend amount
analyse analyze annotate another answer anybody anymore anyone anything anyway anywhere apart api app
apply approach appropriate apps aren around ask assume attempt available avoid avoiding away awesome back
bad base basic basically bear because become before begin behave behavior behaviour behind believe below
benefit besides best better between beyond big bigger bit blank block blocker both bother bottom branch
brief bring broke broken bug bugs build bunch business calculate call came cannot care careful carefully
carry case cases catch cause cd certain certainly chance change chat cheap check checkout cherry choice
choose ci clarify class clean cleaner cleanup clear clearer clearly close code color colour come command
comment commit commits common compare compile complete completely complex complicated concern config
confirm confuse consider consistent contain content context continue convert cool copy correct correctly
cost couldn count couple course cover crash create current currently cut daily data day days deal debug
decide decision deep default definitely delete depend deploy describe description design desire detail
details detect determine dev develop developer didn diff differ difference different difficult directly
directory discuss display docs document documentation doesn don done double doubt down draft drop due
duplicate during each earlier early easier easily easy edge edit effect effort either else empty end
enough ensure entire entirely entry environment error especially etc even ever every everybody everyone
everything everywhere exact exactly example except exception execute exist expect expected explain explore
extra face fact fail failed failing failure fair fairly fall fallback false familiar fancy far fast faster
feature feedback feel few figure file files fill final finally find fine finish first fit fix fixed fixing
flow focus folder follow following follows forget form format forward found four free fresh front full
fully fun function further future gave general generate get getting give given glad glance go goes going
gone good got great group guess guy guys hadn hand handle happen happy hard hardly hasn haven hear hello
help helper helpers helpful hence here hey hi hide high highlight hint hit hm hmm hold home hope hour
hours hundred idea ideally ignore imagine implement implementation import important impossible improve
include incorrect indeed individual info inform information initial inside install instead integrate
integration interest interesting introduce investigate involve isn issue item iterate job join jump keep
key kick kind kindly knew know known lack large last late later latest lead learn least leave left less
let level life like likely line lines lint linter list listen little live load local log logic logs long
longer look looks loop lost lot love low made main maintain major make making man manage many mark master
match matter may maybe mean meaning meaningful means meantime meanwhile medium meet memo mention merge
merged mess message method might mind minimal minor minute minutes miss missing mistake module moment
month more morning most mostly move much multiple must mustn name namely near necessary need needed
neither never new next nice nicer nit nits nobody none nope nor normal note nothing notice now number
obvious obviously odd offer often oh ok okay old once one ones only open opinion opposite option options
order original other others otherwise ought out output outside over overall overview own package page
parse part particular pass past patch path pattern people per perfect perfectly perform perhaps permission
person pick piece place plain plan play please plenty plus point possible possibly potential pr prefer
prepare present pretty prevent previous previously print prior probably problem proceed process produce
production program progress project prompt proper properly propose prove provide public pull purpose push
pushed put question questions quick quickly quite random rather raw reach read readme ready real really
reason rebase recall recent recently recheck recommend record redo reduce refactor refer reference
regarding related release relevant rely remain remember remind remote remove rename repeat replace reply
repo report repository request require rerun reset resolve respond response rest restart restore result
results resume retry return reuse revert review reviewer rewrite rid right risk root rough run running
said same sanity save saw say scratch screen script search second section see seem seen self send sense
separate serious seriously session set setup several shall shape share short shorter shouldn show side
similar simple simpler simplify simply since single skim skip slightly slow slower small smaller smart
solution solve somebody somehow someone something sometimes somewhat somewhere soon sorry sort sound
source spawn spend split squash stage stand start stash state status stay step steps stick still stop
store straight strange string structure stuff style subject suggest suggestion suit summarise summarize
summary super support suppose sure switch system take taken talk task tasks tell ten term terms terrible
test tests text thank thanks thing things think third though thought thousand three through throw thus
tidy till time times tiny title today todo todos together told tomorrow tonight took tool top topic total
totally touch toward trace traceback track trivial trouble true truly trust try turn tweak twice two type
typo ui unclear under understand undo unexpected unfortunately unit unless unnecessary unrelated unsure
until update upon upstream use used useful useless user users using usual usually util utils valid
validate value values variable various verify version very via view visible wait walk want warning
warnings wasn waste watch way ways web week weeks weird well went weren wether whatever whenever wherever
whether while whole wip wise wish within without won wonder wont word words work worked working works
world worry worse worth wouldn wrap write writing written wrong wrote yeah year years yep yes yesterday
yet zero
"""

# What code of every project is made of: keywords, and the names of folders and of endings.
_CODE = """
arg args array assert async await bin bool boolean break byte bytes cfg char cmd conf const constructor
continue css csv ctx def dict elif else enum env err errorf errors export extends false final float fmt fn
foreach fprintf func function get go goto h hpp html http https id impl import index init inline int int64
interface internal java js json jsx key kt lambda len let lib list lock log map md mod mut new nil node
none null object opt param params path php pkg printf println private props protected pub public py rb ref
regexp require return rs rust self set sh size spec sql src static str string struct sub super switch test
throw throws tmp toml ts tsx txt type typeof undefined unit url usize val value var vec void while xml
yaml yield yml
"""

_CHINESE = """
继续 好的 好了 好吧 谢谢 多谢 感谢 可以 不行 不对 不是 不要 不用 不能 不会 没有 没事 这样 那样 就是 就行
还是 还有 还要 请你 请问 麻烦 帮我 帮忙 给我 告诉 我想 我要 我的 我们 你们 他们 自己 大家 觉得 认为 应该
需要 必须 可能 也许 大概 当然 确实 其实 真的 非常 很多 太多 更多 更好 最好 最后 最近 最新 首先 然后 接着
之后 之前 以后 以前 现在 刚才 刚刚 今天 明天 昨天 时候 时间 开始 结束 完成 完了 剩下 其他 其它 另外 别的
一下 一点 一些 一个 一次 一遍 一起 一样 一直 一步 这个 那个 这些 那些 这里 那里 哪里 哪个 哪些 什么 怎么
怎样 如何 多少 几个 是否 如果 因为 所以 但是 不过 而且 或者 以及 关于 根据 按照 通过 使用 直接 重新 再次
再来 再试 再看 试试 看看 看到 检查 查看 确认 确定 知道 明白 理解 解释 说明 描述 介绍 总结 概括 整理 分析
比较 讨论 考虑 建议 推荐 选择 决定 方法 方式 方案 办法 思路 想法 意见 计划 步骤 第一 第二 第三 任务 工作
项目 问题 原因 结果 情况 内容 部分 地方 东西 事情 要求 需求 功能 效果 目标 重点 细节 例子 示例 简单 复杂
清楚 详细 具体 完整 正确 错误 有错 出错 报错 失败 成功 正常 异常 奇怪 有效 无效 有用 没用 快点 更快 优化
改进 提高 减少 增加 添加 加上 加个 加几 删除 删掉 去掉 移除 清理 修改 修复 修好 修正 更改 改成 改动 更新
替换 调整 恢复 撤销 撤回 回退 取消 停止 暂停 等等 跳过 忽略 保留 保存 保持 打开 关闭 创建 新建 生成 写一
写入 写到 写个 写完 编写 重写 重构 命名 实现 运行 执行 启动 重启 安装 编译 构建 部署 发布 测试 调试 提交
推送 合并 拉取 分支 代码 文件 目录 文档 注释 日志 函数 变量 参数 类型 接口 模块 程序 脚本 命令 输出 输入
打印 显示 列出 返回 版本 配置 设置 数据 用户 系统 上面 下面 里面 前面 后面 所有 全部 每个 任何 同样 相同
不同 特别 只要 只是 只有 已经 正在 马上 立即 赶紧 辛苦 不错 很好 太好 厉害 抱歉 你好 您好 早上 晚上 喜欢
希望 记得 忘了 发现 出现 发生 遇到 变得 变成 成为 属于 包括 包含 主要 重要 一般 通常 经常 总是 从来 比如
例如 对于 由于 虽然 尽管 只好 终于 没问题 就这样 告诉我 你觉得 接下来 为什么 怎么样 是不是 有没有 能不能
行不行 对不对 试一下 看一下 查一下 说一下 下一步 下一个 上一个 改一下 重命名 文件夹 项目里 对不起 没关系
可不可以 单元测试
"""
# Outside of a longer word.
_CHARACTERS = frozenset("要先再不没会能想让给到还很太更最又才个些一") | CHINESE_CHARACTERS
_DIGITS = 3

_HIDDEN = "\0"


def everyday_terms(text: str, terms: Iterable[str]) -> frozenset[str]:
    """Those of the terms of `text` that are everyday: English by their stems, Chinese where they stand, since a
    pair of characters may belong to two words."""
    given = list(terms)
    english = _english()
    found = {term for term in given if term in english or len(term) == 1 or _is_small(term)}
    chinese = [term for term in given if is_cjk(term)]
    if chinese:
        left = _chinese().sub(lambda match: _HIDDEN * len(match[0]), fold_case_kept(text))
        left = "".join(_HIDDEN if character in _CHARACTERS else character for character in left)
        # A single character says nothing beside pairs; alone it is what was asked for.
        found -= {term for term in chinese if len(term) == 1}
        found |= {term for term in chinese if term not in left}
    return frozenset(found)


def _is_small(term: str) -> bool:
    return term.isdecimal() and len(term) < _DIGITS


@cache
def _english() -> frozenset[str]:
    return frozenset(map(stem, f"{_ENGLISH} {_CODE}".split()))


@cache
def _chinese() -> re.Pattern[str]:
    words = {*_CHINESE.split(), *CHINESE_PAIRS}
    return re.compile("|".join(sorted(words, key=lambda word: (-len(word), word))))

"""Synonyms in software work, in English and Chinese. Pure, except that it reads the owner's own list.

A word of a group stands for the others, at half their weight; a hit through them says so. `aliases.json` in
MEMEX_HOME adds groups, or words to a group: {"name": ["word", "another word"]}.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

import orjson

from .folding import fold
from .query import Asked
from .terms import Sort, chunk_terms, stem

logger = logging.getLogger(__name__)

WEIGHT = 0.5
GROUPS_MAX, WORDS_MAX = 1_000, 50

BUILT_IN: dict[str, list[str]] = {
    "database": ["database", "db", "sql", "sqlite", "postgres", "postgresql", "mysql", "数据库"],
    "deploy": ["deploy", "deployment", "release", "rollout", "ship", "部署", "发布", "上线"],
    "test": ["test", "tests", "pytest", "spec", "verify", "测试", "验证"],
    "error": ["error", "exception", "failure", "crash", "traceback", "错误", "报错", "异常", "失败", "崩溃"],
    "fix": ["fix", "repair", "patch", "修复", "修正"],
    "bug": ["bug", "defect", "issue", "缺陷", "问题"],
    "config": ["config", "configuration", "settings", "options", "配置", "设置"],
    "authentication": ["authentication", "auth", "login", "signin", "登录", "认证", "鉴权"],
    "permission": ["permission", "authorization", "access", "权限", "授权"],
    "cache": ["cache", "caching", "redis", "memcached", "缓存"],
    "queue": ["queue", "broker", "kafka", "rabbitmq", "celery", "队列"],
    "dependency": ["dependency", "package", "library", "依赖", "包"],
    "performance": ["performance", "latency", "slow", "speed", "throughput", "性能", "延迟", "变慢"],
    "memory": ["memory", "ram", "oom", "内存"],
    "container": ["container", "docker", "podman", "kubernetes", "k8s", "容器", "镜像"],
    "migration": ["migration", "migrate", "schema", "迁移"],
    "backup": ["backup", "restore", "snapshot", "备份", "恢复"],
    "log": ["log", "logging", "logs", "日志"],
    "function": ["function", "method", "procedure", "函数", "方法"],
    "document": ["document", "documentation", "docs", "readme", "文档"],
    "search": ["search", "query", "lookup", "搜索", "检索", "查询"],
    "delete": ["delete", "remove", "drop", "erase", "删除", "移除"],
    "upgrade": ["upgrade", "update", "bump", "升级", "更新"],
    "refactor": ["refactor", "restructure", "cleanup", "重构"],
    "version control": ["git", "commit", "branch", "repository", "repo", "提交", "分支", "仓库"],
    "interface": ["ui", "frontend", "interface", "界面", "前端"],
    "server": ["server", "backend", "service", "服务器", "后端", "服务"],
    "network": ["network", "connection", "socket", "网络", "连接"],
    "timeout": ["timeout", "deadline", "超时"],
    "concurrency": ["concurrency", "parallel", "thread", "lock", "deadlock", "并发", "线程", "死锁"],
    "encrypt": ["encrypt", "encryption", "tls", "certificate", "加密", "证书"],
    "password": ["password", "secret", "credential", "token", "密码", "密钥", "凭证"],
    "schedule": ["schedule", "cron", "timer", "定时", "计划任务"],
    "translate": ["translate", "translation", "i18n", "localization", "翻译", "国际化"],
}


def aliases_read(path: Path) -> dict[str, list[str]]:
    """The built-in groups and those of `path`. A file that can't be used costs a warning."""
    groups = {name: list(words) for name, words in BUILT_IN.items()}
    try:
        given = orjson.loads(path.read_bytes())
        if not isinstance(given, dict):
            raise ValueError("it must be one object: {name: [words]}")
    except FileNotFoundError:
        return groups
    except (OSError, ValueError) as error:
        logger.warning("%s is passed over: %s", path, error)
        return groups
    for name, words in list(given.items())[:GROUPS_MAX]:
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            groups.setdefault(name, []).extend(words[:WORDS_MAX])
        else:
            logger.warning("%s: %r is passed over, since it is no list of words", path, name)
    return groups


class Aliases:
    def __init__(self, groups: Mapping[str, list[str]]) -> None:
        self._words: dict[str, set[str]] = {}
        self._chinese: dict[str, set[str]] = {}
        for words in groups.values():
            folded = {fold(word).strip() for word in words} - {""}
            for word in folded:
                known = self._words if word.isascii() else self._chinese
                known.setdefault(stem(word) if word.isascii() else word, set()).update(folded - {word})

    def expanded(self, asked: Asked) -> Asked:
        """With the terms of synonyms. A question that is one name or quotation stays as it is."""
        origins: dict[str, str] = {}
        for term in asked.weights:
            for synonym in self._words.get(term, ()):
                origins.setdefault(synonym, term)
        if not asked.verbatim.isascii():
            for word, others in self._chinese.items():
                if word in asked.verbatim:
                    for synonym in others:
                        origins.setdefault(synonym, word[:2])
        weights = dict(asked.weights)
        added: dict[str, str] = {}
        for word, origin in sorted(origins.items()):
            found = [term.text for term in chunk_terms(word) if term.sort is not Sort.CHARACTER]
            for text in found:
                if text not in weights:
                    weights[text] = WEIGHT / len(found)
                    added[text] = origin
        return asked.with_weights(weights, added) if added else asked

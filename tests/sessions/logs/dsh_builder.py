"""Writes DSH logs: a small story teller for tests and samples."""

import json
from pathlib import Path
from typing import Any

from backports.zstd import CompressionParameter, compress

START = 1_790_000_000_000
Json = dict[str, Any]


def text(words: str) -> list[Json]:
    return [{"type": "text", "text": words}]


def zstd_frame(data: bytes) -> bytes:
    """A frame as DSH writes it: with a checksum, without the size of its content."""
    options = {CompressionParameter.checksum_flag: 1, CompressionParameter.content_size_flag: 0}
    return compress(data, options=options)


class DshLog:
    """Each method adds a row and returns its event number."""

    def __init__(self, *, version: int = 4, session_id: str = "session-demo", **header: Any) -> None:
        self.version = version
        self.seq = 0
        head = {
            "type": "session",
            "version": version,
            "id": session_id,
            "createdAt": START,
            "cwd": "/home/dev/demo",
        }
        if version >= 2:
            head["isSeeded"] = False
        self.rows: list[Json] = [head | {"delegationDepth": 0} | header]

    def event(self, kind: str, data: Json, **more: Any) -> int:
        seq = self.seq
        self.rows.append({"type": kind, "seq": seq, "time": START + 1000 * (seq + 1), "data": data, **more})
        self.seq += 1
        return seq

    def system(self, words: str, **more: Any) -> int:
        message = {"id": f"s{self.seq}", "role": "system", "content": text(words)}
        message["source"] = {"kind": "system-prompt"}
        return self.event("system/message", {"message": message}, **({"surfaceOp": "append"} | more))

    def user(
        self, content: str | list[Json], *, kind: str = "user", op: Any = "append", **source: Any
    ) -> int:
        blocks = text(content) if isinstance(content, str) else content
        data = {"id": f"m{self.seq}", "role": "user", "content": blocks, "source": {"kind": kind, **source}}
        return self.event("user/message", data, surfaceOp=op)

    def assistant(self, words: str = "", *, calls: dict[str, str] | None = None, **data: Any) -> int:
        """`calls`: the shell command of each call, by its id."""
        content = text(words) if words else []
        for call_id, command in (calls or {}).items():
            arguments = json.dumps({"command": command})
            content.append({"type": "tool-call", "id": call_id, "name": "bash", "arguments": arguments})
        source = {"kind": "model", "provider": "demo", "model": "demo-1"}
        message = {"id": f"a{self.seq}", "role": "assistant", "content": content, "source": source}
        return self.event("assistant/message", {"message": message, **data}, surfaceOp="append")

    def result(self, call_id: str, output: str, *, op: Any = "append", message_id: str = "") -> int:
        source = {"kind": "tool", "callId": call_id}
        message: Json = {"id": message_id or f"r-{call_id}", "source": source}
        if self.version < 4:
            nested = {"type": "tool-result", "toolCallId": call_id, "content": text(output), "isError": False}
            message |= {"role": "user", "content": [nested]}
        else:
            message |= {"role": "tool", "toolCallId": call_id, "content": text(output), "isError": False}
        return self.event("tool/result", {"message": message}, surfaceOp=op)

    def replace_op(self, start: int, end: int) -> Json:
        keys = ("start", "end") if self.version < 3 else ("startSeq", "endSeq")
        return {"op": "replace", **dict(zip(keys, (start, end), strict=True))}

    def prune(self, shadowed: list[int]) -> int:
        data = {"shadowedRange": {"start": shadowed[0], "end": shadowed[-1]}, "shadowedSeqs": shadowed}
        return self.event("compaction/prune", data | {"shadowedTokenCount": 2540})

    def summary(self, compaction_id: str, shadowed: list[int], words: str, **data: Any) -> int:
        fields = {
            "compactionId": compaction_id,
            "summary": text(words),
            "shadowedRange": {"start": shadowed[0], "end": shadowed[-1]},
            "shadowedSeqs": shadowed,
            "shadowedTokenCount": 1460,
            "provider": "demo",
            "model": "demo-1",
        }
        return self.event("compaction/summary", fields | data)

    def checkpoint(self, compaction_id: str, start: int, end: int, words: str, **source: Any) -> int:
        content = text("An earlier part of this talk:\n\n<compacted-summary>") + text(words)
        content += text("</compacted-summary>")
        if self.version < 4:
            source = {"plugin": "compact", **source}
        kind = "plugin" if self.version < 4 else "compact-checkpoint"
        if compaction_id:
            source["compactionId"] = compaction_id
        return self.user(content, kind=kind, op=self.replace_op(start, end), **source)

    def compaction(self, compaction_id: str, shadowed: list[int], words: str, **data: Any) -> int:
        """A whole one; returns the number of its checkpoint."""
        self.event("compaction/start", {"compactionId": compaction_id, **data})
        self.summary(compaction_id, shadowed, words, **data)
        seq = self.checkpoint(compaction_id, shadowed[0], shadowed[-1], words, **data)
        self.event("compaction/end", {"compactionId": compaction_id, **data})
        return seq

    def lines(self) -> list[bytes]:
        return [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in self.rows]

    def data(self) -> bytes:
        return b"".join(self.lines())

    def write(self, folder: Path) -> Path:
        """As DSH would under `folder`, its sessions folder: the header is the first frame."""
        head = self.rows[0]
        generation = f".v{self.version}" if self.version else ""
        path = folder / "--work-demo--" / str(head["id"]) / f"session{generation}.jsonl.zstd"
        path.parent.mkdir(parents=True)
        header, *rows = self.lines()
        batches = [b"".join(rows[at : at + 5]) for at in range(0, len(rows), 5)]
        path.write_bytes(b"".join(map(zstd_frame, [header, *batches])))
        return path


def story(version: int = 4, **header: Any) -> DshLog:
    """A prune, a compaction by hand, one that failed, one over the first; an image and a file."""
    log = DshLog(version=version, **header)
    log.event("turn/start", {"turn": 1})
    log.system("You are a demo agent.")
    asked = log.user("Find why checkout test T-4711 fails on port 8123.")
    log.event("request/header", {"header": {"config": {"provider": "demo", "model": "demo-1"}}})
    log.event("request/context", {"provider": "demo", "model": "demo-1", "contextWindow": 128_000})
    log.event("session/title", {"title": "查找结账测试失败原因", "messageSeqs": [asked]})
    usage = {"inputTokens": 90, "cacheReadTokens": 1000, "cacheWriteTokens": 10, "outputTokens": 8}
    ran = log.assistant("Running it.", calls={"c1": "pytest -k T4711"}, usage=usage)
    log.event("tool/call", {"callId": "c1", "name": "bash", "arguments": '{"command": "pytest -k T4711"}'})
    full = log.result("c1", "E   ConnectionRefusedError: 127.0.0.1:8123\n" + "noise\n" * 400)
    log.prune([full])
    short = log.result("c1", "E   ConnectionRefusedError: 127.0.0.1:8123", op=log.replace_op(full, full))
    decided = log.assistant("We decided to add WAIT_FOR_PORT=8123.")
    first = log.compaction("k1", [asked, ran, short], "## Current Work\n- refused", sourceCommandId="cmd-1")
    hashes = ["2a" * 32, "25" * 32]
    log.user(
        [
            *text("看这张截图，然后继续。"),
            {
                "type": "image",
                "attachment": {
                    "attachmentId": f"sha256:{hashes[0]}",
                    "mediaType": "image/png",
                    "name": "a.png",
                },
            },
            {"type": "file", "attachment": {"attachmentId": f"sha256:{hashes[1]}", "name": "notes.txt"}},
        ]
    )
    log.event("compaction/start", {"compactionId": "k2"})
    log.event("compaction/end", {"compactionId": "k2", "error": "summary was cut"})
    log.event("acme/telemetry", {"note": "a reader may skip this"}, ignorable=True)
    log.assistant("端口已等待，测试通过。")
    log.compaction("k3", [first, decided], "## Current Work\n- done")
    log.event("turn/end", {"turn": 1, "reason": {"kind": "completed"}})
    return log

"""findings.jsonl and verdict.json on a terminal."""

import json
from pathlib import Path

from eo_audit.audit import verdict
from eo_audit.audit.findings import write
from eo_audit.words import json_text

NASTY = "\x00\x07\x1b[31m\x7f\x85\x9b2J\u200b\u200f\u2028\u202e\u2066\ufeff\udc80"


def test_no_character_that_a_terminal_obeys(tmp_path: Path) -> None:
    verdict.write(tmp_path, {"headline": f"a{NASTY}żółć 😀", "list": [NASTY]})
    text = (tmp_path / "verdict.json").read_bytes().decode()
    assert [c for c in text if not c.isprintable() and c != "\n"] == []
    assert json.loads(text)["headline"] == f"a{NASTY}żółć 😀" and "żółć 😀" in text


def test_one_finding_stays_one_line(tmp_path: Path) -> None:
    assert "\n" not in json_text({"message": f"{NASTY}\n"})
    write(tmp_path, [])
    assert (tmp_path / "findings.jsonl").read_bytes() == b""

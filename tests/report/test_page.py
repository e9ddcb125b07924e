"""report.html in a real browser: what others wrote is only text; filters, links, copying, keyboard, print; light, dark, wide, phone."""

from __future__ import annotations

import base64
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.report.conftest import look
from tests.report.hand_made import COMMAND, NOW, STEPS, Rows, finding, incident, incident_page, page, partition, unseen, verdict, write

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

HOSTILE = [
    "<script>document.title='owned'</script>",
    "</script><img src=x onerror=\"document.title='owned'\">",
    '"><svg onload="document.title=\'owned\'">',
    "{{ 7 * 7 }} ${7*7} <!-- --> ]]> &lt;b&gt; &#x3c;i&#x3e;",
    "</style><style>body{display:none}</style></title>",
    "javascript:document.title='owned'//`id`'; x",
]


def all_of(browser: Chrome, selector: str) -> list[WebElement]:
    return browser.find_elements("css selector", selector)


def text_of(browser: Chrome, selector: str) -> str:
    return str(browser.execute_script("return document.querySelector(arguments[0]).textContent", selector))


def shown(browser: Chrome) -> list[str]:
    """Anchors of the incidents that are laid out."""
    return list(browser.execute_script("return [...document.querySelectorAll('#incidents > article')].map((a) => a.id)"))


def targets(browser: Chrome, selector: str) -> list[str]:
    """Where links lead, within the page."""
    return list(browser.execute_script("return [...document.querySelectorAll(arguments[0])].map((a) => a.hash.slice(1))", selector))


def choose(browser: Chrome, name: str, value: str) -> None:
    set_it = "const [name, value] = arguments, field = document.getElementById(name); field.value = value;"
    browser.execute_script(f"{set_it} field.dispatchEvent(new Event('input', {{bubbles: true}}))", f"f-{name}", value)


def complaints(browser: Chrome) -> list[str]:
    """What the browser complained about on this page."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def opened(browser: Chrome, folder: Path, html: str) -> None:
    complaints(browser)
    browser.get(write(folder, html))


@pytest.mark.parametrize("text", HOSTILE)
def test_what_others_wrote_is_only_text(browser: Chrome, tmp_path: Path, text: str) -> None:
    """Transactional id, group, topic, cluster, file name, quoted line, message, remedy, reasons: in the page and in what it adds later."""
    names = {"transactional_id": text, "group": text, "topic": text, "cluster": text, "message": text, "cause": text, "remedy": text}
    evidence = [{"dump_file": text, "byte_offset": 1, "length": 1, "offset": 1}]
    findings = [finding(f"{number:04}", **names, evidence=evidence) for number in range(70)]
    about = verdict(
        rules={"T01": unseen(text, text)}, policy=text, as_of_source=text,
        inputs=[{"path": text, "digest": text, "bytes": 1, "unread_bytes": 0}],
        partitions=[partition(topic=text, cluster=text)],
        accepted=[{"finding_id": "0000".ljust(64, "0"), "what": text, "who": text, "why": text, "until": "2026-12-31", "expired": False}],
    )  # fmt: skip
    steps = [step | {"transactional_id": text} for step in STEPS]
    reader = Rows(about["partitions"], [row | {"truth": text} for row in incident()[2].batches], {text: steps})  # type: ignore[arg-type, operator]
    opened(browser, tmp_path, page(about, findings, reader, quoted=f"{text}\n{text}"))
    browser.find_element("id", "more").click()
    assert len(shown(browser)) == 70
    assert browser.title == "eo-audit: fail"
    assert [element.get_attribute("type") or "script" for element in all_of(browser, "script")] == ["application/json", "script"]
    assert not all_of(browser, "img, iframe, object, embed, b, i, svg[onload], [onerror], [href^='javascript'], link, base")
    assert len(all_of(browser, "style")) == 1 + len(all_of(browser, "svg style"))
    for article in ("#incidents > article:first-child", "#incidents > article:last-child"):
        assert text_of(browser, f"{article} h3") == text
        assert text_of(browser, f"{article} .quote code") == f"{text}\n{text}"
        assert text in text_of(browser, f"{article} .address")
        assert text in text_of(browser, f"{article} .where")
    assert text in text_of(browser, "#ids figcaption")
    assert text in text_of(browser, "#partitions tbody")
    assert text in text_of(browser, "#run")
    assert text in text_of(browser, "header .accepted")
    assert not complaints(browser)


def test_characters_that_act_are_spelled_out(browser: Chrome, tmp_path: Path) -> None:
    evil = "a\u202eb\x1b[2Jc\x00d\u2028e\u200bf"
    opened(
        browser, tmp_path, page(verdict(), [finding("a1", message=evil, transactional_id=evil, remedy=f"x `kafka {evil}`")], quoted=evil)
    )
    seen = text_of(browser, "body")
    assert not re.search("[\u202e\x1b\x00\u2028\u200b]", seen)
    assert seen.count("a\\u202eb\\x1b[2Jc\\x00d\\u2028e\\u200bf") >= 4


def test_one_incident_reads_as_one(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, incident_page())
    assert text_of(browser, "h1") == (
        "orders-0: read_committed consumers are stuck at offset 6 since 2026-11-21 04:25:15 UTC behind producer 1; "
        "only an abort frees them, or that producer's next marker here."
    )
    assert len(shown(browser)) == 2
    assert "1 more finding of the same cause: L01" in text_of(browser, "#incidents > article:first-child summary")
    assert "The aborted index of orders-0 was not dumped" in text_of(browser, "header .unseen")
    assert "Dump the .txnindex files of orders-0" in text_of(browser, "#blind")
    assert text_of(browser, "header .to-see") == "To see it: Dump the .txnindex files of orders-0"
    assert "Batches by what was decided" in text_of(browser, ".legend")
    assert not complaints(browser)


def test_the_page_says_from_when_to_when(browser: Chrome, tmp_path: Path) -> None:
    times = {"broker_first_ms": NOW - 60_000, "broker_last_ms": NOW, "client_first_ms": None, "client_last_ms": None}
    opened(browser, tmp_path, page(verdict(covers={"partitions": 6, "replica_logs": 18, **times}), [finding("a")]))
    assert text_of(browser, "header .covers") == "Covers 6 partitions (18 logs), 2026-11-21 05:24:15 to 05:25:15 UTC by brokers' clocks."


def test_clusters_are_named_where_there_are_several(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, page(verdict(), [finding("a1"), finding("b2", cluster="us")]))
    assert ["cluster eu" in where.text or "cluster us" in where.text for where in all_of(browser, ".incident > .where")] == [True, True]
    opened(browser, tmp_path, page(verdict(), [finding("a1")]))
    assert "cluster" not in text_of(browser, ".incident > .where")


def test_the_broker_is_named_where_others_do_not_show_it(browser: Chrome, tmp_path: Path) -> None:
    copies = verdict(partitions=[partition(broker=1), partition(broker=2)])
    opened(browser, tmp_path, page(copies, [finding("a1", brokers=[2]), finding("b2", brokers=[1, 2])]))
    assert ["broker 2" in where.text for where in all_of(browser, ".incident > .where")] == [True, False]
    opened(browser, tmp_path, page(verdict(), [finding("a1")]))
    assert "broker" not in text_of(browser, ".incident > .where")


def test_filters(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, incident_page())
    grave, gap = shown(browser)
    for name, value, left in (
        ("topic", "payments", [gap]),
        ("severity", "critical", [grave]),
        ("rule", "L01", [grave]),
        ("text", "PAYMENTS", [gap]),
    ):
        choose(browser, name, value)
        assert shown(browser) == left
        assert text_of(browser, "#f-count") == "1 of 2 incidents"
        browser.find_element("id", "f-all").click()
        browser.execute_async_script("setTimeout(arguments[0], 50)")
        assert shown(browser) == [grave, gap]
        assert text_of(browser, "#f-count") == "2 incidents"
    choose(browser, "topic", "payments")
    choose(browser, "rule", "L01")
    assert shown(browser) == []


def test_finding_partition_and_transactional_id_lead_to_each_other(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, incident_page())
    grave = shown(browser)[0]
    assert browser.execute_script(DEAD_LINKS) == []
    to_partition, to_id = targets(browser, f"#{grave} > .where a:not(.rule)")
    assert "orders-0 on broker 1" in text_of(browser, f"#{to_partition} figcaption")
    assert "late-writer-0" in text_of(browser, f"#{to_id} figcaption")
    for name, other in ((to_partition, to_id), (to_id, to_partition)):
        assert {grave, other} <= set(targets(browser, f"#{name} .links a"))
    choose(browser, "topic", "payments")
    browser.find_element("css selector", f"#{to_id} .links a[href='#{grave}']").click()
    browser.execute_async_script("setTimeout(arguments[0], 100)")
    assert grave in shown(browser)  # the filter that hid it is off
    assert browser.execute_script("return document.activeElement.id") == grave


def test_a_link_to_an_incident_that_is_not_laid_out_yet(browser: Chrome, tmp_path: Path) -> None:
    findings = [finding(f"{number:016x}", partition=number) for number in range(500)]
    opened(browser, tmp_path, page(verdict(), findings))
    assert len(shown(browser)) == 60
    browser.get(f"{browser.current_url.split('#')[0]}#incident-{400:016x}")
    browser.execute_async_script("setTimeout(arguments[0], 100)")
    assert f"incident-{400:016x}" in shown(browser)


def test_commands_are_copied_whole(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, incident_page())
    # What all of them take for granted is said once, above.
    assert "--command-config" in text_of(browser, "#findings > .bring .command code")
    assert text_of(browser, "#incidents .command code") == COMMAND
    browser.find_element("css selector", "#incidents .copy").click()
    browser.execute_async_script("setTimeout(arguments[0], 100)")
    said = browser.find_element("css selector", "#incidents .copy").text
    assert said == "Copied" or browser.execute_script("return getSelection().toString()") == COMMAND


def test_keyboard_and_names_for_screen_readers(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, incident_page())
    from selenium.webdriver.common.keys import Keys

    browser.find_element("css selector", "body").send_keys(Keys.TAB)
    assert browser.execute_script("return document.activeElement.className") == "skip"
    ids = browser.execute_script("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
    assert all(svg.get_attribute("aria-label") and svg.get_attribute("role") == "img" for svg in all_of(browser, "svg"))
    assert not all_of(browser, "input:not(label input), select:not(label select)")
    levels = [int(heading.tag_name[1]) for heading in all_of(browser, "h1, h2, h3, h4")]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    summary = browser.find_element("css selector", "summary")
    summary.send_keys(Keys.ENTER)
    assert browser.execute_script("return document.querySelector('details').open")


def test_ten_thousand_findings(browser: Chrome, tmp_path: Path) -> None:
    findings = [finding(f"{number:08x}", severity="error", topic=f"t{number % 50}", partition=number) for number in range(10_000)]
    about = verdict(partitions=[partition(number) for number in range(5_000)])
    opened(browser, tmp_path, page(about, findings))
    assert len(shown(browser)) == 60  # what is laid out does not grow with the findings
    assert len(all_of(browser, ".partitions tbody tr")) == 500
    assert text_of(browser, "#f-count") == "10,000 incidents"
    browser.find_element("id", "more").click()
    assert len(shown(browser)) == 120
    choose(browser, "topic", "t7")
    assert text_of(browser, "#f-count") == "200 of 10,000 incidents"


def pixels(browser: Chrome) -> bytes:
    return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {})["data"])


# Texts whose contrast to what is behind them is below 4.5 (WCAG AA): the ratio, and whose text it is.
CONTRASTS = """
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, part, i) => sum + part * linear(c[i] / 255), 0);
  const paper = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const says = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  const places = 'header *, nav *, #findings *, #blind *, table *, .links *, .legend *';
  return [...document.querySelectorAll(places)].filter(says).map((e) => {
    const lights = [light(rgb(getComputedStyle(e).color)), light(paper(e))];
    return [(Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05), e.className || e.tagName];
  }).filter(([ratio]) => ratio < 4.5);
"""
DEAD_LINKS = """
  const within = [...document.querySelectorAll('a[href^="#"]')];
  return within.filter((link) => !document.getElementById(link.hash.slice(1))).map((link) => link.textContent);
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 1920, 390], ids=["desk", "wide", "phone"])
def test_screenshots(browser: Chrome, tmp_path: Path, width: int, dark: bool) -> None:
    look(browser, width=width, dark=dark)
    opened(browser, tmp_path, incident_page())
    picture = pixels(browser)
    (tmp_path / f"report-{width}-{'dark' if dark else 'light'}.png").write_bytes(picture)
    assert len(picture) > 20_000  # not blank
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")  # nothing runs off the side
    assert browser.execute_script(CONTRASTS) == []
    colours = browser.execute_script(
        "return [...document.querySelectorAll('svg [style*=\"var(--\"]')].map((e) => getComputedStyle(e).fill)"
    )
    assert len(set(colours)) > 4  # charts take the page's colours


def test_print(browser: Chrome, tmp_path: Path) -> None:
    opened(browser, tmp_path, incident_page())
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    assert not any(element.is_displayed() for element in all_of(browser, "nav, .filters, button"))
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert all(element.is_displayed() for element in all_of(browser, ".effect h4"))
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert not browser.execute_script("return document.querySelector('details').open")


def test_nothing_leaves_the_page(browser: Chrome, tmp_path: Path) -> None:
    """One file: no address of anybody else's in it, and the browser fetched nothing."""
    html = incident_page()
    assert not re.search(r"""(?:src|href)=["'](?!#)|url\((?!#)|@import|<link""", html)
    opened(browser, tmp_path, html)
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0

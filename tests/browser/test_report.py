"""The report in a real browser: drawn, silent, offline, sortable, and safe with hostile names."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from browser.chromium import Chromium, find_chromium
from calibrant.evaluation.report import page
from calibrant.report.answers import Answers

pytestmark = pytest.mark.browser
MARKUP = "</script><img src=x onerror=alert(1)>"  # a rule escapes the quotes of what follows
HOSTILE = "</script><img src=x onerror=alert(1)> & \"quoted\" 'group' {{ 7*7 }}"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on this machine")
    browser = Chromium(program, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rng = np.random.default_rng(5)
    n = 3000
    p = rng.beta(2, 3, n)
    kind = rng.choice(["north", "south", HOSTILE], n)
    y = rng.random(n) < np.clip(p + 0.15 * (kind == HOSTILE), 0, 1)
    evaluation = cb.evaluate(y, p, groups={HOSTILE: kind}, seed=1, title=HOSTILE)
    return evaluation.to_html(tmp_path_factory.mktemp("report") / "report.html")


def test_it_draws_every_chart_without_an_error_or_a_request(browser, report):
    browser.open(report)
    charts = browser.js("document.querySelectorAll('.chart').length")
    assert charts >= 6
    assert browser.js("document.documentElement.dataset.drawn") == str(charts)
    assert browser.js("document.querySelectorAll('.chart svg .mark-line path').length") >= 4
    assert browser.js("[...document.querySelectorAll('.chart')].every(c => c.querySelector('svg'))")
    assert browser.errors == []
    assert browser.requests == [report.resolve().as_uri()]


def test_the_group_picker_changes_the_chart(browser, report):
    browser.open(report)
    line = "document.querySelector('#chart-group-curves .mark-line path').getAttribute('d')"
    before = browser.js(line)
    choices = browser.js(
        "[...document.querySelectorAll('#chart-group-curves select option')].map(o => o.text)"
    )
    assert len(choices) >= 3
    assert any(MARKUP in choice for choice in choices)
    browser.js(
        "(() => { const s = document.querySelector('#chart-group-curves select'); s.selectedIndex = 2;"
        " s.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    browser.wait(f"{line} !== {before!r}", seconds=5)
    assert browser.errors == []


def test_a_click_on_a_group_picks_it(browser, report):
    browser.open(report)
    chosen = "document.querySelector('#chart-group-curves select').value"
    before = browser.js(chosen)
    browser.js("document.querySelectorAll('details.more').forEach(d => { d.open = true; })")
    browser.click("#chart-groups .mark-symbol.role-mark path:last-child")
    browser.wait(f"{chosen} !== {before!r}", seconds=5)


def test_a_click_on_a_heading_sorts_the_table_both_ways(browser, report):
    browser.open(report)
    rows = "[...document.querySelector('#measures table').tBodies[0].rows]"
    keys = f"{rows}.map(r => Number(r.cells[2].dataset.key))"
    button = "document.querySelector('#measures th:nth-child(3) button').click()"
    browser.js(button)
    up = browser.js(keys)
    browser.js(button)
    down = browser.js(keys)
    assert up == sorted(up)
    assert down == sorted(up, reverse=True)
    assert len(set(up)) > 3


def test_hostile_names_are_shown_as_text(browser, report):
    browser.open(report)
    assert browser.js("document.title") == HOSTILE
    assert browser.js("document.querySelector('h1').textContent") == HOSTILE
    assert browser.js("document.querySelectorAll('img').length") == 0
    assert MARKUP in browser.js("document.querySelector('#whom').textContent")
    assert (
        browser.js("JSON.parse(document.getElementById('calibrant-evaluation').textContent).title") == HOSTILE
    )


@pytest.mark.parametrize("width", [360, 768, 1440])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_sticks_out_at_any_width(browser, report, width, dark):
    browser.open(report, width=width, dark=dark)
    assert browser.js("document.documentElement.scrollWidth") <= width
    drawings = "[...document.querySelectorAll('.chart svg')]"
    assert browser.js(f"{drawings}.every(s => s.getBoundingClientRect().right <= innerWidth)")
    browser.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert browser.js(f"{drawings}.every(s => s.clientWidth > 200)")
    assert browser.js("document.documentElement.scrollWidth") <= width


def test_no_word_of_a_chart_is_cut_off_on_a_phone(browser, report):
    browser.open(report, width=360)
    browser.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    beyond = (
        "[...document.querySelectorAll('.chart svg')].flatMap(s => [...s.querySelectorAll('text')].filter("
        "t => t.getBoundingClientRect().right > s.getBoundingClientRect().right + 1).map(t => t.textContent))"
    )
    assert browser.js(beyond) == []


def test_a_long_word_in_a_table_stays_in_its_column_on_a_phone(browser, report):
    browser.open(report, width=360)
    cell = "document.querySelector('#whom td')"
    browser.js(f"{cell}.textContent = 'x'.repeat(60)")
    assert browser.js(f"{cell}.scrollWidth <= {cell}.clientWidth")


def test_dark_mode_and_paper_have_their_own_colours(browser, report):
    ink = "getComputedStyle(document.querySelector('#chart-reliability svg text')).fill"
    paper = "getComputedStyle(document.body).backgroundColor"
    browser.open(report)
    light = browser.js(f"[{ink}, {paper}]")
    browser.open(report, dark=True)
    dark = browser.js(f"[{ink}, {paper}]")
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.js(f"[{ink}, {paper}]") == light


def test_the_raw_numbers_can_be_read(browser, report):
    browser.open(report)
    browser.js("document.querySelector('details.raw').open = true")
    browser.wait("document.getElementById('raw').textContent.includes('schema_version')")


def test_the_mathematics_is_folded_until_it_is_asked_for_or_printed(browser, report):
    browser.open(report)
    parts = "[...document.querySelectorAll('details.more')].map(d => d.open)"
    assert not any(browser.js(parts))
    assert len(browser.js(parts)) >= 3
    browser.js("window.dispatchEvent(new Event('beforeprint'))")
    assert all(browser.js(parts))
    browser.js("window.dispatchEvent(new Event('afterprint'))")
    assert not any(browser.js(parts))
    browser.js("location.hash = '#measures'")
    browser.wait("document.querySelector('#measures details').open")
    assert browser.js("document.documentElement.scrollHeight") < 3500


def test_the_first_screen_has_verdict_diagram_groups_and_next_step(browser, report):
    browser.open(report, width=1280, height=900)
    assert browser.js("document.documentElement.scrollHeight") <= 3500
    for selector in (".verdict", ".next", "#chart-reliability svg", "#overview table"):
        assert browser.js(f"document.querySelector('{selector}').getBoundingClientRect().top") < 800
    assert "--" not in browser.js("document.body.innerText").replace(HOSTILE, "")


def test_the_page_is_short_even_with_everything_unfolded(browser, tmp_path):
    rng = np.random.default_rng(6)
    p, groups = rng.beta(2, 3, 3000), {name: rng.choice(list("abcd"), 3000) for name in ("area", "work")}
    found = cb.evaluate(rng.random(3000) < p**1.2, p, groups=groups, seed=1)
    browser.open(found.to_html(tmp_path / "report.html"), width=1280, height=900)
    browser.js("document.querySelectorAll('details.more').forEach(d => { d.open = true; })")
    assert browser.js("document.documentElement.scrollHeight") <= 3500
    crowded = (
        "(() => { const t = [...document.querySelectorAll('#chart-groups .role-axis-label text')].map("
        "e => e.getBoundingClientRect()); return t.some((a, k) => t.slice(k + 1).some("
        "b => a.top < b.bottom - 3 && b.top < a.bottom - 3 && a.left < b.right && b.left < a.right)); })()"
    )
    assert not browser.js(crowded)


def test_the_page_of_a_log_is_as_short(browser, tmp_path):
    rng = np.random.default_rng(3)
    shared = rng.choice([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0], 3000)
    p = np.where(rng.random(3000) < 0.3, rng.random(3000), shared)
    topics = ["law", "history", "math", "physics", "biology"]
    groups = {"task": rng.choice(["mmlu", "gsm8k", "arc"], 3000), "topic": rng.choice(topics, 3000)}
    found = cb.evaluate(rng.random(3000) < np.clip(p - 0.12, 0, 1), p, groups=groups)
    path = tmp_path / "log.html"
    path.write_text(page(found, Answers.of(found.forecasts), ("Confidence: as reported.",)))
    browser.open(path, width=1280, height=900)
    browser.js("document.querySelectorAll('details.more').forEach(d => { d.open = true; })")
    assert browser.js("document.documentElement.scrollHeight") <= 3500
    labels = "[...document.querySelectorAll('#chart-confidences .mark-text text')].filter(e => e.textContent)"
    overlap = (
        f"(() => {{ const t = {labels}.map(e => e.getBoundingClientRect()); return t.some((a, k) => "
        "t.slice(k + 1).some(b => a.left < b.right && b.left < a.right && a.top < b.bottom "
        "&& b.top < a.bottom)); })()"
    )
    assert browser.js(f"{labels}.length") >= 4
    assert not browser.js(overlap)


def test_tables_of_distributions_fit_their_columns(browser, tmp_path):
    rng = np.random.default_rng(0)
    centre, site = 280 + 10 * rng.normal(size=900), rng.choice(["Amsterdam-Schiphol", "De Bilt"], 900)
    members = centre[:, None] + 2 * rng.normal(size=(900, 20))
    y = centre + 3 * rng.normal(size=900)
    found = cb.distributions.evaluate(y, members, groups={"station": site}, draws=19)
    browser.open(found.to_html(tmp_path / "report.html"), width=1200)
    browser.js("document.querySelectorAll('details.more').forEach(d => { d.open = true; })")
    assert browser.js("[...document.querySelectorAll('.scroll')].every(s => s.scrollWidth <= s.clientWidth)")

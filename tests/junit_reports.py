"""Read JUnit XML as GitLab and Jenkins do, and hold it against what their schemas ask for."""

from pathlib import Path
from xml.etree import ElementTree as ET

OUTCOMES = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def read(path: Path) -> list[ET.Element]:
    """Return a report's suites; each must be what Jenkins' junit-10.xsd and GitLab take."""
    root = ET.parse(path).getroot()  # noqa: S314 - a file of our own
    assert root.tag == "testsuites"
    for name in ("tests", *OUTCOMES.values()):
        assert int(root.attrib[name]) == sum(int(suite.attrib[name]) for suite in root)
    for suite in root:
        _check(suite)
    return list(root)


def results(suite: ET.Element) -> dict[str, tuple[str | None, str | None]]:
    """Return each test's name -> what it came to (None: it passed) and what it says."""
    return {
        case.attrib["name"]: next(
            ((part.tag, part.text) for part in case if part.tag in OUTCOMES), (None, case[0].text)
        )
        for case in suite.findall("testcase")
    }


def _check(suite: ET.Element) -> None:
    assert suite.tag == "testsuite"
    cases = suite.findall("testcase")
    assert int(suite.attrib["tests"]) == len(cases) > 0
    for tag, counter in OUTCOMES.items():
        assert int(suite.attrib[counter]) == len(suite.findall(f"testcase/{tag}"))
    # GitLab ignores the second of two tests that have both in common.
    names = [(case.attrib["classname"], case.attrib["name"]) for case in cases]
    assert len({*names}) == len(names)
    for case in cases:
        assert float(case.attrib["time"]) >= 0
        assert {part.tag for part in case} <= {*OUTCOMES, "system-out"}
        assert len([part for part in case if part.tag in OUTCOMES]) <= 1
    order = [part.tag for part in suite]
    assert order == sorted(order, key=["testcase", "system-out"].index)

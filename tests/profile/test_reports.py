"""What `weightstream profile` writes, read by those it is written for: Perfetto and a browser.

The command is built before (`cargo build --release`). Perfetto's own schema reads the trace, and its
`trace_processor` too where it can be downloaded. Chromium runs the report.
"""

import collections
import html
import json
import pathlib
import re
import shutil
import subprocess

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
from perfetto.trace_processor import TraceProcessor

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEIGHTSTREAM = ROOT / "target/release/weightstream"


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A folder with the reports of a short run on the RTL."""
    folder = tmp_path_factory.mktemp("profile")
    command = [WEIGHTSTREAM, "profile", "-t", "rtl", "-n", "2"]
    for option, name in [("--json", "p.json"), ("--html", "p.html"), ("--perfetto", "p.pftrace")]:
        command += [option, folder / name]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def jobs(folder):
    """(tensor's name, job) of the profile's JSON."""
    profile = json.loads((folder / "p.json").read_text())
    names = [tensor["name"] for tensor in profile["tensors"]]
    for step in profile["steps"]:
        for graph in step["graphs"]:
            for chain in graph["chains"]:
                for job in chain["jobs"]:
                    yield names[job["tensor"]], job


def test_perfetto_s_schema_reads_the_trace(reports):
    trace = schema.Trace.FromString((reports / "p.pftrace").read_bytes())
    assert trace.packet and not unknown_fields(trace)
    tracks = {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            tracks[descriptor.uuid] = descriptor.name or descriptor.thread.thread_name
    found = set(tracks.values())
    assert {"host: CPU operations", "driver, engine 0", "steps"} <= found
    assert {f"engine 0: {name}" for name in ("DMA MM2S", "kernel", "DMA S2MM")} <= found

    slices = collections.defaultdict(list)
    open_slices = collections.defaultdict(list)
    for packet in trace.packet:
        event = packet.track_event
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            open_slices[event.track_uuid].append((packet.timestamp, event))
        elif event.type == schema.TrackEvent.TYPE_SLICE_END:
            start, begin = open_slices[event.track_uuid].pop()
            assert start <= packet.timestamp
            slices[tracks[event.track_uuid]].append((begin.name, start, packet.timestamp, begin))
    assert not any(open_slices.values())
    expected = [name for name, _ in jobs(reports)]
    for track in ("DMA MM2S", "kernel", "DMA S2MM"):
        assert [name for name, *_ in slices[f"engine 0: {track}"]] == expected
    # Of a track no two slices overlap, but for rounding to nanoseconds.
    for track, found in slices.items():
        for before, after in zip(found, found[1:]):
            assert before[2] <= after[1] + 1, track
    data = {note.name: note.double_value for note in slices["engine 0: kernel"][0][3].debug_annotations}
    assert data["weight bytes"] == next(jobs(reports))[1]["weight_bytes"]
    assert 0 < data["cycles with data"] < data["cycles"]


def unknown_fields(message):
    """Whether parts of a message, or of one in it, are not in the schema."""
    from google.protobuf import unknown_fields as unknown

    if len(unknown.UnknownFieldSet(message)):
        return True
    for field, value in message.ListFields():
        if field.message_type is not None:
            parts = value if hasattr(value, "append") else [value]
            if any(unknown_fields(part) for part in parts):
                return True
    return False


def test_trace_processor_reads_the_trace(reports):
    try:
        processor = TraceProcessor(trace=str(reports / "p.pftrace"))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"trace_processor cannot be downloaded here: {error}")
    with processor:
        query = """select slice.name as name, track.name as track from slice
                   join track on slice.track_id = track.id where track.name = 'engine 0: kernel'
                   order by ts"""
        names = [row.name for row in processor.query(query)]
        assert names == [name for name, _ in jobs(reports)]
        threads = {row.name for row in processor.query("select name from thread")}
        assert {"host: CPU operations", "driver, engine 0"} <= threads
        errors = processor.query("select name, value from stats where severity = 'error' and value > 0")
        assert [(row.name, row.value) for row in errors] == []


def test_the_report_needs_nothing_beside_it(reports):
    page = (reports / "p.html").read_text()
    outside = re.findall(r"(?:src|href)\s*=|@import|url\(|fetch\(|XMLHttpRequest|import\(", page)
    assert outside == []
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}


PROBE = """<script>
const page = document.getElementById("page");
page.addEventListener("load", () => {
  const d = page.contentDocument, of = (q) => d.querySelectorAll(q).length;
  const overflow = d.documentElement.scrollWidth - d.documentElement.clientWidth;
  const rows = of("#tensors tbody tr");
  const filter = d.querySelector("#tensors input");
  filter.value = "blk.1 q4_k";
  filter.dispatchEvent(new Event("input"));
  const filtered = of("#tensors tbody tr");
  const heading = d.querySelector("#jobs th button");
  heading.click();
  const first = [...d.querySelectorAll("#jobs tbody td:first-child")].map((e) => e.textContent);
  const sorted = first.join() === first.toSorted((a, b) => a.localeCompare(b, "en", {numeric: true})).join();
  const result = {overflow, rows, filtered, sorted, jobs: first.length,
    charts: ["layers", "roofline", "stalls", "bandwidth"].map((id) => of(`#${id} svg`)),
    background: getComputedStyle(d.body).backgroundColor};
  document.getElementById("result").textContent = "result" + JSON.stringify(result);
});
</script>"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_the_report_in_a_browser(reports, width, dark):
    browser = shutil.which("chromium")
    assert browser, "chromium is not installed"
    page = html.escape((reports / "p.html").read_text(), quote=True)
    # Chromium's windows are not as narrow as a phone; a frame is.
    frame = f'<iframe id="page" width="{width}" height="900" srcdoc="{page}"></iframe>'
    body = f'<!DOCTYPE html><meta charset="utf-8"><pre id="result"></pre>{frame}{PROBE}'
    file = reports / f"frame-{width}-{dark}.html"
    file.write_text(body)
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--enable-logging=stderr", f"--user-data-dir={reports / 'browser'}"]
    command += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", file.as_uri()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    errors = [line for line in ended.stderr.splitlines() if "CONSOLE" in line]
    assert errors == []
    found = re.search(r'<pre id="result">result({.*?})</pre>', ended.stdout)
    assert found, ended.stdout[:300]
    result = json.loads(html.unescape(found[1]))
    decoded = {name for name, _ in jobs(reports)}
    assert result["rows"] == len(decoded)
    assert 0 < result["filtered"] < result["rows"]
    assert result["jobs"] == len(decoded) and result["sorted"]
    assert result["charts"] == [1, 1, 1, 1]
    assert result["overflow"] <= 0
    lightness = sum(map(int, re.findall(r"\d+", result["background"])[:3]))
    assert lightness < 150 if dark else lightness > 600

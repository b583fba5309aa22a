"""What the measurements print: tables whose ratios come first, made from the figures alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from benchmarks.measuring import median

MB = 1e6


def show_tables(part: str, figures: Sequence[dict[str, Any]]) -> RenderableType:
    """The tables of a part of the benchmark, from its figures at all sizes."""
    makers = {
        "jobs": _jobs,
        "queries": _queries,
        "accuracy": _accuracy,
        "warm": _warm,
        "trends": _trends,
        "groups": _groups,
        "machines": _machines,
        **dict.fromkeys(("funnels", "absences", "row_patterns"), _beside),
    }
    return Group(*makers[part](figures))


def console() -> Console:
    """Where tables go: wide enough for them where the output is no terminal."""
    found = Console()
    return found if found.is_terminal else Console(width=190)


def _table(title: str, columns: Iterable[str], caption: str = "") -> Table:
    table = Table(title=title, title_justify="left", caption=caption or None, caption_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    return table


def _jobs(figures: Sequence[dict[str, Any]]) -> list[RenderableType]:
    goals = {"ingest": 5.0, "sketch": 1.5}
    baselines = {"ingest": "plain_source", "sketch": "plain_events"}
    times = _table(
        "Jobs beside plain Spark: read the same input, write it to a Delta table",
        ("job", "events", "source", "ratio", "goal", "job s", "plain s", "events/s", "n"),
        "ingest: beside the source files. sketch: beside the events table. Medians; a fresh lake each time.",
    )
    memory = _table(
        "Peak memory of the jobs, MB",
        (
            "job",
            "events",
            "source",
            "all processes",
            "driver Python",
            "JVM",
            "workers",
            "JVM heap after GC",
            "one segment",
        ),
        "Greatest of all repetitions, resident; the heap after a collection leaves out garbage not collected yet.",
    )
    for each in figures:
        for job, baseline in baselines.items():
            taken = median([found["seconds"][job] for found in each["rounds"]])
            plain = median([found["seconds"][baseline] for found in each["rounds"]])
            source = each["source"] if job == "ingest" else "delta"
            times.add_row(
                job,
                f"{each['events']:,}",
                source,
                f"{taken / plain:.2f}x",
                f"{goals[job]:g}x",
                f"{taken:.2f}",
                f"{plain:.2f}",
                f"{each['events'] / taken:,.0f}",
                str(each["repeats"]),
            )
            peaks = {
                name: max(found["memory"][job][name] for found in each["rounds"]) / MB
                for name in ("total", "driver_python", "jvm", "workers", "jvm_heap_after_gc")
            }
            segment = each["rounds"][0]["segment"]
            memory.add_row(
                job,
                f"{each['events']:,}",
                source,
                *(f"{value:,.0f}" for value in peaks.values()),
                f"{segment['bytes'] / MB:.1f} of {segment['events']:,} events",
            )
    return [times, memory]


def _queries(figures: Sequence[dict[str, Any]]) -> list[RenderableType]:
    tables: list[RenderableType] = [_questions(each) for each in figures]
    return [*tables, _wins(figures), *_trouble(figures)]


def _questions(each: dict[str, Any]) -> Table:
    table = _table(
        f"match_seq on {each['events']:,} events beside exact SQL on the same",
        (
            *("question", "sketch: x Spark", "verify: x Spark", "verify: x DuckDB"),
            *("sketch s", "verify s", "Spark s", "DuckDB s", "rows", "sketch rows", "exact agree"),
            *("parts read", "sketch MB", "verify MB", "Spark MB"),
        ),
        "x: how many times faster than the baseline (below 1: slower); medians. "
        "MB: chunks of the columns asked for, in the files read; parts: shares of the segments whose nodes are read.",
    )
    for question in each["questions"]:
        seconds = {name: median(values) for name, values in question["seconds"].items()}
        rows, size = question["rows"], question["bytes"]
        exact = rows.get("verify", rows.get("spark"))
        read = question.get("parts_read", {}).get("sketch")
        table.add_row(
            question["label"],
            *(_ratio(seconds, *pair) for pair in (("spark", "sketch"), ("spark", "verify"), ("duckdb", "verify"))),
            *(_number(seconds.get(name), "{:.2f}") for name in ("sketch", "verify", "spark", "duckdb")),
            _number(exact, "{:,}"),
            _number(rows.get("sketch"), "{:,}"),
            Text("yes") if question["agree"] else Text("NO", style="bold red"),
            "—" if read is None else f"{read}/{question['parts']}",
            *(
                _number(None if name not in size else size[name] / MB, "{:.2f}")
                for name in ("sketch", "verify", "spark")
            ),
        )
    return table


def _ratio(seconds: dict[str, float], baseline: str, name: str) -> str:
    return f"{seconds[baseline] / seconds[name]:.2f}" if baseline in seconds and name in seconds else "—"


def _number(value: float | None, form: str) -> str:
    return "—" if value is None else form.format(value)


def _wins(figures: Sequence[dict[str, Any]]) -> Table:
    sizes = sorted(each["events"] for each in figures)
    table = _table(
        "From which size on is it faster?",
        ("question", "sketch than Spark", "verify than Spark", "sketch than DuckDB", "verify than DuckDB"),
        f"Sizes measured: {', '.join(f'{size:,}' for size in sizes)}. A size counts only if all larger ones win too.",
    )
    labels = dict.fromkeys(question["label"] for each in figures for question in each["questions"])
    for label in labels:
        cells = []
        for name, baseline in (("sketch", "spark"), ("verify", "spark"), ("sketch", "duckdb"), ("verify", "duckdb")):
            ratios = {
                each["events"]: median(question["seconds"][baseline]) / median(question["seconds"][name])
                for each in figures
                for question in each["questions"]
                if question["label"] == label and {name, baseline} <= question["seconds"].keys()
            }
            cells.append(_from(ratios))
        table.add_row(label, *cells)
    return table


def _from(ratios: dict[int, float]) -> str:
    if not ratios:
        return "—"
    won = None
    for size in sorted(ratios, reverse=True):
        if ratios[size] <= 1.0:
            break
        won = size
    best = max(ratios)
    return f"from {won:,}" if won is not None else f"not up to {best:,} ({ratios[best]:.2f}x)"


def _trouble(figures: Sequence[dict[str, Any]]) -> list[RenderableType]:
    lines = []
    for each in figures:
        for question in each["questions"]:
            place = f"{each['events']:,} events, {question['label']}"
            lines += [f"{place}: {name} failed: {error}" for name, error in question["errors"].items()]
            if "disagreement" in question:
                lines.append(f"{place}: exact answers differ: {question['disagreement']}")
    return [Text(line, style="red") for line in lines]


def _accuracy(figures: Sequence[dict[str, Any]]) -> list[RenderableType]:
    rates = _table(
        "False rows of the sketch: SEQ of two names, after_match => 'next'",
        ("structure", "events", "names", "false rows", "mean fp_bound", "fpq", "rows", "questions", "with a false row"),
        "A row is false if one of its leaves holds no event of that name. Of absent names every row is false.",
    )
    sizes = _table(
        "Bytes per event, beside a dictionary-coded log of the same events' names",
        ("structure", "events", "ratio", "filters", "files", "dictionary-coded log", "levels", "nodes"),
        "ratio: filters / log. filters: the nodes' bits. files: all of the node table's files, intervals included.",
    )
    for each in figures:
        for structure, found in each["structures"].items():
            for kind, counts in found["kinds"].items():
                rows = counts["rows"]
                rates.add_row(
                    structure,
                    f"{each['events']:,}",
                    kind,
                    _number(counts["false_rows"] / rows if rows else None, "{:.5f}"),
                    _number(counts["mean_fp_bound"], "{:.5f}"),
                    f"{found['fpq']:g}",
                    f"{rows:,}",
                    str(counts["questions"]),
                    str(counts["questions_with_false_rows"]),
                )
            sizes.add_row(
                structure,
                f"{each['events']:,}",
                f"{found['filters_per_event'] / found['dictionary_log_per_event']:.2f}x",
                f"{found['filters_per_event']:.3f}",
                f"{found['files_per_event']:.3f}",
                f"{found['dictionary_log_per_event']:.3f}",
                str(found["levels"]),
                f"{found['nodes']:,}",
            )
    return [rates, sizes]


def _warm(figures: Sequence[dict[str, Any]]) -> list[RenderableType]:
    table = _table(
        "A warm match_seq beside a warm count of one name's events",
        ("call", "events", "ratio", "goal", "median s", "least s", "n"),
        "Calls take turns in one session; rows are fetched.",
    )
    for each in figures:
        base = median(each["seconds"]["count"])
        for name, values in each["seconds"].items():
            table.add_row(
                name,
                f"{each['events']:,}",
                f"{median(values) / base:.2f}x",
                "" if name == "count" else "4x",
                f"{median(values):.3f}",
                f"{min(values):.3f}",
                str(len(values)),
            )
    return [table]


def _trends(figures: Sequence[dict[str, Any]]) -> list[RenderableType]:
    table = _table(
        "Trends: the job beside plain Spark that copies the events, both functions beside the kernels on one core",
        ("what", "events", "ratio", "s", "baseline s", "all processes MB", "workers MB", "JVM heap after GC MB", "n"),
        "ratio: time / baseline's time; medians. count and list: the kernels' build is part of the baseline.",
    )
    cores = _table(
        "Extraction by cet_trends on one core and on two",
        ("trends", "events", "speed-up", "goal", "one core s", "two cores s", "n"),
        "windows: trends of many starts and windows. one start: all of them begin at one event of one window.",
    )
    for each in figures:
        kernels = {
            name: median([found["seconds"][name] for found in each["kernels"]]) for name in ("build", "count", "list")
        }
        job = [found["seconds"]["trends"] for found in each["jobs"]]
        plain = median([found["seconds"]["plain"] for found in each["jobs"]])
        peaks = [found["memory"] for found in each["jobs"]]
        rows = [("job trends", job, plain, peaks)]
        share = each["kernels"][0]["listed"] / each["kernels"][0]["trends"]
        baselines = {
            "cet_count, all windows": kernels["build"] + kernels["count"],
            "cet_count, some windows": (kernels["build"] + kernels["count"]) * share,
            "cet_trends, the same": (kernels["build"] + kernels["count"]) * share + kernels["list"],
        }
        rows += [
            (name, each["calls"][name]["seconds"], base, [each["calls"][name]["memory"]])
            for name, base in baselines.items()
        ]
        for name, taken, base, memory in rows:
            peak = [max(found[kind] for found in memory) / MB for kind in ("total", "workers", "jvm_heap_after_gc")]
            table.add_row(
                name,
                f"{each['events']:,}",
                f"{median(taken) / base:.2f}x",
                f"{median(taken):.2f}",
                f"{base:.2f}",
                *(f"{value:,.0f}" for value in peak),
                str(len(taken)),
            )
        for name, one in each["cores"]["1"].items():
            two = each["cores"]["2"][name]
            cores.add_row(
                name,
                f"{each['events']:,}",
                f"{median(one) / median(two):.2f}x",
                "1.7x",
                f"{median(one):.2f}",
                f"{median(two):.2f}",
                str(len(one)),
            )
    return [table, cores]


def _machines(figures: Sequence[dict[str, Any]]) -> list[RenderableType]:
    table = _table(
        "Machines through Spark, 100,000 keys: on two cores beside one",
        ("what", "events", "speed-up", "one core s", "two cores s", "first s", "plain copy s", "MB", "instances", "n"),
        "speed-up: time on one core / time on two; medians. Memory: of the job on two cores, all processes.",
    )
    for each in figures:
        one, two = each["cores"]["1"], each["cores"]["2"]
        rows = [("the job, all events", one["job"], two["job"], "", f"{median(two['plain']):.2f}")]
        rows += [
            (name, call["seconds"], two["calls"][name]["seconds"], f"{two['calls'][name]['first']:.2f}", "")
            for name, call in one["calls"].items()
        ]
        for name, alone, together, first, plain in rows:
            table.add_row(
                name,
                f"{each['events']:,}",
                f"{median(alone) / median(together):.2f}x",
                f"{median(alone):.2f}",
                f"{median(together):.2f}",
                first,
                plain,
                f"{two['memory']['total'] / MB:,.0f}",
                f"{two['instances']:,}",
                str(len(alone)),
            )
    return [table]


def _groups(figures: Sequence[dict[str, Any]]) -> list[RenderableType]:
    table = _table(
        "Groups through Spark, 1,000 keys: on two cores beside one, and beside the kernels on one core",
        ("what", "events", "speed-up", "goal", "one core s", "two cores s", "kernels s", "all processes MB", "n"),
        "speed-up: time on one core / time on two; medians. Memory: of the job on two cores.",
    )
    for each in figures:
        one, two = each["cores"]["1"], each["cores"]["2"]
        kernels = median(each["kernels"]["seconds"])
        rows = [("the job, all events", one["job"], two["job"])]
        rows += [
            (f"match_groups, {name}", call["seconds"], two["calls"][name]["seconds"])
            for name, call in one["calls"].items()
        ]
        for name, alone, together in rows:
            table.add_row(
                name,
                f"{each['events']:,}",
                f"{median(alone) / median(together):.2f}x",
                "1.7x",
                f"{median(alone):.2f}",
                f"{median(together):.2f}",
                f"{kernels:.2f}",
                f"{two['memory']['total'] / MB:,.0f}",
                str(len(alone)),
            )
    return [table]


def _beside(figures: Sequence[dict[str, Any]]) -> list[RenderableType]:
    table = _table(
        "Questions in spark.sql, beside what gives the same rows",
        ("question", "events", "times faster", "s", "baseline", "baseline s", "n"),
        "times faster: the baseline's time / ours (below 1: slower); medians, in turns.",
    )
    for each in figures:
        for found in each["beside"]:
            (_, ours), *others = found["seconds"].items()
            baseline, theirs = others[0] if others else ("", None)
            table.add_row(
                found["question"],
                f"{each['events']:,}",
                _number(found.get("times faster"), "{:.2f}"),
                f"{ours:.3f}",
                baseline,
                _number(theirs, "{:.3f}"),
                str(each["repeats"]),
            )
    return [table]

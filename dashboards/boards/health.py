"""Whether capwatch itself can be believed: does it see everything, is it up to date, what did it leave out."""

from dashboards.panels import AMBER, GREEN, RED, Board, Query, Row, bars, lines, number, table
from dashboards.promql import least, most, rate, ratio

EACH = "instance, source"

now = Row(
    "Now",
    (
        number(
            "Is every capwatch up?",
            "Targets that Prometheus cannot scrape.",
            Query("count(up == 0) or 0 * count(up)", "down"),
            steps=((None, GREEN), (1, RED)),
            empty="no target",
            width=6,
        ),
        number(
            "How old is what is shown?",
            "Time since the last commit. All figures are as old as that; normally a second or two and a scrape.",
            Query(f"time() - {least('capwatch_commit_timestamp_seconds', 'instance')}", "{{instance}}"),
            unit="s",
            steps=((None, GREEN), (30, AMBER), (120, RED)),
            width=6,
        ),
        number(
            "Can all sources be read?",
            "Sources that are down: missing files, permissions, an engine that does not answer.",
            Query("count(capwatch_source_up == 0) or 0 * count(capwatch_source_up)", "down"),
            steps=((None, GREEN), (1, RED)),
            width=6,
        ),
        number(
            "Is the configuration in force the one asked for?",
            "After a reload that failed the old one stays in force.",
            Query(least("capwatch_config_last_reload_successful", "instance"), "{{instance}}"),
            steps=((None, RED), (1, GREEN)),
            words={"0": "no, the old one", "1": "yes"},
            width=6,
        ),
        number(
            "Since when is this configuration in force?",
            "When it was loaded, each instance.",
            Query(
                f"{least('capwatch_config_last_reload_success_timestamp_seconds', 'instance')} * 1000", "{{instance}}"
            ),
            unit="dateTimeAsIso",
            width=8,
        ),
        number(
            "Did counting begin anew?",
            "Times that the state was moved aside, as corrupt or on request: totals before that are gone.",
            Query("sum by (reason) (capwatch_state_resets_total)", "{{reason}}"),
            steps=((None, GREEN), (1, AMBER)),
            width=8,
        ),
        number(
            "How many series are exposed?",
            "Bounded by limits.series; near it, names are summed up as other.",
            Query(most("capwatch_series", "instance"), "{{instance}}"),
            width=8,
        ),
    ),
)

inputs = Row(
    "Inputs",
    (
        lines(
            "Is reading keeping up?",
            "Bytes written but not yet read. A steady rise: the source is faster than capwatch, or it stands still.",
            Query(most("capwatch_source_lag_bytes", EACH), "{{instance}} {{source}}"),
            unit="bytes",
        ),
        lines(
            "How old is the newest event of each source?",
            "By the log's own clock. It grows while nobody asks; with traffic elsewhere it is a log that has stopped,"
            " or a"
            " wrong time zone.",
            Query(f"time() - {most('capwatch_source_last_event_timestamp_seconds', EACH)}", "{{instance}} {{source}}"),
            unit="s",
            limits=(None, None),
        ),
        lines(
            "What becomes of the lines?",
            "Counted gave a record, skipped are understood but none, dropped could not be understood.",
            Query(rate("capwatch_lines_counted_total"), "counted"),
            Query(rate("capwatch_lines_skipped_total"), "skipped"),
            Query(rate("capwatch_lines_dropped_total"), "dropped"),
            stacked=True,
            axis="lines a second",
        ),
        lines(
            "Why are lines dropped?",
            "A rise after an upgrade of a gateway is a changed log: `capwatch explain` shows such a line and its"
            " reason.",
            Query(rate("capwatch_lines_dropped_total", "source, reason"), "{{source}} {{reason}}"),
            stacked=True,
            axis="lines a second",
        ),
        lines(
            "Does every line end up in one of the three?",
            "Read less counted, skipped and dropped: a law, always 0.",
            Query(
                "sum by (source) (capwatch_lines_read_total) - sum by (source) (capwatch_lines_counted_total)"
                " - sum by (source) (capwatch_lines_skipped_total)"
                " - (sum by (source) (capwatch_lines_dropped_total) or 0 * sum by (source)"
                " (capwatch_lines_read_total))",
                "{{source}}",
            ),
            limits=(None, None),
        ),
        lines(
            "How much is read?",
            "Bytes of whole lines.",
            Query(rate("capwatch_source_bytes_read_total", "source"), "{{source}}"),
            unit="Bps",
            stacked=True,
        ),
        lines(
            "Was anything lost or passed over?",
            "Lost: gone before it was read, such as by copytruncate. Skipped: before the beginning, on purpose.",
            Query("sum by (source, reason) (capwatch_source_bytes_lost_total)", "{{source}} lost, {{reason}}"),
            Query("sum by (source) (capwatch_source_bytes_skipped_total)", "{{source}} skipped"),
            unit="bytes",
        ),
        lines(
            "Are logs rotated as they should?",
            "Rotations and truncations in an hour. Truncations are copytruncate: each can lose lines.",
            Query("sum by (source) (increase(capwatch_source_rotations_total[1h]))", "{{source}} rotated"),
            Query("sum by (source) (increase(capwatch_source_truncations_total[1h]))", "{{source}} truncated"),
        ),
        lines(
            "How many records come late?",
            "Older than the window of five minutes: in totals, not in percentiles.",
            Query(rate("capwatch_late_records_total", "source"), "{{source}}"),
            unit="reqps",
        ),
    ),
)

whole = Row(
    "What the figures leave out",
    (
        lines(
            "Which requests lack token counts?",
            "They are counted, but tokens and cost lack them.",
            Query(rate("capwatch_usage_unknown_total", "source"), "{{source}}"),
            unit="reqps",
        ),
        bars(
            "Which requests can not be judged?",
            "Neither good nor missed, by what is lacking; a share of all requests of the last interval.",
            Query(
                f"{rate('capwatch_goodput_unclassified_total', 'reason')}"
                f" / on () group_left () ({rate('capwatch_requests_total')} > 0)",
                "{{reason}}",
            ),
            unit="percentunit",
            limits=(0, 1),
        ),
        lines(
            "Which lines told of a request once more?",
            "Repeated records of one id: they count nowhere.",
            Query(rate("capwatch_duplicates_total", "route"), "{{route}}"),
            unit="reqps",
        ),
        lines(
            "Are there more names than series?",
            "Share of requests that are summed up as other, since a limit was reached.",
            Query(
                f"{rate('capwatch_label_overflow_total', 'label')}"
                f" / on () group_left () ({rate('capwatch_requests_total')} > 0)",
                "{{label}}",
            ),
            unit="percentunit",
        ),
        lines(
            "Which totals are of names that are gone?",
            "Requests, tokens and cost of names silent for seven days, whose own series are no longer there.",
            Query("sum(capwatch_retired_requests_total)", "requests"),
            Query("sum(capwatch_retired_tokens_total)", "tokens"),
            Query("sum(capwatch_retired_cost_replica_seconds_total)", "replica-seconds"),
        ),
        lines(
            "What share of requests has a cost?",
            "Requests with token counts over all: where it is low, cost and drift speak of a part only.",
            Query(ratio("capwatch_prompt_tokens_count", "capwatch_requests_total"), "with tokens"),
            unit="percentunit",
            limits=(0, 1),
        ),
    ),
)

process = Row(
    "The process",
    (
        lines(
            "How long do commits take?",
            "What is shown waits for them. A rise is a slow disk.",
            Query(most("capwatch_commit_duration_seconds", "instance"), "{{instance}}"),
            unit="s",
        ),
        lines(
            "Do commits fail?",
            "Each is tried again; nothing is shown until one succeeds. Usually a full disk.",
            Query(rate("capwatch_commit_errors_total", "instance"), "{{instance}}"),
            unit="ops",
        ),
        lines(
            "How much CPU does it take?",
            "In cores.",
            Query("rate(process_cpu_seconds_total[$__rate_interval])", "{{instance}}"),
            axis="cores",
        ),
        lines(
            "How much memory does it take?",
            "Bounded by the limits of the configuration.",
            Query("process_resident_memory_bytes", "{{instance}}"),
            unit="bytes",
        ),
        lines(
            "How many files does it hold open?",
            "Logs, the state, and scrapes under way.",
            Query("process_open_fds", "{{instance}}"),
        ),
        table(
            "Which versions run?",
            "Version, revision and Python of each instance.",
            Query("max by (instance, version, revision, python) (capwatch_build_info)", column="running"),
            sort="running",
            width=8,
        ),
    ),
)

BOARD = Board(
    "health",
    "capwatch health",
    "Whether capwatch itself can be believed: does it see everything, is it up to date, what did it leave out.",
    (),
    (now, inputs, whole, process),
)

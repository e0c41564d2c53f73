# SPDX-License-Identifier: MIT
"""Takes the engine's rules out one by one, in a copy of src; the engine's tests must notice.

    python3 tests/core/mutants.py [word ...]    only the rules whose name contains a word

Prints a table; exit status 1 if a mutant survives, or if its text is not in the source any more.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PATIENCE = "3"  # seconds after which a wait is a hang
SCHEDULES = "2500"
PROGRAMS = {
    "test_engine_dispatch": [],
    "test_engine_cases": [],
    "test_engine_faults": [],
    "test_engine_model": ["1", SCHEDULES],
}


@dataclass
class Mutant:
    """`edits`: (file in src/, old text, new text)."""

    rule: str
    edits: list[tuple[str, str, str]]


DISPATCH, WINDOW, WORKERS = "pipeline/dispatch.c", "pipeline/window.c", "pipeline/workers.c"
RUN, STEPS, PYTHON = "pipeline/run.c", "pipeline/steps.c", "pipeline/python_steps.c"
ENGINE, SLAB = "pipeline/engine.c", "batch/slab.c"

MUTANTS = [
    # Waking.
    Mutant(
        "who takes a task calls one more",
        [
            (
                WORKERS,
                "            fl_dispatch_recruit_locked(engine, worker->lane, &calls);",
                "            ;",
            )
        ],
    ),
    Mutant(
        "who takes a Python task calls one more",
        [
            (
                PYTHON,
                "    if (task)\n"
                "        fl_dispatch_recruit_locked(engine, FL_LANE_PYTHON, &calls);\n",
                "",
            )
        ],
    ),
    Mutant(
        "bytes given back are a cause",
        [
            (
                DISPATCH,
                "        fl_dispatch_push_locked(engine, run, pushed);\n    }\n"
                "    fl_dispatch_recruit_all_locked(engine, calls);",
                "        fl_dispatch_push_locked(engine, run, pushed);\n    }\n"
                "    if (outcome->pushed)\n"
                "        fl_dispatch_recruit_all_locked(engine, calls);",
            )
        ],
    ),
    Mutant(
        "a head that moved is a cause",
        [
            (
                WINDOW,
                "    else\n        fl_dispatch_recruit_all_locked(engine, &calls);\n",
                "",
            )
        ],
    ),
    Mutant(
        "a run that ended is a cause",
        [
            (
                DISPATCH,
                "    // The others' shares grow.\n"
                "    fl_dispatch_recruit_all_locked(engine, calls);",
                "    (void)calls;",
            )
        ],
    ),
    Mutant(
        "stop wakes idle threads",
        [(ENGINE, "        fl_condition_broadcast(&engine->lanes[lane].work);", "        ;")],
    ),
    # Dispatch.
    Mutant(
        "the head of each run passes, not only the oldest run's",
        [(DISPATCH, "return task->number == run->head &&", "return run == engine->oldest &&")],
    ),
    Mutant(
        "the head passes only while it holds nothing",
        [(DISPATCH, "run->head && task->batch->held == 0;", "run->head;")],
    ),
    Mutant(
        "the head passes at all",
        [
            (
                DISPATCH,
                "return task->number == run->head && task->batch->held == 0;",
                "return false;",
            )
        ],
    ),
    Mutant(
        "the budget gates fetches",
        [(DISPATCH, "if (run->bytes_used + engine->mean_bytes <= share)", "if (share >= 0)")],
    ),
    Mutant(
        "the share is a run's part of the limit",
        [(DISPATCH, "options.fetch_bytes / engine->run_count", "options.fetch_bytes")],
    ),
    Mutant(
        "the real size is charged",
        [(STEPS, "outcome->more_bytes = size - task->charged;", "outcome->more_bytes = 0;")],
    ),
    Mutant(
        "a closed queue closes only itself",
        [
            (
                DISPATCH,
                "        if (!task)\n            continue;",
                "        if (!task && lane == FL_LANE_FETCH && run->queues[FL_QUEUE_FETCH].top)\n"
                "            break;\n        if (!task)\n            continue;",
            )
        ],
    ),
    Mutant(
        "heads of waiting consumers first",
        [(DISPATCH, "if (run->waiters == 0 ||", "if (run->waiters >= 0 ||")],
    ),
    Mutant(
        "waiting heads in turns",
        [(DISPATCH, "run->served[lane] < head_run->served[lane]", "false")],
    ),
    Mutant(
        "tasks in position order",
        [("pipeline/heap.c", "a->number < b->number :", "a->number > b->number :")],
    ),
    Mutant(
        "one oversize compute at a time",
        [(DISPATCH, "engine->permit_taken ? NULL : run->", "run->")],
    ),
    Mutant(
        "the permit returns",
        [(DISPATCH, "        engine->permit_taken = false;", "        ;")],
    ),
    Mutant(
        "nothing is queued for an ended run",
        [
            (
                DISPATCH,
                "    if (run->is_ended)\n        return;\n    fl_heap_push",
                "    fl_heap_push",
            )
        ],
    ),
    # Errors.
    Mutant(
        "only samples behind the lowest failed one are dropped",
        [(STEPS, "row > batch->lowest_failed", "batch->lowest_failed != INT32_MAX")],
    ),
    Mutant(
        "the lowest failed row is reported",
        [
            (
                WINDOW,
                "if (row < batch->lowest_failed) {",
                "if (batch->lowest_failed == INT32_MAX) {",
            )
        ],
    ),
    # Window and consumers.
    Mutant("the window is bounded", [(WINDOW, "run->window_count < options->window &&", "")]),
    Mutant(
        "an empty window lets a batch in",
        [(WINDOW, "    if (run->window_count == 0)\n        return true;\n", "")],
    ),
    Mutant(
        "one consumer admits at a time",
        [(WINDOW, "run->is_admitted || run->is_admitting)", "run->is_admitted)")],
    ),
    Mutant(
        "supply claims its batch",
        [
            (
                WINDOW,
                "        batch->state =\n            FL_BATCH_SUPPLYING; //",
                "        batch->is_refused = false; //",
            )
        ],
    ),
    Mutant(
        "a refusal holds for all that wait",
        [
            (
                WINDOW,
                "        for (batch = run->first; batch; batch = batch->next)\n"
                "            batch->is_refused |= batch->state == FL_BATCH_NEEDS_SLAB;",
                "        batch->is_refused = true;",
            )
        ],
    ),
    Mutant(
        "refused memory does not make a consumer spin",
        [(WINDOW, "FL_BATCH_NEEDS_SLAB && !batch->is_refused)", "FL_BATCH_NEEDS_SLAB)")],
    ),
    Mutant(
        "a refused supply tells the others",
        [
            (
                WINDOW,
                "        fl_condition_broadcast(&run->batch_ready);\n        return status;",
                "        return status;",
            )
        ],
    ),
    Mutant(
        "a failed entry tells the others",
        [
            (
                WINDOW,
                "    fl_condition_broadcast(&run->batch_ready);\n    fl_batch_unref(batch);",
                "    fl_batch_unref(batch);",
            )
        ],
    ),
    Mutant(
        "a ready batch wakes a consumer",
        [
            (
                WINDOW,
                "    if (can_pop)\n        fl_condition_signal",
                "    if (false)\n        fl_condition_signal",
            )
        ],
    ),
    Mutant(
        "a batch that needs memory wakes a consumer",
        [
            (
                WINDOW,
                "    fl_mutex_unlock(&run->lock);\n"
                "    fl_condition_signal(&run->batch_ready);\n}\n\n"
                "// ---- What consumers do.",
                "    fl_mutex_unlock(&run->lock);\n}\n\n// ---- What consumers do.",
            )
        ],
    ),
    Mutant(
        "a popper wakes the next one",
        [(WINDOW, "bool has_more = find_ready_locked(run) ||", "bool has_more = false &&")],
    ),
    Mutant(
        "a popper that leaves a dry window wakes the next one",
        [
            (
                WINDOW,
                "bool has_more = find_ready_locked(run) || is_dry_locked(run);",
                "bool has_more = find_ready_locked(run);",
            )
        ],
    ),
    Mutant(
        "the end wakes all",
        [
            (
                WINDOW,
                "    if (is_over)\n        fl_condition_broadcast(&run->batch_ready);",
                "    if (is_over)\n        fl_condition_signal(&run->batch_ready);",
            )
        ],
    ),
    Mutant(
        "a leaving consumer wakes another",
        [
            (
                WINDOW,
                "    fl_mutex_lock(&run->lock);\n    fl_window_call_consumers_locked(run);",
                "    fl_mutex_lock(&run->lock);",
            )
        ],
    ),
    Mutant(
        "cancel wakes consumers",
        [(RUN, "    fl_condition_broadcast(&run->batch_ready);\n", "")],
    ),
    Mutant(
        "cancelled counts as closed for who pops",
        [
            (
                WINDOW,
                "return run->is_closed || fl_cancel_is_set(&run->cancel);",
                "return run->is_closed;",
            )
        ],
    ),
    Mutant(
        "a run that comes after stop is closed",
        [(WINDOW, "    if (engine->is_stopping) {", "    if (false) {")],
    ),
    Mutant(
        "a finished run leaves the list",
        [(WINDOW, "        tell_dispatch(run, number, true);", "        (void)0;")],
    ),
    Mutant(
        "what dropped tasks hold is given back",
        [(RUN, "fetched_bytes, -run->bytes_used);", "fetched_bytes, 0);")],
    ),
    # Threads.
    Mutant(
        "a failed start tells the consumers",
        [
            (
                WORKERS,
                "            fl_window_call_consumers_locked(run);\n",
                "",
            )
        ],
    ),
    Mutant(
        "a failed start is tried again",
        [(WORKERS, "        engine->lanes[lane].has_failed = true;", "        ;")],
    ),
    Mutant(
        "a failed start gives its place back",
        [
            (
                WORKERS,
                "    engine->lanes[lane].threads--;\n    if (engine->lanes[lane].threads == 0) {",
                "    if (engine->lanes[lane].threads == 1) {",
            )
        ],
    ),
    Mutant(
        "a waiting consumer is asked for a Python thread",
        [(DISPATCH, "            ask_for_python_locked(engine);\n", "")],
    ),
    Mutant(
        "the last Python thread looks back as it goes",
        [
            (
                PYTHON,
                "        fl_dispatch_recruit_locked(engine, FL_LANE_PYTHON, &calls);\n"
                "    fl_condition_broadcast(&engine->quiet);",
                "        (void)0;\n    fl_condition_broadcast(&engine->quiet);",
            )
        ],
    ),
    Mutant(
        "close is told when the last thread goes",
        [
            (
                WORKERS,
                "    fl_condition_broadcast(&engine->quiet);\n"
                "    fl_mutex_unlock(&engine->lock);\n}\n\nstatic void enter",
                "    fl_mutex_unlock(&engine->lock);\n}\n\nstatic void enter",
            )
        ],
    ),
    # Slabs.
    Mutant(
        "the pool is counted apart",
        [
            (
                SLAB,
                "    atomic_fetch_add_explicit(&pool->references, 1, memory_order_relaxed);\n",
                "",
            ),
            (
                SLAB,
                "    give_back_list(pool, leaving);\n    release_pool(pool);",
                "    give_back_list(pool, leaving);",
            ),
        ],
    ),
]


def build(folder: Path) -> str:
    """Empty, or what the compiler said."""
    made = subprocess.run(
        ["make", "-s", f"-j{len(os.sched_getaffinity(0))}", "-C", str(HERE), "build",
         f"ROOT={folder}", f"BUILD={folder}/build", "CFLAGS=-O1 -g -Wno-unused",
         f"PROGRAMS={' '.join(PROGRAMS)}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return made.stdout + made.stderr if made.returncode else ""


def run(folder: Path) -> str:
    """Empty if all pass, else how the first program failed."""
    for name, arguments in PROGRAMS.items():
        try:
            result = subprocess.run(
                [str(folder / "build" / name), *arguments],
                capture_output=True, text=True, check=False, timeout=60,
                env=os.environ | {"MODEL_TIMEOUT_S": PATIENCE},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"{name}: it never ends"
        if result.returncode:
            said = result.stderr.strip().splitlines() or [f"status {result.returncode}"]
            return f"{name}: {said[0]}"
    return ""


def mutate(folder: Path, mutant: Mutant) -> str:
    """How the tests noticed; "SURVIVED"; or "OUT OF DATE". The copy is as before afterwards."""
    before = {name: (folder / "src" / name).read_text() for name, _, _ in mutant.edits}
    after = dict(before)
    for name, old, new in mutant.edits:
        if after[name].count(old) != 1:
            return f"OUT OF DATE: {after[name].count(old)} times in {name}: {old.strip()}"
        after[name] = after[name].replace(old, new)
    try:
        for name, text in after.items():
            (folder / "src" / name).write_text(text)
        said = build(folder)
        if said:
            return f"OUT OF DATE: does not compile: {said[:300]}"
        return run(folder) or "SURVIVED"
    finally:
        for name, text in before.items():
            (folder / "src" / name).write_text(text)


def main() -> int:
    words = sys.argv[1:]
    chosen = [m for m in MUTANTS if not words or any(word in m.rule for word in words)]
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "src", folder / "src")
        said = build(folder) or run(folder)
        if said:
            print(f"without any mutation: {said}")
            return 1
        for mutant in chosen:
            begin = time.monotonic()
            outcome = mutate(folder, mutant)
            failed += outcome.startswith(("SURVIVED", "OUT OF DATE"))
            print(f"{mutant.rule:55} {time.monotonic() - begin:5.1f} s  {outcome}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} rules are guarded")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

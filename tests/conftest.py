"""Small federations with known answers."""

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

import feddyn
from feddyn.data.stored import Stored

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # a busy machine is no fault

SLOW = (
    "cli/test_completion.py::test_bash_is_offered_commands_records_settings_and_names",
    "cli/test_extend.py::test_more_rounds",
    "cli/test_extend.py::test_patience_in_a_setting",
    "cli/test_reproduce.py",
    "cli/test_resume.py",
    "cli/test_run.py::test_no_text_of_anybodys_moves_the_cursor",
    "cli/test_run.py::test_partitions_are_shown_and_saved",
    "cli/test_run.py::test_real_data_checks_out_and_trains",
    "cli/test_run.py::test_settings_of_presets_repeat_too",
    "cli/test_run.py::test_the_setting_alone_repeats_the_run",
    "cli/test_run.py::test_without_a_file_the_embedded_comparison_runs",
    "cli/test_use.py::test_onnx_takes_raw_samples",
    "data/test_federations.py::test_real_images",
    "runs/test_compression.py::test_feddyn_finds_the_optimum_with_both_ways_compressed_and_uploads_lost",
    "wire/test_theory.py::test_feddyn_finds_the_optimum_and_keeps_its_invariant",
    "wire/test_theory.py::test_wrong_ways_fail_the_same_test",
    "data/test_huggingface.py::test_flowers_partitioners_make_the_devices",
    "data/test_partition.py::test_a_large_split_is_fast",
    "data/test_partition.py::test_bad_splits_are_refused",
    "data/test_partition.py::test_class_ratios_follow_the_prior",
    "data/test_partition.py::test_every_sample_goes_to_exactly_one_device",
    "doctor/test_diagnoses.py::test_records_in_the_repository_are_sound",
    "engine/test_links.py::test_states_stay_consistent_and_feddyn_still_finds_the_optimum",
    "round/test_participation.py::test_rare_activity_follows_the_truncated_binomial",
    "engine/test_pool.py",
    "engine/test_ranks.py",
    "engine/test_workers.py::test_the_number_of_workers_does_not_change_a_bit",
    "engine/test_workers.py::test_workers_that_are_killed_are_replaced_and_nothing_is_lost",
    "flower/test_compressed.py::test_a_crash_at_every_call_that_changes_a_file",
    "flower/test_processes.py",
    "flower/test_protocol.py::test_a_crash_at_every_call_that_changes_a_file",
    "paper/test_study.py::test_runs_side_by_side_are_the_same_runs",
    "paper/test_synthetic.py::test_the_optimum_is_below_what_training_reaches",
    "paper/test_synthetic.py::test_the_search_gives_what_a_run_of_each_setting_gives",
    "records/test_other_systems.py",
    "reports/test_damage.py::test_a_damaged_record_is_left_out_and_named",
    "reports/test_damage.py::test_a_hundred_random_damages",
    "reports/test_live.py",
    "reports/test_page.py",
    "reports/test_results.py::test_every_page_is_that_of_the_records",
    "reports/test_results.py::test_runs_without_what_they_were_tuned_to_are_refused",
    "reports/test_tracking.py::test_weights_and_biases_goes_on_with_the_same_run_offline",
    "reports/test_tracking.py::test_trackers_are_not_imported_unless_asked_for",
    "reports/test_views.py",
    "runs/test_power.py",
    "runs/test_resume.py::test_a_crash_at_every_call_that_changes_a_file",
    "runs/test_resume.py::test_a_damaged_checkpoint_is_passed_over_for_the_one_before",
    "runs/test_resume.py::test_every_kind_of_run_resumes_to_the_same_bits_with_other_workers",
    "runs/test_resume.py::test_fifty_runs_that_are_killed_at_random_instants",
    "runs/test_simulation.py::test_another_loss_for_regression",
    "runs/test_simulation.py::test_equal_arguments_give_equal_bits",
    "runs/test_theory.py",
    "search/test_lockstep.py::test_a_sweep_equals_single_runs",
    "settings/test_own_names.py::test_a_comparison_goes_on_with_a_method_that_was_not_begun",
    "settings/test_own_names.py::test_a_run_of_own_parts_goes_on_from_its_record_alone",
    "settings/test_own_names.py::test_a_search_over_a_parameter_of_an_own_method",
    "settings/test_own_names.py::test_ranks_run_own_parts_too",
    "solvers/test_stepwise.py::test_stacked_devices_take_torchs_steps",
    "test_docs.py::test_dotted_names_can_be_written_as_they_stand",
    "test_examples.py",
    "test_first_hour.py",
    "test_fuzz.py::test_two_thousand_attempts",
    "test_identity.py::test_descriptions_are_the_same_in_every_process",
    "test_metrics.py::test_a_metric_has_a_direction_everywhere",
    "test_notebook.py::test_every_cell_shows_what_it_gives",
    "test_own_docs.py",
    "test_pages.py::test_what_a_page_shows_is_printed",
    "test_readme.py",
    "test_site.py",
    "test_wheel.py",
    "theory/test_bounds.py",
    "theory/test_broken.py",
    "theory/test_command.py",
    "theory/test_lemmas.py",
    "theory/test_results.py",
)
"""Files, or tests as file::function, that take more than about two seconds (`pytest --durations=50` shows them);
`make check` leaves them out."""


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark the slow tests, so that `-m "not slow"` leaves them out."""
    here = Path(__file__).parent
    for item in items:
        file = item.path.relative_to(here).as_posix()
        if file in SLOW or f"{file}::{getattr(item, 'originalname', item.name)}" in SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def signals_as_they_were() -> Iterator[None]:
    """The command line takes Ctrl-C and SIGTERM for its own until its process ends; here the process goes on."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def make_logistic(sizes: list[int], features: int = 4, classes: int = 3, seed: int = 0) -> Stored:
    """Heterogeneous devices: each has features of its own mean and labels by a linear model of its own."""
    rng = np.random.default_rng(seed)
    x, y = [], []
    for size in sizes:
        points = rng.normal(rng.normal(0, 0.5, features), 0.7, (size, features))
        x.append(points)
        y.append(np.argmax(points @ rng.normal(0, 2, (features, classes)), axis=1))
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return feddyn.Population.from_arrays(np.concatenate(x), np.concatenate(y), owner)


@pytest.fixture(scope="session")
def unbalanced() -> Stored:
    """Ten unequal, heterogeneous devices, in float64."""
    return make_logistic([10, 40, 15, 30, 22, 9, 55, 18, 27, 34])


@pytest.fixture
def logistic() -> torch.nn.Module:
    """The linear model for them, started away from zero."""
    torch.manual_seed(1)
    return torch.nn.Linear(4, 3).double()

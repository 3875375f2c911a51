"""Estimates of time: they follow from the number of steps."""

from feddyn.paper.catalogue import experiments
from feddyn.paper.estimate import Calibration


def test_time_follows_from_steps_rounds_and_devices() -> None:
    jobs = {job.row + job.method: job for job in experiments()["participation"].jobs}
    calibration = Calibration(2)
    ten, full = (calibration.seconds(jobs[f"emnist-l-iid-{p}feddyn"].document, 100) for p in (10, 100))
    assert 0 < ten < full < 11 * ten
    again = calibration.seconds(jobs["emnist-l-iid-10feddyn"].document, 200)
    assert again == 2 * ten
    fewer = calibration.seconds(jobs["emnist-l-iid-10fedavg"].document, 100)  # 10 epochs instead of 50
    assert ten / 6 < fewer < ten
    central = next(job for job in experiments()["centralised"].jobs if job.row == "emnist-l")
    assert calibration.seconds(central.document, 1) > 0

"""Who trains whom in a round."""

from typing import NamedTuple

from feddyn.data.population import Population
from feddyn.engine.executors.group import Group
from feddyn.engine.grouping import groups_of
from feddyn.engine.links import Answers
from feddyn.engine.store import Store
from feddyn.engine.trainer import Task


class Assignment(NamedTuple):
    """Groups of devices and the process that trains each, slots of states that came from other processes, and the tasks
    of this one."""

    groups: list[list[int]]
    owners: list[int]
    arrived: list[int]
    tasks: list[Task]


def assign(round: int, answers: Answers, population: Population, store: Store, group: Group, stack: int) -> Assignment:
    """Share the counted devices out in groups of at most `stack`, and fetch the states that are elsewhere."""
    active = answers.counted
    sizes = population.sizes_of(active).tolist()
    size, effort = (dict(zip(active, values, strict=True)) for values in (sizes, answers.effort))
    groups = groups_of(active, sizes, stack)
    owners = group.assign(groups, [sum(size[k] for k in devices) for devices in groups])
    arrived = group.fetch(store, groups, owners)
    tasks = [
        Task(
            number,
            round,
            devices,
            [arrived.get(k, store.slots.get(k)) for k in devices],
            store.stage(devices),
            [effort[k] for k in devices],
        )
        for number, (devices, owner) in enumerate(zip(groups, owners, strict=True))
        if owner == group.rank
    ]
    return Assignment(groups, owners, list(arrived.values()), tasks)

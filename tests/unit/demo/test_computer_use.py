from pipelines.demo.computer_use import ComputerUse


def test_the_share_of_the_cores_is_known_once_the_load_has_ended():
    use = ComputerUse()
    assert use.facts()["cores_busy"] is None
    use.begin_load()
    sum(range(3_000_000))
    use.end_load()
    assert use.facts()["cores"] >= 1 and 0 < use.facts()["cores_busy"] <= 1


def test_the_most_memory_taken_at_any_look_is_told_and_none_that_came_free():
    use = ComputerUse(free_at_start=2**60)  # more than any computer has
    least = use.least_free
    use.look()
    assert use.least_free <= least
    assert use.facts()["peak_memory_mb"] == (2**60 - use.least_free) // 2**20
    assert ComputerUse(free_at_start=10 * 2**20, least_free=12 * 2**20).facts()["peak_memory_mb"] == 0

import threading

import pytest

from pipelines.bench.repeated import repeated


def test_something_is_done_again_and_again_until_the_block_ends_whatever_ends_it():
    done, thrice = [], threading.Event()

    def act():
        done.append(threading.current_thread())
        if len(done) == 3:
            thrice.set()

    with pytest.raises(ZeroDivisionError), repeated(act, 0.01):
        assert thrice.wait(20)
        1 / 0  # noqa: B018
    (thread,) = {*done}
    assert not thread.is_alive() and thread is not threading.current_thread()

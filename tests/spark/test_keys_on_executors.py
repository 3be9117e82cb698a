"""The file of signing keys, as executors see it."""

import os
import pwd
import socket

import pytest

from pipelines.kafka.signing import Signer, unread_on_executors

pytestmark = pytest.mark.spark


def test_executors_say_who_cannot_read_the_file_and_no_key(spark, tmp_path):
    file = tmp_path / "keys.yaml"
    (told,) = unread_on_executors(spark, Signer(file), 2)  # both say the same
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert told.startswith(f"on {socket.gethostname()} as {user}: kafka.signing_keys={file}: No such file or directory")
    file.write_text("orders: 0123456789abcdef0123456789abcdef")
    assert unread_on_executors(spark, Signer(file), 2) == []

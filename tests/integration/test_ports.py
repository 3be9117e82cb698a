import os
import socket

import pytest

from configs.sections import Ports
from pipelines.stack import ports

pytestmark = pytest.mark.integration


@pytest.fixture
def taken():
    with socket.socket() as sock:
        sock.bind((ports.HOST, 0))
        sock.listen()
        yield sock.getsockname()[1]


def test_zero_takes_free_and_different_ports():
    chosen = ports.choose_ports(Ports(), ["broker", "controller", "airflow"])
    assert len(set(chosen.values())) == 3
    for port in chosen.values():
        with socket.socket() as sock:
            sock.bind((ports.HOST, port))


def test_a_named_port_is_taken_as_named():
    free = ports.choose_ports(Ports(), ["airflow"])["airflow"]
    assert ports.choose_ports(Ports(airflow=free), ["broker", "airflow"])["airflow"] == free


def test_a_port_in_use_names_port_setting_and_holder(taken):
    with pytest.raises(ports.PortError) as error:
        ports.choose_ports(Ports(airflow=taken), ["broker", "airflow"])
    text = str(error.value)
    assert f"TIDECAST_PORTS__AIRFLOW={taken}" in text and f"process {os.getpid()}" in text


def test_a_port_in_use_on_all_interfaces_is_in_use():
    with socket.socket() as sock:
        sock.bind(("", 0))
        sock.listen()
        with pytest.raises(ports.PortError, match="TIDECAST_PORTS__BROKER"):
            ports.choose_ports(Ports(broker=sock.getsockname()[1]), ["broker"])


def test_a_port_named_twice_names_both_settings():
    free = ports.choose_ports(Ports(), ["airflow"])["airflow"]
    with pytest.raises(ports.PortError, match=r"TIDECAST_PORTS__(BROKER|AIRFLOW).*TIDECAST_PORTS__(BROKER|AIRFLOW)"):
        ports.choose_ports(Ports(broker=free, airflow=free), ["broker", "airflow"])

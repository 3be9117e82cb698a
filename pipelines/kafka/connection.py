"""Clients of Kafka as the settings name it, and in words what is wrong where a broker does not answer or refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from kafka.errors import AuthorizationError, KafkaConnectionError, KafkaError, KafkaTimeoutError, RequestTimedOutError

from configs.errors import CorrectableError, SettingsError
from configs.sections import Kafka
from tidecast.connection.reach import UnreachableError

C = TypeVar("C")
RIGHTS = "docs/security.md says which rights on which topics each part needs; kafka-acls.sh --list shows what there is."
"""The remedy where the broker forbids something."""


class BrokerError(CorrectableError, RuntimeError):
    """The broker cannot be reached or refuses; the message names the address and the remedy."""


class TopicError(BrokerError):
    """The broker answers, but a topic is not there, or not for this user: it says nothing about other topics."""


def connect_client(make: Callable[..., C], kafka: Kafka, **options: Any) -> C:
    """Connect a kafka-python client to the broker of the settings: calls `make(address, security, **options)`.

    Raises:
        BrokerError: no broker is set or answers within 10 s.
        SettingsError: `kafka.security` has an unknown option or a wrong value, or a port of the address is no number.
    """
    try:
        return make(bootstrap_address(kafka), kafka.security, **options)
    except UnreachableError as error:
        raise BrokerError(
            f"{error} `make up` starts a broker; settings: TIDECAST_KAFKA__BOOTSTRAP, kafka.security."
        ) from None
    except ValueError as error:
        named = next((f"kafka.security.{key}" for key in kafka.security if key in str(error)), None)
        where = named or f"kafka.bootstrap={kafka.bootstrap}"
        said = str(error).removeprefix("security: ")
        raise SettingsError(f"{where}: {said}. docs/attach.md shows both settings.") from None


@contextmanager
def answered(kafka: Kafka) -> Iterator[None]:
    """Let the broker answer what is asked in the `with` block, and say in words what is wrong where it does not.

    Raises:
        TopicError: it forbids something; the message names the topics and the remedy.
        BrokerError: it has not answered in the client's time, which is 30 s for most, or refuses.
    """
    try:
        yield
    except AuthorizationError as error:
        raise TopicError(f"the broker at {kafka.bootstrap} forbids it: {error}. {RIGHTS}") from None
    except (KafkaTimeoutError, RequestTimedOutError, KafkaConnectionError) as error:
        raise BrokerError(
            f"the broker at {kafka.bootstrap} does not answer: {error}. See that it runs (`make up` starts one), then "
            "start again."
        ) from None
    except KafkaError as error:
        raise BrokerError(
            f"the broker at {kafka.bootstrap} does not do it: {error}. Look at it, then start again."
        ) from None


def bootstrap_address(kafka: Kafka) -> str:
    """Return the broker's address in the settings, `host:port`.

    Raises:
        BrokerError: none is set.
    """
    if not kafka.bootstrap:
        raise BrokerError("kafka.bootstrap is not set and no stack is running. `make up` starts one.")
    return kafka.bootstrap


def no_such_topic(name: str) -> str:
    """Say in words that a topic, by its whole name, is not there for this user."""
    return (
        f"topic {name!r} does not exist on the broker, or this user may not see it. `tidecast autoscale` or `tidecast "
        f"up` creates our topics. {RIGHTS}"
    )

"""Call numbers for mail archives: eight characters such as `2VznWE2i` that are never issued twice in a namespace."""

from .client import TAKE_COUNT_MAX, Client
from .codec import CallNumberError, Parts, decode, encode, from_number, is_call_number, to_number
from .errors import CODES, RETRIED_CODES, ClientError
from .pasted import UnclearTextError, call_number_in

__all__ = [
    "CODES",
    "RETRIED_CODES",
    "TAKE_COUNT_MAX",
    "CallNumberError",
    "Client",
    "ClientError",
    "Parts",
    "UnclearTextError",
    "call_number_in",
    "decode",
    "encode",
    "from_number",
    "is_call_number",
    "to_number",
]

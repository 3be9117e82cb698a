"""The tables that packages hold, as their columns, whatever the file's form; no code that lies in a file is run."""

from __future__ import annotations

import io
import lzma
import pickle
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.traces.unseen.packages import PackageError

# All that the pickle of a table of numbers and text is made of. Whatever else one names could do anything.
_PICKLED = {
    ("builtins", "slice"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.numeric", "_frombuffer"),
    ("pandas._libs.internals", "_unpickle_block"),
    ("pandas.core.frame", "DataFrame"),
    ("pandas.core.indexes.base", "Index"),
    ("pandas.core.indexes.base", "_new_Index"),
    ("pandas.core.indexes.range", "RangeIndex"),
    ("pandas.core.internals.managers", "BlockManager"),
}
_MISSING = ["", "?", "NA", "nan"]


def read_table(data: bytes, name: str, columns: Sequence[str]) -> pd.DataFrame:
    """Read columns of a table, with its rows in their order.

    Args:
        data: the file's bytes.
        name: of the file, for its form (`.csv`, `.csv.xz`, `.parquet`, or `.pkl.compress`: a pickled table in xz) and
            for messages.
        columns: names; none are an error.

    Returns:
        Exactly these columns: of CSV as text without blanks around it, missing where empty or "?"; else typed.

    Raises:
        PackageError: the form is unknown, the file is damaged, its pickle is more than a table, or a column is missing.
    """
    try:
        table = _parse(data, name)
    except (ValueError, EOFError, lzma.LZMAError, pickle.UnpicklingError, pa.ArrowException) as error:
        raise PackageError(f"{name}: cannot be read as a table: {error}. Fetch its package anew.") from None
    if lacking := [column for column in columns if column not in table.columns]:
        raise PackageError(
            f"{name}: no column {', '.join(map(repr, lacking))} among {', '.join(map(repr, table.columns))}. "
            "Use the version of its package that the recipe names."
        )
    return table[list(columns)]


def _parse(data: bytes, name: str) -> pd.DataFrame:
    if name.endswith(".xz"):
        return _parse(lzma.decompress(data), name.removesuffix(".xz"))
    if name.endswith(".csv"):
        text: pd.DataFrame = pd.read_csv(
            io.BytesIO(data), dtype=str, skipinitialspace=True, keep_default_na=False, na_values=_MISSING
        )
        return text
    if name.endswith(".parquet"):
        table: pd.DataFrame = pq.read_table(pa.BufferReader(data)).to_pandas()
        return table
    if name.endswith(".pkl.compress"):
        found = _TableUnpickler(io.BytesIO(lzma.decompress(data))).load()
        if isinstance(found, pd.DataFrame):
            return found
        raise ValueError(f"it holds {type(found).__name__}, no table")
    raise ValueError("neither .csv, .csv.xz, .parquet nor .pkl.compress")


class _TableUnpickler(pickle.Unpickler):
    """Refuses every name that a table of numbers and text does not need."""

    def find_class(self, module: str, name: str) -> Any:
        module = module.replace("numpy.core.", "numpy._core.")  # as numpy before 2 called it
        if (module, name) not in _PICKLED:
            raise pickle.UnpicklingError(f"its pickle asks for {module}.{name}")
        return super().find_class(module, name)

"""Time neuralforecast's GRU on a series; run by the interpreter of an environment that has neuralforecast.

Standard input: JSON of values, horizon, hidden, updates, context, levels, rows (of an update). The last line of
standard output: JSON of fit_s, predict_s, cpu_s (of both) and the version. Imports and the reading of the series are
not counted.
"""

import json
import logging
import sys
import time
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import neuralforecast  # noqa: E402
import pandas as pd  # noqa: E402
import torch  # noqa: E402
from neuralforecast.losses.pytorch import MQLoss  # noqa: E402
from neuralforecast.models import GRU  # noqa: E402


def main() -> None:
    """Fit neuralforecast's GRU once and predict once; reads and writes the JSON that the head of this file describes.

    Raises:
        KeyError, ValueError: the input lacks a key, or is no JSON.
    """
    asked = json.load(sys.stdin)
    torch.set_num_threads(1)
    values = asked["values"]
    frame = pd.DataFrame(
        {"unique_id": "load", "ds": pd.date_range("2024-01-01", periods=len(values), freq="5min"), "y": values}
    )
    model = GRU(
        h=asked["horizon"], input_size=asked["context"], encoder_n_layers=1, encoder_hidden_size=asked["hidden"],
        decoder_hidden_size=asked["hidden"], decoder_layers=1, max_steps=asked["updates"],
        windows_batch_size=asked["rows"], loss=MQLoss(quantiles=asked["levels"]),
        scaler_type="robust", random_seed=7, accelerator="cpu", enable_progress_bar=False, logger=False,
        enable_model_summary=False, enable_checkpointing=False,
    )  # fmt: skip
    forecaster = neuralforecast.NeuralForecast(models=[model], freq="5min")
    began, cpu = time.perf_counter(), time.process_time()
    forecaster.fit(frame)
    fitted = time.perf_counter()
    forecaster.predict()
    done = time.perf_counter()
    found = {"fit_s": fitted - began, "predict_s": done - fitted, "cpu_s": time.process_time() - cpu}
    print(json.dumps({**found, "version": neuralforecast.__version__}))


if __name__ == "__main__":
    main()

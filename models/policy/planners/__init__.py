"""Our policies: by observed load, by a forecast, by the price of a violation."""

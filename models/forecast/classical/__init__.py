"""ETS, Theta and ARIMA, fitted with statsforecast and run as recursions."""

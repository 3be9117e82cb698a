"""ETS, Theta and ARIMA, fitted with statsmodels and run as recursions."""

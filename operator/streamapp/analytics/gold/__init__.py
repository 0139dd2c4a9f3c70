"""Gold: figures by hour, day and application, made of silver; `g_lag_hourly` of bronze."""

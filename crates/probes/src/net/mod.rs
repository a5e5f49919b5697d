//! Networks: TCP throughput and round trips, and the server they talk to.

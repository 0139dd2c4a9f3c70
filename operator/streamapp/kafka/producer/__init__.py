"""Writes the flight record to its topic by librdkafka, in a process of its own (docs/decisions/0018).

    producer         the entry point, in the operator's process: sends lines, starts the process again
    child_process    one such process: its pipes, its last words, its end
    librdkafka       what librdkafka calls the settings of a client
    failures         what librdkafka's error codes mean
    frames           what both processes write into the pipes
    __main__         the process: the only module of the product that imports confluent_kafka

librdkafka ends its process where one of its assertions fails. So the operator's process never imports it.
"""

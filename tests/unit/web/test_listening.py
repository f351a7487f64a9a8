"""What every connection of a page has in common."""

import socket

from dragoman.web.listening import listen


def test_an_answer_in_two_packets_does_not_wait_for_the_first_to_be_confirmed():
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

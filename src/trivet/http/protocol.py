"""uvicorn's HTTP protocol with limits on what a client can make it hold before a request reaches the application.

uvicorn's httptools protocol accepts headers and trailers of any length, and any number of pipelined requests. Its
h11 protocol has such limits, but is slower because it is pure Python.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 65_536  # of the request line and the headers, as h11 limits them in uvicorn
PIPELINED = 32  # requests that wait for an earlier response; browsers send none


class Protocol(HttpToolsProtocol):
    """``HttpToolsProtocol`` with limits on headers, trailers and pipelined requests."""

    _in_head = False  # between the first byte of a request and the end of its headers
    _in_body = False
    _silent = 0  # bytes since the request began, or since its body last went on

    def data_received(self, data: bytes) -> None:
        before = self._in_head or self._in_body
        self._grew = False
        super().data_received(data)
        self._silent = self._silent + len(data) if before and not self._grew else 0
        if self._silent > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response(f"The headers, or the trailers, have more than {HEAD_BYTES} bytes.")

    def on_message_begin(self) -> None:
        self._in_head, self._in_body, self._grew = True, False, True
        self._unset_keepalive_if_required()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # trailers are ignored
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body, self._grew = False, True, True
        if len(self.pipeline) >= PIPELINED:
            raise ValueError("too many requests at once")  # the parser responds with 400
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._grew = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body, self._grew = False, True
        super().on_message_complete()

    def _unset_keepalive_if_required(self) -> None:
        """Keep the time limit if the response was sent before the whole body arrived.

        Otherwise a slow body could hold the connection open for ever.
        """
        answered = self._in_body and self.cycle is not None and self.cycle.response_complete
        if not answered or self.transport.is_closing():
            super()._unset_keepalive_if_required()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.pipeline and not self.transport.is_closing():
            self.flow.pause_reading()  # other requests wait in the pipeline

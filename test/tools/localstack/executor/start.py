"""Starts LocalStack on loopback only, with this folder on sys.path so that LocalStack finds our plugins.

LocalStack takes only the port from an IPv4 address in GATEWAY_LISTEN and listens on all interfaces.
"""

import runpy

from twisted.internet import endpoints


class LoopbackEndpoint(endpoints.TCP4ServerEndpoint):
    def __init__(self, reactor, port, backlog=50, interface="127.0.0.1"):
        super().__init__(reactor, port, backlog, interface)


endpoints.TCP4ServerEndpoint = LoopbackEndpoint
runpy.run_module("localstack.runtime.main", run_name="__main__")

"""Runs the Lambda functions of LocalStack as its child processes, for machines without Docker.

LocalStack finds this plugin by its entry point (the dist-info folder beside this file, which start.py puts on sys.path)
and uses it when LAMBDA_RUNTIME_EXECUTOR is `countersign`. Each execution environment has a server of the Lambda Runtime
API on its own loopback port, and one process that calls this server. The process is the command line in
COUNTERSIGN_LAMBDA_RUNTIME with the handler's name appended.
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html

Unlike real Lambda, the process shares the file system, has no memory limit and is not frozen between calls.
"""

import json
import logging
import os
import re
import subprocess
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue

from localstack import config
from localstack.services.lambda_.invocation.executor_endpoint import StatusErrorException
from localstack.services.lambda_.invocation.lambda_models import InvocationResult
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin
from localstack.services.lambda_.invocation.runtime_executor import RuntimeExecutor

LOG = logging.getLogger(__name__)
STARTUP_SECONDS = 30
GRACE_SECONDS = 2


class ProcessExecutorPlugin(RuntimeExecutorPlugin):
    name = "countersign"

    def load(self, *args, **kwargs):
        return ProcessExecutor


class ProcessExecutor(RuntimeExecutor):
    """One execution environment. LocalStack sends it one invocation at a time."""

    def __init__(self, id, function_version):
        super().__init__(id, function_version)
        self.environment = {}
        self.runtime = None

    @classmethod
    def prepare_version(cls, function_version):
        if function_version.config.code:
            function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version):
        pass  # another version may use the same unpacked code

    def get_address(self):
        return "127.0.0.1"

    def get_endpoint_from_executor(self):
        return "127.0.0.1"

    def get_runtime_endpoint(self):
        return f"http://127.0.0.1:{config.GATEWAY_LISTEN[0].port}/countersign/{self.id}"

    def get_logs(self):
        return "".join(self.runtime.output) if self.runtime else ""

    def start(self, env_vars):
        code = self.function_version.config.code
        code.prepare_for_execution()
        self.environment = {
            "PATH": os.environ["PATH"],
            **{name: str(value) for name, value in env_vars.items()},
            "LAMBDA_TASK_ROOT": str(code.get_unzipped_code_location()),
        }
        self.runtime = Runtime(self.environment, self.function_version.config.timeout)

    def invoke(self, payload):
        # As in Lambda, a process that timed out or exited is replaced at the next call.
        if self.runtime.ended():
            self.runtime.close()
            self.runtime = Runtime(self.environment, self.function_version.config.timeout)
        request_id = payload["invoke-id"]
        body, is_error = self.runtime.answer(request_id, payload)
        version = self.function_version.id.qualifier
        logs = [
            f"START RequestId: {request_id} Version: {version}\n",
            *self.runtime.take_output(),
            f"END RequestId: {request_id}\nREPORT RequestId: {request_id}\n",
        ]
        return InvocationResult(request_id, body, is_error=is_error, logs="".join(logs))

    def stop(self):
        if self.runtime:
            self.runtime.close()


class Runtime:
    """A process and the Runtime API that it calls."""

    def __init__(self, environment, timeout):
        self.timeout = timeout
        self.waiting = SimpleQueue()  # payloads that the process has not fetched yet; None ends the process
        self.started = Future()
        self.answers = {}  # request id -> Future[(body, is_error)]
        self.output = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), runtime_api(self))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.process = subprocess.Popen(
            [*json.loads(os.environ["COUNTERSIGN_LAMBDA_RUNTIME"]), environment["_HANDLER"]],
            cwd=environment["LAMBDA_TASK_ROOT"],
            env={**environment, "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self.server.server_port}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        threading.Thread(target=self._follow, daemon=True).start()
        self.started.result(timeout=STARTUP_SECONDS)

    def ended(self):
        return self.process.poll() is not None

    def answer(self, request_id, payload):
        answer = self.answers[request_id] = Future()
        self.waiting.put(payload)
        try:
            return answer.result(timeout=self.timeout)
        except FutureTimeout:
            self.process.kill()
            self.process.wait()
            return failure("Sandbox.Timedout", f"Task timed out after {self.timeout}.00 seconds"), True
        finally:
            self.answers.pop(request_id, None)

    def take_output(self):
        time.sleep(0.005)  # the last output may still be in the pipe; it is then reported with the next call
        printed, self.output = self.output, []
        return printed

    def close(self):
        self.waiting.put(None)
        if not self.ended():
            self.process.terminate()
            try:
                self.process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        threading.Thread(target=self._close_server, daemon=True).start()

    def _close_server(self):
        self.server.shutdown()
        self.server.server_close()

    def _follow(self):
        """Keeps the output of the process. When the process ends, every wait for it ends."""
        for line in self.process.stdout:
            self.output.append(line)
            del self.output[:-2000]
        code = self.process.wait()
        body = failure("Runtime.ExitError", f"Runtime exited with exit status {code}")
        if not self.started.done():
            self.started.set_exception(StatusErrorException("the runtime ended", payload=body))
        for answer in list(self.answers.values()):
            if not answer.done():
                answer.set_result((body, True))


def failure(kind, message):
    return json.dumps({"errorType": kind, "errorMessage": message}).encode()


def runtime_api(runtime):
    """The request handler of one process's Runtime API, version 2018-06-01."""

    class RuntimeApi(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = 1 << 16

        def log_message(self, *args):
            pass

        def do_GET(self):
            if self.path != "/2018-06-01/runtime/invocation/next":
                return self._reply(404)
            if not runtime.started.done():
                runtime.started.set_result(True)
            payload = runtime.waiting.get()
            if payload is None:
                return self._reply(410)
            deadline = time.time() + runtime.timeout
            return self._reply(
                200,
                payload["payload"].encode(),
                {
                    "Content-Type": "application/json",
                    "Lambda-Runtime-Aws-Request-Id": payload["invoke-id"],
                    "Lambda-Runtime-Deadline-Ms": str(int(deadline * 1000)),
                    "Lambda-Runtime-Invoked-Function-Arn": payload["invoked-function-arn"],
                    "Lambda-Runtime-Trace-Id": payload["trace-id"],
                },
            )

        def do_POST(self):
            body = self._body()
            if self.path == "/2018-06-01/runtime/init/error":
                if not runtime.started.done():
                    runtime.started.set_exception(StatusErrorException("the handler did not load", payload=body))
                return self._reply(202)
            match = re.fullmatch(r"/2018-06-01/runtime/invocation/([^/]+)/(response|error)", self.path)
            answer = match and runtime.answers.get(match[1])
            if not answer or answer.done():
                return self._reply(400)
            answer.set_result((body, match[2] == "error"))
            return self._reply(202)

        def _body(self):
            if "chunked" not in (self.headers.get("Transfer-Encoding") or ""):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)

        def _reply(self, status, body=b"", headers=None):
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

    return RuntimeApi

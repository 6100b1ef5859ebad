"""Custom resources of CloudFormation. Without this plugin LocalStack's core reports them as successful and does nothing.

LocalStack finds this plugin by its entry point, like the executor. It invokes the function of the resource's service
token with the event. The function puts the result to the response URL: a loopback address here, a bucket in AWS.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-custom-resources.html
"""

import json
import threading
import uuid
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from localstack.services.cloudformation.resource_provider import (
    CloudFormationResourceProviderPlugin,
    OperationStatus,
    ProgressEvent,
    ResourceProvider,
)

DEFAULT_SECONDS = 120


class CustomResourcePlugin(CloudFormationResourceProviderPlugin):
    name = "AWS::CloudFormation::CustomResource"

    def load(self, *args, **kwargs):
        self.factory = CustomResource


class CustomResource(ResourceProvider):
    TYPE = "AWS::CloudFormation::CustomResource"
    SCHEMA = {"primaryIdentifier": ["/properties/PhysicalResourceId"]}

    def create(self, request):
        return deliver(request, "Create")

    def update(self, request):
        return deliver(request, "Update")

    def delete(self, request):
        return deliver(request, "Delete")


def deliver(request, kind):
    properties = {name: value for name, value in request.desired_state.items() if name != "PhysicalResourceId"}
    earlier = (request.previous_state or request.desired_state).get("PhysicalResourceId")
    seconds = int(properties.get("ServiceTimeout") or DEFAULT_SECONDS)
    answer = Future()
    server = ThreadingHTTPServer(("127.0.0.1", 0), response_url(answer))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        request.aws_client_factory.lambda_.invoke(
            FunctionName=properties["ServiceToken"],
            InvocationType="Event",
            Payload=json.dumps(
                {
                    "RequestType": kind,
                    "ResponseURL": f"http://127.0.0.1:{server.server_port}/",
                    "StackId": request.stack_id,
                    "RequestId": str(uuid.uuid4()),
                    "ResourceType": request.resource_type,
                    "LogicalResourceId": request.logical_resource_id,
                    "ResourceProperties": properties,
                    **({"PhysicalResourceId": earlier} if kind != "Create" else {}),
                }
            ),
        )
        said = answer.result(timeout=seconds)
    except FutureTimeout:
        return failed(properties, f"no answer from the function in {seconds} s")
    finally:
        server.shutdown()
        server.server_close()
    if said.get("Status") != "SUCCESS" or not said.get("PhysicalResourceId"):
        return failed(properties, said.get("Reason") or "the function gave no reason")
    model = {**properties, **(said.get("Data") or {}), "PhysicalResourceId": said["PhysicalResourceId"]}
    return ProgressEvent(status=OperationStatus.SUCCESS, resource_model=model)


def failed(properties, why):
    return ProgressEvent(status=OperationStatus.FAILED, resource_model=properties, message=why)


def response_url(answer):
    class ResponseUrl(BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_PUT(self):
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            if not answer.done():
                answer.set_result(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    return ResponseUrl

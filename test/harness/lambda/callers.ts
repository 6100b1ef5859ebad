/** What the front door writes into an event about its caller, as AWS documents it, and what Lambda says beside the event. */
import type { HttpEvent, LambdaContext } from '../../../adapters/lambda/http.ts';

const functionAccount = '111122223333';

export function contextIn(account: string = functionAccount, partition = 'aws'): LambdaContext {
  return { invokedFunctionArn: `arn:${partition}:lambda:eu-central-1:${account}:function:countersign-demo-sign` };
}

export function sessionArn(role: string, account: string = functionAccount, session = 'countersign-relay-0'): string {
  return `arn:aws:sts::${account}:assumed-role/${role}/${session}`;
}

/** `requestContext.authorizer` of an HTTP API with an IAM authorizer, and of a Function URL with AWS_IAM. */
export function iamAuthorizer(userArn: string, accountId = /:([0-9]{12}):/.exec(userArn)?.[1] ?? ''): object {
  const id = `AROA0123456789EXAMPLE:${userArn.split('/').at(-1)}`;
  return {
    iam: {
      accessKey: 'ASIA0123456789EXAMPLE',
      accountId,
      callerId: id,
      cognitoIdentity: null,
      principalOrgId: 'o-example',
      userArn,
      userId: id,
    },
  };
}

/** `requestContext.authorizer` behind lambdas/authorizer. */
export function tokenAuthorizer(subject: string, cluster = 'demo'): object {
  return { lambda: { cluster, subject } };
}

/** The POST of a client to `/v1/clusters/<cluster>/<operation>`, as API Gateway's payload format 2.0 has it, without a caller. */
export function postedEvent(
  cluster: string,
  operation: 'sign' | 'attest' | 'attest/look',
  body: unknown,
  query = '',
): HttpEvent {
  const path = `/v1/clusters/${cluster}/${operation}`;
  return {
    version: '2.0',
    rawPath: path,
    rawQueryString: query,
    headers: { 'content-type': 'application/json' },
    requestContext: { http: { method: 'POST', path } },
    body: JSON.stringify(body),
    isBase64Encoded: false,
  };
}

export function calledBy(event: HttpEvent, authorizer: unknown): HttpEvent {
  return { ...event, requestContext: { ...event.requestContext, authorizer } };
}

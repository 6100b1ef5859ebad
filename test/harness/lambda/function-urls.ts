/**
 * The part of Lambda's Function URLs that the emulators leave out: with AWS_IAM, Lambda tells the function who called
 * (`requestContext.authorizer.iam`). LocalStack asks for no signature at all; MiniStack checks signature and policies, and
 * tells the function nothing. https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads
 */
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import type { HttpAnswer, HttpEvent } from '../../../adapters/lambda/http.ts';
import { callerRoleName, functionName } from '../../../core/configuration/resolve/deployment.ts';
import type { AwsCredentials } from '../../conformance/sigv4.ts';
import { calledBy, iamAuthorizer } from './callers.ts';
import type { Emulator } from '../aws/emulator.ts';
import { startFakeSts } from '../fake-aws/sts.ts';
import { createFakeAws } from '../fake-aws/world.ts';
import { readAll, startLoopbackServer } from '../processes/forwarding.ts';
import { verifySigV4, type ReceivedRequest } from '../aws/sigv4-verifier.ts';

const account = '000000000000';

/** One call of a function by its URL, in the name of `userArn`. */
export async function invokeByUrl(
  { client }: Pick<Emulator, 'client'>,
  name: string,
  request: ReceivedRequest,
  userArn: string,
): Promise<HttpAnswer> {
  const lambda = new LambdaClient(client);
  try {
    const event = calledBy(urlEvent(request), iamAuthorizer(userArn));
    const result = await lambda.send(
      new InvokeCommand({ FunctionName: name, Payload: Buffer.from(JSON.stringify(event)) }),
    );
    const text = Buffer.from(result.Payload ?? []).toString('utf8');
    if (result.FunctionError !== undefined) return { statusCode: 502, headers: {}, body: 'Internal Server Error' };
    return JSON.parse(text) as HttpAnswer;
  } finally {
    lambda.destroy();
  }
}

function urlEvent({ method, target, headers, body }: ReceivedRequest): HttpEvent {
  const [path = '/', query = ''] = target.split('?', 2);
  return {
    version: '2.0',
    rawPath: path,
    rawQueryString: query,
    headers,
    requestContext: { http: { method, path } },
    ...(body.length === 0 ? {} : { body: Buffer.from(body).toString('base64') }),
    isBase64Encoded: body.length > 0,
  };
}

export interface FunctionUrls {
  /** Without path. Their names are under localhost, which not every resolver knows. */
  readonly sign: string;
  readonly attest: string;
  readonly port: number;
  /** A session of the caller role. */
  readonly credentials: AwsCredentials;
  /** For a relay, whose own user may assume the caller role. */
  readonly relayEnvironment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** The Function URLs of a cluster's functions in an emulator that checks nothing; STS is the strict fake, and so is the verifier here. */
export async function startFunctionUrls(emulator: Emulator, cluster: string): Promise<FunctionUrls> {
  const { region } = emulator.client;
  const aws = createFakeAws();
  const role = aws.createRole({ arn: `arn:aws:iam::${account}:role/${callerRoleName(cluster)}` });
  const relay = aws.createUser(account, 'relay', ['sts:AssumeRole']);
  const own = aws.session(role, 'suite', 43_200);
  const sts = await startFakeSts({ aws });

  async function answer(request: ReceivedRequest): Promise<HttpAnswer> {
    const forbidden = (why: string): HttpAnswer => ({
      statusCode: 403,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ Message: why }),
    });
    const [, service] = /^(sign|attest)\.lambda-url\./.exec(request.headers['host'] ?? '') ?? [];
    if (service !== 'sign' && service !== 'attest') return forbidden('no function has this host');
    const verified = verifySigV4(request, (id) => aws.secretOf(id), aws.now());
    if (typeof verified === 'string') return forbidden(verified);
    const credential = aws.credential(verified.accessKeyId);
    if (credential === undefined || credential.sessionToken !== verified.sessionToken) return forbidden('token');
    if (verified.service !== 'lambda' || verified.region !== region) return forbidden('signed for another service');
    return invokeByUrl(emulator, functionName(cluster, service), request, credential.principal.arn);
  }

  const server = await startLoopbackServer(async (incoming, outgoing) => {
    const headers = Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(',') : value]),
    );
    const body = new Uint8Array(await readAll(incoming));
    const { method = '', url: target = '' } = incoming;
    const { statusCode, headers: answered, ...sent } = await answer({ method, target, headers, body });
    const bytes = Buffer.from(sent.body, sent.isBase64Encoded === true ? 'base64' : 'utf8');
    outgoing.writeHead(statusCode, { ...answered, 'content-length': bytes.length });
    outgoing.end(bytes);
  });
  const { port } = new URL(server.url);
  const at = (service: string): string => `http://${service}.lambda-url.${region}.localhost:${port}`;
  return {
    sign: at('sign'),
    attest: at('attest'),
    port: Number(port),
    credentials: {
      accessKeyId: own.accessKeyId,
      secretAccessKey: own.secretAccessKey,
      ...(own.sessionToken === undefined ? {} : { sessionToken: own.sessionToken }),
    },
    relayEnvironment: {
      COUNTERSIGN_CALLER_ROLE: role.arn,
      AWS_ENDPOINT_URL_STS: sts.url,
      AWS_REGION: region,
      AWS_ACCESS_KEY_ID: relay.accessKeyId,
      AWS_SECRET_ACCESS_KEY: relay.secretAccessKey,
    },
    async close() {
      await server.close();
      await sts.close();
    },
  };
}

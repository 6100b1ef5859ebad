/** What goes to STS and what comes back, over real connections: to a strict STS, and to servers that do what none should. */
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { stsEndpoint } from '../../../../adapters/aws/sts.ts';
import type { StsRequest } from '../../../../core/attestation/aws/endpoints.ts';
import { MisconfigurationError, ThrottledError } from '../../../../core/ports/errors.ts';
import { hostOf } from '../../../harness/fake-aws/protocol/authentication.ts';
import { presign } from '../../../harness/fake-aws/protocol/presign.ts';
import { startFakeSts } from '../../../harness/fake-aws/sts.ts';
import type { FakeSts } from '../../../harness/fake-aws/sts.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';

const region = 'eu-central-1';
const aws = createFakeAws();
const { instanceId, account } = aws.launch({ region });
const id = 'csr-attest/v1/prod/0123';

let sts: FakeSts;
beforeAll(async () => {
  sts = await startFakeSts({ aws });
});
afterEach(() => sts.mend());
afterAll(() => sts.close());

/** As core builds it: the machine's own signature, our host, path and headers. */
function question(change: Partial<StsRequest> = {}): StsRequest {
  const url = presign({ credential: aws.identityCredential(instanceId), region, id, at: aws.now() });
  const host = hostOf(region);
  return {
    host,
    path: url.slice(`https://${host}`.length),
    headers: { 'x-k8s-aws-id': id, accept: 'application/json' },
    ...change,
  };
}

const ask = (change?: Partial<StsRequest>, endpoint = sts.url, timeoutMilliseconds = 5_000) =>
  stsEndpoint({ endpoint, timeoutMilliseconds })(question(change));

/** Why no answer came. */
async function failure(asked: Promise<unknown>): Promise<unknown> {
  return asked.then(
    (answer) => ({ answer }),
    (error: unknown) => error,
  );
}

describe('what STS is asked', () => {
  test('is what core built, under the host that was signed, and the answer is given as it came', async () => {
    const asked = question();
    const answer = await stsEndpoint({ endpoint: sts.url })(asked);
    expect(answer).toMatchObject({ status: 200, contentType: 'application/json' });
    expect(JSON.parse(answer.body)).toMatchObject({
      GetCallerIdentityResponse: {
        GetCallerIdentityResult: { Account: account, UserId: expect.any(String) as string },
      },
    });
    const received = sts.received.at(-1);
    expect(received).toMatchObject({ method: 'GET', target: asked.path });
    expect(received?.body).toHaveLength(0);
    // Nothing but ours, and what HTTP itself needs: no cookie, no encoding, no user agent that an answer could depend on.
    expect(received?.headers).toEqual({ ...asked.headers, host: asked.host, connection: 'close' });
    expect(sts.calls.at(-1)).toMatchObject({ host: asked.host, k8sAwsId: id, presigned: true });
  });

  test.each(['/?a=b&c', '/?x=%2F..%2F#y', '//evil.example/?x', '/?a=b\\c', '/./?a'])(
    'keeps the path %s, which a URL parser would read its own way',
    async (path) => {
      await ask({ path });
      expect(sts.received.at(-1)?.target).toBe(path);
    },
  );

  test('a refusal of STS is an answer: what it means is for core to say', async () => {
    const other = await ask({ headers: { 'x-k8s-aws-id': `${id}4`, accept: 'application/json' } });
    expect(other.status).toBe(403);
    expect(other.body).toContain('SignatureDoesNotMatch');
    sts.fail(400, 'ExpiredToken', 'x', { times: 1 });
    expect((await ask()).status).toBe(400);
  });
});

describe('what is no answer', () => {
  test('a redirect is not followed', async () => {
    const before = sts.received.length;
    const location = `${sts.url}/?elsewhere`;
    sts.inject({
      when: 'before',
      times: 1,
      answer: { status: 307, contentType: '', body: 'go', headers: { location } },
    });
    expect(await ask()).toMatchObject({ status: 307, body: 'go' });
    expect(sts.received.length - before).toBe(1);
  });

  test.each([500, 502, 503, 599])('status %s is thrown, without a word of its body', async (status) => {
    sts.fail(status, 'InternalFailure', 'secret text', { times: 1 });
    const error = await failure(ask());
    expect(error).toMatchObject({ message: `STS answered with status ${status}` });
    expect(error).not.toBeInstanceOf(ThrottledError);
    expect(error).not.toBeInstanceOf(MisconfigurationError);
  });

  test('429 is thrown as being asked too often', async () => {
    sts.fail(429, 'Throttling', 'Rate exceeded', { times: 1 });
    expect(await failure(ask())).toBeInstanceOf(ThrottledError);
  });

  test.each([
    ['ends before it answers', { when: 'before', times: 1 }],
    ['ends after it did all there was to do', { when: 'after', times: 1 }],
    ['ends within its answer', { times: 1, truncateAt: 40 }],
  ] as const)('a connection that %s', async (_, fault) => {
    sts.inject(fault);
    expect(await failure(ask())).toBeInstanceOf(Error);
    expect((await ask()).status).toBe(200);
  });

  test('no server listens', async () => {
    const server = createServer();
    const url = await listening(server);
    await new Promise((resolve) => server.close(resolve));
    expect(await failure(ask({}, url))).toMatchObject({
      message: 'STS did not answer properly',
      cause: { code: 'ECONNREFUSED' },
    });
  });

  describe('from a server of its own mind', () => {
    async function asked(listener: RequestListener, timeoutMilliseconds?: number): Promise<unknown> {
      const server = createServer(listener);
      const url = await listening(server);
      const result = await failure(ask({}, url, timeoutMilliseconds));
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      return result;
    }

    test('silence', async () => {
      expect(await asked(() => {}, 100)).toMatchObject({ message: 'STS did not answer properly' });
    });

    test('one byte now and then: the time is for the whole answer, not for the next byte', async () => {
      let sent = 0;
      const error = await asked((_, response) => {
        response.writeHead(200);
        const drip = setInterval(() => {
          sent += 1;
          response.write(' ');
        }, 20);
        response.on('close', () => clearInterval(drip));
      }, 600);
      expect(error).toBeInstanceOf(Error);
      expect(sent).toBeGreaterThan(1);
    });

    test('64 KiB are read, and not a byte more, announced or not', async () => {
      const sized = (size: number, announce: boolean) =>
        asked((_, response) => {
          response.writeHead(200, announce ? { 'content-length': size } : {});
          response.end('x'.repeat(size));
        });
      expect(await sized(65_536, true)).toMatchObject({ answer: { body: 'x'.repeat(65_536), contentType: '' } });
      for (const announced of [true, false])
        expect(await sized(65_537, announced)).toMatchObject({ cause: { message: 'the answer is too large' } });
    });

    test('an answer without end is left', async () => {
      let ended = false;
      const error = await asked((_, response) => {
        response.writeHead(200);
        const more = (): void => {
          if (!response.destroyed) response.write('x'.repeat(16_384), () => setImmediate(more));
        };
        response.on('close', () => (ended = true));
        more();
      });
      expect(error).toMatchObject({ cause: { message: 'the answer is too large' } });
      await expect.poll(() => ended).toBe(true);
    });

    test('something else than HTTP', async () => {
      const error = await asked((request) => void request.socket.end('SSH-2.0-x\r\n'));
      expect(error).toMatchObject({ message: 'STS did not answer properly' });
    });
  });
});

describe('whose word it is', () => {
  let tls: FakeSts;
  const known = getCACertificates('default');
  beforeAll(async () => {
    tls = await startFakeSts({ aws, tls: [region] });
  });
  afterEach(() => setDefaultCACertificates(known));
  afterAll(() => tls.close());

  test('a server with a certificate of a CA that this machine trusts, for the signed host', async () => {
    setDefaultCACertificates([tls.caPem ?? '']);
    expect((await ask({}, tls.url)).status).toBe(200);
  });

  test('no server with a certificate for another host, wherever the connection goes', async () => {
    setDefaultCACertificates([tls.caPem ?? '']);
    const error = await failure(ask({ host: hostOf('eu-west-1') }, tls.url));
    expect(error).toMatchObject({ cause: { code: 'ERR_TLS_CERT_ALTNAME_INVALID' } });
  });

  test('no server with a certificate of an unknown CA', async () => {
    const before = tls.received.length;
    expect(await failure(ask({}, tls.url))).toMatchObject({ message: 'STS did not answer properly' });
    expect(tls.received.length).toBe(before);
  });
});

async function listening(server: ReturnType<typeof createServer>): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

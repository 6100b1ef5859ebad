import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { verifySigV4 } from './sigv4-verifier.ts';

/** AWS STS as far as assuming roles goes, and EKS's agent of Pod Identity; it believes nobody's signature unverified. */
export interface FakeSts {
  readonly url: string;
  /** A projected service-account token. */
  readonly tokenFile: string;
  readonly calls: readonly Readonly<Record<string, string>>[];
  secretOf(accessKeyId: string): string | undefined;
  lifetimeSeconds: number;
  /** From now on, until `mend`. */
  fail(status: number, code: string, message: string): void;
  mend(): void;
  close(): void;
}

interface Base {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export async function startFakeSts(base: Base): Promise<FakeSts> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-sts-'));
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, 'a.projected.token');
  const secrets = new Map([[base.accessKeyId, base.secretAccessKey]]);
  const calls: Record<string, string>[] = [];
  let failure: { status: number; code: string; message: string } | undefined;
  let given = 0;

  /** New credentials, whose secret only this process knows. */
  function give(): { id: string; secret: string; token: string; expiration: string } {
    given += 1;
    const [id, secret] = [`ASIA${given}`, `secret-${given}`];
    secrets.set(id, secret);
    const expiration = new Date(Date.now() + sts.lifetimeSeconds * 1_000).toISOString();
    return { id, secret, token: `session-${given}`, expiration };
  }

  function answer(
    method: string,
    target: string,
    headers: IncomingHttpHeaders,
    body: Buffer,
  ): [number, string, string] {
    if (target === '/agent') {
      if (headers.authorization !== 'a.projected.token') return [401, 'application/json', '{}'];
      const { id, secret, token, expiration } = give();
      const json = { AccessKeyId: id, SecretAccessKey: secret, Token: token, Expiration: expiration };
      return [200, 'application/json', JSON.stringify(json)];
    }
    if (failure !== undefined) return [failure.status, 'text/xml', errorXml(failure.code, failure.message)];
    const {
      Action: action = '',
      Version: _version,
      ...rest
    } = Object.fromEntries(new URLSearchParams(body.toString('utf8'))) as Record<string, string>;
    if (action === 'AssumeRoleWithWebIdentity') {
      if (rest['WebIdentityToken'] !== 'a.projected.token')
        return [400, 'text/xml', errorXml('InvalidIdentityToken', '')];
      calls.push({ action, ...rest });
    } else {
      const received = { method, target, headers: headers as Record<string, string>, body };
      const who = verifySigV4(received, (id) => secrets.get(id), Date.now());
      if (typeof who === 'string' || who.service !== 'sts')
        return [403, 'text/xml', errorXml('SignatureDoesNotMatch', JSON.stringify(who))];
      calls.push({ action, signedBy: who.accessKeyId, region: who.region, ...rest });
    }
    const { id, secret, token, expiration } = give();
    const credentials = `<Credentials><AccessKeyId>${id}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey><SessionToken>${token}</SessionToken><Expiration>${expiration}</Expiration></Credentials>`;
    const user = `<AssumedRoleUser><Arn>arn:aws:sts::111122223333:assumed-role/r/s</Arn><AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser>`;
    const xml = `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result>${credentials}${user}</${action}Result></${action}Response>`;
    return [200, 'text/xml', xml];
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const [status, type, text] = answer(method, url, headers, Buffer.concat(chunks));
      response.writeHead(status, { 'content-type': type }).end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const sts: FakeSts = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tokenFile,
    calls,
    secretOf: (id) => secrets.get(id),
    lifetimeSeconds: 3_600,
    fail: (status, code, message) => (failure = { status, code, message }),
    mend: () => (failure = undefined),
    close() {
      server.closeAllConnections();
      server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return sts;
}

function errorXml(code: string, message: string): string {
  return `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error><RequestId>r</RequestId></ErrorResponse>`;
}

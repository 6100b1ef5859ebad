/** `cert list`, `find` and `export` over 100 000 records, and the CRL of 10 000: what they call and what they keep. */
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { BatchWriteItemCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { dynamoDbCrls, dynamoDbRevocations } from '../../../../adapters/dynamodb/revocations.ts';
import { expiryPartition, itemKey } from '../../../../adapters/dynamodb/table.ts';
import { itemFrom } from '../../../../adapters/dynamodb/values.ts';
import { embeddedSigner } from '../../../../adapters/embedded/signer.ts';
import { renewCrl } from '../../../../core/revocation/renew-crl.ts';
import { revocationFixture } from '../../../contract/revocation/revocations.ts';
import { startAwsProxy } from '../../../harness/aws/proxy.ts';
import type { AwsProxy } from '../../../harness/aws/proxy.ts';
import { createCertificatesTable } from '../../../harness/aws/tables.ts';
import { createTestAuthority } from '../../../harness/x509/test-certificates.ts';
import { run } from '../../../unit/cli/run.ts';
import { day, ledgerFolder } from '../../../unit/cli/inventory/ledger.ts';
import { describeOnEmulators } from './emulators.ts';

const records = 100_000;
const days = 30;
const now = Math.floor(Date.now() / day) * day;

const commandLine = join(import.meta.dirname, '../../../../cli/countersign.ts');

/** The lines of its output are counted and not kept. */
async function processOf(argv: readonly string[], environment: Readonly<Record<string, string>>) {
  const args = ['--max-old-space-size=128', commandLine, ...argv];
  const child = spawn(process.execPath, args, { env: { PATH: process.env['PATH'], ...environment } });
  let [lines, last, err] = [0, '', ''];
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const closed = once(child, 'close');
  for await (const line of createInterface({ input: child.stdout })) {
    lines += 1;
    last = line;
  }
  const [code] = (await closed) as [number | null];
  return { code, lines, last, err };
}

describeOnEmulators(['DynamoDB Local'], (_, emulator) => {
  let proxy: AwsProxy;
  let tableName: string;
  const cleanUps: (() => void)[] = [];

  beforeAll(async () => {
    const client = new DynamoDBClient({ ...emulator().client, endpoint: emulator().url });
    proxy = await startAwsProxy(emulator().url);
    tableName = await createCertificatesTable(client, `scale-${randomUUID()}`);
    const folder = await ledgerFolder(undefined, (cleanUp) => cleanUps.push(cleanUp));
    const like = await folder.issued(now);
    const { certificate: cert, ...record } = like;
    const put = (i: number) => {
      const [uid, serial] = [`uid-${i}`, randomBytes(16).toString('hex')];
      const notAfter = now + Math.floor((i * days * day) / records);
      const request = { ...record.request, requester: i % 1_000 === 0 ? 'rare' : 'common' };
      const fields = { ...record, uid, serial, notAfter, cert, request, expiry: expiryPartition(notAfter, serial) };
      return { PutRequest: { Item: { pk: { S: itemKey('uid', uid) }, ...itemFrom(fields) } } };
    };
    let next = 0;
    const worker = async () => {
      while (next < records) {
        const first = next;
        next += 25;
        const items = Array.from({ length: 25 }, (__, i) => put(first + i));
        await client.send(new BatchWriteItemCommand({ RequestItems: { [tableName]: items } }));
      }
    };
    await Promise.all(Array.from({ length: 16 }, worker));
    client.destroy();
  }, 600_000);
  afterAll(async () => {
    for (const cleanUp of cleanUps) cleanUp();
    await proxy?.close();
  });
  afterEach(() => vi.unstubAllEnvs());

  async function measured(...argv: readonly string[]) {
    const { client } = emulator();
    const { credentials } = client;
    const environment = {
      AWS_ENDPOINT_URL: proxy.url,
      AWS_REGION: client.region,
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      AWS_CONFIG_FILE: '/nonexistent',
      AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
    };
    for (const [key, value] of Object.entries(environment)) vi.stubEnv(key, value);
    const before = proxy.calls.length;
    const ran = await run(['cert', ...argv, '--cluster', 'demo', '--from', new Date(now).toISOString()], {
      environment: { COUNTERSIGN_CERTIFICATES_TABLE: tableName },
      world: { now: () => now },
    });
    const calls = proxy.calls.slice(before).map(({ body }) => JSON.parse(body.toString('utf8')) as object);
    expect([ran.code, ran.err.includes('unexpected')], ran.err).toEqual([0, false]);
    for (const call of calls) expect(call).toMatchObject({ IndexName: 'expiry', Limit: 100 });
    return { ...ran, calls: calls.length };
  }

  test('a page of a hundred takes the first pages of one day', async () => {
    const { out, calls } = await measured('list', '--limit', '100', '-o', 'json');
    expect((JSON.parse(out) as { certificates: object[] }).certificates).toHaveLength(100);
    expect(calls).toBeLessThanOrEqual(32);
  });

  /** In a process whose heap cannot hold the records: 100 000 of them take several times as much. */
  test.each([
    ['export', ['export']],
    ['find', ['find', '--requester', 'rare', '-o', 'json']],
  ])('%s in a heap of 128 MB', async (_, argv) => {
    const { url, client } = emulator();
    const range = ['--from', new Date(now).toISOString(), '--to', new Date(now + days * day).toISOString()];
    const ran = await processOf(['cert', ...argv, '--cluster', 'demo', ...range], {
      AWS_ENDPOINT_URL: url,
      AWS_REGION: client.region,
      AWS_ACCESS_KEY_ID: client.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: client.credentials.secretAccessKey,
      AWS_CONFIG_FILE: '/nonexistent',
      AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
      COUNTERSIGN_CERTIFICATES_TABLE: tableName,
    });
    expect([ran.code, ran.err]).toEqual([0, expect.not.stringContaining('heap')]);
    if (argv[0] === 'export') {
      expect(ran.lines).toBe(records + 1);
      expect(ran.last).toContain(`"records":${records}`);
    }
  });

  test('a search over the whole range reads each page once', async () => {
    const to = new Date(now + days * day).toISOString();
    const { out, calls } = await measured('find', '--requester', 'rare', '--to', to, '-o', 'json');
    expect((JSON.parse(out) as { certificates: object[] }).certificates).toHaveLength(records / 1_000);
    // Sixteen partitions a day, a page for each hundred records of a partition, and one more to see its end.
    expect(calls).toBeLessThanOrEqual(records / 100 + 2 * 16 * days);
  });
});

/** Each entry is one item of the table; the CRL with its list is larger than an item. */
describeOnEmulators(['DynamoDB Local'], (_, emulator) => {
  test('the CRL of 10 000 revocations is issued from the table, stored in parts and read back', async () => {
    const client = new DynamoDBClient({ ...emulator().client, endpoint: emulator().url });
    onTestFinished(() => client.destroy());
    const table = await createCertificatesTable(client, `crl-${randomUUID()}`);
    const options = { client, tableName: table, randomBytes };
    const [revocations, crls] = [dynamoDbRevocations(options), dynamoDbCrls(options)];
    const { certificatePem, keyPem } = await createTestAuthority('crl ca');
    const certificate = new Uint8Array(new X509Certificate(certificatePem).raw);
    const authority = { name: 'nodes', certificate, intermediates: [], signer: embeddedSigner(keyPem) };
    const { keyId: caKeyId } = authority.signer;
    let left = 10_000;
    const worker = async () => {
      while (left > 0) {
        left -= 1;
        await revocations.add(revocationFixture({ caKeyId, notAfter: now + days * day }));
      }
    };
    await Promise.all(Array.from({ length: 32 }, worker));
    const begun = performance.now();
    const issued = await renewCrl(authority, [], { revocations, crls, now: () => now });
    // The ca function has two minutes.
    expect(performance.now() - begun).toBeLessThan(60_000);
    expect([issued.issued, issued.crl.revoked.length]).toEqual([true, 10_000]);
    const stored = await crls.findCrl(caKeyId);
    expect(Buffer.from(stored!.der!).equals(Buffer.from(issued.crl.der!))).toBe(true);
    const read = spawnSync('openssl', ['crl', '-inform', 'DER', '-noout', '-text'], {
      input: stored!.der!,
      encoding: 'utf8',
      maxBuffer: 1 << 24,
    });
    expect(read.stdout.match(/Serial Number: /g)).toHaveLength(10_000);
    expect((await renewCrl(authority, [], { revocations, crls, now: () => now + 1 })).issued).toBe(false);
  }, 600_000);
});

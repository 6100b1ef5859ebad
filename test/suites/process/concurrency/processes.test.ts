import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request, type ClientRequest } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../../harness/processes/processes.ts';
import { certificateOf, signedObject } from '../../../harness/stack/deliveries.ts';
import { tbsOf } from '../../../harness/stack/key.ts';
import { clusterPath, ledgerOf, startDevServer, type DevServer } from '../../../harness/stack/stack.ts';

const deliveries = 100;

interface Answer {
  readonly status: number;
  readonly outcome: unknown;
  readonly body: string;
}

/** A delivery whose last byte is held back: the server knows of it and waits. `end` lets it go and gives the answer. */
async function openDelivery(url: string, agent: Agent, body: string): Promise<{ end(): Promise<Answer> }> {
  const bytes = Buffer.from(body);
  const outgoing: ClientRequest = request(`${url}${clusterPath}/sign`, {
    agent,
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-length': bytes.length },
  });
  const answer = new Promise<Answer>((resolve, reject) => {
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () => {
        const { statusCode: status = 0, headers } = incoming;
        resolve({ status, outcome: headers['x-countersign-outcome'], body: Buffer.concat(chunks).toString() });
      });
    });
  });
  await new Promise<void>((resolve, reject) => {
    outgoing.on('error', reject);
    outgoing.write(bytes.subarray(0, -1), () => resolve());
  });
  return {
    end: () => {
      outgoing.end(bytes.subarray(-1));
      return answer;
    },
  };
}

describe.each([
  { what: 'of the dev server', counting: false },
  { what: 'of its service with a key that counts', counting: true },
])(`${deliveries} deliveries at once to two processes over one data folder, $what`, ({ counting }) => {
  const folder = temporaryFolder('deliveries');
  const dataDir = join(folder.path, 'data');
  const countFile = join(folder.path, 'signatures');
  const agent = new Agent({ keepAlive: true, maxSockets: deliveries });
  let servers: DevServer[] = [];
  let conditionalFailures = 0;

  beforeAll(async () => {
    // Both at once on an empty folder: they agree on one CA and one ledger, or one of them fails.
    const options = { dataDir, ...(counting ? { countFile } : {}) };
    servers = await Promise.all([startDevServer(options), startDevServer(options)]);
  });
  afterAll(async () => {
    agent.destroy();
    for (const server of servers) await server.stop();
    folder.remove();
  });

  test('the two made one CA', async () => {
    const [first, second] = await Promise.all(servers.map((server) => server.caPem()));
    expect(first).toBe(second);
  });

  async function round(): Promise<void> {
    rmSync(countFile, { force: true });
    const uid = randomUUID();
    const body = JSON.stringify(signedObject(uid));
    const urlOf = (i: number): string => servers[i % servers.length]!.url;
    const opened = await Promise.all(Array.from({ length: deliveries }, (_, i) => openDelivery(urlOf(i), agent, body)));
    const first = await Promise.all(opened.map((delivery) => delivery.end()));

    // Busy: another had begun it.
    const busy = first.filter(({ status }) => status === 503);
    for (const { outcome, body: text } of busy) {
      expect(outcome).toBe('busy');
      expect(text).toContain('InProgress');
    }
    conditionalFailures += busy.length;

    const final = await Promise.all(
      first.map(async (answer, i) => {
        let last = answer;
        for (let retries = 0; last.status === 503 && retries < 50; retries += 1)
          last = await (await openDelivery(urlOf(i), agent, body)).end();
        return last;
      }),
    );
    expect(final.map(({ status }) => status)).toEqual(final.map(() => 200));
    const certificates = [...new Set(final.map((answer) => certificateOf(answer).toString('hex')))];
    expect(certificates).toHaveLength(1);

    const { ledger, close } = ledgerOf(servers[0]!);
    const record = await ledger.find(uid);
    close();
    expect(record).toMatchObject({ state: 'issued', attempt: 1 });
    expect(Buffer.from(record!.certificate!).toString('hex')).toBe(certificates[0]);
    expect(existsSync(countFile)).toBe(counting);
    if (counting) {
      expect(readFileSync(countFile, 'utf8').trimEnd().split('\n')).toEqual([tbsOf(record!.certificate!)]);
    }
  }

  // Several rounds: where the two processes meet is left to the machine.
  test.each([1, 2, 3, 4, 5])('one record, one content, one certificate: round %i', round);

  test('the ledger has said no', async () => {
    for (let more = 0; conditionalFailures === 0 && more < 50; more += 1) await round();
    expect(conditionalFailures).toBeGreaterThan(0);
  });
});

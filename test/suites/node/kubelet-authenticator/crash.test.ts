/*
 * SIGKILL instead of every single step that the program takes in its cache, one run for each; and a disk that does not do
 * its part.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeRequest } from '../../../../core/x509/certificate-request.ts';
import { cacheFiles, printed, type Printed } from '../../../harness/node/authenticator-output.ts';
import { startAuthenticatorSite, type AuthenticatorSite, type Node } from '../../../harness/node/authenticator-site.ts';

let site: AuthenticatorSite;
beforeAll(async () => {
  site = await startAuthenticatorSite();
});
afterAll(() => site?.close());

const goTo = (moment: number) => site.platform.advance(moment - site.platform.now() + 1_000);
const faults = (node: Node, more: Record<string, string>) => ({ env: { FS_FAULTS_FOLDER: node.cache, ...more } });

/** One killed run after the other, each at a later step, until one ends before it would be killed. */
async function killEverywhere(
  start: (step: number) => Promise<Node>,
  check: (node: Node, step: number) => Promise<void>,
): Promise<number> {
  for (let step = 1; ; step += 1) {
    const node = await start(step);
    const killed = await node.run(faults(node, { FS_FAULTS_KILL_AT: String(step) }));
    if (killed.signal === null) {
      printed(killed);
      return step - 1;
    }
    expect([step, killed.signal, killed.stdout]).toEqual([step, 'SIGKILL', '']);
    await check(node, step);
  }
}

const requestsFor = async (name: string) =>
  (await site.requests()).filter(({ pem }) => commonNameIn(pem) === `system:node:${name}`);

function commonNameIn(pem: string): string {
  const decoded = decodeRequest(Buffer.from(pem));
  return decoded.ok ? decoded.value.subject.commonName : '';
}

describe('killed at every step in its cache', () => {
  test('on the way to a first certificate: the next run gets it, by the same key and one request', async () => {
    const steps = await killEverywhere(
      (step) => site.node(`first-${step}`),
      async (node, step) => {
        const recovered = await node.run();
        const after = printed(recovered);
        const requests = await requestsFor(node.name);
        // Asked and killed before the answer: found again, not asked twice.
        expect([step, requests.length, recovered.stderr]).toEqual([step, 1, expect.any(String)]);
        expect(requests[0]!.certificatePem).toBe(after.certificatePem);
      },
    );
    console.log(`killed at ${steps} steps on the way to a first certificate`);
    expect(steps).toBeGreaterThan(40);
  }, 400_000);

  test('on the way to a renewal: the next run prints the old certificate or the new one, whole, and ends with the new', async () => {
    const node = await site.node('renewal');
    const first = printed(await node.run());
    goTo(first.expires);
    let before: Printed = first;
    const steps = await killEverywhere(
      async () => {
        // Each run begins with a certificate that is due.
        goTo(before.expires);
        return node;
      },
      async (_node, step) => {
        const next = printed(await node.run());
        expect([step, next.certificatePem === before.certificatePem]).toEqual([step, false]);
        before = next;
      },
    );
    // What killed runs left behind went with the work of later ones.
    expect(Object.keys(cacheFiles(node)).toSorted()).toEqual(['client-copy.pem', 'client.lock', 'client.pem']);
    console.log(`killed at ${steps} steps on the way to a renewal`);
    expect(steps).toBeGreaterThan(40);
  }, 400_000);
});

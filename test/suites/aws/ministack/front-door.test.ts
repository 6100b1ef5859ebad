/** The stacks as synthesised, in an AWS that checks signatures and permissions: who gets in by the HTTP API, and who does not. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSigV4 } from '../../../../adapters/aws/sigv4.ts';
import { runConformance } from '../../../conformance/conformance.ts';
import { httpClient } from '../../../conformance/http-client.ts';
import type { ClientOptions } from '../../../conformance/http-client.ts';
import { ask, questionFor } from '../../../conformance/questions.ts';
import { signAws } from '../../../conformance/sigv4.ts';
import type { Assembly } from '../../../harness/aws/sdk-stacks.ts';
import {
  assumeRole,
  createRole,
  deployOnMiniStack,
  synthesiseClusters,
  judgedByMiniStack,
  type MiniStackDeployment,
  type SessionCredentials,
} from '../../../harness/aws/ministack-deployment.ts';
import { requireTools } from '../../../tools/tools.ts';
import { matches } from '../../../unit/lib/filter-pattern.ts';
import { logOf } from './function-logs.ts';

const { skip } = await requireTools('ministack');

describe.skipIf(skip)('the stacks in MiniStack, with signatures and permissions checked', () => {
  let assembly: Assembly;
  let deployment: MiniStackDeployment;
  let caller: SessionCredentials;
  beforeAll(async () => {
    assembly = synthesiseClusters({ demo: { dashboard: true }, other: {} });
    deployment = await deployOnMiniStack(assembly);
    caller = await deployment.caller('demo');
  });
  afterAll(() => deployment?.stop());

  const urlOf = (cluster: string): string => deployment.outputs[cluster]?.['SignUrl'] ?? '';

  /** Calls the URL as it is in the outputs; its name resolves nowhere. */
  async function call(
    url: string,
    authorize: ClientOptions['authorize'] | undefined,
    request: { readonly method: string; readonly body?: object },
  ): Promise<{ readonly status: number; readonly outcome: string | null; readonly text: string }> {
    const client = httpClient({
      connect: { host: '127.0.0.1', port: deployment.emulator.port },
      ...(authorize === undefined ? {} : { authorize }),
    });
    try {
      const answer = await client.fetch(url, {
        method: request.method,
        headers: request.body === undefined ? {} : { 'content-type': 'application/json' },
        ...(request.body === undefined ? {} : { body: new Uint8Array(Buffer.from(JSON.stringify(request.body))) }),
        signal: AbortSignal.timeout(60_000),
        redirect: 'manual',
      });
      const text = Buffer.from(await answer.arrayBuffer()).toString();
      return { status: answer.status, outcome: answer.headers.get('x-countersign-outcome'), text };
    } finally {
      client.close();
    }
  }

  /** What the relay does to its calls, with a session of any role. */
  function signedAsRelay(credentials: SessionCredentials, now: () => number = Date.now): ClientOptions['authorize'] {
    const { region } = deployment.emulator.client;
    const expiration = new Date(Date.now() + 3_600_000);
    const sign = createSigV4(
      { url: urlOf('demo'), roleArn: '', sessionName: 'suite', region },
      { now, assume: async () => ({ ...credentials, expiration }) },
    );
    return async ({ method, url, headers, body }) => {
      const signed = await sign({ method, url, headers, body: body ?? new Uint8Array() });
      if (!signed.ok) throw new Error(signed.problem);
      return signed.value;
    };
  }

  const question = () =>
    questionFor('kubernetes.io/kubelet-serving', { username: 'suite', groups: ['system:authenticated'] });
  const permitted = (): { readonly method: string; readonly body: object } => ({
    method: 'POST',
    body: ask(question()).object,
  });

  describe('for the caller role, with calls signed as the relay signs them', () => {
    test('issue what is permitted, by the CA that was made while they were', async () => {
      const answer = await call(`${urlOf('demo')}/sign`, signedAsRelay(caller), permitted());
      expect(answer).toMatchObject({ status: 200, outcome: 'issued' });
      const bundle = await call(`${urlOf('demo')}/trust-bundle`, signedAsRelay(caller), { method: 'GET' });
      expect(bundle).toMatchObject({ status: 200 });
      expect(bundle.text).toMatch(/^-----BEGIN CERTIFICATE-----/);
    });

    test('refuse what is not, and say so', async () => {
      const { object } = ask(question(), { spec: { usages: ['code signing'] } });
      const answer = await call(`${urlOf('demo')}/sign`, signedAsRelay(caller), { method: 'POST', body: object });
      expect(answer).toMatchObject({ status: 422, outcome: 'refused' });
    });

    test('pass the conformance checks', async () => {
      const { client: aws, port } = deployment.emulator;
      const client = httpClient({
        connect: { host: '127.0.0.1', port },
        // Not the relay's, which signs no queries.
        authorize: signAws({ region: aws.region, credentials: caller }),
      });
      try {
        const results = await runConformance({ base: urlOf('demo'), fetch: client.fetch, concurrent: 4 });
        const others = results.filter(({ outcome }) => outcome !== 'passed');
        expect(others.map(({ id, outcome, detail }) => `${id} ${outcome}: ${detail}`)).toEqual([]);
        expect(results.length).toBeGreaterThan(30);
      } finally {
        client.close();
      }
    });
  });

  /** The same request, and what is wrong is only who brings it. */
  describe('answer 403 to a request they would issue', () => {
    const minutes = 60_000;
    test.each<[string, string, () => Promise<ClientOptions['authorize']> | ClientOptions['authorize']]>([
      ['that is not signed', 'Forbidden', () => undefined],
      [
        'signed with another secret',
        'signature we calculated does not match',
        () => signedAsRelay({ ...caller, secretAccessKey: `${caller.secretAccessKey.slice(0, -1)}!` }),
      ],
      [
        // Not another body: MiniStack believes the hash that a call names for it, and never takes one itself.
        'signed for another path',
        'signature we calculated does not match',
        () => {
          const sign = signedAsRelay(caller);
          return (asked) => sign!({ ...asked, url: new URL(`${urlOf('demo')}/trust-bundle`) });
        },
      ],
      ['signed twenty minutes ago', 'expired', () => signedAsRelay(caller, () => Date.now() - 20 * minutes)],
      [
        'signed with a session that never was',
        'token',
        () => signedAsRelay({ ...caller, sessionToken: 'bm8gc2Vzc2lvbg==' }),
      ],
      [
        "signed by another cluster's caller",
        'not authorized to perform: execute-api:Invoke',
        async () => signedAsRelay(await deployment.caller('other')),
      ],
      [
        'signed by the relay itself, without the caller role',
        'not authorized to perform: execute-api:Invoke',
        async () => signedAsRelay(await deployment.relay('demo')),
      ],
    ])('%s', async (_, why, authorize) => {
      const request = permitted();
      const answer = await call(`${urlOf('demo')}/sign`, await authorize(), request);
      expect(answer).toMatchObject({ status: 403, outcome: null });
      expect(answer.text).toContain(why);
      // The request was not the reason of the refusal: from a permitted caller it is issued.
      const again = await call(`${urlOf('demo')}/sign`, signedAsRelay(caller), request);
      expect(again).toMatchObject({ status: 200, outcome: 'issued' });
    });
  });

  describe('finding 2: for another role of the account, which IAM lets call every API', () => {
    const name = 'deployer';
    const principal = `arn:aws:sts::000000000000:assumed-role/${name}`;
    let stranger: SessionCredentials;
    beforeAll(async () => {
      const { emulator } = deployment;
      const arn = await createRole(emulator, name, 'execute-api:Invoke', 'lambda:InvokeFunctionUrl');
      stranger = await assumeRole(emulator.client, arn);
    });

    test('answer 403, from the handler and not from the front door, and sign nothing', async () => {
      const request = permitted();
      const answer = await call(`${urlOf('demo')}/sign`, signedAsRelay(stranger), request);
      expect(answer).toMatchObject({ status: 403, outcome: 'forbidden' });
      expect(answer.text).not.toContain(name);
      // CA certificates are public.
      expect(await call(`${urlOf('demo')}/trust-bundle`, signedAsRelay(stranger), { method: 'GET' })).toMatchObject({
        status: 200,
      });
      const again = await call(`${urlOf('demo')}/sign`, signedAsRelay(caller), request);
      expect(again).toMatchObject({ status: 200, outcome: 'issued' });
    });

    test('write its name into the log, in the line that the alarm counts', async () => {
      const lines = (await logOf(deployment)).split('\n').filter((line) => line.includes('"outcome":"forbidden"'));
      const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      expect(entries).toMatchObject([
        {
          level: 'warn',
          status: 403,
          cluster: 'demo',
          caller: `${principal}/suite`,
          callerPrincipal: principal,
          trouble: 'callers-refused',
          alarm: 'unexpected-refusals',
        },
      ]);
      const filters = Object.entries(assembly.templates.get('countersign-demo')!.Resources).flatMap(
        ([id, { Type, Properties }]) =>
          Type === 'AWS::Logs::MetricFilter' && id.startsWith('Filtersign')
            ? [String(Properties?.['FilterPattern'])]
            : [],
      );
      expect(filters.filter((pattern) => matches(pattern, lines[0]!))).toEqual(['{ $.alarm = "unexpected-refusals" }']);
    });
  });

  test("let only its own relay assume a cluster's caller role", async () => {
    for (const [cluster, other] of [
      ['demo', 'other'],
      ['other', 'demo'],
    ] as const) {
      const role = deployment.outputs[cluster]?.['CallerRoleArn'] ?? '';
      await expect(deployment.assume(role, await deployment.relay(other))).rejects.toThrow(
        `is not authorized to perform: sts:AssumeRole on resource: ${role}`,
      );
    }
  });

  test('are the synthesised ones without the kms: conditions of two statements and two denials, and nothing else', () => {
    const stripped = ['SignCertificates', 'SignCaCertificate'].map((sid) => ({
      sid,
      without: {
        Condition: { StringEquals: { 'kms:SigningAlgorithm': 'ECDSA_SHA_256', 'kms:MessageType': 'DIGEST' } },
      },
    }));
    for (const [stack, template] of assembly.templates) {
      const found = differences(template, judgedByMiniStack(template));
      if (stack.endsWith('-state')) {
        const [sign, ca, ...rest] = found;
        for (const denial of [sign, ca]) expect(JSON.stringify(denial)).toContain('"Sid":"OnlyInItsFunction"');
        expect(rest).toEqual(stripped);
      } else expect(found).toEqual([]);
    }
  });
});

interface Difference {
  readonly sid: unknown;
  readonly without: unknown;
}

/** Members that `before` has and `after` has not, with the statement they are of. Any other difference is thrown. */
function differences(before: unknown, after: unknown): Difference[] {
  if (typeof before !== 'object' || before === null || typeof after !== 'object' || after === null) {
    if (before !== after) throw new Error(`${JSON.stringify(before)} has become ${JSON.stringify(after)}`);
    return [];
  }
  const [old, now] = [before, after].map((each) => new Map(Object.entries(each as Record<string, unknown>)));
  for (const name of now!.keys()) if (!old!.has(name)) throw new Error(`${name} is new`);
  if (Array.isArray(before) !== Array.isArray(after)) throw new Error('a list is no list any more');
  return [...old!].flatMap(([name, value]) =>
    now!.has(name)
      ? differences(value, now!.get(name))
      : [{ sid: (before as { Sid?: unknown }).Sid, without: { [name]: value } }],
  );
}

/**
 * The functions as `cdk synth` makes them, on AWS's own runtime interface emulator and Node.js runtime client: what the
 * suites that call handlers, and the emulators that have runtimes of their own, cannot show.
 */
import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuthorizerAnswer } from '../../../../lambdas/authorizer/authorizer.ts';
import type { HttpAnswer } from '../../../../adapters/lambda/http.ts';
import type { OperatorAnswer } from '../../../../lambdas/ca/actions/cas.ts';
import {
  attestEvent,
  clientRequest,
  cluster,
  deployFunctions,
  freshToken,
  services,
  signEvent,
  subject,
  subjects,
  type DeployedFunctions,
  type Service,
} from '../../../harness/lambda/functions.ts';
import type { LambdaEnvironment } from '../../../harness/lambda/runtime.ts';
import { nodeRequest } from '../../../harness/lambda/machines.ts';
import { requireTools } from '../../../tools/tools.ts';
import { eventOf } from '../../../unit/lambdas/authorizer/case.ts';
import { audience, ecKey, strangerKey } from '../../../unit/lambdas/authorizer/tokens.ts';
import { verdictIn } from '../../../unit/lambdas/attest/endpoint.ts';
import { awsCallsOf } from '../../control-plane/counting/budget.ts';
import { operationOf, tally, type Counts } from '../../control-plane/counting/counted-world.ts';
import { listeners, processFamily } from './listeners.ts';

const { skip } = await requireTools('lambda-rie', 'lambda-ric', 'ministack');

const signCalls = 'TrentService.Sign';

describe.skipIf(skip)('the functions, under the official Lambda runtime', () => {
  let deployed: DeployedFunctions;
  let caEnvironment: LambdaEnvironment;
  /** What the first process of the ca function answered to `show`, and then to `init`. */
  let first: { readonly shown: OperatorAnswer; readonly made: OperatorAnswer; readonly signatures: number };
  beforeAll(async () => {
    deployed = await deployFunctions();
    caEnvironment = await deployed.start('ca');
    const shown = await payload<OperatorAnswer>(caEnvironment, { action: 'show' });
    const made = await payload<OperatorAnswer>(caEnvironment, { action: 'init' });
    first = { shown, made, signatures: deployed.aws.count(signCalls) };
  });
  afterAll(() => deployed?.stop());

  const payload = async <T>(environment: LambdaEnvironment, event: unknown): Promise<T> =>
    (await environment.invoke(event)).payload as T;
  const entries = (environment: LambdaEnvironment): Record<string, unknown>[] =>
    environment
      .log()
      .split('\n')
      .filter((line) => line.startsWith('{"time":'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  /** Of DynamoDB and KMS. */
  const askedDuring = async (work: () => Promise<unknown>): Promise<Counts> => {
    const before = deployed.aws.calls.length;
    await work();
    return tally(deployed.aws.calls.slice(before).map(operationOf));
  };

  describe('ca', () => {
    const ask = async (action: string, environment = caEnvironment): Promise<OperatorAnswer['cas']> =>
      (await payload<OperatorAnswer>(environment, { action })).cas;

    test('makes the CA that is missing, once, and from then on shows it', async () => {
      expect(first.shown.cas).toEqual([expect.objectContaining({ ok: false, name: 'ca', why: 'Missing' })]);
      const [made] = first.made.cas;
      expect(made).toMatchObject({ ok: true, name: 'ca', created: true, signatureAlgorithm: 'ECDSA_SHA_256' });
      expect(first.signatures).toBe(1);

      const before = deployed.aws.count(signCalls);
      for (const action of ['show', 'init']) expect(await ask(action)).toEqual([{ ...made, created: false }]);
      // A process that knows nothing of the first finds the same.
      expect(await ask('init', await deployed.start('ca'))).toEqual([{ ...made, created: false }]);
      expect(deployed.aws.count(signCalls) - before).toBe(0);
      expect(entries(caEnvironment).map(({ cas }) => cas)).toEqual(
        ['Missing', 'made', 'there', 'there'].map((state) => ({ ca: state })),
      );
    });

    test('answers what is no event of its own with an error, and goes on', async () => {
      expect(await payload(caEnvironment, { action: 'delete' })).toMatchObject({ errorType: 'TypeError' });
      expect(await ask('show')).toEqual([expect.objectContaining({ ok: true })]);
    });
  });

  describe('sign', () => {
    let environment: LambdaEnvironment;
    beforeAll(async () => {
      environment = await deployed.start('sign');
    });

    async function trusted(): Promise<X509Certificate> {
      const event = { ...(signEvent({}) as object), ...get('trust-bundle') };
      return new X509Certificate((await payload<HttpAnswer>(environment, event)).body);
    }

    test('issues one certificate for a request, under the CA that KMS holds, however often it is delivered', async () => {
      const before = deployed.aws.count(signCalls);
      const csr = clientRequest();
      const answers = [
        await payload<HttpAnswer>(environment, signEvent(csr)),
        await payload<HttpAnswer>(environment, signEvent(csr)),
      ];
      expect(answers.map(outcomeOf)).toEqual(['200 issued', '200 issued']);
      const [leaf, again] = answers.map(certificateIn) as [X509Certificate, X509Certificate];
      const ca = await trusted();
      expect(leaf.subject).toBe('O=dev\nCN=jane');
      expect(leaf.checkIssued(ca) && leaf.verify(ca.publicKey)).toBe(true);
      expect(again.raw).toEqual(leaf.raw);
      expect(deployed.aws.count(signCalls) - before).toBe(1);
      expect(entries(environment)).toContainEqual(expect.objectContaining({ level: 'info', outcome: 'issued' }));
    });

    test('asks AWS what the budget says and no more, in a new environment and in a warm one', async () => {
      const other = await deployed.start('sign');
      const sign = () => payload<HttpAnswer>(other, signEvent(clientRequest()));
      expect(await askedDuring(sign)).toEqual(awsCallsOf('cold', 'approved'));
      expect(await askedDuring(sign)).toEqual(awsCallsOf('approved'));
    });

    test('refuses what no profile permits, and asks KMS for nothing', async () => {
      const before = deployed.aws.count(signCalls);
      const csr = clientRequest({ usages: ['digital signature', 'key encipherment', 'server auth'] });
      expect(outcomeOf(await payload<HttpAnswer>(environment, signEvent(csr)))).toBe('422 refused');
      expect(deployed.aws.count(signCalls) - before).toBe(0);
    });

    test('is well, and knows no other path', async () => {
      for (const [path, status] of [
        ['healthz', 200],
        ['nothing', 404],
      ] as const) {
        const event = { ...(signEvent({}) as object), ...get(path) };
        expect((await payload<HttpAnswer>(environment, event)).statusCode).toBe(status);
      }
    });

    test('in several environments at once signs a request once, and every answer has that certificate', async () => {
      const environments = [environment, ...(await Promise.all([deployed.start('sign'), deployed.start('sign')]))];
      const before = deployed.aws.count(signCalls);
      const event = signEvent(clientRequest());
      const deliver = async (to: LambdaEnvironment): Promise<HttpAnswer> => {
        for (let attempt = 1; ; attempt++) {
          const answer = await payload<HttpAnswer>(to, event);
          // Who comes while another holds the request is told to come again.
          if (outcomeOf(answer) !== '503 busy' || attempt === 50) return answer;
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      };
      // Two deliveries to each: the second waits for its turn, as Lambda lets it.
      const answers = await Promise.all([...environments, ...environments].map(deliver));
      expect(answers.map(outcomeOf)).toEqual(answers.map(() => '200 issued'));
      expect(new Set(answers.map((answer) => certificateIn(answer).fingerprint256)).size).toBe(1);
      expect(deployed.aws.count(signCalls) - before).toBe(1);
    });
  });

  describe('attest', () => {
    let environment: LambdaEnvironment;
    beforeAll(async () => {
      environment = await deployed.start('attest');
    });
    const ask = async (request: object, where = environment): Promise<HttpAnswer> =>
      payload<HttpAnswer>(where, attestEvent(request));

    test('finds out which machine asks, once, and another process knows of it', async () => {
      const { object, identity } = nodeRequest(cluster);
      const answer = await ask(object);
      expect(outcomeOf(answer)).toBe('200 verdict');
      expect(verdictIn(answer)).toMatchObject({
        decision: 'approve',
        reason: 'Attested',
        message: `attested as ${identity}`,
      });
      expect((await ask(object, await deployed.start('attest'))).body).toBe(answer.body);
      expect(entries(environment)).toContainEqual(expect.objectContaining({ level: 'info', identity, repeat: false }));
    });

    test('sign takes its word from the table, for an approved request and for none that was denied', async () => {
      const sign = await deployed.start('sign');
      const { object: good, nodeName } = nodeRequest(cluster);
      const { object: wrong } = nodeRequest(cluster, { audience: 'another deployment' });
      expect(verdictIn(await ask(good)).decision).toBe('approve');
      expect(verdictIn(await ask(wrong))).toMatchObject({ decision: 'deny', reason: 'AttestationInvalid' });
      const conditions = [{ type: 'Approved', status: 'True', reason: 'x', message: 'x' }];
      const issued = await payload<HttpAnswer>(sign, signEvent({ ...good, status: { conditions } }));
      expect(outcomeOf(issued)).toBe('200 issued');
      expect(certificateIn(issued).subject).toBe(`O=system:nodes\nCN=system:node:${nodeName}`);
      const refused = await payload<HttpAnswer>(sign, signEvent({ ...wrong, status: { conditions } }));
      expect(outcomeOf(refused)).toBe('422 refused');
      expect(refused.body).toContain('AttestationInvalid');
    });

    test('asks AWS what the budget says and no more, and so does sign after it', async () => {
      const [other, sign] = [await deployed.start('attest'), await deployed.start('sign')];
      const conditions = [{ type: 'Approved', status: 'True', reason: 'x', message: 'x' }];
      const join = async () => {
        const { object } = nodeRequest(cluster);
        await ask(object, other);
        const answer = await payload<HttpAnswer>(sign, signEvent({ ...object, status: { conditions } }));
        expect(outcomeOf(answer)).toBe('200 issued');
      };
      expect(await askedDuring(join)).toEqual(awsCallsOf('cold', 'proved'));
      expect(await askedDuring(join)).toEqual(awsCallsOf('proved'));
    });

    test('asks for no signature, and knows no other path', async () => {
      const before = deployed.aws.count(signCalls);
      await ask(nodeRequest(cluster).object);
      expect(deployed.aws.count(signCalls) - before).toBe(0);
      expect(outcomeOf(await payload<HttpAnswer>(environment, signEvent(nodeRequest(cluster).object)))).toBe(
        '404 invalid',
      );
    });
  });

  describe('authorizer', () => {
    let environment: LambdaEnvironment;
    beforeAll(async () => {
      environment = await deployed.start('authorizer');
    });

    test.each<readonly [string, () => unknown, string | undefined]>([
      ['lets in a token of its issuer, RS256', () => eventOf(freshToken()), undefined],
      ['lets in a token of its issuer, ES256', () => eventOf(freshToken({ key: ecKey })), undefined],
      ['no caller without a token', () => eventOf(undefined), 'TokenMissing'],
      ['no token with an unknown key', () => eventOf(freshToken({ key: strangerKey })), 'KeyUnknown'],
      [
        'no token that another has signed in its issuer’s name',
        () => eventOf(freshToken({ key: { ...strangerKey, kid: 'rsa' } })),
        'SignatureInvalid',
      ],
      ['no token for others', () => eventOf(freshToken({ claims: { aud: [`${audience}.not`] } })), 'AudienceWrong'],
      ['no token that is over', () => eventOf(freshToken({ claims: { exp: 1, iat: 0, nbf: 0 } })), 'Expired'],
      [
        'no path of another cluster',
        () => eventOf(freshToken(), { rawPath: '/v1/clusters/other/sign' }),
        'OtherCluster',
      ],
      ['nothing that is no event of a front door', () => null, 'Internal'],
    ])('%s', async (_, event, reason) => {
      const answer = await payload<AuthorizerAnswer>(environment, event());
      expect(answer).toEqual(
        reason === undefined ? { isAuthorized: true, context: { cluster, subject } } : { isAuthorized: false },
      );
      const { authorized, reason: logged } = entries(environment).at(-1)!;
      expect([authorized, logged]).toEqual([reason === undefined, reason]);
    });

    test('asks nothing of AWS', async () => {
      const before = deployed.aws.calls.length;
      await environment.invoke(subjects.authorizer.event());
      expect(deployed.aws.calls.length).toBe(before);
    });
  });

  describe.each(services)('%s', (service: Service) => {
    let environment: LambdaEnvironment;
    beforeAll(async () => {
      environment = await deployed.start(service);
    });

    test('listens on loopback only, and is gone when it is stopped', async () => {
      await environment.invoke(subjects[service].event());
      const family = processFamily(environment.pid);
      // The emulator, and what runs the handler.
      expect(family).toHaveLength(2);
      const places = family.flatMap(listeners);
      expect(places.filter((place) => !place.startsWith('127.0.0.1:'))).toEqual([]);
      // For calls, and for the runtime.
      expect(places).toHaveLength(2);
      await environment.stop();
      await expect.poll(() => family.filter((pid) => existsSync(`/proc/${pid}`)), { timeout: 10_000 }).toEqual([]);
    });
  });

  test('these are all functions that synth makes', () => {
    expect(deployed.synthesised.toSorted()).toEqual(
      services.map((service) => deployed.functions[service].name).toSorted(),
    );
    for (const { handler, folder } of Object.values(deployed.functions)) {
      expect(handler).toBe('index.handler');
      // Loads by itself, with no package.json above it that would say what kind of module it is.
      expect(createRequire(`${folder}/`).resolve('./index.js')).toBe(`${folder}/index.js`);
    }
  });
});

function get(path: string): object {
  const rawPath = `/v1/clusters/${cluster}/${path}`;
  return { rawPath, body: '', requestContext: { http: { method: 'GET', path: rawPath } } };
}

function outcomeOf({ statusCode, headers }: HttpAnswer): string {
  return `${statusCode} ${headers['x-countersign-outcome']}`;
}

function certificateIn({ body }: HttpAnswer): X509Certificate {
  const { status } = JSON.parse(body) as { status: { certificate: string } };
  return new X509Certificate(Buffer.from(status.certificate, 'base64'));
}

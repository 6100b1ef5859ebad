/**
 * Every deviation that docs/signers.md names, as requests before the real kube-controller-manager and before our
 * signer: the first half of each sentence there is measured as well as the second.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ourSigner } from '../../../corpus/ask.ts';
import type { OurAnswer, OurSigner } from '../../../corpus/ask.ts';
import type { CorpusAuthority } from '../../../corpus/authority.ts';
import {
  authorityKeyIdentifierOid,
  extensionOids,
  fieldsOf,
  subjectKeyIdentifierOid,
} from '../../../corpus/certificate-fields.ts';
import { clockOf, mismatches, newAuthority, settings } from '../../../corpus/reference.ts';
import type { ReferenceAnswer } from '../../../corpus/reference.ts';
import { deviations, neverServed } from '../../../corpus/requests/deviations.ts';
import type { Deviation } from '../../../corpus/requests/deviations.ts';
import { namesOfNoNode } from '../../../corpus/requests/names.ts';
import { startControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import type { ControlPlane } from '../../../harness/kubernetes/control-plane.ts';
import { makeRequest } from '../../../harness/x509/requests.ts';
import { requireTools } from '../../../tools/tools.ts';
import { createRequests, lastRequests, runReference, storeRequests, tryToCreate } from './reference-cluster.ts';
import type { NewRequest, ReferenceRun } from './reference-cluster.ts';

const { skip } = await requireTools('etcd', 'kube-apiserver', 'kube-controller-manager');

type Listed = Deviation & NewRequest;

/** A usage that kube-apiserver-client signs, where a case is about something else. */
const usages = ['client auth'];
/** All reserved names among the deviations that a profile can list. */
const givenWhereListed = [
  'system:masters',
  'system:admin',
  'system:monitoring',
  'System:masters',
  'kubeadm:cluster-admins',
  'kubernetes-admin',
  'front-proxy-client',
  'Front-Proxy-Client',
  'etcd-client',
  'ｋｕｂｅ-ａｐｉｓｅｒｖｅｒ',
  'kubelet-api',
];
const listed = deviations().map((each, index): Listed => ({ usages, ...each, name: `deviation-${index}` }));
const isCreatable = ({ notCreatable, conditions }: Listed): boolean =>
  notCreatable === undefined && conditions === undefined;

describe.skipIf(skip)('where we differ from kube-controller-manager', () => {
  const now = Math.floor(Date.now() / 1000);
  let plane: ControlPlane;
  let authority: CorpusAuthority;
  let run: ReferenceRun;
  let ours: OurSigner;

  beforeAll(async () => {
    plane = await startControlPlane();
    authority = newAuthority('main', new Date());
    ours = ourSigner(authority, settings.main);

    const signerName = 'kubernetes.io/kube-apiserver-client';
    const plain: NewRequest[] = [
      { name: 'plain', signerName, usages, request: makeRequest({ subject: { CN: 'plain' } }).bytes },
      {
        name: 'named-as-the-ca',
        signerName,
        usages,
        request: makeRequest({ rawSubject: fieldsOf(authority.certificate).subject }).bytes,
      },
    ];
    const created = [...plain, ...listed.filter(isCreatable)];
    await createRequests(
      plane,
      created.map((each) => ({ ...each, fate: 'approved' as const })),
    );
    await storeRequests(
      plane,
      listed
        .filter((each) => !isCreatable(each))
        .map(({ request, ...each }) => ({ ...each, spec: { ...each, request: request.toString('base64') } })),
    );
    const retried = listed.filter(({ reference }) => reference !== 'issued').map(({ name }) => name);
    run = await runReference(plane, authority, settings.main.maxTtlSeconds, {
      decided: [...plain, ...listed].map(({ name }) => name).filter((name) => !retried.includes(name)),
      retried,
      last: lastRequests('last'),
    });
  });

  afterAll(async () => {
    ours?.close();
    await plane?.stop();
  });

  const rows = listed.map((each) => [`${each.number}: ${each.what}`, each] as const);

  test.for(rows.filter(([, { notCreatable }]) => notCreatable !== undefined))('%s (API)', async ([, each]) => {
    const attempt = await tryToCreate(plane, { ...each, name: `${each.name}-again` });
    expect(attempt.status).toBeGreaterThanOrEqual(400);
    expect((JSON.parse(attempt.text) as { message: string }).message).toContain(each.notCreatable);
  });

  test.for(rows)('%s (reference)', ([, { name, reference }]) => {
    const [decision, log] = reference === 'issued' ? ['issued', ''] : ['left alone', reference.retries];
    expect(run.of(name).answer.kind).toBe(decision);
    expect(run.logOf(name)).toContain(log);
  });

  test.for(rows)('%s (ours)', async ([, { name, ours: expected }]) => {
    const [decision, text] =
      'ignores' in expected ? ['left alone', expected.ignores] : [`refused ${expected.code}`, expected.says];
    const said = await ours.ask(run.of(name).before, now);
    expect(said.kind === 'refused' ? `refused ${said.codes[0]}` : said.kind).toBe(decision);
    expect(JSON.stringify(said)).toContain(JSON.stringify(text).slice(1, -1));
  });

  test('1: every certificate of ours has a subject key identifier, and none of the reference', async () => {
    const { before, answer } = run.of('plain');
    expect(extensionsOf(answer)).not.toContain(subjectKeyIdentifierOid);
    const said = await ours.ask(before, clockOf(answer, now));
    expect(extensionsOf(said)).toContain(subjectKeyIdentifierOid);
    expect(mismatches(answer, said, authority.key)).toEqual([]);
  });

  test('3, 7, 14: where the profile lists a name, it is given, in the same certificate as that of the reference', async () => {
    const lenient = ourSigner(authority, { ...settings.main, allowReserved: givenWhereListed });
    // Names of nodes have no switch: system:node:… and system:nodes stay refused.
    const named = listed.filter(
      ({ number, ours: said }) =>
        number !== 15 &&
        'code' in said &&
        said.code === 'NameReserved' &&
        !/system:node|does not name a node/.test(said.says),
    );
    expect(named.map(({ number }) => number)).toEqual([3, 7, 7, 7, 7, ...Array<number>(8).fill(14)]);
    for (const { name } of named) {
      const { before, answer } = run.of(name);
      expect(mismatches(answer, await lenient.ask(before, clockOf(answer, now)), authority.key)).toEqual([]);
    }
    lenient.close();
  });

  test('15: the same for names of no node', async () => {
    const lenient = ourSigner(authority, { ...settings.main, allowReservedSans: [...namesOfNoNode, ...neverServed] });
    const named = listed.filter(({ number }) => number === 15);
    expect(named.length).toBeGreaterThanOrEqual(10);
    for (const { name } of named) {
      const { before, answer } = run.of(name);
      expect(mismatches(answer, await lenient.ask(before, clockOf(answer, now)), authority.key)).toEqual([]);
    }
    lenient.close();
  });

  test("13: only the reference leaves the authority key identifier out of a leaf with its CA's own name", async () => {
    const { before, answer } = run.of('named-as-the-ca');
    expect(extensionsOf(answer)).not.toContain(authorityKeyIdentifierOid);
    const said = await ours.ask(before, clockOf(answer, now));
    expect(extensionsOf(said)).toContain(authorityKeyIdentifierOid);
    // Nothing else differs.
    const differences = mismatches(answer, said, authority.key);
    expect(differences.map((difference) => difference.split(':')[0])).toEqual(['extensions']);
  });

  test('docs/signers.md lists these and no others', () => {
    const text = readFileSync(join(import.meta.dirname, '../../../../docs/signers.md'), 'utf8');
    const documented = [...text.matchAll(/^(\d+)\. \*\*/gm)].map(([, number]) => Number(number));
    const shown = new Set([...listed.map(({ number }) => number), 1, 13]);
    expect(documented).toEqual([...shown].toSorted((a, b) => a - b));
  });
});

function extensionsOf(answer: ReferenceAnswer | OurAnswer): string[] {
  if (answer.kind !== 'issued') throw new Error(`not issued: ${JSON.stringify(answer)}`);
  return extensionOids(answer.certificate);
}

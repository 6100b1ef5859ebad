/** Evidence of good and of wrong machines, recorded identities, patterns of names, and certificates of the configuration. */
import { doesNotMatch, match } from 'node:assert/strict';
import { x509Provider } from '../../../../core/attestation/x509/provider.ts';
import { parseNamePattern, templateParts } from '../../../../core/policy/name-templates.ts';
import { casesBySubject } from '../../../corpus/attestation/x509/cases.ts';
import { dataOf, evidenceOf, judge } from '../../../corpus/attestation/x509/judge.ts';
import * as world from '../../../corpus/attestation/x509/machine.ts';
import { keyOf } from '../../../harness/x509/certificate-writer.ts';
import type { Case as MutantCase } from '../../../harness/mutants/case-runner.ts';

const asked = Object.entries(casesBySubject).flatMap(([subject, list]) =>
  list.map((one) => ({ name: `${subject}: ${one.name}`, one, data: dataOf(one) })),
);

const identity = `x509#prod/uri/${world.spiffeId}`;
const identities: readonly string[] = [
  identity,
  identity.replace('prod/', 'other/'),
  identity.replace('/uri/', '/cn/'),
  identity.replace('node/', 'pod/'),
  `x${identity}`,
  'aws#aws/1',
];

const patterns = [
  '{a}',
  '{a}.{b}',
  '{a}{b}',
  '{a}/{a}',
  '{A}',
  '*',
  'a{b',
  'é',
  '',
  'a.example',
  'A.example',
  'a b',
] as const;

/** Whether each wrong machine is refused comes first, so that a mutant that lets one in is caught by that. */
export function cases(): readonly MutantCase[] {
  return [
    ...asked
      .filter(({ one }) => one.expect !== 'accepted')
      .map(({ name, one, data }) => ({
        name: `refused: ${name}`,
        run: async () => doesNotMatch((await judge(x509Provider, one, data)).outcome, /^accepted/),
      })),
    {
      name: 'refused: a CA of the configuration with a weak key',
      run: () => match(configured(weak()), /^a certificate under/),
    },
    {
      name: 'refused: a text of the configuration that is no certificate',
      run: () => match(configured('text'), /^a certificate under attestation\.x509 is not one PEM certificate/),
    },
    ...asked.map(({ name, one, data }) => ({ name, run: () => outcomeOf(one, data) })),
    ...identities.map((of) => ({ name: `describe: ${of}`, run: () => describe(of) })),
    { name: 'describe: two rules', run: () => describe(identity, [world.rule, world.rule]) },
    ...patterns.flatMap((text) =>
      (['uri', 'cn', 'dns'] as const).map((kind) => ({
        name: `pattern: ${kind} ${text}`,
        run: () => JSON.stringify(patternOf(kind, text)),
      })),
    ),
    ...['{a}', 'a{', '{a}.{b}'].map((text) => ({
      name: `template: ${text}`,
      run: () => JSON.stringify(templateParts(text) ?? 'none'),
    })),
    { name: 'one proof is one once-key, whatever the signature', run: () => onceKeys() },
  ];
}

async function outcomeOf(...args: readonly [one: (typeof asked)[number]['one'], data: Uint8Array]): Promise<string> {
  const { outcome, machine } = await judge(x509Provider, ...args);
  return outcome + (machine === undefined ? '' : JSON.stringify(machine));
}

/** PEM. */
function weak(): string {
  const key = keyOf('root', 'RSA-1024');
  return world.pem(world.root({ key, signer: key }));
}

function configured(intermediate: string): string {
  try {
    x509Provider({ ...world.policy, intermediates: [intermediate] });
    return 'accepted';
  } catch (error) {
    return (error as Error).message;
  }
}

async function describe(of: string, rules = [world.rule]): Promise<string> {
  const state: unknown = await x509Provider({ ...world.policy, rules }).describe(of, world.now);
  return state === undefined ? 'nothing' : JSON.stringify(state);
}

function patternOf(kind: 'uri' | 'cn' | 'dns', text: string): unknown {
  const parsed = parseNamePattern(kind, text);
  return parsed.ok ? [parsed.value.expression.source, parsed.value.parts] : parsed.problem;
}

/** ECDSA signs with a random number, so each signature is another one. */
async function onceKeys(): Promise<string> {
  const provider = x509Provider(world.policy);
  const ids = await Promise.all(
    [dataOf({}), dataOf({}), dataOf({ nonce: world.nonceAt(world.now) })].map(async (data) => {
      const examined = await provider.examine(evidenceOf(data));
      return examined.ok ? examined.value.once.map(({ id }) => id).join() : '';
    }),
  );
  return [new Set(ids).size, ids[0] === ids[1]].join();
}

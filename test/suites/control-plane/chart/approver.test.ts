/** The chart reads countersign.yaml to give rights, the relay to use them: both must read the same. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { signersFromFile } from '../../../../lambdas/watch-relay/settings/signers.ts';
import type { SignerOptions } from '../../../../lambdas/watch-relay/settings/signers.ts';
import { requireTools } from '../../../tools/tools.ts';
import { chart, example, objects, podTemplate, template } from './helm.ts';

const { skip } = await requireTools('helm');

const plain = example('plain-manifests.yaml');
const ca = 'cas: { ca: { subject: { commonName: a CA } } }';
const aws = `attestation:
      audience: a
      aws: { accounts: { '999900001111': {} }, regions: [eu-central-1], tags: { x: y }, nodeName: [instanceId] }`;
const attested = 'cluster.x-k8s.io/kube-apiserver-client-kubelet-aws';
const inTree = 'kubernetes.io/kube-apiserver-client-kubelet';

function file(profiles: string, approval: string, more = ''): string {
  return `version: 1\nclusters:\n  prod:\n    ${ca}\n    profiles: ${profiles}\n    approval: ${approval}\n    ${more}\n`;
}

const files: Readonly<Record<string, string>> = {
  'without approval': file(`{ ${inTree}: {} }`, '{}'),
  'of signers that another approver decides': file(
    `{ ${inTree}: {}, a.example.com/b: { usages: { allowed: [client auth] }, sans: { dns: [x.example.com] } } }`,
    `{ ${inTree}: manual }`,
  ),
  'of an unattested signer': file(`{ ${inTree}: {} }`, `{ ${inTree}: approve }`),
  'of an attested signer': file(`{ ${attested}: {} }`, `{ ${attested}: approve }`, aws),
  'of an attested signer that also wants leave': file(
    `{ ${attested}: { attestation: { subjectAccessReview: true } } }`,
    `{ ${attested}: approve }`,
    aws,
  ),
  'of an audited signer': file(
    `{ ${inTree}: { attestation: { providers: [aws], mode: audit } } }`,
    `{ ${inTree}: approve }`,
    aws,
  ),
  'of a signer that may be proved to': file(
    `{ ${inTree}: { attestation: { providers: [aws], required: false } } }`,
    `{ ${inTree}: approve }`,
    aws,
  ),
  'of a signer of one’s own': file(
    '{ a.example.com/b: { usages: { allowed: [client auth] }, sans: { dns: [x.example.com] }, requester: { users: [jane] } } }',
    '{ a.example.com/b: approve }',
  ),
  'with defaults that a cluster changes': `version: 1
defaults:
  ${ca}
  profiles: { ${inTree}: { maxTtl: 30d }, kubernetes.io/kubelet-serving: {} }
  approval: { ${inTree}: approve, kubernetes.io/kubelet-serving: approve }
  approveServingWithoutProof: true
clusters:
  other: {}
  prod:
    profiles: { kubernetes.io/kube-apiserver-client: {} }
    approval: { kubernetes.io/kubelet-serving: manual }
`,
  'of examples/attestation.yaml': readFileSync(resolve(chart, '../../examples/attestation.yaml'), 'utf8'),
  'of examples/countersign.yaml': readFileSync(resolve(chart, '../../examples/countersign.yaml'), 'utf8').replace(
    /^ {2}demo:/m,
    '  prod:',
  ),
};

/** Whether any request of theirs would be asked leave for. */
function asksLeave({ policies }: SignerOptions): boolean {
  return [...policies.values()].some(({ approval, kind, attestation }) => {
    if (approval !== 'approve' || !kind.includes('kubelet')) return false;
    if (attestation === undefined || attestation.mode === 'audit' || !attestation.required) return true;
    return attestation.subjectAccessReview;
  });
}

describe.skipIf(skip)('with a countersign.yaml', () => {
  test.each(Object.entries(files))('%s the chart gives what the relay makes of it, and no more', async (_, text) => {
    const decoded = signersFromFile(text, 'countersign.yaml', 'prod');
    if (!decoded.ok) throw new Error(decoded.problem);
    const read = decoded.value;
    const rendered = objects(await template(plain, { values: { configuration: text } }));
    const rules = rendered.find(({ kind }) => kind === 'ClusterRole')!.rules!;
    const signers = (verb: string) =>
      rules
        .filter(({ resources, verbs }) => resources.includes('signers') && verbs.includes(verb))
        .flatMap(({ resourceNames = [] }) => resourceNames);
    const approves = [...read.policies].flatMap(([name, { approval }]) => (approval === 'approve' ? [name] : []));
    expect(signers('sign')).toEqual(read.signerNames.toSorted());
    expect(signers('approve')).toEqual(approves.toSorted());
    const has = (resource: string) => rules.some(({ resources }) => resources.includes(resource));
    expect(has('certificatesigningrequests/approval')).toBe(approves.length > 0);
    expect(has('subjectaccessreviews')).toBe(asksLeave(read));

    const map = rendered.find(({ kind }) => kind === 'ConfigMap') as unknown as { data: Record<string, string> };
    expect(map.data).toEqual({ 'countersign.yaml': text });
    const { args } = podTemplate(rendered).spec.containers[0]!;
    expect(args).toContain('--config=/etc/countersign/configuration/countersign.yaml');
    expect(args.join(' ')).not.toMatch(/--signer-name|--in-flight/);
  });

  test('another file is another pod', async () => {
    const annotations = async (text: string) =>
      podTemplate(objects(await template(plain, { values: { configuration: text } }))).metadata.annotations;
    const [text = '', other = ''] = Object.values(files);
    expect(await annotations(text)).not.toEqual(await annotations(other));
  });

  test.each([
    ['that is no YAML', 'a: [', 'configuration: is not YAML'],
    ['without the cluster', 'version: 1\nclusters: { staging: {} }\n', 'configuration: has no cluster prod'],
    ['for all signers of a domain', file('{ kubernetes.io/*: {} }', '{}'), 'kubernetes.io/* is not a signer name'],
  ])('one %s is refused', async (_, text, message) => {
    const answer = await template(join(chart, 'examples/plain-manifests.yaml'), {
      values: { configuration: text },
    }).catch((error: unknown) => (error as { stderr: string }).stderr);
    expect(answer).toContain(message);
  });
});

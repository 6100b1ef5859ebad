/** Every check of the aws provider. */
import type { Subject } from '../../../harness/mutants/subject.ts';

/** Limits, and patterns whose groups are read: no rule of checks.ts finds them. */
const texts: readonly (readonly [file: string, find: string, instead: string])[] = [
  [
    'attestation/aws/sts-response.ts',
    '/^arn:(aws|aws-cn|aws-us-gov|aws-eusc):sts',
    '/arn:(aws|aws-cn|aws-us-gov|aws-eusc):sts',
  ],
  ['attestation/aws/sts-response.ts', '(aws|aws-cn|aws-us-gov|aws-eusc):sts', '([a-z-]+):sts'],
  ['attestation/aws/sts-response.ts', ':sts::([0-9]{12}):assumed-role', ':[a-z]+::([0-9]{12}):[a-z-]+'],
  ['attestation/aws/sts-response.ts', '(aws:ec2-instance|[A-Za-z0-9_+=,.@-]{1,64})', '([A-Za-z0-9_+=,.@:-]{1,64})'],
  ['attestation/aws/sts-response.ts', '(i-(?:[0-9a-f]{8}|[0-9a-f]{17}))$/', '([^/]+)$/'],
  ['attestation/aws/sts-response.ts', '(i-(?:[0-9a-f]{8}|[0-9a-f]{17}))$/', '(i-(?:[0-9a-f]{8}|[0-9a-f]{17}))/'],
  ['attestation/aws/sts-response.ts', "typeof value === 'string' ? value : ''", 'String(value)'],
  ['attestation/aws/cms.ts', 'asn1js.fromBER(der, limits)', 'asn1js.fromBER(der, { maxNodes: 1e6, maxDepth: 1e6 })'],
  ['attestation/aws/instance.ts', 'Math.abs(', '('],
  [
    'attestation/aws/instance.ts',
    'rootAttachedAt ?? Number.POSITIVE_INFINITY',
    'rootAttachedAt ?? interfaceAttachedAt ?? 0',
  ],
  [
    'attestation/aws/instance.ts',
    'interfaceAttachedAt ?? Number.NEGATIVE_INFINITY',
    'interfaceAttachedAt ?? rootAttachedAt ?? 0',
  ],
  ['attestation/aws/sts-token.ts', "'x-k8s-aws-id': expected.header, ", ''],
];

export const subject: Subject = {
  module: import.meta.filename,
  checkedFiles: [
    'core/attestation/aws/provider.ts',
    'core/attestation/aws/evidence.ts',
    'core/attestation/aws/identity-document.ts',
    'core/attestation/aws/instance.ts',
    'core/attestation/aws/instance-proof.ts',
    'core/attestation/aws/partition.ts',
    'core/attestation/aws/cms.ts',
    'core/encoding/strict-json.ts',
    'core/attestation/aws/sts-response.ts',
    'core/attestation/aws/sts-token.ts',
  ],
  changes: texts.map(([file, find, instead]) => ({ file: `core/${file}`, breaks: `→ ${instead}`, find, instead })),
  cases: ['test/suites/adversarial/mutants/aws-provider-cases.ts'],
};

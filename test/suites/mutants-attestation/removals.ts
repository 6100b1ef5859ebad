/** Every check of the aws provider (check-removals.ts says how they are found). */
import { join } from 'node:path';
import { planted, removalsIn } from '../../harness/removals/check-removals.ts';
import type { Removal } from '../../harness/removals/check-removals.ts';

export const files = [
  'attestation/aws/provider.ts',
  'attestation/evidence/evidence.ts',
  'attestation/aws/identity-document.ts',
  'attestation/aws/instance.ts',
  'attestation/aws/partition.ts',
  'attestation/aws/cms.ts',
  'encoding/json-object.ts',
  'encoding/strict-json.ts',
  'attestation/aws/sts-response.ts',
  'attestation/aws/sts-token.ts',
] as const;

const folder = join(import.meta.dirname, '../../../core');

/** What no rule finds: limits, and patterns whose groups are read. */
const byHand: readonly (readonly [file: string, find: string, instead: string])[] = [
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

export function findRemovals(): readonly Removal[] {
  return [
    ...files.flatMap((file) => removalsIn({ folder, file })),
    ...byHand.map(([file, find, instead]) => planted({ folder, file }, find, find, instead)),
  ];
}

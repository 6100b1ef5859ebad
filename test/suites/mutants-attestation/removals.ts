/** Every check of the aws provider (check-removals.ts says how they are found). */
import { join } from 'node:path';
import { planted, removalsIn } from '../../harness/removals/check-removals.ts';
import type { Removal } from '../../harness/removals/check-removals.ts';

export const files = [
  'aws.ts',
  'aws-evidence.ts',
  'aws-document.ts',
  'aws-instance.ts',
  'aws-partition.ts',
  'cms.ts',
  'strict-json.ts',
  'sts-response.ts',
  'sts-token.ts',
] as const;

const folder = join(import.meta.dirname, '../../../core/attestation');

/** What no rule finds: limits, and patterns whose groups are read. */
const byHand: readonly (readonly [file: string, find: string, instead: string])[] = [
  ['sts-response.ts', '/^arn:(aws|aws-cn|aws-us-gov|aws-eusc):sts', '/arn:(aws|aws-cn|aws-us-gov|aws-eusc):sts'],
  ['sts-response.ts', '(aws|aws-cn|aws-us-gov|aws-eusc):sts', '([a-z-]+):sts'],
  ['sts-response.ts', ':sts::([0-9]{12}):assumed-role', ':[a-z]+::([0-9]{12}):[a-z-]+'],
  ['sts-response.ts', '(aws:ec2-instance|[A-Za-z0-9_+=,.@-]{1,64})', '([A-Za-z0-9_+=,.@:-]{1,64})'],
  ['sts-response.ts', '(i-(?:[0-9a-f]{8}|[0-9a-f]{17}))$/', '([^/]+)$/'],
  ['sts-response.ts', '(i-(?:[0-9a-f]{8}|[0-9a-f]{17}))$/', '(i-(?:[0-9a-f]{8}|[0-9a-f]{17}))/'],
  ['sts-response.ts', "typeof value === 'string' ? value : ''", 'String(value)'],
  ['cms.ts', 'asn1js.fromBER(der, limits)', 'asn1js.fromBER(der, { maxNodes: 1e6, maxDepth: 1e6 })'],
  ['aws-instance.ts', 'Math.abs(', '('],
  ['aws-instance.ts', 'rootAttachedAt ?? Number.POSITIVE_INFINITY', 'rootAttachedAt ?? interfaceAttachedAt ?? 0'],
  ['aws-instance.ts', 'interfaceAttachedAt ?? Number.NEGATIVE_INFINITY', 'interfaceAttachedAt ?? rootAttachedAt ?? 0'],
  ['sts-token.ts', "'x-k8s-aws-id': expected.header, ", ''],
];

export function findRemovals(): readonly Removal[] {
  return [
    ...files.flatMap((file) => removalsIn({ folder, file })),
    ...byHand.map(([file, find, instead]) => planted({ folder, file }, find, find, instead)),
  ];
}

/** What the corpus must cover, and how it is shown. */
import type { CreatableSigner } from '../../../corpus/requests/cases.ts';
import { corpusKeyKinds } from '../../../corpus/requests/keys.ts';

/** Every answer the reference can give (pkg/apis/certificates/helpers.go, pkg/controller/certificates/signer). */
export const decisionsOf: Readonly<Record<CreatableSigner, readonly string[]>> = {
  'kubernetes.io/kube-apiserver-client': [
    'issued',
    'left alone',
    'invalid usage for client certificate: ',
    'missing required usage for client certificate: client auth',
  ],
  'kubernetes.io/kube-apiserver-client-kubelet': [
    'issued',
    'left alone',
    'subject organization is not system:nodes',
    'DNS subjectAltNames are not allowed',
    'Email subjectAltNames are not allowed',
    'IP subjectAltNames are not allowed',
    'URI subjectAltNames are not allowed',
    'subject common name does not begin with system:node:',
    'usages did not match [client auth digital signature key encipherment]',
  ],
  'kubernetes.io/kubelet-serving': [
    'issued',
    'left alone',
    'subject organization is not system:nodes',
    'DNS or IP subjectAltName is required',
    'Email subjectAltNames are not allowed',
    'URI subjectAltNames are not allowed',
    'usages did not match [digital signature key encipherment server auth]',
    'subject common name does not begin with system:node:',
  ],
};

type Counts = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** One line for each signer and decision, one column for each kind of key. */
export function printCounts(seed: number, ...tables: readonly Counts[]): void {
  const rows = tables.flatMap((table) => [...table]);
  const total = rows.flatMap(([, columns]) => [...columns.values()]).reduce((sum, count) => sum + count, 0);
  const width = Math.max(...rows.map(([row]) => row.length));
  const lines = rows.map(([row, columns]) => {
    const cells = corpusKeyKinds.map((kind) => String(columns.get(kind) ?? 0).padStart(kind.length));
    return `${row.replace('kubernetes.io/', '').padEnd(width)}  ${cells.join('  ')}`;
  });
  console.log(
    [
      `corpus: seed ${seed}, ${total} requests before kube-controller-manager and before ours`,
      `${''.padEnd(width)}  ${corpusKeyKinds.join('  ')}`,
      ...lines,
    ].join('\n'),
  );
}

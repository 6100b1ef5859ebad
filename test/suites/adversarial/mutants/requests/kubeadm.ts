/** Every check of what operators may have signed for kubeadm's control plane, and the table of its certificates. */
import type { Subject } from '../../../../harness/mutants/subject.ts';

const table = 'core/kubeadm/certificates.ts';

/** What the table says of a certificate: no rule of checks.ts finds it. */
const texts: readonly (readonly [find: string, instead: string])[] = [
  [
    "const client = [...signs, 'client auth'] as const;",
    "const client = [...signs, 'client auth', 'server auth'] as const;",
  ],
  [
    "const peer = [...signs, 'server auth', 'client auth'] as const;",
    "const peer = [...signs, 'server auth'] as const;",
  ],
  ["usages: [...signs, 'server auth'],", "usages: [...signs, 'server auth', 'client auth'],"],
  ["kubeconfig('kubernetes-admin', 'kubeadm:cluster-admins')", "kubeconfig('kubernetes-admin', 'system:masters')"],
  ["clientOf('frontProxy', 'front-proxy-client')", "clientOf('kubernetes', 'front-proxy-client')"],
  ["clientOf('etcd', 'kube-apiserver-etcd-client')", "clientOf('kubernetes', 'kube-apiserver-etcd-client')"],
  [', isSuperAdmin: true }', ' }'],
  ["kubeconfig('system:node:', 'system:nodes'), ofNode: 'subject'", "kubeconfig('system:node:', 'system:nodes')"],
  ["['localhost', '127.0.0.1', '::1']", "['localhost', '127.0.0.1']"],
];

export const subject: Subject = {
  module: import.meta.filename,
  checkedFiles: ['core/kubeadm/check-request.ts', 'core/sign-kubeadm.ts', 'core/configuration/resolve/kubeadm.ts'],
  choices: true,
  equivalent: [
    {
      file: 'core/kubeadm/check-request.ts',
      without: "kind === 'RSA'",
      because: 'no key of another kind has so many bits',
    },
    {
      file: 'core/sign-kubeadm.ts',
      without: 'crlDistributionPoint === undefined → false',
      because: 'the writer of certificates takes an absent URL and an undefined one alike',
    },
    {
      file: 'core/sign-kubeadm.ts',
      without: 'ports.lambdaRequestId === undefined → false',
      because: 'the embedded ledger stores an absent name and an undefined one alike',
    },
  ],
  changes: texts.map(([find, instead]) => ({ file: table, breaks: `→ ${instead}`, find, instead })),
  cases: [
    'test/unit/core/kubeadm/check-request.test.ts',
    'test/unit/core/configuration/resolve/kubeadm.test.ts',
    'test/unit/lambdas/kubeadm/handler.test.ts',
  ],
};

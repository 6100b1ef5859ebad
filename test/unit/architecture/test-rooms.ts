/** The folders of the tests beside test/unit, which mirrors the product. test/README.md shows the table. */
export const testRooms: Readonly<Record<string, string>> = {
  'suites/control-plane': 'the real kube-apiserver, etcd and kube-controller-manager, with the relay and the chart',
  'suites/aws': 'LocalStack and MiniStack: stacks, permissions, stores, the front door, the functions',
  'suites/node': 'kubelet-authenticator and the real kubelet with containerd',
  'suites/process':
    'processes that are killed, race each other or are missing; the conformance command; the test tools',
  'suites/oracle':
    'another implementation gives the expected answer: kube-controller-manager, OpenSSL, zlint, pkilint, swtpm',
  'suites/adversarial': 'hostile requests and tokens; mutants of the product',
  'suites/pages':
    'the commands of pages such as docs/deploy.md, executed in their order; the page of a report in a browser',
  'suites/release': 'images, executables and the files of a release, checked and run by other programs',
  'suites/simulation': 'the simulator and the scale model',
  'harness/aws': 'emulators, deployments, tables, signatures',
  'harness/lambda': 'deployed functions, their runtime, events',
  'harness/fake-aws': 'STS, EC2 and instance metadata, as strict as AWS',
  'harness/fake-google': "Google's token service, IAM Credentials and Compute API, as strict as Google documents them",
  'harness/tpm': 'software TPMs, and their manufacturer',
  'harness/kubernetes': 'control planes, kubelets, and an API server in memory',
  'harness/cluster-api': 'the definitions of Cluster API, and a script in place of its controllers',
  'harness/stack': 'relay, handlers and stores together, as processes or in one process',
  'harness/attestation': 'machines that attest, and what attests them',
  'harness/node': 'a node with kubelet-authenticator',
  'harness/report': 'what a report is made of, and a browser that shows its page',
  'harness/x509': 'keys, requests and certificates',
  'harness/processes': 'processes, ports, proxies',
  'harness/determinism': 'virtual time, seeded randomness, sizes by tier, counted steps',
  'harness/mutants': 'plants mutants and runs the cases that must catch them',
};

/** Files of one folder of tests, at most. */
export const mostTestFiles = 15;

export function testRoomTable(): string {
  return Object.entries(testRooms)
    .map(([path, purpose]) => `| \`${path}/\` | ${purpose} |`)
    .join('\n');
}

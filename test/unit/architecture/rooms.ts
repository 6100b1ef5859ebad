/**
 * The map of the product: its rooms (folders), top to bottom. A room may import itself and every room of the same part
 * that stands below it. The tree in docs/architecture.md is printed from this list.
 */
export interface Room {
  readonly path: string;
  readonly purpose: string;
}

export const rooms: readonly Room[] = [
  { path: 'core', purpose: 'the rules, pure: no network, no clock, no environment. Start with issue.ts and attest.ts' },
  { path: 'core/trust', purpose: 'which certificates a verifier must hold to accept those of one signer' },
  { path: 'core/ca/import', purpose: 'checks a CA certificate that comes from outside, and puts it in force' },
  { path: 'core/rotation', purpose: 'how far the replacement of a CA is: what is deployed, in use and trusted' },
  {
    path: 'core/ca',
    purpose: 'a CA whose key is in KMS or a file: created once, used while certificate and key match',
  },
  { path: 'core/kubeadm', purpose: "the certificates of kubeadm's control plane, and what each may hold" },
  { path: 'core/revocation', purpose: 'revoked certificates: records, CRLs, and what the API server is told' },
  {
    path: 'core/inventory',
    purpose: 'certificates for operators and auditors: read from the ledger, compared with KMS, decided again',
  },
  {
    path: 'core/attestation/retirement',
    purpose: 'machines that their platforms report as terminated: their records end, their node names become free',
  },
  { path: 'core/attestation', purpose: 'may this machine be this node? evidence, admission, first use, verdict' },
  {
    path: 'core/attestation/aws-nitrotpm',
    purpose: 'the aws-nitrotpm provider: an EC2 instance and the TPM that EC2 names',
  },
  { path: 'core/attestation/aws', purpose: 'the aws provider: EC2 and STS' },
  {
    path: 'core/attestation/gce-vtpm',
    purpose: "the gce-vtpm provider: Google's VMs, requests of gke-exec-auth-plugin",
  },
  { path: 'core/attestation/gce', purpose: "the gce provider: Google's VMs, their identity tokens" },
  {
    path: 'core/attestation/google',
    purpose: "Google's VMs: what the Compute API says about them, and their identities",
  },
  { path: 'core/attestation/tpm', purpose: 'the tpm provider: endorsement keys, attestation keys, quotes, challenges' },
  { path: 'core/attestation/tpm/structures', purpose: 'structures of TPM 2.0 Part 2, decoded strictly; names of keys' },
  { path: 'core/attestation/x509', purpose: 'the x509 provider: a certificate chain to roots of the operator' },
  {
    path: 'core/attestation/cluster-api',
    purpose: 'does a Machine of Cluster API stand behind the machine of a request?',
  },
  { path: 'core/attestation/evidence', purpose: 'evidence blocks, the binding digest, the interface of a provider' },
  {
    path: 'core/attestation/records',
    purpose: 'what the attestation store keeps, decoded and checked; limits on its counts',
  },
  { path: 'core/configuration', purpose: 'countersign.yaml, from text to a checked configuration' },
  { path: 'core/configuration/resolve', purpose: 'defaults filled in, values checked against each other' },
  { path: 'core/configuration/model', purpose: 'the resolved configuration: types' },
  { path: 'core/configuration/schema', purpose: 'the keys of countersign.yaml' },
  {
    path: 'core/configuration/providers',
    purpose: 'the keys of each attestation provider and of Cluster API, and what they mean',
  },
  { path: 'core/configuration/fields', purpose: 'values that several keys share, and the place of a problem' },
  { path: 'core/policy', purpose: 'what each signer permits: profiles and their rules' },
  { path: 'core/kubernetes', purpose: 'Kubernetes objects, decoded and checked' },
  { path: 'core/x509/chain', purpose: 'certificates decoded strictly, and verified up to a root' },
  { path: 'core/x509', purpose: 'certificate requests and certificates: read, written, checked' },
  { path: 'core/jwt', purpose: "signed tokens: the issuer's keys, the header that selects one" },
  { path: 'core/ports', purpose: 'small interfaces to everything outside core/' },
  { path: 'core/encoding', purpose: 'DER, PEM and JSON in strict profiles; SHA-256' },
  { path: 'core/outcome', purpose: 'outcomes of a request, and text that is safe to print' },

  { path: 'adapters/aws', purpose: 'KMS, EC2, STS, instance metadata, SigV4' },
  {
    path: 'adapters/google',
    purpose: "Google's Compute API, how an AWS role logs in there, Google's keys; instance metadata",
  },
  { path: 'adapters/dynamodb', purpose: 'ledger, attestation store and its administration in DynamoDB' },
  { path: 'adapters/embedded', purpose: 'the same in SQLite, and a key in a file: development only' },
  { path: 'adapters/kubernetes', purpose: 'the API server' },
  { path: 'adapters/lambda', purpose: 'HTTP events and answers, environment and log of Lambda functions' },
  { path: 'adapters/signing-api', purpose: 'client of the sign and attest endpoints' },
  { path: 'adapters/http', purpose: 'one HTTP exchange, bounded in time and size; retries after a reset' },

  { path: 'lambdas/sign', purpose: 'the sign function' },
  { path: 'lambdas/attest', purpose: 'the attest function: no permission to use a CA key' },
  {
    path: 'lambdas/ca',
    purpose: 'uses CA keys for all but leaf certificates: when a stack is deployed, and for operators',
  },
  { path: 'lambdas/ca/actions', purpose: 'one file for each action' },
  { path: 'lambdas/kubeadm', purpose: "signs certificates of kubeadm's control plane, for operators" },
  { path: 'lambdas/authorizer', purpose: 'admits service account tokens of exactly one cluster' },

  { path: 'lambdas/watch-relay', purpose: 'the in-cluster relay (a pod)' },
  { path: 'lambdas/watch-relay/webhook', purpose: 'the webhook proxy in the same pod' },
  { path: 'lambdas/watch-relay/observe', purpose: 'metrics, health, probes' },
  { path: 'lambdas/watch-relay/request', purpose: 'one try of one request: approve, sign, write the status' },
  { path: 'lambdas/watch-relay/schedule', purpose: 'which request is next: fair queues, concurrency limits' },
  { path: 'lambdas/watch-relay/settings', purpose: 'flags and environment' },
  { path: 'lambdas/watch-relay/trust', purpose: 'the CA certificates of each signer, kept in objects of the cluster' },
  {
    path: 'lambdas/watch-relay/cluster-api',
    purpose: 'Machines, Nodes and the Cluster object: copies in memory, hints, the names of the signers',
  },
  { path: 'lambdas/watch-relay/cluster', purpose: 'list and watch, leader election' },
  { path: 'lambdas/watch-relay/objects', purpose: 'the request object: its phase, its status' },
  { path: 'lambdas/watch-relay/runtime', purpose: 'clock, log, connections' },

  { path: 'kubelet-authenticator', purpose: "the kubelet's credential plugin, on the node" },
  { path: 'kubelet-authenticator/join', purpose: 'the join command: discovery and the files of a node' },
  {
    path: 'kubelet-authenticator/credential',
    purpose: 'obtains and presents the certificate that a kubelet needs next',
  },
  { path: 'kubelet-authenticator/request', purpose: 'the certificate request, and the API server to which it is sent' },
  { path: 'kubelet-authenticator/providers', purpose: 'evidence, by provider' },
  { path: 'kubelet-authenticator/files', purpose: 'the cache, its lock, checks of file owners and modes' },
  { path: 'kubelet-authenticator/settings', purpose: 'flags and environment' },

  { path: 'cli', purpose: 'the command line of the operator' },
  { path: 'cli/report', purpose: 'what needs an operator: read from the records, the ledger, the CAs and the cluster' },
  { path: 'cli/report/page', purpose: 'the report as one HTML file that loads nothing' },
  { path: 'cli/report/model', purpose: 'the report as a value, from what was read; pure' },
  { path: 'cli/rotation', purpose: 'how far the replacement of a CA is, for an operator: read from three places' },
  { path: 'cli/prune', purpose: 'machines that no longer exist: found by two looks, removed from the records' },
  { path: 'cli/revocation', purpose: 'revokes certificates, and shows what the API server is told' },
  { path: 'cli/kubeadm', purpose: "certificates for kubeadm's control plane: signed and renewed on its machines" },
  { path: 'cli/commands', purpose: 'one file for each command' },
  { path: 'cli/doctor', purpose: 'whether a set-up can work, from where the operator stands' },
  { path: 'cli/status', purpose: 'whether the relay, the endpoint and the tables of a cluster work now' },
  { path: 'cli/relay', purpose: 'Helm values for the relay of a deployed cluster' },
  { path: 'cli/start', purpose: 'the way in: a first countersign.yaml, a signing side on this machine' },
  { path: 'cli/requests', purpose: 'the requests of a cluster: listed, shown, approved, denied' },
  { path: 'cli/ca', purpose: 'a CA whose certificate, or key too, comes from outside' },
  { path: 'cli/preflight', purpose: 'what a deployment needs from the AWS account: one check a row' },
  {
    path: 'cli/inventory',
    purpose: 'the certificates of the ledger: listed, exported, compared with KMS and with rules',
  },
  { path: 'cli/trace', purpose: 'what the cluster, the logs and the records tell about one request' },
  { path: 'cli/machines', purpose: 'entries of the list of machines, from flags, from a file, from a key' },
  { path: 'cli/register', purpose: 'the attestation records, in a table or a folder' },
  { path: 'cli/cluster', purpose: 'the Kubernetes objects that commands read and write' },
  { path: 'cli/aws', purpose: 'the AWS calls of commands' },
  { path: 'cli/shell', purpose: 'completion for shells, and the version' },
  { path: 'cli/output', purpose: 'text, tables, JSON and YAML' },
  { path: 'cli/runtime', purpose: 'input and output as arguments; exit codes' },

  { path: 'lib', purpose: 'the infrastructure: CDK' },
  { path: 'lib/observability', purpose: 'alarms, metrics of log lines, dashboards' },
  { path: 'lib/props', purpose: 'what the constructs are given: properties, checked as countersign.yaml is' },
  { path: 'lib/props/providers', purpose: 'the properties of each attestation provider' },

  { path: 'acceptance', purpose: 'the acceptance run on an AWS account: engine, plan, report' },
  { path: 'acceptance/steps', purpose: 'one file for each step' },
  { path: 'acceptance/resources', purpose: 'what steps make in AWS, and its removal: stacks, functions, instances' },
  { path: 'acceptance/probe', purpose: 'programs of the run: a function that tries calls with a role, a machine' },
  { path: 'acceptance/world', purpose: 'what steps work with: clients, clusters, calls, what has to be undone' },

  { path: 'dev', purpose: 'the demo and the development server' },
  { path: 'dev/demo/scenarios', purpose: 'one file for each demo' },
  { path: 'dev/demo', purpose: 'the parts that all demos use' },
  { path: 'dev/serve', purpose: 'the handlers over the embedded stores, and their log' },
  { path: 'dev/csr-api', purpose: 'a stand-in of the CertificateSigningRequest API' },
  { path: 'dev/tpm', purpose: 'a TPM in software' },
  { path: 'dev/aws', purpose: 'stand-ins of EC2, STS and instance metadata' },
  { path: 'dev/examples', purpose: 'renders the examples of joining machines from their source' },
  { path: 'dev/pictures', purpose: 'draws the pictures of the documentation from their sources' },
];

/** Source files of a room, at most. */
export const mostFiles = 13;

/** The tree as docs/architecture.md shows it. */
export function tree(): string {
  const lines: string[] = [];
  let part = '';
  for (const { path, purpose } of rooms) {
    const top = path.split('/')[0] ?? '';
    if (top !== part && top !== path) lines.push(`${top}/`);
    part = top;
    const depth = path.split('/').length - 1;
    const name =
      '  '.repeat(depth) +
      (path
        .split('/')
        .slice(depth === 0 ? 0 : 1)
        .join('/') +
        '/');
    lines.push(`${name.padEnd(34)} ${purpose}`.trimEnd());
  }
  return lines.join('\n');
}

/** The flags of `kubelet-authenticator join` and its help text. */
import type { parseArgs } from 'node:util';
import { defaultCacheDirectory } from '../settings/settings.ts';

export const joinOptions = {
  token: { type: 'string' },
  'discovery-token': { type: 'string' },
  'tls-bootstrap-token': { type: 'string' },
  'token-file': { type: 'string' },
  'discovery-token-ca-cert-hash': { type: 'string', multiple: true },
  'discovery-token-unsafe-skip-ca-verification': { type: 'boolean' },
  'discovery-file': { type: 'string' },
  'discovery-timeout': { type: 'string' },
  'node-name': { type: 'string' },
  'cluster-name': { type: 'string' },
  audience: { type: 'string' },
  provider: { type: 'string' },
  'signer-name': { type: 'string' },
  'serving-signer-name': { type: 'string' },
  'serving-name': { type: 'string', multiple: true },
  'keep-bootstrap-token': { type: 'boolean' },
  serving: { type: 'string' },
  'client-ca-bundle': { type: 'string' },
  'key-kind': { type: 'string' },
  'evidence-version': { type: 'string' },
  'endorsement-key': { type: 'string' },
  'attestation-certificate': { type: 'string' },
  'attestation-key': { type: 'string' },
  'attestation-name': { type: 'string' },
  directory: { type: 'string' },
  'cache-dir': { type: 'string' },
  command: { type: 'string' },
  'dry-run': { type: 'boolean' },
  force: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

export type JoinFlags = ReturnType<typeof parseArgs<{ options: typeof joinOptions; strict: true }>>['values'];

export const joinHelp = `usage: kubelet-authenticator join <host:port> --token TOKEN --discovery-token-ca-cert-hash HASH… --audience NAME [flags]
       kubelet-authenticator join --discovery-file FILE --token TOKEN --audience NAME [flags]

Finds the cluster, verifies its identity, and writes the files that the kubelet needs: its kubeconfig with
kubelet-authenticator as credential plugin, a configuration drop-in, and the plugin's settings. It does not request a
certificate: the plugin does when the kubelet first calls it. countersign token create prints the whole command.

Which cluster:
  --token abcdef.0123456789abcdef       discovery token and TLS bootstrap token in one
  --discovery-token TOKEN               the token whose signature of cluster-info is checked
  --tls-bootstrap-token TOKEN           the token with which the plugin requests the first certificate
  --token-file FILE                     instead of --token, so that other users do not see the token in the command line
  --discovery-token-ca-cert-hash HASH   sha256:<hex> of a CA's public key; repeat it for several CAs
  --discovery-token-unsafe-skip-ca-verification   join without a hash: any holder of the token can impersonate the cluster
  --discovery-file FILE                 a kubeconfig with server and CA, instead of <host:port>; without a token its user requests the
                                        first certificate, such as in a copy of this node's kubelet.conf
  --discovery-timeout SECONDS           how long to wait for a server that does not answer (default 300)

Which node:
  --node-name NAME            default: the host name of this machine
  --audience NAME             the deployment, as countersign token create prints it: <account>/<region>/<cluster>
  --cluster-name NAME         the cluster's name in countersign.yaml (default: the last part of the audience)
  --provider aws|aws-nitrotpm|tpm|x509|gce|insecure   how this machine proves its identity (default aws)
  --endorsement-key KIND      provider tpm: rsa-2048, p-256 or p-384 (default: the first of which the TPM has a certificate);
                              provider aws-nitrotpm: rsa-2048 (the default) or p-384
  --attestation-certificate FILE   provider x509: the certificate of this machine (PEM), and the CAs between it and its root
  --attestation-key FILE      provider x509: the key of that certificate (PEM)
  --attestation-name KIND     provider x509: uri, cn or dns, the kind of name that identifies this machine (default: the first that it has)
  --signer-name NAME          default: cluster.x-k8s.io/kube-apiserver-client-kubelet-<provider>
  --client-ca-bundle FILE     CAs of client certificates; the plugin replaces a certificate of any other CA
  --keep-bootstrap-token      leave the token on disk after the first certificate; by default it is removed
  --key-kind KIND             P-256, P-384, P-521, RSA-2048, RSA-3072, RSA-4096, Ed25519 (default P-256)
  --evidence-version VERSION  send only this version: aws/v2 or aws/v1 (default: the newest that the approver accepts)
  --serving kubelet|attested|none   who requests the serving certificate: the kubelet (serverTLSBootstrap, the default),
                              kubelet-authenticator serving with evidence, or neither
  --serving-signer-name NAME  with --serving attested (default cluster.x-k8s.io/kubelet-serving-<provider>)
  --serving-name NAME         with --serving attested: another IP address or DNS name; repeat it

Files:
  --directory DIR             default /etc/kubernetes
  --cache-dir DIR             keys and certificates (default ${defaultCacheDirectory})
  --command FILE              path of the plugin in the kubelet's kubeconfig (default: this program)
  --force                     overwrite files that exist with other content
  --dry-run                   discover, print the files, write nothing

Examples:
  kubelet-authenticator join 10.0.0.10:6443 --token-file /run/join-token \\
    --discovery-token-ca-cert-hash sha256:4f…e1 --audience 123456789012/eu-central-1/prod --provider aws
  kubelet-authenticator join --discovery-file cluster.conf --token abcdef.0123456789abcdef \\
    --audience 123456789012/eu-central-1/prod --serving attested
  kubelet-authenticator join 10.0.0.10:6443 … --dry-run

Exit codes: 0 joined, 1 refused, 2 usage, 3 configuration, 5 temporary (try again), 6 files exist with other content
`;

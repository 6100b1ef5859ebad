/** The text of a first countersign.yaml, with a comment where its reviewer decides something. */

export const platforms = ['kubeadm', 'cluster-api', 'eks', 'bare-metal'] as const;
export type Platform = (typeof platforms)[number];

export interface Answers {
  readonly cluster: string;
  readonly platform: Platform;
  /** Of the signing side; undefined: decided by the login at deployment. */
  readonly place?: { readonly account: string; readonly region: string };
  readonly attestation: boolean;
}

/** Whether the machines of the cluster can be named in its configuration: with a TPM they need no further answer, on EC2 an account and a Region. */
export function canAttest({ platform, place }: Pick<Answers, 'platform' | 'place'>): boolean {
  return platform === 'bare-metal' || (platform !== 'eks' && place !== undefined);
}

/** `suffix`: random, for a name that no other deployment has. */
export function firstConfiguration(answers: Answers, suffix: string): string {
  const { cluster, platform } = answers;
  const signers = platform === 'eks' ? ownSigner(answers) : kubernetesSigners(answers, suffix);
  return `# yaml-language-server: $schema=./countersign.schema.json
#
# Which requesters of cluster ${cluster} may get which certificates. \`countersign init\` wrote it, and from now on it is yours: keep it in a
# repository of your own, where each change has a reviewer. Check it with: countersign config validate · All keys: docs/configuration.md
version: 1

clusters:
  ${cluster}:
${(signers + deployment(answers)).replaceAll(/^(?=.)/gm, '    ')}`;
}

function kubernetesSigners({ cluster, platform, place, attestation }: Answers, suffix: string): string {
  const onMetal = platform === 'bare-metal';
  const nodes = attestation ? (onMetal ? tpmSigners : ec2Signers) : plainSigners;
  const proof = onMetal ? tpmMachines(cluster, suffix, place) : ec2Machines(cluster, place);
  return `cas:
  # Two CAs, so that a certificate of one is useless in place of the other's. The API server has the client CA in
  # --client-ca-file and the serving CA in --kubelet-certificate-authority.
  client: { subject: { commonName: ${cluster} client CA } }
  serving: { subject: { commonName: ${cluster} kubelet serving CA } }
profiles:
  # Logins of users and controllers: the common name is the user, the organizations are the groups. An operator approves each request.
  kubernetes.io/kube-apiserver-client:
    ca: client
    maxTtl: 24h
    # Before you deploy, limit who may ask, and the names:
    # requester: { groups: [platform-team] }
    # subject: { commonNames: ['*@example.com'], organizations: [developers] }
${nodes}${attestation ? approvals(nodes) + proof : ''}# No node gets a serving certificate for these addresses: the service range (kubeadm's default; change it if yours is another). Add the address
# at which nodes reach the API servers.
reservedAddresses: [10.96.0.0/12]
`;
}

const plainSigners = `  # Logins and serving certificates of kubelets. Without a proof of the machine the approver decides which requester gets which node
  # name: docs/attestation.md.
  kubernetes.io/kube-apiserver-client-kubelet: { ca: client, maxTtl: 30d }
  kubernetes.io/kubelet-serving: { ca: serving, maxTtl: 30d }
`;

const ec2Signers = `  # Logins of kubelets, only with a proof of the machine: kubelet-authenticator asks for them. No other signer gives them.
  cluster.x-k8s.io/kube-apiserver-client-kubelet-aws: { ca: client, maxTtl: 30d, freshKeys: true }
  # Unchanged kubelets ask for these. The request is compared with the machine that has the node name.
  kubernetes.io/kubelet-serving: { ca: serving, maxTtl: 30d, attestation: { providers: [aws] } }
`;

const tpmSigners = `  # Logins of kubelets, only with a quote of the TPM: kubelet-authenticator asks for them. No other signer gives them.
  # attestation.pcrs limits what a machine may have booted: docs/attestation/tpm.md.
  cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm: { ca: client, maxTtl: 7d, freshKeys: true }
  cluster.x-k8s.io/kubelet-serving-tpm: { ca: serving, maxTtl: 7d }
`;

/** `nodes`: the lines of the signers of nodes. */
function approvals(nodes: string): string {
  const names = [...nodes.matchAll(/^ {2}(\w\S+): /gm)].map(([, name]) => `  ${name}: approve\n`);
  return `# The relay approves what the proof and these rules permit, and denies everything else.
approval:
${names.join('')}`;
}

function ec2Machines(cluster: string, place: Answers['place']): string {
  return place === undefined
    ? ''
    : `attestation:
  aws:
    # The account and the Region of the nodes. In another account than that of the signing side: { '…': { assumeRole: … } }.
    accounts: { '${place.account}': {} }
    regions: [${place.region}]
    # An account alone would admit every instance that its users start.
    tags: { kubernetes.io/cluster/${cluster}: owned }
    nodeName: [privateDnsName]
`;
}

function tpmMachines(cluster: string, suffix: string, place: Answers['place']): string {
  const audience = `  # Part of every proof, so that a proof for another deployment is refused here.\n  audience: ${cluster}-${suffix}\n`;
  return `attestation:
${place === undefined ? audience : ''}  # Only machines that an operator listed, each with its node name: countersign machines ek, countersign machines allow.
  tpm: { machines: listed }
`;
}

function ownSigner({ cluster }: Answers): string {
  return `cas:
  web: { subject: { commonName: ${cluster} web CA } }
profiles:
  # On EKS: signers of your own, whose CA your applications trust. AWS keeps those of kubernetes.io (docs/eks.md). A profile permits each
  # of its requesters each of its names, so give each workload a signer of its own. Put your names in place of these:
  k8s.example.com/web:
    maxTtl: 1d
    requester: { users: ['system:serviceaccount:shop:web'] }
    usages: { allowed: [digital signature, server auth], required: [server auth] }
    sans: { required: true, dns: [web.shop.svc, web.shop.svc.cluster.local] }
# The relay approves what these rules permit.
approval: { k8s.example.com/web: approve }
`;
}

function deployment({ cluster, place }: Answers): string {
  const principal = `arn:aws:iam::${place?.account ?? '111122223333'}:role/${cluster}-watch-relay`;
  return `# For the deployment on AWS (docs/deploy.md): who may call. Name the IAM role of the relay, or with access.jwt its service account.
# access: { iam: { principals: ['${principal}'] } }
${place === undefined ? "# aws: { account: '111122223333', region: eu-central-1 } # default: those of your login" : `aws: { account: '${place.account}', region: ${place.region} }`}
`;
}

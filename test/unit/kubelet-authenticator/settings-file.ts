/** What `join` writes, for a node of an aws cluster. */
export const settingsFile = {
  version: 1,
  nodeName: 'n1',
  clusterName: 'demo',
  audience: '111122223333/eu-central-1/demo',
  provider: 'aws',
  server: 'https://10.0.0.10:6443',
  certificateAuthorityFile: '/etc/kubernetes/pki/ca.crt',
  bootstrapCredentialsFile: '/etc/kubernetes/kubelet-authenticator/bootstrap.json',
} as const;

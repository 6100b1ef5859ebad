/** The outputs of a cluster's stack, with values of the form that AWS gives. */

const [account, region] = ['999900001111', 'eu-central-1'];

interface Templates {
  readonly templates: ReadonlyMap<string, { readonly Outputs?: object }>;
}

/** All that the synthesised template has, and no others. */
export function outputsOf({ templates }: Templates, cluster: string): Readonly<Record<string, string>> {
  return outputsNamed(Object.keys(templates.get(`countersign-${cluster}`)?.Outputs ?? {}), cluster);
}

export function outputsNamed(names: readonly string[], cluster: string): Readonly<Record<string, string>> {
  const values: Readonly<Record<string, string>> = {
    SignUrl: `https://abcde12345.execute-api.${region}.amazonaws.com/v1/clusters/${cluster}`,
    AttestUrl: `https://fghij67890.lambda-url.${region}.on.aws/v1/clusters/${cluster}`,
    JwtSignUrl: `https://klmno12345.execute-api.${region}.amazonaws.com/v1/clusters/${cluster}`,
    CallerRoleArn: `arn:aws:iam::${account}:role/countersign-${cluster}-caller`,
    CaKeyArns: `arn:aws:kms:${region}:${account}:key/11111111-2222-4333-8444-555555555555`,
  };
  return Object.fromEntries(names.map((name) => [name, values[name] ?? `${cluster}-${name}`]));
}

/** Clusters with each way to the endpoint, and with signers whom the relay serves by names and by the file. */
export const clustersOfEachWay = `version: 1
clusters:
  role:
    cas: { ca: { subject: { commonName: role CA } } }
    profiles:
      kubernetes.io/kube-apiserver-client-kubelet: { maxTtl: 30d }
      k8s.example.com/web: { usages: { allowed: [digital signature, server auth] }, subject: { commonNames: ['*.example.com'] } }
    access: { iam: { principals: ['arn:aws:iam::444455556666:role/prod-watch-relay'] } }
    aws: { account: '${account}', region: ${region} }
  url:
    cas: { ca: { subject: { commonName: url CA } } }
    profiles:
      kubernetes.io/kube-apiserver-client-kubelet: { maxTtl: 30d, attestation: { providers: [aws] } }
    approval: { kubernetes.io/kube-apiserver-client-kubelet: approve }
    attestation:
      aws:
        accounts: { '${account}': {} }
        regions: [${region}]
        tags: { kubernetes.io/cluster/url: owned }
        nodeName: [privateDnsName]
    frontDoor: functionUrl
    access: { iam: { principals: ['arn:aws:iam::444455556666:role/one', 'arn:aws:iam::444455556666:role/two'] } }
    aws: { account: '${account}', region: ${region} }
  token:
    cas: { ca: { subject: { commonName: token CA } } }
    profiles: { kubernetes.io/kubelet-serving: { maxTtl: 30d } }
    access:
      jwt:
        issuer: https://oidc.example.com
        audience: countersign.token.example.com
        subjects: ['system:serviceaccount:pki:signer-relay']
    aws: { account: '${account}', region: ${region} }
  both:
    cas: { ca: { subject: { commonName: both CA } } }
    profiles: { kubernetes.io/kubelet-serving: { maxTtl: 30d } }
    access:
      iam: { principals: ['arn:aws:iam::444455556666:role/prod-watch-relay'] }
      jwt:
        issuer: https://oidc.example.com
        audience: countersign.both.example.com
        subjects: ['system:serviceaccount:countersign-system:countersign-watch-relay']
    aws: { account: '${account}', region: ${region} }
`;

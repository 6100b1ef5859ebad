/** Clusters that use everything between them; in the last three machines prove themselves, in the last by TPM. */
export const clusters = `version: 1
clusters:
  api:
    cas:
      nodes: {subject: {commonName: nodes}}
      web: {subject: {commonName: web}, keySpec: RSA-3072, signatureAlgorithm: RSASSA_PSS_SHA_384}
    profiles:
      kubernetes.io/kubelet-serving: {ca: nodes}
    access:
      iam: {principals: ['arn:aws:iam::444455556666:role/relay', 'arn:aws:iam::777788889999:root']}
      jwt: {issuer: https://issuer.example.com, audience: countersign.api, subjects: ['system:serviceaccount:a:b']}
    limits: {reservedConcurrency: 7, throttle: {rate: 11, burst: 22}}
    alarms: {topics: ['arn:aws:sns:eu-central-1:111122223333:alerts'], caDaysLeft: 33, refusals: 44}
    keys: {administrators: ['arn:aws:iam::111122223333:role/admin'], deleters: ['arn:aws:iam::111122223333:role/custodian']}
    logs: {retentionDays: 30}
    aws: {account: '111122223333', region: eu-central-1}
  url:
    cas: {ca: {subject: {commonName: url}}}
    profiles: {kubernetes.io/kubelet-serving: {}}
    frontDoor: functionUrl
    access: {iam: {principals: ['arn:aws:iam::444455556666:role/relay']}}
  tokens:
    cas: {ca: {subject: {commonName: tokens}}}
    profiles: {kubernetes.io/kubelet-serving: {}}
    access:
      jwt:
        issuer: https://issuer.example.com
        audience: countersign.tokens
        subjects: ['system:serviceaccount:a:b']
        domain: {name: sign.example.com, certificate: 'arn:aws:acm:eu-central-1:111122223333:certificate/c-1'}
  proof:
    cas: {ca: {subject: {commonName: proof}}}
    profiles:
      cluster.x-k8s.io/kube-apiserver-client-kubelet-aws: {freshKeys: true}
      kubernetes.io/kubelet-serving: {attestation: {providers: [aws]}}
    attestation:
      aws:
        accounts:
          '111122223333': {}
          '444455556666': {assumeRole: 'arn:aws:iam::444455556666:role/look'}
          '777788889999': {assumeRole: 'arn:aws:iam::777788889999:role/look'}
        regions: [eu-central-1, eu-west-1]
        tags: {kubernetes.io/cluster/proof: owned}
        nodeName: [privateDnsName]
    access:
      iam: {principals: ['arn:aws:iam::444455556666:role/relay']}
      jwt: {issuer: https://issuer.example.com, audience: countersign.proof, subjects: ['system:serviceaccount:a:b']}
    limits: {reservedConcurrency: 9}
    logs: {retentionDays: 30}
    aws: {account: '111122223333', region: eu-central-1}
  first:
    cas: {ca: {subject: {commonName: first}}}
    profiles: {cluster.x-k8s.io/kube-apiserver-client-kubelet-insecure: {}}
    frontDoor: functionUrl
    access: {iam: {principals: ['arn:aws:iam::444455556666:role/relay']}}
  metal:
    cas: {ca: {subject: {commonName: metal}}}
    profiles: {cluster.x-k8s.io/kube-apiserver-client-kubelet-tpm: {}}
    attestation: {tpm: {machines: listed}}
    access: {iam: {principals: ['arn:aws:iam::444455556666:role/relay']}}
    keys: {administrators: ['arn:aws:iam::111122223333:role/admin'], deleters: ['arn:aws:iam::111122223333:role/custodian']}
    aws: {account: '111122223333', region: eu-central-1}
`;

/** Only these of them: what is expected of one cluster needs no stacks of the others. */
export function clustersNamed(...names: readonly string[]): string {
  const [head = '', ...each] = clusters.split(/^(?= {2}\w+:$)/m);
  return [head, ...each.filter((text) => names.some((name) => text.startsWith(`  ${name}:`)))].join('');
}

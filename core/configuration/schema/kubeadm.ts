/**
 * The keys of countersign.yaml about the certificates that kubeadm's control plane needs. How values must fit together is checked in
 * core/configuration/resolve/kubeadm.ts.
 */
import { z } from 'zod';
import { duration, label, matching, texts } from '../fields/values.ts';

const nodeName = matching(
  /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/,
  'must be the name of a node: a DNS name in lower case',
).max(253);

export const kubeadmShape = z.strictObject({
  cas: z
    .strictObject({
      kubernetes: label
        .exactOptional()
        .describe('Signs for the API server, its clients and the kubeconfigs: the CA of `ca.crt`.'),
      frontProxy: label
        .exactOptional()
        .describe(
          'Signs the client certificate with which the API server calls aggregated API servers: the CA of `front-proxy-ca.crt`.',
        ),
      etcd: label.exactOptional().describe('Signs for etcd and its clients: the CA of `etcd/ca.crt`.'),
    })
    .prefault({})
    .describe(
      'The CAs by what they sign, each a name under `cas`. A certificate whose CA is left out is not signed. Required.',
    ),
  apiServerNames: texts
    .default([])
    .describe(
      'Names and addresses of the API server that are the same on all nodes: the first address of the service range, the control-plane endpoint, `certSANs`. Those that kubeadm itself gives (`kubernetes`, `kubernetes.default.svc` …) need no entry.',
    ),
  nodes: z
    .record(nodeName, texts.min(1, 'must hold at least the address of the node'))
    .default({})
    .describe(
      'The control-plane nodes, by name, each with its addresses and further names. Certificates name no other node. Required.',
    ),
  maxTtl: duration.default('365d').describe('Lifetime of the certificates. They end no later than their CA.'),
});

export type KubeadmInput = z.output<typeof kubeadmShape>;

import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { startApprovalStack, type ApprovalStack } from '../../../harness/stack/approval.ts';
import { leftovers, requireKubelet, startMachine } from '../../../harness/kubernetes/kubelet.ts';
import { certificatePemOf, eventually, readRequests } from '../../../harness/stack/requests.ts';
import { failures, isReady, logins, proxiedHealth, readyCondition, requestsOf } from './node.ts';

const { skip } = await requireKubelet();

const client = 'kubernetes.io/kube-apiserver-client-kubelet';
const serving = 'kubernetes.io/kubelet-serving';
/*
 * Certificates start five minutes in the past, so of 150 seconds the kubelet sees 450 and renews after 70 to 90 % of
 * these: 15 to 105 seconds after it got one, and at least 45 before it ends.
 */
const configuration = `version: 1
clusters:
  demo:
    cas: { ca: { subject: { commonName: kubelet demo CA } } }
    profiles:
      ${client}: { maxTtl: 150s }
      ${serving}: { maxTtl: 1h }
    approval: { ${client}: approve, ${serving}: approve }
    approveServingWithoutProof: true
`;
/** Kubernetes' documentation: a token of a file, which needs no Secret. */
const fileToken = '02b50b05283e98dd0fd71db496ef01e8';
const tokenFile = `${fileToken},kubelet-bootstrap,10001,"system:bootstrappers"\n`;

describe.skipIf(skip)('the stock kubelet, which brings no evidence, where its profiles ask for none', () => {
  let stack: ApprovalStack;

  beforeAll(async () => {
    stack = await startApprovalStack(configuration, undefined, {
      tokenFile,
      apiServerArgs: ['--enable-admission-plugins=NodeRestriction'],
    });
    const leave = 'system:certificates.k8s.io:certificatesigningrequests';
    await stack.bind(`${leave}:nodeclient`, 'system:bootstrappers');
    await stack.bind(`${leave}:selfnodeclient`, 'system:nodes');
    // Kubernetes has no role of this name; Kubernetes' documentation has the operator make it.
    const role = 'approve-node-server-renewal-csr';
    const resource = '--resource=certificatesigningrequests.certificates.k8s.io/selfnodeserver';
    await stack.plane.kubectl(['create', 'clusterrole', role, '--verb=create', resource]);
    await stack.bind(role, 'system:nodes');
    await stack.bootstrap('abcdef');
    await stack.relay();
  });
  afterAll(() => stack?.stop());

  // Both at once: most of their time they wait for the renewal.
  test.concurrent.for([
    ['a bootstrap token', 'stock-1', 'system:bootstrap:abcdef', 'abcdef.0123456789abcdef'],
    ['a token of a file', 'stock-2', 'kubelet-bootstrap', fileToken],
  ] as const)(
    'joins with %s, gets its serving certificate and renews by itself',
    { timeout: 240_000 },
    async ([, nodeName, bootstrapUser, bootstrapToken], { expect }) => {
      const { plane } = stack;
      const machine = await startMachine();
      const nodeUser = `system:node:${nodeName}`;
      try {
        const kubelet = await machine.startKubelet({
          plane,
          nodeName,
          bootstrapToken,
          configuration: { rotateCertificates: true, serverTLSBootstrap: true },
        });
        await eventually(() => isReady(plane, kubelet, nodeName), `${nodeName} is Ready`);
        const first = new X509Certificate(kubelet.clientCertificate()!);
        expect(first.issuer).toBe('CN=kubelet demo CA');
        const [asked] = requestsOf(await readRequests(plane), bootstrapUser);
        expect(asked).toMatchObject({ spec: { signerName: client, username: bootstrapUser } });

        // Its stock request for names of this very address, checked by the API server of the other side.
        await eventually(async () => (await proxiedHealth(plane, nodeName)) === 'ok', 'the API server reaches it');
        const serves = requestsOf(await readRequests(plane), nodeUser).find(({ spec }) => spec.signerName === serving);
        expect(serves?.status.certificate).toBeDefined();

        const readySince = (await readyCondition(plane, nodeName))!.lastTransitionTime;
        // While the kubelet replaces its link there may be no file for a moment.
        let second = first;
        await eventually(
          () => {
            second = new X509Certificate(kubelet.clientCertificate() ?? first.toString());
            return second.serialNumber !== first.serialNumber;
          },
          'it renewed',
          150,
        );
        expect(second.publicKey.equals(first.publicKey)).toBe(false);
        await eventually(() => logins(plane, nodeUser).has(second.fingerprint256), 'it logs in with the new one');
        const renewals = requestsOf(await readRequests(plane), nodeUser).filter(
          ({ spec }) => spec.signerName === client,
        );
        const issued = renewals.map((object) => new X509Certificate(certificatePemOf(object)).fingerprint256);
        expect(issued).toContain(second.fingerprint256);
        expect(kubelet.process.ended()).toBeUndefined();
        expect(await readyCondition(plane, nodeName)).toMatchObject({ status: 'True', lastTransitionTime: readySince });
        expect(failures(plane, nodeUser)).toEqual([]);
        expect(await proxiedHealth(plane, nodeName)).toBe('ok');
      } finally {
        await machine.stop();
      }
      expect(leftovers(machine)).toEqual([]);
    },
  );
});

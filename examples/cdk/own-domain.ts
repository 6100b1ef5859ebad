/** A DNS name of yours for the endpoint (docs/private-clusters.md), with its record in a hosted zone of Route 53. */
import { App, Stack } from 'aws-cdk-lib';
import { ARecord, HostedZone, RecordTarget } from 'aws-cdk-lib/aws-route53';
import { ApiGatewayv2DomainProperties } from 'aws-cdk-lib/aws-route53-targets';
import { SigningCluster, SigningState } from 'countersign/lib';

const app = new App();
const env = { account: '999900001111', region: 'eu-central-1' };
const name = 'sign.example.com';

const stateStack = new Stack(app, 'countersign-prod-state', { env, terminationProtection: true });
const state = new SigningState(stateStack, 'State', {
  cluster: {
    name: 'prod',
    cas: { ca: { subject: { commonName: 'prod CA' } } },
    profiles: { 'kubernetes.io/kubelet-serving': {} },
    reservedAddresses: ['10.96.0.0/12'],
    access: {
      iam: {
        principals: ['arn:aws:iam::999900001111:role/prod-watch-relay'],
        domain: {
          name,
          certificate: 'arn:aws:acm:eu-central-1:999900001111:certificate/12345678-1234-1234-1234-123456789012',
        },
      },
    },
  },
});

const stack = new Stack(app, 'countersign-prod', { env });
const signer = new SigningCluster(stack, 'Signer', { state });

const zone = HostedZone.fromHostedZoneAttributes(stack, 'Zone', {
  hostedZoneId: 'Z0123456789ABCDEFGHIJ',
  zoneName: 'example.com',
});
const domain = signer.domains.get('iam');
if (domain !== undefined)
  new ARecord(stack, 'Record', {
    zone,
    recordName: `${name}.`,
    target: RecordTarget.fromAlias(
      new ApiGatewayv2DomainProperties(domain.regionalDomainName, domain.regionalHostedZoneId),
    ),
  });

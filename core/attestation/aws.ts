import type { AwsAttestation } from '../attestation-configuration.ts';
import type { AwsPorts } from './aws-endpoints.ts';
import type { AttestationProvider } from './provider.ts';

export function awsProvider(_configuration: AwsAttestation, _ports: AwsPorts): AttestationProvider {
  return {
    name: 'aws',
    versions: ['aws/v1'],
    secure: true,
    allowRestart: false,
    examine: () => ({ violations: [{ code: 'AttestationInvalid', message: 'the evidence cannot be verified' }] }),
    describe: () => Promise.reject(new Error('EC2 cannot be asked')),
  };
}

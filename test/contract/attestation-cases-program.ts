/**
 * Puts the contract's cases to the attestation store of this tree, in a process of its own, and prints what failed:
 *
 *     node test/contract/attestation-cases-program.ts embedded <folder for its files>
 *     node test/contract/attestation-cases-program.ts dynamodb <endpoint>
 */
import { join } from 'node:path';
import { registerCases } from './attestation-register-cases.ts';
import { sceneOf } from './attestation-scene.ts';
import { storeCases } from './attestation-store-cases.ts';

export interface CasesReport {
  readonly run: number;
  /** What failed and why. The first one ends the run. */
  readonly failed?: { readonly name: string; readonly error: string };
}

const [kind, place = ''] = process.argv.slice(2);
const made = await (kind === 'embedded' ? embedded() : dynamoDb());
let report: CasesReport = { run: 0 };
for (const { name, run } of [...storeCases, ...registerCases]) {
  try {
    await run(sceneOf(made));
    report = { run: report.run + 1 };
  } catch (error) {
    report = {
      ...report,
      failed: { name, error: error instanceof Error ? `${error.name}: ${error.message}` : 'thrown' },
    };
    break;
  }
}
await made.close();
console.log(JSON.stringify(report));

async function embedded() {
  const { openEmbeddedAttestations } = await import('../../adapters/embedded/attestations.ts');
  const { embeddedUnderTest } = await import('./embedded-attestations.ts');
  let files = 0;
  return embeddedUnderTest(openEmbeddedAttestations, () => join(place, `${process.pid}-${++files}.sqlite`));
}

async function dynamoDb() {
  const { dynamoDbAttestations } = await import('../../adapters/dynamodb/attestations.ts');
  const { dynamoDbAttestationAdmin } = await import('../../adapters/dynamodb/attestation-admin.ts');
  const { dynamoDbUnderTest } = await import('./dynamodb-attestations.ts');
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  return dynamoDbUnderTest(
    { dynamoDbAttestations, dynamoDbAttestationAdmin },
    { endpoint: place, region: 'eu-central-1', credentials, maxAttempts: 3 },
  );
}

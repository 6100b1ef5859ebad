/** Opens the certificates and revocations of a cluster. */
import { readdirSync } from 'node:fs';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { dynamoDbCertificateReads } from '../../adapters/dynamodb/certificate-reads.ts';
import { dynamoDbRevocations } from '../../adapters/dynamodb/revocations.ts';
import { loadEmbeddedCa } from '../../adapters/embedded/authority.ts';
import { ledgerFileIn, revocationsFileIn } from '../../adapters/embedded/data.ts';
import { openEmbeddedLedger } from '../../adapters/embedded/ledger.ts';
import { openEmbeddedRevocations } from '../../adapters/embedded/revocations.ts';
import { environmentNames } from '../../adapters/lambda/environment.ts';
import { functionName } from '../../core/configuration/resolve/deployment.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import { renewCrl } from '../../core/revocation/renew-crl.ts';
import type { Authority } from '../../core/x509/leaf-certificate.ts';
import { deployedOutputs } from '../aws/account.ts';
import { clientOptions, scanTimeout } from '../aws/client-options.ts';
import { requireEmbeddedFile } from '../runtime/embedded-file.ts';
import { CommandFailure, exitCodes } from '../runtime/exit.ts';
import type { Io, IssuedCrl, OpenRevocations, RevocationsPlace } from '../runtime/io.ts';

export function openRevocations(place: RevocationsPlace, io: Io): Promise<OpenRevocations> {
  return place.kind === 'embedded' ? openEmbedded(place.folder, io) : openDeployed(place, io);
}

async function openEmbedded(folder: string, io: Io): Promise<OpenRevocations> {
  requireEmbeddedFile(ledgerFileIn(folder), io);
  const register = await io.openRegister({ kind: 'embedded', folder });
  const { reads, close: closeLedger } = openEmbeddedLedger(ledgerFileIn(folder));
  const { revocations, crls, close } = openEmbeddedRevocations(revocationsFileIn(folder));
  return {
    reads,
    revocations,
    register,
    caKeys: async () => (await embeddedCas(folder)).map(({ signer }) => signer.keyId),
    async issueCrls(serials) {
      const issued: IssuedCrl[] = [];
      for (const authority of await embeddedCas(folder)) {
        const { crl } = await renewCrl(authority, serials, { revocations, crls, now: () => io.now() });
        const listed = new Set(crl.revoked.map(({ serial }) => serial));
        const { number, nextUpdate, revoked } = crl;
        const included = serials.filter((serial) => listed.has(serial));
        issued.push({
          name: authority.name,
          keyId: authority.signer.keyId,
          signed: crl.der !== undefined,
          number,
          nextUpdate,
          entries: revoked.length,
          serials: included,
        });
      }
      return issued;
    },
    close() {
      register.close();
      closeLedger();
      close();
    },
  };
}

/** The CAs of the dev server are folders beside its files. */
function embeddedCas(folder: string): Promise<readonly Authority[]> {
  const folders = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return Promise.all(folders.map(({ name }) => loadEmbeddedCa(folder, name)));
}

type Deployed = Extract<RevocationsPlace, { kind: 'deployed' }>;

async function openDeployed({ cluster, region, function: named }: Deployed, io: Io): Promise<OpenRevocations> {
  const where = region === undefined ? {} : { region };
  const register = await io.openRegister({ kind: 'deployed', cluster, table: undefined, region });
  const client = new DynamoDBClient({ ...clientOptions(scanTimeout), ...where });
  let asked: Promise<Readonly<Record<string, string>>> | undefined;
  const outputs = () => (asked ??= deployedOutputs(cluster, where));
  const output = async (name: string): Promise<string> => {
    const value = (await outputs())[name];
    if (value !== undefined) return value;
    throw new CommandFailure(exitCodes.notFound, `the stack has no output ${name}: an earlier version deployed it`);
  };
  const tableName = io.environment[environmentNames.certificatesTable] || (await output('CertificatesTable'));
  const options = { client, tableName, randomBytes: (count: number) => io.randomBytes(count) };
  return {
    reads: dynamoDbCertificateReads(options),
    revocations: dynamoDbRevocations(options),
    register,
    caKeys: async () => (await output('CaKeyArns')).split(' '),
    async issueCrls(serials) {
      const target = named ?? functionName(cluster, 'ca');
      const request = { action: 'crl', serials };
      const answer = objectOf(await io.callFunction({ functionName: target, region, request }));
      if (answer['cluster'] !== cluster || !Array.isArray(answer['crls']))
        throw new CommandFailure(
          exitCodes.configuration,
          `${target} does not answer like the ca function of ${cluster}`,
        );
      return (answer['crls'] as readonly unknown[])
        .map(objectOf)
        .flatMap((crl) => (crl['ok'] === true ? [issuedCrl(crl)] : []));
    },
    close() {
      register.close();
      client.destroy();
    },
  };
}

function issuedCrl({
  name,
  keyId,
  signed,
  number,
  nextUpdate,
  entries,
  serials,
}: Readonly<Record<string, unknown>>): IssuedCrl {
  return {
    name: String(name),
    keyId: String(keyId),
    signed: signed === true,
    number: Number(number),
    nextUpdate: Number(nextUpdate),
    entries: Number(entries),
    serials: Array.isArray(serials) ? serials.map(String) : [],
  };
}

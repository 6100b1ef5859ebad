/** A CA whose certificate, or key too, comes from outside: the command line, the ca function, KMS and DynamoDB, judged by openssl. */
import { execFileSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CreateKeyCommand, DisableKeyCommand, EnableKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import type { KeySpec } from '@aws-sdk/client-kms';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { kmsClientConfig } from '../../../../adapters/aws/kms-client.ts';
import { kmsKey } from '../../../../adapters/aws/kms-signer.ts';
import { dynamoDbCaStore } from '../../../../adapters/dynamodb/ca.ts';
import { dynamoDbSignatureLog } from '../../../../adapters/dynamodb/signatures.ts';
import { dynamoDbCrls, dynamoDbRevocations } from '../../../../adapters/dynamodb/revocations.ts';
import { ledgerClientConfig } from '../../../../adapters/dynamodb/ledger.ts';
import { connectKey } from '../../../../cli/aws/key-import.ts';
import { CommandFailure, exitCodes } from '../../../../cli/runtime/exit.ts';
import type { FunctionCall, ImportableKey } from '../../../../cli/runtime/io.ts';
import { loadAuthority } from '../../../../core/ca/authority.ts';
import { parseConfiguration } from '../../../../core/configuration/parse.ts';
import { toPem } from '../../../../core/encoding/pem.ts';
import { createCaHandler } from '../../../../lambdas/ca/handler.ts';
import { createFaults, visitEveryFault } from '../../../contract/faulty.ts';
import type { Faults } from '../../../contract/faulty.ts';
import { createCertificatesTable } from '../../../harness/aws/tables.ts';
import { byTier, onlyDeep } from '../../../harness/determinism/tier.ts';
import { run } from '../../../unit/cli/run.ts';
import type { Ran } from '../../../unit/cli/run.ts';
import { bothEmulators, describeOnEmulators, patience } from './emulators.ts';

const folder = mkdtempSync(join(tmpdir(), 'countersign-import-'));
afterAll(() => rmSync(folder, { recursive: true }));
const at = (file: string): string => join(folder, file);
const openssl = (...args: string[]): string =>
  execFileSync('openssl', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' });

/** As people make one: openssl's defaults. */
function makeCa(name: string, subject: string, algorithm: readonly string[], ...more: readonly string[]): void {
  openssl(
    'req',
    '-x509',
    '-newkey',
    ...algorithm,
    '-nodes',
    '-days',
    '30',
    '-subj',
    subject,
    '-keyout',
    `${name}.key`,
    '-out',
    `${name}.crt`,
    ...more,
  );
}

describeOnEmulators(byTier({ default: ['MiniStack'], deep: bothEmulators }), (emulatorName, emulator) => {
  let dynamodb: DynamoDBClient;
  let kms: KMSClient;
  let table: string;
  beforeAll(() => {
    dynamodb = new DynamoDBClient({ ...emulator().client, ...ledgerClientConfig, requestHandler: patience });
    kms = new KMSClient({ ...emulator().client, ...kmsClientConfig, requestHandler: patience });
  });
  afterAll(() => {
    dynamodb.destroy();
    kms.destroy();
  });
  beforeEach(async () => {
    table = await createCertificatesTable(dynamodb, `import-${randomUUID()}`);
  });

  /**
   * A deployed cluster with one CA, and the command line for it. `broken`: names the call that fails, once. `faults`: of the calls that the
   * first command and its functions make.
   */
  async function deploy(ca: string, spec: KeySpec, origin: 'EXTERNAL' | 'AWS_KMS', faults?: Faults) {
    let isFirst = true;
    const clients: KMSClient[] = [];
    /** The SDK’s own handler, with the faults around each call. */
    const disturbed = (service: string): object => {
      if (faults === undefined) return {};
      const owner = new KMSClient({ ...emulator().client, requestHandler: patience });
      clients.push(owner);
      const real = owner.config.requestHandler;
      const calls = faults.wrap(service, { handle: real.handle.bind(real) });
      return {
        maxAttempts: 1,
        requestHandler: {
          handle: (...given: Parameters<typeof real.handle>) => (isFirst ? calls : real).handle(...given),
          destroy() {},
          updateHttpClientConfig() {},
          httpHandlerConfigs: () => ({}),
        },
      };
    };
    const client = emulator().client;
    const inFunction = {
      kms:
        faults === undefined
          ? kms
          : new KMSClient({ ...client, ...kmsClientConfig, ...disturbed('KMS of the function') }),
      dynamodb:
        faults === undefined
          ? dynamodb
          : new DynamoDBClient({ ...client, ...ledgerClientConfig, ...disturbed('DynamoDB of the function') }),
    };
    const invoke = (faults ?? createFaults()).wrap('Lambda', { invoke: (request: object) => handler(request) });
    const parsed = parseConfiguration(
      `{version: 1, clusters: {prod: {cas: {ca: ${ca}}, profiles: {kubernetes.io/kubelet-serving: {}}}}}`,
      'countersign.yaml',
    );
    if (!parsed.ok) throw new Error(parsed.problem.map(({ message }) => message).join('; '));
    const { cas, profiles } = parsed.value.configuration.clusters.get('prod')!;
    const made = await kms.send(new CreateKeyCommand({ KeySpec: spec, KeyUsage: 'SIGN_VERIFY', Origin: origin }));
    const key = kmsKey(inFunction.kms, made.KeyMetadata!.Arn!);
    const store = dynamoDbCaStore(inFunction.dynamodb, table);
    const sent: string[] = [];
    const log: string[] = [];
    const handler = createCaHandler({
      connect: () => ({
        cluster: 'prod',
        cas,
        profiles,
        key: () => key,
        store,
        revocations: dynamoDbRevocations({ client: dynamodb, tableName: table, randomBytes }),
        crls: dynamoDbCrls({ client: dynamodb, tableName: table, randomBytes }),
        signatures: dynamoDbSignatureLog({ client: dynamodb, tableName: table }),
        origin: () => ({ now: Date.now(), randomBytes }),
      }),
      respond: async () => {},
      wait: async () => {},
      log: (entry) => log.push(JSON.stringify(entry)),
    });
    const command = async (argv: string, broken?: string): Promise<Ran> => {
      let left = broken;
      /** As cli/aws/function-call.ts says it. */
      const failed = (error: unknown): never => {
        if (faults === undefined) throw error;
        throw new CommandFailure(exitCodes.temporary, `countersign-prod-ca failed: ${String(error)}`, 'try again');
      };
      const failOnce = (step: string): void => {
        if (left !== step) return;
        left = undefined;
        throw new Error(`killed at ${step}`);
      };
      const callFunction = async ({ request }: FunctionCall) => {
        sent.push(JSON.stringify(request));
        const action = String((request as { action?: unknown }).action);
        failOnce(`before ${action}`);
        const answer = await (isFirst && faults !== undefined ? invoke.invoke(request) : handler(request)).catch(
          failed,
        );
        failOnce(`after ${action}`);
        return answer;
      };
      const connect = async (arn: string): Promise<ImportableKey> => {
        const real = connectKey(arn, { ...emulator().client, ...disturbed('KMS of the operator') });
        return {
          ...real,
          importMaterial: async (...given) => {
            failOnce('before material');
            await real.importMaterial(...given);
            failOnce('after material');
          },
        };
      };
      const ran = await run(argv.split(' '), { world: { callFunction, connectKey: connect, now: Date.now } }).catch(
        (error: unknown) => ({
          code: -1,
          out: '',
          err: String(error),
        }),
      );
      isFirst = false;
      return ran;
    };
    const close = (): void => {
      for (const each of clients) each.destroy();
    };
    const authority = () => loadAuthority(cas.get('ca')!, key, store);
    return { command, authority, sent, log, store, close, keyId: key.keyId };
  }

  test('a request, signed by openssl’s CA, becomes a CA whose leaf openssl verifies to the root', async () => {
    const usage = ['-addext', 'keyUsage=critical,keyCertSign,cRLSign'];
    makeCa('root', '/CN=Corp Root', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-384'], ...usage);
    const { command, authority, store } = await deploy(
      '{kind: imported, keySpec: P-384, subject: {commonName: prod nodes, organization: Corp}}',
      'ECC_NIST_P384',
      'AWS_KMS',
    );
    const asked = await command('ca csr --cluster prod');
    expect([asked.code, asked.err]).toEqual([0, '']);
    writeFileSync(at('nodes.csr'), asked.out);
    expect(openssl('req', '-in', 'nodes.csr', '-verify', '-noout', '-text')).toMatch(
      /O *= *Corp, CN *= *prod nodes[\s\S]*CA:TRUE, pathlen:0/,
    );
    const sign = ['x509', '-req', '-in', 'nodes.csr', '-CA', 'root.crt', '-CAkey', 'root.key', '-days', '20'];
    openssl(...sign, '-copy_extensions', 'copyall', '-out', 'nodes.crt');
    openssl(...sign, '-out', 'leaf-like.crt');
    const argv = `ca import --cluster prod --root ${at('root.crt')}`;
    expect(await command(`${argv} --cert ${at('leaf-like.crt')}`)).toMatchObject({
      code: 1,
      err: expect.stringContaining('no X.509 v3 certificate') as string,
    });
    expect((await authority()).ok).toBe(false);
    const imported = await command(`${argv} --cert ${at('nodes.crt')} -o pem`);
    expect(imported).toMatchObject({ code: 0, out: readFileSync(at('nodes.crt'), 'utf8') });
    // A repetition changes nothing and is no failure.
    expect(await command(`${argv} --cert ${at('nodes.crt')}`)).toMatchObject({ code: 0 });
    openssl(...sign, '-copy_extensions', 'copyall', '-out', 'again.crt');
    expect(await command(`${argv} --cert ${at('again.crt')}`)).toMatchObject({ code: 6 });
    const loaded = await authority();
    if (!loaded.ok) throw new Error(loaded.problem.message);
    const { certificate, intermediates } = loaded.value;
    expect(intermediates).toEqual([certificate]);
    expect((await store.find('ca'))?.chain).toHaveLength(1);
    expect(openssl('verify', '-x509_strict', '-CAfile', 'root.crt', 'nodes.crt')).toBe('nodes.crt: OK\n');
    writeFileSync(at('stored.crt'), toPem('CERTIFICATE', certificate));
    expect(readFileSync(at('stored.crt'), 'utf8')).toBe(readFileSync(at('nodes.crt'), 'utf8'));
  });

  test.each<[string, KeySpec, readonly string[]]>([
    ['P-256', 'ECC_NIST_P256', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']],
    ['P-384', 'ECC_NIST_P384', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-384']],
    ['RSA-2048', 'RSA_2048', ['rsa:2048']],
    ...byTier<[string, KeySpec, readonly string[]][]>({
      default: [],
      deep: [
        ['RSA-3072', 'RSA_3072', ['rsa:3072']],
        ['RSA-4096', 'RSA_4096', ['rsa:4096']],
      ],
    }),
  ])(
    'an existing CA with a %s key moves into KMS; killed at each step, the same command ends it',
    async (keySpec, spec, algorithm) => {
      makeCa('old', '/CN=kubernetes', algorithm);
      makeCa('other', '/CN=kubernetes', algorithm);
      const configured = `{kind: imported, keyMaterial: imported, keySpec: ${keySpec}, subject: {commonName: kubernetes}}`;
      const { command, authority, sent, log } = await deploy(configured, spec, 'EXTERNAL');
      const argv = `ca import-key --cluster prod --key ${at('old.key')} --cert ${at('old.crt')}`;

      // Wrong order, wrong key: nothing is changed, and it says what to do.
      const early = await command(`ca import --cluster prod --cert ${at('old.crt')}`);
      // LocalStack shows a public key of keys that have none yet.
      expect(early.code).toBe(emulatorName === 'LocalStack' ? 1 : 3);
      if (emulatorName === 'MiniStack') expect(early.err).toContain('countersign ca import-key');
      for (const wrong of [argv.replace('old.key', 'other.key'), argv.replace('old.crt', 'other.crt')])
        expect(await command(wrong)).toMatchObject({ code: 1, err: expect.stringContaining('WrongKey') as string });

      const steps = ['before plan', 'before material', 'after material', 'before import', 'after import'];
      for (const step of steps) {
        expect((await command(argv, step)).code).not.toBe(0);
        expect((await authority()).ok).toBe(step === 'after import');
      }
      const ended = await command(`${argv} -o pem`);
      expect(ended).toMatchObject({ code: 0, out: readFileSync(at('old.crt'), 'utf8') });
      expect(ended.err).toContain('was in force before');

      // KMS signs with the very key: a certificate of the old CA file verifies it.
      const loaded = await authority();
      if (!loaded.ok) throw new Error(loaded.problem.message);
      writeFileSync(at('message'), 'signed by KMS');
      writeFileSync(at('signature'), (await loaded.value.signer.sign(Buffer.from('signed by KMS'))).bytes);
      writeFileSync(at('old.pub'), openssl('x509', '-in', 'old.crt', '-pubkey', '-noout'));
      const digest = keySpec === 'P-384' ? '-sha384' : '-sha256';
      expect(openssl('dgst', digest, '-verify', 'old.pub', '-signature', 'signature', 'message')).toContain('OK');

      // The key went to no function and into no log.
      // In PKCS #8 an EC key begins with its secret, an RSA key ends with secrets.
      const lines = readFileSync(at('old.key'), 'utf8').trim().split('\n').slice(1, -1);
      const secret = (spec.startsWith('RSA') ? lines.at(-2) : lines[0]) ?? '';
      expect(secret).toHaveLength(64);
      for (const text of [...sent, ...log, ended.out, ended.err])
        expect(text.includes(secret) || text.includes('PRIVATE')).toBe(false);
    },
  );

  test.each(onlyDeep)(
    'a fault or the end of the process at any call: the same command ends it',
    async () => {
      makeCa('old', '/CN=kubernetes', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
      const certificate = readFileSync(at('old.crt'), 'utf8');
      const key = readFileSync(at('old.key'), 'utf8');
      const configured = '{kind: imported, keyMaterial: imported, subject: {commonName: kubernetes}}';
      // A command makes the same calls on both emulators; each import takes a second.
      const kinds = { kinds: emulatorName === 'LocalStack' ? (['crash'] as const) : (['once', 'crash'] as const) };
      const visited = await visitEveryFault(async (faults) => {
        table = await createCertificatesTable(dynamodb, `import-${randomUUID()}`);
        const site = await deploy(configured, 'ECC_NIST_P256', 'EXTERNAL', faults);
        const argv = `ca import-key --cluster prod --key ${at('old.key')} --cert ${at('old.crt')} -o pem`;
        const first = await site.command(argv);
        if (faults.injected.length === 0) expect(first).toMatchObject({ code: 0, out: certificate });
        else {
          expect(first).toMatchObject({ code: 5, out: '' });
          expect(first.err).toMatch(/\ncountersign: run the same command again: it goes on where it ended\n$/);
        }
        // In force, or not there: never another certificate, never one without its key.
        const between = await site.authority();
        expect(between.ok ? toPem('CERTIFICATE', between.value.certificate) : between.problem.why).toBe(
          between.ok ? certificate : 'AwaitsImport',
        );
        const again = await site.command(argv);
        expect(again).toMatchObject({ code: 0, out: certificate });
        expect(again.err.includes('was in force before')).toBe(between.ok);
        expect((await site.authority()).ok).toBe(true);
        // The file is the operator's: it is read, and nothing else.
        expect(readFileSync(at('old.key'), 'utf8')).toBe(key);
        site.close();
      }, kinds);
      const services = new Set(visited.flat().map(({ port }) => port));
      expect([...services].toSorted()).toEqual([
        'DynamoDB of the function',
        'KMS of the function',
        'KMS of the operator',
        'Lambda',
      ]);
      console.log(`import-key on ${emulatorName}: ${visited.length} faults`);
      // Plan, describe, parameters, material, public key, import, and what the function calls.
      expect(visited.length).toBeGreaterThanOrEqual(10 * 2 * kinds.kinds.length);
    },
    300_000,
  );

  test('KMS keeps the first key that it got: another one is refused, and nothing is in force', async () => {
    makeCa('first', '/CN=kubernetes', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
    makeCa('second', '/CN=kubernetes', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
    const configured = '{kind: imported, keyMaterial: imported, subject: {commonName: kubernetes}}';
    const { command, authority, keyId: KeyId } = await deploy(configured, 'ECC_NIST_P256', 'EXTERNAL');
    const argv = (name: string) =>
      `ca import-key --cluster prod --key ${at(`${name}.key`)} --cert ${at(`${name}.crt`)}`;
    await command(argv('first'), 'after material');
    const refused = await command(argv('second'));
    expect(refused).toMatchObject({ code: 6, err: expect.stringContaining('another name') as string });
    expect((await authority()).ok).toBe(false);
    expect(await command(argv('first'))).toMatchObject({ code: 0 });
    await kms.send(new DisableKeyCommand({ KeyId }));
    const disabled = await command(argv('first'));
    expect(disabled).toMatchObject({ code: 3, err: expect.stringContaining('is in state Disabled') as string });
    expect(disabled.err).toContain('enable it, or cancel its deletion, in KMS, and run the same command again');
    await kms.send(new EnableKeyCommand({ KeyId }));
    expect(await command(argv('first'))).toMatchObject({ code: 0 });
  });

  test('a key that KMS made takes no other, and a key of another kind goes nowhere', async () => {
    makeCa('small', '/CN=kubernetes', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']);
    const argv = `ca import-key --cluster prod --key ${at('small.key')} --cert ${at('small.crt')}`;
    const own = await deploy(
      '{kind: imported, keyMaterial: imported, subject: {commonName: kubernetes}}',
      'ECC_NIST_P256',
      'AWS_KMS',
    );
    expect(await own.command(argv)).toMatchObject({ code: 3, err: expect.stringContaining('EXTERNAL') as string });
    const larger = await deploy(
      '{kind: imported, keyMaterial: imported, keySpec: P-384, subject: {commonName: kubernetes}}',
      'ECC_NIST_P384',
      'EXTERNAL',
    );
    expect(await larger.command(argv)).toMatchObject({
      code: 3,
      err: expect.stringContaining('keySpec P-384') as string,
    });
  });
});

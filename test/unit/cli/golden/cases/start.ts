import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Io } from '../../../../../cli/runtime/io.ts';
import { startCsrApi } from '../../../../../dev/csr-api/csr-api.ts';
import { serveDev } from '../../../../../dev/serve/dev-server.ts';
import { freePort, temporaryFolder } from '../../../../harness/processes/processes.ts';
import { makeRequest } from '../../../../harness/x509/requests.ts';
import { serveHere } from '../../../dev/serve-here.ts';
import type { Goldens, Session } from '../session.ts';

/** Stops as soon as it listens. */
const stopped: Pick<Io, 'serveDev'> = {
  async serveDev(this: Io, settings) {
    await serveDev(settings, this, () => Promise.resolve());
  },
};

function folder(call: Session['call']): string {
  const { path, remove } = temporaryFolder('golden');
  onTestFinished(remove);
  call('FOLDER', path);
  return path;
}

const { pem } = makeRequest({ subject: { CN: 'jane' } });
const files = { 'jane.csr': pem };
const own = `version: 1
clusters:
  kind:
    cas: { web: { subject: { commonName: kind web CA } } }
    profiles: { k8s.example.com/web: { usages: { allowed: [server auth] }, sans: { dns: ['*.svc'] } } }
`;

/** The stand-in of the API, without a relay: nothing is signed. */
async function cluster(call: Session['call']): Promise<void> {
  const api = await startCsrApi();
  onTestFinished(api.close);
  call('SERVER', api.url);
  const file = join(folder(call), 'kubeconfig');
  call('KUBECONFIG', file);
  writeFileSync(file, api.kubeconfig());
}

const client = "--signer-name kubernetes.io/kube-apiserver-client --usages 'client auth' --kubeconfig KUBECONFIG";

export const goldens: Goldens = {
  async init({ run, call }) {
    folder(call);
    await run('init FOLDER/new --yes');
    await run('init FOLDER/new --yes');
    await run('init FOLDER/other');
    await run('init FOLDER/other --cluster shop --platform eks --attestation');
    const answers = ['Prod', 'prod', 'kubeadm', '111122223333', 'eu-central-1', ''];
    await run('init FOLDER/asked', { world: { ask: () => Promise.resolve(answers.shift() ?? '') } });
    await run('config validate FOLDER/asked/countersign.yaml');
  },

  async dev({ run, call }) {
    call('PORT', String(await freePort()));
    await cluster(call);
    await run('dev --port PORT --max-ttl 2h', { world: stopped });
    await run('dev --port PORT --write-kubeconfig FOLDER/written', { world: stopped });
    await run('dev --port PORT --config own.yaml --kubeconfig KUBECONFIG', {
      files: { 'own.yaml': own },
      world: stopped,
    });
    await run('dev --port PORT --kubeconfig KUBECONFIG', { world: stopped });
    await run('dev --port 8443 --cluster Prod', { world: stopped });
    await run('dev --config missing.yaml', { world: stopped });
  },

  async 'csr create'({ run, call }) {
    await cluster(call);
    await run(`csr create jane jane.csr ${client}`, { files });
    await run(`csr create jane jane.csr ${client}`, { files });
    await run(`csr create jane jane.key ${client}`, { files: { 'jane.key': 'nothing\n' } });
  },

  async 'csr certificate'({ run, call }) {
    const file = join(folder(call), 'kubeconfig');
    const served = await serveHere('--write-kubeconfig', file);
    onTestFinished(async () => void (await served.stop()));
    call('KUBECONFIG', file);
    call('SERVER', /http:[^"]+/.exec(readFileSync(file, 'utf8'))?.[0] ?? '');
    await run(`csr create jane jane.csr ${client}`, { files });
    let now = Date.now();
    await run('csr certificate jane --kubeconfig KUBECONFIG', { world: { now: () => (now += 20_000) } });
    await run("csr approve jane --reason 'a test' --kubeconfig KUBECONFIG");
    await run('csr certificate jane --kubeconfig KUBECONFIG', { lines: 1 });
  },
};

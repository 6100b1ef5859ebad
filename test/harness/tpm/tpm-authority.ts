import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../processes/processes.ts';

/** A manufacturer of TPMs: swtpm's own local CA, a root and an issuing CA, in a folder of its own. */
export interface TpmAuthority {
  readonly folder: string;
  /** Both exist as soon as the first TPM was made. */
  rootPem(): string;
  issuerPem(): string;
  /** The key of the issuing CA, for certificates that swtpm does not make. */
  issuerKeyPem(): string;
  /** What `swtpm_setup` is called with, to have its certificates made here. */
  readonly configurationFile: string;
  remove(): void;
}

export function createTpmAuthority(): TpmAuthority {
  const folder = temporaryFolder('tpm-authority');
  const { path } = folder;
  const authority = join(path, 'authority');
  mkdirSync(authority);
  const read = (name: string) => readFileSync(join(authority, name), 'utf8');
  write(join(path, 'authority.conf'), {
    statedir: authority,
    signingkey: join(authority, 'issuer.key'),
    issuercert: join(authority, 'issuer.pem'),
    certserial: join(authority, 'serial'),
  });
  // Debian's options name a platform, which belongs into platform certificates only.
  writeFileSync(join(path, 'authority.options'), '');
  const configurationFile = join(path, 'setup.conf');
  write(configurationFile, {
    create_certs_tool: '/usr/bin/swtpm_localca',
    create_certs_tool_config: join(path, 'authority.conf'),
    create_certs_tool_options: join(path, 'authority.options'),
    active_pcr_banks: 'sha256',
  });
  return {
    folder: path,
    rootPem: () => read('swtpm-localca-rootca-cert.pem'),
    issuerPem: () => read('issuer.pem'),
    issuerKeyPem: () => read('issuer.key'),
    configurationFile,
    remove: () => folder.remove(),
  };
}

function write(file: string, settings: Readonly<Record<string, string>>): void {
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`);
  writeFileSync(file, lines.join(''));
}

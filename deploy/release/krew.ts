/**
 * The manifest with which krew installs `kubectl countersign`.
 * https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
 */
import { stringify } from 'yaml';
import { debianArchitecture } from '../image/debian.ts';
import type { Architecture } from '../node.ts';

export interface KrewArchive {
  readonly architecture: Architecture;
  readonly url: string;
  /** Hexadecimal. */
  readonly sha256: string;
}

/** The names of architectures are Go's, as Debian's are. macOS and Windows are served by the npm package. */
export function krewManifest(options: {
  readonly version: string;
  readonly homepage: string;
  readonly archives: readonly KrewArchive[];
}): string {
  return stringify({
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'countersign' },
    spec: {
      version: `v${options.version}`,
      homepage: options.homepage,
      shortDescription: 'Explain and decide certificate requests',
      description:
        'Lists, explains, approves and denies CertificateSigningRequests, and operates Countersign, a certificate signer whose CA key is in AWS KMS.\n',
      platforms: options.archives.map(({ architecture, url, sha256 }) => ({
        selector: { matchLabels: { os: 'linux', arch: debianArchitecture[architecture] } },
        uri: url,
        sha256,
        bin: 'countersign',
      })),
    },
  });
}

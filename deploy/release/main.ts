/** `npm run release`: every file of a release, by one command. It publishes nothing. */
import { join } from 'node:path';
import { version } from '../../core/version.ts';
import { buildCommand } from '../command.ts';
import { pinnedPackages } from '../image/debian.ts';
import { makeRelease } from './release.ts';

const help = `usage: npm run release [-- [--out DIR] [--downloads URL --homepage URL] [--packages FILE]]

Makes every file of a release in dist/release or DIR/release, and publishes none: the npm package, single executables for Linux x64 and
arm64, the images, the chart, an SBOM and SHA256SUMS. The same commit gives the same bytes. With --downloads, the address under which the
files of this version will be, also the manifest of krew. With --packages, another file instead of deploy/image/packages.json says which
versions of Debian's packages the images have. It needs Debian with apt and dpkg, and no container daemon.

Examples:
  npm run release
  npm run release -- --downloads https://example.com/releases/v${version} --homepage https://example.com
  cd dist/release && sha256sum -c SHA256SUMS

Exit codes: 0 made, 1 failed, 2 usage, 3 a tool is missing
`;

process.exitCode = await buildCommand(process.argv.slice(2), {
  name: 'release',
  help,
  options: { downloads: { type: 'string' }, homepage: { type: 'string' }, packages: { type: 'string' } },
  run: async (out, { downloads, homepage, packages }) => {
    if ((downloads === undefined) !== (homepage === undefined))
      throw new Error('--downloads and --homepage belong together: the manifest of krew names both');
    const { images } = await makeRelease(join(out, 'release'), {
      ...(downloads === undefined || homepage === undefined ? {} : { published: { downloads, homepage } }),
      debian: pinnedPackages(packages),
      progress: (line) => process.stderr.write(`${line}\n`),
    });
    for (const [name, digest] of images) process.stdout.write(`${name}:${version}@${digest}\n`);
  },
});

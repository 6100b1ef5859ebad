/** `npm run package:images`: the images of the relay, of its token job and of the command line, without a container daemon. */
import { join } from 'node:path';
import { version } from '../../core/version.ts';
import { buildCommand } from '../command.ts';
import { architectures } from '../node.ts';
import { pinnedPackages, updatePins } from './debian.ts';
import { images } from './images.ts';
import { buildImages } from './layout.ts';

const help = `usage: npm run package:images [-- [--out DIR] [--update-base | --packages FILE]]

Makes the images of the relay, of its token job and of the command line, each for Linux x64 and arm64, as an OCI image layout in
dist/images or DIR/images. It needs Debian with apt and dpkg, and no container daemon. With --update-base it first pins the versions
of Debian's packages that apt offers today, in deploy/image/packages.json. With --packages it takes the versions of another such file.

Examples:
  npm run package:images
  skopeo copy --all oci:dist/images:watch-relay docker://REGISTRY/countersign/watch-relay:${version}
  npm run package:images -- --update-base && git diff deploy/image/packages.json

Exit codes: 0 made, 1 failed, 2 usage, 3 a tool is missing
`;

process.exitCode = await buildCommand(process.argv.slice(2), {
  name: 'package:images',
  help,
  options: { 'update-base': { type: 'boolean' }, packages: { type: 'string' } },
  run: async (out, flags) => {
    if (flags['update-base'] === true) updatePins();
    const place = join(out, 'images');
    const made = await buildImages(place, {
      images: Object.values(images),
      architectures,
      packages: pinnedPackages(flags.packages),
      progress: (line) => process.stderr.write(`${line} …\n`),
    });
    for (const [name, { digest }] of made) process.stdout.write(`oci:${place}:${name}  ${digest}\n`);
  },
});

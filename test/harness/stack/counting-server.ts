/**
 * The dev server's own service as a process, with a key that writes down each signature it makes:
 *
 *   node stack-counting-server.ts PORT DATA-FOLDER COUNT-FILE
 */
import { appendFileSync } from 'node:fs';
import { defaultCluster } from '../../../core/configuration/parse.ts';
import { openSignService, serveSignService } from '../../../dev/serve/sign-service.ts';

const [port = '', dataFolder = '', countFile = ''] = process.argv.slice(2);
const service = await openSignService({
  clusters: [defaultCluster('demo', { maxTtlSeconds: 86_400 })],
  dataFolder,
  log: (entry) => process.stdout.write(`${JSON.stringify(entry)}\n`),
  wrapAuthority: (authority) => ({
    ...authority,
    signer: {
      ...authority.signer,
      async sign(tbs) {
        const signature = await authority.signer.sign(tbs);
        // A line is one write at the file's end, whichever process makes it.
        appendFileSync(countFile, `${Buffer.from(tbs).toString('hex')}\n`);
        return signature;
      },
    },
  }),
});
await serveSignService(service, Number(port));

/** The operators' commands against a real cluster, with the real time and nothing of the caller's environment. */
import { processIo } from '../../../../cli/world.ts';
import { main } from '../../../../cli/main.ts';

export async function countersign(kubeconfig: string, ...argv: string[]) {
  const printed = { out: '', err: '' };
  const code = await main(argv, {
    ...processIo(),
    out: (text) => void (printed.out += text),
    err: (text) => void (printed.err += text),
    environment: { KUBECONFIG: kubeconfig },
  });
  return { code, ...printed };
}

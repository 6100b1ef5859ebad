import type { Goldens } from '../session.ts';
import { clustersOfEachWay, outputsNamed } from '../../../../harness/stack/stack-outputs.ts';

const files = { 'countersign.yaml': clustersOfEachWay };
const names: Readonly<Record<string, readonly string[]>> = {
  role: ['SignUrl', 'CallerRoleArn', 'CaKeyArns'],
  token: ['JwtSignUrl', 'CaKeyArns'],
  both: ['SignUrl', 'JwtSignUrl', 'CallerRoleArn', 'CaKeyArns'],
};
const world = {
  stackOutputs: async ({ cluster }: { readonly cluster: string }) => outputsNamed(names[cluster] ?? [], cluster),
};

export const goldens: Goldens = {
  async 'relay values'({ run }) {
    const image = `--image registry.example.com/countersign/watch-relay@sha256:${'0'.repeat(64)}`;
    await run(`relay values --cluster role ${image}`, { files, world });
    await run('relay values --cluster token -o json', { files, world });
    await run('relay values --cluster both', { files, world });
  },
};

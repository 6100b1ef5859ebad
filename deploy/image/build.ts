/** The programs of the images, each in one file. */
import { buildScript, type Script } from '../bundle.ts';

export const bundleName = 'watch-relay.cjs';
export const tokenReconcileName = 'token-reconcile.cjs';

/** Never in the relay's image: keys in files, the services behind the endpoint, everything for development. */
const forbidden =
  /^(dev|test|bench|cli|lib|deploy)\/|^adapters\/(embedded|dynamodb|aws\/kms-)|^lambdas\/(?!watch-relay\/)|^core\/(issue|x509\/(tbs-certificate|ca-certificate))\.ts$/;

export function intruders(sources: readonly string[]): string[] {
  return sources.filter((source) => forbidden.test(source));
}

/** Only this command of the command line, and the adapters for cluster objects. */
export function tokenReconcileIntruders(sources: readonly string[]): string[] {
  const own =
    /^(core\/|adapters\/(http|kubernetes)\/|cli\/(runtime\/exit|cluster\/(object-answers|token-rotation))\.ts$|deploy\/image\/token-reconcile\.ts$|node_modules\/(?!@aws|@smithy))/;
  return sources.filter((source) => !own.test(source));
}

export function buildRelay(out: string): Promise<Script> {
  return buildScript(out, { entry: 'lambdas/watch-relay/index.ts', name: bundleName, intruders });
}

export function buildTokenReconcile(out: string): Promise<Script> {
  const entry = 'deploy/image/token-reconcile.ts';
  return buildScript(out, { entry, name: tokenReconcileName, intruders: tokenReconcileIntruders });
}

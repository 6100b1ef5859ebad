/**
 * The one place that uses a CA key for anything but a leaf certificate. No HTTP endpoint leads here: CloudFormation invokes the
 * function when it deploys the stack, and `countersign ca …` invokes it as the operator, who needs `lambda:InvokeFunction`.
 *
 * Each action is a file in actions/, and each can be repeated after any failure.
 */
import type { ResourceResponse } from '../../adapters/aws/cloudformation-response.ts';
import type { LambdaContext } from '../../adapters/lambda/http.ts';
import { recordedKey } from '../../core/ca/recorded-key.ts';
import { objectOf } from '../../core/encoding/json-object.ts';
import { describeError, loggedCall } from '../../adapters/lambda/operator-call.ts';
import type { OperatorLogEntry } from '../../adapters/lambda/operator-call.ts';
import type { ClusterAnswer } from './actions/action.ts';
import { askedAction, perform } from './actions/actions.ts';
import type { Done } from './actions/actions.ts';
import { factsOf, isExpected } from './actions/cas.ts';
import type { OperatorAnswer } from './actions/cas.ts';
import { init } from './actions/init.ts';
import type { CaPorts } from './actions/ports.ts';

export interface CaHandlerPorts {
  /** Throws if the environment does not match the bundled configuration. */
  readonly connect: () => CaPorts;
  readonly respond: (url: string, response: ResourceResponse) => Promise<void>;
  readonly wait: (milliseconds: number) => Promise<void>;
  readonly log: (entry: OperatorLogEntry) => void;
}

/** https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requests.html */
interface ResourceEvent {
  readonly RequestType: 'Create' | 'Update' | 'Delete';
  readonly ResponseURL: string;
  readonly StackId: string;
  readonly RequestId: string;
  readonly LogicalResourceId: string;
  readonly PhysicalResourceId?: string;
}

export type CaHandler = (event: unknown, context?: LambdaContext) => Promise<ClusterAnswer | undefined>;

export function createCaHandler(ports: CaHandlerPorts): CaHandler {
  return async (event, context) => {
    if (isResourceEvent(event)) {
      await deploy(event, ports);
      return undefined;
    }
    const asked = askedAction(event);
    if (asked === undefined)
      throw new TypeError('the event is neither a CloudFormation custom resource event nor one of countersign ca');
    const lambdaRequestId = context?.awsRequestId;
    return loggedCall(asked.name, ports.log, () => asked.run({ ...recording(asked.name, ports), lambdaRequestId }));
  };
}

/** Always sends CloudFormation a response, since CloudFormation waits an hour for one. */
async function deploy(event: ResourceEvent, ports: CaHandlerPorts): Promise<void> {
  const respond = (result: Pick<ResourceResponse, 'Status' | 'Reason' | 'Data' | 'PhysicalResourceId'>) =>
    ports.respond(event.ResponseURL, {
      ...result,
      StackId: event.StackId,
      RequestId: event.RequestId,
      LogicalResourceId: event.LogicalResourceId,
    });
  // The ID never changes: if it did, CloudFormation would send a Delete for the old ID.
  const id = event.PhysicalResourceId ?? 'countersign-cas';
  // The CA stays when its stack is deleted: the certificates that it signed are still in use.
  if (event.RequestType === 'Delete') return respond({ Status: 'SUCCESS', PhysicalResourceId: id });
  let result: OperatorAnswer;
  try {
    result = await loggedCall(event.RequestType, ports.log, () => initWithRetries(ports));
  } catch (error) {
    const { name, message } = describeError(error);
    return respond({ Status: 'FAILED', PhysicalResourceId: id, Reason: `${name}: ${message}` });
  }
  // A CA that awaits its import does not keep the stack from being deployed: the import needs the deployed key.
  const faults = result.cas.flatMap((ca) => (ca.ok || isExpected(ca) ? [] : [ca.message]));
  if (faults.length > 0)
    return respond({ Status: 'FAILED', PhysicalResourceId: id, Reason: faults.join('; ').slice(0, 1_000) });
  const fingerprints = result.cas.flatMap((ca) =>
    ca.ok ? [[ca.name, factsOf(ca.certificatePem).fingerprintSha256] as const] : [],
  );
  return respond({ Status: 'SUCCESS', PhysicalResourceId: id, Data: Object.fromEntries(fingerprints) });
}

/**
 * IAM is eventually consistent: a role that has just been created may lack its permissions for half a minute, and CDK waits as long.
 * The sum leaves more than a minute of the function's timeout (lib/services.ts) for the calls.
 */
const pausesMilliseconds = [1_000, 2_000, 4_000, 8_000, 15_000, 20_000];

async function initWithRetries(ports: CaHandlerPorts): Promise<Done<OperatorAnswer>> {
  for (const pause of pausesMilliseconds) {
    try {
      return await perform(init, {}, recording('deploy', ports));
    } catch {
      await ports.wait(pause);
    }
  }
  return perform(init, {}, recording('deploy', ports));
}

/** No action has a key whose signatures leave no record. */
function recording(action: string, { connect }: CaHandlerPorts): CaPorts {
  const ports = connect();
  return { ...ports, key: (ca) => recordedKey(ports.key(ca), { ca, action }, ports) };
}

function isResourceEvent(event: unknown): event is ResourceEvent {
  const { RequestType: type, ...fields } = objectOf(event);
  const texts = ['ResponseURL', 'StackId', 'RequestId', 'LogicalResourceId'].map((name) => fields[name]);
  return (
    (type === 'Create' || type === 'Update' || type === 'Delete') && texts.every((text) => typeof text === 'string')
  );
}

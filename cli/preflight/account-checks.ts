/** The account and its region: whose login it is, whether AWS has the services there, whether CDK was bootstrapped. */
import { functionUrlDoubt } from '../../core/configuration/resolve/function-url-regions.ts';
import { bootstrapParameter } from '../aws/bootstrap.ts';
import { ask } from './check.ts';
import type { Check, Site } from './check.ts';

/** `requiresBootstrapStackVersion` of the stacks that the pinned CDK makes; a test compares it with a synthesised one. */
export const neededBootstrapVersion = 6;

/** `wanted`: the account that countersign.yaml names, by cluster. */
export function checkIdentity(arn: string, wanted: string | undefined, at: Pick<Site, 'region' | 'partition'>): Check {
  const [, partition = '', , , account = ''] = arn.split(':');
  const check =
    wanted === undefined
      ? 'the login has an account'
      : `the login is of account ${wanted}, which countersign.yaml names`;
  const row = { id: 'identity', check, seen: arn } as const;
  if (wanted !== undefined && account !== wanted)
    return {
      ...row,
      result: 'fail',
      mend: `log in to account ${wanted} (AWS_PROFILE, or aws sso login --profile NAME), or correct aws.account in countersign.yaml`,
    };
  if (partition !== at.partition)
    return {
      ...row,
      result: 'fail',
      mend: `region ${at.region} is of partition ${at.partition}, this login of ${partition}: name another region, or use another login`,
    };
  return { ...row, result: 'pass' };
}

const services = { lambda: 'Lambda', kms: 'KMS', dynamodb: 'DynamoDB', apigatewayv2: 'API Gateway v2' } as const;
const infrastructure =
  'https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-public-parameters-global-infrastructure.html';

export async function checkRegion(site: Site): Promise<Check[]> {
  return [await checkServices(site), ...checkFunctionUrls(site)];
}

/** AWS's parameters list services and not what each service has in a region. */
function checkFunctionUrls({ region, clusters }: Site): Check[] {
  const doubt = functionUrlDoubt(region);
  if (doubt === undefined || clusters.every(({ deployment: { frontDoor } }) => frontDoor !== 'functionUrl')) return [];
  const mend = 'if the page still lists the region, use frontDoor: httpApi';
  return [{ id: 'region', check: `${region} has Function URLs`, result: 'unknown', seen: doubt, mend }];
}

/** AWS publishes the services of each region as parameters, which can be read in some regions only; us-east-1 is one. */
async function checkServices({ view, region, partition }: Site): Promise<Check> {
  const row = { id: 'region', check: `${region} has ${Object.values(services).join(', ')}` } as const;
  if (partition !== 'aws')
    return {
      ...row,
      result: 'unknown',
      seen: `AWS publishes no list for partition ${partition}`,
      mend: 'https://docs.aws.amazon.com/general/latest/gr/aws-service-information.html names the regions of each service',
    };
  const name = `/aws/service/global-infrastructure/regions/${region}`;
  const names = [name, ...Object.keys(services).map((service) => `${name}/services/${service}`)];
  const listed = await ask(view.parameters(names, 'us-east-1'), 'ssm:GetParameters');
  if (!listed.ok) return { ...row, ...listed.problem };
  const lacking = Object.entries(services).filter(([service]) => !listed.value.has(`${name}/services/${service}`));
  if (lacking.length === 0) return { ...row, result: 'pass', seen: 'as AWS’s public parameters say' };
  const seen = listed.value.has(name)
    ? `AWS lists no ${lacking.map(([, service]) => service).join(', ')} there`
    : 'AWS lists no such region';
  return { ...row, result: 'fail', seen, mend: `name another region in aws.region; the list: ${infrastructure}` };
}

export async function checkBootstrap({ view, account, region }: Site): Promise<Check[]> {
  const row = { id: 'bootstrap', check: `CDK is bootstrapped, version ${neededBootstrapVersion} or newer` } as const;
  const found = await ask(view.parameters([bootstrapParameter]), 'ssm:GetParameters');
  if (!found.ok) return [{ ...row, ...found.problem }];
  const text = found.value.get(bootstrapParameter);
  const mend = `npm run cdk -- bootstrap aws://${account}/${region}`;
  if (text === undefined)
    return [{ ...row, result: 'fail', seen: `there is no parameter ${bootstrapParameter}`, mend }];
  const recent = /^\d{1,6}$/.test(text) && Number(text) >= neededBootstrapVersion;
  return [
    recent
      ? { ...row, result: 'pass', seen: `version ${text}` }
      : { ...row, result: 'fail', seen: `version ${text}`, mend },
  ];
}

/** `--plan`: the steps and the IAM policy that they need, printed without a call of AWS. */
import type { Place } from './world/names.ts';
import type { Step } from './world/step.ts';

export interface PolicyDocument {
  readonly Version: '2012-10-17';
  readonly Statement: readonly {
    readonly Sid: string;
    readonly Effect: 'Allow';
    readonly Action: readonly string[];
    readonly Resource: readonly string[];
  }[];
}

export function policyOf(steps: readonly Step[], place: Place): PolicyDocument {
  return {
    Version: '2012-10-17',
    Statement: steps.flatMap((step) =>
      step.statements(place).map(({ sid, actions, resources }) => ({
        Sid: sid,
        Effect: 'Allow',
        Action: actions,
        Resource: resources,
      })),
    ),
  };
}

export function planText(steps: readonly Step[], place: Place): string {
  const rows = steps.map(
    ({ minute, title, shows }) => `${String(minute).padStart(4)}  ${title}\n      shows: ${shows}\n`,
  );
  return [
    'Minute, step\n\n',
    ...rows,
    '\nThe policy of the login. Everything that the run makes has a name that begins with accept- or countersign-accept-.',
    ' CloudFormation works with the role that cdk bootstrap made.\n\n',
    `${JSON.stringify(policyOf(steps, place), null, 2)}\n`,
  ].join('');
}

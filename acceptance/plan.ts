/** `--plan`: the steps and the IAM policy that they need, printed without a call of AWS. */
import { costText } from './world/cost.ts';
import type { Place } from './world/names.ts';
import type { Extra, Statement, Step } from './world/step.ts';

export interface PolicyDocument {
  readonly Version: '2012-10-17';
  readonly Statement: readonly {
    readonly Sid: string;
    readonly Effect: 'Allow';
    readonly Action: readonly string[];
    readonly Resource: readonly string[];
    readonly Condition?: Statement['conditions'];
  }[];
}

export function policyOf(steps: readonly Step[], place: Place, extras: ReadonlySet<Extra>): PolicyDocument {
  return {
    Version: '2012-10-17',
    Statement: steps
      .filter(({ extra }) => extra === undefined || extras.has(extra))
      .flatMap((step) => step.statements(place))
      .map(({ sid, actions, resources, conditions }) => ({
        Sid: sid,
        Effect: 'Allow',
        Action: actions,
        Resource: resources,
        ...(conditions === undefined ? {} : { Condition: conditions }),
      })),
  };
}

export function planText(steps: readonly Step[], place: Place, extras: ReadonlySet<Extra>): string {
  const rows = steps.map(({ minute, title, shows, extra }) => {
    const asked = extra === undefined || extras.has(extra) ? '' : ` (not run: only with --with ${extra})`;
    return `${String(minute).padStart(4)}  ${title}${asked}\n      shows: ${shows}\n`;
  });
  return [
    'Minute, step\n\n',
    ...rows,
    `\n${costText}\n`,
    '\nThe policy of the login. Everything that the run makes has a name that begins with accept- or countersign-accept-.',
    ' CloudFormation works with the role that cdk bootstrap made.\n\n',
    `${JSON.stringify(policyOf(steps, place, extras), null, 2)}\n`,
  ].join('');
}

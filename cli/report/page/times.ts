/** Instants for people. The page has the moment of the report, and no clock. */
import type { Markup } from './markup.ts';
import { markup } from './markup.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const year = 365 * day;

const units = [
  [year, 'y', day, 'd'],
  [day, 'd', hour, 'h'],
  [hour, 'h', minute, 'min'],
  [minute, 'min', undefined, ''],
] as const;

/** `3 h 10 min`: the largest unit, and the next one while the first is small. */
export function spanText(milliseconds: number): string {
  const span = Math.abs(milliseconds);
  const found = units.find(([size]) => span >= size);
  if (found === undefined) return 'less than 1 min';
  const [size, name, smaller, smallerName] = found;
  const whole = Math.floor(span / size);
  const rest = smaller === undefined || whole >= 10 ? 0 : Math.floor((span % size) / smaller);
  return rest === 0 ? `${whole} ${name}` : `${whole} ${name} ${rest} ${smallerName}`;
}

/** `in 3 h`, `2 d ago`. */
export function relativeText(instant: string, at: string): string {
  const left = Date.parse(instant) - Date.parse(at);
  return left > 0 ? `in ${spanText(left)}` : `${spanText(left)} ago`;
}

/** `2026-06-01 12:00`, in UTC as all times of the page. */
export function utcText(instant: string): string {
  return instant.slice(0, 16).replace('T', ' ');
}

/** Relative and absolute. */
export function moment(instant: string, at: string): Markup {
  return markup`${relativeText(instant, at)} <small>${utcText(instant)}</small>`;
}

/** For sorting: minutes since 1970. */
export function minuteOf(instant: string): number {
  return Math.floor(Date.parse(instant) / minute);
}

/** Values of flags. Each function throws InvalidArgumentError, to which commander adds the flag and its value. */
import { InvalidArgumentError } from 'commander';

export interface ListenAddress {
  /** All interfaces if absent, since a pod's own address is not known in advance. */
  readonly host?: string;
  readonly port: number;
}

/** `host:port`, `[v6]:port` or `:port`. */
export function listenAddress(text: string): ListenAddress {
  const [, host, digits] = /^(?:\[?([^\]]*?)\]?):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits ?? 'none');
  if (!(port <= 65_535)) throw new InvalidArgumentError('It is not host:port or :port.');
  return { port, ...(host === undefined || host === '' ? {} : { host }) };
}

export function file(path: string): string {
  if (path === '') throw new InvalidArgumentError('It names no file.');
  return path;
}

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) return number;
    throw new InvalidArgumentError(`It is not a number from ${least} to ${most}.`);
  };
}

export interface ListenAddress {
  /** Left out: all interfaces, as a pod's own address is not known beforehand. */
  readonly host?: string;
  readonly port: number;
}

/** `host:port`, `[v6]:port` or `:port`. */
export function listenAddress(text: string): ListenAddress | undefined {
  const [, host, digits] = /^(?:\[?([^\]]*?)\]?):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits ?? 'none');
  if (!(port <= 65_535)) return undefined;
  return { port, ...(host === undefined || host === '' ? {} : { host }) };
}
